"""Cases about counting tokens (TC-*)."""

import asyncio
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.urls import reverse

from chatapp.provider import target_for
from memory import encodings
from memory.core.checking import archive
from memory.core.text import shorten
from memory.core.tokens import MESSAGE_OVERHEAD
from memory.encodings import counter_for
from memory.models import Conversation, Message, Request
from tests.builders import reply, user
from tests.cases.raw import assembled, positions, store_history
from tests.chatapp.helpers import say
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


async def test_tc_01_a_text_about_control_tokens_is_an_ordinary_text(
    page: Page, scripted: Any, conversation: Conversation, user: Any, client: Any
) -> None:
    """A counter that reads control tokens out of the user's text raised, and the turn with it."""
    text = "My tokenizer lesson: what do <|endoftext|>, <|fim_prefix|> and <|im_start|> do?"
    await page.send(type="message.send", id="m1", text=text)
    assert (await page.until("turn.ended"))["state"] == "complete"
    row = await Message.objects.aget(role="user")
    assert row.content == text
    assert row.tokens - MESSAGE_OVERHEAD == counter_for("").count(text) > 20
    assert scripted.bodies[0]["messages"][-1]["content"] == text
    await sync_to_async(client.force_login)(user)
    panel = await sync_to_async(client.get)(reverse("panel_context", args=[conversation.pk]))
    assert "&lt;|endoftext|&gt;" in panel.content.decode()


@pytest.mark.parametrize("char", ["^", "=", "\n"])
def test_tc_03_a_million_of_one_character_is_counted_or_refused_but_never_aborts(
    char: str,
) -> None:
    """A tokenizer panicked on a long run with something that ordinary handlers do not catch."""
    started = time.monotonic()
    assert 1_000 < counter_for("gpt-4").count(char * 1_000_000) <= 1_000_000
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("char", ["^", "="])
async def test_tc_03_the_socket_survives_it(char: str, page: Page) -> None:
    """The same run in one frame below the frame limit took the connection down."""
    await page.send(type="message.send", id="m1", text=char * 1_000_000)
    assert (await page.next())["code"] == "too-long"
    await page.send(type="message.send", id="m2", text=char * 32_000)
    assert (await page.until("turn.ended"))["state"] in ("complete", "failed")
    await page.send(type="message.send", id="m3", text="still there?")
    assert (await page.until("turn.ended"))["state"] == "complete"


async def test_tc_05_a_huge_paste_does_not_stall_the_replies_of_others(
    open_page: Any, make_conversation: Any, scripted: Any
) -> None:
    """Counting one unbroken blob on the event loop froze the streams of everybody else."""
    reading = await open_page(await sync_to_async(make_conversation)())
    pasting = await open_page(await sync_to_async(make_conversation)(window=200_000))
    scripted.replies, scripted.pause = ["x" * 120], 0.01
    await reading.send(type="message.send", id="b", text="tell me")
    await reading.until("turn.delta")

    async def paste() -> None:
        blob = "QUJD" * 225_000
        await pasting.send(type="message.send", id="a", text=blob)
        assert (await pasting.next())["code"] == "too-long"
        await pasting.send(type="message.send", id="a2", text="a" * 32_000)
        await pasting.until("turn.ended")

    pause, _ = await asyncio.gather(reading.longest_pause(), paste())
    # The figure asked for is 250 ms; a shared machine gets more before a test may call it a stall.
    assert 0 < pause < 1.5
    assert reading.text() == "x" * 120


