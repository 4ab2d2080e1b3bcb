"""A small WebSocket client over asyncio's streams: text frames, pings, the end."""

import asyncio
import base64
import json
import os
import struct
from typing import Any, Self

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Socket:
    """One open socket. Frames are the objects of docs/protocol.md."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int, path: str, cookie: str = "") -> Self:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = (
            f"GET {path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Origin: http://127.0.0.1:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Cookie: {cookie}",
        )
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise ConnectionError(head.decode("latin-1"))
        return cls(reader, writer)

    def send(self, **frame: Any) -> None:
        self._write(TEXT, json.dumps(frame).encode())

    def _write(self, opcode: int, data: bytes) -> None:
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack("!H", size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._writer.write(bytes([0x80 | opcode]) + length + mask + masked)

    async def receive(self) -> dict[str, Any]:
        """The next frame. Raises ConnectionError once the server has closed."""
        whole = b""
        while True:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
            data = await self._reader.readexactly(size)
            match first & 0x0F:
                case 8:
                    raise ConnectionError(f"closed: {data!r}")
                case 9:
                    self._write(PONG, data)
                case 10:
                    pass
                case _:
                    whole += data
                    if first & 0x80:
                        return dict(json.loads(whole))

    async def until(self, kind: str) -> dict[str, Any]:
        """The next frame of this type, past all others."""
        while (frame := await self.receive())["type"] != kind:
            pass
        return frame

    async def close(self) -> None:
        self._write(CLOSE, struct.pack("!H", 1000))
        self._writer.close()
