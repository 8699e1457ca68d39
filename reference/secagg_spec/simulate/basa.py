"""``secagg-spec simulate basa``: users pass a buffer of BASA one after another, and some of them time out."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import DEFAULT_PRIME
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.attribute_boxes import key_ring
from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.crypto.entropy import SeededSource, draw_rounding, draw_scalars
from secagg_spec.errors import ParameterError, TooFewSurvivors
from secagg_spec.events import Event, Schedule
from secagg_spec.protocols.basa.buffers import Dispatcher, sessions
from secagg_spec.protocols.basa.cores import SETTLE, TIMEOUTS, Parameters, encode_update
from secagg_spec.protocols.basa.runs import Run
from secagg_spec.protocols.basa.server import Recovered
from secagg_spec.simulate.inputs import refuse_large, seed_bytes
from secagg_spec.simulate.narration import counted, shown, traffic, users_in_words
from secagg_spec.simulate.visits import ARRIVE, visits
from secagg_spec.terminal import painted

DEFAULTS = {"users": "8, or as many as the other options need"}
ENCRYPTIONS = ("per-position", "cp-abe")
BEFORE, KEY, LATE = "before", "key", "late"
_WHEN = {
    BEFORE: "times out before it has the key",
    KEY: "has the key and times out",
    LATE: "has the key, times out, and uploads late",
}
_LEVEL = 2**16
_WEIGHTS = 64
_OLDEST = 10
_DRAWN = 3


def add_options(parser: Any) -> None:
    """Add the options that only this protocol has."""
    add = parser.add_argument
    add("--buffer", type=int, default=6, metavar="K", help="updates in a full buffer (6)")
    spares = "spare positions (one for each --timeout that takes a position; 0, and no other, with --timeouts void)"
    add("--spares", type=int, metavar="S", help=spares)
    add(
        "--timeout",
        action="append",
        default=[],
        metavar="POSITION[:WHEN]",
        help="the user at a position times out: before it has the key (3:before), with the key (3:key, or 3), or "
        "it uploads late (3:late); may be given several times",
    )
    add(
        "--timeouts",
        choices=TIMEOUTS,
        default=SETTLE,
        help="what a timeout after the key does: the position is skipped, or the epoch is void (settle)",
    )
    add(
        "--encryption",
        choices=ENCRYPTIONS,
        default=ENCRYPTIONS[0],
        help="how boxes are sealed: to one key for each position, or to attributes (per-position)",
    )
    add("--buffers", type=int, default=1, metavar="n", help="number of buffers; all users come at once (1)")
    add("--colluders", type=int, metavar="T", help="users that may collude with the server (K // 3, at least 1)")
    add("--modulus", type=int, default=DEFAULT_PRIME, metavar="R", help="the modulus of updates (2**32 - 5)")
    parser.set_defaults(users=None)


def main(options: argparse.Namespace) -> int:
    """Run the command. Exit code 0: every buffer gave the right sum; 1: an epoch ended without one."""
    fates, count = _fates(options.timeout), validate.integer("buffers", options.buffers, 1, 64)
    p = _parameters(options, fates, count)
    seed = seed_bytes(options.seed)
    rings = {"per-position": _position_keys, "cp-abe": _attribute_keys}
    print(_heading(p, options.encryption, fates))
    crowd = Crowd(p, seed)
    runs = [
        Run(p, SeededSource(seed, f"buffer {at}"), session=session, round=_OLDEST, ring=rings[options.encryption](seed))
        for at, session in enumerate(sessions(seed.ljust(16, b"\0"), count))
    ]
    if count == 1:
        return _pass(runs[0], crowd, list(range(p.N)), fates)
    return _side_by_side(runs, crowd, p, fates)


def _position_keys(seed: bytes) -> KeyRing:
    return PositionKeys()


def _attribute_keys(seed: bytes) -> KeyRing:
    alpha, beta = draw_scalars(SeededSource(seed, "master key"), 2)
    return key_ring(alpha=alpha, beta=beta)


def _fates(given: Sequence[str]) -> dict[int, str]:
    """Return the fates of the users at some positions."""
    fates: dict[int, str] = {}
    for entry in given:
        position, colon, when = entry.partition(":")
        if not (position.isascii() and position.isdecimal() and len(position) <= 5) or (colon and when not in _WHEN):
            raise ParameterError("--timeout", entry, "POSITION, or POSITION:before, :key or :late, as in 3:late")
        if int(position) in fates:
            raise ParameterError("--timeout", entry, "one for each position")
        fates[int(position)] = when or KEY
    return fates


def _parameters(options: argparse.Namespace, fates: Mapping[int, str], buffers: int) -> Parameters:
    K = validate.integer("buffer", options.buffer, 3, 2**16)
    taken = sum(fate != BEFORE for fate in fates.values()) if options.timeouts == SETTLE else 0
    S = taken if options.spares is None else options.spares
    T = max(1, K // 3) if options.colluders is None else validate.integer("colluders", options.colluders, 1, K - 2)
    if S and options.timeouts != SETTLE:
        raise ParameterError("--spares", S, "0 with --timeouts void: a timeout after the key voids the epoch")
    needed = buffers * (K + validate.integer("spares", S, 0, 2**16) + sum(f == BEFORE for f in fates.values()))
    N = max(needed, 8) if options.users is None else validate.integer("users", options.users, needed)
    refuse_large(
        "users * length + 32 * positions**2 * buffers",
        N * validate.integer("length", options.length, 1) + 32 * (K + S) ** 2 * buffers,
        "a smaller --buffer, fewer --buffers, ",
    )
    beyond = [at for at in fates if at >= K + S]
    if beyond:
        raise ParameterError("--timeout", beyond[0], f"a position in [0, {K + S}): K = {K}, S = {S}")
    for at in sorted(fates):
        if at - sum(other < at and fate != BEFORE for other, fate in fates.items()) >= K:
            raise ParameterError("--timeout", at, f"a position that is reached before the buffer has K = {K} updates")
    return Parameters(
        R=options.modulus, N=N, T=T, d=options.length, K=K, S=S, c_l=_level(options.modulus, K), c_g=_WEIGHTS,
        tau_max=_OLDEST, staleness=Staleness.polynomial(1), timeouts=options.timeouts,
    )  # fmt: skip


def _level(modulus: int, K: int) -> int:
    """Return the largest power of two up to 2**16 at which numbers in [-1, 1] fit the modulus."""
    bound = (validate.integer("modulus", modulus, 2, 2**32) - 1) // 2 // (K * _WEIGHTS)
    if bound < 1:
        raise ParameterError("modulus", modulus, f"at least {2 * K * _WEIGHTS + 1}, to carry weights up to {_WEIGHTS}")
    return min(_LEVEL, 1 << (bound - 1).bit_length() - 1) if bound > 1 else 1


# ------------------------------------------------------------------------------------------------- who comes with what


@dataclass(frozen=True, eq=False)
class Bag:
    """What a user brings: reals in [-1, 1], the update made from them, its stamp, and the draw for its weight."""

    reals: RealArray
    update: UintArray
    stamp: int
    rounding: float


class Crowd:
    """The users in the order in which they finish training; each brings different data."""

    def __init__(self, parameters: Parameters, seed: bytes) -> None:
        self.parameters, self.seed = parameters, seed
        shuffled = draw_rounding(SeededSource(seed, "who comes when"), parameters.N)
        self.order = [int(user) for user in np.argsort(shuffled, kind="stable")]

    def bag(self, user: int, epoch: int) -> Bag:
        """Return what a user brings to an epoch."""
        p, source = self.parameters, SeededSource(self.seed, f"user {user}")
        reals = np.round(draw_rounding(source, p.d) * 2 - 1, 3)
        update = encode_update(p, reals, draw_rounding(source, p.d))
        age, rounding = draw_rounding(source, 2)
        return Bag(reals, update, epoch - int(age * (_DRAWN + 1)), float(rounding))


# ------------------------------------------------------------------------------------------------- one buffer


@dataclass
class Printed:
    """What was printed about one buffer: its users with their bags, and the positions that became free again."""

    bags: dict[int, Bag] = field(default_factory=dict)
    freed: set[int] = field(default_factory=set)


def _pass(run: Run, crowd: Crowd, turns: Sequence[int], fates: Mapping[int, str]) -> int:
    """Let users pass a buffer until it is full or void, and print each step; return 0 for a right sum, 1 for none."""
    printed = Printed()
    print("\n".join(_opening(run)))
    for turn in turns:
        if run.server.phase == "idle" or _full(run):
            break
        print(_visit(run, crowd, crowd.order[turn], fates, printed))
    return _conclude(run, printed)


def _full(run: Run) -> bool:
    p, state = run.parameters, run.server
    return len(state.entries) == p.K or len(state.places) == p.positions


def _opening(run: Run) -> list[str]:
    count, size = len(run.server.keys) // 32, len(run.server.keys)
    keys = f"{count} public keys" if run.server.session.encryption.name == "per-position" else "one public key"
    users = f"{'user':>{_width(run.parameters)}}"
    return [
        f"\nepoch {run.server.epoch}: the authority publishes and signs {keys}, {size:,} bytes",
        f"  position  {users}  staleness  weight  opens  seals  boxes that wait, by position",
    ]


def _width(p: Parameters) -> int:
    """Return the width of the column of users."""
    return max(4, len(str(p.N - 1)))


def _visit(run: Run, crowd: Crowd, user: int, fates: Mapping[int, str], printed: Printed) -> str:
    """Let one user pass, and return the line about the visit."""
    position, epoch = len(run.server.places), run.server.epoch
    assert epoch is not None
    seen = {entry.position for entry in run.server.entries}
    bag, fate = crowd.bag(user, epoch), fates.get(position)
    if fate == BEFORE and position in printed.freed:
        fate = None
    if fate == LATE:
        run.late(user, bag.update, bag.stamp, bag.rounding)
    elif fate is not None:
        printed.freed.add(position)
        run.expire(user, bag.stamp, keyed=fate == KEY)
    else:
        printed.bags[user] = bag
        run.upload(user, bag.update, bag.stamp, bag.rounding)
    weight = str(run.server.entries[-1].weight) if fate is None else "-"
    sealed = run.parameters.positions - 1 - position + run.parameters.settle
    opens, seals = (str(len(seen)), str(sealed)) if fate in (None, LATE) else ("-", "-")
    what = _waiting(run) if fate is None else f"{_WHEN[fate]}: {_became(run, fate)}"
    who = f"{position:8}  {user:{_width(run.parameters)}}"
    return f"  {who}  {epoch - bag.stamp:9}  {weight:>6}  {opens:>5}  {seals:>5}  {what}"


def _became(run: Run, fate: str) -> str:
    if fate == BEFORE:
        return "the position is free again"
    if run.server.phase == "idle":
        return "the epoch is void"
    return "the server refuses it, the position is skipped" if fate == LATE else "the position is skipped"


def _waiting(run: Run) -> str:
    """Return the number of waiting boxes at each later position."""
    p, state = run.parameters, run.server
    settled, width = len(state.places), len(str(p.K))
    seen = ["."] * settled + [str(len(state.entries))] * (p.positions - settled)
    return " ".join(f"{box:>{width}}" for box in seen)


def _conclude(run: Run, printed: Printed) -> int:
    p = run.parameters
    if run.server.phase == "idle":
        lost = len(run.outcomes[-1].entries)
        waited = "the update that waited is" if lost == 1 else f"{lost} updates that waited are"
        print("\n".join(_failed(f"{waited} lost", "no user that times out with the key, or with --timeouts settle")))
        return 1
    try:
        recovered = run.close()
    except TooFewSurvivors as error:
        run.abandon()
        more = "fewer timeouts, or spare positions (--spares)"
        print("\n".join(_failed(f"the authority does not close it: {error}", more)))
        return 1
    print("\n".join(_closing(run, recovered)))
    print("\n".join(_sums(p, recovered, printed.bags)))
    return 0


def _failed(why: str, instead: str) -> list[str]:
    """Return the last lines of an epoch without a sum."""
    said = painted(f"The epoch ends without a sum: {why}.", "bad")
    return ["", said, f"With {instead}, it can end well."]


def _closing(run: Run, done: Recovered) -> list[str]:
    p, accepted = run.parameters, {entry.position for entry in done.entries}
    others = sorted(set(range(p.positions)) - accepted)
    if not p.settle:
        return ["\nclose: the authority ends the epoch, and releases nothing", *traffic(run.transcript)]
    s = "s" * (len(others) > 1)
    pairs = f", and the pair key{s} of position{s} {', '.join(map(str, others))}" if others else ""
    left = counted(sum(i < j for i in accepted for j in others), "pair box", "pair boxes")
    return [
        f"\nclose: the authority releases the self keys of {len(accepted)} positions{pairs}",
        f"  the server opens {len(accepted)} self boxes and {left}, and removes what they mask",
        *traffic(run.transcript),
    ]


def _sums(p: Parameters, done: Recovered, bags: Mapping[int, Bag]) -> list[str]:
    """Compare the sum with that of the updates, and the average with that of the real numbers."""
    weights = [entry.weight for entry in done.entries]
    chosen = [bags[entry.user] for entry in done.entries]
    terms = [w * p.ring.decode_signed(bag.update) for w, bag in zip(weights, chosen, strict=True)]
    plain = p.ring.encode_signed(np.sum(terms, axis=0))
    real = sum((w * bag.reals for w, bag in zip(weights, chosen, strict=True)), np.zeros(p.d)) / sum(weights)
    right = int((plain == done.sum).sum())
    if right != p.d:
        raise AssertionError("the epoch did not give the plain sum")
    equal = f"{right} of {p.d} elements equal the plain one"
    apart = f"at most {np.abs(done.average - real).max():.2g} apart (1/c_l = {1 / p.c_l:.2g})"
    return [
        f"\nsum over {users_in_words([entry.user for entry in done.entries])}, modulo R: {shown(done.sum)}",
        f"over c_l times {sum(weights)}:   {shown(done.average)}",
        f"of the real updates: {shown(real)}, {apart}",
        "",
        painted(
            f"The server has the weighted sum of {counted(len(chosen), 'user')}, and it is right: {equal}.", "good"
        ),
        "What the server and colluders learn beyond it: secagg-spec privacy basa",
    ]


# ------------------------------------------------------------------------------------------------- several buffers


def _side_by_side(runs: Sequence[Run], crowd: Crowd, p: Parameters, fates: Mapping[int, str]) -> int:
    """Let all users come to several buffers at once; print who was where, and the waiting times."""
    alone = list(visits(Dispatcher([run.server.session.id for run in runs[:1]]), _at_once(crowd), lambda user: 1.0))
    spread = list(visits(Dispatcher([run.server.session.id for run in runs]), _at_once(crowd), lambda user: 1.0))
    code = 0
    for at, run in enumerate(runs):
        turns = [crowd.order.index(v.user) for v in spread if v.buffer == at]
        print(f"\nbuffer {at}, session {run.server.session.id.hex()}:")
        code = max(code, _pass(run, crowd, turns, fates))
    print(f"\nall {p.N} users come at once, and a visit takes one unit of time:")
    for name, passed in (("one buffer", alone), (f"{len(runs)} buffers", spread)):
        wait, last = np.mean([visit.began - visit.came for visit in passed]), max(visit.ended for visit in passed)
        print(f"  {name:>10}: a user waits {wait:.2f} on average, the last one leaves at {last:g}")
    return code


def _at_once(crowd: Crowd) -> Schedule:
    return Schedule(crowd.parameters.N, tuple(Event(0.0, ARRIVE, user) for user in crowd.order))


# ------------------------------------------------------------------------------------------------- printed text


def _heading(p: Parameters, encryption: str, fates: Mapping[int, str]) -> str:
    rule = (
        "a position whose user times out with the key is skipped; updates have masks of their own"
        if p.settle
        else "a timeout after the key was given out voids the epoch"
    )
    boxes = {
        "per-position": "to one X25519 key for each position",
        "cp-abe": "to attributes (BSW07 over BLS12-381)",
    }
    listed = "; ".join(f"{at} {_WHEN[when]}" for at, when in sorted(fates.items())) or "none"
    spares = f"S = {counted(p.S, 'spare position')}"
    lines = [
        f"BASA: K = {p.K} updates in a full buffer, {spares}; N = {p.N} users, T = {p.T} may collude",
        f"R = {p.R}, updates of d = {p.d} elements at level c_l = {p.c_l}, weights at level c_g = {p.c_g}",
        f"{p.timeouts}: {rule}",
        f"boxes are sealed {boxes[encryption]}; keys, seeds and inputs from the seed",
        f"timeouts by position: {listed}",
    ]
    return "\n".join(lines)
