"""What is told of a fold, in the transcript, the Timeline tab and the Summary tab: what was folded
now and what it cost before and after, both counted alike, and why it is what it is."""

from typing import Any

import pytest
from django.test import Client

from chatapp.provider import target_for
from memory import service
from memory.models import Message
from tests.chatapp.compacting import DOWN, GOOD, Model, compact, newest, question, renew
from tests.chatapp.helpers import LONG, get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)

CODES = "My codes are KX-40718 and QX7-4471. "


@pytest.fixture
def talk(client: Client) -> Talk:
    """Two turns that are worth folding, and one that the policy keeps."""
    made = Talk({"preset": "hybrid", "max_messages": 4, "keep_messages": 2})
    for number in range(1, 4):
        made.run(CODES + question(number), reply=LONG)
    client.force_login(made.conversation.owner)
    return made


def told(client: Client, talk: Talk) -> list[str]:
    """The transcript, the Timeline tab and the Summary tab, in single spaces."""
    names = ("transcript", "panel_timeline", "panel_summary")
    return [" ".join(get(client, talk.conversation, name).split()) for name in names]


def tokens(talk: Talk, first: int, last: int) -> int:
    rows = Message.objects.filter(conversation=talk.conversation, position__range=(first, last))
    return sum(rows.values_list("tokens", flat=True))


def test_a_later_fold_says_what_was_folded_now_and_saves_what_the_messages_cost(
    client: Client, talk: Talk
) -> None:
    compact(talk, Model("m", GOOD))
    first = newest(talk)
    assert first.carried == 2
    assert first.tokens_before == tokens(talk, 1, 4)
    transcript, timeline, summary = told(client, talk)
    words = f"4 messages folded into summary v1 · {first.tokens_before} → {first.tokens_after} tok"
    assert words in transcript
    assert words in timeline
    assert "<dt>made of</dt><dd>4 messages</dd>" in summary
    talk.run(question(4), reply=LONG)
    compact(talk, Model("m", GOOD))
    second = newest(talk)
    # The text and the values are the same, so the messages are all that it saves.
    assert second.tokens_after == first.tokens_after
    assert second.tokens_before == first.tokens_after + tokens(talk, 5, 6)
    transcript, timeline, summary = told(client, talk)
    words = "2 messages and summary v1 folded into v2 · "
    words += f"{second.tokens_before} → {second.tokens_after} tokens · 2 values carried"
    assert words in transcript
    assert words in timeline
    assert "messages 1–6" in transcript
    assert "<dt>made of</dt><dd>2 messages and summary v1</dd>" in summary


def test_an_archive_made_anew_is_not_what_the_new_summary_was_made_of(
    client: Client, talk: Talk
) -> None:
    compact(talk, Model("m", GOOD))
    talk.run(question(4), reply=LONG)
    compact(talk, Model("m", DOWN))
    renew(talk, Model("m", GOOD))
    assert newest(talk).version == 3
    transcript, timeline, summary = told(client, talk)
    assert "2 messages and summary v1 folded into v3" in transcript
    assert "2 messages and summary v1 folded into v3" in timeline
    assert "<dt>made of</dt><dd>2 messages and summary v1</dd>" in summary


def test_an_edited_version_folded_nothing_and_costs_what_it_carries_too(
    client: Client, talk: Talk
) -> None:
    compact(talk, Model("m", GOOD))
    version, author = newest(talk).version, talk.conversation.owner
    service.edit_summary(
        conversation_id=talk.conversation.pk, version=version, text=GOOD, author=author,
        target=target_for(""),
    )  # fmt: skip
    first, edited = talk.conversation.summaries.order_by("version")
    assert (edited.carried, edited.tokens_after) == (2, first.tokens_after)
    transcript, _, summary = told(client, talk)
    words = f"summary v2 stands for messages 1–4 · {edited.tokens_after} tokens · 2 values carried"
    assert words in transcript
    assert "made of" not in summary


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I'm sorry, but I cannot help with that.", "the summariser refused"),
        (DOWN, "The model&#x27;s server reported an error."),
    ],
)
def test_the_line_of_an_archive_says_why_there_is_no_summary(
    answer: Any, reason: str, client: Client, talk: Talk
) -> None:
    compact(talk, Model("m", answer))
    transcript = told(client, talk)[0]
    assert f"The summary could not be written ({reason})" in transcript
    assert "No model could be reached" not in transcript
    # A restored one was made by no compaction.
    talk.run("hi")
    compact(talk, Model("m", GOOD))
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=1, author=talk.conversation.owner
    )
    transcript = told(client, talk)[0]
    assert "The messages were shortened and kept as an archive." in transcript
