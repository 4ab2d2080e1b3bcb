"""The whole flow of one turn: assemble, compact if need be, ask, run the tools that were called,
and ask again until there is a reply.

`run_turn` decides nothing about sockets or storage: it yields what happens, and the runner keeps
and tells it before the next thing happens.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace

from channels.db import database_sync_to_async
from django.conf import settings

from chatapp import provider as providers
from chatapp.deltas import Calls, Finish, Reasoning, Text, Usage
from chatapp.failures import PASSING, ProviderError, lengths_told
from chatapp.looping import TRIES, Loop, context_of, rest_hints, storable
from chatapp.provider import Provider
from chatapp.steps import Answer, Called, Changed, Ended, Phase, Piece, Results, Step, Thought
from chatapp.tools.running import Stopped, run_calls
from chatapp.tools.toolsets import toolbox_for
from chatapp.tools.written import calls_in
from memory import compaction, refusals, service, snapshots
from memory.core import prompts
from memory.core.checking import title_in
from memory.core.fitting import WindowTooSmall
from memory.core.text import clean
from memory.crossing import note
from memory.models import Conversation, Turn, TurnState
from memory.summarizer import CompletionFailed, Ladder

# How often an empty reply is asked for again.
EMPTY_RETRIES = 1
# Characters of question and answer that a title is made of, and the longest one in tokens.
TITLE_SOURCE = 1_000
TITLE_TOKENS = 60
# The provider's reasons for an end, and the state of the turn that they mean.
STATES = {"length": TurnState.LENGTH, "content_filter": TurnState.FILTERED}


def inline_ladder() -> Ladder:
    """How long a compaction may hold up a request."""
    return Ladder(total_seconds=settings.SUMMARY_SECONDS)


async def compact(
    conversation: Conversation, provider: Provider, ladder: Ladder, *, force: bool = False
) -> compaction.Outcome:
    """Compact a conversation with the configured summariser; `force` is "compact now"."""
    return await compaction.compact(
        conversation_id=conversation.pk,
        target=providers.target_of(conversation),
        summariser=summariser_for(conversation, provider, ladder),
        force=force,
    )


def summariser_for(
    conversation: Conversation, provider: Provider, ladder: Ladder
) -> compaction.Summariser:
    """Who summarises a conversation: the configured model, else the conversation's own; where that
    fails, the configured fallback, else the conversation's own where it is another one."""
    first = providers.target_for(settings.SUMMARY_MODEL or conversation.model)
    second = providers.target_for(settings.SUMMARY_FALLBACK_MODEL or conversation.model)
    falls_back = second.model != first.model
    if falls_back and ladder.try_seconds > ladder.total_seconds / 2:
        # Or a first model that hangs would leave the second no time.
        ladder = replace(ladder, try_seconds=ladder.total_seconds / 2)
    return compaction.Summariser(
        complete=provider.completer(first.model),
        room=min(first.window, second.window),
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
    target, toolbox = providers.target_of(conversation), toolbox_for(conversation.tools)
    loop = Loop(conversation)
    while True:
        assembled = await _assemble(conversation, target, loop)
        limit = loop.limit(assembled)
        if limit is not None:
            yield Ended(TurnState.LENGTH, limit)
            return
        if loop.may_compact(assembled):
            yield Phase("compacting")
            outcome = await compact(conversation, provider, inline_ladder())
            if outcome.event:
                yield Changed(outcome.event)
            assembled = await _assemble(conversation, target, loop)
        answer = Answer()
        try:
            async with aclosing(ask(turn, provider, assembled, target, answer)) as steps:
                async for step in steps:
                    yield step
        except ProviderError as error:
            if not loop.may_tighten(error, answer):
                raise
            learnt = await _learn(answer.request, error)
            if not learnt.smaller:
                raise
            yield Phase("tightening")
            if learnt.changed:
                yield Changed(learnt.changed)
            continue
        said, calls = answer.text, answer.calls
        if not calls:  # a model that was not made for tools writes its calls into its text
            said, calls = calls_in(said, toolbox)
        cut_off = answer.state == TurnState.LENGTH
        if not calls or not (cut_off or answer.state == TurnState.COMPLETE):
            yield Ended(answer.state)
            return
        yield Called(said, tuple(storable(call, at) for at, call in enumerate(calls)))
        yield Phase("calling")
        try:
            outcomes = await run_calls(
                calls,
                toolbox,
                context_of(assembled),
                earlier=loop.failures,
                tries=TRIES,
                cut_off=cut_off,
                # The calls are stored next, and their results behind them.
                rest_hints=rest_hints(assembled.conversation.next_position + 1, len(calls)),
            )
        except Stopped as stopped:
            yield Results(stopped.outcomes)
            raise
        yield Results(outcomes)
        loop.note(outcomes)


async def _assemble(
    conversation: Conversation, target: service.Target, loop: Loop
) -> service.Assembled:
    assembled: service.Assembled = await database_sync_to_async(service.assemble)(
        conversation_id=conversation.pk, target=target, strict=loop.tightened > 0
    )
    return assembled


async def _learn(request: int, error: ProviderError) -> refusals.Learnt:
    """Take a refusal as a measure of the model's window."""
    tokens, window = lengths_told(error.detail)
    learn: Callable[..., Awaitable[refusals.Learnt]]
    learn = database_sync_to_async(refusals.learn_too_long)
    return await learn(request_id=request, tokens=tokens, window=window)


async def ask(
    turn: Turn,
    provider: Provider,
    assembled: service.Assembled,
    target: service.Target,
    answer: Answer,
) -> AsyncGenerator[Step, None]:
    """One step's answer: asked for again where it was empty, or failed before it began."""
    empty = failed = 0
    while True:
        answer.text, answer.thinks, answer.usage = "", False, {}
        try:
            async with aclosing(request(turn, provider, assembled, target, answer)) as steps:
                async for step in steps:
                    yield step
        except ProviderError as error:
            if answer.begun or error.code not in PASSING or failed >= settings.LLM_RETRIES:
                raise
            failed += 1
            yield Phase("retrying")
            await asyncio.sleep(pause_before(failed, error.pause))
            continue
        if not answer.empty:
            return
        empty += 1
        if empty > EMPTY_RETRIES:
            raise ProviderError("empty")


def pause_before(attempt: int, asked: float | None) -> float:
    """The seconds to wait before a request is sent again: what the provider asks for, or half a
    second that doubles; at most what the settings allow."""
    wait = 0.5 * 2 ** (attempt - 1) if asked is None else asked
    return min(wait, settings.LLM_RETRY_SECONDS)


async def request(
    turn: Turn,
    provider: Provider,
    assembled: service.Assembled,
    target: service.Target,
    answer: Answer,
) -> AsyncGenerator[Step, None]:
    """One request of a turn: its snapshot, and what comes back, which `answer` gathers."""
    if assembled.window is None or assembled.body is None:
        raise assembled.error or WindowTooSmall("message", 0, 0)
    stored = await database_sync_to_async(snapshots.take)(
        conversation_id=turn.conversation_id,
        turn=turn,
        window=assembled.window,
        options=dict(target.options),
        policy=assembled.policy,
        encoding=assembled.counter.name,
        habits=target.habits,
    )
    answer.request = stored.pk
    yield Phase("waiting")
    async with aclosing(provider.stream(assembled.body)) as deltas:
        async for delta in deltas:
            match delta:
                case providers.Sent(sha256):
                    await note(snapshots.mark_sent, request_id=stored.pk, sha256=sha256)
                case Text(text):
                    answer.text += text
                    yield Piece(text)
                case Reasoning(text):
                    answer.thinks = True
                    yield Thought(text)
                case Calls(calls):
                    answer.calls = calls
                case Usage(counts):
                    answer.usage = counts
                case Finish(reason):
                    answer.state = STATES.get(reason, TurnState.COMPLETE)
    if answer.usage:
        await note(snapshots.record_usage, request_id=stored.pk, usage=answer.usage)
