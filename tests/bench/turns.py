"""Assembling and storing a turn with 100 and with 10,000 turns stored."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.provider import target_for
from memory import service, snapshots, store
from memory.core.messages import Message as CoreMessage
from memory.models import Conversation, Message, Summary, Turn, TurnState

SIZES = (100, 10_000)
ROUNDS = 60


def fill(turns: int, policy: dict[str, Any]) -> Conversation:
    """A conversation of `turns` finished turns, all but the last six messages folded."""
    owner, _ = get_user_model().objects.get_or_create(username="bench")
    conversation = Conversation.objects.create(
        owner=owner,
        policy_data=policy,
        system_prompt="You are a helpful assistant.",
        next_position=2 * turns + 1,
        next_turn=turns + 1,
    )
    rows = Turn.objects.bulk_create(
        [
            Turn(
                conversation=conversation,
                number=number,
                client_id=f"t{number}",
                state=TurnState.COMPLETE,
            )
            for number in range(1, turns + 1)
        ],
        batch_size=2_000,
    )
    text = "some words about the weather in the mountains and what to take along " * 2
    Message.objects.bulk_create(
        [
            Message(
                conversation=conversation,
                turn=turn,
                position=2 * index + offset,
                role=role,
                content=text,
                tokens=32,
                encoding="o200k_base",
                counts=True,
            )
            for index, turn in enumerate(rows)
            for offset, role in ((1, "user"), (2, "assistant"))
        ],
        batch_size=2_000,
    )
    Summary.objects.create(
        conversation=conversation,
        version=1,
        kind=Summary.Kind.MODEL,
        text="The user asked about the weather in the mountains. " * 8,
        first_position=1,
        last_position=2 * turns - 6,
        messages_folded=6,
        tokens_before=900,
        tokens_after=90,
    )
    return conversation


def timed(actions: dict[int, Callable[[int], Any]]) -> dict[int, tuple[float, float]]:
    """Median and 95th percentile of each action, in milliseconds; taken in turns, so that noise
    of the machine meets all alike."""
    times: dict[int, list[float]] = {key: [] for key in actions}
    for index in range(ROUNDS):
        for key, action in actions.items():
            started = time.perf_counter()
            action(index)
            times[key].append((time.perf_counter() - started) * 1_000)
    return {
        key: (statistics.median(taken), statistics.quantiles(taken, n=20)[-1])
        for key, taken in times.items()
    }


def one_turn(conversation: Conversation, index: int) -> None:
    """What the database does for one turn: claim, assemble, snapshot, finish."""
    target = target_for("")
    question = CoreMessage("user", "And what about the rain?", tokens=11)
    answer = CoreMessage("assistant", "It rains now and then.", tokens=11)
    turn, _new = store.start_turn(
        conversation_id=conversation.pk,
        client_id=f"bench{index}",
        message=question,
        encoding="o200k_base",
        owner="",
    )
    assembled = service.assemble(conversation_id=conversation.pk, target=target)
    assert assembled.window is not None
    request = snapshots.take(
        conversation_id=conversation.pk,
        turn=turn,
        window=assembled.window,
        options=dict(target.options),
        policy=assembled.policy,
        encoding=assembled.counter.name,
    )
    snapshots.mark_sent(request_id=request.pk, sha256="0" * 64)
    store.finish_turn(
        turn_id=turn.pk, state=TurnState.COMPLETE, reply=answer, encoding="o200k_base"
    )
    # The next round meets the same tail again.
    Message.objects.filter(turn=turn).update(active=False)


def assemble(conversation: Conversation, _index: int) -> None:
    service.assemble(conversation_id=conversation.pk, target=target_for(""))


def run() -> None:
    """Print the medians at both sizes and their ratio (goal: 1.5; assembling: 5 ms)."""
    for policy in ("hybrid", "window"):
        print(f"policy {policy}: milliseconds, median (95 %)")
        filled = {turns: fill(turns, {"preset": policy}) for turns in SIZES}
        for name, action in (("assemble", assemble), ("whole turn", one_turn)):
            taken = timed({turns: partial(action, one) for turns, one in filled.items()})
            for turns, (median, high) in taken.items():
                with CaptureQueriesContext(connection) as queries:
                    action(filled[turns], ROUNDS)
                figures = f"{median:6.2f} ({high:6.2f})  {len(queries)} queries"
                print(f"  {turns:>6,} turns  {name:<10}  {figures}")
            small, large = (taken[turns][0] for turns in SIZES)
            print(f"  ratio of {name}: {large / small:.2f} (goal: at most 1.5)")
        print()
