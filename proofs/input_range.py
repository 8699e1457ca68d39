"""With R = n (K - 1) + 1 the sum of n inputs of K levels does not wrap around, and no smaller modulus does.

Statement, for n users whose inputs are integers from 0 to K - 1, masked modulo R as in equation (4) of HeteroSAg.
(a) With R = n (K - 1) + 1 the unmasked sum is the sum of the integers, for all inputs.
(b) With R = n (K - 1), for n > 1, two sums have one residue; for n = 1 it has fewer elements than there are levels.

Idea. All inputs of up to four users and two to four levels at once, each as one element of a vector, with masks of
some seed; proofs/pairwise_masks.py shows that masks cancel whatever they are. For all n and K: n equal inputs k, and n
- j of them with j of k + 1, have the sums nk to n(k + 1), so that the sums are all numbers from 0 to n (K - 1); these
are as many as the residues modulo R, each its own.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.protocols.secagg import round as secagg

CLAIMS = {
    "HET-EQ4": "enumeration",
}


def modulus(n: int, K: int) -> int:
    """Return the modulus of the paper."""
    return n * (K - 1) + 1


def every_input(n: int, K: int) -> UintArray:
    """Return all inputs of n users, an (n, K**n) array."""
    return np.array(list(product(range(K), repeat=n)), dtype=np.uint64).T


def aggregated(R: int, inputs: UintArray) -> UintArray:
    """Return the unmasked sum modulo R of inputs that are masked by the functions of the reference."""
    ring, (n, d), source = Ring(R), inputs.shape, SeededSource(b"range", f"{R}")
    own = draw_elements(source, ring, (n, d))
    shared = {pair: draw_elements(source, ring, (d,)) for pair in combinations(range(n), 2)}
    masked = []
    for i in range(n):
        pairwise = [(j, shared[min(i, j), max(i, j)]) for j in range(n) if j != i]
        masked.append(secagg.mask_update(ring, i, inputs[i], own[i], pairwise))
    return secagg.unmask(ring, ring.sum(np.stack(masked)), own, [])


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b)."""
    tally = Tally()
    for n, K in product(range(1, 5), range(2, 5)):
        inputs = every_input(n, K)
        sums, R = inputs.sum(axis=0), modulus(n, K)
        tally.add({"n": n, "K": K, "R": R}, np.array_equal(aggregated(R, inputs), sums))
        if n > 1:
            apart = len(np.unique(aggregated(R - 1, inputs))) == len(np.unique(sums))
            report.check(not apart, f"(b) two sums have one residue modulo R - 1: n = {n}, K = {K}")
    for n, K in product(range(1, 13), range(2, 13)):
        sums = {n * k + j for k in range(K - 1) for j in range(n + 1)}
        fits = sorted(sums) == list(range(modulus(n, K)))
        report.agree("HET-EQ4", "arithmetic", fits, f"the sums are the residues modulo R: n = {n}, K = {K}")
    report.say(
        f"the sum is exact with R = n (K - 1) + 1 in all {tally.held} of {tally.cases} sizes; R - 1 is too small"
    )
    return {"HET-EQ4": Finding(tally.verdict, "the sums are the residues 0 to n (K - 1)", tally.against)}
