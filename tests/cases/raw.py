"""What the tests of the cases share: a provider that sends raw events, and stored histories."""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from chatapp.provider import target_for
from memory import service
from memory.core.groups import sendable
from memory.core.messages import Message as CoreMessage
from memory.core.window import Context
from memory.encodings import counter_for
from memory.models import Conversation, Message, Turn
from memory.service import Assembled
from tests.builders import COUNTER, numbered
from tests.scripted import ScriptedTransport

STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def piece(text: str | None, **delta: Any) -> dict[str, Any]:
    """A chunk with a piece of the reply, and whatever else a server puts into a delta."""
    return {"choices": [{"index": 0, "delta": {"content": text, **delta}}]}


def ends(reason: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def part(arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk with a part of a tool call: `index`, `id`, `name` as given."""
    function = {"name": more.pop("name")} if "name" in more else {}
    function |= {} if arguments is None else {"arguments": arguments}
    return piece(None, tool_calls=[{**more, "function": function}])


def calling(*calls: tuple[str, str], reason: str = "tool_calls") -> list[dict[str, Any]]:
    """The events of a reply that calls tools: pairs of a name and its arguments."""
    parts = [
        part(arguments, index=index, id=f"call_{index}", name=name, type="function")
        for index, (name, arguments) in enumerate(calls)
    ]
    return [*parts, ends(reason)]


class RawTransport(ScriptedTransport):
    """A scripted provider whose replies may also be lists of events: dicts become chunks, bytes
    go out as they are, an exception breaks the connection there. [DONE] is not added."""

    async def _chunks(self, answer: Any) -> AsyncIterator[bytes]:
        if isinstance(answer, str):
            async for chunk in super()._chunks(answer):
                yield chunk
            return
        for event in answer:
            if isinstance(event, Exception):
                raise event
            if isinstance(event, bytes):
                yield event
            else:
                yield b"data: " + json.dumps(event).encode() + b"\n\n"

    def asked(self) -> list[dict[str, Any]]:
        """The bodies of the summariser's requests."""
        return [body for body in self.bodies if not body.get("stream")]


def faults(wire: Sequence[dict[str, Any]]) -> list[str]:
    """What a strict server would refuse a list of messages for."""
    found, waiting = [], list[str]()
    for index, message in enumerate(wire):
        role = message["role"]
        if role == "tool":
            if not waiting or message["tool_call_id"] != waiting.pop(0):
                found.append(f"{index}: a result without its call")
            continue
        if waiting:
            found.append(f"{index}: a call without its result")
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if role == "system" and index:
            found.append(f"{index}: a second system message")
        if role == "user" and index and wire[index - 1]["role"] == "user":
            found.append(f"{index}: two user messages in a row")
        if role != "assistant" and message["content"] is None:
            found.append(f"{index}: null")
    return found + (["a call without its result at the end"] if waiting else [])


def strict(body: dict[str, Any]) -> Any:
    """A provider that refuses what strict servers refuse, and otherwise says "ok"."""
    return 400 if faults(body["messages"]) else "ok"


def sent(context: Context) -> list[CoreMessage]:
    """The messages of a context's window, without the system's."""
    segments = context.window(context.plan()).segments
    return [one.message for one in segments if one.message.role != "system"]


def store_history(conversation: Conversation, messages: Iterable[CoreMessage]) -> None:
    """Store a whole history of finished turns, counted as the application counts."""
    counter = counter_for("")
    rows = numbered(messages, plain=False, counter=counter)
    turns = {
        number: Turn(
            conversation=conversation, number=number, client_id=f"s{number}", state="complete"
        )
        for number in sorted({row.turn for row in rows})
    }
    Turn.objects.bulk_create(turns.values())
    Message.objects.bulk_create(
        Message(
            conversation=conversation,
            turn=turns[row.turn],
            position=row.position,
            role=row.role,
            content=row.content,
            tool_calls=[
                {"id": one.id, "name": one.name, "arguments": one.arguments}
                for one in row.tool_calls
            ],
            tool_call_id=row.tool_call_id,
            tokens=row.tokens,
            encoding=counter.name,
            counts=row.counts,
        )
        for row in rows
    )
    conversation.next_position, conversation.next_turn = len(rows) + 1, max(turns) + 1
    conversation.save()


def assembled(conversation: Conversation) -> Assembled:
    """The next request of a conversation, built anew from the rows."""
    return service.assemble(conversation_id=conversation.pk, target=target_for(conversation.model))


aassembled = sync_to_async(assembled)


def positions(one: Assembled) -> list[int]:
    """The positions of the messages in a window, in order."""
    assert one.window is not None
    return [part.message.position for part in one.window.segments if part.message.position]


def whole(messages: Sequence[CoreMessage]) -> list[CoreMessage]:
    """The one group of these messages, as it is sent."""
    from memory.core.groups import group

    (only,) = group(messages)
    return [message for message, _made in sendable(only, COUNTER)]
