"""How few users a sum is over that a server gets by naming different survivors to different users.

Statement, for SecAgg on the complete graph of N users with threshold t, its semi-honest profile, honest keys, and c <
t colluders. Let H = N - c >= 2, D = t - c and m = 2t - N - c.
(a) A server that relays all shares and names different survivors to different users gets the sum over some s honest
    users. The least s is 1 where 2t <= N + c, and ceil(2mH / (H + m)) elsewhere. Beside that sum it learns nothing
    there.
(b) So single inputs stay hidden exactly when 2t > N + c. Sums of fewer than D honest users, whom a set that a user
    accepts has at least, stay hidden exactly when (N - t)(N - t + 1) < N - c, or t = c + 1.
(c) A server that also withholds shares gets a single input exactly when t = c + 1, or t <= N - 2 and
    D(D - 1) <= (H - 1)(N - t). So it does for (N, t) = (5, 3), where 2t > N.
(d) With c = 0, as HeteroSAg has it, the threshold ceil(N/2) + 1 keeps single inputs from the first server, and
    floor(N/2) + 1 is the smallest that does. The second one gets a single input from N = 8 on, but not for N = 9, 11.

Idea. The self mask of a user goes when D honest users name it a survivor, its pairwise masks when D name it dropped.
For both, 2D <= H, that is 2t <= N + c, since each honest user names it once. Elsewhere the sum over X comes out when
each honest user outside X with whom one of X shares a mask is named dropped D times. If all shares are relayed, these
are H - s users. An answer names at most N - t users dropped. So (H - s) D <= H (N - t), which is s >= 2mH / (H + m), as
N - t = (H - m)/2 and D = (H + m)/2. A server that withholds shares leaves an isolated user with t holders. Then D - s
users have to be named dropped D times by the H - s others, none by itself. One holder more asks for D names more, and
the isolated users can give s of them: that helps only where s >= D.

That the bounds are attained is a flow: users are given targets within the room that they have. `isolating` finds it.
The steps that run answer the lie that it finds, and the view is decided by rank. That less is impossible is counted for
all lies at small sizes, withheld shares included, without the flow; for lies about survivors each pattern of opened
secrets is also decided by rank.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations, product

from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.lies import isolating, least_sum
from secagg_spec.privacy.secagg import Requests, Situation
from secagg_spec.privacy.views import View
from secagg_spec.protocols.secagg.round import Parameters

CLAIMS = {
    "HET-STEP2": "matrices",
    "UNI-LIES": "matrices",
    "UNI-WITHHELD": "matrices",
}
Users = tuple[int, ...]
Vector = tuple[int, ...]
SIZES = ((4, 3, 0), (4, 3, 1), (5, 3, 0), (5, 3, 1), (5, 4, 0), (5, 4, 1), (6, 3, 0), (6, 4, 0), (6, 4, 1), (6, 5, 0))
WITHHELD = ((4, 3, 0), (4, 3, 1), (5, 4, 0), (5, 4, 1), (5, 4, 2), (6, 5, 2))
RUN = (*SIZES, (7, 4, 0), (7, 5, 1), (8, 5, 0), (8, 6, 2), (10, 6, 0), (10, 7, 0), (15, 9, 1))


def bound(N: int, t: int, c: int) -> int:
    """Return what (a) says."""
    m, H = 2 * t - N - c, N - c
    return 1 if m <= 0 else -(-2 * m * H // (H + m))


def bare(N: int, t: int, c: int) -> bool:
    """Return whether (c) says that a single input comes out."""
    D, H = t - c, N - c
    return D == 1 or (t <= N - 2 and (H - 1) * (N - t) >= D * (D - 1))


def of_the_paper(N: int) -> int:
    """Return ceil(N/2) + 1."""
    return (N + 1) // 2 + 1


# ---------------------------------------------------------------------------------------- what less is impossible


def dropped_sets(user: int, held: Collection[int], t: int) -> Iterator[Users]:
    """Yield every set of users that a user may name dropped: t survivors are left of those whose shares it holds."""
    others = [other for other in held if other != user]
    for size in range(len(held) - t + 1):
        yield from combinations(others, size)


def counts(N: int, t: int, c: int) -> Mapping[Vector, dict[int, Users]]:
    """Return how often each honest user can be named dropped when all shares are relayed, with a lie for each."""
    found: dict[Vector, dict[int, Users]] = {(0,) * (N - c): {}}
    for user in range(c, N):
        after: dict[Vector, dict[int, Users]] = {}
        for named in {tuple(u for u in chosen if u >= c) for chosen in dropped_sets(user, range(N), t)}:
            shown = tuple(u for u in range(N) if u not in named)
            for vector, lie in found.items():
                new = tuple(n + (u in named) for u, n in enumerate(vector, start=c))
                after.setdefault(new, {**lie, user: shown})
        found = after
    return found


def sums(masked: Mapping[int, Collection[int]], open_: Collection[int], bare_: Collection[int]) -> list[Users]:
    """Return the sets of users whose sums come out, smallest parts.

    `masked` says with whom each honest user shares a mask, `open_` whose masking keys are known, `bare_` whose self
    seeds are. Users with both come out alone. Others do with all whose masks with them are unknown, if these do.
    """
    alone = [(user,) for user in sorted(set(open_) & set(bare_))]
    left = {user: {u for u in peers if u not in open_} for user, peers in masked.items() if user not in open_}
    found = []
    while left:
        part, border = set[int](), {min(left)}
        while border:
            part |= border
            border = {u for user in border for u in left.get(user, ())} - part
        whole = all(u in bare_ and u in left and all(u in left[v] for v in left[u]) for u in part)
        found += [tuple(sorted(part))] if whole else []
        left = {user: peers for user, peers in left.items() if user not in part}
    return alone + found


def by_counting(report: Report, N: int, t: int, c: int) -> int:
    """Return the least sum of all lies about survivors, and decide each pattern of opened secrets by rank."""
    honest, D, least, patterns = range(c, N), t - c, N, dict[tuple[Users, Users], dict[int, Users]]()
    for vector, lie in counts(N, t, c).items():
        open_ = tuple(u for u, n in zip(honest, vector, strict=True) if n >= D)
        known = tuple(u for u, n in zip(honest, vector, strict=True) if N - c - n >= D)
        patterns.setdefault((open_, known), lie)
    requests, everyone = waiting(N, t, c), {user: set(honest) - {user} for user in honest}
    for (open_, known), lie in patterns.items():
        found = sums(everyone, open_, known)
        least = min([least, *map(len, found)])
        if N <= 5:
            view, total = seen(requests, c, lie), requests.element.total
            exact = view.decide(*map(total, found)).private and all(view.decide(total(s)).withheld == 1 for s in found)
            report.check(exact, f"exactly the sums over {found} are learned: {N, t, c}, {lie}")
    return least


def by_trying(N: int, t: int, c: int) -> int:
    """Return the least sum of all lies and all ways to withhold shares."""
    honest, D, least = range(c, N), t - c, N
    ways = {
        user: {
            (frozenset(held) - set(range(c)), frozenset(named) - set(range(c)))
            for size in range(t - 1, N)
            for others in combinations([u for u in range(N) if u != user], size)
            for held in [(user, *others)]
            for named in dropped_sets(user, held, t)
        }
        for user in honest
    }
    for chosen in product(*ways.values()):
        dropped = {u: sum(u in named for _, named in chosen) for u in honest}
        known = [u for u in honest if sum(u in held for held, _ in chosen) - dropped[u] >= D]
        if len(known) == 0:
            continue
        masked = {user: held - {user} for user, (held, _) in zip(honest, chosen, strict=True)}
        found = sums(masked, [u for u in honest if dropped[u] >= D], known)
        least = min([least, *map(len, found)])
    return least


# ------------------------------------------------------------------------------------------------- what is attained


def waiting(N: int, t: int, c: int, arrived: Mapping[int, Users] | None = None) -> Requests:
    """Return users that wait for a request."""
    return Requests(Parameters(R=8, N=N, D=0, T=max(c, 1), t=t, k=N - 1, d=1), arrived=arrived or {})


def seen(requests: Requests, c: int, shown: Mapping[int, Users]) -> View:
    """Return what the server and c colluders see of a lie; users that refuse answer nothing."""
    element = requests.element
    given = {user: requests.answer(user, chosen) for user, chosen in shown.items()}
    answers = {user: answer for user, answer in given.items() if answer is not None}
    return element.view(range(c), Situation(element.sharers, element.sharers, element.sharers, answers))


def attained(N: int, t: int, c: int, size: int, *, withheld: bool) -> bool:
    """Return whether the steps answer a lie that shows the sum over so few users, by rank."""
    lie = isolating(N, t, c, size, withheld=withheld)
    if lie is None:
        return False
    requests = waiting(N, t, c, lie.arrived)
    view, total = seen(requests, c, lie.announced), requests.element.total(lie.isolated)
    return view.decide(total).withheld == 1 and (2 * t <= N + c or view.decide(total).private)


# ------------------------------------------------------------------------------------------------------------ prove


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) to (d)."""
    lies, both, paper = Tally(), Tally(), Tally()
    for N, t, c in RUN:
        one, two = least_sum(N, t, c), least_sum(N, t, c, withheld=True)
        case = {"N": N, "t": t, "c": c}
        lies.add(case, one == bound(N, t, c) and attained(N, t, c, one, withheld=False))
        both.add(case, (two == 1) == bare(N, t, c) and attained(N, t, c, two, withheld=True))
    counted = all(by_counting(report, N, t, c) == bound(N, t, c) for N, t, c in SIZES)
    report.agree("UNI-LIES", "enumeration", counted, "(a) no lie shows a sum over fewer users")
    tried = all(by_trying(N, t, c) == least_sum(N, t, c, withheld=True) for N, t, c in WITHHELD)
    report.agree("UNI-WITHHELD", "enumeration", tried, "(c) no lie with withheld shares shows a sum over fewer users")
    formulas(report)
    for N in range(4, 9):
        t = of_the_paper(N)
        for withheld in (False, True):
            learned = attained(N, t, 0, 1, withheld=withheld)
            data = {"N": N, "t": t, "shares": "withheld", "learned": ["x_0[0]"]}
            paper.add(data, not learned, condition=not withheld)
    first = [(N, t) for N, t, c in RUN if not c and 2 * t > N and least_sum(N, t, c, withheld=True) == 1]
    numbers = {f"{N}, {t}": least_sum(N, t, 0) for N, t in ((5, 3), (7, 4), (8, 5), (10, 6))}
    report.check(min(first) == (5, 3), "(c) (5, 3) is the first with 2t > N")
    report.say(f"least sums with all shares relayed, {numbers}; in {lies.held} of {lies.cases} sets of numbers as said")
    report.say(f"single inputs with withheld shares: as said in {both.held} of {both.cases}, the first at {min(first)}")
    return {
        "HET-STEP2": Finding(paper.verdict, "no input comes out, unless shares are withheld", paper.against),
        "UNI-LIES": Finding(lies.verdict, "the least sum is over as many users", lies.against, numbers),
        "UNI-WITHHELD": Finding(both.verdict, "a single input comes out exactly then", both.against),
    }


