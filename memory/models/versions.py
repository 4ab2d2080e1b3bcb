"""What the memory made of a conversation: summary versions, and every change as an event."""

from collections.abc import Collection

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.core import carrying, literals
from memory.core.window import SummaryPart
from memory.models.transcript import Conversation


class Summary(models.Model):
    """One immutable version of a conversation's summary.

    It stands for the positions `first_position` to `last_position`. `undone` and `valid` are the
    only columns that change: by an undo, and when a message of its range is replaced or deleted.
    `literals` are rows of `memory.core.carrying` with the exact values that the text lost, of which
    the first `carried` stand in the window; `unsupported` are those that the text made up. `turn`
    is the last turn that had ended, `file` where the raw messages are kept.
    """

    class Kind(models.TextChoices):
        MODEL = "model", _("by the model")
        ARCHIVE = "archive", _("archive of the raw text")
        HUMAN = "human", _("edited by hand")

    conversation = models.ForeignKey(
        Conversation,
        verbose_name=_("conversation"),
        on_delete=models.CASCADE,
        related_name="summaries",
    )
    version = models.PositiveIntegerField(_("version"))
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices)
    text = models.TextField(_("text"))
    first_position = models.PositiveBigIntegerField(_("first message"))
    last_position = models.PositiveBigIntegerField(_("last message"))
    messages_folded = models.PositiveIntegerField(_("messages folded"))
    parent = models.ForeignKey(
        "self", null=True, blank=True, verbose_name=_("made from"), on_delete=models.SET_NULL
    )
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        verbose_name=_("author"),
        on_delete=models.SET_NULL,
    )
    tokens_before = models.PositiveIntegerField(_("tokens before"))
    tokens_after = models.PositiveIntegerField(_("tokens after"))
    model = models.CharField(_("model"), max_length=200, blank=True)
    prompt_version = models.CharField(_("prompt version"), max_length=40, blank=True)
    seconds = models.FloatField(_("seconds"), default=0)
    usage = models.JSONField(_("usage"), default=dict, blank=True)
    literals = models.JSONField(_("lost literals"), default=list, blank=True)
    carried = models.PositiveIntegerField(_("literals carried"), default=0)
    unsupported = models.JSONField(_("unsupported literals"), default=list, blank=True)
    turn = models.PositiveIntegerField(_("turn"), default=0)
    file = models.CharField(_("file"), max_length=200, blank=True)
    undone = models.BooleanField(_("undone"), default=False)
    valid = models.BooleanField(_("valid"), default=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        ordering = ["conversation", "-version"]
        verbose_name = _("summary version")
        verbose_name_plural = _("summary versions")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "version"], name="summary_version"),
        ]

    def __str__(self) -> str:
        return f"v{self.version}"

    def to_core(self) -> SummaryPart:
        """The version as the window needs it."""
        return SummaryPart(
            self.text,
            self.version,
            self.first_position,
            self.last_position,
            carrying.from_json(self.literals),
            self.carried,
            literals.from_json(self.unsupported),
            self.file,
            self.turn,
        )


class MemoryEvent(models.Model):
    """One change of the memory, or one that failed; append-only.

    `before` and `after` are the small state around it (active summary version, context start).
    An undo is an event too: it names the one it takes back in `undoes`.
    """

    class Kind(models.TextChoices):
        COMPACTION = "compaction", _("compaction")
        COMPACTION_FAILED = "compaction_failed", _("compaction failed")
        RESET = "reset", _("reset")
        EDIT = "edit", _("summary edited")
        RESTORE = "restore", _("summary restored")
        SETTINGS = "settings", _("settings changed")
        UNDO = "undo", _("undo")
        TURN_REPLACED = "turn_replaced", _("turn replaced")
        FORK = "fork", _("fork")

    conversation = models.ForeignKey(
        Conversation,
        verbose_name=_("conversation"),
        on_delete=models.CASCADE,
        related_name="memory_events",
    )
    kind = models.CharField(_("kind"), max_length=20, choices=Kind.choices)
    revision = models.PositiveIntegerField(_("revision"))
    before = models.JSONField(_("state before"), default=dict)
    after = models.JSONField(_("state after"), default=dict)
    detail = models.JSONField(_("detail"), default=dict)
    summary = models.ForeignKey(
        Summary, null=True, blank=True, verbose_name=_("summary"), on_delete=models.SET_NULL
    )
    undoes = models.OneToOneField(
        "self",
        null=True,
        blank=True,
        verbose_name=_("takes back"),
        on_delete=models.SET_NULL,
        related_name="undone_by",
    )
    at_position = models.PositiveBigIntegerField(_("before message"))
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        ordering = ["conversation", "id"]
        verbose_name = _("memory event")
        verbose_name_plural = _("memory events")

    UNDOABLE: Collection[str] = (Kind.COMPACTION, Kind.RESET, Kind.EDIT, Kind.RESTORE)

    def __str__(self) -> str:
        return f"{self.kind} at {self.at_position}"
