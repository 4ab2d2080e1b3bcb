"""Two tabs with one conversation."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server

pytestmark = pytest.mark.browser

BUSY = re.compile(r"A reply is (still )?being written")


def test_a_reset_in_one_tab_is_shown_in_the_other(chat: Chat) -> None:
    chat.ask("My name is Ada.")
    other = chat.tab()
    other.expect_kinds("system", "tail", "tail")
    chat.reset()
    for tab in (chat, other):
        expect(tab.page.locator('.message[data-state="reset"]')).to_have_count(2)
        expect(tab.page.locator(".divider.reset")).to_have_count(1)
        tab.expect_kinds("system")
    other.page.locator("#undo-memory").click()
    for tab in (chat, other):
        expect(tab.page.locator('.message[data-state="window"]')).to_have_count(2)
        tab.expect_kinds("system", "tail", "tail")


def test_a_message_in_one_tab_is_shown_in_the_other(chat: Chat) -> None:
    other = chat.tab()
    assert "Ada" in chat.ask("My name is Ada.")
    other.expect_state(1, "complete")
    expect(other.page.locator("#m-1 .body")).to_have_text("My name is Ada.")
    expect(other.page.locator("#title")).to_have_text("Ada")
    other.expect_kinds("system", "tail", "tail")


def test_of_two_sends_at_once_one_is_taken_and_the_other_stays_a_draft(chat: Chat) -> None:
    other = chat.tab()
    chat.ask("hello")
    other.expect_state(1, "complete")
    texts = ("count to 300", "count to 301")
    for tab, text in zip((chat, other), texts, strict=True):
        tab.field.fill(text)
    at = chat.page.evaluate("() => Date.now()") + 300
    for tab in (chat, other):
        tab.page.evaluate(
            """(at) => void setTimeout(() => document.getElementById("composer").requestSubmit(),
              at - Date.now())""",
            at,
        )
    for tab in (chat, other):
        expect(tab.turn(2).locator(".message.user .body")).to_be_visible()
    taken = chat.turn(2).locator(".message.user .body").inner_text()
    assert taken in texts
    winner, loser = (chat, other) if taken == texts[0] else (other, chat)
    expect(loser.problem).to_contain_text(BUSY)
    expect(loser.field).to_have_value(texts[1] if taken == texts[0] else texts[0])
    expect(winner.field).to_have_value("")
    for tab in (chat, other):
        tab.expect_state(2, "complete")
        expect(tab.page.locator("[data-pending]")).to_have_count(0)
        expect(tab.turns).to_have_count(2)
    expect(loser.problem).to_be_empty()
    assert loser.ask(loser.field.input_value())


def test_the_server_refuses_a_tab_that_has_not_heard_of_the_running_turn(chat: Chat) -> None:
    """As above, but certainly decided by the server: news of the turn reach the tab late."""
    late: list[Callable[[], None]] = []

    def hold_news(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(frame: str | bytes) -> None:
            if '"type": "turn.' in str(frame):
                late.append(lambda: socket.send(frame))
            else:
                socket.send(frame)

        server.on_message(forward)

    page = chat.page.context.new_page()
    page.route_web_socket("**/ws/**", hold_news)
    other = Chat(page, chat.server, chat.watch).open(chat.address)
    expect(other.send_button).to_be_visible()
    number = chat.send("count to 300")
    other.field.fill("me too")
    other.field.press("Enter")
    expect(other.problem).to_contain_text(BUSY)
    expect(other.field).to_have_value("me too")
    expect(other.page.locator("[data-pending]")).to_have_count(0)
    for send in late:
        send()
    late.clear()
    expect(other.stop_button).to_be_visible()
    other.stop_button.click()
    chat.expect_state(number, "stopped")
    assert chat.last_number() == 1
    texts = [segment["text"] for segment in chat.context()["segments"]]
    assert "me too" not in texts


def test_the_title_of_the_page_changes_though_a_search_leaves_it_out_of_the_list(
    chat: Chat,
) -> None:
    title = chat.page.locator("#title")
    with chat.page.expect_response("**/list/?q=*"):
        chat.page.locator("#q").fill("nothing is called that")
    expect(chat.page.locator("#list a")).to_have_count(0)
    chat.ask("My name is Ada.")
    expect(title).to_have_text("Ada")
    other = chat.tab()
    other.tab_link("Settings").click()
    other.page.locator("#id_settings-title").fill("By settings")
    other.page.locator("#settings-save").click()
    expect(title).to_have_text("By settings")
    other.page.get_by_role("button", name="Rename or delete").click()
    other.page.locator("#rename-field").fill("By hand")
    other.page.get_by_role("button", name="Rename", exact=True).click()
    for tab in (chat, other):
        expect(tab.page.locator("#title")).to_have_text("By hand")
        expect(tab.page).to_have_title(re.compile("^By hand "))


def test_a_note_of_a_fold_goes_away_when_another_tab_takes_it_back(
    server: Server, local_user: Client, visit: Callable[..., Chat]
) -> None:
    talk = local_user.talk(f"My number {number} is {number}." for number in range(6))
    chat = visit(server, local_user).open(talk)
    other = chat.tab()
    note = other.page.locator("#panel-note")
    chat.ask("What is RAG?")  # under `hybrid` the seventh message makes the first ones fold
    expect(note).to_contain_text("folded")
    chat.page.locator("#undo-memory").click()
    expect(other.page.locator(".divider.fold")).to_have_count(0)
    expect(note).to_be_empty()
