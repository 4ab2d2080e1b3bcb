"""Cases about cuts and tool pairs (CP-*), as far as groups reach without a tool loop."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.urls import reverse
from django.utils import timezone

from memory.core.cutting import first_fitting
from memory.core.groups import MISSING_RESULT, group, sendable
from memory.core.messages import Message, ToolCall
from memory.core.policy import Policy
from memory.core.presets import policy_from
from memory.core.window import Context
from memory.core.wire import to_wire
from memory.models import Conversation, Summary, Turn
from memory.models import Message as Row
from tests.builders import COUNTER, call, context, history, numbered, reply, result, user
from tests.cases.raw import aassembled, faults, sent, store_history, strict, whole
from tests.chatapp.helpers import say

COUNTED = 10_000  # a window that never matters, in tokens


def by_count(keep: int, preset: str = "window") -> Policy:
    if preset == "window":
        return policy_from({"preset": "window", "max_messages": keep})
    return policy_from({"preset": preset, "max_messages": keep + 1, "keep_messages": keep})


def wire(made: Context) -> list[dict[str, Any]]:
    return to_wire(one.message for one in made.window(made.plan()).segments)[0]


@pytest.mark.parametrize("keep", range(2, 8))
@pytest.mark.parametrize("preset", ["window", "hybrid"])
def test_cp_01_no_result_is_kept_without_its_call(keep: int, preset: str) -> None:
    """One matching pair in a run satisfied the check, and another result lost its call."""
    messages = [
        *history(3),
        user("look"),
        call("find", ids=["x2"]), result("old", "x2"),
        result("again", "x2"), result("stray", "gone"),
        call("find", ids=["y"]), result("1", "x"), result("2", "y"),
        reply("so"), user("and now"),
    ]  # fmt: skip
    made = context(numbered(messages), policy=by_count(keep, preset))
    plan = made.plan()
    assert plan.head + plan.tail == made.prior
    assert plan.tail[0].begins_tail
    assert faults(wire(made)) == []


@pytest.mark.parametrize("room", range(20, 90, 3))
def test_cp_03_a_long_single_turn_is_cut_between_groups(room: int) -> None:
    """Pairs were checked inside the slice only, so its edges could split one."""
    messages = [user("do it all")]
    for number in range(12):
        messages += [call("step", text="w " * 3), result(f"done {number}")]
    made = context(
        numbered([*messages, reply("ready"), user("thanks")]),
        policy=policy_from({"max_messages": 1_000, "keep_messages": 999, "summary_cap": 50}),
        window=room + 200, reserve=200, system="",
    )  # fmt: skip
    plan = made.plan(force=True)
    assert plan.head + plan.tail == made.prior
    for side in (plan.head, plan.tail):
        parts = [message for members in side for message, _ in sendable(members, COUNTER)]
        assert [fault for fault in faults(to_wire(parts)[0]) if "system" not in fault] == []
    assert all(len(one.messages) in (1, 2) for one in plan.head)


def test_cp_04_a_window_of_the_last_messages_never_begins_with_a_result() -> None:
    """Taking the last five messages began the request with a tool's result, which is refused."""
    messages = [
        user("q"), call("t", ids=["t"]), result("r", "t"), reply("a"), user("q2"), reply("a2"),
        user("now"),
    ]  # fmt: skip
    for keep in range(2, 7):
        made = context(numbered(messages), policy=by_count(keep), window=COUNTED)
        body = wire(made)
        assert body[0]["role"] == "system"
        assert body[1]["role"] == "user" or body[1].get("tool_calls")
        assert faults(body) == []


