"""What the demo model refuses: requests that OpenAI's servers, or picky chat templates, refuse."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from chatapp.tools.registry import NAME

PATH = "/chat/completions"
CHOICES = ("auto", "none", "required")
NAMED = "function"
TOOLS_MOST = 128  # as OpenAI's servers have it

Json = dict[str, Any]


class BadRequest(Exception):
    """What the model refuses; becomes an error object as OpenAI's servers send it."""

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.status = status
        kind = "invalid_request_error"
        self.error = {"message": message, "type": kind, "param": param, "code": code}


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request: the parameters of each (a JSON schema) by its name.

    `choice` is "auto", "none", "required" or, where one of them must be called, NAMED, with its
    `name`. `parallel` says whether one step may call several.
    """

    tools: Mapping[str, Json]
    choice: str = "auto"
    name: str = ""
    parallel: bool = True


def check_target(request: httpx2.Request) -> None:
    """Raises BadRequest for what is no POST .../chat/completions."""
    if not request.url.path.endswith(PATH):
        raise BadRequest(f"Invalid URL ({request.method} {request.url.path})", status=404)
    if request.method != "POST":
        raise BadRequest(f"Not allowed to {request.method} on {request.url.path}", status=405)


def parsed(content: bytes) -> Json:
    """The body of a request; its messages and tools are not looked at. Raises BadRequest."""
    try:
        body = json.loads(content)
    except ValueError:
        raise BadRequest("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise BadRequest("The body of the request must be a JSON object.")
    if not isinstance(body.get("model"), str) or not body["model"]:
        raise BadRequest("You must provide a model parameter.", param="model")
    for name in ("max_tokens", "max_completion_tokens"):
        most = body.get(name)
        if most is not None and (type(most) is not int or most < 1):
            raise BadRequest(f"'{name}' must be an integer of at least 1.", param=name)
    if body.get("n") not in (None, 1):
        raise BadRequest("This model gives one choice only: 'n' must be 1.", param="n")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise BadRequest("'stream_options' is only allowed with 'stream'.", param="stream_options")
    if not isinstance(body.get("stream_options") or {}, dict):
        raise BadRequest("'stream_options' must be an object.", param="stream_options")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise BadRequest("'messages' must be an array with at least one message.", param="messages")
    return body


def check_messages(messages: Sequence[Any]) -> None:
    """Raises BadRequest unless a picky chat template would take the messages."""
    open_calls: list[str] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ("system", "user", "assistant", "tool"):
            raise BadRequest(
                f"'{where}' must be an object whose 'role' is one of 'system', 'user', 'assistant' "
                "and 'tool'.",
                param=f"{where}.role",
            )
        _check_content(message, where)
        if role == "system" and index:
            raise BadRequest(
                "There may be one system message only, as the first message.", param=where
            )
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                raise BadRequest(
                    f"'{where}' with role 'tool' does not answer a call of the assistant message "
                    "before it.",
                    param=where,
                )
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            break
        open_calls = _call_ids(message, where)
    if open_calls:
        raise BadRequest(
            f"Tool calls without a result behind them: {', '.join(open_calls)}.", param="messages"
        )
    if messages[-1]["role"] not in ("user", "tool"):
        raise BadRequest(
            "The last message must have the role 'user' or 'tool'.",
            param=f"messages[{len(messages) - 1}].role",
        )


def _check_content(message: Mapping[str, Any], where: str) -> None:
    content = message.get("content")
    if content is None and message["role"] == "assistant" and message.get("tool_calls"):
        return
    if isinstance(content, list) and all(_is_text(part) for part in content):
        return
    if not isinstance(content, str):
        raise BadRequest(f"'{where}.content' must be a string.", param=f"{where}.content")


def _is_text(part: object) -> bool:
    return (
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def _call_ids(message: Mapping[str, Any], where: str) -> list[str]:
    """The ids of the calls a message makes."""
    try:
        functions = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
    except (KeyError, TypeError):
        functions = [("", "", None)]
    if not all(isinstance(value, str) for function in functions for value in function):
        raise BadRequest(
            f"Each of '{where}.tool_calls' needs an id and a function with name and arguments.",
            param=f"{where}.tool_calls",
        )
    if functions and message["role"] != "assistant":
        raise BadRequest("Only an assistant message can make calls.", param=f"{where}.tool_calls")
    return [function[0] for function in functions]


def offer_in(body: Json) -> Offer:
    """The tools of a request and how they may be used. Raises BadRequest where they are malformed,
    and for options of tools without any."""
    listed = body.get("tools")
    if listed is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) is not None:
                raise BadRequest(f"'{name}' is only allowed when 'tools' are given.", param=name)
        return Offer({})
    if not isinstance(listed, list) or not 1 <= len(listed) <= TOOLS_MOST:
        raise BadRequest(f"'tools' must be an array of 1 to {TOOLS_MOST} objects.", param="tools")
    tools: dict[str, Json] = {}
    for index, one in enumerate(listed):
        name, parameters = _tool(one, f"tools[{index}]")
        if name in tools:
            raise BadRequest(f"There are two tools named '{name}'.", param=f"tools[{index}]")
        tools[name] = parameters
    choice, name = _choice(body.get("tool_choice"), tools)
    parallel = body.get("parallel_tool_calls")
    if not isinstance(parallel, bool | None):
        raise BadRequest("'parallel_tool_calls' must be a boolean.", param="parallel_tool_calls")
    return Offer(tools, choice, name, parallel is not False)


def _tool(one: Any, where: str) -> tuple[str, Json]:
    function = one.get("function") if isinstance(one, dict) else None
    if not isinstance(function, dict) or one.get("type") != "function":
        raise BadRequest(f"'{where}' must be an object of the type 'function'.", param=where)
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise BadRequest(
            f"'{where}.function.name' must have 1 to 64 letters, digits, '_' or '-'.",
            param=f"{where}.function.name",
        )
    if not isinstance(parameters, dict | None):
        raise BadRequest(
            f"'{where}.function.parameters' must be an object.",
            param=f"{where}.function.parameters",
        )
    return name, parameters or {}


def _choice(value: Any, tools: Mapping[str, Json]) -> tuple[str, str]:
    if value is None or (isinstance(value, str) and value in CHOICES):
        return value or "auto", ""
    function = value.get("function") if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or value.get("type") != "function":
        raise BadRequest(
            "'tool_choice' must be 'none', 'auto', 'required' or name a function.",
            param="tool_choice",
        )
    if name not in tools:
        raise BadRequest(
            f"'tool_choice' names '{name}', which is not in 'tools'.", param="tool_choice"
        )
    return NAMED, name
