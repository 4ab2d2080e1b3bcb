"""What holds of every plan (docs/memory.md)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget, budget_for
from memory.core.cutting import first_fitting, limit_of
from memory.core.fitting import WindowTooSmall
from memory.core.groups import positions
from memory.core.limits import FENCE_RESERVE, limits, summary_cap
from memory.core.planning import Plan, suffix_sums
from memory.core.presets import policy_from
from memory.core.window import Context
from tests.builders import context, numbered, user
from tests.memory.strategies import HEAVY, contexts

MORE = st.one_of(st.integers(1, 3), st.integers(0, 600))  # tokens of a larger window
FLAGS = st.fixed_dictionaries({"force": st.booleans(), "hold": st.booleans()})


def limit(context: Context) -> float:
    """The tokens over which the policy compacts."""
    return limit_of(limits(context.policy, context.budget), context.policy, context.budget)


def kept(context: Context) -> tuple[int, bool, int] | None:
    """What is in the window, the most important first: tokens of the current turn, whether there is
    the summary, messages of the tail; None if nothing fits."""
    try:
        window = context.window(context.plan())
    except WindowTooSmall:
        return None
    kinds = [segment.kind for segment in window.segments]
    now = ("current", "working")
    current = sum(segment.tokens for segment in window.segments if segment.kind in now)
    return current, "summary" in kinds, kinds.count("tail")


def with_more(context: Context, more: int) -> Context:
    window = context.budget.window + more
    return replace(context, budget=budget_for(window, known=context.budget.known))


def shortened(context: Context, plan: Plan) -> dict[int, int]:
    """The tokens of every message before the current turn as the plan has it, by position."""
    groups = plan.head + plan.tail
    return {message.position: message.tokens for one in groups for message in one.messages}


def shortens_less(larger: Context, smaller: Context, **flags: bool) -> bool:
    """Whether some message is longer in the larger window's plan."""
    more = shortened(larger, larger.plan(**flags))
    return any(
        tokens < more[at] for at, tokens in shortened(smaller, smaller.plan(**flags)).items()
    )


@given(contexts(), FLAGS)
def test_head_and_tail_are_the_history(context: Context, flags: dict[str, bool]) -> None:
    plan = context.plan(**flags)
    assert positions(plan.head) + positions(plan.tail) == positions(context.prior)
    assert (plan.action == "send") == (plan.head == ())
    assert plan.costs.suffix == suffix_sums(plan.head + plan.tail, context.counter)


@given(contexts(), FLAGS)
def test_a_plan_changes_only_what_it_says_it_shortened(
    context: Context, flags: dict[str, bool]
) -> None:
    plan = context.plan(**flags)
    planned = [message for one in plan.head + plan.tail for message in one.messages]
    stored = [message for one in context.prior for message in one.messages]
    for message, original in zip(planned, stored, strict=True):
        if message.position in plan.whole:
            assert message.tokens < original.tokens == plan.whole[message.position]
        else:
            assert message == original


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
    plan, policy = context.plan(**flags), context.policy
    most = limits(policy, context.budget).keep_messages
    if plan.head and most is not None:
        counted = [len(one.messages) if policy.counting == "all" else one.counted
                   for one in plan.tail]  # fmt: skip
        assert sum(counted) <= most


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
    """Or it is shortened until it is not over the limit any more."""
    plan = context.plan()
    if context.policy.older == "summary" and context.prior and plan.costs.total > limit(context):
        assert plan.action == "fold"


@given(contexts())
def test_a_fold_for_tokens_ends_at_the_target_not_at_the_limit(context: Context) -> None:
    plan, policy = context.plan(), context.policy
    rules, costs = limits(policy, context.budget), plan.costs
    if plan.action == "fold" and plan.tail and plan.costs.total > limit(context):
        tail = costs.suffix[len(plan.head)]
        after = costs.fixed + costs.current + tail + rules.memory
        # The least number of turns may go over the target, but not over the limit.
        assert after <= limit(context)
        if len({one.turn for one in plan.tail}) > policy.keep_turns:
            assert rules.target is None or after <= rules.target
            assert rules.keep is None or tail <= rules.keep


@given(contexts(), MORE, FLAGS)
def test_a_larger_window_never_plans_a_shorter_tail(
    context: Context, more: int, flags: dict[str, bool]
) -> None:
    """But that the rungs' sizes grow with the window: then it may keep fewer messages, longer."""
    larger = with_more(context, more)
    shorter = len(larger.plan(**flags).tail) < len(context.plan(**flags).tail)
    assert not shorter or (context.policy.rungs and shortens_less(larger, context, **flags))


@given(contexts(counter=HEAVY), MORE, FLAGS)
def test_where_the_rungs_have_their_full_sizes_a_larger_window_keeps_as_much(
    context: Context, more: int, flags: dict[str, bool]
) -> None:
    large = replace(context, budget=budget_for(max(128_000, context.budget.window)))
    larger = with_more(large, more * HEAVY.weight)
    assert len(larger.plan(**flags).tail) >= len(large.plan(**flags).tail)


@given(contexts(), MORE)
def test_a_larger_window_never_keeps_less(context: Context, more: int) -> None:
    """The current turn first, then the summary, then messages: what a larger window keeps is at
    least that, or it is less shortened."""
    larger = with_more(context, more)
    small, large = kept(context), kept(larger)
    if small is not None:
        assert large is not None
        assert large >= small or (large[:2] == small[:2] and shortens_less(larger, context))


@given(contexts())
def test_hold_leaves_only_the_budget_as_a_reason_to_fold(context: Context) -> None:
    plan = context.plan(hold=True)
    if context.policy.older == "summary" and plan.trigger is not None:
        assert plan.trigger == "budget"
    elif context.policy.older == "summary":
        assert (plan.action, plan.costs.total <= context.budget.usable) == ("send", True)
    else:
        assert plan == context.plan()


@given(contexts(), st.booleans())
def test_force_always_has_a_trigger_and_keeps_no_more(context: Context, hold: bool) -> None:
    forced, plan = context.plan(force=True, hold=hold), context.plan(hold=hold)
    assert forced.trigger == (plan.trigger or "manual")
    assert len(forced.tail) <= len(plan.tail)


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
