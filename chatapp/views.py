"""Pages and htmx fragments. Views that start or stop turns are async: they share the runner."""

from typing import Any
from uuid import UUID, uuid4

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chatapp import agent, frames, inspector, runner
from chatapp.access import conversation_for, conversations_of, own_address
from chatapp.context import THEME_COOKIE, THEMES
from chatapp.events import MemoryChanged, broadcast
from chatapp.provider import is_demo, target_for
from chatapp.transcript import transcript
from chatapp.words import policy_name, start_refused
from memory import service, store, versions
from memory.core.text import clean
from memory.models import Conversation, MemoryEvent, Message

# The most conversations that the list shows; the search finds the others.
LISTED = 100
TITLE = 200


# Pages


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The newest conversation, or the page that offers the first one."""
    newest = conversations_of(request.user).first()
    if newest is not None:
        return redirect("conversation", newest.pk)
    return render(request, "chat/page.html", _page(request, None))


@require_GET
def conversation(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The whole page of a conversation. Opening it ends a turn that its process left behind."""
    found = conversation_for(request.user, conversation_id)
    store.recover_conversation(conversation_id=found.pk)
    return render(request, "chat/page.html", _page(request, found))


def _number(request: HttpRequest, name: str) -> int | None:
    """A whole number of the query; None for none or for anything else."""
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 18 else None


def _hints() -> dict[str, Any]:
    """What an empty transcript offers."""
    return {
        "is_demo": is_demo(),
        "suggestions": [
            _("My name is Ada and I am learning agent development."),
            _("What is ReAct?"),
            _("What is my name, and what am I learning?"),
        ],
    }


def _page(request: HttpRequest, found: Conversation | None) -> dict[str, Any]:
    context: dict[str, Any] = {
        **_list(request),
        "conversation": found,
        **_hints(),
        "max_length": frames.MAX_TEXT,
    }
    model = target_for(found.model if found else "").model
    context["model_label"] = _("demo model (rule-based)") if is_demo() else model
    if found is not None:
        assembled = _assemble(found)
        number = _number(request, "request")
        shown = (
            inspector.shown_past(assembled.conversation, number)
            if number
            else inspector.shown_next(assembled.conversation, assembled)
        )
        context["conversation"] = assembled.conversation
        context["transcript"] = transcript(
            assembled, before=_number(request, "before"), live=_live(found)
        )
        context["panel"] = inspector.panel(shown)
    return context


def _assemble(found: Conversation) -> service.Assembled:
    return service.assemble(conversation_id=found.pk, target=target_for(found.model))


def _live(found: Conversation) -> str | None:
    running = store.running_turn(conversation_id=found.pk)
    return runner.get_runner().text_of(running.pk) if running else None


def _list(request: HttpRequest) -> dict[str, Any]:
    query = clean(request.GET.get("q", "")).strip()[:TITLE]
    rows = conversations_of(request.user)
    if query:
        said = Message.objects.filter(conversation=OuterRef("pk"), content__icontains=query)
        rows = rows.filter(Q(title__icontains=query) | Exists(said))
    listed = list(rows[:LISTED])
    for row in listed:
        row.policy_name = policy_name(row)  # type: ignore[attr-defined]
        row.turn_count = row.next_turn - 1  # type: ignore[attr-defined]
    return {"conversations": listed, "query": query}


# Fragments


@require_GET
def conversation_list(request: HttpRequest) -> HttpResponse:
    return render(request, "chat/_list.html", _list(request))


