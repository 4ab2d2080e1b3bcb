"""A conversation that is deleted while a request for it is answered."""

from typing import Any

import pytest
from django.test import Client

from chatapp import access, actions, views, wholes
from memory.models import Conversation
from tests.chatapp.test_access import OF_CONVERSATION, address

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {"title": "Mine", "text": "hello", "preset": "full", "system_prompt": "Be brief."}


@pytest.fixture
def deleted_once_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever finds the conversation is the last that does."""

    def found(user: Any, conversation_id: Any) -> Conversation:
        conversation = access.conversation_for(user, conversation_id)
        Conversation.objects.filter(pk=conversation_id).delete()
        return conversation

    for module in (views, actions, wholes):
        monkeypatch.setattr(module, "conversation_for", found)


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("name", OF_CONVERSATION)
def test_it_is_not_found(
    name: str,
    method: str,
    client: Client,
    user: Any,
    conversation: Conversation,
    runner: Any,
    deleted_once_found: None,
) -> None:
    client.force_login(user)
    request = getattr(client, method)
    response = request(address(name, conversation.pk), FORM, headers={"HX-Request": "true"})
    if name in ("conversation_delete", "turn_stop"):  # there is nothing left to do
        assert response.status_code in (200, 302, 405)
    else:
        assert response.status_code in (404, 405)


def test_a_fault_with_a_conversation_that_is_there_stays_one(
    client: Client, user: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(found: Conversation) -> None:
        raise Conversation.DoesNotExist

    monkeypatch.setattr(views, "_assemble", fail)
    client.force_login(user)
    with pytest.raises(Conversation.DoesNotExist):
        client.get(address("transcript", conversation.pk))
