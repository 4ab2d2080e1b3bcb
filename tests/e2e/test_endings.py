"""A page whose session or conversation ends in another tab."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route, WebSocketRoute, expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server

pytestmark = pytest.mark.browser


@pytest.fixture
def own(server: Server, sign_in: Callable[..., Client], visit: Callable[..., Chat]) -> Chat:
    """A new conversation, in a session that may be ended."""
    client = sign_in(server)
    return visit(server, client).open(client.new_conversation())


def sign_out(chat: Chat) -> None:
    other = chat.page.context.new_page()
    other.goto(chat.server.url)
    other.get_by_role("button", name="Sign out").click()
    expect(other.get_by_role("button", name="Continue as local user")).to_be_visible()


def delete(chat: Chat) -> None:
    other = chat.page.context.new_page()
    other.goto(f"{chat.server.url}{chat.address}delete/")
    other.get_by_role("button", name="Delete").click()
    expect(other.locator("#app")).to_be_attached()


def expect_unsent(chat: Chat, text: str) -> None:
    expect(chat.problem).to_contain_text("could not be sent")
    expect(chat.field).to_have_value(text)
    expect(chat.page.locator("[data-pending]")).to_have_count(0)


def test_a_signed_out_tab_sends_nothing_and_keeps_what_is_written(own: Chat) -> None:
    sign_out(own)
    expect(own.status).to_contain_text("You are signed out")
    own.field.fill("hello?")
    own.field.press("Enter")
    expect_unsent(own, "hello?")
    own.page.get_by_role("link", name="Sign in").click()
    own.page.get_by_role("button", name="Continue as local user").click()
    own.ready()
    expect(own.turns).to_have_count(0)
    expect(own.field).to_have_value("hello?")
    own.field.press("Enter")
    own.expect_state(1, "complete")


def test_a_message_on_its_way_at_the_sign_out_comes_back(own: Chat) -> None:
    def deaf(socket: WebSocketRoute) -> None:
        socket.connect_to_server()
        socket.on_message(lambda frame: None)

    own.page.route_web_socket("**/ws/**", deaf)
    own.page.reload()
    own.ready()
    own.field.fill("hello?")
    own.field.press("Enter")
    expect(own.page.locator("[data-pending]")).to_have_count(1)
    sign_out(own)
    expect(own.status).to_contain_text("You are signed out")
    expect_unsent(own, "hello?")


def test_a_tab_of_a_deleted_conversation_stays_and_says_so(chat: Chat) -> None:
    chat.watch.allow("404")
    chat.ask("hello")
    delete(chat)
    chat.tab_link("Summary").click()
    expect(chat.status).to_contain_text("This conversation does not exist")
    assert "hello" in chat.transcript.inner_text()
    chat.field.fill("hello?")
    chat.field.press("Enter")
    expect_unsent(chat, "hello?")


def test_a_part_that_is_missing_does_not_end_the_conversation(chat: Chat) -> None:
    chat.watch.allow("404")
    chat.page.route("**/panel/summary/", lambda route: route.fulfill(status=404))
    with chat.page.expect_response("**/panel/context/"):
        chat.tab_link("Summary").click()
    expect(chat.status).to_contain_text("could not be loaded")
    assert chat.ask("hello")


def test_an_error_of_the_server_leaves_the_page_as_it_was(chat: Chat) -> None:
    chat.watch.allow("500")

    def fail(route: Route) -> None:
        route.fulfill(status=500, content_type="text/html", body="<h1>Traceback</h1>")

    chat.page.route("**/panel/summary/", fail)
    chat.tab_link("Summary").click()
    expect(chat.status).to_contain_text("could not be loaded")
    expect(chat.page.get_by_text("Traceback")).to_have_count(0)
    chat.page.unroute("**/panel/summary/")
    chat.tab_link("Summary").click()
    expect(chat.panel.locator("[data-tab=summary]")).to_be_visible()
