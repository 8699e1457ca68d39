"""The bound of Theorem 1 of BASecAgg fails in six ways, and a bound that holds.

Statement. Let x(t+1) = x(t) - eta_g/K sum Q(Delta_i), eq. (16), with eta = eta_g eta_l, and read T in (17) as J.
(a) Eq. (17) fails, with eta K E <= 1/L, for F_i = x^2/2 + b_i x in one dimension and exact numbers, each time for one
    reason: the K in its first denominator, which fits the sum of the updates and not their mean; updates that are
    rounded at a size eta_l times smaller than gradients; the factor 1/2 of its second term, for K = 1; delays, since
    Assumption 4 as printed allows G = 0; and without delay local steps, and users that differ.
(b) For identical users x^2/2, E = 1, no noise, no delay: (17) fails for the mean for K >= 2, and holds for the sum, and
    for the mean without K. For K = 1 it holds with T = J there, and with T as the number of colluders it fails.
(c) Let h = eta_g eta_l E <= 1/L, w_i = 1/N, users be drawn uniformly and on their own for each place of the buffer,
    delays be fixed beforehand, G >= ||grad F_i||^2, and V bound the variance of Q(Delta_i)/(eta_l E) given the past.
    Then the mean over t < J of E||grad F(x(t))||^2 is at most
        2 F*/(h J) + (L h/K) V + 2 L^2 h^2 tau_max^2 (G + V/K) + 2 L^2 eta_l^2 (E - 1)^2 (G + sigma_l^2).
(d) V = G + sigma_l^2 + d/(4 c_l^2 eta_l^2 E^2) is such a bound, and for E = 1 also with sigma_g^2 in place of G.

Idea. (b) With eta = 1/K the model shrinks by 1 - 1/K in each round. (c) Let u be the mean of Q(Delta_i)/(eta_l E), so
that x(t+1) = x(t) - h u, and p its mean given the past; ||p||^2 <= G and E||u - p||^2 <= V/K. By L-smoothness,
h L <= 1 and 2<a, b> = ||a||^2 + ||b||^2 - ||a - b||^2,
    E F(x(t+1)) <= F - h <grad F, p> + (L h^2/2)(||p||^2 + V/K)
                <= F - (h/2)||grad F||^2 + (h/2)||grad F - p||^2 + L h^2 V/(2 K),  with F and grad F at x(t).
grad F - p has two parts: the users' models are up to tau_max steps old, each with E||h u||^2 <= h^2 (G + V/K), and they
move by up to E - 1 local steps, each with E||eta_l g||^2 <= eta_l^2 (G + sigma_l^2). So the mean of its square is at
most 2 L^2 tau_max^2 h^2 (G + V/K) + 2 L^2 (E - 1)^2 eta_l^2 (G + sigma_l^2). Adding over t gives (c). (d) Rounding is
unbiased, and a mean of E local gradients has a second moment of at most G + sigma_l^2. The program runs all of this as
exact distributions: every user that can be drawn, every sample and every way to round. The recursions of (b), and of
local steps in (a), are solved with computer algebra besides, for all K, E and J; and so are the steps of (c).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from itertools import product
from math import floor
from typing import Any, NamedTuple, TypeAlias

from secagg_spec.ledger.proofs import Finding, Report, Tally, by_reading, package

CLAIMS = {
    "BAS-THM1": "expectation",
    "BAS-THM1T": "readings",
    "BAS-THM1D": "expectation",
}
ONE, HALF = Fraction(1), Fraction(1, 2)
Law: TypeAlias = dict[Fraction, Fraction]
"""The probability of each value."""
Models: TypeAlias = tuple[Fraction, ...]


class Run(NamedTuple):
    """A way to train: users with gradients m x + b, samples off by +s or -s, and delays up to tau_max."""

    users: tuple[tuple[Fraction, Fraction], ...] = ((ONE, Fraction(0)),)
    K: int = 1
    E: int = 1
    eta_l: Fraction = ONE
    eta_g: Fraction = ONE
    c_l: int = 2**10
    tau_max: int = 0
    s: Fraction = Fraction(0)
    start: Fraction = ONE
    summed: bool = False

    @property
    def smoothness(self) -> Fraction:
        """The smoothness of all users."""
        return max(m for m, _ in self.users)

    @property
    def mean(self) -> tuple[Fraction, Fraction]:
        """The gradient of F, as those of the users."""
        return sum(m for m, _ in self.users) / ONE / len(self.users), sum(b for _, b in self.users) / ONE / len(
            self.users
        )

    @property
    def gap(self) -> Fraction:
        """F* = F(x(0)) - min F."""
        return at(self.mean, self.start) ** 2 / (2 * self.mean[0])


def at(gradient: tuple[Fraction, Fraction], x: Fraction) -> Fraction:
    """Return m x + b."""
    return gradient[0] * x + gradient[1]


def shifted(law: Mapping[Fraction, Fraction], other: Mapping[Fraction, Fraction]) -> Law:
    """Return the law of the sum of two independent values."""
    found: Law = defaultdict(Fraction)
    for (x, p), (y, q) in product(law.items(), other.items()):
        found[x + y] += p * q
    return found


def rounded(x: Fraction, c: int) -> Law:
    """Return the law of Q_c(x)."""
    n = floor(c * x)
    return {Fraction(n + up, c): p for up, p in ((0, n + 1 - c * x), (1, c * x - n)) if p}


def local_models(run: Run, user: tuple[Fraction, Fraction], x: Fraction) -> list[Law]:
    """Return the laws of the user's models after 0, 1, ..., E local steps, eq. (3)."""
    laws: list[Law] = [{x: ONE}]
    noise = {sign * run.eta_l * run.s: HALF for sign in (-1, 1)} if run.s else {Fraction(0): ONE}
    for _ in range(run.E):
        moved: Law = defaultdict(Fraction)
        for y, p in laws[-1].items():
            moved[y - run.eta_l * at(user, y)] += p
        laws.append(shifted(moved, noise))
    return laws


