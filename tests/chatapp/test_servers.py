"""What servers differ in: the defaults by the address, and the settings that override them."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from chatapp import env, servers
from chatapp.provider import target_for
from memory.core.messages import Habits


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("", "openai"),
        ("https://api.openai.com/v1", "openai"),
        ("https://me.openai.azure.com/openai/v1", "openai"),
        ("https://api.deepseek.com", "deepseek"),
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://gpu:8000/v1", "vllm"),
        ("http://localhost:8080/v1", "llamacpp"),
        ("https://llm.example/v1", "other"),
        ("http://openai.example:1234/v1", "other"),
    ],
)
def test_the_address_tells_the_kind_of_server(address: str, kind: str) -> None:
    assert servers.kind_of(address) == kind


def test_the_demo_model_has_no_habits(settings: Any) -> None:
    assert servers.configured() == servers.Server()


def test_a_setting_overrides_what_the_kind_of_server_says(settings: Any) -> None:
    settings.LLM_BASE_URL = "https://api.deepseek.com"
    assert servers.configured().habits == Habits(reasoning="reasoning_content")
    settings.LLM_REASONING_FIELD, settings.LLM_NULL_CONTENT = "", False
    assert servers.configured().habits == Habits(null_content=False)
    settings.LLM_SERVER, settings.LLM_STREAM_USAGE = "openai", False
    assert servers.configured().most_tokens == "max_completion_tokens"
    assert "stream_options" not in target_for("m").options


def test_the_extra_body_goes_into_the_options_and_what_is_of_tools_only_with_them(
    settings: Any,
) -> None:
    settings.LLM_EXTRA_BODY = {"seed": 7, "tool_choice": "required", "parallel_tool_calls": False}
    plain, armed = target_for("m").options, target_for("m", ["shop"]).options
    assert plain["seed"] == armed["seed"] == 7
    assert "tools" not in plain
    assert "tool_choice" not in plain
    assert "parallel_tool_calls" not in plain
    assert armed["tool_choice"] == "required"
    assert armed["tools"][0]["type"] == "function"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{", "X is not JSON"),
        ("[1]", "X must be a JSON object"),
        ('{"messages": []}', "X must not set messages"),
    ],
)
def test_an_extra_body_that_cannot_be_is_refused(
    value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=told):
        env.json_object("X", never=("model", "messages"))


def test_words_and_choices_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert env.choice("X", ("a", "b")) == ""
    assert env.word("X") is None
    assert env.optional_flag("X") is None
    monkeypatch.setenv("X", "none")
    assert env.word("X") == ""
    monkeypatch.setenv("X", "no")
    assert env.optional_flag("X") is False
    monkeypatch.setenv("X", "a b")
    with pytest.raises(ImproperlyConfigured, match="X must be one of a, b"):
        env.choice("X", ("a", "b"))
    with pytest.raises(ImproperlyConfigured, match="X must be a field's name or none"):
        env.word("X")
