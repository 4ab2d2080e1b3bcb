"""The Summary tab: every version, what it stands for, and how it differs from another."""

from typing import Any

from django.http import Http404

from chatapp import words
from memory import versions
from memory.core.diff import word_diff
from memory.models import Conversation, Summary

# The newest versions that the tab lists; older ones are reached by their number.
LISTED = 100


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
    listed = [_row(row, active) for row in rows[:LISTED]]
    opened = None
    if version is not None:
        opened = rows.filter(version=version).first()
        if opened is None:
            raise Http404
    elif active is not None or listed:
        opened = rows.filter(version=active.version).first() if active else rows.first()
    return {
        "conversation": conversation,
        "versions": listed,
        "opened": _opened(opened, active, against) if opened else None,
        "draft": draft if draft is not None else (opened.text if opened else ""),
        "error": error,
        "undo_label": words.undo_label(versions.last_undoable(conversation)),
    }


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
    shown = _row(row, active)
    # A version from before a reset, or one that speaks of a replaced turn, cannot come back.
    within = row.valid and row.first_position >= row.conversation.context_start
    return shown | {
        "text": row.text,
        "against": other.version if other else None,
        "diff": word_diff(other.text, row.text) if other else (),
        "can_edit": shown["is_active"],
        "can_restore": within and not shown["is_active"],
        "failures": [words.failure(code) for code in _failures(row)],
        "older": row.version - 1 or None,
    }


def _failures(row: Summary) -> list[str]:
    event = row.memoryevent_set.filter(kind="compaction").first()
    return list(dict.fromkeys(event.detail.get("failures", []))) if event else []
