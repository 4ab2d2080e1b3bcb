"""`manage.py catalogue`: the translations, extracted, checked and compiled with Babel alone.

`--update` brings every language's django.po up to date with the sources; `--check` fails if one is
not complete; without options each django.po is compiled to the django.mo that Django reads.
"""

import re
from argparse import ArgumentParser
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

SOURCES = ("templates", "chatapp", "memory")
# Which arguments of a call are messages; (1, "c") is a context.
ARGUMENTS = {
    "_": None,
    "gettext": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "pgettext": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
KEYWORDS: Any = {name + lazy: ARGUMENTS[name] for name in ARGUMENTS for lazy in ("", "_lazy")}
# What a translation must repeat: %(name)s and %%, and {name}, which the scripts fill in.
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|\{\w+\}")
# No dates and no tool's version: the file changes only when a message does.
HEADER = r"""# Translations of Palimpsest. "make catalogue" takes the messages from the sources.
msgid ""
msgstr ""
"Language: {0.locale_identifier}\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: {0.plural_forms}\n"

"""
# How many faults an error names; the others are counted.
NAMED = 5


class Command(BaseCommand):
    help = "Compile the translations; --update or --check them against the sources."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--update", action="store_true", help="merge the sources' messages")
        action.add_argument("--check", action="store_true", help="fail if one is not translated")

    def handle(self, *args: Any, update: bool, check: bool, **options: Any) -> None:
        for code, _name in settings.LANGUAGES:
            if code == settings.LANGUAGE_CODE:  # the language of the sources
                continue
            locale = to_locale(code)
            path: Path = settings.LOCALE_PATHS[0] / locale / "LC_MESSAGES" / "django.po"
            catalog = read(path, locale)
            found = list(faults(catalog, extracted())) if check else []
            if found:
                more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
                raise CommandError(f"{locale}: {'; '.join(found[:NAMED])}{more}")
            if update:
                catalog.update(extracted(), no_fuzzy_matching=True)
                write(path, catalog)
                todo = sum(1 for _fault in faults(catalog, catalog))
                self.stdout.write(f"{locale}: {len(catalog)} messages, {todo} to translate")
            elif not check:
                compile_to(path.with_suffix(".mo"), catalog)


def extracted() -> Catalog:
    """Every message of the templates and of the Python code, in the order of the files."""
    catalog = Catalog(fuzzy=False)
    root: Path = settings.BASE_DIR
    for path in sorted(path for folder in SOURCES for path in (root / folder).rglob("*.*")):
        if path.suffix not in (".html", ".py"):
            continue
        source = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            # Calls of gettext among blanked-out text; indented lines would not be Python.
            source = re.sub(r"^\s+", "", templatize(source, path.name), flags=re.MULTILINE)
        place = (path.relative_to(root).as_posix(), 0)
        file = BytesIO(source.encode())
        for _line, ids, notes, context in extract("python", file, KEYWORDS, ["Translators:"]):
            catalog.add(ids, locations=[place], auto_comments=notes, context=context)
    return catalog


def faults(catalog: Catalog, sources: Catalog) -> Iterator[str]:
    """What is wrong with the translations of the sources' messages, one line for each."""
    for wanted in sources:
        if not wanted.id:  # the header
            continue
        original = texts(wanted.id)
        message = catalog.get(original[0], wanted.context)
        strings = texts(message.string) if message else []
        marks = set(PLACEHOLDER.findall(original[-1]))
        if message is None or len(texts(message.id)) != len(original):
            yield f"missing: {original[0]!r} (make catalogue)"
        elif not all(strings):
            yield f"untranslated: {original[0]!r}"
        elif message.fuzzy:
            yield f"fuzzy: {original[0]!r}"
        elif any(set(PLACEHOLDER.findall(text)) != marks for text in strings):
            yield f"other placeholders: {original[0]!r}"
        elif '"' in "".join(strings):
            yield f"a plain quotation mark, which may end an attribute: {original[0]!r}"


def texts(value: Any) -> list[str]:
    """The forms of a message or of its translation: one, or one for each plural."""
    return list(value) if isinstance(value, tuple | list) else [value or ""]


def read(path: Path, locale: str) -> Catalog:
    """A language's catalogue; an empty one if there is no file yet."""
    if not path.exists():
        return Catalog(locale=locale, fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=locale, abort_invalid=True)


def write(path: Path, catalog: Catalog) -> None:
    body = BytesIO()
    write_po(body, catalog, 100, omit_header=True, ignore_obsolete=True, include_lineno=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = HEADER.format(catalog) + body.getvalue().decode().rstrip() + "\n"
    path.write_text(text, encoding="utf-8")


def compile_to(path: Path, catalog: Catalog) -> None:
    """Write the compiled catalogue in one step: a server may be starting meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".mo.new")
    with fresh.open("wb") as file:
        write_mo(file, catalog)
    fresh.replace(path)
