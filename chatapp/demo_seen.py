"""What the demo model sees of one request: the messages, and the memory parts in them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatapp.demo_reading import is_chinese
from chatapp.demo_summary import Notes
from chatapp.demo_texts import Both

MEMORY = re.compile(r"<memory\b[^>]*>\n?(.*?)\n?</memory>", re.DOTALL)
LEADING = re.compile(rf"\A(?:\s*{MEMORY.pattern})+\s*", re.DOTALL)
# The tools that quote the transcript, and how they head what they quote.
QUOTING = ("search_memory", "read_message")
QUOTE = re.compile(
    r"^\[(\d{1,18})\] (user|assistant|tool)\b[^\n]{0,80}, turn \d+(?:, characters [^\n]*)?:\n",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a call of the running turn returned."""

    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What one request shows: the newest message, what is known, and how much there is.

    `said` has every text with its role, oldest first, memory parts and what was looked up in the
    transcript before all others. `results` are those of the running turn, `steps` its requests that
    ended with calls.
    """

    text: str
    chinese: bool
    notes: Notes
    users: tuple[str, ...]
    replies: int
    memories: int
    said: tuple[tuple[str, str], ...] = ()
    results: tuple[Result, ...] = ()
    steps: int = 0

    def say(self, both: Both) -> str:
        return both[self.chinese]


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message whose content is a string, a list of parts, or null."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def look(messages: Sequence[Mapping[str, Any]]) -> Seen:
    """Gather what these messages (in the API's format) say, the newest last."""
    notes = Notes()
    memories: list[str] = []
    users: list[str] = []
    quotes: list[tuple[int, str, str]] = []
    others: list[tuple[str, str]] = []
    replies = 0
    for message, tool in zip(messages, _tools_of(messages), strict=True):
        role, text = message["role"], text_of(message)
        fenced = LEADING.match(text) if role == "user" else None
        memories += MEMORY.findall(text if role == "system" else fenced[0] if fenced else "")
        if tool in QUOTING:
            quotes += _quotes(tool, text)
            continue
        others.append((role, text[fenced.end() :] if fenced else text))
        replies += role == "assistant" and bool(text) and not message.get("tool_calls")
    quoted = [(role, text) for _, role, text in sorted(quotes)]
    for memory in memories:  # before the messages: these are newer
        notes.recall(memory)
    for role, text in quoted + others:
        if role == "user":
            notes.learn(text)
        elif role in ("assistant", "tool"):
            notes.note(text)
    users = [text for role, text in others if role == "user" and text.strip()]
    written = next((text for text in reversed(users) if re.search(r"[^\W\d]", text)), "")
    text = users[-1] if users else ""
    said = [("memory", memory) for memory in memories] + quoted + others
    results, steps = _turn(messages)
    return Seen(
        text,
        is_chinese(written),
        notes,
        tuple(users),
        replies,
        len(memories),
        tuple(said),
        results,
        steps,
    )


def _turn(messages: Sequence[Mapping[str, Any]]) -> tuple[tuple[Result, ...], int]:
    """The results behind the last user message, and how many steps they took."""
    asked = max((at for at, one in enumerate(messages) if one["role"] == "user"), default=-1)
    told = list(zip(_tools_of(messages), messages, strict=True))[asked + 1 :]
    results = (Result(tool, text_of(message)) for tool, message in told if tool)
    return tuple(results), sum(bool(one.get("tool_calls")) for one in messages[asked + 1 :])


def _tools_of(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each message the tool whose result it is, "" where it is none."""
    names: dict[str, str] = {}
    tools = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        is_result = message["role"] == "tool"
        tools.append(names.get(message["tool_call_id"], "unknown") if is_result else "")
    return tools


def _quotes(tool: str, text: str) -> list[tuple[int, str, str]]:
    """What a result quotes of the transcript: positions, roles and texts. A search gives each in
    one line, so that none can pass for another; a message that is read stands alone."""
    heads = list(QUOTE.finditer(text))[: None if tool == QUOTING[0] else 1]
    ends = [*(head.start() for head in heads), len(text)][1:]
    return [
        (int(head[1]), head[2], text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    ]
