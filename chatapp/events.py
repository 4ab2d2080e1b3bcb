"""What happens in a turn and in the memory, as values and as frames of docs/protocol.md."""

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, ClassVar
from uuid import UUID

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that every open page of a conversation is told. `type` is the frame's type."""

    type: ClassVar[str]

    def frame(self) -> str:
        """The event as the JSON text of a frame."""
        return json.dumps({"type": self.type, **asdict(self)}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Hello(Event):
    type = "hello"
    turn: int | None
    revision: int


@dataclass(frozen=True, slots=True)
class TurnStarted(Event):
    type = "turn.started"
    turn: int
    id: str


@dataclass(frozen=True, slots=True)
class TurnStatus(Event):
    """`phase` is "compacting", "waiting", "thinking", "streaming", "calling" (tools run),
    "retrying" or "tightening" (the request was too long); whole `seconds` in it."""

    type = "turn.status"
    turn: int
    phase: str
    seconds: int


@dataclass(frozen=True, slots=True)
class TurnStep(Event):
    """What was written so far is stored: a step's calls, or their results. What is written next
    belongs to step `step` (from 0)."""

    type = "turn.step"
    turn: int
    step: int


@dataclass(frozen=True, slots=True)
class TurnDelta(Event):
    """`offset` counts code points of what the step has written."""

    type = "turn.delta"
    turn: int
    step: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnThoughts(Event):
    """A piece of the model's thoughts; `offset` counts their code points, 0 begins them anew."""

    type = "turn.thoughts"
    turn: int
    step: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class TurnText(Event):
    type = "turn.text"
    turn: int
    step: int
    text: str
    thoughts: str
    state: str


@dataclass(frozen=True, slots=True)
class TurnTick(Event):
    """`length` and `thoughts` count code points."""

    type = "turn.tick"
    turn: int
    step: int
    length: int
    thoughts: int


@dataclass(frozen=True, slots=True)
class TurnEnded(Event):
    type = "turn.ended"
    turn: int
    state: str
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class MemoryChanged(Event):
    type = "memory.changed"
    revision: int
    event: str


@dataclass(frozen=True, slots=True)
class TitleChanged(Event):
    type = "title.changed"
    title: str


@dataclass(frozen=True, slots=True)
class Refused(Event):
    """A frame was refused; `message` in words, `id` that of the frame."""

    type = "error"
    code: str
    message: str
    id: str = ""


def group_name(conversation_id: UUID) -> str:
    """The channel layer's group of a conversation's open pages."""
    return f"chat.{conversation_id}"


def session_group(key: str) -> str:
    """The group of a session's open pages. Its key signs in, so the layer has a hash of it."""
    return f"session.{hashlib.sha256(key.encode()).hexdigest()}"


async def broadcast(layer: Any, conversation_id: UUID, event: Event) -> None:
    """Tell every open page of the conversation. The layer may lose it: clients notice gaps."""
    message = {"type": "send.frame", "text": event.frame()}
    await _send(layer, group_name(conversation_id), message)


async def end_session(layer: Any, key: str) -> None:
    """Close the sockets of a session. One that the layer loses is closed at its next frame."""
    await _send(layer, session_group(key), {"type": "session.ended"})


async def _send(layer: Any, group: str, message: dict[str, str]) -> None:
    try:
        await layer.group_send(group, message)
    except layer_errors() as error:
        logger.warning("a frame was lost, the channel layer cannot be reached: %s", error)


@cache
def layer_errors() -> tuple[type[Exception], ...]:
    """What a channel layer raises when its server cannot be reached."""
    try:
        from redis.exceptions import RedisError
    except ImportError:
        return (OSError,)
    return (OSError, RedisError)
