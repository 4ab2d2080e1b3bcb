"""The difference between two versions of a summary."""

from hypothesis import given
from hypothesis import strategies as st

from memory.core import diff
from memory.core.diff import Part, word_diff


def test_words_are_compared_whole() -> None:
    assert word_diff("the code is 4071", "the code was 4071") == (
        Part("same", "the code "),
        Part("removed", "is"),
        Part("added", "was"),
        Part("same", " 4071"),
    )


def test_chinese_is_compared_by_characters() -> None:
    assert word_diff("会议在周二", "会议在周五") == (
        Part("same", "会议在周"),
        Part("removed", "二"),
        Part("added", "五"),
    )


def test_equal_texts_have_one_part_and_empty_ones_none() -> None:
    assert word_diff("a b", "a b") == (Part("same", "a b"),)
    assert word_diff("", "") == ()


@given(st.text(max_size=80), st.text(max_size=80))
def test_the_parts_give_both_texts_back(old: str, new: str) -> None:
    parts = word_diff(old, new)
    assert "".join(part.text for part in parts if part.change != "added") == old
    assert "".join(part.text for part in parts if part.change != "removed") == new


def test_very_large_texts_are_compared_by_lines() -> None:
    lines = [f"{'w ' * 50}{number}\n" for number in range(300)]
    changed = [*lines[:7], "new\n", *lines[8:]]
    parts = word_diff("".join(lines), "".join(changed))
    assert len(lines) * 100 > diff.LARGE
    assert [part.change for part in parts] == ["same", "removed", "added", "same"]
    assert parts[1].text == lines[7]
