"""Steps in the transcript: rows of calls and results, pages, thoughts, the running turn."""

import re
from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory import store
from memory.models import Conversation, TurnState
from memory.rows import Partial
from tests.chatapp.helpers import fold, get
from tests.chatapp.steps import (
    COUNTER,
    asked,
    called,
    ended,
    positions,
    result,
    rows,
    rows_in,
    said,
    texts_of,
)

pytestmark = pytest.mark.django_db(transaction=True)

EVIL = '<script>alert("1")</script>'


@pytest.fixture(autouse=True)
def _signed_in(client: Client, user: Any) -> None:
    client.force_login(user)


# Rows


def test_a_step_is_its_words_and_a_row_for_each_call(
    client: Client, conversation: Conversation
) -> None:
    calls = called(("query", '{"order": "88231", "days": 3}'), ("ping", "{}"), text="I *look*.")
    results = [result('{"status": "shipped"}', seconds=0.21), result("pong", 1, seconds=0.001)]
    ended(conversation, calls, *results, reply=said("It is on its way."))
    html = get(client, conversation, "transcript")
    first, second = rows_in(html)
    assert (first["name"], first["short"]) == ("query", "order: 88231, days: 3")
    assert first["came"] == '→ {"status": "shipped"}'
    assert first["arguments"] == '{\n  "order": "88231",\n  "days": 3\n}'
    assert first["result"] == '{"status": "shipped"}'
    assert first["numbers"] == f"{results[0].message.tokens} tokens · 0.2 s"
    assert (first["kind"], first["state"], first["sight"]) == ("done", "done", "window")
    assert "short" not in second, "it has no arguments"
    assert second["numbers"] == f"{results[1].message.tokens} tokens", "it took no time"
    assert '<div class="thought markdown" dir="auto"><p>I <em>look</em>.</p>' in html
    assert positions(html) == [1, 2, 3, 4, 5]
    assert html.count("Fork from here") == 2, "at the question and at the reply"


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("failed", "failed", "failed"),
        ("timeout", "failed", "failed: no result in time"),
        ("empty", "nothing", "nothing found"),
        ("unknown-tool", "not-run", "not run: there is no such tool"),
        ("bad-arguments", "not-run", "not run: the arguments do not fit"),
        ("repeated", "not-run", "not run: the same call had failed"),
        ("cut-off", "not-run", "not run: the call was cut off"),
        ("too-many", "not-run", "not run: too many calls at once"),
        ("stopped", "interrupted", "no result: it was stopped"),
        ("of-tomorrow", "failed", "failed: of-tomorrow"),
    ],
)
def test_what_became_of_a_call_is_said_in_words(
    code: str, kind: str, words: str, client: Client, conversation: Conversation
) -> None:
    ended(conversation, called(("query", "{}")), result("No.", error=code))
    (row,) = rows(client, conversation)
    assert (row["kind"], row["state"]) == (kind, words)


def test_a_call_without_a_result_runs_while_its_turn_does(
    client: Client, conversation: Conversation
) -> None:
    turn = asked(conversation, called(("query", "{}"), ("ping", "{}")))
    assert [row["kind"] for row in rows(client, conversation)] == ["running", "running"]
    assert {row["sight"] for row in rows(client, conversation)} == {"working"}
    store.finish_turn(turn_id=turn.pk, state=TurnState.STOPPED, reply=None, encoding=COUNTER.name)
    after = rows(client, conversation)
    assert [row["state"] for row in after] == ["no result: it was interrupted"] * 2
    assert "result" not in after[0]


def test_results_stand_at_their_calls_whatever_their_order(
    client: Client, conversation: Conversation
) -> None:
    """Ids repeat from step to step; a result that answers no call is shown by itself."""
    calls = called(("first", "{}"), ("second", "{}"))
    ended(conversation, calls, result("two", 1), result("one", 0), result("nobody's", 7))
    ended(conversation, called(("third", "{}")), result("three"))
    html = get(client, conversation, "transcript")
    shown = [(row["name"], row["result"]) for row in rows_in(html)]
    assert shown == [("first", "one"), ("second", "two"), ("third", "three")]
    assert sorted(positions(html)) == list(range(1, 9))
    orphan = html[html.index('id="m-5"') :]
    assert "Tool result" in orphan[: orphan.index("</article>")]
    assert "nobody&#x27;s" in orphan[: orphan.index("</article>")]


