"""Shortening, by properties."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import budget_for
from memory.core.clipping import cut_middle
from memory.core.groups import Group, sendable
from memory.core.messages import Message, ToolCall
from memory.core.shortening import (
    NOTHING,
    Shortened,
    apply,
    prune_results,
    shorten_arguments,
    shorten_groups,
    sizes_for,
)
from memory.core.tokens import Counter
from memory.encodings import counter_for
from tests.builders import COUNTER, reply, result, user
from tests.memory.shortened import (
    CHARACTERS,
    FAMILY,
    cost,
    groups_of,
    marker,
)

# Properties

PIECES = (
    "",
    " \n" * 300,
    "ok",
    "退款 128 元 " * 60,
    FAMILY * 90,
    "word " * 700,
    "x" * 9_000,
    "é" * 900,
)
LONG = {"text": "a" * 2_500, "list": ["b" * 500, {"c": 'd"\n' * 400}], "n": 1.5}
ARGUMENTS = (
    "{}",
    "",
    json.dumps(LONG),
    json.dumps(LONG)[:3_000],
    '{"x": NaN, "y": "' + "é" * 400 + '"}',
)
IDS = st.sampled_from("aab")
CALLS = st.builds(ToolCall, IDS, st.sampled_from(["bash", "read_file"]), st.sampled_from(ARGUMENTS))
RESULTS = st.builds(result, st.sampled_from(PIECES), st.sampled_from("aabz"))
CALLED = st.builds(
    lambda text, calls, results: [Message("assistant", text, tool_calls=tuple(calls)), *results],
    st.sampled_from(PIECES[:4]),
    st.lists(CALLS, min_size=1, max_size=3),
    st.lists(RESULTS, max_size=4),
)
# What cannot be shortened is short, or nearly nothing could be made to fit.
PLAIN = [[user(text)] for text in PIECES[:4]] + [[reply(text)] for text in PIECES[:4]]
STEPS = st.one_of(CALLED, CALLED, st.sampled_from([*PLAIN, [result("x" * 9_000, "a")]]))
COUNTERS = st.sampled_from([CHARACTERS, COUNTER, counter_for("gpt-4o")])
WINDOWS = st.sampled_from([64, 500, 2_048, 8_192, 32_768, 128_000])
# Hundredths of what everything costs.
SHARES = st.one_of(st.integers(0, 100), st.integers(50, 100), st.integers(80, 100))
KEEP = st.sampled_from([(), ("read_file",)])


@st.composite
def histories(draw: st.DrawFn, least: int = 0) -> tuple[tuple[Group, ...], Counter]:
    counter = draw(COUNTERS)
    steps = draw(st.lists(STEPS, min_size=least, max_size=least + 6))
    return groups_of(*(one for step in steps for one in step), counter=counter), counter


def rungs(groups: Sequence[Group], window: int, counter: Counter) -> Shortened:
    sizes = sizes_for(budget_for(window))
    pruned = prune_results(groups, sizes, counter, ("read_file",))
    return shorten_arguments(groups, sizes, counter) | pruned


def texts(message: Message) -> list[str]:
    return [message.content, *(one.arguments for one in message.tool_calls)]


def left_out(message: Message) -> int:
    """How many characters the markers of the message say are missing."""
    found = re.findall(r"\[… ([\d,]+) characters left out", " ".join(texts(message)))
    return sum(int(number.replace(",", "")) for number in found)


def assert_intact(groups: Sequence[Group], shortened: Shortened, counter: Counter) -> None:
    """Only contents of results and arguments differ, are cheaper, and say what is missing."""
    done = apply(groups, shortened)
    before = [message for members in groups for message in members.messages]
    after = [message for members in done for message in members.messages]
    for old, new in zip(before, after, strict=True):
        assert (new == old) == (old.position not in shortened)
        blank = tuple(replace(one, arguments="") for one in old.tool_calls)
        assert blank == tuple(replace(one, arguments="") for one in new.tool_calls)
        assert (
            replace(new, content=old.content, tool_calls=old.tool_calls, tokens=old.tokens) == old
        )
        if new == old:
            continue
        assert new.tokens < old.tokens
        if new.content == NOTHING:
            continue
        assert left_out(new) > 0
        if new.role == "tool":
            head, tail = re.split(r"\n\[…[^]]*\]\n", new.content)
            assert old.content.startswith(head)
            assert old.content.endswith(tail)
            assert len(head) + left_out(new) + len(tail) == len(old.content)
        else:
            assert new.content == old.content
            for call_, was in zip(new.tool_calls, old.tool_calls, strict=True):
                assert call_ == was or json.loads(call_.arguments)
    for now, was in zip(done, groups, strict=True):
        assert [
            (one.role, one.position, one.tool_call_id) for one, _ in sendable(now, counter)
        ] == [(one.role, one.position, one.tool_call_id) for one, _ in sendable(was, counter)]


def assert_keeps_no_less(more: Shortened, less: Shortened) -> None:
    for position, message in more.items():
        if less[position].content == NOTHING:
            continue
        assert message.content != NOTHING
        assert left_out(message) <= left_out(less[position])


@given(st.one_of(histories(), histories(12)), WINDOWS)
def test_the_rungs_break_nothing(drawn: tuple[tuple[Group, ...], Counter], window: int) -> None:
    groups, counter = drawn
    shortened = rungs(groups, window, counter)
    assert_intact(groups, shortened, counter)
    if groups and groups[-1].messages[0].tool_calls:
        assert not shortened.keys() & {one.position for one in groups[-1].messages}


@given(st.one_of(histories(), histories(12)), WINDOWS)
def test_the_rungs_find_nothing_more_the_second_time(
    drawn: tuple[tuple[Group, ...], Counter], window: int
) -> None:
    groups, counter = drawn
    assert rungs(apply(groups, rungs(groups, window, counter)), window, counter) == {}


@given(st.one_of(histories(), histories(12)), WINDOWS, WINDOWS)
def test_a_larger_budget_never_shortens_more(
    drawn: tuple[tuple[Group, ...], Counter], one: int, other: int
) -> None:
    groups, counter = drawn
    small, large = sorted((one, other))
    assert_keeps_no_less(rungs(groups, large, counter), rungs(groups, small, counter))


@given(histories(1), SHARES, KEEP)
def test_what_was_made_to_fit_fits_and_is_intact(
    drawn: tuple[tuple[Group, ...], Counter], share: int, keep: tuple[str, ...]
) -> None:
    groups, counter = drawn
    room = cost(groups, counter) * share // 100
    shortened = shorten_groups(groups, room, counter, keep)
    if shortened is None:
        return
    assert cost(apply(groups, shortened), counter) <= room
    assert_intact(groups, shortened, counter)
    calls = [members for members in groups if members.messages[0].tool_calls]
    newest = {one.position for one in calls[-1].messages} if calls else set()
    if shortened.keys() & newest:
        # It is the last to give way: without it nothing in the others is left to shorten.
        others = {at: one for at, one in shortened.items() if at not in newest}
        assert cost(apply(groups, others), counter) > room


@given(histories(1), SHARES, SHARES, KEEP)
def test_a_larger_room_never_keeps_less(
    drawn: tuple[tuple[Group, ...], Counter],
    one: int,
    other: int,
    keep: tuple[str, ...],
) -> None:
    groups, counter = drawn
    rooms = [cost(groups, counter) * share // 100 for share in sorted((one, other))]
    small, large = (shorten_groups(groups, room, counter, keep) for room in rooms)
    if small is not None:
        assert large is not None
        assert_keeps_no_less(large, small)


@given(
    st.lists(st.sampled_from([*PIECES, marker("7"), marker("1,000"), "\n", "\u200d", "🇩🇪"])).map(
        "".join
    ),
    st.integers(0, 300),
    st.integers(0, 300),
)
def test_a_cut_text_is_not_cut_again(text: str, head: int, tail: int) -> None:
    cut = cut_middle(text, head, tail)
    assert cut_middle(cut, head, tail) == cut
    assert cut == text or len(cut) < len(text)
    assert cut[: head - 100 if head > 100 else 0] == text[: head - 100 if head > 100 else 0]
