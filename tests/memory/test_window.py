"""The context window: its segments, what is left out, and what does not fit at all."""

from dataclasses import replace

import pytest

from memory.core.carrying import Candidate
from memory.core.fitting import WindowTooSmall
from memory.core.literals import Literal
from memory.core.messages import Message
from memory.core.window import Context, LeftOut, Segment, SummaryPart, Window
from tests.builders import call, context, history, numbered, reply, result, user

SUMMARY = SummaryPart("Ada ordered tea.", 3, 1, 8)


def window_of(made: Context) -> Window:
    return made.window(made.plan())


def kinds(window: Window) -> list[str]:
    return [segment.kind for segment in window.segments]


def test_the_parts_stand_in_order_with_their_reasons() -> None:
    window = window_of(context(numbered([*history(1), user("now")], first=9), summary=SUMMARY))
    assert [(one.kind, one.why) for one in window.segments] == [
        ("system", "system-prompt"),
        ("summary", "folded"),
        ("tail", "not-folded"),
        ("tail", "not-folded"),
        ("current", "current-turn"),
    ]
    # "be brief" 2 + 5; the summary with preamble 17, fence 5, text 3, 5; 3, 3 and 1 as they stand.
    assert [one.tokens for one in window.segments] == [7, 30, 3, 3, 1]
    assert window.tokens == 44
    assert window.left_out == ()


def test_a_summary_names_its_version_and_range_and_is_fenced() -> None:
    segment = window_of(context([], current=0, summary=SUMMARY)).segments[1]
    assert (segment.version, segment.first, segment.last) == (3, 1, 8)
    assert segment.message.content.endswith(
        '\n<memory kind="summary" version="3" positions="1-8">\nAda ordered tea.\n</memory>'
    )


def test_an_empty_conversation_without_a_prompt_has_no_segments() -> None:
    window = window_of(context([], current=0, system=""))
    assert (window.segments, window.tokens) == ((), 0)


@pytest.mark.parametrize(
    ("policy", "why"), [("full", "everything"), ("window", "within-last"), ("hybrid", "not-folded")]
)
def test_a_tail_says_why_it_is_there(policy: str, why: str) -> None:
    window = window_of(context(history(1), policy=policy, current=0))
    assert [one.why for one in window.segments[1:]] == [why, why]


def test_a_window_lists_what_is_outside() -> None:
    window = window_of(context(numbered([*history(6), user("now")]), policy="window"))
    assert window.left_out == (LeftOut("outside-window", (1, 2), 6),)
    assert [one.message.position for one in window.segments[1:]] == list(range(3, 14))


def test_a_fold_that_was_not_committed_still_sends_what_fits() -> None:
    made = context(numbered([*history(6), user("now")]))
    assert made.plan().action == "fold"
    assert kinds(window_of(made)).count("tail") == 12


def test_the_oldest_turns_are_omitted_where_there_is_no_room() -> None:
    # usable 100: prompt 2 + 5, current 1; 92 for turns of 20 words: four.
    made = context(numbered([*history(6, words=10), user("now")]), window=101, reserve=1)
    window = window_of(made)
    assert window.left_out == (LeftOut("omitted", (1, 2, 3, 4), 40),)
    assert window.tokens == 7 + 80 + 1


def test_omitting_stops_only_where_a_tail_may_begin() -> None:
    # usable 90: 82 for turns of 20 words. Without the reply of turn 2 one more would fit.
    made = context(numbered([*history(4, words=10), user("w " * 9)]), window=91, reserve=1)
    window = window_of(made)
    # 90 - 7 - 9 = 74: three turns are 60, three and a reply 70.
    assert window.left_out == (LeftOut("omitted", (1, 2), 20),)


def test_a_summary_that_does_not_fit_is_left_out_and_listed() -> None:
    made = context(numbered([*history(1), user("w " * 40)]), summary=SUMMARY, window=64, reserve=1)
    window = window_of(made)
    assert kinds(window) == ["system", "tail", "tail", "current"]
    assert window.left_out == (LeftOut("omitted", (), 30),)


def test_a_summary_goes_before_old_messages() -> None:
    made = context(numbered([*history(4), user("w " * 20)]), summary=SUMMARY, window=65, reserve=1)
    window = window_of(made)
    # 64 - 7 - 20 - 30 = 7: one turn.
    assert kinds(window) == ["system", "summary", "tail", "tail", "current"]
    assert window.left_out == (LeftOut("omitted", (1, 2, 3, 4, 5, 6), 18),)


def test_stray_results_are_listed_with_their_tokens() -> None:
    messages = [user("q"), call("x"), result("one"), result("one more"), reply("a"), result("two")]
    window = window_of(context(numbered(messages), current=0))
    assert window.left_out == (LeftOut("orphan", (4, 6), 3),)
    assert [one.message.position for one in window.segments[1:]] == [1, 2, 3, 5]


