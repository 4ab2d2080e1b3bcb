"""An agent's turn in the page: its steps as rows, and as the working memory in the panel."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, WebSocketRoute, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.test_accessibility import VIEWS, serious

pytestmark = pytest.mark.browser

QUESTION = "Where is my order 88231?"
CALLS = ["query_order", "query_logistics"]
BEFORE = "I look up order 88231."


def switch_on(chat: Chat) -> None:
    """Give the conversation the demo shop, in its settings."""
    chat.page.goto(f"{chat.server.url}{chat.address}?tab=settings")
    chat.ready()
    chat.page.get_by_label("Demo shop: orders, parcels, refunds, products").check()
    chat.page.locator("#id_settings-window").fill("8192")
    chat.page.locator("#settings-save").click()
    expect(chat.page.locator("#settings-next strong")).to_have_text("Saved.")


@pytest.fixture
def shop(chat: Chat) -> Chat:
    """A conversation with the demo shop's tools, and the next request beside it."""
    switch_on(chat)
    chat.tab_link("Context").click()
    expect(chat.page.locator("#context")).to_be_visible()
    return chat


def row(chat: Chat, name: str) -> Locator:
    """The row of the call of a tool."""
    return chat.page.locator(".call").filter(has=chat.page.locator(f".call-name >> text={name}"))


def test_the_calls_of_a_step_are_rows_that_unfold_with_the_keyboard(shop: Chat) -> None:
    chat = shop
    expect(chat.page.locator("#head-tags")).to_contain_text("tools")
    reply = chat.ask(QUESTION)
    assert "BX202688231" in reply
    expect(chat.page.locator(".call .call-name")).to_have_text(CALLS)
    expect(chat.page.locator(".thought")).to_have_text(BEFORE)
    opened = row(chat, "query_order")
    result = opened.locator(".result pre")
    expect(result).to_be_hidden()
    opened.locator("summary").focus()
    chat.page.keyboard.press("Enter")
    expect(result).to_have_text(re.compile("^Order 88231: 1 x"))
    expect(opened.locator("pre").first).to_have_text('{\n  "order_number": "88231"\n}')
    chat.page.keyboard.press("Tab")
    expect(opened.locator("pre").first).to_be_focused()
    chat.page.keyboard.press("Shift+Tab")
    chat.page.keyboard.press("Space")
    expect(result).to_be_hidden()


def test_the_working_memory_is_in_the_request_and_gone_after_the_turn(shop: Chat) -> None:
    chat = shop
    chat.expect_kinds("system", "tools", "tools")
    number = chat.send(QUESTION)
    working = ["working"] * 3
    chat.expect_kinds("system", "tools", "tools", "current", *working)
    expect(chat.page.locator('.message.step[data-state="working"]')).to_have_count(1)
    chat.expect_state(number, "complete")
    chat.expect_kinds("system", "tools", "tools", *["tail"] * 5)
    expect(chat.page.locator('.message.step[data-state="window"]')).to_have_count(1)
    chat.page.locator("#request-previous").click()
    chat.expect_kinds("system", "tools", "tools", "current", *working)
    expect(chat.panel.locator(".proof .good")).to_contain_text("identical to what was sent")
    chat.page.locator("#request-previous").click()
    chat.expect_kinds("system", "tools", "tools", "current")
    assert [one["function"]["name"] for one in chat.context(1)["body"]["tools"]][:2] == CALLS


def test_a_card_shows_its_result_in_the_transcript(shop: Chat) -> None:
    chat = shop
    chat.ask(QUESTION)
    card = chat.segments.filter(has_text="Result of query_logistics")
    card.hover()
    logistics = row(chat, "query_logistics")
    expect(logistics).to_have_class(re.compile(r"\bmarked\b"))
    expect(row(chat, "query_order")).not_to_have_class(re.compile(r"\bmarked\b"))
    card.locator("summary").click()
    card.get_by_role("link", name="show in the transcript").click()
    expect(logistics.locator(".result pre")).to_be_in_viewport()
    chat.page.reload()
    chat.ready()
    expect(logistics.locator(".result pre")).to_be_in_viewport()
    logistics.locator("summary").hover()
    expect(card).to_have_class(re.compile(r"\bmarked\b"))


def test_what_is_unfolded_stays_so_when_the_turn_goes_on_and_ends(shop: Chat) -> None:
    chat = shop
    number = chat.send(QUESTION)
    expect(chat.partial).to_contain_text("Order")
    row(chat, "query_order").locator("summary").click()
    chat.expect_state(number, "complete")
    expect(row(chat, "query_order").locator(".result pre")).to_be_visible()
    expect(row(chat, "query_order").locator("summary")).to_be_focused()


def test_stop_after_the_calls_keeps_their_results(shop: Chat) -> None:
    chat = shop
    number = chat.send(QUESTION)
    expect(chat.partial).to_contain_text("Order 88231")
    chat.stop_button.click()
    chat.expect_state(number, "stopped")
    expect(chat.page.locator(".call.done")).to_have_count(2)
    kinds = [segment["role"] for segment in chat.context()["segments"]]
    assert kinds == ["system", "system", "user", "assistant", "tool", "tool", "assistant"]


@pytest.mark.parametrize("lost", ["turn.step", "turn.delta", "turn.status"])
def test_steps_are_shown_whatever_frames_get_lost(lost: str, shop: Chat) -> None:
    """Every frame of one kind, of the deltas every third. No text stands in two steps."""
    chat = shop
    counts = {"all": 0, "lost": 0}

    def lossy(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(frame: str | bytes) -> None:
            if json.loads(frame)["type"] == lost:
                counts["all"] += 1
                if lost != "turn.delta" or counts["all"] % 3 == 0:
                    counts["lost"] += 1
                    return
            socket.send(frame)

        server.on_message(forward)

    chat.page.route_web_socket("**/ws/**", lossy)
    chat.page.reload()
    chat.ready()
    chat.record()
    reply = chat.ask(QUESTION)
    assert counts["lost"] > 1
    expect(chat.page.locator(".call.done")).to_have_count(2)
    stored = chat.stored()
    seen = chat.seen()
    assert all(BEFORE.startswith(text) or stored.startswith(text) for text in seen), seen
    assert "BX202688231" in reply


def test_a_page_that_comes_late_sees_the_steps_and_the_running_text(shop: Chat) -> None:
    chat = shop
    number = chat.send(QUESTION)
    expect(chat.partial).to_contain_text("Order 88231")
    other = chat.tab()
    other.record()
    expect(other.page.locator(".call.done")).to_have_count(2)
    for tab in (other, chat):
        tab.expect_state(number, "complete")
    assert other.reply(number).inner_text() == chat.reply(number).inner_text()
    assert all(chat.stored().startswith(text) for text in other.seen())


@pytest.mark.parametrize(("theme", "viewport"), VIEWS)
def test_rows_and_cards_have_no_serious_fault(
    theme: str,
    viewport: dict[str, int],
    server: Server,
    local_user: Client,
    visit: Callable[..., Chat],
) -> None:
    chat = visit(server, local_user, viewport=viewport, color_scheme=theme)
    chat.open(local_user.new_conversation())
    switch_on(chat)
    faults = {"settings": serious(chat)}
    chat.open(chat.address)
    chat.ask(QUESTION)
    faults["closed"] = serious(chat)
    chat.page.locator(".call, .segment details").evaluate_all(
        "all => all.forEach((one) => { one.open = true; })"
    )
    faults["open"] = serious(chat)
    chat.expect_no_sideways_scroll("html, body, #transcript, .step, .call > summary")
    assert {view: found for view, found in faults.items() if found} == {}
