"""Planning: what of a conversation goes into the next request, and whether to compact first.

Everything here is a pure function of cached token counts. A plan never changes anything: it says
which groups are the head (to fold or leave out) and which the tail (kept verbatim).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.core.budget import Budget
from memory.core.groups import Group, group_tokens
from memory.core.policy import Policy
from memory.core.tokens import Counter

# Tokens held back for the preamble and the fence around a summary.
FENCE_RESERVE = 80

Trigger = Literal["messages", "tokens", "budget", "manual"]
Action = Literal["send", "fold", "leave-out"]


class WindowTooSmall(Exception):
    """A request cannot fit, whatever is left out. `part` is what is too big: "system_prompt",
    "message" or (where the policy leaves nothing out) "history"; `tokens` and `usable` are tokens.
    """

    def __init__(self, part: str, tokens: int, usable: int) -> None:
        super().__init__(f"{part} needs {tokens} tokens, {usable} are usable")
        self.part = part
        self.tokens = tokens
        self.usable = usable


@dataclass(frozen=True, slots=True)
class Costs:
    """What planning weighs, in tokens.

    `fixed` is the system prompt, `summary` the active summary as rendered (0: none), `current`
    the groups of the running turn; `suffix[i]` is the cost of the prior groups from index i on.
    """

    fixed: int
    summary: int
    current: int
    suffix: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.fixed + self.summary + self.current + self.suffix[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision for one request. head + tail = the prior groups, in order."""

    action: Action
    head: tuple[Group, ...]
    tail: tuple[Group, ...]
    trigger: Trigger | None
    costs: Costs


def measure(
    prior: Sequence[Group],
    current: Sequence[Group],
    *,
    fixed: int,
    summary: int,
    counter: Counter,
) -> Costs:
    """The costs of a context; linear in the groups given, which are those after the cutoff."""
    suffix = [0]
    for members in reversed(prior):
        suffix.append(suffix[-1] + group_tokens(members, counter))
    now = sum(group_tokens(members, counter) for members in current)
    return Costs(fixed, summary, now, tuple(reversed(suffix)))


def summary_cap(policy: Policy, budget: Budget) -> int:
    """The longest a summary may be, in tokens: the policy's cap, at most a quarter of usable."""
    return max(1, min(policy.summary_cap, budget.usable // 4))


def token_trigger(policy: Policy, budget: Budget) -> int | None:
    """The number of tokens over which the policy compacts; None where it never does by tokens."""
    return None if policy.trigger_share is None else int(budget.usable * policy.trigger_share)


def triggered(
    costs: Costs,
    prior: Sequence[Group],
    current: Sequence[Group],
    policy: Policy,
    budget: Budget,
) -> Trigger | None:
    """Why the policy compacts now, or None. The summary and the current message count (S0)."""
    if costs.total > budget.usable:
        return "budget"
    counted = sum(members.counted for members in (*prior, *current)) + bool(costs.summary)
    if policy.max_messages is not None and counted > policy.max_messages:
        return "messages"
    limit = token_trigger(policy, budget)
    if limit is not None and costs.total > limit:
        return "tokens"
    return None


def plan(
    prior: tuple[Group, ...],
    current: tuple[Group, ...],
    costs: Costs,
    policy: Policy,
    budget: Budget,
    *,
    force: bool = False,
    hold: bool = False,
) -> Plan:
    """Decide about the next request.

    `force` is the owner's "compact now"; `hold` suspends the policy's own triggers (after an undo
    or a compaction without progress), so that only a request that would not fit is compacted.
    """
    trigger = triggered(costs, prior, current, policy, budget)
    if hold and trigger != "budget":
        trigger = None
    if force:
        trigger = trigger or "manual"
    if trigger is None or policy.older == "keep":
        return Plan("send", (), prior, trigger, costs)
    edge = cut(prior, costs, policy, budget, trigger)
    if edge == 0:
        return Plan("send", (), prior, trigger, costs)
    action: Action = "fold" if policy.older == "summary" else "leave-out"
    return Plan(action, prior[:edge], prior[edge:], trigger, costs)


def cut(
    prior: Sequence[Group], costs: Costs, policy: Policy, budget: Budget, trigger: Trigger
) -> int:
    """The index of the first group of the tail.

    The earliest edge at which the tail has at most `keep_messages` messages and its tokens fit
    beside the rest, moved on to where a tail may begin.
    """
    limit = budget.usable
    if trigger == "tokens":
        limit = int(limit * policy.target_share)
    memory = costs.summary
    if policy.older == "summary":
        memory = summary_cap(policy, budget) + FENCE_RESERVE
    edge = first_fitting(costs.suffix, limit - costs.fixed - costs.current - memory)
    if policy.keep_messages is not None:
        edge = max(edge, _edge_by_count(prior, policy.keep_messages))
    while 0 < edge < len(prior) and not prior[edge].begins_tail:
        edge += 1
    return edge


def first_fitting(suffix: Sequence[int], room: int) -> int:
    """The earliest index whose suffix costs at most `room` tokens, by binary search."""
    low, high = 0, len(suffix) - 1
    while low < high:
        middle = (low + high) // 2
        if suffix[middle] <= room:
            high = middle
        else:
            low = middle + 1
    return low


def _edge_by_count(prior: Sequence[Group], keep: int) -> int:
    kept = 0
    for index in range(len(prior) - 1, -1, -1):
        kept += prior[index].counted
        if kept > keep:
            return index + 1
    return 0


def fit(
    plan_: Plan, policy: Policy, budget: Budget, summary: int
) -> tuple[tuple[Group, ...], tuple[Group, ...], bool]:
    """The last resort for one request: (left out, kept, whether the summary stays).

    Nothing is left out that fits. Raises WindowTooSmall where the system prompt and the current
    turn alone do not fit, or where the policy keeps everything and everything does not fit.
    """
    costs, prior = plan_.costs, plan_.tail
    base = costs.fixed + costs.current
    if base > budget.usable:
        part = "system_prompt" if costs.fixed > budget.usable // 2 else "message"
        size = costs.fixed if part == "system_prompt" else costs.current
        raise WindowTooSmall(part, size, budget.usable)
    suffix = costs.suffix[len(plan_.head) :]
    if policy.older == "keep" and base + summary + suffix[0] > budget.usable:
        raise WindowTooSmall("history", base + summary + suffix[0], budget.usable)
    keeps_summary = base + summary <= budget.usable
    room = budget.usable - base - (summary if keeps_summary else 0)
    edge = first_fitting(suffix, room)
    while 0 < edge < len(prior) and not prior[edge].begins_tail:
        edge += 1
    return prior[:edge], prior[edge:], keeps_summary
