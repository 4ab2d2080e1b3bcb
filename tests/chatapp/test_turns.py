"""A turn from the runner's side: claimed, run, stored, told."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.layers import get_channel_layer
from django.utils import timezone

from chatapp.runner import Runner
from memory import snapshots, store
from memory.models import Conversation, Message, Request, Summary, Turn, TurnState
from memory.rows import Partial
from tests.chatapp.helpers import messages_of, say
from tests.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


async def begun(runner: Any, conversation: Conversation) -> Turn:
    """A running turn of which the first piece has come."""
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="1", text="go"
    )

    async def written() -> bool:
        return bool((runner.partial_of(turn.pk) or (0, ""))[1])

    await until(written)
    return turn


async def test_a_turn_stores_question_and_reply(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies = ["謝謝🌱, bis später"]
    turn = await say(runner, conversation, "hello")
    assert turn.state == TurnState.COMPLETE
    assert await messages_of(conversation) == [
        (1, "user", "hello"),
        (2, "assistant", "謝謝🌱, bis später"),
    ]


async def test_what_was_sent_can_be_rebuilt(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    for text in ("one", "two", "three"):
        await say(runner, conversation, text)
    requests = [request async for request in Request.objects.order_by("number")]
    assert [request.number for request in requests] == [1, 2, 3]
    for request, body in zip(requests, scripted.streamed(), strict=True):
        rebuilt = await sync_to_async(snapshots.rebuild)(request=request)
        assert rebuilt.body == body
        assert rebuilt.verified is True
        assert request.usage == {"prompt_tokens": 42, "completion_tokens": 5}


async def test_hybrid_folds_turns_one_to_three_at_the_thirteenth_message(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies = ["a long enough answer with many words in it, for a summary to be shorter"]
    for number in range(1, 8):
        await say(runner, conversation, f"question number {number} " + "word " * 20)
    summary = await Summary.objects.aget(conversation=conversation)
    assert (summary.first_position, summary.last_position) == (1, 6)
    assert summary.kind == "model"
    sent = scripted.streamed()[-1]["messages"]
    assert "The earlier messages in short." in sent[0]["content"]
    assert [message["role"] for message in sent] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


async def test_stop_keeps_the_partial_reply(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    await runner.stop_and_wait(turn)
    await turn.arefresh_from_db()
    assert turn.state == TurnState.STOPPED
    assert (await messages_of(conversation))[-1] == (2, "assistant", "p")


async def test_stop_reaches_a_turn_of_another_process(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn, _new = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="1", text="go"
    )
    elsewhere = Runner(runner.provider)
    assert elsewhere.partial_of(turn.pk) is None
    assert await elsewhere.stop_and_wait(await Turn.objects.aget(pk=turn.pk))
    await turn.arefresh_from_db()
    assert turn.state == TurnState.STOPPED


async def test_the_replies_so_far_are_saved_while_they_run(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chatapp.runner.SAVE", 0.02)
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    await Turn.objects.filter(pk=turn.pk).aupdate(heartbeat_at=timezone.now() - timedelta(hours=1))
    stored = Turn.objects.filter(pk=turn.pk, partial="p", stop_requested=False)

    async def saved() -> bool:
        return await stored.filter(heartbeat_at__gt=timezone.now() - timedelta(minutes=1)).aexists()

    await until(saved)
    await sync_to_async(store.request_stop)(turn_id=turn.pk)
    await runner.settled()
    await turn.arefresh_from_db()
    assert turn.state == TurnState.STOPPED


async def test_who_started_a_turn_may_refresh_it_while_it_runs(
    runner: Any, scripted: Any, conversation: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.replies, scripted.hold = ["reply"], asyncio.Event()
    turn = await begun(runner, conversation)
    await turn.arefresh_from_db()
    scripted.hold.set()
    await runner.settled()
    assert not caplog.records
    await turn.arefresh_from_db()
    assert turn.state == TurnState.COMPLETE


@pytest.mark.django_db
def test_a_late_save_does_not_touch_a_turn_that_has_ended(conversation: Conversation) -> None:
    turns = [
        Turn.objects.create(conversation=conversation, number=n, client_id=str(n), state=state)
        for n, state in ((1, TurnState.COMPLETE), (2, TurnState.RUNNING))
    ]
    partials = {turn.pk: Partial(0, "late") for turn in turns} | {10**9: Partial(0, "deleted")}
    # Those that run no more are to end wherever they still do.
    assert store.save_partials(partials=partials) == {turns[0].pk, 10**9}
    assert [turn.partial for turn in Turn.objects.order_by("number")] == ["", "late"]


@pytest.mark.django_db
def test_a_late_save_does_not_touch_a_step_that_is_over(conversation: Conversation) -> None:
    turn = Turn.objects.create(conversation=conversation, number=1, client_id="1")
    store.save_partials(partials={turn.pk: Partial(0, "I look it up.")})
    store.add_step(turn_id=turn.pk, step=1, written=[], encoding="o200k_base")
    store.save_partials(partials={turn.pk: Partial(0, "I look it up.")})
    turn.refresh_from_db()
    assert (turn.step, turn.partial) == (1, "")


async def test_a_lost_layer_costs_frames_and_nothing_else(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_args: Any) -> None:
        raise ConnectionError("the layer is gone")

    monkeypatch.setattr(type(get_channel_layer()), "group_send", broken)
    scripted.replies = ["all of it"]
    turn = await say(runner, conversation, "hello")
    assert turn.state == TurnState.COMPLETE
    assert (await messages_of(conversation))[-1][2] == "all of it"


async def test_the_runner_ends_its_turns_with_what_was_written(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies, scripted.hold = ["partial"], asyncio.Event()
    turn = await begun(runner, conversation)
    await runner.close()
    await turn.arefresh_from_db()
    assert turn.state == TurnState.INTERRUPTED
    assert (await messages_of(conversation))[-1][2] == "p"


async def test_two_sends_at_once_give_one_turn_and_one_busy(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.hold = asyncio.Event()
    results = await asyncio.gather(
        *(
            runner.start_turn(conversation_id=conversation.pk, model="", client_id=text, text=text)
            for text in ("A?", "B?")
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(one, tuple) for one in results) == 1
    assert sum(isinstance(one, store.Busy) for one in results) == 1
    scripted.hold.set()
    await until(lambda: Turn.objects.filter(state="complete").aexists())
    assert await Message.objects.acount() == 2


async def test_the_same_client_id_gives_the_same_turn(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    first = await say(runner, conversation, "hello", "m1")
    again = await say(runner, conversation, "hello", "m1")
    assert first.pk == again.pk
    assert await Message.objects.acount() == 2
    with pytest.raises(store.IdReused):
        await say(runner, conversation, "something else", "m1")
