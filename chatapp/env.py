"""Reading settings from the environment, with errors that name the variable and the rule."""

import json
import os
import secrets
from pathlib import Path
from typing import Any, overload

from django.core.exceptions import ImproperlyConfigured

TRUE, FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def flag(name: str, default: bool = False) -> bool:
    value = os.environ.get(name)
    if value is None:
        return default
    if value.strip().lower() in TRUE:
        return True
    if value.strip().lower() in FALSE:
        return False
    raise ImproperlyConfigured(f"{name} must be 1 or 0, not {value!r}")


def optional_flag(name: str) -> bool | None:
    """As `flag`, None where the variable is not set."""
    return flag(name) if text(name) else None


def choice(name: str, allowed: tuple[str, ...]) -> str:
    """One of some words, or "" where the variable is not set."""
    value = text(name).lower()
    if value and value not in allowed:
        raise ImproperlyConfigured(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def word(name: str) -> str | None:
    """A name; "none" is the empty one, and None means that the variable is not set."""
    value = text(name)
    if value and not value.isidentifier():
        raise ImproperlyConfigured(f"{name} must be a field's name or none, not {value!r}")
    return None if not value else "" if value == "none" else value


def json_object(name: str, *, never: tuple[str, ...] = ()) -> dict[str, Any]:
    """A JSON object, without the keys `never`; an empty one where the variable is not set."""
    value = text(name)
    try:
        data = json.loads(value) if value else {}
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object, not {value!r}")
    if reserved := [key for key in never if key in data]:
        raise ImproperlyConfigured(f"{name} must not set {', '.join(reserved)}")
    return data


@overload
def number(name: str, default: int, *, least: int = 0) -> int: ...
@overload
def number(name: str, default: None = None, *, least: int = 0) -> int | None: ...
def number(name: str, default: int | None = None, *, least: int = 0) -> int | None:
    value = text(name)
    if not value:
        return default
    if not value.isdecimal() or int(value) < least:
        raise ImproperlyConfigured(
            f"{name} must be a whole number of at least {least}, not {value!r}"
        )
    return int(value)


def seconds(name: str, default: float) -> float:
    value = text(name)
    try:
        result = float(value) if value else default
    except ValueError:
        result = -1
    if not 0 <= result < 86_400:
        raise ImproperlyConfigured(f"{name} must be a number of seconds, not {value!r}")
    return result


def listed(name: str, default: str = "") -> list[str]:
    return [part.strip() for part in text(name, default).split(",") if part.strip()]


def secret(name: str, file: Path) -> str:
    """The secret in the variable `name`, or the one in `file`, made there on the first start."""
    value = text(name)
    if value:
        return value
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        pass
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(secrets.token_urlsafe(48))
    try:
        os.link(draft, file)  # the first process wins, the others read what it wrote
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return file.read_text().strip()
