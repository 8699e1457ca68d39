"""HeteroSAg: SecAgg on segments, each quantised and masked by a cell of one or two subgroups.

====================  ==========================================
paper                 here
====================  ==========================================
R, S                  `ring`, `members` of a `Cell`; see `heterosag.plan`
y_i^l                 `masked` of `secagg.mask_update`, cell by cell
x_U^l                 `total` of a `CellSum`
====================  ==========================================

The state of a party holds its SecAgg state as `base`, and the steps of SecAgg act on `base`. An input in SecAgg has
parts; here the cells are these parts.

Source: HeteroSAg, sections 4 and appendix G; spec/heterosag.md (HSA-13 to HSA-22, HSA-27 to HSA-29).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import packing, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.participation_classes import small_class
from secagg_spec.arithmetic.validate import UintArray, frozen
from secagg_spec.protocols import codec, steps
from secagg_spec.protocols.begun import LAST_ROUND, later_round
from secagg_spec.protocols.heterosag.averages import CellSum
from secagg_spec.protocols.heterosag.plan import Cell, Parameters, cells_of
from secagg_spec.protocols.secagg import round as secagg

PROTOCOL = "heterosag"
PHASES = secagg.PHASES


# ---------------------------------------------------------------------------------------------------- messages


@dataclass(frozen=True, eq=False)
class MaskedSegments(codec.Message):
    """The masked segments in the packed form, and the neighbours whose masks they contain, ascending."""

    TYPE: ClassVar[int] = 1281
    neighbours: codec.Users
    segments: codec.Opaque


def pack_segments(cells: Sequence[secagg.Part], masked: UintArray) -> bytes:
    """Return masked segments, d elements, in the packed form for the cells of their sender (HSA-15).

    Raises
    ------
    LengthMismatch, NonCanonical
        There are not d elements, each below the modulus of its cell.
    ParameterError
        The cells are not those of the segments of an input, in order.
    """
    _check_cells(cells)
    masked = validate.elements("masked", masked, None, (cells[-1].stop,))
    for cell in cells:
        cell.ring.check(f"masked, segment {cell.segment}", cell.of(masked), None)
    return b"".join(packing.pack(cell.of(masked), cell.ring.modulus) for cell in cells)


def unpack_segments(cells: Sequence[secagg.Part], data: bytes) -> UintArray:
    """Return the d elements of packed segments.

    Raises
    ------
    LengthMismatch, NonCanonical
        They are not in the packed form (HSA-16).
    ParameterError
        The cells are not those of the segments of an input, in order.
    """
    _check_cells(cells)
    sizes = [packing.packed_bytes(cell.length, cell.ring.modulus) for cell in cells]
    if len(validate.octets("data", data)) != sum(sizes):
        raise errors.LengthMismatch("len(data)", len(data), f"{sum(sizes)} bytes")
    ends = np.cumsum(sizes).tolist()
    pieces = [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    numbers = [packing.unpack(piece, cell.length, cell.ring.modulus) for cell, piece in zip(cells, pieces, strict=True)]
    return np.concatenate(numbers)


def _check_cells(cells: Sequence[secagg.Part]) -> None:
    """Refuse cells that do not begin at 0 and follow on each other: elements would be left out, or change places."""
    end = 0
    for at, cell in enumerate(validate.sequence("cells", cells, "cells")):
        if cell.start != end:
            raise errors.ParameterError(f"cells[{at}].start", cell.start, f"{end}, where the cell before it ends")
        end = cell.stop
    if not end:
        raise errors.ParameterError("cells", "none", "one of each segment")


def read_segments(round: secagg.Round, sender: int, data: bytes) -> UintArray:
    """Return the d elements of the packed segments of a sender.

    Raises
    ------
    Malformed
        They are not in the packed form; the sender is blamed (HSA-16).
    ParameterError
        The sender is not a user.
    """
    sender = validate.integer("sender", sender, 0, round.parameters.N - 1)
    try:
        return frozen(unpack_segments(round.parts_of(sender), data))
    except errors.ParameterError as error:
        raise errors.Malformed(f"segments of {sender}: {error}", (sender,)) from error


# ------------------------------------------------------------------------------------------------------ states


@dataclass(frozen=True, eq=False)
class UserState(steps.ProfileState):
    """The state of one user between its steps; `past` are the survivors of the requests it answered earlier."""

    base: secagg.UserState
    parameters: Parameters
    past: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, eq=False)
class ServerState(steps.ProfileState):
    """The state of the server between its steps.

    `sums` are the sums of the cells with survivors; `past` are the survivors of all its earlier requests.
    """

    base: secagg.ServerState
    parameters: Parameters
    past: tuple[frozenset[int], ...] = ()
    sums: tuple[CellSum, ...] = ()

    @property
    def aggregate(self) -> UintArray | None:
        """The sums, by segment and then by the first subgroup of the cell, concatenated, once they are known."""
        return np.concatenate([found.total for found in self.sums]) if self.sums else None


def agreed(parameters: Parameters, session: bytes, number: int) -> secagg.Round:
    """Return what all parties of a round agree on, with the protocol's name in every key (HSA-22)."""
    return secagg.Round(parameters, parameters.graph(), session, number, PROTOCOL)


