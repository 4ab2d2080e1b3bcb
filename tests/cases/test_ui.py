"""Cases about the panel (UI-*): what it shows is what is sent."""

import re
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse

from chatapp.markdown import render
from memory.core.messages import Message as CoreMessage
from memory.core.tokens import message_tokens
from memory.encodings import counter_for
from memory.models import Conversation, Message, Request, Summary, usage_tokens
from tests.builders import reply
from tests.builders import user as said
from tests.cases.raw import STOP, piece, store_history
from tests.chatapp.helpers import say

pytestmark = pytest.mark.django_db(transaction=True)

USAGES: list[tuple[Any, int | None]] = [
    ({"prompt_tokens": 120, "completion_tokens": 8, "total_tokens": 128, "input_tokens": 90_000},
     120),
    (None, None),
    ({"prompt_tokens": "120"}, None),
    ({"input_tokens": 90_000}, None),
    ({}, None),
]  # fmt: skip


async def get(client: Any, conversation: Conversation, name: str, **query: Any) -> Any:
    url = reverse(name, args=[conversation.pk])
    return await sync_to_async(client.get)(url, query)


@pytest.mark.parametrize(("usage", "counted"), USAGES)
async def test_ui_01_the_providers_count_is_that_of_the_prompt(
    usage: Any, counted: int | None, runner: Any, scripted: Any, conversation: Conversation,
    client: Any,
) -> None:  # fmt: skip
    """A field of another style of API was read, and a new chat looked nearly full."""
    scripted.replies = [[piece("hi"), STOP, {"choices": [], "usage": usage}]]
    await say(runner, conversation, "hello")
    request = await Request.objects.aget()
    assert usage_tokens(request.usage) == counted
    await sync_to_async(client.force_login)(conversation.owner)
    response = await get(client, conversation, "panel_context", request=1)
    panel = response.context["panel"]
    assert (panel["provider_tokens"], panel["tokens"]) == (counted, request.tokens)
    html = response.content.decode()
    assert ("the provider counted 120" in html) is (counted == 120)
    assert "90,000" not in html


async def test_ui_02_right_after_a_compaction_all_figures_are_those_of_the_next_request(
    runner: Any, scripted: Any, make_conversation: Any, client: Any, async_client: Any
) -> None:
    """The count was the old one and the percentage zero until some turns had passed."""
    conversation = await sync_to_async(make_conversation)(window=1_000, reply_reserve=100)
    rows = [one for n in range(6) for one in (said(f"question {n} " * 8), reply("word " * 30))]
    await sync_to_async(store_history)(conversation, rows)
    await async_client.aforce_login(conversation.owner)
    await sync_to_async(client.force_login)(conversation.owner)
    before = (await get(client, conversation, "panel_context")).context["panel"]["tokens"]
    url = reverse("memory_compact", args=[conversation.pk])
    at_once = await async_client.post(url, headers={"hx-request": "true"})
    assert await Summary.objects.aexists()
    data = (await get(client, conversation, "context_json")).json()
    later = await get(client, conversation, "panel_context")
    panel = later.context["panel"]
    assert panel["tokens"] == data["tokens"] == sum(one["tokens"] for one in data["segments"])
    assert 0 < panel["tokens"] < before
    assert [one["kind"] for one in panel["segments"]] == [one["kind"] for one in data["segments"]]
    assert [one["kind"] for one in data["segments"]] == ["system", "summary"] + ["tail"] * 6
    for html in (at_once.content.decode(), later.content.decode()):
        assert re.search(rf"\b{panel['tokens']}\b", html)
    widths = sum(float(one["width"]) for one in panel["segments"])
    assert abs(widths - panel["tokens"]) <= len(panel["segments"]), "the bar is of 1,000 parts"


async def test_ui_05_the_parts_of_the_panel_are_what_was_sent(
    runner: Any, scripted: Any, make_conversation: Any, client: Any
) -> None:
    """The display said 55,000 tokens while the provider refused 215,000."""
    conversation = await sync_to_async(make_conversation)(window=8_000)
    scripted.replies = ["a long reply with many words " * 12]
    for number in range(8):
        await say(runner, conversation, f"question {number}: " + "what of this one? " * 20)
    await sync_to_async(client.force_login)(conversation.owner)
    counter = counter_for("")
    for number, body in enumerate(scripted.streamed(), 1):
        panel = (await get(client, conversation, "panel_context", request=number)).context["panel"]
        assert panel["verified"] is True
        shown = [one["text"] for one in panel["segments"]]
        sent = [one["content"] for one in body["messages"]]
        joined = ["\n\n".join(shown[:2]), *shown[2:]] if len(shown) > len(sent) else shown
        assert joined == sent, "every message is listed, and nothing else is"
        exact = sum(
            message_tokens(CoreMessage(one["role"], one["content"]), counter)
            for one in body["messages"]
        )
        parts = sum(one["tokens"] for one in panel["segments"])
        assert parts == panel["tokens"]
        assert exact <= parts <= exact * 1.02
    assert await Summary.objects.aexists()


ARABIC = "موعدنا يوم الأحد (10:30 Zoom)؟"
HEBREW = "פתח את `notes v2.md` ומחק 3 שורות.\n\n- אחת\n- שתיים\n\n| א | ב |\n|---|---|\n| 1 | 2 |"
OVERRIDE = "see invoice\u202efdp.exe now"


def test_ui_06_every_text_takes_its_direction_from_itself(
    client: Any, user: Any, conversation: Conversation
) -> None:
    """Right-to-left text was forced left to right, and an override flipped its neighbours."""
    store_history(conversation, [said(ARABIC), reply(HEBREW), said(OVERRIDE), reply(OVERRIDE)])
    Conversation.objects.filter(pk=conversation.pk).update(title=OVERRIDE)
    client.force_login(user)
    page = client.get(reverse("conversation", args=[conversation.pk])).content.decode()
    bodies = re.findall(r'<div class="body [^>]*>', page)
    assert len(bodies) >= 4
    assert all('dir="auto"' in tag for tag in bodies)
    # dir="auto" isolates: an override ends with the element that holds it.
    for before in re.findall(r"<[^<>]*>[^<>]*\u202e", page):
        inside = re.match(r"<(\w+)([^<>]*)>", before)
        assert inside is not None, before
        tag, attributes = inside.groups()
        isolated = 'dir="auto"' in attributes or tag in ("title", "input", "textarea", "p", "label")
        assert isolated or "aria-label" in attributes, before
    assert ARABIC in page
    assert "<code>notes v2.md</code>" in render(HEBREW)
    css = (Path(__file__).parents[2] / "static/css/base.css").read_text()
    assert re.search(r"code, pre, kbd \{[^}]*direction: ltr; unicode-bidi: isolate", css)
    assert Message.objects.get(position=3).content == OVERRIDE
