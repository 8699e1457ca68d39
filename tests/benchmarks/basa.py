"""What a visit to BASA costs, as ratios within one run: ``make bench``; ``--plot FILE`` draws the time of a user.

All times are seconds of the processor, the least of several runs. A visit is the user's own part of it: its steps
`request`, `fetch` and `upload`, at the middle position, with the boxes of all positions before.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from secagg_spec.crypto import attribute_boxes, keys, pairing
from secagg_spec.crypto.boxes import PAIR, KeyRing, PositionKeys
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import pieces
from secagg_spec.events import Event, Schedule
from secagg_spec.experiments.costs import attribute_ring
from secagg_spec.experiments.one_user import Alone, user_of_basa
from secagg_spec.protocols.basa_buffers import Dispatcher, sessions
from secagg_spec.protocols.basa_cores import PRESETS, SETTLE, VOID, Masks, Parameters, mask_update
from secagg_spec.protocols.basa_messages import PositionKey, PositionOffer
from secagg_spec.protocols.basa_runs import Run
from secagg_spec.simulate.visits import visits

SESSION, SEED = bytes(range(16)), b"bench"
DIMENSIONS = (100_000, 500_000, 1_000_000)
SIZES = (10, 25, 50, 100, 150, 200)


def main() -> None:
    """Print all figures, or draw one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the time of a user against K into an SVG file")
    options = parser.parse_args()
    if options.plot is not None:
        plot(options.plot)
        return
    for part in (encryptions, operations, size_of_buffer, length_of_update, repair, side_by_side):
        part()
        print()


def parameters(K: int, d: int, *, S: int = 0, timeouts: str = SETTLE) -> Parameters:
    """Return those of the paper, with other sizes; the weight level is less where K is large."""
    c_g = 64 if K <= 20 else 16
    return replace(PRESETS["paper"], N=K + S, T=1, d=d, K=K, S=S, c_g=c_g, timeouts=timeouts)


# ------------------------------------------------------------------------------------------------------- one visit


@dataclass(frozen=True, eq=False)
class Visit:
    """A user alone at a position of a buffer."""

    alone: Alone

    def take(self) -> None:
        """Take the steps of the user."""
        self.alone.seconds()

    def boxes_only(self) -> None:
        """Do what the encryption does in these steps."""
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


def seconds(*actions: Callable[[], object], repeats: int = 7) -> list[float]:
    """Return the least time of each action; they take turns, so that a slow moment of the machine meets all."""
    runs = [[_once(action) for action in actions] for _ in range(repeats)]
    return [min(times) for times in zip(*runs, strict=True)]


def _once(action: Callable[[], object]) -> float:
    """Return the time of an action; what only a second visit to one epoch would find again is forgotten."""
    _forget()
    start = time.process_time()
    action()
    return time.process_time() - start


def _forget() -> None:
    for kept in (pairing.hash_attribute, attribute_boxes._secret, keys._private_key):
        kept.cache_clear()


# ------------------------------------------------------------------------------------------------- two encryptions


def encryptions() -> None:
    """Compare the two ways to seal, at every position of a buffer of 10."""
    p = parameters(10, 16)
    print(f"a visit, K = {p.K}, S = 0, d = {p.d}, settle: per position beside CP-ABE")
    print("  position   per position: visit, boxes    CP-ABE: visit, boxes      ratio: visit, boxes")
    rings, means = (PositionKeys(), attribute_ring()), []
    for at in range(p.positions):
        both = [visit(p, ring, at) for ring in rings]
        times = seconds(*(action for one in both for action in (one.take, one.boxes_only)))
        means.append(times)
        _row(str(at), times)
    mean = np.mean(means, axis=0).tolist()
    _row("mean", mean)
    most = max(row[2] for row in means)
    print(f"  boxes by attributes cost {mean[3] / mean[1]:.0f} times those per position (the aim is 40 at least)")
    plain, first = seconds(both[0].boxes_only, partial(_first, both[1]))
    print(
        f"  at the last position in a first visit, which makes the tables of the public key: {first / plain:.0f} times"
    )
    print(f"  the longest visit by attributes takes {most * 1000:.0f} ms of one core (the aim is below 250)")


def _first(one: Visit) -> None:
    attribute_boxes._public.cache_clear()
    one.boxes_only()


def _row(name: str, times: list[float]) -> None:
    a, b, c, d = times
    print(
        f"  {name:>8}   {a * 1e3:11.2f} ms {b * 1e3:9.2f} ms {c * 1e3:11.1f} ms {d * 1e3:8.1f} ms"
        f" {c / a:12.1f} {d / b:9.1f}"
    )


