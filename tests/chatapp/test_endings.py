"""How turns end while the database fails, and when somebody else has ended them."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings as configured
from django.db import DataError, InterfaceError, OperationalError
from django.test import AsyncClient
from django.urls import reverse
from django.utils import timezone

from chatapp import ending
from chatapp.runner import Runner
from memory import service, snapshots, store
from memory.models import Conversation, Turn
from memory.models.transcript import STALE_AFTER
from tests.chatapp.gates import failing
from tests.chatapp.helpers import messages_of, say
from tests.chatapp.test_turns import begun
from tests.conftest import until
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)

LOCKED = OperationalError("database is locked")


async def ended_elsewhere(turn: Turn) -> None:
    """Another process took it for left behind."""
    await sync_to_async(store.finish_turn)(
        turn_id=turn.pk, state="interrupted", reply=None, encoding="o200k_base"
    )


@pytest.mark.parametrize("error", [LOCKED, InterfaceError("the connection is closed")])
async def test_an_end_is_stored_as_soon_as_the_database_takes_it(
    error: Exception,
    runner: Any,
    scripted: Any,
    conversation: Conversation,
    page: Page,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ending, "PAUSE", 0.001)
    alive: list[bool] = []
    real = store.finish_turn

    def finish(**values: Any) -> bool:
        alive.append(values["turn_id"] in runner.alive())
        if len(alive) < 3:
            raise error
        return real(**values)

    monkeypatch.setattr(store, "finish_turn", finish)
    scripted.replies = ["a whole reply"]
    assert (await say(runner, conversation, "hi")).state == "complete"
    assert alive == [True] * 3
    assert (await messages_of(conversation))[-1] == (2, "assistant", "a whole reply")
    ended = await page.until("turn.ended")
    assert (ended["state"], ended["length"]) == ("complete", len("a whole reply"))


async def test_an_end_that_is_stored_although_its_answer_was_lost_counts(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection breaks behind the commit."""
    monkeypatch.setattr(ending, "PAUSE", 0.001)
    real, calls = store.finish_turn, list[bool]()

    def finish(**values: Any) -> bool:
        calls.append(real(**values))
        if len(calls) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return calls[-1]

    monkeypatch.setattr(store, "finish_turn", finish)
    assert (await say(runner, conversation, "hi")).state == "complete"
    assert calls == [True, False]
    assert await messages_of(conversation) == [(1, "user", "hi"), (2, "assistant", "ok")]


