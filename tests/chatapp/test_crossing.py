"""Work that is waited for although who waits is cancelled."""

import asyncio
from typing import Any

import pytest
from django.db import OperationalError

from memory.crossing import Cancelled, note, to_end


async def begun(work: Any) -> "asyncio.Task[Any]":
    """A task that waits for the work."""
    task = asyncio.create_task(to_end(work))
    await asyncio.sleep(0)
    return task


async def test_it_gives_the_result_or_the_error() -> None:
    async def fails() -> None:
        raise ValueError("no")

    assert await to_end(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="no"):
        await to_end(fails())


async def test_any_number_of_cancellations_waits_for_the_end() -> None:
    end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await begun(end)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    end.set_result("stored")
    with pytest.raises(Cancelled) as caught:
        await task
    assert caught.value.result == "stored"


async def test_a_failure_after_a_cancellation_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await begun(end)
    task.cancel()
    await asyncio.sleep(0)
    end.set_exception(OperationalError("database is locked"))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "database is locked" in caplog.text


async def test_work_that_is_cancelled_itself_ends_the_wait() -> None:
    for cancelled_too in (False, True):
        end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = await begun(end)
        if cancelled_too:
            task.cancel()
        end.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.django_db(transaction=True)
async def test_a_note_that_cannot_be_stored_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def busy(**_values: Any) -> None:
        raise OperationalError("database is locked")

    await note(busy, request_id=1)
    assert "busy could not be stored" in caplog.text
