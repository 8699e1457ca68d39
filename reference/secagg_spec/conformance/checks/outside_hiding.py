"""Checks of what is hidden, if no exact bytes are demanded: by comparing two secrets, and by relations with drawn ones.

Each check asks about the least and the greatest secret in a drawn order, and then about drawn secrets. For the allowed
difference between the answers and the false-alarm rate, see `outside.contrast` (CNF-59, CNF-60).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import shake_256
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.requests import own_field, shares_length
from secagg_spec.conformance.cases.valid import secret_length
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Condition, Exchange, check, octets
from secagg_spec.conformance.checks.outside_chance import light_user, own_draws, smallest_code
from secagg_spec.conformance.checks.privacy import encoding, not_given
from secagg_spec.conformance.checks.scripts import ask, sent
from secagg_spec.conformance.checks.shamir import not_exact
from secagg_spec.conformance.outside import contrast, seeds
from secagg_spec.crypto.entropy import SeededSource, draw_coefficients
from secagg_spec.protocols.lightsecagg.round import MaskedUpdate, MaskShare

_SEAL, _SHARE, _ENCODE, _LIGHT = "pair.seal", "shamir.share", "mds.encode", "lightsecagg.user"
_EACH = 128
"""The minimum number of answers about each of the two secrets."""
_FEW = 8
"""The cases of a run below which a first look, where there is one, is the only one."""
_WIDEST = 4096
"""The most bits, of the view and of the secret together, in which relations are searched."""
_PHASES, _COUNT = ("share", "upload"), 4
"""The steps of a user that are judged, and the length of the count of elements at the start of a share."""
_PLAINTEXTS = (40, 1100)
"""The lengths of the plaintexts in bytes: more than two blocks of 16, and more than a kibibyte."""


@dataclass(frozen=True)
class Hidden:
    """A view of a secret of `coins` bits or elements, each at its least or at its greatest value.

    `seen` takes coins and a seed, and returns the parts that `names` names. The parts `together` are the view of a
    coalition that must learn nothing; without them, relations between bits are not looked for. If they are uniform
    modulo `field`, `numbers` reads them as its elements. After `look` answers there is a first look at differences, for
    rounds that take long. A check with several such looks says in `looks` how many: the stated rate is that of all.
    `apart` says what a difference tells apart.
    """

    operation: str
    coins: int
    names: Sequence[str]
    seen: Callable[[Sequence[bool], int], Sequence[bytes]]
    together: Sequence[int]
    field: int = 0
    numbers: Callable[[Sequence[bytes]], Sequence[int]] = lambda parts: []
    look: int = 0
    looks: int = 1
    apart: str = "the greatest secret from the least"


_Build = Callable[[Any, Caller], Iterable[Hidden]]


class _Asked:
    """The questions of one check, each with its own seed. The transcript keeps the two last answers."""

    def __init__(self, call: Caller, hidden: Hidden, seed: int) -> None:
        self._call, self._hidden, self._label, self._at = call, hidden, f"{hidden.operation} {seed}", 0
        self._kept: dict[bool, list[Exchange]] = {}
        call.by_relation = True

    def parts(self, coins: Sequence[bool]) -> Sequence[bytes]:
        """Ask about the secret that coins choose."""
        self._call.transcript.clear()
        self._at += 1
        parts = self._hidden.seen(coins, int.from_bytes(seeds.numbered(self._label, self._at), "little"))
        self._kept[bool(coins[0])] = list(self._call.transcript)
        return parts

    def coins(self, what: str, n: int) -> contrast.Bits:
        """Return n coins that follow from the seed of the check."""
        data = shake_256(f"{what} {self._label}".encode()).digest(-(-n // 8))
        bits: contrast.Bits = contrast.bits_of([data], len(data))[0][:n]
        return bits

    def order(self, n: int) -> list[bool]:
        """Return n times False and n times True, in an order that follows from the seed of the check."""
        places = sorted(range(2 * n), key=lambda at: seeds.numbered(f"order {self._label}", at))
        return [place < n for place in places]

    def leaked(self, what: str, parts: Sequence[str]) -> CheckFailed:
        """Return the failure that says what these parts reveal."""
        self._call.transcript[:] = [exchange for kept in self._kept.values() for exchange in kept]
        learned = f"{self._hidden.operation}: {what}"
        return CheckFailed("leaked", learned, {"from": list(parts), "learns": what})


def demand_hidden(call: Caller, hidden: Hidden, seed: int) -> None:
    """Fail when the view depends on the secret."""
    asked = _Asked(call, hidden, seed)
    columns = len(hidden.numbers(asked.parts([False] * hidden.coins))) if hidden.field else 0
    each = hidden.look // 2 if hidden.look and call.cases < _FEW else _EACH
    n = max(each, columns + contrast.spare(hidden.field)) if columns else each
    sides: dict[bool, list[Sequence[bytes]]] = {False: [], True: []}
    for at, great in enumerate(asked.order(n)):
        sides[great].append(asked.parts([great] * hidden.coins))
        if at + 1 == hidden.look:
            fewer = min(map(len, sides.values()))
            _demand_alike(asked, hidden, {side: parts[:fewer] for side, parts in sides.items()})
    least = _demand_alike(asked, hidden, sides)
    if columns:
        _demand_uniform(asked, hidden, sides[False])
    width = max(sum(len(parts[at]) for at in hidden.together) for side in sides.values() for parts in side)
    related = bool(hidden.together) and 8 * width + hidden.coins <= _WIDEST
    if related:
        _demand_unrelated(asked, hidden, width)
    call.transcript.clear()
    call.limits.append(
        f"of {n} answers about each of two secrets, a difference in fewer than {least} is not seen, nor is a relation "
        f"{'that is not affine in bits' if related else 'between bits'}; false alarm at most 2**-50"
    )


def _demand_alike(asked: _Asked, hidden: Hidden, sides: Mapping[bool, Sequence[Sequence[bytes]]]) -> int:
    """Fail when a part distinguishes the two secrets. Return how many answers would have to differ."""
    n = len(sides[False])
    judged = [
        contrast.apart(*([p[at] for p in sides[great]] for great in (True, False))) for at in range(len(hidden.names))
    ]
    least = contrast.threshold(n, hidden.looks * sum(statistics for _, statistics in judged))
    for name, (found, _) in zip(hidden.names, judged, strict=True):
        if found.by >= least:
            what = f"{found.what} tells {hidden.apart} in {found.by} of {n} answers"
            raise asked.leaked(f"{name}: {what}; fewer than {least} are expected", [name])
    return least


def _demand_uniform(asked: _Asked, hidden: Hidden, seen: Sequence[Sequence[bytes]]) -> None:
    """Fail when the view of a coalition of one secret stays in a hyperplane of the field."""
    rows = [hidden.numbers(parts) for parts in seen]
    found = contrast.dimension(hidden.field, rows)
    if found < len(rows[0]):
        names = [hidden.names[at] for at in hidden.together]
        what = f"{len(rows)} answers about one secret differ in {found} directions of {len(rows[0])}"
        raise asked.leaked(f"{', '.join(names)}: {what}; a combination of these elements is the same in all", names)


def _demand_unrelated(asked: _Asked, hidden: Hidden, width: int) -> None:
    """Fail when bits of a coalition's view sum to bits of the secret."""
    seen, secrets = [], []
    for at in range(contrast.enough(8 * width, hidden.coins)):
        coins = asked.coins(f"coins {at}", hidden.coins)
        parts = asked.parts(coins.tolist())
        seen.append(b"".join(parts[part] for part in hidden.together))
        secrets.append(coins)
    found = contrast.relation(contrast.bits_of(seen, width), np.array(secrets))
    if found is not None:
        own, others, constant = found
        names = [hidden.names[at] for at in hidden.together]
        terms = ", ".join(f"{at % 8} of byte {at // 8}" for at in others[:3]) + (", …" if others[3:] else "")
        right = f"the sum of the bits {terms} of {', '.join(names)}" if others else "constant"
        what = (
            f"the sum of the bits {own} of the secret is {right}, plus {int(constant)} modulo 2, in {len(seen)} answers"
        )
        raise asked.leaked(what, names)


