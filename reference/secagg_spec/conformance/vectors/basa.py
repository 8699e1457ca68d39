"""Vectors of BASA, one function at a time: masks, boxes, recovery, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.cases import basa_functions as scenes
from secagg_spec.conformance.cases.basa_schedules import EPOCHS
from secagg_spec.conformance.checks import basa as codes
from secagg_spec.conformance.checks import basa_epochs as epochs
from secagg_spec.conformance.checks.base import BAD_CIPHERTEXT, BAD_RANDOMNESS, MALFORMED, NOT_FINITE
from secagg_spec.conformance.checks.crypto import WEAK_KEY
from secagg_spec.conformance.sessions.basa_positions import MASK, OPEN, RECOVER, SEAL, Box, Buffer, epoch_of, members
from secagg_spec.conformance.vectors.base import (
    BYTE,
    LARGE,
    VectorFile,
    begun,
    drawn,
    drawn_bytes,
    drawn_rounding,
)
from secagg_spec.crypto.boxes import PAIR, SELF, Address
from secagg_spec.protocols.basa.cores import VOID, Parameters

_AES = {"prg.stream": "aes-ctr"}
_SLOWLY = Staleness.polynomial(1)
_FEW = Parameters(R=BYTE, N=7, T=1, d=4, K=4, S=2, c_l=3, c_g=4, tau_max=3, staleness=_SLOWLY)
"""Six positions, with the budget 8."""
_PLAIN = replace(_FEW, N=6, S=0, timeouts=VOID)
_WIDE = replace(_FEW, R=LARGE[2], d=5, c_l=65536, c_g=64)
_HINGED = replace(_FEW, staleness=Staleness.hinge("1/2", 1))


def file() -> VectorFile:
    """Make the vectors of this area."""
    made = begun("basa", "BASA, one function at a time: masks, boxes, recovery, whole epochs.")
    _masked(made)
    _refused_updates(made)
    _refused_masks(made)
    _sealed(made)
    _opened(made)
    _refused_boxes(made)
    _recovered(made)
    _averages(made)
    _refused_recoveries(made)
    _refused_numbers(made)
    _epochs(made)
    _refused_epochs(made)
    return made


# ------------------------------------------------------------------------------------------------------------- masking


def _buffer(
    id: str,
    p: Parameters = _FEW,
    accepted: tuple[int, ...] = (0, 2, 3, 5),
    number: int = 7,
    weights: Sequence[int] = (4, 1, 2, 3),
) -> Buffer:
    """Return the uploads of an epoch, with drawn seeds and updates."""
    data = drawn_bytes(id, "seeds", 32 * p.positions * len(accepted))
    parts = [data[at : at + 32] for at in range(0, len(data), 32)]
    seeds = {k: tuple(parts[at * p.positions : (at + 1) * p.positions]) for at, k in enumerate(accepted)}
    values = drawn(id, "updates", 2 * p.budget + 1, len(accepted), p.d).astype(np.int64) - p.budget
    updates = dict(zip(accepted, (Ring(p.R).encode_signed(row) for row in values), strict=True))
    session = drawn_bytes(id, "session", 16)
    return Buffer(p, session, number, accepted, seeds, dict(zip(accepted, weights, strict=False)), updates)


def _masked(made: VectorFile) -> None:
    for name, p, accepted, k, flags, comment in (
        ("first", _FEW, (0, 2, 3, 5), 0, ["Masked", "Keys"], "position 0 of six: no mask is taken away"),
        ("middle", _FEW, (0, 2, 3, 5), 3, ["Masked", "Keys", "Counted"], "position 3, after 0 and 2"),
        ("last", _FEW, (1, 2, 4, 5), 5, ["Masked", "Counted"], "the last position, after three that do not begin at 0"),
        ("alone", _FEW, (1, 2, 4, 5), 1, ["Masked"], "position 1, after none that was accepted"),
        ("void", _PLAIN, (0, 1, 2, 3), 2, ["Masked", "Keys"], "the profile void, without a self mask"),
        ("void-last", _PLAIN, (0, 1, 2, 3), 3, ["Masked"], "the last position of the profile void"),
        ("wide", _WIDE, (0, 1, 3, 4), 3, ["Masked", "Keys"], f"modulo {LARGE[2]}"),
        ("power", replace(_WIDE, R=2**32), (0, 1, 3, 4), 4, ["Masked"], "modulo 2**32"),
        ("sixteen", replace(_FEW, R=16, K=3, c_g=2, tau_max=1), (0, 1, 4), 1, ["Masked"], "modulo 16"),
        ("hinge", _HINGED, (0, 2, 3, 5), 2, ["Masked"], "a staleness function with all of its numbers"),
    ):
        chosen = _buffer(f"basa-mask-{name}", p, accepted, weights=(2, 1, 2, 2))
        _masks(made, f"basa-mask-{name}", chosen, k, flags, comment)
    for number in (0, 2**32 - 1):
        id = f"basa-mask-epoch-{number}"
        _masks(made, id, _buffer(id, number=number), 2, ["Keys"] if number else ["Masked"], f"epoch {number}")
    id = "basa-mask-bound"
    chosen = _buffer(id, replace(_FEW, d=5))
    ends = np.array([8, BYTE - 8, 0, 1, BYTE - 1], dtype=np.uint64)
    moved = replace(chosen, updates={**chosen.updates, 2: ends})
    _masks(made, id, moved, 2, ["Budget"], "8 and -8, the ends of the budget (257 - 1) // 2 // 16")


def _masks(made: VectorFile, id: str, chosen: Buffer, k: int, flags: Sequence[str], comment: str) -> None:
    clauses = ["BAA-26", "BAA-03"]
    made.valid(id, MASK, chosen.mask_params(k), clauses=clauses, flags=flags, comment=comment, policy=_AES)


def _refused_updates(made: VectorFile) -> None:
    for name, value in (("positive", 9), ("negative", BYTE - 9), ("middle", BYTE // 2), ("weighted", 33)):
        id = f"basa-mask-beyond-{name}"
        chosen = _buffer(id)
        update = chosen.updates[2].copy()
        update[1] = value
        params = chosen.mask_params(2, update=pack(update))
        _not_masked(made, id, params, NOT_FINITE, "BAA-25", "TooLarge", f"an element is {value}, and the budget is 8")
    for size in (3, 5):
        id = f"basa-mask-length-{size}"
        params = _buffer(id).mask_params(2, update=pack(_small(id, size)))
        comment = f"the update has {size} elements, and d is 4"
        _not_masked(made, id, params, codes.UPDATE, "BAA-24", "UpdateLength", comment)
    for name, value in (("modulus", BYTE), ("word", 2**32 - 1)):
        id = f"basa-mask-noncanonical-{name}"
        update = _small(id, 4)
        update[2] = value
        params = _buffer(id).mask_params(2, update=pack(update))
        _not_masked(made, id, params, codes.UPDATE, "BAA-24", "NonCanonical", f"the update holds {value}, and R is 257")


def _small(id: str, n: int) -> UintArray:
    """Draw n elements that fit."""
    return drawn(id, "update", 8, n)


def _not_masked(
    made: VectorFile, id: str, params: dict[str, Any], fitting: frozenset[str], clause: str, flag: str, comment: str
) -> None:
    made.invalid(id, MASK, params, codes=fitting, clauses=[clause], flags=[flag], comment=comment, policy=_AES)


def _refused_masks(made: VectorFile) -> None:
    for name, flag, comment, change in (
        ("outside", "Tidied", "position 6 of six", {"position": 6}),
        ("negative", "Tidied", "position -1", {"position": -1, "accepted": [], "before": []}),
        ("itself", "Tidied", "its own position is among the accepted ones", {"accepted": [0, 3]}),
        ("after", "Tidied", "an accepted position is after it", {"accepted": [0, 4]}),
        ("descending", "Tidied", "the accepted positions descend", {"accepted": [2, 0]}),
        ("twice", "Tidied", "an accepted position stands twice", {"accepted": [2, 2]}),
        ("accepted-negative", "Tidied", "an accepted position is -1", {"accepted": [-1, 2]}),
        ("weight-zero", "Weights", "the weight is 0", {"weight": 0}),
        ("weight-negative", "Weights", "the weight is -1", {"weight": -1}),
        ("weight-above", "Weights", "the weight is 5, and c_g is 4", {"weight": 5}),
    ):
        id = f"basa-mask-{name}"
        _not_masked(made, id, _buffer(id).mask_params(3, **change), codes.ELSEWHERE, "ADP-37", flag, comment)
    for name, flag, comment, at in (
        ("few-before", "Fitted", "one seed for two accepted positions", lambda p: {"before": p["before"][:1]}),
        ("many-before", "Fitted", "three seeds for two", lambda p: {"before": [*p["before"], p["before"][0]]}),
        ("short-before", "Secrets", "a seed of 31 bytes", lambda p: {"before": [p["before"][0], p["before"][1][2:]]}),
        ("few-seeds", "Secrets", "five seeds for six positions", lambda p: {"seeds": p["seeds"][:-64]}),
        ("many-seeds", "Secrets", "seven seeds for six positions", lambda p: {"seeds": p["seeds"] + p["seeds"][:64]}),
        ("cut-seeds", "Secrets", "a byte of the seeds is missing", lambda p: {"seeds": p["seeds"][:-2]}),
        ("short-session", "Secrets", "a session id of 15 bytes", lambda p: {"session": p["session"][:-2]}),
        ("long-session", "Secrets", "a session id of 17 bytes", lambda p: {"session": p["session"] + "07"}),
    ):
        id = f"basa-mask-{name}"
        params = _buffer(id).mask_params(3)
        _not_masked(made, id, {**params, **at(params)}, codes.ELSEWHERE, "ADP-37", flag, comment)
    for name, round in (("epoch-too-large", 2**32), ("epoch-negative", -1)):
        id = f"basa-mask-{name}"
        params = _buffer(id).mask_params(3, round=str(round))
        _not_masked(made, id, params, codes.ELSEWHERE, "ERR-02", "Epochs", f"epoch {round}")


# --------------------------------------------------------------------------------------------------------------- boxes


def _box(id: str, p: Parameters = _FEW, *place: Any, number: int = 7) -> Box:
    """Return a seed with its purpose, sender, and the positions it goes from and to."""
    epoch = epoch_of(p, drawn_bytes(id, "session", 16), number)
    keys = (drawn_bytes(id, name, 32) for name in ("seed", "box_key", "private"))
    return Box(p, Address(epoch, *(place or (PAIR, 5, 1, 4))), *keys)


_PLACES: tuple[tuple[str, Parameters, tuple[Any, ...], str], ...] = (
    ("pair", _FEW, (PAIR, 5, 1, 4), "from user 5 at position 1 to position 4"),
    ("first", _FEW, (PAIR, 0, 0, 1), "from user 0 at position 0 to position 1"),
    ("last", _FEW, (PAIR, 6, 0, 5), "from the first position to the last one"),
    ("self", _FEW, (SELF, 3, 2, 2), "user 3 at position 2 seals the seed of its self mask"),
    ("void", _PLAIN, (PAIR, 4, 2, 3), "the profile void"),
    ("hinge", _HINGED, (SELF, 1, 5, 5), "a staleness function with all of its numbers"),
    ("wide", replace(_WIDE, N=2**31 - 1), (PAIR, 2**31 - 2, 3, 4), "the last user of the largest roster"),
)


def _sealed(made: VectorFile) -> None:
    for name, p, place, comment in _PLACES:
        id = f"basa-seal-{name}"
        _seals(made, id, _box(id, p, *place), comment)
    for number in (0, 2**32 - 1):
        id = f"basa-seal-epoch-{number}"
        _seals(made, id, _box(id, number=number), f"epoch {number}")
    for point, name in ((0, "zero"), (1, "one"), (2**255 - 19, "prime"), (2**255 - 20, "minus-one")):
        id = f"basa-seal-low-order-{name}"
        chosen = _box(id)
        params = chosen.seal_params(public=point.to_bytes(32, "little").hex())
        _not_sealed(made, id, params, chosen, WEAK_KEY, "BAA-06", "LowOrder", "a public key of low order")
    for size in (31, 33):
        id = f"basa-seal-box-key-{size}"
        chosen = _box(id)
        changed = replace(chosen, box_key=drawn_bytes(id, "box_key", 33)[:size])
        comment = f"box_key has {size} bytes"
        _not_sealed(made, id, chosen.seal_params(), changed, codes.ELSEWHERE, "RND-04", "BoxKey", comment)


def _seals(made: VectorFile, id: str, chosen: Box, comment: str) -> None:
    rand = {"box_key": chosen.box_key.hex()}
    made.valid(id, SEAL, chosen.seal_params(), rand, clauses=["BAA-04"], flags=["Boxed"], comment=comment)


def _not_sealed(
    made: VectorFile,
    id: str,
    params: dict[str, Any],
    chosen: Box,
    fitting: frozenset[str],
    clause: str,
    flag: str,
    comment: str,
) -> None:
    rand = {"box_key": chosen.box_key.hex()}
    made.invalid(id, SEAL, params, rand, codes=fitting, clauses=[clause], flags=[flag], comment=comment)


def _opened(made: VectorFile) -> None:
    for name, p, place, comment in _PLACES:
        id = f"basa-open-{name}"
        chosen = _box(id, p, *place)
        params = chosen.open_params(chosen.sealed())
        made.valid(id, OPEN, params, clauses=["BAA-05", "BAA-04"], flags=["Boxed"], comment=comment)
    altered: tuple[tuple[str, str, Callable[[bytes], bytes]], ...] = (
        ("altered-seed", "a bit of the sealed seed is another one", lambda b: b[:40] + bytes([b[40] ^ 4]) + b[41:]),
        ("altered-tag", "the last bit is another one", lambda b: b[:-1] + bytes([b[-1] ^ 128])),
        ("altered-key", "a bit of the sender's public key is another one", lambda b: bytes([b[0] ^ 1]) + b[1:]),
        ("cut", "the last byte is missing", lambda b: b[:-1]),
        ("without-tag", "there is no tag", lambda b: b[:-16]),
        ("longer", "there is one byte more", lambda b: b + b"\x05"),
    )
    for name, comment, change in altered:
        id = f"basa-open-{name}"
        chosen = _box(id)
        _not_opened(made, id, chosen.open_params(change(chosen.sealed())), BAD_CIPHERTEXT, "BAA-05", "Altered", comment)
    for point, name in ((0, "zero"), (1, "one")):
        id = f"basa-open-low-order-{name}"
        chosen = _box(id)
        weak = point.to_bytes(32, "little")
        params = chosen.open_params(scenes.weak_box(chosen, weak))
        _not_opened(made, id, params, BAD_CIPHERTEXT, "BAA-06", "LowOrderBox", "it holds a public key of low order")
    _opened_elsewhere(made)


def _opened_elsewhere(made: VectorFile) -> None:
    for name, changed in (
        ("sender", {"sender": 4}),
        ("source", {"from": 2}),
        ("target", {"to": 5}),
        ("epoch", {"round": "8"}),
        ("session", {"session": drawn_bytes("basa-open-another-session", "another", 16).hex()}),
        ("purpose", {"purpose": SELF, "from": 4}),
        ("modulus", {"R": 251}),
        ("roster", {"N": 8}),
        ("length", {"d": 5}),
        ("collusion", {"T": 2}),
        ("positions", {"K": 3, "S": 3}),
        ("update-level", {"c_l": "4"}),
        ("weight-level", {"c_g": "5"}),
        ("staleness", {"tau_max": 2}),
        ("function", {"numerator": 1, "denominator": 2}),
        ("kind", {"kind": "hinge"}),
        ("start", {"kind": "hinge", "start": "1"}),
    ):
        id = f"basa-open-another-{name}"
        chosen = _box(id)
        params = {**chosen.open_params(chosen.sealed()), **changed}
        comment = f"the box was sealed for something else ({name})"
        _not_opened(made, id, params, BAD_CIPHERTEXT, "BAA-05", "Elsewhere", comment)
    id = "basa-open-another-timeouts"
    chosen = _box(id, replace(_FEW, K=6, S=0))
    params = chosen.open_params(chosen.sealed(), timeouts=VOID)
    comment = "the box was sealed in the other profile"
    _not_opened(made, id, params, BAD_CIPHERTEXT, "BAA-05", "Elsewhere", comment)
    id = "basa-open-another-key"
    chosen = _box(id)
    params = chosen.open_params(chosen.sealed(), private=drawn_bytes(id, "another", 32).hex())
    _not_opened(made, id, params, BAD_CIPHERTEXT, "BAA-05", "Elsewhere", "the box was sealed to another key")


def _not_opened(
    made: VectorFile, id: str, params: dict[str, Any], fitting: frozenset[str], clause: str, flag: str, comment: str
) -> None:
    made.invalid(id, OPEN, params, codes=fitting, clauses=[clause], flags=[flag], comment=comment)


def _refused_boxes(made: VectorFile) -> None:
    for name, flag, comment, changed in (
        ("sender-outside", "Places", "user 7 of seven", {"sender": 7}),
        ("sender-negative", "Places", "user -1", {"sender": -1}),
        ("to-outside", "Places", "position 8 of six, which is 2 modulo 6", {"to": 8}),
        ("from-negative", "Places", "position -6, which is 0 modulo 6", {"from": -6}),
        ("descending", "Places", "from position 4 to 1", {"from": 4, "to": 1}),
        ("pair-of-one", "Purpose", "a pair box from position 4 to itself", {"from": 4}),
        ("self-of-two", "Purpose", "a self box from position 1 to 4", {"purpose": SELF}),
        ("no-purpose", "Purpose", "another purpose", {"purpose": "pairwise-mask"}),
        (
            "void-self",
            "VoidSelf",
            "a self box in the profile void",
            {"K": 6, "S": 0, "timeouts": VOID, "purpose": SELF, "from": 4},
        ),
    ):
        id = f"basa-seal-{name}"
        chosen = _box(id)
        _not_sealed(made, id, chosen.seal_params(**changed), chosen, codes.ELSEWHERE, "ADP-37", flag, comment)
    for name in ("public", "seed", "session"):
        for size in (-1, 1):
            id = f"basa-seal-{name}-{'long' if size > 0 else 'short'}"
            chosen = _box(id)
            text = chosen.seal_params()[name]
            params = chosen.seal_params(**{name: text + "09" if size > 0 else text[:-2]})
            comment = f"{name} is one byte too {'long' if size > 0 else 'short'}"
            _not_sealed(made, id, params, chosen, codes.ELSEWHERE, "ADP-37", "Secrets", comment)
    id = "basa-open-private-long"
    chosen = _box(id)
    params = chosen.open_params(chosen.sealed(), private=chosen.private.hex() + "09")
    _not_opened(made, id, params, codes.ELSEWHERE, "ADP-37", "Secrets", "the private key is one byte too long")


# ------------------------------------------------------------------------------------------------------------ recovery


def _recovery(chosen: Buffer, **changed: Any) -> dict[str, Any]:
    return chosen.recover_params([chosen.masked(k) for k in chosen.accepted], **changed)


def _recovered(made: VectorFile) -> None:
    for name, p, accepted, flags, comment in (
        ("first", _FEW, (0, 1, 2, 3), ["Recovered", "Skipped"], "two positions were not used"),
        ("skipped", _FEW, (0, 2, 3, 5), ["Recovered", "Skipped"], "the positions 1 and 4 were skipped"),
        ("last", _FEW, (2, 3, 4, 5), ["Recovered"], "the first two positions were skipped: no mask to them is left"),
        ("fewest", _FEW, (0, 2, 5), ["Recovered", "Skipped"], "T + 2 updates, and no position is left"),
        ("no-spare", replace(_FEW, S=0), (0, 1, 2, 3), ["Recovered"], "no spare position, and none was skipped"),
        ("void", _PLAIN, (0, 1, 2, 3), ["Recovered"], "the profile void: nothing is left"),
        ("wide", _WIDE, (0, 1, 3, 5), ["Recovered", "Skipped"], f"modulo {LARGE[2]}"),
        ("power", replace(_WIDE, R=2**32), (1, 2, 3, 4), ["Recovered", "Skipped"], "modulo 2**32"),
        ("sixteen", replace(_FEW, R=16, K=3, c_g=2, tau_max=1), (0, 2, 3), ["Recovered"], "modulo 16"),
    ):
        id = f"basa-recover-{name}"
        _recovers(made, id, _buffer(id, p, accepted, weights=(2, 1, 2, 1)), flags, comment)
    id = "basa-recover-any-order"
    chosen = _buffer(id)
    params = _recovery(chosen)
    params["skipped"] = params["skipped"][::-1]
    comment = "the seeds of the skipped masks stand in another order"
    clauses = ["BAA-41", "BAA-43"]
    made.valid(id, RECOVER, params, clauses=clauses, flags=["Skipped"], comment=comment, policy=_AES)


def _recovers(made: VectorFile, id: str, chosen: Buffer, flags: Sequence[str], comment: str) -> None:
    clauses = ["BAA-41", "BAA-43"]
    made.valid(id, RECOVER, _recovery(chosen), clauses=clauses, flags=flags, comment=comment, policy=_AES)


def _averages(made: VectorFile) -> None:
    for name, p, weights, comment in (
        ("weights", _FEW, (4, 1, 2, 3), "3 times 10, and K is 4"),
        ("ones", _FEW, (1, 1, 1, 1), "3 times 4"),
        ("wide", _WIDE, (64, 32, 21, 1), "65536 times 118"),
        ("largest", replace(_WIDE, c_l=2**32, c_g=2**19), (2**19,) * 4, "the divisor is 2**53"),
    ):
        id = f"basa-average-{name}"
        _recovers(made, id, _buffer(id, p, weights=weights), ["Average"], f"the divisor is {comment}")
    id = "basa-average-signs"
    chosen = _buffer(id, replace(_FEW, d=5), weights=(1, 1, 1, 1))
    zeros = {k: np.zeros(5, dtype=np.uint64) for k in chosen.accepted}
    first = np.array([0, 1, 8, BYTE - 8, BYTE - 1], dtype=np.uint64)
    comment = "0, 1, 8, -8 and -1, over 3 times 4"
    _recovers(made, id, replace(chosen, updates={**zeros, 0: first}), ["Average"], comment)


def _refused_recoveries(made: VectorFile) -> None:
    for name, accepted, p, comment in (
        ("too-few", (0, 3), _FEW, "two updates, and T + 2 is 3"),
        ("one", (2,), _FEW, "one update, and T + 2 is 3"),
        ("too-many", (0, 1, 2, 4, 5), _FEW, "five updates, and K is 4"),
        ("void-not-all", (0, 1, 2), _PLAIN, "three of four positions of the profile void"),
    ):
        id = f"basa-recover-{name}"
        params = _recovery(_buffer(id, p, accepted, weights=(2, 1, 2, 1, 3)))
        _not_recovered(made, id, params, "Count", comment)
    for name, flag, comment, change in _WRONG_LISTS:
        id = f"basa-recover-{name}"
        params = _recovery(_buffer(id))
        _not_recovered(made, id, {**params, **change(params)}, flag, comment)


def _put(entries: Sequence[Any], at: int, value: Any) -> list[Any]:
    return [*entries[:at], value, *entries[at + 1 :]]


_WRONG_LISTS: tuple[tuple[str, str, str, Any], ...] = (
    ("weight-zero", "Weights", "a weight is 0", lambda p: {"weights": p["weights"][:24] + "00000000"}),
    ("weight-above", "Weights", "a weight is 5, and c_g is 4", lambda p: {"weights": "05000000" + p["weights"][8:]}),
    ("few-weights", "Fitted", "three weights for four updates", lambda p: {"weights": p["weights"][:24]}),
    ("many-weights", "Fitted", "five weights for four updates", lambda p: {"weights": p["weights"] + "01000000"}),
    ("few-masked", "Fitted", "three masked updates for four positions", lambda p: {"masked": p["masked"][:3]}),
    ("many-masked", "Fitted", "five masked updates for four", lambda p: {"masked": [*p["masked"], p["masked"][1]]}),
    (
        "short-masked",
        "Fitted",
        "a masked update of 3 elements",
        lambda p: {"masked": _put(p["masked"], 2, p["masked"][2][8:])},
    ),
    ("few-own", "Fitted", "three own seeds for four positions", lambda p: {"own": p["own"][:3]}),
    ("many-own", "Fitted", "five own seeds for four positions", lambda p: {"own": [*p["own"], p["own"][1]]}),
    ("short-own", "Secrets", "an own seed of 31 bytes", lambda p: {"own": _put(p["own"], 3, p["own"][3][2:])}),
    (
        "short-skipped",
        "Secrets",
        "a skipped seed of 31 bytes",
        lambda p: {"skipped": _put(p["skipped"], 0, [*p["skipped"][0][:2], p["skipped"][0][2][2:]])},
    ),
    ("few-skipped", "SkippedSeeds", "the last skipped seed is missing", lambda p: {"skipped": p["skipped"][:-1]}),
    ("no-skipped", "SkippedSeeds", "all skipped seeds are missing", lambda p: {"skipped": []}),
    (
        "skipped-twice",
        "SkippedSeeds",
        "a skipped seed stands twice",
        lambda p: {"skipped": [*p["skipped"], p["skipped"][0]]},
    ),
    (
        "skipped-accepted",
        "SkippedSeeds",
        "a seed between two accepted positions",
        lambda p: {"skipped": [*p["skipped"], [0, 2, p["own"][0]]]},
    ),
    (
        "skipped-before",
        "SkippedSeeds",
        "a seed to a position before",
        lambda p: {"skipped": [*p["skipped"], [2, 1, p["own"][0]]]},
    ),
)


def _not_recovered(made: VectorFile, id: str, params: Mapping[str, Any], flag: str, comment: str) -> None:
    clauses = ["ADP-37"]
    made.invalid(
        id, RECOVER, params, codes=codes.ELSEWHERE, clauses=clauses, flags=[flag], comment=comment, policy=_AES
    )


# ------------------------------------------------------------------------------------------------------------- numbers


def _refused_numbers(made: VectorFile) -> None:
    wrong: tuple[tuple[str, str, dict[str, Any], str], ...] = (
        ("small-buffer", "SmallBuffer", {"T": 3}, "K is T + 1"),
        ("void-spares", "Spares", {"timeouts": VOID}, "S is 2 in the profile void"),
        ("more-positions", "Positions", {"N": 5}, "six positions for five users"),
        ("t-zero", "Numbers", {"T": 0}, "T is 0"),
        ("t-negative", "Numbers", {"T": -1}, "T is -1"),
        ("roster", "Numbers", {"N": 2**31}, "N is 2**31"),
        ("tau-negative", "Numbers", {"tau_max": -1}, "tau_max is -1"),
        ("no-profile", "Numbers", {"timeouts": "skip"}, "no profile"),
        ("modulus", "Numbers", {"R": 2**32 + 1}, "R is above 2**32"),
    )
    for name, flag, changed, comment in wrong:
        _not_numbers(made, name, "BAA-01", flag, changed, comment)
    levels: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("cl-zero", {"c_l": "0"}, "c_l is 0"),
        ("cl-large", {"c_l": str(2**32 + 1)}, "c_l is above 2**32"),
        ("cg-zero", {"c_g": "0"}, "c_g is 0"),
        ("cg-vanishing", {"c_g": "3"}, "3 s(3) is 3/4"),
        ("cg-wrapping", {"c_g": "33"}, "4 times 33 is above 128"),
        ("average", {"R": LARGE[2], "c_l": str(2**32), "c_g": str(2**20)}, "c_l K c_g is 2**54"),
    )
    for name, changed, comment in levels:
        _not_numbers(made, name, "BAA-02", "Levels", changed, comment)


def _not_numbers(made: VectorFile, name: str, clause: str, flag: str, changed: Mapping[str, Any], comment: str) -> None:
    id = f"basa-numbers-{name}"
    chosen = _box(id, _FEW, PAIR, 3, 1, 4)
    params = chosen.seal_params(**changed)
    _not_sealed(made, id, params, chosen, codes.ELSEWHERE, clause, flag, comment)


# -------------------------------------------------------------------------------------------------------- whole epochs


_SMALL = Parameters(R=65537, N=7, T=1, d=3, K=3, S=2, c_l=3, c_g=5, tau_max=2, staleness=_SLOWLY)
_STRICT = replace(_SMALL, S=0, timeouts=VOID)
_FEWER = replace(_SMALL, K=4, S=1)
_CLOSE = {"event": "close"}


def _come(user: int, stamp: int = 9, **other: Any) -> dict[str, Any]:
    """Return the event in which a user uploads, with other members if given."""
    return {"event": "upload", "user": user, "stamp": str(stamp), **other}


def _left(user: int, keyed: bool, stamp: int = 9) -> dict[str, Any]:
    return _come(user, stamp, event="expire", keyed=keyed)


def _late(user: int, stamp: int = 9) -> dict[str, Any]:
    return _come(user, stamp, event="late")


_THREE = [_come(4), _come(0, 8), _come(6, 7)]
_SETTLED = ["BAA-16", "BAA-19", "BAA-40", "BAA-41", "BAA-45"]


_SCHEDULES: tuple[tuple[Any, ...], ...] = (
    ("full", _SMALL, [*_THREE, _CLOSE], ["Weighted", "Ended"], "three updates of staleness 0, 1 and 2"),
    ("open", _SMALL, _THREE, ["Ended"], "nobody closes the epoch, so that it has no sum"),
    ("nothing", _SMALL, [], ["Ended"], "the first epoch is opened, and nothing comes"),
    (
        "two",
        _SMALL,
        [*_THREE, _CLOSE, _come(4, 10), _come(1, 9), _come(0, 10), _CLOSE, _come(2, 11)],
        ["Weighted", "Ended"],
        "two epochs, and a third one that is open",
    ),
    (
        "skipped",
        _SMALL,
        [_come(4), _left(5, True), _come(0, 8), _come(6, 7), _CLOSE],
        ["Timeouts"],
        "position 1 is skipped",
    ),
    (
        "freed",
        _SMALL,
        [_come(4), _left(5, False), _come(5), _come(6, 7), _CLOSE],
        ["Timeouts"],
        "position 1 is free again, and the same user comes back",
    ),
    (
        "late",
        _SMALL,
        [_late(5), _come(4), _late(1, 8), _come(0, 8), _come(6, 7), _CLOSE],
        ["Timeouts"],
        "two uploads come late: their positions are skipped",
    ),
    (
        "fewest",
        replace(_SMALL, K=4, S=1),
        [_come(4), _late(5), _left(2, True), _come(0, 8), _come(6, 7), _CLOSE],
        ["Timeouts", "Ended"],
        "T + 2 updates, and no position is left",
    ),
    (
        "void",
        _STRICT,
        [_come(4), _left(5, True), *[_come(u, 10) for u in (4, 0, 5)], _CLOSE],
        ["Void", "Ended"],
        "the first epoch ends with a timeout, without a sum",
    ),
    (
        "void-late",
        _STRICT,
        [_late(4), _come(4, 10), _left(5, False, 10), _come(5, 9), _come(6, 8), _CLOSE],
        ["Ended"],
        "the first epoch ends with a timeout, and the upload comes late",
    ),
)


def _epochs(made: VectorFile) -> None:
    for name, p, schedule, flags, comment in _SCHEDULES:
        id = f"basa-epochs-{name}"
        clauses = [*_SETTLED, "BAA-17" if p.timeouts == VOID else "BAA-23"]
        made.valid(id, EPOCHS, *_request(id, p, schedule), clauses=clauses, flags=flags, comment=comment)


def _request(id: str, p: Parameters, schedule: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    count = sum(isinstance(event, dict) and event["event"] in ("upload", "late") for event in schedule)
    values = drawn(id, "updates", 2 * p.budget + 1, count, p.d).astype(np.int64) - p.budget
    params = {
        **members(p),
        "session": drawn_bytes(id, "session", 16).hex(),
        "round": "9",
        "updates": [pack(Ring(p.R).encode_signed(row)) for row in values],
        "schedule": list(schedule),
    }
    return params, {"roundings": pack_reals(drawn_rounding(id, count))}


_REFUSED: tuple[tuple[Any, ...], ...] = (
    ("again", _SMALL, [_come(4), _come(4)], epochs.NOT_NOW, ["BAA-36", "BAA-10"], "user 4 uploads twice"),
    (
        "after-skip",
        _SMALL,
        [_left(5, True), _come(5)],
        epochs.NOT_NOW,
        ["BAA-36", "BAA-10"],
        "user 5 had a key and comes again",
    ),
    (
        "after-late",
        _SMALL,
        [_late(5), _left(5, False)],
        epochs.NOT_NOW,
        ["BAA-36", "BAA-10"],
        "user 5 was late and comes again",
    ),
    (
        "more-than-k",
        _SMALL,
        [*_THREE, _come(1)],
        epochs.NOT_NOW,
        ["BAA-36"],
        "three updates are accepted, and K is 3",
    ),
    (
        "no-position",
        _FEWER,
        [*_THREE, _left(1, True), _left(2, True), _come(3)],
        epochs.NOT_NOW,
        ["BAA-36"],
        "no position is left",
    ),
    ("two-of-three", _SMALL, [*_THREE[:2], _CLOSE], epochs.FEW, ["BAA-19", "BAA-45"], "two updates, and K is 3"),
    (
        "three-of-four",
        _FEWER,
        [*_THREE, _left(1, True), _CLOSE],
        epochs.FEW,
        ["BAA-19", "BAA-45"],
        "three updates are T + 2, but a position is unused",
    ),
    (
        "too-few",
        _SMALL,
        [*_THREE[:2], *[_left(u, True) for u in (1, 2, 3)], _CLOSE],
        epochs.FEW,
        ["BAA-19", "BAA-45"],
        "no position is left, and two updates are fewer than T + 2",
    ),
    (
        "closed",
        _SMALL,
        [*_THREE, _CLOSE, _CLOSE],
        epochs.FEW,
        ["BAA-19", "BAA-45"],
        "the next epoch is closed before anybody comes",
    ),
    (
        "stale",
        _SMALL,
        [_come(4, 6)],
        epochs.STAMP,
        ["BAA-28", "BAA-49", "BAA-38"],
        "the staleness is 3, and tau_max is 2",
    ),
    ("future", _SMALL, [_come(4, 10)], epochs.STAMP, ["BAA-28", "BAA-49", "BAA-38"], "the stamp 10 in epoch 9"),
    (
        "stale-later",
        _SMALL,
        [*_THREE, _CLOSE, _left(4, True, 7)],
        epochs.STAMP,
        ["BAA-28", "BAA-49"],
        "the stamp 7 in epoch 10",
    ),
)


def _refused_epochs(made: VectorFile) -> None:
    for name, p, schedule, fitting, clauses, comment in _REFUSED:
        id = f"basa-epochs-{name}"
        request = _request(id, p, schedule)
        made.invalid(id, EPOCHS, *request, codes=fitting, clauses=clauses, flags=["Refused"], comment=comment)
    id = "basa-epochs-few-updates"
    params, rand = _request(id, _SMALL, [*_THREE, _CLOSE])
    params["updates"] = params["updates"][:2]
    comment = "two updates for three uploads"
    fitting = BAD_RANDOMNESS | epochs.NOBODY
    made.invalid(id, EPOCHS, params, rand, codes=fitting, clauses=["RND-04"], flags=["TooLittle"], comment=comment)
    for name, event in (
        ("event", {"event": "start", "user": 1, "stamp": "9"}),
        ("keyed", _come(1, event="expire", keyed=1)),
        ("stamp", {"event": "upload", "user": 1, "stamp": 9}),
    ):
        id = f"basa-epochs-wrong-{name}"
        request = _request(id, _SMALL, [event, *_THREE, _CLOSE])
        comment = f"an event that is not of the table ({name})"
        made.invalid(id, EPOCHS, *request, codes=MALFORMED, clauses=["ADP-36"], flags=["Events"], comment=comment)
