"""The last resort for one request: what is shortened, what is left out, what is too big."""

from dataclasses import replace
from typing import Any

import pytest

from memory.core.fitting import WindowTooSmall
from memory.core.messages import Message, ToolCall
from memory.core.window import Context, LeftOut, Segment, SummaryPart, Window
from tests.builders import call, context, history, numbered, reply, result, user


def long(words: int) -> str:
    """Text of so many words that gets cheaper when it is cut."""
    return " ".join(f"word{number:04}" for number in range(words))


def running(*messages: Message, before: int = 0, usable: int = 100, **options: Any) -> Context:
    """A running turn behind so many finished ones of 2 * 10 words."""
    made = numbered([*history(before, words=10), *messages])
    groups = sum(1 for message in messages if message.role != "tool")
    return context(made, current=groups, window=usable + 1, reserve=1, **options)


def window_of(made: Context) -> Window:
    return made.window(made.plan())


def current(window: Window) -> list[Segment]:
    return [segment for segment in window.segments if segment.kind in ("current", "working")]


STEP = [call("find"), result(long(60))]


def test_older_results_of_the_running_turn_are_shortened_first() -> None:
    # 7 for the prompt, 2 for the question, 60 for each result: 100 have room for 31 of the older.
    window = window_of(running(user("find it"), *STEP, *STEP))
    tokens = [segment.tokens for segment in current(window)]
    assert tokens[:2] == [2, 0]
    assert tokens[2] <= 31
    assert tokens[3:] == [0, 60]
    assert [segment.whole for segment in current(window)] == [0, 0, 60, 0, 0]
    assert window.tokens <= 100


def test_the_newest_results_are_shortened_only_where_nothing_else_helps() -> None:
    window = window_of(running(user("find it"), *STEP, call("find"), result(long(95))))
    older, newest = current(window)[2], current(window)[4]
    assert newest.whole == 95
    assert newest.tokens < 95
    assert older.tokens < 60
    assert window.tokens <= 100


def test_what_retrieval_tools_found_gives_way_last() -> None:
    step = [call("find", "read"), result(long(60), "call_0"), result(long(60), "call_1")]
    made = replace(running(user("find it"), *step, usable=125), keep_tools=("find",))
    assert [segment.whole for segment in current(window_of(made))] == [0, 0, 0, 60]


def test_arguments_are_shortened_where_results_do_not_suffice() -> None:
    write = Message("assistant", "", tool_calls=(ToolCall("call_0", "write", f'"{long(300)}"'),))
    made = numbered([user("write it"), write, result("done"), *STEP], plain=False)
    whole = context(made, current=3, window=1_001, reserve=1)
    small = context(made, current=3, window=151, reserve=1)
    assert whole.measure().current > 300
    window = window_of(small)
    assert window.tokens <= 150
    assert [segment.whole > 0 for segment in current(window)] == [False, True, False, False, False]
    assert current(window)[4].message == whole.current[-1].messages[1]


def test_a_running_turn_that_fits_is_left_as_it_is() -> None:
    made = running(user("w " * 33), call("find"), result(long(60)))
    window = window_of(made)
    assert window.tokens == 100
    assert [segment.whole for segment in current(window)] == [0, 0, 0]


def test_history_gives_way_before_the_running_turn_does() -> None:
    window = window_of(running(user("find it"), *STEP, before=3))
    # 100 less 7, 2 and 60: one turn of 20.
    assert [segment.kind for segment in window.segments].count("tail") == 2
    assert window.left_out == (LeftOut("omitted", (1, 2, 3, 4), 40),)
    assert all(segment.whole == 0 for segment in window.segments)


def test_the_summary_gives_way_before_the_running_turn_does() -> None:
    summary = SummaryPart("Ada ordered tea.", 3, 1, 8)
    window = window_of(running(user("find it now"), *STEP, summary=summary))
    # It takes 30 tokens: 7 + 30 + 63 are 100.
    assert (window.left_out, window.tokens) == ((), 100)
    longer = SummaryPart("Ada ordered tea twice.", 3, 1, 8)
    window = window_of(running(user("find it now"), *STEP, summary=longer))
    assert window.left_out == (LeftOut("omitted", (), 31),)
    assert [segment.whole for segment in current(window)] == [0, 0, 0]


def test_the_room_that_shortening_leaves_goes_to_the_summary_then_to_messages() -> None:
    """Cutting is coarse: what a cut result leaves over is used."""
    made = running(
        user("find it"), call("find"), result("x" * 300 + f" {long(300)}"), before=2, usable=140
    )
    window = window_of(made)
    kinds = [segment.kind for segment in window.segments]
    room = 140 - sum(segment.tokens for segment in window.segments if segment.kind != "tail")
    assert kinds.count("tail") == 2 * min(2, room // 20)
    assert window.tokens <= 140


@pytest.mark.parametrize(
    ("system", "question", "part", "tokens"),
    [("be brief", long(110), "message", 110), (long(110), "hi", "system_prompt", 115)],
)
def test_where_nothing_can_be_shortened_the_larger_is_named(
    system: str, question: str, part: str, tokens: int
) -> None:
    with pytest.raises(WindowTooSmall) as raised:
        window_of(running(user(question), system=system))
    error = raised.value
    assert (error.part, error.tokens, error.usable) == (part, tokens, 100)


def test_results_that_cannot_be_shortened_enough_name_the_turn() -> None:
    """The question alone takes nearly all of the room."""
    made = running(user(long(92)), *STEP)
    with pytest.raises(WindowTooSmall) as raised:
        window_of(made)
    assert (raised.value.part, raised.value.tokens) == ("message", 159)


def test_a_policy_that_keeps_everything_still_shortens_the_running_turn() -> None:
    window = window_of(running(user("find it"), *STEP, *STEP, policy="full"))
    assert window.tokens <= 100
    assert current(window)[2].whole == 60


def test_a_policy_that_keeps_everything_names_the_history() -> None:
    made = running(user("find it"), *STEP, before=3, policy="full")
    with pytest.raises(WindowTooSmall, match=r"^history needs 129 tokens, 100 are usable$"):
        window_of(made)


def test_a_planned_fold_that_was_not_committed_shortens_as_planned() -> None:
    """What the plan would keep shortened stays so; what it would fold is sent as far as it fits."""
    messages = [user("q"), reply("a"), user("q"), call("find"), result("x" * 99 + f" {long(900)}")]
    made = context(numbered([*messages, user("now")]), window=601, reserve=1)
    plan = made.plan()
    assert (plan.action, len(plan.head), len(plan.tail)) == ("fold", 3, 1)
    window = made.window(plan)
    tail = [segment for segment in window.segments if segment.kind == "tail"]
    assert [segment.message.position for segment in tail] == [1, 2, 3, 4, 5]
    assert (tail[4].whole, tail[4].tokens < 600) == (901, True)
    assert window.left_out == ()


def test_a_window_leaves_out_what_has_no_room_too() -> None:
    made = context(
        numbered([*history(8, words=10), user("w " * 20)]), policy="window", window=101, reserve=1
    )
    # The last 10 are turns 4 to 8, 100 tokens; 100 less 7 and 20 leave room for three of them.
    assert window_of(made).left_out == (LeftOut("outside-window", tuple(range(1, 11)), 100),)
