"""Checks of what shares and masked vectors reveal, by probing operations that take explicit randomness.

The answers at 0 and at the basis vectors give the matrix of the operation. From it, the check decides exactly what each
coalition learns from its view (spec/conformance.md, section 5).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.wire import pack
from secagg_spec.conformance.cases import basecagg_functions, strategies
from secagg_spec.conformance.cases.basecagg_functions import MASK as BUFFERED_MASK
from secagg_spec.conformance.cases.requests import own_field, shares_length
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, fail, octets
from secagg_spec.conformance.outside import leaks, probing
from secagg_spec.conformance.outside.leaks import EVERYBODY, Entry, Leak
from secagg_spec.privacy.verdict import decide

_ENCODE, _SHARE, _MASK, _ROUND = "mds.encode", "shamir.share", "lightsecagg.mask", "lightsecagg.round"
_FEW_USERS = 6
"""The most users of a whole round that is probed: each symbol of each user costs a round."""
_SETS = 64
"""How many sets of U shares are decoded. If there are more, a sample is drawn."""
ROUND_SWEEP = 100
"""Points of a sweep when each costs a round or a session."""
_COLUMNS = 4
LONG = 100
"""A length of vectors beyond the blocks in which an implementation may process them."""
_SYMBOLS = 400
"""The most symbols of a long code: each costs a request."""


def explicit(*operations: str) -> Callable[[Capabilities], bool]:
    """Return the condition that operations take their sampled values by name."""
    return lambda caps: all(caps.grade(operation) == "explicit" for operation in operations)


def vector(values: Sequence[int]) -> UintArray:
    """Return numbers as a vector of elements."""
    return np.array(values, dtype=np.uint64)


def named(name: str, count: int) -> tuple[str, ...]:
    """Return the names of the elements of a vector: ``mask[0]``, …."""
    return tuple(f"{name}[{at}]" for at in range(count))


def sweep_seed(draw: Any) -> int:
    """Draw the seed of the points at which a map is compared (CNF-66)."""
    return int(draw(st.integers(0, 2**32 - 1)))


@dataclass
class Asking:
    """A map that is asked point by point. The transcript keeps the answers at the first points and the last one."""

    call: Caller
    operation: str
    modulus: int
    core: probing.Core
    spans: Sequence[probing.Span]
    seed: int
    kept: int = 0
    asked: int = 0

    def __call__(self, point: Sequence[int]) -> Sequence[int]:
        """Return the value at a point."""
        if self.asked > len(self.spans):
            del self.call.transcript[self.kept :]
        value = self.core(point)
        if self.asked <= len(self.spans):
            self.kept = len(self.call.transcript)
        self.asked += 1
        return value

    def probed(self) -> probing.Probed:
        """Return the affine map, compared at a few points. Fail if the answers are not affine."""
        try:
            return probing.probe(self.modulus, self, self.spans, self.seed)
        except probing.NotAffine as error:
            fail(f"{self.operation}: {error}")

    def swept(self, found: probing.Probed, sweep: int = probing.SWEEP) -> None:
        """Fail if the map differs at a point of a sweep (CNF-66)."""
        if any(high - low >= sweep for low, high in self.spans):
            self.call.limits.append(
                f"of inputs with more than {sweep} values, the ends, numbers around 0, first and last bytes and drawn "
                "values were compared: a leak at a single other value, or in a single round, is out of reach"
            )
        try:
            probing.compare(found, self, probing.points(self.modulus, self.spans, self.seed, sweep))
        except probing.NotAffine as error:
            fail(f"{self.operation}: {error}")


def leaked(leak: Leak) -> NoReturn:
    """Fail with the verdict ``leaked``: who learns what from what."""
    raise CheckFailed("leaked", leak.text, leak.as_json())


def demand_private(leak: Leak | None) -> None:
    """Fail when there is a leak.

    The last answer is at a pseudo-random point, so that the leak can be computed there.
    """
    if leak is not None:
        leaked(leak)


def entries(found: probing.Probed, names: Sequence[str], holders: Sequence[int | None], secrets: int) -> list[Entry]:
    """Return the outputs of a map as entries of views. Its first inputs are the secrets, and the others are drawn."""
    rows = zip(names, holders, found.matrix, found.constant, strict=True)
    return [Entry(name, holder, row[:secrets], row[secrets:], offset) for name, holder, row, offset in rows]


def say_sampled(call: Caller, users: Sequence[int], seen: Sequence[Entry], most: int, modulus: int = 0) -> None:
    """State in the limits of a pass that not all coalitions were decided."""
    if leaks.sampled(users, seen, most, modulus):
        call.limits.append(f"where there are too many coalitions of up to {most} users, drawn ones were decided")


def _whole_matrix(caps: Capabilities) -> bool:
    """Return whether a code is declared whose noise is given and whose whole matrix can be asked for."""
    return explicit(_ENCODE)(caps) and strategies.Space(caps, (_ENCODE,), whole=True).possible()


@check("privacy/mds.encode", "MDS-10", "MDS-05", applies=_whole_matrix, examples=6, grows=True)
def encode(draw: Any, call: Caller) -> None:
    """No T users learn anything about a vector from their shares, and any U users learn all of it (by the matrix)."""
    code = strategies.code(draw, call.caps, _ENCODE, whole=True)
    _judge_code(call, code, draw(st.integers(1, _COLUMNS * (code["U"] - code["T"]))), sweep_seed(draw))


@check("privacy/mds.encode/edges", "MDS-10", "MDS-05", applies=_whole_matrix, examples=1)
def encode_edges(draw: Any, call: Caller) -> None:
    """At the edges (smallest q, N = q - 1, largest T, most coalitions), T users learn nothing and U users all."""
    seed, edges = sweep_seed(draw), strategies.edges(call.caps, _ENCODE)
    fewest = min(edges, key=lambda code: code["U"])
    long = max(3, min(LONG, _SYMBOLS // fewest["U"], strategies.MATRIX // (fewest["N"] * fewest["U"])))
    for code, columns in [*((code, 3) for code in edges), (fewest, long)]:
        call.transcript.clear()
        _judge_code(call, code, columns * (code["U"] - code["T"]), seed)


def _judge_code(call: Caller, code: dict[str, int], d: int, seed: int) -> None:
    """Fail when T users learn something about a vector of d elements, or U users do not learn all of it."""
    q, N, T = (code[name] for name in ("q", "N", "T"))
    params, L = {name: code[name] for name in ("q", "N", "U", "T")}, shares_length(code, d)

    def core(point: Sequence[int]) -> list[int]:
        rand = {"noise": pack(vector(point[d:]))}
        shares = call.listed(_ENCODE, {**params, "mask": pack(vector(point[:d]))}, "shares", N, rand)
        return call.read_all(_ENCODE, shares, "shares", L, q).reshape(-1).tolist()

    spans = [probing.everything(q)] * (d + T * L)
    asking = Asking(call, _ENCODE, q, core, spans, seed)
    found = asking.probed()
    names = [name for user in range(N) for name in named(f"shares[{user}]", L)]
    seen = entries(found, names, [user for user in range(N) for _ in range(L)], d)
    if strategies.crowded(call.caps, _ENCODE):
        call.limits.append(f"codes with N U above {strategies.MATRIX:,} were left out")
    say_sampled(call, range(N), seen, T, q)
    demand_private(leaks.smallest(q, seen, named("mask", d), range(N), T))
    _demand_decodable(code, found, d, L)
    asking.swept(found)


def _demand_decodable(code: dict[str, int], found: probing.Probed, d: int, L: int) -> None:
    """Fail when some U users cannot decode the vector."""
    field, secrets = PrimeField(code["q"]), np.eye(d, dtype=np.uint64)
    matrix = np.array(found.matrix, dtype=np.uint64)
    for users in leaks.subsets(range(code["N"]), code["U"], _SETS):
        rows = matrix[[user * L + at for user in users for at in range(L)]]
        left = decide(field, rows[:, :d].copy(), rows[:, d:].copy(), secrets).withheld
        if left > 1:
            fail(f"the shares of {leaks.named(users)}, which are U users, leave {left} vectors possible")


def _own_shares(caps: Capabilities) -> bool:
    return own_field(caps) and caps.grade(_SHARE) == "explicit"


@check("privacy/shamir.share", "SHM-12", "SHM-04", applies=_own_shares, examples=4, grows=True)
def share(draw: Any, call: Caller) -> None:
    """No t - 1 users learn anything about a secret from their shares (by the matrix over the field)."""
    numbers, seed = strategies.sharing(draw, call.caps, _SHARE), sweep_seed(draw)
    t, n, p = numbers["t"], numbers["n"], shamir.PRIME

    def core(point: Sequence[int]) -> list[int]:
        rand = {"coefficients": b"".join(map(shamir.element_bytes, point[1:])).hex()}
        params = {**numbers, "secret": point[0].to_bytes(32, "little").hex()}
        shares = call.listed(_SHARE, params, "shares", n, rand)
        return [_element(user, text) for user, text in enumerate(shares)]

    spans = [(0, 2**256 - 1), *[probing.everything(p)] * (t - 1)]
    asking = Asking(call, _SHARE, p, core, spans, seed)
    found = asking.probed()
    seen = entries(found, named("shares", n), range(n), 1)
    say_sampled(call, range(n), seen, t - 1)
    demand_private(leaks.smallest(p, seen, ("secret",), range(n), t - 1))
    asking.swept(found)


def _element(user: int, text: Any) -> int:
    """Return a share as a number of the text's field."""
    data = octets(f"{_SHARE}: shares[{user}]", text)
    try:
        return shamir.element_from_bytes(f"shares[{user}]", data)
    except ValueError as error:
        raise CheckFailed("wrong_value", f"{_SHARE}: shares[{user}] is no number of the field: {error}") from None


