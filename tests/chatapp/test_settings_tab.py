"""The Settings tab: what is stored, and what is refused at which field."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from chatapp.forms import SettingsForm
from memory.models import Conversation, MemoryEvent
from tests.chatapp.helpers import HTMX, fill, save, values

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _signed_in(client: Client, user: Any) -> None:
    client.force_login(user)


def test_saving_without_a_change_changes_nothing(
    client: Client, conversation: Conversation
) -> None:
    response = save(client, conversation)
    assert response.status_code == 200
    assert "Saved." in response.text
    assert conversation.policy_data == {"preset": "hybrid"}
    assert conversation.memory_revision == 0
    assert not MemoryEvent.objects.exists()


def test_what_is_saved_is_what_the_next_request_becomes(
    client: Client, conversation: Conversation
) -> None:
    fill(conversation, 8)
    response = save(
        client,
        conversation,
        title="  Two \n words ",
        system_prompt="Be brief.\r\nBe kind.\x00",
        preset="window",
        max_messages=4,
        window=1024,
        reply_reserve=24,
    )
    assert response.status_code == 200
    assert conversation.title == "Two words"
    assert conversation.system_prompt == "Be brief.\nBe kind.\ufffd"
    assert conversation.policy_data == {"preset": "window", "max_messages": 4}
    event = MemoryEvent.objects.get()
    assert event.kind == "settings"
    assert event.detail["window"] == [None, 1024]
    data = client.get(reverse("context_json", args=[conversation.pk])).json()
    assert data["budget"]["usable"] == 1000
    assert len(data["body"]["messages"]) == 1 + 4
    said = " ".join(response.text.split())
    assert f"Next request: {data['tokens']} of 1,000 tokens, 4 messages" in said
    assert '<span class="tag" title="The last 4 messages are sent' in response.text


def test_a_parameter_equal_to_its_default_is_not_stored(
    client: Client, conversation: Conversation
) -> None:
    save(client, conversation, max_messages=12, keep_messages=4, trigger_share=75)
    assert conversation.policy_data == {"preset": "hybrid", "keep_messages": 4}
    form = SettingsForm(conversation)
    assert form["max_messages"].value() is None
    assert form["keep_messages"].value() == 4
    html = client.get(reverse("panel_settings", args=[conversation.pk])).text
    assert 'placeholder="12"' in html
    assert 'data-presets="window double-window summary hybrid harness"' in html
    save(client, conversation, preset="full")
    assert conversation.policy_data == {"preset": "full"}


def test_a_lower_trigger_keeps_its_target_below_it(
    client: Client, conversation: Conversation
) -> None:
    save(client, conversation, trigger_share=30)
    policy = conversation.policy
    assert policy.trigger_share == 0.3
    assert policy.target_share is not None
    assert 0 < policy.target_share < 0.3
    assert SettingsForm(conversation)["trigger_share"].value() == 30


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"keep_messages": 12}, "keep_messages", "Must be smaller than the most messages (12)"),
        ({"max_messages": 4, "keep_messages": 4}, "keep_messages", "most messages (4)"),
        ({"max_messages": 1}, "max_messages", "At least 3."),
        ({"preset": "window", "max_messages": 1}, "max_messages", "At least 2."),
        ({"keep_messages": 1}, "keep_messages", "At least 2."),
        ({"summary_cap": 10}, "summary_cap", "At least 50."),
        ({"trigger_share": 101}, "trigger_share", "less than or equal to 100"),
        ({"window": 63}, "window", "greater than or equal to 64"),
        ({"window": "many"}, "window", "whole number"),
        ({"window": 256, "reply_reserve": 256}, "reply_reserve", "at most 255"),
        ({"reply_reserve": 2048}, "reply_reserve", "at most 2,047"),
        ({"preset": "nonsense"}, "preset", "not one of the available choices"),
        ({"model": "nobody's"}, "model", "not one of the available choices"),
        ({"when": "never"}, "when", "not one of the available choices"),
        ({"title": "x" * 201}, "title", "at most 200 characters"),
        ({"system_prompt": "x" * 32_001}, "system_prompt", "at most 32000 characters"),
    ],
)
def test_a_wrong_value_is_explained_at_its_field_and_nothing_is_saved(
    changes: dict[str, Any], field: str, words: str, client: Client, conversation: Conversation
) -> None:
    before = Conversation.objects.values().get()
    url = reverse("panel_settings", args=[conversation.pk])
    response = client.post(url, values(conversation, **changes), **HTMX)
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [field]
    html = response.text
    error = html[html.index(f'id="id_settings-{field}_error"') :]
    assert words in error[: error.index("</p>")]
    control = html[html.index(f'name="settings-{field}"') :]
    control = control[: control.index(">")]
    assert 'aria-invalid="true"' in control
    assert f"id_settings-{field}_error" in control
    assert "Nothing was saved" in html
    assert Conversation.objects.values().get() == before


def test_without_scripts_the_whole_page_comes_back(
    client: Client, conversation: Conversation
) -> None:
    url = reverse("panel_settings", args=[conversation.pk])
    response = client.post(url, values(conversation, keep_messages=99))
    assert response.status_code == 422
    assert "<html" in response.text
    assert 'value="99"' in response.text
    response = client.post(url, values(conversation, keep_messages=5))
    assert response["Location"] == reverse("conversation", args=[conversation.pk]) + "?tab=settings"
    page = client.get(response["Location"]).text
    assert 'data-tab-link="settings" aria-current="true"' in page
    assert 'value="5"' in page


def test_a_prompt_that_leaves_no_room_is_said(client: Client, conversation: Conversation) -> None:
    response = save(client, conversation, system_prompt="word " * 100, window=64)
    assert response.status_code == 200
    assert "system prompt alone is too large" in response.text
