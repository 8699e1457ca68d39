"""The repair of BASA: positions are never given again, updates have self masks, one key of each position is released.

Statement. Of P positions each is given once. Its upload is accepted, or comes late, or never comes. At the close the
self keys of the accepted positions are released, and the pair keys of all others.
(a) The server and any coalition learn exactly the sum over the honest accepted updates, besides their own; before the
close, or without one, they learn nothing of honest updates at all.
(b) Of the 16 ways to release the pair key, the self key, both or none, of accepted positions and of the others, this
one alone is private against one colluder in all cases and gives the sum.
(c) No part can be left out: with positions given again, without self masks, or when a user may be given other boxes
than those of the accepted positions, the server alone learns more; and a user that takes all positions but one leaves
an honest update as the sum.
(d) To end the epoch at each timeout instead is private too: of each epoch one sum is learned at most, that over all its
uploads, and only when every position has one or a key that is known. When the updates of a void epoch are uploaded
again, the difference of two such sums can be one update; when they are not, the two sums share nothing.

Idea. An upload that is not accepted keeps its self mask, which nobody removes: it is hidden. Two honest accepted
updates share a mask, whose key is never released, and which the one adds and the other subtracts: they occur in what
is learned with one coefficient. All other masks of accepted updates are released, or known to the coalition, so that
the sum is learned. That holds for all numbers; small ones are decided with the functions that run, modulo 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.ledger.proofs import Finding, Report, Tally
from secagg_spec.privacy.basa import (
    ACCEPTED,
    LATE,
    PAIR,
    SELF,
    SETTLE,
    VOID,
    WEAKER,
    Epoch,
    Holder,
    Situation,
    Timeouts,
    Users,
    every_coalition,
    every_pattern,
    every_repeat,
    every_stop,
    exactly,
    learned,
    recovers,
    together,
)
from secagg_spec.privacy.basa_counting import Sum, counted
from secagg_spec.privacy.views import Space

CLAIMS = {
    "UNI-BASASETTLE": "matrices",
    "UNI-BASARELEASE": "matrices",
    "UNI-BASAPARTS": "matrices",
    "UNI-BASAVOID": "matrices",
    "UNI-BASAREUSE": "matrices",
}
RING = Ring(16)
EITHER = ((), (PAIR,), (SELF,), (PAIR, SELF))


def data(situation: Situation, coalition: Users) -> dict[str, object]:
    """Return a case as data."""
    return {"users": [f"{position}: {fate}" for position, fate in situation.holders], "colluding": list(coalition)}


def settled(report: Report) -> Tally:
    """Decide the first half of (a): all patterns of up to five positions, all coalitions."""
    tally = Tally()
    for P in range(2, 6):
        for situation in every_pattern(P):
            epoch = Epoch(RING, SETTLE, situation)
            if situation.accepted:
                report.check(recovers(epoch), f"recover returns the sum: {situation.holders}")
            for coalition in every_coalition(range(P)):
                tally.add(data(situation, coalition), exactly(epoch.view(coalition), epoch.allowed(coalition)))
    report.check(tally.verdict == "confirmed", f"(a): {tally.against}")
    report.say(f"closed epochs: the sum and nothing else in {tally.held} of {tally.cases} views")
    return tally


def waiting(report: Report) -> None:
    """Decide the rest of (a): what is seen before the close, of up to four positions."""
    views = 0
    for P in range(2, 5):
        for situation in every_pattern(P):
            epoch = Epoch(RING, SETTLE, replace(situation, closed=False))
            for coalition in every_coalition(range(P)):
                shown = f"nothing before the close: {data(situation, coalition)}"
                report.check(exactly(epoch.view(coalition), ()), shown)
                views += 1
    report.say(f"before the close: nothing at all in {views} of {views} views")


def private(rule: Timeouts, situations: Iterator[Situation], largest: int) -> bool:
    """Return whether no coalition of up to this many users learns more than the sum."""
    for situation in situations:
        epoch = Epoch(RING, rule, situation)
        for size in range(largest + 1):
            if not all(epoch.decide(coalition).private for coalition in combinations(situation.users, size)):
                return False
    return True


def gives_sums(rule: Timeouts, positions: int) -> bool:
    """Return whether the sum over the accepted updates is learned in all cases."""
    return all(recovers(Epoch(RING, rule, found)) for found in every_pattern(positions) if found.accepted)


def releases(report: Report) -> Tally:
    """Decide (b) on three positions."""
    tally = Tally()
    report.say("what is released at the close:")
    for accepted, others in product(EITHER, EITHER):
        rule = replace(SETTLE, accepted=accepted, others=others)
        hides, tells = private(rule, every_pattern(3), 1), gives_sums(rule, 3)
        report.say(
            f"  of accepted {words(accepted):<13} of others {words(others):<13} private: {hides}, a sum: {tells}"
        )
        case = {"accepted": list(accepted), "others": list(others)}
        tally.add(case, (hides and tells) == ((accepted, others) == ((SELF,), (PAIR,))))
    report.check(tally.verdict == "confirmed", f"(b): {tally.against}")
    return tally


def words(keys: tuple[str, ...]) -> str:
    """Return keys in words."""
    return " and ".join(keys) or "none"


def parts(report: Report) -> Tally:
    """Decide (c): the smallest case against each weaker rule, on three positions."""
    tally = Tally()
    for name in ("again", "bare"):
        rule = WEAKER[name]
        situations = every_repeat(3) if rule.again else every_pattern(3)
        broken = next(found for found in situations if not Epoch(RING, rule, found).decide(()).private)
        beyond = Epoch(RING, rule, broken).decide(()).functionals
        single = bool(beyond) and all(found.count("x_") <= 2 for found in beyond)
        tally.add({"rule": name, "learned": list(beyond)}, single)
        report.check(LATE in [fate for _, fate in broken.holders], f"(c) a late upload is enough: {name}")
        report.say(f"{name}: {data(broken, ())['users']}: the server learns {', '.join(beyond)}")
    tally.add({"boxes": "any"}, other_boxes(report))
    tally.add({"user": "takes all positions but one"}, crowded())
    report.check(tally.verdict == "confirmed", f"(c): {tally.against}")
    return tally


def other_boxes(report: Report) -> bool:
    """Let the server choose the boxes that users get, of three accepted updates; return whether it learns as expected.

    It learns the last update when its user got no box, and the sum of the last two when only these two share a mask.
    """
    whole = Situation(3, tuple(Holder(at, ACCEPTED) for at in range(3)))
    right = []
    for second, third in product(((), (0,)), ((), (0,), (1,), (0, 1))):
        epoch = Epoch(RING, SETTLE, replace(whole, offered={1: second, 2: third}))
        sums: list[Users] = [] if third else [(2,)]
        sums += [(1, 2)] if (second, third) == ((), (1,)) else []
        sums += [(0, 1, 2)] if (second, third) == ((0,), (0, 1)) else []
        right.append(exactly(epoch.view(()), [epoch.total(users) for users in sums]))
        names = [" + ".join(f"x_{user}" for user in users) for users in sums]
        report.say(f"boxes from {list(second)} to 1, from {list(third)} to 2: learned {', '.join(names) or 'nothing'}")
    return all(right)


def crowded() -> bool:
    """Let one user take the first two of three positions: the sum is the honest update."""
    whole = Situation(3, tuple(Holder(at, ACCEPTED) for at in range(3)))
    epoch = Epoch(RING, SETTLE, whole, people=(0, 0, 1))
    return epoch.contributors((0,)) == (2,) and exactly(epoch.view((0,)), [epoch.total([2])])


def ended(report: Report) -> Tally:
    """Decide the first half of (d): every end of epochs of up to six positions, every coalition."""
    tally, sums = Tally(), 0
    for K in range(2, 7):
        for situation in every_stop(K):
            epoch = Epoch(RING, VOID, situation)
            for coalition in every_coalition(situation.users):
                shown = learned(epoch, coalition)
                honest = epoch.honest(coalition, situation.uploaded)
                whole = epoch.ended(coalition) and bool(honest)
                one = shown == () if not whole else exactly(epoch.view(coalition), [epoch.total(honest)])
                tally.add(data(situation, coalition), one and exactly(epoch.view(coalition), shown))
                sums += whole and not situation.closed
    report.check(tally.verdict == "confirmed", f"(d): {tally.against}")
    report.say(
        f"void: one sum at most in {tally.held} of {tally.cases} views, in {sums} of them of an epoch that is void"
    )
    return tally


def uploaded_again(report: Report) -> tuple[Tally, dict[str, int]]:
    """Decide the rest of (d): an epoch whose last upload came late, and one after it, with one colluder at most."""
    tally, found = Tally(), {"again": 0, "new": 0}
    first = Situation(3, (Holder(0, ACCEPTED), Holder(1, ACCEPTED), Holder(2, LATE)), closed=False)
    second = Situation(3, tuple(Holder(at, ACCEPTED) for at in range(3)))
    for people, size, again in product(combinations(range(5), 3), (0, 1), (True, False)):
        for coalition in combinations(range(5), size):
            space = Space(RING)
            before = Epoch(RING, VOID, first, space=space)
            after = Epoch(RING, VOID, second, people=people, number=1, space=space, name="x" if again else "z")
            sums = [epoch.total(epoch.honest(coalition, range(3))) for epoch in (before, after)]
            report.check(exactly(together([before, after], coalition), sums), "both sums are learned, and nothing else")
            honest = [{person for person in epoch.people if person not in coalition} for epoch in (before, after)]
            differing = len(honest[0] ^ honest[1]) if again else len(honest[0]) + len(honest[1])
            found["again" if again else "new"] += differing == 1
            tally.add({"people": list(people), "colluding": list(coalition)}, again or differing > 1)
    report.say(f"after a void epoch, the same updates again: one update is learned in {found['again']} views")
    report.say(f"after a void epoch, new updates: in {found['new']}")
    report.check(tally.verdict == "confirmed", f"(d): {tally.against}")
    return tally, found


def by_counting(report: Report) -> None:
    """Decide up to three positions again: every update and every mask is tried."""
    closed = all(
        tells_the_sum(3, SETTLE, one, c) for P in (2, 3) for one in every_pattern(P) for c in every_coalition(range(P))
    )
    report.agree("UNI-BASASETTLE", "enumeration", closed, "the same of 2 and 3 positions, modulo 3")
    stops = [one for P in (2, 3) for one in every_stop(P)]
    ended = all(tells_the_sum(3, VOID, one, c) for one in stops for c in every_coalition(one.users))
    report.agree("UNI-BASAVOID", "enumeration", ended, "the same of 2 and 3 positions, modulo 3")
    patterns = list(every_pattern(3))
    ways = [replace(SETTLE, accepted=accepted, others=others) for accepted, others in product(EITHER, EITHER)]
    works = [way for way in ways if all(gives_the_sum(way, one) for one in patterns)]
    safe = [way for way in works if all(hides(way, one, c) for one in patterns for c in ((), (0,), (1,), (2,)))]
    report.agree("UNI-BASARELEASE", "enumeration", safe == [SETTLE], "the same way of 16, modulo 2")
    weak = [(WEAKER["again"], every_repeat(2)), (WEAKER["bare"], every_pattern(2))]
    broken = all(not all(hides(rule, one, ()) for one in situations) for rule, situations in weak)
    whole = Situation(3, tuple(Holder(at, ACCEPTED) for at in range(3)))
    last: Sum = {2: 1}
    unboxed = counted(2, SETTLE, replace(whole, offered={1: (0,), 2: ()}), (), [last]).no_less
    crowd = counted(2, SETTLE, whole, (0, 1), [last]).no_less
    report.agree("UNI-BASAPARTS", "enumeration", broken and unboxed and crowd, "more is learned without each part")
    report.say(f"by counting: one way to release of {len(ways)}, and {len(works)} that give the sum")


def summed(rule: Timeouts, situation: Situation, coalition: Users) -> list[Sum]:
    """Return the sum that the statement says is learned, or nothing."""
    honest = [
        user for user in situation.uploaded if user not in coalition and (rule.ends or user in situation.accepted)
    ]
    filled = {situation.at(user) for user in (*honest, *coalition)} == {*range(situation.positions)}
    return [dict.fromkeys(honest, 1)] if honest and (filled or not rule.ends) else []


def tells_the_sum(R: int, rule: Timeouts, situation: Situation, coalition: Users) -> bool:
    """Return whether a view tells exactly the sum, where the statement says so, and else nothing."""
    return counted(R, rule, situation, coalition, summed(rule, situation, coalition)) == (True, True)


def gives_the_sum(rule: Timeouts, situation: Situation) -> bool:
    """Return whether the server learns the sum, or there is none."""
    return not situation.accepted or counted(2, rule, situation, (), summed(rule, situation, ())).no_less


def hides(rule: Timeouts, situation: Situation, coalition: Users) -> bool:
    """Return whether a view tells no more than the sum."""
    return counted(2, rule, situation, coalition, summed(rule, situation, coalition)).no_more


def prove(report: Report) -> dict[str, Finding]:
    """Decide all views."""
    by_counting(report)
    (again, found), void = uploaded_again(report), ended(report)
    part, release = parts(report), releases(report)
    waiting(report)
    whole = settled(report)
    return {
        "UNI-BASASETTLE": Finding(whole.verdict, "as stated", whole.against, {"views": whole.cases}),
        "UNI-BASARELEASE": Finding(release.verdict, "one way of 16", release.against, {"ways": release.cases}),
        "UNI-BASAPARTS": Finding(part.verdict, "each part is needed", part.against, {"parts": part.cases}),
        "UNI-BASAVOID": Finding(void.verdict, "one sum at most", void.against, {"views": void.cases}),
        "UNI-BASAREUSE": Finding(again.verdict, "differences of sums", again.against, {"one update": found["again"]}),
    }
