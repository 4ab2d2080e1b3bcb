"""The limits of a policy within a budget: every rule as a number, worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget, budget_for
from memory.core.limits import limits, literals_cap, summary_cap, token_trigger
from memory.core.policy import Policy
from memory.core.presets import PRESETS, policy_from
from tests.memory.strategies import policies

HARNESS = PRESETS["harness"]


def with_window(window: int, reserve: int = 1, *, known: bool = True) -> Budget:
    return Budget(window, reserve, known)


def test_a_policy_without_a_rule_for_tokens_has_no_trigger() -> None:
    for preset in ("full", "window", "summary", "rounds"):
        assert token_trigger(PRESETS[preset], budget_for(8_192)) is None


@pytest.mark.parametrize(
    ("preset", "window", "trigger"),
    [
        ("hybrid", 8_192, 5_376),  # 75 % of 8,192 - 1,024
        ("hybrid-tokens", 8_192, 5_017),  # 70 %, rounded down
        ("layered", 8_192, 5_017),
        ("consolidator", 8_192, 4_096),  # half the window
        ("double-window", 128_000, 8_000),
        ("double-window", 4_096, 3_072),  # what is usable
        ("harness", 128_000, 108_000),
        ("harness", 200_000, 180_000),
        ("harness", 32_000, 16_000),  # the window less 20,000 would be less than half of it
        ("harness", 40_000, 20_000),
        ("harness", 8_192, 4_096),
    ],
)
def test_the_trigger_of_each_preset_in_tokens(preset: str, window: int, trigger: int) -> None:
    assert token_trigger(PRESETS[preset], budget_for(window)) == trigger


def test_a_trigger_is_never_over_what_is_usable() -> None:
    assert token_trigger(HARNESS, with_window(128_000, 30_000)) == 98_000
    assert token_trigger(PRESETS["consolidator"], with_window(1_000, 600)) == 400


def test_the_smallest_of_several_rules_triggers() -> None:
    policy = policy_from({"preset": "hybrid", "trigger_tokens": 700})
    assert token_trigger(policy, with_window(1_001)) == 700
    assert token_trigger(policy, with_window(801)) == 600


@pytest.mark.parametrize(
    ("preset", "window", "trigger"),
    [
        ("harness", 200_000, 160_000),
        ("harness", 128_000, 108_000),
        ("consolidator", 400_000, 80_000),  # half of 160,000
        ("consolidator", 8_192, 4_096),
        ("hybrid", 8_192, 5_376),
    ],
)
def test_where_the_window_is_not_known_160000_is_the_most(
    preset: str, window: int, trigger: int
) -> None:
    assert token_trigger(PRESETS[preset], budget_for(window, known=False)) == trigger


def test_without_a_number_for_it_an_assumed_window_is_taken_as_it_is() -> None:
    budget = budget_for(400_000, known=False)
    assert token_trigger(replace(HARNESS, unknown_tokens=None), budget) == 380_000
    consolidator = replace(PRESETS["consolidator"], unknown_tokens=None)
    assert token_trigger(consolidator, budget) == 200_000
    assert limits(replace(HARNESS, unknown_messages=None), budget).keep_messages is None


def test_a_limit_that_counts_when_reached_is_one_lower() -> None:
    rules = limits(HARNESS, budget_for(128_000))
    assert (rules.tokens, rules.messages) == (107_999, 49)
    rules = limits(PRESETS["hybrid"], budget_for(8_192))
    assert (rules.tokens, rules.messages) == (5_376, 12)


@pytest.mark.parametrize(
    ("window", "keep"),
    [
        (128_000, 8_000),  # a quarter of 108,000 is more than the most
        (200_000, 8_000),
        (40_000, 5_000),  # a quarter of 20,000
        (24_000, 2_000),  # a quarter of 4,000 is less than the least
        (20_000, 2_000),
        (4_096, 1_024),  # half the trigger of 2,048
        (64, 16),
    ],
)
def test_the_harness_keeps_a_quarter_within_its_bounds(window: int, keep: int) -> None:
    assert limits(HARNESS, budget_for(window)).keep == keep


def test_where_the_window_is_not_known_the_harness_keeps_20_messages() -> None:
    rules = limits(HARNESS, budget_for(200_000, known=False))
    # Their tokens are bounded by half the trigger alone.
    assert (rules.keep_messages, rules.keep) == (20, 80_000)
    assert limits(HARNESS, budget_for(200_000)).keep_messages is None


def test_the_smaller_number_of_messages_stays_where_the_window_is_not_known() -> None:
    for keep, stays in ((6, 6), (30, 20)):
        policy = replace(HARNESS, keep_messages=keep)
        assert limits(policy, budget_for(200_000, known=False)).keep_messages == stays
        assert limits(policy, budget_for(200_000)).keep_messages == keep


def test_a_share_to_keep_is_of_what_is_usable_and_at_most_half_the_trigger() -> None:
    # usable 1,000
    policy = PRESETS["hybrid-tokens"]
    assert limits(policy, with_window(1_001)).keep == 350
    assert limits(replace(policy, keep_share=0.6), with_window(1_001)).keep == 350
    assert limits(replace(policy, keep_share=0.6, trigger_share=None), with_window(1_001)).keep == (
        600
    )
    assert limits(PRESETS["hybrid"], with_window(1_001)).keep is None


@pytest.mark.parametrize(
    ("policy", "target"),
    [
        (PRESETS["hybrid"], 500.0),  # its share of what is usable
        (PRESETS["consolidator"], 300.3),  # its share of the window: 60 % of the trigger
        (PRESETS["summary"], 500.0),  # no rule of its own: half of what is usable
        (PRESETS["rounds"], 500.0),
        (PRESETS["double-window"], 1_000),  # its trigger
        (PRESETS["window"], None),
        (PRESETS["hybrid-tokens"], None),  # it says what the tail keeps
        (
            policy_from({"preset": "consolidator", "trigger_share": 1, "target_share": 0.9999}),
            1_000,
        ),
    ],
)
def test_what_the_whole_window_keeps_in_tokens(policy: Policy, target: float | None) -> None:
    assert limits(policy, with_window(1_001)).target == pytest.approx(target)


def test_a_summary_takes_its_cap_and_its_fence() -> None:
    hybrid = PRESETS["hybrid"]
    assert limits(hybrid, with_window(8_001)).memory == 580
    assert limits(hybrid, with_window(1_002)).memory == 330.25  # a quarter of 1,001
    assert limits(PRESETS["window"], with_window(8_001)).memory == 0
    assert limits(PRESETS["full"], with_window(8_001)).memory == 0


def test_a_summary_is_at_most_its_share_of_what_it_is_made_of() -> None:
    policy, budget = PRESETS["consolidator"], budget_for(128_000)
    assert summary_cap(policy, budget) == 1_500
    assert summary_cap(policy, budget, 4_000) == 1_200
    assert summary_cap(policy, budget, 4_999) == 1_499
    assert summary_cap(policy, budget, 9_000) == 1_500
    # Where the source is short there is still room to say something.
    assert summary_cap(policy, budget, 30) == 50
    # Other presets look at the cap alone.
    assert summary_cap(PRESETS["hybrid"], budget, 100) == 500


def test_literals_take_a_tenth_of_what_is_usable() -> None:
    assert literals_cap(with_window(1_010)) == 100
    assert literals_cap(budget_for(64)) == 4


@given(policies(), st.integers(64, 5_000), st.integers(1, 500), st.booleans())
def test_no_limit_falls_as_the_window_grows(
    policy: Policy, window: int, more: int, known: bool
) -> None:
    small = limits(policy, budget_for(window, known=known))
    large = limits(policy, budget_for(window + more, known=known))
    for name in ("tokens", "messages", "target", "keep", "keep_messages", "memory"):
        before, after = getattr(small, name), getattr(large, name)
        assert (before is None) == (after is None)
        assert before is None or after >= before


@given(policies(), st.integers(64, 200_000), st.booleans())
def test_what_stays_never_compacts_again_at_once(policy: Policy, window: int, known: bool) -> None:
    rules = limits(policy, budget_for(window, known=known))
    if rules.keep is not None and rules.tokens is not None:
        assert rules.keep <= (rules.tokens + 1) / 2
    assert rules.tokens is None or rules.tokens <= budget_for(window).usable
