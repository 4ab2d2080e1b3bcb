"""The only way from user input to a conversation."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404

from memory.models import Conversation


def conversations_of(user: Any) -> QuerySet[Conversation]:
    """The conversations that a user may see: their own, nobody else's, staff or not."""
    if not getattr(user, "is_authenticated", False):
        return Conversation.objects.none()
    return Conversation.objects.filter(owner=user)


def conversation_for(user: Any, conversation_id: UUID) -> Conversation:
    """The user's conversation; Http404 alike for an unknown one and for somebody else's."""
    conversation = conversations_of(user).filter(pk=conversation_id).first()
    if conversation is None:
        raise Http404
    return conversation
