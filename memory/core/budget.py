"""The token budget of one request."""

import math
from dataclasses import dataclass

# The smallest window in which a system prompt, one question and an answer have any room, in tokens.
MIN_WINDOW = 64
MAX_RESERVE = 1_024


@dataclass(frozen=True, slots=True)
class Budget:
    """What one request may cost: `usable = window - reply_reserve`.

    `window` and `reply_reserve` are in the model's own tokens, `counted` and `usable` in those that
    are counted here, of which each is up to `calibration` of the model's. `known` is whether
    somebody said how large the window is; else it is an assumption.

    Raises ValueError, naming the parameter and the rule, for values that leave no room.
    """

    window: int
    reply_reserve: int
    known: bool = True
    calibration: float = 1.0

    def __post_init__(self) -> None:
        if self.window < MIN_WINDOW:
            raise ValueError(f"window must be at least {MIN_WINDOW} tokens, not {self.window}")
        if not 1 <= self.reply_reserve < self.window:
            raise ValueError(
                f"reply_reserve must be from 1 to window - 1 ({self.window - 1}) tokens, "
                f"not {self.reply_reserve}"
            )
        if not self.calibration >= 1:
            raise ValueError(f"calibration must be at least 1, not {self.calibration}")

    @property
    def counted(self) -> int:
        """The whole window, in tokens as they are counted here."""
        return math.floor(self.window / self.calibration)

    @property
    def usable(self) -> int:
        """Tokens that the request itself may take, as they are counted here."""
        return math.floor((self.window - self.reply_reserve) / self.calibration)


def budget_for(window: int, reply_reserve: int | None = None, *, known: bool = True) -> Budget:
    """The budget of a window; the reserve is min(1,024, window / 4) where none is given."""
    if reply_reserve is None:
        reply_reserve = max(1, min(MAX_RESERVE, window // 4))
    return Budget(window, reply_reserve, known)
