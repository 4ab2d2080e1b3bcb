"""Fixtures: the runner over the server of REAL_MODEL_URL, and what was sent to it."""

import os
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async

from memory import snapshots
from memory.models import Conversation, Request
from tests.conftest import need

URL = os.environ.get("REAL_MODEL_URL", "")
WINDOW = 2_048  # tokens, where the server does not tell
# Of a turn's requests: short replies, the same every time, without thoughts where there would be.
BRIEF = {
    "max_tokens": 60,
    "temperature": 0,
    "chat_template_kwargs": {"enable_thinking": False},
}


@pytest.fixture(scope="session")
def served() -> dict[str, Any]:
    """The model as the server lists it."""
    need("REAL", bool(URL), "REAL_MODEL_URL is not set (make real-model sets it)")
    listed: dict[str, Any] = httpx2.get(f"{URL}/models", timeout=30).json()["data"][0]
    return listed


@pytest.fixture(autouse=True)
def _real(served: dict[str, Any], settings: Any, _quick_and_offline: None) -> None:
    """The application's settings for this server; replies are short."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = URL, served["id"]
    settings.LLM_SERVER = "llamacpp"
    settings.LLM_CONTEXT_WINDOW = served.get("meta", {}).get("n_ctx") or WINDOW
    settings.LLM_EXTRA_BODY = BRIEF
    settings.LLM_FIRST_TOKEN_SECONDS = settings.LLM_TOTAL_SECONDS = 300


@pytest.fixture
def scripted() -> None:
    """No transport: the runner's provider has a real one."""


@pytest.fixture
def verified_requests(conversation: Conversation) -> Callable[[], Any]:
    """The requests so far, in order, each rebuilt to the hash of what was sent."""

    def verified() -> list[Request]:
        found = list(conversation.requests.order_by("number"))
        for request in found:
            assert snapshots.rebuild(request=request).verified is True
        return found

    return sync_to_async(verified)
