"""What a user of BASA does and sends grows with K, what all do with K^2, and one visit is three messages and a key.

Statement, for K positions and no timeouts. The text is that of spec/basa.md, in the profile of the paper.
(a) The user at position k seals K - 1 - k boxes, opens k, and expands K - 1 streams: K - 1 of both, at every position.
(b) All together they seal and open K (K - 1)/2 boxes, and expand K (K - 1) streams of d elements.
(c) The costs in the text say the same, for all K: its formulas hold (P - 1 - k) boxes for an upload and A for an offer.
    The d elements of an upload do not grow with K. With settled timeouts a user has one box and one stream more.
(d) A user asks the server, receives an offer, asks the authority, receives a key, and uploads to the server. It
    receives nothing of another user, and sends it nothing.
(e) What a user does depends on K and d alone, and not on how many users there are. It shares K - 1 seeds, whatever d
is; its masks are (K - 1) d elements, which take time in proportion to d. If boxes cost a seconds, and the masks b for
each element of the model, the time for d' elements over that for d is (a + b d')/(a + b d): below 1 + 1/m if a is more
than m times b d', for any m > 0.
(f) In LightSecAgg a user sends a share of its mask to each other user before it uploads, and takes a step after the
uploads, in which users help to recover the sum. In BASA no message goes to a user, and the upload is the last step.
So "one round of communication with the server" is one visit: the user asks, is answered once, and uploads. It is no
single message, and the authority is asked in between. Users are served one at a time (BAA-36), a wait that (a) does not
count.

Idea. (a), (b): the masks in each upload of the reference are counted, for masks that cancel, K from 3 to 12. (c) and
(e) are algebra on the formulas of the text, for all K, N and d, and (d) reads its table of phases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product, takewhile
from typing import TypeAlias

import numpy as np

from secagg_spec import resources
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.cores import Masks, Parameters

CLAIMS = {
    "BASA-LIN": "symbolic",
    "BASA-1R": "readings",
    "BASA-NDIM": "readings",
    "BASA-LSA": "readings",
}
USER, SERVER, AUTHORITY = "user", "server", "authority"
Step: TypeAlias = tuple[str, str]


PHASES = "| phase | role | receives | sends |"


def table(header: str, page: str = "basa") -> list[list[str]]:
    """Return the rows of the table of a page of the text that starts with this line."""
    lines = (resources.root("spec") / f"{page}.md").read_text(encoding="utf-8").splitlines()
    rows = takewhile(lambda line: line.startswith("|"), lines[lines.index(header) + 2 :])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


def prove(report: Report) -> dict[str, Finding]:
    """Count (a) to (c), and read (d)."""
    return {"BASA-LIN": work(report), "BASA-1R": visit(report), "BASA-NDIM": growth(report), "BASA-LSA": steps(report)}


def streams(K: int, N: int = 0) -> list[int]:
    """Return how many masks the upload of each position carries when all masks of the buffer cancel."""
    p = Parameters(
        R=DEFAULT_PRIME, N=N or K, T=1, d=K * K, K=K, S=0, c_l=1, c_g=1, tau_max=0, staleness=Staleness.constant(),
        timeouts="void",
    )  # fmt: skip
    units = np.eye(K * K, dtype=np.uint64).reshape(K, K, K * K)
    pairs = [(units[:k, k], units[k, k + 1 :]) for k in range(K)]
    sent = [basa_cores.mask_update(p, p.ring.zeros(p.d), 1, Masks(before, after)) for before, after in pairs]
    cancels = not p.ring.sum(np.stack(sent)).any()
    return [int(np.count_nonzero(row)) for row in sent] if cancels else []


def work(report: Report) -> Finding:
    """Decide (a), (b) and (c)."""
    linear, quadratic = Tally(), Tally()
    for K in range(3, 13):
        counts = streams(K)
        linear.add({"K": K, "streams": counts}, counts == [K - 1] * K)
        quadratic.add({"K": K, "streams": counts}, sum(counts) == K * (K - 1))
    sympy = package("sympy")
    names = {name: sympy.Symbol(name) for name in ("H", "A", "B", "V", "E", "P", "Z", "d", "k", "K")}
    costs = {
        (who, phase): cell.strip("`")
        for who, phase, _, cell in table("| who | phase | messages | bytes, all together |")
    }
    offered = sympy.sympify(costs[SERVER, "offer"], names)
    uploaded = sympy.sympify(costs[USER, "upload"], names)
    A, B, P, Z, d, k, K_ = (names[name] for name in ("A", "B", "P", "Z", "d", "k", "K"))
    opens, seals = (sympy.expand(cost).coeff(B) for cost in (offered, uploaded))
    of_one = sympy.expand((opens + seals).subs({A: k, P: K_}))
    report.check(sympy.expand(of_one - (K_ - 1 + Z)) == 0, "(c) the boxes of a user: K - 1, and one more when settled")
    both = [sympy.factor(sympy.summation(x.subs({A: k, P: K_, Z: 0}), (k, 0, K_ - 1))) for x in (opens, seals)]
    degrees = [sympy.Poly(of_one.subs(Z, 0), K_).degree(), *(sympy.Poly(x, K_).degree() for x in both)]
    report.check(all(sympy.expand(x - K_ * (K_ - 1) / 2) == 0 for x in both), "(c) the boxes of all users")
    report.check(sympy.expand(uploaded.coeff(d)) == 4 and not sympy.diff(uploaded, d, P), "(c) d does not grow with K")
    report.say(f"a user opens {opens} boxes and seals {seals}; together {sympy.factor(of_one.subs(Z, 0))}")
    report.say(f"all users open {both[0]} boxes and seal {both[1]}; streams of a user for K = 10: {streams(10)[0]}")
    counted = linear.verdict == quadratic.verdict == "confirmed"
    report.agree("BASA-LIN", "enumeration", counted, "the uploads of K = 3 to 12 have as many masks")
    numbers: dict[str, object] = {"boxes of a user": str(of_one.subs(Z, 0)), "boxes sealed by all": str(both[1])}
    numbers |= {"streams of a user, K = 10": streams(10)[0], "of all, K = 10": sum(streams(10))}
    return Finding("confirmed" if degrees == [1, 2, 2] else "refuted", f"degrees {degrees} in K", None, numbers)


def growth(report: Report) -> Finding:
    """Decide (e)."""
    sympy = package("sympy")
    costs = [
        cell.strip("`") for who, _, _, cell in table("| who | phase | messages | bytes, all together |") if who == USER
    ]
    occurring = set(re.findall("[A-Za-z]+", " ".join(costs)))
    report.check("N" not in occurring and {"d", "P"} <= occurring, f"(e) the costs of a user have no N: {occurring}")
    alike = all(streams(K, N) == streams(K) for K in (3, 10) for N in (K, 100, 1000))
    report.check(alike, "(e) uploads have as many masks for N = K, 100 and 1000 users")
    a, b, d, more = sympy.symbols("a b d more", positive=True)
    ratio = (a + b * (d + more)) / (a + b * d)
    report.check(sympy.simplify(ratio - 1 - b * more / (a + b * d)) == 0, "(e) what more elements add")
    m, extra = sympy.symbols("m extra", positive=True)
    spare = sympy.together(1 / m - (ratio - 1).subs(a, (m + extra) * b * (d + more)))
    below = all(sympy.expand(part).is_positive for part in sympy.fraction(sympy.cancel(spare)))
    small = [Fraction(n) for n in (1, 2, 3)]
    cases = [(m * b * (x + y) + e, b, x, y, m) for b, x, y, m, e in product(small, repeat=5)]
    less = all((a_ + b_ * (x + y)) / (a_ + b_ * x) - 1 < 1 / m_ for a_, b_, x, y, m_ in cases)
    report.agree("BASA-NDIM", "enumeration", less, f"(e) below 1/m in {len(cases)} cases with boxes that take longer")
    report.agree("BASA-NDIM", "symbolic", below, "(e) beside boxes that take longer a larger model adds little")
    elements = {d: streams(10)[0] * d for d in (100_000, 1_000_000)}
    case = {"K": 10, "d": list(elements), "elements of masks": list(elements.values())}
    report.say(f"with K = 10, masks of {list(elements.values())} elements for models of {list(elements)}")
    few, many = elements.values()
    readings = {
        "with the users": alike,
        "with the model, beside boxes": less,
        "with the model, by masks": many < 2 * few,
    }
    found = "not with the users at all; what masks take of it grows in proportion to the model"
    return Finding(by_reading(readings.values()), found, case)


def visit(report: Report) -> Finding:
    """Decide (d): one visit, in which the server answers once, and no step with another user."""
    messages = re.compile(r"`(\w+)`(?: to the (\w+))?")
    own: list[tuple[list[str], list[tuple[str, str]]]] = []
    senders: dict[str, str] = {}
    for _, role, receives, sends in table(PHASES):
        received = [name for name, _ in messages.findall(receives)]
        sent = messages.findall(sends)
        senders |= {name: role for name, _ in sent}
        if role == USER:
            own.append((received, sent))
    steps = [(senders[name], "receives", name) for received, _ in own for name in received]
    steps += [(to, "sends", name) for _, sent in own for name, to in sent]
    for party, verb, name in steps:
        report.say(f"a user {verb} {name} {'from' if verb == 'receives' else 'to'} the {party}")
    count = {(party, verb): sum(step[:2] == (party, verb) for step in steps) for party, verb, _ in steps}
    report.check(all(party != USER for party, _, _ in steps), "(d) nothing passes between users")
    numbers = {f"{verb} {'from' if verb == 'receives' else 'to'} the {party}": n for (party, verb), n in count.items()}
    alone = all(party != USER for party, _, _ in steps)
    order = [(party, verb) for received, sent in own for party, verb in visited(received, sent, senders)]
    one_visit = [verb for party, verb in order if party == SERVER] == ["sends", "receives", "sends"]
    report.check(order[-1] == (SERVER, "sends"), "(d) the upload is the last step")
    return Finding(
        "confirmed" if alone and one_visit else "refuted",
        "one visit, of two messages to the server and a key from the authority",
        None,
        numbers,
    )


def visited(received: Sequence[str], sent: Sequence[tuple[str, str]], senders: Mapping[str, str]) -> Iterator[Step]:
    """Yield the party and the direction of each message of a step of a user: those that it receives come first."""
    yield from ((senders[name], "receives") for name in received)
    yield from ((to, "sends") for _, to in sent)


def steps(report: Report) -> Finding:
    """Decide (f), for LightSecAgg and for its form for buffers, by their tables of phases."""
    parts = {page: by_user(page) for page in ("lightsecagg", "basecagg", "basa")}
    for page, (shares, after) in parts.items():
        report.say(f"{page}: a user sends to each other user: {shares}; its steps after the upload: {after}")
    readings = [shares and after == ["recover"] for page, (shares, after) in parts.items() if page != "basa"]
    report.check(parts["basa"] == (False, []), "(f) in BASA neither")
    return Finding("confirmed" if all(readings) else "refuted", "shares to all others, and a step to recover")


def by_user(page: str) -> tuple[bool, list[str]]:
    """Return whether a user sends something to each other user, and the steps in which it sends after its upload."""
    own = [(phase.strip("`"), sends) for phase, role, _, sends in table(PHASES, page) if role == USER and sends]
    phases = [phase for phase, _ in own]
    return any("to each other user" in sends for _, sends in own), phases[phases.index("upload") + 1 :]
