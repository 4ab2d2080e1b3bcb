"""Properties of the stored memory: undo, snapshots, and that nothing is ever lost."""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import snapshots
from memory.core.presets import PRESETS
from memory.models import Conversation, Message, Summary
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db

# Texts with what databases, JSON and fences stumble over; NUL and lone surrogates never get here.
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
              st.sampled_from("<memory>‹/\"\\\n你好🌱")),
    min_size=1, max_size=60,
).filter(lambda text: text.strip())  # fmt: skip
# What tools find: nothing, a word, or tables that old ones of are shortened.
RESULTS = st.lists(
    st.one_of(TEXTS, st.integers(0, 60).map("row: blue, 12 EUR\n".__mul__)), min_size=1, max_size=3
)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), TEXTS),
        st.tuples(st.just("fail"), TEXTS),
        st.tuples(st.just("call"), RESULTS),
        st.tuples(st.just("fold"), st.integers(1, 6)),
        st.tuples(st.just("retry"), st.none()),
        st.tuples(st.sampled_from(("reset", "undo")), st.none()),
    ),
    min_size=3,
    max_size=16,
)
POLICIES = st.sampled_from(
    [
        *({"preset": name} for name in PRESETS),
        {"preset": "window", "max_messages": 4},
        {"preset": "double-window", "max_messages": 4, "trigger_tokens": 300},
        {"preset": "hybrid", "max_messages": 4, "keep_messages": 2},
        {"preset": "hybrid-tokens", "trigger_share": 0.3, "keep_share": 0.1},
        {"preset": "harness", "max_messages": 6, "keep_least": 100, "keep_most": 200},
    ]
)
RELAXED = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def act(talk: Talk, name: str, value: Any) -> None:
    match name:
        case "say":
            talk.run(value)
        case "fail":
            talk.run(value, reply=None)
        case "call":
            talk.run("look it up", results=tuple(value))
        case "fold":
            talk.fold(value)
        case "retry":
            talk.again()
        case "reset":
            talk.reset()
        case _:
            talk.undo()


@RELAXED
@given(policy=POLICIES, acts=ACTS)
def test_every_request_can_be_rebuilt_after_anything(
    policy: dict[str, Any], acts: list[tuple[str, Any]]
) -> None:
    with transaction.atomic():
        talk = Talk(policy)
        for name, value in acts:
            act(talk, name, value)
        assert [request.number for request, _ in talk.sent] == list(range(1, len(talk.sent) + 1))
        for request, body in talk.sent:
            request.refresh_from_db()
            rebuilt = snapshots.rebuild(request=request)
            assert rebuilt.body == body
            assert rebuilt.verified is True
        transaction.set_rollback(True)


@RELAXED
@given(policy=POLICIES, acts=ACTS, last=st.sampled_from(["reset", "fold"]))
def test_undo_gives_exactly_the_previous_window(
    policy: dict[str, Any], acts: list[tuple[str, Any]], last: str
) -> None:
    with transaction.atomic():
        talk = Talk(policy)
        for name, value in acts:
            act(talk, name, value)
        before = talk.body()
        if talk.reset() if last == "reset" else talk.fold(2):
            talk.undo()
        assert talk.body() == before
        transaction.set_rollback(True)


@RELAXED
@given(policy=POLICIES, acts=ACTS)
def test_the_memory_deletes_nothing_and_positions_are_never_reused(
    policy: dict[str, Any], acts: list[tuple[str, Any]]
) -> None:
    with transaction.atomic():
        talk = Talk(policy)
        said: list[tuple[int, str]] = []
        versions_seen: list[int] = []
        for name, value in acts:
            act(talk, name, value)
            rows = Message.objects.filter(conversation=talk.conversation).order_by("position")
            now = list(rows.values_list("position", "content"))
            assert now[: len(said)] == said
            said = now
            kept = Summary.objects.filter(conversation=talk.conversation).order_by("version")
            numbers = list(kept.values_list("version", flat=True))
            assert numbers[: len(versions_seen)] == versions_seen
            versions_seen = numbers
        positions = [position for position, _ in said]
        assert positions == list(range(1, len(positions) + 1))
        assert Conversation.objects.get(pk=talk.conversation.pk).next_position == len(said) + 1
        transaction.set_rollback(True)
