"""The ASGI application: pages over HTTP, one socket per open conversation."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")

from django.core.asgi import get_asgi_application

pages = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path  # noqa: E402

from chatapp.consumers import ChatConsumer  # noqa: E402
from chatapp.origin import ExactOriginValidator  # noqa: E402

sockets = [path("ws/c/<uuid:conversation_id>/", ChatConsumer.as_asgi())]

application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": ExactOriginValidator(AuthMiddlewareStack(URLRouter(sockets))),
    }
)
