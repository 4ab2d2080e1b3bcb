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
class Message:
    """One message of a transcript.

    `position` orders it within its conversation (from 1, never reused), `turn` is the number of
    its turn, `tokens` its whole cost in a request (text, calls and overheads).
    """

    role: Role
    content: str
    position: int = 0
    turn: int = 0
    tokens: int = 0
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    name: str = ""

    @property
    def counts(self) -> bool:
        """Whether S0's rules count it as a message: user messages and replies without calls."""
        return self.role == "user" or (self.role == "assistant" and not self.tool_calls)

    def to_wire(self) -> dict[str, Any]:
        """The message in the chat-completions format, with only the keys that it needs.

        Content is null only beside tool calls, never elsewhere: servers differ on both.
        """
        wire: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            wire["content"] = self.content or None
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
