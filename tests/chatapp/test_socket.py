"""The socket, through the whole ASGI application."""

import asyncio
import json
import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from chatapp import events, frames
from memory import store
from memory.models import Conversation, Message, Turn
from tests.chatapp.gates import failing
from tests.conftest import until
from tests.sockets import Page, cookie_of

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_message_is_answered_and_told(page: Page, scripted: Any) -> None:
    scripted.replies = ["謝謝🌱, bis später 777777"]
    await page.send(type="message.send", id="m1", text="hello")
    assert (await page.next()) == {"type": "turn.started", "turn": 1, "id": "m1"}
    ended = await page.until("turn.ended")
    assert ended["state"] == "complete"
    assert page.text() == "謝謝🌱, bis später 777777"
    assert ended["length"] == len(page.text())


async def test_four_hundred_pieces_reach_two_pages_without_a_hole(
    page: Page, scripted: Any, open_page: Any, conversation: Conversation
) -> None:
    scripted.replies = ["".join(chr(0x4E00 + n) for n in range(400))]
    second = await open_page(conversation)
    await page.send(type="message.send", id="m1", text="hello")
    await asyncio.gather(page.until("turn.ended"), second.until("turn.ended"))
    stored = await Message.objects.aget(role="assistant")
    assert page.text() == second.text() == stored.content == scripted.replies[0]


async def test_a_page_opened_in_the_middle_gets_all_of_the_reply(
    page: Page, scripted: Any, open_page: Any, conversation: Conversation
) -> None:
    scripted.replies, scripted.hold = ["abcdefgh" * 50], asyncio.Event()
    await page.send(type="message.send", id="m1", text="hello")
    await page.until("turn.delta")
    await page.socket.disconnect()
    again = await open_page(conversation)
    assert again.frames[0]["turn"] == 1
    await again.send(type="turn.resume", turn=1)
    assert (await again.until("turn.text"))["text"] == "a"
    scripted.hold.set()
    await again.until("turn.ended")
    assert again.text() == "abcdefgh" * 50


async def test_a_resume_after_the_end_gives_the_whole_reply(page: Page, scripted: Any) -> None:
    scripted.replies = ["all of it"]
    await page.send(type="message.send", id="m1", text="hello")
    await page.until("turn.ended")
    await page.send(type="turn.resume", turn=1)
    answer = await page.until("turn.text")
    assert (answer["text"], answer["state"]) == ("all of it", "complete")


async def test_stop_is_heard_while_the_reply_is_written(page: Page, scripted: Any) -> None:
    scripted.replies, scripted.pause = ["x" * 1000], 0.05
    await page.send(type="message.send", id="m1", text="hello")
    await page.until("turn.delta")
    asked = asyncio.get_running_loop().time()
    await page.send(type="turn.stop", turn=1)
    ended = await page.until("turn.ended")
    assert ended["state"] == "stopped"
    assert asyncio.get_running_loop().time() - asked < 5, "stop waited for the stream's end"
    reply = await Message.objects.aget(role="assistant")
    assert reply.content == page.text()
    assert 0 < len(reply.content) < 1000


async def test_a_second_message_is_busy_and_nothing_is_stored(page: Page, scripted: Any) -> None:
    scripted.hold = asyncio.Event()
    await page.send(type="message.send", id="m1", text="A?")
    await page.until("turn.started")
    await page.send(type="message.send", id="m2", text="B?")
    error = await page.until("error")
    assert (error["code"], error["id"]) == ("busy", "m2")
    scripted.hold.set()
    await page.until("turn.ended")
    assert await Message.objects.acount() == 2


async def test_a_message_sent_twice_is_stored_once(page: Page) -> None:
    for _ in range(2):
        await page.send(type="message.send", id="m1", text="hello")
    await page.until("turn.ended")
    await page.send(type="message.send", id="m1", text="hello")
    await page.send(type="message.send", id="m1", text="other")
    assert (await page.until("error"))["code"] == "id-reused"
    assert await Turn.objects.acount() == 1


async def test_retry_replaces_the_last_turn(page: Page, scripted: Any) -> None:
    scripted.replies = [500, "now it works"]
    await page.send(type="message.send", id="m1", text="hello")
    ended = await page.until("turn.ended")
    assert (ended["state"], ended["reason"]) == ("failed", "server")
    await page.send(type="turn.retry", id="r1", turn=1)
    assert (await page.until("turn.ended"))["state"] == "complete"
    active = Message.objects.filter(active=True).order_by("position")
    rows = [(row.position, row.content) async for row in active]
    assert rows == [(2, "hello"), (3, "now it works")]
    await page.send(type="turn.retry", id="r2", turn=1)
    assert (await page.until("error"))["code"] == "not-last"


BAD = [
    ("{bad", "bad-frame"),
    ("", "bad-frame"),
    ("null", "bad-frame"),
    ("[1,2]", "bad-frame"),
    ("NaN", "bad-frame"),
    ('"x"', "bad-frame"),
    ("[" * 2000 + "]" * 2000, "bad-frame"),
    ("[" * 200_000, "bad-frame"),
    ('{"type":5}', "unknown-type"),
    ('{"type":"nope"}', "unknown-type"),
    ('{"type":["message.send"]}', "unknown-type"),
    ('{"type":"message.send"}', "bad-field"),
    ('{"type":"message.send","id":"1","text":5}', "bad-field"),
    ('{"type":"message.send","id":"","text":"x"}', "bad-field"),
    ('{"type":"message.send","id":"1","text":" \\u200b\\n"}', "empty"),
    ('{"type":"message.send","id":"1","text":"\\u0000\\u0000"}', "empty"),
    (json.dumps({"type": "message.send", "id": "1", "text": "a" * 32_001}), "too-long"),
    ('{"type":"turn.stop","turn":"1"}', "bad-field"),
    ('{"type":"turn.stop","turn":true}', "bad-field"),
    ('{"type":"turn.stop","turn":99999999999999}', "bad-field"),
    ('{"type":"turn.stop","turn":7}', "no-turn"),
    ('{"type":"turn.resume","turn":7}', "no-turn"),
    ('{"type":"turn.retry","id":"x","turn":7}', "not-last"),
]


