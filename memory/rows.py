"""Writing the transcript's rows: each message at the next position."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from django.utils import timezone

from memory.core.messages import Message as CoreMessage
from memory.models import Blob, Conversation, Message, Turn


@dataclass(frozen=True, slots=True)
class Written:
    """A counted message as it is stored: with the model's thoughts before it (`reasoning_tokens` of
    them, beside the message's own), and of a tool's result what else is known of it (`detail`, see
    `models.Message`) and its `whole` text where the message has only a part of it."""

    message: CoreMessage
    reasoning: str = ""
    reasoning_tokens: int = 0
    detail: Mapping[str, Any] = field(default_factory=dict)
    whole: str = ""


class Partial(NamedTuple):
    """What the running step of a turn has written so far: its number, its text, its thoughts."""

    step: int
    text: str
    thoughts: str = ""


def locked(conversation_id: UUID) -> Conversation:
    """The conversation, locked until the end of the transaction. Raises Conversation.DoesNotExist.

    On SQLite every transaction takes the write lock at its beginning.
    """
    return Conversation.objects.select_for_update().get(pk=conversation_id)


def append(
    conversation: Conversation, turn: Turn, written: Sequence[Written], encoding: str
) -> list[Message]:
    """Store counted messages at the next positions, and the conversation's counters with them."""
    first = conversation.next_position
    rows = Message.objects.bulk_create(
        _row(conversation, turn, one, position, encoding)
        for position, one in enumerate(written, first)
    )
    conversation.next_position = first + len(written)
    conversation.updated_at = timezone.now()
    conversation.save(
        update_fields=["next_position", "next_turn", "title", "updated_at", "memory_revision"]
    )
    return rows


def _row(
    conversation: Conversation, turn: Turn, written: Written, position: int, encoding: str
) -> Message:
    message, detail = written.message, dict(written.detail)
    if written.whole:
        detail["whole"] = keep_blob(conversation, written.whole.encode())
    return Message(
        conversation=conversation,
        turn=turn,
        position=position,
        role=message.role,
        content=message.content,
        tool_calls=[
            {"id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ],
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=written.reasoning,
        reasoning_tokens=written.reasoning_tokens,
        detail=detail,
        tokens=message.tokens,
        encoding=encoding,
        counts=message.counts,
    )


def keep_blob(conversation: Conversation, data: bytes) -> str:
    """Store bytes under their SHA-256, once per conversation; the key."""
    key = hashlib.sha256(data).hexdigest()
    Blob.objects.get_or_create(conversation=conversation, sha256=key, defaults={"data": data})
    return key
