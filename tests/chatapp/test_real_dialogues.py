"""Real Chinese dialogues through one long conversation under `hybrid`."""

import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.demo_model import DEMO_WINDOW
from chatapp.demo_summary import summarise
from memory import snapshots
from memory.models import Conversation, MemoryEvent, Message, Request, Summary, Turn
from tests.chatapp.helpers import say

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.data, pytest.mark.long]


def pairs(file: Path) -> list[tuple[str, str]]:
    """Odd messages of each dialogue as the user's, even ones as the provider's replies."""
    found = []
    for dialogue in json.loads(file.read_text()):
        texts = [message["message"] for message in dialogue["messages"]] + ["好的。"]
        found += zip(texts[:-1:2], texts[1::2], strict=False)
    return found


def check_all(conversation: Conversation) -> tuple[int, int]:
    """Every request within its budget and verified: (how many, the largest in tokens)."""
    largest = checked = 0
    for request in Request.objects.filter(conversation=conversation).iterator():
        assert request.tokens <= request.budget["window"] - request.budget["reply_reserve"]
        assert snapshots.rebuild(request=request).verified is True
        largest, checked = max(largest, request.tokens), checked + 1
    return checked, largest


async def test_150_dialogues_through_one_conversation(
    runner: Any, scripted: Any, conversation: Conversation, data: Path
) -> None:
    turns = pairs(data / "kdconv_travel_dev.json")
    assert len(turns) == 1346
    scripted.replies = [reply for _question, reply in turns]
    scripted.pieces = lambda text: [text]
    scripted.summaries = [
        lambda body: summarise(body["messages"][0]["content"], body["messages"][1]["content"])
    ]
    for number, (question, _reply) in enumerate(turns):
        turn = await say(runner, conversation, question, f"t{number}")
        assert turn.state == "complete", (number, turn.error_code, turn.error_detail)
    assert await Turn.objects.filter(state="complete").acount() == 1346
    assert await Message.objects.acount() == 2 * 1346
    checked, largest = await sync_to_async(check_all)(conversation)
    assert checked == 1346
    assert largest <= DEMO_WINDOW * 3 // 4
    kinds = [summary.kind async for summary in Summary.objects.all()]
    failed = MemoryEvent.objects.filter(kind=MemoryEvent.Kind.COMPACTION_FAILED)
    # Every third turn or so folds: with the summaries, all but the newest messages are covered.
    assert len(kinds) > 300
    assert kinds.count("model") > 0.9 * len(kinds), kinds.count("archive")
    # What costs more than it saves is refused. An archive is tried again every few turns, in vain:
    # this summariser says the same again.
    again = failed.filter(detail__trigger="renewal")
    assert await again.acount() < 0.2 * len(kinds), await again.acount()
    assert await failed.acount() - await again.acount() < 0.1 * len(kinds)
