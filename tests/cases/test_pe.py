"""Cases about what is stored (PE-*)."""

import asyncio
import re
import sqlite3
from html.parser import HTMLParser
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as configured
from django.db import OperationalError, connection
from django.urls import reverse
from django.utils import timezone

from memory import reading, versions
from memory.models import Conversation, Message, Summary, Turn
from tests.builders import history, reply, user
from tests.cases.raw import STOP, aassembled, assembled, piece, positions, store_history
from tests.chatapp.helpers import messages_of, say
from tests.chatapp.test_pages import fill, fold
from tests.chatapp.test_socket import Page
from tests.conftest import until

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
    admin = conversation.owner
    admin.is_staff = admin.is_superuser = True
    await admin.asave()
    await sync_to_async(client.force_login)(admin)

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


@pytest.mark.parametrize("bulk", [True, False])
def test_pe_03_the_order_is_that_of_positions_whatever_the_clock_says(
    bulk: bool, client: Any, user: Any, conversation: Conversation
) -> None:
    """Rows of one moment came back swapped, the answer before its question."""
    now = timezone.now()
    turn = Turn.objects.create(conversation=conversation, number=1, client_id="1", state="complete")
    call = [{"id": "c", "name": "find", "arguments": "{}"}]
    roles = ["user", "assistant", "tool", "tool", "assistant"]
    rows = [
        Message(
            conversation=conversation, turn=turn, position=position, role=role,
            content=f"word-{position}", tool_calls=call if position == 2 else [],
            tool_call_id="c" if role == "tool" else "", tokens=5, encoding="o200k_base",
            counts=role != "tool", created_at=now,
        )
        for position, role in enumerate(roles, 1)
    ]  # fmt: skip
    if bulk:
        Message.objects.bulk_create(rows[::-1])
    else:
        for row in rows[::-1]:
            row.save()
    Conversation.objects.filter(pk=conversation.pk).update(next_position=6, next_turn=2)
    user.is_staff = user.is_superuser = True
    user.save()
    client.force_login(user)
    for _ in range(20):
        listed = Message.objects.filter(conversation=conversation)
        assert [row.position for row in listed] == [1, 2, 3, 4, 5]
    made = assembled(conversation)
    assert positions(made) == [1, 2, 3, 5], "one result for one call"
    html = client.get(reverse("transcript", args=[conversation.pk])).content.decode()
    shown = re.findall(r'<article[^>]*data-position="(\d)"', html)
    assert shown == ["1", "2", "3", "4", "5"]
    listing = client.get(reverse("admin:memory_message_changelist")).context["cl"]
    assert [row.position for row in listing.result_list] == [1, 2, 3, 4, 5]


async def test_pe_07_eight_conversations_at_once_never_meet_a_locked_database(
    runner: Any, scripted: Any, make_conversation: Any, client: Any, user: Any
) -> None:
    """With the default journal and no patience a write failed as soon as somebody else read."""
    options = configured.DATABASES["default"]["OPTIONS"]
    if connection.vendor == "sqlite":
        assert options["timeout"] >= 5
        assert options["transaction_mode"] == "IMMEDIATE"
        mode = await sync_to_async(lambda: connection.cursor().execute("PRAGMA journal_mode"))()
        assert (await sync_to_async(mode.fetchone)())[0] == "wal"
    made = [await sync_to_async(make_conversation)() for _ in range(8)]
    scripted.replies, scripted.pause = ["x" * 20], 0.002
    await sync_to_async(client.force_login)(user)
    done = asyncio.Event()

    async def poll() -> int:
        looks = 0
        while not done.is_set():
            url = reverse("panel_context", args=[made[looks % 8].pk])
            response = await sync_to_async(client.get, thread_sensitive=False)(url)
            assert response.status_code == 200
            looks += 1
        return looks

    polling = asyncio.create_task(poll())
    talks = [say(runner, one, f"q{n}", f"m{n}") for n in range(2) for one in made]
    turns = await asyncio.gather(*talks[:8])
    turns += await asyncio.gather(*talks[8:])
    done.set()
    assert await polling > 0
    assert [turn.state for turn in turns] == ["complete"] * 16
    assert await Message.objects.acount() == 32


