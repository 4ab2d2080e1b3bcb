"""What a message asks an agent to do, and the values in it: pure functions of text, English and
Chinese."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from chatapp.demo_reading import ASKING, clip, sentences
from chatapp.demo_texts import SUM, TOPICS
from chatapp.tools.shop_data import PRODUCTS

# Characters of the user's words that a call repeats.
WORDS_SHOWN = 200
# Characters that are searched for wishes: at both ends of a text, and of one sentence.
END, SENTENCE = 2_000, 300
# The kind of questions about prices, promotions and differences.
GOODS = "goods"


@dataclass(frozen=True, slots=True)
class Wish:
    """Something that a tool can do: the tools that fit best, and the sentence that asks for it."""

    kind: str
    tools: tuple[str, ...]
    text: str


_NUMBERED = r"\b(?:refund|order|tracking|parcel|invoice)(?:'s)? (?:number|code|id)\b"
_NOT_WANTED = r"(?!.*\b(?:do not|don't|no longer|never) (?:want|need)\b)(?!.*不(?:要|想|用|需要)退)"
_REFUND_WISH = (
    r"\b(?:want|need|like|request|claim|get|give me|apply|demand|issue|make)\b.{0,30}"
    r"\b(?:refund|money back)\b|\brefund (?:me|it|this|that|my|the|order|please)\b"
    r"|^(?:a |please )?refund\b|\b(?:return|send back) (?:it|this|that|the|my)\b"
    r"|(?:要|想|申请|帮我|给我|办理?|需要|请|麻烦|可以|能).{0,8}退(?:款|货|钱|了|掉|一下)"
    r"|退款[吧呢，。！!]|退了吧|退掉|退款$|不要了.*退"
)
# The first pattern that a sentence has decides; no tools: what the messages themselves must tell.
_PATTERNS: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("recall",
     rf"\b(?:what|which|tell me|remember|forgot|repeat)\b(?!.*\d{{5}}).*{_NUMBERED}"
     r"|(?:退款|订单|运单|快递)的?(?:编号|单号|号码?)(?!.*\d{5}).{0,6}(?:多少|什么|几|来着|哪个|呢|忘)"
     r"|忘.{0,8}(?:退款|订单|运单|快递)的?(?:编号|单号|号)", ()),
    ("read",
     r"\b(?:read|show|open|quote)\b.{0,20}\bmessage\s*(?:number|no\.?|#)?\s*\d{1,9}\b"
     r"|(?:看|读|查|打开|显示).{0,6}第\s*\d{1,9}\s*条", ("read_message",)),
    ("time",
     r"\bwhat(?:'s| is) the (?:current )?(?:time|date)\b(?! of)"
     r"|\bwhat (?:time|day|date) is (?:it|today)\b|\bcurrent (?:time|date)\b|\btoday's date\b"
     r"|(?:今天|现在|当前).{0,3}(?:几点|几号|星期几|周几|礼拜几|日期|时间)|^几点",
     ("current_time",)),
    ("where",
     r"\bwhere(?:'s| is| are)\b(?!.*\brefund).*\b(?:orders?|parcels?|packages?|delivery|shipments?"
     r"|vacuum|purifier|it)\b|\btrack\b|物流|^(?!.*退款).*到哪|[走送运]到|发货了[吗没]",
     ("query_order", "query_logistics")),
    ("not received",
     r"(?:signed for|delivered)\b.*(?:\b(?:not|never|nothing)\b|n't\b)"
     r"|(?:\b(?:not|never)\b|n't\b).{0,10}\breceiv|签收.{0,12}[没未]|(?:没有?|未)收到",
     ("search_knowledge",)),
    ("refund time",
     r"\b(?:how (?:long|many days|soon|fast)|when)\b.*\b(?:refund|money|paid back)\b"
     r"|\b(?:refund|money)\b.*\bhow long\b"
     r"|(?:退款|退钱|到账|款).*(?:多久|几天|多长时间|什么时候|何时|多少天|几个工作日)"
     r"|(?:多久|几天|什么时候|何时|多长时间|多少天).*(?:到账|退)", ("search_knowledge",)),
    ("refund status",
     r"\bRF\d{6,}|\b(?:status|progress|state|check|look up)\b.*\brefund\b"
     r"|\brefund\b.*\b(?:status|progress|approved|accepted|going|arrived)\b"
     r"|\bwhere is my (?:refund|money)\b|\bhow much\b.*\brefund\b"
     r"|退款(?!政策|条件|规则).{0,4}(?:状态|进度|进展|怎么样了|到哪|到了吗|到账了吗|成功了?吗|处理)"
     r"|[查看].{0,6}退款(?!政策|条件|规则)", ("query_refund",)),
    ("policy",
     r"\b(?:refund|return)s?\s+(?:policy|policies|conditions?|rules?|period)\b|\bwarranty\b"
     r"|\bcan i (?:still )?(?:return|get a refund|refund)\b(?!.*\d{5})"
     r"|(?:退货|退款|退换货?)的?(?:政策|条件|规则|流程|要求)"
     r"|(?:能不能|可不可以|[还能]能?|可以)退(?!.*\d{5}).{0,4}(?:吗|么|[?？])|保修|质保",
     ("search_knowledge",)),
    ("refund", rf"^{_NOT_WANTED}(?=.*(?:{_REFUND_WISH}))", ("apply_refund",)),
    ("defect",
     r"\bdock(?:s|ing)?\b|\bcharging (?:station|contacts)\b|\bbroken\b|\bdefect"
     r"|\b(?:does|did|is|will)(?:n't| not)\b.{0,20}\b(?:work|charg|start|turn on|clean|move)"
     r"|回充|充电座|基站|充不[进上]电|坏了|故障|不工作|开不了机", ("search_knowledge",)),
    ("order",
     r"\b(?:place|make|submit)\b.{0,12}\border\b|\b(?:buy|purchase)\b(?!.*\?)"
     r"|\border (?:one|two|three|four|five|[1-9]|it|this|that|the|an?|me)\b"
     r"|\bi(?:'ll| will) take\b"
     r"|(?<!怎么)(?<!如何)下(?:个|一?个|一)?单(?!日期|时间|.*(?:优惠|活动|减|便宜))|(?:我要|我想|想|帮我|给我|就)买|购买|订购|(?:来|要)[一二两三四五1-5][台个套]",
     ("place_order",)),
    ("recommend",
     r"\brecommend|\bsuggest\b|\bnew(?:er|est)? (?:models?|products?|robot|vacuums?)\b"
     r"|\bwhat (?:do|can) you (?:sell|offer|have)\b|推荐|新品|新型号|卖什么|在售"
     r"|新款(?!.*(?:活动|优惠|多少钱|区别))|有什么(?:产品|商品)", ("recommend_products",)),
    (GOODS,
     r"\bpromotions?\b|\bdiscounts?\b|\bcoupons?\b|\boffers?\b|\bcheaper\b|\bon sale\b"
     r"|\bhow much (?:is|are|does|do|for)\b|\bprices?\b|\bcosts?\b|\bdifferences?\b|\bcompar"
     r"|\bversus\b|\bvs\b|\bbetter\b|活动|优惠|促销|折扣|打折|便宜|满减|多少钱|价格|售价|什么价"
     r"|区别|对比|差别|不同|哪[个款]好|怎么选|比较", ("search_knowledge",)),
    ("delivery", r"\bshipping\b|\bdelivery\b|\bdispatch|\binvoices?\b|发货|配送|运费|发票|送货",
     ("search_knowledge",)),
    ("parcel",
     r"\b(?:logistics|tracking|parcel|package)\b|\border\b.*\b(?:arrive|shipped|sent|delivered)"
     r"|快递|包裹|运单", ("query_order", "query_logistics")),
    ("order status",
     r"\b(?:status|state|details?|check|look up|show|find)\b.*\border\b"
     r"|\border\b.*\b(?:status|details?)\b|\border\s*(?:number\s*|no\.?\s*|#\s*)?\d{5}\b"
     r"|[查看问].{0,8}订单|订单.{0,10}(?:状态|情况|详情|怎么样|信息|进度)|订单[编单号]{0,2}\W{0,3}\d{5}",
     ("query_order",)),
)  # fmt: skip
PATTERNS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), tools) for kind, pattern, tools in _PATTERNS
)


def wishes(text: str) -> tuple[Wish, ...]:
    """What the sentences of a text ask for, one wish of a kind, in order. A defect that is told as
    the reason of a refund asks for nothing."""
    found: dict[str, Wish] = {}
    # "No. 7" ends no sentence.
    for sentence in sentences(re.sub(r"\b(no)\.\s+(?=\d)", r"\1 ", plain(ends(text)), flags=re.I)):
        sentence = sentence[:SENTENCE]
        for kind, pattern, tools in PATTERNS:
            if pattern.search(sentence) and (kind != GOODS or _is_of_goods(sentence)):
                found.setdefault(kind, Wish(kind, tools, sentence))
                break
        else:
            if products_in(sentence) and ASKING.search(sentence):
                found.setdefault(GOODS, Wish(GOODS, ("search_knowledge",), sentence))
    if "refund" in found:
        found.pop("defect", None)
    return tuple(found.values())


def _is_of_goods(sentence: str) -> bool:
    """Whether a question of prices or differences is about goods: not where the model itself knows
    what it is about."""
    other = any(re.search(topic, sentence, re.IGNORECASE) for topic, *_ in TOPICS)
    return bool(products_in(sentence)) or not (other or re.search(SUM, sentence))


_PLAIN = {
    wide + at: ord(first) + at
    for wide, first, count in ((0xFF10, "0", 10), (0xFF21, "A", 26), (0xFF41, "a", 26))
    for at in range(count)
} | {ord("’"): "'"}


def plain(text: str) -> str:
    """A text with its full-width letters and digits as plain ones, Chinese marks as they are."""
    return text.translate(_PLAIN)


def ends(text: str) -> str:
    """A text as far as it is searched for wishes: all of it, or where it is long both its ends."""
    return text if len(text) <= 2 * END else f"{text[:END]}\n{text[-END:]}"


# An order as it is called, and any number of five digits that is no part of another value.
_ORDER = re.compile(
    r"(?:(?<!no )\border(?:[ _]number| no\.?)?|(?<!没有查到)订单(?:编号|号)?)"
    r"""["'“”:：#\s（(]{0,4}(?:is |was |是|为)?\s*(?<!\d)(\d{5})(?!\d)""",
    re.IGNORECASE,
)
_FIVE = re.compile(r"(?<![A-Za-z0-9_¥￥$€.,:/-])(\d{5})(?![A-Za-z0-9_]|[.,:/-]\d|\s?[元%])")
_BARE = re.compile(r"^- (?:id|number|code): .*$", re.MULTILINE)  # values carried over a summary
_REFUND = re.compile(r"\bRF\d{6,}", re.IGNORECASE)


