"""Policies: a frozen, validated set of parameters that say when to compact, what to keep, and how.

One engine, parameters instead of classes. `PRESETS` names the sets; S0 is the source of the
message counts and their limits.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

Older = Literal["keep", "leave-out", "summary"]
When = Literal["before_request", "after_reply"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The memory policy of a conversation.

    - `max_messages`: trigger, more messages than that; None: never by count.
    - `trigger_share`: trigger, more than this share of the usable tokens; None: never by tokens.
    - `target_share`: once too many tokens made it compact, the largest share of the usable tokens
      that the window keeps, so that the next trigger is not one message away.
    - `keep_messages`: how many messages before the current turn stay verbatim (an upper bound: the
      token budget wins). Where the rest is left out it is the same number as `max_messages`.
    - `older`: what becomes of the rest.
    - `summary_cap`: the longest summary, in tokens (S0: 500).
    - `when`: whether compaction comes before the request or after the reply.

    Raises ValueError that names the parameter and the rule.
    """

    preset: str
    older: Older
    max_messages: int | None = None
    keep_messages: int | None = None
    trigger_share: float | None = None
    target_share: float = 0.5
    summary_cap: int = 500
    when: When = "before_request"

    def __post_init__(self) -> None:
        _check_choice("older", self.older, ("keep", "leave-out", "summary"))
        _check_choice("when", self.when, ("before_request", "after_reply"))
        if self.max_messages is not None:
            least = {"window": 2, "summary": 4}.get(self.preset, 3)
            _check_at_least("max_messages", self.max_messages, least)
        if self.keep_messages is not None:
            _check_at_least("keep_messages", self.keep_messages, 2)
            if self.older == "summary" and self.max_messages is not None:
                _check(
                    self.keep_messages < self.max_messages,
                    f"keep_messages ({self.keep_messages}) must be smaller than max_messages "
                    f"({self.max_messages}), or nothing would ever be folded",
                )
        if self.older == "leave-out":
            _check(
                self.keep_messages == self.max_messages,
                f"keep_messages ({self.keep_messages}) must equal max_messages "
                f"({self.max_messages}) where older messages are left out",
            )
        if self.trigger_share is not None:
            _check(
                _is_number(self.trigger_share) and 0 < self.trigger_share <= 1,
                "trigger_share must be a number over 0 and at most 1",
            )
        most = 1 if self.trigger_share is None else self.trigger_share
        _check(
            _is_number(self.target_share) and 0 < self.target_share < most,
            f"target_share must be a number over 0 and below trigger_share ({most})",
        )
        _check_at_least("summary_cap", self.summary_cap, 50)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data; `policy_from` reads it back."""
        return asdict(self)


def _check(ok: bool, rule: str) -> None:
    if not ok:
        raise ValueError(rule)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_at_least(name: str, value: int, least: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    _check(whole and value >= least, f"{name} must be a whole number of at least {least}")


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _check(value in choices, f"{name} must be one of {', '.join(choices)}")


PRESETS: Mapping[str, Policy] = {
    "full": Policy("full", "keep"),
    "window": Policy("window", "leave-out", max_messages=10, keep_messages=10),
    "hybrid": Policy(
        "hybrid", "summary", max_messages=12, keep_messages=6, trigger_share=0.75, target_share=0.5
    ),
}


def policy_from(data: Mapping[str, Any]) -> Policy:
    """The policy that `data` names (`preset`) with the parameters it changes.

    `window` has one number: giving one of `max_messages` and `keep_messages` sets both. Raises
    ValueError for an unknown preset, an unknown parameter or a value against its rule.
    """
    name = data.get("preset", "hybrid")
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}")
    changes = {key: value for key, value in data.items() if key != "preset"}
    unknown = changes.keys() - Policy.__dataclass_fields__.keys()
    if unknown:
        raise ValueError(f"unknown policy parameter: {', '.join(sorted(unknown))}")
    if name == "window":
        for given, other in (("max_messages", "keep_messages"), ("keep_messages", "max_messages")):
            if given in changes:
                changes.setdefault(other, changes[given])
    return replace(PRESETS[name], **changes)
