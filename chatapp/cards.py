"""The parts of a request as cards: what each is, why it is there, and its place in the bar."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from chatapp import policy_words
from memory.core.messages import Message
from memory.core.policy import Policy
from memory.core.text import shorten
from memory.core.window import Segment

# The width of the bar in its own units.
BAR = 1000
# Characters of a segment that its closed card shows.
PREVIEW = 220


def cards_of(
    segments: Sequence[Segment],
    schemas: Sequence[Mapping[str, Any]],
    schemas_tokens: int,
    policy: Policy,
    window: int,
) -> list[dict[str, Any]]:
    """The parts of a request in order, each with its place in a bar that is `window` tokens long.

    The `schemas` of its tools are one of them, behind the system prompt.
    """
    cards = [
        _card(segment, tool, policy)
        for segment, tool in zip(segments, answered(segments), strict=True)
    ]
    if schemas:
        first = sum(segment.kind in ("system", "tools") for segment in segments)
        cards.insert(first, _schemas_card(schemas, schemas_tokens))
    x = 0.0
    for index, card in enumerate(cards, 1):
        width = card["tokens"] * BAR / window
        card |= {"index": index, "x": f"{x:.1f}", "width": f"{max(width, 1):.1f}"}
        x += width
    return cards


def _card(segment: Segment, tool: str, policy: Policy) -> dict[str, Any]:
    return {
        "kind": segment.kind,
        "label": policy_words.segment_label(segment, tool),
        "why": policy_words.segment_reason(segment, policy),
        "role": segment.message.role,
        "text": _text(segment.message),
        "preview": shorten(_inner(segment), PREVIEW),
        "tokens": segment.tokens,
        "position": segment.message.position,
        "version": segment.version,
        "first": segment.first,
        "last": segment.last,
    }


def _schemas_card(schemas: Sequence[Mapping[str, Any]], tokens: int) -> dict[str, Any]:
    """The schemas of the tools, which are no message."""
    names = [schema["function"]["name"] for schema in schemas]
    return {
        "kind": "tools",
        "label": policy_words.tools_label(len(names)),
        "why": policy_words.tools_reason(),
        "role": "",
        "text": json.dumps(list(schemas), ensure_ascii=False, indent=2),
        "preview": shorten(", ".join(names), PREVIEW),
        "tokens": tokens,
        "position": None,
    }


def answered(segments: Iterable[Segment]) -> list[str]:
    """Of each segment the name of the tool whose result it is; empty for all others."""
    names: dict[str, str] = {}
    tools = []
    for segment in segments:
        message = segment.message
        if message.role != "tool":
            names = {call.id: call.name for call in message.tool_calls}
        known = message.name or names.get(message.tool_call_id, "")
        tools.append(known if message.role == "tool" else "")
    return tools


def _text(message: Message) -> str:
    """What a message says: thoughts that are sent back, its content, its calls as they stand."""
    calls = [f"{call.name}({call.arguments})" for call in message.tool_calls]
    label = _("Thoughts")  # not within an f-string: before Python 3.12 none is looked into
    thoughts = f"{label}: {message.reasoning}" if message.reasoning else ""
    return "\n\n".join(filter(None, (thoughts, message.content, *calls)))


def _inner(segment: Segment) -> str:
    """What a card shows while it is closed: of a memory part what its fence holds."""
    text = _text(segment.message)
    return text.partition(">\n")[2].rpartition("\n<")[0] if segment.version else text
