"""The whole flow of one turn: assemble, compact if need be, snapshot, stream.

`run_turn` decides nothing about sockets or storage of the reply: it yields what happens, and the
runner keeps and tells it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from channels.db import database_sync_to_async
from django.conf import settings

from chatapp import provider as providers
from chatapp.deltas import Finish, Text, Usage
from chatapp.provider import Provider
from memory import compaction, service, snapshots
from memory.core import prompts
from memory.core.checking import title_in
from memory.core.fitting import WindowTooSmall
from memory.core.text import clean
from memory.models import Conversation, MemoryEvent, Turn, TurnState
from memory.summarizer import CompletionFailed, Ladder

# How often an empty reply is asked for again.
EMPTY_RETRIES = 1
# Characters of question and answer that a title is made of, and the longest one in tokens.
TITLE_SOURCE = 1_000
TITLE_TOKENS = 60
# The provider's reasons for an end, and the state of the turn that they mean.
STATES = {"length": TurnState.LENGTH, "content_filter": TurnState.FILTERED}


@dataclass(frozen=True, slots=True)
class Phase:
    """The turn now compacts, waits for the provider, or streams."""

    name: str


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """The memory changed."""

    event: MemoryEvent


@dataclass(frozen=True, slots=True)
class Ended:
    """The provider is done with the turn."""

    state: TurnState


Step = Phase | Piece | Changed | Ended


def inline_ladder() -> Ladder:
    """How long a compaction may hold up a request."""
    return Ladder(total_seconds=settings.SUMMARY_SECONDS)


async def compact(
    conversation: Conversation, provider: Provider, ladder: Ladder, *, force: bool = False
) -> compaction.Outcome:
    """Compact a conversation with the configured summariser; `force` is "compact now"."""
    return await compaction.compact(
        conversation_id=conversation.pk,
        target=providers.target_for(conversation.model),
        summariser=summariser_for(conversation, provider, ladder),
        force=force,
    )


def summariser_for(
    conversation: Conversation, provider: Provider, ladder: Ladder
) -> compaction.Summariser:
    """Who summarises a conversation: the configured model, else the conversation's own; where that
    fails, the configured fallback, else the conversation's own where it is another one."""
    own = providers.target_for(conversation.model)
    first = providers.target_for(settings.SUMMARY_MODEL or conversation.model)
    second = providers.target_for(settings.SUMMARY_FALLBACK_MODEL or conversation.model)
    falls_back = second.model != first.model
    if falls_back and ladder.try_seconds > ladder.total_seconds / 2:
        # Or a first model that hangs would leave the second no time.
        ladder = replace(ladder, try_seconds=ladder.total_seconds / 2)
    window = conversation.budget(own.window, known=own.known).window
    return compaction.Summariser(
        complete=provider.completer(first.model),
        room=min(first.window, second.window, window),
        ladder=ladder,
        fallback=provider.completer(second.model) if falls_back else None,
    )


async def title_for(
    conversation: Conversation, provider: Provider, question: str, answer: str
) -> str | None:
    """A title made of the first exchange, by the summariser's model; None if it gave none."""
    model = providers.target_for(settings.SUMMARY_MODEL or conversation.model).model
    start = question[:TITLE_SOURCE], answer[:TITLE_SOURCE]
    try:
        async with asyncio.timeout(settings.SUMMARY_SECONDS):
            asked = prompts.title_request(*start)
            completion = await provider.completer(model)(asked, TITLE_TOKENS)
    except (CompletionFailed, TimeoutError):
        return None
    return title_in(clean(completion.text)) if completion.finish == "stop" else None


async def run_turn(turn: Turn, provider: Provider) -> AsyncGenerator[Step, None]:
    """Run a turn that was stored and claimed. Raises ProviderError and WindowTooSmall."""
    conversation = turn.conversation
    target = providers.target_for(conversation.model)
    assemble = database_sync_to_async(service.assemble)
    assembled = await assemble(conversation_id=conversation.pk, target=target)
    if service.wants_compaction(assembled, before_request=True):
        yield Phase("compacting")
        outcome = await compact(conversation, provider, inline_ladder())
        if outcome.event:
            yield Changed(outcome.event)
        assembled = await assemble(conversation_id=conversation.pk, target=target)
    for _attempt in range(1 + EMPTY_RETRIES):
        said, end = False, Ended(TurnState.COMPLETE)
        async with aclosing(request(turn, provider, assembled, target)) as steps:
            async for step in steps:
                if isinstance(step, Ended):
                    end = step
                else:
                    said = said or isinstance(step, Piece)
                    yield step
        if said or end.state != TurnState.COMPLETE:
            yield end
            return
    raise providers.ProviderError("empty")


async def request(
    turn: Turn, provider: Provider, assembled: service.Assembled, target: service.Target
) -> AsyncGenerator[Step, None]:
    """One request of a turn: its snapshot, and what comes back."""
    if assembled.window is None or assembled.body is None:
        raise assembled.error or WindowTooSmall("message", 0, 0)
    stored = await database_sync_to_async(snapshots.take)(
        conversation_id=turn.conversation_id,
        turn=turn,
        window=assembled.window,
        options=dict(target.options),
        policy=assembled.policy,
        encoding=assembled.counter.name,
    )
    yield Phase("waiting")
    state = TurnState.COMPLETE
    usage: dict[str, int] = {}
    async with aclosing(provider.stream(assembled.body)) as deltas:
        async for delta in deltas:
            match delta:
                case providers.Sent(sha256):
                    await database_sync_to_async(snapshots.mark_sent)(
                        request_id=stored.pk, sha256=sha256
                    )
                case Text(text):
                    yield Piece(text)
                case Usage(counts):
                    usage = counts
                case Finish(reason):
                    state = STATES.get(reason, TurnState.COMPLETE)
    if usage:
        await database_sync_to_async(snapshots.record_usage)(request_id=stored.pk, usage=usage)
    yield Ended(state)