def order_numbers(text: str, *, own: bool) -> list[str]:
    """The order numbers of a text; `own` is what the user wrote, where five digits are enough."""
    text = plain(text)
    found = {match.start(1): match[1] for match in _ORDER.finditer(text)}
    bare = text if own else "" if found else "\n".join(_BARE.findall(text))
    found |= {match.start(1): match[1] for match in _FIVE.finditer(bare)}
    return [found[at] for at in sorted(found)]


def refund_numbers(text: str) -> list[str]:
    return [number.upper() for number in _REFUND.findall(plain(text))]


def _named(keys: Sequence[str]) -> re.Pattern[str]:
    spelt = "|".join(r"[\s-]?".join(map(re.escape, key)) for key in keys)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{spelt})(?![A-Za-z0-9])", re.IGNORECASE)


_NAMES = {key: _named(one.keys) for key, one in PRODUCTS.items()}
ON_SALE = frozenset(key for key, one in PRODUCTS.items() if not one.successor)


def products_in(text: str) -> dict[str, str]:
    """The products that a text names, in its own words."""
    text = plain(text)
    found = ((key, pattern.search(text)) for key, pattern in _NAMES.items())
    return {key: match[0] for key, match in found if match}


_DIGITS = (
    {word: number for number, word in enumerate(("one", "two", "three", "four", "five"), 1)}
    | {word: number for number, word in enumerate("一二三四五六七八九十", 1)}
    | {"两": 2}
)
_QUANTITY = re.compile(
    rf"\b(?:order|buy|take|need|want|get)\s+(?:me\s+)?(\d{{1,3}}|{'|'.join(_DIGITS)})\b"
    rf"|(?<![A-Za-z0-9])(\d{{1,3}}|[一二两三四五六七八九十])\s*(?:[x×]|pieces?\b|units?\b|[台套件]|个(?!装|单))",
    re.IGNORECASE,
)
_BUDGET = re.compile(
    r"(?:under|below|less than|at most|up to|within|no more than|budget(?: is| of)?|cheaper than"
    r"|预算|不超过|低于|少于|最多)[^\d,，。.]{0,6}(\d[\d,]*(?:\.\d+)?)"
    r"|(\d[\d,]*)\s*(?:元|块钱?|yuan)?\s*(?:以内|以下|之内|左右)",
    re.IGNORECASE,
)
_CATEGORIES = (
    ("robot vacuum", r"\bvacuum|\brobot|扫地机|扫拖"),
    ("air purifier", r"\bpurifier|净化器"),
    ("accessory", r"\baccessor|\bbags?\b|配件|集尘袋|耗材"),
)
_MESSAGE = re.compile(r"\bmessage\s*(?:number|no\.?|#)?\s*(\d{1,9})|第\s*(\d{1,9})\s*条", re.I)
_START = re.compile(r"\b(?:from|at) (?:character )?(\d{1,9})\b|从第?\s*(\d{1,9})\s*个?字", re.I)
_BECAUSE = re.compile(
    r"(?:\bbecause\b|\bsince\b|\breason(?: is)?\b|因为|由于|原因是?)[:：,，\s]*(.+)", re.IGNORECASE
)
_PARTS = re.compile(r"[,，:：;；。!！?？\n]+\s*|\.\s+|\.$")
_FILLER = re.compile(
    r"(?:hi|hello|then|ok|okay|please|thanks?|你好|您好|那|好的?|谢谢|麻烦了?)?\W*"
    r"|(?:for |的)?(?:my )?(?:the )?(?:order|订单)[编单号]{0,2}\W*(?:\d{5})?|\d{5}",
    re.IGNORECASE,
)  # fmt: skip


