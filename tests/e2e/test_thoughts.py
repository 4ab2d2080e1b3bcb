"""What a model thinks before it writes, in the page: folded, and seen while it comes."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.fakeserver import END, FakeServer, running, sse, text

pytestmark = pytest.mark.browser

THOUGHTS = [f"Thought {number}, 想法。 " for number in range(1, 61)]
REPLY = "It is seven. 是七。"


@pytest.fixture
def thinking() -> Iterator[FakeServer]:
    """A model's server in a thread of its own: three seconds of thoughts, then a reply."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[Any] = []

    async def serve() -> None:
        async with running() as fake:
            found.extend((fake, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    fake, loop = found
    events = [{"choices": [{"index": 0, "delta": {"reasoning_content": one}}]} for one in THOUGHTS]
    fake.body = sse(*events, text(REPLY), END)
    fake.size = len(fake.body) // 60
    fake.pause = 0.05
    yield fake
    loop.call_soon_threadsafe(over.set)
    thread.join(10)


@pytest.fixture
def chat(
    thinking: FakeServer,
    start_server: Callable[..., Server],
    sign_in: Callable[[Server], Client],
    visit: Callable[..., Chat],
) -> Chat:
    server = start_server(
        LLM_BASE_URL=f"http://127.0.0.1:{thinking.port}/v1", LLM_MODEL="m", AUTO_TITLE="0"
    )
    client = sign_in(server)
    return visit(server, client).open(client.new_conversation())


def test_thoughts_are_seen_while_they_come_and_stay_folded_with_the_reply(chat: Chat) -> None:
    number = chat.send("What is three and four?")
    thoughts = chat.page.locator("[data-thoughts]")
    fold = chat.page.locator("details.thoughts")
    expect(fold).to_be_visible()
    expect(thoughts).to_be_hidden()
    fold.locator("summary").click()
    expect(thoughts).to_contain_text("Thought 5, 想法。")
    # A page that comes late has them all, and so has one that is loaded again.
    other = chat.tab()
    expect(other.page.locator("[data-thoughts]")).to_contain_text("Thought 1, 想法。")
    chat.page.reload()
    chat.ready()
    expect(thoughts).to_contain_text("Thought 20, 想法。")
    for tab in (chat, other):
        tab.expect_state(number, "complete")
        expect(tab.reply(number)).to_have_text(REPLY)
        kept = tab.turn(number).locator("details.thoughts")
        expect(kept).to_have_count(1)
        expect(kept.locator(".plain-text")).to_have_text("".join(THOUGHTS).strip())


def test_a_stop_keeps_the_thoughts_that_no_reply_came_of(chat: Chat) -> None:
    number = chat.send("What is three and four?")
    chat.page.locator("details.thoughts summary").click()
    expect(chat.page.locator("[data-thoughts]")).to_contain_text("Thought 3, 想法。")
    chat.stop_button.click()
    chat.expect_state(number, "stopped")
    kept = chat.turn(number).locator("details.thoughts")
    expect(kept.locator(".plain-text")).to_contain_text("Thought 3, 想法。")
    texts = [segment["text"] for segment in chat.context()["segments"]]
    assert not any("Thought" in one for one in texts), "no part of what was said"
