"""What starts or stops turns and changes the memory. These views are async: they share the runner.

Turns are usually started over the socket; the forms here do the same for a page without scripts.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID, uuid4

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from chatapp import agent, frames, refund, runner
from chatapp.access import conversation_for
from chatapp.events import MemoryChanged, broadcast
from chatapp.provider import target_of
from chatapp.tools.shop import LEDGER
from chatapp.views import show_tab, tab_address, tab_named
from chatapp.words import edit_refused, nothing_folded, start_refused
from memory import service, store, versions
from memory.core.text import clean
from memory.fork import fork
from memory.models import Conversation, MemoryEvent

Changed = TypeVar("Changed")


async def _own(request: HttpRequest, conversation_id: UUID) -> Conversation:
    """The conversation, if it belongs to who asks. Raises Http404 otherwise."""
    user = await request.auser()
    found: Conversation = await database_sync_to_async(conversation_for)(user, conversation_id)
    return found


async def _of_conversation(change: Callable[..., Changed], **arguments: Any) -> Changed:
    """Make a change of the database that names a message or a version. Raises Http404 where the
    conversation has no such one."""
    try:
        changed: Changed = await database_sync_to_async(change)(**arguments)
    except ObjectDoesNotExist as error:
        raise Http404 from error
    return changed


async def _stop(found: Conversation, number: int | None = None) -> None:
    """Stop the running turn (only the one with this number, if given) and wait for its end."""
    running = await database_sync_to_async(store.running_turn)(conversation_id=found.pk)
    if running is not None and number in (None, running.number):
        await runner.get_runner().stop_and_wait(running)


@require_http_methods(["GET", "POST"])
async def conversation_delete(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Ask, then delete the conversation with everything that was stored of it."""
    found = await _own(request, conversation_id)
    if request.method == "GET":
        context = {"conversation": found}
        page: HttpResponse = await database_sync_to_async(render)(
            request, "chat/delete.html", context
        )
        return page
    await _stop(found)
    await database_sync_to_async(store.delete_conversation)(conversation_id=found.pk)
    return redirect("home")


@require_POST
async def demo_refund(request: HttpRequest, conversation_id: UUID | None = None) -> HttpResponse:
    """The refund demo plays itself: in the conversation that is shown if that is empty, else in a
    new one."""
    strategy = request.POST.get("strategy", "hybrid")
    if strategy not in refund.STRATEGIES:
        raise Http404
    if conversation_id is None:
        made = await database_sync_to_async(refund.new_conversation)(
            owner=await request.auser(), strategy=strategy
        )
    else:
        shown = await _own(request, conversation_id)
        made = await database_sync_to_async(refund.begin)(shown=shown, strategy=strategy)
    running = runner.get_runner()
    running.spawn(refund.play(running, made, refund.questions(get_language() or "en")))
    return redirect("conversation", made.pk)


# Turns: what the socket does, for a page without scripts


