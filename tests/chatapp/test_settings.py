"""Settings: documented, checked, and clear when they are wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from chatapp import env

ROOT = Path(__file__).parents[2]


def test_the_readme_names_every_variable_and_no_other() -> None:
    source = (ROOT / "chatapp" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', source))
    rows = re.findall(
        r"^\| (`[A-Z_]+`(?: or `[A-Z_]+`)?) \|", (ROOT / "README.md").read_text(), re.M
    )
    documented = {name for row in rows for name in re.findall(r"`([A-Z_]+)`", row)}
    assert documented == read


@pytest.mark.parametrize(
    ("read", "value"),
    [(env.flag, "maybe"), (env.number, "12x"), (env.number, "-1"), (env.seconds, "soon"),
     (env.seconds, "-1"), (env.seconds, "nan")],
)  # fmt: skip
def test_a_wrong_value_names_its_variable(
    read: Any, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_SETTING", value)
    with pytest.raises(ImproperlyConfigured, match="SOME_SETTING must be"):
        read("SOME_SETTING", 1)


def test_the_secret_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "var" / "key"
    first = env.secret("NO_SUCH_VARIABLE", file)
    assert len(first) > 40
    assert env.secret("NO_SUCH_VARIABLE", file) == first
    assert file.stat().st_mode & 0o077 == 0
    assert [path.name for path in file.parent.iterdir()] == ["key"]


@pytest.mark.django_db  # from Django 6.1 on, checks look at the database
def test_an_address_without_a_model_is_refused_before_serving(settings: Any) -> None:
    settings.LLM_BASE_URL = "http://127.0.0.1:1/v1"
    with pytest.raises(SystemCheckError, match="LLM_MODEL is not"):
        call_command("check")
    settings.LLM_MODEL = "some-model"
    call_command("check")


@pytest.mark.django_db  # from Django 6.1 on, checks look at the database
@pytest.mark.parametrize("key", ["sk-abc…", "sk-a\nb"])
def test_a_key_that_cannot_be_sent_is_refused_before_serving(key: str, settings: Any) -> None:
    settings.LLM_MODEL, settings.LLM_API_KEY = "some-model", key
    with pytest.raises(SystemCheckError, match="LLM_API_KEY has characters"):
        call_command("check")


def test_production_settings_pass_the_deployment_check(tmp_path: Path) -> None:
    production = {"DEBUG": "0", "HTTPS": "1", "ALLOWED_HOSTS": "chat.example"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "DEBUG"],
        cwd=ROOT,
        env=os.environ | production | {"VAR_DIR": str(tmp_path), "DJANGO_COLORS": "nocolor"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" not in done.stdout  # two that only the owner can answer
    assert "no issues (2 silenced)" in done.stdout


@pytest.mark.django_db  # from Django 6.1 on, checks look at the database
def test_several_processes_need_a_shared_layer(settings: Any) -> None:
    settings.PROCESSES = 2
    with pytest.raises(SystemCheckError, match="PROCESSES is over 1"):
        call_command("check")
    settings.REDIS_URL = "redis://127.0.0.1:6379/0"
    call_command("check")
