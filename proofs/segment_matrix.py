"""The segment selection matrix of HeteroSAg is a -> l + 1 - a; with subgroups, algorithm 2 is right for pairs only.

Statement, for G from 2 to 16 groups, and subgroup counts L in {1, 2, 3, 4} of up to four groups with Z in all.
(a) Algorithm 1 writes no cell twice, and in its row l the groups g and h share a cell exactly when g + h = l + 1 modulo
G. So each column has one *, and each two columns share a number in one row. For odd G each row has one *; for even G
the odd rows have two, in columns g and g + G/2, and the even rows none.
(b) The figures 2, 7 and 8 are the matrices for G = 5, G = 6 and L = (1, 2, 2).
(c) Group g has its own K in G - g segments and each lower one in one, so that K_g is used on 2(G - g) - 1 segments of n
users; with subgroups, Z in the place of G. It is so for the repaired matrices as well.
(d) Algorithm 2 as printed is algorithm 1 on all Z subgroups exactly when no group has more than two. With its counter s
starting from d it always is. As printed, three subgroups of one group have the inference robustness 1/3, and not 2/3.

Idea. (a) to (c) are counted. They hold for all G: a + b = l + 1 has for each two groups one solution l, and 2a = l + 1
has for each group one l, and for each l one a when G is odd, two or none when G is even. So a group meets each other
one once, and the smaller of the two decides. For (d): in the loop of subgroup d of group g the partner runs through
all later ones. The counter i goes up when d + r + 1 meets the end of a group, and s says which subgroup it is within
the group; at the start, r = 0, the partner is d + 1 of the same group, unless d is the last. So s must be d + 1 then,
and the printed start from 0 makes it 1: the same for d = 0, the only d with a partner in its own group when that has
two subgroups.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from math import gcd

from secagg_spec.arithmetic import segments
from secagg_spec.arithmetic.segments import ALONE, Matrix
from secagg_spec.ledger.proofs import Finding, Report, Tally, package

CLAIMS = {
    "HET-ALG1": "enumeration",
    "HET-FIG2": "arithmetic",
    "HET-TAB2": "arithmetic",
    "HET-EX4": "arithmetic",
    "HET-P1": "enumeration",
    "HET-P2": "enumeration",
    "HET-P3": "enumeration",
    "HET-FIG7": "arithmetic",
    "HET-CNT": "enumeration",
    "HET-ALG2": "enumeration",
    "HET-FIG8": "arithmetic",
    "HET-LEM2": "enumeration",
}
GROUPS = range(2, 17)
FIGURE_2 = "002*2 0*033 0110* 01*10 *1221"
FIGURE_7 = "002332 0*03*3 011044 01*10* 012210 *12*21"
FIGURE_8 = [
    [(0, 0), (0, 0), (1, 1), None, (1, 1)],
    [(0, 0), None, (0, 0), (2, 0), (2, 0)],
    [(0, 0), (1, 0), (1, 0), (0, 0), None],
    [(0, 0), (1, 0), None, (1, 0), (0, 0)],
    [None, (1, 0), (1, 1), (1, 1), (1, 0)],
]
Table = list[list[int]]


def printed(table: Table) -> str:
    """Return a matrix as the figures have it."""
    return " ".join("".join("*" if entry == ALONE else str(entry) for entry in row) for row in table)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    closed, stars, pairs, where = (Tally() for _ in range(4))
    for G in GROUPS:
        table = segments.algorithm_1(G)
        closed.add({"G": G}, table == segments.entries(segments.cyclic(G)) and written_once(G))
        stars.add({"G": G}, all([row[g] for row in table].count(ALONE) == 1 for g in range(G)))
        together = [sum(row[g] == row[h] != ALONE for row in table) for g, h in combinations(range(G), 2)]
        pairs.add({"G": G}, max(together) <= 1)
        report.check(set(together) == {1}, f"(a) each two columns share a number once: G = {G}")
        where.add({"G": G}, all(alone(row) in allowed(G, at) for at, row in enumerate(table)))
        met = all(
            table[divmod(g + h - 1, G)[1]][g] == table[divmod(g + h - 1, G)[1]][h] for g, h in combinations(range(G), 2)
        )
        lone = all(table[divmod(2 * g - 1, G)[1]][g] == ALONE for g in range(G))
        report.agree(
            ("HET-ALG1", "HET-P1", "HET-P2"), "arithmetic", met and lone, f"rows g + h - 1 and 2g - 1 modulo G: G = {G}"
        )
        doubled = all(len(alone(row)) == twice(G, at) for at, row in enumerate(table))
        report.agree("HET-P3", "arithmetic", doubled, f"as many * as 2a = l + 1 has solutions: G = {G}")
    by_sums(report)
    flat = flattened(FIGURE_8, (1, 2, 2)) == segments.entries(segments.cyclic(5))
    report.agree("HET-FIG8", "enumeration", flat, "flattened it is the closed form for five groups")
    report.say(f"algorithm 1 for G = 2 to 16: the closed form in {closed.held} of {closed.cases}")
    return {
        "HET-ALG1": Finding(closed.verdict, "in row l, g is with l + 1 - g modulo G", closed.against),
        "HET-FIG2": figure(printed(segments.algorithm_1(5)), FIGURE_2),
        "HET-FIG7": figure(printed(segments.algorithm_1(6)), FIGURE_7),
        "HET-TAB2": table_2(report),
        "HET-EX4": example_4(report),
        "HET-P1": Finding(stars.verdict, "one * in each column", stars.against),
        "HET-P2": Finding(pairs.verdict, "exactly one row", pairs.against),
        "HET-P3": Finding(where.verdict, "one * in each row, or pairs of * in the odd rows", where.against),
        "HET-CNT": quantisers(),
        **subgroups(report),
        "HET-FIG8": Finding("confirmed" if named((1, 2, 2)) == FIGURE_8 else "refuted", "L = (1, 2, 2)"),
    }


def twice(G: int, row: int) -> int:
    """Return how many a modulo G have 2a = row + 1: gcd(2, G) of them, if that divides row + 1."""
    common = gcd(2, G)
    return 0 if divmod(row + 1, common)[1] else common


def by_sums(report: Report) -> None:
    """Decide the counts of (c) by adding up, and print the closed form of (a) beside the figures."""
    sympy = package("sympy")
    G, g, h = sympy.symbols("G g h", integer=True, positive=True)
    used = (G - g) + sympy.summation(1, (h, g + 1, G - 1))
    counted = sympy.expand(used - (2 * (G - g) - 1)) == 0
    whole = sympy.expand(sympy.summation(2 * (G - g) - 1, (g, 0, G - 1)) - G**2) == 0
    report.agree(("HET-CNT", "HET-LEM2"), "symbolic", counted and whole, "G - g segments of g, one of each later group")
    for claim, figure, size in (("HET-FIG2", FIGURE_2, 5), ("HET-FIG7", FIGURE_7, 6)):
        closed = printed(segments.entries(segments.cyclic(size)))
        report.agree(claim, "enumeration", closed == figure, "the closed form gives the figure as well")


def written_once(G: int) -> bool:
    """Return whether the loops of algorithm 1 name no place twice."""
    places = [((2 * g + r) % G, column) for g in range(G - 1) for r in range(G - g - 1) for column in (g, g + r + 1)]
    return len(set(places)) == len(places)


def alone(row: list[int]) -> tuple[int, ...]:
    """Return the columns with *."""
    return tuple(g for g, entry in enumerate(row) if entry == ALONE)


def allowed(G: int, row: int) -> set[tuple[int, ...]]:
    """Return where property 3 has the * of a row."""
    if G % 2:
        return {(g,) for g in range(G)}
    return {(g, g + G // 2) for g in range(G // 2)} if row % 2 else {()}


def figure(found: str, wanted: str) -> Finding:
    """Decide whether a matrix is the printed one."""
    return Finding("confirmed" if found == wanted else "refuted", found)


def table_2(report: Report) -> Finding:
    """Decide with whom group 0 of five sums each segment."""
    rows = segments.algorithm_1(5)
    partners = [[g for g in range(1, 5) if row[g] == row[0] != ALONE] for row in rows]
    report.agree("HET-TAB2", "enumeration", partners == [[1], [2], [3], [4], []], "as the loops of algorithm 1 have it")
    cells = [next(cell for cell in row if 0 in cell) for row in segments.cyclic(5)]
    wanted = [(0, 1), (0, 2), (0, 3), (0, 4), (0,)]
    return Finding("confirmed" if cells == wanted else "refuted", f"group 0 is in the cells {cells}")


def example_4(report: Report) -> Finding:
    """Decide which sums one Byzantine user of group 0 spoils: one in each row, and that of group 0 alone in row 4."""
    spoiled = {cell: row for row, cells in enumerate(segments.cyclic(5)) for cell in cells if 0 in cell}
    lone = [row for row, entries in enumerate(segments.algorithm_1(5)) if entries[0] == ALONE]
    report.agree("HET-EX4", "enumeration", lone == [4], "the loops of algorithm 1 leave group 0 alone in row 4")
    stated = {(0, 1): 0, (0, 2): 1, (0, 3): 2, (0, 4): 3, (0,): 0}
    wrong = {
        f"{'group' if len(cell) == 1 else 'groups'} {', '.join(map(str, cell))}": {
            "printed": stated[cell],
            "right": row,
        }
        for cell, row in spoiled.items()
        if stated[cell] != row
    }
    verdict = "confirmed" if spoiled == stated else "imprecise" if set(spoiled) == set(stated) else "refuted"
    return Finding(verdict, "the sums are right; that of group 0 alone is of segment 4", wrong or None)


def quantisers() -> Finding:
    """Decide (c) for groups."""
    tally = Tally()
    for G, name in product(GROUPS, ("cyclic", "perfect")):
        used = levels(segments.MATRICES[name](G))
        tally.add({"G": G, "matrix": name}, used == expected(G))
    return Finding(tally.verdict, "G - g segments with K_g, one with each lower K", tally.against)


def levels(matrix: Matrix) -> Table:
    """Return how many segments each group quantises as each group does: the smaller group of the cell decides."""
    counts = [[0] * len(matrix) for _ in matrix]
    for row in matrix:
        for cell in row:
            for g in cell:
                counts[g][cell[0]] += 1
    return counts


def expected(Z: int) -> Table:
    """Return what (c) says of it."""
    return [[1 if h < g else Z - g if h == g else 0 for h in range(Z)] for g in range(Z)]


def subgroups(report: Report) -> dict[str, Finding]:
    """Decide (d), and (c) with subgroups."""
    as_printed, counted = Tally(), Tally()
    for L in (L for groups in range(1, 5) for L in product(range(1, 5), repeat=groups) if sum(L) > 1):
        wanted = segments.algorithm_1(sum(L))
        report.check(segments.algorithm_2(L) == wanted, f"(d) from d: L = {L}")
        from_0 = segments.algorithm_2(L, lambda d: 0)
        wrong = [row for row in range(sum(L)) if from_0[row] != wanted[row]][:1]
        rows = {
            "row": wrong,
            "printed": printed([from_0[r] for r in wrong]),
            "right": printed([wanted[r] for r in wrong]),
        }
        as_printed.add({"L": list(L), **rows}, from_0 == wanted, condition=max(L) <= 2)
        for name in ("cyclic", "perfect"):
            counts = levels(segments.MATRICES[name](sum(L)))
            total = [sum(row[j] for row in counts) for j in range(sum(L))]
            rule = [2 * (sum(L) - j) - 1 for j in range(sum(L))]
            counted.add({"L": list(L), "matrix": name}, total == rule and counts == expected(sum(L)))
    delta = segments.inference_robustness(cells_of(segments.algorithm_2((3,), lambda d: 0))).value
    report.check(delta == Fraction(1, 3), "(d) as printed three subgroups of one group have delta 1/3, and not 2/3")
    report.check(as_printed.exact, "(d) right exactly when no group has more than two subgroups")
    report.say(f"algorithm 2 as printed is right for {as_printed.held} of {as_printed.cases} L, with d for all")
    numbers = {"cases": as_printed.cases, "as printed": as_printed.held, "from d": as_printed.cases}
    expected_counts = [sum(most**groups for groups in range(1, 5)) - 1 for most in (4, 2)]
    report.agree(
        "HET-ALG2", "arithmetic", expected_counts == [as_printed.cases, as_printed.held], "all L, and L of 1 and 2"
    )
    return {
        "HET-ALG2": Finding(as_printed.verdict, "s must start from d", as_printed.against, numbers),
        "HET-LEM2": Finding(counted.verdict, "2(Z - j) - 1 segments of subgroups are of subgroup j", counted.against),
    }


def cells_of(table: Table) -> Matrix:
    """Return the cells that the entries of a matrix name."""
    return tuple(
        tuple(
            sorted(
                {
                    (z,) if entry == ALONE else tuple(y for y in range(len(row)) if row[y] == entry)
                    for z, entry in enumerate(row)
                }
            )
        )
        for row in table
    )


def flattened(figure: Sequence[Sequence[tuple[int, int] | None]], L: tuple[int, ...]) -> Table:
    """Return the figure with the number of each subgroup in the place of its name."""
    first = [sum(L[:g]) for g in range(len(L))]
    return [[ALONE if entry is None else first[entry[0]] + entry[1] for entry in row] for row in figure]


def named(L: tuple[int, ...]) -> list[list[tuple[int, int] | None]]:
    """Return algorithm 2 as it is printed, with pairs of group and subgroup as in the figure."""
    names = [(g, d) for g, size in enumerate(L) for d in range(size)]
    table = segments.algorithm_2(L, lambda d: 0)
    return [[None if entry == ALONE else names[entry] for entry in row] for row in table]
