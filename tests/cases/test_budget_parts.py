"""Cases about what shares a request's budget: CT-09, CT-10 and TC-14, on hand-made windows."""

from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from memory.core.budget import Budget
from memory.core.fitting import WindowTooSmall
from memory.core.messages import Message
from memory.core.policy import Policy
from memory.core.presets import PRESETS
from memory.core.window import Context, Segment, Window
from memory.models import Request, Turn
from tests.builders import call, context, history, numbered, reply, result, user
from tests.cases.raw import store_history, strict
from tests.chatapp.helpers import say


def window_of(made: Context) -> Window:
    return made.window(made.plan())


def facts(tokens: int, text: str) -> Segment:
    return Segment("facts", Message("system", text), tokens, "own")


def found(tokens: int, text: str) -> Segment:
    return Segment("retrieved", Message("user", text), tokens, "own")


# Two entries of the ledger of 100 tokens, four snippets of 300, the dearest first.
LEDGER = tuple(facts(100, f"fact {number}") for number in (1, 2))
SNIPPETS = tuple(found(300, f"snippet {number}") for number in range(1, 5))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("usable", "kept_facts", "kept_snippets"),
    [(1_806, 2, 4), (1_805, 2, 3), (1_300, 2, 2), (905, 2, 0), (606, 2, 0), (605, 1, 0),
     (505, 0, 0), (406, 0, 0)],
)  # fmt: skip
def test_ct_09_snippets_go_first_and_then_the_ledger(
    usable: int, kept_facts: int, kept_snippets: int, preset: str
) -> None:
    """Retrieved text over the limit raised an error, so that "hello" was not answered."""
    # 405 tokens for the prompt and one for "hello".
    made = context(
        numbered([user("hello")]), policy=preset, window=usable + 1, reserve=1, system="rule " * 400
    )
    window = window_of(replace(made, parts=LEDGER + SNIPPETS))
    assert [one for one in window.segments if one.kind == "facts"] == list(LEDGER[:kept_facts])
    assert [one for one in window.segments if one.kind == "retrieved"] == (
        list(SNIPPETS[:kept_snippets])
    )
    assert window.segments[-1].message.content == "hello"
    assert window.tokens <= usable
    gone = 100 * (2 - kept_facts) + 300 * (4 - kept_snippets)
    assert [(one.reason, one.tokens) for one in window.left_out] == (
        [("no-room", gone)] if gone else []
    )


# Two results of 60 % of the usable tokens each, in one turn.
USABLE = 4_000
BOTH = [
    user("compare both"),
    call("look", "look"),
    result("alpha " * 2_400, "call_0"),
    result("omega " * 2_400, "call_1"),
]


def tight(messages: list[Message], preset: str, current: int = 1) -> Context:
    return context(
        numbered(messages), policy=preset, window=5_000, reserve=5_000 - USABLE, current=current
    )


def assert_something_of_both(window: Window) -> None:
    first, second = [one for one in window.segments if one.message.role == "tool"]
    assert first.message.content.count("alpha ") >= 3
    assert second.message.content.count("omega ") >= 3
    assert first.whole or second.whole
    assert window.tokens <= USABLE


@pytest.mark.parametrize("preset", PRESETS)
def test_ct_10_of_two_large_results_of_the_running_turn_both_survive(preset: str) -> None:
    """Each passed a limit of its own, but together they left no room, and all was removed."""
    window = window_of(tight(BOTH, preset, current=2))
    assert_something_of_both(window)
    assert window.segments[1].message.content == "compare both"
    assert window.tokens > USABLE * 0.8, "the room is used"


@pytest.mark.parametrize("preset", [name for name in PRESETS if name not in ("full", "rounds")])
def test_ct_10_in_the_turn_after_both_are_still_there(preset: str) -> None:
    """The error blamed the tiny message that came next."""
    window = window_of(tight([*BOTH, reply("They differ."), user("thanks")], preset))
    assert_something_of_both(window)
    assert window.segments[-1].message.content == "thanks"