@pytest.mark.parametrize("error", [ValueError("not a text"), DataError("invalid byte sequence")])
async def test_a_detail_that_cannot_be_stored_is_left_out(
    error: Exception,
    runner: Any,
    scripted: Any,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ends = failing(monkeypatch, store, "finish_turn", [error])
    scripted.replies = [500]
    turn = await say(runner, conversation, "hi")
    assert (turn.state, turn.error_code, turn.error_detail) == ("failed", "server", "")
    assert len(ends) == 2


async def test_an_end_that_cannot_be_stored_at_all_is_given_up_and_the_turn_is_left(
    runner: Any,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(ending, "PATIENCE", 0.0)
    failing(monkeypatch, store, "finish_turn", [LOCKED])
    turn = await say(runner, conversation, "hi")
    await runner.settled()
    assert turn.state == "running"
    assert runner.alive() == ()
    assert "database is locked" in caplog.text


async def test_pages_are_told_how_a_turn_ended_elsewhere_and_nothing_follows(
    runner: Any, scripted: Any, conversation: Conversation, page: Page, settings: Any
) -> None:
    settings.AUTO_TITLE = True
    scripted.replies, scripted.hold = ["abcdefghij"], asyncio.Event()
    turn = await begun(runner, conversation)
    await ended_elsewhere(turn)
    scripted.hold.set()
    ended = await page.until("turn.ended")
    assert (ended["state"], ended["length"]) == ("interrupted", 0)
    await runner.settled()
    assert scripted.bodies == scripted.streamed()
    await turn.arefresh_from_db()
    assert turn.state == "interrupted"


async def test_a_turn_that_ended_elsewhere_is_not_run_on(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.runner.SAVE", 0.01)
    scripted.replies, scripted.hold = ["abcdefghij"], asyncio.Event()
    turn = await begun(runner, conversation)
    await ended_elsewhere(turn)
    await runner.settled()  # nobody lets the model go on
    assert runner.alive() == ()


async def test_a_save_that_fails_is_made_again(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.runner.SAVE", 0.01)
    errors = [InterfaceError("the connection is closed"), LOCKED]
    failing(monkeypatch, store, "save_partials", errors)
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    await until(Turn.objects.filter(pk=turn.pk, partial="p").aexists)


async def test_a_process_does_not_take_its_own_turns_for_left(
    runner: Any, scripted: Any, conversation: Conversation, open_page: Any
) -> None:
    """Its signs of life may wait for the database longer than those of others may be missing."""
    scripted.replies, scripted.hold = ["abcdefghij"], asyncio.Event()
    turn = await begun(runner, conversation)
    rows = Turn.objects.filter(pk=turn.pk)
    client = AsyncClient()
    await sync_to_async(client.force_login)(conversation.owner)
    stale = timezone.now() - timedelta(hours=1)
    for look in ("page", "socket", "start"):
        await rows.aupdate(heartbeat_at=stale)
        if look == "page":
            url = reverse("conversation", args=[conversation.pk])
            assert (await client.get(url)).status_code == 200
        elif look == "socket":
            page = await open_page(conversation)
            await page.send(type="turn.resume", turn=1)
            assert (await page.until("turn.text"))["state"] == "running"
        else:
            with pytest.raises(store.Busy):
                await say(runner, conversation, "and?", "another")
    scripted.hold.set()
    await page.until("turn.ended")
    assert (await messages_of(conversation))[-1] == (2, "assistant", "abcdefghij")


def test_a_writer_waits_less_long_than_a_turn_counts_as_alive() -> None:
    options = configured.DATABASES["default"].get("OPTIONS", {})
    assert options.get("timeout", 0) < STALE_AFTER.total_seconds()


@pytest.mark.parametrize("name", ["mark_sent", "record_usage"])
async def test_an_answer_is_complete_although_it_could_not_be_noted(
    name: str,
    runner: Any,
    scripted: Any,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing(monkeypatch, snapshots, name, [LOCKED])
    assert (await say(runner, conversation, "hi")).state == "complete"
    assert f"{name} could not be stored" in caplog.text


async def test_the_memory_is_looked_after_although_no_title_could_be_stored(
    runner: Any, conversation: Conversation, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AUTO_TITLE = True
    titles = failing(monkeypatch, store, "retitle", [LOCKED])
    looked: list[bool] = []

    def wants(_assembled: Any, *, before_request: bool) -> bool:
        looked.append(before_request)
        return False

    monkeypatch.setattr(service, "wants_compaction", wants)
    await say(runner, conversation, "hi")
    await runner.settled()
    assert len(titles) == 1
    assert False in looked


async def test_stops_are_heard_after_the_layer_failed(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = get_channel_layer()
    real, calls = layer.receive, list[str]()

    async def receive(channel: str) -> Any:
        calls.append(channel)
        if len(calls) == 1:
            raise ConnectionError("the layer is gone")
        return await real(channel)

    monkeypatch.setattr(layer, "receive", receive)
    monkeypatch.setattr("chatapp.runner.LISTEN_AGAIN", 0.001)
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    await layer.send(turn.owner, {"type": "turn.stop", "turn_id": turn.pk})
    await until(Turn.objects.filter(pk=turn.pk, state="stopped").aexists)


async def test_a_stop_that_cannot_be_sent_is_found_by_the_owner(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_args: Any) -> None:
        raise ConnectionError("the layer is gone")

    monkeypatch.setattr("chatapp.runner.SAVE", 0.01)
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    monkeypatch.setattr(get_channel_layer(), "send", broken)
    assert await Runner(runner.provider).stop_and_wait(turn)
    await turn.arefresh_from_db()
    assert turn.state == "stopped"
