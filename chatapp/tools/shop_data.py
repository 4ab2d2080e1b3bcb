"""The demo shop's goods, orders and policies, in English and Chinese (the story of S0).

Enough for S0's seven questions: where order 88231 is, a refund for a robot vacuum that does not
return to its dock, when the money arrives, new models, S20 Pro or S20 Max, promotions, an order.
Days are counted back from the day on which a conversation first asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Both = tuple[str, str]  # English, Chinese
Category = Literal["robot vacuum", "air purifier", "accessory"]

# Refunds (S0: 3 to 5 working days), and how long they can be applied for, in days.
REFUND_FROM, REFUND_TO = 3, 5
REFUND_DAYS = 30
WARRANTY_MONTHS = 12
QUANTITY_MOST = 5


@dataclass(frozen=True, slots=True)
class Product:
    """One thing on sale. `price` and `discount` (taken off by a promotion) in yuan; `keys` are how
    it may be called, in small letters without spaces; `successor` is bought in its place."""

    name: Both
    keys: tuple[str, ...]
    category: Category
    price: int
    about: Both
    discount: int = 0
    is_new: bool = False
    successor: str = ""

    @property
    def to_pay(self) -> int:
        return self.price - self.discount


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a parcel: so many days ago, at a time of day."""

    days_ago: int
    time: str
    what: Both


