"""The mask code of LightSecAgg beside FedML's, which handles small primes alone."""

from __future__ import annotations

from functools import partial

import numpy as np
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


def beside_a_transform(q: int, d: int, N: int, U: int, T: int) -> Sides:
    """Encode one mask at the N-th roots of unity modulo q, as the reference does, and by a transform of length N."""
    field = PrimeField(q)
    root = next(w for w in (pow(x, (q - 1) // N, q) for x in range(2, q)) if pow(w, N // 2, q) == q - 1)
    roots = [pow(root, j, q) for j in range(N)]
    code = MaskCode(field, N, U, T, roots)
    mask = draw_elements(SeededSource(b"bench", "mask"), field, (d,))
    noise = draw_elements(SeededSource(b"bench", "noise"), field, (T, code.share_length(d)))
    transformed = partial(_transform, field, np.array(roots, dtype=np.uint64), code, mask, noise)
    assert np.array_equal(code.encode(mask, noise), transformed())
    return Sides(processor(partial(code.encode, mask, noise)), processor(transformed))


def _transform(field: PrimeField, roots: UintArray, code: MaskCode, mask: UintArray, noise: UintArray) -> UintArray:
    """Return what `MaskCode.encode` does for the N powers of a root of unity, N a power of 2."""
    N, m = code.N, np.uint64(field.modulus)
    order = [int(f"{at:0{N.bit_length() - 1}b}"[::-1], 2) for at in range(N)]
    rows = np.zeros((N, noise.shape[1]), dtype=np.uint64)
    rows[: code.U] = np.concatenate([code.sub_masks(mask), noise])
    values, half = rows[order], 1
    while half < N:
        pairs = values.reshape(N // (2 * half), 2, half, -1)
        turned = pairs[:, 1] * roots[:: N // (2 * half)][:half].reshape(1, half, 1)
        turned -= turned // m * m
        first = pairs[:, 0].copy()
        for at, total in ((0, first + turned), (1, first + (m - turned))):
            pairs[:, at] = np.where(total >= m, total - m, total)
        half *= 2
    return values


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
    Benchmark(
        id="encoding-transform",
        what="the reference encodes a mask for thousands of users, by a product of matrices",
        beside="the same shares by a number-theoretic transform, which the text has no profile for",
        sizes={"q": 2**32 - 2**20 + 1, "d": 10**6, "N": 4096, "U": 3000, "T": 1000},
        tiny={"q": 97, "d": 20, "N": 8, "U": 5, "T": 1},
        sides=beside_a_transform,
        turns=3,
        warm=False,
    ),
)
