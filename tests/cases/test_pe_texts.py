"""Cases about what is stored (PE-*): texts come back as they went."""

from html.parser import HTMLParser
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from memory.models import Conversation, Message, Summary
from tests.cases.raw import STOP, piece
from tests.chatapp.helpers import fill, fold, messages_of, say, sign_in_admin
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


EMOJI = "🫠 𝔘 👩‍🚀"


async def test_pe_01_nul_is_stored_nowhere(
    page: Page, scripted: Any, conversation: Conversation, client: Any, runner: Any
) -> None:
    """PostgreSQL stores no NUL: a record with one was lost; every entrance has to see to it."""
    scripted.replies = [[piece("c\x00d"), STOP]]
    await page.send(type="message.send", id="m1", text="a\x00b")
    await page.until("turn.ended")
    assert page.text() == "c\ufffdd"
    assert await messages_of(conversation) == [
        (1, "user", "a\ufffdb"),
        (2, "assistant", "c\ufffdd"),
    ]
    await page.send(type="message.send", id="m2", text="\x00\x00")
    assert (await page.until("error"))["code"] == "empty"
    await sync_to_async(sign_in_admin)(client, conversation.owner)

    def entrances() -> None:
        args = [conversation.pk]
        client.post(reverse("conversation_rename", args=args), {"title": "e\x00f"})
        assert Conversation.objects.get().title == "e\ufffdf"
        form = {"settings-preset": "hybrid", "settings-system_prompt": "g\x00h",
                "settings-title": "i\x00j"}  # fmt: skip
        assert client.post(reverse("panel_settings", args=args), form).status_code == 302
        row = Conversation.objects.get()
        assert (row.system_prompt, row.title) == ("g\ufffdh", "i\ufffdj")
        for url in (reverse("home"), reverse("conversation_list")):
            assert client.get(url + "?q=%00", follow=True).status_code == 200
        for name in ("conversation", "message", "summary", "memoryevent"):
            url = reverse(f"admin:memory_{name}_changelist")
            assert client.get(url + "?q=%00", follow=True).status_code in (200, 302), name

    await sync_to_async(entrances)()


async def test_pe_01_a_summary_of_the_model_or_by_hand_holds_no_nul(
    runner: Any, scripted: Any, conversation: Conversation, async_client: Any
) -> None:
    """The same for what the memory itself stores."""
    scripted.replies = ["an answer of some length that is worth folding away"]
    scripted.summaries = ["in sh\x00ort"]
    for number in range(7):
        await say(runner, conversation, f"question {number} of some length too")
    assert (await Summary.objects.aget()).text == "in sh\ufffdort"
    await async_client.aforce_login(conversation.owner)
    url = reverse("summary_edit", args=[conversation.pk, 1])
    await async_client.post(url, {"text": "by h\x00and"})
    assert (await Summary.objects.alatest("version")).text == "by h\ufffdand"


async def test_pe_13_four_byte_characters_come_back_as_they_went(
    page: Page, scripted: Any, conversation: Conversation, client: Any
) -> None:
    """A reply with an emoji could not be stored: shown once, gone after the reload."""
    scripted.replies = [EMOJI]
    await page.send(type="message.send", id="m1", text=EMOJI)
    await page.until("turn.ended")
    assert page.text() == EMOJI
    assert await messages_of(conversation) == [(1, "user", EMOJI), (2, "assistant", EMOJI)]
    assert (await Conversation.objects.aget()).title == EMOJI
    await sync_to_async(client.force_login)(conversation.owner)
    html = await sync_to_async(client.get)(reverse("conversation", args=[conversation.pk]))
    assert html.content.decode().count(EMOJI) >= 3


class Fields(HTMLParser):
    """The fields of the forms in a page, as a browser would send them unchanged."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.area = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name = given.get("name") or ""
        if tag == "input" and name and given.get("type") != "submit":
            self.values[name] = given.get("value") or ""
        if tag == "textarea":
            self.area, self.values[name] = name, ""

    def handle_data(self, data: str) -> None:
        if self.area:
            self.values[self.area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.values[self.area] = self.values[self.area].removeprefix("\n")
            self.area = ""


def test_pe_16_the_admin_opens_what_is_long_and_saving_it_unchanged_changes_nothing(
    client: Any, user: Any, conversation: Conversation
) -> None:
    """Forms with a thousand rows or some megabytes of text were refused with a bare 400."""
    fill(conversation, 600)
    made = fold(conversation, 1_188)
    Summary.objects.filter(pk=made.pk).update(text="archived line\n" * 220_000)
    Message.objects.filter(position=1_200).update(content="long " * 600_000)
    sign_in_admin(client, user)
    before = list(Summary.objects.values()), list(Message.objects.values())
    rows = {
        "conversation": conversation.pk,
        "summary": made.pk,
        "message": Message.objects.get(position=1_200).pk,
    }
    for name, pk in rows.items():
        url = reverse(f"admin:memory_{name}_change", args=[pk])
        page = client.get(url)
        assert page.status_code == 200, name
        fields = Fields(page.content.decode()).values
        assert len(fields) < 100, name
        saved = client.post(url, fields | {"_save": "Save"})
        assert saved.status_code in (200, 302, 403), (name, saved.status_code)
    assert (list(Summary.objects.values()), list(Message.objects.values())) == before
