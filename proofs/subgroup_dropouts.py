"""One survivor of a subgroup: n (1 - p) p^(n - 1) is the probability for a given subgroup, not for any of them.

Statement, for users that drop out with the probability p each, independently.
(a) Exactly one of the n users of a given subgroup survives with the probability n (1 - p) p^(n - 1).
(b) That is so in at least one of Z subgroups with the probability 1 - (1 - n (1 - p) p^(n - 1))^Z.
(c) Some user has a segment in clear exactly when a subgroup has one survivor, for every matrix in which each subgroup
is alone once: a cell of two subgroups with one survivor has one subgroup with one.
(d) In SecAgg, which ends only with t survivors, nobody has: the probability is 0. In HeteroSAg it is not, unless users
refuse such rounds (HSA-17, HSA-18), and goes to 0 as n grows. With q for (12) it does so exactly when Z q does: for
fixed Z, or Z = n^2, as n grows, and with p; not for subgroups of 8 users as Z grows, where it goes to 1, nor for Z =
1/q, where it goes to 1 - 1/e however large n is.

(e) (12) goes to 0 with p, for subgroups of two users or more, and as n grows, for every p below 1. It need not fall at
once: from n to n + 1 it grows as long as p > n/(n + 1).

Idea. Every set of survivors is counted, with fractions, for up to five subgroups of two to four users and p = 1/10,
1/3 and 3/4; for others since users, and so subgroups, drop out independently. With a symbol for p the same counts are
polynomials. For (d) rounds of SecAgg with five users run with each number of survivors; the limits are those of
1 - exp(Z log(1 - q)), which goes to 0 exactly when Z q does, as q <= -log(1 - q) <= q/(1 - q).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from secagg_spec.arithmetic import segments
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.privacy import heterosag_odds as odds
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, run_synchronous

CLAIMS = {
    "HET-THM3": "expectation",
    "HET-REM5": "arithmetic",
    "HET-TAB3D": "symbolic",
    "HET-REM5L": "symbolic",
}
SIZES = ((1, 2), (2, 2), (3, 2), (4, 2), (3, 3), (2, 4), (5, 2))
UPLOAD = "masked_input"
CHANCES = (Fraction(1, 10), Fraction(1, 3), Fraction(3, 4))


def formula(n: int, p: Fraction) -> Fraction:
    """Return (12) of the paper."""
    return n * (1 - p) * p ** (n - 1)


def polynomials(report: Report) -> Finding:
    """Decide (b) and (e) for all p."""
    sympy = package("sympy")
    p, n = sympy.Symbol("p", positive=True), sympy.Symbol("n", positive=True)
    for subgroups, users in ((1, 2), (2, 2), (3, 2), (2, 3), (2, 4)):
        chance = sum(odds for counts, odds in fates(subgroups, users, p) if 1 in counts)
        left = sympy.expand(chance - (1 - (1 - formula(users, p)) ** subgroups))
        report.agree("HET-THM3", "symbolic", left == 0, f"(b) for all p: Z = {subgroups}, n = {users}")
    ratio = sympy.simplify(formula(n + 1, p) / formula(n, p) - p * (n + 1) / n) == 0
    report.check(ratio, "(e) from n to n + 1 the quotient is p (n + 1)/n, which goes to p")
    report.check(sympy.limit(formula(1, p), p, 0) == 1, "(e) a user alone in a subgroup is left out")
    with_p, found = Tally(), "it goes to 0, for two users or more in a subgroup"
    for users in range(2, 9):
        with_p.add({"n": users, "p": "to 0"}, bool(sympy.limit(formula(users, p), p, 0) == 0))
    many = [sympy.limit(formula(n, sympy.Rational(*given)), n, sympy.oo) for given in ((1, 10), (1, 2), (99, 100))]
    numeric = formula(2000, Fraction(99, 100)) < Fraction(1, 10**6) < formula(100, Fraction(99, 100))
    report.agree("HET-REM5L", "arithmetic", numeric, "(e) for p = 99/100 it is small for 2000 users, not for 100")
    return Finding(with_p.verdict if many == [0, 0, 0] else "refuted", found, with_p.against)


def fates(Z: int, n: int, p: Fraction) -> Iterator[tuple[list[int], Fraction]]:
    """Yield the numbers of survivors of Z subgroups of n users, with the probability, for every set of survivors."""
    for alive in product((0, 1), repeat=Z * n):
        counts = [sum(alive[z * n : z * n + n]) for z in range(Z)]
        yield counts, (1 - p) ** sum(alive) * p ** (Z * n - sum(alive))


def bare(counts: Sequence[int]) -> bool:
    """Return whether some cell of some segment, of either matrix, has one survivor."""
    cells = (cell for name in ("cyclic", "perfect") for row in segments.MATRICES[name](len(counts)) for cell in row)
    return any(sum(counts[z] for z in cell) == 1 for cell in cells)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    any_of_them, given_one = Tally(), Tally()
    for (Z, n), p in product(SIZES, CHANCES):
        chances = list(fates(Z, n, p))
        given = sum(chance for counts, chance in chances if counts[0] == 1)
        some = sum(chance for counts, chance in chances if 1 in counts)
        report.check(given == formula(n, p) == odds.few(n, 2, p), f"(a) Z = {Z}, n = {n}, p = {p}")
        report.check(some == 1 - (1 - formula(n, p)) ** Z, f"(b) Z = {Z}, n = {n}, p = {p}")
        report.check(some == odds.any_of([odds.few(n, 2, p)] * Z), "(b) as the command prints it")
        if Z > 1:
            report.check(all(bare(counts) == (1 in counts) for counts, _ in chances), f"(c) Z = {Z}, n = {n}")
        case = {"Z": Z, "n": n, "p": str(p), "any": str(some), "(12)": str(formula(n, p))}
        any_of_them.add(case, some == formula(n, p))
        given_one.add(case, given == formula(n, p))
        report.check((some == formula(n, p)) == (Z == 1), f"(12) is for one subgroup exactly: Z = {Z}")
    report.say(f"(12) is the probability for any subgroup in {any_of_them.held} of {any_of_them.cases} cases: Z = 1")
    return {
        "HET-THM3": Finding(
            by_reading((any_of_them, given_one)),
            "it is the probability for one given subgroup",
            any_of_them.against,
        ),
        "HET-REM5": remark(report),
        "HET-REM5L": polynomials(report),
        "HET-TAB3D": breach(report),
    }


def remark(report: Report) -> Finding:
    """Decide the number of remark 5: n = 8 and p = 0.1."""
    exact = formula(8, Fraction(1, 10))
    counted = sum(chance for counts, chance in fates(1, 8, Fraction(1, 10)) if counts == [1])
    report.agree("HET-REM5", "enumeration", counted == Fraction(72, 10**8), "all 256 sets of survivors of eight users")
    numbers = {"one given subgroup": str(exact), "any of 20": f"{float(1 - (1 - exact) ** 20):.3g}"}
    return Finding("confirmed" if exact == Fraction("7.2e-7") else "refuted", "72/10^8 exactly", numbers=numbers)


def breach(report: Report) -> Finding:
    """Decide (d): a round of SecAgg that ends, and HeteroSAg by how the number of subgroups grows."""
    tally = Tally()
    for t in (3, 4):
        tally.add({"SecAgg": t}, exposed(report, 5, t, Fraction(1, 10)) == 0)
    for case, holds, rare in growths():
        report.say(f"{case}: the limit of Z q is 0: {rare}")
        report.check(holds == rare, f"(d) it goes to 0 exactly when Z q does: {case}")
        if case["n"] == "grows" and case["Z"] == "3":
            tally.add(case, holds)
    counted = sum(chance for counts, chance in fates(4, 4, Fraction(1, 2)) if 1 in counts)
    kept, fixed = ([some(n, Z or 1 / formula(n, Fraction(1, 2))) for n in (4, 8, 16)] for Z in (None, 3))
    report.check(kept[0] == counted, "(d) for Z = n = 4 and p = 1/2 all sets of survivors are counted")
    agrees = min(kept) > Fraction(63, 100) and fixed[2] < Fraction(1, 10**3) < fixed[1] < fixed[0]
    report.agree("HET-TAB3D", "expectation", agrees, "(d) for 4, 8 and 16 users: Z = 1/q beside Z = 3, p = 1/2")
    report.say(f"it goes to 0 in {tally.held} of {tally.cases} cases")
    many = {"any of 100 with 8 users": f"{float(1 - (1 - formula(8, Fraction(1, 10))) ** 100):.3g}"}
    return Finding(
        tally.verdict, "0 for SecAgg; in HeteroSAg it goes to 0 with the users in each subgroup", tally.against, many
    )


def some(n: int, Z: Fraction | int) -> Fraction:
    """Return the probability for any of Z subgroups of n users that drop out with probability 1/2."""
    return odds.any_of([odds.few(n, 2, Fraction(1, 2))] * int(Z))


def exposed(report: Report, N: int, t: int, p: Fraction) -> Fraction:
    """Return the probability that a round of SecAgg gives the server a sum over one user."""
    sums = {alive for alive in range(N + 1) if gives_sum(N, t, alive)}
    report.check(sums == set(range(t, N + 1)), f"(d) SecAgg ends with t survivors or more: N = {N}, t = {t}")
    refused = sum(chance for counts, chance in fates(1, N, p) if counts[0] not in sums)
    report.check(refused == odds.few(N, t, p) + p**N, f"(d) the rounds that are refused: N = {N}, t = {t}")
    return sum((chance for counts, chance in fates(1, N, p) if counts[0] in sums and counts[0] == 1), Fraction(0))


def gives_sum(N: int, t: int, alive: int) -> bool:
    """Return whether a round of the reference gives a sum when all but so many users are gone before the upload."""
    p = secagg.Parameters(R=17, N=N, D=N - t, T=1, t=t, k=N - 1, d=1)
    network = secagg.open_round(p, np.ones((N, 1), dtype=np.uint64), session=bytes(16), round=0)
    sources = {user: SeededSource(b"survivors", f"user {user}") for user in range(N)}
    try:
        run_synchronous(network, {UPLOAD: range(alive, N)}, secagg.draw_randomness(p, sources))
    except TooFewSurvivors:
        return False
    return bool(network.states[SERVER].aggregate[0] == alive)


def growths() -> Iterator[tuple[dict[str, object], bool, bool]]:
    """Yield ways to a limit, whether the probability for any subgroup goes to 0, and whether Z q does."""
    sympy = package("sympy")
    n, Z, p = (sympy.Symbol(name, positive=True) for name in ("n", "Z", "p"))
    for given in (sympy.Rational(1, 10), sympy.Rational(1, 2)):
        of_eight, of_n = formula(8, given), formula(n, given)
        ways = [("8", "grows", Z, of_eight, Z), ("grows", "3", 3, of_n, n), ("grows", "n^2", n**2, of_n, n)]
        for users, shown, count, q, grown in [*ways, ("grows", "1/q", 1 / of_n, of_n, n)]:
            some_one = 1 - sympy.exp(sympy.limit(count * sympy.log(1 - q), grown, sympy.oo))
            case: dict[str, object] = {"n": users, "p": str(given), "Z": shown, "(12)": str(q), "limit": str(some_one)}
            yield case, some_one == 0, sympy.limit(count * q, grown, sympy.oo) == 0
    falling = sympy.limit(100 * sympy.log(1 - formula(8, p)), p, 0)
    yield {"n": 8, "p": "falls", "Z": 100}, falling == 0, sympy.limit(100 * formula(8, p), p, 0) == 0
