"""The factor from our counts to the provider's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget
from memory.core.calibration import Measured, calibration, refused_tokens
from memory.core.limits import limits
from tests.memory.strategies import policies

USABLE = 1_536


@pytest.mark.parametrize(
    ("measured", "factor"),
    [
        ([], 1.0),
        ([(1_000, 1_000)], 1.0),
        ([(1_000, 600)], 1.0),  # never less: a count is an upper bound
        ([(1_000, 1_001)], 1.05),  # rounded up
        ([(1_000, 1_050)], 1.05),
        ([(700, 1_470)], 2.1),
        ([(700, 1_470), (1_000, 1_100), (900, 700)], 2.1),  # the highest
        ([(191, 1_470)], 1.0),  # less than an eighth of the usable tokens says nothing
        ([(192, 384)], 2.0),
        ([(200, 2_000)], 10.0),
        ([(200, 2_001)], 1.0),  # more than ten times as many is no count of it
        ([(200, 10**400), (200, 260)], 1.3),
    ],
)
def test_the_factor_is_the_highest_of_those_that_fill_the_window(
    measured: list[tuple[int, int]], factor: float
) -> None:
    assert calibration([Measured(*one) for one in measured], USABLE) == factor


def test_a_refused_request_counts_however_small_it_is() -> None:
    assert calibration([Measured(100, 180, refused=True)], USABLE) == 1.8


def test_nothing_was_counted_of_an_empty_request() -> None:
    assert calibration([Measured(0, 500)], 4) == 1.0


@given(
    measured=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6))),
    usable=st.integers(1, 200_000),
)
def test_what_was_measured_is_within_the_calibrated_count(
    measured: list[tuple[int, int]], usable: int
) -> None:
    factor = calibration([Measured(*one) for one in measured], usable)
    assert 1 <= factor <= 10
    for counted, reported in measured:
        if counted >= max(1, usable / 8) and reported <= 10 * counted:
            assert reported <= counted * factor + 1e-6 * reported


@pytest.mark.parametrize(
    ("told", "counted", "factor", "tokens"),
    [
        (2_473, 1_400, 1.0, 2_473),
        (None, 1_400, 1.0, 1_920),  # a quarter more than what is usable
        (None, 1_200, 2.0, 3_000),  # or than what it was held to be
        (1_536, 1_400, 1.0, None),  # it would have fitted: there is another reason
        (None, 100, 1.0, None),  # nor can it be that much more than was counted
    ],
)
def test_a_refused_request_is_larger_than_what_is_usable(
    told: int | None, counted: int, factor: float, tokens: int | None
) -> None:
    assert refused_tokens(told, USABLE, counted, factor) == tokens


def test_a_calibrated_budget_holds_less_of_what_is_counted_here() -> None:
    budget = Budget(2_048, 512, calibration=2.1)
    assert (budget.counted, budget.usable) == (975, 731)
    assert Budget(2_048, 512).counted == 2_048
    with pytest.raises(ValueError, match=r"^calibration must be at least 1, not 0\.5$"):
        Budget(2_048, 512, calibration=0.5)


@given(policy=policies(), low=st.floats(1, 10), high=st.floats(1, 10))
def test_no_limit_grows_with_the_factor(policy: Any, low: float, high: float) -> None:
    low, high = sorted((low, high))
    loose, tight = (
        limits(policy, Budget(32_000, 1_024, calibration=factor)) for factor in (low, high)
    )
    for name in ("tokens", "target", "keep", "memory"):
        before, after = getattr(loose, name), getattr(tight, name)
        assert before is None or after <= before, name
