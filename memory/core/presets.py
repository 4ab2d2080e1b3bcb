"""The presets: the memory systems of the sources (S0..S4) as parameters of one engine."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from memory.core.policy import Policy

DEFAULT = "hybrid"

PRESETS: Mapping[str, Policy] = {
    one.preset: one
    for one in (
        Policy("full", "keep"),
        Policy("window", "leave-out", max_messages=10, keep_messages=10),
        Policy(
            "double-window",
            "leave-out",
            max_messages=50,
            keep_messages=50,
            counting="all",
            trigger_tokens=8_000,
        ),
        Policy("summary", "summary", max_messages=10, keep_messages=4),
        Policy(
            "hybrid",
            "summary",
            max_messages=12,
            keep_messages=6,
            trigger_share=0.75,
            target_share=0.5,
        ),
        Policy(
            "hybrid-tokens",
            "summary",
            trigger_share=0.7,
            keep_share=0.35,
            keep_turns=2,
            rungs=True,
        ),
        Policy("rounds", "summary", max_turns=5, fold_turns=2),
        Policy(
            "consolidator",
            "summary",
            trigger_share=0.5,
            target_share=0.3,
            base="window",
            keep_turns=5,
            summary_ratio=0.3,
            summary_cap=1_500,
            unknown_tokens=160_000,
        ),
        Policy(
            "harness",
            "summary",
            max_messages=50,
            counting="all",
            reserved=20_000,
            reached=True,
            keep_share=0.25,
            keep_least=2_000,
            keep_most=8_000,
            rungs=True,
            summary_cap=1_500,
            template="task",
            offload=True,
            unknown_tokens=160_000,
            unknown_messages=20,
        ),
        Policy(
            "layered",
            "summary",
            trigger_share=0.7,
            keep_share=0.35,
            keep_turns=2,
            rungs=True,
        ),
    )
}

# The parameters of each preset that its user can set; the others are what the preset is.
_SUMMARY = ("summary_cap", "template", "every_turns", "when")
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "full": (),
    "window": ("max_messages",),
    "double-window": ("max_messages", "trigger_tokens"),
    "summary": ("max_messages", "keep_messages", *_SUMMARY),
    "hybrid": ("max_messages", "keep_messages", "trigger_share", *_SUMMARY),
    "hybrid-tokens": ("trigger_share", "keep_share", "keep_turns", "rungs", *_SUMMARY),
    "rounds": ("max_turns", "fold_turns", *_SUMMARY),
    "consolidator": ("trigger_share", "keep_turns", "summary_ratio", *_SUMMARY),
    "harness": ("max_messages", "keep_least", "keep_most", "rungs", "offload", *_SUMMARY),
    "layered": ("trigger_share", "keep_share", "keep_turns", "rungs", *_SUMMARY),
}


def policy_from(data: Mapping[str, Any]) -> Policy:
    """The policy that `data` names (`preset`) with the parameters it changes.

    The windows have one number: giving one of `max_messages` and `keep_messages` sets both. A
    target above a lower trigger moves below it in the same proportion. Raises ValueError for an
    unknown preset, an unknown parameter or a value against its rule.
    """
    name = data.get("preset", DEFAULT)
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, not {name!r}")
    preset = PRESETS[name]
    changes = {key: value for key, value in data.items() if key != "preset"}
    unknown = changes.keys() - Policy.__dataclass_fields__.keys()
    if unknown:
        raise ValueError(f"unknown policy parameter: {', '.join(sorted(unknown))}")
    if preset.older == "leave-out":
        for given, other in (("max_messages", "keep_messages"), ("keep_messages", "max_messages")):
            if given in changes:
                changes.setdefault(other, changes[given])
    share, before = changes.get("trigger_share"), preset.trigger_share
    target = preset.target_share
    if before and target and isinstance(share, float | int) and 0 < share <= target:
        changes.setdefault("target_share", share * target / before)
    return replace(preset, **changes)
