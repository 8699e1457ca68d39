"""Figures 3, 4 and 5 and table 1 of Multi-RoundSecAgg: a comparison of the ways to choose users.

====================  ==========================================
paper                 here
====================  ==========================================
N, K, T               `Settings.users`, `per_round`, `privacy`
p_i                   `Settings.rates`, one for each kind of user
P(t)                  `Course.log`, its first rounds
T(t), F(t), C(t)      `Course.weak`, `gaps`, `cardinalities`
R                     `Course.family`
====================  ==========================================

All schemes see the same users drop out. Source: Multi-RoundSecAgg, section 6; claims MRS-TAB1, MRS-OBS1, MRS-OBS2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.errors import OutOfRange, ParameterError
from secagg_spec.selection import metrics, strategies
from secagg_spec.selection.batches import Parameters, family_size
from secagg_spec.selection.metrics import Log
from secagg_spec.selection.weights import EFFORT, Bounds, least_weights

MOST_USERS = 1000
MOST_ROUNDS = 10_000
MOST_SEED = 2**32 - 1
ALMOST = Fraction(98, 100)
"""The ratio of cardinalities that counts as almost the same."""
RULES = ("fair", "least", "uniform")
NO_ROUND = "no round"
Tell = Callable[[str, float], None]
"""Receives the name of the next step, and the finished share."""


@dataclass(frozen=True)
class Settings(validate.Plain):
    """N users, K of them in one round, the T of each scheme with batches, rounds, and dropout rates.

    `rule` is how batches are chosen, by default as in the paper: ``uniform`` for equal rates, else ``fair``.

    Raises
    ------
    ParameterError
        One of them is not allowed.
    """

    users: int = 120
    per_round: int = 12
    privacy: tuple[int, ...] = (6, 4, 3)
    rounds: int = 200
    rates: tuple[Fraction, ...] = tuple(Fraction(tenth, 10) for tenth in (1, 2, 3, 4, 5))
    seed: int = 0
    rule: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("users", self.users, 1, MOST_USERS)
        validate.integer("per_round", self.per_round, 1, self.users)
        validate.integer("rounds", self.rounds, 1, MOST_ROUNDS)
        validate.integer("seed", self.seed, 0, MOST_SEED)
        if self.rule not in {None, *RULES}:
            raise ParameterError("rule", self.rule, "one of " + ", ".join(RULES))
        self._check_privacy()
        self._check_rates()

    def _check_privacy(self) -> None:
        if not self.privacy or len(set(self.privacy)) < len(self.privacy):
            raise ParameterError("privacy", list(self.privacy), "one number or several different ones")
        for T in self.privacy:
            if T not in self.allowed():
                raise ParameterError("privacy", T, f"a divisor of {self.per_round} and of {self.users}{self._near(T)}")

    def allowed(self) -> tuple[int, ...]:
        """Return each T that divides N and K."""
        common = gcd(self.users, self.per_round)
        return tuple(T for T in range(1, common + 1) if not divmod(common, T)[1])

    def _near(self, T: int) -> str:
        below = [allowed for allowed in self.allowed() if allowed < T][-1:]
        above = [allowed for allowed in self.allowed() if allowed > T][:1]
        return f", and {' or '.join(map(str, below + above))} is next to it"

    def _check_rates(self) -> None:
        for rate in self.rates:
            if not 0 <= rate <= 1:
                raise OutOfRange("dropout", str(rate), "a probability in [0, 1]")
        if not 1 <= len(self.rates) <= self.users:
            wanted = f"1 to {self.users} of them, which users get in random order and as equally as possible"
            raise ParameterError("number of rates of dropout", len(self.rates), wanted)

    @property
    def equal(self) -> bool:
        """Whether all users drop out equally often."""
        return len(set(self.rates)) == 1


@dataclass(frozen=True)
class Scheme:
    """A way to choose users, with the paper's name."""

    name: str
    strategy: str
    parameters: Parameters


