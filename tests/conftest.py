"""Fixtures: a user, a conversation, a scripted provider, a word counter. No test leaves this
machine: a connection to anywhere but loopback fails."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from blockbuster import BlockBuster, blockbuster_ctx
from django.contrib.auth import get_user_model
from django.db import connections

from chatapp import runner as runners
from chatapp.provider import Provider
from memory.models import Conversation
from tests.builders import WordCounter
from tests.scripted import ScriptedTransport
from tests.sockets import Page, cookie_of

SHARED = Path(__file__).resolve().parents[2] / "shared"
LOOPBACK = ("127.", "::1", "localhost", "/")


def need(kind: str, there: bool, what: str) -> None:
    """Skip a test whose needs are not met, or fail it where REQUIRE_<KIND>=1 asks for them."""
    if not there:
        if os.environ.get(f"REQUIRE_{kind}") == "1":
            pytest.fail(f"REQUIRE_{kind}=1, but {what}")
        pytest.skip(what)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes by itself starts first, so that no worker waits for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        host = address[0] if isinstance(address, tuple) else str(address)
        if not str(host).startswith(LOOPBACK):
            raise AssertionError(f"a test tried to reach {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def no_blocking() -> Iterator[BlockBuster]:
    """Blocking calls on the event loop raise."""
    with blockbuster_ctx() as blocker:
        yield blocker


@pytest.fixture
def data() -> Path:
    """The folder of the shared conversation data."""
    need("DATA", (SHARED / "data").is_dir(), "../shared/data is not there")
    return SHARED / "data"


@pytest.fixture
def words() -> WordCounter:
    return WordCounter()


@pytest.fixture
def user(db: Any) -> Any:
    return get_user_model().objects.create_user("ada", password="a long enough one")


@pytest.fixture
def other_user(db: Any) -> Any:
    return get_user_model().objects.create_user("bob", password="a long enough one")


@pytest.fixture
def make_conversation(user: Any) -> Callable[..., Conversation]:
    def make(**fields: Any) -> Conversation:
        policy = fields.pop("policy", {"preset": "hybrid"})
        fields.setdefault("system_prompt", "You are a helpful assistant.")
        return Conversation.objects.create(owner=user, policy_data=policy, **fields)

    return make


@pytest.fixture
def conversation(make_conversation: Callable[..., Conversation]) -> Conversation:
    return make_conversation()


@pytest.fixture(autouse=True)
def _quick_and_offline(settings: Any) -> None:
    """Nothing of the environment's provider, no pace, and a password hash that is quick."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.DEMO_SECONDS_PER_TOKEN = 0
    settings.LLM_BASE_URL = settings.LLM_API_KEY = settings.LLM_MODEL = ""
    settings.SUMMARY_MODEL = settings.SUMMARY_FALLBACK_MODEL = ""
    settings.AUTO_TITLE = False
    settings.LLM_CONTEXT_WINDOW = None
    settings.LLM_SERVER, settings.LLM_EXTRA_BODY = "", {}
    settings.LLM_REASONING_FIELD = settings.LLM_NULL_CONTENT = settings.LLM_STREAM_USAGE = None
    settings.LLM_RETRIES = 0  # where a test does not ask for them
    settings.TURN_MAX_STEPS, settings.TURN_TOKENS = 10, 8_000


@pytest.fixture
def scripted() -> ScriptedTransport:
    """A provider whose answers a test writes; it keeps every request's body."""
    return ScriptedTransport()


@pytest.fixture
async def runner(scripted: ScriptedTransport, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The process's runner, over the scripted provider; closed after the test."""
    made = runners.Runner(Provider(scripted))
    monkeypatch.setattr(runners, "get_runner", lambda: made)
    yield made
    await made.close()
    # The thread of the database calls outlives the test; its connection must not.
    await sync_to_async(connections.close_all)()


@pytest.fixture
async def open_page(runner: Any, user: Any) -> AsyncIterator[Callable[..., Awaitable[Page]]]:
    """Opens pages of a conversation, as its owner; they are closed after the test."""
    pages: list[Page] = []
    cookie = await cookie_of(user)

    async def make(conversation: Conversation) -> Page:
        opened = Page(conversation.pk, cookie)
        await opened.socket.connect()
        assert (await opened.next())["type"] == "hello"
        pages.append(opened)
        return opened

    yield make
    for opened in pages:
        await opened.socket.disconnect()


@pytest.fixture
async def page(open_page: Any, conversation: Conversation) -> Page:
    """One open page of the conversation."""
    opened: Page = await open_page(conversation)
    return opened


async def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Wait until an async condition gives something true."""
    async with asyncio.timeout(seconds):
        while not (result := await condition()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return result
