"""Pages and fragments: what the next request is, what was sent, and how much is shown."""

import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client
from django.urls import reverse

from memory import versions
from memory.models import Conversation
from tests.chatapp.helpers import fill, fold, get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db


def states(html: str) -> dict[int, str]:
    """The state of each shown message, by position."""
    found = {}
    for tag in re.findall(r"<article[^>]*data-position=[^>]*>", html):
        position = re.search(r'data-position="(\d+)"', tag)
        state = re.search(r'data-state="(\w+)"', tag)
        if position and state:
            found[int(position[1])] = state[1]
    return found


def test_a_page_shows_at_most_fifty_messages_and_older_ones_on_demand(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 65)
    newest = states(get(client, conversation, "conversation"))
    assert sorted(newest) == list(range(81, 131))
    older = states(get(client, conversation, "transcript", before=81))
    assert sorted(older) == list(range(31, 81))
    oldest = states(get(client, conversation, "transcript", before=31))
    assert sorted(oldest) == list(range(1, 31))


def test_the_transcript_says_what_the_model_can_see(
    client: Client, user: Any, make_conversation: Any
) -> None:
    client.force_login(user)
    conversation = make_conversation()
    fill(conversation, 6)
    versions.reset(conversation_id=conversation.pk)
    conversation.refresh_from_db()
    assert set(states(get(client, conversation, "transcript")).values()) == {"reset"}
    versions.undo(conversation_id=conversation.pk)
    fold(conversation, 6)
    shown = states(get(client, conversation, "transcript"))
    assert shown == dict.fromkeys(range(1, 7), "folded") | dict.fromkeys(range(7, 13), "window")
    windowed = make_conversation(policy={"preset": "window", "max_messages": 4})
    fill(windowed, 6)
    shown = states(get(client, windowed, "transcript"))
    assert shown == dict.fromkeys(range(1, 9), "outside") | dict.fromkeys(range(9, 13), "window")


