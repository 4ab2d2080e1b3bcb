"""Owns running turns: claim, heartbeat, flush, broadcast, stop, recover.

A turn runs in a task of its own, independent of any socket. Text is coalesced into frames, the
reply so far is saved once a second, and whoever missed something asks for it again.
"""

import asyncio
import contextvars
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from channels.db import database_sync_to_async
from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer

from chatapp import agent
from chatapp.ending import follow, store_end, tell_outcome
from chatapp.events import MemoryChanged, TurnEnded, layer_errors
from chatapp.failures import ProviderError
from chatapp.live import SAVE, Live, result_of, save
from chatapp.provider import Provider, target_for
from chatapp.steps import Called, Changed, Ended, Phase, Piece, Results, Step, Thought
from memory import compaction, store
from memory.core.fitting import WindowTooSmall
from memory.core.messages import Message
from memory.core.text import clean
from memory.crossing import Cancelled, to_end
from memory.encodings import counted, counter_for
from memory.models import Turn, TurnState
from memory.rows import Partial

logger = logging.getLogger(__name__)

# How long a reset waits for the turn that it stops, in seconds.
STOP_WAIT = 5.0
# Seconds before it is listened for stops again, where that failed.
LISTEN_AGAIN = 1.0

Result = TypeVar("Result")