@cache
def upload(run: Run, x: Fraction) -> Law:
    """Return the law of Q(Delta) of a user that is drawn uniformly and starts from x."""
    found: Law = defaultdict(Fraction)
    for user in run.users:
        for y, p in local_models(run, user, x)[-1].items():
            for value, chance in rounded(x - y, run.c_l).items():
                found[value] += p * chance / len(run.users)
    return found


@cache
def train(run: Run, J: int) -> tuple[Mapping[Models, Fraction], ...]:
    """Return, for t < J, the law of the last models x(t - tau_max), ..., x(t)."""
    if J == 1:
        return ({(run.start,): ONE},)
    before, after = train(run, J - 1), defaultdict[Models, Fraction](Fraction)
    for models, p in before[-1].items():
        total: Law = {Fraction(0): ONE}
        for place in range(run.K):
            total = shifted(total, upload(run, models[max(0, len(models) - 1 - delay(run, place))]))
        for value, q in total.items():
            moved = models[-1] - run.eta_g * value / (1 if run.summed else run.K)
            after[(*models, moved)[-run.tau_max - 1 :]] += p * q
    return (*before, after)


def delay(run: Run, place: int) -> int:
    """Return the delay of a place of the buffer: tau_max, tau_max - 1, ..., 0, tau_max, ..."""
    return run.tau_max - place % (run.tau_max + 1)


def left(run: Run, J: int) -> Fraction:
    """Return the mean over t < J of E||grad F(x(t))||^2."""
    return (
        sum((p * at(run.mean, models[-1]) ** 2 for law in train(run, J) for models, p in law.items()), Fraction(0)) / J
    )


def printed(run: Run, J: int, *, T: int | None = None, K: int | None = None) -> Fraction:
    """Return the right side of (17), for users of one slope; `T` and `K` replace those of its first denominator."""
    eta, mean = run.eta_g * run.eta_l, run.mean[1]
    noise = Fraction(1, 4 * run.c_l**2) + run.s**2
    off = [(b - mean) ** 2 for _, b in run.users]
    all_noise = max(off) + sum(off, Fraction(0)) / len(off) + noise
    first = 2 * run.gap / (eta * run.E * (run.K if K is None else K) * (J if T is None else T))
    late = 3 * run.smoothness**2 * run.E**2 * run.eta_l**2 * run.eta_g**2 * run.K**2 * run.tau_max**2
    return first + run.smoothness * eta * noise / 2 + late * all_noise


