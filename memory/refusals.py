"""What a refusal teaches: a request that was held to fit was too long for the model."""

from dataclasses import dataclass

from django.db import transaction

from memory.core.budget import MIN_WINDOW, Budget, budget_for
from memory.core.calibration import refused_tokens
from memory.models import MemoryEvent, Request
from memory.rows import locked
from memory.versions import change_settings


@dataclass(frozen=True, slots=True)
class Learnt:
    """Whether the next request will be smaller for it, and the change of the settings, if any."""

    smaller: bool
    changed: MemoryEvent | None = None


@transaction.atomic
def learn_too_long(*, request_id: int, tokens: int | None, window: int | None) -> Learnt:
    """Let the next requests of this conversation be smaller than the refused one, where its length
    can be the reason.

    `tokens` is what the provider counted of it and `window` the model's window, both as it says,
    or None. A window that is smaller than the one that was used becomes the conversation's, which
    is a change of its settings; otherwise the request is remembered as measured.
    """
    request = Request.objects.select_related("conversation").get(pk=request_id)
    budget, measure = Budget(**request.budget), tokens
    if window is not None and MIN_WINDOW <= window < budget.window:
        own = budget_for(window).usable
        if (tokens or request.tokens * budget.calibration) <= own:
            return Learnt(smaller=False)
        changed = _shrink(request, window)
    else:
        own, changed = budget.window - budget.reply_reserve, None
        measure = refused_tokens(tokens, own, request.tokens, budget.calibration)
        if measure is None:
            return Learnt(smaller=False)
    if measure:
        request.usage |= {"refused_tokens": measure} | ({} if tokens else {"guessed": True})
        request.save(update_fields=["usage"])
    return Learnt(True, changed)


def _shrink(request: Request, window: int) -> MemoryEvent | None:
    """Set a smaller window, with its usual reserve where the reply's would not fit into it; None
    where the owner has set one meanwhile that is no larger."""
    conversation = locked(request.conversation_id)
    if conversation.window is not None and conversation.window <= window:
        return None
    changes: dict[str, int | None] = {"window": window}
    if conversation.reply_reserve is not None and conversation.reply_reserve > window // 2:
        changes["reply_reserve"] = None
    return change_settings(conversation_id=conversation.pk, changes=changes, trigger="provider")
