"""The fairness gap is 0 for equal dropout rates; for others the least gap has a formula, and may be above 0.

Statement. Which of M batches are complete has any law, the same in each round, whatever the rounds before were; batches
may be complete independently, batch b with the probability c_b, or not. A round takes place when k or more are
complete, and chooses k of them. r_b is the mean number of rounds that batch b is in, and the gap the largest r_b minus
the least.
(a) With equal c_b each strategy of the page has the gap 0, exactly in the mean and in the long run.
(b) Let g(A) be the mean of min(|A and B|, k) over the complete batches B with k members or more. If no round is skipped
    that could take place, the r that can be had are those with r(A) <= g(A) for all A and r(all) = g(all). The least
    gap is max_A (g(all) - g(rest))/|A| - min_A g(A)/|A|, and no strategy has a smaller F in (6), however it uses the
    past. It is 0 exactly when g(A) >= |A| g(all)/M for all A; for two batches of which one is chosen, with independent
    c >= d, it is max(0, c - d - c d).
(c) Four users, T = K = 2, rates 0, 0, 1/2, 1/2: it is 1/2 when equal ones are a batch, and 0 otherwise. With rounds
    skipped the gap 0 is always possible, in (c) with the cardinality 1 in place of 2; other batches have 3/2.
(d) Without a rule that looks at frequencies the gap may be above 0 where it can be 0. With the paper's rule too: for k
    = 2 and c = (1, 1, 1/2, 1/2) it is 1/6 or more, since the rule has a say in one of two batches, and the rule of (e)
    has the gap 0. So a rule of this kind is necessary, and the paper's is not.
(e) The choice of the k complete batches of least frequency has the least gap of (b), for all laws.
(f) F, as (6) has it, is 0 only if the mean shares of all users tend to one number.
(g) Given the rounds before, a choice by frequency is no uniform one, nor is a uniform choice of complete sets when
    rates differ.

Proof of (b), for all M, k and laws. What is chosen from B has at most min(|A and B|, k) members in A, and k in all, so
that r satisfies the inequalities. Conversely, for weights w_1 >= w_2 >= ... the largest sum of w_b r_b that can be had
takes the k heaviest members of each B: sum_i (w_i - w_(i+1)) g(A_i), where A_i has the i heaviest batches. No r with
the inequalities has more. Closed convex sets with the same largest value in each direction are equal. Now let r have
the least sum of squares. A is called tight when r(A) = g(A). As a mean of such functions g is submodular, so that
unions and intersections of tight sets are tight. Let D(a) be the smallest tight set with a. If some b in D(a) had r_b >
r_a, a bit of r_b could be given to a, and the squares would have a smaller sum. So the batches of the least r_b are a
union of sets D(a), and tight, and so are those that have not the largest r_b. Hence min r = g(A)/|A| for some A, and
max r = (g(all) - g(rest))/|A| for another one. By the inequalities no r has a larger minimum, or a smaller maximum.
Given the past each round's choice has a mean that is such an r, and so have the shares of J rounds; r of a limit of
them is between the limits of (6).

Idea. (a) Exchanging batches changes no probability, so that the means are equal. With f_b the rounds of batch b so
far, and E_b the probability that it is chosen next, let V be the sum over b of (f_b - mean f)^2. If sum_b (f_b - mean
f) E_b is never positive, V grows by at most a constant in each round, in the mean, so that the gap of J rounds is of
the order 1/sqrt(J). If f_a <= f_b, exchanging a and b in the sets of complete batches shows that E_a >= E_b, and by
Chebyshev's inequality the sum is not positive; it is also counted, for all orders of frequencies. (b) An exact linear
program over what is chosen from each set of complete batches has the gap of the formula, for up to four batches: c of
1, 1/2 and 1/8, and 30 drawn laws that are not independent. (c) Two more programs. (d) The number of rare batches in a
round is bounded in each state. (e) Take the r whose squares have the least sum, and V the sum of (f_b - t r_b)^2 after
t rounds. As the choice has the least sum of f_b, sum_b f_b E_b <= sum_b f_b r_b, and by the least squares sum_b r_b E_b
>= sum_b r_b^2. So sum_b (f_b - t r_b) (E_b - r_b) is never positive, V grows by at most a constant in each round, and
the shares tend to r, whose gap is the least. All this is also counted. (f) Each limit superior is at most the largest,
each limit inferior at least the least, and these are equal. Rounds that the code chooses, from fixed bits, show the
gaps of (c), (d) and (e) as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, combinations_with_replacement, product
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.selection import metrics, strategies
from secagg_spec.selection.batches import Parameters

CLAIMS = {
    "MRS-EQ6": "arithmetic",
    "MRS-THM1F": "readings",
    "MRS-REM4": "expectation",
    "MRS-REM10": "expectation",
    "UNI-FAIR": "expectation",
    "UNI-LEAST": "expectation",
}
Chances: TypeAlias = tuple[Fraction, ...]
Batches: TypeAlias = tuple[int, ...]
Rule: TypeAlias = Callable[[Sequence[int], Batches, int], dict[Batches, Fraction]]
ONE, HALF = Fraction(1), Fraction(1, 2)
RARE: Chances = (ONE, ONE, HALF, HALF)
DRAWN, ROUNDS = 5, 1500
NEAR = 3 / ROUNDS**0.5
"""How near a gap of drawn rounds is to the one in the long run, by the order of (a)."""
EVERY_ROUND = 10**9
"""What a round is worth in the linear program, against the gap."""


class Law(NamedTuple):
    """The law of what is complete: of M batches, each set of k or more with its probability."""

    M: int
    k: int
    states: tuple[tuple[Batches, Fraction], ...]


def independent(chances: Chances, k: int) -> Law:
    """Return the law of batches that are complete independently."""
    states = []
    for flags in product((True, False), repeat=len(chances)):
        chance = Fraction(prod(c if flag else 1 - c for c, flag in zip(chances, flags, strict=True)))
        if sum(flags) >= k and chance:
            states.append((tuple(b for b, flag in enumerate(flags) if flag), chance))
    return Law(len(chances), k, tuple(states))


def together(M: int, k: int, name: str) -> Law:
    """Return a law with drawn weights of all sets of batches."""
    sets = [(), *subsets(M)]
    weights = [byte & 7 for byte in shake_256(f"{name} {M} {k}".encode()).digest(len(sets))]
    chances = [(B, Fraction(weight, sum(weights))) for B, weight in zip(sets, weights, strict=True)]
    return Law(M, k, tuple((B, p) for B, p in chances if len(B) >= k and p))


def subsets(M: int) -> list[Batches]:
    """Return the sets of batches that are not empty."""
    return [A for size in range(1, M + 1) for A in combinations(range(M), size)]


def most(law: Law) -> Callable[[Sequence[int]], Fraction]:
    """Return g: the mean number of batches of a set that a round has at most."""
    return lambda A: sum((p * min(len({*A} & {*B}), law.k) for B, p in law.states), Fraction(0))


def least_gap(law: Law) -> Fraction:
    """Return the formula of (b)."""
    M, g = law.M, most(law)
    high = max((g(range(M)) - g([b for b in range(M) if b not in A])) / len(A) for A in subsets(M))
    return high - min(g(A) / len(A) for A in subsets(M))


def least_squares(law: Law) -> list[Fraction]:
    """Return the means whose squares have the least sum: the rarest batches first, then those of the rest."""
    M, g = law.M, most(law)
    means, done = [Fraction(0)] * M, set[int]()
    while len(done) < M:
        left = [A for A in subsets(M) if not {*A} & done]
        level, _, A = min(((g([*done, *A]) - g([*done])) / len(A), -len(A), A) for A in left)
        means = [level if b in A else mean for b, mean in enumerate(means)]
        done |= {*A}
    return means


# ------------------------------------------------------------------------------------- an exact linear program


def maximum(
    worth: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], limits: Sequence[Fraction]
) -> list[Fraction]:
    """Return x >= 0 with the largest worth and rows x <= limits, for limits >= 0, by the simplex method of Bland."""
    n, m = len(worth), len(rows)
    table = [
        [*row, *(Fraction(i == j) for j in range(m)), limit]
        for i, (row, limit) in enumerate(zip(rows, limits, strict=True))
    ]
    gain = [*(Fraction(w) for w in worth), *[Fraction(0)] * (m + 1)]
    basis = list(range(n, n + m))
    while (enter := next((j for j in range(n + m) if gain[j] > 0), None)) is not None:
        _, _, leave = min((table[i][-1] / table[i][enter], basis[i], i) for i in range(m) if table[i][enter] > 0)
        basis[leave] = enter
        table[leave] = [value / table[leave][enter] for value in table[leave]]
        for i in (i for i in range(m) if i != leave and table[i][enter]):
            table[i] = [a - table[i][enter] * b for a, b in zip(table[i], table[leave], strict=True)]
        gain = [a - gain[enter] * b for a, b in zip(gain, table[leave], strict=True)]
    found = dict(zip(basis, (row[-1] for row in table), strict=True))
    return [found.get(j, Fraction(0)) for j in range(n)]


def table_of(law: Law) -> tuple[list[tuple[int, Batches]], list[list[Fraction]]]:
    """Return each choice with the state that it is for, and for each batch which choices have it."""
    choices = [(at, chosen) for at, (B, _) in enumerate(law.states) for chosen in combinations(B, law.k)]
    return choices, [[Fraction(b in chosen) for _, chosen in choices] for b in range(law.M)]


def program(law: Law, *, skip: bool) -> tuple[Fraction, Fraction]:
    """Return the least gap without skipping and the share of rounds; or with it, the gap 0 and the most rounds."""
    (choices, inside), states = table_of(law), law.states
    rows = [[*(Fraction(at == state) for state, _ in choices), Fraction(0), Fraction(0)] for at in range(len(states))]
    for b in range(law.M):
        rows.append([*inside[b], -ONE, Fraction(0)])
        rows.append([*(-each for each in inside[b]), Fraction(0), ONE])
    if skip:
        rows.append([*[Fraction(0)] * len(choices), ONE, -ONE])
    worth = [*[Fraction(EVERY_ROUND)] * len(choices), -ONE, ONE]
    x = maximum(worth, rows, [*(p for _, p in states), *[Fraction(0)] * (len(rows) - len(states))])
    means = [sum((a * b for a, b in zip(row, x, strict=False)), Fraction(0)) for row in inside]
    return max(means) - min(means), sum(x[:-2], Fraction(0))


def by_scipy(law: Law) -> float:
    """Return the least gap without skipping by the linear program of scipy."""
    choices, inside = table_of(law)
    table = np.array(inside, dtype=float)
    ones = np.ones((law.M, 1))
    bounds = np.vstack([np.hstack([table, -ones, 0 * ones]), np.hstack([-table, 0 * ones, ones])])
    whole = np.array([[float(at == state) for at, _ in choices] + [0.0, 0.0] for state in range(len(law.states))])
    worth = np.array([0.0] * len(choices) + [1.0, -1.0])
    chances = [float(p) for _, p in law.states]
    found = package("scipy.optimize").linprog(worth, bounds, np.zeros(2 * law.M), whole, chances)
    return float(found.fun)


# ------------------------------------------------------------------------------------------------------- rules


def uniform(frequencies: Sequence[int], B: Batches, k: int) -> dict[Batches, Fraction]:
    """Return the probability of each choice: all alike."""
    chosen = list(combinations(B, k))
    return dict.fromkeys(chosen, Fraction(1, len(chosen)))


def fair(frequencies: Sequence[int], B: Batches, k: int) -> dict[Batches, Fraction]:
    """Return the same when one complete batch of least frequency is drawn first, and then k - 1 others."""
    low = [b for b in B if frequencies[b] == min(frequencies[each] for each in B)]
    law: dict[Batches, Fraction] = {}
    for first in low:
        for others, chance in uniform((), tuple(b for b in B if b != first), k - 1).items():
            chosen = tuple(sorted((first, *others)))
            law[chosen] = law.get(chosen, Fraction(0)) + chance / len(low)
    return law


def ascending(frequencies: Sequence[int], B: Batches, k: int) -> dict[Batches, Fraction]:
    """Return the same when the k complete batches of least frequency are chosen, and ties are drawn."""
    totals = {chosen: sum(frequencies[b] for b in chosen) for chosen in combinations(B, k)}
    low = [chosen for chosen, total in totals.items() if total == min(totals.values())]
    return dict.fromkeys(low, Fraction(1, len(low)))


def expected(rule: Rule, frequencies: Sequence[int], law: Law) -> list[Fraction]:
    """Return for each batch the probability that it is in the next round."""
    found = [Fraction(0)] * law.M
    for B, p in law.states:
        for chosen, chance in rule(frequencies, B, law.k).items():
            for b in chosen:
                found[b] += p * chance
    return found


def orders(M: int) -> list[Batches]:
    """Return all orders of frequencies, with ties, as frequencies up to M - 1."""
    return [f for f in product(range(M), repeat=M) if {*f} == {*range(max(f) + 1)}]


def settles(law: Law, gap: Fraction) -> bool:
    """Return whether (e) holds: the means are possible and have the least gap, and both of its inequalities hold."""
    r, g = least_squares(law), most(law)
    possible = all(sum(r[b] for b in A) <= g(A) for A in subsets(len(r))) and sum(r) == g(range(len(r)))
    pairs = [(f, expected(ascending, f, law)) for f in orders(len(r))]
    nearer = all(dot(f, E) <= dot(f, r) and dot(r, E) >= dot(r, r) for f, E in pairs)
    return possible and max(r) - min(r) == gap and nearer


def dot(a: Sequence[Fraction | int], b: Sequence[Fraction]) -> Fraction:
    """Return the sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def balanced(rule: Rule, law: Law) -> bool:
    """Return whether the sum of (f_b - mean f) E_b is never positive, for all orders of frequencies."""
    M = law.M
    for f in orders(M):
        pull = sum(
            ((M * own - sum(f)) * each for own, each in zip(f, expected(rule, f, law), strict=True)), Fraction(0)
        )
        if pull > 0:
            return False
    return True


