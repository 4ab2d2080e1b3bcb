"""What servers that speak chat completions differ in, and the defaults that work with each."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

from memory.core.messages import PLAIN, Habits


@dataclass(frozen=True, slots=True)
class Server:
    """The habits of one kind of server.

    `habits` are those of messages, `most_tokens` is the name of the parameter that bounds a reply,
    `usage` whether it reports usage in a stream when asked.
    """

    habits: Habits = PLAIN
    most_tokens: str = "max_tokens"
    usage: bool = True


OTHER = "other"
SERVERS: Mapping[str, Server] = {
    "openai": Server(most_tokens="max_completion_tokens"),
    # Refuses a later step of a turn without the thoughts of the earlier ones.
    "deepseek": Server(Habits(reasoning="reasoning_content")),
    # Templates there write null out as "None", or fail on it.
    "ollama": Server(Habits(null_content=False)),
    "vllm": Server(Habits(null_content=False)),
    "llamacpp": Server(Habits(null_content=False)),
    OTHER: Server(),
}
# The ports that these listen on unless they are told another one.
PORTS = {11434: "ollama", 8000: "vllm", 8080: "llamacpp"}


def kind_of(address: str) -> str:
    """The kind of the server at an address, as far as the address tells; "" is OpenAI's own."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if not address or host.endswith("openai.com") or host.endswith("openai.azure.com"):
        return "openai"
    if host.endswith("deepseek.com"):
        return "deepseek"
    return PORTS.get(parts.port or 0, OTHER)


def configured() -> Server:
    """The server that the settings describe: its kind's defaults, and what they say otherwise."""
    somewhere = settings.LLM_BASE_URL or settings.LLM_API_KEY  # else the demo model answers
    kind = settings.LLM_SERVER or (kind_of(settings.LLM_BASE_URL) if somewhere else OTHER)
    known = SERVERS[kind]
    field, null = settings.LLM_REASONING_FIELD, settings.LLM_NULL_CONTENT
    return Server(
        Habits(
            reasoning=known.habits.reasoning if field is None else field,
            null_content=known.habits.null_content if null is None else null,
        ),
        known.most_tokens,
        known.usage if settings.LLM_STREAM_USAGE is None else settings.LLM_STREAM_USAGE,
    )


def key_can_be_sent() -> bool:
    """Whether the key can be the value of a header: printable ASCII, as all keys are."""
    return settings.LLM_API_KEY.isascii() and settings.LLM_API_KEY.isprintable()
