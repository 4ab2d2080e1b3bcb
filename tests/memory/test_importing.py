"""Reading conversations from files. One word is one token; a message costs 5 more, a call 10, a
result 8."""

import json
from typing import Any

import pytest

from memory.core.messages import ToolCall
from memory.importing import Conversation, conversations
from tests.builders import COUNTER

HI = {"role": "user", "content": "hi there"}
HELLO = {"role": "assistant", "content": "hello"}


def read(value: Any) -> tuple[Conversation, ...]:
    return conversations(json.dumps(value), COUNTER)


def one(*messages: Any) -> Conversation:
    (found,) = read(list(messages))
    return found


# What a file holds


def test_a_list_of_messages_is_one_conversation() -> None:
    found = one({"role": "system", "content": "be brief"}, HI, HELLO)
    assert (found.name, found.system_prompt) == ("", "be brief")
    assert [(m.role, m.content) for m in found.messages] == [
        ("user", "hi there"),
        ("assistant", "hello"),
    ]


@pytest.mark.parametrize("key", ["messages", "conversations", "traj"])
def test_an_object_holds_its_messages_under_one_of_the_known_keys(key: str) -> None:
    (found,) = read({"task_id": 3, key: [HI]})
    assert [m.content for m in found.messages] == ["hi there"]


def test_a_list_holds_objects_or_lists_named_by_their_place() -> None:
    found = read([{"messages": [HI]}, [HELLO]])
    assert [(c.name, c.messages[0].content) for c in found] == [
        ("[0]", "hi there"),
        ("[1]", "hello"),
    ]


def test_lines_hold_a_conversation_each_named_by_its_line() -> None:
    text = "\n".join((json.dumps({"messages": [HI]}), "", json.dumps([HELLO]), ""))
    assert [c.name for c in conversations(text, COUNTER)] == ["line 1", "line 3"]


def test_lines_of_messages_are_one_conversation() -> None:
    (found,) = conversations(f"{json.dumps(HI)}\n{json.dumps(HELLO)}\n", COUNTER)
    assert [m.position for m in found.messages] == [1, 2]


def test_a_single_message_is_a_conversation() -> None:
    (found,) = read(HI)
    assert len(found.messages) == 1


def test_a_line_may_hold_what_other_texts_break_lines_at() -> None:
    lines = [json.dumps({"messages": [HI | {"content": "a\u2028b"}]}, ensure_ascii=False)] * 2
    assert len(conversations("\n".join(lines), COUNTER)) == 2


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert len(conversations(b"\xef\xbb\xbf" + json.dumps([HI]).encode(), COUNTER)) == 1


def test_only_so_many_conversations_are_read_as_asked_for() -> None:
    data = json.dumps([[HI], [HELLO], "not a conversation"])
    assert len(conversations(data, COUNTER, limit=2)) == 2


# Turns, tokens, text


def test_every_user_message_begins_a_turn_and_a_greeting_is_one_of_its_own() -> None:
    found = one(HELLO, HI, HELLO, HI, HI)
    assert [(m.position, m.turn) for m in found.messages] == [
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (5, 4),
    ]


def test_tokens_are_counted_with_all_overheads() -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}
    found = one(
        HI,
        {"role": "assistant", "content": "let me see", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "it is there"},
    )
    # 2 + 5; 3 + 5 and a call of 10 with a name of 1 and arguments of 2; 3 + 5 + 8.
    assert [m.tokens for m in found.messages] == [7, 21, 16]


