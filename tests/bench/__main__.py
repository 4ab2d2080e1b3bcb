"""`make bench`: figures, each beside its baseline in the same run. Nothing here is a test.

The machine is shared and noisy, so compare within one run, not between runs.
"""

import os
import tempfile
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["VAR_DIR"] = folder
        import django

        django.setup()
        from django.core.management import call_command

        from tests.bench import turns

        call_command("migrate", verbosity=0)
        print(f"database: SQLite in {Path(folder).name}, {os.cpu_count()} cores\n")
        turns.run()


main()
