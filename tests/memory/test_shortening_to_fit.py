"""Shortening groups until they fit."""

import json
import re
from dataclasses import replace

import pytest

from memory.core.groups import Group, group
from memory.core.shortening import apply, shorten_groups, whole_tokens
from memory.core.tokens import CharacterCounter
from tests.builders import COUNTER, call, numbered, result, user
from tests.memory.shortened import (
    CHARACTERS,
    calling,
    cost,
    groups_of,
    lengths,
    marker,
)

# Shortening to fit


def three(*contents: str, arguments: str = "{}") -> Group:
    """A call group with one result per content; the tools are bash, bash_1, bash_2, ..."""
    calls = call("bash", *(f"bash_{index}" for index in range(1, len(contents))))
    tool_calls = tuple(replace(one, arguments=arguments) for one in calls.tool_calls)
    results = (result(text, f"call_{index}") for index, text in enumerate(contents))
    return groups_of(replace(calls, tool_calls=tool_calls), *results)[0]


def test_what_fits_is_not_shortened_and_what_is_no_call_cannot_be() -> None:
    members = three("x" * 5_000)
    assert shorten_groups((members,), cost([members]), CHARACTERS) == {}
    assert shorten_groups((groups_of(user("x" * 5_000))[0],), 100, CHARACTERS) is None
    assert shorten_groups((), 0, CHARACTERS) == {}


def test_the_largest_results_give_way_first_and_evenly() -> None:
    # The three calls cost 5 + 13 + 14 + 14 tokens, the results 2 for 5 characters and 13 each.
    members = three("s" * 300, "m" * 5_000, "l" * 10_000)
    assert cost([members]) == 46 + 133 + 2_013 + 4_013
    one = lengths(shorten_groups((members,), 6_000, CHARACTERS))
    assert list(one) == [4]
    two = lengths(shorten_groups((members,), 3_000, CHARACTERS))
    # A limit is about a sixteenth over the one before: no more than that is wasted.
    assert two.keys() == {3, 4}
    assert two[3] == two[4]
    shorter = apply([members], shorten_groups((members,), 3_000, CHARACTERS) or {})
    assert 3_000 * 16 // 18 < cost(shorter) <= 3_000


def test_two_results_that_are_too_large_together_both_survive() -> None:
    members = three("a" * 3_000, "b" * 3_000)
    shortened = shorten_groups((members,), 2_000, CHARACTERS)
    assert shortened is not None
    contents = [one.content for one in shortened.values()]
    assert [text[:900] + text[-900:] for text in contents] == ["a" * 1_800, "b" * 1_800]


def test_results_of_retrieval_tools_give_way_after_the_others() -> None:
    members = three("a" * 5_000, "b" * 5_000)
    assert lengths(shorten_groups((members,), 2_200, CHARACTERS, ["bash"])).keys() == {3}
    both = lengths(shorten_groups((members,), 2_100, CHARACTERS, ["bash"]))
    # The other keeps what is still useful: 200 characters and the marker.
    assert both[3] == 258
    assert both[2] > 4_000


@pytest.mark.parametrize("keep", [[], ["bash"]], ids=["any tool", "a retrieval tool"])
def test_arguments_give_way_after_results_and_results_to_less_than_useful_last(
    keep: list[str],
) -> None:
    members = three("a" * 1_000, arguments=json.dumps({"text": "b" * 1_000, "n": 7}))
    # 408 + 17 for the call, 413 for the result; 116 when it keeps 200 of 1,000 characters.
    assert cost([members]) == 425 + 413
    only_result = shorten_groups((members,), 425 + 116, CHARACTERS, keep)
    assert lengths(only_result) == {2: 256}
    with_arguments = shorten_groups((members,), 425 + 115, CHARACTERS, keep)
    assert lengths(with_arguments)[2] == 256
    assert with_arguments is not None
    cut = json.loads(with_arguments[1].tool_calls[0].arguments)
    assert cut["n"] == 7
    assert re.fullmatch(r"b{400,}\n\[… \d+ char[^]]*\]\nb{400,}", cut["text"])
    # 57 + 52: strings of 20 characters and results of 41 are the end of it.
    least = shorten_groups((members,), 109, CHARACTERS, keep)
    assert least is not None
    assert least[2].content == "a" * 21 + marker("959") + "a" * 20
    assert json.loads(least[1].tool_calls[0].arguments)["text"] == (
        "b" * 10 + marker("980") + "b" * 10
    )
    # At the very end nothing is left of the result: 15 tokens.
    emptied = shorten_groups((members,), 108, CHARACTERS, keep)
    assert emptied is not None
    assert (emptied[2].content, emptied[2].tokens) == ("[…]", 15)
    assert shorten_groups((members,), 57 + 15, CHARACTERS, keep) is not None
    assert shorten_groups((members,), 57 + 14, CHARACTERS, keep) is None


