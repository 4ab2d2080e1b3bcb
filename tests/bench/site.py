"""The processes of a measurement: the application as it is deployed, and a fake provider."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.e2e.serving import ROOT, Server, until

NAME, PASSWORD = "bench", "a password for one run"
# A user who may sign in, and conversations of theirs; prints the conversations' ids.
PREPARE = """
from django.contrib.auth import get_user_model
from memory.models import Conversation
owner = get_user_model().objects.create_user({name!r}, password={password!r})
rows = [Conversation(owner=owner, policy_data={{"preset": "hybrid"}}, system_prompt="Be brief.")
        for _ in range({number})]
print(*(row.pk for row in Conversation.objects.bulk_create(rows)))
"""


def cpu_seconds(process: int) -> float:
    """Seconds of a core that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(process: int) -> float:
    """The memory of a process that is in use, in KiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if "VmRSS" in line))


class Load:
    """Seconds of a core that each process has used since the beginning, and seconds passed."""

    def __init__(self, **processes: int) -> None:
        self._processes = processes
        self._started = time.monotonic()
        self._before = {name: cpu_seconds(one) for name, one in processes.items()}

    @property
    def passed(self) -> float:
        return time.monotonic() - self._started

    def used(self) -> dict[str, float]:
        return {
            name: cpu_seconds(one) - self._before[name] for name, one in self._processes.items()
        }


class Site:
    """`manage.py serve` without DEBUG on data of its own, with one user and new conversations."""

    def __init__(self, folder: Path, conversations: int, **settings: str) -> None:
        self.server = Server(folder, seconds_per_token=0, DEBUG="0", **settings)
        done = self.server.manage("migrate", "--verbosity", "0")
        assert done.returncode == 0, done.stderr
        code = PREPARE.format(name=NAME, password=PASSWORD, number=conversations)
        self._conversations = self.server.script(code).split()
        self.server.start()
        self.cookie = self._sign_in()

    @property
    def process(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    @property
    def port(self) -> int:
        return self.server.port

    def _sign_in(self) -> str:
        with httpx2.Client(base_url=self.server.url) as http:
            http.get("/login/")
            token = http.cookies["csrftoken"]
            form = {"username": NAME, "password": PASSWORD, "csrfmiddlewaretoken": token}
            answer = http.post("/login/", data=form)
            assert answer.status_code == 302, answer.text
            return f"sessionid={http.cookies['sessionid']}"

    def paths(self, number: int) -> list[str]:
        """The sockets of so many conversations that were not used yet."""
        taken = self._conversations[:number]
        del self._conversations[:number]
        assert len(taken) == number, "prepare more conversations"
        return [f"/ws/c/{one}/" for one in taken]

    def close(self) -> None:
        """End it, and show what it complained of."""
        self.server.close()
        if lines := self.server.broken_lines():
            print(f"  the server's log has {len(lines)} complaints; the first: {lines[0][:200]}")


@contextmanager
def python(*arguments: str, environment: dict[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """Another process of this Python: its number, and the first line that it prints."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = until(process.stdout.readline, f"{arguments} has started").strip()
        yield process.pid, line
    finally:
        process.kill()
        process.wait(10)
        if process.stdout:
            process.stdout.close()
