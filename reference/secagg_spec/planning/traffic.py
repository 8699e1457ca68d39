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
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.sealing import OVERHEAD

HEADER, SEALED = 30, OVERHEAD
"""H and C: the bytes of the header of a message (MSG-01), and those that sealing adds."""
_ROW = re.compile(r"^\| (user|server|authority) \| (\w+) \| `[^`]+` \| `([^`]+)` \|$", re.MULTILINE)
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}
)


@cache
def table(page: str) -> Mapping[tuple[str, str], ast.expr]:
    """Return the formulas for bytes of a page of the text, by role and phase."""
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
    """
    known = {"H": HEADER, "C": SEALED, **names}
    rows = table(page).items()
    return sum(_value(formula, known) for (who, phase), formula in rows if who == role and phase not in without)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
    raise ValueError(f"no formula of sums, differences and products: {ast.unparse(node)}")


guard(__name__)
