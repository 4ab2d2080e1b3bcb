"""The worked examples of S2: half of the window triggers, three fifths of that stay, the boundary
is kept and only what is new is read.
"""

from collections.abc import Sequence

import pytest

from memory.core.budget import Budget
from memory.core.checking import ARCHIVE_MESSAGE, archive
from memory.core.groups import positions
from memory.core.limits import limits, summary_cap, token_trigger
from memory.core.messages import Message
from memory.core.presets import PRESETS
from tests.builders import COUNTER, call, numbered, reply, result, user
from tests.memory.talks import Talk, shape, talk

# The article's window of 160,000 with a reserve of 1,000.
BUDGET = Budget(160_000, 1_000)
# Twelve turns of 84,000 tokens, over the trigger of 80,000: 1 to 8, 9, and 10 to 12.
SIZES = (4_000,) * 8 + (10_000,) + (14_000,) * 3


def twelve(sizes: Sequence[int], **changes: object) -> Talk:
    """A talk with turns of so many tokens, half the question's and half the answer's, of which
    none was sent yet, and a 13th question."""
    made = talk("consolidator", BUDGET, **changes)
    for turn, size in enumerate(sizes, 1):
        made.say(user(f"q{turn} " * (size // 2)), reply(f"a{turn} " * (size // 2)))
    made.say(user("third"))
    return made


def test_half_of_the_window_triggers_and_three_fifths_of_that_stay() -> None:
    policy = PRESETS["consolidator"]
    assert token_trigger(policy, BUDGET) == 80_000
    assert limits(policy, BUDGET).target == 48_000


def test_the_13th_turn_folds_18_messages_and_leaves_a_window_of_nine() -> None:
    """The example, whose listing says "16 messages" and "eight" for what it shows: turns 1 to 9 are
    18 messages; system, summary, three turns and the question are nine. Step 3 alone fills the
    target from the end: 48,000 less 1,580 for the summary hold turns 10 to 12, not 9."""
    made = twelve(SIZES, keep_turns=0)
    window = made.request()
    plan, _ = made.requests[0]
    assert plan.trigger == "tokens"
    assert made.folds == {1: list(range(1, 19))}
    kept = ["q10", "a10", "q11", "a11", "q12", "a12"]
    assert shape(window) == ["system", "summary", *kept, "third"]
    assert len(window.segments) == 9


def test_five_turns_stay_where_they_fit_under_the_trigger() -> None:
    """The article's other mode keeps the newest five whole; here both are one policy."""
    made = twelve(SIZES)
    made.request()
    # 8 to 12 are 56,000: over the target, but with summary and question under 80,000.
    assert positions(made.requests[0][0].tail) == tuple(range(15, 25))


def test_as_many_of_the_five_stay_as_fit() -> None:
    """Three of 19,000 and not the fourth: the example again, by the whole rule. Of the trigger's
    80,000 a tenth of what is usable is kept for literals."""
    made = twelve((4_000,) * 8 + (10_000,) + (19_000,) * 3)
    window = made.request()
    assert made.folds == {1: list(range(1, 19))}
    assert len(window.segments) == 9


def test_below_the_trigger_everything_goes_through_as_it_is() -> None:
    made = twelve((6_600,) * 12)
    # 79,200, the prompt's 7 and the question.
    window = made.request()
    assert (made.folds, len(window.segments)) == ({}, 1 + 24 + 1)


def test_the_boundary_moves_on_and_only_what_is_new_is_read() -> None:
    made = talk("consolidator", Budget(1_000, 100), keep_turns=2, summary_cap=50)
    read: list[list[int]] = []

    def summarise(previous: str, folded: Sequence[Message]) -> str:
        read.append([message.position for message in folded])
        return f"{previous} {folded[-1].position}".strip()

    made.summarise = summarise
    boundaries = []
    for _ in range(60):
        made.turns(1, words=40)
        boundaries.append(made.summary.last if made.summary else 0)
    assert len(read) >= 3
    assert boundaries == sorted(boundaries)
    # Each message is read once, in order, however long the conversation gets.
    assert [position for one in read for position in one] == list(range(1, boundaries[-1] + 1))
    assert all(len(one) <= len(read[0]) for one in read)
    # And each summary holds what the one before it said.
    assert made.summary is not None
    assert made.summary.text == " ".join(str(one[-1]) for one in read)


def test_three_requests_never_fold_the_current_turn() -> None:
    """The current turn grows by calls and results; what is folded is always before it."""
    made = twelve(SIZES, keep_turns=0)
    first = made.request()
    made.say(call("find"), result("r " * 40_000))
    second = made.request()
    made.say(call("find"), result("r " * 30_000))
    third = made.request()
    question = 25
    assert list(made.folds) == [1, 2]
    assert made.folds[1] == list(range(1, 19))
    # With a result of 40,000 the target of 48,000 has no room for turn 12.
    assert made.folds[2] == list(range(19, 25))
    for window in (first, second, third):
        current = [one.message.position for one in window.segments if one.kind == "current"]
        assert current[0] == question
        assert made.summary is not None
        assert made.summary.last < question
    assert len(third.segments) == 2 + 5
    assert [len(plan.head) for plan, _ in made.requests] == [18, 6, 0]


def test_a_call_and_its_results_are_folded_or_kept_together() -> None:
    made = talk("consolidator", Budget(1_000, 100), keep_turns=0, summary_cap=50)
    for turn in range(4):
        made.say(user("q"), call("kb", "kb", text="let me see"))
        made.say(result("r " * 90, "call_0"), result("r " * 90, f"call_{turn % 2}"), reply("done"))
    made.say(user("and now"))
    made.request()
    plan, _ = made.requests[0]
    assert plan.action == "fold"
    for members in plan.head + plan.tail:
        roles = [message.role for message in members.messages]
        assert roles in (["user"], ["assistant"], ["assistant", "tool", "tool"])


@pytest.mark.parametrize(("source", "cap"), [(4_000, 1_200), (100_000, 1_500), (60, 50)])
def test_a_summary_has_at_most_three_tenths_of_its_source(source: int, cap: int) -> None:
    assert summary_cap(PRESETS["consolidator"], BUDGET, source) == cap


def test_an_archive_keeps_the_old_summary_and_appends_what_is_new() -> None:
    """Where no model answers: each message by its role, cut to 500 characters."""
    messages = numbered([user("the XX rules?"), call("kb_search", text="let me see"),
                         result("x" * 900), reply("They say so.")])  # fmt: skip
    text = archive("Ada asked for YY.", messages, cap=500, counter=COUNTER, limit=ARCHIVE_MESSAGE)
    lines = text.splitlines()
    assert lines[:3] == [
        "Ada asked for YY.",
        "- user: the XX rules?",
        "- assistant: [calls kb_search] let me see",
    ]
    assert lines[3] == "- tool: " + "x" * 499 + "…"
    assert lines[4] == "- assistant: They say so."


def test_where_the_window_is_not_known_it_is_taken_for_160000() -> None:
    assumed = Budget(400_000, 1_000, known=False)
    assert token_trigger(PRESETS["consolidator"], assumed) == 80_000
    assert limits(PRESETS["consolidator"], assumed).target == 48_000
