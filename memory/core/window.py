"""The context window: the segments of one request, what each is and why it is there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory.core import prompts
from memory.core.budget import Budget
from memory.core.groups import Group, group_tokens, positions, sendable
from memory.core.messages import Message
from memory.core.planning import Action, Costs, Plan, Trigger, fit, measure, plan
from memory.core.policy import Policy
from memory.core.tokens import Counter, message_tokens

Kind = Literal["system", "summary", "tail", "current"]
Reason = Literal["folded", "outside-window", "omitted", "orphan"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the window.

    `message` is what it says (for the summary: its rendered text). `why` is a code for the reason
    it is there. `made` marks a message that is not the transcript's own (a stub). A summary has
    its version and the range of positions it stands for.
    """

    kind: Kind
    message: Message
    tokens: int
    why: str
    made: bool = False
    version: int = 0
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages of the context that this request does not contain. Tokens of the messages.

    "omitted" without positions is the summary itself.
    """

    reason: Reason
    positions: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """The active summary as the window needs it: its text, version and range of positions."""

    text: str
    version: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of one request."""

    segments: tuple[Segment, ...]
    left_out: tuple[LeftOut, ...]
    budget: Budget

    @property
    def tokens(self) -> int:
        """The cost of the request in tokens: an upper bound, the sum of its segments."""
        return sum(segment.tokens for segment in self.segments)


@dataclass(frozen=True, slots=True)
class Context:
    """What a window is made of: everything the memory holds for one conversation."""

    system_prompt: str
    summary: SummaryPart | None
    prior: tuple[Group, ...]
    current: tuple[Group, ...]
    policy: Policy
    budget: Budget
    counter: Counter

    def system_segment(self) -> Segment | None:
        if not self.system_prompt:
            return None
        message = Message("system", self.system_prompt)
        return Segment("system", message, message_tokens(message, self.counter), "system-prompt")

    def summary_segment(self) -> Segment | None:
        if self.summary is None:
            return None
        part = self.summary
        label = f'version="{part.version}" positions="{part.first}-{part.last}"'
        fenced = prompts.memory_part("summary", label, part.text)
        message = Message("system", f"{prompts.MEMORY_PREAMBLE}\n{fenced}")
        tokens = message_tokens(message, self.counter)
        return Segment(
            "summary", message, tokens, "folded", False, part.version, part.first, part.last
        )

    def measure(self) -> Costs:
        """The costs of this context, in tokens."""
        system, summary = self.system_segment(), self.summary_segment()
        return measure(
            self.prior,
            self.current,
            fixed=system.tokens if system else 0,
            summary=summary.tokens if summary else 0,
            counter=self.counter,
        )

    def plan(self, *, force: bool = False, hold: bool = False) -> Plan:
        """Whether to compact before the next request, and which groups."""
        return plan(
            self.prior,
            self.current,
            self.measure(),
            self.policy,
            self.budget,
            force=force,
            hold=hold,
        )

    def window(self, decided: Plan) -> Window:
        """The window of the next request. Raises WindowTooSmall.

        A planned fold that was not committed is ignored: its groups are still sent as far as they
        fit, and the oldest are left out of this one request.
        """
        summary = self.summary_segment()
        outside: tuple[Group, ...] = ()
        if decided.action == "leave-out":
            outside = decided.head
        else:
            decided = Plan("send", (), self.prior, decided.trigger, decided.costs)
        cost = summary.tokens if summary else 0
        omitted, kept, keeps_summary = fit(decided, self.policy, self.budget, cost)
        segments = [self.system_segment(), summary if keeps_summary else None]
        why = {"keep": "everything", "leave-out": "within-last", "summary": "not-folded"}
        parts = [segment for segment in segments if segment]
        parts += _verbatim(kept, "tail", why[self.policy.older], self.counter)
        parts += _verbatim(self.current, "current", "current-turn", self.counter)
        left_out = []
        if outside:
            left_out.append(LeftOut("outside-window", *_weighed(outside, self.counter)))
        if omitted:
            left_out.append(LeftOut("omitted", *_weighed(omitted, self.counter)))
        if summary and not keeps_summary:
            left_out.append(LeftOut("omitted", (), summary.tokens))
        sent = {segment.message.position for segment in parts}
        unsent = [
            message
            for members in (*kept, *self.current)
            for message in members.messages
            if message.position not in sent
        ]
        if unsent:
            numbers = tuple(message.position for message in unsent)
            left_out.append(LeftOut("orphan", numbers, sum(one.tokens for one in unsent)))
        return Window(tuple(parts), tuple(left_out), self.budget)


def _verbatim(groups: Iterable[Group], kind: Kind, why: str, counter: Counter) -> list[Segment]:
    return [
        Segment(kind, message, message.tokens, why, made)
        for members in groups
        for message, made in sendable(members, counter)
    ]


def _weighed(groups: Sequence[Group], counter: Counter) -> tuple[tuple[int, ...], int]:
    """The positions of the groups and their cost in tokens."""
    return positions(groups), sum(group_tokens(members, counter) for members in groups)


__all__ = [
    "Action",
    "Context",
    "LeftOut",
    "Segment",
    "SummaryPart",
    "Trigger",
    "Window",
]