def test_ct_10_a_policy_of_whole_turns_folds_the_whole_turn() -> None:
    """What does not stay is at least told to the summariser, all of it."""
    plan = tight([*BOTH, reply("They differ."), user("thanks")], "rounds").plan()
    assert (plan.action, plan.trigger, plan.tail) == ("fold", "budget", ())
    assert [one.content for one in plan.head[1].messages[1:]] == [
        "alpha " * 2_400, "omega " * 2_400,
    ]  # fmt: skip


MANY = [user("go"), call(*["look"] * 4_500), *(result("ok", f"call_{n}") for n in range(4_500))]


@pytest.mark.parametrize(
    ("messages", "current", "part", "tokens"),
    [
        # 7 for the prompt, 2 + 4,800 + 2 before "thanks", which is one.
        ([*BOTH, reply("They differ."), user("thanks")], 1, "history", 4_812),
        (MANY, 2, "turn", 4_500),
    ],
)
def test_ct_10_an_error_names_what_is_big_and_not_the_users_message(
    messages: list[Message], current: int, part: str, tokens: int
) -> None:
    """Where nothing can be left out, the reason and its size have to be the real ones."""
    with pytest.raises(WindowTooSmall) as caught:
        window_of(tight(messages, "full", current))
    assert (caught.value.part, caught.value.tokens) == (part, tokens)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("preset", ["window", "hybrid", "hybrid-tokens", "harness"])
async def test_ct_10_the_turn_after_is_answered(
    preset: str, runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """The same over the store and the provider, which counts for itself."""
    conversation = await sync_to_async(make_conversation)(policy={"preset": preset}, window=5_000)
    await sync_to_async(store_history)(conversation, [*BOTH, reply("They differ.")])
    scripted.replies, scripted.summaries = [strict], [429]
    turn = await say(runner, conversation, "thanks")
    assert (await Turn.objects.aget(pk=turn.pk)).state == "complete"
    said = [one["content"] for one in scripted.streamed()[-1]["messages"]]
    assert said[-1] == "thanks"
    assert any("alpha" in (text or "") for text in said)
    assert any("omega" in (text or "") for text in said)
    assert (await Request.objects.alatest("number")).tokens <= 3_976


# A prompt of 3,000 tokens, ten schemas of 300, a ledger, snippets and a history, in a window of
# 8,000 of which 1,000 are for the reply; 80 % of 7,000 are 5,600.
EIGHTY = Policy("hybrid", "summary", trigger_share=0.8, target_share=0.7)


def everything(turns: int) -> Context:
    made = context(
        numbered([*history(turns, words=50), user("w " * 20)]),
        policy=EIGHTY, window=8_000, system="rule " * 2_995,
    )  # fmt: skip
    return replace(
        made,
        budget=Budget(8_000, 1_000),
        tools=10 * 300,
        parts=(facts(200, "ledger"), found(300, "snippet")),
    )


@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_tc_14_all_that_is_sent_counts(turns: int) -> None:
    """Only messages were counted, so a large prompt and many tools overran the window."""
    made = everything(turns)
    costs = made.measure()
    assert costs.total == 3_000 + 3_000 + 500 + 100 * turns + 20
    plan = made.plan()
    window = made.window(plan)
    # Over the trigger already without any history: there is nothing to fold in the first turn.
    assert plan.action == ("fold" if turns else "send")
    assert window.tokens <= 7_000
    sent = sum(one.tokens for one in window.segments)
    assert window.tokens == sent + 3_000


def test_tc_14_compaction_comes_before_the_provider_would_refuse() -> None:
    """With smaller tools the trigger lies well before the limit."""
    small = [replace(everything(turns), tools=500) for turns in range(40)]
    first = next(turns for turns, made in enumerate(small) if made.plan().action == "fold")
    # 3,000 + 500 + 500 + 20 and sixteen turns of 100 are 5,620.
    assert first == 16
    assert small[first].measure().total == 5_620
    assert all(window_of(made).tokens <= 7_000 for made in small)
