"""Cases that only a browser can show."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.pages import Chat

pytestmark = pytest.mark.browser

EVIL = "<img src=x-evil onerror=window.__p=1> &lt;img src=x-evil onerror=window.__p=1&gt;"


def test_se_02_half_tags_stay_text_while_they_stream_and_after_a_reload(chat: Chat) -> None:
    """The page read its escaped text back and gave it to a converter that made markup of it."""
    chat.record()
    number = chat.send(EVIL)
    chat.expect_state(number, "complete")
    seen = chat.seen()
    assert len(seen) > 3
    assert all(EVIL.startswith(text) for text in seen)
    for _ in range(2):
        expect(chat.page.locator(".turn img")).to_have_count(0)
        assert "<img src=x-evil onerror" in chat.reply(number).inner_text()
        assert chat.page.evaluate("() => typeof window.__p") == "undefined"
        chat.page.reload()
        chat.ready()
    assert [url for url in chat.watch.requests if "x-evil" in url] == []


def test_ws_08_a_paste_over_the_limit_is_explained_and_not_sent(chat: Chat) -> None:
    """A big paste closed the connection, and the page sent the same frame for ever."""
    sent: list[str] = []
    chat.page.on("websocket", lambda one: one.on("framesent", lambda data: sent.append(str(data))))
    chat.page.reload()
    chat.ready()
    for text in ("a" * 40_000, "記" * 60_000):
        chat.field.evaluate(
            "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }",
            text,
        )
        expect(chat.problem).to_contain_text(re.compile("32.?000"))
        chat.send_button.click()
        assert chat.field.evaluate("(field) => field.value.length") == len(text)
    assert [frame for frame in sent if "message.send" in frame] == []
    chat.ask("short again")


def test_ws_08_a_socket_closed_for_size_gives_the_text_back(chat: Chat) -> None:
    """After such a close the page has to say why, and not to send the same frame again."""
    frames: list[str] = []

    def too_large(socket: Any) -> None:
        server = socket.connect_to_server()

        def outgoing(frame: str | bytes) -> None:
            if json.loads(frame)["type"] == "message.send":
                frames.append(str(frame))
                if len(frames) == 1:
                    socket.close(code=1009, reason="too large")
                    return
            server.send(frame)

        socket.on_message(outgoing)

    chat.page.route_web_socket("**/ws/**", too_large)
    chat.page.reload()
    chat.ready()
    chat.field.fill("pretend that this is large")
    chat.field.press("Enter")
    expect(chat.problem).to_contain_text("Too large")
    expect(chat.field).to_have_value("pretend that this is large")
    expect(chat.status).not_to_contain_text("connection was lost", timeout=20_000)
    assert len(frames) == 1


def test_ws_12_one_socket_lives_at_any_time(chat: Chat) -> None:
    """The element that owned the socket was swapped out, and its handler threw from then on."""
    opened: list[str] = []
    chat.page.on("websocket", lambda socket: opened.append(socket.url))
    chat.page.reload()
    chat.ready()
    first = chat.address
    number = chat.send("a reply of some length that is being written for a while " * 4)
    expect(chat.partial).to_contain_text("a reply")
    for _ in range(3):
        chat.page.evaluate(
            "() => htmx.ajax('GET', location.pathname + 'panel/context/', '#panel-body')"
        )
    chat.expect_state(number, "complete")
    expect(chat.segments).to_have_count(3)
    chat.new()
    second = chat.address
    for _ in range(5):
        chat.open(first)
        chat.open(second)
    chat.ask("still here")
    # A page that is left takes its socket along: one for each page that was opened.
    pages = [first, second] + [first, second] * 5
    assert [url.partition("/ws")[2] for url in opened] == pages


ARABIC = "موعدنا يوم الأحد (10:30 Zoom)؟"
MIXED = f"{ARABIC}\n\nAn English block.\n\n- פתח את `notes v2.md`\n- left to right"


def side(block: Locator) -> str:
    """At which side of its block the text begins."""
    return str(
        block.evaluate(
            """(block) => { const range = document.createRange();
              range.selectNodeContents(block);
              const text = range.getClientRects()[0], box = block.getBoundingClientRect();
              return box.right - text.right < text.left - box.left ? "right" : "left"; }"""
        )
    )


def test_ui_06_text_from_right_to_left_begins_at_the_right(chat: Chat) -> None:
    """All text was forced left to right, and punctuation ended up at the wrong end."""
    chat.ask(MIXED)
    chat.page.reload()
    chat.ready()
    body = chat.page.locator("#m-1 .body")
    assert body.evaluate("(body) => getComputedStyle(body).direction") == "rtl"
    reply = chat.page.locator("#m-2 .body")
    assert side(reply.locator("p").first) == "right"
    assert side(reply.locator("li").first) == "right"
    code = reply.locator("code").first
    style = "(code) => [getComputedStyle(code).direction, getComputedStyle(code).unicodeBidi]"
    assert code.evaluate(style) == ["ltr", "isolate"]
    expect(chat.page.locator("#title")).to_have_css("direction", "rtl")


def test_ui_06_each_block_of_a_reply_takes_its_direction_from_its_text(chat: Chat) -> None:
    """A reply in two languages needs a direction for each of its blocks."""
    chat.ask(MIXED)
    reply = chat.page.locator("#m-2 .body")
    assert side(reply.locator("p").nth(1)) == "left"
    assert side(reply.locator("li").nth(1)) == "left"
