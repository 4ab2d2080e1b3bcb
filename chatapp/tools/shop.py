"""The demo shop's tools (S0): orders, logistics, refunds, knowledge, new models, the time.

They answer in the conversation's language, in sentences that begin with what matters. What cannot
be done is refused with the reason and what can be done instead.
"""

import re
import unicodedata
from typing import Annotated

from pydantic import Field

from chatapp.tools.registry import Toolbox, ToolContext, ToolError, tool
from chatapp.tools.shop_data import KNOWLEDGE, PRODUCTS, QUANTITY_MOST, Category
from chatapp.tools.shop_ledger import ORDERS_MOST, Ledger
from chatapp.tools.shop_words import (
    SHOWN,
    obstacle_to_refund,
    offer_of,
    order_in,
    product_in,
    refund_told,
    status_of,
    yuan,
)
from memory.core.text import is_blank, shorten

LEDGER = Ledger()
# Characters of a reason that are kept, and articles that one search gives.
REASON_SHOWN = 100
ARTICLES = 2

OrderNumber = Annotated[str, Field(description="the number of the order, five digits")]


@tool
def query_order(order_number: OrderNumber, *, context: ToolContext) -> str:
    """Look up an order: product, amount, date and status."""
    with LEDGER.open(context) as book:
        order = order_in(book, order_number, context)
        refund = book.refunds.get(order.number)
    record, name, status = order.record, context.say(order.product.name), status_of(order)
    said = context.say(
        (
            f"Order {order.number}: {record.quantity} x {name}, {yuan(order.total, context)}, "
            f"placed on {order.day(record.days_ago)}. Status: {context.say(status)}.",
            f"订单 {order.number}：{name} × {record.quantity}，金额 {yuan(order.total, context)}，"
            f"下单日期 {order.day(record.days_ago)}。状态：{context.say(status)}。",
        )
    )
    return f"{said}\n{refund_told(refund, context)}" if refund else said


@tool
def query_logistics(order_number: OrderNumber, *, context: ToolContext) -> str:
    """Look up where the parcel of an order is: its status and every step with date and time."""
    with LEDGER.open(context) as book:
        order = order_in(book, order_number, context)
    record = order.record
    if not record.events:
        status = context.say(status_of(order))
        return context.say(
            (
                f"Order {order.number}: no parcel yet, {status}.",
                f"订单 {order.number}：暂无物流，{status}。",
            )
        )
    steps = [
        f"{order.day(event.days_ago)} {event.time} {context.say(event.what)}"
        for event in reversed(record.events)
    ]
    head = context.say(
        (
            f"Order {order.number}, parcel {record.tracking}: {context.say(status_of(order))}.",
            f"订单 {order.number}，运单 {record.tracking}：{context.say(status_of(order))}。",
        )
    )
    return "\n".join((head, *steps))


@tool
def apply_refund(
    order_number: OrderNumber,
    reason: Annotated[str, Field(description="why, in the customer's words")],
    *,
    context: ToolContext,
) -> str:
    """Apply for the refund of an order; gives the refund number. Applying again changes nothing."""
    if is_blank(reason):
        raise ToolError(context.say(("Ask the customer for the reason.", "请先问清退款原因。")))
    with LEDGER.open(context) as book:
        order = order_in(book, order_number, context)
        refund = book.refunds.get(order.number)
        if refund is None:
            today = context.now().date()
            obstacle = obstacle_to_refund(order, today)
            if obstacle:
                raise ToolError(context.say(obstacle))
            refund = book.refund(order, shorten(reason.strip(), REASON_SHOWN), today)
    return refund_told(refund, context)


@tool
def query_refund(
    number: Annotated[str, Field(description="the refund number (RF...) or the order number")],
    *,
    context: ToolContext,
) -> str:
    """Look up a refund: its number, status, amount, and when the money arrives."""
    wanted = re.findall(r"(?:RF)?\d+", unicodedata.normalize("NFKC", number).upper())
    with LEDGER.open(context) as book:
        refunds = tuple(book.refunds.values())
    for refund in refunds:
        if wanted in ([refund.number], [refund.order]):
            return refund_told(refund, context)
    known = ", ".join(refund.number for refund in refunds)
    shown = shorten(number, SHOWN)
    # No error: after a refund was applied for, the same question has another answer.
    return context.say(
        (
            f'There is no refund "{shown}". Refunds in this conversation: {known or "none"}.',
            f"没有“{shown}”对应的退款。本次会话中的退款：{known or '无'}。",
        )
    )


