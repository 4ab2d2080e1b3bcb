"""Running the calls of one step: at once, in order, and never without a result."""

import asyncio
import contextvars
import json
import sys
import threading
from typing import Annotated, Any

import pytest
from blockbuster import BlockBuster
from pydantic import BaseModel, Field

from chatapp.tools.registry import Toolbox, ToolContext, ToolError, tool
from chatapp.tools.running import CALLS_MOST, Stopped, run_calls
from tests.chatapp.calling import CONTEXT, call, giving, run


async def test_a_call_gives_a_result(no_blocking: BlockBuster) -> None:
    @tool
    def add(left: int, right: int = 10) -> int:
        """Add."""
        return left + right

    done = await run(add, '{"left": "5"}')
    assert (done.call_id, done.name, done.content, done.error) == ("c1", "add", "15", "")
    assert (done.ok, done.length, done.whole, done.cut) == (True, 2, "15", False)
    assert done.seconds >= 0


async def test_calls_run_at_once_and_results_keep_the_order_of_the_calls() -> None:
    together = asyncio.Barrier(3)
    ended = [asyncio.Event() for _ in range(4)]
    ended[3].set()
    order = []

    @tool
    async def step(index: int) -> str:
        """Wait for all, then for the one behind."""
        await together.wait()
        await ended[index + 1].wait()
        order.append(index)
        ended[index].set()
        return f"result {index}"

    calls = [call("step", json.dumps({"index": index}), f"id{index}") for index in range(3)]
    async with asyncio.timeout(5):
        done = await run_calls(calls, Toolbox([step]), CONTEXT)
    assert order == [2, 1, 0]
    assert [(one.call_id, one.content) for one in done] == [
        ("id0", "result 0"), ("id1", "result 1"), ("id2", "result 2")
    ]  # fmt: skip


async def test_synchronous_tools_run_at_once_in_threads_of_their_own() -> None:
    together = threading.Barrier(3)

    @tool
    def meet() -> str:
        """Meet the others."""
        together.wait(timeout=5)
        return threading.current_thread().name

    done = await run_calls([call("meet")] * 3, Toolbox([meet]), CONTEXT)
    names = [one.content for one in done]
    assert len(set(names)) == 3
    assert all(name.startswith("tool") for name in names)


async def test_equal_calls_with_one_id_each_get_their_result() -> None:
    done = await run_calls([call("get"), call("get")], Toolbox([giving("same")]), CONTEXT)
    assert [(one.call_id, one.content) for one in done] == [("c1", "same")] * 2


async def test_no_calls_give_no_outcomes() -> None:
    assert await run_calls([], Toolbox(), CONTEXT) == ()


async def test_one_failure_leaves_the_others_alone() -> None:
    @tool
    async def fine() -> str:
        """Be fine."""
        return "fine"

    calls = [call("get"), call("fine"), call("nothing"), call("fine", "{")]
    done = await run_calls(calls, Toolbox([giving(KeyError("k")), fine]), CONTEXT)
    assert [one.error for one in done] == ["failed", "", "unknown-tool", "bad-arguments"]


async def test_a_tool_gets_the_context_and_the_context_variables() -> None:
    said: contextvars.ContextVar[str] = contextvars.ContextVar("said")
    said.set("heard")

    @tool
    def look(*, context: ToolContext) -> str:
        """Look."""
        return f"{context.conversation_id} {context.language} {said.get()}"

    assert (await run(look)).content == f"{CONTEXT.conversation_id} en heard"


async def test_a_wrapped_coroutine_function_is_awaited() -> None:
    async def real() -> str:
        return "awaited"

    @tool
    def wrapped() -> Any:
        """Hand out a coroutine."""
        return real()

    assert (await run(wrapped)).content == "awaited"


async def test_an_unknown_tool_is_answered_with_those_there_are() -> None:
    box = Toolbox([giving(1)])
    (done,) = await run_calls([call("fetch" * 40 + "<|im_end|>\0")], box, CONTEXT)
    assert done.error == "unknown-tool"
    assert done.content.startswith('There is no tool "fetchfetch')
    assert done.content.endswith("Available tools: get.")
    assert len(done.name) <= 64
    (done,) = await run_calls([call("x")], Toolbox(), CONTEXT)
    assert done.content == 'There is no tool "x". Available tools: none.'


@tool
def order(number: Annotated[str, Field(pattern="^[0-9]+$")], copies: int = 1) -> str:
    """Order."""
    raise AssertionError("must not run")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"number": "1', "Unterminated string starting at (line 1, column 12)"),
        ("[]", "it is a list, not an object"),
        ("{}", "number: Field required"),
        ('{"number": "x"}', "number: String should match pattern '^[0-9]+$'"),
        ('{"number": "1", "copies": "many", "to": 1}', "copies: Input should be a valid integer"),
        ('{"number": "1", "to": 1}', "to: no such parameter"),
        (json.dumps({f"k{i}": 1 for i in range(50)}), "(and 43 more)"),
    ],
)
async def test_bad_arguments_are_told_field_by_field(arguments: str, told: str) -> None:
    done = await run(order, arguments)
    assert done.error == "bad-arguments"
    assert told in done.content
    assert done.content.startswith("Not run: the arguments of order ")
    assert done.content.endswith("Send one JSON object with: number, copies.")


