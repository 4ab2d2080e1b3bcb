"""The demo model's tool calls on the wire: what is refused, streams, and the choice of tools."""

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from chatapp.deltas import Calls, Finish, Reader, Text, Usage
from chatapp.demo_calls import accepts
from chatapp.demo_model import DEMO_LIMIT, DemoTransport, complete, estimated_tokens
from chatapp.demo_wire import BadRequest
from chatapp.provider import Provider
from chatapp.tools.shop import SHOP
from memory.core.messages import ToolCall
from tests.chatapp.demo_agent import Agent

WHERE = [{"role": "user", "content": "Where is my order 88231?"}]
HELLO = [{"role": "user", "content": "hello"}]


def body(messages: list[dict[str, Any]] = WHERE, **options: Any) -> dict[str, Any]:
    return {"model": "demo", "messages": messages, "tools": SHOP.schemas(), **options}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def a_tool(name: Any = "find", parameters: Any = None, **function: Any) -> dict[str, Any]:
    given = {} if parameters is None else {"parameters": parameters}
    return {"type": "function", "function": {"name": name, "description": "x", **given, **function}}


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


async def post(content: dict[str, Any]) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=DemoTransport()) as http:
        return await http.post("http://demo.invalid/v1/chat/completions", json=content)


async def test_a_whole_answer_with_calls() -> None:
    answer = (await post(body())).json()
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I look up order 88231."
    first, second = choice["message"]["tool_calls"]
    assert first["type"] == "function"
    assert first["function"] == {"name": "query_order", "arguments": '{"order_number": "88231"}'}
    assert second["function"]["name"] == "query_logistics"
    assert first["id"].startswith("call_")
    assert first["id"][:-1] == second["id"][:-1]
    assert (first["id"][-1], second["id"][-1]) == ("0", "1")
    texts = [choice["message"]["content"]]
    texts += [text for one in (first, second) for text in one["function"].values()]
    assert answer["usage"]["completion_tokens"] == sum(map(estimated_tokens, texts))
    assert (await post(body())).json() == answer


async def test_ids_differ_between_the_steps_of_a_conversation() -> None:
    agent = Agent(options={"parallel_tool_calls": False})
    for question in ("Where is my order 88231?", "Where is my order 88231?"):
        await agent.ask(question)
    ids = [call["id"] for message in agent.messages for call in message.get("tool_calls", ())]
    assert len(ids) == len(set(ids)) == 4


