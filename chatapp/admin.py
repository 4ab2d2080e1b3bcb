"""The admin: a read-only look at what is stored, for repair and for checking.

Rows are written by the chat and by the memory; changing one here would break what it stands for.
"""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from memory.models import Conversation, MemoryEvent, Message, Summary


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Shows rows of one's own conversations (superusers: of all); changes none."""

    list_per_page = 50
    owner_path = "conversation__owner"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(**{self.owner_path: request.user})

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("chat"))
    def chat(self, row: Any) -> str:
        """A link to the conversation's page."""
        conversation = row if isinstance(row, Conversation) else row.conversation
        url = reverse("conversation", args=[conversation.pk])
        return format_html('<a href="{}">{}</a>', url, conversation)


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    owner_path = "owner"
    list_display = ["title", "chat", "owner", "memory_revision", "context_start", "updated_at"]
    search_fields = ["title"]


@admin.register(Message)
class MessageAdmin(ReadOnly):
    list_display = ["position", "role", "tokens", "encoding", "active", "chat", "created_at"]
    list_filter = ["role", "active"]
    list_select_related = ["conversation"]
    search_fields = ["content"]


@admin.register(Summary)
class SummaryAdmin(ReadOnly):
    list_display = [
        "version", "kind", "chat", "first_position", "last_position", "tokens_before",
        "tokens_after", "undone", "valid", "created_at",
    ]  # fmt: skip
    list_filter = ["kind", "undone", "valid"]
    list_select_related = ["conversation"]
    search_fields = ["text"]


@admin.register(MemoryEvent)
class MemoryEventAdmin(ReadOnly):
    list_display = ["kind", "revision", "chat", "at_position", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["conversation"]
