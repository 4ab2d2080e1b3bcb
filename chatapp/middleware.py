"""Headers of every response, and the answer where a conversation vanished meanwhile."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from django.utils.deprecation import MiddlewareMixin

from memory.models import Conversation

POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)

Respond = (
    Callable[[HttpRequest], HttpResponseBase] | Callable[[HttpRequest], Awaitable[HttpResponseBase]]
)


@sync_and_async_middleware
def content_security_policy(get_response: Respond) -> Respond:
    """Nothing runs or loads that the application itself did not serve; no inline code or style."""
    if iscoroutinefunction(get_response):

        async def respond_async(request: HttpRequest) -> HttpResponseBase:
            response: HttpResponseBase = await get_response(request)
            response.headers["Content-Security-Policy"] = POLICY
            return response

        return respond_async

    def respond(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers["Content-Security-Policy"] = POLICY  # type: ignore[union-attr]
        return response  # type: ignore[return-value]

    return respond


class DeletedMeanwhile(MiddlewareMixin):
    """A conversation that is deleted while a view reads or changes it is not found, as one that was
    deleted before."""

    # What rows that vanish raise: on reading, on writing, and on looking them up among others.
    RAISED = (ObjectDoesNotExist, DatabaseError, KeyError)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Raises Http404 where that is why the view failed."""
        match = request.resolver_match
        conversation_id = match.kwargs.get("conversation_id") if match else None
        if conversation_id is None or not isinstance(exception, self.RAISED):
            return
        if not Conversation.objects.filter(pk=conversation_id).exists():
            raise Http404 from exception
