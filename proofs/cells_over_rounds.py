"""Over rounds, a cell with and without one user gives him away; users that look back answer nothing of the kind.

Statement, for one cell of nine users, T = 1, and inputs that do not change, with keys and seeds new in each round.
(a) Rounds tell the server exactly the sums over the survivors that were answered for, and what follows from them.
(b) A request for the set B after one for A is answered exactly when each of A without B, B without A, and both is empty
or has T + 2 users or more. Then the server learns functions of the sums over these classes alone. Where a combination
is about fewer users, the server learns it if users do not look back, and does not when they keep HSA-27.
(c) Of three requests that are answered no combination is about fewer than T + 2 users, exactly or modulo any m. Some
are refused though each two of them are answered, and some though no combination is about so few.
(d) Combinations are not enough. Five sums of inputs of two levels determine x_0, and no combination of them is about
fewer than three users. Three sums tell x_4 - x_5 modulo 2, and no rational combination of them is about so few. HSA-27
refuses both.

Idea. Users are named by class, since exchanging two of them changes signs of masks alone, which are uniform. For (a)
and (b) all pairs of sets are decided on the masked segments, modulo 10. For (c) all triples are compared with the
combinations with the coefficients -1, 0 and 1, as they are and modulo 2: a combination that vanishes outside a few
users solves a system of rank two at most, whose coefficients are determinants of 0s and 1s, and minors of three rows of
0s and 1s are 2 at most. For (d) all inputs are tried; a combination about some users alone exists exactly when the
greatest divisor of the largest minors changes as their columns are left out, and a rational one when it becomes 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product
from math import gcd, prod

import numpy as np

from secagg_spec.arithmetic.levels import Range
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.privacy.heterosag import RULES, Plan, Rounds, refusal
from secagg_spec.privacy.secagg import Users
from secagg_spec.protocols.heterosag.plan import Cell, Parameters

CLAIMS = {
    "UNI-CELLS": "matrices",
}
USERS, OTHERS = 9, tuple(range(9, 14))
PARAMETERS = Parameters(14, 1, 1, 3, 2, (USERS, 5), (1, 1), (2, 2), Range(-1.0, 1.0))
LEAST = PARAMETERS.T + 2
COEFFICIENTS = np.array(list(product((-1, 0, 1), repeat=3)))
FIVE = ((0, 1, 4, 5, 6, 7, 8), (1, 4, 6, 8), (0, 1, 8), (1, 2, 3, 5, 6, 7, 8), (0, 1, 2, 3, 4, 5, 6))
THREE = ((0, 1, 2), (0, 3, 4), (1, 2, 3, 5))


def cell() -> Cell:
    """Return the cell of the nine users alone."""
    [found] = [cell for cell in PARAMETERS.parts if cell.subgroups == (0,)]
    return found


def families(count: int) -> Iterator[tuple[dict[Users, Users], list[Users]]]:
    """Yield all choices of sets that HSA-18 lets survive, but for the names of users; the users of each class first."""
    patterns = list(product((1, 0), repeat=count))
    for cuts in combinations(range(USERS + len(patterns) - 1), len(patterns) - 1):
        ends = [cut - at for at, cut in enumerate((*cuts, USERS + len(patterns) - 1))]
        classes = {
            pattern: tuple(range(start, end)) for pattern, start, end in zip(patterns, [0, *ends], ends, strict=False)
        }
        sets = [tuple(u for p, users in classes.items() if p[at] for u in users) for at in range(count)]
        if not any(0 < len(chosen) < LEAST for chosen in sets):
            yield classes, sets


def answered(*sets: Users) -> bool:
    """Return whether a user answers the last request after the others."""
    *past, last = (frozenset((*chosen, *OTHERS)) for chosen in sets)
    return refusal(PARAMETERS, last, past) is None


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    pairs, kept = Tally(), 0
    for classes, sets in families(2):
        rounds = Rounds(Plan(PARAMETERS), [(*chosen, *OTHERS) for chosen in sets])
        parts = [users for pattern, users in classes.items() if any(pattern) and users]
        yes = rounds.refused == (None, None)
        kept += yes
        holds = yes == all(len(users) >= LEAST for users in parts) and tells(report, rounds, sets, parts)
        pairs.add({"survivors": [list(chosen) for chosen in sets], "answered": yes}, holds)
    numbers = {"pairs": pairs.cases, "answered": kept, **triples(report)}
    report.say(f"{pairs.cases} pairs of rounds, of which {kept} are answered; {numbers['triples']} triples")
    insufficient(report)
    return {"UNI-CELLS": Finding(pairs.verdict, "HSA-27 refuses what isolates few users", pairs.against, numbers)}


def tells(report: Report, rounds: Rounds, sets: Sequence[Users], parts: Sequence[Users]) -> bool:
    """Check (a), and return whether the server learns what (b) says, with the rule and without."""
    for given in ((True, True), (True, False)):
        view, elements = rounds.view(cell(), (), answered=given)
        sums = [e.total(chosen) for e, chosen, yes in zip(elements, sets, given, strict=True) if yes and chosen]
        verdict = view.decide(*sums)
        report.check(verdict.private and verdict.withheld == 1, f"(a) the sums of {sets}, answered: {given}")
        report.check(view.decide(*(elements[0].total(users) for users in parts)).private, f"(b) classes of {sets}")
    found = rounds.combination(cell(), (0, 1))
    if found is None:
        return True
    weak = Rounds(Plan(PARAMETERS, RULES["none"]), rounds.survivors)
    learned = weak.learned(found, answered=(True, True))
    return learned and rounds.refused[1] is not None and not rounds.learned(found, answered=(True, False))


def triples(report: Report) -> dict[str, int]:
    """Check (c), and count triples."""
    found = [(*refused(sets), light([len(users) for users in classes.values()])) for classes, sets in families(3)]
    report.check(not any(few for no, _, few in found if not no), "(c) no answered sums are about few users")
    counts = {
        "triples": len(found),
        "triples answered": sum(not no for no, _, _ in found),
        "by pairs answered": sum(no and not by_pairs for no, by_pairs, _ in found),
        "no combination": sum(no and not few for no, _, few in found),
    }
    report.check(all(counts.values()), "(c) there are some of each kind")
    return counts


def refused(sets: Sequence[Users]) -> tuple[bool, bool]:
    """Return whether the last of three requests is refused, and whether two of them would be."""
    return not answered(*sets), not all(answered(*pair) for pair in combinations(sets, 2))


def light(sizes: Sequence[int]) -> bool:
    """Return whether a combination of three sums is about at least one and fewer than T + 2 users, by class."""
    entries = COEFFICIENTS @ np.array(list(product((1, 0), repeat=3))).T
    weights = np.concatenate([entries != 0, (entries & 1) != 0]) @ np.array(sizes)
    return bool(((weights > 0) & (weights < LEAST)).any())


def insufficient(report: Report) -> None:
    """Check (d)."""
    report.check(determined(FIVE, (1, *[0] * 8), 0), "(d) five sums determine x_0")
    report.check(
        all(minors(FIVE, dropped) == minors(FIVE) > 0 for dropped in few()), "(d) none of five is about few users"
    )
    report.check(determined(THREE, (0, 0, 0, 0, 1, -1), 2), "(d) three sums tell x_4 - x_5 modulo 2")
    report.check(all(minors(THREE, dropped) > 0 for dropped in few()), "(d) no rational combination is about few users")
    report.check(minors(THREE, (4, 5)) == 2 * minors(THREE), "(d) one is about users 4 and 5 modulo 2")
    for sets, without in product((FIVE, THREE), ((), *few())):
        report.agree("UNI-CELLS", "library", minors(sets, without) == divisor(sets, without), f"(d) {sets}, {without}")
    for sets in (FIVE, THREE):
        report.check(not answered(*sets), f"(d) HSA-27 refuses {sets}")


def few() -> list[Users]:
    """Return the sets of fewer than T + 2 users."""
    return [users for size in range(1, LEAST) for users in combinations(range(USERS), size)]


def determined(sets: Sequence[Users], weights: Sequence[int], modulus: int) -> bool:
    """Return whether sums of inputs of two levels determine the weighted sum, as it is or modulo a number."""
    shown: dict[tuple[int, ...], set[int]] = {}
    for x in product((0, 1), repeat=len(weights)):
        value = sum(w * each for w, each in zip(weights, x, strict=True))
        sums = tuple(sum(x[user] for user in chosen) for chosen in sets)
        shown.setdefault(sums, set()).add(divmod(value, modulus)[1] if modulus else value)
    return all(len(values) == 1 for values in shown.values())


def divisor(sets: Sequence[Users], without: Collection[int]) -> int:
    """Return the product of the invariant factors of the same rows, as a library finds them."""
    rows = [[int(user in chosen) for user in range(USERS) if user not in without] for chosen in sets]
    form = package("flint").fmpz_mat(rows).snf()
    return prod(int(form[at, at]) for at in range(len(rows)))


def minors(sets: Sequence[Users], without: Collection[int] = ()) -> int:
    """Return the greatest divisor of the minors of as many rows as there are sets, with some columns left out."""
    rows = np.array([[int(user in chosen) for chosen in sets] for user in range(USERS) if user not in without])
    return gcd(*(round(np.linalg.det(rows[list(chosen)])) for chosen in combinations(range(len(rows)), len(sets))))
