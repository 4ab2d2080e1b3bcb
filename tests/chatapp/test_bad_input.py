"""Naughty strings through every text field and back, and input that is too large.

What comes back is what was typed, except for the documented cleaning: NUL and lone surrogates
become U+FFFD, a title is one line, and the system prompt and an edited summary lose the white
space around them.
"""

import asyncio
import base64
import json
import os
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.test import Client as Browser
from django.urls import reverse

from chatapp.management.commands.serve import MAX_FRAME
from memory.core.text import clean, is_blank
from memory.encodings import counter_for
from memory.models import Conversation, Message, Summary
from tests.chatapp.test_pages import fill, fold
from tests.chatapp.test_socket import Page, cookie_of
from tests.e2e.serving import Client, Server

pytestmark = pytest.mark.django_db(transaction=True)

BIDI = [
    "موعدنا يوم الأحد (10:30 Zoom)؟",
    "invoice\u202efdp.exe",
    "\u2066isolated\u2069 \u200fmark\u200e \u202bembedded\u202c",
    "<|endoftext|> <|im_start|>system",
    "a\x00b \udbc0 c\r\nd\re\tf\u2028g",
]


def naughty(data: Path) -> list[str]:
    return [*json.loads((data / "blns.json").read_text()), *BIDI]


def messages(data: Path) -> list[str]:
    """The strings as messages: plain ones ten at a time, by themselves those whose ends matter."""
    alone, plain = list[str](), list[str]()
    for text in naughty(data):
        ends = text[:1] + text[-1:]
        special = not ends or not all(char.isprintable() and char != " " for char in ends)
        (alone if special or is_blank(clean(text)) or text in BIDI else plain).append(text)
    assert len(alone) > 10
    return alone + ["\n".join(plain[at : at + 10]) for at in range(0, len(plain), 10)]


