"""The channel layer of a single process and the connections of the sockets' thread."""

import threading
import time

import pytest
from asgiref.sync import ThreadSensitiveContext
from channels.db import database_sync_to_async
from django.db import connection
from django.db.backends.signals import connection_created

from chatapp import layers
from chatapp.connections import _keep, keep_connections
from chatapp.layers import MemoryLayer


async def test_each_member_of_a_group_gets_the_message() -> None:
    layer = MemoryLayer(capacity=10)
    members = [await layer.new_channel() for _ in range(3)]
    for member in members:
        await layer.group_add("g", member)
    await layer.group_discard("g", members[1])
    await layer.group_send("g", {"type": "x", "n": 1})
    await layer.group_send("nobody", {"type": "x"})
    assert await layer.receive(members[0]) == {"type": "x", "n": 1}
    assert await layer.receive(members[2]) == {"type": "x", "n": 1}
    assert members[1] not in layer.channels


async def test_a_full_channel_loses_only_its_own_message() -> None:
    layer = MemoryLayer(capacity=1)
    slow, fast = await layer.new_channel(), await layer.new_channel()
    for member in (slow, fast):
        await layer.group_add("g", member)
    await layer.group_send("g", {"n": 1})
    assert await layer.receive(fast) == {"n": 1}
    await layer.group_send("g", {"n": 2})
    assert await layer.receive(fast) == {"n": 2}
    assert await layer.receive(slow) == {"n": 1}


async def test_what_has_expired_is_cleaned_up(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = MemoryLayer(expiry=-1)
    await layer.send("dead", {"n": 1})
    await layer.group_add("g", "dead")
    await layer.group_send("other", {"n": 2})
    assert "dead" not in layer.channels
    # Not again before its time.
    await layer.send("dead", {"n": 3})
    await layer.group_send("other", {"n": 4})
    assert "dead" in layer.channels
    monkeypatch.setattr(layers, "CLEAN_EVERY", 0.0)
    await layer.group_send("other", {"n": 5})
    assert "dead" not in layer.channels


@pytest.mark.django_db(transaction=True)
async def test_only_the_shared_thread_keeps_its_connection() -> None:
    keep_connections()

    def opened() -> tuple[float | None, str]:
        connection.close()
        connection.ensure_connection()
        until, thread = connection.close_at, threading.current_thread().name
        connection.close()
        return until, thread

    try:
        shared, shared_thread = await database_sync_to_async(opened)()
        async with ThreadSensitiveContext():
            own, own_thread = await database_sync_to_async(opened)()
    finally:
        connection_created.disconnect(_keep, dispatch_uid="keep-connections")
    now = time.monotonic()
    assert shared is not None
    assert shared > now + 60
    assert own is not None
    assert own <= now
    assert shared_thread != own_thread
