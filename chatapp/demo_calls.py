"""The arguments of the demo model's calls: what the request says, fitted to a tool's schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chatapp.demo_seen import Seen
from chatapp.demo_wishes import (
    GOODS,
    ON_SALE,
    WORDS_SHOWN,
    budget_in,
    category_in,
    order_numbers,
    plain,
    position_in,
    products_in,
    quantity_in,
    reason_in,
    refund_numbers,
    start_in,
)
from memory.core.text import shorten

Json = Mapping[str, Any]
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}
_BOUNDS: Sequence[tuple[type | tuple[type, ...], str, str]] = (
    ((int, float), "minimum", "maximum"),
    (str, "minLength", "maxLength"),
    (list, "minItems", "maxItems"),
)


def known(seen: Seen, kind: str, sentence: str, words: str) -> dict[str, Any]:
    """The values that arguments can have, by their names: out of the `sentence` that asks for a
    call of some `kind`, the whole of the user's `words`, and what was said before. What is not
    known is left out."""
    order = _order(seen, words)
    refund = next(iter(refund_numbers(words)[::-1]), None)
    number = refund or next(iter(order_numbers(words, own=True)[::-1]), None)
    values = {
        "order_number": order,
        "number": number or _newest_refund(seen) or order,
        "reason": reason_in(words),
        "query": _question(seen, kind, sentence),
        "product": _product(seen, words),
        "quantity": quantity_in(words),
        "category": category_in(sentence),
        "budget": budget_in(words),
        "position": position_in(words),
        "start": start_in(words),
    }
    return {name: value for name, value in values.items() if value is not None}


def _order(seen: Seen, words: str) -> str | None:
    """The number in the user's words, else the newest that was said; results count last."""
    said = [("user", words), *reversed(seen.said)]
    ranked = sorted(said, key=lambda one: one[0] == "tool")
    found = (order_numbers(text, own=role == "user") for role, text in ranked)
    return next((numbers[-1] for numbers in found if numbers), None)


def _newest_refund(seen: Seen) -> str | None:
    found = (refund_numbers(text) for _, text in reversed(seen.said))
    return next((numbers[-1] for numbers in found if numbers), None)


def _product(seen: Seen, words: str) -> str | None:
    """The product in the user's words, else the one on sale that was talked of last: what the user
    named counts before what others did. None where it could be several."""
    named = products_in(words)
    if not named:
        users = [text for role, text in seen.said if role == "user"]
        others = [part for role, text in seen.said if role != "user" for part in _asked(role, text)]
        talks = (products_in(text) for text in [*others, *users][::-1])
        on_sale = ({key: name for key, name in one.items() if key in ON_SALE} for one in talks)
        named = next((one for one in on_sale if one), {})
    return next(iter(named.values())) if len(named) == 1 else None


def _asked(role: str, text: str) -> list[str]:
    """The texts in which to look for products: of a memory part its items, without the answers."""
    if role != "memory":
        return [text]
    return [item.partition(" → ")[0] for item in re.split(r"[;；\n]", text)]


def _question(seen: Seen, kind: str, sentence: str) -> str:
    """What to look up; a question about goods names the one that was talked of."""
    question = shorten(" ".join(sentence.split()), WORDS_SHOWN)
    product = _product(seen, "") if kind == GOODS and not products_in(question) else None
    return f"{question} ({product})" if product else question


def fitted(parameters: Json, values: Mapping[str, Any], text: str, *, strict: bool) -> Json:
    """The arguments that a schema asks for: `values` by their names, null or something that fits
    where there is none. `strict` drops values that do not fit; else the tool may refuse them."""
    properties = parameters.get("properties")
    required = parameters.get("required")
    arguments: dict[str, Any] = {}
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        value = values.get(name)
        fitting = accepts(schema, value) or (not strict and _is_kind(schema, value))
        if value is not None and fitting:
            arguments[name] = value
        elif isinstance(required, list) and name in required:
            arguments[name] = something(schema, text)
    return arguments


def fits(parameters: Json, values: Mapping[str, Any]) -> bool:
    """Whether every argument that has to be given is known, or may be null."""
    properties, required = parameters.get("properties"), parameters.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return True
    schemas = ((name, properties.get(name, {})) for name in required)
    return all(
        accepts(schema, values.get(name)) if name in values else accepts(schema, None)
        for name, schema in schemas
    )


def accepts(schema: Any, value: Any) -> bool:
    """Whether a value fits a schema: its type, choices and bounds, as far as strict servers know
    them."""
    if not isinstance(schema, Mapping):
        return True
    union, choices = schema.get("anyOf"), schema.get("enum")
    if isinstance(union, list) and not any(accepts(one, value) for one in union):
        return False
    if isinstance(choices, list) and value not in choices:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    for kinds, least, most in _BOUNDS:
        if isinstance(value, kinds) and not isinstance(value, bool):
            size: Any = len(value) if isinstance(value, str | list) else value
            if not _bound(schema, least, size) <= size <= _bound(schema, most, size):
                return False
    return _is_kind(schema, value)


def _bound(schema: Json, name: str, default: Any) -> Any:
    value = schema.get(name)
    return value if isinstance(value, int | float) else default


def _is_kind(schema: Json, value: Any) -> bool:
    union, kinds = schema.get("anyOf"), schema.get("type")
    if isinstance(union, list):
        return any(_is_kind(one, value) for one in union if isinstance(one, Mapping))
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else _KINDS
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _KINDS.get(name, object)) for name in names)


def something(schema: Any, text: str) -> Any:
    """A value that fits a schema; where it may be any string, the text."""
    if not isinstance(schema, Mapping) or accepts(schema, None):
        return None
    number = re.search(r"\d{1,9}", plain(text))
    least, most = _bound(schema, "minimum", 1), _bound(schema, "maximum", 1)
    longest, items = _bound(schema, "maxLength", WORDS_SHOWN), _bound(schema, "minItems", 0)
    union, choices = schema.get("anyOf"), schema.get("enum")
    guesses = (
        *(choices if isinstance(choices, list) else ()),
        schema.get("const"),
        shorten(text, longest).ljust(_bound(schema, "minLength", 0), "."),
        int(number[0]) if number else None,
        least,
        most,
        False,
        [something(schema.get("items"), text)] * items,
        fitted(schema, {}, text, strict=True),
        *(something(one, text) for one in (union if isinstance(union, list) else ())),
    )
    return next((guess for guess in guesses if accepts(schema, guess)), text)
