"""The model's thoughts while they come: told, resumed, saved, and kept where no reply came."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from chatapp.live import save
from memory import store
from memory.models import Conversation, Message, Turn
from tests.cases.raw import STOP, RawTransport, calling, piece
from tests.conftest import until
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


def thought(text: str) -> dict[str, Any]:
    return piece(None, reasoning_content=text)


class Pausing(RawTransport):
    """Waits for `hold` where an event is None."""

    def __init__(self) -> None:
        super().__init__()
        self.hold = asyncio.Event()

    async def _chunks(self, answer: Any) -> Any:
        for event in answer:
            if event is None:
                await self.hold.wait()
            else:
                async for chunk in super()._chunks([event]):
                    yield chunk


@pytest.fixture
def scripted() -> Pausing:
    return Pausing()


async def test_they_are_told_piece_by_piece_before_the_text(page: Page, scripted: Any) -> None:
    thoughts = [f"想法 {number}. 🤔" for number in range(30)]
    scripted.replies = [[*map(thought, thoughts), piece("It is seven."), STOP]]
    await page.send(type="message.send", id="m1", text="three and four?")
    await page.until("turn.ended")
    told = [frame for frame in page.frames if frame["type"] == "turn.thoughts"]
    text = ""
    for frame in told:
        assert frame["offset"] == len(text)
        text += frame["text"]
    assert text == "".join(thoughts)
    kinds = [frame["type"] for frame in page.frames]
    assert kinds.index("turn.thoughts") < kinds.index("turn.delta")
    assert page.text() == "It is seven."
    await page.send(type="turn.resume", turn=1)
    whole = await page.until("turn.text")
    assert (whole["text"], whole["thoughts"]) == ("It is seven.", text)


async def test_each_step_has_its_own(page: Page, scripted: Any, conversation: Conversation) -> None:
    scripted.replies = [
        [thought("first look"), None, *calling(("missing", "{}"))],
        [thought("then answer"), piece("Done."), STOP],
    ]
    conversation.tools = ["shop"]
    await conversation.asave()
    await page.send(type="message.send", id="m1", text="go")
    await page.until("turn.thoughts")
    scripted.hold.set()
    await page.until("turn.ended")
    told = [frame for frame in page.frames if frame["type"] == "turn.thoughts"]
    assert [(one["step"], one["offset"], one["text"]) for one in told] == [
        (0, 0, "first look"),
        (1, 0, "then answer"),
    ]
    rows = Message.objects.filter(role="assistant").order_by("position")
    assert [row.reasoning async for row in rows] == ["first look", "then answer"]


async def test_those_of_an_empty_answer_begin_anew(page: Page, scripted: Any) -> None:
    scripted.replies = [[thought("hm"), STOP], [thought("better"), piece("Yes."), STOP]]
    await page.send(type="message.send", id="m1", text="go")
    await page.until("turn.ended")
    told = [frame for frame in page.frames if frame["type"] == "turn.thoughts"]
    assert told[-1]["offset"] == 0
    assert (await Message.objects.aget(role="assistant")).reasoning == "better"


@pytest.mark.parametrize("text", ["", "It is "])
@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_stop_and_a_kill_keep_them(
    end: str, text: str, runner: Any, scripted: Any, conversation: Conversation
) -> None:
    said = [piece(text)] if text else []
    scripted.replies = [[thought("three and "), thought("four"), *said, None, STOP]]
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="c", text="three and four?"
    )

    async def written() -> bool:
        partial = runner.partial_of(turn.pk)
        return partial is not None and (partial.text, partial.thoughts) == (text, "three and four")

    await until(written)
    if end == "stop":
        assert await runner.stop_and_wait(turn)
    else:
        # What was saved of a process that is there no more.
        await save([runner._live[turn.pk]])
        stale = timezone.now() - timedelta(minutes=1)
        await Turn.objects.filter(pk=turn.pk).aupdate(heartbeat_at=stale)
        await sync_to_async(store.recover_conversation)(conversation_id=conversation.pk)
    await turn.arefresh_from_db()
    assert turn.state == ("stopped" if end == "stop" else "interrupted")
    replies = [row async for row in Message.objects.filter(turn=turn, role="assistant")]
    if text:
        assert [(row.content, row.reasoning) for row in replies] == [(text, "three and four")]
        assert replies[0].reasoning_tokens == 3
        assert turn.thoughts == ""
    else:
        assert replies == []
        assert turn.thoughts == "three and four"