@pytest.mark.django_db(transaction=True)
async def test_cp_06_an_interrupted_call_does_not_spoil_the_conversation(
    runner: Any, scripted: Any, conversation: Conversation, client: Any
) -> None:
    """A call was saved and its result was not; from then on every request was refused."""
    await sync_to_async(store_history)(
        conversation, [*history(1), user("look it up"), call("find", ids=["c1"])]
    )
    scripted.replies = [strict]
    for _ in range(2):
        assert (await say(runner, conversation, "hello")).state == "complete"
    stub = next(one for one in scripted.bodies[-1]["messages"] if one["role"] == "tool")
    assert (stub["content"], stub["tool_call_id"]) == (MISSING_RESULT, "c1")
    rows = [(row.position, row.role) async for row in Row.objects.order_by("position")][:4]
    assert rows == [(1, "user"), (2, "assistant"), (3, "user"), (4, "assistant")]
    await sync_to_async(client.force_login)(conversation.owner)
    panel = await sync_to_async(client.get)(reverse("panel_context", args=[conversation.pk]))
    assert "made up: the call has no result" in panel.content.decode()


@pytest.mark.parametrize("preset", ["full", "window", "hybrid"])
def test_cp_07_below_the_trigger_nothing_is_touched(preset: str) -> None:
    """Tool messages were stripped from histories that needed no shortening at all."""
    messages = numbered([user("w?"), call("w", ids=["w"]), result("sun", "w"), reply("Sunny.")])
    made = context(messages, policy=preset, current=0, window=100_000)
    assert sent(made) == messages
    again = context(sent(made), policy=preset, current=0, window=100_000)
    assert sent(again) == messages


def test_cp_09_equal_results_of_parallel_calls_are_both_kept() -> None:
    """Two calls with equal arguments gave equal results, and one was dropped as a duplicate."""
    twins = call("get_time", "get_time", ids=["a", "b"])
    messages = [twins, result("09:40", "a"), result("09:40", "b")]
    assert whole(messages) == messages
    assert [one.tool_call_id for one in whole(messages)[1:]] == ["a", "b"]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (call("find", ids=["c"]), None),
        (reply(""), ""),
        (call("find", ids=["c"], text=" \n"), " \n"),
        (call("find", ids=["c"], text="wait"), "wait"),
    ],
)
def test_cp_10_content_is_null_beside_calls_only(message: Message, content: str | None) -> None:
    """Some servers refuse an empty string beside calls, others refuse null without them."""
    wired = json.loads(json.dumps(message.to_wire()))
    assert "content" in wired
    assert wired["content"] == content


@pytest.mark.parametrize("preset", ["full", "window", "hybrid"])
@pytest.mark.parametrize("force", [False, True])
def test_cp_12_the_system_prompt_is_first_and_once(preset: str, force: bool) -> None:
    """The prompt was counted like any message and was the first one to be dropped."""
    made = context(numbered([*history(30), user("now")]), policy=preset, window=COUNTED)
    body = to_wire(one.message for one in made.window(made.plan(force=force)).segments)[0]
    assert [index for index, one in enumerate(body) if one["role"] == "system"] == [0]
    assert body[0]["content"].startswith("be brief")
    assert json.dumps(body).count("be brief") == 1


@pytest.mark.parametrize("at", range(1, 9))
def test_cp_14_a_cut_inside_a_group_moves_to_its_edge(at: int) -> None:
    """A cut that would leave a result alone was noticed, and compaction then gave up for ever."""
    messages = [user("go")]
    for number in range(12):
        messages += [call("step", ids=[f"c{number}"]), result("r " * 20, f"c{number}")]
    made = context(
        numbered([*messages, user("now")]),
        policy=policy_from({"max_messages": None, "keep_messages": None, "summary_cap": 50}),
        window=at * 25 + 200, reserve=100, system="",
    )  # fmt: skip
    plan = made.plan()
    assert plan.action == "fold"
    assert plan.head
    assert not plan.tail or plan.tail[0].begins_tail


