"""Cases about providers' streams (PS-*), without tools, over a real socket."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from chatapp.deltas import Reader, Text, Usage
from chatapp.provider import Provider
from memory import snapshots
from memory.models import Conversation, Message, Request, Turn
from tests.cases.loopback import Loopback
from tests.cases.raw import STOP, aassembled, ends, piece
from tests.chatapp.helpers import say
from tests.conftest import until
from tests.fakeserver import END, FakeServer, running, sse, text

database = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted(loopback: Loopback) -> Loopback:
    return loopback


@pytest.fixture
async def server(settings: Any) -> AsyncIterator[FakeServer]:
    async with running() as fake:
        settings.LLM_BASE_URL = f"http://127.0.0.1:{fake.port}/v1"
        settings.LLM_MODEL, settings.LLM_API_KEY = "m", "sk-very-secret-key"
        yield fake


async def read(body: bytes, server: FakeServer) -> str:
    """The reply that the real client makes of these bytes."""
    server.body = body
    provider = Provider()
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    parts = [one.text async for one in provider.stream(request) if isinstance(one, Text)]
    await provider.aclose()
    return "".join(parts)


async def test_ps_01_a_first_chunk_without_a_choice_carries_nothing(server: FakeServer) -> None:
    """A chunk of filter metadata came first, and the first choice of none was asked for."""
    first = {"id": "", "object": "", "created": 0, "model": "", "choices": [],
             "prompt_filter_results": []}  # fmt: skip
    assert await read(sse(first, text("Hi"), text(" there"), END), server) == "Hi there"


USAGE = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}


@database
@pytest.mark.parametrize(
    "events",
    [
        [piece("done"), ends("stop"), {"choices": [], "usage": USAGE}],
        [piece("done") | {"usage": {"prompt_tokens": 3}}, STOP | {"usage": USAGE}],
        [piece("done") | {"usage": None}, STOP | {"usage": None},
         {"choices": [], "usage": USAGE}],
        [piece("done") | {"usage": USAGE}, STOP | {"usage": None}],
    ],
    ids=["at the end", "on every chunk", "null before", "null after"],
)  # fmt: skip
async def test_ps_02_usage_is_recorded_once_wherever_it_stands(
    events: list[Any], runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """A last chunk of usage without choices broke the loop, or its numbers were lost."""
    scripted.replies = [events]
    assert (await say(runner, conversation, "hello")).state == "complete"
    assert (await Message.objects.aget(role="assistant")).content == "done"
    assert (await Request.objects.aget()).usage == USAGE


META = [b"retry: 3000\n\n", b"id: 7\n: ping\n\n", b": ping\n\n", b"event: ping\n\n", b":\n\n"]


@pytest.mark.parametrize("meta", META)
async def test_ps_07_events_without_data_are_passed_over(meta: bytes, server: FakeServer) -> None:
    """A gateway's keep-alive was read as JSON, and the stream died after some seconds."""
    body = b":\n\n" + meta + sse(text("a"), meta, meta, text("b"), meta, END)
    assert await read(body, server) == "ab"


BROKEN = [
    b'data: {"error":{"message":"overloaded","type":"server_error","code":529}}\n\n',
    b"event: error\ndata: overloaded\n\n",
    b'data: {"error":"overloaded for key sk-very-secret-key"}\n\n',
    b"event: error\ndata: overloaded, sk-very-secret-key is at its limit\n\n",
]


@database
@pytest.mark.parametrize("broken", BROKEN)
async def test_ps_08_an_error_in_the_stream_keeps_the_text_and_is_told_once(
    broken: bytes, runner: Any, scripted: Any, conversation: Conversation, client: Any,
    settings: Any,
) -> None:  # fmt: skip
    """An object with an error in place of choices was taken for a broken chunk."""
    settings.LLM_API_KEY, settings.LLM_MODEL = "sk-very-secret-key", "m"
    scripted.replies = [[piece("The "), piece("answer"), broken], "The answer is 4."]
    turn = await say(runner, conversation, "2+2?")
    assert (turn.state, turn.error_code) == ("failed", "server")
    assert (await Message.objects.aget(role="assistant")).content == "The answer"
    await sync_to_async(client.force_login)(conversation.owner)
    page = await sync_to_async(client.get)(reverse("transcript", args=[conversation.pk]))
    html = page.content.decode()
    assert html.count("overloaded") == 1
    assert "sk-very-secret" not in html + turn.error_detail
    again, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="r", text=None, replaces=1
    )
    await until(lambda: Turn.objects.filter(pk=again.pk, state="complete").aexists())
    active = [row.content async for row in Message.objects.filter(active=True)]
    assert active == ["2+2?", "The answer is 4."]


@database
async def test_ps_12_a_whole_message_at_the_end_is_not_appended(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """The last chunk held the whole message once more, and it was added to what had come."""
    last = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Good day"},
                         "finish_reason": "stop"}]}  # fmt: skip
    scripted.replies = [[piece("Good "), piece("day"), last]]
    await say(runner, conversation, "hello")
    assert (await Message.objects.aget(role="assistant")).content == "Good day"


