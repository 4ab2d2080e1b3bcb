"""The demo shop's books: bounded, one per conversation, safe from several threads."""

import json
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime

import pytest

from chatapp.tools import shop
from chatapp.tools.registry import ToolContext
from chatapp.tools.running import CALLS_MOST, run_calls
from chatapp.tools.shop import SHOP
from chatapp.tools.shop_data import KNOWLEDGE, ORDERS, PRODUCTS
from chatapp.tools.shop_ledger import ORDERS_MOST, Ledger, working_day
from memory.core.messages import ToolCall


def context(number: int) -> ToolContext:
    return ToolContext(uuid.UUID(int=number), "en", lambda: datetime(2026, 6, 29, tzinfo=UTC))


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    made = Ledger(most=3)
    monkeypatch.setattr(shop, "LEDGER", made)
    return made


def test_the_books_of_the_conversations_used_last_are_kept(ledger: Ledger) -> None:
    for number in (1, 2, 3, 1, 4):
        with ledger.open(context(number)):
            pass
    assert [one.int for one in ledger.books] == [3, 1, 4]


async def test_orders_placed_at_once_get_different_numbers() -> None:
    calls = [ToolCall(f"c{n}", "place_order", '{"product": "S20 Max"}') for n in range(20)]
    done = await run_calls(calls, SHOP, context(1))
    assert {one.content[:11] for one in done} == {f"Order {88301 + n}" for n in range(20)}


def test_refunds_applied_for_at_once_are_one(ledger: Ledger) -> None:
    inside = threading.Barrier(2)

    def meeting() -> datetime:
        """Asked for while the book is open: a second thread in there would be met."""
        with suppress(threading.BrokenBarrierError):
            inside.wait(timeout=0.01)
            raise AssertionError("two threads have the book")
        return datetime(2026, 6, 29, tzinfo=UTC)

    def apply(_: int) -> object:
        one, where = SHOP["apply_refund"], ToolContext(uuid.UUID(int=1), "en", meeting)
        return one.function(order_number="88231", reason="broken", context=where)

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(apply, range(8)))) == 1
    (book,) = ledger.books.values()
    assert len(book.refunds) == 1


async def test_a_conversation_cannot_place_orders_without_end() -> None:
    calls = [ToolCall("c", "place_order", json.dumps({"product": "A5"}))] * (ORDERS_MOST + 1)
    steps = [calls[at : at + CALLS_MOST] for at in range(0, len(calls), CALLS_MOST)]
    done = [one for step in steps for one in await run_calls(step, SHOP, context(1))]
    assert [one.error for one in done].count("failed") == 1
    assert {one.content for one in done if not one.ok} == {"No more orders are taken."}


def test_an_error_leaves_the_books_open_for_the_next(ledger: Ledger) -> None:
    with pytest.raises(KeyError), ledger.open(context(1)):
        raise KeyError
    with ledger.open(context(1)) as book:
        assert book.order("88231") is not None


def test_a_copy_has_what_was_told_and_goes_its_own_way(ledger: Ledger) -> None:
    day = date(2026, 6, 29)
    with ledger.open(context(1)) as book:
        order = book.order("88231")
        assert order is not None
        refund = book.refund(order, "broken", day)
        placed = [book.place("s10pro", 1, day), book.place("s10pro", 1, day)]
    ledger.copy(uuid.UUID(int=1), uuid.UUID(int=2), f"{refund.number}, order {placed[0].number}")
    ledger.copy(uuid.UUID(int=1), uuid.UUID(int=3), "nothing was done yet")
    with ledger.open(context(2)) as copy:
        assert copy.refunds == {"88231": refund}
        assert copy.placed == {placed[0].number: placed[0]}
        copy.refunds.clear()
    with ledger.open(context(3)) as early:
        assert (early.refunds, early.placed) == ({}, {})
    with ledger.open(context(1)) as book:
        assert (len(book.refunds), len(book.placed)) == (1, 2)


def test_a_copy_takes_the_place_of_the_book_used_longest_ago(ledger: Ledger) -> None:
    for number in (1, 2, 3):
        with ledger.open(context(number)):
            pass
    ledger.copy(uuid.UUID(int=3), uuid.UUID(int=4), "")
    ledger.copy(uuid.UUID(int=9), uuid.UUID(int=5), "")  # of one that has no book
    assert [one.int for one in ledger.books] == [2, 3, 4]


def test_the_data_fits_together() -> None:
    assert {record.product for record in ORDERS.values()} <= set(PRODUCTS)
    assert {one.successor for one in PRODUCTS.values()} - {""} <= set(PRODUCTS)
    for record in ORDERS.values():
        days = [event.days_ago for event in record.events]
        assert days == sorted(days, reverse=True)
        assert record.days_ago >= max(days, default=0)
        assert record.signed is None or record.signed == days[-1]
    for entry in KNOWLEDGE:
        assert all(word == word.casefold() for word in entry.words)
        assert [any("一" <= char <= "鿿" for char in text) for text in entry.text] == [False, True]


@pytest.mark.parametrize(
    ("day", "later", "expected"),
    [
        (date(2026, 6, 29), 3, date(2026, 7, 2)),  # Monday to Thursday
        (date(2026, 6, 29), 5, date(2026, 7, 6)),  # over a weekend
        (date(2026, 7, 3), 1, date(2026, 7, 6)),  # Friday to Monday
        (date(2026, 7, 4), 1, date(2026, 7, 6)),  # from a Saturday
    ],
)
def test_weekends_are_no_working_days(day: date, later: int, expected: date) -> None:
    assert working_day(day, later) == expected
