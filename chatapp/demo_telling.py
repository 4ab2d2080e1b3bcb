"""How the demo model tells what its tools returned."""

import re
from collections.abc import Sequence

from chatapp.demo_seen import Result, Seen
from chatapp.demo_texts import Both
from memory.core.text import shorten

# Characters of one result that are told.
RESULT_SHOWN = 600
# How a result begins that says that nothing was done or found, by itself or within a sentence.
FAILED = re.compile(
    r"(?:Not run|There is no|Nothing (?:was )?found|\(no result|[\w-]+ (?:failed|gave no result)\b"
    r"|没有(?:查到|找到|“|这个价位)|无法)|[^\n]{0,120}?(?:\bcannot\b|\bis no longer\b"
    r"|\bis not (?:exactly|paid)\b|不能退款|暂不能|已停售|无法|尚未付款)"
)
CANNOT: Both = ("That cannot be done: ", "没有办成：")
# What a refusal tells the model to do, as a question or an offer to the user; what is about
# the call itself is left out.
TO_USER = (
    (re.compile(r" (?:Send one JSON object|Change the arguments|Call again) [^\n]*"), ""),
    (re.compile(r": ask the customer for the number\."), ". Please check the number."),
    (re.compile(r"Ask the customer which one\."), "Which one is it?"),
    (re.compile(r"Ask the customer for the reason\."), "What is the reason?"),
    (re.compile(r"Offer a repair: it is free"), "It can be repaired, free of charge,"),
    (re.compile(r"Offer its successor: "), "Its successor is the "),
    (re.compile(r"\bThe customer can\b"), "You can"),
    (re.compile(r"，请向用户核实订单号。"), "。请核实订单号。"),
    (re.compile(r"请向用户确认。"), "请问要哪一款？"),
    (re.compile(r"请先问清退款原因。"), "请问退款原因是什么？"),
    (re.compile(r"用户可以"), "您可以"),
)


def told(seen: Seen, results: Sequence[Result]) -> str:
    """The results as a reply: each shortened, no line twice; what failed with the reason."""
    shown: dict[str, None] = {}
    parts = []
    for result in results:
        lines = [line for line in _worded(seen, result).splitlines() if line not in shown]
        shown |= dict.fromkeys(filter(None, lines))
        parts.append("\n".join(lines).strip())
    return "\n\n".join(filter(None, parts))


def _worded(seen: Seen, result: Result) -> str:
    text = result.text.strip()
    if FAILED.match(text):
        for pattern, words in TO_USER:
            text = pattern.sub(words, text)
        return shorten(seen.say(CANNOT) + text, RESULT_SHOWN)
    text = shorten(text, RESULT_SHOWN)
    head, *steps = text.splitlines()
    # Markdown would put the steps of a parcel into one line.
    return "\n".join([head, "", *(f"- {step}" for step in steps)]) if _is_steps(steps) else text


def _is_steps(lines: Sequence[str]) -> bool:
    return bool(lines) and all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d ", line) for line in lines)
