"""The Timeline tab: what happened to the memory, as it happens, and what it cost."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.test_folding import TALK

pytestmark = pytest.mark.browser


def events(chat: Chat) -> Locator:
    return chat.page.locator("#timeline .events > .event")


def test_an_event_appears_in_every_open_tab_and_its_undo_marks_it(chat: Chat) -> None:
    for text in ("My name is Ada.", "What is ReAct?"):
        chat.ask(text)
    other = chat.tab()
    for tab in (chat, other):
        tab.tab_link("Timeline").click()
        expect(tab.page).to_have_url(re.compile(r"\?tab=timeline$"))
        expect(tab.page.locator("#timeline")).to_contain_text("Nothing yet")
        expect(tab.page.locator("#account polyline")).to_have_count(2)
    chat.reset()
    for tab in (chat, other):
        expect(events(tab)).to_have_count(1)
        expect(events(tab).first).to_contain_text("context starts at message")
    other.page.locator("#undo-memory").click()
    for tab in (chat, other):
        expect(events(tab)).to_have_count(2)
        expect(events(tab).first).to_contain_text("undo the reset")
        expect(events(tab).nth(1).locator(".state")).to_have_text("undone")


def test_its_links_lead_to_the_version_and_to_the_request(
    server: Server, local_user: Client, visit: Callable[..., Chat], tmp_path: Path
) -> None:
    chat = visit(server, local_user).open(local_user.talk(TALK) + "?tab=timeline")
    page = chat.page
    expect(events(chat)).to_have_count(1)
    expect(events(chat).first).to_contain_text("too many messages")
    chat.shot(tmp_path, "timeline")
    events(chat).first.get_by_role("link", name="Summary v1").click()
    expect(page.locator("#opened-title")).to_have_text("Summary v1")
    expect(page).to_have_url(re.compile(r"\?tab=summary"))
    chat.tab_link("Timeline").click()
    page.locator("#account-table > summary").click()
    page.locator("#account-table").get_by_role("link", name="2", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?request=2$"))
    chat.expect_kinds("system", "tail", "tail", "current")


def test_the_account_grows_with_every_reply(chat: Chat) -> None:
    chat.tab_link("Timeline").click()
    account = chat.page.locator("#account")
    expect(account).to_contain_text("No request was made yet.")
    sent = 0
    for number in (1, 2):
        chat.ask("What is a token?")
        sent += chat.context(number)["tokens"]
        expect(account).to_contain_text(f"{number} · {sent} tokens sent (counted)")
