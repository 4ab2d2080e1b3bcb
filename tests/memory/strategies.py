"""Generated histories and contexts: everything that real transcripts have shown to hold.

A history is drawn step by step from prepared steps: one draw a step keeps the tests quick, and a
failing example shrinks to the steps that matter.
"""

import json
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from memory.core.budget import MIN_WINDOW, budget_for
from memory.core.groups import group
from memory.core.messages import Message, ToolCall
from memory.core.policy import Policy
from memory.core.presets import DEFAULT, PRESETS, policy_from
from memory.core.tokens import Counter, message_tokens
from memory.core.window import Context, Kind, Segment, SummaryPart
from tests.builders import COUNTER, call, numbered, reply, result, user


class HeavyCounter:
    """Counts each word for many tokens: windows as large as real ones with short texts."""

    name, estimated, weight = "heavy", False, 400

    def count(self, text: str) -> int:
        return self.weight * len(text.split())


HEAVY = HeavyCounter()

HOSTILE = (
    "</memory>",
    "<MEMORY kind='x'>",
    "a </transcript> b",
    "<|endoftext|>",
    "<</message</message>",
    "<previous_summary>",
)
TEXTS = (
    "hi",
    "where is order 42 now?",
    "",
    "  \n\n ",
    "我的订单在哪里?退款 128 元。",
    "ок 😀😀 \n\n",
    *HOSTILE,
    "long " * 30,
    "longer " * 60,
)
GIANT = "giant " * 400
WRITE = Message("assistant", "", tool_calls=(ToolCall("w", "write", json.dumps({"text": GIANT})),))
CALLED = (["a"], ["a", "b"], ["a", "a"], [""], ["c", "b", "a"])


def _answers(ids: list[str]) -> tuple[list[str], ...]:
    """The ids of results as they come: all, swapped, none, some, doubled, unknown."""
    return ids, ids[::-1], [], ids[:1], ids * 2, [*ids, "unknown"], ["unknown", *ids]


def _calls(ids: list[str], text: str, answers: list[str]) -> tuple[Message, ...]:
    names = ["query_order"] * len(ids)
    return call(*names, ids=ids, text=text), *(result("ok so", id_) for id_ in answers)


STEPS: tuple[tuple[Message, ...], ...] = (
    *((user(text),) for text in TEXTS),
    *((reply(text),) for text in TEXTS),
    *((user(f"question {text}"), reply(f"answer {text}")) for text in TEXTS),
    *(
        _calls(ids, text, answers)
        for ids, text in product(CALLED, ("", "let me see"))
        for answers in _answers(ids)
    ),
    (call("query_order", ids=["a"]), result(GIANT, "a")),
    (user("write it"), WRITE, result("written", "w"), reply("done")),
    (WRITE, result("written", "w"), WRITE, result(GIANT, "w")),
    (result("stray", "a"),),
    (user(GIANT),),
    (reply(GIANT),),
)
# Calls are many variants of one thing: weigh them against plain turns.
STEP = st.one_of(st.sampled_from(STEPS[: 3 * len(TEXTS)]), st.sampled_from(STEPS))


def histories(least: int = 0, most: int = 24) -> st.SearchStrategy[list[Message]]:
    """A whole transcript. It may begin in the middle of a turn, as one does after an import."""
    steps = st.lists(STEP, min_size=least, max_size=most)
    return steps.map(lambda drawn: [message for step in drawn for message in step])


CAPS = st.sampled_from([50, 50, 200, 500]).map(lambda cap: {"summary_cap": cap})
MAYBE = st.sampled_from([None, None, 1, 3])  # a trigger that most policies do without


def _joined(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda drawn: {k: v for one in drawn for k, v in one.items()})


def _counts(least: int) -> st.SearchStrategy[dict[str, object]]:
    """How many messages stay, and a larger number of them that compacts."""
    pairs = st.tuples(st.integers(2, 8), st.integers(1, 6))
    return pairs.map(lambda pair: {"keep_messages": pair[0], "max_messages": max(least, sum(pair))})


def _shares(
    pairs: list[tuple[float | None, float]], kept: str
) -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(pairs).map(lambda pair: {"trigger_share": pair[0], kept: pair[1]})


def _tokens() -> st.SearchStrategy[dict[str, object]]:
    """Hybrid by tokens, with small windows' sizes of the rungs or without rungs."""
    pairs: list[tuple[float | None, float]] = [(0.7, 0.35), (0.7, 0.6), (0.3, 0.1), (1.0, 0.9)]
    more = {"keep_turns": st.integers(0, 3), "rungs": st.booleans(), "every_turns": MAYBE}
    return _joined(_shares(pairs, "keep_share"), st.fixed_dictionaries(more), CAPS)


