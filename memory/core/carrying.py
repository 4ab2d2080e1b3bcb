"""Which literals a text still has, and how those that a summary lost are carried over (S4).

Literals are compared by what they mean where that is certain, else by how they are written:
amounts by currency and value, dates and times by value, numbers by their digits, the rest apart
from case, width and separators. A number does not prove an amount, since the currency is gone; an
amount proves its number, a whole date its month, its year and itself without the year. A date that
may be read in two ways (05/06/2024) is compared as written.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from memory.core import literals as shapes
from memory.core.literals import KINDS, Kind, Literal, W, literals, spans
from memory.core.messages import Message
from memory.core.tokens import Counter

# A literal of more characters costs as much as ten ids, so it comes after all others.
LONG = 80
# Positions that each further use makes a literal newer: about one turn with a tool call.
USE = 4

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CURRENCY = {word: code for code, words in shapes.CURRENCIES.items() for word in words.split()}
_POWERS = {"thousand": 3, "k": 3, "million": 6, "m": 6, "billion": 9, "bn": 9}
_POWERS |= dict(zip("百千万亿", (2, 3, 4, 8), strict=True))
# The hours, as spoken, that lie after noon. Twelve o'clock at night is midnight.
_NIGHT = ("凌晨", "晚上", "夜里", "今晚", "明晚")
_AFTER_NOON = {"中午": range(1, 9), "下午": range(1, 12), "傍晚": range(1, 12)}
_AFTER_NOON |= dict.fromkeys(_NIGHT[1:], range(5, 12))
# One character of JSON that keeps to ASCII; halves of a pair stay as they are.
_ESCAPE = re.compile(r"\\u((?!d[89a-f])[0-9a-f]{4})", re.IGNORECASE)


def _fold(text: str) -> str:
    """The text as it is compared: one width, one case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", shapes.plain(text)).casefold().split())


def _value(number: str, scale: str | None) -> str:
    """The value of a number as written, without needless zeros."""
    if re.search(r",[0-9]{2}$", number):
        number = number.replace(".", "").replace(",", ".")
    scale = (scale or "").strip()
    power = _POWERS[scale] if scale in _POWERS else sum(_POWERS[char] for char in scale)
    return f"{Decimal(number.replace(',', '')).scaleb(power).normalize():f}"


def _amount(match: re.Match[str]) -> tuple[str, ...]:
    currency = _CURRENCY[match.groupdict().get("before") or match["after"]]
    value = _value(match["n"], match["scale"])
    return f"m:{currency}:{value}", f"w:{match['n'].replace(',', '')}", f"w:{value}"


def _number(match: re.Match[str]) -> tuple[str, ...]:
    value = _value(match["n"], match["scale"])
    written = value if match["scale"] else match["n"].replace(",", "")
    marks, digits = ("%" if match["percent"] else "", ""), (written, written.lstrip("-"))
    return *(f"w:{one}{mark}" for mark in marks for one in digits), f"v:{value}"


def _date(match: re.Match[str]) -> tuple[str, ...]:
    parts = match.groupdict()
    name, year, day = parts.get("month"), parts.get("y") or "", int(parts.get("d") or 0)
    month = _MONTHS.index(name[:3]) + 1 if name else int(parts.get("m", 0))
    if not month:
        return (f"x:{match.group()}",)
    wholes = (f"d:{year}-{month}-0", f"d:-{month}-{day}") if year and day else ()
    return f"d:{year}-{month}-{day}", *wholes, *([f"w:{year}"] if year else [])


def _time(match: re.Match[str]) -> tuple[str, ...]:
    hour = int(match["h"] or match["hh"])
    minute = int(match["min"] or match["zh"] or match["bare"] or (match["half"] and 30) or 0)
    part, half = match["part"], match["ap"] or match["app"]
    if half and hour < 13:
        hour = hour % 12 + 12 * (half == "p")
    elif hour in _AFTER_NOON.get(part, ()):
        hour += 12
    elif hour == 12 and part in _NIGHT:
        hour = 0
    return (f"t:{hour % 24}:{minute}:{int(match['s'] or 0)}",)


def _word(text: str) -> tuple[str, ...]:
    word = text.lstrip("#")
    return (f"w:{word}", f"v:{word}") if word.isdecimal() else (f"w:{word}",)


