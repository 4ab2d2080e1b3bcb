"""What conversations cost: the closed forms of S1 beside the sawtooth that really happens, S0's
table."""

import math
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.costing import (
    Spending,
    closed_form_with,
    closed_form_without,
    saving,
    simulate,
    without_compaction,
)

# S1, section 8: tokens that a turn adds; a system prompt, a summary and a tail.
PER_TURN = 2_000
SYSTEM, SUMMARY, KEEP = 2_000, 1_500, 4_000
WINDOW = SYSTEM + SUMMARY + KEEP
TRIGGER = 100_000


def percent(share: float) -> float:
    return round(100 * share, 1)


@pytest.mark.parametrize(
    ("turns", "without", "with_it", "saved"),
    [
        (50, 2_550_000, 375_000, 85.3),
        (100, 10_100_000, 750_000, 92.6),
        (500, 250_500_000, 3_750_000, 98.5),
    ],
)
def test_the_closed_forms_save_what_the_article_says(
    turns: int, without: int, with_it: int, saved: float
) -> None:
    """S1, 8.2; it writes 250 million for the 250.5 of 500 turns."""
    assert closed_form_without(turns, PER_TURN) == without
    assert closed_form_with(turns, WINDOW) == with_it
    assert percent(saving(without, with_it)) == saved


def test_with_the_cost_of_compacting_the_closed_form_saves_88_6_percent() -> None:
    """S1, 8.4: two compactions in 100 turns, each of which reads the trigger's 100,000 twice."""
    with_it = closed_form_with(100, WINDOW, per_turn=PER_TURN)
    assert with_it == 750_000 + 2 * 2 * TRIGGER
    assert percent(saving(closed_form_without(100, PER_TURN), with_it)) == 88.6


def sawtooth(turns: int, **changes: Any) -> Spending:
    given = {"per_turn": PER_TURN, "trigger": TRIGGER, "keep": KEEP, "summary": SUMMARY}
    return simulate(turns, **{**given, "system": SYSTEM, **changes})


def test_the_sawtooth_saves_about_46_percent_for_the_same_numbers() -> None:
    """S1's closed form assumes that every window is as small as one just after a compaction. A
    conversation of 100 turns is folded twice: its windows grow from 4,000 to 98,000 tokens, and
    from 7,500 to 99,500, so that half of the tokens are spent, not a tenth."""
    saw = sawtooth(100)
    assert [turn for turn, spent in enumerate(saw.summarising, 1) if spent] == [49, 96]
    assert saw.requests[:2] == (4_000, 6_000)
    assert saw.requests[47:50] == (98_000, 7_500, 9_500)
    assert saw.requests[94:97] == (99_500, 7_500, 9_500)
    # 48 windows from 4,000 up; 46 from 9,500 up; two folded ones; 9,500 to 15,500.
    assert sum(saw.requests) == 2_448_000 + 2_507_000 + 15_000 + 50_000
    # Each fold reads all but the prompt and the 4,000 that stay, twice.
    assert sum(saw.summarising) == 2 * 94_000 + 2 * 95_500
    assert saw.total == 5_399_000
    assert percent(saving(closed_form_without(100, PER_TURN), saw.total)) == 46.5
    # With the system prompt on both sides.
    without = closed_form_without(100, PER_TURN, system=SYSTEM)
    assert percent(saving(without, saw.total)) == 47.6


def test_the_sawtooth_grows_with_the_turns_and_its_saving_too() -> None:
    saved = []
    for turns in (40, 100, 200, 500, 1_000):
        without = closed_form_without(turns, PER_TURN, system=SYSTEM)
        saved.append(percent(saving(without, sawtooth(turns).total)))
    assert saved[0] == 0  # nothing was folded yet
    assert saved == sorted(saved)
    assert saved[-1] > 94
    # Linear: ten times the turns cost about ten times as much.
    assert sawtooth(2_000).total == pytest.approx(10 * sawtooth(200).total, rel=0.05)


