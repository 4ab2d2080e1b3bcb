"""A model that counts otherwise than we do, or whose window is smaller than was thought: the
conversation goes on in it, and what was learnt is shown."""

import json
import math
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from chatapp.failures import lengths_told
from chatapp.provider import target_of
from memory import service
from memory.models import Conversation, MemoryEvent, Message, Request
from memory.refusals import learn_too_long
from tests.chatapp.helpers import say
from tests.scripted import ScriptedTransport
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = "请介绍一下北京的历史和天气，以及去长城和故宫最方便的路线。" * 3
REPLY = "北京是一座古老的城市，春天多风，秋天最美；去长城可以坐火车，去故宫可以坐地铁。" * 2


class Small(ScriptedTransport):
    """A model of a small vocabulary: two tokens for a character beyond ASCII, a fifth for others.
    It refuses what is longer than its window, in `words`, and reports what it counts."""

    window = 2_048
    words = "request ({n} tokens) exceeds the available context size ({window} tokens)"

    def __init__(self) -> None:
        super().__init__()
        self.replies = [REPLY]
        self.summaries = ["谈到了北京的历史、天气和路线。"]
        self.taken: list[int] = []
        self.refused: list[int] = []

    def own_count(self, body: dict[str, Any]) -> int:
        text = json.dumps(body["messages"], ensure_ascii=False)
        wide = sum(not character.isascii() for character in text)
        return wide * 2 + math.ceil((len(text) - wide) / 5)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(await request.aread())
        tokens = self.own_count(body)
        if tokens > self.window:
            self.refused.append(tokens)
            message = self.words.format(n=tokens, window=self.window)
            error = {"message": message, "type": "exceed_context_size_error", "code": 400}
            return httpx2.Response(400, json={"error": error}, request=request)
        if body.get("stream"):
            self.taken.append(tokens)
            self.usage = {"prompt_tokens": tokens, "completion_tokens": 80}
        return await super().handle_async_request(request)


@pytest.fixture
def scripted() -> Small:
    return Small()


@pytest.fixture(autouse=True)
def _small_server(settings: Any) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "small"
    settings.LLM_CONTEXT_WINDOW = 2_048


POLICIES = [{"preset": "hybrid-tokens"}, {"preset": "window", "max_messages": 40}]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda one: one["preset"])
async def test_a_model_that_counts_more_is_learnt_from_what_it_reports(
    policy: dict[str, Any], runner: Any, scripted: Small, make_conversation: Callable[..., Any]
) -> None:
    conversation = await sync_to_async(make_conversation)(policy=policy)
    for number in range(16):
        turn = await say(runner, conversation, f"{number}: {QUESTION}")
        assert (turn.state, turn.error_code) == ("complete", "")
    assert scripted.refused == []
    # The window is used, and the reply's reserve kept.
    assert 900 < max(scripted.taken) <= 1_536
    last = await Request.objects.alatest("number")
    assert last.budget["calibration"] > 1.5
    assert last.budget["window"] == 2_048


@pytest.mark.parametrize(
    ("words", "refusals"),
    [
        ("request ({n} tokens) exceeds the available context size ({window} tokens)", 1),
        ("maximum context length is {window} tokens. However, you requested 9 tokens "
         "({n} in the messages, 1 in the completion).", 1),
        ("the request exceeds the available context size", 4),
    ],
)  # fmt: skip
async def test_a_request_that_is_refused_as_too_long_is_made_smaller(
    words: str, refusals: int, page: Page, scripted: Small, conversation: Conversation
) -> None:
    """All at once, without any usage before it."""
    scripted.words = words
    filler = "说明" * 700  # 2,800 of the model's tokens
    await page.send(type="message.send", id="m1", text="短")
    await page.until("turn.ended")
    await Request.objects.all().aupdate(usage={})
    await Message.objects.filter(role="assistant").aupdate(content=filler, tokens=1_100)
    await page.send(type="message.send", id="m2", text="还记得吗？")
    phases = []
    while (frame := await page.next())["type"] != "turn.ended":
        phases += [frame["phase"]] if frame["type"] == "turn.status" else []
    assert (frame["state"], frame["reason"]) == ("complete", "")
    assert 1 <= len(scripted.refused) <= refusals
    assert phases.count("tightening") == len(scripted.refused)
    assert await Message.objects.filter(turn__number=2, role="assistant").acount() == 1
    refused = Request.objects.filter(usage__refused_tokens__gt=0)
    assert await refused.acount() == len(scripted.refused)


async def test_what_cannot_be_made_smaller_ends_with_the_reason(
    runner: Any, scripted: Small, conversation: Conversation
) -> None:
    turn = await say(runner, conversation, "长" * 1_300)
    assert (turn.state, turn.error_code) == ("failed", "window-message")
    assert len(scripted.refused) == 1


BLUNT = "the request exceeds the available context size"


@pytest.mark.parametrize(
    ("text", "words", "code", "refusals"),
    [
        # Far from filling the window: its length cannot be the reason.
        ("hello", BLUNT, "too-long", 1),
        ("长" * 900, BLUNT, "window-message", 1),
        ("hello", "maximum context length is 2048 tokens. However, you requested 9000 tokens "
         "(30 in the messages, 8970 in the completion).", "too-long", 1),
    ],
)  # fmt: skip
async def test_after_a_server_that_refused_everything_the_conversation_goes_on(
    text: str, words: str, code: str, refusals: int,
    runner: Any, scripted: Small, conversation: Conversation,
) -> None:  # fmt: skip
    scripted.window, scripted.words = 0, words
    turn = await say(runner, conversation, text)
    assert (turn.state, turn.error_code) == ("failed", code)
    assert len(scripted.refused) == refusals
    await conversation.arefresh_from_db()
    assert conversation.window is None
    del scripted.window
    # The first is sent although it would not fit by what was guessed, and corrects that.
    for number in range(3):
        turn = await say(runner, conversation, f"{number}: {QUESTION}")
        assert (turn.state, turn.error_code) == ("complete", "")
    last = await Request.objects.alatest("number")
    assert last.budget["calibration"] < 3


