"""Which literals a text still has, and how those that a summary lost are carried over (S4)."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.core.carrying import (
    LONG,
    USE,
    Candidate,
    Carried,
    candidates,
    carry,
    evidence,
    from_json,
    lost,
    occurs,
    render,
    same,
    source_text,
    to_json,
    unsupported,
)
from memory.core.literals import KINDS, Literal, literals
from memory.core.messages import Message, ToolCall
from tests.builders import COUNTER, numbered, reply, result, user
from tests.memory.test_literals import FOUND, TEXTS


def first(text: str) -> Literal:
    return literals(text)[0]


SAME = [
    ("$1,299", "1299.00 dollars"), ("¥1,299", "1299元"), ("3万元", "RMB 30000"),
    ("$5 million", "US$5,000,000"), ("$3k", "3000 USD"), ("€1.299,00", "1299 euros"),
    ("1.5亿美元", "$150 million"), ("17,45 EUR", "€17.45"), ("5百万元", "500万元"),
    ("2024-05-15", "May 15, 2024"), ("2024/5/15", "2024年5月15日"), ("15 May 2024", "15.05.2024"),
    ("13/05/2024", "05/13/2024"), ("5月20号", "May 20th"), ("March 2019", "2019年3月"),
    ("2031-02-30", "Feb 30, 2031"), ("05/06/2024", "０５/06/2024"),
    ("3pm", "下午3点"), ("3:30 p.m.", "15:30:00"), ("8点半", "8点30"), ("15时30分", "15:30"),
    ("12am", "0:00"), ("12 pm", "中午12点"), ("中午1点", "13:00"), ("中午11点", "11:00"),
    ("晚上12点", "24:00"), ("晚上8点", "20:00"), ("凌晨2点", "2:00"), ("15:00 pm", "15:00"),
    ("1,299", "1299"), ("500万", "5000000"), ("5%", "5 percent"), ("１２", "12"), ("10km", "10"),
    ("#W2378156", "w2378156"), ("A1B2C3", "a1b2c3"), ("#7447", "7447"),
    ("A.B@x.com", "a.b@X.com"), ("https://A.b/", "https://a.b"),
    ("+1 (415) 555-2671", "14155552671"), ("138-1234-5678", "13812345678"),
]  # fmt: skip
DIFFERENT = [
    ("$50", "€50"), ("$50", "50"), ("$50", "$500"), ("2024-05-15", "2024-05-16"),
    ("05/06/2024", "06/05/2024"), ("3pm", "3am"), ("10:30", "10:30:01"), ("3.10", "3.1"),
    ("12", "123"), ("0093", "93"), ("12%", "12"), ("-12", "12"), ("ORD-2024-001", "ORD-2024-002"),
    ("a1b2c3", "a1b2c3d"), ("Mr. Jones", "Mr. James"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_two_spellings_mean_the_same(one: str, other: str) -> None:
    assert same(first(one), first(other))
    assert occurs(first(one), f"so {other}, yes")
    assert occurs(first(other), f"因此{one}。")


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_differs_in_meaning_is_not_the_same(one: str, other: str) -> None:
    assert not same(first(one), first(other))


OCCURS = [
    # A whole holds its parts.
    ("54.04", "costs $54.04"), ("54.1", "costs $54.10"), ("May 20", "on 2024-05-20"),
    ("May 2024", "on 2024-05-20"), ("2024", "on May 20, 2024"), ("12", "12% off"),
    ("12", "down to -12"), ("217", "at 975 Sunset Drive, Suite 217, Austin, TX 78750"),
    # An id may stand in something longer, a name anywhere.
    ("A1B2C3", "see https://x.y/A1B2C3?z=1"), ("my name is Mia Li", "MIA  LI wants a seat"),
    ("我叫李雷", "用户李雷想订票"), ("flight HAT001", "HAT001 is full"),
    ("code is VAAOXJ", "VAAOXJ was cancelled"), ("in Austin, TX 78750", "zip TX 78750"),
]  # fmt: skip
MISSING = [
    ("12", "123"), ("12", "1,234"), ("12", "12.5"), ("12", "at 12:30"), ("12", "A12B"),
    ("A1B2C3", "A1B2C3-7"), ("A1B2C3", "x-A1B2C3"), ("A1B2C3", "A1B2C34"), ("$50", "50 guests"),
    ("my name is Ann", "Annabel and Joann and Ann-Marie"), ("2024-05-20", "on May 20"),
    ("my name is Ann", "Joann"), ("12", "twelve"), ("42", ""),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text"), OCCURS)
def test_a_literal_occurs_in_what_includes_it(source: str, text: str) -> None:
    assert occurs(first(source), text)


@pytest.mark.parametrize(("source", "text"), MISSING)
def test_a_literal_does_not_occur_in_what_only_resembles_it(source: str, text: str) -> None:
    assert not occurs(first(source), text)


def test_a_name_is_looked_for_behind_its_first_likeness() -> None:
    assert occurs(Literal("name", "Ann"), "Joann told Ann")


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_of_another_kind_is_compared_as_written(kind: str) -> None:
    odd = Literal(kind, "soon enough")  # type: ignore[arg-type]
    assert same(odd, odd)
    assert not same(odd, first("42"))


@given(TEXTS)
def test_what_a_text_has_occurs_in_it(text: str) -> None:
    assert lost(literals(text), text) == ()
    assert unsupported(text, ["", text]) == ()
    assert all(occurs(one, text) for one in literals(text))


@given(TEXTS)
def test_rendered_literals_occur_in_the_rendering(text: str) -> None:
    found = literals(text)
    assert lost(found, render(found)) == ()


def test_lost_are_those_that_a_summary_left_out() -> None:
    source = literals("Order #W23 for $54.04, 32 items, due 2024-05-20")
    assert lost(source, "Order W23 is due on May 20, 2024") == (
        Literal("amount", "$54.04"),
        Literal("number", "32"),
    )


def test_unsupported_are_those_that_no_source_has() -> None:
    sources = ["Order #W23: 54.04", "arrives 2024-05-20 at 3pm", "5 items"]
    assert unsupported("#W23 ($54.04) arrives May 20 at 15:00, 5 items", sources) == ()
    summary = "#W24 ($54.05) arrives May 21, 12 items for €54.04 and $99"
    assert [one.text for one in unsupported(summary, [*sources, "€99"])] == [
        "#W24", "$54.05", "May 21", "12", "$99",
    ]  # fmt: skip


def test_an_id_of_digits_supports_an_amount() -> None:
    assert unsupported("$1,234,567", ["total: 1234567"]) == ()


def test_evidence_is_of_all_texts_together() -> None:
    proof = evidence(["a1b2c3", "and 42"])
    assert proof.holds(first("A1B2C3"))
    assert proof.holds(first("42"))
    assert not proof.holds(first("a1b2c3d4"))


def test_arguments_of_calls_are_source_text_and_escapes_are_read() -> None:
    call = ToolCall("c", "book", '{"when": "5\\u670820\\u53f7", "face": "\\ud83d\\ude00"}')
    message = Message("assistant", "Booking.", tool_calls=(call,))
    assert source_text(message) == 'Booking.\n{"when": "5月20号", "face": "\\ud83d\\ude00"}'
    assert Literal("date", "5月20号") in literals(source_text(message))


def texts(found: Iterable[Candidate]) -> list[tuple[str, int, int]]:
    return [(one.literal.text, one.position, one.uses) for one in found]


def test_candidates_are_what_the_summary_lost_with_newest_position_and_uses() -> None:
    messages = numbered(
        [user("order #W23, 2 seats"), reply("#W23 is $50, $50.00!"), user("ok"), result("w23 A1B2")]
    )
    assert texts(candidates(messages, (), "two seats")) == [
        ("#W23", 4, 3),
        ("$50", 2, 1),
        ("A1B2", 4, 1),
    ]
    assert texts(candidates(messages, (), "W23 for $50")) == [("A1B2", 4, 1)]


def test_what_was_carried_stays_a_candidate_until_a_summary_says_it() -> None:
    before = (Candidate(first("#W23"), 3, 2), Candidate(first("$50"), 1, 1))
    messages = numbered([user("what about 50 dollars?")], first=7)
    assert texts(candidates(messages, before, "nothing")) == [("#W23", 3, 2), ("$50", 7, 2)]
    assert texts(candidates(messages, before, "W23, USD 50")) == []
    assert candidates([], before, "") == before


def test_what_only_the_last_summary_knew_is_a_candidate_unless_invented() -> None:
    before = (Candidate(first("A1B2"), 2, 5),)
    messages = numbered([user("hi")], first=9)
    found = candidates(
        messages, before, "hi", previous_summary="A1B2, #W23, $99", invented=literals("99.00 USD")
    )
    assert texts(found) == [("A1B2", 2, 5), ("#W23", 8, 1)]


def test_what_another_candidate_includes_is_left_out() -> None:
    messages = numbered([user("54.04 on May 20, 2024, 15"), reply("$54.04, 5月20号, 15%, -12, 12")])
    found = [one.literal.text for one in candidates(messages, (), "")]
    assert found == ["May 20, 2024", "$54.04", "15%", "-12"]


def found(*rows: tuple[str, int, int]) -> list[Candidate]:
    return [Candidate(first(text), position, uses) for text, position, uses in rows]


def test_the_order_is_kind_then_newest_and_most_used() -> None:
    url = "https://a.b/" + "c" * LONG
    mixed = found(
        ("42", 90, 1), (url, 99, 9), ("my name is Ada", 2, 1), ("#W23", 3, 1), ("$5", 3 + USE, 1),
        ("A1B2", 3, 2), ("3pm", 1, 1), ("77", 91, 1), ("https://a.b", 2, 1),
    )  # fmt: skip
    kept = carry(mixed, cap=100, counter=COUNTER).kept
    assert [one.text for one in kept] == [
        "$5", "A1B2", "#W23", "https://a.b", "3pm", "Ada", "77", "42", url,
    ]  # fmt: skip


def test_the_list_is_cut_where_the_cap_is_reached() -> None:
    three = found(("#W23", 3, 1), ("#W24", 2, 1), ("$5", 1, 1))
    # "- id: #W23, #W24" is four words, "- amount: $5" three more.
    for cap, count in [(-1, 0), (2, 0), (3, 1), (4, 2), (6, 2), (7, 3)]:
        carried = carry(three, cap=cap, counter=COUNTER)
        assert carried == Carried(tuple(three), count)
        assert carried.kept == tuple(one.literal for one in three[:count])
        assert carried.pushed_out == tuple(one.literal for one in three[count:])


def test_the_rendering_has_a_line_per_kind() -> None:
    all_of = literals("#W23 for $5 on May 15, 2024 or 2024-05-16, A1B2, #W24")
    assert render(all_of) == (
        "- id: #W23, #W24\n- code: A1B2\n- amount: $5\n- date: May 15, 2024; 2024-05-16"
    )
    assert render(()) == ""


LITERALS = sorted({one for text in FOUND for one in literals(text)}, key=lambda one: one.text)
CANDIDATE = st.builds(Candidate, st.sampled_from(LITERALS), st.integers(1, 30), st.integers(1, 5))
CANDIDATES = st.lists(CANDIDATE, max_size=12, unique_by=lambda one: one.literal)
CAPS = st.integers(0, 80)


@given(CANDIDATES, CAPS, CAPS)
def test_carrying_loses_nothing_and_more_room_never_keeps_less(
    some: list[Candidate], cap: int, more: int
) -> None:
    carried = carry(some, cap=cap, counter=COUNTER)
    assert sorted(map(repr, carried.candidates)) == sorted(map(repr, some))
    assert carried.kept + carried.pushed_out == tuple(one.literal for one in carried.candidates)
    assert COUNTER.count(render(carried.kept)) <= cap
    larger = carry(some, cap=cap + more, counter=COUNTER)
    assert larger.kept[: carried.fitting] == carried.kept


@given(st.lists(CANDIDATE, max_size=8, unique_by=lambda one: one.position), st.integers(0, 9))
def test_the_order_does_not_depend_on_how_candidates_come(some: list[Candidate], seed: int) -> None:
    shuffled = random.Random(seed).sample(some, len(some))
    assert carry(shuffled, cap=9, counter=COUNTER) == carry(some, cap=9, counter=COUNTER)


@given(CANDIDATES)
def test_candidates_go_through_json(some: list[Candidate]) -> None:
    assert from_json(to_json(some)) == tuple(some)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        from_json([["secret", "x", 1, 1]])


ROUNDS = st.lists(st.lists(st.sampled_from(list(FOUND)), max_size=3), min_size=20, max_size=20)


@given(ROUNDS, st.integers(0, 9), st.sampled_from([10, 60, 10_000]))
def test_no_literal_falls_out_of_a_chain_of_bad_summaries(
    rounds: list[list[str]], seed: int, cap: int
) -> None:
    """Twenty folds by a summariser that drops half of all it was given: what was ever said is in
    the last summary, or carried, or listed as pushed out; with room enough, never the last.

    Not so what is found by a cue only: a summary that keeps a name without its cue hides it from
    the next check.
    """
    chance = random.Random(seed)
    summary, carried, said, position = "", Carried((), 0), set[Literal](), 1
    for said_now in rounds:
        messages = numbered(map(user, said_now), first=position)
        position += len(messages)
        told = [one for text in (summary, *said_now) for one in literals(text)]
        said |= {one for one in told if one.kind not in ("name", "address")}
        chance.shuffle(told)
        shorter = render(told[: len(told) // 2])
        more = candidates(messages, carried.candidates, shorter, previous_summary=summary)
        carried, summary = carry(more, cap=cap, counter=COUNTER), shorter
        assert COUNTER.count(render(carried.kept)) <= cap
    assert cap < 10_000 or carried.pushed_out == ()
    proof = evidence([summary, render(carried.kept), render(carried.pushed_out)])
    assert [one for one in said if not one.text.isalpha() and not proof.holds(one)] == []
