"""The Chinese catalogue is complete, and the command that keeps it so finds every message."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chatapp.management.commands import catalogue
from tests.chatapp.helpers import ROOT, copy_catalogue


@pytest.fixture
def po(settings: Any, tmp_path: Path) -> Path:
    """A copy of the Chinese catalogue that a test may spoil."""
    settings.LOCALE_PATHS = [tmp_path]
    return copy_catalogue(tmp_path)


def test_the_catalogue_is_complete_and_up_to_date(po: Path) -> None:
    before = po.read_text()
    call_command("catalogue", check=True)
    call_command("catalogue", update=True)
    assert po.read_text() == before, "run: make catalogue"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"发送"', '""', "untranslated: 'Send'"),
        ('msgid "Send"\n', 'msgid "Sent off"\n', "missing: 'Send'"),
        ('msgid "Send"\n', '#, fuzzy\nmsgid "Send"\n', "fuzzy: 'Send'"),
        ('"发送"', '"“发\\"送”"', "a plain quotation mark, which may end an attribute: 'Send'"),
        ('"第 %(number)s 轮"', '"第 %(n)s 轮"', "other placeholders: 'Turn %(number)s'"),
        ('"{seconds} 秒"', '"秒"', "other placeholders: '{seconds} s'"),
    ],
)
def test_the_check_names_what_is_wrong(po: Path, old: str, new: str, fault: str) -> None:
    text = po.read_text()
    assert text.count(old) == 1
    po.write_text(text.replace(old, new))
    with pytest.raises(CommandError, match=re.escape(f"zh_Hans: {fault}")):
        call_command("catalogue", check=True)


def test_an_update_drops_what_is_gone_and_guesses_nothing(po: Path) -> None:
    text = po.read_text()
    po.write_text(text.replace('msgid "Send"\n', 'msgid "Sent"\n'))
    call_command("catalogue", update=True)
    assert po.read_text() == text.replace('"发送"', '""')


def test_messages_are_found_in_templates_and_python(settings: Any, tmp_path: Path) -> None:
    settings.BASE_DIR = tmp_path
    files = {
        "templates/a.html": """{% load i18n %}
            <p title="{% translate 'Don’t' context "verb" %}">{{ title|default:_("None") }}
              {# Translators: what it is about #}
              {% translate "100%" %}</p>
          {% blocktranslate trimmed count n=2 context "x" with a=b %}
            {{ n }} apple of {{ a }}
          {% plural %}
            {{ n }} apples of {{ a }}
          {% endblocktranslate %}""",
        "chatapp/a.py": 'a = pgettext_lazy("c", "one" " two")\nb = ngettext("cat", "cats", 2)\n',
        "memory/b/c.py": 'class A:\n    a = _("lazy")\n    b = npgettext("d", "dog", "dogs", 1)\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = {(message.context, message.id) for message in catalogue.extracted() if message.id}
    assert found == {
        ("verb", "Don’t"),
        (None, "None"),
        (None, "100%%"),
        ("x", ("%(n)s apple of %(a)s", "%(n)s apples of %(a)s")),
        ("c", "one two"),
        (None, ("cat", "cats")),
        (None, "lazy"),
        ("d", ("dog", "dogs")),
    }


def test_words_made_at_import_are_lazy() -> None:
    """A word translated while a module is imported would stay in the server's language."""
    eager = []
    for path in [*ROOT.glob("chatapp/**/*.py"), *ROOT.glob("memory/**/*.py")]:
        tree = ast.parse(path.read_text())
        names = {
            name.asname or name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "django.utils.translation"
            for name in node.names
            if name.name in ("gettext", "ngettext", "pgettext", "npgettext")
        }
        calls = [node.func for node in at_import(tree) if isinstance(node, ast.Call)]
        eager += [f"{path}:{one.lineno}" for one in calls if getattr(one, "id", None) in names]
    assert eager == []


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """What runs when a module is imported: everything but the bodies of its functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from at_import(child)
