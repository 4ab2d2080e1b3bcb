"""What somebody, or a model, wrote is never code: it is shown, and nothing of it runs or loads."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.watch import asked_for

pytestmark = pytest.mark.browser

EVIL = """<img src=x-evil onerror="window.__p=1"><script>window.__p=2</script>
<svg onload="window.__p=3"></svg> <iframe src="/x-evil"></iframe>
<a href="javascript:window.__p=4">plain</a> [markdown](javascript:window.__p=5)
[data](data:text/html,<script>window.__p=6</script>) ![picture](https://evil.example/x-evil.png)
![ours](/x-evil.png) <https://evil.example/> <style>body{display:none}</style>
<form action="/logout/"><button id="send">x</button></form>
"""
TITLE = '<b id="bold">Bold</b> <img src=x-evil onerror="window.__p=7">{{ 7 }} &amp;'

# Three conversations, one for each test: they change them.
SEED = """
import json
from django.contrib.auth import get_user_model
from memory import store
from memory.core.messages import Message
from memory.rows import Written
evil, title = json.loads({data!r})
for _ in range(3):
    made = store.create_conversation(
        owner=get_user_model().objects.get(username="local"), title=title,
        policy={{"preset": "hybrid"}}, system_prompt=evil)
    for n in range(1, 5):
        turn, _new = store.start_turn(
            conversation_id=made.pk, client_id=f"seed-{{n}}", encoding="o200k_base", owner="",
            message=Message("user", f"{{n}} {{evil}}", tokens=120))
        said = f"{{n}} {{evil}}\\n\\n```html\\n{{evil}}\\n```"
        reply = Written(Message("assistant", said, tokens=250))
        store.finish_turn(turn_id=turn.pk, state="complete", reply=reply, encoding="o200k_base")
    print(made.pk)
"""


def assert_nothing_ran(chat: Chat) -> None:
    assert chat.page.evaluate("() => typeof window.__p") == "undefined"
    assert [url for url in chat.watch.requests if "x-evil" in url or "evil.example" in url] == []


@pytest.fixture(scope="module")
def evil_conversations(shared_server: Server, local_user: Client) -> list[str]:
    return shared_server.script(SEED.format(data=json.dumps([EVIL, TITLE]))).split()


@pytest.fixture
def evil_chat(
    server: Server, local_user: Client, evil_conversations: list[str], visit: Callable[..., Chat]
) -> Chat:
    return visit(server, local_user).open(f"/c/{evil_conversations.pop()}/")


def test_markup_in_messages_is_shown_and_does_nothing(evil_chat: Chat, tmp_path: Path) -> None:
    chat = evil_chat
    shown = chat.page.locator("#m-1 .body")
    assert EVIL.strip().splitlines()[0] in shown.inner_text()
    for tag in ("script", "img", "iframe", "svg", "form", "style", "button"):
        expect(
            chat.page.locator(f".turn .body {tag}").and_(chat.page.locator(":not(.copy-code)"))
        ).to_have_count(0)
    links = chat.page.locator(".turn .body a").evaluate_all("all => all.map((a) => a.href)")
    assert [link for link in links if not re.match(r"https?://", link)] == []
    rels = chat.page.locator(".turn .body a").evaluate_all("all => all.map((a) => a.rel)")
    assert all("noopener" in rel for rel in rels)
    chat.shot(tmp_path, "markup")
    assert_nothing_ran(chat)


def test_markup_in_a_new_message_and_in_its_title_does_nothing(chat: Chat) -> None:
    text = '<img src=x-evil onerror="window.__p=1"> <script>window.__p=2</script>'
    chat.ask(text)
    expect(chat.page.locator("#m-1 .body")).to_have_text(text)
    expect(chat.page.locator("#title")).to_contain_text("<img src=x-evil")
    expect(chat.page.locator("#list [aria-current=page] .list-title")).to_contain_text("<img src=x")
    assert_nothing_ran(chat)


def test_markup_in_the_panel_and_in_a_summary_does_nothing(evil_chat: Chat) -> None:
    chat = evil_chat
    chat.page.locator("#compact-now").click()
    expect(chat.page.locator(".divider.fold")).to_have_count(1)
    chat.page.locator(".divider.fold summary").click()
    for segment in chat.segments.all():
        segment.locator("summary").first.click()
    assert EVIL.strip().splitlines()[0] in chat.segments.first.locator("pre").inner_text()
    expect(chat.page.locator("#panel-body pre *, .fold-text .plain-text *")).to_have_count(0)
    assert_nothing_ran(chat)


def test_a_title_with_markup_is_shown_literally_everywhere(evil_chat: Chat) -> None:
    chat = evil_chat
    title = chat.page.locator("#title")
    expect(title).to_have_text(TITLE)
    expect(chat.page.locator("#list [aria-current=page]")).to_contain_text(TITLE)
    assert chat.page.title().startswith(TITLE)
    renamed = f"Again {TITLE}"
    chat.page.get_by_role("button", name="Rename or delete").click()
    field = chat.page.locator("#rename-field")
    expect(field).to_have_value(TITLE)
    field.fill(renamed)
    field.press("Enter")
    expect(title).to_have_text(renamed)
    chat.ready()
    chat.ask("hello")  # the list is fetched again, and the script writes the title
    expect(title).to_have_text(renamed)
    expect(chat.page.locator("#bold")).to_have_count(0)
    chat.page.goto(f"{chat.server.url}{chat.address}delete/")
    expect(chat.page.locator(".lead")).to_have_text(renamed)
    expect(chat.page.locator("#bold")).to_have_count(0)
    assert_nothing_ran(chat)
    assert asked_for(chat.watch, "/delete/")
