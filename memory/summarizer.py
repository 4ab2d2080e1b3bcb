"""The ladder that turns old messages into a summary: tries with the model, then the archive.

No failure gets out of here and none becomes a summary: an answer that is not accepted counts as a
failed try, with its reason. The model call is an argument (`complete`), so nothing here knows a
provider or a database.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from memory.core import prompts
from memory.core.checking import ARCHIVE_MESSAGE, archive, refusal_reason, strip_reasoning
from memory.core.groups import Group
from memory.core.messages import Message
from memory.core.policy import Template
from memory.core.text import clean, script_language, shorten
from memory.core.tokens import MESSAGE_OVERHEAD, Counter

# Messages whose script decides the summary's language, and the characters looked at of each.
LANGUAGE_MESSAGES = 8
LANGUAGE_CHARACTERS = 400
# The longest answer asked for, in lengths of the longest summary; doubled where it was cut.
LIMIT_CAPS = 2
# Turns that are summarised at once (docs/memory.md); more come in chunks.
CHUNK_TURNS = 30
# Tokens of a chunk, however small the summariser's window is.
LEAST_CHUNK = 100


class CompletionFailed(Exception):
    """The summariser's model could not be asked. `reason` is a short code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's whole answer. `usage` in tokens, as the provider reported it."""

    text: str
    finish: str = "stop"
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)


# Takes the messages of a request and the longest answer in tokens; raises CompletionFailed.
Complete = Callable[[Sequence[dict[str, str]], int], Awaitable[Completion]]


@dataclass(frozen=True, slots=True)
class Ladder:
    """How patient the summariser is (S2: 3 tries of 60 s, then as many with another model).

    Times in seconds; `total_seconds` is what all tries together may take.
    """

    tries: int = 3
    try_seconds: float = 60.0
    total_seconds: float = 600.0
    backoff_seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class Written:
    """What the ladder came to. `kind` is "model", "archive" or "" (nothing shorter was found)."""

    kind: str
    text: str
    tokens: int
    failures: tuple[str, ...] = ()
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be summarised: the previous text and the groups it is to take in.

    `source_tokens` is what both cost in a window now, `cap` the longest summary, `room` what the
    summariser's own request may hold; all in tokens.
    """

    previous: str
    head: tuple[Group, ...]
    source_tokens: int
    cap: int
    room: int
    counter: Counter
    template: Template = "dialogue"

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for members in self.head for message in members.messages)


@dataclass(slots=True)
class _Progress:
    """The summary so far, chunk by chunk, and what it took."""

    text: str
    model: str = ""
    failures: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)

    def note(self, answer: Completion) -> None:
        for key, value in answer.usage.items():
            self.usage[key] = self.usage.get(key, 0) + value


async def write(
    job: Job, complete: Complete, ladder: Ladder, fallback: Complete | None = None
) -> Written:
    """Summarise the job, chunk by chunk where the summariser's window asks for it.

    Never raises for a failing model; cancelling it changes nothing. A chunk that `complete` cannot
    summarise is given to `fallback`; where that fails too the whole job becomes an archive. What a
    failed try cost is in `usage` as well.
    """
    started = time.monotonic()
    progress = _Progress(job.previous)
    chunks = await asyncio.to_thread(split, job)  # counts all of it
    for index in range(len(chunks)):
        done = await _climb(job, chunks, index, progress, (complete, fallback), ladder, started)
        if not done:
            seconds = time.monotonic() - started
            return await asyncio.to_thread(_archived, job, progress, seconds)
    seconds = time.monotonic() - started
    return Written(
        "model",
        progress.text,
        job.counter.count(progress.text),
        tuple(progress.failures),
        progress.model,
        progress.usage,
        seconds,
    )


async def _climb(
    job: Job,
    chunks: list[tuple[Message, ...]],
    index: int,
    progress: _Progress,
    models: tuple[Complete | None, ...],
    ladder: Ladder,
    started: float,
) -> bool:
    """All tries for one chunk; whether one of them gave its summary."""
    asks = [ask for ask in models if ask is not None for _ in range(ladder.tries)]
    deadline = started + ladder.total_seconds
    # Room for a summary over its cap, which is compressed once more, and for a model that thinks.
    limit = LIMIT_CAPS * job.cap
    for attempt, ask in enumerate(asks):
        left = deadline - time.monotonic()
        if left <= 0:
            progress.failures.append("out-of-time")
            return False
        try:
            async with asyncio.timeout(min(ladder.try_seconds, left)):
                reason = await _try(job, chunks, index, progress, ask, limit)
        except TimeoutError:
            reason = "timeout"
        except CompletionFailed as error:
            reason = error.reason
        if reason is None:
            return True
        progress.failures.append(reason)
        if reason == "cut":
            limit *= 2
        if attempt + 1 < len(asks):
            pause = ladder.backoff_seconds * 2 ** (attempt % ladder.tries)
            await asyncio.sleep(max(0.0, min(pause, deadline - time.monotonic())))
    return False


