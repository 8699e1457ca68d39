"""Sources of sampled values."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.entropy import (
    SeededSource,
    SystemSource,
    draw_below,
    draw_coefficients,
    draw_elements,
    draw_rounding,
    draw_scalars,
)
from secagg_spec.errors import ParameterError
from secagg_spec.protocols.secagg import round as secagg
from tests.strategies import integers_of, moduli

seeds = st.binary(max_size=8)
labels = st.text(max_size=8)


class Script:
    """A source that gives prepared words, then zeros, and remembers how many bytes were taken."""

    def __init__(self, words: list[int]) -> None:
        self.data = struct.pack(f"<{len(words)}I", *words)
        self.taken = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        part = self.data[self.taken : self.taken + count]
        self.taken += count
        return part + bytes(count - len(part))


@pytest.mark.requirement("RND-02")
@given(
    moduli(), st.lists(st.sampled_from((0, 1, 2**31, 2**32 - 5, 2**32 - 1)) | st.integers(0, 2**32 - 1), max_size=40)
)
def test_drawn_elements_are_the_usable_words_of_the_source(modulus: int, words: list[int]) -> None:
    limit = 2**32 // modulus * modulus
    usable = [word % modulus for word in words if word < limit] + [0] * 6
    got = draw_elements(Script(words), Ring(modulus), (2, 3))
    assert got.shape == (2, 3)
    assert got.dtype == np.uint64
    assert integers_of(got.ravel()) == usable[:6]


@pytest.mark.requirement("RND-02", "RND-03")
def test_a_source_of_rejected_words_is_asked_again() -> None:
    source = Script([2**32 - 1] * 1000 + [7, 8])
    assert integers_of(draw_elements(source, Ring(2**31 + 11), (2,))) == [7, 8]


@pytest.mark.requirement("RND-02")
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_nothing_is_drawn_for_no_elements(shape: tuple[int, ...]) -> None:
    source = Script([1])
    assert draw_elements(source, Ring(7), shape).shape == shape
    assert source.taken == 0


@pytest.mark.requirement("QNT-09")
@given(st.lists(st.sampled_from((0, 2**11 - 1, 2**11, 2**63, 2**64 - 1)) | st.integers(0, 2**64 - 1), max_size=6))
def test_draws_are_multiples_of_2_to_minus_53_below_1(words: list[int]) -> None:
    halves = [half for word in words for half in (word % 2**32, word // 2**32)]
    got = draw_rounding(Script(halves), len(words))
    assert [float(u) * 2**53 for u in got] == [word >> 11 for word in words]
    assert all(0 <= u < 1 for u in got)


@pytest.mark.requirement("RND-01")
@given(seeds, labels, st.integers(0, 40))
def test_a_seed_and_a_label_determine_the_stream(seed: bytes, label: str, count: int) -> None:
    first, second = SeededSource(seed, label), SeededSource(seed, label)
    assert [first.take(count) for _ in range(3)] == [second.take(count) for _ in range(3)]
    assert len(first.take(count)) == count


@pytest.mark.requirement("RND-01")
@given(st.lists(st.tuples(seeds, labels), min_size=2, max_size=2, unique=True))
def test_other_seeds_labels_and_blocks_give_other_bytes(inputs: list[tuple[bytes, str]]) -> None:
    blocks = [source.take(16) for source in (SeededSource(*inputs[0]), SeededSource(*inputs[1])) for _ in range(2)]
    source = SeededSource(*inputs[0])
    blocks += [source.take(16) for _ in range(3)][2:]
    assert len(set(blocks)) == 4 + 1


@pytest.mark.requirement("RND-01")
def test_seed_and_label_are_not_run_together() -> None:
    assert SeededSource(b"ab", "c").take(16) != SeededSource(b"a", "bc").take(16)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("label", ["\ud800", "a\udfff"])
def test_a_label_that_utf8_cannot_write_is_refused(label: str) -> None:
    with pytest.raises(ParameterError, match=r"^label = .*: must be a string that UTF-8 can write"):
        SeededSource(b"s", label)


@pytest.mark.parametrize("label", [b"c", None, 7])
def test_a_label_is_a_string(label: Any) -> None:
    with pytest.raises(ParameterError, match=r"^label = .*: must be a string$"):
        SeededSource(b"ab", label)


@pytest.mark.requirement("RND-01")
def test_the_system_gives_fresh_bytes() -> None:
    blocks = {SystemSource().take(16) for _ in range(100)}
    assert len(blocks) == 100
    assert {len(block) for block in blocks} == {16}


@pytest.mark.parametrize("modulus", [2**31 + 11, 3 * 2**29, 7])
@pytest.mark.parametrize("label", ["b", "h", "i", "j"])
def test_a_seed_gives_elements_block_by_block(modulus: int, label: str) -> None:
    """A block has the words that are needed on average and 16 more; where it ends decides what the next one gives."""
    limit, n, number, expected = 2**32 // modulus * modulus, 1500, 0, list[int]()
    while len(expected) < n:
        number += 1
        framed = b"".join(len(part).to_bytes(4, "little") + part for part in (b"seed", label.encode()))
        count = (n - len(expected)) * 2**32 // limit + 16
        block = hashlib.shake_256(framed + number.to_bytes(8, "little")).digest(4 * count)
        expected += [word % modulus for (word,) in struct.iter_unpack("<I", block) if word < limit]
    assert integers_of(draw_elements(SeededSource(b"seed", label), Ring(modulus), (n,))) == expected[:n]


@pytest.mark.requirement("RND-02")
@pytest.mark.parametrize("modulus", [2, 7, 2**31 + 11, 2**32 - 5])
def test_every_half_of_the_ring_is_drawn(modulus: int) -> None:
    values = draw_elements(SeededSource(b"halves", str(modulus)), Ring(modulus), (4000,))
    assert 1700 < int(np.count_nonzero(values < modulus // 2)) * modulus / (modulus // 2 * 2) < 2300


PRIME = 2**521 - 1


@pytest.mark.requirement("SHM-07")
@given(st.lists(st.sampled_from((0, 1, PRIME - 1, PRIME, 2**528 - 1)) | st.integers(0, 2**528 - 1), max_size=6))
def test_drawn_coefficients_are_the_pieces_of_the_source_but_for_the_prime(pieces: list[int]) -> None:
    source = Script([])
    source.data = b"".join(piece.to_bytes(66, "little") for piece in pieces)
    usable = [piece % 2**521 for piece in pieces if piece % 2**521 != PRIME] + [0] * 6
    assert draw_coefficients(source, 6) == tuple(usable[:6])


@pytest.mark.requirement("SHM-07")
def test_no_coefficients_take_no_bytes() -> None:
    source = Script([1])
    assert draw_coefficients(source, 0) == ()
    assert source.taken == 0


@pytest.mark.parametrize("count", [-1, -8, True, 1.0, None])
def test_counts_that_are_no_counts_are_refused(count: Any) -> None:
    calls: dict[str, list[Callable[[Script], object]]] = {
        "d": [lambda source: draw_rounding(source, count)],
        "shape": [lambda source: draw_elements(source, Ring(7), (2, count))],
        "count": [
            lambda source: draw_coefficients(source, count),
            lambda source: draw_scalars(source, count),
            lambda _: SystemSource().take(count),
            lambda _: SeededSource(b"", "").take(count),
        ],
    }
    for name, some in calls.items():
        for call in some:
            source = Script([])
            with pytest.raises(ParameterError, match="must be an integer") as refused:
                call(source)
            assert (refused.value.parameter, source.taken) == (name, 0)


def test_no_draws_take_no_bytes() -> None:
    source = Script([])
    assert draw_rounding(source, 0).tolist() == []
    assert draw_scalars(source, 0) == ()
    assert source.taken == 0


@pytest.mark.requirement("SHM-07")
def test_every_half_of_the_field_of_coefficients_is_drawn() -> None:
    values = draw_coefficients(SeededSource(b"halves", "coefficients"), 4000)
    assert len(set(values)) == 4000
    assert 1800 < sum(value < PRIME // 2 for value in values) < 2200
    assert max(values) < PRIME


def test_nobody_draws_more_numbers_than_a_message_can_count() -> None:
    source = Script([])
    draws: tuple[Callable[[], object], ...] = (
        lambda: draw_elements(source, Ring(7), (2**32,)),
        lambda: draw_elements(source, Ring(7), (2**16, 2**16)),
        lambda: draw_elements(source, Ring(7), (0, 2**32)),
        lambda: draw_elements(source, Ring(7), (2**16, 0, 2**16)),
        lambda: draw_rounding(source, 2**32),
        lambda: draw_coefficients(source, 2**32),
    )
    for draw in draws:
        with pytest.raises(ParameterError, match=r"4294967296: must be an integer in \[0, 4294967295\]"):
            draw()
    assert source.taken == 0


@pytest.mark.requirement("ERR-02", "ABE-20")
def test_a_draw_of_too_many_exponents_names_their_number() -> None:
    with pytest.raises(ParameterError, match=r"^count = 68719476736: must be an integer in \[0, 4294967295\]"):
        draw_scalars(SeededSource(b"seed", "label"), 2**36)


class Short:
    """A source of a program's own that has too few bytes, or none."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def take(self, count: int) -> Any:
        return self.given


@pytest.mark.requirement("RND-03")
@pytest.mark.parametrize("given", [b"", b"123", None, "1" * 64, bytes(10**4)])
def test_a_source_without_the_bytes_that_are_asked_gives_no_draw(given: Any) -> None:
    source = Short(given)
    for act in (
        partial(draw_rounding, source, 2), partial(draw_elements, source, Ring(7), (2,)),
        partial(draw_coefficients, source, 2), partial(draw_scalars, source, 2), partial(draw_below, source, [5, 6]),
        partial(secagg.draw_randomness, secagg.PRESETS["tiny"], {0: source}),
    ):  # fmt: skip
        with pytest.raises(
            ParameterError, match=r"^take\(\d+\) of the source = '[^'0]*\w+( bytes)?': must be \d+ bytes$"
        ):
            act()
