"""The Timeline tab: every change of the memory with its reason, and what the requests cost."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from chatapp import timeline
from chatapp.timeline import account, curve, timeline_tab
from memory import service, snapshots, versions
from memory.fork import fork
from tests.chatapp.helpers import get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db

# What "Be brief.", "hi" and "ok" cost, in tokens: five for a message, and its text.
SYSTEM, USER, REPLY = 5 + 3, 5 + 1, 5 + 1
ASKED = {"prompt_tokens": 70, "completion_tokens": 11}


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
    assert (event["before"], event["after"], event["carried"]) == (1_240, 112, 2)
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


# The account


def test_the_sums_are_those_of_the_stored_requests_and_summaries(talk: Talk) -> None:
    for number in range(4):
        talk.run("hi " * (number + 1))
    usages: list[dict[str, int]]
    usages = [{"prompt_tokens": 30, "completion_tokens": 4}, {}, {"prompt_tokens": 0}, ASKED]
    for (request, _), usage in zip(talk.sent, usages, strict=True):
        snapshots.record_usage(request_id=request.pk, usage=usage)
    talk.fold(1, model="m", usage=ASKED)
    talk.fold(1, kind="archive", usage={"prompt_tokens": 5}, failures=("refusal",))
    talk.undo()  # it was paid for all the same
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=1, author=talk.conversation.owner
    )
    shown = account(talk.fresh())
    stored = [request.tokens for request, _ in talk.sent]
    assert [one["tokens"] for one in shown["rows"]] == stored[::-1]
    assert [one["provider"] for one in shown["rows"]] == [70, None, None, 30]
    assert [one["reply"] for one in shown["rows"]] == [11, None, None, 4]
    assert shown["sent"] == sum(stored)
    assert shown["replies"] == 15
    assert shown["summaries"] == {"count": 2, "input": 75, "output": 11}
    assert shown["actual"] == sum(stored) + 75 + 11


def test_everything_is_what_the_whole_context_since_the_reset_would_have_cost() -> None:
    talk = Talk({"preset": "window", "max_messages": 2})
    for _ in range(3):
        talk.run("hi")
    talk.reset()
    talk.run("hi")
    shown = account(talk.fresh())
    turn = USER + REPLY
    whole = [SYSTEM + USER, SYSTEM + turn + USER, SYSTEM + 2 * turn + USER, SYSTEM + USER]
    assert whole == [14, 26, 38, 14]
    assert [one["everything"] for one in shown["rows"]] == whole[::-1]
    # The third request left two messages out.
    assert [one["tokens"] for one in shown["rows"]] == [14, 26, 26, 14]
    assert (shown["sent"], shown["everything"]) == (80, 92)
    assert shown["saved"] == 13  # 12 of 92


def test_a_policy_that_sends_everything_saves_exactly_nothing() -> None:
    talk = Talk({"preset": "full"})
    talk.run("hi")
    talk.run("hi", results=("sun", "rain"))
    talk.again()
    talk.again()
    talk.reset()
    talk.run("hi", reply=None)
    talk.run("hi")
    talk.undo()
    talk.run("hi")
    shown = account(talk.fresh())
    assert [one["everything"] for one in shown["rows"]] == [one["tokens"] for one in shown["rows"]]
    assert (shown["requests"], shown["saved"]) == (8, 0)


def test_in_a_fork_the_context_starts_where_it_did_in_the_original() -> None:
    talk = Talk({"preset": "full"})
    talk.run("hi")
    talk.reset()
    talk.run("hi")
    copy = Talk({"preset": "full"})
    copy.conversation = fork(conversation_id=talk.conversation.pk, position=4, title="copy")
    copy.turns = 2
    copy.run("hi")
    (row,) = account(copy.fresh())["rows"]
    assert row["everything"] == row["tokens"] == SYSTEM + USER + REPLY + USER


def test_more_was_spent_than_everything_is_said_as_it_is() -> None:
    talk = Talk({"preset": "hybrid"})
    talk.run("hi")
    talk.run("hi")
    talk.fold(1, usage={"prompt_tokens": 30, "completion_tokens": 10})
    shown = account(talk.fresh())
    assert (shown["everything"], shown["actual"], shown["saved"]) == (40, 80, -100)


def test_the_curve_runs_from_the_first_request_to_the_last() -> None:
    assert curve([5], [5]) is None
    drawn = curve([100, 150, 260], [100, 300, 520])
    assert drawn is not None
    # The width is 1000, the height 260 for 520 tokens; zero is at the bottom.
    assert drawn["actual"] == "0.0,210.0 500.0,185.0 1000.0,130.0"
    assert drawn["everything"] == "0.0,210.0 500.0,110.0 1000.0,0.0"
    assert drawn["top"] == 520


@pytest.mark.parametrize("requests", [2, 3, 200, 201, 202, 399, 400, 401, 5_000])
def test_a_long_curve_has_no_more_points_than_can_be_seen(requests: int) -> None:
    drawn = curve(list(range(1, requests + 1)), list(range(1, requests + 1)))
    assert drawn is not None
    points = [tuple(map(float, one.split(","))) for one in drawn["actual"].split(" ")]
    assert 2 <= len(points) <= timeline.POINTS + 1
    assert points[0][0] == 0
    assert points[-1] == (timeline.WIDE, 0)
    assert points == sorted(points)


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
