"""Reading conversations from JSON or JSON lines: OpenAI's messages and ShareGPT's.

A conversation is a list of messages, or an object that has one under a key of `KEYS`. A file holds
one conversation, or a list of them, or one or a message on each line. What a request does not
repeat is left out: a model's reasoning, and the schemas of the tools, of which only the tokens are
kept. Every ValueError says where something is wrong, what was expected and what was found.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory.core.messages import Message, Role, ToolCall
from memory.core.text import clean, shorten
from memory.core.tokens import Counter, message_tokens

# The keys of an object under which its messages are (OpenAI, ShareGPT, tau-bench).
KEYS = ("messages", "conversations", "traj")
ROLES: dict[str, Role] = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "function_call"), "assistant"),
    **dict.fromkeys(("tool", "function", "observation"), "tool"),
}
TEXT_PARTS = ("text", "input_text", "output_text")
REASONING_PARTS = ("reasoning", "thinking")
# Characters that an error shows of what it found.
SHOWN = 60
CALL = 'a call (an object with "name" and "arguments")'

# A call as Glaive's model writes it, where its arguments are JSON between single quotes.
_QUOTED = re.compile(r"""\{\s*"name":\s*"([^"]+)",\s*"arguments":\s*'(.*)'\s*\}""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation to replay. `name` is where it stands in its file ("" where it is all of
    it), `tools_tokens` what its tools' schemas, which are left out, would cost in a request."""

    name: str
    system_prompt: str
    messages: tuple[Message, ...]
    tools_tokens: int = 0


