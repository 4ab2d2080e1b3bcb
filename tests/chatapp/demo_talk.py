"""Short ways to talk to the demo model and to let it summarise."""

from collections.abc import Sequence
from typing import Any

from chatapp.demo_rules import answer
from chatapp.demo_summary import summarise
from memory.core.messages import Message
from memory.core.prompts import memory_part, summary_request

ADA = "Hi, I'm Ada and I am learning agent development."
XIAOFU = "我叫小傅哥，在学智能体开发。"

NAME_ZH = "我叫什么名字？在学什么？"
NAME_EN = "What's my name and what am I learning?"


def ask(*users: str, memory: str = "") -> str:
    """The reply to the last of these messages, each earlier one having got its own reply."""
    part = memory_part("summary", 'version="1"', memory) if memory else ""
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"Be kind.\n{part}"}]
    for text in users:
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": answer(messages)})
    return str(messages[-1]["content"])


def fold(*pairs: tuple[str, str], previous: str = "", cap: int = 500, language: str = "en") -> str:
    messages = [
        Message(role=role, content=text, position=position)  # type: ignore[arg-type]
        for position, (role, text) in enumerate(pairs, 1)
    ]
    system, user = summary_request(messages, previous=previous, cap=cap, language=language)
    return summarise(system["content"], user["content"])


def talk(*users: str) -> Sequence[tuple[str, str]]:
    return [pair for text in users for pair in (("user", text), ("assistant", ask(text)))]
