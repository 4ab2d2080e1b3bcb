"""Fixtures of the cases: the scripted provider with raw events, and a quick ladder."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from chatapp import agent
from chatapp.tools import toolsets
from chatapp.tools.registry import Toolbox, tool
from memory.models import Conversation
from memory.summarizer import Ladder
from tests.cases.loopback import Loopback
from tests.cases.raw import RawTransport
from tests.chatapp.helpers import LONG

QUICK = Ladder(tries=3, try_seconds=2, total_seconds=8, backoff_seconds=0.001)


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    made = Loopback()
    yield made
    await made.close()


@pytest.fixture
def spies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives conversations with the tools "spy" these functions and no others."""

    def offer(*functions: Callable[..., Any]) -> None:
        box = Toolbox(tool(one) for one in functions)
        monkeypatch.setattr(toolsets, "TOOLSETS", {"spy": box})

    return offer


@pytest.fixture
def armed(make_conversation: Callable[..., Conversation]) -> Conversation:
    """A conversation with the tools "spy"."""
    return make_conversation(tools=["spy"], window=8_192)


@pytest.fixture
def talkative(scripted: RawTransport) -> RawTransport:
    """Its replies are long enough to be worth folding."""
    scripted.replies = [LONG]
    return scripted


@pytest.fixture(autouse=True)
def _quick_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "inline_ladder", lambda: QUICK)
