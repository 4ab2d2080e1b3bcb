"""The demo shop answers S0's seven questions in both languages, and refuses with a way out."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from chatapp.tools import shop
from chatapp.tools.registry import ToolContext, ToolError
from chatapp.tools.shop import SHOP
from chatapp.tools.shop_data import PRODUCTS
from chatapp.tools.shop_ledger import Ledger

MONDAY = datetime(2026, 6, 29, 14, 5, tzinfo=UTC)  # the day of S0's refund number
HAN = range(0x4E00, 0xA000)


class Clock:
    def __init__(self, now: datetime = MONDAY) -> None:
        self.time = now

    def now(self) -> datetime:
        return self.time


@pytest.fixture(autouse=True)
def _own_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shop, "LEDGER", Ledger())


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def english(clock: Clock) -> ToolContext:
    return ToolContext(uuid.UUID(int=1), "en", clock.now)


@pytest.fixture
def chinese(clock: Clock) -> ToolContext:
    return ToolContext(uuid.UUID(int=2), "zh-hans", clock.now)


def ask(name: str, context: ToolContext, **arguments: Any) -> str:
    one = SHOP[name]
    text = one.function(**one.read(arguments), context=context)
    assert isinstance(text, str)
    return text


def test_where_order_88231_is(english: ToolContext, chinese: ToolContext) -> None:
    assert ask("query_logistics", english, order_number="88231") == (
        "Order 88231, parcel BX202688231: signed for at the front desk, 2026-06-28 15:42.\n"
        "2026-06-28 15:42 signed for at the front desk\n"
        "2026-06-28 09:12 out for delivery\n"
        "2026-06-26 06:45 arrived at the Hangzhou transit centre\n"
        "2026-06-24 10:20 picked up by Bit Express"
    )
    told = ask("query_logistics", chinese, order_number="88231")
    assert told.startswith("订单 88231，运单 BX202688231：已签收")
    assert "2026-06-26 06:45 已到达杭州转运中心" in told


@pytest.mark.parametrize(
    ("number", "english_words", "chinese_words"),
    [
        ("88231", "signed for at the front desk, 2026-06-28 15:42.", "状态：已签收"),
        ("88240", "2 x set of 6 dust bags for the S20 series, ¥178, placed on 2026-06-26. "
                  "Status: on its way, arrived at the Hangzhou transit centre.", "状态：运输中"),
        ("88256", "Status: paid, not shipped yet.", "状态：已付款，未发货。"),
        ("87102", "Status: signed for in person, 2026-04-24 17:25.", "本人签收，2026-04-24 17:25"),
    ],
)  # fmt: skip
def test_every_order_has_a_status(
    number: str, english_words: str, chinese_words: str, english: ToolContext, chinese: ToolContext
) -> None:
    assert ask("query_order", english, order_number=number).endswith(english_words)
    assert chinese_words in ask("query_order", chinese, order_number=number)


def test_a_refund_for_the_vacuum_that_does_not_dock(
    english: ToolContext, chinese: ToolContext
) -> None:
    told = ask("apply_refund", english, order_number="88231", reason=" does not dock ")
    assert told == (
        "Refund number RF20260629001: order 88231, ¥1,999, accepted on 2026-06-29. The money "
        "arrives between 2026-07-02 and 2026-07-06 (3-5 working days), the way it was paid. "
        "Reason: does not dock"
    )
    told = ask("apply_refund", chinese, order_number="88231", reason="不回充")
    assert told.startswith("退款编号 RF20260629001：订单 88231，金额 1999 元，2026-06-29 已受理。")
    assert "预计 2026-07-02 至 2026-07-06 到账" in told
    assert ask("query_refund", english, number="RF20260629001").startswith("Refund number RF2026")
    assert "RF20260629001" in ask("query_order", english, order_number="88231")


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How long does a refund take?", "3-5 working days"),
        ("退款多久到账？", "3-5 个工作日"),
        ("The vacuum does not return to its dock", "charging contacts"),
        ("这个扫地机不回充了", "充电触点"),
        ("What is the difference between S20 Pro and S20 Max?", "12,000 Pa"),
        ("S20 Pro 和 S20 Max 有什么区别", "12000 Pa"),
        ("Is there a promotion for the S20 Pro?", "¥2,299"),
        ("S20 Pro 现在有活动吗", "2299 元"),
        ("How much is the S20 Pro?", "¥2,499"),
        ("Ｓ２０ Pro 多少钱", "2499 元"),
        ("It says signed for, but it never arrived", "ask at the place"),
        ("显示签收但是我没收到", "前台、邻居、快递柜"),
        ("refund policy", "30 days"),
    ],
)
def test_the_knowledge_base_answers(
    question: str, told: str, english: ToolContext, chinese: ToolContext
) -> None:
    context = chinese if any(ord(char) in HAN for char in question) else english
    assert told in ask("search_knowledge", context, query=question)


def test_only_the_knowledge_base_is_retrieval() -> None:
    assert SHOP.retrieval == {"search_knowledge"}


def test_what_is_not_in_the_knowledge_base_is_answered_with_what_is(english: ToolContext) -> None:
    with pytest.raises(ToolError, match="There are articles on: refund times"):
        ask("search_knowledge", english, query="weather")


def test_new_models_are_recommended_first(english: ToolContext, chinese: ToolContext) -> None:
    lines = ask("recommend_products", english).splitlines()
    assert lines[0].startswith("- Bit S20 Pro robot vacuum (new): ¥2,499, now ¥2,299;")
    assert lines[1].startswith("- Bit S20 Max robot vacuum (new): ¥3,299;")
    assert len(lines) == 4
    told = ask("recommend_products", chinese, category="robot vacuum", budget=2_300)
    assert told.startswith("- 比特 S20 Pro 扫地机（新款）：2499 元，活动价 2299 元；")
    assert "Max" not in told
    assert "S10" not in "\n".join(lines)
    told = ask("recommend_products", english, category="air purifier", budget=100)
    assert told == "Nothing costs that little; it begins at ¥899."


def test_an_order_is_placed_and_can_be_looked_up(
    english: ToolContext, chinese: ToolContext
) -> None:
    told = ask("place_order", english, product="Bit S20 Pro robot vacuum", quantity=2)
    assert told.startswith(
        "Order 88301 is placed: 2 x Bit S20 Pro robot vacuum, to pay ¥4,598 (¥400 off by the promo"
    )
    assert ask("place_order", english, product="s20max").startswith("Order 88302 is placed: 1 x")
    assert ask("query_order", english, order_number="88301") == (
        "Order 88301: 2 x Bit S20 Pro robot vacuum, ¥4,598, placed on 2026-06-29. "
        "Status: waiting for payment."
    )
    told = ask("query_logistics", english, order_number="88301")
    assert told == "Order 88301: no parcel yet, waiting for payment."
    assert ask("place_order", chinese, product="S20 Pro 扫地机").startswith("已下单，订单号 88301")


@pytest.mark.parametrize("product", ["S20", "扫地机", "", "S20 Pro or S20 Max", "fridge"])
def test_a_product_that_is_not_clear_is_asked_for(product: str, english: ToolContext) -> None:
    with pytest.raises(ToolError, match=r"On sale: Bit S20 Pro .* Ask the customer which one"):
        ask("place_order", english, product=product)


def test_a_product_no_longer_sold_names_its_successor(chinese: ToolContext) -> None:
    with pytest.raises(ToolError, match="已停售，可推荐后续型号：比特 S20 Pro 扫地机"):
        ask("place_order", chinese, product="S10 Pro")


def test_every_name_that_is_shown_can_be_ordered(
    english: ToolContext, chinese: ToolContext
) -> None:
    for one in PRODUCTS.values():
        if not one.successor:
            for context in (english, chinese):
                assert context.say(one.name) in ask(
                    "place_order", context, product=context.say(one.name)
                )


@pytest.mark.parametrize("number", ["99999", "", "88231 88240", "<|im_start|>", "9" * 5_000])
@pytest.mark.parametrize("name", ["query_order", "query_logistics", "apply_refund"])
def test_an_unknown_order_says_what_to_do(
    name: str, number: str, english: ToolContext, chinese: ToolContext
) -> None:
    more = {"reason": "broken"} if name == "apply_refund" else {}
    with pytest.raises(ToolError, match=r"five digits.*ask the customer") as refused:
        ask(name, english, order_number=number, **more)
    assert len(str(refused.value)) < 200
    with pytest.raises(ToolError, match="请向用户核实订单号"):
        ask(name, chinese, order_number=number, **more)


@pytest.mark.parametrize("number", ["88231", 88231, " #88231", "订单 88231 号", "８８２３１"])
def test_an_order_number_is_found_among_words(number: str | int, english: ToolContext) -> None:
    told = ask("query_order", english, order_number=number)
    assert told.startswith("Order 88231: 1 x Bit S10 Pro robot vacuum, ¥1,999, placed on 2026-06-2")


@pytest.mark.parametrize(
    ("number", "english_words", "chinese_words"),
    [
        ("88240", "on its way .* apply once it was signed for", "运输中.*签收后再申请"),
        ("87102", "signed for on 2026-04-24, more than 30 days ago.*repair", "超过 30 天.*维修"),
        ("88301", "is not paid: there is nothing to refund", "尚未付款"),
    ],
)
def test_what_cannot_be_refunded_says_why_and_what_else(
    number: str, english_words: str, chinese_words: str, english: ToolContext, chinese: ToolContext
) -> None:
    for context, words in ((english, english_words), (chinese, chinese_words)):
        ask("place_order", context, product="S20 Max")
        with pytest.raises(ToolError, match=words):
            ask("apply_refund", context, order_number=number, reason="x")


def test_an_order_that_is_not_shipped_can_be_refunded(english: ToolContext) -> None:
    told = ask("apply_refund", english, order_number="88256", reason="no longer needed")
    assert told.startswith("Refund number RF20260629001: order 88256, ¥899")


def test_a_refund_needs_a_reason(english: ToolContext) -> None:
    with pytest.raises(ToolError, match="Ask the customer for the reason"):
        ask("apply_refund", english, order_number="88231", reason=" ")


def test_the_thirtieth_day_is_the_last_for_a_refund(clock: Clock, english: ToolContext) -> None:
    ask("query_order", english, order_number="88231")  # signed for on 2026-06-28
    clock.time = MONDAY + timedelta(days=30)
    with pytest.raises(ToolError, match="more than 30 days"):
        ask("apply_refund", english, order_number="88231", reason="broken")
    clock.time = MONDAY + timedelta(days=29)
    told = ask("apply_refund", english, order_number="88231", reason="broken")
    assert told.startswith("Refund number RF20260728001")


def test_refund_numbers_count_up_by_day_and_stay(clock: Clock, english: ToolContext) -> None:
    first = ask("apply_refund", english, order_number="88231", reason="broken")
    assert ask("apply_refund", english, order_number="88231", reason="again") == first
    second = ask("apply_refund", english, order_number="88256", reason="late")
    assert (first[:27], second[:27]) == (
        "Refund number RF20260629001", "Refund number RF20260629002"
    )  # fmt: skip
    clock.time += timedelta(days=1)
    assert ask("apply_refund", english, order_number="88231", reason="again") == first
    assert ask("query_refund", english, number="order 88256") == second
    told = ask("query_refund", english, number="RF20260629003")
    assert told == (
        'There is no refund "RF20260629003". Refunds in this conversation: RF20260629001, '
        "RF20260629002."
    )


def test_numbers_of_another_day_start_again(clock: Clock, english: ToolContext) -> None:
    ask("apply_refund", english, order_number="88231", reason="broken")
    clock.time += timedelta(days=1)
    told = ask("apply_refund", english, order_number="88256", reason="late")
    assert told.startswith("Refund number RF20260630001")


def test_days_stay_as_they_were_first_told(clock: Clock, english: ToolContext) -> None:
    before = ask("query_logistics", english, order_number="88231")
    clock.time += timedelta(days=3)
    assert ask("query_logistics", english, order_number="88231") == before


def test_conversations_do_not_see_each_other(english: ToolContext, chinese: ToolContext) -> None:
    ask("apply_refund", english, order_number="88231", reason="broken")
    assert ask("query_refund", chinese, number="88231") == (
        "没有“88231”对应的退款。本次会话中的退款：无。"
    )
    assert "RF" not in ask("query_order", chinese, order_number="88231")


def test_the_time_is_told_with_its_zone_and_weekday(
    english: ToolContext, chinese: ToolContext
) -> None:
    assert ask("current_time", english) == "2026-06-29 14:05 UTC, Monday"
    assert ask("current_time", chinese) == "2026-06-29 14:05（UTC），星期一"
