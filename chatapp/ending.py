"""How a turn ends: its end is stored, whatever the database is doing, and what follows is done."""

import asyncio
import logging
import time
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DataError, Error, IntegrityError

from chatapp import agent
from chatapp.events import MemoryChanged, TitleChanged, TurnEnded
from chatapp.live import Live
from chatapp.provider import Provider, target_for, target_of
from memory import compaction, service, store
from memory.core.messages import Message
from memory.encodings import counter_for
from memory.models import TurnState
from memory.summarizer import Ladder

logger = logging.getLogger(__name__)

# Seconds: the first pause before an end is stored again, which doubles; the longest; all together.
PAUSE, PAUSE_MOST, PATIENCE = 0.5, 8.0, 60.0


async def store_end(live: Live, state: TurnState, code: str, detail: str) -> TurnEnded | None:
    """Store how a turn ended; what pages are to be told, None where its conversation was deleted.

    Where somebody else has ended it, they are told how. While the database fails it is tried again,
    for a minute; what it will never take is left out, if that is the detail. Raises what is left.
    """
    counter = counter_for(target_for(live.conversation.model).model)
    reply = None
    if live.text.strip():
        reply = await live.written(Message("assistant", live.text), counter)
    end = {
        "turn_id": live.turn.pk,
        "state": state,
        "reply": reply,
        "encoding": counter.name,
        "error_code": code,
        "error_detail": detail,
        "thoughts": live.thoughts,
    }
    pause, latest = PAUSE, time.monotonic() + PATIENCE
    while True:
        try:
            stored, length = await database_sync_to_async(_end)(end, len(live.text))
        except ObjectDoesNotExist:
            logger.info("turn %s was deleted while it ran", live.turn.pk)
            return None
        except Exception as error:  # whatever it is, the reply must not be lost for it
            passing = isinstance(error, Error) and not isinstance(error, DataError | IntegrityError)
            if passing and time.monotonic() + pause < latest:
                logger.warning("the end of turn %s is stored again", live.turn.pk, exc_info=True)
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_MOST)
            elif end["error_detail"]:
                logger.warning("turn %s ends without its detail", live.turn.pk, exc_info=True)
                end["error_detail"] = ""
            else:
                raise
        else:
            return TurnEnded(live.turn.number, stored, length, code if stored == state else "")


def _end(end: dict[str, Any], length: int) -> tuple[str, int]:
    """Store the end; the turn's state, and its reply's length, as they are stored now."""
    if store.finish_turn(**end):
        return end["state"], length
    partial, state = store.reply_of(turn_id=end["turn_id"])
    return state, len(partial.text)


async def follow(live: Live, provider: Provider) -> None:
    """Do what follows a complete turn: one thing even where the other fails."""
    for work in (_entitle, _compact):
        try:
            await work(live, provider)
        except Exception:  # they have nothing to do with each other
            logger.exception("what follows turn %s failed", live.turn.pk)


async def _entitle(live: Live, provider: Provider) -> None:
    """Name the conversation after its first exchange."""
    if live.turn.number != 1 or not settings.AUTO_TITLE:
        return
    conversation, question = live.conversation, live.question
    title = await agent.title_for(conversation, provider, question, live.text)
    if title and await database_sync_to_async(store.retitle)(
        conversation_id=live.conversation_id, question=question, title=title
    ):
        await live.tell(TitleChanged(title))


async def _compact(live: Live, provider: Provider) -> None:
    """Compact in the background, if the policy says so; else try once more to replace an archive
    by a summary."""
    target = target_of(live.conversation)
    assembled = await database_sync_to_async(service.assemble)(
        conversation_id=live.conversation_id, target=target
    )
    if service.wants_compaction(assembled, before_request=False):
        outcome = await agent.compact(live.conversation, provider, Ladder())
    elif compaction.wants_renewal(assembled):
        outcome = await compaction.renew(
            conversation_id=live.conversation_id,
            target=target,
            summariser=agent.summariser_for(live.conversation, provider, Ladder()),
        )
    else:
        return
    await tell_outcome(live, outcome)


async def tell_outcome(live: Live, outcome: compaction.Outcome) -> None:
    """Tell what a compaction changed, if it changed anything."""
    if outcome.event:
        await live.tell(MemoryChanged(outcome.event.revision, outcome.event.kind))
