"""Groups and what became of them, for the tests of shortening."""

from collections.abc import Sequence

from memory.core.groups import Group, group, group_tokens
from memory.core.messages import Message, ToolCall
from memory.core.shortening import Shortened
from memory.core.tokens import CharacterCounter, Counter
from tests.builders import numbered

CHARACTERS = CharacterCounter()
FAMILY = "👨‍👩‍👧‍👦"


def marker(left_out: str) -> str:
    return f"\n[… {left_out} characters left out; the transcript has them …]\n"


def calling(arguments: str, name: str = "write_file") -> Message:
    return Message("assistant", "", tool_calls=(ToolCall("call_0", name, arguments),))


def groups_of(*messages: Message, counter: Counter = CHARACTERS) -> tuple[Group, ...]:
    return group(numbered(messages, plain=False, counter=counter))


def cost(groups: Sequence[Group], counter: Counter = CHARACTERS) -> int:
    return sum(group_tokens(members, counter) for members in groups)


def lengths(shortened: Shortened | None) -> dict[int, int]:
    assert shortened is not None
    return {position: len(message.content) for position, message in shortened.items()}
