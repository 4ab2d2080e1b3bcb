"""Where nothing but the current turn would remain, the newest group stays, with its results
shortened to fit (S1). One word is one token and messages cost nothing else."""

from memory.core.messages import Message
from memory.core.planning import Plan
from memory.core.presets import policy_from
from memory.core.window import SummaryPart
from tests.builders import call, context, numbered, reply, result, user
from tests.memory.turns import asked, tokens, turns_of, words


def tokens_of(plan: Plan) -> int:
    """What the tail costs."""
    return plan.costs.suffix[len(plan.head)]


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


def test_what_the_rungs_shortened_may_be_shortened_more_and_says_what_it_was() -> None:
    names = [f"tool_{number}" for number in range(5)]
    long = " ".join(f"word{number:04}" for number in range(300))
    results = [result(long, f"call_{number}") for number in range(5)]
    messages = [*turns_of(100), call(*names), *results, user(words(300))]
    made = context(numbered(messages), policy=tokens(rungs=True), window=1_001, reserve=1)
    # The rung keeps 100 characters at both ends: with the marker and 13 tokens more for a result
    # over 40 for each, where 700 less 130, 100, 7 and 300 leave 163 for five.
    plan = made.plan()
    (kept,) = plan.tail
    assert 100 < tokens_of(plan) <= 163
    assert plan.whole == dict.fromkeys(range(4, 9), 300)
    assert all(message.tokens < 40 for message in kept.messages)
