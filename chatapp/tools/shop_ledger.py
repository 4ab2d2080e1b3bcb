"""What a conversation did in the demo shop: its refunds and orders.

Kept in the memory of this process only, for the conversations that used it last: a demo needs no
tables. After a restart, or in another process, the shop has its first orders and nothing else.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from uuid import UUID

from chatapp.tools.registry import ToolContext
from chatapp.tools.shop_data import ORDERS, PRODUCTS, REFUND_FROM, REFUND_TO, Product, Record

# Conversations that are kept, and orders that one of them may place.
CONVERSATIONS_MOST = 1_000
ORDERS_MOST = 50
# The number before that of the first order that is placed.
FIRST_ORDER = 88_300


@dataclass(frozen=True, slots=True)
class Refund:
    """A refund that was accepted; `amount` in yuan."""

    number: str
    order: str
    amount: int
    reason: str
    day: date

    @property
    def arrives(self) -> tuple[date, date]:
        """The first and the last day on which the money is expected."""
        return working_day(self.day, REFUND_FROM), working_day(self.day, REFUND_TO)


@dataclass(frozen=True, slots=True)
class Order:
    """An order, from the start or placed in the conversation; `opened` is the day that its days
    are counted back from, `total` in yuan."""

    number: str
    record: Record
    opened: date
    total: int
    is_paid: bool = True

    @property
    def product(self) -> Product:
        return PRODUCTS[self.record.product]

    def day(self, days_ago: int) -> date:
        return self.opened - timedelta(days=days_ago)


@dataclass(slots=True)
class Book:
    """One conversation's dealings; changed only while its ledger is open."""

    opened: date
    refunds: dict[str, Refund] = field(default_factory=dict)  # by order
    placed: dict[str, Order] = field(default_factory=dict)  # by number

    def order(self, number: str) -> Order | None:
        if number in self.placed:
            return self.placed[number]
        record = ORDERS.get(number)
        if record is None:
            return None
        total = PRODUCTS[record.product].price * record.quantity
        return Order(number, record, self.opened, total)

    def refund(self, order: Order, reason: str, day: date) -> Refund:
        """Accept a refund. Numbers are RF, the date and a sequence of the day (S0)."""
        sequence = 1 + sum(refund.day == day for refund in self.refunds.values())
        number = f"RF{day:%Y%m%d}{sequence:03d}"
        accepted = Refund(number, order.number, order.total, reason, day)
        self.refunds[order.number] = accepted
        return accepted

    def place(self, product: str, quantity: int, day: date) -> Order:
        number = str(FIRST_ORDER + len(self.placed) + 1)
        total = PRODUCTS[product].to_pay * quantity
        order = Order(number, Record(product, quantity, 0), day, total, is_paid=False)
        self.placed[number] = order
        return order


class Ledger:
    """The books of the conversations that used the shop last. Safe to use from several threads."""

    def __init__(self, most: int = CONVERSATIONS_MOST) -> None:
        self._most = most
        self._books: OrderedDict[UUID, Book] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, context: ToolContext) -> Iterator[Book]:
        """The conversation's book, for one tool at a time."""
        with self._lock:
            book = self._books.setdefault(context.conversation_id, Book(context.now().date()))
            self._books.move_to_end(context.conversation_id)
            self._forget()
            yield book

    def copy(self, source: UUID, copy: UUID, told: str) -> None:
        """Give a fork what its messages (`told`) tell of the dealings of the conversation that it
        was made of."""
        with self._lock:
            if source not in self._books:
                return
            book = self._books[source]
            self._books[copy] = Book(
                book.opened,
                {order: one for order, one in book.refunds.items() if one.number in told},
                {number: one for number, one in book.placed.items() if number in told},
            )
            self._forget()

    def _forget(self) -> None:
        while len(self._books) > self._most:
            self._books.popitem(last=False)

    @property
    def books(self) -> Mapping[UUID, Book]:
        return self._books


def working_day(day: date, later: int) -> date:
    """The working day that is so many working days later; Saturdays and Sundays are none."""
    while later:
        day += timedelta(days=1)
        later -= day.weekday() < 5
    return day
