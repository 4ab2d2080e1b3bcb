"""Chained folds: twenty in a row by a summariser that forgets half of what it reads."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget
from memory.core.carrying import lost, same
from memory.core.literals import Literal, literals
from memory.core.messages import Message
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import SummaryPart
from memory.folding import Folded, fold
from memory.summarizer import Completion
from tests.builders import COUNTER, context, numbered, reply, user
from tests.memory.jobs import QUICK

FOLDS = policy_from({"max_messages": 6, "keep_messages": 2})
UNCERTAIN = ("number", "name", "address")
QUOTED = re.compile(r"<(message|previous_summary)\b[^>]*>\n(.*?)\n</\1>", re.DOTALL)


class Forgetful:
    """A summariser that drops every second literal of what it is given, beginning with `first`."""

    def __init__(self, first: int) -> None:
        self.first = first

    async def __call__(self, request: Sequence[dict[str, str]], limit: int) -> Completion:
        said = "\n".join(found[2] for found in QUOTED.finditer(request[1]["content"]))
        kept = [literal.text for literal in literals(said)[1 - self.first :: 2]]
        return Completion(f"They spoke of {', '.join(kept)} and of more.")


def saying(turn: int) -> list[Message]:
    """A turn with an id, an amount, a date, an e-mail address, and a number and a name."""
    question = (
        f"My name is Ada Smith, order #W{4_000_000 + 7_919 * turn} of ${turn}.25 came on "
        f"2024-{turn % 12 + 1:02}-{turn % 28 + 1:02}, write to ada{turn:03}@example.com please"
    )
    return [user(question), reply(f"noted, that makes {turn * 1_000 + 17} points " + "so " * 12)]


def critical(messages: Sequence[Message]) -> list[Literal]:
    found = [literal for message in messages for literal in literals(message.content)]
    return [literal for literal in found if literal.kind not in UNCERTAIN]


Step = tuple[Folded, str, tuple[Message, ...]]


async def chained(budget: Budget, policy: Policy, first: int) -> list[Step]:
    """Twenty folds in a row: of each the fold, the window's summary, and all that was folded."""
    messages: list[Message] = []
    said: list[Message] = []
    summary: SummaryPart | None = None
    steps: list[Step] = []
    for turn in range(1, 200):
        messages += saying(turn)
        done = numbered([*messages, user("and now")])
        start = summary.last if summary else 0
        made = context([one for one in done if one.position > start], policy=policy,
                       summary=summary)  # fmt: skip
        made = replace(made, budget=budget)
        plan = made.plan()
        if plan.action != "fold":
            continue
        said += [message for members in plan.head for message in members.messages]
        one = await fold(made, plan, room=50_000, complete=Forgetful(first), ladder=QUICK)
        assert one.written.kind == "model", one.written.failures
        summary = SummaryPart(
            one.written.text,
            len(steps) + 1,
            one.first,
            one.last,
            one.carried.candidates,
            one.carried.fitting,
            one.unsupported,
        )
        segment = replace(made, summary=summary).summary_segment()
        assert segment is not None
        steps.append((one, segment.message.content, tuple(said)))
        if len(steps) == 20:
            return steps
    raise AssertionError(f"only {len(steps)} folds")


@pytest.mark.parametrize("first", [0, 1])
async def test_twenty_folds_lose_no_literal_while_the_cap_allows(first: int) -> None:
    steps = await chained(Budget(20_001, 1), FOLDS, first)
    for one, window, said in steps:
        assert one.carried.pushed_out == ()
        assert one.unsupported == ()
        assert lost(critical(said), window) == ()
    # The summariser did forget: by far most stand beside the summary, not in it.
    last, _, said = steps[-1]
    assert len(critical(said)) > 150
    assert len(lost(critical(said), last.written.text)) > len(critical(said)) * 3 / 4


@pytest.mark.parametrize("first", [0, 1])
async def test_what_twenty_folds_have_no_room_for_is_listed(first: int) -> None:
    # usable 800: 80 tokens for literals; each costs one, a line of them two more.
    steps = await chained(Budget(801, 1), replace(FOLDS, summary_cap=100), first)
    for one, window, said in steps:
        carried = COUNTER.count(window) - COUNTER.count(one.written.text)
        assert carried < 80 + 40
        for literal in lost(critical(said), window):
            assert any(same(literal, other) for other in one.carried.pushed_out)
    assert steps[-1][0].carried.pushed_out
    # The newest are kept, the oldest pushed out: of the last turn that was folded all are there.
    _, window, said = steps[-1]
    assert lost(critical(said[-2:]), window) == ()


KINDS = st.sampled_from(
    ["#W{:07}", "${}.50", "2024-05-{:02}", "x{:03}@example.com", "+49 30 {:06}"]
)


@given(
    st.lists(st.lists(st.tuples(KINDS, st.integers(10, 28)), max_size=4), min_size=3, max_size=6),
    st.integers(0, 1),
    st.integers(100, 3_000),
)
async def test_a_critical_literal_is_in_the_window_or_listed(
    turns: list[list[tuple[str, int]]], first: int, usable: int
) -> None:
    summary: SummaryPart | None = None
    said: list[Message] = []
    for index, found in enumerate(turns):
        words = ", ".join(form.format(number) for form, number in found)
        messages = [user(f"It is {words} you know"), reply("so " * 60)]
        done = numbered([*messages, user("thanks"), reply("welcome"), user("and now")])
        made = context(done, policy=FOLDS, window=usable + 1, reserve=1, summary=summary)
        plan = made.plan(force=True)
        head = [message for members in plan.head for message in members.messages]
        said += head
        one = await fold(made, plan, room=5_000, complete=Forgetful(first), ladder=QUICK)
        assert one.written.kind in ("model", "archive")
        summary = SummaryPart(
            one.written.text, index + 1, 1, 1, one.carried.candidates, one.carried.fitting
        )
        segment = replace(made, summary=summary).summary_segment()
        assert segment is not None
        for literal in lost(critical(said), segment.message.content):
            assert any(same(literal, other) for other in one.carried.pushed_out)
