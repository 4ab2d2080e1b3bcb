"""`manage.py demo`: the lesson "memory = context" in the terminal (S3), with the demo model.

Tell a name and what one learns, ask something else, ask for the name; reset, and ask again. At
each step the messages that were really sent are printed, rebuilt from their snapshot.
"""

import asyncio
import textwrap
from argparse import ArgumentParser
from typing import Any
from uuid import uuid4

from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.test.utils import override_settings
from django.utils import translation
from django.utils.translation import gettext as _

from chatapp.provider import Provider
from chatapp.runner import Runner
from chatapp.words import state_reason
from memory import service, snapshots, store
from memory.models import Conversation, Summary, Turn, TurnState

LESSON = {
    "en": (
        "My name is Ada and I am learning agent development.",
        "What is ReAct?",
        "What is my name, and what am I learning?",
    ),
    "zh-hans": ("我叫小傅哥，在学智能体开发。", "ReAct 是什么？", "我叫什么名字？在学什么？"),
}
# Small enough that the name is folded into the summary before it is asked for.
POLICY = {"preset": "hybrid", "max_messages": 4, "keep_messages": 2}
OWNER = "demo"
WIDTH = 96


class Command(BaseCommand):
    help = "Show in the terminal that the model remembers what is in its context, and no more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--language", choices=sorted(LESSON), default="en")

    def handle(self, *args: Any, language: str, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        offline = {"LLM_BASE_URL": "", "LLM_API_KEY": "", "LLM_CONTEXT_WINDOW": None}
        with (
            translation.override(language),
            override_settings(SUMMARY_MODEL="", DEMO_SECONDS_PER_TOKEN=0, **offline),
        ):
            asyncio.run(self.lesson(*LESSON[language]))

    async def lesson(self, telling: str, other: str, asking: str) -> None:
        """Run the lesson in a conversation of its own, which is deleted afterwards."""
        users = get_user_model().objects
        owner, _new = await users.aget_or_create(username=OWNER, defaults={"is_active": False})
        conversation = await database_sync_to_async(store.create_conversation)(
            owner=owner, policy=POLICY, system_prompt=_("You are a helpful assistant.")
        )
        runner = Runner(await database_sync_to_async(Provider)())
        try:
            for text in (telling, other, asking):
                await self.turn(runner, conversation, text)
            await database_sync_to_async(service.reset)(conversation_id=conversation.pk)
            self.title(_("Reset: the context starts anew. The transcript is still there."))
            await self.turn(runner, conversation, asking)
            await database_sync_to_async(service.undo)(conversation_id=conversation.pk)
            self.title(_("Undo: what was before the reset is in the context again."))
            await self.turn(runner, conversation, asking)
        finally:
            await runner.close()
            await database_sync_to_async(store.delete_conversation)(conversation_id=conversation.pk)
        self.title(_("Memory = context: the model knew what was sent to it, and nothing else."))

    async def turn(self, runner: Runner, conversation: Conversation, text: str) -> None:
        """Say something and print what was folded, what was sent and what came back."""
        versions = await conversation.summaries.acount()
        turn, _new = await runner.start_turn(
            conversation_id=conversation.pk, model="", client_id=str(uuid4()), text=text
        )
        running = Turn.objects.filter(pk=turn.pk, state=TurnState.RUNNING)
        while await running.aexists():  # noqa: ASYNC110  (a turn tells only its open pages)
            await asyncio.sleep(0.01)
        if await conversation.summaries.acount() > versions:
            await self.folded(await conversation.summaries.alatest("version"))
        await self.sent(turn)
        await turn.arefresh_from_db()
        reply = await turn.messages.filter(role="assistant").afirst()
        answer = reply.content if reply else state_reason(turn.state, turn.error_code, "")
        self.line("=>", answer, self.style.SUCCESS)

    async def folded(self, summary: Summary) -> None:
        text = _("Folded: messages %(first)s–%(last)s into summary v%(version)s")
        numbers = {
            "first": summary.first_position,
            "last": summary.last_position,
            "version": summary.version,
        }
        self.title(text % numbers)

    async def sent(self, turn: Turn) -> None:
        """Print the messages of the turn's request as they left."""
        request = await turn.requests.alatest("number")
        rebuilt = await database_sync_to_async(snapshots.rebuild)(request=request)
        text = _("Request %(number)s: %(tokens)s tokens, sha256 %(hash)s")
        text %= {"number": request.number, "tokens": request.tokens, "hash": rebuilt.sha256[:12]}
        if rebuilt.verified:
            text += " · " + _("identical to what was sent")
        self.stdout.write("\n" + self.style.HTTP_INFO(text))
        for message in rebuilt.body["messages"]:
            self.line(message["role"], message["content"])

    def title(self, text: str) -> None:
        self.stdout.write("\n" + self.style.WARNING(f"--- {text}"))

    def line(self, label: str, text: str, style: Any = str) -> None:
        """One message, wrapped and indented under its label."""
        lines = [part for line in text.splitlines() for part in textwrap.wrap(line, WIDTH) or [""]]
        for index, part in enumerate(lines):
            head = f"{label:>10}  " if index == 0 else " " * 12
            self.stdout.write(head + style(part))
