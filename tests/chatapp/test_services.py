"""The tests of turns, sockets and memory once more, on PostgreSQL and Redis."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import need

ROOT = Path(__file__).parents[2]
POSTGRES = os.environ.get("TEST_POSTGRES_URL", "postgres://root@127.0.0.1:5432/test")
REDIS = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/0")
FILES = (
    "test_turns.py", "test_socket.py", "test_memory.py", "test_steps.py", "test_search.py",
    "test_recall.py",
)  # fmt: skip


def listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=1):
            return True
    except OSError:
        return False


# Longer than the 5 s that the client of Redis gives a read.
IDLE = """
import asyncio, django
django.setup()
from channels.layers import get_channel_layer

async def main():
    layer = get_channel_layer()
    channel = await layer.new_channel()
    waiting = asyncio.create_task(layer.receive(channel))
    await asyncio.wait({waiting}, timeout=6.5)
    await layer.send(channel, {"type": "late"})
    async with asyncio.timeout(10):
        print((await waiting)["type"])

asyncio.run(main())
"""


@pytest.mark.services
def test_a_channel_on_redis_that_was_idle_still_gets_its_message() -> None:
    need("SERVICES", listens(REDIS), f"nothing listens on {urlsplit(REDIS).netloc}")
    settings = {"REDIS_URL": REDIS, "DJANGO_SETTINGS_MODULE": "chatapp.settings"}
    done = subprocess.run(
        [sys.executable, "-c", IDLE],
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "late", done.stderr[-2000:]


@pytest.mark.services
@pytest.mark.long
def test_turns_sockets_and_memory_on_postgresql_and_redis() -> None:
    for url in (POSTGRES, REDIS):
        need("SERVICES", listens(url), f"nothing listens on {urlsplit(url).netloc}")
    files = [str(Path("tests", "chatapp", name)) for name in FILES]
    environment = os.environ | {"DATABASE_URL": POSTGRES, "REDIS_URL": REDIS}
    environment.pop("PYTEST_ADDOPTS", None)
    for name in [name for name in environment if name.startswith("PYTEST_XDIST")]:
        environment.pop(name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
