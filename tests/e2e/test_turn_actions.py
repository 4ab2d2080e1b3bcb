"""The last turn again, with the same words or with others; and a fork at any message."""

import re

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat

pytestmark = pytest.mark.browser


def test_a_reply_is_regenerated_and_the_old_one_kept(chat: Chat) -> None:
    chat.ask("My name is Ada.")
    chat.turn(1).get_by_role("button", name="Regenerate").click()
    chat.expect_state(2, "complete")
    expect(chat.turns).to_have_count(1)
    kept = chat.turn(2).locator(".replaced")
    expect(kept.locator("summary").first).to_have_text("1 earlier version, kept")
    assert len(chat.context()["segments"]) == 3


def test_arrow_up_edits_the_last_message_and_the_draft_stays(chat: Chat) -> None:
    chat.ask("hello")
    chat.ask("My name is Ada.")
    editing = chat.page.locator("#editing")
    chat.field.press("ArrowUp")
    expect(editing).to_be_visible()
    expect(chat.field).to_have_value("My name is Ada.")
    chat.field.fill("My name is Grace.")
    chat.field.press("Enter")
    chat.expect_state(3, "complete")
    expect(editing).to_be_hidden()
    expect(chat.turns).to_have_count(2)
    expect(chat.turn(3).locator("> .message.user .body")).to_have_text("My name is Grace.")
    expect(chat.turn(3).locator(".replaced summary").first).to_have_text("1 earlier version, kept")
    expect(chat.field).to_have_value("")
    assert "Grace" in chat.ask("What is my name?")


def test_esc_gives_the_edit_up_and_the_draft_back(chat: Chat) -> None:
    chat.ask("My name is Ada.")
    chat.field.fill("a draft")
    chat.field.press("ArrowUp")  # not in an empty field: only the caret moves
    expect(chat.field).to_have_value("a draft")
    chat.turn(1).get_by_role("button", name="Edit").click()
    expect(chat.field).to_be_focused()
    expect(chat.field).to_have_value("My name is Ada.")
    chat.field.press("Escape")
    expect(chat.field).to_have_value("a draft")
    expect(chat.page.locator("#editing")).to_be_hidden()
    chat.page.reload()
    chat.ready()
    expect(chat.field).to_have_value("a draft")
    assert chat.last_number() == 1


def test_a_fork_goes_on_from_a_message_in_a_new_conversation(chat: Chat) -> None:
    chat.ask("My name is Ada.")
    chat.ask("My name is Grace.")
    old = chat.address
    message = chat.page.locator("#m-2")
    message.hover()
    message.locator(".more > summary").click()
    with chat.page.expect_navigation():
        message.get_by_role("button", name="Fork from here").click()
    chat.ready()
    assert chat.address != old
    expect(chat.page.locator("#title")).to_have_text(re.compile(r"\(fork\)$"))
    expect(chat.turns).to_have_count(1)
    chat.field.fill("What is my name?")
    chat.field.press("Enter")
    chat.expect_state(2, "complete")
    assert "Ada" in chat.reply(2).inner_text()
    chat.open(old)
    expect(chat.turns).to_have_count(2)


def test_the_small_menu_closes_with_esc(chat: Chat) -> None:
    chat.ask("hello")
    menu = chat.page.locator("#m-1 .more")
    chat.page.locator("#m-1").hover()
    menu.locator("summary").click()
    expect(menu.locator("button")).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(menu.locator("button")).to_be_hidden()
    expect(menu.locator("summary")).to_be_focused()
