"""Snapshots: what is needed to rebuild a request, and its hash.

A part is `{"kind", "why", "ranges": [[first, last], ...]}` for messages sent as they stand in the
transcript, or `{"kind", "why", "blob", ...}` for anything else: the system prompt, a rendered
memory part, a stub, a shortened message. Ranges hold no position that was not sent, so a request
costs what is new in it, not what the transcript holds.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.core.messages import PLAIN, Habits, Message, ToolCall
from memory.core.policy import Policy
from memory.core.window import Segment, Window
from memory.core.wire import body_hash, canonical, to_wire
from memory.models import Blob, Conversation, Request, Turn
from memory.reading import core_messages
from memory.rows import locked


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A request as it was sent. `verified` is None if it never left the process."""

    request: Request
    segments: tuple[Segment, ...]
    body: dict[str, Any]
    sha256: str
    verified: bool | None


def body_of(
    segments: tuple[Segment, ...], options: dict[str, Any], habits: Habits = PLAIN
) -> dict[str, Any]:
    """The request's body: the options (model and the like) and the messages."""
    messages, _ = to_wire((segment.message for segment in segments), habits)
    return {**options, "messages": messages}


@transaction.atomic
def take(
    *,
    conversation_id: UUID,
    turn: Turn,
    window: Window,
    options: dict[str, Any],
    policy: Policy,
    encoding: str,
    habits: Habits = PLAIN,
) -> Request:
    """Store the snapshot of a request that is about to be sent, under the next number."""
    conversation = locked(conversation_id)
    blobs: dict[str, bytes] = {}
    parts: list[dict[str, Any]] = []
    for segment in window.segments:
        if segment.message.position and not segment.made and not segment.whole:
            _add_position(parts, segment)
        else:
            parts.append(_blob_part(segment, blobs))
    options_key = _add_blob(blobs, canonical(options))
    _store(conversation, blobs)
    request = Request.objects.create(
        conversation=conversation,
        turn=turn,
        number=conversation.next_request,
        parts=parts,
        left_out=[asdict(one) for one in window.left_out],
        options=options_key,
        tokens=window.tokens,
        encoding=encoding,
        model=options.get("model", ""),
        budget=asdict(window.budget),
        policy=policy.to_dict(),
        wire=asdict(habits),
    )
    conversation.next_request += 1
    conversation.save(update_fields=["next_request"])
    return request


def _add_position(parts: list[dict[str, Any]], segment: Segment) -> None:
    position = segment.message.position
    last = parts[-1] if parts else None
    if last and "ranges" in last and last["kind"] == segment.kind and last["why"] == segment.why:
        if last["ranges"][-1][1] == position - 1:
            last["ranges"][-1][1] = position
        else:
            last["ranges"].append([position, position])
        return
    parts.append({"kind": segment.kind, "why": segment.why, "ranges": [[position, position]]})


def _blob_part(segment: Segment, blobs: dict[str, bytes]) -> dict[str, Any]:
    part = {"kind": segment.kind, "why": segment.why, "tokens": segment.tokens}
    part |= {"made": segment.made, "blob": _add_blob(blobs, canonical(asdict(segment.message)))}
    if segment.whole:
        part["whole"] = segment.whole
    if segment.version:
        part |= {"version": segment.version, "first": segment.first, "last": segment.last}
    return part


def _add_blob(blobs: dict[str, bytes], data: bytes) -> str:
    key = hashlib.sha256(data).hexdigest()
    blobs[key] = data
    return key


def _store(conversation: Conversation, blobs: dict[str, bytes]) -> None:
    rows = [Blob(conversation=conversation, sha256=key, data=data) for key, data in blobs.items()]
    Blob.objects.bulk_create(rows, ignore_conflicts=True)


def mark_sent(*, request_id: int, sha256: str) -> None:
    """Record the hash of the body that left the process."""
    Request.objects.filter(pk=request_id).update(sha256=sha256)


def record_usage(*, request_id: int, usage: dict[str, int]) -> None:
    """Record what the provider reported of a request, in tokens."""
    Request.objects.filter(pk=request_id).update(usage=usage)


def rebuild(*, request: Request) -> Rebuilt:
    """The request as it was sent, from its snapshot, in three queries."""
    keys = {part["blob"] for part in request.parts if "blob" in part} | {request.options}
    rows = Blob.objects.filter(conversation_id=request.conversation_id, sha256__in=keys)
    blobs = {row.sha256: json.loads(bytes(row.data)) for row in rows}
    wanted = [
        position
        for part in request.parts
        for first, last in part.get("ranges", ())
        for position in range(first, last + 1)
    ]
    habits = Habits(**request.wire)
    messages = core_messages(
        conversation_id=request.conversation_id,
        positions=wanted,
        reasoning=bool(habits.reasoning),
    )
    segments: list[Segment] = []
    for part in request.parts:
        if "blob" in part:
            segments.append(_segment(part, blobs[part["blob"]]))
            continue
        for first, last in part["ranges"]:
            for position in range(first, last + 1):
                message = messages[position]
                segments.append(Segment(part["kind"], message, message.tokens, part["why"]))
    body = body_of(tuple(segments), blobs[request.options], habits)
    digest = body_hash(body)
    verified = digest == request.sha256 if request.sha256 else None
    return Rebuilt(request, tuple(segments), body, digest, verified)


def _segment(part: dict[str, Any], data: dict[str, Any]) -> Segment:
    calls = tuple(ToolCall(**call) for call in data.pop("tool_calls"))
    return Segment(
        part["kind"],
        Message(**data, tool_calls=calls),
        part["tokens"],
        part["why"],
        part["made"],
        part.get("version", 0),
        part.get("first", 0),
        part.get("last", 0),
        part.get("whole", 0),
    )
