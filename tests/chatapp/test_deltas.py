"""What a stream says, whatever the server's habits: text, thoughts, calls, counts, the end."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.deltas import Calls, Finish, Reader, Reasoning, StreamError, Text
from memory.core.messages import ToolCall

STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def said(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def part(index: int | None = None, identity: str | None = None, name: str | None = None,
         arguments: Any = None) -> dict[str, Any]:  # fmt: skip
    call: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    call |= {} if index is None else {"index": index}
    call |= {} if identity is None else {"id": identity}
    return call


def read(*chunks: dict[str, Any]) -> tuple[str, str, tuple[ToolCall, ...]]:
    """The reply, the thoughts and the calls."""
    reader = Reader()
    pieces = [one for chunk in chunks for one in reader.feed("", json.dumps(chunk))]
    pieces += reader.end()
    calls = [one.calls for one in pieces if isinstance(one, Calls)]
    return (
        "".join(one.text for one in pieces if isinstance(one, Text)),
        "".join(one.text for one in pieces if isinstance(one, Reasoning)),
        calls[0] if calls else (),
    )


@pytest.mark.parametrize(
    "parts",
    [
        ["777", "777", "77"],
        ["xy", "xy", "xy"],
        ["呵呵", "呵呵", "呵"],
        ["19", "9", "9", "0"],
    ],
)
def test_ps_14_repetition_in_the_text_is_kept(parts: list[str]) -> None:
    assert read(*(said(content=one) for one in parts), STOP)[0] == "".join(parts)


def test_ps_12_a_last_chunk_with_the_whole_message_adds_only_what_is_missing() -> None:
    whole = {"choices": [{"message": {"content": "Good day"}, "finish_reason": "stop"}]}
    assert read(said(content="Good "), said(content="day"), whole)[0] == "Good day"
    assert read(said(content="Good "), whole)[0] == "Good day"
    other = {"choices": [{"message": {"content": "Something else"}, "finish_reason": "stop"}]}
    assert read(said(content="Good day"), other)[0] == "Good day"


CALLS = [
    pytest.param(
        [[part(0, "c1", "add", "")], [part(0, None, None, '{"a":')], [part(0, None, None, "1}")]],
        [("c1", "add", '{"a":1}')], id="PS-03 only the first part has an id"),
    pytest.param(
        [[part(0, "k1", "lookup", '{"city":"Bern"}')],
         [part(0, "k2", "lookup", '{"city":"Lima"}')]],
        [("k1", "lookup", '{"city":"Bern"}'), ("k2", "lookup", '{"city":"Lima"}')],
        id="PS-05 two calls share an index"),
    pytest.param(
        [[part(0, "a", "f", "{"), part(1, "b", "g", "{")],
         [part(1, None, None, '"y":2}'), part(0, None, None, '"x":1}')]],
        [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')], id="parallel, interleaved"),
    pytest.param([[part(0, "a", "f", {"x": "é"})]], [("a", "f", '{"x": "é"}')],
                 id="PS-21 arguments as an object"),
    pytest.param([[part(None, None, "f", "{}")], [part(None, None, "g", "{}")]],
                 [("call_0", "f", "{}"), ("call_1", "g", "{}")], id="neither id nor index"),
    pytest.param([[part(0, "a", "f", None)]], [("a", "f", "{}")], id="no arguments at all"),
    pytest.param([[part(0, "a", "f", '{"x"')], [part(0, "a", None, ":1}")]],
                 [("a", "f", '{"x":1}')], id="the id on every part"),
    pytest.param([["nonsense"], [part(0, "a", "f", "{}")]], [("a", "f", "{}")], id="nonsense"),
]  # fmt: skip


@pytest.mark.parametrize(("deltas", "calls"), CALLS)
def test_parts_of_calls_become_whole_calls(
    deltas: list[Any], calls: list[tuple[str, str, str]]
) -> None:
    chunks = [said(tool_calls=one) for one in deltas]
    assert read(*chunks, STOP)[2] == tuple(ToolCall(*call) for call in calls)


def test_a_whole_message_with_calls_counts_where_none_were_streamed() -> None:
    message = {"content": None, "tool_calls": [part(0, "a", "f", "{}")]}
    whole = {"choices": [{"message": message, "finish_reason": "stop"}]}
    assert read(whole)[2] == (ToolCall("a", "f", "{}"),)
    assert len(read(said(tool_calls=[part(0, "a", "f", "{}")]), whole)[2]) == 1


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_thoughts_in_a_field_of_their_own_are_no_part_of_the_reply(name: str) -> None:
    chunks = [said(**{name: "let me "}), said(**{name: "think"}), said(content="42")]
    assert read(*chunks, STOP)[:2] == ("42", "let me think")
    both = said(reasoning="once", reasoning_content="once")
    assert read(both, STOP)[1] == "once"


TAGGED = [
    ("<think>let me think</think>\n\n42", "42", "let me think"),
    ("\n<THINKING>hm</THINKING>42 <think>x</think>", "42 <think>x</think>", "hm"),
    ("<thin ice", "<thin ice", ""),
    ("<think>never ends", "", "never ends"),
    ("the tag <think> is text", "the tag <think> is text", ""),
    ("<think></think>42", "42", ""),
    ("<", "<", ""),
    ("  ", "  ", ""),
]


@pytest.mark.parametrize(("text", "reply", "thoughts"), TAGGED)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_thoughts_in_tags_at_the_beginning_are_told_apart(
    text: str, reply: str, thoughts: str, size: int
) -> None:
    pieces = [said(content=text[at : at + size]) for at in range(0, len(text), size)]
    assert read(*pieces, STOP)[:2] == (reply, thoughts)


@given(st.text(st.sampled_from("<think>/ a\n"), max_size=40), st.data())
def test_where_a_text_is_cut_makes_no_difference(text: str, data: st.DataObject) -> None:
    edge = data.draw(st.integers(0, len(text)))
    two = [said(content=text[:edge]), said(content=text[edge:])]
    assert read(*two, STOP) == read(said(content=text), STOP)


def test_a_refusal_is_a_reply() -> None:
    assert read(said(refusal="I will not."), STOP)[0] == "I will not."


def test_a_reply_without_an_end_is_broken() -> None:
    reader = Reader()
    assert reader.feed("", json.dumps(said(content="par"))) == [Text("par")]
    with pytest.raises(StreamError) as raised:
        reader.end()
    assert raised.value.code == "stream"


@pytest.mark.parametrize(
    ("kind", "data", "code", "detail"),
    [
        ("", '{"error":{"message":"overloaded","code":529}}', "server", "overloaded"),
        ("", '{"error":"full"}', "server", "full"),
        ("error", "the server is full", "server", "the server is full"),
        ("", "{broken", "stream", "{broken"),
        ("", "[1]", "stream", "[1]"),
    ],
)
def test_an_error_in_the_stream_is_told(kind: str, data: str, code: str, detail: str) -> None:
    with pytest.raises(StreamError) as raised:
        Reader().feed(kind, data)
    assert (raised.value.code, raised.value.detail) == (code, detail)


@pytest.mark.parametrize(
    "chunk", [{}, {"choices": None}, {"choices": [None]}, said(), {"choices": [{"delta": None}]},
              said(content=None), said(content=7), said(tool_calls=None)]
)  # fmt: skip
def test_chunks_that_carry_nothing_are_legal(chunk: dict[str, Any]) -> None:
    assert Reader().feed("", json.dumps(chunk)) == []


def test_the_end_has_its_reason() -> None:
    (end,) = Reader().feed("", json.dumps({"choices": [{"finish_reason": "length"}]}))
    assert end == Finish("length")
