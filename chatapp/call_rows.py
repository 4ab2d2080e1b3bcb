"""The calls of a step as rows of the transcript: what was called, and what came of it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from memory.core.text import clean, shorten
from memory.models import Message

# Characters of the arguments and of the result that a closed row has; its width may show fewer.
ARGUMENTS, BEGINNING = 120, 240

# A call that took less is not told to have taken 0.0 s.
SECONDS_LEAST = 0.05

# What a result's error code makes of its row; any other code is a failure.
KINDS = {
    "": "done",
    "empty": "nothing",
    "unknown-tool": "not-run",
    "bad-arguments": "not-run",
    "repeated": "not-run",
    "cut-off": "not-run",
    "too-many": "not-run",
    "stopped": "interrupted",
}


def steps(rows: Iterable[Message]) -> Iterator[tuple[Message, list[Message]]]:
    """Each message with the results directly behind it, if it has calls; results without a call
    stand alone. As in `memory.core.groups`, ids are compared within such a group only."""
    head: Message | None = None
    results: list[Message] = []
    for row in rows:
        if row.role == "tool" and head is not None and head.tool_calls:
            results.append(row)
            continue
        if head is not None:
            yield head, results
        head, results = row, []
    if head is not None:
        yield head, results


def paired(
    calls: Sequence[Mapping[str, str]], results: Iterable[Message]
) -> tuple[list[tuple[Mapping[str, str], Message | None]], list[Message]]:
    """Each call with its result, in the order of the calls, and the results that answer none."""
    left = list(results)
    pairs: list[tuple[Mapping[str, str], Message | None]] = []
    for call in calls:
        match = next((one for one in left if one.tool_call_id == call["id"]), None)
        if match is not None:
            left.remove(match)
        pairs.append((call, match))
    return pairs, left


def call_row(call: Mapping[str, str], result: Message | None, without: str) -> dict[str, Any]:
    """What a row shows. `without` is what a call is that has no result: "running", "interrupted",
    or "below" where its results are on the page behind this one."""
    detail = result.detail if result is not None else {}
    code = detail.get("error", "")
    arguments, seconds = call["arguments"], detail.get("seconds", 0)
    return {
        "name": call["name"],
        "short": short_arguments(arguments),
        "arguments": pretty(arguments),
        "kind": without if result is None else KINDS.get(code, "failed"),
        "state": _words(without if result is None else code),
        "seconds": seconds if seconds >= SECONDS_LEAST else None,
        "position": result.position if result is not None else None,
        "text": result.content if result is not None else "",
        "beginning": _line(result.content, BEGINNING) if result is not None else "",
        "tokens": result.tokens if result is not None else None,
        "length": detail.get("length"),
        "has_whole": "whole" in detail,
        "kept": len(result.content) if result is not None else 0,
    }


def short_arguments(arguments: str) -> str:
    """Arguments in a line: "order: 88231, days: 3"; as they are where they are no JSON object."""
    try:
        values = json.loads(arguments)
        parts = [f"{name}: {_plain(value)}" for name, value in values.items()]
    except (ValueError, AttributeError, RecursionError):
        return _line(arguments, ARGUMENTS)
    return _line(", ".join(parts), ARGUMENTS)


def pretty(arguments: str) -> str:
    """Arguments as indented JSON; as they are where they are no JSON."""
    try:
        return clean(json.dumps(json.loads(arguments), ensure_ascii=False, indent=2))
    except (ValueError, RecursionError):
        return arguments


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(text: str, length: int) -> str:
    return shorten(clean(" ".join(text[: 4 * length].split())), length)


def _words(code: str) -> str:
    words = {
        "": _("done"),
        "empty": _("nothing found"),
        "unknown-tool": _("not run: there is no such tool"),
        "bad-arguments": _("not run: the arguments do not fit"),
        "repeated": _("not run: the same call had failed"),
        "cut-off": _("not run: the call was cut off"),
        "too-many": _("not run: too many calls at once"),
        "timeout": _("failed: no result in time"),
        "stopped": _("no result: it was stopped"),
        "failed": _("failed"),
        "running": _("running"),
        "interrupted": _("no result: it was interrupted"),
        "below": _("its result is further down"),
    }
    return str(words.get(code) or _("failed: %(code)s") % {"code": code})