@dataclass(frozen=True, eq=False)
class Course:
    """The results of a scheme, round by round; `expected` is the expected cardinality of later rounds."""

    scheme: Scheme
    log: Log
    strong: int
    weak: tuple[Bounds, ...]
    gaps: tuple[Fraction, ...]
    cardinalities: tuple[Fraction, ...]
    expected: Fraction
    family: int

    @property
    def privacy(self) -> tuple[str, str]:
        """The strong and the weak privacy as text; without a round there is no sum, and neither of them."""
        return (str(self.strong), str(self.weak[-1])) if self.strong else (NO_ROUND, NO_ROUND)


@dataclass(frozen=True)
class Verdict:
    """Whether a statement of the paper holds in this run; None if it compares a scheme that had no round."""

    claim: str
    statement: str
    holds: bool | None
    shown: str


def schemes(settings: Settings) -> tuple[Scheme, ...]:
    """Return the schemes in the order of the paper; the partition only if K divides N."""
    N, K = settings.users, settings.per_round
    found = [
        Scheme("Random", "random", Parameters(N, K, 1)),
        Scheme("Weighted Random", "weighted", Parameters(N, K, 1)),
    ]
    if K in settings.allowed():
        found.append(Scheme("Partition", "partition", Parameters(N, K, K)))
    rule = settings.rule or ("uniform" if settings.equal else "fair")
    batches = (Scheme(f"Multi-RoundSecAgg, T={T}", rule, Parameters(N, K, T)) for T in settings.privacy)
    return (*found, *batches)


def rates_of_users(settings: Settings) -> tuple[Fraction, ...]:
    """Return the rate of each user: in random order, with each rate equally often, or once more."""
    order = np.random.default_rng([settings.seed, 0]).permutation(settings.users)
    return tuple(settings.rates[divmod(int(place), len(settings.rates))[1]] for place in order)


def available(settings: Settings, rates: Sequence[Fraction]) -> Log:
    """Return the available users of each round: each user independently, and the same for all schemes."""
    drawn = np.random.default_rng([settings.seed, 1]).random((settings.rounds, settings.users))
    return drawn >= np.array([float(rate) for rate in rates])


def take_rounds(settings: Settings, scheme: Scheme, there: Log) -> Log:
    """Return the users in the sum of each round."""
    source = SeededSource(settings.seed.to_bytes(4, "little"), f"{scheme.name}, T = {scheme.parameters.T}")
    log, seen = np.zeros_like(there), np.zeros(settings.users, dtype=np.int64)
    for row, users in zip(log, there, strict=True):
        ranges = strategies.ranges(scheme.parameters, scheme.strategy, seen, users)
        chosen = strategies.choose(scheme.parameters, scheme.strategy, seen, users, draw_below(source, ranges or ()))
        row[list(chosen or ())] = True
        seen += row
    return log


def run(settings: Settings, tell: Tell = lambda what, share: None, *, effort: int = EFFORT) -> tuple[Course, ...]:
    """Run all schemes; `effort` limits the work on each bound of the weak privacy."""
    rates = rates_of_users(settings)
    there = available(settings, rates)
    return tuple(_courses(settings, rates, there, tell, effort))


def _courses(settings: Settings, rates: Sequence[Fraction], there: Log, tell: Tell, effort: int) -> Iterator[Course]:
    chosen = schemes(settings)
    for number, scheme in enumerate(chosen):
        tell(f"{scheme.name}: rounds", number / len(chosen))
        log = take_rounds(settings, scheme, there)
        tell(f"{scheme.name}: privacy", (number + 0.2) / len(chosen))
        yield course(scheme, log, rates, tuple(least_weights(log, effort=effort)))


def course(scheme: Scheme, log: Log, rates: Sequence[Fraction], weak: tuple[Bounds, ...]) -> Course:
    """Return the results of a scheme from the users of each sum and bounds of the weak privacy."""
    return Course(
        scheme,
        log,
        metrics.strong_privacy(log),
        weak,
        tuple(metrics.fairness_gaps(log)),
        tuple(metrics.cardinalities(log)),
        metrics.expected_cardinality(scheme.parameters, rates),
        family_size(scheme.parameters),
    )