def test_a_cut_result_says_so(client: Client, conversation: Conversation) -> None:
    ended(conversation, called(("dump", "{}")), result("rows", length=23_456))
    html = get(client, conversation, "transcript")
    assert "23,456 characters, cut to 4; the rest can be read" in html
    assert "whole.txt" not in html  # nothing of the rest was kept


def test_the_owner_can_open_all_of_a_cut_result(
    client: Client, conversation: Conversation, other_user: Any
) -> None:
    kept = f"{EVIL}\n" * 2_000
    row = replace(result("rows", length=len(kept)), whole=kept)
    ended(conversation, called(("dump", "{}")), row)
    url = reverse("message_whole", args=[conversation.pk, 3])
    assert f'href="{url}"' in get(client, conversation, "transcript")
    response = client.get(url)
    assert response.content.decode() == kept
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    for position in (1, 2, 9, 10**30):
        assert client.get(url.replace("/3/", f"/{position}/")).status_code == 404
    client.force_login(other_user)
    assert client.get(url).status_code == 404


@pytest.mark.parametrize(
    ("arguments", "short", "unfolded"),
    [
        ('{"order": ', '{"order":', '{"order": '),
        ("[1, 2]", "[1, 2]", "[\n  1,\n  2\n]"),
        ('{"a": {"b": [true]}}', 'a: {"b": [true]}', '{\n  "a": {\n    "b": [\n'),
        ('{"a": "\\ud800"}', "a: \ufffd", '{\n  "a": "\ufffd"\n}'),
        ("[" * 100_000, "[" * 119 + "…", "[" * 100_000),
        ('{"a": "' + "x" * 200 + '"}', "a: " + "x" * 116 + "…", '{\n  "a": "x'),
    ],
    ids=["broken", "list", "nested", "surrogate", "deep", "long"],
)
def test_arguments_are_shown_whatever_they_are(
    arguments: str, short: str, unfolded: str, client: Client, conversation: Conversation
) -> None:
    ended(conversation, called(("query", arguments)), result("ok"))
    (row,) = rows(client, conversation)
    assert row["short"] == short
    assert row["arguments"].startswith(unfolded)


def test_markup_in_names_arguments_results_and_thoughts_stays_text(
    client: Client, conversation: Conversation
) -> None:
    arguments = '{"what": "<script>alert(1)</script>"}'
    calls = called((EVIL, arguments), text=EVIL, reasoning=EVIL, reasoning_tokens=9)
    ended(conversation, calls, result(EVIL), reply=said(EVIL, reasoning=EVIL))
    for name in ("transcript", "panel_context"):
        assert "<script>alert" not in get(client, conversation, name)
    (row,) = rows(client, conversation)
    assert row["result"] == EVIL
    assert "<script>alert(1)</script>" in row["arguments"]


def test_a_folded_step_says_once_where_it_is(client: Client, conversation: Conversation) -> None:
    steps = [called(("query", "{}")), result("one"), called(("query", "{}")), result("two")]
    ended(conversation, *steps, reply=said("Done."))
    fold(conversation, 6)
    html = get(client, conversation, "transcript")
    assert {row["sight"] for row in rows_in(html)} == {"folded"}
    headers = re.findall(r'<article class="message step is-folded".*?</header>', html, re.DOTALL)
    assert ['class="unseen"' in header for header in headers] == [False, True]
    assert all("folded into v1" in header for header in headers)


