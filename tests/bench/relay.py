"""Many replies at once, through the whole application and through the bare provider client."""

import asyncio
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.test import override_settings

from chatapp.deltas import Text
from chatapp.provider import Provider
from tests.bench.fakellm import Reading, is_exact, order
from tests.bench.site import Load, Site, python
from tests.bench.timing import Spread
from tests.bench.websocket import Socket

STREAMS, PIECES, SECONDS = 50, 200, 0.05
ROUNDS = 2
# The search for the point from which on the application no longer keeps up; or, where STREAMS
# are too many already, for the number with which it does.
STEPS = (75, 100, 150, 200, 300)
FEWER = (25, 15)
TOO_LATE = 250.0
BUSY = 0.95
# Seconds over which the streams start: people do not all press Enter in the same moment.
SPREAD = 4.0


@dataclass
class Streams:
    """What came of some streams: milliseconds of every piece, and what was not as it was sent.

    `steady` are those of the pieces that were sent while all streams ran: starting and storing a
    turn costs far more than relaying a piece, and is in the others.
    """

    latencies: list[float] = field(default_factory=list)
    steady: list[float] = field(default_factory=list)
    running: list[Reading] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    replies: int = 0
    wrong: int = 0
    gaps: int = 0
    doubled: int = 0
    passed: float = 0.0
    used: Counter[str] = field(default_factory=Counter)

    def take(self, reading: Reading, pieces: int, first: float) -> None:
        self.latencies += reading.latencies
        self.running.append(reading)
        self.first.append(first)
        self.replies += 1
        self.wrong += not is_exact(reading.text, pieces)

    def measured(self, load: Load) -> None:
        """To be called when all streams of a round have ended."""
        complete = [one for one in self.running if one.sent]
        first = max(one.sent[0] for one in complete)
        last = min(one.sent[-1] for one in complete)
        self.steady += [
            taken
            for one in complete
            for sent, taken in zip(one.sent, one.latencies, strict=True)
            if first <= sent <= last
        ]
        self.running.clear()
        self.passed += load.passed
        self.used.update(load.used())

    def shares(self) -> dict[str, float]:
        """How much of a core each process used."""
        return {name: seconds / self.passed for name, seconds in self.used.items()}


async def bare(provider: Provider, result: Streams, pieces: int) -> None:
    """One stream through the provider's client alone."""
    reading, asked, first = Reading(), time.monotonic(), 0.0
    content = order(pieces, SECONDS)
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}
    async for delta in provider.stream(body):
        if isinstance(delta, Text):
            first = first or time.monotonic() - asked
            reading.add(delta.text)
    result.take(reading, pieces, first * 1_000)


async def whole(socket: Socket, result: Streams, pieces: int) -> None:
    """One stream through the application, read as the browser reads it."""
    reading, asked, first = Reading(), time.monotonic(), 0.0
    socket.send(type="message.send", id=os.urandom(8).hex(), text=order(pieces, SECONDS))
    while True:
        frame = await socket.receive()
        match frame["type"]:
            case "turn.delta":
                first = first or time.monotonic() - asked
                missing = frame["offset"] - len(reading.text)
                result.gaps += missing > 0
                result.doubled += max(0, -missing)
                if missing <= 0:
                    reading.add(frame["text"][-missing:])
            case "turn.ended":
                if frame["state"] != "complete" or frame["length"] != len(reading.text):
                    print(f"  after {len(reading.text)} characters: {frame}")
                break
            case "error":
                raise RuntimeError(frame)
    result.take(reading, pieces, first * 1_000)