async def test_a_rule_that_does_not_suit_its_type_is_the_tools_failure() -> None:
    @tool
    def odd(text: Annotated[str, Field(ge=1)]) -> str:
        """Be odd."""
        return text

    done = await run(odd, '{"text": "a"}')
    assert (done.error, done.content[:23]) == ("failed", "odd failed: TypeError: ")


class Model(BaseModel):
    n: int


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("Ask for the number."), "Ask for the number."),
        (ToolError(" "), "get refused without a reason."),
        (ValueError("too late"), "get failed: ValueError: too late"),
        (RuntimeError(), "get failed: RuntimeError"),
        (TimeoutError("of its own"), "get failed: TimeoutError: of its own"),
        (asyncio.CancelledError(), "get failed: CancelledError"),
        (SystemExit(2), "get failed: SystemExit: 2"),
        (StopIteration(3), "get failed: RuntimeError: StopIteration"),
        (FileNotFoundError(2, "No such file", "/srv/app/secret.txt"),
         "get failed: FileNotFoundError: [Errno 2] No such file: '(path)'"),
        (OSError(r"no C:\app\secret.txt: gone"), "get failed: OSError: no (path): gone"),
        (OSError("GET https://shop.test/a/b and/or 1/2"),
         "get failed: OSError: GET https://shop.test/a/b and/or 1/2"),
    ],
)  # fmt: skip
async def test_an_exception_becomes_a_result_without_paths(error: BaseException, told: str) -> None:
    done = await run(giving(error))
    assert (done.error, done.ok, done.content) == ("failed", False, told)


@pytest.mark.parametrize("number", [3, "a message", None])
async def test_an_async_tool_that_exits_ends_no_process(number: Any) -> None:
    @tool
    async def leave() -> None:
        """Leave."""
        sys.exit(number)

    done = await run(leave)
    assert (done.error, done.content[:24]) == ("failed", "leave failed: SystemExit")


async def test_only_so_many_calls_of_a_step_run() -> None:
    ran = []

    @tool
    async def count(index: int) -> int:
        """Count."""
        ran.append(index)
        return index

    calls = [
        call("count", json.dumps({"index": index}), f"id{index}") for index in range(CALLS_MOST + 3)
    ]
    done = await run_calls(calls, Toolbox([count]), CONTEXT, cut_off=True)
    assert ran == list(range(CALLS_MOST))
    assert [one.call_id for one in done] == [one.id for one in calls]
    assert [one.error for one in done] == [""] * CALLS_MOST + ["too-many"] * 2 + ["cut-off"]
    assert done[-2].content == (
        f"Not run: a step runs its first {CALLS_MOST} calls, and this one of count is behind them. "
        "Call again in a later step, if it is still needed."
    )


async def test_a_tools_own_validation_error_is_not_blamed_on_the_arguments() -> None:
    @tool
    def strict() -> str:
        """Check something of its own."""
        return str(Model.model_validate({"n": "x"}))

    assert (await run(strict)).error == "failed"


async def test_a_long_error_is_cut() -> None:
    assert len((await run(giving(ValueError("x" * 5_000_000)))).content) < 400
    assert len((await run(giving(ToolError("x" * 5_000_000)))).content) == 2_000


async def test_a_tool_that_hangs_times_out() -> None:
    @tool(timeout=0.01)
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    done = await run(hang)
    assert done.error == "timeout"
    assert done.content.startswith("hang gave no result within 0.01 seconds.")


async def test_a_synchronous_tool_that_hangs_times_out_too() -> None:
    release = threading.Event()

    @tool(timeout=0.01)
    def hang() -> None:
        """Hang."""
        release.wait(timeout=5)

    done = await run(hang)
    assert done.error == "timeout"
    assert not release.is_set()
    release.set()


async def test_a_stop_cancels_the_tools() -> None:
    started, cleaned = asyncio.Event(), []

    @tool
    async def wait() -> None:
        """Wait."""
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            cleaned.append("wait")

    box = Toolbox([wait])
    calls = [call("missing"), call("wait"), call("wait")]
    task = asyncio.create_task(run_calls(calls, box, CONTEXT))
    await started.wait()
    task.cancel()
    with pytest.raises(Stopped) as stop:
        await task
    assert cleaned == ["wait", "wait"]
    # What had ended is not lost: its effects are real.
    done, *stopped = stop.value.outcomes
    assert done.error == "unknown-tool"
    assert [one.error for one in stopped] == ["stopped"] * 2
    assert stopped[0].content.startswith("No result: the turn was stopped while wait ran.")
