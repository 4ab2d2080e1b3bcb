"""A rule-based model that speaks OpenAI's wire format, as an in-process transport of httpx2.

`openai.AsyncOpenAI(http_client=httpx2.AsyncClient(transport=DemoTransport()))` talks to it without
a network. It keeps nothing between requests. It is as strict as picky chat templates are, so a
request that it accepts has a shape that other servers accept too.
"""

import asyncio
import hashlib
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

import httpx2

from chatapp.demo_rules import answer
from chatapp.demo_seen import text_of
from chatapp.demo_summary import summarise, title
from chatapp.demo_tools import Call, Step, next_step
from chatapp.demo_wire import (
    BadRequest,
    Json,
    Offer,
    check_messages,
    check_target,
    offer_in,
    parsed,
)
from memory.core.prompts import SUMMARY_ROLE, TITLE_ROLE

DEMO_MODEL = "demo"
# Tokens: the window that the application assumes, small, so that a class sees compaction happen;
# and what the model really takes, so that a step of an agent that has grown is still answered.
DEMO_WINDOW = 2_048
DEMO_LIMIT = 8_192
MESSAGE_OVERHEAD = 4  # tokens that a chat template adds around one message
REPLY_OVERHEAD = 3  # tokens that open the reply
PIECES = re.compile(r"\s*(?:[㐀-鿿]{1,2}[，。：；、？！]?|[^\s㐀-鿿]{1,16})|\s+")


