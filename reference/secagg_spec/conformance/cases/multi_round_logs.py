"""Logs of many rounds, and what they reveal: by elimination with fractions, and by trying all combinations.

Source: spec/multi-round.md, section 4.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among

AUDIT = "audit.privacy"
FEW_USERS = 12
"""Up to this number of users, the weak privacy is a single number (MRA-14)."""
Row = list[int]


@dataclass(frozen=True)
class Log:
    """The users in the sum of each round, ascending."""

    N: int
    rounds: tuple[tuple[int, ...], ...]

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        return {"N": self.N, "rounds": [list(users) for users in self.rounds], **changed}

    def users(self) -> list[int]:
        """Return who is in some sum, ascending."""
        return sorted({user for users in self.rounds for user in users})

    def classes(self) -> list[list[int]]:
        """Return the classes: users that are in exactly the same sets, and in at least one."""
        seen: dict[tuple[int, ...], list[int]] = {}
        for user in self.users():
            seen.setdefault(tuple(t for t, users in enumerate(self.rounds) if user in users), []).append(user)
        return list(seen.values())

    def rows(self) -> list[Row]:
        """Return the matrix of rounds and classes."""
        return [[int(users[0] in chosen) for users in self.classes()] for chosen in self.rounds]

    def strong(self) -> int:
        """Return the strong privacy."""
        return min(map(len, self.classes()), default=0)

    def weak(self) -> int:
        """Return the weak privacy, by trying all combinations with the most zeros."""
        basis = reduced(self.rows())
        return _least(basis, [len(users) for users in self.classes()], 0) if basis else 0

    def gap(self) -> Fraction:
        """Return the fairness gap."""
        often = Counter(user for users in self.rounds for user in users)
        counts = [often[user] for user in range(self.N)]
        return Fraction(max(counts) - min(counts), len(self.rounds)) if self.rounds else Fraction(0)

    def cardinality(self) -> Fraction:
        """Return the mean number of users in a sum."""
        return Fraction(sum(map(len, self.rounds)), len(self.rounds)) if self.rounds else Fraction(0)

    def recoverable(self) -> dict[int, int]:
        """Return, for each recoverable user, the number of rounds after which it is recoverable."""
        classes, basis = self.classes(), list[Row]()
        found: dict[int, int] = {}
        for t, row in enumerate(self.rows()):
            basis = reduced([*basis, row])
            for entries in basis:
                places = [at for at, entry in enumerate(entries) if entry]
                if len(places) == 1 and len(classes[places[0]]) == 1:
                    found.setdefault(classes[places[0]][0], t + 1)
        return found


def reduced(rows: Sequence[Row]) -> list[Row]:
    """Return integer rows with the same span. Each has a place where all other rows are 0."""
    basis: list[Row] = []
    places: list[int] = []
    for row in rows:
        rest = list(row)
        for entries, place in zip(basis, places, strict=True):
            rest = _without(rest, entries, place)
        left = [at for at, entry in enumerate(rest) if entry]
        if left:
            basis = [_without(entries, rest, left[0]) for entries in basis]
            basis.append(rest)
            places.append(left[0])
    return basis


def _without(row: Row, other: Row, place: int) -> Row:
    """Return a multiple of a row minus a multiple of another, with 0 at a place and without a common factor."""
    if not row[place]:
        return row
    made = [entry * other[place] - by * row[place] for entry, by in zip(row, other, strict=True)]
    common = gcd(*made)
    return [entry // common for entry in made] if common > 1 else made


def _least(basis: list[Row], sizes: Sequence[int], start: int) -> int:
    """Return the least weight of nonzero combinations whose zeros are all at or after `start`."""
    if len(basis) == 1:
        return sum(size for entry, size in zip(basis[0], sizes, strict=True) if entry)
    found = []
    for place in range(start, len(sizes)):
        pivot = next((row for row in basis if row[place]), None)
        if pivot is not None:
            left = [_without(row, pivot, place) for row in basis if row is not pivot]
            found.append(_least(left, sizes, place + 1))
    return min(found, default=sum(sizes))


def log(draw: Any) -> Log:
    """Draw a log of one kind or another."""
    kinds: tuple[Callable[[Any], Log], ...] = (any_log, circulant, batched, nearly_batched, all_but_one, chain)
    made = kinds[draw(st.integers(0, len(kinds) - 1))](draw)
    return _disturbed(draw, made) if draw(st.booleans()) else made


def any_log(draw: Any) -> Log:
    """Draw a log of few users with arbitrary sets."""
    N = draw(st.integers(1, 7))
    sets = draw(st.lists(st.lists(st.booleans(), min_size=N, max_size=N), max_size=8))
    return Log(N, tuple(tuple(user for user, there in enumerate(here) if there) for here in sets))


def circulant(draw: Any) -> Log:
    """Draw a log in which a window moves around in a circle: users are recoverable by fractions."""
    N = draw(st.integers(2, 9))
    window = draw(st.integers(1, N))
    steps = strategies.shuffled(draw, range(N))[: draw(st.integers(1, N))]
    return Log(N, tuple(tuple(sorted((step + at) % N for at in range(window))) for step in steps))


def all_but_one(draw: Any) -> Log:
    """Draw a log in which one user after the other is missing."""
    N = draw(st.integers(2, 9))
    missing = strategies.shuffled(draw, range(N))[: draw(st.integers(1, N))]
    return Log(N, tuple(tuple(user for user in range(N) if user != absent) for absent in missing))


def chain(draw: Any) -> Log:
    """Draw a log whose combinations have large numbers: round t has user t and users t - 1, t - 3 and t - 4."""
    N = draw(st.integers(3, 10))
    rounds = [tuple(sorted({t - step for step in (0, 1, 3, 4) if t >= step})) for t in range(N)]
    return Log(N, tuple(rounds[at] for at in draw(st.permutations(range(N)))))


def growing(draw: Any) -> tuple[Log, int]:
    """Draw a log from which one user is recoverable in the last round, by factors above 2**53. Return the user too.

    Round t has class t and the classes 1, 3, 5, … before it. All classes are pairs except the last, which is one user.
    """
    steps = (0, 1, 3, 5, 7, 9, 11, 13)
    count = draw(st.integers(90, 100))
    first = draw(st.integers(0, 2))
    pairs = [(first + 2 * at, first + 2 * at + 1) for at in range(count - 1)]
    last = first + 2 * (count - 1)
    classes = [*pairs, (last,)]
    taken = [sorted(t - step for step in steps if t >= step) for t in range(count)]
    return Log(last + 1, tuple(tuple(user for at in each for user in classes[at]) for each in taken)), last


def batched(draw: Any) -> Log:
    """Draw a log of whole batches, up to 40 users."""
    return _of_batches(draw, draw(st.integers(2, 5)), draw(st.integers(1, 8)))


def large(draw: Any) -> Log:
    """Draw a log of whole batches with more than 12 users, and the same log with one user missing once."""
    T, count = draw(st.integers(2, 5)), draw(st.integers(7, 8))
    made = _of_batches(draw, T, count, fewest=4)
    everybody = Log(made.N, (*made.rounds, tuple(range(made.N))))
    return everybody if draw(st.booleans()) else _one_less(draw, everybody)


def _of_batches(draw: Any, T: int, count: int, fewest: int = 0) -> Log:
    sets = [sorted(strategies.subset(draw, range(count), 0)) for _ in range(draw(st.integers(fewest, 9)))]
    rounds = [tuple(batch * T + at for batch in batches for at in range(T)) for batches in sets]
    return Log(T * count, tuple(rounds))


def nearly_batched(draw: Any) -> Log:
    """Draw a log of whole batches, except for one round in which a user is missing."""
    return _one_less(draw, batched(draw))


def _one_less(draw: Any, made: Log) -> Log:
    full = [t for t, users in enumerate(made.rounds) if users]
    if not full:
        return made
    t = draw(among(full))
    absent = draw(among(made.rounds[t]))
    less = tuple(user for user in made.rounds[t] if user != absent)
    return Log(made.N, (*made.rounds[:t], less, *made.rounds[t + 1 :]))


def _disturbed(draw: Any, made: Log) -> Log:
    """Return a log with a repeated or an empty round, and with users that are in no set."""
    extra = draw(among(((), *made.rounds)))
    at = draw(st.integers(0, len(made.rounds)))
    return Log(made.N + draw(st.integers(0, 2)), (*made.rounds[:at], extra, *made.rounds[at:]))


VALID: dict[str, Make] = {AUDIT: lambda draw, caps: Valid(log(draw).params())}
