"""What several tests of turns share."""

from typing import Any

from memory.models import Conversation, Message, Turn
from tests.conftest import until


async def say(runner: Any, conversation: Conversation, text: str, id_: str = "") -> Turn:
    """Start a turn and wait until it has ended."""
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk,
        model="",
        client_id=id_ or f"{await conversation.turns.acount()}",
        text=text,
    )
    ended = Turn.objects.filter(pk=turn.pk).exclude(state="running")
    await until(ended.aexists)
    return await Turn.objects.aget(pk=turn.pk)


async def messages_of(conversation: Conversation) -> list[tuple[int, str, str]]:
    """The active messages as (position, role, text)."""
    rows = Message.objects.filter(conversation=conversation, active=True).order_by("position")
    return [(row.position, row.role, row.content) async for row in rows]
