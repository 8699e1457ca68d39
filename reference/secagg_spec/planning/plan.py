"""The plan for a wish: the protocols that satisfy it, best first, and why the others do not.

Source: spec/planning.md, section 5 (PLN-10 to PLN-12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.planning import odds
from secagg_spec.planning.choices import PROTOCOLS, Choice, Out, answer
from secagg_spec.planning.wishes import Wish

_PARTS = 64
_MOST_USERS = 2**16


@dataclass(frozen=True)
class Plan:
    """The choices, best first, and the protocols that are out."""

    wish: Wish
    choices: tuple[Choice, ...]
    out: tuple[Out, ...]


def plan(wish: Wish) -> Plan:
    """Return the plan for a wish.

    A protocol that shows one sum and trusts nobody more comes before one that shows more sums or trusts an authority;
    then the one with fewer bytes of a user comes first (PLN-11).
    """
    answers = [answer(key, wish) for key in PROTOCOLS]
    choices = [one for one in answers if isinstance(one, Choice)]
    choices.sort(key=lambda one: (PROTOCOLS[one.protocol].beyond, one.bytes))
    return Plan(wish, tuple(choices), tuple(one for one in answers if isinstance(one, Out)))


def nearest(wish: Wish, protocol: str) -> Iterator[tuple[str, Wish]]:
    """Yield wishes near to this one that the protocol satisfies, with the option that changes and its value (PLN-12).

    Each changes one option: fewer colluders, less dropout, more users, fewer rounds. Raises `ParameterError` for a
    protocol that is no key of `PROTOCOLS`, when the first wish is asked for.
    """
    validate.one_of("protocol", protocol, [*PROTOCOLS])
    for name, values in _nearer(wish).items():
        seek = _next if name == "users" else _first
        found = seek(values, lambda value, name=name: _satisfied(wish, protocol, name, value))  # type: ignore[misc]
        if found is not None:
            yield f"--{name} {_written(found)}", _changed(wish, name, found)


def _nearer(wish: Wish) -> dict[str, list[int | Fraction]]:
    """Return values of options from the nearest on: shares in 64 steps, twice as many users, and so on."""
    shares = [Fraction(part, _PARTS) for part in range(_PARTS - 1, -1, -1)]
    more = [wish.users << step for step in range(1, 11) if wish.users << step <= _MOST_USERS]
    fewer = [wish.rounds >> step for step in range(1, 14) if wish.rounds >> step]
    return {
        "colluders": [_rounded(wish.colluders * share) for share in shares] if wish.colluders else [],
        "dropout": [_rounded(wish.dropout * share) for share in shares] if wish.dropout else [],
        "users": list(more),
        "rounds": list(fewer),
    }


def _rounded(rate: Fraction) -> Fraction:
    """Return a rate rounded down to three decimal places."""
    return Fraction(rate * 1000 // 1, 1000)


def _written(value: int | Fraction) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):g}"


def _satisfied(wish: Wish, protocol: str, name: str, value: int | Fraction) -> bool:
    return isinstance(answer(protocol, _changed(wish, name, value)), Choice)


def _changed(wish: Wish, name: str, value: int | Fraction) -> Wish:
    return replace(wish, **{name: value})  # type: ignore[arg-type]


def _next(values: list[int | Fraction], holds: Callable[[int | Fraction], bool]) -> int | Fraction | None:
    """Return the first value that holds, looked for one by one: with more users, some limits are met and others not."""
    return next(filter(holds, values), None)


def _first(values: list[int | Fraction], holds: Callable[[int | Fraction], bool]) -> int | Fraction | None:
    """Return the first value that holds, where all after one that holds do; None if the last does not."""
    if not values or not holds(values[-1]):
        return None
    return values[odds.first(0, len(values) - 1, lambda at: holds(values[at]))]


guard(__name__)
