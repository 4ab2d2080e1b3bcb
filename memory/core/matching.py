"""Finding the words of a question in texts, in English, Chinese and their like.

A question becomes terms: ids and numbers as they are, words in their singular, text of scripts that
do not part their words in overlapping pieces of two characters. One-letter words and those that say
nothing ("the", 什么) count only where there are no others. Meaning is not looked at.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from memory.core.literals import W
from memory.core.text import whole_edge

# Characters of a question that are read, and terms that are looked for.
QUERY_MOST = 1_000
TERMS_MOST = 12
# How much a term counts that stands whole, at the beginning of a word, anywhere else; and how many
# times as much an id or number that stands whole.
WHOLE, BEGINNING, INSIDE = 1.0, 0.8, 0.25
EXACT_WEIGHT = 3.0
# Places of one term that an excerpt chooses from.
PLACES_MOST = 100
# Digits that make a part of a longer id one by itself.
PART_LEAST = 5

_STOP_WORDS = (
    "about after all also am an and any are as at be been before but by can could did do does for "
    "from get had has have he her him his how if in into is it its just me my no not of on or our "
    "out please said say she should so some tell than that the their them then there these they "
    "this those to us was we were what when where which who why will with would you your "
    "一下 一些 什么 可以 告诉 咱们 如何 帮忙 怎么 怎样 我们 所以 时候 有没 没有 知道 还是 还有 "
    "以及 因为 多少 为什 如果 或者 但是 需要 能否 是否"
)
_STOP = frozenset(_STOP_WORDS.split())
# A piece with one of these stands across two words, or is none.
_PARTICLES = frozenset("的了吗呢吧啊呀嘛么们我你您他她它是这那哪和与或请")
# What is parted by spaces and may be joined (an id, a date, an address), or a run of what is not.
_TOKEN = re.compile(rf"{W}+(?:[-_.,:/@+'’]{W}+)*|(?:(?!{W})\w)+")
_PARTS = re.compile(rf"{W}+")
_NUMBER = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15}")
_DIGIT = re.compile(r"[0-9]")
_WIDE = {48 + digit: 0xFF10 + digit for digit in range(10)}


@dataclass(frozen=True, slots=True)
class Term:
    """What is looked for: `text` names it, `forms` are its spellings (whatever the case of ASCII
    letters), `exact` says that it is an id or a number."""

    text: str
    forms: tuple[str, ...]
    exact: bool = False


def terms_of(query: str) -> tuple[Term, ...]:
    """The terms of a question, at most `TERMS_MOST`: ids and numbers first, then the longest."""
    text = unicodedata.normalize("NFKC", query[:QUERY_MOST])
    found = [one for token in _TOKEN.findall(text) for one in _of_token(token)]
    said = [(term, exact) for term, exact in found if not _says_nothing(term)]
    distinct = dict[str, Term]()
    for term, exact in said or found:
        distinct.setdefault(term.casefold(), Term(term.casefold(), _forms(term, exact), exact))
    ranked = sorted(distinct.values(), key=lambda term: (not term.exact, -len(term.text)))
    return tuple(ranked[:TERMS_MOST])


def strength(text: str, term: Term) -> float:
    """How well a text has a term: 0 where it does not."""
    whole, beginning, anywhere = _patterns(term)
    if not anywhere.search(text):
        return 0.0
    if whole.search(text):
        return EXACT_WEIGHT if term.exact else WHOLE
    return BEGINNING if beginning.search(text) else INSIDE


def excerpt(text: str, terms: Sequence[Term], limit: int) -> str:
    """`text` in one line of at most `limit` characters: the part with the most of the terms, `…`
    where it was cut."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    room = limit - 2
    first, last = _densest(line, terms, room)
    start = max(0, min(first - (room - (last - first)) // 2, len(line) - room))
    start = whole_edge(line, start, 1)
    end = whole_edge(line, start + room, -1)
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"


def _of_token(token: str) -> Iterator[tuple[str, bool]]:
    """The words of a token, each with whether it is an id or a number."""
    if not _PARTS.match(token):
        pieces = [a + b for a, b in pairwise(token)]
        yield from ((piece, False) for piece in pieces or [token])
        return
    parts = _PARTS.findall(token)
    if _DIGIT.search(token) or "@" in token:
        yield token, True
        if len(parts) == 1:
            return
        parts = [part for part in parts if not _DIGIT.search(part) or len(part) >= PART_LEAST]
    for part in parts:
        exact = bool(_DIGIT.search(part))
        yield (part if exact else _singular(part)), exact


def _singular(word: str) -> str:
    """An English word without the ending of its plural; the rest of it is found in both."""
    low = word.casefold()
    if len(word) < 4 or not low.endswith("s") or low.endswith(("ss", "us", "is")) or low in _STOP:
        return word
    if low.endswith("ies") and len(word) > 5:
        return word[:-3]
    return word[:-2] if low.endswith(("xes", "zes", "ches", "shes", "sses")) else word[:-1]


def _says_nothing(term: str) -> bool:
    is_piece = not _PARTS.match(term)
    return (
        (len(term) == 1 and not is_piece)
        or term.casefold() in _STOP
        or (is_piece and not _PARTICLES.isdisjoint(term))
    )


def _forms(word: str, exact: bool) -> tuple[str, ...]:
    low = word.casefold()
    if word.isascii():
        number = low.replace(",", "")
        if not exact or not _NUMBER.fullmatch(low):
            return (low,)
        return tuple(dict.fromkeys((low, number, f"{int(number):,}", number.translate(_WIDE))))
    # Databases fold the case of ASCII only, and leave the parts of a letter apart.
    spelt = (low, word, word.upper(), word.capitalize(), unicodedata.normalize("NFD", low))
    return tuple(dict.fromkeys(spelt))


@lru_cache(maxsize=256)
def _patterns(term: Term) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """What finds a term whole, at the beginning of a word, anywhere."""
    anywhere = f"(?i:{'|'.join(map(re.escape, term.forms))})"
    before = f"(?<!{W})" if re.match(W, term.text) else ""
    behind = f"(?!{W})" if re.match(W, term.text[-1]) else ""
    whole, beginning = f"{before}{anywhere}{behind}", f"{before}{anywhere}"
    return re.compile(whole), re.compile(beginning), re.compile(anywhere)


def _densest(line: str, terms: Sequence[Term], room: int) -> tuple[int, int]:
    """Where the stretch of at most `room` characters begins and ends that has the most terms, the
    first of equals."""
    places = sorted(
        (found.start(), found.end(), index, EXACT_WEIGHT if term.exact else WHOLE)
        for index, term in enumerate(terms)
        for found in islice(_patterns(term)[2].finditer(line), PLACES_MOST)
    )
    best, stretch = 0.0, (0, 0)
    for at, (start, end, *_) in enumerate(places):
        weights = dict[int, float]()
        for _, stop, index, weight in islice(places, at, None):
            if stop - start > room:
                break
            weights[index], end = weight, max(end, stop)
        if sum(weights.values()) > best:
            best, stretch = sum(weights.values()), (start, min(end, start + room))
    return stretch
