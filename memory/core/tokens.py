"""Counting tokens: the protocol of a counter, the estimator without a vocabulary, the overheads."""

import math
from typing import Protocol

from memory.core.messages import Message

# Tokens added per message, per tool call and per tool result (S1). Providers add about 3 to 4 a
# message; the larger figures keep every count an upper bound.
MESSAGE_OVERHEAD = 5
CALL_OVERHEAD = 10
RESULT_OVERHEAD = 8
# What chat templates of open models say around the schemas of the tools (Hermes, Qwen, Llama 3).
TOOLS_OVERHEAD = 150

# Between English (about 4) and Chinese (1 to 2); S1's estimator for any model.
CHARACTERS_PER_TOKEN = 2.5


class Counter(Protocol):
    """Counts the tokens of a text.

    `name` is stored beside every count, `estimated` says that it is not the model's own
    vocabulary.
    """

    @property
    def name(self) -> str: ...

    @property
    def estimated(self) -> bool: ...

    def count(self, text: str) -> int:
        """The number of tokens in `text`; never raises for any string."""
        ...


class CharacterCounter:
    """The estimator for when no vocabulary is at hand: `ceil(characters / 2.5)`."""

    name = "characters"
    estimated = True

    def count(self, text: str) -> int:
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def message_tokens(message: Message, counter: Counter) -> int:
    """The whole cost of a message in a request, in tokens: text, thoughts, calls, overheads."""
    tokens = MESSAGE_OVERHEAD + counter.count(message.content)
    if message.reasoning:
        tokens += counter.count(message.reasoning)
    for call in message.tool_calls:
        tokens += CALL_OVERHEAD + counter.count(call.name) + counter.count(call.arguments)
    if message.role == "tool":
        tokens += RESULT_OVERHEAD
    return tokens
