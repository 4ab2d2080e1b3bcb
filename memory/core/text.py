"""Text at the boundary: what any string from outside becomes before it is counted or stored."""

import unicodedata

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_BAD = {0: REPLACEMENT} | dict.fromkeys(range(55296, 57344), REPLACEMENT)


def clean(text: str) -> str:
    """`text` with NUL and lone surrogates replaced by U+FFFD; everything else as it was typed.

    PostgreSQL stores no NUL and UTF-8 has no surrogates: replaced once here, the count, the row,
    the request and the echo all agree.
    """
    return text.translate(_BAD)


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
    return text[: limit - 1].rstrip() + "…" if limit > 0 else ""


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
