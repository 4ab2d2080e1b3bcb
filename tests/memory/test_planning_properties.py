"""What holds of every plan (DESIGN section 5, invariants 4 and 5)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget, budget_for
from memory.core.planning import (
    FENCE_RESERVE,
    WindowTooSmall,
    first_fitting,
    summary_cap,
    token_trigger,
)
from memory.core.policy import policy_from
from memory.core.window import Context
from tests.builders import context, numbered, user
from tests.memory.strategies import contexts

MORE = st.one_of(st.integers(1, 3), st.integers(0, 600))  # tokens of a larger window
FLAGS = st.fixed_dictionaries({"force": st.booleans(), "hold": st.booleans()})


def kept(context: Context) -> tuple[bool, int] | None:
    """(whether the summary is in the window, messages of the tail); None if nothing fits."""
    try:
        window = context.window(context.plan())
    except WindowTooSmall:
        return None
    kinds = [segment.kind for segment in window.segments]
    return "summary" in kinds, kinds.count("tail")


@given(contexts(), FLAGS)
def test_head_and_tail_are_the_history(context: Context, flags: dict[str, bool]) -> None:
    plan = context.plan(**flags)
    assert plan.head + plan.tail == context.prior
    assert (plan.action == "send") == (plan.head == ())


@given(contexts(), FLAGS)
def test_the_same_input_gives_the_same_plan(context: Context, flags: dict[str, bool]) -> None:
    assert context.plan(**flags) == replace(context).plan(**flags)


@given(contexts(), FLAGS)
def test_a_cut_falls_where_a_tail_may_begin(context: Context, flags: dict[str, bool]) -> None:
    plan = context.plan(**flags)
    if plan.head and plan.tail:
        assert plan.tail[0].begins_tail


@given(contexts(), FLAGS)
def test_a_tail_holds_no_more_messages_than_the_policy_keeps(
    context: Context, flags: dict[str, bool]
) -> None:
    plan = context.plan(**flags)
    if plan.head and context.policy.keep_messages is not None:
        assert sum(one.counted for one in plan.tail) <= context.policy.keep_messages


@given(contexts(), FLAGS)
def test_a_fold_makes_room_for_the_summary_it_will_give(
    context: Context, flags: dict[str, bool]
) -> None:
    plan = context.plan(**flags)
    if plan.action == "fold" and plan.tail:
        costs = plan.costs
        tail = costs.suffix[len(plan.head)]
        summary = summary_cap(context.policy, context.budget) + FENCE_RESERVE
        assert costs.fixed + costs.current + tail + summary <= context.budget.usable


@given(contexts())
def test_a_request_over_its_token_limit_always_gives_up_a_group(context: Context) -> None:
    plan = context.plan()
    limit = token_trigger(context.policy, context.budget) or context.budget.usable
    if context.policy.older == "summary" and context.prior and plan.costs.total > limit:
        assert plan.action == "fold"


@given(contexts())
def test_a_fold_for_tokens_ends_at_the_target_not_at_the_limit(context: Context) -> None:
    plan = context.plan()
    policy, costs, usable = context.policy, plan.costs, context.budget.usable
    over = costs.total > (token_trigger(policy, context.budget) or usable)
    if over and plan.action == "fold" and plan.tail:
        tail = costs.suffix[len(plan.head)]
        summary = summary_cap(policy, context.budget) + FENCE_RESERVE
        # The cap is a whole number, the share is not.
        assert costs.fixed + costs.current + tail + summary <= usable * policy.target_share + 1


@given(contexts(), MORE, FLAGS)
def test_a_larger_window_never_plans_a_shorter_tail(
    context: Context, more: int, flags: dict[str, bool]
) -> None:
    larger = replace(context, budget=budget_for(context.budget.window + more))
    assert len(larger.plan(**flags).tail) >= len(context.plan(**flags).tail)


@given(contexts(), MORE)
def test_a_larger_window_never_keeps_less(context: Context, more: int) -> None:
    """The summary first, then messages: what a larger window keeps is at least that."""
    small = kept(context)
    large = kept(replace(context, budget=budget_for(context.budget.window + more)))
    if small is not None:
        assert large is not None
        assert large >= small


@given(contexts())
def test_hold_leaves_only_the_budget_as_a_reason_to_fold(context: Context) -> None:
    plan = context.plan(hold=True)
    if context.policy.older == "summary":
        fits = plan.costs.total <= context.budget.usable
        assert plan.trigger == (None if fits else "budget")
    else:
        assert plan == context.plan()


def first_fitting_by_scan(suffix: Sequence[int], room: int) -> int:
    for index, cost in enumerate(suffix):
        if cost <= room:
            return index
    return len(suffix) - 1


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(-5, 150))
def test_the_binary_search_finds_what_a_scan_finds(costs: list[int], room: int) -> None:
    suffix = [sum(costs[index:]) for index in range(len(costs) + 1)]
    assert first_fitting(suffix, room) == first_fitting_by_scan(suffix, room)


@pytest.mark.parametrize("target", [0.1, 0.3, 0.6])
def test_no_rounding_lets_one_more_token_of_window_keep_less(target: float) -> None:
    policy = policy_from({"max_messages": 999, "keep_messages": 998, "target_share": target})
    made = context(numbered([user("word")] * 300), policy=policy)
    usable = [replace(made, budget=Budget(size + 1, 1)) for size in range(200, 320)]
    tails = [len(one.plan().tail) for one in usable]
    assert tails == sorted(tails)
