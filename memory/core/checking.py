"""Acceptance of a summary, and the archive that stands in when there is none.

A failure never loses memory: a text that is not plainly a summary is refused with a reason.
"""

import re
from collections.abc import Sequence

from memory.core.messages import Message
from memory.core.prompts import OWN_SENTENCES
from memory.core.text import enclosed, is_blank, shorten, whole_edge
from memory.core.tokens import Counter

# Characters of one message that an archive keeps (S2).
ARCHIVE_MESSAGE = 500
# Characters of a title; more is an answer, not a title.
TITLE_LIMIT = 80
ARCHIVE_GAP = "[… older lines left out; the transcript has them]"
_ARCHIVED = re.compile(r"- (user|assistant|tool|system): ")

_OPEN_THINK = re.compile(r"<(think|thinking|reasoning)>", re.IGNORECASE)
_THINK_ENDS = {
    name: re.compile(rf"</{name}>\s*+", re.IGNORECASE)
    for name in ("think", "thinking", "reasoning")
}
_CLOSE_THINK = re.compile(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_MARKUP = re.compile(
    r"</?(tool_calls?|function_calls?|tool_use|tool_response|invoke|memory|previous_summary|"
    r"transcript|message)\b|<function=|<\|[a-z_]+\|>|\[/?TOOL_|"
    r"\{\s*\"name\"\s*:\s*\"[^\"]*\"\s*,\s*\"(arguments|parameters)\"\s*:",
)
# What a model says that will not do it. Only at the beginning: a summary may report a refusal.
_REFUSAL = re.compile(
    r"^\W*(i(['’]?m| am) (very |really |so )?(sorry|unable|not able|afraid)\b|"
    r"sorry(\W*[,.!:;—–]|\s+-|,? (but )?i\b)|i (do )?apologi[sz]e\b|(my )?apologies[,.!:]|"
    r"i (cannot|can not|can['’]?t|won['’]?t|will not|don['’]?t have|do not have)\b|"
    r"as an ai\b[^.!?\n]{0,60}?,? i\b|unfortunately,? i\b|"
    r"抱歉[,,。!!]|非常抱歉|很抱歉|对不起[,,。!!]|很遗憾[,,]我|我无法|我不能|"
    r"作为(一个|一名|一款)?(ai|人工智能)[^。\n]{0,20}我(无法|不能|没有)|"
    r"申し訳|すみません|죄송합니다|lo siento|es tut mir leid|tut mir leid|(je suis )?désolée?\b|"
    r"desculpe|mi dispiace|извините|к сожалению, я)",
    re.IGNORECASE,
)
# The text of a failure where a summary should be. A summary may begin with "Error 42 appears when".
_ERROR = re.compile(
    r"^\W*(\b[\w.]*(error|exception)\s*[:(\[]|error code: \d{3}\b|"
    r"an? (unknown |unexpected |internal )?error (has |was )?occurred|"
    r"error (while |when |during |in )?(generating|creating|calling|processing|writing)\b|"
    r"summar(y|i[sz]ation)( generation)? (has )?failed|failed to (generate|create|produce|summari)|"
    r"traceback \(most recent|\{\s*[\"'](error|detail)[\"']|<!doctype|<html\b|"
    r"http[ /][\d. ]*\d{3}\s*:|rate limit (reached|exceeded|error)|"
    r"(\d{3}\s+)?(bad gateway|service unavailable|gateway time-?out|internal server error|"
    r"too many requests)|"
    r"(发生|出现)?(了)?(错误|异常)[::]|摘要(生成)?失败|请求失败|生成(摘要)?失败)",
    re.IGNORECASE,
)
# Talk about the task in place of the work, within the first sentence or two.
_REMARK = re.compile(
    r"\b(no|isn['’]t any|not any) (conversation|content|messages?|transcript|text)\b"
    r".{0,20}\b(to summari[sz]e|(was|were|is|been) (provided|given)|provided\b)|"
    r"\bi (do not|don['’]t|cannot|can['’]t) (see|find) (a|any|the) (conversation|content|messages?|"
    r"transcript|text)\b|"
    r"nothing (meaningful |of note |here )?to summari[sz]e|holds nothing meaningful|"
    r"please (provide|share|send|paste) (me )?(with )?(the|a|your|some) (conversation|transcript|"
    r"text|messages?|content)|"
    r"没有(需要|可以|可供|任何)?(可)?(总结|摘要)的?(内容|对话)|请(您)?提供(需要|要)?(总结|摘要)?的?(对话|内容)",
    re.IGNORECASE,
)
REMARK_REACH = 200
_NOD = re.compile(
    r"\W*(ok|okay|sure|yes|no|done|understood|got it|noted|will do|thanks?|thank you|好|好的|明白|"
    r"明白了|是的?|收到|了解|知道了)\W*",
    re.IGNORECASE,
)


def strip_reasoning(text: str) -> str | None:
    """`text` without its think blocks; None if one is left open.

    Where the chat template opens the block itself, only its end is in the text: what stands
    before it is reasoning too.
    """
    kept, at = [], 0
    for opened, closed in enclosed(text, _OPEN_THINK, _THINK_ENDS):
        kept.append(text[at : opened.start()])
        at = closed.end()
    text = _CLOSE_THINK.split("".join((*kept, text[at:])))[-1]
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
    if finish in ("tool_calls", "function_call"):
        return "markup"
    if is_blank(text):
        return "empty"
    if _NOD.fullmatch(text):
        return "too-short"
    for reason, found in (
        ("refusal", _REFUSAL.search(text)),
        ("error", _ERROR.search(text)),
        ("remark", _REMARK.search(text, 0, REMARK_REACH)),
        ("remark", any(sentence in text for sentence in OWN_SENTENCES)),
        ("markup", _MARKUP.search(text)),
    ):
        if found:
            return reason
    tokens = counter.count(text)
    if tokens > cap:
        return "over-cap"
    if tokens >= source_tokens:
        return "not-shorter"
    # One or two words for a long source are an answer or an acknowledgement, or what a message told
    # the model to say; an order's number may be all that matters.
    brief = text.strip()
    matters = brief in source and any(char.isdigit() for char in brief)
    if source_tokens >= 100 and len(brief) < 12 and not matters:
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
    long as it is at most three quarters of the cap; lines that an earlier archive appended to it
    count as lines, so they fall off before it does.
    """
    summary = previous.strip().splitlines()
    edge = len(summary)
    while edge and (summary[edge - 1] == ARCHIVE_GAP or _ARCHIVED.match(summary[edge - 1])):
        edge -= 1
    lines = summary[edge:]
    for message in messages:
        names = ", ".join(call.name for call in message.tool_calls)
        text = " ".join(message.content.split())
        if names:
            text = f"[calls {names}] {text}".strip()
        if text:
            lines.append(f"- {message.role}: {shorten(text, limit)}")
    head = _newest_lines(summary[:edge], cap * 3 // 4, counter)
    # The line breaks between the parts may take a token each.
    body = _newest_lines(lines, cap - counter.count(head) - 2, counter)
    return "\n".join(part for part in (head, body) if part)


def _newest_lines(lines: Sequence[str], room: int, counter: Counter) -> str:
    """As many of the newest lines as fit into `room` tokens, a marker before them if some fell.

    Where not even one line fits, its end does.
    """
    if counter.count("\n".join(lines)) <= room:
        return "\n".join(lines)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high) // 2
        if counter.count("\n".join((ARCHIVE_GAP, *lines[middle:]))) <= room:
            high = middle
        else:
            low = middle + 1
    if low < len(lines):
        return "\n".join((ARCHIVE_GAP, *lines[low:]))
    line = lines[-1] if lines else ""
    low, high, end = 0, len(line), ""
    while low < high:
        middle = (low + high + 1) // 2
        kept = line[whole_edge(line, len(line) - middle, 1) :]
        if counter.count(f"{ARCHIVE_GAP}\n{kept}") <= room:
            low, end = middle, kept
        else:
            high = middle - 1
    return f"{ARCHIVE_GAP}\n{end}" if end else ""


def title_in(text: str) -> str | None:
    """The title in a model's answer: its one line without marks; None if it is not a title."""
    stripped = strip_reasoning(text)
    lines = (stripped or "").splitlines()
    if len(lines) != 1 or _REFUSAL.search(lines[0]) or _ERROR.search(lines[0]):
        return None
    title = " ".join(lines[0].split()).strip("\"'“”‘’「」《》*#_` .。")
    return title if 0 < len(title) <= TITLE_LIMIT else None
