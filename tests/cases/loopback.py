"""The scripted provider behind a real socket, whose bytes arrive in small pieces."""

import asyncio
import json
from typing import Any

import httpx2

from tests.cases.raw import RawTransport

# Bytes of one write: Chinese characters and emoji are split, as are the marks between events.
SIZE = 7


class Loopback(RawTransport):
    """Sends every request over TCP to a server on loopback, which answers as the script says."""

    def __init__(self) -> None:
        super().__init__()
        self._inner = httpx2.AsyncHTTPTransport()
        self._server: asyncio.Server | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        url = request.url.copy_with(scheme="http", host="127.0.0.1", port=port)
        body = await request.aread()
        headers = {"content-type": "application/json", "connection": "close"}
        forwarded = httpx2.Request(
            request.method, url, headers=headers, content=body, extensions=request.extensions
        )
        return await self._inner.handle_async_request(forwarded)

    async def close(self) -> None:
        await self._inner.aclose()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].split()[0])
            body = json.loads(await reader.readexactly(length))
            request = httpx2.Request("POST", "http://loopback/", json=body)
            response = await super().handle_async_request(request)
            kind = response.headers["content-type"]
            writer.write(
                f"HTTP/1.1 {response.status_code} X\r\ncontent-type: {kind}\r\n"
                f"transfer-encoding: chunked\r\nconnection: close\r\n\r\n".encode()
            )
            async for part in self._parts(response):
                writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await writer.drain()
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except (OSError, httpx2.HTTPError, asyncio.IncompleteReadError):  # it hangs up
            writer.transport.abort()
        finally:
            writer.close()

    async def _parts(self, response: httpx2.Response) -> Any:
        async for chunk in response.aiter_raw():
            for start in range(0, len(chunk), SIZE):
                yield chunk[start : start + SIZE]
