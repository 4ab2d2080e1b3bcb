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


def look(messages: Sequence[Mapping[str, Any]]) -> Seen:
    """Gather what these messages (in the API's format) say, the newest last."""
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