@tool(retrieval=True)
def search_knowledge(
    query: Annotated[str, Field(description="what the customer wants to know")],
    *,
    context: ToolContext,
) -> str:
    """Search the shop's knowledge: refund times and policy, defects, products, promotions."""
    asked = unicodedata.normalize("NFKC", query).casefold()
    scored = [(sum(word in asked for word in entry.words), entry) for entry in KNOWLEDGE]
    found = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    if not found:
        raise ToolError(
            context.say(
                (
                    "Nothing was found. There are articles on: refund times, return policy, docking"
                    ", S20 Pro and S20 Max, promotions, prices, parcels not received, delivery.",
                    "没有找到。可查询的主题：退款到账、退货政策、不回充、S20 Pro 与 S20 Max、活动、"
                    "价格、没收到包裹、配送。",
                )
            )
        )
    return "\n\n".join(context.say(entry.text) for _, entry in found[:ARTICLES])


@tool
def recommend_products(
    category: Annotated[Category | None, Field(description="null for all")] = None,
    budget: Annotated[float | None, Field(description="the most to pay, in yuan")] = None,
    *,
    context: ToolContext,
) -> str:
    """List what is on sale, new models first, with prices, promotions and what they can do."""
    kind = [
        one for one in PRODUCTS.values() if category in (None, one.category) and not one.successor
    ]
    fitting = [one for one in kind if budget is None or one.to_pay <= budget]
    if not fitting:
        least = min(one.to_pay for one in kind)
        return context.say(
            (
                f"Nothing costs that little; it begins at {yuan(least, context)}.",
                f"没有这个价位的商品，最低 {yuan(least, context)}。",
            )
        )
    ordered = sorted(fitting, key=lambda one: not one.is_new)
    return "\n".join(f"- {offer_of(one, context)}" for one in ordered)


@tool
def place_order(
    product: Annotated[str, Field(description="one product, for example S20 Pro")],
    quantity: Annotated[int, Field(ge=1, le=QUANTITY_MOST, description="how many; 1 if null")] = 1,
    *,
    context: ToolContext,
) -> str:
    """Place an order for a product that the customer chose; gives the order number."""
    key = product_in(product, context)
    chosen = PRODUCTS[key]
    name = context.say(chosen.name)
    with LEDGER.open(context) as book:
        if len(book.placed) >= ORDERS_MOST:
            raise ToolError(context.say(("No more orders are taken.", "无法再下更多订单。")))
        order = book.place(key, quantity, context.now().date())
    total = yuan(order.total, context)
    saved = yuan(chosen.discount * quantity, context)
    return context.say(
        (
            f"Order {order.number} is placed: {quantity} x {name}, to pay {total}"
            f"{f' ({saved} off by the promotion)' if chosen.discount else ''}. It is shipped within"
            " 48 hours after payment.",
            f"已下单，订单号 {order.number}：{name} × {quantity}，应付 {total}"
            f"{f'（活动已减 {saved}）' if chosen.discount else ''}。付款后 48 小时内发货。",
        )
    )


@tool
def current_time(*, context: ToolContext) -> str:
    """Tell the current date, time and day of the week."""
    now = context.now()
    weekday = now.strftime("%w")
    return context.say(
        (
            f"{now:%Y-%m-%d %H:%M} {now:%Z}, {WEEKDAYS[int(weekday)]}",
            f"{now:%Y-%m-%d %H:%M}（{now:%Z}），星期{'日一二三四五六'[int(weekday)]}",
        )
    )


# strftime's names depend on the locale of the process.
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
SHOP = Toolbox(
    (
        query_order,
        query_logistics,
        apply_refund,
        query_refund,
        search_knowledge,
        recommend_products,
        place_order,
        current_time,
    )
)
