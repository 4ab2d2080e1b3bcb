"""The Settings tab: another policy is another window, seen at once."""

import pytest
from playwright.sync_api import expect

from memory.core.presets import PARAMETERS
from tests.e2e.pages import Chat

pytestmark = pytest.mark.browser


@pytest.fixture
def settings(chat: Chat) -> Chat:
    """A conversation of three turns with its settings open."""
    for text in ("My name is Ada.", "What is ReAct?", "What is a token?"):
        chat.ask(text)
    chat.tab_link("Settings").click()
    expect(chat.page.locator("#settings-form")).to_be_visible()
    return chat


def test_another_policy_changes_the_window_at_once(settings: Chat) -> None:
    chat = settings
    page = chat.page
    other = chat.tab()
    page.locator("#id_settings-preset").select_option("window")
    for name, shown in (("max_messages", True), ("keep_messages", False), ("when", False)):
        field = page.locator(f"#id_settings-{name}")
        expect(field).to_be_visible() if shown else expect(field).to_be_hidden()
    expect(page.locator("#id_settings-max_messages")).to_have_attribute("placeholder", "10")
    page.locator("#id_settings-max_messages").fill("2")
    page.locator("#id_settings-title").fill("Two at most")
    page.locator("#settings-save").click()
    expect(page.locator("#settings-next strong")).to_have_text("Saved.")
    tokens = chat.context()["tokens"]
    expect(page.locator("#settings-next")).to_have_text(
        f"Saved. Next request: {tokens} of 1,536 tokens, 2 messages"
    )
    expect(page.locator('.message[data-state="outside"]')).to_have_count(4)
    for tab in (chat, other):
        expect(tab.page.locator("#head-tags .tag").first).to_have_text("window")
        expect(tab.page.locator("#title")).to_have_text("Two at most")
        expect(tab.page.locator("[data-gauge]").first).to_have_text(f"{tokens} / 1,536 tokens")
    other.expect_kinds("system", "tail", "tail")
    assert "Ada" not in chat.ask("What is my name?")


def test_each_policy_shows_its_own_parameters(settings: Chat) -> None:
    page = settings.page
    for preset, names in PARAMETERS.items():
        page.locator("#id_settings-preset").select_option(preset)
        shown = page.locator("#settings-form [data-presets]").evaluate_all(
            """all => all.filter((one) => one.checkVisibility() && !one.disabled)
              .map((one) => one.name.replace("settings-", ""))"""
        )
        assert sorted(shown) == sorted(names), preset


def test_a_wrong_value_is_explained_at_its_field(settings: Chat) -> None:
    chat = settings
    chat.watch.allow("status of 422")
    keep = chat.page.locator("#id_settings-keep_messages")
    keep.fill("12")
    chat.page.locator("#settings-save").click()
    error = chat.page.locator("#id_settings-keep_messages_error")
    expect(error).to_contain_text("Must be smaller than the most messages (12)")
    expect(keep).to_be_focused()
    expect(keep).to_have_value("12")
    chat.ask("hello")  # what was entered is not lost to what happens in the chat
    expect(keep).to_have_value("12")
    keep.fill("5")
    chat.page.locator("#settings-save").click()
    expect(chat.page.locator("#settings-next strong")).to_have_text("Saved.")
    expect(error).to_have_count(0)
    expect(keep).to_have_value("5")


def test_what_was_entered_can_be_discarded(settings: Chat) -> None:
    chat = settings
    chat.page.locator("#id_settings-preset").select_option("full")
    expect(chat.page.locator("#id_settings-max_messages")).to_be_hidden()
    chat.page.get_by_role("link", name="Discard").click()
    expect(chat.page.locator("#id_settings-preset")).to_have_value("hybrid")
    expect(chat.page.locator("#id_settings-max_messages")).to_be_visible()
