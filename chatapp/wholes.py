"""The uncut text of a tool's result: what the model got a part of, its owner can read whole."""

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from chatapp.access import conversation_for


@require_GET
def message_whole(request: HttpRequest, conversation_id: UUID, position: int) -> HttpResponse:
    """All that was kept of a result, as plain text. Raises Http404 where there is no more than the
    message itself has."""
    found = conversation_for(request.user, conversation_id)
    row = found.messages.filter(position=position).first()
    blob = found.blobs.filter(sha256=row.detail.get("whole", "")).first() if row else None
    if blob is None:
        raise Http404
    return HttpResponse(bytes(blob.data), content_type="text/plain; charset=utf-8")
