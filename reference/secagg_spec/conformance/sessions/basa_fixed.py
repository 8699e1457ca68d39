"""Fully fixed sessions of BASA: the acts are given, and all bytes come from one function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sessions.basa_acts import Act, Director, budget, positions, verifying
from secagg_spec.conformance.sessions.basa_stage import PositionStage
from secagg_spec.conformance.sessions.inputs import SessionInputs
from secagg_spec.protocols.steps import AUTHORITY, SERVER

Take = Callable[[str, int], bytes]
"""Returns the given number of bytes for a name."""

NUMBERS: Mapping[str, Any] = {
    "R": "2147483659",
    "N": 7,
    "T": 1,
    "d": 3,
    "K": 4,
    "S": 1,
    "c_l": "1",
    "c_g": "4",
    "tau_max": 2,
    "kind": "polynomial",
    "numerator": 1,
    "denominator": 1,
    "start": "0",
    "timeouts": "settle",
}
VOID: Mapping[str, Any] = {**NUMBERS, "R": "4294967296", "K": 3, "S": 0, "timeouts": "void"}


def acts(first: int) -> list[Act]:
    """Return the acts of two epochs: one with all kinds of timeouts and all positions used; one that fills early."""
    return [
        Act("open"),
        Act("upload", 0, first),
        Act("free", 1, first),
        Act("late", 2, first - 1),
        Act("upload", 3, first - 2),
        Act("skip", 5, first),
        Act("upload", 4, first - 1),
        Act("close"),
        Act("open"),
        Act("free", 6, first + 1, fetched=False, heard=False),
        Act("upload", 1, first),
        Act("upload", 0, first + 1),
        Act("upload", 6, first + 1),
        Act("upload", 5, first),
        Act("close"),
    ]


def void_acts(first: int) -> list[Act]:
    """Return the acts of three epochs of the profile *void*: one timed out, one abandoned, one that gives a sum."""
    return [
        Act("open"),
        Act("upload", 0, first),
        Act("late", 2, first),
        Act("open"),
        Act("upload", 1, first),
        Act("abandon"),
        Act("open"),
        Act("upload", 3, first + 2),
        Act("upload", 0, first + 1),
        Act("upload", 4, first),
        Act("close"),
    ]


def inputs(take: Take, numbers: Mapping[str, Any], first: int, given: Sequence[Act]) -> SessionInputs:
    """Return the inputs of every party for some acts, with one spare epoch and one spare update for each user."""
    stamps: dict[int, list[int]] = {user: [] for user in range(numbers["N"])}
    for at, act in enumerate(given):
        comes_again = any(act.user == other.user for other in given[at + 1 :])
        if act.kind in ("upload", "late", "denied") or (act.user >= 0 and not comes_again):
            stamps[act.user].append(act.stamp)
    signing = {user: take(f"signing key of user {user}", 32) for user in stamps}
    own = take("signing key of the authority", 32)
    shown = {"verification": [verifying(key).hex() for key in signing.values()]}
    known = {**shown, "authority": verifying(own).hex()}
    setups: dict[int, dict[str, Any]] = {SERVER: known, AUTHORITY: {**shown, "signing": own.hex()}}
    epochs = range(sum(act.kind == "open" for act in given) + 1)
    rands: dict[int, dict[str, Any]] = {AUTHORITY: _keys(take, numbers, epochs)}
    for user, own_stamps in stamps.items():
        ages = [*own_stamps, first]
        rows = [_update(take(f"update {at} of user {user}", 4 * numbers["d"]), numbers) for at in range(len(ages))]
        given_rows = {"updates": [pack(row) for row in rows], "stamps": pack(np.array(ages, np.uint64))}
        setups[user] = {**known, "user": user, "signing": signing[user].hex(), **given_rows}
        rands[user] = _values(take, numbers, user, len(ages))
    return SessionInputs("basa", dict(numbers), take("session", 16), first, setups, rands, {SERVER: first - 1})


def _keys(take: Take, numbers: Mapping[str, Any], epochs: range) -> dict[str, Any]:
    size = 32 * positions(numbers)
    own = epochs if numbers["timeouts"] == "settle" else range(0)
    lists = (("pair_keys", epochs), ("self_keys", own))
    return {name: [take(f"{name} of epoch {at}", size).hex() for at in each] for name, each in lists}


def _values(take: Take, numbers: Mapping[str, Any], user: int, count: int) -> dict[str, Any]:
    sizes = {"seeds": 32 * positions(numbers), "box_keys": 32}
    drawn = {
        name: [take(f"{name} {at} of user {user}", size).hex() for at in range(count)] for name, size in sizes.items()
    }
    words = np.frombuffer(take(f"roundings of user {user}", 8 * count), "<u8")
    return {**drawn, "roundings": pack_reals((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)}


def _update(data: bytes, numbers: Mapping[str, Any]) -> UintArray:
    """Return elements of an update that a buffer can carry."""
    most, R = budget(numbers), int(numbers["R"])
    values = [int.from_bytes(data[at : at + 4], "little") % (2 * most + 1) - most for at in range(0, len(data), 4)]
    return np.array([value % R for value in values], dtype=np.uint64)


def played(take: Take, numbers: Mapping[str, Any], first: int, given: Sequence[Act]) -> Director:
    """Return a session after its acts."""
    director = Director(PositionStage.of(inputs(take, numbers, first, given)))
    director.play(given)
    return director
