"""The ladder: tries with a scripted model, then the archive; no failure becomes a summary."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from memory.core.checking import ARCHIVE_GAP
from memory.core.messages import Message
from memory.core.prompts import TEMPLATES
from memory.summarizer import Completion, CompletionFailed, Ladder, language_of, write
from tests.builders import COUNTER, history, reply, result, user
from tests.memory.jobs import GOOD, QUICK, Script, job, words_of, written


async def test_an_accepted_answer_becomes_the_summary() -> None:
    model = Script(Completion(f" {GOOD}\x00\n", model="small", usage={"prompt_tokens": 9}))
    done = await written(model)
    assert (done.kind, done.text, done.tokens) == (
        "model",
        f"{GOOD}\x00".replace("\0", "\ufffd"),
        12,
    )
    assert (done.failures, done.model, done.usage) == ((), "small", {"prompt_tokens": 9})
    assert done.seconds >= 0
    assert model.limits == [200]  # two caps


async def test_reasoning_is_taken_off() -> None:
    assert (await written(Script(f"<think>hm</think>{GOOD}"))).text == GOOD


async def test_the_previous_summary_is_part_of_the_request() -> None:
    model = Script(GOOD)
    await written(model, previous="Ada lives in Ghent.")
    assert "<previous_summary>\nAda lives in Ghent.\n</previous_summary>" in model.asked[0]


async def test_success_at_the_third_try_lists_the_failures() -> None:
    model = Script(CompletionFailed("network"), "I'm sorry, but I can't.", GOOD)
    done = await written(model)
    assert (done.kind, done.text) == ("model", GOOD)
    assert done.failures == ("network", "refusal")


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (CompletionFailed("rate-limit"), "rate-limit"),
        ("", "empty"),
        ("<think>only thoughts</think>", "empty"),
        ("<think>still thinking", "reasoning"),
        ("I cannot help with that.", "refusal"),
        ("Error: overloaded", "error"),
        (Completion(GOOD, finish="length"), "cut"),
        (Completion(GOOD, finish="content_filter"), "filtered"),
        ("OK", "too-short"),
    ],
)
async def test_three_failures_give_the_archive(answer: Any, failure: str) -> None:
    model = Script(answer)
    done = await written(model, previous="Ada lives in Ghent.")
    assert (done.kind, done.failures, done.model) == ("archive", (failure,) * 3, "")
    assert done.text.startswith("Ada lives in Ghent.\n")
    assert done.text.endswith("- assistant: " + " ".join(["a4"] * 20))
    assert done.tokens == COUNTER.count(done.text) <= 100
    assert len(model.asked) == 3


async def test_a_summary_over_its_cap_is_shortened_once() -> None:
    long = " ".join(f"word{number}" for number in range(101))
    model = Script(long, Completion(GOOD, model="small", usage={"prompt_tokens": 5}))
    done = await written(model, previous="Ada lives in Ghent.")
    assert (done.kind, done.text, done.failures) == ("model", GOOD, ())
    first, second = model.asked
    assert "<transcript>" in first
    # It is told what it wrote, and nothing else of the conversation.
    assert second.startswith(f"<previous_summary>\n{long}\n</previous_summary>\n\n")
    assert "<transcript>" not in second
    assert "at most 100 tokens" in second
    assert model.limits == [200, 200]


async def test_a_summary_that_stays_over_its_cap_is_refused() -> None:
    model = Script("word " * 101)
    done = await written(model, previous="Ada lives in Ghent.")
    assert (done.kind, done.failures) == ("archive", ("over-cap",) * 3)
    assert ["<transcript>" in asked for asked in model.asked] == [True, False] * 3


async def test_a_shortened_summary_is_checked_like_any_other() -> None:
    done = await written(Script("word " * 101, "I cannot help with that.", GOOD))
    assert (done.text, done.failures) == (GOOD, ("refusal",))


async def test_where_an_answer_was_cut_the_next_may_be_twice_as_long() -> None:
    cut = Completion("", finish="length")
    model = Script(cut, cut, GOOD)
    assert (await written(model)).failures == ("cut", "cut")
    assert model.limits == [200, 400, 800]


async def test_other_failures_do_not_lengthen_the_answer() -> None:
    model = Script("", CompletionFailed("network"), GOOD)
    await written(model)
    assert model.limits == [200, 200, 200]


async def test_a_longer_answer_stays_within_the_summarisers_window() -> None:
    cut = Completion("", finish="length")
    roomy, narrow = Script(cut, cut, GOOD), Script(cut, cut, GOOD)
    await written(roomy, cap=50, room=5_000)
    assert roomy.limits == [100, 200, 400]
    whole = words_of(roomy.asked[0]) + words_of(roomy.systems[0]) + 2 * 5
    await written(narrow, cap=50, room=whole + 180)
    assert narrow.limits == [100, 180, 180]
    tiny = Script(cut, cut, GOOD)
    await written(tiny, cap=50, room=100)
    # What was set aside, however small the window: all is too much there.
    assert set(tiny.limits) == {100}


async def test_after_its_tries_another_model_is_asked() -> None:
    first = Script(CompletionFailed("overloaded"))
    second = Script("", Completion(GOOD, model="other"))
    done = await write(job(), first, QUICK, second)
    assert (done.kind, done.text, done.model) == ("model", GOOD, "other")
    assert done.failures == ("overloaded", "overloaded", "overloaded", "empty")
    assert (len(first.asked), len(second.asked)) == (3, 2)
    assert second.asked[0] == first.asked[0]


async def test_a_model_that_answers_leaves_the_other_alone() -> None:
    second = Script(GOOD)
    await write(job(), Script("", GOOD), QUICK, second)
    assert second.asked == []


async def test_where_both_models_fail_there_is_the_archive() -> None:
    done = await write(job(), Script(""), QUICK, Script(CompletionFailed("network")))
    assert (done.kind, done.model) == ("archive", "")
    assert done.failures == ("empty",) * 3 + ("network",) * 3


async def test_tries_wait_longer_each_time() -> None:
    waited = []
    clock = asyncio.get_running_loop().time

    class Timed(Script):
        async def __call__(self, request: Sequence[dict[str, str]], limit: int) -> Completion:
            waited.append(clock())
            return await super().__call__(request, limit)

    await written(Timed(""), Ladder(3, 5, 20, 0.02))
    first, second = (later - earlier for earlier, later in pairwise(waited))
    # 0.02 and 0.04 seconds at least; the clock may be a little coarse.
    assert (first >= 0.019, second >= 0.039) == (True, True)


async def test_the_tokens_of_failed_tries_are_counted() -> None:
    bad = Completion("", usage={"prompt_tokens": 7, "completion_tokens": 1})
    good = Completion(GOOD, usage={"prompt_tokens": 7, "completion_tokens": 12})
    done = await written(Script(bad, CompletionFailed("network"), good))
    assert done.usage == {"prompt_tokens": 14, "completion_tokens": 13}
    cut = Completion(GOOD, finish="length", usage={"prompt_tokens": 1})
    assert (await written(Script(cut, good))).usage["prompt_tokens"] == 8
    assert (await written(Script(bad))).usage == {"prompt_tokens": 21, "completion_tokens": 3}
    nothing = await written(Script(bad), messages=[user("hi")], source_tokens=2)
    assert (nothing.kind, nothing.usage["prompt_tokens"]) == ("", 21)


async def test_the_template_of_the_job_is_asked_for() -> None:
    model = Script(GOOD)
    await written(model, template="task")
    assert TEMPLATES["task"] in model.systems[0]
    assert TEMPLATES["dialogue"] not in model.systems[0]


async def test_an_answer_that_is_not_shorter_than_its_source_is_no_summary() -> None:
    done = await written(Script(GOOD), source_tokens=12)
    assert done.failures[0] == "not-shorter"


async def test_a_try_has_its_time() -> None:
    done = await written(Script(5.0), Ladder(2, 0.01, 20, 0))
    assert (done.kind, done.failures) == ("archive", ("timeout", "timeout"))


async def test_the_whole_ladder_has_its_time() -> None:
    model = Script(5.0)
    done = await written(model, Ladder(3, 5, 0.02, 5))
    assert (done.kind, done.failures) == ("archive", ("timeout", "out-of-time"))
    assert len(model.asked) == 1


async def test_cancelling_it_gets_out() -> None:
    task = asyncio.create_task(written(Script(60.0)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_unknown_exception_is_not_swallowed() -> None:
    with pytest.raises(KeyError):
        await written(Script(KeyError("bug")))


async def test_where_nothing_is_shorter_nothing_is_written() -> None:
    done = await written(Script(""), messages=[user("hi"), reply("ho")], source_tokens=4)
    assert (done.kind, done.text, done.tokens) == ("", "", 0)
    assert done.failures == ("empty", "empty", "empty", "archive-not-shorter")


async def test_without_any_text_nothing_is_written() -> None:
    done = await written(Script(""), messages=[user(""), reply("")])
    assert done.kind == ""


async def test_the_archive_has_a_marker_for_what_fell_off() -> None:
    done = await written(Script(""), messages=history(20, words=20), source_tokens=800)
    assert done.text.startswith(ARCHIVE_GAP)
    assert done.tokens <= 100


@pytest.mark.parametrize(
    ("messages", "language"),
    [
        ([], ""),
        ([user("我的订单"), reply("It is on its way, dear customer")], "zh"),
        ([reply("您好"), result("12")], "zh"),
        ([user("こんにちは")] + [user("hello there friend")] * 8, ""),
        ([user("hello there friend")] * 20 + [user("我的订单在哪里" * 30)], "zh"),
        ([user("a" * 400 + "我" * 4_000)], ""),
    ],
)
def test_the_language_is_that_of_the_newest_user_messages(
    messages: list[Message], language: str
) -> None:
    assert language_of(messages) == language


async def test_the_request_names_the_language() -> None:
    model = Script("用户查询订单,客服已答复。")
    await written(model, messages=[user("我的订单在哪里" * 30)], source_tokens=99)
    assert "in Chinese" in model.asked[0]
