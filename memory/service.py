"""What the web application asks of the memory: assemble, compact, reset, undo.

Each change returns its event; callers broadcast it. `assemble` is the one way to the next request:
the panel shows and the agent sends the same.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async

from memory import reading, summarizer, versions
from memory.core import prompts
from memory.core.groups import group
from memory.core.messages import Message
from memory.core.planning import Plan, WindowTooSmall, summary_cap
from memory.core.policy import Policy
from memory.core.text import is_blank
from memory.core.tokens import MESSAGE_OVERHEAD, Counter
from memory.core.window import Context, SummaryPart, Window
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Summary
from memory.snapshots import body_of

# Turns that automatic compaction waits after one that changed nothing.
RETRY_TURNS = 2


@dataclass(frozen=True, slots=True)
class Target:
    """The model that a request goes to: its name, its window in tokens, and the options of the
    request's body (everything except the messages)."""

    model: str
    window: int
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Assembled:
    """The next request. `window` and `body` are None where it cannot fit; `error` says why."""

    conversation: Conversation
    policy: Policy
    counter: Counter
    context: Context
    plan: Plan
    window: Window | None
    body: dict[str, Any] | None
    error: WindowTooSmall | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction came to.

    `status` is "committed", "nothing" (no older messages to fold), "joined" (somebody else's was
    waited for), "superseded" (the memory changed meanwhile) or "failed" (nothing shorter found).
    """

    status: str
    event: MemoryEvent | None = None
    failures: tuple[str, ...] = ()


def assemble(*, conversation_id: UUID, target: Target, force: bool = False) -> Assembled:
    """Build the next request from what is stored, in a constant number of queries.

    While a turn is running it is the request of that turn; otherwise the one that the next user
    message will be added to. `force` plans the owner's "compact now".
    """
    conversation = Conversation.objects.get(pk=conversation_id)
    counter = counter_for(target.model)
    policy = conversation.policy
    loaded = reading.load(conversation=conversation, policy=policy, counter=counter)
    summary = None
    if loaded.summary:
        row = loaded.summary
        summary = SummaryPart(row.text, row.version, row.first_position, row.last_position)
    context = Context(
        system_prompt=conversation.system_prompt,
        summary=summary,
        prior=group(loaded.prior),
        current=group(loaded.current),
        policy=policy,
        budget=conversation.budget(target.window),
        counter=counter,
    )
    turn = conversation.next_turn - 1 if loaded.current else conversation.next_turn
    plan = context.plan(force=force, hold=conversation.hold_turn > turn)
    try:
        window = context.window(plan)
        body = body_of(window.segments, dict(target.options))
    except WindowTooSmall as error:
        return Assembled(conversation, policy, counter, context, plan, None, None, error)
    return Assembled(conversation, policy, counter, context, plan, window, body, None)


def forecast(assembled: Assembled) -> Plan:
    """The plan that the next user message would meet, were it empty; the running turn's own plan
    while one is running."""
    context = assembled.context
    if context.current:
        return assembled.plan
    message = Message("user", "", tokens=MESSAGE_OVERHEAD)
    upcoming = replace(context, current=group([message]))
    hold = assembled.conversation.hold_turn > assembled.conversation.next_turn
    return upcoming.plan(hold=hold)


def wants_compaction(assembled: Assembled, *, before_request: bool) -> bool:
    """Whether to compact now: by the policy's `when`, and always when it would not fit."""
    plan = assembled.plan
    if plan.action != "fold":
        return False
    now = "before_request" if before_request else "after_reply"
    return assembled.policy.when == now or (before_request and plan.trigger == "budget")


async def compact(
    *,
    conversation_id: UUID,
    target: Target,
    room: int,
    complete: summarizer.Complete,
    ladder: summarizer.Ladder,
    force: bool = False,
) -> Outcome:
    """Fold the older messages into the summary: plan, summarise, check, commit.

    `room` is what the summariser's request may hold, in tokens. A compaction that is already
    running is waited for instead. The commit happens only if nothing changed the memory meanwhile.
    """
    claim = await database_sync_to_async(versions.claim_compaction)(conversation_id=conversation_id)
    if claim is None:
        return await _join(conversation_id, ladder.total_seconds)
    try:
        assembled = await database_sync_to_async(assemble)(
            conversation_id=conversation_id, target=target, force=force
        )
        if assembled.plan.action != "fold":
            return Outcome("nothing")
        return await _fold(assembled, room, complete, ladder)
    finally:
        await asyncio.shield(
            database_sync_to_async(versions.release_compaction)(
                conversation_id=conversation_id, claim=claim
            )
        )


