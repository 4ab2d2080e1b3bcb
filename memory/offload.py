"""The raw messages that compactions folded, in a file for each conversation (S1).

JSON Lines, one message a line, each position once. The file is named in the summary where the
policy says so, and then has all that the summary stands for; it goes with its conversation.
"""

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.conf import settings

logger = logging.getLogger(__name__)


def path_of(conversation_id: UUID) -> Path:
    """Where the file of a conversation is, or would be."""
    return Path(settings.OFFLOAD_DIR) / f"{conversation_id}.jsonl"


def kept(conversation_id: UUID) -> frozenset[int] | None:
    """The positions of the messages in the file; None where it is not what was written."""
    path = path_of(conversation_id)
    try:
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # a write that broke off
            os.truncate(path, whole)
        lines = data[:whole].splitlines()
        return frozenset(int(json.loads(line)["position"]) for line in lines)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError):
        logger.warning("the raw messages in %s cannot be read", path, exc_info=True)
        return None


def append(conversation_id: UUID, rows: Iterable[dict[str, object]]) -> str:
    """Add messages to the file; its name, or "" where it cannot be written: then the summary names
    none, and the transcript still has everything."""
    path = path_of(conversation_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except OSError:
        logger.warning("the raw messages could not be kept in %s", path, exc_info=True)
        return ""
    return path.name


def remove(conversation_id: UUID) -> None:
    """Delete the file of a conversation that is no more."""
    path_of(conversation_id).unlink(missing_ok=True)
