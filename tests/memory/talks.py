"""A conversation played request by request: each is planned, folded if the plan says so, sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from memory.core.budget import Budget
from memory.core.groups import group
from memory.core.messages import Message
from memory.core.planning import Plan
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.tokens import Counter
from memory.core.window import Context, SummaryPart, Window
from tests.builders import COUNTER, reply, user

Summarise = Callable[[str, Sequence[Message]], str]


def all_texts(previous: str, folded: Sequence[Message]) -> str:
    """A summary that loses nothing."""
    return " / ".join([previous, *(message.content for message in folded)]).strip(" /")


@dataclass
class Talk:
    """A conversation under a policy. One word is one token, messages cost nothing else.

    `requests` has the plan and the window of every request, `folds` the positions that each
    compaction folded, by the number of its request.
    """

    policy: Policy
    budget: Budget
    system_prompt: str = "be brief"
    summarise: Summarise = all_texts
    counter: Counter = COUNTER
    messages: list[Message] = field(default_factory=list)
    summary: SummaryPart | None = None
    requests: list[tuple[Plan, Window]] = field(default_factory=list)
    folds: dict[int, list[int]] = field(default_factory=dict)
    start: int = 1

    def say(self, *messages: Message) -> None:
        """The messages join the transcript."""
        for message in messages:
            last = self.messages[-1] if self.messages else Message("user", "")
            self.messages.append(
                replace(
                    message,
                    position=last.position + 1,
                    turn=last.turn + (message.role == "user"),
                    tokens=self.counter.count(message.content),
                )
            )

    def context(self, *, ended: bool = False) -> Context:
        """The context of the next request; `ended`: no turn is running."""
        start = max(self.start, self.summary.last + 1 if self.summary else 1)
        now = 0 if ended or not self.messages else self.messages[-1].turn
        after = [message for message in self.messages if message.position >= start]
        return Context(
            system_prompt=self.system_prompt,
            summary=self.summary,
            prior=group(message for message in after if message.turn != now),
            current=group(message for message in after if message.turn == now),
            policy=self.policy,
            budget=self.budget,
            counter=self.counter,
        )

    def request(self) -> Window:
        """One request of the running turn, with the compaction before it."""
        plan = self.context().plan()
        if plan.action == "fold":
            folded = [message for one in plan.head for message in one.messages]
            self.folds[len(self.requests) + 1] = [message.position for message in folded]
            old = self.summary
            self.summary = SummaryPart(
                text=self.summarise(old.text if old else "", folded),
                version=old.version + 1 if old else 1,
                first=old.first if old else folded[0].position,
                last=folded[-1].position,
                turn=self.messages[-1].turn - 1,
            )
        made = self.context()
        window = made.window(made.plan(hold=plan.action == "fold"))
        self.requests.append((plan, window))
        return window

    def turn(self, question: str, answer: str) -> Window:
        """A whole turn of one request."""
        self.say(user(question))
        window = self.request()
        self.say(reply(answer))
        return window

    def turns(self, number: int, words: int = 3) -> None:
        """So many turns whose question and answer have so many words each."""
        for _ in range(number):
            turn = self.messages[-1].turn + 1 if self.messages else 1
            self.turn(" ".join([f"q{turn}"] * words), " ".join([f"a{turn}"] * words))

    def reset(self) -> None:
        """The context starts anew."""
        self.summary, self.start = None, len(self.messages) + 1


def talk(preset: str, budget: Budget | None = None, **changes: object) -> Talk:
    """A talk under a preset with changed parameters."""
    return Talk(policy_from({"preset": preset, **changes}), budget or Budget(100_000, 1_000))


def shape(window: Window) -> list[str]:
    """What the window is made of: "system", "summary", and the first word of each message."""
    return [
        segment.kind
        if segment.kind in ("system", "summary")
        else segment.message.content.split()[0]
        for segment in window.segments
    ]
