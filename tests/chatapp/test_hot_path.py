"""What a turn costs does not depend on how long the transcript is."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.bench.turns import fill, one_turn

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("policy", ["hybrid", "window"])
def test_a_turn_takes_the_same_queries_after_ten_and_after_thousand_turns(policy: str) -> None:
    taken = []
    for turns in (10, 1_000):
        conversation = fill(turns, {"preset": policy})
        with CaptureQueriesContext(connection) as queries:
            one_turn(conversation, 0)
        taken.append([query["sql"].split(" WHERE ")[0] for query in queries.captured_queries])
    assert len(taken[0]) == len(taken[1])
    assert len(taken[1]) < 40


def test_no_more_rows_are_read_than_the_policy_can_keep(django_assert_num_queries: Any) -> None:
    from memory import reading
    from memory.core.presets import policy_from
    from memory.encodings import counter_for

    policy = policy_from({"preset": "window", "max_messages": 6})
    conversation = fill(500, {"preset": "window", "max_messages": 6})
    with django_assert_num_queries(3):
        loaded = reading.load(conversation=conversation, policy=policy, counter=counter_for("demo"))
    assert len(loaded.prior) == 7
