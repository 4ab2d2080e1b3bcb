"""Numbers are written in one way, that of the language, in sentences as in the figures beside."""

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from chatapp import frames
from chatapp.parameters import in_words
from chatapp.words import turn_error
from memory.models import Conversation
from tests.chatapp.helpers import save

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """A page leaves its language behind; the next test does not find it."""
    with translation.override("en"):
        yield


WRITTEN = [("en", "5,376"), ("zh-hans", "5376")]


@pytest.mark.parametrize(("language", "number"), WRITTEN)
def test_a_trigger_has_the_same_number_in_the_figures_and_in_the_sentence(
    language: str, number: str, client: Client, conversation: Conversation
) -> None:
    client.force_login(conversation.owner)
    Conversation.objects.update(
        policy_data={"preset": "hybrid-tokens", "trigger_share": 0.75}, window=8_192
    )
    url = reverse("panel_context", args=[conversation.pk])
    html = client.get(url, headers={"accept-language": language}).text
    found = re.findall(r"\b5,?376(?= token|<| of)", html)
    assert len(found) > 1
    assert set(found) == {number}


@pytest.mark.parametrize(("language", "number"), WRITTEN)
def test_a_refusal_a_setting_and_an_error_have_numbers_of_the_language(
    language: str, number: str
) -> None:
    with translation.override(language):
        assert number in turn_error("window-message", "5376/100")
        assert number in in_words({"preset": "harness", "summary_cap": 5_376})
        with pytest.raises(frames.BadFrame) as raised:
            frames.message_text("x" * (frames.MAX_TEXT + 1))
    assert ("," in raised.value.refusal.message) == ("," in number)


@pytest.mark.parametrize(("language", "number"), WRITTEN)
def test_a_reply_reserve_that_is_too_large_names_the_most(
    language: str, number: str, client: Client, conversation: Conversation
) -> None:
    client.force_login(conversation.owner)
    client.cookies["django_language"] = language
    response = save(client, conversation, window=5_377, reply_reserve=9_000)
    assert number in response.text


def test_a_slash_in_the_words_of_a_server_is_no_size() -> None:
    assert turn_error("no-model", "org/model").endswith("(org/model)")
