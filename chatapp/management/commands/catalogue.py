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

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import to_locale
from django.utils.translation.template import templatize

ROOT: Path = settings.BASE_DIR
SOURCES = ("templates", "chatapp", "memory")
# Which arguments of a call are messages; (1, "c") is a context.
KEYWORDS: dict[str, Any] = {
    name + lazy: arguments
    for name, arguments in {
        "_": None,
        "gettext": None,
        "gettext_noop": None,
        "ngettext": (1, 2),
        "pgettext": ((1, "c"), 2),
        "npgettext": ((1, "c"), 2, 3),
    }.items()
    for lazy in ("", "_lazy")
}
# What a translation must repeat: %(name)s and %%, and {name}, which the scripts fill in.
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%%|\{\w+\}")
# No dates, no tool's version: the file changes only when a message does.
HEADER = r"""# {name} translations of Palimpsest. Messages come from the sources: make catalogue
msgid ""
msgstr ""
"Language: {locale}\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: {plurals};\n"

"""
# How many faults one error names; the others are counted.
NAMED = 5


class Command(BaseCommand):
    help = "Compile the translations; --update or --check them against the sources."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        action = parser.add_mutually_exclusive_group()
        action.add_argument("--update", action="store_true", help="merge the sources' messages")
        action.add_argument("--check", action="store_true", help="fail if something is missing")

    def handle(self, *args: Any, update: bool, check: bool, **options: Any) -> None:
        for locale in locales():
            path = settings.LOCALE_PATHS[0] / locale / "LC_MESSAGES" / "django.po"
            catalog = read(path, locale)
            if update:
                catalog.update(extracted(), no_fuzzy_matching=True)
                write(path, catalog)
                missing = sum(not _complete(message) for message in catalog if message.id)
                self.stdout.write(f"{locale}: {len(catalog)} messages, {missing} to translate")
            elif check:
                found = list(faults(catalog, extracted()))
                if found:
                    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
                    raise CommandError(f"{locale}: {'; '.join(found[:NAMED])}{more}")
            else:
                compile_to(path.with_suffix(".mo"), catalog)


def locales() -> list[str]:
    """The folders of all languages but the one of the sources: zh_Hans, ..."""
    return [to_locale(code) for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE]


def extracted() -> Catalog:
    """Every message of the templates and of the Python code, in the order of the files."""
    catalog = Catalog(fuzzy=False)
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".html", ".txt", ".py"):
                continue
            source = path.read_text(encoding="utf-8")
            if path.suffix != ".py":
                # Calls of gettext between blanked-out text; as Python, lines must not be indented.
                source = re.sub(r"^\s+", "", templatize(source, path.name), flags=re.MULTILINE)
            name = path.relative_to(ROOT).as_posix()
            for _line, ids, comments, context in extract(
                "python", BytesIO(source.encode()), KEYWORDS, ["Translators:"]
            ):
                catalog.add(ids, locations=[(name, 0)], auto_comments=comments, context=context)
    return catalog


def read(path: Path, locale: str) -> Catalog:
    """A language's catalogue; an empty one if there is no file yet."""
    if not path.exists():
        return Catalog(locale=locale, fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=locale, abort_invalid=True)


def write(path: Path, catalog: Catalog) -> None:
    name = catalog.locale.english_name if catalog.locale else ""
    header = HEADER.format(
        name=name, locale=catalog.locale_identifier, plurals=catalog.plural_forms.rstrip("; ")
    )
    body = BytesIO()
    write_po(body, catalog, 100, omit_header=True, ignore_obsolete=True, include_lineno=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header + body.getvalue().decode().rstrip() + "\n", encoding="utf-8")


def compile_to(path: Path, catalog: Catalog) -> None:
    """Write the compiled catalogue in one step: a server may be starting meanwhile."""
    fresh = path.with_suffix(".mo.new")
    with fresh.open("wb") as file:
        write_mo(file, catalog)
    fresh.replace(path)


def _texts(value: Any) -> list[str]:
    return [value or ""] if isinstance(value, str | None) else list(value)


def _complete(message: Message) -> bool:
    return not message.fuzzy and all(_texts(message.string))


def faults(catalog: Catalog, sources: Catalog) -> Iterator[str]:
    """What is wrong with a catalogue, one line for each message."""
    for wanted in sources:
        if not wanted.id:
            continue
        key = _texts(wanted.id)[0]
        message = catalog.get(key, wanted.context)
        if message is None:
            yield f"missing: {key!r} (make catalogue)"
        elif message.fuzzy:
            yield f"fuzzy: {key!r}"
        elif not _complete(message) or len(_texts(wanted.id)) != len(_texts(message.id)):
            yield f"untranslated: {key!r}"
        elif any(_marks(text) != _marks(_texts(wanted.id)[-1]) for text in _texts(message.string)):
            yield f"other placeholders than the original: {key!r}"
        elif '"' in "".join(_texts(message.string)):
            yield f"a plain quotation mark, which ends an attribute of HTML: {key!r}"


def _marks(text: str) -> set[str]:
    return set(PLACEHOLDER.findall(text))
