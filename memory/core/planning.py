"""Planning: what of a conversation goes into the next request, and whether to compact first.

Everything here is a pure function of cached token counts. A plan never changes anything: it says
which groups are the head (to fold or leave out) and which the tail (kept verbatim).
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from memory.core.budget import Budget
from memory.core.cutting import Costs, count_edge, cut, limit_of, tail_room
from memory.core.groups import Group, group_tokens
from memory.core.limits import limits
from memory.core.policy import Policy
from memory.core.shortening import apply, shorten_groups, whole_tokens
from memory.core.tokens import Counter

Trigger = Literal["messages", "turns", "tokens", "budget", "manual"]
Action = Literal["send", "fold", "leave-out"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision for one request. head + tail = the prior groups, in order.

    Groups may hold shortened messages; `whole` has the tokens that those cost as they stand in
    the transcript, by position.
    """

    action: Action
    head: tuple[Group, ...]
    tail: tuple[Group, ...]
    trigger: Trigger | None
    costs: Costs
    whole: Mapping[int, int] = field(default_factory=dict)

    def unfolded(self) -> "Plan":
        """The same request without the fold: all groups are sent as far as they fit, shortened as
        they would be while the fold is not committed."""
        return replace(self, action="send", head=(), tail=self.head + self.tail, trigger=None)


def suffix_sums(groups: Sequence[Group], counter: Counter) -> tuple[int, ...]:
    """The cost of the groups from each index on, in tokens; one more than there are groups."""
    costs = [group_tokens(members, counter) for members in reversed(groups)]
    sums = list(accumulate(costs, initial=0))
    sums.reverse()
    return tuple(sums)


def measure(
    prior: Sequence[Group],
    current: Sequence[Group],
    policy: Policy,
    *,
    fixed: int,
    summary: int,
    counter: Counter,
    compacted_turn: int = 0,
) -> Costs:
    """The costs of a context; linear in the groups given, which are those after the cutoff.

    The summary and the current message count (S0). `compacted_turn` is the last turn that had
    ended when the summary was made.
    """
    everything = (*prior, *current)
    if policy.counting == "all":
        messages = sum([len(one.messages) for one in everything])
    else:  # as `Group.counted`, without its call: there may be thousands
        messages = sum([one.messages[0].counts for one in everything])
    before = {one.messages[0].turn for one in prior}
    return Costs(
        fixed=fixed,
        summary=summary,
        current=sum(group_tokens(members, counter) for members in current),
        suffix=suffix_sums(prior, counter),
        messages=messages + bool(summary),
        turns=len(before | {one.turn for one in current}),
        since=sum(turn > compacted_turn for turn in before),
    )


def triggered(costs: Costs, policy: Policy, budget: Budget) -> Trigger | None:
    """Why the policy compacts now, or None."""
    if costs.total > budget.usable:
        return "budget"
    rules = limits(policy, budget)
    if rules.messages is not None and costs.messages > rules.messages:
        return "messages"
    if policy.max_turns is not None and costs.turns > policy.max_turns:
        return "turns"
    if policy.every_turns is not None and costs.since >= policy.every_turns:
        return "turns"
    if rules.tokens is not None and costs.total > rules.tokens:
        return "tokens"
    return None


def plan(
    prior: tuple[Group, ...],
    costs: Costs,
    policy: Policy,
    budget: Budget,
    counter: Counter,
    keep_tools: Collection[str] = (),
    *,
    force: bool = False,
    hold: bool = False,
) -> Plan:
    """Decide about the next request.

    `force` is the owner's "compact now"; `hold` suspends the policy's own triggers (after an undo
    or a compaction without progress), so that only a request that would not fit is compacted. What
    is merely left out of a request is no compaction: `hold` does not concern it. Where results have
    to be shortened, those of `keep_tools` give way last.
    """
    trigger = triggered(costs, policy, budget)
    held = hold and policy.older == "summary" and trigger != "budget"
    if force:
        trigger = trigger if trigger and not held else "manual"
    if trigger is None or policy.older == "keep":
        return Plan("send", (), prior, trigger, costs)
    # Whatever else triggers too: a larger budget, in which nothing does, must not keep less.
    due = policy.every_turns is not None and costs.since >= policy.every_turns
    edge = cut(prior, costs, policy, budget, asked=force or due)
    action: Action = "fold" if policy.older == "summary" else "leave-out"
    decided = Plan(action if edge else "send", prior[:edge], prior[edge:], trigger, costs)
    if edge and not decided.tail:
        decided = _rescued(decided, policy, budget, counter, keep_tools)
    return decided.unfolded() if held and not force else decided


def _rescued(
    decided: Plan,
    policy: Policy,
    budget: Budget,
    counter: Counter,
    keep_tools: Collection[str],
) -> Plan:
    """Where nothing but the current turn would remain: the newest group that a tail may begin
    with, and what follows it, with its results shortened to fit (S1); else the plan as it is."""
    prior, costs = decided.head, decided.costs
    edge = len(prior) - 1
    while edge and not prior[edge].begins_tail:
        edge -= 1
    rules = limits(policy, budget)
    if edge < count_edge(prior, costs, rules, policy):
        return decided
    room = tail_room(costs, rules, policy, budget)
    if not edge:
        # Nothing is folded then, so the summary stays as long as it is.
        most = min(limit_of(rules, policy, budget), budget.usable)
        room = min(room, math.floor(most) - costs.fixed - costs.current - costs.summary)
    shortened = shorten_groups(prior[edge:], room, counter, keep_tools)
    if shortened is None:
        return decided
    whole = whole_tokens(prior[edge:], shortened)
    tail = apply(prior[edge:], shortened)
    costs = replace(costs, suffix=suffix_sums((*prior[:edge], *tail), counter))
    action = decided.action if edge else "send"
    return replace(decided, action=action, head=prior[:edge], tail=tail, costs=costs, whole=whole)
