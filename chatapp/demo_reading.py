"""How the demo model reads what people say: facts, literals, and what a clause is.

Pure functions of text, English and Chinese.
"""

import math
import re
from dataclasses import dataclass

Facts = dict[tuple[str, str], str]  # (kind, what tells facts of one kind apart) -> value
Items = dict[str, str]  # newest last, like Facts

# How a summary puts each kind of fact, in English and in Chinese; {s} is the key's second part.
NOTED = {
    "name": ("is called {v}", "叫{v}"),
    "learning": ("is learning {v}", "在学{v}"),
    "lives": ("lives in {v}", "住在{v}"),
    "from": ("comes from {v}", "来自{v}"),
    "work": ("works as {v}", "职业是{v}"),
    "workplace": ("works at {v}", "在{v}工作"),
    "has": ("their {s} is {v}", "其{s}是{v}"),
    "likes": ("likes {v}", "喜欢{v}"),
    "note": ("asked to remember: {v}", "要求记住：{v}"),
}
SEVERAL = ("likes", "note", "has")  # kinds of which a user can have several, least important first

V = r"(?P<v>.{1,60}?)"
NAME = r"(?P<v>[^\W\d][\w.'·-]*(?: [^\W\d][\w.'-]*){0,2})"
CAPITALS = r"(?P<v>(?-i:[A-Z][\w.'-]*(?: [A-Z][\w.'-]*){0,2}))"
NO_NAME = (
    "(?!(?:ok|fine|sorry|happy|sure|back|here|german|french|chinese|english|american|italian|irish"
    r"|spanish|indian|japanese|russian|korean|dutch|british|canadian)\b)"
)
JOB = r"(?P<v>an? (?:\w+ )?(?:teacher|student|nurse|doctor|\w+eer|\w+ist|\w+ian|developer|writer))"
ZH_JOB = (
    "(?P<v>[^的]{0,5}(?:老师|医生|学生|程序员|[程计律]师|护士|司机|作家|记者|会计|经理|开发者))"
)
ZH_NAME = r"(?P<v>[\w·]{1,12}?)"
# What a whole clause looks like that states a fact. The first pattern that fits decides.
SAID = (
    ("name", rf"my (?:full |first |real |new )?name is (?:now |actually )?{NAME}"),
    ("name", rf"(?:you can )?call me (?!later|back|at|when|on|if){NAME}"),
    ("name", rf"i (?:am called|am named|go by) {NAME}"),
    ("name", rf"i am {NO_NAME}{CAPITALS}"),
    ("name", rf"(?:我|本人)(?:名?叫做?|自称){ZH_NAME}"),
    ("name", rf"我的?(?:名字|姓名)(?:现在)?(?:是|叫做?){ZH_NAME}"),
    ("name", rf"(?:请|以后|就|你?可以)*(?:叫|称呼)我{ZH_NAME}"),
    ("work", rf"i work as {V}"),
    ("work", rf"my (?:job|profession|occupation) is {V}"),
    ("work", rf"i am {JOB}(?: (?:at|for|in) .{{1,40}})?"),
    ("work", rf"我的?(?:职业|工作)是{V}"),
    ("work", rf"我[是当](?:一?[名个位])?{ZH_JOB}"),
    ("from", rf"i (?:am|come|was born)(?: originally)? (?:from|in) (?-i:(?=[A-Z]|the )){V}"),
    ("from", rf"(?:我|我是)?来自{V}"),
    ("from", r"我是(?![个男女好本普])(?P<v>\w{2,6})人"),
    ("name", rf"我是(?![说来想在要第一个从新为真否因做学])(?!.*[的了人员生者]){ZH_NAME}"),
    ("learning", r"(?:i |i have been |i am )?(?:\w+ly |now )?(?:learning|studying) "
                 rf"(?!.* (?:is|are) ){V}"),
    ("learning", rf"i (?:now |also )?(?:learn|study|started learning|started to learn) {V}"),
    ("learning", rf"我?(?:现在|目前|最近|一直|也|还)*(?:正在|在|改)自?学习?{V}"),
    ("learning", rf"我(?:现在|目前|最近|也|开始)*(?:学习|自学|主修|学的是|学){V}"),
    ("lives", rf"i (?:\w+ly |now )?(?:live|am living|am based|moved|have moved) (?:in|to) {V}"),
    ("lives", rf"(?:我|我家)?(?:现在|目前)?(?:住在|搬到了?|定居在?|家住){V}"),
    ("workplace", rf"i work (?:at|for) {V}"),
    ("workplace", rf"我?(?:现在|目前)?在{V}(?:工作|上班)"),
    ("has", rf"my (?!name|question|point|problem|guess|idea|god)(?P<s>(?:[\w'-]+ ){{0,3}}?[\w'-]+)"
            rf" (?:is called|is named|is|are|was) (?:now )?{V}"),
    ("has", rf"我的?(?P<s>最(?:喜欢|爱)的[^是叫]{{1,10}})是{V}"),
    ("has", rf"我的(?!意思|问题|想法|建议|名字|姓名)(?P<s>[^是叫]{{1,16}})(?:现在)?(?:是|叫){V}"),
    ("likes", rf"i (?:really |also |still )?(?:like|love|enjoy|prefer) {V}"),
    ("likes", rf"我?(?:也|很|最|特别|非常|还)*(?:喜欢|热爱){V}"),
)  # fmt: skip
LEAD = (
    "(?:(?:hi|hello|hey|well|so|ok|okay|no|yes|oh|and|but|also|actually|sorry|now|please|by the way"
    "|in fact) |你好|您好|大家好|嗨|其实|不对|不是|对了|另外|还有|嗯|所以|现在)*"
)
TRAIL = "(?: now| too| as well| please| actually|了|啦|吧|呢|哦|呀|就好|就行|即可)*"
STATEMENTS = tuple((kind, re.compile(LEAD + said + TRAIL, re.I)) for kind, said in SAID)
REMEMBER = re.compile(
    LEAD + r"(?:(?:remember|keep in mind|note that|don't forget|asked to remember)(?: that|:|,)?\s+"
    r"(?!(?:when|how|what|why|me)\b)"
    r"|(?:请|帮我|你?要|要求)*(?:记住|记得|记一下|记下|别忘了?)[:：，,]?\s*)(?P<v>.{2,80}?)[.。!！;；]*",
    re.IGNORECASE,
)
NOT_A_VALUE = re.compile(
    r"(?:not|it|that|this|you|your|so|too|very|is|are|when|how|a lot|hard)\b"
    "|[什啥谁不没过你他她这那的校]|习$",
    re.IGNORECASE,
)
# What a memory says of the user, turned into what the user would say.
THIRD_PERSON = (
    (re.compile(r"^(?:(?:the )?user's|their)\b", re.I), "my"),
    (re.compile(r"^(?:the user |user )?is\b", re.I), "I am"),
    (re.compile(r"^(?:the user |user )?(live|work|like|love|enjoy|come)s\b", re.I), r"I \1"),
    (re.compile(r"^该?用户的|^其|^(?=职业是)"), "我的"),
    (re.compile(r"^(?:该?用户)?(?:自称|名?叫)"), "我叫"),
    (re.compile(r"^该?用户"), "我"),
)
ASKING = re.compile(
    r"[?？]\s*$|[吗么]\s*$|什么|啥|谁|哪[里儿个些位]|多少|几[个条点岁]|怎么|如何|是不是|有没有|如果|假如|要是"
    "|^(?:if|whether|suppose|what|who|where|which|when|why|how|is|are|am i|was|do|does|did|can"
    r"|could|should|would|will)\b",
    re.IGNORECASE,
)
UNSURE = re.compile(r"[?？]\s*$|[吗么]\s*$|什么|啥|谁")  # what even a note cannot be
TAG = re.compile(
    r"\s*(?:right|correct|yes|no|isn't it|am i|是吗|对吗|对吧|是吧|不是吗)\s*[?？]", re.I
)
GUESS = re.compile(r"^(?:is|was|isn't)\s.*\?|是[^是]{1,30}吗[？?]?\s*$", re.IGNORECASE)

