"""Summary versions and memory events in the database. One transaction a function.

Nothing is ever changed in place but the marks `undone` and `valid`: every change of the memory
appends an event with the small state before and after it, and can be taken back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from memory.core.carrying import Carried, to_json
from memory.models import Conversation, MemoryEvent, Summary, TurnState
from memory.rows import locked


class TurnRunning(Exception):
    """The memory cannot be changed like this while a turn is running."""


class Stale(Exception):
    """The version that was to be edited is not the active one any more."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A summary that was made and checked but not stored, as in Summary. `base` is the version that
    was folded in, which a renewed archive (`parent_version`) is not."""

    kind: str
    text: str
    first: int
    last: int
    folded: int
    tokens_before: int
    tokens_after: int
    parent_version: int | None = None
    base: int | None = None
    model: str = ""
    prompt_version: str = ""
    seconds: float = 0.0
    usage: dict[str, int] = field(default_factory=dict)
    failures: tuple[str, ...] = ()
    trigger: str = ""
    literals: Sequence[Sequence[str | int]] = ()
    carried: int = 0
    unsupported: Sequence[Sequence[str]] = ()
    turn: int = 0
    file: str = ""


def state_of(conversation: Conversation) -> dict[str, Any]:
    """The small state that events record: active summary version and context start."""
    summary = conversation.active_summary()
    return {
        "summary": summary.version if summary else None,
        "context_start": conversation.context_start,
    }


def _next_version(conversation: Conversation) -> int:
    newest = conversation.summaries.aggregate(Max("version"))["version__max"] or 0
    return int(newest) + 1


def record(
    conversation: Conversation, kind: str, before: dict[str, Any], **more: Any
) -> MemoryEvent:
    """Append an event and raise the revision, in the caller's transaction."""
    conversation.memory_revision += 1
    conversation.save(update_fields=["memory_revision", "context_start", "hold_turn", "updated_at"])
    return MemoryEvent.objects.create(
        conversation=conversation,
        kind=kind,
        revision=conversation.memory_revision,
        before=before,
        after=state_of(conversation),
        at_position=conversation.next_position,
        **more,
    )


@transaction.atomic
def commit_summary(
    *, conversation_id: UUID, revision: int, draft: Draft
) -> tuple[Summary, MemoryEvent] | None:
    """Store a version, if the memory's revision is still the one that was planned on."""
    conversation = locked(conversation_id)
    if conversation.memory_revision != revision:
        return None
    before = state_of(conversation)
    parent = None
    if draft.parent_version is not None:
        parent = conversation.summaries.get(version=draft.parent_version)
    summary = Summary.objects.create(
        conversation=conversation,
        version=_next_version(conversation),
        kind=draft.kind,
        text=draft.text,
        first_position=draft.first,
        last_position=draft.last,
        messages_folded=draft.folded,
        parent=parent,
        tokens_before=draft.tokens_before,
        tokens_after=draft.tokens_after,
        model=draft.model,
        prompt_version=draft.prompt_version,
        seconds=draft.seconds,
        usage=draft.usage,
        literals=list(draft.literals),
        carried=draft.carried,
        unsupported=list(draft.unsupported),
        turn=draft.turn,
        file=draft.file,
    )
    detail = {"trigger": draft.trigger, "failures": list(draft.failures), "base": draft.base}
    event = record(
        conversation, MemoryEvent.Kind.COMPACTION, before, detail=detail, summary=summary
    )
    return summary, event


@transaction.atomic
def derive_summary(
    *,
    conversation_id: UUID,
    version: int,
    text: str,
    tokens: int,
    carried: Carried,
    author: Any,
    restore: bool,
    only_active: bool = False,
) -> MemoryEvent:
    """Append a version made of another by hand: edited, or restored as it was.

    It takes over the other one's range: where that ends earlier than the active one's, the later
    messages stand verbatim again. `tokens` is its cost with `carried`, the literals beside it.
    Raises Stale if the version is not active any more and must be (`only_active`),
    Summary.DoesNotExist for one that is unknown, invalid, or from before the last reset.
    """
    conversation = locked(conversation_id)
    source = conversation.summaries.get(
        version=version, valid=True, first_position__gte=conversation.context_start
    )
    active = conversation.active_summary()
    if only_active and source != active:
        raise Stale
    before = state_of(conversation)
    summary = Summary.objects.create(
        conversation=conversation,
        version=_next_version(conversation),
        kind=source.kind if restore else Summary.Kind.HUMAN,
        text=text,
        first_position=source.first_position,
        last_position=source.last_position,
        messages_folded=source.messages_folded,
        parent=source,
        author=author,
        tokens_before=source.tokens_before,
        tokens_after=tokens,
        model=source.model if restore else "",
        prompt_version=source.prompt_version if restore else "",
        literals=to_json(carried.candidates),
        carried=carried.fitting,
        unsupported=source.unsupported if restore else [],
        turn=source.turn,
        file=source.file,
    )
    if source != active:
        # What the older version does not cover would be folded again at once.
        conversation.hold_turn = max(conversation.hold_turn, conversation.next_turn + 1)
    kind = MemoryEvent.Kind.RESTORE if restore else MemoryEvent.Kind.EDIT
    return record(conversation, kind, before, detail={"version": version}, summary=summary)


