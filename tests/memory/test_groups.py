"""Groups: what is kept or cut together, and what of it is sent."""

from collections.abc import Iterable

import pytest

from memory.core.groups import MISSING_RESULT, Group, group, group_tokens, positions, sendable
from memory.core.messages import Message
from tests.builders import COUNTER, call, numbered, reply, result, user


def sizes(messages: Iterable[Message]) -> list[int]:
    return [len(one.messages) for one in group(messages)]


def sent(messages: Iterable[Message]) -> list[tuple[str, str, bool]]:
    """(role, content, made up) of what is sent of the only group."""
    (only,) = group(messages)
    return [(message.role, message.content, made) for message, made in sendable(only, COUNTER)]


def test_messages_without_calls_are_groups_of_one() -> None:
    assert sizes([user("a"), reply("b"), user("c"), user("d")]) == [1, 1, 1, 1]
    assert group([]) == ()


def test_a_call_and_all_its_results_are_one_group() -> None:
    messages = [user("a"), call("x", "y"), result("1"), result("2", "call_1"), reply("b")]
    assert sizes(messages) == [1, 3, 1]


def test_a_second_call_begins_a_second_group() -> None:
    assert sizes([call("x"), result("1"), call("x"), result("2")]) == [2, 2]


def test_groups_know_where_they_stand() -> None:
    groups = group(numbered([user("a"), call("x"), result("1"), reply("b")], first=7))
    assert [(one.first, one.last, one.turn) for one in groups] == [
        (7, 7, 1),
        (8, 9, 1),
        (10, 10, 1),
    ]
    assert positions(groups[1:]) == (8, 9, 10)


def test_only_user_messages_and_final_replies_are_counted() -> None:
    groups = group([user("a"), call("x", text="wait"), result("1"), reply("b"), result("stray")])
    assert [one.counted for one in groups] == [1, 0, 1, 0]


def test_a_tail_begins_at_a_user_message_or_a_call() -> None:
    groups = group([user("a"), call("x"), result("1"), reply("b"), user("c"), result("stray")])
    assert [one.begins_tail for one in groups] == [True, True, False, True, False]


def test_ids_that_repeat_across_turns_pair_by_adjacency() -> None:
    first, second = group([call("x"), result("old"), call("x"), result("new")])
    assert [message.content for message, _ in sendable(first, COUNTER)] == ["", "old"]
    assert [message.content for message, _ in sendable(second, COUNTER)] == ["", "new"]


def test_ids_that_repeat_within_a_group_pair_in_order() -> None:
    twins = call("x", "x", ids=["same", "same"])
    assert sent([twins, result("1", "same"), result("2", "same")]) == [
        ("assistant", "", False),
        ("tool", "1", False),
        ("tool", "2", False),
    ]


def test_results_are_sent_in_the_order_of_the_calls() -> None:
    swapped = [call("x", "y"), result("of y", "call_1"), result("of x", "call_0")]
    assert [content for _, content, _ in sent(swapped)] == ["", "of x", "of y"]


def test_a_missing_result_becomes_a_marked_stub_in_its_place() -> None:
    assert sent([call("x", "y"), result("of y", "call_1")]) == [
        ("assistant", "", False),
        ("tool", MISSING_RESULT, True),
        ("tool", "of y", False),
    ]


def test_a_stub_answers_its_call_and_costs_its_tokens() -> None:
    (only,) = group(numbered([user("a"), call("x")])[1:])
    stub, made = sendable(only, COUNTER)[1]
    assert made
    assert (stub.tool_call_id, stub.turn, stub.position) == ("call_0", 1, 0)
    # "(no result: the call was interrupted)": 6 words, 5 for the message, 8 for the result.
    assert stub.tokens == 6 + 5 + 8
    assert group_tokens(only, COUNTER) == 19


@pytest.mark.parametrize("surplus", [result("again"), result("other", "unknown")])
def test_a_result_that_answers_no_call_is_not_sent(surplus: Message) -> None:
    assert [content for _, content, _ in sent([call("x"), result("1"), surplus])] == ["", "1"]


@pytest.mark.parametrize("before", [user("a"), reply("b")])
def test_a_result_without_a_call_before_it_is_an_orphan(before: Message) -> None:
    _, orphan = group([before, result("1"), result("2")])
    assert orphan.is_orphan
    assert len(orphan.messages) == 2
    assert sendable(orphan, COUNTER) == ()
    assert group_tokens(orphan, COUNTER) == 0


def test_a_group_with_calls_is_no_orphan() -> None:
    assert not Group((call("x"), result("1"))).is_orphan
