"""Properties of the stored memory: undo, snapshots, and that nothing is ever lost."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatapp.provider import target_for
from memory import service, snapshots, store, versions
from memory.core.messages import Message as CoreMessage
from memory.core.wire import body_hash
from memory.models import Conversation, Message, Request, Summary, TurnState

pytestmark = pytest.mark.django_db

# Texts with what databases, JSON and fences stumble over; NUL and lone surrogates never get here.
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
              st.sampled_from("<memory>‹/\"\\\n你好🌱")),
    min_size=1, max_size=60,
).filter(lambda text: text.strip())  # fmt: skip
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), TEXTS),
        st.tuples(st.just("fail"), TEXTS),
        st.tuples(st.just("fold"), st.integers(1, 6)),
        st.tuples(st.just("retry"), st.none()),
        st.tuples(st.sampled_from(("reset", "undo")), st.none()),
    ),
    min_size=3,
    max_size=16,
)
POLICIES = st.sampled_from(
    [
        {"preset": "full"},
        {"preset": "window", "max_messages": 4},
        {"preset": "hybrid", "max_messages": 4, "keep_messages": 2},
        {"preset": "hybrid"},
    ]
)
RELAXED = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


class Chat:
    """A conversation driven through the store, as a runner would."""

    def __init__(self, policy: dict[str, Any]) -> None:
        owner, _ = get_user_model().objects.get_or_create(username="ada")
        self.conversation = store.create_conversation(
            owner=owner, policy=policy, system_prompt="Be brief."
        )
        self.turns = 0
        self.sent: list[tuple[Request, dict[str, Any]]] = []

    def assembled(self) -> service.Assembled:
        return service.assemble(conversation_id=self.conversation.pk, target=target_for(""))

    def body(self) -> Any:
        return self.assembled().body

    def run(self, text: str | None, replaces: int | None = None, reply: str | None = "ok") -> None:
        counter = self.assembled().counter
        message = (
            None if text is None else CoreMessage("user", text, tokens=counter.count(text) + 5)
        )
        self.turns += 1
        turn, _ = store.start_turn(
            conversation_id=self.conversation.pk,
            client_id=str(self.turns),
            message=message,
            encoding=counter.name,
            owner="",
            replaces=replaces,
        )
        now = self.assembled()
        assert now.window is not None
        assert now.body is not None
        request = snapshots.take(
            conversation_id=self.conversation.pk,
            turn=turn,
            window=now.window,
            options=dict(target_for("").options),
            policy=now.policy,
            encoding=now.counter.name,
        )
        snapshots.mark_sent(request_id=request.pk, sha256=body_hash(now.body))
        self.sent.append((request, now.body))
        store.finish_turn(
            turn_id=turn.pk,
            state=TurnState.COMPLETE if reply else TurnState.FAILED,
            reply=CoreMessage("assistant", reply, tokens=6) if reply else None,
            encoding=counter.name,
        )

    def fold(self, groups: int) -> bool:
        """Commit a summary of the next `groups` groups, as the engine would."""
        now = self.assembled()
        head = now.context.prior[:groups]
        if not head or now.policy.older != "summary":
            return False
        old = now.context.summary
        draft = versions.Draft(
            kind="model",
            text=f"Folded up to {head[-1].last}.",
            first=old.first if old else head[0].first,
            last=head[-1].last,
            folded=len(head),
            tokens_before=50,
            tokens_after=9,
            parent_version=old.version if old else None,
        )
        self.conversation.refresh_from_db()
        committed = versions.commit_summary(
            conversation_id=self.conversation.pk,
            revision=self.conversation.memory_revision,
            draft=draft,
        )
        return committed is not None

    def act(self, name: str, value: Any) -> None:
        if name == "say":
            self.run(value)
        elif name == "fail":
            self.run(value, reply=None)
        elif name == "fold":
            self.fold(value)
        elif name == "reset":
            service.reset(conversation_id=self.conversation.pk)
        elif name == "undo":
            service.undo(conversation_id=self.conversation.pk)
        elif self.turns:
            self.run(
                None, replaces=self.conversation.turns.filter(active=True).latest("number").number
            )


@RELAXED
@given(policy=POLICIES, acts=ACTS)
def test_every_request_can_be_rebuilt_after_anything(
    policy: dict[str, Any], acts: list[tuple[str, Any]]
) -> None:
    with transaction.atomic():
        chat = Chat(policy)
        for name, value in acts:
            chat.act(name, value)
        assert [request.number for request, _ in chat.sent] == list(range(1, len(chat.sent) + 1))
        for request, body in chat.sent:
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
        chat = Chat(policy)
        for name, value in acts:
            chat.act(name, value)
        before = chat.body()
        if last == "reset":
            chat.act("reset", None)
        if last == "reset" or chat.fold(2):
            service.undo(conversation_id=chat.conversation.pk)
        assert chat.body() == before
        transaction.set_rollback(True)


@RELAXED
@given(policy=POLICIES, acts=ACTS)
def test_the_memory_deletes_nothing_and_positions_are_never_reused(
    policy: dict[str, Any], acts: list[tuple[str, Any]]
) -> None:
    with transaction.atomic():
        chat = Chat(policy)
        said: list[tuple[int, str]] = []
        versions_seen: list[int] = []
        for name, value in acts:
            chat.act(name, value)
            rows = Message.objects.filter(conversation=chat.conversation).order_by("position")
            now = list(rows.values_list("position", "content"))
            assert now[: len(said)] == said
            said = now
            kept = Summary.objects.filter(conversation=chat.conversation).order_by("version")
            numbers = list(kept.values_list("version", flat=True))
            assert numbers[: len(versions_seen)] == versions_seen
            versions_seen = numbers
        positions = [position for position, _ in said]
        assert positions == list(range(1, len(positions) + 1))
        assert Conversation.objects.get(pk=chat.conversation.pk).next_position == len(said) + 1
        transaction.set_rollback(True)
