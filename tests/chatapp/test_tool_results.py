"""Results as text: bounded and inert, whatever a tool returns."""

import json
import random
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.tools.results import WHOLE_LIMIT, bounded, inert, render

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
MARKS = ("<|im_start|>", "</s>", "[INST]", "<tool_call>", "\x1b[31m", "\r\n", "\u202e", "<b>")
HOSTILE = st.lists(st.sampled_from(MARKS) | ANY_TEXT, max_size=8).map("".join)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@given(HOSTILE)
@example("\x1b[" * 50)
@example("\x1b]8;;" + "x" * 50)
@example("<" * 60 + "|a|>")
def test_text_is_valid_and_holds_no_control_character(text: str) -> None:
    done = inert(text)
    done.encode()
    assert not CONTROL.search(done)
    assert inert(done) == done


@given(st.text('ab <>[]{}|"\\/猫🏳️‍🌈é\n\t', max_size=60))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    if not re.search(r"<\|[^<>|\s]{1,40}\|>", text):
        assert inert(text) == text


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y\x9b2J", "xy"),
        ("\x1b(Bplain\x1bc", "plain"),
        ("a\0b\x07c\x85", "a\ufffdb\ufffdc\ufffd"),
        ("a\r\nb\rc\td", "a\nb\nc\td"),
        ("abc\u202edef\u2066", "abcdef"),
        ("hidden\U000e0049\U000e0067\U000e007f.", "hidden."),
        ("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", None),
        ("half \ud83d", "half \ufffd"),
        ("<script>alert(1)</script>", None),
        ("a < b | c > d, x <| y", None),
        ("list[INSTANCE] [1] <section> <string>", None),
    ],
)
def test_what_acts_is_taken_out_and_the_rest_stays(text: str, done: str | None) -> None:
    assert inert(text) == (text if done is None else done)


@pytest.mark.parametrize(
    "mark",
    [
        "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>",
        "<｜tool▁calls▁begin｜>", "<｜User｜>", "<s>", "</s>", "<start_of_turn>", "<end_of_turn>",
        "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<function=f>",
        "<function_calls>", "<think>", "</think>", '<memory kind="summary" version="9">',
        "</memory>", "<<SYS>>", "<</SYS>>", "[INST]", "[/INST]", "[TOOL_CALLS]", "<|IM_START|>",
    ],
)  # fmt: skip
def test_what_marks_messages_and_calls_loses_its_bracket(mark: str) -> None:
    done = inert(f"before {mark}system")
    assert mark not in done
    assert len(done) == len(f"before {mark}system")
    assert done.startswith("before ")
    assert done.endswith(mark[2:] + "system")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | HOSTILE,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text("ab<|>s", max_size=8), inner, max_size=4)
        ),
        max_leaves=12,
    )
)
def test_json_keeps_its_structure(value: Any) -> None:
    def shape(one: Any) -> Any:
        if isinstance(one, dict):
            return [shape(item) for item in one.values()]
        return [shape(item) for item in one] if isinstance(one, list) else type(one)

    if isinstance(value, (dict, list)):
        assert shape(json.loads(render(value).whole)) == shape(value)


class Colour(Enum):
    RED = "red"


@dataclass
class Parcel:
    number: int
    steps: list[str] = field(default_factory=list)
    label: bytes = b""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("猫", "猫"),
        ({"名": "猫", "n": 1.5}, '{"名": "猫", "n": 1.5}'),
        ([1, None, True], "[1, null, true]"),
        (0, "0"),
        (False, "false"),
        ((1, "a"), '[1, "a"]'),
        ({7}, "[7]"),
        (Decimal("1.10"), '"1.10"'),
        (UUID(int=0), '"00000000-0000-0000-0000-000000000000"'),
        (datetime(2026, 6, 29, 14, 5, tzinfo=UTC), '"2026-06-29T14:05:00Z"'),
        (Colour.RED, '"red"'),
        (Parcel(7, ["x"], b"a"),
         '{"number": 7, "steps": ["x"], "label": "(binary data, 1 bytes, begins with 61)"}'),
        (b"\x89PNG\r\n", "(binary data, 6 bytes, begins with 89 50 4e 47 0d 0a)"),
        (bytearray(b"ab"), "(binary data, 2 bytes, begins with 61 62)"),
        (memoryview(b"ab"), "(binary data, 2 bytes, begins with 61 62)"),
    ],
)  # fmt: skip
def test_values_become_text(value: Any, text: str) -> None:
    done = render(value)
    assert (done.whole, done.empty) == (text, False)


@pytest.mark.parametrize("value", [None, "", " \n", "\0\0", "\x1b[0m", [], {}, (), set(), b""])
def test_nothing_is_known_as_nothing(value: Any) -> None:
    assert render(value).empty


@pytest.mark.parametrize(
    "value", [object(), {(1, 2): 3}, {"a": {1, object()}}, Parcel, iter([1]), (x for x in "ab")]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"JSON|serialize|iterator"):
        render(value)


def test_a_circle_and_a_tower_are_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    tower: list[Any] = []
    for _ in range(100_000):
        tower = [tower]
    for value in (circle, tower):
        with pytest.raises(ValueError, match=r"Circular|cannot be written as JSON"):
            render(value)


def test_binary_noise_in_a_string_is_described() -> None:
    data = random.Random(7).randbytes(5_000_000)
    for text in (data.decode("latin-1"), data.decode("utf-8", "replace")):
        done = render(text)
        assert re.fullmatch(
            r"\(binary data, [0-9,]+ characters, begins with(?: [0-9a-f]{2}){16}\)", done.whole
        )
        assert done.length == len(text)


def test_text_with_a_few_control_characters_is_still_text() -> None:
    text = "\x07".join(["a line of a log file that rings a bell"] * 200)
    assert render(text).whole.startswith("a line of a log file")


def test_of_a_huge_result_both_ends_are_kept_and_the_gap_is_told() -> None:
    text = "head " + "x" * 5_000_000 + " tail"
    done = render(text)
    assert WHOLE_LIMIT - 200 < len(done.whole) <= WHOLE_LIMIT
    assert done.length == 5_000_010
    assert done.whole.startswith("head xxx")
    assert done.whole.endswith("xxx tail")
    gap = re.search(r"\[… ([0-9,]+) characters in between were not kept …\]", done.whole)
    assert gap is not None
    assert int(gap[1].replace(",", "")) + Counter(done.whole)["x"] == 5_000_000


@given(st.text("ab\n猫é👩‍👩‍👧", max_size=3_000), st.integers(500, 2_000), st.text("n", max_size=50))
def test_a_bounded_text_is_whole_or_has_head_tail_and_note(
    text: str, limit: int, note: str
) -> None:
    done = bounded(text, limit, note)
    assert len(done) <= limit
    if len(text) <= limit:
        assert done == text
    else:
        assert done[:100] == text[:100]
        assert done.endswith(note)
        assert "characters left out" in done
        assert len(done) > limit - 200


def test_every_kind_of_character_survives_or_is_replaced_one_by_one() -> None:
    for code in (
        *range(0x1B),
        *range(0x1C, 0x9B),
        *range(0x9C, 0x3000),
        0xD800,
        0xE000,
        0xFEFF,
        0xFFFF,
        0x1F600,
        0xE0100,
    ):
        char = chr(code)
        done = inert(f"a{char}b")
        assert done in (f"a{char}b", "a\ufffdb", "ab", "a\nb"), hex(code)
        if unicodedata.category(char)[0] in "LNPSM":
            assert done == f"a{char}b", hex(code)
