"""Text at the boundary: what any string from outside becomes before it is counted or stored."""

import re
import unicodedata
from collections.abc import Iterator, Mapping

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BAD = {0: REPLACEMENT} | dict.fromkeys(range(55296, 57344), REPLACEMENT)
_HALVES = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")

# Characters that one emoji or letter is at most looked for; stacked accents may be more.
JOINED_MOST = 32
_JOINER = "\N{ZERO WIDTH JOINER}"
_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_FLAGS = frozenset(map(chr, range(0x1F1E6, 0x1F200)))


def clean(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD; everything else as it was typed.

    PostgreSQL stores no NUL and UTF-8 has no surrogates: replaced once here, the count, the row,
    the request and the echo all agree.
    """
    return text.translate(_BAD)


def paired(text: str) -> str:
    """`text` with the two halves of a character (surrogates) put together where they meet: a server
    may cut there. Halves that stand alone stay."""
    return _HALVES.sub(
        lambda halves: halves[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text
    )


def is_blank(text: str) -> bool:
    """Whether nothing visible is in it: only white space, controls and replaced characters."""
    return all(
        char == REPLACEMENT or char.isspace() or unicodedata.category(char) in ("Cc", "Cf")
        for char in text
    )


def shorten(text: str, limit: int) -> str:
    """`text` cut to at most `limit` characters, with an ellipsis as the last where it was cut."""
    if len(text) <= limit:
        return text
    return text[: whole_edge(text, limit - 1, -1)].rstrip() + "…" if limit > 0 else ""


def whole_edge(text: str, at: int, step: int) -> int:
    """The index nearest to `at`, going by `step` (-1 or 1), that splits no joined character: an
    emoji of several, a letter and its accents, a flag. `at` itself where none is near."""
    for near in range(at, at + step * JOINED_MOST, step):
        if not 0 < near < len(text) or not _is_joined(text, near):
            return near
    return at


def _is_joined(text: str, at: int) -> bool:
    """Whether the characters before and at `at` are shown as one."""
    before, after = text[at - 1], text[at]
    if before == _JOINER or after == _JOINER or after in _TONES:
        return True
    if unicodedata.category(after).startswith("M"):
        return True
    flags = 0
    while after in _FLAGS and flags < at and text[at - 1 - flags] in _FLAGS:
        flags += 1
    return flags % 2 == 1


def enclosed(
    text: str, opening: re.Pattern[str], closings: Mapping[str, re.Pattern[str]]
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Where something is opened and where it is closed, one after the other, in linear time.

    The first group of `opening` is, in lower case, the name of its pattern in `closings`. What is
    not closed is passed over. One pattern for both would look for its end from each beginning.
    """
    at, ends = 0, dict(closings)
    while opened := opening.search(text, at):
        at = opened.end()
        name = opened[1].lower()
        if name not in ends:
            continue
        closed = ends[name].search(text, at)
        if closed is None:  # so there is no end for a later one either
            del ends[name]
            continue
        yield opened, closed
        at = closed.end()


def script_language(text: str) -> str:
    """The language code that the letters of `text` speak for ("zh", "ja", ...), or "" for Latin.

    Only the script is looked at: kana make it Japanese, Han alone Chinese. The most frequent
    script wins, a Han character counting as three letters of an alphabet.
    """
    scores = dict.fromkeys(("zh", "ja", "ko", "ru", "ar", ""), 0)
    kana = False
    for char in text:
        code = ord(char)
        if 0x3040 <= code <= 0x30FF:
            kana = True
            scores["zh"] += 3
        elif 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF:
            scores["zh"] += 3
        elif 0xAC00 <= code <= 0xD7AF:
            scores["ko"] += 3
        elif 0x0400 <= code <= 0x04FF:
            scores["ru"] += 1
        elif 0x0600 <= code <= 0x06FF:
            scores["ar"] += 1
        elif char.isalpha():
            scores[""] += 1
    best = max(scores, key=lambda language: scores[language])
    if scores[best] == 0:
        return ""
    return "ja" if best == "zh" and kana else best
