"""Pairwise masks cancel within a round, and what dropped users leave behind is *added*.

Statement, modulo every R, for masked inputs y_i = x_i + b_i + sum over j > i of s_ij - sum over j < i of s_ij.
(a) The y_i - b_i of all users add up to the sum of the x_i. So they do without the b_i, as in the example of BASA.
(b) When a set D of users drops out, the y_i - b_i of the others, plus what D would have added of its masks, give the
    sum of the others' x_i. It does not matter whether masks between two dropped users are counted.
(c) With the sign - of HeteroSAg's equation (5) each pair of a dropped user and a survivor leaves twice its mask: for no
    D but the empty one is the result the sum, unless R = 2, where + and - are the same.
(d) When users take their masks from rounds of their own, a pair's masks cancel exactly when the two rounds are one.
(e) Each mask between a dropped user and a survivor is needed: without one of them the result of (b) is another. So with
    N - D survivors the server derives (N - D)(D + 1) masks, or N + D (N - 2) when it takes all of eq. (20); the latter
    grows with D for N > 2, the former up to D = (N - 1)/2. The server of LightSecAgg decodes one sum, of any U answers.

Idea. The masking function and the unmasking function are run on coefficients: each symbol is one element of a vector.
Equality of coefficients is equality for all inputs and all masks. All D for N <= 6, all rounds for N <= 4. For all N:
the mask of a pair of survivors stands in the sum once with + and once with -; that of a dropped i and a survivor j
stands there with the sign of j, and what i would have added has the other one. So + removes it and - doubles it, pair
by pair. The printed sums are written down with computer algebra besides, without the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.ledger.proofs import Finding, Report, Tally, package
from secagg_spec.privacy.verdict import readable
from secagg_spec.protocols.secagg import round as secagg

CLAIMS = {
    "HET-EQ5": "matrices",
    "HET-APPA1": "matrices",
    "BAS-EQ5": "matrices",
    "BAS-EQ19": "matrices",
    "BAS-DROPS": "enumeration",
    "BASA-EQ3": "matrices",
    "BASA-EQ4": "matrices",
    "BASA-FIG1": "matrices",
}
MODULI = (8, 3, 2**32)
Users = tuple[int, ...]


class Coefficients:
    """Inputs x, self masks b and pairwise masks s of N users, each as its row of coefficients."""

    def __init__(self, R: int, N: int) -> None:
        self.ring, self.users = Ring(R), tuple(range(N))
        pairs = list(combinations(self.users, 2))
        self.names = [f"{name}_{i}" for name in "xb" for i in self.users] + [f"s_{i}{j}" for i, j in pairs]
        rows = np.eye(len(self.names), dtype=np.uint64)
        self.x, self.b = rows[:N], rows[N : 2 * N]
        self.s: dict[Users, UintArray] = dict(zip(pairs, rows[2 * N :], strict=True))

    def mask(self, i: int, j: int) -> UintArray:
        """Return s_ij, whose order of users says nothing."""
        return self.s[min(i, j), max(i, j)]

    def masked(self, i: int, *, bare: bool = False) -> UintArray:
        """Return y_i, with `bare` without the self mask."""
        own = self.ring.zeros(len(self.names)) if bare else self.b[i]
        return secagg.mask_update(self.ring, i, self.x[i], own, ((j, self.mask(i, j)) for j in self.users if j != i))

    def recovered(
        self, dropped: Users, *, minus: bool = False, all_pairs: bool = False, without: Users = ()
    ) -> UintArray:
        """Return what unmasking makes of it, with the masks of dropped users subtracted or added."""
        zero, left = self.ring.zeros(len(self.names)), [i for i in self.users if i not in dropped]
        pairs = [(i, j) for i in dropped for j in (self.users if all_pairs else left) if i != j]
        pairs = [pair for pair in pairs if pair != without]
        masks = [self.mask(i, j) for i, j in pairs]
        signed = [self.ring.subtract(zero, mask) if minus else mask for mask in masks]
        total = self.ring.sum(np.stack([self.masked(i) for i in left]))
        named = ((i, j, mask) for (i, j), mask in zip(pairs, signed, strict=True))
        return secagg.unmask(self.ring, total, self.b[left], named)

    def total(self, users: Users) -> UintArray:
        """Return the sum of the inputs of some users."""
        return self.ring.sum(self.x[list(users)])


def dropouts(N: int) -> Iterator[Users]:
    """Yield every set of dropped users, at least one, that leaves a survivor."""
    for count in range(1, N):
        yield from combinations(range(N), count)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    definition, plus, some, minus = Tally(), Tally(), Tally(), Tally()
    for R, N in product(MODULI, range(2, 7)):
        system = Coefficients(R, N)
        for i in system.users:
            definition.add({"R": R, "N": N, "user": i}, np.array_equal(system.masked(i), written_out(system, i)))
        cancels = np.array_equal(system.recovered(()), system.total(system.users))
        report.check(cancels, f"(a) R = {R}, N = {N}")
        for dropped in dropouts(N):
            wanted = system.total(tuple(i for i in system.users if i not in dropped))
            case = {"R": R, "N": N, "dropped": list(dropped)}
            plus.add(case, np.array_equal(system.recovered(dropped, all_pairs=True), wanted))
            some.add(case, np.array_equal(system.recovered(dropped), wanted))
            got = system.recovered(dropped, minus=True, all_pairs=True)
            left = readable(system.ring.subtract(got, wanted), system.names, R)
            minus.add(case | {"left": left}, np.array_equal(got, wanted))
            report.check(left == twice(system, dropped), f"(c) twice each mask is left: {case}")
    report.check(the_same_modulo_2(), "(c) modulo 2 both signs are one")
    written_as_symbols(report)
    of_each = minus.cases // len(MODULI)
    report.say(
        f"{of_each} sets of dropped users, modulo each of {MODULI}: with + the sum in {plus.held // len(MODULI)}"
    )
    report.say(f"with - in {minus.held // len(MODULI)}: {minus.against}")
    printed_sums(report)
    numbers = {"sets": of_each, "plus": plus.held // len(MODULI), "minus": minus.held // len(MODULI)}
    found = "with - twice each mask between a dropped user and a survivor is left; + removes it"
    return {
        "HET-EQ5": Finding(minus.verdict, found, minus.against, numbers),
        "HET-APPA1": appendix(),
        "BAS-EQ5": rounds(report),
        "BAS-EQ19": Finding(plus.verdict, "+ gives the sum for every set of dropped users", plus.against),
        "BAS-DROPS": derived_masks(report),
        "BASA-EQ3": Finding(definition.verdict, "the masking function computes it", definition.against),
        "BASA-EQ4": Finding(some.verdict, "masks between dropped users need not be counted", some.against),
        "BASA-FIG1": example(),
    }


def written_as_symbols(report: Report) -> None:
    """Decide (5), with both signs, and (14) on the symbols of the equations."""
    for N in range(2, 6):
        x, b, s, y = symbols(N)
        for dropped in dropouts(N):
            left = [i for i in range(N) if i not in dropped]
            rest = sum(y[i] - b[i] - x[i] for i in left)
            theirs = sum(y[i] - x[i] - b[i] for i in dropped)
            twice_each = 2 * sum((1 if j < i else -1) * s[min(i, j), max(i, j)] for i in dropped for j in left)
            kept = (rest + theirs).expand() == 0 and (rest - theirs - twice_each).expand() == 0
            report.agree("HET-EQ5", "symbolic", kept, f"(b) and (c): N = {N}, dropped {dropped}")
    for N in range(2, 6):
        x, b, s, y = symbols(N)
        printed = [x[i] + sum(s[i, j] for j in range(i + 1, N)) - sum(s[j, i] for j in range(i)) for i in range(N)]
        same = all((y[i] - b[i] - printed[i]).expand() == 0 for i in range(N)) and (sum(printed) - sum(x)).expand() == 0
        report.agree("BASA-EQ3", "symbolic", same, f"as it is written, and its masks cancel: N = {N}")
    x, b, s, y = symbols(3)
    right = (y[1] + y[2] - (x[1] + x[2] + b[1] + b[2] - s[0, 1] - s[0, 2])).expand() == 0
    report.agree("HET-APPA1", "symbolic", right, "equation (14)")


def symbols(N: int) -> tuple[Any, Any, Any, Any]:
    """Return inputs, self masks, pairwise masks and masked inputs of N users, as equation (4) has them."""
    sympy = package("sympy")
    x, b = (sympy.symbols(f"{name}0:{N}") for name in "xb")
    s = {pair: sympy.Symbol("s_{}{}".format(*pair)) for pair in combinations(range(N), 2)}
    signed = [sum(mask * ((i == low) - (i == high)) for (low, high), mask in s.items()) for i in range(N)]
    return x, b, s, [x[i] + b[i] + signed[i] for i in range(N)]


def written_out(system: Coefficients, i: int) -> UintArray:
    """Return the coefficients of y_i as the equations have them."""
    signs = {"x": 1, "b": 1}
    row = [signs[name[0]] * (name == f"{name[0]}_{i}") if name[0] in signs else 0 for name in system.names]
    for (low, high), unit in system.s.items():
        row[int(unit.argmax())] = (low == i) - (high == i)
    return system.ring.encode_signed(np.array(row, dtype=np.int64))


def twice(system: Coefficients, dropped: Users) -> str:
    """Return what (c) says is left: twice what the dropped users would have added, subtracted."""
    rows = system.ring.zeros(len(system.names))
    for i, j in product(dropped, [j for j in system.users if j not in dropped]):
        double = system.ring.add(system.mask(i, j), system.mask(i, j))
        rows = system.ring.subtract(rows, double) if i < j else system.ring.add(rows, double)
    return readable(rows, system.names, system.ring.modulus)


def the_same_modulo_2() -> bool:
    """Return whether both signs give the sum modulo 2."""
    system = Coefficients(2, 5)
    cases = [(dropped, minus) for dropped in dropouts(5) for minus in (False, True)]
    wanted = {dropped: system.total(tuple(i for i in system.users if i not in dropped)) for dropped, _ in cases}
    return all(np.array_equal(system.recovered(d, minus=minus, all_pairs=True), wanted[d]) for d, minus in cases)


def appendix() -> Finding:
    """Decide the example of HeteroSAg's appendix: three users, the first of whom drops out."""
    system = Coefficients(8, 3)
    total = system.ring.sum(np.stack([system.masked(i) for i in (1, 2)]))
    left = readable(total, system.names, 8)
    return Finding("confirmed" if left == "x_1 + x_2 + b_1 + b_2 - s_01 - s_02" else "refuted", left)


