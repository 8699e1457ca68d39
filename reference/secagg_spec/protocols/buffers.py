"""The common parts of buffered training protocols: levels, the budget of an update, weights, the weighted average.

Source: BASecAgg, section 3; spec/basecagg.md (BSA-02, BSA-06, BSA-33), spec/basa.md (BAA-02, BAA-25, BAA-43).
"""

from __future__ import annotations

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import MAX_MODULUS, Ring
from secagg_spec.arithmetic.quantizer import MAX_LEVEL
from secagg_spec.arithmetic.staleness import Staleness, least_level
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError

MAX_STALENESS = 2**31 - 1
_EXACT = 2**53


def check_levels(name: str, modulus: int, K: int, c_l: int, c_g: int, tau_max: int, staleness: Staleness) -> None:
    """Refuse levels that cannot carry an update of one unit, or that make a weight vanish (BSA-02, BAA-02).

    Parameters
    ----------
    name : str
        The name of the modulus in the text.
    modulus, K, c_l, c_g, tau_max : int
        The modulus, the updates in a buffer, the levels of updates and weights, the largest staleness.
    staleness : Staleness

    Raises
    ------
    ParameterError
        c_l or c_g is not in ``[1, 2**32]``, tau_max not in ``[0, 2**31 - 1]``, ``c_g s(tau_max) < 1``,
        ``K c_g > (modulus - 1) // 2``, or ``c_l K c_g > 2**53``.
    """
    modulus = validate.integer(name, modulus, 2, MAX_MODULUS)
    K = validate.integer("K", K, 1, validate.MAX_COUNT)
    tau_max = validate.integer("tau_max", tau_max, 0, MAX_STALENESS)
    c_l = validate.integer("c_l", c_l, 1, MAX_LEVEL)
    if not isinstance(staleness, Staleness):
        raise ParameterError("staleness", staleness, "a staleness function")
    least = least_level(staleness, tau_max)
    allowed = f"an integer in [{least}, {MAX_LEVEL}]" if least <= MAX_LEVEL else f"above {MAX_LEVEL}, and never is"
    allowed = f"{allowed}: at least 1 / s(tau_max) for tau_max = {tau_max}"
    c_g = validate.integer("c_g", c_g, least, MAX_LEVEL, allowed)
    if K * c_g > (modulus - 1) // 2:
        raise ParameterError("K * c_g", K * c_g, f"at most ({name} - 1) // 2 = {(modulus - 1) // 2}")
    if c_l * K * c_g > _EXACT:
        raise ParameterError("c_l * K * c_g", c_l * K * c_g, "at most 2**53")


def budget(ring: Ring, total_weight: int) -> int:
    """Return the largest magnitude of a decoded element that a buffer of total weight `total_weight` >= 1 can carry."""
    return (ring.modulus - 1) // 2 // validate.integer("total_weight", total_weight, 1)


def check_update(ring: Ring, total_weight: int, update: UintArray) -> UintArray:
    """Return an update if a buffer of total weight `total_weight` can carry it (BSA-05, BSA-06, BAA-24, BAA-25).

    Raises
    ------
    OutOfRange
        The decoded integer v of an element has ``|v| * total_weight > (R - 1) // 2``.
    """
    bound = budget(ring, total_weight)
    magnitudes = np.abs(ring.decode_signed(ring.check("update", update, (None,))))
    if magnitudes.size == 0:
        raise LengthMismatch("update", update, "d >= 1 elements")
    if int(magnitudes.max()) > bound:
        at = int(np.argmax(magnitudes))
        raise OutOfRange(f"update[{at}]", int(ring.decode_signed(update)[at]), f"in [{-bound}, {bound}] once decoded")
    return update


def check_rounding(name: str, value: RealArray, count: int) -> RealArray:
    """Return the `count` draws that round weights, if each is a multiple of 2**-53 in ``[0, 1)``.

    Raises
    ------
    OutOfRange
        A draw is not such a number.
    """
    draws = validate.reals(name, value, (validate.integer("count", count, 0),))
    inside = np.where((draws >= 0) & (draws < 1), draws, np.nan) * _EXACT
    wrong = np.floor(inside) != inside
    if wrong.any():
        at = int(np.argmax(wrong))
        raise OutOfRange(f"{name}[{at}]", float(draws[at]), "a multiple of 2**-53 in [0, 1)")
    return draws


def average(ring: Ring, level: int, weights: UintArray, total: UintArray) -> RealArray:
    """Return the decoded weighted sum over c_l, the level, times the sum of the weights, rounded once (BSA-33, BAA-43).

    Raises
    ------
    ParameterError
        All weights are 0 (BSA-32), or the divisor is above 2**53, so binary64 may not hold it exactly.

    Source: BASecAgg eq. (13), repaired.
    """
    weights = ring.check("weights", weights, (None,))
    divisor = validate.integer("level", level, 1, MAX_LEVEL) * weight_sum(weights)
    if divisor > _EXACT:
        raise ParameterError("level * sum(weights)", divisor, "at most 2**53")
    signed = ring.decode_signed(ring.check("total", total, (None,)))
    result: RealArray = signed.astype(np.float64) / np.float64(divisor)
    return result


def weight_sum(weights: UintArray) -> int:
    """Return the sum of weights, which must not be 0 (BSA-32)."""
    total = sum(int(weight) for weight in validate.elements("weights", weights, MAX_MODULUS, (None,)))
    if total == 0:
        raise ParameterError("sum(weights)", 0, "positive")
    return total


guard(__name__)
