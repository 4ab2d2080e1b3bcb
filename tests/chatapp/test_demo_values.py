"""What the demo model reads out of messages for its calls, and how it fits a tool's schema."""

from typing import Any

import pytest

from chatapp.demo_calls import accepts, fitted
from chatapp.demo_model import complete
from chatapp.demo_wishes import (
    END,
    budget_in,
    category_in,
    ends,
    order_numbers,
    products_in,
    quantity_in,
    reason_in,
    wishes,
)
from chatapp.tools.shop import SHOP


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "minLength": 30},
        {"type": "integer"},
        {"type": "integer", "minimum": 3},
        {"type": "integer", "maximum": -3},
        {"type": "number", "minimum": 0.5, "maximum": 0.75},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"enum": ["a", "b"]},
        {"const": "a", "type": "string"},
        {"anyOf": [{"type": "integer", "minimum": 9}, {"type": "null"}]},
        {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 2}]},
        {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
        {},
    ],
)
def test_every_common_schema_gets_a_value_that_it_accepts(schema: dict[str, Any]) -> None:
    given = fitted(parameters(value=schema), {}, "two 12", strict=True)
    assert set(given) == {"value"}
    assert accepts(schema, given["value"])


def test_known_values_fill_optional_arguments_and_nothing_else_does() -> None:
    schema = {"type": "object", "properties": {"query": {"type": "string"}, "x": {}}}
    assert fitted(schema, {"query": "q", "other": 1}, "text", strict=True) == {"query": "q"}
    assert fitted(schema, {"query": 7}, "text", strict=True) == {}
    assert fitted({}, {"query": "q"}, "text", strict=True) == {}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, True),
        ({"type": "integer"}, "1"),
        ({"type": "string", "maxLength": 2}, "abc"),
        ({"type": "array", "maxItems": 0}, [1]),
        ({"type": "number", "maximum": 2}, 2.5),
        ({"enum": ["a"]}, "b"),
        ({"const": "a"}, "b"),
        ({"anyOf": [{"type": "string"}]}, None),
    ],
)
def test_what_does_not_fit_a_schema_is_not_accepted(schema: dict[str, Any], value: Any) -> None:
    assert not accepts(schema, value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I want a refund: it is too loud.", "it is too loud"),
        ("Refund order 88231 please, because the dock is broken.", "the dock is broken"),
        ("I want a refund. The lid broke, and it is loud!", "The lid broke, and it is loud"),
        ("I want a refund", "I want a refund"),
        ("我要退款，因为太吵了。", "太吵了"),
        ("订单 88231，我要退款，盖子裂了", "盖子裂了"),
    ],
)
def test_the_reason_is_what_the_user_says_besides_the_wish(text: str, reason: str) -> None:
    assert reason_in(text) == reason


@pytest.mark.parametrize(
    ("text", "own", "numbers"),
    [
        ("Where is order 88231 and order no. 88240?", True, ["88231", "88240"]),
        ("订单88231的物流", True, ["88231"]),
        ("８８２３１", True, ["88231"]),
        ("it cost ¥12345, or 12345 元, code AB12345, RF20260629001", True, []),
        ("paid 88231 and 88240", False, []),
        ("There is no order “88231”. Order numbers have five digits, such as 88231.", False, []),
        ("Order 88301 is placed", False, ["88301"]),
        ("已下单，订单号 88301：", False, ["88301"]),
    ],
)
def test_order_numbers_are_read(text: str, own: bool, numbers: list[str]) -> None:
    assert order_numbers(text, own=own) == numbers


def test_a_question_for_a_number_is_no_wish_for_a_tool() -> None:
    for text in (
        "what was my order number?",
        "刚才那个订单号是多少",
        "Which refund number was it?",
    ):
        assert [wish.tools for wish in wishes(text)] == [()]


@pytest.mark.parametrize(
    ("text", "quantity"),
    [
        ("order two S20 Pro", 2),
        ("buy 12 of them", 12),
        ("来三台 S20 Pro", 3),
        ("S20 Max 两个", 2),
        ("S20 Max x", None),
        ("S20 系列集尘袋（6 个装）", None),
        ("帮我下个单吧", None),
    ],
)
def test_quantities_are_read(text: str, quantity: int | None) -> None:
    assert quantity_in(text) == quantity


@pytest.mark.parametrize(
    ("text", "budget"),
    [("under ¥2,500", 2500), ("预算 3000 左右", 3000), ("2000 元以内", 2000), ("S20 Pro", None)],
)
def test_budgets_are_read(text: str, budget: float | None) -> None:
    assert budget_in(text) == budget


def test_products_and_categories_are_read() -> None:
    text = "Ｓ２０ pro or the s20-max, a5 or A51, S200"
    assert products_in(text) == {"s20pro": "S20 pro", "s20max": "s20-max", "a5": "a5"}
    assert products_in("比特 A5 空气净化器和集尘袋") == {"a5": "A5", "bags": "集尘袋"}
    texts = ("a new vacuum", "净化器", "dust bags", "anything")
    assert [category_in(text) for text in texts] == [
        "robot vacuum", "air purifier", "accessory", None
    ]  # fmt: skip


def test_of_a_long_text_both_ends_are_searched() -> None:
    paste = "what order " * 2_000
    assert len(ends(paste)) <= 2 * END + 1
    assert ends("short") == "short"
    for text in (f"Where is my order 88231?\n{paste}", f"{paste}\nWhere is my order 88231?"):
        body = {"model": "demo", "messages": [{"role": "user", "content": text}]}
        answered = complete(body | {"tools": SHOP.schemas()}, lambda text: 1)
        assert [call.name for call in answered.calls] == ["query_order", "query_logistics"]


def test_an_empty_message_asks_for_nothing_again() -> None:
    messages = [
        {"role": "user", "content": "Where is my order 88231?"},
        {"role": "assistant", "content": "On its way."},
        {"role": "user", "content": " "},
    ]
    assert complete({"model": "demo", "messages": messages, "tools": SHOP.schemas()}).calls == ()
