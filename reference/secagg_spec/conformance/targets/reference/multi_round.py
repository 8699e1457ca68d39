"""Multi-RoundSecAgg, one function at a time, by the reference (spec/multi-round.md, sections 2 to 4 and 6)."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.errors import InconsistentSets, OutOfRange
from secagg_spec.privacy import multiround
from secagg_spec.privacy.participation import decimal
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.selection import batches, metrics, strategies, weights
from secagg_spec.selection.batches import Parameters

_LISTED = 1000
"""The most sets in a listed family."""


def _family(*, N: int, K: int, T: int) -> dict[str, Any]:
    parameters = Parameters(N, K, T)
    size = batches.family_size(parameters)
    sets = None if size > _LISTED else [list(users) for users in batches.family(parameters)]
    return {"size": decimal(size), "sets": sets}


def _batch(
    *, N: int, K: int, T: int, strategy: str, frequencies: Any, available: Any, rand: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    parameters = Parameters(N, K, T)
    here = np.zeros(N, dtype=np.bool_)
    here[list(validate.users("available", list(available), N))] = True
    chosen = strategies.choose(parameters, strategy, counts(frequencies), here, rand["draws"])
    return {"chosen": None if chosen is None else list(chosen)}


def counts(frequencies: Sequence[int]) -> strategies.Counts:
    """Return frequencies in the form that the reference takes; those too large for a machine word are refused here."""
    for at, often in enumerate(frequencies):
        if not -(2**63) <= often < 2**63:
            raise OutOfRange(f"frequencies[{at}]", often, f"in [0, {strategies.MAX_FREQUENCY})")
    return np.array(frequencies, dtype=np.int64)


def _session(*, N: int, K: int, T: int, session: str, round: str, chosen: Sequence[int]) -> dict[str, Any]:
    octets, number = readers.octets("session", session), readers.u32("round", round)
    return {"session": multi_round.round_session(Parameters(N, K, T), octets, number, chosen).hex()}


def _complete(*, N: int, K: int, T: int, c: int, arrived: Sequence[int]) -> dict[str, Any]:
    return {"survivors": list(multi_round.whole_inputs(multi_round.Numbers(N, K, T, c), arrived))}


def _request(
    *, N: int, K: int, T: int, c: int, user: int, chosen: Sequence[int], survivors: Sequence[int]
) -> dict[str, Any]:
    numbers = multi_round.Numbers(N, K, T, c)
    multi_round.check_choice(numbers, user, chosen)
    multi_round.check_survivors(numbers, survivors)
    places = [place for place, other in enumerate(chosen) if other == user]
    if list(survivors) != sorted(survivors) or not set(places) <= set(survivors):
        raise InconsistentSets(f"the survivors {list(survivors)} must ascend, and have user {user} among them")
    return {}


def _audit(*, N: int, rounds: Sequence[Sequence[int]]) -> dict[str, Any]:
    log = table(N, rounds)
    found, weak = multiround.audit(log), weights.least_weight(log)
    return {
        "recoverable": [
            {"user": user, "round": recovery.rounds, "combination": _terms(found.combination(user))}
            for user, recovery in sorted(found.recoveries.items())
        ],
        "strong": metrics.strong_privacy(log),
        "weak": [weak.low, weak.high],
        "gap": _fraction(metrics.fairness_gap(log)),
        "cardinality": _fraction(metrics.cardinality(log)),
    }


def table(N: int, rounds: Sequence[Sequence[int]]) -> BoolArray:
    """Return a log as Booleans, shape (J, N)."""
    log = np.zeros((len(rounds), validate.integer("N", N, 1, batches.MAX_USERS)), dtype=np.bool_)
    for t, users in enumerate(rounds):
        log[t, list(validate.users(f"rounds[{t}]", list(users), N))] = True
    return log


def _terms(combination: multiround.Combination) -> list[list[Any]]:
    return [[t, _fraction(factor)] for t, factor in combination]


def _fraction(number: Fraction) -> list[str]:
    return [("-" if number < 0 else "") + decimal(abs(number.numerator)), decimal(number.denominator)]


HANDLERS: dict[str, Callable[..., dict[str, Any]]] = {
    "select.family": _family,
    "select.batch": _batch,
    "select.session": _session,
    "select.complete": _complete,
    "select.request": _request,
    "audit.privacy": _audit,
}
