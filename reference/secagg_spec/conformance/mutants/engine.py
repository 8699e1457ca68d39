"""Mutants as edits of the source: one function, class or module runs with some of its text replaced.

======================  ===============================================================================
place of an edit        how it is applied
======================  ===============================================================================
a function or method    it gets new code and defaults; the function object stays, so every importer and
                        every table row runs the new code. If a decorator changed, such as the row of a
                        step, the edit counts as a change of the class or module
a class body            the changed methods, as above; otherwise the changed attributes, and what
                        `dataclass` derives from them
a module                the changed functions and classes, as above; otherwise the changed statements
                        run again, and so does what the library computes from them when it is
                        imported
======================  ===============================================================================

The text that an edit replaces must occur exactly once in the function, class or module that the edit names. Edits of
one thread nest; another thread waits until they are undone. A forked process keeps only the edits of the thread that
forked. Values that the library computed from a function at import stay unchanged.
"""

import ast
import difflib
import enum
import functools
import hashlib
import inspect
import os
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from secagg_spec import documents, resources
from secagg_spec.errors import UsageError

_PACKAGE = Path(__file__).parents[2]
_ROOT = _PACKAGE.name
_ABOUT = {"clauses", "effect", "kind", "source"}
_EDIT = {"at", "old", "new"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef
_KEPT = 512
"""The number of texts whose syntax trees are kept: as many as the package has files, and some edited ones."""
_CLOSE = 0.4
"""The minimum similarity, by `difflib`, for naming a line or a scope as the one that may be meant."""


class EditError(UsageError):
    """An edit does not fit the source; the message names the file and the most similar line."""


@dataclass(frozen=True)
class Edit:
    """One or more changes within one function, class or module.

    `file` is relative to the package, such as ``"protocols/secagg/round.py"``. `scope` is the qualified name of a
    function or class in it, or empty for the module. Each of the `changes` is an old text and its replacement.
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
        """Return the text of the file with all changes applied at once.

        Raises
        ------
        EditError
            An old text does not occur exactly once, two old texts overlap, or the result is not valid Python or does
            the same as before, because only comments and layout changed, for instance.
        """
        lines = _lines_of(text)
        start, end = self._lines(text)
        within = "".join(lines[start:end])
        places = []
        for old, new in self.changes:
            at = within.find(old)
            if at < 0 or within.find(old, at + 1) >= 0:
                raise EditError(f"{self._place}: {self._said(old, lines, start, end)}")
            places.append((at, at + len(old), new))
        edited, here = "", 0
        for first, last, new in sorted(places):
            if first < here:
                raise EditError(f"{self._place}: two of the texts overlap; make one of them")
            edited, here = edited + within[here:first] + new, last
        edited += within[here:]
        try:
            same = _digest(edited) == _digest(within)
        except SyntaxError as error:
            raise EditError(f"{self._place}: with the edit this is no Python: {error}") from None
        if same:
            raise EditError(f"{self._place}: the edit changes nothing that runs")
        return "".join([*lines[:start], edited, *lines[end:]])

    def edited(self) -> Any:
        """Return the current function, class or module that the edit changes."""
        module = import_module(self.module)
        return _member(module, self.scope) if self.scope else module

    @property
    def _place(self) -> str:
        return f"{_ROOT}/{self.file}, {self.scope or 'the module'}"

    def _lines(self, text: str) -> tuple[int, int]:
        if not self.scope:
            return 0, len(_lines_of(text))
        node = _scopes(text).get(self.scope)
        if node is None:
            near = difflib.get_close_matches(self.scope, _scopes(text), 1, _CLOSE)
            raise EditError(f"{_ROOT}/{self.file} has no {self.scope}{f'; {near[0]} is most like it' if near else ''}")
        return _range(node)

    def _said(self, old: str, lines: Sequence[str], start: int, end: int) -> str:
        within = "".join(lines[start:end])
        often = sum(within.startswith(old, at) for at in range(len(within)))
        if often:
            return f"{old!r} stands there {often} times, must stand once; take in more of the text around it"
        first = old.strip().partition("\n")[0]
        near = max(range(start, end), key=lambda at: _likeness(lines[at].strip(), first))
        return f"{old!r} does not stand there; most like it is line {near + 1}: {lines[near].strip()!r}"


@cache
def _digest(part: str) -> bytes:
    """Return a digest of what a part of a text does when it runs, independent of layout."""
    text = f"if 1:\n{part}" if part.startswith((" ", "\t")) else part
    return hashlib.sha256(repr(_unplaced(compile(text, "<edit>", "exec", dont_inherit=True))).encode()).digest()


def _unplaced(code: CodeType) -> tuple[object, ...]:
    """Return all of a code object but where its lines stand."""
    constants = [_unplaced(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return (*names, *counts, code.co_code, code.co_exceptiontable, constants)


def _likeness(line: str, part: str) -> tuple[int, float]:
    """Return how much of `part` occurs in a line, with a bonus for long pieces, and the similarity of the two."""
    matcher = difflib.SequenceMatcher(None, line, part, autojunk=False)
    return sum(block.size**2 for block in matcher.get_matching_blocks()), matcher.ratio()


def diff(edits: Sequence[Edit], context: int = 2) -> str:
    """Return edits as unified diffs of the files that they change."""
    return "".join(
        line
        for file, after in _together(edits).items()
        for line in difflib.unified_diff(
            _lines_of(_original(file)), _lines_of(after), f"a/{_ROOT}/{file}", f"b/{_ROOT}/{file}", n=context
        )
    )


def _together(edits: Sequence[Edit]) -> dict[str, str]:
    """Return the edited texts, by file."""
    texts: dict[str, str] = {}
    for edit in edits:
        texts[edit.file] = edit.applied(texts.get(edit.file, _original(edit.file)))
    return texts


def table(path: Path) -> dict[str, Any]:
    """Return the content of a file of the project.

    Raises
    ------
    EditError
        It is not TOML; the message is one line.
    """
    try:
        return documents.read_toml(path)
    except ValueError as error:
        raise EditError(f"{path.name}: cannot be used: {' '.join(str(error).split())}") from None


def read(path: Path) -> Iterator[tuple[str, dict[str, Any], tuple[Edit, ...]]]:
    """Yield the name of each mutant in a file, its description, and its edits; a composite has `parts` and no edits.

    A mutant with one place has one edit, which may hold several changes. A mutant with a list of places has an edit for
    each.

    Raises
    ------
    EditError
        The file is not TOML, a member is missing or unknown, or `at`, `old` and `new` differ in length.
    """
    for name, entry in table(path).items():
        if not isinstance(entry, dict):
            raise EditError(f"{path.name}, {name}: must be a table, which begins with [{name}]")
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
    """Yield the reasons why edits cannot be applied, each with the file of the edit and a remedy."""
    for path in files():
        try:
            for name, _, made in read(path):
                try:
                    _together(made)
                except (EditError, OSError) as error:
                    yield f"spec/mutants/{path.name}, {name}: {error}"
        except EditError as error:
            yield f"spec/mutants/{path.name}: {error}"
    try:
        for name, edit in equivalent():
            try:
                _together([edit])
            except (EditError, OSError) as error:
                yield f"spec/equivalent.toml, {name}: {error}"
    except EditError as error:
        yield f"spec/equivalent.toml: {error}"


def equivalent() -> Iterator[tuple[str, Edit]]:
    """Yield the edits that change no result, one at a time, with the name of the entry in spec/equivalent.toml."""
    for entry in table(resources.root("spec") / "equivalent.toml")["change"]:
        for at, old, new in entry.get("edits", ()):
            yield entry["name"], *_edits([at], [(old, new)])


def files() -> list[Path]:
    """Return the files that hold the mutants, sorted by name."""
    return sorted((resources.root("spec") / "mutants").glob("*.toml"))


@cache
def _original(file: str) -> str:
    return (_PACKAGE / file).read_text(encoding="utf-8")


def _lines_of(text: str) -> list[str]:
    """Return the lines of a text as Python counts them; `str.splitlines` splits at further characters."""
    return [f"{line}\n" for line in text.split("\n")[:-1]] + [rest for rest in text.split("\n")[-1:] if rest]


@lru_cache(_KEPT)
def _scopes(text: str) -> Mapping[str, _Scope]:
    """Return all functions and classes of a text by qualified name, except those inside functions."""
    found: dict[str, _Scope] = {}

    def walk(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, _Scope):
                found[prefix + node.name] = node
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")

    walk(ast.parse(text).body, "")
    return found


def _range(node: _Scope) -> tuple[int, int]:
    """Return the lines of a function or class, its decorators included: the index of the first, and of what follows."""
    first = min((each.lineno for each in node.decorator_list), default=node.lineno)
    return first - 1, node.end_lineno or node.lineno


def _part(before: str, text: str, scope: str) -> str:
    """Return an edited text with nothing but the statement of the module that has the edited scope, on its own lines.

    Reading this part takes a small share of the time that the whole module takes.
    """
    node = _scopes(before).get(scope.partition(".")[0])
    if node is None:
        return text
    first, last = _range(node)
    lines = _lines_of(text)
    return "\n" * first + "".join(lines[first : len(lines) - len(_lines_of(before)) + last])


@lru_cache(_KEPT)
def _body(text: str, scope: str = "") -> Sequence[ast.stmt]:
    """Return the statements of a class or of a module."""
    node = _scopes(text)[scope] if scope else ast.parse(text)
    return node.body


@cache
def _code(text: str, file: str, scope: str) -> CodeType:
    """Return the code of a function, by qualified name, in the text of a module."""
    todo = [compile(text, str(_PACKAGE / file), "exec")]
    found = []
    while todo:
        code = todo.pop()
        found += [code] if code.co_qualname == scope else []
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return max(found, key=lambda code: code.co_firstlineno)


def _arguments(text: str, scope: str) -> ast.arguments:
    """Return the arguments of a function."""
    node = _scopes(text)[scope]
    assert isinstance(node, _Function)
    return node.args


def _names(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a body binds."""
    if isinstance(statement, _Scope):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    targets: Iterable[ast.AST] = ()
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value:
        targets = [statement.target]
    return [node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)]


