"""Reading a stream of events, however its bytes are cut."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.sse import MAX_EVENT, Decoder, EventTooLong, ServerEvent

EVENTS = [
    (b"data: a\n\n", [("", "a")]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
    (b"data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
    (b"data: a\ndata: b\n\n", [("", "a\nb")]),
    (b"data:a\n\n", [("", "a")]),
    (b"data:  a\n\n", [("", " a")]),
    (b"data\n\n", [("", "")]),
    (b": a comment\n\ndata: a\n\n", [("", "a")]),
    (b"event: error\ndata: a\n\ndata: b\n\n", [("error", "a"), ("", "b")]),
    (b"id: 7\nretry: 10\nunknown: x\ndata: a\n\n", [("", "a")]),
    (b"event: nothing\n\ndata: a\n\n", [("", "a")]),
    (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
    ("data: 你好👋\n\n".encode(), [("", "你好👋")]),
    (b"data: \xff\n\n", [("", "\N{REPLACEMENT CHARACTER}")]),
    ("data: a\u2028b\x0bc\x85d\n\n".encode(), [("", "a\u2028b\x0bc\x85d")]),
    (b"data: without its empty line\n", [("", "without its empty line")]),
    (b"data: without any end", [("", "without any end")]),
    (b"data: [DONE]\r\n\r", [("", "[DONE]")]),
    (b"", []),
    (b"\n\n\n", []),
]


def read(*pieces: bytes) -> list[ServerEvent]:
    decoder = Decoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.end()


@pytest.mark.parametrize(("data", "events"), EVENTS)
def test_events_are_read_as_the_standard_says(data: bytes, events: list[tuple[str, str]]) -> None:
    assert [(event.type, event.data) for event in read(data)] == events


@pytest.mark.parametrize(("data", "events"), EVENTS)
def test_one_byte_at_a_time_gives_the_same(data: bytes, events: list[tuple[str, str]]) -> None:
    pieces = (data[index : index + 1] for index in range(len(data)))
    assert [(event.type, event.data) for event in read(*pieces)] == events


PARTS = st.sampled_from([b"data: ", b"a", b"\r", b"\n", "é好".encode(), b":", b"event: e", b"\n\n"])


@given(st.lists(PARTS, max_size=30).map(b"".join), st.data())
def test_where_the_bytes_are_cut_makes_no_difference(stream: bytes, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[start:end] for start, end in itertools.pairwise(edges)]
    assert read(*pieces) == read(stream)


@given(st.lists(PARTS, max_size=30).map(b"".join).map(lambda stream: stream + b"\n\n"))
def test_it_agrees_with_the_client_library(stream: bytes) -> None:
    async def theirs() -> list[tuple[str, str]]:
        async def chunks() -> AsyncIterator[bytes]:
            yield stream

        response = httpx2.Response(
            200, headers={"content-type": "text/event-stream"}, content=chunks()
        )
        response.request = httpx2.Request("POST", "http://test.invalid")
        return [(one.event, one.data) async for one in httpx2.EventSource(response)]

    # The library also tells events without data, which the standard drops.
    ours = [(event.type or "message", event.data) for event in read(stream) if event.data]
    assert ours == [(kind or "message", data) for kind, data in asyncio.run(theirs()) if data]


@pytest.mark.parametrize("piece", [b"x" * 1_000_000, b"data: " + b"x" * 1_000_000 + b"\n"])
def test_an_event_without_an_end_is_given_up(piece: bytes) -> None:
    decoder = Decoder()
    for _ in range(MAX_EVENT // 1_000_000):
        decoder.feed(piece)
    with pytest.raises(EventTooLong):
        decoder.feed(piece)
