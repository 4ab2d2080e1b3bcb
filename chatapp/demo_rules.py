"""What the demo model answers: rules over the messages of one request, and nothing else.

It has no other knowledge of the user than what these messages and the memory parts in them say.
That is the lesson it is there for: memory is context.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from chatapp.demo_summary import (
    CUES,
    Facts,
    Items,
    Notes,
    clip,
    is_chinese,
    literals_in,
    read,
    slot_name,
)

Both = tuple[str, str]  # English, Chinese

# How the user is told each kind of fact, and what is said to be unknown.
YOU: Mapping[str, Both] = {
    "name": ("you are {v}", "是{v}"),
    "learning": ("you are learning {v}", "正在学{v}"),
    "lives": ("you live in {v}", "住在{v}"),
    "from": ("you come from {v}", "来自{v}"),
    "work": ("you work as {v}", "的职业是{v}"),
    "workplace": ("you work at {v}", "在{v}工作"),
    "has": ("your {s} is {v}", "的{s}是{v}"),
    "likes": ("you like {v}", "喜欢{v}"),
    "note": ('you asked me to remember "{v}"', "让我记住“{v}”"),
}
# What a question about a fact looks like; the last column names it when it is unknown.
ASKS: Mapping[str, tuple[str, Both]] = {
    "name": (
        r"\bmy (?:full |first )?name\b|\bwho (?:am i|i am)\b|what am i called"
        r"|我(?:到底)?(?:叫|是)(?:什么|啥|谁)|我的?(?:名字|姓名)|怎么称呼我|我(?:是不是)?叫.{1,12}吗",
        ("your name", "你叫什么名字"),
    ),
    "learning": (
        r"\bwhat (?:am i|do i|i am|was i|i'm)\b.*\b(?:learn|study)|\bdo i (?:learn|study)\b"
        r"|(?<![该你能以想])学习?(?:的是|的)?(?:什么|啥|哪)",
        ("what you are learning", "你在学什么"),
    ),
    "lives": (
        r"\bwhere (?:do i|did i|i) live|住在?(?:哪|什么地方)|家在哪",
        ("where you live", "你住在哪里"),
    ),
    "from": (
        r"\bwhere (?:am i|i am|do i come) from|我.{0,6}(?:来自|是)(?:哪|什么地方)",
        ("where you come from", "你来自哪里"),
    ),
    "work": (
        r"\bwhat (?:do i do\b|do i work|is my (?:job|profession|occupation|work))"
        r"|我.{0,6}(?:做什么(?:工作|的)|职业|工作是)",
        ("what your work is", "你做什么工作"),
    ),
    "workplace": (r"\bwhere do i work|我在哪\w*(?:工作|上班)", ("where you work", "你在哪里工作")),
    "likes": (
        r"\bwhat (?:do i|i) (?:like|love|enjoy)|我(?:都)?喜欢(?:什么|啥|做什么|吃什么)(?!颜色)",
        ("what you like", "你喜欢什么"),
    ),
}
SLOT = re.compile(
    r"\b(?:(?:what|who|when|where)(?:'s| is| was| are)|remember|know|tell me) my "
    r"(?P<en>[\w' -]+?)(?: called| named| again)?\s*(?:[?.!]|$)"
    r"|我的?(?P<zh>最喜欢的.{1,10}?|(?<=的).{1,12}?)(?:是|叫)(?:什么|啥|多少|哪|谁|几)"
    r"|我最喜欢(?:什么|哪种|哪个)(?P<what>\w{1,6})",
    re.IGNORECASE,
)
POINTING = re.compile(r"\b(?:my|the|that|our)\b|我的|刚才|那个|之前|前面", re.IGNORECASE)
NUMBER = re.compile(r"\b(?:number|code|id)\b|编号|号码|单号|号是", re.IGNORECASE)

# Knowledge: what a message is about, then the answer in both languages.
TOPICS: Sequence[tuple[str, str, str]] = (
    (
        r"\breact\b",
        "ReAct lets a model alternate between reasoning and acting. It writes down a thought, "
        "calls a tool, reads what came back, and thinks again until it can answer. So its steps "
        "rest on observations rather than on guesses.",
        "ReAct 是让推理与行动交替进行的模式：模型先想一步，再调用工具，读取观察结果后继续想，"
        "直到能够"
        "回答。这样每一步都有观察作依据，而不是凭空猜测。",
    ),
    (
        r"palimpsest",
        "Palimpsest is this chat application. It shows which messages a request carries, folds "
        "older ones into summaries, and lets you read, edit and undo what was folded. The name "
        "means a page that was scraped and written over with the old layer still readable.",
        "Palimpsest 就是你正在用的聊天应用：它显示每次请求带了哪些消息，把较早的消息折叠成摘要，"
        "并且可以查看、"
        "修改和撤销。名字的意思是刮去重写、但旧字迹仍可辨认的羊皮纸。",
    ),
    (
        r"sliding window|滑动窗口|滑窗",
        "A sliding window keeps the newest messages and leaves out the rest. It is simple and its "
        "cost is bounded, but whatever slides out is gone for the model.",
        "滑动窗口只保留最新的若干条消息，更早的不再发送。它简单、开销有上限，"
        "但滑出窗口的内容模型就看不到了。",
    ),
    (
        r"context window|上下文窗口",
        "The context window is all the text a model can read in one request: instructions, "
        "history and the new question. Its size is counted in tokens. What is not inside does "
        "not exist for the model.",
        "上下文窗口是模型在一次请求里能读到的全部文本：系统提示、历史和新问题，大小以 token 计。"
        "不在窗口里的内容，"
        "对模型来说就不存在。",
    ),
    (
        r"summari[sz]|\bsummary|compact|compress|摘要|压缩",
        "Compaction replaces older messages by a short summary once they take up too much room. "
        "The outline survives, details may not. That is why codes, numbers and names should be "
        "carried over word for word.",
        "压缩就是在历史太长时，用一段简短的摘要代替较早的消息。轮廓保住了，细节可能丢失，"
        "所以编号、数字和名字应当原样带过去。",
    ),
    (
        r"\brag\b|retrieval|检索增强",
        "RAG means retrieval-augmented generation. Before the model answers, passages that fit "
        "the question are looked up and placed into the request. Long-term memory often works "
        "the same way.",
        "RAG 即检索增强生成：回答之前先按问题查找相关片段，再放进请求里。"
        "长期记忆常常也是这样实现的。",
    ),
    (
        r"\btokens?\b|词元",
        "A token is the unit a model reads and writes: a short word, a part of a longer one, or "
        "about one Chinese character. Windows and prices are counted in tokens.",
        "token 是模型读写的基本单位：一个短词、长词的一部分，或者大约一个汉字。"
        "窗口大小和价格都按 token 计算。",
    ),
    (
        r"\bmemory\b|\bcontext\b|记忆|上下文",
        "A model has no memory of its own. The application sends the earlier messages again with "
        "every request, and the model reads all of them anew. Memory is context: what is not "
        "sent is forgotten.",
        "模型自己没有记忆。应用在每次请求里重新带上之前的消息，模型每次都从头读一遍。"
        "记忆就是上下文：没有带上的，就是忘了。",
    ),
)

SAMPLE: Both = (
    "# A small sample\n\nPlain text with **bold**, *italic* and `code`.\n\n- first item\n"
    "- second item\n\n| strategy | keeps |\n|---|---|\n| window | the newest messages |\n"
    "| summary | an outline of the rest |\n\n```python\ndef remember(history: list[str]) -> str:\n"
    '    return "\\n".join(history)\n```\n',
    "# 一个小样例\n\n普通文字，**粗体**、*斜体*和 `code`。"
    "\n\n- 第一项\n- 第二项\n\n| 策略 | 保留 |\n"
    "|---|---|\n| 窗口 | 最新的消息 |\n| 摘要 | 其余部分的轮廓 |\n\n```python\n"
    'def remember(history: list[str]) -> str:\n    return "\\n".join(history)\n```\n',
)
LAYERS: Sequence[Both] = (
    ("wax", "蜡板"),
    ("papyrus", "莎草纸"),
    ("vellum", "羊皮纸"),
    ("paper", "纸"),
    ("glass", "玻璃屏"),
)
CHAPTER: Both = (
    "\n## The layer of {0}\n\nOn the page of {0} a scribe wrote down everything that was said "
    "in the room. When the page was full, the scribe scraped it, kept **one line** of what "
    "mattered, and went on. Those who came later held the page against the light and asked:\n\n"
    "- what was kept, and why?\n- what was lost?\n- who decided?\n",
    "\n## {0}的一层\n\n抄写员在{0}上记下屋里说过的每一句话。写满之后，他把字迹刮去，"
    "只留下**最要紧的一行**，然后接着写。后来的人把它举到光下，问道：\n\n"
    "- 留下了什么，为什么？\n- 丢掉了什么？\n- 由谁决定？\n",
)
INTRODUCTION: Both = (
    "I am a small rule-based demo model. I see only the messages of this request, nothing else.",
    "我是一个基于规则的小型演示模型，只能看到这次请求里的消息，此外一无所知。",
)
SUGGESTION: Both = (
    'Tell me your name and then try "what is my name?", "what is ReAct?", "how many messages do '
    'you see?" or "count to 50".',
    "告诉我你的名字，然后试试：“我叫什么名字？”“ReAct 是什么？”“你能看到几条消息？”“数到 50”。",
)
MEMORY = re.compile(r"<memory\b[^>]*>\n?(.*?)\n?</memory>", re.DOTALL)
LEADING = re.compile(rf"\A(?:\s*{MEMORY.pattern})+\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Seen:
    """What one request shows: the newest message, what is known, and how much there is."""

    text: str
    chinese: bool
    notes: Notes
    users: tuple[str, ...]
    replies: int
    memories: int

    def say(self, both: Both) -> str:
        return both[self.chinese]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message whose content is a string, a list of parts, or null."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def answer(messages: Sequence[Mapping[str, Any]]) -> str:
    """The reply to the newest message, from nothing but these messages (in the API's format)."""
    seen = _look(messages)
    if messages[-1]["role"] == "tool":
        result = text_of(messages[-1])[:200]
        return seen.say((f"The tool returned: {result}", f"工具返回：{result}"))
    reading = read(seen.text)
    rest = " ".join(reading.rest)
    rules = [(pattern, rule) for pattern, rule in RULES if not reading.facts or rule is not _greet]
    matches = ((rule, pattern.search(rest)) for pattern, rule in rules)
    replies = (rule(seen, match) for rule, match in matches if match)
    reply = next((reply for reply in replies if reply), "")
    if reading.facts:
        return " ".join(part for part in (_acknowledge(seen, reading.facts), reply) if part)
    return reply or _otherwise(seen)


def _look(messages: Sequence[Mapping[str, Any]]) -> Seen:
    notes = Notes()
    memories: list[str] = []
    users: list[str] = []
    others: list[tuple[str, str]] = []
    for message in messages:
        role, text = message["role"], text_of(message)
        fenced = LEADING.match(text) if role == "user" else None
        memories += MEMORY.findall(text if role == "system" else fenced[0] if fenced else "")
        others.append((role, text[fenced.end() :] if fenced else text))
    for memory in memories:  # before the messages: these are newer
        notes.recall(memory)
    for role, text in others:
        if role == "user" and text.strip():
            users.append(text)
            notes.learn(text)
        elif role in ("assistant", "tool"):
            notes.note(text)
    written = next((text for text in reversed(users) if re.search(r"[^\W\d]", text)), "")
    replies = sum(role == "assistant" and bool(text) for role, text in others)
    text = users[-1] if users else ""
    return Seen(text, is_chinese(written), notes, tuple(users), replies, len(memories))


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


def _unknown(seen: Seen, things: Sequence[Both]) -> str:
    english, chinese = (" or ".join(t[0] for t in things), "，也不知道".join(t[1] for t in things))
    return seen.say(
        (
            f"I do not know {english}: nothing in this request says so.",
            f"我不知道{chinese}：这次请求里没有任何内容提到。",
        )
    )


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
                "I do not know anything about you: nothing in this request says so.",
                "我对你一无所知：这次请求里没有任何内容提到。",
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


TOPIC_WORD = re.compile(
    r"\b(?!about|there|their|please|could|would)[A-Za-z]{5,}"
    "|(?:(?![的了吗呢吧啊我你他她这那是在有没要请帮个和与一下么什怎把被多少])[㐀-鿿]){2,4}"
)
COUNT_LIMIT = 2_000
SIGNS = {
    "+": "+", "plus": "+", "加": "+", "-": "-", "minus": "-", "减": "-",
    "*": "*", "x": "*", "×": "*", "times": "*", "乘": "*", "乘以": "*",
    "/": "/", "÷": "/", "divided by": "/", "除以": "/",
}  # fmt: skip
SUM = (
    r"(?<![A-Za-z0-9_.,:/-])(?<![-+*/×÷x] )(-?\d{1,12}(?:\.\d{1,6})?)"
    r"( - |(?:\s*(?:[+*/×÷x]|加|减|乘以?|除以|plus|minus|times|divided by)\s*))"
    r"(-?\d{1,12}(?:\.\d{1,6})?)(?![A-Za-z0-9_,:]|\s*[-+*/×÷.]\s*\d)"
)
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
