"""The admin: a look at what is stored, and the place to repair summaries.

No row is changed here: an edited text becomes a new version, as in the panel, and open pages of
that conversation hear of it. Everything else is read-only.
"""

from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chatapp.events import MemoryChanged, broadcast
from chatapp.forms import CleanText
from chatapp.provider import target_of
from chatapp.words import edit_refused, failure
from memory import service
from memory.core.diff import word_diff
from memory.models import Conversation, MemoryEvent, Message, Summary

TAGS = {"same": "span", "added": "ins", "removed": "del"}


def tell(event: MemoryEvent) -> None:
    """Let the open pages of the event's conversation know."""
    changed = MemoryChanged(event.revision, event.kind)
    async_to_sync(broadcast)(get_channel_layer(), event.conversation_id, changed)


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

    @admin.display(description=gettext_lazy("chat"))
    def chat(self, row: Any) -> SafeString:
        """A link to the conversation's page."""
        conversation = row if isinstance(row, Conversation) else row.conversation
        url = reverse("conversation", args=[conversation.pk])
        return format_html('<a href="{}">{}</a>', url, conversation)


@admin.register(Conversation)
class ConversationAdmin(ReadOnly):
    owner_path = "owner"
    list_display = ["title", "chat", "owner", "memory_revision", "context_start", "updated_at"]
    search_fields = ["title"]
    actions = ["undo_last_change"]

    @admin.action(description=gettext_lazy("Undo the last change of the memory"))
    def undo_last_change(self, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
        for conversation in rows:
            event = service.undo(conversation_id=conversation.pk)
            if event is None:
                words = _("%(title)s: there is nothing to undo.")
                self.message_user(request, words % {"title": conversation}, messages.WARNING)
                continue
            tell(event)
            words = _("%(title)s: undone.")
            self.message_user(request, words % {"title": conversation}, messages.SUCCESS)


@admin.register(Message)
class MessageAdmin(ReadOnly):
    list_display = ["position", "role", "start", "tokens", "encoding", "active", "chat"]
    list_filter = ["role", "active"]
    list_select_related = ["conversation"]
    search_fields = ["content"]

    @admin.display(description=gettext_lazy("text"))
    def start(self, row: Message) -> str:
        return row.content[:80]


class SummaryForm(forms.ModelForm):  # type: ignore[type-arg]
    """The one field of a version that can be edited, into a new version."""

    class Meta:
        model = Summary
        fields = ("text",)
        field_classes = {"text": CleanText}

    def clean_text(self) -> str:
        text = self.cleaned_data["text"].replace("\r\n", "\n").strip()
        conversation = self.instance.conversation
        target = target_of(conversation)
        try:
            service.check_summary(conversation=conversation, text=text, target=target)
        except ValueError as error:
            raise forms.ValidationError(edit_refused(error)) from error
        return str(text)


@admin.register(Summary)
class SummaryAdmin(ReadOnly):
    form = SummaryForm
    list_display = [
        "version", "chat", "state", "kind", "range", "tokens_before", "tokens_after", "ratio",
        "created_at",
    ]  # fmt: skip
    list_filter = ["kind", "undone", "valid"]
    list_select_related = ["conversation"]
    search_fields = ["text"]
    actions = ["activate"]
    readonly_fields = [
        "chat", "version", "state", "kind", "range", "sources", "difference", "failures",
        "tokens_before", "tokens_after", "ratio", "model", "author", "seconds", "created_at",
    ]  # fmt: skip
    fields = ["text", *readonly_fields]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Summary) -> str:
        if row == row.conversation.active_summary():
            return _("active")
        if row.undone:
            return _("undone")
        return _("older") if row.valid else _("invalid: a message of its range was replaced")

    @admin.display(description=gettext_lazy("messages"), ordering="first_position")
    def range(self, row: Summary) -> str:
        return f"{row.first_position}–{row.last_position}"

    @admin.display(description=gettext_lazy("ratio"))
    def ratio(self, row: Summary) -> str:
        return f"{row.tokens_after / row.tokens_before:.0%}" if row.tokens_before else "–"

    @admin.display(description=gettext_lazy("source messages"))
    def sources(self, row: Summary) -> SafeString:
        query = (
            f"?conversation__id__exact={row.conversation_id}"
            f"&position__gte={row.first_position}&position__lte={row.last_position}"
        )
        url = reverse("admin:memory_message_changelist") + query
        return format_html('<a href="{}">{}</a>', url, self.range(row))

    @admin.display(description=gettext_lazy("difference to its parent"))
    def difference(self, row: Summary) -> SafeString | str:
        if row.parent is None:
            return _("the first version")
        parts = word_diff(row.parent.text, row.text)
        marked = ((TAGS[part.change], part.text, TAGS[part.change]) for part in parts)
        return format_html_join("", "<{}>{}</{}>", marked)

    @admin.display(description=gettext_lazy("failed tries before it"))
    def failures(self, row: Summary) -> str:
        events = row.memoryevent_set.all()
        codes = [code for event in events for code in event.detail.get("failures", [])]
        return "; ".join(failure(code) for code in codes) or "–"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store an edited text as a new version; the row itself stays as it is."""
        if "text" not in form.changed_data:
            return
        event = service.edit_summary(
            conversation_id=obj.conversation_id,
            version=obj.version,
            text=form.cleaned_data["text"],
            author=request.user,
            target=target_of(obj.conversation),
            only_active=False,
        )
        tell(event)
        request.new_version = event.summary  # type: ignore[attr-defined]

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        made = getattr(request, "new_version", None)
        if made is None:
            return super().response_change(request, obj)
        words = _("Version v%(new)s was made of v%(old)s, which stays as it was.")
        words %= {"new": made.version, "old": obj.version}
        self.message_user(request, words, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:memory_summary_change", args=[made.pk]))

    @admin.action(description=gettext_lazy("Make the selected version active again"))
    def activate(self, request: HttpRequest, rows: QuerySet[Summary]) -> None:
        for row in rows.order_by("version"):
            try:
                event = service.restore_summary(
                    conversation_id=row.conversation_id, version=row.version, author=request.user
                )
            except Summary.DoesNotExist:
                words = _("%(version)s cannot come back: it lies before a reset or is invalid.")
                self.message_user(request, words % {"version": row}, messages.ERROR)
                continue
            tell(event)
            words = _("%(version)s is active again, as %(new)s.")
            words %= {"version": row, "new": event.summary}
            self.message_user(request, words, messages.SUCCESS)


@admin.register(MemoryEvent)
class MemoryEventAdmin(ReadOnly):
    list_display = ["kind", "revision", "chat", "at_position", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["conversation"]
