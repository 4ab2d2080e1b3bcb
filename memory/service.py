"""What the web application asks of the memory: assemble, reset, undo, edit and restore.

Each change returns its event; callers broadcast it. `assemble` is the one way to the next request:
the panel shows and the agent sends the same. Compacting is in `memory.compaction`.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from memory import reading, versions
from memory.core.budget import Budget, budget_for
from memory.core.calibration import calibration
from memory.core.carrying import Carried, candidates, carry
from memory.core.fitting import WindowTooSmall
from memory.core.groups import group
from memory.core.limits import literals_cap
from memory.core.messages import PLAIN, Habits, Message
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.text import is_blank
from memory.core.tokens import MESSAGE_OVERHEAD, TOOLS_OVERHEAD, Counter
from memory.core.window import Context, Window
from memory.encodings import counter_for
from memory.folding import body_tokens
from memory.models import Conversation, MemoryEvent, Summary
from memory.snapshots import body_of


@dataclass(frozen=True, slots=True)
class Target:
    """The model that a request goes to: its name, its window in tokens, the options of the
    request's body (everything except the messages), and whether the window is known or assumed.

    `habits` are those of its provider. Where the options offer tools, `note` is what the model is
    told about them and `keep_tools` those whose results the rungs leave alone.
    """

    model: str
    window: int
    options: Mapping[str, Any]
    known: bool = True
    habits: Habits = PLAIN
    note: str = ""
    keep_tools: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Assembled:
    """The next request. `window` and `body` are None where it cannot fit; `error` says why."""

    conversation: Conversation
    policy: Policy
    counter: Counter
    context: Context
    plan: Plan
    window: Window | None
    body: dict[str, Any] | None
    error: WindowTooSmall | None
    summary: Summary | None = None


def budget_of(conversation: Conversation, target: Target) -> Budget:
    """The token budget of a conversation's requests, calibrated by what the provider counted of its
    newest ones; a window that the owner set is known, whatever the target says."""
    known = target.known or conversation.window is not None
    window, reserve = conversation.window or target.window, conversation.reply_reserve
    if reserve is not None and reserve >= window:
        reserve = None  # it was set for another model's window
    budget = budget_for(window, reserve, known=known)
    encoding = counter_for(target.model).name
    seen = reading.measured(conversation=conversation, model=target.model, encoding=encoding)
    return replace(budget, calibration=calibration(seen, budget.usable))


def assemble(
    *, conversation_id: UUID, target: Target, force: bool = False, strict: bool = False
) -> Assembled:
    """Build the next request from what is stored, in a constant number of queries.

    While a turn is running it is the request of that turn; otherwise the one that the next user
    message will be added to. `force` plans the owner's "compact now". What would fit but for the
    calibration is tried without it, unless `strict`: else a measure that is wrong could never be
    corrected, since nothing would be sent any more.
    """
    conversation = Conversation.objects.get(pk=conversation_id)
    counter = counter_for(target.model)
    policy = conversation.policy
    loaded = reading.load(
        conversation=conversation,
        policy=policy,
        counter=counter,
        reasoning=bool(target.habits.reasoning),
    )
    context = Context(
        system_prompt=conversation.system_prompt,
        summary=loaded.summary.to_core() if loaded.summary else None,
        prior=group(loaded.prior),
        current=group(loaded.current),
        policy=policy,
        budget=budget_of(conversation, target),
        counter=counter,
        keep_tools=target.keep_tools,
        tools=schemas_tokens(target.options.get("tools"), counter),
        note=target.note,
    )
    turn = conversation.next_turn - 1 if loaded.current else conversation.next_turn
    hold = conversation.hold_turn > turn
    plan, window = _planned(context, force=force, hold=hold)
    if isinstance(window, WindowTooSmall) and context.budget.calibration > 1 and not strict:
        plain = replace(context, budget=replace(context.budget, calibration=1.0))
        tried = _planned(plain, force=force, hold=hold)
        if isinstance(tried[1], Window):
            context, (plan, window) = plain, tried
    made = (conversation, policy, counter, context, plan)
    if isinstance(window, WindowTooSmall):
        return Assembled(*made, None, None, window, loaded.summary)
    body = body_of(window.segments, dict(target.options), target.habits)
    return Assembled(*made, window, body, None, loaded.summary)


def _planned(context: Context, *, force: bool, hold: bool) -> tuple[Plan, Window | WindowTooSmall]:
    """The plan of a context and its window, or why there is none."""
    plan = context.plan(force=force, hold=hold)
    try:
        return plan, context.window(plan)
    except WindowTooSmall as error:
        return plan, error


def schemas_tokens(schemas: Any, counter: Counter) -> int:
    """What the tools of a request cost in tokens: chat templates write them out as JSON, with some
    words around it."""
    if not schemas:
        return 0
    return TOOLS_OVERHEAD + counter.count(json.dumps(schemas, ensure_ascii=False))


def forecast(assembled: Assembled) -> Plan:
    """The plan that the next user message would meet, were it empty; the running turn's own plan
    while one is running."""
    context = assembled.context
    if context.current:
        return assembled.plan
    message = Message("user", "", tokens=MESSAGE_OVERHEAD)
    upcoming = replace(context, current=group([message]))
    hold = assembled.conversation.hold_turn > assembled.conversation.next_turn
    return upcoming.plan(hold=hold)


def wants_compaction(assembled: Assembled, *, before_request: bool) -> bool:
    """Whether to compact now: by the policy's `when`, and always when it would not fit."""
    plan = assembled.plan
    # What does not fit without any history does not fit with a summary of it either.
    if plan.action != "fold" or assembled.error:
        return False
    now = "before_request" if before_request else "after_reply"
    return assembled.policy.when == now or (before_request and plan.trigger == "budget")


