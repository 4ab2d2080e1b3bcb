"""Short ways to write messages and histories. One word is one token, overheads are nothing."""

from collections.abc import Iterable
from dataclasses import replace

from memory.core.budget import Budget
from memory.core.groups import Group, group
from memory.core.messages import Message, ToolCall
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.tokens import Counter, message_tokens
from memory.core.window import Context, SummaryPart


class WordCounter:
    """One token per word, so that expected values can be worked out by hand."""

    name = "words"
    estimated = False

    def count(self, text: str) -> int:
        return len(text.split())


COUNTER = WordCounter()


def user(text: str) -> Message:
    return Message("user", text)


def reply(text: str) -> Message:
    return Message("assistant", text)


def call(*names: str, text: str = "", ids: Iterable[str] | None = None) -> Message:
    """An assistant message with one call per name; ids are call_0, call_1, ... by default."""
    ids = list(ids or (f"call_{index}" for index in range(len(names))))
    calls = tuple(ToolCall(id_, name, "{}") for id_, name in zip(ids, names, strict=True))
    return Message("assistant", text, tool_calls=calls)


def result(text: str, id_: str = "call_0") -> Message:
    return Message("tool", text, tool_call_id=id_)


def numbered(
    messages: Iterable[Message],
    *,
    first: int = 1,
    plain: bool = True,
    counter: Counter = COUNTER,
) -> list[Message]:
    """The messages with positions, turns (one per user message) and tokens.

    `plain` counts words alone; otherwise the overheads come on top.
    """
    turn, done = 0, []
    for position, message in enumerate(messages, first):
        turn += message.role == "user"
        tokens = counter.count(message.content) if plain else message_tokens(message, counter)
        done.append(replace(message, position=position, turn=turn, tokens=tokens))
    return done


def history(turns: int, *, words: int = 3) -> list[Message]:
    """`turns` whole turns of a question and an answer, each of `words` words."""
    messages = []
    for turn in range(1, turns + 1):
        messages.append(user(" ".join([f"q{turn}"] * words)))
        messages.append(reply(" ".join([f"a{turn}"] * words)))
    return numbered(messages)


def context(
    messages: Iterable[Message],
    *,
    policy: Policy | str = "hybrid",
    window: int = 100_000,
    reserve: int = 1_000,
    current: int = 1,
    system: str = "be brief",
    summary: SummaryPart | None = None,
) -> Context:
    """A context whose last `current` groups are the running turn."""
    groups: tuple[Group, ...] = group(messages)
    edge = len(groups) - current
    return Context(
        system_prompt=system,
        summary=summary,
        prior=groups[:edge],
        current=groups[edge:],
        policy=policy_from({"preset": policy}) if isinstance(policy, str) else policy,
        budget=Budget(window, reserve),
        counter=COUNTER,
    )
