"""The server and up to T users learn the weighted sum over the buffer, and nothing else.

Statement, for the points 1 to N, uniform masks and noise, private channels, and the same realised weights everywhere;
(e) for other points and masks.
(a) The server and any coalition of at most T users learn, from the masked updates in the buffer, the answers of all
    users and the shares that the coalition holds, exactly the weighted sum over the buffer and their own data.
(b) T + 1 users learn more whenever at least two honest users contribute with a non-zero weight. So T is tight.
(c) The privacy that the paper *defines* allows the unweighted sum. The protocol meets that definition exactly when all
    honest users in the buffer have one weight (or there is only one honest user).
(d) (a) and (b) hold for the answers that users of BASecAgg give at `tiny`, with all that they check: these are the
    shares times the weights for every buffer that a user accepts.

(e) Who holds the share of the point 0 learns more with the server, and the server alone when two uploads have one
    mask: the paper excludes neither (proofs/vandermonde_code.py, proofs/masks_hide.py).

Idea. The encoder, the masking function and the weighted sum that answers are made with are run on basis vectors, and
the rank criterion of proofs/rank_criterion.py decides each view exactly. Fewer answers never tell more. (a) to (c) do
so over small fields, with weights that no user of BASecAgg would accept; (d) runs the whole function that answers. A
weight that is not 0 scales an update and its mask, so that one choice of weights stands for all others in (d). For
three users over F_5, and two over F_3, all updates, masks and noise are counted besides.

For all codes. (a) Tell the coalition more: its shares of all masks, as of T users. By proofs/vandermonde_code.py they
are uniform and independent of the masks, and with them each mask determines its noise. So the answers, which are shares
of sum w_i z_i with the noise sum w_i n_i, tell no more than sum w_i z_i. The uploads of honest users are then
y_i = x_i + z_i with masks that are uniform, independent and known in sum w_i z_i only: they tell sum w_i x_i. (b) The
shares of T + 1 users tell a combination of the sub-masks of each user, so of the update of each contributor; with two
honest ones these are not functions of the sum. (c) Two sums over the honest users, one with the weights w_i and one
with 1, are one up to a factor exactly when the w_i are equal, and equal weights that are 0 tell nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy import basecagg as model
from secagg_spec.privacy.probe import AffineMap, probe
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.privacy.views import Forms, Space, View
from secagg_spec.protocols.basecagg import round as basecagg

CLAIMS = {
    "BAS-TPRIV": "matrices",
    "BAS-PRIV": "matrices",
}

PARAMETERS = ((5, 3, 2, 1), (5, 4, 2, 1), (5, 4, 3, 1), (7, 4, 3, 2), (7, 4, 4, 3), (7, 5, 3, 2))
"""(q, N, U, T), with the points 1 to N."""

DEFINITION = ((5, 3, 2, 1, (1, 2, 3, 4, 0)), (5, 4, 2, 1, (1, 2, 0)))
"""(q, N, U, T) and the weights that are tried for (c)."""

Users = tuple[int, ...]


def subsets(users: range, least: int, most: int) -> Iterator[Users]:
    """Yield the sets of users with at least and at most so many members."""
    for size in range(least, most + 1):
        yield from combinations(users, size)


class Buffer:
    """One column of a full buffer: each user's update in U - T elements, masked; its mask, shared at the points 1 to N.

    With `points`, shares are those of eq. (6) at these; with `twice`, user 1 has the mask of user 0, as one user would
    that uploads twice under one mask.
    """

    def __init__(self, q: int, N: int, U: int, T: int, points: Users = (), twice: bool = False) -> None:
        self.field, size = PrimeField(q), U - T
        code = MaskCode(self.field, N, U, T)
        masking = probe(self.field, lambda v: basecagg.mask_update(self.field, 1, v[:size], v[size:]), 2 * size)
        columns = self.field.powers(np.array(points or (1,), dtype=np.uint64), U)

        def encode(v: UintArray) -> UintArray:
            if points:
                return self.field.weighted_sum(v, columns)
            return code.encode(v[:size], v[size:].reshape(T, 1))[:, 0]

        encoding = probe(self.field, encode, U)
        self.space, self.users, self.size = Space(self.field), range(N), size
        masks = [self.space.drawn("mask", 0 if twice and i == 1 else i, size) for i in self.users]
        self.weighting = cache(self._weighting)
        self.updates = [self.space.secret("x", i, range(size)) for i in self.users]
        self.uploads = [self.space.apply(masking, self.updates[i], masks[i]) for i in self.users]
        noise = [self.space.drawn("noise", 0 if twice and i == 1 else i, T) for i in self.users]
        self.shares = [self.space.apply(encoding, *both) for both in zip(masks, noise, strict=True)]

    def weighted(self, parts: list[Forms], weights: Users) -> Forms:
        """Return the sum of parts of equal length, each times its weight."""
        return self.space.apply(self.weighting(weights, len(parts[0])), *parts)

    def _weighting(self, weights: Users, length: int) -> AffineMap:
        """Probe the function that answers and sums are made with."""
        factors = np.array(weights, dtype=np.uint64)

        def weigh(v: UintArray) -> UintArray:
            return self.field.weighted_sum(factors, v.reshape(-1, length))

        return probe(self.field, weigh, len(weights) * length, name="weighted_sum")

    def decide(self, coalition: Users, buffer: Users, weights: Users, allowed: Users | None = None) -> Verdict:
        """Return what the server and a coalition learn beyond the sum with the weights `allowed` (the same ones)."""
        view = View(self.space, coalition)
        view.see(*(self.uploads[i] for i in buffer))
        view.see(*(self.shares[i].row(j) for i in self.users for j in coalition if i not in coalition))
        for j in self.users:
            view.see(self.weighted([self.shares[i].row(j) for i in buffer], weights))
        return view.decide(self.weighted([self.updates[i] for i in buffer], weights if allowed is None else allowed))


def prove(report: Report) -> dict[str, Finding]:
    """Decide every coalition, every buffer and several weights."""
    found = {"BAS-TPRIV": coalitions(report), "BAS-PRIV": definition(report)}
    running(report)
    counted(report)
    return found


def several_weights(buffer: Users) -> Iterator[Users]:
    """Yield equal weights, ascending ones, and, where there are two users, one that is 0."""
    count = len(buffer)
    yield (1,) * count
    if count > 1:
        yield tuple(range(1, count + 1))
        yield (0, *range(1, count))


def coalitions(report: Report) -> Finding:
    """Decide (a) and (b)."""
    tally, tight, withheld = beyond_the_paper(report), 0, 0
    for q, N, U, T in PARAMETERS:
        column = Buffer(q, N, U, T)
        for buffer in subsets(range(N), 1, N):
            for weights in several_weights(buffer):
                for coalition in subsets(range(N), 0, T + 1):
                    verdict = column.decide(coalition, buffer, weights)
                    case = {"q": q, "N": N, "U": U, "T": T, "buffer": list(buffer), "weights": list(weights)}
                    case |= {"coalition": list(coalition), "learned": list(verdict.functionals)}
                    withheld += verdict.withheld != 1
                    honest = [i for i, w in zip(buffer, weights, strict=True) if i not in coalition and w]
                    if len(coalition) <= T:
                        tally.add(case, verdict.private)
                    elif len(honest) >= 2:
                        tight += 1
                        report.check(not verdict.private, f"T + 1 users learn more: {case}")
    report.check(tight > 0, "T + 1 users were tried")
    report.check(withheld == 0, "the weighted sum itself is always learned")
    report.say(f"at most T users: exactly the weighted sum in {tally.held} of {tally.met} views under the condition")
    report.say(f"T + 1 users with two honest contributors: more in {tight} of {tight} views")
    return Finding(tally.verdict, "nothing beyond the weighted sum; T + 1 users learn more", tally.against)


def beyond_the_paper(report: Report) -> Tally:
    """Decide (e) for the smallest code: the point 0, and one mask for two uploads, which the paper leaves open."""
    tally, (q, N, U, T) = Tally(), PARAMETERS[0]
    for points, twice in (((0, 1, 2), False), ((1, 2, 3), True), ((1, 2, 3), False)):
        column = Buffer(q, N, U, T, points, twice)
        for coalition in subsets(range(N), 0, T):
            verdict = column.decide(coalition, tuple(range(N)), (1,) * N)
            case = {"q": q, "N": N, "U": U, "T": T, "points": list(points), "masks": "twice" if twice else "own"}
            case |= {"coalition": list(coalition), "learned": list(verdict.functionals)}
            if twice and {0, 1} & {*coalition}:  # these two are one user
                continue
            faulty = twice or any(points[user] == 0 for user in coalition)
            report.check(verdict.private != faulty, f"(e) more is learned exactly then: {case}")
            tally.add(case, verdict.private, condition=0 not in points and not twice)
    return tally


def definition(report: Report) -> Finding:
    """Decide (c): the same views against the unweighted sum, with all users in the buffer."""
    tally = Tally()
    for q, N, U, T, choices in DEFINITION:
        column, everyone = Buffer(q, N, U, T), tuple(range(N))
        for weights in product(choices, repeat=N):
            for coalition in subsets(range(N), 0, T):
                verdict = column.decide(coalition, everyone, weights, (1,) * N)
                honest = {w for i, w in enumerate(weights) if i not in coalition}
                case = {"q": q, "N": N, "U": U, "T": T, "weights": list(weights), "coalition": list(coalition)}
                case |= {"learned": list(verdict.functionals)}
                condition = len(honest) == 1 or N - len(coalition) == 1
                tally.add(case, verdict.private, condition=condition)
    report.check(tally.exact, "the definition is met exactly when the honest users have one weight")
    report.say(f"the paper's definition, with the unweighted sum: met in {tally.held} of {tally.cases} views")
    return Finding(tally.verdict, "with different weights the server learns the weighted sum besides", tally.against)


def running(report: Report) -> None:
    """Decide (d)."""
    p = basecagg.PRESETS["tiny"]
    accepted = list(model.every_buffer(p))
    report.check(all(model.scales(p, buffer) for buffer in accepted), "answers are shares times weights")
    report.say(f"answers are shares times weights for each of {len(accepted)} buffers that users of `tiny` accept")
    buffers = [model.varied(p, users) for users in model.every_user_set(p)]
    cases = list(model.audit(p, p.code, list(model.every_coalition(p, p.T + 1)), buffers))
    for case in cases:
        more = len(case.coalition) > p.T and len(case.contributors) >= 2
        shown = f"{list(case.coalition)}, {list(case.buffer.users)}"
        report.check((case.excess > 0) == more, f"more is learned by T + 1 users only, and by them: {shown}")
        report.check(case.verdict.private or len(case.coalition) > p.T, f"nothing more, whatever came besides: {shown}")
        report.check(case.verdict.withheld == 1, f"the weighted sum is learned: {shown}")
    report.say(f"the function that answers at `tiny`: as (a) and (b) say in {len(cases)} of {len(cases)} views")


# ------------------------------------------------------------------------------------- by counting, without the code


def counted(report: Report) -> None:
    """Decide codes with U = 2, T = 1 and one element by counting all updates, masks and noise: 5^9 and 3^6 cases."""
    three, two = Counted(5, 3), Counted(3, 2)
    weighted = [three.told_nothing(coalition, (1, 1, 2), (1, 1, 2)) for coalition in ((), (0,))]
    report.agree("BAS-TPRIV", "enumeration", all(weighted), "the view fits every x with the weighted sum equally often")
    plain = [two.told_nothing((), weights, (1, 1)) for weights in ((1, 2), (1, 1))]
    report.agree("BAS-PRIV", "enumeration", plain == [False, True], "given the plain sum, only with equal weights")


class Counted:
    """All updates x, masks z and noise n of N users, one element each, with a row for each user."""

    def __init__(self, q: int, N: int) -> None:
        self.q, self.N = q, N
        self.x, self.z, self.n = np.indices((q,) * (3 * N), dtype=np.int64).reshape(3, N, -1)

    def number(self, *rows: np.ndarray) -> np.ndarray:
        """Return one number for the residues in each column of some rows."""
        total = np.zeros_like(rows[0])
        for row in rows:
            total = self.q * total + np.divmod(row, self.q)[1]
        return total

    def seen(self, coalition: Users, weights: Users) -> np.ndarray:
        """Return the view as a number: uploads, the answers of all users, and what the coalition holds."""
        shares = [self.z + j * self.n for j in range(1, self.N + 1)]
        answers = [np.array(weights) @ row for row in shares]
        held = [row for c in coalition for row in (self.x[c], self.z[c], self.n[c], *shares[c])]
        return self.number(*(self.x + self.z), *answers, *held)

    def told_nothing(self, coalition: Users, weights: Users, allowed: Users) -> bool:
        """Return whether the view fits equally often every x with the same sum, with the weights `allowed`."""
        secret, size = self.number(*self.x), self.q**self.N
        known = self.number(np.array(allowed) @ self.x, *(self.x[c] for c in coalition))
        pairs, often = np.unique(self.seen(coalition, weights) * size + secret, return_counts=True)
        whose = known[np.unique(secret, return_index=True)[1]]
        views, secrets = np.divmod(pairs, size)
        fitting = np.unique(views * size + whose[secrets], return_counts=True)[1]
        return bool((often == often[0]).all() and (fitting * np.unique(whose).size == size).all())
