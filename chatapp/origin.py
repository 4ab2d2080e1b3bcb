"""Which pages may open a socket: those of exactly this origin, and no others.

A browser sends the visitor's cookie with every handshake, from any site. Host names alone are not
enough: another port or scheme is another origin.
"""

from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class ExactOriginValidator:
    """Refuses a handshake whose Origin is not the address it was sent to, or a trusted one."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        inner = self.application if allowed(scope) else WebsocketDenier()
        return await inner(scope, receive, send)


def allowed(scope: dict[str, Any]) -> bool:
    """Whether a handshake's Origin header is exactly one of ours. Without one it is refused."""
    headers = dict(scope.get("headers", ()))
    origin = headers.get(b"origin", b"").decode("latin-1").lower()
    if not origin:
        return False
    if origin in (trusted.lower() for trusted in settings.TRUSTED_ORIGINS):
        return True
    host: str = headers.get(b"host", b"").decode("latin-1").lower()
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return False
    secure = scope.get("scheme") == "wss"
    if settings.HTTPS:
        secure = secure or headers.get(b"x-forwarded-proto") == b"https"
    return origin == f"{'https' if secure else 'http'}://{host}"
