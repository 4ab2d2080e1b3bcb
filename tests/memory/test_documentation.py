"""docs/memory.md names every preset and every parameter with its default."""

from dataclasses import fields
from pathlib import Path

import pytest

from memory.core.policy import Policy
from memory.core.presets import PRESETS

DOCS = (Path(__file__).parents[2] / "docs" / "memory.md").read_text(encoding="utf-8")
ROWS = {
    line.split("|")[1].strip(" `"): line for line in DOCS.splitlines() if line.startswith("| `")
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_a_section_with_a_diagram(preset: str) -> None:
    section = DOCS.partition(f"### {preset}")[2].partition("\n### ")[0]
    assert section
    assert "```\nbefore" in section or preset == "layered"


@pytest.mark.parametrize("name", [field.name for field in fields(Policy)])
def test_every_parameter_is_explained(name: str) -> None:
    assert name in ROWS
    for policy in PRESETS.values():
        value = getattr(policy, name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value:
            assert f"{value:,}" in ROWS[name]
