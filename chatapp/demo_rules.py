"""What the demo model answers: rules over the messages of one request, and nothing else.

It has no other knowledge of the user than what these messages and the memory parts in them say.
That is the lesson it is there for: memory is context.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from chatapp.demo_reading import (
    CUES,
    Facts,
    Items,
    clip,
    is_chinese,
    literals_in,
    read,
    slot_name,
)
from chatapp.demo_seen import Seen, look, text_of
from chatapp.demo_texts import (
    ASKS,
    CHAPTER,
    COUNT_LIMIT,
    INTRODUCTION,
    LAYERS,
    NUMBER,
    POINTING,
    SAMPLE,
    SIGNS,
    SLOT,
    SUGGESTION,
    SUM,
    TOPIC_WORD,
    TOPICS,
    UNTOLD,
    YOU,
    Both,
)


def answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """The reply to the newest message, from nothing but these messages (in the API's format)."""
    seen = look(messages)
    if messages[-1]["role"] == "tool":
        result = text_of(messages[-1])[:200]
        return seen.say((f"The tool returned: {result}", f"工具返回：{result}"))
    return reply_to(seen)


def reply_to(seen: Seen) -> str:
    """The reply to the newest message of the user, without any tool."""
    reading = read(seen.text)
    rest = " ".join(reading.rest)
    rules = [(pattern, rule) for pattern, rule in RULES if not reading.facts or rule is not _greet]
    matches = ((rule, pattern.search(rest)) for pattern, rule in rules)
    replies = (rule(seen, match) for rule, match in matches if match)
    reply = next((reply for reply in replies if reply), "")
    if reading.facts:
        return " ".join(part for part in (_acknowledge(seen, reading.facts), reply) if part)
    return reply or _otherwise(seen)


def _told(seen: Seen, facts: Facts) -> str:
    ordered = sorted(facts.items(), key=lambda fact: list(YOU).index(fact[0][0]))
    phrases = [YOU[kind][seen.chinese].format(s=slot, v=v) for (kind, slot), v in ordered]
    if not phrases:
        return ""
    if seen.chinese:
        return "你" + "，".join(phrase.replace("的最", "最", 1) for phrase in phrases) + "。"
    text = " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))
    return text[0].upper() + text[1:] + "."


def _acknowledge(seen: Seen, facts: Facts) -> str:
    name = facts.get(("name", ""))
    others = _told(seen, {key: value for key, value in facts.items() if key[0] != "name"})
    if name:
        hello = seen.say((f"Nice to meet you, {name}.", f"你好，{name}！"))
        return hello + seen.say((" ", "")) * bool(others) + others
    return seen.say(("Noted. ", "记下了：")) + others


def leaves_open(reply: str) -> bool:
    """Whether a reply says that something is not known."""
    return any(words in reply for words in UNTOLD)


def _unknown(seen: Seen, things: Sequence[Both]) -> str:
    english, chinese = (" or ".join(t[0] for t in things), "，也不知道".join(t[1] for t in things))
    return seen.say((f"I do not know {english}: {UNTOLD[0]}.", f"我不知道{chinese}：{UNTOLD[1]}。"))


def _personal(seen: Seen, match: re.Match[str]) -> str:
    asked = [kind for kind, (ask, _) in ASKS.items() if re.search(ask, match.string, re.I)]
    known = {
        (kind, ""): seen.notes.facts[kind, ""] for kind in asked if (kind, "") in seen.notes.facts
    }
    if "likes" in asked:
        known |= {key: value for key, value in seen.notes.facts.items() if key[0] == "likes"}
    unknown = [ASKS[kind][1] for kind in asked if kind not in {key[0] for key in known}]
    parts = (_told(seen, known), _unknown(seen, unknown) if unknown else "")
    return " ".join(part for part in parts if part)


def _thing(seen: Seen, match: re.Match[str]) -> str:
    """What was "the refund number", what is "my favourite colour"?"""
    question, notes = match.string, seen.notes
    slot = SLOT.search(question)
    own = slot_name(slot["en"] or slot["zh"] or f"最喜欢的{slot['what']}") if slot else ""
    if ("has", own) in notes.facts:
        return _told(seen, {("has", own): notes.facts["has", own]})
    cues = _cues(question)
    if not own and not NUMBER.search(question) and not (cues and POINTING.search(question)):
        return ""
    if literals_in(question):  # "What about order 88231?" asks for something else
        return ""
    wanted = cues - {CUES[-1]} or cues  # "the refund code" is about the refund
    numbers = wanted or NUMBER.search(question)
    fitting = [
        (label, value)
        for value, label in notes.literals.items()
        if numbers and (_cues(label) & wanted or not wanted)
    ]
    if not fitting:
        return _unknown(seen, [("that", "这一点")])
    label, value = fitting[-1]
    label = label if is_chinese(label) == seen.chinese else ""
    label = label.lower() if label == label.capitalize() else label
    return seen.say((f"The {label or 'number'} is {value}.", f"{label or '编号'}是 {value}。"))


def _cues(text: str) -> set[str]:
    return {cue for cue in CUES if re.search(cue, text, re.IGNORECASE)}


def _literals(seen: Seen, literals: Items, told: str) -> str:
    """The literals that `told` does not hold yet, each with its label."""
    return seen.say((", ", "、")).join(
        f"{label} {value}".strip() for value, label in literals.items() if value not in told
    )


def _all(seen: Seen, _: re.Match[str]) -> str:
    """What do you know about me?"""
    told = _told(seen, seen.notes.facts)
    literals = _literals(seen, seen.notes.literals, told)
    also = literals and seen.say((f"I also see: {literals}.", f"另外还看到：{literals}。"))
    if not told and not literals:
        return seen.say(
            (
                f"I do not know anything about you: {UNTOLD[0]}.",
                f"我对你一无所知：{UNTOLD[1]}。",
            )
        )
    source = seen.say(("All of it stands in this request.", "这些都写在这次请求里。"))
    return seen.say((" ", "")).join(part for part in (told, also, source) if part)


def _first(seen: Seen, _: re.Match[str]) -> str:
    folded = next(iter(seen.notes.asked.values()), "").partition(" → ")[0]
    first = clip(" ".join((folded or seen.users[0]).split()), 60)
    if not folded and len(seen.users) == 1:
        return seen.say(("This is the first message I can see.", "这就是我能看到的第一条消息。"))
    return seen.say(
        (f'The first thing of yours I can see is: "{first}"', f"我能看到的你最早的话是：“{first}”")
    )


def _counts(seen: Seen, _: re.Match[str]) -> str:
    users, replies, parts = len(seen.users), seen.replies, seen.memories
    of_mine = "reply" if replies == 1 else "replies"
    english = (
        f"I see {users} of your messages, this one included, and {replies} {of_mine} of mine. "
        + (f"Earlier ones are in the notes I was given ({parts}), such as a summary." if parts
           else "There is no summary of earlier ones.")
    )  # fmt: skip
    chinese = f"我能看到你的 {users} 条消息（包括这一条）和我的 {replies} 条回复，" + (
        f"另有 {parts} 段更早内容的记录（例如摘要）。" if parts else "没有更早内容的摘要。"
    )
    return seen.say((english, chinese))


def _count(_: Seen, match: re.Match[str]) -> str:
    last = min(int((match[1] or match[2])[:6]), COUNT_LIMIT)
    return ", ".join(str(number) for number in range(1, last + 1))


def _calculate(seen: Seen, match: re.Match[str]) -> str:
    left, right = Decimal(match[1]), Decimal(match[3])
    sign = SIGNS[match[2].strip().lower()]
    if sign == "/" and not right:
        return seen.say(("Division by zero has no result.", "除数不能为零。"))
    results = {"+": left + right, "-": left - right, "*": left * right, "/": left / (right or 1)}
    return f"{match[0].strip()} = {results[sign].normalize():,f}".replace(",", "")


def _story(seen: Seen, _: re.Match[str]) -> str:
    title = seen.say(("# The page that was never empty\n", "# 从未空白的一页\n"))
    return title + "".join(seen.say(CHAPTER).format(seen.say(layer)) for layer in LAYERS)


def _sample(seen: Seen, _: re.Match[str]) -> str:
    return seen.say(SAMPLE)


def _introduce(seen: Seen, _: re.Match[str]) -> str:
    return seen.say((" ", "")).join((seen.say(INTRODUCTION), seen.say(SUGGESTION)))


def _topic(seen: Seen, match: re.Match[str]) -> str:
    texts = (both for about, *both in TOPICS if re.search(about, match.string, re.IGNORECASE))
    return next((seen.say((english, chinese)) for english, chinese in texts), "")


def _greet(seen: Seen, _: re.Match[str]) -> str:
    return seen.say(("Hello! ", "你好！")) + _introduce(seen, _)


def _thanks(seen: Seen, _: re.Match[str]) -> str:
    return seen.say(("You are welcome.", "不客气。"))


def _otherwise(seen: Seen) -> str:
    """A reply to anything else: names a few words of the message, never the whole of it."""
    room = len(re.sub(r"\W", "", seen.text)) / 2
    words = list(dict.fromkeys(TOPIC_WORD.findall(seen.text)))[:3]
    while words and len("".join(words)) > room:
        words.pop()
    about = clip(seen.say((", ", "、")).join(words), 40)
    noted = _literals(seen, literals_in(seen.text), "")
    parts = (
        seen.say((f"Noted: {noted}.", f"我记下了：{noted}。")) if 0 < len(noted) < 60 else "",
        seen.say((f"I have no rule for this ({about}).", f"关于“{about}”，我没有对应的规则。"))
        if about
        else "",
        seen.say(INTRODUCTION),
        seen.say(SUGGESTION),
    )
    return seen.say((" ", "")).join(filter(None, parts))


Rule = Callable[[Seen, re.Match[str]], str]
# The first rule whose pattern is found and that has something to say answers.
RULES: Sequence[tuple[re.Pattern[str], Rule]] = tuple(
    (re.compile(pattern, re.IGNORECASE), rule)
    for pattern, rule in (
        (r"\bcount (?:from (?:1|one) )?(?:up )?to (\d+)|数到\s*(\d+)", _count),
        (r"\bstory\b|故事", _story),
        (r"\bmarkdown\b", _sample),
        (r"how many messages|几条消息|多少条?消息", _counts),
        (r"\b(?:ask|asked|say|said|tell)\b.*\bfirst\b|\bfirst (?:question|message)", _first),
        (r"最(?:先|早|开始).*[问说]|[问说].*最(?:先|早)|第一(?:个问题|次|条|句)", _first),
        (r"what (?:do|can) you (?:know|remember|recall)\s*(?:[?.!]|$)", _all),
        (r"(?:know|remember)(?: about| of)? me\b|(?:了解|认识|记得)我[吗多吧]", _all),
        (r"[你还都](?:记得|知道|记住了?)(?:关于)?(?:我的?)?(?:什么|哪些|多少|啥)", _all),
        (r".", _personal),
        (r"wh(?:at|ich|o|en|ere)|tell me|remember|how much|多少|什么|哪|几|记得|告诉|号呢", _thing),
        (r"\b(?:who|what) are you|\byour name|introduce yourself", _introduce),
        (r"你是谁|你叫什么|介绍.{0,4}自己|你是什么", _introduce),
        (SUM, _calculate),
        (r".", _topic),
        (r"^(?:hi|hello|hey|good (?:morning|evening|afternoon))\b", _greet),
        (r"^(?:你好|您好|嗨|早上好|晚上好)", _greet),
        (r"\bthanks?\b|谢谢", _thanks),
    )
)  # fmt: skip
