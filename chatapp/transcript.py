"""The transcript as it is shown: turns, what the model can see of them, and the lines between."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from chatapp import words
from chatapp.markdown import render
from memory import service, versions
from memory.models import Conversation, MemoryEvent, Message, Summary, Turn

# The most messages that one page shows; older ones load on scrolling up.
PAGE = 50


@dataclass(frozen=True, slots=True)
class Sight:
    """What the model can see in the next request, by position."""

    start: int
    folded_to: int
    version: int
    tail: frozenset[int]
    current: frozenset[int]

    def of(self, position: int) -> tuple[str, str]:
        """The state of the message at a position, and the words for it."""
        if position < self.start:
            return "reset", _("before the reset")
        if position in self.current:
            return "current", _("current turn")
        if position in self.tail:
            return "window", ""
        if position <= self.folded_to:
            return "folded", _("folded into v%(version)s") % {"version": self.version}
        return "outside", _("not in the window")


def sight_of(assembled: service.Assembled) -> Sight:
    """What the next request contains."""
    segments = assembled.window.segments if assembled.window else ()
    summary = assembled.context.summary
    return Sight(
        start=assembled.conversation.context_start,
        folded_to=summary.last if summary else 0,
        version=summary.version if summary else 0,
        tail=frozenset(one.message.position for one in segments if one.kind == "tail"),
        current=frozenset(one.message.position for one in segments if one.kind == "current"),
    )


def transcript(
    assembled: service.Assembled, *, before: int | None = None, live: str | None = None
) -> dict[str, Any]:
    """A page of the transcript: at most fifty messages, the newest ones or those before a position.

    `live` is the running reply as this process has it; without it the saved part is shown.
    """
    conversation = assembled.conversation
    rows = conversation.messages.filter(active=True)
    if before is not None:
        rows = rows.filter(position__lt=before)
    newest = list(rows.select_related("turn").order_by("-position")[: PAGE + 1])
    page = newest[:PAGE][::-1]
    sight = sight_of(assembled)
    turns = _turns(conversation, page, sight, live)
    if not page and before is None:
        turns = []
    start = page[0].position if page and len(newest) > PAGE else 0
    end = before or conversation.next_position
    return {
        "conversation": conversation,
        "items": _with_lines(conversation, turns, start, end),
        "older": start or None,
    }


def _turns(
    conversation: Conversation, page: list[Message], sight: Sight, live: str | None
) -> list[dict[str, Any]]:
    last = conversation.turns.filter(active=True).order_by("-number").first()
    turns: dict[int, dict[str, Any]] = {}
    for row in page:
        turn = row.turn
        if turn.pk not in turns:
            turns[turn.pk] = _turn(turn, last, live)
        turns[turn.pk]["messages"].append(_message(row, sight))
    replaced = _replaced(conversation, [row.turn for row in page], sight)
    for pk, versions_ in replaced.items():
        turns[pk]["replaced"] = versions_
    return list(turns.values())


def _turn(turn: Turn, last: Turn | None, live: str | None) -> dict[str, Any]:
    return {
        "type": "turn",
        "number": turn.number,
        "state": turn.state,
        "is_last": last is not None and turn.pk == last.pk,
        "error": words.state_reason(turn.state, turn.error_code, turn.error_detail),
        "partial": (turn.partial if live is None else live) if turn.is_running else "",
        "messages": [],
        "replaced": [],
    }


def _message(row: Message, sight: Sight) -> dict[str, Any]:
    state, label = sight.of(row.position)
    return {
        "position": row.position,
        "role": row.role,
        "html": render(row.content) if row.role == "assistant" else "",
        "text": row.content,
        "tokens": row.tokens,
        "state": state,
        "version": sight.version if state == "folded" else 0,
        "state_label": label,
        "can_fork": row.active and row.role != "tool",
    }


def _replaced(
    conversation: Conversation, shown: Iterable[Turn], sight: Sight
) -> dict[int, list[dict[str, Any]]]:
    """The earlier versions of the shown turns, oldest first, by the turn's key."""
    heads = {turn.pk: turn.replaces_id for turn in shown if turn.replaces_id}
    if not heads:
        return {}
    rows = conversation.messages.filter(active=False).select_related("turn").order_by("position")
    messages: dict[int, list[Message]] = {}
    for row in rows:
        messages.setdefault(row.turn_id, []).append(row)
    result: dict[int, list[dict[str, Any]]] = {}
    for pk, first in heads.items():
        key: int | None = first
        chain: list[dict[str, Any]] = []
        while key and key in messages:
            turn = messages[key][0].turn
            shown_messages = [_message(row, sight) for row in messages[key]]
            for one in shown_messages:
                one |= {"state": "outside", "state_label": _("replaced"), "version": 0}
            chain.insert(0, {"number": turn.number, "messages": shown_messages})
            key = turn.replaces_id
        result[pk] = chain
    return result


def _with_lines(
    conversation: Conversation, turns: list[dict[str, Any]], start: int, end: int
) -> list[dict[str, Any]]:
    """The turns with the lines of resets and of the fold between them, where they happened."""
    undoable = versions.last_undoable(conversation)
    lines = [
        (event.at_position, {"type": "reset", "undo": event == undoable})
        for event in conversation.memory_events.filter(
            kind=MemoryEvent.Kind.RESET,
            undone_by__isnull=True,
            at_position__gte=start,
            at_position__lte=end,
        )
    ]
    summary = conversation.active_summary()
    if summary is not None and start <= summary.last_position < end:
        undo = undoable is not None and undoable.summary_id == summary.pk
        lines.append((summary.last_position + 1, _fold(summary, undo)))
    lines.sort(key=lambda line: line[0])
    items: list[dict[str, Any]] = []
    for turn in turns:
        first = turn["messages"][0]["position"]
        while lines and lines[0][0] <= first:
            items.append(lines.pop(0)[1])
        items.append(turn)
    return items + [line for _position, line in lines]


def _fold(summary: Summary, undo: bool) -> dict[str, Any]:
    return {
        "type": "fold",
        "carried": summary.carried,
        "count": summary.conversation.messages.filter(
            active=True,
            position__gte=summary.first_position,
            position__lte=summary.last_position,
        ).count(),
        "version": summary.version,
        "before": summary.tokens_before,
        "after": summary.tokens_after,
        "kind": summary.kind,
        "text": summary.text,
        "undo": undo,
    }
