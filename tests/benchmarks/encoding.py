"""The mask code of LightSecAgg beside FedML's, which handles small primes alone."""

from __future__ import annotations

from functools import partial

from tests.benchmarks.record import Aim, Benchmark, Sides, counted, peak, processor
from tests.benchmarks.released import Program

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements

FEDML = """
import os
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import adapter
import numpy as np
d, N, U, T, p = map(int, sys.argv[2:7])
mask = np.random.randint(p, size=(d, 1))
serve({"encode": lambda: adapter.lsa.mask_encoding(d, N, U, T, p, mask)})
"""


def drawn(d: int, N: int, U: int, T: int) -> tuple[MaskCode, UintArray, UintArray]:
    """Return a code over the field of 2^32 - 5 elements, a mask, and its noise."""
    field = PrimeField()
    code = MaskCode(field, N, U, T)
    mask = draw_elements(SeededSource(b"bench", "mask"), field, (d,))
    return code, mask, draw_elements(SeededSource(b"bench", "noise"), field, (T, code.share_length(d)))


def time_beside_fedml(d: int, N: int, U: int, T: int, q_of_FedML: int) -> Sides:
    """Encode one mask."""
    code, mask, noise = drawn(d, N, U, T)
    fedml = Program("fedml", FEDML, d, N, U, T, q_of_FedML)
    return Sides(partial(fedml.seconds, "encode"), processor(partial(code.encode, mask, noise)), fedml.close)


def memory(d: int, N: int, U: int, T: int) -> Sides:
    """Encode one mask, and count what is held above the mask, its noise and the shares."""
    code, mask, noise = drawn(d, N, U, T)
    shares = 8 * N * code.share_length(d)
    return Sides(peak(partial(code.encode, mask, noise), but=shares), counted(mask.nbytes))


SIZES = {"d": 10**6, "N": 100, "U": 70, "T": 50}
TINY = {"d": 60, "N": 10, "U": 7, "T": 5}
BENCHMARKS = (
    Benchmark(
        id="encoding-time",
        what="FedML 0.9.6 encodes a mask, modulo a small prime",
        beside="the reference encodes one, modulo 2^32 - 5",
        sizes={**SIZES, "q_of_FedML": 32749},
        tiny={**TINY, "q_of_FedML": 32749},
        sides=time_beside_fedml,
        aim=Aim("at least", 4),
    ),
    Benchmark(
        id="encoding-memory",
        what="what the reference holds while it encodes, above inputs and output",
        beside="the mask",
        sizes=SIZES,
        tiny=TINY,
        sides=memory,
        measures="memory",
        aim=Aim("at most", 6),
        turns=1,
    ),
)
