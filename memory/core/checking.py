"""Acceptance of a summary, and the archive that stands in when there is none.

A failure never loses memory: a text that is not plainly a summary is refused with a reason.
"""

import re
from collections.abc import Sequence

from memory.core.messages import Message
from memory.core.text import shorten
from memory.core.tokens import Counter

# Characters of one message that an archive keeps (S2).
ARCHIVE_MESSAGE = 500
ARCHIVE_GAP = "[… older lines left out; the transcript has them]"

_THINK = re.compile(r"<(think|thinking|reasoning)>.*?</\1>\s*", re.DOTALL | re.IGNORECASE)
_OPEN_THINK = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_MARKUP = re.compile(r"</?(tool_call|function_call|tool_use|transcript|message|memory)\b|\[TOOL_")
_REFUSAL = re.compile(
    r"^\W*(i'?m sorry|i am sorry|sorry[,.]|i cannot|i can'?t|i can’t|i’m sorry|i am unable|"
    r"i'?m unable|as an ai|unfortunately, i|抱歉|对不起|很抱歉|我无法|我不能|"
    r"作为(一个)?(ai|人工智能)|"
    r"申し訳|lo siento|es tut mir leid|je suis désolé|desculpe)",
    re.IGNORECASE,
)
_ERROR = re.compile(
    r"^\W*(error\b|\(?summari[sz]ation failed|traceback \(most recent|exception\b|"
    r"\{\s*\"error\"|http \d{3}\b|rate limit)",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"\b(no|isn't any|is no|not any) (conversation|content|messages?|transcript)\b.{0,40}"
    r"\b(to summari[sz]e|provided|given)|nothing (meaningful |of note )?to summari[sz]e|"
    r"没有(需要|可以|可供)?(总结|摘要)的?(内容|对话)|holds nothing meaningful",
    re.IGNORECASE,
)


def strip_reasoning(text: str) -> str | None:
    """`text` without its closed think blocks; None if one is left open."""
    text = _THINK.sub("", text)
    return None if _OPEN_THINK.search(text) else text.strip()


def refusal_reason(
    text: str, *, source: str, source_tokens: int, cap: int, finish: str, counter: Counter
) -> str | None:
    """Why a summariser's text may not become a summary; None if it may.

    `source` is what it was made of (previous summary and messages), `source_tokens` what that
    costs in a window, `cap` the longest a summary may be, in tokens, `finish` the provider's
    finish reason.
    """
    if finish == "length":
        return "cut"
    if finish == "content_filter":
        return "filtered"
    if finish == "tool_calls":
        return "markup"
    if not text.strip():
        return "empty"
    for reason, pattern in (
        ("refusal", _REFUSAL),
        ("error", _ERROR),
        ("remark", _REMARK),
        ("markup", _MARKUP),
    ):
        if pattern.search(text):
            return reason
    tokens = counter.count(text)
    if tokens > cap:
        return "over-cap"
    if tokens >= source_tokens:
        return "not-shorter"
    # One or two words for a long source are an answer or an acknowledgement, not a summary.
    if source_tokens >= 100 and len(text.strip()) < 12 and text.strip() not in source:
        return "too-short"
    if source_tokens >= 400 and tokens < 4:
        return "too-short"
    return None


def archive(
    previous: str, messages: Sequence[Message], *, cap: int, counter: Counter, limit: int
) -> str:
    """The summary that needs no model (S2): the previous text and the new messages, cut.

    Each message keeps at most `limit` characters behind its role; the oldest lines fall off, with
    a marker, until the whole is within `cap` tokens. The previous summary goes first, whole as
    long as it is at most half of the cap.
    """
    lines = []
    for message in messages:
        names = ", ".join(call.name for call in message.tool_calls)
        text = " ".join(message.content.split())
        if names:
            text = f"[calls {names}] {text}".strip()
        if text:
            lines.append(f"- {message.role}: {shorten(text, limit)}")
    head = previous.strip()
    if counter.count(head) > cap // 2:
        head = _newest_lines(head.splitlines(), cap // 2, counter)
    room = cap - counter.count(head) - 2
    body = _newest_lines(lines, room, counter)
    return "\n".join(part for part in (head, body) if part)


def _newest_lines(lines: Sequence[str], room: int, counter: Counter) -> str:
    """As many of the newest lines as fit into `room` tokens, a marker before them if some fell."""
    if counter.count("\n".join(lines)) <= room:
        return "\n".join(lines)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high) // 2
        if counter.count("\n".join((ARCHIVE_GAP, *lines[middle:]))) <= room:
            high = middle
        else:
            low = middle + 1
    kept = lines[low:]
    if kept:
        return "\n".join((ARCHIVE_GAP, *kept))
    if not lines:
        return ""
    # Not even one line fits: its end does.
    size = max(0, room - counter.count(ARCHIVE_GAP))
    return "\n".join((ARCHIVE_GAP, lines[-1][-size:])) if size > 0 else ""
