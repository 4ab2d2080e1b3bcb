"""The words of the demo model in English and Chinese, and the patterns that ask for them."""

import re
from collections.abc import Mapping, Sequence

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
TOPIC_WORD = re.compile(
    r"\b(?!about|there|their|please|could|would)[A-Za-z]{5,}"
    "|(?:(?![的了吗呢吧啊我你他她这那是在有没要请帮个和与一下么什怎把被多少])[㐀-鿿]){2,4}"
)
# What says that something is not known.
UNTOLD: Both = ("nothing in this request says so", "这次请求里没有任何内容提到")
# What is looked for in the transcript where a fact of the user is not known.
WORDS_OF: Mapping[str, Both] = {
    "name": ("name called call", "名字 姓名 叫"),
    "learning": ("learning study", "学习 学"),
    "lives": ("live living moved", "住在 家住 搬到"),
    "from": ("come from born", "来自 老家"),
    "work": ("work job profession", "职业 工作"),
    "workplace": ("work at company", "上班 工作"),
    "likes": ("like love enjoy", "喜欢 热爱"),
}
# What is said before a call, with its arguments in it.
THOUGHTS: Mapping[str, Both] = {
    "query_order": ("I look up order {order_number}.", "我来查一下订单 {order_number}。"),
    "query_logistics": ("I look up order {order_number}.", "我来查一下订单 {order_number}。"),
    "apply_refund": (
        "I apply for a refund of order {order_number}.",
        "我来为订单 {order_number} 申请退款。",
    ),
    "query_refund": ("I look up the refund of {number}.", "我来查一下 {number} 的退款。"),
    "search_knowledge": ("I look that up in the knowledge base.", "我来查一下知识库。"),
    "recommend_products": ("I look at what is on sale.", "我来看看在售的商品。"),
    "place_order": ("I place an order: {product}.", "我来下单：{product}。"),
    "current_time": ("I look at the clock.", "我来看一下时间。"),
    "search_memory": ("I search the earlier messages.", "我来找一找之前的消息。"),
    "read_message": ("I read message {position}.", "我来读第 {position} 条消息。"),
}
THOUGHT: Both = ("I call {tool}.", "我来调用 {tool}。")
# What the user is asked where a call needs it and no message tells it, and what shows that the
# reply before asked back.
ASKING_FOR: Mapping[str, Both] = {
    "order_number": (
        "Which order is it? Please tell me its number.",
        "请问是哪个订单？请告诉我订单号。",
    ),
    "number": (
        "Which refund is it? Please tell me its number, or that of the order.",
        "请问是哪一笔退款？请告诉我退款编号或订单号。",
    ),
    "product": ("Which product would you like to order?", "请问您要订购哪一款商品？"),
    "position": ("Which message is it? Please tell me its number.", "请问是第几条消息？"),
}
ASKED_BACK = re.compile(
    r"Which (?:order|refund|product|one)\b[^?]*\?|Please check the number"
    r"|请问(?:是哪个订单|是哪一笔退款|您?要(?:订购)?哪一款)|请核实订单号"
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
