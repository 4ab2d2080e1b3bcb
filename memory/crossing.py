"""Work that a cancellation does not cut off, such as a write of the database.

The thread of the database knows nothing of a cancellation: a write that has begun goes on and is
committed, one that waits for its turn is dropped, and who was cancelled cannot tell which.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.db import Error

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Cancelled(asyncio.CancelledError):
    """Who waited was cancelled; the work went on to its end, and `result` is what came of it."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


async def to_end(work: Awaitable[Result]) -> Result:
    """Wait for work to end, even where who waits is cancelled meanwhile: that is raised after it,
    as Cancelled where the work had a result."""
    task = asyncio.ensure_future(work)
    stop: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            stop = error
    if stop is None:
        return task.result()
    if task.cancelled():
        raise stop
    if failure := task.exception():
        logger.warning("what was waited for before a cancellation failed", exc_info=failure)
        raise stop
    raise Cancelled(task.result()) from stop


async def note(write: Callable[..., None], **values: Any) -> None:
    """Write what nothing else depends on, to its end: a failure of the database is only logged."""
    try:
        await to_end(database_sync_to_async(write)(**values))
    except Error:
        logger.warning("%s could not be stored", write.__name__, exc_info=True)
