"""The token budget of a request."""

import pytest

from memory.core.budget import Budget, budget_for


@pytest.mark.parametrize(
    ("window", "reserve", "usable"),
    [
        (64, 16, 48),
        (512, 128, 384),
        (4_095, 1_023, 3_072),
        (4_096, 1_024, 3_072),
        (4_100, 1_024, 3_076),
        (128_000, 1_024, 126_976),
    ],
)
def test_the_reserve_is_a_quarter_of_the_window_up_to_1024(
    window: int, reserve: int, usable: int
) -> None:
    budget = budget_for(window)
    assert (budget.reply_reserve, budget.usable) == (reserve, usable)


def test_a_given_reserve_is_taken_as_it_is() -> None:
    assert budget_for(64, 63).usable == 1
    assert budget_for(4_096, 2_048).usable == 2_048


@pytest.mark.parametrize("window", [-1, 0, 1, 63])
def test_a_window_without_room_is_refused_by_name(window: int) -> None:
    with pytest.raises(ValueError, match=f"^window must be at least 64 tokens, not {window}$"):
        budget_for(window)


@pytest.mark.parametrize("reserve", [-1, 0, 64, 65])
def test_a_reserve_without_room_is_refused_by_name(reserve: int) -> None:
    with pytest.raises(ValueError, match=r"^reply_reserve must be from 1 to window - 1 \(63\)"):
        Budget(64, reserve)