LITERAL = re.compile(
    r"[A-Za-z0-9_.+-]{1,64}@[A-Za-z0-9-]+\.[A-Za-z0-9.]*[A-Za-z]|https?://[^\s<>\"',;，。；）)]+"
    r"|[$€£¥￥]\s?\d+(?:,\d{3})*(?:\.\d+)?|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号]|\d{1,2}:\d{2}"
    r"|(?<!\d)\d{1,15}(?:,\d{3})*(?:\.\d+)?\s?(?:元|块钱|美元|USD|EUR|RMB|CNY|dollars|euros|pounds|yuan|%)"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} \d{1,2}\b(?:,? \d{4})?"
    r"|\d{1,3}(?:,\d{3})+"
    r"|(?P<code>(?<![A-Za-z0-9_.-])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![A-Za-z0-9_]))"
)
# Words that tell what a literal is, in both languages, and by which a question may call it.
CUES = (
    "refund|退款|退货", "order|订单", "tracking|parcel|运单|快递", "invoice|发票", "ticket|工单",
    "booking|reservation|预订|预约", "flight|航班", "phone|电话|手机", "e-?mail|邮箱|邮件",
    "date|deadline|birthday|日期|截止|生日", "price|amount|total|budget|costs?|金额|价格|预算|总价",
    "room|房间", "code|password|pin|密码|验证码|暗号|口令|代码",
)  # fmt: skip
LABEL = re.compile(
    rf"(?<![A-Za-z])(?:{'|'.join(CUES)})(?![A-Za-z])(?: (?:number|code|id)\b|编号|单号|号码|号)?",
    re.I,
)
REFUND_NUMBER = re.compile(r"RF\d{6,}")
AFTER = re.compile(rf"\s*(?:is|was|是|为)\s*(?:my|the|your|我的|你的)?\s*({LABEL.pattern})", re.I)
CONTEXT = re.compile(r"(?:(?:[A-Za-z']+ ){0,2}[A-Za-z']+|[㐀-鿿]{1,6})\W*$")
# Tokens of their own: up to three digits, a space before them, the letters of codes, and signs.
SINGLE = re.compile(r"\d{1,3}|\s(?=\d)|[A-Z](?=[A-Z\d-])|[^\w\s\u2e80-\U0010ffff]")
LITERALS_PER_TEXT = 12  # a text full of numbers must not push out everything else


