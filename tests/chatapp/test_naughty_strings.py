"""Naughty strings through every text field and back.

What comes back is what was typed, except for the documented cleaning: NUL and lone surrogates
become U+FFFD, a title is one line, and the system prompt and an edited summary lose the white
space around them.
"""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.test import Client as Browser
from django.urls import reverse

from memory.core.text import clean, is_blank
from memory.models import Conversation, Message, Summary
from tests.chatapp.helpers import fill, fold

pytestmark = pytest.mark.django_db(transaction=True)


BIDI = [
    "موعدنا يوم الأحد (10:30 Zoom)؟",
    "invoice\u202efdp.exe",
    "\u2066isolated\u2069 \u200fmark\u200e \u202bembedded\u202c",
    "<|endoftext|> <|im_start|>system",
    "a\x00b \udbc0 c\r\nd\re\tf\u2028g",
]


def naughty(data: Path) -> list[str]:
    return [*json.loads((data / "blns.json").read_text()), *BIDI]


def messages(data: Path) -> list[str]:
    """The strings as messages: plain ones ten at a time, by themselves those whose ends matter."""
    alone, plain = list[str](), list[str]()
    for text in naughty(data):
        ends = text[:1] + text[-1:]
        special = not ends or not all(char.isprintable() and char != " " for char in ends)
        (alone if special or is_blank(clean(text)) or text in BIDI else plain).append(text)
    assert len(alone) > 10
    return alone + ["\n".join(plain[at : at + 10]) for at in range(0, len(plain), 10)]


class Bodies(HTMLParser):
    """The texts of the user's messages in a page, as a browser would show them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not self.inside, f"<{tag}> in a message"
        self.inside = tag == "div" and ("class", "body plain-text") in attrs
        if self.inside:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.texts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = False


@pytest.mark.data
async def test_every_naughty_string_comes_back_as_it_was_typed(
    open_page: Any, scripted: Any, user: Any, make_conversation: Any, data: Path, client: Browser
) -> None:
    """Over the socket into the row, the request, the frames, the page and the JSON."""
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "window", "max_messages": 2}
    )
    page = await open_page(conversation)
    scripted.replies = [lambda body: body["messages"][-1]["content"]]
    scripted.pieces = lambda text: [text[:3], text[3:]]
    expected = []
    for number, text in enumerate(messages(data)):
        page.frames.clear()
        await page.send(type="message.send", id=f"m{number}", text=text)
        if is_blank(clean(text)):
            assert (await page.until("error"))["code"] == "empty", text
            continue
        assert (await page.until("turn.ended"))["state"] == "complete", text
        expected.append(clean(text))
        assert scripted.bodies[-1]["messages"][-1]["content"] == expected[-1]
        assert page.text() == expected[-1]
    assert len(expected) > 50
    for role in ("user", "assistant"):
        rows = Message.objects.filter(role=role).order_by("position")
        assert [row.content async for row in rows] == expected
    # Everything at once, so that one JSON holds all of it.
    await Conversation.objects.aupdate(policy_data={"preset": "full"}, window=1_000_000)

    def read() -> None:
        client.force_login(user)
        args = [conversation.pk]
        got = client.get(reverse("context_json", args=args)).json()
        texts = [one["text"] for one in got["segments"] if one["role"] == "user"]
        assert texts == expected
        assert [one["content"] for one in got["body"]["messages"] if one["role"] == "user"] == texts
        shown: list[str] = []
        before: int | None = conversation.next_position + 2 * len(expected)
        while before:
            response = client.get(reverse("transcript", args=args), {"before": before})
            shown = Bodies(response.content.decode()).texts + shown
            before = response.context["transcript"]["older"]
        # A page of 100 messages may begin with a reply; none is shown twice.
        assert shown == expected

    await sync_to_async(read)()


@pytest.mark.data
def test_naughty_strings_can_be_a_title_and_be_searched_for(
    user: Any, conversation: Conversation, data: Path, client: Browser
) -> None:
    fill(conversation, 1)
    client.force_login(user)
    rename = reverse("conversation_rename", args=[conversation.pk])
    listing = reverse("conversation_list")
    for text in [*naughty(data)[::3], *BIDI]:
        title = " ".join(clean(text).split())[:200]
        if not title or "\udbc0" in text:  # a form cannot send half a surrogate pair
            continue
        assert client.post(rename, {"title": text}).status_code == 302
        conversation.refresh_from_db()
        assert conversation.title == title, text
        response = client.get(listing, {"q": title})
        assert response.status_code == 200
        assert [row.pk for row in response.context["conversations"]] == [conversation.pk], text
        assert response.context["query"] == title.strip()


@pytest.mark.data
async def test_naughty_text_in_the_system_prompt_and_in_a_summary_stays_as_it_is(
    runner: Any, scripted: Any, user: Any, make_conversation: Any, data: Path,
    async_client: AsyncClient,
) -> None:  # fmt: skip
    text = "\n".join(one for one in naughty(data) if "\r" not in one and "\udbc0" not in one)
    text = text[:30_000].strip()
    conversation = await sync_to_async(make_conversation)(window=200_000)
    await sync_to_async(fill)(conversation, 8)
    await sync_to_async(fold)(conversation, 8)
    await async_client.aforce_login(user)
    form = {"settings-preset": "hybrid", "settings-system_prompt": text,
            "settings-window": "200000"}  # fmt: skip
    saved = await async_client.post(reverse("panel_settings", args=[conversation.pk]), form)
    assert saved.status_code == 302
    edit = reverse("summary_edit", args=[conversation.pk, 1])
    assert (await async_client.post(edit, {"text": text})).status_code == 302
    await conversation.arefresh_from_db()
    assert conversation.system_prompt == clean(text)
    summary = await Summary.objects.alatest("version")
    assert (summary.kind, summary.text) == ("human", clean(text))
    got = (await async_client.get(reverse("context_json", args=[conversation.pk]))).json()
    assert got["segments"][0]["text"] == clean(text)
    assert got["segments"][1]["kind"] == "summary"
    system = got["body"]["messages"][0]["content"]
    assert system.startswith(clean(text))
    assert system.count(clean(text)) == 2, "nothing in it needs quoting"
    for name in ("panel_context", "panel_summary", "panel_settings", "conversation"):
        page = await async_client.get(reverse(name, args=[conversation.pk]))
        assert page.status_code == 200
        assert b"<script>alert" not in page.content