async def test_the_events_of_a_stream_with_calls() -> None:
    response = await post(body(stream=True, stream_options={"include_usage": True}))
    *events, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    chunks = [json.loads(event.removeprefix("data: ")) for event in events]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == complete(body()).usage
    choices = [chunk["choices"][0] for chunk in chunks[:-1]]
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert (choices[-1]["delta"], choices[-1]["finish_reason"]) == ({}, "tool_calls")
    deltas = [choice["delta"] for choice in choices[:-1]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    said = [delta["content"] for delta in deltas[1:] if "content" in delta]
    assert "".join(said) == "I look up order 88231."
    assert len(said) > 3
    parts = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    heads = [part for part in parts if "id" in part]
    assert [(head["index"], head["type"], head["function"]) for head in heads] == [
        (0, "function", {"name": "query_order", "arguments": ""}),
        (1, "function", {"name": "query_logistics", "arguments": ""}),
    ]
    pieces = [part for part in parts if "id" not in part]
    assert all(set(part) == {"index", "function"} for part in pieces)
    assert all(set(part["function"]) == {"arguments"} for part in pieces)
    for index in (0, 1):
        mine = [part["function"]["arguments"] for part in pieces if part["index"] == index]
        assert "".join(mine) == '{"order_number": "88231"}'
        assert len(mine) > 1


@pytest.mark.parametrize("text", ["Where is my order 88231?", "订单 88231 我要退款，回充坏了 👍"])
async def test_the_reader_of_streams_gets_the_exact_calls(text: str) -> None:
    request = body([{"role": "user", "content": text}], stream=True)
    message = complete(request).whole()["choices"][0]["message"]
    reader, pieces = Reader(), []
    response = await post(request)
    for event in response.text.split("\n\n")[:-2]:
        pieces += reader.feed("message", event.removeprefix("data: "))
    pieces += reader.end()
    calls = tuple(
        ToolCall(one["id"], one["function"]["name"], one["function"]["arguments"])
        for one in message["tool_calls"]
    )
    assert pieces[-1] == Calls(calls)
    assert Finish("tool_calls") in pieces
    said = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    assert said == message["content"]


async def test_the_application_reaches_the_calls_through_its_provider() -> None:
    provider = Provider()
    request = body(stream=True, stream_options={"include_usage": True})
    try:
        deltas = [delta async for delta in provider.stream(request)]
    finally:
        await provider.aclose()
    (calls,) = [delta.calls for delta in deltas if isinstance(delta, Calls)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("query_order", '{"order_number": "88231"}'),
        ("query_logistics", '{"order_number": "88231"}'),
    ]
    (usage,) = [delta.counts for delta in deltas if isinstance(delta, Usage)]
    assert usage["completion_tokens"] > 20


def _bad_tools() -> Iterator[Any]:
    yield pytest.param({"tools": {}}, "tools", id="no list")
    yield pytest.param({"tools": []}, "tools", id="empty")
    yield pytest.param({"tools": [a_tool(f"t{n}") for n in range(129)]}, "tools", id="many")
    yield pytest.param({"tools": ["find"]}, "tools[0]", id="no object")
    yield pytest.param({"tools": [{"function": {"name": "a"}}]}, "tools[0]", id="no type")
    yield pytest.param({"tools": [{"type": "function"}]}, "tools[0]", id="no function")
    for name in (None, "", 7, "two words", "x" * 65):
        yield pytest.param({"tools": [a_tool(name)]}, "tools[0].function.name", id=f"name {name}")
    yield pytest.param(
        {"tools": [a_tool(parameters="x")]}, "tools[0].function.parameters", id="parameters"
    )
    yield pytest.param({"tools": [a_tool(), a_tool()]}, "tools[1]", id="duplicate")
    for choice in ("any", named("missing"), {"type": "function"}, ["auto"], 1):
        yield pytest.param({"tool_choice": choice}, "tool_choice", id=f"choice {choice}")
    yield pytest.param({"tools": None, "tool_choice": "auto"}, "tool_choice", id="without tools")
    yield pytest.param({"parallel_tool_calls": 1}, "parallel_tool_calls", id="parallel")
    yield pytest.param(
        {"tools": None, "parallel_tool_calls": True}, "parallel_tool_calls", id="parallel alone"
    )


@pytest.mark.parametrize(("change", "param"), list(_bad_tools()))
async def test_malformed_tools_are_refused(change: dict[str, Any], param: str) -> None:
    response = await post(body() | change)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_no_tools_at_all_and_tools_without_parameters_are_accepted() -> None:
    assert complete(body(HELLO) | {"tools": None}).finish_reason == "stop"
    answered = complete(body() | {"tools": [a_tool("query_order")]})
    assert [(call.name, call.arguments) for call in answered.calls] == [("query_order", "{}")]


async def test_no_calls_where_none_may_be_made() -> None:
    answered = complete(body(tool_choice="none"))
    assert (answered.calls, answered.finish_reason) == ((), "stop")
    agent = Agent()
    reply = await agent.ask("Where is my order 88231?")
    del agent.messages[-1]
    again = complete(agent.body() | {"tool_choice": "none"})
    assert (again.text, again.calls) == (reply, ())


@pytest.mark.parametrize(
    ("text", "choice", "name", "arguments"),
    [
        ("hello", "required", "search_knowledge", {"query": "hello"}),
        ("Where is order 88231?", "required", "query_order", {"order_number": "88231"}),
        ("Where is my order?", "required", "search_knowledge", {"query": "Where is my order?"}),
        ("hello", named("current_time"), "current_time", {}),
        ("hello", named("query_order"), "query_order", {"order_number": "hello"}),
        ("about 88231", named("apply_refund"), "apply_refund",
         {"order_number": "88231", "reason": "about 88231"}),
        ("the S20 Max, 9 pieces", named("place_order"), "place_order",
         {"product": "S20 Max", "quantity": None}),
        ("a vacuum", named("recommend_products"), "recommend_products",
         {"category": "robot vacuum", "budget": None}),
        ("Where is order 88231?", named("query_logistics"), "query_logistics",
         {"order_number": "88231"}),
    ],
)  # fmt: skip
def test_a_call_that_must_be_made_fits_its_schema(
    text: str, choice: Any, name: str, arguments: dict[str, Any]
) -> None:
    answered = complete(body([{"role": "user", "content": text}], tool_choice=choice))
    call = answered.calls[0]
    assert (call.name, json.loads(call.arguments)) == (name, arguments)
    SHOP[name].read(json.loads(call.arguments))
    assert answered.finish_reason == "tool_calls"


def test_a_tool_of_another_server_is_named_in_the_thought() -> None:
    schema = parameters(city={"type": "string", "maxLength": 3}, unit={"enum": ["C", "F"]})
    answered = complete(body(HELLO, tools=[a_tool("get_weather", schema)], tool_choice="required"))
    assert answered.text == "I call get_weather."
    given = json.loads(answered.calls[0].arguments)
    assert given["unit"] == "C"
    assert accepts({"type": "string", "maxLength": 3}, given["city"])
    assert complete(body(HELLO, tools=[a_tool("get_weather", schema)])).calls == ()


def test_the_limit_may_cut_within_a_call_and_says_so() -> None:
    def cut(most: int) -> Any:
        return complete(body(max_tokens=most), len)

    thought = "I look up order 88231."
    assert cut(5).text == "I loo"
    assert (cut(5).calls, cut(5).finish_reason) == ((), "length")
    assert (cut(len(thought)).text, cut(len(thought)).calls) == (thought, ())
    within = cut(len(thought) + len("query_order") + 8)
    assert [(call.name, call.arguments) for call in within.calls] == [("query_order", '{"order_')]
    assert within.finish_reason == "length"
    assert within.completion_tokens == len(thought) + len("query_order") + 8
    assert cut(500).finish_reason == "tool_calls"


def test_the_descriptions_of_tools_count_towards_the_limit() -> None:
    large = a_tool(parameters=parameters(x={"description": "x" * DEMO_LIMIT, "type": "string"}))
    with pytest.raises(BadRequest, match=str(DEMO_LIMIT)) as refused:
        complete(body(HELLO, tools=[large]), len)
    assert refused.value.error["code"] == "context_length_exceeded"


async def test_a_plain_answer_with_calls_waits_as_long_as_its_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr("chatapp.demo_model.asyncio.sleep", sleep)
    async with httpx2.AsyncClient(transport=DemoTransport(1.0)) as http:
        await http.post("http://demo.invalid/v1/chat/completions", json=body())
    assert waited == [5 + 2 * 2]
