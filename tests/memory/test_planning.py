"""Planning by worked examples; one word is one token and messages cost nothing else."""

from typing import Any

import pytest

from memory.core.limits import summary_cap, token_trigger
from memory.core.messages import Message
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import Context, SummaryPart
from tests.builders import call, context, history, numbered, reply, result, user


def folded_turns(plan: Plan) -> list[int]:
    assert plan.action == "fold"
    return sorted({one.turn for one in plan.head})


def asked(turns: int, *, words: int = 3, **options: Any) -> Context:
    """`turns` whole turns and then a question."""
    messages = history(turns, words=words)
    return context(numbered([*messages, user("and now")]), **options)


def shares(**changes: Any) -> Policy:
    """Hybrid by tokens alone."""
    return policy_from({"max_messages": 1_000, "keep_messages": 999, "summary_cap": 50, **changes})


def test_hybrid_folds_turns_1_to_3_at_the_13th_message() -> None:
    plan = asked(6).plan()
    assert plan.trigger == "messages"
    assert folded_turns(plan) == [1, 2, 3]
    assert [one.turn for one in plan.tail] == [4, 4, 5, 5, 6, 6]


def test_hybrid_sends_everything_up_to_the_12th_message() -> None:
    plan = context(numbered([*history(6)]), current=2).plan()
    assert (plan.action, plan.trigger, plan.head) == ("send", None, ())


def test_hybrid_with_10_and_6_folds_turns_1_and_2_at_the_11th_message() -> None:
    policy = policy_from({"max_messages": 10, "keep_messages": 6})
    plan = asked(5, policy=policy).plan()
    assert folded_turns(plan) == [1, 2]
    assert [one.turn for one in plan.tail] == [3, 3, 4, 4, 5, 5]


def test_a_window_of_10_keeps_the_last_10_before_the_current_turn() -> None:
    plan = asked(6, policy="window").plan()
    assert (plan.action, plan.trigger) == ("leave-out", "messages")
    assert [one.turn for one in plan.head] == [1, 1]
    assert len(plan.tail) == 10


def test_a_window_of_10_sends_10_messages_whole() -> None:
    plan = asked(5, policy="window").plan()
    assert (plan.action, plan.trigger, len(plan.tail)) == ("send", "messages", 10)


def test_full_never_leaves_anything_out() -> None:
    plan = asked(60, policy="full", window=100, reserve=10).plan(force=True)
    assert (plan.action, plan.head, len(plan.tail)) == ("send", (), 120)


def test_the_summary_and_the_current_user_message_count() -> None:
    summary = SummaryPart("earlier", 1, 1, 4)
    # 10 prior + 1 current + 1 summary = 12; without the current turn's message 13 would need more.
    assert asked(5, summary=summary).plan().trigger is None
    extra = numbered([*history(5), user("failed"), user("and now")])
    assert context(extra, summary=summary).plan().trigger == "messages"
    assert context(extra).plan().trigger is None


def test_calls_and_results_are_no_messages_of_the_count() -> None:
    messages: list[Message] = []
    for _ in range(6):
        messages += [user("q"), call("x"), result("r"), reply("a")]
    assert context(numbered(messages), current=3).plan().trigger is None
    assert context(numbered([*messages, user("q")])).plan().trigger == "messages"


def test_a_tail_may_begin_with_a_whole_call_group() -> None:
    policy = policy_from({"max_messages": 4, "keep_messages": 3})
    messages = [user("q"), call("x"), result("r"), reply("a"), user("q"), reply("a"), user("now")]
    plan = context(numbered(messages), policy=policy).plan()
    assert [one.first for one in plan.head] == [1]
    assert plan.tail[0].messages[0].tool_calls


def test_a_cut_before_a_reply_moves_on_to_the_next_user_message() -> None:
    policy = policy_from({"max_messages": 4, "keep_messages": 3})
    plan = asked(2, policy=policy).plan()
    assert folded_turns(plan) == [1]
    assert [one.turn for one in plan.tail] == [2, 2]


def test_a_cut_before_an_orphan_takes_it_along() -> None:
    policy = policy_from({"max_messages": 3, "keep_messages": 2})
    messages = [user("q"), reply("a"), result("stray"), user("q"), reply("a"), user("now")]
    plan = context(numbered(messages), policy=policy).plan()
    assert [one.first for one in plan.head] == [1, 2, 3]


def test_failed_turns_count_each_question() -> None:
    messages = numbered([user(f"try {number}") for number in range(13)])
    plan = context(messages).plan()
    assert folded_turns(plan) == [1, 2, 3, 4, 5, 6]


def test_tokens_over_the_share_fold_down_to_the_target() -> None:
    # usable 1,000: trigger over 750; target 500, 50 + 80 of it for the summary, 9 for the rest.
    policy = shares(target_share=0.5)
    plan = asked(20, words=20, policy=policy, window=1_001, reserve=1).plan()
    assert plan.costs.total == 7 + 800 + 2
    assert plan.trigger == "tokens"
    assert folded_turns(plan) == list(range(1, 12))
    assert plan.costs.suffix[len(plan.head)] == 9 * 40 <= 500 - 130 - 9 < 10 * 40