@check("privacy/lightsecagg.mask", "LSA-02", examples=6, grows=True)
def mask(draw: Any, call: Caller) -> None:
    """A masked update reveals nothing about the update if the mask is uniform (by the matrix)."""
    q, d = strategies.modulus(draw, call.caps, _MASK, prime=True), _masked_length(draw)
    _judge_mask(call, _MASK, {"q": q}, d, probing.everything(q), sweep_seed(draw))


@check("privacy/basecagg.mask", "BSA-04", examples=6, grows=True)
def buffered_mask(draw: Any, call: Caller) -> None:
    """A masked update of a buffer reveals nothing about the update if the mask is uniform (by the matrix)."""
    chosen, d = basecagg_functions.levels(draw, call.caps, BUFFERED_MASK), _masked_length(draw)
    span = (-chosen.budget, chosen.budget)
    _judge_mask(call, BUFFERED_MASK, chosen.params("q", "K", "c_g"), d, span, sweep_seed(draw))


def _masked_length(draw: Any) -> int:
    """Draw a length. In half of the cases it spans several blocks."""
    return int(draw(st.integers(1, 5) | st.just(LONG)))


def _judge_mask(call: Caller, operation: str, params: dict[str, Any], d: int, span: probing.Span, seed: int) -> None:
    q = params["q"]

    def core(point: Sequence[int]) -> list[int]:
        given = {**params, "update": pack(vector(point[:d])), "mask": pack(vector(point[d:]))}
        return [int(value) for value in call.vector(operation, given, "masked", d)]

    spans = [span] * d + [probing.everything(q)] * d
    asking = Asking(call, operation, q, core, spans, seed)
    found = asking.probed()
    seen = entries(found, named("masked", d), [EVERYBODY] * d, d)
    leak = leaks.find(q, seen, named("update", d), server=True)
    demand_private(leak)
    asking.swept(found)


