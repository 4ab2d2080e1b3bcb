"""What tests of compaction share: a model whose answers a test writes, and talks to compact."""

from collections.abc import Callable, Sequence
from typing import Any

from asgiref.sync import async_to_sync

from chatapp.provider import target_for
from memory import compaction
from memory.compaction import Outcome, Summariser
from memory.models import Summary
from memory.summarizer import Completion, CompletionFailed, Ladder
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk

LADDER = Ladder(tries=3, try_seconds=2, total_seconds=8, backoff_seconds=0)
GOOD = "Ada asked for several things and was answered each time."
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


class Model:
    """A summariser's model: gives its answers in turn, the last one again and again. An exception
    is raised, a function called first. It keeps what it was asked."""

    def __init__(self, name: str, *answers: Any) -> None:
        self.name, self.answers = name, list(answers)
        self.asked: list[str] = []

    async def __call__(self, messages: Sequence[dict[str, str]], limit: int) -> Completion:
        self.asked.append(messages[1]["content"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, model=self.name, usage=dict(USAGE))


DOWN = CompletionFailed("server")


def question(number: int) -> str:
    """Long enough for an archive, which cuts it to 500 characters, to be shorter."""
    return f"question {number}: " + "word " * 120


def broken() -> Model:
    return Model("broken", DOWN)


def worth_folding() -> Talk:
    """Four turns that are worth folding, of which the policy keeps one."""
    made = Talk({"preset": "hybrid", "max_messages": 4, "keep_messages": 2})
    for number in range(1, 5):
        made.run(question(number), reply=LONG)
    return made


def summariser(model: Model, fallback: Model | None = None, ladder: Ladder = LADDER) -> Summariser:
    return Summariser(model, 8_000, ladder, fallback)


def run(work: Callable[..., Any], talk: Talk, who: Summariser, **more: Any) -> Outcome:
    outcome: Outcome = async_to_sync(work)(
        conversation_id=talk.conversation.pk, target=target_for(""), summariser=who, **more
    )
    return outcome


def compact(talk: Talk, model: Model, fallback: Model | None = None) -> Outcome:
    return run(compaction.compact, talk, summariser(model, fallback), force=True)


def renew(talk: Talk, model: Model) -> Outcome:
    return run(compaction.renew, talk, summariser(model))


def newest(talk: Talk) -> Summary:
    return talk.conversation.summaries.latest("version")


def system_sent(talk: Talk) -> str:
    return str(talk.body()["messages"][0]["content"])


def archived(talk: Talk) -> Summary:
    compact(talk, broken())
    row = newest(talk)
    assert row.kind == "archive"
    return row
