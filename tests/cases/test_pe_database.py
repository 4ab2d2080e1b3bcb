"""Cases about what is stored (PE-*): a database that is busy, or away."""

import asyncio
import sqlite3
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as configured
from django.db import OperationalError, connection
from django.urls import reverse

from memory import reading
from memory.models import Conversation, Message
from tests.chatapp.helpers import fill, messages_of, say

pytestmark = pytest.mark.django_db(transaction=True)


async def test_pe_07_eight_conversations_at_once_never_meet_a_locked_database(
    runner: Any, scripted: Any, make_conversation: Any, client: Any, user: Any
) -> None:
    """With the default journal and no patience a write failed as soon as somebody else read."""
    options = configured.DATABASES["default"]["OPTIONS"]
    if connection.vendor == "sqlite":
        assert options["timeout"] >= 5
        assert options["transaction_mode"] == "IMMEDIATE"
        mode = await sync_to_async(lambda: connection.cursor().execute("PRAGMA journal_mode"))()
        assert (await sync_to_async(mode.fetchone)())[0] == "wal"
    made = [await sync_to_async(make_conversation)() for _ in range(8)]
    scripted.replies, scripted.pause = ["x" * 20], 0.002
    await sync_to_async(client.force_login)(user)
    done = asyncio.Event()

    async def poll() -> int:
        looks = 0
        while not done.is_set():
            url = reverse("panel_context", args=[made[looks % 8].pk])
            response = await sync_to_async(client.get, thread_sensitive=False)(url)
            assert response.status_code == 200
            looks += 1
        return looks

    polling = asyncio.create_task(poll())
    talks = [say(runner, one, f"q{n}", f"m{n}") for n in range(2) for one in made]
    turns = await asyncio.gather(*talks[:8])
    turns += await asyncio.gather(*talks[8:])
    done.set()
    assert await polling > 0
    assert [turn.state for turn in turns] == ["complete"] * 16
    assert await Message.objects.acount() == 32


async def test_pe_07_no_transaction_is_open_while_the_model_is_asked(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """A write lock held during a model's answer stops everybody else for as long."""

    async def look(_body: Any) -> str:
        assert not await sync_to_async(lambda: connection.in_atomic_block)()
        name = connection.settings_dict["NAME"]
        if connection.vendor == "sqlite":
            other = sqlite3.connect(name, timeout=0.2)
            other.execute("BEGIN IMMEDIATE")  # raises if somebody else has the lock
            other.rollback()
            other.close()
        return "ok"

    scripted.replies = [look]
    assert (await say(runner, conversation, "hello")).state == "complete"


async def test_pe_11_a_failed_load_is_an_error_and_overwrites_nothing(
    runner: Any, conversation: Conversation, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed load was shown as an empty chat, and the next save made it one."""
    await sync_to_async(fill)(conversation, 3)
    before = await messages_of(conversation)
    load = reading.load

    def broken(**_more: Any) -> Any:
        raise OperationalError("the disk is away")

    client.raise_request_exception = False
    await sync_to_async(client.force_login)(conversation.owner)
    url = reverse("conversation", args=[conversation.pk])
    monkeypatch.setattr(reading, "load", broken)
    page = await sync_to_async(client.get)(url)
    assert page.status_code == 500
    turn = await say(runner, conversation, "hello?")
    assert (turn.state, turn.error_code) == ("failed", "internal")
    monkeypatch.setattr(reading, "load", load)
    assert (await messages_of(conversation))[:6] == before
    page = await sync_to_async(client.get)(url)
    assert page.status_code == 200
    assert "Something went wrong here" in page.content.decode()
    assert (await say(runner, conversation, "and now?")).state == "complete"
    assert [row[0] for row in await messages_of(conversation)] == list(range(1, 10))
