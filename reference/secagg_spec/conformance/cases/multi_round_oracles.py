"""What the text says of batches, choices and rounds, in plain integers, independent of the reference under test.

Source: spec/multi-round.md, sections 2, 3 and 6.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import combinations, product
from math import comb, prod

Pick = Callable[[int], int]
"""Draws an integer that is at least 0 and below a bound."""
STRATEGIES = ("random", "weighted", "partition", "uniform", "fair", "least")
LISTED = 1000
"""The most sets of a family that is listed."""
BY_FREQUENCY = ("weighted", "least")
"""The strategies that choose all batches of a round by the least frequencies."""
SEPARATE = ("random", "weighted")
"""The strategies with batches of one user."""


@dataclass(frozen=True)
class Numbers:
    """N users, K of them in one round, in batches of T."""

    N: int
    K: int
    T: int

    @property
    def batches(self) -> int:
        """How many batches there are."""
        return self.N // self.T

    @property
    def per_round(self) -> int:
        """How many batches make one round."""
        return self.K // self.T

    def __str__(self) -> str:
        return f"N={self.N} K={self.K} T={self.T}"

    def members(self) -> dict[str, int]:
        """Return the numbers as a request holds them."""
        return {"N": self.N, "K": self.K, "T": self.T}

    def users(self, batches: Sequence[int]) -> list[int]:
        """Return the users of some batches, ascending."""
        return sorted(batch * self.T + at for batch in batches for at in range(self.T))

    def complete(self, users: Sequence[int]) -> list[int]:
        """Return the batches whose users are all in `users`, ascending."""
        here = set(users)
        return [batch for batch in range(self.batches) if here.issuperset(self.users([batch]))]


def family_size(p: Numbers) -> int:
    """Return how many sets may be chosen."""
    return comb(p.batches, p.per_round)


def family(p: Numbers) -> set[tuple[int, ...]]:
    """Return the sets that may be chosen."""
    return {tuple(p.users(batches)) for batches in combinations(range(p.batches), p.per_round)}


def chosen(
    p: Numbers, strategy: str, frequencies: Sequence[int], available: Sequence[int], pick: Pick
) -> list[int] | None:
    """Return the chosen users, ascending, or None if there is no round. `pick` returns one draw after another."""
    usable = p.complete(available)
    if len(usable) < p.per_round:
        return None
    seen = {batch: min(frequencies[user] for user in p.users([batch])) for batch in usable}
    if strategy in BY_FREQUENCY:
        return p.users(_by_frequency(seen, p.per_round, pick))
    if strategy in ("partition", "fair"):
        least = min(seen.values())
        first = drawn([batch for batch in usable if seen[batch] == least], 1, pick)
        others = [batch for batch in usable if batch not in first]
        return p.users(first + drawn(others, p.per_round - 1, pick))
    return p.users(drawn(usable, p.per_round, pick))


def _by_frequency(seen: dict[int, int], count: int, pick: Pick) -> list[int]:
    taken: list[int] = []
    for frequency in sorted(set(seen.values())):
        level = sorted(batch for batch, often in seen.items() if often == frequency)
        missing = count - len(taken)
        if len(level) > missing:
            return taken + drawn(level, missing, pick)
        taken += level
    return taken


def drawn(items: Sequence[int], count: int, pick: Pick) -> list[int]:
    """Return the drawn items of an ascending list."""
    moved = list(items)
    for s in range(count):
        other = s + pick(len(moved) - s)
        moved[s], moved[other] = moved[other], moved[s]
    return moved[:count]


def bounds(p: Numbers, strategy: str, frequencies: Sequence[int], available: Sequence[int]) -> list[int]:
    """Return the bound of each draw of a choice."""
    met: list[int] = []

    def first(bound: int) -> int:
        met.append(bound)
        return 0

    chosen(p, strategy, frequencies, available, first)
    return met


def odds(
    p: Numbers, strategy: str, frequencies: Sequence[int], available: Sequence[int]
) -> dict[tuple[int, ...], Fraction]:
    """Return the probability of each set, by trying all draws. There must be a round."""
    limits = bounds(p, strategy, frequencies, available)
    counts: Counter[tuple[int, ...]] = Counter()
    for draws in product(*map(range, limits)):
        given = iter(draws)
        users = chosen(p, strategy, frequencies, available, lambda _, given=given: next(given))  # type: ignore[misc]
        counts[tuple(users or ())] += 1
    return {users: Fraction(count, prod(limits)) for users, count in counts.items()}


def fault(p: Numbers, strategy: str, frequencies: Sequence[int], available: Sequence[int], users: Sequence[int]) -> str:
    """Return why no draws choose some users (ascending), or "" if some draws do."""
    batches, usable = p.complete(users), p.complete(available)
    if len(users) != p.K or p.users(batches) != list(users):
        return f"it is no union of {p.per_round} batches of {p.T} users"
    if not set(batches) <= set(usable):
        return "not all of its users are available"
    seen = {batch: min(frequencies[user] for user in p.users([batch])) for batch in usable}
    if strategy in BY_FREQUENCY and sorted(seen[batch] for batch in batches) != sorted(seen.values())[: p.per_round]:
        return "there are complete batches of smaller frequencies"
    if strategy in ("partition", "fair") and min(seen.values()) not in {seen[batch] for batch in batches}:
        return "no complete batch of the least frequency is in it"
    return ""


def session_of_round(p: Numbers, session: bytes, round: int, users: Sequence[int]) -> bytes:
    """Return the session id of a round."""
    numbers = [number.to_bytes(4, "little") for number in (round, p.N, p.K, p.T, *users)]
    return sha256(b"".join(_fields([b"secagg-spec", b"multi-round", session, *numbers]))).digest()[:16]


def _fields(fields: Sequence[bytes]) -> Iterator[bytes]:
    """Yield fields, each preceded by its length."""
    for field in fields:
        yield len(field).to_bytes(4, "little")
        yield field