@require_GET
def transcript_fragment(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The newest page of the transcript, or the one before a position."""
    found = conversation_for(request.user, conversation_id)
    before = _number(request, "before")
    shown = transcript(_assemble(found), before=before, live=_live(found))
    context = {"transcript": shown, "conversation": found, **_hints()}
    return render(request, "chat/_transcript.html", context)


def _shown(request: HttpRequest, conversation_id: UUID, number: int | None) -> inspector.Shown:
    found = conversation_for(request.user, conversation_id)
    if number is not None:
        return inspector.shown_past(found, number)
    assembled = _assemble(found)
    return inspector.shown_next(assembled.conversation, assembled)


@require_GET
def panel_context(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The Context tab: the next request, or the one with the number `request`."""
    return _panel(request, _shown(request, conversation_id, _number(request, "request")))


def _panel(request: HttpRequest, shown: inspector.Shown) -> HttpResponse:
    context = {"panel": inspector.panel(shown), "conversation": shown.conversation}
    return render(request, "chat/_context.html", context)


@require_GET
def context_json(
    request: HttpRequest, conversation_id: UUID, number: int | None = None
) -> HttpResponse:
    """The next request, or one that was sent, as plain data."""
    data = inspector.as_json(_shown(request, conversation_id, number))
    return JsonResponse(data, json_dumps_params={"ensure_ascii": False, "indent": 2})


# Conversations


@require_POST
def conversation_new(request: HttpRequest) -> HttpResponse:
    created = store.create_conversation(
        owner=request.user,
        policy={"preset": settings.DEFAULT_POLICY},
        system_prompt=settings.DEFAULT_SYSTEM_PROMPT,
    )
    return redirect("conversation", created.pk)


@require_POST
def conversation_rename(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    found = conversation_for(request.user, conversation_id)
    title = " ".join(clean(request.POST.get("title", "")).split())[:TITLE]
    if title:
        found.title = title
        found.save(update_fields=["title"])
    return redirect("conversation", found.pk)


@require_http_methods(["GET", "POST"])
async def conversation_delete(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Ask, then delete the conversation with everything that was stored of it."""
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
    if request.method == "GET":
        context = {"conversation": found}
        page: HttpResponse = await database_sync_to_async(render)(
            request, "chat/delete.html", context
        )
        return page
    running = await database_sync_to_async(store.running_turn)(conversation_id=found.pk)
    if running is not None:
        await runner.get_runner().stop_and_wait(running)
    await found.adelete()
    return redirect("home")


# Turns: what the socket does, for a page without scripts


@require_POST
async def message_send(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    try:
        text = frames.message_text(request.POST.get("text"))
    except frames.BadFrame as error:
        return HttpResponse(error.refusal.message, status=400, content_type="text/plain")
    client_id = request.POST.get("id", "")[: frames.MAX_ID] or str(uuid4())
    return await _start(request, conversation_id, clean(client_id), text, None)


@require_POST
async def turn_retry(request: HttpRequest, conversation_id: UUID, number: int) -> HttpResponse:
    return await _start(request, conversation_id, str(uuid4()), None, number)


async def _start(
    request: HttpRequest,
    conversation_id: UUID,
    client_id: str,
    text: str | None,
    replaces: int | None,
) -> HttpResponse:
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
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
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
    running = await database_sync_to_async(store.running_turn)(conversation_id=found.pk)
    if running is not None and running.number == number:
        await runner.get_runner().stop_and_wait(running)
    return redirect("conversation", found.pk)


# The memory


@require_POST
async def memory_reset(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Stop what is running and let the context start anew."""
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
    running = await database_sync_to_async(store.running_turn)(conversation_id=found.pk)
    if running is not None:
        await runner.get_runner().stop_and_wait(running)
    try:
        event = await database_sync_to_async(service.reset)(conversation_id=found.pk)
    except versions.TurnRunning:
        words = _("The running turn could not be stopped; nothing was reset. Try again.")
        return HttpResponse(words, status=409, content_type="text/plain; charset=utf-8")
    return await _changed(request, found, event)


@require_POST
async def memory_undo(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
    event = await database_sync_to_async(service.undo)(conversation_id=found.pk)
    return await _changed(request, found, event)


@require_POST
async def memory_compact(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Fold now what the policy would fold later."""
    user = await request.auser()
    found = await database_sync_to_async(conversation_for)(user, conversation_id)
    outcome = await agent.compact(
        found, runner.get_runner().provider, agent.inline_ladder(), force=True
    )
    return await _changed(request, found, outcome.event)


async def _changed(
    request: HttpRequest, found: Conversation, event: MemoryEvent | None
) -> HttpResponse:
    """Tell every open page, and answer with the panel (htmx) or the page (a plain form)."""
    if event is not None:
        changed = MemoryChanged(event.revision, event.kind)
        await broadcast(get_channel_layer(), found.pk, changed)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("conversation", found.pk)

    def fragment() -> HttpResponse:
        return _panel(request, _shown(request, found.pk, None))

    response: HttpResponse = await database_sync_to_async(fragment)()
    return response


# Preferences


@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    theme = request.POST.get("theme", "auto")
    response = redirect(own_address(request, request.POST.get("next", "")))
    if theme in THEMES:
        year = 365 * 24 * 3600
        response.set_cookie(THEME_COOKIE, theme, max_age=year, samesite="Lax")
    return response
