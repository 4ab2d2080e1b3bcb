"""The worked examples of S1: dynamic limits, the cut, the rungs, chained summaries.

The estimator is S1's own: ceil(characters / 2.5), and 5, 10 and 8 more for a message, a call and a
result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from memory.core.budget import Budget, budget_for
from memory.core.cutting import first_fitting
from memory.core.groups import group, positions
from memory.core.limits import limits, token_trigger
from memory.core.messages import Message
from memory.core.presets import PRESETS
from memory.core.tokens import CharacterCounter, message_tokens
from memory.core.window import Context, SummaryPart
from tests.builders import call, numbered, reply, result, user
from tests.memory.talks import Talk, talk

HARNESS = PRESETS["harness"]
ESTIMATOR = CharacterCounter()
# Tools whose results are memory themselves.
RETRIEVAL = ("read_file", "memory_search", "memory_get", "session_search")


def harness(
    messages: Iterable[Message],
    *,
    current: int = 0,
    budget: Budget | None = None,
    keep_tools: Sequence[str] = RETRIEVAL,
) -> Context:
    groups = group(messages)
    edge = len(groups) - current
    return Context(
        system_prompt="be brief",
        summary=None,
        prior=groups[:edge],
        current=groups[edge:],
        policy=HARNESS,
        budget=budget or budget_for(128_000),
        counter=ESTIMATOR,
        keep_tools=keep_tools,
    )


# The example of 80 messages and 120,000 tokens: what stands from an index on costs so much.
SUMS = {0: 120_000, 40: 60_000, 60: 30_000, 70: 12_000, 73: 9_000, 74: 7_000, 75: 5_000, 80: 0}


def eighty(roles: Sequence[str]) -> list[Message]:
    """The 80 messages: each costs an equal share of what lies between two of the known sums."""
    edges = sorted(SUMS)
    tokens = [
        (SUMS[start] - SUMS[end]) // (end - start)
        for start, end in pairwise(edges)
        for _ in range(end - start)
    ]
    made = {"user": user("q"), "assistant": reply("a"), "call": call("a", "b"), "one": call("a"),
            "tool": result("r")}  # fmt: skip
    messages = numbered(made[role] for role in roles)
    return [replace(message, tokens=cost) for message, cost in zip(messages, tokens, strict=True)]


# Dynamic limits


@pytest.mark.parametrize(("window", "trigger"), [(128_000, 108_000), (200_000, 180_000)])
def test_the_trigger_is_the_window_less_20000_and_8000_stay(window: int, trigger: int) -> None:
    budget = budget_for(window)
    assert token_trigger(HARNESS, budget) == trigger
    assert limits(HARNESS, budget).keep == 8_000
    # Reached is enough.
    assert limits(HARNESS, budget).tokens == trigger - 1


def test_a_window_that_is_not_known_has_160000_and_keeps_20_messages() -> None:
    budget = budget_for(200_000, known=False)
    assert token_trigger(HARNESS, budget) == 160_000
    # 45 messages of 3,600 tokens: 162,000.
    messages = [replace(one, tokens=3_600) for one in numbered([user("q")] * 45)]
    plan = harness(messages, budget=budget).plan()
    assert plan.trigger == "tokens"
    assert len(plan.tail) == 20
    # In a window that is known to be as large it is not too much.
    assert harness(messages, budget=budget_for(200_000)).plan().trigger is None


def test_a_reserve_over_the_window_leaves_half_of_it() -> None:
    assert token_trigger(HARNESS, budget_for(16_000)) == 8_000


@pytest.mark.parametrize(("tokens", "trigger"), [(107_989, None), (107_990, "tokens")])
def test_the_trigger_counts_everything_and_is_met_when_it_is_reached(
    tokens: int, trigger: str | None
) -> None:
    # The prompt of 8 characters costs 4 + 5; the question 1.
    messages = [replace(one, tokens=cost) for one, cost in zip(
        numbered([user("q"), reply("a"), user("now")]), (100, tokens - 100, 1), strict=True
    )]  # fmt: skip
    plan = harness(messages, current=1).plan()
    assert plan.costs.total == tokens + 10
    assert plan.trigger == trigger


def test_50_messages_are_enough_too() -> None:
    messages = numbered([user("q"), reply("a")] * 25)
    assert harness(messages).plan().trigger == "messages"
    assert harness(messages[1:]).plan().trigger is None


# The cut


def test_the_cut_of_the_example_is_74_of_80() -> None:
    """Its suffix sums, halved as in the article: the earliest that costs at most 8,000 is 74."""
    messages = eighty(["user", "assistant"] * 40)
    sums = [0, *accumulate(message.tokens for message in reversed(messages))][::-1]
    assert {index: sums[index] for index in SUMS} == SUMS
    assert first_fitting(sums, 8_000) == 74
    plan = harness(messages).plan()
    assert plan.costs.suffix == tuple(sums)
    assert (plan.action, len(plan.head), len(plan.tail)) == ("fold", 74, 6)


def test_a_tail_does_not_begin_with_a_reply() -> None:
    """With the roles the other way round message 74 is a reply without its question: the cut moves
    on to the next question, 75."""
    plan = harness(eighty(["assistant", "user"] * 40)).plan()
    assert len(plan.head) == 75
    assert plan.tail[0].messages[0].role == "user"


@pytest.mark.parametrize(
    ("roles", "head"),
    [
        # The call is 73, its results 74 and 75: the cut falls between them.
        (["call", "tool", "tool", "assistant", "user", "assistant", "user"], 77),
        # The call is 74 itself: the group of call and results may begin the tail.
        (["user", "call", "tool", "tool", "assistant", "user", "assistant"], 74),
        # The call is 72: the cut falls behind its results, on the reply.
        (["tool", "assistant", "user", "assistant", "user", "assistant", "user"], 75),
    ],
)
def test_a_call_and_its_results_are_never_torn_apart(roles: list[str], head: int) -> None:
    """S1 moves such a cut back to the call, and says both that the pair is then in the part to be
    summarised and that it is in the tail; going back would keep more than the 8,000. Here the
    budget wins: the cut moves on to where a tail may begin, the pair is folded whole."""
    before = ["user", "assistant"] * 36 + ["user"]
    if roles[0] == "tool":
        before[-1] = "one"
    messages = eighty([*before, *roles])
    plan = harness(messages).plan()
    assert positions(plan.head) == tuple(range(1, head + 1))
    assert plan.costs.suffix[len(plan.head)] <= 8_000
    for members in plan.head + plan.tail:
        first = members.messages[0]
        assert first.role != "tool"
        assert len(members.messages) == 1 + len(first.tool_calls)


# The rungs


def ten_results(tool: str) -> list[Message]:
    """Ten results of 5,000 characters, and a question of 100,000 behind them: 40,005 tokens."""
    steps = [part for _ in range(10) for part in (call(tool), result("x" * 5_000))]
    messages = [user("q"), *steps, reply("done"), user("y" * 100_000), reply("ok"), user("now")]
    return numbered(messages, plain=False, counter=ESTIMATOR)


def test_old_results_keep_head_and_tail() -> None:
    """The article counts 2,008 tokens before (without 5 for the message) and about 820 after; it
    writes that 4,000 characters are gone, but 5,000 less twice 1,000 are 3,000."""
    made = harness(ten_results("bash"), current=1)
    plan = made.plan()
    results = [one.messages[1] for one in plan.tail if len(one.messages) == 2]
    assert len(results) == 10
    for message in results:
        assert message.content.startswith("x" * 1_000 + "\n[… 3,000 characters left out")
        assert message.content.endswith("…]\n" + "x" * 1_000)
        assert (plan.whole[message.position], message.tokens) == (2_013, 837)
    # About 12,000 tokens are released.
    before = sum(message.tokens for one in made.prior for message in one.messages)
    after = sum(message.tokens for one in plan.tail for message in one.messages)
    assert before - after == 10 * (2_013 - 837) == 11_760


def test_results_of_retrieval_tools_are_left_alone() -> None:
    plan = harness(ten_results("read_file"), current=1).plan()
    assert plan.whole == {}
    assert harness(ten_results("read_file"), current=1, keep_tools=()).plan().whole.keys()


def test_nine_results_are_too_little_to_prune() -> None:
    """18,117 tokens are under the 20,000 that make it worth while."""
    messages = ten_results("bash")
    assert harness([*messages[:1], *messages[3:]], current=1).plan().whole == {}


def test_the_newest_40000_tokens_are_left_alone() -> None:
    messages = ten_results("bash")
    shorter = replace(messages[-3], tokens=messages[-3].tokens - 100)
    # Question and replies behind the last result are now just under 40,000: it is protected, and
    # the nine before it are too little.
    assert harness([*messages[:-3], shorter, *messages[-2:]], current=1).plan().whole == {}


def test_where_the_rungs_suffice_no_summary_is_made() -> None:
    filler = [replace(one, tokens=50_000) for one in numbered([user("long ago"), reply("yes")])]
    messages = [*filler, *(replace(one, position=one.position + 2, turn=one.turn + 1)
                           for one in ten_results("bash"))]  # fmt: skip
    messages[1] = replace(messages[1], tokens=1_000)
    made = harness(messages, current=1)
    assert made.measure().total > 108_000
    plan = made.plan()
    assert (plan.action, plan.trigger) == ("send", None)
    assert plan.costs.total < 108_000
    assert replace(made, policy=replace(HARNESS, rungs=False)).plan().trigger == "tokens"


def test_a_long_argument_of_an_old_call_keeps_20_characters() -> None:
    write = call("write_file")
    write = replace(
        write,
        tool_calls=(replace(write.tool_calls[0], arguments='{"text": "' + "z" * 5_000 + '"}'),),
    )
    messages = [user("q"), write, result("ok"), reply("done"), *[user("q"), reply("a")] * 11]
    made = harness(numbered(messages, plain=False, counter=ESTIMATOR))
    (short,) = made.plan().tail[1].messages[0].tool_calls
    assert short.arguments.startswith('{"text": "' + "z" * 20 + "\\n[… 4,980")
    # The transcript's own is as it was; at 24 messages nothing happens.
    assert made.prior[1].messages[0].tool_calls[0].arguments.count("z") == 5_000
    assert harness(numbered(messages[:24], plain=False, counter=ESTIMATOR)).plan().whole == {}


def test_the_estimator_counts_as_the_article_does() -> None:
    assert [ESTIMATOR.count("x" * size) for size in (0, 1, 5, 6, 5_000)] == [0, 1, 2, 3, 2_000]
    assert message_tokens(user(""), ESTIMATOR) == 5
    assert message_tokens(call("f"), ESTIMATOR) == 5 + 10 + 1 + 1
    assert message_tokens(result(""), ESTIMATOR) == 5 + 8


# Chained summaries


def chained() -> Talk:
    """A conversation whose questions have even numbers, so that one is the 50th message; each of
    its messages costs 1,000 tokens."""
    made = talk("harness", budget_for(128_000), rungs=False)
    made.say(reply("w " * 1_000))
    made.summarise = lambda previous, folded: (
        f"{previous} {folded[0].position}-{folded[-1].position}".strip()
    )
    return made


def test_the_first_summary_comes_at_the_50th_message_and_8_stay() -> None:
    """The article folds 42 messages; its 8 include the newest one, which comes on top here."""
    made = chained()
    made.turns(24, words=1_000)
    assert made.folds == {}
    made.turns(1, words=1_000)
    assert list(made.folds) == [25]
    plan, _ = made.requests[24]
    assert plan.trigger == "messages"
    assert positions(plan.tail) == (42, 43, 44, 45, 46, 47, 48, 49)
    assert plan.costs.suffix[len(plan.head)] == 8_000


def test_each_next_summary_is_made_of_the_one_before_and_what_is_new() -> None:
    """In the article the second comes at the 100th message. By its rule it comes as soon as the
    context has 50 again: the summary and messages 42 to 90."""
    made = chained()
    made.turns(70, words=1_000)
    folded = list(made.folds.values())
    assert len(folded) > 2
    everything = [position for one in folded for position in one]
    assert everything == list(range(1, everything[-1] + 1))
    assert made.summary is not None
    # Each summary holds what the one before it said.
    ranges = [f"{one[0]}-{one[-1]}" for one in folded]
    assert made.summary.text == " ".join(ranges)
    assert ranges[:2] == ["1-41", "42-81"]
    assert list(made.folds)[:2] == [25, 45]


def test_the_window_is_always_one_summary_and_at_most_8000_tokens_after_a_fold() -> None:
    made = chained()
    made.turns(150, words=1_000)
    assert len(made.folds) >= 5
    for number in made.folds:
        _, window = made.requests[number - 1]
        kinds = [segment.kind for segment in window.segments]
        assert kinds.count("summary") == 1
        tail = sum(one.tokens for one in window.segments if one.kind == "tail")
        assert 6_000 < tail <= 8_000
    # Between the folds it never has more than 50 messages.
    assert all(len(window.segments) <= 2 + 49 for _, window in made.requests)


def test_the_summary_names_the_file_of_the_raw_messages() -> None:
    part = SummaryPart("Ada ordered tea.", 1, 1, 42, file="conversations/1.jsonl")
    segment = replace(harness([]), summary=part).summary_segment()
    assert segment is not None
    assert "kept word for word in conversations/1.jsonl." in segment.message.content
    assert HARNESS.offload