def formulas(report: Report) -> None:
    """Check that the flow gives what (a) to (d) say, for N up to 60."""
    for N in range(3, 61):
        for t in range(2, N + 1):
            for c in range(min(t, 4, N - 1)):
                one, two, room = least_sum(N, t, c), least_sum(N, t, c, withheld=True), (N - t) * (N - t + 1)
                report.check(one == bound(N, t, c), f"(a) {N, t, c}")
                report.check((one == 1) == (2 * t <= N + c), f"(b) single inputs: {N, t, c}")
                report.check((one == t - c) == (room < N - c or t == c + 1), f"(b) fewer than t - c: {N, t, c}")
                report.check(two <= one <= t - c and (two == 1) == bare(N, t, c), f"(c) {N, t, c}")
        if N >= 4:
            safe = [t for t in range(2, N + 1) if least_sum(N, t, 0) > 1]
            report.check(min(safe) == N // 2 + 1 <= of_the_paper(N), f"(d) {N} users")
            report.check(bare(N, of_the_paper(N), 0) == (N >= 8 and N not in (9, 11)), f"(d) {N} users, withheld")
    needs = all(2 * of_the_paper(N) > N for N in range(4, 200))
    report.agree("HET-STEP2", "arithmetic", needs, "(d) N shares are not enough for both secrets")