def test_the_json_of_the_next_request_is_what_the_panel_shows(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    fill(conversation, 6)
    fold(conversation, 6)
    data = client.get(reverse("context_json", args=[conversation.pk])).json()
    assert [segment["kind"] for segment in data["segments"]] == ["system", "summary"] + ["tail"] * 6
    assert data["tokens"] == sum(segment["tokens"] for segment in data["segments"])
    for segment in data["segments"]:
        content = data["body"]["messages"][segment["message"]]["content"]
        assert content[segment["start"] : segment["end"]] == segment["text"]
    assert data["body"]["messages"][0]["role"] == "system"
    assert data["budget"] == {
        "window": 2048, "reply_reserve": 512, "calibration": 1.0, "usable": 1536
    }  # fmt: skip
    assert data["policy"]["preset"] == "hybrid"
    panel = get(client, conversation, "panel_context")
    for segment in data["segments"]:
        assert segment["text"].splitlines()[0][:20] in panel
    assert f"{data['tokens']:,}" in panel


def test_pages_of_a_long_conversation_take_a_constant_number_of_queries(
    client: Client, user: Any, make_conversation: Any, django_assert_max_num_queries: Any
) -> None:
    client.force_login(user)
    counts = {}
    for turns in (10, 400):
        conversation = make_conversation()
        fill(conversation, turns)
        fold(conversation, 2 * turns - 6)
        for name in ("conversation", "transcript", "panel_context", "context_json"):
            with django_assert_max_num_queries(30) as taken:
                get(client, conversation, name)
            counts.setdefault(name, set()).add(len(taken))
    assert all(len(number) == 1 for number in counts.values()), counts


def test_an_unknown_request_is_not_found(
    client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    assert client.get(reverse("request_json", args=[conversation.pk, 1])).status_code == 404
    panel = reverse("panel_context", args=[conversation.pk])
    assert client.get(panel, {"request": "7"}).status_code == 404
    assert client.get(panel, {"request": "x"}).status_code == 200


@pytest.mark.parametrize("title", ["<svg onload=1>", "  two \n lines ", "a\x00b"])
def test_a_title_is_one_clean_line_and_escaped(
    title: str, client: Client, user: Any, conversation: Conversation
) -> None:
    client.force_login(user)
    client.post(reverse("conversation_rename", args=[conversation.pk]), {"title": title})
    conversation.refresh_from_db()
    assert "\n" not in conversation.title
    assert "\x00" not in conversation.title
    assert "<svg onload" not in get(client, conversation, "conversation")


def test_a_search_for_nul_finds_nothing_and_does_not_fail(client: Client, user: Any) -> None:
    client.force_login(user)
    assert client.get(reverse("conversation_list") + "?q=%00").status_code == 200


def test_the_theme_is_in_the_page_before_the_first_paint(client: Client, user: Any) -> None:
    client.force_login(user)
    response = client.post(reverse("set_theme"), {"theme": "dark", "next": "//evil.example/"})
    assert response["Location"] == reverse("home")
    assert 'data-theme="dark"' in client.get(reverse("home")).content.decode()
    client.post(reverse("set_theme"), {"theme": "<x>", "next": "/"})
    assert 'data-theme="dark"' in client.get(reverse("home")).content.decode()


def test_a_message_that_fits_no_window_is_named_before_anything_is_sent(
    client: Client, user: Any, make_conversation: Any
) -> None:
    client.force_login(user)
    conversation = make_conversation(window=64, reply_reserve=16, system_prompt="word " * 100)
    data = client.get(reverse("context_json", args=[conversation.pk])).json()
    assert data["body"] is None
    assert "system prompt alone is too large" in data["error"]
    assert "system prompt alone is too large" in get(client, conversation, "panel_context")


def test_an_icon_is_there_for_pages_that_name_none(client: Client) -> None:
    response = client.get("/favicon.ico")
    assert response.status_code == 302
    assert response["Location"] == static("img/icon.svg")
    assert finders.find(response["Location"].removeprefix(static("")))


def test_a_conversation_that_no_longer_fits_shows_the_tokens_that_it_needs(
    client: Client, user: Any, make_conversation: Any
) -> None:
    client.force_login(user)
    conversation = make_conversation(policy={"preset": "full"}, window=128, reply_reserve=28)
    fill(conversation, 30)
    data = client.get(reverse("context_json", args=[conversation.pk])).json()
    needed = re.search(r"\((\d+) tokens, 100 are usable\)", data["error"])
    assert needed is not None
    assert data["tokens"] == int(needed[1]) > 100
    assert (data["segments"], data["tools_tokens"]) == ([], 0)
    panel = get(client, conversation, "panel_context")
    assert f'data-gauge="{needed[1]} / 100 tokens"' in panel
    assert f"<dd>{needed[1]} tokens</dd>" in panel
    assert 'class="bar-over"' in panel
    assert "Nothing has been sent yet" not in panel
    page = get(client, conversation, "conversation")
    assert f"<span data-gauge>{needed[1]} / 100 tokens</span>" in page
    other = get(client, make_conversation(), "panel_context")
    assert "bar-over" not in other


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ({"reply": None}, False),
        ({"reply": "So f"}, True),
        ({"reply": None, "results": ("a row",)}, True),
        ({"reply": None, "thoughts": "They ask"}, True),
    ],
)
def test_a_stopped_turn_says_that_something_is_kept_only_where_it_is(
    written: dict[str, Any], kept: bool, client: Client
) -> None:
    thoughts = written.pop("thoughts", "")
    talk = Talk({"preset": "hybrid"})
    client.force_login(talk.conversation.owner)
    talk.run("hi", **written)
    shown = {}
    for state in ("stopped", "interrupted"):
        talk.conversation.turns.update(state=state, thoughts=thoughts)
        shown[state] = get(client, talk.conversation, "transcript")
    assert "<strong>Stopped</strong>" in shown["stopped"]
    assert ("Stopped by you" in shown["stopped"]) == kept
    assert "Interrupted: the server was restarted." in shown["interrupted"]
    for html in shown.values():
        assert ("is kept" in html) == kept
        assert ('class="reason"' in html) == (kept or html is shown["interrupted"])


def test_the_list_counts_turns_without_replaced_ones_in_a_constant_number_of_queries(
    client: Client, django_assert_max_num_queries: Any
) -> None:
    def listed() -> str:
        return client.get(reverse("conversation_list")).text

    talk = Talk({"preset": "hybrid"})
    client.force_login(talk.conversation.owner)
    talk.run("hi")
    talk.run("hello")
    talk.again()
    with django_assert_max_num_queries(10) as one:
        assert "2 turns" in listed()
    for _ in range(3):
        Talk({"preset": "hybrid"}).run("hi")
    Talk({"preset": "hybrid"})
    with django_assert_max_num_queries(10) as several:
        assert [int(count) for count in re.findall(r"(\d+) turn", listed())] == [0, 1, 1, 1, 2]
    assert len(one) == len(several)