def repaired(run: Run, J: int) -> Fraction:
    """Return the right side of (c), with the largest gradient and the largest variance that occur in the run."""
    h, G, V = run.eta_g * run.eta_l * run.E, steepest(run, J), widest(run, J)
    late = 2 * run.smoothness**2 * h**2 * run.tau_max**2 * (G + V / run.K)
    local = 2 * run.smoothness**2 * run.eta_l**2 * (run.E - 1) ** 2 * (G + run.s**2)
    return 2 * run.gap / (h * J) + run.smoothness * h / run.K * V + late + local


def variance_bound(run: Run, J: int) -> Fraction:
    """Return the smaller of the bounds in (d)."""
    differing = min(apart(run, J), steepest(run, J)) if run.E == 1 else steepest(run, J)
    return differing + run.s**2 + Fraction(1, 4 * run.c_l**2) / (run.eta_l * run.E) ** 2


def visited(run: Run, J: int) -> set[Fraction]:
    """Return the global models that occur."""
    return {x for law in train(run, J) for models in law for x in models}


def steepest(run: Run, J: int) -> Fraction:
    """Return the largest squared gradient of any user at any model, global or local, that occurs."""
    reached = ((user, local_models(run, user, x)[:-1]) for user in run.users for x in visited(run, J))
    return max(at(user, y) ** 2 for user, laws in reached for law in laws for y in law)


def widest(run: Run, J: int) -> Fraction:
    """Return the largest variance of Q(Delta)/(eta_l E) that occurs."""
    return max(variance(upload(run, x)) for x in visited(run, J)) / (run.eta_l * run.E) ** 2


def variance(law: Law) -> Fraction:
    """Return the variance of a law."""
    mean = sum((p * x for x, p in law.items()), Fraction(0))
    return sum((p * (x - mean) ** 2 for x, p in law.items()), Fraction(0))


def apart(run: Run, J: int) -> Fraction:
    """Return sigma_g^2 of a run: the largest mean squared distance of the users' gradients from their mean."""
    squares = ([(at(user, x) - at(run.mean, x)) ** 2 for user in run.users] for x in visited(run, J))
    return max(sum(each, Fraction(0)) / len(each) for each in squares)


def prove(report: Report) -> dict[str, Finding]:
    """Decide (a) and (b), and check (c) and (d)."""
    theorem, numbers = buffers(report)
    without_delay = reasons(report)
    repair(report)
    closed_forms(report)
    step_of_the_repair(report)
    found = "the first term is too small by K, and five more reasons each break it"
    return {
        "BAS-THM1": Finding(theorem.verdict, found, theorem.against, numbers),
        "BAS-THM1T": colluders(report),
        "BAS-THM1D": without_delay,
    }


def described(run: Run, J: int) -> dict[str, object]:
    """Return a run as data, with both sides of (17)."""
    case: dict[str, object] = {"gradients": [written(user) for user in run.users], "K": run.K, "E": run.E, "J": J}
    case |= {"eta_l": str(run.eta_l), "eta_g": str(run.eta_g), "c_l": run.c_l, "tau_max": run.tau_max}
    return case | {"x": str(run.start), "left": str(left(run, J)), "right": str(printed(run, J))}


def written(gradient: tuple[Fraction, Fraction]) -> str:
    """Return m x + b as text."""
    slope, b = ("x" if gradient[0] == 1 else f"{gradient[0]} x"), gradient[1]
    return f"{slope} {'-' if b < 0 else '+'} {abs(b)}" if b else slope


def buffers(report: Report) -> tuple[Tally, dict[str, str]]:
    """Decide (b): identical users with the largest step that is allowed, rounded without error."""
    tally = Tally()
    for K in range(1, 7):
        for J in (1, 2, 5):
            run = Run(K=K, eta_l=Fraction(1, K), c_l=K**J)
            tally.add(described(run, J), left(run, J) <= printed(run, J))
            report.check(left(run, J) <= printed(run, J, K=1), f"(b) holds for the mean without K: K = {K}, J = {J}")
            summed = run._replace(summed=True)
            report.check(left(summed, J) <= printed(run, J), f"(b) holds for the sum: K = {K}, J = {J}")
        report.check((left(run, 5) > printed(run, 5)) == (K > 1), f"(b) fails for the mean when K >= 2: K = {K}")
    report.say(f"identical users, K = 1 to 6, nothing random: (17) holds in {tally.held} of {tally.cases} runs;")
    report.say("it holds in all of them for the sum of the updates, or without K in the first denominator")
    ratios = {f"K {K}, J {J}": f"{excess(K, J):.2f}" for K, J in ((2, 2), (2, 20), (10, 20))}
    report.say("left side over right side: " + "; ".join(f"{ratio} for {name}" for name, ratio in ratios.items()))
    return tally, ratios


