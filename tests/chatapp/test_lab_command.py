"""`manage.py lab`: conversations from a file under several policies, in a table or as JSON.

None of these tests may use a database: pytest-django fails whatever tries to.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatapp.management.commands import lab as command
from chatapp.provider import Provider
from memory import compaction, lab
from memory.core.presets import PRESETS

ORDER = "My order is #W2378156, what about it?"
TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": ORDER},
    {"role": "assistant", "content": "It comes on Monday."},
    *(
        {"role": role, "content": text}
        for number in range(8)
        for role, text in (
            ("user", f"And what about number {number} of the things that I asked you about?"),
            (
                "assistant",
                f"Number {number} is a thing that many people ask about, and it is fine.",
            ),
        )
    ),
]


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(TALK))
    return file


def run(file: Path | str, **options: Any) -> str:
    out = io.StringIO()
    call_command("lab", str(file), stdout=out, no_color=True, **options)
    return out.getvalue()


def table(text: str) -> dict[str, dict[str, str]]:
    """The first table of an output: the cells of each policy by their heads."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("policy "))
    heads = lines[start].split()
    rows: dict[str, dict[str, str]] = {}
    for line in lines[start + 1 :]:
        if not line:
            break
        cells = line.split(None, len(heads) - 1)
        rows[cells[0]] = dict(zip(heads, cells, strict=True))
    return rows


def test_every_preset_has_a_row(talk: Path) -> None:
    text = run(talk, window=4_000)
    assert list(table(text)) == list(PRESETS)
    assert text.startswith("conversation: messages 18, turns 9, tokens ")
    assert "usable 3,000 of 4,000" in text.splitlines()[0]
    assert "invalid" not in text


def test_the_row_says_what_a_policy_keeps_and_costs(talk: Path) -> None:
    rows = table(run(talk, policies="window,summary", window=4_000))
    window, summary = rows["window"], rows["summary"]
    # The order's number is in the first message only.
    assert window["literals"] == "0/1"
    assert (window["folds"], window["asked"], window["folded"]) == ("0", "0", "-")
    assert (window["requests"], window["messages"], window["refused"]) == ("9", "11", "-")
    assert (summary["literals"], summary["folded"]) == ("1/1", "1/1")
    assert int(summary["folds"]) > 0
    assert int(summary["read"].replace(",", "")) > int(summary["written"].replace(",", "")) > 0


def test_what_is_refused_is_named(talk: Path) -> None:
    rows = table(run(talk, policies="full", window=200, reserve=50))
    assert rows["full"]["final"] == "-"
    assert rows["full"]["refused"].endswith(" history")


def test_several_conversations_are_shown_together_as_well(tmp_path: Path) -> None:
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(json.dumps({"messages": TALK[:3]}) for _ in range(3)))
    text = run(file, policies="full", window=4_000)
    assert [line.split(":")[0] for line in text.splitlines() if ", turns " in line] == [
        "line 1",
        "line 2",
        "line 3",
    ]
    together = table(text[text.index("all 3 conversations together") :])["full"]
    assert together["requests"] == "3"
    assert int(together["final"]) == 3 * int(table(text)["full"]["final"])
    limited = run(file, policies="full", window=4_000, limit=1)
    assert "line 2" not in limited
    assert "conversations together" not in limited


def test_a_system_prompt_may_be_given(talk: Path) -> None:
    data = json.loads(run(talk, policies="full", system="Be \0 brief.", window=4_000, json=True))
    (conversation,) = data["conversations"]
    assert conversation["policies"]["full"]["wire"][0]["content"] == "Be \ufffd brief."


def test_json_has_everything_with_the_final_windows(talk: Path) -> None:
    data = json.loads(run(talk, policies="summary,full", window=4_000, json=True))
    assert (data["window"], data["usable"], data["summarizer"]) == (4_000, 3_000, "demo")
    (conversation,) = data["conversations"]
    assert (conversation["messages"], conversation["turns"]) == (18, 9)
    assert list(conversation["policies"]) == ["summary", "full"]
    summary = conversation["policies"]["summary"]
    assert summary["policy"]["preset"] == "summary"
    assert "#W2378156" in summary["wire"][0]["content"]
    assert summary["final"]["segments"][1]["kind"] == "summary"
    assert summary["problems"] == []
    assert {fold["kind"] for fold in summary["folds"]} == {"model"}


def test_the_same_file_gives_the_same_figures(talk: Path) -> None:
    def figures() -> Any:
        data = json.loads(run(talk, policies="hybrid,summary", window=500, json=True))
        for policy in data["conversations"][0]["policies"].values():
            del policy["seconds"]
        return data

    assert figures() == figures()


def test_what_was_not_sent_is_said(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"messages": TALK[:3], "tools": '[{"name": "look"}]'}))
    assert "left out: tool schemas of " in run(file, policies="full").splitlines()[0]


def test_an_invalid_request_is_reported(talk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "problems", lambda *_args: ("something is wrong",))
    text = run(talk, policies="full", window=4_000)
    assert "invalid under full: turn 1, request 1: something is wrong" in text


def test_it_waits_as_long_as_the_application_does() -> None:
    assert lab.RETRY_TURNS == compaction.RETRY_TURNS


# What cannot be


def refusal(file: Path | str, **options: Any) -> str:
    with pytest.raises(CommandError) as caught:
        run(file, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_missing_file_is_refused_in_a_line(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json").endswith("none.json: No such file or directory")
    assert refusal(tmp_path).endswith(": Is a directory")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected at least one conversation, not an empty file"),
        ("[]", "expected at least one conversation, not an empty list"),
        ("# Title\n", "expected JSON: Expecting value: line 1 column 1 (char 0)"),
        ('[{"role": "user", "content": 3}]', "[0].content: expected a text"),
    ],
)
def test_a_file_without_conversations_is_refused_in_a_line(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "file.json"
    file.write_text(text)
    assert f"file.json: {message}" in refusal(file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": "full,best"}, "unknown policy: best; there are full, window, "),
        ({"policies": " , "}, "no policy is named; there are full, window, "),
        ({"window": 10}, "window must be at least 64 tokens, not 10"),
        ({"window": 100, "reserve": 100}, "reply_reserve must be from 1 to window - 1 (99)"),
        ({"limit": 0}, "--limit must be at least 1, not 0"),
        ({"summarizer": "env"}, "No model is configured: set LLM_BASE_URL or LLM_API_KEY"),
    ],
)
def test_an_impossible_option_is_refused_in_a_line(
    talk: Path, options: dict[str, Any], message: str
) -> None:
    assert refusal(talk, **options).startswith(message)


# The configured summariser


def test_the_configured_model_is_asked(
    talk: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any
) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = "http://127.0.0.1:1/v1", "small"
    scripted.summaries = [lambda _body: "The user asked about an order and about many things."]
    monkeypatch.setattr(command, "Provider", lambda: Provider(scripted))
    rows = table(run(talk, policies="summary", summarizer="env", window=4_000))
    assert int(rows["summary"]["asked"]) == len(scripted.bodies) > 0
    assert {body["model"] for body in scripted.bodies} == {"small"}
