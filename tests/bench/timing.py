"""Taking times in turns, and how they are printed. All figures are milliseconds."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

Key = TypeVar("Key")

# Rounds of every measurement, unless it reaches the most seconds first.
ROUNDS, LEAST_ROUNDS, MOST_SECONDS = 40, 5, 12.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the 95th percentile and the largest of some values."""

    median: float
    high: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        high = statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]
        return cls(statistics.median(values), min(high, max(values)), max(values))

    def __str__(self) -> str:
        return f"{self.median:8.2f} ({self.high:8.2f})"


def timed(actions: Mapping[Key, Callable[[int], Any]]) -> dict[Key, Spread]:
    """How long each action takes, called with the number of the round.

    One call of each after the other, so that noise of the machine meets all alike.
    """
    for action in actions.values():
        action(-1)
    times: dict[Key, list[float]] = {key: [] for key in actions}
    end = time.monotonic() + MOST_SECONDS
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.monotonic() > end:
            break
        for key, action in actions.items():
            started = time.perf_counter()
            action(number)
            times[key].append((time.perf_counter() - started) * 1_000)
    return {key: Spread.of(taken) for key, taken in times.items()}