def excess(K: int, J: int) -> float:
    """Return the left side of (17) over its right side for identical users and the largest step that is allowed."""
    run = Run(K=K, eta_l=Fraction(1, K), c_l=K**J)
    return float(left(run, J) / printed(run, J))


PAIR = ((ONE, ONE), (ONE, -ONE))
REASONS = {
    "updates are rounded, not gradients": (Run(eta_l=Fraction(1, 4), c_l=1, start=HALF), 5),
    "the factor 1/2 of the second term": (Run(c_l=1, start=HALF), 3),
    "delays, with G = 0": (Run(tau_max=1), 3),
    "local steps": (Run(E=3, eta_g=Fraction(1, 3)), 2),
    "users that differ": (Run(users=PAIR, eta_l=HALF, start=Fraction(0)), 2),
}
"""Reasons for which (17) fails with K = 1, each with a run that has this one only, and its J."""


def reasons(report: Report) -> Finding:
    """Decide the rest of (a); two of these runs decide the claim on (17) without delay."""
    tally = Tally()
    for reason, (run, J) in REASONS.items():
        below, above = left(run, J), printed(run, J)
        report.check(run.eta_g * run.eta_l * run.K * run.E * run.smoothness <= 1, f"the step is allowed: {reason}")
        report.check(below > above, f"(a) {reason}")
        report.check(below <= repaired(run, J), f"(c) holds in spite of {reason}")
        report.check(widest(run, J) <= variance_bound(run, J), f"(d) holds in spite of {reason}")
        report.say(f"K = 1, {reason}: {below} = {float(below):.3f} on the left, {float(above):.3g} on the right")
    for reason in ("local steps", "users that differ"):
        tally.add(described(*REASONS[reason]), left(*REASONS[reason]) <= printed(*REASONS[reason]))
    return Finding(tally.verdict, "local steps and differing users cost something without delay as well", tally.against)


def repair(report: Report) -> None:
    """Check (c) and (d) on a grid: users, sizes of the buffer, local steps, delays, step sizes, levels and samples."""
    cases, closest = 0, Fraction(0)
    users = (((ONE, Fraction(0)),), PAIR, ((HALF, ONE), (ONE, Fraction(0))))
    for who, K, E, tau, c_l, s in product(users, (1, 2), (1, 2), (0, 2), (1, 4), (Fraction(0), HALF)):
        for eta_l in (HALF, Fraction(1, 4)):
            run = Run(who, K, E, eta_l, ONE, c_l, tau, s)
            report.check(widest(run, 3) <= variance_bound(run, 3), f"(d) {run}")
            for J in (1, 2, 3):
                ratio = left(run, J) / repaired(run, J)
                report.check(ratio <= 1, f"(c) {run}, J = {J}")
                cases, closest = cases + 1, max(closest, ratio)
    report.say(
        f"the repaired bound (c) holds in all of {cases} runs; the left side is up to {float(closest):.2f} of it"
    )


def colluders(report: Report) -> Finding:
    """Decide how T in (17) is to be read, on a run in which all else is right: K = E = 1, no noise, no delay."""
    readings = {"J": Tally(), "colluders": Tally()}
    for eta, J, T in product((ONE, HALF), (1, 2, 4), (1, 2, 3)):
        run = Run(eta_l=eta, c_l=16)
        case: dict[str, object] = {"eta_l": str(eta), "J": J, "T": T, "left": str(left(run, J))}
        readings["J"].add(case, left(run, J) <= printed(run, J))
        as_colluders = printed(run, J, T=T)
        readings["colluders"].add(case | {"right": str(as_colluders)}, left(run, J) <= as_colluders)
    for name, tally in readings.items():
        report.say(f"T in (17) read as {name}: (17) holds in {tally.held} of {tally.cases} runs with K = E = 1")
    report.agree(
        "BAS-THM1T",
        "symbolic",
        bounded_with_rounds(),
        "with T = J it holds for all eta <= 1, and with T = 2 fails for J = 1",
    )
    return Finding(by_reading(readings.values()), "only T = J holds", readings["colluders"].against)


# ------------------------------------------------------------------------------------------------ by computer algebra


