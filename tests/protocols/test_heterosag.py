"""HeteroSAg: rounds with any groups, levels, matrices and dropouts, and messages that cannot be right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import combinations, product
from math import ceil, log2
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic.levels import Range
from secagg_spec.crypto import masks
from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.prg import expand
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import (
    BadShare,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    NonCanonical,
    OutOfRange,
    ParameterError,
    Replay,
    TooFewSurvivors,
    WrongPhase,
)
from secagg_spec.protocols.codec import Message, decode, encode
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import combine, quantize_update
from secagg_spec.protocols.heterosag.plan import PRESETS, UNIT, Parameters, cells_of
from secagg_spec.protocols.heterosag.round import PHASES, TABLE, MaskedSegments, check_cells, check_past
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import SecretShares, UnmaskRequest
from secagg_spec.protocols.steps import SERVER, Network
from tests.arithmetic.test_levels import tolerance
from tests.arithmetic.test_packing import packed
from tests.protocols.heterogeneous import SMALL, Case, case_of, cases, sessions
from tests.protocols.test_secagg import ANSWER, ASK, INPUT, SHARE, UNMASK, attempt, parties, refused, stage
from tests.quick import part, some
from tests.strategies import fewer, integers_of, snapshot, vector

TINY = PRESETS["tiny"]
SEVEN = replace(SMALL, N=7, sizes=(4, 3), D=1)
FATES = ("stays", *PHASES)


# ---------------------------------------------------------------------------------------------------- whole rounds


def succeeds(p: Parameters, fates: Sequence[str]) -> tuple[int, ...] | None:
    """The survivors of a round, when HSA-21 says that it succeeds: worked out on sets, without any message."""

    def taking(phase: str) -> set[int]:
        return {user for user, fate in enumerate(fates) if fate == "stays" or PHASES.index(fate) > PHASES.index(phase)}

    sets = [taking(phase) for phase in PHASES]
    large = all(len(users) >= max(p.t, p.T + 2) for users in sets[:3]) and len(sets[3]) >= p.t
    left = [len(cell.members & sets[2]) for cell in p.parts]
    return tuple(sorted(sets[2])) if large and all(n == 0 or n >= p.T + 2 for n in left) else None


def judge(case: Case, fates: Sequence[str]) -> bool:
    """Whether a round succeeded; either way it is as the text says, and its sums are exact."""
    survivors = succeeds(case.parameters, fates)
    if survivors is None:
        with pytest.raises(TooFewSurvivors) as caught:
            case.run(fates)
        assert not caught.value.blamed
        return False
    result = case.run(fates)
    assert result.contributors == survivors
    found = [(sum_.cell, sum_.survivors, integers_of(sum_.total)) for sum_ in result.sums]
    assert found == case.plain_sums(survivors)
    return True


@pytest.mark.requirement("HSA-14", "HSA-17", "HSA-18", "HSA-19", "HSA-21")
@given(cases(), st.data())
def test_a_round_succeeds_exactly_when_the_text_says_so(case: Case, data: st.DataObject) -> None:
    """Users drop out one by one or by whole subgroups, at each phase."""
    p, some_fate = case.parameters, st.sampled_from(("stays", "stays", "stays", "stays", "stays", *FATES))
    fates = ["stays"] * p.N
    if data.draw(st.booleans()):
        fates = data.draw(st.lists(some_fate, min_size=p.N, max_size=p.N))
    for subgroup in data.draw(st.sets(st.integers(0, p.count - 1), max_size=1)):
        fate = data.draw(st.sampled_from(FATES))
        fates = [fate if user in p.members[subgroup] else old for user, old in enumerate(fates)]
    judge(case, fates)


@pytest.mark.requirement("HSA-17", "HSA-19", "HSA-21")
@pytest.mark.parametrize("phase", part(2, PHASES))
def test_every_set_of_users_that_drops_out_in_one_phase(phase: str) -> None:
    case, outcomes = case_of(SEVEN), list[bool]()
    absent: list[tuple[int, ...]] = [out for size in range(8) for out in combinations(range(7), size)]
    for out in some(7, absent):
        outcomes.append(judge(case, [phase if user in out else "stays" for user in range(7)]))
    if len(outcomes) == 128:
        in_cells = 6 * 2 - 1  # 4, 3 or 0 of the users of subgroup 0, 3 or 0 of those of subgroup 1, and not nobody
        assert sum(outcomes) == (sum(len(out) <= 4 for out in absent) if phase == "unmasking" else in_cells)


@pytest.mark.requirement("HSA-14", "HSA-19")
@pytest.mark.parametrize("matrix", ["cyclic", "perfect", "separate"])
@pytest.mark.parametrize("fill", ["zero", "most"])
def test_extreme_inputs_sum_exactly(matrix: str, fill: str) -> None:
    case = case_of(replace(TINY, matrix=matrix, levels=(2, 10**8), d=7), 1, fill)
    for out in ((), (3,), (8, 9, 10, 11)):
        assert judge(case, ["masked_input" if user in out else "stays" for user in range(12)])


@pytest.mark.requirement("HSA-19")
def test_the_aggregate_is_the_sums_one_after_the_other() -> None:
    network = stage(case_of(TINY), 8)
    server = network.states[SERVER]
    assert server.phase == "done"
    totals = [number for found in server.sums for number in integers_of(found.total)]
    assert integers_of(server.aggregate) == totals
    assert case_of(TINY).open().states[SERVER].aggregate is None


# -------------------------------------------------------------------------------------------------- masked segments


def masked_mail(case: Case, absent: Sequence[int] = ()) -> tuple[Network, list[Any]]:
    """The network before the server adds, and the masked segments that it got."""
    network = stage(case, ASK, absent=absent, since=SHARE)
    return network, list(network.mail(TABLE[ASK], SERVER))


@pytest.mark.requirement("HSA-14", "HSA-15", "HSA-22", "MSK-01", "MSK-02")
@fewer(3)
@given(cases(most=9))
def test_masked_segments_are_those_of_the_text(case: Case) -> None:
    """User 1 shares nothing: nobody masks with it. Every key is of the protocol `heterosag` and of its own segment."""
    p = case.parameters
    if max(p.t, p.T + 2) > p.N - 1:
        return
    _, mail = masked_mail(case, (1,))
    context = Context("heterosag", p.digest, bytes(16), 0, SecretShares.TYPE)
    values = case.randomness
    keys = {user: public_key(values[user]["masking_key"]) for user in range(p.N)}
    there = set(range(p.N)) - {1}
    for message in mail:
        user, wanted = message.sender, b""
        assert message.neighbours == tuple(sorted(there - {user}))
        for cell in cells_of(p, user):
            ring, length = cell.ring, cell.length
            own = masks.self_key(context, values[user]["self_seed"], user, cell.segment)
            y = case.updates[user, cell.start : cell.stop].astype(object) + expand(own, ring, length).astype(object)
            for peer in (cell.members & there) - {user}:
                secret = agree(values[user]["masking_key"], keys[peer])
                key = masks.pairwise_key(context, secret, {user: keys[user], peer: keys[peer]}, cell.segment)
                y = y + (1 if user < peer else -1) * expand(key, ring, length).astype(object)
            wanted += packed([int(number) % ring.modulus for number in y], ring.modulus)
        assert message.segments == wanted


@pytest.mark.requirement("HSA-14")
@given(sessions(most=9))
def test_masks_of_different_segments_are_different_streams(p: Parameters) -> None:
    network = stage(case_of(p), INPUT)
    for user in range(p.N):
        state = network.states[user].base
        used = [*state.mask_keys.values(), *state.self_keys.values()]
        assert len(set(used)) == len(used)
        assert set(state.self_keys) == set(range(p.count))
        partners = {(cell.segment, peer) for cell in cells_of(p, user) for peer in cell.members - {user}}
        assert set(state.mask_keys) == partners


@pytest.mark.requirement("HSA-15")
@given(cases(most=9))
def test_the_packed_form_has_the_size_of_the_text_and_survives(case: Case) -> None:
    p = case.parameters
    _, mail = masked_mail(case)
    for message in mail:
        cells = cells_of(p, message.sender)
        sizes = [ceil(Fraction(cell.length * (cell.ring.modulus - 1).bit_length(), 8)) for cell in cells]
        assert len(message.segments) == sum(sizes)
        numbers = heterosag.unpack_segments(cells, message.segments)
        assert heterosag.pack_segments(cells, numbers) == message.segments
        assert encode(decode(MaskedSegments, encode(message))) == encode(message)


@pytest.mark.requirement("HSA-15")
@pytest.mark.parametrize("n", [3, 4, 8])
def test_the_costs_of_the_text(n: int) -> None:
    """Of unlike K but subgroups alike: n masks on one segment and 2n on each other; the bits that the text says."""
    p = Parameters(3 * n, 0, 1, 3, 9, (n,) * 3, (1,) * 3, (2, 2, 5), UNIT)
    network = stage(case_of(p), INPUT)
    for user in range(p.N):
        state = network.states[user].base
        added = [1 + sum(segment == at for segment, _ in state.mask_keys) for at in range(3)]
        assert sorted(added) == [n, 2 * n, 2 * n]
    sent = network.take(TABLE[INPUT], 0).sent[0]
    assert isinstance(sent, MaskedSegments)
    widths = [ceil(log2(len(cell.members) * (cell.levels - 1) + 1)) for cell in cells_of(p, 0)]
    assert len(sent.segments) == sum(ceil(3 * width / 8) for width in widths)
    if n == 8:
        assert sorted(widths) == [4, 5, 5]


CORRUPT: dict[str, Callable[[bytes], Any]] = {
    "nothing": lambda data: b"",
    "short": lambda data: data[:-1],
    "long": lambda data: data + b"\0",
    "element 15 of 9": lambda data: bytes([data[0] | 0x0F]) + data[1:],
    "left-over bit": lambda data: data[:-1] + bytes([data[-1] | 0x80]),
    "no bytes": list,
    "none": lambda data: None,
}


@pytest.mark.requirement("HSA-16", "ERR-01")
@pytest.mark.parametrize("name", CORRUPT)
def test_segments_that_are_not_packed_are_their_senders_fault(name: str) -> None:
    case = case_of(TINY)
    network, mail = masked_mail(case)
    wrong = replace(mail[2], segments=CORRUPT[name](mail[2].segments))
    error = refused(case, ASK, network, SERVER, [*mail[:2], wrong, *mail[3:]], Malformed)
    assert error.blamed == {2}


@pytest.mark.requirement("HSA-16")
@given(sessions(most=9), st.data())
def test_each_element_and_each_left_over_bit_is_looked_at(p: Parameters, data: st.DataObject) -> None:
    """One byte is put in place of another: it is refused exactly when an element or a left-over bit is wrong."""
    cells = cells_of(p, 0)
    right = heterosag.pack_segments(cells, case_of(p).updates[0])
    at, value = data.draw(st.integers(0, len(right) - 1)), data.draw(st.sampled_from((0, 0x80, 0xFF, 1, 0x55)))
    wrong, fits, start = right[:at] + bytes([value]) + right[at + 1 :], True, 0
    for cell in cells:
        width = (cell.ring.modulus - 1).bit_length()
        size = -(-width * cell.length // 8)
        whole = int.from_bytes(wrong[start : start + size], "little")
        numbers = [whole >> (width * index) & (2**width - 1) for index in range(cell.length)]
        fits = fits and max(numbers) < cell.ring.modulus and whole < 2 ** (width * cell.length)
        start += size
    if fits:
        heterosag.unpack_segments(cells, wrong)
    else:
        with pytest.raises(NonCanonical):
            heterosag.unpack_segments(cells, wrong)


@pytest.mark.requirement("HSA-13")
@pytest.mark.parametrize(
    ("update", "error", "name"),
    [
        (vector([1, 1, 1]), LengthMismatch, "update"),
        (vector([1, 1, 1, 1, 1]), LengthMismatch, "update"),
        (vector([1, 1, 1, 2]), NonCanonical, r"update\[3\] = 2: must be in \[0, 2\), in segment 2"),
        (vector([2, 0, 0, 0]), NonCanonical, r"update\[0\]"),
        (np.array([1, 1, 1, 1]), ParameterError, "update"),
        ([1, 1, 1, 1], ParameterError, "update"),
        (np.array([1.0, 1.0, 1.0, 1.0]), ParameterError, "update"),
        (None, ParameterError, "update"),
    ],
    ids=str,
)
def test_an_input_that_does_not_fit_is_refused(update: Any, error: type[ParameterError], name: str) -> None:
    with pytest.raises(error, match=name):
        heterosag.user_start(TINY, bytes(16), 0, 4, update)


@pytest.mark.requirement("HSA-13")
@given(sessions(), st.data())
def test_each_element_is_below_the_levels_of_its_cell(p: Parameters, data: st.DataObject) -> None:
    user = data.draw(st.integers(0, p.N - 1))
    cell = data.draw(st.sampled_from(cells_of(p, user)))
    update = case_of(p, 1, "most").updates[user].copy()
    heterosag.user_start(p, bytes(16), 0, user, update)
    update[data.draw(st.integers(cell.start, cell.stop - 1))] = cell.levels
    with pytest.raises(NonCanonical, match="update"):
        heterosag.user_start(p, bytes(16), 0, user, update)


# ------------------------------------------------------------------------------------------------------- survivors


@pytest.mark.requirement("HSA-17")
@given(sessions(), st.data())
def test_survivors_are_refused_exactly_when_some_cell_has_few(p: Parameters, data: st.DataObject) -> None:
    survivors = data.draw(st.sets(st.integers(0, p.N - 1)))
    few = [n for n in (len(members & survivors) for members in map(set, p.members)) if 0 < n < p.T + 2]
    pairs = [n for cell in p.parts if 0 < (n := len(cell.members & survivors)) < p.T + 2]
    assert bool(few) == bool(pairs)
    if few:
        with pytest.raises(TooFewSurvivors):
            check_cells(p, survivors)
    else:
        check_cells(p, survivors)


@pytest.mark.requirement("HSA-17", "ERR-01")
@pytest.mark.parametrize("left", range(5))
def test_the_server_ends_when_a_cell_has_few_survivors(left: int) -> None:
    case = case_of(TINY)
    network, mail = masked_mail(case)
    inbox = [message for message in mail if message.sender < 8 + left]
    if left in {1, 2}:
        assert not refused(case, ASK, network, SERVER, inbox, TooFewSurvivors).blamed
    else:
        _, sent = attempt(case, ASK, network, SERVER, inbox)
        assert {message.survivors for message in sent} == {tuple(range(8 + left))}


@pytest.mark.requirement("HSA-18", "ERR-01")
@pytest.mark.parametrize("out", [(8,), (8, 9), (8, 9, 10), (8, 9, 10, 11), (4, 8), (4, 5), (1, 2, 3), (1, 2, 3, 4)])
def test_a_user_refuses_a_request_that_leaves_a_cell_few_survivors(out: tuple[int, ...]) -> None:
    case = case_of(TINY)
    network = stage(case, ANSWER)
    [request] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(request, UnmaskRequest)
    survivors = tuple(user for user in range(12) if user not in out)
    changed = replace(request, survivors=survivors, dropped=out)
    for user in (0, 6):
        few = any(0 < len(set(members) & set(survivors)) < 3 for members in TINY.members)
        if user not in survivors:
            continue
        own = replace(changed, receiver=user)
        if few:
            assert not refused(case, ANSWER, network, user, [own], TooFewSurvivors).blamed
        else:
            state, _ = attempt(case, ANSWER, network, user, [own])
            assert state.past == (frozenset(survivors),)


@pytest.mark.requirement("HSA-18", "HSA-21")
def test_a_request_that_secagg_refuses_is_refused_as_there() -> None:
    case = case_of(TINY)
    network = stage(case, ANSWER)
    [request] = network.mail(TABLE[ANSWER], 0)
    for change, error in (
        ({"survivors": tuple(range(1, 12)), "dropped": (0,)}, InconsistentSets),
        ({"survivors": (0, 1, 2, 3, 4), "dropped": (4, 5, 6, 7)}, InconsistentSets),
        ({"survivors": (1, 0), "dropped": ()}, Malformed),
        ({"dropped": (12,)}, InconsistentSets),
        ({"survivors": (0, 1), "dropped": tuple(range(2, 12))}, TooFewSurvivors),
    ):
        refused(case, ANSWER, network, 0, [replace(request, **change)], error)
    refused(case, ANSWER, network, 0, [], WrongPhase)
    refused(case, ANSWER, network, 0, [request, request], Replay)


@pytest.mark.requirement("HSA-20", "HSA-21", "ERR-01")
@pytest.mark.parametrize("liar", [0, 8])
def test_a_sum_that_survivors_cannot_have_blames_them(liar: int) -> None:
    """Of subgroup 0 user 3 has dropped out, so that the sum of segment 2 is at most 3 of 4, and a liar makes it 4."""
    case = case_of(TINY, 1, "most")
    network = stage(case, ASK, absent=(3,), since=INPUT)
    box = network.waiting[SERVER]
    at = next(at for at, m in enumerate(box) if isinstance(m, MaskedSegments) and m.sender == liar)
    message: Any = box[at]
    cells = cells_of(TINY, liar)
    numbers = heterosag.unpack_segments(cells, message.segments)
    last = cells[-1]
    for step, blamed in ((1, last.members - {3}),):
        numbers[-1] = (int(numbers[-1]) + step) % last.ring.modulus
        box[at] = replace(message, segments=heterosag.pack_segments(cells, numbers))
        for row in (ASK, ANSWER):
            for party in parties(row, 12):
                if party != 3:
                    network.take(TABLE[row], party)
        mail = network.mail(TABLE[UNMASK], SERVER)
        if liar == 0:
            with pytest.raises(Malformed, match="segment 2") as caught:
                attempt(case, UNMASK, network, SERVER, mail)
            assert caught.value.blamed == blamed
        else:  # in a whole cell a sum is at most what so many users can have: it wraps, and is not seen
            state, _ = attempt(case, UNMASK, network, SERVER, mail)
            found = {sum_.cell: integers_of(sum_.total) for sum_ in state.sums}
            assert found[last] == [0]


@pytest.mark.requirement("HSA-20")
@given(cases(most=9), st.data())
def test_a_round_with_a_liar_ends_with_a_possible_sum_or_blame(case: Case, data: st.DataObject) -> None:
    p = case.parameters
    out = data.draw(st.sampled_from(list(range(p.N)) if p.D else [None]))
    fates = ["masked_input" if user == out else "stays" for user in range(p.N)]
    survivors = succeeds(p, fates)
    if survivors is None:
        return
    absent = () if out is None else (out,)
    network = stage(case, ASK, absent=absent, since=INPUT)
    box = network.waiting[SERVER]
    [at] = [at for at, m in enumerate(box) if isinstance(m, MaskedSegments) and m.sender == survivors[0]]
    message: Any = box[at]
    cells = cells_of(p, survivors[0])
    numbers, cell = heterosag.unpack_segments(cells, message.segments), data.draw(st.sampled_from(cells))
    more = data.draw(st.integers(1, cell.ring.modulus - 1))
    numbers[cell.start] = (int(numbers[cell.start]) + more) % cell.ring.modulus
    box[at] = replace(message, segments=heterosag.pack_segments(cells, numbers))
    network.take(TABLE[ASK], SERVER)
    for user in survivors:
        network.take(TABLE[ANSWER], user)
    present = cell.members & set(survivors)
    wrong = (sum(integers_of(case.updates[sorted(present), cell.start])) + more) % cell.ring.modulus
    if wrong > len(present) * (cell.levels - 1):
        with pytest.raises(Malformed) as caught:
            network.take(TABLE[UNMASK], SERVER)
        assert caught.value.blamed == present
    else:
        network.take(TABLE[UNMASK], SERVER)
        sums = {sum_.cell: integers_of(sum_.total) for sum_ in network.states[SERVER].sums}
        assert sums[cell][0] == wrong


@pytest.mark.requirement("HSA-19", "HSA-21")
def test_an_altered_share_is_seen_as_in_secagg() -> None:
    case = case_of(TINY)
    network = stage(case, UNMASK, absent=(3,), since=INPUT)
    mail: list[Any] = list(network.mail(TABLE[UNMASK], SERVER))
    data = mail[1].key_shares
    altered = replace(mail[1], key_shares=data[:9] + bytes([data[9] ^ 1]) + data[10:])
    error = refused(case, UNMASK, network, SERVER, [mail[0], altered, *mail[2:]], BadShare)
    assert error.blamed == set(range(12))


# --------------------------------------------------------------------------------------------------------- binding

ELSEWHERE: dict[str, Callable[[Parameters], Parameters]] = {
    "range": lambda p: replace(p, range=Range(-1.0, 2.0)),
    "matrix": lambda p: replace(p, matrix="cyclic"),
    "levels": lambda p: replace(p, levels=(2, 4)),
    "D": lambda p: replace(p, D=0),
}


@pytest.mark.requirement("HSA-22", "SEA-01")
@pytest.mark.parametrize("name", ELSEWHERE)
def test_shares_under_other_parameters_do_not_open(name: str) -> None:
    """User 0 has another range, or another name for the same matrix: what it seals nobody opens."""
    case = case_of(TINY)
    network = case.open()
    other = ELSEWHERE[name](TINY)
    network.states[0] = heterosag.user_start(other, bytes(16), 0, 0, case_of(other, 1, "zero").updates[0])
    for row in range(INPUT):
        for party in parties(row, 12):
            network.take(TABLE[row], party, {key: case.randomness[party][key] for key in TABLE[row].randomness})
    for user in (0, 1):
        with pytest.raises(DecryptionFailed) as caught:
            network.take(TABLE[INPUT], user)
        assert caught.value.blamed == {1 - user, SERVER}


@pytest.mark.requirement("HSA-22")
def test_keys_and_commitments_are_those_of_the_protocol_heterosag() -> None:
    case = case_of(TINY)
    network = stage(case, ASK)
    server = network.states[SERVER].base
    context = Context("heterosag", TINY.digest, bytes(16), 0, SecretShares.TYPE)
    assert server.round.context() == context
    for user in range(12):
        seed = case.randomness[user]["self_seed"]
        assert server.commitments[user] == masks.commitment(context, seed, user)
        assert server.commitments[user] != masks.commitment(replace(context, protocol="secagg"), seed, user)
        assert network.states[user].base.round.context() == context


@pytest.mark.requirement("HSA-22")
@pytest.mark.parametrize("change", [{"protocol": "secagg"}, {"protocol": "heterosag2"}])
def test_a_user_of_another_protocol_is_not_understood(change: dict[str, str]) -> None:
    case = case_of(TINY)
    network = case.open()
    base = network.states[0].base
    network.states[0] = replace(network.states[0], base=replace(base, round=replace(base.round, **change)))
    for row in range(INPUT):
        for party in parties(row, 12):
            network.take(TABLE[row], party, {key: case.randomness[party][key] for key in TABLE[row].randomness})
    with pytest.raises(DecryptionFailed):
        network.take(TABLE[INPUT], 1)


# ------------------------------------------------------------------------------------------------------ many rounds


def answers(p: Parameters, survivors: Collection[int], past: Sequence[frozenset[int]]) -> bool:
    """Whether a user answers for these survivors."""
    try:
        check_cells(p, survivors)
        check_past(p, survivors, past)
    except TooFewSurvivors:
        return False
    return True


@pytest.mark.requirement("HSA-27")
@given(sessions(), st.data())
def test_no_history_that_is_answered_tells_about_fewer_than_t_plus_2_users(p: Parameters, data: st.DataObject) -> None:
    """Up to four requests: those who are in the same ones are counted, by cells."""
    past: list[frozenset[int]] = []
    for _ in range(4):
        few = data.draw(st.sets(st.integers(0, p.N - 1), max_size=4))
        lost = data.draw(st.sampled_from([(), (), *p.members]))
        now = frozenset(range(p.N)) - few - set(lost)
        again = data.draw(st.booleans())
        if past and again:
            members: tuple[int, ...] = data.draw(st.sampled_from(p.members))
            now = past[0] ^ frozenset(members[: p.T + 2])
        patterns = [tuple(user in members for members in (*past, now)) for user in range(p.N)]
        together = [Counter(patterns[user] for user in cell.members if any(patterns[user])) for cell in p.parts]
        refused = any(count < p.T + 2 for cell in together for count in cell.values())
        assert answers(p, now, past) == (not refused)
        if not refused:
            past.append(now)


@pytest.mark.requirement("HSA-27")
@pytest.mark.parametrize("out", [(), (5,), (5, 6), (4, 5, 6), (0, 4), (4, 5, 6, 7), (0, 1, 2)])
def test_a_cell_with_a_user_and_without_is_refused_in_a_session(out: tuple[int, ...]) -> None:
    """Two rounds in one session of two groups of six: the state of the first goes into the second as `past`."""
    p = replace(SMALL, N=12, sizes=(6, 6))
    case = case_of(p)
    first = stage(case, 7)
    past = {user: first.states[user].past for user in range(12)}
    assert set(past.values()) == {(frozenset(range(12)),)}
    network = heterosag.open_round(p, case.updates, round=1, session=bytes(16))
    for user in range(12):
        network.states[user] = heterosag.user_start(p, bytes(16), 1, user, case.updates[user], past[user])
    for row in range(ANSWER):
        for party in parties(row, 12):
            if row < INPUT or party not in out:
                network.take(TABLE[row], party, {key: case.randomness[party][key] for key in TABLE[row].randomness})
    left = {len(set(out) & set(members)) for members in p.members}
    before = snapshot(network.states[11])
    if left & {1, 2}:
        for user in set(range(12)) - set(out):
            with pytest.raises(TooFewSurvivors, match="earlier rounds") as caught:
                network.take(TABLE[ANSWER], user)
            assert not caught.value.blamed
        assert snapshot(network.states[11]) == before
    else:
        network.take(TABLE[ANSWER], 11)
        assert network.states[11].past == (frozenset(range(12)), frozenset(range(12)) - set(out))


@pytest.mark.requirement("HSA-27")
def test_all_earlier_rounds_count_and_all_together() -> None:
    """What only the first of two rounds forbids, and what only three rounds together do."""
    p = replace(SMALL, N=24, sizes=(12, 12))
    everybody = frozenset(range(24))
    first, second = everybody - {0, 1, 2}, everybody - {3, 4, 5}
    assert not answers(p, everybody - {3}, (everybody, first))
    lost = everybody - set(range(12))
    assert not answers(p, everybody - {3}, (everybody, lost))
    assert answers(p, everybody - {3}, (lost,))
    assert answers(p, second, (everybody, first))
    ten = replace(SMALL, N=22, sizes=(10, 12))
    without = [frozenset(range(22)) - set(range(start, start + 3)) for start in (0, 3, 6)]
    assert not answers(ten, without[2], without[:2])  # the user 9 is alone in being in all three
    for one in without[:2]:
        assert answers(ten, without[2], (one,))
    assert not answers(p, everybody - {3, 4}, (everybody - {0, 1},))  # four users differ, two each way


@pytest.mark.requirement("HSA-27")
def test_what_is_remembered_is_what_was_answered() -> None:
    """A request that was refused is not remembered, and one user's memory is its own: the text promises no more."""
    everybody, without = frozenset(range(12)), frozenset(range(12)) - {5}
    p = replace(SMALL, N=12, sizes=(6, 6))
    assert not answers(p, without, (everybody,))
    assert answers(p, everybody, (everybody,))
    assert answers(p, without, ())
    case = case_of(p)
    network = stage(case, ANSWER)
    [request] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(request, UnmaskRequest)
    with pytest.raises(TooFewSurvivors):
        attempt(case, ANSWER, network, 0, [replace(request, survivors=tuple(range(7)), dropped=tuple(range(7, 12)))])
    assert network.states[0].past == ()


