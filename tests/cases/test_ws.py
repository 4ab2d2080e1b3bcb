"""Cases about sockets (WS-*)."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from chatapp import live
from memory.models import Conversation, Message, Turn
from tests.cases.raw import aassembled
from tests.chatapp.helpers import messages_of, say
from tests.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


async def test_ws_06_a_message_sent_again_over_a_new_socket_is_handled_once(
    open_page: Any, scripted: Any, conversation: Conversation
) -> None:
    """A client that reconnects by itself had one message stored and answered several times."""
    first = await open_page(conversation)
    await first.send(type="message.send", id="m1", text="hello")
    await first.socket.disconnect(timeout=10)  # before anything was acknowledged
    for _ in range(3):
        again = await open_page(conversation)
        await again.send(type="message.send", id="m1", text="hello")
        started = await again.until("turn.started")
        assert (started["turn"], started["id"]) == (1, "m1")
    await until(lambda: Turn.objects.filter(state="complete").aexists())
    assert await messages_of(conversation) == [(1, "user", "hello"), (2, "assistant", "ok")]
    assert len(scripted.bodies) == 1


async def test_ws_07_a_page_that_comes_back_after_the_end_sees_the_end(
    open_page: Any, scripted: Any, conversation: Conversation
) -> None:
    """The socket dropped during a long step, and nobody told the client that the step was over."""
    scripted.replies, scripted.hold = ["a long answer"], asyncio.Event()
    page = await open_page(conversation)
    await page.send(type="message.send", id="m1", text="hello")
    await page.until("turn.delta")
    await page.socket.disconnect()
    scripted.hold.set()
    await until(lambda: Turn.objects.filter(state="complete").aexists())
    again = await open_page(conversation)
    assert again.frames[0]["turn"] is None, "nothing runs"
    await again.send(type="turn.resume", turn=1)
    assert (await again.until("turn.text"))["state"] == "complete"


async def test_ws_10_a_closed_tab_loses_neither_the_question_nor_the_reply(
    open_page: Any, scripted: Any, conversation: Conversation, runner: Any, client: Any
) -> None:
    """A stream that did not reach its reader's end stored nothing at all."""
    scripted.replies, scripted.hold = ["x" * 100, "ok"], asyncio.Event()
    page = await open_page(conversation)
    await page.send(type="message.send", id="m1", text="my question")
    await page.until("turn.delta")
    await page.socket.disconnect()
    await sync_to_async(client.force_login)(conversation.owner)
    url = reverse("conversation", args=[conversation.pk])
    assert "my question" in (await sync_to_async(client.get)(url)).content.decode()
    scripted.hold.set()
    await until(lambda: Turn.objects.filter(state="complete").aexists())
    assert await messages_of(conversation) == [
        (1, "user", "my question"), (2, "assistant", "x" * 100),
    ]  # fmt: skip
    html = (await sync_to_async(client.get)(url)).content.decode()
    assert html.count('id="m-2"') == 1
    scripted.hold = None
    await say(runner, conversation, "go on")
    assert [one["content"] for one in scripted.bodies[-1]["messages"][1:]] == [
        "my question", "x" * 100, "go on",
    ]  # fmt: skip
    assert await Message.objects.acount() == 4
    assert (await aassembled(conversation)).body is not None


async def test_ws_14_something_is_said_while_the_model_is_silent(
    page: Any, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proxies close connections on which nothing moves while a model thinks."""
    assert live.STATUS <= 10, "far below the 60 s that proxies give"
    monkeypatch.setattr(live, "STATUS", 0.02)
    monkeypatch.setattr(live, "SAVE", 0.02)
    thinking = asyncio.Event()

    async def slow(_body: Any) -> str:
        await thinking.wait()
        return "at last"

    scripted.replies = [slow]
    await page.send(type="message.send", id="m1", text="think")
    said = [await page.until("turn.status") for _ in range(4)]
    assert {frame["phase"] for frame in said} == {"waiting"}
    thinking.set()
    assert (await page.until("turn.ended"))["state"] == "complete"
    assert page.text() == "at last"
