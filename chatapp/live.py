"""A turn that runs in this process: its reply so far, and how pages and rows keep up with it."""

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import DatabaseError

from chatapp.events import Event, TurnDelta, TurnStatus, TurnTick, broadcast
from memory import store
from memory.models import Conversation, Turn

logger = logging.getLogger(__name__)

# Seconds: between two frames of text; between two saves of the reply; between two signs of life.
FLUSH, SAVE, STATUS = 0.04, 1.0, 2.0


@dataclass(eq=False)
class Live:
    """A turn that runs in this process. `question` is what was asked (empty in a
    retry), `text` the reply so far, `told` how many of its code
    points were broadcast; times are those of the monotonic clock."""

    turn: Turn
    question: str = ""
    text: str = ""
    told: int = 0
    phase: str = "waiting"
    since: float = field(default_factory=time.monotonic)
    begun: bool = False
    stopping: bool = False
    done: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    conversation: Conversation = field(init=False)

    def __post_init__(self) -> None:
        # Whoever has the same turn may refresh it, and it would forget its conversation.
        self.conversation = self.turn.conversation

    @property
    def conversation_id(self) -> UUID:
        return self.conversation.pk

    async def tell(self, event: Event) -> None:
        """Tell every open page of the conversation."""
        await broadcast(get_channel_layer(), self.conversation_id, event)

    async def enter(self, phase: str) -> None:
        """Begin a phase and tell it."""
        self.phase, self.since = phase, time.monotonic()
        await self.tell(TurnStatus(self.turn.number, phase, 0))

    async def flush(self) -> None:
        """Tell the text that was not told yet."""
        self.news.clear()
        piece, offset = self.text[self.told :], self.told
        if piece:
            self.told += len(piece)
            await self.tell(TurnDelta(self.turn.number, offset, piece))

    async def beats(self) -> None:
        """Flush text at once, or 40 ms after the last; give signs of life every two seconds.

        Goes on until `done`. It is ended, not cancelled: that could lose the frame that is just on
        its way.
        """
        told = flushed = time.monotonic()
        while not self.done:
            try:
                async with asyncio.timeout(told + STATUS - time.monotonic()):
                    await self.news.wait()
            except TimeoutError:
                pass
            else:
                await asyncio.sleep(flushed + FLUSH - time.monotonic())
                await self.flush()
                flushed = time.monotonic()
            now = time.monotonic()
            if now - told >= STATUS:
                told = now
                seconds = int(now - self.since)
                await self.tell(TurnStatus(self.turn.number, self.phase, seconds))
                await self.tell(TurnTick(self.turn.number, self.told))


async def save(lives: Iterable[Live]) -> frozenset[int]:
    """Save the replies so far of all turns at once; the ids of those that another process wants
    to stop."""
    partials = {live.turn.pk: live.text for live in lives}
    try:
        stops: frozenset[int] = await database_sync_to_async(store.save_partials)(partials=partials)
    except DatabaseError:
        logger.warning("the replies so far could not be saved; trying again", exc_info=True)
        return frozenset()
    return stops