# ---------------------------------------------------------------------------------------------------- decisions


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (g)."""
    formula, gaps, equal = Tally(), Tally(), Tally()
    for M in range(2, 5):
        for chances, k in product(combinations_with_replacement((ONE, HALF, Fraction(1, 8)), M), range(1, M)):
            law, case = independent(chances, k), {"c": [str(c) for c in chances], "k": k}
            gap = compared(report, formula, law, case)
            gaps.add({**case, "gap": str(gap)}, gap == 0)
            code = metrics.least_gap(Parameters(M, k, 1), [1 - c for c in chances])
            report.check(code == gap, f"(b) the code: {case}")
            report.check((M, k) != (2, 1) or gap == two_batches(*chances), f"(b) two batches: {case}")
            if len({*chances}) == 1:
                equal.add({**case, "gap": str(gap)}, gap == 0)
                report.check(all(balanced(rule, law) for rule in (uniform, fair, ascending)), f"(a) {case}")
                report.check(alike(law), f"(a) equal means in the first rounds: {case}")
    for M, name in product(range(2, 5), range(DRAWN)):
        for k in range(1, M):
            compared(report, formula, together(M, k, f"law {name}"), {"drawn law": name, "M": M, "k": k})
    report.say(f"the formula is the least gap in {formula.held} of {formula.cases} cases; it is 0 in {gaps.held}")
    numbers = {"cases": formula.cases, "independent, gap 0": gaps.held}
    return {
        "MRS-EQ6": definition(),
        "MRS-THM1F": theorem(report, {"equal rates": equal.verdict, "all rates": gaps.verdict}),
        "MRS-REM4": necessary(report),
        "MRS-REM10": unbiased(),
        "UNI-FAIR": Finding(formula.verdict, "the formula of section 8", formula.against, numbers),
        "UNI-LEAST": rule_of_least(report),
    }


def compared(report: Report, formula: Tally, law: Law, case: dict[str, object]) -> Fraction:
    """Return the least gap of the exact program, and compare the formula, scipy and the rule of (e) with it."""
    gap, rounds = program(law, skip=False)
    report.check(rounds == sum(p for _, p in law.states), f"no round is skipped: {case}")
    formula.add({**case, "gap": str(gap)}, gap == least_gap(law))
    report.agree("UNI-FAIR", "library", abs(by_scipy(law) - float(gap)) < 1e-9, f"the program of scipy: {case}")
    g = most(law)
    even = all(g(A) * law.M >= len(A) * g(range(law.M)) for A in subsets(law.M))
    report.check((gap == 0) == even, f"(b) when it is 0: {case}")
    report.check(settles(law, gap), f"(e) {case}")
    return gap


def two_batches(c: Fraction, d: Fraction) -> Fraction:
    """Return the least gap of two batches of which one is chosen, where c is not below d."""
    return max(Fraction(0), c - d - c * d)


def alike(law: Law) -> bool:
    """Return whether each rule gives all batches the same mean number of rounds after each of two rounds."""
    for rule in (uniform, fair, ascending):
        after = {(0,) * law.M: ONE}
        for _ in range(2):
            after = stepped(rule, after, law)
            means = [sum((f[b] * p for f, p in after.items()), Fraction(0)) for b in range(law.M)]
            if len({*means}) > 1:
                return False
    return True


def stepped(rule: Rule, before: dict[Batches, Fraction], law: Law) -> dict[Batches, Fraction]:
    """Return the distribution of frequencies a round later."""
    idle = 1 - sum((p for _, p in law.states), Fraction(0))
    after = {f: p * idle for f, p in before.items()}
    for (f, q), (B, p) in product(before.items(), law.states):
        for chosen, chance in rule(f, B, law.k).items():
            to = tuple(own + (b in chosen) for b, own in enumerate(f))
            after[to] = after.get(to, Fraction(0)) + q * p * chance
    return after


def run(strategy: str, T: int, K: int, rates: Sequence[float]) -> float:
    """Return the fairness gap of rounds that the code chooses, from fixed bits."""
    N = len(rates)
    parameters, log = Parameters(N, K, T), np.zeros((ROUNDS, N), dtype=bool)
    name = f"{strategy} {T} {K} {rates}".encode()
    bits = np.frombuffer(shake_256(name).digest(8 * N * ROUNDS), "<u4").reshape(ROUNDS, 2, N) / 2.0**32
    seen = np.zeros(N, dtype=np.int64)
    for row, (here, draws) in zip(log, bits, strict=True):
        available = here >= rates
        bounds = strategies.ranges(parameters, strategy, seen, available)
        if bounds is not None:
            steps = [int(one * bound) for one, bound in zip(draws, bounds, strict=False)]
            row[[*(strategies.choose(parameters, strategy, seen, available, steps) or ())]] = True
            seen += row
    return float(metrics.fairness_gap(log))


def definition() -> Finding:
    """Decide (f) on two users who take turns in runs of 1, 2, 4, … rounds: shares go from 1/3 to 2/3 and back."""
    first, shares = 0, []
    for turn in range(12):
        first += 2**turn * (turn % 2 == 0)
        shares.append(Fraction(first, 2 ** (turn + 1) - 1))
    apart = max(shares[-2:]) - min(shares[-2:])
    return Finding(
        "confirmed" if abs(apart - Fraction(1, 3)) < Fraction(1, 1000) else "refuted", "F is 1/3 there, not 0"
    )


def theorem(report: Report, readings: Mapping[str, str]) -> Finding:
    """Decide (c), and F = 0 by readings: for the rates of the last words of the theorem, or for all."""
    rates = (Fraction(0), Fraction(0), HALF, HALF)
    found = {}
    for mate in range(1, 4):
        batches = ((0, mate), tuple(user for user in range(1, 4) if user != mate))
        both = tuple(prod((1 - rates[u] for u in batch), start=ONE) for batch in batches)
        found[str(batches)] = least_gap(independent(both, 1))
    report.check(sorted(found.values()) == [0, 0, HALF], f"(c) the least gaps are {found}")
    by_rate = independent((ONE, Fraction(1, 4)), 1)
    all_rounds, (gap, kept) = program(by_rate, skip=False)[1], program(by_rate, skip=True)
    others = program(independent((HALF, HALF), 1), skip=False)[1]
    gaps = [run("fair", 2, 2, [float(p) for p in order]) for order in (rates, (*rates[::2], *rates[::2]))]
    report.agree("MRS-THM1F", "samples", abs(gaps[0] - 0.5) < NEAR > gaps[1], f"{ROUNDS} rounds have the gaps {gaps}")
    report.check(gap == Fraction(0), "(c) the gap 0 can be had when rounds are skipped")
    against = {
        "N": 4,
        "K": 2,
        "T": 2,
        "rates": ["0", "0", "1/2", "1/2"],
        "batches": [[0, 1], [2, 3]],
        "least gap": str(HALF),
    }
    report.say(
        f"least gaps for the rates 0, 0, 1/2, 1/2 by how users are batched: { {k: str(v) for k, v in found.items()} }"
    )
    report.say(f"the gap 0, by what the theorem is for: {dict(readings)}")
    return Finding(
        by_reading(reading == "confirmed" for reading in readings.values()),
        "0 for equal rates",
        against,
        {"C": str(2 * all_rounds), "C with gap 0": str(2 * kept), "C of other batches": str(2 * others)},
    )


def necessary(report: Report) -> Finding:
    """Decide the first half of (d): two batches, one always complete and one in half of all rounds."""
    law = independent((ONE, HALF), 1)
    free = expected(uniform, (0, 0), law)
    ruled = [expected(fair, f, law) for f in ((1, 0), (0, 0), (0, 1))]
    report.check(least_gap(law) == 0 and balanced(fair, law), "(d) the rule reaches 0")
    gaps = [run(strategy, 1, 1, [0, 0.5]) for strategy in ("uniform", "fair")]
    report.agree("MRS-REM4", "samples", abs(gaps[0] - 0.5) < NEAR > gaps[1], f"{ROUNDS} rounds have the gaps {gaps}")
    report.say(f"shares with a uniform choice: {free[0]} and {free[1]}")
    report.say(f"by the rule they depend on who is behind: {[str(first) for first, _ in ruled]} of the first batch")
    rare = independent(RARE, 2)
    missed = least_of_fair(rare)
    other_rule = program(rare, skip=False)[0] == 0 and balanced(ascending, rare)
    readings = {"some rule": free[0] != free[1], "this rule": not (missed > 0 and other_rule)}
    against = {"batches": 4, "of which a round has": 2, "complete": [str(c) for c in RARE]}
    against |= {"gap of this rule, at least": str(missed), "of another rule": "0"}
    return Finding(
        by_reading(readings.values()),
        "a uniform choice has the gap 1/2 there",
        against,
        {"uniform": str(free[0] - free[1]), "rule": "0"},
    )


def rule_of_least(report: Report) -> Finding:
    """Decide the second half of (d)."""
    law = independent(RARE, 2)
    report.check(program(law, skip=False)[0] == 0 and balanced(ascending, law), "(e) 0 can be had")
    gap = least_of_fair(law)
    gaps = [run(strategy, 1, 2, [float(1 - c) for c in RARE]) for strategy in ("fair", "least")]
    apart = gaps[0] > float(gap) - NEAR and gaps[1] < NEAR < gaps[0]
    report.agree("UNI-LEAST", "samples", apart, f"{ROUNDS} rounds have the gaps {gaps}")
    report.say(f"by the rule of the paper the gap is at least {gap}")
    return Finding(
        "confirmed" if gap > 0 else "refuted",
        "least frequency for one batch is not enough",
        None,
        {"gap": str(gap), "least": "0"},
    )


def least_of_fair(law: Law) -> Fraction:
    """Return a gap that the rule of the paper has at least, by how often the last two of four batches can be chosen."""
    most = max(sum(expected(fair, f, law)[2:]) for f in orders(4))
    return Fraction(1) - most


def unbiased() -> Finding:
    """Decide (g)."""
    law = independent((ONE, HALF), 1)
    by_frequency = [expected(fair, before, law) for before in ((0, 1), (1, 0))]
    by_rates = expected(uniform, (0, 0), law)
    broken = by_frequency == [[1, 0], [HALF, HALF]] and by_rates[0] != by_rates[1]
    return Finding(
        "confirmed" if broken else "refuted",
        "what is chosen next depends on the rounds before; unequal rates do it too",
    )
