"""Over rounds, a cell with and without one user gives him away; users that look back answer nothing of the kind.

Statement, for one cell, T = 1, and inputs that do not change, with keys and seeds that are new in each round.
(a) Rounds tell the server exactly the sums over the survivors that were answered for, and what follows from them.
(b) Two sums are together about fewer than T + 2 users exactly when their sets differ, and in fewer than T + 2 users, or
one of them is that small. If both are answered, the server learns the difference; when users keep HSA-27, the second is
not answered, and it does not.
(c) For three rounds it is not enough that no two differ in so few: some three sums are about two users, and no two of
them are about fewer than three. HSA-27 finds exactly the combinations with a few users.
(d) For six users there are three sums no rational combination of which is about fewer than three users, and whose sum
is about two modulo 2. HSA-27 finds exactly these as well.

Idea. For (a) and (b) all pairs of sets of five users are decided on the masked segments, modulo 6. For (c) all triples
are compared with the combinations with the coefficients -1, 0 and 1: a combination that vanishes outside a few users
solves a system of rank two at most, whose coefficients are determinants of 0s and 1s. Minors of three rows of 0s and 1s
are 2 at most, so that only the combinations modulo 2 are left to be tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.spans import light_combination
from secagg_spec.ledger import Finding, Report, Tally
from secagg_spec.privacy.heterosag import RULES, Plan, Rounds, refusal
from secagg_spec.privacy.secagg import Users
from secagg_spec.protocols.heterosag_plan import Cell, Parameters

CLAIMS = ("UNI-CELLS",)
PARAMETERS = Parameters(10, 1, 1, 3, 2, (5, 5), (1, 1), (2, 2), Range(-1.0, 1.0))
OTHERS = tuple(range(5, 10))
LEAST = PARAMETERS.T + 2
COEFFICIENTS = np.array(list(product((-1, 0, 1), repeat=3)))


def cell() -> Cell:
    """Return the cell of users 0 to 4 alone."""
    [found] = [cell for cell in PARAMETERS.parts if cell.subgroups == (0,)]
    return found


def surviving() -> list[Users]:
    """Return the sets of the five users that HSA-18 lets survive: nobody, or three or more."""
    return [chosen for size in (0, 3, 4, 5) for chosen in combinations(range(5), size)]


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c)."""
    pairs, answered = Tally(), 0
    for sets in combinations_with_replacement(surviving(), 2):
        rounds = Rounds(Plan(PARAMETERS), [(*chosen, *OTHERS) for chosen in sets])
        differ = set(sets[0]) ^ set(sets[1])
        kept = rounds.refused == (None, None)
        answered += kept
        holds = kept == (not 0 < len(differ) < LEAST) and tells(report, rounds, sets)
        pairs.add({"survivors": [list(chosen) for chosen in sets], "answered": kept}, holds)
    triples = [combined(sets) for sets in combinations(surviving()[1:], 3)]
    report.check(all(found == counted for found, counted, _ in triples), "(c) HSA-27 finds these and no others")
    beyond_pairs = sum(found and not by_pairs for found, _, by_pairs in triples)
    report.check(beyond_pairs > 0, "(c) some three sums are about fewer than any two")
    report.say(f"{pairs.cases} pairs of rounds, of which {answered} are answered; {len(triples)} triples")
    numbers = {"pairs": pairs.cases, "answered": answered, "triples": len(triples), "beyond pairs": beyond_pairs}
    numbers["modulo 2 only"] = modulo_2(report)
    return {"UNI-CELLS": Finding(pairs.verdict, "HSA-27 refuses what isolates few users", pairs.against, numbers)}


def tells(report: Report, rounds: Rounds, sets: Sequence[Users]) -> bool:
    """Check (a), and return whether the server learns what (b) says, with the rule and without."""
    for given in ((True, True), (True, False)):
        view, elements = rounds.view(cell(), (), answered=given)
        sums = [e.total(chosen) for e, chosen, yes in zip(elements, sets, given, strict=True) if yes and chosen]
        verdict = view.decide(*sums)
        report.check(verdict.private and verdict.withheld == 1, f"(a) the sums of {sets}, answered: {given}")
    found = rounds.combination(cell(), (0, 1))
    if found is None:
        return rounds.refused[1] is None
    weak = Rounds(Plan(PARAMETERS, RULES["none"]), rounds.survivors)
    learned = weak.told(found, answered=(True, True))
    return learned and rounds.refused[1] is not None and not rounds.told(found, answered=(True, False))


def light(rows: Sequence[Sequence[int]] | NDArray[np.int64], coefficients: NDArray[np.int64]) -> bool:
    """Return whether a combination is about at least one and fewer than T + 2 users."""
    weights = (coefficients @ np.array(rows) != 0).sum(axis=1)
    return bool(((weights > 0) & (weights < LEAST)).any())


def modulo_2(report: Report) -> int:
    """Check (d), and return how many triples of sets are about few users modulo 2, and not otherwise."""
    only = 0
    for pair in combinations(combinations(range(6), 3), 2):
        for third in combinations(range(6), 4):
            rows = np.array([[int(user in chosen) for user in range(6)] for chosen in (*pair, third)])
            exactly, weights = light(rows, COEFFICIENTS), ((COEFFICIENTS @ rows) & 1).sum(axis=1)
            modulo = bool(((weights > 0) & (weights < LEAST)).any())
            found = light_combination([frozenset(chosen) for chosen in (*pair, third)], LEAST) is not None
            report.check(found == (exactly or modulo), f"(d) {pair}, {third}")
            only += modulo and not exactly
    report.check(only > 0, "(d) some are about few users modulo 2 only")
    return only


def combined(sets: Sequence[Users]) -> tuple[bool, bool, bool]:
    """Return whether HSA-27 refuses three rounds, whether some combination is light, and whether one of two is."""
    past = [frozenset((*chosen, *OTHERS)) for chosen in sets]
    refused = refusal(PARAMETERS, past[2], past[:2]) is not None
    rows = [[int(user in chosen) for user in range(5)] for chosen in sets]
    two = COEFFICIENTS[(COEFFICIENTS == 0).any(axis=1)]
    return refused, light(rows, COEFFICIENTS), light(rows, two)
