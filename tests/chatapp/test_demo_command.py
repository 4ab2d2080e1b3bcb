"""The lesson in the terminal: memory = context."""

import io
import re

import pytest
from django.core.management import call_command

from memory.models import Conversation

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERS = {
    "en": ("You are Ada and you are learning agent development.", "I do not know your name"),
    "zh-hans": ("你是小傅哥，正在学智能体开发。", "我不知道你叫什么名字"),
}


@pytest.mark.parametrize("language", sorted(ANSWERS))
def test_the_name_is_known_from_the_summary_and_unknown_after_the_reset(language: str) -> None:
    out = io.StringIO()
    call_command("demo", language=language, stdout=out, no_color=True)
    steps = re.split(r"\n\n(?=\S)", out.getvalue())
    replies = ["".join(step.split("=>  ")[1].split()) for step in steps if "=>  " in step]
    known, unknown = ("".join(answer.split()) for answer in ANSWERS[language])
    assert len(replies) == 5
    assert replies[2] == replies[4] == known
    assert replies[3].startswith(unknown)
    # When it was known from the summary, the message that told it was not sent.
    third = next(step for step in steps if known in "".join(step.split()))
    assert '<memory kind="summary"' in third
    assert not Conversation.objects.exists()
