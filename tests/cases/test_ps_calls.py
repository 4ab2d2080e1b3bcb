"""Cases about tool calls in providers' streams (PS-*), over a real socket."""

import json
from typing import Any

import pytest

from memory.models import Conversation, Message
from tests.cases.loopback import Loopback
from tests.cases.raw import STOP, calling, ends, faults, part, piece
from tests.chatapp.helpers import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted(loopback: Loopback) -> Loopback:
    return loopback


@pytest.fixture
def conversation(armed: Conversation) -> Conversation:
    return armed


@pytest.fixture
def seen(spies: Any) -> list[tuple[Any, ...]]:
    """What the tools were called with."""
    made: list[tuple[Any, ...]] = []

    def add(a: int) -> str:
        """Add."""
        made.append(("add", a))
        return "1"

    def lookup(city: str) -> str:
        """Look up a city."""
        made.append(("lookup", city))
        return f"{city} is a city"

    def convert_units(value: int) -> str:
        """Convert units."""
        made.append(("convert_units", value))
        return "2"

    def write(path: str, text: str) -> str:
        """Write a file."""
        made.append(("write", path, text))
        return "written"

    def everything() -> str:
        """Tell everything."""
        made.append(("everything",))
        return "42"

    spies(add, lookup, convert_units, write, everything)
    return made


async def stored_calls() -> list[list[dict[str, str]]]:
    rows = Message.objects.filter(role="assistant").order_by("position")
    return [row.tool_calls async for row in rows if row.tool_calls]


def valid(scripted: Any) -> bool:
    """Whether a strict server would take every request: pairs, and arguments that are JSON."""
    for body in scripted.bodies:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                json.loads(call["function"]["arguments"])
    return [faults(body["messages"]) for body in scripted.bodies] == [[]] * len(scripted.bodies)


