"""The lab: a transcript replayed under a policy, request by request, as the application would have
done it; without a database and with the transcript's own replies.

Every request is checked (`memory.auditing`). Nothing stops at a problem, all are reported. Archives
are not renewed, and the file of an offloading policy is only named.
"""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any

from memory.auditing import problems
from memory.core.budget import Budget
from memory.core.carrying import lost, source_text
from memory.core.fitting import WindowTooSmall
from memory.core.groups import Group, group
from memory.core.literals import Literal, literals
from memory.core.messages import Message
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.tokens import Counter
from memory.core.window import Context, SummaryPart, Window
from memory.core.wire import to_wire
from memory.folding import RETRY_TURNS, Folded, fold
from memory.summarizer import Complete, Completion, Ladder

# As long as the names of the application's files, so that windows cost the same.
FILE = f"{'0' * 8}-{'0' * 4}-{'0' * 4}-{'0' * 4}-{'0' * 12}.jsonl"


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that could not fit: its turn, what was too big, and its size in tokens."""

    turn: int
    part: str
    tokens: int
    usable: int


@dataclass(frozen=True, slots=True)
class Fold:
    """One compaction: in (or after) which turn and why, what it came to (`kind` "": nothing), the
    positions that the summary stands for, what it was made of and is now in tokens, how many
    literals are carried beside it and how many of its own its source does not have."""

    turn: int
    trigger: str
    kind: str
    first: int
    last: int
    source_tokens: int
    tokens: int
    carried: int
    unsupported: int
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the literals of some messages are in the final window."""

    kept: int
    of: int


