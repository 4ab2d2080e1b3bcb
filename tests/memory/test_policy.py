"""Policies: presets, their rules, and messages that name the parameter and the rule."""

import json
from typing import Any

import pytest

from memory.core.policy import PRESETS, Policy, policy_from


def test_the_presets_have_the_numbers_of_their_source() -> None:
    full, window, hybrid = PRESETS["full"], PRESETS["window"], PRESETS["hybrid"]
    assert (full.older, full.max_messages, full.trigger_share) == ("keep", None, None)
    assert (window.older, window.max_messages, window.keep_messages) == ("leave-out", 10, 10)
    assert (hybrid.older, hybrid.max_messages, hybrid.keep_messages) == ("summary", 12, 6)
    assert (hybrid.trigger_share, hybrid.summary_cap) == (0.75, 500)


def test_no_preset_named_gives_hybrid() -> None:
    assert policy_from({}) == PRESETS["hybrid"]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_policy_survives_being_stored(preset: str) -> None:
    policy = PRESETS[preset]
    assert policy_from(json.loads(json.dumps(policy.to_dict()))) == policy


def test_parameters_change_a_preset() -> None:
    policy = policy_from({"preset": "hybrid", "max_messages": 10, "when": "after_reply"})
    assert (policy.max_messages, policy.keep_messages, policy.when) == (10, 6, "after_reply")


@pytest.mark.parametrize("parameter", ["max_messages", "keep_messages"])
def test_a_window_has_one_number(parameter: str) -> None:
    policy = policy_from({"preset": "window", parameter: 4})
    assert (policy.max_messages, policy.keep_messages) == (4, 4)


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
        ({"preset": "rolling"}, "preset must be one of full, window, hybrid, not 'rolling'"),
        ({"preset": []}, "preset must be one of full, window, hybrid, not []"),
        ({"keep": 3}, "unknown policy parameter: keep"),
        ({"b": 1, "a": 2}, "unknown policy parameter: a, b"),
        ({"older": "forget"}, "older must be one of keep, leave-out, summary"),
        ({"when": "later"}, "when must be one of before_request, after_reply"),
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
        (
            {"trigger_share": None, "target_share": None},
            "target_share must be a number over 0 and below trigger_share (1)",
        ),
    ],
)
def test_a_wrong_value_is_refused_by_its_name_and_rule(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  (the whole message is compared)
        policy_from(data)
    assert str(raised.value) == message


def test_the_summary_preset_to_come_has_the_threshold_of_its_source() -> None:
    assert Policy("summary", "summary", max_messages=4, keep_messages=3).max_messages == 4
    with pytest.raises(ValueError, match=r"^max_messages must be a whole number of at least 4$"):
        Policy("summary", "summary", max_messages=3, keep_messages=2)
