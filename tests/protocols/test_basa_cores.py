"""The parameters of BASA, and what is computed once every mask is a vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import Staleness
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.errors import LengthMismatch, NonCanonical, OutOfRange, ParameterError
from secagg_spec.protocols import buffers
from secagg_spec.protocols.basa.cores import (
    PRESETS,
    SETTLE,
    VOID,
    Masks,
    Parameters,
    check_accepted,
    encode_update,
    mask_update,
    recover,
)
from tests.protocols.positions import sessions
from tests.strategies import bulk, integers_of, pseudorandom, vector
from tests.test_text import page, rows

TINY = PRESETS["tiny"]


@pytest.mark.requirement("BAA-01", "BAA-02")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    table = rows(page("basa.md"), "symbol", "meaning", *PRESETS)
    for column, (name, preset) in enumerate(PRESETS.items(), start=2):
        stated = {row[0]: row[column] for row in table}
        assert stated.pop("s") == f"{preset.staleness.kind}, {preset.staleness.numerator}"
        assert stated == {key: str(getattr(preset, key)) for key in stated}, name
        assert len(stated) == 10


@pytest.mark.requirement("BAA-01")
@pytest.mark.parametrize(
    "change",
    [
        {"R": 1}, {"R": 2**32 + 1}, {"d": 0}, {"T": 0}, {"K": 2}, {"T": 2}, {"S": -1}, {"N": 3}, {"N": 2**31},
        {"S": 3, "N": 5}, {"K": 2**16, "S": 1, "N": 2**20, "c_g": 1, "R": 2**32}, {"tau_max": -1}, {"tau_max": 2**31},
        {"timeouts": VOID}, {"timeouts": "skip"}, {"timeouts": None}, {"R": 16.0}, {"K": True}, {"staleness": "s"},
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        replace(TINY, **change)


@pytest.mark.requirement("BAA-02")
@pytest.mark.parametrize(
    "change",
    [
        {"c_l": 0}, {"c_g": 0}, {"c_l": 2**32 + 1}, {"c_g": 2**32 + 1}, {"c_g": 1}, {"c_g": 3}, {"R": 12},
        {"R": 2**32, "c_l": 2**32, "c_g": 2**20}, {"tau_max": 2},
    ],
)  # fmt: skip
def test_levels_that_cannot_carry_an_update_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        replace(TINY, **change)


@pytest.mark.requirement("BAA-01", "BAA-02")
@pytest.mark.parametrize(
    "change",
    [
        {"R": 2**32}, {"R": 13}, {"N": 4}, {"d": 1}, {"S": 0}, {"S": 0, "timeouts": VOID}, {"S": 3, "K": 3, "N": 6},
        {"tau_max": 0}, {"tau_max": 2**31 - 1, "staleness": Staleness.constant()},
        {"K": 2**16 - 1, "N": 2**31 - 1, "R": 2**32},
        {"R": 2**32, "c_l": 2**32, "c_g": 2**19, "K": 4},
    ],
)  # fmt: skip
def test_parameters_at_their_bounds_are_taken(change: dict[str, Any]) -> None:
    assert replace(TINY, **change).numbers()["R"] >= 13


def test_the_numbers_are_bound_in_the_order_of_the_text() -> None:
    order = "R, N, T, d, K, S, c_l, c_g, tau_max, kind, numerator, denominator, start, timeouts"
    assert list(TINY.numbers()) == order.split(", ")
    assert f"{order},\nencryption" in page("basa.md")
    assert [replace(TINY, S=0, timeouts=name).numbers()["timeouts"] for name in (SETTLE, VOID)] == [0, 1]


# ---------------------------------------------------------------------------------------------------- the masks


def streams(vectors: list[UintArray]) -> Iterator[Iterator[UintArray]]:
    """Vectors as pieces of streams."""
    return (iter([vector[:1], vector[1:]]) for vector in vectors)


@st.composite
def uploads(draw: st.DrawFn) -> tuple[Parameters, UintArray, int, list[UintArray], list[UintArray], UintArray]:
    """Parameters, an update, a weight, masks before and after, and a self mask."""
    p = draw(sessions())
    decoded = [draw(st.integers(-p.budget, p.budget)) for _ in range(p.d)]
    before = [draw(bulk(p.R, p.d)) for _ in range(draw(st.integers(0, 4)))]
    after = [draw(bulk(p.R, p.d)) for _ in range(draw(st.integers(0, 4)))]
    weight = draw(st.integers(1, p.c_g))
    return p, vector([x % p.R for x in decoded]), weight, before, after, draw(bulk(p.R, p.d))


@pytest.mark.requirement("BAA-26")
@given(uploads(), st.booleans())
def test_a_masked_update_is_the_sum_of_the_text(
    case: tuple[Parameters, UintArray, int, list[UintArray], list[UintArray], UintArray], as_streams: bool
) -> None:
    p, update, weight, before, after, own = case
    terms = [integers_of(vector) for vector in before], [integers_of(vector) for vector in after]
    masks = Masks(streams(before), streams(after), own) if as_streams else Masks(before, after, own)
    expected = [
        (weight * int(update[i]) + int(own[i]) + sum(v[i] for v in terms[1]) - sum(v[i] for v in terms[0])) % p.R
        for i in range(p.d)
    ]
    assert integers_of(mask_update(p, update, weight, masks)) == expected


@st.composite
def buffers_of(draw: st.DrawFn) -> tuple[Parameters, list[int]]:
    """Parameters, and accepted positions that may be closed."""
    p = draw(sessions())
    enough = p.T + 2 if p.settle else p.K
    count = draw(st.integers(enough, p.K))
    return p, sorted(draw(st.permutations(range(p.positions)))[:count])


@pytest.mark.requirement("BAA-26", "BAA-41")
@given(buffers_of(), st.integers(0, 2**32))
def test_masks_cancel_over_any_accepted_positions(case: tuple[Parameters, list[int]], seed: int) -> None:
    """The first equation of section 4, and the second: with own masks and masks to others given, the sum is left."""
    p, accepted = case
    P = p.positions
    mask = {(i, j): pseudorandom(seed + 64 * i + j, p.R, p.d) for i in range(P) for j in range(i, P)}
    weights = {k: 1 + int(pseudorandom(seed + k, p.c_g, 1)[0]) for k in accepted}
    masked, total = [], [0] * p.d
    for k in accepted:
        decoded = integers_of(pseudorandom(seed + 9000 + k, 2 * p.budget + 1, p.d))
        update = vector([(x - p.budget) % p.R for x in decoded])
        own = mask[k, k] if p.settle else None
        masks = Masks([mask[i, k] for i in accepted if i < k], [mask[k, j] for j in range(k + 1, P)], own)
        masked.append(mask_update(p, update, weights[k], masks))
        total = [(t + weights[k] * int(x)) % p.R for t, x in zip(total, update, strict=True)]
    owns = [mask[k, k] for k in accepted] if p.settle else []
    skipped = [mask[k, j] for k in accepted for j in range(k + 1, P) if j not in accepted]
    assert integers_of(recover(p, masked, owns, skipped)) == total


@pytest.mark.requirement("BAA-24", "BAA-25")
def test_an_update_that_the_buffer_cannot_carry_is_refused() -> None:
    assert TINY.budget == 1
    for wrong in (2, 14, 8):
        with pytest.raises(OutOfRange):
            mask_update(TINY, vector([0, wrong]), 1, Masks([], []))
    for right in (0, 1, 15):
        mask_update(TINY, vector([0, right]), 2, Masks([], []))
    with pytest.raises(NonCanonical):
        mask_update(TINY, vector([0, 16]), 1, Masks([], []))
    with pytest.raises(LengthMismatch):
        mask_update(TINY, vector([0]), 1, Masks([], []))
    with pytest.raises(ParameterError):
        mask_update(TINY, vector([0, 0]), 3, Masks([], []))


@pytest.mark.requirement("ERR-02")
def test_masks_that_are_none_are_named_by_their_member() -> None:
    wrong: Any = 5
    for name in ("before", "after"):
        with pytest.raises(ParameterError, match=f"^{name} = 'int': must be a list or another iterable of masks$"):
            Masks(**{"before": [], "after": [], name: wrong})
    for name, masked in (
        ("own", Masks([], [], wrong)),
        (r"before\[0\]", Masks([wrong], [])),
        (r"after\[0\]", Masks([], [wrong])),
    ):
        with pytest.raises(ParameterError, match=rf"^masks\.{name} = 'int': "):
            mask_update(TINY, vector([0, 0]), 1, masked)


@pytest.mark.requirement("BAA-43")
@given(sessions(), st.integers(0, 2**32), st.data())
def test_the_average_is_rounded_once(p: Parameters, seed: int, data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.integers(1, p.c_g), min_size=p.T + 2, max_size=p.K))
    total = pseudorandom(seed, p.R, p.d)
    expected = [
        float(Fraction(int(x) if int(x) <= (p.R - 1) // 2 else int(x) - p.R, p.c_l * sum(weights))) for x in total
    ]
    assert buffers.average(p.ring, p.c_l, vector(weights), total).tolist() == expected


@pytest.mark.requirement("BAA-46")
@given(st.integers(0, 2**32))
def test_real_updates_are_quantised_for_a_full_buffer(seed: int) -> None:
    p = PRESETS["default"]
    drawn = np.random.default_rng(seed)
    x, rounding = drawn.uniform(-50, 50, p.d), (drawn.integers(0, 2**53, p.d) * 2.0**-53).astype(np.float64)
    expected = quantize(x, level=p.c_l, ring=p.ring, weight=p.K * p.c_g, rounding=rounding)
    assert (encode_update(p, x, rounding) == expected).all()
    with pytest.raises(OutOfRange):
        encode_update(p, np.full(p.d, p.budget / p.c_l + 1), rounding)


def test_positions_that_do_not_ascend_are_refused() -> None:
    assert check_accepted("accepted", [0, 2, 3], 4) == (0, 2, 3)
    for wrong in ([0, 0], [1, 0], [4], [-1], [0.0], "01"):
        with pytest.raises(ParameterError):
            check_accepted("accepted", wrong, 4)  # type: ignore[arg-type]
