"""What must not happen at the edges of the memory: found by looking, kept by tests."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from chatapp import agent
from chatapp.forms import SettingsForm
from chatapp.provider import Provider
from memory import claims, compaction, offload, snapshots, store
from memory.models import Conversation, Turn
from memory.summarizer import Ladder
from tests.chatapp.compacting import (
    GOOD,
    LADDER,
    Model,
    archived,
    newest,
    question,
    run,
    summariser,
    worth_folding,
)
from tests.chatapp.helpers import LONG
from tests.chatapp.stored import Talk
from tests.fakeserver import FakeServer, running

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_steps_of_a_running_turn_do_not_push_its_question_out() -> None:
    talk = Talk({"preset": "double-window", "max_messages": 4})
    for number in range(5):
        talk.run(f"question {number}", reply="ok")
    turn = talk.run("the question", reply=None, results=("a", "b", "c", "d", "e"))
    Turn.objects.filter(pk=turn.pk).update(state="running", active=True)
    said = [(one["role"], one["content"]) for one in talk.body()["messages"]]
    assert ("user", "the question") in said
    assert sum(role == "tool" for role, _ in said) == 5


async def test_a_stop_that_comes_before_the_turn_has_begun_ends_it(
    runner: Any, scripted: Any, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chatapp.live import Live

    tell = Live.tell

    async def stopped_meanwhile(live: Live, event: Any) -> None:
        if event.type == "turn.started":
            assert runner._cancel(live.turn.pk)
        await tell(live, event)

    monkeypatch.setattr(Live, "tell", stopped_meanwhile)
    turn, _ = await runner.start_turn(
        conversation_id=conversation.pk, model="", client_id="1", text="go"
    )
    await runner.settled()
    await turn.arefresh_from_db()
    assert turn.state == "stopped"


async def test_a_claim_stays_alive_as_long_as_its_compaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "RENEWED", 0.01)
    talk = await sync_to_async(worth_folding)()
    rows = Conversation.objects.filter(pk=talk.conversation.pk)

    async def slow() -> str:
        long_ago = timezone.now() - timedelta(hours=1)
        await rows.aupdate(compaction_claimed_at=long_ago)
        for _ in range(200):
            if not await rows.filter(compaction_claimed_at=long_ago).aexists():
                return GOOD
            await asyncio.sleep(0.01)
        raise AssertionError("it was not renewed")

    outcome = await sync_to_async(run)(
        compaction.compact, talk, summariser(Model("m", slow)), force=True
    )
    assert outcome.status == "committed"


def test_nobody_waits_for_the_claim_of_a_dead_process(talk: Talk) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    Conversation.objects.filter(pk=talk.conversation.pk).update(compaction_claimed_at=long_ago)
    patient = summariser(Model("m", GOOD), ladder=Ladder(total_seconds=600))
    assert run(compaction.compact, talk, patient, force=True).status == "committed"


@pytest.fixture
def talk() -> Talk:
    return worth_folding()


async def test_a_renewal_holds_nobody_up() -> None:
    talk = await sync_to_async(worth_folding)()
    await sync_to_async(archived)(talk)
    for number in range(3):
        await sync_to_async(talk.run)(question(number), reply=LONG)
    compacted: list[compaction.Outcome] = []

    async def meanwhile() -> str:
        quick = summariser(Model("m", GOOD))
        compacted.append(await sync_to_async(run)(compaction.compact, talk, quick, force=True))
        return GOOD

    renewed = await sync_to_async(run)(compaction.renew, talk, summariser(Model("m", meanwhile)))
    assert [one.status for one in compacted] == ["committed"]
    assert renewed.status == "superseded"


def test_a_conversation_that_is_deleted_while_it_is_compacted_leaves_nothing(
    settings: Any, tmp_path: Any
) -> None:
    settings.OFFLOAD_DIR = tmp_path
    talk = Talk({"preset": "harness", "keep_least": 0, "keep_most": 10})
    for number in range(4):
        talk.run(question(number), reply=LONG)

    async def deleted_meanwhile() -> str:
        await sync_to_async(store.delete_conversation)(conversation_id=talk.conversation.pk)
        return GOOD

    model = Model("m", deleted_meanwhile)
    outcome = run(compaction.compact, talk, summariser(model), force=True)
    assert model.asked
    assert outcome.status == "superseded"
    assert not offload.path_of(talk.conversation.pk).exists()


def test_a_model_that_hangs_leaves_the_fallback_half_of_the_time(settings: Any) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "big"
    settings.SUMMARY_MODEL, settings.SUMMARY_SECONDS = "small", 20
    made = agent.summariser_for(Conversation(), Provider(), agent.inline_ladder())
    assert (made.ladder.try_seconds, made.ladder.total_seconds) == (10, 20)
    settings.SUMMARY_MODEL = ""
    assert agent.summariser_for(Conversation(), Provider(), LADDER).ladder == LADDER


@pytest.mark.parametrize(("window", "factor"), [(2_048, 1.0), (4_096, 2.0), (4_096, 1.0)])
def test_the_summarisers_requests_fit_into_the_conversations_own_window(
    window: int, factor: float, settings: Any
) -> None:
    """As the owner set it, and as the model counts."""
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:9/v1", "m"
    talk = Talk({"preset": "full"}, window=window)
    for number in range(8):
        talk.run(question(number), reply=LONG)
    request = talk.sent[-1][0]
    usage = {"prompt_tokens": round(request.tokens * factor)}
    snapshots.record_usage(request_id=request.pk, usage=usage)
    Conversation.objects.update(policy_data={"preset": "hybrid", "keep_messages": 2})
    model = Model("m", GOOD)
    assert run(compaction.compact, talk, summariser(model), force=True).status == "committed"
    longest = max(talk.counter.count(text) for text in model.asked)
    assert longest < window / factor
    assert len(model.asked) == (1 if window / factor > 2_048 else 2)


def test_saving_a_title_leaves_the_policy_as_it_was(conversation: Conversation) -> None:
    stored = {"preset": "hybrid", "trigger_share": 0.755, "target_share": 0.4, "rungs": True}
    conversation.policy_data = stored
    values = {
        name: "" if value is None else value
        for name, value in SettingsForm(conversation).initial.items()
    }
    data = {f"settings-{name}": value for name, value in (values | {"title": "New"}).items()}
    form = SettingsForm(conversation, data)
    assert form.is_valid(), form.errors
    assert form.changes()["policy_data"] == stored


class Picky(FakeServer):
    """Refuses the parameters that new models do not take, by their names."""

    async def serve(self, reader: Any, writer: Any) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        import json

        body = json.loads(await reader.readexactly(length))
        self.requests.append(body)
        wrong = next((one for one in ("max_tokens", "temperature") if one in body), None)
        answer = {"error": {"message": f"Unsupported parameter: '{wrong}'"}} if wrong else {
            "choices": [{"message": {"content": "Fine."}, "finish_reason": "stop"}]}  # fmt: skip
        data = json.dumps(answer).encode()
        status = "400 Bad Request" if wrong else "200 OK"
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n"
            f"content-length: {len(data)}\r\n\r\n".encode()
            + data
        )
        await writer.drain()
        writer.close()


async def test_a_model_that_refuses_a_parameter_is_asked_without_it(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakeserver.FakeServer", Picky)
    async with running() as server:
        settings.LLM_BASE_URL = f"http://127.0.0.1:{server.port}/v1"
        settings.LLM_MODEL = settings.LLM_API_KEY = "m"
        provider = Provider()
        complete = provider.completer("m")
        assert (await complete([{"role": "user", "content": "x"}], 50)).text == "Fine."
        assert (await complete([{"role": "user", "content": "x"}], 60)).text == "Fine."
        await provider.aclose()
    assert len(server.requests) == 3 + 1
    assert server.requests[-1].keys() == {"model", "messages", "max_completion_tokens"}
    assert server.requests[-1]["max_completion_tokens"] == 60


def test_what_a_failed_compaction_cost_is_in_the_account(talk: Talk) -> None:
    from chatapp.timeline import account

    before = account(talk.fresh())["summaries"]["input"]
    run(compaction.compact, talk, summariser(Model("m", "No.")), force=True)
    made = newest(talk)
    assert made.kind == "archive"
    assert account(talk.fresh())["summaries"]["input"] == before + 300


def test_compact_now_folds_although_all_is_within_the_tokens() -> None:
    talk = Talk({"preset": "hybrid-tokens"})
    for number in range(4):
        talk.run(question(number)[:60], reply=LONG)
    outcome = run(compaction.compact, talk, summariser(Model("m", GOOD)), force=True)
    assert outcome.status == "committed"
    assert newest(talk).last_position == 4


def test_every_so_many_turns_folds_although_all_is_within_the_tokens() -> None:
    talk = Talk({"preset": "consolidator", "every_turns": 7})
    for number in range(7):
        talk.run(question(number)[:60], reply=LONG)
    assert talk.assembled().plan.trigger == "turns"
    assert len(talk.assembled().plan.head) == 2 * 2


def test_the_harness_does_not_fold_at_every_request() -> None:
    """What stays by tokens may be more messages than compact."""
    talk = Talk({"preset": "harness"}, window=128_000)
    for number in range(30):
        talk.run(f"short {number}", reply="ok")
    plan = talk.assembled().plan
    assert plan.trigger == "messages"
    assert sum(len(one.messages) for one in plan.tail) <= 25
