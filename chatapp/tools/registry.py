"""What a tool is: a typed function, and the JSON schema that its signature and docstring give.

    @tool(timeout=5)
    def query_order(order: Annotated[str, Field(description="the order number")]) -> str:
        "Look up an order."

The schemas fit servers that take them strictly: no further keys, every parameter required, one
with a default nullable. So null means the default, as leaving the parameter out does.
"""

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import SchemaError

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CONTEXT = "context"
TIMEOUT = 10.0  # seconds

Function = Callable[..., Any]
_PLAIN = (str, int, float, bool, NoneType)
# Numbers as strings are accepted and the reverse: models write 88231 for "88231".
_CONFIG = ConfigDict(extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True)


class ToolError(Exception):
    """Raised by a tool that refuses; the model is told the message as it stands."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may know of the turn that calls it. `language` is a code ("en", "zh-hans");
    `now` gives the time, with its zone."""

    conversation_id: UUID
    language: str
    now: Callable[[], datetime]

    def say(self, both: tuple[str, str]) -> str:
        """The English or the Chinese text, whichever the language is nearer to."""
        return both[self.language.lower().startswith("zh")]


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that the model may call.

    `parameters` is the JSON schema of its arguments, `timeout` in seconds; results of `retrieval`
    tools are memory themselves and are not shortened when they are old (S1, rung 2).
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    timeout: float
    retrieval: bool
    function: Function
    needs_context: bool
    arguments: type[BaseModel]

    def read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments that a call's JSON object gives, without those left to their
        defaults. Raises pydantic.ValidationError."""
        given = self.arguments.model_validate(values)
        read = {}
        for name, field in self.arguments.model_fields.items():
            value = getattr(given, name)
            if value is not None or field.is_required():
                read[str(field.alias)] = value
        return read

    def schema(self) -> dict[str, Any]:
        """The tool as the chat-completions format lists it; a new value every time."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": json.loads(json.dumps(self.parameters)),
        }
        return {"type": "function", "function": function}


class Toolbox(Mapping[str, Tool]):
    """Tools by name, in the order in which they were given; never changed.

    Raises ValueError for two tools of one name.
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for one in tools:
            if one.name in self._tools:
                raise ValueError(f"there are two tools named {one.name}")
            self._tools[one.name] = one

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def retrieval(self) -> frozenset[str]:
        """The names of the tools whose results rung 2 leaves alone (S1)."""
        return frozenset(name for name, one in self.items() if one.retrieval)

    def subset(self, names: Iterable[str]) -> "Toolbox":
        """The tools of these names, in this toolbox's order. Unknown names are left out: a
        conversation outlives the tools that it was once given."""
        wanted = frozenset(names)
        return Toolbox(one for name, one in self.items() if name in wanted)

    def schemas(self) -> list[dict[str, Any]]:
        """The `tools` of a request: equal toolboxes give equal JSON."""
        return [one.schema() for one in self.values()]


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *, name: str = "", timeout: float = TIMEOUT, retrieval: bool = False
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str = "",
    timeout: float = TIMEOUT,
    retrieval: bool = False,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a typed function, synchronous or async.

    The first paragraph of the docstring tells the model what it does. Parameters are strings,
    numbers, booleans, Literals, lists and unions of these; `Annotated[..., Field(description=...)]`
    describes one. A parameter `context: ToolContext` is filled in and not part of the schema.
    Raises TypeError for a signature that makes no schema, ValueError for a name or timeout that
    breaks the rules.
    """

    def made(function: Function) -> Tool:
        return _made(function, name or function.__name__, timeout, retrieval)

    return made if function is None else made(function)


def _made(function: Function, name: str, timeout: float, retrieval: bool) -> Tool:
    if not NAME.fullmatch(name):
        raise ValueError(f"tool {name!r}: a name has 1 to 64 letters, digits, _ or -")
    if not 0 < timeout < math.inf:
        raise ValueError(f"tool {name}: the timeout must be a positive number of seconds")
    summary = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    if not summary:
        raise TypeError(f"tool {name}: a docstring must say what it does")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"tool {name}: a generator is no tool; return the whole result")
    hints = _hints(function, name)
    parameters = dict(inspect.signature(function).parameters)
    needs_context = parameters.pop(CONTEXT, None) is not None
    if needs_context and hints.get(CONTEXT) is not ToolContext:
        raise TypeError(f"tool {name}: the parameter {CONTEXT!r} must be a ToolContext")
    arguments = _model(name, parameters, hints)
    return Tool(
        name=name,
        description=summary,
        parameters=_schema(arguments),
        timeout=timeout,
        retrieval=retrieval,
        function=function,
        needs_context=needs_context,
        arguments=arguments,
    )


def _hints(function: Function, name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name}: an annotation cannot be resolved: {error}") from error


def _model(
    name: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> type[BaseModel]:
    """What checks the arguments. The fields have names of their own: any name of a parameter is
    allowed, also those that a pydantic model has methods of."""
    fields: dict[str, Any] = {}
    for index, (key, parameter) in enumerate(parameters.items()):
        where = f"tool {name}, parameter {key!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{where}: it cannot be given by name")
        if key not in hints:
            raise TypeError(f"{where}: it has no annotation")
        if not _supported(hints[key]):
            raise TypeError(
                f"{where}: {hints[key]!r} is none of str, int, float, bool, None, Literal, "
                "list[...] and unions of these"
            )
        if parameter.default is parameter.empty:
            fields[f"field_{index}"] = (hints[key], Field(alias=key))
        else:
            nullable = hints[key] if _is_nullable(hints[key]) else hints[key] | None
            fields[f"field_{index}"] = (nullable, Field(default=None, alias=key))
    try:
        return create_model(f"arguments of {name}", __config__=_CONFIG, **fields)
    except (TypeError, PydanticUserError, SchemaError) as error:
        raise TypeError(f"tool {name}: {error}") from error


def _supported(annotation: Any) -> bool:
    """Whether it is one of the few types that every server's strict schemas know."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _supported(inner[0])
    if origin is Literal:
        return all(isinstance(value, _PLAIN) for value in inner)
    if origin in (Union, UnionType, list):
        return all(map(_supported, inner))
    return any(annotation is plain for plain in _PLAIN)


def _is_nullable(annotation: Any) -> bool:
    inner = get_args(annotation)
    if get_origin(annotation) is Annotated:
        return _is_nullable(inner[0])
    return annotation is NoneType or NoneType in inner or None in inner


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema without titles and defaults; a nullable parameter is described outside its union,
    where servers look for it."""
    schema = arguments.model_json_schema()
    properties = {}
    for name, field in schema["properties"].items():
        rest = {key: value for key, value in field.items() if key not in ("title", "default")}
        for member in rest.get("anyOf", ()):
            if "description" in member:
                rest.setdefault("description", member.pop("description"))
        properties[name] = rest
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
