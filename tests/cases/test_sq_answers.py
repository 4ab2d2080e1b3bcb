"""Cases about summaries (SQ-*): which answers of a model become one."""

from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from memory.core import prompts
from memory.core.checking import strip_reasoning
from memory.models import Conversation, MemoryEvent, Message, Summary
from tests.cases.raw import aassembled, positions
from tests.chatapp.helpers import chat, say, sign_in_admin

database = pytest.mark.django_db(transaction=True)
GOOD = "Ada asked several questions and got an answer to each."


@pytest.fixture
def long(make_conversation: Any) -> Conversation:
    """A conversation in which long messages have room: an archive of them is worth keeping."""
    made: Conversation = make_conversation(window=8_000)
    return made


async def tell(runner: Any, conversation: Conversation, turns: int) -> None:
    for number in range(1, turns + 1):
        turn = await say(runner, conversation, f"question {number}: " + "word " * 300)
        assert turn.state == "complete"


@database
async def test_sq_01_an_error_never_becomes_the_summary(
    runner: Any, talkative: Any, long: Conversation
) -> None:
    """A rate limit's text was stored as the summary, and the messages it stood for were dropped."""
    talkative.summaries = [429]
    await tell(runner, long, 7)
    row = await Summary.objects.aget()
    assert row.kind == "archive"
    assert "429" not in row.text
    assert "refused with" not in row.text
    assert "question 1:" in row.text, "what was told first is still there"
    event = await MemoryEvent.objects.aget()
    assert event.detail["failures"] == ["rate-limit"] * 3
    assert await Message.objects.filter(active=True).acount() == 14
    assert (await say(runner, long, "What did I tell you first?")).state == "complete"
    assert "question 1:" in str(talkative.streamed()[-1]["messages"])


@database
async def test_sq_01_where_even_an_archive_would_save_nothing_all_stays(
    runner: Any, talkative: Any, conversation: Conversation
) -> None:
    """The boundary moves only to something that is shorter."""
    talkative.summaries = [429]
    await chat(runner, conversation, 7)
    assert not await Summary.objects.aexists()
    event = await MemoryEvent.objects.aget()
    assert event.detail["failures"] == ["rate-limit"] * 3 + ["archive-not-shorter"]
    assert positions(await aassembled(conversation)) == list(range(1, 15))


@database
async def test_sq_01_a_second_model_is_asked_before_the_archive(
    runner: Any, talkative: Any, long: Conversation, settings: Any
) -> None:
    """The ladder that the case asks for has a model to fail over to."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "large"
    settings.SUMMARY_MODEL, settings.SUMMARY_FALLBACK_MODEL = "small", "spare"
    talkative.summaries = [lambda body: GOOD if body["model"] == "spare" else 429]
    await tell(runner, long, 7)
    assert [body["model"] for body in talkative.asked()] == ["small"] * 3 + ["spare"]
    row = await Summary.objects.aget()
    assert (row.kind, row.model, row.text) == ("model", "spare", GOOD)
    assert {body["model"] for body in talkative.streamed()} == {"large"}


@database
async def test_sq_01_without_a_setting_the_conversations_own_model_is_the_spare(
    runner: Any, talkative: Any, long: Conversation, settings: Any
) -> None:
    """Who names a cheaper summariser has another model already."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "large"
    settings.SUMMARY_MODEL = "small"
    talkative.summaries = [lambda body: GOOD if body["model"] == "large" else 429]
    await tell(runner, long, 7)
    assert [body["model"] for body in talkative.asked()] == ["small"] * 3 + ["large"]
    assert (await Summary.objects.aget()).model == "large"


