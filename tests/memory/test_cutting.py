"""Where the tail begins, by hand; one word is one token and messages cost nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from memory.core.cutting import Costs, first_fitting, limit_of, tail_edge, tail_room
from memory.core.groups import group
from memory.core.limits import limits
from memory.core.messages import Message
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import Context, SummaryPart
from tests.builders import call, context, history, numbered, reply, result, user


def words(count: int, word: str = "w") -> str:
    return " ".join([word] * count)


def turns_of(*sizes: int) -> list[Message]:
    """Whole turns of so many tokens: a question of one and an answer of the others."""
    return [message for size in sizes for message in (user("q"), reply(words(size - 1)))]


def asked(*sizes: int, usable: int = 1_000, **options: Any) -> Context:
    """Turns of these sizes and a question of one word, in a window of so many usable tokens."""
    messages = numbered([*turns_of(*sizes), user("now")])
    return context(messages, window=usable + 1, reserve=1, **options)


def kept_turns(plan: Plan) -> list[int]:
    return sorted({one.turn for one in plan.tail})


def tokens(**changes: Any) -> Policy:
    """Hybrid by tokens, without the rungs, with a summary of 50."""
    return policy_from({"preset": "hybrid-tokens", "rungs": False, "summary_cap": 50, **changes})


def rounds(max_turns: int = 5, fold_turns: int = 2) -> Policy:
    return policy_from({"preset": "rounds", "max_turns": max_turns, "fold_turns": fold_turns})


# By a share of the tokens


def test_the_newest_groups_up_to_the_share_stay() -> None:
    # usable 1,000: over 700; 350 stay, which are three turns of 100.
    plan = asked(*[100] * 8, policy=tokens()).plan()
    assert (plan.trigger, plan.costs.total) == ("tokens", 7 + 800 + 1)
    assert kept_turns(plan) == [6, 7, 8]
    at = asked(*[100] * 6, 92, policy=tokens()).plan()
    assert (at.trigger, at.costs.total) == (None, 700)


def test_the_least_number_of_turns_stays_where_it_fits_under_the_trigger() -> None:
    # 350 would be one turn of 280. Two are 560, and 700 less 130 for the summary and 8 leave 562.
    plan = asked(*[280] * 3, policy=tokens()).plan()
    assert kept_turns(plan) == [2, 3]
    assert kept_turns(asked(*[280] * 3, policy=tokens(keep_turns=1)).plan()) == [3]
    assert kept_turns(asked(*[280] * 3, policy=tokens(keep_turns=0)).plan()) == [3]


def test_as_many_of_the_turns_stay_as_fit() -> None:
    assert kept_turns(asked(*[282] * 3, policy=tokens()).plan()) == [3]
    plan = asked(*[150] * 6, policy=tokens(keep_turns=5)).plan()
    # 562 are three turns of 150; the share alone would keep two.
    assert kept_turns(plan) == [4, 5, 6]


def test_a_turn_of_several_groups_is_one_turn() -> None:
    messages = [user("q"), call("x"), result(words(100)), call("x"), result(words(100)), reply("a")]
    made = context(numbered([*messages * 4, user("now")]), policy=tokens(), window=1_001, reserve=1)
    # A turn of 202: 350 would end behind the second call. Two turns are 404.
    assert kept_turns(made.plan()) == [3, 4]


def test_an_over_long_summary_is_written_anew_though_all_turns_may_stay() -> None:
    """The least number of turns does not keep a summary over its cap for ever."""
    long = SummaryPart(words(600), 1, 1, 4)
    plan = asked(40, 40, policy=tokens(), summary=long).plan()
    assert plan.trigger == "tokens"
    assert (plan.action, kept_turns(plan)) == ("fold", [2])


def test_where_the_current_turn_is_large_the_tail_stays_under_the_trigger() -> None:
    messages = numbered([*turns_of(*[100] * 4), user(words(400))])
    made = context(messages, policy=tokens(keep_turns=0), window=1_001, reserve=1)
    # 350 would fit beside the rest, but 700 less 130, 7 and 400 leave 163.
    assert kept_turns(made.plan()) == [4]


# By turns


def test_rounds_fold_the_two_oldest_turns() -> None:
    plan = asked(*[10] * 5, policy=rounds()).plan()
    assert plan.trigger == "turns"
    assert kept_turns(plan) == [3, 4, 5]
    assert asked(*[10] * 4, policy=rounds()).plan().trigger is None


def test_rounds_fold_all_turns_that_are_too_many() -> None:
    """After an import, say: the next request is within the policy again."""
    plan = asked(*[10] * 20, policy=rounds()).plan()
    assert kept_turns(plan) == [17, 18, 19, 20]


def test_rounds_without_room_fold_more() -> None:
    # 4 * 300 do not fit: half of 1,000, less 330 for the summary and 8, is room for none.
    plan = asked(*[300] * 4, policy=rounds()).plan()
    assert (plan.trigger, kept_turns(plan)) == ("budget", [])
    plan = asked(*[120] * 9, usable=1_000, policy=rounds(max_turns=20)).plan()
    assert (plan.trigger, kept_turns(plan)) == ("budget", [9])


def test_turns_to_fold_without_a_number_of_turns() -> None:
    policy = replace(rounds(), max_turns=None)
    assert kept_turns(asked(*[10] * 6, policy=policy).plan(force=True)) == [3, 4, 5, 6]


def test_no_more_than_all_turns_are_folded() -> None:
    plan = asked(10, policy=rounds()).plan(force=True)
    assert (plan.action, plan.tail) == ("fold", ())


def test_every_so_many_turns_compacts() -> None:
    policy = policy_from({"every_turns": 3, "keep_messages": 2})
    assert asked(10, 10, policy=policy).plan().trigger is None
    plan = asked(10, 10, 10, policy=policy).plan()
    assert (plan.trigger, kept_turns(plan)) == ("turns", [3])


def test_turns_before_the_last_compaction_do_not_count_again() -> None:
    policy = policy_from({"every_turns": 3, "keep_messages": 4})
    # Turns 1 and 2 were kept by a compaction after turn 2.
    summary = SummaryPart("Ada.", 1, 1, 1, turn=2)
    assert asked(*[10] * 4, policy=policy, summary=summary).plan().trigger is None
    plan = asked(*[10] * 5, policy=policy, summary=summary).plan()
    assert (plan.trigger, kept_turns(plan)) == ("turns", [4, 5])


# By messages


def test_all_messages_count_where_the_policy_counts_all() -> None:
    policy = policy_from({"preset": "double-window", "max_messages": 5})
    messages = [user("q"), call("x"), result("r"), reply("a")] * 2
    plan = context(numbered([*messages, user("now")]), policy=policy).plan()
    assert plan.trigger == "messages"
    assert [one.first for one in plan.tail] == [5, 6, 8]
    # Three of them would begin with the reply's group, four are the whole turn.
    three = policy_from({"preset": "double-window", "max_messages": 3})
    assert [
        one.first for one in context(numbered([*messages, user("now")]), policy=three).plan().tail
    ] == [6, 8]


def test_a_double_window_keeps_the_newest_within_both() -> None:
    policy = policy_from({"preset": "double-window", "max_messages": 50, "trigger_tokens": 500})
    plan = asked(*[100] * 6, policy=policy).plan()
    # 500 less 7 for the prompt and 1 for the question: four turns.
    assert (plan.action, plan.trigger) == ("leave-out", "tokens")
    assert kept_turns(plan) == [3, 4, 5, 6]
    assert asked(*[100] * 4, 92, policy=policy).plan().trigger is None


# The rescue of the newest group


def giant_result(size: int) -> list[Message]:
    return [*turns_of(10), user("q"), call("x"), result("x" * 30 + f" {words(size)}")]


def test_where_nothing_would_remain_the_newest_results_are_shortened() -> None:
    made = context(
        numbered([*giant_result(2_000), user("now")]), policy=tokens(), window=1_001, reserve=1
    )
    plan = made.plan()
    assert (plan.action, plan.trigger) == ("fold", "budget")
    (kept,) = plan.tail
    assert [message.position for message in kept.messages] == [4, 5]
    assert plan.whole == {5: 2_001}
    # At most what the policy keeps: 350.
    assert 100 < kept.messages[1].tokens <= 350
    assert plan.costs.suffix[len(plan.head)] == kept.messages[1].tokens


def test_a_group_that_is_less_than_the_trigger_is_shortened_to_what_is_kept_too() -> None:
    """Not the smaller window keeps it shortened and the larger one not at all."""
    for usable in (3_000, 3_500, 4_000):
        made = context(
            numbered([*giant_result(2_000), user("now")]),
            policy=tokens(keep_turns=0, trigger_share=0.6, keep_share=0.3),
            window=usable + 1,
            reserve=1,
        )
        plan = made.plan(force=True)
        assert len(plan.tail) == 1
        assert 0 < plan.costs.suffix[len(plan.head)] <= usable * 0.3


def test_results_that_are_all_of_the_history_are_shortened_and_nothing_folded() -> None:
    messages = [call("x"), result("x" * 30 + f" {words(2_000)}"), user("now")]
    made = context(numbered(messages), policy=tokens(), window=1_001, reserve=1)
    plan = made.plan()
    assert (plan.action, plan.head, plan.trigger) == ("send", (), "budget")
    assert plan.costs.total <= 700
    assert made.window(plan).tokens == plan.costs.total


def test_beside_a_long_summary_there_is_less_room_for_them() -> None:
    """Nothing is folded, so the summary stays as long as it is."""
    messages = numbered([call("x"), result("x" * 30 + f" {words(2_000)}"), user("now")], first=5)
    for size in (300, 500):
        summary = SummaryPart(words(size), 1, 1, 4)
        made = context(messages, policy=tokens(), summary=summary, window=1_001, reserve=1)
        plan = made.plan()
        assert plan.action == "send"
        assert plan.costs.total <= 700
    # With 660 and its fence nothing else fits: it is written anew, with the results in it.
    summary = SummaryPart(words(660), 1, 1, 4)
    made = context(messages, policy=tokens(), summary=summary, window=1_001, reserve=1)
    assert made.plan().action == "fold"


def test_what_cannot_be_shortened_is_folded_whole() -> None:
    plan = asked(10, 2_000, policy=tokens()).plan()
    assert (plan.action, plan.tail, plan.whole) == ("fold", (), {})


def test_a_count_that_excludes_the_newest_group_is_not_overruled() -> None:
    policy = policy_from({"max_messages": 4, "keep_messages": 2})
    messages = [user("q"), call("x"), result("x" * 300), *[reply("a")] * 3, user("now")]
    for usable in (100, 1_000):
        made = context(numbered(messages), policy=policy, window=usable + 1, reserve=1)
        plan = made.plan()
        assert (plan.action, plan.tail) == ("fold", ())


def test_a_window_shortens_the_newest_results_too() -> None:
    messages = [*giant_result(2_000), user("now")]
    made = context(numbered(messages), policy="window", window=1_001, reserve=1)
    plan = made.plan()
    assert plan.action == "leave-out"
    (kept,) = plan.tail
    assert made.window(plan).tokens <= 1_000
    # There is no summary to make room for: 1,000 less 7 and 1.
    assert 700 < kept.messages[1].tokens <= 992


# The pieces


def test_a_limit_is_the_triggers_or_what_is_usable_or_none() -> None:
    budget = asked(usable=1_000).budget
    for data, expected in (
        ({"preset": "hybrid"}, 750),
        ({"preset": "rounds"}, 1_000),
        ({"preset": "window"}, float("inf")),
        ({"preset": "full"}, float("inf")),
        ({"preset": "double-window"}, 1_000),
    ):
        policy = policy_from(data)
        assert limit_of(limits(policy, budget), policy, budget) == expected


def test_the_room_of_a_tail_shrinks_where_the_tokens_are_over_their_limit() -> None:
    policy = policy_from({"summary_cap": 50})
    budget = asked(usable=1_000).budget
    rules = limits(policy, budget)
    below = Costs(fixed=10, summary=0, current=20, suffix=(720, 0))
    # 1,000 less 130 for the summary and 30; over 750 half of it less the same.
    assert tail_room(below, rules, policy, budget) == 840
    over = replace(below, suffix=(721, 0))
    assert tail_room(over, rules, policy, budget) == 340


@pytest.mark.parametrize(("room", "index"), [(9, 0), (8, 1), (5, 1), (4, 2), (0, 3), (-1, 3)])
def test_the_earliest_suffix_that_fits_is_found(room: int, index: int) -> None:
    assert first_fitting((9, 5, 4, 0), room) == index


def test_a_tail_begins_at_a_question_or_a_call() -> None:
    messages = [reply("a"), reply("a"), user("q"), reply("a"), call("x"), result("r"), reply("a")]
    groups = group(numbered(messages))
    assert [tail_edge(groups, index) for index in range(7)] == [0, 2, 2, 4, 4, 6, 6]


def test_an_empty_history_has_nothing_to_cut() -> None:
    for policy in (tokens(), rounds(), policy_from({"every_turns": 1})):
        plan = context(numbered([user(words(2_000))]), policy=policy, window=1_001).plan(force=True)
        assert (plan.action, plan.head, plan.tail) == ("send", (), ())


def test_history_is_cut_by_the_same_rule_in_any_window() -> None:
    made = context(numbered([*history(30, words=20), user("now")]), policy=tokens())
    tails = []
    for usable in range(200, 2_000, 50):
        tails.append(
            len(replace(made, budget=replace(made.budget, window=usable + 1_000)).plan().tail)
        )
    assert tails == sorted(tails)
    assert len(set(tails)) > 10
