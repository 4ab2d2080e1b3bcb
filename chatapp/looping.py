"""What keeps the loop of a turn finite, and its calls fit to be stored: pure decisions."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.conf import settings
from django.utils import timezone

from chatapp.failures import ProviderError
from chatapp.steps import Answer
from chatapp.tools.registry import NAME, ToolContext
from chatapp.tools.running import Outcome, storable_arguments
from memory import service
from memory.core.messages import ToolCall
from memory.core.text import script_language
from memory.models import Conversation

# How often the same failing call is run, how often a repetition is refused, and how often a reply
# that was cut off within a call is answered; then the turn ends.
TRIES = 2
REFUSALS_MOST = 2
CUTS_MOST = 2
# How often one turn compacts.
COMPACTIONS_MOST = 3
# How often one turn goes on after the provider refused its request as too long.
TIGHTENED_MOST = 4
# Characters of a call's id that every server takes.
ID_MOST = 40


@dataclass(slots=True)
class Loop:
    """The steps of one turn so far, held against its limits. `failures` are the keys of the calls
    that failed since anything new was learnt."""

    conversation: Conversation
    steps: int = 0
    compactions: int = 0
    tightened: int = 0
    refused: int = 0
    cuts: int = 0
    failures: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def may_compact(self, assembled: service.Assembled) -> bool:
        """Whether to compact before the next step; counted."""
        wanted = service.wants_compaction(assembled, before_request=True)
        self.compactions += wanted
        return wanted and self.compactions <= COMPACTIONS_MOST

    def may_tighten(self, error: ProviderError, answer: Answer) -> bool:
        """Whether to begin a step anew with a smaller request, since the provider refused it as too
        long; counted."""
        wanted = error.code == "too-long" and not answer.begun
        self.tightened += wanted
        self.steps -= wanted
        return wanted and self.tightened <= TIGHTENED_MOST

    def limit(self, assembled: service.Assembled) -> str | None:
        """Why no further step may begin, as a code ("" where replies were cut off); None if it may,
        which is counted.

        The tokens are those that the turn's own steps take, as they are stored: what is before them
        is bounded by the memory's policy.
        """
        found = self.conversation
        most = settings.TURN_MAX_STEPS if found.max_steps is None else found.max_steps
        tokens = settings.TURN_TOKENS if found.turn_tokens is None else found.turn_tokens
        if self.refused >= REFUSALS_MOST:
            return "repeated-calls"
        if self.cuts > CUTS_MOST:
            return ""
        if self.steps >= most:
            return "max-steps"
        if self.steps and working_tokens(assembled) >= tokens:
            return "turn-tokens"
        self.steps += 1
        return None

    def note(self, outcomes: Sequence[Outcome]) -> None:
        """Remember what came of a step's calls."""
        learnt = {one.key for one in outcomes if one.ok}
        if learnt - self.known:
            self.failures.clear()  # what failed may work now
        self.known |= learnt
        own = ("repeated", "cut-off", "too-many")
        self.failures += [one.key for one in outcomes if one.error and one.error not in own]
        self.refused += any(one.error == "repeated" for one in outcomes)
        self.cuts += any(one.error == "cut-off" for one in outcomes)


def working_tokens(assembled: service.Assembled) -> int:
    """What the steps of the running turn take as they are stored, in tokens."""
    messages = [message for members in assembled.context.current for message in members.messages]
    return sum(message.tokens for message in messages if message.role != "user")


def context_of(assembled: service.Assembled) -> ToolContext:
    """What the tools may know: the conversation, the language of the user's message, the time."""
    asked = [message for members in assembled.context.current for message in members.messages]
    language = script_language(asked[0].content) if asked else ""
    return ToolContext(assembled.conversation.pk, language or "en", timezone.localtime)


def rest_hints(first: int, count: int) -> tuple[str, ...]:
    """What a result that is cut says of its rest: the results stand from position `first` on."""
    return tuple(
        f"[The rest: read_message with position {position} and start, a number of characters.]"
        for position in range(first, first + count)
    )


def storable(call: ToolCall, at: int) -> ToolCall:
    """A call as it is stored and sent again: whatever the model made of it, servers accept it."""
    known = call.id.isascii() and call.id.isprintable() and 0 < len(call.id) <= ID_MOST
    digest = hashlib.sha256(call.id.encode("utf-8", "surrogatepass")).hexdigest()
    name = call.name if NAME.fullmatch(call.name) else re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)
    return ToolCall(
        call.id if known else f"call_{at}_{digest[:16]}",
        name[:64] or "unnamed",
        storable_arguments(call.arguments),
    )
