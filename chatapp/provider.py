"""The only module that speaks to a provider: typed deltas, errors, usage.

One path for every server: the openai client over a transport that notes the hash of what it sends.
Without any setting the transport is the demo model.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from django.conf import settings

from chatapp import servers
from chatapp.deltas import Piece, Reader, StreamError, text_of, usage_counts
from chatapp.demo_model import DEMO_LIMIT, DEMO_MODEL, DEMO_WINDOW, DemoTransport
from chatapp.failures import ProviderError, as_provider_error
from chatapp.sse import Decoder, EventTooLong, ServerEvent
from chatapp.tools.toolsets import toolbox_for
from memory.core.prompts import TOOLS_NOTE
from memory.core.wire import body_hash
from memory.encodings import counter_for
from memory.models import Conversation
from memory.service import Target
from memory.summarizer import Complete, Completion, CompletionFailed

# The window assumed where nobody says one, in tokens: what small local models have at least.
UNKNOWN_WINDOW = 8_192
SUMMARY_TEMPERATURE = 0.3
# What the longest reply is called: the older name, and the one that OpenAI's newer models want.
MOST_TOKENS = ("max_tokens", "max_completion_tokens")
OF_TOOLS = ("tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class Sent:
    """The request has left the process; the SHA-256 of its canonical body."""

    sha256: str


Delta = Sent | Piece

_sent: ContextVar[list[str]] = ContextVar("sent_hashes")


class NotingTransport(httpx2.AsyncBaseTransport):
    """Passes requests on, noting the hash of the body that really goes out."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        hashes = _sent.get(None)
        if hashes is not None:
            hashes.append(body_hash(json.loads(await request.aread())))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def is_demo() -> bool:
    """Whether nothing is configured, so that the demo model answers."""
    return not settings.LLM_BASE_URL and not settings.LLM_API_KEY


def default_model() -> str:
    return DEMO_MODEL if is_demo() else settings.LLM_MODEL


def target_for(model: str, tools: Iterable[str] = ()) -> Target:
    """Where requests for a conversation's model go, "" being the configured default, and which sets
    of tools they offer."""
    name = default_model() if is_demo() else model or settings.LLM_MODEL
    server, toolbox = servers.configured(), toolbox_for(tools)
    # The schemas of tools would leave the small window of the demo model no room for messages.
    demo = (DEMO_LIMIT if toolbox else DEMO_WINDOW) if is_demo() else None
    known = settings.LLM_CONTEXT_WINDOW or demo
    options: dict[str, Any] = {**settings.LLM_EXTRA_BODY, "model": name, "stream": True}
    if server.usage:
        options["stream_options"] = {"include_usage": True}
    if toolbox:
        options["tools"] = toolbox.schemas()
    else:  # both are refused where no tools are offered
        options = {key: options[key] for key in options if key not in OF_TOOLS}
    return Target(
        name,
        known or UNKNOWN_WINDOW,
        options,
        known=known is not None,
        habits=server.habits,
        note=TOOLS_NOTE if toolbox else "",
        keep_tools=toolbox.retrieval,
    )


def target_of(conversation: Conversation) -> Target:
    """Where a conversation's requests go, with its tools."""
    return target_for(conversation.model, conversation.tools)


