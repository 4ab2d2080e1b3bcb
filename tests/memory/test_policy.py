"""Policies: presets, their rules, and messages that name the parameter and the rule."""

import json
from typing import Any

import pytest
from hypothesis import given

from memory.core.policy import Policy
from memory.core.presets import PRESETS, policy_from
from tests.memory.strategies import policies


@pytest.mark.parametrize("preset", PRESETS)
def test_a_policy_survives_being_stored(preset: str) -> None:
    policy = PRESETS[preset]
    assert policy_from(json.loads(json.dumps(policy.to_dict()))) == policy


def test_parameters_change_a_preset() -> None:
    policy = policy_from({"preset": "hybrid", "max_messages": 10, "when": "after_reply"})
    assert (policy.max_messages, policy.keep_messages, policy.when) == (10, 6, "after_reply")


@pytest.mark.parametrize(
    ("data", "least"),
    [
        ({"preset": "window", "max_messages": 2}, 2),
        ({"preset": "hybrid", "max_messages": 3, "keep_messages": 2}, 3),
        ({"preset": "hybrid", "summary_cap": 50}, None),
        ({"preset": "hybrid", "trigger_share": 1, "target_share": 0.99}, None),
    ],
)
def test_the_least_values_are_allowed(data: dict[str, Any], least: int | None) -> None:
    policy = policy_from(data)
    assert least is None or policy.max_messages == least


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"preset": "rolling"}, f"preset must be one of {', '.join(PRESETS)}, not 'rolling'"),
        ({"preset": []}, f"preset must be one of {', '.join(PRESETS)}, not []"),
        ({"keep": 3}, "unknown policy parameter: keep"),
        ({"b": 1, "a": 2}, "unknown policy parameter: a, b"),
        ({"older": "forget"}, "older must be one of keep, leave-out, summary"),
        ({"when": "later"}, "when must be one of before_request, after_reply"),
        ({"counting": "words"}, "counting must be one of exchange, all"),
        ({"base": "model"}, "base must be one of usable, window"),
        ({"template": "poem"}, "template must be one of dialogue, service, task"),
        ({"reached": 1}, "reached must be true or false"),
        ({"rungs": "yes"}, "rungs must be true or false"),
        ({"offload": None}, "offload must be true or false"),
        ({"max_turns": 1}, "max_turns must be a whole number of at least 2"),
        ({"every_turns": 0}, "every_turns must be a whole number of at least 1"),
        ({"fold_turns": 0}, "fold_turns must be a whole number of at least 1"),
        ({"keep_turns": -1}, "keep_turns must be a whole number of at least 0"),
        ({"unknown_messages": 1}, "unknown_messages must be a whole number of at least 2"),
        ({"trigger_tokens": 99}, "trigger_tokens must be a whole number of at least 100"),
        ({"unknown_tokens": 99}, "unknown_tokens must be a whole number of at least 100"),
        ({"reserved": -1}, "reserved must be a whole number of at least 0"),
        ({"keep_least": 1.5}, "keep_least must be a whole number of at least 0"),
        ({"keep_most": -1}, "keep_most must be a whole number of at least 0"),
        (
            {"preset": "harness", "keep_most": 1_999},
            "keep_least (2000) must be at most keep_most (1999)",
        ),
        (
            {"preset": "rounds", "max_turns": 2},
            "fold_turns (2) must be smaller than max_turns (2), or the current turn would be "
            "folded",
        ),
        ({"keep_share": 0}, "keep_share must be a number over 0 and at most 1"),
        ({"summary_ratio": 1.1}, "summary_ratio must be a number over 0 and at most 1"),
        ({"summary_cap": None}, "summary_cap must be given"),
        (
            {"preset": "window", "max_messages": 1},
            "max_messages must be a whole number of at least 2",
        ),
        (
            {"max_messages": 2, "keep_messages": 2},
            "max_messages must be a whole number of at least 3",
        ),
        ({"max_messages": "12"}, "max_messages must be a whole number of at least 3"),
        ({"max_messages": True}, "max_messages must be a whole number of at least 3"),
        ({"keep_messages": 1}, "keep_messages must be a whole number of at least 2"),
        (
            {"keep_messages": 12},
            "keep_messages (12) must be smaller than max_messages (12), or nothing would ever be "
            "folded",
        ),
        (
            {"preset": "window", "max_messages": 10, "keep_messages": 4},
            "keep_messages (4) must equal max_messages (10) where older messages are left out",
        ),
        ({"summary_cap": 49}, "summary_cap must be a whole number of at least 50"),
        ({"summary_cap": 99.5}, "summary_cap must be a whole number of at least 50"),
        ({"trigger_share": 0}, "trigger_share must be a number over 0 and at most 1"),
        ({"trigger_share": 1.01}, "trigger_share must be a number over 0 and at most 1"),
        ({"trigger_share": float("nan")}, "trigger_share must be a number over 0 and at most 1"),
        ({"trigger_share": "0.5"}, "trigger_share must be a number over 0 and at most 1"),
        ({"trigger_share": True}, "trigger_share must be a number over 0 and at most 1"),
        (
            {"target_share": 0.75},
            "target_share must be a number over 0 and below trigger_share (0.75)",
        ),
        (
            {"target_share": 0},
            "target_share must be a number over 0 and below trigger_share (0.75)",
        ),
        (
            {"trigger_share": None, "target_share": 1},
            "target_share must be a number over 0 and below trigger_share (1)",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_its_name_and_rule(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (the whole message is compared)
        policy_from(data)
    assert str(raised.value) == message


@pytest.mark.parametrize(("preset", "least"), [("window", 2), ("double-window", 2), ("summary", 4)])
def test_some_presets_have_a_least_number_of_messages_of_their_own(preset: str, least: int) -> None:
    data = {"preset": preset, "max_messages": least}
    if preset == "summary":
        data["keep_messages"] = 2
    assert policy_from(data).max_messages == least
    data |= {"max_messages": least - 1, "keep_messages": least - 1}
    rule = f"^max_messages must be a whole number of at least {least}$"
    with pytest.raises(ValueError, match=rule):
        policy_from(data)


def test_what_is_switched_off_is_not_checked() -> None:
    off = Policy("own", "summary", keep_messages=5, fold_turns=3)
    assert (off.max_messages, off.max_turns, off.summary_ratio) == (None, None, None)
    assert Policy("own", "keep", keep_messages=5, max_messages=5).older == "keep"


@given(policies())
def test_any_policy_survives_being_stored(policy: Policy) -> None:
    assert policy_from(json.loads(json.dumps(policy.to_dict()))) == policy
