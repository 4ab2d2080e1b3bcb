"""The worked examples of S0: sliding window, summary, hybrid. Messages are questions and replies.

S0 counts a message when it is added and keeps the newest, the current question among them. Here the
numbers that stay do not count the current turn (docs/memory.md), as S0's own figures have it.
"""

import pytest

from memory.core import prompts
from memory.core.policy import Policy
from memory.core.presets import policy_from
from tests.builders import COUNTER, reply, user
from tests.memory.jobs import GOOD, Script, written
from tests.memory.talks import shape, talk


def test_a_window_of_6_keeps_three_turns_before_the_current_one() -> None:
    """The figure: after turn 4, turns 2 to 4 are left. S0's code cuts the first turn in half when
    the fourth question is added; a tail begins with a question here, so turn 1 stays until then."""
    made = talk("window", max_messages=6)
    made.turns(4)
    assert shape(made.requests[3][1]) == ["system", "q1", "a1", "q2", "a2", "q3", "a3", "q4"]
    made.turns(1)
    assert shape(made.requests[4][1]) == ["system", "q2", "a2", "q3", "a3", "q4", "a4", "q5"]


@pytest.mark.parametrize(("messages", "turns"), [(4, 2), (8, 4), (10, 5), (16, 8)])
def test_a_window_keeps_half_as_many_turns_as_messages(messages: int, turns: int) -> None:
    made = talk("window", max_messages=messages)
    made.turns(20)
    assert len(made.requests[-1][0].tail) == messages
    assert {one.turn for one in made.requests[-1][0].tail} == set(range(20 - turns, 20))


def test_a_summary_of_8_and_2_leaves_4_messages_at_the_9th() -> None:
    """The figure: [summary, user 4, assistant 4, user 5], turns 1 to 3 summarised. (S0's code keeps
    two messages with the current one, so it would leave three.)"""
    made = talk("summary", max_messages=8, keep_messages=2)
    made.turns(4)
    assert made.folds == {}
    made.turns(1)
    plan, window = made.requests[4]
    assert plan.trigger == "messages"
    assert made.folds == {5: [1, 2, 3, 4, 5, 6]}
    assert shape(window) == ["system", "summary", "q4", "a4", "q5"]


def test_a_summary_of_8_and_2_folds_again_in_turn_8() -> None:
    """The figure: in turns 6 to 8. Summary and turns 4 to 7 are 9 messages with the 8th question's;
    at turn 7 there are 8. The second summary is made of the first and the new messages."""
    made = talk("summary", max_messages=8, keep_messages=2)
    made.turns(8)
    assert made.folds == {5: [1, 2, 3, 4, 5, 6], 8: [7, 8, 9, 10, 11, 12]}
    assert shape(made.requests[7][1]) == ["system", "summary", "q7", "a7", "q8"]
    assert made.summary is not None
    assert (made.summary.first, made.summary.last, made.summary.version) == (1, 12, 2)
    assert "q1" in made.summary.text
    assert "a6" in made.summary.text


def test_a_summary_of_10_and_4_keeps_two_turns_after_five() -> None:
    made = talk("summary")
    made.turns(6)
    assert made.folds == {6: [1, 2, 3, 4, 5, 6]}
    assert shape(made.requests[5][1]) == ["system", "summary", "q4", "a4", "q5", "a5", "q6"]


def test_hybrid_of_12_and_6_folds_turns_1_to_3_at_the_13th_message() -> None:
    made = talk("hybrid", max_messages=12, keep_messages=6)
    made.turns(6)
    assert made.folds == {}
    assert len(made.requests[5][0].tail) == 10
    made.turns(1)
    assert made.folds == {7: [1, 2, 3, 4, 5, 6]}
    kept = ["q4", "a4", "q5", "a5", "q6", "a6", "q7"]
    assert shape(made.requests[6][1]) == ["system", "summary", *kept]


