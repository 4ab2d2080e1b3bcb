"""Compaction of stored conversations: its fallback, its claim, and what it commits onto."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import InterfaceError
from django.utils import timezone

from chatapp.provider import target_for
from memory import claims, compaction, service, versions
from memory.crossing import Cancelled
from memory.models import Conversation, MemoryEvent, Summary
from memory.summarizer import CompletionFailed, Ladder
from tests.chatapp.compacting import (
    DOWN,
    GOOD,
    Model,
    archived,
    broken,
    compact,
    newest,
    question,
    run,
    summariser,
    worth_folding,
)
from tests.chatapp.gates import Gate, failing
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk() -> Talk:
    return worth_folding()


# The fallback


def test_after_three_failed_tries_the_other_model_is_asked_and_named(talk: Talk) -> None:
    first, second = Model("small", DOWN, CompletionFailed("rate-limit"), "No."), Model("big", GOOD)
    outcome = compact(talk, first, second)
    assert (outcome.status, len(first.asked), len(second.asked)) == ("committed", 3, 1)
    row = newest(talk)
    assert (row.kind, row.model, row.text) == ("model", "big", GOOD)
    assert outcome.failures == ("server", "rate-limit", "too-short")
    event = MemoryEvent.objects.get()
    assert event.detail["failures"] == list(outcome.failures)
    # An answer that was not taken was paid for as well.
    assert row.usage == {"prompt_tokens": 200, "completion_tokens": 20}


def test_the_other_model_is_not_asked_where_the_third_try_succeeds(talk: Talk) -> None:
    first, second = Model("small", DOWN, DOWN, GOOD), Model("big", GOOD)
    compact(talk, first, second)
    assert (newest(talk).model, second.asked) == ("small", [])


def test_where_both_fail_the_raw_text_is_archived(talk: Talk) -> None:
    outcome = compact(talk, broken(), broken())
    row = newest(talk)
    assert (row.kind, row.model, row.prompt_version) == ("archive", "", "")
    assert outcome.failures == ("server",) * 6
    assert "user: question 3:" in row.text


# At most one, and only onto what it was planned on


def claim(talk: Talk, seconds: float) -> None:
    at = timezone.now() - timedelta(seconds=seconds)
    rows = Conversation.objects.filter(pk=talk.conversation.pk)
    rows.update(compaction_claim=uuid4(), compaction_claimed_at=at)


def test_a_compaction_of_somebody_else_is_waited_for_not_repeated(talk: Talk) -> None:
    claim(talk, 1)
    model = Model("m", GOOD)
    quick = summariser(model, ladder=Ladder(total_seconds=0.05))
    outcome = run(compaction.compact, talk, quick, force=True)
    assert (outcome.status, outcome.failures) == ("joined", ("out-of-time",))
    assert model.asked == []
    assert talk.fresh().compaction_claim is not None


def test_the_claim_of_a_dead_process_expires(talk: Talk) -> None:
    claim(talk, claims.EXPIRES.total_seconds() + 1)
    assert compact(talk, Model("m", GOOD)).status == "committed"
    assert talk.fresh().compaction_claim is None


def edit(talk: Talk) -> None:
    service.edit_summary(
        conversation_id=talk.conversation.pk, version=1, text="By hand.",
        author=talk.conversation.owner, target=target_for(""),
    )  # fmt: skip


CHANGES: dict[str, Callable[[Talk], Any]] = {
    "reset": Talk.reset,
    "undo": Talk.undo,
    "edit": edit,
    "settings": lambda talk: versions.change_settings(
        conversation_id=talk.conversation.pk, changes={"system_prompt": "Be long."}
    ),
    "regenerate": Talk.again,
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("work", [compaction.compact, compaction.renew])
def test_a_change_during_the_fold_supersedes_it(
    work: Callable[..., Any], change: str, talk: Talk
) -> None:
    archived(talk)
    for number in (5, 6):
        talk.run(question(number), reply=LONG)

    async def meanwhile() -> str:
        await sync_to_async(CHANGES[change])(talk)
        return GOOD

    more = {"force": True} if work is compaction.compact else {}
    outcome = run(work, talk, summariser(Model("m", meanwhile)), **more)
    assert outcome.status == "superseded"
    assert outcome.event is None
    assert not talk.conversation.summaries.filter(text=GOOD).exists()
    assert MemoryEvent.objects.filter(kind="compaction").count() == 1
    assert talk.fresh().compaction_claim is None


def test_a_turn_that_begins_during_the_fold_does_not_supersede_it(talk: Talk) -> None:
    async def meanwhile() -> str:
        await sync_to_async(talk.run)("hi")
        return GOOD

    assert compact(talk, Model("m", meanwhile)).status == "committed"
    assert newest(talk).last_position == 6
    kinds = [message["role"] for message in talk.body()["messages"]]
    assert kinds == ["system", "user", "assistant", "user", "assistant"]


def begun(talk: Talk, model: Model) -> "asyncio.Task[Any]":
    return asyncio.create_task(
        compaction.compact(
            conversation_id=talk.conversation.pk,
            target=target_for(""),
            summariser=summariser(model, ladder=Ladder()),
            force=True,
        )
    )


async def cancel(task: "asyncio.Task[Any]", gate: Gate | None = None) -> asyncio.CancelledError:
    """Cancel it, open the gate that holds it up only then, and wait for its end."""
    task.cancel()
    if gate is not None:
        await asyncio.sleep(0)  # it hears of the cancellation
        gate.open()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


def test_a_cancelled_compaction_gives_its_claim_back(talk: Talk) -> None:
    async def cancelled() -> None:
        asked = asyncio.Event()

        async def hang() -> str:
            asked.set()
            await asyncio.sleep(60)
            return GOOD

        task = begun(talk, Model("m", hang))
        await asked.wait()
        await cancel(task)

    async_to_sync(cancelled)()
    assert talk.fresh().compaction_claim is None
    assert not MemoryEvent.objects.exists()
    assert not Summary.objects.exists()


async def test_a_compaction_that_is_cancelled_while_it_claims_leaves_no_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = await sync_to_async(worth_folding)()
    gate = Gate(monkeypatch, claims, "take")
    task = begun(talk, Model("m", GOOD))
    await gate.reached()
    await cancel(task, gate)
    assert (await sync_to_async(talk.fresh)()).compaction_claim is None


async def test_a_compaction_that_is_cancelled_while_it_commits_says_what_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = await sync_to_async(worth_folding)()
    gate = Gate(monkeypatch, versions, "commit_summary")
    task = begun(talk, Model("m", GOOD))
    await gate.reached()
    stopped = await cancel(task, gate)
    assert isinstance(stopped, Cancelled)
    assert stopped.result.event == await MemoryEvent.objects.aget()
    assert (await sync_to_async(talk.fresh)()).compaction_claim is None


def test_a_sign_of_life_that_fails_is_given_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "RENEWED", 0.0)
    signs = failing(monkeypatch, claims, "renew", [InterfaceError("the connection is closed")])

    async def slow() -> str:
        async with asyncio.timeout(10):
            while len(signs) < 3:  # noqa: ASYNC110  (they come from a thread)
                await asyncio.sleep(0.001)
        return GOOD

    compact(talk, Model("m", slow))
    assert newest(talk).text == GOOD