def test_a_replaced_turn_keeps_its_rows(client: Client, conversation: Conversation) -> None:
    turn = ended(conversation, called(("query", "{}")), result("old"), reply=said("Old."))
    store.start_turn(
        conversation_id=conversation.pk, client_id="again", message=None, encoding=COUNTER.name,
        owner="", replaces=turn.number,
    )  # fmt: skip
    html = get(client, conversation, "transcript")
    (row,) = rows_in(html[html.index('class="replaced"') :])
    assert (row["result"], row["sight"], row["kind"]) == ("old", "outside", "done")


# Pages


def test_a_page_does_not_begin_between_a_call_and_its_results(
    client: Client, conversation: Conversation
) -> None:
    """The newest 50 of these 55 messages begin with the third result of the first step."""
    first = [called(*[("query", "{}")] * 5), *[result(f"r{at}", at) for at in range(5)]]
    others = [one for _ in range(24) for one in (called(("ping", "{}")), result("pong"))]
    ended(conversation, *first, *others)
    newest = client.get(reverse("transcript", args=[conversation.pk]))
    assert positions(newest.text) == list(range(8, 56))
    assert newest.context["transcript"]["older"] == 8
    older = get(client, conversation, "transcript", before=8)
    assert positions(older) == list(range(1, 8))
    assert [row["result"] for row in rows_in(older)] == ["r0", "r1", "r2", "r3", "r4"]


def test_results_that_fill_a_page_are_shown_without_their_call(
    client: Client, conversation: Conversation
) -> None:
    count = 60
    calls = called(*[("query", "{}")] * count)
    ended(conversation, calls, *[result(f"r{at}", at) for at in range(count)])
    newest = get(client, conversation, "transcript")
    assert positions(newest) == list(range(13, 63))
    assert rows_in(newest) == []
    older = rows(client, conversation, before=13)
    assert [row["kind"] for row in older] == ["done"] * 10 + ["below"] * 50
    assert older[-1]["state"] == "its result is further down"


def test_steps_take_no_further_queries(
    client: Client, make_conversation: Any, django_assert_max_num_queries: Any
) -> None:
    counts = set()
    for steps in (1, 15):
        conversation = make_conversation(policy={"preset": "full"}, window=100_000)
        for _ in range(steps):
            ended(conversation, called(("query", "{}")), result("one"), reply=said("Done."))
        with django_assert_max_num_queries(30) as taken:
            get(client, conversation, "transcript")
        counts.add(len(taken))
    assert len(counts) == 1


# Thoughts and the running turn


def test_thoughts_are_folded_and_counted(client: Client, conversation: Conversation) -> None:
    calls = called(("query", "{}"), reasoning="I need\n*it*.", reasoning_tokens=5)
    ended(conversation, calls, result("ok"), reply=said("Done.", reasoning="Good."))
    html = get(client, conversation, "transcript")
    thoughts = re.findall(r'<details class="thoughts".*?</details>', html, re.DOTALL)
    assert [texts_of(one) for one in thoughts] == [
        "Thoughts 5 tokens I need *it*.",
        "Thoughts Good.",
    ]
    assert "I need\n*it*." in thoughts[0]


def test_a_running_turn_shows_its_steps_and_what_it_writes_now(
    client: Client, conversation: Conversation
) -> None:
    turn = asked(conversation, called(("query", "{}"), text="I look."), result("ok"))
    store.save_partials(partials={turn.pk: Partial(1, "It is ")})
    html = get(client, conversation, "transcript")
    assert [row["kind"] for row in rows_in(html)] == ["done"]
    assert re.search(r'data-step="1" data-partial>It is <', html)
    assert 'data-state="working"' in html


def test_a_paused_turn_can_be_continued(client: Client, conversation: Conversation) -> None:
    steps = called(("query", "{}")), result("ok")
    ended(conversation, *steps, state=TurnState.LENGTH, code="max-steps")
    html = get(client, conversation, "transcript")
    assert "<strong>Paused</strong>" in html
    assert "Please continue." in html
    ended(conversation, reply=said("It"), state=TurnState.LENGTH)
    assert "<strong>Cut off</strong>" in get(client, conversation, "transcript")
