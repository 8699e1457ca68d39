"""Checks of sums of integers by any protocol, and of what each party sees (spec/adapter.md, section 4)."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import accumulate, combinations, product
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.plain import counted
from secagg_spec.conformance.cases import neighbours, strategies, sums
from secagg_spec.conformance.cases.neighbours import COALITION, MOST_SUMMED, SUM, VIEW, bounds, sum_moduli, sum_rosters
from secagg_spec.conformance.cases.requests import place_of
from secagg_spec.conformance.cases.sums import Sum
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, check, equal, fail, octets
from secagg_spec.conformance.checks.outside_hiding import Hidden, demand_hidden
from secagg_spec.conformance.checks.outside_probes import leaked
from secagg_spec.conformance.outside.leaks import Leak, details, named
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, Reject, element_bytes, unpack
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.privacy.howell import Row, RowModule

_WRONG = reject.BAD_PARAM | reject.TOO_FEW | reject.LENGTH | reject.NONCANONICAL | reject.OUTSIDE | reject.TWICE
_BITS = 60
"""No false alarm but with a probability of 2**-60: so many more rounds are played than there are unknowns."""
_COLUMNS = 200
"""The most elements of a view that are compared together."""
_WATCHERS = 3
"""The most users of a round of whom it is asked what they see."""
_LOOK = 96
"""Answers before a first look at a difference: some 48 of each kind, which suffice where all of them differ."""
_ROUNDS, _SECONDS = 300, 30.0
"""How many rounds are played in one process, more than a byte counts, and the time after which there are no more."""
_SURE = 100
"""The bits of an update, so that rounds without a common mask show the same one with a probability below 2**-60."""


def _spares(caps: Capabilities) -> bool:
    return bool(sum_rosters(caps, SUM, 1))


@check("secagg.sum/exact", "ADP-41", examples=40)
def exact(draw: Any, call: Caller) -> None:
    """A round without dropouts gives the sum over all users."""
    judge_sum(call, sums.drawn(draw, call.caps))


def _dropouts(name: str, *phases: str) -> None:
    @check(f"secagg.sum/{name}-dropouts", "ADP-41", operations=(SUM,), applies=_spares, examples=25)
    def dropouts(draw: Any, call: Caller) -> None:
        """When users drop out and t or more are left, the sum is that of the users that sent an update."""
        given = sums.drawn(draw, call.caps, spare=1)
        judge_sum(call, sums.dropping(draw, given, draw(st.integers(1, given.N - given.t)), phases))


_dropouts("setup", SUM_PHASES[0])
_dropouts("late", *SUM_PHASES[1:])


def judge_sum(call: Caller, given: Sum) -> None:
    """Ask for a round that must succeed, and compare its sum."""
    call.by_relation = True
    result = call.result(SUM, given.params())
    equal("contributors are", result.get("contributors"), given.contributors)
    got = _elements(given.R, result.get("sum"), "sum")
    if got != given.total:
        fail(f"the sum modulo {given.R} is {got}, must be {given.total}", [str(value) for value in given.total])


def _elements(R: int, text: Any, what: str) -> list[int]:
    try:
        return unpack(text, element_bytes(R))
    except Reject as refusal:
        raise CheckFailed("protocol", f"{what}: {refusal}") from None


@check("secagg.sum/too-few", "ADP-45", examples=25)
def too_few(draw: Any, call: Caller) -> None:
    """A round in which fewer than t users are left fails with a rejection."""
    given = sums.drawn(draw, call.caps)
    left = draw(st.integers(0, given.t - 1))
    given = sums.dropping(draw, given, given.N - left, (draw(among(SUM_PHASES)),))
    are = counted(left, "user is", "users are")
    call.refused(SUM, given.params(), reject.TOO_FEW, f"{are} left and t = {given.t} are needed")


@check("secagg.sum/wrong", "ADP-42", examples=10)
def wrong(draw: Any, call: Caller) -> None:
    """A modulus, a number of users or a threshold that the text forbids is refused, and so are wrong updates."""
    given = sums.drawn(draw, call.caps)
    rows = [sums.written(given.R, row) for row in given.updates]
    at, one = place_of(draw, rows), sums.written(given.R, (0,))
    beyond = (2 ** (4 * len(one)) - 1).to_bytes(len(one) // 2, "little").hex()
    kinds: dict[str, dict[str, Any]] = {
        **{f"R = {R}": {"R": R} for R in (0, 1, -1, MOST_SUMMED + 1)},
        **{f"t = {t}": {"t": t} for t in (0, -1, given.N + 1)},
        "N = 1": {"N": 1, "t": 1, "updates": rows[:1]},
        "one update is longer": {"updates": [*rows[:at], rows[at] + one, *rows[at + 1 :]]},
        "the updates have no elements": {"updates": [""] * given.N},
        "an update is missing": {"updates": rows[:-1]},
        "there is an update too many": {"updates": [*rows, rows[at]]},
    }
    if int.from_bytes(bytes.fromhex(beyond), "little") >= given.R:
        changed = [*rows[:at], beyond + rows[at][len(one) :], *rows[at + 1 :]]
        kinds |= {"an element is not below R": {"updates": changed}}
    call.each_refused(draw, SUM, [(given.params(**changed), _WRONG, why) for why, changed in kinds.items()])


def _played(call: Caller) -> Iterator[int]:
    """Yield the numbers of many rounds in one process, until they take too long."""
    end = min(call.until, time.monotonic() + _SECONDS)
    for number in range(_ROUNDS):
        if number > 1 and time.monotonic() > end:
            why = f"only {number} rounds of {_ROUNDS} were played in one process, because more take too long"
            call.limits.append(why)
            return
        yield number


@check("secagg.sum/rounds", "ADP-41", "ADP-03", examples=1)
def rounds(draw: Any, call: Caller) -> None:
    """In hundreds of rounds of one process each sum is right."""
    (N, t), moduli = min(sum_rosters(call.caps, SUM)), sum_moduli(call.caps, SUM)
    seed = draw(st.integers(0, 2**32 - 1))
    for number in _played(call):
        R = moduli[number % len(moduli)]
        rows = tuple(sums.elements(R, 2, seed, f"{number} {user}") for user in range(N))
        try:
            judge_sum(call, Sum(R, N, t, rows, neighbours.nobody(SUM_PHASES)))
        except CheckFailed as failed:
            message = f"round {number} in one process: {failed}"
            raise CheckFailed(failed.verdict, message, failed.expected, failed.step) from None
    call.transcript.clear()


@check("secagg.view/viewer", "ADP-42", examples=10)
def viewer(draw: Any, call: Caller) -> None:
    """A viewer that is not in the round, or drops out of it, is refused."""
    given, gone = sums.drawn(draw, call.caps, VIEW), draw(st.booleans())
    spare = [pair for pair in sum_rosters(call.caps, VIEW, 1) if pair == (given.N, given.t)]
    who, why = given.N, f"viewer is {given.N} and N is {given.N}"
    if gone and spare:
        given = sums.dropping(draw, given, 1, SUM_PHASES)
        (who,) = (user for users in given.drop.values() for user in users)
        why = f"user {who}, the viewer, drops out"
    call.refused(VIEW, given.params(viewer=who), _WRONG, why)


@dataclass(frozen=True)
class _Watching:
    """Rounds that a party sees, or a coalition of up to T users; each update of a round may be another one."""

    call: Caller
    given: Sum
    viewers: tuple[str | int, ...]
    T: int = 0

    @property
    def own(self) -> tuple[int, ...]:
        """The users who see it."""
        return tuple(one for one in self.viewers if isinstance(one, int))

    def seen(self, updates: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[bytes]]:
        """Play a round with these updates, and return what the party sees: vectors, and strings."""
        self.call.transcript.clear()
        given = replace(self.given, updates=tuple(map(tuple, updates)))
        if self.T:
            result = self.call.result(COALITION, given.params(T=self.T, viewers=list(self.viewers)))
        else:
            result = self.call.result(VIEW, given.params(viewer=self.viewers[0]))
        vectors, strings = result.get("vectors"), result.get("strings")
        if not isinstance(vectors, list) or not isinstance(strings, list):
            raise CheckFailed("protocol", "the result has no lists 'vectors' and 'strings'")
        data = [octets(f"strings[{at}]", text) for at, text in enumerate(strings)]
        return [_elements(given.R, text, f"vectors[{at}]") for at, text in enumerate(vectors)], data

    def allowed(self) -> Iterator[list[int]]:
        """Yield what may be known: the sums of each element over the contributors, and each viewer's own update."""
        d = len(self.given.updates[0])
        for users in (self.given.contributors, *([user] for user in self.own)):
            for place in range(d):
                yield [int(user in users and at == place) for user in range(self.given.N) for at in range(d)]


