"""Turns with a real model: streamed, counted, stopped, in Chinese."""

from typing import Any

import httpx2
import pytest

from memory.models import Conversation, Message
from tests.chatapp.helpers import say
from tests.conftest import until
from tests.real.conftest import BRIEF, URL
from tests.sockets import Page

pytestmark = [pytest.mark.real, pytest.mark.django_db(transaction=True)]


async def told(page: Page, text: str) -> tuple[dict[str, Any], int]:
    """Send a message and listen to the end of its turn: the last frame, and how many had text."""
    await page.send(type="message.send", id=text[:60], text=text)
    ended = await page.until("turn.ended")
    return ended, sum(frame["type"] == "turn.delta" for frame in page.frames)


async def test_a_reply_is_streamed_stored_and_counted(
    page: Page, verified_requests: Any, settings: Any
) -> None:
    settings.LLM_EXTRA_BODY = BRIEF | {"max_tokens": 300}
    ended, pieces = await told(page, "Tell me in a sentence what the moon is.")
    stored = await Message.objects.aget(role="assistant")
    (request,) = await verified_requests()
    print(f"\n{stored.content!r} in {pieces} frames")
    print(f"tokens of the request: counted {request.tokens}, reported {request.usage}")
    assert ended["state"] == "complete"
    assert stored.content.strip()
    assert page.text() == stored.content
    assert pieces > 1
    assert request.usage["prompt_tokens"] > 0
    assert request.usage["completion_tokens"] > 1


async def test_chinese_arrives_as_it_is_stored(page: Page, verified_requests: Any) -> None:
    await told(page, "你好！请用中文写一句话，说说月亮是什么。🌕")
    stored = await Message.objects.aget(role="assistant")
    (request,) = await verified_requests()
    print(f"\n{stored.content!r}")
    print(f"tokens of the request: counted {request.tokens}, reported {request.usage}")
    assert stored.content.strip()
    assert page.text() == stored.content


async def test_stop_ends_the_reply_here_and_at_the_server(
    runner: Any, conversation: Conversation, settings: Any
) -> None:
    settings.LLM_EXTRA_BODY = BRIEF | {"max_tokens": 3_000, "ignore_eos": True}
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="first", text="Tell me a long story."
    )

    async def written() -> bool:
        return bool((runner.partial_of(turn.pk) or (0, ""))[1])

    async def idle() -> bool:
        async with httpx2.AsyncClient() as client:
            slots = (await client.get(f"{URL.removesuffix('/v1')}/slots")).json()
        return not any(slot["is_processing"] for slot in slots)

    await until(written, 60)
    assert await runner.stop_and_wait(turn)
    await turn.arefresh_from_db()
    stopped = await Message.objects.aget(turn=turn, role="assistant")
    print(f"\n{stopped.content!r}")
    assert turn.state == "stopped"
    assert stopped.content
    await until(idle, 60)
    settings.LLM_EXTRA_BODY = BRIEF
    again = await say(runner, conversation, "What is the capital of France?")
    assert again.state in ("complete", "length")
