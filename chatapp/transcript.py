"""The transcript as it is shown: turns, what the model can see of them, and the lines between."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from chatapp import folds, words
from chatapp.call_rows import call_row, paired, steps
from chatapp.markdown import render
from memory import service, versions
from memory.models import Conversation, MemoryEvent, Message, Summary, Turn
from memory.rows import Partial

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
    working: frozenset[int]

    def of(self, position: int) -> tuple[str, str]:
        """The state of the message at a position, and the words for it."""
        if position < self.start:
            return "reset", _("before the reset")
        if position in self.current:
            return "current", _("current turn")
        if position in self.working:
            return "working", _("working memory")
        if position in self.tail:
            return "window", ""
        if position <= self.folded_to:
            return "folded", _("folded into v%(version)s") % {"version": self.version}
        return "outside", _("not in the window")


def sight_of(assembled: service.Assembled) -> Sight:
    """What the next request contains."""
    segments = assembled.window.segments if assembled.window else ()
    summary = assembled.context.summary

    def positions(kind: str) -> frozenset[int]:
        return frozenset(one.message.position for one in segments if one.kind == kind)

    return Sight(
        start=assembled.conversation.context_start,
        folded_to=summary.last if summary else 0,
        version=summary.version if summary else 0,
        tail=positions("tail"),
        current=positions("current"),
        working=positions("working"),
    )


def transcript(
    assembled: service.Assembled,
    *,
    before: int | None = None,
    live: Partial | None = None,
) -> dict[str, Any]:
    """A page of the transcript: at most fifty messages, the newest ones or those before a position.

    `live` is the running step and what it has written, as this process has it; without it the saved
    part is shown.
    """
    conversation = assembled.conversation
    rows = conversation.messages.filter(active=True)
    if before is not None:
        rows = rows.filter(position__lt=before)
    newest = list(rows.select_related("turn").order_by("-position")[: PAGE + 1])
    page = _whole_steps(newest)
    sight = sight_of(assembled)
    turns = _turns(conversation, page, sight, live, is_newest=before is None)
    start = page[0].position if page and len(newest) > PAGE else 0
    end = before or conversation.next_position
    return {
        "conversation": conversation,
        "items": _with_lines(conversation, turns, start, end),
        "older": start or None,
    }


def _whole_steps(newest: Sequence[Message]) -> list[Message]:
    """The page, oldest first. Where older messages exist it does not begin with results, which
    stay with their call on the page before; unless it has nothing else."""
    page = list(newest[:PAGE][::-1])
    if len(newest) <= PAGE:
        return page
    return page[next((at for at, row in enumerate(page) if row.role != "tool"), 0) :]


def _turns(
    conversation: Conversation,
    page: list[Message],
    sight: Sight,
    live: Partial | None,
    *,
    is_newest: bool,
) -> list[dict[str, Any]]:
    last = conversation.turns.filter(active=True).order_by("-number").first()
    rows: dict[int, list[Message]] = {}
    for row in page:
        rows.setdefault(row.turn_id, []).append(row)
    replaced = _replaced(conversation, [row.turn for row in page], sight)
    turns = []
    for pk, members in rows.items():
        turn = members[0].turn
        # What an older page breaks off in the middle of goes on behind it.
        goes_on = not is_newest and members[-1] is page[-1]
        without = "running" if turn.is_running else "below" if goes_on else "interrupted"
        kept = goes_on or bool(turn.thoughts) or any(one.role != "user" for one in members)
        shown = _turn(turn, last, live, kept=kept)
        shown |= {"items": _items(members, sight, without), "replaced": replaced.get(pk, [])}
        shown["asked"] = members[0].content if members[0].role == "user" else ""
        turns.append(shown)
    return turns


def _turn(turn: Turn, last: Turn | None, live: Partial | None, *, kept: bool) -> dict[str, Any]:
    written = Partial(turn.step, turn.partial, turn.thoughts)
    if live is not None and live.step >= written.step:  # else its step has been stored meanwhile
        written = live
    return {
        "type": "turn",
        "number": turn.number,
        "state": turn.state,
        "is_last": last is not None and turn.pk == last.pk,
        "code": turn.error_code,
        "error": words.state_reason(turn.state, turn.error_code, turn.error_detail, kept=kept),
        "step": written.step,
        "partial": written.text if turn.is_running else "",
        "thoughts": written.thoughts,
    }


def _items(rows: Iterable[Message], sight: Sight, without: str) -> list[dict[str, Any]]:
    """The messages of a turn as they are shown: those with calls as steps, with their results.

    `without` is what a call is that has no result, as in `call_row`.
    """
    items: list[dict[str, Any]] = []
    for row, results in steps(rows):
        item = _message(row, sight)
        if row.tool_calls:
            pairs, surplus = paired(row.tool_calls, results)
            item["calls"] = [call_row(call, result, without) for call, result in pairs]
            # Of steps that follow each other the first one says it for all.
            item["repeats"] = bool(
                items and items[-1]["calls"] and items[-1]["state"] == item["state"]
            )
            items += [item, *(_message(one, sight) for one in surplus)]
        else:
            items.append(item)
    return items


def _message(row: Message, sight: Sight) -> dict[str, Any]:
    state, label = sight.of(row.position)
    return {
        "position": row.position,
        "role": row.role,
        "html": render(row.content) if row.role == "assistant" else "",
        "text": row.content,
        "reasoning": row.reasoning,
        "reasoning_tokens": row.reasoning_tokens,
        "tokens": row.tokens,
        "calls": [],
        "state": state,
        "version": sight.version if state == "folded" else 0,
        "state_label": label,
        "can_fork": row.active and row.role != "tool" and not row.tool_calls,
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
            items = _items(messages[key], sight, "interrupted")
            for one in items:
                one |= {"state": "outside", "state_label": _("replaced"), "version": 0}
            chain.insert(0, {"number": turn.number, "items": items})
            key = turn.replaces_id
        result[pk] = chain
    return result


def _with_lines(
    conversation: Conversation, turns: list[dict[str, Any]], start: int, end: int
) -> list[dict[str, Any]]:
    """The turns with the lines of resets and of the fold between them, where they happened."""
    undoable = versions.last_undoable(conversation)
    # A fork inherits the last reset of its original.
    inherited = Q(kind=MemoryEvent.Kind.FORK, after__context_start__gt=1)
    lines = [
        (event.after["context_start"], {"type": "reset", "undo": event == undoable})
        for event in conversation.memory_events.filter(
            Q(kind=MemoryEvent.Kind.RESET) | inherited,
            undone_by__isnull=True,
            after__context_start__gte=start,
            after__context_start__lte=end,
        )
    ]
    summary = conversation.active_summary()
    if summary is not None and start <= summary.last_position < end:
        undo = undoable is not None and undoable.summary_id == summary.pk
        lines.append((summary.last_position + 1, _fold(summary, undo)))
    lines.sort(key=lambda line: line[0])
    items: list[dict[str, Any]] = []
    for turn in turns:
        first = turn["items"][0]["position"]
        while lines and lines[0][0] <= first:
            items.append(lines.pop(0)[1])
        items.append(turn)
    return items + [line for _position, line in lines]


def _fold(summary: Summary, undo: bool) -> dict[str, Any]:
    event = folds.fold_event(summary)
    return folds.folded(summary, event) | {
        "type": "fold",
        "kind": summary.kind,
        "failures": folds.failures(event),
        "text": summary.text,
        "undo": undo,
    }
