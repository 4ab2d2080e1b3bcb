"""Calls that a model writes into its text: which are found, and what looking for them costs."""

import json

import pytest

from chatapp.tools.registry import Toolbox, tool
from chatapp.tools.written import calls_in


@tool
def look(what: str) -> str:
    """Look something up."""
    return what


BOX = Toolbox((look,))
INPUT = "Action: look\nAction Input: "


@pytest.mark.parametrize(
    ("text", "said", "arguments"),
    [
        (f"Hm.\n{INPUT}Oslo \t\nObservation: cold", "Hm.", '{"what": "Oslo"}'),
        (f"{INPUT}** a   b  ", "", '{"what": "a   b"}'),
        (f'{INPUT}\n```json\n{{"what": "a"}}\n```', "", '{"what": "a"}'),
        ('So:\n<tool_call> {"name": "look", "arguments": {"what": "a"}} </tool_call> x', "So:",
         '{"what": "a"}'),
        ('<function_call>{"name": "look", "parameters": {"what": "}"}}', "", '{"what": "}"}'),
        ('<tool_call>{"name": "look", "arguments": "{}"}</function_call></tool_call>', None, None),
        ('<tool_call>{broken}</tool_call><tool_call>{"name": "look"}</tool_call>',
         "<tool_call>{broken}</tool_call>", "{}"),
        ('<function_call>{"a"<tool_call>{"name": "look"}</tool_call>', '<function_call>{"a"', "{}"),
        ('<tool_call>{"name": ["look"]}</tool_call>', None, None),
    ],
)  # fmt: skip
def test_a_written_call_is_found(text: str, said: str | None, arguments: str | None) -> None:
    found = calls_in(text, BOX)
    if said is None:
        assert found == (text, ())
        return
    assert found[0] == said
    assert [(call.name, call.arguments) for call in found[1]] == [("look", arguments)]


def test_marked_calls_that_follow_each_other_are_all_found() -> None:
    marked = "".join(
        f"<tool_call>{json.dumps({'name': 'look', 'arguments': {'what': what}})}</tool_call>\n"
        for what in "abc"
    )
    said, calls = calls_in(f"I look.\n{marked}", BOX)
    assert said == "I look."
    assert [call.arguments for call in calls] == ['{"what": "a"}', '{"what": "b"}', '{"what": "c"}']


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_a_call_that_is_nested_too_deep_is_text(value: str) -> None:
    text = f'<tool_call>{{"name": "look", "arguments": {value}}}</tool_call>'
    assert calls_in(text, BOX) == (text, ())


# What would be many beginnings without an end, or many ends that nothing follows.
HOSTILE = [
    "<tool_call>{}", "<function_call> {", "<tool_call>{}<function_call>{}", "<tool_call>", "} ",
    f"{INPUT}x ", "Action: other\nAction Input: x\n", "Action: look\n", "\n Action", "\n * ",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE)
def test_repeats_of_a_mark_are_read_in_linear_time(unit: str) -> None:
    """No clock here: a quadratic pattern would not come to an end."""
    for before in ("", "<tool_call>{"):
        said, calls = calls_in(before + unit * (1_000_000 // len(unit)) + "x", BOX)
        assert len(calls) <= 1
        assert said.startswith(before)


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "*", " \n"])
def test_a_megabyte_of_blanks_is_read_in_linear_time(blank: str) -> None:
    run = blank * (1_000_000 // len(blank))
    (call,) = calls_in(f"{INPUT}a{run}x", BOX)[1]
    assert len(call.arguments) > len(run)
    assert len(calls_in(f"{INPUT}{run}x{run}Observation", BOX)[1]) == 1
    assert calls_in(f"Action: look{run}x", BOX)[1] == ()
