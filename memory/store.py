"""The transcript in the database: conversations, turns and messages. One transaction a function.

Everything here is synchronous and keyword-only; callers on an event loop cross once with
`database_sync_to_async`. No function calls a model.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from memory.core.messages import Message as CoreMessage
from memory.core.presets import policy_from
from memory.core.text import shorten
from memory.core.tokens import message_tokens
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Message, Turn, TurnState
from memory.rows import Partial, Written, append, locked

# Characters of the first message that become the title.
TITLE_LENGTH = 60


class Busy(Exception):
    """Another turn of this conversation is running."""


class IdReused(Exception):
    """The client id belongs to a turn with another text."""


class NotLast(Exception):
    """Only the last turn of a conversation can be run again."""


class NotRunning(Exception):
    """The turn has ended meanwhile: another process took it for left behind."""


def create_conversation(
    *,
    owner: Any,
    policy: Mapping[str, Any],
    system_prompt: str,
    title: str = "",
    tools: Sequence[str] = (),
) -> Conversation:
    """A new conversation. Raises ValueError for a policy against its rules."""
    policy_from(policy)
    return Conversation.objects.create(
        owner=owner,
        policy_data=dict(policy),
        system_prompt=system_prompt,
        title=title,
        tools=list(tools),
    )


def retitle(*, conversation_id: UUID, question: str, title: str) -> bool:
    """Replace the title that was made of the first message, unless its owner chose another."""
    made = Conversation.objects.filter(pk=conversation_id, title=first_title(question))
    return bool(made.update(title=title))


def first_title(question: str) -> str:
    """The title of a conversation until it has a better one: how its first message begins."""
    return shorten(" ".join(question.split()), TITLE_LENGTH)


@transaction.atomic
def start_turn(
    *,
    conversation_id: UUID,
    client_id: str,
    message: CoreMessage | None,
    encoding: str,
    owner: str,
    replaces: int | None = None,
    alive: Collection[int] = (),
) -> tuple[Turn, bool]:
    """Claim the conversation and store the user's message: (turn, whether it is new).

    `alive` are the turns that run in this process. The same client id with the same text gives
    the same turn again. `replaces` is the number of the last turn, which becomes inactive; its
    message is used where none is given. Raises Busy, IdReused, NotLast.
    """
    conversation = locked(conversation_id)
    recover(conversation, alive)
    known = Turn.objects.filter(conversation=conversation, client_id=client_id).first()
    if known is not None:
        first = known.messages.order_by("position").first()
        if message is not None and (first is None or first.content != message.content):
            raise IdReused
        return known, False
    if conversation.turns.filter(state=TurnState.RUNNING).exists():
        raise Busy
    replaced = None
    if replaces is not None:
        replaced, row = _replace(conversation, replaces)
        if message is None:
            message, encoding = row.to_core(0), row.encoding
    if message is None:
        raise ValueError("a turn needs a message, or a turn that it replaces")
    try:
        with transaction.atomic():
            turn = Turn.objects.create(
                conversation=conversation,
                number=conversation.next_turn,
                client_id=client_id,
                owner=owner,
                replaces=replaced,
            )
    except IntegrityError as error:  # another process claimed it at the same moment
        raise Busy from error
    conversation.next_turn += 1
    if not conversation.title:
        conversation.title = first_title(message.content)
    append(conversation, turn, [Written(message)], encoding)
    return turn, True


def _replace(conversation: Conversation, number: int) -> tuple[Turn, Message]:
    """Make the last turn inactive, and every summary that speaks of it invalid.

    Returns it with its user message.
    """
    last = conversation.turns.filter(active=True).order_by("-number").first()
    if last is None or last.number != number:
        raise NotLast
    messages = list(last.messages.order_by("position"))
    last.active = False
    last.save(update_fields=["active"])
    last.messages.update(active=False)
    conversation.summaries.filter(
        valid=True,
        first_position__lte=messages[-1].position,
        last_position__gte=messages[0].position,
    ).update(valid=False)
    conversation.memory_revision += 1
    MemoryEvent.objects.create(
        conversation=conversation,
        kind=MemoryEvent.Kind.TURN_REPLACED,
        revision=conversation.memory_revision,
        detail={"turn": number},
        at_position=conversation.next_position,
    )
    return last, messages[0]


@transaction.atomic
def add_step(*, turn_id: int, step: int, written: Sequence[Written], encoding: str) -> None:
    """Store the calls of a running turn's step, or their results; what is written next belongs to
    step `step`. Raises NotRunning, and Turn.DoesNotExist where the conversation was deleted."""
    turn = Turn.objects.get(pk=turn_id)
    conversation = locked(turn.conversation_id)
    running = Turn.objects.filter(pk=turn_id, state=TurnState.RUNNING)
    if not running.update(step=step, partial="", thoughts="", heartbeat_at=timezone.now()):
        raise NotRunning
    append(conversation, turn, written, encoding)


def delete_conversation(*, conversation_id: UUID) -> None:
    """Delete a conversation with everything that was stored of it: its owner's act."""
    Conversation.objects.filter(pk=conversation_id).delete()


