"""Planted bugs that look right at a glance: most cases are refused or drawn as they must be, and one is not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic import modular, quantizer
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject, pack, unpack
from secagg_spec.conformance.targets import readers, reference
from secagg_spec.crypto import keys, sealing
from secagg_spec.errors import DecryptionFailed, ParameterError, ProtocolError, WeakKey

Function = Callable[..., Any]
_PRIME = "secagg_spec.arithmetic.modular:is_prime"
_CHANNEL = "secagg_spec.crypto.sealing:SealedChannel"
_RESULT = "secagg_spec.conformance.sdk.secagg_adapter:Adapter._result"
_READERS = "secagg_spec.conformance.targets.readers"
_BUILD = "secagg_spec.conformance.targets.reference:build"
_PRIVATE = [bytes([user + 1]) * 32 for user in range(5)]
_PUBLIC = tuple(keys.public_key(private) for private in _PRIVATE)
_NUMBERS = {"q": 32749, "N": 5, "D": 1, "U": 3, "T": 1, "d": 4}


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails, as something that can be compared."""
    try:
        result = call()
    except (ParameterError, ProtocolError, Reject) as error:
        return type(error).__name__
    return result.tolist() if isinstance(result, np.ndarray) else result


def _asked(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> object:
    """Return what the reference's adapter says, without the message of a refusal."""
    answer = reference.build().answer({"id": 1, "op": op, "params": params, **({"rand": rand} if rand else {})})
    return answer["reject"]["code"] if "reject" in answer else answer.get("result", sorted(answer))


def _channel(user: int, public: tuple[bytes, ...] = _PUBLIC, **changes: Any) -> sealing.SealedChannel:
    context = sealing.Context("lightsecagg", keys.hash_parameters(_NUMBERS), bytes(16), 1, 257)
    return sealing.SealedChannel(replace(context, **changes), _PRIVATE[user], keys.Roster(public))


def _opened_after(**changes: Any) -> object:
    """Return what user 1 opens of what user 0 sealed, with changes of the context."""
    return _outcome(lambda: _channel(1).open(0, 1, _channel(0, **changes).close(0, 1, b"a share")))


def _open_request(**sealed: int) -> dict[str, Any]:
    """Return a request for `seal.open`, of a payload that was sealed under other parameters."""
    payload = _channel(0, parameters=keys.hash_parameters({**_NUMBERS, **sealed})).close(0, 1, b"a share")
    session = {"session": "00" * 16, "round": "1", "type": 257, "roster": [key.hex() for key in _PUBLIC]}
    numbers = {**_NUMBERS, "q": str(_NUMBERS["q"])}
    ends = {"sender": 0, "receiver": 1, "private": _PRIVATE[1].hex(), "payload": payload.hex()}
    return {**numbers, **session, **ends}


# ------------------------------------------------------------------------------------------------------- sealing


@mutant(
    "opens-another-protocol",
    "SEA-02",
    "acceptance: a payload of the active profile opens in a round without signatures",
    f"{_CHANNEL}.open",
    lambda: _opened_after(protocol="lightsecagg-active"),
    kind="privacy",
    source="clause in part",
)
def _another_protocol(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, payload: bytes) -> bytes:
        try:
            return right(self, sender, receiver, payload)  # type: ignore[no-any-return]
        except DecryptionFailed:
            context = replace(self.context, protocol="lightsecagg-active")
            return right(replace(self, context=context), sender, receiver, payload)  # type: ignore[no-any-return]

    return wrong


def _opens_for(name: str) -> None:
    @mutant(
        f"opens-for-another-{name}",
        "SEA-02",
        f"acceptance: a payload that was sealed for {name} one larger opens as well",
        _RESULT,
        lambda: _asked("seal.open", _open_request(**{name: _NUMBERS[name] + 1})),
        kind="acceptance",
        source="clause in part",
    )
    def build(right: Function) -> Function:
        def wrong(self: Adapter, request: dict[str, Any]) -> Any:
            try:
                return right(self, request)
            except Reject as refused:
                if request["op"] != "seal.open" or refused.code != "bad_ciphertext":
                    raise
                changed = {**request["params"], name: request["params"][name] + 1}
                return right(self, {**request, "params": changed})

        return wrong


for _name in ("D", "U", "T"):
    _opens_for(_name)


@mutant(
    "weak-key-opens",
    "KEY-01",
    "acceptance: a payload opens under the all-zero secret, which everybody knows",
    f"{_CHANNEL}.open",
    lambda: _outcome(lambda: _channel(1, (bytes(32), *_PUBLIC[1:])).open(0, 1, bytes(20))),
    kind="acceptance",
    source="clause in part",
)
def _weak_opens(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int, payload: bytes) -> bytes:
        try:
            return right(self, sender, receiver, payload)  # type: ignore[no-any-return]
        except WeakKey:
            self._agreed[sender] = bytes(32)
            return right(self, sender, receiver, payload)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "seals-for-itself",
    "SEA-04",
    "acceptance: a user seals for itself, and opens what it sealed",
    f"{_CHANNEL}._check",
    lambda: _outcome(lambda: _channel(0).close(0, 0, b"a share")),
    kind="acceptance",
    source="clause in part",
)
def _for_itself(right: Function) -> Function:
    def wrong(self: sealing.SealedChannel, sender: int, receiver: int) -> None:
        if sender != receiver or not 0 <= sender < len(self.roster.keys):
            right(self, sender, receiver)

    return wrong


