"""A session as its server sees it: the users of each round, and the sums that SecAgg reveals, nothing else.

Source: spec/multi-round.md, sections 3 and 6.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.errors import OutOfRange
from secagg_spec.privacy.reconstruction import Integers
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.metrics import Log
from secagg_spec.selection.strategies import choose, ranges

MODULUS = 2**32
LEAST_USERS = 3
"""The fewest users of a round of SecAgg (SAG-01)."""


def draw_log(parameters: Parameters, strategy: str, rounds: int, seed: bytes) -> Log:
    """Return the users of each of some rounds, if all users are always available, (rounds, N)."""
    source = SeededSource(seed, f"selection {strategy}")
    available = np.ones(parameters.N, dtype=bool)
    log = np.zeros((validate.integer("rounds", rounds, 0), parameters.N), dtype=bool)
    for row in range(rounds):
        frequencies = log[:row].sum(axis=0, dtype=np.int64)
        bounds = ranges(parameters, strategy, frequencies, available)
        assert bounds is not None, "all users are available"
        chosen = choose(parameters, strategy, frequencies, available, draw_below(source, bounds))
        log[row, list(chosen or ())] = True
    return log


def secure_sum(models: Integers, *, seed: bytes, round: int) -> Integers:
    """Return the sum of the integer models (K, d) of a round's users, from a round of SecAgg modulo 2**32.

    Raises
    ------
    OutOfRange
        A number is so large that K of them do not fit the modulus (QNT-04).
    """
    ring, K = Ring(MODULUS), len(models)
    largest = int(np.abs(models).max(initial=0))
    if largest * K > (MODULUS - 1) // 2:
        raise OutOfRange("models", largest, f"at most {(MODULUS - 1) // 2 // K} in magnitude, for sums of {K}")
    elements = np.stack([ring.encode_signed(model) for model in models])
    return ring.decode_signed(secure_elements(elements, ring, seed, round))


def secure_elements(models: UintArray, ring: Ring, seed: bytes, round: int) -> UintArray:
    """Return the sum in a ring of the models (K, d) of a round's users, from a round of SecAgg."""
    K, d = models.shape
    p = parameters_of(ring.modulus, K, d)
    sources = {user: SeededSource(seed, f"round {round}, user {user}") for user in range(K)}
    result = secagg.run_round(p, models, randomness=secagg.draw_randomness(p, sources), round=round, session=bytes(16))
    return result.aggregate


@cache
def parameters_of(modulus: int, K: int, d: int) -> secagg.Parameters:
    """Return the parameters of a round in which K users take part and none may drop out."""
    return secagg.Parameters(R=modulus, N=K, D=0, T=1, t=LEAST_USERS, k=K - 1, d=d)
