"""Compaction of stored conversations: the fallback, renewed archives, literals, claims, commits."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone

from chatapp.provider import target_for
from memory import compaction, service, versions
from memory.compaction import RENEWAL_TURNS, Outcome, Summariser
from memory.models import Conversation, MemoryEvent, Summary
from memory.summarizer import Completion, CompletionFailed, Ladder
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db

LADDER = Ladder(tries=3, try_seconds=2, total_seconds=8, backoff_seconds=0)
GOOD = "Ada asked for several things and was answered each time."
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


class Model:
    """A summariser's model: gives its answers in turn, the last one again and again. An exception
    is raised, a function called first. It keeps what it was asked."""

    def __init__(self, name: str, *answers: Any) -> None:
        self.name, self.answers = name, list(answers)
        self.asked: list[str] = []

    async def __call__(self, messages: Sequence[dict[str, str]], limit: int) -> Completion:
        self.asked.append(messages[1]["content"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        return Completion(answer, model=self.name, usage=dict(USAGE))


DOWN = CompletionFailed("server")


def broken() -> Model:
    return Model("broken", DOWN)


@pytest.fixture
def talk() -> Talk:
    """Four turns that are worth folding, of which the policy keeps one."""
    made = Talk({"preset": "hybrid", "max_messages": 4, "keep_messages": 2})
    for number in range(1, 5):
        made.run(f"question {number}: " + "word " * 15, reply=LONG)
    return made


def summariser(model: Model, fallback: Model | None = None, ladder: Ladder = LADDER) -> Summariser:
    return Summariser(model, 2_000, ladder, fallback)


def run(work: Callable[..., Any], talk: Talk, who: Summariser, **more: Any) -> Outcome:
    outcome: Outcome = async_to_sync(work)(
        conversation_id=talk.conversation.pk, target=target_for(""), summariser=who, **more
    )
    return outcome


def compact(talk: Talk, model: Model, fallback: Model | None = None) -> Outcome:
    return run(compaction.compact, talk, summariser(model, fallback), force=True)


def renew(talk: Talk, model: Model) -> Outcome:
    return run(compaction.renew, talk, summariser(model))


def newest(talk: Talk) -> Summary:
    return talk.conversation.summaries.latest("version")


def system_sent(talk: Talk) -> str:
    return str(talk.body()["messages"][0]["content"])


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
    assert "question 1:" in row.text


# Archives that are replaced


def archived(talk: Talk) -> Summary:
    compact(talk, broken())
    row = newest(talk)
    assert row.kind == "archive"
    return row


def wants(talk: Talk) -> bool:
    return compaction.wants_renewal(talk.assembled())


def test_an_archive_made_before_a_request_waits_for_the_turn_after(talk: Talk) -> None:
    turn = talk.run("next: " + "word " * 15, reply=None)  # running turns cannot be compacted here
    turn.state, turn.active = "running", True
    turn.save()
    run(compaction.compact, talk, summariser(broken()))
    assert newest(talk).turn == 4
    turn.state = "complete"
    turn.save()
    assert not wants(talk)
    talk.run("hi")
    assert wants(talk)


def test_an_archive_made_by_hand_waits_for_the_turn_after_the_next(talk: Talk) -> None:
    assert archived(talk).turn == 4
    seen = []
    for _ in range(2):
        seen.append(wants(talk))
        talk.run("hi")
    assert (seen, wants(talk)) == ([False, False], True)


def test_a_summary_of_a_model_is_not_made_anew(talk: Talk) -> None:
    compact(talk, Model("m", GOOD))
    for _ in range(3):
        talk.run("hi")
    assert not wants(talk)
    model = Model("m", GOOD)
    assert renew(talk, model).status == "nothing"
    assert model.asked == []


def test_a_renewal_reads_what_the_archive_was_made_of(talk: Talk) -> None:
    compact(talk, Model("m", "First part: Ada asked three questions."))
    for number in (5, 6):
        talk.run(f"question {number}: " + "word " * 15, reply=LONG)
    archive = archived(talk)
    assert (archive.first_position, archive.last_position, archive.messages_folded) == (1, 10, 4)
    model = Model("good", GOOD)
    outcome = renew(talk, model)
    assert outcome.status == "committed"
    row = newest(talk)
    assert (row.version, row.kind, row.text, row.model) == (3, "model", GOOD, "good")
    assert (row.first_position, row.last_position, row.messages_folded) == (1, 10, 4)
    assert row.parent == archive
    (asked,) = model.asked
    assert (
        "<previous_summary>\nFirst part: Ada asked three questions.\n</previous_summary>" in asked
    )
    assert [f"question {number}:" in asked for number in range(3, 7)] == [False, True, True, False]
    event = MemoryEvent.objects.latest("id")
    assert (event.kind, event.detail["trigger"]) == ("compaction", "renewal")
    assert GOOD in system_sent(talk)


def test_archives_on_archives_are_replaced_together(talk: Talk) -> None:
    archived(talk)
    for number in (5, 6):
        talk.run(f"question {number}: " + "word " * 15, reply=LONG)
    second = archived(talk)
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=2, author=talk.conversation.owner
    )
    model = Model("good", GOOD)
    assert renew(talk, model).status == "committed"
    row = newest(talk)
    assert (row.first_position, row.last_position) == (1, second.last_position)
    assert "<previous_summary>" not in model.asked[0]
    assert [f"question {number}:" in model.asked[0] for number in (1, 3, 5, 6)] == [
        True, True, True, False,
    ]  # fmt: skip


def test_an_undo_brings_the_archive_back(talk: Talk) -> None:
    archived(talk)
    before = talk.body()
    renew(talk, Model("good", GOOD))
    assert talk.body() != before
    talk.undo()
    assert talk.body() == before
    active = talk.fresh().active_summary()
    assert active is not None
    assert active.kind == "archive"


def test_a_failed_renewal_keeps_the_archive_and_is_not_tried_again_for_four_turns(
    talk: Talk,
) -> None:
    archived(talk)
    before = talk.body()
    outcome = renew(talk, broken())
    assert (outcome.status, outcome.failures) == ("failed", ("server",) * 3)
    assert talk.body() == before
    assert talk.conversation.summaries.count() == 1
    assert talk.fresh().hold_turn == 0, "other compactions need not wait"
    model = Model("good", GOOD)
    for _ in range(RENEWAL_TURNS):
        talk.run("hi")
        assert renew(talk, model).status == "nothing"
    assert model.asked == []
    talk.run("hi")
    assert renew(talk, model).status == "committed"


def test_a_renewal_needs_a_policy_that_summarises(talk: Talk) -> None:
    archived(talk)
    versions.change_settings(
        conversation_id=talk.conversation.pk, changes={"policy_data": {"preset": "window"}}
    )
    model = Model("good", GOOD)
    assert renew(talk, model).status == "nothing"
    assert model.asked == []


# Literals


@pytest.fixture
def ordered() -> Talk:
    """The first turn names values, which a summary loses; four more follow."""
    made = Talk({"preset": "hybrid", "max_messages": 20, "keep_messages": 2})
    made.run("My order is KX-40718 and the gate code 0093. " + "word " * 15, reply=LONG)
    for number in range(2, 6):
        made.run(f"question number {number}: " + "word " * 15, reply=LONG)
    return made


def carried(row: Summary) -> list[str]:
    part = row.to_core()
    return [one.literal.text for one in part.candidates[: part.fitting]]


def test_what_the_summary_lost_is_stored_and_stands_in_the_next_request(ordered: Talk) -> None:
    before = ordered.body()
    compact(ordered, Model("m", GOOD))
    row = newest(ordered)
    assert "KX-40718" in carried(row)
    assert "0093" in carried(row)
    text = system_sent(ordered)
    assert text.index(GOOD) < text.index("Exact values") < text.index("KX-40718")
    ordered.undo()
    assert ordered.body() == before


def test_what_the_summary_kept_is_not_carried_twice(ordered: Talk) -> None:
    compact(ordered, Model("m", "Ada waits for order KX-40718; the gate code is 0093."))
    assert carried(newest(ordered)) == []
    assert "Exact values" not in system_sent(ordered)
    assert system_sent(ordered).count("KX-40718") == 1


def test_the_next_summary_takes_the_literals_over(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", GOOD + " And once more."))
    row = newest(ordered)
    assert row.version == 2
    assert "KX-40718" in carried(row)


def test_a_restored_version_has_its_literals_again(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    first = newest(ordered)
    before = ordered.body()
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", "Order KX-40718, gate code 0093: all was answered."))
    assert carried(newest(ordered)) == []
    service.restore_summary(
        conversation_id=ordered.conversation.pk, version=1, author=ordered.conversation.owner
    )
    restored = newest(ordered)
    assert (restored.literals, restored.carried) == (first.literals, first.carried)
    assert (
        before["messages"][0]["content"].partition('version="1"')[2]
        == (system_sent(ordered).partition('version="3"')[2])
    )


def test_an_edit_keeps_only_the_literals_that_its_text_lacks(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    assert {"KX-40718", "0093"} <= set(carried(newest(ordered)))
    service.edit_summary(
        conversation_id=ordered.conversation.pk, version=1, text="The order is kx-40718.",
        author=ordered.conversation.owner, target=target_for(""),
    )  # fmt: skip
    row = newest(ordered)
    assert "KX-40718" not in carried(row)
    assert "0093" in carried(row)
    assert (row.kind, row.unsupported) == ("human", [])
    assert "KX-40718" not in system_sent(ordered)


def test_what_the_summary_made_up_is_stored_and_not_carried_on(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD + " Her other order is ZZ-99555."))
    assert [text for _, text in newest(ordered).unsupported] == ["ZZ-99555"]
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", GOOD + " Nothing else."))
    row = newest(ordered)
    assert row.unsupported == []
    assert "ZZ-99555" not in carried(row)


def test_literals_take_a_tenth_of_the_usable_tokens_and_the_rest_is_listed() -> None:
    talk = Talk({"preset": "hybrid", "max_messages": 40, "keep_messages": 2})
    for number in range(6):
        codes = ", ".join(f"KX-{40_000 + 100 * number + index}" for index in range(12))
        talk.run(f"The orders are {codes}.", reply=LONG)
    compact(talk, Model("m", GOOD))
    part = newest(talk).to_core()
    assert 0 < part.fitting < len(part.candidates) == 60
    window = talk.assembled().window
    assert window is not None
    kept = next(one for one in window.segments if one.kind == "summary")
    # A tenth of 1,536, the summary itself, and the preamble with the fence.
    assert kept.tokens <= 153 + 12 + 80
    assert "KX-40411" in kept.message.content, "the newest first"
    assert "KX-40000" not in kept.message.content


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
    claim(talk, versions.CLAIM_EXPIRES.total_seconds() + 1)
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
        talk.run(f"question {number}: " + "word " * 15, reply=LONG)

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


def test_a_cancelled_compaction_gives_its_claim_back(talk: Talk) -> None:
    async def cancelled() -> None:
        asked = asyncio.Event()

        async def hang() -> str:
            asked.set()
            await asyncio.sleep(60)
            return GOOD

        task = asyncio.create_task(
            compaction.compact(
                conversation_id=talk.conversation.pk,
                target=target_for(""),
                summariser=summariser(Model("m", hang), ladder=Ladder()),
                force=True,
            )
        )
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async_to_sync(cancelled)()
    assert talk.fresh().compaction_claim is None
    assert not MemoryEvent.objects.exists()
    assert not Summary.objects.exists()
