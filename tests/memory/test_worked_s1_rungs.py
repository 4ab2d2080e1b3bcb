"""The worked examples of S1: its estimator, and what it shortens before any summary."""

from dataclasses import replace

from memory.core.messages import Message
from memory.core.tokens import message_tokens
from tests.builders import call, numbered, reply, result, user
from tests.memory.harness import ESTIMATOR, HARNESS, harness


def ten_results(tool: str) -> list[Message]:
    """Ten results of 5,000 characters, and a question of 100,000 behind them: 40,005 tokens."""
    steps = [part for _ in range(10) for part in (call(tool), result("x" * 5_000))]
    messages = [user("q"), *steps, reply("done"), user("y" * 100_000), reply("ok"), user("now")]
    return numbered(messages, plain=False, counter=ESTIMATOR)


def test_old_results_keep_head_and_tail() -> None:
    """The article counts 2,008 tokens before (without 5 for the message) and about 820 after; it
    writes that 4,000 characters are gone, but 5,000 less twice 1,000 are 3,000."""
    made = harness(ten_results("bash"), current=1)
    plan = made.plan()
    results = [one.messages[1] for one in plan.tail if len(one.messages) == 2]
    assert len(results) == 10
    for message in results:
        assert message.content.startswith("x" * 1_000 + "\n[… 3,000 characters left out")
        assert message.content.endswith("…]\n" + "x" * 1_000)
        assert (plan.whole[message.position], message.tokens) == (2_013, 837)
    # About 12,000 tokens are released.
    before = sum(message.tokens for one in made.prior for message in one.messages)
    after = sum(message.tokens for one in plan.tail for message in one.messages)
    assert before - after == 10 * (2_013 - 837) == 11_760


def test_results_of_retrieval_tools_are_left_alone() -> None:
    plan = harness(ten_results("read_file"), current=1).plan()
    assert plan.whole == {}
    assert harness(ten_results("read_file"), current=1, keep_tools=()).plan().whole.keys()


def test_nine_results_are_too_little_to_prune() -> None:
    """18,117 tokens are under the 20,000 that make it worth while."""
    messages = ten_results("bash")
    assert harness([*messages[:1], *messages[3:]], current=1).plan().whole == {}


def test_the_newest_40000_tokens_are_left_alone() -> None:
    messages = ten_results("bash")
    shorter = replace(messages[-3], tokens=messages[-3].tokens - 100)
    # Question and replies behind the last result are now just under 40,000: it is protected, and
    # the nine before it are too little.
    assert harness([*messages[:-3], shorter, *messages[-2:]], current=1).plan().whole == {}


def test_where_the_rungs_suffice_no_summary_is_made() -> None:
    filler = [replace(one, tokens=50_000) for one in numbered([user("long ago"), reply("yes")])]
    messages = [*filler, *(replace(one, position=one.position + 2, turn=one.turn + 1)
                           for one in ten_results("bash"))]  # fmt: skip
    messages[1] = replace(messages[1], tokens=1_000)
    made = harness(messages, current=1)
    assert made.measure().total > 108_000
    plan = made.plan()
    assert (plan.action, plan.trigger) == ("send", None)
    assert plan.costs.total < 108_000
    assert replace(made, policy=replace(HARNESS, rungs=False)).plan().trigger == "tokens"


def test_a_long_argument_of_an_old_call_keeps_20_characters() -> None:
    write = call("write_file")
    write = replace(
        write,
        tool_calls=(replace(write.tool_calls[0], arguments='{"text": "' + "z" * 5_000 + '"}'),),
    )
    messages = [user("q"), write, result("ok"), reply("done"), *[user("q"), reply("a")] * 11]
    made = harness(numbered(messages, plain=False, counter=ESTIMATOR))
    (short,) = made.plan().tail[1].messages[0].tool_calls
    assert short.arguments.startswith('{"text": "' + "z" * 20 + "\\n[… 4,980")
    # The transcript's own is as it was; at 24 messages nothing happens.
    assert made.prior[1].messages[0].tool_calls[0].arguments.count("z") == 5_000
    assert harness(numbered(messages[:24], plain=False, counter=ESTIMATOR)).plan().whole == {}


def test_the_estimator_counts_as_the_article_does() -> None:
    assert [ESTIMATOR.count("x" * size) for size in (0, 1, 5, 6, 5_000)] == [0, 1, 2, 3, 2_000]
    assert message_tokens(user(""), ESTIMATOR) == 5
    assert message_tokens(call("f"), ESTIMATOR) == 5 + 10 + 1 + 1
    assert message_tokens(result(""), ESTIMATOR) == 5 + 8
