"""A provider whose answers a test writes: it speaks the chat-completions format in-process."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2

Answer = str | dict[str, Any] | Exception | Callable[[dict[str, Any]], Any]


class ScriptedTransport(httpx2.AsyncBaseTransport):
    """Answers streamed requests from `replies` and whole ones (the summariser's) from `summaries`.

    An answer is text, a whole body as a dict, an exception to raise, an int (a status to refuse
    with), or a function of the body that gives one of these. The last one repeats. `hold` makes
    streams wait for the event after their first piece; `pieces` cuts replies (default: by
    characters), `usage` is what streams report. Every body is kept in `bodies`.
    """

    def __init__(self) -> None:
        self.replies: list[Any] = ["ok"]
        self.summaries: list[Any] = ["The earlier messages in short."]
        self.bodies: list[dict[str, Any]] = []
        self.pieces: Callable[[str], list[str]] = list
        self.pause = 0.0
        self.hold: asyncio.Event | None = None
        self.finish = "stop"
        self.usage = {"prompt_tokens": 42, "completion_tokens": 5}

    def streamed(self) -> list[dict[str, Any]]:
        """The bodies of the streamed requests: those of turns."""
        return [body for body in self.bodies if body.get("stream")]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        self.bodies.append(body)
        script = self.replies if body.get("stream") else self.summaries
        answer = script.pop(0) if len(script) > 1 else script[0]
        if callable(answer):
            answer = answer(body)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            error = {"error": {"message": f"refused with {answer}", "type": "test"}}
            return httpx2.Response(answer, json=error, request=request)
        if body.get("stream"):
            return httpx2.Response(
                200,
                headers={"content-type": "text/event-stream"},
                stream=_Stream(self._chunks(answer)),
                request=request,
            )
        if isinstance(answer, str):
            message = {"role": "assistant", "content": answer}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "x", "choices": [choice], "usage": {"prompt_tokens": 7}}
        return httpx2.Response(200, json=answer, request=request)

    async def _chunks(self, text: str) -> AsyncIterator[bytes]:
        for index, piece in enumerate(self.pieces(text)):
            yield _event({"choices": [{"index": 0, "delta": {"content": piece}}]})
            if self.hold is not None and index == 0:
                await self.hold.wait()
            await asyncio.sleep(self.pause)
        yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        yield _event({"choices": [], "usage": self.usage})
        yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk
