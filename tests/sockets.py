"""The socket as an open page uses it, through the whole ASGI application."""

import json
import time
from typing import Any

from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.test import Client

from chatapp.asgi import application

ORIGIN = b"http://localhost:8000"


async def cookie_of(user: Any) -> bytes:
    """The cookie of this user, signed in."""
    client = Client()
    await sync_to_async(client.force_login)(user)
    return f"sessionid={client.cookies['sessionid'].value}".encode()


class Page:
    """One open page: a socket that remembers what it was told."""

    def __init__(
        self,
        conversation_id: Any,
        cookie: bytes = b"",
        origin: bytes = ORIGIN,
        languages: bytes | None = None,
    ) -> None:
        headers = [(b"origin", origin), (b"host", b"localhost:8000"), (b"cookie", cookie)]
        if languages is not None:
            headers.append((b"accept-language", languages))
        path = f"/ws/c/{conversation_id}/"
        self.socket = WebsocketCommunicator(application, path, headers=headers)
        self.frames: list[dict[str, Any]] = []

    async def send(self, **frame: Any) -> None:
        await self.socket.send_to(text_data=json.dumps(frame))

    async def next(self) -> dict[str, Any]:
        frame = json.loads(await self.socket.receive_from(timeout=10))
        self.frames.append(frame)
        return frame

    async def until(self, type_: str) -> dict[str, Any]:
        while (frame := await self.next())["type"] != type_:
            pass
        return frame

    async def longest_pause(self) -> float:
        """Listen until the turn ends; the longest pause between pieces of the reply, seconds."""
        longest, before = 0.0, time.monotonic()
        while (frame := await self.next())["type"] != "turn.ended":
            if frame["type"] == "turn.delta":
                longest, before = max(longest, time.monotonic() - before), time.monotonic()
        return longest

    def text(self) -> str:
        """The reply as a client builds it from the deltas; a gap raises."""
        text = ""
        for frame in self.frames:
            if frame["type"] == "turn.text":
                text = frame["text"]
            if frame["type"] == "turn.delta":
                assert frame["offset"] <= len(text), "a gap"
                text += frame["text"][len(text) - frame["offset"] :]
        return text
