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
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from chatapp.demo_rules import answer
from chatapp.demo_seen import text_of
from chatapp.demo_summary import summarise, title
from memory.core.prompts import SUMMARY_ROLE, TITLE_ROLE

DEMO_MODEL = "demo"
DEMO_WINDOW = 2_048  # tokens a prompt may have; small, so that a class sees compaction happen
MESSAGE_OVERHEAD = 4  # tokens that a chat template adds around one message
REPLY_OVERHEAD = 3  # tokens that open the reply
PATH = "/chat/completions"
PIECES = re.compile(r"\s*(?:[㐀-鿿]{1,2}[，。：；、？！]?|[^\s㐀-鿿]{1,16})|\s+")

Json = dict[str, Any]


def estimated_tokens(text: str) -> int:
    """Tokens where no tokenizer is at hand."""
    return math.ceil(len(text) / 2.5)


class BadRequest(Exception):
    """What the model refuses; becomes an error object as OpenAI's servers send it."""

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error"
        self.error = {"message": message, "type": kind, "param": param, "code": code}


@dataclass(frozen=True, slots=True)
class Completion:
    """One finished answer, before it is put on the wire."""

    id: str
    model: str
    text: str
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
        message = {"role": "assistant", "content": self.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None}
        choice["finish_reason"] = self.finish_reason
        return self.envelope("chat.completion", [choice]) | {"usage": self.usage}

    def chunks(self, *, include_usage: bool) -> Iterator[Json]:
        """The answer about a word or two Chinese characters at a time."""
        deltas: list[tuple[Json, str | None]] = [({"role": "assistant", "content": ""}, None)]
        deltas += [({"content": piece}, None) for piece in PIECES.findall(self.text)]
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
            _check_target(request)
            body = _parsed(await request.aread())
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
        await asyncio.sleep(self._seconds * len(PIECES.findall(completion.text)))
        return httpx2.Response(200, json=completion.whole())


def complete(body: Json, count: Callable[[str], int] = estimated_tokens) -> Completion:
    """The answer to a request body. Raises BadRequest for one that the model does not accept."""
    messages = body["messages"]
    check_messages(messages)
    prompt = prompt_tokens(body, count)
    if prompt > DEMO_WINDOW:
        raise BadRequest(
            f"This model's maximum context length is {DEMO_WINDOW} tokens. However, your messages "
            f"resulted in {prompt} tokens. Please reduce the length of the messages.",
            param="messages",
            code="context_length_exceeded",
        )
    system = text_of(messages[0]) if messages[0]["role"] == "system" else ""
    if system.startswith(SUMMARY_ROLE):
        text = summarise(system, text_of(messages[-1]))
    elif system.startswith(TITLE_ROLE):
        text = title(text_of(messages[-1]))
    else:
        text = answer(messages)
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair cannot be sent
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    kept = _cut(text, most, count) if most else text
    canonical = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
    return Completion(
        id=f"chatcmpl-{digest[:24]}",
        model=body["model"],
        text=kept,
        finish_reason="stop" if kept == text else "length",
        prompt_tokens=prompt,
        completion_tokens=count(kept),
    )


def prompt_tokens(body: Json, count: Callable[[str], int]) -> int:
    """What the request costs: texts, calls and tool descriptions, and an overhead per message."""
    texts = [json.dumps(body["tools"], ensure_ascii=False)] if body.get("tools") else []
    for message in body["messages"]:
        texts.append(text_of(message))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"]]
    overhead = MESSAGE_OVERHEAD * len(body["messages"]) + REPLY_OVERHEAD
    return overhead + sum(map(count, filter(None, texts)))


def _cut(text: str, most: int, count: Callable[[str], int]) -> str:
    """The longest start of the text that has at most `most` tokens."""
    if count(text) <= most:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        fits, too_long = (middle, too_long) if count(text[:middle]) <= most else (fits, middle)
    return text[:fits]


def _check_target(request: httpx2.Request) -> None:
    if not request.url.path.endswith(PATH):
        raise BadRequest(f"Invalid URL ({request.method} {request.url.path})", status=404)
    if request.method != "POST":
        raise BadRequest(f"Not allowed to {request.method} on {request.url.path}", status=405)


def _parsed(content: bytes) -> Json:
    try:
        body = json.loads(content)
    except ValueError:
        raise BadRequest("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body of the request must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise BadRequest("You must provide a model parameter.", param="model")
    for name in ("max_tokens", "max_completion_tokens"):
        most = body.get(name)
        if most is not None and (type(most) is not int or most < 1):
            raise BadRequest(f"'{name}' must be an integer of at least 1.", param=name)
    if body.get("n") not in (None, 1):
        raise BadRequest("This model gives one choice only: 'n' must be 1.", param="n")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise BadRequest("'stream_options' is only allowed with 'stream'.", param="stream_options")
    if not isinstance(body.get("stream_options") or {}, dict):
        raise BadRequest("'stream_options' must be an object.", param="stream_options")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise BadRequest("'messages' must be an array with at least one message.", param="messages")
    return body


def check_messages(messages: Sequence[Any]) -> None:
    """Raises BadRequest unless a picky chat template would take the messages."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "user", "assistant", "tool"):
            raise BadRequest(
                f"'{where}' must be an object whose 'role' is one of 'system', 'user', 'assistant' "
                "and 'tool'.",
                param=f"{where}.role",
            )
        _check_content(message, where)
        if role == "system" and index:
            raise BadRequest(
                "There may be one system message only, as the first message.", param=where
            )
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise BadRequest(
                    f"'{where}' with role 'tool' does not answer a call of the assistant message "
                    "before it.",
                    param=where,
                )
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            break
        open_calls = _call_ids(message, where)
    if open_calls:
        raise BadRequest(
            f"Tool calls without a result behind them: {', '.join(open_calls)}.", param="messages"
        )
    if messages[-1]["role"] not in ("user", "tool"):
        raise BadRequest(
            "The last message must have the role 'user' or 'tool'.",
            param=f"messages[{len(messages) - 1}].role",
        )


def _check_content(message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    if content is None and message["role"] == "assistant" and message.get("tool_calls"):
        return
    if isinstance(content, list) and all(_is_text(part) for part in content):
        return
    if not isinstance(content, str):
        raise BadRequest(f"'{where}.content' must be a string.", param=f"{where}.content")


def _is_text(part: object) -> bool:
    return (
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def _call_ids(message: Mapping[str, Any], where: str) -> list[str]:
    """The ids of the calls a message makes."""
    try:
        functions = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
    except (KeyError, TypeError):
        functions = [("", "", None)]
    if not all(isinstance(value, str) for function in functions for value in function):
        raise BadRequest(
            f"Each of '{where}.tool_calls' needs an id and a function with name and arguments.",
            param=f"{where}.tool_calls",
        )
    if functions and message["role"] != "assistant":
        raise BadRequest("Only an assistant message can make calls.", param=f"{where}.tool_calls")
    return [function[0] for function in functions]
