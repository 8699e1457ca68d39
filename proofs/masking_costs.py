"""What masking by cells costs beside masking among all users, and the numbers of HeteroSAg on it.

Statement. An element that |S| users mask together takes ceil(log2(|S|(K - 1) + 1)) bits, one in clear ceil(log2 K).
(a) The expansion is the quotient of the two. For 1024 users and K = 65536 it is 13/8 for SecAgg; for nbar = 8 it is 5/4
    in cells of two subgroups and 19/16 in cells of one. With K = 2 it is 11, 5 and 4. So 1.25 is for the 2 nbar users
    of a pair and "4" for the nbar users of a subgroup alone: with one |S| for both they are 1.25 and 5, or 1.1875 and
    4. A user is alone in one segment of Z = 128, and its expansion with K = 2 is 639/128 in all. Pairs of subgroups
    have 4 with nbar from 4 to 7.
(b) A user of equal subgroups expands nbar - 1 pairwise masks for the elements of one segment and 2 nbar - 1 for those
    of each other one, N - 1 in SecAgg; with its own mask 2 nbar at most, so O(m nbar) elements, and O(m log N) only
    when nbar is in O(log N). It derives (2 Z - 1) nbar keys, less than 2 N.
(c) The server, with D dropped users, expands at most (1 + D) N masks of m elements in SecAgg, and less here: only pairs
    in one cell count. With one user of each subgroup dropped it is (3 Z - 1)/(Z (Z + 1)) of SecAgg, which goes to 0
    when Z grows. So "the same" is right as an upper bound, and not as an order.
(d) A user sends O(m) bits for constant K and nbar, and no more than in SecAgg with the same levels, since |S| <= N.
    Table 3 gives both protocols O(N + m): what is lower is the number of bits, not the complexity.
(e) "R = |x| log(|S|(K - 1) + 1) bits" without rounding up is less than any encoding element by element has, unless the
    modulus is a power of 2; R is also the name of the modulus.

(f) SecAgg adds log2 N bits to each element, to within less than one bit, whatever K is: a sum has
    floor(log2 N + log2(K - 1)) + 1 bits, and an element floor(log2(K - 1)) + 1.
(g) Cutting all subgroups into as many parts never makes a user's expansion larger: cells of two parts are no larger
    than a subgroup before, and with equal segments a user quantises the same share of elements with each K. Cutting
    some groups only can: more segments fall to lower levels, and a group that is not cut meets more others.
(h) Keys and shares cost the same bytes as in SecAgg, and the same with all levels.

Idea. The counts of the reference, which its tests hold against the rounds that it runs. Plans of 2 to 8 equal
subgroups are counted, formulas for up to 600 users and 40 levels. For (h) whole rounds are run, and the bytes of
messages added up. (b) and (c) hold for all plans since each subgroup is alone once and each two are together once, and
a cell is a part of all users; (b) and the sizes of (a) are counted in another way as well, by the sums that a cell can
have.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import ceil, log2

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.packing import bits_of
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.privacy.heterosag import Plan
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import costs
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Event, Randomness

CLAIMS = {
    "HET-BWF": "enumeration",
    "HET-BW1": "arithmetic",
    "HET-BW2": "arithmetic",
    "HET-BW3": "arithmetic",
    "HET-PROP2": "enumeration",
    "HET-PROP2S": "enumeration",
    "HET-LOGN": "enumeration",
    "HET-TAB3C": "readings",
    "HET-BITS": "readings",
    "HET-OLOG": "enumeration",
    "HET-EXPL": "enumeration",
    "HET-KEYS": "enumeration",
}
N, NBAR = 2**10, 8


def equal(n: int, Z: int, d: int, K: int = 2) -> Parameters:
    """Return a plan of Z subgroups of n users with one number of levels."""
    return Parameters(n * Z, 1, 1, 3, d, (n * Z,), (Z,), (K,), Range(-1.0, 1.0), "cyclic")


def prove(report: Report) -> dict[str, Finding]:
    """Decide all of it."""
    return {
        **bandwidth(report),
        "HET-PROP2": user(report),
        "HET-PROP2S": server(report),
        "HET-LOGN": logarithm(report),
        "HET-TAB3C": bits(report),
        "HET-BITS": rounding(report),
        "HET-OLOG": added_bits(report),
        "HET-EXPL": partition(report),
        "HET-KEYS": keys(report),
    }


def bandwidth(report: Report) -> dict[str, Finding]:
    """Decide (a)."""
    tally = Tally()
    for users, K in product(range(1, 40), range(2, 40)):
        quotient = Fraction((users * (K - 1)).bit_length(), (K - 1).bit_length())
        tally.add({"S": users, "K": K}, costs.bandwidth_expansion(users, K) == quotient)
    many = {users: costs.bandwidth_expansion(users, 2**16) for users in (NBAR, 2 * NBAR, N)}
    one = {users: costs.bandwidth_expansion(users, 2) for users in (NBAR, 2 * NBAR, N)}
    for K, found in ((2**16, many), (2, one)):
        report.say(f"K = {K}: " + ", ".join(f"{value} for {users} users" for users, value in found.items()))
    whole = costs.user_expansion(equal(NBAR, N // NBAR, N // NBAR), 0)
    report.say(f"one bit, all segments of a user: {whole}")
    report.check(whole == Fraction(639, 128), "(a) the average of a user")
    report.check(one[N] == 11, "(a) 11 for SecAgg")
    four = [n for n in range(2, N) if costs.bandwidth_expansion(2 * n, 2) == 4]
    report.check(four == [4, 5, 6, 7], "(a) pairs with an expansion of 4")
    both = [users for users in (NBAR, 2 * NBAR) if (many[users], one[users]) == (Fraction(5, 4), Fraction(4))]
    report.check(not both, "(a) no one size of cells gives 1.25 and 4")
    printed = (many[2 * NBAR], many[N]) == (Fraction(5, 4), Fraction(13, 8))
    numbers = {"one subgroup": str(many[NBAR]), "two subgroups": str(many[2 * NBAR]), "SecAgg": str(many[N])}
    at_most_four = all(value <= 4 for users, value in one.items() if users < N)
    case = {"S": 2 * NBAR, "bits": int(one[2 * NBAR])}
    of_one_bit = {"one subgroup": int(one[NBAR]), "two subgroups": int(one[2 * NBAR]), "SecAgg": int(one[N])}
    values = {sum(bits) for bits in combinations_with_replacement((0, 1), 2 * NBAR)}
    counted = 2**4 < len(values) <= 2**5
    report.agree(("HET-BW2", "HET-BW3"), "enumeration", counted, "16 bits have 17 sums, which 4 bits do not tell apart")
    single = Finding("confirmed" if at_most_four else "refuted", "5 for a pair of subgroups", case, of_one_bit)
    return {
        "HET-BWF": Finding(tally.verdict, "the quotient of the bits", tally.against),
        "HET-BW1": Finding("confirmed" if printed else "refuted", "1.25 and 1.625", None, numbers),
        "HET-BW2": single,
        "HET-BW3": single,
    }


def user(report: Report) -> Finding:
    """Decide (b)."""
    tally = Tally()
    for n, Z in product((3, 4, 8), (2, 3, 4, 5, 8)):
        p = equal(n, Z, 3 * Z)
        for who in (0, n * Z - 1):
            found, masked = costs.user_masks(p, who), [cost.users - 1 for cost in costs.segment_costs(p, who)]
            pairwise = sorted(masked) == [n - 1] + [2 * n - 1] * (Z - 1)
            own = found.elements == sum((others + 1) * 3 for others in masked) <= 2 * n * p.d
            fewer = found.elements <= costs.secagg_user_masks(p.d, p.N).elements
            tally.add({"nbar": n, "Z": Z}, pairwise and own and fewer)
            report.check(found.masks == (2 * Z - 1) * n < 2 * p.N, "(b) a key for each mask of each segment")
    for n, Z in product((3, 4), (2, 3)):
        plan, everyone = Plan(equal(n, Z, Z)), tuple(range(n * Z))
        sent = [plan.element(cell, everyone).masked[0] for cell in plan.parameters.parts if 0 in cell.members]
        others = sorted(len(form.symbols) - 2 for form in sent)
        right = others == [n - 1, *(2 * n - 1 for _ in range(1, Z))]
        report.agree("HET-PROP2", "matrices", right, f"(b) the masks in what user 0 sends: {n}, {Z}")
    report.say(f"masks of a user: nbar - 1 or 2 nbar - 1 in {tally.held} of {tally.cases} plans")
    return Finding(tally.verdict, "O(m nbar) elements, in 2 N keys at most", tally.against)


def server(report: Report) -> Finding:
    """Decide (c), with one user of each subgroup dropped, by readings: an upper bound, and the order."""
    tally, same, numbers = Tally(), Tally(), dict[str, int]()
    z = package("sympy").Symbol("z", positive=True)
    fewer = package("sympy").factor(z * (z + 1) - (3 * z - 1)) == (z - 1) ** 2
    report.agree("HET-PROP2S", "symbolic", fewer, "(c) (3Z - 1)/(Z(Z + 1)) is below 1 for all Z but 1")
    vanishes = bool(package("sympy").limit((3 * z - 1) / (z * (z + 1)), z, package("sympy").oo) == 0)
    for n, Z in product((4, 8), (2, 3, 5, 8)):
        p = equal(n, Z, Z)
        survivors = [user for user in range(p.N) if user % n]
        found, whole = costs.server_masks(p, survivors).elements, len(survivors) * (1 + Z) * p.d
        tally.add({"nbar": n, "Z": Z, "elements": found, "SecAgg": whole}, found <= whole)
        same.add({"nbar": n, "Z": Z, "elements": found, "SecAgg": whole}, not vanishes)
        share = Fraction(3 * Z - 1, Z * (Z + 1))
        report.check(
            Fraction(found, whole) == share, "(c) a survivor's own mask, and those of one or two dropped users"
        )
        numbers = numbers or {f"elements, nbar = {n}, Z = {Z}": found, "elements, SecAgg": whole}
        report.say(f"nbar = {n}, Z = {Z}: the server expands {found} elements, in SecAgg {whole}")
    return Finding(by_reading((tally, same)), "the same as an upper bound, and not as an order", same.against, numbers)


def logarithm(report: Report) -> Finding:
    """Decide the second half of (b): elements over m log2 N, for subgroups of log2 N users and for two subgroups."""
    tally = Tally()
    for k in (4, 5, 6, 7, 8, 9):
        for of, n in (("halves", 2 ** (k - 1)), ("log2 N", k)):
            Z = -(-(2**k) // n)
            p = equal(n, Z, Z)
            ratio = Fraction(costs.user_masks(p, 0).elements, p.d) / k
            if of == "log2 N":
                tally.add({"N": p.N, "nbar": n, "elements over m log2 N": str(ratio)}, ratio <= 2)
            report.check((ratio <= 2) == (of == "log2 N"), f"(b) more for two subgroups: {p.N, n}")
    sympy = package("sympy")
    n, Z, N_ = sympy.symbols("n Z N", positive=True)
    share = (n + (Z - 1) * 2 * n) / Z
    below = sympy.expand(2 * n - share - n / Z) == 0
    halves = sympy.limit(share.subs({n: N_ / 2, Z: 2}) / sympy.log(N_, 2), N_, sympy.oo) == sympy.oo
    report.agree("HET-LOGN", "symbolic", bool(below and halves), "(b) n/Z below 2n for all; for halves without end")
    report.say(f"at most 2 m log2 N elements in {tally.held} of {tally.cases} plans with nbar = log2 N")
    return Finding(tally.verdict, "for nbar in O(log N)", tally.against)


def bits(report: Report) -> Finding:
    """Decide (d), by readings: fewer bits, and a lower order."""
    never_more, fewer, ratios = True, 0, []
    for n, Z, K in product((3, 8), (2, 3, 5, 8), (2, 6, 2**16)):
        p = equal(n, Z, 5 * Z, K)
        found, whole = costs.masked_bits(p, 0), costs.secagg_bits(p.d, p.N, K)
        never_more, fewer = never_more and found <= whole, fewer + (found < whole)
    for m in (2**k for k in range(5, 15)):
        ratios.append(Fraction(costs.masked_bits(equal(3, 5, m), 0), costs.secagg_bits(m, 15, 2)))
    report.check(never_more and fewer > 0, "(d) never more bits than SecAgg")
    order = all(Fraction(1, 2) < ratio < 1 for ratio in ratios)
    report.say(f"bits over those of SecAgg, m from 32 to 16384: {float(min(ratios)):.3f} to {float(max(ratios)):.3f}")
    report.check(order, "(d) a constant factor, for all m")
    return Finding("imprecise" if never_more and order else "refuted", "fewer bits, the same complexity")


def added_bits(report: Report) -> Finding:
    """Decide (f)."""
    tally = Tally()
    for users, K in product(range(1, 601), range(2, 41)):
        added = (users * (K - 1)).bit_length() - (K - 1).bit_length()
        tally.add({"N": users, "K": K, "added": added}, -1 < added - log2(users) < 1)
        whole = users < 2 ** (added + 1) and 2**added < 2 * users
        report.agree("HET-OLOG", "arithmetic", whole, f"(f) without a logarithm: {users, K}")
    worst = costs.secagg_bits(1, N, 2) - 1
    report.check(worst == 10, "(f) ten bits more for 1024 users and one bit")
    report.say(f"SecAgg adds log2 N bits, to within one, in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "log2 N, to within one bit", tally.against)


def partition(report: Report) -> Finding:
    """Decide (g), for groups with levels of their own, cut alike and cut differently."""
    tally = Tally()
    for G, n, matrix in product((2, 3, 5), (12, 24), ("cyclic", "perfect")):
        for before, after in ((1, 2), (2, 4)):
            cut(tally, (n,) * G, (before,) * G, (after,) * G, matrix)
    for matrix in ("cyclic", "perfect"):
        for subgroups in product((1, 2), repeat=3):
            cut(tally, (12, 6, 6), (1, 1, 1), subgroups, matrix)
    report.say(f"smaller subgroups, no larger expansion: {tally.held} of {tally.cases} users")
    return Finding(tally.verdict, "cells become smaller, if all groups are cut into equally many", tally.against)


def cut(tally: Tally, groups: tuple[int, ...], fewer: tuple[int, ...], L: tuple[int, ...], matrix: str) -> None:
    """Compare the expansion of each group's users when groups are cut into L subgroups with that before."""
    N, levels = sum(groups), (2, 6, 8, 10, 12)[: len(groups)]
    for group in range(len(groups)):
        user = sum(groups[:group])
        before, after = (
            costs.user_expansion(
                Parameters(N, 1, 1, 3, 12 * len(groups), groups, parts, levels, Range(-1.0, 1.0), matrix), user
            )
            for parts in (fewer, L)
        )
        case = {"groups": list(groups), "L": list(L), "levels": list(levels), "matrix": matrix, "group": group}
        tally.add({**case, "expansion": [str(before), str(after)]}, after <= before, condition=len(set(L)) == 1)


