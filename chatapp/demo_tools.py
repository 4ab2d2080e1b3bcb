"""What the demo model does where a request offers tools: one step of calls, or the reply.

What to call is decided by the user's newest message, with values out of this request and nothing
else. What a tool returned is told; it can neither ask for a call nor change what is asked.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatapp.demo_calls import fits, fitted, known
from chatapp.demo_rules import leaves_open, reply_to
from chatapp.demo_seen import QUOTING, Seen, look
from chatapp.demo_telling import told
from chatapp.demo_texts import ASKED_BACK, ASKING_FOR, ASKS, THOUGHT, THOUGHTS, WORDS_OF
from chatapp.demo_wire import NAMED, Offer
from chatapp.demo_wishes import Wish, order_numbers, products_in, wishes

STEPS_MOST = 3  # steps of calls in one turn
SEARCH = QUOTING[0]
# What a tool cannot be called without.
NEEDED = {
    "query_order": "order_number",
    "query_logistics": "order_number",
    "apply_refund": "order_number",
    "query_refund": "number",
    "place_order": "product",
    "read_message": "position",
}
# A message with nothing but an order's number in it.
ONLY_NUMBER = re.compile(r"\W*(?:[^\W\d]+[\W_]+){0,4}(?:[^\W\d]{0,6})\d{5}\W*[^\W\d]{0,2}\W*")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Step:
    """What the model says, and what it calls then; without calls it is the reply."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """A tool to call, the values for its arguments, and the words that the call rests on."""

    tool: str
    values: Mapping[str, Any]
    words: str


def next_step(messages: Sequence[Mapping[str, Any]], offer: Offer) -> Step:
    """The next step of the turn, from nothing but these messages and the tools of the request."""
    seen = look(messages)
    wanted, question = _wanted(seen, offer)
    if offer.choice == NAMED:
        wanted = [one for one in wanted if one.tool == offer.name] or [_any(seen, offer.name)]
    elif offer.choice == "required":
        wanted = wanted or [_first(seen, offer)]
    elif offer.choice == "none" or seen.steps >= STEPS_MOST:
        wanted = []
    if not wanted:
        return Step(_reply(seen, question))
    wanted = wanted if offer.parallel else wanted[:1]
    strict = offer.choice in (NAMED, "required")
    made = [
        (one.tool, fitted(offer.tools[one.tool], one.values, one.words, strict=strict))
        for one in wanted
    ]
    calls = (Call(tool, json.dumps(given, ensure_ascii=False)) for tool, given in made)
    return Step(_thought(seen, made), tuple(calls))


def _wanted(seen: Seen, offer: Offer) -> tuple[list[Intent], str]:
    """The calls that the user's message asks for and that were not made in this turn, and what has
    to be asked before others can be made."""
    done = {result.tool for result in seen.results}
    found, words = _wishes(seen)
    intents: dict[str, Intent] = {}
    question = ""
    for wish in found:
        values = known(seen, wish.kind, wish.text, words)
        for tool in wish.tools:
            needed = NEEDED.get(tool)
            if tool not in offer.tools or tool in done:
                continue
            if needed is not None and needed not in values:
                question = question or seen.say(ASKING_FOR[needed])
            else:
                intents.setdefault(tool, Intent(tool, values, words))
    if SEARCH in offer.tools and SEARCH not in done and not intents and not question:
        intents |= _looked_up(seen, found)
    return list(intents.values()), question


def _wishes(seen: Seen) -> tuple[tuple[Wish, ...], str]:
    """What the user asks for, and the words for it. An answer to a question of the model ("Which
    order is it?") goes on with what was asked for before."""
    newest = next((text for role, text in reversed(seen.said) if role == "user"), "")
    if not newest.strip():
        return (), ""
    paragraphs = [part for part in seen.text.split("\n\n") if part.strip()]
    words = paragraphs[-1] if paragraphs and wishes(paragraphs[-1]) else seen.text
    if _is_answer(seen):
        for earlier in seen.users[-2:-5:-1]:
            before = tuple(one for one in wishes(earlier) if set(one.tools) & NEEDED.keys())
            if before:
                return before, f"{earlier}\n{seen.text}"
    return wishes(words), words


def _is_answer(seen: Seen) -> bool:
    """Whether the newest message only names what the reply before it asked for."""
    replies = [text for role, text in seen.said if role == "assistant"]
    if not replies or not ASKED_BACK.search(replies[-1]) or len(seen.text) > 60:
        return False
    if order_numbers(seen.text, own=True):
        return ONLY_NUMBER.fullmatch(seen.text) is not None
    kinds = {wish.kind for wish in wishes(seen.text)}
    return bool(products_in(seen.text)) and not kinds


def _looked_up(seen: Seen, found: Sequence[Wish]) -> dict[str, Intent]:
    """A search of the transcript, where the messages do not tell what the user asks for."""
    if any(wish.tools for wish in found) or seen.results or not leaves_open(reply_to(seen)):
        return {}
    asked = [kind for kind, (ask, _) in ASKS.items() if re.search(ask, seen.text, re.IGNORECASE)]
    query = " ".join(seen.say(WORDS_OF[kind]) for kind in asked) or " ".join(seen.text.split())
    return {SEARCH: Intent(SEARCH, {"query": query}, seen.text)}


def _any(seen: Seen, tool: str) -> Intent:
    """A call that has to be made, whatever the user said."""
    return Intent(tool, known(seen, "", seen.text, seen.text), seen.text)


def _first(seen: Seen, offer: Offer) -> Intent:
    """The first tool whose arguments are known, else the first."""
    values = _any(seen, "").values
    tools = [name for name, schema in offer.tools.items() if fits(schema, values)]
    return _any(seen, next(iter(tools or offer.tools)))


def _thought(seen: Seen, made: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """What is said before the calls, each thing once."""
    thoughts: dict[str, None] = {}
    for tool, arguments in made:
        both = THOUGHTS.get(tool, THOUGHT)
        try:
            thoughts[seen.say(both).format_map(arguments)] = None
        except KeyError:
            thoughts[seen.say(THOUGHT).format(tool=tool)] = None
    return seen.say((" ", "")).join(thoughts)


def _reply(seen: Seen, question: str) -> str:
    results = [result for result in seen.results if result.tool != SEARCH]
    if results or question:
        return "\n\n".join(filter(None, (told(seen, results), question)))
    return reply_to(seen)
