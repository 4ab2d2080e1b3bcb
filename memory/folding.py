"""One fold, from the plan to what is to be stored: summarise, check, carry over.

Knows neither Django nor a provider: the application commits what comes out of it, the lab replays
with it.
"""

import asyncio
from dataclasses import dataclass, replace

from memory.core.carrying import (
    Candidate,
    Carried,
    candidates,
    carry,
    same,
    source_text,
    unsupported,
)
from memory.core.groups import Group
from memory.core.limits import literals_cap, summary_cap
from memory.core.literals import Literal
from memory.core.planning import Plan
from memory.core.tokens import MESSAGE_OVERHEAD, Counter
from memory.core.window import Context, SummaryPart
from memory.summarizer import Complete, Job, Ladder, Written, write

# Turns that automatic compaction waits after one that changed nothing.
RETRY_TURNS = 2
# Literals that a version remembers, the most worth keeping first; a transcript has them all.
REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold that was not committed yet.

    The new summary stands for the positions `first` to `last`, of which `messages` were folded now;
    they and the previous summary cost `source_tokens` in the window, the new one `tokens`: both
    summaries as `body_tokens` counts them. `carried` are the literals that the text lost,
    `unsupported` those in it that its source does not have.
    """

    written: Written
    first: int
    last: int
    messages: int
    source_tokens: int
    tokens: int
    carried: Carried
    unsupported: tuple[Literal, ...]


def job_of(context: Context, decided: Plan, room: int) -> Job:
    """What the summariser is given for a plan that folds. `room` is what its request may hold, in
    tokens."""
    previous = context.summary.text if context.summary else ""
    source = _head_tokens(decided)
    if previous:
        source += context.counter.count(previous) + MESSAGE_OVERHEAD
    return Job(
        previous=previous,
        head=decided.head,
        source_tokens=source,
        cap=summary_cap(context.policy, context.budget, source),
        room=room,
        counter=context.counter,
        template=context.policy.template,
    )


def body_tokens(part: SummaryPart, counter: Counter) -> int:
    """What a summary costs with the literals that it carries, in tokens: without the fence and the
    line on its file, which are no part of what was said."""
    return counter.count(replace(part, file="").body()) + MESSAGE_OVERHEAD


def _head_tokens(decided: Plan) -> int:
    suffix = decided.costs.suffix
    return suffix[0] - suffix[len(decided.head)]


async def fold(
    context: Context,
    decided: Plan,
    *,
    room: int,
    complete: Complete,
    ladder: Ladder,
    fallback: Complete | None = None,
) -> Folded:
    """Fold the head of a plan into the summary. Never raises for a failing model: then `written`
    is an archive, or has no kind where nothing shorter was found."""
    job = job_of(context, decided, room)
    written = await write(job, complete, ladder, fallback)
    summary = context.summary
    first = summary.first if summary else decided.head[0].first
    # Off the event loop: a large head takes a second.
    carried, unproved = await asyncio.to_thread(check, context, written, job, decided.head)
    part = SummaryPart(
        written.text, 1, first, decided.head[-1].last, carried.candidates, carried.fitting
    )
    if written.kind == "archive" and _grows(context, decided, part):
        failures = (*written.failures, "archive-not-shorter")
        written = replace(written, kind="", text="", tokens=0, failures=failures)
    return Folded(
        written=written,
        first=first,
        last=part.last,
        messages=len(job.messages),
        source_tokens=_head_tokens(decided)
        + (body_tokens(summary, context.counter) if summary else 0),
        tokens=body_tokens(part, context.counter) if written.kind else 0,
        carried=carried,
        unsupported=unproved,
    )


def _grows(context: Context, decided: Plan, part: SummaryPart) -> bool:
    """Whether an archive, with its fence and its literals, would cost more in the window than what
    it stands for: then it saves nothing, and says nothing that the messages do not."""
    now = decided.costs.summary + _head_tokens(decided)
    segment = replace(context, summary=part).summary_segment()
    return segment is not None and segment.tokens >= now


def check(
    context: Context, written: Written, job: Job, head: tuple[Group, ...]
) -> tuple[Carried, tuple[Literal, ...]]:
    """The literals that the new summary lost, and those that it made up (S4).

    The messages are looked at as they stand in the transcript, not as the rungs shortened them.
    """
    summary = context.summary
    folded = {message.position for members in head for message in members.messages}
    messages = [
        message
        for members in context.prior
        for message in members.messages
        if message.position in folded
    ]
    lost = candidates(
        messages,
        summary.candidates if summary else (),
        written.text,
        previous_summary=job.previous,
        invented=summary.unsupported if summary else (),
    )
    cap = literals_cap(context.budget)
    carried = carry(lost, cap=cap, counter=context.counter)
    kept = carried.candidates[: max(REMEMBERED, carried.fitting)]
    if written.kind != "model":
        return Carried(kept, carried.fitting), ()
    known: tuple[Candidate, ...] = summary.candidates if summary else ()
    proven = [*(one.literal.text for one in known), *map(source_text, messages)]
    made_up = unsupported(written.text, [job.previous, *proven])
    if summary and summary.unsupported:
        # What the version before made up does not become true by being repeated.
        repeated = [
            one
            for one in unsupported(written.text, proven)
            if one not in made_up and any(same(one, other) for other in summary.unsupported)
        ]
        made_up = (*made_up, *repeated)
    return Carried(kept, carried.fitting), made_up
