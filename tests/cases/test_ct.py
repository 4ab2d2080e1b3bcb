"""Cases about when to compact (CT-*)."""

import random
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from memory.core.budget import budget_for
from memory.core.limits import summary_cap
from memory.core.presets import PRESETS, policy_from
from memory.encodings import counter_for
from memory.models import Conversation, MemoryEvent, Message, Request, Summary, Turn
from tests.builders import history, reply, user
from tests.cases.raw import STOP, aassembled, piece, positions, store_history
from tests.chatapp.helpers import say
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


def folded_positions(body: dict[str, Any]) -> list[int]:
    """The positions of the messages that a summariser's request quotes."""
    return [int(one) for one in re.findall(r'position="(\d+)"', body["messages"][1]["content"])]


async def test_ct_01_one_giant_paste_is_folded_once(
    runner: Any, scripted: Any, make_conversation: Any, settings: Any
) -> None:
    """A count of messages kept the paste in the window, so each turn summarised in vain."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "local"
    settings.LLM_CONTEXT_WINDOW = 9_000
    conversation = await sync_to_async(make_conversation)(
        window=9_000, reply_reserve=256,
        policy={"preset": "hybrid", "max_messages": 100, "keep_messages": 10},
    )  # fmt: skip
    rng = random.Random(7)
    paste = "PASTE " + " ".join(str(rng.randrange(1_000, 10_000)) for _ in range(2_800))
    assert 8_000 < counter_for("local").count(paste) < 8_600
    scripted.summaries = ["The user pasted a long list of numbers and asked about it."]
    states = [(await say(runner, conversation, f"line {number}")).state for number in (1, 2)]
    states.append((await say(runner, conversation, paste)).state)
    asked = []
    for number in range(12):
        states.append((await say(runner, conversation, f"short {number}")).state)
        asked.append(len(scripted.asked()))
    assert states == ["complete"] * 15
    assert sum("PASTE" in str(body) for body in scripted.asked()) == 1
    assert asked[1:] == asked[:1] * 11, "later turns cause no summary"
    assert max([one.tokens async for one in Request.objects.all()]) <= 9_000 - 256
    summary = await Summary.objects.alatest("version")
    assert (summary.kind, summary.last_position >= 5) == ("model", True)


async def test_ct_03_a_summary_is_rewritten_only_with_new_material(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """With the tail over its limit, the summary alone was compressed again and again."""
    conversation = await sync_to_async(make_conversation)(
        window=1_000, reply_reserve=200,
        policy={"preset": "hybrid", "max_messages": 100, "keep_messages": 50, "summary_cap": 100},
    )  # fmt: skip
    scripted.replies = ["word " * 40]
    for number in range(8):
        await say(runner, conversation, f"question {number} " + "word " * 40)
    first = await Summary.objects.aearliest("version")
    text = first.text
    for number in range(3):
        await say(runner, conversation, f"one line {number}")
    await first.arefresh_from_db()
    assert first.text == text
    ends = [row.last_position async for row in Summary.objects.order_by("version")]
    assert ends == sorted(set(ends)), "every version covers more than the one before"
    assert all(folded_positions(body) for body in scripted.asked())


@pytest.mark.parametrize("words", [1_700, 52_000])
async def test_ct_04_a_summary_that_is_no_shorter_is_not_taken(
    words: int, runner: Any, scripted: Any, conversation: Conversation, async_client: Any
) -> None:
    """Compacting made contexts longer: what came back was more than what it stood for."""
    scripted.replies = ["a few words in answer " * 12]
    for number in range(6):
        await say(runner, conversation, f"question {number} " + "with some words " * 12)
    scripted.summaries = ["long " * words]
    await async_client.aforce_login(conversation.owner)
    url = reverse("memory_compact", args=[conversation.pk])
    page = await async_client.post(url, headers={"hx-request": "true"})
    assert "longer than its cap" in page.content.decode()
    assert not await Summary.objects.filter(text__contains="long long").aexists()
    for row in [one async for one in Summary.objects.all()]:
        assert row.kind == "archive"
        assert row.tokens_after < row.tokens_before
    assert await Message.objects.filter(active=True).acount() == 12
    asked = len(scripted.asked())
    await say(runner, conversation, "and now?")
    assert len(scripted.asked()) == asked, "not tried again with the next message"


async def test_ct_04_no_compaction_makes_the_window_larger(
    runner: Any, scripted: Any, conversation: Conversation, async_client: Any
) -> None:
    """An archive of short messages is hardly shorter than they are, and its fence comes on top."""
    scripted.replies, scripted.summaries = ["a few words in answer " * 4], [429]
    for number in range(6):
        await say(runner, conversation, f"question {number} " + "with some words " * 5)
    before = (await aassembled(conversation)).window
    await async_client.aforce_login(conversation.owner)
    await async_client.post(reverse("memory_compact", args=[conversation.pk]))
    after = (await aassembled(conversation)).window
    assert before is not None
    assert after is not None
    assert after.tokens <= before.tokens


@pytest.mark.parametrize("window", [64, 512, 4_096, 128_000, 340_000, 2_000_000])
def test_ct_06_the_answer_of_a_summariser_has_a_limit_of_its_own(window: int) -> None:
    """The limit grew with the history, past what the model allows, just when it mattered."""
    for policy in PRESETS.values():
        cap = summary_cap(policy, budget_for(window))
        assert 1 <= cap <= min(1_500, window // 4)
    assert summary_cap(policy_from({"summary_cap": 90_000}), budget_for(window)) <= window // 4


async def test_ct_06_the_request_carries_that_limit(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    """What is planned has to be what the provider is asked for."""
    scripted.replies = ["many words " * 30]
    for number in range(8):
        await say(runner, conversation, f"question {number} " + "word " * 30)
    assert scripted.asked()
    assert all(1 <= body["max_tokens"] <= 2 * 500 for body in scripted.asked())


@pytest.mark.parametrize("window", [0, 1, 63, 64, 512, 4_096])
@pytest.mark.parametrize("reserve", [None, 1, 256, 4_096])
def test_ct_07_no_budget_is_below_one(window: int, reserve: int | None) -> None:
    """After a while the computed room for the answer was negative and every request refused."""
    if window >= 64 and (reserve or 1) < window:
        budget = budget_for(window, reserve)
        assert budget.usable >= 1
        assert budget.reply_reserve >= 1
    else:
        with pytest.raises(ValueError, match=r"^(window|reply_reserve) must be"):
            budget_for(window, reserve)


async def test_ct_07_a_window_that_is_too_small_is_said_and_nothing_is_sent(
    open_page: Any, make_conversation: Any, scripted: Any
) -> None:
    """The user of such a configuration saw refused requests instead of the reason."""
    conversation = await sync_to_async(make_conversation)(
        window=512, reply_reserve=256, system_prompt="rule " * 300
    )
    page: Page = await open_page(conversation)
    await page.send(type="message.send", id="m1", text="word " * 40)
    ended = await page.until("turn.ended")
    assert (ended["state"], ended["reason"]) == ("failed", "window-system_prompt")
    assert scripted.bodies == []
    assert await Message.objects.filter(role="user").acount() == 1


async def test_ct_13_what_exceeds_the_summarisers_window_is_read_in_parts(
    runner: Any, scripted: Any, make_conversation: Any, settings: Any
) -> None:
    """The text to summarise was larger than the summariser's window, so nothing ever was."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "local"
    settings.LLM_CONTEXT_WINDOW = 8_000
    counter = counter_for("local")
    conversation = await sync_to_async(make_conversation)(window=8_000)
    turns = []
    for number in range(80):
        turns += [user(f"about item {number} " + "some words " * 120)]
        turns += [reply(f"item {number} is " + "fine words " * 120)]
    await sync_to_async(store_history)(conversation, turns)
    sizes, seen = [], set[int]()

    def summary(body: dict[str, Any]) -> Any:
        tokens = sum(counter.count(one["content"]) for one in body["messages"])
        sizes.append(tokens + body["max_tokens"])
        seen.update(folded_positions(body))
        return 400 if sizes[-1] > 8_000 else f"Items up to {max(seen)} were talked about."

    scripted.summaries = [summary]
    assert (await say(runner, conversation, "and now?")).state == "complete"
    assert len(sizes) > 4
    assert max(sizes) <= 8_000
    row = await Summary.objects.aget()
    assert row.kind == "model"
    assert seen == set(range(1, row.last_position + 1)), "nothing of the old part is skipped"