def test_cp_15_ids_that_repeat_are_paired_within_their_own_group() -> None:
    """Ids that start at call_0 in every turn matched a result to the call of another turn."""
    messages = []
    for turn in range(1, 4):
        messages += [user(f"q{turn}"), call("find"), result(f"r{turn}"), reply(f"a{turn}")]
    made = context(numbered([*messages, user("now")]), policy=by_count(4))
    shown = [(one.role, one.content) for one in sent(made)]
    assert shown == [
        ("user", "q2"), ("assistant", ""), ("tool", "r2"), ("assistant", "a2"),
        ("user", "q3"), ("assistant", ""), ("tool", "r3"), ("assistant", "a3"), ("user", "now"),
    ]  # fmt: skip


def _trajectory(raw: list[dict[str, Any]]) -> list[Message]:
    made = []
    for one in raw:
        calls = one.get("tool_calls") or ()
        calls = ast.literal_eval(calls) if isinstance(calls, str) else calls
        tools = tuple(
            ToolCall(item["id"], item["function"]["name"], item["function"]["arguments"])
            for item in calls
        )
        content = one.get("content") or ""
        text = "" if content == "None" and tools else content
        id_ = one.get("tool_call_id") or ""
        made.append(Message(one["role"], text, tool_calls=tools, tool_call_id=id_))
    return [one for one in made if one.role != "system"]


@pytest.mark.data
def test_cp_15_real_conversations_are_whole_at_every_cut(data: Path) -> None:
    """In public runs of agents call ids occur twice within one conversation, on different tools."""
    runs = json.loads((data / "tau_bench_gpt-4o-airline.json").read_text())
    cuts = repeated = 0
    for run in runs:
        messages = numbered(_trajectory(run["traj"]))
        ids = [one.id for message in messages for one in message.tool_calls]
        repeated += len(ids) - len(set(ids))
        groups = group(messages)
        assert [one for members in groups for one in members.messages] == messages
        suffix = [sum(len(one.messages) for one in groups[index:]) for index in range(len(groups))]
        for room in range(0, len(messages), 5):
            edge = first_fitting([*suffix, 0], room)
            for side in (groups[:edge], groups[edge:]):
                parts = [part for members in side for part, _ in sendable(members, COUNTER)]
                assert [one for one in faults(to_wire(parts)[0]) if "system" not in one] == []
                cuts += 1
    assert cuts > 1_000
    assert repeated > 50


@pytest.mark.django_db(transaction=True)
async def test_cp_14_where_no_edge_is_the_panel_says_why_nothing_is_folded(
    runner: Any, scripted: Any, conversation: Conversation, async_client: Any
) -> None:
    """A compaction that was skipped gave an error instead of a reason."""
    await sync_to_async(store_history)(
        conversation, [user("look"), call("find"), result("found"), call("find"), result("again")]
    )
    await Turn.objects.aupdate(state="running", heartbeat_at=timezone.now())
    await async_client.aforce_login(conversation.owner)
    url = reverse("memory_compact", args=[conversation.pk])
    answer = await async_client.post(url, headers={"hx-request": "true"})
    assert "no messages before the current turn" in answer.content.decode()
    assert scripted.asked() == []
    assert not await Summary.objects.aexists()


@pytest.mark.django_db(transaction=True)
async def test_cp_14_compact_now_works_on_nothing_but_calls(
    runner: Any, scripted: Any, make_conversation: Any, async_client: Any
) -> None:
    """The button of such a conversation could never succeed."""
    conversation = await sync_to_async(make_conversation)(
        policy={"preset": "hybrid", "max_messages": 5, "keep_messages": 2}
    )
    messages = []
    for number in range(8):
        messages += [user(f"look {number}"), call("find"), result("found it here " * 8)]
    await sync_to_async(store_history)(conversation, messages)
    await async_client.aforce_login(conversation.owner)
    await async_client.post(reverse("memory_compact", args=[conversation.pk]))
    summary = await Summary.objects.aget()
    assert summary.first_position == 1
    assert summary.last_position % 3 in (0, 1), "between a call and its result"
    made = await aassembled(conversation)
    assert made.body is not None
    assert faults(made.body["messages"]) == []
