"""One fold: what the summariser is given, what is carried over, what is found to be made up."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memory.core.budget import budget_for
from memory.core.groups import Group
from memory.core.literals import Literal, literals
from memory.core.messages import Message
from memory.core.presets import policy_from
from memory.core.tokens import CharacterCounter
from memory.core.window import Context, SummaryPart
from memory.folding import REMEMBERED, Folded, fold, job_of
from memory.summarizer import Complete, Completion, CompletionFailed
from tests.builders import call, context, numbered, reply, result, user
from tests.memory.jobs import QUICK, Script

FOLDS = policy_from({"max_messages": 6, "keep_messages": 2})


def folding(messages: Sequence[Message], **options: Any) -> Context:
    """A context in which the next request folds all but the last turn."""
    done = numbered([*messages, user("thanks"), reply("welcome"), user("and now")])
    return context(done, **{"policy": FOLDS, "window": 10_001, "reserve": 1, **options})


async def folded(made: Context, complete: Complete, **options: Any) -> Folded:
    plan = made.plan(force=True)
    assert plan.action == "fold"
    return await fold(made, plan, room=5_000, complete=complete, ladder=QUICK, **options)


def texts(found: Sequence[Literal]) -> list[str]:
    return [literal.text for literal in found]


ORDER = [user("Where is order #W2378156? I paid $54.04 on 2024-05-15."), reply("word " * 30)]


# What the summariser is given


def test_a_job_holds_the_head_and_what_it_costs_now() -> None:
    made = folding(ORDER)
    job = job_of(made, made.plan(force=True), room=777)
    assert [message.position for message in job.messages] == [1, 2]
    assert (job.previous, job.source_tokens, job.room) == ("", 9 + 30, 777)
    assert (job.cap, job.template) == (500, "dialogue")


def test_the_previous_summary_is_part_of_the_source() -> None:
    made = folding(ORDER, summary=SummaryPart("Ada likes tea.", 1, 1, 4))
    job = job_of(made, made.plan(force=True), room=777)
    # 3 words and 5 for the message.
    assert (job.previous, job.source_tokens) == ("Ada likes tea.", 39 + 8)


def test_the_policy_gives_the_cap_and_the_template() -> None:
    policy = replace(FOLDS, summary_ratio=0.3, template="service")
    made = folding([user("w " * 300), reply("w " * 100)], policy=policy)
    job = job_of(made, made.plan(force=True), room=777)
    assert (job.cap, job.template) == (120, "service")


async def test_a_fold_says_what_it_stands_for() -> None:
    made = folding(ORDER)
    first = await folded(made, Script("Ada asked for an order that she paid."))
    assert (first.first, first.last, first.messages, first.source_tokens) == (1, 2, 2, 39)
    assert (first.written.kind, first.written.tokens) == ("model", 8)
    second = folding(ORDER, summary=SummaryPart("Before.", 1, 1, 4))
    later = replace(second, prior=tuple(shifted(second.prior)))
    done = await folded(later, Script("Ada asked for an order that she paid."))
    assert (done.first, done.last, done.messages) == (1, 6, 2)


async def test_what_a_fold_cost_before_and_costs_now_are_counted_alike() -> None:
    """Both with the literals beside the text: where nothing new is said, all that goes is what the
    messages cost."""
    first = await folded(folding(ORDER), Script("Ada asked for an order that she paid."))
    carried = first.carried
    before = SummaryPart(first.written.text, 1, 1, 2, carried.candidates, carried.fitting, (), "f")
    messages = [user("And now?"), reply("word " * 40)]
    made = folding(messages, summary=before)
    done = await folded(made, Script("Ada asked for an order that she paid."))
    assert done.tokens == first.tokens > first.written.tokens + 5
    assert done.source_tokens == first.tokens + 2 + 40
    # What is accepted as a summary is still measured by the text alone.
    assert job_of(made, made.plan(force=True), room=777).source_tokens == 8 + 5 + 2 + 40


def shifted(groups: Sequence[Group], by: int = 4) -> Iterator[Group]:
    for members in groups:
        moved = (replace(one, position=one.position + by) for one in members.messages)
        yield replace(members, messages=tuple(moved))


# What the summary lost, and what it made up


async def test_what_a_summary_lost_is_carried_verbatim() -> None:
    done = await folded(folding(ORDER), Script("The order #W2378156 was paid."))
    assert set(texts(done.carried.kept)) == {"2024-05-15", "$54.04"}
    assert (done.carried.pushed_out, done.unsupported) == ((), ())


async def test_what_a_lying_summariser_makes_up_is_found() -> None:
    lie = "The order #W2378156 cost $99.99 and comes on 2031-01-01."
    done = await folded(folding(ORDER), Script(lie))
    assert set(texts(done.unsupported)) == {"$99.99", "2031-01-01"}
    assert set(texts(done.carried.kept)) == {"$54.04", "2024-05-15"}


async def test_a_lie_is_not_carried_on_when_the_next_summary_drops_it() -> None:
    made_up = (Literal("amount", "$99.99"),)
    before = SummaryPart("It cost $99.99, says Ada of #A77123.", 1, 1, 4, unsupported=made_up)
    made = folding(ORDER, summary=before)
    done = await folded(made, Script("Ada asked for an order that she paid."))
    assert "$99.99" not in texts(done.carried.kept)
    assert "#A77123" in texts(done.carried.kept)


async def test_what_was_carried_before_is_known_and_carried_on() -> None:
    first = await folded(folding(ORDER), Script("Ada asked for an order that she paid."))
    before = SummaryPart(
        first.written.text, 1, 1, 2, first.carried.candidates, first.carried.fitting
    )
    messages = [user("Is it sent?"), reply("word " * 40)]
    done = await folded(folding(messages, summary=before), Script("Ada paid $54.04 and waits."))
    # It is in no message that was folded now, but among what was carried.
    assert done.unsupported == ()
    assert set(texts(done.carried.kept)) == {"#W2378156", "2024-05-15"}


async def test_literals_of_a_summary_edited_by_hand_are_carried_too() -> None:
    """The owner may add what no message has."""
    edited = SummaryPart("Send it to order #B4711-9 instead.", 2, 1, 4)
    done = await folded(folding(ORDER, summary=edited), Script("Ada asked for an order she paid."))
    assert "#B4711-9" in texts(done.carried.kept)


async def test_a_summary_may_repeat_what_its_owner_added() -> None:
    edited = SummaryPart("Send it to order #B4711-9 instead.", 2, 1, 4)
    done = await folded(folding(ORDER, summary=edited), Script("It goes to order #B4711-9 now."))
    assert done.unsupported == ()


async def test_arguments_of_calls_are_sources_and_are_carried() -> None:
    buy = call("buy")
    arguments = '{"order": "#W2378156", "note": "caf\\u00e9 12C"}'
    buy = replace(buy, tool_calls=(replace(buy.tool_calls[0], arguments=arguments),))
    messages = [user("buy it"), buy, result("w " * 40), reply("bought")]
    done = await folded(folding(messages), Script("Seat 12C was bought for the user."))
    assert (texts(done.carried.kept), done.unsupported) == (["#W2378156"], ())


async def test_literals_are_looked_for_in_the_transcript_not_in_shortened_messages() -> None:
    counter = CharacterCounter()
    policy = policy_from({"preset": "hybrid-tokens", "trigger_share": 0.3, "keep_share": 0.1})
    hidden = "x" * 3_000 + " order #W2378156 " + "x" * 3_000
    messages = [user("q"), call("find"), result(hidden), reply("ok")]
    messages += [user("y" * 3_000), reply("ok"), user("and now")]
    made = replace(
        context(numbered(messages, plain=False, counter=counter), policy=policy),
        counter=counter,
        budget=budget_for(4_000),
    )
    plan = made.plan()
    assert plan.action == "fold"
    shortened = plan.head[1].messages[1].content
    assert "#W2378156" not in shortened
    assert 3 in plan.whole
    done = await folded(made, Script("The assistant looked for an order."))
    assert texts(done.carried.kept) == ["#W2378156"]


# Without a model


async def test_an_archive_carries_what_it_cut_off() -> None:
    long = "word " * 300 + "and the code is #W2378156."
    done = await folded(folding([user(long), reply("ok")]), Script(CompletionFailed("network")))
    assert done.written.kind == "archive"
    assert "#W2378156" not in done.written.text
    assert texts(done.carried.kept) == ["#W2378156"]


async def test_an_archive_makes_nothing_up() -> None:
    """Its cut may leave half a word that looks like a literal of its own."""
    long = "x " * 246 + "#W2378156789 " + "w " * 50
    done = await folded(folding([user(long), reply("ok")]), Script(CompletionFailed("network")))
    assert done.written.kind == "archive"
    assert literals(done.written.text)
    assert done.unsupported == ()


async def test_an_archive_keeps_the_summary_before_it_and_its_literals() -> None:
    first = await folded(folding(ORDER), Script("Ada asked for an order that she paid."))
    before = SummaryPart(
        first.written.text, 1, 1, 2, first.carried.candidates, first.carried.fitting
    )
    messages = [user("word " * 120), reply("ok")]
    done = await folded(folding(messages, summary=before), Script(CompletionFailed("network")))
    assert done.written.text.startswith("Ada asked for an order that she paid.\n- user: word")
    assert set(texts(done.carried.kept)) == {"#W2378156", "$54.04", "2024-05-15"}


async def test_another_model_may_write_it() -> None:
    other = Script(Completion("Ada asked for an order that she paid.", model="other"))
    done = await folded(folding(ORDER), Script(""), fallback=other)
    assert (done.written.kind, done.written.model) == ("model", "other")
    assert done.written.failures == ("empty",) * 3


async def test_an_archive_that_would_cost_more_with_its_fence_is_none() -> None:
    """The archive of 121 words has 100 and a role; with the fence and the literals it is longer."""
    long = "word " * 120 + "and the code is #W2378156."
    done = await folded(folding([user(long), reply("ok")]), Script(CompletionFailed("network")))
    assert (done.written.kind, done.written.text, done.written.tokens) == ("", "", 0)
    assert done.written.failures == ("network",) * 3 + ("archive-not-shorter",)
    # A summary by the model may be: it says it in fewer words the next time.
    short = await folded(folding([user("w " * 20), reply("ok")]), Script("Ada said ok to it all."))
    assert short.written.kind == "model"


async def test_beside_a_summary_the_fence_is_paid_for_already() -> None:
    before = SummaryPart("Ada likes tea.", 1, 1, 4)
    long = "word " * 120 + "and the code is #W2378156."
    made = folding([user(long), reply("ok")], summary=before)
    done = await folded(made, Script(CompletionFailed("network")))
    assert done.written.kind == "archive"


async def test_where_nothing_shorter_is_found_there_is_no_kind() -> None:
    done = await folded(folding([user("hi"), reply("ho")]), Script(""))
    assert (done.written.kind, done.written.text) == ("", "")
    assert done.written.failures[-1] == "archive-not-shorter"
    assert (done.messages, done.unsupported) == (2, ())


# What the cap pushes out


def many(count: int) -> list[Message]:
    return [user(" ".join(f"#W{7_000_000 + number}" for number in range(count))), reply("w " * 50)]


async def test_what_the_cap_has_no_room_for_is_listed() -> None:
    # usable 300: 30 tokens, of which "- id:" takes two.
    made = folding(many(60), window=301, reserve=1)
    done = await folded(made, Script("Ada named many orders."))
    assert len(done.carried.kept) == 28
    assert len(done.carried.pushed_out) == 32
    everything = {*texts(done.carried.kept), *texts(done.carried.pushed_out)}
    assert everything == {f"#W{7_000_000 + number}" for number in range(60)}


async def test_what_was_pushed_out_comes_back_where_it_is_used_again() -> None:
    made = folding(many(60), window=301, reserve=1)
    done = await folded(made, Script("Ada named many orders."))
    gone = done.carried.pushed_out[-1].text
    before = SummaryPart(done.written.text, 1, 1, 2, done.carried.candidates, done.carried.fitting)
    again = folding([user(f"And {gone}?"), reply("w " * 50)], window=301, reserve=1, summary=before)
    again = replace(again, prior=tuple(shifted(again.prior)))
    later = await folded(again, Script("Ada named many orders, one again."))
    assert texts(later.carried.kept)[0] == gone


async def test_no_more_than_a_thousand_are_remembered_unless_they_are_carried() -> None:
    narrow = folding(many(1_500), window=401, reserve=1)
    done = await folded(narrow, Script("Ada named many orders."))
    assert len(done.carried.candidates) == REMEMBERED
    roomy = folding(many(1_500), window=20_001, reserve=1)
    done = await folded(roomy, Script("Ada named many orders."))
    assert len(done.carried.kept) == 1_500
