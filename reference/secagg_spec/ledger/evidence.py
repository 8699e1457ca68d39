"""What makes a proof evidence: its checks compare something, and its process ends with a closing record.

Source: spec/ledger.md, section 2 (CLM-15, CLM-16).
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from types import MappingProxyType
from typing import Any, NoReturn, TypeAlias, TypeVar

from secagg_spec.ledger.errors import BrokenProof, ProofFailed

T = TypeVar("T")
Say: TypeAlias = Callable[[str], None]
HOLDS: Mapping[str, int] = MappingProxyType({"check": 0, "add": 1, "agree": 2})
"""The methods that take what holds, and where it stands among their arguments."""
_REACHED, _SOME = "reached__", "some__"


# ------------------------------------------------------------------------------------------ what checks compare


@dataclass
class Watch:
    """The places of a file where something is checked or gone through, and the numbers of those that had something."""

    places: list[str] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def compiled(self, text: bytes, path: str) -> Any:
        """Return the code of a proof, which notes in `seen` what its checks, its loops, `all` and `any` go through.

        Raises
        ------
        BrokenProof
            A check is of a constant, or of whether something equals itself.
        """
        return compile(ast.fix_missing_locations(_Watching(self.places).visit(ast.parse(text, path))), path, "exec")

    @property
    def names(self) -> Mapping[str, object]:
        """The functions that the code calls."""
        return {_REACHED: self._reached, _SOME: self._some}

    @property
    def idle(self) -> list[str]:
        """The places that had nothing, each with its line."""
        return [text for place, text in enumerate(self.places) if place not in self.seen]

    def _reached(self, place: int, value: T) -> T:
        self.seen.add(place)
        return value

    def _some(self, place: int, items: Iterable[T]) -> Iterable[T]:
        return items if place in self.seen else self._first(place, items)

    def _first(self, place: int, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self.seen.add(place)
            yield item


class _Watching(ast.NodeTransformer):
    """Puts a note around each check, and around what each loop, `all` and `any` goes through."""

    def __init__(self, places: list[str]) -> None:
        self.places = places

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._noted(_SOME, node.iter)
        return self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self._noted(_SOME, node.iter)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        at = HOLDS.get(node.func.attr) if isinstance(node.func, ast.Attribute) else None
        if isinstance(node.func, ast.Name) and node.func.id in ("all", "any") and node.args:
            node.args[0] = self._noted(_SOME, node.args[0])
        elif at is not None and len(node.args) > max(at, 1):
            check_constant(node.args[at])
            node.args[at] = self._noted(_REACHED, node.args[at])
        return self.generic_visit(node)

    def _noted(self, how: str, node: ast.expr) -> ast.Call:
        self.places.append(f"line {node.lineno}: {ast.unparse(node)}")
        return ast.Call(ast.Name(how, ast.Load()), [ast.Constant(len(self.places) - 1), node], [])


def check_constant(node: ast.expr) -> None:
    """Refuse to check what computes nothing, or compares a value with itself; two calls may differ (CLM-15)."""
    parts = tuple(ast.walk(node))
    computes = any(isinstance(part, ast.Name | ast.Attribute | ast.Call | ast.BinOp) for part in parts)
    calls = any(isinstance(part, ast.Call) for part in parts)
    same = isinstance(node, ast.Compare) and ast.dump(node.left) == ast.dump(node.comparators[0])
    if not computes or (same and not calls):
        raise BrokenProof(f"line {node.lineno} checks what needs no check: {ast.unparse(node)}")


# ------------------------------------------------------------------------------------------- the closing record


def apart(who: str, work: Callable[[Say], T], say: Say) -> T:
    """Run something in a process of its own, and return what its closing record holds (CLM-16).

    Where processes cannot be forked it is run in this one.

    Parameters
    ----------
    who : str
        What is run: for the error.
    work : callable
        Is given a function that takes lines for `say`. What it returns or raises is the record.

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
    """Return what a closing record holds, or raise the error in it (CLM-16)."""
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
