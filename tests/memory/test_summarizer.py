"""The ladder: tries with a scripted model, then the archive; no failure becomes a summary."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from memory.core.checking import ARCHIVE_GAP
from memory.core.groups import group
from memory.core.messages import Message, ToolCall
from memory.summarizer import (
    Completion,
    CompletionFailed,
    Job,
    Ladder,
    Written,
    language_of,
    split,
    write,
)
from tests.builders import COUNTER, call, history, numbered, reply, result, user

QUICK = Ladder(tries=3, try_seconds=5, total_seconds=20, backoff_seconds=0)
GOOD = "Ada wants her order and was told that it comes on Monday."
REQUEST_WORDS = 250  # more than the summariser's own instructions take


class Script:
    """A model whose answers are written down; it keeps what it was asked."""

    def __init__(self, *answers: str | Completion | Exception | float) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.limits: list[int] = []

    async def __call__(self, request: Sequence[dict[str, str]], limit: int) -> Completion:
        self.asked.append(request[1]["content"])
        self.limits.append(limit)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = "late"
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, model="m") if isinstance(answer, str) else answer


def job(messages: Iterable[Message] | None = None, **options: Any) -> Job:
    head = group(history(4, words=20) if messages is None else numbered(messages))
    given = {"previous": "", "source_tokens": 160, "cap": 100, "room": 5_000, "counter": COUNTER}
    return Job(head=head, **{**given, **options})


async def written(model: Script, ladder: Ladder = QUICK, **options: Any) -> Written:
    return await write(job(**options), model, ladder)


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
    assert model.limits == [100]


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
        ("word " * 101, "over-cap"),
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


def words_of(request: str) -> int:
    return COUNTER.count(request)


async def test_what_exceeds_the_room_is_summarised_in_chained_chunks() -> None:
    answers = [f"Summary number {number} of all that was said." for number in range(20)]
    model = Script(*(Completion(text, usage={"total": 2}) for text in answers))
    room = REQUEST_WORDS + 2 * 50 + 150
    done = await written(model, messages=history(20, words=20), cap=50, room=room,
                         source_tokens=800)  # fmt: skip
    count = len(model.asked)
    assert 2 < count < 20
    assert (done.text, done.usage) == (answers[count - 1], {"total": 2 * count})
    for index, asked in enumerate(model.asked):
        assert words_of(asked) <= room - 50
        assert index == 0 or f"<previous_summary>\n{answers[index - 1]}" in asked
    for position in range(1, 41):
        assert sum(f'position="{position}"' in asked for asked in model.asked) == 1


async def test_a_previous_summary_over_the_cap_takes_room_from_the_chunks() -> None:
    model = Script("Short summary of everything.")
    room = REQUEST_WORDS + 2 * 50 + 400
    await written(model, previous="old " * 300, messages=history(20, words=20), cap=50, room=room,
                  source_tokens=800)  # fmt: skip
    assert all(words_of(asked) <= room - 50 for asked in model.asked)


async def test_a_first_chunk_of_one_word_may_have_a_longer_summary() -> None:
    model = Script("Ada greeted the assistant and nothing else happened so far.", GOOD)
    messages = [user("hi"), reply("w " * 500), user("now?")]
    done = await written(model, messages=messages, cap=50, room=400, source_tokens=500)
    assert (done.kind, done.text, done.failures) == ("model", GOOD, ())
    assert len(model.asked) > 1


async def test_a_giant_message_is_shortened_for_the_summariser() -> None:
    model = Script(GOOD)
    messages = [user("giant " * 3_000), reply("small")]
    room = REQUEST_WORDS + 2 * 50 + 150
    done = await written(model, messages=messages, cap=50, room=room, source_tokens=3_001)
    assert done.kind == "model"
    assert all(words_of(asked) <= room - 50 for asked in model.asked)
    assert "giant giant" in model.asked[0]
    assert "…" in model.asked[0]


def test_giant_arguments_are_shortened_and_the_call_stays_named() -> None:
    calls = (ToolCall("a", "write_file", "giant " * 3_000), ToolCall("b", "find", "{}"))
    messages = [Message("assistant", "wait", tool_calls=calls), result("done", "a")]
    ((first,), (second,)) = split(job(messages, room=600, cap=50))
    assert (first.content, [one.name for one in first.tool_calls]) == (
        "wait",
        ["write_file", "find"],
    )
    assert len(first.tool_calls[0].arguments) < 3_000
    assert first.tool_calls[1].arguments == "{}"
    assert second.content == "done"


def test_a_message_that_cannot_be_shortened_enough_still_ends() -> None:
    ((only,),) = split(job([call(*["n a m e"] * 400, text="")], room=1, cap=50))
    assert {one.arguments for one in only.tool_calls} == {""}


def test_a_job_that_fits_is_one_chunk() -> None:
    (chunk,) = split(job())
    assert [message.position for message in chunk] == list(range(1, 9))


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