def _watched(draw: Any, call: Caller) -> list[_Watching]:
    """Draw a round of the fewest users of which three send updates, as the server and up to three users see it."""
    pairs = [pair for pair in sum_rosters(call.caps, VIEW) if pair[0] >= 3] or sum_rosters(call.caps, VIEW)
    spare = [pair for pair in pairs if pair[1] < pair[0] > 3]
    dropping = draw(st.booleans()) and bool(spare)
    N, t = min(spare) if dropping else min(pairs)
    drop = neighbours.nobody(SUM_PHASES)
    if dropping:
        drop[draw(among(SUM_PHASES[1:]))].append(N - 1)
    R, staying = draw(among(tuple(sum_moduli(call.caps, VIEW)))), range(N - dropping)
    users = strategies.subset(draw, staying, *[min(_WATCHERS, len(staying))] * 2)
    viewers: list[str | int] = ["server", *users]
    return [_Watching(call, Sum(R, N, t, ((0, 0),) * N, drop), (viewer,)) for viewer in viewers]


@check("privacy/secagg.view", "ADP-43", examples=4)
def view(draw: Any, call: Caller) -> None:
    """No combination of what a party sees is a combination of updates, but for sums and its own update.

    A case looks at what the server sees, and what up to three users see.
    """
    watched, seed = _watched(draw, call), draw(st.integers(0, 2**32 - 1))
    for watching in watched:
        _unrelated(watching, seed)
    call.limits[:] = dict.fromkeys(call.limits)


