"""Conversations, their turns and messages."""

import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Optional

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.core.messages import Message as CoreMessage
from memory.core.messages import ToolCall
from memory.core.policy import Policy
from memory.core.presets import policy_from

if TYPE_CHECKING:
    from memory.models.versions import Summary

# A running turn without a heartbeat for this long was left by a process that died.
STALE_AFTER = timedelta(seconds=15)


class Conversation(models.Model):
    """One chat with its memory policy.

    `next_position` and `next_request` only grow, so numbers are never used twice. The context
    starts at `context_start`: messages before it are hidden from the model by a reset.
    `memory_revision` rises with every change of the memory; a compaction planned on an older one
    is not committed. `hold_turn` is the number of the turn at which automatic compaction resumes.
    `tools` are the names of the sets of tools that the model is offered, `max_steps` and
    `turn_tokens` the limits of one turn (None: the settings').
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        verbose_name=_("owner"),
        on_delete=models.CASCADE,
        related_name="conversations",
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    model = models.CharField(_("model"), max_length=200, blank=True)
    window = models.PositiveIntegerField(_("context window (tokens)"), null=True, blank=True)
    reply_reserve = models.PositiveIntegerField(_("reply reserve (tokens)"), null=True, blank=True)
    policy_data = models.JSONField(_("policy"), default=dict)
    tools = models.JSONField(_("tools"), default=list, blank=True)
    max_steps = models.PositiveSmallIntegerField(_("most steps of a turn"), null=True, blank=True)
    turn_tokens = models.PositiveIntegerField(
        _("most tokens of a turn's steps"), null=True, blank=True
    )
    next_position = models.PositiveBigIntegerField(_("next position"), default=1)
    next_request = models.PositiveIntegerField(_("next request number"), default=1)
    next_turn = models.PositiveIntegerField(_("next turn"), default=1)
    memory_revision = models.PositiveIntegerField(_("memory revision"), default=0)
    context_start = models.PositiveBigIntegerField(_("context starts at"), default=1)
    hold_turn = models.PositiveIntegerField(_("compaction waits until turn"), default=0)
    compaction_claim = models.UUIDField(_("compaction claimed by"), null=True, blank=True)
    compaction_claimed_at = models.DateTimeField(_("compaction claimed at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), default=timezone.now, db_index=True)

    class Meta:
        ordering = ["-updated_at"]
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")

    def __str__(self) -> str:
        return self.title or str(self.id)

    @property
    def policy(self) -> Policy:
        """The memory policy; ValueError if the stored data is not one."""
        return policy_from(self.policy_data)

    def active_summary(self) -> Optional["Summary"]:
        """The newest version that stands: not undone, still valid, begun after the last reset."""
        standing = self.summaries.filter(
            undone=False, valid=True, first_position__gte=self.context_start
        )
        return standing.order_by("-version").first()


class TurnState(models.TextChoices):
    RUNNING = "running", _("running")
    COMPLETE = "complete", _("complete")
    STOPPED = "stopped", _("stopped")
    LENGTH = "length", _("cut by length")
    FILTERED = "filtered", _("filtered")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")


class Turn(models.Model):
    """One user message and all that follows until the next one.

    While it runs, `partial` is what its step `step` (from 0) has written so far and `thoughts` what
    the model thought before it (saved at least once a second), `owner` the channel of the process
    that runs it and `heartbeat_at` its sign of life. `thoughts` stay where no reply came of them.
    `active` is false once another turn replaces it.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    client_id = models.CharField(max_length=64)
    state = models.CharField(
        max_length=12, choices=TurnState.choices, default=TurnState.RUNNING, db_index=True
    )
    replaces = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="replaced_by"
    )
    active = models.BooleanField(default=True)
    partial = models.TextField(blank=True)
    thoughts = models.TextField(blank=True)
    step = models.PositiveSmallIntegerField(default=0)
    owner = models.CharField(max_length=200, blank=True)
    heartbeat_at = models.DateTimeField(default=timezone.now)
    stop_requested = models.BooleanField(default=False)
    error_code = models.CharField(max_length=40, blank=True)
    error_detail = models.TextField(blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["conversation", "number"]
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="turn_number"),
            models.UniqueConstraint(fields=["conversation", "client_id"], name="turn_client_id"),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=models.Q(state="running"),
                name="one_running_turn",
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.number}"

    @property
    def is_running(self) -> bool:
        return self.state == TurnState.RUNNING

    @property
    def is_stale(self) -> bool:
        """Whether it still says running although its process gave no sign of life for 15 s."""
        return self.is_running and self.heartbeat_at < timezone.now() - STALE_AFTER


class Message(models.Model):
    """One message of the transcript. `tokens` was counted once, with `encoding`.

    `counts` says whether S0's rules count it: a user message or a reply without tool calls.
    `reasoning` are the model's thoughts before it (`reasoning_tokens` of them), no part of what it
    says. `detail` is what else is known of a tool's result: "error" (a code), "seconds", "length"
    (characters, where it was cut) and "whole" (the key of the blob with the uncut text).
    """

    class Role(models.TextChoices):
        USER = "user", _("user")
        ASSISTANT = "assistant", _("assistant")
        TOOL = "tool", _("tool")

    conversation = models.ForeignKey(
        Conversation,
        verbose_name=_("conversation"),
        on_delete=models.CASCADE,
        related_name="messages",
    )
    turn = models.ForeignKey(
        Turn, verbose_name=_("turn"), on_delete=models.CASCADE, related_name="messages"
    )
    position = models.PositiveBigIntegerField(_("position"))
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    content = models.TextField(_("content"), blank=True)
    tool_calls = models.JSONField(_("tool calls"), default=list, blank=True)
    tool_call_id = models.CharField(_("tool call id"), max_length=200, blank=True)
    name = models.CharField(_("name"), max_length=200, blank=True)
    reasoning = models.TextField(_("thoughts"), blank=True)
    reasoning_tokens = models.PositiveIntegerField(_("thoughts (tokens)"), default=0)
    detail = models.JSONField(_("detail"), default=dict, blank=True)
    tokens = models.PositiveIntegerField(_("tokens"))
    encoding = models.CharField(_("encoding"), max_length=40)
    counts = models.BooleanField(_("counts as a message"))
    active = models.BooleanField(_("active"), default=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now)

    class Meta:
        ordering = ["conversation", "position"]
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "position"], name="message_position"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.position}"

    def to_core(self, turn: int, *, reasoning: bool = False) -> CoreMessage:
        """The message as a value of the core; `turn` is the number of its turn, `reasoning` whether
        its thoughts are part of it."""
        return CoreMessage(
            role=self.role,  # type: ignore[arg-type]
            content=self.content,
            position=self.position,
            turn=turn,
            tokens=self.tokens + (self.reasoning_tokens if reasoning else 0),
            tool_calls=tuple(ToolCall(**call) for call in self.tool_calls),
            tool_call_id=self.tool_call_id,
            name=self.name,
            reasoning=self.reasoning if reasoning else "",
        )