@pytest.mark.requirement("HSA-27", "HSA-28")
def test_a_round_that_failed_is_looked_back_on_by_the_server_and_by_who_answered() -> None:
    """Two users answer where three have to; then the same round without one user is refused on both sides."""
    p = replace(SMALL, N=12, sizes=(6, 6))
    case, everybody = case_of(p), frozenset(range(12))
    network = stage(case, ANSWER)
    for user in range(p.t - 1):
        network.take(TABLE[ANSWER], user)
    with pytest.raises(TooFewSurvivors):
        network.take(TABLE[ANSWER + 1], SERVER)
    server, user, other = (network.states[party] for party in (SERVER, 0, p.t - 1))
    assert (server.past, user.past, other.past) == ((everybody,), (everybody,), ())
    again = heterosag.server_again(server, 1)
    assert again.past == heterosag.server_start(p, bytes(16), 1, server.past).past == (everybody,)
    assert heterosag.user_again(user, 1, case.updates[0]).past == (everybody,)
    network = heterosag.open_round(p, case.updates, round=1, session=bytes(16))
    network.states[SERVER] = again
    for row in range(INPUT + 1):
        for party in parties(row, 12):
            if row < INPUT or party != 5:
                network.take(TABLE[row], party, {key: case.randomness[party][key] for key in TABLE[row].randomness})
    with pytest.raises(TooFewSurvivors, match="earlier"):
        network.take(TABLE[INPUT + 1], SERVER)


