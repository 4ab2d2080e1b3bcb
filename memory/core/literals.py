"""What must survive a summary word for word: ids, amounts, dates and their like (S4).

Found by shape, in English and Chinese, in linear time. Numbers written as words ("twelve", 三千)
are not seen, codes of letters only just behind a cue ("booking code: VAAOXJ"). Names and postal
addresses are found by cues only ("my name is", 我叫, "Mr", 地址是, the word "Street", a ZIP code
behind a state): any other name goes unseen.

Not a literal: one digit, with a unit or without ("7 nights", 3个, "#5", "3rd"), unless it is an
amount, a percentage, a decimal or scaled (3万); a list marker; a word with one digit behind it
("step2"); base64; anything over `LONGEST` characters. Other numbers are, years and versions too;
"GPT-4" and "v2.3.1" are codes. A flight number is a code where its text never speaks of flights.
"""

import re
import typing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

Kind = typing.Literal[
    "id", "code", "flight", "amount", "date", "time", "email", "phone", "url",
    "number", "name", "address",
]  # fmt: skip
_Kind = Kind | None  # None for noise
KINDS: tuple[Kind, ...] = typing.get_args(Kind)

# Characters of one literal; what is longer is data (tokens, images), too dear to be carried.
LONGEST = 300
# Distinct literals that one text gives, its first ones, so that a giant result cannot flood.
MOST = 2_000


@dataclass(frozen=True, slots=True)
class Literal:
    """One thing to keep verbatim: `text` is as it was first written."""

    kind: Kind
    text: str


# One character for one, so that places stay. The full-width comma parts sentences, not thousands.
_PLAIN = (
    {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if chr(code) not in "，；＂＇＜＞"}
    | {zero + digit: 48 + digit for zero in (0x660, 0x6F0, 0x966) for digit in range(10)}
    | dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212), "-")
    | dict.fromkeys((0, 0xA0, *range(0x2000, 0x200B), 0x202F, 0x3000), " ")
    | dict.fromkeys((0xB, 0xC, 0xD, 0x1C, 0x1D, 0x1E, 0x85, 0x2028, 0x2029), "\n")
    | {0xFFE5: "¥", 0x2019: "'"}
)
# A letter, digit or "_" of a script that parts its words: not Han, kana, Hangul, Thai and the like.
W = (
    r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
    r"\U00020000-\U0003ffff]"
)
_HAN, _TAKEN = r"[\u4e00-\u9fff]", "\0"  # the latter stands where something is found already

# Shapes are looked for in a skeleton of the text (`_skeleton`), so `\w` and `\b` are ASCII.
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)(?!\w)\.?"
)
_Y, _M, _D = r"(?P<y>[12][0-9]{3})", r"(?P<m>1[0-2]|0?[1-9])", r"(?P<d>3[01]|[12][0-9]|0?[1-9])"
_DAY = rf"{_D}(?:st|nd|rd|th)?(?![0-9a-z:]|\.[0-9])"
_YEAR = r"(?P<y>(?:1[5-9]|20|21)[0-9]{2})(?![0-9])"
_OPEN, _CLOSED = r"\b(?<![./-])", r"(?!\w|[./-]\w)"
DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        rf"\b(?<!\.)(?<!\w-){_Y}(?P<s>[-/.]){_M}(?P=s){_D}(?![0-9]|-\w)",
        rf"(?<![0-9])(?:{_Y} ?年 ?)?{_M} ?月 ?{_D} ?[日号]",
        rf"(?<![0-9]){_Y} ?年 ?{_M} ?月",
        rf"\b{_MONTH} {_DAY}(?:,? {_YEAR})?",
        rf"\b(?<!\.){_DAY} (?:of )?{_MONTH}(?:,? {_YEAR})?",
        rf"\b{_MONTH},? {_YEAR}",
        rf"{_OPEN}{_D}\.{_M}\.{_Y}{_CLOSED}",
        rf"{_OPEN}{_M}(?P<s>[/-])(?P<d>1[3-9]|2[0-9]|3[01])(?P=s){_Y}{_CLOSED}",
        rf"{_OPEN}(?P<d>1[3-9]|2[0-9]|3[01])(?P<s>[/-]){_M}(?P=s){_Y}{_CLOSED}",
        # Which of the two is the month is for the reader to say.
        rf"{_OPEN}[01]?[0-9](?P<s>[/-])[01]?[0-9](?P=s)[12][0-9]{{3}}{_CLOSED}",
    )
)
TIME = re.compile(
    r"(?:(?<![\w.+])(?<![0-9]:)|(?<=\0T))"
    r"(?:(?P<part>凌晨|早上|早晨|清晨|上午|中午|下午|傍晚|晚上|夜里|今晚|明早|明晚) ?)?"
    r"(?:(?P<h>2[0-4]|[01]?[0-9])(?::(?P<min>[0-5][0-9])(?::(?P<s>[0-5][0-9]))?(?![0-9:])|"
    r"[点时](?P<zh>[0-5]?[0-9])分|点(?:(?P<half>半)|[整钟]|(?P<bare>[0-5][0-9])(?![0-9]))?)"
    r"(?: ?(?P<ap>[ap])(?:m\b|\.m\.))?|(?P<hh>1[0-2]|0?[1-9]) ?(?P<app>[ap])(?:m\b|\.m\.))",
    re.ASCII | re.IGNORECASE,
)