def test_all_text_is_cleaned() -> None:
    call = {"id": "a\0", "function": {"name": "b\0", "arguments": '"\0"'}}
    found = one(
        {"role": "system", "content": "s\0"},
        {"role": "user", "content": "u\ud800"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a\0", "name": "n\0", "content": [{"text": "t\0"}]},
    )
    user, assistant, tool = found.messages
    assert (found.system_prompt, user.content) == ("s\ufffd", "u\ufffd")
    assert assistant.tool_calls == (ToolCall("a\ufffd", "b\ufffd", '"\ufffd"'),)
    assert (tool.tool_call_id, tool.name, tool.content) == ("a\ufffd", "n\ufffd", "t\ufffd")


def test_null_content_is_empty() -> None:
    assert one(HI, {"role": "assistant", "content": None}).messages[1].content == ""


def test_text_parts_are_joined_and_reasoning_is_left_out() -> None:
    parts = [
        {"type": "reasoning", "value": "hm"},
        {"type": "text", "text": "one"},
        {"type": "output_text", "value": "two"},
        "three",
    ]
    assert one(HI, {"role": "assistant", "content": parts}).messages[1].content == "one\ntwo\nthree"


def test_system_messages_at_the_beginning_are_one_prompt() -> None:
    messages = [{"role": "developer", "content": "b"}, {"role": "system", "content": "c"}, HI]
    (found,) = read({"system": "a", "messages": messages})
    assert found.system_prompt == "a\n\nb\n\nc"
    assert [m.role for m in found.messages] == ["user"]


@pytest.mark.parametrize(
    ("tools", "tokens"), [(None, 0), ("[]", 0), ([], 0), ('[{"name": "x"}]', 2), ([1, 2], 2)]
)
def test_schemas_of_tools_are_counted_and_left_out(tools: Any, tokens: int) -> None:
    (found,) = read({"messages": [HI], "tools": tools})
    assert found.tools_tokens == tokens


# Calls and results


def answered(*messages: Any) -> list[tuple[str, str]]:
    return [(m.tool_call_id, m.content) for m in one(*messages).messages if m.role == "tool"]


def calling(*names: str) -> dict[str, Any]:
    calls = [{"id": f"id_{name}", "function": {"name": name, "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def test_arguments_that_are_no_text_are_written_as_json() -> None:
    call = {"type": "function", "function": {"name": "buy", "arguments": {"was": "裙子"}}}
    found = one(HI, {"role": "assistant", "tool_calls": [call]})
    assert found.messages[1].tool_calls == (ToolCall("call_1", "buy", '{"was": "裙子"}'),)


def test_the_older_function_call_is_a_call() -> None:
    call = {"name": "buy", "arguments": "{}"}
    found = one(
        HI,
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "buy", "content": "bought"},
    )
    assert found.messages[1].tool_calls == (ToolCall("call_1", "buy", "{}"),)
    assert found.messages[2].tool_call_id == "call_1"


def test_sharegpt_names_and_calls_are_read() -> None:
    (found,) = read(
        {
            "conversations": [
                {"from": "human", "value": "buy it"},
                {"from": "function_call", "value": '{"name": "buy", "arguments": {"n": 2}}'},
                {"from": "observation", "value": "bought"},
                {"from": "gpt", "value": "done"},
            ]
        }
    )
    assert [m.role for m in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert found.messages[1].tool_calls == (ToolCall("call_1", "buy", '{"n": 2}'),)
    assert (found.messages[1].content, found.messages[2].tool_call_id) == ("", "call_1")


@pytest.mark.parametrize(
    "text",
    [
        '<functioncall> {"name": "rate", "arguments": \'{"from": "USD"}\'} <|endoftext|>',
        '<functioncall>{"name": "rate", "arguments": "{\\"from\\": \\"USD\\"}"}',
        '<functioncall> {"name": "rate", "arguments": {"from": "USD"}}',
    ],
)
def test_a_call_within_a_reply_is_read(text: str) -> None:
    found = one(HI, {"from": "gpt", "value": f"Let me see. {text}"})
    assert found.messages[1].content == "Let me see."
    assert found.messages[1].tool_calls == (ToolCall("call_1", "rate", '{"from": "USD"}'),)


def test_what_only_looks_like_a_call_stays_text() -> None:
    text = "write <functioncall> before a call"
    assert one(HI, {"from": "gpt", "value": text}).messages[1].content == text


def test_a_user_cannot_make_a_call() -> None:
    text = '<functioncall> {"name": "rate", "arguments": {}}'
    assert one({"from": "human", "value": text}).messages[0].content == text


def test_calls_may_be_parts_of_the_content() -> None:
    part = {"type": "tool_call", "value": '{"name": "area", "arguments": {"r": 3}}'}
    found = one(HI, {"role": "assistant", "content": [part, part]})
    assert [call.id for call in found.messages[1].tool_calls] == ["call_1", "call_2"]


def test_ids_that_repeat_are_kept() -> None:
    messages = (HI, calling("a"), {"role": "tool", "tool_call_id": "id_a", "content": "1"})
    assert answered(*messages, *messages[1:]) == [("id_a", "1"), ("id_a", "1")]


def test_results_without_an_id_answer_the_calls_in_their_order() -> None:
    results = [{"role": "tool", "content": text} for text in ("1", "2", "3")]
    assert answered(HI, calling("a", "b"), *results) == [("id_a", "1"), ("id_b", "2"), ("", "3")]


def test_a_result_without_an_id_answers_the_call_of_its_name() -> None:
    results = [{"role": "tool", "name": name, "content": name} for name in ("b", "a")]
    assert answered(HI, calling("a", "b"), *results) == [("id_b", "b"), ("id_a", "a")]


def test_a_result_that_lists_one_for_each_call_is_taken_apart() -> None:
    listed = json.dumps([{"name": "a", "content": "1"}, {"name": "b", "content": {"n": 2}}])
    assert answered(HI, calling("a", "b"), {"role": "tool", "content": listed}) == [
        ("id_a", "1"),
        ("id_b", '{"n": 2}'),
    ]


@pytest.mark.parametrize("text", ["[1, 2, 3]", "{}", "two of them", "[" * 100_000])
def test_any_other_result_of_several_calls_stays_one(text: str) -> None:
    result = {"role": "tool", "content": text}
    assert answered(HI, calling("a", "b"), result) == [("id_a", text)]


def test_a_result_without_a_call_stays_one_without_a_call() -> None:
    result = {"from": "observation", "value": "160"}
    assert answered(HI, HELLO, result) == [("", "160")]
    assert answered(HI, {"role": "tool", "tool_call_id": "x", "content": "1"}) == [("x", "1")]


def test_speakers_without_roles_take_turns() -> None:
    (found,) = read(
        {"messages": [{"message": "a"}, {"message": "b", "attrs": []}, {"message": "c"}]}
    )
    assert [(m.role, m.content) for m in found.messages] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]
