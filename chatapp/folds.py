"""What was folded into a summary, and why it is what it is: the same wherever it is told."""

from typing import Any

from chatapp import words
from memory.models import MemoryEvent, Summary


def fold_event(summary: Summary) -> MemoryEvent | None:
    """The compaction that made a summary; None for one that was edited or restored."""
    return summary.memoryevent_set.filter(kind=MemoryEvent.Kind.COMPACTION).first()


def folded(summary: Summary, event: MemoryEvent | None) -> dict[str, Any]:
    """What the words on a fold are made of. `event` is its compaction: only that folded something
    now, so `count` is None without it. `base` is the version that was folded in."""
    count = base = None
    if event is not None:
        count, base = summary.messages_folded, event.detail.get("base")
    return {
        "version": summary.version,
        "first": summary.first_position,
        "last": summary.last_position,
        "count": count,
        "base": base,
        "before": summary.tokens_before,
        "after": summary.tokens_after,
        "carried": summary.carried,
    }


def failures(event: MemoryEvent | None) -> list[str]:
    """Why the tries of a compaction failed, in words."""
    codes = event.detail.get("failures", ()) if event else ()
    return [words.failure(code) for code in dict.fromkeys(codes)]
