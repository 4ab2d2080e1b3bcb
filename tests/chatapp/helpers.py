"""What several tests of turns share."""

import asyncio
from typing import Any

from memory.models import Conversation, Message, Turn


async def say(runner: Any, conversation: Conversation, text: str, id_: str = "") -> Turn:
    """Start a turn and wait until it has ended."""
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk,
        model="",
        client_id=id_ or f"{await conversation.turns.acount()}",
        text=text,
    )
    while runner.text_of(turn.pk) is not None:  # noqa: ASYNC110  (it is there until all is stored)
        await asyncio.sleep(0.001)
    return await Turn.objects.aget(pk=turn.pk)


async def messages_of(conversation: Conversation) -> list[tuple[int, str, str]]:
    """The active messages as (position, role, text)."""
    rows = Message.objects.filter(conversation=conversation, active=True).order_by("position")
    return [(row.position, row.role, row.content) async for row in rows]
