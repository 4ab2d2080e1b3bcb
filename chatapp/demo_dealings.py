"""What was done in the demo shop, as a summary notes it: orders and refunds by number."""

import re
from collections.abc import Sequence

from chatapp.demo_reading import Items, clip

# Width of a refund's reason in a note.
REASON_SHOWN = 40
# What a result or a reply tells of an order: its number, what was ordered, where it stands.
_ORDERS: Sequence[tuple[str, str]] = (
    (
        r"Order (?P<n>\d{5}): (?:\d+ x )?(?P<p>[^,\n]+), ¥[\d,]+, placed on [^.\n]+\. "
        r"Status: (?P<s>[^,.\n]+)",
        "en",
    ),
    (r"Order (?P<n>\d{5}), parcel \w+: (?P<p>)(?P<s>[^,.\n]+)", "en"),
    (r"Order (?P<n>\d{5}) is (?P<s>placed): (?:\d+ x )?(?P<p>[^,\n]+), to pay", "en"),
    (
        r"订单 (?P<n>\d{5})：(?P<p>[^，\n]+?) × \d+，金额 [^，\n]+，下单日期 [^。\n]+。"
        r"状态：(?P<s>[^，。\n]+)",
        "zh",
    ),
    (r"订单 (?P<n>\d{5})，运单 \w+：(?P<p>)(?P<s>[^，。\n]+)", "zh"),
    (r"(?P<s>已下单)，订单号 (?P<n>\d{5})：(?P<p>[^，\n]+?) × \d+，应付", "zh"),
)
ORDERS = tuple((re.compile(pattern), language) for pattern, language in _ORDERS)
REFUND_EN = re.compile(
    r"Refund number (RF\d+): order (\d{5}), (¥[\d,]+), accepted on [^\n]*?\((\d-\d working days)\)"
    r"[^\n]*?Reason: ([^\n]+)"
)
REFUND_ZH = re.compile(
    r"退款编号 (RF\d+)：订单 (\d{5})，金额 ([^，\n]+)，[^\n]*?(\d-\d 个工作日)[^\n]*?原因：([^\n]+)"
)
NUMBER = re.compile(r"(?<![A-Za-z0-9])(?:RF\d{6,}|\d{5})(?!\d)")
_ORDERED = re.compile(r"[(（](.+)[)）]")


def dealings(text: str, known: Items) -> Items:
    """The notes that a text gives by what they are about; the product of an order that only an
    earlier note (`known`) tells is kept."""
    found: Items = {}
    for pattern, language in ORDERS:
        for match in pattern.finditer(text):
            number, status = match["n"], match["s"].strip()
            before = _ORDERED.search(found.get(number) or known.get(number, ""))
            product = match["p"].strip() or (before[1] if before else "")
            english, chinese = f" ({product})", f"（{product}）"
            found[number] = (
                f"order {number}{english * bool(product)}, {status}"
                if language == "en"
                else f"订单 {number}{chinese * bool(product)}，{_parcel(status)}"
            )
    for match in REFUND_EN.finditer(text):
        number, order, amount, days, reason = match.groups()
        why = clip(reason.strip(), REASON_SHOWN)
        found[number] = f"refund number {number} (order {order}, {amount}, {why}), {days}"
    for match in REFUND_ZH.finditer(text):
        number, order, amount, days, reason = match.groups()
        why = clip(reason.strip(), REASON_SHOWN)
        found[number] = f"退款编号 {number}（订单 {order}，{amount}，因{why}），{days}到账"
    return found


def about(item: str) -> str:
    """What a note is about: its number, else all of it."""
    number = NUMBER.search(item)
    return number[0] if number else item.casefold()


def _parcel(status: str) -> str:
    return f"物流{status}" if status in ("已签收", "运输中") else status