def few_users(caps: Capabilities, operation: str, most: int = _FEW_USERS) -> Capabilities:
    """Return capabilities in which an operation has at most `most` users."""
    declared, allowed = caps.operations[operation], caps.range(operation, "N")
    few = {"values": [N for N in range(1, most + 1) if N in allowed] or [0]}
    narrow = {**declared, "ranges": {**declared.get("ranges", {}), "N": few}}
    return replace(caps, operations={**caps.operations, operation: narrow})


def _few(caps: Capabilities) -> bool:
    return explicit(_ROUND)(caps) and strategies.possible(few_users(caps, _ROUND), _ROUND)


@check("privacy/lightsecagg.round", "LSA-13", applies=_few, examples=4, grows=True)
def whole_round(draw: Any, call: Caller) -> None:
    """The aggregate of a round reveals the sum over the contributors and nothing else (by the matrix)."""
    numbers = strategies.session(draw, few_users(call.caps, _ROUND), _ROUND)
    N, d = numbers["N"], min(numbers["d"], 3)
    numbers["d"] = d
    drop = strategies.dropouts(draw, N, min(numbers["D"], N - max(numbers["U"], numbers["T"] + 2)))
    seed, rows = sweep_seed(draw), numbers["T"] * shares_length(numbers, d)

    def core(point: Sequence[int]) -> list[int]:
        updates, masks, noises = _cut(point, (N, d), (N, d), (N, rows))
        given = {**numbers, "updates": updates, "drop": drop}
        answer = call.result(_ROUND, given, {"masks": masks, "noises": noises})
        if answer.get("contributors") != contributors:
            raise CheckFailed("wrong_value", f"{_ROUND}: contributors must be {contributors}")
        return [int(v) for v in call.read(_ROUND, answer.get("aggregate"), "aggregate", d, numbers["q"])]

    contributors = [user for user in range(N) if user not in drop["share"] + drop["upload"]]
    spans = [probing.everything(numbers["q"])] * (N * (2 * d + rows))
    asking = Asking(call, _ROUND, numbers["q"], core, spans, seed)
    found = asking.probed()
    seen = entries(found, named("aggregate", d), [EVERYBODY] * d, N * d)
    names = [name for user in range(N) for name in named(f"updates[{user}]", d)]
    allowed = [[int(user in contributors and at == own) for user in range(N) for own in range(d)] for at in range(d)]
    demand_private(leaks.find(numbers["q"], seen, names, allowed, server=True))
    asking.swept(found, ROUND_SWEEP)


def _cut(point: Sequence[int], *shapes: tuple[int, int]) -> list[list[str]]:
    """Return lists of packed vectors, one list per shape, filled with the elements of a point in order."""
    lists, at = [], 0
    for rows, columns in shapes:
        lists.append([pack(vector(point[at + r * columns : at + (r + 1) * columns])) for r in range(rows)])
        at += rows * columns
    return lists
