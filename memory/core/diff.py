"""The difference between two texts, by words; Han, kana and the like by characters."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Change = Literal["same", "removed", "added"]

# A word, one character of a script without spaces, white space, or a single mark.
_PIECE = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\s+|.", re.DOTALL)

# Pieces beyond which texts are compared by lines: matching words is quadratic at worst.
LARGE = 20_000


@dataclass(frozen=True, slots=True)
class Part:
    """A run of text that both have, or that only the old or only the new one has."""

    change: Change
    text: str


def word_diff(old: str, new: str) -> tuple[Part, ...]:
    """The parts in reading order; without "added" they are `old`, without "removed" `new`."""
    before, after = _PIECE.findall(old), _PIECE.findall(new)
    if len(before) + len(after) > LARGE:
        before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    parts: list[Part] = []
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(Part("same", "".join(before[a:b])))
            continue
        if a < b:
            parts.append(Part("removed", "".join(before[a:b])))
        if c < d:
            parts.append(Part("added", "".join(after[c:d])))
    return tuple(parts)
