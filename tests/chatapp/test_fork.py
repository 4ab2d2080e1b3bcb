"""What a fork inherits is explained in its transcript and in its Timeline."""

from typing import Any

import pytest
from django.test import Client

from chatapp.timeline import timeline_tab
from chatapp.transcript import transcript
from memory import service, versions
from memory.fork import fork
from memory.models import Conversation
from tests.chatapp.helpers import get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk() -> Talk:
    """Two turns with the positions 1 to 4, a reset, and two more turns."""
    made = Talk({"preset": "hybrid"})
    for text in ("one", "two"):
        made.run(text)
    made.reset()
    for text in ("three", "four"):
        made.run(text)
    Conversation.objects.filter(pk=made.conversation.pk).update(title="<Parcels>")
    return made


def forked(talk: Talk, position: int) -> Talk:
    copy = Talk({"preset": "hybrid"})
    copy.conversation = fork(
        conversation_id=talk.conversation.pk, position=position, title="a copy"
    )
    copy.turns = copy.conversation.next_turn - 1
    return copy


def kinds(talk: Talk) -> list[str]:
    """The lines and turns of the transcript, in order."""
    return [one["type"] for one in transcript(talk.assembled())["items"]]


def event(talk: Talk) -> dict[str, Any]:
    (found,) = timeline_tab(talk.fresh())["events"]
    changes = [(one["name"], one["before"], one["after"]) for one in found["changes"]]
    return {name: found[name] for name in ("label", "reason", "version")} | {"changes": changes}


def test_the_reset_of_the_original_is_drawn_and_told(talk: Talk) -> None:
    copy = forked(talk, 6)
    assert kinds(copy) == ["turn", "turn", "reset", "turn"]
    assert event(copy) == {
        "label": "fork",
        "reason": "of “<Parcels>”",
        "version": None,
        "changes": [("context starts at message", 1, 5)],
    }


def test_before_the_reset_nothing_is_known_and_the_line_is_the_last(talk: Talk) -> None:
    assert kinds(forked(talk, 2)) == ["turn", "reset"]


def test_the_summary_of_the_original_is_told(talk: Talk) -> None:
    talk.fold(2)
    copy = forked(talk, 8)
    assert kinds(copy) == ["turn", "turn", "reset", "turn", "fold", "turn"]
    told = event(copy)
    assert told["version"] == 1
    assert ("active summary", "none", "v1") in told["changes"]


def test_what_was_inherited_cannot_be_undone(talk: Talk) -> None:
    talk.fold(2)
    copy = forked(talk, 8)
    assert versions.last_undoable(copy.fresh()) is None
    assert service.undo(conversation_id=copy.conversation.pk) is None
    copy.reset()
    copy.undo()
    assert copy.fresh().context_start == 5
    assert kinds(copy) == ["turn", "turn", "reset", "turn", "fold", "turn"]


def test_a_fork_of_a_fork_inherits_the_same(talk: Talk) -> None:
    assert kinds(forked(forked(talk, 8), 6)) == ["turn", "turn", "reset", "turn"]


def test_a_fork_without_reset_or_summary_names_its_original(client: Client) -> None:
    talk = Talk({"preset": "hybrid"})
    talk.run("one")
    copy = forked(talk, 2)
    assert kinds(copy) == ["turn"]
    assert event(copy)["changes"] == []
    client.force_login(talk.conversation.owner)
    assert "of “one”" in get(client, copy.conversation, "panel_timeline")
