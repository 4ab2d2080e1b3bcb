"""From the first visit to the first reset, and back by undo."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Server

pytestmark = pytest.mark.browser

NAME = "My name is Ada and I am learning agent development."
# What the demo model makes of the first exchange.
TITLE = "Ada · agent development"


def test_a_first_visitor_talks_and_the_model_remembers(
    start_server: Callable[..., Server], visit: Callable[..., Chat], tmp_path: Path
) -> None:
    chat = visit(start_server()).sign_in()
    expect(chat.page.get_by_role("button", name="Start a conversation")).to_be_visible()
    chat.shot(tmp_path, "welcome")
    chat.new()
    chat.shot(tmp_path, "empty")
    chat.expect_kinds("system")
    chat.page.get_by_role("button", name=NAME).click()
    chat.expect_state(1, "complete")
    assert "Ada" in chat.reply(1).inner_text()
    expect(chat.page.locator("#title")).to_have_text(TITLE)
    expect(chat.page.locator("#list [aria-current=page]")).to_contain_text(TITLE)
    assert "Ada" in chat.ask("What is my name?")
    chat.expect_kinds("system", "tail", "tail", "tail", "tail")
    chat.shot(tmp_path, "answered")


def test_the_streamed_reply_ends_as_rendered_markdown(chat: Chat) -> None:
    chat.record()
    chat.ask("Show me some Markdown.")
    assert any("**bold**" in text for text in chat.seen())  # while it runs: the text as it comes
    reply = chat.reply(1)
    expect(reply.locator("h1, h2, h3").first).to_have_text("A small sample")
    expect(reply.locator("strong")).to_have_text("bold")
    expect(reply.locator("table th")).to_have_count(2)
    expect(reply.locator("pre")).to_contain_text("def remember")
    expect(reply).not_to_contain_text("**bold**")
    expect(chat.partial).to_have_count(0)


def test_the_panel_shows_every_segment_with_its_tokens(chat: Chat) -> None:
    chat.ask(NAME)
    chat.expect_kinds("system", "tail", "tail")
    context = chat.context()
    shown = chat.segments.locator("summary .num").all_inner_texts()
    assert [int(text.split()[0]) for text in shown] == [
        segment["tokens"] for segment in context["segments"]
    ]
    gauge = f"{context['tokens']:,} / {context['budget']['usable']:,} tokens"
    expect(chat.page.locator("#gauge [data-gauge]")).to_have_text(gauge)
    chat.segments.nth(1).locator("summary").click()
    expect(chat.segments.nth(1).locator("pre")).to_have_text(NAME)


def test_a_slow_fetch_of_the_panel_does_not_leave_it_behind(chat: Chat) -> None:
    """The reply ends while the panel of its beginning is still on the way."""
    held: list[Route] = []
    chat.page.route(
        "**/panel/context/", lambda route: route.continue_() if held else held.append(route)
    )
    chat.ask(NAME)
    expect(chat.page.locator("#list [aria-current=page]")).to_contain_text(TITLE)
    held[0].continue_()
    chat.expect_kinds("system", "tail", "tail")


def test_reset_asks_greys_and_forgets_and_undo_gives_the_same_window(
    chat: Chat, tmp_path: Path
) -> None:
    chat.ask(NAME)
    assert "Ada" in chat.ask("What is my name?")
    before = chat.context()

    chat.page.locator("#reset-memory").click()
    expect(chat.reset_dialog).to_be_visible()
    chat.shot(tmp_path, "reset-question")
    chat.reset_dialog.get_by_role("button", name="Cancel").click()
    expect(chat.reset_dialog).to_be_hidden()
    assert chat.context() == before

    chat.reset()
    chat.expect_kinds("system")
    expect(chat.page.locator('.message[data-state="reset"]')).to_have_count(4)
    expect(chat.page.locator(".divider.reset")).to_have_count(1)
    chat.shot(tmp_path, "reset")
    faded = chat.page.locator("#m-1 .body").evaluate("body => getComputedStyle(body).color")

    chat.page.locator("#undo-memory").click()
    chat.expect_kinds("system", "tail", "tail", "tail", "tail")
    expect(chat.page.locator('.message[data-state="window"]')).to_have_count(4)
    expect(chat.page.locator(".divider.reset")).to_have_count(0)
    assert chat.context()["body"] == before["body"]
    assert chat.context()["sha256"] == before["sha256"]
    visible = chat.page.locator("#m-1 .body").evaluate("body => getComputedStyle(body).color")
    assert faded != visible


def test_an_undo_is_shown_also_where_its_button_goes_before_the_answer_comes(chat: Chat) -> None:
    """The line of the reset, with the button, goes as soon as the page hears of the undo."""
    divider = chat.page.locator(".divider.reset")

    def late(route: Route) -> None:
        response = route.fetch()
        expect(divider).to_have_count(0)
        route.fulfill(response=response)

    chat.ask(NAME)
    chat.reset()
    chat.expect_kinds("system")
    chat.page.route("**/memory/undo/", late)
    divider.get_by_role("button", name="undo").click()
    chat.expect_kinds("system", "tail", "tail")
    expect(chat.page.locator("#head-tags")).to_have_count(1)


def test_after_a_reset_the_model_does_not_know_and_undo_still_brings_it_back(chat: Chat) -> None:
    chat.ask(NAME)
    chat.reset()
    expect(chat.page.locator(".divider.reset")).to_have_count(1)
    reply = chat.ask("What is my name?")
    assert "Ada" not in reply
    assert "not know" in reply
    assert chat.states() == ["reset", "reset", "window", "window"]
    chat.page.locator(".divider.reset").get_by_role("button", name="undo").click()
    expect(chat.page.locator(".divider.reset")).to_have_count(0)
    assert "Ada" in chat.ask("What is my name?")