def test_each_compaction_has_its_overhead_and_its_calls() -> None:
    once = sawtooth(100, calls=1)
    assert sum(once.summarising) == 94_000 + 95_500
    assert sum(sawtooth(100, calls=1, overhead=300).summarising) == 94_000 + 95_500 + 600
    assert sum(sawtooth(100, calls=0).summarising) == 0
    assert once.requests == sawtooth(100).requests


def test_the_summary_is_read_again_at_the_next_fold() -> None:
    saw = simulate(5, per_turn=10, trigger=30, keep=10, summary=5, calls=1)
    # 10, 20, 30 -> 5 + 10, 25, 35 -> 5 + 10.
    assert saw.requests == (10, 20, 15, 25, 15)
    assert saw.summarising == (0, 0, 20, 0, 25)
    assert saw.curve == (10, 30, 65, 90, 130)
    assert saw.total == 130


def test_the_current_turn_is_never_folded() -> None:
    saw = simulate(3, per_turn=10, trigger=1, keep=0, summary=5, calls=1)
    assert saw.requests == (10, 15, 15)
    assert saw.summarising == (0, 10, 15)


@given(
    st.integers(0, 60),
    st.integers(0, 50),
    st.integers(0, 400),
    st.integers(0, 100),
    st.integers(0, 60),
)
def test_a_window_is_under_the_trigger_or_as_small_as_it_gets(
    turns: int, per_turn: int, trigger: int, keep: int, summary: int
) -> None:
    saw = simulate(turns, per_turn=per_turn, trigger=trigger, keep=keep, summary=summary)
    least = summary + max(keep, per_turn)
    assert len(saw.requests) == len(saw.summarising) == turns
    assert all(window < trigger or window <= least for window in saw.requests)


@given(st.integers(0, 80), st.integers(0, 50), st.integers(0, 20))
def test_without_a_fold_the_simulation_is_the_closed_form(
    turns: int, per_turn: int, system: int
) -> None:
    saw = simulate(turns, per_turn=per_turn, trigger=10_000, keep=0, summary=0, system=system)
    assert saw.total == closed_form_without(turns, per_turn, system=system)
    added = [per_turn] * turns
    assert saw.requests == without_compaction(added, fixed=system)


def test_history_fills_a_budget_of_8000_as_the_article_says() -> None:
    """S0's table: 500 tokens a turn, in percent of 8,000 (rounded half up)."""
    history = without_compaction([500] * 15)
    shares = {turn: math.floor(history[turn - 1] / 80 + 0.5) for turn in (1, 3, 5, 7, 10, 15)}
    assert shares == {1: 6, 3: 19, 5: 31, 7: 44, 10: 63, 15: 94}


def test_the_curve_without_compaction_comes_from_what_each_request_added() -> None:
    """A Cost tab's two lines: what was sent and summarised, and what all of it would have cost."""
    sent = Spending(requests=(40, 70, 45), summarising=(0, 0, 60))
    assert sent.curve == (40, 110, 215)
    without = tuple(accumulate(without_compaction([30, 30, 30], fixed=10)))
    assert without == (40, 110, 210)
    # A fold costs at first: it has to be read once more.
    assert saving(without[-1], sent.total) == pytest.approx(-5 / 210)


def test_nothing_costs_nothing() -> None:
    assert (without_compaction([]), simulate(0, per_turn=1, trigger=1, keep=1,
            summary=1)) == ((), Spending((), ()))  # fmt: skip
    assert Spending((), ()).curve == ()
    assert closed_form_without(0, 5) == closed_form_with(0, 5) == 0
    assert saving(0, 0) == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: closed_form_without(-1, 5), "turns must be at least 0, not -1"),
        (lambda: closed_form_with(1, -5), "window must be at least 0, not -5"),
        (lambda: sawtooth(1, keep=-1), "keep must be at least 0, not -1"),
        (lambda: sawtooth(1, overhead=-2), "overhead must be at least 0, not -2"),
        (lambda: closed_form_with(1, 5, calls=-1), "calls must be at least 0, not -1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused_by_name(wrong: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        wrong()
