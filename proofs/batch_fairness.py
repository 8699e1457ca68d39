"""The fairness gap is 0 for equal dropout rates; for others the least gap has a formula, and may be above 0.

Statement. M batches are complete independently, batch b with the probability c_b; a round takes place when k or more
are, and chooses k of them. r_b is the mean number of rounds that batch b is in, and the gap the largest r_b minus the
least.
(a) With equal c_b each strategy of the page has the gap 0, exactly in the mean and in the long run.
(b) If no round is skipped that could take place, the least gap is max_A (g(all) - g(rest))/|A| - min_A g(A)/|A|,
    where g(A) is the mean of min(|A and B|, k) over the complete batches B with k members or more. It is above 0 for
    some rates.
(c) Four users, T = K = 2, rates 0, 0, 1/2, 1/2: it is 1/2 when equal ones are a batch, and 0 otherwise. With rounds
    skipped the gap 0 is always possible, in (c) with the cardinality 1 in place of 2; other batches have 3/2.
(d) Without the rule of least frequency the gap may be above 0 where it can be 0. With the rule too: for k = 2 and c =
    (1, 1, 1/2, 1/2) it is 1/6 or more, since the rule has a say in one of two batches, and the least gap is 0.
(e) The choice of the k complete batches of least frequency has the least gap of (b), for all c.
(f) F, as (6) has it, is 0 only if the mean shares of all users tend to one number.
(g) Given the rounds before, a choice by frequency is no uniform one, nor is a uniform choice of complete sets when
    rates differ.

Idea. (a) Exchanging batches changes no probability, so that the means are equal. With f_b the rounds of batch b so
far, and E_b the probability that it is chosen next, let V be the sum over b of (f_b - mean f)^2. If sum_b (f_b - mean
f) E_b is never positive, V grows by at most a constant in each round, in the mean, so that the gap of J rounds is of
the order 1/sqrt(J). If f_a <= f_b, exchanging a and b in the sets of complete batches shows that E_a >= E_b, and by
Chebyshev's inequality the sum is not positive; it is also counted, for all orders of frequencies. (b) Max r_b is at
least r(A)/|A|, for each A, and r(A) = g(all) - r(rest) >= g(all) - g(rest); min r_b is at most g(A)/|A|. That both
bounds are attained together is decided by an exact linear program over what is chosen from each set of complete
batches. (c) Two more programs. (d) The number of rare batches in a round is bounded in each state. (e) Take the r
whose squares have the least sum, and V the sum of (f_b - t r_b)^2 after t rounds. As the choice has the least sum of
f_b, sum_b f_b E_b <= sum_b f_b r_b, and by the least squares sum_b r_b E_b >= sum_b r_b^2. So sum_b (f_b - t r_b)
(E_b - r_b) is never positive, V grows by at most a constant in each round, and the shares tend to r, whose gap is the
least. All this is also counted. (f) Each limit superior is at most the largest, each limit inferior at least the
least, and these are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from math import prod
from typing import TypeAlias

from secagg_spec.ledger import Finding, Report, Tally

CLAIMS = {
    "MRS-EQ6": "expectation",
    "MRS-THM1F": "expectation",
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
EVERY_ROUND = 10**9
"""What a round is worth in the linear program, against the gap."""


def complete(chances: Chances, k: int) -> Iterator[tuple[Batches, Fraction]]:
    """Yield each set of k or more complete batches with its probability."""
    for flags in product((True, False), repeat=len(chances)):
        chance = prod(c if flag else 1 - c for c, flag in zip(chances, flags, strict=True))
        if sum(flags) >= k and chance:
            yield tuple(b for b, flag in enumerate(flags) if flag), Fraction(chance)


def subsets(M: int) -> list[Batches]:
    """Return the sets of batches that are not empty."""
    return [A for size in range(1, M + 1) for A in combinations(range(M), size)]


def most(chances: Chances, k: int) -> Callable[[Sequence[int]], Fraction]:
    """Return g: the mean number of batches of a set that a round has at most."""
    states = list(complete(chances, k))
    return lambda A: sum((p * min(len({*A} & {*B}), k) for B, p in states), Fraction(0))


def least_gap(chances: Chances, k: int) -> Fraction:
    """Return the formula of (b)."""
    M, g = len(chances), most(chances, k)
    high = max((g(range(M)) - g([b for b in range(M) if b not in A])) / len(A) for A in subsets(M))
    return high - min(g(A) / len(A) for A in subsets(M))


def least_squares(chances: Chances, k: int) -> list[Fraction]:
    """Return the means whose squares have the least sum: the rarest batches first, then those of the rest."""
    M, g = len(chances), most(chances, k)
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


def program(chances: Chances, k: int, *, skip: bool) -> tuple[Fraction, Fraction]:
    """Return the least gap without skipping and the share of rounds; or with it, the gap 0 and the most rounds."""
    M, states = len(chances), list(complete(chances, k))
    choices = [(at, chosen) for at, (B, _) in enumerate(states) for chosen in combinations(B, k)]
    inside = [[Fraction(b in chosen) for _, chosen in choices] for b in range(M)]
    rows = [[*(Fraction(at == state) for state, _ in choices), Fraction(0), Fraction(0)] for at in range(len(states))]
    for b in range(M):
        rows.append([*inside[b], -ONE, Fraction(0)])
        rows.append([*(-each for each in inside[b]), Fraction(0), ONE])
    if skip:
        rows.append([*[Fraction(0)] * len(choices), ONE, -ONE])
    worth = [*[Fraction(EVERY_ROUND)] * len(choices), -ONE, ONE]
    x = maximum(worth, rows, [*(p for _, p in states), *[Fraction(0)] * (len(rows) - len(states))])
    means = [sum((a * b for a, b in zip(row, x, strict=False)), Fraction(0)) for row in inside]
    return max(means) - min(means), sum(x[:-2], Fraction(0))


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


def expected(rule: Rule, frequencies: Sequence[int], chances: Chances, k: int) -> list[Fraction]:
    """Return for each batch the probability that it is in the next round."""
    found = [Fraction(0)] * len(chances)
    for B, p in complete(chances, k):
        for chosen, chance in rule(frequencies, B, k).items():
            for b in chosen:
                found[b] += p * chance
    return found


def orders(M: int) -> list[Batches]:
    """Return all orders of frequencies, with ties, as frequencies up to M - 1."""
    return [f for f in product(range(M), repeat=M) if {*f} == {*range(max(f) + 1)}]


def settles(chances: Chances, k: int, gap: Fraction) -> bool:
    """Return whether (e) holds: the means are possible and have the least gap, and both of its inequalities hold."""
    r, g = least_squares(chances, k), most(chances, k)
    possible = all(sum(r[b] for b in A) <= g(A) for A in subsets(len(r))) and sum(r) == g(range(len(r)))
    pairs = [(f, expected(ascending, f, chances, k)) for f in orders(len(r))]
    nearer = all(dot(f, E) <= dot(f, r) and dot(r, E) >= dot(r, r) for f, E in pairs)
    return possible and max(r) - min(r) == gap and nearer


def dot(a: Sequence[Fraction | int], b: Sequence[Fraction]) -> Fraction:
    """Return the sum of products."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def balanced(rule: Rule, chances: Chances, k: int) -> bool:
    """Return whether the sum of (f_b - mean f) E_b is never positive, for all orders of frequencies."""
    M = len(chances)
    for f in orders(M):
        pull = sum(
            ((M * own - sum(f)) * each for own, each in zip(f, expected(rule, f, chances, k), strict=True)), Fraction(0)
        )
        if pull > 0:
            return False
    return True