def _unrelated(watching: _Watching, seed: int) -> None:
    """Fail when a combination of what is seen is one of updates that may not be known."""
    call = watching.call
    R, N, d = watching.given.R, watching.given.N, len(watching.given.updates[0])
    call.by_relation = True
    rows: list[list[int]] = []
    names: list[str] = []
    lengths, needed = set[int](), 1
    while len(rows) < needed:
        updates = [sums.elements(R, d, seed, f"{len(rows)} {user}") for user in range(N)]
        vectors, _ = watching.seen(updates)
        if not rows:
            names = [f"vectors[{at}][{place}]" for at, vector in enumerate(vectors) for place in range(len(vector))]
            names = names[:_COLUMNS]
            if not names:
                break
            needed = len(names) + N * d + 2 + math.ceil(_BITS / (math.log2(R) if is_prime(R) else 1))
        flat = [value for vector in vectors for value in vector]
        lengths.add(len(flat))
        rows.append([*(value for row in updates for value in row), *(flat + [0] * len(names))[: len(names)]])
    allowed = RowModule(R, N * d, watching.allowed())
    found = [one for one in _relations(R, rows) if one[: N * d] not in allowed]
    if found:
        best = min(found, key=lambda one: (sum(map(bool, one[: N * d])), sum(map(bool, one))))
        lead = -next(filter(None, best))
        factor = pow(lead, -1, R) if math.gcd(lead, R) == 1 else 1
        best = tuple(value * factor % R for value in best)
        constant = sum(weight * value for weight, value in zip(best, rows[0], strict=True)) % R
        secrets = tuple(f"updates[{user}][{at}]" for user in range(N) for at in range(d))
        learned = tuple(-value % R for value in best[: N * d])
        server = "server" in watching.viewers
        leaked(Leak(R, watching.own, server, tuple(names), secrets, best[N * d :], learned, constant))
    call.transcript.clear()
    call.limits.append("combinations that are not affine, as of a generator's stream with its seed, are not looked for")
    if lengths - {len(names)}:
        most = f"{min(lengths)} to {max(lengths)}"
        call.limits.append(f"of views of {most} elements, the first {len(names)} were compared")


