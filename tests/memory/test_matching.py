"""Finding the words of a question in texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.matching import (
    BEGINNING,
    EXACT_WEIGHT,
    INSIDE,
    QUERY_MOST,
    TERMS_MOST,
    WHOLE,
    excerpt,
    strength,
    terms_of,
)

ANYTHING = st.text(st.characters(), max_size=80)


def texts(query: str) -> list[str]:
    return [term.text for term in terms_of(query)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("What was the refund number of order 88231?", ["88231", "refund", "number", "order"]),
        ("订单88231的退款", ["88231", "订单", "退款"]),
        ("Ｓ２０　Ｐｒｏ", ["s20", "pro"]),
        ("order-88231, 2026-06-29 by ada@x.org",
         ["order-88231", "2026-06-29", "ada@x.org", "88231", "order", "ada", "org"]),
        ("well-known and/or it's", ["known", "well"]),
        ("REFUND Refund refund", ["refund"]),
        ("票 A", ["票"]),
        ("?! …", []),
        ("", []),
    ],
)  # fmt: skip
def test_a_question_becomes_ids_then_words(query: str, found: list[str]) -> None:
    assert texts(query) == found


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("refunds", "refund"),
        ("deliveries", "deliver"),
        ("boxes", "box"),
        ("status", "status"),
        ("glass", "glass"),
        ("gas", "gas"),
    ],
)
def test_a_plural_finds_its_singular(many: str, one: str) -> None:
    assert texts(many) == [one]


@pytest.mark.parametrize("query", ["what is it", "a", "你是谁"])
def test_words_that_say_nothing_count_where_there_are_no_others(query: str) -> None:
    assert texts(query)
    assert texts(f"{query} 88231 umbrella") == ["88231", "umbrella"]


def test_a_long_question_gives_its_ids_and_longest_words() -> None:
    words = ["w" * length for length in range(3, 30)]
    found = texts(f"{' '.join(words)} 88231")
    assert len(found) == TERMS_MOST
    assert found[:2] == ["88231", words[-1]]
    assert texts("x" * QUERY_MOST + " umbrella") == ["x" * QUERY_MOST]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("refund", "The Refund.", WHOLE),
        ("refund", "refunded", BEGINNING),
        ("art", "a party", INSIDE),
        ("refund", "an order", 0),
        ("88231", "订单88231已发货", EXACT_WEIGHT),
        ("88231", "188231", INSIDE),
        ("88231", "订单８８２３１", EXACT_WEIGHT),
        ("2499", "¥2,499", EXACT_WEIGHT),
        ("2,499", "2499 yuan", EXACT_WEIGHT),
        ("手机", "iPhone手机壳", WHOLE),
        ("STRASSE", "straße", 0),
        ("Straße", "STRASSE", WHOLE),
        ("ÄPFEL", "äpfel", WHOLE),
        ("café", "cafe\u0301", WHOLE),
    ],
)
def test_a_term_counts_by_where_it_stands(query: str, text: str, found: float) -> None:
    (term,) = terms_of(query)
    assert strength(text, term) == found


def test_an_excerpt_shows_the_part_with_the_most_of_the_words() -> None:
    text = f"a refund\n\n{'word ' * 100}the refund of 88231 {'word ' * 100}"
    shown = excerpt(text, terms_of("refund 88231"), 60)
    assert "the refund of 88231" in shown
    assert (shown[0], shown[-1]) == ("…", "…")
    assert len(shown) == 60


def test_an_excerpt_at_an_edge_is_cut_on_one_side_only() -> None:
    text = f"refund {'word ' * 100}end"
    assert excerpt(text, terms_of("refund"), 20) == "refund word word w…"
    assert excerpt(text, terms_of("end"), 20) == "…word word word end"
    assert excerpt(text, terms_of("nowhere"), 20) == "refund word word w…"


def test_a_short_text_is_one_line_as_it_is() -> None:
    assert excerpt(" a\n\nb ", terms_of("x"), 20) == "a b"


@given(ANYTHING, ANYTHING)
def test_every_excerpt_is_bounded_and_a_part_of_the_text(query: str, text: str) -> None:
    terms = terms_of(query)
    shown = excerpt(text, terms, 12)
    assert len(shown) <= 12
    assert shown.strip("…") in " ".join(text.split())
    assert all(strength(term.forms[0], term) >= INSIDE for term in terms)
