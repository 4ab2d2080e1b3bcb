"""No fold is made for a request that cannot be sent anyway: the memory stays as it was."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from chatapp.provider import target_for
from memory import service, versions
from memory.models import Conversation
from tests.cases.raw import RawTransport, calling
from tests.chatapp.helpers import say
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scripted() -> RawTransport:
    return RawTransport()


async def test_a_message_that_is_too_large_folds_nothing(
    runner: Any, scripted: Any, make_conversation: Callable[..., Conversation]
) -> None:
    policy = {"preset": "hybrid-tokens", "when": "before_request"}
    conversation = await sync_to_async(make_conversation)(policy=policy, window=2_048)
    for number in range(3):
        await say(runner, conversation, f"question {number} " + "word " * 100)
    turn = await say(runner, conversation, "long " * 5_000)
    assert (turn.state, turn.error_code) == ("failed", "window-message")
    assert scripted.asked() == []
    assert await conversation.summaries.acount() == 0
    # What follows fits, and is answered.
    assert (await say(runner, conversation, "and shorter?")).state == "complete"


async def test_tools_that_are_too_large_fold_nothing(
    runner: Any, scripted: Any, make_conversation: Callable[..., Conversation]
) -> None:
    conversation = await sync_to_async(make_conversation)(window=4_096)
    for number in range(8):
        await say(runner, conversation, f"question {number} " + "word " * 20)
    made = await conversation.summaries.acount()
    await Conversation.objects.aupdate(tools=["shop", "memory"], window=1_024)
    for number in range(3):
        turn = await say(runner, conversation, f"more {number}")
        assert (turn.state, turn.error_code) == ("failed", "window-tools")
    assert await conversation.summaries.acount() == made


async def test_a_turn_at_its_limit_of_steps_folds_nothing(
    runner: Any, scripted: Any, make_conversation: Callable[..., Conversation]
) -> None:
    policy = {"preset": "hybrid-tokens", "when": "before_request"}
    conversation = await sync_to_async(make_conversation)(
        policy=policy, window=4_096, tools=["shop"], max_steps=1
    )
    for number in range(2):
        await say(runner, conversation, f"question {number} " + "word " * 20)
    arguments = '{"question": "' + "word " * 1_200 + '"}'
    scripted.replies = [calling(("search_knowledge", arguments))]
    turn = await say(runner, conversation, "go on")
    assert (turn.state, turn.error_code) == ("length", "max-steps")
    assert scripted.asked() == []
    # The next turn has a request to make room for.
    scripted.replies = ["Fine."]
    assert (await say(runner, conversation, "thanks")).state == "complete"
    assert scripted.asked()


@pytest.mark.parametrize("preset", ["hybrid", "hybrid-tokens", "harness", "consolidator"])
def test_undo_brings_back_a_window_with_shortened_results(preset: str) -> None:
    talk = Talk({"preset": preset}, window=2_048)
    talk.run("hello")
    talk.run("list them", results=("\n".join(f"line {number} of many" for number in range(240)),))
    before = talk.body()
    conversation = talk.fresh()
    draft = versions.Draft("model", "They said hello.", 1, 2, 2, 40, 10)
    assert versions.commit_summary(
        conversation_id=conversation.pk, revision=conversation.memory_revision, draft=draft
    )
    assert talk.body() != before
    service.undo(conversation_id=conversation.pk)
    after = service.assemble(conversation_id=conversation.pk, target=target_for(""))
    assert after.body == before