def example() -> Finding:
    """Decide the example of BASA: three users without self masks."""
    system = Coefficients(8, 3)
    sent = [readable(system.masked(i, bare=True), system.names, 8) for i in system.users]
    printed = ["x_0 + s_01 + s_02", "x_1 - s_01 + s_12", "x_2 - s_02 - s_12"]
    total = system.ring.sum(np.stack([system.masked(i, bare=True) for i in system.users]))
    holds = sent == printed and np.array_equal(total, system.total(system.users))
    return Finding("confirmed" if holds else "refuted", "the masks of the three users cancel")


def rounds(report: Report) -> Finding:
    """Decide (d): each user takes its masks from a round of its own."""
    tally = Tally()
    for N in (2, 3, 4):
        for chosen in product(range(3), repeat=N):
            left = uncancelled(N, chosen)
            different = {(i, j) for i, j in combinations(range(N), 2) if chosen[i] != chosen[j]}
            tally.add({"N": N, "rounds": list(chosen)}, left == different)
    report.say(f"masks of several rounds: a pair's cancel exactly in one round, in {tally.held} of {tally.cases} cases")
    return Finding(tally.verdict, "masks of two rounds are two unknowns, and do not cancel", tally.against)


def uncancelled(N: int, chosen: Users) -> set[Users]:
    """Return the pairs whose masks are left in the sum when user i takes its masks from the round chosen[i]."""
    ring, pairs, periods = Ring(8), list(combinations(range(N), 2)), sorted(set(chosen))
    columns = {key: at for at, key in enumerate(product(pairs, periods))}
    rows, zero = np.eye(len(columns), dtype=np.uint64), ring.zeros(len(columns))
    sent = []
    for i in range(N):
        of_round = {j: columns[(min(i, j), max(i, j)), chosen[i]] for j in range(N) if j != i}
        sent.append(secagg.mask_update(ring, i, zero, zero, ((j, rows[at]) for j, at in of_round.items())))
    total = ring.sum(np.stack(sent))
    return {pair for (pair, _), at in columns.items() if total[at]}


