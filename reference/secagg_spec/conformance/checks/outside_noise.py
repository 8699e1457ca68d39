"""Checks of the masks and the noise of coded shares that an implementation draws itself, by counts (CNF-31).

=======================  ================================================================================
notation                 here
=======================  ================================================================================
x, y in F_q              two elements that must be uniform and independent: a `Pair` of streams
y, and x + a y           what is counted, for every a in F_q, or the a of smallest size when q is large
U rows of L elements     what one deal draws: the mask, U - T rows, and the noise, T rows
T + (U - T) known        what the rows are solved from: shares of T users, and the mask, by the upload
=======================  ================================================================================

With a code other than the text's, the shares of T users stand for its noise: they are uniform too (MDS-10).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter import capabilities
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import lightsecagg_parties, strategies
from secagg_spec.conformance.cases.lightsecagg_active_parties import Signing
from secagg_spec.conformance.cases.requests import vandermonde
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check
from secagg_spec.conformance.checks.counting import demand_shares, visible
from secagg_spec.conformance.checks.outside_chance import own_draws
from secagg_spec.conformance.checks.playing import FREE, NEW, SESSIONS, STEP
from secagg_spec.conformance.checks.scripts import ask, taken
from secagg_spec.conformance.outside import seeds
from secagg_spec.conformance.sessions.session import written
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.conformance.targets.reference.scripts import Call
from secagg_spec.conformance.targets.reference.sessions import PROTOCOLS
from secagg_spec.crypto.sealing import SealedChannel
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.basecagg.round import ModelStamp
from secagg_spec.protocols.codec import Message, vector_from_bytes
from secagg_spec.protocols.lightsecagg.round import MaskShare
from secagg_spec.protocols.steps import SERVER, Role

_ENCODE = "mds.encode"
_REQUESTS, _COLUMNS = 4, 4096
"""How often each modulus is asked for, and the number of columns of an answer."""
_WINDOW = range(97, 258)
"""Moduli whose residues are all counted: enough that wrong sums are rare, few enough that each residue is frequent."""
_RESIDUES, _CELLS, _STEPS = 2**9, 64, 16
"""Up to this modulus residues are counted, with every a; above it, as many equal parts of [0, q), with |a| <= 16."""
_ANY = (_WINDOW[0], 2**32 - 5)
"""The moduli when none are declared."""
_SHARES = 6
"""How many shares of a code other than the text's are inspected."""

Element = tuple[str, UintArray]
Pair = tuple[Element, Element]
Rows = tuple[Sequence[str], UintArray]
"""The names of rows, and the rows themselves."""
Dealt = Callable[[Caller, Mapping[str, int], int], Rows]
"""Lets an implementation deal once with these numbers and the seed of this number. Returns what must be uniform."""


def pairs(names: Sequence[str], streams: UintArray) -> Iterator[Pair]:
    """Yield the pairs of elements that must be independent, from streams of the shape (deals, rows, columns)."""
    for row, name in enumerate(names):
        one = streams[:, row]
        yield (f"{name} in the next column", one[:, 1:]), (name, one[:, :-1])
        yield (f"{name} in the next deal", one[1:]), (name, one[:-1])
    for first, second in combinations(range(len(names)), 2):
        yield (names[second], streams[:, second]), (names[first], streams[:, first])


def demand_uniform(call: Caller, what: str, q: int, names: Sequence[str], streams: UintArray) -> None:
    """Fail when elements, or a linear relation of two of them, are not as frequent as uniform ones."""
    steps = range(q) if q <= _RESIDUES else range(-_STEPS, _STEPS + 1)
    found = list(pairs(names, streams))
    together = len(found) * len(steps)
    for (second, y), (first, x) in found:
        for a in steps:
            values = (x.astype(np.int64) + a * y.astype(np.int64)) % q
            relation = first if a == 0 else f"{first} + {a} times {second}"
            _demand_shares(f"{what}, modulo {q}: {relation}", q, values.ravel(), together)
    cells = min(q, _CELLS) if q > _RESIDUES else q
    often = visible(streams[:, 0].size, 1 / cells, cells * together)
    what, n = ("residue", streams[:, 0].size) if q <= _RESIDUES else ("part of [0, q)", streams[:, 0].size)
    call.limits.append(
        f"modulo {q} each {what} comes as often as it should among {n} elements of each row, and among sums x + a y of "
        f"two elements; what comes less than {often:.1f} times too often may pass; false alarm at most 2**-60"
    )


