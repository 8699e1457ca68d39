"""The costs of a round of HeteroSAg: bits, bytes and masks by segment, the error bound, and SecAgg for comparison.

====================  ==========================================
paper                 here
====================  ==========================================
R, S, K_g^l           `modulus`, `users`, `levels` of a `SegmentCost`
log(R), rounded up    `width`
expansion factor      `expansion`, `bandwidth_expansion`
sigma^2               `error_bound`
====================  ==========================================

Keys and shares cost the same as in SecAgg and are not counted. If a user drops out before it masks, the other users
have fewer masks; so the functions that count masks take the users who are present.

Source: HeteroSAg, theorem 2, proposition 2, appendices F and J.1; spec/heterosag.md, section 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from secagg_spec.arithmetic import packing, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.levels import check_levels
from secagg_spec.arithmetic.modular import MAX_MODULUS
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.heterosag.plan import Cell, Parameters, cells_of


@dataclass(frozen=True)
class SegmentCost(validate.Plain):
    """The size of one user's message for one segment, which `users` users of its cell mask together."""

    segment: int
    length: int
    users: int
    levels: int

    @property
    def modulus(self) -> int:
        """R, the number of values that the sum takes."""
        return sum_modulus(self.users, self.levels)

    @property
    def width(self) -> int:
        """The bits of a masked element."""
        return packing.bits_of(self.modulus)

    @property
    def bits(self) -> int:
        """The bits of the masked segment, without padding bits."""
        return self.length * self.width

    @property
    def bytes(self) -> int:
        """The bytes of the masked segment in the packed form (HSA-15)."""
        return packing.packed_bytes(self.length, self.modulus)

    @property
    def clear_bits(self) -> int:
        """The bits of the quantised segment without masks."""
        return self.length * packing.bits_of(self.levels)

    @property
    def expansion(self) -> Fraction:
        """The bandwidth expansion of the segment."""
        return bandwidth_expansion(self.users, self.levels)


def segment_costs(parameters: Parameters, user: int) -> tuple[SegmentCost, ...]:
    """Return the costs of a user's masked segments, segment by segment."""
    return tuple(
        SegmentCost(cell.segment, cell.length, len(cell.members), cell.levels) for cell in cells_of(parameters, user)
    )


def masked_bits(parameters: Parameters, user: int) -> int:
    """Return the bits of all masked segments of a user, without the padding to whole bytes."""
    return sum(cost.bits for cost in segment_costs(parameters, user))


def masked_bytes(parameters: Parameters, user: int) -> int:
    """Return the number of bytes of a user's `MaskedSegments.segments` (HSA-15)."""
    return sum(cost.bytes for cost in segment_costs(parameters, user))


def user_expansion(parameters: Parameters, user: int) -> Fraction:
    """Return the bits that a user sends divided by the bits of its quantised input."""
    costs = segment_costs(parameters, user)
    return Fraction(sum(cost.bits for cost in costs), sum(cost.clear_bits for cost in costs))


# ------------------------------------------------------------------------------------------------ of one modulus


def sum_modulus(users: int, levels: int) -> int:
    """Return R = |S| (K - 1) + 1, the number of values that the sum of `users` quantised elements takes.

    Raises
    ------
    ParameterError
        There is no user, K is out of range, or R is above ``2**32`` (HSA-03).
    """
    users, levels = validate.integer("users", users, 1), check_levels(levels)
    modulus = users * (levels - 1) + 1
    if modulus > MAX_MODULUS:
        raise ParameterError("users * (levels - 1) + 1", modulus, "at most 2**32")
    return modulus


def bandwidth_expansion(users: int, levels: int) -> Fraction:
    """Return the bits of an element masked among `users` users divided by the bits of a quantised element in clear.

    Raises
    ------
    ParameterError
        The errors of `sum_modulus`.
    """
    return Fraction(packing.bits_of(sum_modulus(users, levels)), packing.bits_of(levels))


def secagg_bits(d: int, users: int, levels: int) -> int:
    """Return the bits of a masked SecAgg input in the packed form, when all users mask together with the same levels.

    Raises
    ------
    ParameterError
        d is below 1, or `sum_modulus` raises.
    """
    return validate.integer("d", d, 1) * packing.bits_of(sum_modulus(users, levels))


def secagg_bytes(d: int, users: int, levels: int) -> int:
    """Return `secagg_bits` in whole bytes; the messages of SecAgg itself have 4 bytes for each element."""
    return packing.packed_bytes(validate.integer("d", d, 1), sum_modulus(users, levels))


# --------------------------------------------------------------------------------------------------------- masks


@dataclass(frozen=True)
class MaskCost(validate.Plain):
    """The number of masks that a party expands, each from a separate key, and their total number of elements."""

    masks: int
    elements: int


def user_masks(parameters: Parameters, user: int, present: Sequence[int] | None = None) -> MaskCost:
    """Return the masks that a user expands: for each segment its self mask and one for each other user of its cell.

    Parameters
    ----------
    parameters : Parameters
    user : int
    present : sequence of users
        The users whose shares reached the user; the default is all users.
    """
    here = _present(parameters, "present", present) | {validate.integer("user", user, 0, parameters.N - 1)}
    return _together((len(cell.members & here), cell) for cell in cells_of(parameters, user))


def server_masks(parameters: Parameters, survivors: Sequence[int], sharers: Sequence[int] | None = None) -> MaskCost:
    """Return the masks that the server expands: the survivors' self masks, and the pairs of dropped user and survivor.

    Parameters
    ----------
    parameters : Parameters
    survivors : sequence of users
        U_3, the users whose masked segments arrived.
    sharers : sequence of users
        U_2, the users whose shares arrived; the default is all users. Sharers that are not survivors have dropped out.

    Raises
    ------
    ParameterError
        A survivor is no sharer.
    """
    left, shared = _present(parameters, "survivors", survivors), _present(parameters, "sharers", sharers)
    if not left <= shared:
        raise ParameterError("survivors", sorted(left - shared), "users whose shares arrived")
    dropped = shared - left
    counts = ((len(cell.members & left), len(cell.members & dropped), cell) for cell in parameters.parts)
    return _together((kept * (1 + lost), cell) for kept, lost, cell in counts)


def secagg_user_masks(d: int, users: int) -> MaskCost:
    """Return the masks that a user of SecAgg on the complete graph expands."""
    masks = validate.integer("users", users, 1)
    return MaskCost(masks, masks * validate.integer("d", d, 1))


def _together(counted: Iterable[tuple[int, Cell]]) -> MaskCost:
    found = [(masks, masks * cell.length) for masks, cell in counted]
    return MaskCost(sum(masks for masks, _ in found), sum(elements for _, elements in found))


def _present(parameters: Parameters, name: str, users: Sequence[int] | None) -> set[int]:
    everybody = range(parameters.N)
    return set(everybody if users is None else validate.users(name, users, parameters.N))


# --------------------------------------------------------------------------------------------------------- error


def error_bound(parameters: Parameters) -> Fraction:
    """Return the bound on E||p' - p||^2, where p' is the mean of all N quantised inputs and p the mean of the inputs.

    The bound is the sum over all cells of L |S| (r2 - r1)^2 / (4 N^2 (K - 1)^2), for any lengths and sizes. It is
    attained if every number is midway between two levels.
    """
    width = Fraction(parameters.range.high) - Fraction(parameters.range.low)
    cells = (Fraction(cell.length * len(cell.members), (cell.levels - 1) ** 2) for cell in parameters.parts)
    return width**2 / (4 * parameters.N**2) * sum(cells, Fraction(0))


guard(__name__)
