"""A round that fails after its survivors were announced shows a part of what it would have shown, or all of it.

Statement, for what the server and a coalition C know of the honest inputs when a round ended without a sum. A are the
users that answered, and k is the number of users in A or C: a colluder's shares are known, whether it answers or not.
(a) A round that ended before the survivors were announced shows nothing, in every protocol of this project but BASA.
(b) A round that ended later shows no more than the sum over the announced survivors: in SecAgg over each component of
the graph of the honest ones, in HeteroSAg over each cell.
(c) LightSecAgg and BASecAgg, with at most T colluders: of each column with m elements, min(m, max(0, k - T))
independent combinations of the elements of the sum, though it takes U answers to recover it. That is proved for all
parameters where m = U - T; of a column with padding there are at most so many, and fewer where points are special. The
active profile of LightSecAgg when it ends in `confirm`: nothing.
(d) SecAgg on the complete graph and each cell of HeteroSAg, with fewer than t colluders: the sum when k >= t, and else
nothing. On a sparse graph: the sum over a component of the honest survivors when t shares are known of each member's
self seed, and of the masking key of each honest neighbour that dropped out; and nothing of any other component.
(e) Multi-RoundSecAgg: as the protocol of its rounds, with the survivors of whole batches.
(f) BASA, an epoch that is not closed: nothing in the profile settle. In the profile void the sum over the honest
uploads when the coalition has the key of each position without one, and else nothing.
(g) LightSecAgg with the parameters `default`, where nobody deviates: a round with U - 1 answers, then one with the same
inputs and one user fewer, which ends with its sum. This tells (U - 1 - T) L = 12 independent combinations of the 16
elements of that user. A second round with the same inputs and the same survivors tells their sum alone. With the
announced survivors of the failed round in the log, the audit says that the user is recoverable; with an empty set in
their place it says that nobody is.

Idea. (b) A message less never tells more, and with all answers the sum is all that is learned. (c) k shares of a sum
are k columns of a code of which any T hide everything. (d) Shamir's sharing is all or nothing for each secret, and a
mask that stays is uniform. Views are decided by ranks, for every set of answers; those of (e) are of rounds that the
steps of the reference run until too few users are left. FLINT counts (c) besides, from the columns of the code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import TooFewSurvivors
from secagg_spec.ledger.proofs import Finding, Report, Tally, rank_of_flint
from secagg_spec.privacy import basa, basecagg, heterosag, secagg
from secagg_spec.privacy.lightsecagg import Column, Situation, columns
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.privacy.participation import account
from secagg_spec.privacy.secagg import Element, components, honest_answer
from secagg_spec.privacy.views import Forms, Space, View
from secagg_spec.protocols.basecagg import round as basecagg_protocol
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg_protocol
from secagg_spec.protocols.lightsecagg.round import AggregatedShare
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg_protocol
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import UnmaskShares
from secagg_spec.protocols.steps import SERVER, Network, run_synchronous
from secagg_spec.selection import batches
from secagg_spec.selection.participation import Roster, of_sets

CLAIMS = {
    "UNI-FAILED": "matrices",
}
Users = tuple[int, ...]
CODES = (
    lightsecagg_protocol.Parameters(q=97, N=6, D=1, U=4, T=1, d=5),
    lightsecagg_protocol.Parameters(q=97, N=6, D=1, U=5, T=2, d=3),
)
GRAPHS = (
    secagg_protocol.Parameters(R=7, N=5, D=1, T=1, t=3, k=4, d=1),
    secagg_protocol.Parameters(R=7, N=6, D=2, T=1, t=2, k=2, d=1),
    secagg_protocol.Parameters(R=7, N=7, D=1, T=1, t=3, k=4, d=1),
)
SESSIONS = (
    multi_round.Parameters(
        batches.Parameters(12, 8, 4), secagg_protocol.Parameters(R=97, N=8, D=3, T=1, t=4, k=7, d=2)
    ),
    multi_round.Parameters(
        batches.Parameters(12, 8, 4), lightsecagg_protocol.Parameters(q=97, N=8, D=3, U=4, T=1, d=3)
    ),
)


def subsets(users: Collection[int], most: int | None = None) -> Iterator[Users]:
    """Yield all subsets of some users, or those of up to `most`."""
    sizes = range((len(users) if most is None else most) + 1)
    yield from chain.from_iterable(combinations(sorted(users), size) for size in sizes)


def shown(view: View, *allowed: Forms) -> tuple[int, bool]:
    """Return how many combinations of the honest inputs a view tells, and whether all follow from the allowed ones."""
    return view.decide().dimension, view.decide(*allowed).private


def of_the_code(T: int, elements: int, known: int) -> int:
    """Return how many combinations of a column (c) says are shown, when so many users' shares of the sum are known."""
    return min(elements, max(0, known - T))