@dataclass(frozen=True, slots=True)
class Reading:
    """What one text states about its speaker, and the clauses that state nothing."""

    facts: Facts
    rest: tuple[str, ...]


def is_chinese(text: str) -> bool:
    """Whether the text is rather Chinese than English: as many characters as Latin words."""
    characters = len(re.findall("[㐀-鿿]", text))
    return characters > 0 and characters >= len(re.findall(r"[A-Za-z]+", text))


def approx_tokens(text: str) -> int:
    """An upper estimate of the tokens of a text: 2.5 Latin letters or one Chinese a token."""
    rest, single = SINGLE.subn("", text)
    weights = (0.4 if ord(char) < 0x2E80 else 1 if ord(char) < 0x10000 else 3 for char in rest)
    return math.ceil(single + sum(weights))


def clip(text: str, width: int) -> str:
    """The start of a text: at most `width` characters wide, a Chinese one counting as two."""
    used = 0
    for at, char in enumerate(text):
        used += 2 if ord(char) >= 0x2E80 else 1
        if used > width:
            return text[:at].rstrip() + "…"
    return text


def sentences(text: str) -> list[str]:
    parts = re.split(r"(?<=[。！？!?；;])|(?<=\.)\s+|\n+", text)
    return [part.strip() for part in parts if part.strip()]


