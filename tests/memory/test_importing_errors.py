"""What is no conversation is refused with a word on where it is wrong, what was expected there and
what was found."""

import json
from typing import Any

import pytest

from memory.importing import conversations
from tests.builders import COUNTER

HI = {"role": "user", "content": "hi there"}


def error(data: bytes | str) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the text is what is tested)
        conversations(data, COUNTER)
    return str(caught.value)


def refusal(value: Any) -> str:
    return error(json.dumps(value))


@pytest.mark.parametrize("data", [b"", b" \n ", "", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(data: bytes | str) -> None:
    assert error(data) == "expected at least one conversation, not an empty file"


def test_an_empty_list_is_refused() -> None:
    assert refusal([]) == "expected at least one conversation, not an empty list"


def test_other_bytes_than_utf8_are_refused() -> None:
    assert error(b'["\xff"]') == "expected UTF-8 text, which byte 2 is not"


def test_what_is_no_json_is_refused_with_its_place() -> None:
    assert error("{'a': 1}").startswith("expected JSON: ")
    assert "line 1 column 2" in error("{'a': 1}")
    assert "line 3" in error('{\n"messages":\n[}')


def test_a_bad_line_is_named() -> None:
    assert error(json.dumps(HI) + "\n\n{").startswith("line 3: expected JSON: ")


def test_brackets_without_end_are_refused() -> None:
    deep = "[" * 100_000
    assert error(deep) == "expected JSON, not so many brackets within each other"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            7,
            'the file: expected a list of messages, or an object with one under "messages", '
            '"conversations", "traj", not 7',
        ),
        (
            [[HI], {"text": "x"}],
            '[1]: expected a list of messages, or an object with one under "messages", '
            '"conversations", "traj", not {"text": "x"}',
        ),
        ([[HI], []], "[1]: expected at least one message of the user's"),
        ({"messages": []}, "messages: expected at least one message of the user's"),
        ([{"messages": [HI, 3]}], "[0].messages[1]: expected a message (an object), not 3"),
        ([HI, "x"], '[1]: expected a message (an object), not "x"'),
        (
            [{"role": "narrator", "content": ""}],
            "[0].role: expected one of system, developer, user, human, assistant, gpt, "
            'function_call, tool, function, observation, not "narrator"',
        ),
        (
            [HI, {"content": "x"}],
            "[1].role: expected one of system, developer, user, human, assistant, gpt, "
            "function_call, tool, function, observation, not null",
        ),
        ([{"role": "user"}], "[0].content: expected a text or a list of parts, not null"),
        ([{"from": "human", "value": 3}], "[0].value: expected a text or a list of parts, not 3"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            '[0].content[0]: expected a part with a text, not "image_url"',
        ),
        (
            [{"role": "user", "content": [{"type": "text"}]}],
            "[0].content[0]: expected a part with a text, not null",
        ),
        ([{"role": "user", "content": [7]}], "[0].content[0]: expected a part with a text, not 7"),
        (
            [HI, {"role": "assistant", "tool_calls": {"a": 1}}],
            '[1].tool_calls: expected a list of calls, not {"a": 1}',
        ),
        (
            [HI, {"role": "assistant", "tool_calls": [{"function": {}}]}],
            '[1].tool_calls[0]: expected a call (an object with "name" and "arguments"), '
            'not {"function": {}}',
        ),
        (
            [HI, {"from": "function_call", "value": "buy(2)"}],
            '[1].value: expected a call (an object with "name" and "arguments"), not "buy(2)"',
        ),
        (
            [HI, {"role": "assistant", "function_call": "buy"}],
            '[1].function_call: expected a call (an object with "name" and "arguments"), not "buy"',
        ),
        (
            [HI, {"role": "tool", "tool_call_id": 3, "content": ""}],
            "[1].tool_call_id and name: expected texts, not 3",
        ),
        (
            [HI, {"role": "system", "content": "later"}],
            "[1]: expected a system message at the beginning only",
        ),
    ],
)
def test_the_error_says_where_what_was_expected_and_what_was_found(
    value: Any, message: str
) -> None:
    assert refusal(value) == message


def test_an_error_shows_no_more_than_the_beginning_of_what_it_found() -> None:
    message = refusal([HI, {"role": "assistant", "function_call": ["\ud800" * 500]}])
    assert message.endswith("\ufffd…")
    assert len(message) < 150