def _only_binds(statement: ast.stmt) -> bool:
    """Return whether a statement only binds names, so that it can be run again and undone."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return not any(isinstance(node, ast.Attribute | ast.Subscript) for each in targets for node in ast.walk(each))
    return isinstance(statement, _Scope | ast.Import | ast.ImportFrom)


class _Loads(ast.NodeVisitor):
    """The names that a statement uses when it runs; function bodies count only if the statement calls the function."""

    def __init__(self, statement: ast.stmt, functions: Mapping[str, _Function]) -> None:
        self.names: set[str] = set()
        self._functions = dict(functions)
        self.visit(statement)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and (called := self._functions.pop(node.func.id, None)):
            for each in called.body:
                super().generic_visit(each)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for each in (*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(each)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for each in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(each)


@cache
def _loads(text: str, scope: str = "") -> Sequence[tuple[ast.stmt, frozenset[str]]]:
    """Return the statements of a body, each with the names that it uses when it runs."""
    functions = {node.name: node for node in _body(text) if isinstance(node, _Function)}
    return [(statement, frozenset(_Loads(statement, functions).names)) for statement in _body(text, scope)]


@cache
def _imports(text: str) -> Sequence[tuple[str, str, str]]:
    """Return the names that a module imports: the source module, the name there, and the local name."""
    return [
        (node.module or "", alias.name, alias.asname or alias.name)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]


_LOCK = threading.RLock()
_TEXTS: dict[str, str] = {}
"""The current text of each edited file; empty after an edit is undone."""
_MADE: list[tuple[int, ExitStack]] = []
"""The active edits, in order: the thread that applied each, and the stack that undoes it."""
_CACHING = tuple(f"{_ROOT}.{package}" for package in ("arithmetic", "crypto", "protocols", "privacy", "selection"))
"""The packages whose functions may cache results."""
_Cached = type(cache(lambda: None))
Undo = tuple[Any, ...]
"""A function and its arguments."""


def _after_fork() -> None:
    """In a forked process, create a new lock, and undo the edits of other threads, which do not exist there."""
    global _LOCK  # noqa: PLW0603
    _LOCK = threading.RLock()
    for thread, stack in reversed(_MADE):
        if thread != threading.get_ident():
            stack.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def planted(edit: Edit) -> Iterator[None]:
    """Apply an edit for the duration of the context; the original is restored however the context ends.

    Raises
    ------
    EditError
        The edit does not fit the source, or cannot be applied while the program runs.
    """
    with _LOCK, ExitStack() as stack:
        try:
            _make(edit, stack)
        except EditError:
            raise
        except Exception as error:
            raise EditError(f"{edit._place}: this cannot be made: {type(error).__name__}: {error}") from error
        yield


def _make(edit: Edit, stack: ExitStack) -> None:
    """Apply an edit, and push its undo steps onto a stack; each step is pushed before the part that it undoes."""
    module = import_module(edit.module)
    before = _TEXTS.get(edit.file) or _original(edit.file)
    text = edit.applied(before)
    stack.callback(forget)
    _MADE.append((threading.get_ident(), stack))
    stack.callback(_MADE.pop)
    stack.callback(_TEXTS.update, {edit.file: _TEXTS.get(edit.file, "")})
    _TEXTS[edit.file] = text
    for undo in _Making(edit, module, before, text).made():
        stack.callback(*undo)
    forget()


def forget() -> None:
    """Clear the caches of the protocols and the packages they use, so no value from before or after an edit stays."""
    for cached in _caches(len(sys.modules)):
        cached.cache_clear()


@lru_cache(1)
def _caches(modules: int) -> Sequence[Any]:
    """Return the functions with a cache. The search is repeated when the number of modules changes, or after `_set`."""
    found = {
        id(value): value
        for name, module in list(sys.modules.items())
        if name.startswith(_CACHING)
        for value in list(vars(module).values())
        if isinstance(value, _Cached)
    }
    return list(found.values())


def _set(module: ModuleType, name: str, value: object) -> None:
    """Bind a name of a module, which may be a function with a cache from now on."""
    _caches.cache_clear()
    setattr(module, name, value)


def _member(module: ModuleType, scope: str) -> Any:
    """Return the object with a qualified name, as the class stores it, without binding."""
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


def _defaults(arguments: ast.arguments, names: dict[str, Any]) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    """Return the default values of a function's arguments."""
    plain = tuple(_value(each, names) for each in arguments.defaults)
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return plain or None, {arg.arg: _value(each, names) for arg, each in pairs if each is not None} or None


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<default>", "eval"), names)  # noqa: S307 - the text of a mutant