def by_flint(parameters: Any, elements: int, users: Collection[int]) -> int:
    """Return the same by ranks that FLINT finds: of the columns of the code, less those of the noise."""
    U, T = parameters.U, parameters.T
    powers = [*range(elements), *range(U - T, U)]
    rows = [[pow(user + 1, power, parameters.q) for power in powers] for user in sorted(users)]
    if not rows:
        return 0
    return rank_of_flint(rows, parameters.q) - rank_of_flint([row[elements:] for row in rows], parameters.q)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (g)."""
    tally, cases = Tally(), dict[str, int]()
    for name, decided in (
        ("LightSecAgg", shares_of_sums(report)),
        ("BASecAgg", buffers(report)),
        ("SecAgg", graphs()),
        ("HeteroSAg", cells()),
        ("BASA", epochs()),
        ("sessions", sessions()),
    ):
        before = tally.cases
        for case, holds in decided:
            tally.add({"protocol": name, **case}, holds)
        cases[name] = tally.cases - before
        report.say(f"{name}: {cases[name]} views of rounds that failed")
        report.check(cases[name] > 0, f"there are cases of {name}")
    unconfirmed(report)
    numbers = {**cases, **story(report)}
    return {"UNI-FAILED": Finding(tally.verdict, "a failed round counts with its survivors", tally.against, numbers)}


# ----------------------------------------------------------------------------------------- shares of a sum of masks


def shares_of_sums(report: Report) -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (a) to (c) for LightSecAgg: everybody uploaded, and fewer than U of the survivors answered."""
    for p in CODES:
        for column in (Column(p, p.code, elements) for elements in columns(p)):
            m = len(column.elements)
            for survivors, coalition in product((range(p.N), range(1, p.N)), subsets(range(p.N), p.T)):
                S = tuple(survivors)
                for answered in subsets(S, p.U - 1):
                    known = {*answered, *coalition}
                    view = column.view(coalition, Situation(S, tuple(range(p.N)), dict.fromkeys(answered, S)))
                    dimension, inside = shown(view, column.total(S))
                    want = of_the_code(p.T, m, len(known))
                    report.agree("UNI-FAILED", "library", by_flint(p, m, known) == want, "(c) ranks")
                    case = {"U": p.U, "T": p.T, "elements": m, "answers": list(answered), "colluding": list(coalition)}
                    yield case, inside and dimension == want


