"""The Summary tab: every version, what it stands for, and how it differs from another."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import Http404

from chatapp import folds, words
from chatapp.policy_words import literal_kind, triggers
from chatapp.provider import target_of
from chatapp.transcript import PAGE
from memory import versions
from memory.core.carrying import Candidate, same
from memory.core.diff import word_diff
from memory.core.literals import Literal, spans
from memory.core.text import shorten
from memory.models import Conversation, Message, Summary, TurnState
from memory.service import budget_of

# The newest versions that the tab lists; older ones are reached by their number.
LISTED = 100
# Of the messages that a version stands for, how many are listed, and how much of each is shown.
SOURCES = 200
EXCERPT = 90


def summary_tab(
    conversation: Conversation,
    *,
    version: int | None = None,
    against: int | None = None,
    draft: str | None = None,
    error: str = "",
) -> dict[str, Any]:
    """What the template of the Summary tab shows.

    `version` is the one that is opened (default: the active or else the newest one), `against` the
    one it is compared with (default: its parent). `draft` and `error` give a refused edit back.
    Raises Http404 for an unknown version.
    """
    rows = conversation.summaries.select_related("parent", "author").order_by("-version")
    active = conversation.active_summary()
    # Without what only the opened one shows: it may be much.
    heavy = ("literals", "unsupported", "text")
    light = rows.defer(*heavy, *(f"parent__{name}" for name in heavy))
    listed = [_row(row, active) for row in light[:LISTED]]
    opened = None
    if version is not None:
        opened = rows.filter(version=version).first()
        if opened is None:
            raise Http404
    elif active is not None or listed:
        opened = rows.filter(version=active.version).first() if active else rows.first()
    if against is not None and opened is None:
        raise Http404
    return {
        "conversation": conversation,
        "versions": listed,
        "active": active.version if active else None,
        "opened": _opened(opened, active, against) if opened else None,
        # What an address must say to show the same again; nothing for "the active one".
        "query": urlencode(
            {name: value for name, value in (("version", version), ("against", against)) if value}
        ),
        "draft": draft if draft is not None else (opened.text if opened else ""),
        "error": error,
        "undo_label": words.undo_label(versions.last_undoable(conversation)),
        "rule": _rule(conversation, active),
    }


def _rule(conversation: Conversation, active: Summary | None) -> dict[str, Any]:
    """What decides when the next summary comes, and the most tokens that one may have by hand."""
    policy = conversation.policy
    budget = budget_of(conversation, target_of(conversation))
    start = max(conversation.context_start, active.last_position + 1 if active else 0)
    waiting = conversation.messages.filter(active=True, position__gte=start)
    everything, counted = waiting.count(), waiting.filter(counts=True).count()
    return {
        "older": policy.older,
        "waiting": counted if policy.counting == "exchange" else everything,
        "without_steps": policy.counting == "exchange" and counted < everything,
        "held": _held(conversation),
        "triggers": triggers(policy, budget),
        "when": policy.when,
        "limit": budget.usable // 2,
    }


def _held(conversation: Conversation) -> int:
    """How many turns must end before the policy folds again by itself."""
    running = conversation.turns.filter(state=TurnState.RUNNING).exists()
    return max(0, conversation.hold_turn - conversation.next_turn + running)


def _row(row: Summary, active: Summary | None) -> dict[str, Any]:
    return {
        "version": row.version,
        "kind": row.kind,
        "kind_label": row.get_kind_display(),
        "is_active": active is not None and row.pk == active.pk,
        "undone": row.undone,
        "valid": row.valid,
        "first": row.first_position,
        "last": row.last_position,
        "before": row.tokens_before,
        "after": row.tokens_after,
        "percent": round(100 * row.tokens_after / row.tokens_before) if row.tokens_before else 0,
        "model": row.model,
        "author": str(row.author) if row.author else "",
        "seconds": row.seconds,
        "created_at": row.created_at,
        "parent": row.parent.version if row.parent else None,
    }


def _opened(row: Summary, active: Summary | None, against: int | None) -> dict[str, Any]:
    """The opened version with its text and the difference to its parent or another version."""
    other = row.parent
    if against is not None:
        other = row.conversation.summaries.filter(version=against).first()
        if other is None:
            raise Http404
    shown, part, event = _row(row, active), row.to_core(), folds.fold_event(row)
    # A version from before a reset, or one that speaks of a replaced turn, cannot come back.
    within = row.valid and row.first_position >= row.conversation.context_start
    others = row.conversation.summaries.exclude(pk=row.pk).order_by("-version")
    return shown | {
        "text": row.text,
        "parts": _marked(part.text, part.unsupported),
        "carried": _by_kind(part.candidates[: part.fitting]),
        "pushed_out": _by_kind(part.candidates[part.fitting :]),
        "pushed_out_count": len(part.candidates) - part.fitting,
        "unsupported": [one.text for one in part.unsupported],
        "file": row.file,
        "against": other.version if other else None,
        "others": list(others.values_list("version", flat=True)[:LISTED]),
        "diff": word_diff(other.text, row.text) if other else (),
        "can_edit": shown["is_active"],
        "can_restore": within and not shown["is_active"],
        "before_reset": row.first_position < row.conversation.context_start,
        "failures": folds.failures(event),
        "sources": _sources(row),
        "fold": folds.folded(row, event),
    }


def _marked(text: str, unsupported: Sequence[Literal]) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is a literal that the source does not have."""
    pieces, done = [], 0
    for start, end, literal in spans(text) if unsupported else ():
        if any(same(literal, one) for one in unsupported):
            pieces += [(text[done:start], False), (text[start:end], True)]
            done = end
    return [piece for piece in (*pieces, (text[done:], False)) if piece[0]]


def _by_kind(found: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Literals under what they are, the most worth keeping first."""
    kinds: dict[str, list[Candidate]] = {}
    for one in found:
        kinds.setdefault(literal_kind(one.literal.kind), []).append(one)
    return [
        {
            "kind": kind,
            "literals": [{"text": one.literal.text, "position": one.position} for one in members],
        }
        for kind, members in kinds.items()
    ]


def _sources(row: Summary) -> list[dict[str, Any]]:
    """The messages that a version stands for, with the page of the transcript that has each."""
    messages = row.conversation.messages.filter(active=True).order_by("-position")
    edge = list(messages.values_list("position", flat=True)[PAGE - 1 : PAGE])
    newest = edge[0] if edge else 0
    within = messages.filter(
        position__gte=row.first_position, position__lte=row.last_position
    ).order_by("position")
    return [
        {
            "position": one.position,
            "role": one.get_role_display(),
            "excerpt": shorten(" ".join(_said(one)[: 4 * EXCERPT].split()), EXCERPT),
            "before": one.position + PAGE // 2 if one.position < newest else None,
        }
        for one in within[:SOURCES]
    ]


def _said(message: Message) -> str:
    """What a message says, or which tools it calls."""
    return message.content or ", ".join(call["name"] for call in message.tool_calls)
