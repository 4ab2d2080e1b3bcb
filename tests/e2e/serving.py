"""A real server process with its own data, and a plain HTTP client of it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import httpx2

ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT")
BROKEN = re.compile(
    r"^.*(?:Traceback|Fatal Python error|\bERROR\b|\bCRITICAL\b|Warning:).*$", re.MULTILINE
)


def until(condition: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Poll until the condition gives something true, and give it back."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"still not after {seconds} s: {what}"
        time.sleep(0.03)
    return result


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """`manage.py serve` on data of its own; may be killed and started again on them."""

    def __init__(self, var: Path, *, seconds_per_token: float, **settings: str) -> None:
        var.mkdir(parents=True, exist_ok=True)
        self.var = var
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_file = var / "server.log"
        self.log_file.touch()
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ} | {
            "DEBUG": "1",
            "VAR_DIR": str(var),
            "DEMO_SECONDS_PER_TOKEN": str(seconds_per_token),
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            **settings,
        }

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of manage.py on this server's data, to its end."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def script(self, code: str) -> str:
        """Run Python in the application, on this server's data; gives what it prints."""
        done = self.manage("shell", "--verbosity", "0", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self) -> None:
        """Start, and wait until it answers."""
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", "--port", str(self.port)],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(self._answers, "the server answers")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the server ended: {self.log()}"
        try:
            return httpx2.get(f"{self.url}/login/").status_code == 200
        except httpx2.TransportError:
            return False

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def ended(self, seconds: float) -> int:
        """Wait until the process has ended; its exit code (-N: by the signal N)."""
        assert self.process is not None
        return self.process.wait(seconds)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def broken_lines(self, start: int = 0) -> list[str]:
        """What the log says of errors from the character `start` on."""
        return BROKEN.findall(self.log()[start:])


class Client:
    """The local user, over plain HTTP. A 5xx fails the test at once."""

    def __init__(self, server: Server) -> None:
        self.url = server.url
        self.http = httpx2.Client(base_url=server.url, timeout=20, event_hooks={"response": [ok]})
        self.post("/login/local/", page="/login/")

    def post(self, path: str, *, page: str = "", **data: str) -> httpx2.Response:
        if page:
            self.http.get(page)
        data["csrfmiddlewaretoken"] = self.http.cookies["csrftoken"]
        return self.http.post(path, data=data)

    def cookies(self) -> list[dict[str, str]]:
        """The session, for a browser."""
        jar = self.http.cookies.jar
        return [{"name": one.name, "value": one.value or "", "url": self.url} for one in jar]

    def new_conversation(self) -> str:
        """Start a conversation; its address."""
        address = self.post("/new/").headers["location"]
        assert re.fullmatch(r"/c/[0-9a-f-]{36}/", address)
        return str(address)

    def send(self, conversation: str, text: str) -> httpx2.Response:
        return self.post(f"{conversation}messages/", text=text)

    def ask(self, conversation: str, text: str) -> str:
        """Send a message and wait for the whole reply."""
        assert self.send(conversation, text).status_code == 302
        until(lambda: self.state(conversation) == "complete", f"{text!r} is answered")
        return self.last_text(conversation)

    def talk(self, texts: Iterable[str]) -> str:
        """A new conversation in which these messages were sent and answered; its address."""
        conversation = self.new_conversation()
        for text in texts:
            self.ask(conversation, text)
        return conversation

    def transcript(self, conversation: str) -> str:
        return self.http.get(f"{conversation}transcript/").text

    def state(self, conversation: str) -> str:
        """The state of the newest turn, as the transcript shows it."""
        states = re.findall(r'data-turn-state="(\w+)"', self.transcript(conversation))
        return states[-1] if states else ""

    def partial(self, conversation: str) -> str:
        """The running reply so far, as a newly opened page gets it."""
        found = re.search(r"data-partial>([^<]*)<", self.transcript(conversation))
        return found[1] if found else ""

    def context(self, conversation: str, request: int | None = None) -> dict[str, Any]:
        part = f"requests/{request}/" if request else ""
        answer = self.http.get(f"{conversation}{part}context.json")
        return dict(json.loads(answer.text))

    def last_text(self, conversation: str) -> str:
        """The newest message in the window, as it is stored."""
        return str(self.context(conversation)["segments"][-1]["text"])

    def close(self) -> None:
        self.http.close()


def ok(response: httpx2.Response) -> None:
    assert response.status_code < 500, f"{response.status_code} for {response.request.url}"


def counted_to(number: int) -> str:
    """What the demo model answers to "count to <number>"."""
    return ", ".join(map(str, range(1, number + 1)))
