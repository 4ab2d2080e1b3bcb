"""A server on loopback that says exactly what a test wants, byte by byte if need be."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any


def sse(*events: Any) -> bytes:
    """Events of a stream: dicts as JSON data, bytes as they are; [DONE] comes last."""
    parts = [
        event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    ]
    return b"".join(parts) + b"data: [DONE]\n\n"


def text(content: str | None, finish: str | None = None) -> dict[str, Any]:
    """A chunk with a piece of the reply."""
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


class FakeServer:
    """Answers every request with `status` and `body`, in writes of `size` bytes, with a `pause` in
    seconds after each.

    With `hang` it stops in the middle of the body until the connection is closed.
    """

    def __init__(self) -> None:
        self.status = 200
        self.kind = "text/event-stream"
        self.body = b""
        self.size = 65_536
        self.pause = 0.0
        self.hang = False
        self.cut = False
        self.requests: list[dict[str, Any]] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = next(
                int(line.split(":")[1])
                for line in head.split("\r\n")
                if line.lower().startswith("content-length:")
            )
            self.requests.append(json.loads(await reader.readexactly(length)))
            kind = self.kind if self.status == 200 else "application/json"
            writer.write(
                f"HTTP/1.1 {self.status} X\r\ncontent-type: {kind}\r\n"
                "transfer-encoding: chunked\r\n\r\n".encode()
            )
            for chunk in self._chunks():
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
                await asyncio.sleep(self.pause)
            if self.hang:
                await reader.read()
            if not self.cut:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _chunks(self) -> Iterable[bytes]:
        return (
            self.body[start : start + self.size] for start in range(0, len(self.body), self.size)
        )


@asynccontextmanager
async def running() -> AsyncIterator[FakeServer]:
    fake = FakeServer()
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()