async def test_pe_07_no_transaction_is_open_while_the_model_is_asked(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """A write lock held during a model's answer stops everybody else for as long."""

    async def look(_body: Any) -> str:
        assert not await sync_to_async(lambda: connection.in_atomic_block)()
        name = connection.settings_dict["NAME"]
        if connection.vendor == "sqlite":
            other = sqlite3.connect(name, timeout=0.2)
            other.execute("BEGIN IMMEDIATE")  # raises if somebody else has the lock
            other.rollback()
            other.close()
        return "ok"

    scripted.replies = [look]
    assert (await say(runner, conversation, "hello")).state == "complete"


def chain(conversation: Conversation) -> list[Summary]:
    """Three versions, each made of the one before, over 12 turns."""
    fill(conversation, 12)
    made: list[Summary] = []
    for last in (6, 12, 18):
        draft = versions.Draft(
            "model", f"Up to {last}.", 1, last, last, 100, 8,
            parent_version=made[-1].version if made else None,
        )  # fmt: skip
        committed = versions.commit_summary(
            conversation_id=conversation.pk, draft=draft,
            revision=Conversation.objects.get(pk=conversation.pk).memory_revision,
        )  # fmt: skip
        assert committed is not None
        made.append(committed[0])
    return made


@pytest.mark.parametrize("position", [18, 19, 5])
def test_pe_09_a_message_that_is_gone_breaks_nothing(
    position: int, conversation: Conversation
) -> None:
    """The message that marks a summary's end was deleted, and the summary pointed at nothing."""
    chain(conversation)
    Message.objects.filter(position=position).delete()
    made = assembled(conversation)
    assert positions(made) == [one for one in range(19, 25) if one != position]
    assert made.context.summary is not None
    assert made.context.summary.last == 18


def test_pe_09_a_missing_link_of_the_chain_breaks_nothing(conversation: Conversation) -> None:
    """A version in the middle went, and the newest one's parent with it."""
    first, middle, last = chain(conversation)
    middle.delete()
    last.refresh_from_db()
    assert last.parent is None
    made = assembled(conversation)
    assert made.context.summary is not None
    assert made.context.summary.version == 3
    versions.undo(conversation_id=conversation.pk)
    again = assembled(conversation)
    assert again.context.summary is not None
    assert again.context.summary.version == first.version
    assert positions(again) == list(range(7, 25)), "nothing twice, nothing missing"


async def test_pe_09_a_replaced_message_does_not_reach_the_model_through_the_summary(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """What the user took back came back through the summary that had been made of it."""
    conversation = await sync_to_async(make_conversation)()
    await sync_to_async(fill)(conversation, 6)
    await say(runner, conversation, "my phone number is 555-0199")
    await sync_to_async(fold)(conversation, 14)
    await Summary.objects.filter(last_position=14).aupdate(text="They said 555-0199.")
    assert "555-0199" in str((await aassembled(conversation)).body)
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="e", text="never mind", replaces=7
    )
    await until(lambda: Turn.objects.filter(pk=turn.pk, state="complete").aexists())
    made = await aassembled(conversation)
    assert "555-0199" not in str(made.body)
    assert positions(made)[-2:] == [15, 16]


async def test_pe_11_a_failed_load_is_an_error_and_overwrites_nothing(
    runner: Any, conversation: Conversation, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed load was shown as an empty chat, and the next save made it one."""
    await sync_to_async(fill)(conversation, 3)
    before = await messages_of(conversation)
    load = reading.load

    def broken(**_more: Any) -> Any:
        raise OperationalError("the disk is away")

    client.raise_request_exception = False
    await sync_to_async(client.force_login)(conversation.owner)
    url = reverse("conversation", args=[conversation.pk])
    monkeypatch.setattr(reading, "load", broken)
    page = await sync_to_async(client.get)(url)
    assert page.status_code == 500
    turn = await say(runner, conversation, "hello?")
    assert (turn.state, turn.error_code) == ("failed", "internal")
    monkeypatch.setattr(reading, "load", load)
    assert (await messages_of(conversation))[:6] == before
    page = await sync_to_async(client.get)(url)
    assert page.status_code == 200
    assert "Something went wrong here" in page.content.decode()
    assert (await say(runner, conversation, "and now?")).state == "complete"
    assert [row[0] for row in await messages_of(conversation)] == list(range(1, 10))


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


@pytest.mark.parametrize("folded", [294, 290])
def test_pe_14_a_turn_reads_what_lies_after_the_summary_only(
    folded: int, make_conversation: Any, django_assert_max_num_queries: Any
) -> None:
    """The summary lived in an object made anew for each request, so each turn read everything."""
    conversation = make_conversation()
    fill(conversation, 150)
    fold(conversation, folded)
    with django_assert_max_num_queries(8):
        made = assembled(Conversation.objects.get(pk=conversation.pk))
    loaded = [one for members in made.context.prior for one in members.messages]
    assert len(loaded) == 300 - folded
    assert made.plan.action == "send", "nothing to summarise"


async def test_pe_14_the_second_turn_asks_for_no_summary(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """Cost and delay grew with every turn, although nothing had changed."""
    conversation = await sync_to_async(make_conversation)()
    await sync_to_async(store_history)(conversation, history(150, words=12))
    scripted.summaries = ["They went through many questions and answers."]
    await say(runner, conversation, "one more")
    asked = len(scripted.asked())
    assert asked >= 1
    await say(runner, conversation, "and another")
    assert len(scripted.asked()) == asked
    row = await Summary.objects.aget()
    assert (row.first_position, row.last_position) == (1, 294)


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
    user.is_staff = user.is_superuser = True
    user.save()
    client.force_login(user)
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


def test_pe_03_results_and_calls_keep_their_order_in_the_summarisers_input(
    conversation: Conversation,
) -> None:
    """What is folded is read in the same order as everything else."""
    rows = [one for n in range(8) for one in (user(f"q{n}"), reply(f"a{n}"))]
    store_history(conversation, rows)
    Message.objects.update(created_at=timezone.now())
    head = assembled(conversation).plan.head
    assert [members.first for members in head] == list(range(1, 11))
