"""Cutting a text, or the strings within JSON, to its head and tail with a marker between."""

import json
import re

from memory.core.text import clean, whole_edge

# A cut leaves out more characters than that: more than the longest marker has.
CUT_LEAST = 80
_LEFT_OUT = "characters left out; the transcript has them"
_MARKER = re.compile(rf"\n?\[… ([0-9]{{1,3}}(?:,[0-9]{{3}}){{0,4}}) {_LEFT_OUT} …\]\n?")
# A string in a JSON text, and the colon behind it if it is a key.
_STRING = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?', re.DOTALL)


def cut_middle(text: str, head: int, tail: int) -> str:
    """The first `head` and last `tail` characters of `text`, between them a marker line with the
    number of characters left out; `text` itself where these would be 80 or fewer.

    No joined character is split. Markers of earlier cuts that fall into the gap are added up:
    cutting twice says what cutting once would.
    """
    start = whole_edge(text, min(head, len(text)), -1)
    end = whole_edge(text, max(len(text) - tail, 0), 1)
    earlier = 0
    # To look for the words first is ten times as fast.
    for cut in _MARKER.finditer(text) if _LEFT_OUT in text else ():
        if start < cut.end() and cut.start() < end:
            start, end = min(start, cut.start()), max(end, cut.end())
            earlier += int(cut[1].replace(",", "")) - len(cut[0])
    if end - start <= CUT_LEAST:
        return text
    return f"{text[:start]}\n[… {end - start + earlier:,} {_LEFT_OUT} …]\n{text[end:]}"


def cut_strings(arguments: str, limit: int, head: int, tail: int = 0) -> str:
    """JSON with its string values over `limit` characters cut to `head` and `tail`, all else as it
    was written. What is no JSON is cut as one string, which then stands in an object under the key
    "unparsed"."""

    def cut(found: re.Match[str]) -> str:
        if found[2] or len(found[1]) - 2 <= limit:
            return found[0]
        value = json.loads(found[1])
        short = cut_middle(value, head, tail) if len(value) > limit else value
        # Cleaned: an escape may stand for half a character, which could not be sent as one.
        return found[0] if short == value else json.dumps(clean(short), ensure_ascii=False)

    if len(arguments) <= limit:
        return arguments
    try:  # as strict servers read it: without NaN, with numbers of any length
        json.loads(arguments, parse_int=str, parse_float=str, parse_constant=int)
    except (ValueError, RecursionError):
        short = cut_middle(arguments, head, tail)
        if short == arguments:
            return arguments
        return json.dumps({"unparsed": clean(short)}, ensure_ascii=False)
    return _STRING.sub(cut, arguments)
