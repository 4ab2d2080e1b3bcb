"""A thousand open pages that say nothing: what each costs, and whether messages are answered."""

import asyncio
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.relay import Streams, whole
from tests.bench.site import Site, python, resident
from tests.bench.timing import Spread
from tests.bench.websocket import Socket
from tests.e2e.serving import free_port, until

SOCKETS, WARM, AT_ONCE = 1_000, 20, 50
PIECES = 40
# Seconds for the server to come to rest before its memory is read.
REST = 2.0


async def open_all(port: int, paths: list[str], cookie: str) -> list[Socket]:
    """Open a socket for each path, a few at once, and wait for its first frame."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(path: str) -> Socket:
        async with gate:
            opened = await Socket.open(port, path, cookie)
            await opened.until("hello")
            return opened

    return await asyncio.gather(*map(one, paths))


async def close_all(sockets: list[Socket]) -> None:
    for one in sockets:
        await one.close()
    await asyncio.sleep(REST)


async def each(process: int, port: int, paths: list[str], cookie: str = "") -> list[Socket]:
    """Open the sockets and print what each adds to the server's memory; they stay open."""
    await close_all(await open_all(port, paths[:WARM], cookie))
    before, started = resident(process), time.monotonic()
    sockets = await open_all(port, paths[WARM:], cookie)
    seconds = time.monotonic() - started
    await asyncio.sleep(REST)
    after = resident(process)
    print(
        f"{before / 1_024:6.1f} -> {after / 1_024:6.1f} MiB for {len(sockets):,} sockets: "
        f"{(after - before) / len(sockets):5.1f} KiB each; opened in {seconds:.1f} s",
        flush=True,
    )
    return sockets


async def answered(site: Site, name: str) -> None:
    """Print how a message is answered now."""
    result = Streams()
    (path,) = site.paths(1)
    opened = await Socket.open(site.port, path, site.cookie)
    await opened.until("hello")
    await whole(opened, result, PIECES)
    await opened.close()
    spread = Spread.of(result.latencies)
    exact = "exact" if not result.wrong else "NOT exact"
    print(
        f"  a message {name}: {exact}, first text after {result.first[0]:.0f} ms, "
        f"pieces {spread.median:.1f} ms (95 % {spread.high:.1f})",
        flush=True,
    )


async def measure(site: Site) -> None:
    await answered(site, "while warming up")
    await answered(site, "with no other socket")
    print("  application  ", end="")
    sockets = await each(site.process, site.port, site.paths(WARM + SOCKETS), site.cookie)
    await answered(site, f"with {len(sockets):,} others open")
    await close_all(sockets)


@contextmanager
def bare() -> Iterator[tuple[int, int]]:
    """Daphne with the smallest consumer: process and port."""
    port = free_port()
    code = (
        "import sys, runpy; print('started', flush=True); "
        f"sys.argv = ['daphne', '-p', '{port}', '-v', '0', 'tests.bench.bare:application']; "
        "runpy.run_module('daphne', run_name='__main__')"
    )
    with python("-c", code) as (process, _line):
        until(lambda: _listens(port), "daphne listens")
        yield process, port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(folder: Path) -> None:
    """Print the memory of an idle socket (goal: 64 KiB), and of one of Channels alone."""
    wanted = 2 * SOCKETS + 200
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    with bare() as (process, port):
        print("  Channels only", end="")
        asyncio.run(closing(process, port))
    with python("-m", "tests.bench.fakellm") as (_fake, port):
        address = f"http://127.0.0.1:{port}/v1"
        conversations = SOCKETS + WARM + 3
        site = Site(folder / "idle", conversations, LLM_BASE_URL=address, LLM_MODEL="m")
        try:
            asyncio.run(measure(site))
        finally:
            site.close()
    print("  goal: at most 64 KiB each")


async def closing(process: int, port: int) -> None:
    await close_all(await each(process, port, ["/"] * (WARM + SOCKETS)))
