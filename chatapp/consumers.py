"""The socket: parse, authorise, subscribe, forward. It never streams itself."""

import logging
from typing import Any
from uuid import UUID

from channels.auth import get_user
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.db import Error
from django.http import Http404, HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

from chatapp import frames, runner
from chatapp.access import conversation_for
from chatapp.events import (
    Event,
    Hello,
    Refused,
    TurnEnded,
    TurnStarted,
    TurnText,
    broadcast,
    group_name,
    session_group,
)
from chatapp.words import start_refused, turn_error
from memory import store
from memory.models import Conversation, Turn

logger = logging.getLogger(__name__)

NO_USER, NO_CONVERSATION = 4401, 4404


class ChatConsumer(AsyncWebsocketConsumer):
    """One open page of one conversation."""

    conversation: Conversation | None = None

    async def connect(self) -> None:
        await self.accept()
        user = self.scope.get("user")
        if not getattr(user, "is_authenticated", False):
            await self.close(NO_USER)
            return
        try:
            conversation_id: UUID = self.scope["url_route"]["kwargs"]["conversation_id"]
            conversation = await database_sync_to_async(conversation_for)(user, conversation_id)
        except Http404:
            await self.close(NO_CONVERSATION)
            return
        # Listen first, read the state after: nothing falls between the two.
        for group in self._groups(conversation):
            await self.channel_layer.group_add(group, self.channel_name)
        await self._recover(conversation)
        turn = await database_sync_to_async(store.running_turn)(conversation_id=conversation.pk)
        self.conversation = conversation
        await self._tell(Hello(turn.number if turn else None, conversation.memory_revision))

    async def disconnect(self, code: int) -> None:
        if self.conversation is not None:
            for group in self._groups(self.conversation):
                await self.channel_layer.group_discard(group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.conversation is None:
            return
        with translation.override(language_of(self.scope)):
            await self._obey(text_data)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Forward a frame at once. Channels first waits for the thread of the database, to close
        its connection: with every frame, behind all that the database does meanwhile."""
        if message["type"] == "send.frame":
            await self.send_frame(message)
        else:
            await super().dispatch(message)

    async def send_frame(self, message: dict[str, Any]) -> None:
        """Forward a frame of the conversation's group."""
        await self.send(text_data=message["text"])

    async def session_ended(self, message: dict[str, Any]) -> None:
        """The session's user signed out, in whichever tab."""
        await self.close(NO_USER)

    def _groups(self, conversation: Conversation) -> tuple[str, str]:
        return group_name(conversation.pk), session_group(self.scope["session"].session_key)

    async def _is_signed_in(self) -> bool:
        """Whether the session still is one: it may have expired since, or be ended by a new
        password."""
        session = self.scope["session"]
        user = await get_user({"session": session.__class__(session.session_key)})
        return bool(user.is_authenticated)

    async def _obey(self, text: str | None) -> None:
        try:
            frame = frames.parse(text)
        except frames.BadFrame as error:
            await self._tell(error.refusal)
            return
        try:
            await self._act(frame)
        except Error:
            logger.exception("the database failed at a frame")
            words = turn_error("internal", "")
            await self._tell(Refused("internal", words, getattr(frame, "id", "")))

    async def _act(self, frame: frames.Frame) -> None:
        if not await self._is_signed_in():
            await self.close(NO_USER)
            return
        match frame:
            case frames.Send(frame_id, text):
                await self._start(frame_id, text, None)
            case frames.Retry(frame_id, number):
                await self._start(frame_id, None, number)
            case frames.Edit(frame_id, number, text):
                await self._start(frame_id, text, number)
            case frames.Stop(number):
                if turn := await self._turn(number):
                    await runner.get_runner().stop_turn(turn)
            case frames.Resume(number):
                await self._resume(number)

    async def _tell(self, event: Event) -> None:
        await self.send(text_data=event.frame())

    async def _start(self, frame_id: str, text: str | None, replaces: int | None) -> None:
        assert self.conversation is not None
        try:
            turn, new = await runner.get_runner().start_turn(
                conversation_id=self.conversation.pk,
                model=self.conversation.model,
                client_id=frame_id,
                text=text,
                replaces=replaces,
            )
            if not new:
                # Sent again because the first acknowledgement was lost: this page alone is told.
                await self._tell(TurnStarted(turn.number, frame_id))
                if not turn.is_running:
                    await self._tell(TurnEnded(turn.number, turn.state, 0, turn.error_code))
        except (store.Busy, store.IdReused, store.NotLast) as error:
            code, words = start_refused(error)
            await self._tell(Refused(code, words, frame_id))
        except Conversation.DoesNotExist:
            await self.close(NO_CONVERSATION)

    async def _turn(self, number: int) -> Turn | None:
        assert self.conversation is not None
        turn = await Turn.objects.filter(conversation=self.conversation, number=number).afirst()
        if turn is None:
            await self._tell(Refused("no-turn", _("There is no such turn.")))
        return turn

    async def _resume(self, number: int) -> None:
        """Send the reply so far: live where this process writes it, else as it is stored."""
        assert self.conversation is not None
        await self._recover(self.conversation)
        turn = await self._turn(number)
        if turn is None:
            return
        partial, state = runner.get_runner().partial_of(turn.pk), turn.state
        if partial is None:
            partial, state = await database_sync_to_async(store.reply_of)(turn_id=turn.pk)
        step, text, thoughts = partial
        await self._tell(TurnText(number, step, text, thoughts, state))

    async def _recover(self, conversation: Conversation) -> None:
        """Mark a turn that its process left behind, and tell every page."""
        turn = await database_sync_to_async(store.recover_conversation)(
            conversation_id=conversation.pk, alive=runner.get_runner().alive()
        )
        if turn is not None:
            ended = TurnEnded(turn.number, turn.state, 0, "interrupted")
            await broadcast(self.channel_layer, conversation.pk, ended)


def language_of(scope: dict[str, Any]) -> str:
    """The visitor's language, found as for a page: by the cookie, else by what is accepted."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    accepted = dict(scope["headers"]).get(b"accept-language", b"")
    request.META["HTTP_ACCEPT_LANGUAGE"] = accepted.decode("latin-1")
    return translation.get_language_from_request(request)
