"""The rungs before any summary is made (S1)."""

import json
from dataclasses import replace

import pytest

from memory.core.messages import Message
from memory.core.shortening import Shortened, Sizes, prune_results, shorten_arguments
from tests.builders import COUNTER, call, reply, result, user
from tests.memory.shortened import (
    CHARACTERS,
    calling,
    groups_of,
    marker,
)

# Rung 1: arguments

WRITE = calling('{"path": "/tmp/x", "text": "' + "a" * 2_001 + '"}')


def rung_1(*messages: Message, sizes: Sizes | None = None) -> Shortened:
    return shorten_arguments(groups_of(*messages), sizes or Sizes(), CHARACTERS)


def test_long_arguments_of_older_calls_keep_their_first_20_characters() -> None:
    shortened = rung_1(WRITE, result("ok"), *[user("hi")] * 23)
    text = '{"path": "/tmp/x", "text": "' + "a" * 20 + marker("1,981").replace("\n", "\\n") + '"}'
    # 28 + 20 + 60 + 2 characters of arguments (44 tokens), 10 of the name (4), 5 and 10 on top.
    expected = replace(calling(text), position=1, tokens=44 + 4 + 15)
    assert shortened == {1: expected}
    # Older than the last 20 messages: not the sixth of 25, which stays below, but the fifth.
    assert rung_1(*[user("hi")] * 4, WRITE, result("ok"), *[user("hi")] * 19).keys() == {5}


@pytest.mark.parametrize(
    "messages",
    [
        [WRITE, result("ok"), *[user("hi")] * 22],
        [*[user("hi")] * 5, WRITE, result("ok"), *[user("hi")] * 18],
        [calling(json.dumps({"text": "a" * 2_000})), result("ok"), *[user("hi")] * 23],
        [calling("a" * 2_000), result("ok"), *[user("hi")] * 23],
        [result("a" * 5_000), user("b" * 5_000), *[user("hi")] * 23],
        [],
    ],
    ids=["24 messages", "among the last 20", "2,000 characters", "no JSON", "no call", "nothing"],
)
def test_arguments_stay_where_the_rule_does_not_reach(messages: list[Message]) -> None:
    assert rung_1(*messages) == {}


def test_many_tokens_are_reason_enough_to_shorten_arguments() -> None:
    # The call costs 15 + 4 + 813 tokens, the result 14, each "hi" 6: 960 in all.
    others = [result("ok"), *[user("hi")] * 19]
    assert rung_1(WRITE, *others, user("x" * 97_585)) == {}  # 39,034 + 5
    assert rung_1(WRITE, *others, user("x" * 97_587)).keys() == {1}  # 39,035 + 5


def test_the_call_that_waits_for_the_model_keeps_its_arguments() -> None:
    names = ["write_file"] * 25
    many = replace(call(*names), tool_calls=(WRITE.tool_calls[0],) * 25)
    results = [result("ok")] * 25
    assert rung_1(many, *results) == {}
    assert rung_1(many, *results, user("go on")).keys() == {1}


# Rung 2: results


def rung_2(*messages: Message, sizes: Sizes | None = None) -> Shortened:
    return prune_results(groups_of(*messages), sizes or Sizes(), CHARACTERS, ("read_file",))


def ten(name: str) -> list[Message]:
    return [one for _ in range(10) for one in (calling("{}", name), result("x" * 5_000))]


def test_the_articles_example_of_ten_results() -> None:
    # 5,000 characters are 2,000 tokens, 13 on top: ten cost 20,130. Of each 1,000 + 58 + 1,000
    # characters stay: 824 tokens, 13 on top.
    shortened = rung_2(*ten("bash"), user("x" * 99_987))  # 39,995 + 5 tokens
    assert list(shortened) == [20, 18, 16, 14, 12, 10, 8, 6, 4, 2]
    content = "x" * 1_000 + marker("3,000") + "x" * 1_000
    assert {one.content for one in shortened.values()} == {content}
    assert {one.tokens for one in shortened.values()} == {837}


def test_retrieved_results_stay() -> None:
    assert rung_2(*ten("read_file"), user("x" * 99_987)) == {}
    mixed = [*ten("bash"), calling("{}", "read_file"), result("x" * 5_000), user("x" * 99_987)]
    assert rung_2(*mixed).keys() == set(range(2, 21, 2))


def test_results_are_known_by_their_call_not_by_their_place() -> None:
    both = call("read_file", "bash")
    swapped = [both, result("x" * 60_000, "call_1"), result("y" * 60_000, "call_0")]
    assert rung_2(*swapped, user("x" * 100_000)).keys() == {2}


def test_a_result_that_reaches_into_the_newest_tokens_stays() -> None:
    # One token less behind it: the tenth stays, and nine are not worth it (18,117 tokens).
    assert rung_2(*ten("bash"), user("x" * 99_985)) == {}
    nine = replace(Sizes(), results_least_tokens=18_117)
    assert rung_2(*ten("bash"), user("x" * 99_985), sizes=nine).keys() == set(range(2, 20, 2))


def test_what_would_not_get_shorter_does_not_count_as_prunable() -> None:
    short = [one for _ in range(50) for one in (calling("{}"), result("x" * 2_080))]
    assert rung_2(*short, user("x" * 99_987)) == {}
    assert rung_2(*short, *ten("bash"), user("x" * 99_987)).keys() == set(range(102, 121, 2))


def test_a_result_whose_cut_would_cost_as_much_stays() -> None:
    sizes = Sizes(results_keep_tokens=0, results_least_tokens=1)
    # A cut keeps the first and the last of 12 words, and ten words of the marker: no gain.
    for words, pruned in ((12, set()), (13, {2})):
        content = " ".join(["x" * 1_000] * words)
        groups = groups_of(calling("{}"), result(content), user("go on"), counter=COUNTER)
        assert prune_results(groups, sizes, COUNTER, ()).keys() == pruned


@pytest.mark.parametrize("content", ["", " \n\t " * 20_000])
def test_blank_results_stay(content: str) -> None:
    assert rung_2(calling("{}"), result(content), user("x" * 100_000)) == {}


def test_results_that_wait_for_the_model_stay_whole() -> None:
    both = [call("bash", "bash"), result("x" * 200_000), result("x" * 200_000, "call_1")]
    assert rung_2(*both) == {}
    assert rung_2(*both, reply("done")).keys() == {2}