def user_start(
    parameters: Parameters,
    session: bytes,
    number: int,
    user: int,
    update: UintArray,
    past: Sequence[Collection[int]] = (),
) -> UserState:
    """Return the state of a user before its first step.

    Parameters
    ----------
    parameters, session, number
        The parameters, the session id of 16 bytes, and the round number.
    user : int
    update : array (d,)
        The quantised input; see `quantize_update`.
    past : sequence of sets of users
        The survivors of the requests that the user answered earlier in this session (HSA-27).

    Raises
    ------
    LengthMismatch, NonCanonical
        The input does not have d elements, or holds a number that is not below the K of its cell (HSA-13).
    ParameterError
        The user is not on the roster, or `past` does not hold sets of users.
    """
    update = validate.elements("update", update, None, (parameters.d,))
    for cell in cells_of(parameters, user):
        _below("update", update, cell)
    base = secagg.user_start(agreed(parameters, session, number), user, update)
    return UserState(base, parameters, _answered(parameters, past))


def _answered(parameters: Parameters, past: Sequence[Collection[int]]) -> tuple[frozenset[int], ...]:
    """Return the survivors of earlier requests as sets of users."""
    sets = enumerate(validate.sequence("past", past, "sets of users"))
    return tuple(_set_of(parameters, f"past[{at}]", members) for at, members in sets)


def _set_of(parameters: Parameters, name: str, users: Collection[int]) -> frozenset[int]:
    """Return users of the roster, given as a set or a sequence, as a set."""
    return frozenset(validate.users(name, list(users) if isinstance(users, Set) else users, parameters.N))


def _below(name: str, update: UintArray, cell: Cell) -> None:
    large = cell.of(update) >= np.uint64(cell.levels)
    if large.any():
        at = cell.start + int(np.argmax(large))
        raise errors.NonCanonical(f"{name}[{at}]", int(update[at]), f"in [0, {cell.levels}), in segment {cell.segment}")


def server_start(
    parameters: Parameters, session: bytes, number: int, past: Sequence[Collection[int]] = ()
) -> ServerState:
    """Return the state of the server before its first step; `past` are the survivors of its requests (HSA-28)."""
    base = secagg.server_start(agreed(parameters, session, number))
    return ServerState(base, parameters, _answered(parameters, past))


def user_again(state: UserState, number: int, update: UintArray) -> UserState:
    """Return the state of a user before another round of its session, with its earlier answers (HSA-27, HSA-29).

    Parameters
    ----------
    state : UserState
        The state of the user at the end of a round, or at the point where it left the round.
    number : int
        The number of the new round, above the number of the last one.
    update : array (d,)
        The quantised input of this round.

    Raises
    ------
    ParameterError
        The number is not above the last one.
    """
    round = state.base.round
    return user_start(state.parameters, round.session, _later(round, number), state.base.user, update, past=state.past)


def server_again(state: ServerState, number: int) -> ServerState:
    """Return the state of the server before another round of its session; see `user_again` (HSA-28, HSA-29)."""
    round = state.base.round
    return server_start(state.parameters, round.session, _later(round, number), past=state.past)


def _later(round: secagg.Round, number: int) -> int:
    return later_round(round.number, number)


# ------------------------------------------------------------------------------------------------------- steps


@steps.row(
    *("masked_input", steps.Role.USER),
    receives=(secagg.SecretShares,),
    sends=(MaskedSegments,),
    senders=lambda user: set(user.base.peers) - {user.base.user},
)
def user_masked_input(state: UserState, inbox: steps.Inbox) -> tuple[UserState, steps.Outbox]:
    """Send the masked segments in the packed form (HSA-14, HSA-15)."""
    base, outbox = secagg.user_masked_input.take(state.base, inbox, randomness={})
    return replace(state, base=base), tuple(_packed(state, m) for m in outbox if isinstance(m, secagg.MaskedInput))


