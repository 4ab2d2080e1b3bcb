"""Exact values that a summary lost stand beside it, wherever the version goes."""

import pytest

from chatapp.provider import target_for
from memory import service
from memory.models import Summary
from tests.chatapp.compacting import GOOD, Model, compact, newest, question, system_sent
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ordered() -> Talk:
    """The first turn names values, which a summary loses; four more follow."""
    made = Talk({"preset": "hybrid", "max_messages": 20, "keep_messages": 2})
    made.run("My order is KX-40718 and the gate code 0093. " + "word " * 15, reply=LONG)
    for number in range(2, 6):
        made.run(f"question number {number}: " + "word " * 15, reply=LONG)
    return made


def carried(row: Summary) -> list[str]:
    part = row.to_core()
    return [one.literal.text for one in part.candidates[: part.fitting]]


def test_what_the_summary_lost_is_stored_and_stands_in_the_next_request(ordered: Talk) -> None:
    before = ordered.body()
    compact(ordered, Model("m", GOOD))
    row = newest(ordered)
    assert "KX-40718" in carried(row)
    assert "0093" in carried(row)
    text = system_sent(ordered)
    assert text.index(GOOD) < text.index("Exact values") < text.index("KX-40718")
    ordered.undo()
    assert ordered.body() == before


def test_what_the_summary_kept_is_not_carried_twice(ordered: Talk) -> None:
    compact(ordered, Model("m", "Ada waits for order KX-40718; the gate code is 0093."))
    assert carried(newest(ordered)) == []
    assert "Exact values" not in system_sent(ordered)
    assert system_sent(ordered).count("KX-40718") == 1


def test_the_next_summary_takes_the_literals_over(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", GOOD + " And once more."))
    row = newest(ordered)
    assert row.version == 2
    assert "KX-40718" in carried(row)


def test_values_outlive_five_summaries_that_forget_them() -> None:
    talk = Talk({"preset": "hybrid", "max_messages": 4, "keep_messages": 2})
    talk.run("Order KX-40718, gate code 0093, 17.45 EUR, due 2031-02-28.", reply=LONG)
    for number in range(2, 12):
        talk.run(question(number), reply=LONG)
        if number % 2:
            assert compact(talk, Model("m", GOOD)).status == "committed"
    assert newest(talk).version == 5
    kept = set(carried(newest(talk)))
    assert {"KX-40718", "0093", "17.45 EUR", "2031-02-28"} <= kept
    assert all(value in system_sent(talk) for value in kept)


def test_a_restored_version_has_its_literals_again(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    first = newest(ordered)
    before = ordered.body()
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", "Order KX-40718, gate code 0093: all was answered."))
    assert carried(newest(ordered)) == []
    service.restore_summary(
        conversation_id=ordered.conversation.pk, version=1, author=ordered.conversation.owner
    )
    restored = newest(ordered)
    assert (restored.literals, restored.carried) == (first.literals, first.carried)
    assert (
        before["messages"][0]["content"].partition('version="1"')[2]
        == (system_sent(ordered).partition('version="3"')[2])
    )


def test_an_edit_keeps_only_the_literals_that_its_text_lacks(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD))
    assert {"KX-40718", "0093"} <= set(carried(newest(ordered)))
    service.edit_summary(
        conversation_id=ordered.conversation.pk, version=1, text="The order is kx-40718.",
        author=ordered.conversation.owner, target=target_for(""),
    )  # fmt: skip
    row = newest(ordered)
    assert "KX-40718" not in carried(row)
    assert "0093" in carried(row)
    assert (row.kind, row.unsupported) == ("human", [])
    assert "KX-40718" not in system_sent(ordered)


def test_what_the_summary_made_up_is_stored_and_not_carried_on(ordered: Talk) -> None:
    compact(ordered, Model("m", GOOD + " Her other order is ZZ-99555."))
    assert [text for _, text in newest(ordered).unsupported] == ["ZZ-99555"]
    ordered.run("question number 6: " + "word " * 15, reply=LONG)
    compact(ordered, Model("m", GOOD + " Nothing else."))
    row = newest(ordered)
    assert row.unsupported == []
    assert "ZZ-99555" not in carried(row)


def test_literals_take_a_tenth_of_the_usable_tokens_and_the_rest_is_listed() -> None:
    talk = Talk({"preset": "hybrid", "max_messages": 40, "keep_messages": 2})
    for number in range(6):
        codes = ", ".join(f"KX-{40_000 + 100 * number + index}" for index in range(12))
        talk.run(f"The orders are {codes}.", reply=LONG)
    compact(talk, Model("m", GOOD))
    part = newest(talk).to_core()
    assert 0 < part.fitting < len(part.candidates) == 60
    window = talk.assembled().window
    assert window is not None
    kept = next(one for one in window.segments if one.kind == "summary")
    # A tenth of 1,536, the summary itself, and the preamble with the fence.
    assert kept.tokens <= 153 + 12 + 80
    assert "KX-40411" in kept.message.content, "the newest first"
    assert "KX-40000" not in kept.message.content
