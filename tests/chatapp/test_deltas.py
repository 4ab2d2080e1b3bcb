"""What a stream says, whatever the server's habits: text, thoughts, calls, counts, the end."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.deltas import BLANKS, Calls, Finish, Reader, Reasoning, StreamError, Text
from memory.core.messages import ToolCall

STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def said(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


def part(index: int | None = None, identity: Any = None, name: str | None = None,
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
    pytest.param([[part(0, "a", "f", '{"x":1}'), part(1, "a", "f", '{"x":2}')]],
                 [("a", "f", '{"x":1}'), ("a", "f", '{"x":2}')], id="one id for two indexes"),
    pytest.param([[part(0, "a", "f", '{"x"')], [part(1, "a", "g", "{}")],
                  [part(0, "a", None, ":1}")], [part(None, "a", None, " ")]],
                 [("a", "f", '{"x":1}'), ("a", "g", "{} ")], id="one id, interleaved"),
    pytest.param([[part(None, "a", "f", '{"x"')], [part(3, "a", None, ":1}")]],
                 [("a", "f", '{"x":1}')], id="the index comes later"),
    pytest.param([[part(0, None, "f", '{"}\\"": [')], [part(0, None, "f", "1]}")],
                  [part(0, None, "f", "{}")]],
                 [("call_0", "f", '{"}\\"": [1]}'), ("call_1", "f", "{}")],
                 id="the name on every part, no id"),
    pytest.param([[part(0, 7, "f", "{}")], [part(0, {"k": 1}, "g", "{}")]],
                 [("7", "f", "{}"), ("{'k': 1}", "g", "{}")], id="ids that are no strings"),
    pytest.param([[part(0, "a", "f", '{"x":"\ud83d')], [part(0, "a", None, '\ude00"}')]],
                 [("a", "f", '{"x":"\U0001f600"}')], id="half a character in each part"),
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


@pytest.mark.parametrize(
    "chunk", [{"choices": 1}, {"choices": {"0": {}}}, {"choices": "x"}, said(tool_calls=1),
              said(tool_calls={"a": 1}), said(content={"text": "x"}), said(content=[1, "x", {}]),
              {"choices": [{"message": {"content": 1, "tool_calls": 3}}]}]
)  # fmt: skip
def test_a_chunk_of_another_shape_carries_nothing(chunk: dict[str, Any]) -> None:
    assert Reader().feed("", json.dumps(chunk)) == []


DEEP = '{"choices":' + "[" * 100_000


@pytest.mark.parametrize(("kind", "code"), [("", "stream"), ("error", "server")])
def test_what_is_nested_too_deep_is_a_broken_stream(kind: str, code: str) -> None:
    with pytest.raises(StreamError) as raised:
        Reader().feed(kind, DEEP)
    assert raised.value.code == code


def test_a_reply_in_parts_is_its_text() -> None:
    parts = [{"type": "text", "text": "Hel"}, {"type": "image"}, {"text": "lo"}, {"type": "text"}]
    assert read(said(content=parts), STOP)[0] == "Hello"
    whole = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert read(said(content="He"), whole)[0] == "Hello"


def test_of_several_replies_the_first_is_read() -> None:
    def choice(index: int | None, text: str, reason: str | None = None) -> dict[str, Any]:
        more = {} if index is None else {"index": index}
        return {"delta": {"content": text}, "finish_reason": reason, **more}

    chunks = [
        {"choices": [choice(1, "x"), choice(0, "a")]},
        {"choices": [choice(1, "y", "stop")]},
        {"choices": [choice(0, "b")]},
    ]
    assert read(*chunks, STOP)[0] == "ab"
    with pytest.raises(StreamError):
        read(*chunks)
    assert read({"choices": [choice(None, "c", "stop")]})[0] == "c"


HIGH, LOW = "\ud83d", "\ude00"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([f"a{HIGH}", f"{LOW}b"], "a\U0001f600b"),
        ([f"a{HIGH}", "", LOW], "a\U0001f600"),
        ([HIGH, HIGH, LOW], f"{HIGH}\U0001f600"),
        ([LOW, "b", HIGH], f"{LOW}b{HIGH}"),
    ],
)
@pytest.mark.parametrize("name", ["content", "reasoning"])
def test_the_halves_of_a_character_in_two_chunks_are_put_together(
    name: str, parts: list[str], text: str
) -> None:
    reply, thoughts, _calls = read(*(said(**{name: one}) for one in parts), STOP)
    assert (reply or thoughts) == text


def test_half_a_character_is_no_longer_missing_once_the_whole_message_came() -> None:
    whole = {"choices": [{"message": {"content": f"a{HIGH}{LOW}"}, "finish_reason": "stop"}]}
    assert read(said(content=f"a{HIGH}"), whole)[0] == "a\U0001f600"


def test_blanks_are_held_back_only_as_long_as_a_tag_may_follow() -> None:
    reader = Reader()
    feed = lambda text: reader.feed("", json.dumps(said(content=text)))  # noqa: E731
    assert feed(" " * BLANKS) == []
    assert feed(" ") == [Text(" " * (BLANKS + 1))]
    assert feed("<think>") == [Text("<think>")]
    text = " " * (BLANKS + 1) + "<think>x"
    assert read(said(content=text), STOP)[:2] == (text, "")
    assert read(said(content=text[1:]), STOP)[:2] == ("", "x")


@pytest.mark.parametrize("start", ["", "<think>", "<think></think>"])
@pytest.mark.parametrize("unit", [" ", "<", "</thin", "x"])
def test_a_long_reply_in_small_pieces_is_read_in_linear_time(start: str, unit: str) -> None:
    """What is looked at again with each piece does not grow."""
    reader = Reader()
    reader.feed("", json.dumps(said(content=start)))
    data = json.dumps(said(content=unit))
    for _ in range(1_000):
        reader.feed("", data)
        assert len(reader._held or "") <= BLANKS + len("<reasoning>")


def test_the_parts_of_calls_are_read_in_linear_time() -> None:
    """No clock here: to look through all that came before would not come to an end."""
    reader = Reader()
    begun = part(0, None, "f", '{"text":"')
    reader.feed("", json.dumps(said(tool_calls=[begun, *[part(0, None, "f", "}")] * 200_000])))
    many = [part(index, f"c{index}", "g", "{}") for index in range(1, 100_000)]
    reader.feed("", json.dumps(said(tool_calls=many)))
    reader.feed("", json.dumps(STOP))
    (calls,) = reader.end()[-1:]
    assert isinstance(calls, Calls)
    assert len(calls.calls) == 100_000
    assert len(calls.calls[0].arguments) > 200_000


def test_thoughts_end_at_their_tag_whatever_the_letters_before_it() -> None:
    assert read(said(content="<think>İİ</THINK>42"), STOP)[:2] == ("42", "İİ")


def test_the_end_has_its_reason() -> None:
    (end,) = Reader().feed("", json.dumps({"choices": [{"finish_reason": "length"}]}))
    assert end == Finish("length")
