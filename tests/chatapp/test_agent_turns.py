"""A hundred turns of an agent in one conversation; some fail, are stopped, or are killed."""

import asyncio
import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from chatapp.live import save
from chatapp.runner import Runner
from chatapp.tools import toolsets
from chatapp.tools.registry import Toolbox, ToolError, tool
from memory import snapshots, store
from memory.models import Conversation, Message, Request, Turn
from tests.cases.raw import STOP, RawTransport, aassembled, calling, faults, piece
from tests.chatapp.helpers import say
from tests.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = 100


@tool
def find(what: str) -> str:
    """Find something."""
    return f"{what}: " + "a line of what was found. " * (len(what) % 9)


@tool
def refuse(what: str) -> str:
    """Refuse something."""
    raise ToolError(f"{what} cannot be done")


@tool
def dump() -> str:
    """Give everything."""
    return "row " * 20_000


@tool
async def hang() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return ""


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture
def conversation(
    make_conversation: Callable[..., Conversation], monkeypatch: pytest.MonkeyPatch
) -> Conversation:
    box = Toolbox((find, refuse, dump, hang))
    monkeypatch.setattr(toolsets, "TOOLSETS", {"test": box})
    return make_conversation(tools=["test"], window=4_096, turn_tokens=100_000)


def answers(dice: random.Random, fate: str) -> list[Any]:
    """What the model says in one turn: some steps with calls, then a reply, or its fate."""
    steps: list[Any] = []
    for _ in range(dice.randint(0, 3)):
        calls = [
            dice.choice(
                [
                    ("find", json.dumps({"what": "x" * dice.randint(1, 40)})),
                    ("refuse", json.dumps({"what": str(dice.random())})),
                    ("dump", "{}"),
                    ("missing", "{}"),
                    ("find", '{"what": "half'),
                    ("find", '["no", "object"]'),
                ]
            )
            for _ in range(dice.randint(1, 4))
        ]
        said = [piece(f"Let me see {dice.randint(1, 99)}. ")] if dice.random() < 0.5 else []
        steps.append([*said, *calling(*calls)])
    if fate in ("kill in a tool", "stop in a tool"):
        return [*steps, calling(("find", '{"what": "first"}'), ("hang", "{}"))]
    if fate in ("kill in the text", "stop in the text"):
        return [*steps, f"half of reply {dice.random()}"]
    if fate == "break":
        return [*steps, [piece("half of "), httpx2.ReadError("gone")]]
    return [*steps, [piece(f"It is {dice.randint(1, 10**9)}."), STOP]]


FATES = ("kill in a tool", "kill in the text", "stop in a tool", "stop in the text", "break")


async def killed(runner: Runner, turn: Turn) -> str:
    """What had been saved when the process died: nothing that it would do at an end is done."""
    live = runner._live[turn.pk]
    await save([live])
    await turn.arefresh_from_db()

    async def nothing(*_args: Any) -> None:
        live.done = True

    runner._finish = nothing  # type: ignore[method-assign]
    assert live.task is not None
    live.task.cancel()
    await asyncio.gather(live.task, return_exceptions=True)
    del runner._live[turn.pk]
    del runner._finish  # type: ignore[method-assign]
    await Turn.objects.filter(pk=turn.pk).aupdate(
        heartbeat_at=timezone.now() - timedelta(minutes=1)
    )
    return turn.partial


async def waits(runner: Runner, turn: Turn, fate: str) -> bool:
    """Whether the turn is where its fate meets it."""
    live = runner._live.get(turn.pk)
    assert live is not None, "it ended too early"
    return live.phase == "calling" if "tool" in fate else live.text.startswith("half")


async def test_a_hundred_turns_of_an_agent(
    runner: Runner, scripted: RawTransport, conversation: Conversation
) -> None:
    dice = random.Random(20260629)
    fates = [*FATES * 6, *[""] * (TURNS - 6 * len(FATES))]
    dice.shuffle(fates)
    partials: list[str] = []
    scripted.pieces = lambda text: [text, " and the other half"]
    scripted.summaries = ["They looked for things, and some were found."]
    for number, fate in enumerate(fates, 1):
        scripted.replies = answers(dice, fate)
        scripted.hold = asyncio.Event() if "in the text" in fate else None
        if not fate or fate == "break":
            turn = await say(runner, conversation, f"question {number}", f"t{number}")
            assert turn.state == ("failed" if fate else "complete"), (number, turn.error_detail)
            continue
        turn, _new = await runner.start_turn(
            conversation_id=conversation.pk, model="", client_id=f"t{number}", text=f"q {number}"
        )
        last = Message.objects.filter(turn=turn, tool_calls__icontains="hang")
        if "tool" in fate:
            await until(last.aexists)
        await until(lambda turn=turn, fate=fate: waits(runner, turn, fate))
        if "kill" in fate:
            partials.append(await killed(runner, turn))
            await sync_to_async(store.recover_conversation)(conversation_id=conversation.pk)
        else:
            assert await runner.stop_and_wait(turn)
        await turn.arefresh_from_db()
        assert turn.state == ("interrupted" if "kill" in fate else "stopped")
    await all_is_well(scripted, conversation, [one for one in partials if one])


async def all_is_well(
    scripted: RawTransport, conversation: Conversation, partials: list[str]
) -> None:
    sent = scripted.streamed()
    assert len(sent) > TURNS
    assert [faults(body["messages"]) for body in sent] == [[]] * len(sent)
    for body in sent:
        for message in body["messages"]:
            for call in message.get("tool_calls", ()):
                json.loads(call["function"]["arguments"])
    requests = [one async for one in Request.objects.order_by("number")]
    assert [one.number for one in requests] == list(range(1, len(requests) + 1))
    for request in requests[:: max(1, len(requests) // 40)]:
        rebuilt = await sync_to_async(snapshots.rebuild)(request=request)
        assert rebuilt.verified is True
        assert request.tokens <= request.budget["window"] - request.budget["reply_reserve"]
    # What was written when the process died is in the transcript, once.
    kept = [row.content async for row in Message.objects.filter(role="assistant")]
    assert len(partials) == 6
    assert [kept.count(text) for text in partials] == [1] * 6
    rows = [row async for row in Message.objects.order_by("position")]
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    assert sum(row.role == "user" for row in rows) == TURNS
    assert await conversation.summaries.acount() > 3
    assert faults((await aassembled(conversation)).body["messages"]) == []