@pytest.mark.parametrize("model", ["qwen2.5:7b", "my-azure-deployment", "GPT-4o", "o9-mini", ""])
def test_tc_08_an_unknown_model_can_chat_and_its_figures_are_marked(
    model: str, client: Any, user: Any, make_conversation: Any, settings: Any
) -> None:
    """A model's name that the tokenizer does not know raised, so local models could not chat."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "local:1b"
    settings.LLM_CONTEXT_WINDOW = 4_096
    assert counter_for(model).estimated
    assert target_for(model).window == 4_096
    client.force_login(user)
    response = client.get(reverse("panel_context", args=[make_conversation(model=model).pk]))
    panel = response.context["panel"]
    assert (panel["estimated"], panel["counted"], panel["encoding"]) == (True, 4_096, "o200k_base")
    assert "estimate" in response.content.decode()


@pytest.fixture
def _unloaded() -> Any:
    """No vocabulary loaded before the test, and none of its making left after it."""
    for cached in (encodings._encoding, encodings.counter_for):
        cached.cache_clear()
    yield
    for cached in (encodings._encoding, encodings.counter_for):
        cached.cache_clear()


@pytest.mark.usefixtures("_unloaded")
def test_tc_10_the_first_count_needs_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without internet the first message waited for a download of the vocabulary, and failed."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("a name was looked up"))
    for model, name in (("gpt-4", "cl100k_base"), ("gpt-4o", "o200k_base")):
        counter = counter_for(model)
        assert (counter.name, counter.estimated, counter.count("hello")) == (name, False, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("_unloaded")
def test_tc_10_without_a_vocabulary_an_estimate_is_marked_and_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    """A missing vocabulary has to be a warning at the start, not a failure of the first message."""

    def gone(*_args: Any, **_more: Any) -> Any:
        raise FileNotFoundError("o200k_base.tiktoken.gz")

    monkeypatch.setattr(encodings, "_bundled_ranks", gone)
    with caplog.at_level(logging.WARNING, "memory.encodings"):
        for _ in range(3):
            assert counter_for("gpt-4o").count("hello") == 2
    assert counter_for("gpt-4o").estimated
    assert len(caplog.records) == 1
    monkeypatch.setattr(encodings, "BUNDLED", ("no_such_base",))
    call_command("check")
    assert "no_such_base" in capsys.readouterr().err


def test_tc_12_a_long_attachment_is_kept_and_sent(make_conversation: Any) -> None:
    """A short cut for long texts overpriced them, and the message itself was pruned away."""
    conversation = make_conversation(window=200_000)
    prose = ("The harbour was quiet that morning, and nobody spoke of the storm. " * 6_000)[
        :360_000
    ]
    store_history(conversation, [user(prose), reply("I have read it."), user("Go on")])
    made = assembled(conversation)
    assert positions(made) == [1, 2, 3]
    assert made.window is not None
    assert 60_000 < made.window.tokens < 100_000


async def test_tc_14_the_system_prompt_and_the_reserve_are_part_of_the_budget(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """Only messages were counted, so a large system prompt pushed requests over the limit."""
    counter = counter_for("")
    conversation = await sync_to_async(make_conversation)(
        system_prompt="Rules of the house. " * 1_000, window=8_000, reply_reserve=1_000,
        policy={"preset": "hybrid", "max_messages": 100, "keep_messages": 50},
    )  # fmt: skip

    def exact(body: dict[str, Any]) -> Any:
        tokens = sum(3 + counter.count(one["content"]) for one in body["messages"]) + 3
        return 400 if tokens > 7_000 else "word " * 150

    scripted.replies, scripted.pieces = [exact], lambda text: [text]
    for number in range(15):
        turn = await say(runner, conversation, f"question {number} " + "and so on " * 60)
        assert turn.state == "complete", (number, turn.error_code)
    assert await conversation.summaries.aexists(), "compaction came before the refusal"
    largest = max([one.tokens async for one in Request.objects.all()])
    assert 4_000 < largest <= 7_000


FAMILY = "家族👨‍👩‍👧‍👦の絵文字"


@pytest.mark.parametrize(
    "text", [FAMILY, "😀" * 50, "e\u0301" * 20, "👍🏽" * 10, "☂️" * 10, "🇫🇷" * 10]
)
def test_tc_15_a_cut_text_has_no_broken_characters(text: str) -> None:
    """A cut in the middle of a character left a replacement mark or half an emoji behind."""
    whole = {"", *_clusters(text)}
    for limit in range(0, len(text) + 2):
        short = shorten(text, limit)
        kept = short.removesuffix("…")
        assert text.startswith(kept)
        assert len(short) <= limit
        assert "\ufffd" not in short
        assert kept in whole, (limit, kept)


def test_tc_15_more_accents_than_any_letter_has_are_cut_where_they_are() -> None:
    """Looking for the edge of a character must not eat the text."""
    text = "a" + "\u0301" * 60
    assert shorten(text, 50) == text[:49] + "…"


def _clusters(text: str) -> list[str]:
    """The beginnings of `text` that end between two characters as a reader sees them."""
    import re

    one = re.compile(
        "[\U0001f1e6-\U0001f1ff]{2}|"
        "(?:.[\u0301\ufe0f\U0001f3fb-\U0001f3ff]*)(?:\u200d.[\ufe0f\U0001f3fb-\U0001f3ff]*)*",
        re.DOTALL,
    )
    return [text[: match.end()] for match in one.finditer(text)]


@pytest.mark.parametrize("cap", range(14, 60, 3))
def test_tc_15_an_archive_cut_to_any_budget_has_no_broken_characters(cap: int) -> None:
    """The same, where the end of a line is what is kept."""
    counter = counter_for("gpt-4")
    text = archive("", [user(FAMILY * 10)], cap=cap, counter=counter, limit=500)
    assert counter.count(text) <= cap
    assert "\ufffd" not in text
    json.dumps(text).encode()
    last = text.split("\n")[-1] if text else ""
    assert not last.startswith(("\u200d", "\ufe0f"))
    assert not last.endswith("\u200d")
