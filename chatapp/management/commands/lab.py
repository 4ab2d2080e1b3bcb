"""`manage.py lab FILE`: conversations replayed under several memory policies, side by side.

Needs no database. The transcript's own replies are kept; only summaries are asked for, of the demo
model (offline, repeatable) or of the configured one.
"""

import asyncio
import json
from argparse import ArgumentParser
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chatapp.agent import summariser_for
from chatapp.demo_model import DEMO_MODEL, DEMO_WINDOW, DemoTransport
from chatapp.provider import Provider, default_model, is_demo, target_for
from memory import importing
from memory.compaction import Summariser
from memory.core.budget import Budget, budget_for
from memory.core.presets import PRESETS
from memory.core.text import clean
from memory.core.tokens import Counter
from memory.encodings import counter_for
from memory.importing import KEYS
from memory.lab import Replay, replay
from memory.models import Conversation
from memory.summarizer import Ladder

HEADS = (
    "policy", "final", "messages", "requests", "sent", "folds", "asked", "read", "written",
    "literals", "folded", "seconds", "refused",
)  # fmt: skip
LEGEND = """
final     tokens of the request that would come next (-: it cannot fit), and its messages
sent      tokens of all requests together
folds     compactions (archive: no summary was accepted; nothing: none shorter was found); for them
          the summariser was asked so often, read and wrote these tokens
literals  ids, amounts, dates and the like of the transcript that are still in the final request;
          folded: of the messages that became a summary
refused   requests that could not fit, and what was too large
"""


class Command(BaseCommand):
    help = "Replay conversations under memory policies, and compare what they keep and cost."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = ", ".join(PRESETS)
        parser.add_argument(
            "file", type=Path, help=f"JSON or JSON lines: messages, or objects with {KEYS[0]}, ..."
        )
        parser.add_argument("--policies", default=",".join(PRESETS), help=f"of {names}")
        parser.add_argument("--window", type=int, help="tokens (default: the configured model's)")
        parser.add_argument("--reserve", type=int, help="tokens kept for the reply")
        parser.add_argument("--system", help="a system prompt in the place of the file's")
        parser.add_argument("--summarizer", choices=("demo", "env"), default="demo")
        parser.add_argument("--limit", type=int, help="only the first so many conversations")
        parser.add_argument(
            "--json", action="store_true", help="everything, with the final windows"
        )

    def handle(self, *args: Any, file: Path, json: bool, **options: Any) -> None:
        names = _names(options["policies"])
        budget = _budget(options["window"], options["reserve"])
        if options["summarizer"] == "env" and is_demo():
            raise CommandError(
                "No model is configured: set LLM_BASE_URL or LLM_API_KEY, and LLM_MODEL; or use "
                "--summarizer demo."
            )
        counter = counter_for(default_model())
        found = _read(file, counter, options["limit"])
        if options["system"] is not None:
            prompt = clean(options["system"])
            found = tuple(replace(one, system_prompt=prompt) for one in found)
        asyncio.run(self.compare(found, names, budget, counter, options["summarizer"], json))

    async def compare(
        self,
        found: Sequence[importing.Conversation],
        names: Sequence[str],
        budget: Budget,
        counter: Counter,
        summarizer: str,
        as_json: bool,
    ) -> None:
        """Replay every conversation under every policy, and print each as soon as it is done."""
        provider, summariser = _summariser(summarizer, counter)
        done: dict[str, list[Replay]] = {name: [] for name in names}
        try:
            for conversation in found:
                for name in names:
                    done[name].append(
                        await replay(
                            conversation.messages,
                            system_prompt=conversation.system_prompt,
                            policy=PRESETS[name],
                            budget=budget,
                            counter=counter,
                            complete=summariser.complete,
                            ladder=summariser.ladder,
                            fallback=summariser.fallback,
                            room=min(summariser.room, budget.window),
                        )
                    )
                if not as_json:
                    self.stdout.write(_title(conversation, budget, counter))
                    self.table({name: replays[-1:] for name, replays in done.items()})
        finally:
            await provider.aclose()
        if as_json:
            data = _data(found, done, budget, counter, summarizer)
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=1))
            return
        if len(found) > 1:
            self.stdout.write(f"all {len(found)} conversations together")
            self.table(done)
        self.stdout.write(LEGEND.strip("\n"))

    def table(self, done: Mapping[str, Sequence[Replay]]) -> None:
        """A row for each policy, and below the table whatever was wrong with a request."""
        rows = [HEADS, *(_row(name, replays) for name, replays in done.items())]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
        for row in rows:
            cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=True)]
            cells[0], cells[-1] = row[0].ljust(widths[0]), row[-1]
            self.stdout.write("  ".join(cells).rstrip())
        for name, replays in done.items():
            for problem in (one for each in replays for one in each.problems):
                self.stdout.write(self.style.ERROR(f"invalid under {name}: {problem}"))
        self.stdout.write("")


