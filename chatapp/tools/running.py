"""Running the calls of one step: all at once, results in the order of the calls.

Whatever goes wrong becomes a result that tells the model what it can do: a call without a result
would make the next request invalid. Only a stop of the turn is raised.
"""

import asyncio
import inspect
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from pydantic import ValidationError

from chatapp.tools.arguments import call_key, parse, storable_arguments
from chatapp.tools.refusals import (
    CUT_OFF,
    NAME_SHOWN,
    REFUSAL_SHOWN,
    REPEATED,
    STOPPED,
    TOO_MANY,
    failure,
    misfit,
    parameters,
)
from chatapp.tools.registry import Tool, Toolbox, ToolContext, ToolError
from chatapp.tools.results import WHOLE_LIMIT, Rendered, bounded, inert, render
from memory.core.messages import ToolCall
from memory.core.text import shorten

__all__ = [
    "CALLS_MOST", "LIMIT_LEAST", "RESULT_LIMIT", "Outcome", "Stopped", "call_key", "run_calls",
    "storable_arguments",
]  # fmt: skip

logger = logging.getLogger(__name__)

# Characters of a result that the model gets: some 2,000 tokens of English.
RESULT_LIMIT = 8_000
# A smaller limit would cut what the model is told about errors.
LIMIT_LEAST = 500
# Synchronous tools that may run at once. A hung one keeps its thread, but only from other tools.
THREADS = 16
# Calls of one step that run; the others are told to wait. A hostile reply may have thousands.
CALLS_MOST = 32

