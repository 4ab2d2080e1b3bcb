"""What a stream of chat completions says: typed deltas out of its events, whatever the server's
habits. Pure: no network, no settings.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from memory.core.messages import ToolCall

# Characters of a server's own words that an error repeats.
DETAIL = 500
# A reply that begins with its thoughts, as models without a field of their own write them.
_OPEN = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_OPENERS = ("<think>", "<thinking>", "<reasoning>")


class StreamError(Exception):
    """The stream is broken or tells of an error. `code` is "server" or "stream", `detail` the
    server's own words."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail[:DETAIL]


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
class _Call:
    id: str
    index: int | None
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class Reader:
    """Reads the events of one reply, in order."""

    finished: bool = False
    _text: str = ""
    _held: str | None = ""
    _closer: str = ""
    _trim: bool = False
    _calls: list[_Call] = field(default_factory=list)

    def feed(self, kind: str, data: str) -> list[Piece]:
        """The pieces in one event. Raises StreamError for an error, or for what is not a chunk.

        Chunks without a choice, without a delta or with null content are legal and carry nothing.
        """
        chunk = _chunk(kind, data)
        choices = chunk.get("choices") or []
        choice = _mapping(choices[0]) if choices else {}
        delta = _mapping(choice.get("delta"))
        pieces: list[Piece] = []
        if thought := _text(delta, "reasoning_content") or _text(delta, "reasoning"):
            pieces.append(Reasoning(thought))
        for name in ("content", "refusal"):
            if said := _text(delta, name):
                pieces += self._say(said)
        pieces += self._whole(choice.get("message"))
        for call in delta.get("tool_calls") or ():
            self._call(call)
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
        if self._held:
            pieces.append(Reasoning(self._held) if self._closer else Text(self._held))
            self._held = None
        if self._calls:
            made = (ToolCall(one.id, one.name, one.arguments or "{}") for one in self._calls)
            pieces.append(Calls(tuple(made)))
        return pieces

    def _say(self, text: str) -> list[Piece]:
        """A piece of the reply; thoughts in tags at its very beginning are told apart.

        `_held` is what may still become a tag (None: the reply has begun), `_closer` the tag that
        ends the thoughts, `_trim` whether the blanks behind it are still to be left out.
        """
        self._text += text
        if self._held is None:
            text = text.lstrip() if self._trim else text
            self._trim = self._trim and not text
            return [Text(text)] if text else []
        self._held += text
        if not self._closer:
            opened = _OPEN.match(self._held)
            if opened is None:
                start = self._held.lstrip().lower()
                if any(tag.startswith(start) for tag in _OPENERS):
                    return []
                said, self._held = self._held, None
                return [Text(said)]
            self._closer = f"</{opened[1].lower()}>"
            self._held = self._held[opened.end() :]
        thought, tag, rest = _partition(self._held, self._closer)
        if tag:
            self._held, self._closer = None, ""
            rest = rest.lstrip()
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
        for call in () if self._calls else message.get("tool_calls") or ():
            self._call(call)
        content = message.get("content")
        if not isinstance(content, str) or not content.startswith(self._text):
            return []
        missing = content[len(self._text) :]
        return self._say(missing) if missing else []

    def _call(self, part: Any) -> None:
        """A part of a tool call. A new id begins a new call, whatever its index; without an id the
        part belongs to the call with its index, else to the newest one; unless it has a name and
        that call is complete."""
        if not isinstance(part, dict):
            return
        function = _mapping(part.get("function")) or part
        index = part.get("index")
        index = index if isinstance(index, int) else None
        name, arguments = function.get("name"), function.get("arguments")
        call = self._open_call(part.get("id") or "", index, bool(name))
        if isinstance(name, str) and name != call.name:
            # Some servers repeat the name with every part, others send it in pieces.
            call.name = name if name.startswith(call.name) else call.name + name
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments += json.dumps(arguments, ensure_ascii=False)

    def _open_call(self, identity: str, index: int | None, named: bool) -> _Call:
        same = [one for one in self._calls if index is not None and one.index == index]
        known = same[-1] if same else self._calls[-1] if self._calls else None
        if identity:
            begun = next((one for one in self._calls if one.id == identity), None)
            fresh = begun is None
            known = begun or known
        else:
            fresh = known is None or (not same and (index is not None or named))
            fresh = fresh or (named and known is not None and _is_object(known.arguments))
        if known is None or fresh:
            known = _Call(identity or f"call_{len(self._calls)}", index)
            self._calls.append(known)
        return known


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


def _is_object(arguments: str) -> bool:
    """Whether the arguments of a call are complete."""
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(delta: dict[str, Any], name: str) -> str:
    value = delta.get(name)
    return value if isinstance(value, str) else ""


def _chunk(kind: str, data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise StreamError("server" if kind == "error" else "stream", data) from error
    if not isinstance(chunk, dict):
        raise StreamError("stream", data)
    if chunk.get("error"):
        detail = chunk["error"]
        message = detail.get("message") if isinstance(detail, dict) else detail
        raise StreamError("server", str(message))
    return chunk


def _partition(text: str, tag: str) -> tuple[str, str, str]:
    at = text.lower().find(tag)
    return (text, "", "") if at < 0 else (text[:at], tag, text[at + len(tag) :])


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of `text` may be the beginning of the tag."""
    lowered = text.lower()
    return next((size for size in range(len(tag) - 1, 0, -1) if lowered.endswith(tag[:size])), 0)
