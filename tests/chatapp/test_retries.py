"""Requests that are sent again: only before the first piece, seen, and not for ever."""

from typing import Any

import httpx2
import pytest

from chatapp.agent import pause_before
from chatapp.failures import ProviderError, as_provider_error
from chatapp.provider import Provider
from memory.models import Conversation, Message, Request
from tests.cases.raw import RawTransport, piece
from tests.chatapp.helpers import say
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture(autouse=True)
def _retries(settings: Any) -> None:
    settings.LLM_RETRIES, settings.LLM_RETRY_SECONDS = 2, 0.001


@pytest.mark.parametrize("failure", [500, 503, 429, httpx2.ConnectError("refused")])
async def test_a_passing_failure_is_tried_again_and_told(
    failure: Any, page: Page, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies = [failure, failure, "It works."]
    await page.send(type="message.send", id="m1", text="hello")
    phases = []
    while (frame := await page.next())["type"] != "turn.ended":
        phases += [frame["phase"]] if frame["type"] == "turn.status" else []
    assert (frame["state"], frame["reason"]) == ("complete", "")
    assert phases.count("retrying") == 2
    # Each try is a request of its own.
    assert await Request.objects.acount() == len(scripted.bodies) == 3
    assert (await Message.objects.aget(role="assistant")).content == "It works."


@pytest.mark.parametrize(
    ("failure", "code", "tries"),
    [(500, "server", 3), (401, "auth", 1), (400, "refused", 1), (404, "no-model", 1)],
)
async def test_what_does_not_pass_ends_the_turn(
    failure: int, code: str, tries: int, runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies = [failure]
    turn = await say(runner, conversation, "hello")
    assert (turn.state, turn.error_code) == ("failed", code)
    assert len(scripted.bodies) == tries


async def test_nothing_is_sent_again_once_a_piece_has_come(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies = [[piece("half"), httpx2.ReadError("gone")], "again"]
    turn = await say(runner, conversation, "hello")
    assert (turn.state, turn.error_code) == ("failed", "stream")
    assert len(scripted.bodies) == 1
    assert (await Message.objects.aget(role="assistant")).content == "half"


async def test_an_account_without_credit_is_not_asked_again(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(request: httpx2.Request) -> httpx2.Response:
        scripted.bodies.append({})
        error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
        return httpx2.Response(429, json={"error": error}, request=request)

    monkeypatch.setattr(scripted, "handle_async_request", refuse)
    turn = await say(runner, conversation, "hello")
    assert (turn.state, turn.error_code) == ("failed", "quota")
    assert len(scripted.bodies) == 1


def test_the_pause_doubles_or_is_what_was_asked_for_and_has_an_end(settings: Any) -> None:
    settings.LLM_RETRY_SECONDS = 20
    assert [pause_before(number, None) for number in (1, 2, 3)] == [0.5, 1, 2]
    assert [pause_before(1, asked) for asked in (0.0, 3.0, 600.0)] == [0, 3, 20]


@pytest.mark.parametrize(
    ("header", "pause"), [("7", 7.0), ("0.5", 0.5), ("soon", None), ("-1", None), (None, None)]
)
async def test_retry_after_is_read(
    header: str | None, pause: float | None, scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(request: httpx2.Request) -> httpx2.Response:
        headers = {} if header is None else {"retry-after": header}
        return httpx2.Response(429, headers=headers, json={}, request=request)

    monkeypatch.setattr(scripted, "handle_async_request", busy)
    provider = Provider(scripted)
    with pytest.raises(ProviderError, match="rate-limit") as caught:
        async for _ in provider.stream({"model": "m", "messages": []}):
            pass
    await provider.aclose()
    assert caught.value.pause == pause
    assert as_provider_error(ValueError("x")).pause is None


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 2048 tokens.",
        "request (2473 tokens) exceeds the available context size (2048 tokens), try increasing it",
    ],
)
async def test_too_long_is_said_as_such_whatever_the_server_calls_it(
    words: str, runner: Any, scripted: Any, conversation: Conversation, monkeypatch: Any
) -> None:
    async def refuse(request: httpx2.Request) -> httpx2.Response:
        error = {"message": words, "type": "exceed_context_size_error", "code": 400}
        return httpx2.Response(400, json={"error": error}, request=request)

    monkeypatch.setattr(scripted, "handle_async_request", refuse)
    turn = await say(runner, conversation, "hello")
    assert (turn.state, turn.error_code) == ("failed", "too-long")
