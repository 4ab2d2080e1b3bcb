"""A fork: a new conversation that begins as another one was up to a message."""

from uuid import UUID

from django.db import transaction

from memory import versions
from memory.models import Blob, Conversation, MemoryEvent, Summary, Turn
from memory.rows import locked


@transaction.atomic
def fork(*, conversation_id: UUID, position: int, title: str) -> Conversation:
    """Copy the active messages up to `position`, with settings, reset and summary.

    Positions stay, so that the newest standing summary that ends before the cut still covers what
    it covered. Turns that end later are cut there and count as complete. Requests and events are
    not copied: nothing was sent in the new conversation yet, and one event says what it inherited.
    Raises Message.DoesNotExist where no active message has this position.
    """
    source = locked(conversation_id)
    source.messages.get(position=position, active=True)
    copy = Conversation.objects.create(
        owner=source.owner,
        title=title,
        system_prompt=source.system_prompt,
        model=source.model,
        window=source.window,
        reply_reserve=source.reply_reserve,
        policy_data=source.policy_data,
        tools=source.tools,
        max_steps=source.max_steps,
        turn_tokens=source.turn_tokens,
        next_position=position + 1,
        context_start=min(source.context_start, position + 1),
    )
    wholes = set()
    rows = source.messages.filter(active=True, position__lte=position).select_related("turn")
    turns: dict[int, Turn] = {}
    for row in rows.order_by("position"):
        if row.turn_id not in turns:
            old = row.turn
            state = "complete" if old.is_running else old.state
            turns[row.turn_id] = Turn.objects.create(
                conversation=copy,
                number=old.number,
                client_id=old.client_id,
                state=state,
                error_code=old.error_code,
                error_detail=old.error_detail,
                step=old.step,
                ended_at=old.ended_at,
            )
        wholes.add(row.detail.get("whole"))
        row.pk, row.conversation, row.turn = None, copy, turns[row.turn_id]
        row._state.adding = True
        row.save(force_insert=True)
    copy.next_turn = 1 + max(turn.number for turn in turns.values())
    copy.save(update_fields=["next_turn"])
    for blob in Blob.objects.filter(conversation=source, sha256__in=wholes - {None}):
        blob.pk, blob.conversation = None, copy
        blob.save(force_insert=True)
    versions.record(
        copy,
        MemoryEvent.Kind.FORK,
        {"summary": None, "context_start": 1},
        detail={"title": source.title},
        summary=_copy_summary(source, copy, position),
    )
    return copy


def _copy_summary(source: Conversation, copy: Conversation, position: int) -> Summary | None:
    standing = source.summaries.filter(
        undone=False,
        valid=True,
        first_position__gte=copy.context_start,
        last_position__lte=position,
    )
    newest = standing.order_by("-version").first()
    if newest is not None:
        newest.pk, newest.conversation, newest.parent, newest.version = None, copy, None, 1
        newest.file = ""  # the original's, which goes with the original
        newest._state.adding = True
        newest.save(force_insert=True)
    return newest
