"""Planted bugs of audits: who comes out and how, weak and strong privacy, fairness and cardinality."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.multi_round_witness import TRIANGLE, Function, audit
from secagg_spec.conformance.mutants.wrapped import BUILD, changing, wrapping
from secagg_spec.privacy.multiround import Combination, Recovery
from secagg_spec.selection import metrics
from secagg_spec.selection.metrics import Log
from secagg_spec.selection.weights import Bounds

_SCREEN = "secagg_spec.privacy.multiround:_Screen._recoveries"
_COMBINATION = "secagg_spec.privacy.multiround:Audit.combination"
_METRICS = "secagg_spec.selection.metrics"
_STRONG, _WEAK = f"{_METRICS}:strong_privacy", "secagg_spec.selection.weights:least_weight"
_AUDIT = "audit.privacy"


# -------------------------------------------------------------------------------------------------- who comes out


@mutant(
    "recoverable-one-round-late",
    "MRA-10",
    "privacy: a user is said to come out one round later than it does",
    _SCREEN,
    lambda: audit(*TRIANGLE, (0, 1)),
    kind="privacy",
    source="off by one",
)
def _late(right: Function) -> Function:
    def wrong(self: Any, rounds: int, columns: Any) -> Iterator[Recovery]:
        return (replace(found, rounds=min(rounds + 1, len(self.log))) for found in right(self, rounds, columns))

    return wrong


@mutant(
    "recoverable-in-the-end",
    "MRA-10",
    "privacy: only the whole log is looked at, and not when a user comes out",
    _SCREEN,
    lambda: audit(*TRIANGLE, (0, 1)),
    kind="privacy",
    source="clause in part",
)
def _in_the_end(right: Function) -> Function:
    def wrong(self: Any, rounds: int, columns: Any) -> Iterator[Recovery]:
        return (replace(found, rounds=len(self.log)) for found in right(self, rounds, columns))

    return wrong


@mutant(
    "recoverable-from-single-rounds",
    "MRA-10",
    "privacy: a user is found only when two rounds differ in it, or it is alone in one",
    _SCREEN,
    lambda: audit(*TRIANGLE),
    kind="privacy",
    source="clause in part",
)
def _two_rounds(right: Function) -> Function:
    def wrong(self: Any, rounds: int, columns: Any) -> Iterator[Recovery]:
        sets = [frozenset(np.flatnonzero(row).tolist()) for row in self.log[:rounds]]
        alone = {user for a, b in combinations([frozenset[int](), *sets], 2) if len(a ^ b) == 1 for user in a ^ b}
        return (found for found in right(self, rounds, columns) if found.user in alone)

    return wrong


@mutant(
    "rank-modulo-2",
    "MRA-10",
    "privacy: the sums are combined modulo 2, where what is taken twice is gone and nothing can be halved",
    BUILD,
    lambda: audit(*TRIANGLE),
    also=("MRA-11",),
    kind="privacy",
    source="arithmetic: sums combined modulo 2",
)
def _modulo_2(right: Function) -> Function:
    def answered(asked: Function, given: dict[str, Any]) -> Any:
        result = asked(**given)
        found = _binary(given["rounds"])
        entries = [
            {"user": user, "round": t + 1, "combination": [[at, ["1", "1"]] for at in sorted(used)]}
            for user, (t, used) in sorted(found.items())
        ]
        return {**result, "recoverable": entries}

    return wrapping(_AUDIT)(answered)(right)  # type: ignore[no-any-return]


def _binary(rounds: Sequence[Sequence[int]]) -> dict[int, tuple[int, set[int]]]:
    """Return who comes out modulo 2, in which round, and of which rounds."""
    basis: list[tuple[set[int], set[int]]] = []
    found: dict[int, tuple[int, set[int]]] = {}
    for t, users in enumerate(rounds):
        rest, used = set(users), {t}
        for row, of in basis:
            if min(row) in rest:
                rest, used = rest ^ row, used ^ of
        if rest:
            low = min(rest)
            basis = [(row ^ rest, of ^ used) if low in row else (row, of) for row, of in basis]
            basis = sorted([*basis, (rest, used)], key=lambda entry: min(entry[0]))
        for row, of in basis:
            if len(row) == 1:
                found.setdefault(min(row), (t, of))
    return found


def _combining(
    name: str, effect: str, *rounds: Sequence[int], kind: str, source: str
) -> Callable[[Callable[[Any, Combination], Combination]], Any]:
    """Register a mutant with other combinations."""

    def register(change: Callable[[Any, Combination], Combination]) -> Any:
        def build(right: Function) -> Function:
            return lambda self, user: change(self, right(self, user))

        shown = rounds or TRIANGLE
        N = max(4, 1 + max(max(users) for users in shown))
        return mutant(name, "MRA-11", effect, _COMBINATION, lambda: audit(*shown, N=N), kind=kind, source=source)(build)

    return register


@_combining("combination-without-signs", "wrong model: what is to be subtracted is added", kind="sum", source="sign")
def _signs(self: Any, terms: Combination) -> Combination:
    return tuple((t, abs(factor)) for t, factor in terms)


@_combining(
    "combination-without-halves",
    "wrong model: a combination is not divided by what it must be divided by",
    kind="sum",
    source="wrong term",
)
def _not_divided(self: Any, terms: Combination) -> Combination:
    return tuple((t, Fraction(factor.numerator)) for t, factor in terms)


@_combining(
    "combination-in-floating-point",
    "wrong model: factors are binary64 numbers, which thirds are not",
    (0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3),
    kind="sum", source="arithmetic: binary64 for fractions",
)  # fmt: skip
def _binary64(self: Any, terms: Combination) -> Combination:
    return tuple((t, Fraction(float(factor))) for t, factor in terms)


_STEPS = (0, 1, 3, 5, 7, 9, 11, 13)


@_combining(
    "combination-of-rounded-integers",
    "wrong model: numerators above 2**53 are rounded",
    *(sorted({t - step for step in _STEPS if t >= step}) for t in range(96)),
    kind="sum",
    source="arithmetic: binary64 for integers above 2**53",
)
def _rounded(self: Any, terms: Combination) -> Combination:
    return tuple((t, Fraction(int(float(factor.numerator)), factor.denominator)) for t, factor in terms)


@_combining(
    "combination-of-later-rounds",
    "privacy: of equal rounds the last one is named, which had not taken place when the user came out",
    (0, 1), (1,), (0, 1),
    kind="sum", source="other rule: the last one of equal rounds",
)  # fmt: skip
def _later(self: Any, terms: Combination) -> Combination:
    last = {self.log[t].tobytes(): t for t in range(len(self.log))}
    return tuple(sorted((last[self.log[t].tobytes()], factor) for t, factor in terms))


@_combining(
    "combination-with-zeros",
    "wrong form: rounds that do not matter are named too",
    (0,),
    (1, 2),
    (1,),
    kind="form",
    source="wrong term",
)
def _zeros(self: Any, terms: Combination) -> Combination:
    known = dict(terms)
    return tuple((t, known.get(t, Fraction(0))) for t in range(max(known) + 1))


# -------------------------------------------------------------------------------------------------------- privacy


def _figure(
    name: str, clause: str, effect: str, target: str, *rounds: Sequence[int], N: int = 4, kind: str, source: str
) -> Callable[[Callable[[Function, Log], Any]], Any]:
    """Register a mutant with another number of a log; the function gets the right one and the log."""

    def register(wrong: Callable[[Function, Log], Any]) -> Any:
        def build(right: Function) -> Function:
            return lambda log, **options: wrong(right, log)

        return mutant(name, clause, effect, target, lambda: audit(*rounds, N=N), kind=kind, source=source)(build)

    return register


@_figure(
    "absent-users-are-a-class",
    "MRA-12",
    "privacy: users that are in no set count as a class of their own",
    _STRONG,
    (0, 1, 2),
    kind="sum",
    source="wrong term",
)
def _absent(right: Function, log: Log) -> int:
    absent = int((~log.any(axis=0)).sum())
    return min([*map(len, metrics.classes(log)), *([absent] if absent else [])], default=0)


@_figure(
    "strong-privacy-is-the-weak",
    "MRA-12",
    "privacy: the strong privacy is said to be the weak one",
    _STRONG,
    (0, 1),
    (1, 2),
    kind="privacy",
    source="other rule: the weak privacy",
)
def _strong_is_weak(right: Function, log: Log) -> int:
    from secagg_spec.selection import weights  # noqa: PLC0415 - the name may be planted as well

    return weights.least_weight(log).high


@_figure(
    "strong-privacy-of-the-smallest-round",
    "MRA-12",
    "privacy: the smallest round is all that counts",
    _STRONG,
    (0, 1),
    (1, 2),
    kind="privacy",
    source="other rule: the smallest round",
)
def _strong_round(right: Function, log: Log) -> int:
    return _smallest(log)


def _smallest(log: Log) -> int:
    return min((int(row.sum()) for row in log if row.any()), default=0)


@_figure(
    "weak-privacy-is-the-strong",
    "MRA-13",
    "wrong number: the weak privacy is said to be the strong one",
    _WEAK,
    (0, 1),
    (1, 2),
    kind="sum",
    source="other rule: the strong privacy",
)
def _weak_is_strong(right: Function, log: Log) -> Bounds:
    strong = metrics.strong_privacy(log)
    return Bounds(strong, strong, ())


@_figure(
    "weak-privacy-of-single-rounds",
    "MRA-13",
    "privacy: rounds are not combined",
    _WEAK,
    (0, 1, 2),
    (0, 1, 3),
    (0, 1),
    kind="privacy",
    source="clause in part",
)
def _single(right: Function, log: Log) -> Bounds:
    return Bounds(_smallest(log), _smallest(log), ())


@_figure(
    "weak-privacy-of-two-rounds",
    "MRA-13",
    "privacy: only two rounds are combined, by a difference",
    _WEAK,
    *TRIANGLE,
    kind="privacy",
    source="clause in part",
)
def _pairs(right: Function, log: Log) -> Bounds:
    rows = [np.zeros(log.shape[1], dtype=np.bool_), *log]
    least = min((int((a ^ b).sum()) for a, b in combinations(rows, 2) if (a ^ b).any()), default=0)
    return Bounds(least, least, ())


@_figure(
    "weak-privacy-from-one-on",
    "MRA-13",
    "wrong number: of many users nothing is known below the weak privacy, not even the strong one",
    _WEAK,
    range(16),
    (0, 1),
    N=16,
    kind="sum",
    source="clause in part",
)
def _from_one(right: Function, log: Log) -> Bounds:
    found: Bounds = right(log)
    return Bounds(min(found.low, 1), found.high, found.users) if log.any(axis=0).sum() > 12 else found


@_figure(
    "weak-privacy-left-open",
    "MRA-14",
    "wrong number: nothing but the strong privacy is known to be below the weak one",
    _WEAK,
    (0, 1),
    (1, 2),
    kind="sum",
    source="clause in part",
)
def _open(right: Function, log: Log) -> Bounds:
    found: Bounds = right(log)
    return Bounds(metrics.strong_privacy(log), found.high, found.users)


@mutant(
    "log-mended",
    "MRA-15",
    "wrong audit: users outside the roster are passed over, and those that are named twice count once",
    BUILD,
    lambda: [audit((0, 1, 1)), audit((0, 4)), audit((-1, 2))],
    kind="acceptance",
    source="silent repair",
)
def _mended(right: Function) -> Function:
    def mended(given: dict[str, Any]) -> dict[str, Any]:
        rounds = [[user for user in dict.fromkeys(users) if 0 <= user < given["N"]] for users in given["rounds"]]
        return {**given, "rounds": rounds}

    return changing(_AUDIT)(mended)(right)  # type: ignore[no-any-return]


# -------------------------------------------------------------------------------------------------------- figures


@_figure(
    "gap-of-those-who-took-part",
    "MRA-16",
    "fairness: users that were never chosen do not count for the gap",
    f"{_METRICS}:fairness_gap",
    (0, 1),
    (0, 2),
    kind="sum",
    source="wrong term",
)
def _took_part(right: Function, log: Log) -> Any:
    return right(log[:, log.any(axis=0)]) if log.any() else Fraction(0)


@_figure(
    "gap-in-rounds",
    "MRA-16",
    "fairness: the gap is in rounds and not a part of them",
    f"{_METRICS}:fairness_gap",
    (0, 1),
    (0, 2),
    kind="sum",
    source="wrong term",
)
def _rounds(right: Function, log: Log) -> Any:
    return right(log) * len(log)


def _of_real_rounds(right: Function, log: Log) -> Any:
    return right(log[log.any(axis=1)])


for _name, _what in (("cardinality", "convergence"), ("fairness_gap", "fairness")):
    _figure(
        f"{_name.replace('_', '-')}-of-rounds-that-took-place",
        "MRA-16",
        f"{_what}: rounds without a sum do not count",
        f"{_METRICS}:{_name}",
        (0, 1),
        (),
        kind="sum",
        source="wrong term",
    )(_of_real_rounds)


@_figure(
    "cardinality-in-floating-point",
    "MRA-16",
    "wrong number: a mean is the next binary64 number",
    f"{_METRICS}:cardinality",
    (0, 1),
    (),
    (),
    kind="sum",
    source="arithmetic: binary64 for fractions",
)
def _float(right: Function, log: Log) -> Any:
    return Fraction(float(right(log)))
