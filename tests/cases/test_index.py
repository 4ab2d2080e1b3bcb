"""Every case of the corpus is somewhere, and every pointer names a test that is there."""

import ast
import re
from pathlib import Path

import pytest

from tests.cases import COVERED, IDS, LEFT

ROOT = Path(__file__).parents[2]


def functions_in(file: Path) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    return {
        node.name: node
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


HERE = {
    name: node
    for file in Path(__file__).parent.rglob("test_*.py")
    if file.name != Path(__file__).name
    for name, node in functions_in(file).items()
}


def test_every_case_is_tested_here_or_elsewhere_or_left_with_a_reason() -> None:
    assert len(IDS) == len(set(IDS)) == 108
    tested = set()
    for name in HERE:
        found = re.match(r"test_([a-z]{2})_(\d{2})_", name)
        assert found is not None, f"{name} names no case"
        tested.add(f"{found[1].upper()}-{found[2]}")
    assert all(LEFT.values())
    for id_ in IDS:
        places = [id_ in tested, id_ in COVERED, id_ in LEFT]
        assert places.count(True) == 1, (id_, places)
    assert tested | COVERED.keys() | LEFT.keys() == set(IDS)


@pytest.mark.parametrize("pointer", sorted({one for many in COVERED.values() for one in many}))
def test_a_pointer_names_a_test(pointer: str) -> None:
    file, _, name = pointer.partition("::")
    assert name in functions_in(ROOT / file)


def test_every_test_says_what_went_wrong() -> None:
    assert [name for name, node in HERE.items() if not ast.get_docstring(node)] == []
