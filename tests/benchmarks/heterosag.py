"""What masking in HeteroSAg costs a user beside SecAgg, as ratios within one run: ``make bench``.

Masking is what grows with the input: deriving the key of each mask, expanding it, and adding it up. Agreements, shares
and seals are the same in both, and are left out, but for the figures on whole steps. SecAgg is on the complete graph,
modulo the number that just holds the sum of all N users at the same levels, as the cells of HeteroSAg do for their own.
All times are seconds of the processor, the least of several runs that take turns. ``--plot FOLDER`` draws the cost
against the number of groups, and writes the numbers beside the picture.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from tests.benchmarks.basa import seconds

from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.prg import pieces
from secagg_spec.protocols import heterosag, secagg
from secagg_spec.protocols.heterosag_costs import masked_bits, secagg_bits, secagg_user_masks, sum_modulus, user_masks
from secagg_spec.protocols.heterosag_plan import Parameters
from secagg_spec.protocols.secagg import Round
from secagg_spec.protocols.shape import Network, Step, run_synchronous

N, GROUPS, D, USER = 100, 20, 79_510, 50
LEVELS = (2, 16, 2**16)
COUNTS = tuple(range(2, 26))
UNIT = Range(-1.0, 1.0)
AIM = N / (4 * (N // GROUPS))


def main() -> None:
    """Print all figures, or draw one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", metavar="FOLDER", type=Path, help="write heterosag-masking.svg and .csv to a folder")
    options = parser.parse_args()
    if options.plot is not None:
        plot(options.plot)
        return
    for part in (masking, steps, bits):
        part()
        print()


def parameters(groups: int, levels: int, d: int = D) -> Parameters:
    """Return those of N users in groups as equal as they can be, all with the same levels."""
    sizes = tuple(len(part) for part in np.array_split(np.empty(N, bool), groups))
    return Parameters(N, 20, 1, 51, d, sizes, (1,) * groups, (levels,) * groups, UNIT)


def plain(levels: int, d: int = D) -> secagg.Parameters:
    """Return those of SecAgg among the same users, modulo the number that holds the sum of all."""
    return secagg.Parameters(R=sum_modulus(N, levels), N=N, D=20, T=1, t=51, k=N - 1, d=d)


@dataclass(frozen=True)
class Masking:
    """What one user masks: its part of a round, and what it agreed on with everybody."""

    round: Round
    user: int
    secrets: dict[int, bytes]
    public: dict[int, bytes]
    update: UintArray

    def take(self) -> UintArray:
        """Derive the keys, as the step share_keys does; expand the masks and add them up, as masked_input does."""
        parts = self.round.parts_of(self.user)
        keys = [self._keys(part) for part in parts]
        return np.concatenate([self._masked(part, each) for part, each in zip(parts, keys, strict=True)])

    def _keys(self, part: secagg.Part) -> dict[int, bytes]:
        context, at = self.round.context(), part.segment
        found = {self.user: masks.self_key(context, self.secrets[self.user], self.user, at)}
        for peer in sorted(part.members - {self.user}):
            pair = {user: self.public[user] for user in (self.user, peer)}
            found[peer] = masks.pairwise_key(context, self.secrets[peer], pair, at)
        return found

    def _masked(self, part: secagg.Part, keys: dict[int, bytes]) -> UintArray:
        streams = {user: pieces(key, part.ring, part.length) for user, key in keys.items()}
        own = streams.pop(self.user)
        return secagg.mask_update(part.ring, self.user, part.of(self.update), own, streams.items())


def masking_of(p: Parameters | secagg.Parameters, user: int = USER) -> Masking:
    """Return what a user masks under parameters of either protocol."""
    round = heterosag.agreed(p, bytes(16), 0) if isinstance(p, Parameters) else Round(p, p.graph(), bytes(16), 0)
    source = SeededSource(b"bench", "masking")
    secrets, public = ({peer: source.take(32) for peer in range(N)} for _ in range(2))
    return Masking(round, user, secrets, public, np.zeros(p.d, np.uint64))


# --------------------------------------------------------------------------------------------------- figures


