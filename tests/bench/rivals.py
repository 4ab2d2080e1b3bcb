"""LangChain's `trim_messages` and LlamaIndex's chat memory buffer on the same messages.

Both take the whole history as objects in memory; reading it from where it is stored is not in
their figures, while ours are of `assemble`, from the database to the body of the request.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

from chatapp.provider import target_for
from memory import service
from memory.encodings import counter_for
from memory.models import Conversation, Message
from tests.bench.timing import timed

# Seconds after which one call is given up.
PATIENCE = 5.0


class TooSlow(Exception):
    """One call took longer than PATIENCE."""


def run(filled: Mapping[int, Conversation]) -> None:
    """Print how long each takes to choose what fits the budget, by the number of turns."""
    target = target_for("")
    budget = next(iter(filled.values())).budget(target.window).usable
    makers = {"langchain_core": langchain, "llama_index": llama_index}
    there = {name: maker for name, maker in makers.items() if find_spec(name)}
    print(f"choosing what fits {budget:,} tokens, same messages and tokenizer, median (95 %)")
    for name in makers.keys() - there.keys():
        print(f"  {name} is not installed: make bench-setup")
    slow: list[str] = []
    for turns, conversation in filled.items():
        rows = list(conversation.messages.filter(active=True).order_by("position"))
        ours = partial(service.assemble, conversation_id=conversation.pk, target=target)
        actions: dict[str, Callable[[], Any]] = {"Palimpsest, policy window": ours}
        for maker in there.values():
            actions |= maker(rows, budget)
        # What was too slow for a short conversation is not tried on a longer one.
        slow += [name for name, action in actions.items() if name not in slow and _is_slow(action)]
        quick = {name: action for name, action in actions.items() if name not in slow}
        taken = timed({name: partial(_call, action) for name, action in quick.items()})
        for name in actions:
            figures = f"   over {PATIENCE * 1_000:,.0f}" if name in slow else str(taken[name])
            print(f"  {turns:>6,} turns  {name:<40} {figures}", flush=True)


def _call(action: Callable[[], Any], _round: int) -> None:
    with suppress(TooSlow):  # it was not, the first time: then PATIENCE is its figure
        action()


def _is_slow(action: Callable[[], Any]) -> bool:
    try:
        action()
    except TooSlow:
        return True
    return False


def langchain(rows: list[Message], budget: int) -> dict[str, Callable[[], Any]]:
    """`trim_messages`, counting with the tokenizer, and with the counts that we store."""
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, trim_messages

    count = counter_for("").count
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    messages = [
        kinds[row.role](row.content, additional_kwargs={"tokens": row.tokens}) for row in rows
    ]

    def counted(message: BaseMessage) -> int:
        return count(str(message.content))

    def stored(message: BaseMessage) -> int:
        return int(message.additional_kwargs["tokens"])

    return {
        f"LangChain trim_messages, {name}": partial(
            trim_messages,
            messages,
            max_tokens=budget,
            token_counter=counter,
            strategy="last",
            start_on="human",
        )
        for name, counter in (("counting", counted), ("stored counts", stored))
    }


def llama_index(rows: list[Message], budget: int) -> dict[str, Callable[[], Any]]:
    """`ChatMemoryBuffer.get`, which counts the joined text of what is left again and again."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import ChatMemoryBuffer

    count = counter_for("").count
    end = 0.0

    def tokenizer(text: str) -> range:
        if time.monotonic() > end:
            raise TooSlow
        return range(count(text))

    memory = ChatMemoryBuffer.from_defaults(
        chat_history=[ChatMessage(role=row.role, content=row.content) for row in rows],
        token_limit=budget,
        tokenizer_fn=tokenizer,
    )

    def get() -> Any:
        nonlocal end
        end = time.monotonic() + PATIENCE
        return memory.get()

    return {"LlamaIndex ChatMemoryBuffer": get}