def printed_sums(report: Report) -> None:
    """Decide eq. (20), BASA's eq. (4) and example, and what is left of masks of several rounds, on the printed sums."""
    x, b = package("sympy").symbols("x0:5"), package("sympy").symbols("b0:5")
    holds = [
        recovered_as_printed(N, dropped, x, b) == sum(x[i] for i in range(N) if i not in dropped)
        for N in (2, 3, 4, 5)
        for dropped in dropouts(N)
    ]
    report.agree("BAS-EQ19", "symbolic", all(holds), f"eq. (20) gives the sum for {len(holds)} sets of dropped users")
    among = [
        recovered_as_printed(N, dropped, x, b, all_pairs=False) == sum(x[i] for i in range(N) if i not in dropped)
        for N in (2, 3, 4, 5)
        for dropped in ((), *dropouts(N))
    ]
    report.agree("BASA-EQ4", "symbolic", all(among), f"as polynomials, {len(among)} sets of dropped users")
    three = sum(x[i] + pairwise_sum(i, (0, 0, 0)) for i in range(3))
    report.agree("BASA-FIG1", "symbolic", three == sum(x[:3]), "the three displays add up to the updates")
    chosen = [rounds for N in (2, 3, 4) for rounds in product(range(2), repeat=N)]
    clean = [
        (sum(pairwise_sum(i, rounds) for i in range(len(rounds))) == 0) == (len(set(rounds)) == 1) for rounds in chosen
    ]
    report.agree("BAS-EQ5", "symbolic", all(clean), "the masks of eq. (5) sum to 0 exactly when all rounds are one")


