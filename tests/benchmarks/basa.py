"""What a visit to BASA costs.

A visit is the user's own part of it: its steps `request`, `fetch` and `upload`, with the boxes of all positions before.
What only a second visit to one epoch would find again is forgotten before each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.benchmarks.record import Aim, Benchmark, Side, Sides, peak, processor

from secagg_spec.crypto import attribute_boxes, pairing
from secagg_spec.crypto.boxes import PAIR, KeyRing, PositionKeys
from secagg_spec.crypto.caches import forget
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import stream
from secagg_spec.events import Event, Schedule
from secagg_spec.experiments.costs import attribute_ring
from secagg_spec.experiments.one_user import Alone, user_of_basa
from secagg_spec.protocols.basa.buffers import Dispatcher, sessions
from secagg_spec.protocols.basa.cores import PRESETS, SETTLE, VOID, Masks, Parameters, mask_update
from secagg_spec.protocols.basa.messages import PositionKey, PositionOffer
from secagg_spec.protocols.basa.runs import Run
from secagg_spec.simulate.visits import visits

SESSION, SEED = bytes(range(16)), b"bench"
ALL = "all"
"""In the sizes: every position of the buffer, one after the other."""
OPERATIONS = {
    "products of pairings": ("pairing_product",),
    "hashes to the curve": ("hash_attribute",),
    "points read and checked": ("read_point_1", "read_point_2"),
}
"""What a visit by attributes does, and the functions of `pairing` that do it."""


def parameters(K: int, d: int, *, S: int = 0, timeouts: str = SETTLE) -> Parameters:
    """Return those of the paper, with other sizes; the weight level is less where K is large."""
    c_g = 64 if K <= 20 else 16
    return replace(PRESETS["paper"], N=K + S, T=1, d=d, K=K, S=S, c_g=c_g, timeouts=timeouts)


# ------------------------------------------------------------------------------------------------------- one visit


@dataclass(frozen=True, eq=False)
class Visit:
    """A user alone at a position of a buffer."""

    alone: Alone

    def seconds(self) -> float:
        """Return the seconds of the processor that the steps of the user take."""
        forget()
        return self.alone.seconds()

    def boxes_only(self) -> None:
        """Do what the encryption does in the steps of the user."""
        offer, key = self.alone.mail
        assert isinstance(offer, PositionOffer)
        assert isinstance(key, PositionKey)
        session, at = self.alone.state.session, offer.position
        encryption = session.encryption
        encryption.check_published(session.epoch(0), offer.keys)
        encryption.check_key(session.epoch(0), offer.keys, (PAIR, at), key.key)
        for source, box in enumerate(session.boxes(offer.boxes)):
            encryption.open(session.address(0, source, source, at), offer.keys, key.key, box)
        sampled = self.alone.phases["upload"][encryption.samples]
        for target in session.targets(at):
            encryption.seal(session.address(0, at, at, target), offer.keys, bytes(32), sampled)


def visit(p: Parameters, ring: KeyRing, at: int) -> Visit:
    """Return the visit of the user at a position."""
    return Visit(user_of_basa(p, ring, at))


def _positions(K: int, position: int | str) -> list[int]:
    return list(range(K)) if position == ALL else [int(position)]


def _sum(sides: list[Side]) -> Side:
    return lambda: sum(side() for side in sides)


# ------------------------------------------------------------------------------------------------- two encryptions


def visits_in_both(K: int, d: int, position: int | str) -> Sides:
    """Take the whole visit with attributes, and with one key for each position."""
    p, at = parameters(K, d), _positions(K, position)
    return Sides.of(_sum([visit(p, ring, k).seconds for k in at]) for ring in (attribute_ring(), PositionKeys()))


def boxes_in_both(K: int, d: int, position: int | str) -> Sides:
    """Seal and open the boxes alone with attributes, and with one key for each position."""
    p, at = parameters(K, d), _positions(K, position)
    rings = (attribute_ring(), PositionKeys())
    return Sides.of(_sum([processor(visit(p, ring, k).boxes_only, forget) for k in at]) for ring in rings)


def first_visit(K: int, d: int, position: int) -> Sides:
    """Seal and open by attributes when the tables of the public key are still to be made, and later."""
    boxes = visit(parameters(K, d), attribute_ring(), position).boxes_only

    def nothing_known() -> None:
        forget()
        attribute_boxes._public.cache_clear()

    return Sides(processor(boxes, nothing_known), processor(boxes, forget))


def share_of_operation(K: int, d: int, position: int, operation: str) -> Sides:
    """Time what a visit by attributes spends on an operation, beside the whole visit."""
    one = visit(parameters(K, d), attribute_ring(), position)
    names = OPERATIONS[operation]

    def spent() -> float:
        with _watched(names) as times:
            one.seconds()
        return sum(times)

    return Sides(spent, one.seconds)


@contextmanager
def _watched(names: tuple[str, ...]) -> Iterator[list[float]]:
    """Time the calls of some functions of `pairing`."""
    times: list[float] = []
    right = {name: getattr(pairing, name) for name in names}
    for name, function in right.items():
        setattr(pairing, name, _timed(function, times))
    try:
        yield times
    finally:
        for name, function in right.items():
            setattr(pairing, name, function)


def _timed(right: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        result = right(*arguments)
        times.append(time.process_time() - start)
        return result

    return timed


# --------------------------------------------------------------------------------------------------- K and d


def larger_buffer(K: int, smaller: int, d: int) -> Sides:
    """Visit the middle position of a buffer, and of a smaller one."""
    return Sides.of(visit(parameters(size, d), PositionKeys(), size // 2).seconds for size in (K, smaller))


def longer_update(streams: int, d: int, shorter: int) -> Sides:
    """Mask an update, and a shorter one."""
    return Sides.of(processor(partial(_mask, length, streams)) for length in (d, shorter))


def memory_of_masking(d: int, streams: int, fewer: int) -> Sides:
    """Mask an update, the update and the result among what is held, with many streams and with few."""
    return Sides.of(peak(partial(_mask, d, count)) for count in (streams, fewer))


def _mask(d: int, count: int) -> object:
    p = parameters(10, d)
    streams = [stream(bytes([at]) * 32, p.ring, d) for at in range(count)]
    return mask_update(p, p.ring.zeros(d), 64, Masks(streams[1 : count // 2], streams[count // 2 :], streams[0]))


# -------------------------------------------------------------------------------------------------- repair, buffers


class Timed(Run):
    """A run that keeps the time of each step."""

    def __init__(self, p: Parameters) -> None:
        self.spent: list[tuple[str, int, float]] = []
        super().__init__(p, SeededSource(SEED, "run"), session=bytes(16), round=0)

    def _step(self, phase: str, party: int, **given: Any) -> None:
        start = time.process_time()
        super()._step(phase, party, **given)
        self.spent.append((phase, party, time.process_time() - start))


def user_of_profile(K: int, d: int, spare: int, position: int) -> Sides:
    """Visit a buffer under *settle*, with spare positions, and under *void* without."""
    profiles = (parameters(K, d, S=spare), parameters(K, d, timeouts=VOID))
    return Sides.of(visit(p, PositionKeys(), position).seconds for p in profiles)


def server_of_profile(K: int, d: int, spare: int, skipped: int) -> Sides:
    """Recover under *settle* with spare positions, of which some in the middle are skipped, and without."""
    return Sides.of(partial(_recovery, parameters(K, d, S=S), at) for S, at in ((spare, skipped), (0, 0)))


def _recovery(p: Parameters, skipped: int) -> float:
    """Return the time of the server in recover, with positions in the middle skipped."""
    run, zeros, middle = Timed(p), p.ring.zeros(p.d), p.K // 2
    for user in range(p.K + skipped):
        if middle <= user < middle + skipped:
            run.expire(user, 0, keyed=True)
        else:
            run.upload(user, zeros, 0, 0.5)
    run.close()
    return sum(spent for phase, _, spent in run.spent if phase == "recover")


def one_buffer_beside_many(users: int, K: int, d: int, buffers: int) -> Sides:
    """Let users come at once to one buffer and to several, in simulated time; a visit lasts as long as its steps do."""

    def through(count: int) -> float:
        return _through(users, count, lasts())

    def lasts() -> list[float]:
        run, p = Timed(parameters(K, d)), parameters(K, d)
        found = []
        for user in range(K):
            already = len(run.spent)
            run.upload(user, p.ring.zeros(d), 0, 0.5)
            found.append(sum(spent for _, _, spent in run.spent[already:]))
        return found

    return Sides(partial(through, 1), partial(through, buffers))


def _through(users: int, count: int, lasts: list[float]) -> float:
    """Return when all users are through that come at once; `lasts` are visits by position."""
    arrivals = Schedule(users, tuple(Event(0.0, "arrive", user) for user in range(users)))
    dispatcher = Dispatcher(sessions(SESSION, count))
    return max(one.ended for one in visits(dispatcher, arrivals, lambda user: lasts[user // count % len(lasts)]))


# ------------------------------------------------------------------------------------------------------ benchmarks

SHORT, TINY = {"K": 10, "d": 16}, {"K": 3, "d": 4}
LONG, SMALL = {"K": 10, "d": 100_000}, {"K": 4, "d": 10}
POSITIONS: dict[str, int | str] = {"all": ALL, "first": 0, "last": 9}
CHEAP = (
    "At least 40 times. Two thirds of a box for a position are X25519, one agreement a box and three keys: the ratio "
    "would stay below 45 if all else cost nothing."
)
BENCHMARKS = (
    *(
        Benchmark(
            id=f"basa-boxes-{name}",
            what="boxes are opened and sealed by attributes (CP-ABE)",
            beside="the same with one key for each position",
            sizes={**SHORT, "position": position},
            tiny={**TINY, "position": min(2, position) if isinstance(position, int) else ALL},
            sides=boxes_in_both,
            withdrawn=CHEAP if position == ALL else "",
            turns=9,
        )
        for name, position in POSITIONS.items()
    ),
    Benchmark(
        id="basa-visit-all",
        what="whole visits by attributes, at all positions",
        beside="the same with one key for each position",
        sizes={**SHORT, "position": ALL},
        tiny={**TINY, "position": ALL},
        sides=visits_in_both,
        withdrawn=f"{CHEAP} Signatures, hashes and masks, the same in both, halve what is left.",
        turns=9,
    ),
    Benchmark(
        id="basa-visit-last",
        what="a whole visit by attributes at the last position, the longest",
        beside="the same with one key for each position",
        sizes={**SHORT, "position": 9},
        tiny={**TINY, "position": 2},
        sides=visits_in_both,
        aim=Aim("at most", 0.25, of="what"),
        turns=9,
    ),
    Benchmark(
        id="basa-visit-first-time",
        what="boxes by attributes while the tables of the public key are still to be made",
        beside="the same later",
        sizes={**SHORT, "position": 9},
        tiny={**TINY, "position": 2},
        sides=first_visit,
        turns=9,
    ),
    *(
        Benchmark(
            id=f"basa-share-{operation.split()[0]}",
            what=f"{operation}, in a visit by attributes",
            beside="the whole visit",
            sizes={**SHORT, "position": 5, "operation": operation},
            tiny={**TINY, "position": 1, "operation": operation},
            sides=share_of_operation,
            turns=9,
        )
        for operation in OPERATIONS
    ),
    Benchmark(
        id="basa-buffer",
        what="a visit to a buffer of K",
        beside="a visit to a buffer of half of that",
        sizes={"K": 200, "smaller": 100, "d": 1000},
        tiny={"K": 6, "smaller": 3, "d": 4},
        sides=larger_buffer,
        aim=Aim("at most", 2),
        turns=9,
    ),
    Benchmark(
        id="basa-update",
        what="an update of d elements is masked",
        beside="one of a tenth as many is",
        sizes={"streams": 10, "d": 10**6, "shorter": 10**5},
        tiny={"streams": 4, "d": 100, "shorter": 10},
        sides=longer_update,
    ),
    Benchmark(
        id="basa-memory",
        what="what masking holds with many streams, update and result among it",
        beside="the same with fewer",
        sizes={"d": 10**6, "streams": 40, "fewer": 10},
        tiny={"d": 10, "streams": 8, "fewer": 4},
        sides=memory_of_masking,
        measures="memory",
        turns=1,
    ),
    *(
        Benchmark(
            id=f"basa-settle-user-{spare}",
            what=f"a user in settle, with {spare or 'no'} spare positions",
            beside="a user in void",
            sizes={**LONG, "spare": spare, "position": 5},
            tiny={**SMALL, "spare": spare, "position": 1},
            sides=user_of_profile,
            turns=9,
        )
        for spare in (0, 2)
    ),
    *(
        Benchmark(
            id=f"basa-settle-server-{name}",
            what=f"the server recovers, two spare positions {words}",
            beside="the server recovers, without spare positions",
            sizes={**LONG, "spare": 2, "skipped": skipped},
            tiny={**SMALL, "spare": 2, "skipped": skipped},
            sides=server_of_profile,
        )
        for name, words, skipped in (("unused", "unused", 0), ("skipped", "skipped in the middle", 2))
    ),
    *(
        Benchmark(
            id=f"basa-buffers-{buffers}",
            what="users who come at once are through one buffer",
            beside=f"they are through {buffers} buffers",
            sizes={"users": 64, **LONG, "buffers": buffers},
            tiny={"users": 6, **SMALL, "buffers": buffers},
            sides=one_buffer_beside_many,
            turns=3,
        )
        for buffers in (2, 4, 8)
    ),
)