def _names(policies: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, map(str.strip, policies.split(",")))))
    unknown = [name for name in names if name not in PRESETS]
    if unknown or not names:
        shown = f"unknown policy: {', '.join(unknown)}" if unknown else "no policy is named"
        raise CommandError(f"{shown}; there are {', '.join(PRESETS)}")
    return names


def _budget(window: int | None, reserve: int | None) -> Budget:
    target = target_for("")
    try:
        return budget_for(target.window if window is None else window, reserve)
    except ValueError as error:
        raise CommandError(str(error)) from error


def _read(file: Path, counter: Counter, limit: int | None) -> tuple[importing.Conversation, ...]:
    if limit is not None and limit < 1:
        raise CommandError(f"--limit must be at least 1, not {limit}")
    try:
        return importing.conversations(file.read_bytes(), counter, limit=limit)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from error


def _summariser(name: str, counter: Counter) -> tuple[Provider, Summariser]:
    """Who summarises. The demo model says the same again, so it is asked once only."""
    if name == "env":
        provider = Provider()
        return provider, summariser_for(Conversation(), provider, Ladder())
    provider = Provider(DemoTransport(count=counter.count))
    return provider, Summariser(provider.completer(DEMO_MODEL), DEMO_WINDOW, Ladder(tries=1))


def _title(conversation: importing.Conversation, budget: Budget, counter: Counter) -> str:
    messages = conversation.messages
    parts = [
        f"messages {len(messages):,}",
        f"turns {messages[-1].turn:,}",
        f"tokens {sum(message.tokens for message in messages):,}",
        f"system prompt {counter.count(conversation.system_prompt):,}",
        f"usable {budget.usable:,} of {budget.window:,}",
    ]
    if conversation.tools_tokens:
        parts.append(f"left out: tool schemas of {conversation.tools_tokens:,} tokens")
    return f"{conversation.name or 'conversation'}: " + ", ".join(parts)


def _row(name: str, replays: Sequence[Replay]) -> tuple[str, ...]:
    """The figures of a policy; of several conversations their sums."""
    windows = [one.final for one in replays if one.final is not None]
    refused = Tally(one.part for each in replays for one in each.refused)
    wholes = [each.literals for each in replays], [each.folded for each in replays]
    shares = [(sum(one.kept for one in each), sum(one.of for one in each)) for each in wholes]
    sent = (
        sum(len(one.wire) for one in replays),
        sum(one.requests for one in replays),
        sum(one.input_tokens for one in replays),
    )
    kinds = Tally(one.kind or "nothing" for each in replays for one in each.folds)
    others = [f"{kinds[kind]} {kind}" for kind in ("archive", "nothing") if kinds[kind]]
    asked = (
        sum(one.calls for one in replays),
        sum(one.summary_input for one in replays),
        sum(one.summary_output for one in replays),
    )
    return (
        name,
        f"{sum(one.tokens for one in windows):,}" if windows else "-",
        *(f"{number:,}" for number in sent),
        f"{kinds.total():,}" + (f" ({', '.join(others)})" if others else ""),
        *(f"{number:,}" for number in asked),
        *(f"{kept:,}/{of:,}" if of else "-" for kept, of in shares),
        f"{sum(one.seconds for one in replays):.2f}",
        ", ".join(f"{number} {part}" for part, number in sorted(refused.items())) or "-",
    )


def _data(
    found: Sequence[importing.Conversation],
    done: Mapping[str, Sequence[Replay]],
    budget: Budget,
    counter: Counter,
    summarizer: str,
) -> dict[str, Any]:
    """Everything as plain data."""
    return {
        "window": budget.window,
        "usable": budget.usable,
        "counter": counter.name,
        "estimated": counter.estimated,
        "summarizer": summarizer,
        "conversations": [
            {
                "name": one.name,
                "messages": len(one.messages),
                "turns": one.messages[-1].turn,
                "tokens": sum(message.tokens for message in one.messages),
                "system_tokens": counter.count(one.system_prompt),
                "tools_tokens": one.tools_tokens,
                "policies": {name: replays[at].to_dict() for name, replays in done.items()},
            }
            for at, one in enumerate(found)
        ],
    }