# These are in a text only as such; the others also inside something longer, such as a URL.
_Meaning = tuple[tuple[re.Pattern[str], ...], Callable[[re.Match[str]], tuple[str, ...]]]
_BY_VALUE: dict[Kind, _Meaning] = {
    "amount": ((shapes.AMOUNT, shapes.AMOUNT_BEHIND), _amount),
    "number": ((shapes.NUMBER,), _number),
    "date": (shapes.DATES, _date),
    "time": ((shapes.TIME,), _time),
}
_BY_TEXT: dict[Kind, Callable[[str], tuple[str, ...]]] = {
    "phone": lambda text: _word(re.sub("[^0-9]", "", text)),
    "url": lambda text: (f"x:{text.rstrip('/')}",),
    "name": lambda text: (f"x:{text}",),
    "address": lambda text: (f"x:{text}", *(f"w:{one}" for one in re.findall("[0-9]{2,}", text))),
}
# A character of a word, and places at which no word goes on to the left or to the right.
_WORD, _OPEN, _CLOSED = (re.compile(pattern) for pattern in (W, f"(?<!{W})(?<!{W}-)", f"(?!-?{W})"))


def _proofs(literal: Literal) -> tuple[str, ...]:
    """What its presence in a text proves to be there: first itself, then what it includes."""
    text = _fold(literal.text)
    patterns, meaning = _BY_VALUE.get(literal.kind, ((), _time))
    match = next(filter(None, (pattern.match(text) for pattern in patterns)), None)
    return meaning(match) if match else _BY_TEXT.get(literal.kind, _word)(text)


def same(one: Literal, other: Literal) -> bool:
    """Whether both mean the same: "$1,299" and "1299.00 dollars", 3pm and 下午3点."""
    return _proofs(one)[0] == _proofs(other)[0]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What some texts prove, to look literals up in."""

    proved: frozenset[str]
    folded: str

    def holds(self, literal: Literal, *, bare: bool = False) -> bool:
        """Whether the literal is in one of the texts; `bare`: an amount also without currency."""
        proofs = _proofs(literal)
        if proofs[0] in self.proved:
            return True
        if literal.kind in _BY_VALUE:
            return bare and literal.kind == "amount" and f"v{proofs[-1][1:]}" in self.proved
        phrase = _fold(literal.text).lstrip("#")
        before, behind = _WORD.match(phrase), _WORD.match(phrase[-1:])
        # Found as text, not by a pattern of its own: to compile one takes milliseconds.
        at = self.folded.find(phrase)
        while at >= 0:
            opens = not before or _OPEN.match(self.folded, at)
            if opens and (not behind or _CLOSED.match(self.folded, at + len(phrase))):
                return True
            at = self.folded.find(phrase, at + 1)
        return False


def evidence(texts: Iterable[str]) -> Evidence:
    """What the texts together prove."""
    texts = tuple(texts)
    distinct = {literal for text in texts for _, _, literal in spans(text)}
    proved = frozenset(proof for literal in distinct for proof in _proofs(literal))
    return Evidence(proved, "\n".join(map(_fold, texts)))


def occurs(literal: Literal, text: str) -> bool:
    """Whether the literal is in the text, perhaps spelled differently: 12 is not in "123"."""
    return evidence((text,)).holds(literal)


def lost(found: Iterable[Literal], text: str) -> tuple[Literal, ...]:
    """Those of the literals that do not occur in the text."""
    proof = evidence((text,))
    return tuple(one for one in found if not proof.holds(one))


def unsupported(summary_text: str, source_texts: Iterable[str]) -> tuple[Literal, ...]:
    """The literals of a summary that occur nowhere in what it was made of (S4).

    An amount is supported by a bare number of its value, since tables keep the currency elsewhere.
    """
    proof = evidence(source_texts)
    return tuple(one for one in literals(summary_text) if not proof.holds(one, bare=True))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A literal to carry: `position` of the newest message with it, `uses`: messages with it."""

    literal: Literal
    position: int
    uses: int


@dataclass(frozen=True, slots=True)
class Carried:
    """Candidates, the most worth keeping first; the first `fitting` of them are carried."""

    candidates: tuple[Candidate, ...]
    fitting: int

    @property
    def kept(self) -> tuple[Literal, ...]:
        """What stands in the window beside the summary."""
        return tuple(one.literal for one in self.candidates[: self.fitting])

    @property
    def pushed_out(self) -> tuple[Literal, ...]:
        """What the cap left no room for: to be listed and looked up."""
        return tuple(one.literal for one in self.candidates[self.fitting :])


