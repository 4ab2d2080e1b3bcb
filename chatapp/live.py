"""A turn that runs in this process: its reply so far, and how pages and rows keep up with it."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.db import Error

from chatapp.events import (
    Event,
    TurnDelta,
    TurnStarted,
    TurnStatus,
    TurnStep,
    TurnThoughts,
    TurnTick,
    broadcast,
)
from chatapp.provider import target_for
from chatapp.tools.running import Outcome
from memory import store
from memory.core.messages import Message, ToolCall
from memory.core.tokens import MESSAGE_OVERHEAD, Counter
from memory.crossing import to_end
from memory.encodings import counted, counter_for
from memory.models import Conversation, Turn
from memory.rows import Partial, Written

logger = logging.getLogger(__name__)

# Seconds: between two frames of text; between two saves of the reply; between two signs of life.
FLUSH, SAVE, STATUS = 0.04, 1.0, 2.0
NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(eq=False)
class Live:
    """A turn that runs in this process. `question` is what was asked (empty in a retry), `text`
    what its step `step` has written so far, `thoughts` what the model thought before it, `told` and
    `thoughts_told` how many of their code points were broadcast; times are those of the monotonic
    clock."""

    turn: Turn
    question: str = ""
    step: int = 0
    text: str = ""
    thoughts: str = ""
    calls: tuple[ToolCall, ...] = ()
    told: int = 0
    thoughts_told: int = 0
    phase: str = "waiting"
    since: float = field(default_factory=time.monotonic)
    begun: bool = False
    stopping: bool = False
    done: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    beat: asyncio.Task[None] | None = None
    conversation: Conversation = field(init=False)

    def __post_init__(self) -> None:
        # Whoever has the same turn may refresh it, and it would forget its conversation.
        self.conversation = self.turn.conversation

    @property
    def conversation_id(self) -> UUID:
        return self.conversation.pk

    @property
    def partial(self) -> Partial:
        return Partial(self.step, self.text, self.thoughts)

    def think_anew(self) -> None:
        """Forget the thoughts of a request that is made again."""
        self.thoughts, self.thoughts_told = "", 0

    async def tell(self, event: Event) -> None:
        """Tell every open page of the conversation."""
        await broadcast(get_channel_layer(), self.conversation_id, event)

    async def begin(self) -> None:
        """Tell that the turn has started, before anything else of it, and begin its beats."""
        await self.tell(TurnStarted(self.turn.number, self.turn.client_id))
        self.beat = asyncio.create_task(self._beats())

    async def rest(self) -> None:
        """End the beats, and tell what they have not told."""
        self.done = True
        self.news.set()
        if self.beat is not None:
            await asyncio.gather(self.beat, return_exceptions=True)
        await self.flush()

    async def enter(self, phase: str) -> None:
        """Begin a phase and tell it."""
        self.phase, self.since = phase, time.monotonic()
        await self.tell(TurnStatus(self.turn.number, phase, 0))

    async def written(
        self,
        message: Message,
        counter: Counter,
        detail: Mapping[str, Any] = NOTHING,
        whole: str = "",
    ) -> Written:
        """A message as it is stored, counted; with the thoughts so far where the model said it."""
        thoughts = self.thoughts if message.role == "assistant" else ""
        thought = await counted(Message("assistant", thoughts), counter)
        return Written(
            await counted(message, counter),
            thoughts,
            thought.tokens - MESSAGE_OVERHEAD if thoughts else 0,
            detail,
            whole,
        )

    async def keep(
        self, messages: Iterable[tuple[Message, Mapping[str, Any], str]], *, step: int
    ) -> None:
        """Store a step's calls or results, each with its detail and whole text; what comes next is
        that of step `step`. A stop does not cut it off: a tool may have had an effect, and a step
        that is stored must not be stored again as the reply. Raises store.NotRunning."""
        await to_end(self._keep(messages, step))

    async def _keep(
        self, messages: Iterable[tuple[Message, Mapping[str, Any], str]], step: int
    ) -> None:
        counter = counter_for(target_for(self.conversation.model).model)
        rows = [await self.written(one, counter, detail, whole) for one, detail, whole in messages]
        await database_sync_to_async(store.add_step)(
            turn_id=self.turn.pk, step=step, written=rows, encoding=counter.name
        )
        if step != self.step:
            self.step, self.text, self.told = step, "", 0
            self.think_anew()
        await self.tell(TurnStep(self.turn.number, step))

    async def flush(self) -> None:
        """Tell the thoughts and the text that were not told yet."""
        self.news.clear()
        thought, offset = self.thoughts[self.thoughts_told :], self.thoughts_told
        if thought:
            self.thoughts_told += len(thought)
            await self.tell(TurnThoughts(self.turn.number, self.step, offset, thought))
        piece, offset = self.text[self.told :], self.told
        if piece:
            self.told += len(piece)
            await self.tell(TurnDelta(self.turn.number, self.step, offset, piece))

    async def _beats(self) -> None:
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
                await self.tell(
                    TurnTick(self.turn.number, self.step, self.told, self.thoughts_told)
                )


def result_of(call: ToolCall, outcome: Outcome) -> tuple[Message, Mapping[str, Any], str]:
    """What came of a call as a message, with its detail and, where it is cut, its whole text."""
    detail: dict[str, Any] = {"seconds": round(outcome.seconds, 3)}
    if outcome.error:
        detail["error"] = outcome.error
    if outcome.cut:
        detail["length"] = outcome.length
    message = Message("tool", outcome.content, tool_call_id=call.id, name=call.name)
    return message, detail, outcome.whole if outcome.cut else ""


async def save(lives: Iterable[Live]) -> frozenset[int]:
    """Save what all turns have written so far, at once; the ids of those that another process
    wants to stop, or has ended."""
    partials = {live.turn.pk: live.partial for live in lives}
    try:
        stops: frozenset[int] = await database_sync_to_async(store.save_partials)(partials=partials)
    except Error:
        logger.warning("the replies so far could not be saved; trying again", exc_info=True)
        return frozenset()
    return stops
