"""How the demo shop reads what it is asked for, and how it puts what it knows into words."""

import re
import unicodedata
from datetime import date

from chatapp.tools.registry import ToolContext, ToolError
from chatapp.tools.shop_data import (
    PRODUCTS,
    REFUND_DAYS,
    REFUND_FROM,
    REFUND_TO,
    WARRANTY_MONTHS,
    Both,
    Product,
)
from chatapp.tools.shop_ledger import Book, Order, Refund
from memory.core.text import shorten

# Characters of what was asked for that an answer repeats.
SHOWN = 40


def order_in(book: Book, asked: str, context: ToolContext) -> Order:
    """The order of that number, which may stand among words. Raises ToolError for none."""
    found = re.findall(r"\d+", unicodedata.normalize("NFKC", asked))
    order = book.order(found[0]) if len(found) == 1 else None
    if order is None:
        shown = shorten(asked, SHOWN)
        raise ToolError(
            context.say(
                (
                    f'There is no order "{shown}". Order numbers have five digits, such as 88231: '
                    "ask the customer for the number.",
                    f"没有查到订单“{shown}”。订单号为五位数字，例如 88231，请向用户核实订单号。",
                )
            )
        )
    return order


def product_in(asked: str, context: ToolContext) -> str:
    """The key of the one product on sale that is asked for. Raises ToolError for none, several, or
    one that is no longer sold."""
    text = re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", asked).casefold())
    named = [key for key, one in PRODUCTS.items() if any(word in text for word in one.keys)]
    if len(named) == 1:
        successor = PRODUCTS[named[0]].successor
        if not successor:
            return named[0]
        gone, new = context.say(PRODUCTS[named[0]].name), context.say(PRODUCTS[successor].name)
        raise ToolError(
            context.say(
                (f"{gone} is no longer sold. Offer its successor: {new}.",
                 f"{gone}已停售，可推荐后续型号：{new}。")
            )
        )  # fmt: skip
    sold = context.say((", ", "、")).join(
        context.say(one.name) for one in PRODUCTS.values() if not one.successor
    )
    raise ToolError(
        context.say(
            (
                f'"{shorten(asked, SHOWN)}" is not exactly one product. On sale: {sold}. '
                "Ask the customer which one.",
                f"“{shorten(asked, SHOWN)}”无法确定是哪一款商品。在售：{sold}。请向用户确认。",
            )
        )
    )


def status_of(order: Order) -> Both:
    """Where an order stands."""
    record = order.record
    if not order.is_paid:
        return ("waiting for payment", "待付款")
    if not record.events:
        return ("paid, not shipped yet", "已付款，未发货")
    last = record.events[-1]
    if record.signed is None:
        return (f"on its way, {last.what[0]}", f"运输中，{last.what[1]}")
    moment = f"{order.day(last.days_ago)} {last.time}"
    return (f"{last.what[0]}, {moment}", f"{last.what[1]}，{moment}")


def obstacle_to_refund(order: Order, today: date) -> Both | None:
    """Why an order cannot be refunded, and what can be done instead; None if it can be."""
    number, record = order.number, order.record
    if not order.is_paid:
        return (
            f"Order {number} is not paid: there is nothing to refund. Without payment it lapses.",
            f"订单 {number} 尚未付款，无需退款，不付款会自动取消。",
        )
    if record.events and record.signed is None:
        return (
            f"Order {number} is on its way and cannot be refunded now. The customer can refuse the "
            "parcel, or apply once it was signed for.",
            f"订单 {number} 正在运输中，暂不能退款。用户可以拒收，或签收后再申请。",
        )
    if record.signed is not None and (today - order.day(record.signed)).days > REFUND_DAYS:
        day = order.day(record.signed)
        return (
            f"Order {number} was signed for on {day}, more than {REFUND_DAYS} days ago, and cannot "
            f"be refunded. Offer a repair: it is free for {WARRANTY_MONTHS} months.",
            f"订单 {number} 于 {day} 签收，已超过 {REFUND_DAYS} 天，不能退款。"
            f"可以安排维修，{WARRANTY_MONTHS} 个月内免费。",
        )
    return None


def refund_told(refund: Refund, context: ToolContext) -> str:
    first, last = refund.arrives
    amount, days = yuan(refund.amount, context), f"{REFUND_FROM}-{REFUND_TO}"
    return context.say(
        (
            f"Refund number {refund.number}: order {refund.order}, {amount}, accepted on "
            f"{refund.day}. The money arrives between {first} and {last} ({days} working "
            f"days), the way it was paid. Reason: {refund.reason}",
            f"退款编号 {refund.number}：订单 {refund.order}，金额 {amount}，{refund.day} 已受理。"
            f"{days} 个工作日内原路退回，预计 {first} 至 {last} 到账。原因：{refund.reason}",
        )
    )


def offer_of(product: Product, context: ToolContext) -> str:
    """One line about a product on sale."""
    name, about = context.say(product.name), context.say(product.about)
    price, now = yuan(product.price, context), yuan(product.to_pay, context)
    new = context.say((" (new)", "（新款）")) if product.is_new else ""
    promotion = context.say((f", now {now}", f"，活动价 {now}")) if product.discount else ""
    return context.say(
        (f"{name}{new}: {price}{promotion}; {about}", f"{name}{new}：{price}{promotion}；{about}")
    )


def yuan(amount: int, context: ToolContext) -> str:
    return context.say((f"¥{amount:,}", f"{amount} 元"))
