"""The provider over a real connection: what servers send, and what becomes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatapp.deltas import Finish, Text, Usage, usage_counts
from chatapp.provider import Provider, ProviderError, Sent, target_for
from memory.core.wire import body_hash
from memory.models import usage_tokens
from memory.summarizer import CompletionFailed
from tests.fakeserver import END, FakeServer, running, sse, text

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi 你好"}], "stream": True}


@pytest.fixture
async def server(settings: Any) -> AsyncIterator[FakeServer]:
    async with running() as fake:
        settings.LLM_BASE_URL = f"http://127.0.0.1:{fake.port}/v1"
        settings.LLM_MODEL = "m"
        settings.LLM_API_KEY = "sk-secret"
        yield fake


@pytest.fixture
async def provider(server: FakeServer) -> AsyncIterator[Provider]:
    made = Provider()
    yield made
    await made.aclose()


async def read(provider: Provider, seen: list[Any] | None = None) -> tuple[str, list[Any]]:
    """The reply and everything else that came, in order; `seen` also holds what came before an
    error."""
    seen = [] if seen is None else seen
    async for delta in provider.stream(BODY):
        seen.append(delta)
    reply = "".join(delta.text for delta in seen if isinstance(delta, Text))
    return reply, [delta for delta in seen if not isinstance(delta, Text)]


async def test_the_hash_is_that_of_the_body_which_arrived(
    server: FakeServer, provider: Provider
) -> None:
    server.body = sse(text("ok"), END)
    reply, rest = await read(provider)
    assert reply == "ok"
    assert server.requests == [BODY]
    assert rest[0] == Sent(body_hash(server.requests[0]))
    assert rest[1] == Finish("stop")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 65_536])
async def test_characters_split_between_reads_stay_whole(
    size: int, server: FakeServer, provider: Provider
) -> None:
    server.size = size
    server.body = sse(*(text(char) for char in "謝謝🌱, bis später 👨‍👩‍👧‍👦"), END)
    raw = sse(text("謝")).replace(b"\\u8b1d", "謝".encode())
    server.body = raw.replace(b"data: [DONE]\n\n", b"") + server.body
    assert (await read(provider))[0] == "謝謝謝🌱, bis später 👨‍👩‍👧‍👦"


QUIRKS = [
    pytest.param(
        [{"id": "", "choices": [], "prompt_filter_results": []}, text("Hi"), text(" there"), END],
        "Hi there", id="first chunk without a choice",
    ),
    pytest.param([text("done"), END, {"choices": [], "usage": {"prompt_tokens": 10}}], "done",
                 id="usage after the end"),
    pytest.param([b"retry: 3000\n\n", text("a"), b"id: 7\n: ping\n\n", text("b"), END], "ab",
                 id="meta fields and comments"),
    pytest.param([text("777"), text("777"), text("77"), END], "77777777", id="real repetition"),
    pytest.param([{"choices": [{"delta": {"role": "assistant", "content": None}}]}, text("x"), END],
                 "x", id="null content"),
    pytest.param([{"choices": [{"delta": None}]}, {"choices": None}, text("x"), END], "x",
                 id="null delta and choices"),
    pytest.param([text("x", "stop")], "x", id="text and end in one chunk"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "reply"), QUIRKS)
async def test_quirks_of_servers_do_not_change_the_reply(
    events: list[Any], reply: str, server: FakeServer, provider: Provider
) -> None:
    server.body = sse(*events)
    assert (await read(provider))[0] == reply


async def test_usage_is_taken_from_the_last_report(server: FakeServer, provider: Provider) -> None:
    first, last = {"prompt_tokens": 3}, {"prompt_tokens": 120, "input_tokens": 90_000, "x": "9"}
    server.body = sse({**text("a"), "usage": first}, END, {"choices": [], "usage": last})
    _, rest = await read(provider)
    reports = [delta.counts for delta in rest if isinstance(delta, Usage)]
    assert usage_tokens(reports[-1]) == 120
    for odd in (None, [], "12", {"prompt_tokens": "12"}, {"prompt_tokens": None}):
        assert usage_tokens(usage_counts(odd)) is None


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "auth"), (403, "auth"), (404, "no-model"), (429, "rate-limit"), (500, "server"),
     (400, "refused")],
)  # fmt: skip
async def test_a_refusal_has_a_kind_and_what_was_sent_is_known(
    status: int, code: str, server: FakeServer, provider: Provider
) -> None:
    server.status, server.body = status, b'{"error": {"message": "no"}}'
    seen: list[Any] = []
    with pytest.raises(ProviderError) as caught:
        await read(provider, seen)
    assert caught.value.code == code
    assert "sk-secret" not in caught.value.detail
    assert seen == [Sent(body_hash(BODY))]


async def test_a_too_long_request_is_named(server: FakeServer, provider: Provider) -> None:
    server.status = 400
    server.body = b'{"error": {"message": "too long", "code": "context_length_exceeded"}}'
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert caught.value.code == "too-long"


@pytest.mark.parametrize(
    "error",
    [
        {"message": "The model is loaded with context length of only 4096 tokens"},
        {"message": "too long", "code": "context_length_exceeded"},
    ],
)
async def test_a_too_long_request_is_named_within_a_stream_too(
    error: dict[str, str], server: FakeServer, provider: Provider
) -> None:
    server.body = b"event: error\n" + sse({"error": error})
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert (caught.value.code, caught.value.detail) == ("too-long", error["message"])


@pytest.mark.parametrize("bad", ["\ud800 broken", "x\x00 broken"])
async def test_an_errors_words_can_be_stored(
    bad: str, server: FakeServer, provider: Provider
) -> None:
    server.body = sse({"error": {"message": bad}})
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert (caught.value.code, caught.value.detail[-8:]) == ("server", "\ufffd broken")


BROKEN = [
    pytest.param(sse(text("par"), {"error": {"message": "overloaded", "code": 529}}), "server",
                 id="error in the stream"),
    pytest.param(sse(text("par"), b"event: error\ndata: overloaded\n\n"), "server",
                 id="error event with plain text"),
    pytest.param(sse(text("par")), "stream", id="end without a finish reason"),
    pytest.param(sse(text("par"), b"data: {broken\n\n"), "stream", id="broken JSON"),
    pytest.param(sse(text("par"), b"data: [1]\n\n"), "stream", id="not an object"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code"), BROKEN)
async def test_a_broken_stream_keeps_what_came_before(
    body: bytes, code: str, server: FakeServer, provider: Provider
) -> None:
    server.body = body
    seen: list[Any] = []
    with pytest.raises(ProviderError) as caught:
        await read(provider, seen)
    assert [delta for delta in seen if isinstance(delta, Text)] == [Text("par")]
    assert caught.value.code == code


async def test_a_connection_that_breaks_is_told(server: FakeServer, provider: Provider) -> None:
    server.body, server.cut = sse(text("par"))[:-14], True
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert caught.value.code == "stream"


async def test_a_server_that_falls_silent_times_out(
    server: FakeServer, provider: Provider, settings: Any
) -> None:
    settings.LLM_IDLE_SECONDS = 0.05
    server.body, server.hang = b"data: " + b"\n\n", True
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert caught.value.code == "timeout"


async def test_the_first_token_may_take_longer_than_the_next(
    server: FakeServer, provider: Provider, settings: Any
) -> None:
    settings.LLM_FIRST_TOKEN_SECONDS, settings.LLM_IDLE_SECONDS = 0.05, 60
    server.body, server.hang = b"", True
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert caught.value.code == "timeout"


async def test_the_last_deadline_ends_the_stream_and_not_its_reader(
    server: FakeServer, provider: Provider, settings: Any
) -> None:
    settings.LLM_TOTAL_SECONDS = 0.2
    server.body, server.hang = b"data: " + json.dumps(text("par")).encode() + b"\n\n", True
    seen: list[Any] = []

    async def slowly() -> None:
        async for delta in provider.stream(BODY):
            seen.append(delta)
            if isinstance(delta, Text):
                await asyncio.sleep(0.4)
                seen.append("slept")

    with pytest.raises(ProviderError) as caught:
        await slowly()
    assert seen[-2:] == [Text("par"), "slept"]
    assert caught.value.code == "timeout"


async def test_an_answer_that_is_no_stream_is_told(server: FakeServer, provider: Provider) -> None:
    server.kind, server.body = "text/html", b"<html>a captive portal</html>"
    with pytest.raises(ProviderError, match="stream"):
        await read(provider)


async def test_a_server_that_is_not_there_is_told(settings: Any) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "m"
    provider = Provider()
    with pytest.raises(ProviderError) as caught:
        await read(provider)
    assert caught.value.code == "connect"
    with pytest.raises(CompletionFailed, match="connect"):
        await provider.completer("m")([{"role": "user", "content": "x"}], 10)
    await provider.aclose()


def test_the_window_comes_from_the_configuration(settings: Any) -> None:
    assert target_for("").window == 2_048
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "qwen2.5:7b"
    assert (target_for("").model, target_for("").window) == ("qwen2.5:7b", 8_192)
    settings.LLM_CONTEXT_WINDOW = 32_000
    assert target_for("other").window == 32_000
    assert target_for("other").options["model"] == "other"
