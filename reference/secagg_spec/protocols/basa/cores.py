"""The pure cores of BASA: parameters, and the computations on vectors once every mask is a vector.

========================  ====================================================
papers                    here
========================  ====================================================
q                         `R`: any modulus
K                         `K` updates, `S` spare positions, P = `positions`
x_k, Delta_k              `update` at position k, elements
alpha_k                   `weight`, an integer
PRG(s_ij)                 `Masks.before` (i < k) and `Masks.after` (j > k)
(none)                    `Masks.own`, the self mask
y_k                       `masked`
========================  ====================================================

Source: BASA, section 3.2, equations (5) and (6), repaired; spec/basa.md, sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import DEFAULT_PRIME, MAX_MODULUS, Ring, Summand
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import KINDS, Staleness
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.buffers import budget, check_levels, check_update

SETTLE, VOID = "settle", "void"
TIMEOUTS = (SETTLE, VOID)
MAX_POSITIONS = 2**16
MAX_USERS = 2**31 - 1


@dataclass(frozen=True)
class Parameters(validate.Plain):
    """The parameters of a session.

    Raises
    ------
    ParameterError
        They break BAA-01: ``2 <= R <= 2**32``, ``d >= 1``, ``T >= 1``, ``K >= T + 2``, ``S >= 0``,
        ``K + S <= N < 2**31``, ``K + S <= 2**16``, S = 0 when timeouts are ``"void"``; or BAA-02: c_l and
        c_g in ``[1, 2**32]``, ``c_g s(tau_max) >= 1``, ``K c_g <= (R - 1) // 2``, ``c_l K c_g <= 2**53``.
    """

    R: int
    N: int
    T: int
    d: int
    K: int
    S: int
    c_l: int
    c_g: int
    tau_max: int
    staleness: Staleness
    timeouts: str = SETTLE

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.timeouts, str) or self.timeouts not in TIMEOUTS:
            raise ParameterError("timeouts", self.timeouts, '"settle" or "void"')
        validate.integer("R", self.R, 2, MAX_MODULUS)
        validate.integer("d", self.d, 1, validate.MAX_COUNT)
        validate.integer("N", self.N, 1, MAX_USERS)
        validate.integer("T", self.T, 1, validate.MAX_COUNT)
        self._check_positions()
        self._check_levels()

    def _check_positions(self) -> None:
        validate.integer("K", self.K, self.T + 2, validate.MAX_COUNT)
        validate.integer("S", self.S, 0, MAX_POSITIONS)
        if self.timeouts == VOID and self.S:
            raise ParameterError("S", self.S, '0 with the timeouts "void"')
        most = min(self.N, MAX_POSITIONS)
        if most < self.positions:
            raise ParameterError("K + S", self.positions, f"at most {most}: N, and 2**16")

    def _check_levels(self) -> None:
        check_levels("R", self.R, self.K, self.c_l, self.c_g, self.tau_max, self.staleness)

    @cached_property
    def ring(self) -> Ring:
        """The integers modulo R."""
        return Ring(self.R)

    @property
    def positions(self) -> int:
        """P, the positions of a buffer: K + S."""
        return self.K + self.S

    @property
    def settle(self) -> bool:
        """Whether positions whose users timed out are skipped, and updates have self masks."""
        return self.timeouts == SETTLE

    @property
    def total_weight(self) -> int:
        """K c_g, the largest total weight of a buffer."""
        return self.K * self.c_g

    @property
    def budget(self) -> int:
        """The largest magnitude of a decoded element of an update (BAA-25)."""
        return budget(self.ring, self.total_weight)

    def numbers(self) -> dict[str, int]:
        """Return the names and values that keys and signatures are bound to, except the encryption (section 5)."""
        s = self.staleness
        names = ("R", "N", "T", "d", "K", "S", "c_l", "c_g", "tau_max")
        function = {"kind": KINDS.index(s.kind), "numerator": s.numerator, "denominator": s.denominator}
        rest = {"start": s.start, "timeouts": TIMEOUTS.index(self.timeouts)}
        return {name: int(getattr(self, name)) for name in names} | function | rest


_SLOWLY = Staleness.polynomial(1)
PRESETS: Mapping[str, Parameters] = MappingProxyType(
    {
        "tiny": Parameters(R=16, N=6, T=1, d=2, K=3, S=1, c_l=1, c_g=2, tau_max=1, staleness=_SLOWLY),
        "default": Parameters(
            R=DEFAULT_PRIME, N=32, T=3, d=16, K=6, S=2, c_l=65536, c_g=64, tau_max=10, staleness=_SLOWLY
        ),
        "paper": Parameters(
            R=DEFAULT_PRIME, N=100, T=8, d=7850, K=10, S=0, c_l=65536, c_g=64, tau_max=10, staleness=_SLOWLY,
            timeouts=VOID,
        ),
    }
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Masks:
    """The masks of one upload: from earlier accepted positions, to later positions, and its self mask.

    Each mask has d elements, as an array or as the pieces of a stream (`Ring.signed_sum`). If timeouts end the epoch,
    there is no `own`.
    """

    before: Iterable[Summand] = field(repr=False)
    after: Iterable[Summand] = field(repr=False)
    own: Summand | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, masks in (("before", self.before), ("after", self.after)):
            if not isinstance(masks, Iterable):
                raise ParameterError(name, validate.class_of(masks), "a list or another iterable of masks")


def encode_update(parameters: Parameters, x: RealArray, rounding: RealArray) -> UintArray:
    """Return an update of d real numbers as elements: the quantiser at c_l with the total weight K c_g (BAA-46).

    `rounding` has d draws, uniform in ``[0, 1)``; the errors are those of `quantize`.
    """
    validate.array_shape("x", validate.reals("x", x, (None,)), (parameters.d,))
    return quantize(x, level=parameters.c_l, ring=parameters.ring, weight=parameters.total_weight, rounding=rounding)


def mask_update(parameters: Parameters, update: UintArray, weight: int, masks: Masks) -> UintArray:
    """Return y_k = w_k v_k + b_k + sum of the masks after - sum of the masks before, d elements (BAA-26).

    Parameters
    ----------
    parameters : Parameters
    update : array (d,)
        v_k, elements whose decoded integers are within the budget (BAA-24, BAA-25).
    weight : int
        w_k in ``[1, c_g]``.
    masks : Masks

    Raises
    ------
    OutOfRange
        An element is beyond the budget, or the weight is out of its range.
    LengthMismatch, NonCanonical
        A vector is not d elements.

    Source: BASA, equations (5) and (6), repaired.
    """
    ring = parameters.ring
    check_update(ring, parameters.total_weight, ring.check("update", update, (parameters.d,)))
    factor = np.full(update.shape, validate.integer("weight", weight, 1, parameters.c_g), dtype=np.uint64)
    return add_masks(ring, ring.multiply(update, factor), masks)


def add_masks(ring: Ring, weighted: UintArray, masks: Masks) -> UintArray:
    """Return a weighted update plus the masks after and the self mask, minus the masks before, d elements (BAA-26).

    The function accepts every element, for probing; `mask_update` refuses updates that a buffer cannot carry.
    """
    own = () if masks.own is None else (masks.own,)
    names = (validate.entries("masks.after"), ("masks.own",), validate.entries("masks.before"))
    return ring.signed_sum(weighted, plus(masks.after), plus(own), minus(masks.before), name="weighted", names=names)


def recover(
    parameters: Parameters, masked: Iterable[Summand], own: Iterable[Summand], skipped: Iterable[Summand]
) -> UintArray:
    """Return the sum of the weighted updates, d elements: the masked updates minus the remaining masks (BAA-41).

    Parameters
    ----------
    parameters : Parameters
    masked : iterable of vectors (d,)
        The masked updates of the accepted positions.
    own : iterable of vectors (d,)
        The self masks of the accepted positions; none if timeouts end the epoch.
    skipped : iterable of vectors (d,)
        The masks from accepted positions to later positions that are not accepted.

    Source: BASA, algorithm 1, repaired.
    """
    names = tuple(map(validate.entries, ("masked", "own", "skipped")))
    terms = (plus(masked), minus(own), minus(skipped))
    return parameters.ring.signed_sum(parameters.ring.zeros(parameters.d), *terms, names=names)


def plus(vectors: Iterable[Summand]) -> Iterator[tuple[bool, Summand]]:
    """Return vectors as terms to add."""
    return ((True, vector) for vector in vectors)


def minus(vectors: Iterable[Summand]) -> Iterator[tuple[bool, Summand]]:
    """Return vectors as terms to subtract."""
    return ((False, vector) for vector in vectors)


def check_accepted(name: str, accepted: Sequence[int], end: int) -> tuple[int, ...]:
    """Return positions if they are ascending and in ``[0, end)``.

    Raises
    ------
    ParameterError
        A position is out of range, or the positions are not ascending.
    """
    end = validate.integer("end", end, 0)
    positions = tuple(validate.integer(name, p, 0, end - 1) for p in validate.sequence(name, accepted, "positions"))
    if any(a >= b for a, b in pairwise(positions)):
        raise ParameterError(name, list(positions), "positions in ascending order")
    return positions


guard(__name__)
