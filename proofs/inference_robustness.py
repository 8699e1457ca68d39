"""The matrix of HeteroSAg has the inference robustness 1 - 1/p, p the smallest prime factor of the number of groups.

Statement, for G groups, or Z subgroups, and sets of them that are neither empty nor all.
(a) A set A is decodable in row l exactly when (l + 1) - A = A.
(b) When A is decodable in a row, it is in exactly as many rows as there are translations modulo G that keep it. So
delta is 1 - 1/p, and {0, p, 2p, ...} attains it. Theorem 1 has the same for odd primes and for G = 4 only; for G = 2 it
has less, and for all others it promises too much.
(c) A single group is decodable in one row, a pair in at most one for odd G and at most two for even G. So cases 1 and 2
of the paper's proof hold. Case 3 and property 4 hold for prime G, and where there is nothing to say; not for others. If
* counts as no number, property 4 fails for the primes 5, 7 and 11 as well.
Case 4 fails from G = 5 on: a group that is alone in a row, with pairs of this row, is decodable. The four cases leave
out the sets of all groups but one, for even G from 4 on; each is decodable in one row.
(d) Definition 1 needs sets that are not empty. Sets that cut a group are decodable in no row.

Idea. (a) The cells of row l are the orbits of the map a -> l + 1 - a, and a set is decodable when it is made of cells.
(b) If (l + 1) - A = A, then (l' + 1) - A = A exactly when A + (l' - l) = A. So the rows are as many as the
translations that keep A, which form a subgroup of the integers modulo G, and not all of them when A is neither empty
nor all: at most G/p, the order of its largest proper subgroup. A = {0, p, 2p, ...} is decodable in row l when p
divides l + 1, which is so in G/p rows. For a prime G that is one row: any set that is decodable twice is empty or all,
so that cases 3 and property 4 hold for primes. Here all sets of up to 16 groups are counted, on the matrix that
algorithm 1 builds; for up to 10 groups what the server knows of a row, the span of the sums of its cells, is decided
again by ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from secagg_spec.arithmetic import segments
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.privacy.heterosag_unions import Unions, Users

CLAIMS = {
    "HET-S32": "enumeration",
    "HET-DEF1": "enumeration",
    "HET-REM1": "enumeration",
    "HET-P4": "enumeration",
    "HET-P4EX": "enumeration",
    "HET-THM1": "enumeration",
    "HET-CASE1": "enumeration",
    "HET-CASE2": "enumeration",
    "HET-CASE3": "enumeration",
    "HET-CASE4": "enumeration",
    "HET-CASES": "enumeration",
    "HET-EX3": "enumeration",
    "HET-REM2": "enumeration",
    "HET-REM4B": "enumeration",
    "HET-TAB3B": "enumeration",
    "HET-THM4": "enumeration",
    "UNI-DELTA": "enumeration",
}
GROUPS = range(2, 17)
BY_RANKS = range(2, 11)
RESTS_ON_RANKS = (
    "HET-DEF1",
    "HET-THM1",
    "HET-THM4",
    "HET-S32",
    "HET-REM2",
    "HET-REM4B",
    "HET-EX3",
    "HET-TAB3B",
    "UNI-DELTA",
)
OF_THE_PROOF = ("HET-CASE1", "HET-CASE2", "HET-CASE3", "HET-CASE4", "HET-CASES")


def smallest_factor(n: int) -> int:
    """Return the smallest prime factor of n."""
    return next(p for p in range(2, n + 1) if not n % p)


def prime(n: int) -> bool:
    """Return whether n is a prime."""
    return smallest_factor(n) == n


def claimed(G: int) -> Fraction:
    """Return delta as theorem 1 has it."""
    return Fraction(G - 2 if G % 2 == 0 else G - 1, G)


def reflected(G: int, members: Users, row: int) -> bool:
    """Return whether (row + 1) - A = A."""
    return {(row + 1 - a) % G for a in members} == set(members)


def kept(G: int, members: Users) -> int:
    """Return the number of translations that keep a set."""
    return sum({(a + shift) % G for a in members} == set(members) for shift in range(G))


def proper(unions: Unions) -> Iterator[tuple[Users, int]]:
    """Yield each set that is neither empty nor all, the small ones first, with the number of its decodable rows."""
    counts = unions.counts()
    sets = ((unions.members(number), int(counts[number])) for number in range(1, len(counts) - 1))
    yield from sorted(sets, key=lambda pair: (len(pair[0]), pair[0]))


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    tables = {G: Unions(segments.cyclic(G)) for G in GROUPS}
    theorem, exact, half = Tally(), Tally(), Tally()
    for G, unions in tables.items():
        rows, witness = unions.most()
        delta, p = 1 - Fraction(rows, G), smallest_factor(G)
        at = segments.decodable(unions.matrix, witness)
        case = {"G": G, "groups": list(witness), "rows": list(at), "delta": str(delta), "claimed": str(claimed(G))}
        theorem.add(case, delta == claimed(G))
        half.add(case, 1 - delta <= Fraction(2, G))
        exact.add(case, delta == 1 - Fraction(1, p))
        report.check((delta == claimed(G)) == (G == 4 or (prime(G) and G > 2)), f"(b) where theorem 1 holds: G = {G}")
        report.check(len(segments.decodable(unions.matrix, range(0, G, p))) == G // p, f"(b) the witness: G = {G}")
        if G <= 10:
            report.agree(("HET-THM1", "UNI-DELTA"), "arithmetic", orbits(unions), f"(a) and (b), every set: G = {G}")
    report.say(f"delta is 1 - 1/p for all G = 2 to 16, and as claimed for {theorem.held} of {theorem.cases}")
    by_ranks(report, tables)
    robustness = too_much(tables)
    halves = all(kept(G, tuple(range(0, G, 2))) == G // 2 for G in GROUPS[::2])
    report.agree("HET-REM1", "arithmetic", halves, "half of the translations keep the even groups, for every even G")
    six = {name: robustness[name] for name in ("G", "groups", "rows")}
    report.check((robustness["G"], robustness["rows"]) == (6, [1, 3, 5]), "the smallest is figure 7")
    found = "delta is 1 - 1/p, p the smallest prime factor"
    return {
        "HET-THM1": Finding(theorem.verdict, found, robustness),
        "HET-THM4": Finding(theorem.verdict, found, with_subgroups(tables)),
        "HET-S32": Finding(half.verdict, "half of the segments for even G", six | {"decoded": "3/6", "at most": "2/6"}),
        "HET-REM1": Finding(half.verdict, "1/2 for even G, however many", growing(tables)),
        "HET-REM2": most_segments(tables),
        "HET-REM4B": more_subgroups(tables),
        "HET-TAB3B": Finding(half.verdict, "SecAgg 1; the other is 1 - 1/p", secagg_has_one(report) | six),
        "UNI-DELTA": Finding(exact.verdict, found, exact.against, {"G": exact.cases, "largest": GROUPS[-1]}),
        "HET-DEF1": definition(report, tables[5]),
        "HET-EX3": example(tables[5]),
        "HET-P4EX": property_4_example(report),
        **cases(report, tables),
    }


def orbits(unions: Unions) -> bool:
    """Return whether (a) and (b) hold for every set."""
    G = unions.count
    for members, rows in proper(unions):
        at = [row for row in range(G) if reflected(G, members, row)]
        if tuple(at) != segments.decodable(unions.matrix, members) or rows not in (0, kept(G, members)):
            return False
    return True


def by_ranks(report: Report, tables: dict[int, Unions]) -> None:
    """Decide by ranks of a library in how many rows the server knows the sum of each set."""
    flint = package("flint")
    for G in BY_RANKS:
        known = [[[int(g in cell) for g in range(G)] for cell in row] for row in tables[G].matrix]
        for members, rows in proper(tables[G]):
            asked = [int(g in members) for g in range(G)]
            spanned = sum(flint.fmpz_mat([*sums, asked]).rank() == len(sums) for sums in known)
            report.agree(
                (*RESTS_ON_RANKS, *OF_THE_PROOF), "library", spanned == rows, f"G = {G}, {members}: {rows} rows"
            )


def too_much(tables: dict[int, Unions]) -> dict[str, Any]:
    """Return the smallest number of groups for which theorem 1 promises too much, with a set that shows it."""
    G = next(G for G, unions in tables.items() if 1 - unions.share() < claimed(G))
    at = segments.decodable(tables[G].matrix, tables[G].most()[1])
    delta = 1 - Fraction(len(at), G)
    found = {"G": G, "groups": list(tables[G].most()[1]), "rows": list(at)}
    return found | {"delta": str(delta), "claimed": str(claimed(G))}


def with_subgroups(tables: dict[int, Unions]) -> dict[str, Any]:
    """Return the smallest number of subgroups, two in each group, for which theorem 4 promises too much."""
    found = too_much(tables)
    return {"L": [2] * (found["G"] // 2), "subgroups": found["groups"], **dict(list(found.items())[3:])}


def growing(tables: dict[int, Unions]) -> dict[str, Any]:
    """Return delta of even numbers of groups, which does not approach one."""
    sizes = [6, 8, 16]
    found, said = [str(1 - tables[G].share()) for G in sizes], [str(claimed(G)) for G in sizes]
    return {"G": sizes, "delta": found, "claimed": said}


def most_segments(tables: dict[int, Unions]) -> Finding:
    """Decide remark 2 with the smallest model of which fewer groups, which divide it, have a larger delta."""
    deltas = {G: 1 - unions.share() for G, unions in tables.items()}
    worse = ((m, G) for m in deltas for G in range(2, m) if not m % G and deltas[G] > deltas[m])
    m, G = next(worse, (0, 0))
    case = {"m": m, f"delta with G = {m}": str(deltas[m]), f"delta with G = {G}": str(deltas[G])} if m else None
    return Finding("refuted" if case else "confirmed", "delta is largest for a prime number of groups", case)


def more_subgroups(tables: dict[int, Unions]) -> Finding:
    """Decide remark 4 with the smallest number of subgroups for which delta falls."""
    deltas = {G: 1 - unions.share() for G, unions in tables.items()}
    cut = [(G, Z) for Z in deltas for G in range(2, Z) if not divmod(Z, G)[1]]
    G, Z = next(((G, Z) for G, Z in cut if deltas[Z] < deltas[G]), (0, 0))
    if not Z:
        return Finding("confirmed", "delta never falls")
    case = {"G": G, "L": Z // G, "delta before": str(deltas[G]), "delta after": str(deltas[Z])}
    return Finding("refuted", "delta falls", case | {"claimed": str(claimed(Z))})


def secagg_has_one(report: Report) -> dict[str, Any]:
    """Check that SecAgg, all groups in one cell, shows no proper set, and return nothing more to say."""
    shown = [G for G in GROUPS if segments.inference_robustness(segments.joint(G)).value < 1]
    report.check(not shown, "all groups in one cell, as in SecAgg, show no proper set")
    return {"claimed": "2/3", "delta": "1/2"}


def definition(report: Report, unions: Unions) -> Finding:
    """Decide (d): the empty set is decodable in every row; users of one group are never told apart."""
    G, counts = unions.count, unions.counts()
    report.check(counts[0] == counts[-1] == G, "(d) the empty set and all")
    doubled = tuple(tuple(tuple(2 * g + h for g in cell for h in (0, 1)) for cell in row) for row in unions.matrix)
    cut = [members for members in ((0,), (0, 2), (0, 1, 2), (1, 4, 6)) if segments.decodable(doubled, members)]
    report.check(not cut, f"(d) sets that cut a group: {cut}")
    least = 1 - Fraction(int(counts[0]), G)
    without = 1 - Fraction(max(int(count) for count in counts[1:-1]), G)
    report.check(least == 0, "(d) with the empty set, which has no average, it is 0")
    holds = without == claimed(G) == segments.inference_robustness(unions.matrix).value
    found = "for five groups 4/5; the empty set has no average model"
    return Finding("confirmed" if holds else "refuted", found)


def example(unions: Unions) -> Finding:
    """Decide example 3: G = 5 has delta 4/5, and each group one clear segment."""
    single = {len(segments.decodable(unions.matrix, (g,))) for g in range(5)}
    good = unions.share() == Fraction(1, 5) and single == {1}
    return Finding("confirmed" if good else "refuted", "delta = 4/5, one clear segment for each group")


def pairs_only(unions: Unions, members: Users, row: int) -> bool:
    """Return whether a row has nothing but pairs of a set in its columns."""
    return all(len(cell) == 2 for cell in unions.matrix[row] if cell[0] in members) and reflected(
        unions.count, members, row
    )


def unpaired(unions: Unions, members: Users, row: int, stars: bool) -> int:
    """Return how many of a set have no partner in the set in a row; groups that are alone, the *, count if told so."""
    alone = [cell for cell in unions.matrix[row] if len(set(cell) & set(members)) == 1]
    return sum(stars or len(cell) == 2 for cell in alone)


def property_4_example(report: Report) -> Finding:
    """Decide the example of property 4: five groups without the fourth, row 0, and the others."""
    unions, members = Unions(segments.cyclic(5)), (0, 1, 2, 4)
    cells = {str(row): [list(cell) for cell in unions.matrix[row] if set(cell) <= set(members)] for row in range(1, 5)}
    paired = {row: [cell for cell in found if len(cell) == 2] for row, found in cells.items()}
    by_sums = {
        str(row): [[a, b] for a, b in combinations(members, 2) if (a + b) % 5 == (row + 1) % 5] for row in range(1, 5)
    }
    report.agree("HET-P4EX", "arithmetic", by_sums == paired, "the pairs with a + b = l + 1 modulo 5")
    unlike = {unpaired(unions, members, row, stars) for row in range(1, 5) for stars in (True, False)}
    held = pairs_only(unions, members, 0) and unlike == {1, 2}
    report.check(held, "the example: row 0 is paired, and each other row has one number alone and one *")
    verdict = "refuted" if any(paired.values()) else "confirmed"
    found = "each other row has a pair, a number alone and a *"
    return Finding(verdict, found, {"pairs": paired}, {"numbers alone": min(unlike), "with *": max(unlike)})


def cases(report: Report, tables: dict[int, Unions]) -> dict[str, Finding]:
    """Decide (c), for all sets of up to 12 groups."""
    found = {
        "HET-CASE1": (lambda G, n: n == 1, lambda G, rows: rows == 1, "exactly one segment"),
        "HET-CASE2": (lambda G, n: n == 2, lambda G, rows: rows <= 1 + (G % 2 == 0), "at most one, or two"),
        "HET-CASE3": (lambda G, n: n % 2 == 0 and n >= 4, lambda G, rows: rows <= 1, "p for a prime factor p of G"),
        "HET-CASE4": (odd_of_case_4, lambda G, rows: rows == 0, "alone, with pairs of the row"),
    }
    decided = {name: case(tables, *what) for name, what in found.items()}
    return {**decided, "HET-P4": property_4(report, tables), "HET-CASES": all_cases(tables)}


def all_cases(tables: dict[int, Unions]) -> Finding:
    """Decide whether the four cases are about every set, neither empty nor all, that is decodable in a row."""
    tally = Tally()
    for G in range(2, 13):
        for members, rows in proper(tables[G]):
            n = len(members)
            named = n <= 2 or (n % 2 == 0 and n >= 4) or odd_of_case_4(G, n)
            at = list(segments.decodable(tables[G].matrix, members))
            tally.add({"G": G, "groups": list(members), "rows": at}, named or not rows)
    return Finding(tally.verdict, "all groups but one, of an even number of groups, are in no case", tally.against)


def odd_of_case_4(G: int, n: int) -> bool:
    """Return whether case 4 is about sets of n groups."""
    return n % 2 == 1 and 3 <= n <= G - (1 if G % 2 else 3)


def case(
    tables: dict[int, Unions], size: Callable[[int, int], bool], holds: Callable[[int, int], bool], found: str
) -> Finding:
    """Decide one of the four cases."""
    tally = Tally()
    for G in range(2, 13):
        for members, rows in proper(tables[G]):
            if size(G, len(members)):
                at = list(segments.decodable(tables[G].matrix, members))
                tally.add({"G": G, "groups": list(members), "rows": at}, holds(G, rows))
    return Finding(tally.verdict, found, tally.against)


def property_4(report: Report, tables: dict[int, Unions]) -> Finding:
    """Decide property 4 for all sets of up to 12 groups; where * is no number, count what has fewer than two."""
    tally, few = Tally(), dict.fromkeys((5, 7, 11), (0, 0))
    for G, unions in ((G, tables[G]) for G in range(2, 13)):
        for members, rows in proper(unions):
            if len(members) >= 4 and len(members) % 2 == 0 and rows:
                for row, other in product(range(G), repeat=2):
                    if row != other and pairs_only(unions, members, row):
                        least = unpaired(unions, members, other, stars=True)
                        data = {"G": G, "groups": list(members), "row": row, "other": other, "unpaired": least}
                        tally.add(data, least >= 2)
                        partners = [(a, (other + 1 - a) % G) for a in members]
                        counted = sum(b not in members or a == b for a, b in partners)
                        report.agree("HET-P4", "arithmetic", counted == least, f"partners a and l + 1 - a: {data}")
                        report.check(least >= 2 or not prime(G), f"(c) it holds for primes when * counts: {data}")
                        if G in few:
                            short = unpaired(unions, members, other, stars=False) < 2
                            few[G] = few[G][0] + short, few[G][1] + 1
    numbers = {f"G = {G}, * no number: fails in": f"{short} of {all_}" for G, (short, all_) in few.items()}
    return Finding(tally.verdict, "a set that a translation keeps is paired in several rows", tally.against, numbers)
