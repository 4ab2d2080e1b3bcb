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
from memory.core.text import clean, script_language, shorten
from memory.core.tokens import MESSAGE_OVERHEAD, Counter

# Messages whose script decides the summary's language, and the characters looked at of each.
LANGUAGE_MESSAGES = 8
LANGUAGE_CHARACTERS = 400
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
    """How patient the summariser is (S2: 3 tries of 60 s). Times in seconds."""

    tries: int = 3
    try_seconds: float = 60.0
    total_seconds: float = 200.0
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

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for members in self.head for message in members.messages)


async def write(job: Job, complete: Complete, ladder: Ladder) -> Written:
    """Summarise the job. Never raises for a failing model; cancelling it changes nothing."""
    started = time.monotonic()
    failures: list[str] = []
    deadline = started + ladder.total_seconds
    for attempt in range(ladder.tries):
        left = deadline - time.monotonic()
        if left <= 0:
            failures.append("out-of-time")
            break
        try:
            async with asyncio.timeout(min(ladder.try_seconds, left)):
                written = await _in_chunks(job, complete)
        except TimeoutError:
            written = "timeout"
        except CompletionFailed as error:
            written = error.reason
        if isinstance(written, Written):
            seconds = time.monotonic() - started
            return replace(written, failures=tuple(failures), seconds=seconds)
        failures.append(written)
        if attempt + 1 < ladder.tries:
            pause = ladder.backoff_seconds * 2**attempt
            await asyncio.sleep(max(0.0, min(pause, deadline - time.monotonic())))
    return _archived(job, tuple(failures), time.monotonic() - started)


async def _in_chunks(job: Job, complete: Complete) -> Written | str:
    """The chained summary, chunk by chunk where the summariser's window asks for it; or why not."""
    previous, usage, model = job.previous, dict[str, int](), ""
    chunks = split(job)
    language = language_of(job.messages)
    for index, chunk in enumerate(chunks):
        last = index == len(chunks) - 1
        request = prompts.summary_request(chunk, previous=previous, cap=job.cap, language=language)
        answer = await complete(request, job.cap)
        text = strip_reasoning(clean(answer.text))
        if text is None:
            return "reasoning"
        source = previous + "".join(message.content for message in chunk)
        tokens = job.source_tokens if last else job.counter.count(source) + MESSAGE_OVERHEAD
        reason = refusal_reason(
            text,
            source=source,
            source_tokens=tokens,
            cap=job.cap,
            finish=answer.finish,
            counter=job.counter,
        )
        # Only the end has to be shorter: a first chunk may be one short line before a long one.
        if reason and (last or reason != "not-shorter"):
            return reason
        previous, model = text, answer.model
        for key, value in answer.usage.items():
            usage[key] = usage.get(key, 0) + value
    return Written("model", previous, job.counter.count(previous), model=model, usage=usage)


def split(job: Job) -> list[tuple[Message, ...]]:
    """The messages in runs that each fit the summariser's request beside the previous summary.

    Room is left for the longest previous summary and the longest answer. A message that alone is
    too large is shortened to its head for the summariser's eyes.
    """
    empty = prompts.summary_request((), previous="-", cap=job.cap, language="")
    base = sum(job.counter.count(part["content"]) for part in empty) + 2 * MESSAGE_OVERHEAD
    previous = max(job.cap, job.counter.count(prompts.quoted(job.previous)))
    room = max(LEAST_CHUNK, job.room - base - previous - job.cap)
    chunks: list[list[Message]] = []
    used = 0
    for message in job.messages:
        cost = job.counter.count(prompts.transcript([message])) + 1
        if cost > room:
            message = _shortened(message, room, job.counter)
            cost = room
        if not chunks or used + cost > room:
            chunks.append([])
            used = 0
        chunks[-1].append(message)
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


def _archived(job: Job, failures: tuple[str, ...], seconds: float) -> Written:
    text = archive(
        job.previous, job.messages, cap=job.cap, counter=job.counter, limit=ARCHIVE_MESSAGE
    )
    tokens = job.counter.count(text)
    if not text or tokens >= job.source_tokens:
        return Written("", "", 0, (*failures, "archive-not-shorter"), seconds=seconds)
    return Written("archive", text, tokens, failures, seconds=seconds)