async def test_a_report_that_no_request_can_have_stops_no_conversation(
    runner: Any, scripted: Small, make_conversation: Callable[..., Any], user: Any
) -> None:
    conversation = await sync_to_async(make_conversation)(tools=["shop"], window=4_096)
    monster = int("9" * 400)
    for reported in (5_000, 25_000, monster, 0):
        await say(runner, conversation, f"with {str(reported)[:9]}")
        await Request.objects.aupdate(usage={"prompt_tokens": reported})
    turn = await say(runner, conversation, "and now?")
    assert (turn.state, turn.error_code) == ("complete", "")
    client = Client()
    await sync_to_async(client.force_login)(user)
    for name in ("conversation", "panel_timeline"):
        page = await sync_to_async(client.get)(reverse(name, args=[conversation.pk]))
        assert page.status_code == 200


async def test_a_window_that_the_owner_made_smaller_meanwhile_stays(
    conversation: Conversation,
) -> None:
    turn = await conversation.turns.acreate(number=1, client_id="1")
    request = await Request.objects.acreate(
        conversation=conversation, turn=turn, number=1, parts=[], options="", tokens=4_000,
        encoding="o200k_base", policy={}, budget={"window": 8_192, "reply_reserve": 1_024},
    )  # fmt: skip
    await Conversation.objects.aupdate(window=1_024)
    learnt = await sync_to_async(learn_too_long)(request_id=request.pk, tokens=None, window=4_096)
    assert (learnt.smaller, learnt.changed) == (True, None)
    await conversation.arefresh_from_db()
    assert conversation.window == 1_024


def test_a_reserve_that_another_windows_had_room_for_shuts_no_page(
    conversation: Conversation, user: Any, settings: Any, client: Client
) -> None:
    Conversation.objects.update(reply_reserve=5_000)
    client.force_login(user)
    for name in ("conversation", "panel_settings", "panel_context", "context_json"):
        assert client.get(reverse(name, args=[conversation.pk])).status_code == 200, name
    budget = service.budget_of(Conversation.objects.get(), target_of(conversation))
    assert (budget.window, budget.reply_reserve) == (2_048, 512)


async def test_a_smaller_window_that_the_server_names_becomes_the_conversations(
    runner: Any, scripted: Small, conversation: Conversation, settings: Any, user: Any
) -> None:
    settings.LLM_CONTEXT_WINDOW = None
    conversation.reply_reserve, conversation.policy_data = 1_500, POLICIES[0]
    await conversation.asave()
    for number in range(12):
        turn = await say(runner, conversation, f"{number}: {QUESTION}")
        assert turn.state == "complete"
    assert len(scripted.refused) == 1
    await conversation.arefresh_from_db()
    assert (conversation.window, conversation.reply_reserve) == (2_048, None)
    event = await MemoryEvent.objects.aget(kind="settings")
    assert event.detail == {
        "window": [None, 2_048],
        "reply_reserve": [1_500, None],
        "trigger": "provider",
    }
    await sync_to_async(_is_told)(conversation, user)


def _is_told(conversation: Conversation, user: Any) -> None:
    client = Client()
    client.force_login(user)
    timeline = client.get(reverse("panel_timeline", args=[conversation.pk]))
    assert "the model&#x27;s server said so" in timeline.content.decode()
    context = client.get(reverse("context_json", args=[conversation.pk])).json()
    factor = context["budget"]["calibration"]
    assert factor > 1.5
    assert context["budget"]["usable"] == math.floor((2_048 - 512) / factor)
    number = Request.objects.get(usage__refused_tokens__gt=0).number
    refused = client.get(reverse("panel_context", args=[conversation.pk]), {"request": number})
    assert "refused as too long" in refused.content.decode()
    panel = client.get(reverse("panel_context", args=[conversation.pk])).content.decode()
    assert f"counts up to {factor} times as many" in panel


async def test_another_model_is_not_measured_by_it(runner: Any, conversation: Conversation) -> None:
    for number in range(6):
        await say(runner, conversation, f"{number}: {QUESTION}")
    budget_of = sync_to_async(service.budget_of)
    await conversation.arefresh_from_db()
    assert (await budget_of(conversation, target_of(conversation))).calibration > 1.5
    conversation.model = "another"
    assert (await budget_of(conversation, target_of(conversation))).calibration == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("This model's maximum context length is 4097 tokens. However, your messages resulted in "
         "4500 tokens.", (4_500, 4_097)),
        ("This model's maximum context length is 4,096 tokens and your request has 4,200 input "
         "tokens", (4_200, 4_096)),
        ("maximum context length is 2048 tokens. However, you requested 2500 tokens (2400 in the "
         "messages, 100 in the completion).", (2_400, 2_048)),
        ("request (2473 tokens) exceeds the available context size (2048 tokens), try increasing "
         "it", (2_473, 2_048)),
        ("prompt is too long: 208310 tokens > 200000 maximum", (208_310, 200_000)),
        ("the model is loaded with context length of only 4096 tokens", (None, 4_096)),
        ("the request exceeds the available context size. try increasing it", (None, None)),
        ("context length , exceeded; request has , tokens", (None, None)),
    ],
)  # fmt: skip
def test_servers_say_in_their_words_how_long_and_how_large(
    words: str, told: tuple[int | None, int | None]
) -> None:
    assert lengths_told(words) == told
