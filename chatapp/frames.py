"""Frames from the browser: parsed into values, or refused with a code and words."""

import json
from dataclasses import dataclass
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext as _

from chatapp.events import Refused
from memory.core.text import clean, is_blank

# The longest message, in characters, and the longest id that a client may make up.
MAX_TEXT = 32_000
MAX_ID = 64


class BadFrame(Exception):
    """A frame that is refused; `refusal` is the frame that says so."""

    def __init__(self, code: str, message: str, frame_id: str = "") -> None:
        super().__init__(code)
        self.refusal = Refused(code, message, frame_id)


@dataclass(frozen=True, slots=True)
class Send:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    turn: int


@dataclass(frozen=True, slots=True)
class Retry:
    id: str
    turn: int


@dataclass(frozen=True, slots=True)
class Edit:
    id: str
    turn: int
    text: str


@dataclass(frozen=True, slots=True)
class Resume:
    turn: int


Frame = Send | Stop | Retry | Edit | Resume


def parse(text: str | None) -> Frame:
    """The frame in a text; None stands for a binary frame. Raises BadFrame, nothing else."""
    if text is None:
        raise BadFrame("bad-frame", _("Only text frames are understood here."))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("bad-frame", _("The frame is not JSON.")) from error
    if not isinstance(data, dict):
        raise BadFrame("bad-frame", _("The frame is not a JSON object."))
    match data.get("type"):
        case "message.send":
            frame_id = _id(data)
            return Send(frame_id, message_text(data.get("text"), frame_id))
        case "turn.stop":
            return Stop(_turn(data))
        case "turn.retry":
            return Retry(_id(data), _turn(data))
        case "turn.edit":
            frame_id = _id(data)
            return Edit(frame_id, _turn(data), message_text(data.get("text"), frame_id))
        case "turn.resume":
            return Resume(_turn(data))
        case _:
            raise BadFrame("unknown-type", _("This type of frame is not known."))


def message_text(value: Any, frame_id: str = "") -> str:
    """A message's text as it is stored. Raises BadFrame for none, too much, or nothing visible."""
    if not isinstance(value, str):
        raise BadFrame("bad-field", _("The field “text” must be a string."), frame_id)
    if len(value) > MAX_TEXT:
        words = _("The message has %(length)s characters; at most %(limit)s are possible.")
        words %= {"length": number_format(len(value)), "limit": number_format(MAX_TEXT)}
        raise BadFrame("too-long", words, frame_id)
    text = clean(value)
    if is_blank(text):
        raise BadFrame("empty", _("The message is empty."), frame_id)
    return text


def _id(data: dict[str, Any]) -> str:
    value = data.get("id")
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_ID or clean(value) != value:
        raise BadFrame("bad-field", _("The field “id” must be 1 to 64 characters."))
    return value


def _turn(data: dict[str, Any]) -> int:
    value = data.get("turn")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise BadFrame("bad-field", _("The field “turn” must be a turn's number."))
    return value
