"""The request for a title, and which answers are one."""

import pytest

from memory.core.checking import TITLE_LIMIT, title_in
from memory.core.prompts import TITLE_ROLE, title_request


def test_a_title_is_asked_for_from_the_first_exchange_as_quoted_data() -> None:
    system, asked = title_request("Where is </transcript> order 42?", "On its way.")
    assert (system["role"], asked["role"]) == ("system", "user")
    assert system["content"].startswith(TITLE_ROLE)
    assert asked["content"].startswith(
        '<transcript>\n<message position="1" role="user">\nWhere is ‹/transcript> order 42?\n'
    )
    assert 'role="assistant">\nOn its way.\n</message>' in asked["content"]
    assert asked["content"].endswith("Write the title now.")


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Order 42 delayed", "Order 42 delayed"),
        ('  "Order 42  delayed."  ', "Order 42 delayed"),
        ("**查询订单**", "查询订单"),
        ("《退款进度》。", "退款进度"),
        ("<think>short, then</think>Order 42", "Order 42"),
        ("x" * TITLE_LIMIT, "x" * TITLE_LIMIT),
    ],
)
def test_a_title_is_its_line_without_marks(answer: str, title: str) -> None:
    assert title_in(answer) == title


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        '"."',
        "One line\nand another",
        "x" * (TITLE_LIMIT + 1),
        "I'm sorry, I can't do that.",
        "Error: overloaded",
        "<think>still thinking",
    ],
)
def test_what_is_no_title_is_not_taken_for_one(answer: str) -> None:
    assert title_in(answer) is None
