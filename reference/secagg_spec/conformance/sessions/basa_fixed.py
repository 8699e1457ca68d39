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
    setups, rands = keyed(
        take,
        numbers,
        {user: take(f"signing key of user {user}", 32) for user in stamps},
        take("signing key of the authority", 32),
        sum(act.kind == "open" for act in given) + 1,
    )
    for user, own in stamps.items():
        ages = [*own, first]
        rows = [_update(take(f"update {at} of user {user}", 4 * numbers["d"]), numbers) for at in range(len(ages))]
        setups[user] |= uploads(rows, ages)
        rands[user] = values(take, numbers, user, len(ages))
        words = np.frombuffer(take(f"roundings of user {user}", 8 * len(ages)), "<u8")
        rands[user]["roundings"] = pack_reals((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)
    return SessionInputs("basa", dict(numbers), take("session", 16), first, setups, rands, {SERVER: first - 1})


Given = dict[int, dict[str, Any]]


def keyed(
    take: Take, numbers: Mapping[str, Any], signing: Mapping[int, bytes], own: bytes, epochs: int
) -> tuple[Given, Given]:
    """Return the setups of all parties without updates, and the keys that the authority takes for some epochs."""
    shown = {"verification": [verifying(key).hex() for key in signing.values()]}
    known = {**shown, "authority": verifying(own).hex()}
    setups: Given = {SERVER: known, AUTHORITY: {**shown, "signing": own.hex()}}
    setups |= {user: {**known, "user": user, "signing": key.hex()} for user, key in signing.items()}
    counts = {"pair_keys": epochs, "self_keys": epochs if numbers["timeouts"] == "settle" else 0}
    size = 32 * positions(numbers)
    keys = {name: [take(f"{name} of epoch {at}", size).hex() for at in range(n)] for name, n in counts.items()}
    return setups, {AUTHORITY: keys}


def uploads(rows: Sequence[UintArray], stamps: Sequence[int]) -> dict[str, Any]:
    """Return updates and their stamps in the form of a setup."""
    return {"updates": [pack(row) for row in rows], "stamps": pack(np.array(stamps, np.uint64))}


def values(take: Take, numbers: Mapping[str, Any], user: int, count: int) -> dict[str, Any]:
    """Return the sampled values of a user for some updates, but its roundings."""
    sizes, each = {"seeds": 32 * positions(numbers), "box_keys": 32}, range(count)
    return {name: [take(f"{name} {at} of user {user}", size).hex() for at in each] for name, size in sizes.items()}


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