# ---------------------------------------------------------------------------------------------------- decisions


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (g)."""
    formula, gaps = Tally(), Tally()
    for M in range(2, 5):
        for chances, k in product(combinations_with_replacement((ONE, HALF, Fraction(1, 8)), M), range(1, M)):
            gap, rounds = program(chances, k, skip=False)
            case = {"c": [str(c) for c in chances], "k": k, "gap": str(gap)}
            report.check(rounds == sum(p for _, p in complete(chances, k)), f"no round is skipped: {case}")
            formula.add(case, gap == least_gap(chances, k))
            gaps.add(case, gap == 0, condition=len({*chances}) == 1)
            report.check(settles(chances, k, gap), f"(e) {case}")
            if len({*chances}) == 1:
                report.check(all(balanced(rule, chances, k) for rule in (uniform, fair, ascending)), f"(a) {case}")
                report.check(alike(chances, k), f"(a) equal means in the first rounds: {case}")
    report.say(f"the formula is the least gap in {formula.held} of {formula.cases} cases; it is 0 in {gaps.held}")
    numbers = {"cases": formula.cases, "gap 0": gaps.held}
    return {
        "MRS-EQ6": definition(),
        "MRS-THM1F": theorem(report, gaps.verdict),
        "MRS-REM4": necessary(report),
        "MRS-REM10": unbiased(),
        "UNI-FAIR": Finding(formula.verdict, "the formula of section 8", formula.against, numbers),
        "UNI-LEAST": rule_of_least(report),
    }


def alike(chances: Chances, k: int) -> bool:
    """Return whether each rule gives all batches the same mean number of rounds after each of two rounds."""
    M = len(chances)
    for rule in (uniform, fair, ascending):
        law = {(0,) * M: ONE}
        for _ in range(2):
            law = stepped(rule, law, chances, k)
            means = [sum((f[b] * p for f, p in law.items()), Fraction(0)) for b in range(M)]
            if len({*means}) > 1:
                return False
    return True


def stepped(rule: Rule, law: dict[Batches, Fraction], chances: Chances, k: int) -> dict[Batches, Fraction]:
    """Return the distribution of frequencies a round later."""
    idle = 1 - sum((p for _, p in complete(chances, k)), Fraction(0))
    after = {f: p * idle for f, p in law.items()}
    for (f, q), (B, p) in product(law.items(), complete(chances, k)):
        for chosen, chance in rule(f, B, k).items():
            to = tuple(own + (b in chosen) for b, own in enumerate(f))
            after[to] = after.get(to, Fraction(0)) + q * p * chance
    return after


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


def theorem(report: Report, verdict: str) -> Finding:
    """Decide (c), and with it F = 0."""
    rates = (Fraction(0), Fraction(0), HALF, HALF)
    found = {}
    for mate in range(1, 4):
        batches = ((0, mate), tuple(user for user in range(1, 4) if user != mate))
        found[str(batches)] = least_gap(tuple(prod((1 - rates[u] for u in batch), start=ONE) for batch in batches), 1)
    report.check(sorted(found.values()) == [0, 0, HALF], f"(c) the least gaps are {found}")
    by_rate = (ONE, Fraction(1, 4))
    all_rounds, (gap, kept) = program(by_rate, 1, skip=False)[1], program(by_rate, 1, skip=True)
    others = program((HALF, HALF), 1, skip=False)[1]
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
    return Finding(
        verdict,
        "0 for equal rates",
        against,
        {"C": str(2 * all_rounds), "C with gap 0": str(2 * kept), "C of other batches": str(2 * others)},
    )


def necessary(report: Report) -> Finding:
    """Decide the first half of (d): two batches, one always complete and one in half of all rounds."""
    chances = (ONE, HALF)
    free = expected(uniform, (0, 0), chances, 1)
    ruled = [expected(fair, f, chances, 1) for f in ((1, 0), (0, 0), (0, 1))]
    report.check(least_gap(chances, 1) == 0 and balanced(fair, chances, 1), "(d) the rule reaches 0")
    report.say(f"shares with a uniform choice: {free[0]} and {free[1]}")
    report.say(f"by the rule they depend on who is behind: {[str(first) for first, _ in ruled]} of the first batch")
    necessary = free[0] != free[1]
    return Finding(
        "confirmed" if necessary else "refuted",
        "a uniform choice has the gap 1/2 there",
        None,
        {"uniform": str(free[0] - free[1]), "rule": "0"},
    )


def rule_of_least(report: Report) -> Finding:
    """Decide the second half of (d)."""
    report.check(program(RARE, 2, skip=False)[0] == 0 and balanced(ascending, RARE, 2), "(e) 0 can be had")
    most = max(sum(expected(fair, f, RARE, 2)[2:]) for f in orders(4))
    gap = (2 - most) / 2 - most / 2
    report.say(
        f"batches that are complete half of the time are in {most} of 2 places at most: the gap is at least {gap}"
    )
    return Finding(
        "confirmed" if gap > 0 else "refuted",
        "least frequency for one batch is not enough",
        None,
        {"gap": str(gap), "least": "0"},
    )


def unbiased() -> Finding:
    """Decide (g)."""
    by_frequency = expected(fair, (1, 0), (ONE, ONE), 1)
    by_rates = expected(uniform, (0, 0), (ONE, HALF), 1)
    broken = by_frequency == [0, 1] and by_rates[0] != by_rates[1]
    return Finding(
        "confirmed" if broken else "refuted", "after a round the other batch is certain; unequal rates do it too"
    )
