"""Calls that a model writes into its text, for want of a better way.

Models without tools of their own follow the ReAct pattern or write the marks of their training.
Only what names a tool that was offered is taken for a call. What follows it was made up by the
model, an observation or the user's next words, and is left out.
"""

import json
import re
from collections.abc import Iterator

from chatapp.tools.registry import Toolbox
from memory.core.messages import ToolCall
from memory.core.text import enclosed

_ACTION = re.compile(
    r"^[ \t*]*Action[ \t]*:[ \t*]*(?P<name>[\w-]{1,64})[ \t*()]*\n"
    r"[ \t*]*Action Input[ \t]*:[ \t*]*(?P<input>.*?)"
    r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer|User|Human)\b|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_OPENED = re.compile(r"<(tool_call|function_call)>\s*+(?=\{)")
_CLOSED = {name: re.compile(rf"\}}\s*+(?:</{name}>|\Z)") for name in ("tool_call", "function_call")}
_FENCE = re.compile(r"\A```(?:json)?\n(.*?)\n?```\Z", re.DOTALL)


def calls_in(text: str, toolbox: Toolbox) -> tuple[str, tuple[ToolCall, ...]]:
    """The text before the first call written in it, and the calls; all of the text where there is
    none. Of the ReAct pattern it is one call, of marked ones all that follow each other."""
    if not toolbox:
        return text, ()
    marked = list(_marked(text, toolbox))
    if marked:
        start = marked[0][0]
        calls = (ToolCall(f"call_{at}", *call) for at, (_, *call) in enumerate(marked))
        return text[:start].rstrip(), tuple(calls)
    action = next((one for one in _ACTION.finditer(text) if one["name"] in toolbox), None)
    if action is None:
        return text, ()
    call = ToolCall("call_0", action["name"], _arguments(action["input"], action["name"], toolbox))
    return text[: action.start()].rstrip(), (call,)


def _marked(text: str, toolbox: Toolbox) -> Iterator[tuple[int, str, str]]:
    """Where each marked call begins, its name and arguments."""
    for opened, closed in enclosed(text, _OPENED, _CLOSED):
        try:
            call = json.loads(text[opened.end() : closed.start() + 1])
            name, arguments = call.get("name"), call.get("arguments", call.get("parameters"))
            written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        except (ValueError, RecursionError):
            continue
        if isinstance(name, str) and name in toolbox:
            yield opened.start(), name, written


def _arguments(written: str, name: str, toolbox: Toolbox) -> str:
    """A JSON object as it is; plain words are the tool's first parameter."""
    written = _FENCE.sub(r"\1", written.strip())
    if written.startswith("{"):
        return written
    first = next(iter(toolbox[name].parameters["properties"]), None)
    if first is None:
        return "{}"
    return json.dumps({first: written.strip("\"'` ")}, ensure_ascii=False)
