"""For each protocol: the parameters that a wish leads to, or the constraint that rules it out.

====================  ==============================================================
text                  here
====================  ==============================================================
N, d, T, D, J         `Wish.users`, `Wish.dimension`, `Wish.colluding`, `least_dropouts`, `Wish.rounds`
t, k, U, K, S, W      of the page of each protocol
====================  ==============================================================

Source: spec/planning.md, section 4 (PLN-06 to PLN-09).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from types import MappingProxyType
from typing import Any, TypeAlias

import flint

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, MAX_MODULUS
from secagg_spec.arithmetic.quantizer import largest_level
from secagg_spec.planning import odds, traffic
from secagg_spec.planning.wishes import Wish
from secagg_spec.privacy import sparse
from secagg_spec.protocols.basa import cores as basa
from secagg_spec.protocols.basa.round import TABLE as BASA_TABLE
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.heterosag import plan as heterosag
from secagg_spec.protocols.heterosag.round import TABLE as HETEROSAG_TABLE
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Role, Step, Table
from secagg_spec.selection import batches

R = MAX_MODULUS
_MOST_NEIGHBOURS = 1024
_MOST_HOLDERS = 2**16
_FEWEST_BUFFERED = 10
_LEVELS = 2**16
_CELLS = 2**24
ALONE = "spec/multi-round.md, section 4"


@dataclass(frozen=True)
class Odds:
    """A probability of a plan, exact up to 2^-60 of it or an upper bound, and the place of its formula in the text."""

    value: Fraction
    exact: bool
    source: str


@dataclass(frozen=True)
class Work:
    """What a round computes, as rounds of another size do that are measured.

    `kind` is the protocol that is measured, `users` the size of a round that computes as much for each user. The
    server does `times` as much. Of what grows with d, users do the share `user` and the server the share `server`.
    """

    kind: str
    users: int
    times: Fraction = Fraction(1)
    user: Fraction = Fraction(1)
    server: Fraction = Fraction(1)


@dataclass(frozen=True)
class Choice:
    """A protocol that satisfies a wish.

    Parameters
    ----------
    protocol : str
        Its key in `PROTOCOLS`.
    numbers : mapping
        The parameters by their symbols in the text.
    make : callable
        Returns the parameters of the reference.
    clauses : tuple of str
        The clauses that the parameters have to satisfy.
    sends, receives, server : int
        Bytes that a user sends and receives in a round at most, and that the server sends.
    steps : int
        How often a user sends something in a round.
    level : int
        The level c of the quantiser, or the levels of a range in HeteroSAg.
    noise : float
        The largest standard deviation of the error that rounding makes in a number of the mean.
    failure, leak : Odds
        That a round fails; that more than the promised sums is learned, in all rounds.
    shows : str
        What the server learns.
    """

    protocol: str
    numbers: Mapping[str, int | str]
    make: Callable[[], Any]
    clauses: tuple[str, ...]
    sends: int
    receives: int
    server: int
    steps: int
    level: int
    noise: float
    failure: Odds
    leak: Odds
    shows: str
    work: Work

    @property
    def bytes(self) -> int:
        """What a user sends and receives."""
        return self.sends + self.receives

    def parameters(self) -> Any:
        """Return the parameters of the reference, or None where they would hold a matrix of more than 128 MiB."""
        large = self.numbers["N"] * self.numbers.get("U", 0) > _CELLS  # type: ignore[operator]
        return None if large else self.make()


@dataclass(frozen=True)
class Out:
    """A protocol that does not satisfy a wish: the constraint that fails, and where the text has it.

    `wrong_kind` says that it is for another kind of deployment, so that other numbers do not help.
    """

    protocol: str
    reason: str
    source: str
    wrong_kind: bool = False


Answer: TypeAlias = Choice | Out


@dataclass(frozen=True)
class Protocol:
    """A protocol of the text: its title, its page, whether it is asynchronous, what it asks beyond others, its plan."""

    title: str
    page: str
    asynchronous: bool
    beyond: int
    plan: Callable[[Wish], Answer]


class Fails(Exception):
    """A constraint of a plan fails; the arguments are the reason and the clause. `answer` returns them as `Out`."""


def answer(key: str, wish: Wish) -> Answer:
    """Return the choice of a protocol for a wish, or why there is none.

    Raises `ParameterError` for a key that `PROTOCOLS` does not have.
    """
    protocol = PROTOCOLS[validate.one_of("key", key, [*PROTOCOLS])]
    if protocol.asynchronous and not wish.asynchronous:
        return Out(key, "for users that answer late (--asynchronous)", "spec/fedbuff.md, section 1", True)
    if wish.asynchronous and not protocol.asynchronous:
        reason = "masks of two users cancel only when both answer in one round; leave --asynchronous out"
        return Out(key, reason, "spec/basecagg.md, introduction", True)
    try:
        return protocol.plan(wish)
    except Fails as fails:
        reason, source = fails.args
        return Out(key, reason, source)


# ------------------------------------------------------------------------------------------------- common parts


def _need(holds: bool, reason: str, source: str) -> None:
    if not holds:
        raise Fails(reason, source)


def _left(wish: Wish, D: int, source: str) -> int:
    """Return N - D when two honest users are left in every sum."""
    left, T = wish.users - D, wish.colluding
    reason = f"N - D = {wish.users} - {D} = {left} users may be left, and with T = {T} colluders T + 2 are needed"
    _need(left >= T + 2, reason, source)
    return left


def _level(modulus: int, weight: int, clip: Fraction) -> int:
    level = largest_level(modulus, weight, clip)
    reason = f"numbers up to {float(clip):g} with the total weight {weight} wrap around modulo {modulus} at any level"
    _need(level >= 1, reason, "QNT-04")
    return level


def rounds_of(table: Table) -> int:
    """Return how often a user sends something, by the table of phases."""
    steps = [validate.instance("table", step, Step) for step in table]
    return sum(bool(step.role is Role.USER and step.sends) for step in steps)


def alone(wish: Wish, allowed: Fraction) -> Fraction:
    """Return a bound on the probability that the sums of all rounds tell an honest user from all other honest ones.

    One round, rounds without dropouts, and rounds without honest users tell nobody apart. If the bound is above the
    probability that is allowed it may be cut off there (PLN-05). Raises `ParameterError` for what is no fraction in
    [0, 1].
    """
    validate.probability("allowed", allowed)
    honest = wish.users - wish.colluding
    if wish.rounds == 1 or not wish.dropout or not honest:
        return Fraction(0)
    class_ = wish.rounds, wish.dropout, honest - 1, 1
    bound = min(Fraction(1), honest * odds.without_companions(*class_, allowed))
    error = 16 * honest * odds.ERROR  # of a sum of tails that is rounded and cut off: a few of each
    return odds.settled(bound, allowed, lambda: honest * odds.exactly_without_companions(*class_), error)


def _not_alone(wish: Wish, allowed: Fraction) -> Fraction:
    found = alone(wish, allowed)
    reason = (
        f"over {wish.rounds} rounds the sums may tell a single user: no other honest one is in the same sums, with a "
        f"probability above {float(allowed):.1e}"
    )
    _need(found <= allowed, reason, ALONE)
    return found


def _mean_noise(level: int | Fraction, users: int) -> float:
    """Return the noise of the mean over so many users: the fewest of a sum that counts as no failure."""
    return 1 / (2 * level * sqrt(users))


# ------------------------------------------------------------------------------------------------------- SecAgg


def _secagg_bytes(N: int, k: int, d: int) -> tuple[int, int, int]:
    names = {"N": N, "k": k, "d": d, "S": N, "V": 0}
    server = traffic.sent("secagg.md", "server", names)
    return traffic.sent("secagg.md", "user", names), -(-server // N), server


def threshold(N: int, T: int, left: int) -> int:
    """Return t of the complete graph, for `left` users that are left at least.

    It is the least number above (N + T)/2, with which a server that names different survivors gets no single input, or
    `left` where that is less. Raises `ParameterError` for what are no numbers of users.
    """
    N, T, left = (
        validate.integer(name, value, 0, validate.MAX_COUNT) for name, value in (("N", N), ("T", T), ("left", left))
    )
    return min(left, max(T + 2, (N + T) // 2 + 1))


def secagg_plan(wish: Wish) -> Answer:
    """Return a plan of SecAgg on the complete graph; raises `Fails` where there is none."""
    N, T = wish.users, wish.colluding
    D = odds.least_dropouts(N, wish.dropout, wish.failure)
    left = _left(wish, D, "SAG-01")
    _need(N <= _MOST_HOLDERS, f"k = N - 1 = {N - 1} neighbours: at most {_MOST_HOLDERS - 1}", "SAG-01")
    t, leak = threshold(N, T, left), _not_alone(wish, wish.leak)
    level = _level(R, N, wish.clip)
    numbers = {"R": R, "N": N, "D": D, "T": T, "t": t, "k": N - 1, "d": wish.dimension}
    return Choice(
        "secagg", numbers, lambda: secagg.Parameters(**numbers), ("SAG-01", "SAG-02"),
        *_secagg_bytes(N, N - 1, wish.dimension), rounds_of(secagg.TABLE), level, _mean_noise(level, t),
        Odds(odds.at_least(N, wish.dropout, N - t + 1, wish.failure), True, "SAG-30"),
        Odds(leak, not leak, ALONE if leak else "spec/secagg.md, section 1"), "the sum", Work("secagg", N),
    )  # fmt: skip


def sparse_numbers(wish: Wish) -> tuple[int, int, int, Odds, Odds]:
    """Return D, k and t of a sparse graph, and the probabilities that a round fails and that privacy does (PLN-09).

    Half of the allowed failure is for more dropouts than D, half for too few holders. Of the allowed leak a quarter
    each is for surrounded users, for cuts, for dropouts beyond those that cuts are counted with, and for rounds
    together. More than half of all users as neighbours are not looked for: the complete graph promises more at little
    more cost. Raises `Fails` where no graph is good enough.
    """
    N, T, J = wish.users, wish.colluding, wish.rounds
    D = odds.least_dropouts(N, wish.dropout, wish.failure / 2)
    most = odds.least_dropouts(N, wish.dropout, wish.leak / (4 * J))
    left, lost = _left(wish, D, "SAG-01"), min(most, N - T - 1)
    beyond = odds.at_least(N, wish.dropout, most + 1, wish.leak / (4 * J))
    part = wish.leak / 4
    together = _not_alone(wish, part)

    def fitting(k: int) -> tuple[int, Fraction, Fraction] | None:
        """Return t, and what privacy and the round lose by it, if k neighbours are enough."""
        cut = J * sparse.cut_at_most(N, k, T + lost)
        if cut > part:
            return None
        top = min(k + 1, left)
        t = odds.first(2, top, lambda t: J * sparse.any_surrounded(N, k, t, T) <= part)
        caught, stuck = J * sparse.any_surrounded(N, k, t, T), sparse.stuck(N, k, t, D)
        return (t, caught + cut, stuck) if caught <= part and stuck <= wish.failure / 2 else None

    # Doubling first: large degrees cost much more to try than small ones.
    largest = min((N - 1) // 2, _MOST_NEIGHBOURS) // 2 * 2
    high = min(2, largest)
    while high < largest and fitting(high) is None:
        high = min(2 * high, largest)
    where = "spec/secagg.md, section 9"
    reason = f"with up to {largest} neighbours, users are surrounded, cut off or short of t holders too often"
    _need(largest >= 2 and fitting(high) is not None, reason, where)
    half = odds.first(max(high // 4, 1), high // 2, lambda half: fitting(2 * half) is not None)
    found = fitting(2 * half)
    assert found is not None
    t, leak, stuck = found
    failure = odds.short(odds.at_least(N, wish.dropout, D + 1, wish.failure / 2) + stuck)
    total = odds.short(leak + J * beyond + together)
    return D, 2 * half, t, Odds(min(failure, wish.failure), False, where), Odds(min(total, wish.leak), False, where)


def sparse_plan(wish: Wish) -> Answer:
    """Return a plan of SecAgg on a sparse graph; raises `Fails` where there is none."""
    N, T = wish.users, wish.colluding
    D, k, t, failure, leak = sparse_numbers(wish)
    level = _level(R, N, wish.clip)
    numbers = {"R": R, "N": N, "D": D, "T": T, "t": t, "k": k, "d": wish.dimension}
    return Choice(
        "secagg-plus", numbers, lambda: secagg.Parameters(**numbers), ("SAG-01", "SAG-02"),
        *_secagg_bytes(N, k, wish.dimension), rounds_of(secagg.TABLE), level, _mean_noise(level, N - D),
        failure, leak, "the sum", Work("secagg", k + 1, Fraction(N, k + 1)),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------- LightSecAgg


def _lightsecagg_bytes(N: int, U: int, T: int, d: int) -> tuple[int, int, int]:
    names = {"N": N, "L": -(-d // (U - T)), "d": d, "S": N}
    server = traffic.sent("lightsecagg.md", "server", names, ("confirm",))
    return traffic.sent("lightsecagg.md", "user", names, ("confirm",)), -(-server // N), server


def lightsecagg_plan(wish: Wish) -> Answer:
    """Return a plan of LightSecAgg; U = N - D makes shares as short as they can be.

    Raises `Fails` where there is none.
    """
    N, T = wish.users, wish.colluding
    D = odds.least_dropouts(N, wish.dropout, wish.failure)
    U, leak = _left(wish, D, "LSA-01"), _not_alone(wish, wish.leak)
    level = _level(DEFAULT_PRIME, N, wish.clip)
    numbers = {"q": DEFAULT_PRIME, "N": N, "D": D, "U": U, "T": T, "d": wish.dimension}
    return Choice(
        "lightsecagg", numbers, lambda: lightsecagg.Parameters(**numbers), ("LSA-01",),
        *_lightsecagg_bytes(N, U, T, wish.dimension), rounds_of(lightsecagg.TABLE), level, _mean_noise(level, U),
        Odds(odds.at_least(N, wish.dropout, D + 1, wish.failure), True, "LSA-17"),
        Odds(leak, not leak, ALONE if leak else "spec/lightsecagg.md, section 1"), "the sum",
        Work("lightsecagg", N),
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- HeteroSAg


def heterosag_plan(wish: Wish) -> Answer:
    """Return a plan of HeteroSAg: one group, as many subgroups of 5, 3 and 2 as keep T + 2 users often enough.

    Raises `Fails` where there is none.
    """
    N, T, p = wish.users, wish.colluding, wish.dropout
    D = odds.least_dropouts(N, p, wish.failure / 2)
    left = _left(wish, D, "HSA-01")
    _need(N <= _MOST_HOLDERS, f"N = {N} users: at most {_MOST_HOLDERS}", "HSA-01")
    _need(N // 2 >= T + 2, f"two subgroups of T + 2 = {T + 2} users each do not fit into N = {N}", "HSA-01")
    _need(wish.dimension >= 2, "an update of one number has no two segments", "HSA-04")
    t = threshold(N, T, left)
    found = next(filter(None, (_subgroups(wish, Z, t) for Z in (5, 3, 2))), None)
    reason = f"a subgroup keeps fewer than T + 2 = {T + 2} users too often, also with two subgroups"
    reason += f" over {wish.rounds} rounds" if wish.rounds > 1 else ""
    _need(found is not None, reason, "HSA-17" if wish.rounds == 1 else "HSA-28")
    assert found is not None
    Z, failure = found
    cell = -(-N // Z) * 2
    levels = min(_LEVELS, (MAX_MODULUS - 1) // min(cell, N) + 1)
    _need(wish.clip <= 2**32 and levels >= 2, f"a cell of {cell} users has no two levels", "HSA-03")
    numbers: dict[str, Any] = {"N": N, "D": D, "T": T, "t": t, "d": wish.dimension}
    named = {**numbers, "groups": 1, "subgroups": Z, "levels": levels}

    def make() -> heterosag.Parameters:
        clip = float(wish.clip)
        return heterosag.Parameters(**numbers, sizes=(N,), subgroups=(Z,), levels=(levels,), range=Range(-clip, clip))

    p_ = make()
    masked = max(heterosag_costs.masked_bytes(p_, user) for user in (0, N - 1))
    sends, receives, server = _secagg_bytes(N, N - 1, wish.dimension)
    present, stay = heterosag_costs.user_masks(p_, 0).elements, range(N - N * p.numerator // p.denominator)
    ours = heterosag_costs.server_masks(p_, stay).elements
    complete = len(stay) * (1 + N - len(stay)) * wish.dimension
    shares = Fraction(present, N * wish.dimension), Fraction(ours, complete)
    return Choice(
        "heterosag", named, make, ("HSA-01", "HSA-03", "HSA-04", "HSA-06"),
        sends - 4 * wish.dimension + masked, receives, server, rounds_of(HETEROSAG_TABLE), levels,
        _mean_noise((levels - 1) / (2 * wish.clip), t), Odds(failure, False, "HSA-17"),
        Odds(Fraction(0), True, "spec/heterosag.md, section 1"),
        f"of each of {Z} segments the sum of each cell of one or two of {Z} subgroups",
        Work("secagg", N, user=shares[0], server=shares[1]),
    )  # fmt: skip


def _subgroups(wish: Wish, Z: int, t: int) -> tuple[int, Fraction] | None:
    """Return Z and the probability that a session fails with Z subgroups, if that is rare enough."""
    N, p, part = wish.users, wish.dropout, wish.colluding + 1
    sizes = [N // Z + (at < N % Z) for at in range(Z)]
    if sizes[-1] <= part or wish.dimension < Z:
        return None
    lost = odds.at_least(N, p, N - t + 1)
    users = {size: sizes.count(size) * size for size in sizes}
    few = sum(n * odds.without_companions(wish.rounds, p, size - 1, part, wish.failure) for size, n in users.items())

    def exact() -> flint.fmpq:
        """Return the probability itself."""
        each = (n * odds.exactly_without_companions(wish.rounds, p, size - 1, part) for size, n in users.items())
        return sum(each, odds.exactly_at_least(N, p, N - t + 1))

    total = odds.settled(min(Fraction(1), lost + few), wish.failure, exact, 16 * N * odds.ERROR)
    return (Z, min(odds.short(total), wish.failure)) if total <= wish.failure else None


# --------------------------------------------------------------------------------------------- Multi-RoundSecAgg


def multi_round_plan(wish: Wish) -> Answer:
    """Return a plan of Multi-RoundSecAgg: everybody is chosen, in the smallest batches that hide two honest users.

    A batch that loses a user is left out of the sum (MRA-18), and as many batches may be lost as makes failure rare.
    Raises `Fails` where there is no plan.
    """
    c, p = wish.colluding, wish.dropout
    T = c + 2
    _need(wish.rounds > 1, "batches are for more rounds than one (--rounds)", "spec/multi-round.md, section 1")
    count = wish.users // T
    _need(count >= 1, f"a batch of c + 2 = {T} users is larger than N = {wish.users}", "MRA-17")
    lost = odds.some(T, p)
    enough = count - odds.least_dropouts(count, lost, wish.failure)
    whole = f"{float(1 - lost):.1e}" if 1 - lost > Fraction(1, 10**300) else "less than 1e-300"
    reason = f"a batch of T = c + 2 = {T} users stays whole with a probability of {whole} only"
    _need(enough >= 1, reason, "MRA-18")
    K, U = count * T, enough * T
    selection = batches.Parameters(K, K, T)
    level = _level(DEFAULT_PRIME, K, wish.clip)
    coded = {"q": DEFAULT_PRIME, "N": K, "D": K - U, "U": U, "T": c, "d": wish.dimension}
    paired = {"R": R, "N": K, "D": K - U, "T": c, "t": U, "k": K - 1, "d": wish.dimension}
    with_pairs = 2 * K + c <= 3 * U and K <= _MOST_HOLDERS
    sizes = {"lightsecagg": _lightsecagg_bytes(K, U, c, wish.dimension)}
    if with_pairs:
        sizes["secagg"] = _secagg_bytes(K, K - 1, wish.dimension)
    base = min(sizes, key=lambda name: sum(sizes[name][:2]))

    def make() -> multi_round.Parameters:
        each = secagg.Parameters(**paired) if base == "secagg" else lightsecagg.Parameters(**coded)
        return multi_round.Parameters(selection, each)

    numbers: dict[str, int | str] = {"N": K, "K": K, "T": T, "c": c, "rounds": base, "D": K - U}
    numbers |= {"t": U} if base == "secagg" else {"U": U}
    table = {"secagg": secagg.TABLE, "lightsecagg": lightsecagg.TABLE}[base]
    return Choice(
        "multi-round", numbers, make, ("MRA-01", "MRA-17", *(("SAG-02",) if base == "secagg" else ("LSA-01",))),
        *sizes[base], rounds_of(table), level, _mean_noise(level, U),
        Odds(odds.at_least(count, lost, count - enough + 1, wish.failure), True, "MRA-23"),
        Odds(Fraction(0), True, "spec/multi-round.md, section 5"), f"sums over batches of {T} users",
        Work(base, K),
    )  # fmt: skip


# -------------------------------------------------------------------------------------------- asynchronous ones


def _buffer(wish: Wish, source: str) -> int:
    """Return K: the smallest buffer that hides two honest updates, and at least ten where there are as many users."""
    N, T = wish.users, wish.colluding
    _need(T + 2 <= N, f"a buffer of T + 2 = {T + 2} updates is larger than N = {N}", source)
    return max(T + 2, min(N, _FEWEST_BUFFERED))


def basecagg_plan(wish: Wish) -> Answer:
    """Return a plan of BASecAgg, with the levels and the staleness of the column `paper`.

    Raises `Fails` where there is none.
    """
    N, T = wish.users, wish.colluding
    D = odds.least_dropouts(N, wish.dropout, wish.failure)
    U, K = N - D, _buffer(wish, "BSA-01")
    _need(U > T, f"N - D = {N} - {D} = {U} users may answer, and more than T = {T} are needed", "BSA-01")
    like = basecagg.PRESETS["paper"]
    level = _level(DEFAULT_PRIME, K * like.c_g, wish.clip)
    numbers: dict[str, Any] = {"q": DEFAULT_PRIME, "N": N, "D": D, "U": U, "T": T, "d": wish.dimension}
    numbers |= {"K": K, "c_l": level}
    L = -(-wish.dimension // (U - T))
    names = {"N": N, "L": L, "d": wish.dimension, "K": K}
    sends = traffic.sent("basecagg.md", "user", names, ("confirm",))
    share = traffic.sent("basecagg.md", "server", names, ("confirm", "close", "request")) // (N - 1)
    close = traffic.sent("basecagg.md", "server", names, ("confirm", "request", "share"))
    stamp = traffic.sent("basecagg.md", "server", names, ("confirm", "close", "share"))
    return Choice(
        "basecagg", {**numbers, "c_g": like.c_g, "tau_max": like.tau_max}, lambda: replace(like, **numbers),
        ("BSA-01", "BSA-02"), sends, stamp + min(K, N - 1) * share + -(-close // N),
        K * (stamp + (N - 1) * share) + close,
        rounds_of(basecagg.TABLE), level, 1 / (2 * level),
        Odds(odds.at_least(N, wish.dropout, D + 1, wish.failure), True, "BSA-34"),
        Odds(Fraction(0), True, "spec/basecagg.md, section 1"), "the weighted sum of a buffer", Work("basecagg", N),
    )  # fmt: skip


def basa_plan(wish: Wish) -> Answer:
    """Return a plan of BASA in the profile `settle`: as many spare positions as make failure rare.

    Raises `Fails` where there is none.
    """
    N, T, p = wish.users, wish.colluding, wish.dropout
    K = _buffer(wish, "BAA-01")
    most = min(N, basa.MAX_POSITIONS) - K

    def failure(S: int) -> Fraction:
        return odds.fewer_than(K + S, 1 - p, T + 2, wish.failure)

    S = odds.first(0, max(most, 0), lambda spare: failure(spare) <= wish.failure)
    reason = f"{K} + {max(most, 0)} positions leave fewer than T + 2 = {T + 2} updates too often"
    _need(most >= 0 and failure(S) <= wish.failure, reason, "BAA-19")
    like = basa.PRESETS["default"]
    level = _level(like.R, K * like.c_g, wish.clip)
    numbers: dict[str, Any] = {"R": like.R, "N": N, "T": T, "d": wish.dimension, "K": K, "S": S, "c_l": level}
    P = K + S
    names = {"d": wish.dimension, "P": P, "Z": 1, "B": 80, "E": 32, "V": 64 * P}
    first, last = {**names, "k": 0, "A": 0}, {**names, "k": K - 1, "A": K - 1}
    sends = traffic.sent("basa.md", "user", first)
    assignment = traffic.HEADER + 8  # of the two messages of an offer one is for the authority
    offer = traffic.sent("basa.md", "server", last, ("take", "expire", "close")) - assignment
    key = traffic.sent("basa.md", "authority", last, ("settle", "close"))
    visits = [traffic.sent("basa.md", "server", one, ("expire", "close")) for one in (first, last)]
    close = traffic.sent("basa.md", "server", last, ("offer", "take", "expire"))
    return Choice(
        "basa", {**numbers, "c_g": like.c_g, "tau_max": like.tau_max, "timeouts": like.timeouts},
        lambda: replace(like, **numbers), ("BAA-01", "BAA-02"), sends, offer + key,
        K * sum(visits) // 2 + close, rounds_of(BASA_TABLE), level, 1 / (2 * level),
        Odds(failure(S), True, "BAA-19"), Odds(Fraction(0), True, "spec/basa.md, section 1"),
        "the weighted sum of a buffer; an authority could unmask all", Work("basa", P),
    )  # fmt: skip


PROTOCOLS: Mapping[str, Protocol] = MappingProxyType(
    {
        "secagg": Protocol("SecAgg", "secagg.md", False, 0, secagg_plan),
        "secagg-plus": Protocol("SecAgg+", "secagg.md", False, 0, sparse_plan),
        "lightsecagg": Protocol("LightSecAgg", "lightsecagg.md", False, 0, lightsecagg_plan),
        "heterosag": Protocol("HeteroSAg", "heterosag.md", False, 1, heterosag_plan),
        "multi-round": Protocol("Multi-RoundSecAgg", "multi-round.md", False, 1, multi_round_plan),
        "basecagg": Protocol("BASecAgg", "basecagg.md", True, 0, basecagg_plan),
        "basa": Protocol("BASA", "basa.md", True, 1, basa_plan),
    }
)
"""The protocols by their names in the command; `beyond` is 1 where more sums are shown, or more parties are trusted."""


guard(__name__)
