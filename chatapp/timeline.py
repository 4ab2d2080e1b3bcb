"""The Timeline tab: every change of the memory with its reason, and what the requests cost."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import accumulate
from typing import Any

from django.utils.translation import gettext as _

from chatapp import folds, parameters, words
from chatapp.comparing import comparison
from memory.core.budget import Budget
from memory.core.costing import saving
from memory.core.text import shorten
from memory.models import Conversation, MemoryEvent, Request, usage_tokens

# The parts of a request that stand in every one, whatever was said.
FIXED = ("system", "tools")
# The newest events and requests that are listed.
LISTED = 200
# Characters that are shown of a setting's text.
EXCERPT = 200
# The chart in its own units, and the most points that a line has beside its last one.
WIDE, HIGH, POINTS = 1000, 260, 200


def timeline_tab(conversation: Conversation, *, compare: bool = False) -> dict[str, Any]:
    """What the template of the Timeline tab shows: events, newest first, and the account."""
    rows = conversation.memory_events.select_related("summary", "undone_by", "undoes__summary")
    # Without what only the Summary tab shows: it may be much.
    heavy = ("literals", "unsupported", "text")
    rows = rows.defer(*(f"{of}__{name}" for of in ("summary", "undoes__summary") for name in heavy))
    events = [_event(row) for row in rows.order_by("-id")[:LISTED]]
    shown = {"events": events, "more": rows.count() > len(events), "account": account(conversation)}
    shown["comparison"] = comparison(conversation) if compare else None
    return shown


def _event(row: MemoryEvent) -> dict[str, Any]:
    summary = row.summary
    return {
        "kind": row.kind,
        "label": row.get_kind_display(),
        "revision": row.revision,
        "at": row.at_position,
        "created_at": row.created_at,
        "reason": _reason(row),
        "failures": folds.failures(row),
        "changes": _changes(row),
        "version": summary.version if summary else None,
        "fold": folds.folded(summary, row) if summary and row.kind == "compaction" else None,
        "undone": getattr(row, "undone_by", None) is not None,
    }


def _reason(row: MemoryEvent) -> str:
    """Why it happened."""
    if row.kind == MemoryEvent.Kind.UNDO:
        return words.undo_label(row.undoes) if row.undoes else ""
    if row.kind == MemoryEvent.Kind.TURN_REPLACED:
        return _("Turn %(number)s") % {"number": row.detail["turn"]}
    if row.kind == MemoryEvent.Kind.FORK:
        return _("of “%(title)s”") % {"title": row.detail["title"]}
    reasons = {
        "messages": _("too many messages"),
        "turns": _("too many turns"),
        "tokens": _("too many tokens"),
        "budget": _("the request would not have fitted"),
        "manual": _("asked for by hand"),
        "renewal": _("to replace an archive"),
        "provider": _("the model's server said so"),
    }
    return str(reasons.get(row.detail.get("trigger", ""), ""))


def _changes(row: MemoryEvent) -> list[dict[str, Any]]:
    """What was different before and after: the state of the memory, or settings by their name."""
    pairs: list[tuple[str, Any, Any]] = []
    names = {"summary": _("active summary"), "context_start": _("context starts at message")}
    for name, label in names.items():
        before, after = row.before.get(name), row.after.get(name)
        if before != after:
            pairs.append((label, _version(name, before), _version(name, after)))
    if row.kind == MemoryEvent.Kind.SETTINGS:
        settings = {name: pair for name, pair in row.detail.items() if name != "trigger"}
        for name, (before, after) in settings.items():
            label = str(getattr(Conversation._meta.get_field(name), "verbose_name", name))
            pairs.append((label, _setting(before), _setting(after)))
    return [{"name": name, "before": before, "after": after} for name, before, after in pairs]


def _version(name: str, value: Any) -> Any:
    if name != "summary":
        return value
    return _("none") if value is None else f"v{value}"


def _setting(value: Any) -> Any:
    """A setting's value as it is shown; None for one that is empty."""
    if isinstance(value, dict):
        return parameters.in_words(value)
    if isinstance(value, list):
        return parameters.toolset_words(value) or None
    return (shorten(value, EXCERPT) if isinstance(value, str) else value) or None


