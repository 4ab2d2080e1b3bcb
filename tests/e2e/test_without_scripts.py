"""Without scripts the chat is slower but whole: every act is a plain form."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server, counted_to, until

pytestmark = pytest.mark.browser


@pytest.fixture
def plain(server: Server, local_user: Client, visit: Callable[..., Chat]) -> Chat:
    chat = visit(server, local_user, java_script_enabled=False)
    chat.page.goto(server.url + local_user.new_conversation())
    return chat


def ended(chat: Chat, number: int) -> str:
    """Load the page until the turn has ended; its state."""

    def state() -> str:
        chat.page.reload()
        now = chat.turn(number).get_attribute("data-turn-state")
        return "" if now in (None, "running") else str(now)

    return str(until(state, f"turn {number} has ended"))


def press(chat: Chat, control: Locator) -> None:
    """Press a link or a button, and be on the page that it leads to."""
    with chat.page.expect_navigation():
        control.click()


def say(chat: Chat, text: str) -> None:
    chat.field.fill(text)
    press(chat, chat.send_button)


def test_one_can_talk_reset_and_undo(plain: Chat) -> None:
    say(plain, "My name is Ada.")
    assert ended(plain, 1) == "complete"
    assert "Ada" in plain.reply(1).inner_text()
    plain.reset()
    expect(plain.page.locator(".divider.reset")).to_have_count(1)
    assert plain.states() == ["reset", "reset"]
    press(plain, plain.page.locator("#undo-memory"))
    expect(plain.page.locator(".divider.reset")).to_have_count(0)
    say(plain, "What is my name?")
    assert ended(plain, 2) == "complete"
    assert "Ada" in plain.reply(2).inner_text()


def test_one_can_stop_and_retry(plain: Chat) -> None:
    whole = counted_to(400)
    say(plain, "count to 400")
    running = plain.turn(1).locator(".running")
    press(plain, running.get_by_role("link", name="Show what has been written since"))
    press(plain, running.get_by_role("button", name="Stop"))
    assert ended(plain, 1) == "stopped"
    assert whole.startswith(plain.reply(1).inner_text())
    press(plain, plain.turn(1).get_by_role("button", name="Retry"))
    assert ended(plain, 2) == "complete"
    assert plain.reply(2).inner_text() == whole


def test_compact_now_says_why_it_folds_nothing(plain: Chat) -> None:
    press(plain, plain.page.locator("#compact-now"))
    note = plain.page.locator("#panel-note")
    expect(note).to_contain_text("the context holds no messages before the current turn")
    plain.page.goto(plain.server.url + plain.address)
    expect(note).to_be_empty()