def source_text(message: Message) -> str:
    """All of a message that a summary is made of: its text and its calls' arguments, with the
    characters that JSON wrote as escapes."""
    text = "\n".join((message.content, *(call.arguments for call in message.tool_calls)))
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)


def _distinct(text: str) -> dict[str, Literal]:
    """The literals of the text by what they mean, each as first written."""
    found: dict[str, Literal] = {}
    for literal in literals(text):
        found.setdefault(_proofs(literal)[0], literal)
    return found


def candidates(
    messages: Sequence[Message],
    previous: Iterable[Candidate],
    summary_text: str,
    *,
    previous_summary: str = "",
    invented: Iterable[Literal] = (),
) -> tuple[Candidate, ...]:
    """The literals that the new summary lost, of all that it was made of, in order of appearance.

    That is the folded `messages`, the candidates of the version before (with those pushed out, if
    they shall have another chance) and its summary's text, apart from what that `invented` (its
    unsupported literals): a summary's mistakes are not carried on. What only the previous summary
    knew counts as used once, just before the messages. What another lost literal includes (an
    amount its number) is left out.
    """
    known = {_proofs(one.literal)[0]: one for one in previous}
    first = min((message.position for message in messages), default=1)
    mistakes = {_proofs(literal)[0] for literal in invented}
    for name, literal in _distinct(previous_summary).items():
        if name not in mistakes:
            known.setdefault(name, Candidate(literal, first - 1, 1))
    for message in messages:
        for name, literal in _distinct(source_text(message)).items():
            old = known.get(name, Candidate(literal, message.position, 0))
            newest = max(old.position, message.position)
            known[name] = Candidate(old.literal, newest, old.uses + 1)
    proof = evidence((summary_text,))
    missing = {name: one for name, one in known.items() if not proof.holds(one.literal)}
    parts = {part for name, one in missing.items() for part in _proofs(one.literal) if part != name}
    return tuple(one for name, one in missing.items() if name not in parts)


def carry(found: Iterable[Candidate], *, cap: int, counter: Counter) -> Carried:
    """The candidates in order of worth, as many of the first as `cap` tokens have room for (S4).

    Worth: ids, codes, flights, amounts, dates, times, emails, phones and URLs first, then names and
    addresses, then plain numbers, then whatever is longer than `LONG`; within these the newest
    first, each further use counting as `USE` positions newer. A larger cap never carries fewer.
    """
    ordered = tuple(sorted(found, key=_worth))
    low, high = 0, len(ordered)
    # Whether or not a count always rises with the text, halving goes at least as far right with a
    # larger cap, and ends at a length that was seen to fit.
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(render(one.literal for one in ordered[:middle])) <= cap:
            low = middle
        else:
            high = middle - 1
    return Carried(ordered, low)


def _worth(one: Candidate) -> tuple[bool, int, int, int]:
    """Sorts the most worth keeping first."""
    rank = {"name": 1, "address": 1, "number": 2}.get(one.literal.kind, 0)
    return len(one.literal.text) > LONG, rank, -(one.position + USE * (one.uses - 1)), -one.position


def render(found: Iterable[Literal]) -> str:
    """The literals as they stand in the window: a line per kind, "- id: #W23, #W24"."""
    lines: dict[Kind, list[str]] = {}
    for literal in found:
        lines.setdefault(literal.kind, []).append(literal.text)
    # Dates and addresses have commas of their own.
    marks = {"date": "; ", "address": "; "}
    return "\n".join(
        f"- {kind}: {marks.get(kind, ', ').join(lines[kind])}" for kind in KINDS if kind in lines
    )


def to_json(found: Iterable[Candidate]) -> list[list[str | int]]:
    """Rows for a JSON column: kind, text, position, uses."""
    return [[one.literal.kind, one.literal.text, one.position, one.uses] for one in found]


def from_json(rows: Iterable[Sequence[Any]]) -> tuple[Candidate, ...]:
    """The candidates of such rows. Raises ValueError for a kind that there is not."""
    return tuple(Candidate(shapes.from_json([row[:2]])[0], row[2], row[3]) for row in rows)
