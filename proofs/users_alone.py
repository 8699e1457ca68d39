"""Colluding users learn nothing of others from what a round sends them, whatever the threshold; from the model they do.

Statement, for SecAgg on the complete graph and any coalition of users, without the server.
(a) From the keys and shares that they hold, t of them or more included, they learn nothing of the inputs of others.
(b) When the new model is sent to users, they learn the sum over the others: with one other user, its input.
(c) When t of them overhear masked inputs on their way to the server, they learn every one of these.

Idea. (a) No masked input is among what users see, and shares say nothing of inputs; so it holds for all N and t. For
(b) and (c) the views are decided with the masking function that runs, for 3 to 5 users, all thresholds and all
coalitions.
"""

from __future__ import annotations

from itertools import combinations

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.secagg import Element, Users
from secagg_spec.privacy.views import View
from secagg_spec.protocols.secagg.graph import Graph

CLAIMS = {
    "HET-USERS": "matrices",
}


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a), (b) and (c)."""
    tally = Tally()
    for N in (3, 4, 5):
        everyone = tuple(range(N))
        for t in range(2, N + 1):
            element = Element(Ring(2 * N + 1), Graph(everyone, N - 1), t, everyone)
            for coalition in (chosen for size in range(1, N) for chosen in combinations(everyone, size)):
                alone, shown = held(element, coalition), held(element, coalition)
                shown.see(element.total(everyone))
                honest = [user for user in everyone if user not in coalition]
                case = {"N": N, "t": t, "colluders": list(coalition)}
                tally.add(case, alone.decide().private)
                learned = list(shown.decide().functionals)
                report.check(
                    shown.decide(element.total(honest)).private, f"(b) the sum over the others, no more: {case}"
                )
                report.check((len(honest) == 1) == (learned == [f"x_{honest[-1]}[0]"]), f"(b) one other user: {case}")
                report.check(overheard(element, coalition) == (len(coalition) >= t), f"(c) t of them: {case}")
    report.say(f"from keys and shares colluding users learn nothing in {tally.held} of {tally.cases} views")
    return {"HET-USERS": Finding(tally.verdict, "keys and shares alone tell nothing", tally.against)}


def held(element: Element, coalition: Users) -> View:
    """Return what colluding users have: what they drew, and their shares."""
    view = element.view(coalition)
    for member in coalition:
        view.reveal(*element.tokens.held(member, element.sharers))
    return view


def overheard(element: Element, coalition: Users) -> bool:
    """Return whether colluding users that see all masked inputs learn each input."""
    view = held(element, coalition)
    view.see(*element.masked.values())
    return view.decide().dimension == len(element.sharers) - len(coalition)
