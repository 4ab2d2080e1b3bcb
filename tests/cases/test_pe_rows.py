"""Cases about what is stored (PE-*): the order of rows, and what a summary has to do with them."""

import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse
from django.utils import timezone

from memory import versions
from memory.models import Conversation, Message, Summary, Turn
from tests.builders import history, reply, user
from tests.cases.raw import aassembled, assembled, positions, store_history
from tests.chatapp.helpers import fill, fold, say, sign_in_admin
from tests.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


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
    sign_in_admin(client, user)
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


def test_pe_03_results_and_calls_keep_their_order_in_the_summarisers_input(
    conversation: Conversation,
) -> None:
    """What is folded is read in the same order as everything else."""
    rows = [one for n in range(8) for one in (user(f"q{n}"), reply(f"a{n}"))]
    store_history(conversation, rows)
    Message.objects.update(created_at=timezone.now())
    head = assembled(conversation).plan.head
    assert [members.first for members in head] == list(range(1, 11))


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