class Runner:
    """The turns of one process. One per process: `get_runner`."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._live: dict[int, Live] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._starts: set[asyncio.Task[Any]] = set()
        self._channel = ""
        self._listener: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None

    # Starting and stopping

    async def start_turn(
        self,
        *,
        conversation_id: UUID,
        model: str,
        client_id: str,
        text: str | None,
        replaces: int | None = None,
    ) -> tuple[Turn, bool]:
        """Claim the conversation, store the user's message and run the turn: (turn, is new).

        `text` None takes the text of the turn that is replaced. The same client id gives the same
        turn again. Who is cancelled while it waits does not hear of it, but a turn that is stored
        is run. Raises store.Busy, store.IdReused, store.NotLast.
        """
        work = self._start(conversation_id, model, client_id, text, replaces)
        return await asyncio.shield(_own(work, self._starts))

    async def _start(
        self,
        conversation_id: UUID,
        model: str,
        client_id: str,
        text: str | None,
        replaces: int | None,
    ) -> tuple[Turn, bool]:
        await self._listen()
        counter = counter_for(target_for(model).model)
        message = None if text is None else await counted(Message("user", text), counter)
        turn: Turn
        turn, new = await database_sync_to_async(store.start_turn)(
            conversation_id=conversation_id,
            client_id=client_id,
            message=message,
            encoding=counter.name,
            owner=self._channel,
            replaces=replaces,
            alive=self.alive(),
        )
        if new:
            live = Live(turn, question=text or "")
            self._live[turn.pk] = live
            live.task = self.spawn(self._run(live))
            if self._keeper is None or self._keeper.done():
                self._keeper = self.spawn(self._keep())
        return turn, new

    def alive(self) -> tuple[int, ...]:
        """The ids of the turns that run in this process."""
        return tuple(self._live)

    async def wait(self, turn: Turn) -> None:
        """Wait until a turn of this process has ended, and what follows it is done."""
        if (live := self._live.get(turn.pk)) and live.task is not None:
            await asyncio.wait({live.task})

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that is independent of whoever asked for it and referenced until it ends."""
        task = _own(work, self._tasks)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()):
            logger.error("a task of the runner failed", exc_info=error)

    async def stop_turn(self, turn: Turn) -> None:
        """Stop a running turn, in this process or in the one that owns it."""
        if self._cancel(turn.pk):
            return
        await database_sync_to_async(store.request_stop)(turn_id=turn.pk)
        if turn.owner:
            layer = get_channel_layer()
            try:
                await layer.send(turn.owner, {"type": "turn.stop", "turn_id": turn.pk})
            except (*layer_errors(), ChannelFull) as error:
                logger.warning("a stop was not sent, its owner will find the flag: %s", error)

    def _cancel(self, turn_id: int) -> bool:
        live = self._live.get(turn_id)
        if live is None:
            return False
        if not live.stopping:
            live.stopping = True
            # A task that has not begun would end without a trace; it looks by itself.
            if live.task is not None and live.begun:
                live.task.cancel()
        return True

    async def stop_and_wait(self, turn: Turn) -> bool:
        """Stop a turn and wait until it has ended; False if it did not in time."""
        await self.stop_turn(turn)
        running = Turn.objects.filter(pk=turn.pk, state=TurnState.RUNNING)
        try:
            async with asyncio.timeout(STOP_WAIT):
                while await running.aexists():  # noqa: ASYNC110  (it may run elsewhere)
                    await asyncio.sleep(0.02)
        except TimeoutError:
            return False
        return True

    async def _listen(self) -> None:
        """Listen, once, for stops that arrive through another process."""
        if self._channel:
            return
        # Of the kind that pages have: on Redis who listens at another one holds up all of these.
        channel = await get_channel_layer().new_channel()
        if not self._channel:
            self._channel = channel
            self._listener = self.spawn(self._hear())

    async def _hear(self) -> None:
        layer = get_channel_layer()
        while True:
            try:
                self._cancel((await layer.receive(self._channel))["turn_id"])
            except Exception:  # whatever a layer raises: it is needed as long as the process runs
                if (task := asyncio.current_task()) and task.cancelling():
                    return  # a layer may raise something of its own where it is cancelled
                logger.warning("stops are not heard; listening again", exc_info=True)
                await asyncio.sleep(LISTEN_AGAIN)

    async def close(self) -> None:
        """End every turn as interrupted, with the text so far, and the provider's connections."""
        while work := self._starts | self._working():
            await asyncio.sleep(0)  # a task that has not begun would end without a trace
            for task in work - self._starts:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
        # Turns need their signs of life until they have ended.
        helpers = tuple(self._tasks)
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        await self.provider.aclose()

    async def settled(self) -> None:
        """Wait until no turn runs and nothing is done after one."""
        await asyncio.gather(*self._working(), return_exceptions=True)

    def _working(self) -> set[asyncio.Task[Any]]:
        return self._tasks - {self._listener, self._keeper}

    def partial_of(self, turn_id: int) -> Partial | None:
        """What the running step of a turn of this process has written so far, or None."""
        live = self._live.get(turn_id)
        return live.partial if live else None

    # Running

    async def _run(self, live: Live) -> None:
        state, code, detail = TurnState.FAILED, "internal", ""
        live.begun = True
        try:
            await to_end(live.begin())
            if live.stopping:
                raise asyncio.CancelledError
            async with aclosing(agent.run_turn(live.turn, self.provider)) as steps:
                async for step in steps:
                    if isinstance(step, Ended):
                        state, code = step.state, step.code
                    else:
                        await self._take(live, step)
        except ProviderError as error:
            code, detail = error.code, error.detail
        except WindowTooSmall as error:
            code, detail = f"window-{error.part}", f"{error.tokens}/{error.usable}"
        except store.NotRunning:
            code, state = "", TurnState.INTERRUPTED
        except asyncio.CancelledError as stop:
            code = ""
            state = TurnState.STOPPED if live.stopping else TurnState.INTERRUPTED
            if isinstance(stop, Cancelled) and isinstance(stop.result, compaction.Outcome):
                await to_end(tell_outcome(live, stop.result))
        finally:
            completed = await to_end(self._finish(live, state, code, detail))
        if completed:
            await follow(live, self.provider)

    async def _take(self, live: Live, step: Step) -> None:
        match step:
            case Piece(text):
                if live.phase != "streaming":
                    await live.enter("streaming")
                live.text += clean(text)
                live.news.set()
            case Thought(text):
                if live.phase != "thinking":
                    await live.enter("thinking")
                live.thoughts += clean(text)
                live.news.set()
            case Phase(name):
                if name == "waiting":
                    live.think_anew()
                await live.enter(name)
            case Called(text, calls):
                said = Message("assistant", clean(text), tool_calls=calls)
                await live.keep([(said, {}, "")], step=live.step + 1)
                live.calls = calls
            case Results(outcomes):
                pairs = zip(live.calls, outcomes, strict=True)
                await live.keep([result_of(call, one) for call, one in pairs], step=live.step)
            case Changed(event):
                await live.tell(MemoryChanged(event.revision, event.kind))

    async def _finish(self, live: Live, state: TurnState, code: str, detail: str) -> bool:
        """Store the end of the turn, then tell it: whoever fetches after the frame sees it.
        Whether it is stored as complete."""
        try:
            ended = await store_end(live, state, code, detail)
        finally:
            self._live.pop(live.turn.pk, None)
            await live.rest()
        await live.tell(ended or TurnEnded(live.turn.number, state, len(live.text), code))
        return ended is not None and ended.state == TurnState.COMPLETE

    async def _keep(self) -> None:
        """Save what the running turns have written, all at once, as long as there are any."""
        while self._live:
            await asyncio.sleep(SAVE)
            for turn_id in await save(list(self._live.values())):
                self._cancel(turn_id)


def _own(work: Coroutine[Any, Any, Result], tasks: set[asyncio.Task[Any]]) -> asyncio.Task[Result]:
    """A task of its own for the work, among `tasks` until it ends."""
    task = asyncio.create_task(work, context=contextvars.Context())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


@cache
def get_runner() -> Runner:
    """The runner of this process, made at the first use."""
    return Runner(Provider())