BLANK = [
    {"choices": [{"message": {"content": "", "reasoning_content": "let me think..."},
                  "finish_reason": "length"}]},
    {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    {"choices": [{"message": {"content": "   "}, "finish_reason": "stop"}]},
    {"choices": []},
]  # fmt: skip


@database
@pytest.mark.parametrize("answer", BLANK, ids=["reasoning only", "null", "spaces", "no choices"])
async def test_sq_04_an_empty_answer_is_a_failed_try(
    answer: Any, runner: Any, talkative: Any, conversation: Conversation
) -> None:
    """A model spent its allowance on thinking, and the empty rest replaced the summary."""
    talkative.summaries = ["The code is KX-40718.", answer]
    await chat(runner, conversation, 10)
    texts = [row.text async for row in Summary.objects.order_by("version")]
    assert len(texts) == 2
    assert all(text.strip() for text in texts)
    assert texts[1].startswith("The code is KX-40718.")
    assert "let me think" not in texts[1]
    assert len(talkative.asked()) == 1 + 3


@database
async def test_sq_04_the_next_try_after_a_cut_answer_has_more_room(
    runner: Any, talkative: Any, conversation: Conversation
) -> None:
    """A model that thinks before it writes needs more than the summary's own length."""
    talkative.summaries = [BLANK[0]]
    await chat(runner, conversation, 7)
    limits = [body["max_tokens"] for body in talkative.asked()]
    assert limits[1] > limits[0]


UNFIT = [
    "I can't help with that request.",
    "I'm sorry, but there is no conversation to summarise.",
    "OK",
    "echo",
]


@database
@pytest.mark.parametrize("answer", UNFIT)
async def test_sq_15_a_refusal_or_an_echo_is_not_committed(
    answer: str, runner: Any, talkative: Any, long: Conversation
) -> None:
    """Whatever came back was committed, and the history discarded for it."""
    echo = [lambda body: body["messages"][0]["content"]]
    talkative.summaries = echo if answer == "echo" else [answer]
    await tell(runner, long, 7)
    row = await Summary.objects.aget()
    assert row.kind == "archive"
    assert answer not in row.text or answer == "echo"
    assert prompts.SUMMARY_ROLE not in row.text
    assert len(talkative.asked()) == 3


@database
async def test_sq_16_reasoning_is_neither_stored_nor_shown(
    runner: Any, talkative: Any, conversation: Conversation, client: Any
) -> None:
    """A model's private thoughts became part of the summary, for everybody to read."""
    talkative.summaries = ["<think>user seems angry; secret plan</think>\nFacts: A, B"]
    talkative.replies = ["And B too."]
    for _ in range(7):
        await say(runner, conversation, "I like A.")
    assert (await Summary.objects.aget()).text == "Facts: A, B"
    await sync_to_async(sign_in_admin)(client, conversation.owner)
    summary = await Summary.objects.aget()
    for url in (
        reverse("panel_context", args=[conversation.pk]),
        reverse("panel_summary", args=[conversation.pk]),
        reverse("admin:memory_summary_changelist"),
        reverse("admin:memory_summary_change", args=[summary.pk]),
    ):
        page = await sync_to_async(client.get)(url)
        assert page.status_code == 200
        assert "secret plan" not in page.content.decode()


@pytest.mark.parametrize("text", ["<think>never closed", "Facts.<think>never closed"])
def test_sq_16_an_open_block_is_a_failed_try(text: str) -> None:
    """Where the block never closes nobody knows where the summary would begin."""
    assert strip_reasoning(text) is None


@database
async def test_sq_20_the_third_try_succeeds_and_the_first_two_can_be_seen(
    runner: Any, talkative: Any, conversation: Conversation, client: Any
) -> None:
    """One broken stream ended the attempt, and a tiny notice was presented as the summary."""
    talkative.summaries = [503, httpx2.ReadError("reset"), GOOD]
    await chat(runner, conversation, 7)
    row = await Summary.objects.aget()
    assert (row.kind, row.text) == ("model", GOOD)
    event = await MemoryEvent.objects.aget()
    assert event.detail["failures"] == ["server", "connect"]
    await sync_to_async(client.force_login)(conversation.owner)
    panel = await sync_to_async(client.get)(reverse("panel_context", args=[conversation.pk]))
    assert "written after failed tries" in panel.content.decode()


@database
@pytest.mark.parametrize(
    "answer",
    [
        '{"goal": "find the order", "facts": ["KX-40718"]}',
        '{"goal": "find the order", "facts": [], "next_steps": "", "mood": "calm"}',
        '{"goal": ["find", "the order"], "next_steps": ["wait"]}',
        "The user looks for order KX-40718; nothing is open.",
    ],
)
async def test_sq_25_the_form_of_a_summary_never_fails_a_turn(
    answer: str, runner: Any, talkative: Any, conversation: Conversation
) -> None:
    """One field was missing from a structured summary, and formatting it killed the turn."""
    talkative.summaries = [answer]
    await chat(runner, conversation, 7)
    row = await Summary.objects.aget()
    assert (row.kind, row.text) == ("model", answer)
