"""The whole flow of one turn: assemble, compact if need be, snapshot, stream.

`run_turn` decides nothing about sockets or storage of the reply: it yields what happens, and the
runner keeps and tells it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from channels.db import database_sync_to_async
from django.conf import settings

from chatapp import provider as providers
from chatapp.provider import Provider
from memory import service, snapshots
from memory.core import prompts
from memory.core.checking import title_in
from memory.core.planning import WindowTooSmall
from memory.core.text import clean
from memory.models import Conversation, MemoryEvent, Turn, TurnState
from memory.summarizer import CompletionFailed, Ladder

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
) -> service.Outcome:
    """Compact a conversation with the configured summariser; `force` is "compact now"."""
    summariser = providers.target_for(settings.SUMMARY_MODEL or conversation.model)
    return await service.compact(
        conversation_id=conversation.pk,
        target=providers.target_for(conversation.model),
        room=summariser.window,
        complete=provider.completer(summariser.model),
        ladder=ladder,
        force=force,
    )


async def title_for(
    conversation: Conversation, provider: Provider, question: str, answer: str
) -> str | None:
    """A title made of the first exchange, by the summariser's model; None if it gave none."""
    model = providers.target_for(settings.SUMMARY_MODEL or conversation.model).model
    start = question[:TITLE_SOURCE], answer[:TITLE_SOURCE]
    try:
        async with asyncio.timeout(settings.SUMMARY_SECONDS):
            request = prompts.title_request(*start)
            completion = await provider.completer(model)(request, TITLE_TOKENS)
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
    if assembled.window is None or assembled.body is None:
        raise assembled.error or WindowTooSmall("message", 0, 0)
    request = await database_sync_to_async(snapshots.take)(
        conversation_id=conversation.pk,
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
                        request_id=request.pk, sha256=sha256
                    )
                case providers.Text(text):
                    yield Piece(text)
                case providers.Usage(counts):
                    usage = counts
                case providers.Finish(reason):
                    state = STATES.get(reason, TurnState.COMPLETE)
    if usage:
        await database_sync_to_async(snapshots.record_usage)(request_id=request.pk, usage=usage)
    yield Ended(state)
