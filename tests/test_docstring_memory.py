"""What functions make in large numbers takes the memory that their docstrings name."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from secagg_spec import events
from secagg_spec.arithmetic.modular import PrimeField, Ring
from secagg_spec.crypto import entropy, prg
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.learning import clock
from secagg_spec.protocols.secagg import graph

_SOURCE = SeededSource(b"memory", "test")
WORK = clock.Work(1.0, 1.0)
_MANY = 2**17
_NAMED = re.compile(r"(?:takes|up\s+to)\s+(\d+)\s+bytes")
MADE: list[tuple[Callable[..., object], Callable[[], object], int]] = [
    (prg.expand, lambda: prg.expand(bytes(32), Ring(2**32 - 5), _MANY), _MANY),
    (entropy.draw_elements, lambda: entropy.draw_elements(_SOURCE, Ring(2**32 - 5), (_MANY,)), _MANY),
    (entropy.draw_elements, lambda: entropy.draw_elements(_SOURCE, Ring(2**31 + 1), (_MANY,)), _MANY),
    (entropy.draw_elements, lambda: entropy.draw_elements(_SOURCE, Ring(2), (_MANY,)), _MANY),
    (entropy.draw_rounding, lambda: entropy.draw_rounding(_SOURCE, _MANY), _MANY),
    (entropy.draw_coefficients, lambda: entropy.draw_coefficients(_SOURCE, _MANY), _MANY),
    (entropy.draw_scalars, lambda: entropy.draw_scalars(_SOURCE, _MANY), _MANY),
    (Ring.zeros, lambda: Ring(5).zeros(_MANY), _MANY),
    (PrimeField.powers, lambda: PrimeField(7).powers(np.ones(8, np.uint64), _MANY // 8), _MANY),
    (graph.draw_order, lambda: graph.draw_order(_SOURCE, 2**11), 2**11),
    (events.drawn_delays, lambda: events.drawn_delays(b"s", 1, _MANY, "uniform", 0.0, 1.0), _MANY),
    (
        clock.buffered,
        lambda: clock.buffered(clock.Buffered(10, 3, 1), 2**10, clock.Work(1.0, 1.0), clock.Costs(), 1),
        2**10,
    ),
]


@pytest.mark.parametrize(("function", "make", "count"), MADE, ids=range(len(MADE)))
def test_what_is_made_takes_the_memory_that_the_docstring_names(
    function: Callable[..., object], make: Callable[[], object], count: int
) -> None:
    named = int(_NAMED.findall(function.__doc__ or "")[0])
    make()
    tracemalloc.start()
    try:
        made = make()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made is not None
    assert 0.5 * named < peak / count < 1.15 * named
