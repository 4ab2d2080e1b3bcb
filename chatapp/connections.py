"""Database connections of a server: kept where the work stays on one thread."""

import time
from typing import Any

from asgiref.sync import SyncToAsync
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

# Seconds that a connection is used again.
KEEP = 600.0


def keep_connections() -> None:
    """From now on keep the connections of the thread that sockets and turns share.

    Opening one costs more than most of what it is opened for, and Channels closes it after each
    call. Requests for pages have a thread each, where a kept connection would be lost with the
    thread: they close theirs as before, which is why CONN_MAX_AGE stays 0.
    """
    connection_created.connect(_keep, dispatch_uid="keep-connections")


def _keep(connection: BaseDatabaseWrapper, **_more: Any) -> None:
    if SyncToAsync.thread_sensitive_context.get(None) is None:
        connection.close_at = time.monotonic() + KEEP
