"""The checks of a request, each on one that one thing is wrong with. One word is one token, the
system prompt "be brief" costs 7."""

from dataclasses import replace
from typing import Any

import pytest

from memory.auditing import problems
from memory.core.budget import Budget
from memory.core.window import Context, LeftOut, SummaryPart, Window
from memory.core.wire import to_wire
from tests.builders import call, context, history, numbered, result, user


def running(policy: str = "window") -> Context:
    """Two turns, and a third that has called a tool."""
    messages = [
        *history(2),
        user("where"),
        call("look", "ask", ids=["x", "y"]),
        result("there", "x"),
    ]
    messages = numbered([*messages, result("nobody", "y")])
    return context(messages, current=2, policy=policy)


def audited(
    made: Context, body: list[dict[str, Any]] | None = None, window: Window | None = None
) -> tuple[str, ...]:
    window = window or made.window(made.plan())
    sent, _ = to_wire(segment.message for segment in window.segments)
    return problems(sent if body is None else body, window, made)


def body_of(made: Context) -> list[dict[str, Any]]:
    return to_wire(segment.message for segment in made.window(made.plan()).segments)[0]


def test_a_valid_request_has_no_problems() -> None:
    assert audited(running()) == ()
    assert len(body_of(running())) == 9


SYSTEM_TEXT = {"role": "system", "content": "be brief"}
USER = {"role": "user", "content": "q"}
RESULT = {"role": "tool", "content": "", "tool_call_id": "x"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (lambda body: body[1:], "the first message does not begin with the system prompt"),
        (
            lambda body: [{**SYSTEM_TEXT, "content": "brief"}, *body[1:]],
            "the first message does not begin with the system prompt",
        ),
        (lambda body: [], "the first message does not begin with the system prompt"),
        (lambda body: [*body, SYSTEM_TEXT], "message 10 is a system message, too"),
        (
            lambda body: [*body[:2], {"role": "assistant", "content": None}, *body[3:]],
            "message 3 has no content",
        ),
        (
            lambda body: [body[0], USER, *body[1:]],
            "message 3 has the same role as the one before it",
        ),
        (
            lambda body: [*body[:3], body[2], *body[3:]],
            "message 4 has the same role as the one before it",
        ),
        (lambda body: [*body, RESULT], "message 10 is a result, but not of the call before it"),
        (
            lambda body: [*body[:7], body[8], body[7]],
            "message 8 is a result, but not of the call before it",
        ),
        (lambda body: body[:8], "1 calls at the end have no result"),
        (lambda body: [*body[:8], USER], "message 9 stands before the results of 1 calls"),
        (lambda body: body[:5] + body[6:], "the last user message is not there as it was written"),
        (lambda body: body[:1] + body[6:], "the last user message is not there as it was written"),
        (lambda body: body[:6], "the newest calls of the running turn are not there"),
        (
            lambda body: [*body[:6], {**body[6], "tool_calls": body[6]["tool_calls"][:1]}, body[7]],
            "the newest calls of the running turn are not there",
        ),
    ],
)
def test_a_fault_of_the_messages_is_found(changed: Any, expected: str) -> None:
    made = running()
    assert expected in audited(made, changed(body_of(made)))


def test_a_request_over_its_budget_is_found() -> None:
    made = running()
    window = replace(made.window(made.plan()), budget=Budget(64, 50))
    assert audited(made, window=window) == ("22 tokens, but only 14 are usable",)


def test_a_position_that_is_nowhere_is_found() -> None:
    made = running()
    window = made.window(made.plan())
    without = replace(window, segments=(window.segments[0], *window.segments[2:]))
    found = audited(made, body_of(made), without)
    assert found == ("positions in no place: [1], in several: []",)


def test_a_position_in_two_places_is_found() -> None:
    made = replace(running("summary"), summary=SummaryPart("Ada", 1, 1, 2))
    found = audited(made, body_of(made))
    assert found == ("positions in no place: [], in several: [1, 2]",)


def test_a_running_turn_that_is_left_out_is_found() -> None:
    made = running()
    window = made.window(made.plan())
    short = tuple(one for one in window.segments if one.message.position != 5)
    without = replace(window, segments=short, left_out=(LeftOut("omitted", (5,), 1),))
    found = audited(made, body_of(made), without)
    assert found == ("positions of the running turn are left out: [5]",)


def test_results_without_a_call_are_no_problem() -> None:
    messages = numbered([*history(1), user("where"), result("stray", "x")])
    made = context(messages, current=2, policy="window")
    assert audited(made) == ()


def test_an_empty_conversation_has_no_problems() -> None:
    made = context([], current=0, policy="window", system="")
    assert audited(made) == ()
    summarised = replace(made, summary=SummaryPart("Ada", 1, 1, 4))
    assert audited(summarised) == ()