def test_the_newest_call_group_gives_way_last() -> None:
    running = groups_of(
        user("q"), calling("{}"), result("a" * 2_000), calling("{}"), result("b" * 2_000)
    )
    # 6 for the question, 20 for each call, 813 for each result, 53 for one cut to 41 characters.
    assert cost(running) == 6 + 2 * (20 + 813)
    assert lengths(shorten_groups(running, 1_600, CHARACTERS)).keys() == {3}
    assert lengths(shorten_groups(running, 912, CHARACTERS)) == {3: 99}
    both = lengths(shorten_groups(running, 911, CHARACTERS))
    assert both[3] == 99
    assert both[5] > 1_700


def test_what_is_not_sent_is_neither_weighed_nor_shortened() -> None:
    surplus = groups_of(calling("{}"), result("a" * 900), result("b" * 9_000, "unknown"))
    assert shorten_groups(surplus, 393, CHARACTERS) == {}
    assert lengths(shorten_groups(surplus, 392, CHARACTERS)).keys() == {2}


def test_blank_results_and_single_giant_words_are_emptied_or_stay_as_they_are() -> None:
    blank = shorten_groups((three(" " * 9_000),), 100, CHARACTERS)
    assert blank is not None
    assert blank[2].content == "[…]"
    word = group(numbered([call("bash"), result("x" * 9_000), user("y")], plain=False))
    assert shorten_groups(word, 20, COUNTER) is None


def test_what_was_shortened_is_known_with_what_it_cost_whole() -> None:
    members = three("a" * 300, "b" * 5_000)
    assert whole_tokens([members], shorten_groups((members,), 1_000, CHARACTERS) or {}) == {
        3: 2_013
    }


class Recording(CharacterCounter):
    """Remembers how long the texts were that it counted."""

    def __init__(self) -> None:
        self.counted: list[int] = []

    def count(self, text: str) -> int:
        self.counted.append(len(text))
        return super().count(text)


def test_of_giant_messages_only_short_pieces_are_counted() -> None:
    numbers = json.dumps(list(range(20_000)))
    members = three("a" * 1_000_000, "b" * 1_000_000, arguments=numbers)
    room = cost([members]) - 798_000
    counter = Recording()
    assert lengths(shorten_groups((members,), room, counter)).keys() == {2, 3}
    # 2,800 tokens are left for both results, 3,500 characters for each.
    assert max(counter.counted) < 2 * 3_500
    assert sum(counter.counted) < 100_000
    # The strings of the arguments cannot be cut, and are weighed without being counted at all.
    assert shorten_groups((members,), 1_000, counter) is None
    assert len(numbers) not in counter.counted


def test_a_long_text_beside_cut_arguments_is_counted_once() -> None:
    members = three("ok", arguments=json.dumps({"text": "a" * 9_000}))
    spoken = replace(members.messages[0], content="b" * 50_000, tokens=20_000 + 3_623)
    counter = Recording()
    done = shorten_groups((Group((spoken, members.messages[1])),), 22_000, counter)
    assert done is not None
    assert done.keys() == {1}
    assert counter.counted.count(50_000) == 1
