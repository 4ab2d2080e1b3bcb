"""The memory's own tools: the model looks up what its window no longer has.

What they give is text of the transcript, so it is data like any other result.
"""

from typing import Annotated

from channels.db import database_sync_to_async
from pydantic import Field

from chatapp.tools.registry import Toolbox, ToolContext, ToolError, tool
from memory import search as finding
from memory.core.matching import excerpt, terms_of
from memory.core.text import whole_edge

# Messages that one search gives, and characters of each.
HITS, HITS_MOST = 5, 20
EXCERPT = 400
# Characters of a message that are read at once: below what a result may have.
READ_MOST = 3_000
# Results of these are copies of what stands elsewhere.
NAMES = ("search_memory", "read_message")


@tool(retrieval=True)
async def search_memory(
    query: Annotated[str, Field(description="words, names, ids or numbers to look for")],
    limit: Annotated[
        int, Field(ge=1, le=HITS_MOST, description=f"most messages to give; {HITS} if null")
    ] = HITS,
    *,
    context: ToolContext,
) -> str:
    """Search the earlier messages of this conversation, also those that only a summary stands for
    now. Gives the best ones with their numbers in brackets and the text around the words."""
    terms = terms_of(query)
    if not terms:
        raise ToolError("The query has no words to look for.")
    hits = await database_sync_to_async(finding.search)(
        conversation_id=context.conversation_id, query=query, limit=limit, leave_out=NAMES
    )
    if not hits:
        words = ", ".join(term.text for term in terms)
        return f"Nothing found: no earlier message of this conversation has any of: {words}."
    return "\n\n".join(f"{_label(hit)}:\n{excerpt(hit.text, terms, EXCERPT)}" for hit in hits)


@tool(retrieval=True)
async def read_message(
    position: Annotated[int, Field(description="the number of the message")],
    start: Annotated[int, Field(ge=0, description="how many characters to skip; 0 if null")] = 0,
    *,
    context: ToolContext,
) -> str:
    """Read one message of this conversation by its number: up to 3,000 characters from start on,
    also of a result that was cut."""
    found: finding.Hit | None = await database_sync_to_async(finding.message_at)(
        conversation_id=context.conversation_id, position=position
    )
    if found is None:
        raise ToolError(await _missing(position, context))
    length = len(found.text)
    if start > max(length - 1, 0):
        raise ToolError(f"Message {position} has {length} characters: start must be less.")
    end = whole_edge(found.text, min(start + READ_MOST, length), -1)
    return f"{_label(found)}, characters {start}-{end} of {length}:\n{found.text[start:end]}"


MEMORY = Toolbox([search_memory, read_message])


def _label(hit: finding.Hit) -> str:
    who = f"{hit.role} {hit.name}" if hit.name else hit.role
    return f"[{hit.position}] {who}, turn {hit.turn}"


async def _missing(position: int, context: ToolContext) -> str:
    ends: tuple[int, int] | None = await database_sync_to_async(finding.extent)(
        conversation_id=context.conversation_id
    )
    there = f"They go from {ends[0]} to {ends[1]}, with gaps." if ends else "There are none."
    return f"There is no message {position} that can be read. {there}"
