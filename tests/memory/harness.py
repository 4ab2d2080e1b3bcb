"""Contexts of the `harness` preset, counted as S1 counts: ceil(characters / 2.5), and 5, 10 and 8
more for a message, a call and a result."""

from collections.abc import Iterable, Sequence

from memory.core.budget import Budget, budget_for
from memory.core.groups import group
from memory.core.messages import Message
from memory.core.presets import PRESETS
from memory.core.tokens import CharacterCounter
from memory.core.window import Context

HARNESS = PRESETS["harness"]
ESTIMATOR = CharacterCounter()
# Tools whose results are memory themselves.
RETRIEVAL = ("read_file", "memory_search", "memory_get", "session_search")


def harness(
    messages: Iterable[Message],
    *,
    current: int = 0,
    budget: Budget | None = None,
    keep_tools: Sequence[str] = RETRIEVAL,
) -> Context:
    groups = group(messages)
    edge = len(groups) - current
    return Context(
        system_prompt="be brief",
        summary=None,
        prior=groups[:edge],
        current=groups[edge:],
        policy=HARNESS,
        budget=budget or budget_for(128_000),
        counter=ESTIMATOR,
        keep_tools=keep_tools,
    )
