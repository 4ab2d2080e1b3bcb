"""Reading the transcript: what the next request may need, and messages by their positions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from memory.core.calibration import Measured
from memory.core.messages import Message as CoreMessage
from memory.core.policy import Policy
from memory.core.tokens import Counter, message_tokens
from memory.models import Conversation, Message, Request, Summary, usage_tokens
from memory.store import running_turn

# The newest requests whose counts by the provider are taken into account.
MEASURED = 8


@dataclass(frozen=True, slots=True)
class Loaded:
    """The stored context of a conversation: what the memory works on.

    `prior` are the messages after the summary and before the running turn, `current` those of the
    running turn.
    """

    conversation: Conversation
    summary: Summary | None
    prior: tuple[CoreMessage, ...]
    current: tuple[CoreMessage, ...]


def load(
    *, conversation: Conversation, policy: Policy, counter: Counter, reasoning: bool = False
) -> Loaded:
    """The messages that the next request may need, in a constant number of queries; with their
    thoughts where `reasoning` says so.

    Only what lies after the context start and the active summary is read; a policy that leaves
    older messages out reads no more than it can keep.
    """
    summary = conversation.active_summary() if policy.older == "summary" else None
    start = max(conversation.context_start, summary.last_position + 1 if summary else 0)
    rows = Message.objects.filter(conversation=conversation, active=True)
    running = running_turn(conversation_id=conversation.pk)
    if policy.older == "leave-out" and policy.keep_messages is not None:
        # The running turn is loaded whole, however many calls and results it has.
        counting = rows.filter(position__gte=start).order_by("-position")
        counting = counting.exclude(turn=running) if running else counting
        if policy.counting == "exchange":
            counting = counting.filter(counts=True)
        newest = counting.values_list("position", flat=True)
        # One more than can be kept: the first one left out.
        edge = list(newest[policy.keep_messages : policy.keep_messages + 1])
        start = edge[0] if edge else start
    # One lower bound only: of two, SQLite searches by the first and reads all that lies between.
    rows = rows.filter(position__gte=start)
    number = running.number if running else 0
    rows = rows.select_related("turn").order_by("position")
    messages = [_current(row, counter, reasoning) for row in rows]
    return Loaded(
        conversation,
        summary,
        tuple(message for message in messages if message.turn != number),
        tuple(message for message in messages if message.turn == number),
    )


def stretch(
    *, conversation: Conversation, first: int, last: int, counter: Counter
) -> tuple[CoreMessage, ...]:
    """The active messages of these positions, in order."""
    rows = Message.objects.filter(
        conversation=conversation, active=True, position__range=(first, last)
    )
    ordered = rows.select_related("turn").order_by("position")
    return tuple(_current(row, counter) for row in ordered)


def _current(row: Message, counter: Counter, reasoning: bool = False) -> CoreMessage:
    """The row as a value, counted anew if it was counted with another encoding."""
    message = row.to_core(row.turn.number, reasoning=reasoning)
    if row.encoding != counter.name:
        return replace(message, tokens=message_tokens(message, counter))
    return message


def core_messages(
    *, conversation_id: UUID, positions: Sequence[int], reasoning: bool = False
) -> dict[int, CoreMessage]:
    """The messages at these positions, active or not, by position; `reasoning` as in `load`."""
    rows = Message.objects.filter(conversation_id=conversation_id, position__in=positions)
    return {
        row.position: row.to_core(row.turn.number, reasoning=reasoning)
        for row in rows.select_related("turn")
    }


def measured(*, conversation: Conversation, model: str, encoding: str) -> list[Measured]:
    """What the newest requests to this model came to, counted with this encoding and as the
    provider counted them; those alone of which it said so. What was guessed of one that it refused
    holds until it counts another."""
    rows = Request.objects.filter(conversation_id=conversation.pk).order_by("-number")
    newest = rows.values_list("model", "encoding", "tokens", "usage")[:MEASURED]
    found: list[Measured] = []
    for of, by, tokens, usage in newest:
        refused, reported = usage.get("refused_tokens"), usage_tokens(usage)
        if (of, by) != (model, encoding) or (usage.get("guessed") and found):
            continue
        if refused or reported:
            found.append(Measured(tokens, refused or reported or 0, bool(refused)))
    return found
