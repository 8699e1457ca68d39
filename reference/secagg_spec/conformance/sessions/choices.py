"""What a case is drawn from: strategies made once that draw one of some options, and sessions that cases share.

Hypothesis takes more time to make such a strategy than to draw from it, and a session takes a whole round.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

X = TypeVar("X")
_KEPT = 2048


def shared(draw: Any, kind: Hashable, make: Callable[[Any], X]) -> X:
    """Draw a value that the cases of a run share with others of its kind; outside a run, make one (CNF-79)."""
    pooled = getattr(draw, "shared", None)
    made: X = make(draw) if pooled is None else pooled(kind, make)
    return made


def among(options: Iterable[X]) -> st.SearchStrategy[X]:
    """Return a strategy that draws one of the options; the first is the simplest."""
    given = tuple(options)
    try:
        return _kept(given, tuple(map(type, given)))
    except TypeError:
        return st.sampled_from(given)


class NoCase(Exception):
    """The drawn session does not allow what the check is about, so there is nothing to ask."""


def only_if(holds: object) -> None:
    """End a case in which something does not hold."""
    if not holds:
        raise NoCase


def any_of(draw: Any, options: Iterable[X]) -> X:
    """Draw one of some options; without one, the case ends."""
    given = tuple(options)
    only_if(given)
    return draw(among(given))  # type: ignore[no-any-return]


@lru_cache(maxsize=_KEPT)
def _kept(options: tuple[Any, ...], types: tuple[type, ...]) -> st.SearchStrategy[Any]:
    """Return the strategy; `types` tells apart options that are equal but of different types, such as 1 and True."""
    return st.sampled_from(options)
