"""What makes a proof evidence: its checks compare something, and its process ends with a closing record.

Source: spec/ledger.md, section 2 (CLM-15, CLM-16).
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias, TypeVar

from secagg_spec.ledger.errors import BrokenProof, ProofFailed

T = TypeVar("T")
Say: TypeAlias = Callable[[str], None]
HOLDS: Mapping[str, int] = MappingProxyType({"check": 0, "add": 1, "agree": 2})
"""The methods that take a condition, and the position of the condition among their arguments."""
_REACHED, _SOME, _ENTRIES = "reached__", "some__", "entries__"
_GOES_THROUGH = ("all", "any", "sum", "min", "max")
"""The functions that iterate over their first argument, under their own name or as functions of arrays."""
_COMPARES = ("array_equal", "allclose", "isclose", "array_equiv")
"""The functions of numpy that compare two arrays, and are true for empty ones."""


# ------------------------------------------------------------------------------------------ what checks compare


@dataclass
class Watch:
    """The places of a file that check something or iterate, and the numbers of those that were not empty."""

    places: list[str] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def compiled(self, text: bytes, path: str) -> Any:
        """Return the code of a proof; it records in `seen` the places whose checks, loops, `all` and `any` had items.

        Raises
        ------
        BrokenProof
            A check tests a constant, or whether something equals itself, or is named without being called.
        """
        tree = ast.parse(text, path)
        return compile(ast.fix_missing_locations(_Watching(self.places, constants(tree)).visit(tree)), path, "exec")

    @property
    def names(self) -> Mapping[str, object]:
        """The functions that the instrumented code calls."""
        return {_REACHED: self._reached, _SOME: self._some, _ENTRIES: self._entries}

    @property
    def idle(self) -> list[str]:
        """The places that had nothing, each with its line."""
        return [text for place, text in enumerate(self.places) if place not in self.seen]

    def _reached(self, place: int, value: T) -> T:
        self.seen.add(place)
        return value

    def _entries(self, place: int, value: T) -> T:
        if getattr(value, "size", 1) if hasattr(value, "size") else len(value) if isinstance(value, Sized) else True:
            self.seen.add(place)
        return value

    def _some(self, place: int, items: Iterable[T]) -> Iterable[T]:
        return items if place in self.seen else self._first(place, items)

    def _first(self, place: int, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self.seen.add(place)
            yield item


class _Watching(ast.NodeTransformer):
    """Wraps each check, each iterable of a loop, of `all` and of `any`, and each compared value, to record its use."""

    def __init__(self, places: list[str], constants: frozenset[str]) -> None:
        self.places, self.constants = places, constants

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._noted(_SOME, node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self._noted(_SOME, node.iter)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr in ("check", "agree"):
            raise BrokenProof(f"line {node.lineno} names {ast.unparse(node)} and does not call it there")
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in _GOES_THROUGH and len(node.args) == 1:
            node.args[0] = self._noted(_SOME, node.args[0])
        if not isinstance(node.func, ast.Attribute):
            return self.generic_visit(node)
        name, owner = node.func.attr, node.func
        if name in _COMPARES and node.args:
            node.args[0] = self._noted(_ENTRIES, node.args[0])
        if name in ("all", "any") and node.args:
            node.args[0] = self._noted(_ENTRIES, node.args[0])
        elif name in ("all", "any"):
            owner.value = self._noted(_ENTRIES, owner.value)
        self._watch_check(node, name)
        node.args = [self.visit(each) for each in node.args]
        node.keywords = [self.visit(each) for each in node.keywords]
        owner.value = self.visit(owner.value)
        return node

    def _watch_check(self, node: ast.Call, name: str) -> None:
        """Wrap the condition of a check, and the values that it compares."""
        at = HOLDS.get(name)
        keyword = next((each for each in node.keywords if each.arg == "holds"), None)
        if at is None or not (keyword or len(node.args) > max(at, 1)):
            return
        holds = keyword.value if keyword else node.args[at]
        check_constant(holds, self.constants)
        noted = self._noted(_REACHED, holds)
        if isinstance(holds, ast.Compare) and not _is_empty(holds.comparators[0]) and not _is_empty(holds.left):
            holds.left = self._noted(_ENTRIES, holds.left)
        if keyword:
            keyword.value = noted
        else:
            node.args[at] = noted

    def _noted(self, how: str, node: ast.expr) -> ast.Call:
        self.places.append(f"line {node.lineno}: {ast.unparse(node)}")
        return ast.Call(ast.Name(how, ast.Load()), [ast.Constant(len(self.places) - 1), node], [])


def _is_empty(node: ast.expr) -> bool:
    """Return whether an expression is written as empty: a check may test that nothing is left."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and not node.args
    return not (getattr(node, "elts", True) and getattr(node, "keys", True) and getattr(node, "value", True) != "")


def constants(tree: ast.AST) -> frozenset[str]:
    """Return the names of a file that are constant wherever they are assigned."""
    fixed: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            fixed |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return frozenset(name for name in fixed if stored.count(name) == 1)


def check_constant(node: ast.expr, constants: frozenset[str] = frozenset()) -> None:
    """Refuse a check that computes nothing, or compares a value with itself; two calls may differ (CLM-15)."""
    parts = tuple(ast.walk(node))
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    calls = any(isinstance(part, ast.Call) for part in parts)
    same = isinstance(node, ast.Compare) and ast.dump(node.left) == ast.dump(node.comparators[0])
    alone = isinstance(node, ast.Name) and node.id in constants
    computes = bool(names - vars(builtins).keys()) or any(isinstance(part, ast.BinOp) for part in parts)
    if not computes or alone or (same and not calls):
        raise BrokenProof(f"line {node.lineno} checks what needs no check: {ast.unparse(node)}")


# ------------------------------------------------------------------------------------------- the closing record


def apart(who: str, work: Callable[[Say], T], say: Say) -> T:
    """Run something in its own process, and return the content of its closing record (CLM-16).

    If processes cannot be forked, it runs in this one.

    Parameters
    ----------
    who : str
        The name of the work, for the error.
    work : callable
        Receives a function that takes lines for `say`. The record holds what it returns or raises.

    Raises
    ------
    ProofFailed
        The process ended without a record, whatever its exit status.
    """
    if not hasattr(os, "fork"):
        return work(say)
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, where there are some: the child has one
        child = os.fork()
    if not child:
        _close_with_record(work, writer)
    writer.close()
    record: tuple[str, Any] | None = None
    try:
        with reader, suppress(EOFError):
            while True:
                kind, content = reader.recv()
                if kind == "line":
                    say(content)
                else:
                    record = kind, content
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found: T = closed(who, record, status)
    return found


def closed(who: str, record: tuple[str, Any] | None, status: int) -> Any:
    """Return the content of a closing record, or raise the error in it (CLM-16)."""
    if record is None:
        raise ProofFailed(f"{who} broke: its process ended with status {status} and without its closing record")
    kind, content = record
    if kind == "raised":
        raise content
    return content


def _close_with_record(work: Callable[[Say], object], writer: Any) -> NoReturn:
    """Run something, write lines and the closing record, and end this process."""
    try:
        writer.send(("returned", work(lambda line: writer.send(("line", line)))))
    except Exception as error:
        writer.send(("raised", error))
    finally:
        sys.stdout.flush()
        os._exit(0)
