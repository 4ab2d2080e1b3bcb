"""Fixtures of the end-to-end stories: a server process, Chromium, and a watch over both.

Playwright's sync API keeps its event loop marked as running while it is open. So the browser
belongs to this package and is closed with its last test, before asynchronous tests come again.
"""

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.conftest import need
from tests.e2e.pages import Chat
from tests.e2e.serving import Client, Server
from tests.e2e.watch import Watch

CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Seconds between two words of the demo model: a reply can be watched; counting to 400 takes 5 s.
PACE = 0.01
DESKTOP = {"width": 1360, "height": 850}

expect.set_options(timeout=15_000)


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Note a failure on the test, so that its pages are photographed before they close."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="package")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data with an empty database, to be copied."""
    server = Server(tmp_path_factory.mktemp("migrated"), seconds_per_token=0)
    done = server.manage("migrate", "--verbosity", "0")
    assert done.returncode == 0, done.stderr
    return server.var


def _fresh(migrated: Path, folder: Path, pace: float, **settings: str) -> Server:
    folder.mkdir()
    for file in migrated.iterdir():
        shutil.copy(file, folder)
    (folder / "server.log").write_text("")
    return Server(folder, seconds_per_token=pace, **settings)


@pytest.fixture(scope="package")
def shared_server(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = _fresh(migrated, tmp_path_factory.mktemp("shared") / "var", PACE)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    """The server that most stories share; its log must stay free of errors."""
    start = len(shared_server.log())
    yield shared_server
    assert shared_server.broken_lines(start) == []


@pytest.fixture
def start_server(migrated: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Makes servers with data of their own, for stories that kill them or need an empty one."""
    servers: list[Server] = []

    def start(*, pace: float = PACE, **settings: str) -> Server:
        servers.append(_fresh(migrated, tmp_path / f"var{len(servers)}", pace, **settings))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()
    for server in servers:
        assert server.broken_lines() == []


@pytest.fixture(scope="package")
def local_user(shared_server: Server) -> Iterator[Client]:
    """The local user of the shared server, signed in over plain HTTP."""
    client = Client(shared_server)
    yield client
    client.close()


@pytest.fixture
def sign_in() -> Iterator[Callable[[Server], Client]]:
    """Signs the local user in over plain HTTP, on any server."""
    clients: list[Client] = []

    def make(server: Server) -> Client:
        clients.append(Client(server))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    need("BROWSER", CHROMIUM.exists() and os.access(CHROMIUM, os.X_OK), f"{CHROMIUM} is not there")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(
    request: pytest.FixtureRequest, browser: Browser, tmp_path: Path
) -> Iterator[Callable[..., Chat]]:
    """Opens a browser of a new visitor, or of a signed-in client. What goes wrong in it fails the
    test at its end."""
    watches: list[Watch] = []
    contexts = []

    def open_one(server: Server, client: Client | None = None, **options: Any) -> Chat:
        context = browser.new_context(**{"locale": "en-US", "viewport": DESKTOP, **options})
        contexts.append(context)
        if client is not None:
            context.add_cookies(client.cookies())  # type: ignore[arg-type]
        watches.append(Watch(context, server.url))
        return Chat(context.new_page(), server, watches[-1])

    yield open_one
    for number, context in enumerate(contexts):
        for index, page in enumerate(
            context.pages if request.node.stash.get(FAILED, False) else ()
        ):
            page.screenshot(path=tmp_path / f"failed-{number}-{index}.png")
        context.close()
    assert [problem for watch in watches for problem in watch.problems] == []


@pytest.fixture
def chat(server: Server, local_user: Client, visit: Callable[..., Chat]) -> Chat:
    """The local user in a new conversation."""
    return visit(server, local_user).open(local_user.new_conversation())
