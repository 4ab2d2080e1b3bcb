"""Signing in, with a password or in development from this very machine with one click; and out."""

import ipaddress
from typing import Any

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import Permission
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatapp.access import own_address
from chatapp.events import end_session

LOCAL_USER = "local"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
FORWARDING = (
    "HTTP_FORWARDED", "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP", "HTTP_VIA",
)  # fmt: skip
# The admin of these applications opens for the local user.
LOCAL_APPS = ("memory",)


def local_login_allowed(request: HttpRequest) -> bool:
    """Whether the request surely comes from a person at this machine, in development.

    DEBUG, a loopback peer, a loopback Host, and no sign of a proxy in between.
    """
    if not settings.DEBUG or any(name in request.META for name in FORWARDING):
        return False
    host = request.get_host().lower()
    name = host if host.endswith("]") else host.rsplit(":", 1)[0]
    try:
        peer = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = getattr(peer, "ipv4_mapped", None)
    return name in LOCAL_HOSTS and (mapped or peer).is_loopback


class SignIn(LoginView):
    """Django's sign-in page, with the button for the local user where that is allowed."""

    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        allowed = local_login_allowed(self.request)
        return super().get_context_data(local_login_allowed=allowed, **kwargs)


@login_not_required
@require_POST
def local_login(request: HttpRequest) -> HttpResponse:
    """Sign in as the local user, made at the first time: staff, without a usable password."""
    if not local_login_allowed(request):
        return HttpResponseForbidden(_("This works in development, from this machine only."))
    user, created = get_user_model().objects.get_or_create(
        username=LOCAL_USER, defaults={"is_staff": True}
    )
    if created:
        user.set_unusable_password()
        user.save()
        wanted = Permission.objects.filter(content_type__app_label__in=LOCAL_APPS)
        user.user_permissions.set(wanted)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect(own_address(request, request.POST.get("next", "")))


def close_sockets(*, request: HttpRequest, **_more: Any) -> None:
    """What a session has open is closed when its user signs out, here or in the admin."""
    if key := request.session.session_key:
        async_to_sync(end_session)(get_channel_layer(), key)
