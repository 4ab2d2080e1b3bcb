"""The demo model over the wire: through the openai client, as the application reaches it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest

from chatapp.demo_model import DEMO_LIMIT, DEMO_MODEL, PIECES, DemoTransport, estimated_tokens
from memory.core.messages import Message
from memory.core.prompts import summary_request

HELLO: list[Any] = [{"role": "user", "content": "hello"}]


def call(id: str = "a") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "find", "arguments": "{}"}}


@asynccontextmanager
async def client(transport: DemoTransport | None = None) -> AsyncIterator[openai.AsyncOpenAI]:
    http = httpx2.AsyncClient(transport=transport or DemoTransport())
    url = "http://demo.invalid/v1"
    async with openai.AsyncOpenAI(api_key="x", base_url=url, max_retries=0, http_client=http) as it:
        yield it


async def post(content: bytes, path: str = "/v1/chat/completions") -> httpx2.Response:
    async with httpx2.AsyncClient(transport=DemoTransport()) as http:
        return await http.post(f"http://demo.invalid{path}", content=content)


async def test_one_json_answer() -> None:
    async with client() as demo:
        reply = await demo.chat.completions.create(model=DEMO_MODEL, messages=HELLO)
        again = await demo.chat.completions.create(model=DEMO_MODEL, messages=HELLO)
        other = await demo.chat.completions.create(model="other", messages=HELLO)
    assert reply.choices[0].message.role == "assistant"
    assert (reply.choices[0].message.content or "").startswith("Hello! I am a small")
    assert reply.choices[0].finish_reason == "stop"
    assert (reply.model, reply.created, other.model) == ("demo", 0, "other")
    assert again == reply
    assert other.id != reply.id
    assert reply.usage
    assert reply.usage.prompt_tokens == estimated_tokens("hello") + 4 + 3
    assert reply.usage.completion_tokens == estimated_tokens(reply.choices[0].message.content or "")
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@pytest.mark.parametrize("text", ["write a long story", "写一个长故事", "show markdown"])
async def test_a_stream_gives_the_same_text_in_small_pieces(text: str) -> None:
    messages: list[Any] = [{"role": "user", "content": text}]
    async with client() as demo:
        whole = await demo.chat.completions.create(model=DEMO_MODEL, messages=messages)
        stream = await demo.chat.completions.create(
            model=DEMO_MODEL, messages=messages, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    first, *middle, last, usage = chunks
    pieces = [chunk.choices[0].delta.content or "" for chunk in middle]
    assert first.choices[0].delta.role == "assistant"
    assert "".join(pieces) == whole.choices[0].message.content
    assert max(len(re.findall("[一-鿿]", piece)) for piece in pieces) <= 3
    assert max(len(piece.split()) for piece in pieces) == 1
    assert [chunk.choices[0].finish_reason for chunk in [first, *middle]] == [None] * len(
        chunks[2:]
    )
    assert last.choices[0].finish_reason == "stop"
    assert (usage.choices, usage.usage) == ([], whole.usage)
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_the_bytes_of_a_stream() -> None:
    body = {"model": "demo", "messages": [{"role": "user", "content": "数到 2"}], "stream": True}
    response = await post(json.dumps(body).encode())
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, end, rest = response.text.split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    objects = [json.loads(event.removeprefix("data: ")) for event in events]
    assert [item["choices"][0]["delta"].get("content") for item in objects] == [
        "",
        "1,",
        " 2",
        None,
    ]
    assert "usage" not in objects[0]


@pytest.mark.parametrize(
    "text", ["", "a", "你好，世界", " \n\n x\t", "a" * 50, "…👍。 end ", "，，"]
)
def test_pieces_lose_nothing(text: str) -> None:
    assert "".join(PIECES.findall(text)) == text


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("text", ["count to 100", "写一个长故事"])
async def test_the_token_limit_cuts_and_says_so(limit: str, text: str) -> None:
    messages: list[Any] = [{"role": "user", "content": text}]
    async with client() as demo:
        whole = await demo.chat.completions.create(model="demo", messages=messages)
        cut = await demo.chat.completions.create(
            model="demo", messages=messages, extra_body={limit: 7}
        )
        roomy = await demo.chat.completions.create(
            model="demo", messages=messages, extra_body={limit: 2_000}
        )
    content = cut.choices[0].message.content or ""
    assert cut.choices[0].finish_reason == "length"
    assert (whole.choices[0].message.content or "").startswith(content)
    assert len(content) == 17  # the longest text of seven tokens, at 2.5 characters each
    assert cut.usage
    assert cut.usage.completion_tokens == 7
    assert roomy.choices[0].finish_reason == "stop"


async def test_the_given_counter_is_used() -> None:
    transport = DemoTransport(count=lambda text: len(text.split()))
    messages: list[Any] = [{"role": "user", "content": "count to 10"}]
    async with client(transport) as demo:
        reply = await demo.chat.completions.create(model="demo", messages=messages, max_tokens=3)
    assert (reply.choices[0].message.content or "").strip() == "1, 2, 3,"
    assert reply.usage
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (3 + 4 + 3, 3)


async def test_a_prompt_over_the_limit_is_refused() -> None:
    transport = DemoTransport(count=len)
    fits: list[Any] = [{"role": "user", "content": "x" * (DEMO_LIMIT - 7)}]
    over: list[Any] = [{"role": "user", "content": "x" * (DEMO_LIMIT - 6)}]
    async with client(transport) as demo:
        reply = await demo.chat.completions.create(model="demo", messages=fits)
        assert reply.usage
        assert reply.usage.prompt_tokens == DEMO_LIMIT
        with pytest.raises(openai.BadRequestError, match=r"8192 tokens.* 8193 tokens") as error:
            await demo.chat.completions.create(model="demo", messages=over)
    assert error.value.code == "context_length_exceeded"


def _bad_messages() -> Iterator[Any]:
    user, system = HELLO[0], {"role": "system", "content": "Be kind."}
    calls = {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]}
    result = {"role": "tool", "tool_call_id": "a", "content": "x"}
    yield pytest.param([system, system, user], "one system message", id="two systems")
    yield pytest.param([user, system, user], "one system message", id="late system")
    yield pytest.param([{"content": "x"}], "'role' is one of", id="no role")
    yield pytest.param([{"role": "developer", "content": "x"}], "'role' is one of", id="role")
    yield pytest.param(["hello"], "'role' is one of", id="no object")
    yield pytest.param([{"role": "user"}], "content' must be a string", id="no content")
    yield pytest.param([{"role": "user", "content": None}], "must be a string", id="null content")
    yield pytest.param([user, {"role": "assistant", "content": "hi"}], "last message", id="last")
    yield pytest.param([system], "last message", id="system only")
    yield pytest.param([user, result], "does not answer a call", id="result without call")
    yield pytest.param([user, calls, result], "without a result.*: b", id="missing result")
    yield pytest.param([user, calls, result, user], "without a result.*: b", id="unanswered call")
    yield pytest.param([user, calls, result, result], "not answer a call", id="answered twice")
    yield pytest.param([user, calls, user, result], "without a result", id="late result")
    bad_call = {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}
    yield pytest.param([user, bad_call, result], "needs an id and a function", id="bad call")
    yield pytest.param([user | {"tool_calls": [call()]}, result], "Only an assistant", id="caller")


@pytest.mark.parametrize(("messages", "match"), list(_bad_messages()))
async def test_messages_that_a_picky_template_refuses(messages: Any, match: str) -> None:
    async with client() as demo:
        with pytest.raises(openai.BadRequestError, match=match) as error:
            await demo.chat.completions.create(model="demo", messages=messages)
    assert error.value.type == "invalid_request_error"


async def test_calls_with_all_their_results_are_accepted() -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "Where is order 88231?"}]},
        {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "delivered"},
    ]
    async with client() as demo:
        reply = await demo.chat.completions.create(model="demo", messages=messages)
    assert reply.choices[0].message.content == "The tool returned: delivered"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": None}, "messages"),
        ({"model": ""}, "model"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_completion_tokens": True}, "max_completion_tokens"),
        ({"n": 2}, "n"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"stream": True, "stream_options": ["usage"]}, "stream_options"),
    ],
)
async def test_a_bad_parameter_is_named(change: dict[str, Any], param: str) -> None:
    response = await post(json.dumps({"model": "demo", "messages": HELLO} | change).encode())
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"\xff", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/completions", b"{}", 404),
    ],
)
async def test_what_cannot_be_read_is_refused(path: str, content: bytes, status: int) -> None:
    response = await post(content, path)
    assert response.status_code == status
    assert set(response.json()["error"]) == {"message", "type", "param", "code"}


async def test_another_method_is_refused() -> None:
    async with httpx2.AsyncClient(transport=DemoTransport()) as http:
        response = await http.get("http://demo.invalid/v1/chat/completions")
    assert response.status_code == 405


async def test_half_a_character_does_not_break_the_answer() -> None:
    messages = [{"role": "user", "content": "my name is A\ud83d"}, {"role": "user", "content": "?"}]
    for stream in (False, True):
        body = {"model": "demo", "messages": messages[:1], "stream": stream}
        assert (await post(json.dumps(body).encode())).status_code == 200


@pytest.mark.parametrize("seconds", [0.0, 30.0])
async def test_a_stream_can_be_cancelled_at_once(seconds: float) -> None:
    messages: list[Any] = [{"role": "user", "content": "count to 2000"}]
    started = asyncio.Event()
    seen = []

    async def listen(demo: openai.AsyncOpenAI) -> None:
        stream = await demo.chat.completions.create(model="demo", messages=messages, stream=True)
        async for chunk in stream:
            seen.append(chunk)
            started.set()

    async with client(DemoTransport(seconds)) as demo:
        task = asyncio.create_task(listen(demo))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, timeout=5)
    assert 1 <= len(seen) < 100


async def test_a_plain_request_waits_as_long_as_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("chatapp.demo_model.asyncio.sleep", sleep)
    messages: list[Any] = [{"role": "user", "content": "count to 4"}]
    async with client(DemoTransport(0.5)) as demo:
        await demo.chat.completions.create(model="demo", messages=messages)
    assert waited == [4 * 0.5]


async def test_requests_share_nothing() -> None:
    async def say(demo: openai.AsyncOpenAI, name: str) -> str:
        told: list[Any] = [
            {"role": "user", "content": f"my name is {name}"},
            {"role": "user", "content": "what is my name?"},
        ]
        reply = await demo.chat.completions.create(model="demo", messages=told)
        return reply.choices[0].message.content or ""

    async with client() as demo:
        replies = await asyncio.gather(*(say(demo, name) for name in ("Ada", "Grace", "Alan")))
        asked: list[Any] = [{"role": "user", "content": "what is my name?"}]
        alone = await demo.chat.completions.create(model="demo", messages=asked)
    assert replies == ["You are Ada.", "You are Grace.", "You are Alan."]
    assert "do not know your name" in (alone.choices[0].message.content or "")


async def test_the_summarisers_request_gets_a_summary() -> None:
    told = [
        Message("user", "我叫小傅哥，在学智能体开发。", 1),
        Message("assistant", "你好！" * 5, 2),
    ]
    system, user = summary_request(told, previous="", cap=100, language="zh")
    messages: list[Any] = [system, user]
    async with client() as demo:
        reply = await demo.chat.completions.create(model="demo", messages=messages)
    assert reply.choices[0].message.content == "用户：叫小傅哥；在学智能体开发"
