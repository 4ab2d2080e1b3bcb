"""Cases about security (SE-*), as far as the server's own output shows them."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from chatapp.markdown import render
from memory.models import Conversation, MemoryEvent, Message, Summary, Turn
from tests.chatapp.helpers import fill, fold

ROOT = Path(__file__).parents[2]
PAYLOADS = ["<svg onload=window.__p=1>", '"><script>window.__p=1</script>']


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_se_10_what_was_stored_is_escaped_wherever_it_is_shown(
    payload: str, client: Any, user: Any, conversation: Conversation
) -> None:
    """Stored text was trusted because it had come through the application's own door."""
    user.username = payload
    user.is_staff = user.is_superuser = True
    user.save()
    fill(conversation, 8)
    made = fold(conversation, 10)
    Summary.objects.filter(pk=made.pk).update(text=payload, model=payload, author=user)
    calls = [{"id": payload, "name": payload, "arguments": payload}]
    Message.objects.filter(position=14).update(tool_calls=calls, counts=False)
    Message.objects.filter(position=15).update(
        role="tool", content=payload, tool_call_id=payload, name=payload, counts=False
    )
    Message.objects.filter(position__in=[13, 16]).update(content=payload)
    Turn.objects.filter(number=8).update(state="failed", error_code="server", error_detail=payload)
    Conversation.objects.filter(pk=conversation.pk).update(
        title=payload, model=payload, system_prompt=payload
    )
    client.force_login(user)
    args = [conversation.pk]
    urls = [
        *(reverse(name, args=args) for name in (
            "conversation", "transcript", "panel_context", "panel_summary", "panel_settings",
            "conversation_delete",
        )),
        reverse("conversation", args=args) + "?tab=summary",
        reverse("conversation", args=args) + "?tab=settings",
        reverse("conversation_list"),
        reverse("admin:index"),
    ]  # fmt: skip
    pks = {
        "conversation": conversation.pk,
        "message": Message.objects.get(position=15).pk,
        "summary": made.pk,
        "memoryevent": MemoryEvent.objects.earliest("id").pk,
    }
    for name, pk in pks.items():
        urls.append(reverse(f"admin:memory_{name}_changelist"))
        urls.append(reverse(f"admin:memory_{name}_change", args=[pk]))
    shown = 0
    for url in urls:
        response = client.get(url)
        assert response.status_code == 200, url
        html = response.content.decode()
        assert "<svg onload" not in html, url
        assert "<script>window" not in html, url
        shown += "window.__p=1" in html
    assert shown > 10
    data = client.get(reverse("context_json", args=args))
    assert data["Content-Type"] == "application/json"
    assert data["X-Content-Type-Options"] == "nosniff"


def test_se_10_markup_is_marked_safe_in_one_place() -> None:
    """Each shortcut around the escaping is a place that has to be looked at again and again."""
    found = set()
    for folder, pattern in (("chatapp", "*.py"), ("memory", "*.py"), ("templates", "*.html")):
        for file in (ROOT / folder).rglob(pattern):
            if re.search(r"mark_safe\(|\|\s*safe\b|autoescape off|\|\s*safeseq", file.read_text()):
                found.add(str(file.relative_to(ROOT)))
    assert found <= {"chatapp/markdown.py"}


HALVES = "<img src=x onerror=window.__p=1>"


@pytest.mark.parametrize("end", range(1, len(HALVES) + 1))
def test_se_02_half_a_tag_is_text_at_every_length(end: int) -> None:
    """Escaped text was read back from the page and given to a converter, tag by growing tag."""
    for text in (HALVES[:end], "&lt;" + HALVES[1:end]):
        html = render(text)
        assert set(re.findall(r"<(\w+)", html)) <= {"p"}