@steps.row(
    *("masked_input", steps.Role.SERVER),
    receives=(MaskedSegments,),
    sends=(secagg.UnmaskRequest,),
    senders=lambda server: server.base.sharers,
)
def server_masked_input(state: ServerState, inbox: Sequence[MaskedSegments]) -> tuple[ServerState, steps.Outbox]:
    """Add the masked segments cell by cell, and ask for the shares that unmask the sums (HSA-16, HSA-17, HSA-28)."""
    plain = [_unpacked(state, message) for message in inbox]
    base, outbox = secagg.server_masked_input.take(state.base, plain, randomness={})
    check_cells(state.parameters, base.survivors)
    check_past(state.parameters, base.survivors, state.past)
    return replace(state, base=base, past=(*state.past, frozenset(base.survivors))), outbox


@steps.row("unmasking", steps.Role.USER, receives=(secagg.UnmaskRequest,), sends=(secagg.UnmaskShares,), one=True)
def user_unmasking(state: UserState, request: secagg.UnmaskRequest) -> tuple[UserState, steps.Outbox]:
    """Answer a request if every cell has enough survivors, in this round and with earlier ones (HSA-18, HSA-27)."""
    survivors, _ = secagg.check_request(state.base, request)
    check_cells(state.parameters, survivors)
    check_past(state.parameters, survivors, state.past)
    base, outbox = secagg.user_unmasking.take(state.base, (request,), randomness={})
    return replace(state, base=base, past=(*state.past, frozenset(survivors))), outbox


@steps.row(
    "unmasking", steps.Role.SERVER, receives=(secagg.UnmaskShares,), senders=lambda server: server.base.survivors
)
def server_unmasking(state: ServerState, inbox: steps.Inbox) -> tuple[ServerState, steps.Outbox]:
    """Recover the secrets and remove the masks, cell by cell (HSA-19, HSA-20)."""
    base, outbox = secagg.server_unmasking.take(state.base, inbox, randomness={})
    return replace(state, base=base, sums=cell_sums(state.parameters, base.survivors, base.sums)), outbox


TABLE: steps.Table = steps.of_profile(
    UserState,
    ServerState,
    *(step.on_base() for step in secagg.TABLE if step.phase in ("advertise_keys", "share_keys")),
    *(user_masked_input, server_masked_input, user_unmasking, server_unmasking),
)


# ---------------------------------------------------------------------------------------------- what is checked


def check_cells(parameters: Parameters, survivors: Collection[int]) -> None:
    """Refuse survivors if some cell has at least one of them but fewer than T + 2 (HSA-17, HSA-18).

    Raises
    ------
    TooFewSurvivors
        There is such a cell.
    ParameterError
        The survivors are not distinct users of the roster.
    """
    least, present = parameters.T + 2, _set_of(parameters, "survivors", survivors)
    for cell in parameters.parts:
        left = len(cell.members & present)
        if 0 < left < least:
            what = f"{left} of the users of subgroups {list(cell.subgroups)} survive in segment {cell.segment}"
            raise errors.TooFewSurvivors(f"{what}; none or at least T + 2 = {least} are needed")


def check_past(parameters: Parameters, survivors: Collection[int], past: Sequence[frozenset[int]]) -> None:
    """Refuse survivors if, with earlier survivors, they separate too few users of a cell (HSA-27, HSA-28).

    Raises
    ------
    TooFewSurvivors
        In some cell, a nonempty class of users that are in the same sets has fewer than T + 2 members.
    ParameterError
        The survivors, or those of an earlier round, are not distinct users of the roster.
    """
    least = parameters.T + 2
    past, survivors = _answered(parameters, past), _set_of(parameters, "survivors", survivors)
    for cell in parameters.parts:
        users = small_class([cell.members & members for members in (*past, frozenset(survivors))], least)
        if users is not None:
            what = f"with earlier rounds, the sums of segment {cell.segment} tell users {sorted(users)} from the others"
            raise errors.TooFewSurvivors(f"{what}; at least T + 2 = {least} have to be together")


