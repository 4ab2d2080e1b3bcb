"""The admin: a look, and repair by new versions."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from chatapp import admin as admins
from memory.models import Conversation, MemoryEvent, Summary
from tests.chatapp.helpers import fill, fold

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(user: Any) -> Any:
    user.is_staff = True
    user.save()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="memory"))
    return user


@pytest.fixture
def summary(conversation: Conversation) -> Summary:
    fill(conversation, 8)
    return fold(conversation, 6)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[MemoryEvent]:
    """The events that open pages were told of."""
    events: list[MemoryEvent] = []
    monkeypatch.setattr(admins, "tell", events.append)
    return events


def edit(client: Client, summary: Summary, text: str) -> Any:
    url = reverse("admin:memory_summary_change", args=[summary.pk])
    return client.post(url, {"text": text}, follow=True)


def test_an_edited_text_is_a_new_version_and_the_row_stays(
    client: Client, staff: Any, summary: Summary, told: list[MemoryEvent]
) -> None:
    client.force_login(staff)
    page = edit(client, summary, "They talked about <b>tea</b>.\r\nA lot.")
    assert page.status_code == 200
    assert "<b>tea" not in page.content.decode()
    old, new = Summary.objects.order_by("version")
    assert old.text == "They talked."
    assert new.text == "They talked about <b>tea</b>.\nA lot."
    assert (new.kind, new.parent, new.author) == ("human", old, staff)
    assert (new.first_position, new.last_position) == (1, 6)
    assert new.conversation.active_summary() == new
    assert [event.kind for event in told] == ["edit"]
    assert "<ins>" in page.content.decode()


def test_an_unchanged_save_changes_nothing(
    client: Client, staff: Any, summary: Summary, told: list[MemoryEvent]
) -> None:
    client.force_login(staff)
    assert edit(client, summary, summary.text).status_code == 200
    assert Summary.objects.count() == 1
    assert told == []


@pytest.mark.parametrize(
    ("text", "words"),
    [(" \n ", "required"), ("\x00\u200b", "empty"), ("word " * 5_000, "too long"),
     ("x" * 3_000_000, "too long")],
)  # fmt: skip
def test_a_text_that_cannot_be_the_summary_is_refused_at_its_field(
    text: str, words: str, client: Client, staff: Any, summary: Summary
) -> None:
    client.force_login(staff)
    page = edit(client, summary, text)
    assert page.status_code == 200
    assert words in page.content.decode()
    assert Summary.objects.count() == 1


def test_an_older_version_can_be_made_active_again_and_that_be_undone(
    client: Client, staff: Any, summary: Summary, told: list[MemoryEvent]
) -> None:
    client.force_login(staff)
    newer = fold(summary.conversation, 10)
    listed = reverse("admin:memory_summary_changelist")
    client.post(listed, {"action": "activate", "_selected_action": [summary.pk]})
    active = summary.conversation.active_summary()
    assert active is not None
    assert (active.version, active.last_position, active.text) == (3, 6, summary.text)
    client.post(
        reverse("admin:memory_conversation_changelist"),
        {"action": "undo_last_change", "_selected_action": [str(summary.conversation_id)]},
    )
    assert summary.conversation.active_summary() == newer
    assert [event.kind for event in told] == ["restore", "undo"]


def test_lists_and_pages_show_what_is_needed_to_judge(
    client: Client, staff: Any, summary: Summary
) -> None:
    client.force_login(staff)
    fold(summary.conversation, 10)
    listed = client.get(reverse("admin:memory_summary_changelist")).content.decode()
    for words in ("1–6", "1–10", "active", "older", "15%", str(summary.conversation_id)):
        assert words in listed, words
    page = client.get(reverse("admin:memory_summary_change", args=[summary.pk])).content.decode()
    assert "position__lte=6" in page
    sources = reverse("admin:memory_message_changelist")
    query = {
        "conversation__id__exact": summary.conversation_id,
        "position__gte": 1,
        "position__lte": 6,
    }
    response = client.get(sources, query)
    assert response.status_code == 200
    assert "6 messages" in response.content.decode()
    for name in ("conversation", "memoryevent"):
        assert client.get(reverse(f"admin:memory_{name}_changelist")).status_code == 200


def test_staff_sees_its_own_conversations_only_and_adds_or_deletes_nothing(
    client: Client, summary: Summary, other_user: Any
) -> None:
    other_user.is_staff = True
    other_user.save()
    other_user.user_permissions.set(Permission.objects.filter(content_type__app_label="memory"))
    client.force_login(other_user)
    for name in ("conversation", "message", "summary", "memoryevent"):
        listed = client.get(reverse(f"admin:memory_{name}_changelist")).content.decode()
        assert str(summary.conversation_id) not in listed
        assert client.get(reverse(f"admin:memory_{name}_add")).status_code == 403
    edit(client, summary, "mine now")
    client.post(reverse("admin:memory_summary_delete", args=[summary.pk]), {"post": "yes"})
    assert Summary.objects.get().text == "They talked."
