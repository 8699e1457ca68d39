"""The costs of HeteroSAg, against what real rounds send and expand, and the bound on the error against real draws."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, log2
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range
from secagg_spec.crypto import prg
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.protocols.heterosag import costs as heterosag_costs
from secagg_spec.protocols.heterosag.averages import quantize_update
from secagg_spec.protocols.heterosag.costs import MaskCost, SegmentCost
from secagg_spec.protocols.heterosag.plan import PRESETS, Parameters, cells_of
from secagg_spec.protocols.heterosag.round import MaskedSegments, run_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Randomness

LARGE = PRESETS["large"]


@st.composite
def sessions(draw: st.DrawFn, most: int = 3) -> Parameters:
    """Parameters with up to `most` groups, unequal, of subgroups of 3 to 5 users."""
    subgroups = draw(st.lists(st.integers(1, 2), min_size=2, max_size=most).map(tuple))
    sizes = tuple(draw(st.integers(3 * count, 4 * count)) for count in subgroups)
    levels = tuple(sorted(draw(st.lists(st.integers(2, 40), min_size=len(sizes), max_size=len(sizes)))))
    N, Z = sum(sizes), sum(subgroups)
    t = draw(st.integers(3, N // 2))
    low = draw(st.sampled_from([-1.0, 0.25]))
    matrix = draw(st.sampled_from(["cyclic", "perfect", "separate"]))
    return Parameters(N, N - t, 1, t, draw(st.integers(Z, 4 * Z)), sizes, subgroups, levels, Range(low, 1.0), matrix)


@dataclass
class Seen:
    """The lengths of the masks that each user expanded, and those of the server under None."""

    lengths: dict[int | None, list[int]] = field(default_factory=dict)
    party: int | None = None

    def cost(self, party: int | None) -> MaskCost:
        found = self.lengths.get(party, [])
        return MaskCost(len(found), sum(found))


@contextmanager
def watched() -> Iterator[Seen]:
    """See which masks are expanded, and by whom."""
    seen, masked, stream = Seen(), secagg._masked, prg.stream

    def watched_stream(key: bytes, ring: Any, n: int) -> Any:
        seen.lengths.setdefault(seen.party, []).append(n)
        return stream(key, ring, n)

    def watched_masked(state: Any, *rest: Any) -> Any:
        seen.party = state.user
        try:
            return masked(state, *rest)
        finally:
            seen.party = None

    with mock.patch.object(prg, "stream", watched_stream), mock.patch.object(secagg, "_masked", watched_masked):
        yield seen


def drawn(p: Any) -> dict[int, Randomness]:
    """The sampled values of each user."""
    return secagg.draw_randomness(p, {user: SeededSource(bytes(32), f"user {user}") for user in range(p.N)})


def play(p: Parameters, dropped: dict[str, list[int]]) -> tuple[Seen, dict[int, bytes]]:
    """Run a round; return what was expanded, and the masked segments that each user sent."""
    with watched() as seen:
        result = run_round(
            p, np.zeros((p.N, p.d), np.uint64), randomness=drawn(p), dropouts=dropped, session=bytes(16), round=0
        )
    sent = [m for event in result.transcript for m in event.sent if isinstance(m, MaskedSegments)]
    return seen, {message.sender: message.segments for message in sent}


@pytest.mark.slow
@given(sessions(), st.data())
def test_a_round_sends_and_expands_what_is_counted(p: Parameters, data: st.DataObject) -> None:
    early = list(p.members[data.draw(st.integers(0, p.count - 1))]) if data.draw(st.booleans()) else []
    late = [part[0] for part in p.members if len(part) > 3 and data.draw(st.booleans()) and part[0] not in early]
    if p.N - len(early) - len(late) < p.t:
        late = []
    if p.N - len(early) < p.t:
        early = []
    seen, sent = play(p, {"share_keys": early, "masked_input": late})
    sharers = [user for user in range(p.N) if user not in early]
    survivors = [user for user in sharers if user not in late]
    assert {user: len(packed) for user, packed in sent.items()} == {
        user: heterosag_costs.masked_bytes(p, user) for user in survivors
    }
    for user in survivors:
        assert seen.cost(user) == heterosag_costs.user_masks(p, user, sharers)
    assert seen.cost(None) == heterosag_costs.server_masks(p, survivors, sharers)


def test_users_who_send_no_shares_make_masks_of_others_fewer() -> None:
    p = PRESETS["tiny"]
    seen, _ = play(p, {"share_keys": list(p.members[2])})
    for user in range(8):
        assert seen.cost(user) == heterosag_costs.user_masks(p, user, range(8))
        assert seen.cost(user).masks == heterosag_costs.user_masks(p, user).masks - 4
    assert seen.cost(None) == heterosag_costs.server_masks(p, range(8), range(8)) == MaskCost(24, 8 * 4)


def test_with_everybody_present_the_defaults_are_what_a_round_expands() -> None:
    p = PRESETS["tiny"]
    seen, _ = play(p, {})
    for user in range(p.N):
        assert seen.cost(user) == heterosag_costs.user_masks(p, user)
    assert seen.cost(None) == heterosag_costs.server_masks(p, range(p.N)) == MaskCost(36, 12 * 4)


@given(sessions(most=5))
def test_the_bits_and_masks_are_those_of_the_text(p: Parameters) -> None:
    for user in range(p.N):
        cells, costs = cells_of(p, user), heterosag_costs.segment_costs(p, user)
        widths = [ceil(log2(len(cell.members) * (cell.levels - 1) + 1)) for cell in cells]
        assert [cost.modulus for cost in costs] == [cell.ring.modulus for cell in cells]
        assert [cost.width for cost in costs] == widths
        assert [cost.length for cost in costs] == list(p.lengths)
        bits = [width * length for width, length in zip(widths, p.lengths, strict=True)]
        assert heterosag_costs.masked_bits(p, user) == sum(bits) == sum(cost.bits for cost in costs)
        assert heterosag_costs.masked_bytes(p, user) == sum(ceil(bit / 8) for bit in bits)
        clear = [ceil(log2(cell.levels)) * cell.length for cell in cells]
        assert heterosag_costs.user_expansion(p, user) == Fraction(sum(bits), sum(clear))
        assert [cost.clear_bits for cost in costs] == clear
        masks = heterosag_costs.user_masks(p, user)
        assert masks.masks == sum(len(cell.members) for cell in cells)
        assert masks.elements == sum(len(cell.members) * cell.length for cell in cells)


@pytest.mark.parametrize("matrix", ["cyclic", "perfect"])
def test_equal_subgroups_expand_n_masks_in_one_segment_and_2n_in_the_others(matrix: str) -> None:
    p = Parameters(20, 1, 1, 11, 50, (8, 12), (2, 3), (2, 4), Range(-1.0, 1.0), matrix)
    n, Z = 4, 5
    for user in range(p.N):
        own = [cell.length for cell in cells_of(p, user) if len(cell.subgroups) == 1]
        assert len(own) == 1
        expected = MaskCost((2 * Z - 1) * n, n * own[0] + 2 * n * (p.d - own[0]))
        assert heterosag_costs.user_masks(p, user) == expected
    assert heterosag_costs.secagg_user_masks(p.d, p.N) == MaskCost(20, 20 * 50)
    assert Fraction(20 * 50, expected.elements) >= Fraction(p.N, 2 * n)


def test_secagg_expands_as_many_masks_as_are_counted() -> None:
    p = secagg.PRESETS["tiny"]
    with watched() as seen:
        secagg.run_round(p, np.zeros((p.N, p.d), np.uint64), randomness=drawn(p), session=bytes(16), round=0)
    assert {seen.cost(user) for user in range(p.N)} == {heterosag_costs.secagg_user_masks(p.d, p.N)}


def test_numbers_of_the_paper_on_bandwidth() -> None:
    expansion = heterosag_costs.bandwidth_expansion
    assert [expansion(users, 2**16) for users in (8, 16, 1024)] == [Fraction(19, 16), Fraction(5, 4), Fraction(13, 8)]
    assert [expansion(users, 2) for users in (8, 16, 1024)] == [4, 5, 11]
    assert heterosag_costs.secagg_bits(20, 1024, 2) == 220
    assert heterosag_costs.secagg_bytes(20, 1024, 2) == 28
    assert SegmentCost(0, 20, 16, 2).expansion == 5


@given(st.integers(1, 300), st.integers(2, 300))
def test_the_width_of_a_modulus_is_the_least_that_holds_every_sum(users: int, levels: int) -> None:
    width = SegmentCost(0, 1, users, levels).width
    assert 2 ** (width - 1) <= users * (levels - 1) < 2**width


# ------------------------------------------------------------------------------------------------------- the error


def squared_error(p: Parameters, x: Any, draw: float) -> float:
    """Return the sum of the squared errors of all users over N^2, which is that of the mean for independent draws."""
    error, rounding = 0.0, np.full(p.d, draw)
    for user in range(p.N):
        quantised = quantize_update(p, user, x[user], rounding=rounding)
        for cell in cells_of(p, user):
            carried = p.range.value(cell.of(quantised).astype(float), cell.levels)
            error += float(((carried - x[user, cell.start : cell.stop]) ** 2).sum())
    return error / p.N**2


@pytest.mark.slow
@given(sessions(), st.integers(0, 2**32 - 1))
def test_the_error_bound_is_attained_at_midpoints_and_holds_elsewhere(p: Parameters, seed: int) -> None:
    bound, at = float(heterosag_costs.error_bound(p)), np.empty((p.N, p.d))
    for cell in p.parts:
        at[sorted(cell.members), cell.start : cell.stop] = p.range.low + p.range.step(cell.levels) / 2
    for draw in (0.1, 0.9):
        assert squared_error(p, at, draw) == pytest.approx(bound, rel=1e-9)
    x = np.random.default_rng(seed).uniform(p.range.low, p.range.high, at.shape)
    assert np.mean([squared_error(p, x, (at + 0.5) / 32) for at in range(32)]) < 1.1 * bound


def test_the_error_bound_of_equal_subgroups_is_that_of_the_paper() -> None:
    p, n, Z = LARGE, 5, 20
    counts = [2 * (Z - z) - 1 for z in range(Z)]
    weighted = sum(Fraction(count, (p.levels[z // 4] - 1) ** 2) for z, count in enumerate(counts))
    assert heterosag_costs.error_bound(p) == Fraction(4, 4 * p.N**2) * Fraction(p.d, Z) * n * weighted


# ------------------------------------------------------------------------------------------------- what is refused


def test_what_cannot_be_counted_is_refused() -> None:
    p = PRESETS["tiny"]
    for user in (12, -1, -2, True):
        with pytest.raises(ParameterError, match=rf"^user = {user}: must be an integer in \[0, 11\]$"):
            heterosag_costs.user_masks(p, user)
    with pytest.raises(UnknownUser):
        heterosag_costs.server_masks(p, [12])
    with pytest.raises(ParameterError, match=r"^survivors = \[9\]: must be users whose shares arrived$"):
        heterosag_costs.server_masks(p, [0, 1, 2, 9], [0, 1, 2, 3])
    with pytest.raises(ParameterError, match=r"must be at most 2\*\*32"):
        heterosag_costs.sum_modulus(4, 2**31)
    with pytest.raises(ParameterError, match="levels = 1"):
        heterosag_costs.bandwidth_expansion(4, 1)
    with pytest.raises(ParameterError, match="users = 0"):
        heterosag_costs.secagg_user_masks(3, 0)
    with pytest.raises(ParameterError, match="d = 0"):
        heterosag_costs.secagg_bits(0, 2, 2)
