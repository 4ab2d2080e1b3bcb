"""Fitting: the last resort that makes one request fit, or the error that says what is too big."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from memory.core.budget import Budget
from memory.core.cutting import first_fitting, tail_edge
from memory.core.groups import Group, group_tokens
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.shortening import apply, shorten_groups, whole_tokens
from memory.core.tokens import Counter


class WindowTooSmall(Exception):
    """A request cannot fit, whatever is left out. `part` is what is too big: "system_prompt",
    "tools", "message" (the user's), "turn" (its calls and results) or, where the policy leaves
    nothing out, "history"; `tokens` and `usable` are tokens.
    """

    def __init__(self, part: str, tokens: int, usable: int) -> None:
        super().__init__(f"{part} needs {tokens} tokens, {usable} are usable")
        self.part = part
        self.tokens = tokens
        self.usable = usable


@dataclass(frozen=True, slots=True)
class Fitted:
    """What one request holds: groups left out as a last resort, groups kept, the running turn's
    (perhaps shortened; `whole` as in Plan), whether the summary stays, and how many of the further
    parts of the memory do."""

    omitted: tuple[Group, ...]
    kept: tuple[Group, ...]
    current: tuple[Group, ...]
    whole: Mapping[int, int]
    keeps_summary: bool
    parts: int = 0


def fit(
    decided: Plan,
    current: tuple[Group, ...],
    policy: Policy,
    budget: Budget,
    summary: int,
    counter: Counter,
    *,
    parts: Sequence[int] = (),
    tools: int = 0,
    keep_tools: Collection[str] = (),
) -> Fitted:
    """The last resort for one request.

    Room goes to the system prompt, the tools' schemas (`tools`, in tokens) and the current turn,
    then to the further parts of the memory (`parts`, the tokens of each, the dearest first; both
    are within the plan's fixed costs), then to the summary if it fits, then to the newest groups.
    Results of the running turn are shortened where it would not fit, the older ones first and those
    of `keep_tools` last. Raises
    WindowTooSmall where the first three alone do not fit (it names the largest), or where the
    policy keeps everything and that does not fit.
    """
    costs, whole = decided.costs, dict(decided.whole)
    now, kept = costs.current, len(parts)
    while kept and costs.fixed - sum(parts[kept:]) + now > budget.usable:
        kept -= 1
    fixed = costs.fixed - sum(parts[kept:])
    if fixed + now > budget.usable:
        shortened = shorten_groups(current, budget.usable - fixed, counter, keep_tools)
        if shortened is None:
            said = group_tokens(current[0], counter) if current else 0
            sizes = {"system_prompt": fixed - tools, "tools": tools, "message": said}
            sizes["turn"] = now - said
            part = max(sizes, key=lambda name: sizes[name])
            # Its own size where that says enough, else that of all three together.
            tokens = sizes[part] if sizes[part] > budget.usable else fixed + now
            raise WindowTooSmall(part, tokens, budget.usable)
        whole |= whole_tokens(current, shortened)
        current = apply(current, shortened)
        now = sum(group_tokens(members, counter) for members in current)
    base, prior = fixed + now, decided.tail
    suffix = costs.suffix[len(decided.head) :]
    if policy.older == "keep" and base + summary + suffix[0] > budget.usable:
        raise WindowTooSmall("history", base + summary + suffix[0], budget.usable)
    keeps_summary = base + summary <= budget.usable
    room = budget.usable - base - (summary if keeps_summary else 0)
    edge = tail_edge(prior, first_fitting(suffix, room))
    return Fitted(prior[:edge], prior[edge:], current, whole, keeps_summary, kept)
