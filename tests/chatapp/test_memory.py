"""Compaction, reset and undo, from the chat's side down to the rows."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp import agent, inspector
from chatapp.provider import target_for
from memory import service, summarizer, versions
from memory.models import Conversation, MemoryEvent, Message, Summary, Turn
from memory.summarizer import Ladder
from tests.chatapp.helpers import LONG, chat, messages_of, say

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = Ladder(tries=2, try_seconds=0.2, total_seconds=1, backoff_seconds=0.01)


@pytest.fixture(autouse=True)
def _quick_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "inline_ladder", lambda: QUICK)


async def body(conversation: Conversation) -> Any:
    """The messages of the next request."""
    assembled = await sync_to_async(service.assemble)(
        conversation_id=conversation.pk, target=target_for("")
    )
    assert assembled.body is not None
    return assembled.body["messages"]


async def notice(conversation: Conversation) -> str:
    """What the panel says of the last compaction."""

    def shown() -> str:
        fresh = Conversation.objects.get(pk=conversation.pk)
        assembled = service.assemble(conversation_id=fresh.pk, target=target_for(""))
        return str(inspector.panel(inspector.shown_next(fresh, assembled))["notice"])

    return await sync_to_async(shown)()


@pytest.fixture
def talk(scripted: Any) -> Any:
    scripted.replies = [LONG]
    return scripted


async def test_undo_of_a_reset_gives_exactly_the_previous_window(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 8)
    before = await body(conversation)
    assert "in short" in before[0]["content"]
    await sync_to_async(service.reset)(conversation_id=conversation.pk)
    assert [message["role"] for message in await body(conversation)] == ["system"]
    assert await Message.objects.acount() == 16
    await sync_to_async(service.undo)(conversation_id=conversation.pk)
    assert await body(conversation) == before


async def test_undo_of_a_compaction_gives_exactly_the_previous_window(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 6)
    before = await body(conversation)
    outcome = await agent.compact(conversation, runner.provider, QUICK, force=True)
    assert outcome.status == "committed"
    assert await body(conversation) != before
    await sync_to_async(service.undo)(conversation_id=conversation.pk)
    assert await body(conversation) == before


async def test_undo_is_newest_first_and_ends(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    bodies = [await body(conversation)]
    for _ in range(3):
        await chat(runner, conversation, 7)
        await sync_to_async(service.reset)(conversation_id=conversation.pk)
    kinds = []
    while event := await sync_to_async(service.undo)(conversation_id=conversation.pk):
        kinds.append(event.detail["kind"])
    assert kinds == ["reset", "compaction"] * 3
    after = await body(conversation)
    assert [message["role"] for message in after[1:]] == ["user", "assistant"] * 21
    assert after[0] == bodies[0][0]


async def test_automatic_compaction_waits_one_finished_turn_after_an_undo(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 7)
    assert await Summary.objects.acount() == 1
    await sync_to_async(service.undo)(conversation_id=conversation.pk)
    await chat(runner, conversation, 1)
    assert await Summary.objects.acount() == 1
    await chat(runner, conversation, 1)
    assert await Summary.objects.acount() == 2


FAILURES = [
    pytest.param(429, "rate-limit", id="exception"),
    pytest.param({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}, "empty",
                 id="empty"),
    pytest.param("I'm sorry, but I cannot help with that.", "refusal", id="refusal"),
    pytest.param({"choices": [{"message": {"content": "The user"}, "finish_reason": "length"}]},
                 "cut", id="cut"),
    pytest.param({"choices": []}, "bad-answer", id="no choice"),
    pytest.param("<think>secret plan", "reasoning", id="open think block"),
    pytest.param(lambda body: asyncio.sleep(5, "too late"), "timeout", id="too slow"),
    pytest.param({"choices": [{"message": {"content": None, "tool_calls": [{}]},
                               "finish_reason": "tool_calls"}]}, "markup", id="tool call"),
    pytest.param("word " * 2000, "over-cap", id="too long"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "code"), FAILURES)
async def test_a_failing_summariser_loses_nothing_and_the_chat_goes_on(
    answer: Any, code: str, runner: Any, talk: Any, conversation: Conversation
) -> None:
    talk.summaries = ["Facts: the code is KX-40718.", answer]
    await chat(runner, conversation, 13)
    summary = await Summary.objects.alatest("version")
    assert summary.kind == "archive"
    # The old summary is kept whole, the new part stands behind it as raw text.
    assert summary.text.startswith("Facts: the code is KX-40718.\n- user: question 4:")
    event = await MemoryEvent.objects.alatest("id")
    assert set(event.detail["failures"]) == {code}
    assert await Message.objects.filter(active=True).acount() == 26
    assert "secret" not in summary.text
    words = await notice(conversation)
    assert "archived" in words
    assert "KX-40718" in (await body(conversation))[0]["content"]
    # A summary request has no tools and is not streamed.
    asked = [one for one in talk.bodies if not one.get("stream")]
    assert asked
    assert all("tools" not in one and "tool_choice" not in one for one in asked)


async def test_when_nothing_gets_shorter_all_stays_and_the_panel_says_why(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarizer, "archive", lambda *args, **more: "")
    scripted.replies, scripted.summaries = ["y"], ["long " * 300]
    for number in range(9):
        await say(runner, conversation, f"x{number}")
    assert await Summary.objects.acount() == 0
    failed = MemoryEvent.objects.filter(kind="compaction_failed")
    # Tried at the 13th message, not again with the next one.
    assert await failed.acount() == 1
    assert "changed nothing" in await notice(conversation)
    assert len(await body(conversation)) == 1 + 18


async def test_compacting_again_without_new_messages_changes_nothing(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 6)
    statuses = [
        (await agent.compact(conversation, runner.provider, QUICK, force=True)).status
        for _ in range(5)
    ]
    assert statuses == ["committed", "nothing", "nothing", "nothing", "nothing"]
    assert await Summary.objects.acount() == 1


async def test_the_next_summary_is_made_of_the_previous_one(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    talk.summaries = ["Fact A is in here.", "Facts A and B are in here."]
    await chat(runner, conversation, 11)
    asked = [one["messages"][1]["content"] for one in talk.bodies if not one.get("stream")]
    assert len(asked) == 2
    assert "<previous_summary>\nFact A is in here.\n</previous_summary>" in asked[1]
    assert "question 3" not in asked[1]
    first, second = [row async for row in Summary.objects.order_by("version")]
    assert second.parent_id == first.pk
    assert (second.first_position, second.last_position) == (1, 12)


async def test_two_compactions_at_once_make_one_version(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 6)
    talk.summaries = [lambda body: asyncio.sleep(0.05, "The earlier messages in short.")]
    outcomes = await asyncio.gather(
        *(agent.compact(conversation, runner.provider, QUICK, force=True) for _ in range(2))
    )
    assert sorted(one.status for one in outcomes) == ["committed", "joined"]
    assert await Summary.objects.acount() == 1


async def test_a_compaction_overtaken_by_a_reset_is_not_committed(
    runner: Any, talk: Any, conversation: Conversation
) -> None:
    await chat(runner, conversation, 6)
    asked = asyncio.Event()

    async def slow(body: Any) -> str:
        asked.set()
        await asyncio.sleep(0.1)
        return "The earlier messages in short."

    talk.summaries = [slow]
    task = asyncio.create_task(agent.compact(conversation, runner.provider, QUICK, force=True))
    await asked.wait()
    await sync_to_async(service.reset)(conversation_id=conversation.pk)
    assert (await task).status == "superseded"
    assert await Summary.objects.acount() == 0
    fresh = await Conversation.objects.aget(pk=conversation.pk)
    assert fresh.compaction_claim is None


async def test_a_full_conversation_that_no_longer_fits_says_so_and_loses_nothing(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "full"}, window=256, reply_reserve=64
    )
    scripted.replies = [LONG]
    states = [(await say(runner, conversation, "word " * 20)).state for _ in range(6)]
    assert states[0] == "complete"
    assert states[-1] == "failed"
    turn = await Turn.objects.alatest("number")
    assert turn.error_code == "window-history"
    assert len([row for row in await messages_of(conversation) if row[1] == "user"]) == 6
    conversation.policy_data = {"preset": "window", "max_messages": 2}
    await conversation.asave(update_fields=["policy_data"])
    assert (await say(runner, conversation, "again")).state == "complete"


async def test_after_a_reply_means_in_the_background(
    runner: Any, talk: Any, make_conversation: Any
) -> None:
    from tests.conftest import until

    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "hybrid", "when": "after_reply", "max_messages": 4, "keep_messages": 2}
    )
    await chat(runner, conversation, 3)
    await until(Summary.objects.aexists)
    assert len(talk.streamed()[-1]["messages"]) == 1 + 5


async def test_a_reset_is_refused_while_a_turn_runs(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.hold = asyncio.Event()
    await runner.start_turn(conversation_id=conversation.pk, model="", client_id="1", text="go")
    with pytest.raises(versions.TurnRunning):
        await sync_to_async(service.reset)(conversation_id=conversation.pk)
    scripted.hold.set()