def clauses(sentence: str) -> list[str]:
    """The clauses of a sentence; one that a tag question follows ("..., right?") is a question."""
    verb = "I|I'm|my|am|is|learning|lives?|works?|likes?|loves?|please"
    listed = r"\d|(?<=\d,)\s*\d+\s*(?:[,.;…]|$)"  # numbers of a list belong together
    split = rf"，|,(?!{listed})|\s+(?:and|but)\s+(?=(?:{verb})\b)"
    parts = [part.strip() for part in re.split(split, sentence, flags=re.IGNORECASE)]
    pairs = zip(parts, [*parts[1:], ""], strict=True)
    return [part + "?" if TAG.fullmatch(then) else part for part, then in pairs if part]


def _fact(clause: str, *, memory: bool) -> tuple[tuple[str, str], str] | None:
    text = clause.replace("’", "'").strip(" \t.!。！…~;；\"'“”")
    text = re.sub(r"\bI'm\b", "I am", re.sub(r"\bname's\b", "name is", text), flags=re.IGNORECASE)
    for pattern, own in THIRD_PERSON if memory else ():
        text = pattern.sub(own, text)
    fits = ((kind, pattern.fullmatch(text)) for kind, pattern in STATEMENTS)
    kind, match = next(((kind, match) for kind, match in fits if match), ("", None))
    if not match or ASKING.search(text) or NOT_A_VALUE.match(match["v"]):
        return None
    slot = match.groupdict().get("s") or (match["v"] if kind in SEVERAL else "")
    return (kind, slot_name(slot)), match["v"].strip()


def slot_name(words: str) -> str:
    """What someone has, by one spelling."""
    words = re.sub(r"'s name$|的名字$", "", words.casefold().strip())
    return words.replace("favorite", "favourite").replace("color", "colour")


def read(text: str, *, memory: bool = False) -> Reading:
    """The facts a user states in a text, or (`memory`) that a memory states about the user."""
    facts: Facts = {}
    rest: list[str] = []
    for sentence in sentences(text):
        order = None if UNSURE.search(sentence) else REMEMBER.fullmatch(sentence)
        if order:
            note = order["v"]
            facts |= read(note, memory=memory).facts or {("note", note.casefold()): note}
            continue
        for clause in clauses(sentence):
            fact = _fact(clause, memory=memory)
            if fact:
                facts[fact[0]] = fact[1]
            else:
                rest.append(clause)
    return Reading(facts, tuple(rest))


def literals_in(text: str) -> Items:
    """Codes, numbers, dates, amounts and addresses of a text, each with what it seems to be."""
    found: Items = {}
    for sentence in sentences(text):
        start = 0
        for match in () if GUESS.search(sentence) else LITERAL.finditer(sentence):
            code = match["code"] or "00000"
            digits = sum(char.isdigit() for char in code)
            if digits >= 3 or (digits and code.isupper() and len(code) >= 5):
                before, start = sentence[start : match.start()][-60:], match.end()
                found[match[0]] = _label(before, match[0], sentence[start:])
    return dict(list(found.items())[:LITERALS_PER_TEXT])


def _label(before: str, value: str, after: str) -> str:
    named = AFTER.match(after)
    cues = [match[0] for match in LABEL.finditer(before)] or ([named[1]] if named else [])
    context = CONTEXT.search(re.split(r"[,，。;；]\s*(?=\S)", before)[-1])
    words = cues[-1] if cues else context[0] if context else ""
    label = re.sub(r"^(?:(?:and|or|the|is|for|on|at|of)(?: |$))+|^[和与是]+|\W+$", "", words)
    if REFUND_NUMBER.fullmatch(value) and not re.search(CUES[0], label, re.IGNORECASE):
        return "退款编号" if is_chinese(before + after) else "refund number"
    return label
