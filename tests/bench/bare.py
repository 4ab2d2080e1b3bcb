"""The smallest consumer on Channels: what a socket costs before anything of ours.

Served by `python -m daphne tests.bench.bare:application`.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")

import django

django.setup()

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import re_path  # noqa: E402


class Greeter(AsyncWebsocketConsumer):  # type: ignore[misc]
    async def connect(self) -> None:
        await self.accept()
        await self.send(text_data='{"type": "hello"}')


application = ProtocolTypeRouter({"websocket": URLRouter([re_path("", Greeter.as_asgi())])})
