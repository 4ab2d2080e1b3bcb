"""S0's demo: a refund, a few other questions, and then "what was that refund number?".

Under `hybrid` the number comes back out of the summary or a carried literal; under a sliding window
of six messages it is gone.
"""

from asyncio import sleep
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext as _

from chatapp.runner import Runner
from memory import store
from memory.models import Conversation, Turn, TurnState

# Six messages stay verbatim, more than ten are folded before the next request (S0).
STRATEGIES: Mapping[str, dict[str, Any]] = {
    "hybrid": {
        "preset": "hybrid",
        "max_messages": 10,
        "keep_messages": 6,
        "when": "before_request",
        "template": "service",
    },
    "window": {"preset": "window", "max_messages": 6},
}
QUESTIONS: Mapping[str, Sequence[str]] = {
    "en": (
        "Where is the parcel of my order 88231?",
        "Then I want a refund: the robot vacuum does not return to its dock.",
        "How long does the refund take?",
        "Is there a new robot vacuum that you can recommend?",
        "How much is the S20 Pro?",
        "By the way, what was that refund number?",
    ),
    "zh-hans": (
        "帮我查一下订单 88231 的物流到哪了",
        "那我要退款，这个扫地机不回充了",
        "退款多久到账？",
        "有没有新款扫地机可以推荐？",
        "S20 Pro 多少钱？",
        "对了，刚才那个退款编号是多少来着？",
    ),
}
TOOLS = ["shop"]
# The pause between two questions, in seconds: time to look at the panel.
PAUSE = 1.0


def new_conversation(*, owner: Any, strategy: str) -> Conversation:
    """An empty conversation for the demo. Raises KeyError for an unknown strategy."""
    return store.create_conversation(
        owner=owner, policy=STRATEGIES[strategy], tools=TOOLS, **_words(strategy)
    )


def begin(*, shown: Conversation, strategy: str) -> Conversation:
    """The conversation in which the demo plays that is started beside another one: that one where
    nothing was said or set in it yet, else a new one. Raises Conversation.DoesNotExist."""
    shown.refresh_from_db()
    untouched = Conversation.objects.filter(pk=shown.pk, next_turn=1, memory_revision=0, title="")
    if untouched.update(policy_data=STRATEGIES[strategy], tools=TOOLS, **_words(strategy)):
        return shown
    return new_conversation(owner=shown.owner, strategy=strategy)


def _words(strategy: str) -> dict[str, str]:
    return {
        "system_prompt": _("You are the customer service of a shop. Answer briefly."),
        "title": _("Refund demo, %(strategy)s") % {"strategy": strategy},
    }


def questions(language: str) -> Sequence[str]:
    """The six questions, in the language that is nearest to this code."""
    return QUESTIONS["zh-hans" if language.lower().startswith("zh") else "en"]


async def play(runner: Runner, conversation: Conversation, texts: Sequence[str]) -> None:
    """Say these texts one after the other, as long as each turn is complete and nobody else says
    anything."""
    rows = Conversation.objects.filter(pk=conversation.pk).values_list("next_turn", flat=True)
    for number, text in enumerate(texts, 1):
        if await rows.afirst() != conversation.next_turn + number - 1:
            return  # another turn came and went in the pause
        try:
            turn, _new = await runner.start_turn(
                conversation_id=conversation.pk,
                model=conversation.model,
                client_id=f"play-{number}",
                text=text,
            )
        except (store.Busy, ObjectDoesNotExist):
            return
        await runner.wait(turn)
        ended = await Turn.objects.filter(pk=turn.pk).afirst()
        if ended is None or ended.state != TurnState.COMPLETE:
            return
        await sleep(PAUSE)
