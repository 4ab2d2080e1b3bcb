"""The context panel: the next request, or any past one, segment by segment.

What the page shows and what `context.json` gives come from one value, so they cannot differ.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.http import Http404
from django.urls import reverse

from chatapp import parameters, policy_words, words
from chatapp.cards import BAR, answered, cards_of
from chatapp.provider import is_demo, target_of
from memory import service, snapshots, versions
from memory.compaction import RENEWAL
from memory.core.budget import Budget
from memory.core.limits import token_trigger
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import Segment
from memory.core.wire import body_hash, to_wire
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Request, Summary, usage_tokens


@dataclass(frozen=True, slots=True)
class Shown:
    """One request as it is shown: the next one (`request` None) or one that was sent. `tokens` are
    its segments' and those of the tools' schemas; without segments, where it cannot fit, what the
    `error` says that it needs."""

    conversation: Conversation
    request: Request | None
    segments: tuple[Segment, ...]
    tokens: int
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
    def schemas(self) -> list[dict[str, Any]]:
        """The tools that the request offers."""
        return list(self.body.get("tools", ())) if self.body else []

    @property
    def tools_tokens(self) -> int:
        """What the schemas of the tools cost, in tokens."""
        rest = self.tokens - sum(segment.tokens for segment in self.segments)
        return max(rest, 0) if self.schemas else 0


def shown_next(conversation: Conversation, assembled: service.Assembled) -> Shown:
    """The request that comes next, as it stands now."""
    context = assembled.context
    segments = assembled.window.segments if assembled.window else ()
    left_out = assembled.window.left_out if assembled.window else ()
    tokens = assembled.window.tokens if assembled.window else 0
    error = ""
    if assembled.error:
        tokens = assembled.error.tokens
        detail = f"{assembled.error.tokens}/{assembled.error.usable}"
        error = words.turn_error(f"window-{assembled.error.part}", detail)
    plan = service.forecast(assembled)
    folded = sum(len(members.messages) for members in plan.head) if plan.action == "fold" else 0
    return Shown(
        conversation,
        None,
        segments,
        tokens,
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
        request.tokens,
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
    spans = to_wire(segment.message for segment in shown.segments)[1]
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
                "name": tool,
                "text": segment.message.content,
                "reasoning": segment.message.reasoning,
                "tool_calls": [asdict(call) for call in segment.message.tool_calls],
                "tokens": segment.tokens,
                "position": segment.message.position or None,
                "message": span.index,
                "start": span.start,
                "end": span.end,
            }
            for segment, span, tool in zip(
                shown.segments, spans, answered(shown.segments), strict=True
            )
        ],
        "left_out": list(shown.left_out),
        "tokens": shown.tokens,
        "tools_tokens": shown.tools_tokens,
        "encoding": shown.encoding,
        "estimated": shown.estimated,
        "usage": shown.request.usage if shown.request else {},
        "budget": {
            "window": shown.budget.window,
            "reply_reserve": shown.budget.reply_reserve,
            "calibration": shown.budget.calibration,
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
    target = target_of(conversation)
    return {
        "number": number,
        "last": last,
        "previous": (number - 1 if number else last) or None,
        "next": number + 1 if number and number < last else None,
        "segments": cards_of(
            shown.segments, shown.schemas, shown.tools_tokens, shown.policy, budget.counted
        ),
        "tokens": shown.tokens,
        "counted": budget.counted,
        "own_usable": budget.window - budget.reply_reserve,
        "usable": budget.usable,
        "reply_reserve": budget.counted - budget.usable,
        "calibration": budget.calibration,
        "trigger": trigger,
        "trigger_x": trigger * BAR // budget.counted if trigger else None,
        "limit_x": budget.usable * BAR // budget.counted,
        "encoding": shown.encoding,
        "estimated": shown.estimated,
        "provider_tokens": usage_tokens(request.usage) if request else None,
        "usage": request.usage if request else {},
        "model": shown.body["model"] if shown.body else target.model,
        "is_demo": is_demo(),
        "toolsets": parameters.toolset_words(conversation.tools),
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
        "empty": not shown.segments and not shown.error,
        "over": bool(shown.error),
        "conversation": conversation,
    }


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
    """The newest compaction that still says something: that an archive could not be replaced does
    not, once another summary is active."""
    kinds = (MemoryEvent.Kind.COMPACTION, MemoryEvent.Kind.COMPACTION_FAILED)
    events = conversation.memory_events.filter(kind__in=kinds)
    active = conversation.active_summary()
    if active is None or active.kind != Summary.Kind.ARCHIVE:
        events = events.exclude(kind=MemoryEvent.Kind.COMPACTION_FAILED, detail__trigger=RENEWAL)
    return events.select_related("summary").order_by("-id").first()
