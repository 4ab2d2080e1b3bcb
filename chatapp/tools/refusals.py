"""What the model is told of a call that was not run, or that failed: what was wrong, what to do."""

import re

from pydantic import ValidationError

from chatapp.tools.registry import Tool
from memory.core.text import shorten

# Characters that the model is told of a name, of an exception's message, of a tool's own refusal.
NAME_SHOWN = 64
MESSAGE_SHOWN = 300
REFUSAL_SHOWN = 2_000
MISFITS_SHOWN = 8

REPEATED = (
    "Not run: {name} was already called in this turn with the same arguments, and failed or "
    "returned nothing. Change the arguments, use another tool, or answer with what is known."
)
CUT_OFF = (
    "Not run: the reply was cut off by the length limit within this call of {name}. Call again "
    "with shorter arguments."
)
TOO_MANY = (
    "Not run: a step runs its first {most} calls, and this one of {name} is behind them. Call "
    "again in a later step, if it is still needed."
)
STOPPED = (
    "No result: the turn was stopped while {name} ran. It may still have had an effect: check "
    "before calling it again."
)
# Absolute paths, with or without a drive; addresses of the web are none.
_PATH = re.compile(r"(?<![\w:/.])(?:/[^\s/'\":,;]+){2,}/?|\b[A-Za-z]:\\[^\s'\":,;]+")


def misfit(tool: Tool, error: ValidationError) -> str:
    """Which arguments do not fit, and why."""
    misfits = error.errors(include_url=False, include_input=False, include_context=False)
    words = []
    for one in misfits[:MISFITS_SHOWN]:
        where = shorten(".".join(map(str, one["loc"])), NAME_SHOWN)
        what = "no such parameter" if one["type"] == "extra_forbidden" else one["msg"]
        words.append(f"{where}: {shorten(what, MESSAGE_SHOWN)}")
    more = f" (and {len(misfits) - MISFITS_SHOWN} more)" if len(misfits) > MISFITS_SHOWN else ""
    return (
        f"Not run: the arguments of {tool.name} do not fit. {'; '.join(words)}{more}. "
        f"Send one JSON object with: {parameters(tool)}."
    )


def parameters(tool: Tool) -> str:
    return ", ".join(tool.parameters["properties"]) or "no keys"


def failure(tool: Tool, error: BaseException) -> str:
    """What a tool raised, without the paths of this machine."""
    told = shorten(_PATH.sub("(path)", str(error)[:REFUSAL_SHOWN]), MESSAGE_SHOWN)
    return f"{tool.name} failed: {type(error).__name__}{': ' if told else ''}{told}"
