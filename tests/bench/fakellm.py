"""`python -m tests.bench.fakellm`: a fake OpenAI server that stamps each piece with its time.

It prints its port. The newest user message says what to send ("pieces=120 seconds=0.05"). A piece
is `<number>@<microseconds of the monotonic clock>;`, and the last one `#<SHA-256 of all before>`,
so that a reader knows how long each piece took and whether exactly this text arrived. The clock is
that of the machine: every process on it reads the same.
"""

import asyncio
import hashlib
import json
import re
import time
from dataclasses import dataclass, field

ORDER = re.compile(r"pieces=(\d+) seconds=([\d.]+)")
PIECE = re.compile(r"(\d+)@(\d+);")
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
    b"connection: close\r\n\r\n"
)
WHOLE = json.dumps(
    {"choices": [{"message": {"content": "A measured reply"}, "finish_reason": "stop"}]}
).encode()


def order(pieces: int, seconds: float) -> str:
    """What to say for so many pieces, one every so many seconds."""
    return f"pieces={pieces} seconds={seconds}"


@dataclass
class Reading:
    """A reply as it arrives: when each piece was sent (microseconds), and the milliseconds that
    it took from there to here."""

    text: str = ""
    sent: list[int] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    _read: int = 0

    def add(self, text: str) -> None:
        now = time.monotonic_ns() // 1_000
        self.text += text
        for piece in PIECE.finditer(self.text, self._read):
            self._read = piece.end()
            self.sent.append(int(piece[2]))
            self.latencies.append((now - int(piece[2])) / 1_000)


def is_exact(text: str, pieces: int) -> bool:
    """Whether `text` is all that was sent: every piece once, in order, and nothing else."""
    sent, _, digest = text.partition("#")
    numbers = [int(piece[1]) for piece in PIECE.finditer(sent)]
    whole = hashlib.sha256(sent.encode()).hexdigest() == digest
    return whole and numbers == list(range(pieces))


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        length = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
        body = json.loads(await reader.readexactly(int(length[1]) if length else 0))
        wanted = ORDER.search(body["messages"][-1]["content"])
        if body.get("stream") and wanted is not None:
            writer.write(HEAD)
            await _stream(writer, int(wanted[1]), float(wanted[2]))
            writer.write(b"0\r\n\r\n")
        else:  # a title or a summary
            size = f"content-length: {len(WHOLE)}\r\n\r\n".encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + size + WHOLE)
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _stream(writer: asyncio.StreamWriter, pieces: int, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    began, digest = loop.time(), hashlib.sha256()
    for number in range(pieces):
        # By the clock, not by the length of a sleep, so that the rate holds under load.
        await asyncio.sleep(max(0.0, began + number * seconds - loop.time()))
        piece = f"{number}@{time.monotonic_ns() // 1_000};"
        digest.update(piece.encode())
        _write(writer, {"index": 0, "delta": {"content": piece}, "finish_reason": None})
        await writer.drain()
    _write(writer, {"index": 0, "delta": {"content": "#" + digest.hexdigest()}})
    _write(writer, {"index": 0, "delta": {}, "finish_reason": "stop"})
    _write(writer, None)


def _write(writer: asyncio.StreamWriter, choice: dict[str, object] | None) -> None:
    data = json.dumps({"id": "bench", "choices": [choice]}) if choice else "[DONE]"
    event = f"data: {data}\n\n".encode()
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
