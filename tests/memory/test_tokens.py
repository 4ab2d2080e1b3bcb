"""Counting: the estimator, the overheads, and counters for the names of models."""

import pytest

from memory.core.messages import Message
from memory.core.tokens import CharacterCounter, message_tokens
from memory.encodings import counted, counter_for
from tests.builders import COUNTER, call, reply, result, user

SENTENCE = "The quick brown fox jumps over the lazy dog, and nobody minded much at all. "
UNKNOWN = ["qwen2.5:7b", "my-azure-deployment", "GPT-4o", "o9-mini", "", "gpt-house-model",
           "azure/gpt4-128k"]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("ab", 1), ("abc", 2), ("w" * 5, 2)]
)
def test_the_estimator_takes_a_token_for_two_and_a_half_characters(text: str, tokens: int) -> None:
    assert CharacterCounter().count(text) == tokens
    assert CharacterCounter.estimated


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user(""), 5),
        (reply("two words"), 5 + 2),
        (result("two words"), 5 + 8 + 2),
        # The name and the arguments ("{}") are a word each.
        (call("x", text="two words"), 5 + 2 + 10 + 2),
        (call("x", "y", "z"), 5 + 3 * 12),
    ],
)
def test_a_message_costs_its_text_and_5_and_10_a_call_and_8_a_result(
    message: Message, tokens: int
) -> None:
    assert message_tokens(message, COUNTER) == tokens


def test_a_control_token_in_a_text_is_ordinary_text() -> None:
    counter = counter_for("gpt-4")
    assert (counter.name, counter.estimated) == ("cl100k_base", False)
    assert counter.count("<|endoftext|>") == 7


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4o-2099", "o3-mini"])
def test_a_known_model_is_counted_with_its_own_vocabulary(model: str) -> None:
    assert (counter_for(model).name, counter_for(model).estimated) == ("o200k_base", False)


@pytest.mark.parametrize("model", [*UNKNOWN, "gpt-oss-20b", "davinci"])
def test_an_unknown_model_is_estimated_with_the_default_vocabulary(model: str) -> None:
    counter = counter_for(model)
    assert (counter.name, counter.estimated) == ("o200k_base", True)
    assert counter.count("hello world") == 2


def test_a_long_text_is_counted_within_5_percent_and_never_too_low() -> None:
    counter = counter_for("gpt-4o")
    text = (SENTENCE * 5_000)[:360_000]
    # Exact by construction: a sentence that begins after a space is always the same tokens.
    once, twice = counter.count(SENTENCE), counter.count(SENTENCE * 2)
    exact = once + (twice - once) * 360_000 / len(SENTENCE)
    assert exact - 20 <= counter.count(text) <= exact * 1.05


def test_the_count_grows_with_the_text() -> None:
    counter = counter_for("gpt-4o")
    text = SENTENCE * 6_000
    counts = [counter.count(text[:size]) for size in range(50_000, 400_001, 50_000)]
    assert counts == sorted(set(counts))


def test_a_million_of_one_character_is_counted() -> None:
    assert 10_000 < counter_for("gpt-4").count("^" * 1_000_000) <= 1_000_000


def test_half_a_surrogate_pair_is_counted() -> None:
    assert counter_for("gpt-4o").count("note \udbc0 end") > 0


@pytest.mark.parametrize("text", ["short", SENTENCE * 100])
async def test_a_message_is_counted_alike_on_and_off_the_event_loop(text: str) -> None:
    message = await counted(user(text), COUNTER)
    assert message.tokens == 5 + len(text.split())
    assert message.content == text
