"""A turn that is started, stopped or ended while the database or the layer takes its time: what
was begun is done to its end, and known."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async

from chatapp import live as lives
from chatapp.tools import toolsets
from chatapp.tools.registry import Toolbox, tool
from memory import store, versions
from memory.models import Conversation, MemoryEvent, Message, Turn
from tests.cases.raw import RawTransport, calling, piece
from tests.chatapp.gates import Gate
from tests.chatapp.helpers import chat
from tests.conftest import until
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)

GATE: list[asyncio.Event] = []
STARTED: list[asyncio.Event] = []


@tool
async def buy() -> str:
    """Buy it, as soon as the test says so."""
    STARTED[0].set()
    await GATE[0].wait()
    return "it is bought"


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture
def conversation(
    make_conversation: Callable[..., Conversation], monkeypatch: pytest.MonkeyPatch
) -> Conversation:
    monkeypatch.setattr(toolsets, "TOOLSETS", {"test": Toolbox((buy,))})
    GATE[:], STARTED[:] = [asyncio.Event()], [asyncio.Event()]
    return make_conversation(tools=["test"], window=8_192)


def started(runner: Any, conversation: Conversation) -> "asyncio.Task[tuple[Turn, bool]]":
    return asyncio.create_task(
        runner.start_turn(conversation_id=conversation.pk, model="", client_id="c", text="go")
    )


async def cancelled(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def stopped(runner: Any, turn: Turn, gate: Any) -> str:
    """Stop the turn, open the gate that holds it up only then; how it ended."""
    await runner.stop_turn(turn)
    await asyncio.sleep(0)  # it hears of the stop
    gate.open()
    await runner.settled()
    await turn.arefresh_from_db()
    return turn.state


async def rows() -> list[tuple[str, str]]:
    return [(row.role, row.content) async for row in Message.objects.order_by("position")]


async def test_a_turn_whose_asker_goes_away_while_it_is_claimed_is_run(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that closes its connection cancels the view."""
    scripted.replies = ["Done."]
    gate = Gate(monkeypatch, store, "start_turn")
    task = started(runner, conversation)
    await gate.reached()
    await cancelled(task)
    gate.open()
    await until(Turn.objects.filter(state="complete").aexists)
    assert await rows() == [("user", "go"), ("assistant", "Done.")]
    turn, new = await started(runner, conversation)
    assert (turn.number, new) == (1, False)


async def test_closing_waits_for_a_turn_that_is_being_claimed(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, store, "start_turn")
    task = started(runner, conversation)
    await gate.reached()
    closing = asyncio.create_task(runner.close())
    gate.open()
    await closing
    turn, _new = await task
    await turn.arefresh_from_db()
    assert turn.state == "interrupted"


async def test_the_start_is_told_before_anything_else_on_a_slow_layer(
    runner: Any, page: Page, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling, tell = asyncio.Event(), asyncio.Event()
    real = lives.broadcast

    async def slow(layer: Any, conversation_id: Any, event: Any) -> None:
        if event.type == "turn.started":
            telling.set()
            await tell.wait()
        await real(layer, conversation_id, event)

    monkeypatch.setattr(lives, "broadcast", slow)
    turn, _new = await started(runner, conversation)
    await telling.wait()
    await runner.stop_turn(turn)
    tell.set()
    assert (await page.next()) == {"type": "turn.started", "turn": 1, "id": "c"}
    assert (await page.next())["type"] == "turn.ended"
    await turn.arefresh_from_db()
    assert turn.state == "stopped"


async def test_a_stop_while_calls_are_stored_does_not_store_their_text_again(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.replies = [[piece("Let me look."), *calling(("buy", "{}"))], "Done."]
    gate = Gate(monkeypatch, store, "add_step")
    turn, _new = await started(runner, conversation)
    await gate.reached()
    assert await stopped(runner, turn, gate) == "stopped"
    assert await rows() == [("user", "go"), ("assistant", "Let me look.")]


class Busy:
    """The database's thread, busy until it is opened."""

    def __init__(self) -> None:
        self._begun, self._open = threading.Event(), threading.Event()

    async def begin(self) -> None:
        self.task = asyncio.create_task(database_sync_to_async(self._wait)())
        await asyncio.to_thread(self._begun.wait, 30)

    def _wait(self) -> None:
        self._begun.set()
        self._open.wait(30)

    def open(self) -> None:
        self._open.set()


async def test_a_stop_while_results_wait_for_the_database_keeps_them(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.replies = [calling(("buy", "{}")), "Done."]
    turn, _new = await started(runner, conversation)
    await STARTED[0].wait()
    busy, queued = Busy(), asyncio.Event()
    await busy.begin()

    def crossing(work: Any) -> Any:
        if work is store.add_step:
            queued.set()
        return database_sync_to_async(work)

    monkeypatch.setattr(lives, "database_sync_to_async", crossing)
    GATE[0].set()
    await queued.wait()
    assert await stopped(runner, turn, busy) == "stopped"
    assert (await rows())[-1] == ("tool", "it is bought")


async def test_a_stop_while_a_summary_is_committed_tells_that_the_memory_changed(
    runner: Any, make_conversation: Any, open_page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"preset": "summary", "max_messages": 4, "keep_messages": 2}
    made = await database_sync_to_async(make_conversation)(policy=policy)
    await chat(runner, made, 2)
    await runner.settled()
    page = await open_page(made)
    gate = Gate(monkeypatch, versions, "commit_summary")
    turn, _new = await started(runner, made)
    await gate.reached()
    assert await stopped(runner, turn, gate) == "stopped"
    event = await MemoryEvent.objects.aget()
    await page.until("turn.ended")
    told = [frame for frame in page.frames if frame["type"] == "memory.changed"]
    assert [(one["revision"], one["event"]) for one in told] == [(event.revision, event.kind)]


async def test_closing_waits_for_an_end_that_is_being_stored(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.replies = ["Done."]
    gate = Gate(monkeypatch, store, "finish_turn")
    turn, _new = await started(runner, conversation)
    await gate.reached()
    closing = asyncio.create_task(runner.close())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not closing.done()
    gate.open()
    await closing
    await turn.arefresh_from_db()
    assert turn.state == "complete"