@pytest.mark.parametrize("policy", [{"preset": "full"}, {"preset": "window"},
                                    {"preset": "window", "max_messages": 4}])  # fmt: skip
async def test_ct_15_without_summaries_there_are_none(
    policy: dict[str, Any], runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """A second threshold made summaries although they were switched off."""
    conversation = await sync_to_async(make_conversation)(policy=policy, window=20_000)
    for number in range(13):
        await say(runner, conversation, f"question {number}")
    assert await Message.objects.acount() == 26
    assert scripted.asked() == []
    assert not await Summary.objects.aexists()
    assert not await MemoryEvent.objects.aexists()


async def test_ct_16_a_window_smaller_than_the_prompt_ends_the_turn_without_a_loop(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """After a change of the model each turn looped over a compaction that freed nothing."""
    conversation = await sync_to_async(make_conversation)(
        system_prompt="rule " * 1_200, window=8_000
    )
    for number in range(5):
        await say(runner, conversation, f"question {number} " + "word " * 20)
    await Conversation.objects.filter(pk=conversation.pk).aupdate(window=1_000)
    for number in range(3):
        events = await MemoryEvent.objects.acount()
        turn = await say(runner, conversation, f"again {number}")
        assert (turn.state, turn.error_code) == ("failed", "window-system_prompt")
        assert await MemoryEvent.objects.acount() - events <= 1
    assert len(scripted.streamed()) == 5


async def test_ct_19_the_boundary_moves_and_nothing_is_summarised_twice(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """Pruning worked on a copy, so the store kept everything and was summarised anew each time."""
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "hybrid", "max_messages": 4, "keep_messages": 2}
    )
    scripted.replies = ["an answer of several words in a row, long enough to be folded"]
    for number in range(6):
        # Every turn builds its window from rows alone.
        await say(runner, conversation, f"question {number} with several words in a row")
    asked = [position for body in scripted.asked() for position in folded_positions(body)]
    assert len(asked) == len(set(asked)) > 4
    ends = [row.last_position async for row in Summary.objects.order_by("version")]
    assert ends == sorted(set(ends))
    assert positions(await aassembled(conversation)) == list(range(ends[-1] + 1, 13))


USAGES: list[Any] = [
    [],
    [{"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}],
    [{"choices": [], "usage": {"input_tokens": 12, "total": 20}}],
    [{"choices": [], "usage": None}],
    [{"choices": [], "usage": {"prompt_tokens": 5}}],
]


@pytest.mark.parametrize("usage", USAGES, ids=["none", "zero", "other names", "null", "too few"])
async def test_ct_20_the_trigger_does_not_wait_for_a_provider_that_counts(
    usage: list[Any], runner: Any, scripted: Any, make_conversation: Any
) -> None:
    """A provider that reports no usage never set off the summariser, far over the limit."""
    conversation = await sync_to_async(make_conversation)(
        window=3_000, policy={"preset": "hybrid", "max_messages": 100, "keep_messages": 50}
    )
    scripted.replies = [[piece("word " * 150), STOP, *usage]]
    for number in range(10):
        turn = await say(runner, conversation, f"question {number} " + "word " * 150)
        assert turn.state == "complete"
    assert await Summary.objects.aexists()
    assert max([one.tokens async for one in Request.objects.all()]) <= 2_250
    assert await Turn.objects.filter(state="complete").acount() == 10


def test_ct_15_the_manual_button_of_a_window_summarises_nothing(
    client: Any, user: Any, make_conversation: Any
) -> None:
    """What is left out by policy is not folded by hand either."""
    conversation = make_conversation(policy={"preset": "window", "max_messages": 2})
    store_history(conversation, history(5))
    client.force_login(user)
    client.post(reverse("memory_compact", args=[conversation.pk]))
    assert not Summary.objects.exists()
