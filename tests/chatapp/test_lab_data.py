"""Real dialogues and agent runs through every policy: no request is invalid, none over its budget.

850 conversations with tools: tau-bench's airline runs, Glaive's in English and Chinese, and those
with reasoning. Each goes through every preset once, at a window that changes from preset to preset
and from conversation to conversation: so each of the 30 pairs of preset and window meets a third
of the conversations of each file, and the test takes over a minute of one core instead of four.
The schemas of the tools are no part of these requests.
"""

import re
from collections import Counter as Tally
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memory import lab
from memory.core import carrying
from memory.core.budget import budget_for
from memory.core.presets import PRESETS
from memory.core.tokens import CALL_OVERHEAD, MESSAGE_OVERHEAD, RESULT_OVERHEAD, Counter
from memory.encodings import counter_for
from memory.importing import Conversation, conversations
from memory.lab import Replay, replay
from memory.summarizer import Completion, Ladder

pytestmark = [pytest.mark.data, pytest.mark.long]

WINDOWS = (2_000, 4_000, 16_000)
FILES = {
    "tau_bench_gpt-4o-airline.json": 200,
    "glaive_toolcall_en_demo.json": 300,
    "glaive_toolcall_zh_demo.json": 300,
    "reason_tool_use_demo_50.jsonl": 50,
}
MESSAGE = re.compile(r"<message [^>]*>\n(.*?)\n</message>", re.DOTALL)
SENTENCE = re.compile(r".*?[.!?。！？](?=\s|$)|.+", re.DOTALL)


class Once:
    """A counter that counts no text twice: the same messages meet every policy."""

    def __init__(self, counter: Counter) -> None:
        self.name, self.estimated = counter.name, counter.estimated
        self.count = cache(counter.count)


async def extract(request: Sequence[dict[str, str]], limit: int) -> Completion:
    """The first sentence of each message, as much as a summary may have, at two characters a token
    (two caps are asked for)."""
    texts = MESSAGE.findall(request[1]["content"])
    firsts = [SENTENCE.match(text)[0][:160] for text in texts]  # type: ignore[index]
    return Completion(" ".join(firsts)[: max(40, limit)])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """What is found in a text, and what a text costs, is remembered: both never change."""
    for name in ("spans", "literals"):
        remembered = cache(getattr(carrying, name))
        monkeypatch.setattr(carrying, name, remembered)
    monkeypatch.setattr(lab, "literals", carrying.literals)
    return Once(counter_for(""))


async def replayed(one: Conversation, preset: str, window: int, counter: Counter) -> Replay:
    return await replay(
        one.messages,
        system_prompt=one.system_prompt,
        policy=PRESETS[preset],
        budget=budget_for(window),
        counter=counter,
        complete=extract,
        ladder=Ladder(tries=1),
    )


def cost(wire: Sequence[dict[str, Any]], counter: Counter) -> int:
    """The messages as they are sent, counted anew."""
    tokens = 0
    for message in wire:
        tokens += MESSAGE_OVERHEAD + counter.count(message["content"] or "")
        tokens += RESULT_OVERHEAD if message["role"] == "tool" else 0
        for call in message.get("tool_calls", ()):
            function = call["function"]
            tokens += CALL_OVERHEAD + counter.count(function["name"])
            tokens += counter.count(function["arguments"])
    return tokens


@pytest.mark.parametrize("name", FILES)
async def test_every_request_of_every_policy_is_valid(
    name: str, data: Path, quick: Counter
) -> None:
    found = conversations((data / name).read_bytes(), quick)
    assert len(found) == FILES[name]
    seen: Tally[tuple[str, int]] = Tally()
    refused: Tally[str] = Tally()
    for number, one in enumerate(found):
        for index, preset in enumerate(PRESETS):
            window = WINDOWS[(number + index) % len(WINDOWS)]
            done = await replayed(one, preset, window, quick)
            seen[preset, window] += 1
            where = f"{name}{one.name}, {preset} at {window}"
            assert done.problems == (), where
            assert done.largest <= budget_for(window).usable, where
            asked = [message for message in one.messages if message.role == "assistant"]
            assert done.requests + len(done.refused) == len(asked), where
            assert done.final is None or cost(done.wire, quick) <= done.final.tokens, where
            check_refusals(done, window, where)
            refused.update(refusal.part for refusal in done.refused)
    assert min(seen.values()) >= len(found) // len(WINDOWS)
    named = {"system_prompt", "message", "turn", "history"}
    assert refused.keys() <= named
    if name.startswith("tau"):
        assert refused.keys() == named - {"message"}


def check_refusals(done: Replay, window: int, where: str) -> None:
    """At 2,000 what is usable beside tau-bench's system prompt is 247 tokens, so that the steps of
    a turn are too large."""
    parts = {one.part for one in done.refused}
    if done.policy.older == "keep":
        if window == 16_000:
            assert not parts, where
        return
    assert "history" not in parts, where
    if window != 2_000:
        assert not parts, where
