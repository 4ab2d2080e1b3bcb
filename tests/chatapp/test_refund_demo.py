"""S0's demo: the refund number comes back out of the summary, and is gone under a window."""

import io
import re
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.urls import reverse

from chatapp import refund
from chatapp import runner as runners
from chatapp.provider import Provider
from memory.models import Conversation, Message, Request, Turn
from tests.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = re.compile(r"RF\d{11}")
LANGUAGES = ("en", "zh-hans")


def played(language: str, strategy: str) -> list[str]:
    """What is printed of each turn, and at last of the last request."""
    out = io.StringIO()
    call_command("demo", "refund", language=language, strategy=strategy, stdout=out, no_color=True)
    assert not Conversation.objects.exists()
    return re.split(r"(?m)^--- ", out.getvalue())[1:]


def reply(part: str) -> str:
    return "".join(part.partition("=>")[2].split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_under_hybrid_the_number_is_known_from_the_summary(language: str) -> None:
    parts = played(language, "hybrid")
    turns = [part for part in parts if "=>" in part]
    assert len(turns) == 6
    (number,) = set(NUMBER.findall(reply(turns[1])))
    assert number in reply(turns[5])
    # It was folded in the sixth turn and stood nowhere but in the memory part.
    folded = [part for part in parts if " v1" in part.splitlines()[0]]
    assert len(folded) == 1
    assert parts.index(folded[0]) > parts.index(turns[5])
    request = next(part for part in parts if '<memory kind="summary"' in part)
    memory = request.partition('<memory kind="summary"')[2].partition("</memory>")[0]
    assert number in memory
    assert number not in request.replace(memory, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_under_a_window_the_number_is_forgotten(language: str) -> None:
    parts = played(language, "window")
    turns = [part for part in parts if "=>" in part]
    assert NUMBER.search(reply(turns[1]))
    assert not NUMBER.search(reply(turns[5]))
    assert not NUMBER.search(parts[parts.index(turns[5]) + 1])
    assert ("do not know" if language == "en" else "不知道") in turns[5]


@pytest.mark.parametrize("strategy", sorted(refund.STRATEGIES))
async def test_the_button_plays_the_demo_in_a_new_conversation(
    strategy: str, async_client: Any, user: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refund, "PAUSE", 0)
    made = runners.Runner(await sync_to_async(Provider)())
    monkeypatch.setattr(runners, "get_runner", lambda: made)
    await async_client.aforce_login(user)
    response = await async_client.post(reverse("demo_refund"), {"strategy": strategy})
    assert response.status_code == 302
    conversation = await Conversation.objects.aget()
    assert response.url == reverse("conversation", args=[conversation.pk])
    assert conversation.tools == ["shop"]
    done = Turn.objects.filter(conversation=conversation, state="complete")

    async def six() -> bool:
        return await done.acount() == 6

    await until(six, 30)
    await made.settled()
    last = await Message.objects.filter(conversation=conversation).alast()
    assert last is not None
    assert bool(NUMBER.search(last.content)) == (strategy == "hybrid")
    assert await Request.objects.filter(conversation=conversation).acount() > 6
    await made.close()


@pytest.fixture
async def opened(async_client: Any, user: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A page of the user's; no demo plays."""
    made = runners.Runner(await sync_to_async(Provider)())
    monkeypatch.setattr(runners, "get_runner", lambda: made)

    async def nothing(*_: Any) -> None:
        """No turn."""

    monkeypatch.setattr(refund, "play", nothing)
    await async_client.aforce_login(user)
    await async_client.post(reverse("conversation_new"))
    yield async_client
    await made.settled()
    await made.close()


async def begun(client: Any, conversation: Conversation) -> Any:
    """The conversation that the demo of a page begins in."""
    address = reverse("demo_refund_here", args=[conversation.pk])
    response = await client.post(address, {"strategy": "window"})
    assert response.status_code == 302
    return response.url.split("/")[2]


async def test_the_demo_begins_in_the_conversation_that_is_shown_while_it_is_empty(
    opened: Any,
) -> None:
    shown = await Conversation.objects.aget()
    assert await begun(opened, shown) == str(shown.pk)
    now = await Conversation.objects.aget()
    assert now.policy_data == refund.STRATEGIES["window"]
    assert (now.tools, now.title) == (["shop"], "Refund demo, window")
    assert now.system_prompt != shown.system_prompt
    # It is the demo's now, whether its first question came already or not.
    assert await begun(opened, now) != str(shown.pk)


@pytest.mark.parametrize("changed", [{"next_turn": 2}, {"memory_revision": 1}, {"title": "Mine"}])
async def test_a_conversation_in_which_something_was_said_or_set_stays_as_it_is(
    opened: Any, changed: dict[str, Any]
) -> None:
    shown = await Conversation.objects.aget()
    await Conversation.objects.aupdate(**changed)
    assert await begun(opened, shown) != str(shown.pk)
    kept = await Conversation.objects.aget(pk=shown.pk)
    assert (kept.tools, kept.policy_data) == (shown.tools, shown.policy_data)


async def test_a_page_begins_the_demo_where_it_is(opened: Any) -> None:
    shown = await Conversation.objects.aget()
    here = f'action="{reverse("demo_refund_here", args=[shown.pk])}"'
    page = await opened.get(reverse("conversation", args=[shown.pk]))
    assert page.content.decode().count(here) == 2
    await Conversation.objects.all().adelete()
    home = await opened.get(reverse("home"))
    assert f'action="{reverse("demo_refund")}"' in home.content.decode()


async def test_an_unknown_strategy_is_no_page(async_client: Any, user: Any) -> None:
    await async_client.aforce_login(user)
    response = await async_client.post(reverse("demo_refund"), {"strategy": "magic"})
    assert response.status_code == 404
    assert not await Conversation.objects.aexists()


async def test_the_demo_ends_where_somebody_else_speaks(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refund, "PAUSE", 0)
    scripted.replies = ["one", 500, "three"]
    await refund.play(runner, conversation, ("a", "b", "c"))
    states = [turn.state async for turn in Turn.objects.order_by("number")]
    assert states == ["complete", "failed"]


async def test_the_demo_ends_where_somebody_spoke_in_the_pause(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pause(_seconds: float) -> None:
        """Another turn begins and ends meanwhile."""
        turn, _new = await runner.start_turn(
            conversation_id=conversation.pk, model="", client_id="mine", text="My name is Bob"
        )
        await runner.wait(turn)

    scripted.replies = ["one", "Hello Bob", "two"]
    monkeypatch.setattr(refund, "sleep", pause)
    await refund.play(runner, conversation, ("a", "b"))
    said = [one.content async for one in Message.objects.filter(role="user").order_by("position")]
    assert said == ["a", "My name is Bob"]
