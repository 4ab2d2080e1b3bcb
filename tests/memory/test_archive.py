"""The archive: the summary that needs no model."""

from hypothesis import given
from hypothesis import strategies as st

from memory.core.checking import ARCHIVE_GAP, archive
from memory.core.messages import Message
from memory.encodings import counter_for
from tests.builders import COUNTER, call, reply, result, user
from tests.memory.strategies import TEXTS, histories

REAL = counter_for("gpt-4o")


def archived(previous: str, *messages: Message, cap: int = 500, limit: int = 500) -> list[str]:
    return archive(previous, messages, cap=cap, counter=COUNTER, limit=limit).splitlines()


def test_the_previous_summary_comes_first_then_a_line_for_each_message() -> None:
    assert archived("Ada likes tea.\n", user("and  now\n what?"), reply("tea")) == [
        "Ada likes tea.",
        "- user: and now what?",
        "- assistant: tea",
    ]


def test_calls_are_named_and_empty_messages_left_out() -> None:
    messages = call("find", "buy", text="wait"), result("found"), call("pay"), user(" "), reply("")
    assert archived("", *messages) == [
        "- assistant: [calls find, buy] wait",
        "- tool: found",
        "- assistant: [calls pay]",
    ]


def test_each_message_is_cut_to_its_limit() -> None:
    assert archived("", user("abcdefgh"), limit=5) == ["- user: abcd…"]


def test_the_oldest_lines_fall_off_with_a_marker() -> None:
    messages = [user(f"question number {number}") for number in range(10)]  # 5 words a line
    # 27 - 2 for line breaks - 9 for the marker: three lines of 5.
    assert archived("", *messages, cap=27) == [
        ARCHIVE_GAP,
        *(f"- user: question number {number}" for number in (7, 8, 9)),
    ]


def test_a_previous_summary_stays_whole_up_to_three_quarters_of_the_cap() -> None:
    lines = [f"fact {number} three" for number in range(10)]  # 30 words
    assert archived("\n".join(lines), user("hi"), cap=40)[:10] == lines
    # 29 words: 9 for the marker leave 20, six lines.
    assert archived("\n".join(lines), user("hi"), cap=39) == [
        ARCHIVE_GAP,
        *lines[4:],
        "- user: hi",
    ]


def test_lines_of_an_earlier_archive_fall_off_before_the_summary_does() -> None:
    # 28 - 3 - 2 - 9: two lines of 5.
    first = archived("Ada likes tea.", *[user(f"question number {n}") for n in range(5)], cap=28)
    assert first[:2] == ["Ada likes tea.", ARCHIVE_GAP]
    assert first[2:] == ["- user: question number 3", "- user: question number 4"]
    second = archived("\n".join(first), user("question number 5"), cap=28)
    assert second[:2] == ["Ada likes tea.", ARCHIVE_GAP]
    assert second[2:] == ["- user: question number 4", "- user: question number 5"]


def test_of_a_line_that_does_not_fit_the_end_stays() -> None:
    text = " ".join(f"w{number}" for number in range(40))
    kept = archived("", user(text), cap=20)
    # 20 - 2 - 9: nine words.
    assert kept == [ARCHIVE_GAP, " w31 w32 w33 w34 w35 w36 w37 w38 w39"]


def test_of_one_long_paragraph_the_end_stays() -> None:
    text = " ".join(f"w{number}" for number in range(40))
    assert archived(text, cap=20)[1] == " w34 w35 w36 w37 w38 w39"


def test_a_cap_without_room_for_anything_gives_nothing() -> None:
    assert archived("one two three", user("four five six"), cap=2) == []
    assert archived("", cap=50) == []


@given(
    st.sampled_from(["", "Ada likes tea.", *TEXTS, "😀" * 300, "one\n" * 200]),
    histories(),
    st.integers(1, 300),
)
def test_an_archive_is_never_over_its_cap(previous: str, messages: list[Message], cap: int) -> None:
    text = archive(previous, messages, cap=cap, counter=REAL, limit=500)
    assert REAL.count(text) <= cap


@given(histories(least=1), st.integers(60, 300))
def test_archives_of_archives_stay_within_their_cap(messages: list[Message], cap: int) -> None:
    text = "Ada likes tea."
    for _ in range(3):
        text = archive(text, messages, cap=cap, counter=REAL, limit=500)
        assert REAL.count(text) <= cap
        assert text.startswith("Ada likes tea.")
        assert text.count(ARCHIVE_GAP) <= 1


def test_text_of_many_tokens_a_character_is_cut_to_the_cap_too() -> None:
    text = archive("", [user("🜁🜂🜃🜄" * 100)], cap=60, counter=REAL, limit=500)
    assert text.startswith(ARCHIVE_GAP)
    assert 30 < REAL.count(text) <= 60
