"""The memory with a real model: whatever it writes, nothing is lost, and what fits is accepted."""

from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from memory import snapshots
from memory.models import Conversation, MemoryEvent
from tests.builders import reply, user
from tests.cases.raw import store_history
from tests.chatapp.helpers import say
from tests.real.conftest import BRIEF

pytestmark = [pytest.mark.real, pytest.mark.django_db(transaction=True)]
TALK = (
    user(
        "Hello, I am Mara Lindqvist. I am planning a trip to Lisbon from 3 to 9 May with my two "
        "children, who are six and nine years old. We would like to stay near the river and we "
        "do not want to rent a car. Our budget for the hotel is 900 euros for all six nights."
    ),
    reply(
        "Hello Mara! For six nights in Lisbon without a car I would look at Cais do Sodre or "
        "Belem. Both are at the river, both have trams and trains, and in May a family room costs "
        "between 120 and 160 euros a night, so 900 euros is just enough."
    ),
    user(
        "Belem sounds good. My younger son is allergic to peanuts, so a room with a small kitchen "
        "would help. Is there something for children when it rains?"
    ),
    reply(
        "Then a flat with a kitchen in Belem is the best choice. When it rains, go to the "
        "Oceanario, one of the largest aquariums of Europe, or to the Pavilhao do Conhecimento, a "
        "science museum with many things to try, both in the Parque das Nacoes."
    ),
    user(
        "We will take a flat in Belem then. Can you tell me how we get there from the airport "
        "with the luggage, if the flight is late?"
    ),
    reply(
        "Take the red line of the metro to Alameda and the green line to Cais do Sodre; from there "
        "tram 15 goes to Belem. Late in the evening a taxi is easier: it takes about 25 minutes "
        "and costs some 20 euros. Ask for a child seat when you order it."
    ),
)
# Some 345 tokens each, so that four are nearly all that a window of 2,048 has room for.
TALKS = 4


@pytest.fixture
def talked(make_conversation: Callable[..., Conversation]) -> Callable[..., Any]:
    """A conversation under a policy, in which so many talks have been."""

    def make(policy: dict[str, Any], talks: int = 1) -> Conversation:
        made = make_conversation(policy=policy)
        store_history(made, TALK * talks)
        return made

    return sync_to_async(make)


async def test_what_is_folded_is_in_the_next_request(runner: Any, talked: Any) -> None:
    conversation = await talked(
        {"preset": "hybrid", "max_messages": 4, "keep_messages": 2, "summary_cap": 150}
    )
    turn = await say(runner, conversation, "What do we have to keep in mind about food?")
    assert turn.state in ("complete", "length")
    summary = await sync_to_async(conversation.active_summary)()
    event = await MemoryEvent.objects.aget(conversation=conversation)
    print(f"\n{event.kind}: {event.detail}")
    assert summary is not None
    print(f"{summary.kind} in {summary.seconds:.1f} s, {summary.usage}: {summary.text!r}")
    print(f"exact values beside it: {[row[1] for row in summary.literals]}")
    assert event.kind == "compaction"
    assert summary.kind in ("model", "archive")
    assert (summary.first_position, summary.last_position) == (1, 4)
    request = await conversation.requests.aget()
    rebuilt = await sync_to_async(snapshots.rebuild)(request=request)
    assert rebuilt.verified is True
    sent = rebuilt.body["messages"]
    assert summary.text in sent[0]["content"]
    assert [one["content"] for one in sent[1:-1]] == [one.content for one in TALK[4:]]
    assert request.usage["prompt_tokens"] > 0


async def test_a_chinese_conversation_is_made_to_fit_as_the_model_counts(
    runner: Any, make_conversation: Callable[..., Conversation], settings: Any
) -> None:
    """A small vocabulary takes twice our tokens for Chinese, so the first request is refused."""
    settings.LLM_CONTEXT_WINDOW = 2_048
    settings.LLM_EXTRA_BODY = BRIEF | {"max_tokens": 20}
    told = "我们五月三日到九日带两个孩子去里斯本，想住在河边，不想租车。" * 2
    policy = {"preset": "window", "max_messages": 60}
    conversation = await sync_to_async(make_conversation)(policy=policy)
    await sync_to_async(store_history)(conversation, (user(told), reply(told)) * 14)
    for question in ("我们住在哪里？", "哪天出发？", "谁和我们一起去？"):
        turn = await say(runner, conversation, question)
        assert turn.state in ("complete", "length"), (turn.error_code, turn.error_detail)
    refused, *taken = [one async for one in conversation.requests.order_by("number")]
    print(f"\nrefused: counted {refused.tokens}, told {refused.usage}")
    for one in taken:
        factor = one.budget["calibration"]
        print(f"taken: counted {one.tokens}, factor {factor}, reported {one.usage}")
        assert factor > 1.3
        assert one.usage["prompt_tokens"] <= one.tokens * factor <= 1_536
        assert one.left_out
    assert refused.usage["refused_tokens"] > 2_048


async def test_a_full_window_is_accepted(runner: Any, talked: Any, settings: Any) -> None:
    settings.LLM_CONTEXT_WINDOW = 2_048
    conversation = await talked({"preset": "full"}, TALKS)
    turn = await say(runner, conversation, "Where do we stay?")
    request = await conversation.requests.aget()
    print(f"\ntokens of a full window: counted {request.tokens}, reported {request.usage}")
    usable = request.budget["window"] - request.budget["reply_reserve"]
    assert 0.85 * usable < request.tokens <= usable
    assert turn.state in ("complete", "length")