def two_rounds(p: Parameters, first: Sequence[int], second: Sequence[int], left_out: int) -> tuple[Network, Network]:
    """A round of everybody and one without a user, on the same inputs, in a session; some users answer in each."""
    case = case_of(p)
    networks = [stage(case, ANSWER), heterosag.open_round(p, case.updates, round=1, session=bytes(16))]
    for user in first:
        networks[0].take(TABLE[ANSWER], user)
    for user in range(p.N):
        past = networks[0].states[user].past
        networks[1].states[user] = heterosag.user_start(p, bytes(16), 1, user, case.updates[user], past)
    for row in range(ANSWER):
        for party in parties(row, p.N):
            if row < INPUT or party != left_out:
                sampled = {name: case.randomness[party][name] for name in TABLE[row].randomness}
                networks[1].take(TABLE[row], party, sampled)
    for user in second:
        networks[1].take(TABLE[ANSWER], user)
    for network in networks:
        network.take(TABLE[UNMASK], SERVER)
    return networks[0], networks[1]


@pytest.mark.requirement("HSA-27")
def test_rounds_that_different_users_answered_for_may_tell_about_one() -> None:
    """What the text says of 12 users and t = 3: it is no promise of HSA-27 that they do not."""
    p = replace(SMALL, N=12, sizes=(6, 6))
    first, second = two_rounds(p, (0, 1, 2), (6, 7, 8), 5)
    sums = [{found.cell: found.total for found in network.states[SERVER].sums} for network in (first, second)]
    for cell in cells_of(p, 5):
        own = cell.of(case_of(p).updates[5])
        assert integers_of(cell.ring.subtract(sums[0][cell], sums[1][cell])) == integers_of(own)
    with pytest.raises(TooFewSurvivors, match="earlier rounds"):
        two_rounds(p, (0, 1, 2), (6, 7, 2), 5)