def _relations(R: int, rows: Sequence[Sequence[int]]) -> Sequence[Row]:
    """Return generators of the combinations of columns that are the same in all rows, modulo any R."""
    columns = list(zip(*rows, strict=True))
    later = max(len(rows) - 1, 0)
    differences = (
        [*(value - column[0] for value in column[1:]), *(int(at == other) for other in range(len(columns)))]
        for at, column in enumerate(columns)
    )
    return RowModule(R, later + len(columns), differences).vanishing(later)


@check("privacy/secagg.view/contrast", "ADP-43", examples=1)
def contrast(draw: Any, call: Caller) -> None:
    """What the server sees, and up to three users, looks alike, whichever users a sum comes from; at the moduli's ends.

    The updates of all users are moved in what the server sees.
    """
    watched, seed = _watched(draw, call), draw(st.integers(0, 2**32 - 1))
    order = draw(st.permutations(watched[0].given.contributors))
    least, most = (end(sum_moduli(call.caps, VIEW)) for end in (min, max))
    server, *users = watched
    rounds = [(least, server)] * (least < most) + [(most, one) for one in (server, server, *users)]
    for at, (R, watching) in enumerate(rounds):
        turned = [*order[at:], *order[:at]]
        _contrast(replace(watching, given=replace(watching.given, R=R)), turned, seed, 2 * len(rounds))
    call.limits[:] = dict.fromkeys(call.limits)