def cell_sums(parameters: Parameters, survivors: Collection[int], totals: Sequence[UintArray]) -> tuple[CellSum, ...]:
    """Return the sums of the cells with survivors; `totals` has one sum for each cell (HSA-19).

    Raises
    ------
    LengthMismatch
        There is not one sum for each cell, or one has another length than its segment.
    ParameterError
        The survivors are not distinct users of the roster, or a sum is no uint64 array.
    Malformed
        A sum is not possible for the number of survivors in the cell; all of these survivors are blamed (HSA-20).
    """
    present = _set_of(parameters, "survivors", survivors)
    if len(validate.sequence("totals", totals, "arrays")) != len(parameters.parts):
        raise errors.LengthMismatch("totals", len(totals), f"{len(parameters.parts)}, one sum for each cell")
    for at, (cell, total) in enumerate(zip(parameters.parts, totals, strict=True)):
        validate.array_shape(f"totals[{at}]", validate.array(f"totals[{at}]", total, np.uint64), (cell.length,))
    found = (_cell_sum(cell, present, total) for cell, total in zip(parameters.parts, totals, strict=True))
    return tuple(each for each in found if each.survivors)


def _cell_sum(cell: Cell, survivors: frozenset[int], total: UintArray) -> CellSum:
    """Return the sum of a cell if it is possible for the number of its survivors (HSA-20)."""
    present = tuple(sorted(cell.members & survivors))
    most = len(present) * (cell.levels - 1)
    if present and int(total.max()) > most:
        what = f"segment {cell.segment}: {len(present)} users cannot have the sum {int(total.max())}, only up to {most}"
        raise errors.Malformed(what, present)
    return CellSum(cell, present, frozen(total))


# ------------------------------------------------------------------------------------------------- whole round


@dataclass(frozen=True, eq=False)
class RoundResult(validate.Plain):
    """The end of a round: the sum of each cell with survivors, all survivors, and every step that was taken."""

    sums: tuple[CellSum, ...]
    contributors: tuple[int, ...]
    transcript: tuple[steps.Event, ...]


def run_round(
    parameters: Parameters,
    updates: UintArray,
    *,
    randomness: Mapping[int, steps.Randomness],
    dropouts: Mapping[str, Collection[int]] = MappingProxyType({}),
    session: bytes,
    round: int,
) -> RoundResult:
    """Run a whole round among honest parties, dropouts included.

    Parameters
    ----------
    parameters : Parameters
    updates : array (N, d)
        The quantised input of each user; see `quantize_update`.
    randomness : mapping from user to sampled values
        The sampled values of each user that takes part in ``advertise_keys``; see `secagg.draw_randomness`.
    dropouts : mapping from phase to users
        The users that drop out just before their step in a phase.
    session, round
        The session id (16 bytes) and the round number.

    Returns
    -------
    RoundResult
        `combine` makes an aggregate of its sums.

    Raises
    ------
    TooFewSurvivors
        Too few users are left to go on, in total or in a cell (HSA-21).
    ParameterError
        The inputs do not fit the parameters.
    """
    network = open_round(parameters, updates, session=session, round=round)
    steps.run_synchronous(network, dropouts, randomness)
    server = network.states[steps.SERVER]
    return RoundResult(server.sums, server.base.survivors, tuple(network.transcript))


def open_round(parameters: Parameters, updates: UintArray, *, session: bytes, round: int) -> steps.Network:
    """Return the network of a round before its first step; the arguments are those of `run_round`."""
    updates = validate.elements("updates", updates, None, (parameters.N, parameters.d))
    number = validate.integer("round", round, 0, LAST_ROUND)
    for user in range(parameters.N):
        for cell in cells_of(parameters, user):
            _below(f"updates[{user}]", updates[user], cell)
    states: dict[int, object] = {steps.SERVER: server_start(parameters, session, number)}
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, number, user, updates[user])
    return steps.Network(TABLE, states)


# ----------------------------------------------------------------------------------------------------- helpers


def _packed(state: UserState, message: secagg.MaskedInput) -> MaskedSegments:
    own = state.base.round.parts_of(state.base.user)
    return MaskedSegments(*secagg.envelope(message), message.neighbours, pack_segments(own, message.masked))


def _unpacked(state: ServerState, message: MaskedSegments) -> secagg.MaskedInput:
    masked = read_segments(state.base.round, message.sender, message.segments)
    return secagg.MaskedInput(*secagg.envelope(message), message.neighbours, masked)


guard(__name__)
