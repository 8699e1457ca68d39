"""The inputs of a simulated round (reals, quantised), its dropouts, and its result."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secagg_spec.arithmetic import quantizer, validate
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements, draw_rounding
from secagg_spec.errors import ParameterError
from secagg_spec.simulate.narration import shown, users_in_words

MOST_ELEMENTS = 2**21
BOX_ELEMENTS = 37
"""What a sealed box takes beside what is in it, or one with a pair of shares, in units of one vector element."""
_LEVEL = 2**16


@dataclass(frozen=True, eq=False)
class Inputs:
    """Real inputs in [-1, 1] and their updates, (N, d); only updates if the modulus is too small to carry N inputs.

    `name` is the protocol's symbol for the modulus.
    """

    ring: Ring
    name: str
    updates: UintArray
    reals: RealArray | None

    def compared(self, chosen: Sequence[int], aggregate: UintArray) -> str:
        """Say what was summed, once the sum was found to be right in all elements."""
        plain = self.ring.sum(self.updates[list(chosen)])
        if not np.array_equal(aggregate, plain):
            raise AssertionError("the round did not give the plain sum")
        if self.reals is None:
            small = (
                f"{self.name} = {self.ring.modulus} is too small to carry the sum of {len(self.updates)} real inputs"
            )
            return f"sum over {users_in_words(chosen)}: {shown(aggregate)}\n{small}, so the updates are drawn elements"
        decoded = quantizer.dequantize(aggregate, level=_level(self.ring, len(self.updates)), ring=self.ring)
        return (
            f"sum over {users_in_words(chosen)}, decoded: {shown(decoded)}\n"
            f"sum of the real inputs:      {shown(self.reals[list(chosen)].sum(axis=0))}"
        )


def draw_inputs(ring: Ring, name: str, N: int, d: int, seed: bytes) -> Inputs:
    """Draw the inputs of N users, d elements each."""
    source = SeededSource(seed, "simulate")
    if _bound(ring, N) < 1:
        return Inputs(ring, name, draw_elements(source, ring, (N, d)), None)
    reals = np.round(draw_rounding(source, N * d) * 2 - 1, 3).reshape(N, d)
    level = _level(ring, N)
    rows = [
        quantizer.quantize(row, level=level, ring=ring, weight=N, rounding=draw_rounding(source, d)) for row in reals
    ]
    return Inputs(ring, name, np.stack(rows), reals)


def _level(ring: Ring, N: int) -> int:
    """Return the largest power of two up to 2**16 at which inputs in [-1, 1] fit N times into the ring."""
    bound = _bound(ring, N)
    return min(_LEVEL, 1 << (bound - 1).bit_length() - 1) if bound > 1 else 1


def _bound(ring: Ring, N: int) -> int:
    """Return the largest quantised value that fits N times into the ring (QNT-04)."""
    return (ring.modulus - 1) // 2 // N


def colluders(given: int | None, default: int, most: int) -> int:
    """Return the value of the option ``--colluders``, at most `most`, or the default if it is not given."""
    return default if given is None else validate.integer("colluders", given, 1, most)


def seed_bytes(seed: int) -> bytes:
    """Return the bytes of the option ``--seed``."""
    return validate.integer("seed", seed, 0, 2**64 - 1).to_bytes(8, "little")


def add_drop(parser: Any, example: str) -> None:
    """Add the option ``--drop``, for protocols that run phase by phase."""
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="PHASE:USERS",
        help=f"users drop out before a phase: {example}:2 or {example}:1,2 (may be given several times)",
    )


def read_dropouts(given: Sequence[str], phases: Sequence[str]) -> dict[str, list[int]]:
    """Return the users of the options ``--drop PHASE:USER`` and ``--drop PHASE:USER,USER``, by phase."""
    dropouts: dict[str, list[int]] = {}
    for entry in given:
        phase, _, users = entry.partition(":")
        if not re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18})*", users):
            wanted = f"PHASE:USER or PHASE:USER,USER,…, as in {phases[1]}:2; phases are {', '.join(phases)}"
            wanted += ", and users have at most 18 digits"
            raise ParameterError("--drop", entry, wanted)
        dropouts.setdefault(phase, []).extend(map(int, users.split(",")))
    return dropouts


def told_dropouts(dropouts: Mapping[str, Sequence[int]]) -> str:
    """Say which users drop out in which phase."""
    return "; ".join(f"{users_in_words(users)} before {phase}" for phase, users in dropouts.items()) or "nobody"


def refuse_large(what: str, elements: int, instead: str = "") -> None:
    """Refuse a round that is too large to follow; `instead` names another option that helps."""
    if elements > MOST_ELEMENTS:
        wanted = f"at most {MOST_ELEMENTS} elements; give {instead}fewer --users or a smaller --length"
        raise ParameterError(what, elements, wanted)