def _contrast(watching: _Watching, order: Sequence[int], seed: int, looks: int) -> None:
    """Compare rounds in which a sum comes from the first or the second half of an order of contributors.

    Viewers are in neither half, nor is one more if the others are odd in number. Who is not in the sum moves too.
    """
    given = watching.given
    others = [user for user in order if user not in watching.viewers]
    half = len(others) // 2
    if not half:
        return
    first = sorted([*others[:half], *(user for user in range(given.N) if user not in order)])
    second = sorted(others[half : 2 * half])
    vectors, strings = watching.seen(given.updates)
    names = [*(f"vectors[{at}]" for at in range(len(vectors))), *(f"strings[{at}]" for at in range(len(strings)))]
    if not names:
        return
    sizes = [len(sums.written(given.R, vector)) // 2 for vector in vectors] + [len(text) for text in strings]

    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        moved = [list(row) for row in given.updates]
        for user in first:
            moved[user] = [given.R // 2 * coin for coin in coins]
        for user in second:
            moved[user] = [given.R // 2 * (not coin) for coin in coins]
        came, rest = watching.seen(moved)
        parts = [bytes.fromhex(sums.written(given.R, vector)) for vector in came] + rest
        shape = sha256(repr([len(part) for part in parts]).encode()).digest()
        parts += [b""] * len(names)
        return [*(part[:size].ljust(size, b"\0") for part, size in zip(parts, sizes, strict=False)), shape]

    shown = [*names, "the lengths of all parts"]
    apart = f"the update of {named(first)} from that of {named(second)}"
    operation = COALITION if watching.T else VIEW
    hidden = Hidden(operation, len(given.updates[0]), shown, seen, (), look=_LOOK, looks=looks, apart=apart)
    demand_hidden(watching.call, hidden, seed)


@check("privacy/secagg.view/rounds", "ADP-46", examples=1)
def reused(draw: Any, call: Caller) -> None:
    """In hundreds of rounds of one process, no two vectors that come to the server have the same mask."""
    R, seed = max(sum_moduli(call.caps, VIEW)), draw(st.integers(0, 2**32 - 1))
    N, t = min(sum_rosters(call.caps, VIEW))
    d = math.ceil(_SURE / math.log2(R))
    watching = _Watching(call, Sum(R, N, t, ((0,) * d,) * N, neighbours.nobody(SUM_PHASES)), ("server",))
    call.by_relation = True
    met: dict[tuple[int, ...], tuple[int, int]] = {}
    asked: list[Any] = []
    for number in _played(call):
        updates = [sums.elements(R, d, seed, f"{number} {user}") for user in range(N)]
        vectors, _ = watching.seen(updates)
        asked += call.transcript
        flat = [value for vector in vectors for value in vector]
        starts = accumulate(map(len, vectors[:_COLUMNS]), initial=0)
        for (at, start), user in product(enumerate(starts), range(N)):
            mask = tuple((a - b) % R for a, b in zip(flat[start : start + d], updates[user], strict=False))
            before, other = met.setdefault((user, *mask), (number, at)) if len(mask) == d else (number, at)
            if before != number:
                call.transcript[:] = asked
                one, two = f"vectors[{other}] of round {before}", f"vectors[{at}] of round {number}"
                what = f"the update of user {user} in round {number} less that in round {before}"
                message = f"the server learns {what}: it is {two} less {one}, since both have the same mask"
                raise CheckFailed("leaked", message, details(what, [one, two]))
    call.transcript.clear()
    call.limits.append("of masks, those that come again in one process within these rounds are seen")


@check("secagg.coalition/viewers", "ADP-47", examples=10)
def viewers(draw: Any, call: Caller) -> None:
    """A coalition that is empty, too large, out of order, or not in the round is refused, and so is a wrong T."""
    given, T, joined = sums.together(draw, call.caps)
    N, t = given.N, given.t
    kinds: dict[str, tuple[Sum, dict[str, Any]]] = {
        **{f"T = {wrong}, t = {t}": (given, {"T": wrong, "viewers": [0]}) for wrong in (0, -1, t)},
        "there are no viewers": (given, {"viewers": []}),
        f"there are {T + 1} users and T = {T}": (given, {"viewers": list(range(T + 1))}),
        "the server is twice a viewer": (given, {"viewers": ["server"] * 2}),
        "the server is in front of a user": (given, {"viewers": ["server", 0]}),
        f"user {N} is a viewer and N = {N}": (given, {"viewers": [N]}),
        "user -1 is a viewer": (given, {"viewers": [-1]}),
    }
    if T > 1:
        kinds |= {f"viewers are {users}": (given, {"viewers": users}) for users in ([0, 0], [1, 0])}
    if t < N:
        gone = sums.dropping(draw, given, 1, SUM_PHASES)
        (user,) = (user for users in gone.drop.values() for user in users)
        kinds |= {f"user {user}, a viewer, drops out": (gone, {"viewers": [user]})}
    usual: dict[str, Any] = {"T": T, "viewers": joined}
    wrong = {why: asked.params(**(usual | changes)) for why, (asked, changes) in kinds.items()}
    call.each_refused(draw, COALITION, [(params, _WRONG, why) for why, params in wrong.items()])


@check("privacy/secagg.coalition", "ADP-48", applies=lambda caps: any(_joined(caps)), examples=1)
def coalition(draw: Any, call: Caller) -> None:
    """No combination of what the server and some users see is one of updates, but for sums and their own updates.

    A case tries all coalitions that leave two other users, with and without a dropout. For one of them, drawn, what it
    sees looks alike, whichever of the others a sum comes from.
    """
    seed, moduli = draw(st.integers(0, 2**32 - 1)), sum_moduli(call.caps, COALITION)
    R = max(filter(is_prime, moduli), default=min(moduli))  # of a prime, fewer rounds suffice
    watched: list[_Watching] = []
    for gone, (N, t, T) in _joined(call.caps):
        drop = neighbours.nobody(SUM_PHASES) | {SUM_PHASES[1]: [N - 1] * gone}
        given = Sum(R, N, t, ((0,),) * N, drop)
        joined = combinations(given.contributors, min(T, N - gone - 2))
        watched += [_Watching(call, given, (*users, "server"), T) for users in joined]
    one = watched[draw(st.integers(0, len(watched) - 1))]
    order = draw(st.permutations(one.given.contributors))
    for watching in watched:
        _unrelated(watching, seed)
    _contrast(replace(one, given=replace(one.given, R=max(moduli))), order, seed, 2)
    call.limits[:] = dict.fromkeys(call.limits)


def _joined(caps: Capabilities) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """Yield how many users drop out, none or one, with N, t and T: the fewest users of whom two or one may collude."""
    for gone in (0, 1):
        pairs = sum_rosters(caps, COALITION, gone)
        found = [(N, t, max(bounds(caps, N, t))) for N, t in pairs if N - gone >= 3]
        if found:
            yield gone, min(found, key=lambda one: (min(one[0] - gone - 2, one[2]) < 2, one[0], -one[2]))
