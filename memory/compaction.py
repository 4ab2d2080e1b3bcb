"""Compaction of a stored conversation: claim, plan, fold, commit. At most one at a time.

A commit happens only if nothing changed the memory since the plan. What fails is an event too, and
automatic compaction then waits a little.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import UUID, uuid4

from channels.db import database_sync_to_async
from django.db import Error

from memory import claims, offload, reading, versions
from memory.core import prompts
from memory.core.carrying import to_json
from memory.core.groups import group
from memory.core.literals import to_json as literals_to_json
from memory.core.planning import Plan
from memory.core.window import Context
from memory.crossing import to_end
from memory.folding import RETRY_TURNS, Folded, fold
from memory.models import Conversation, MemoryEvent, Summary
from memory.service import Assembled, Target, assemble
from memory.summarizer import Complete, Ladder

logger = logging.getLogger(__name__)

# The trigger of a compaction that makes an archive anew, and the turns that pass between two tries.
RENEWAL = "renewal"
RENEWAL_TURNS = 4


@dataclass(frozen=True, slots=True)
class Summariser:
    """Who summarises: the model, one to fall back on, and how patient to be.

    `room` is what their requests may hold, in tokens: the smaller of their windows; never more than
    the conversation's own.
    """

    complete: Complete
    room: int
    ladder: Ladder
    fallback: Complete | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a compaction came to.

    `status` is "committed", "nothing" (no older messages to fold), "joined" (somebody else's was
    waited for), "superseded" (the memory changed meanwhile) or "failed" (nothing shorter found).
    `reason` says why there is "nothing": the policy's way with older messages where that is not a
    summary ("keep", "leave-out"), "no-messages" (none before the current turn) or "within-kept"
    (the policy keeps all of them).
    """

    status: str
    event: MemoryEvent | None = None
    failures: tuple[str, ...] = ()
    reason: str = ""


async def compact(
    *, conversation_id: UUID, target: Target, summariser: Summariser, force: bool = False
) -> Outcome:
    """Fold the older messages into the summary: plan, shorten, summarise, check, commit.

    A compaction that is already running is waited for instead. What is being stored when it is
    cancelled is stored, and raised as Cancelled with the outcome.
    """
    async with _claimed(conversation_id) as claimed:
        if not claimed:
            return await _join(conversation_id, summariser.ladder.total_seconds)
        assembled = await database_sync_to_async(assemble)(
            conversation_id=conversation_id, target=target, force=force
        )
        if assembled.plan.action != "fold":
            return Outcome("nothing", reason=_why_nothing(assembled))
        context, plan = assembled.context, assembled.plan
        folded = await _fold(context, plan, summariser)
        return await to_end(_keep(assembled, context, folded, plan.trigger or ""))


async def renew(*, conversation_id: UUID, target: Target, summariser: Summariser) -> Outcome:
    """Replace an archive by the summary that could not be made then, over the same messages.

    It claims nothing, so that no request waits for it: whatever changes the memory meanwhile makes
    its commit come to nothing.
    """
    again = await database_sync_to_async(_archived)(conversation_id, target)
    if again is None:
        return Outcome("nothing", reason="no-messages")
    assembled, context, plan = again
    folded = await _fold(context, plan, summariser)
    if folded.written.kind == "archive":
        folded = replace(folded, written=replace(folded.written, kind=""))
    return await to_end(_keep(assembled, context, folded, RENEWAL))


def wants_renewal(assembled: Assembled) -> bool:
    """Whether the active summary is an archive that a model should be asked to replace: not in the
    turn in which the model failed."""
    summary, conversation = assembled.summary, assembled.conversation
    if summary is None or summary.kind != Summary.Kind.ARCHIVE:
        return False
    return conversation.next_turn - 1 > summary.turn + 1


@asynccontextmanager
async def _claimed(conversation_id: UUID) -> AsyncIterator[bool]:
    """The right to compact; False inside if somebody else has it."""
    held = {"conversation_id": conversation_id, "claim": uuid4()}
    alive = asyncio.create_task(_stay_alive(held))
    try:
        yield await to_end(database_sync_to_async(claims.take)(**held))
    finally:
        alive.cancel()
        await to_end(database_sync_to_async(claims.release)(**held))


async def _stay_alive(held: Mapping[str, UUID]) -> None:
    """Renew a claim as long as its compaction runs."""
    while True:
        await asyncio.sleep(claims.RENEWED)
        try:
            await database_sync_to_async(claims.renew)(**held)
        except Error:
            logger.warning("a compaction could not give a sign of life", exc_info=True)


async def _join(conversation_id: UUID, seconds: float) -> Outcome:
    """Wait until the running compaction is over, at most `seconds`."""
    held = Conversation.objects.filter(pk=conversation_id, compaction_claim__isnull=False)
    try:
        async with asyncio.timeout(seconds):
            # Another process may hold it, and may have died.
            while await held.filter(  # noqa: ASYNC110
                compaction_claimed_at__gt=claims.oldest()
            ).aexists():
                await asyncio.sleep(0.1)
    except TimeoutError:
        return Outcome("joined", failures=("out-of-time",))
    return Outcome("joined")


