"""What a stream of chat completions says: typed deltas out of its events, whatever the server's
habits. Pure: no network, no settings.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from chatapp.call_parts import CallParts
from memory.core.messages import ToolCall
from memory.core.text import paired

# Characters of a server's own words that an error repeats.
DETAIL = 500
# Blanks before a tag that opens thoughts; behind more of them it is text.
BLANKS = 64
# A reply that begins with its thoughts, as models without a field of their own write them.
_OPEN = re.compile(rf"\s{{0,{BLANKS}}}<(think|thinking|reasoning)>", re.IGNORECASE)
_OPENERS = ("<think>", "<thinking>", "<reasoning>")


class StreamError(Exception):
    """The stream is broken or tells of an error. `code` is "server" or "stream", `detail` the
    server's own words and `reason` its own code, if any."""

    def __init__(self, code: str, detail: str, reason: Any = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail[:DETAIL]
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Text:
    """The next piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The next piece of the model's thoughts; no part of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Calls:
    """All tool calls of the reply, once it is complete. Arguments are as the server sent them."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What the provider counted, in tokens; the last report of a stream is the one that holds.

    "cached_tokens" are part of the prompt's, "reasoning_tokens" of the completion's.
    """

    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Finish:
    """The provider's reason for the end: "stop", "length", "content_filter", ..."""

    reason: str


Piece = Text | Reasoning | Calls | Usage | Finish


@dataclass(slots=True)
class Reader:
    """Reads the events of one reply, in order."""

    finished: bool = False
    _said: list[str] = field(default_factory=list)
    _held: str | None = ""
    _closer: str = ""
    _trim: bool = False
    _halves: dict[str, str] = field(default_factory=dict)
    _calls: CallParts = field(default_factory=CallParts)

    def feed(self, kind: str, data: str) -> list[Piece]:
        """The pieces in one event. Raises StreamError for an error, or for what is not a chunk.

        Chunks without a choice, without a delta or with null content are legal and carry nothing.
        """
        try:
            return self._read(_chunk(data))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise StreamError("server" if kind == "error" else "stream", data) from error

    def _read(self, chunk: dict[str, Any]) -> list[Piece]:
        choice = _choice(chunk)
        delta = _mapping(choice.get("delta"))
        pieces: list[Piece] = []
        thought = text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning"))
        if thought := self._joined("reasoning", thought):
            pieces.append(Reasoning(thought))
        for name in ("content", "refusal"):
            if said := self._joined(name, text_of(delta.get(name))):
                pieces += self._say(said)
        pieces += self._whole(choice.get("message"))
        for call in _list(delta.get("tool_calls")):
            self._calls.take(call)
        if isinstance(choice.get("finish_reason"), str):
            self.finished = True
            pieces.append(Finish(choice["finish_reason"]))
        counts = usage_counts(chunk.get("usage"))
        if counts:
            pieces.append(Usage(counts))
        return pieces

    def end(self) -> list[Piece]:
        """What was held back, and the calls. Raises StreamError if the reply has no end."""
        if not self.finished:
            raise StreamError("stream", "the stream ended before the reply did")
        pieces: list[Piece] = []
        for name, half in self._halves.items():
            pieces += [Reasoning(half)] if name == "reasoning" else self._say(half)
        if self._held:
            pieces.append(Reasoning(self._held) if self._closer else Text(self._held))
            self._held = None
        if self._calls:
            pieces.append(Calls(self._calls.whole()))
        return pieces

    def _joined(self, name: str, text: str) -> str:
        """The next piece of a field. Half a character at its end waits for the other half."""
        half = self._halves.pop(name, "")
        text = paired(half + text) if half else text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._halves[name] = text[-1]
            text = text[:-1]
        return text

    def _say(self, text: str) -> list[Piece]:
        """A piece of the reply; thoughts in tags at its very beginning are told apart.

        `_held` is what may still become a tag (None: the reply has begun), `_closer` the tag that
        ends the thoughts, `_trim` whether the blanks behind it are still to be left out.
        """
        self._said.append(text)
        if self._held is None:
            text = text.lstrip() if self._trim else text
            self._trim = self._trim and not text
            return [Text(text)] if text else []
        self._held += text
        if not self._closer:
            opened = _OPEN.match(self._held)
            if opened is None:
                start = self._held.lstrip()
                blanks = len(self._held) - len(start)
                if blanks <= BLANKS and any(tag.startswith(start.lower()) for tag in _OPENERS):
                    return []
                said, self._held = self._held, None
                return [Text(said)]
            self._closer = f"</{opened[1].lower()}>"
            self._held = self._held[opened.end() :]
        closed = re.search(self._closer, self._held, re.IGNORECASE)
        if closed:
            thought, rest = self._held[: closed.start()], self._held[closed.end() :].lstrip()
            self._held, self._closer = None, ""
            self._trim = not rest
            pieces: list[Piece] = [Reasoning(thought)] if thought else []
            return [*pieces, Text(rest)] if rest else pieces
        kept = _overlap(self._held, self._closer)
        thought, self._held = (
            self._held[: len(self._held) - kept],
            self._held[-kept:] if kept else "",
        )
        return [Reasoning(thought)] if thought else []

    def _whole(self, message: Any) -> list[Piece]:
        """Some servers end with the whole message once more: only what is missing counts."""
        if not isinstance(message, dict):
            return []
        for call in () if self._calls else _list(message.get("tool_calls")):
            self._calls.take(call)
        content, said = text_of(message.get("content")), "".join(self._said)
        self._said = [said]
        if not content.startswith(said):
            return []
        self._halves.pop("content", None)
        missing = content[len(said) :]
        return self._say(missing) if missing else []


def usage_counts(usage: Any) -> dict[str, int]:
    """The whole-number counts of a usage object, whatever else a server put there."""
    if not isinstance(usage, dict):
        return {}
    counts = _counts(usage)
    if "prompt_cache_hit_tokens" in counts:  # DeepSeek's name for it
        counts["cached_tokens"] = counts["prompt_cache_hit_tokens"]
    for name, part in _PARTS:
        details = _counts(_mapping(usage.get(name)))
        if part in details:
            counts[part] = details[part]
    return counts


# The parts of the two counts, and where OpenAI's format has them.
_PARTS = (
    ("prompt_tokens_details", "cached_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
)


def _counts(usage: dict[str, Any]) -> dict[str, int]:
    return {
        key: value
        for key, value in usage.items()
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0
    }


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _choice(chunk: dict[str, Any]) -> dict[str, Any]:
    """The first reply; where several were asked for, the others are not read."""
    for choice in map(_mapping, _list(chunk.get("choices"))):
        index = choice.get("index")
        if not isinstance(index, int) or index == 0:
            return choice
    return {}


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts of which some are text."""
    if isinstance(content, list):
        parts = [part for part in map(_mapping, content) if part.get("type", "text") == "text"]
        return "".join(text for part in parts if isinstance(text := part.get("text"), str))
    return content if isinstance(content, str) else ""


def _chunk(data: str) -> dict[str, Any]:
    """What is in an event. Raises StreamError for an error, ValueError for what is no object."""
    chunk = json.loads(data)
    if not isinstance(chunk, dict):
        raise ValueError("not an object")
    if chunk.get("error"):
        detail = chunk["error"]
        if not isinstance(detail, dict):
            raise StreamError("server", str(detail))
        raise StreamError("server", str(detail.get("message")), detail.get("code"))
    return chunk


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of the tag."""
    end = text[-len(tag) :].lower()
    return next((size for size in range(len(tag) - 1, 0, -1) if end.endswith(tag[:size])), 0)
