"""How the demo model folds messages into a summary.

A summary has up to six lines of items between semicolons, so that it reads as notes and is read
back exactly when it is chained or asked:

    User: is called Ada; is learning agent development
    Done: refund number RF20260629001 (order 88231, ¥1,999, does not dock), 3-5 working days
    Noted: code KX-40718
    Asked: What is ReAct → ReAct lets a model take turns
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chatapp.demo_dealings import about, dealings
from chatapp.demo_reading import (
    LABEL,
    NOTED,
    REFUND_NUMBER,
    SEVERAL,
    Facts,
    Items,
    approx_tokens,
    clip,
    is_chinese,
    literals_in,
    read,
    sentences,
)
from memory.core.checking import ARCHIVE_GAP
from memory.core.prompts import LANGUAGES

SECTIONS = {
    "facts": ("User", "用户"),
    "done": ("Done", "已办"),
    "literals": ("Noted", "记下"),
    "requests": ("Requests", "要求"),
    "also": ("Also", "另有"),
    "asked": ("Asked", "问过"),
}
LABELS = {label.casefold(): name for name, labels in SECTIONS.items() for label in labels}
SPEAKERS = ("assistant", "助手", "tool")
LINE = re.compile(rf"[\W\d]*({'|'.join((*LABELS, *SPEAKERS))})\W*[:：]\s*(.*)", re.IGNORECASE)
Dropped = tuple[dict[Any, str], Any]  # something of a summary, and the key of an item in it
# How many items a summary has at most, whatever its cap.
KEPT = {"asked": 12, "also": 8, "requests": 8, "done": 12, "literals": 40}
STANDING = re.compile(
    r"(?:please )?(?:always|never|from now on|don't|do not|make sure|remind me|i want|i need)\b.*"
    "|请?(?:以后|总是|务必|不要|每次|从现在|提醒我|帮我|我要|我想).*",
    re.IGNORECASE,
)
# Of these, what is over once a tool was called for it; and how a message quotes its calls.
ONE_OFF = re.compile("(?:please )?i (?:want|need)\\b|请?(?:帮我|我要|我想)", re.IGNORECASE)
CALLS = re.compile(r"(?:^|\n)calls [\w-]+\(.*", re.DOTALL)
# Marks of Markdown, and what stays of them: at the start of a line, and in pairs around words. A
# single one is a sign of its own, as in 12*12.
MARKS = (
    (re.compile(r"^\s*(?:#{1,6}|[*+-])\s+", re.MULTILINE), ""),
    (re.compile(r"^\s*\|(.*)\|\s*$", re.MULTILINE), r"\1"),
    (re.compile(r"(`+)([^`]+)\1"), r"\2"),
    (re.compile(r"(?<![A-Za-z0-9*])(\*{1,3})(?=[^\s*])(.+?)(?<=[^\s*])\1(?![A-Za-z0-9*])"), r"\2"),
)
LETTER = re.compile(r"[^\W\d_]")
SMALL_TALK = re.compile(
    r"(?:hi|hello|hey|thanks|thank you|ok|okay|yes|no|你好|您好|嗨|谢谢|好的?)?\W*", re.I
)


@dataclass(slots=True)
class Notes:
    """What has been gathered so far; where a new text differs from it, the new text holds."""

    facts: Facts = field(default_factory=dict)
    done: Items = field(default_factory=dict)
    literals: Items = field(default_factory=dict)
    requests: Items = field(default_factory=dict)
    also: Items = field(default_factory=dict)
    asked: Items = field(default_factory=dict)
    newest: tuple[str, ...] = ()  # the keys of the requests in the user's newest message

    def learn(self, text: str, *, memory: bool = False) -> tuple[str, ...]:
        """Take in the facts and literals of a text; returns its clauses that state nothing."""
        reading = read(text, memory=memory)
        for key, value in reading.facts.items():
            for outdated in literals_in(self.facts.pop(key, "")):
                self.literals.pop(outdated, None)
            self.facts[key] = value
        self.note(text)
        return reading.rest

    def note(self, text: str) -> None:
        done = dealings(text, self.done)
        for number, item in done.items():
            self.done.pop(number, None)
            self.done[number] = _quiet(item)
        for value, label in literals_in(text).items():
            if done and not LABEL.search(label):  # the steps of a parcel are looked up again
                continue
            known = self.literals.pop(value, "")
            self.literals[value] = known if known and not LABEL.search(label) else label

    def recall(self, memory: str) -> None:
        """Take in a memory: a summary of this module or any other text about the user."""
        rows: list[tuple[str, str]] = []
        for line in memory.replace(ARCHIVE_GAP, "").splitlines():
            match = LINE.fullmatch(line)
            # Whoever speaks goes on speaking until the next label.
            speaker = rows[-1][0] if rows and rows[-1][0] in SPEAKERS else ""
            label = match[1].casefold() if match else speaker
            rows.append((LABELS.get(label, label), match[2] if match else line))
        for name, body in sorted(rows, key=lambda row: row[0] != "literals"):
            items = [item.strip() for item in re.split("[;；]", body) if item.strip()]
            if name == "done":
                self.done.update({about(item): item for item in items})
            elif name in ("requests", "also", "asked"):
                getattr(self, name).update(_by_topic(items))
            elif name in ("facts", ""):
                # An archive may begin in the middle of what was asked.
                self.asked.update(_by_topic(item for item in items if " → " in item))
                told = "; ".join(item for item in items if " → " not in item)
                rest = filter(LETTER.search, self.learn(told, memory=True))
                self.also.update({clause.casefold(): clip(_quiet(clause), 80) for clause in rest})
            for item in items if name not in ("asked", "facts", "") else ():
                self.note(item)

    def hear(self, role: str, text: str, asked: str = "") -> str:
        """Take in one message; `asked` is the open question. Returns the question open now."""
        if role != "user":
            calls = CALLS.search(text) if role == "assistant" else None
            text = text[: calls.start()] if calls else text
            self.note(text)
            for value, label in literals_in(calls[0]).items() if calls else ():
                self.literals.setdefault(value, label)
            for key in self.newest if calls else ():
                if ONE_OFF.match(key):
                    self.requests.pop(key, None)
            if role == "assistant" and asked and not calls:
                self.asked[asked] += " → " + clip(_quiet((sentences(text) or [""])[0]), 40)
                asked = ""
            return asked
        rest = [_quiet(clause) for clause in self.learn(text)]
        standing = [clip(clause, 60) for clause in rest if STANDING.fullmatch(clause)]
        self.requests.update({clause.casefold(): clause for clause in standing})
        self.newest = tuple(clause.casefold() for clause in standing)
        topic = clip(
            next((c for c in rest if not (SMALL_TALK.fullmatch(c) or c in standing)), ""), 40
        )
        self.asked.pop(topic.casefold(), None)
        self.asked |= {topic.casefold(): topic} if topic else {}
        return topic.casefold()

    def render(self, *, chinese: bool) -> str:
        order = list(NOTED)
        facts = sorted(self.facts.items(), key=lambda fact: order.index(fact[0][0]))
        told = [NOTED[kind][chinese].format(s=slot, v=value) for (kind, slot), value in facts]
        done = list(self.done.values())
        kept = str(told + done)
        loose = [f"{label} {v}".strip() for v, label in self.literals.items() if v not in kept]
        others = (list(items.values()) for items in (self.requests, self.also, self.asked))
        rows = (told, done, loose, *others)
        colon, semicolon = ("：", "；") if chinese else (": ", "; ")
        labelled = zip(SECTIONS.values(), rows, strict=True)
        return "\n".join(
            label[chinese] + colon + semicolon.join(row) for label, row in labelled if row
        )

    def fit(self, limit: int, *, chinese: bool) -> str:
        """The rendering within `limit` tokens: oldest mentions go first, single facts never. What
        was done leaves its numbers behind."""
        for name, most in KEPT.items():
            items: Items = getattr(self, name)
            first = list(items)
            if name == "literals":
                first.sort(key=lambda value: _worth(value, self.literals[value]))
            for key in first[: max(0, len(items) - most)]:
                del items[key]
        parts: list[Dropped] = [
            (items, key) for items in (self.asked, self.also, self.requests) for key in items
        ]
        ranked = [(_worth(value, label), value) for value, label in self.literals.items()]
        parts += [(self.literals, value) for worth, value in ranked if worth == 0]
        parts += [(self.done, key) for key in self.done]
        parts += [
            (self.literals, value)
            for wanted in (1, 2)
            for worth, value in ranked
            if worth == wanted
        ]
        parts += [(self.facts, key) for kind in SEVERAL for key in self.facts if key[0] == kind]
        text = self.render(chinese=chinese)
        for kept, key in parts:
            if approx_tokens(text) <= limit:
                break
            if kept.pop(key, None):
                text = self.render(chinese=chinese)
        return text


def _by_topic(items: Iterable[str]) -> Items:
    return {item.partition(" → ")[0].casefold(): item for item in items}


def _worth(value: str, label: str) -> int:
    """How late a literal is dropped: what has no label of its own first, refund numbers last."""
    return 2 if REFUND_NUMBER.fullmatch(value) else int(bool(LABEL.search(label)))


def _quiet(text: str) -> str:
    """A text as one item: without line breaks, marks of a summary and Markdown."""
    text = re.sub(rf"\b(?:{'|'.join(LABELS)})\s*[:：]", "", text, flags=re.IGNORECASE)
    for mark, kept in MARKS:
        text = mark.sub(kept, text)
    return re.sub(r"\s+", " ", re.sub(r"[;；→]", ",", text)).strip()


def summarise(system: str, user: str) -> str:
    """The summary that a request of `memory.core.prompts.summary_request` asks for.

    Never empty where the request quotes any text, shorter than what it quotes (at most as long if
    there is no new message), and within its cap, both by `approx_tokens`.
    """
    previous = "\n".join(
        re.findall(r"<previous_summary>\n(.*?)\n</previous_summary>", user, flags=re.DOTALL)
    )
    messages = re.findall(r'<message [^>]*role="(\w+)">\n(.*?)\n</message>', user, flags=re.DOTALL)
    cap = re.search(r"at most (\d+) tokens", system + user)
    texts = [previous, *(text for _, text in messages)]
    limit = sum(map(approx_tokens, texts)) - bool(messages)
    limit = max(1, min(limit, int(cap[1]) if cap else limit))
    chinese = f"in {LANGUAGES['zh']}" in system or (
        "in the language of" in system and is_chinese(" ".join(texts))
    )
    notes = Notes()
    notes.recall(previous)
    asked = ""
    for role, text in messages:
        asked = notes.hear(role, text, asked)
    summary = notes.fit(limit, chinese=chinese)
    if summary and approx_tokens(summary) <= limit:
        return summary
    words = " ".join(text for role, text in messages if role == "user") or " ".join(texts)
    words = " ".join(words.split()).rstrip(".!。！ ")
    return words if summary and 0 < approx_tokens(words) <= limit else _cut(summary or words, limit)


def _cut(text: str, limit: int) -> str:
    while approx_tokens(text) > limit and len(text) > 1:
        text = text[:-1]
    return text


QUESTION_WORDS = re.compile(
    r"^(?:(?:hi|hello|hey|please|so)\W+)*"
    r"(?:(?:what|who|where|how)(?:'s| is| are| was| much is| do| does)|tell me about|explain)\s+"
    r"|^(?:请问|什么是|介绍一下)|(?:是什么|是多少|怎么样|吗)?[?？!！.。]*$",
    re.IGNORECASE,
)
TITLE_WIDTH = 40


def title(user: str) -> str:
    """A title for the first exchange quoted in `user`: the facts told, or what was asked about."""
    quoted = re.search(r'role="user">\n(.*?)\n</message>', user, re.DOTALL)
    text = quoted[1] if quoted else ""
    told = [value for (kind, _), value in read(text).facts.items() if kind != "note"]
    if told:
        return clip(" · ".join(told), TITLE_WIDTH)
    first = next((one for one in sentences(text) if not SMALL_TALK.fullmatch(one)), text)
    return clip(QUESTION_WORDS.sub("", first.strip()).strip() or first, TITLE_WIDTH)