def _contrast(operation: str, *clauses: str, applies: Condition, doc: str) -> Callable[[_Build], _Build]:
    """Register the check that an operation hides its secret."""

    def register(build: _Build) -> _Build:
        def judge(draw: Any, call: Caller) -> None:
            seed = draw(st.integers(0, 2**32 - 1))
            for hidden in build(draw, call):
                demand_hidden(call, hidden, seed)

        judge.__doc__ = doc
        check(f"privacy/{operation}/contrast", *clauses, applies=applies, examples=1)(judge)
        return build

    return register


@_contrast(
    _SEAL,
    "SEA-10",
    applies=lambda caps: True,
    doc="Payloads of two plaintexts of the same length look alike. No bits of a payload sum to bits of the plaintext.",
)
def _payload(draw: Any, call: Caller) -> Iterator[Hidden]:
    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        params = {"plaintext": _packed(coins), "sender": 0, "receiver": 1, "alter": None}
        return [octets(f"{_SEAL}: payload", call.result(_SEAL, params).get("payload"))]

    for size in _PLAINTEXTS:
        yield Hidden(_SEAL, 8 * size, ("payload",), seen, (0,))


def _packed(coins: Sequence[bool]) -> str:
    return bytes(np.packbits(np.array(coins), bitorder="little")).hex()


