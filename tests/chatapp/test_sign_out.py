"""A page that stays open while its session ends."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.models import Conversation, Message
from tests.sockets import Page

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def client_and_page(runner: Any, user: Any, conversation: Conversation) -> Any:
    """A browser, and a page that is open in it."""
    client = Client()
    await sync_to_async(client.force_login)(user)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    page = Page(conversation.pk, cookie.encode())
    await page.socket.connect()
    await page.until("hello")
    yield client, page
    await page.socket.disconnect()


async def closed_with(page: Page) -> int:
    """The code with which the server closes, and says nothing before."""
    message = await page.socket.receive_output(timeout=10)
    assert message["type"] == "websocket.close"
    return int(message["code"])


@pytest.mark.parametrize("name", ["logout", "admin:logout"])
async def test_signing_out_closes_the_sockets_of_the_session(
    name: str, client_and_page: Any, user: Any, page: Page
) -> None:
    client, own = client_and_page
    user.is_staff = True
    await user.asave()
    await sync_to_async(client.post)(reverse(name))
    assert await closed_with(own) == 4401
    # The same user is signed in elsewhere, too.
    await page.send(type="message.send", id="m1", text="hello")
    assert (await page.until("turn.ended"))["state"] == "complete"


async def expire(user: Any) -> None:
    await Session.objects.aupdate(expire_date=timezone.now() - timedelta(seconds=1))


async def delete_sessions(user: Any) -> None:
    await Session.objects.all().adelete()


async def change_password(user: Any) -> None:
    user.set_password("another long one")
    await user.asave()


async def deactivate(user: Any) -> None:
    user.is_active = False
    await user.asave()


FRAMES = [
    {"type": "message.send", "id": "m1", "text": "hello"},
    {"type": "turn.resume", "turn": 1},
]


@pytest.mark.parametrize("frame", FRAMES, ids=["send", "resume"])
@pytest.mark.parametrize("end", [expire, delete_sessions, change_password, deactivate])
async def test_after_the_end_of_a_session_no_frame_is_obeyed(
    end: Any, frame: dict[str, Any], client_and_page: Any, user: Any
) -> None:
    _, page = client_and_page
    await end(user)
    await page.send(**frame)
    assert await closed_with(page) == 4401
    assert not await Message.objects.aexists()
