"""The worked examples of S1: dynamic limits, the cut, chained summaries."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import pytest

from memory.core.budget import budget_for
from memory.core.cutting import first_fitting
from memory.core.groups import positions
from memory.core.limits import limits, token_trigger
from memory.core.messages import Message
from memory.core.window import SummaryPart
from tests.builders import call, numbered, reply, result, user
from tests.memory.harness import HARNESS, harness
from tests.memory.talks import Talk, talk

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
