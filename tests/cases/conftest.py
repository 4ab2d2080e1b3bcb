"""Fixtures of the cases: the scripted provider with raw events, open pages, a quick ladder."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from chatapp import agent
from memory.models import Conversation
from memory.summarizer import Ladder
from tests.cases.raw import RawTransport
from tests.chatapp.test_socket import Page, cookie_of

QUICK = Ladder(tries=3, try_seconds=2, total_seconds=8, backoff_seconds=0.001)


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture(autouse=True)
def _quick_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "inline_ladder", lambda: QUICK)


@pytest.fixture
async def open_page(runner: Any, user: Any) -> AsyncIterator[Callable[..., Awaitable[Page]]]:
    """Opens pages of a conversation, as its owner."""
    pages: list[Page] = []
    cookie = await cookie_of(user)

    async def make(conversation: Conversation) -> Page:
        page = Page(conversation.pk, cookie)
        await page.socket.connect()
        assert (await page.next())["type"] == "hello"
        pages.append(page)
        return page

    yield make
    for page in pages:
        await page.socket.disconnect()


@pytest.fixture
async def page(open_page: Any, conversation: Conversation) -> Page:
    opened: Page = await open_page(conversation)
    return opened
