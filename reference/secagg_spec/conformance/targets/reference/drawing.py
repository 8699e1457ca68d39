"""The reference as an adapter that draws its own sampled values, from a seed, or has its own generator.

`reference.build` draws nothing. The draws here are correct; a mutant replaces a draw where it is called.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import Any

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.shamir import element_bytes
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.adapter.wire import pack, pack_reals
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, unpack
from secagg_spec.conformance.targets.reference import readers
from secagg_spec.conformance.targets.reference.multi_round import counts
from secagg_spec.crypto.entropy import (
    SeededSource,
    SystemSource,
    draw_below,
    draw_coefficients,
    draw_elements,
    draw_rounding,
)
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.selection import strategies
from secagg_spec.selection.batches import Parameters

__all__ = ["count", "expand", "sha256"]

Sampler = Callable[[dict[str, Any], bytes], dict[str, Any]]
"""Returns the sampled values of a request by name, given its members and a seed."""
Below = Callable[[int], int]
"""Draws a number below a bound."""
Rows = Callable[[int, UintArray], UintArray]
"""Returns rows of elements, given a modulus and the rows that were drawn."""


def seeded(adapter: Adapter, operation: str, sample: Sampler) -> Adapter:
    """Make an adapter draw the sampled values of an operation itself, from a seed."""
    asked = adapter._handlers[operation]

    @adapter.operation(operation, randomness="seeded")
    def answer(rand: Mapping[str, str], **given: Any) -> Any:
        return asked(**given, rand=sample(given, bytes.fromhex(rand["seed"])))

    return adapter


def in_sessions(adapter: Adapter, party: str, sample: Sampler) -> Adapter:
    """Make an adapter offer only sessions of one party, which draws its own values from a seed."""
    adapter.hello["operations"]["session.new"] = {"parties": [party], "randomness": "seeded"}
    adapter.hello["operations"].pop("session.again", None)
    asked = adapter._handlers["session.new"]

    def opened(numbers: dict[str, Any], rand: Mapping[str, str], **given: Any) -> Any:
        return asked(numbers=numbers, **given, rand=sample(numbers, bytes.fromhex(rand["seed"])))

    adapter._handlers["session.new"] = opened
    return adapter


def own_stream(adapter: Adapter, stream: Callable[[bytes, Ring, int], UintArray]) -> Adapter:
    """Make an adapter declare its own generator."""
    adapter.hello["policy"] = {**adapter.hello["policy"], "prg.stream": "other"}
    asked = adapter._handlers["prg.expand"]

    @adapter.operation("prg.expand")
    def answer(q: str, key: str, n: int) -> dict[str, Any]:
        asked(q=q, key=key, n=0 if n >= 0 else n)
        return {"value": pack(stream(bytes.fromhex(key), Ring(int(q)), n))}

    return adapter


def own_choices(adapter: Adapter, sampler: Callable[[Below], Below]) -> Adapter:
    """Make an adapter draw its own choices, the same in each process; `sampler` may spoil the draws."""
    numbers = count()
    pick = sampler(lambda bound: draw_below(SeededSource(next(numbers).to_bytes(8, "little"), "own"), [bound])[0])
    asked = adapter._handlers["select.batch"]

    @adapter.operation("select.batch", randomness="none")
    def answer(**given: Any) -> Any:
        return asked(**{**given, "rand": {"draws": [pick(bound) for bound in _bounds(given)]}})

    return adapter


def own_code(adapter: Adapter, change: Callable[[MaskCode], None]) -> Adapter:
    """Make an adapter declare its own code and offer only encoding; `change` may change the code's matrix."""
    adapter.hello["policy"] = {**adapter.hello["policy"], "mds.code": "other"}
    for name in [name for name in adapter.hello["operations"] if name.startswith(("mds.", "lightsecagg", "basec"))]:
        adapter.hello["operations"].pop(name)
    asked = adapter._handlers["mds.encode"]

    @adapter.operation("mds.encode")
    def answer(q: str, N: int, U: int, T: int, mask: str, rand: Mapping[str, str]) -> Any:
        asked(q=q, N=N, U=U, T=T, mask=mask, rand=rand)
        code = MaskCode(readers.field(q), N, U, T)
        change(code)
        vector = readers.vector("mask", mask)
        noise = readers.shaped("noise", rand["noise"], T, code.share_length(vector.size))
        return {"shares": [pack(share) for share in code.encode(vector, noise)]}

    return adapter


def own_sharing(adapter: Adapter, share: Callable[[int, int], list[int]]) -> Adapter:
    """Make an adapter declare its own secret sharing among four users: numbers whose sum is the secret modulo 2**256.

    `share` returns the numbers, given the secret and their count; they are encoded as decimal digits.
    """
    adapter.hello["policy"] = {**adapter.hello["policy"], "shamir.field": "other"}
    four: dict[str, Any] = {"t": {"values": [4]}}
    form = adapter._handlers["shamir.share"], adapter._handlers["shamir.reconstruct"]

    @adapter.operation("shamir.share", randomness="none", ranges={**four, "n": {"values": [4]}})
    def shared(t: int, n: int, secret: str, rand: Any) -> dict[str, Any]:
        form[0](t=t, n=n, secret=secret, rand=coefficients({"t": t}, b""))
        numbers = share(int.from_bytes(bytes.fromhex(secret), "little"), n)
        return {"shares": [str(number).encode().hex() for number in numbers]}

    @adapter.operation("shamir.reconstruct", ranges=four)
    def reconstruct(t: int, users: list[int], shares: list[str]) -> dict[str, Any]:
        form[1](t=t, users=users, shares=[bytes(66).hex()] * len(shares))
        number = sum(int(bytes.fromhex(text)) for text in shares) % 2**256
        return {"secret": number.to_bytes(32, "little").hex()}

    return adapter