class Provider:
    """A client of the configured server (or of `transport`, or of the demo model)."""

    def __init__(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        if transport is None and is_demo():
            counter = counter_for(DEMO_MODEL)
            transport = DemoTransport(settings.DEMO_SECONDS_PER_TOKEN, count=counter.count)
        self._refused: dict[str, set[str]] = {}
        inner = transport or httpx2.AsyncHTTPTransport(
            limits=httpx2.Limits(max_connections=200, max_keepalive_connections=20)
        )
        timeout = httpx2.Timeout(
            settings.LLM_FIRST_TOKEN_SECONDS, connect=settings.LLM_CONNECT_SECONDS
        )
        self._client = openai.AsyncOpenAI(
            api_key=settings.LLM_API_KEY or "none",
            base_url=settings.LLM_BASE_URL or None if not is_demo() else "http://demo.invalid/v1",
            max_retries=0,
            timeout=timeout,
            http_client=httpx2.AsyncClient(transport=NotingTransport(inner), timeout=timeout),
        )

    async def aclose(self) -> None:
        await self._client.close()

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[Delta, None]:
        """Send a request and yield what comes back. Raises ProviderError.

        The body goes out as given; its hash is yielded before the first delta, and also where the
        provider refuses the request (then the error is raised).
        """
        hashes: list[str] = []
        _sent.set(hashes)
        announced = False
        deadline = asyncio.get_running_loop().time() + settings.LLM_TOTAL_SECONDS
        _check_key()
        try:
            async with AsyncExitStack() as stack:
                # As `extra_body`: typed arguments are walked through part by part before they are
                # sent, 0.4 ms of the event loop for each message.
                asking = self._client.chat.completions.with_streaming_response.create(
                    model=body["model"], messages=[], extra_body=body
                )
                # Never around a `yield`: it would end what the reader of the stream is just doing.
                async with asyncio.timeout_at(deadline):
                    response = await stack.enter_async_context(asking)
                yield Sent(hashes[-1])
                announced = True
                async with aclosing(_deltas(response.http_response, deadline)) as deltas:
                    async for delta in deltas:
                        yield delta
            return
        except TimeoutError:
            failure = ProviderError("timeout")
        except (openai.OpenAIError, httpx2.HTTPError, EventTooLong, StreamError) as error:
            failure = as_provider_error(error)
        if hashes and not announced and failure.code != "connect":
            yield Sent(hashes[-1])
        raise failure

    def completer(self, model: str) -> Complete:
        """A function that asks `model` for one whole answer, for the summariser."""

        async def complete(messages: Sequence[dict[str, str]], limit: int) -> Completion:
            refused = self._refused.setdefault(model, set())
            first = servers.configured().most_tokens
            second = next(name for name in MOST_TOKENS if name != first)
            options: dict[str, Any] = {"temperature": SUMMARY_TEMPERATURE, first: limit}
            while True:
                body = {name: value for name, value in options.items() if name not in refused}
                if first in refused:
                    body[second] = limit
                try:
                    return await self._whole({"model": model, "messages": list(messages), **body})
                except openai.BadRequestError as error:
                    # Some models refuse one of them; which is remembered. A limit that leaves too
                    # little of the window is named as well, but it is no parameter's fault.
                    named = {name for name in body if name in options and name in str(error)}
                    code = as_provider_error(error).code
                    if not named or code == "too-long":
                        raise CompletionFailed(code) from error
                    refused |= named

        return complete

    async def _whole(self, body: dict[str, Any]) -> Completion:
        """One whole answer. Raises openai.BadRequestError and CompletionFailed."""
        raw = self._client.chat.completions.with_raw_response
        try:
            _check_key()
            response = await raw.create(model=body["model"], messages=[], extra_body=body)
            data = json.loads(response.text)
        except openai.BadRequestError:
            raise
        except ProviderError as error:
            raise CompletionFailed(error.code) from error
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            raise CompletionFailed(as_provider_error(error).code) from error
        except (ValueError, RecursionError) as error:
            raise CompletionFailed("bad-answer") from error
        return completion_from(data, body["model"])


def _check_key() -> None:
    """Raises ProviderError for a key that no request can carry."""
    if not servers.key_can_be_sent():
        raise ProviderError("auth", "it has characters that cannot be sent")


async def _deltas(response: httpx2.Response, deadline: float) -> AsyncGenerator[Piece, None]:
    """What a stream says, up to its end. Raises StreamError, and what `_events` raises."""
    reader = Reader()
    async with aclosing(_events(response, deadline)) as events:
        async for event in events:
            data = event.data.strip()
            if data == "[DONE]":
                break
            for piece in reader.feed(event.type, data) if data else ():
                yield piece
    for piece in reader.end():
        yield piece


async def _events(response: httpx2.Response, deadline: float) -> AsyncGenerator[ServerEvent, None]:
    """The events of a response. Raises ProviderError, and TimeoutError at the deadline or where
    nothing comes for too long."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise ProviderError("stream", f"not an event stream but {kind or 'of no type'}")
    decoder, chunks = Decoder(), response.aiter_bytes()
    loop, patience = asyncio.get_running_loop(), settings.LLM_FIRST_TOKEN_SECONDS
    while True:
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + patience)):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            break
        patience = settings.LLM_IDLE_SECONDS
        for event in decoder.feed(chunk):
            yield event
    for event in decoder.end():
        yield event


def completion_from(data: Any, model: str) -> Completion:
    """The answer in a chat completion. Raises CompletionFailed for one without a choice."""
    try:
        choice = data["choices"][0]
        content = choice["message"].get("content") or ""
        finish = "tool_calls" if choice["message"].get("tool_calls") else choice["finish_reason"]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise CompletionFailed("bad-answer") from error
    if not isinstance(content, (str, list)):
        raise CompletionFailed("bad-answer")
    return Completion(text_of(content), finish or "stop", model, usage_counts(data.get("usage")))