HYBRID: list[tuple[float | None, float]] = [
    (0.75, 0.5), (0.75, 0.6), (None, 0.5), (0.3, 0.25), (0.3, 0.1), (1.0, 0.9),
]  # fmt: skip
# A fixed number of tokens: at least eight times the longest summary, or the room that is held back
# for the summary would still grow with the window where the trigger does not.
FIXED = st.sampled_from([4_000, 160_000])
# The parameters of every preset, small enough to matter in short histories.
CHANGES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "full": st.just({}),
    "window": st.integers(2, 12).map(lambda most: {"max_messages": most}),
    "double-window": st.fixed_dictionaries(
        {"max_messages": st.integers(2, 30), "trigger_tokens": st.sampled_from([100, 300, 8_000])}
    ),
    "summary": _joined(_counts(4), CAPS),
    "hybrid": _joined(_counts(3), _shares(HYBRID, "target_share"), CAPS),
    "hybrid-tokens": _tokens(),
    "rounds": st.tuples(st.integers(1, 3), st.integers(1, 3)).map(
        lambda pair: {"fold_turns": pair[0], "max_turns": sum(pair)}
    ),
    "consolidator": _joined(
        _shares([(0.5, 0.3), (0.9, 0.5), (0.3, 0.2)], "target_share"),
        st.fixed_dictionaries(
            {
                "keep_turns": st.integers(0, 5),
                "summary_ratio": st.sampled_from([None, 0.1, 0.3]),
                "unknown_tokens": FIXED,
            }
        ),
        CAPS,
    ),
    "harness": st.fixed_dictionaries(
        {
            "max_messages": st.sampled_from([None, 8, 15, 50]),
            "reserved": st.sampled_from([0, 100, 20_000]),
            "keep_least": st.sampled_from([0, 20, 200]),
            "keep_most": st.sampled_from([200, 300, 8_000]),
            "rungs": st.booleans(),
            "unknown_tokens": FIXED,
            "unknown_messages": st.sampled_from([None, 2, 20]),
            "summary_cap": st.sampled_from([50, 200, 500]),
        }
    ),
    "layered": _tokens(),
}


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Every preset with varied parameters, the default one more often."""
    preset = draw(st.sampled_from([*PRESETS, DEFAULT, DEFAULT]))
    return policy_from({"preset": preset, **draw(CHANGES[preset])})


SUMMARY = st.sampled_from(
    [None, None, *(SummaryPart(text, 2, 1, 20) for text in ("Ada, order 42.", *TEXTS[-8:], GIANT))]
)
SYSTEM = st.sampled_from(["You are helpful."] * 9 + [*TEXTS, GIANT])
# What is usable, in hundredths of what everything would cost: plans differ most around that.
USABLE = st.one_of(st.integers(10, 160), st.integers(90, 110), st.integers(90, 160), st.just(9_999))


def window_for(costs: int, hundredths: int) -> int:
    """The window that leaves about that share of `costs` usable beside a reserve of a quarter."""
    return max(MIN_WINDOW, costs * hundredths // 75)


def _part(kind: Kind, text: str, counter: Counter) -> Segment:
    message = Message("system" if kind == "facts" else "user", text)
    return Segment(kind, message, message_tokens(message, counter), "own")


# Further parts of the memory, and what the tools' schemas cost in tokens: mostly none.
PARTS = st.sampled_from(
    [(), (), (), (("facts", "Ada likes tea."),), (("retrieved", "long " * 30), ("facts", "Ada."))]
)
TOOLS = st.sampled_from([0, 0, 0, 20, 150])


@st.composite
def contexts(
    draw: st.DrawFn, *, counter: Counter = COUNTER, running: bool | None = None
) -> Context:
    """Everything one request is made of; `running`: whether its last turn is the current one."""
    summary = draw(SUMMARY)
    messages = draw(st.one_of(histories(), histories(least=12)))
    is_running = draw(st.booleans()) if running is None else running
    prior = len(messages)
    if is_running:
        messages.append(user(draw(st.sampled_from((*TEXTS, GIANT)))))
        messages += [one for one in draw(histories(most=3)) if one.role != "user"]
    first = summary.last + 1 if summary else 1
    done = numbered(messages, first=first, plain=False, counter=counter)
    made = Context(
        system_prompt=draw(SYSTEM),
        summary=summary,
        prior=group(done[:prior]),
        current=group(done[prior:]),
        policy=draw(policies()),
        budget=budget_for(MIN_WINDOW),
        counter=counter,
        parts=tuple(_part(kind, text, counter) for kind, text in draw(PARTS)),
        tools=draw(TOOLS),
    )
    window = window_for(made.measure().total, draw(USABLE))
    known = draw(st.sampled_from([True, True, False]))
    return replace(made, budget=budget_for(window, known=known))
