"""The tool calls of a streamed reply, put together of their parts, whatever the server's habits."""

import json
from dataclasses import dataclass, field
from typing import Any

from memory.core.messages import ToolCall
from memory.core.text import paired


@dataclass(slots=True)
class _Call:
    """A call so far. The arguments stay in pieces until they are whole."""

    id: str
    index: int | None
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    _read: int = 0
    _depth: int = 0
    _begun: bool = False
    _quoted: bool = False
    _escaped: bool = False

    def is_complete(self) -> bool:
        """Whether the arguments are a JSON object up to its end; every piece is read once."""
        for char in "".join(self.pieces[self._read :]):
            if self._escaped:
                self._escaped = False
            elif self._quoted:
                self._escaped = char == "\\"
                self._quoted = char != '"'
            elif char == '"':
                self._quoted = True
            elif char in "{[":
                self._begun = True
                self._depth += 1
            elif char in "}]":
                self._depth -= 1
        self._read = len(self.pieces)
        return self._begun and self._depth == 0

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, paired("".join(self.pieces)) or "{}")


@dataclass(slots=True)
class CallParts:
    """The calls of one reply, in the order in which they began."""

    _calls: list[_Call] = field(default_factory=list)
    _newest: dict[int, _Call] = field(default_factory=dict)
    _known: dict[tuple[str, int | None], _Call] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, part: Any) -> None:
        """A part of a call. A new id begins a new call, whatever its index, and so does a known one
        with another index; without an id the part belongs to the call with its index, else to the
        newest one; unless it has a name and that call is complete."""
        if not isinstance(part, dict):
            return
        function = part.get("function")
        function = function if isinstance(function, dict) and function else part
        identity, index = part.get("id"), part.get("index")
        index = index if isinstance(index, int) else None
        name, arguments = function.get("name"), function.get("arguments")
        if identity:
            call = self._with_id(str(identity), index)
        else:
            call = self._without_id(index, bool(name))
        if isinstance(name, str) and name != call.name:
            # Some servers repeat the name with every part, others send it in pieces.
            call.name = name if name.startswith(call.name) else call.name + name
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif arguments is not None:
            call.pieces.append(json.dumps(arguments, ensure_ascii=False))

    def whole(self) -> tuple[ToolCall, ...]:
        """All of them. Arguments are as the server sent them."""
        return tuple(call.whole() for call in self._calls)

    def _with_id(self, identity: str, index: int | None) -> _Call:
        call = self._known.get((identity, index)) or self._known.get((identity, None))
        if call is None or (index is not None and call.index not in (None, index)):
            return self._begin(identity, index)
        return call

    def _without_id(self, index: int | None, named: bool) -> _Call:
        if index is not None:
            call = self._newest.get(index)
        else:
            call = self._calls[-1] if self._calls and not named else None
        if call is None or (named and call.is_complete()):
            return self._begin("", index)
        return call

    def _begin(self, identity: str, index: int | None) -> _Call:
        call = _Call(identity or f"call_{len(self._calls)}", index)
        self._calls.append(call)
        self._known[call.id, index] = self._known[call.id, None] = call
        if index is not None:
            self._newest[index] = call
        return call