def estimated_tokens(text: str) -> int:
    """Tokens where no tokenizer is at hand."""
    return math.ceil(len(text) / 2.5)


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished answer, before it is put on the wire."""

    id: str
    model: str
    text: str
    calls: tuple[Call, ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int

    def envelope(self, kind: str, choices: list[Json]) -> Json:
        head = {"id": self.id, "object": kind, "created": 0, "model": self.model}
        return head | {"choices": choices}

    @property
    def usage(self) -> Json:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }

    def whole(self) -> Json:
        message: Json = {"role": "assistant", "content": self.text, "refusal": None}
        if self.calls:
            message |= {"content": self.text or None}
            message["tool_calls"] = [
                {"id": call_id, "type": "function"}
                | {"function": {"name": call.name, "arguments": call.arguments}}
                for call_id, call in self.named_calls()
            ]
        choice = {"index": 0, "message": message, "logprobs": None}
        choice["finish_reason"] = self.finish_reason
        return self.envelope("chat.completion", [choice]) | {"usage": self.usage}

    def named_calls(self) -> Iterator[tuple[str, Call]]:
        """The calls with their ids, which differ between answers."""
        digest = self.id.partition("-")[2]
        return ((f"call_{digest}{index}", call) for index, call in enumerate(self.calls))

    def deltas(self) -> Iterator[Json]:
        """The answer about a word or two Chinese characters at a time; each call after its name."""
        yield {"role": "assistant", "content": "" if self.text or not self.calls else None}
        for piece in PIECES.findall(self.text):
            yield {"content": piece}
        for index, (call_id, call) in enumerate(self.named_calls()):
            head = {"index": index, "id": call_id, "type": "function"}
            yield {"tool_calls": [head | {"function": {"name": call.name, "arguments": ""}}]}
            for piece in PIECES.findall(call.arguments):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def chunks(self, *, include_usage: bool) -> Iterator[Json]:
        deltas: list[tuple[Json, str | None]] = [(delta, None) for delta in self.deltas()]
        deltas.append(({}, self.finish_reason))
        no_usage = {"usage": None} if include_usage else {}
        for delta, finish in deltas:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            yield self.envelope("chat.completion.chunk", [choice]) | no_usage
        if include_usage:
            yield self.envelope("chat.completion.chunk", []) | {"usage": self.usage}


class EventStream(httpx2.AsyncByteStream):
    """Chunks as server-sent events, with a pause after each one."""

    def __init__(self, chunks: Iterator[Json], seconds: float) -> None:
        self._chunks = chunks
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
            # Without a pause this still lets other tasks run, and a cancellation through.
            await asyncio.sleep(self._seconds)
        yield b"data: [DONE]\n\n"


class DemoTransport(httpx2.AsyncBaseTransport):
    """Answers POST .../chat/completions. `count` gives the tokens of a text."""

    def __init__(
        self,
        seconds_per_token: float = 0.0,
        *,
        count: Callable[[str], int] = estimated_tokens,
    ) -> None:
        self._seconds = seconds_per_token
        self._count = count

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            check_target(request)
            body = parsed(await request.aread())
            completion = complete(body, self._count)
        except BadRequest as refusal:
            return httpx2.Response(refusal.status, json={"error": refusal.error})
        if body.get("stream"):
            include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return httpx2.Response(
                200,
                headers={"content-type": "text/event-stream; charset=utf-8"},
                stream=EventStream(completion.chunks(include_usage=include_usage), self._seconds),
            )
        written = (completion.text, *(call.arguments for call in completion.calls))
        await asyncio.sleep(self._seconds * sum(len(PIECES.findall(text)) for text in written))
        return httpx2.Response(200, json=completion.whole())


def complete(body: Json, count: Callable[[str], int] = estimated_tokens) -> Completion:
    """The answer to a request body. Raises BadRequest for one that the model does not accept."""
    check_messages(body["messages"])
    offer = offer_in(body)
    prompt = prompt_tokens(body, count)
    if prompt > DEMO_LIMIT:
        raise BadRequest(
            f"This model's maximum context length is {DEMO_LIMIT} tokens. However, your messages "
            f"resulted in {prompt} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    answered = _answered(body["messages"], offer)
    room = max(1, DEMO_LIMIT - prompt)
    most = body.get("max_completion_tokens") or body.get("max_tokens") or room
    kept = _cut_step(answered, min(most, room), count)
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return Completion(
        id=f"chatcmpl-{digest[:24]}",
        model=body["model"],
        text=kept.text,
        calls=kept.calls,
        finish_reason="length" if kept != answered else "tool_calls" if kept.calls else "stop",
        prompt_tokens=prompt,
        completion_tokens=_tokens(kept, count),
    )


def _answered(messages: Sequence[Json], offer: Offer) -> Step:
    """What the model says and calls, before any limit."""
    system = text_of(messages[0]) if messages[0]["role"] == "system" else ""
    if system.startswith(SUMMARY_ROLE):
        step = Step(summarise(system, text_of(messages[-1])))
    elif system.startswith(TITLE_ROLE):
        step = Step(title(text_of(messages[-1])))
    else:
        step = next_step(messages, offer) if offer.tools else Step(answer(messages))
    # Half a surrogate pair cannot be sent.
    calls = (Call(call.name, _sendable(call.arguments)) for call in step.calls)
    return Step(_sendable(step.text), tuple(calls))


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def prompt_tokens(body: Json, count: Callable[[str], int]) -> int:
    """What the request costs: texts, calls and tool descriptions, and an overhead per message."""
    texts = [json.dumps(body["tools"], ensure_ascii=False)] if body.get("tools") else []
    for message in body["messages"]:
        texts.append(text_of(message))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"]]
    overhead = MESSAGE_OVERHEAD * len(body["messages"]) + REPLY_OVERHEAD
    return overhead + sum(map(count, filter(None, texts)))


def _tokens(step: Step, count: Callable[[str], int]) -> int:
    written = [step.text, *(part for call in step.calls for part in (call.name, call.arguments))]
    return sum(map(count, filter(None, written)))


def _cut_step(step: Step, most: int, count: Callable[[str], int]) -> Step:
    """What fits in at most `most` tokens: the last call may be cut within its arguments."""
    text = _cut(step.text, most, count)
    calls: list[Call] = []
    left = most - count(text) if text == step.text else 0
    for call in step.calls:
        left -= count(call.name)
        if left <= 0:
            break
        calls.append(Call(call.name, _cut(call.arguments, left, count)))
        left -= count(calls[-1].arguments)
    return Step(text, tuple(calls))


def _cut(text: str, most: int, count: Callable[[str], int]) -> str:
    """The longest start of the text that has at most `most` tokens."""
    if count(text) <= most:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if count(text[:middle]) <= most else (fits, middle)
    return text[:fits]
