"""Looking things up in a transcript: what the summary no longer says is still there.

Only what the model may know is found: active messages of one conversation since its last reset.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Case, F, IntegerField, Max, Min, Q, QuerySet, Value, When
from django.db.models.expressions import CombinedExpression

from memory.core.matching import EXACT_WEIGHT, Term, strength, terms_of
from memory.models import Blob, Message, Turn, TurnState

# Messages whose text is loaded and looked at closely.
CANDIDATES_MOST = 500
# The largest position that every database can compare with.
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that was found; `name` is the tool's, of a result."""

    position: int
    turn: int
    role: str
    text: str
    name: str = ""


def search(
    *,
    conversation_id: UUID,
    query: str,
    limit: int,
    before: int | None = None,
    leave_out: Collection[str] = (),
) -> tuple[Hit, ...]:
    """The messages with the most and rarest terms of `query`, at most `limit`, best first and newer
    before older; those of the running turn and the results of the tools `leave_out` are not looked
    at. `before` is a position: only earlier ones.

    Two queries. The first reads no texts, the second those of 500 messages at most.
    """
    terms = terms_of(query)
    if not terms or limit < 1:
        return ()
    running = Turn.objects.filter(conversation_id=conversation_id, state=TurnState.RUNNING)
    rows = _known(conversation_id).exclude(turn__in=running)
    if leave_out:
        rows = rows.exclude(role=Message.Role.TOOL, name__in=leave_out)
    if before is not None:
        rows = rows.filter(position__lt=min(before, _LARGEST))
    found = dict(rows.annotate(terms=_bits(terms)).values_list("position", "terms"))
    rarity = _rarity(found, len(terms))
    likely = _likely(found, terms, rarity)
    weighed = tuple(enumerate(zip(terms, rarity, strict=True)))

    def score(row: Message) -> float:
        bits = found[row.position]
        return sum(
            weight * strength(row.content, term) for at, (term, weight) in weighed if bits >> at & 1
        )

    loaded = rows.filter(position__in=likely).select_related("turn")
    loaded = loaded.only("position", "role", "content", "name", "turn__number")
    ranked = sorted(loaded, key=lambda row: (-score(row), -row.position))
    return tuple(_hit(row, row.content) for row in ranked[:limit])


def message_at(*, conversation_id: UUID, position: int) -> Hit | None:
    """The message at a position, with its calls written out and a result as whole as it was kept;
    None where there is none that the model may know."""
    if not 0 < position <= _LARGEST:
        return None
    row = _known(conversation_id).filter(position=position).select_related("turn").first()
    if row is None:
        return None
    called = [f"[called {call['name']} {call['arguments']}]" for call in row.tool_calls]
    return _hit(row, "\n".join(filter(None, (_whole(row), *called))))


def extent(*, conversation_id: UUID) -> tuple[int, int] | None:
    """The first and the last position that can be read."""
    ends = _known(conversation_id).aggregate(first=Min("position"), last=Max("position"))
    return None if ends["first"] is None else (ends["first"], ends["last"])


def _known(conversation_id: UUID) -> QuerySet[Message]:
    return Message.objects.filter(
        conversation_id=conversation_id,
        active=True,
        position__gte=F("conversation__context_start"),
    ).order_by()


def _bits(terms: Sequence[Term]) -> CombinedExpression | Case:
    """A number with one bit for each term that the content has: every text is gone through once."""
    bits: CombinedExpression | Case = _bit(terms[0], 1)
    for at, term in enumerate(terms[1:], 1):
        bits = bits + _bit(term, 1 << at)
    return bits


def _bit(term: Term, value: int) -> Case:
    condition = Q()
    for form in term.forms:
        # PostgreSQL changes the case of all of the text for `icontains`.
        lookup = "contains" if form.lower() == form.upper() else "icontains"
        condition |= Q((f"content__{lookup}", form))
    return Case(When(condition, then=Value(value)), default=0, output_field=IntegerField())


def _rarity(found: dict[int, int], count: int) -> list[float]:
    """A weight for each term: the rarer, the more."""
    masks = Counter(found.values())
    having = (sum(n for mask, n in masks.items() if mask >> at & 1) for at in range(count))
    return [math.log(1 + (1 + len(found)) / (1 + number)) for number in having]


def _likely(found: dict[int, int], terms: Sequence[Term], rarity: Sequence[float]) -> list[int]:
    """The positions with the best terms, newer before older among equals."""
    weights = [
        weight * (EXACT_WEIGHT if term.exact else 1)
        for term, weight in zip(terms, rarity, strict=True)
    ]
    scores = {
        mask: sum(weight for at, weight in enumerate(weights) if mask >> at & 1)
        for mask in set(found.values())
    }
    having = (position for position, mask in found.items() if mask)
    return sorted(having, key=lambda at: (-scores[found[at]], -at))[:CANDIDATES_MOST]


def _whole(row: Message) -> str:
    """The uncut text of a result that was cut, the content of every other message."""
    key = row.detail.get("whole")
    blob = key and Blob.objects.filter(conversation_id=row.conversation_id, sha256=key).first()
    return bytes(blob.data).decode() if blob else row.content


def _hit(row: Message, text: str) -> Hit:
    name = row.name if row.role == Message.Role.TOOL else ""
    return Hit(row.position, row.turn.number, row.role, text, name)
