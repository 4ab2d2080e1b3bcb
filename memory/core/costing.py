"""What a conversation costs in input tokens, with and without compaction (S1, section 8).

Each request sends its whole window again, so without compaction the sum grows with the square of
the turns. S1's closed form takes every window to be as small as one just after a compaction; really
windows grow from there to the trigger, as a sawtooth, which `simulate` draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

# S1 reads the folded messages twice: for the long-term memory and for the summary.
CALLS = 2


@dataclass(frozen=True, slots=True)
class Spending:
    """The input tokens of each request, and those that summarising took before each (0: none)."""

    requests: tuple[int, ...]
    summarising: tuple[int, ...]

    @property
    def total(self) -> int:
        """All input tokens."""
        return sum(self.requests) + sum(self.summarising)

    @property
    def curve(self) -> tuple[int, ...]:
        """All input tokens up to each request."""
        pairs = zip(self.requests, self.summarising, strict=True)
        return tuple(accumulate(map(sum, pairs)))


def closed_form_without(turns: int, per_turn: int, *, system: int = 0) -> int:
    """The input tokens of all turns where nothing is ever folded: c·N·(N + 1) / 2.

    Every turn adds `per_turn` tokens (question, answer, tools); `system` tokens come with each
    request, which S1 leaves out here. Raises ValueError for a negative number.
    """
    _check(turns=turns, per_turn=per_turn, system=system)
    return turns * system + per_turn * turns * (turns + 1) // 2


def closed_form_with(turns: int, window: int, *, per_turn: int = 0, calls: int = CALLS) -> int:
    """The input tokens of all turns if every window had the same size in tokens (S1): K·N.

    With `per_turn`, the tokens that a turn adds, the compactions are paid for too. S1 has one every
    trigger / per_turn turns, each of whose `calls` reads as much as the trigger: the trigger
    cancels out, since every token is folded once. Raises ValueError for a negative number.
    """
    _check(turns=turns, window=window, per_turn=per_turn, calls=calls)
    return turns * (window + calls * per_turn)


def saving(without: float, tokens: float) -> float:
    """The share of `without` that is saved where only `tokens` are spent; negative where it is
    more, 0 where there is nothing to save."""
    return 1 - tokens / without if without else 0.0


def simulate(
    turns: int,
    *,
    per_turn: int,
    trigger: int,
    keep: int,
    summary: int,
    system: int = 0,
    overhead: int = 0,
    calls: int = CALLS,
) -> Spending:
    """The requests of a conversation one by one: the sawtooth between the trigger and what stays.

    All in tokens: a window that reaches `trigger` is folded first, and then has the `system`
    prompt, a `summary` and of the messages the newest `keep`, the current turn always included.
    Each of the `calls` of a compaction reads what is folded, with the summary before, and
    `overhead` more. Raises ValueError for a negative number.
    """
    _check(turns=turns, per_turn=per_turn, trigger=trigger, keep=keep, summary=summary)
    _check(system=system, overhead=overhead, calls=calls)
    requests, summarising = [], []
    memory, tail = 0, 0
    for _ in range(turns):
        tail += per_turn
        stays, spent = min(tail, max(keep, per_turn)), 0
        if system + memory + tail >= trigger and stays < tail:
            spent = calls * (memory + tail - stays + overhead)
            memory, tail = summary, stays
        requests.append(system + memory + tail)
        summarising.append(spent)
    return Spending(tuple(requests), tuple(summarising))


def without_compaction(added: Sequence[int], *, fixed: int = 0) -> tuple[int, ...]:
    """What each request would have cost with the whole transcript in it, in tokens.

    `added` is what the transcript got since the request before: for the first its question, for a
    later one the answer and the results before it too. `fixed` is what every request has besides,
    the system prompt and the tools.
    """
    return tuple(fixed + tokens for tokens in accumulate(added))


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise ValueError(f"{name} must be at least 0, not {number}")
