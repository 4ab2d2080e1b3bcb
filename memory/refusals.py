"""What a refusal teaches: a request that was held to fit was too long for the model."""

from django.db import transaction

from memory.core.budget import MIN_WINDOW, Budget
from memory.core.calibration import refused_tokens
from memory.models import Conversation, MemoryEvent, Request
from memory.versions import change_settings


@transaction.atomic
def learn_too_long(
    *, request_id: int, tokens: int | None, window: int | None
) -> MemoryEvent | None:
    """Let the next requests of this conversation be smaller than the refused one.

    `tokens` is what the provider counted of it and `window` the model's window, both as it says,
    or None. A window that is smaller than the one that was used becomes the conversation's, which
    is a change of its settings, and returned; otherwise the request is remembered as measured.
    """
    request = Request.objects.select_related("conversation").get(pk=request_id)
    budget = Budget(**request.budget)
    changed = None
    if window is not None and MIN_WINDOW <= window < budget.window:
        measure = tokens
        changed = _shrink(request.conversation, window)
    else:
        own = budget.window - budget.reply_reserve
        measure = refused_tokens(tokens, own, request.tokens, budget.calibration)
    if measure:
        request.usage = {**request.usage, "refused_tokens": measure}
        request.save(update_fields=["usage"])
    return changed


def _shrink(conversation: Conversation, window: int) -> MemoryEvent | None:
    """Set a smaller window, with its usual reserve where the reply's would not fit into it."""
    changes: dict[str, int | None] = {"window": window}
    if conversation.reply_reserve is not None and conversation.reply_reserve > window // 2:
        changes["reply_reserve"] = None
    return change_settings(conversation_id=conversation.pk, changes=changes, trigger="provider")
