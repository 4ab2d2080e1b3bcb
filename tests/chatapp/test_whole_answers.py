"""The summariser's requests, each for one whole answer: what servers send, and what comes of it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chatapp.provider import Provider, ProviderError
from memory.summarizer import CompletionFailed
from tests.fakeserver import FakeServer, running

ASKED = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def server(settings: Any) -> AsyncIterator[FakeServer]:
    async with running() as fake:
        settings.LLM_BASE_URL = f"http://127.0.0.1:{fake.port}/v1"
        settings.LLM_MODEL = "m"
        fake.kind = "application/json"
        yield fake


@pytest.fixture
async def provider(server: FakeServer) -> AsyncIterator[Provider]:
    made = Provider()
    yield made
    await made.aclose()


def answer(content: Any) -> bytes:
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


@pytest.mark.parametrize("content", ["Fine.", [{"type": "text", "text": "Fine."}, {"type": "x"}]])
async def test_the_answer_is_its_text(content: Any, server: FakeServer, provider: Provider) -> None:
    server.body = answer(content)
    assert (await provider.completer("m")(ASKED, 10)).text == "Fine."


@pytest.mark.parametrize(
    "body",
    [b"no JSON", b"[" * 200_000, b"[]", b'{"choices": 1}', b'{"choices": {"0": 1}}', answer(7)],
    ids=["no JSON", "too deep", "list", "number", "object", "content"],
)
async def test_an_answer_without_a_readable_form_is_a_failed_try(
    body: bytes, server: FakeServer, provider: Provider
) -> None:
    server.body = body
    with pytest.raises(CompletionFailed, match="bad-answer"):
        await provider.completer("m")(ASKED, 10)


async def test_a_limit_that_is_too_large_for_the_window_is_no_refused_parameter(
    server: FakeServer, provider: Provider
) -> None:
    """The limit was never sent again, and answers had no end."""
    words = (
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context "
        "length is 4096 tokens and your request has 3900 input tokens."
    )
    complete = provider.completer("m")
    server.status, server.body = 400, json.dumps({"error": {"message": words}}).encode()
    with pytest.raises(CompletionFailed, match="too-long"):
        await complete(ASKED, 1_000)
    server.status, server.body = 200, answer("Fine.")
    assert (await complete(ASKED, 1_000)).text == "Fine."
    assert [body["max_tokens"] for body in server.requests] == [1_000, 1_000]


async def test_a_key_that_cannot_be_sent_is_the_keys_fault(
    server: FakeServer, settings: Any
) -> None:
    settings.LLM_API_KEY = "sk-abc…"
    provider = Provider()
    with pytest.raises(ProviderError) as caught:
        await anext(provider.stream({"model": "m", "messages": ASKED}))
    assert (caught.value.code, "sk-abc" in caught.value.detail) == ("auth", False)
    with pytest.raises(CompletionFailed, match="auth"):
        await provider.completer("m")(ASKED, 10)
    assert server.requests == []
    await provider.aclose()
