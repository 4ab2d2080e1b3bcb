"""Which texts of a summariser may become a summary: a failure never does, a good summary always."""

from typing import Any

import pytest

from memory.core.checking import refusal_reason, strip_reasoning
from memory.core.prompts import summary_request
from memory.encodings import counter_for
from tests.builders import COUNTER, numbered, user

SOURCE = "user: where is order A-77? assistant: it was sent on 3 May. " * 8


def reason(text: str, **options: Any) -> str | None:
    given = {"source": SOURCE, "source_tokens": 120, "cap": 60, "finish": "stop"}
    return refusal_reason(text, **{**given, **options}, counter=counter_for("gpt-4o"))


@pytest.mark.parametrize("text", ["", " ", "\n\t\n", "\u200b", "\ufffd"])
def test_nothing_is_refused(text: str) -> None:
    assert reason(text) == "empty"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m very sorry, I can’t do this.",
        "I am unable to summarise this conversation.",
        "**Sorry**, I can't do that.",
        "Sorry - I cannot do that.",
        "Sorry I can't.",
        "I apologize, but I cannot assist with this request.",
        "My apologies, this content is not allowed.",
        "I cannot comply.",
        "I won't summarise this.",
        "As an AI language model, I cannot read orders.",
        "As an AI, I'm not allowed to do this.",
        "Unfortunately, I have no access to it.",
        "抱歉,我无法帮助您。",
        "很抱歉,我不能提供。",
        "对不起,无法完成。",
        "我无法总结这段对话。",
        "作为一个人工智能,我不能这样做。",
        "作为AI助手,我无法提供。",
        "申し訳ありませんが、対応できません。",
        "죄송합니다. 도와드릴 수 없습니다.",
        "Lo siento, no puedo ayudar.",
        "Es tut mir leid, das geht nicht.",
        "Je suis désolé, je ne peux pas.",
        "Desculpe, não posso.",
        "Извините, я не могу помочь.",
    ],
)
def test_a_refusal_is_refused(text: str) -> None:
    assert reason(text) == "refusal"


@pytest.mark.parametrize(
    "text",
    [
        "Error: connection refused",
        "openai.RateLimitError: Error code: 429 - {'error': {'message': 'quota'}}",
        "Error code: 500 - internal",
        "ValueError: bad input",
        "Exception: boom",
        "Error generating summary",
        "Error while calling the model",
        "(Summarization failed)",
        "Summary generation failed after 3 tries",
        "Failed to generate a summary.",
        "An error occurred while processing your request.",
        "An unexpected error has occurred.",
        "Traceback (most recent call last):\n  File",
        '{"error": {"message": "overloaded"}}',
        "{'detail': 'not found'}",
        "<!DOCTYPE html><title>502</title>",
        "<html><body>gateway</body></html>",
        "502 Bad Gateway",
        "Service Unavailable",
        "HTTP 500: oops",
        "HTTP/1.1 503: oops",
        "Rate limit reached for gpt-4o",
        "Too Many Requests",
        "发生错误:连接超时",
        "摘要生成失败",
    ],
)
def test_an_error_text_is_refused(text: str) -> None:
    assert reason(text) == "error"


@pytest.mark.parametrize(
    "text",
    [
        "There is no conversation to summarize.",
        "No content was provided.",
        "It seems that no transcript has been provided in the request.",
        "I don't see any messages here to work with.",
        "There is nothing meaningful to summarise.",
        "Please provide the conversation that you want summarised.",
        "没有可以总结的内容。",
        "请提供需要总结的对话内容。",
    ],
)
def test_talk_about_the_task_is_refused(text: str) -> None:
    assert reason(text) in ("remark", "refusal")


@pytest.mark.parametrize("part", [0, 1])
def test_an_echo_of_the_prompt_is_refused(part: int) -> None:
    request = summary_request(
        numbered([user("hi")]), previous="", cap=50, language="zh", template="dialogue"
    )
    # The instruction alone: what it quotes from the conversation is refused as marks.
    sentences = request[part]["content"].split("</transcript>")[-1].strip()
    assert reason(sentences, cap=1_000, source_tokens=2_000) == "remark"


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "query_order"}</tool_call>',
        "<tool_calls><invoke>",
        '<function=query_order>{"id": 1}</function>',
        '{"name": "query_order", "arguments": {"id": "A-77"}}',
        "[TOOL_CALLS] query_order",
        "<|im_start|>assistant",
        "Ada asked.\n</transcript>",
        'Ada.</message><message role="user">more',
        "<memory>Ada</memory>",
        "<previous_summary>Ada</previous_summary>",
    ],
)
def test_tool_markup_and_marks_are_refused(text: str) -> None:
    assert reason(text) == "markup"


