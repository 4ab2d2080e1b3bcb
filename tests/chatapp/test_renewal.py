"""An archive is replaced by the summary that could not be made when it was."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp import agent, inspector
from chatapp.provider import target_for
from memory import compaction, service, versions
from memory.compaction import RENEWAL_TURNS
from memory.models import MemoryEvent, Summary
from tests.chatapp.compacting import (
    DOWN,
    GOOD,
    LADDER,
    Model,
    archived,
    broken,
    compact,
    newest,
    question,
    renew,
    run,
    summariser,
    system_sent,
    worth_folding,
)
from tests.chatapp.helpers import LONG, say
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def talk() -> Talk:
    return worth_folding()


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


async def test_the_runner_replaces_an_archive_after_the_next_turn(
    runner: Any, scripted: Any, make_conversation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "inline_ladder", lambda: LADDER)
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "hybrid", "max_messages": 8, "keep_messages": 2}, window=4_000
    )
    scripted.replies, scripted.summaries = [LONG], [503, 503, 503, GOOD]
    kinds = []
    for number in range(1, 8):
        await say(runner, conversation, question(number))
        await runner.settled()
        kinds.append([row.kind async for row in Summary.objects.order_by("version")])
    # The ninth message, in turn 5, is one too many.
    assert kinds[3:] == [[], ["archive"], ["archive", "model"], ["archive", "model"]]
    row = await Summary.objects.alatest("version")
    assert (row.first_position, row.last_position) == (1, 6)


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
        talk.run(question(number), reply=LONG)
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
        talk.run(question(number), reply=LONG)
    second = archived(talk)
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=2, author=talk.conversation.owner
    )
    model = Model("good", GOOD)
    assert renew(talk, model).status == "committed"
    row = newest(talk)
    assert (row.first_position, row.last_position) == (1, second.last_position)
    assert "<previous_summary>" not in model.asked[0]
    asked = "".join(model.asked)  # in chunks, since the demo model's window is small
    assert [f"question {number}:" in asked for number in (1, 3, 5, 6)] == [
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


def notice(talk: Talk) -> str:
    """What the Context tab says of the last compaction."""
    fresh = talk.fresh()
    return str(inspector.panel(inspector.shown_next(fresh, talk.assembled()))["notice"])


def edited(talk: Talk) -> None:
    service.edit_summary(
        conversation_id=talk.conversation.pk, version=newest(talk).version, text=GOOD,
        author=talk.conversation.owner, target=target_for(""),
    )  # fmt: skip


def test_a_renewal_that_fails_after_its_archive_was_replaced_leaves_no_trace(talk: Talk) -> None:
    archived(talk)
    said = notice(talk)

    async def overtaken() -> Exception:
        if len(model.asked) == 1:
            await sync_to_async(edited)(talk)
        return DOWN

    model = Model("broken", overtaken)
    outcome = renew(talk, model)
    assert (outcome.status, outcome.event) == ("superseded", None)
    kinds = [event.kind for event in talk.conversation.memory_events.order_by("id")]
    assert kinds == ["compaction", "edit"]
    assert notice(talk) == said


def test_that_an_archive_stays_is_not_said_once_another_summary_is_active(talk: Talk) -> None:
    archived(talk)
    said = notice(talk)
    renew(talk, broken())
    assert "still archived" in notice(talk)
    edited(talk)
    assert notice(talk) == said
    talk.undo()
    assert "still archived" in notice(talk)
