"""What is stored: conversations, their turns and messages, and what the memory made of them.

Rows of the transcript are written once, when a step ends. The memory appends versions and events
and changes nothing that is there; only the owner deletes.
"""

from memory.models.requests import Blob, Request, usage_tokens
from memory.models.transcript import Conversation, Message, Turn, TurnState
from memory.models.versions import MemoryEvent, Summary

__all__ = [
    "Blob",
    "Conversation",
    "MemoryEvent",
    "Message",
    "Request",
    "Summary",
    "Turn",
    "TurnState",
    "usage_tokens",
]
