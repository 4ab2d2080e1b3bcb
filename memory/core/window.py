"""The context window: the segments of one request, what each is and why it is there."""

import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory.core import prompts
from memory.core.budget import Budget
from memory.core.carrying import Candidate, render
from memory.core.cutting import Costs
from memory.core.fitting import Fitted, fit
from memory.core.groups import Group, group_tokens, positions, sendable
from memory.core.literals import Literal
from memory.core.messages import Message
from memory.core.planning import Action, Plan, Trigger, measure, plan
from memory.core.policy import Policy
from memory.core.shortening import apply, prune_results, shorten_arguments, sizes_for, whole_tokens
from memory.core.tokens import Counter, message_tokens

Kind = typing.Literal[
    "system", "tools", "facts", "summary", "tail", "retrieved", "current", "working"
]
Reason = typing.Literal["folded", "outside-window", "omitted", "orphan", "no-room"]


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of the window.

    `message` is what it says (for the summary: its rendered text). `why` is a code for the reason
    it is there. `made` marks a message that is not the transcript's own (a stub). A summary has
    its version and the range of positions it stands for. A shortened message has in `whole` what
    it costs as it stands in the transcript, in tokens; else 0.
    """

    kind: Kind
    message: Message
    tokens: int
    why: str
    made: bool = False
    version: int = 0
    first: int = 0
    last: int = 0
    whole: int = 0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages of the context that this request does not contain. Tokens of the messages.

    "omitted" without positions is the summary itself, "no-room" a further part of the memory.
    """

    reason: Reason
    positions: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """The active summary as the window needs it: its text, version and range of positions.

    `candidates` are the exact values that the text lost, of which the first `fitting` are carried
    in the window; `unsupported` those that it made up. `file` is where the raw messages are kept,
    `turn` the last turn that had ended when it was made.
    """

    text: str
    version: int
    first: int
    last: int
    candidates: tuple[Candidate, ...] = ()
    fitting: int = 0
    unsupported: tuple[Literal, ...] = ()
    file: str = ""
    turn: int = 0

    def body(self) -> str:
        """What it says in the window, without the fence."""
        carried = render(one.literal for one in self.candidates[: self.fitting])
        return prompts.summary_body(self.text, carried, self.file)


@dataclass(frozen=True, slots=True)
class Window:
    """The context window of one request."""

    segments: tuple[Segment, ...]
    left_out: tuple[LeftOut, ...]
    budget: Budget
    tools: int = 0

    @property
    def tokens(self) -> int:
        """The cost of the request in tokens: an upper bound, its segments and its tools' schemas
        (`tools`)."""
        return sum(segment.tokens for segment in self.segments) + self.tools