def reset(*, conversation_id: UUID) -> MemoryEvent | None:
    """Let the context start anew; None if there is nothing to reset. Raises versions.TurnRunning
    while a turn is running."""
    return versions.reset(conversation_id=conversation_id)


def undo(*, conversation_id: UUID) -> MemoryEvent | None:
    """Take back the newest reset or compaction; None if there is nothing to take back."""
    return versions.undo(conversation_id=conversation_id)


def check_summary(*, conversation: Conversation, text: str, target: Target) -> None:
    """Raises ValueError with a reason code for a text that cannot be the summary: "empty", or
    "too-large" (over half of the usable tokens)."""
    if is_blank(text):
        raise ValueError("empty")
    tokens = counter_for(target.model).count(text) + MESSAGE_OVERHEAD
    # Beside the summary the current message must have room.
    if tokens > budget_of(conversation, target).usable // 2:
        raise ValueError("too-large")


def edit_summary(
    *,
    conversation_id: UUID,
    version: int,
    text: str,
    author: Any,
    target: Target,
    only_active: bool = True,
) -> MemoryEvent:
    """Replace a summary's text by hand, as a new version.

    Of the literals carried beside it those stay that the new text does not have. Raises ValueError
    as `check_summary`, and versions.Stale and Summary.DoesNotExist as `versions.derive_summary`.
    """
    conversation = Conversation.objects.get(pk=conversation_id)
    check_summary(conversation=conversation, text=text, target=target)
    source = Summary.objects.get(conversation_id=conversation_id, version=version).to_core()
    counter = counter_for(target.model)
    carried = carry(
        candidates((), source.candidates, text),
        cap=literals_cap(budget_of(conversation, target)),
        counter=counter,
    )
    edited = replace(source, text=text, candidates=carried.candidates, fitting=carried.fitting)
    return versions.derive_summary(
        conversation_id=conversation_id,
        version=version,
        text=text,
        tokens=body_tokens(edited, counter),
        carried=carried,
        author=author,
        restore=False,
        only_active=only_active,
    )


def restore_summary(*, conversation_id: UUID, version: int, author: Any) -> MemoryEvent:
    """Make an older version's text, range and literals active again, as a new version."""
    source = Summary.objects.get(conversation_id=conversation_id, version=version)
    return versions.derive_summary(
        conversation_id=conversation_id,
        version=version,
        text=source.text,
        tokens=source.tokens_after,
        carried=Carried(source.to_core().candidates, source.carried),
        author=author,
        restore=True,
    )
