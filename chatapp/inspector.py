"""The context panel: the next request, or any past one, segment by segment.

What the page shows and what `context.json` gives come from one value, so they cannot differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404
from django.urls import reverse

from chatapp import policy_words, words
from chatapp.provider import is_demo, target_for
from memory import service, snapshots, versions
from memory.core.budget import Budget
from memory.core.limits import token_trigger
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.text import shorten
from memory.core.window import Segment
from memory.core.wire import body_hash, to_wire
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Request, usage_tokens

# The width of the bar in its own units.
BAR = 1000
# Characters of a segment that its closed card shows.
PREVIEW = 220


@dataclass(frozen=True, slots=True)
class Shown:
    """One request as it is shown: the next one (`request` None) or one that was sent."""

    conversation: Conversation
    request: Request | None
    segments: tuple[Segment, ...]
    left_out: tuple[dict[str, Any], ...]
    body: dict[str, Any] | None
    budget: Budget
    policy: Policy
    encoding: str
    estimated: bool
    sha256: str
    verified: bool | None
    error: str = ""
    forecast: str = ""

    @property
    def tokens(self) -> int:
        return (
            self.request.tokens
            if self.request
            else sum(segment.tokens for segment in self.segments)
        )


def shown_next(conversation: Conversation, assembled: service.Assembled) -> Shown:
    """The request that comes next, as it stands now."""
    context = assembled.context
    segments = assembled.window.segments if assembled.window else ()
    left_out = assembled.window.left_out if assembled.window else ()
    error = ""
    if assembled.error:
        detail = f"{assembled.error.tokens}/{assembled.error.usable}"
        error = words.turn_error(f"window-{assembled.error.part}", detail)
    plan = service.forecast(assembled)
    folded = sum(len(members.messages) for members in plan.head) if plan.action == "fold" else 0
    return Shown(
        conversation,
        None,
        segments,
        tuple(
            {"reason": one.reason, "positions": one.positions, "tokens": one.tokens}
            for one in left_out
        ),
        assembled.body,
        context.budget,
        assembled.policy,
        assembled.counter.name,
        assembled.counter.estimated,
        body_hash(assembled.body) if assembled.body else "",
        None,
        error,
        words.forecast(folded) if folded else "",
    )


def shown_past(conversation: Conversation, number: int) -> Shown:
    """A request that was made, rebuilt from its snapshot. Raises Http404 for an unknown number."""
    request = conversation.requests.select_related("turn").filter(number=number).first()
    if request is None:
        raise Http404
    rebuilt = snapshots.rebuild(request=request)
    counter = counter_for(rebuilt.body.get("model", ""))
    return Shown(
        conversation,
        request,
        rebuilt.segments,
        tuple(request.left_out),
        rebuilt.body,
        Budget(**request.budget),
        policy_from(request.policy),
        request.encoding,
        counter.estimated,
        rebuilt.sha256,
        rebuilt.verified,
    )


def as_json(shown: Shown) -> dict[str, Any]:
    """A request as plain data: body, segments with their place in it, tokens, budget, policy."""
    _, spans = to_wire(segment.message for segment in shown.segments)
    return {
        "conversation": str(shown.conversation.pk),
        "revision": shown.conversation.memory_revision,
        "request": shown.request.number if shown.request else None,
        "body": shown.body,
        "error": shown.error or None,
        "segments": [
            {
                "kind": segment.kind,
                "why": segment.why,
                "role": segment.message.role,
                "text": segment.message.content,
                "tokens": segment.tokens,
                "position": segment.message.position or None,
                "message": span.index,
                "start": span.start,
                "end": span.end,
            }
            for segment, span in zip(shown.segments, spans, strict=True)
        ],
        "left_out": list(shown.left_out),
        "tokens": shown.tokens,
        "encoding": shown.encoding,
        "estimated": shown.estimated,
        "usage": shown.request.usage if shown.request else {},
        "budget": {
            "window": shown.budget.window,
            "reply_reserve": shown.budget.reply_reserve,
            "usable": shown.budget.usable,
        },
        "policy": shown.policy.to_dict(),
        "sha256": shown.sha256,
        "verified": shown.verified,
    }


def panel(shown: Shown) -> dict[str, Any]:
    """What the template of the Context tab shows."""
    conversation, request, budget = shown.conversation, shown.request, shown.budget
    last = conversation.next_request - 1
    number = request.number if request else None
    trigger = token_trigger(shown.policy, budget)
    json_url = (
        reverse("request_json", args=[conversation.pk, number])
        if number
        else reverse("context_json", args=[conversation.pk])
    )
    undoable = versions.last_undoable(conversation)
    target = target_for(conversation.model)
    return {
        "number": number,
        "last": last,
        "previous": (number - 1 if number else last) or None,
        "next": number + 1 if number and number < last else None,
        "segments": _cards(shown),
        "tokens": shown.tokens,
        "window": budget.window,
        "usable": budget.usable,
        "reply_reserve": budget.reply_reserve,
        "trigger": trigger,
        "trigger_x": trigger * BAR // budget.window if trigger else None,
        "limit_x": budget.usable * BAR // budget.window,
        "encoding": shown.encoding,
        "estimated": shown.estimated,
        "provider_tokens": usage_tokens(request.usage) if request else None,
        "model": shown.body["model"] if shown.body else target.model,
        "is_demo": is_demo(),
        "policy_name": shown.policy.preset,
        "policy_text": policy_words.policy_text(shown.policy, budget),
        "forecast": shown.forecast,
        "notice": words.compaction_notice(_last_compaction(conversation)),
        "error": shown.error,
        "left_out": _left_out(shown.left_out),
        "sha256": shown.sha256,
        "verified": shown.verified,
        "turn": request.turn.number if request else None,
        "json_url": json_url,
        "undo_label": words.undo_label(undoable),
        "revision": conversation.memory_revision,
        "empty": not shown.segments,
        "conversation": conversation,
    }


def _cards(shown: Shown) -> list[dict[str, Any]]:
    cards, x = [], 0.0
    for index, segment in enumerate(shown.segments, 1):
        width = segment.tokens * BAR / shown.budget.window
        cards.append(
            {
                "index": index,
                "kind": segment.kind,
                "label": policy_words.segment_label(segment),
                "why": policy_words.segment_reason(segment, shown.policy),
                "role": segment.message.role,
                "text": segment.message.content,
                "preview": shorten(_inner(segment), PREVIEW),
                "tokens": segment.tokens,
                "position": segment.message.position,
                "version": segment.version,
                "first": segment.first,
                "last": segment.last,
                "x": f"{x:.1f}",
                "width": f"{max(width, 1):.1f}",
            }
        )
        x += width
    return cards


def _inner(segment: Segment) -> str:
    """What a card shows while it is closed: of a memory part what its fence holds."""
    text = segment.message.content
    return text.partition(">\n")[2].rpartition("\n<")[0] if segment.version else text


def _left_out(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "label": policy_words.left_out(part["reason"]),
            "count": len(part["positions"]),
            "tokens": part["tokens"],
        }
        for part in parts
    ]


def _last_compaction(conversation: Conversation) -> MemoryEvent | None:
    kinds = (MemoryEvent.Kind.COMPACTION, MemoryEvent.Kind.COMPACTION_FAILED)
    events = conversation.memory_events.filter(kind__in=kinds)
    return events.select_related("summary").order_by("-id").first()
