"""The same conversation under every policy: what each would have sent and would still know."""

from itertools import accumulate
from typing import Any

from asgiref.sync import async_to_sync

from chatapp.demo_model import DEMO_MODEL, DEMO_WINDOW, DemoTransport
from chatapp.provider import Provider, target_of
from memory import reading
from memory.core.presets import PRESETS
from memory.encodings import counter_for
from memory.lab import Replay, replay
from memory.models import Conversation
from memory.service import budget_of, schemas_tokens
from memory.summarizer import Ladder

# The newest messages that are replayed, and their tokens: more would hold up the page and, while it
# counts, everybody's streams.
REPLAYED, REPLAYED_TOKENS = 80, 8_000


def comparison(conversation: Conversation) -> dict[str, Any]:
    """Replay the conversation since the last reset under each preset, with the demo model's
    summaries: offline, and the same every time. Its own policy has its own parameters."""
    target = target_of(conversation)
    counter = counter_for(target.model)
    budget = budget_of(conversation, target)
    last = conversation.next_position - 1
    first = conversation.context_start
    positions = conversation.messages.filter(active=True, position__gte=first)
    newest = positions.order_by("-position").values_list("position", "tokens")[:REPLAYED]
    sums = accumulate(tokens for _, tokens in newest)
    edge = [at for (at, _), total in zip(newest, sums, strict=True) if total <= REPLAYED_TOKENS]
    messages = reading.stretch(
        conversation=conversation, first=min(edge, default=last), last=last, counter=counter
    )
    own = conversation.policy

    async def all_of_them() -> list[Replay]:
        provider = Provider(DemoTransport(count=counter.count))
        try:
            return [
                await replay(
                    messages,
                    system_prompt=conversation.system_prompt,
                    policy=own if own.preset == name else preset,
                    budget=budget,
                    counter=counter,
                    complete=provider.completer(DEMO_MODEL),
                    ladder=Ladder(tries=1),
                    room=min(DEMO_WINDOW, budget.counted),
                    tools=schemas_tokens(target.options.get("tools"), counter),
                    note=target.note,
                    keep_tools=target.keep_tools,
                )
                for name, preset in PRESETS.items()
            ]
        finally:
            await provider.aclose()

    replays = async_to_sync(all_of_them)() if messages else []
    return {
        "rows": [_row(one, own.preset) for one in replays],
        "messages": len(messages),
        "cut": positions.count() > len(messages),
    }


def _row(one: Replay, own: str) -> dict[str, Any]:
    return {
        "policy": one.policy.preset,
        "own": one.policy.preset == own,
        "final": one.final.tokens if one.final else None,
        "sent": one.input_tokens + one.summary_input,
        "written": one.summary_output,
        "folds": len(one.folds),
        "kept": one.literals.kept,
        "of": one.literals.of,
        "refused": len(one.refused) + (one.too_small is not None),
    }
