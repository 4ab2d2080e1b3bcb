"""The right to compact a conversation: at most one has it, and it must give signs of life."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from memory.models import Conversation
from memory.rows import locked

# A compaction claim that was not renewed for so long belongs to a process that died.
EXPIRES = timedelta(seconds=60)
RENEWED = 15.0


def oldest() -> datetime:
    """Since when a claim must have given a sign of life to count."""
    return timezone.now() - EXPIRES


@transaction.atomic
def take(*, conversation_id: UUID, claim: UUID) -> bool:
    """Claim the right to compact; False if somebody has it. At most one per conversation."""
    conversation = locked(conversation_id)
    claimed = conversation.compaction_claimed_at
    if conversation.compaction_claim and claimed and claimed > oldest():
        return False
    conversation.compaction_claim = claim
    conversation.compaction_claimed_at = timezone.now()
    conversation.save(update_fields=["compaction_claim", "compaction_claimed_at"])
    return True


def renew(*, conversation_id: UUID, claim: UUID) -> None:
    """Give a sign of life of the compaction that holds the claim; every 15 seconds."""
    Conversation.objects.filter(pk=conversation_id, compaction_claim=claim).update(
        compaction_claimed_at=timezone.now()
    )


def release(*, conversation_id: UUID, claim: UUID) -> None:
    """Give the claim back, if it is still ours."""
    Conversation.objects.filter(pk=conversation_id, compaction_claim=claim).update(
        compaction_claim=None, compaction_claimed_at=None
    )
