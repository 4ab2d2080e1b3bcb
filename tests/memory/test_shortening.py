"""Shortening: the sizes, and cutting texts and arguments."""

import json

import pytest

from memory.core.budget import MIN_WINDOW, budget_for
from memory.core.clipping import cut_middle, cut_strings
from memory.core.shortening import Sizes, sizes_for
from tests.memory.shortened import (
    FAMILY,
    marker,
)

# Sizes


def test_the_sizes_are_those_of_the_article_in_its_window_and_above() -> None:
    assert sizes_for(budget_for(128_000)) == sizes_for(budget_for(1_000_000)) == Sizes()


def test_tokens_and_characters_scale_with_the_budget_and_messages_do_not() -> None:
    # Half of the 126,976 tokens that are usable in a window of 128,000.
    assert sizes_for(budget_for(63_488 + 1_024)) == Sizes(
        arguments_from_messages=25,
        arguments_from_tokens=20_000,
        arguments_keep_messages=20,
        argument_limit=1_000,
        argument_head=20,
        results_keep_tokens=20_000,
        results_least_tokens=10_000,
        result_head=500,
        result_tail=500,
    )


def test_in_the_smallest_window_a_shortened_piece_is_still_useful() -> None:
    sizes = sizes_for(budget_for(MIN_WINDOW))
    # 48 of 126,976 tokens are usable.
    assert (sizes.arguments_from_tokens, sizes.results_keep_tokens) == (15, 15)
    assert sizes.results_least_tokens == 7
    assert (sizes.argument_limit, sizes.argument_head) == (200, 20)
    assert (sizes.result_head, sizes.result_tail) == (100, 100)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("arguments_from_messages", 0),
        ("arguments_from_tokens", 0),
        ("arguments_keep_messages", -1),
        ("argument_limit", 199),
        ("argument_head", 0),
        ("argument_head", 1_921),
        ("results_keep_tokens", -1),
        ("results_least_tokens", 2.5),
        ("result_head", 99),
        ("result_tail", 99),
        ("argument_head", True),
    ],
)
def test_a_size_against_its_rule_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        Sizes(**{name: value})  # type: ignore[arg-type]


def test_the_largest_head_of_an_argument_leaves_room_for_a_cut() -> None:
    assert Sizes(argument_limit=200, argument_head=120).argument_head == 120


# Cutting text


def test_a_cut_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    text = "a" * 1_000 + "b" * 3_000 + "c" * 1_000
    assert cut_middle(text, 1_000, 1_000) == "a" * 1_000 + marker("3,000") + "c" * 1_000
    assert cut_middle(text, 1_000, 0) == "a" * 1_000 + marker("4,000")
    assert cut_middle(text, 0, 1_000) == marker("4,000") + "c" * 1_000


def test_what_a_cut_would_hardly_shorten_stays_whole() -> None:
    assert cut_middle("x" * 280, 100, 100) == "x" * 280
    assert cut_middle("x" * 281, 100, 100) == "x" * 100 + marker("81") + "x" * 100
    assert cut_middle("short", 100, 100) == "short"
    assert cut_middle("", 0, 0) == ""


def test_a_cut_splits_no_joined_character() -> None:
    # A family is 7 characters: 103 = 14 * 7 + 5, so the head ends before and the tail after one.
    assert cut_middle(FAMILY * 100, 103, 103) == FAMILY * 14 + marker("504") + FAMILY * 14


def test_cutting_twice_adds_up_what_is_missing() -> None:
    once = cut_middle("x" * 5_000, 1_000, 1_000)
    assert cut_middle(once, 1_000, 1_000) == once
    assert cut_middle(once, 100, 100) == "x" * 100 + marker("4,800") + "x" * 100
    # The edge of the head falls into the marker: no half of it stays.
    assert cut_middle(once, 1_020, 200) == "x" * 1_000 + marker("3,800") + "x" * 200
    assert cut_middle(once, 200, 1_020) == "x" * 200 + marker("3,800") + "x" * 1_000


def test_a_marker_that_stays_is_not_counted() -> None:
    text = "a" * 10 + marker("7") + "b" * 500
    kept = text[:100]
    # 10 + 54 + 500 characters.
    assert cut_middle(text, 100, 100) == kept + marker("364") + "b" * 100


# Cutting arguments


def test_only_long_string_values_are_cut_and_all_else_stays_as_written() -> None:
    key, long = "k" * 300, "v" * 300
    arguments = f'{{"{key}" : 1.50e400, "a":["short",\n"{long}", {{"b": "{long}"}}], "a": null}}'
    cut = '"' + "v" * 20 + marker("280").replace("\n", "\\n") + '"'
    expected = f'{{"{key}" : 1.50e400, "a":["short",\n{cut}, {{"b": {cut}}}], "a": null}}'
    assert cut_strings(arguments, 200, 20) == expected


def test_a_string_is_as_long_as_what_it_says_not_as_its_escapes() -> None:
    assert cut_strings(json.dumps("退" * 200), 200, 20) == json.dumps("退" * 200)
    assert json.loads(cut_strings(json.dumps("退" * 201), 200, 20)) == "退" * 20 + marker("181")
    # Over the limit, but hardly to be shortened.
    assert cut_strings(json.dumps("退" * 210), 200, 190) == json.dumps("退" * 210)


def test_quotes_and_half_characters_in_a_cut_string_stay_valid() -> None:
    cut = cut_strings('{"t": "\\ud83d\\"\\\\' + "\\n" * 300 + '"}', 200, 3)
    assert json.loads(cut.encode())["t"] == '�"\\' + marker("300")


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "/tmp/x", "text": "' + "a" * 300, '{"x": NaN, "y": "' + "a" * 300 + '"}'],
)
def test_what_is_no_json_becomes_one_cut_string(arguments: str) -> None:
    left_out = str(len(arguments) - 20)
    cut = cut_strings(arguments, 200, 20)
    assert json.loads(cut) == {"unparsed": arguments[:20] + marker(left_out)}
    assert cut_strings(cut, 200, 20) == cut
    assert cut_strings(arguments, len(arguments), 20) == arguments
    assert cut_strings(arguments, 200, len(arguments) - 80) == arguments


def test_what_is_nested_too_deep_to_read_becomes_one_cut_string() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    assert json.loads(cut_strings(deep, 200, 20)) == {"unparsed": "[" * 20 + marker("399,980")}


def test_a_number_longer_than_python_reads_is_still_json() -> None:
    number = "9" * 5_000
    cut = cut_strings(f'{{"n": {number}, "t": "{"a" * 300}"}}', 200, 20)
    assert cut.startswith(f'{{"n": {number}, "t": "{"a" * 20}\\n[… 280')
