"""Turns of a given size, and a policy by tokens. One word is one token, messages cost no more."""

from typing import Any

from memory.core.messages import Message
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import Context
from tests.builders import context, numbered, reply, user


def words(count: int) -> str:
    return " ".join(["w"] * count)


def turns_of(*sizes: int) -> list[Message]:
    """Whole turns of so many tokens: a question of one and an answer of the others."""
    return [message for size in sizes for message in (user("q"), reply(words(size - 1)))]


def asked(*sizes: int, usable: int = 1_000, **options: Any) -> Context:
    """Turns of these sizes and a question of one word, in a window of so many usable tokens."""
    messages = numbered([*turns_of(*sizes), user("now")])
    return context(messages, window=usable + 1, reserve=1, **options)


def tokens(**changes: Any) -> Policy:
    """Hybrid by tokens, without the rungs, with a summary of 50."""
    return policy_from({"preset": "hybrid-tokens", "rungs": False, "summary_cap": 50, **changes})