def buffers(report: Report) -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (a) to (c) for a buffer of BASecAgg with two weights, one update outside it, and fewer than U answers."""
    p = basecagg_protocol.PRESETS["tiny"]
    for column, users in product(basecagg.every_column(p), ((0, 1, 2), (1, 3, 4))):
        buffer, m = basecagg.varied(p, users), len(column.elements)
        outside = tuple((user, buffer.round) for user in range(p.N) if user not in users)
        for coalition, answered in product(subsets(range(p.N), p.T), subsets(range(p.N), p.U - 1)):
            given = tuple((user, buffer) for user in answered)
            happened = basecagg.Situation((buffer,), (*buffer.updates, *outside), given)
            dimension, inside = shown(column.view(coalition, happened), column.total(buffer))
            want = of_the_code(p.T, m, len({*answered, *coalition}))
            report.agree("UNI-FAILED", "library", by_flint(p, m, {*answered, *coalition}) == want, "(c) ranks")
            yield {"answers": list(answered), "colluding": list(coalition)}, inside and dimension == want


def unconfirmed(report: Report) -> None:
    """Check (c) for the active profile: with fewer than W signatures no honest user gives its share."""
    p = lightsecagg_active.PRESETS["tiny"]
    users, everyone = Confirmations(p), tuple(range(p.N))
    for coalition in subsets(everyone, p.T):
        honest = [user for user in everyone if user not in coalition]
        asked = dict.fromkeys(honest[: p.W - 1 - len(coalition)], everyone)
        report.check(bool(asked) and not users.released(coalition, asked), f"(c) too few sign; {coalition} collude")
        enough = dict.fromkeys(honest[: p.W - len(coalition)], everyone)
        report.check(bool(users.released(coalition, enough)), f"(c) W sign; {coalition} collude")


# ---------------------------------------------------------------------------------------------- shares of secrets


def recovered(graph: Graph, t: int, survivors: Collection[int], known: set[int], coalition: Users) -> list[Users]:
    """Return the components of honest survivors whose sums (d) says are shown; everybody shared secrets."""
    users, honest = set(graph.order), set(survivors) - set(coalition)
    open_ = {user for user in users if len(graph.holders(user) & known) >= t}
    away = users - set(survivors) - set(coalition)
    return [
        part
        for part in components(graph, honest)
        if set(part) <= open_ and all(graph.neighbours(user) & away <= open_ for user in part)
    ]


def graphs() -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (a), (b) and (d) for SecAgg on complete and sparse graphs: everybody's masked input came."""
    for p in GRAPHS:
        graph, everyone = p.graph(), tuple(range(p.N))
        element = Element(PrimeField(p.R), graph, p.t, everyone)
        for sharers, survivors in secagg.every_dropout(p, graph):
            if sharers != everyone or len(survivors) < p.N - 2:
                continue
            dropped = set(everyone) - set(survivors)
            for coalition, answered in product(subsets(everyone, p.T), subsets(survivors)):
                known = {*answered, *coalition}
                if finished(graph, p.t, survivors, dropped, answered):
                    continue
                given = {user: honest_answer(graph, user, survivors, dropped) for user in answered}
                happened = secagg.Situation(everyone, survivors, everyone, given)
                sums = [element.total(part) for part in recovered(graph, p.t, survivors, known, coalition)]
                view = element.view(coalition, happened)
                verdict = view.decide(*sums)
                inside = view.decide(*element.allowed(coalition, survivors)).private
                case = {"N": p.N, "k": p.k, "t": p.t, "survivors": list(survivors), "answers": list(answered)}
                yield {**case, "colluding": list(coalition)}, inside and verdict.private and verdict.withheld == 1


def finished(graph: Graph, t: int, survivors: Users, dropped: Collection[int], answered: Users) -> bool:
    """Return whether these answers are enough for the sum: t shares of each secret that is asked for (SAG-30)."""
    return all(len(graph.holders(user) & set(answered)) >= t for user in (*survivors, *dropped))


def cells() -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (a), (b) and (d) for a cell of each kind of HeteroSAg, with fewer than t answers."""
    p = heterosag_plan.PRESETS["tiny"]
    plan, absent = heterosag.Plan(p), {0: (), 1: (p.N - 1,)}
    for cell, late in product([found[0] for found in heterosag.kinds(p).values()], absent.values()):
        happened = heterosag.situation(p, late=late)
        element = plan.element(cell, happened.sharers)
        for coalition, count in product(((), (0,), (p.N - 1,)), range(p.t)):
            answers = dict(list(happened.answers.items())[1 : 1 + count])
            view = heterosag.seen([element], replace(happened, answers=answers), coalition)
            honest = [user for user in cell.members if user in happened.survivors and user not in coalition]
            sums = [element.total(honest)] if len({*answers, *coalition}) >= p.t and honest else []
            verdict = view.decide(*sums)
            case = {"cell": sorted(cell.members), "answers": list(answers), "colluding": list(coalition)}
            yield case, verdict.private and verdict.withheld == 1


# -------------------------------------------------------------------------------------------------------- epochs


def epochs() -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (f): three positions and four, every way in which an epoch is not closed, and every coalition."""
    for positions in (3, 4):
        left = [(basa.SETTLE, replace(one, closed=False)) for one in basa.every_pattern(positions)]
        left += [(basa.VOID, one) for one in basa.every_stop(positions) if not one.closed]
        for rule, happened in left:
            epoch = basa.Epoch(Ring(16), rule, happened)
            for coalition in basa.every_coalition(happened.users):
                honest = epoch.honest(coalition, happened.uploaded)
                held = {happened.at(user) for user in (*honest, *coalition)} == set(range(positions))
                sums = [epoch.total(honest)] if rule is basa.VOID and honest and held else []
                fates = [f"{position}: {fate}" for position, fate in happened.holders]
                case = {"rule": rule.name, "users": fates, "colluding": list(coalition)}
                yield case, basa.exactly(epoch.view(coalition), sums)


# ------------------------------------------------------------------------------------------------------ sessions


