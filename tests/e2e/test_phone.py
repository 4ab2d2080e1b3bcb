"""On a phone: nothing scrolls sideways, the panel is a sheet, and one can chat."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.test_folding import TALK
from tests.e2e.watch import rect

pytestmark = pytest.mark.browser

SIZES = [(360, 740), (320, 568)]
WIDE = "https://example.org/" + "a-very-long-word" * 12


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def phone(request: pytest.FixtureRequest, server: Server, visit: Callable[..., Chat]) -> Chat:
    width, height = request.param
    return visit(server, viewport={"width": width, "height": height}, has_touch=True)


def test_no_page_scrolls_sideways_and_send_works(phone: Chat, tmp_path: Path) -> None:
    phone.page.goto(f"{phone.server.url}/login/")
    phone.expect_no_sideways_scroll()
    phone.shot(tmp_path, "sign-in")
    phone.sign_in()
    if phone.page.get_by_role("button", name="Start a conversation").is_hidden():
        phone.page.get_by_role("button", name="Conversations").tap()
        expect(phone.page.locator("#side")).to_be_visible()
        phone.expect_no_sideways_scroll()
    phone.new()
    phone.expect_no_sideways_scroll()
    phone.shot(tmp_path, "empty")
    phone.field.fill("Show me some Markdown.")
    phone.send_button.tap()
    phone.expect_state(1, "complete")
    phone.expect_no_sideways_scroll()
    phone.ask(WIDE)
    phone.expect_no_sideways_scroll()
    phone.shot(tmp_path, "chat")
    width = phone.page.viewport_size["width"]  # type: ignore[index]
    for shown in (phone.send_button, phone.field, phone.page.locator("#title")):
        box = rect(shown.bounding_box())
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


def test_the_panel_opens_as_a_sheet_and_closes(phone: Chat, tmp_path: Path) -> None:
    phone.sign_in()
    if phone.page.get_by_role("button", name="Start a conversation").is_hidden():
        phone.page.get_by_role("button", name="Conversations").tap()
    phone.new()
    phone.ask("My name is Ada.")
    panel = phone.page.locator("#panel")
    expect(panel).to_be_hidden()
    peek = phone.page.get_by_role("button", name="Open the memory panel")
    peek.tap()
    expect(panel).to_be_visible()
    phone.expect_kinds("system", "tail", "tail")
    phone.expect_no_sideways_scroll()
    assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
    phone.settle()
    phone.shot(tmp_path, "sheet")
    for button in ("Compact now", "Reset memory"):
        expect(panel.get_by_role("button", name=button)).to_be_in_viewport(ratio=1)
    phone.page.get_by_role("button", name="Close the memory panel").tap()
    expect(panel).to_be_hidden()
    peek.tap()
    expect(panel).to_be_visible()
    phone.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_no_tab_of_the_panel_scrolls_sideways(
    language: str, start_server: Callable[..., Server], visit: Callable[..., Chat], tmp_path: Path
) -> None:
    server = start_server(pace=0)
    assert server.manage("catalogue").returncode == 0
    owner = Client(server)
    conversation = owner.talk(TALK)
    owner.post(f"{conversation}memory/reset/")
    owner.post(f"{conversation}memory/undo/")
    size = {"width": 360, "height": 740}
    chat = visit(server, owner, viewport=size, has_touch=True, locale=language)
    owner.close()
    for query in ("tab=context", "tab=summary", "tab=timeline", "tab=timeline&compare=1",
                  "tab=settings"):  # fmt: skip
        chat.open(f"{conversation}?{query}")
        expect(chat.page.locator("html")).to_have_attribute("lang", re.compile(language[:2]))
        expect(chat.page.locator("#panel")).to_be_visible()
        chat.page.locator("#panel-body details > summary").evaluate_all(
            "all => all.forEach((one) => { one.parentElement.open = true; })"
        )
        chat.settle()
        chat.shot(tmp_path, query)
        chat.expect_no_sideways_scroll("#panel, #panel-body, #panel-body .panel-scroll, .tabs")
        links = chat.page.locator(".tabs a")
        expect(links).to_have_count(4)
        for link in links.all():
            expect(link).to_be_in_viewport(ratio=1)


def test_reset_works_from_the_sheet(phone: Chat) -> None:
    phone.sign_in()
    if phone.page.get_by_role("button", name="Start a conversation").is_hidden():
        phone.page.get_by_role("button", name="Conversations").tap()
    phone.new()
    phone.ask("My name is Ada.")
    phone.page.get_by_role("button", name="Open the memory panel").tap()
    phone.reset()
    phone.expect_kinds("system")
    expect(phone.page.locator(".divider.reset")).to_have_count(1)
