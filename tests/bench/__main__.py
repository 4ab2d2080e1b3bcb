"""`make bench`: figures, each beside its baseline in the same run. Nothing here is a test.

The machine is shared and noisy, so compare within one run, not between runs. docs/benchmarks.md
says what each figure means.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

# In the order in which they run; each is a module with `run(folder)`.
SECTIONS = ("planning", "turns", "pages", "relay", "idle")
# Packages to compare with, apart from the environment of the tests (`make bench-setup`).
RIVALS = Path(sys.prefix) / "bench"

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")
# The figures are those of the application as it is deployed, without the query log of DEBUG.
os.environ |= {"DEBUG": "0", "LLM_BASE_URL": "", "LLM_API_KEY": "", "OPENAI_API_KEY": ""}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    chosen = parser.parse_args().sections or SECTIONS
    if unknown := set(chosen) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    sys.path.append(str(RIVALS))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VAR_DIR"] = folder
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print(f"Python {platform.python_version()}, Django {django.__version__}, ", end="")
        print(f"{os.cpu_count()} cores, SQLite")
        for section in chosen:
            started = time.monotonic()
            print(f"\n== {section} (load {os.getloadavg()[0]:.1f}) ==", flush=True)
            import_module(f"tests.bench.{section}").run(Path(folder))
            print(f"({section}: {time.monotonic() - started:.0f} s)", flush=True)


main()