async def test_every_bad_frame_gets_one_error_and_the_socket_lives(page: Page) -> None:
    for text, code in BAD:
        await page.socket.send_input({"type": "websocket.receive", "text": text})
        error = await page.next()
        assert (error["type"], error["code"]) == ("error", code), text[:80]
        assert error["message"]
    await page.socket.send_to(bytes_data=b"\x00\x01")
    assert (await page.next())["code"] == "bad-frame"
    await page.send(type="message.send", id="m1", text="still there?")
    assert (await page.until("turn.ended"))["state"] == "complete"


async def test_a_lone_surrogate_becomes_one_replacement_mark_everywhere(
    page: Page, scripted: Any
) -> None:
    await page.socket.send_to(
        text_data='{"type":"message.send","id":"m","text":"note \\udbc0 end"}'
    )
    await page.until("turn.ended")
    row = await Message.objects.aget(role="user")
    assert row.content == "note \ufffd end"
    assert scripted.bodies[0]["messages"][-1]["content"] == row.content


@pytest.mark.parametrize("who", ["nobody", "other", "unknown"])
async def test_a_foreign_or_unknown_conversation_is_closed_alike(
    who: str, runner: Any, user: Any, other_user: Any, conversation: Conversation
) -> None:
    cookie = b"" if who == "nobody" else await cookie_of(other_user)
    pk = "00000000-0000-4000-8000-000000000000" if who == "unknown" else conversation.pk
    page = Page(pk, cookie)
    connected, _ = await page.socket.connect()
    assert connected
    message = await page.socket.receive_output()
    assert message["type"] == "websocket.close"
    assert message["code"] == (4401 if who == "nobody" else 4404)
    await page.send(type="message.send", id="m1", text="hello")
    assert await page.socket.receive_nothing()
    assert await Message.objects.acount() == 0


@pytest.mark.parametrize(
    ("origin", "welcome"),
    [
        (b"http://localhost:8000", True),
        (b"http://localhost", False),
        (b"https://localhost:8000", False),
        (b"http://localhost:8443", False),
        (b"https://evil.example", False),
        (b"http://localhost:8000.evil.example", False),
        (b"null", False),
        (b"", False),
    ],
)
async def test_only_the_exact_origin_may_open_a_socket(
    origin: bytes, welcome: bool, runner: Any, user: Any, conversation: Conversation
) -> None:
    page = Page(conversation.pk, await cookie_of(user), origin)
    connected, _ = await page.socket.connect()
    assert connected is welcome
    if welcome:
        await page.socket.disconnect()


async def test_a_turn_of_a_dead_process_is_interrupted_when_a_page_opens(
    runner: Any, user: Any, conversation: Conversation, page: Page
) -> None:
    turn = await Turn.objects.acreate(
        conversation=conversation,
        number=1,
        client_id="x",
        partial="so far",
        heartbeat_at=timezone.now() - timedelta(seconds=16),
    )
    await Conversation.objects.filter(pk=conversation.pk).aupdate(next_turn=2)
    await page.send(type="turn.resume", turn=1)
    ended = await page.until("turn.ended")
    assert ended["state"] == "interrupted"
    await turn.arefresh_from_db()
    assert turn.state == "interrupted"
    assert (await Message.objects.aget(turn=turn)).content == "so far"
    # The conversation is free again.
    await page.send(type="message.send", id="next", text="go on")
    await until(lambda: Turn.objects.filter(state="complete").aexists())


def test_the_protocol_page_documents_every_frame_and_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    documented = set(re.findall(r"^\| `([a-z.]+)` \|", page, re.MULTILINE))
    sent = {cls.type for cls in events.Event.__subclasses__()}
    source = Path(frames.__file__).read_text()
    received = set(re.findall(r'case "([a-z]+\.[a-z]+)"', source))
    assert documented == sent | received
    for event in events.Event.__subclasses__():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{event.type}` "))
        assert all(f"`{field}`" in row for field in [one.name for one in fields(event)]), event
    words_source = (Path(frames.__file__).parent / "words.py").read_text()
    codes = set(re.findall(r'BadFrame\(\s*"([a-z-]+)"', source))
    codes |= {code for code in ("busy", "id-reused", "not-last") if f'"{code}"' in words_source}
    assert all(f"`{code}`" in page for code in codes)


async def test_a_database_that_fails_costs_the_frame_and_not_the_socket(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, store, "start_turn", [OperationalError("database is locked")])
    await page.send(type="message.send", id="m1", text="hi")
    refused = await page.next()
    assert (refused["type"], refused["code"], refused["id"]) == ("error", "internal", "m1")
    assert refused["message"]
    failing(monkeypatch, store, "recover_conversation", [OperationalError("database is locked")])
    await page.send(type="turn.resume", turn=1)
    assert (await page.next())["code"] == "internal"
    await page.send(type="message.send", id="m1", text="hi")
    assert (await page.until("turn.ended"))["state"] == "complete"
