"""Generated histories and contexts: everything that real transcripts have shown to hold.

A history is drawn step by step from prepared steps: one draw a step keeps the tests quick, and a
failing example shrinks to the steps that matter.
"""

from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from memory.core.budget import MIN_WINDOW, budget_for
from memory.core.groups import group
from memory.core.messages import Message
from memory.core.policy import Policy, policy_from
from memory.core.tokens import Counter
from memory.core.window import Context, SummaryPart
from tests.builders import COUNTER, call, numbered, reply, result, user

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


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    preset = draw(st.sampled_from(["hybrid", "hybrid", "hybrid", "window", "window", "full"]))
    changes: dict[str, object] = {"preset": preset}
    if preset == "window":
        changes["max_messages"] = draw(st.integers(2, 12))
    if preset == "hybrid":
        keep = draw(st.integers(2, 8))
        changes |= {"keep_messages": keep, "max_messages": draw(st.integers(keep + 1, 14))}
        changes["summary_cap"] = draw(st.sampled_from([50, 50, 200, 500]))
        shares = [(0.75, 0.5), (0.75, 0.6), (None, 0.5), (0.3, 0.25), (0.3, 0.1), (1.0, 0.9)]
        changes["trigger_share"], changes["target_share"] = draw(st.sampled_from(shares))
    return policy_from(changes)


SUMMARY = st.sampled_from(
    [None, None, *(SummaryPart(text, 2, 1, 20) for text in ("Ada, order 42.", *TEXTS[-8:], GIANT))]
)
SYSTEM = st.sampled_from(["You are helpful."] * 9 + [*TEXTS, GIANT])
# What is usable, in hundredths of what everything would cost: plans differ most around that.
USABLE = st.one_of(st.integers(10, 160), st.integers(90, 110), st.integers(90, 160), st.just(9_999))


def window_for(costs: int, hundredths: int) -> int:
    """The window that leaves about that share of `costs` usable beside a reserve of a quarter."""
    return max(MIN_WINDOW, costs * hundredths // 75)


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
    )
    window = window_for(made.measure().total, draw(USABLE))
    return replace(made, budget=budget_for(window))