def signed(size: int) -> int:
    """Draw a signed number of `size` bytes from the system."""
    return int.from_bytes(SystemSource().take(size), "little", signed=True)


def elements(seed: bytes, q: int, shape: tuple[int, ...], label: str = "elements") -> UintArray:
    """Draw uniform elements; if no request may have the modulus, it is refused later."""
    return draw_elements(SeededSource(seed, label), Ring(_modulus(q)), shape)


def _modulus(q: int) -> int:
    """Return the modulus, or the nearest one that a request may have."""
    return min(max(q, 2), MAX_MODULUS)


def noise(given: Mapping[str, Any], seed: bytes, rows: Rows = lambda q, drawn: drawn) -> dict[str, Any]:
    """Draw the noise for encoding a mask; `rows` may change it."""
    q, d = _modulus(int(given["q"])), given["d"] if "d" in given else len(unpack(given["mask"]))
    shape = max(int(given["T"]), 0), -(-max(d, 0) // max(int(given["U"]) - int(given["T"]), 1))
    return {"noise": pack(rows(q, elements(seed, q, shape, "noise")).ravel())}


def mask_and_noise(given: Mapping[str, Any], seed: bytes, rows: Rows = lambda q, drawn: drawn) -> dict[str, Any]:
    """Draw the random values of a user that encodes its mask; `rows` may change the noise."""
    drawn = {"mask": pack(elements(seed, int(given["q"]), (max(given["d"], 0),), "mask")), **noise(given, seed, rows)}
    return {f"{name}s": [text] for name, text in drawn.items()} if "K" in given else drawn


def coefficients(given: Mapping[str, Any], seed: bytes) -> dict[str, Any]:
    """Draw the coefficients for sharing a secret."""
    count = min(max(given["t"], 1), 2**16) - 1
    drawn = draw_coefficients(SeededSource(seed, "coefficients"), count)
    return {"coefficients": b"".join(map(element_bytes, drawn)).hex()}


def rounding(
    given: Mapping[str, Any], seed: bytes, change: Callable[[RealArray], RealArray] = lambda drawn: drawn
) -> dict[str, Any]:
    """Draw roundings for one vector, several vectors, or one number; `change` may change each vector of them."""
    x, source = given.get("x", bytes(8).hex()), SeededSource(seed, "rounding")
    drawn = [pack_reals(change(draw_rounding(source, len(row) // 16))) for row in ([x] if isinstance(x, str) else x)]
    return {"rounding": drawn[0] if isinstance(x, str) else drawn}


def secrets(given: Mapping[str, Any], seed: bytes) -> dict[str, Any]:
    """Draw the keys, the self seed and the polynomials of a user of SecAgg."""
    source = SeededSource(seed, "secrets")
    keys = {name: source.take(32).hex() for name in ("sealing_key", "masking_key", "self_seed")}
    names = ("key_coefficients", "seed_coefficients")
    return {**keys, **{name: coefficients(given, name.encode() + seed)["coefficients"] for name in names}}


def positioned(given: Mapping[str, Any], seed: bytes) -> dict[str, Any]:
    """Draw the random values of a user or the authority of BASA for some epochs."""
    size, epochs = 32 * min(max(given["K"] + given["S"], 0), 2**8), range(4)
    names = {"seeds": size, "box_keys": 32} if "stamps" in given else {"pair_keys": size, "self_keys": size}
    sources = {name: SeededSource(seed, name) for name in names}
    drawn: dict[str, Any] = {name: [sources[name].take(names[name]).hex() for _ in epochs] for name in names}
    if "stamps" in given:
        return {**drawn, "roundings": pack_reals(draw_rounding(SeededSource(seed, "roundings"), len(epochs)))}
    return {**drawn, "self_keys": [] if given["timeouts"] == "void" else drawn["self_keys"]}


def draws(given: Mapping[str, Any], seed: bytes) -> dict[str, Any]:
    """Draw the values that a strategy takes; empty if the strategy must be refused."""
    return {"draws": list(draw_below(SeededSource(seed, "draws"), _bounds(given)))}


def _bounds(given: Mapping[str, Any]) -> Sequence[int]:
    """Return the bounds of the draws of a choice; empty if the choice must be refused."""
    here = np.zeros(max(given["N"], 0), dtype=np.bool_)
    try:
        here[given["available"]] = True
        asked = Parameters(given["N"], given["K"], given["T"]), given["strategy"], counts(given["frequencies"]), here
        return strategies.ranges(*asked) or ()
    except (ParameterError, ProtocolError, IndexError):
        return ()


def folded(seed: bytes) -> bytes:
    """Return the sum of the words of a seed modulo 2**32."""
    total = int(np.frombuffer(seed, "<u4").sum(dtype=np.uint64))
    return (total & 2**32 - 1).to_bytes(4, "little")