Code = Literal[
    "", "unknown-tool", "bad-arguments", "timeout", "failed", "repeated", "empty", "cut-off",
    "stopped", "too-many",
]  # fmt: skip
# Words about what went wrong, or the result.
_Answer = tuple[Code, str | Rendered]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call.

    `content` is the text of the tool message, `error` a code, "" where the tool gave a result.
    `whole` is the result at full length, for a tool that gives the rest on request: at most
    1,000,000 characters of the `length` that it had. `key` is equal for calls that ask the same.
    """

    call_id: str
    name: str
    content: str
    error: Code
    seconds: float
    length: int
    whole: str
    key: str

    @property
    def ok(self) -> bool:
        return not self.error

    @property
    def cut(self) -> bool:
        """Whether the model got less than the whole result."""
        return self.content != self.whole


class Stopped(asyncio.CancelledError):
    """The calls were cancelled. `outcomes` has one for each: of those that had ended what came of
    them, of the others that they were stopped."""

    def __init__(self, outcomes: tuple[Outcome, ...]) -> None:
        super().__init__()
        self.outcomes = outcomes


async def run_calls(
    calls: Sequence[ToolCall],
    toolbox: Toolbox,
    context: ToolContext,
    *,
    limit_chars: int = RESULT_LIMIT,
    earlier: Sequence[str] = (),
    tries: int = 1,
    rest_hints: Sequence[str] = (),
    cut_off: bool = False,
) -> tuple[Outcome, ...]:
    """Run the first CALLS_MOST calls concurrently; the outcomes are in the order of the calls, one
    for each.

    `earlier` holds the keys of the calls that failed in this turn: what stands in it `tries` times
    is not run again. `limit_chars` bounds every content (LIMIT_LEAST or more); a cut one ends with
    its call's hint of `rest_hints`, if there are any, which may say how to ask for the rest.
    `cut_off` says that the reply ended within its last call, which is then not run. Cancelling
    cancels the tools; a synchronous one runs to its end in its thread, unheard, as after a timeout.

    Raises Stopped when cancelled while they run, ValueError for a limit that is too small and for
    hints that are not one for each call.
    """
    if limit_chars < LIMIT_LEAST + max(map(len, rest_hints), default=0):
        raise ValueError(f"limit_chars must be at least {LIMIT_LEAST} more than a hint has")
    hints = rest_hints or [""] * len(calls)
    if len(hints) != len(calls):
        raise ValueError("rest_hints must be one for each call, or none")
    keys = await asyncio.to_thread(lambda: [call_key(call) for call in calls])
    tasks: list[asyncio.Task[Outcome]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks += [
                group.create_task(
                    _not_run(call, key, "cut-off", CUT_OFF)
                    if cut_off and at == len(calls)
                    else _not_run(call, key, "too-many", TOO_MANY)
                    if at > CALLS_MOST
                    else _not_run(call, key, "repeated", REPEATED)
                    if earlier.count(key) >= tries
                    else _run(call, key, toolbox, context, limit_chars, hint)
                )
                for at, (call, key, hint) in enumerate(zip(calls, keys, hints, strict=True), 1)
            ]
    except asyncio.CancelledError as stop:
        if not tasks:
            raise
        stopped = [
            _told(call, key, "stopped", STOPPED) for call, key in zip(calls, keys, strict=True)
        ]
        raise Stopped(
            tuple(
                instead if task.cancelled() else task.result()
                for task, instead in zip(tasks, stopped, strict=True)
            )
        ) from stop
    return tuple(task.result() for task in tasks)


async def _run(
    call: ToolCall, key: str, toolbox: Toolbox, context: ToolContext, limit: int, hint: str
) -> Outcome:
    started = time.perf_counter()
    code, answer = await _answer(call, toolbox, context)
    result = render(answer) if isinstance(answer, str) else answer
    if result.empty:
        text = f"(no result: {call.name} returned nothing for these arguments)"
        code, result = "empty", Rendered(text, 0)
    note = f"\n{hint}" if hint else ""
    if result.length > WHOLE_LIMIT:
        note = f"\n[The result had {result.length:,} characters.]{note}"
    return Outcome(
        call_id=call.id,
        name=_shown(call),
        content=bounded(result.whole, limit, note),
        error=code,
        seconds=time.perf_counter() - started,
        length=result.length,
        whole=result.whole,
        key=key,
    )


async def _not_run(call: ToolCall, key: str, code: Code, words: str) -> Outcome:
    return _told(call, key, code, words)


def _told(call: ToolCall, key: str, code: Code, words: str) -> Outcome:
    name = _shown(call)
    text = words.format(name=name, most=CALLS_MOST)
    return Outcome(call.id, name, text, code, 0.0, len(text), text, key)


def _shown(call: ToolCall) -> str:
    return inert(shorten(call.name, NAME_SHOWN))


async def _answer(call: ToolCall, toolbox: Toolbox, context: ToolContext) -> _Answer:
    tool = toolbox.get(call.name)
    if tool is None:
        names = ", ".join(toolbox) or "none"
        return "unknown-tool", f'There is no tool "{_shown(call)}". Available tools: {names}.'
    try:
        values = parse(call.arguments)
    except ValueError as error:
        return "bad-arguments", (
            f"Not run: the arguments of {tool.name} are not a valid JSON object: {error}. "
            f"Send one JSON object with: {parameters(tool)}."
        )
    try:
        arguments = tool.read(values)
    except ValidationError as error:
        return "bad-arguments", misfit(tool, error)
    except TypeError as error:  # an annotation has a rule that its type does not know
        logger.warning("tool %s cannot check its arguments", tool.name, exc_info=True)
        return "failed", failure(tool, error)
    return await _call(tool, arguments, context)


async def _call(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> _Answer:
    if tool.needs_context:
        arguments["context"] = context
    timer = asyncio.timeout(tool.timeout)
    try:
        async with timer:
            value = await _invoke(partial(tool.function, **arguments))
        # A large result is not rendered on the event loop.
        return "", await asyncio.to_thread(render, value)
    except ToolError as refusal:
        told = shorten(str(refusal).strip(), REFUSAL_SHOWN)
        return "failed", told or f"{tool.name} refused without a reason."
    except TimeoutError as error:
        if timer.expired():
            return "timeout", (
                f"{tool.name} gave no result within {tool.timeout:g} seconds. It may still have "
                "had an effect: check before calling it again."
            )
        return "failed", failure(tool, error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise  # the turn was stopped
        return "failed", failure(tool, error)
    # Whatever the tool's code or its result's classes raise; out of a task, `sys.exit` would end
    # the process.
    except (Exception, SystemExit) as error:
        logger.warning("tool %s failed", tool.name, exc_info=True)
        return "failed", failure(tool, error)


async def _invoke(call: "partial[Any]") -> Any:
    if inspect.iscoroutinefunction(call.func):
        return await call()
    loop = asyncio.get_running_loop()
    value = await loop.run_in_executor(_pool(), copy_context().run, _unstopped, call)
    return await value if inspect.isawaitable(value) else value


def _unstopped(call: "partial[Any]") -> Any:
    try:
        return call()
    except StopIteration as error:  # no future can hold one: its waiter would never wake
        raise RuntimeError("StopIteration") from error


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads of the synchronous tools, apart from those that everything else needs."""
    return ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="tool")