def sessions() -> Iterator[tuple[dict[str, Any], bool]]:
    """Decide (a) and (e): rounds of a session that run until too few are left; what was sent decides the view."""
    for p in SESSIONS:
        for phase, stay in product(p.base.phases, ((0, 1, 2), (4, 5), (0, 1, 2, 4))):
            network = ended(p, phase, stay)
            server = network.states[SERVER]
            if server.aggregate is not None:
                continue
            sent = [message for event in network.transcript for message in event.sent]
            answered = tuple(message.sender for message in sent if isinstance(message, UnmaskShares | AggregatedShare))
            announced = tuple(server.round.chosen.index(user) for user in server.survivors)
            right = bool(announced) == (phase == p.base.releases) and set(answered) <= set(announced)
            for coalition in ((), (0,), (7,)):
                case = {"base": p.base.name, "phase": phase, "answers": list(answered), "colluding": list(coalition)}
                yield case, right and (not announced or shows(p, announced, answered, coalition))


def ended(p: multi_round.Parameters, phase: str, stay: Collection[int]) -> Network:
    """Return a round in which all but a few drop out before a phase, and user 7 before its input."""
    sources = {user: SeededSource(b"failed", str(user)) for user in range(8)}
    updates = np.zeros((8, p.round.d), dtype=np.uint64)
    network = multi_round.open_round(p, range(4, 12), updates, session=bytes(16), round=0)
    dropouts = {phase: [user for user in range(8) if user not in stay]}
    try:
        run_synchronous(network, dropouts, multi_round.draw_randomness(p, sources))
    except TooFewSurvivors:
        return network
    return network


def shows(p: multi_round.Parameters, survivors: Users, answered: Users, coalition: Users) -> bool:
    """Return whether a round of a session shows what (c) or (d) says of the protocol of the round."""
    known, everyone = {*answered, *coalition}, tuple(range(p.round.N))
    if isinstance(p.round, lightsecagg_protocol.Parameters):
        happened = Situation(survivors, everyone, dict.fromkeys(answered, survivors))
        found = [(Column(p.round, p.round.code, elements), len(elements)) for elements in columns(p.round)]
        lines = [(shown(column.view(coalition, happened), column.total(survivors)), m) for column, m in found]
        return all(each == (of_the_code(p.round.T, m, len(known)), True) for each, m in lines)
    graph, t = p.round.graph(), p.round.t
    element = Element(PrimeField(p.round.R), graph, t, everyone)
    given = {user: honest_answer(graph, user, survivors, set(everyone) - set(survivors)) for user in answered}
    view = element.view(coalition, secagg.Situation(everyone, survivors, everyone, given))
    verdict = view.decide(*(element.total(part) for part in recovered(graph, t, survivors, known, coalition)))
    return verdict.private and verdict.withheld == 1


# ----------------------------------------------------------------------------------------------------- the story


def story(report: Report) -> dict[str, int]:
    """Check (g), and count what is told of the user that is missing in the second round."""
    p = lightsecagg_protocol.PRESETS["default"]
    missing, everyone = p.N - 1, tuple(range(p.N))
    others = everyone[:missing]
    lines, alone, again = 0, 0, True
    for first in range(p.share_length):
        space, elements = Space(p.field), tuple(range(first, p.d, p.share_length))
        failed, later, same = (Column(p, p.code, elements, space=space, drawing=drawing) for drawing in range(3))
        coalition, honest = everyone[: p.T], everyone[p.T : p.U - 1]
        view = View(space, coalition)
        failed.show(view, Situation(everyone, everyone, dict.fromkeys(honest, everyone)))
        alone += view.about(missing).dimension
        retried = View(space, coalition)
        failed.show(retried, Situation(everyone, everyone, dict.fromkeys(honest, everyone)))
        same.show(retried, Situation(everyone, everyone, dict.fromkeys(everyone, everyone)))
        again &= retried.decide(same.total(everyone)).private
        later.show(view, Situation(others, others, dict.fromkeys(others, others)))
        found = view.about(missing).dimension
        report.check(found == of_the_code(p.T, len(elements), p.U - 1), "(g) parts of the input of one user")
        lines += found
    report.check(alone == 0, "(g) the failed round by itself tells nothing of one user")
    report.check(again, "(g) a second round with the same inputs and users tells their sum alone")
    for logged, recoverable in ((everyone, [missing]), ((), [])):
        audited = account(of_sets(Roster(p.N), [logged, others]))
        report.check(list(audited.found) == recoverable, f"(g) the audit, with {len(logged)} users")
    report.say(f"a round with {p.U - 1} answers, then one without user {missing}: {lines} equations on {p.d} elements")
    return {"equations": lines, "elements": p.d}
