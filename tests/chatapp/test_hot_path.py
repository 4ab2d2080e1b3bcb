"""What a turn costs does not depend on how long the transcript is."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.tools.running import CALLS_MOST
from memory import store
from memory.models import TurnState
from tests.bench.turns import fill, one_turn
from tests.chatapp.steps import COUNTER, asked, called, result

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


def test_a_step_takes_the_same_queries_with_few_and_with_many_results(
    make_conversation: Any,
) -> None:
    conversation = make_conversation()
    taken = []
    for count in (3, CALLS_MOST):
        calls = called(*[("look", "{}")] * count)
        turn = asked(conversation, calls)
        results = [result("It is there.", at) for at in range(count)]
        with CaptureQueriesContext(connection) as queries:
            store.add_step(turn_id=turn.pk, step=2, written=results, encoding=COUNTER.name)
        store.finish_turn(
            turn_id=turn.pk, state=TurnState.COMPLETE, reply=None, encoding=COUNTER.name
        )
        taken.append(len(queries))
        rows = list(turn.messages.order_by("position"))
        assert [row.tool_call_id for row in rows[2:]] == [f"c{at}" for at in range(count)]
        assert [row.position for row in rows] == list(
            range(rows[0].position, rows[-1].position + 1)
        )
    assert taken[0] == taken[1]
