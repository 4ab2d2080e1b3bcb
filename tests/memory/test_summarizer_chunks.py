"""Jobs too large for one request: chained chunks of turns, messages cut for the summariser."""

from memory.core.messages import Message, ToolCall
from memory.summarizer import Completion, split, write
from tests.builders import call, history, reply, result, user
from tests.memory.jobs import GOOD, QUICK, REQUEST_WORDS, Script, job, words_of, written


async def test_what_exceeds_the_room_is_summarised_in_chained_chunks() -> None:
    answers = [f"Summary number {number} of all that was said." for number in range(20)]
    model = Script(*(Completion(text, usage={"total": 2}) for text in answers))
    room = REQUEST_WORDS + 3 * 50 + 150
    done = await written(model, messages=history(20, words=20), cap=50, room=room,
                         source_tokens=800)  # fmt: skip
    count = len(model.asked)
    assert 2 < count < 20
    assert (done.text, done.usage) == (answers[count - 1], {"total": 2 * count})
    for index, asked in enumerate(model.asked):
        assert words_of(asked) <= room - 2 * 50
        assert index == 0 or f"<previous_summary>\n{answers[index - 1]}" in asked
    for position in range(1, 41):
        assert sum(f'position="{position}"' in asked for asked in model.asked) == 1


async def test_each_chunk_has_its_own_tries_and_keeps_what_is_done() -> None:
    """A chunk that fails is tried again alone: the summaries before it stay."""
    room = REQUEST_WORDS + 3 * 50 + 150
    answers = ["The first part.", "", "", "The first two parts.", "", "The first three parts."]
    model = Script(*answers, "All parts of it were summarised here.")
    done = await written(model, messages=history(12, words=20), cap=50, room=room,
                         source_tokens=480)  # fmt: skip
    assert (done.kind, done.failures) == ("model", ("empty", "empty", "empty"))
    assert model.asked[1] == model.asked[2] == model.asked[3]
    assert "<previous_summary>\nThe first part.\n" in model.asked[3]
    assert "<previous_summary>\nThe first two parts.\n" in model.asked[5]


async def test_a_chunk_that_no_model_summarises_makes_the_whole_job_an_archive() -> None:
    room = REQUEST_WORDS + 3 * 50 + 150
    done = await written(Script("The first part.", ""), messages=history(12, words=20), cap=50,
                         room=room, source_tokens=480, previous="Ada.")  # fmt: skip
    assert (done.kind, done.failures) == ("archive", ("empty",) * 3)
    assert done.text.startswith("Ada.\n")
    assert "The first part." not in done.text


async def test_another_model_takes_over_for_one_chunk_only() -> None:
    room = REQUEST_WORDS + 3 * 50 + 150
    first = Script("Part one.", "", "", "", "Parts one to three.", "All of the parts together.")
    second = Script("Parts one and two.")
    parts = job(history(12, words=20), cap=50, room=room, source_tokens=480)
    done = await write(parts, first, QUICK, second)
    assert done.kind == "model"
    assert len(second.asked) == 1
    assert "<previous_summary>\nParts one and two.\n" in first.asked[4]


def test_more_than_30_turns_come_in_chunks() -> None:
    chunks = split(job(history(61), room=100_000))
    assert [{one.turn for one in chunk} for chunk in chunks] == [
        set(range(1, 31)),
        set(range(31, 61)),
        {61},
    ]
    assert len(split(job(history(30), room=100_000))) == 1


async def test_a_previous_summary_over_the_cap_takes_room_from_the_chunks() -> None:
    model = Script("Short summary of everything.")
    room = REQUEST_WORDS + 3 * 50 + 400
    await written(model, previous="old " * 300, messages=history(20, words=20), cap=50, room=room,
                  source_tokens=800)  # fmt: skip
    assert all(words_of(asked) <= room - 2 * 50 for asked in model.asked)


async def test_a_first_chunk_of_one_word_may_have_a_longer_summary() -> None:
    model = Script("Ada greeted the assistant and nothing else happened so far.", GOOD)
    messages = [user("hi"), reply("w " * 500), user("now?")]
    done = await written(model, messages=messages, cap=50, room=400, source_tokens=500)
    assert (done.kind, done.text, done.failures) == ("model", GOOD, ())
    assert len(model.asked) > 1


async def test_a_giant_message_is_shortened_for_the_summariser() -> None:
    model = Script(GOOD)
    messages = [user("giant " * 3_000), reply("small")]
    room = REQUEST_WORDS + 3 * 50 + 150
    done = await written(model, messages=messages, cap=50, room=room, source_tokens=3_001)
    assert done.kind == "model"
    assert all(words_of(asked) <= room - 2 * 50 for asked in model.asked)
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
