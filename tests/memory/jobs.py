"""Jobs for the summariser, and a model whose answers are written down."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from memory.core.groups import group
from memory.core.messages import Message
from memory.summarizer import Completion, Job, Ladder, Written, write
from tests.builders import COUNTER, history, numbered

QUICK = Ladder(tries=3, try_seconds=5, total_seconds=20, backoff_seconds=0)
GOOD = "Ada wants her order and was told that it comes on Monday."
REQUEST_WORDS = 250  # more than the summariser's own instructions take


class Script:
    """A model whose answers are written down; it keeps what it was asked."""

    def __init__(self, *answers: str | Completion | Exception | float) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.systems: list[str] = []
        self.limits: list[int] = []

    async def __call__(self, request: Sequence[dict[str, str]], limit: int) -> Completion:
        self.asked.append(request[1]["content"])
        self.systems.append(request[0]["content"])
        self.limits.append(limit)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = "late"
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, model="m") if isinstance(answer, str) else answer


def job(messages: Iterable[Message] | None = None, **options: Any) -> Job:
    head = group(history(4, words=20) if messages is None else numbered(messages))
    given = {"previous": "", "source_tokens": 160, "cap": 100, "room": 5_000, "counter": COUNTER}
    return Job(head=head, **{**given, **options})


async def written(model: Script, ladder: Ladder = QUICK, **options: Any) -> Written:
    return await write(job(**options), model, ladder)


def words_of(request: str) -> int:
    return COUNTER.count(request)
