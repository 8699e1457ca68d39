"""Every public function, method and class, called rightly, and then with another value in the place of one argument.

The right calls are recorded while the reference answers vectors and plays rounds, so no list of functions is kept. What
a type checker sees is not tried. A function whose docstring says "for checked arguments" is the inside of one that
checks.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, is_dataclass
from functools import cache, partial
from itertools import islice
from random import Random
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.errors import ParameterError
from tests.harden import plays
from tests.harden.engine import Tally, bounded
from tests.harden.enlarge import enlarged
from tests.harden.surfaces import DOCUMENTED, run_command, vectors

Array = NDArray[Any]
LAYERS = ("arithmetic", "crypto", "protocols", "selection")
"""The packages whose functions a program of others calls."""
OTHERS = ("events", "learning", "planning", "privacy", "recording", "traces")
"""The packages that decide, plan and train, and that record and read what happened."""
CHECKED = "for checked arguments"
BY_PROGRAM = {
    "octets": {"name"}, "require_phase": {"phases", "actual", "expected"}, "check_inbox": {"kinds"},
    "measured": {"n", "repeats"}, "signed_sum": {"terms"}, "probe": {"inputs", "together"}, "take": {"count"},
    "taken": {"count"}, "guard": {"module"}, "add": {"names"}, "subtract": {"names"},
}  # fmt: skip
"""Arguments that the program names itself: a field of a message, a phase, how many users are measured, what a given
function takes, how many bytes are drawn; terms are pairs, which a type checker sees."""
NAMED = {"perfect": {"subgroups"}, "fields": {"field"}, "read": {"alpha"}}
"""Names in errors that are no argument: what a count counts, an entry of many, a part of a text."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_RANGE = re.compile(r"an integer in \[(-?\d+), (-?\d+)\]")
_SMALL = 2**16
"""The largest end of a range that is tried."""
_EACH = 3
_MANY = 100
"""How many items of an iterator are taken."""


@dataclass(frozen=True)
class Call:
    """A right call of a public function, a method or a class; `changes` says that the object of a method may change."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    changes: bool = False

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What can be given, by name."""
        made = self.function.__init__ if inspect.isclass(self.function) else self.function
        return inspect.signature(made).parameters

    def again(self, **changed: Any) -> Any:
        """Call it again, with other arguments in the place of some; of an iterator the first items are taken."""
        given = {**self.arguments, **changed}
        if self.changes:
            given["self"] = deepcopy(given["self"])
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if name not in given:
                continue
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += given[name]
            elif parameter.kind is parameter.VAR_KEYWORD:
                named |= given[name]
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = given[name]
            else:
                positional.append(given[name])
        result = self.function(*positional, **named)
        return list(islice(result, _MANY)) if isinstance(result, Iterator) else result


@dataclass(frozen=True)
class Public:
    """A public function, a method of a public class, or such a class; `hidden` is the argument that Python gives it."""

    name: str
    function: Callable[..., Any]
    hidden: str = ""
    changes: bool = False


def _modules(layers: Sequence[str]) -> Iterator[ModuleType]:
    for layer in layers:
        package = importlib.import_module(f"secagg_spec.{layer}")
        yield package
        for info in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
            yield importlib.import_module(info.name)


def functions() -> dict[CodeType, Public]:
    """Return the public functions of the layers by their code."""
    return {code: one for code, one in _defined(LAYERS) if code.co_varnames[:1] not in (("self",), ("cls",))}


def _defined(layers: Sequence[str]) -> Iterator[tuple[CodeType, Public]]:
    """Yield what the public modules of packages define, with its code."""
    for module in _modules(layers):
        within = module.__name__.removeprefix("secagg_spec.")
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(value) and CHECKED not in (inspect.getdoc(value) or ""):
                yield inspect.unwrap(value).__code__, Public(f"{within}.{name}", value)
            elif inspect.isclass(value) and CHECKED not in (inspect.getdoc(value) or ""):
                yield from _members(f"{within}.{name}", value)


def _members(named: str, kind: type) -> Iterator[tuple[CodeType, Public]]:
    frozen = is_dataclass(kind) and getattr(kind, "__dataclass_params__").frozen  # noqa: B009
    if inspect.isfunction(made := vars(kind).get("__init__")):
        yield inspect.unwrap(made).__code__, Public(named, kind, "self")
    for name, value in vars(kind).items():
        if name.startswith("_") or CHECKED in (inspect.getdoc(value) or ""):
            continue
        if isinstance(value, classmethod):
            yield (
                inspect.unwrap(value.__func__).__code__,
                Public(f"{named}.{name}", getattr(kind, name), "cls"),
            )
        elif inspect.isfunction(value) and "self" in inspect.signature(value).parameters:
            yield inspect.unwrap(value).__code__, Public(f"{named}.{name}", value, changes=not frozen)


