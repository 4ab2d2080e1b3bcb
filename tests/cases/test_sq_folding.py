"""Cases about summaries (SQ-*): what a fold takes, and what stays where none comes about."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from memory.models import Conversation, Message, Summary
from tests.builders import reply, user
from tests.cases.raw import aassembled, positions, store_history
from tests.chatapp.helpers import LONG, chat, say
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


async def test_sq_06_two_clicks_with_nothing_to_fold_change_nothing(
    runner: Any, talkative: Any, conversation: Conversation, async_client: Any
) -> None:
    """An empty selection wrote a fixed skeleton over the real summary, without asking a model."""
    await chat(runner, conversation, 7)
    talkative.summaries = ["skeleton"]
    await async_client.aforce_login(conversation.owner)
    url = reverse("memory_compact", args=[conversation.pk])
    before = (await aassembled(conversation)).body
    asked = len(talkative.asked())
    answers = await asyncio.gather(async_client.post(url), async_client.post(url))
    assert [one.status_code for one in answers] == [302, 302]
    assert len(talkative.asked()) <= asked + 1, "at most the turn that came after the fold"
    first = await Summary.objects.aearliest("version")
    assert first.text == "The earlier messages in short."
    for _ in range(2):
        asked, rows = len(talkative.asked()), await Summary.objects.acount()
        body = (await aassembled(conversation)).body
        await asyncio.gather(async_client.post(url), async_client.post(url))
        assert (len(talkative.asked()), await Summary.objects.acount()) == (asked, rows)
        assert (await aassembled(conversation)).body == body
    assert before is not None
    chain = [row async for row in Summary.objects.select_related("parent").order_by("version")]
    assert [row.parent for row in chain] == [None, *chain[:-1]]


async def test_sq_06_the_button_says_why_it_folds_nothing(
    runner: Any, talkative: Any, conversation: Conversation, async_client: Any
) -> None:
    """Nobody could tell a selection that was empty from a compaction that had worked."""
    await chat(runner, conversation, 6)
    await async_client.aforce_login(conversation.owner)
    url = reverse("memory_compact", args=[conversation.pk])
    reason = "all that is not folded yet is within the last 6 messages"
    said = []
    for _ in range(2):
        answer = await async_client.post(url, headers={"hx-request": "true"})
        said.append(reason in answer.content.decode())
    assert said == [False, True]
    assert await Summary.objects.acount() == 1


async def test_sq_18_what_lies_after_the_cut_stays_verbatim(
    runner: Any, talkative: Any, make_conversation: Any, async_client: Any
) -> None:
    """Summarising up to a cut threw away the messages behind it as well."""
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "hybrid", "max_messages": 20, "keep_messages": 8}, window=8_000
    )
    await chat(runner, conversation, 10)
    assert await Message.objects.acount() == 20
    await async_client.aforce_login(conversation.owner)
    await async_client.post(reverse("memory_compact", args=[conversation.pk]))
    row = await Summary.objects.aget()
    assert (row.first_position, row.last_position, row.messages_folded) == (1, 12, 12)
    assert positions(await aassembled(conversation)) == list(range(13, 21))


async def test_sq_19_a_refused_compaction_deletes_nothing_and_can_be_tried_again(
    runner: Any, talkative: Any, conversation: Conversation, async_client: Any
) -> None:
    """The conversation was cleared before the model answered; the answer was an error."""
    await chat(runner, conversation, 6)
    talkative.summaries = [400]
    await async_client.aforce_login(conversation.owner)
    url = reverse("memory_compact", args=[conversation.pk])
    for _ in range(2):
        assert (await async_client.post(url)).status_code == 302
        assert await Message.objects.filter(active=True).acount() == 12
        page = await async_client.get(reverse("transcript", args=[conversation.pk]))
        assert all(f"question {number}:" in page.content.decode() for number in range(1, 7))
        made = await aassembled(conversation)
        assert made.body is not None
        assert "question 1:" in str(made.body)
        fresh = await Conversation.objects.aget(pk=conversation.pk)
        assert fresh.compaction_claim is None
    assert (await say(runner, conversation, "go on")).state == "complete"


async def test_sq_19_over_the_socket_the_turn_is_answered_too(
    page: Page, talkative: Any, conversation: Conversation
) -> None:
    """An automatic compaction that fails is not the end of the turn that asked for it."""
    talkative.summaries = [400]
    rows = [one for n in range(6) for one in (user(f"question {n} " + 9 * LONG), reply(LONG))]
    await sync_to_async(store_history)(conversation, rows)
    await page.send(type="message.send", id="m1", text="and now?")
    assert (await page.until("memory.changed"))["event"] == "compaction"
    assert (await page.until("turn.ended"))["state"] == "complete"
    assert await Message.objects.acount() == 14
