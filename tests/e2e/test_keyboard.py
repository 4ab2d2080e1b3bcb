"""Everything with the keyboard alone."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

MOST = 80  # presses of Tab


def tab_to(chat: Chat, wanted: Locator, key: str = "Tab") -> None:
    """Press Tab until the focus is there; each stop on the way must be visible."""
    for _press in range(MOST):
        chat.page.keyboard.press(key)
        if wanted.evaluate("wanted => wanted === document.activeElement"):
            expect(wanted).to_be_in_viewport()
            return
    pytest.fail(f"{MOST} presses of {key} do not reach {wanted}")


def test_from_the_sign_in_page_to_a_message_and_to_the_reset_and_back(
    server: Server, visit: Callable[..., Chat]
) -> None:
    chat = visit(server)
    keys = chat.page.keyboard
    chat.page.goto(f"{server.url}/login/")
    tab_to(chat, chat.page.get_by_role("button", name="Continue as local user"))
    keys.press("Enter")
    expect(chat.page.locator("#app")).to_be_attached()
    tab_to(chat, chat.page.get_by_role("button", name="New conversation"))
    with chat.page.expect_navigation():
        keys.press("Enter")
    chat.ready()
    tab_to(chat, chat.field)
    keys.type("My name is Ada.")
    keys.press("Enter")
    chat.expect_state(1, "complete")
    expect(chat.field).to_be_focused()

    reset = chat.page.locator("#reset-memory")
    tab_to(chat, reset)
    keys.press("Enter")
    expect(chat.reset_dialog).to_be_visible()
    expect(chat.reset_dialog.get_by_role("button", name="Cancel")).to_be_focused()
    keys.press("Escape")
    expect(chat.reset_dialog).to_be_hidden()
    expect(reset).to_be_focused()
    assert chat.states() == ["window", "window"]

    keys.press("Enter")
    expect(chat.reset_dialog).to_be_visible()
    tab_to(chat, chat.reset_dialog.get_by_role("button", name="Reset memory"), "Shift+Tab")
    keys.press("Enter")
    expect(chat.page.locator('.message[data-state="reset"]')).to_have_count(2)
    expect(chat.reset_dialog).to_be_hidden()
    expect(reset).to_be_focused()
    tab_to(chat, chat.page.locator("#undo-memory"), "Shift+Tab")
    keys.press("Enter")
    expect(chat.page.locator('.message[data-state="window"]')).to_have_count(2)
    tab_to(chat, chat.field, "Shift+Tab")


def test_the_skip_link_leads_to_the_message_field(chat: Chat) -> None:
    chat.page.reload()
    chat.ready()
    link = chat.page.get_by_role("link", name="Skip to the message field")
    tab_to(chat, link)
    chat.page.keyboard.press("Enter")
    expect(chat.field).to_be_focused()


def test_enter_sends_and_shift_enter_breaks(chat: Chat) -> None:
    chat.field.focus()
    chat.page.keyboard.type("two")
    chat.page.keyboard.press("Shift+Enter")
    chat.page.keyboard.type("lines")
    expect(chat.field).to_have_value("two\nlines")
    expect(chat.turns).to_have_count(0)
    chat.page.keyboard.press("Enter")
    chat.expect_state(1, "complete")
    expect(chat.page.locator("#m-1 .body")).to_have_text("two\nlines", use_inner_text=True)
    expect(chat.field).to_have_value("")


@pytest.mark.parametrize(
    "init", [{"isComposing": True}, {"keyCode": 229}], ids=["isComposing", "keyCode 229"]
)
def test_enter_does_not_send_while_an_input_method_composes(
    chat: Chat, init: dict[str, object]
) -> None:
    chat.field.fill("ni hao")
    event = {"key": "Enter", "code": "Enter", "bubbles": True, "cancelable": True, **init}
    goes_on = chat.field.evaluate(
        "(field, init) => field.dispatchEvent(new KeyboardEvent('keydown', init))", event
    )
    assert goes_on, "the input method's Enter was taken away from it"
    expect(chat.field).to_have_value("ni hao")
    assert chat.page.locator("[data-pending]").count() == 0
    assert chat.ask("hello")  # and nothing of it was sent before
    assert chat.last_number() == 1


def test_enter_sends_nothing_that_is_only_white_space(chat: Chat) -> None:
    chat.field.fill("  \n ")
    chat.field.press("Enter")
    chat.ask("hello")
    assert chat.last_number() == 1


def test_esc_stops_the_reply(chat: Chat) -> None:
    number = chat.send("count to 2000")
    expect(chat.partial).to_contain_text("1, 2, 3")
    chat.page.keyboard.press("Escape")
    chat.expect_state(number, "stopped")
    expect(chat.field).to_be_focused()


def test_esc_closes_what_is_open_before_it_stops_the_reply(chat: Chat) -> None:
    number = chat.send("count to 2000")
    expect(chat.partial).to_contain_text("1, 2, 3")
    chat.page.locator("#reset-memory").click()
    expect(chat.reset_dialog).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.reset_dialog).to_be_hidden()
    expect(chat.turn(number)).to_have_attribute("data-turn-state", "running")
    expect(chat.stop_button).to_be_enabled()
    chat.page.keyboard.press("Escape")
    chat.expect_state(number, "stopped")


def test_the_question_mark_lists_the_keys_but_not_in_the_field(chat: Chat) -> None:
    keys = chat.page.locator("#keys")
    chat.field.focus()
    chat.page.keyboard.type("why?")
    expect(chat.field).to_have_value("why?")
    expect(keys).to_be_hidden()
    chat.transcript.focus()
    chat.page.keyboard.press("?")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("Shift + Enter")
    chat.page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    expect(chat.transcript).to_be_focused()
