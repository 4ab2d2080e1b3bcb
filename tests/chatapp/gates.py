"""What tests of bad moments share: writes that are held up, and writes that fail."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest


class Gate:
    """Holds a synchronous function up, in whichever thread it runs, until it is opened. With
    `after` it has done its work by then."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, after: bool = False
    ) -> None:
        self._reached, self._open = threading.Event(), threading.Event()
        real = getattr(owner, name)

        def held(**values: Any) -> Any:
            done = real(**values) if after else None
            self._reached.set()
            assert self._open.wait(30), "nobody opened it"
            return done if after else real(**values)

        monkeypatch.setattr(owner, name, held)

    async def reached(self) -> None:
        """Wait until somebody is held up."""
        assert await asyncio.to_thread(self._reached.wait, 30), "nobody came"

    def open(self) -> None:
        self._open.set()


def failing(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, errors: Sequence[Exception]
) -> list[dict[str, Any]]:
    """Make a function raise these errors first, one a call, then work; what it was called with."""
    real, calls = getattr(owner, name), list[dict[str, Any]]()

    def tried(**values: Any) -> Any:
        calls.append(values)
        if len(calls) <= len(errors):
            raise errors[len(calls) - 1]
        return real(**values)

    tried.__name__ = name
    monkeypatch.setattr(owner, name, tried)
    return calls