def as_json(course: Course) -> dict[str, Any]:
    """Return a course as JSON, without its log: fractions as strings, series with a member for each round."""
    return {
        "name": course.scheme.name,
        "strategy": course.scheme.strategy,
        "batch": course.scheme.parameters.T,
        "family": str(course.family),
        "strong": course.strong,
        "weak": [[bounds.low, bounds.high] for bounds in course.weak],
        "fairness_gap": [str(gap) for gap in course.gaps],
        "cardinality": [str(mean) for mean in course.cardinalities],
        "expected_cardinality": float(course.expected),
    }


def of_json(found: Mapping[str, Any], users: int, per_round: int) -> Course:
    """Return the course from the result of `as_json`: without log, without users in bounds, `expected` as a double."""
    return Course(
        Scheme(found["name"], found["strategy"], Parameters(users, per_round, found["batch"])),
        np.zeros((0, users), dtype=bool),
        found["strong"],
        tuple(Bounds(low, high, ()) for low, high in found["weak"]),
        tuple(map(Fraction, found["fairness_gap"])),
        tuple(map(Fraction, found["cardinality"])),
        Fraction(found["expected_cardinality"]),
        int(found["family"]),
    )


# ------------------------------------------------------------------------------------------------- results


def trade_off(users: int, per_round: int, rate: Fraction) -> tuple[tuple[int, Fraction], ...]:
    """Return each T that divides N and K, and its expected cardinality (figure 3, theorem 1)."""
    settings = Settings(users, per_round, (1,), 1, (rate,))
    return tuple((T, metrics.expected_cardinality(Parameters(users, per_round, T), rate)) for T in settings.allowed())


def verdicts(courses: Sequence[Course]) -> tuple[Verdict, ...]:
    """Return whether the paper's statements about these figures hold in a run."""
    return tuple(_verdicts({course.scheme.name: course for course in courses}, courses))


def _verdicts(named: dict[str, Course], courses: Sequence[Course]) -> Iterator[Verdict]:
    batches = [course for course in courses if course.scheme.name.startswith("Multi-RoundSecAgg")]
    shown = ", ".join(f"T = {one.scheme.parameters.T}: {one.privacy[0]}" for one in batches)
    kept = [one.strong >= one.scheme.parameters.T for one in batches if one.strong]
    statement = "Multi-RoundSecAgg keeps the privacy T that it is asked for"
    yield Verdict("MRS-THM1P", statement, all(kept) if kept else None, f"strong {shown}")
    if "Partition" in named:
        yield _of_partition(named["Partition"], courses)
    yield from (_of_small_batches(named["Random"], one) for one in batches if one.scheme.parameters.T in (3, 4))


def _if_rounds(courses: Sequence[Course], holds: bool) -> bool | None:
    """Return whether a statement holds, or None if one of the schemes had no round."""
    return holds if all(one.strong for one in courses) else None


def _of_partition(partition: Course, courses: Sequence[Course]) -> Verdict:
    private = all(partition.strong >= one.strong for one in courses)
    worst = all(partition.cardinalities[-1] <= one.cardinalities[-1] for one in courses)
    shown = f"privacy {partition.privacy[0]}, cardinality {float(partition.cardinalities[-1]):.2f}"
    statement = "the partition has the best privacy and the worst cardinality"
    return Verdict("MRS-OBS2", statement, _if_rounds(courses, private and worst), shown)


def _of_small_batches(random: Course, one: Course) -> Verdict:
    mine, others = one.cardinalities[-1], random.cardinalities[-1]
    statement = f"T = {one.scheme.parameters.T} is more private than random selection, and almost as cardinal"
    weak = f"weak {one.privacy[1]} and {random.privacy[1]}"
    holds = one.weak[-1].low > random.weak[-1].high and mine >= ALMOST * others
    shown = f"{weak}, cardinality {float(mine):.2f} and {float(others):.2f}"
    return Verdict("MRS-OBS1", statement, _if_rounds((random, one), holds), shown)