@pytest.mark.requirement("HSA-27")
def test_as_many_rounds_as_the_text_says_have_an_honest_user_in_common() -> None:
    for N, T, rounds in ((5, 1, 2), (6, 1, 2), (7, 2, 2), (5, 1, 3), (6, 2, 3)):
        for t in range(1, N + 1):
            users = [set(chosen) for chosen in combinations(range(N), t)]
            common = min(len(set.intersection(*chosen)) for chosen in product(users, repeat=rounds))
            assert (common > T) == (rounds * (N - t) < N - T)


@pytest.mark.requirement("HSA-27", "ERR-02")
@pytest.mark.parametrize(
    "past",
    [
        7,
        None,
        "0",
        [7],
        [(0, 0)],
        [{0: 1}],
        [frozenset({12})],
        [frozenset({-1})],
        [frozenset({"a"})],
        [frozenset({True})],
    ],
)
def test_a_past_that_is_none_is_refused(past: Any) -> None:
    with pytest.raises(ParameterError, match="past"):
        heterosag.user_start(TINY, bytes(16), 0, 0, case_of(TINY).updates[0], past)
    with pytest.raises(ParameterError, match="past"):
        heterosag.server_start(TINY, bytes(16), 0, past)


# ------------------------------------------------------------------------------------------------- real numbers


