"""The wire shape: the last step before a request is hashed and sent.

`merged`, the default, puts the memory parts into the one system message and joins neighbouring
user messages: strict chat templates accept it and the beginning of the prompt stays the same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory.core.messages import PLAIN, Habits, Message

JOINT = "\n\n"


@dataclass(frozen=True, slots=True)
class Span:
    """Where a segment stands: characters `start` to `end` of the content of message `index`."""

    index: int
    start: int
    end: int


def to_wire(
    parts: Iterable[Message], habits: Habits = PLAIN
) -> tuple[list[dict[str, Any]], tuple[Span, ...]]:
    """The messages as a provider takes them, and one span per part, in order."""
    wire: list[dict[str, Any]] = []
    spans = []
    for part in parts:
        last = wire[-1] if wire else None
        joins = last is not None and last["role"] == part.role and _joinable(part, last)
        if last is not None and joins:
            start = len(last["content"]) + len(JOINT)
            last["content"] += JOINT + part.content
            if habits.reasoning in last:
                thoughts = filter(None, (last[habits.reasoning], part.reasoning))
                last[habits.reasoning] = JOINT.join(thoughts)
        else:
            start = 0
            wire.append(part.to_wire(habits))
        spans.append(Span(len(wire) - 1, start, start + len(part.content)))
    return wire, tuple(spans)


def _joinable(part: Message, last: Mapping[str, Any]) -> bool:
    return part.role != "tool" and not part.tool_calls and "tool_calls" not in last


def canonical(body: Any) -> bytes:
    """Canonical JSON: sorted keys, no spaces, UTF-8. Raises ValueError for NaN and infinities."""
    text = json.dumps(
        body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def body_hash(body: Any) -> str:
    """The SHA-256 of the canonical JSON of a request's body, in hexadecimal digits."""
    return hashlib.sha256(canonical(body)).hexdigest()
