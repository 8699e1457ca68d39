"""Mutants that are edits of the source: one function, class or module runs with some of its text replaced.

======================  ===============================================================================
an edit stands in       and is made by
======================  ===============================================================================
a function or method    its new code and defaults; the function object stays, so that every importer
                        and every table row runs the new code
a class body            the attributes that changed, and `__init__` of a dataclass
a module                the statements that changed, run again; what they bind is bound anew wherever
                        the library refers to it
======================  ===============================================================================

The text that an edit replaces must stand exactly once in the function, class or module that it names. Edits of one
thread nest; another thread waits until they are undone. A forked process keeps the edits of the thread that forked.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import os
import sys
import threading
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from secagg_spec import resources
from secagg_spec.protocols.shape import Step

_PACKAGE = Path(__file__).parents[2]
_ROOT = _PACKAGE.name
_ABOUT = {"clauses", "effect", "kind", "source"}
_EDIT = {"at", "old", "new"}
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_CLOSE = 0.4
"""How alike a line must be, by `difflib`, to be named as the one that may be meant."""


class EditError(ValueError):
    """An edit that does not fit the source, with the file and the line that is most like the one it names."""


@dataclass(frozen=True)
class Edit:
    """Some changes within one function, class or module.

    `file` is relative to the package, such as ``"protocols/secagg.py"``. `scope` is the qualified name of a function or
    class in it, and empty for the module. Each of the `changes` is a text and what takes its place.
    """

    file: str
    scope: str
    changes: tuple[tuple[str, str], ...]

    @property
    def module(self) -> str:
        """The name of the module."""
        parts = Path(self.file).with_suffix("").parts
        return ".".join((_ROOT, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    @cache  # noqa: B019 - there are as many edits as mutants
    def applied(self, text: str) -> str:
        """Return the text of the file with the changes.

        Raises
        ------
        EditError
            A text does not stand exactly once where it must, or what comes out is no Python.
        """
        start, end = self._lines(text)
        lines = text.splitlines(keepends=True)
        within = "".join(lines[start:end])
        for old, new in self.changes:
            if within.count(old) != 1:
                raise EditError(f"{self._place}: {self._said(old, lines, start, end, within.count(old))}")
            within = within.replace(old, new)
        edited = "".join([*lines[:start], within, *lines[end:]])
        try:
            ast.parse(f"if 1:\n{within}" if within.startswith((" ", "\t")) else within)
        except SyntaxError as error:
            raise EditError(f"{self._place}: with the edit this is no Python: {error}") from None
        return edited

    def edited(self) -> Any:
        """Return the function, the class or the module that the edit changes, as it is now."""
        module = import_module(self.module)
        return _member(module, self.scope) if self.scope else module

    @property
    def _place(self) -> str:
        return f"{_ROOT}/{self.file}, {self.scope or 'the module'}"

    def _lines(self, text: str) -> tuple[int, int]:
        if not self.scope:
            return 0, len(text.splitlines())
        node = _scopes(text).get(self.scope)
        if node is None:
            near = difflib.get_close_matches(self.scope, _scopes(text), 1, _CLOSE)
            raise EditError(f"{_ROOT}/{self.file} has no {self.scope}{f'; {near[0]} is most like it' if near else ''}")
        return node.lineno - 1, node.end_lineno or node.lineno

    def _said(self, old: str, lines: Sequence[str], start: int, end: int, often: int) -> str:
        if often:
            return f"{old!r} stands there {often} times, must stand once; take in more of the text around it"
        first = old.strip().partition("\n")[0]
        near = max(range(start, end), key=lambda at: difflib.SequenceMatcher(None, lines[at].strip(), first).ratio())
        return f"{old!r} does not stand there; most like it is line {near + 1}: {lines[near].strip()!r}"


def diff(edits: Sequence[Edit], context: int = 2) -> str:
    """Return edits as unified diffs of the files that they change."""
    return "".join(
        line
        for file, after in _together(edits).items()
        for line in difflib.unified_diff(
            _original(file).splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{_ROOT}/{file}",
            f"b/{_ROOT}/{file}",
            n=context,
        )
    )


def _together(edits: Sequence[Edit]) -> dict[str, str]:
    """Return the texts of files with edits."""
    texts: dict[str, str] = {}
    for edit in edits:
        texts[edit.file] = edit.applied(texts.get(edit.file, _original(edit.file)))
    return texts


# ------------------------------------------------------------------------------------------------------- what is read


def read(path: Path) -> Iterator[tuple[str, dict[str, Any], tuple[Edit, ...]]]:
    """Yield the name of each mutant in a file, what is said of it, and its edits; a composite has `parts` and no edit.

    A mutant with one place has one edit, of several changes perhaps. One with a list of places has an edit in each.

    Raises
    ------
    EditError
        A member is missing or unknown, or `at`, `old` and `new` are not of one length.
    """
    for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        needed = _ABOUT | ({"parts"} if "parts" in entry else _EDIT)
        missing, strange = sorted(needed - set(entry)), sorted(set(entry) - needed - {"test"})
        if missing or strange:
            raise EditError(f"{path.name}, {name}: missing {missing}, unknown {strange}")
        if "parts" in entry:
            yield name, entry, ()
            continue
        at, old, new = ([part] if isinstance(part, str) else part for part in (entry["at"], entry["old"], entry["new"]))
        if len(old) != len(new) or not all(old) or len(at) not in (1, len(old)):
            raise EditError(f"{path.name}, {name}: old and new must be one text, or lists of one length, old not empty")
        pairs = list(zip(old, new, strict=True))
        yield name, entry, tuple(_edits(at, pairs))


def _edits(at: Sequence[str], pairs: Sequence[tuple[str, str]]) -> Iterator[Edit]:
    """Yield the edit of each place."""
    for place in dict.fromkeys(at):
        file, _, scope = place.partition(":")
        here = [pair for where, pair in zip(at, pairs, strict=True) if where == place] if len(at) > 1 else pairs
        yield Edit(file, scope, tuple(here))


def faults() -> Iterator[str]:
    """Yield what keeps edits from being made, with the file that holds each and what to do."""
    for path in files():
        try:
            for name, _, made in read(path):
                try:
                    _together(made)
                except (EditError, OSError) as error:
                    yield f"spec/mutants/{path.name}, {name}: {error}"
        except (EditError, tomllib.TOMLDecodeError) as error:
            yield f"spec/mutants/{path.name}: {error}"
    for name, edit in equivalent():
        try:
            _together([edit])
        except (EditError, OSError) as error:
            yield f"spec/equivalent.toml, {name}: {error}"


def equivalent() -> Iterator[tuple[str, Edit]]:
    """Yield the edits that change no result, each by itself, with the name of its entry in spec/equivalent.toml."""
    text = (resources.root("spec") / "equivalent.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(text)["change"]:
        for at, old, new in entry.get("edits", ()):
            yield entry["name"], *_edits([at], [(old, new)])


def files() -> list[Path]:
    """Return the files that hold the mutants, in the order of their names."""
    return sorted((resources.root("spec") / "mutants").glob("*.toml"))


@cache
def _original(file: str) -> str:
    return (_PACKAGE / file).read_text(encoding="utf-8")


@cache
def _scopes(text: str) -> Mapping[str, _Scope]:
    """Return all functions and classes of a text by their qualified names, those inside of functions left out."""
    found: dict[str, _Scope] = {}

    def walk(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, _Scope):
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")

    walk(ast.parse(text).body, "")
    return found


# ---------------------------------------------------------------------------------------------------------- planting

_LOCK = threading.RLock()
_TEXTS: dict[str, str] = {}
"""The text of each file that is edited now."""


def _unlocked() -> None:
    """Give a forked process a lock of its own: the thread that held the other one may not be there."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked)


