"""What can be done with the last turn, and the fork at any message."""

from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from chatapp import frames
from chatapp.tools.registry import ToolContext
from chatapp.tools.shop import LEDGER
from memory import versions
from memory.models import Conversation, Message, Turn
from tests.chatapp.helpers import fill, fold, get, messages_of, say
from tests.conftest import until
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


async def test_an_edited_message_replaces_the_last_turn(
    page: Page, runner: Any, scripted: Any, conversation: Conversation
) -> None:
    await say(runner, conversation, "first")
    await say(runner, conversation, "helo")
    await page.send(type="turn.edit", id="e1", turn=2, text="hello")
    started = await page.until("turn.started")
    while started["id"] != "e1":
        started = await page.until("turn.started")
    assert started["turn"] == 3
    while (await page.until("turn.ended"))["turn"] != 3:  # that of the turn before may come late
        pass
    assert [text for _position, _role, text in await messages_of(conversation)] == [
        "first",
        "ok",
        "hello",
        "ok",
    ]
    assert [one["content"] for one in scripted.streamed()[-1]["messages"][1:]] == [
        "first",
        "ok",
        "hello",
    ]
    old = await Turn.objects.aget(number=2)
    assert old.active is False
    assert await Message.objects.filter(turn=old).acount() == 2
    # The same frame again, its acknowledgement lost: the same turn.
    await page.send(type="turn.edit", id="e1", turn=2, text="hello")
    assert (await page.until("turn.started"))["turn"] == 3
    assert await Turn.objects.acount() == 3


async def test_only_the_last_turn_can_be_edited(
    page: Page, runner: Any, conversation: Conversation
) -> None:
    await say(runner, conversation, "first")
    await say(runner, conversation, "second")
    await page.send(type="turn.edit", id="e1", turn=1, text="other")
    refused = await page.until("error")
    assert (refused["code"], refused["id"]) == ("not-last", "e1")
    assert len(await messages_of(conversation)) == 4


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type":"turn.edit","id":"e","turn":1}', "bad-field"),
        ('{"type":"turn.edit","id":"e","turn":1,"text":" \\n"}', "empty"),
        ('{"type":"turn.edit","id":"e","turn":0,"text":"x"}', "bad-field"),
        ('{"type":"turn.edit","id":"","turn":1,"text":"x"}', "bad-field"),
    ],
)
def test_a_malformed_edit_is_refused(frame: str, code: str) -> None:
    with pytest.raises(frames.BadFrame) as caught:
        frames.parse(frame)
    assert caught.value.refusal.code == code


async def test_without_scripts_a_form_edits_and_another_regenerates(
    runner: Any, scripted: Any, user: Any, conversation: Conversation
) -> None:
    client = AsyncClient()
    await client.aforce_login(user)
    await say(runner, conversation, "helo")
    edit = reverse("turn_edit", args=[conversation.pk, 1])
    assert (await client.post(edit, {"text": " "})).status_code == 400
    assert (await client.post(edit, {"text": "hello"})).status_code == 302
    await until(Turn.objects.filter(number=2, state="complete").aexists)
    assert (await client.post(edit, {"text": "again"})).status_code == 409
    assert [row[2] for row in await messages_of(conversation)] == ["hello", "ok"]
    retry = reverse("turn_retry", args=[conversation.pk, 2])
    assert (await client.post(retry)).status_code == 302
    await until(Turn.objects.filter(number=3, state="complete").aexists)
    html = (await client.get(reverse("transcript", args=[conversation.pk]))).text
    assert "2 earlier versions, kept" in html


def test_the_last_turn_offers_what_fits_its_state(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 2)
    html = get(client, conversation, "transcript")
    assert html.count("Regenerate") == 1
    assert html.count("data-edit") == 1
    assert "Continue" not in html
    Turn.objects.filter(number=2).update(state="length")
    html = get(client, conversation, "transcript")
    assert "Regenerate" not in html
    assert 'name="text" value="Please continue."' in html
    assert html.count("Fork from here") == 4


def test_a_fork_has_everything_up_to_its_message(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 4)
    versions.reset(conversation_id=conversation.pk)
    conversation.refresh_from_db()
    start = conversation.context_start
    fill_more(conversation)
    response = client.post(reverse("conversation_fork", args=[conversation.pk, 9]))
    copy = Conversation.objects.exclude(pk=conversation.pk).get()
    assert response["Location"] == reverse("conversation", args=[copy.pk])
    assert copy.title.endswith("(fork)")
    assert copy.context_start == start
    rows = list(copy.messages.order_by("position").values_list("position", "content"))
    assert rows[0] == (1, "user 1")
    assert rows[-1] == (9, "later")
    assert len(rows) == 9
    assert copy.next_position == 10
    before = client.post(reverse("conversation_fork", args=[conversation.pk, 3]))
    assert before.status_code == 302
    assert client.post(reverse("conversation_fork", args=[conversation.pk, 77])).status_code == 404
    assert conversation.messages.count() == 10


def test_a_forks_shop_knows_what_its_messages_tell(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 4)
    with LEDGER.open(ToolContext(conversation.pk, "en", timezone.now)) as book:
        order = book.order("88231")
        assert order is not None
        refund = book.refund(order, "broken", book.opened)
    conversation.messages.filter(position=6).update(content=f"Refund number {refund.number}.")
    for position, refunds in ((4, {}), (8, {"88231": refund})):
        address = reverse("conversation_fork", args=[conversation.pk, position])
        copy = UUID(client.post(address)["Location"].split("/")[2])
        assert LEDGER.books[copy].refunds == refunds


def fill_more(conversation: Conversation) -> None:
    """One more turn, at the positions 9 and 10."""
    turn = Turn.objects.create(
        conversation=conversation, number=5, client_id="t5", state="complete"
    )
    for position, role in ((9, "user"), (10, "assistant")):
        Message.objects.create(
            conversation=conversation, turn=turn, position=position, role=role, content="later",
            tokens=6, encoding="o200k_base", counts=True,
        )  # fmt: skip
    Conversation.objects.filter(pk=conversation.pk).update(next_position=11, next_turn=6)
    conversation.refresh_from_db()


async def test_a_fork_before_the_folds_end_has_no_summary_and_one_behind_it_has(
    user: Any, conversation: Conversation
) -> None:
    client = AsyncClient()
    await client.aforce_login(user)
    await sync_to_async(fill)(conversation, 6)
    await sync_to_async(fold)(conversation, 6)
    for position, kept in ((4, 0), (6, 1), (12, 1)):
        response = await client.post(reverse("conversation_fork", args=[conversation.pk, position]))
        copy = await Conversation.objects.aget(pk=response["Location"].split("/")[2])
        assert await copy.summaries.acount() == kept, position
