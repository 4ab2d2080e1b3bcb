"""Run the tests of this folder against a server that is started for them, and stop it."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import httpx2

from tests.e2e.serving import until

HERE = Path(__file__).parent
# Seconds until a model is loaded: gigabytes, from a slow disk.
LOADING = 300.0


@contextmanager
def serving(packages: Path, gguf: Path, template: Path | None) -> Iterator[str]:
    """The address of a server of this model. Raises SystemExit where it does not start."""
    log = packages / "server.log"
    command = [sys.executable, "-m", "tests.real.serve", str(gguf)]
    if template:
        command += ["--template", str(template)]
    with log.open("wb") as errors:
        server = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": str(packages)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert server.stdout is not None
    patience = Timer(LOADING, server.kill)
    try:
        patience.start()
        address = server.stdout.readline().strip()
        patience.cancel()
        if not address:
            raise SystemExit(f"llama.cpp did not start:\n{log.read_text(errors='replace')}")
        until(lambda: answers(address), "the server answers")
        yield address
    finally:
        patience.cancel()
        server.kill()
        server.wait()


def answers(address: str) -> bool:
    try:
        return httpx2.get(f"{address}/health").status_code == 200
    except httpx2.TransportError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("packages", type=Path, help="where llama.cpp is installed")
    parser.add_argument("gguf", type=Path, help="the model's file")
    parser.add_argument("--template", type=Path, help="a chat template in place of the model's own")
    options, others = parser.parse_known_args()
    with serving(options.packages.resolve(), options.gguf, options.template) as address:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-s", "-v", str(HERE), *others],
            env={**os.environ, "REAL_MODEL_URL": f"{address}/v1", "REQUIRE_REAL": "1"},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