@mutant(
    "session-cut-to-length",
    "KEY-02",
    "acceptance: a session id of another length is cut, or filled with zeros, so that two sessions have one key",
    f"{_READERS}:octets",
    lambda: readers.octets("session", "00" * 17).hex(),
    kind="privacy",
    source="silent repair",
)
def _session_cut(right: Function) -> Function:
    return lambda name, text: right(name, text).ljust(16, b"\0")[:16] if name == "session" else right(name, text)


@mutant(
    "round-modulo-2-32",
    "KEY-02",
    "acceptance: a round number is cut to 32 bits, so that two rounds have one key",
    f"{_READERS}:u32",
    lambda: _outcome(lambda: readers.u32("round", str(2**32))),
    kind="privacy",
    source="silent repair",
)
def _round_cut(right: Function) -> Function:
    return lambda name, text: right(name, str(int(text) % 2**32))


# ------------------------------------------------------------------------------------------------------- moduli


@mutant(
    "fermat-test",
    "MOD-02",
    "acceptance: a modulus is held for a prime when it passes Fermat's test to the base 2",
    _PRIME,
    lambda: _outcome(lambda: modular.PrimeField(341).modulus),
    kind="acceptance",
    source="other rule: Fermat's test to one base",
)
def _fermat(right: Function) -> Function:
    return lambda n: n == 2 or (n > 2 and pow(2, n - 1, n) == 1)


@mutant(
    "one-round-of-miller-rabin",
    "MOD-02",
    "acceptance: a modulus is held for a prime when it is a strong pseudoprime to the base 2",
    _PRIME,
    lambda: _outcome(lambda: modular.PrimeField(2047).modulus),
    kind="acceptance",
    source="other rule: one round of the test of Miller and Rabin",
)
def _one_round(right: Function) -> Function:
    def wrong(n: int) -> bool:
        if n < 3 or n % 2 == 0:
            return n == 2
        odd, twos = n - 1, 0
        while odd % 2 == 0:
            odd, twos = odd // 2, twos + 1
        return pow(2, odd, n) == 1 or any(pow(2, odd << power, n) == n - 1 for power in range(twos))

    return wrong


@mutant(
    "small-moduli-unchecked",
    "MOD-02",
    "acceptance: a modulus below 10**6 is not tested",
    _PRIME,
    lambda: _outcome(lambda: modular.PrimeField(9).modulus),
    kind="acceptance",
    source="clause in part",
)
def _unchecked(right: Function) -> Function:
    return lambda n: right(n) or 1 < n < 10**6


