"""The limits of a policy within a budget: every rule as a number of tokens, messages or turns."""

import math
from dataclasses import dataclass

from memory.core.budget import Budget
from memory.core.policy import Policy

# Tokens held back for the preamble and the fence around a summary and its literals.
FENCE_RESERVE = 80
# The share of the usable tokens that carried literals may take (S4's check).
LITERALS_SHARE = 0.1
# The share of the usable tokens that stays where a request would not fit and no rule says more.
BUDGET_TARGET = 0.5
# The largest share of the usable tokens that a summary may take.
SUMMARY_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Limits:
    """What a policy allows in one budget. None: no such limit.

    `tokens` compacts when it is exceeded; `target` is what the whole window then keeps at most,
    `keep` what the tail alone does, both in tokens. `memory` is what a summary may take with its
    fence, in tokens. Both are fractions, so that they grow evenly with the budget.
    """

    tokens: int | None
    messages: int | None
    target: float | None
    keep: int | None
    keep_messages: int | None
    memory: float


def limits(policy: Policy, budget: Budget) -> Limits:
    """The numbers that a policy comes to. They never fall as the budget grows."""
    over = 1 if policy.reached else 0
    tokens = token_trigger(policy, budget)
    keep_messages = policy.keep_messages
    if not budget.known and policy.unknown_messages is not None:
        keep_messages = min(keep_messages or policy.unknown_messages, policy.unknown_messages)
    memory = 0.0
    if policy.older == "summary":
        memory = min(policy.summary_cap, budget.usable * SUMMARY_SHARE) + FENCE_RESERVE
    return Limits(
        tokens=None if tokens is None else tokens - over,
        messages=None if policy.max_messages is None else policy.max_messages - over,
        target=_target(policy, budget, tokens),
        keep=_keep(policy, budget, tokens),
        keep_messages=keep_messages,
        memory=memory,
    )


def token_trigger(policy: Policy, budget: Budget) -> int | None:
    """The number of tokens at which the policy compacts, at most the usable ones; None where it
    never does by tokens."""
    rules: list[int] = []
    if policy.trigger_share is not None:
        rules.append(math.floor(_base(policy, budget) * policy.trigger_share))
    if policy.reserved is not None:
        # S1: the window less the reserve; where that would be nothing, half the window.
        rules.append(max(budget.counted - policy.reserved, budget.counted // 2))
        if not budget.known and policy.unknown_tokens is not None:
            rules.append(policy.unknown_tokens)
    if policy.trigger_tokens is not None:
        rules.append(policy.trigger_tokens)
    return min(*rules, budget.usable) if rules else None


def summary_cap(policy: Policy, budget: Budget, source: int | None = None) -> int:
    """The longest a summary may be, in tokens: the policy's cap, at most a quarter of usable, and
    at most the policy's share of what it is made of (`source`, in tokens)."""
    cap = min(policy.summary_cap, math.floor(budget.usable * SUMMARY_SHARE))
    if source is not None and policy.summary_ratio is not None:
        # Where the source is short a share of it would be too little to say anything.
        cap = min(cap, max(50, math.floor(source * policy.summary_ratio)))
    return max(1, cap)


def literals_cap(budget: Budget) -> int:
    """What the carried literals of a summary may take, in tokens."""
    return math.floor(budget.usable * LITERALS_SHARE)


def _base(policy: Policy, budget: Budget) -> int:
    """The tokens that shares are of."""
    if policy.base == "usable":
        return budget.usable
    if not budget.known and policy.unknown_tokens is not None:
        return min(budget.counted, policy.unknown_tokens)
    return budget.counted


def _target(policy: Policy, budget: Budget, tokens: int | None) -> float | None:
    if policy.target_share is not None:
        return min(_base(policy, budget) * policy.target_share, budget.usable)
    if policy.older == "leave-out":
        return tokens
    # Without a rule of its own a policy compacts by tokens only where a request would not fit.
    return budget.usable * BUDGET_TARGET if policy.keep_share is None else None


def _keep(policy: Policy, budget: Budget, tokens: int | None) -> int | None:
    """S1: the share of the window less the reserve, between the least and the most, and at most
    half the trigger, so that what is kept does not compact again at once. Where the window is not
    known and the messages are counted instead, only the last holds."""
    if policy.keep_share is None:
        return None
    if tokens is not None and not budget.known and policy.unknown_messages is not None:
        return tokens // 2
    room = budget.usable if policy.reserved is None else budget.counted - policy.reserved
    keep = math.floor(room * policy.keep_share)
    if policy.keep_least is not None:
        keep = max(keep, policy.keep_least)
    if policy.keep_most is not None:
        keep = min(keep, policy.keep_most)
    return keep if tokens is None else min(keep, tokens // 2)