@_contrast(
    _SHARE,
    *("SHM-13", "SHM-12", "SHM-07"),
    applies=not_exact,
    doc="Shares of two secrets look alike, t - 1 of them fill the text's field, and no bits sum to bits of a secret.",
)
def _sharing(draw: Any, call: Caller) -> Iterator[Hidden]:
    """Share among few holders. Two of them see their shares together if so few holders are declared."""
    space = strategies.Space(call.caps, (_SHARE,))
    pairs = [(n, t) for n in strategies.holders(space)[:3] for t in strategies.shared_thresholds(space, n)]
    n, t = min(pairs, key=lambda pair: (pair[1] < 3, pair[1], pair[0]))
    users = strategies.subset(draw, range(n), t - 1, t - 1)

    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        sampled = draw_coefficients(SeededSource(seed.to_bytes(32, "little"), "contrast"), t - 1)
        rand = call.randomness(_SHARE, {"coefficients": b"".join(map(shamir.element_bytes, sampled)).hex()}, seed)
        shares = call.listed(_SHARE, {"t": t, "n": n, "secret": _packed(coins)}, "shares", n, rand)
        return [octets(f"{_SHARE}: shares[{user}]", text) for user, text in enumerate(shares)]

    def numbers(parts: Sequence[bytes]) -> list[int]:
        return [int.from_bytes(parts[user], "little") for user in users]

    names = [f"shares[{user}]" for user in range(n)]
    field = shamir.PRIME if own_field(call.caps) else 0
    yield Hidden(_SHARE, 8 * secret_length(call.caps), names, seen, users, field, numbers)


def _elements(coins: Sequence[bool], q: int) -> UintArray:
    return np.array(coins, dtype=np.uint64) * np.uint64(q - 1)


def _read(text: bytes) -> list[int]:
    return [int(value) for value in np.frombuffer(text, "<u4")]


@_contrast(
    _ENCODE,
    "MDS-10",
    applies=not_given,
    doc="Shares of two vectors look alike. No bits of the shares of T users sum to elements of a vector.",
)
def _code(draw: Any, call: Caller) -> Iterator[Hidden]:
    code = {name: number for name, number in smallest_code(call.caps).items() if name != "D"}
    q, N, d = code["q"], code["N"], 2 * (code["U"] - code["T"])
    users = strategies.subset(draw, range(N), code["T"], code["T"])

    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        shares = encoding(call, code, _elements(coins, q), range(N), seed)
        return [each.astype("<u4").tobytes() for each in np.split(shares, N)]

    def numbers(parts: Sequence[bytes]) -> list[int]:
        return _read(b"".join(parts[user] for user in users))

    yield Hidden(_ENCODE, d, [f"shares[{user}]" for user in range(N)], seen, users, q, numbers)


@_contrast(
    _LIGHT,
    *("LSA-02", "MDS-10"),
    applies=own_draws(_LIGHT),
    doc="What the server and T users see of a user that draws for itself is uniform, and looks alike for two updates.",
)
def _masked(draw: Any, call: Caller) -> Iterator[Hidden]:
    """Play a user that draws its mask and noise: the server sees its masked update, and T users see their shares."""
    scene = light_user(call.caps, 4)
    numbers = scene.agreed.numbers
    q, L, T = numbers["q"], shares_length(numbers, 4), numbers["T"]
    users = range(1, T + 1)

    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        played = replace(scene, update=_elements(coins, q))
        entries = ask(call, _LIGHT, played.params(played.calls()[:2]), call.randomness(_LIGHT, {}, seed))
        messages = [each for entry, phase in zip(entries, _PHASES, strict=True) for each in sent(_LIGHT, entry, phase)]
        parts = [np.asarray(each.masked).astype("<u4").tobytes() for each in messages if isinstance(each, MaskedUpdate)]
        shares = [each for each in messages if isinstance(each, MaskShare) and each.receiver in users]
        parts += [each.payload[_COUNT:] for each in sorted(shares, key=lambda each: each.receiver)]
        if list(map(len, parts)) != [16, *[4 * L] * T]:
            raise CheckFailed("wrong_value", f"{_LIGHT}: one masked update is due, and one share for each user")
        return parts

    names = ["the masked update", *(f"the share of user {user}" for user in users)]
    everything = range(len(names))
    yield Hidden(_LIGHT, 4, names, seen, everything, q, lambda parts: _read(b"".join(parts)))
