"""Pages and htmx fragments. Views that start or stop turns are async: they share the runner."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chatapp import frames, inspector, runner
from chatapp.access import conversation_for, conversations_of, own_address, with_turn_count
from chatapp.context import THEME_COOKIE, THEMES
from chatapp.events import MemoryChanged, TitleChanged, broadcast
from chatapp.forms import SettingsForm
from chatapp.policy_words import policy_text
from chatapp.provider import is_demo, target_for, target_of
from chatapp.summaries import summary_tab
from chatapp.timeline import timeline_tab
from chatapp.transcript import transcript
from chatapp.words import policy_name
from memory import service, store, versions
from memory.core.text import clean
from memory.models import Conversation, Message
from memory.rows import Partial

# The most conversations that the list shows; the search finds the others.
LISTED = 100
TITLE = 200
# The tabs of the panel; the first one is shown where the address names none.
TABS = ("context", "summary", "timeline", "settings")


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
    store.recover_conversation(conversation_id=found.pk, alive=runner.get_runner().alive())
    tab = tab_named(request.GET.get("tab"))
    of_tab = {"summary": _opened, "timeline": _compared}.get(tab)
    opened = of_tab(request) if of_tab else {}
    return render(request, "chat/page.html", _page(request, found, tab, **opened))


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


def _page(
    request: HttpRequest, found: Conversation | None, tab: str = TABS[0], **more: Any
) -> dict[str, Any]:
    context: dict[str, Any] = {
        **_list(request),
        "conversation": None,
        **_hints(),
        "max_length": frames.MAX_TEXT,
    }
    if found is not None:
        assembled = _assemble(found)
        number = _number(request, "request") if tab == TABS[0] else None
        shown = (
            inspector.shown_past(assembled.conversation, number)
            if number
            else inspector.shown_next(assembled.conversation, assembled)
        )
        context["transcript"] = transcript(
            assembled, before=_number(request, "before"), live=_live(found)
        )
        context |= _tab(shown, tab, **more)
    return context


def _assemble(found: Conversation) -> service.Assembled:
    return service.assemble(conversation_id=found.pk, target=target_of(found))


def _live(found: Conversation) -> Partial | None:
    """What the running step has written, where this process runs the turn."""
    running = store.running_turn(conversation_id=found.pk)
    return runner.get_runner().partial_of(running.pk) if running else None


def _list(request: HttpRequest) -> dict[str, Any]:
    query = clean(request.GET.get("q", "")).strip()[:TITLE]
    rows = conversations_of(request.user)
    if query:
        said = Message.objects.filter(conversation=OuterRef("pk"), content__icontains=query)
        rows = rows.filter(Q(title__icontains=query) | Exists(said))
    listed = list(with_turn_count(rows)[:LISTED])
    for row in listed:
        row.policy_name = policy_name(row)  # type: ignore[attr-defined]
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


def _shown(found: Conversation, number: int | None) -> inspector.Shown:
    if number is not None:
        return inspector.shown_past(found, number)
    assembled = _assemble(found)
    return inspector.shown_next(assembled.conversation, assembled)


# The panel's tabs: fragments for htmx; an address with ?tab= shows the same in the page


def tab_named(name: str | None) -> str:
    return name if name in TABS else TABS[0]


def tab_address(found: Conversation, tab: str) -> str:
    """The address of the page with this tab in its panel."""
    page = reverse("conversation", args=[found.pk])
    return page if tab == TABS[0] else f"{page}?tab={tab}"


def _tab(shown: inspector.Shown, tab: str, **more: Any) -> dict[str, Any]:
    """What a tab shows: the panel of a request, and what its own template needs besides."""
    found = shown.conversation
    demo = _("demo model (rule-based)") if is_demo() else ""
    context: dict[str, Any] = {
        "tab": tab,
        "tab_template": f"chat/_{tab}.html",
        "conversation": found,
        "panel": inspector.panel(shown),
        "is_demo": is_demo(),
        "model_label": demo or target_for(found.model).model,
        "policy_name": policy_name(found),
        "policy_text": policy_text(found.policy, service.budget_of(found, target_of(found))),
    }
    segments = context["panel"]["segments"]
    context["message_count"] = sum(1 for one in segments if one["position"])
    if tab == "summary":
        return context | {"summary": summary_tab(found, **more)}
    if tab == "timeline":
        return context | {"timeline": timeline_tab(found, **more)}
    if tab == "settings":
        return context | {"form": SettingsForm(found), "saved": False} | more
    return context


def show_tab(
    request: HttpRequest,
    found: Conversation,
    tab: str,
    *,
    number: int | None = None,
    status: int = 200,
    note: str = "",
    **more: Any,
) -> HttpResponse:
    """A tab as a fragment, with a `note` to say; to a refused plain form, the whole page."""
    if request.method == "POST" and not request.htmx:  # type: ignore[attr-defined]
        return render(request, "chat/page.html", _page(request, found, tab, **more), status=status)
    context = _tab(_shown(found, number), tab, **more) | {"note": note}
    return render(request, "chat/_tab.html", context, status=status)


@require_GET
def panel_context(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The Context tab: the next request, or the one with the number `request`."""
    found = conversation_for(request.user, conversation_id)
    return show_tab(request, found, "context", number=_number(request, "request"))


def _opened(request: HttpRequest) -> dict[str, Any]:
    return {name: _number(request, name) for name in ("version", "against")}


def _compared(request: HttpRequest) -> dict[str, Any]:
    return {"compare": "compare" in request.GET}


@require_GET
def panel_summary(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The Summary tab, with one version opened and compared."""
    found = conversation_for(request.user, conversation_id)
    return show_tab(request, found, "summary", **_opened(request))


@require_GET
def panel_timeline(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The Timeline tab: what happened to the memory, and what the requests cost."""
    found = conversation_for(request.user, conversation_id)
    return show_tab(request, found, "timeline", **_compared(request))


@require_http_methods(["GET", "POST"])
def panel_settings(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """The Settings tab: change what the next request becomes, or see at which field not."""
    found = conversation_for(request.user, conversation_id)
    if request.method == "GET":
        return show_tab(request, found, "settings")
    form = SettingsForm(found, request.POST)
    if not form.is_valid():
        return show_tab(request, found, "settings", form=form, status=422)
    event = versions.change_settings(conversation_id=found.pk, changes=form.changes())
    if event is not None:
        changed = MemoryChanged(event.revision, event.kind)
        async_to_sync(broadcast)(get_channel_layer(), found.pk, changed)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect(tab_address(found, "settings"))
    found.refresh_from_db()
    return show_tab(request, found, "settings", saved=True)


@require_GET
def context_json(
    request: HttpRequest, conversation_id: UUID, number: int | None = None
) -> HttpResponse:
    """The next request, or one that was sent, as plain data."""
    found = conversation_for(request.user, conversation_id)
    data = inspector.as_json(_shown(found, number))
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
    if title := " ".join(clean(request.POST.get("title", "")).split())[:TITLE]:
        found.title = title
        found.save(update_fields=["title"])
        async_to_sync(broadcast)(get_channel_layer(), found.pk, TitleChanged(title))
    return redirect("conversation", found.pk)


# Preferences


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    theme = request.POST.get("theme", "auto")
    response = redirect(own_address(request, request.POST.get("next", "")))
    if theme in THEMES:
        year = 365 * 24 * 3600
        response.set_cookie(THEME_COOKIE, theme, max_age=year, samesite="Lax")
    return response
