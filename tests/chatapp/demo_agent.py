"""A small agent loop around the demo model: it asks, runs the real tools, and asks again."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from chatapp.demo_model import Completion, complete
from chatapp.tools.registry import Toolbox, ToolContext
from chatapp.tools.running import run_calls
from chatapp.tools.shop import SHOP
from memory.core.messages import Message, ToolCall

MONDAY = datetime(2026, 6, 29, 14, 5, tzinfo=UTC)  # the day of S0's refund number
Made = list[tuple[str, str]]  # the names and arguments of calls


def context(language: str = "en") -> ToolContext:
    return ToolContext(uuid.uuid4(), language, lambda: MONDAY)


@dataclass
class Agent:
    """One conversation. `steps` holds the calls of every request of the newest turn but its last,
    `completions` all answers of it."""

    language: str = "en"
    box: Toolbox = field(default_factory=lambda: SHOP)
    options: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    steps: list[Made] = field(default_factory=list)
    completions: list[Completion] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = context(self.language)
        self.messages = self.messages or [{"role": "system", "content": "Be kind."}]

    def body(self) -> dict[str, Any]:
        return {
            "model": "demo",
            "messages": self.messages,
            "tools": self.box.schemas(),
            **self.options,
        }

    async def ask(self, text: str) -> str:
        """The reply at the end of the turn."""
        self.messages.append({"role": "user", "content": text})
        self.steps, self.completions = [], []
        while True:
            answered = complete(self.body())
            message = answered.whole()["choices"][0]["message"]
            del message["refusal"]
            self.messages.append(message)
            self.completions.append(answered)
            if not answered.calls:
                return answered.text
            assert len(self.steps) < 10
            self.steps.append([(call.name, call.arguments) for call in answered.calls])
            calls = [
                ToolCall(one["id"], one["function"]["name"], one["function"]["arguments"])
                for one in message["tool_calls"]
            ]
            for outcome in await run_calls(calls, self.box, self.context):
                self.messages.append(
                    {
                        "role": "tool",
                        "tool_call_id": outcome.call_id,
                        "content": outcome.content,
                    }
                )

    def stored(self) -> list[Message]:
        """The conversation as the memory has it."""
        return [
            Message(
                one["role"],
                one["content"] or "",
                position,
                tool_calls=tuple(
                    ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                    for call in one.get("tool_calls", ())
                ),
            )
            for position, one in enumerate(self.messages)
            if one["role"] != "system"
        ]
