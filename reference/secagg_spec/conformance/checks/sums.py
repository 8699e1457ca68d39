"""Checks of sums of integers by any protocol, and of what each party sees (spec/adapter.md, section 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import is_prime
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.plain import counted
from secagg_spec.conformance.cases import neighbours, sums
from secagg_spec.conformance.cases.neighbours import MOST_SUMMED, SUM, VIEW, sum_moduli, sum_rosters
from secagg_spec.conformance.cases.requests import place_of
from secagg_spec.conformance.cases.sums import Sum
from secagg_spec.conformance.checks.base import (
    BAD_PARAM,
    LENGTH,
    NONCANONICAL,
    OUTSIDE,
    TOO_FEW,
    TWICE,
    Caller,
    CheckFailed,
    NotExpressible,
    check,
    fail,
)
from secagg_spec.conformance.checks.outside_hiding import Hidden, demand_hidden
from secagg_spec.conformance.checks.outside_probes import leaked
from secagg_spec.conformance.outside.leaks import Leak
from secagg_spec.conformance.sdk.secagg_adapter import SUM_PHASES, Reject, element_bytes, unpack
from secagg_spec.conformance.sessions.choices import among
from secagg_spec.privacy.howell import Row, RowModule

_WRONG = BAD_PARAM | TOO_FEW | LENGTH | NONCANONICAL | OUTSIDE | TWICE
_BITS = 60
"""No false alarm but with a probability of 2**-60: so many more rounds are played than there are unknowns."""
_COLUMNS = 200
"""The most elements of a view that are compared together."""
_LOOK = 96
"""Answers before a first look at a difference: some 48 of each kind, which suffice where all of them differ."""


def _spares(caps: Capabilities) -> bool:
    return bool(sum_rosters(caps, SUM, 1))


@check("secagg.sum/exact", "ADP-41", operations=(SUM,), examples=40)
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
    if result.get("contributors") != given.contributors:
        got, want = result.get("contributors"), given.contributors
        raise CheckFailed("wrong_value", f"contributors are {got}, must be {want}", want)
    got = _elements(given.R, result.get("sum"), "sum")
    if got != given.total:
        fail(f"the sum modulo {given.R} is {got}, must be {given.total}", [str(value) for value in given.total])


def _elements(R: int, text: Any, what: str) -> list[int]:
    try:
        return unpack(text, element_bytes(R))
    except Reject as reject:
        raise CheckFailed("protocol", f"{what}: {reject}") from None


@check("secagg.sum/too-few", "ADP-45", operations=(SUM,), examples=25)
def too_few(draw: Any, call: Caller) -> None:
    """A round in which fewer than t users are left fails with a rejection."""
    given = sums.drawn(draw, call.caps)
    left = draw(st.integers(0, given.t - 1))
    given = sums.dropping(draw, given, given.N - left, (draw(among(SUM_PHASES)),))
    are = counted(left, "user is", "users are")
    call.refused(SUM, given.params(), TOO_FEW, f"{are} left and t = {given.t} are needed")


@check("secagg.sum/wrong", "ADP-42", operations=(SUM,), examples=10)
def wrong(draw: Any, call: Caller) -> None:
    """A modulus, a number of users or a threshold that the text forbids is refused, and so are wrong updates.

    A case asks for all of them, so that even a short run leaves none out; which comes first is drawn.
    """
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
    whys = list(kinds)
    first = draw(st.integers(0, len(whys) - 1))
    answered = 0
    for why in (*whys[first:], *whys[:first]):
        call.transcript.clear()
        with suppress(NotExpressible):
            call.refused(SUM, given.params(**kinds[why]), _WRONG, why)
            answered += 1
    if not answered:
        raise NotExpressible


@check("secagg.view/viewer", "ADP-42", operations=(VIEW,), examples=10)
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


# ------------------------------------------------------------------------------------------------ what a party sees


@dataclass(frozen=True)
class _Watching:
    """Rounds that one party sees; each update of a round may be another one."""

    call: Caller
    given: Sum
    viewer: str | int

    def seen(self, updates: Sequence[Sequence[int]]) -> tuple[list[list[int]], list[bytes]]:
        """Play a round with these updates, and return what the party sees: vectors, and strings."""
        self.call.transcript.clear()
        given = replace(self.given, updates=tuple(map(tuple, updates)))
        result = self.call.result(VIEW, given.params(viewer=self.viewer))
        vectors, strings = result.get("vectors"), result.get("strings")
        if not isinstance(vectors, list) or not isinstance(strings, list):
            raise CheckFailed("protocol", f"{VIEW}: the result has no lists 'vectors' and 'strings'")
        try:
            data = [bytes.fromhex(text) for text in strings]
        except (TypeError, ValueError) as error:
            raise CheckFailed("protocol", f"{VIEW}: strings are not hex digits: {error}") from None
        return [_elements(given.R, text, f"vectors[{at}]") for at, text in enumerate(vectors)], data

    def allowed(self) -> Iterator[list[int]]:
        """Yield what the party may know: the sums of each element over the contributors, and its own update."""
        d = len(self.given.updates[0])
        own = [self.viewer] if isinstance(self.viewer, int) else []
        for users in (self.given.contributors, own):
            for place in range(d):
                yield [int(user in users and at == place) for user in range(self.given.N) for at in range(d)]


def _watching(draw: Any, call: Caller) -> _Watching:
    """Draw a round of the fewest users of which three send updates, and who watches it."""
    pairs = [pair for pair in sum_rosters(call.caps, VIEW) if pair[0] >= 3] or sum_rosters(call.caps, VIEW)
    spare = [pair for pair in pairs if pair[1] < pair[0] > 3]
    dropping = draw(st.booleans()) and bool(spare)
    N, t = min(spare) if dropping else min(pairs)
    drop = neighbours.nobody(SUM_PHASES)
    if dropping:
        drop[draw(among(SUM_PHASES[1:]))].append(N - 1)
    R = draw(among(tuple(sum_moduli(call.caps, VIEW))))
    return _Watching(call, Sum(R, N, t, ((0, 0),) * N, drop), draw(among(("server", 0))))


@check("privacy/secagg.view", "ADP-43", operations=(VIEW,), examples=4)
def view(draw: Any, call: Caller) -> None:
    """No combination of what a party sees is a combination of updates, but for sums and its own update."""
    watching, seed = _watching(draw, call), draw(st.integers(0, 2**32 - 1))
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
        own = (watching.viewer,) if isinstance(watching.viewer, int) else ()
        secrets = tuple(f"updates[{user}][{at}]" for user in range(N) for at in range(d))
        learned = tuple(-value % R for value in best[: N * d])
        leaked(Leak(R, own, not own, tuple(names), secrets, best[N * d :], learned, constant))
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


@check("privacy/secagg.view/contrast", "ADP-43", operations=(VIEW,), examples=1)
def contrast(draw: Any, call: Caller) -> None:
    """What the server sees, and a user, looks alike, whichever users a sum comes from; at the ends of the moduli."""
    drawn, seed = _watching(draw, call), draw(st.integers(0, 2**32 - 1))
    moduli = sum_moduli(call.caps, VIEW)
    rounds: list[tuple[int, str | int]] = [(R, "server") for R in sorted({min(moduli), max(moduli)})]
    rounds.append((max(moduli), 0))
    for R, viewer in rounds:
        _contrast(replace(drawn, given=replace(drawn.given, R=R), viewer=viewer), seed, 2 * len(rounds))
    call.limits[:] = dict.fromkeys(call.limits)


def _contrast(watching: _Watching, seed: int, looks: int) -> None:
    """Compare rounds in which a sum comes from one or the other of two users, neither of whom is the viewer."""
    given = watching.given
    others = [user for user in given.contributors if user != watching.viewer]
    if len(others) < 2:
        return
    first, second = others[:2]
    vectors, strings = watching.seen(given.updates)
    names = [*(f"vectors[{at}]" for at in range(len(vectors))), *(f"strings[{at}]" for at in range(len(strings)))]
    if not names:
        return
    sizes = [len(sums.written(given.R, vector)) // 2 for vector in vectors] + [len(text) for text in strings]

    def seen(coins: Sequence[bool], seed: int) -> list[bytes]:
        moved = [list(row) for row in given.updates]
        moved[first] = [given.R // 2 * coin for coin in coins]
        moved[second] = [given.R // 2 * (not coin) for coin in coins]
        came, others = watching.seen(moved)
        parts = [bytes.fromhex(sums.written(given.R, vector)) for vector in came] + others
        shape = sha256(repr([len(part) for part in parts]).encode()).digest()
        parts += [b""] * len(names)
        return [*(part[:size].ljust(size, b"\0") for part, size in zip(parts, sizes, strict=False)), shape]

    shown = [*names, "the lengths of all parts"]
    demand_hidden(watching.call, Hidden(VIEW, len(given.updates[0]), shown, seen, (), look=_LOOK, looks=looks), seed)