@require_POST
async def message_send(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    try:
        text = frames.message_text(request.POST.get("text"))
    except frames.BadFrame as error:
        return _refused(error)
    client_id = request.POST.get("id", "")[: frames.MAX_ID] or str(uuid4())
    return await _start(request, conversation_id, clean(client_id), text, None)


@require_POST
async def turn_retry(request: HttpRequest, conversation_id: UUID, number: int) -> HttpResponse:
    return await _start(request, conversation_id, str(uuid4()), None, number)


@require_POST
async def turn_edit(request: HttpRequest, conversation_id: UUID, number: int) -> HttpResponse:
    """Run the last turn again with another text."""
    try:
        text = frames.message_text(request.POST.get("text"))
    except frames.BadFrame as error:
        return _refused(error)
    return await _start(request, conversation_id, str(uuid4()), text, number)


def _refused(error: frames.BadFrame) -> HttpResponse:
    words = error.refusal.message
    return HttpResponse(words, status=400, content_type="text/plain; charset=utf-8")


async def _start(
    request: HttpRequest,
    conversation_id: UUID,
    client_id: str,
    text: str | None,
    replaces: int | None,
) -> HttpResponse:
    found = await _own(request, conversation_id)
    try:
        await runner.get_runner().start_turn(
            conversation_id=found.pk,
            model=found.model,
            client_id=client_id,
            text=text,
            replaces=replaces,
        )
    except (store.Busy, store.IdReused, store.NotLast) as error:
        words = start_refused(error)[1]
        return HttpResponse(words, status=409, content_type="text/plain; charset=utf-8")
    return redirect("conversation", found.pk)


@require_POST
async def turn_stop(request: HttpRequest, conversation_id: UUID, number: int) -> HttpResponse:
    found = await _own(request, conversation_id)
    await _stop(found, number)
    return redirect("conversation", found.pk)


# The memory


@require_POST
async def memory_reset(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Stop what is running and let the context start anew."""
    found = await _own(request, conversation_id)
    await _stop(found)
    try:
        event = await database_sync_to_async(service.reset)(conversation_id=found.pk)
    except versions.TurnRunning:
        words = _("The running turn could not be stopped; nothing was reset. Try again.")
        return HttpResponse(words, status=409, content_type="text/plain; charset=utf-8")
    note = (
        "" if event else _("There is nothing to reset: nothing was said since the context began.")
    )
    return await _changed(request, found, event, note=note)


@require_POST
async def memory_undo(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    found = await _own(request, conversation_id)
    event = await database_sync_to_async(service.undo)(conversation_id=found.pk)
    return await _changed(request, found, event)


@require_POST
async def memory_compact(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Fold now what the policy would fold later; say why where there is nothing to fold."""
    found = await _own(request, conversation_id)
    outcome = await agent.compact(
        found, runner.get_runner().provider, agent.inline_ladder(), force=True
    )
    note = nothing_folded(outcome, found.policy)
    return await _changed(request, found, outcome.event, note=note)


@require_POST
async def summary_edit(request: HttpRequest, conversation_id: UUID, version: int) -> HttpResponse:
    """Replace the active summary's text: a new version, the old one stays."""
    found = await _own(request, conversation_id)
    text = clean(request.POST.get("text", "")).replace("\r\n", "\n").strip()
    try:
        event = await _of_conversation(
            service.edit_summary,
            conversation_id=found.pk,
            version=version,
            text=text,
            author=await request.auser(),
            target=target_of(found),
        )
    except (ValueError, versions.Stale) as error:
        refused: HttpResponse = await database_sync_to_async(show_tab)(
            request, found, "summary", draft=text, error=edit_refused(error), status=422
        )
        return refused
    return await _changed(request, found, event, "summary")


@require_POST
async def summary_restore(
    request: HttpRequest, conversation_id: UUID, version: int
) -> HttpResponse:
    """Make an older version active again."""
    found = await _own(request, conversation_id)
    event = await _of_conversation(
        service.restore_summary,
        conversation_id=found.pk,
        version=version,
        author=await request.auser(),
    )
    return await _changed(request, found, event, "summary")


@require_POST
async def conversation_fork(
    request: HttpRequest, conversation_id: UUID, position: int
) -> HttpResponse:
    """Go on from a message in a new conversation."""
    found = await _own(request, conversation_id)
    title = _("%(title)s (fork)") % {"title": found.title}
    copy = await _of_conversation(
        _forked, conversation_id=found.pk, position=position, title=title[:200]
    )
    return redirect("conversation", copy.pk)


def _forked(*, conversation_id: UUID, position: int, title: str) -> Conversation:
    """The fork, whose shop knows what was done there so far."""
    copy = fork(conversation_id=conversation_id, position=position, title=title)
    told = "\n".join(copy.messages.values_list("content", flat=True))
    LEDGER.copy(conversation_id, copy.pk, told)
    return copy


async def _changed(
    request: HttpRequest,
    found: Conversation,
    event: MemoryEvent | None,
    tab: str = "",
    *,
    note: str = "",
) -> HttpResponse:
    """Tell every open page, and answer with the tab (htmx) or the page (a plain form).

    `note` is said beside the buttons.
    """
    if event is not None:
        changed = MemoryChanged(event.revision, event.kind)
        await broadcast(get_channel_layer(), found.pk, changed)
    tab = tab or tab_named(request.POST.get("tab"))
    if not request.htmx:  # type: ignore[attr-defined]
        if note:
            messages.info(request, note)
        return redirect(tab_address(found, tab))
    response: HttpResponse = await database_sync_to_async(show_tab)(request, found, tab, note=note)
    return response
