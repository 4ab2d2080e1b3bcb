"""Server time of the page and its fragments, in a short and in a long conversation."""

from functools import partial
from pathlib import Path
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.bench.filling import REPLY, fill
from tests.bench.timing import ROUNDS, timed

# Messages; a page shows the newest 50 of them.
SIZES = (50, 100, 10_000)
PAGES = ("conversation", "transcript", "panel_context")


def get(client: Client, address: str, _round: int) -> Any:
    answer = client.get(address, HTTP_HOST="127.0.0.1")
    assert answer.status_code == 200, f"{answer.status_code} for {address}"
    return answer


def run(_folder: Path) -> None:
    """Print the medians and their ratios (goal: 500 ms; 10,000 to 50 messages at most 1.5)."""
    filled = {size: fill(size // 2, {"preset": "hybrid"}, reply=REPLY) for size in SIZES}
    client = Client()
    client.force_login(filled[SIZES[0]].owner)
    print("milliseconds, median (95 %)")
    for name in PAGES:
        addresses = {size: reverse(name, args=[one.pk]) for size, one in filled.items()}
        taken = timed({size: partial(get, client, one) for size, one in addresses.items()})
        for size, spread in taken.items():
            with CaptureQueriesContext(connection) as queries:
                answer = get(client, addresses[size], ROUNDS)
            kilobytes = len(answer.content) / 1_000
            figures = f"{spread}  {len(queries)} queries, {kilobytes:.0f} kB"
            print(f"  {size:>6,} messages  {name:<13}  {figures}")
        for size in SIZES[:-1]:
            ratio = taken[SIZES[-1]].median / taken[size].median
            print(f"  ratio of {name}, {SIZES[-1]:,} to {size}: {ratio:.2f} (goal: at most 1.5)")
