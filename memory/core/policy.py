"""Policies: a frozen, validated set of parameters that say when to compact, what to keep, and how.

One engine, parameters instead of classes. `memory.core.presets` names the sets that the sources
describe (S0..S4); `memory.core.limits` turns a policy and a budget into plain numbers of tokens.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Older = Literal["keep", "leave-out", "summary"]
When = Literal["before_request", "after_reply"]
Counting = Literal["exchange", "all"]
Base = Literal["usable", "window"]
Template = Literal["dialogue", "service", "task"]

TEMPLATES: tuple[Template, ...] = ("dialogue", "service", "task")
LEAST_CAP = 50


@dataclass(frozen=True, slots=True)
class Policy:
    """The memory policy of a conversation. None switches a rule off.

    Triggers, any of which compacts:
    - `max_messages`: more messages than that, the summary and the current message included.
    - `counting`: which messages count: "exchange" (user messages and final replies) or "all".
    - `max_turns`: more turns than that, the current one included (S3).
    - `every_turns`: so many turns since the last compaction (S4).
    - `trigger_share`: more than this share of the usable tokens or of the window (`base`).
    - `trigger_tokens`: more tokens than that.
    - `reserved`: more tokens than the window less this many, at least half the window (S1).
    - `reached`: whether a limit compacts when it is reached already (S1), not only when exceeded.

    What stays verbatim, all upper bounds (the token budget wins):
    - `keep_messages`: newest messages before the current turn.
    - `target_share`: once too many tokens made it compact, the share of the base that the whole
      window keeps, so that the next trigger is not one message away.
    - `keep_share`, `keep_least`, `keep_most`: the newest messages up to this share of the usable
      tokens (with `reserved`: of the window less it), but at least and at most so many tokens, and
      never more than half the trigger.
    - `keep_turns`: at least so many turns, where they fit under the trigger.
    - `fold_turns`: fold only so many of the oldest turns (S3).

    What becomes of the rest:
    - `older`: everything is kept, or older messages are left out, or become a summary.
    - `rungs`: shorten old arguments and results before any summary is made (S1).
    - `summary_cap`: the longest summary, in tokens (S0: 500, S1: 1,500).
    - `summary_ratio`: the longest summary as a share of what it was made of (S2: 0.3).
    - `template`: what the summary looks for: a dialogue, a service case or a task.
    - `offload`: keep the raw messages of each compaction in a file that the summary names (S1).
    - `unknown_tokens`: the trigger (or the base) where the model's window is not known, in tokens,
      and `unknown_messages`: how many messages stay then.
    - `when`: whether compaction comes before the request or after the reply.

    Raises ValueError that names the parameter and the rule.
    """

    preset: str
    older: Older
    max_messages: int | None = None
    counting: Counting = "exchange"
    max_turns: int | None = None
    every_turns: int | None = None
    trigger_share: float | None = None
    base: Base = "usable"
    trigger_tokens: int | None = None
    reserved: int | None = None
    reached: bool = False
    keep_messages: int | None = None
    target_share: float | None = None
    keep_share: float | None = None
    keep_least: int | None = None
    keep_most: int | None = None
    keep_turns: int = 0
    fold_turns: int | None = None
    rungs: bool = False
    summary_cap: int = 500
    summary_ratio: float | None = None
    template: Template = "dialogue"
    offload: bool = False
    unknown_tokens: int | None = None
    unknown_messages: int | None = None
    when: When = "before_request"

    def __post_init__(self) -> None:
        _check_choice("older", self.older, ("keep", "leave-out", "summary"))
        _check_choice("when", self.when, ("before_request", "after_reply"))
        _check_choice("counting", self.counting, ("exchange", "all"))
        _check_choice("base", self.base, ("usable", "window"))
        _check_choice("template", self.template, TEMPLATES)
        for name in ("reached", "rungs", "offload"):
            _check(isinstance(getattr(self, name), bool), f"{name} must be true or false")
        self._check_messages()
        self._check_tokens()

    def _check_messages(self) -> None:
        least = {"window": 2, "double-window": 2, "summary": 4}.get(self.preset, 3)
        _check_at_least("max_messages", self.max_messages, least)
        for name, least in (("keep_messages", 2), ("max_turns", 2), ("every_turns", 1)):
            _check_at_least(name, getattr(self, name), least)
        _check_at_least("unknown_messages", self.unknown_messages, 2)
        _check_at_least("fold_turns", self.fold_turns, 1)
        _check_at_least("keep_turns", self.keep_turns, 0)
        if self.fold_turns is not None and self.max_turns is not None:
            _check(
                self.fold_turns < self.max_turns,
                f"fold_turns ({self.fold_turns}) must be smaller than max_turns "
                f"({self.max_turns}), or the current turn would be folded",
            )
        both = self.keep_messages is not None and self.max_messages is not None
        if both and self.older == "summary":
            _check(
                self.keep_messages < self.max_messages,  # type: ignore[operator]
                f"keep_messages ({self.keep_messages}) must be smaller than max_messages "
                f"({self.max_messages}), or nothing would ever be folded",
            )
        if self.older == "leave-out":
            _check(
                self.keep_messages == self.max_messages,
                f"keep_messages ({self.keep_messages}) must equal max_messages "
                f"({self.max_messages}) where older messages are left out",
            )

    def _check_tokens(self) -> None:
        for name in ("trigger_share", "keep_share", "summary_ratio"):
            _check_share(name, getattr(self, name))
        most = 1 if self.trigger_share is None else self.trigger_share
        if self.target_share is not None:
            _check(
                _is_number(self.target_share) and 0 < self.target_share < most,
                f"target_share must be a number over 0 and below trigger_share ({most})",
            )
        for name in ("trigger_tokens", "unknown_tokens"):
            _check_at_least(name, getattr(self, name), 100)
        for name in ("reserved", "keep_least", "keep_most"):
            _check_at_least(name, getattr(self, name), 0)
        if self.keep_least is not None and self.keep_most is not None:
            _check(
                self.keep_least <= self.keep_most,
                f"keep_least ({self.keep_least}) must be at most keep_most ({self.keep_most})",
            )
        _check(self.summary_cap is not None, "summary_cap must be given")
        _check_at_least("summary_cap", self.summary_cap, LEAST_CAP)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data; `policy_from` reads it back."""
        return asdict(self)


def _check(ok: bool, rule: str) -> None:
    if not ok:
        raise ValueError(rule)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_at_least(name: str, value: object, least: int) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
    _check(whole, f"{name} must be a whole number of at least {least}")


def _check_share(name: str, value: object) -> None:
    if value is not None:
        ok = _is_number(value) and 0 < value <= 1  # type: ignore[operator]
        _check(ok, f"{name} must be a number over 0 and at most 1")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _check(value in choices, f"{name} must be one of {', '.join(choices)}")