@dataclass(frozen=True, slots=True)
class Record:
    """One order that the shop has from the start. `signed` is how many days ago it was signed for;
    without events it is not shipped yet."""

    product: str
    quantity: int
    days_ago: int
    tracking: str = ""
    events: tuple[Event, ...] = ()
    signed: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One article of the knowledge base, and the words in a question that it answers."""

    words: tuple[str, ...]
    text: Both


PRODUCTS = {
    "s10pro": Product(
        name=("Bit S10 Pro robot vacuum", "比特 S10 Pro 扫地机"),
        keys=("s10pro",),
        category="robot vacuum",
        price=1999,
        about=("suction 5,000 Pa, charging dock, 150 min", "吸力 5000 Pa，充电基站，续航 150 分钟"),
        successor="s20pro",
    ),
    "s20pro": Product(
        name=("Bit S20 Pro robot vacuum", "比特 S20 Pro 扫地机"),
        keys=("s20pro",),
        category="robot vacuum",
        price=2499,
        about=(
            "suction 8,000 Pa, dock empties the dust box, 180 min, for up to 120 m²",
            "吸力 8000 Pa，基站自动集尘，续航 180 分钟，适合 120 平米以内",
        ),
        discount=200,
        is_new=True,
    ),
    "s20max": Product(
        name=("Bit S20 Max robot vacuum", "比特 S20 Max 扫地机"),
        keys=("s20max",),
        category="robot vacuum",
        price=3299,
        about=(
            "suction 12,000 Pa, dock empties dust, washes and dries the mop, 240 min, "
            "for up to 200 m²",
            "吸力 12000 Pa，基站自动集尘、洗拖布并热风烘干，续航 240 分钟，适合 200 平米以内",
        ),
        is_new=True,
    ),
    "a5": Product(
        name=("Bit A5 air purifier", "比特 A5 空气净化器"),
        keys=("a5", "airpurifier", "净化器"),
        category="air purifier",
        price=899,
        about=("for rooms up to 40 m², 32 dB at night", "适用 40 平米以内房间，夜间 32 分贝"),
    ),
    "bags": Product(
        name=("set of 6 dust bags for the S20 series", "S20 系列集尘袋（6 个装）"),
        keys=("dustbag", "bags", "集尘袋"),
        category="accessory",
        price=89,
        about=("fits S20 Pro and S20 Max", "适配 S20 Pro 和 S20 Max"),
    ),
}

_PICKED_UP = ("picked up by Bit Express", "比特速运已揽收")
_AT_HANGZHOU = ("arrived at the Hangzhou transit centre", "已到达杭州转运中心")

ORDERS = {
    "88231": Record(
        product="s10pro",
        quantity=1,
        days_ago=6,
        tracking="BX202688231",
        events=(
            Event(5, "10:20", _PICKED_UP),
            Event(3, "06:45", _AT_HANGZHOU),
            Event(1, "09:12", ("out for delivery", "正在派送")),
            Event(1, "15:42", ("signed for at the front desk", "已签收，签收地点：前台代收")),
        ),
        signed=1,
    ),
    "88240": Record(
        product="bags",
        quantity=2,
        days_ago=3,
        tracking="BX202688240",
        events=(Event(2, "11:05", _PICKED_UP), Event(1, "22:30", _AT_HANGZHOU)),
    ),
    "88256": Record(product="a5", quantity=1, days_ago=1),
    "87102": Record(
        product="s10pro",
        quantity=1,
        days_ago=70,
        tracking="BX202687102",
        events=(
            Event(69, "14:10", _PICKED_UP),
            Event(66, "17:25", ("signed for in person", "已签收，本人签收")),
        ),
        signed=66,
    ),
}

KNOWLEDGE: Sequence[Entry] = (
    Entry(
        ("arrive in my account", "how long", "when will", "working days", "money back", "refund",
         "到账", "多久", "几天", "退款", "工作日"),
        (
            f"Refund times: the money goes back the way it was paid within {REFUND_FROM}-"
            f"{REFUND_TO} working days after the refund was accepted; a bank card may take one "
            "day more.",
            f"退款到账时间：退款受理后 {REFUND_FROM}-{REFUND_TO} 个工作日内原路退回，"
            "银行卡可能再晚一天。",
        ),
    ),
    Entry(
        ("can i return", "return policy", "conditions", "too old", "warranty", "refund policy",
         "退货", "退款政策", "退款条件", "保修", "质保", "能退"),
        (
            f"Returns: a refund can be applied for until {REFUND_DAYS} days after the parcel was "
            "signed for; an order that is not shipped yet is cancelled and refunded at once. Later "
            f"defects are repaired free of charge for {WARRANTY_MONTHS} months.",
            f"退货政策：签收后 {REFUND_DAYS} 天内可申请退款；未发货的订单直接取消并退款。"
            f"超过期限的故障，{WARRANTY_MONTHS} 个月内免费维修。",
        ),
    ),
    Entry(
        ("dock", "return to its dock", "docking", "does not charge", "charging station",
         "回充", "不回充", "充电座", "基站"),
        (
            "A robot vacuum does not return to its dock: 1. leave 0.5 m free on both sides of the "
            "dock and 1.5 m in front; 2. wipe the charging contacts and the sensor; 3. hold the "
            "home key for 5 seconds and let it search once. If it still fails, it is a defect that "
            "is refunded or repaired.",
            "扫地机不回充：1. 基站左右各留 0.5 米、前方留 1.5 米；2. 擦净充电触点和传感器；"
            "3. 长按回充键 5 秒，让它重新找一次。仍然不行属于质量问题，可以退款或维修。",
        ),
    ),
    Entry(
        ("compare", "difference", "versus", " vs", "which one", "s20 max", "s20max",
         "区别", "对比", "哪个好", "怎么选"),
        (
            "S20 Pro or S20 Max: the Pro costs ¥2,499, has 8,000 Pa and 180 min, and its dock "
            "empties the dust box; for homes up to 120 m². The Max costs ¥3,299, has 12,000 Pa and "
            "240 min, and its dock also washes and dries the mop; for up to 200 m².",
            "S20 Pro 与 S20 Max 的区别：Pro 售价 2499 元，吸力 8000 Pa，续航 180 分钟，"
            "基站自动集尘，适合 120 平米以内；Max 售价 3299 元，吸力 12000 Pa，续航 240 分钟，"
            "基站还能洗拖布并热风烘干，适合 200 平米以内。",
        ),
    ),
    Entry(
        ("promotion", "discount", "coupon", "offer", "cheaper", "sale", "on now",
         "活动", "优惠", "促销", "折扣", "便宜", "满减"),
        (
            "Promotions: S20 Pro ¥200 off, so ¥2,299 instead of ¥2,499, taken off when ordering; "
            "a set of dust bags comes with it. There is no promotion for the S20 Max.",
            "当前活动：S20 Pro 下单立减 200 元，2499 元的到手价 2299 元，并赠一套集尘袋；"
            "S20 Max 暂无活动。",
        ),
    ),
    Entry(
        ("s20 pro", "s20pro", "price", "how much", "多少钱", "价格", "售价"),
        (
            "S20 Pro: ¥2,499 (with the promotion ¥2,299). S20 Max: ¥3,299. Both are in stock.",
            "S20 Pro 的售价是 2499 元（活动到手价 2299 元），S20 Max 的售价是 3299 元，均有现货。",
        ),
    ),
    Entry(
        ("not received", "never arrived", "did not get", "lost", "signed for", "where is my parcel",
         "没收到", "未收到", "丢件", "签收", "没到"),
        (
            "Signed for but not received: ask at the place where it was signed for (front desk, "
            "neighbours, parcel locker). If it is not there, customer service asks the carrier, "
            "which answers within 2 working days.",
            "显示签收但没收到：请先到签收地点（前台、邻居、快递柜）询问；若仍找不到，"
            "客服会向快递公司发起核查，2 个工作日内答复。",
        ),
    ),
    Entry(
        ("delivery", "shipping", "dispatch", "invoice", "发货", "配送", "运费", "发票"),
        (
            "Delivery: orders are shipped within 48 hours and take 2-4 days; free of charge from "
            "¥99. Electronic invoices are sent by e-mail once the parcel was signed for.",
            "配送：48 小时内发货，2-4 天送达，满 99 元免运费。签收后电子发票发送到邮箱。",
        ),
    ),
)  # fmt: skip
