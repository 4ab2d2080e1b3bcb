"""How the provider's own counts correct the estimate: one factor over the tokens of a request.

No vocabulary that is at hand is the right one for every model. A model with a small one may need
twice the tokens for Chinese; then limits that are held in our counts would be passed in its own.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

# A request counts from this share of the usable tokens on: in a small one the words that a chat
# template adds weigh more than the vocabulary, and no limit is near.
LEAST_SHARE = 0.125
# The factor goes up in steps of a twentieth, so that it does not change with every request.
STEPS = 20
# What lies above is no count of this request.
MOST = 10
# What a request that was refused is taken to be, in usable windows, where the provider gives no
# number: the factor then rises by a quarter with each try.
REFUSED = 1.25


@dataclass(frozen=True, slots=True)
class Measured:
    """One request, in tokens: as it was counted here, and by the provider, which perhaps refused
    it as too long."""

    counted: int
    reported: int
    refused: bool = False


def calibration(measured: Iterable[Measured], usable: int) -> float:
    """The factor from our counts to the provider's, from 1 to 10, in twentieths, rounded up.

    It is the highest of the requests that were refused or hold at least an eighth of the `usable`
    tokens of the window: a count has to be an upper bound, so it never lowers one.
    """
    ratios = [
        -(-one.reported * STEPS // one.counted)
        for one in measured
        if one.counted and (one.refused or one.counted >= usable * LEAST_SHARE)
    ]
    return max([STEPS, *(ratio for ratio in ratios if ratio <= MOST * STEPS)]) / STEPS


def refused_tokens(told: int | None, usable: int, counted: int, factor: float) -> int | None:
    """What a request of `counted` tokens comes to in the provider's, which refused it as too long
    although it was held to fit into the `usable` ones of its window with `factor`.

    `told` is the number that the refusal names; without one it is guessed. None where the counts
    cannot be the reason: it would have fitted by the provider's own count, or would have to be
    more than ten times what was counted.
    """
    if told is not None and told <= usable:
        return None
    tokens = told or math.ceil(max(usable, counted * factor) * REFUSED)
    return tokens if tokens <= MOST * counted else None
