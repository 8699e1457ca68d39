"""With at most ceil(Z/4) - 1 Byzantine users, each row of HeteroSAg has more benign sums than faulty ones.

Statement, for both matrices and Z from 2 to 16 groups or subgroups, with nobody dropped. A sum is faulty when a
Byzantine user is in its cell.
(a) With B Byzantine users every row has more benign sums than faulty ones, wherever they are, exactly when
B <= ceil(Z/4) - 1.
(b) A subgroup with Byzantine users, however many, spoils one sum in each row; so users in subgroups of their own spoil
most.
(c) The median of the inputs of all users, in clear, tolerates any B below N/2: that is more, for groups of two or more.

Idea. Only the set of subgroups with Byzantine users counts. All these sets are tried, of every size up to the bound
and one more; larger ones spoil what smaller ones do. For all Z: the row with the fewest cells has ceil(Z/2) of them,
all pairs but one cell for odd Z, and B subgroups in cells of their own spoil B; ceil(Z/2) > 2B holds exactly for B <
ceil(Z/2)/2, that is for B <= ceil(Z/4) - 1.
"""

from __future__ import annotations

from itertools import combinations, product
from math import ceil

from secagg_spec.arithmetic import segments
from secagg_spec.arithmetic.segments import Matrix
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.privacy.heterosag_unions import Users

CLAIMS = {
    "HET-BYZ1": "enumeration",
    "HET-BYZ2": "enumeration",
    "HET-REM4A": "enumeration",
    "HET-LESS": "arithmetic",
}
SIZES = range(2, 17)


def bound(Z: int) -> int:
    """Return how many Byzantine users are tolerated."""
    return ceil(Z / 4) - 1


def benign_lead(matrix: Matrix, faulty: Users) -> int:
    """Return by how many the benign sums lead in the row in which they do least."""
    spoiled = (sum(bool(set(cell) & set(faulty)) for cell in row) for row in matrix)
    return min(len(row) - 2 * count for row, count in zip(matrix, spoiled, strict=True))


def least_lead(matrix: Matrix, subgroups: int) -> tuple[int, Users]:
    """Return the least lead of all choices of so many subgroups, and the first choice that has it."""
    choices = combinations(range(len(matrix)), subgroups)
    return min(((benign_lead(matrix, faulty), faulty) for faulty in choices), key=lambda pair: pair[0])


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b)."""
    enough, grouped, divided = Tally(), Tally(), Tally()
    for Z, (name, build) in product(SIZES, {"cyclic": segments.cyclic, "perfect": segments.perfect}.items()):
        matrix = build(Z)
        leads = [least_lead(matrix, count) for count in range(bound(Z) + 2)]
        for count, (lead, faulty) in enumerate(leads[:-1]):
            case = {"Z": Z, "matrix": name, "faulty": list(faulty), "lead": lead}
            enough.add(case, lead > 0)
            divided.add(case, lead > 0)
            fewer = all(leads[other][0] >= lead for other in range(count))
            grouped.add(case, fewer and one_in_each_row(matrix))
        report.check(leads[-1][0] <= 0, f"(a) one more is too many: Z = {Z}, {name}, {leads[-1]}")
        as_counted = [lead for lead, _ in leads] == [(Z + 1) // 2 - 2 * count for count in range(len(leads))]
        report.agree(
            ("HET-BYZ1", "HET-BYZ2", "HET-REM4A"),
            "arithmetic",
            as_counted,
            f"the least lead is ceil(Z/2) - 2B: Z = {Z}",
        )
    tight = all(2 * bound(Z) < (Z + 1) // 2 <= 2 * bound(Z) + 2 for Z in range(2, 10**4))
    report.check(tight, "(a) ceil(Z/2) - 2B is above 0 for the bound, and not for one more")
    report.say(f"every set of {enough.cases} sizes and matrices: more benign sums, and not with one more")
    return {
        "HET-BYZ1": Finding(enough.verdict, "and it is tight for Z = 2 to 16", enough.against),
        "HET-BYZ2": Finding(grouped.verdict, "one sum in each row for each such group", grouped.against),
        "HET-REM4A": Finding(divided.verdict, "the same with subgroups", divided.against),
        "HET-LESS": compared(report),
    }


def compared(report: Report) -> Finding:
    """Decide (c) for up to 200 groups of 2 to 12 users."""
    tally, sympy = Tally(), package("sympy")
    z, m = sympy.symbols("z m", nonnegative=True)
    gap = sympy.expand((z + 2) * (m + 2) / 2 - 1 - ((z + 2) / 4 + sympy.Rational(3, 4) - 1))
    above = all(c > 0 for c in sympy.Poly(gap, z, m).coeffs())
    report.agree("HET-LESS", "symbolic", above, "(c) Z n/2 - 1 is above (Z + 3)/4 - 1 for all Z and n from 2 on")
    for Z, n in product(range(2, 201), range(2, 13)):
        of_users = ceil(Z * n / 2) - 1
        tally.add({"G": Z, "n": n, "here": bound(Z), "median of users": of_users}, bound(Z) < of_users)
    return Finding(tally.verdict, "a quarter of the groups, and half of the users", tally.against)


def one_in_each_row(matrix: Matrix) -> bool:
    """Return whether each group is in exactly one sum of each row."""
    counts = [sum(group in cell for cell in row) for group in range(len(matrix)) for row in matrix]
    return set(counts) == {1}