def account(conversation: Conversation) -> dict[str, Any]:
    """What the requests cost so far, in tokens: as counted and as reported, with the summaries, and
    what they would have cost with everything in every request (S0, S1)."""
    requests = list(conversation.requests.select_related("turn").order_by("number"))
    everything = _everything(conversation, requests)
    rows = [
        {
            "number": one.number,
            "turn": one.turn.number,
            "tokens": one.tokens,
            "provider": usage_tokens(one.usage),
            "reply": one.usage.get("completion_tokens"),
            "everything": whole,
            "share": round(100 * one.tokens / Budget(**one.budget).usable),
        }
        for one, whole in zip(requests, everything, strict=True)
    ]
    # Those that were asked for: an archive too had failed tries, a restored version had none.
    written = conversation.summaries.filter(memoryevent__kind=MemoryEvent.Kind.COMPACTION)
    failed = conversation.memory_events.filter(kind=MemoryEvent.Kind.COMPACTION_FAILED)
    spent = [detail.get("usage", {}) for detail in failed.values_list("detail", flat=True)]
    made = [*written.values_list("usage", flat=True), *filter(None, spent)]
    summaries = {
        "count": len(made),
        "input": sum(usage_tokens(usage) or 0 for usage in made),
        "output": sum(usage.get("completion_tokens") or 0 for usage in made),
    }
    sent, whole = sum(one.tokens for one in requests), sum(everything)
    actual = sent + summaries["input"] + summaries["output"]
    return {
        "rows": rows[-LISTED:][::-1],
        "requests": len(rows),
        "sent": sent,
        "replies": sum(one["reply"] or 0 for one in rows),
        "summaries": summaries,
        "actual": actual,
        "everything": whole,
        "saved": round(100 * saving(whole, actual)),
        "curve": curve(
            tuple(accumulate(one.tokens for one in requests)), tuple(accumulate(everything))
        ),
    }


def _everything(conversation: Conversation, requests: list[Request]) -> list[int]:
    """What each request would have cost with every message since the reset before it, in tokens.
    Messages of a replaced turn count for its own requests."""
    rows = conversation.messages.order_by("position")
    positions, sums = [0], [0]
    replaced: dict[int, list[tuple[int, int]]] = {}
    costs_at: dict[int, int] = {}
    for position, tokens, active, turn in rows.values_list(
        "position", "tokens", "active", "turn_id"
    ):
        costs_at[position] = tokens
        if active:
            positions.append(position)
            sums.append(sums[-1] + tokens)
        else:
            replaced.setdefault(turn, []).append((position, tokens))

    def until(position: int) -> int:
        return sums[bisect_right(positions, position) - 1]

    times, starts = _starts(conversation)
    costs = []
    for one in requests:
        start = starts[bisect_right(times, one.created_at)]
        last = max((part["ranges"][-1][1] for part in one.parts if "ranges" in part), default=0)
        system = sum(part.get("tokens", 0) for part in one.parts if part["kind"] in FIXED)
        system += _schemas(one, costs_at)
        own = sum(cost for at, cost in replaced.get(one.turn_id, ()) if at <= last)
        costs.append(system + max(0, until(last) - until(start - 1)) + own)
    return costs


def _schemas(request: Request, costs: Mapping[int, int]) -> int:
    """What the schemas of a request's tools cost, in tokens: all that its parts do not. `costs` are
    those of the messages, by position."""
    if all(part["kind"] != "tools" for part in request.parts):
        return 0
    parts = sum(
        part["tokens"]
        if "tokens" in part
        else sum(
            costs.get(at, 0) for first, last in part["ranges"] for at in range(first, last + 1)
        )
        for part in request.parts
    )
    return max(0, request.tokens - parts)


def _starts(conversation: Conversation) -> tuple[list[datetime], list[int]]:
    """Where the context started: the times of its changes, and the positions before the first of
    them and from each on."""
    rows = conversation.memory_events.order_by("id").values_list("created_at", "before", "after")
    known = [row for row in rows if "context_start" in row[2]]
    first = known[0][1]["context_start"] if known else conversation.context_start
    return [made for made, _, _ in known], [first, *(after["context_start"] for *_, after in known)]


def curve(actual: Sequence[int], everything: Sequence[int]) -> dict[str, Any] | None:
    """Two lines over the requests, as points of an SVG; None where there is no line yet."""
    if len(actual) < 2:
        return None
    top = max(actual[-1], everything[-1], 1)
    last = len(actual) - 1
    steps = [*range(0, last, 1 + last // POINTS), last]

    def points(sums: Sequence[int]) -> str:
        return " ".join(f"{WIDE * i / last:.1f},{HIGH - HIGH * sums[i] / top:.1f}" for i in steps)

    return {
        "actual": points(actual),
        "everything": points(everything),
        "wide": WIDE,
        "high": HIGH,
        "top": top,
    }
