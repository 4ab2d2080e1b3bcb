"""A tool called by a real model."""

import json
from typing import Any

import pytest

from chatapp.tools.toolsets import TOOLSETS
from memory.models import Conversation, Message
from tests.chatapp.helpers import say
from tests.real.conftest import BRIEF

pytestmark = [pytest.mark.real, pytest.mark.django_db(transaction=True)]
# Small models call what they are told to call, if anything.
ASKED = 'Call query_order with {"order_number": "88231"}.'


async def test_a_call_is_run_and_stored_with_its_result(
    runner: Any, conversation: Conversation, settings: Any, verified_requests: Any
) -> None:
    forced = {"tool_choice": "required", "parallel_tool_calls": False}
    settings.LLM_EXTRA_BODY = BRIEF | forced | {"max_tokens": 300}
    conversation.tools, conversation.max_steps = ["shop"], 1
    await conversation.asave()
    turn = await say(runner, conversation, ASKED)
    rows = [row async for row in Message.objects.filter(turn=turn).order_by("position")]
    for row in rows[1:]:
        print(f"\n{row.role}: {row.content!r} {row.tool_calls or row.detail}", end="")
    assert [row.role for row in rows] == ["user", "assistant", "tool"]
    called, result = rows[1:]
    (call,) = called.tool_calls
    assert call["name"] in TOOLSETS["shop"]
    assert isinstance(json.loads(call["arguments"]), dict)
    assert (result.tool_call_id, result.name) == (call["id"], call["name"])
    assert result.content
    assert (turn.state, turn.error_code) == ("length", "max-steps")
    (request,) = await verified_requests()
    print(f"\ntokens of the request: counted {request.tokens}, reported {request.usage}")
    assert request.usage["prompt_tokens"] > 0
