"""What the requests cost: the account of the Timeline tab, and its curve."""

import pytest

from chatapp import timeline
from chatapp.timeline import account, curve
from memory import service, snapshots
from memory.fork import fork
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db

# What "Be brief.", "hi" and "ok" cost, in tokens: five for a message, and its text.
SYSTEM, USER, REPLY = 5 + 3, 5 + 1, 5 + 1
ASKED = {"prompt_tokens": 70, "completion_tokens": 11}


@pytest.fixture
def talk() -> Talk:
    return Talk({"preset": "hybrid"})


def test_the_sums_are_those_of_the_stored_requests_and_summaries(talk: Talk) -> None:
    for number in range(4):
        talk.run("hi " * (number + 1))
    usages: list[dict[str, int]]
    usages = [{"prompt_tokens": 30, "completion_tokens": 4}, {}, {"prompt_tokens": 0}, ASKED]
    for (request, _), usage in zip(talk.sent, usages, strict=True):
        snapshots.record_usage(request_id=request.pk, usage=usage)
    talk.fold(1, model="m", usage=ASKED)
    talk.fold(1, kind="archive", usage={"prompt_tokens": 5}, failures=("refusal",))
    talk.undo()  # it was paid for all the same
    service.restore_summary(
        conversation_id=talk.conversation.pk, version=1, author=talk.conversation.owner
    )
    shown = account(talk.fresh())
    stored = [request.tokens for request, _ in talk.sent]
    assert [one["tokens"] for one in shown["rows"]] == stored[::-1]
    assert [one["provider"] for one in shown["rows"]] == [70, None, None, 30]
    assert [one["reply"] for one in shown["rows"]] == [11, None, None, 4]
    assert shown["sent"] == sum(stored)
    assert shown["replies"] == 15
    assert shown["summaries"] == {"count": 2, "input": 75, "output": 11}
    assert shown["actual"] == sum(stored) + 75 + 11


def test_everything_is_what_the_whole_context_since_the_reset_would_have_cost() -> None:
    talk = Talk({"preset": "window", "max_messages": 2})
    for _ in range(3):
        talk.run("hi")
    talk.reset()
    talk.run("hi")
    shown = account(talk.fresh())
    turn = USER + REPLY
    whole = [SYSTEM + USER, SYSTEM + turn + USER, SYSTEM + 2 * turn + USER, SYSTEM + USER]
    assert whole == [14, 26, 38, 14]
    assert [one["everything"] for one in shown["rows"]] == whole[::-1]
    # The third request left two messages out.
    assert [one["tokens"] for one in shown["rows"]] == [14, 26, 26, 14]
    assert (shown["sent"], shown["everything"]) == (80, 92)
    assert shown["saved"] == 13  # 12 of 92


def test_a_policy_that_sends_everything_saves_exactly_nothing() -> None:
    talk = Talk({"preset": "full"})
    talk.run("hi")
    talk.run("hi", results=("sun", "rain"))
    talk.again()
    talk.again()
    talk.reset()
    talk.run("hi", reply=None)
    talk.run("hi")
    talk.undo()
    talk.run("hi")
    shown = account(talk.fresh())
    assert [one["everything"] for one in shown["rows"]] == [one["tokens"] for one in shown["rows"]]
    assert (shown["requests"], shown["saved"]) == (8, 0)


def test_in_a_fork_the_context_starts_where_it_did_in_the_original() -> None:
    talk = Talk({"preset": "full"})
    talk.run("hi")
    talk.reset()
    talk.run("hi")
    copy = Talk({"preset": "full"})
    copy.conversation = fork(conversation_id=talk.conversation.pk, position=4, title="copy")
    copy.turns = 2
    copy.run("hi")
    (row,) = account(copy.fresh())["rows"]
    assert row["everything"] == row["tokens"] == SYSTEM + USER + REPLY + USER


def test_more_was_spent_than_everything_is_said_as_it_is() -> None:
    talk = Talk({"preset": "hybrid"})
    talk.run("hi")
    talk.run("hi")
    talk.fold(1, usage={"prompt_tokens": 30, "completion_tokens": 10})
    shown = account(talk.fresh())
    assert (shown["everything"], shown["actual"], shown["saved"]) == (40, 80, -100)


def test_the_curve_runs_from_the_first_request_to_the_last() -> None:
    assert curve([5], [5]) is None
    drawn = curve([100, 150, 260], [100, 300, 520])
    assert drawn is not None
    # The width is 1000, the height 260 for 520 tokens; zero is at the bottom.
    assert drawn["actual"] == "0.0,210.0 500.0,185.0 1000.0,130.0"
    assert drawn["everything"] == "0.0,210.0 500.0,110.0 1000.0,0.0"
    assert drawn["top"] == 520


@pytest.mark.parametrize("requests", [2, 3, 200, 201, 202, 399, 400, 401, 5_000])
def test_a_long_curve_has_no_more_points_than_can_be_seen(requests: int) -> None:
    drawn = curve(list(range(1, requests + 1)), list(range(1, requests + 1)))
    assert drawn is not None
    points = [tuple(map(float, one.split(","))) for one in drawn["actual"].split(" ")]
    assert 2 <= len(points) <= timeline.POINTS + 1
    assert points[0][0] == 0
    assert points[-1] == (timeline.WIDE, 0)
    assert points == sorted(points)
