"""Adapters that leak and otherwise answer as the text says, as one table of rows (spec/conformance.md, section 5).

Each declares a few operations of the reference, and a generator, a code or draws of its own, so that no check compares
with the text bit for bit. A row spoils the streams behind the masks, or the answer of an operation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.wire import pack, unpack
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference.drawing import mask_and_noise
from secagg_spec.crypto import prg
from secagg_spec.protocols.basa import server as basa_server
from secagg_spec.protocols.basa import user as basa_user
from secagg_spec.protocols.secagg import round as secagg

Function = Callable[..., Any]
Stream = Callable[[UintArray, int], UintArray]
"""Spoils a stream modulo a number."""
Spoilt = Callable[[Function, dict[str, Any]], dict[str, Any]]
"""Answers a request, given the right function and the arguments."""
_BASA, _CELLS, _ENCODE, _SHARE = ("basa.mask", "basa.recover"), ("heterosag.mask",), ("mds.encode",), ("shamir.share",)
_MASK, _USER = ("lightsecagg.mask",), ("lightsecagg.user",)
_CLAUSES = {_BASA[0]: "BAA-26", _CELLS[0]: "HSA-14", _ENCODE[0]: "MDS-10", _SHARE[0]: "SHM-12"}


@dataclass(frozen=True)
class Leaky:
    """One adapter: its name, what leaks, its operations, what it answers, and which check finds it."""

    name: str
    leak: str
    operations: Sequence[str]
    answer: Spoilt
    found: str
    declared: Mapping[str, Any] = field(default_factory=dict)

    @property
    def clause(self) -> str:
        """The clause that it breaks."""
        return _CLAUSES.get(self.operations[0], "LSA-02")

    def build(self, right: Function) -> Function:
        """Return what builds the adapter, from what builds the reference."""

        def built() -> Adapter:
            adapter: Adapter = right()
            kept = {name: adapter._handlers[name] for name in self.operations}
            adapter._handlers = {"echo": adapter._handlers["echo"]}
            adapter.hello["operations"] = {"echo": {}}
            adapter.hello["policy"] = {"prg.stream": "other", "mds.code": "other"}
            if self.operations == _USER:
                adapter.hello["policy"] = {}
            for name, asked in kept.items():
                adapter.operation(name, **self.declared)(lambda asked=asked, **given: self.answer(asked, given))
            return adapter

        return built


# ------------------------------------------------------------------------------------------------- spoilt streams


@contextmanager
def _streams(spoil: Stream) -> Iterator[None]:
    """Let all masks be made of spoilt streams."""
    right, places = prg.stream, (prg, secagg, basa_user, basa_server)

    def stream(key: bytes, ring: Ring, n: int) -> Iterator[UintArray]:
        whole = np.concatenate([np.zeros(0, np.uint32), *(piece.copy() for piece in right(key, ring, n))])
        yield spoil(whole.astype(np.uint64), ring.modulus).astype(np.uint32)

    for place in places:
        vars(place)["stream"] = stream
    try:
        yield
    finally:
        for place in places:
            vars(place)["stream"] = right


def _spoilt(spoil: Stream, where: Callable[[dict[str, Any]], bool] | None = None) -> Any:
    """Return answers with spoilt streams, for the requests of some kind."""

    def answer(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
        if where is not None and not where(given):
            return dict(asked(**given))
        with _streams(spoil):
            return dict(asked(**given))

    return answer


def _at(places: slice) -> Stream:
    """Keep a stream at some places only."""

    def spoil(stream: UintArray, R: int) -> UintArray:
        kept = np.zeros_like(stream)
        kept[places] = stream[places]
        return kept

    return spoil


def _even(stream: UintArray, R: int) -> UintArray:
    return stream & ~np.uint64(1)


def _half_the_bits(stream: UintArray, R: int) -> UintArray:
    return stream & np.uint64(0xFFFF)


def _in_twos(sign: int) -> Stream:
    """Let each second element be the one before, or its negative."""

    def spoil(stream: UintArray, R: int) -> UintArray:
        made = stream.copy()
        made[1::2] = [sign * value % R for value in stream[: stream.size & ~1 : 2].tolist()]
        return made

    return spoil


# ------------------------------------------------------------------------------------- spoilt noise, masks and shares


def _noise(change: Callable[[UintArray], UintArray]) -> Spoilt:
    """Encode with changed noise, an array of T rows."""

    def answer(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
        noise = unpack(given["rand"]["noise"]).astype(np.uint64)
        T, columns = given["T"], -(-len(given["mask"]) // 8 // max(given["U"] - given["T"], 1))
        if T < 1 or noise.size != T * columns or any(noise >= int(given["q"])):
            return dict(asked(**given))
        return dict(asked(**{**given, "rand": {"noise": pack(change(noise.reshape(T, columns).copy()).ravel())}}))

    return answer


_noiseless = _noise(np.zeros_like)


def _late_columns(noise: UintArray) -> UintArray:
    noise[:, 5:] = 0
    return noise


def _third_column(noise: UintArray) -> UintArray:
    noise[:, 2:] = noise[:, :1]
    return noise


def _no_noise_at_five(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
    if given["mask"][:8] == pack(np.array([5], dtype=np.uint64)):
        return _noiseless(asked, given)
    return dict(asked(**given))


def _depends(weights: Mapping[int, int]) -> Spoilt:
    """Let the noise of the last share be a combination of that of others: of six of twelve users, or of any."""

    def answer(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
        right = dict(asked(**given))
        N, T, q = given["N"], given["T"], int(given["q"])
        needed = len(weights) + 1
        if needed > T or (needed > 2 and not (N == 12 and needed == T)):
            return right
        clear = _noiseless(asked, given)["shares"]
        pure = asked(**{**given, "mask": pack(np.zeros(len(given["mask"]) // 8, np.uint64))})["shares"]
        total = unpack(clear[-1]).astype(object)
        for user, weight in weights.items():
            total = total + weight * unpack(pure[user]).astype(object)
        return {"shares": [*right["shares"][:-1], pack((total % q).astype(np.uint64))]}

    return answer


def _edge(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
    right = dict(asked(**given))
    if given["N"] == int(given["q"]) - 1:
        right["shares"] = [*right["shares"][:-1], _noiseless(asked, given)["shares"][-1]]
    return right


def _bare_secret(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
    if given["secret"][:2] == "c7":
        given = {**given, "rand": {"coefficients": "00" * (len(given["rand"]["coefficients"]) // 2)}}
    return dict(asked(**given))


def _clear_from(place: int) -> Spoilt:
    def answer(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
        masked = np.concatenate([unpack(asked(**given)["masked"])[:place], unpack(given["update"])[place:]])
        return {"masked": pack(masked.astype(np.uint64))}

    return answer


def _at_seven(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
    if given["update"][:8] == pack(np.array([7], dtype=np.uint64)):
        mask = unpack(given["rand"]["mask"]).astype(np.uint64)
        mask[:1] = 0
        given = {**given, "rand": {**given["rand"], "mask": pack(mask)}}
    return dict(asked(**given))


def _drawn(change: Callable[[dict[str, UintArray], int], None]) -> Spoilt:
    """Let the adapter draw mask and noise from a seed, and change them."""

    def answer(asked: Function, given: dict[str, Any]) -> dict[str, Any]:
        rand, plain = given["rand"], {name: value for name, value in given.items() if name != "rand"}
        seed = bytes.fromhex(rand["seed"])
        known = plain if "d" in plain else {**plain, "d": len(plain["mask"]) // 8}
        if not 2 <= int(given["q"]) <= MAX_MODULUS:
            return dict(asked(**plain, rand={"mask": "", "noise": ""}))
        drawn = {name: unpack(text).astype(np.uint64) for name, text in mask_and_noise(known, seed).items()}
        change(drawn, int(given["q"]))
        if "d" not in plain:
            T = max(given["T"], 1)
            noise = drawn["noise"].reshape(T, -1) if drawn["noise"].size else drawn["noise"].reshape(T, 0)
            noise[:, 1::2] = 0
            drawn = {"noise": noise.ravel()}
        return dict(asked(**plain, rand={name: pack(values) for name, values in drawn.items()}))

    return answer


def _first_in_clear(drawn: dict[str, UintArray], q: int) -> None:
    drawn["mask"][:1] = 0


def _last_even(drawn: dict[str, UintArray], q: int) -> None:
    drawn["mask"][-1:] &= ~np.uint64(1)


def _sum_in_clear(drawn: dict[str, UintArray], q: int) -> None:
    if drawn["mask"].size:
        drawn["mask"][-1] = -sum(drawn["mask"][:-1].tolist()) % q


def _bare_shares(drawn: dict[str, UintArray], q: int) -> None:
    drawn["noise"][:] = 0


def _as_drawn(drawn: dict[str, UintArray], q: int) -> None:
    """Change nothing."""


# ------------------------------------------------------------------------------------------------------- the table

_SEEDED = {"randomness": "seeded"}
_LARGE = {"ranges": {"q": {"min": str(2**29)}}}
_CELL, _PLACE, _CODE = "privacy/heterosag.mask", "privacy/basa.mask", "privacy/mds.encode"
_DRAWN = "privacy/lightsecagg.user/elements"


def _only(q: int) -> dict[str, Any]:
    return {"ranges": {"q": {"values": [str(q)]}}}


def _last_place(given: dict[str, Any]) -> bool:
    return bool(given["S"] > 0 and given["position"] == given["K"] + given["S"] - 1)


def _odd_round(given: dict[str, Any]) -> bool:
    return int(given["round"]) % 2 == 1 and given["user"] == sum(given["sizes"]) - 1


_ONE_COALITION = {1: 2, 3: 3, 4: 5, 8: 7, 9: 11}

LEAKS: tuple[Leaky, ...] = (
    Leaky("basa-all-but-one-in-clear", "only element 0 is masked", _BASA, _spoilt(_at(slice(0, 1))), _PLACE),
    Leaky(
        "cells-all-but-one-in-clear", "only the last element is masked", _CELLS, _spoilt(_at(slice(-1, None))), _CELL
    ),
    Leaky("drawn-mask-but-for-one", "element 0 of a drawn mask is 0", _USER, _drawn(_first_in_clear), _DRAWN, _SEEDED),
    Leaky("basa-even-masks", "masks are even numbers", _BASA, _spoilt(_even), _PLACE),
    Leaky("cells-even-masks", "masks are even numbers", _CELLS, _spoilt(_even), _CELL),
    Leaky(
        "drawn-mask-with-an-even-end",
        "a drawn mask ends with an even number",
        _USER,
        _drawn(_last_even),
        _DRAWN,
        _SEEDED,
    ),
    Leaky("basa-every-second", "each second element is masked", _BASA, _spoilt(_at(slice(None, None, 2))), _PLACE),
    Leaky("cells-every-second", "each second element is masked", _CELLS, _spoilt(_at(slice(1, None, 2))), _CELL),
    Leaky(
        "drawn-noise-every-second",
        "each second column has noise",
        _ENCODE,
        _drawn(_as_drawn),
        f"{_CODE}/elements",
        _SEEDED,
    ),
    Leaky("basa-neighbours-alike", "two neighbours have one mask", _BASA, _spoilt(_in_twos(1)), _PLACE),
    Leaky("cells-neighbours-opposite", "masks of two neighbours add up to 0", _CELLS, _spoilt(_in_twos(-1)), _CELL),
    Leaky(
        "drawn-mask-of-sum-zero",
        "the elements of a drawn mask add up to 0",
        _USER,
        _drawn(_sum_in_clear),
        _DRAWN,
        _SEEDED,
    ),
    Leaky("no-noise-at-five", "no noise where element 0 is 5", _ENCODE, _no_noise_at_five, _CODE, _only(101)),
    Leaky(
        "no-coefficients-at-one-byte",
        "secrets that begin with 199 are bare",
        _SHARE,
        _bare_secret,
        "privacy/shamir.share",
    ),
    Leaky(
        "no-mask-at-seven",
        "element 0 has no mask where it is 7",
        _USER,
        _at_seven,
        "privacy/lightsecagg.user",
        _only(97),
    ),
    Leaky("third-column-again", "column 2 has the noise of column 0", _ENCODE, _noise(_third_column), _CODE),
    Leaky(
        "clear-from-element-64", "elements from 64 on are in clear", _MASK, _clear_from(64), "privacy/lightsecagg.mask"
    ),
    Leaky("basa-clear-from-element-8", "elements from 8 on are in clear", _BASA, _spoilt(_at(slice(0, 8))), _PLACE),
    Leaky("last-share-at-the-edge", "the last share has no noise where N = q - 1", _ENCODE, _edge, f"{_CODE}/edges"),
    Leaky("cells-odd-rounds", "the last user has even masks in odd rounds", _CELLS, _spoilt(_even, _odd_round), _CELL),
    Leaky("basa-last-position", "the last position has even masks", _BASA[:1], _spoilt(_even, _last_place), _PLACE),
    Leaky(
        "noise-of-two-ends", "the last share has twice the noise of the first", _ENCODE, _depends({0: 2}), _CODE, _LARGE
    ),
    Leaky(
        "noise-of-one-coalition",
        "six of twelve have rank 5",
        _ENCODE,
        _depends(_ONE_COALITION),
        f"{_CODE}/edges",
        _LARGE,
    ),
    Leaky("basa-masks-of-16-bits", "masks have 16 bits", _BASA, _spoilt(_half_the_bits), _PLACE),
    Leaky("cells-masks-of-16-bits", "masks have 16 bits", _CELLS, _spoilt(_half_the_bits), _CELL),
    Leaky("late-columns-bare", "columns from 5 on have no noise", _ENCODE, _noise(_late_columns), f"{_CODE}/edges"),
    Leaky(
        "drawn-shares-bare", "the shares of a drawn mask have no noise", _USER, _drawn(_bare_shares), _DRAWN, _SEEDED
    ),
)
"""Nine kinds of leaks, three adapters of each."""
