"""What a linear view tells: the rank criterion, against counting every case.

Statement. Let v = A s + B r over a prime field F_q with r uniform. Then v determines exactly the functionals w A with
w B = 0 of s. For uniform s, I(s; v) = (rank [A|B] - rank B) log q, and for functionals F that may be known,
I(s; v | F s) = (dim(L + rows of F) - rank F) log q, with L the functionals that v determines.

Idea. For small systems all s and r are run through. The information is counted from the sets of values: v is uniform on
as many values as it takes, which is itself checked, so that the information is the logarithm of a quotient of integers.
The verdicts are those of `privacy.verdict.decide`, the function that decides whole protocols; FLINT finds the ranks
again.

For all systems: v = A s + B r takes, for given s, each value of the coset A s + im B equally often. So v tells exactly
in which coset of im B the vector A s lies, that is w A s for all w with w B = 0. For uniform s that is uniform on (im
[A|B])/(im B), which has q^(rank [A|B] - rank B) elements; given F s, on what the functionals add to those of F.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally, rank_of_flint
from secagg_spec.privacy.verdict import decide

CLAIMS = {
    "UNI-RANK": "enumeration",
}
Vector = tuple[int, ...]


def systems() -> Iterator[tuple[int, UintArray, UintArray, UintArray]]:
    """Yield q, A, B, F: all over F_2 with two secrets, two view entries, one or two symbols; samples of others."""
    for noise in (1, 2):
        for entries in product(range(2), repeat=4 + 2 * noise):
            a, b = np.array(entries[:4], dtype=np.uint64), np.array(entries[4:], dtype=np.uint64)
            for allowed in ((), ((1, 1),)):
                known = np.array(allowed, dtype=np.uint64).reshape(-1, 2)
                yield 2, a.reshape(2, 2), b.reshape(2, noise), known
    for q, m, n, k, f, count in ((2, 3, 3, 2, 1, 40), (3, 2, 2, 1, 1, 60), (3, 3, 3, 2, 1, 40), (5, 2, 2, 1, 1, 40)):
        ring = PrimeField(q)
        for number in range(count):
            source = SeededSource(b"rank criterion", f"{q} {m} {n} {k} {number}")
            a, b, known = (draw_elements(source, ring, shape) for shape in ((m, n), (m, k), (f, n)))
            yield q, a, b, known


def apply(matrix: UintArray, vector: Vector, q: int) -> Vector:
    """Return a matrix times a vector, in Python integers."""
    return tuple(sum(int(x) * y for x, y in zip(row, vector, strict=True)) % q for row in matrix)


def views(q: int, A: UintArray, B: UintArray) -> dict[Vector, Counter[Vector]]:
    """Return, for each secret vector, how often each view occurs over all r."""
    from_noise = [apply(B, r, q) for r in product(range(q), repeat=B.shape[1])]
    found = {}
    for s in product(range(q), repeat=A.shape[1]):
        base = apply(A, s, q)
        found[s] = Counter(tuple((x + y) % q for x, y in zip(base, noise, strict=True)) for noise in from_noise)
    return found


def values_told(seen: dict[Vector, Counter[Vector]]) -> int:
    """Return e^I(s; v) for s uniform on the given vectors: the number of views over the number for one s."""
    together: Counter[Vector] = Counter()
    for views_of_s in seen.values():
        together.update(views_of_s)
    for counts in (*seen.values(), together):
        assert len(set(counts.values())) == 1, "a linear view is uniform on the values that it takes"
    (single,) = {len(views_of_s) for views_of_s in seen.values()}
    assert len(together) % single == 0
    return len(together) // single


def functionals_told(q: int, seen: dict[Vector, Counter[Vector]]) -> int:
    """Return how many functionals of s the view determines, of all q^n."""
    compatible = defaultdict(list)
    for s, counts in seen.items():
        for view in counts:
            compatible[view].append(s)
    width = len(next(iter(seen)))
    return sum(
        all(len({_dot(w, s, q) for s in group}) == 1 for group in compatible.values())
        for w in product(range(q), repeat=width)
    )


def _dot(w: Vector, s: Vector, q: int) -> int:
    return sum(x * y for x, y in zip(w, s, strict=True)) % q


def told_given(q: int, F: UintArray, seen: dict[Vector, Counter[Vector]]) -> int:
    """Return e^I(s; v | F s), from each value of F s."""
    by_value: dict[Vector, dict[Vector, Counter[Vector]]] = defaultdict(dict)
    for s, counts in seen.items():
        by_value[apply(F, s, q)][s] = counts
    (shown,) = {values_told(part) for part in by_value.values()}
    return shown


def prove(report: Report) -> dict[str, Finding]:
    """Compare the verdict with counting, for each system."""
    tally, same = Tally(), True
    for q, A, B, F in systems():
        field, seen = PrimeField(q), views(q, A, B)
        verdict = decide(field, A, B, F)
        ranks = field.rank(np.concatenate([A, B], axis=1)) - field.rank(B)
        same &= ranks == rank_of_flint(np.concatenate([A, B], axis=1), q) - rank_of_flint(B, q)
        counted = [values_told(seen), functionals_told(q, seen), told_given(q, F, seen)]
        stated = [q**ranks, verdict.leak, verdict.index]
        case = {"q": q, "A": A.tolist(), "B": B.tolist(), "F": F.tolist(), "counted": counted, "stated": stated}
        tally.add(case, counted == stated and verdict.leak == q**ranks)
    report.check(tally.cases > 0, "there are systems")
    report.agree("UNI-RANK", "library", same, "FLINT finds the same difference of ranks")
    report.say(f"{tally.cases} systems over F_2, F_3 and F_5: the ranks agree with counting in {tally.held}")
    return {"UNI-RANK": Finding(tally.verdict, "information and functionals are as the ranks say", tally.against)}
