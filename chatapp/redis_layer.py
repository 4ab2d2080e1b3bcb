"""The channel layer of several processes: that of channels_redis, with its waits made safe."""

import asyncio
from typing import Any

from channels_redis.core import RedisChannelLayer


class RedisLayer(RedisChannelLayer):  # type: ignore[misc]
    """Waits for a message in pieces that end by themselves.

    The client gives each read 5 s, which is as long as the layer would wait: idle pages would fall
    out. And a cancellation can get lost within a read: who waits then ends with its piece.
    """

    brpop_timeout = 2

    async def _brpop_with_clean(self, *place: Any, **limits: Any) -> Any:
        found = await super()._brpop_with_clean(*place, **limits)
        task = asyncio.current_task()
        if found is None and task is not None and task.cancelling():
            raise asyncio.CancelledError
        return found
