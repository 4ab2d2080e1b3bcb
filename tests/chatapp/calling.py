"""Short ways to make a tool of a value, and to call it."""

import uuid
from datetime import UTC, datetime
from typing import Any

from chatapp.tools.registry import Tool, Toolbox, ToolContext, tool
from chatapp.tools.running import Outcome, run_calls
from memory.core.messages import ToolCall

CONTEXT = ToolContext(uuid.UUID(int=7), "en", lambda: datetime(2026, 6, 29, 14, 5, tzinfo=UTC))


def call(name: str, arguments: str = "{}", id_: str = "c1") -> ToolCall:
    return ToolCall(id_, name, arguments)


def giving(value: Any, name: str = "get", **options: Any) -> Tool:
    @tool(name=name, **options)
    def get() -> Any:
        """Get it."""
        if isinstance(value, BaseException):
            raise value
        return value

    return get


async def run(one: Tool, arguments: str = "{}", **options: Any) -> Outcome:
    (outcome,) = await run_calls([call(one.name, arguments)], Toolbox([one]), CONTEXT, **options)
    return outcome
