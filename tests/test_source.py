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


def checked_in_vain(source: str) -> list[str]:
    """Return the names that a function lets `validate.integer` check, and calculates with, but not with its result.

    What was given may be an integer of numpy, which wraps (ERR-02).
    """
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        inside = list(ast.walk(function))
        calls = [one.value for one in inside if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
        checked = [call.args[1] for call in calls if ast.unparse(call.func) == "validate.integer"]
        terms = [term for one in inside if isinstance(one, ast.BinOp) for term in (one.left, one.right)]
        names = [{one.id for one in ones if isinstance(one, ast.Name)} for ones in (checked, terms)]
        found += sorted(names[0] & names[1])
    return found


@pytest.mark.slow
@pytest.mark.requirement("ERR-02")
def test_what_is_checked_as_an_integer_is_calculated_with_as_an_int() -> None:
    found = {path.relative_to(ROOT).as_posix(): checked_in_vain(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_result_that_is_thrown_away_is_found() -> None:
    source = "def f(a, b, c):\n    validate.integer('a', a, 0)\n    b = validate.integer('b', b, 0)\n    return {}"
    assert [checked_in_vain(source.format(term)) for term in ("1 + a", "b + c", "f(a)")] == [["a"], [], []]


@pytest.mark.slow
def test_a_name_of_a_module_has_one_value() -> None:
    assert len(MODULES) > 400
    found = {path.relative_to(ROOT).as_posix(): given_twice(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {path: names for path, names in found.items() if names} == {}


def test_a_second_value_is_found() -> None:
    assert given_twice("A = 1\nB: int = 2\nC: int\nA, B = 3, 4\nx.A = 5\nC = 6") == ["A", "B"]