def pairwise_sum(i: int, rounds: Users, others: Sequence[int] | None = None) -> Any:
    """Return the masks that user i adds and subtracts for some others, or all, each user's from a round of its own."""
    symbol, peers = package("sympy").Symbol, range(len(rounds)) if others is None else others
    plus = sum(symbol(f"a_{i}{j}_{rounds[i]}") for j in peers if j > i)
    return plus - sum(symbol(f"a_{j}{i}_{rounds[i]}") for j in peers if j < i)


def recovered_as_printed(N: int, dropped: Users, x: Sequence[Any], b: Sequence[Any], *, all_pairs: bool = True) -> Any:
    """Return the right side of eq. (20), or of (4) of BASA, which has survivors only, with eq. (19) for the y_i."""
    one, left = (0,) * N, [i for i in range(N) if i not in dropped]
    survived = sum(x[i] + b[i] + pairwise_sum(i, one) - b[i] for i in left)
    others = None if all_pairs else left
    return package("sympy").expand(survived + sum(pairwise_sum(i, one, others) for i in dropped))


def derived_masks(report: Report) -> Finding:
    """Decide (e): what the server derives grows with the number of dropped users, and none of it can be left out."""
    tally, needed = Tally(), 0
    for N in range(3, 7):
        system, counts = Coefficients(8, N), [N, *(of_equation_20(N, D) for D in range(1, N))]
        report.check(counts == [N + D * (N - 2) for D in range(N)], f"(e) the masks of eq. (20): N = {N}")
        for D, (before, after) in enumerate(pairwise(counts)):
            tally.add({"N": N, "D": D, "masks": [before, after]}, after > before)
        for dropped in dropouts(N):
            left = [i for i in system.users if i not in dropped]
            for pair in product(dropped, left):
                fewer = system.recovered(dropped, without=pair)
                report.check(not np.array_equal(fewer, system.total(tuple(left))), f"(e) {pair} is needed: {dropped}")
                needed += 1
    least = [(100 - D) * (D + 1) for D in range(100)]
    report.check(least.index(max(least)) == 49, "(e) without masks between dropped users, half of them cost most")
    report.say(f"each of {needed} masks between dropped users and survivors is needed")
    N, D = 100, 30
    numbers = {"masks, N = 100, D = 0": N, "eq. (20), D = 30": N + D * (N - 2), "least, D = 30": least[D]}
    return Finding(tally.verdict, "the masks of eq. (20) are N + D (N - 2)", tally.against, numbers)


def of_equation_20(N: int, D: int) -> int:
    """Return how many masks eq. (20) names when the first D users drop out."""
    survivors = [("own", i) for i in range(D, N)]
    above = [("of a dropped user", i, j) for i in range(D) for j in range(i + 1, N)]
    below = [("of a dropped user", i, j) for i in range(D) for j in range(i)]
    return len({*survivors, *above, *below})