async def together(streams: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Start the streams evenly over SPREAD seconds, and wait for all."""

    async def later(delay: float, stream: Coroutine[Any, Any, None]) -> None:
        await asyncio.sleep(delay)
        await stream

    delays = (index * SPREAD / len(streams) for index in range(len(streams)))
    await asyncio.gather(*map(later, delays, streams))


async def measure_bare(fake: int, number: int, pieces: int, result: Streams) -> None:
    provider = Provider()
    load = Load(fake=fake, client=os.getpid())
    await together([bare(provider, result, pieces) for _ in range(number)])
    result.measured(load)
    await provider.aclose()


async def measure_whole(site: Site, fake: int, number: int, pieces: int, result: Streams) -> None:
    sockets = []
    for path in site.paths(number):
        socket = await Socket.open(site.port, path, site.cookie)
        await socket.until("hello")
        sockets.append(socket)
    load = Load(server=site.process, fake=fake, client=os.getpid())
    await together([whole(socket, result, pieces) for socket in sockets])
    result.measured(load)
    for socket in sockets:
        await socket.close()


async def compare(site: Site, fake: int) -> bool:
    """The streams of the goal; gives whether they were too many."""
    alone, through = Streams(), Streams()
    for _ in range(ROUNDS):
        await measure_bare(fake, STREAMS, PIECES, alone)
        await measure_whole(site, fake, STREAMS, PIECES, through)
    print(f"{STREAMS} streams at {1 / SECONDS:.0f} pieces/s, {ROUNDS} rounds: milliseconds")
    for name, result in (("bare client", alone), ("application", through)):
        show(name, result)
    for what, kind in (("while all run", "steady"), ("with starts and ends", "latencies")):
        low, high = (Spread.of(getattr(one, kind) or [0.0]) for one in (alone, through))
        print(
            f"  added {what}: median {high.median - low.median:.1f}, 95 % "
            f"{high.high - low.high:.1f} (goal: at most 80), max {high.most - low.most:.1f}",
            flush=True,
        )
    return Spread.of(through.latencies).high > TOO_LATE


def show(name: str, result: Streams) -> None:
    spread, first = Spread.of(result.latencies), Spread.of(result.first)
    steady = Spread.of(result.steady or [0.0])
    load = ", ".join(f"{one} {share:.0%}" for one, share in result.shares().items())
    each = result.used["server"] * 1_000_000 / len(result.latencies)
    load += f" ({each:.0f} us of the server's core a piece)" if each else ""
    print(
        f"  {name:<12} median {spread.median:6.1f}  95 % {spread.high:6.1f}  max {spread.most:6.1f}"
        f"  first text {first.median:4.0f} ({first.high:4.0f})  CPU: {load}"
    )
    print(
        f"  {'':<12} while all run: {steady} max {steady.most:.1f}; {result.replies} replies, "
        f"{result.wrong} not exact, {result.gaps} gaps, {result.doubled} characters twice",
        flush=True,
    )


async def step(site: Site, fake: int, number: int) -> str:
    """Measure so many streams; gives what was too much, or ""."""
    alone, through = Streams(), Streams()
    await measure_bare(fake, number, PIECES, alone)
    await measure_whole(site, fake, number, PIECES, through)
    show(f"{number} bare", alone)
    show(f"{number} streams", through)
    late = Spread.of(through.latencies).high > TOO_LATE
    full = [name for name, share in through.shares().items() if share > BUSY]
    return " and ".join(["late"] * late + [f"the {name}'s core is full" for name in full])


async def saturate(site: Site, fake: int, late: bool) -> None:
    """Raise the number of streams until the 95th percentile or the processor says stop."""
    print(
        f"{'fewer' if late else 'more'} streams; too many: 95 % > {TOO_LATE:.0f} ms or a full core"
    )
    for number in FEWER if late else STEPS:
        why = await step(site, fake, number)
        if bool(why) != late:
            rate = f"{number} streams ({number / SECONDS:,.0f} pieces/s)"
            print(f"  {rate}: {why or 'it keeps up'}", flush=True)
            return
    print("  no such point in the search")


def check_stored(site: Site) -> None:
    """Every reply in the database is what was sent, too."""
    with sqlite3.connect(site.server.var / "palimpsest.sqlite3") as database:
        rows = database.execute("SELECT content FROM memory_message WHERE role = 'assistant'")
        exact = [is_exact(text, PIECES) for (text,) in rows]
    print(f"  stored: {len(exact)} replies, {exact.count(False)} not exact")


def run(folder: Path) -> None:
    """Print the latency that the application adds (goal: 80 ms at 95 %) and where it saturates."""
    number = STREAMS * ROUNDS + max(sum(STEPS), sum(FEWER))
    with python("-m", "tests.bench.fakellm") as (fake, port):
        address = f"http://127.0.0.1:{port}/v1"
        site = Site(folder / "relay", number, LLM_BASE_URL=address, LLM_MODEL="m")
        try:
            with override_settings(LLM_BASE_URL=address, LLM_MODEL="m"):
                late = asyncio.run(compare(site, fake))
                asyncio.run(saturate(site, fake, late))
            check_stored(site)
        finally:
            site.close()