def exact_means(p: Parameters, sums: Sequence[Any], segment: int) -> list[tuple[int, list[Fraction]]]:
    """The number of survivors and the mean of each cell of a segment."""
    low, high = Fraction(p.range.low), Fraction(p.range.high)
    return [
        (
            len(found.survivors),
            [
                low + (high - low) / (found.cell.levels - 1) * Fraction(s, len(found.survivors))
                for s in integers_of(found.total)
            ],
        )
        for found in sums
        if found.cell.segment == segment
    ]


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-25", "HSA-26")
@fewer(2)
@given(cases(), st.data())
def test_the_aggregates_are_those_of_the_text(case: Case, data: st.DataObject) -> None:
    p = case.parameters
    lost = data.draw(st.sampled_from([(), *p.members]))
    fates = ["masked_input" if user in lost else "stays" for user in range(p.N)]
    if succeeds(p, fates) is None:
        return
    result = case.run(fates)
    rows = [exact_means(p, result.sums, segment) for segment in range(p.count)]
    fewest = min(map(len, rows))
    trim = data.draw(st.integers(0, (fewest - 1) // 2))
    wanted: dict[str, list[Fraction]] = {"mean": [], "median": [], "trimmed": []}
    for row in rows:
        for column in zip(*[means for _, means in row], strict=True):
            counts = [count for count, _ in row]
            assert sum(counts) == len(result.contributors)
            wanted["mean"].append(sum((n * x for n, x in zip(counts, column, strict=True)), Fraction(0)) / sum(counts))
            values: list[Fraction] = list(column)
            wanted["median"].append(median(values))
            kept = sorted(values)[trim : len(column) - trim]
            wanted["trimmed"].append(sum(kept, Fraction(0)) / len(kept))
    for method, numbers in wanted.items():
        got = integers_of(combine(p, result.sums, method, trim))
        assert all(abs(Fraction(x) - want) <= tolerance(p.range) for x, want in zip(got, numbers, strict=True))
    with pytest.raises(ParameterError, match="trim"):
        combine(p, result.sums, "trimmed", fewest)


@pytest.mark.requirement("HSA-24")
@pytest.mark.parametrize("scale", [1.0, 1e308, 1e-320])
def test_the_mean_of_quantised_numbers_is_near_the_mean_of_numbers(scale: float) -> None:
    """Each number is off by less than a step, so the mean is; numbers on the points of all levels are not off."""
    p = replace(TINY, range=Range(0.0, scale))
    rng = np.random.default_rng(7)
    x, draws = rng.uniform(0, 1, (12, 4)) * scale, rng.uniform(0, 1, (12, 4))
    for inputs, off in ((x, Fraction(scale)), (np.where(x > scale / 2, scale, 0.0), tolerance(p.range))):
        updates = [quantize_update(p, user, inputs[user], rounding=draws[user]) for user in range(12)]
        result = replace(case_of(p), updates=np.array(updates)).run(["stays"] * 12)
        means = [sum((Fraction(value) for value in column), Fraction(0)) / 12 for column in integers_of(inputs.T)]
        got = integers_of(combine(p, result.sums))
        assert all(abs(Fraction(a) - b) <= off for a, b in zip(got, means, strict=True))


@pytest.mark.requirement("HSA-08", "HSA-12")
@given(sessions(), st.data())
def test_each_segment_is_quantised_with_the_levels_of_its_cell(p: Parameters, data: st.DataObject) -> None:
    user = data.draw(st.integers(0, p.N - 1))
    high = quantize_update(p, user, np.full(p.d, p.range.high), rounding=np.zeros(p.d))
    low = quantize_update(p, user, np.full(p.d, p.range.low), rounding=np.zeros(p.d))
    for cell in cells_of(p, user):
        assert integers_of(cell.of(high)) == [cell.levels - 1] * cell.length
        assert integers_of(cell.of(low)) == [0] * cell.length


@pytest.mark.requirement("HSA-07", "HSA-09")
def test_real_inputs_that_do_not_fit_are_refused() -> None:
    zeros = np.zeros(4)
    for bad in (1.0000001, -2.0, np.nan, np.inf):
        x = np.array([0, 0, 0, bad])
        with pytest.raises(OutOfRange, match="x"):
            quantize_update(TINY, 0, x, rounding=zeros)
        with pytest.raises(OutOfRange, match="rounding"):
            quantize_update(TINY, 0, zeros, rounding=x)
    for at in range(4):
        far = np.where(np.arange(4) == at, 7.0, 0.0)
        for name, x, rounding in (("x", far, zeros), ("rounding", zeros, far)):
            with pytest.raises(OutOfRange, match=rf"^{name}\[{at}\] = 7\.0: "):
                quantize_update(TINY, 0, x, rounding=rounding)
    clipped = quantize_update(TINY, 0, np.array([7.0, -7.0, np.inf, -np.inf]), rounding=zeros, clip=True)
    assert integers_of(clipped) == [1, 0, 1, 0]
    with pytest.raises(OutOfRange, match="nan"):
        quantize_update(TINY, 0, np.full(4, np.nan), rounding=zeros, clip=True)
    for x, rounding in ((zeros[:3], zeros), (zeros, zeros[:3]), (zeros[None], zeros)):
        with pytest.raises(LengthMismatch):
            quantize_update(TINY, 0, x, rounding=rounding)
    clip: Any
    for clip in ("no", 1, 0.0, None):
        with pytest.raises(ParameterError, match=r"^clip = '.*': must be of the class bool$"):
            quantize_update(TINY, 0, np.full(4, 7.0), rounding=zeros, clip=clip)


@pytest.mark.requirement("HSA-26", "ERR-02")
@pytest.mark.parametrize("method", ["mode", "", None, 1, True, ["mean"], np.array(["mean", "mean"]), np.array([1, 2])])
def test_a_method_that_is_none_is_refused(method: Any) -> None:
    with pytest.raises(ParameterError, match="method"):
        combine(TINY, case_of(TINY).run(["stays"] * 12).sums, method)


# ---------------------------------------------------------------------------------------------------------- the text


def test_the_tables_of_the_text_are_those_of_the_reference() -> None:
    page = (resources.root("spec") / "heterosag.md").read_text(encoding="utf-8")
    section = page.split("\n## 5. ")[1].split("\n## ")[0]
    phases = re.findall(r"^\| `(\w+)` \| (user|server) \|([^|]*)\|([^|]*)\|$", section, re.MULTILINE)
    stated = [(phase, role, *(re.findall(r"`(\w+)`", cell) for cell in cells)) for phase, role, *cells in phases]
    assert stated == [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
    ]
    messages = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", section, re.MULTILINE)
    own = [kind for kind in vars(heterosag).values() if isinstance(kind, type) and issubclass(kind, Message)]
    kinds = [kind for kind in own if kind.__module__ == heterosag.__name__]
    assert [(name, int(number)) for name, number, _ in messages] == [(kind.__name__, kind.TYPE) for kind in kinds]
    for (_, _, cell), kind in zip(messages, kinds, strict=True):
        types = re.findall(r"`(\w+)` \(`(\w+)`\)", cell)
        assert [name for name, _ in types] == [entry.name for entry in fields(kind)][4:]
    assert [step.randomness for step in TABLE] == [step.randomness for step in secagg.TABLE]


@pytest.mark.requirement("HSA-28")
@pytest.mark.parametrize("out", [(), (5,), (4, 5), (0, 1, 2, 3), (4, 5, 6, 7)])
def test_the_server_does_not_ask_for_survivors_that_tell_about_few_users(out: tuple[int, ...]) -> None:
    """Two rounds in one session; the users remember nothing, so that what ends the second one is the server's care."""
    case = case_of(replace(SMALL, N=8, sizes=(4, 4), D=1))
    first = stage(case, 7)
    server = heterosag.server_again(first.states[SERVER], 1)
    network = heterosag.open_round(case.parameters, case.updates, round=1, session=bytes(16))
    network.states[SERVER] = server
    for row in range(INPUT):
        for party in parties(row, 8):
            network.take(TABLE[row], party, {key: case.randomness[party][key] for key in TABLE[row].randomness})
    for user in set(range(8)) - set(out):
        network.take(TABLE[INPUT], user, {})
    inbox = network.mail(TABLE[INPUT + 1], SERVER)
    if len(out) in (0, 4):
        after, outbox = TABLE[INPUT + 1].take(network.states[SERVER], inbox, randomness={})
        assert len(outbox) == 8 - len(out)
        assert after.past == (frozenset(range(8)), frozenset(range(8)) - set(out))
        assert heterosag.server_again(after, 2).past == after.past
    else:
        with pytest.raises(TooFewSurvivors):
            TABLE[INPUT + 1].take(network.states[SERVER], inbox, randomness={})


@pytest.mark.requirement("HSA-29")
def test_a_party_goes_on_with_its_parameters_and_a_later_round() -> None:
    case = case_of(TINY)
    states = stage(case, 7).states
    user, server = states[0], states[SERVER]
    again = heterosag.user_again(user, 5, case.updates[0])
    served = heterosag.server_again(server, 5)
    for before, after in ((user, again), (server, served)):
        assert after.parameters is before.parameters
        assert after.base.round.session == before.base.round.session
        assert after.base.round.number == 5
        assert after.phase == "advertise_keys"
        assert after.past == before.past == (frozenset(range(12)),)
    for number in (0, -1):
        with pytest.raises(ParameterError):
            heterosag.user_again(user, number, case.updates[0])
        with pytest.raises(ParameterError):
            heterosag.server_again(server, number)
    with pytest.raises(ParameterError):
        heterosag.server_again(served, 5)