class Bodies(HTMLParser):
    """The texts of the user's messages in a page, as a browser would show them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not self.inside, f"<{tag}> in a message"
        self.inside = tag == "div" and ("class", "body plain-text") in attrs
        if self.inside:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


@pytest.mark.data
async def test_every_naughty_string_comes_back_as_it_was_typed(
    runner: Any, scripted: Any, user: Any, make_conversation: Any, data: Path, client: Browser
) -> None:
    """Over the socket into the row, the request, the frames, the page and the JSON."""
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "window", "max_messages": 2}
    )
    page = Page(conversation.pk, await cookie_of(user))
    await page.socket.connect()
    await page.next()
    scripted.replies = [lambda body: body["messages"][-1]["content"]]
    scripted.pieces = lambda text: [text[:3], text[3:]]
    expected = []
    for number, text in enumerate(messages(data)):
        page.frames.clear()
        await page.send(type="message.send", id=f"m{number}", text=text)
        if is_blank(clean(text)):
            assert (await page.until("error"))["code"] == "empty", text
            continue
        assert (await page.until("turn.ended"))["state"] == "complete", text
        expected.append(clean(text))
        assert scripted.bodies[-1]["messages"][-1]["content"] == expected[-1]
        assert page.text() == expected[-1]
    await page.socket.disconnect()
    assert len(expected) > 50
    for role in ("user", "assistant"):
        rows = Message.objects.filter(role=role).order_by("position")
        assert [row.content async for row in rows] == expected
    # Everything at once, so that one JSON holds all of it.
    await Conversation.objects.aupdate(policy_data={"preset": "full"}, window=1_000_000)

    def read() -> None:
        client.force_login(user)
        args = [conversation.pk]
        got = client.get(reverse("context_json", args=args)).json()
        texts = [one["text"] for one in got["segments"] if one["role"] == "user"]
        assert texts == expected
        assert [one["content"] for one in got["body"]["messages"] if one["role"] == "user"] == texts
        shown: list[str] = []
        before: int | None = conversation.next_position + 2 * len(expected)
        while before:
            response = client.get(reverse("transcript", args=args), {"before": before})
            shown = Bodies(response.content.decode()).texts + shown
            before = response.context["transcript"]["older"]
        # A page of 100 messages may begin with a reply; none is shown twice.
        assert shown == expected

    await sync_to_async(read)()


@pytest.mark.data
def test_naughty_strings_can_be_a_title_and_be_searched_for(
    user: Any, conversation: Conversation, data: Path, client: Browser
) -> None:
    fill(conversation, 1)
    client.force_login(user)
    rename = reverse("conversation_rename", args=[conversation.pk])
    listing = reverse("conversation_list")
    for text in [*naughty(data)[::3], *BIDI]:
        title = " ".join(clean(text).split())[:200]
        if not title or "\udbc0" in text:  # a form cannot send half a surrogate pair
            continue
        assert client.post(rename, {"title": text}).status_code == 302
        conversation.refresh_from_db()
        assert conversation.title == title, text
        response = client.get(listing, {"q": title})
        assert response.status_code == 200
        assert [row.pk for row in response.context["conversations"]] == [conversation.pk], text
        assert response.context["query"] == title.strip()


@pytest.mark.data
async def test_naughty_text_in_the_system_prompt_and_in_a_summary_stays_as_it_is(
    runner: Any, scripted: Any, user: Any, make_conversation: Any, data: Path,
    async_client: AsyncClient,
) -> None:  # fmt: skip
    text = "\n".join(one for one in naughty(data) if "\r" not in one and "\udbc0" not in one)
    text = text[:30_000].strip()
    conversation = await sync_to_async(make_conversation)(window=200_000)
    await sync_to_async(fill)(conversation, 8)
    await sync_to_async(fold)(conversation, 8)
    await async_client.aforce_login(user)
    form = {"settings-preset": "hybrid", "settings-system_prompt": text,
            "settings-window": "200000"}  # fmt: skip
    saved = await async_client.post(reverse("panel_settings", args=[conversation.pk]), form)
    assert saved.status_code == 302
    edit = reverse("summary_edit", args=[conversation.pk, 1])
    assert (await async_client.post(edit, {"text": text})).status_code == 302
    await conversation.arefresh_from_db()
    assert conversation.system_prompt == clean(text)
    summary = await Summary.objects.alatest("version")
    assert (summary.kind, summary.text) == ("human", clean(text))
    got = (await async_client.get(reverse("context_json", args=[conversation.pk]))).json()
    assert got["segments"][0]["text"] == clean(text)
    assert got["segments"][1]["kind"] == "summary"
    system = got["body"]["messages"][0]["content"]
    assert system.startswith(clean(text))
    assert system.count(clean(text)) == 2, "nothing in it needs quoting"
    for name in ("panel_context", "panel_summary", "panel_settings", "conversation"):
        page = await async_client.get(reverse(name, args=[conversation.pk]))
        assert page.status_code == 200
        assert b"<script>alert" not in page.content


async def test_a_message_of_a_million_letters_is_refused_at_once(
    runner: Any, user: Any, conversation: Conversation
) -> None:
    page = Page(conversation.pk, await cookie_of(user))
    await page.socket.connect()
    await page.next()
    started = time.monotonic()
    await page.send(type="message.send", id="m1", text="a" * 1_000_000)
    error = await page.next()
    assert (error["code"], error["id"]) == ("too-long", "m1")
    assert "1,000,000" in error["message"]
    assert time.monotonic() - started < 5
    assert not await Message.objects.aexists()
    await page.socket.disconnect()


async def test_others_hear_their_replies_while_the_largest_messages_are_counted(
    runner: Any, scripted: Any, user: Any, make_conversation: Any
) -> None:
    """32,000 Chinese characters are accepted, as are 32,000 of one letter; nobody stalls."""
    cookie = await cookie_of(user)
    pages = []
    for _ in range(2):
        made = await sync_to_async(make_conversation)(window=100_000)
        page = Page(made.pk, cookie)
        await page.socket.connect()
        await page.next()
        pages.append(page)
    reader, writer = pages
    scripted.replies, scripted.pause = ["x" * 100, "ok"], 0.01
    await reader.send(type="message.send", id="r", text="tell me")
    await reader.until("turn.delta")
    heard = [time.monotonic()]

    async def listen() -> None:
        while (frame := await reader.next())["type"] != "turn.ended":
            if frame["type"] == "turn.delta":
                heard.append(time.monotonic())

    async def write() -> None:
        for number, text in enumerate(("記" * 32_000, "a" * 32_000, "a" * 900_000)):
            await writer.send(type="message.send", id=f"w{number}", text=text)
            if len(text) > 32_000:
                assert (await writer.next())["code"] == "too-long"
            else:
                assert (await writer.until("turn.ended"))["state"] == "complete"

    await asyncio.gather(listen(), write())
    assert max(b - a for a, b in pairwise(heard)) < 1.5
    row = await Message.objects.aget(content="記" * 32_000)
    assert row.tokens > counter_for("").count("記" * 32_000)
    for page in pages:
        await page.socket.disconnect()


# On a real Daphne: the test communicator knows no limits


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("served"), seconds_per_token=0)
    done = server.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    try:
        server.start()
        yield server
        assert server.broken_lines() == []
    finally:
        server.close()


class RawSocket:
    """A WebSocket by hand: the handshake and masked frames over a plain connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def open(self, server: Server, path: str, cookie: str, origin: str) -> str:
        """Shake hands; the status line."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", server.port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{server.port}", "Upgrade: websocket",
            "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13",
            f"Origin: {origin}", f"Cookie: sessionid={cookie}", "", "",
        ]  # fmt: skip
        self.writer.write("\r\n".join(lines).encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        return head.decode("latin-1").splitlines()[0]

    async def send(self, text: str) -> None:
        payload = text.encode()
        await self.begin(len(payload))
        self.writer.write(payload)
        await self.writer.drain()

    async def begin(self, size: int) -> None:
        """Announce a text frame of `size` bytes. What is too large is refused here already; its
        bytes would meet a closed connection."""
        length = b"\xff" + size.to_bytes(8, "big")
        if size < 1 << 16:
            length = b"\xfe" + size.to_bytes(2, "big") if size > 125 else bytes([0x80 | size])
        # A mask of zeros leaves the bytes as they are.
        self.writer.write(b"\x81" + length + bytes(4))
        await self.writer.drain()

    async def receive(self) -> Any:
        """The next text frame as JSON, or the code with which the socket was closed."""
        first, size = await self.reader.readexactly(2)
        length = size & 127
        if length >= 126:
            length = int.from_bytes(await self.reader.readexactly(2 if length == 126 else 8), "big")
        payload = await self.reader.readexactly(length)
        if first & 15 == 8:
            return int.from_bytes(payload[:2], "big")
        return json.loads(payload)


def framed(size: int, filler: str = "a") -> str:
    """A frame of exactly `size` bytes with a message in it, or a few less."""
    empty = json.dumps({"type": "message.send", "id": "x", "text": ""})
    return empty[:-2] + filler * ((size - len(empty)) // len(filler.encode())) + '"}'


async def test_a_frame_over_one_mebibyte_closes_the_socket_and_one_below_does_not(
    served: Server,
) -> None:
    client = await asyncio.to_thread(Client, served)
    path = f"/ws{await asyncio.to_thread(client.new_conversation)}"
    cookie = client.http.cookies["sessionid"]

    async def opened() -> RawSocket:
        made = RawSocket()
        assert " 101 " in await made.open(served, path, cookie, served.url)
        assert (await made.receive())["type"] == "hello"
        return made

    async with asyncio.timeout(30):
        for origin in ("https://evil.example", "null", served.url.replace("http", "https")):
            refused = RawSocket()
            assert " 403 " in await refused.open(served, path, cookie, origin)
            refused.writer.close()
        socket = await opened()
        for text in (framed(900_000), framed(MAX_FRAME), framed(MAX_FRAME, "記")):
            await socket.send(text)
            assert (await socket.receive())["code"] == "too-long"
        socket.writer.close()
        for size in (MAX_FRAME + 1, 1_100_000, 5_000_000):
            socket = await opened()
            await socket.begin(size)
            assert await socket.receive() == 1009
            socket.writer.close()
        socket = await opened()
        await socket.send(json.dumps({"type": "message.send", "id": "y", "text": "still here?"}))
        assert (await socket.receive())["type"] == "turn.started"
        while (frame := await socket.receive())["type"] != "turn.ended":
            pass
        assert frame["state"] == "complete"
        socket.writer.close()
    client.close()