@transaction.atomic
def save_partials(*, partials: Mapping[int, Partial]) -> frozenset[int]:
    """Save what running turns have written so far, by the turns' ids, with a sign of life of each;
    returns those that are to end: a stop was asked, or somebody ended them. A step that is over
    stays as it is.
    """
    running = Turn.objects.filter(pk__in=partials, state=TurnState.RUNNING)
    with connection.cursor() as cursor:
        # By hand: `bulk_update` takes a thousand times as long over building its statement, and
        # the interpreter with it.
        cursor.executemany(
            f"UPDATE {Turn._meta.db_table} SET partial = %s, thoughts = %s"
            " WHERE id = %s AND state = %s AND step = %s",
            [
                (one.text, one.thoughts, number, TurnState.RUNNING.value, one.step)
                for number, one in partials.items()
            ],
        )
    running.update(heartbeat_at=timezone.now())
    stops = dict(running.values_list("pk", "stop_requested"))
    return frozenset(number for number in partials if stops.get(number, True))


def reply_of(*, turn_id: int) -> tuple[Partial, str]:
    """The last step of a turn as far as it is stored, and the turn's state: what was last saved of
    a running one, the whole reply of one that has ended."""
    turn = Turn.objects.get(pk=turn_id)
    if turn.is_running:
        return Partial(turn.step, turn.partial, turn.thoughts), turn.state
    last = turn.messages.order_by("-position").first()
    if last is None or last.role != "assistant" or last.tool_calls:
        return Partial(turn.step, ""), turn.state
    return Partial(turn.step, last.content, last.reasoning), turn.state


def request_stop(*, turn_id: int) -> None:
    """Flag a running turn for its owner, whichever process that is."""
    Turn.objects.filter(pk=turn_id, state=TurnState.RUNNING).update(stop_requested=True)


@transaction.atomic
def finish_turn(
    *,
    turn_id: int,
    state: TurnState,
    reply: Written | None,
    encoding: str,
    error_code: str = "",
    error_detail: str = "",
    thoughts: str = "",
) -> bool:
    """End a running turn in `state` with the reply so far; False if it had ended already.

    A reply of None stores no message; the turn itself then keeps the `thoughts`. The conversation
    is locked first, so a late process cannot finish a turn that was marked interrupted meanwhile.
    """
    turn = Turn.objects.select_related("conversation").get(pk=turn_id)
    conversation = locked(turn.conversation_id)
    if not Turn.objects.filter(pk=turn_id, state=TurnState.RUNNING).exists():
        return False
    turn.thoughts = thoughts
    _end(conversation, turn, state, reply, encoding, error_code, error_detail)
    return True


def _end(
    conversation: Conversation,
    turn: Turn,
    state: TurnState,
    reply: Written | None,
    encoding: str,
    error_code: str = "",
    error_detail: str = "",
) -> None:
    if reply is not None:
        append(conversation, turn, [reply], encoding)
    turn.state = state
    turn.partial = ""
    if reply is not None:
        turn.thoughts = ""  # they are the reply's now
    turn.error_code = error_code
    turn.error_detail = error_detail
    turn.ended_at = timezone.now()
    ended = ["state", "partial", "thoughts", "error_code", "error_detail", "ended_at"]
    turn.save(update_fields=ended)


def _left(turn: Turn | None, alive: Collection[int]) -> bool:
    """Whether its process left a turn behind; one that is `alive` may only wait for the database
    with its signs of life."""
    return turn is not None and turn.is_stale and turn.pk not in alive


def recover(conversation: Conversation, alive: Collection[int] = ()) -> Turn | None:
    """Mark a turn that its process left behind as interrupted, keeping its partial reply.

    To be called with the conversation locked; `alive` are the turns that run in this process.
    """
    turn = conversation.turns.filter(state=TurnState.RUNNING).first()
    if turn is None or not _left(turn, alive):
        return None
    counter = counter_for(conversation.model)
    reply = None
    if turn.partial.strip():
        said = CoreMessage("assistant", turn.partial)
        said = replace(said, tokens=message_tokens(said, counter))
        reply = Written(said, turn.thoughts, counter.count(turn.thoughts))
    _end(conversation, turn, TurnState.INTERRUPTED, reply, counter.name)
    return turn


def recover_conversation(*, conversation_id: UUID, alive: Collection[int] = ()) -> Turn | None:
    """`recover` for whoever opens or connects: the turn it ended, or None."""
    if not _left(running_turn(conversation_id=conversation_id), alive):
        return None
    with transaction.atomic():
        return recover(locked(conversation_id), alive)


def running_turn(*, conversation_id: UUID) -> Turn | None:
    """The turn that is running, if any."""
    return Turn.objects.filter(conversation_id=conversation_id, state=TurnState.RUNNING).first()
