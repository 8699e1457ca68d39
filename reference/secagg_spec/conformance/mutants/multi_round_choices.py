"""Planted bugs of who is chosen: batches, families, strategies, draws, and what is refused."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.multi_round_witness import Function, batch, family, one_by_one
from secagg_spec.conformance.mutants.wrapped import BUILD, changing
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.targets.reference_multi_round import counts
from secagg_spec.selection import batches, strategies
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.strategies import Counts, Pool

_BATCHES, _STRATEGIES = "secagg_spec.selection.batches", "secagg_spec.selection.strategies"
_TABLE = f"{_STRATEGIES}:STRATEGIES"
_BATCH = "select.batch"
_NUMBERED = ("select.family", _BATCH, "select.session", "select.complete", "select.request")
Chooses = Callable[[Parameters, Counts, BoolArray], Pool | None]


# ------------------------------------------------------------------------------------------------------ the family


@mutant(
    "batches-that-do-not-fit",
    "MRA-01",
    "fairness: T need not divide N and K, so that the last users are never chosen, or a round has fewer than K users",
    f"{_BATCHES}:Parameters.__post_init__",
    lambda: [family(9, 4, 2), family(8, 5, 2)],
    kind="acceptance",
    source="paper: multi-round, T no divisor of N or K",
)
def _not_dividing(right: Function) -> Function:
    def wrong(self: Parameters) -> None:
        for name, value, high in (("N", self.N, 2**32 - 1), ("K", self.K, self.N), ("T", self.T, self.K)):
            validate.integer(name, value, 1, high)

    return wrong


@mutant(
    "numbers-moved-to-what-is-allowed",
    "MRA-01",
    "disagreement: a K above N, or a T above K or below 1, is moved to its bound",
    BUILD,
    lambda: [family(4, 8, 2), family(8, 4, 0), family(8, 2, 4)],
    kind="acceptance",
    source="silent repair",
)
def _moved(right: Function) -> Function:
    def moved(given: dict[str, Any]) -> dict[str, Any]:
        N = given["N"]
        K = min(max(given["K"], 1), max(N, 1))
        return {**given, "K": K, "T": min(max(given["T"], 1), K)}

    return changing(*_NUMBERED)(moved)(right)  # type: ignore[no-any-return]


@mutant(
    "family-without-the-last-set",
    "MRA-02",
    "fairness: the last set of the family is never chosen, and not listed",
    f"{_BATCHES}:family",
    family,
    kind="sum",
    source="off by one",
)
def _without_last(right: Function) -> Function:
    def wrong(parameters: Parameters) -> Iterator[tuple[int, ...]]:
        return islice(right(parameters), batches.family_size(parameters) - 1)

    return wrong


@mutant(
    "family-of-any-users",
    "MRA-02",
    "privacy: the sets are the first ones of any K users, as in the usual random selection",
    f"{_BATCHES}:family",
    family,
    kind="privacy",
    source="other rule: the usual random selection",
)
def _any_users(right: Function) -> Function:
    def wrong(parameters: Parameters) -> Iterator[tuple[int, ...]]:
        return islice(combinations(range(parameters.N), parameters.K), batches.family_size(parameters))

    return wrong


@mutant(
    "family-of-disjoint-sets",
    "MRA-02",
    "convergence: the users are cut into N/K groups that never mix, whatever T is",
    f"{_BATCHES}:family",
    family,
    kind="sum",
    source="other rule: groups that never mix",
)
def _disjoint(right: Function) -> Function:
    def wrong(parameters: Parameters) -> Iterator[tuple[int, ...]]:
        starts = range(0, parameters.N - parameters.K + 1, parameters.K)
        return (tuple(range(start, start + parameters.K)) for start in starts)

    return wrong


@mutant(
    "family-counted-in-floating-point",
    "MRA-02",
    "wrong size: the number of sets is a product of quotients in binary64, which large numbers do not survive",
    f"{_BATCHES}:family_size",
    lambda: family(120, 60, 1),
    kind="sum",
    source="arithmetic: binary64 for integers above 2**53",
)
def _in_floating_point(right: Function) -> Function:
    def wrong(parameters: Parameters) -> int:
        n, m = parameters.batches, parameters.per_round
        return round(float(comb(n, m)))

    return wrong


# ------------------------------------------------------------------------------------------------------ strategies


def _strategy(
    name: str,
    clause: str,
    effect: str,
    strategy: str,
    witness: Callable[[], object],
    also: tuple[str, ...] = (),
    *,
    kind: str,
    source: str,
) -> Callable[[Chooses], Any]:
    """Register a mutant that chooses otherwise by some strategies, named one after the other."""

    def register(pool: Chooses) -> Any:
        def build(right: Any) -> Any:
            wrong = {name: replace(right[name], pool=pool) for name in strategy.split()}
            return {**right, **wrong}

        return mutant(name, clause, effect, _TABLE, witness, also=also, kind=kind, source=source)(build)

    return register


_HALF = (0, *range(2, 8))
"""All but user 1."""


@_strategy(
    "least-of-all-available-users",
    "MRA-05",
    "no round: a set with the available user of the least frequency is asked for, although its batch is not complete",
    "fair partition",
    lambda: batch("fair", (0, 9, 1, 1, 2, 2, 3, 3), _HALF, (0, 0)),
    also=("MRA-04",),
    kind="refusal",
    source="paper: MRS-COMP2",
)
def _least_available(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    pool = strategies.fair(parameters, frequencies, available)
    if pool is None:
        return None
    least = frequencies[available].min()
    seen = np.where(available, frequencies, least + 1).reshape(parameters.batches, parameters.T).min(axis=1)
    found = pool.drawn[seen[pool.drawn] == least]
    return Pool(pool.taken, pool.drawn, pool.draws, found) if found.size else None


def _by(name: str, effect: str, of: Callable[[Any], Any], *, kind: str, source: str) -> None:
    """Register a mutant with another frequency of a batch."""

    @_strategy(
        name,
        "MRA-05",
        effect,
        "fair partition",
        lambda: batch("fair", (9, 0, 3, 3, 1, 4, 2, 2), draws=(0, 0)),
        kind=kind,
        source=source,
    )
    def other(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
        often = of(frequencies.reshape(parameters.batches, parameters.T))
        return strategies.fair(parameters, np.repeat(often, parameters.T), available)


_by(
    "batch-frequency-is-the-largest",
    "fairness: the frequency of a batch is that of its busiest user",
    lambda f: f.max(axis=1),
    kind="sum",
    source="other rule: the largest frequency",
)
_by(
    "batch-frequency-is-the-sum",
    "fairness: the frequency of a batch is the sum of its users'",
    lambda f: f.sum(axis=1),
    kind="sum",
    source="other rule: the sum of the frequencies",
)
_by(
    "batch-frequency-is-of-the-first",
    "fairness: the frequency of a batch is that of its first user",
    lambda f: f[:, 0],
    kind="sum",
    source="other rule: the frequency of the first user",
)


@_strategy(
    "fair-from-the-most-frequent",
    "MRA-05",
    "fairness: the batch of the largest frequency comes first",
    "fair partition",
    lambda: batch("fair", (0, 0, 1, 1, 2, 2, 3, 3), draws=(0, 0)),
    kind="sum",
    source="sign",
)
def _most(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    return strategies.fair(parameters, frequencies.max() - frequencies, available)


@_strategy(
    "fair-is-uniform",
    "MRA-05",
    "fairness: frequencies are not looked at",
    "fair partition",
    lambda: batch("fair", (3, 3, 1, 1, 2, 2, 0, 0), draws=(0, 0)),
    kind="sum",
    source="clause left out",
)
def _uniform(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    return strategies.fair(parameters, np.zeros_like(frequencies), available)


@_strategy(
    "all-of-the-least-frequencies",
    "MRA-05",
    "convergence: all batches of a round are those of the least frequencies, and not the first one alone",
    "fair",
    lambda: batch("fair", (0, 0, 1, 1, 2, 2, 0, 0), draws=(0, 1)),
    kind="sum",
    source="other rule: all by frequency",
)
def _all_least(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    pool = strategies.fair(parameters, frequencies, available)
    if pool is None or pool.least is None or len(pool.least) < parameters.per_round:
        return pool
    return Pool(pool.taken, pool.least, parameters.per_round, pool.least)


@_strategy(
    "weighted-of-the-least-frequency-only",
    "MRA-04",
    "no round: only users of the least frequency are taken, as the paper says it, and there are fewer than K",
    "weighted least",
    lambda: one_by_one("weighted", (0, 1, 1, 1, 1), (0,)),
    also=("MRA-05",),
    kind="refusal",
    source="paper: MRS-WEIGHTED",
)
def _minimum_only(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    pool = strategies.fair(parameters, frequencies, available)
    if pool is None or pool.least is None or len(pool.least) < parameters.per_round:
        return None
    return strategies.least(parameters, frequencies, available)


@_strategy(
    "weighted-takes-the-first-of-equals",
    "MRA-05",
    "fairness: of users of one frequency that do not all fit the first ones are taken, and not drawn",
    "weighted least",
    lambda: one_by_one("weighted"),
    kind="sum",
    source="other rule: the first ones are taken",
)
def _first_of_equals(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    there = batches.complete(parameters, available)
    if len(there) < parameters.per_round:
        return None
    often = frequencies.reshape(parameters.batches, parameters.T).min(axis=1)[there]
    order = there[np.argsort(often, kind="stable")]
    return Pool(order[: parameters.per_round], order[:0], 0)


@_strategy(
    "weighted-draws-of-all",
    "MRA-05",
    "fairness: users of small frequencies are drawn from with the others",
    "weighted least",
    lambda: one_by_one("weighted", (1, 0, 1, 1, 1), (0,)),
    kind="sum",
    source="clause left out",
)
def _draws_all(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    return strategies.uniform(parameters, frequencies, available)


@_strategy(
    "first-batches-taken",
    "MRA-05",
    "fairness: the first complete batches are chosen, and nothing is drawn",
    "uniform random",
    lambda: batch("uniform", draws=(1, 0)),
    also=("MRA-08",),
    kind="sum",
    source="other rule: the first ones are taken",
)
def _first_batches(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    pool = strategies.uniform(parameters, frequencies, available)
    return pool and Pool(pool.drawn[: pool.draws], pool.drawn[:0], 0)


@_strategy(
    "least-in-one-place-only",
    "MRA-05",
    "fairness: the frequency has a say in one batch of a round, as by the paper's rule, and not in all",
    "weighted least",
    lambda: batch("least", (0, 0, 1, 1, 2, 2, 1, 1), draws=(1,)),
    kind="sum",
    source="paper: multi-round, the rule of the second component",
)
def _one_place(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
    return strategies.fair(parameters, frequencies, available)


def _skipping(
    name: str, effect: str, strategy: str, witness: Callable[[], object], *, kind: str, source: str
) -> Callable[[Callable[[Chooses], Chooses]], Any]:
    """Register a mutant that has, or has not, a round where there is none, or one."""

    def register(change: Callable[..., Any]) -> Any:
        def build(right: Any) -> Any:
            wrong = {name: replace(right[name], pool=change(right[name].pool)) for name in strategy.split()}
            return {**right, **wrong}

        return mutant(name, "MRA-04", effect, _TABLE, witness, kind=kind, source=source)(build)

    return register


_NAMES = "random weighted partition uniform fair least"


@_skipping(
    "round-only-with-a-batch-to-spare",
    "no round: just as many complete batches as make a round are not enough",
    _NAMES,
    lambda: batch("uniform", available=range(4)),
    kind="refusal",
    source="off by one",
)
def _to_spare(right: Chooses) -> Chooses:
    def wrong(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
        many = len(batches.complete(parameters, available)) > parameters.per_round
        return right(parameters, frequencies, available) if many else None

    return wrong


@_skipping(
    "round-only-when-all-are-there",
    "no round: one user that is not available prevents a round",
    _NAMES,
    lambda: batch("uniform", available=_HALF),
    kind="refusal",
    source="clause too strict",
)
def _all_there(right: Chooses) -> Chooses:
    return lambda p, frequencies, available: right(p, frequencies, available) if available.all() else None


@_skipping(
    "smaller-round-of-what-is-there",
    "privacy: where too few batches are complete, a round has those that are",
    "uniform random weighted least",
    lambda: batch("uniform", available=range(2), draws=()),
    kind="privacy",
    source="clause left out",
)
def _smaller(right: Chooses) -> Chooses:
    def wrong(parameters: Parameters, frequencies: Counts, available: BoolArray) -> Pool | None:
        there = batches.complete(parameters, available)
        few = 0 < len(there) < parameters.per_round
        return Pool(there, there[:0], 0) if few else right(parameters, frequencies, available)

    return wrong


@mutant(
    "batch-with-one-user-missing",
    "MRA-03",
    "failure: a batch counts as complete with one user missing, who is chosen all the same",
    f"{_BATCHES}:complete",
    lambda: batch("uniform", available=_HALF, draws=(0, 0)),
    kind="acceptance",
    source="off by one",
)
def _one_missing(right: Function) -> Function:
    def wrong(parameters: Parameters, available: BoolArray) -> Any:
        here = available.reshape(parameters.batches, parameters.T).sum(axis=1)
        return np.flatnonzero(here >= max(parameters.T - 1, 1))

    return wrong


@mutant(
    "batches-dealt-out",
    "MRA-03",
    "disagreement: batch b has the users b, b + N/T, b + 2N/T and so on",
    f"{_BATCHES}:Parameters.members",
    lambda: batch("uniform"),
    also=("MRA-02", "MRA-05"),
    kind="form",
    source="other rule: users dealt out in turn",
)
def _dealt(right: Function) -> Function:
    return lambda self, batch: range(right(self, batch).start // self.T, self.N, self.batches)


# ------------------------------------------------------------------------------------------------------------ draws


def _drawing(name: str, effect: str, *, kind: str, source: str) -> Callable[[Callable[[Any, Sequence[int]], Any]], Any]:
    """Register a mutant with another way to draw."""

    def register(wrong: Callable[[Any, Sequence[int]], Any]) -> Any:
        witness = lambda: one_by_one("random", draws=(3, 2))  # noqa: E731 - it stands in a call
        return mutant(name, "MRA-05", effect, f"{_STRATEGIES}:draw", witness, kind=kind, source=source)(
            lambda right: wrong
        )

    return register


@_drawing(
    "drawn-with-replacement",
    "failure: what was drawn can be drawn again, so that a round has fewer users",
    kind="sum",
    source="other rule: drawn with replacement",
)
def _replacement(items: Any, draws: Sequence[int]) -> Any:
    return np.unique(items[list(draws)])


@_drawing(
    "drawn-without-changing-places",
    "fairness: an item that is drawn is not replaced by the first one, but cut out",
    kind="sum",
    source="other rule: what is drawn is cut out",
)
def _cut_out(items: Any, draws: Sequence[int]) -> Any:
    left = list(items)
    return np.array([left.pop(place) for place in draws], dtype=np.intp)


@_drawing(
    "drawn-from-the-end",
    "disagreement: items change places with the last one and not with the first one",
    kind="form",
    source="other rule: places changed with the last one",
)
def _from_end(items: Any, draws: Sequence[int]) -> Any:
    moved = items.copy()
    for step, place in enumerate(draws):
        last = len(moved) - 1 - step
        moved[[last, place]] = moved[[place, last]]
    return moved[len(moved) - len(draws) :]


@_drawing(
    "draws-counted-from-zero",
    "fairness: the place is the draw, and not so many places after the current one",
    kind="sum",
    source="off by one",
)
def _from_zero(items: Any, draws: Sequence[int]) -> Any:
    moved = items.copy()
    for place, step in enumerate(draws):
        moved[[place, step]] = moved[[step, place]]
    return moved[: len(draws)]


@mutant(
    "drawn-in-the-order-of-the-list",
    "MRA-06",
    "disagreement: draws count from the other end when the available users are named in descending order",
    BUILD,
    lambda: batch("uniform", available=range(7, -1, -1)),
    kind="form",
    source="order",
)
def _order(right: Function) -> Function:
    def turned(given: dict[str, Any]) -> dict[str, Any]:
        limits = _ranges(given) if given["available"] and given["available"][0] > given["available"][-1] else None
        if not limits or len(limits) != len(given["rand"]["draws"]):
            return given
        draws = [bound - 1 - step for bound, step in zip(limits, given["rand"]["draws"], strict=True)]
        return {**given, "rand": {"draws": draws}}

    return changing(_BATCH)(turned)(right)  # type: ignore[no-any-return]


def _ranges(given: Mapping[str, Any]) -> Sequence[int] | None:
    """Return the number that each draw is below; None without a round, or where the request is refused anyway."""
    try:
        here = np.zeros(given["N"], dtype=np.bool_)
        here[given["available"]] = True
        parameters = Parameters(given["N"], given["K"], given["T"])
        return strategies.ranges(parameters, given["strategy"], counts(given["frequencies"]), here)
    except (ValueError, IndexError):
        return None


def _twice() -> object:
    """Return the second of two equal choices of one adapter."""
    params = {"N": 4, "K": 1, "T": 1, "strategy": "weighted", "frequencies": [0, 1, 2, 3], "available": [1, 2, 3]}
    request = {"id": 1, "op": _BATCH, "params": {**params, "frequencies": [0, 0, 1, 3]}, "rand": {"draws": []}}
    adapter = reference.build()
    return [adapter.answer(request)["result"] for _ in range(2)]


@mutant(
    "last-choice-remembered",
    "MRA-06",
    "disagreement: who was chosen last counts as seen twice more, though nobody said that there was a sum",
    BUILD,
    _twice,
    kind="sum",
    source="kept too long",
)
def _remembered(right: Function) -> Function:
    def built() -> Adapter:
        adapter: Adapter = right()
        last: list[int] = []
        asked = adapter._handlers[_BATCH]

        def answered(**given: Any) -> Any:
            often = [f + 2 * (user in last) for user, f in enumerate(given["frequencies"])]
            result = asked(**given) if not last or max(often, default=0) >= 2**32 else _or_as_asked(asked, given, often)
            last[:] = result["chosen"] or []
            return result

        adapter.operation(_BATCH)(answered)
        return adapter

    return built


def _or_as_asked(asked: Function, given: dict[str, Any], often: list[int]) -> Any:
    """Return the choice for other frequencies, where its draws fit."""
    changed = {**given, "frequencies": often}
    limits, draws = _ranges(changed) or (), given["rand"]["draws"]
    fits = len(limits) == len(draws) and all(0 <= step < bound for step, bound in zip(draws, limits, strict=True))
    return asked(**(changed if fits else given))


def _own(name: str, effect: str, *, kind: str, source: str) -> Callable[[Callable[[int], Callable[[int], int]]], Any]:
    """Register a mutant that draws on its own; the function makes a sampler out of a start."""

    def register(sampler: Callable[[int], Callable[[int], int]]) -> Any:
        def build(right: Function) -> Function:
            def built() -> Adapter:
                adapter: Adapter = right()
                pick = sampler(secrets.randbelow(2**20))
                asked = adapter._handlers[_BATCH]

                def answered(**given: Any) -> Any:
                    draws = [pick(bound) for bound in _ranges(given) or ()]
                    return asked(**{**given, "rand": {"draws": draws}})

                adapter.operation(_BATCH, randomness="none")(answered)
                return adapter

            return built

        return mutant(
            name,
            "MRA-07",
            effect,
            BUILD,
            lambda: reference.build().hello["operations"][_BATCH],
            kind=kind,
            source=source,
        )(build)

    return register


@_own(
    "draws-that-prefer-the-first",
    "fairness: draws are the smaller ones of two, so that the first batches come often",
    kind="sum",
    source="weak draw: the smaller one of two draws",
)
def _smaller_ones(start: int) -> Callable[[int], int]:
    return lambda bound: min(secrets.randbelow(bound), secrets.randbelow(bound))


@_own(
    "draws-in-turn",
    "privacy: each draw follows the one before, so that a choice tells the next one",
    kind="privacy",
    source="weak draw: a counter",
)
def _in_turn(start: int) -> Callable[[int], int]:
    state = [start]

    def pick(bound: int) -> int:
        state[0] += 1
        return state[0] % bound

    return pick


# ------------------------------------------------------------------------------------------------- what is refused


def _accepting(
    name: str, clause: str, effect: str, witness: Callable[[], object], *, kind: str, source: str
) -> Callable[[Callable[[dict[str, Any]], dict[str, Any]]], Any]:
    """Register a mutant that mends a request for a choice before it looks at it."""
    return lambda change: mutant(name, clause, effect, BUILD, witness, kind=kind, source=source)(
        changing(_BATCH)(change)
    )


@_accepting(
    "draws-reduced",
    "MRA-08",
    "fairness: a draw is reduced to its range",
    lambda: [batch("uniform", draws=(4, 0)), batch("uniform", draws=(0, -1))],
    kind="acceptance",
    source="silent repair",
)
def _reduced(given: dict[str, Any]) -> dict[str, Any]:
    limits, draws = _ranges(given) or (), given["rand"]["draws"]
    kept = [step % bound for step, bound in zip(draws, limits, strict=False)] + draws[len(limits) :]
    return {**given, "rand": {"draws": kept}}


@_accepting(
    "draws-fitted",
    "MRA-08",
    "fairness: draws that are too many are cut, and those that are missing are 0",
    lambda: [batch("uniform", draws=(1, 0, 0)), batch("uniform", draws=(1,)), batch("uniform", available=())],
    kind="acceptance",
    source="silent repair",
)
def _fitted(given: dict[str, Any]) -> dict[str, Any]:
    limits, draws = _ranges(given) or (), given["rand"]["draws"]
    return {**given, "rand": {"draws": [*draws, *[0] * len(limits)][: len(limits)]}}


@mutant(
    "any-batch-for-a-strategy",
    "MRA-09",
    "disagreement: a strategy is taken with batches that it is not for",
    f"{_STRATEGIES}:Strategy.check",
    lambda: [batch("random"), batch("partition")],
    kind="acceptance",
    source="clause left out",
)
def _any_batch(right: Function) -> Function:
    return lambda self, parameters: None


@_accepting(
    "frequencies-fitted",
    "MRA-09",
    "fairness: frequencies that are missing are 0, more are cut, and those out of range are moved to a bound",
    lambda: [batch("fair", (0,) * 7, draws=(0, 0)), batch("fair", (0,) * 9), batch("fair", (-1,) * 8)],
    kind="acceptance",
    source="silent repair",
)
def _frequencies(given: dict[str, Any]) -> dict[str, Any]:
    often = [min(max(f, 0), 2**32 - 1) for f in given["frequencies"]]
    return {**given, "frequencies": [*often, *[0] * max(given["N"], 0)][: max(given["N"], 0)]}


@_accepting(
    "strangers-not-available",
    "MRA-09",
    "disagreement: available users outside the roster are passed over, and those that are named twice count once",
    lambda: [batch("uniform", available=(*range(8), 8)), batch("uniform", available=(*range(8), 3))],
    kind="acceptance",
    source="silent repair",
)
def _strangers(given: dict[str, Any]) -> dict[str, Any]:
    known = [user for user in dict.fromkeys(given["available"]) if 0 <= user < given["N"]]
    return {**given, "available": known}


@_accepting(
    "unknown-strategy-is-uniform",
    "ADP-40",
    "disagreement: a strategy that nobody knows is taken for uniform",
    lambda: batch("fairest"),
    kind="acceptance",
    source="silent repair",
)
def _unknown(given: dict[str, Any]) -> dict[str, Any]:
    return {**given, "strategy": given["strategy"] if given["strategy"] in strategies.STRATEGIES else "uniform"}
