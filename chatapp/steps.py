"""What happens in a turn, as the agent yields it and the runner takes it."""

from dataclasses import dataclass, field

from chatapp.tools.running import Outcome
from memory.core.messages import ToolCall
from memory.models import MemoryEvent, TurnState


@dataclass(frozen=True, slots=True)
class Phase:
    """What the turn does now; the names are those of `events.TurnStatus`."""

    name: str


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """The next piece of the model's thoughts."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """The step has ended with calls. `text` is what it said before them."""

    text: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Results:
    """What came of the calls of the step, in their order."""

    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """The memory changed."""

    event: MemoryEvent


@dataclass(frozen=True, slots=True)
class Ended:
    """The turn is over. `code` names the limit that ended it, if one did."""

    state: TurnState
    code: str = ""


Step = Phase | Piece | Thought | Called | Results | Changed | Ended


@dataclass(slots=True)
class Answer:
    """What one request has brought so far: `text`, the whole `calls`, the provider's `usage`, the
    state that its end stands for, and whether there were thoughts. `request` is its row's key."""

    request: int = 0
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: dict[str, int] = field(default_factory=dict)
    state: TurnState = TurnState.COMPLETE
    thinks: bool = False

    @property
    def begun(self) -> bool:
        return bool(self.text or self.calls or self.thinks)

    @property
    def empty(self) -> bool:
        """Whether it says nothing, without a reason."""
        said = self.text.strip() or self.calls
        return not said and self.state == TurnState.COMPLETE
