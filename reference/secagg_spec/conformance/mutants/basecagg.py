"""Planted bugs of BASecAgg, one function at a time: budgets, what a user asks of a buffer, answers, recovery."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import staleness
from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance import buffers
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.mutants.wrapped import changing
from secagg_spec.conformance.targets import reference
from secagg_spec.conformance.wire import pack, pack_reals
from secagg_spec.errors import InconsistentSets, ParameterError
from secagg_spec.protocols.basecagg import Entry, Held, Parameters

Function = Callable[..., Any]
_MODULE = "secagg_spec.protocols.basecagg"
_RING = "secagg_spec.arithmetic.modular:Ring"
_BUILD = "secagg_spec.conformance.targets.reference:build"
_Q = 2**32 - 5
_SLOWLY = Staleness.polynomial(1)


def _vector(*values: int) -> str:
    return pack(np.array(values, dtype=np.uint64))


def _answer(op: str, params: Mapping[str, Any], **rand: Any) -> object:
    request = {"id": 1, "op": op, "params": dict(params), **({"rand": rand} if rand else {})}
    answer = reference.build().answer(request)
    return answer.get("result", answer.get("reject", {}).get("code"))


def _masked(*update: int, **changed: Any) -> object:
    """Return a masked update modulo 97 with K = 3 and c_g = 4, so that B is 4."""
    mask = _vector(*range(5, 5 + len(update)))
    params = {"q": "97", "K": 3, "c_g": "4", "update": _vector(*update), "mask": mask, **changed}
    return _answer("basecagg.mask", params)


def _encoded(x: float, **changed: Any) -> object:
    params = {"q": "97", "K": 3, "c_l": "2", "c_g": "4", "x": pack_reals(np.array([x])), **changed}
    return _answer("basecagg.encode", params, rounding=pack_reals(np.array([0.5])))


def _buffer(changes: Sequence[tuple[int, dict[str, int]]] = ()) -> buffers.Buffer:
    """Return a buffer of four users with weights 3, 2, 1 and 3, and one more share that is held."""
    entries = [buffers.Entry(0, 7, 3), buffers.Entry(2, 6, 2), buffers.Entry(3, 5, 1), buffers.Entry(5, 7, 3)]
    held = {user: (7, np.array([_Q - 1 - user, 10 + user], dtype=np.uint64)) for user in (0, 2, 3, 4, 5)}
    held.update({entry.user: (entry.stamp, held[entry.user][1]) for entry in entries})
    chosen = buffers.Buffer(_Q, 6, 1, 4, 3, 2, _SLOWLY, 7, tuple(entries), held)
    for at, changed in changes:
        chosen = chosen.with_entry(at, **changed)
    return chosen


def _combined(*changes: tuple[int, dict[str, int]], **changed: Any) -> object:
    params = _buffer(changes).params(**changed)
    return _answer("basecagg.combine", {**params, "q": str(params["q"])})


def _with_users(*users: int) -> object:
    """Return the answer to a buffer with other users, whose shares are held as far as they are on the roster."""
    chosen = _buffer()
    first = chosen.entries[0]
    held = {user: (first.stamp, chosen.held[0][1]) for user in users if 0 <= user < chosen.N}
    entries = tuple(replace(first, user=user) for user in users)
    params = replace(chosen, entries=entries, held=held).params()
    return _answer("basecagg.combine", {**params, "q": str(params["q"])})


def _recovered(weights: Sequence[int] = (3, 1, 2), answers: int = 3, **changed: Any) -> object:
    numbers = {"q": 65537, "N": 5, "U": 3, "T": 1, "d": 3}
    field = PrimeField(numbers["q"])
    updates = np.arange(40000, 40000 + 3 * len(weights), dtype=np.uint64).reshape(-1, 3)
    masks = updates * np.uint64(7) % np.uint64(numbers["q"])
    noise = np.ones((1, 2), dtype=np.uint64)
    code = MaskCode(field, numbers["N"], numbers["U"], numbers["T"])
    shares = code.encode(buffers.weighted(field, weights, masks), noise)
    if answers > numbers["U"]:
        shares[answers - 1] = 0
    total = buffers.weighted(field, weights, updates)
    users = list(range(answers))
    chosen = buffers.Recovery(numbers, 3, list(weights), field.add(updates, masks), users, shares, total)
    return _answer("basecagg.recover", {**chosen.params(**changed), "q": str(numbers["q"])})


# ------------------------------------------------------------------------------------------------------------- budgets


mutant(
    "budget-for-one-update",
    "BSA-06",
    "wrong sums: an update may be so large that K of them wrap around",
    _BUILD,
    lambda: _masked(12),
    also=("BSA-36",),
    kind="acceptance",
    source="clause in part",
)(changing("basecagg.mask", "basecagg.encode")(lambda given: {**given, "K": min(given["K"], 1)}))

mutant(
    "budget-without-weights",
    "BSA-06",
    "wrong sums: an update may be so large that it wraps around once it is weighted",
    _BUILD,
    lambda: _masked(16),
    also=("BSA-36",),
    kind="acceptance",
    source="clause in part",
)(changing("basecagg.mask", "basecagg.encode")(lambda given: {**given, "c_g": str(min(int(given["c_g"]), 1))}))


@mutant(
    "wrap-around-unnoticed",
    "BSA-06",
    "wrong sums: no update is too large",
    f"{_MODULE}:check_update",
    lambda: _masked(40),
    kind="acceptance",
    source="clause left out",
)
def _no_budget(right: Function) -> Function:
    return lambda field, total_weight, update: right(field, 1, update)


@mutant(
    "budget-of-positive-numbers",
    "BSA-06",
    "wrong sums: a negative number may be as large as the field holds",
    f"{_MODULE}:check_update",
    lambda: _masked(97 - 5),
    kind="acceptance",
    source="clause in part",
)
def _positive(right: Function) -> Function:
    def wrong(field: PrimeField, total_weight: int, update: UintArray) -> UintArray:
        right(field, total_weight, np.where(update > np.uint64((field.modulus - 1) // 2), np.uint64(0), update))
        return right(field, 1, update)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "budget-off-by-one",
    "BSA-06",
    "wrong sums: the first update that can wrap around is taken",
    "secagg_spec.protocols.buffers:budget",
    lambda: _masked(5),
    kind="acceptance",
    source="off by one",
)
def _one_more(right: Function) -> Function:
    return lambda field, total_weight: right(field, total_weight) + 1


@mutant(
    "budget-never-reached",
    "BSA-04",
    "refusal: an update at the end of its budget is refused",
    "secagg_spec.protocols.buffers:budget",
    lambda: _masked(4),
    kind="refusal",
    source="off by one",
)
def _one_less(right: Function) -> Function:
    return lambda field, total_weight: max(right(field, total_weight) - 1, 0)


@mutant(
    "buffered-mask-subtracted",
    "BSA-04",
    "wrong sums: the mask is taken from the update",
    f"{_MODULE}:mask_update",
    lambda: _masked(1, 2),
    kind="sum",
    source="sign",
)
def _subtracted(right: Function) -> Function:
    def wrong(field: PrimeField, total_weight: int, update: UintArray, mask: UintArray) -> UintArray:
        right(field, total_weight, update, mask)
        return field.subtract(update, mask)

    return wrong


@mutant(
    "buffered-update-fitted",
    "BSA-05",
    "wrong sums: an update of another length than its mask is cut, or continued by zeros",
    f"{_MODULE}:mask_update",
    lambda: _masked(1, 2, mask=_vector(7)),
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    def wrong(field: PrimeField, total_weight: int, update: UintArray, mask: UintArray) -> Any:
        longer = np.concatenate([update, np.zeros(mask.size, dtype=np.uint64)])
        return right(field, total_weight, longer[: mask.size], mask)

    return wrong


@mutant(
    "buffered-update-reduced",
    "BSA-05",
    "wrong sums: numbers that are not below q are reduced",
    f"{_MODULE}:mask_update",
    lambda: _masked(97 + 1),
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(field: PrimeField, total_weight: int, update: UintArray, mask: UintArray) -> Any:
        q = np.uint64(field.modulus)
        return right(field, total_weight, np.remainder(update, q), np.remainder(mask, q))

    return wrong


mutant(
    "update-at-both-levels",
    "BSA-36",
    "wrong scale: an update is quantised at the product of both levels",
    _BUILD,
    lambda: _encoded(0.5),
    kind="sum",
    source="wrong term",
)(changing("basecagg.encode")(lambda given: {**given, "c_l": str(int(given["c_l"]) * int(given["c_g"]))}))


def _clamped(given: dict[str, Any]) -> dict[str, Any]:
    """Bring the levels to the nearest ones that are allowed."""
    most = max((int(given["q"]) - 1) // 2 // max(given["K"], 1), 1) if "K" in given else 2**32
    K = min(given["K"], (int(given["q"]) - 1) // 2) if "K" in given else 0
    levels = {
        name: str(min(max(int(given[name]), 1), high))
        for name, high in (("c_l", 2**32), ("c_g", most))
        if name in given
    }
    return {**given, **({"K": K} if K else {}), **levels}


mutant(
    "levels-clamped",
    "BSA-02",
    "disagreement: a level that is not allowed is replaced by the nearest one, in silence",
    _BUILD,
    lambda: _masked(1, c_g="0"),
    kind="acceptance",
    source="silent repair",
)(changing("basecagg.encode", "basecagg.mask", "basecagg.recover")(_clamped))


def _level_errors(accepted: Callable[[Parameters], bool]) -> Callable[[Function], Function]:
    """Return what makes a check of levels that accepts some wrong ones."""

    def build(right: Function) -> Function:
        def wrong(self: Parameters) -> None:
            try:
                right(self)
            except ParameterError:
                if self.c_g < 1 or not accepted(self):
                    raise

        return wrong

    return build


mutant(
    "vanishing-weights-allowed",
    "BSA-02",
    "lost updates: the weight of the oldest update may be rounded to 0",
    f"{_MODULE}:Parameters._check_levels",
    lambda: _combined((2, {"stamp": 7, "weight": 3}), tau_max=100),
    kind="acceptance",
    source="paper: basecagg, weights that vanish",
)(_level_errors(lambda self: staleness.floor_weight(self.staleness, self.c_g, self.tau_max) < 1))

mutant(
    "wrapping-weights-allowed",
    "BSA-02",
    "wrong sums: the weights of a buffer may be so large together that no update can be carried",
    f"{_MODULE}:Parameters._check_levels",
    lambda: _combined(**_at_level(2**31)),
    kind="acceptance",
    source="clause in part",
)(_level_errors(lambda self: self.total_weight > (self.q - 1) // 2))


def _at_level(c_g: int) -> dict[str, Any]:
    """Return the members of a buffer at another level."""
    params = _buffer().with_level(c_g).params()
    return {name: params[name] for name in ("c_g", "weights")}


def _collusion(given: dict[str, Any]) -> dict[str, Any]:
    """Bring T, K and tau_max to the nearest ones that are allowed."""
    numbers = {"T": min(max(given["T"], 1), max(given["K"] - 2, 1)), "tau_max": max(given["tau_max"], 0)}
    return {**given, **numbers}


mutant(
    "collusion-bound-adjusted",
    "BSA-01",
    "privacy: a buffer in which T colluders leave one honest update is answered, as if T were smaller",
    _BUILD,
    lambda: _combined(T=3),
    kind="privacy",
    source="silent repair",
)(changing("basecagg.combine")(_collusion))


def _with_element(given: dict[str, Any]) -> dict[str, Any]:
    """Give vectors without elements one."""
    if "held" in given:
        return {**given, "held": [[user, stamp, text or "00000000"] for user, stamp, text in given["held"]]}
    return {**given, **{name: given[name] or "00000000" for name in ("update", "mask")}}


mutant(
    "nothing-to-share-goes-on",
    "BSA-01",
    "acceptance: vectors without elements are masked and combined",
    _BUILD,
    _masked,
    kind="acceptance",
    source="clause in part",
)(changing("basecagg.mask", "basecagg.combine")(_with_element))


# ------------------------------------------------------------------------------------------------------------- buffers


@mutant(
    "buffer-of-any-size",
    "BSA-21",
    "privacy: a buffer with another number of entries than K is answered",
    f"{_MODULE}:_check_users",
    lambda: _with_users(0, 2, 3),
    kind="privacy",
    source="clause in part",
)
def _any_size(right: Function) -> Function:
    return lambda parameters, users: right(parameters, users) if len(users) == parameters.K else None


@mutant(
    "buffer-fields-cut",
    "BSA-21",
    "disagreement: stamps and weights that belong to no user are left out, and missing ones are the last ones",
    f"{_MODULE}:entries_of",
    lambda: _combined(weights=_vector(3, 2, 1, 3, 1)),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def wrong(users: Sequence[int], stamps: UintArray, weights: UintArray) -> Any:
        fields = [np.resize(np.append(field, [field[-1:]] * len(users)), len(users)) for field in (stamps, weights)]
        return right(users, *(field.astype(np.uint64) for field in fields))

    return wrong


@mutant(
    "buffer-may-repeat",
    "BSA-21",
    "privacy: a user that is named twice counts as two",
    f"{_MODULE}:_check_users",
    lambda: _with_users(0, 2, 2, 3),
    kind="privacy",
    source="clause in part",
)
def _repeated(right: Function) -> Function:
    return lambda parameters, users: right(parameters, users) if len(set(users)) == len(users) else None


@mutant(
    "buffer-in-any-order",
    "BSA-21",
    "disagreement: entries may stand in any order, so that a signed buffer is not the only one with its content",
    f"{_MODULE}:_check_users",
    lambda: _with_users(0, 3, 2, 5),
    kind="acceptance",
    source="silent repair",
)
def _any_order(right: Function) -> Function:
    return lambda parameters, users: right(parameters, sorted(users))


@mutant(
    "buffered-strangers-left-out",
    "BSA-21",
    "disagreement: users outside the roster are taken out of a buffer in silence",
    f"{_MODULE}:check_buffer",
    lambda: _with_users(0, 2, 3, 6),
    kind="acceptance",
    source="silent repair",
)
def _strangers(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> Any:
        known = tuple(entry for entry in entries if 0 <= entry.user < parameters.N)
        return right(parameters, round, entries, held) if len(known) == len(entries) else known

    return wrong


def _entries(change: Callable[[Parameters, int, Entry], Entry]) -> Callable[[Function], Function]:
    """Return what makes a check of weights that looks at other entries than those that are used."""

    def build(right: Function) -> Function:
        def wrong(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
            right(parameters, round, [change(parameters, round, entry) for entry in entries])

        return wrong

    return build


def _allowed(parameters: Parameters, tau: int) -> tuple[int, ...]:
    return staleness.admissible_weights(parameters.staleness, parameters.c_g, tau)


mutant(
    "stamp-from-the-future",
    "BSA-22",
    "acceptance: an update that started from a later model than the buffer's counts as a fresh one",
    f"{_MODULE}:_check_weights",
    lambda: _combined((0, {"stamp": 8})),
    kind="acceptance",
    source="clause in part",
)(_entries(lambda parameters, now, entry: replace(entry, stamp=min(entry.stamp, now))))


def _fresh(parameters: Parameters, round: int, entry: Entry) -> Entry:
    if round - entry.stamp <= parameters.tau_max:
        return entry
    return Entry(entry.user, round - parameters.tau_max, _allowed(parameters, parameters.tau_max)[0])


mutant(
    "too-stale-accepted",
    "BSA-22",
    "acceptance: an update that is older than tau_max is still answered for",
    f"{_MODULE}:_check_weights",
    lambda: _combined((2, {"stamp": 4, "weight": 1})),
    kind="acceptance",
    source="clause in part",
)(_entries(_fresh))


def _near(parameters: Parameters, round: int, entry: Entry) -> Entry:
    allowed = _allowed(parameters, max(round - entry.stamp, 0))
    beside = entry.weight and entry.weight in (allowed[0] - 1, allowed[-1] + 1)
    return replace(entry, weight=allowed[0]) if beside else entry


mutant(
    "weight-off-by-one",
    "BSA-23",
    "integrity: a weight that is one beside the right ones is answered for",
    f"{_MODULE}:_check_weights",
    lambda: _combined((2, {"weight": 2})),
    kind="acceptance",
    source="off by one",
)(_entries(_near))


def _whole(parameters: Parameters, round: int, entry: Entry) -> Entry:
    allowed = _allowed(parameters, max(round - entry.stamp, 0))
    return replace(entry, weight=allowed[0]) if entry.weight == allowed[0] + 1 else entry


mutant(
    "whole-weight-and-one-more",
    "BSA-23",
    "integrity: one more is taken for a weight that no draw rounds up",
    f"{_MODULE}:_check_weights",
    lambda: _combined((0, {"weight": 4})),
    kind="acceptance",
    source="off by one",
)(_entries(_whole))


def _any_weight(parameters: Parameters, round: int, entry: Entry) -> Entry:
    return replace(entry, weight=_allowed(parameters, max(round - entry.stamp, 0))[0]) if entry.weight else entry


mutant(
    "any-weight-accepted",
    "BSA-23",
    "privacy: a server that chooses weights freely learns other sums than the weighted one",
    f"{_MODULE}:_check_weights",
    lambda: _combined((1, {"weight": 1000})),
    kind="privacy",
    source="clause left out",
)(_entries(_any_weight))


@mutant(
    "zero-weights-accepted",
    "BSA-24",
    "privacy: a buffer in which one update alone has a weight hands this update over",
    f"{_MODULE}:_check_weights",
    lambda: _combined(*((at, {"weight": 0}) for at in (0, 1, 2))),
    also=("BSA-23",),
    kind="privacy",
    source="paper: basecagg, few contributors",
)
def _zeros(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
        filled = [_weighing(parameters, round, entry) for entry in entries]
        right(parameters, round, filled)

    return wrong


def _weighing(parameters: Parameters, round: int, entry: Entry) -> Entry:
    return entry if entry.weight else replace(entry, weight=_allowed(parameters, max(round - entry.stamp, 0))[0])


@mutant(
    "one-contributor-too-few",
    "BSA-24",
    "privacy: T + 1 entries with a weight are enough, so that T colluders in the buffer read one update",
    f"{_MODULE}:_check_weights",
    lambda: _combined(*((at, {"weight": 0}) for at in (1, 2))),
    also=("BSA-23",),
    kind="privacy",
    source="off by one",
)
def _one_too_few(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
        enough = sum(entry.weight > 0 for entry in entries) == parameters.T + 1
        right(parameters, round, [_weighing(parameters, round, entry) if enough else entry for entry in entries])

    return wrong


@mutant(
    "missing-weighted-share-skipped",
    "BSA-25",
    "wrong sums: an entry whose share is not held is left out of the answer",
    f"{_MODULE}:check_buffer",
    lambda: _combined(held=_buffer().params()["held"][1:]),
    kind="acceptance",
    source="silent repair",
)
def _skipped(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> Any:
        known = [entry for entry in entries if entry.user in held]
        return right(parameters, round, entries, held) if len(known) == len(entries) else tuple(known)

    return wrong


@mutant(
    "share-of-another-stamp",
    "BSA-25",
    "wrong sums: the share of another mask of the same user is used",
    f"{_MODULE}:check_buffer",
    lambda: _combined(held=[[user, "3", text] for user, _, text in _buffer().params()["held"]]),
    kind="acceptance",
    source="clause in part",
)
def _other_stamp(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> Any:
        stamps = {entry.user: entry.stamp for entry in entries}
        moved = {user: replace(share, stamp=stamps.get(user, share.stamp)) for user, share in held.items()}
        return right(parameters, round, entries, moved)

    return wrong


# ------------------------------------------------------------------------------------------------------------- answers


@mutant(
    "shares-not-weighted",
    "BSA-27",
    "wrong sums: the shares are added without their weights",
    f"{_MODULE}:combine_shares",
    _combined,
    kind="sum",
    source="wrong term",
)
def _not_weighted(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> UintArray:
        right(parameters, round, entries, held)
        return parameters.field.sum(np.stack([held[entry.user].share for entry in entries]))

    return wrong


@mutant(
    "weight-rounded-by-each-user",
    "BSA-27",
    "no sum: each user rounds the weights for itself, so that the answers lie on no codeword",
    f"{_MODULE}:combine_shares",
    _combined,
    kind="sum",
    source="paper: BAS-BCAST",
)
def _own_weight(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> Any:
        right(parameters, round, entries, held)
        own = [replace(entry, weight=_allowed(parameters, round - entry.stamp)[0]) for entry in entries]
        return right(parameters, round, own, held)

    return wrong


@mutant(
    "all-shares-combined",
    "BSA-27",
    "wrong sums: shares of users outside the buffer are added as well",
    f"{_MODULE}:combine_shares",
    _combined,
    kind="sum",
    source="wrong term",
)
def _all_shares(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry], held: Mapping[int, Held]) -> UintArray:
        inside = {entry.user for entry in entries}
        others = [share.share for user, share in held.items() if user not in inside]
        return parameters.field.sum(np.stack([right(parameters, round, entries, held), *others]))

    return wrong


@mutant(
    "stalest-update-refused",
    "BSA-27",
    "refusal: a buffer with an update of exactly the staleness tau_max is not answered",
    f"{_MODULE}:_check_weights",
    _combined,
    kind="refusal",
    source="off by one",
)
def _stalest(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
        right(parameters, round, entries)
        if parameters.tau_max and any(round - entry.stamp == parameters.tau_max for entry in entries):
            raise InconsistentSets("an update is too old")

    return wrong


@mutant(
    "upper-weight-refused",
    "BSA-27",
    "refusal: only the lower one of two right weights is answered for",
    f"{_MODULE}:_check_weights",
    _combined,
    kind="refusal",
    source="clause too strict",
)
def _upper(right: Function) -> Function:
    def wrong(parameters: Parameters, round: int, entries: Sequence[Entry]) -> None:
        right(parameters, round, entries)
        if any(entry.weight != _allowed(parameters, round - entry.stamp)[0] for entry in entries):
            raise InconsistentSets("a weight is too large")

    return wrong


@mutant(
    "weighted-sum-in-doubles",
    "BSA-27",
    "wrong sums: products are added up in binary64, which holds 53 bits",
    f"{_RING}.weighted_sum",
    lambda: _combined(**_at_level(2**28)),
    kind="sum",
    source="arithmetic: binary64 for integers above 2**53",
)
def _doubles(right: Function) -> Function:
    def wrong(self: Ring, weights: UintArray, rows: Sequence[UintArray]) -> UintArray:
        right(self, weights, rows)
        total = weights.astype(np.float64) @ np.stack(list(rows)).astype(np.float64)
        return np.remainder(total, self.modulus).astype(np.uint64)

    return wrong


@mutant(
    "weighted-sum-in-32-bits",
    "BSA-27",
    "wrong sums: a weight times an element is kept in 32 bits",
    f"{_RING}.weighted_sum",
    _combined,
    also=("BSA-29",),
    kind="sum",
    source="arithmetic: overflow",
)
def _narrow(right: Function) -> Function:
    def wrong(self: Ring, weights: UintArray, rows: Sequence[UintArray]) -> UintArray:
        right(self, weights, rows)
        products = weights.astype(np.uint32)[:, None] * np.stack(list(rows)).astype(np.uint32)
        total: UintArray = np.remainder(products.astype(np.uint64).sum(axis=0), np.uint64(self.modulus))
        return total

    return wrong


# ------------------------------------------------------------------------------------------------------------ recovery


@mutant(
    "recovery-not-weighted",
    "BSA-29",
    "wrong sums: the masked updates are added without their weights",
    f"{_MODULE}:recover",
    _recovered,
    kind="sum",
    source="wrong term",
)
def _plain_sum(right: Function) -> Function:
    def wrong(code: MaskCode, weights: UintArray, masked: Sequence[UintArray], *rest: Any) -> Any:
        right(code, weights, masked, *rest)
        return right(code, np.ones_like(weights), masked, *rest)

    return wrong


@mutant(
    "recovery-weights-turned-round",
    "BSA-29",
    "wrong sums: the weights are given to the masked updates in another order",
    f"{_MODULE}:recover",
    _recovered,
    kind="sum",
    source="order",
)
def _turned(right: Function) -> Function:
    return lambda code, weights, masked, users, shares: right(code, weights[::-1].copy(), masked, users, shares)


@mutant(
    "weighted-answer-made-up",
    "BSA-30",
    "wrong sums: U - 1 answers are enough, and the missing one is zero",
    f"{_MODULE}:recover",
    lambda: _recovered(answers=2),
    kind="acceptance",
    source="off by one",
)
def _made_up(right: Function) -> Function:
    def wrong(code: MaskCode, weights: UintArray, masked: Any, users: Sequence[int], shares: UintArray) -> Any:
        if len(users) != code.U - 1:
            return right(code, weights, masked, users, shares)
        absent = next(user for user in range(code.N) if user not in users)
        padded = np.concatenate([shares, np.zeros((1, shares.shape[1]), dtype=np.uint64)])
        return right(code, weights, masked, [*users, absent], padded)

    return wrong


@mutant(
    "weighted-answers-not-compared",
    "BSA-31",
    "integrity: only the first U answers are used, a wrong one among the others is not seen",
    f"{_MODULE}:recover",
    lambda: _recovered(answers=4),
    kind="acceptance",
    source="clause left out",
)
def _not_compared(right: Function) -> Function:
    def wrong(code: MaskCode, weights: UintArray, masked: Any, users: Sequence[int], shares: UintArray) -> Any:
        return right(code, weights, masked, users[: code.U], shares[: code.U])

    return wrong


@mutant(
    "no-weight-counts-as-one",
    "BSA-32",
    "acceptance: a buffer without any weight moves the model by 0, in silence",
    "secagg_spec.protocols.buffers:weight_sum",
    lambda: _recovered(weights=(0, 0)),
    kind="acceptance",
    source="silent repair",
)
def _no_weight(right: Function) -> Function:
    return lambda weights: right(weights) if weights.any() else 1


def _average(
    change: Callable[[Function, PrimeField, int, UintArray, UintArray], RealArray],
) -> Callable[[Function], Function]:
    """Return what makes another average."""

    def build(right: Function) -> Function:
        def wrong(field: PrimeField, level: int, weights: UintArray, total: UintArray) -> RealArray:
            right(field, level, weights, total)
            return change(right, field, level, weights, total)

        return wrong

    return build


def _averages(name: str, effect: str, *, kind: str, source: str) -> Callable[[Function], Any]:
    """Register a mutant of the average."""

    def register(change: Function) -> Any:
        return mutant(
            name, "BSA-33", effect, "secagg_spec.protocols.buffers:average", _recovered, kind=kind, source=source
        )(_average(change))

    return register


@_averages(
    "average-over-the-number",
    "wrong step: the sum is divided by the number of updates, and not by their weights",
    kind="sum",
    source="wrong term",
)
def _over_number(right: Function, field: PrimeField, level: int, weights: UintArray, total: UintArray) -> Any:
    return right(field, level, np.ones_like(weights), total)


@_averages(
    "average-without-level",
    "wrong step: the average is not divided by the level of the updates",
    kind="sum",
    source="wrong term",
)
def _without_level(right: Function, field: PrimeField, level: int, weights: UintArray, total: UintArray) -> Any:
    return right(field, 1, weights, total)


@_averages(
    "average-divided-twice",
    "wrong step: the sum is divided by the level and then by the weights, and rounded twice",
    kind="sum",
    source="arithmetic: rounded twice",
)
def _divided_twice(right: Function, field: PrimeField, level: int, weights: UintArray, total: UintArray) -> Any:
    return right(field, level, np.ones_like(weights[:1]), total) / np.float64(int(weights.sum()))


@_averages(
    "average-in-binary32",
    "wrong step: the average has the precision of binary32",
    kind="sum",
    source="arithmetic: binary32",
)
def _single(right: Function, field: PrimeField, level: int, weights: UintArray, total: UintArray) -> Any:
    return right(field, level, weights, total).astype(np.float32).astype(np.float64)


@_averages("average-without-sign", "wrong step: negative numbers are taken for large ones", kind="sum", source="sign")
def _without_sign(right: Function, field: PrimeField, level: int, weights: UintArray, total: UintArray) -> Any:
    return total.astype(np.float64) / np.float64(level * int(weights.sum()))