def test_the_token_trigger_is_over_the_share_not_at_it() -> None:
    policy = shares()
    assert token_trigger(policy, asked(1, window=1_001, reserve=1).budget) == 750
    at = context(numbered([user("w " * 370), reply("w " * 371), user("x y")]), policy=policy,
                 window=1_001, reserve=1)  # fmt: skip
    assert at.measure().total == 750
    assert at.plan().trigger is None
    over = context(numbered([user("w " * 370), reply("w " * 372), user("x y")]), policy=policy,
                   window=1_001, reserve=1)  # fmt: skip
    assert over.plan().trigger == "tokens"


def test_a_request_that_just_fits_triggers_nothing() -> None:
    policy = shares(trigger_share=None)
    made = [user("w " * 500), reply("w " * 491), user("x y")]
    assert context(numbered(made), policy=policy, window=1_001, reserve=1).plan().trigger is None
    one_more = [user("w " * 500), reply("w " * 492), user("x y")]
    over = context(numbered(one_more), policy=policy, window=1_001, reserve=1)
    assert over.plan().trigger == "budget"


@pytest.mark.parametrize("trigger_share", [None, 0.75])
def test_a_request_that_does_not_fit_folds_to_the_target_too(trigger_share: float | None) -> None:
    policy = shares(trigger_share=trigger_share, target_share=0.5)
    plan = asked(30, words=20, policy=policy, window=1_001, reserve=1).plan()
    assert plan.trigger == "budget"
    assert plan.costs.suffix[len(plan.head)] == 9 * 40


def test_messages_over_a_token_limit_fold_to_the_target() -> None:
    policy = policy_from({"max_messages": 12, "keep_messages": 11, "summary_cap": 50})
    plan = asked(6, words=70, policy=policy, window=1_001, reserve=1).plan()
    assert plan.trigger == "messages"
    # 849 tokens are over 750: room for 500 - 130 - 9 = 361, two turns of 140.
    assert folded_turns(plan) == [1, 2, 3, 4]


def test_a_summary_larger_than_its_cap_is_folded_into_a_new_one() -> None:
    long = SummaryPart("w " * 600, 1, 1, 4)
    plan = asked(4, policy=shares(), summary=long, window=801, reserve=1).plan()
    # As it is rendered: 27 more. The messages alone would fit the target.
    assert plan.costs.total == 7 + 627 + 24 + 2
    assert plan.trigger == "tokens"
    assert folded_turns(plan) == [1]
    assert len(plan.tail) == 6


def test_force_compacts_below_the_trigger() -> None:
    plan = context(history(5), current=0).plan(force=True)
    assert plan.trigger == "manual"
    assert folded_turns(plan) == [1, 2]


def test_force_with_nothing_to_fold_sends() -> None:
    plan = context(history(3), current=0).plan(force=True)
    assert (plan.action, plan.trigger, plan.head) == ("send", "manual", ())
    assert context([], current=0).plan(force=True).action == "send"


def test_force_names_the_policys_own_trigger_where_it_is_met() -> None:
    assert asked(6).plan(force=True).trigger == "messages"
    assert asked(6).plan(force=True, hold=True).trigger == "manual"


def test_hold_suspends_every_trigger_but_the_budget() -> None:
    assert asked(6).plan(hold=True).action == "send"
    by_tokens = asked(20, words=20, policy=shares(), window=1_001, reserve=1)
    assert by_tokens.plan().trigger == "tokens"
    assert by_tokens.plan(hold=True).trigger is None
    by_budget = asked(30, words=20, policy=shares(), window=1_001, reserve=1)
    assert by_budget.plan(hold=True).trigger == "budget"
    assert by_budget.plan(hold=True).action == "fold"


def test_hold_does_not_widen_a_window() -> None:
    """After an undo the window is what it was before: leaving out is no compaction."""
    messages = asked(8, policy="window")
    assert messages.plan(hold=True) == messages.plan()
    assert len(messages.plan(hold=True).tail) == 10


def test_a_summary_is_at_most_a_quarter_of_what_is_usable() -> None:
    policy = policy_from({})
    assert summary_cap(policy, asked(1, window=801, reserve=1).budget) == 200
    assert summary_cap(policy, asked(1, window=2_001, reserve=1).budget) == 500
    assert summary_cap(policy, asked(1, window=9_001, reserve=1).budget) == 500
    assert summary_cap(policy, asked(1, window=64, reserve=63).budget) == 1


def test_without_a_count_to_keep_the_tokens_alone_decide() -> None:
    policy = policy_from({"max_messages": None, "keep_messages": None, "summary_cap": 50})
    assert asked(20, policy=policy).plan().trigger is None
    plan = asked(20, words=20, policy=policy, window=1_001, reserve=1).plan()
    assert folded_turns(plan) == list(range(1, 12))
