"""Shortening: what tool calls and their results give up before any model is asked (S1).

The window changes, never the transcript: the functions return the shortened messages by position,
`apply` puts them into groups. Only content or arguments and the tokens differ, so pairing cannot
break. Blank contents, user messages, replies and what would not get cheaper are left alone.

Both rungs measure the transcript's own messages, not what the other rung made of them: their
results are merged with `|`, and a larger budget never shortens more. Neither touches a call group
at the very end: the model has not answered it yet.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import NamedTuple

from memory.core.budget import Budget, budget_for
from memory.core.clipping import CUT_LEAST, cut_middle, cut_strings
from memory.core.groups import Group, sendable
from memory.core.messages import Message
from memory.core.text import is_blank
from memory.core.tokens import Counter, message_tokens

Shortened = dict[int, Message]  # by position
_Fits = Callable[[Shortened], bool]

S1_BUDGET = budget_for(128_000)  # the window that S1's sizes belong to
# What does not scale with the window: numbers of messages, the few characters that name a string.
_FIXED = ("arguments_from_messages", "arguments_keep_messages", "argument_head")
# The smallest values where these are not 1; shorter pieces would tell nothing.
_LEAST = {"argument_limit": 200, "result_head": 100, "result_tail": 100}
_LEAST |= {"arguments_keep_messages": 0, "results_keep_tokens": 0, "results_least_tokens": 0}


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the two rungs (S1).

    - Arguments are shortened from `arguments_from_messages` messages or `arguments_from_tokens`
      tokens on, in calls older than the last `arguments_keep_messages` messages: strings over
      `argument_limit` characters keep their first `argument_head` characters.
    - Results outside the newest `results_keep_tokens` tokens keep their first `result_head` and
      last `result_tail` characters, if those that get shorter cost `results_least_tokens` or more.

    Raises ValueError that names the parameter and the rule.
    """

    arguments_from_messages: int = 25
    arguments_from_tokens: int = 40_000
    arguments_keep_messages: int = 20
    argument_limit: int = 2_000
    argument_head: int = 20
    results_keep_tokens: int = 40_000
    results_least_tokens: int = 20_000
    result_head: int = 1_000
    result_tail: int = 1_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value, least = getattr(self, field.name), _LEAST.get(field.name, 1)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ValueError(f"{field.name} must be a whole number of at least {least}")
        # With less between them a shortened string would be over the limit again.
        if self.argument_head > self.argument_limit - CUT_LEAST:
            raise ValueError(f"argument_head must be at most argument_limit - {CUT_LEAST}")


