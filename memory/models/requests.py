"""What was sent: requests and the bytes they are rebuilt from."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from memory.models.transcript import Conversation, Turn

# A number that lies above is no count of tokens.
MOST_TOKENS = 2**31


class Blob(models.Model):
    """Bytes that requests refer to by their SHA-256; each stored once per conversation."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="blobs")
    sha256 = models.CharField(max_length=64)
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "sha256"], name="blob_content"),
        ]

    def __str__(self) -> str:
        return self.sha256[:12]


class Request(models.Model):
    """One call of the provider: the snapshot from which what was sent can be rebuilt.

    `parts` are the segments in order (see `memory.snapshots`), `options` the blob with everything
    of the body except the messages, `model` the name in it, `wire` the provider's habits that shape
    the messages (a `memory.core.wire.Habits`). `sha256` is the hash of the body that left the
    process; empty until it did. `usage` is what the provider reported, in tokens, and in
    "refused_tokens" what a request comes to that it refused as too long ("guessed": it gave no
    number).
    """

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="requests"
    )
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="requests")
    number = models.PositiveIntegerField()
    parts = models.JSONField()
    left_out = models.JSONField(default=list)
    options = models.CharField(max_length=64)
    tokens = models.PositiveIntegerField()
    encoding = models.CharField(max_length=40)
    model = models.CharField(max_length=200, blank=True)
    budget = models.JSONField()
    policy = models.JSONField()
    shape = models.CharField(max_length=10, default="merged")
    wire = models.JSONField(default=dict, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["conversation", "number"]
        verbose_name = _("request")
        verbose_name_plural = _("requests")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="request_number"),
        ]

    def __str__(self) -> str:
        return f"request {self.number}"


def usage_tokens(usage: dict[str, Any]) -> int | None:
    """The prompt tokens that the provider reported, or None where it reported no number."""
    value = usage.get("prompt_tokens")
    return value if isinstance(value, int) and 0 < value < MOST_TOKENS else None