CURRENCIES = {
    "usd": "us$ $ usd dollars dollar bucks 美元 美金", "eur": "€ eur euros euro 欧元",
    "cny": "¥ cny rmb 人民币 yuan 元 块钱 块", "gbp": "£ gbp 英镑", "jpy": "jpy yen 日元 円",
    "hkd": "hk$ hkd 港币 港元", "twd": "nt$ twd 台币", "inr": "₹ inr rupees", "krw": "₩ krw 韩元",
    "aud": "a$ aud", "cad": "c$ cad", "sgd": "s$ sgd", "brl": "r$ brl", "chf": "chf", "rub": "₽",
}  # fmt: skip
_SPELLED = sorted(map(re.escape, " ".join(CURRENCIES.values()).split()), key=len, reverse=True)
_SUFFIX = rf"(?P<after>{'|'.join(_SPELLED)})(?![a-z0-9]|(?<=元)[旦素宵])"
# Signs, codes of three letters and one word may stand before their number, too.
_PREFIX = "|".join(
    one for one in _SPELLED if not one.isalpha() or one in (*CURRENCIES, "rmb", "人民币")
)
_NUM = (
    r"(?P<n>[0-9]{1,3}(?:,[0-9]{3}){1,6}(?![0-9])(?:\.[0-9]{1,6})?|"
    r"[0-9]{1,3}(?:\.[0-9]{3}){1,6},[0-9]{2}|[0-9]{1,18}(?:\.[0-9]{1,6}|,[0-9]{2})?)(?![0-9])"
)
_SCALE = r"(?P<scale> ?(?:thousand|million|billion|bn)(?!\w)|[km](?!\w)| ?[百千万亿]{1,2})?"
AMOUNT = re.compile(
    rf"(?:(?<![a-z])|(?=[$€¥£₹₩₽]))(?P<before>{_PREFIX}) ?{_NUM}{_SCALE}(?: ?{_SUFFIX})?",
    re.ASCII | re.IGNORECASE,
)
AMOUNT_BEHIND = re.compile(rf"\b(?<![.,]){_NUM}{_SCALE} ?{_SUFFIX}", re.ASCII | re.IGNORECASE)

_NAME = r"[A-Z](?:[\w'-]{1,30}|\.)"
_NAMES = rf"{_NAME}(?: {_NAME}){{0,2}}"
_SURNAME = "[王李张刘陈杨赵黄周吴徐孙胡朱林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏]"
_ZIP = r"[A-Z]{2} [0-9]{5}(?:-[0-9]{4})?(?!\w)"


def _shape(kind: _Kind, hints: str, pattern: str) -> tuple[_Kind, str, re.Pattern[str]]:
    return kind, hints, re.compile(pattern, re.ASCII)


