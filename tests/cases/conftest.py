"""Fixtures of the cases: the scripted provider with raw events, and a quick ladder."""

import pytest

from chatapp import agent
from memory.summarizer import Ladder
from tests.cases.raw import RawTransport
from tests.chatapp.helpers import LONG

QUICK = Ladder(tries=3, try_seconds=2, total_seconds=8, backoff_seconds=0.001)


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


@pytest.fixture
def talkative(scripted: RawTransport) -> RawTransport:
    """Its replies are long enough to be worth folding."""
    scripted.replies = [LONG]
    return scripted


@pytest.fixture(autouse=True)
def _quick_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "inline_ladder", lambda: QUICK)