def masking() -> None:
    """Compare masking in G groups with SecAgg among all users."""
    n = N // GROUPS
    print(f"mask one input, N = {N}, d = {D:,}: SecAgg, and HeteroSAg in G = {GROUPS} groups of n = {n}")
    expanded = user_masks(parameters(GROUPS, 2), USER).elements
    most = secagg_user_masks(D, N).elements / expanded
    print(f"  elements of masks: {most:.2f} times fewer; the aim for the time is N / (4n) = {AIM:g} times less")
    for levels in LEVELS:
        taken = [masking_of(p).take for p in (parameters(GROUPS, levels), plain(levels))]
        mine, theirs = seconds(*taken, repeats=15)
        verdict = "the aim is met" if theirs >= AIM * mine else "SHORT OF THE AIM"
        print(f"  K = {levels:6,}: SecAgg takes {theirs / mine:.2f} times as long; {verdict}")


def steps() -> None:
    """Compare whole steps: all that a user does when its masked input is due, packing and opening shares included."""
    d, levels = D, 2**16
    print(f"the user's whole step masked_input, K = {levels:,}")
    taken = [_step(heterosag.open_round, parameters(GROUPS, levels, d)), _step(secagg.open_round, plain(levels, d))]
    mine, theirs = seconds(*taken, repeats=9)
    p = parameters(GROUPS, levels, d)
    cells, vector = heterosag.agreed(p, bytes(16), 0).parts_of(USER), np.zeros(d, np.uint64)
    (packing,) = seconds(partial(heterosag.pack_segments, cells, vector))
    print(f"  SecAgg takes {theirs / mine:.2f} times as long; {packing / mine:.0%} of HeteroSAg's step is packing,")
    print("  which the messages of SecAgg here, four bytes for each element, do not have")


def _step(open_round: Callable[..., Network], p: Parameters | secagg.Parameters) -> Callable[[], object]:
    """Return the step of one user, with all shares in its mail."""
    network = open_round(p, np.zeros((N, p.d), np.uint64))
    step: Step = network.table[4]
    network.table = network.table[:4]
    sources = {user: SeededSource(b"bench", f"user {user}") for user in range(N)}
    run_synchronous(network, {}, secagg.draw_randomness(p, sources))
    return partial(step.run, network.states[USER], network.mail(step, USER), randomness={})


def bits() -> None:
    """Count the bits of a user in equal groups, beside SecAgg: no measurement, and the same everywhere."""
    print(f"bits of a user's masked input over SecAgg's with the same levels, d = {D:,}")
    for levels in LEVELS:
        p = parameters(GROUPS, levels)
        sent = masked_bits(p, USER) / secagg_bits(D, N, levels)
        print(f"  K = {levels:6,}: {masked_bits(p, USER):,} bits, {sent:.3f} of SecAgg's")


# --------------------------------------------------------------------------------------------------------- plot


@dataclass(frozen=True)
class Point:
    """One number of groups: masks per element by the formula, and both costs over SecAgg's."""

    groups: int
    users: int
    masks: float
    formula: float
    measured: float


def points(levels: int = 16) -> list[Point]:
    """Measure user 0 for each number of groups, in turn with SecAgg."""
    whole = masking_of(plain(levels), 0).take
    found = []
    for groups in COUNTS:
        p = parameters(groups, levels)
        mine, theirs = seconds(masking_of(p, 0).take, whole, repeats=9)
        each = user_masks(p, 0).elements / D
        found.append(Point(groups, p.sizes[0], each, each / N, mine / theirs))
        print(f"G = {groups:2}, n = {p.sizes[0]:2}: {each:6.2f} masks an element, {mine / theirs:.3f} of SecAgg's time")
    return found


def plot(folder: Path) -> None:
    """Draw the cost of masking against the number of groups, beside the formula, and write the numbers."""
    found = points()
    _write(folder / "heterosag-masking.csv", found)
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "secagg-spec", "font.size": 11})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    axes.plot(COUNTS, [point.formula for point in found], "-", label="masks to expand, by the formula")
    axes.plot(COUNTS, [point.measured for point in found], "o", label="processor time, measured")
    axes.axhline(1, color="grey", linewidth=1, linestyle="--", label="SecAgg on the complete graph")
    axes.set(xlabel="number of groups, G", ylabel="cost of masking, in units of SecAgg's")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title=f"N = {N} users, d = {D:,}, K = 16")
    figure.savefig(folder / "heterosag-masking.svg", metadata={"Date": None})


def _write(path: Path, found: Sequence[Point]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["groups", "users_of_a_group", "masks_per_element", "formula_over_secagg", "time_over_secagg"])
        for one in found:
            out.writerow([one.groups, one.users, f"{one.masks:.4f}", f"{one.formula:.4f}", f"{one.measured:.3f}"])


if __name__ == "__main__":
    main()
