"""Conversations are named after their first exchange, unless somebody named them."""

from typing import Any

import pytest

from chatapp.demo_summary import title
from memory.core.checking import title_in
from memory.core.prompts import title_request
from memory.models import Conversation
from tests.chatapp.helpers import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _with_titles(settings: Any) -> None:
    settings.AUTO_TITLE = True


async def named(runner: Any, conversation: Conversation, text: str = "Where is order 88?") -> str:
    await say(runner, conversation, text)
    await runner.settled()
    await conversation.arefresh_from_db()
    return conversation.title


async def test_the_title_is_made_of_the_first_exchange(
    runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.replies, scripted.summaries = ["It is on its way."], ["“Order 88 on its way.”"]
    assert await named(runner, conversation) == "Order 88 on its way"
    asked = scripted.bodies[-1]
    assert "Where is order 88?" in asked["messages"][1]["content"]
    assert "It is on its way." in asked["messages"][1]["content"]
    assert await named(runner, conversation, "And order 89?") == "Order 88 on its way"
    assert len(scripted.bodies) == 3


@pytest.mark.parametrize(
    "answer",
    [500, "I'm sorry, but I cannot help with that.", "one\ntwo", "", "x" * 100, "<think>hm",
     {"choices": []}],
)  # fmt: skip
async def test_without_a_usable_answer_the_first_words_stay(
    answer: Any, runner: Any, scripted: Any, conversation: Conversation
) -> None:
    scripted.summaries = [answer]
    assert await named(runner, conversation) == "Where is order 88?"


async def test_a_title_of_the_owner_is_not_replaced(
    runner: Any, scripted: Any, make_conversation: Any
) -> None:
    from asgiref.sync import sync_to_async

    conversation = await sync_to_async(make_conversation)(title="Mine")
    scripted.summaries = ["Theirs"]
    assert await named(runner, conversation) == "Mine"


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("My name is Ada and I am learning agent development.", "Ada · agent development"),
        ("Hello! What is ReAct?", "ReAct"),
        ("ReAct 是什么？", "ReAct"),
        ("我叫小傅哥，在学智能体开发。", "小傅哥 · 智能体开发"),
        ("ok", "ok"),
    ],
)
def test_the_demo_model_names_what_it_is_about(question: str, expected: str) -> None:
    request = title_request(question, "An answer.")
    assert title(request[1]["content"]) == expected
    assert title_in(expected) == expected
