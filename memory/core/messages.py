"""Messages as the memory sees them: immutable values, apart from any database or wire format."""

from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool as the model wrote it; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Habits:
    """What a provider wants of the messages that it is sent.

    `reasoning` is the field in which the model's own thoughts are sent back to it; with "" they are
    not. Where a message has calls and no text its content is null, or with `null_content` False the
    empty string: servers differ on both.
    """

    reasoning: str = ""
    null_content: bool = True


PLAIN = Habits()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript.

    `position` orders it within its conversation (from 1, never reused), `turn` is the number of
    its turn, `tokens` its whole cost in a request (text, thoughts, calls and overheads).
    `reasoning` are the model's thoughts before it, only where they are sent back.
    """

    role: Role
    content: str
    position: int = 0
    turn: int = 0
    tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""
    reasoning: str = ""

    @property
    def counts(self) -> bool:
        """Whether S0's rules count it as a message: user messages and replies without calls."""
        return self.role == "user" or (self.role == "assistant" and not self.tool_calls)

    def to_wire(self, habits: Habits = PLAIN) -> dict[str, Any]:
        """The message in the chat-completions format, with only the keys that it needs.

        Content is null only beside tool calls, never elsewhere.
        """
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if habits.reasoning and self.role == "assistant":
            # Also where there is none: what wants the field wants it everywhere.
            wire[habits.reasoning] = self.reasoning
        if self.tool_calls:
            wire["content"] = self.content or (None if habits.null_content else "")
            wire["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in self.tool_calls
            ]
        if self.role == "tool":
            wire["tool_call_id"] = self.tool_call_id
        return wire
