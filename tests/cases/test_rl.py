"""Cases about the loop of calls and results (RL-*), over a real socket."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.tools.registry import tool
from memory.models import Conversation, Message, Request
from tests.cases.loopback import Loopback
from tests.cases.raw import STOP, aassembled, calling, faults, piece
from tests.chatapp.helpers import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted(loopback: Loopback) -> Loopback:
    return loopback


@pytest.fixture
def conversation(armed: Conversation) -> Conversation:
    return armed


async def rows(conversation: Conversation) -> list[tuple[str, str]]:
    """The stored messages as (role, text), a call as its arguments."""
    stored = Message.objects.filter(conversation=conversation).order_by("position")
    return [
        (row.role, row.tool_calls[0]["arguments"] if row.tool_calls else row.content)
        async for row in stored
    ]


async def sends_valid(scripted: Any, conversation: Conversation) -> None:
    """Every request was valid, and the next one is."""
    assert [faults(body["messages"]) for body in scripted.bodies] == [[]] * len(scripted.bodies)
    scripted.replies = ["Goodbye."]
    await Conversation.objects.filter(pk=conversation.pk).aupdate(max_steps=None)
    await conversation.arefresh_from_db()
    assert (await say(scripted.runner, conversation, "and now?")).state == "complete"
    assert faults(scripted.bodies[-1]["messages"]) == []


@pytest.mark.parametrize("most", [0, 1, 2])
async def test_rl_01_the_most_steps_are_exact(
    most: int, runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """The limit was compared with ==, after the counter had passed it, and never stopped."""
    asked: list[str] = []

    def look(what: str) -> str:
        """Look something up."""
        asked.append(what)
        return f"nothing about {what}"

    spies(look)
    scripted.runner = runner
    conversation.max_steps = most
    await conversation.asave()
    scripted.replies = [lambda _body: calling(("look", json.dumps({"what": str(len(asked))})))]
    turn = await say(runner, conversation, "find it")
    assert (turn.state, turn.error_code) == ("length", "max-steps")
    assert len(scripted.bodies) == len(asked) == most
    assert await Request.objects.acount() == most
    expected = [("user", "find it")]
    for number in range(most):
        expected += [
            ("assistant", json.dumps({"what": str(number)})),
            ("tool", f"nothing about {number}"),
        ]
    assert await rows(conversation) == expected
    await sends_valid(scripted, conversation)


def _empty(found: list[str]) -> Callable[..., Any]:
    def search(query: str) -> list[str]:
        """Search."""
        found.append(query)
        return []

    return search


def _nothing(found: list[str]) -> Callable[..., Any]:
    def search(query: str) -> None:
        """Search."""
        found.append(query)

    return search


def _raising(found: list[str]) -> Callable[..., Any]:
    def search(query: str) -> str:
        """Search."""
        found.append(query)
        raise RuntimeError("the index is broken")

    return search


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (_empty, "returned nothing"),
        (_nothing, "returned nothing"),
        (_raising, "search failed: RuntimeError: the index is broken"),
    ],
)
async def test_rl_02_the_same_failing_call_is_refused_and_the_turn_ends(
    make: Any, told: str, runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """An empty or failing call was made again and again until the budget was gone."""
    found: list[str] = []
    spies(make(found))
    scripted.runner = runner
    scripted.replies = [calling(("search", '{"query": "foo"}'))]
    turn = await say(runner, conversation, "find foo")
    assert (turn.state, turn.error_code) == ("length", "repeated-calls")
    assert found == ["foo", "foo"]
    results = [text for role, text in await rows(conversation) if role == "tool"]
    assert len(results) == len(scripted.bodies) == 4
    assert all(told in text for text in results[:2])
    assert all("Not run: search was already called" in text for text in results[2:])
    # The model was told before it tried once more.
    assert results[2] in [one["content"] for one in scripted.bodies[3]["messages"]]
    await sends_valid(scripted, conversation)


async def test_rl_02_a_call_that_failed_may_be_made_again_after_something_was_learnt(
    runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """What was refused for good would be refused wrongly where the world has changed."""
    orders: list[str] = []

    def search(query: str) -> list[str]:
        """Search."""
        return [one for one in orders if query in one]

    def order(what: str) -> str:
        """Order something."""
        orders.append(what)
        return f"ordered {what}"

    spies(search, order)
    failing = calling(("search", '{"query": "foo"}'))
    scripted.replies = [
        failing, failing, calling(("order", '{"what": "foo"}')), failing, "It is there.",
    ]  # fmt: skip
    assert (await say(runner, conversation, "order foo")).state == "complete"
    results = [text for role, text in await rows(conversation) if role == "tool"]
    assert results[-1] == '["foo"]'


MADE_UP = (
    "Thought: I need the weather.\nAction: weather\nAction Input: Oslo\nObservation: 35C\n"
    "User: thanks\nFinal Answer: 35C"
)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (MADE_UP, "Thought: I need the weather."),
        (MADE_UP.replace("Oslo", '{"city": "Oslo"}'), "Thought: I need the weather."),
        ('I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
         "\nIt is 35C.", "I look."),
    ],
    ids=["plain words", "JSON", "marks"],
)  # fmt: skip
async def test_rl_05_what_a_model_makes_up_behind_its_call_is_left_out(
    written: str, kept: str, runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """The model wrote the observation and the user's next line itself, and both were believed."""

    def weather(city: str) -> str:
        """Tell the weather."""
        return f"{city}: 4 degrees"

    spies(weather)
    scripted.runner = runner
    scripted.replies = [[piece(written), STOP], "It is 4 degrees in Oslo."]
    assert (await say(runner, conversation, "How warm is it?")).state == "complete"
    stored = [row async for row in Message.objects.order_by("position")]
    assert [row.content for row in stored] == [
        "How warm is it?", kept, "Oslo: 4 degrees", "It is 4 degrees in Oslo."
    ]  # fmt: skip
    assert json.loads(stored[1].tool_calls[0]["arguments"]) == {"city": "Oslo"}
    assert "35C" not in str((await aassembled(conversation)).body)
    await sends_valid(scripted, conversation)


async def test_rl_05_words_that_name_no_tool_are_an_answer(
    runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """An explanation of the pattern is no call."""

    def weather(city: str) -> str:
        """Tell the weather."""
        return city

    spies(weather)
    text = "Write it like this:\nAction: search\nAction Input: Oslo\nObservation: ..."
    scripted.replies = [[piece(text), STOP]]
    assert (await say(runner, conversation, "What is ReAct?")).state == "complete"
    last = await sync_to_async(Message.objects.order_by("position").last)()
    assert last is not None
    assert (last.content, last.tool_calls) == (text, [])


async def test_rl_01_a_budget_of_tokens_ends_the_turn_with_its_steps_stored(
    runner: Any, scripted: Any, conversation: Conversation, spies: Any
) -> None:
    """Steps are few, but each may be long: the tokens of a turn have a limit of their own."""

    @tool
    def look(what: str) -> str:
        """Look something up."""
        return f"{what}: " + "word " * 150

    spies(look.function)
    scripted.runner = runner
    conversation.turn_tokens = 300
    await conversation.asave()
    scripted.replies = [
        lambda body: calling(("look", json.dumps({"what": str(len(body["messages"]))})))
    ]
    turn = await say(runner, conversation, "find it")
    assert (turn.state, turn.error_code) == ("length", "turn-tokens")
    assert len(scripted.bodies) == 2
    assert [role for role, _ in await rows(conversation)] == [
        "user", "assistant", "tool", "assistant", "tool"
    ]  # fmt: skip
    await sends_valid(scripted, conversation)
