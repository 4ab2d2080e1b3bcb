"""The presets: the numbers of their sources, and what a user may set of each."""

from typing import Any

import pytest

from memory.core.policy import Policy
from memory.core.presets import DEFAULT, PARAMETERS, PRESETS, policy_from

# Beside what is off or as it is by default.
NUMBERS: dict[str, dict[str, Any]] = {
    "full": {"older": "keep"},
    "window": {"older": "leave-out", "max_messages": 10, "keep_messages": 10},
    "double-window": {
        "older": "leave-out",
        "max_messages": 50,
        "keep_messages": 50,
        "counting": "all",
        "trigger_tokens": 8_000,
    },
    "summary": {"older": "summary", "max_messages": 10, "keep_messages": 4},
    "hybrid": {
        "older": "summary",
        "max_messages": 12,
        "keep_messages": 6,
        "trigger_share": 0.75,
        "target_share": 0.5,
    },
    "hybrid-tokens": {
        "older": "summary",
        "trigger_share": 0.7,
        "keep_share": 0.35,
        "keep_turns": 2,
        "rungs": True,
    },
    "rounds": {"older": "summary", "max_turns": 5, "fold_turns": 2},
    "consolidator": {
        "older": "summary",
        "trigger_share": 0.5,
        "target_share": 0.3,  # 60 % of the trigger
        "base": "window",
        "keep_turns": 5,
        "summary_ratio": 0.3,
        "summary_cap": 1_500,
        "unknown_tokens": 160_000,
    },
    "harness": {
        "older": "summary",
        "max_messages": 50,
        "counting": "all",
        "reserved": 20_000,
        "reached": True,
        "keep_share": 0.25,
        "keep_least": 2_000,
        "keep_most": 8_000,
        "rungs": True,
        "summary_cap": 1_500,
        "template": "task",
        "offload": True,
        "unknown_tokens": 160_000,
        "unknown_messages": 20,
    },
    "layered": {
        "older": "summary",
        "trigger_share": 0.7,
        "keep_share": 0.35,
        "keep_turns": 2,
        "rungs": True,
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_has_the_numbers_of_its_source(preset: str) -> None:
    assert PRESETS[preset] == Policy(preset, **NUMBERS[preset])


def test_a_summary_has_at_most_500_tokens_where_no_source_says_more() -> None:
    assert {
        preset: one.summary_cap for preset, one in PRESETS.items() if one.summary_cap != 500
    } == {
        "consolidator": 1_500,
        "harness": 1_500,
    }


def test_no_preset_named_gives_hybrid() -> None:
    assert policy_from({}) == PRESETS["hybrid"]
    assert DEFAULT == "hybrid"


def test_every_preset_says_what_its_user_can_set() -> None:
    assert PARAMETERS.keys() == PRESETS.keys()
    for preset, names in PARAMETERS.items():
        assert set(names) <= PRESETS[preset].to_dict().keys() - {"preset", "older"}


def test_only_what_makes_summaries_has_their_parameters() -> None:
    for preset, names in PARAMETERS.items():
        assert ("summary_cap" in names) == (PRESETS[preset].older == "summary")


@pytest.mark.parametrize("preset", PRESETS)
def test_what_a_user_can_set_may_be_set_to_what_it_is(preset: str) -> None:
    policy = PRESETS[preset]
    same = {name: getattr(policy, name) for name in PARAMETERS[preset]}
    assert policy_from({"preset": preset, **same}) == policy


@pytest.mark.parametrize("parameter", ["max_messages", "keep_messages"])
@pytest.mark.parametrize("preset", ["window", "double-window"])
def test_a_window_of_messages_has_one_number(preset: str, parameter: str) -> None:
    policy = policy_from({"preset": preset, parameter: 4})
    assert (policy.max_messages, policy.keep_messages) == (4, 4)


@pytest.mark.parametrize(
    ("preset", "share", "target"),
    [
        ("hybrid", 0.9, 0.5),
        ("hybrid", 0.51, 0.5),
        ("hybrid", 0.5, 1 / 3),
        ("hybrid", 0.3, 0.2),
        ("consolidator", 0.4, 0.3),
        ("consolidator", 0.25, 0.15),
        ("hybrid-tokens", 0.2, None),
    ],
)
def test_a_target_moves_below_a_lower_trigger_in_proportion(
    preset: str, share: float, target: float | None
) -> None:
    policy = policy_from({"preset": preset, "trigger_share": share})
    assert policy.trigger_share == share
    assert policy.target_share == pytest.approx(target)


def test_a_target_that_is_given_stays_as_given() -> None:
    policy = policy_from({"trigger_share": 0.4, "target_share": 0.1})
    assert (policy.trigger_share, policy.target_share) == (0.4, 0.1)


def test_a_wrong_trigger_is_refused_not_moved() -> None:
    rule = "^trigger_share must be a number over 0 and at most 1$"
    for wrong in (0, -1, "0.2", True):
        with pytest.raises(ValueError, match=rule):
            policy_from({"trigger_share": wrong})
