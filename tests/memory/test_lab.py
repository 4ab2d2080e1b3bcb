"""Replays: the requests, compactions and figures of a transcript under a policy, by hand; and what
always holds, for any history. One word is one token, the system prompt "be brief" costs 7."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memory.core.budget import Budget, budget_for
from memory.core.messages import Message
from memory.core.presets import policy_from
from memory.lab import Refused, Replay, Share, replay
from memory.summarizer import CompletionFailed, Ladder
from tests.builders import COUNTER, call, history, numbered, reply, result, user
from tests.memory.jobs import GOOD, QUICK, Script
from tests.memory.strategies import SYSTEM, histories, policies, window_for

FOUR = {"preset": "summary", "max_messages": 4, "keep_messages": 2}


async def replayed(
    messages: Sequence[Message],
    policy: dict[str, Any] | str = "full",
    model: Script | None = None,
    **options: Any,
) -> Replay:
    data = {"preset": policy} if isinstance(policy, str) else policy
    given: dict[str, Any] = {
        "system_prompt": "be brief",
        "budget": Budget(options.pop("window", 100_000), 10),
        "counter": COUNTER,
        "ladder": QUICK,
    }
    model = model or Script(GOOD)
    return await replay(messages, policy=policy_from(data), complete=model, **{**given, **options})


def contents(done: Replay) -> list[Any]:
    return [message["content"] for message in done.wire]


# Requests


async def test_every_reply_is_one_request() -> None:
    done = await replayed(history(2))
    # The system prompt with q1, then with q1 a1 q2; next would be all four.
    assert (done.requests, done.input_tokens, done.largest) == (2, 10 + 16, 16)
    assert done.final is not None
    assert done.final.tokens == 19
    assert contents(done) == ["be brief", "q1 q1 q1", "a1 a1 a1", "q2 q2 q2", "a2 a2 a2"]
    assert (done.folds, done.calls, done.refused, done.problems) == ((), 0, (), ())


async def test_a_turn_with_calls_has_a_request_for_each_step() -> None:
    messages = numbered(
        [user("where"), call("look"), result("there"), call("look"), result("gone"), reply("no")]
    )
    done = await replayed(messages)
    assert (done.requests, done.input_tokens) == (3, 8 + 9 + 10)
    assert done.problems == ()


async def test_a_greeting_is_no_answer_to_a_request() -> None:
    greeted = replace(numbered([reply("good day")])[0], turn=1)
    turn = [replace(one, turn=2) for one in numbered([user("hi"), reply("ho")], first=2)]
    done = await replayed([greeted, *turn])
    assert (done.requests, done.input_tokens) == (1, 7 + 2 + 1)


async def test_what_would_come_next_answers_a_last_question() -> None:
    done = await replayed(numbered([user("one"), reply("two"), user("three")]))
    assert done.requests == 1
    assert contents(done) == ["be brief", "one", "two", "three"]


async def test_without_a_system_prompt_there_is_no_system_message() -> None:
    done = await replayed(history(1), system_prompt="")
    assert contents(done) == ["q1 q1 q1", "a1 a1 a1"]


async def test_tools_and_what_is_told_of_them_cost_in_every_request() -> None:
    done = await replayed(history(2), tools=100, note="call them")
    # "call them" costs 7 as the system prompt does, each request has 107 more.
    assert (done.input_tokens, done.largest) == (10 + 16 + 2 * 107, 16 + 107)
    assert contents(done)[0] == "be brief\n\ncall them"
    assert done.problems == ()


# Compaction


async def test_it_folds_before_a_request_as_the_policy_says() -> None:
    done = await replayed(history(4, words=20), FOUR)
    # Turn 3 has five messages, turn 4 with the summary six: all but two before each are folded.
    assert [(one.turn, one.trigger, one.kind, one.first, one.last) for one in done.folds] == [
        (3, "messages", "model", 1, 2),
        (4, "messages", "model", 1, 4),
    ]
    assert [(one.source_tokens, one.tokens) for one in done.folds] == [(40, 17), (40 + 17, 17)]
    assert contents(done)[1:] == [" ".join([word] * 20) for word in ("q3", "a3", "q4", "a4")]
    assert contents(done)[0].startswith("be brief\n\n")
    assert GOOD in contents(done)[0]
    assert done.problems == ()


async def test_it_folds_after_the_reply_as_the_policy_says() -> None:
    done = await replayed(history(4, words=20), {**FOUR, "when": "after_reply"})
    # After turn 3 there are six messages; after turn 4 the summary, two, and two.
    assert [(one.turn, one.last) for one in done.folds] == [(3, 4), (4, 6)]
    assert done.final is not None
    assert [one.kind for one in done.final.segments] == ["system", "summary", "tail", "tail"]


async def test_a_request_that_would_not_fit_is_folded_for_in_any_case() -> None:
    policy = {**FOUR, "when": "after_reply", "max_messages": 50, "summary_cap": 50}
    asked = history(3, words=60)[:5]
    # Five messages of 60 and the system prompt are 307.
    done = await replayed(asked, policy, window=317)
    assert (done.folds, len(done.wire)) == ((), 6)
    done = await replayed(asked, policy, window=316)
    assert [(one.turn, one.trigger, one.first, one.last) for one in done.folds] == [
        (3, "budget", 1, 4)
    ]


async def test_where_no_model_answers_an_archive_is_made() -> None:
    done = await replayed(history(3, words=200), FOUR, Script(CompletionFailed("network")))
    assert [one.kind for one in done.folds] == ["archive"]
    assert done.folds[0].failures == ("network",) * 3
    assert done.calls == 3
    assert "- user: q1 q1" in contents(done)[0]


async def test_the_fallback_is_asked_where_the_model_fails() -> None:
    second = Script(GOOD)
    done = await replayed(
        history(3, words=40), FOUR, Script(CompletionFailed("network")), fallback=second
    )
    assert [one.kind for one in done.folds] == ["model"]
    assert (len(second.asked), done.calls) == (1, 4)


async def test_two_turns_are_waited_after_a_fold_that_came_to_nothing() -> None:
    model = Script(CompletionFailed("network"))
    done = await replayed(history(7, words=1), FOUR, model, ladder=Ladder(tries=1))
    # An archive of one word with its label is longer than the word.
    assert [(one.turn, one.kind) for one in done.folds] == [(3, ""), (6, "")]
    assert done.folds[0].failures == ("network", "archive-not-shorter")
    assert done.requests == 7


async def test_two_turns_are_waited_also_after_the_reply() -> None:
    policy = {**FOUR, "when": "after_reply"}
    model = Script(CompletionFailed("network"))
    done = await replayed(history(9, words=1), policy, model, ladder=Ladder(tries=1))
    # Both turns 4 and 5 are held; the next try comes once the second of them has its reply.
    assert [(one.turn, one.kind) for one in done.folds] == [(3, ""), (5, ""), (7, ""), (9, "")]


async def test_the_summariser_is_counted_in_tokens() -> None:
    model = Script(GOOD)
    done = await replayed(history(3, words=20), FOUR, model)
    assert (done.calls, done.summary_output) == (1, 12)
    asked = COUNTER.count(model.systems[0]) + COUNTER.count(model.asked[0])
    assert done.summary_input == asked


async def test_the_summariser_gets_no_more_than_its_room() -> None:
    model = Script(GOOD)
    await replayed(history(6, words=300), FOUR, model, room=1_000)
    assert max(COUNTER.count(text) for text in model.asked) < 1_000
    whole = Script(GOOD)
    await replayed(history(6, words=300), FOUR, whole)
    assert len(whole.asked) < len(model.asked)


async def test_a_policy_that_offloads_names_a_file_as_long_as_the_applications() -> None:
    policy = {"preset": "harness", "max_messages": 4, "keep_least": 0, "keep_most": 6}
    done = await replayed(history(4, words=20), policy)
    assert "word for word in 00000000-0000-0000-0000-000000000000.jsonl" in contents(done)[0]


# What cannot fit


async def test_a_message_that_is_too_large_is_refused_and_the_transcript_goes_on() -> None:
    giant = user("word " * 100)
    messages = numbered([user("a"), reply("b"), giant, reply("c"), user("d"), reply("e")])
    done = await replayed(messages, "window", window=80)
    assert done.refused == (Refused(2, "message", 100, 70),)
    assert (done.requests, done.problems) == (2, ())
    # The giant does not fit into the third request either, nor what came before it.
    assert contents(done) == ["be brief", "d", "e"]


async def test_a_policy_that_leaves_nothing_out_refuses_what_no_longer_fits() -> None:
    done = await replayed(history(3, words=20), "full", window=80)
    assert done.refused == (Refused(3, "history", 107, 70),)
    assert (done.requests, done.input_tokens) == (2, 27 + 67)
    assert (done.final, done.wire) == (None, ())
    assert done.too_small == Refused(4, "history", 127, 70)


async def test_a_system_prompt_that_is_too_large_is_named() -> None:
    done = await replayed(history(1), "window", window=80, system_prompt="word " * 90)
    assert done.refused == (Refused(1, "system_prompt", 95, 70),)
    # Nothing is running any more, but the prompt is still there.
    assert done.too_small == Refused(2, "system_prompt", 95, 70)


# Literals


async def test_literals_are_counted_where_they_are_still_seen() -> None:
    told = [user("my order is #W2378156 " + "x " * 20), reply("it costs $1,299.00 " + "y " * 20)]
    messages = numbered([*told, *history(3, words=20)])
    kept = await replayed(messages, FOUR)
    assert (kept.literals, kept.folded) == (Share(2, 2), Share(2, 2))
    assert kept.folds[0].carried == 2
    left_out = await replayed(messages, {"preset": "window", "max_messages": 2})
    assert (left_out.literals, left_out.folded) == (Share(0, 2), Share(0, 0))


async def test_what_a_summary_makes_up_is_counted() -> None:
    made_up = f"{GOOD} It costs $77.50."
    done = await replayed(history(3, words=20), FOUR, Script(made_up))
    assert done.folds[0].unsupported == 1


async def test_nothing_fits_and_nothing_is_kept() -> None:
    messages = numbered([user("order #W2378156 " + "x " * 90), reply("y")])
    done = await replayed(messages, "full", window=80)
    assert (done.final, done.literals) == (None, Share(0, 1))


# Plain data


async def test_a_replay_is_plain_data_with_positions_in_the_place_of_texts() -> None:
    done = await replayed(history(4, words=20), FOUR)
    data = json.loads(json.dumps(done.to_dict()))
    assert data["policy"]["preset"] == "summary"
    assert [one["position"] for one in data["final"]["segments"]] == [0, 0, 5, 6, 7, 8]
    assert data["final"]["tokens"] == sum(one["tokens"] for one in data["final"]["segments"])
    assert "message" not in data["final"]["segments"][0]
    assert data["wire"][0]["role"] == "system"
    assert data["literals"] == {"kept": 0, "of": 0}
    assert data["folds"][0]["trigger"] == "messages"


async def test_a_replay_without_a_window_is_plain_data_too() -> None:
    done = await replayed(history(3, words=20), "full", window=80)
    data = json.loads(json.dumps(done.to_dict()))
    assert data["final"] is None
    assert data["too_small"]["part"] == "history"


# What always holds

ANSWERS = [GOOD, "", "I'm sorry, but I can't.", "word " * 700, CompletionFailed("network"), "新"]


@given(
    messages=histories(least=4),
    policy=policies(),
    system=SYSTEM,
    hundredths=st.sampled_from([30, 60, 90, 110, 200]),
    answer=st.sampled_from(ANSWERS),
    when=st.sampled_from(["before_request", "after_reply"]),
)
async def test_every_request_of_any_history_is_valid(
    messages: list[Message],
    policy: Any,
    system: str,
    hundredths: int,
    answer: Any,
    when: Any,
) -> None:
    done = numbered(messages, plain=False)
    total = sum(message.tokens for message in done)
    replayed = await replay(
        done,
        system_prompt=system,
        policy=replace(policy, when=when),
        budget=budget_for(window_for(total, hundredths)),
        counter=COUNTER,
        complete=Script(answer),
        ladder=Ladder(tries=1),
    )
    assert replayed.problems == ()
    assert replayed.largest <= window_for(total, hundredths)
    answers = [one for one in done if one.role == "assistant" and one.turn]
    assert replayed.requests + len(replayed.refused) == len(answers)