def test_a_stub_is_marked_as_made() -> None:
    window = window_of(context(numbered([user("q"), call("x")]), current=2))
    assert [segment.made for segment in window.segments] == [False, False, False, True]


@pytest.mark.parametrize(
    ("system", "current", "part", "tokens"),
    [
        ("w " * 100, "hi", "system_prompt", 105),
        ("hi", "w " * 100, "message", 106),
        ("w " * 60, "w " * 1_000, "message", 1_000),
        ("w " * 70, "w " * 60, "system_prompt", 135),
    ],
)
def test_what_is_too_big_is_named(system: str, current: str, part: str, tokens: int) -> None:
    made = context(numbered([user(current)]), system=system, window=101, reserve=1)
    with pytest.raises(WindowTooSmall) as raised:
        window_of(made)
    error = raised.value
    assert (error.part, error.tokens, error.usable) == (part, tokens, 100)
    assert str(error) == f"{part} needs {tokens} tokens, 100 are usable"


def test_a_prompt_that_does_not_fit_is_named_while_nothing_runs() -> None:
    made = context(history(2), current=0, system="w " * 100, window=101, reserve=1)
    with pytest.raises(WindowTooSmall, match=r"^system_prompt needs 105 tokens"):
        window_of(made)


def test_full_history_that_does_not_fit_is_an_error() -> None:
    made = context(numbered([*history(6, words=10), user("now")]), policy="full", window=101,
                   reserve=1)  # fmt: skip
    with pytest.raises(WindowTooSmall, match=r"^history needs 128 tokens, 100 are usable$"):
        window_of(made)


def test_a_request_may_fill_what_is_usable_to_the_last_token() -> None:
    exact = context(numbered([user("w " * 93)]), window=101, reserve=1)
    assert window_of(exact).tokens == 100
    with pytest.raises(WindowTooSmall):
        window_of(context(numbered([user("w " * 94)]), window=101, reserve=1))


FACTS = Segment("facts", Message("system", "Ada likes tea."), 8, "own")
FOUND = Segment("retrieved", Message("user", "In May she asked for green tea."), 12, "own")


def with_parts(made: Context, *, tools: int = 0) -> Context:
    return replace(made, parts=(FACTS, FOUND), tools=tools)


def test_facts_stand_before_the_summary_and_what_was_found_before_the_current_turn() -> None:
    made = context(numbered([*history(1), user("now")], first=9), summary=SUMMARY)
    window = window_of(with_parts(made))
    assert kinds(window) == ["system", "facts", "summary", "tail", "tail", "retrieved", "current"]
    assert window.tokens == 44 + 8 + 12


def test_parts_without_room_go_the_last_first_and_are_listed() -> None:
    # 7 for the prompt, 8 and 12 for the parts: 100 leave 73 for the question beside both.
    for size, kept, left in ((73, 2, 0), (74, 1, 12), (85, 1, 12), (86, 0, 20), (93, 0, 20)):
        made = context(numbered([user("w " * size)]), window=101, reserve=1)
        window = window_of(with_parts(made))
        assert [one.kind for one in window.segments if one in (FACTS, FOUND)] == (
            ["facts", "retrieved"][:kept]
        )
        assert window.left_out == ((LeftOut("no-room", (), left),) if left else ())
        assert window.tokens <= 100


def test_the_schemas_of_tools_count() -> None:
    made = context(numbered([*history(6, words=10), user("now")]), window=101, reserve=1)
    window = window_of(replace(made, tools=30))
    # 100 less 7, 1 and 30: three turns of 20.
    assert kinds(window).count("tail") == 6
    assert (window.tools, window.tokens) == (30, 7 + 30 + 60 + 1)
    assert replace(made, tools=30).measure().fixed == 37


def test_tools_that_are_too_large_are_named() -> None:
    made = context(numbered([user("w " * 40)]), window=101, reserve=1)
    assert window_of(replace(made, tools=53)).tokens == 100
    with pytest.raises(WindowTooSmall, match=r"^tools needs 101 tokens, 100 are usable$"):
        window_of(replace(made, tools=54))
    with pytest.raises(WindowTooSmall, match=r"^message needs 121 tokens"):
        window_of(replace(context(numbered([user("w " * 60)]), window=101, reserve=1), tools=54))


def test_a_summary_says_what_it_lost_and_where_the_messages_are() -> None:
    carried = (
        Candidate(Literal("id", "#W23"), 3, 1),
        Candidate(Literal("amount", "$5"), 2, 1),
        Candidate(Literal("id", "#W99"), 1, 1),
    )
    part = replace(SUMMARY, candidates=carried, fitting=2, file="var/1.jsonl")
    text = window_of(context([], current=0, summary=part)).segments[1].message.content
    assert text.endswith(
        "Ada ordered tea.\n\n"
        "Exact values from the summarised messages:\n- id: #W23\n- amount: $5\n\n"
        "The summarised messages are kept word for word in var/1.jsonl.\n</memory>"
    )
    assert "#W99" not in text