def test_hybrid_of_10_and_6_folds_turns_1_and_2_at_the_11th_message() -> None:
    """The demo. Its listing of the memory at the end shows two turns behind the summary and says
    that four were folded: its own rule keeps six messages, turns 3 to 5, and folds two turns."""
    made = talk("hybrid", max_messages=10, keep_messages=6)
    questions = ["order 88231?", "a refund", "how long?", "a new one?", "price?", "which number?"]
    answers = ["in Hangzhou", "refund RF20260629001", "5 days", "S20 Pro", "2499", "RF20260629001"]
    for question, answer in zip(questions, answers, strict=True):
        made.turn(question, answer)
    assert made.folds == {6: [1, 2, 3, 4]}
    plan, window = made.requests[5]
    assert [one.turn for one in plan.tail] == [3, 3, 4, 4, 5, 5]
    # The number of turn 2 is answered from the summary.
    assert "RF20260629001" in window.segments[1].message.content
    verbatim = [segment.message.content for segment in window.segments[2:]]
    assert not any("RF20260629001" in text for text in verbatim)


def test_the_difference_of_both_numbers_is_what_each_fold_takes() -> None:
    made = talk("hybrid", max_messages=12, keep_messages=6)
    made.turns(30)
    sizes = [len(positions) for positions in made.folds.values()]
    assert len(sizes) > 3
    # 12 less 6 at first. The summary counts too: at most 12 are summary, question and 10 others.
    assert sizes == [6] * len(sizes)
    folded = [position for positions in made.folds.values() for position in positions]
    assert folded == list(range(1, folded[-1] + 1))


def test_short_conversations_are_kept_as_they_are() -> None:
    made = talk("hybrid")
    made.turns(5)
    assert made.summary is None
    assert [plan.action for plan, _ in made.requests] == ["send"] * 5


@pytest.mark.parametrize(
    ("preset", "messages", "keep"),
    [("window", 1, 1), ("summary", 3, 2), ("summary", 8, 1), ("summary", 8, 8), ("hybrid", 6, 6),
     ("hybrid", 12, 1)],
)  # fmt: skip
def test_what_the_articles_constructors_refuse_is_refused(
    preset: str, messages: int, keep: int
) -> None:
    with pytest.raises(ValueError, match=r"^(max|keep)_messages"):
        policy_from({"preset": preset, "max_messages": messages, "keep_messages": keep})


def test_a_summary_stands_behind_the_system_prompt_and_before_the_messages() -> None:
    made = talk("hybrid")
    made.turns(7)
    assert [segment.kind for segment in made.requests[-1][1].segments] == (
        ["system", "summary"] + ["tail"] * 6 + ["current"]
    )


async def test_the_next_summary_is_made_of_the_old_one_and_the_new_messages() -> None:
    model = Script(GOOD)
    said = [user("how long?"), reply("5 days")]
    await written(model, previous="Order 88231 was refunded.", messages=said, source_tokens=99)
    asked = model.asked[0]
    assert asked.index("Order 88231 was refunded.") < asked.index("how long?")
    assert "complete in itself" in model.systems[0]


async def test_a_summary_over_500_tokens_is_compressed_once_more() -> None:
    model = Script("word " * 501, "word " * 500)
    done = await written(model, cap=Policy("own", "summary").summary_cap, source_tokens=2_000)
    assert (done.kind, done.tokens, len(model.asked)) == ("model", 500, 2)


def test_the_service_template_asks_for_what_a_shop_must_not_lose() -> None:
    """Order numbers, products, amounts, results of actions, what the user wants."""
    text = prompts.TEMPLATES["service"]
    for kept in ("order", "products", "amounts", "found or did", "asked for"):
        assert kept in text


def test_a_summary_of_a_tenth_counts_as_tokens_too() -> None:
    """2,000 tokens become 200: the window's cost is what is left, the summary included."""
    made = talk("hybrid")
    made.summarise = lambda previous, folded: "w " * 200
    made.turns(7, words=250)
    plan, window = made.requests[6]
    assert plan.costs.total == 7 + 12 * 250 + 250
    fence = COUNTER.count(window.segments[1].message.content) - 200
    assert window.tokens == 7 + 200 + fence + 5 + 7 * 250