@contextmanager
def recorded(into: dict[str, list[Call]], layers: Sequence[str] = ()) -> Iterator[None]:
    """Record the first calls of each public function while the block runs; of packages, those of methods too."""
    found = list(_defined(layers)) if layers else list(functions().items())
    known = {id(code): one for code, one in found}  # two classes with the same members have equal code

    def look(frame: FrameType, event: str, _: Any) -> None:
        one = known.get(id(frame.f_code)) if event == "call" else None
        if one is None:
            return
        kept = into.setdefault(one.name, [])
        if len(kept) < _EACH:
            code = frame.f_code
            count = code.co_argcount + code.co_kwonlyargcount
            count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
            given = {name: frame.f_locals[name] for name in code.co_varnames[:count] if name != one.hidden}
            if one.changes and not _set_apart(given, frame):
                return
            kept.append(Call(one.name, one.function, given, one.changes))

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def _set_apart(given: dict[str, Any], frame: FrameType) -> bool:
    """Copy the object of a method; return whether that can be done: not of one that is being made."""
    made, above = given["self"], frame.f_back
    while above is not None:
        if above.f_code.co_name in {"__init__", "__post_init__"} and above.f_locals.get("self") is made:
            return False
        above = above.f_back
    try:
        given["self"] = deepcopy(made)
    except TypeError:
        return False
    return True


NUMBERS = (-1, 0, 1, 2, 255, 256, 2**32, 2**63, 2**64, 10**40, -(2**63))
BYTES = (b"", b"\x00", bytes(15), bytes(16), bytes(31), bytes(32), bytes(33), b"\xff" * 32)
TEXTS = ("", "a", "0", "-1", "1e400", "nan", "\x00", "é", "x" * 5000)


def _near(old: Any, random: Random) -> list[Any]:
    """Return other values of the type of a value."""
    if isinstance(old, bool):
        return [not old]
    if isinstance(old, int):
        return [old + 1, old - 1, -old, old * 2**32, np.int64(old % 2**62), *NUMBERS]
    if isinstance(old, float):
        return [-old, old * 1e300, float("nan"), float("inf"), -0.0, 5e-324]
    if isinstance(old, bytes):
        return [old[:-1], old + b"\0", bytes(len(old)), b"\xff" * len(old), *BYTES]
    if isinstance(old, str):
        return [old[:-1], old.upper(), old + " ", *TEXTS]
    if isinstance(old, np.ndarray):
        return _near_array(old)
    if type(old) in (list, tuple):
        inner = [
            _with(old, at, random.choice(near)) for at in range(min(3, len(old))) if (near := _near(old[at], random))
        ]
        return [old[:-1], old + old, old[::-1], old[:0], *inner]
    if isinstance(old, frozenset | set) and all(isinstance(one, int) for one in old):
        return [type(old)(), type(old)(sorted(old)[:-1]), old | {99}, old | {-1}]
    if type(old) is dict:
        inner = [{**old, key: random.choice(near)} for key in list(old)[:3] if (near := _near(old[key], random))]
        return [dict(list(old.items())[:-1]), {}, *inner]
    return []


def _near_array(old: Array) -> list[Any]:
    full = [np.full_like(old, np.iinfo(old.dtype).max)] if old.dtype.kind in "iu" else []
    full = (
        [np.full_like(old, value) for value in (np.nan, np.inf, np.finfo(old.dtype).min / 1e8)]
        if old.dtype.kind == "f"
        else full
    )
    return [old[:-1], old[::-1], old[None], np.append(old, old), old[:0], np.asfortranarray(old), *full]


def _with(old: Any, at: int, value: Any) -> Any:
    return type(old)([*old[:at], value, *old[at + 1 :]])


def spoiled(call: Call, random: Random) -> tuple[str, Any] | None:
    """Return an argument of a call, and another value of its type; nothing where no argument has such a value."""
    skipped = BY_PROGRAM.get(call.name.rpartition(".")[2], set())
    choices = [
        (name, near) for name, old in call.arguments.items() if name not in skipped and (near := _near(old, random))
    ]
    if not choices:
        return None
    name, near = random.choice(choices)
    return name, random.choice(near)


@cache
def right_calls(every: int = 1) -> list[Call]:
    """Return right calls of public functions, from each such vector and from simulated rounds."""
    found: dict[str, list[Call]] = {}
    adapter = reference.build()
    with recorded(found):
        for one in vectors()[::every]:
            adapter.answer({"id": 1, "op": one.operation, "params": one.params, "rand": one.rand})
        for command in plays.ROUNDS:
            run_command(command.split())
    return [call for calls in found.values() for call in calls if call.arguments and _repeats(call)]


@cache
def right_calls_of_methods(every: int = 1) -> list[Call]:
    """Return right calls of public functions, methods and classes of all packages, from each such play."""
    found: dict[str, list[Call]] = {}
    with recorded(found, (*LAYERS, *OTHERS)):
        for play in plays.PLAYS[::every]:
            play()
    return [call for calls in found.values() for call in calls if call.arguments and _repeats(call)]


