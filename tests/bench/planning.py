"""Planning with 10,000 messages in memory, their counts cached: every preset, beside LangChain."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from memory.core.budget import budget_for
from memory.core.groups import Group, group
from memory.core.messages import Message
from memory.core.presets import PRESETS
from memory.core.window import Context
from memory.encodings import counter_for
from tests.bench.filling import REPLY, TEXT
from tests.bench.timing import timed

MESSAGES = 10_000
WINDOW = 128_000
GOAL = 5.0  # milliseconds
TOKENS = 32
SYSTEM = "You are a helpful assistant."


def run(_folder: Path) -> None:
    """Print how long a plan takes for each preset (goal: 5 ms), with and without grouping."""
    rows = [
        Message(role, text, 2 * turn + offset - 2, turn, TOKENS)
        for turn in range(1, MESSAGES // 2 + 1)
        for role, text, offset in (("user", TEXT, 1), ("assistant", REPLY, 2))
    ]
    messages, question = tuple(rows), Message("user", TEXT, MESSAGES + 1, MESSAGES // 2 + 1, TOKENS)
    prior, current = group(messages), group([question])
    plans = {name: partial(_plan, _context(name, prior, current)) for name in PRESETS}
    print(f"{MESSAGES:,} messages of {TOKENS} tokens, counts cached, window {WINDOW:,}")
    _print("planning, milliseconds, median (95 %)", plans, GOAL)
    whole: dict[str, Callable[[int], Any]] = {
        f"group, plan, window: {name}": partial(_window, name, messages, question)
        for name in ("window", "hybrid", "hybrid-tokens")
    }
    if find_spec("langchain_core"):
        whole["LangChain trim_messages, stored counts"] = _langchain(messages)
    else:
        print("  langchain_core is not installed: make bench-setup")
    _print("from the messages to those that are sent", whole)


def _context(name: str, prior: tuple[Group, ...], current: tuple[Group, ...]) -> Context:
    budget, counter = budget_for(WINDOW), counter_for("")
    return Context(SYSTEM, None, prior, current, PRESETS[name], budget, counter)


def _plan(context: Context, _round: int) -> None:
    context.plan()


def _window(name: str, messages: tuple[Message, ...], question: Message, _round: int) -> None:
    context = _context(name, group(messages), group([question]))
    context.window(context.plan())


def _langchain(messages: tuple[Message, ...]) -> Callable[[int], Any]:
    """`trim_messages` down to what is usable, with the counts that we store."""
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages

    kinds = {"user": HumanMessage, "assistant": AIMessage}
    rows = [kinds[one.role](one.content, additional_kwargs={"tokens": TOKENS}) for one in messages]

    def stored(message: BaseMessage) -> int:
        return int(message.additional_kwargs["tokens"])

    def trim(_round: int) -> Any:
        usable = budget_for(WINDOW).usable
        return trim_messages(
            rows, max_tokens=usable, token_counter=stored, strategy="last", start_on="human"
        )

    return trim


def _print(title: str, actions: dict[str, Any], goal: float | None = None) -> None:
    print(title + (f", goal {goal:.0f}" if goal else ""))
    for name, spread in timed(actions).items():
        missed = "  over the goal" if goal and spread.median > goal else ""
        print(f"  {name:<40} {spread}{missed}", flush=True)
