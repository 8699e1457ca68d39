"""The bytes of a round: the tables of costs of the text, read and evaluated, so that no formula is stated twice.

Source: section "Costs" of the pages of SecAgg, LightSecAgg, BASecAgg and BASA (PLN-08).
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from secagg_spec import resources
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.sealing import OVERHEAD
from secagg_spec.errors import ParameterError

PAGES = ("secagg.md", "lightsecagg.md", "basecagg.md", "basa.md")
"""The pages with a table of bytes."""
HEADER, SEALED = 30, OVERHEAD
"""H and C: the bytes of the header of a message (MSG-01), and those that sealing adds."""
_ROW = re.compile(r"^\| (user|server|authority) \| (\w+) \| `[^`]+` \| `([^`]+)` \|$", re.MULTILINE)
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
)


def table(page: str) -> Mapping[tuple[str, str], ast.expr]:
    """Return the formulas for bytes of a page of the text, by role and phase.

    Raises `ParameterError` for a page without a table of bytes.
    """
    return _table(validate.one_of("page", page, PAGES))


@cache
def _table(page: str) -> Mapping[tuple[str, str], ast.expr]:
    text = (resources.root("spec") / page).read_text(encoding="utf-8")
    section = re.split(r"^## \d+\. Costs$", text, maxsplit=1, flags=re.MULTILINE)[1].split("\n## ")[0]
    return {(role, phase): ast.parse(formula, mode="eval").body for role, phase, formula in _ROW.findall(section)}


def sent(page: str, role: str, names: Mapping[str, int], without: tuple[str, ...] = ()) -> int:
    """Return the bytes that a party of a role sends, in all phases but those that are named.

    Parameters
    ----------
    page : str
        As ``"secagg.md"``.
    role : str
        ``"user"``, ``"server"`` or ``"authority"``.
    names : mapping
        The values of the symbols, but for H and C.
    without : tuple of str
        Phases of the table that do not count.

    Raises
    ------
    ParameterError
        The page, the role or a phase that does not count is not in a table, or a symbol has no value, or one is given
        that is in no formula of the page.
    """
    rows = table(page)
    symbols = {node.id for formula in rows.values() for node in ast.walk(formula) if isinstance(node, ast.Name)}
    for name in validate.mapping("names", names):
        validate.one_of("names", name, sorted(symbols - {"H", "C"}))
    known = {**names, "H": HEADER, "C": SEALED}
    validate.one_of("role", role, sorted({who for who, _ in rows}))
    for phase in validate.sequence("without", without, "phases"):
        validate.one_of("without", phase, sorted({named for _, named in rows}))
    counted = (formula for (who, phase), formula in rows.items() if who == role and phase not in without)
    return sum(_value(formula, known) for formula in counted)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name not in names:
            raise ParameterError("names", name, "with a value of this symbol")
        case ast.Name(id=name):
            return validate.integer(name, names[name], 0)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
    raise ValueError(f"no formula of sums, differences and products: {ast.unparse(node)}")


guard(__name__)
