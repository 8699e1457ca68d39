"""Edits of the source as a typing mistake makes them: one operator, bound, constant, call or refusal at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import secagg_spec
from secagg_spec.conformance.mutants.engine import Edit

PACKAGE = Path(secagg_spec.__file__).parent
PACKAGES = ("arithmetic", "crypto", "protocols", "selection", "privacy")
LEAST = 100
"""So many edits are drawn from each package, where it has so many."""

_BOTH_WAYS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.BitAnd, ast.BitOr), (ast.LShift, ast.RShift), (ast.And, ast.Or)),
)
_ONE_WAY = ((ast.Mult, ast.Add), (ast.FloorDiv, ast.Mult), (ast.Mod, ast.FloorDiv), (ast.BitXor, ast.BitOr))
_ALSO = ((ast.Div, ast.Mult), (ast.Pow, ast.Mult))
_SWAPS: Mapping[type[ast.AST], type[ast.AST]] = {
    **dict(_BOTH_WAYS),
    **{other: one for one, other in _BOTH_WAYS},
    **dict(_ONE_WAY),
    **dict(_ALSO),
}
"""What takes the place of each operator."""
_UNWRAPPED = {"sorted", "abs", "reversed", "tuple", "set", "replace"}
"""Calls that may be left out, so that their first argument stands there."""


@dataclass(frozen=True)
class Drawn:
    """One edit, and the line of the file that it changes."""

    edit: Edit
    line: int

    @property
    def id(self) -> str:
        """A name that stays as long as the function and the edit do."""
        return sha256(repr(self.edit).encode()).hexdigest()[:12]

    @property
    def package(self) -> str:
        """The package that it belongs to."""
        return self.edit.file.partition("/")[0]


def candidates(package: str) -> list[Drawn]:
    """Return all edits of a package, in the order of its files and lines."""
    files = sorted((PACKAGE / package).glob("**/*.py"))
    return [
        found for path in files for found in _of_file(path.relative_to(PACKAGE).as_posix(), path.read_text("utf-8"))
    ]


def draw(seed: int, count: int) -> list[Drawn]:
    """Return so many edits, at least `LEAST` of each package; an edit keeps its place when other functions change."""

    def place(each: Drawn) -> str:
        return sha256(f"{seed} {each.id}".encode()).hexdigest()

    known = [sorted(candidates(package), key=place) for package in PACKAGES]
    chosen = [each for found in known for each in found[:LEAST]]
    rest = sorted((each for found in known for each in found[LEAST:]), key=place)
    chosen += rest[: max(count - len(chosen), 0)]
    return sorted(chosen, key=place)[:count]


def of_lines(changed: Mapping[str, Collection[int]]) -> list[Drawn]:
    """Return all edits of some lines, by the file that they stand in."""
    return [
        each for package in PACKAGES for each in candidates(package) if each.line in changed.get(each.edit.file, ())
    ]


def _of_file(file: str, text: str) -> Iterator[Drawn]:
    lines = text.splitlines(keepends=True)
    for scope, node in _functions(ast.parse(text).body, ""):
        start, end = node.lineno - 1, node.end_lineno or node.lineno
        whole = "".join(lines[start:end])
        for found, new in _changes(node):
            edited = _written(lines, start, end, found, new)
            if edited != whole:
                yield Drawn(Edit(file, scope, ((whole, edited),)), found.lineno)


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            yield prefix + node.name, node


def _written(lines: list[str], start: int, end: int, node: ast.expr | ast.stmt, new: str) -> str:
    """Return some lines with a node replaced; columns of nodes count bytes."""
    data = [line.encode() for line in lines[start:end]]
    first, last = node.lineno - 1 - start, (node.end_lineno or node.lineno) - 1 - start
    head, tail = data[first][: node.col_offset], data[last][node.end_col_offset :]
    return b"".join([*data[:first], head + new.encode() + tail, *data[last + 1 :]]).decode()


Change = tuple[ast.expr | ast.stmt, str]


def _changes(function: ast.FunctionDef) -> Iterator[Change]:
    """Yield each node of a body that may be changed, and what takes its place."""
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.stmt):
                yield from _statement(node)
            elif isinstance(node, ast.expr):
                yield from _expression(node)


def _statement(node: ast.stmt) -> Iterator[Change]:
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, "pass"
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPS:
        yield node, _with(node, op=_SWAPS[type(node.op)]())


def _expression(node: ast.expr) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            swapped = [*node.ops[:at], _SWAPS[type(operator)](), *node.ops[at + 1 :]]
            yield node, f"({_with(node, ops=swapped)})"
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        yield node, f"({_with(node, op=_SWAPS[type(node.op)]())})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from ((node, str(value)) for value in _beside(node.value))
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.IfExp):
        yield node, f"({_with(node, body=node.orelse, orelse=node.body)})"
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp) and node.generators[0].ifs:
        left = copy.deepcopy(node.generators)
        left[0].ifs.pop()
        yield node, _with(node, generators=left)


def _beside(value: int) -> list[int | bool]:
    return [not value] if isinstance(value, bool) else [value + 1, value - 1]


def _call(node: ast.Call) -> Iterator[Change]:
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if len(plain) == len(node.args) >= 2:
        first, second, *others = node.args
        yield node, _with(node, args=[second, first, *others])
    if isinstance(node.func, ast.Name) and node.func.id in _UNWRAPPED and plain and not node.keywords:
        yield node, f"({ast.unparse(plain[0])})"
    names = {"min": "max", "max": "min", "any": "all", "all": "any"}
    if isinstance(node.func, ast.Name) and node.func.id in names:
        yield node, _with(node, func=ast.Name(names[node.func.id]))


def _with(node: ast.AST, **changed: object) -> str:
    """Return a node with other members, as text."""
    made = copy.copy(node)
    for name, value in changed.items():
        setattr(made, name, value)
    return ast.unparse(made)