_DERIVED = (
    *("__init__", "__repr__", "__hash__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__"),
    *("__match_args__", "__dataclass_fields__"),
)
"""The members that `dataclass` derives from the fields of a class."""


def _has_fields(owner: type) -> bool:
    """Return whether `dataclass` was applied to this class itself, not only to a base class."""
    return "__dataclass_fields__" in vars(owner)


def _cells(value: Any) -> list[CellType]:
    """Return the closure cells of a method; the only one possible is the cell of the class."""
    function = _function(value)
    return [] if function is None else [cell for cell in function.__closure__ or () if cell != CellType()]


def _around(node: _Scope) -> list[str]:
    """Return the decorators of a function or a class, and the bases and keywords of a class."""
    above = [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else []
    return [ast.dump(each) for each in (*node.decorator_list, *above)]


def _late(module: ModuleType, statement: ast.stmt, names: Iterable[str]) -> str:
    """Say that something was computed when the program started and is not computed again."""
    used = ", ".join(sorted(names))
    return f"line {statement.lineno} of {module.__name__} uses {used} when the program starts: edit that line"


@cache
def _file(path: str, package: Path) -> str:
    """Return the path of a module below the package; nothing if the module is not part of the package."""
    return Path(path).relative_to(package).as_posix() if Path(path).is_relative_to(package) else ""


def _text(module: ModuleType) -> str:
    """Return the current text of a module; empty if the module is not part of the package."""
    file = _file(getattr(module, "__file__", None) or "/", _PACKAGE)
    return file and (_TEXTS.get(file) or _original(file))


def _holders(module: ModuleType, name: str, value: object) -> Iterator[tuple[ModuleType, str]]:
    """Yield all modules of the library that hold a name of a module, with the name under which each holds it."""
    yield module, name
    for other in [other for key, other in list(sys.modules.items()) if key.startswith(f"{_ROOT}.")]:
        for source, there, here in _imports(_text(other)) if name in _text(other) else ():
            if (source, there) == (module.__name__, name) and vars(other).get(here, _holders) is value:
                yield from _holders(other, here, value)


def _rebind(module: ModuleType, name: str, value: object, new: object) -> None:
    """Rebind a name of a module everywhere it was imported."""
    for holder, known in list(_holders(module, name, value)):
        _set(holder, known, new)


class _Making:
    """Apply an edit of a module: yield the undo step of each part just before applying that part."""

    def __init__(self, edit: Edit, module: ModuleType, before: str, text: str) -> None:
        self.edit, self.module, self.before, self.text = edit, module, before, text
        self.part = _part(before, text, edit.scope)

    def made(self) -> Iterator[Undo]:
        """Apply the edit.

        Raises
        ------
        EditError
            The edit cannot be applied while the program runs, or would change nothing.
        """
        scope, nothing = self.edit.scope, True
        first, second = _scopes(self.before).get(scope), _scopes(self.part).get(scope)
        body = isinstance(first, _Function) and isinstance(second, _Function) and _around(first) == _around(second)
        outer = scope.rpartition(".")[0] if isinstance(second, _Function) else scope
        for undo in self._function(scope) if body else self._changed(outer):
            nothing = False
            yield undo
        if nothing:
            raise self._refused("the edit changes nothing when the program runs")

    def _refused(self, why: str) -> EditError:
        return EditError(f"{self.edit._place}: {why}")

    def _function(self, scope: str) -> Iterator[Undo]:
        """Give a function the code and the defaults from the edited text."""
        function = _function(_member(self.module, scope))
        if function is None or function.__qualname__ != scope:
            raise self._refused(f"{scope} is no function of its own when the program runs")
        code = _code(self.part, self.edit.file, scope)
        if code.co_freevars != function.__code__.co_freevars:
            raise self._refused("with the edit it takes other names from around it")
        first, second = (_arguments(text, scope) for text in (self.before, self.part))
        parts = _parts(function)
        yield _put, function, parts
        same = ast.dump(first) == ast.dump(second)
        _put(function, (code, *(parts[1:] if same else _defaults(second, function.__globals__))))

    def _changed(self, scope: str) -> Iterator[Undo]:
        """Edit a class or a module: functions and classes in place, and other statements by rebinding names."""
        first, second = _body(self.before, scope), _body(self.part if scope else self.text, scope)
        known = {ast.dump(statement) for statement in first}
        old = {node.name: node for node in first if isinstance(node, _Scope)}
        rest = []
        for statement in second:
            if ast.dump(statement) in known:
                continue
            if isinstance(statement, _Scope) and self._stays(scope, old.get(statement.name), statement):
                inner = f"{scope}.{statement.name}".lstrip(".")
                yield from (self._changed if isinstance(statement, ast.ClassDef) else self._function)(inner)
            else:
                rest.append(statement)
        lost = {name for each in first for name in _names(each)} - {name for each in second for name in _names(each)}
        if rest or lost:
            yield from self._bound(scope, rest, lost)

    def _stays(self, scope: str, first: _Scope | None, second: _Scope) -> bool:
        """Return whether a function or a class can be edited in place: only its body or its defaults differ."""
        if first is None or type(first) is not type(second) or _around(first) != _around(second):
            return False
        inner = f"{scope}.{second.name}".lstrip(".")
        value = _member(self.module, inner)
        if isinstance(second, ast.ClassDef):
            return isinstance(value, type)
        function, code = _function(value), _code(self.text, self.edit.file, inner)
        if function is None or function.__qualname__ != inner:
            return False
        return function.__code__.co_freevars == code.co_freevars

    def _bound(self, scope: str, rest: Sequence[ast.stmt], lost: Collection[str]) -> Iterator[Undo]:
        """Bind the names that the statements of a class or a module bind in the edited text."""
        if scope:
            yield from self._attributes(scope, {name for each in rest for name in _names(each)}, lost)
        elif lost:
            raise self._refused(f"{', '.join(sorted(lost))} cannot be taken away while the program runs")
        else:
            for name, value in self._computed({ast.dump(each) for each in rest}).items():
                yield from self._bind(name, value)

    def _attributes(self, scope: str, names: set[str], lost: Collection[str]) -> Iterator[Undo]:
        """Give a class the attributes, and the values computed from them, that the edited text would give it."""
        owner = _member(self.module, scope)
        if isinstance(owner, enum.EnumMeta) or any(map(_has_fields, owner.__subclasses__())):
            raise self._refused(f"members of {scope}, or other dataclasses, are made from it when the program starts")
        new = self._run(_scopes(self.part)[scope], {})[scope.rpartition(".")[2]]
        for cell in [cell for value in vars(new).values() for cell in _cells(value) if cell.cell_contents is new]:
            cell.cell_contents = owner
        for statement, loads in _loads(self.text, scope):
            names |= set() if names.isdisjoint(loads) else set(_names(statement))
        for name in (*sorted(names), *_DERIVED * _has_fields(owner)):
            if name in vars(new):
                yield (setattr, owner, name, vars(owner)[name]) if name in vars(owner) else (delattr, owner, name)
                setattr(owner, name, vars(new)[name])
        for name in lost:
            yield setattr, owner, name, vars(owner)[name]
            delattr(owner, name)

    def _computed(self, changed: Collection[str]) -> dict[str, Any]:
        """Run the changed statements of the module, and those that compute something from the names that these bind."""
        values: dict[str, Any] = {}
        for statement, loads in _loads(self.text):
            new = ast.dump(statement) in changed
            if not new and loads.isdisjoint(values):
                continue
            if not new and isinstance(statement, _Scope):
                raise self._refused(_late(self.module, statement, loads & set(values)))
            if not _only_binds(statement):
                raise self._refused(f"line {statement.lineno} does more than bind names, which nothing can undo")
            made = self._run(statement, values)
            values |= {name: made[name] for name in _names(statement)}
        return values

    def _bind(self, name: str, value: Any) -> Iterator[Undo]:
        """Bind a name in the module and everywhere the library imported it."""
        if name not in vars(self.module):
            yield delattr, self.module, name
            _set(self.module, name, value)
            return
        was = vars(self.module)[name]
        for holder, known in _holders(self.module, name, was):
            for statement, loads in _loads(_text(holder)) if holder is not self.module else ():
                if known in loads:
                    raise self._refused(_late(holder, statement, [known]))
        yield _rebind, self.module, name, value, was
        _rebind(self.module, name, was, value)

    def _run(self, statement: ast.stmt, values: Mapping[str, Any]) -> dict[str, Any]:
        """Run a statement of the edited text, and return the module's names together with the new bindings."""
        made = {**vars(self.module), **values}
        exec(compile(ast.Module([statement], []), str(_PACKAGE / self.edit.file), "exec"), made)  # noqa: S102
        return made