@database
@pytest.mark.parametrize(
    "pieces",
    [["777", "777", "77"], ["xy", "xy", "xy"], ["呵呵", "呵呵", "呵"], ["19", "9", "9", "0"]],
)
async def test_ps_14_real_repetition_is_kept(
    pieces: list[str], runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """Equal neighbours were taken for replays, so years and amounts lost digits in silence."""
    scripted.replies = [[*map(piece, pieces), STOP]]
    await say(runner, conversation, "hello")
    assert (await Message.objects.aget(role="assistant")).content == "".join(pieces)


REASONING = [
    piece(None, role="assistant", reasoning_content=""),
    piece(None, reasoning_content="the user is impatient"),
    piece("Good day"),
    STOP,
]


@database
async def test_ps_15_reasoning_is_no_answer(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """Models that think stream it beside the answer; it must not become part of it."""
    scripted.replies = [REASONING]
    assert (await say(runner, conversation, "hello")).state == "complete"
    row = await Message.objects.aget(role="assistant")
    assert row.content == "Good day"
    assert "impatient" not in str((await aassembled(conversation)).body)


@database
async def test_ps_15_a_provider_that_wants_its_reasoning_back_gets_it(
    runner: Any, scripted: Any, conversation: Conversation, settings: Any
) -> None:
    """The next turn was refused because the field was gone."""
    settings.LLM_REASONING_FIELD = "reasoning_content"

    def wants_it(body: dict[str, Any]) -> Any:
        said = [one for one in body["messages"] if one["role"] == "assistant"]
        return "ok" if all("reasoning_content" in one for one in said) else 400

    scripted.replies = [REASONING, wants_it]
    await say(runner, conversation, "hello")
    row = await Message.objects.aget(role="assistant")
    assert (row.content, row.reasoning) == ("Good day", "the user is impatient")
    assert (await say(runner, conversation, "and?")).state == "complete"
    sent = scripted.bodies[-1]["messages"][-2]
    assert (sent["content"], sent["reasoning_content"]) == ("Good day", "the user is impatient")
    # It costs tokens where it is sent, and a request with it can be rebuilt.
    first, second = [one async for one in Request.objects.order_by("number")]
    assert second.tokens >= first.tokens + row.tokens + row.reasoning_tokens
    for request in (first, second):
        assert (await sync_to_async(snapshots.rebuild)(request=request)).verified is True


@database
async def test_ps_15_thoughts_are_no_part_of_a_summary(
    runner: Any, scripted: Any, make_conversation: Any, settings: Any
) -> None:
    """What the model thought is neither what was said nor anything to remember."""
    settings.LLM_REASONING_FIELD = "reasoning_content"
    policy = {"preset": "hybrid", "max_messages": 4, "keep_messages": 2}
    conversation = await sync_to_async(make_conversation)(policy=policy)
    scripted.replies = [[*REASONING[:2], piece("A day is good. " * 9), STOP]]
    for number in range(4):
        await say(runner, conversation, f"question {number} " * 9)
    asked = [body for body in scripted.bodies if not body.get("stream")]
    assert asked
    assert "impatient" not in str(asked)


@database
@pytest.mark.parametrize(
    ("events", "state", "kept"),
    [
        ([ends("content_filter")], "filtered", []),
        ([piece("par"), ends("content_filter")], "filtered", ["par"]),
        ([STOP], "failed", []),
    ],
    ids=["filtered", "filtered half way", "nothing"],
)
async def test_ps_17_a_filtered_reply_is_not_an_empty_one(
    events: list[Any], state: str, kept: list[str], runner: Any, scripted: Any,
    conversation: Conversation, client: Any,
) -> None:  # fmt: skip
    """Both were reported alike, and a filtered one was tried again in vain."""
    scripted.replies = [events, events, "ok"] if state == "failed" else [events, "ok"]
    turn = await say(runner, conversation, "hello")
    assert turn.state == state
    assert [row.content async for row in Message.objects.filter(role="assistant")] == kept
    if state == "filtered":
        assert len(scripted.bodies) == 1
        await sync_to_async(client.force_login)(conversation.owner)
        page = await sync_to_async(client.get)(reverse("transcript", args=[conversation.pk]))
        assert "content filter" in page.content.decode()
    await say(runner, conversation, "and now?")
    sent = scripted.bodies[-1]["messages"]
    assert all(one["content"] for one in sent), "no empty reply in the next request"
    assert [one["content"] for one in sent if one["role"] == "assistant"] == kept


@database
async def test_ps_17_an_empty_reply_is_asked_for_once_more(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """An empty answer without a reason is worth one more try."""
    scripted.replies = [[STOP], "here it is"]
    await say(runner, conversation, "hello")
    assert (await Message.objects.aget(role="assistant")).content == "here it is"


def test_ps_02_counts_that_are_no_numbers_are_left_out() -> None:
    """A server's own idea of usage must not get into the figures."""
    (delta,) = Reader().feed(
        "", '{"choices":[],"usage":{"prompt_tokens":"12","completion_tokens":3}}'
    )
    assert delta == Usage({"completion_tokens": 3})
