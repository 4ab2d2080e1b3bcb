"""Cases about compaction within a turn that has steps (CT-11, CT-17)."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from memory.core.text import shorten
from memory.models import MemoryEvent, Message
from tests.cases.raw import calling, faults
from tests.chatapp.helpers import chat, say

pytestmark = pytest.mark.django_db(transaction=True)


def enforcing(most: int, answer: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    """A provider that refuses what is longer than its window, four characters to the token."""

    def respond(body: dict[str, Any]) -> Any:
        size = len(json.dumps(body["messages"])) // 4
        return answer(body) if size <= most else 400

    return respond


async def test_ct_11_what_a_tool_just_returned_is_counted_before_the_next_step(
    runner: Any, scripted: Any, make_conversation: Any, spies: Any
) -> None:
    """The check used the usage of the step before, and the next request overflowed."""
    window = 16_000

    def read(file: str) -> str:
        """Read a file."""
        return "the quick brown fox jumps over the lazy dog, " * 1_300

    spies(read)
    conversation = await sync_to_async(make_conversation)(
        tools=["spy"], window=window, turn_tokens=1_000_000
    )
    await chat(runner, conversation, 3)
    step = iter([calling(("read", '{"file": "a"}')), calling(("read", '{"file": "b"}')), "done"])
    scripted.replies = [enforcing(window, lambda _body: next(step))]
    turn = await say(runner, conversation, "read both")
    assert turn.state == "complete", turn.error_code
    for body in scripted.bodies:
        assert faults(body["messages"]) == []


async def test_ct_17_a_turn_that_never_ends_is_ended(
    runner: Any, scripted: Any, make_conversation: Any, spies: Any
) -> None:
    """Calls and compactions took turns for three hours."""
    window, asked = 2_048, list[str]()

    def read(page: str) -> str:
        """Read a page."""
        asked.append(page)
        return "page " * 600  # about 30 % of the window

    def halved(body: dict[str, Any]) -> str:
        source = body["messages"][-1]["content"]
        return "They talked. " + shorten(source.replace("<", ""), len(source) * 6 // 10)

    spies(read)
    conversation = await sync_to_async(make_conversation)(tools=["spy"], window=window)
    await chat(runner, conversation, 4)
    scripted.bodies.clear()
    scripted.summaries = [halved]
    scripted.replies = [lambda _body: calling(("read", json.dumps({"page": str(len(asked))})))]
    turn = await say(runner, conversation, "read everything")
    assert turn.state == "length"
    assert turn.error_code in ("max-steps", "turn-tokens")
    assert len(scripted.streamed()) <= 10
    # Each compaction has its ladder of three tries, and a turn has three compactions at most.
    assert len(scripted.bodies) - len(scripted.streamed()) <= 3 * 2 * 3
    kinds = (MemoryEvent.Kind.COMPACTION, MemoryEvent.Kind.COMPACTION_FAILED)
    assert await MemoryEvent.objects.filter(kind__in=kinds).acount() <= 4
    assert await Message.objects.filter(turn=turn, role="tool").acount() == len(asked)
    for body in scripted.bodies:
        assert faults(body["messages"]) == []