async def _join(conversation_id: UUID, seconds: float) -> Outcome:
    """Wait until the running compaction is over, at most `seconds`."""
    running = Conversation.objects.filter(pk=conversation_id, compaction_claim__isnull=False)
    try:
        async with asyncio.timeout(seconds):
            while await running.aexists():  # noqa: ASYNC110  (another process may hold it)
                await asyncio.sleep(0.1)
    except TimeoutError:
        return Outcome("joined", failures=("out-of-time",))
    return Outcome("joined")


async def _fold(
    assembled: Assembled,
    room: int,
    complete: summarizer.Complete,
    ladder: summarizer.Ladder,
) -> Outcome:
    conversation, context, plan = assembled.conversation, assembled.context, assembled.plan
    counter, summary = assembled.counter, context.summary
    previous = summary.text if summary else ""
    head_tokens = plan.costs.suffix[0] - plan.costs.suffix[len(plan.head)]
    source = head_tokens + (counter.count(previous) + MESSAGE_OVERHEAD if previous else 0)
    job = summarizer.Job(
        previous=previous,
        head=plan.head,
        source_tokens=source,
        cap=summary_cap(assembled.policy, context.budget),
        room=room,
        counter=counter,
    )
    written = await summarizer.write(job, complete, ladder)
    trigger = plan.trigger or ""
    if not written.kind:
        turn = conversation.next_turn + RETRY_TURNS
        event = await database_sync_to_async(versions.record_failure)(
            conversation_id=conversation.pk,
            failures=written.failures,
            trigger=trigger,
            retry_turn=turn,
        )
        return Outcome("failed", event, written.failures)
    draft = versions.Draft(
        kind=written.kind,
        text=written.text,
        first=summary.first if summary else plan.head[0].first,
        last=plan.head[-1].last,
        folded=len(job.messages),
        tokens_before=source,
        tokens_after=written.tokens + MESSAGE_OVERHEAD,
        parent_version=summary.version if summary else None,
        model=written.model,
        prompt_version=prompts.PROMPT_VERSION if written.kind == "model" else "",
        seconds=round(written.seconds, 3),
        usage=written.usage,
        failures=written.failures,
        trigger=trigger,
    )
    committed = await database_sync_to_async(versions.commit_summary)(
        conversation_id=conversation.pk, revision=conversation.memory_revision, draft=draft
    )
    if committed is None:
        return Outcome("superseded", failures=written.failures)
    return Outcome("committed", committed[1], written.failures)


def reset(*, conversation_id: UUID) -> MemoryEvent:
    """Let the context start anew. Raises versions.TurnRunning while a turn is running."""
    return versions.reset(conversation_id=conversation_id)


def undo(*, conversation_id: UUID) -> MemoryEvent | None:
    """Take back the newest reset or compaction; None if there is nothing to take back."""
    return versions.undo(conversation_id=conversation_id)


def summary_tokens(*, conversation: Conversation, text: str, target: Target) -> int:
    """What a text would cost as the summary, in tokens. Raises ValueError with a reason code for
    one that cannot be: "empty", or "too-large" (over half of the usable tokens)."""
    if is_blank(text):
        raise ValueError("empty")
    tokens = counter_for(target.model).count(text) + MESSAGE_OVERHEAD
    # Beside the summary the current message must have room.
    if tokens > conversation.budget(target.window).usable // 2:
        raise ValueError("too-large")
    return tokens


def edit_summary(
    *,
    conversation_id: UUID,
    version: int,
    text: str,
    author: Any,
    target: Target,
    only_active: bool = True,
) -> MemoryEvent:
    """Replace a summary's text by hand, as a new version.

    Raises ValueError as `summary_tokens`, and versions.Stale and Summary.DoesNotExist as
    `versions.derive_summary`.
    """
    conversation = Conversation.objects.get(pk=conversation_id)
    tokens = summary_tokens(conversation=conversation, text=text, target=target)
    return versions.derive_summary(
        conversation_id=conversation_id,
        version=version,
        text=text,
        tokens=tokens,
        author=author,
        restore=False,
        only_active=only_active,
    )


def restore_summary(*, conversation_id: UUID, version: int, author: Any) -> MemoryEvent:
    """Make an older version's text and range active again, as a new version."""
    source = Summary.objects.get(conversation_id=conversation_id, version=version)
    return versions.derive_summary(
        conversation_id=conversation_id,
        version=version,
        text=source.text,
        tokens=source.tokens_after,
        author=author,
        restore=True,
    )
