"""The token budget of one request."""

from dataclasses import dataclass

# The smallest window in which a system prompt, one question and an answer have any room, in tokens.
MIN_WINDOW = 64
MAX_RESERVE = 1_024


@dataclass(frozen=True, slots=True)
class Budget:
    """What one request may cost, in tokens: `usable = window - reply_reserve`.

    `known` is whether somebody said how large the window is; else it is an assumption.

    Raises ValueError, naming the parameter and the rule, for values that leave no room.
    """

    window: int
    reply_reserve: int
    known: bool = True

    def __post_init__(self) -> None:
        if self.window < MIN_WINDOW:
            raise ValueError(f"window must be at least {MIN_WINDOW} tokens, not {self.window}")
        if not 1 <= self.reply_reserve < self.window:
            raise ValueError(
                f"reply_reserve must be from 1 to window - 1 ({self.window - 1}) tokens, "
                f"not {self.reply_reserve}"
            )

    @property
    def usable(self) -> int:
        """Tokens that the request itself may take."""
        return self.window - self.reply_reserve


def budget_for(window: int, reply_reserve: int | None = None, *, known: bool = True) -> Budget:
    """The budget of a window; the reserve is min(1,024, window / 4) where none is given."""
    if reply_reserve is None:
        reply_reserve = max(1, min(MAX_RESERVE, window // 4))
    return Budget(window, reply_reserve, known)
