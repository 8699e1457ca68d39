"""Compute exactly how likely a random order of a sparse graph is to protect less than the sum.

====================  ==============================================================
section 9             here
====================  ==============================================================
N, k, t, h            the same; h is k // 2
c, m                  `colluding`, `vanished` (users that collude or drop out)
n = N - m             honest survivors
====================  ==============================================================

The order is drawn uniformly, after the colluders and the dropouts are fixed.

Source: spec/secagg.md, section 9.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb, prod

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.secagg.graph import check_degree


def tail(population: int, marked: int, drawn: int, least: int) -> Fraction:
    """Return the probability that at least `least` of `drawn` members of a population are marked (hypergeometric).

    It is exact; the time grows with the square of `marked` or `drawn`, whichever is smaller.

    Raises
    ------
    ParameterError
        A number is no integer, or too large, or `marked` or `drawn` is larger than the population.
    """
    population = validate.integer("population", population, 0, validate.MAX_COUNT)
    marked, drawn = validate.integer("marked", marked, 0, population), validate.integer("drawn", drawn, 0, population)
    least = validate.integer("least", least, -validate.MAX_COUNT, validate.MAX_COUNT)
    others = population - marked
    first, last = max(least, 0, drawn - others), min(marked, drawn)
    term = comb(marked, first) * comb(others, drawn - first) if first <= last else 0
    cases = 0
    for hit in range(first, last + 1):
        cases += term
        term = term * (marked - hit) * (drawn - hit) // ((hit + 1) * (others - drawn + hit + 1))
    return Fraction(cases, comb(population, drawn))


def surrounded(N: int, k: int, t: int, colluding: int) -> Fraction:
    """Return the probability that a given honest user has at least t colluding neighbours.

    Raises
    ------
    ParameterError
        There is no graph of N users and degree k, no user is honest, or t is no integer of at least 0.
    """
    N, k = _graph(N, k)
    t = validate.integer("t", t, 0, validate.MAX_COUNT)
    colluding = validate.integer("colluding", colluding, 0, N - 1)
    return tail(N - 1, colluding, k, t)


def any_surrounded(N: int, k: int, t: int, colluding: int) -> Fraction:
    """Return a union bound on the probability that some honest user has at least t colluding neighbours."""
    each = surrounded(N, k, t, colluding)
    return min(Fraction(1), (int(N) - int(colluding)) * each)


def disconnected(N: int, k: int, vanished: int) -> Fraction:
    """Return the probability that the graph between the users that are left is not connected.

    For even k this is exact; for odd k below N - 1 it is an upper bound. It counts the orders in which at least two
    runs of vanished users have k // 2 members or more. The time grows with the square of `vanished`, or faster.

    Raises
    ------
    ParameterError
        There is no graph of N users and degree k, or `vanished` is more than N.
    """
    N, k = _graph(N, k)
    vanished = validate.integer("vanished", vanished, 0, N)
    left, h = N - vanished, k // 2
    if k == N - 1 or left == 0:
        return Fraction(0)
    runs = range(2, vanished // h + 1)
    at_least = {j: comb(left, j) * comb(N - 1 - j * h, left - 1) for j in runs}
    cases = sum((j - 1) * count if j // 2 * 2 == j else (1 - j) * count for j, count in at_least.items())
    return Fraction(cases, comb(N - 1, left - 1))


def disconnected_at_most(N: int, k: int, vanished: int) -> Fraction:
    """Return the first term of the sum that `disconnected` is, which is at least that sum, for graphs of any size.

    Raises
    ------
    ParameterError
        The same as for `disconnected`.
    """
    N, k = _graph(N, k)
    vanished = validate.integer("vanished", vanished, 0, N)
    left, h = N - vanished, k // 2
    if k == N - 1 or left == 0 or 2 * h > vanished:
        return Fraction(0)
    both = Fraction(prod(range(vanished - 2 * h + 1, vanished + 1)), prod(range(N - 2 * h, N)))
    return min(Fraction(1), comb(left, 2) * both)


def cut_at_most(N: int, k: int, vanished: int) -> Fraction:
    """Return a bound on the probability that the graph is cut, for every number of vanished users up to `vanished`.

    It is the largest of `disconnected_at_most` for these numbers. That grows up to some number, and then falls, since
    of few users that are left none can be parted from the others: one alone is always connected.

    Raises
    ------
    ParameterError
        The same as for `disconnected`.
    """
    N, k = _graph(N, k)
    vanished, h = validate.integer("vanished", vanished, 0, N), k // 2
    return disconnected_at_most(N, k, min(vanished, (h * N - 1) // (h + 1) + 1))


def stuck(N: int, k: int, t: int, dropped: int) -> Fraction:
    """Return a bound on the probability that a round ends without a sum: some user has fewer than t holders left.

    A user that is left holds its own shares; a user that dropped out does not.
    """
    N, k = _graph(N, k)
    t, dropped = validate.integer("t", t, 0, validate.MAX_COUNT), validate.integer("dropped", dropped, 0, N - 1)
    of_survivor = tail(N - 1, dropped, k, k + 2 - t)
    of_dropped = tail(N - 1, dropped - 1, k, k + 1 - t) if dropped else Fraction(0)
    return min(Fraction(1), (N - dropped) * of_survivor + dropped * of_dropped)


def _graph(N: int, k: int) -> tuple[int, int]:
    """Return both numbers of a graph as ``int``."""
    k = check_degree(N, k)
    return int(N), k


def exponent(probability: Fraction) -> int:
    """Return the largest e for which the probability, which is not 0, is at most 2**-e.

    Raises
    ------
    ParameterError
        It is no fraction above 0 and at most 1.
    """
    if not isinstance(probability, Fraction) or not 0 < probability <= 1:
        raise ParameterError("probability", probability, "a fraction above 0 and at most 1")
    return (probability.denominator // probability.numerator).bit_length() - 1


guard(__name__)
