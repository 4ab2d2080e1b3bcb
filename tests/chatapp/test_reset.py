"""A reset where nothing was said since the context began: it does nothing, and says so."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.urls import reverse

from memory.models import Conversation, MemoryEvent
from tests.chatapp.helpers import fill

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = "There is nothing to reset: nothing was said since the context began."


async def reset(user: Any, conversation: Conversation) -> tuple[str, str]:
    """What the panel answers to the button, and the transcript after it."""
    client = AsyncClient()
    await client.aforce_login(user)
    url = reverse("memory_reset", args=[conversation.pk])
    panel = (await client.post(url, headers={"hx-request": "true"})).text
    page = await client.get(reverse("conversation", args=[conversation.pk]))
    return panel, page.text


async def test_an_empty_conversation_keeps_its_welcome(
    runner: Any, user: Any, conversation: Conversation
) -> None:
    panel, page = await reset(user, conversation)
    assert f'data-note="{NOTHING}"' in panel
    assert "Nothing has been said yet" in page
    assert "reset here" not in page
    assert not await MemoryEvent.objects.aexists()


async def test_a_second_reset_draws_no_second_line(
    runner: Any, user: Any, conversation: Conversation
) -> None:
    await sync_to_async(fill)(conversation, 2)
    panel, page = await reset(user, conversation)
    assert "data-note" not in panel
    assert page.count("reset here") == 1
    panel, page = await reset(user, conversation)
    assert f'data-note="{NOTHING}"' in panel
    assert page.count("reset here") == 1
    assert await MemoryEvent.objects.acount() == 1
    await sync_to_async(conversation.refresh_from_db)()
    assert conversation.context_start == 5
