"""Planted bugs of HeteroSAg's round: masks of segments, the packed form, cells, and what keys are bound to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from secagg_spec.arithmetic import packing
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.conformance.heterosag_numbers import members
from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.targets import reference
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import Malformed, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import heterosag, secagg
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag_averages import CellSum
from secagg_spec.protocols.heterosag_plan import Cell, Parameters
from secagg_spec.protocols.shape import SERVER, Network, Role, run_synchronous

Function = Callable[..., Any]
Change = Callable[[list[Any]], list[Any]]
_HSA = "secagg_spec.protocols.heterosag"
_PLAN = "secagg_spec.protocols.heterosag_plan"
_SAG = "secagg_spec.protocols.secagg"
_PACKING = "secagg_spec.arithmetic.packing"
_TARGET = "secagg_spec.conformance.targets.reference_heterosag_round"
_RANGE = Range(-1.0, 1.0)
_NOBODY: Mapping[str, Sequence[int]] = MappingProxyType({})
_REQUEST = 6


# ------------------------------------------------------------------------------------- the rounds of the witnesses


def _numbers(spare: int = 1) -> Parameters:
    """Return two groups of one subgroup each, of different levels, which can lose users."""
    size = 3 + spare
    return Parameters(2 * size, 1, 1, 3, 5, (size, size), (1, 1), (3, 6), _RANGE)


def _network(p: Parameters, past: Sequence[frozenset[int]] = ()) -> Network:
    updates = np.arange(p.N * p.d, dtype=np.uint64).reshape(p.N, p.d) % np.uint64(3)
    network = heterosag.open_round(p, updates, session=b"mutants of cells", round=9)
    for party in (SERVER, *range(p.N)):
        network.states[party] = replace(network.states[party], past=tuple(past))
    return network


def _sampled(p: Parameters) -> Any:
    return secagg.draw_randomness(p, {user: SeededSource(b"cells", str(user)) for user in range(p.N)})


def _sent(gone: Mapping[str, Sequence[int]] = _NOBODY, past: Sequence[frozenset[int]] = ()) -> object:
    """Return what is sent in a round, and its sums; or how it ends."""
    p = _numbers()
    network = _network(p, past)
    try:
        run_synchronous(network, gone, _sampled(p))
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__
    sent = [encode(message).hex() for event in network.transcript for message in event.sent]
    return sent, network.states[SERVER].aggregate.tolist()


def _taken(row: int, party: int, change: Change, gone: Mapping[str, Sequence[int]] = _NOBODY) -> object:
    """Return what a party does in one row of the table, on an inbox that was changed, or how it refuses it."""
    p = _numbers()
    network, sampled = _network(p), _sampled(p)
    away: set[int] = set()
    for step in heterosag.TABLE[:row]:
        away |= set(gone.get(step.phase, ())) if step.role is Role.USER else set()
        for each in [SERVER] if step.role is Role.SERVER else sorted(set(range(p.N)) - away):
            network.take(step, each, {name: sampled[each][name] for name in step.randomness})
    step = heterosag.TABLE[row]
    values = {name: sampled[party][name] for name in step.randomness}
    try:
        state, outbox = step.run(network.states[party], change(list(network.mail(step, party))), randomness=values)
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__, sorted(getattr(error, "blamed", ()))
    return state.phase, [encode(message).hex() for message in outbox]


def _outcome(call: Callable[[], Any]) -> object:
    try:
        return repr(call())
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__, sorted(getattr(error, "blamed", ()))


def _thinned(left: int) -> Callable[[], object]:
    """Return the witness that so many survivors of one subgroup, and all of the other one, are refused.

    A server refuses them for the companions that they have as well, so the count of cells is looked at by itself.
    """
    survivors = [*range(left), *range(4, 8)]
    return lambda: _outcome(lambda: heterosag.check_cells(_numbers(), survivors))


def _asked(gone: int) -> Callable[[], object]:
    """Return the witness of a user that is asked when so many users of its subgroup have dropped out."""
    dropped = tuple(range(1, 1 + gone))

    def change(mail: list[Any]) -> list[Any]:
        left = tuple(user for user in mail[0].survivors if user not in dropped)
        return [replace(mail[0], survivors=left, dropped=dropped)]

    return lambda: _taken(_REQUEST, 0, change)


# ------------------------------------------------------------------------------------------------ masks of segments


@mutant(
    "masks-with-users-outside-the-cell",
    "HSA-14",
    "wrong sums: a segment has masks that are shared with users of other cells, which nobody cancels modulo its R",
    f"{_SAG}:_masked",
    _sent,
    kind="sum",
    source="wrong term",
)
def _outside_the_cell(right: Function) -> Function:
    def wrong(state: Any, part: Any, received: Any) -> UintArray:
        masked: UintArray = right(state, part, received)
        for (_, peer), key in sorted(state.mask_keys.items()):
            if peer in received and peer not in part.members:
                combine = part.ring.add if state.user < peer else part.ring.subtract
                masked = combine(masked, expand(key, part.ring, part.length))
        return masked

    return wrong


@mutant(
    "segments-numbered-from-1",
    "HSA-14",
    "masks do not cancel: the number of a segment in its keys is one too large",
    f"{_SAG}:Round.parts_of",
    _sent,
    kind="form",
    source="off by one",
)
def _from_1(right: Function) -> Function:
    return lambda self, user: tuple(replace(part, segment=part.segment + 1) for part in right(self, user))


@mutant(
    "first-segment-alone-is-masked",
    "HSA-14",
    "privacy: the self mask is left out in all segments but the first",
    f"{_SAG}:_masked",
    _sent,
    kind="privacy",
    source="clause in part",
)
def _bare(right: Function) -> Function:
    def wrong(state: Any, part: Any, received: Any) -> UintArray:
        masked: UintArray = right(state, part, received)
        if part.segment == 0:
            return masked
        return part.ring.subtract(masked, expand(state.self_keys[part.segment], part.ring, part.length))  # type: ignore[no-any-return]

    return wrong


@mutant(
    "modulus-of-all-users",
    "HSA-12",
    "larger messages: the modulus of every cell is that of the sum over all users",
    f"{_PLAN}:Parameters._cell",
    _sent,
    kind="form",
    source="other rule: the modulus of SecAgg",
)
def _all_users(right: Function) -> Function:
    def wrong(self: Parameters, *place: Any) -> Cell:
        cell: Cell = right(self, *place)
        modulus = self.N * (cell.levels - 1) + 1
        return replace(cell, ring=type(cell.ring)(modulus)) if modulus <= 2**32 else cell

    return wrong


@mutant(
    "levels-of-the-larger-subgroup",
    "HSA-12",
    "wrong values: a cell of two groups takes the levels of the one with more",
    f"{_PLAN}:Parameters._cell",
    _sent,
    kind="sum",
    source="other rule: the levels of the larger subgroup",
)
def _larger_levels(right: Function) -> Function:
    return lambda self, segment, start, stop, subgroups: replace(
        right(self, segment, start, stop, subgroups[-1:]),
        members=right(self, segment, start, stop, subgroups).members,
        subgroups=subgroups,
        ring=_ring_of(self, subgroups),
    )


def _ring_of(p: Parameters, subgroups: tuple[int, ...]) -> Any:
    users = sum(len(p.members[subgroup]) for subgroup in subgroups)
    modulus = users * (p.levels[p.group_of[subgroups[-1]]] - 1) + 1
    return Ring(min(modulus, 2**32))


@mutant(
    "one-honest-user-in-a-subgroup",
    "HSA-01",
    "privacy: of a subgroup with T + 1 users T colluders read the segment of one user",
    f"{_PLAN}:_check_groups",
    lambda: _outcome(lambda: replace(_numbers(), sizes=(2, 6))),
    kind="privacy",
    source="off by one",
)
def _one_honest(right: Function) -> Function:
    def wrong(given: Any) -> None:
        try:
            right(given)
        except ParameterError as error:
            fewest = min(size // parts for size, parts in zip(given.sizes, given.subgroups, strict=True))
            if not error.parameter.startswith("sizes[") or fewest != given.T + 1:
                raise

    return wrong


@mutant(
    "input-below-the-modulus-is-enough",
    "HSA-13",
    "wrong sums: a number that is not below K but below the modulus is masked, and the sum is beyond what it can be",
    f"{_HSA}:_below",
    lambda: _outcome(lambda: heterosag.user_start(_numbers(), bytes(16), 0, 0, np.full(5, 5, np.uint64))),
    kind="acceptance",
    source="clause in part",
)
def _below_the_modulus(right: Function) -> Function:
    return lambda update, cell: None


# --------------------------------------------------------------------------------------------------- the packed form


@mutant(
    "packed-highest-bit-first",
    "HSA-15",
    "wrong encoding: the bits of an element stand from the highest on",
    f"{_PACKING}:pack",
    _sent,
    kind="form",
    source="encoding",
)
def _highest_first(right: Function) -> Function:
    def wrong(numbers: UintArray, modulus: int) -> bytes:
        width = packing.bits_of(modulus)
        rows = [[(int(number) >> at) & 1 for at in reversed(range(width))] for number in numbers]
        return np.packbits(np.array(rows, np.uint8).ravel(), bitorder="big").tobytes()

    return wrong


@mutant(
    "packed-with-a-bit-more",
    "HSA-15",
    "larger messages: an element has a bit that it does not need",
    f"{_PACKING}:bits_of",
    _sent,
    kind="form",
    source="off by one",
)
def _bit_more(right: Function) -> Function:
    return lambda modulus: min(right(modulus) + 1, 32)


@mutant(
    "packed-in-words",
    "HSA-15",
    "larger messages: every element has 32 bits",
    f"{_PACKING}:bits_of",
    _sent,
    kind="form",
    source="encoding",
)
def _words(right: Function) -> Function:
    return lambda modulus: 32


@mutant(
    "segments-packed-as-one",
    "HSA-15",
    "wrong encoding: a segment begins in the byte in which the one before it ends",
    f"{_HSA}:pack_segments",
    _sent,
    kind="form",
    source="encoding",
)
def _as_one(right: Function) -> Function:
    def wrong(cells: Sequence[Any], masked: UintArray) -> bytes:
        value, place = 0, 0
        for cell in cells:
            width = packing.bits_of(cell.ring.modulus)
            for number in cell.of(masked):
                value, place = value | int(number) << place, place + width
        return value.to_bytes(-(-place // 8), "little")

    return wrong


def _first_changed(change: Callable[[bytes], bytes]) -> Callable[[], object]:
    """Return the witness of a server to which the first user sent other bytes as its segments."""
    return lambda: _taken(5, SERVER, lambda mail: [replace(mail[0], segments=change(mail[0].segments)), *mail[1:]])


@mutant(
    "left-over-bits-are-not-looked-at",
    "HSA-16",
    "acceptance: one input has many encodings",
    f"{_PACKING}:unpack",
    _first_changed(lambda data: data[:1] + bytes([data[1] | 128]) + data[2:]),
    kind="acceptance",
    source="clause in part",
)
def _left_over(right: Function) -> Function:
    def wrong(data: bytes, count: int, modulus: int) -> UintArray:
        used = (1 << (count * packing.bits_of(modulus))) - 1
        cleared = (int.from_bytes(data, "little") & used).to_bytes(len(data), "little")
        return right(cleared, count, modulus)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "packed-elements-are-reduced",
    "HSA-16",
    "acceptance: an element that is not below its modulus is reduced",
    f"{_PACKING}:unpack",
    _first_changed(lambda data: bytes([data[0] | 31]) + data[1:]),
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(data: bytes, count: int, modulus: int) -> UintArray:
        width = packing.bits_of(modulus)
        value = int.from_bytes(data, "little")
        if len(data) != packing.packed_bytes(count, modulus) or value >> (count * width):
            return right(data, count, modulus)  # type: ignore[no-any-return]
        numbers = [((value >> (at * width)) & ((1 << width) - 1)) % modulus for at in range(count)]
        return np.array(numbers, np.uint64)

    return wrong


@mutant(
    "segments-of-any-length",
    "HSA-16",
    "acceptance: segments are cut, and filled up with zeros",
    f"{_HSA}:unpack_segments",
    _first_changed(lambda data: data + b"\0"),
    kind="acceptance",
    source="silent repair",
)
def _any_length(right: Function) -> Function:
    def wrong(cells: Sequence[Any], data: bytes) -> UintArray:
        size = sum(packing.packed_bytes(cell.length, cell.ring.modulus) for cell in cells)
        return right(cells, data[:size].ljust(size, b"\0"))  # type: ignore[no-any-return]

    return wrong


@mutant(
    "nobody-is-blamed-for-segments",
    "HSA-16",
    "wrong blame: it is not said whose segments are not in the packed form",
    f"{_HSA}:read_segments",
    _first_changed(lambda data: data + b"\0"),
    kind="refusal",
    source="wrong reason",
)
def _unblamed(right: Function) -> Function:
    def wrong(round: Any, sender: int, data: bytes) -> UintArray:
        try:
            return right(round, sender, data)  # type: ignore[no-any-return]
        except Malformed as error:
            raise Malformed(str(error), ()) from error

    return wrong


# ------------------------------------------------------------------------------------------------------------- cells


def _counted(least: Callable[[Parameters], int], most: Callable[[Parameters], int]) -> Function:
    """Return what refuses cells with another count of survivors: from `least` to `most`."""

    def build(right: Function) -> Function:
        def wrong(parameters: Parameters, survivors: Any) -> None:
            for cell in parameters.parts:
                left = len(cell.members & set(survivors))
                if least(parameters) <= left <= most(parameters):
                    raise TooFewSurvivors(f"{left} users of the subgroups {list(cell.subgroups)} survive")

        return wrong

    return build


mutant(
    "cell-of-one-survivor",
    "HSA-17",
    "privacy: a cell with one survivor is unmasked, and its sum is the segment of this user",
    f"{_HSA}:check_cells",
    _thinned(1),
    kind="privacy",
    source="clause in part",
)(_counted(lambda p: 2, lambda p: p.T + 1))
mutant(
    "cell-of-t-plus-one",
    "HSA-17",
    "privacy: T colluders in a cell of T + 1 survivors subtract their own segments and read one user's",
    f"{_HSA}:check_cells",
    _thinned(2),
    kind="privacy",
    source="off by one",
)(_counted(lambda p: 1, lambda p: p.T))
mutant(
    "lost-subgroup-ends-the-round",
    "HSA-21",
    "failure: a round is ended because of a cell of which nobody is left",
    f"{_HSA}:check_cells",
    lambda: _sent({"masked_input": range(4)}),
    kind="refusal",
    source="clause too strict",
)(_counted(lambda p: 0, lambda p: p.T + 1))


@mutant(
    "users-trust-the-server-with-cells",
    "HSA-18",
    "privacy: a user answers a request that leaves a cell one survivor",
    f"{_HSA}:user_unmasking",
    _asked(3),
    kind="privacy",
    source="clause left out",
)
def _trusting(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        with suppress(TooFewSurvivors):
            return right(state, inbox, randomness=randomness)
        survivors, _ = secagg.check_request(state.base, inbox[0])
        if state.past:
            heterosag.check_past(state.parameters, survivors, state.past)
        base, outbox = secagg.user_unmasking(state.base, inbox, randomness=randomness)
        return replace(state, base=base), outbox

    return wrong


@mutant(
    "server-leaves-cells-to-the-users",
    "HSA-17",
    "failure: the server asks for what no user will answer, and keeps what it was sent",
    f"{_HSA}:server_masked_input",
    lambda: _taken(5, SERVER, lambda mail: [message for message in mail if message.sender >= 3]),
    kind="acceptance",
    source="clause left out",
)
def _unseen(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        with suppress(TooFewSurvivors):
            return right(state, inbox, randomness=randomness)
        rounds = state.base.round
        plain = [
            secagg.MaskedInput(
                m.session,
                m.round,
                m.sender,
                m.receiver,
                m.neighbours,
                heterosag.read_segments(rounds, m.sender, m.segments),
            )
            for m in inbox
        ]
        base, outbox = secagg.server_masked_input(state.base, plain, randomness=randomness)
        return replace(state, base=base), outbox

    return wrong


# ------------------------------------------------------------------------------------------------------------ recovery


@mutant(
    "sign-of-equation-10",
    "HSA-19",
    "wrong sums: as soon as somebody drops out, what is left is taken off where it has to be added",
    f"{_SAG}:unmask",
    lambda: _sent({"masked_input": [1]}),
    kind="sum",
    source="paper: HET-EQ10",
)
def _equation_10(right: Function) -> Function:
    return lambda ring, total, own, left: right(ring, total, own, ((j, i, mask) for i, j, mask in left))


@mutant(
    "cells-by-their-last-subgroup",
    "HSA-19",
    "wrong sums: the sums of a segment stand in another order than that of the first subgroups",
    f"{_HSA}:cell_sums",
    _sent,
    kind="sum",
    source="order",
)
def _last_subgroup(right: Function) -> Function:
    def wrong(*arguments: Any) -> Any:
        return tuple(sorted(right(*arguments), key=lambda found: (found.cell.segment, -found.cell.subgroups[0])))

    return wrong


@mutant(
    "empty-cells-have-the-sum-zero",
    "HSA-19",
    "wrong values: a cell of which nobody is left counts with a sum of zeros",
    f"{_HSA}:cell_sums",
    lambda: _sent({"masked_input": range(4)}),
    kind="sum",
    source="wrong term",
)
def _empty_cells(right: Function) -> Function:
    def wrong(parameters: Any, survivors: Any, totals: Any) -> Any:
        found = iter(right(parameters, survivors, totals))
        empty = [
            None if cell.members & set(survivors) else CellSum(cell, (), cell.ring.zeros(cell.length))
            for cell in parameters.parts
        ]
        return tuple(next(found) if each is None else each for each in empty)

    return wrong


def _impossible() -> object:
    """Return what becomes of a sum that three users of a cell of four cannot have."""
    p = _numbers()
    totals = [np.full(cell.length, cell.ring.modulus - 1, np.uint64) for cell in p.parts]
    return _outcome(lambda: [found.total.tolist() for found in heterosag.cell_sums(p, range(1, p.N), totals)])


@mutant(
    "impossible-sums-are-returned",
    "HSA-20",
    "wrong sums: what no honest users can have sent goes into the aggregate",
    f"{_HSA}:_cell_sum",
    _impossible,
    kind="acceptance",
    source="clause left out",
)
def _returned(right: Function) -> Function:
    def wrong(cell: Cell, survivors: Any, total: UintArray) -> Any:
        return CellSum(cell, tuple(sorted(cell.members & set(survivors))), total)

    return wrong


@mutant(
    "all-survivors-are-blamed-for-a-sum",
    "HSA-20",
    "wrong blame: survivors outside the cell are blamed as well",
    f"{_HSA}:_cell_sum",
    lambda: _outcome(lambda: heterosag.cell_sums(_lonely(), range(1, 8), _too_large(_lonely()))),
    kind="refusal",
    source="wrong reason",
)
def _all_blamed(right: Function) -> Function:
    def wrong(cell: Cell, survivors: Any, total: UintArray) -> Any:
        try:
            return right(cell, survivors, total)
        except Malformed as error:
            raise Malformed(str(error), survivors) from error

    return wrong


def _lonely() -> Parameters:
    """Return numbers with which the first cell is a subgroup alone."""
    return replace(_numbers(), matrix="separate")


def _too_large(p: Parameters) -> list[UintArray]:
    return [np.full(cell.length, cell.ring.modulus - 1, np.uint64) for cell in p.parts]


# --------------------------------------------------------------------------------------------------- over the rounds


mutant(
    "earlier-rounds-are-forgotten",
    "HSA-27",
    "privacy: the difference of two rounds is the segment of the user that was left out of one",
    f"{_HSA}:check_past",
    lambda: _sent({"masked_input": [1]}, [frozenset(range(8))]),
    kind="privacy",
    source="paper: heterosag, over rounds",
)(lambda right: lambda parameters, survivors, past: right(parameters, survivors, ()))
mutant(
    "the-last-round-alone-is-remembered",
    "HSA-27",
    "privacy: a user is left out of a round after another one that hides it",
    f"{_HSA}:check_past",
    lambda: _sent({"masked_input": [1]}, [frozenset(range(8)), frozenset(range(4, 8))]),
    kind="privacy",
    source="clause in part",
)(lambda right: lambda parameters, survivors, past: right(parameters, survivors, past[-1:]))


def _asked_again() -> object:
    """Return the survivors of a round without user 1, after one of everybody that the server alone knows of."""
    p = _numbers()
    network = _network(p)
    network.states[SERVER] = replace(network.states[SERVER], past=(frozenset(range(p.N)),))
    with suppress(TooFewSurvivors):
        run_synchronous(network, {"masked_input": [1]}, _sampled(p))
    return network.states[SERVER].base.survivors


mutant(
    "server-forgets-its-requests",
    "HSA-28",
    "privacy: the server asks for survivors that with those of an earlier round tell about one user",
    f"{_HSA}:server_masked_input",
    _asked_again,
    kind="privacy",
    source="paper: heterosag, over rounds",
)(lambda right: lambda state, inbox, *, randomness: right(replace(state, past=()), inbox, randomness=randomness))


mutant(
    "round-number-again",
    "HSA-29",
    "privacy: a round with the number of the last one has its masks",
    f"{_HSA}:_later",
    lambda: _outcome(lambda: heterosag.server_again(_network(_numbers()).states[SERVER], 9)),
    "tests/protocols/test_heterosag.py::test_a_party_goes_on_with_its_parameters_and_a_later_round",
    kind="privacy",
    source="clause left out",
)(lambda right: lambda last, number: number)


# --------------------------------------------------------------------------------------------- what keys are bound to


mutant(
    "segments-bound-to-secagg",
    "HSA-22",
    "masks do not cancel, or a round of SecAgg has the masks of one of HeteroSAg",
    f"{_HSA}:agreed",
    _sent,
    kind="privacy",
    source="field not bound: the protocol",
)(lambda right: lambda *arguments: replace(right(*arguments), protocol="secagg"))


def _digest(**changed: Any) -> str:
    return replace(_numbers(), **changed).digest.hex()


def _hashed(change: Callable[[Parameters], Parameters]) -> Function:
    """Return a digest of other parameters."""
    return lambda right: property(lambda self: right.func(change(self)))


mutant(
    "range-not-in-the-hash",
    "HSA-22",
    "privacy: one mask serves under two ranges",
    f"{_PLAN}:Parameters.digest",
    lambda: _digest(range=Range(0.0, 1.0)),
    kind="privacy",
    source="field not bound: the range",
)(_hashed(lambda p: replace(p, range=_RANGE)))
mutant(
    "matrix-not-in-the-hash",
    "HSA-22",
    "privacy: parties with different matrices do not notice it",
    f"{_PLAN}:Parameters.digest",
    lambda: _digest(matrix="perfect"),
    kind="privacy",
    source="field not bound: the matrix",
)(_hashed(lambda p: replace(p, matrix="cyclic")))


@mutant(
    "groups-hashed-as-lists",
    "HSA-22",
    "masks do not cancel: the numbers of the groups are hashed in another order",
    f"{_PLAN}:Parameters.digest",
    _digest,
    kind="form",
    source="order",
)
def _as_lists(right: Function) -> Function:
    def digest(self: Parameters) -> bytes:
        numbers = [(name, getattr(self, name)) for name in ("N", "D", "T", "t", "d")]
        lists = zip(("users", "subgroups", "levels"), (self.sizes, self.subgroups, self.levels), strict=True)
        return hash_parameters([*numbers, *((name, number) for name, row in lists for number in row)])

    return property(digest)  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------- what is asked


def _mask_params(**changed: Any) -> dict[str, Any]:
    p = _numbers()
    key = "07" * 32
    given = {"session": "00" * 16, "round": "0", "user": 0, "self_seed": key, "keys": [key] * p.N}
    own = {"secrets": [[user, key] for user in range(1, p.N)], "update": "00000000" * p.d}
    return {**members(p), **given, **own, **changed}


def _unmask_params(**changed: Any) -> dict[str, Any]:
    p, key = _numbers(), "07" * 32
    users = list(range(1, p.N))
    sizes = {u: sum(packing.packed_bytes(c.length, c.ring.modulus) for c in p.parts if u in c.members) for u in users}
    given = {
        "session": "00" * 16,
        "round": "0",
        "keys": [key] * p.N,
        "survivors": users,
        "self_seeds": [key] * (p.N - 1),
    }
    own = {"segments": ["00" * sizes[user] for user in users], "secrets": [[0, user, key] for user in users]}
    return {**members(p), **given, **own, **changed}


def _answered(op: str, params: Mapping[str, Any]) -> Callable[[], object]:
    def witness() -> object:
        answer = reference.build().answer({"id": 1, "op": op, "params": params})
        return answer.get("result") or answer.get("reject", {}).get("code")

    return witness


@mutant(
    "last-secret-of-a-user-wins",
    "ADP-38",
    "acceptance: a second secret with one user takes the place of the first",
    f"{_TARGET}:check_users",
    _answered("heterosag.mask", _mask_params(secrets=[[1, "07" * 32], [1, "08" * 32]])),
    kind="acceptance",
    source="silent repair",
)
def _last_secret(right: Function) -> Function:
    def wrong(name: str, users: Sequence[int], N: int) -> None:
        right(name, list(dict.fromkeys(users)) if name == "secrets" else users, N)

    return wrong


@mutant(
    "missing-secrets-are-passed-over",
    "ADP-38",
    "wrong sums: a mask stays in them since its secret is missing",
    f"{_TARGET}:_left",
    _answered("heterosag.unmask", _unmask_params(secrets=[[0, 1, "07" * 32]])),
    kind="acceptance",
    source="silent repair",
)
def _missing(right: Function) -> Function:
    def wrong(parameters: Parameters, survivors: Any, entries: Any) -> Any:
        given = {(user, peer): secret for user, peer, secret in entries}
        dropped = sorted({user for user, _ in given})
        whole = [[user, peer, given.get((user, peer), "00" * 32)] for user in dropped for peer in survivors]
        more = [list(entry) for entry in entries if entry[1] not in survivors]
        return {pair: key for pair, key in right(parameters, survivors, [*whole, *more]).items() if pair in given}

    return wrong


@mutant(
    "survivors-in-any-order",
    "ADP-38",
    "acceptance: one set of survivors has many requests",
    f"{_TARGET}:pairwise",
    _answered("heterosag.unmask", _unmask_params(survivors=[2, 1, *range(3, 8)])),
    kind="acceptance",
    source="clause left out",
)
def _any_order(right: Function) -> Function:
    return lambda users: ()


@mutant(
    "keys-are-fitted",
    "ADP-38",
    "acceptance: keys and seeds are cut to their length, and filled up with zeros",
    f"{_TARGET}:_key",
    _answered("heterosag.mask", _mask_params(self_seed="07" * 33)),
    kind="acceptance",
    source="silent repair",
)
def _fitted(right: Function) -> Function:
    return lambda name, text: bytes.fromhex(text)[:32].ljust(32, b"\0")


@mutant(
    "trim-of-a-mean-is-passed-over",
    "ADP-39",
    "acceptance: a round takes a trim where nothing is trimmed",
    "secagg_spec.arithmetic.averages:combined",
    lambda: _round_with(trim=1),
    kind="acceptance",
    source="silent repair",
)
def _no_trim(right: Function) -> Function:
    return lambda means, counts, method="mean", trim=0: right(means, counts, method, trim * (method == "trimmed"))


def _round_with(**changed: Any) -> object:
    p = _numbers()
    zeros = ["00" * 8 * p.d] * p.N
    drop: dict[str, list[int]] = {phase: [] for phase in heterosag.PHASES}
    params = {**members(p), "clip": False, "x": zeros, "method": "mean", "trim": 0, "drop": drop, **changed}
    answer = reference.build().answer({"id": 1, "op": "heterosag.round", "params": params, "rand": {"rounding": zeros}})
    return answer.get("result") or answer.get("reject", {}).get("code")
