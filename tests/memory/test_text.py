"""Text at the boundary: cleaning, blankness, shortening, the language of a script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.text import (
    JOINED_MOST,
    clean,
    is_blank,
    paired,
    script_language,
    shorten,
    whole_edge,
)

ANYTHING = st.text(st.characters(), max_size=40)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b", "a\ufffdb"),
        ("note \udbc0 end", "note \ufffd end"),
        ("\ud800\udfff", "\ufffd\ufffd"),
        ("\ud7ff\ue000 tab\t 😀 \x01", "\ud7ff\ue000 tab\t 😀 \x01"),
    ],
)
def test_nul_and_lone_surrogates_become_replacement_characters(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(ANYTHING)
def test_cleaned_text_can_be_stored_and_keeps_its_length(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert "\x00" not in cleaned
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t\u3000", "\x00\x1f", "\u200b\ufeff", "\ufffd \ufffd"]
)
def test_text_without_anything_visible_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", [".", " a ", "\u200bx", "😀", "。"])
def test_text_with_anything_visible_is_not_blank(text: str) -> None:
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("a   b", 4, "a…"),
        ("abcd", 1, "…"),
        ("abcd", 0, ""),
        ("", 0, ""),
    ],
)
def test_shortened_text_ends_in_an_ellipsis(text: str, limit: int, short: str) -> None:
    assert shorten(text, limit) == short


@given(ANYTHING, st.integers(0, 50))
def test_shortened_text_is_never_over_its_limit(text: str, limit: int) -> None:
    assert len(shorten(text, limit)) <= limit


FLAGS = "🇩🇪🇫🇷🇯🇵"


@pytest.mark.parametrize(
    ("text", "at", "step", "edge"),
    [
        ("abcd", 2, -1, 2),
        ("e\u0301x", 1, -1, 0),
        ("e\u0301x", 1, 1, 2),
        ("👍🏽!", 1, -1, 0),
        ("👩‍🚀!", 1, 1, 3),
        ("👩‍🚀!", 2, -1, 0),
        # Flags are pairs, counted from the first.
        (FLAGS, 1, -1, 0),
        (FLAGS, 2, -1, 2),
        (FLAGS, 3, 1, 4),
        (FLAGS, 5, -1, 4),
        ("x" + FLAGS, 2, -1, 1),
        ("abc", 0, -1, 0),
        ("abc", 3, 1, 3),
    ],
)
def test_an_edge_splits_nothing_that_is_shown_as_one(
    text: str, at: int, step: int, edge: int
) -> None:
    assert whole_edge(text, at, step) == edge


def test_where_no_edge_is_near_the_text_is_cut_where_it_was_asked() -> None:
    stacked = "e" + "\u0301" * (3 * JOINED_MOST)
    assert whole_edge(stacked, 2 * JOINED_MOST, -1) == 2 * JOINED_MOST
    assert whole_edge(stacked, JOINED_MOST - 1, -1) == 0


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("a", "a"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ude00\ud83d"),
        ("\ud83d\ud83d\ude00\ude00", "\ud83d\U0001f600\ude00"),
    ],
)
def test_halves_of_a_character_that_meet_are_put_together(text: str, whole: str) -> None:
    assert paired(text) == whole


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("", ""),
        ("123 ?!", ""),
        ("Hello there", ""),
        ("我的订单在哪里", "zh"),
        ("㐀㐁㐂", "zh"),
        ("注文はどこですか", "ja"),
        ("カタカナ", "ja"),
        ("주문이 어디에 있나요", "ko"),
        ("Где мой заказ", "ru"),
        ("أين طلبي", "ar"),
        # A Han character says as much as three letters.
        ("查询 order", "zh"),
        ("查 the order status", ""),
        ("Ада said hello to everybody", ""),
    ],
)
def test_the_script_that_says_most_gives_the_language(text: str, language: str) -> None:
    assert script_language(text) == language
