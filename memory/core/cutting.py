"""Cutting: where the tail begins. Binary search over suffix sums of cached token counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from memory.core.budget import Budget
from memory.core.groups import Group
from memory.core.limits import LITERALS_SHARE, Limits, limits
from memory.core.policy import Policy


@dataclass(frozen=True, slots=True)
class Costs:
    """What planning weighs. Tokens, but for the last three.

    `fixed` is the system prompt, `summary` the active summary as rendered (0: none), `current`
    the groups of the running turn; `suffix[i]` is the cost of the prior groups from index i on.
    `messages` and `turns` are what the policy's triggers count, `since` the finished turns since
    the last compaction.
    """

    fixed: int
    summary: int
    current: int
    suffix: tuple[int, ...]
    messages: int = 0
    turns: int = 0
    since: int = 0

    @property
    def total(self) -> int:
        return self.fixed + self.summary + self.current + self.suffix[0]


def cut(
    prior: Sequence[Group], costs: Costs, policy: Policy, budget: Budget, *, asked: bool = False
) -> int:
    """The index of the first group of the tail; as the budget grows it never moves up.

    The earliest edge at which the tail is within the policy's messages and its tokens fit beside
    the rest, moved on to where a tail may begin. Where the tokens are over their limit and older
    messages are summarised, at least one group is folded, so that a summary over its cap gets
    written anew. Where it is `asked` for (by hand or by the number of turns), no more than the
    policy's least number of turns stays, in any budget: a larger one would else keep less.
    """
    rules = limits(policy, budget)
    fitting = first_fitting(costs.suffix, tail_room(costs, rules, policy, budget))
    edge = tail_edge(prior, max(fitting, count_edge(prior, costs, rules, policy)))
    if policy.keep_turns:
        edge = min(edge, _turns_edge(prior, costs, policy, budget))
    if asked and policy.keep_turns:
        edge = max(edge, tail_edge(prior, _newest_turns(prior, policy.keep_turns)))
    if policy.older == "summary" and costs.total > limit_of(rules, policy, budget):
        edge = max(edge, tail_edge(prior, min(1, len(prior))))
    return edge


def tail_room(costs: Costs, rules: Limits, policy: Policy, budget: Budget) -> int:
    """What the tail may cost, in tokens: what is usable beside the rest, at most what the policy
    keeps; where the tokens are over their limit, what its target leaves, at most the limit."""
    limit, tokens = limit_of(rules, policy, budget), float(budget.usable)
    if costs.total > limit:
        tokens = min(tokens, limit, math.inf if rules.target is None else rules.target)
    room = room_for(costs, rules, tokens)
    if rules.keep is None:
        return room
    return min(room, rules.keep, room_for(costs, rules, _after_fold(limit, policy, budget)))


def count_edge(prior: Sequence[Group], costs: Costs, rules: Limits, policy: Policy) -> int:
    """The index from which on the policy's counts of messages and turns let groups stay."""
    edge = 0
    if policy.fold_turns is not None:
        # All that are too many, where the policy found a long conversation.
        edge = _after_turns(
            prior, max(policy.fold_turns, costs.turns - (policy.max_turns or costs.turns))
        )
    if rules.keep_messages is not None:
        edge = max(edge, _edge_by_count(prior, policy, rules.keep_messages))
    elif rules.messages is not None and costs.messages > rules.messages:
        # Or what stays by tokens would be too many messages again at once.
        edge = max(edge, _edge_by_count(prior, policy, max(2, rules.messages // 2)))
    return edge


def limit_of(rules: Limits, policy: Policy, budget: Budget) -> float:
    """The tokens over which the window is too large by the policy's rule."""
    if rules.tokens is not None:
        return rules.tokens
    return budget.usable if policy.older == "summary" else math.inf


def room_for(costs: Costs, rules: Limits, tokens: float) -> int:
    """What the tail may cost in a window of so many tokens. In fractions up to here: rounding the
    memory's part by itself would let a larger budget keep one token less."""
    return math.floor(tokens - rules.memory) - costs.fixed - costs.current


def _turns_edge(prior: Sequence[Group], costs: Costs, policy: Policy, budget: Budget) -> int:
    """Where the tail begins that has the policy's least number of turns, or as many of them as
    fit without compacting again at once."""
    rules = limits(policy, budget)
    limit = min(limit_of(rules, policy, budget), budget.usable)
    room = room_for(costs, rules, _after_fold(limit, policy, budget))
    index = _newest_turns(prior, policy.keep_turns)
    return tail_edge(prior, max(index, first_fitting(costs.suffix, room)))


def _after_fold(limit: float, policy: Policy, budget: Budget) -> float:
    """The tokens that a window may have after a fold without folding again at once: the literals
    that a summary may carry come on top of it."""
    return limit - budget.usable * LITERALS_SHARE if policy.older == "summary" else limit


def _newest_turns(prior: Sequence[Group], number: int) -> int:
    """The index of the first group of the newest `number` turns."""
    turns, index = set[int](), len(prior)
    while index and len(turns | {prior[index - 1].turn}) <= number:
        index -= 1
        turns.add(prior[index].turn)
    return index


def _after_turns(prior: Sequence[Group], number: int) -> int:
    """The index behind the oldest `number` turns."""
    passed, turn = 0, None
    for index, members in enumerate(prior):
        if members.messages[0].turn != turn:
            turn, passed = members.messages[0].turn, passed + 1
            if passed > number:
                return index
    return len(prior)


def tail_edge(prior: Sequence[Group], edge: int) -> int:
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


def _edge_by_count(prior: Sequence[Group], policy: Policy, keep: int) -> int:
    every, kept = policy.counting == "all", 0
    for index in range(len(prior) - 1, -1, -1):
        kept += len(prior[index].messages) if every else prior[index].counted
        if kept > keep:
            return index + 1
    return 0
