"""Planning: what of a conversation goes into the next request, and whether to compact first.

Everything here is a pure function of cached token counts. A plan never changes anything: it says
which groups are the head (to fold or leave out) and which the tail (kept verbatim).
"""

import math
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
    or a compaction without progress), so that only a request that would not fit is compacted. What
    is merely left out of a request is no compaction: `hold` does not concern it.
    """
    trigger = triggered(costs, prior, current, policy, budget)
    if hold and policy.older == "summary" and trigger != "budget":
        trigger = None
    if force:
        trigger = trigger or "manual"
    if trigger is None or policy.older == "keep":
        return Plan("send", (), prior, trigger, costs)
    edge = cut(prior, costs, policy, budget)
    if edge == 0:
        return Plan("send", (), prior, trigger, costs)
    action: Action = "fold" if policy.older == "summary" else "leave-out"
    return Plan(action, prior[:edge], prior[edge:], trigger, costs)


def cut(prior: Sequence[Group], costs: Costs, policy: Policy, budget: Budget) -> int:
    """The index of the first group of the tail; as the budget grows it never moves up.

    The earliest edge at which the tail has at most `keep_messages` messages and its tokens fit
    beside the rest, moved on to where a tail may begin. Where the tokens are over their limit and
    older messages are summarised, at least one group is folded, so that a summary over its cap
    gets written anew.
    """
    limit = token_trigger(policy, budget)
    memory: float = costs.summary
    if policy.older == "summary":
        limit = budget.usable if limit is None else limit
        # In fractions: rounding the cap by itself would let a larger budget keep one token less.
        memory = min(policy.summary_cap, budget.usable / 4) + FENCE_RESERVE
    over = limit is not None and costs.total > limit
    room = math.floor(budget.usable * (policy.target_share if over else 1) - memory)
    edge = first_fitting(costs.suffix, room - costs.fixed - costs.current)
    if over and policy.older == "summary":
        edge = max(edge, min(1, len(prior)))
    if policy.keep_messages is not None:
        edge = max(edge, _edge_by_count(prior, policy.keep_messages))
    return _tail_edge(prior, edge)


def _tail_edge(prior: Sequence[Group], edge: int) -> int:
    """The first index from `edge` on at which a tail may begin; everything may stay as it is."""
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

    Room goes to the system prompt and the current turn, then to the summary if it fits, then to
    the newest groups. Raises WindowTooSmall where the system prompt and the current turn alone do
    not fit (it names the larger), or where the policy keeps everything and that does not fit.
    """
    costs, prior = plan_.costs, plan_.tail
    base = costs.fixed + costs.current
    if base > budget.usable:
        if costs.fixed >= costs.current:
            raise WindowTooSmall("system_prompt", costs.fixed, budget.usable)
        raise WindowTooSmall("message", costs.current, budget.usable)
    suffix = costs.suffix[len(plan_.head) :]
    if policy.older == "keep" and base + summary + suffix[0] > budget.usable:
        raise WindowTooSmall("history", base + summary + suffix[0], budget.usable)
    keeps_summary = base + summary <= budget.usable
    room = budget.usable - base - (summary if keeps_summary else 0)
    edge = _tail_edge(prior, first_fitting(suffix, room))
    return prior[:edge], prior[edge:], keeps_summary
