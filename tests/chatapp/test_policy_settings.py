"""Every policy and each of its parameters in the Settings tab: shown, stored, refused."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from chatapp import parameters
from chatapp.forms import SettingsForm
from memory.core.presets import PARAMETERS, PRESETS, policy_from
from memory.models import Conversation
from tests.chatapp.helpers import HTMX, get, save, values

pytestmark = pytest.mark.django_db

# A value for each parameter that is no policy's own, as its field has it and as it is stored.
OTHER: dict[str, tuple[Any, Any]] = {
    "max_messages": (40, 40),
    "keep_messages": (5, 5),
    "max_turns": (9, 9),
    "fold_turns": (3, 3),
    "trigger_share": (57, 0.57),
    "trigger_tokens": (900, 900),
    "keep_share": (29, 0.29),
    "keep_turns": (0, 0),
    "keep_least": (0, 0),
    "keep_most": (9_000, 9_000),
    "summary_cap": (50, 50),
    "summary_ratio": (7, 0.07),
    "template": ("service", "service"),
    "every_turns": (1, 1),
    "when": ("after_reply", "after_reply"),
    "rungs": ("0", False),
    "offload": ("0", False),
}
EVERY = [(preset, name) for preset, names in PARAMETERS.items() for name in names]


@pytest.fixture(autouse=True)
def _signed_in(client: Client, user: Any) -> None:
    client.force_login(user)


@pytest.mark.parametrize("preset", PRESETS)
def test_each_policy_can_be_chosen_and_says_what_it_does(
    preset: str, client: Client, make_conversation: Any
) -> None:
    conversation = make_conversation(policy={"preset": "window" if preset == "full" else "full"})
    response = save(client, conversation, preset=preset)
    assert response.status_code == 200
    assert conversation.policy_data == {"preset": preset}
    assert conversation.policy == PRESETS[preset]
    html = response.text
    assert f'<option value="{preset}" selected>' in html
    assert str(parameters.PRESET_LABELS[preset]).replace("'", "&#x27;") in html
    says = re.search(r'id="policy-says">In force: ([^<]+)', html)
    assert says is not None
    assert says[1].endswith(".")
    assert "%(" not in says[1]


def test_each_parameter_is_marked_with_the_policies_that_have_it(
    client: Client, conversation: Conversation
) -> None:
    html = get(client, conversation, "panel_settings")
    marked = dict(
        re.findall(r'name="settings-(\w+)"[^>]*? data-presets="([^"]+)"', html, flags=re.DOTALL)
    )
    assert marked.keys() == parameters.FIELDS.keys()
    shown = {
        preset: tuple(sorted(name for name, having in marked.items() if preset in having.split()))
        for preset in PRESETS
    }
    assert shown == {preset: tuple(sorted(names)) for preset, names in PARAMETERS.items()}


def test_the_defaults_shown_are_those_of_the_chosen_policy(
    client: Client, make_conversation: Any
) -> None:
    conversation = make_conversation(policy={"preset": "harness"})
    form = SettingsForm(conversation)
    attrs = {name: form.fields[name].widget.attrs for name in PARAMETERS["harness"]}
    assert attrs["keep_most"]["placeholder"] == "8000"
    assert attrs["max_messages"]["placeholder"] == "50"
    assert attrs["every_turns"]["placeholder"] == ""
    assert attrs["summary_cap"]["data-default-hybrid"] == "500"
    assert attrs["summary_cap"]["data-default-harness"] == "1500"
    html = get(client, conversation, "panel_settings")
    for words in ("as the policy has it: yes", "as the policy has it: task: goal, decisions"):
        assert f'<option value="" selected>{words}' in html
    share = SettingsForm(make_conversation(policy={"preset": "consolidator"}))
    assert share.fields["summary_ratio"].widget.attrs["placeholder"] == "30"


@pytest.mark.parametrize(("preset", "name"), EVERY)
def test_a_parameter_is_stored_shown_again_and_taken_back(
    preset: str, name: str, client: Client, make_conversation: Any
) -> None:
    entered, stored = OTHER[name]
    conversation = make_conversation(policy={"preset": preset})
    response = save(client, conversation, **{name: entered})
    assert response.status_code == 200, response.context["form"].errors
    assert conversation.policy_data == {"preset": preset, name: stored}
    assert type(conversation.policy_data[name]) is type(stored)
    assert getattr(conversation.policy, name) == stored
    assert SettingsForm(conversation)[name].value() == entered
    # What the tab shows, sent as it is, changes nothing.
    revision = conversation.memory_revision
    save(client, conversation)
    assert conversation.memory_revision == revision
    save(client, conversation, **{name: ""})
    assert conversation.policy_data == {"preset": preset}
    # The policy's own value is not stored either.
    own = parameters.shown(PRESETS[preset], name)
    save(client, conversation, **{name: "" if own is None else own})
    assert conversation.policy_data == {"preset": preset}


def test_a_share_in_per_cent_comes_back_as_it_was_entered() -> None:
    for percent in range(1, 101):
        for preset, name in EVERY:
            if name in parameters.SHARES:
                policy = policy_from(parameters.policy_data(PRESETS[preset], {name: percent}, {}))
                assert parameters.shown(policy, name) == percent


def test_what_another_policy_would_have_is_not_stored(
    client: Client, conversation: Conversation
) -> None:
    save(client, conversation, preset="rounds", max_messages=7, keep_share=20, max_turns=8)
    assert conversation.policy_data == {"preset": "rounds", "max_turns": 8}


@pytest.mark.parametrize(
    ("preset", "changes", "field", "words"),
    [
        ("summary", {"max_messages": 3}, "max_messages", "At least 4."),
        ("summary", {"keep_messages": 10}, "keep_messages", "the most messages (10)"),
        ("summary", {"max_messages": 4}, "keep_messages", "the most messages (4)"),
        ("double-window", {"max_messages": 1}, "max_messages", "At least 2."),
        ("double-window", {"trigger_tokens": 99}, "trigger_tokens", "At least 100."),
        ("rounds", {"fold_turns": 5}, "fold_turns", "smaller than the most turns (5)"),
        ("rounds", {"max_turns": 2}, "fold_turns", "smaller than the most turns (2)"),
        ("rounds", {"max_turns": 1, "fold_turns": 1}, "max_turns", "At least 2."),
        ("rounds", {"fold_turns": 0}, "fold_turns", "greater than or equal to 1"),
        ("hybrid-tokens", {"keep_share": 0}, "keep_share", "greater than or equal to 1"),
        ("hybrid-tokens", {"keep_share": "35.5"}, "keep_share", "whole number"),
        ("hybrid-tokens", {"keep_turns": -1}, "keep_turns", "greater than or equal to 0"),
        ("hybrid-tokens", {"rungs": "maybe"}, "rungs", "not one of the available choices"),
        ("hybrid-tokens", {"every_turns": 0}, "every_turns", "greater than or equal to 1"),
        ("consolidator", {"summary_ratio": 101}, "summary_ratio", "less than or equal to 100"),
        ("consolidator", {"trigger_share": 0}, "trigger_share", "greater than or equal to 1"),
        ("consolidator", {"summary_cap": 49}, "summary_cap", "At least 50."),
        ("harness", {"max_messages": 2}, "max_messages", "At least 3."),
        ("harness", {"keep_least": 8_001}, "keep_least", "more than what is kept at most"),
        ("harness", {"keep_most": 1_999}, "keep_least", "more than what is kept at most"),
        ("harness", {"offload": "2"}, "offload", "not one of the available choices"),
        ("layered", {"template": "poem"}, "template", "not one of the available choices"),
        ("layered", {"summary_cap": 1_000_001}, "summary_cap", "less than or equal to 1000000"),
    ],
)
def test_a_wrong_parameter_is_explained_at_its_field(
    preset: str, changes: dict[str, Any], field: str, words: str,
    client: Client, make_conversation: Any,
) -> None:  # fmt: skip
    conversation = make_conversation(policy={"preset": preset})
    url = reverse("panel_settings", args=[conversation.pk])
    response = client.post(url, values(conversation, **changes), **HTMX)
    assert response.status_code == 422
    assert list(response.context["form"].errors) == [field]
    html = response.text
    error = html[html.index(f'id="id_settings-{field}_error"') :]
    assert words in error[: error.index("</p>")]
    conversation.refresh_from_db()
    assert conversation.policy_data == {"preset": preset}
    assert conversation.memory_revision == 0