def sizes_for(budget: Budget) -> Sizes:
    """S1's sizes, those in tokens and characters scaled down to budgets below `S1_BUDGET`."""
    usable, scaled = min(budget.usable, S1_BUDGET.usable), {}
    for name, size in asdict(Sizes()).items():
        if name not in _FIXED:
            scaled[name] = max(_LEAST.get(name, 1), size * usable // S1_BUDGET.usable)
    return Sizes(**scaled)


def shorten_arguments(groups: Sequence[Group], sizes: Sizes, counter: Counter) -> Shortened:
    """Rung 1: the older calls with long strings in their arguments, by position."""
    calls = [call for members in groups for call in members.messages[0].tool_calls]
    if not any(len(call.arguments) > sizes.argument_limit for call in calls):
        return {}
    sent = _sent(groups, counter)
    many = len(sent) >= sizes.arguments_from_messages
    if not many and sum(piece.message.tokens for piece in sent) < sizes.arguments_from_tokens:
        return {}
    older = sent[: max(0, len(sent) - sizes.arguments_keep_messages)]
    last = len(groups) - 1
    chosen = [piece.message for piece in older if piece.kind == "call" and piece.group < last]
    return _cut(chosen, sizes.argument_limit, sizes.argument_head, 0, counter)


def prune_results(
    groups: Sequence[Group], sizes: Sizes, counter: Counter, keep_tools: Collection[str]
) -> Shortened:
    """Rung 2: the older results, by position, but for those of the tools named in `keep_tools`.

    A result is older if no part of it lies within the newest `results_keep_tokens` tokens.
    """
    older, newer, last = [], 0, len(groups) - 1
    for piece in reversed(_sent(groups, counter, keep_tools)):
        if piece.kind == "result" and piece.group < last and newer >= sizes.results_keep_tokens:
            older.append(piece.message)
        newer += piece.message.tokens
    pruned = _cut(older, 0, sizes.result_head, sizes.result_tail, counter)
    prunable = sum(message.tokens for message in older if message.position in pruned)
    return pruned if prunable >= sizes.results_least_tokens else {}


# How groups are made to fit: what is cut, and the range of the characters that are kept of each.
# Results give way first, those of retrieval tools ("kept") after the others, then the strings in
# arguments; only then results shrink to less than is useful, and at the very end to nothing.
RESULTS = ("result", "kept")
_STEPS = (
    (("result",), 200, math.inf),
    (("kept",), 200, math.inf),
    (("call",), 20, math.inf),
    (RESULTS, 40, 200),
)
NOTHING = "[…]"
# The numbers of characters to choose from, each about a sixteenth over the one before, and by how
# many of them the search rises at once: what it tries is at most about twice what fits.
_LIMITS = tuple(20 * 17**step // 16**step for step in range(300))
_STRIDE = 12


def shorten_groups(
    groups: Sequence[Group],
    room: int,
    counter: Counter,
    keep_tools: Collection[str] = (),
) -> Shortened | None:
    """What makes the groups (those of a running turn) fit into `room` tokens: the shortened
    messages by position, none if they fit as they are, None if they cannot be made to fit.

    In the order of `_STEPS`, what is longer than a common limit is cut to it, first before the
    newest call group, which stays whole as long as possible, then in it. A larger room never keeps
    less. However long the messages are, the text that is counted is a small multiple of what fits.
    """
    once = _Once(counter)
    sent = _sent(groups, once, keep_tools)
    newest = max((piece.group for piece in sent if piece.kind == "call"), default=-1)

    def fits(done: Shortened) -> bool:
        return sum(done.get(one.message.position, one.message).tokens for one in sent) <= room

    done: Shortened = {}
    for is_newest in (False, True):
        pieces = [piece for piece in sent if (piece.group == newest) == is_newest]
        for kinds, least, most in _STEPS:
            if fits(done):
                return done
            chosen = [piece.message for piece in pieces if piece.kind in kinds]
            limits = [limit for limit in _LIMITS if least <= limit < most]
            done = _fit(chosen, limits, done, fits, once)
    for is_newest in (False, True):
        if not fits(done):
            pieces = [one for one in sent if (one.group == newest) == is_newest]
            done |= _emptied([one.message for one in pieces if one.kind in RESULTS], once)
    return done if fits(done) else None


def _emptied(results: list[Message], counter: Counter) -> Shortened:
    """The results without anything of what they said, as far as that is cheaper."""
    emptied = {}
    for old in results:
        new = replace(old, content=NOTHING)
        new = replace(new, tokens=message_tokens(new, counter))
        if old.position and new.tokens < old.tokens:  # a stub has no position
            emptied[old.position] = new
    return emptied


def _fit(
    chosen: list[Message], limits: list[int], done: Shortened, fits: _Fits, counter: Counter
) -> Shortened:
    """`done` and the chosen messages cut to the largest limit found to fit, else to the smallest.
    Which limits are tried depends on what fits alone: a larger room never ends at a smaller one."""

    def at(limit: int) -> Shortened:
        return done | _cut(chosen, limit, limit - limit // 2, limit // 2, counter)

    low, high, best = 0, len(limits), at(limits[0])
    while high - low > 1 and fits(best):
        middle = min(low + _STRIDE, (low + high) // 2)
        candidate = at(limits[middle])
        low, high, best = (middle, high, candidate) if fits(candidate) else (low, middle, best)
    return best


def apply(groups: Sequence[Group], shortened: Mapping[int, Message]) -> tuple[Group, ...]:
    """The groups with the shortened messages in the place of those at the same position."""
    return tuple(
        Group(tuple(shortened.get(message.position, message) for message in members.messages))
        for members in groups
    )


def whole_tokens(groups: Sequence[Group], shortened: Collection[int]) -> dict[int, int]:
    """What the messages at these positions cost as they stand in `groups`, in tokens."""
    return {
        message.position: message.tokens
        for members in groups
        for message in members.messages
        if message.position in shortened
    }


class _Piece(NamedTuple):  # made for every message; a dataclass takes three times as long
    """A message as it is sent, the index of its group, and what of it may be cut: a "call", a
    "result", a result that is rather "kept" (of a retrieval tool), or "" for nothing."""

    message: Message
    group: int
    kind: str


def _sent(groups: Sequence[Group], counter: Counter, keep: Collection[str] = ()) -> list[_Piece]:
    """The messages that a request holds, in order. A result's tool is known by its call."""
    sent = []
    for index, members in enumerate(groups):
        calls = members.messages[0].tool_calls
        if not calls and not members.is_orphan:
            sent.append(_Piece(members.messages[0], index, ""))
            continue
        kinds = ["call" if calls else ""]
        kinds += ["kept" if call.name in keep else "result" for call in calls]
        # Of an orphan nothing is sent; a stub, which has no position, is too short to be cut.
        for kind, (message, _) in zip(kinds, sendable(members, counter), strict=False):
            sent.append(_Piece(message, index, kind))
    return sent


def _cut(chosen: list[Message], limit: int, head: int, tail: int, counter: Counter) -> Shortened:
    """Those of the messages that get cheaper, by position: results cut to `head` and `tail`, calls
    with the strings over `limit` in their arguments cut to that."""
    shorter = {}
    for message in chosen:
        content, calls = message.content, message.tool_calls
        if calls:
            cut = [cut_strings(call.arguments, limit, head, tail) for call in calls]
            pairs = zip(calls, cut, strict=True)
            calls = tuple(replace(call, arguments=arguments) for call, arguments in pairs)
        elif not is_blank(content):
            content = cut_middle(content, head, tail)
        if (content, calls) != (message.content, message.tool_calls):
            changed = replace(message, content=content, tool_calls=calls)
            tokens = message_tokens(changed, counter)
            if tokens < message.tokens:
                shorter[message.position] = replace(changed, tokens=tokens)
    return shorter


class _Once:
    """A counter that counts no text twice: what all candidates have in common may be long."""

    def __init__(self, counter: Counter) -> None:
        self.name, self.estimated = counter.name, counter.estimated
        self.count = cache(counter.count)
