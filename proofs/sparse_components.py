"""On any graph the server learns the sums over the components of the honest survivors.

Statement, for a graph of neighbours, U_2, U_3 and a coalition. Call an honest user exposed when t of its neighbours
collude. The server and the coalition learn, when all masked inputs and all answers arrive, exactly their own data, the
inputs of exposed users, and the sums of the inputs over the connected components of the graph that is left between the
other honest survivors. When nobody is exposed and that graph is connected, it is the sum.

Idea. Every view is decided with the masking function that runs; both the sums that must be learned and those that must
not are compared. All coalitions and dropouts of a few small graphs; section 9 of the text has the argument for all. For
the three smallest graphs all inputs and masks modulo 2 are counted besides, with the masks written down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy import secagg as model
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import Parameters

CLAIMS = {
    "UNI-COMPONENTS": "matrices",
}
GRAPHS = ((4, 2, 2), (4, 3, 3), (5, 2, 2), (5, 4, 4), (6, 2, 3), (6, 4, 5))
"""(N, k, t), on the order of the roster."""


def prove(report: Report) -> dict[str, Finding]:
    """Decide every coalition and every dropout."""
    tally, apart, exposed = Tally(), 0, 0
    for N, k, t in GRAPHS:
        p = Parameters(R=6, N=N, D=0, T=1, t=t, k=k, d=1)
        graph = p.graph()
        dropouts, coalitions = list(model.every_dropout(p, graph)), list(model.every_coalition(N))
        for case in model.audit(p, graph, coalitions, dropouts):
            shown = {"N": N, "k": k, "t": t, "coalition": list(case.coalition), "survivors": list(case.survivors)}
            expected = model.expected_excess(graph, t, case)
            exactly = case.verdict.index == 6**expected and case.verdict.withheld == 1
            tally.add(shown | {"learned": list(case.verdict.functionals)}, exactly)
            apart += len(case.parts) > 1 and not expected
            exposed += expected > 0
            report.check(case.exact, f"unmasking gives the sum: {shown}")
    report.say(f"{tally.held} of {tally.cases} views tell exactly the sums over the components, and who is exposed")
    report.say(f"several components and nobody exposed in {apart} of them, somebody exposed in {exposed}")
    counted(report)
    numbers = {"views": tally.cases, "apart": apart, "exposed": exposed}
    return {"UNI-COMPONENTS": Finding(tally.verdict, "exactly these sums are learned", tally.against, numbers)}


# ------------------------------------------------------------------------------------- by counting, without the code


def counted(report: Report) -> None:
    """Count, for each view, how many inputs fit it: 2 to the number of users, less what is said to be learned."""
    same = []
    for N, k, t in GRAPHS[:3]:
        p = Parameters(R=6, N=N, D=0, T=1, t=t, k=k, d=1)
        graph = p.graph()
        bits = Bits(graph)
        for survivors in (kept for everyone, kept in model.every_dropout(p, graph) if len(everyone) == N):
            for coalition in model.every_coalition(N):
                bare = {i for i in range(N) if len(graph.holders(i) & set(coalition)) >= t} - set(coalition)
                sums = model.components(graph, set(survivors) - set(coalition) - bare)
                fitting = 2 ** (N - len(coalition) - len(bare) - len(sums))
                same.append(bits.fitting(survivors, coalition, bare) == {fitting})
    shown = f"in each of {len(same)} views, counted, as many inputs fit as these sums leave"
    report.agree("UNI-COMPONENTS", "enumeration", all(same), shown)


class Bits:
    """All inputs, self masks and pairwise masks of the users of a graph, one bit each; signs do not matter modulo 2."""

    def __init__(self, graph: Graph) -> None:
        self.N = len(graph.order)
        pairs = [(i, j) for i in range(self.N) for j in sorted(graph.neighbours(i)) if i < j]
        rows = np.indices((2,) * (2 * self.N + len(pairs)), dtype=np.int64).reshape(2 * self.N + len(pairs), -1)
        self.x, self.b = rows[: self.N], rows[self.N : 2 * self.N]
        self.s = dict(zip(pairs, rows[2 * self.N :], strict=True))

    def touching(self, users: set[int]) -> list[np.ndarray]:
        """Return the pairwise masks of some users."""
        return [mask for pair, mask in self.s.items() if users & set(pair)]

    def fitting(self, survivors: Sequence[int], coalition: Sequence[int], bare: set[int]) -> set[int]:
        """Return how many inputs fit a view in which all masked inputs and all answers arrive."""
        uploads = [np.bitwise_xor.reduce([self.x[i], self.b[i], *self.touching({i})]) for i in range(self.N)]
        opened = [*self.b[list(survivors)], *self.touching(set(range(self.N)) - set(survivors))]
        held = [*self.x[list(coalition)], *self.b[[*coalition, *bare]], *self.touching({*coalition, *bare})]
        pairs = np.unique(number([*uploads, *opened, *held]) * 2**self.N + number(list(self.x)))
        return set(np.unique(pairs // 2**self.N, return_counts=True)[1].tolist())


def number(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return one number for the bits in each column."""
    return np.asarray(sum(row << at for at, row in enumerate(rows)))