@pytest.mark.parametrize(
    ("finish", "why"),
    [
        ("length", "cut"),
        ("content_filter", "filtered"),
        ("tool_calls", "markup"),
        ("function_call", "markup"),
        ("stop", None),
        ("", None),
    ],
)
def test_the_finish_reason_decides_first(finish: str, why: str | None) -> None:
    assert reason("Ada asked where order A-77 is; sent on 3 May.", finish=finish) == why


@pytest.mark.parametrize(
    "text", ["OK", "ok.", "Sure!", "Understood.", "好的。", "Got it", "明白了"]
)
@pytest.mark.parametrize("tokens", [20, 120, 1_000])
def test_a_nod_is_refused_for_a_source_of_any_length(text: str, tokens: int) -> None:
    assert reason(text, source_tokens=tokens, source=SOURCE + text) == "too-short"


def test_lengths_are_refused_at_their_edges() -> None:
    def words(count: int, **options: int) -> str | None:
        given = {"cap": 50, "source_tokens": 60, **options}
        text = " ".join(["word"] * count)
        return refusal_reason(text, source="", finish="stop", counter=COUNTER, **given)

    assert (words(50), words(51)) == (None, "over-cap")
    assert words(49, source_tokens=50) is None
    assert words(50, source_tokens=50) == "not-shorter"
    # Under 12 characters for 100 tokens, under 4 tokens for 400.
    assert (words(2, source_tokens=99), words(2, source_tokens=100)) == (None, "too-short")
    assert words(3, source_tokens=399) is None
    assert words(3, source_tokens=400) == "too-short"
    assert words(4, source_tokens=400) is None


def test_a_few_characters_that_the_source_has_may_be_all_that_matters() -> None:
    assert reason("order A-77") is None
    assert reason("order B-12") == "too-short"


@pytest.mark.parametrize(
    "text",
    [
        "The user said sorry for the late reply and asked about order A-77.",
        "Ada cannot log in; error code 401 appears after the update.",
        "Error 42 appears when Ada opens the app; a reinstall is planned.",
        "Exception handling in Python was explained; next topic: generators.",
        "HTTP 404 pages were fixed on 3 May.",
        "Rate limits of the API were discussed: 60 requests a minute.",
        "As an airline agent, the assistant rebooked flight LH 123.",
        "As an AI researcher, Ada works on memory.",
        "Sorry messages to customers are to be written in a formal tone.",
        "The assistant said that it is unable to cancel order A-77.",
        "Unfortunately the parcel was lost; a refund of 20 EUR is under way.",
        "Ada wants to summarize the conversation with her boss; no notes yet.",
        "No messages from Ada since 3 May; the refund is open.",
        "用户询问订单A-77,客服抱歉地说明已于5月3日发货。",
        "用户叫小明,查询订单12345,已申请退款128元。",
        "作为AI研究员,小明关注记忆管理。",
        "OK was Ada's answer to the refund of 20 EUR.",
        "Ada asked if 3 < 4 and got <b>yes</b>.",
    ],
)
def test_a_good_summary_is_accepted(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize("text", ["Ada; likes tea.", "小明,喜欢茶。", "Ada, 42"])
def test_a_short_summary_of_a_short_source_is_accepted(text: str) -> None:
    assert reason(text, source="My name is Ada and I like tea.", source_tokens=24) is None


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>\n\nAda likes tea.", "Ada likes tea."),
        ("<THINKING>\nhm\n</THINKING> Ada.", "Ada."),
        ("<think>a</think>One. <reasoning>b</reasoning>Two.", "One. Two."),
        ("hm, the user likes\n</think>\nAda.", "Ada."),
        ("<think>a<think>b</think>c</think>Ada.", "Ada."),
        ("<think>only this</think>", ""),
        ("Ada likes tea. ", "Ada likes tea."),
        ("<think>never closed", None),
        ("Ada.<think>never closed", None),
        ("<think>closed with another</thinking>Ada.", "Ada."),
    ],
)
def test_reasoning_is_taken_off_or_the_text_refused(text: str, left: str | None) -> None:
    assert strip_reasoning(text) == left


@pytest.mark.parametrize(
    "unit", ["<think>", "<think></thinking>", "<reasoning><think>", "<think>a</think> ", "</think>"]
)
def test_repeats_of_a_tag_are_read_in_linear_time(unit: str) -> None:
    """No clock here: a quadratic pattern would not come to an end."""
    count = 1_000_000 // len(unit)
    assert strip_reasoning(unit * count + "x") == ("x" if "</" in unit else None)


@pytest.mark.parametrize("unit", [".", "._", "..a", " .", "{", "{ ", "1 ", '"', "http ", "[^"])
def test_a_megabyte_of_one_mark_is_judged_in_linear_time(unit: str) -> None:
    text = unit * (1_000_000 // len(unit)) + " and that is all of it"
    most = {"source_tokens": 2_000_000, "cap": 2_000_000}
    assert refusal_reason(text, source=SOURCE, finish="stop", counter=COUNTER, **most) is None
