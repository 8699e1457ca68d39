"""A circle of neighbours is cut by two long runs of vanished users, and a random order has them with known probability.

Statement, for the graph of degree k < N - 1 on a circle of N users, h = k // 2, and m < N vanished users.
(a) If the users that are left are not connected, there are two runs of h vanished users or more.
(b) For even k the converse holds.
(c) The share of all choices of m vanished users with two such runs is the P of section 9 of the text on SecAgg; it is
    the probability that a random order is cut when k is even, and a bound on it when k is odd.
(d) At the preset `sparse`, with T colluding and D dropped users, P is at most 2^-72, and not 2^-73.

Idea. (a), (b): two users that are left with fewer than h vanished ones between them are neighbours; runs of h or more
part the circle. Here for all sets of vanished users with N <= 9. (c) counts the same sets, and for larger circles sets
are drawn. (d) is exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy import sparse
from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import PRESETS

CLAIMS = {
    "UNI-CUT": "enumeration",
}
DRAWN = ((12, 4, 6), (16, 6, 9), (20, 4, 8))
"""(N, k, m) of which sets are drawn."""
GRAPHS = [(N, k) for N in range(4, 10) for k in range(2, N - 1) if k * N // 2 * 2 == k * N]


def long_runs(graph: Graph, vanished: frozenset[int]) -> int:
    """Return how many runs of vanished users have k // 2 members or more."""
    around, runs, length = [user in vanished for user in graph.order], 0, 0
    start = around.index(False)
    for is_vanished in (*around[start + 1 :], *around[: start + 1]):
        if not is_vanished:
            runs += length >= graph.k // 2
        length = length + 1 if is_vanished else 0
    return runs


def near(N: int, k: int, m: int) -> bool:
    """Return whether 1000 drawn sets of m vanished users are cut with a frequency within 1/16 of P."""
    graph, cut = Graph(tuple(range(N)), k), 0
    for number in range(1000):
        draws = draw_elements(SeededSource(b"harary cut", f"{N} {k} {m} {number}"), Ring(2**32), (N,)).tolist()
        left = set(sorted(range(N), key=draws.__getitem__)[m:])
        cut += len(components(graph, left)) > 1
    return abs(Fraction(cut, 1000) - sparse.disconnected(N, k, m)) < Fraction(1, 16)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (c) for all sets of vanished users, and compute (d)."""
    tally, odd = Tally(), 0
    for N, k in GRAPHS:
        graph = Graph(tuple(range(N)), k)
        for m in range(N):
            cut = runs = 0
            for chosen in combinations(range(N), m):
                vanished = frozenset(chosen)
                apart, two = len(components(graph, set(range(N)) - vanished)) > 1, long_runs(graph, vanished) >= 2
                tally.add({"N": N, "k": k, "vanished": list(chosen)}, two if apart else (not two or k // 2 * 2 < k))
                cut, runs, odd = cut + apart, runs + two, odd + (two and not apart)
            share, formula = Fraction(runs, comb(N, m)), sparse.disconnected(N, k, m)
            report.check(share == formula, f"(c) P counts the sets with two runs: N = {N}, k = {k}, m = {m}")
            report.check(Fraction(cut, comb(N, m)) <= formula, f"(c) P bounds: N = {N}, k = {k}, m = {m}")
    report.agree("UNI-CUT", "samples", all(near(*case) for case in DRAWN), "drawn sets are cut as often as P says")
    p = PRESETS["sparse"]
    exponent = sparse.exponent(sparse.disconnected(p.N, p.k, p.T + p.D))
    report.check(exponent == 72, "(d)")
    report.say(
        f"cut exactly with two long runs: {tally.held} of {tally.cases} sets; for odd k, {odd} others hold together"
    )
    report.say(f"at sparse the probability of a cut is at most 2^-{exponent}")
    numbers = {"sets": tally.cases, "odd-held": odd, "sparse-exponent": exponent}
    return {
        "UNI-CUT": Finding(tally.verdict, "two runs of k // 2 vanished users cut, one does not", tally.against, numbers)
    }
