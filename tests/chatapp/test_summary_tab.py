"""The Summary tab: versions, differences, edits by hand that are taken or refused, restore."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from chatapp.provider import target_for
from chatapp.summaries import summary_tab
from memory import service, versions
from memory.core.carrying import Carried
from memory.models import Conversation, Summary
from tests.chatapp.helpers import fill, fold, get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"headers": {"HX-Request": "true"}}


@pytest.fixture
def folded(client: Client, user: Any, conversation: Conversation) -> Conversation:
    """A signed-in owner's conversation of eight turns, the first three folded."""
    client.force_login(user)
    fill(conversation, 8)
    fold(conversation, 6)
    conversation.refresh_from_db()
    return conversation


def edit(client: Client, conversation: Conversation, version: int, text: str, **more: Any) -> Any:
    url = reverse("summary_edit", args=[conversation.pk, version])
    return client.post(url, {"text": text}, **(HTMX | more))


def texts(conversation: Conversation) -> list[str]:
    return list(conversation.summaries.order_by("version").values_list("text", flat=True))


def summary_sent(conversation: Conversation) -> str:
    """The summary in the next request."""
    assembled = service.assemble(conversation_id=conversation.pk, target=target_for(""))
    assert assembled.window is not None
    kept = [one for one in assembled.window.segments if one.kind == "summary"]
    return kept[0].message.content if kept else ""


def test_without_a_summary_the_tab_says_when_the_first_one_comes(
    client: Client, user: Any, make_conversation: Any
) -> None:
    client.force_login(user)
    conversation = make_conversation()
    fill(conversation, 2)
    html = client.get(reverse("panel_summary", args=[conversation.pk])).text
    assert "There is no summary yet" in html
    assert "more than 12 messages or more than 1,152 tokens" in html
    assert "Now 4 messages wait." in html
    for preset, words in (("full", "sends everything"), ("window", "leaves older messages out")):
        other = make_conversation(policy={"preset": preset})
        html = client.get(reverse("panel_summary", args=[other.pk])).text
        assert words in html
        assert "The next one is written" not in html


def test_after_a_restore_the_tab_says_that_folding_waits_for_one_more_turn(client: Client) -> None:
    talk = Talk({"preset": "hybrid", "max_messages": 4, "keep_messages": 2})
    client.force_login(talk.conversation.owner)
    for _ in range(4):
        talk.run("hi")
    talk.fold(2)
    talk.fold(4)
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=1, author=talk.conversation.owner
    )

    def rule() -> str:
        return " ".join(get(client, talk.conversation, "panel_summary").split())

    waits = "Folding waits until 1 more turn has ended, unless the request would not fit."
    assert waits in rule()
    assert "The next one is written" not in rule()
    assert "Now 6 messages wait." in rule()
    talk.run("hi")
    turn = talk.conversation.turns.latest("number")
    turn.state = "running"
    turn.save()
    assert waits in rule()
    turn.state = "complete"
    turn.save()
    assert "Folding waits" not in rule()
    assert "The next one is written before the request that brings more than 4" in rule()


def test_steps_with_tools_that_a_policy_does_not_count_are_named(client: Client) -> None:
    words = []
    for policy in ({"preset": "hybrid"}, {"preset": "hybrid", "counting": "all"}):
        talk = Talk(policy)
        client.force_login(talk.conversation.owner)
        talk.run("hi", results=("a row", "another"))
        words.append(re.findall(r"Now [^.]+\.", get(client, talk.conversation, "panel_summary")))
    assert words == [["Now 2 messages without tool steps wait."], ["Now 5 messages wait."]]


def test_the_tab_lists_versions_and_opens_the_active_one(folded: Conversation) -> None:
    event = versions.derive_summary(
        conversation_id=folded.pk, version=1, text="They spoke.", tokens=9, author=folded.owner,
        restore=False, carried=Carried((), 0),
    )  # fmt: skip
    folded.refresh_from_db()
    tab = summary_tab(folded)
    assert [(row["version"], row["kind"], row["is_active"]) for row in tab["versions"]] == [
        (2, "human", True),
        (1, "model", False),
    ]
    opened = tab["opened"]
    assert (opened["version"], opened["against"], opened["author"]) == (2, 1, "ada")
    assert (opened["first"], opened["last"], opened["before"]) == (1, 6, 54)
    assert [(part.change, part.text) for part in opened["diff"]] == [
        ("same", "They "),
        ("removed", "talked"),
        ("added", "spoke"),
        ("same", "."),
    ]
    assert [one["position"] for one in opened["sources"]] == [1, 2, 3, 4, 5, 6]
    assert opened["sources"][0]["excerpt"] == "user 1"
    assert tab["undo_label"] == "the edit"
    versions.undo(conversation_id=folded.pk)
    assert event.summary is not None
    tab = summary_tab(Conversation.objects.get(pk=folded.pk))
    assert [row["undone"] for row in tab["versions"]] == [True, False]
    assert tab["opened"]["version"] == 1


