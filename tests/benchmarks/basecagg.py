"""BASecAgg beside LightSecAgg, as ratios within one run, and a long simulation: ``make bench``.

Recovery is what a server does with K masked updates and the answers of U users: it adds the updates, decodes the masks,
and divides. Both protocols get the same updates and codes; BASecAgg weights them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from tests.benchmarks.speed import in_turn

from secagg_spec.arithmetic.quantizer import dequantize
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.cli import main as command
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.protocols import basecagg, buffers, lightsecagg

D, N, U, T, K = 10**6, 100, 70, 8, 10
Q, C_L, C_G = 2**32 - 5, 2**16, 2**6


def main() -> None:
    """Print all figures."""
    recovery()
    simulation()


def recovery() -> None:
    """Recover a buffer of 10 updates of a million elements, with staleness weights and without."""
    buffered = basecagg.Parameters(Q, N, N - U, U, T, D, K, C_L, C_G, 10, Staleness.polynomial(1))
    plain = lightsecagg.Parameters(Q, N, N - U, U, T, D)
    source = SeededSource(b"bench", "recovery")
    masked = [draw_elements(source, buffered.field, (D,)) for _ in range(K)]
    shares = draw_elements(source, buffered.field, (U, buffered.share_length))
    weights = np.array([64, 32, 21, 16, 13, 11, 9, 8, 7, 6], dtype=np.uint64)
    users = range(U)

    def without() -> object:
        total = lightsecagg.recover(plain, plain.field.sum(np.stack(masked)), users, shares)
        return dequantize(total, level=C_L, ring=plain.field)

    def weighted() -> object:
        return buffers.average(buffered.field, C_L, weights, recovered())

    def recovered() -> UintArray:
        return basecagg.recover(buffered.code, weights, masked, users, shares)

    def masks_only() -> object:
        return lightsecagg.recover(plain, masked[0], users, shares)

    print(f"recover the sum of {K} updates, d = {D:,}, (N, U, T) = ({N}, {U}, {T})")
    _compare("from masked updates to the average", without, weighted)
    _compare("LightSecAgg's step recover alone, which adds no updates", masks_only, recovered)


def _compare(what: str, one: Callable[[], object], other: Callable[[], object]) -> None:
    first, second = in_turn(one, lambda: _seconds(other))
    ratio = statistics.median(b / a for a, b in zip(first, second, strict=True))
    times = f"{statistics.median(first):.3f} s and {statistics.median(second):.3f} s"
    print(f"  {what}: {times}, BASecAgg {ratio:.2f} times LightSecAgg")


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def simulation() -> None:
    """Simulate 1,000 rounds with 100 users, by the cores."""
    options = "--users 100 --buffer 10 --rounds 1000 --length 10000 --answers 70 --dropouts 30 --colluders 8"
    start = time.process_time()
    code = command(["simulate", "basecagg", "--by", "cores", *options.split()])
    print(f"\nsimulate 1,000 rounds, N = 100, K = 10, d = 10,000: {time.process_time() - start:.0f} s of one core")
    assert code == 0


if __name__ == "__main__":
    main()