def _demand_shares(what: str, q: int, values: Any, together: int) -> None:
    """Fail when residues, or parts of [0, q), are too frequent or too rare."""
    if q <= _RESIDUES:
        demand_shares(np.bincount(values, minlength=q), 1 / q, f"{what} is {{}}, which", together=together)
        return
    ends = np.array([-(-at * q // _CELLS) for at in range(_CELLS + 1)])
    counts = np.bincount(values * _CELLS // q, minlength=_CELLS)
    why = f"{what} is in part {{}} of {_CELLS} parts of [0, q), which"
    demand_shares(counts, np.diff(ends) / q, why, together=together)


def _demand(call: Caller, what: str, numbers: Mapping[str, int], moduli: Sequence[int], dealt: Dealt) -> None:
    """Fail when the rows of several deals are not uniform and independent modulo some of the moduli."""
    call.by_relation = True
    for q in moduli:
        rows = [dealt(call, {**numbers, "q": q}, at) for at in range(_REQUESTS)]
        demand_uniform(call, what, q, rows[0][0], np.stack([values for _, values in rows]))
        call.transcript.clear()


def _numbers(caps: Capabilities, operation: str) -> dict[str, int]:
    """Return the smallest declared numbers of users, with at least two colluders if that is declared."""
    space = strategies.Space(caps, (operation,))
    users = ((N, T) for N in space.rosters() for T in space.colluders(N))
    known = list(islice(space.sets() or ({"N": N, "T": T, "D": space.tolerated(N, T)[0]} for N, T in users), 200))
    chosen = dict(next((one for one in known if one["T"] > 1), known[0]))
    if "U" not in chosen:
        chosen["U"] = space.thresholds(chosen["N"], chosen["T"], chosen.get("D", 0))[0]
    return {"D": 0, **chosen}


def _moduli(caps: Capabilities, operation: str, above: int) -> list[int]:
    """Return a declared modulus in the window, or the nearest one to it, and the largest declared modulus."""
    declared = strategies.Space(caps, (operation,)).moduli(prime=True, above=above)
    near = min(declared, key=lambda q: (max(_WINDOW[0] - q, q - _WINDOW[-1], 0), q))
    return sorted({near, max(declared)})


def _rows(caps: Capabilities, code: Mapping[str, int], mask: UintArray, held: Mapping[int, UintArray]) -> Rows:
    """Return the noise rows, solved from the shares of T users.

    For a code other than the text's, return some shares.
    """
    N, U, T = (code[name] for name in ("N", "U", "T"))
    if not vandermonde(caps):
        users = sorted(held)[: _SHARES if T > 1 else 1]
        return [f"the share of user {user}" for user in users], np.stack([held[user] for user in users])
    made = MaskCode(PrimeField(code["q"]), N, U, T)
    users = sorted(held)[:T]
    known = np.ascontiguousarray(made.columns[: U - T, users].T)
    left = made.field.subtract(np.stack([held[user] for user in users]), made.field.matmul(known, made.sub_masks(mask)))
    noise = made.field.solve(np.ascontiguousarray(made.columns[U - T :, users].T), left)
    return [f"noise row {row}" for row in range(T)], noise


def _encoded(call: Caller, code: Mapping[str, int], at: int) -> Rows:
    """Encode zeros, and return the noise."""
    mask = np.zeros(_COLUMNS * (code["U"] - code["T"]), dtype=np.uint64)
    params = {**{name: code[name] for name in ("q", "N", "U", "T")}, "mask": pack(mask)}
    shares = call.listed(_ENCODE, params, "shares", code["N"], _rand(call, _ENCODE, at))
    read = {user: call.read(_ENCODE, shares[user], f"shares[{user}]", _COLUMNS, code["q"]) for user in range(code["N"])}
    return _rows(call.caps, code, mask, read)


def _rand(call: Caller, operation: str, at: int) -> dict[str, str] | None:
    seeded = call.caps.grade(operation) == "seeded"
    return {"seed": seeds.numbered(f"{operation} noise", at).hex()} if seeded else None


@check("privacy/mds.encode/uniform", "MDS-10", applies=own_draws(_ENCODE), examples=1)
def encoding(draw: Any, call: Caller) -> None:
    """The noise that an implementation draws is uniform, each row alone and with any other one."""
    numbers = _numbers(call.caps, _ENCODE)
    _demand(call, _ENCODE, numbers, _moduli(call.caps, _ENCODE, numbers["N"]), _encoded)


_SESSION = bytes(16)
_PLAIN = {"channel": "plain"}
_FREE = {"N": 4, "D": 0, "U": 3, "T": 2}
"""The numbers when no ranges are declared."""
_WEIGHED = {"K": 4, "c_l": "1", "c_g": "1", "tau_max": 0}
_WEIGHED |= {"kind": "constant", "numerator": 0, "denominator": 1, "start": "0"}


@dataclass(frozen=True)
class Dealer:
    """The user of a protocol that deals shares of its masks: its numbers, its setup, and how its shares are opened."""

    protocol: str
    code: Mapping[str, int]

    @property
    def numbers(self) -> dict[str, Any]:
        """The parameters as a request holds them."""
        more: dict[str, Any] = {"W": self.code["N"] - self.code["D"]} if self._active else {}
        more |= _WEIGHED if self._buffered else {}
        return {**self.code, "q": str(self.code["q"]), "d": _COLUMNS * (self.code["U"] - self.code["T"]), **more}

    @property
    def setup(self) -> dict[str, Any]:
        """The setup of user 0."""
        zeros = pack(np.zeros(self.numbers["d"], dtype=np.uint64))
        update = {"updates": [zeros]} if self._buffered else {"update": zeros}
        return {"user": 0, **update, **(self._keys_of(0) if self._active else _PLAIN)}

    def _keys_of(self, user: int) -> dict[str, Any]:
        return {"private": self.keys[user].hex(), "signing": self.keys[user].hex(), **self._signing.shown()}

    @property
    def steps(self) -> list[Call]:
        """Its steps up to its masked update."""
        stamp = ModelStamp(_SESSION, 0, SERVER, 0)
        if self._buffered:
            return [Call.of("request", []), Call.of("share", [stamp]), Call.of("upload", [])]
        return [Call.of("share", []), Call.of("upload", [])]

    def opened(self, message: Message) -> UintArray:
        """Return the share in a message."""
        payload = message.payload  # type: ignore[attr-defined]
        if self._active and self._buffered:
            setup = {**self.setup, "user": message.receiver, **self._keys_of(message.receiver)}
            empty: dict[str, Any] = {"masks": [], "noises": []}
            other = PROTOCOLS[self.protocol].open(Role.USER, self.numbers, _SESSION, 0, setup, empty)
            channel = other.state.base.channel
            payload = channel.open(message.round, 0, message.receiver, payload)
        elif self._active:
            context, roster = self._signing.context(MaskShare), self._signing.roster.sealing
            payload = SealedChannel(context, self.keys[message.receiver], roster).open(0, message.receiver, payload)
        return vector_from_bytes(payload)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """A private key for each user."""
        return tuple(lightsecagg_parties.key_of(user, 1) for user in range(self.code["N"]))

    @property
    def _signing(self) -> Signing:
        agreed = lightsecagg_parties.Agreed({**self.numbers, "q": self.code["q"]}, _SESSION, 0)
        return Signing(agreed, self.keys, self.keys)

    @property
    def _active(self) -> bool:
        return self.protocol.endswith("-active")

    @property
    def _buffered(self) -> bool:
        return self.protocol.startswith("basecagg")


def _sent(asked: Caller, dealer: Dealer, operation: str, at: int) -> list[str]:
    """Let a user take its steps, in a script or in a session, and return everything that it sends."""
    rand, agreed = _rand(asked, operation, at), {"session": _SESSION.hex(), "round": "0"}
    if operation != NEW:
        params = {**dealer.numbers, **agreed, **dealer.setup, "steps": written(dealer.steps)}
        entries = ask(asked, operation, params, rand)
        phases = [step.phase for step in dealer.steps]
        return [text for entry, phase in zip(entries, phases, strict=True) for text in taken(operation, entry, phase)]
    handle, texts = {"handle": f"dealer {at}"}, list[str]()
    who = {"protocol": dealer.protocol, "role": "user", "numbers": dealer.numbers, **agreed, "setup": dealer.setup}
    asked.result(NEW, {**handle, **who}, rand)
    for step in written(dealer.steps):
        texts += taken(STEP, asked.result(STEP, {**handle, **step}), step["phase"])
    asked.result(FREE, handle)
    return texts


def _played(protocol: str, operation: str) -> Dealt:
    """Return a function that lets a user of a protocol deal. Its mask and its noise must be uniform."""

    def dealt(asked: Caller, code: Mapping[str, int], at: int) -> Rows:
        dealer = Dealer(protocol, code)
        q, N, parts = code["q"], code["N"], code["U"] - code["T"]
        try:
            sent = [parse(bytes.fromhex(text)) for text in _sent(asked, dealer, operation, at)]
            masked = [np.asarray(message.masked, dtype=np.uint64) for message in sent if hasattr(message, "masked")]
            held = {message.receiver: dealer.opened(message) for message in sent if hasattr(message, "payload")}
        except (ValueError, IndexError, ParameterError, ProtocolError) as error:
            raise CheckFailed("wrong_value", f"{operation}: what user 0 sends cannot be read: {error}") from None
        vectors = [*masked, *held.values()]
        sizes = [vector.size for vector in vectors]
        if sizes != [parts * _COLUMNS] + [_COLUMNS] * (N - 1) or max(int(v.max()) for v in vectors) >= q:
            message = f"{operation}: user 0 must send a share to each other, and a masked update"
            raise CheckFailed("wrong_value", message)
        names, rows = _rows(asked.caps, code, masked[0], held)
        mask = masked[0].reshape(parts, _COLUMNS)
        return [*(f"mask row {row}" for row in range(parts)), *names], np.concatenate([mask, rows])

    return dealt


def _register(protocol: str, *clauses: str) -> None:
    """Register the checks of what the user of a protocol draws, in scripts and in sessions."""
    party, script = f"{protocol}.user", f"{protocol.replace('-', '_')}.user"
    ranged = "q" in capabilities.ranged(script)

    @check(f"privacy/{script}/uniform", *clauses, applies=own_draws(script), examples=1)
    def scripted(draw: Any, call: Caller) -> None:
        """The mask and the noise that a user draws are uniform, each row alone and with any other one."""
        numbers = _numbers(call.caps, script) if ranged else _FREE
        moduli = _moduli(call.caps, script, numbers["N"]) if ranged else _ANY
        _demand(call, script, numbers, moduli, _played(protocol, script))

    @check(
        f"privacy/{NEW}/{party}",
        *clauses,
        operations=SESSIONS,
        applies=lambda caps: party in caps.parties and own_draws(NEW)(caps),
        examples=1,
    )
    def in_session(draw: Any, call: Caller) -> None:
        """The mask and the noise that a user draws in a session are uniform, each row alone and with any other one."""
        _demand(call, party, _FREE, _ANY, _played(protocol, NEW))


_register("lightsecagg", "MDS-10", "LSA-02")
_register("lightsecagg-active", "MDS-10", "LSA-02")
_register("basecagg", "MDS-10", "BSA-04")
_register("basecagg-active", "MDS-10", "BSA-04")
