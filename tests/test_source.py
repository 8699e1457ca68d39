"""What no linter asks of the source."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "reference" / "secagg_spec").rglob("*.py"))


def given_twice(source: str) -> list[str]:
    """Return the names to which the statements of a module itself give a value more than once."""
    counted = Counter[str]()
    for statement in ast.parse(source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        counted.update(node.id for one in targets for node in ast.walk(one) if isinstance(node, ast.Name))
    return [name for name, times in counted.items() if times > 1]


@pytest.mark.slow
def test_a_name_of_a_module_has_one_value() -> None:
    assert len(MODULES) > 400
    found = {path.relative_to(ROOT).as_posix(): given_twice(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_second_value_is_found() -> None:
    assert given_twice("A = 1\nB: int = 2\nC: int\nA, B = 3, 4\nx.A = 5\nC = 6") == ["A", "B"]