def closed_forms(report: Report) -> None:
    """Solve the recursion x(t+1) = (1 - h) x(t) of two failures of (17), for all K, E and J.

    The users are x^2/2 and x(0) = 1. The largest step of K identical users is eta_g eta_l = h = 1/K; one user with
    eta_l = 1 is at the minimum after one local step, stays there for E - 1, and eta_g = 1/E makes h = 1/E of it. J
    times the first term of (17), 2 F*/(eta_g eta_l E K), is then 1, and its second term vanishes as c_l grows.
    """
    sympy = package("sympy")
    t = sympy.Symbol("t", integer=True, nonnegative=True)
    n, x = sympy.Symbol("n", positive=True), sympy.Function("x")
    model = sympy.rsolve(x(t + 1) - (1 - 1 / n) * x(t), x(t), {x(0): 1})
    followed = all(left(several(size), 4) == mean_square(model.subs(n, size), t, 4) for size in (2, 3, 5))
    followed &= all(left(local(size), 4) == mean_square(model.subs(n, size), t, 4) for size in (2, 3, 5))
    more = sympy.expand((model**2).subs(t, 0) + (model**2).subs(t, 1) - 1 - (1 - 1 / n) ** 2) == 0
    first = [2 * sympy.Rational(1, 2) / (1 / n * n), 2 * sympy.Rational(1, 2) / (1 * (1 / n) * n)]
    report.check(first == [1, 1], "J times the first term is 1")
    whole = sympy.summation((1 - 1 / n) ** (2 * t), (t, 0, sympy.oo)).subs(n, 10)
    report.check(whole == sympy.Rational(100, 19), "over all rounds the squares sum to 100/19 for K = 10")
    shown = "the squared gradients sum to 1 + (1 - 1/n)^2 after two rounds, above 1 for every n > 1; n is K, or E"
    report.agree(("BAS-THM1", "BAS-THM1D"), "symbolic", bool(followed and more), shown)


def bounded_with_rounds() -> bool:
    """Return whether the squares of x(t+1) = (1 - eta) x(t), x(0) = 1, sum to 1/eta or less, J times (17) with T = J.

    Their sum solves S = (1 - eta)^2 S + 1, and what is left to 1/eta is (1 - eta)/(eta (2 - eta)). Read with T = 2,
    (17) is below the 1 on its left for J = 1 and eta = 1.
    """
    sympy = package("sympy")
    eta, T = sympy.symbols("eta T", positive=True)
    whole = 1 / (1 - (1 - eta) ** 2)
    step = sympy.expand((1 - eta) ** 2 * whole - whole + 1)
    room = sympy.simplify(1 / eta - whole - (1 - eta) / (eta * (2 - eta)))
    as_printed = (2 * sympy.Rational(1, 2) / (eta * T)).subs({eta: 1, T: 2})
    return bool(sympy.simplify(step) == 0 == room and as_printed < 1)


def several(K: int) -> Run:
    """Return the run of K identical users with the largest step that is allowed."""
    return Run(K=K, eta_l=Fraction(1, K), c_l=K**4)


def local(E: int) -> Run:
    """Return the run of one user with E local steps, all but the first of which stay at the minimum."""
    return Run(E=E, eta_g=Fraction(1, E), c_l=E**4)


def mean_square(model: Any, t: Any, J: int) -> Fraction:
    """Return the mean of the squares of a sequence over t < J."""
    squares = [Fraction(str(model.subs(t, at) ** 2)) for at in range(J)]
    return sum(squares, Fraction(0)) / J


def step_of_the_repair(report: Report) -> None:
    """Check the step of (c) as an identity: grad F = a and p = b in two dimensions, and what is dropped of it."""
    sympy = package("sympy")
    h, L, v = sympy.symbols("h L v", positive=True)
    a, b = sympy.Matrix(sympy.symbols("a1 a2")), sympy.Matrix(sympy.symbols("b1 b2"))
    exact = -h * a.dot(b) + L * h**2 / 2 * (b.dot(b) + v)
    bound = -h / 2 * a.dot(a) + h / 2 * (a - b).dot(a - b) + L * h**2 / 2 * v
    dropped = h / 2 * (1 - h * L) * b.dot(b)
    report.check(sympy.expand(bound - exact - dropped) == 0, "(c) the bound of a round is off by (h/2)(1 - h L)||p||^2")
