"""Arguments of calls as models write them: read, compared, and stored so that they can be sent."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.tools.arguments import DEPTH_MOST, call_key, parse, storable_arguments
from memory.core.messages import ToolCall

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
# JSON as Python writes it (NaN and escaped halves of characters included), broken or whole.
WRITTEN = st.builds(
    lambda value, ascii_, cut: json.dumps(value, ensure_ascii=ascii_)[: cut or None],
    JSON,
    st.booleans(),
    st.integers(0, 40),
)


def strictly(text: str) -> Any:
    """JSON as a strict server reads it: UTF-8, no NaN, whole characters."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    value = json.loads(text.encode(), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@given(ANY_TEXT | WRITTEN)
@example('{"a": "\\ud83d"}')
@example('{"a": 1e999, "b": "\\u0000"}')
@example('{"a": NaN}')
@example("\ud800")
@example('{"\ud800": 1}')
@example("[" * 100_000)
@example('{"a":' * 5_000)
@example('{"a": ' + "9" * 5_000 + "}")
def test_stored_arguments_are_always_an_object_that_strict_servers_read(text: str) -> None:
    stored = storable_arguments(text)
    assert isinstance(strictly(stored), dict)
    assert "\0" not in stored
    assert "\\u0000" not in stored or "\\\\u0000" in stored
    assert storable_arguments(stored) == stored


@given(st.dictionaries(st.text("ab\n猫", max_size=3), st.integers() | st.text('ab"\\猫')))
def test_valid_arguments_are_stored_as_they_were_written(value: dict[str, Any]) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2, ensure_ascii=False)):
        assert storable_arguments(text) == text
        assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", "{}"),
        ("  \n", "{}"),
        ("null", "{}"),
        ('{"q":"unterminated', '{"unparsed": "{\\"q\\":\\"unterminated"}'),
        ("[1]", '{"unparsed": "[1]"}'),
        ('"x"', '{"unparsed": "\\"x\\""}'),
        ("猫\0", '{"unparsed": "猫\ufffd"}'),
        ('{"a": "x\\u0000y"}', '{"a": "x\ufffdy"}'),
        ('{"a": ["\\ud83d"]}', '{"a": ["\ufffd"]}'),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\\ud83d\\ude00"}'),
        (" { } ", " { } "),
    ],
)
def test_what_is_stored(text: str, stored: str) -> None:
    assert storable_arguments(text) == stored


def test_arguments_nested_too_deep_for_servers_are_stored_as_text() -> None:
    def nested(levels: int) -> str:
        return '{"a": ' + "[" * levels + "]" * levels + "}"

    assert storable_arguments(nested(DEPTH_MOST)) == nested(DEPTH_MOST)
    assert json.loads(storable_arguments(nested(DEPTH_MOST + 1))) == {
        "unparsed": nested(DEPTH_MOST + 1)
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a": 1', r"Expecting ',' delimiter \(line 1, column 8\)"),
        ("{\n'a': 1}", r"double quotes \(line 2, column 1\)"),
        ("[1]", "it is a list, not an object"),
        ("3", "it is a number, not an object"),
        ("1.5", "it is a number, not an object"),
        ("true", "it is a boolean, not an object"),
        ('"x"', "it is a string, not an object"),
        ('{"a": NaN}', "NaN is no JSON"),
        ("[" * 100_000, "nested more than 100 levels"),
        ('{"a":' + "[" * 101 + "]" * 101 + "}", "nested more than 100 levels"),
    ],
)
def test_what_cannot_be_read_is_said_to_be_wrong_where_it_is(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse(text)


def key(name: str, arguments: str) -> str:
    return call_key(ToolCall("c1", name, arguments))


def test_calls_that_ask_the_same_have_one_key() -> None:
    same = {key("f", '{"a": 1, "b": [2]}'), key("f", '{"b":[2],"a":1}')}
    assert len(same) == 1
    assert key("f", "") == key("f", "{}") == key("f", " null ")
    assert key("f", '{"a": ') == key("f", ' {"a": ')


def test_calls_that_differ_have_different_keys() -> None:
    keys = [
        key(name, arguments)
        for name in ("f", "g")
        for arguments in ("{}", '{"a": 1}', '{"a": "1"}', '{"a": [1]}', '{"a": 1', "x")
    ]
    assert len(set(keys)) == len(keys)
