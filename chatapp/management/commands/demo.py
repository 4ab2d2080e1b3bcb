"""`manage.py demo`: the lesson "memory = context" in the terminal, with the demo model.

`name` (S3): tell a name and what one learns, ask something else, ask for the name; reset, and ask
again. At each step the messages that were really sent are printed, rebuilt from their snapshot.

`refund` (S0): six questions to an agent with tools; for each turn its tokens and what the memory
did, at the end what the last request held.
"""

import asyncio
import textwrap
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from channels.db import database_sync_to_async
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.test.utils import override_settings
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chatapp import refund
from chatapp.provider import Provider
from chatapp.runner import Runner
from chatapp.words import state_reason
from memory import service, snapshots, store
from memory.models import Conversation, Message, Summary, Turn

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
Talk = tuple[Runner, Conversation]
WIDTH = 96


class Command(BaseCommand):
    help = "Show in the terminal that the model remembers what is in its context, and no more."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("lesson", nargs="?", choices=("name", "refund"), default="name")
        parser.add_argument("--language", choices=sorted(LESSON), default="en")
        parser.add_argument(
            "--strategy",
            choices=sorted(refund.STRATEGIES),
            default="hybrid",
            help="of refund: hybrid keeps the number in its summary, window forgets it",
        )

    def handle(self, *args: Any, lesson: str, language: str, strategy: str, **options: Any) -> None:
        call_command("migrate", verbosity=0)
        offline = {"LLM_BASE_URL": "", "LLM_API_KEY": "", "LLM_CONTEXT_WINDOW": None}
        plain = {"SUMMARY_MODEL": "", "LLM_EXTRA_BODY": {}, "DEMO_SECONDS_PER_TOKEN": 0}
        with translation.override(language), override_settings(**offline, **plain):
            if lesson == "name":
                asyncio.run(self.name(*LESSON[language]))
            else:
                asyncio.run(self.refund(strategy, refund.questions(language)))

    @asynccontextmanager
    async def talk(self, make: Callable[..., Conversation], **fields: Any) -> AsyncIterator[Talk]:
        """A conversation of the demo's own, with a runner; it is deleted afterwards."""
        users = get_user_model().objects
        owner, _new = await users.aget_or_create(username=OWNER, defaults={"is_active": False})
        conversation = await database_sync_to_async(make)(owner=owner, **fields)
        runner = Runner(await database_sync_to_async(Provider)())
        try:
            yield runner, conversation
        finally:
            await runner.close()
            await database_sync_to_async(store.delete_conversation)(conversation_id=conversation.pk)

    async def refund(self, strategy: str, questions: Sequence[str]) -> None:
        """Ask the questions; print of each turn what was said, called, spent and folded."""
        async with self.talk(refund.new_conversation, strategy=strategy) as (runner, conversation):
            for number, text in enumerate(questions, 1):
                self.title(_("Turn %(number)s") % {"number": number})
                known = await conversation.summaries.acount()
                turn = await self.ran(runner, conversation, text)
                async for row in turn.messages.order_by("position"):
                    self.row(row)
                await self.cost(turn)
                if await conversation.summaries.acount() > known:
                    await self.folded(await conversation.summaries.alatest("version"))
            self.title(_("What the last request held"))
            await self.sent(turn)
        self.title(_("Memory = context: the model knew what was sent to it, and nothing else."))

    def row(self, row: Message) -> None:
        """A message of the transcript: what was said, what was called, or what came of it."""
        if row.content:
            is_reply = row.role == "assistant" and not row.tool_calls
            label = "=>" if is_reply else row.role
            self.line(label, row.content, self.style.SUCCESS if is_reply else str)
        for call in row.tool_calls:
            self.line(_("calls"), f"{call['name']} {call['arguments']}")

    async def cost(self, turn: Turn) -> None:
        """What a turn's requests took."""
        requests = [one async for one in turn.requests.order_by("number")]
        text = ngettext("%(count)s request", "%(count)s requests", len(requests))
        sizes = " + ".join(str(one.tokens) for one in requests)
        told = text % {"count": len(requests)}
        self.stdout.write(
            self.style.HTTP_INFO(
                _("%(requests)s: %(sizes)s tokens") % {"requests": told, "sizes": sizes}
            )
        )

    async def name(self, telling: str, other: str, asking: str) -> None:
        """Tell a name, ask for it, reset, ask again, undo, and ask once more."""
        fields = {"policy": POLICY, "system_prompt": _("You are a helpful assistant.")}
        async with self.talk(store.create_conversation, **fields) as (runner, conversation):
            for text in (telling, other, asking):
                await self.turn(runner, conversation, text)
            await database_sync_to_async(service.reset)(conversation_id=conversation.pk)
            self.title(_("Reset: the context starts anew. The transcript is still there."))
            await self.turn(runner, conversation, asking)
            await database_sync_to_async(service.undo)(conversation_id=conversation.pk)
            self.title(_("Undo: what was before the reset is in the context again."))
            await self.turn(runner, conversation, asking)
        self.title(_("Memory = context: the model knew what was sent to it, and nothing else."))

    async def ran(self, runner: Runner, conversation: Conversation, text: str) -> Turn:
        """Say something and wait for the end of the turn."""
        turn, _new = await runner.start_turn(
            conversation_id=conversation.pk, model="", client_id=str(uuid4()), text=text
        )
        await runner.wait(turn)
        return await Turn.objects.aget(pk=turn.pk)

    async def turn(self, runner: Runner, conversation: Conversation, text: str) -> None:
        """Say something and print what was folded, what was sent and what came back."""
        versions = await conversation.summaries.acount()
        turn = await self.ran(runner, conversation, text)
        if await conversation.summaries.acount() > versions:
            await self.folded(await conversation.summaries.alatest("version"))
        await self.sent(turn)
        reply = await turn.messages.filter(role="assistant").alast()
        answer = (
            reply.content if reply else state_reason(turn.state, turn.error_code, "", kept=False)
        )
        self.line("=>", answer, self.style.SUCCESS)

    async def folded(self, summary: Summary) -> None:
        text = _(
            "Folded: messages %(first)s–%(last)s into summary v%(version)s, %(before)s → "
            "%(after)s tokens, literals carried: %(carried)s"
        )
        numbers = {
            "first": summary.first_position,
            "last": summary.last_position,
            "version": summary.version,
            "before": summary.tokens_before,
            "after": summary.tokens_after,
            "carried": summary.carried,
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
            calls = [one["function"] for one in message.get("tool_calls", ())]
            written = [f"{one['name']} {one['arguments']}" for one in calls]
            self.line(message["role"], "\n".join(filter(None, (message["content"], *written))))

    def title(self, text: str) -> None:
        self.stdout.write("\n" + self.style.WARNING(f"--- {text}"))

    def line(self, label: str, text: str, style: Any = str) -> None:
        """One message, wrapped and indented under its label."""
        lines = [part for line in text.splitlines() for part in textwrap.wrap(line, WIDTH) or [""]]
        for index, part in enumerate(lines):
            head = f"{label:>10}  " if index == 0 else " " * 12
            self.stdout.write(head + style(part))
