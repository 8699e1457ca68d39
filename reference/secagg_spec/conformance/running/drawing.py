"""How the values of a case are drawn: the same ones everywhere for a seed, and sessions that checks of a run share."""

import os
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import core
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.control import BuildContext, current_build_context
from hypothesis.internal.cache import LRUCache
from hypothesis.internal.conjecture import data, engine, providers
from hypothesis.internal.conjecture.choice import ChoiceTemplate
from hypothesis.internal.constants_ast import Constants

SHARED = 32
"""The most sessions that the checks of a party share in a run. Each case has one of them."""
FOR_EACH = 4
"""The sessions for each case of a check, up to the most."""
_MOST_KINDS = 6
"""The kinds of sessions that are kept at a time."""
_CONSTANTS: LRUCache[Any, Any] = LRUCache(1024)
_NO_CONSTANTS = Constants()

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class _Shared:
    """A value that cases share: what was drawn for it, and the choices of Hypothesis that draw it again."""

    value: Any
    draws: tuple[object, ...]
    choices: tuple[Any, ...]


@dataclass
class Drawing:
    """Draws the values of one case, and keeps them in order.

    Parameters
    ----------
    source : function
        Draws a value of a strategy.
    kept : dict or None
        The shared values of the run; None if the case draws each value of its own.
    seed, cases : int
        The seed of the run, and its cases per check.
    """

    source: Draw
    kept: dict[Any, Any] | None = None
    seed: int = 0
    cases: int = SHARED
    draws: list[object] = field(default_factory=list)
    _exchanged: list[tuple[int, int, tuple[Any, ...]]] = field(default_factory=list, init=False)

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any:
        """Draw a value."""
        value = self.source(strategy)
        self.draws.append(value)
        return value

    def shared(self, kind: Hashable, make: Callable[[Draw], Any]) -> Any:
        """Draw one of the values that the cases of a run share: each was made once, from the seed and its number.

        To make a session, a whole round is played; with a session for each case, that was most of a run (CNF-79).
        """
        if self.kept is None:
            return make(self)
        before = len(current_build_context().data.choices)
        number = self.source(st.integers(0, min(SHARED, FOR_EACH * self.cases) - 1))
        pools = self.kept
        pool = pools[kind] = pools.pop(kind, {})
        while len(pools) > _MOST_KINDS:
            del pools[next(iter(pools))]
        if number not in pool:
            pool[number] = _made(make, f"{self.seed} {kind} {number}", simplest=number == 0)
        chosen: _Shared = pool[number]
        self.draws += chosen.draws
        self._exchanged.append((before, len(current_build_context().data.choices), chosen.choices))
        return chosen.value

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The choices of Hypothesis that draw this case with each value of its own; None if nothing was shared."""
        if not self._exchanged:
            return None
        made, whole, at = current_build_context().data.choices, list[Any](), 0
        for start, stop, choices in self._exchanged:
            whole += (*made[at:start], *choices)
            at = stop
        return (*whole, *made[at:])


def _made(make: Callable[[Draw], Any], seed: str, *, simplest: bool) -> _Shared:
    """Make a value from a seed, or the simplest one."""
    prefix = (ChoiceTemplate("simplest", count=None),) if simplest else None
    chosen = data.ConjectureData(random=Random(seed), prefix=prefix)  # noqa: S311
    with BuildContext(chosen, wrapped_test=make):
        drawing = Drawing(chosen.draw)
        value = make(drawing)
    return _Shared(value, tuple(drawing.draws), tuple(chosen.choices))


def leave_the_folder_alone() -> None:
    """Make Hypothesis store its tables of characters in the user's cache instead of the current folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    with suppress(OSError, RuntimeError):
        set_hypothesis_home_dir(cache / "secagg-spec")


@contextmanager
def same_cases_everywhere() -> Iterator[None]:
    """Keep Hypothesis from drawing constants of the loaded modules, so that a seed gives the same cases everywhere.

    Keep it also from seeding the generators of `random` and `numpy` before each case: an adapter in this process that
    draws from them would draw the same values in each. And keep it from following each drawn case, after the first
    ten, with five copies in which one drawn value takes the place of another: of 60 cases, some 18 were drawn (CNF-78).

    Hypothesis has no setting for any of these; versions without these habits need no change. The cache of constants by
    range is kept from check to check, separate from Hypothesis's own cache.
    """
    with ExitStack() as stack:
        for module, name, value in (
            (providers, "_get_local_constants", lambda: _NO_CONSTANTS),
            (providers, "CONSTANTS_CACHE", _CONSTANTS),
            (core, "deterministic_PRNG", nullcontext),
            (engine.ConjectureRunner, "generate_mutations_from", _nothing_more),
            (engine.ConjectureRunner, "generate_mutated_examples", _nothing_more),
        ):
            if hasattr(module, name):
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
        stack.callback(_forget)
        yield


def _nothing_more(runner: engine.ConjectureRunner, drawn: object) -> None:
    """Make no cases from a drawn one."""


def _forget() -> None:
    """Clear what Hypothesis would keep about each strategy until the process ends (CNF-55)."""
    getattr(data, "STRUCTURAL_COVERAGE_CACHE", {}).clear()