def quantity_in(text: str) -> int | None:
    match = _QUANTITY.search(plain(text))
    word = (match[1] or match[2]).casefold() if match else ""
    return _DIGITS.get(word) or (int(word) if word.isdigit() else None)


def budget_in(text: str) -> float | None:
    match = _BUDGET.search(plain(text))
    return float((match[1] or match[2]).replace(",", "")) if match else None


def category_in(text: str) -> str | None:
    return next((name for name, words in _CATEGORIES if re.search(words, text, re.I)), None)


def position_in(text: str) -> int | None:
    match = _MESSAGE.search(plain(text))
    return int(match[1] or match[2]) if match else None


def start_in(text: str) -> int | None:
    match = _START.search(plain(text))
    return int(match[1] or match[2]) if match else None


def reason_in(text: str) -> str:
    """Why the user wants a refund: what the message says besides the wish, else all of it."""
    text = plain(ends(text))
    because = _BECAUSE.search(text)
    if because:
        return clip(because[1].rstrip(".。!！ "), WORDS_SHOWN)
    parts = [part.strip() for part in _PARTS.split(text)]
    told = [
        part
        for part in parts
        if not _FILLER.fullmatch(part) and all(wish.kind == "defect" for wish in wishes(part))
    ]
    comma = "，" if "，" in text else ", "
    return clip(comma.join(told) or " ".join(text.split()), WORDS_SHOWN)
