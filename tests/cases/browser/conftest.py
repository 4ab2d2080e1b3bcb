"""The fixtures of the end-to-end stories, on a server of this package's own whose model repeats
what it is told, one character at a time."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.e2e.conftest import browser, chat, local_user, server, visit
from tests.e2e.serving import Server

__all__ = ["browser", "chat", "local_user", "server", "visit"]

PAUSE = 0.004  # seconds between two characters


class Echo(BaseHTTPRequestHandler):
    """Streams the newest message back."""

    protocol_version = "HTTP/1.0"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        with suppress(ConnectionError):  # the turn was stopped
            for char in body["messages"][-1]["content"]:
                self._event({"choices": [{"index": 0, "delta": {"content": char}}]})
                time.sleep(PAUSE)
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, *_args: Any) -> None:
        pass


@pytest.fixture(scope="package")
def echo() -> Iterator[str]:
    """The address of the model."""
    model = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=model.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{model.server_address[1]}/v1"
    model.shutdown()
    thread.join()
    model.server_close()


@pytest.fixture(scope="package")
def shared_server(tmp_path_factory: pytest.TempPathFactory, echo: str) -> Iterator[Server]:
    made = Server(
        tmp_path_factory.mktemp("cases") / "var", seconds_per_token=0,
        LLM_BASE_URL=echo, LLM_MODEL="echo", LLM_CONTEXT_WINDOW="32000",
    )  # fmt: skip
    done = made.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    try:
        made.start()
        yield made
    finally:
        made.close()
