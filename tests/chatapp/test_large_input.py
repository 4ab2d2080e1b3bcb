"""Input that is too large, or as large as it may be."""

import asyncio
import base64
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.management.commands.serve import MAX_FRAME
from memory.encodings import counter_for
from memory.models import Message
from tests.e2e.serving import Client, Server
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_message_of_a_million_letters_is_refused_at_once(page: Page) -> None:
    started = time.monotonic()
    await page.send(type="message.send", id="m1", text="a" * 1_000_000)
    error = await page.next()
    assert (error["code"], error["id"]) == ("too-long", "m1")
    assert "1,000,000" in error["message"]
    assert time.monotonic() - started < 5
    assert not await Message.objects.aexists()


async def test_others_hear_their_replies_while_the_largest_messages_are_counted(
    open_page: Any, scripted: Any, make_conversation: Any
) -> None:
    """32,000 Chinese characters are accepted, as are 32,000 of one letter; nobody stalls."""
    reader, writer = [
        await open_page(await sync_to_async(make_conversation)(window=100_000)) for _ in range(2)
    ]
    scripted.replies, scripted.pause = ["x" * 100, "ok"], 0.01
    await reader.send(type="message.send", id="r", text="tell me")
    await reader.until("turn.delta")

    async def write() -> None:
        for number, text in enumerate(("記" * 32_000, "a" * 32_000, "a" * 900_000)):
            await writer.send(type="message.send", id=f"w{number}", text=text)
            if len(text) > 32_000:
                assert (await writer.next())["code"] == "too-long"
            else:
                assert (await writer.until("turn.ended"))["state"] == "complete"

    pause, _ = await asyncio.gather(reader.longest_pause(), write())
    assert 0 < pause < 1.5
    row = await Message.objects.aget(content="記" * 32_000)
    assert row.tokens > counter_for("").count("記" * 32_000)


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