_DIGIT = "0 1 2 3 4 5 6 7 8 9"
# In this order: what is earlier is taken first, so that the more specific wins. Beside each what a
# text with it has one of, in small letters, "" for anything. A literal is the group `x` or all.
_SHAPES = (
    _shape("url", ":// www.", r"(?i:(?:https?|ftp|wss?)://|\bwww\.)[!#-;=?-\[\]_a-z{|}~]+"),
    _shape(
        None, "",
        r"(?m:^)[ \t]*[0-9]{1,2}[.)、](?=[ \t]*[^\s0-9])|"  # a list marker with something behind it
        r"\\(?:u[0-9a-fA-F]{4}|[nrt\"\\/])|"  # an escape of JSON
        r"\b(?<![+/])[\w+/]{200,}",  # data in base64
    ),
    _shape("email", "@", r"\b(?<![.+%-])[\w.+%-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"),
    *(("date", "月" if "月" in date.pattern else _DIGIT, date) for date in DATES),
    ("time", _DIGIT, TIME),
    _shape(
        "phone", _DIGIT,
        r"(?<!\w)(?:\+[0-9](?:[ .()-]{0,2}[0-9]){6,14}|"
        r"(?:1[-. ])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[-. ])[0-9]{3}[-. ][0-9]{4}|"
        r"1[3-9][0-9](?:[0-9]{8}|[ -][0-9]{4}[ -][0-9]{4})|[48]00[- ]?[0-9]{3}[- ]?[0-9]{4}|"
        r"(?:0[0-9]{2,3}[- ]|\(0[0-9]{2,3}\) ?)[0-9]{7,8})(?!-?\w)",
    ),
    *(("amount", _DIGIT, amount) for amount in (AMOUNT, AMOUNT_BEHIND)),
    _shape(
        "address", _DIGIT,
        r"\b[0-9]{1,6} (?:[A-Z][\w'.-]{0,30} ){1,4}(?:Street|St|Avenue|Ave|Drive|Dr|Road|Rd|Lane|"
        r"Ln|Boulevard|Blvd|Way|Court|Ct|Place|Pl|Square|Parkway)\b"
        rf"(?:(?:, ?[^\n,;\"\0]{{1,40}}){{0,3}}, ?{_ZIP})?|(?<=, ){_ZIP}",
    ),
    _shape(
        "address", "地址 住址",
        r"[地住]址[是为在:]{1,2} ?(?P<x>(?=[^\s，。；\0]{0,30}[省市区县镇村路街巷号楼室])"
        r"[^\s，。；;,?!\0\"'<>]{4,60})",
    ),
    _shape(
        "address", "address",
        r"(?i:(?<!ip )\baddress(?: is|:)) (?P<x>(?=[^\n;\"]{0,60}[0-9])(?=[\w.#-]+ [A-Za-z])"
        r"[A-Za-z0-9#][^\n;\"\0<>]{4,100}?)(?=\.(?:\s|$)|[\n;\"\0<>]|$)",
    ),
    _shape("name", "name call", rf"(?i:\bmy (?:full )?name(?: is|'s|:)|\bcall me) (?P<x>{_NAMES})"),
    _shape("name", "i", rf"(?i:\bi am|\bi'm) (?P<x>{_NAME} {_NAMES})"),
    _shape("name", "mr ms dr prof", rf"\b(?:Mrs?|Ms|Dr|Prof)\.? {_NAMES}"),
    _shape(
        "name", "我 名 联系",
        r"(?:我叫|名字[是叫]|名叫|(?:姓名|联系人)[:是]|联系人(?=[A-Z])|"
        rf"我是(?={_SURNAME}{_HAN}{{1,2}}(?!{_HAN}))) ?"
        rf"(?P<x>{_HAN}{{2,4}}?(?!{_HAN})|{_HAN}{{2,3}}?(?=今年|来自|住在|是一)|{_NAMES})",
    ),
    _shape("code", "/", r"(?<![\w/.:<~*)-])~?(?:/[\w.+-]+){2,}"),
    _shape(
        "code", "",
        r"(?i:(?<![a-z])(?:id|code|number|reservation|booking|confirmation|order|ticket|pnr|locator)s?|"
        r"[号码])[^\w\n]{0,8}(?i:is|are|was|[是为])?[^\w\n]{0,8}(?P<x>[A-Z]{5,12})\b",
    ),
)  # fmt: skip
# A word with a digit, and what joins it to the next: thousands, decimals, hyphens, a file's
# ending, "/b". More than 60 letters before the first digit are no word.
_WORD = re.compile(
    r"(?:#|(?<![^\s(\[:,=])-(?=[0-9]))?\b(?<!\w-)(?=[A-Za-z_-]{0,60}[0-9])"
    r"\w+(?:(?:(?<=[0-9]),(?=[0-9]{3}(?![0-9]))|\.(?=[0-9])|-)\w+)*(?:\.[a-z]{2,4}\b)?"
    r"(?:/\w{1,4}\b)?(?:[百千万亿]{1,2}| ?%| (?i:per ?cent)\b)?",
    re.ASCII,
)
NUMBER = re.compile(
    r"(?P<n>-?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?)(?P<scale>[百千万亿]{1,2})?"
    r"(?P<percent> ?%| (?i:per ?cent))?"
    r"(?:st|nd|rd|th|[smhdwyxgltkKVW]|[ckm]m|[km]g|m[sl]|mins?|hrs?|secs?|[KMGT]B|[kMG]?Hz|kWh?|"
    r"mAh|fps|p[xt]|rpm|mph|[kM]bps|oz|lbs?|ft)?(?:/[a-z]{1,4})?"
)
_FLIGHT = re.compile(r"[A-Z]{2,3}[0-9]{3,4}|[0-9][A-Z][0-9]{3,4}")
_FLYING = re.compile(r"flight|fly|airline|航班|飞|班机|航空", re.IGNORECASE)
# Numbers to be taken apart, not the groups of one like "7731-40718".
_COMPOUND = re.compile(
    r"[0-9.]{1,4}(?:-[0-9.]{1,4}|(?:-[0-9.]{1,2}){2})|(?:mid|pre|post|top|non)-[0-9]+|"
    r"[0-9]+(?:-[a-z]+)+(?:-[0-9]+)?|[0-9.]+/[0-9.]+"
)
_WORD_AND_DIGIT = re.compile(r"[A-Za-z]?[a-z_]*-?[0-9][a-z_]*")