def test_an_address_names_the_tab_the_version_and_what_it_is_compared_with(
    client: Client, folded: Conversation
) -> None:
    edit(client, folded, 1, "They spoke.")
    page = reverse("conversation", args=[folded.pk])
    html = client.get(page, {"tab": "summary", "version": "1", "against": "2"}).text
    assert re.search(r'data-tab-link="summary" aria-current="true"', html)
    assert "Changes since v2" in html
    assert "<del>spoke</del><ins>talked</ins>" in html
    assert f'data-address="{page}?tab=summary&amp;version=1&amp;against=2"' in html
    assert 'data-tab="context"' in client.get(page, {"tab": "nonsense"}).text
    for wrong in ({"version": "9"}, {"version": "1", "against": "9"}):
        assert client.get(page, {"tab": "summary"} | wrong).status_code == 404
        assert client.get(reverse("panel_summary", args=[folded.pk]), wrong).status_code == 404


def test_an_edit_is_a_new_version_that_the_next_request_contains(
    client: Client, folded: Conversation
) -> None:
    response = edit(client, folded, 1, "Her name is\r\nGrace. <b>\x00")
    assert response.status_code == 200
    assert texts(folded) == ["They talked.", "Her name is\nGrace. <b>\ufffd"]
    assert "Her name is\nGrace. <b>" in summary_sent(folded)
    html = response.text
    assert 'data-tab="summary"' in html
    assert "Grace. &lt;b&gt;" in html
    assert re.search(r'<template data-head-tags>\s*<div class="head-tags" id="head-tags"', html)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" \n\u200b", "The text is empty."),
        ("word " * 1_000, "at most half of the usable tokens"),
    ],
)
def test_a_refused_edit_keeps_the_draft_and_says_why_at_the_field(
    text: str, words: str, client: Client, folded: Conversation
) -> None:
    response = edit(client, folded, 1, text)
    assert response.status_code == 422
    assert texts(folded) == ["They talked."]
    html = response.text
    assert words in html
    assert 'aria-invalid="true"' in html
    assert "data-unsaved" in html
    assert text.strip()[:20] in html
    page = edit(client, folded, 1, text, headers={})
    assert page.status_code == 422
    assert "<html" in page.text
    assert words in page.text


def test_an_edit_of_a_version_that_is_not_active_any_more_is_refused_with_the_draft(
    client: Client, folded: Conversation
) -> None:
    edit(client, folded, 1, "Second.")
    response = edit(client, folded, 1, "My own words.")
    assert response.status_code == 422
    assert "Another version became active" in response.text
    assert "My own words.</textarea>" in response.text
    assert "summaries/2/edit/" in response.text  # saving again edits what is active now
    assert texts(folded) == ["They talked.", "Second."]
    assert edit(client, folded, 7, "x").status_code == 404


def test_restore_and_undo_answer_with_the_tab_they_stand_in(
    client: Client, folded: Conversation
) -> None:
    edit(client, folded, 1, "Second.")
    restore = reverse("summary_restore", args=[folded.pk, 1])
    response = client.post(restore, **HTMX)
    assert 'data-tab="summary"' in response.text
    assert texts(folded) == ["They talked.", "Second.", "They talked."]
    assert "They talked." in summary_sent(folded)
    undo = reverse("memory_undo", args=[folded.pk])
    assert 'data-tab="summary"' in client.post(undo, {"tab": "summary"}, **HTMX).text
    assert "Second." in summary_sent(folded)
    assert 'data-tab="context"' in client.post(undo, **HTMX).text
    plain = client.post(undo, {"tab": "summary"})
    assert plain["Location"] == reverse("conversation", args=[folded.pk]) + "?tab=summary"


def test_a_version_from_before_a_reset_offers_no_restore(
    client: Client, folded: Conversation
) -> None:
    versions.reset(conversation_id=folded.pk)
    html = client.get(reverse("panel_summary", args=[folded.pk])).text
    assert "No version is active" in html
    assert "before the reset" in html
    assert "/restore/" not in html
    assert client.post(reverse("summary_restore", args=[folded.pk, 1])).status_code == 404


def test_a_failed_try_is_told_in_words(folded: Conversation) -> None:
    row = Summary.objects.get(conversation=folded)
    row.memoryevent_set.update(detail={"failures": ["refusal", "refusal"]})
    assert summary_tab(folded)["opened"]["failures"] == ["the summariser refused"]


def test_sources_of_a_long_conversation_lead_to_the_page_that_has_them(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 90)
    fold(conversation, 150)
    conversation.refresh_from_db()
    sources = summary_tab(conversation)["opened"]["sources"]
    assert sources[0]["before"] == 26  # position 1 is not among the newest fifty
    assert sources[-1]["before"] is None
    page = reverse("conversation", args=[conversation.pk])
    html = client.get(page, {"tab": "summary", "before": sources[0]["before"]}).text
    assert 'id="m-1"' in html


def test_the_tab_takes_a_constant_number_of_queries(
    client: Client, user: Any, make_conversation: Any, django_assert_max_num_queries: Any
) -> None:
    client.force_login(user)
    counts = set()
    for turns in (8, 200):
        conversation = make_conversation()
        fill(conversation, turns)
        for last in (2, 4, 6):
            fold(conversation, last)
        with django_assert_max_num_queries(30) as taken:
            client.get(reverse("panel_summary", args=[conversation.pk]))
        counts.add(len(taken))
    assert len(counts) == 1


def test_a_fork_begins_with_the_summary(client: Client, folded: Conversation) -> None:
    response = client.post(reverse("conversation_fork", args=[folded.pk, 8]))
    copy = Conversation.objects.exclude(pk=folded.pk).get()
    assert response["Location"] == reverse("conversation", args=[copy.pk])
    assert "They talked." in summary_sent(copy)
    assert copy.messages.count() == 8
