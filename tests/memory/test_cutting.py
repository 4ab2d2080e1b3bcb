"""Where the tail begins, by hand; one word is one token and messages cost nothing else."""

from dataclasses import replace

import pytest

from memory.core.cutting import Costs, first_fitting, limit_of, tail_edge, tail_room
from memory.core.groups import group
from memory.core.limits import limits
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import SummaryPart
from tests.builders import call, context, history, numbered, reply, result, user
from tests.memory.turns import asked, tokens, turns_of, words


def kept_turns(plan: Plan) -> list[int]:
    return sorted({one.turn for one in plan.tail})


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
    # 350 would be one turn of 230. Two are 460, and 700 less 130 for the summary, 100 for literals
    # and 8 leave 462.
    plan = asked(*[230] * 4, policy=tokens()).plan()
    assert kept_turns(plan) == [3, 4]
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
    messages = numbered([*turns_of(*[100] * 4), user(words(300))])
    made = context(messages, policy=tokens(keep_turns=0), window=1_001, reserve=1)
    # 350 would fit beside the rest, but 700 less 130, 100, 7 and 300 leave 163.
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


@pytest.mark.parametrize("every", [None, 5])
def test_what_is_asked_for_leaves_the_same_turns_in_every_window(every: int | None) -> None:
    """By hand or by the number of turns, the least number stays: where a large window has room for
    all as where a small one would keep ten."""
    policy = tokens(every_turns=every)
    for usable in (500, 1_000, 2_000, 50_000):
        plan = asked(*[30] * 20, usable=usable, policy=policy).plan(force=every is None)
        assert (plan.action, kept_turns(plan)) == ("fold", [19, 20])


def test_what_is_asked_for_is_no_reason_to_fold_where_all_turns_may_stay() -> None:
    plan = asked(30, 30, policy=tokens()).plan(force=True)
    assert (plan.action, plan.trigger) == ("send", "manual")


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
