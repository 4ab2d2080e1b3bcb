"""Groups: the smallest things that are kept or cut.

A group is a user message, an assistant message without calls, or an assistant message with tool
calls plus all its results. Results belong to the call directly before them: pairing is by
adjacency, never by id alone, since ids repeat in real data.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.core.messages import Message
from memory.core.tokens import Counter, message_tokens

MISSING_RESULT = "(no result: the call was interrupted)"


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive messages that stand or fall together; never empty.

    A group that begins with a tool result is an orphan: its call is unknown, so it stays in the
    transcript and is not sent.
    """

    messages: tuple[Message, ...]

    @property
    def first(self) -> int:
        """Position of its first message."""
        return self.messages[0].position

    @property
    def last(self) -> int:
        """Position of its last message."""
        return self.messages[-1].position

    @property
    def turn(self) -> int:
        return self.messages[0].turn

    @property
    def is_orphan(self) -> bool:
        return self.messages[0].role == "tool"

    @property
    def counted(self) -> int:
        """How many of its messages S0's rules count: what follows its first one are results."""
        return int(self.messages[0].counts)

    @property
    def is_answered(self) -> bool:
        """Whether its results are those of its calls, one for each and in their order."""
        ids = [call.id for call in self.messages[0].tool_calls]
        return ids == [message.tool_call_id for message in self.messages[1:]]

    @property
    def begins_tail(self) -> bool:
        """Whether a tail may begin here: at a user message or a whole call group."""
        first = self.messages[0]
        return first.role == "user" or bool(first.tool_calls)


def group(messages: Iterable[Message]) -> tuple[Group, ...]:
    """The messages as groups; together they hold every message once, in order."""
    groups: list[list[Message]] = []
    for message in messages:
        previous = groups[-1] if groups else None
        if (
            message.role == "tool"
            and previous
            and (previous[0].tool_calls or previous[0].role == "tool")
        ):
            previous.append(message)
        else:
            groups.append([message])
    return tuple(Group(tuple(members)) for members in groups)


def sendable(members: Group, counter: Counter) -> tuple[tuple[Message, bool], ...]:
    """The messages of a group as a provider accepts them, each with whether it was made up here.

    Every call is followed by exactly one result, in the order of the calls; a missing one becomes
    a marked stub, a result that answers none of the calls is left out. Orphans give nothing.
    """
    head = members.messages[0]
    if members.is_orphan:
        return ()
    if not head.tool_calls:
        return ((head, False),)
    if members.is_answered:
        return tuple([(message, False) for message in members.messages])
    results = list(members.messages[1:])
    sent: list[tuple[Message, bool]] = [(head, False)]
    for call in head.tool_calls:
        match = next((one for one in results if one.tool_call_id == call.id), None)
        if match is not None:
            results.remove(match)
            sent.append((match, False))
        else:
            sent.append((_stub(call.id, head, counter), True))
    return tuple(sent)


def _stub(call_id: str, head: Message, counter: Counter) -> Message:
    stub = Message("tool", MISSING_RESULT, turn=head.turn, tool_call_id=call_id)
    tokens = message_tokens(stub, counter)
    return Message("tool", MISSING_RESULT, turn=head.turn, tool_call_id=call_id, tokens=tokens)


def group_tokens(members: Group, counter: Counter) -> int:
    """What a group costs in a request, in tokens."""
    first = members.messages[0]
    if not first.tool_calls:  # most groups; thousands are planned over
        return 0 if first.role == "tool" else first.tokens
    if members.is_answered:
        return sum([message.tokens for message in members.messages])
    return sum(message.tokens for message, _ in sendable(members, counter))


def positions(groups: Sequence[Group]) -> tuple[int, ...]:
    """The positions of all messages in the groups."""
    return tuple(message.position for one in groups for message in one.messages)