async def _try(
    job: Job,
    chunks: list[tuple[Message, ...]],
    index: int,
    progress: _Progress,
    ask: Complete,
    limit: int,
) -> str | None:
    """One try for one chunk: None if its summary was accepted, else why not."""
    chunk, last = chunks[index], index == len(chunks) - 1
    language = language_of(job.messages)
    request = prompts.summary_request(
        chunk, previous=progress.text, cap=job.cap, language=language, template=job.template
    )
    source = progress.text + "".join(message.content for message in chunk)
    tokens = job.source_tokens
    if not last:  # a chunk may be as long as the summariser's window: not on the event loop
        tokens = await asyncio.to_thread(job.counter.count, source) + MESSAGE_OVERHEAD
    text, reason = await _asked(job, request, source, tokens, progress, ask, limit)
    if reason == "over-cap":
        shorter = prompts.shorter_request(text, cap=job.cap, language=language)
        text, reason = await _asked(job, shorter, source, tokens, progress, ask, limit)
    # Only the end has to be shorter: a first chunk may be one short line before a long one.
    if reason and (last or reason != "not-shorter"):
        return reason
    progress.text = text
    return None


async def _asked(
    job: Job,
    request: Sequence[dict[str, str]],
    source: str,
    tokens: int,
    progress: _Progress,
    ask: Complete,
    limit: int,
) -> tuple[str, str | None]:
    """A model's text for a request, without its reasoning, and why it is not accepted."""
    if limit > LIMIT_CAPS * job.cap:
        # More than was set aside: only as far as the summariser's window has room for it.
        spent = sum(job.counter.count(part["content"]) + MESSAGE_OVERHEAD for part in request)
        limit = min(limit, max(LIMIT_CAPS * job.cap, job.room - spent))
    answer = await ask(request, limit)
    progress.note(answer)
    progress.model = answer.model
    text = strip_reasoning(clean(answer.text))
    if text is None:
        return "", "reasoning"
    reason = refusal_reason(
        text,
        source=source,
        source_tokens=tokens,
        cap=job.cap,
        finish=answer.finish,
        counter=job.counter,
    )
    return text, reason


def split(job: Job) -> list[tuple[Message, ...]]:
    """The messages in runs of at most 30 turns that each fit the summariser's request beside the
    previous summary.

    Room is left for the longest previous summary and the longest answer. A message that alone is
    too large is shortened to its head for the summariser's eyes.
    """
    empty = prompts.summary_request(
        (), previous="-", cap=job.cap, language="", template=job.template
    )
    base = sum(job.counter.count(part["content"]) for part in empty) + 2 * MESSAGE_OVERHEAD
    previous = max(job.cap, job.counter.count(prompts.quoted(job.previous)))
    room = max(LEAST_CHUNK, job.room - base - previous - LIMIT_CAPS * job.cap)
    chunks: list[list[Message]] = []
    turns, used = set[int](), 0
    for message in job.messages:
        cost = job.counter.count(prompts.transcript([message])) + 1
        if cost > room:
            message = _shortened(message, room, job.counter)
            cost = room
        if not chunks or used + cost > room or len(turns | {message.turn}) > CHUNK_TURNS:
            chunks.append([])
            turns, used = set(), 0
        chunks[-1].append(message)
        turns.add(message.turn)
        used += cost
    return [tuple(chunk) for chunk in chunks]


def _shortened(message: Message, room: int, counter: Counter) -> Message:
    """The message with its text and the arguments of its calls cut to what fits `room` tokens."""
    size = max(len(message.content), *(len(call.arguments) for call in message.tool_calls), 0)
    short = message
    while size and counter.count(prompts.transcript([short])) >= room:
        size = size * 3 // 4
        calls = tuple(
            replace(call, arguments=shorten(call.arguments, size)) for call in message.tool_calls
        )
        short = replace(message, content=shorten(message.content, size), tool_calls=calls)
    return short


def language_of(messages: Sequence[Message]) -> str:
    """The language to write in: the script of the newest user messages, else of any."""
    spoken = [one for one in messages if one.role == "user"] or list(messages)
    texts = (one.content[:LANGUAGE_CHARACTERS] for one in spoken[-LANGUAGE_MESSAGES:])
    return script_language("\n".join(texts))


def _archived(job: Job, progress: _Progress, seconds: float) -> Written:
    text = archive(
        job.previous, job.messages, cap=job.cap, counter=job.counter, limit=ARCHIVE_MESSAGE
    )
    tokens, failures = job.counter.count(text), tuple(progress.failures)
    if not text or tokens >= job.source_tokens:
        failures = (*failures, "archive-not-shorter")
        return Written("", "", 0, failures, usage=progress.usage, seconds=seconds)
    return Written("archive", text, tokens, failures, usage=progress.usage, seconds=seconds)
