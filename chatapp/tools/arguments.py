"""The arguments of a call, as the model wrote them: read, compared and stored."""

import json
from typing import Any

from memory.core.messages import ToolCall
from memory.core.text import clean

# The key under which arguments are stored that are no JSON object; rung 1 uses the same.
UNPARSED = "unparsed"
# Levels of lists and objects; some servers read no more than 128 with what stands around them.
DEPTH_MOST = 100
_TOO_DEEP = f"it is nested more than {DEPTH_MOST} levels deep"


def parse(text: str) -> dict[str, Any]:
    """The JSON object in `text`; nothing at all and null are an empty one. NUL and lone surrogates
    in it, which may be written as escapes, become U+FFFD.

    Raises ValueError whose message says what is wrong, and where.
    """
    value: dict[str, Any] = _cleaned(_loaded(text))
    return value


def storable_arguments(text: str) -> str:
    """What is stored of a call's arguments and sent again: always the text of a JSON object, which
    every server accepts. Arguments that are one stay as they were written, character for character;
    anything else stands under the key "unparsed"."""
    try:
        value = _loaded(text)
        tidy = _cleaned(value)
        if value == tidy:
            return text if value or text.strip()[:1] == "{" else "{}"
        return json.dumps(tidy, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps({UNPARSED: clean(text)}, ensure_ascii=False)


def call_key(call: ToolCall) -> str:
    """Equal for calls that ask the same: the tool's name and its arguments, without regard to the
    order of keys and to spaces."""
    try:
        written = json.dumps(parse(call.arguments), sort_keys=True, ensure_ascii=False)
    except ValueError:
        written = clean(call.arguments.strip())
    return f"{clean(call.name)} {written}"


def _loaded(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} (line {error.lineno}, column {error.colno})") from error
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"it is a {_KINDS[type(value)]}, not an object")
    return value


_KINDS = {list: "list", str: "string", int: "number", float: "number", bool: "boolean"}


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _cleaned(value: Any, depth: int = 0) -> Any:
    """The value with every string in it cleaned. Raises ValueError where it is nested too deep."""
    if depth > DEPTH_MOST:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list):
        return [_cleaned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(key): _cleaned(item, depth + 1) for key, item in value.items()}
    return clean(value) if isinstance(value, str) else value
