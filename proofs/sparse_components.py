"""On any graph the server learns the sums over the components of the honest survivors.

Statement, for a graph of neighbours, U_2, U_3 and a coalition. Call an honest user exposed when t of its neighbours
collude. The server and the coalition learn, when all masked inputs and all answers arrive, exactly their own data, the
inputs of exposed users, and the sums of the inputs over the connected components of the graph that is left between the
other honest survivors. When nobody is exposed and that graph is connected, it is the sum.

Idea. Every view is decided with the masking function that runs; both the sums that must be learned and those that must
not are compared. All coalitions and dropouts of a few small graphs; section 9 of the text has the argument for all.
"""

from __future__ import annotations

from secagg_spec.ledger import Finding, Report, Tally
from secagg_spec.privacy import secagg as model
from secagg_spec.protocols.secagg import Parameters

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
            told = {"N": N, "k": k, "t": t, "coalition": list(case.coalition), "survivors": list(case.survivors)}
            expected = model.expected_excess(graph, t, case)
            exactly = case.verdict.index == 6**expected and case.verdict.withheld == 1
            tally.add(told | {"learned": list(case.verdict.functionals)}, exactly)
            apart += len(case.parts) > 1 and not expected
            exposed += expected > 0
            report.check(case.exact, f"unmasking gives the sum: {told}")
    report.say(f"{tally.held} of {tally.cases} views tell exactly the sums over the components, and who is exposed")
    report.say(f"several components and nobody exposed in {apart} of them, somebody exposed in {exposed}")
    numbers = {"views": tally.cases, "apart": apart, "exposed": exposed}
    return {"UNI-COMPONENTS": Finding(tally.verdict, "exactly these sums are learned", tally.against, numbers)}
