"""A reply while it is written: reloads, second tabs and Stop lose and double nothing."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import WebSocketRoute, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import counted_to

pytestmark = pytest.mark.browser

LAST = 400
WHOLE = counted_to(LAST)


def begin(chat: Chat, text: str = f"count to {LAST}") -> int:
    """A turn whose reply is being written."""
    chat.record()
    number = chat.send(text)
    expect(chat.partial).to_contain_text("1, 2, 3, 4, 5, 6,")
    return number


def assert_grew(seen: list[str], *, states: int) -> None:
    """The text on the page only ever grew, in steps, and was always a start of the whole."""
    assert len(seen) >= states
    assert all(WHOLE.startswith(text) for text in seen)
    assert seen == sorted(seen, key=len)


def test_a_reload_in_mid_stream_continues_and_ends_exactly(chat: Chat) -> None:
    number = begin(chat)
    before = chat.seen()[-1]
    chat.page.reload()
    chat.ready()
    expect(chat.stop_button).to_be_visible()
    chat.expect_state(number, "complete")
    after = chat.seen()
    assert after[0].startswith(before)
    assert_grew(after, states=10)
    assert chat.reply(number).inner_text() == WHOLE == chat.stored()


def test_a_second_tab_opened_in_mid_stream_ends_equal(chat: Chat) -> None:
    number = begin(chat)
    other = chat.tab()
    other.record()
    for tab in (chat, other):
        tab.expect_state(number, "complete")
        assert tab.reply(number).inner_text() == WHOLE
        assert_grew(tab.seen(), states=10)
    assert chat.stored() == WHOLE


def test_stop_keeps_the_partial_text_and_retry_keeps_the_earlier_version(
    chat: Chat, tmp_path: Path
) -> None:
    number = begin(chat)
    expect(chat.send_button).to_be_hidden()
    chat.shot(tmp_path, "streaming")
    seen = chat.seen()[-1]
    chat.stop_button.click()
    chat.expect_state(number, "stopped")
    kept = chat.reply(number).inner_text()
    assert kept.startswith(seen)
    assert WHOLE.startswith(kept)
    assert len(kept) < len(WHOLE)
    assert chat.stored() == kept
    note = chat.turn(number).locator(".turn-state")
    expect(note).to_contain_text("Stopped")
    chat.shot(tmp_path, "stopped")

    note.get_by_role("button", name="Retry").click()
    again = number + 1
    expect(chat.turn(again)).to_be_attached()
    expect(chat.turn(number)).to_have_count(0)
    chat.expect_state(again, "complete")
    assert chat.reply(again).inner_text() == WHOLE
    earlier = chat.turn(again).locator("details.replaced")
    expect(earlier.locator("summary").first).to_have_text(re.compile("1 earlier version, kept"))
    expect(earlier.locator(".message.assistant")).to_be_hidden()
    earlier.locator("summary").first.click()
    expect(earlier.locator(".message.assistant .body")).to_have_text(kept)
    texts = [segment["text"] for segment in chat.context()["segments"]]
    assert texts[1:] == [f"count to {LAST}", WHOLE]


def test_what_is_written_while_a_reply_runs_stays_as_the_draft_also_over_a_reload(
    chat: Chat,
) -> None:
    number = begin(chat)
    chat.field.fill("and then?")
    chat.field.press("Enter")
    expect(chat.problem).to_contain_text("A reply is being written")
    expect(chat.field).to_have_value("and then?")
    chat.page.reload()
    chat.ready()
    expect(chat.field).to_have_value("and then?")
    chat.stop_button.click()
    chat.expect_state(number, "stopped")
    chat.field.press("Enter")
    expect(chat.turn(number + 1)).to_be_attached()
    expect(chat.field).to_have_value("")


def test_a_reset_in_mid_stream_stops_the_reply_and_keeps_its_text(chat: Chat) -> None:
    number = begin(chat)
    chat.reset()
    chat.expect_state(number, "stopped")
    expect(chat.page.locator('.message[data-state="reset"]')).to_have_count(2)
    chat.expect_kinds("system")
    assert WHOLE.startswith(chat.reply(number).inner_text())


def test_a_lost_connection_comes_back_by_itself_and_nothing_is_lost(chat: Chat) -> None:
    sockets: list[WebSocketRoute] = []

    def through(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        sockets.append(socket)

    chat.page.route_web_socket("**/ws/**", through)
    chat.page.reload()
    chat.ready()
    number = begin(chat)
    sockets[0].close(code=1011, reason="gone")
    expect(chat.status).to_contain_text("The connection was lost")
    chat.expect_state(number, "complete")
    assert len(sockets) == 2
    assert chat.reply(number).inner_text() == WHOLE
    assert_grew(chat.seen(), states=3)


def test_frames_that_get_lost_are_asked_for_again(chat: Chat) -> None:
    counts = {"lost": 0, "resumed": 0, "all": 0}

    def lossy(socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()

        def forward(frame: str | bytes) -> None:
            kind = json.loads(frame)["type"]
            counts["all"] += kind == "turn.delta"
            if kind == "turn.delta" and counts["all"] % 10 == 0:
                counts["lost"] += 1
            else:
                socket.send(frame)

        def backward(frame: str | bytes) -> None:
            counts["resumed"] += json.loads(frame)["type"] == "turn.resume"
            server.send(frame)

        server.on_message(forward)
        socket.on_message(backward)

    chat.page.route_web_socket("**/ws/**", lossy)
    chat.page.reload()
    chat.ready()
    number = begin(chat)
    chat.expect_state(number, "complete")
    assert counts["lost"] > 3
    assert counts["resumed"] > 0
    assert_grew(chat.seen(), states=3)
    assert chat.reply(number).inner_text() == WHOLE