async def test_ps_03_only_the_first_part_of_a_call_has_an_id(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """An id was invented for every part, which made dozens of broken calls."""
    parts = [
        part("", index=0, id="c1", name="add"), part('{"a":', index=0), part("1}", index=0),
        ends("tool_calls"),
    ]  # fmt: skip
    scripted.replies = [parts, "done"]
    assert (await say(runner, conversation, "add")).state == "complete"
    assert seen == [("add", 1)]
    assert await stored_calls() == [[{"id": "c1", "name": "add", "arguments": '{"a":1}'}]]
    assert valid(scripted)


async def test_ps_05_two_calls_may_share_an_index(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """Two calls were glued into one with invalid JSON, and the second one was lost."""
    parts = [
        part('{"city":"Bern"}', index=0, id="k1", name="lookup"),
        part('{"city":"Lima"}', index=0, id="k2", name="lookup"),
        ends("tool_calls"),
    ]
    scripted.replies = [parts, "done"]
    assert (await say(runner, conversation, "where?")).state == "complete"
    assert sorted(seen) == [("lookup", "Bern"), ("lookup", "Lima")]
    results = scripted.bodies[1]["messages"][-2:]
    assert [(one["tool_call_id"], one["content"]) for one in results] == [
        ("k1", "Bern is a city"), ("k2", "Lima is a city")
    ]  # fmt: skip
    assert valid(scripted)


CUT = '{"path":"/tmp/x","text":"abc'


async def test_ps_10_a_call_cut_by_the_length_limit_is_not_run(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """Half an argument was executed, stored, and broke the requests after it."""
    scripted.replies = [
        calling(("lookup", '{"city":"Bern"}'), ("write", CUT), reason="length"),
        calling(("write", '{"path":"/tmp/x","text":"a"}')),
        "done",
    ]
    assert (await say(runner, conversation, "write it")).state == "complete"
    assert seen == [("lookup", "Bern"), ("write", "/tmp/x", "a")]
    told = scripted.bodies[1]["messages"][-1]["content"]
    assert "Not run" in told
    assert "length limit" in told
    assert CUT not in [call["arguments"] for calls in await stored_calls() for call in calls]
    assert valid(scripted)


async def test_ps_10_a_model_that_is_always_cut_off_is_told_so_a_few_times_only(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """A model that cannot write shorter would be asked for ever."""
    scripted.replies = [calling(("write", CUT), reason="length")]
    turn = await say(runner, conversation, "write it")
    assert (turn.state, turn.error_code) == ("length", "")
    assert len(scripted.bodies) == 3
    assert seen == []
    scripted.replies = ["ok"]
    assert (await say(runner, conversation, "thanks")).state == "complete"
    assert valid(scripted)


@pytest.mark.parametrize("arguments", ['{"q":"unterminated', "[1]", "{'city': 'Bern'}", "NaN"])
async def test_ps_11_arguments_are_checked_whatever_the_reason_says(
    arguments: str, runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """A truncated call was told to be whole; its arguments poisoned every later request."""
    scripted.replies = [calling(("lookup", arguments)), "I could not look it up."]
    assert (await say(runner, conversation, "where?")).state == "complete"
    assert seen == []
    told = scripted.bodies[1]["messages"][-1]
    assert told["role"] == "tool"
    assert "not a valid JSON object" in told["content"]
    await say(runner, conversation, "and now?")
    assert valid(scripted)
    assert json.loads((await stored_calls())[0][0]["arguments"]) == {"unparsed": arguments}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([part('{"city":"Bern"}', index=0, id="k1", name="lookup"), STOP], ("lookup", "Bern")),
        ([part({"city": "Bern"}, index=0, id="k1", name="lookup"), STOP], ("lookup", "Bern")),
        ([part(index=0, id="k1", name="everything"), STOP], ("everything",)),
    ],
    ids=["text", "object", "none"],
)
async def test_ps_21_a_call_runs_though_the_reason_says_stop(
    parts: list[Any], expected: Any, runner: Any, scripted: Any, conversation: Conversation,
    seen: list[Any],
) -> None:  # fmt: skip
    """The call was thrown away, because the last reason was not "tool_calls"."""
    scripted.replies = [parts, "done"]
    assert (await say(runner, conversation, "where?")).state == "complete"
    assert seen == [expected]
    assert valid(scripted)


REPEATED = [
    part(piece_, index=0, id="u1", name="convert_units") for piece_ in ('{"val', 'ue"', ":3}")
]
SPLIT = [
    part(index=0, id="u1", name="convert_"), part("", index=0, name="units"),
    part('{"value":3}', index=0),
]  # fmt: skip


@pytest.mark.parametrize("parts", [REPEATED, SPLIT], ids=["repeated", "split"])
async def test_ps_25_a_name_that_is_repeated_or_split_is_one_name(
    parts: list[Any], runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """Names were appended, and stood there three times; or the second half was ignored."""
    scripted.replies = [[*parts, ends("tool_calls")], "done"]
    assert (await say(runner, conversation, "convert")).state == "complete"
    assert seen == [("convert_units", 3)]
    assert valid(scripted)


async def test_ps_25_an_unknown_name_is_refused_politely(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """What is no tool is told to the model with those that are; servers take the stored name."""
    scripted.replies = [calling(("convert units!", "{}")), "I cannot do that."]
    assert (await say(runner, conversation, "convert")).state == "complete"
    assert seen == []
    told = scripted.bodies[1]["messages"][-1]["content"]
    assert 'There is no tool "convert units!". Available tools: add, lookup' in told
    assert (await stored_calls())[0][0]["name"] == "convert_units_"


async def test_ps_19_calls_and_replies_in_any_script_are_right_to_the_character(
    runner: Any, scripted: Any, conversation: Conversation, seen: list[Any]
) -> None:
    """The bytes of one character came in two reads, also within the arguments of a call."""
    raw = json.dumps({"city": "謝謝🌱北京"}, ensure_ascii=False)
    event = {"choices": [{"index": 0, "delta": {"content": "好的，我查一下🌱。", "tool_calls": [
        {"index": 0, "id": "k1", "function": {"name": "lookup", "arguments": raw}}]}}]}  # fmt: skip
    written = f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
    reply = f"data: {json.dumps(piece('謝謝🌱, bis später'), ensure_ascii=False)}\n\n".encode()
    scripted.replies = [[written, ends("tool_calls")], [reply, STOP]]
    assert (await say(runner, conversation, "北京在哪？")).state == "complete"
    assert seen == [("lookup", "謝謝🌱北京")]
    texts = [row.content async for row in Message.objects.order_by("position")]
    assert texts == [
        "北京在哪？", "好的，我查一下🌱。", "謝謝🌱北京 is a city", "謝謝🌱, bis später"
    ]  # fmt: skip