@contextmanager
def planted(edit: Edit) -> Iterator[None]:
    """Run with an edit for the time of the context; what was there before comes back however the context ends.

    Raises
    ------
    EditError
        The edit does not fit the source.
    """
    with _LOCK, ExitStack() as stack:
        module = import_module(edit.module)
        before = _TEXTS.get(edit.file, _original(edit.file))
        text = edit.applied(before)
        stack.callback(_TEXTS.__setitem__, edit.file, before)
        _TEXTS[edit.file] = text
        for undo in _made(edit, module, before, text):
            stack.callback(*undo)
        yield


def _made(edit: Edit, module: ModuleType, before: str, text: str) -> Iterator[tuple[Any, ...]]:
    """Make an edit; yield what undoes each part of it, before that part is made."""
    node = _scopes(text).get(edit.scope)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = _function(edit.edited())
        if function is None:
            raise EditError(f"{edit._place}: this is no function when the program runs")
        yield _put, function, _parts(function)
        _put(function, _renewed(edit, function, node, text))
    elif node is not None:
        yield from _class(module, edit, before, text)
    else:
        yield from _statements(module, edit, before, text)


def _member(module: ModuleType, scope: str) -> Any:
    """Return what a qualified name stands for, as the class that has it holds it."""
    owner: Any = module
    for part in scope.split("."):
        owner = inspect.getattr_static(owner, part)
    return owner


