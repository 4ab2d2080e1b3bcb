"""What holds of every context window (docs/memory.md)."""

import math
from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from memory.core.fitting import WindowTooSmall
from memory.core.groups import group_tokens, positions
from memory.core.messages import Message
from memory.core.shortening import shorten_groups
from memory.core.window import Context, Window
from memory.core.wire import Span, to_wire
from memory.encodings import counter_for
from tests.memory.strategies import contexts

REAL = counter_for("gpt-4o")
NOW = ("current", "working")  # the kinds of the running turn
REAL_OVERHEAD = 4  # tokens that OpenAI adds to a message, at most


def window_of(context: Context) -> Window:
    """The window, for the examples in which there is one."""
    try:
        return context.window(context.plan())
    except WindowTooSmall:
        assume(False)
        raise


def room_of(context: Context) -> int:
    """The tokens that the running turn may take at most."""
    system = next(iter(context.system_segments()), None)
    return context.budget.usable - context.tools - (system.tokens if system else 0)


def tried(context: Context) -> tuple[Window | None, WindowTooSmall | None]:
    """The window or the error."""
    try:
        return context.window(context.plan()), None
    except WindowTooSmall as error:
        return None, error


def changed_in_current(context: Context) -> list[Message]:
    """The messages of the running turn that the window has shortened."""
    stored = {message.position: message for one in context.current for message in one.messages}
    segments = [one for one in window_of(context).segments if one.kind in NOW and not one.made]
    changed = [one for one in segments if one.message != stored[one.message.position]]
    assert all(one.whole == stored[one.message.position].tokens for one in changed)
    assert all(one.tokens < one.whole for one in changed)
    return [one.message for one in changed]


def wire_of(window: Window) -> tuple[list[dict[str, Any]], tuple[Span, ...]]:
    return to_wire(segment.message for segment in window.segments)


@given(contexts())
def test_the_first_message_is_the_only_system_message_and_begins_with_the_prompt(
    context: Context,
) -> None:
    window = window_of(context)
    wire, _ = wire_of(window)
    roles = [message["role"] for message in wire]
    has_memory = any(segment.kind == "summary" for segment in window.segments)
    assert roles.count("system") == bool(context.system_prompt or has_memory)
    if context.system_prompt:
        assert roles[0] == "system"
        assert wire[0]["content"].startswith(context.system_prompt)


@given(contexts(running=True))
def test_the_current_turn_is_in_every_window_and_its_question_whole(context: Context) -> None:
    window = window_of(context)
    sent = [segment.message for segment in window.segments if segment.kind in NOW]
    assert sent[0] == context.current[0].messages[0]
    assert sent[0].role == "user"
    surplus = {position for one in window.left_out for position in one.positions}
    whole = [message for one in context.current for message in one.messages]
    own = sorted(message.position for message in sent if message.position)
    assert own == [message.position for message in whole if message.position not in surplus]
    assert all(message.role == "tool" for message in whole if message.position in surplus)


@given(contexts(running=True))
def test_a_running_turn_is_shortened_only_where_it_would_not_fit(context: Context) -> None:
    costs = context.measure()
    changed = changed_in_current(context)
    assert not changed or costs.fixed + costs.current > context.budget.usable
    assert all(message.role == "tool" or message.tool_calls for message in changed)


@given(contexts(running=True))
def test_the_newest_call_group_is_whole_if_the_older_ones_can_give_way(context: Context) -> None:
    newest = [one for one in context.current if one.messages[0].tool_calls][-1:]
    changed = {message.position for message in changed_in_current(context)}
    if changed & set(positions(newest)):
        older = [one for one in context.current if one not in newest]
        taken = sum(group_tokens(one, context.counter) for one in newest)
        assert shorten_groups(older, room_of(context) - taken, context.counter) is None


@given(contexts(running=True))
def test_the_last_user_message_reaches_the_wire_unchanged(context: Context) -> None:
    window = window_of(context)
    wire, spans = wire_of(window)
    index = next(index for index, segment in enumerate(window.segments) if segment.kind in NOW)
    text = context.current[0].messages[0].content
    assert wire[spans[index].index]["role"] == "user"
    assert wire[spans[index].index]["content"].endswith(text)


@given(contexts())
def test_every_result_stands_behind_its_call_and_no_call_is_without_results(
    context: Context,
) -> None:
    wire, _ = wire_of(window_of(context))
    waiting: list[str] = []
    for message in wire:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [call["id"] for call in message.get("tool_calls", ())]
    assert waiting == []