def keys(report: Report) -> Finding:
    """Decide (h) for rounds of twelve users."""
    plain = secagg.Parameters(R=61, N=12, D=1, T=1, t=3, k=11, d=6)
    alone = key_bytes(
        secagg.run_round(
            plain, np.zeros((12, 6), np.uint64), randomness=drawn(plain), session=bytes(16), round=0
        ).transcript
    )
    tally = Tally()
    for K, matrix in product(((2, 2), (2, 6), (9, 9)), ("cyclic", "perfect")):
        p = Parameters(12, 1, 1, 3, 6, (6, 6), (1, 2), K, Range(-1.0, 1.0), matrix)
        found = key_bytes(
            heterosag.run_round(
                p, np.zeros((12, 6), np.uint64), randomness=drawn(p), session=bytes(16), round=0
            ).transcript
        )
        tally.add({"K": list(K), "matrix": matrix, "bytes": found, "SecAgg": alone}, found == alone)
    report.say(f"keys and shares of a round of 12 users take {alone} bytes, in SecAgg and in HeteroSAg")
    return Finding(tally.verdict, "the same messages", tally.against, {"bytes": alone})


def drawn(p: secagg.Numbers) -> dict[int, Randomness]:
    """Return the sampled values of each user, from a fixed stream."""
    return secagg.draw_randomness(p, {user: SeededSource(b"costs", f"{user}") for user in range(p.N)})


