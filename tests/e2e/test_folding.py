"""Older messages are folded into a summary: seen in the transcript, in the panel, and request by
request exactly as it was sent."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server

pytestmark = pytest.mark.browser

# Under `hybrid` the thirteenth message, the seventh of the user's, makes the first six fold.
TALK = (
    "My name is Ada and I am learning agent development.",
    "What is ReAct?",
    "What is a token?",
    "What is a sliding window?",
    "What is RAG?",
    "What is a context window?",
    "What is compaction?",
)
FOLDED = 6


def test_the_first_six_messages_fold_the_name_is_still_known_and_undo_unfolds(
    chat: Chat, tmp_path: Path
) -> None:
    for text in TALK:
        chat.ask(text)
    fold = chat.page.locator(".divider.fold")
    expect(fold).to_have_count(1)
    expect(fold.locator("[data-say]")).to_have_text(
        re.compile(rf"{FOLDED} messages folded into summary v1 · \d+ → \d+ tokens")
    )
    messages = 2 * len(TALK)
    assert chat.states() == ["folded"] * FOLDED + ["window"] * (messages - FOLDED)
    expect(chat.page.locator("#m-1 .meta")).to_have_text("folded into v1")
    expect(chat.page.locator("#m-7 .meta")).to_have_text("")
    order = chat.transcript.locator("[data-item]").evaluate_all("all => all.map((one) => one.id)")
    turns = [f"turn-{number}" for number in range(1, len(TALK) + 1)]
    assert order == [*turns[:3], "fold-1", *turns[3:]]
    chat.expect_kinds("system", "summary", *["tail"] * (messages - FOLDED))
    expect(chat.segments.nth(1).locator("strong")).to_have_text(re.compile("summary v1", re.I))
    chat.shot(tmp_path, "folded")
    assert "Ada" in chat.ask("What is my name?")

    fold.locator("summary").click()
    expect(fold.locator(".fold-text .plain-text")).to_contain_text("Ada")
    fold.get_by_role("button", name="undo").click()
    expect(chat.page.locator(".divider.fold")).to_have_count(0)
    expect(chat.page.locator('.message[data-state="window"]')).to_have_count(messages + 2)
    chat.expect_kinds("system", *["tail"] * (messages + 2))


def test_every_request_can_be_walked_to_and_is_identical_to_what_was_sent(
    server: Server, local_user: Client, visit: Callable[..., Chat]
) -> None:
    conversation = local_user.talk(TALK)
    chat = visit(server, local_user).open(conversation)
    last = len(TALK)
    title = chat.panel.locator("#context-title")
    place = chat.panel.locator("[data-request-nav] .num")
    previous = chat.panel.get_by_role("link", name="Previous request")
    following = chat.panel.get_by_role("link", name="Following request")
    expect(place).to_have_text(f"next, after {last}")
    for number in range(last, 0, -1):
        previous.click()
        expect(place).to_have_text(f"request {number} of {last}")
        expect(title).to_have_text("What the model saw")
        expect(chat.panel.locator(".proof .good")).to_contain_text("identical to what was sent")
        context = chat.context(number)
        assert context["verified"] is True, number
        expect(chat.segments).to_have_count(len(context["segments"]))
        expect(chat.segments.last.locator(".segment-text")).to_have_text(TALK[number - 1])
    expect(previous).to_have_attribute("aria-disabled", "true")
    for number in range(2, last + 1):
        following.click()
        expect(place).to_have_text(f"request {number} of {last}")
    chat.panel.get_by_role("link", name="The next request, not sent yet").click()
    expect(place).to_have_text(f"next, after {last}")
    folded = [segment["kind"] for segment in chat.context(last)["segments"]]
    assert folded == ["system", "summary", *["tail"] * 6, "current"]


def test_a_part_of_the_request_and_its_message_mark_each_other(chat: Chat) -> None:
    chat.ask(TALK[0])
    chat.expect_kinds("system", "tail", "tail")
    chat.segments.nth(1).hover()
    expect(chat.page.locator("#m-1")).to_have_class(re.compile(r"\bmarked\b"))
    chat.page.locator("#m-2").hover()
    expect(chat.segments.nth(2)).to_have_class(re.compile(r"\bmarked\b"))
    expect(chat.page.locator("#m-1")).not_to_have_class(re.compile(r"\bmarked\b"))


def test_compact_now_says_beside_its_button_why_it_folds_nothing(chat: Chat) -> None:
    note = chat.page.locator("#panel-note")
    chat.page.locator("#compact-now").click()
    expect(note).to_contain_text("the context holds no messages before the current turn")
    expect(chat.page.locator("#announce")).to_contain_text("holds no messages")
    chat.ask(TALK[0])
    chat.tab_link("Summary").click()
    expect(chat.page.locator("#summary-title")).to_be_visible()
    chat.page.locator("#compact-now").click()
    expect(note).to_contain_text("within the last 6 messages")
    chat.reset()
    expect(note).not_to_contain_text("folded")