def operations() -> None:
    """Say which operations the time of a visit by attributes goes to."""
    one = visit(parameters(10, 16), attribute_ring(), 5)
    (whole,) = seconds(one.take)
    _forget()
    count, spent = Counter[str](), Counter[str]()
    with _watched(count, spent):
        one.take()
    print(f"a visit by attributes, K = 10, position 5: {whole * 1000:.0f} ms, of which")
    for name, used in spent.most_common():
        print(f"  {count[name]:3} {name}: {used * 1e3:.1f} ms, {used / whole:.0%}")


@contextmanager
def _watched(count: Counter[str], spent: Counter[str]) -> Iterator[None]:
    """Count and time what is done with points."""
    watched = {
        "pairing_product": "products of 3 pairings",
        "power_1": "powers of a hash in G_1",
        "hash_attribute": "hashes to the curve",
        "read_point_1": "points of G_1 read and checked",
        "read_point_2": "points of G_2 read and checked",
    }
    right = {name: getattr(pairing, name) for name in watched}
    power = pairing.Fixed.power
    for name, words in watched.items():
        setattr(pairing, name, _timed(right[name], lambda *_, words=words: words, count, spent))
    groups = {"G1Point": "powers of h in G_1", "G2Point": "powers of g_2", "GT": "powers of the target element"}
    kind: Callable[..., str] = lambda fixed, *_: groups[type(fixed._rows[0][0]).__name__]  # noqa: E731
    pairing.Fixed.power = _timed(power, kind, count, spent)  # type: ignore[method-assign]
    try:
        yield
    finally:
        pairing.Fixed.power = power  # type: ignore[method-assign]
        for name, function in right.items():
            setattr(pairing, name, function)


def _timed(
    right: Callable[..., Any], named: Callable[..., str], count: Counter[str], spent: Counter[str]
) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        start = time.process_time()
        result = right(*arguments)
        name = named(*arguments)
        count[name] += 1
        spent[name] += time.process_time() - start  # type: ignore[assignment]
        return result

    timed.cache_clear = getattr(right, "cache_clear", None)  # type: ignore[attr-defined]
    return timed


# --------------------------------------------------------------------------------------------------- K and d


def size_of_buffer() -> None:
    """Fit a line through the time of a user against K."""
    times = user_times(1000)
    slope, intercept, fit = line(SIZES, times)
    print("a visit per position, d = 1,000, at the middle position")
    print("  " + ", ".join(f"K = {K}: {spent * 1e3:.1f} ms" for K, spent in zip(SIZES, times, strict=True)))
    print(f"  line: {slope * 1e3:.3f} ms for each position and {intercept * 1e3:.1f} ms, R^2 = {fit:.4f}")