def conversations(
    data: bytes | str, counter: Counter, *, limit: int | None = None
) -> tuple[Conversation, ...]:
    """The conversations of a file, the first `limit` of them; each message with its position
    (from 1), its turn and its tokens. Raises ValueError."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"expected UTF-8 text, which byte {error.start} is not") from error
    if not text.strip():
        raise ValueError("expected at least one conversation, not an empty file")
    rows = _rows(text)
    if len(rows) == 1 and isinstance(rows[0][1], list):
        rows = [(f"[{index}]", value) for index, value in enumerate(rows[0][1])]
    if not rows:
        raise ValueError("expected at least one conversation, not an empty list")
    if _is_message(rows[0][1]):
        return (_conversation("", rows, counter),)
    return tuple(_whole(where, value, counter) for where, value in rows[:limit])


def _rows(text: str) -> list[tuple[str, Any]]:
    """The JSON value of the text, or the one on each of its lines; with where it stands."""
    try:
        return [("", _parsed(text))]
    except ValueError as error:
        whole = error
    # Not splitlines: some of what that splits at may stand within a JSON text.
    lines = [(f"line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    rows: list[tuple[str, Any]] = []
    for where, line in lines:
        try:
            rows.append((where, _parsed(line)))
        except ValueError as error:
            # Where not even the first line is JSON these are no JSON lines.
            raise ValueError(f"{where}: {error}") if rows else whole from error
    return rows


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("expected JSON, not so many brackets within each other") from error
    except ValueError as error:
        raise ValueError(f"expected JSON: {error}") from error


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or any(key in value for key in KEYS):
        return False
    return any(key in value for key in ("role", "from", "message"))


def _whole(where: str, value: Any, counter: Counter) -> Conversation:
    """The conversation in a list of messages, or in an object that has one."""
    key = next((key for key in KEYS if key in value), "") if isinstance(value, dict) else ""
    items = value[key] if key else value
    inner = f"{where}.{key}".lstrip(".") if key else where
    if not isinstance(items, list):
        keys = ", ".join(f'"{key}"' for key in KEYS)
        raise _wrong(inner, f"a list of messages, or an object with one under {keys}", items)
    rows = [(f"{inner}[{index}]", item) for index, item in enumerate(items)]
    read = _conversation(inner, rows, counter)
    if not key:
        return replace(read, name=where)
    system, tools = value.get("system"), value.get("tools") or ""
    if isinstance(system, str) and system.strip():
        both = (clean(system), read.system_prompt)
        read = replace(read, system_prompt="\n\n".join(filter(None, both)))
    schemas = tools if isinstance(tools, str) else json.dumps(tools, ensure_ascii=False)
    tokens = 0 if schemas.strip() in ("", "[]") else counter.count(schemas)
    return replace(read, name=where, tools_tokens=tokens)


def _conversation(where: str, rows: Sequence[tuple[str, Any]], counter: Counter) -> Conversation:
    """The conversation of some messages. Every user message begins a turn; what is said before
    the first one is a turn of its own."""
    reader = _Reader()
    for place, item in rows:
        reader.take(place, item)
    if not reader.messages:
        raise ValueError(f"{where or 'the file'}: expected at least one message of the user's")
    turn, messages = 0, []
    for position, message in enumerate(reader.messages, 1):
        turn += message.role == "user" or not turn
        tokens = message_tokens(message, counter)
        messages.append(replace(message, position=position, turn=turn, tokens=tokens))
    return Conversation("", "\n\n".join(reader.system), tuple(messages))


@dataclass(slots=True)
class _Reader:
    """What was read of a conversation so far. `open` are the calls without a result yet."""

    system: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    open: list[ToolCall] = field(default_factory=list)
    calls: int = 0

    def take(self, where: str, item: Any) -> None:
        """Read one message."""
        if not isinstance(item, dict):
            raise _wrong(where, "a message (an object)", item)
        name = item.get("role", item.get("from"))
        if name is None and isinstance(item.get("message"), str):
            # Without roles two people speak in turns, the first of whom is the user (KdConv).
            name = "assistant" if len(self.messages) % 2 else "user"
        if not isinstance(name, str) or name not in ROLES:
            raise _wrong(f"{where}.role", f"one of {', '.join(ROLES)}", name)
        role = ROLES[name]
        text, calls = _content(where, item, name)
        if role == "tool":
            self._result(where, item, text)
        elif role == "system" and self.messages:
            raise ValueError(f"{where}: expected a system message at the beginning only")
        elif role == "system":
            self.system.append(text)
        else:
            self._say(role, text, calls)

    def _say(self, role: Role, text: str, calls: Sequence[ToolCall]) -> None:
        """A message of the user's or the assistant's; calls without an id are given one."""
        self.open = []
        for call in calls:
            self.calls += 1
            self.open.append(call if call.id else replace(call, id=f"call_{self.calls}"))
        self.messages.append(Message(role, text, tool_calls=tuple(self.open)))

    def _result(self, where: str, item: dict[str, Any], text: str) -> None:
        """A tool's result, or several in one. Without an id it belongs to the next open call, of
        its name if there is one; behind no call it stays a result without a call."""
        name, id_ = item.get("name") or "", item.get("tool_call_id")
        if not isinstance(name, str) or not isinstance(id_, str | None):
            raise _wrong(f"{where}.tool_call_id and name", "texts", id_)
        name, texts = clean(name), [text]
        if id_ is None and len(self.open) > 1:
            texts = _several(text, len(self.open)) or texts
        for one in texts:
            if id_ is not None:
                answered = next((call for call in self.open if call.id == clean(id_)), None)
            else:
                named = [call for call in self.open if call.name == name]
                answered = next(iter(named or self.open), None)
            if answered is not None:
                self.open.remove(answered)
            answers = answered.id if answered is not None else clean(id_ or "")
            self.messages.append(Message("tool", one, tool_call_id=answers, name=name))


def _several(text: str, number: int) -> list[str]:
    """The results in a text that has those of several calls as a JSON list; else none."""
    try:
        items = _parsed(text)
    except ValueError:
        return []
    if not isinstance(items, list) or len(items) != number:
        return []
    bare = (one.get("content", one) if isinstance(one, dict) else one for one in items)
    return [one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in bare]


def _content(where: str, item: dict[str, Any], role: str) -> tuple[str, list[ToolCall]]:
    """The text of a message and its calls: as OpenAI has them now (`tool_calls`) and had them
    before (`function_call`), as a message of its own (ShareGPT), or within the text (Glaive)."""
    key = next((key for key in ("content", "value", "message") if key in item), "content")
    value, place = item.get(key), f"{where}.{key}"
    if role == "function_call":
        return "", [_call(place, one) for one in _listed(value)]
    beside = item.get("tool_calls") or []
    if not isinstance(beside, list):
        raise _wrong(f"{where}.tool_calls", "a list of calls", beside)
    calls = [_call(f"{where}.tool_calls[{index}]", one) for index, one in enumerate(beside)]
    if item.get("function_call"):
        calls.append(_call(f"{where}.function_call", item["function_call"]))
    if value is None and (key in item or calls):
        return "", calls
    if isinstance(value, list):
        text, within = _parts(place, value)
    elif isinstance(value, str):
        text, within = _glaive(clean(value)) if ROLES[role] == "assistant" else (clean(value), [])
    else:
        raise _wrong(place, "a text or a list of parts", value)
    return text, calls + within


def _parts(where: str, parts: list[Any]) -> tuple[str, list[ToolCall]]:
    texts, calls = [], []
    for index, part in enumerate(parts):
        place, kind, value = f"{where}[{index}]", "text", part
        if isinstance(part, dict):
            kind, value = part.get("type", "text"), part.get("text", part.get("value"))
        if kind == "tool_call":
            calls += [_call(place, one) for one in _listed(value)]
        elif kind in TEXT_PARTS and isinstance(value, str):
            texts.append(clean(value))
        elif kind not in REASONING_PARTS:
            raise _wrong(place, "a part with a text", kind if kind not in TEXT_PARTS else value)
    return "\n".join(texts), calls


def _glaive(text: str) -> tuple[str, list[ToolCall]]:
    """A reply and the call at its end, if that can be read."""
    before, _, behind = text.partition("<functioncall>")
    behind = behind.replace("<|endoftext|>", "").strip()
    quoted = _QUOTED.fullmatch(behind)
    if quoted:
        return before.strip(), [ToolCall("", quoted[1], quoted[2])]
    try:
        return before.strip(), [_call("", _parsed(behind))]
    except ValueError:
        return text, []


def _listed(value: Any) -> list[Any]:
    """The calls in a JSON text or value that has one or several."""
    try:
        found = _parsed(value) if isinstance(value, str) else value
    except ValueError:
        found = value
    return found if isinstance(found, list) else [found]


def _call(where: str, value: Any) -> ToolCall:
    """A call; its id is empty where it has none."""
    inner = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
        raise _wrong(where, CALL, value)
    arguments, id_ = inner.get("arguments", {}), value.get("id")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    id_ = clean(id_) if isinstance(id_, str) else ""
    return ToolCall(id_, clean(inner["name"]), clean(arguments))


def _wrong(where: str, expected: str, found: Any) -> ValueError:
    """The error about something unexpected."""
    shown = shorten(clean(json.dumps(found, ensure_ascii=False)), SHOWN)
    return ValueError(f"{where or 'the file'}: expected {expected}, not {shown}")
