"""What can go wrong with a provider, as kinds that are told in words and perhaps tried again."""

import re

import httpx2
import openai
from django.conf import settings

from chatapp.deltas import StreamError
from memory.core.text import clean

# How servers say that a request is longer than their window (OpenAI, vLLM; llama.cpp).
TOO_LONG = re.compile(
    "context length|available context size|exceed_context_size|prompt is too long", re.IGNORECASE
)
_CODE_TOO_LONG = "context_length_exceeded"
# And how they say how long it is, and how large their window, in tokens.
_LENGTHS = re.compile(
    r"(?:resulted in|has|request \(|too long:) ?(?P<a>\d[\d,]*) (?:input )?tokens"
    r"|\((?P<b>\d[\d,]*) in the messages",
    re.IGNORECASE,
)
_WINDOWS = re.compile(
    r"context (?:length|size)(?: is| of only)? \(?(?P<a>\d[\d,]*)|> (?P<b>\d[\d,]*) maximum",
    re.IGNORECASE,
)
# What may be over a moment later.
PASSING = frozenset({"connect", "rate-limit", "server", "stream"})


class ProviderError(Exception):
    """A request failed. `code` names the kind, `detail` is the provider's own words, without the
    key in case they repeat it: they are stored and shown. `pause` is how long the provider asks to
    be left alone, in seconds; None where it does not say."""

    def __init__(self, code: str, detail: str = "", pause: float | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.pause = pause
        key = settings.LLM_API_KEY
        self.detail = clean(detail.replace(key, "…") if key else detail)


def as_provider_error(error: Exception) -> ProviderError:
    """The kind of a client's error, for words the user understands."""
    detail = str(error)[:500]
    match error:
        case StreamError():
            too_long = error.reason == _CODE_TOO_LONG or TOO_LONG.search(error.detail)
            code = "too-long" if too_long and error.code == "server" else error.code
            return ProviderError(code, error.detail)
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return ProviderError("timeout", detail)
        case openai.AuthenticationError() | openai.PermissionDeniedError():
            return ProviderError("auth", detail)
        case openai.RateLimitError():
            code = "quota" if error.code == "insufficient_quota" else "rate-limit"
            return ProviderError(code, detail, _pause(error.response))
        case openai.NotFoundError():
            return ProviderError("no-model", detail)
        case openai.APIStatusError():
            if error.code == _CODE_TOO_LONG or TOO_LONG.search(detail):
                return ProviderError("too-long", detail)
            if error.status_code >= 500:
                return ProviderError("server", detail, _pause(error.response))
            return ProviderError("refused", detail)
        case openai.APIConnectionError():
            return ProviderError("connect", detail)
        case _:
            return ProviderError("stream", detail)


def lengths_told(detail: str) -> tuple[int | None, int | None]:
    """The length of a request that was too long and the window that it had to fit into, both in
    tokens, as a server's words give them; None for what they do not."""
    return _number(_LENGTHS, detail), _number(_WINDOWS, detail)


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int((found["a"] or found["b"]).replace(",", "")[:9]) if found else None


def _pause(response: httpx2.Response) -> float | None:
    """The seconds in a Retry-After header; its form with a date is rare and not read."""
    value = response.headers.get("retry-after", "").strip()
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", value) else None
