"""The wire shape, its spans, and the hash of a request's body."""

import hashlib

import pytest

from memory.core.messages import Message, ToolCall
from memory.core.wire import Span, body_hash, canonical, to_wire
from tests.builders import call, reply, result, user


def test_plain_messages_have_role_and_content_alone() -> None:
    assert user("hi").to_wire() == {"role": "user", "content": "hi"}
    assert reply("").to_wire() == {"role": "assistant", "content": ""}


def test_a_result_names_its_call() -> None:
    assert result("ok", "c1").to_wire() == {
        "role": "tool",
        "content": "ok",
        "tool_call_id": "c1",
    }


def test_content_is_null_only_beside_calls() -> None:
    message = Message("assistant", "", tool_calls=(ToolCall("c1", "find", '{"id": 1}'),))
    assert message.to_wire() == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"id": 1}'}}
        ],
    }
    assert call("find", text="one moment").to_wire()["content"] == "one moment"


def test_memory_parts_join_the_one_system_message() -> None:
    wire, spans = to_wire([Message("system", "Be kind."), Message("system", "Notes."), user("hi")])
    assert wire == [
        {"role": "system", "content": "Be kind.\n\nNotes."},
        {"role": "user", "content": "hi"},
    ]
    assert spans == (Span(0, 0, 8), Span(0, 10, 16), Span(1, 0, 2))


def test_neighbouring_user_messages_are_joined() -> None:
    wire, spans = to_wire([user("one"), user(""), user("three")])
    assert wire == [{"role": "user", "content": "one\n\n\n\nthree"}]
    assert spans == (Span(0, 0, 3), Span(0, 5, 5), Span(0, 7, 12))


def test_neighbouring_replies_are_joined() -> None:
    wire, _ = to_wire([reply("one"), reply("two")])
    assert wire == [{"role": "assistant", "content": "one\n\ntwo"}]


@pytest.mark.parametrize(
    "parts",
    [
        [reply("so"), call("find")],
        [call("find"), reply("so")],
        [call("find"), call("find")],
        [result("1"), result("2")],
    ],
)
def test_calls_and_results_are_never_joined(parts: list[Message]) -> None:
    wire, spans = to_wire(parts)
    assert wire == [part.to_wire() for part in parts]
    assert [span.index for span in spans] == [0, 1]


def test_nothing_gives_nothing() -> None:
    assert to_wire([]) == ([], ())


def test_canonical_json_is_sorted_dense_and_utf8() -> None:
    assert canonical({"b": [1, None], "a": "é"}) == '{"a":"é","b":[1,null]}'.encode()


def test_the_hash_does_not_depend_on_the_order_of_keys() -> None:
    one, two = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert body_hash(one) == body_hash(two)
    assert body_hash(one) == hashlib.sha256(b'{"a":1,"b":{"c":2,"d":3}}').hexdigest()


def test_the_hash_depends_on_the_order_of_messages() -> None:
    assert body_hash([1, 2]) != body_hash([2, 1])


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical({"temperature": number})