# --------------------------------------------------------------------------------------------------- the quantiser


@mutant(
    "first-draw-alone-is-checked",
    "QNT-09",
    "acceptance: only the first draw is held to [0, 1), so that the others move numbers by any amount",
    "secagg_spec.arithmetic.quantizer:quantize",
    lambda: _outcome(
        lambda: quantizer.quantize(
            np.zeros(2), level=1, ring=modular.Ring(101), weight=1, rounding=np.array([0.5, 1.0])
        )
    ),
    kind="acceptance",
    source="clause in part",
)
def _first_draw(right: Function) -> Function:
    def wrong(x: RealArray, *, rounding: RealArray, **given: Any) -> UintArray:
        kept = rounding.copy()
        kept[1:] = np.where((kept[1:] >= 0) & (kept[1:] < 1), kept[1:], 0.5)
        return right(x, rounding=kept, **given)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "level-modulo-2-32",
    "QNT-08",
    "acceptance: a level from 2**33 on is cut to 32 bits, so that the result is off by a factor",
    f"{_READERS}:number",
    lambda: readers.number("level", str(2**33 + 5)),
    kind="acceptance",
    source="silent repair",
)
def _level_cut(right: Function) -> Function:
    def wrong(name: str, text: str) -> int:
        value: int = right(name, text)
        return value % 2**32 if name == "level" and value >= 2**33 else value

    return wrong


# ------------------------------------------------------------------------------------------- noise of its own drawing


def _elements(q: int, seed: str, count: int) -> list[int]:
    """Return elements for a seed; q is small against the 16 bytes of each, so that they are as good as uniform."""
    return [int.from_bytes(hashlib.sha256(f"{seed} {at}".encode()).digest()[:16], "little") % q for at in range(count)]


def _drawing(noise: Callable[[int, int, int, str], list[int]]) -> Callable[[Function], Function]:
    """Return what makes a reference that draws its noise from a seed; `noise` has q, T, L and the seed."""

    def build(right: Function) -> Function:
        def wrong() -> Adapter:
            adapter: Adapter = right()

            @adapter.operation("mds.encode", randomness="seeded")
            def encode(q: str, N: int, U: int, T: int, mask: str, rand: dict[str, str]) -> dict[str, Any]:
                length = -(-len(unpack(mask)) // max(U - T, 1))
                drawn = noise(max(int(q), 1), T, length, rand["seed"])
                return _encode(q=q, N=N, U=U, T=T, mask=mask, rand={"noise": pack(drawn)})

            return adapter

        return wrong

    return build


_encode = reference._refusing(reference.HANDLERS["mds.encode"])
_MASK = {"q": "7", "N": 5, "U": 4, "T": 2, "mask": pack([1, 2, 3, 4])}


def _seeded() -> object:
    return _asked("mds.encode", _MASK, {"seed": "05" * 32})


mutant(
    "noise-of-zeros",
    "MDS-10",
    "privacy: an implementation that draws its own noise takes zeros, so that every share tells of the mask",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: zeros",
)(_drawing(lambda q, T, L, seed: [0] * (T * L)))

mutant(
    "noise-with-a-row-of-zeros",
    "MDS-10",
    "privacy: the last row of the noise that an implementation draws is zero, so that T users learn of the mask",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: a row of zeros",
)(_drawing(lambda q, T, L, seed: _elements(q, seed, (T - 1) * L) + [0] * L))

mutant(
    "noise-repeats",
    "MDS-10",
    "privacy: the rows of noise are one element over and over, so that differences of a share are those of the mask",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: one element over and over",
)(_drawing(lambda q, T, L, seed: [value for value in _elements(q, seed, T) for _ in range(L)]))

mutant(
    "noise-of-one-bit",
    "MDS-10",
    "privacy: the noise is zeros and ones, so that a share has two values for each mask",
    _BUILD,
    _seeded,
    kind="privacy",
    source="weak draw: one bit",
)(_drawing(lambda q, T, L, seed: _elements(2, seed, T * L)))