@dataclass(frozen=True, slots=True)
class Context:
    """What a window is made of: everything the memory holds for one conversation.

    `keep_tools` are the tools whose results the rungs leave alone: they are memory themselves (S1).
    `parts` are further parts of the memory, "facts" or "retrieved", the dearest first: where there
    is no room the last ones go. `tools` is what the schemas of the tools cost, in tokens, `note`
    what the model is told about them beside its system prompt.
    """

    system_prompt: str
    summary: SummaryPart | None
    prior: tuple[Group, ...]
    current: tuple[Group, ...]
    policy: Policy
    budget: Budget
    counter: Counter
    keep_tools: Collection[str] = ()
    parts: tuple[Segment, ...] = ()
    tools: int = 0
    note: str = ""

    def system_segments(self) -> tuple[Segment, ...]:
        """The system prompt, and what the model is told about its tools."""
        parts: tuple[tuple[Kind, str, str], ...] = (
            ("system", self.system_prompt, "system-prompt"),
            ("tools", self.note, "tools-offered"),
        )
        messages = [(kind, Message("system", text), why) for kind, text, why in parts if text]
        return tuple(
            Segment(kind, message, message_tokens(message, self.counter), why)
            for kind, message, why in messages
        )

    def summary_segment(self) -> Segment | None:
        if self.summary is None:
            return None
        part = self.summary
        label = f'version="{part.version}" positions="{part.first}-{part.last}"'
        fenced = prompts.memory_part("summary", label, part.body())
        message = Message("system", f"{prompts.MEMORY_PREAMBLE}\n{fenced}")
        tokens = message_tokens(message, self.counter)
        return Segment(
            "summary", message, tokens, "folded", False, part.version, part.first, part.last
        )

    def plan(self, *, force: bool = False, hold: bool = False) -> Plan:
        """Whether to compact before the next request, and which groups.

        Where the policy has the rungs, old arguments and results are shortened first, and what is
        planned is the shortened context (S1).
        """
        shortened = self._rungs()
        prior = apply(self.prior, shortened) if shortened else self.prior
        decided = plan(
            prior,
            self.measure(prior),
            self.policy,
            self.budget,
            self.counter,
            self.keep_tools,
            force=force,
            hold=hold,
        )
        if not shortened:
            return decided
        whole = {**decided.whole, **whole_tokens(self.prior, shortened)}
        return replace(decided, whole=whole)

    def _rungs(self) -> dict[int, Message]:
        """The shortened messages by position. Those of the current turn stay as they are: only
        what is before it is planned with these."""
        groups = (*self.prior, *self.current)
        if not self.policy.rungs or not any(one.messages[0].tool_calls for one in groups):
            return {}
        sizes = sizes_for(self.budget)
        shortened = shorten_arguments(groups, sizes, self.counter)
        shortened |= prune_results(groups, sizes, self.counter, self.keep_tools)
        return shortened

    def measure(self, prior: tuple[Group, ...] | None = None) -> Costs:
        """The costs of this context, in tokens; with other prior groups where they are given."""
        summary = self.summary_segment()
        return measure(
            self.prior if prior is None else prior,
            self.current,
            self.policy,
            fixed=sum(segment.tokens for segment in self.system_segments())
            + self.tools
            + sum(part.tokens for part in self.parts),
            summary=summary.tokens if summary else 0,
            counter=self.counter,
            compacted_turn=self.summary.turn if self.summary else 0,
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
        elif decided.head:
            decided = decided.unfolded()
        cost = summary.tokens if summary else 0
        fitted = fit(
            decided,
            self.current,
            self.policy,
            self.budget,
            cost,
            self.counter,
            parts=[part.tokens for part in self.parts],
            tools=self.tools
            + sum(one.tokens for one in self.system_segments() if one.kind == "tools"),
            keep_tools=self.keep_tools,
        )
        return Window(
            self._segments(fitted, summary),
            self._left_out(fitted, summary, outside),
            self.budget,
            self.tools,
        )

    def _segments(self, fitted: Fitted, summary: Segment | None) -> tuple[Segment, ...]:
        why = {"keep": "everything", "leave-out": "within-last", "summary": "not-folded"}
        memory = self.parts[: fitted.parts]
        facts = (part for part in memory if part.kind == "facts")
        parts = [*self.system_segments(), *facts]
        parts += [summary] if summary and fitted.keeps_summary else []
        parts += _verbatim(fitted.kept, "tail", why[self.policy.older], fitted.whole, self.counter)
        parts += [part for part in memory if part.kind == "retrieved"]
        # Of the running turn the steps so far are its working memory (S3).
        question = 1 if fitted.current and fitted.current[0].messages[0].role == "user" else 0
        asked, steps = fitted.current[:question], fitted.current[question:]
        parts += _verbatim(asked, "current", "current-turn", fitted.whole, self.counter)
        parts += _verbatim(steps, "working", "working-memory", fitted.whole, self.counter)
        return tuple(parts)

    def _left_out(
        self, fitted: Fitted, summary: Segment | None, outside: tuple[Group, ...]
    ) -> tuple[LeftOut, ...]:
        left_out = []
        if outside:
            left_out.append(LeftOut("outside-window", *_weighed(outside, self.counter)))
        if fitted.omitted:
            left_out.append(LeftOut("omitted", *_weighed(fitted.omitted, self.counter)))
        if summary and not fitted.keeps_summary:
            left_out.append(LeftOut("omitted", (), summary.tokens))
        if self.parts[fitted.parts :]:
            left_out.append(
                LeftOut("no-room", (), sum(one.tokens for one in self.parts[fitted.parts :]))
            )
        unsent = _unsent((*fitted.kept, *fitted.current), self.counter)
        if unsent:
            numbers = tuple(message.position for message in unsent)
            left_out.append(LeftOut("orphan", numbers, sum(one.tokens for one in unsent)))
        return tuple(left_out)


def _verbatim(
    groups: Iterable[Group], kind: Kind, why: str, whole: Mapping[int, int], counter: Counter
) -> list[Segment]:
    return [
        Segment(
            kind,
            message,
            message.tokens,
            why,
            made,
            whole=0 if made else whole.get(message.position, 0),
        )
        for members in groups
        for message, made in sendable(members, counter)
    ]


def _unsent(groups: Iterable[Group], counter: Counter) -> list[Message]:
    """The messages of groups that a provider would not accept: results without a call."""
    unsent = []
    for members in groups:
        sent = {message.position for message, _ in sendable(members, counter)}
        unsent += [message for message in members.messages if message.position not in sent]
    return unsent


def _weighed(groups: Sequence[Group], counter: Counter) -> tuple[tuple[int, ...], int]:
    """The positions of the groups and their cost in tokens."""
    return positions(groups), sum(group_tokens(members, counter) for members in groups)


__all__ = ["Action", "Context", "LeftOut", "Segment", "SummaryPart", "Trigger", "Window"]
