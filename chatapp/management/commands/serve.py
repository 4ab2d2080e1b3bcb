"""`manage.py serve`: Palimpsest on Daphne, with an orderly end."""

import asyncio
import gc
import signal
import socket
import sys
from argparse import ArgumentParser
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server, reactor
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from chatapp.asgi import application
from chatapp.connections import keep_connections
from chatapp.provider import is_demo, target_for
from chatapp.runner import get_runner
from memory.encodings import counter_for

# The largest WebSocket message and frame, in bytes; a larger one closes the socket with 1009.
MAX_FRAME = 1_048_576


class Command(BaseCommand):
    help = "Serve Palimpsest with Daphne."
    _loop: asyncio.AbstractEventLoop | None = None

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        self.check()
        _refuse_taken(host, port)
        counter_for(target_for("").model)  # load the vocabulary now, not with the first message
        keep_connections()
        # What is loaded by now stays: searching it for garbage again and again would hold up all
        # streams, a tenth of a second each time.
        gc.collect()
        gc.freeze()
        # The threads of the database take turns with the one of the sockets: after 1 ms, not 5.
        sys.setswitchinterval(0.001)
        server: Server = Server(
            application=ASGIStaticFilesHandler(application),
            endpoints=build_endpoint_description_strings(host=host, port=port),
            signal_handlers=False,
            ready_callable=lambda: reactor.callLater(0, self._ready, server, host, port),
            websocket_max_message_size=MAX_FRAME,
            websocket_max_frame_size=MAX_FRAME,
            server_name="palimpsest",
        )
        server.run()
        self._drain()

    def _drain(self) -> None:
        """Let what the server left pending end: coroutines that outlive the interpreter's shutdown
        crash it (Daphne returns at the first cancelled connection)."""
        loop = self._loop
        if loop is None:
            return
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))

    def _ready(self, server: Server, host: str, port: int) -> None:
        """Called in the running loop once the server listens."""
        self._loop = loop = asyncio.get_running_loop()
        # Otherwise a frame that is too large drops the connection without saying why (1006).
        server.ws_factory.failByDrop = False

        def end() -> None:
            # The turns first, so that what they wrote is stored, then the server.
            closing = loop.create_task(get_runner().close())
            closing.add_done_callback(lambda _task: server.stop())

        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                loop.add_signal_handler(number, end)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_args: loop.call_soon_threadsafe(end))
        name = f"[{host}]" if ":" in host else host
        model = _("demo model (rule-based)") if is_demo() else target_for("").model
        self.stdout.write(f"Palimpsest on http://{name}:{port}  ({model}); Ctrl+C ends it")
        self.stdout.flush()


def _refuse_taken(host: str, port: int) -> None:
    """Say in one line that the port is taken, instead of a traceback from the server."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Port {port} of {host} cannot be used ({error.strerror}). "
                f"Choose another one: make run PORT={port + 1}"
            ) from error