def key_bytes(transcript: Iterable[Event]) -> int:
    """Return the bytes of all messages but those with masked inputs."""
    sent = [message for event in transcript for message in event.sent]
    masked = (secagg.MaskedInput, heterosag.MaskedSegments)
    return sum(len(encode(message)) for message in sent if not isinstance(message, masked))


def rounding(report: Report) -> Finding:
    """Decide (e)."""
    tally, up = Tally(), Tally()
    for users, K in product(range(2, 20), range(2, 20)):
        R = costs.sum_modulus(users, K)
        exact = R & (R - 1) == 0
        fits = 2 ** (bits_of(R) - 1) < R <= 2 ** bits_of(R) and (2 ** bits_of(R) == R) == exact
        report.agree("HET-BITS", "arithmetic", fits, f"(e) the least power of 2 that has R values: {R}")
        tally.add({"S": users, "K": K, "bits": bits_of(R)}, bits_of(R) == log2(R))
        up.add({"S": users, "K": K, "bits": bits_of(R)}, bits_of(R) == ceil(log2(R)))
        report.check((bits_of(R) == log2(R)) == exact, f"(e) not rounded up it is right for powers of 2 only: {R}")
    report.say(f"log2 R is the number of bits in {tally.held} of {tally.cases} cases: for powers of 2")
    return Finding(by_reading((tally, up)), "rounded up for each element", tally.against)
