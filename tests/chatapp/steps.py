"""Turns with steps, stored as the runner stores them, and their rows in a page."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

from django.test import Client

from memory import store
from memory.core.messages import Message, ToolCall
from memory.core.tokens import message_tokens
from memory.encodings import counter_for
from memory.models import Conversation, Turn, TurnState
from memory.rows import Written
from tests.chatapp.helpers import get

COUNTER = counter_for("demo")


def written(message: Message, **more: Any) -> Written:
    return Written(replace(message, tokens=message_tokens(message, COUNTER)), **more)


def called(*calls: tuple[str, str], text: str = "", **more: Any) -> Written:
    """A message with calls, as pairs of a name and arguments; their ids are c0, c1, ..."""
    made = tuple(ToolCall(f"c{at}", *call) for at, call in enumerate(calls))
    return written(Message("assistant", text, tool_calls=made), **more)


def result(text: str, at: int = 0, **detail: Any) -> Written:
    return written(Message("tool", text, tool_call_id=f"c{at}"), detail=detail)


def said(text: str, **more: Any) -> Written:
    return written(Message("assistant", text), **more)


def asked(conversation: Conversation, *steps: Written) -> Turn:
    """A running turn with these messages behind its question."""
    turn, _ = store.start_turn(
        conversation_id=conversation.pk,
        client_id=f"t{conversation.turns.count()}",
        message=written(Message("user", "Where is it?")).message,
        encoding=COUNTER.name,
        owner="",
    )
    store.add_step(turn_id=turn.pk, step=1, written=steps, encoding=COUNTER.name)
    return turn


def ended(
    conversation: Conversation,
    *steps: Written,
    reply: Written | None = None,
    state: TurnState = TurnState.COMPLETE,
    code: str = "",
) -> Turn:
    """The same, ended."""
    turn = asked(conversation, *steps)
    store.finish_turn(
        turn_id=turn.pk, state=state, reply=reply, encoding=COUNTER.name, error_code=code
    )
    return turn


def texts_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def rows_in(html: str) -> list[dict[str, str]]:
    """The rows of calls in a page: what each shows while it is closed, and what it unfolds."""
    found = []
    for row in re.findall(r'<details class="call .*?</details>', html, re.DOTALL):
        kind, sight = re.findall(r'class="call ([\w-]+) is-(\w+)"', row)[0]
        closed = row[: row.index("</summary>")]
        parts = re.split(r'<\w+ class="call-(\w+)[^"]*">', closed)[1:]
        texts = {name: texts_of(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
        unfolded = [unescape(text) for text in re.findall(r"<pre[^>]*>\n(.*?)</pre>", row, re.S)]
        texts |= dict(zip(("arguments", "result"), unfolded, strict=False))
        found.append(texts | {"kind": kind, "sight": sight})
    return found


def rows(client: Client, conversation: Conversation, **query: Any) -> list[dict[str, str]]:
    return rows_in(get(client, conversation, "transcript", **query))


def positions(html: str) -> list[int]:
    """The positions of the shown messages, from above."""
    return [int(found) for found in re.findall(r'id="m-(\d+)"', html)]
