"""The demo model's own window ends a reply, as a real server's does."""

import pytest

from chatapp.demo_model import DEMO_LIMIT, Completion, complete


def answered(prompt: int, **options: int) -> Completion:
    """The reply to a request of so many tokens; one character is one token."""
    asked = "count to 100"
    system = "x" * (prompt - len(asked) - 4 - 4 - 3)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": asked}]
    done = complete({"model": "demo", "messages": messages, **options}, len)
    assert done.prompt_tokens == prompt
    return done


WHOLE = answered(100)


@pytest.mark.parametrize(
    ("room", "finish"),
    [(0, "stop"), (1, "stop"), (-1, "length"), (1 - WHOLE.completion_tokens, "length")],
)
def test_a_reply_ends_where_the_window_is_full(room: int, finish: str) -> None:
    """`room` is what would be left behind the whole reply."""
    done = answered(DEMO_LIMIT - WHOLE.completion_tokens - room)
    assert done.finish_reason == finish
    assert WHOLE.text.startswith(done.text)
    assert done.completion_tokens == WHOLE.completion_tokens + min(room, 0)


def test_what_is_asked_for_counts_where_it_is_less() -> None:
    assert answered(DEMO_LIMIT - 9, max_tokens=5).completion_tokens == 5
    assert answered(DEMO_LIMIT - 9, max_tokens=50).completion_tokens == 9
