"""Requests with shortened tool results: their snapshots, and what the Context tab says of them."""

import pytest
from django.test import Client

from memory import snapshots
from memory.models import Message
from tests.chatapp.compacting import question
from tests.chatapp.helpers import LONG, get
from tests.chatapp.stored import Talk

pytestmark = pytest.mark.django_db

TABLE = "\n".join(f"row {number}: blue, 12 EUR" for number in range(70))
CUT = "characters left out; the transcript has them"


@pytest.fixture(params=["harness", "hybrid-tokens", "layered"])
def talk(request: pytest.FixtureRequest) -> Talk:
    """A big result in the first turn, and enough said since for it to count as old."""
    made = Talk({"preset": request.param})
    made.run("Look at the tables.", results=(TABLE, "sunny"))
    for number in range(2, 7):
        made.run(question(number), reply=LONG)
    return made


def test_an_old_result_is_sent_shortened_and_the_transcript_keeps_it(talk: Talk) -> None:
    _, first = talk.sent[1]
    assert first["messages"][3]["content"] == TABLE, "the step right after it had all of it"
    _, body = talk.sent[-1]
    call, short, whole = body["messages"][2:5]
    assert len(short["content"]) < 300
    assert short["content"].startswith("row 0: blue")
    assert short["content"].endswith("row 69: blue, 12 EUR")
    assert CUT in short["content"]
    assert short["tool_call_id"] == call["tool_calls"][0]["id"]
    assert whole["content"] == "sunny"
    assert Message.objects.get(position=3).content == TABLE


def test_the_request_is_rebuilt_with_the_hash_of_what_was_sent(talk: Talk) -> None:
    for request, body in talk.sent:
        request.refresh_from_db()
        rebuilt = snapshots.rebuild(request=request)
        assert rebuilt.body == body
        assert rebuilt.verified is True
        assert request.tokens == sum(segment.tokens for segment in rebuilt.segments)
    (short,) = [segment for segment in rebuilt.segments if segment.whole]
    assert short.message.position == 3
    assert short.whole == Message.objects.get(position=3).tokens > 4 * short.tokens
    # It is stored once, however often it is sent; the others are ranges.
    parts = [part for sent, _ in talk.sent for part in sent.parts if part.get("whole")]
    assert len(parts) > 1
    assert len({part["blob"] for part in parts}) == 1
    assert talk.sent[-1][0].parts[-1]["ranges"] == [[14, 14]]


def test_the_context_tab_says_what_it_was_shortened_from(talk: Talk, client: Client) -> None:
    client.force_login(talk.conversation.owner)
    whole = Message.objects.get(position=3).tokens
    words = f"shortened from {whole:,} tokens"
    for query in ({}, {"request": len(talk.sent)}):
        html = get(client, talk.conversation, "panel_context", **query)
        assert html.count(words) >= 1
        assert CUT in html
    assert "identical to what was sent" in html
    assert words not in get(client, talk.conversation, "panel_context", request=2)
    data = client.get(f"/c/{talk.conversation.pk}/context.json").json()
    segment = next(one for one in data["segments"] if one["position"] == 3)
    assert CUT in segment["text"]
    content = data["body"]["messages"][segment["message"]]["content"]
    assert content[segment["start"] : segment["end"]] == segment["text"]


def test_undoing_a_fold_brings_the_shortened_window_back(talk: Talk) -> None:
    before = talk.body()
    talk.fold(2)
    assert CUT not in str(talk.body())
    talk.undo()
    assert talk.body() == before