def user_times(d: int) -> list[float]:
    """Return the time of a visit at the middle position, for each size of a buffer."""
    return seconds(*(visit(parameters(K, d), PositionKeys(), K // 2).take for K in SIZES))


def line(sizes: tuple[int, ...], times: list[float]) -> tuple[float, float, float]:
    """Return slope and intercept of the line of least squares, and R^2."""
    measured = np.asarray(times)
    slope, intercept = np.polyfit(sizes, measured, 1)
    rest = measured - np.polyval((slope, intercept), sizes)
    return float(slope), float(intercept), 1 - float(np.sum(rest**2) / np.sum((measured - measured.mean()) ** 2))


def length_of_update() -> None:
    """Time the masking of long updates, and weigh its memory."""
    print("mask an update with 10 streams, and with 40; memory with the update and the result, in updates")
    for d in (1000, 10_000, 100_000, 1_000_000):
        actions = [partial(_mask, d, count) for count in (10, 40)]
        spent, more = seconds(*actions, repeats=3)
        few, many = (_peak(action) / (8 * d) for action in actions)
        each = (more - spent) / 30
        print(
            f"  d = {d:9,}: {spent * 1e3:7.2f} ms, {each * 1e3:6.3f} ms a stream ({each / d * 1e9:.1f} ns an element); "
            f"at most {few:.2f}, with 40 streams {many:.2f}"
        )


def _mask(d: int, count: int) -> object:
    p = parameters(10, d)
    streams = [pieces(bytes([at]) * 32, p.ring, d) for at in range(count)]
    return mask_update(p, p.ring.zeros(d), 64, Masks(streams[1 : count // 2], streams[count // 2 :], streams[0]))


def _peak(action: Callable[[], object]) -> float:
    """Return the most memory that an action has at a time, in bytes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -------------------------------------------------------------------------------------------------- repair, buffers


class Timed(Run):
    """A run that keeps the time of each step."""

    def __init__(self, p: Parameters) -> None:
        self.spent: list[tuple[str, int, float]] = []
        super().__init__(p, SeededSource(SEED, "run"))

    def _step(self, phase: str, party: int, **given: Any) -> None:
        start = time.process_time()
        super()._step(phase, party, **given)
        self.spent.append((phase, party, time.process_time() - start))

    def time_of(self, *phases: str) -> float:
        """Return the time of all steps of some phases."""
        return sum(spent for phase, _, spent in self.spent if phase in phases)


def repair() -> None:
    """Compare the profiles: what the self mask, spare positions and skipped ones cost."""
    d, cases = 100_000, ((0, VOID, 0), (0, SETTLE, 0), (2, SETTLE, 0), (2, SETTLE, 2))
    print(f"settle beside void, K = 10, d = {d:,}: the user at position 5, and the server in recover")
    numbers = [parameters(10, d, S=S, timeouts=timeouts) for S, timeouts, _ in cases]
    users = seconds(*(visit(p, PositionKeys(), 5).take for p in numbers))
    servers = [min(_recovery(p, case[2]) for _ in range(5)) for p, case in zip(numbers, cases, strict=True)]
    for (S, timeouts, skipped), user, server in zip(cases, users, servers, strict=True):
        ratio = user / users[0]
        print(
            f"  {timeouts:>6}, S = {S}, {skipped} skipped: user {user * 1e3:6.1f} ms ({ratio:.2f} times void), "
            f"server {server * 1e3:6.1f} ms"
        )


def _recovery(p: Parameters, skipped: int) -> float:
    """Return the time of the server in recover, with positions in the middle skipped."""
    run, zeros = Timed(p), p.ring.zeros(p.d)
    for user in range(p.K + skipped):
        if 5 <= user < 5 + skipped:
            run.expire(user, 0, keyed=True)
        else:
            run.upload(user, zeros, 0, 0.5)
    run.close()
    return run.time_of("recover")


def side_by_side() -> None:
    """Let 64 users come at once to several buffers, with the measured times of a visit."""
    p = parameters(10, 100_000)
    run, zeros = Timed(p), p.ring.zeros(p.d)
    lasts = []
    for user in range(p.K):
        already = len(run.spent)
        run.upload(user, zeros, 0, 0.5)
        lasts.append(sum(spent for _, _, spent in run.spent[already:]))
    print("64 users come at once, K = 10, d = 100,000; a visit lasts as long as all its steps take")
    told = {count: _through(count, lasts) for count in (1, 2, 4, 8)}
    for count, (wait, last) in told.items():
        gain = told[1][1] / last
        print(f"  {count} buffers: a user waits {wait:.2f} s, all are through at {last:.2f} s ({gain:.1f} times)")


def _through(count: int, lasts: list[float]) -> tuple[float, float]:
    """Return how long a user of 64 waits in the mean, and when all are through; `lasts` are visits by position."""
    arrivals = Schedule(64, tuple(Event(0.0, "arrive", user) for user in range(64)))
    dispatcher = Dispatcher(sessions(SESSION, count))
    told = list(visits(dispatcher, arrivals, lambda user: lasts[user // count % len(lasts)]))
    return sum(one.began for one in told) / len(told), max(one.ended for one in told)


# ------------------------------------------------------------------------------------------------------------ plot


def plot(path: Path) -> None:
    """Draw the time of a user against K, for three lengths, and the lines through it."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "secagg-spec", "font.size": 11})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    for d, marker in zip(DIMENSIONS, "os^", strict=True):
        times = user_times(d)
        slope, intercept, fit = line(SIZES, times)
        print(f"d = {d:,}: {slope * 1e3:.2f} ms for each position and {intercept * 1e3:.1f} ms, R^2 = {fit:.4f}")
        ends = np.array([0, SIZES[-1]])
        (drawn,) = axes.plot(ends, slope * ends + intercept, linewidth=1)
        label = f"d = {d / 1e6:g} million ($R^2$ = {fit:.3f})"
        axes.plot(SIZES, times, marker, color=drawn.get_color(), label=label)
    axes.set(xlabel="size of the buffer, K (updates)", ylabel="time of a user (seconds of one core)", xlim=0)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title="measured, and line of least squares", loc="upper left")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    main()