def _repeats(call: Call) -> bool:
    """Return whether a call can be made again: not one whose argument was an iterator, which is at its end now."""
    for _ in range(2):
        try:
            call.again()
        except Exception:
            return False
    return True


def enlarged_calls(every: int = 1) -> Tally:
    """Return what came of calls in which one integer is huge; a refusal shows no more of it than its size."""
    tally = Tally("public functions, huge integers")
    for call in right_calls(every):
        skipped = BY_PROGRAM.get(call.name.rpartition(".")[2], set())
        for name, old in call.arguments.items():
            for huge in enlarged(old) if name not in skipped else ():
                tally.take(partial(call.again, **{name: huge}), f"{call.name}: {name}".encode(), DOCUMENTED)
    return tally


def misnamed(calls: Sequence[Call], seed: int = 1) -> Tally:
    """Return what came of calls with near values: whether a refusal names an argument and the range that holds.

    The name is that of an argument, or of what is in one. An end of the range is taken, or refused for another reason.
    """
    tally, random = Tally("names in errors"), Random(seed)
    for call in calls:
        last = call.name.rpartition(".")[2]
        known = {*call.parameters, *NAMED.get(last, ())}.union(*map(_names, call.arguments.values()))
        for name, old in call.arguments.items() if last not in BY_PROGRAM else ():
            near = _near(old, random)
            for value in random.sample(near, min(_EACH, len(near))):
                error = _refused(call, name, value)
                tally.refused, tally.read = tally.refused + bool(error), tally.read + (not error)
                if error and not (known | _names(value)) & {*_WORD.findall(error.parameter)}:
                    tally.keep(f"{call.name}: {name}", str(error), repr(value).encode())
                bounds = _RANGE.fullmatch(error.allowed) if error and error.parameter == name else None
                for end in map(int, bounds.groups()) if bounds and isinstance(old, int) else ():
                    again = _refused(call, name, end) if end <= _SMALL else None
                    if again and again.parameter == name and _RANGE.fullmatch(again.allowed):
                        tally.keep(f"{call.name}: {name} = {end}", f"{error}; and then {again}", b"")
    return tally


def _refused(call: Call, name: str, value: Any) -> ParameterError | None:
    """Return the refusal of another value of an argument; errors of other kinds are for `tried` to judge."""
    try:
        with warnings.catch_warnings(), bounded():
            warnings.simplefilter("ignore")
            call.again(**{name: value})
    except ParameterError as error:
        return error
    except Exception:
        return None
    return None


def _names(value: Any, depth: int = 2) -> set[str]:
    """Return the names that somebody who gives a value knows: of its members, and those that it is."""
    if isinstance(value, str):
        return {*_WORD.findall(value)}
    if _is_own(value):
        return {name for name in dir(value) if not name.startswith("_")}
    inner = [*value, *value.values()] if isinstance(value, Mapping) else value if type(value) in (list, tuple) else ()
    return set[str]().union(*(_names(one, depth - 1) for one in inner if depth))


def _is_own(value: object) -> bool:
    return type(value).__module__.startswith("secagg_spec.")


def calls_of_another_class(every: int = 1) -> Tally:
    """Return what came of calls with something else in the place of an object of this library; each is refused."""
    tally, calls = Tally("public functions, objects of another class"), right_calls(every)
    own = list({type(old): old for call in calls for old in call.arguments.values() if _is_own(old)}.values())
    for call in calls:
        for name, old in call.arguments.items() if call.function is not validate.plain else ():
            strangers = [one for one in own if not isinstance(old, type(one)) and not isinstance(one, type(old))][:3]
            optional = "None" in str(call.parameters[name].annotation)
            others = (*(() if optional else (None,)), object(), 5, "text", b"", [], {}, *strangers)
            for other in others if _is_own(old) else ():
                shown, before = f"{call.name}({name} = a {type(other).__name__})", tally.read
                tally.take(partial(call.again, **{name: other}), shown.encode(), DOCUMENTED)
                if tally.read > before:
                    tally.keep(f"{call.name}: {name}", "it is taken", shown.encode())
    return tally


def tried(inputs: int, seed: int, calls: Sequence[Call], named: str = "public functions") -> Tally:
    """Return what came of calls with one other argument each; numpy's warnings count as errors."""
    tally, random = Tally(named), Random(seed)
    for at in range(inputs):
        call = calls[at % len(calls)]
        chosen = spoiled(call, random)
        if chosen is None:
            continue
        name, value = chosen
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tally.take(
                partial(call.again, **{name: value}),
                f"{call.name}({name} = {value!r})".encode(),
                (*DOCUMENTED, MemoryError),
            )
    return tally
