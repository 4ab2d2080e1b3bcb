"""Looking things up in a transcript: what is found, in which order, and what stays hidden."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import store
from memory.core.messages import Message as CoreMessage
from memory.core.messages import ToolCall
from memory.models import Blob, Message
from memory.rows import Written, append
from memory.search import CANDIDATES_MOST, Hit, extent, message_at, search
from tests.bench.filling import fill
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db
SUMMARISING = {"preset": "summary"}


@pytest.fixture
def talk() -> Talk:
    return Talk(SUMMARISING)


def positions(talk: Talk, query: str, **options: Any) -> list[int]:
    given: dict[str, Any] = {"limit": 20} | options
    found = search(conversation_id=talk.conversation.pk, query=query, **given)
    return [hit.position for hit in found]


def test_a_hit_says_where_it_stands(talk: Talk) -> None:
    talk.run("hello")
    talk.run("my umbrella is red", reply="noted")
    (hit,) = search(conversation_id=talk.conversation.pk, query="Umbrella?", limit=5)
    assert hit == Hit(3, 2, "user", "my umbrella is red")


def test_user_messages_replies_and_results_are_found(talk: Talk) -> None:
    talk.run("an umbrella", results=("umbrella rows",), reply="umbrellas it is")
    assert sorted(positions(talk, "umbrella")) == [1, 3, 4]


def test_folded_messages_are_found(talk: Talk) -> None:
    for _ in range(6):
        talk.run("my umbrella is red")
    assert talk.fold(4) is not None
    assert 1 in positions(talk, "umbrella")


def test_what_lies_before_a_reset_is_hidden_until_it_is_undone(talk: Talk) -> None:
    talk.run("my umbrella is red")
    talk.reset()
    assert positions(talk, "umbrella") == []
    assert message_at(conversation_id=talk.conversation.pk, position=1) is None
    talk.run("an umbrella, again")
    assert positions(talk, "umbrella") == [3]
    assert extent(conversation_id=talk.conversation.pk) == (3, 4)


def test_an_undone_reset_hides_nothing(talk: Talk) -> None:
    talk.run("my umbrella is red")
    talk.reset()
    talk.undo()
    assert positions(talk, "umbrella") == [1]


def test_replaced_messages_are_hidden(talk: Talk) -> None:
    talk.run("colours", reply="an umbrella")
    talk.run(None, replaces=1, reply="a parasol")
    assert positions(talk, "umbrella parasol") == [4]
    assert message_at(conversation_id=talk.conversation.pk, position=2) is None


def test_other_conversations_are_hidden(talk: Talk) -> None:
    other = Talk(SUMMARISING)
    other.run("my umbrella is red")
    assert positions(talk, "umbrella") == []
    assert message_at(conversation_id=talk.conversation.pk, position=1) is None
    assert extent(conversation_id=talk.conversation.pk) is None


def test_the_running_turn_is_not_searched_but_can_be_read(talk: Talk) -> None:
    talk.run("my umbrella is red")
    store.start_turn(
        conversation_id=talk.conversation.pk,
        client_id="running",
        message=talk.counted(CoreMessage("user", "what about my umbrella?")),
        encoding=talk.counter.name,
        owner="",
    )
    assert positions(talk, "umbrella") == [1]
    assert message_at(conversation_id=talk.conversation.pk, position=3) is not None


def test_only_what_stands_before_a_position_is_searched_where_one_is_given(talk: Talk) -> None:
    for _ in range(3):
        talk.run("umbrella")
    assert positions(talk, "umbrella", before=4) == [3, 1]
    assert positions(talk, "umbrella", before=10**30) == [5, 3, 1]


def test_results_of_tools_that_are_left_out_are_not_found(talk: Talk) -> None:
    talk.run("go", results=("umbrella", "umbrella"))
    Message.objects.filter(position=3).update(name="search_memory")
    assert positions(talk, "umbrella", leave_out=["search_memory"]) == [4]
    talk.run("search_memory umbrella")
    assert positions(talk, "umbrella", leave_out=["search_memory"]) == [6, 4]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("我想知道退款编号", [1]),
        ("雨伞", [2]),
        ("the LETTER", [3]),
        ("äpfel", [4]),
        ("STRASSE", []),
        ("100%", [5]),
        ("under_score", [6]),
        ("d'accord", []),
    ],
)
def test_words_are_found_in_every_script(talk: Talk, query: str, found: list[int]) -> None:
    said = ("退款编号是RF1", "红色的雨伞", "a Letter", "ÄPFEL", "100% of 100", "an under_score")
    talk.run("x", results=())
    Message.objects.all().delete()
    talk.conversation.next_position = 1
    turn = talk.conversation.turns.get()
    for text in said:
        append(talk.conversation, turn, [Written(CoreMessage("user", text))], "words")
    assert positions(talk, query) == found


def test_the_more_and_the_rarer_words_the_better_then_the_newer(talk: Talk) -> None:
    for text in ("red umbrella", "red", "blue", "red", "umbrella", "red"):
        talk.run(text)
    assert positions(talk, "red umbrella") == [1, 9, 11, 7, 3]
    assert positions(talk, "red umbrella", limit=2) == [1, 9]
    assert positions(talk, "red umbrella", limit=0) == []


def test_an_exact_number_weighs_more_than_words(talk: Talk) -> None:
    for text in ("order 88231", "the refund of an order", "order 188231", "refund, order 5"):
        talk.run(text)
    assert positions(talk, "refund of order 88231")[0] == 1


def test_nothing_is_found_for_no_words(talk: Talk, django_assert_num_queries: Any) -> None:
    talk.run("?!")
    with django_assert_num_queries(0):
        assert positions(talk, "?!") == []


def test_a_rare_word_is_found_behind_any_number_of_messages_with_common_ones() -> None:
    conversation = fill(CANDIDATES_MOST + 1, {"preset": "full"})
    Message.objects.filter(position=1).update(content="Brunhilde and the weather")
    found = search(conversation_id=conversation.pk, query="weather in Brunhilde", limit=1)
    assert [hit.position for hit in found] == [1]


def test_ten_thousand_messages_take_the_queries_that_few_take() -> None:
    taken = []
    for turns in (5, 5_000):
        conversation = fill(turns, {"preset": "full"})
        Message.objects.filter(conversation=conversation, position=2).update(content="umbrella")
        with CaptureQueriesContext(connection) as queries:
            (hit,) = search(conversation_id=conversation.pk, query="my umbrella", limit=5)
        assert hit.position == 2
        taken.append(len(queries))
    assert taken == [2, 2]


def cut_result(talk: Talk) -> Message:
    """A stored result of which the message has only a part."""
    turn = talk.run("go")
    message = CoreMessage("tool", "begin … end", tool_call_id="c", name="get")
    whole = Written(message, whole="begin 中 middle end")
    return append(talk.fresh(), turn, [whole], "words")[0]


def test_a_cut_result_is_read_whole(talk: Talk) -> None:
    row = cut_result(talk)
    hit = message_at(conversation_id=talk.conversation.pk, position=row.position)
    assert hit == Hit(3, 1, "tool", "begin 中 middle end", "get")


def test_a_result_whose_whole_text_is_gone_is_read_as_it_was_sent(talk: Talk) -> None:
    row = cut_result(talk)
    Blob.objects.all().delete()
    hit = message_at(conversation_id=talk.conversation.pk, position=row.position)
    assert hit is not None
    assert hit.text == "begin … end"


def test_a_step_is_read_with_its_calls(talk: Talk) -> None:
    turn = talk.run("go")
    calls = (ToolCall("a", "get", '{"of": 1}'), ToolCall("b", "put", "{}"))
    for text in ("I look.", ""):
        step = CoreMessage("assistant", text, tool_calls=calls)
        append(talk.fresh(), turn, [Written(step)], "words")
    read = [message_at(conversation_id=talk.conversation.pk, position=at) for at in (3, 4)]
    called = '[called get {"of": 1}]\n[called put {}]'
    assert [hit and hit.text for hit in read] == [f"I look.\n{called}", called]


@pytest.mark.parametrize("position", [0, -1, 3, 2**63, 10**40])
def test_a_position_without_a_message_gives_none(talk: Talk, position: int) -> None:
    talk.run("hello")
    assert message_at(conversation_id=talk.conversation.pk, position=position) is None