def plain(text: str) -> str:
    """The text with digits, signs and spaces of other widths and scripts as in ASCII, in place."""
    return text.translate(_PLAIN)


def _skeleton(text: str) -> str:
    """The plain text with "a" or "A" for the letters of other scripts that part their words."""
    text = plain(text)
    if text.isascii():
        return text
    letters = [char for char in set(text) if not char.isascii() and re.match(W, char)]
    return text.translate({ord(char): "A" if char.isupper() else "a" for char in letters})


def spans(text: str) -> tuple[tuple[int, int, Literal], ...]:
    """Every literal of the text with its place (start and end, in characters), in order.

    Where two shapes overlap, the more specific is taken: an email is no id, a date no numbers.
    """
    found: list[tuple[int, int, Literal]] = []

    def take(kind: _Kind, match: re.Match[str]) -> str:
        start, end = match.span("x" if "x" in match.re.groupindex else 0)
        if kind in ("url", "code", "address"):
            end = start + len(_trimmed(match.string[start:end]))
        if kind and end - start <= LONGEST:
            found.append((start, end, Literal(kind, text[start:end])))
        whole, skip = match.group(), match.start()
        return whole[: start - skip] + _TAKEN * (end - start) + whole[end - skip :]

    rest = _skeleton(text)
    small = rest.lower()
    for kind, hints, pattern in _SHAPES:
        if not hints or any(hint in small for hint in hints.split()):
            rest = pattern.sub(partial(take, kind), rest)
    flying = _FLYING.search(text) is not None
    known: dict[str, tuple[tuple[int, int, Kind], ...]] = {}
    for match in _WORD.finditer(rest):
        start, word = match.start(), match.group()
        if word not in known:
            known[word] = tuple(_parts(word, flying))
        for at, end, sort in known[word]:
            found.append((start + at, start + end, Literal(sort, text[start + at : start + end])))
    return tuple(sorted(found, key=lambda span: span[0]))


def _trimmed(text: str) -> str:
    """Without the punctuation of the sentence around it; a bracket that it opened is its own."""
    own = any(bracket in text for bracket in "([{")
    return text.rstrip(" .,;:!?'*_~" if own else " .,;:!?'*_~)]}")


def _parts(word: str, flying: bool) -> Iterator[tuple[int, int, Kind]]:
    """What is worth keeping of a word, with its place in it: the word itself, or the numbers of a
    compound ("10-20", "24-hour", "10/12")."""
    pattern = r"[^-/]+" if _COMPOUND.fullmatch(word) else r"(?s).+"
    for part in re.finditer(pattern, word):
        kind = _kind(part.group(), flying)
        if kind and len(word) <= LONGEST:
            yield part.start(), part.end(), kind


def _kind(word: str, flying: bool) -> _Kind:
    """What a word is; None for what is not worth keeping."""
    digits = sum(char.isdigit() for char in word)
    number = NUMBER.fullmatch(word)
    if number:
        if word.isdigit() and digits > 6:
            return "id"
        if word.isdigit() and digits > 2 and word[0] == "0":
            return "code"
        scaled = number["scale"] or number["percent"] or "." in number["n"]
        return "number" if digits > 1 or scaled else None
    short = digits < 2 and sum(map(str.isalnum, word)) < 4
    if short or not digits or _WORD_AND_DIGIT.fullmatch(word):
        return None
    if flying and _FLIGHT.fullmatch(word):
        return "flight"
    is_id = word[0] == "#" or "_" in word or (digits > 3 and "." not in word)
    return "id" if is_id else "code"


def literals(text: str) -> tuple[Literal, ...]:
    """The literals of the text, each spelling once, in order; at most the first `MOST`."""
    seen: dict[tuple[Kind, str], Literal] = {}
    for *_, one in spans(text):
        seen.setdefault((one.kind, one.text.casefold()), one)
    return tuple(seen.values())[:MOST]


def to_json(found: Iterable[Literal]) -> list[list[str]]:
    """Rows for a JSON column: kind, text."""
    return [[one.kind, one.text] for one in found]


def from_json(rows: Iterable[Sequence[str]]) -> tuple[Literal, ...]:
    """The literals of such rows. Raises ValueError for a kind that there is not."""
    return tuple(Literal(KINDS[KINDS.index(row[0])], row[1]) for row in rows)
