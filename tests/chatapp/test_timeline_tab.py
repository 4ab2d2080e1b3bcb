"""The Timeline tab: every change of the memory with its reason, and what the requests cost."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from chatapp import timeline
from chatapp.timeline import account, timeline_tab
from memory import service, versions
from tests.chatapp.helpers import get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk() -> Talk:
    return Talk({"preset": "hybrid"})


@pytest.fixture
def signed_in(client: Client, talk: Talk) -> Client:
    client.force_login(talk.conversation.owner)
    return client


def events(talk: Talk) -> list[dict[str, Any]]:
    return list(timeline_tab(talk.fresh())["events"])


def changes(event: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(one["name"], one["before"], one["after"]) for one in event["changes"]]


def settle(talk: Talk, **values: Any) -> None:
    versions.change_settings(conversation_id=talk.conversation.pk, changes=values)


# Events


def test_an_empty_conversation_has_neither_events_nor_costs(signed_in: Client, talk: Talk) -> None:
    html = get(signed_in, talk.conversation, "panel_timeline")
    assert "Nothing yet: no message was folded" in html
    assert "No request was made yet." in html
    assert "<svg" not in html[html.index('id="account"') :]
    shown = account(talk.fresh())
    assert (shown["sent"], shown["everything"], shown["saved"], shown["curve"]) == (0, 0, 0, None)


def test_events_are_listed_newest_first_each_with_its_reason(talk: Talk) -> None:
    talk.run("hi")
    talk.again()
    for trigger in ("messages", "turns", "tokens", "budget", "manual", "renewal"):
        talk.run("hi")
        talk.fold(1, trigger=trigger)
    versions.record_failure(
        conversation_id=talk.conversation.pk, failures=(), trigger="renewal", retry_turn=0
    )
    talk.reset()
    talk.undo()
    assert [(one["label"], one["reason"]) for one in events(talk)] == [
        ("undo", "the reset"),
        ("reset", ""),
        ("compaction failed", "to replace an archive"),
        ("compaction", "to replace an archive"),
        ("compaction", "asked for by hand"),
        ("compaction", "the request would not have fitted"),
        ("compaction", "too many tokens"),
        ("compaction", "too many turns"),
        ("compaction", "too many messages"),
        ("turn replaced", "Turn 1"),
    ]


def test_a_fold_says_what_it_replaced_what_it_carries_and_which_tries_failed(
    signed_in: Client, talk: Talk
) -> None:
    talk.run("hi")
    talk.fold(
        2, trigger="messages", tokens_before=1_240, tokens_after=112,
        literals=[["id", "KX-40718", 1, 1], ["id", "KX-1", 2, 1], ["id", "KX-2", 2, 1]],
        carried=2, failures=("refusal", "timeout", "refusal"),
    )  # fmt: skip
    (event,) = events(talk)
    fold = event["fold"]
    assert (fold["before"], fold["after"], fold["carried"]) == (1_240, 112, 2)
    assert event["failures"] == ["the summariser refused", "the summariser took too long"]
    assert changes(event) == [("active summary", "none", "v1")]
    html = get(signed_in, talk.conversation, "panel_timeline")
    for words in ("1,240 → 112 tokens", "2 values carried", "the summariser refused",
                  "before message 3", "Summary v1"):  # fmt: skip
        assert words in html
    page = reverse("conversation", args=[talk.conversation.pk])
    assert f'href="{page}?tab=summary&amp;version=1"' in html


def test_every_change_of_the_state_stands_before_and_after(talk: Talk) -> None:
    talk.run("hi")
    talk.fold(1)
    service.edit_summary(
        conversation_id=talk.conversation.pk, version=1, text="They met.",
        author=talk.conversation.owner, target=service.Target("demo", 2_048, {}),
    )  # fmt: skip
    talk.reset()
    talk.undo()
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=1, author=talk.conversation.owner
    )
    found = {one["kind"]: changes(one) for one in events(talk)}
    assert found == {
        "compaction": [("active summary", "none", "v1")],
        "edit": [("active summary", "v1", "v2")],
        "reset": [("active summary", "v2", "none"), ("context starts at message", 1, 3)],
        "undo": [("active summary", "none", "v2"), ("context starts at message", 3, 1)],
        "restore": [("active summary", "v2", "v3")],
    }


def test_what_was_taken_back_is_marked_and_the_undo_names_it(signed_in: Client, talk: Talk) -> None:
    talk.run("hi")
    talk.fold(1)
    talk.reset()
    talk.undo()
    talk.undo()
    assert [(one["kind"], one["undone"], one["reason"]) for one in events(talk)] == [
        ("undo", False, "summary v1"),
        ("undo", False, "the reset"),
        ("reset", True, ""),
        ("compaction", True, ""),
    ]
    html = get(signed_in, talk.conversation, "panel_timeline")
    assert len(re.findall(r'<li class="event \w+ gone">', html)) == 2
    assert html.count('<span class="state">undone</span>') == 2


def test_a_change_of_the_settings_is_told_in_words(signed_in: Client, talk: Talk) -> None:
    policy = {"preset": "hybrid-tokens", "keep_share": 0.07, "rungs": False, "keep_turns": 0}
    settle(talk, window=1_024, model="", system_prompt="rule <b> " * 100, policy_data=policy)
    settle(talk, window=None, policy_data={"preset": "full"})
    newest, first = events(talk)
    written = "hybrid-tokens · Kept verbatim (% of usable tokens) 7 · Shorten first no"
    written += " · Turns kept verbatim 0"
    prompt = next(after for name, _, after in changes(first) if name == "system prompt")
    assert len(prompt) == timeline.EXCERPT
    assert changes(first) == [
        ("context window (tokens)", None, 1_024),
        ("system prompt", "Be brief.", prompt),
        ("policy", "hybrid", written),
    ]
    assert changes(newest) == [
        ("context window (tokens)", 1_024, None),
        ("policy", written, "full"),
    ]
    html = get(signed_in, talk.conversation, "panel_timeline")
    assert "<del>1,024</del> → <ins>–</ins>" in html
    assert "rule &lt;b&gt; rule" in html


def test_only_the_newest_events_and_requests_are_listed(
    signed_in: Client, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "LISTED", 3)
    for _ in range(2):
        talk.run("hi")
        talk.reset()
    assert "Older events" not in get(signed_in, talk.conversation, "panel_timeline")
    for _ in range(2):
        talk.run("hi")
        talk.reset()
    shown = timeline_tab(talk.fresh())
    assert [one["at"] for one in shown["events"]] == [9, 7, 5]
    assert [one["number"] for one in shown["account"]["rows"]] == [4, 3, 2]
    assert shown["account"]["requests"] == 4
    assert "Older events" in get(signed_in, talk.conversation, "panel_timeline")


# The page


def test_the_tab_takes_a_constant_number_of_queries(
    client: Client, user: Any, django_assert_max_num_queries: Any
) -> None:
    client.force_login(user)
    counts = []
    for turns in (3, 12):
        talk = Talk({"preset": "hybrid"})
        for _ in range(turns):
            talk.run("hi")
            talk.fold(1)
            talk.again()
            talk.reset()
            talk.undo()
        with django_assert_max_num_queries(30) as taken:
            get(client, talk.conversation, "panel_timeline")
        counts.append(len(taken))
    assert counts[0] == counts[1]


def test_an_address_shows_the_tab_in_the_page(signed_in: Client, talk: Talk) -> None:
    talk.run("hi")
    talk.run("hi")
    html = get(signed_in, talk.conversation, "conversation", tab="timeline")
    assert re.search(r'data-tab-link="timeline" aria-current="true"', html)
    assert 'data-tab="timeline"' in html
    assert html.count('<polyline class="') == 2
    page = reverse("conversation", args=[talk.conversation.pk])
    assert f'href="{page}?request=2"' in html


def test_the_conversation_of_somebody_else_has_no_timeline(
    client: Client, talk: Talk, other_user: Any
) -> None:
    client.force_login(other_user)
    assert client.get(reverse("panel_timeline", args=[talk.conversation.pk])).status_code == 404
