"""The raw messages that compactions folded, in a file for each conversation (S1).

JSON Lines, one message a line, each position once. The file is named in the summary where the
policy says so and goes with its conversation.
"""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from django.conf import settings

logger = logging.getLogger(__name__)

# Bytes at the end of a file in which its last line is looked for first.
TAIL = 65_536


def path_of(conversation_id: UUID) -> Path:
    """Where the file of a conversation is, or would be."""
    return Path(settings.OFFLOAD_DIR) / f"{conversation_id}.jsonl"


def append(conversation_id: UUID, rows: Iterable[dict[str, object]]) -> str:
    """Add messages that are not in the file yet; its name, or "" where it cannot be written: then
    the summary names none, and the transcript still has everything."""
    path = path_of(conversation_id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = _last_position(path)
        with path.open("a", encoding="utf-8") as file:
            for row in rows:
                if int(str(row["position"])) > known:
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
    except (OSError, ValueError):
        logger.warning("the raw messages could not be kept in %s", path, exc_info=True)
        return ""
    return path.name


def remove(conversation_ids: Iterable[UUID]) -> None:
    """Delete the files of conversations that their owner deleted."""
    for conversation_id in conversation_ids:
        path_of(conversation_id).unlink(missing_ok=True)


def _last_position(path: Path) -> int:
    """The position of the last message in the file; 0 for none. Raises ValueError where the file
    is not what was written."""
    if not path.exists() or not path.stat().st_size:
        return 0
    with path.open("rb") as file:
        size = file.seek(0, 2)
        length = min(TAIL, size)
        while True:
            file.seek(size - length)
            lines = file.read(length).splitlines()
            if len(lines) > 1 or length == size:
                return int(json.loads(lines[-1])["position"])
            length = min(2 * length, size)
