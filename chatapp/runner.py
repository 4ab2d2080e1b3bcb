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
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist

from chatapp import agent
from chatapp.events import MemoryChanged, TitleChanged, TurnEnded, TurnStarted
from chatapp.failures import ProviderError
from chatapp.live import SAVE, Live, result_of, save
from chatapp.provider import Provider, target_for, target_of
from chatapp.steps import Called, Changed, Ended, Phase, Piece, Results, Step, Thought
from memory import compaction, service, store
from memory.core.fitting import WindowTooSmall
from memory.core.messages import Message
from memory.core.text import clean
from memory.encodings import counted, counter_for
from memory.models import Turn, TurnState
from memory.rows import Partial
from memory.summarizer import Ladder

logger = logging.getLogger(__name__)

# How long a reset waits for the turn that it stops, in seconds.
STOP_WAIT = 5.0


class Runner:
    """The turns of one process. One per process: `get_runner`."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._live: dict[int, Live] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listening = False
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
        turn again. Raises store.Busy, store.IdReused, store.NotLast.
        """
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
        )
        if new:
            live = Live(turn, question=text or "")
            self._live[turn.pk] = live
            if self._keeper is None or self._keeper.done():
                self._keeper = self.spawn(self._keep())
            # Before the task runs, so that no page hears of text before it hears of the turn.
            await live.tell(TurnStarted(turn.number, client_id))
            live.task = self.spawn(self._run(live))
        return turn, new

    async def wait(self, turn: Turn) -> None:
        """Wait until a turn of this process has ended, and what follows it is done."""
        if (live := self._live.get(turn.pk)) and live.task is not None:
            await asyncio.wait({live.task})

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that is independent of whoever asked for it and referenced until it ends."""
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("a task of the runner failed", exc_info=error)

    async def stop_turn(self, turn: Turn) -> None:
        """Stop a running turn, in this process or in the one that owns it."""
        if self._cancel(turn.pk):
            return
        await database_sync_to_async(store.request_stop)(turn_id=turn.pk)
        if turn.owner:
            layer = get_channel_layer()
            await layer.send(turn.owner, {"type": "turn.stop", "turn_id": turn.pk})

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
        if self._listening:
            return
        self._listening = True
        layer = get_channel_layer()
        self._channel = channel = await layer.new_channel("runner")

        async def listen() -> None:
            while True:
                self._cancel((await layer.receive(channel))["turn_id"])

        self._listener = self.spawn(listen())

    async def close(self) -> None:
        """End every turn as interrupted, with the text so far, and the provider's connections."""
        running = [live.task for live in self._live.values() if live.task]
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*running, *tasks, return_exceptions=True)
        await self.provider.aclose()

    async def settled(self) -> None:
        """Wait until no turn runs and nothing is done after one."""
        running = self._tasks - {self._listener, self._keeper}
        await asyncio.gather(*running, return_exceptions=True)

    def partial_of(self, turn_id: int) -> Partial | None:
        """What the running step of a turn of this process has written so far, or None."""
        live = self._live.get(turn_id)
        return live.partial if live else None

    # Running

    async def _run(self, live: Live) -> None:
        state, code, detail = TurnState.FAILED, "internal", ""
        live.begun = True
        beat = asyncio.create_task(live.beats())
        try:
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
        except asyncio.CancelledError:
            code = ""
            state = TurnState.STOPPED if live.stopping else TurnState.INTERRUPTED
        finally:
            await asyncio.shield(self._finish(live, beat, state, code, detail))
        if state == TurnState.COMPLETE:
            await self._entitle(live)
            await self._compact_after(live)

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

    async def _finish(
        self, live: Live, beat: asyncio.Task[None], state: TurnState, code: str, detail: str
    ) -> None:
        """Store the end of the turn, then tell it: whoever fetches after the frame sees it."""
        counter = counter_for(target_for(live.conversation.model).model)
        reply = None
        if live.text.strip():
            reply = await live.written(Message("assistant", live.text), counter)
        try:
            await database_sync_to_async(store.finish_turn)(
                turn_id=live.turn.pk,
                state=state,
                reply=reply,
                encoding=counter.name,
                error_code=code,
                error_detail=detail,
                thoughts=live.thoughts,
            )
        except ObjectDoesNotExist:
            logger.info("turn %s was deleted while it ran", live.turn.pk)
        finally:
            self._live.pop(live.turn.pk, None)
            live.done = True
            live.news.set()
        await asyncio.gather(beat, return_exceptions=True)
        await live.flush()
        await live.tell(TurnEnded(live.turn.number, state, len(live.text), code))

    async def _entitle(self, live: Live) -> None:
        """Name the conversation after its first exchange."""
        if live.turn.number != 1 or not settings.AUTO_TITLE:
            return
        conversation, question = live.conversation, live.question
        title = await agent.title_for(conversation, self.provider, question, live.text)
        if title and await database_sync_to_async(store.retitle)(
            conversation_id=live.conversation_id, question=question, title=title
        ):
            await live.tell(TitleChanged(title))

    async def _keep(self) -> None:
        """Save what the running turns have written, all at once, as long as there are any."""
        while self._live:
            await asyncio.sleep(SAVE)
            for turn_id in await save(list(self._live.values())):
                self._cancel(turn_id)

    async def _compact_after(self, live: Live) -> None:
        """Compact in the background, if the policy says so; else try once more to replace an
        archive by a summary."""
        target = target_of(live.conversation)
        assembled = await database_sync_to_async(service.assemble)(
            conversation_id=live.conversation_id, target=target
        )
        if service.wants_compaction(assembled, before_request=False):
            outcome = await agent.compact(live.conversation, self.provider, Ladder())
        elif compaction.wants_renewal(assembled):
            outcome = await compaction.renew(
                conversation_id=live.conversation_id,
                target=target,
                summariser=agent.summariser_for(live.conversation, self.provider, Ladder()),
            )
        else:
            return
        if outcome.event:
            await live.tell(MemoryChanged(outcome.event.revision, outcome.event.kind))


@cache
def get_runner() -> Runner:
    """The runner of this process, made at the first use."""
    return Runner(Provider())
