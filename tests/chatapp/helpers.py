"""What several tests share: conversations that are talked, stored, folded and looked at."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from django.test import Client
from django.urls import reverse

from chatapp.forms import SettingsForm
from memory import versions
from memory.models import Conversation, Message, Summary, Turn

ROOT = Path(__file__).parents[2]
HTMX: Any = {"headers": {"HX-Request": "true"}}
LONG = "an answer that is long enough for a summary of it to be shorter than what it stands for"


async def say(runner: Any, conversation: Conversation, text: str, id_: str = "") -> Turn:
    """Start a turn and wait until it has ended."""
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk,
        model="",
        client_id=id_ or f"{await conversation.turns.acount()}",
        text=text,
    )
    while runner.partial_of(turn.pk) is not None:  # noqa: ASYNC110  (it is there until all is stored)
        await asyncio.sleep(0.001)
    return await Turn.objects.aget(pk=turn.pk)


async def chat(runner: Any, conversation: Conversation, turns: int) -> None:
    """So many turns with questions that are worth folding, each complete."""
    for _ in range(turns):
        number = await conversation.turns.acount() + 1
        turn = await say(runner, conversation, f"question {number}: " + "word " * 15)
        assert turn.state == "complete"


async def messages_of(conversation: Conversation) -> list[tuple[int, str, str]]:
    """The active messages as (position, role, text)."""
    rows = Message.objects.filter(conversation=conversation, active=True).order_by("position")
    return [(row.position, row.role, row.content) async for row in rows]


def fill(conversation: Conversation, turns: int) -> None:
    """`turns` finished turns of a question and an answer."""
    rows = Turn.objects.bulk_create(
        Turn(conversation=conversation, number=number, client_id=f"t{number}", state="complete")
        for number in range(1, turns + 1)
    )
    Message.objects.bulk_create(
        Message(
            conversation=conversation,
            turn=turn,
            position=2 * index + offset,
            role=role,
            content=f"{role} {index + 1}",
            tokens=9,
            encoding="o200k_base",
            counts=True,
        )
        for index, turn in enumerate(rows)
        for offset, role in ((1, "user"), (2, "assistant"))
    )
    conversation.next_position, conversation.next_turn = 2 * turns + 1, turns + 1
    conversation.save()


def fold(conversation: Conversation, last: int) -> Summary:
    """A summary of everything up to a position, committed as the engine does."""
    conversation.refresh_from_db()
    draft = versions.Draft("model", "They talked.", 1, last, last, 9 * last, 8)
    committed = versions.commit_summary(
        conversation_id=conversation.pk, revision=conversation.memory_revision, draft=draft
    )
    assert committed is not None
    return committed[0]


def get(client: Client, conversation: Conversation, name: str, **query: Any) -> str:
    """A page or fragment of a conversation, by the name of its address."""
    response = client.get(reverse(name, args=[conversation.pk]), query)
    assert response.status_code == 200
    return response.content.decode()


def values(conversation: Conversation, **changes: Any) -> dict[str, str | list[str]]:
    """What the form of the Settings tab sends if only `changes` were made in it."""
    form = SettingsForm(conversation)
    sent = {name: form[name].value() for name in form.fields} | changes
    empty = {name: "" if value is None else value for name, value in sent.items()}
    return {
        f"settings-{name}": value if isinstance(value, list) else str(value)
        for name, value in empty.items()
    }


def save(client: Client, conversation: Conversation, **changes: Any) -> Any:
    """Save the settings with `changes`, as the tab does."""
    url = reverse("panel_settings", args=[conversation.pk])
    response = client.post(url, values(conversation, **changes), **HTMX)
    conversation.refresh_from_db()
    return response


def sign_in_admin(client: Client, user: Any) -> None:
    """Sign this user in as somebody who may do everything in the admin."""
    user.is_staff = user.is_superuser = True
    user.save()
    client.force_login(user)


def copy_catalogue(folder: Path) -> Path:
    """A copy of the Chinese catalogue in a folder of locales; its file."""
    file = folder / "zh_Hans/LC_MESSAGES/django.po"
    file.parent.mkdir(parents=True)
    shutil.copy(ROOT / "locale/zh_Hans/LC_MESSAGES/django.po", file)
    return file
