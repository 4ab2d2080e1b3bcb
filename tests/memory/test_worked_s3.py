"""The worked examples of S3: memory is what stands in the request, nothing else."""

from collections.abc import Sequence

import pytest

from memory.core.budget import Budget
from memory.core.messages import Message
from memory.core.presets import PRESETS
from memory.core.window import Window
from tests.builders import user
from tests.memory.talks import Talk, shape, talk

FACTS = {
    "en": ("My name is Ada and I study agents.", "Hello Ada!", "What is ReAct?", "Ada"),
    "zh": ("我叫小傅哥,在学智能体开发。", "你好小傅哥!", "ReAct 是什么?", "小傅哥"),
}


def text(window: Window) -> str:
    """Everything that the model is told."""
    return "\n".join(segment.message.content for segment in window.segments)


def introduced(language: str, turns: int) -> tuple[Talk, str]:
    """A talk by rounds that began with a name and has had so many turns."""
    told, greeted, asked, name = FACTS[language]
    made = talk("rounds")
    made.turn(told, greeted)
    for _ in range(turns - 1):
        made.turn(asked, "It takes turns at reasoning and acting.")
    return made, name


def test_the_sixth_turn_folds_the_two_oldest() -> None:
    """Over 5 rounds: ten messages and the sixth question."""
    made = talk("rounds")
    made.turns(5)
    assert made.folds == {}
    made.turns(1)
    assert made.requests[5][0].trigger == "turns"
    assert made.folds == {6: [1, 2, 3, 4]}
    kept = ["q3", "a3", "q4", "a4", "q5", "a5", "q6"]
    assert shape(made.requests[5][1]) == ["system", "summary", *kept]


def test_every_second_turn_folds_two_more() -> None:
    made = talk("rounds")
    made.turns(12)
    assert made.folds == {
        6: [1, 2, 3, 4],
        8: [5, 6, 7, 8],
        10: [9, 10, 11, 12],
        12: [13, 14, 15, 16],
    }


@pytest.mark.parametrize("language", FACTS)
def test_the_name_can_be_answered_before_the_fold_from_the_message(language: str) -> None:
    made, name = introduced(language, turns=2)
    window = made.turn("What is my name?", "...")
    assert name in text(window)
    assert [one.kind for one in window.segments if name in one.message.content] == ["tail"] * 2


@pytest.mark.parametrize("language", FACTS)
def test_the_name_can_be_answered_after_the_fold_from_the_summary(language: str) -> None:
    made, name = introduced(language, turns=5)
    window = made.turn("What is my name?", "...")
    assert list(made.folds) == [6]
    assert [one.kind for one in window.segments if name in one.message.content] == ["summary"]


@pytest.mark.parametrize("language", FACTS)
@pytest.mark.parametrize("turns", [2, 7])
def test_the_name_cannot_be_answered_after_a_reset(language: str, turns: int) -> None:
    made, name = introduced(language, turns)
    made.reset()
    window = made.turn("What is my name?", "...")
    assert name not in text(window)
    assert [segment.kind for segment in window.segments] == ["system", "current"]


def test_what_a_summary_leaves_out_is_forgotten() -> None:
    """A summary is lossy: the window has what it says and no more."""
    made, name = introduced("en", turns=5)

    def forgets(previous: str, folded: Sequence[Message]) -> str:
        return "The user studies agents."

    made.summarise = forgets
    window = made.turn("What is my name?", "...")
    assert name not in text(window)
    assert "The user studies agents." in text(window)


def test_a_request_of_one_message_knows_nothing() -> None:
    made = talk("rounds")
    made.say(user("What is my name?"))
    assert [one.kind for one in made.request().segments] == ["system", "current"]


def test_tokens_not_messages_are_what_the_production_rule_counts() -> None:
    """A message with code and a greeting differ by tens of times: 70 % of what is usable triggers,
    35 % stay, however many messages that is."""
    policy = PRESETS["hybrid-tokens"]
    assert (policy.max_messages, policy.trigger_share, policy.keep_share) == (None, 0.7, 0.35)
    short, long = (talk("hybrid-tokens", Budget(1_100, 100), summary_cap=50) for _ in range(2))
    short.summarise = long.summarise = lambda previous, folded: "Ada."
    short.turns(40, words=3)
    long.turns(10, words=60)
    assert short.folds == {}
    assert next(iter(long.folds)) == 7
    # Two turns of 120 are within 350.
    assert len(long.requests[6][0].tail) == 4