@dataclass(frozen=True, slots=True)
class Replay:
    """What a policy made of a transcript.

    `final` is the window of the request that would come next, None where that cannot fit
    (`too_small`); `wire` are its messages. `requests` were made (the `refused` ones were not) and
    had `input_tokens` together, the largest `largest`. The summariser was asked `calls` times, with
    `summary_input` and `summary_output` tokens. `literals` are those of the whole transcript,
    `folded` those of the messages that the final summary stands for.
    """

    policy: Policy
    final: Window | None
    wire: tuple[dict[str, Any], ...]
    too_small: Refused | None
    requests: int
    refused: tuple[Refused, ...]
    input_tokens: int
    largest: int
    folds: tuple[Fold, ...]
    calls: int
    summary_input: int
    summary_output: int
    literals: Share
    folded: Share
    problems: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; instead of the segments' messages, which `wire` has, their
        positions."""
        data = asdict(self)
        if self.final is not None:
            data["final"]["tokens"] = self.final.tokens
            for segment in data["final"]["segments"]:
                segment["position"] = segment.pop("message")["position"]
        return data


async def replay(
    messages: Sequence[Message],
    *,
    system_prompt: str,
    policy: Policy,
    budget: Budget,
    counter: Counter,
    complete: Complete,
    ladder: Ladder | None = None,
    fallback: Complete | None = None,
    room: int | None = None,
    tools: int = 0,
    note: str = "",
    keep_tools: Collection[str] = (),
) -> Replay:
    """Walk through a transcript, whose messages have positions from 1, turns and tokens.

    One request is made before each message of the assistant's that answers a user. `room` is what
    the summariser's request may hold, in tokens (default: the window). `tools`, `note` and
    `keep_tools` are as in a Context.
    """
    started = time.perf_counter()
    empty = Context(
        system_prompt, None, (), (), policy, budget, counter, keep_tools, tools=tools, note=note
    )
    run = _Run(empty, room or budget.window, ladder or Ladder())
    run.asks = run.counting(complete), run.counting(fallback) if fallback else None
    for turn, groups in groupby(group(messages), key=lambda one: one.turn):
        await run.take(turn, tuple(groups))
    final: Window | None = None
    too_small: Refused | None = None
    try:
        final = await run.next_window()
    except WindowTooSmall as error:
        too_small = Refused(run.turn, error.part, error.tokens, error.usable)
    return run.result(messages, final, too_small, time.perf_counter() - started)


@dataclass(slots=True)
class _Run:
    """The memory while a transcript is replayed, and what was noted so far."""

    empty: Context
    room: int
    ladder: Ladder
    asks: tuple[Complete, Complete | None] | None = None
    turn: int = 0
    hold_turn: int = 0
    prior: tuple[Group, ...] = ()
    current: tuple[Group, ...] = ()
    summary: SummaryPart | None = None
    requests: list[int] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calls: int = 0
    summary_input: int = 0
    summary_output: int = 0

    def counting(self, complete: Complete) -> Complete:
        """`complete`, with what it is asked and what it answers counted in tokens."""

        async def counted(request: Sequence[dict[str, str]], limit: int) -> Completion:
            self.calls += 1
            self.summary_input += sum(self.empty.counter.count(part["content"]) for part in request)
            answer = await complete(request, limit)
            self.summary_output += self.empty.counter.count(answer.text)
            return answer

        return counted

    async def take(self, turn: int, groups: tuple[Group, ...]) -> None:
        """One turn: a request before whatever answers its user message. A refused one changes
        nothing here: the transcript's answer is as it was."""
        self.prior, self.current, self.turn = self.prior + self.current, (), turn
        asked = groups[0].messages[0].role == "user"
        for members in groups:
            if asked and members.messages[0].role == "assistant":
                try:
                    window = await self.next_window()
                    self.requests.append(window.tokens)
                except WindowTooSmall as error:
                    refused = Refused(turn, error.part, error.tokens, error.usable)
                    self.refused.append(refused)
            self.current += (members,)
        last = groups[-1].messages[0]
        if last.role == "assistant" and not last.tool_calls:
            await self._end()

    async def _end(self) -> None:
        """The turn has its reply; what comes next is the next turn."""
        self.prior, self.current, self.turn = self.prior + self.current, (), self.turn + 1
        decided = self._plan(self._context())
        if decided.action == "fold" and self.empty.policy.when == "after_reply":
            await self._fold(decided)

    async def next_window(self) -> Window:
        """The window of the next request, checked; what is due before a request is done first.
        Raises WindowTooSmall."""
        context = self._context()
        decided = self._plan(context)
        due = self.empty.policy.when == "before_request" or decided.trigger == "budget"
        if self.current and decided.action == "fold" and due:
            await self._fold(decided)
            context = self._context()
            decided = self._plan(context)
        window = context.window(decided)
        body, _ = to_wire(segment.message for segment in window.segments)
        where = f"turn {self.turn}, request {len(self.requests) + len(self.refused) + 1}"
        self.problems += [f"{where}: {one}" for one in problems(body, window, context)]
        return window

    def _context(self) -> Context:
        return replace(self.empty, summary=self.summary, prior=self.prior, current=self.current)

    def _plan(self, context: Context) -> Plan:
        return context.plan(hold=self.hold_turn > self.turn)

    async def _fold(self, decided: Plan) -> None:
        """Compact and go on with the new summary; where nothing shorter was found, wait."""
        assert self.asks is not None
        folded = await fold(
            self._context(),
            decided,
            room=self.room,
            complete=self.asks[0],
            ladder=self.ladder,
            fallback=self.asks[1],
        )
        self._note(folded, decided.trigger or "")
        if not folded.written.kind:
            self.hold_turn = self.turn + RETRY_TURNS + bool(self.current)
            return
        version = self.summary.version + 1 if self.summary else 1
        carried, file = folded.carried, FILE if self.empty.policy.offload else ""
        self.summary = SummaryPart(
            folded.written.text, version, folded.first, folded.last, carried.candidates,
            carried.fitting, folded.unsupported, file, self.turn - 1,
        )  # fmt: skip
        self.prior = tuple(one for one in self.prior if one.first > folded.last)

    def _note(self, folded: Folded, trigger: str) -> None:
        written = folded.written
        turn = self.turn if self.current else self.turn - 1
        fold = Fold(
            turn, trigger, written.kind, folded.first, folded.last, folded.source_tokens,
            folded.tokens, folded.carried.fitting, len(folded.unsupported), written.failures,
        )  # fmt: skip
        self.folds.append(fold)

    def result(
        self,
        messages: Sequence[Message],
        final: Window | None,
        too_small: Refused | None,
        seconds: float,
    ) -> Replay:
        parts = [segment.message for segment in final.segments] if final else []
        text = "\n".join(map(source_text, parts))
        whole, folded = shares(messages, text, self.summary.last if self.summary else 0)
        return Replay(
            policy=self.empty.policy,
            final=final,
            wire=tuple(to_wire(parts)[0]),
            too_small=too_small,
            requests=len(self.requests),
            refused=tuple(self.refused),
            input_tokens=sum(self.requests),
            largest=max(self.requests, default=0),
            folds=tuple(self.folds),
            calls=self.calls,
            summary_input=self.summary_input,
            summary_output=self.summary_output,
            literals=whole,
            folded=folded,
            problems=tuple(self.problems),
            seconds=seconds,
        )


def shares(messages: Iterable[Message], text: str, last: int) -> tuple[Share, Share]:
    """How many of the literals of all messages, and of those up to position `last`, a text has."""
    found: dict[tuple[str, str], tuple[Literal, int]] = {}
    for message in messages:
        for one in literals(source_text(message)):
            found.setdefault((one.kind, one.text.casefold()), (one, message.position))
    missing = set(lost([one for one, _ in found.values()], text))
    older = [one for one, position in found.values() if position <= last]
    kept = sum(one not in missing for one in older)
    return Share(len(found) - len(missing), len(found)), Share(kept, len(older))
