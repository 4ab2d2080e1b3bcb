"""The server dies in the middle of a reply: what was saved is there, and one can go on."""

import re
import signal
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server, counted_to, until

WHOLE = counted_to(2000)  # 20 s at the pace of these servers
TELLING = "My name is Ada."

# What a browser says of a server that went away.
GONE = (
    "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|WebSocket connection to|htmx:"
)
# What a process leaves that died 16 s ago: so that no test waits as long.
AGE = """
from datetime import timedelta
from memory.models import Turn
for turn in Turn.objects.filter(state="running"):
    turn.heartbeat_at -= timedelta(seconds=16)
    turn.save(update_fields=["heartbeat_at"])
"""


def begin(client: Client) -> str:
    """A conversation with a finished turn and one whose reply is long enough to be saved."""
    conversation = client.new_conversation()
    client.ask(conversation, TELLING)
    assert client.send(conversation, "count to 2000").status_code == 302
    return conversation


def begin_in_browser(server: Server, visit: Callable[..., Chat]) -> tuple[Chat, int]:
    """A page with a long reply on its way that may lose its server; the number of the turn."""
    chat = visit(server).sign_in().new()
    chat.watch.allow(GONE)
    return chat, chat.send("count to 2000")


def test_after_kill_9_the_saved_text_is_there_and_the_next_message_is_answered(
    start_server: Callable[[], Server], sign_in: Callable[[Server], Client]
) -> None:
    server = start_server()
    client = sign_in(server)
    conversation = begin(client)
    until(lambda: len(client.partial(conversation)) > 700, "some seconds of text")
    server.send_signal(signal.SIGKILL)
    assert server.ended(5) == -signal.SIGKILL
    server.start()

    shown = client.partial(conversation)  # fresh: another process might still write it
    assert client.state(conversation) == "running"
    assert len(shown) > 300  # saved once a second: 100 words, about 500 characters, may be missing
    assert WHOLE.startswith(shown)
    assert client.http.get(conversation).status_code == 200
    refused = client.send(conversation, "Are you there?")
    assert refused.status_code == 409
    assert "Traceback" not in refused.text

    server.script(AGE)
    assert client.http.get(conversation).status_code == 200
    assert client.state(conversation) == "interrupted"
    assert client.last_text(conversation) == shown
    assert "Ada" in client.ask(conversation, "What is my name?")
    assert client.context(conversation, 3)["verified"] is True


@pytest.mark.browser
def test_an_open_page_survives_kill_9_and_shows_the_interruption_by_itself(
    start_server: Callable[[], Server], visit: Callable[..., Chat]
) -> None:
    server = start_server()
    chat, number = begin_in_browser(server, visit)
    expect(chat.partial).to_contain_text("150, 151")
    server.send_signal(signal.SIGKILL)
    server.ended(5)
    expect(chat.status).to_contain_text("The connection was lost")
    chat.field.fill("written while the server was away")
    server.start()
    chat.expect_state(number, "interrupted", timeout=60_000)
    expect(chat.status).not_to_contain_text("The connection was lost")
    expect(chat.field).to_have_value("written while the server was away")
    kept = chat.reply(number).inner_text()
    assert len(kept) > 200
    assert WHOLE.startswith(kept)
    assert chat.stored() == kept
    note = chat.turn(number).locator(".turn-state")
    expect(note).to_contain_text(re.compile("interrupted", re.I))
    expect(note.get_by_role("button", name="Retry")).to_be_visible()
    chat.field.fill("")
    assert "I do not know your name" in chat.ask("What is my name?")


def test_sigterm_keeps_all_the_text_and_ends_with_0(
    start_server: Callable[[], Server], sign_in: Callable[[Server], Client]
) -> None:
    server = start_server()
    client = sign_in(server)
    conversation = begin(client)
    shown = until(
        lambda: len(text := client.partial(conversation)) > 300 and text, "some text is there"
    )
    server.send_signal(signal.SIGTERM)
    assert server.ended(5) == 0
    assert "Traceback" not in server.log()
    server.start()
    assert client.state(conversation) == "interrupted"
    kept = client.last_text(conversation)
    assert kept.startswith(shown)
    assert WHOLE.startswith(kept)
    assert len(kept) < len(WHOLE)


@pytest.mark.browser
def test_sigterm_ends_a_server_with_open_pages_which_come_back(
    start_server: Callable[[], Server], visit: Callable[..., Chat]
) -> None:
    server = start_server()
    chat, number = begin_in_browser(server, visit)
    idle = chat.tab()
    expect(idle.partial).to_contain_text("20, 21")
    server.send_signal(signal.SIGTERM)
    assert server.ended(5) == 0
    server.start()
    for tab in (chat, idle):
        tab.expect_state(number, "interrupted", timeout=30_000)
        assert tab.reply(number).inner_text() == chat.stored()


def test_ctrl_c_ends_it_with_0(start_server: Callable[[], Server]) -> None:
    server = start_server()
    server.send_signal(signal.SIGINT)
    assert server.ended(5) == 0
    assert "Traceback" not in server.log()


def test_a_taken_port_gives_one_clear_line(start_server: Callable[[], Server]) -> None:
    server = start_server()
    done = server.manage("serve", "--port", str(server.port))
    assert done.returncode != 0
    lines = (done.stdout + done.stderr).strip().splitlines()
    assert len(lines) == 1, lines
    assert re.search(rf"Port {server.port} .*cannot be used", lines[0])
    assert server._answers()
