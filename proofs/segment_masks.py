"""A segment is masked and unmasked by its cell as a vector is by all users; the sign of (10) is wrong, as that of (5).

Statement.
(a) Equation (9). In segment 0 of figure 2 the users of groups 0 and 1 are a cell: they quantise with K_0 levels and
    mask modulo R = 2n(K_0 - 1) + 1. Their sum takes each value from 0 to R - 1, so that none overflows, and in this
    case no smaller modulus does. Each cell of the figure has |S|(K - 1) + 1 with the K of its smaller group.
(b) Equation (10). With the sign minus in front of the sum over dropped users masks remain in each case in which a user
    of the cell dropped and another did not; with plus none. R = 2n(K_0 - 1) + 1 is odd, so that 2 s_ij = 0 modulo R for
    s_ij = 0 only.
(c) Appendix A: with N = 3, D = 1 and a threshold of 2 the server recovers b_2, b_3 and the key of user 1 from users 2
    and 3, when each user keeps a share of its own seed. "Shares with the other users" alone leaves one share of b_2.
(d) The threshold of step 2, ceil(N/2) + 1 = 3, is one that two survivors cannot meet.

Idea. All survivors, of cells of two groups with one to three users and two or three levels, in the functions of the
reference: on coefficients, where each input and mask is one element of a vector, so that equality holds for all of
them, and again with numbers from a fixed stream. For cells of any size (b) is that of proofs/pairwise_masks.py. And
all holders of shares.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.segments import cyclic
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg import round as secagg

CLAIMS = {
    "HET-EQ9": "enumeration",
    "HET-EQ10": "matrices",
    "HET-APPA2": "enumeration",
}
LEVELS = (2, 6, 8, 10, 12)
ELEMENTS = 8


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    return {"HET-EQ9": segment(report), "HET-EQ10": signs(report), "HET-APPA2": threshold(report)}


def segment(report: Report) -> Finding:
    """Decide (a) for 3 to 5 users in each group."""
    tally = Tally()
    report.check(cyclic(5)[0] == ((0, 1), (2, 4), (3,)), "(a) row 0 of figure 2 is 0 0 2 * 2")
    for n in (3, 4, 5):
        p = Parameters(5 * n, 1, 1, 3, 5, (n,) * 5, (1,) * 5, LEVELS, Range(-1.0, 1.0), "cyclic")
        for cell in p.parts:
            K, R = LEVELS[min(cell.subgroups)], len(cell.members) * (LEVELS[min(cell.subgroups)] - 1) + 1
            fits = (cell.levels, cell.ring.modulus, len(cell.members)) == (K, R, n * len(cell.subgroups))
            tally.add({"n": n, "segment": cell.segment, "cell": list(cell.subgroups)}, fits)
        first = p.parts[0]
        report.check(sorted(first.members) == list(range(2 * n)), "(a) the first cell is groups 0 and 1")
        report.check(first.ring.modulus == 2 * n * (LEVELS[0] - 1) + 1, "(a) its modulus is 2n(K_0 - 1) + 1")
    sums = {sum(x) for x in product(range(LEVELS[0]), repeat=4)}
    report.check(sums == set(range(4 * (LEVELS[0] - 1) + 1)), "(a) the sum takes each value below R")
    report.say(f"the moduli of figure 2: as stated in {tally.held} of {tally.cases} cells")
    return Finding(tally.verdict, "S = S_0 and S_1, R = 2n(K_0 - 1) + 1", tally.against)


def signs(report: Report) -> Finding:
    """Decide (b) for cells of two groups with up to three users."""
    held = {"plus": 0, "minus": 0}
    case: dict[str, object] = {}
    sets = 0
    for n, K in product((1, 2, 3), (2, 3)):
        ring, users = Ring(2 * n * (K - 1) + 1), range(2 * n)
        report.check(ring.modulus % 2 == 1, "(b) the modulus of two groups is odd")
        for size in range(1, 2 * n):
            for survivors in combinations(users, size):
                right = recovered(ring, basis(users), users, survivors)
                drawn = recovered(ring, numbers(ring, K, users, survivors), users, survivors)
                report.agree("HET-EQ10", "samples", drawn == right, f"(b) with numbers: {n}, {K}, {survivors}")
                sets += 1
                held["plus"], held["minus"] = held["plus"] + right["plus"], held["minus"] + right["minus"]
                case = case or {"n": n, "K": K, "R": ring.modulus, "dropped": sorted(set(users) - set(survivors))}
    report.say(f"recovery of a segment: with + in {held['plus']} of {sets} cases, with - in {held['minus']}")
    report.check(held["plus"] == sets, "(b) with + the masks cancel")
    verdict = "confirmed" if held["minus"] == sets else "refuted"
    return Finding(verdict, "the sign is +", case, {"sets": sets, **held})


def basis(users: range) -> UintArray:
    """Return inputs, self masks and pairwise masks as the rows of a unit matrix."""
    return np.eye(2 * len(users) + len(list(combinations(users, 2))), dtype=np.uint64)


def numbers(ring: Ring, K: int, users: range, survivors: tuple[int, ...]) -> UintArray:
    """Return inputs, self masks and pairwise masks that are drawn from a fixed stream."""
    source = SeededSource(b"segment", f"{ring.modulus} {survivors}")
    inputs = draw_elements(source, Ring(K), (len(users), ELEMENTS))
    masks = draw_elements(source, ring, (len(basis(users)) - len(users), ELEMENTS))
    return np.concatenate([inputs, masks])


def recovered(ring: Ring, rows: UintArray, users: range, survivors: tuple[int, ...]) -> dict[str, bool]:
    """Return with which sign the sum over the survivors is recovered."""
    inputs, own = rows[: len(users)], rows[len(users) : 2 * len(users)]
    shared = dict(zip(combinations(users, 2), rows[2 * len(users) :], strict=True))
    masks = {(i, j): shared[min(i, j), max(i, j)] for i, j in product(users, repeat=2) if i != j}
    sent = [
        secagg.mask_update(ring, i, inputs[i], own[i], [(j, masks[i, j]) for j in users if j != i]) for i in survivors
    ]
    left = [(i, j, masks[i, j]) for i in users if i not in survivors for j in survivors]
    opposite = [(j, i, mask) for i, j, mask in left]
    total, kept = ring.sum(np.stack(sent)), [own[i] for i in survivors]
    wanted = ring.sum(inputs[list(survivors)])
    return {
        "plus": same(secagg.unmask(ring, total, kept, left), wanted),
        "minus": same(secagg.unmask(ring, total, kept, opposite), wanted),
    }


def same(left: UintArray, right: UintArray) -> bool:
    """Return whether two vectors are equal."""
    return bool(np.array_equal(left, right))


def two_of_three() -> bool:
    """Return whether any two of three shares give a secret back, and one of them is that of another secret too."""
    users, secret = (0, 1, 2), bytes(range(32))
    shares = dict(zip(users, shamir.share(secret, [5], users), strict=True))
    two = [shamir.reconstruct(2, held, [shares[user] for user in held]) for held in combinations(users, 2)]
    other = shamir.share(bytes([1, *secret[1:]]), [4], users)
    return set(two) == {secret} and other[0] == shares[0]


def threshold(report: Report) -> Finding:
    """Decide (c) and (d) for the example, by who holds which shares."""
    N, D, readings = 3, 1, {True: Tally(), False: Tally()}
    users, high = tuple(range(1, N + 1)), (N + 1) // 2 + 1
    for keeps_own, t in product((False, True), (N - D, high)):
        for dropped in users:
            present = set(users) - {dropped}
            held = {owner: present & (set(users) if keeps_own else set(users) - {owner}) for owner in users}
            enough = all(len(holders) >= t for holders in held.values())
            if t != high:
                case = {"dropped": dropped, "shares": {f"b_{owner}": len(held[owner]) for owner in sorted(present)}}
                readings[keeps_own].add(case, enough)
            else:
                report.check(not enough, "(d) two survivors cannot meet ceil(N/2) + 1")
    report.agree("HET-APPA2", "samples", two_of_three(), "(c) two shares of the reference give a secret, one does not")
    for keeps_own, tally in readings.items():
        report.say(
            f"a share of one's own: {keeps_own}: two survivors recover all in {tally.held} of {tally.cases} cases"
        )
    return Finding(by_reading(readings.values()), "two shares, with each user's own", readings[False].against)