def _function(value: Any) -> FunctionType | None:
    """Return the function in a method, property or cached function."""
    for wrapper, inner in ((property, "fget"), (functools.cached_property, "func")):
        value = getattr(value, inner) if isinstance(value, wrapper) else value
    value = inspect.unwrap(getattr(value, "__func__", value))
    return value if isinstance(value, FunctionType) else None


_Parts = tuple[CodeType, tuple[Any, ...] | None, dict[str, Any] | None]


def _parts(function: FunctionType) -> _Parts:
    return function.__code__, function.__defaults__, function.__kwdefaults__


def _put(function: FunctionType, parts: _Parts) -> None:
    function.__code__, function.__defaults__, function.__kwdefaults__ = parts


def _renewed(edit: Edit, function: FunctionType, node: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> _Parts:
    """Return what a function consists of in an edited text."""
    code = _code(text, edit.file, edit.scope)
    if code.co_freevars != function.__code__.co_freevars:
        raise EditError(f"{edit._place}: with the edit it takes other names from around it")
    was = _scopes(_original(edit.file)).get(edit.scope)
    assert was is None or isinstance(was, ast.FunctionDef | ast.AsyncFunctionDef)
    if was is None or ast.dump(was.args) == ast.dump(node.args):
        return code, function.__defaults__, function.__kwdefaults__
    names = function.__globals__
    defaults = tuple(_value(each, names) for each in node.args.defaults)
    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
    return code, defaults or None, {arg.arg: _value(each, names) for arg, each in pairs if each is not None} or None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<default>", "eval"), names)  # noqa: S307 - the text of a mutant


@cache
def _code(text: str, file: str, scope: str) -> CodeType:
    """Return the code of a function, by its qualified name, in the text of a module."""
    todo = [compile(text, str(_PACKAGE / file), "exec")]
    found = []
    while todo:
        code = todo.pop()
        found += [code] if code.co_qualname == scope else []
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return max(found, key=lambda code: code.co_firstlineno)


@cache
def _changed(before: str, text: str, scope: str = "") -> list[ast.stmt]:
    """Return the statements of a class, or of a module, that its text before lacks."""
    first, second = (_scopes(each)[scope].body if scope else ast.parse(each).body for each in (before, text))
    known = {ast.dump(statement) for statement in first}
    return [statement for statement in second if ast.dump(statement) not in known]


def _names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a body binds."""
    if isinstance(statement, _Scope):
        return [statement.name]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _class(module: ModuleType, edit: Edit, before: str, text: str) -> Iterator[tuple[Any, ...]]:
    """Take attributes over from a class that is made from the edited text."""
    owner, node = edit.edited(), _scopes(text)[edit.scope]
    names = [name for statement in _changed(before, text, edit.scope) for name in _names(statement)]
    made = dict(vars(module))
    _run([node], edit, made)
    new = made[edit.scope.rpartition(".")[2]]
    generated = ["__init__"] if hasattr(owner, "__dataclass_fields__") else []
    for name in dict.fromkeys([*names, *generated]):
        if name in vars(new):
            value = vars(new)[name]
            yield (setattr, owner, name, vars(owner)[name]) if name in vars(owner) else (delattr, owner, name)
            setattr(owner, name, value)


def _statements(module: ModuleType, edit: Edit, before: str, text: str) -> Iterator[tuple[Any, ...]]:
    """Run the statements that changed, and bind what they bind wherever the library refers to what was there."""
    changed = _changed(before, text)
    names = [name for statement in changed for name in _names(statement)]
    made = dict(vars(module))
    _run(changed, edit, made)
    for name in dict.fromkeys(names):
        was = vars(module).get(name)
        for holder, attribute in list(_referring(module, name, was)):
            yield _set, holder, attribute, was
            _set(holder, attribute, made[name])


def _referring(module: ModuleType, name: str, was: object) -> Iterator[tuple[Any, str]]:
    """Yield everything that refers to a value: its module, the modules and the tables that took it over."""
    yield module, name
    for other in [value for key, value in list(sys.modules.items()) if key.startswith(f"{_ROOT}.")]:
        if other is not module and vars(other).get(name) is was:
            yield other, name
        yield from ((step, "run") for step in getattr(other, "TABLE", ()) if getattr(step, "run", None) is was)


def _set(holder: Any, attribute: str, value: Any) -> None:
    """Set an attribute, of a row of a protocol's table as well, which is frozen otherwise."""
    if isinstance(holder, Step):
        object.__setattr__(holder, attribute, value)
    else:
        setattr(holder, attribute, value)


def _run(statements: Sequence[ast.stmt], edit: Edit, names: dict[str, Any]) -> None:
    """Run statements of a file in a namespace."""
    exec(compile(ast.Module([*statements], []), str(_PACKAGE / edit.file), "exec"), names)  # noqa: S102
