"""Tools in the panel: the cards of a request that offers them, and the settings that do so."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memory import store
from memory.models import Conversation, MemoryEvent, Request, TurnState
from tests.chatapp.helpers import HTMX, get, save, values
from tests.chatapp.steps import COUNTER, asked, called, ended, result, said, texts_of
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _signed_in(client: Client, user: Any) -> None:
    client.force_login(user)


def card(html: str, label: str) -> str:
    """The card of the panel with this label."""
    start = html.index(f"<strong>{label}</strong>")
    return html[html.rindex("<li", 0, start) : html.index("</li>", start)]


def test_calls_and_results_have_cards_that_name_them(client: Client) -> None:
    talk = Talk({"preset": "full"}, tools=["shop"], window=8_000)
    ended(talk.conversation, called(("query", '{"a": 1}'), text="I look."), result("gone"))
    data = client.get(reverse("context_json", args=[talk.conversation.pk])).json()
    kinds = [one["kind"] for one in data["segments"]]
    assert kinds == ["system", "tools", "tail", "tail", "tail"]
    assert data["segments"][3]["tool_calls"] == [
        {"id": "c0", "name": "query", "arguments": '{"a": 1}'}
    ]
    assert [one["name"] for one in data["segments"]] == ["", "", "", "", "query"]
    html = get(client, talk.conversation, "panel_context")
    calls = texts_of(card(html, "Call of query"))
    assert calls.count('query({"a": 1})') == 2, "closed and opened"
    assert "I look." in calls
    assert 'href="#m-3"' in card(html, "Result of query")


def test_the_tools_have_a_card_that_counts_in_the_bar(client: Client) -> None:
    talk = Talk({"preset": "full"}, tools=["shop"], window=8_000)
    data = client.get(reverse("context_json", args=[talk.conversation.pk])).json()
    names = [one["function"]["name"] for one in data["body"]["tools"]]
    spoken = sum(one["tokens"] for one in data["segments"])
    assert data["tools_tokens"] == data["tokens"] - spoken > 0
    panel = client.get(reverse("panel_context", args=[talk.conversation.pk])).context["panel"]
    cards = panel["segments"]
    assert [one["label"] for one in cards][:3] == [
        "System prompt",
        "Note on the tools",
        f"{len(names)} tools",
    ]
    assert cards[2]["tokens"] == data["tools_tokens"]
    assert all(f'"name": "{name}"' in cards[2]["text"] for name in names)
    assert sum(one["tokens"] for one in cards) == panel["tokens"] == data["tokens"]
    places = [float(one["x"]) for one in cards]
    assert places == sorted(places)


def test_working_memory_is_shown_while_the_turn_runs_and_in_its_requests(client: Client) -> None:
    talk = Talk({"preset": "full"}, tools=["shop"], window=8_000)
    conversation = talk.conversation
    turn = asked(conversation, called(("query", "{}")))
    waits = card(get(client, conversation, "panel_context"), "Result of query")
    assert "made up: there is no result yet" in waits
    store.add_step(turn_id=turn.pk, step=1, written=[result("ok")], encoding=COUNTER.name)
    assert talk.step(turn)
    html = get(client, conversation, "panel_context")
    assert "working memory, until the turn ends" in card(html, "Result of query")
    assert 'class="segment working"' in html
    store.finish_turn(
        turn_id=turn.pk, state=TurnState.COMPLETE, reply=said("Done."), encoding=COUNTER.name
    )
    assert 'class="segment working"' not in get(client, conversation, "panel_context")
    assert 'class="segment working"' in get(client, conversation, "panel_context", request=1)


def test_what_the_provider_counted_is_shown_with_its_parts(client: Client) -> None:
    talk = Talk({"preset": "full"})
    talk.run("hi")
    usage = {"prompt_tokens": 1_234, "cached_tokens": 1_024}
    usage |= {"completion_tokens": 56, "reasoning_tokens": 40}
    Request.objects.update(usage=usage)
    said = texts_of(get(client, talk.conversation, "panel_context", request=1))
    assert "the provider counted 1,234, of which 1,024 from its cache" in said
    assert "and 56 of its answer, of which 40 thoughts" in said


# Settings


def test_tools_and_the_limits_of_a_turn_are_saved_and_in_force(
    client: Client, conversation: Conversation
) -> None:
    response = save(client, conversation, tools=["memory", "shop"], max_steps=3, turn_tokens=500)
    assert response.status_code == 200
    assert (conversation.tools, conversation.max_steps, conversation.turn_tokens) == (
        ["shop", "memory"],
        3,
        500,
    )
    event = MemoryEvent.objects.get()
    assert event.detail == {
        "tools": [[], ["shop", "memory"]],
        "max_steps": [None, 3],
        "turn_tokens": [None, 500],
    }
    data = client.get(reverse("context_json", args=[conversation.pk])).json()
    assert {"query_order", "search_memory"} <= {
        one["function"]["name"] for one in data["body"]["tools"]
    }
    assert 'title="The model may use: Demo shop' in response.text
    assert "Demo shop" in get(client, conversation, "panel_timeline")
    assert save(client, conversation).status_code == 200
    assert MemoryEvent.objects.count() == 1, "saved as it is, nothing changes"
    save(client, conversation, tools=[], max_steps=None)
    assert (conversation.tools, conversation.max_steps) == ([], None)
    assert "tools" not in client.get(reverse("context_json", args=[conversation.pk])).json()["body"]
    assert "The model may use" not in get(client, conversation, "panel_settings")


def test_the_limits_of_the_settings_stand_where_none_is_set(
    client: Client, conversation: Conversation, settings: Any
) -> None:
    settings.TURN_MAX_STEPS, settings.TURN_TOKENS = 7, 4_321
    html = get(client, conversation, "panel_settings")
    assert 'placeholder="7"' in html
    assert 'placeholder="4321"' in html


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tools", ["shop", "nonsense"], "nonsense is not one of the available choices"),
        ("max_steps", 0, "greater than or equal to 1"),
        ("max_steps", 101, "less than or equal to 100"),
        ("turn_tokens", 99, "greater than or equal to 100"),
    ],
)
def test_a_wrong_value_is_refused_at_its_field(
    field: str, value: Any, words: str, client: Client, conversation: Conversation
) -> None:
    before = Conversation.objects.values().get()
    url = reverse("panel_settings", args=[conversation.pk])
    response = client.post(url, values(conversation, **{field: value}), **HTMX)
    assert response.status_code == 422
    html = response.text
    error = html[html.index(f'id="id_settings-{field}_error"') :]
    assert words in error[: error.index("</p>")]
    control = html[html.index(f'data-setting="{field}"') :]
    assert f"id_settings-{field}_error" in control[: control.index('class="error"')]
    assert Conversation.objects.values().get() == before