def _why_nothing(assembled: Assembled) -> str:
    """The reason of an Outcome without anything to fold."""
    if assembled.policy.older != "summary":
        return assembled.policy.older
    return "within-kept" if assembled.context.prior else "no-messages"


def _archived(conversation_id: UUID, target: Target) -> tuple[Assembled, Context, Plan] | None:
    """What an active archive was made of: the context as it was before it, and a plan that folds
    all its messages; None where there is no archive any more."""
    assembled = assemble(conversation_id=conversation_id, target=target)
    archive = assembled.summary
    failed = versions.last_failure(conversation_id=conversation_id, trigger=RENEWAL)
    waits = failed is not None and assembled.conversation.next_turn <= failed + RENEWAL_TURNS
    if archive is None or archive.kind != Summary.Kind.ARCHIVE or waits:
        return None
    before: Summary | None = archive
    # Archives made on top of archives are made anew together; a restored one has their range.
    while before is not None and before.kind == Summary.Kind.ARCHIVE:
        before = before.parent
    first = before.last_position + 1 if before else archive.first_position
    messages = reading.stretch(
        conversation=assembled.conversation,
        first=first,
        last=archive.last_position,
        counter=assembled.counter,
    )
    context = replace(
        assembled.context,
        summary=before.to_core() if before else None,
        prior=group(messages),
        current=(),
    )
    if not context.prior:
        return None
    plan = Plan("fold", context.prior, (), "manual", context.measure())
    return assembled, context, plan


async def _fold(context: Context, plan: Plan, summariser: Summariser) -> Folded:
    return await fold(
        context,
        plan,
        room=min(summariser.room, context.budget.counted),
        complete=summariser.complete,
        ladder=summariser.ladder,
        fallback=summariser.fallback,
    )


async def _keep(assembled: Assembled, context: Context, folded: Folded, trigger: str) -> Outcome:
    """Commit a fold, or note that it came to nothing; nothing of it stays of a conversation that
    was deleted meanwhile."""
    try:
        return await _committed(assembled, context, folded, trigger)
    except Conversation.DoesNotExist:
        await asyncio.to_thread(offload.remove, assembled.conversation.pk)
        return Outcome("superseded")


async def _committed(
    assembled: Assembled, context: Context, folded: Folded, trigger: str
) -> Outcome:
    conversation, written, renewed = assembled.conversation, folded.written, trigger == RENEWAL
    if not written.kind:
        event = await database_sync_to_async(versions.record_failure)(
            conversation_id=conversation.pk,
            failures=written.failures,
            trigger=trigger,
            retry_turn=0 if renewed else conversation.next_turn + RETRY_TURNS,
            usage=written.usage,
            replacing=assembled.summary.version if renewed and assembled.summary else None,
        )
        return Outcome("failed" if event else "superseded", event, written.failures)
    file = await _offloaded(assembled, folded) if assembled.policy.offload else ""
    version = f"{context.policy.template}-{prompts.PROMPT_VERSION}"
    draft = versions.Draft(
        kind=written.kind,
        text=written.text,
        first=folded.first,
        last=folded.last,
        folded=folded.messages,
        tokens_before=folded.source_tokens,
        tokens_after=folded.tokens,
        parent_version=assembled.summary.version if assembled.summary else None,
        base=context.summary.version if context.summary else None,
        model=written.model,
        prompt_version=version if written.kind == "model" else "",
        seconds=round(written.seconds, 3),
        usage=written.usage,
        failures=written.failures,
        trigger=trigger,
        literals=to_json(folded.carried.candidates),
        carried=folded.carried.fitting,
        unsupported=literals_to_json(folded.unsupported),
        turn=conversation.next_turn - (2 if assembled.context.current else 1),
        file=file,
    )
    committed = await database_sync_to_async(versions.commit_summary)(
        conversation_id=conversation.pk, revision=conversation.memory_revision, draft=draft
    )
    if committed is None:
        return Outcome("superseded", failures=written.failures)
    return Outcome("committed", committed[1], written.failures)


async def _offloaded(assembled: Assembled, folded: Folded) -> str:
    """Keep the messages that a new summary stands for in the conversation's file; its name, or ""
    where that did not work."""
    conversation_id = assembled.conversation.pk
    kept = await asyncio.to_thread(offload.kept, conversation_id)
    if kept is None:
        return ""
    rows = await database_sync_to_async(_missing)(assembled, folded, kept)
    return await asyncio.to_thread(offload.append, conversation_id, rows)


def _missing(
    assembled: Assembled, folded: Folded, kept: Collection[int]
) -> list[dict[str, object]]:
    """The messages of a fold, and of those before it, that the file has not, as they stand in the
    transcript: an earlier policy may have kept none."""
    within = assembled.conversation.messages.filter(
        active=True, position__range=(folded.first, folded.last)
    )
    missing = [at for at in within.values_list("position", flat=True) if at not in kept]
    messages = reading.stretch(
        conversation=assembled.conversation,
        first=min(missing, default=1),
        last=max(missing, default=0),
        counter=assembled.counter,
    )
    return [
        {"position": message.position, "turn": message.turn, **message.to_wire()}
        for message in messages
        if message.position not in kept
    ]
