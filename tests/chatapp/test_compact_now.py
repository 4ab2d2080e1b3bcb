"""The button "Compact now" where there is nothing to fold: why is said, and nothing changes."""

import html
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.urls import reverse

from chatapp.words import nothing_folded
from memory.compaction import Outcome
from memory.core.presets import policy_from
from memory.models import Conversation, MemoryEvent, Summary
from tests.chatapp.helpers import LONG, chat, fill, fold

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"hx-request": "true"}
EMPTY = "Nothing was folded: the context holds no messages before the current turn."
KEPT = (
    "Nothing was folded: all that is not folded yet is within the last 6 messages, which this "
    "policy keeps verbatim."
)


@pytest.fixture
async def owner(user: Any) -> AsyncClient:
    """The browser of the conversation's owner."""
    client = AsyncClient()
    await client.aforce_login(user)
    return client


async def press(client: AsyncClient, conversation: Conversation, **headers: str) -> Any:
    url = reverse("memory_compact", args=[conversation.pk])
    return await client.post(url, headers=headers)


def note_of(page: str) -> str:
    """What a fragment gives to say beside the buttons."""
    found = re.search(r'data-note="([^"]*)"', page)
    return html.unescape(found[1]) if found else ""


@pytest.mark.parametrize(
    ("preset", "turns", "words"),
    [
        ("full", 8, "Nothing was folded: this policy sends everything and never compacts."),
        ("window", 8, "Nothing was folded: this policy leaves older messages out and never folds "
                      "them."),
        ("window", 2, "Nothing was folded: this policy leaves older messages out and never folds "
                      "them."),
        ("hybrid", 0, EMPTY),
        ("hybrid", 3, KEPT),
    ],
)  # fmt: skip
async def test_the_reason_is_said_and_nothing_changes(
    preset: str, turns: int, words: str, runner: Any, scripted: Any, make_conversation: Any,
    owner: AsyncClient,
) -> None:  # fmt: skip
    conversation = await sync_to_async(make_conversation)(policy={"preset": preset})
    await sync_to_async(fill)(conversation, turns)
    response = await press(owner, conversation, **HTMX)
    assert response.status_code == 200
    assert note_of(response.text) == words
    assert scripted.bodies == []
    assert not await Summary.objects.aexists()
    assert not await MemoryEvent.objects.aexists()


async def test_what_is_folded_already_counts_neither_as_kept_nor_as_waiting(
    runner: Any, make_conversation: Any, owner: AsyncClient
) -> None:
    conversation = await sync_to_async(make_conversation)()
    await sync_to_async(fill)(conversation, 6)
    await sync_to_async(fold)(conversation, 6)
    assert note_of((await press(owner, conversation, **HTMX)).text) == KEPT
    await sync_to_async(fold)(conversation, 12)
    assert note_of((await press(owner, conversation, **HTMX)).text) == EMPTY


async def test_a_fold_says_nothing_beside_the_buttons(
    runner: Any, scripted: Any, conversation: Conversation, owner: AsyncClient
) -> None:
    scripted.replies = [LONG]
    await chat(runner, conversation, 5)
    response = await press(owner, conversation, **HTMX)
    assert await Summary.objects.acount() == 1
    assert note_of(response.text) == ""


async def test_without_scripts_the_next_page_says_it_once(
    runner: Any, conversation: Conversation, owner: AsyncClient
) -> None:
    response = await press(owner, conversation)
    assert response.status_code == 302
    notes = []
    for _ in range(2):
        page = (await owner.get(response["Location"])).text
        found = re.search(r'id="panel-note">([^<]*)</p>', page)
        assert found is not None
        notes.append(found[1].strip())
    assert notes == [EMPTY, ""]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome("superseded", failures=("timeout",)),
         "Nothing was folded: the memory changed meanwhile. Try again."),
        (Outcome("joined", failures=("out-of-time",)),
         "Another compaction is still running; its result will be shown here."),
        (Outcome("joined"), ""),
        (Outcome("failed", MemoryEvent(), ("out-of-time",)), ""),
        (Outcome("committed", MemoryEvent()), ""),
    ],
)  # fmt: skip
def test_only_an_outcome_without_an_event_is_explained(outcome: Outcome, words: str) -> None:
    assert nothing_folded(outcome, policy_from({})) == words


def test_a_policy_that_keeps_by_tokens_names_no_number_of_messages() -> None:
    policy = policy_from({"max_messages": None, "keep_messages": None})
    words = nothing_folded(Outcome("nothing", reason="within-kept"), policy)
    assert words == "Nothing was folded: this policy keeps all that is left verbatim."
