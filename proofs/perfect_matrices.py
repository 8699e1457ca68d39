"""A perfect one-factorisation gives HeteroSAg the inference robustness that it claims, and no matrix has a larger one.

Statement, for matrices of Z rows of cells of one subgroup or two, in which each subgroup is alone once, and each two
subgroups share a cell once.
(a) The matrix `perfect` has delta = (Z - 1)/Z for odd Z, and (Z - 2)/Z for even Z > 2; for Z = 2 it is 1/2.
(b) No such matrix has a larger delta.
(c) When one subgroup has no survivors, whichever it is, the largest share of decodable segments is 2/Z for `perfect`
with Z > 2; for `cyclic` it is 2/Z for prime Z > 2, and stays 1/p otherwise, p the smallest prime factor.
(d) When two have none, it is 3/Z for `perfect` with Z > 3, whichever two; for prime Z > 3 the two matrices are one,
and for the others `cyclic` has at most 2/Z + 1/p.

Idea. (a) A set that is made of pairs of two factors is made of the circles that these form; they form one, through all
points, so that the set is empty or everybody. For odd Z take a set that is decodable in two rows, or its complement,
which is decodable in the same ones: the one of even size. In neither row does it hold the subgroup that is alone, so
it is made of pairs of both factors. So no set is decodable in two rows, and a single subgroup is in one. For even Z
the last row shows every set, and the others are made of pairs, so that each set is decodable in one of them at most:
in two rows in all. (b) For odd Z a single subgroup is decodable where it is alone, so that no share is below 1/Z. For
even Z the cells of two in a row take an even number of subgroups, so that an even number is alone; take a row in which
one is, and another one with it. These two are decodable there, and where they share a cell. For Z > 2 they are not
everybody, so that no share is below 2/Z; for Z = 2 a single subgroup has the share 1/2. (c) For `perfect` and one
dropped subgroup z, two rows form one circle; without z, and the further point of odd Z, it falls into two paths at
most. For even Z that is one, so no proper set is decodable in two rows but the last. For odd Z a decodable set is one
of the paths, and then exactly one of the two rows ties it to z, if it is odd, or to z and the further point, if it is
even: of three rows two would be alike. Here any two factors are seen to be one circle for every order up to 62 that
has a construction; all sets are counted for Z from 2 to 16, with every choice of dropped subgroups; and all matrices
are built and counted for Z from 2 to 7. That two factors are one circle is decided by ranks of their graph as well,
for orders up to 20. (d) rests on the count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from secagg_spec.arithmetic import segments
from secagg_spec.arithmetic.factorisations import Factor, perfect_factorisation
from secagg_spec.arithmetic.segments import Matrix, Row
from secagg_spec.errors import ParameterError
from secagg_spec.ledger.proofs import Finding, Report, Tally, package, rank_of_flint
from secagg_spec.privacy.heterosag_unions import Unions, Users

CLAIMS = {
    "HET-DROP": "enumeration",
    "UNI-P1F": "enumeration",
    "UNI-DROPPED": "enumeration",
}
SIZES, BY_RANKS = range(2, 17), range(3, 8)
LAST_ORDER, LAST_SEARCHED, LAST_BY_RANKS = 62, 7, 20


def share_claimed(Z: int) -> Fraction:
    """Return 1 - delta as (a) has it."""
    return Fraction(1 if Z % 2 or Z == 2 else 2, Z)


def smallest_factor(n: int) -> int:
    """Return the smallest prime factor of n."""
    return next(p for p in range(2, n + 1) if not n % p)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    orders = circles(report)
    attained = Tally()
    for Z in SIZES:
        share = Unions(segments.perfect(Z)).share()
        attained.add({"Z": Z, "share": str(share)}, share == share_claimed(Z))
    searched = search(report)
    report.say(f"{orders} orders up to {LAST_ORDER} have one circle for any two factors; all matrices: {searched}")
    numbers = {"orders": orders, "matrices": searched}
    return {
        "UNI-P1F": Finding(attained.verdict, "attained, and none is larger", attained.against, numbers),
        **dropped(report),
    }


# ----------------------------------------------------------------------------------------------------- (a), (b)


def circles(report: Report) -> int:
    """Check every construction: each pair of points once, and one circle for each two factors."""
    found = 0
    for points in range(2, LAST_ORDER + 1, 2):
        try:
            factors = perfect_factorisation(points)
        except ParameterError:
            continue
        pairs = sorted(pair for factor in factors for pair in factor)
        report.check(pairs == sorted(combinations(range(points), 2)), f"(a) each pair once: {points} points")
        report.check(all(one_circle(*two) for two in combinations(factors, 2)), f"(a) one circle: {points} points")
        if points <= LAST_BY_RANKS:
            joined = all(connected(points, *two) for two in combinations(factors, 2))
            report.agree("UNI-P1F", "library", joined, f"(a) any two factors are connected: {points} points")
        found += 1
    return found


def one_circle(first: Factor, second: Factor) -> bool:
    """Return whether two factors form one circle through all points."""
    partners = [dict([*factor, *((b, a) for a, b in factor)]) for factor in (first, second)]
    at, length = partners[1][partners[0][0]], 2
    while at:
        at, length = partners[1][partners[0][at]], length + 2
    return length == 2 * len(first)


def connected(points: int, first: Factor, second: Factor) -> bool:
    """Return whether the pairs of two factors connect all points: the rank of their incidence matrix is points - 1."""
    rows = [[(at == a) - (at == b) for at in range(points)] for a, b in (*first, *second)]
    return rank_of_flint(rows) == points - 1


def search(report: Report) -> dict[str, int]:
    """Build every matrix of up to seven subgroups, and compare its largest share with that of `perfect`."""
    found = {}
    for Z in range(2, LAST_SEARCHED + 1):
        shares = [Unions(matrix).share() for matrix in every_matrix(Z)]
        report.check(bool(shares), f"(b) there is a matrix: Z = {Z}")
        report.check(min(shares) == share_claimed(Z), f"(b) none is larger: Z = {Z}")
        found[str(Z)] = len(shares)
    return found


def every_matrix(Z: int, rows: Sequence[Row] = (), used: frozenset[Users] = frozenset()) -> Iterator[Matrix]:
    """Yield every matrix with the two properties; row k is the one in which subgroup 0 is with k."""
    if len(rows) == Z:
        yield tuple(rows)
        return
    first = (0, len(rows)) if rows else (0,)
    for rest in divisions([z for z in range(Z) if z not in first], used):
        yield from every_matrix(Z, [*rows, (first, *rest)], used | set(rest))


def divisions(subgroups: Sequence[int], used: frozenset[Users]) -> Iterator[tuple[Users, ...]]:
    """Yield the ways to cut subgroups into cells that were not used before."""
    if not subgroups:
        yield ()
        return
    head, *tail = subgroups
    for cell in ((head,), *((head, other) for other in tail)):
        if cell not in used:
            for rest in divisions([z for z in tail if z not in cell], used):
                yield (cell, *rest)


# ----------------------------------------------------------------------------------------------------- (c), (d)


def dropped(report: Report) -> dict[str, Finding]:
    """Decide (c) and (d)."""
    primes, both = Tally(), Tally()
    for Z in SIZES:
        p = smallest_factor(Z)
        tables = {name: Unions(segments.MATRICES[name](Z)) for name in ("cyclic", "perfect")}
        report.check(p < Z or tables["cyclic"].matrix == tables["perfect"].matrix, f"one matrix for primes: Z = {Z}")
        for count, (name, unions) in ((c, each) for c in (1, 2) if c + 1 < Z for each in tables.items()):
            shares = {unions.share(left_out) for left_out in combinations(range(Z), count)}
            case = {"Z": Z, "matrix": name, "dropped": count, "share": str(max(shares))}
            both.add(case, as_stated(Z, name, count, shares))
            if count == 1 and p == Z and name == "cyclic":
                primes.add(case, {1 - share for share in shares} == {Fraction(Z - 2, Z)})
        if Z in BY_RANKS:
            report.agree(("HET-DROP", "UNI-DROPPED"), "library", all(map(shown_by_ranks, tables.values())), f"Z = {Z}")
    nine = Unions(segments.perfect(9))
    report.say(f"Z = 9, nobody, subgroup 0, and 0 and 1 dropped: {[str(nine.share(range(n))) for n in (0, 1, 2)]}")
    return {
        "HET-DROP": Finding(primes.verdict, "delta = (G - 2)/G with one group dropped, for prime G", primes.against),
        "UNI-DROPPED": Finding(both.verdict, "2/Z and 3/Z for perfect", both.against, extremes()),
    }


def shown_by_ranks(unions: Unions) -> bool:
    """Return whether ranks of what the server knows give the same largest shares, for each one or two that drop out."""
    Z = unions.count
    choices = [left_out for count in (1, 2) if count + 1 < Z for left_out in combinations(range(Z), count)]
    return all(most_by_ranks(unions, left_out) == unions.share(left_out) for left_out in choices)


def most_by_ranks(unions: Unions, left_out: Users) -> Fraction:
    """Return the largest share of rows in which the sum of some of the others is in the span of the sums of cells."""
    flint, left = package("flint"), [z for z in range(unions.count) if z not in left_out]
    known = [[[int(z in cell) for z in left] for cell in row if set(cell) - set(left_out)] for row in unions.matrix]
    asked = [chosen for chosen in product((0, 1), repeat=len(left)) if 0 < sum(chosen) < len(left)]
    counts = [sum(flint.fmpz_mat([*sums, chosen]).rank() == len(sums) for sums in known) for chosen in asked]
    return Fraction(max(counts), unions.count)


def as_stated(Z: int, name: str, count: int, shares: set[Fraction]) -> bool:
    """Return whether the shares, over all choices of dropped subgroups, are those of (c) and (d)."""
    p = smallest_factor(Z)
    if name == "perfect" or p == Z:
        return shares == {Fraction(count + 1, Z)}
    if count == 1:
        return shares == {Fraction(1, p)}
    return max(shares) <= Fraction(2, Z) + Fraction(1, p)


def extremes() -> dict[str, Any]:
    """Return what two dropped subgroups do to `cyclic`, where that is not 1/p."""
    found = {}
    for Z in (4, 6):
        unions = Unions(segments.cyclic(Z))
        found[f"cyclic, Z = {Z}, two dropped"] = str(
            max(unions.share(left_out) for left_out in combinations(range(Z), 2))
        )
    return found