@given(contexts())
def test_a_window_fits_or_the_error_names_what_is_too_big(context: Context) -> None:
    costs, usable = context.plan().costs, context.budget.usable
    window, error = tried(context)
    if error is None:
        assert window is not None
        assert window.tokens <= usable
        return
    system = next(iter(context.system_segments()), None)
    said = group_tokens(context.current[0], context.counter) if context.current else 0
    sizes = {"system_prompt": system.tokens if system else 0, "tools": context.tools,
             "message": said, "turn": costs.current - said}  # fmt: skip
    assert error.usable == usable < costs.total
    if error.part == "history":
        assert (context.policy.older, error.tokens > usable) == ("keep", True)
    else:
        # The largest, with its own size where that alone is too much, else with that of all.
        largest = max(sizes.values())
        assert sizes[error.part] == largest
        assert error.tokens == (largest if largest > usable else sum(sizes.values()))


@given(contexts())
def test_an_error_comes_only_where_shortening_cannot_help(context: Context) -> None:
    _, error = tried(context)
    helps = shorten_groups(context.current, room_of(context), context.counter)
    if error is None or error.part == "history":
        assert helps is not None
    else:
        assert helps is None


@given(contexts())
def test_further_parts_go_before_the_turn_is_shortened_and_the_last_first(
    context: Context,
) -> None:
    window = window_of(context)
    sent = [segment for segment in window.segments if segment.kind in ("facts", "retrieved")]
    kept = [part for part in context.parts if part in sent]
    assert kept == list(context.parts[: len(kept)])
    assert len(sent) == len(kept)
    left = [one for one in window.left_out if one.reason == "no-room"]
    gone = context.parts[len(kept) :]
    assert sum(one.tokens for one in left) == sum(part.tokens for part in gone)
    costs = context.measure()
    if gone:
        # With the dearest of them what comes first would not fit.
        before = costs.fixed - sum(part.tokens for part in gone[1:]) + costs.current
        assert before > context.budget.usable
    if kept:
        assert changed_in_current(context) == []


@given(contexts(), st.booleans())
def test_a_window_without_the_planned_fold_has_all_that_fits(context: Context, force: bool) -> None:
    """A fold that fails costs nothing: what was to be folded is sent as far as there is room."""
    plan = context.plan(force=force)
    assume(plan.action == "fold")
    try:
        window = context.window(plan)
    except WindowTooSmall:
        return
    tail = [one for one in window.segments if one.kind == "tail" and not one.made]
    sent = {one.message.position for one in tail}
    omitted = {at for one in window.left_out if one.reason == "omitted" for at in one.positions}
    assert not omitted or max(omitted) < min(sent, default=math.inf)
    assert all(one.reason != "outside-window" for one in window.left_out)


@given(contexts())
def test_held_after_an_undo_it_is_the_window_without_the_fold(context: Context) -> None:
    """Old results that are shortened in the one are shortened in the other."""
    window = window_of(context)
    held = context.window(context.plan(hold=True))
    assert held.segments == window.segments


@given(contexts())
def test_every_message_is_sent_or_listed_as_left_out_exactly_once(context: Context) -> None:
    window = window_of(context)
    sent = [one.message.position for one in window.segments if one.message.position]
    left = [position for one in window.left_out for position in one.positions]
    groups = (*context.prior, *context.current)
    everything = [message.position for one in groups for message in one.messages]
    assert sorted(sent + left) == everything
    if context.summary is None:
        assert all(one.positions or one.reason == "no-room" for one in window.left_out)


@given(contexts())
def test_nothing_is_omitted_that_would_fit(context: Context) -> None:
    window = window_of(context)
    omitted = {one.reason: one for one in window.left_out if one.positions}.get("omitted")
    if omitted is not None:
        assert window.tokens + omitted.tokens > context.budget.usable


@given(contexts())
def test_spans_give_each_segments_exact_text(context: Context) -> None:
    window = window_of(context)
    wire, spans = wire_of(window)
    assert len(spans) == len(window.segments)
    for segment, span in zip(window.segments, spans, strict=True):
        content = wire[span.index]["content"] or ""
        assert content[span.start : span.end] == segment.message.content
        assert wire[span.index]["role"] == segment.message.role


@given(contexts())
def test_no_two_neighbours_on_the_wire_are_both_user_messages(context: Context) -> None:
    wire, _ = wire_of(window_of(context))
    roles = [message["role"] for message in wire]
    assert ("user", "user") not in pairwise(roles)


@given(contexts(counter=REAL))
def test_a_windows_tokens_are_an_upper_bound_of_what_the_wire_costs(context: Context) -> None:
    window = window_of(context)
    wire, _ = wire_of(window)
    real = 0
    for message in wire:
        real += REAL_OVERHEAD + REAL.count(message["content"] or "")
        for one in message.get("tool_calls", ()):
            function = one["function"]
            real += REAL.count(function["name"]) + REAL.count(function["arguments"])
    assert real <= window.tokens


@given(contexts())
def test_a_stub_is_the_only_thing_that_is_made_up(context: Context) -> None:
    made = [segment for segment in window_of(context).segments if segment.made]
    assert all(isinstance(one.message, Message) and one.message.role == "tool" for one in made)
    assert all(one.tokens > 0 and one.message.position == 0 for one in made)
