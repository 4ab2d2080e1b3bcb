"""A long conversation: it opens fast and at its end, and nothing moves under the reader's eyes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server, until

pytestmark = pytest.mark.browser

MESSAGES = 126
PAGE = 50
LOW = {"width": 1360, "height": 480}  # a short reply fills it

SEED = """
from django.contrib.auth import get_user_model
from memory import store
from memory.core.messages import Message
from memory.rows import Written
made = store.create_conversation(
    owner=get_user_model().objects.get(username="local"),
    policy={{"preset": "window"}}, system_prompt="You are a helpful assistant.")
for n in range(1, {turns} + 1):
    turn, _ = store.start_turn(
        conversation_id=made.pk, client_id=f"seed-{{n}}", encoding="o200k_base", owner="",
        message=Message("user", f"Question {{n}}", tokens=7))
    text = f"Answer {{n}}. " + "It takes a line or more to say. " * (n % 7)
    store.finish_turn(turn_id=turn.pk, state="complete", encoding="o200k_base",
        reply=Written(Message("assistant", text, tokens=70)))
print(made.pk)
"""


@pytest.fixture(scope="module")
def long_conversation(shared_server: Server, local_user: Client) -> str:
    """Its address; the tests that look on need it as it was made, so they add nothing."""
    return f"/c/{shared_server.script(SEED.format(turns=MESSAGES // 2))}/"


@pytest.fixture
def long_chat(
    server: Server, local_user: Client, long_conversation: str, visit: Callable[..., Chat]
) -> Chat:
    return visit(server, local_user).open(long_conversation)


def messages(chat: Chat) -> Locator:
    return chat.page.locator(".turn > .message[data-position]")


def from_end(chat: Chat) -> float:
    """How far the view is from the end of the transcript, in CSS pixels."""
    return float(
        chat.transcript.evaluate("one => one.scrollHeight - one.scrollTop - one.clientHeight")
    )


def wheel(chat: Chat, pixels: int) -> None:
    chat.transcript.hover()
    chat.page.mouse.wheel(0, pixels)


def first_visible(chat: Chat) -> Locator:
    """The first message of which something is in view."""
    found = chat.transcript.evaluate(
        """one => Array.from(one.querySelectorAll(".message[id]")).find((message) =>
          message.getBoundingClientRect().bottom > one.getBoundingClientRect().top).id"""
    )
    return chat.page.locator(f"#{found}")


def test_a_long_conversation_opens_at_its_end_with_at_most_100_messages(
    long_chat: Chat, tmp_path: Path
) -> None:
    chat = long_chat
    assert 0 < messages(chat).count() <= PAGE
    until(lambda: from_end(chat) < 2, "the view is at the end")
    expect(chat.page.locator(f"#m-{MESSAGES}")).to_be_in_viewport()
    expect(chat.pill).to_be_hidden()
    chat.shot(tmp_path, "long")


def test_scrolling_up_loads_what_is_older_without_a_jump(long_chat: Chat) -> None:
    chat = long_chat
    held: list[Route] = []
    chat.page.route("**/transcript/?before=*", lambda route: held.append(route))
    for expected in (2 * PAGE, MESSAGES):
        wheel(chat, -100_000)

        def asked() -> bool:
            chat.page.wait_for_timeout(10)  # lets the route arrive
            return bool(held)

        until(asked, "older messages are asked for")
        mark = first_visible(chat)
        before = chat.top_of(mark)
        held.pop().continue_()
        expect(messages(chat)).to_have_count(expected)
        assert abs(chat.top_of(mark) - before) < 2
    expect(chat.page.locator("[data-load-older]")).to_have_count(0)
    positions = messages(chat).evaluate_all("all => all.map((one) => Number(one.dataset.position))")
    assert positions == list(range(1, MESSAGES + 1))


def test_a_reply_does_not_move_the_view_of_a_reader_further_up(
    server: Server, local_user: Client, visit: Callable[..., Chat], tmp_path: Path
) -> None:
    made = server.script(SEED.format(turns=60))
    chat = visit(server, local_user).open(f"/c/{made}/")
    number = chat.send("count to 400")
    expect(chat.partial).to_contain_text("1, 2, 3")
    assert from_end(chat) < 40  # while at the end, the view follows
    wheel(chat, -1_500)
    until(lambda: from_end(chat) > 1_000, "the reader is further up")
    mark = first_visible(chat)
    before = chat.top_of(mark)
    expect(chat.partial).to_contain_text("300, 301")
    assert abs(chat.top_of(mark) - before) < 2
    expect(chat.send_button).to_be_visible()  # it has ended
    expect(chat.pill).to_be_visible()
    expect(chat.pill).to_contain_text("New messages below")
    assert abs(chat.top_of(mark) - before) < 2
    chat.shot(tmp_path, "pill")
    chat.pill.click()
    chat.expect_state(number, "complete")
    expect(chat.pill).to_be_hidden()
    until(lambda: from_end(chat) < 2, "the view is at the end")
    assert chat.reply(number).inner_text().endswith("399, 400")


def test_the_view_follows_a_reply_while_it_is_at_the_end(chat: Chat) -> None:
    chat.page.set_viewport_size(LOW)
    chat.ask("tell me a story")
    assert chat.transcript.evaluate("one => one.scrollHeight > 2 * one.clientHeight")
    until(lambda: from_end(chat) < 2, "the view is at the end")
    expect(chat.pill).to_be_hidden()


def test_news_from_another_tab_do_not_move_the_view_of_a_reader_further_up(chat: Chat) -> None:
    chat.page.set_viewport_size(LOW)
    chat.ask("tell me a story")
    other = chat.tab()
    wheel(chat, -600)
    until(lambda: from_end(chat) > 300, "the reader is further up")
    mark = first_visible(chat)
    before = chat.top_of(mark)
    other.ask("What is ReAct?")
    expect(chat.pill).to_contain_text("New messages below")
    assert abs(chat.top_of(mark) - before) < 2
    chat.pill.click()
    expect(chat.reply(2)).to_be_in_viewport()
    expect(chat.pill).to_be_hidden()
