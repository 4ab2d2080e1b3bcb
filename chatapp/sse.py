"""Reading a stream of server-sent events, as the WHATWG standard defines it, without any I/O.

Lines end with LF, CRLF or CR; an empty line ends an event; `data` lines of one event are joined by
LF; comments and unknown fields mean nothing. What a stream that breaks off leaves unfinished is
dropped, as browsers do, except that a last event without its empty line counts: servers forget it.
"""

import codecs
import re
from dataclasses import dataclass

# Characters of one event; a server that sends more without an end is broken or hostile.
MAX_EVENT = 4_194_304
_LINE_END = re.compile(r"\r\n|\n|\r")


class EventTooLong(ValueError):
    """An event without an end; nothing more can be read from the stream."""


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event: its type ("" for the usual one) and its data."""

    type: str
    data: str


class Decoder:
    """Turns the bytes of a stream, however they are cut, into events."""

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest: list[str] = []
        self._waiting = 0
        self._type = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that end within `data`. Raises EventTooLong."""
        text = self._text.decode(data)
        waits = bool(self._rest) and self._rest[-1].endswith("\r")
        if waits or _LINE_END.search(text):
            text = "".join((*self._rest, text))
            # A CR at the end may be half of a CRLF: it waits for what follows.
            edge = len(text) - 1 if text.endswith("\r") else len(text)
            *lines, rest = _LINE_END.split(text[:edge])
            self._rest = [rest + text[edge:]]
            self._waiting = len(self._rest[0])
            events = self._take(lines)
        else:  # a long line is put together once, when it ends
            self._rest.append(text)
            self._waiting += len(text)
            events = []
        if self._size + self._waiting > MAX_EVENT:
            raise EventTooLong(f"an event of over {MAX_EVENT:,} characters")
        return events

    def end(self) -> list[ServerEvent]:
        """The event that the end of the stream completes, if any."""
        lines = _LINE_END.split("".join((*self._rest, self._text.decode(b"", final=True))))
        self._rest, self._waiting = [], 0
        return self._take([*lines, ""])

    def _take(self, lines: list[str]) -> list[ServerEvent]:
        events = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(ServerEvent(self._type, "\n".join(self._data)))
                self._type, self._data, self._size = "", [], 0
                continue
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "data":
                self._data.append(value)
                self._size += len(value) + 1
            elif name == "event":
                self._type = value
        return events
