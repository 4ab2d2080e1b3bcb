"""The Summary tab: a person repairs what the model remembers, and takes it back."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.test_folding import TALK

pytestmark = pytest.mark.browser


@pytest.fixture
def folded(server: Server, local_user: Client, visit: Callable[..., Chat]) -> Chat:
    """A conversation whose first six messages were folded, opened at its Summary tab."""
    conversation = local_user.talk(TALK)
    chat = visit(server, local_user).open(conversation)
    chat.tab_link("Summary").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v1")
    return chat


def rewrite(chat: Chat, old: str, new: str) -> None:
    """Open the editor and replace a word; nothing is saved."""
    chat.page.locator("#summary-edit > summary").click()
    field = chat.page.locator("#summary-text")
    field.fill(field.input_value().replace(old, new))


def test_an_edited_name_is_what_the_model_knows_until_it_is_undone(folded: Chat) -> None:
    chat = folded
    gauge = chat.page.locator("[data-gauge]").first
    before = gauge.inner_text()
    rewrite(chat, "Ada", "Grace the Second")
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v2")
    expect(chat.page.locator(".diff ins")).to_have_text("Grace the Second")
    expect(chat.page.locator(".diff del")).to_have_text("Ada")
    expect(gauge).not_to_have_text(before)  # the window changed at once
    expect(chat.page.locator("#fold-2")).to_have_count(1)
    assert "Grace the Second" in chat.context()["segments"][1]["text"]
    assert "Grace" in chat.ask("What is my name?")
    chat.page.locator("#undo-memory").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v1")
    expect(chat.page.locator("#version-2 .state")).to_have_text("undone")
    assert "Ada" in chat.ask("Tell me my name?")


def test_a_refused_edit_keeps_its_text(folded: Chat) -> None:
    chat = folded
    chat.watch.allow("status of 422")
    chat.page.locator("#summary-edit > summary").click()
    field = chat.page.locator("#summary-text")
    text = "word " * 1_000
    field.fill(text)
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#summary-error")).to_contain_text("half of the usable tokens")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    assert field.input_value().strip() == text.strip()
    chat.page.locator("[data-discard]").click()
    expect(field).to_be_hidden()
    expect(chat.page.locator(".opened-text")).to_contain_text("Ada")


def test_a_text_in_progress_survives_what_happens_meanwhile(folded: Chat) -> None:
    chat = folded
    chat.watch.allow("status of 422")
    other = chat.tab()
    rewrite(chat, "Ada", "Grace")
    newer = chat.page.locator("[data-newer]")
    chat.ask("What is RAG?")  # a turn, no change of the memory: nothing to say
    expect(newer).to_be_hidden()
    # In another tab the same summary is edited.
    other.tab_link("Summary").click()
    rewrite(other, "Ada", "Lin")
    other.page.locator("#summary-save").click()
    expect(other.page.locator("#opened-title")).to_have_text("Summary v2")
    expect(newer).to_be_visible()
    field = chat.page.locator("#summary-text")
    assert "Grace" in field.input_value()
    # Another tab of the panel and back: still there.
    chat.tab_link("Context").click()
    expect(chat.page.locator("#context")).to_be_visible()
    chat.tab_link("Summary").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v2")
    expect(newer).to_be_visible()
    assert "Grace" in field.input_value()
    text = chat.page.locator(".opened-text")
    expect(text).to_be_visible()
    expect(text).to_contain_text("Lin")
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v3")
    assert "Grace" in chat.context()["segments"][1]["text"]


def test_a_text_that_another_version_overtook_stands_beside_that_versions_text(
    folded: Chat,
) -> None:
    chat = folded
    chat.watch.allow("status of 422")
    other = chat.tab()
    rewrite(chat, "Ada", "Grace")
    expect(chat.page.locator(".opened-text")).to_be_hidden()
    other.tab_link("Summary").click()
    rewrite(other, "Ada", "Lin")
    other.page.locator("#summary-save").click()
    expect(chat.page.locator("[data-newer]")).to_be_visible()
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#summary-error")).to_contain_text("look at the new version")
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v2")
    assert "Grace" in chat.page.locator("#summary-text").input_value()
    newer = chat.page.locator(".opened-text")
    expect(newer).to_be_visible()
    expect(newer).to_contain_text("Lin")


def test_every_state_of_the_tab_has_an_address(folded: Chat) -> None:
    chat = folded
    rewrite(chat, "Ada", "Grace")
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v2")
    expect(chat.page).to_have_url(re.compile(r"\?tab=summary$"))
    chat.page.locator("#version-1").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v1")
    expect(chat.page).to_have_url(re.compile(r"\?tab=summary&version=1$"))
    chat.page.locator("#against").select_option("v2")
    expect(chat.page).to_have_url(re.compile(r"\?tab=summary&version=1&against=2$"))
    chat.page.reload()
    chat.ready()
    expect(chat.page.locator("#diff-title")).to_have_text("Changes since v2")
    expect(chat.page.locator(".diff ins")).to_have_text("Ada")
    chat.page.locator("#summary-restore").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v3")
    assert "Ada" in chat.context()["segments"][1]["text"]


def test_a_source_is_marked_and_shown_in_the_transcript(folded: Chat) -> None:
    chat = folded
    chat.page.locator("#sources > summary").click()
    source = chat.page.locator("#sources a").nth(2)
    source.hover()
    expect(chat.page.locator("#m-3")).to_have_class(re.compile(r"\bmarked\b"))
    expect(chat.page.locator("#m-4")).not_to_have_class(re.compile(r"\bmarked\b"))
    source.click()
    expect(chat.page.locator("#m-3")).to_be_in_viewport()


def test_without_scripts_a_summary_is_edited_and_restored(
    server: Server, local_user: Client, visit: Callable[..., Chat]
) -> None:
    conversation = local_user.talk(TALK)
    chat = visit(server, local_user, java_script_enabled=False)
    chat.page.goto(server.url + conversation)
    chat.tab_link("Summary").click()
    rewrite(chat, "Ada", "Grace")
    chat.page.locator("#summary-save").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v2")
    chat.page.locator("#version-1").click()
    chat.page.locator("#summary-restore").click()
    expect(chat.page.locator("#opened-title")).to_have_text("Summary v3")
    expect(chat.page.locator(".opened-text")).to_contain_text("Ada")
