"""Assembling and storing a turn, by the length of the conversation; and what others need."""

from functools import partial
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatapp.provider import target_for
from memory import service, snapshots, store
from memory.core.messages import Message as CoreMessage
from memory.models import Conversation, Message, TurnState
from memory.rows import Written
from tests.bench import rivals
from tests.bench.filling import fill
from tests.bench.timing import ROUNDS, timed

SIZES = (100, 1_000, 10_000)


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
        turn_id=turn.pk, state=TurnState.COMPLETE, reply=Written(answer), encoding="o200k_base"
    )
    # The next round meets the same tail again.
    Message.objects.filter(turn=turn).update(active=False)


def assemble(conversation: Conversation, _index: int) -> None:
    service.assemble(conversation_id=conversation.pk, target=target_for(""))


def run(_folder: Path) -> None:
    """Print the medians at all sizes and their ratio (goal: 1.5; assembling: 5 ms)."""
    for policy in ("hybrid", "window"):
        print(f"policy {policy}: milliseconds, median (95 %)")
        filled = {turns: fill(turns, {"preset": policy}) for turns in SIZES}
        for name, action in (("assemble", assemble), ("whole turn", one_turn)):
            taken = timed({turns: partial(action, one) for turns, one in filled.items()})
            for turns, spread in taken.items():
                with CaptureQueriesContext(connection) as queries:
                    action(filled[turns], ROUNDS)
                print(f"  {turns:>6,} turns  {name:<10}  {spread}  {len(queries)} queries")
            ratio = taken[SIZES[-1]].median / taken[SIZES[0]].median
            print(f"  ratio of {name}: {ratio:.2f} (goal: at most 1.5)")
        print(flush=True)
    rivals.run(filled)
