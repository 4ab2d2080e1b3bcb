"""The only way from user input to a conversation, and to an address to go back to."""

from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from memory.models import Conversation, Turn


def conversations_of(user: Any) -> QuerySet[Conversation]:
    """The conversations that a user may see: their own, nobody else's, staff or not."""
    if not getattr(user, "is_authenticated", False):
        return Conversation.objects.none()
    return Conversation.objects.filter(owner=user)


def with_turn_count(rows: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Conversations with the number of their turns, without replaced ones, as `turn_count`."""
    turns = Turn.objects.filter(conversation=OuterRef("pk"), active=True).order_by()
    counts = turns.values("conversation").annotate(turn_count=Count("pk")).values("turn_count")
    return rows.annotate(turn_count=Coalesce(Subquery(counts), 0))


def conversation_for(user: Any, conversation_id: UUID) -> Conversation:
    """The user's conversation; Http404 alike for an unknown one and for somebody else's."""
    conversation = conversations_of(user).filter(pk=conversation_id).first()
    if conversation is None:
        raise Http404
    return conversation


def own_address(request: HttpRequest, target: str) -> str:
    """`target` if it is an address of this site, else the first page's."""
    own = url_has_allowed_host_and_scheme(target, {request.get_host()}, request.is_secure())
    return target if own else reverse("home")