@transaction.atomic
def change_settings(
    *, conversation_id: UUID, changes: Mapping[str, Any], trigger: str = ""
) -> MemoryEvent | None:
    """Change columns of a conversation that decide what the next request is; None if none differ.

    The event names what changed, with the old and the new values, and where it was not the owner,
    what made the change (`trigger`).
    """
    conversation = locked(conversation_id)
    differ = {
        name: value for name, value in changes.items() if getattr(conversation, name) != value
    }
    if not differ:
        return None
    detail: dict[str, Any] = {
        name: [getattr(conversation, name), value] for name, value in differ.items()
    }
    if trigger:
        detail["trigger"] = trigger
    for name, value in differ.items():
        setattr(conversation, name, value)
    conversation.save(update_fields=list(differ))
    kind = MemoryEvent.Kind.SETTINGS
    return record(conversation, kind, state_of(conversation), detail=detail)


@transaction.atomic
def record_failure(
    *,
    conversation_id: UUID,
    failures: tuple[str, ...],
    trigger: str,
    retry_turn: int,
    usage: Mapping[str, int] | None = None,
    replacing: int | None = None,
) -> MemoryEvent | None:
    """Note a compaction that changed nothing, and what it cost; automatic ones wait until
    `retry_turn`. None, and nothing is noted, where the version that it was to replace
    (`replacing`) is not the active one any more."""
    conversation = locked(conversation_id)
    active = conversation.active_summary()
    if replacing is not None and (active is None or active.version != replacing):
        return None
    conversation.hold_turn = max(conversation.hold_turn, retry_turn)
    turn = conversation.next_turn
    detail = {"trigger": trigger, "failures": list(failures), "turn": turn}
    detail |= {"usage": dict(usage)} if usage else {}
    kind = MemoryEvent.Kind.COMPACTION_FAILED
    return record(conversation, kind, state_of(conversation), detail=detail)


def last_failure(*, conversation_id: UUID, trigger: str) -> int | None:
    """The number of the turn that was to come when a compaction with this trigger last failed;
    None if none did."""
    events = MemoryEvent.objects.filter(
        conversation_id=conversation_id,
        kind=MemoryEvent.Kind.COMPACTION_FAILED,
        detail__trigger=trigger,
    )
    event = events.order_by("-id").first()
    return int(event.detail["turn"]) if event else None


@transaction.atomic
def reset(*, conversation_id: UUID) -> MemoryEvent | None:
    """Let the context start anew after everything said so far; None if nothing was said since it
    began. Raises TurnRunning."""
    conversation = locked(conversation_id)
    if conversation.turns.filter(state=TurnState.RUNNING).exists():
        raise TurnRunning
    if conversation.context_start == conversation.next_position:
        return None
    before = state_of(conversation)
    conversation.context_start = conversation.next_position
    return record(conversation, MemoryEvent.Kind.RESET, before)


def last_undoable(conversation: Conversation) -> MemoryEvent | None:
    """The newest event that an undo would take back; not a version that is invalid anyway."""
    events = conversation.memory_events.filter(
        kind__in=MemoryEvent.UNDOABLE, undone_by__isnull=True
    ).exclude(summary__valid=False)
    return events.select_related("summary").order_by("-id").first()


@transaction.atomic
def undo(*, conversation_id: UUID) -> MemoryEvent | None:
    """Take back the newest reset or compaction: the undo's event, or None if there is nothing.

    Automatic compaction then waits for one more finished turn.
    """
    conversation = locked(conversation_id)
    event = last_undoable(conversation)
    if event is None:
        return None
    before = state_of(conversation)
    if event.kind == MemoryEvent.Kind.RESET:
        conversation.context_start = event.before["context_start"]
    elif event.summary is not None:
        event.summary.undone = True
        event.summary.save(update_fields=["undone"])
    conversation.hold_turn = max(conversation.hold_turn, conversation.next_turn + 1)
    detail = {"kind": event.kind, "version": event.summary.version if event.summary else None}
    return record(conversation, MemoryEvent.Kind.UNDO, before, undoes=event, detail=detail)
