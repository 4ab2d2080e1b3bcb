"""What always holds of a request (docs/memory.md), checked on the messages that would be sent.

The checks know nothing of how a window is made: they look at the wire, at the window's segments
and at the context that it was made of.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from memory.core.window import Context, Window

Wire = Sequence[Mapping[str, Any]]


def problems(body: Wire, window: Window, context: Context) -> tuple[str, ...]:
    """What is wrong with a request in the merged shape, in plain words; nothing where all is well.

    `body` are the messages of the window as they are sent.
    """
    found = [*_shape(body, context.system_prompt), *_pairs(body), *_newest(body, context)]
    found += _accounts(window, context)
    if window.tokens > window.budget.usable:
        found.append(f"{window.tokens} tokens, but only {window.budget.usable} are usable")
    return tuple(found)


def _shape(body: Wire, system_prompt: str) -> Iterator[str]:
    """Invariant 1, and what strict chat templates ask for."""
    first = body[0] if body else {"role": "", "content": ""}
    begins = first["role"] == "system" and first["content"].startswith(system_prompt)
    if system_prompt and not begins:
        yield "the first message does not begin with the system prompt"
    for index, message in enumerate(body):
        if message["role"] == "system" and index:
            yield f"message {index + 1} is a system message, too"
        empty = message["content"] is None and "tool_calls" in message
        if not empty and not isinstance(message["content"], str):
            yield f"message {index + 1} has no content"
    for index, (one, other) in enumerate(pairwise(body), 2):
        calls = "tool_calls" in one or "tool_calls" in other
        if one["role"] == other["role"] in ("user", "assistant") and not calls:
            yield f"message {index} has the same role as the one before it"


def _pairs(body: Wire) -> Iterator[str]:
    """Invariant 3: every call has its result directly behind it, and every result its call."""
    waiting: list[str] = []
    for index, message in enumerate(body, 1):
        if message["role"] == "tool":
            if waiting[:1] != [message["tool_call_id"]]:
                yield f"message {index} is a result, but not of the call before it"
            waiting = waiting[1:]
            continue
        if waiting:
            yield f"message {index} stands before the results of {len(waiting)} calls"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
    if waiting:
        yield f"{len(waiting)} calls at the end have no result"


def _newest(body: Wire, context: Context) -> Iterator[str]:
    """Invariant 2: the user message and the newest call of the running turn are there."""
    now = [message for members in context.current for message in members.messages]
    asked = next((message for message in reversed(now) if message.role == "user"), None)
    called = next((message for message in reversed(now) if message.tool_calls), None)
    if asked is not None:
        sent = [message["content"] for message in body if message["role"] == "user"]
        if not sent or not sent[-1].endswith(asked.content):
            yield "the last user message is not there as it was written"
    if called is not None:
        calls = [message["tool_calls"] for message in body if "tool_calls" in message]
        newest = [(call["id"], call["function"]["name"]) for call in calls[-1]] if calls else []
        if newest != [(call.id, call.name) for call in called.tool_calls]:
            yield "the newest calls of the running turn are not there"


def _accounts(window: Window, context: Context) -> Iterator[str]:
    """Invariant 5: every position is in exactly one place: the summary, the window, or left out.

    The summary stands for the beginning of the transcript, whose positions run from 1.
    """
    summary, groups = context.summary, (*context.prior, *context.current)
    places = list(range(summary.first, summary.last + 1)) if summary else []
    places += [
        segment.message.position
        for segment in window.segments
        if segment.kind in ("tail", "current", "working") and not segment.made
    ]
    places += [position for part in window.left_out for position in part.positions]
    last = groups[-1].last if groups else summary.last if summary else 0
    if sorted(places) != list(range(1, last + 1)):
        doubled = sorted({place for place in places if places.count(place) > 1})
        missing = sorted(set(range(1, last + 1)) - set(places))
        yield f"positions in no place: {missing}, in several: {doubled}"
    now = {message.position for members in context.current for message in members.messages}
    omitted = {
        position
        for part in window.left_out
        if part.reason != "orphan"
        for position in part.positions
    }
    if now & omitted:
        yield f"positions of the running turn are left out: {sorted(now & omitted)}"
