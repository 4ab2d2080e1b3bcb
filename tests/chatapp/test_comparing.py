"""The comparison of the policies counts what the panel counts."""

from typing import Any

import pytest

from chatapp.comparing import comparison
from chatapp.timeline import account
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db


def own_row(talk: Talk) -> dict[str, Any]:
    (row,) = (row for row in comparison(talk.fresh())["rows"] if row["own"])
    return row


@pytest.mark.parametrize("tools", [[], ["shop"]])
def test_the_policy_in_force_is_replayed_with_what_its_requests_cost(tools: list[str]) -> None:
    talk = Talk({"preset": "full"}, tools=tools)
    for number in range(3):
        talk.run(f"question {number}", results=("found",) if tools else ())
    row = own_row(talk)
    window = talk.assembled().window
    assert window is not None
    assert bool(window.tools) == bool(tools)
    assert row["final"] == window.tokens
    assert row["sent"] == account(talk.fresh())["sent"]


def test_the_schemas_of_tools_count_for_a_trigger_in_tokens() -> None:
    limit = {"preset": "hybrid-tokens", "trigger_share": 0.2, "when": "before_request"}
    for tools, folds in ([], False), (["shop"], True):
        talk = Talk(limit, tools=tools, window=8_192)
        for number in range(5):
            talk.run(f"question {number}: " + "word " * 60)
        assert bool(own_row(talk)["folds"]) == folds
