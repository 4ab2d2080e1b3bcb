"""What a tool returns, as text that can be sent, stored and shown: bounded, and inert.

A result is data of whoever wrote it. It goes into a message of role "tool", which is its fence; a
further one would break the JSON that most results are. Within it

- control characters and terminal sequences are taken out, as are invisible characters that hide
  or reorder text;
- what marks messages, tool calls and memory parts in a prompt loses its first bracket (`<` to `‹`,
  `[` to `［`): local servers read such marks as control tokens even within a message. In JSON they
  can only stand inside a string, so the structure of a result stays, and the change can be seen;
- HTML is left as it is: pages escape it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pydantic_core import to_jsonable_python

from memory.core.clipping import CUT_LEAST, cut_middle
from memory.core.text import REPLACEMENT, is_blank

# Characters of a result that are kept to be asked for; beyond them its head and tail.
WHOLE_LIMIT = 1_000_000
# Bytes of binary data that are shown, and what makes a text binary: more control and replaced
# characters than that, and more than one in ten.
HEAD_BYTES = 16
NOISE_LEAST = 32
NOISE_SHARE = 0.1

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
# What `clean` replaces, and all other control characters but tab and line feed. (A class in a
# pattern is ten times as fast as a translation table: nothing else runs meanwhile.)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Bidirectional overrides, and tag characters but for those of a flag (England, Scotland, Wales).
_HIDDEN = re.compile(r"[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]+")
_HIDDEN_OR_FLAG = re.compile(
    rf"(\U0001f3f4[\U000e0030-\U000e007a]{{2,6}}\U000e007f)|{_HIDDEN.pattern}"
)
_MARK = re.compile(
    r"<(?=[|｜/a-z])(?=\|[^<>|\s]{1,40}\|>|｜[^<>｜\s]{1,40}｜>|/?(?:SYS>>"
    r"|(?:s|bos|eos|think|memory|(?:start|end)_of_turn|(?:tool|function)_?(?:calls?|response)?)"
    r"(?:[\s=][^<>]{0,200})?>))",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    r"\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A result as text: `whole` is what is kept of it, at most `WHOLE_LIMIT` characters, `length`
    how long it was (characters; bytes of binary data)."""

    whole: str
    length: int
    empty: bool = False


def render(value: Any) -> Rendered:
    """A tool's return value as text: a string as it is, binary data described, all else as JSON.

    Raises ValueError where it is nothing of these.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        return Rendered(_described(data), len(data), not data)
    is_text = isinstance(value, str)
    text = value if is_text else _json(value)
    kept = _kept(text)
    whole = inert(kept)
    if is_text and whole.count(REPLACEMENT) > max(NOISE_LEAST, NOISE_SHARE * len(whole)):
        head = kept[:HEAD_BYTES].encode("utf-8", "surrogatepass")
        return Rendered(_described(head, len(text), "characters"), len(text))
    nothing = value is None or (not is_text and text in ("[]", "{}"))
    return Rendered(whole, len(text), nothing or is_blank(whole))


def inert(text: str) -> str:
    """`text` without anything that acts on a terminal, a reader's eye or a chat template."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text or "\x9b" in text:
        text = _ANSI.sub("", text)
    text = _CONTROLS.sub(REPLACEMENT, text)
    if _HIDDEN.search(text):
        text = _HIDDEN_OR_FLAG.sub(lambda found: found[1] or "", text)
    return _INSTRUCTION.sub("［", _MARK.sub("‹", text))


def bounded(text: str, limit: int, note: str = "") -> str:
    """`text` in at most `limit` characters: where it is longer, its head and tail, and `note`."""
    if len(text) <= limit:
        return text
    room = limit - CUT_LEAST - len(note)
    return cut_middle(text, room - room // 2, room // 2) + note


def _kept(text: str) -> str:
    if len(text) <= WHOLE_LIMIT:
        return text
    half = (WHOLE_LIMIT - 100) // 2
    gone = len(text) - 2 * half
    return f"{text[:half]}\n[… {gone:,} characters in between were not kept …]\n{text[-half:]}"


def _described(data: bytes, size: int = -1, unit: str = "bytes") -> str:
    size = len(data) if size < 0 else size
    if not size:
        return ""
    return f"(binary data, {size:,} {unit}, begins with {data[:HEAD_BYTES].hex(' ')})"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"{type(value).__name__} cannot be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """What JSON has no type for. Raises ValueError (pydantic's) for what no rule is known of."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _described(bytes(value))
    if isinstance(value, Iterator):
        raise ValueError("an iterator is no result; return a list")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return to_jsonable_python(value)
