"""One valid call of every public function of HeteroSAg: the function, its arguments, what stays, names, sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from secagg_spec.arithmetic import averages, factorisations, levels, packing, participation_classes, segments
from secagg_spec.arithmetic.levels import Range
from secagg_spec.errors import (
    DuplicateUser,
    LengthMismatch,
    NonCanonical,
    OutOfRange,
    ParameterError,
    TooFewSurvivors,
    UnknownUser,
)
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.heterosag import averages as heterosag_averages
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import PRESETS, UNIT, Parameters, cells_of
from tests.protocols.heterogeneous import case_of
from tests.strategies import vector

MODULES = (
    averages,
    participation_classes,
    factorisations,
    levels,
    packing,
    segments,
    heterosag,
    heterosag_averages,
    heterosag_plan,
)
CORES = {
    "participation_classes",
    "small_class",
    "algorithm_1",
    "algorithm_2",
    "pack_segments",
    "read_segments",
}
"""Functions behind a boundary, and functions whose only arguments are objects of the library."""

Parts: TypeAlias = tuple[Callable[..., Any], dict[str, Any], dict[str, Any], tuple[str, ...], tuple[str, ...]]

TINY = PRESETS["tiny"]
CASE = case_of(TINY)
START = {"session": bytes(16), "round": 0}
HEADER = {**START, "sender": 0, "receiver": 1}
COUNTS = {"N": 12, "D": 1, "T": 1, "t": 3, "d": 4, "sizes": (8, 4), "subgroups": (2, 1), "levels": (2, 3)}
NUMBERS = {**COUNTS, "range": UNIT, "matrix": "perfect"}
NO_MATRIX = (
    "from 2 to 32, or such that it or the number above it is p + 1 or 2p for a prime p and below 2**32, "
    "for a perfect matrix"
)
SAMPLED = ("sealing_key", "masking_key", "self_seed", "key_coefficients", "seed_coefficients", "coefficients")
REALS = np.array([0.5, -0.25, 1.0, -1.0])
ROWS = tuple(f"matrix[{at}]" for at in range(4))
DRAWS = np.array([0.5, 0.0, 0.25, 0.75])
MEANS = np.array([[0.5, 1.0], [0.25, -1.0], [0.0, 0.0]])
PACKED = heterosag.pack_segments(cells_of(TINY, 0), CASE.updates[0])
SUMS = CASE.run(["stays"] * 12).sums
_AGAIN = f"sums[{len(SUMS)}] = 'the cell of segment 0 again': must be one sum for each cell"
START_NAMES = ("number", "round")
NO_SURVIVORS = "sums[0].survivors = []: must be some of the users [0, 1, 2, 3, 4, 5, 6, 7]"
TWICE = "sums[0].survivors = 0: must be a user that is named once"


def started(**changed: Any) -> Any:
    """The state of user 0."""
    values = {"session": bytes(16), "number": 0, "user": 0, "update": CASE.updates[0], "past": (), **changed}
    return heterosag.user_start(TINY, **values)


def segments_message(**fields: Any) -> bytes:
    """Writing a message with masked segments."""
    return encode(heterosag.MaskedSegments(**{**HEADER, **fields}))


def bounds(**values: Any) -> Any:
    """A range of which all is asked."""
    given = Range(**values)
    return given.step(3), given.value(REALS, 3), given.clip(REALS)


CALLS: dict[str, Parts] = {
    "Range": (bounds, {"low": -1.0, "high": 1.0}, {}, ("range",), ()),
    "Range.clip": (UNIT.clip, {"x": REALS}, {}, (), ()),
    "check_levels of HeteroSAg": (levels.check_levels, {"levels": 3}, {}, (), ()),
    "quantize_levels": (
        levels.quantize_levels,
        {"x": REALS, "levels": 3, "rounding": DRAWS},
        {"range": UNIT},
        (),
        (),
    ),
    "cell_mean": (
        levels.cell_mean,
        {"total": vector([1, 2]), "count": 2, "levels": 3},
        {"range": UNIT},
        (),
        (),
    ),
    "bits_of": (packing.bits_of, {"modulus": 9}, {}, (), ()),
    "packed_bytes": (packing.packed_bytes, {"count": 3, "modulus": 9}, {}, (), ()),
    "pack": (packing.pack, {"numbers": vector([1, 8, 0]), "modulus": 9}, {}, (), ()),
    "unpack": (packing.unpack, {"data": b"\x81\x00", "count": 3, "modulus": 9}, {}, (), ("count",)),
    "weighted_mean": (averages.weighted_mean, {"means": MEANS, "counts": [1, 2, 3]}, {}, ("count", "cells"), ()),
    "median": (averages.median, {"means": MEANS}, {}, ("cells",), ()),
    "trimmed_mean": (averages.trimmed_mean, {"means": MEANS, "trim": 1}, {}, ("cells",), ()),
    "combined": (
        averages.combined,
        {"means": MEANS, "counts": [1, 2, 3], "method": "trimmed", "trim": 1},
        {},
        ("count", "cells"),
        (),
    ),
    "perfect_factorisation": (factorisations.perfect_factorisation, {"points": 6}, {}, (), ("points",)),
    **{
        name: (segments.MATRICES[name], {"count": 5}, {}, ("subgroups",), ("count",))
        for name in ("cyclic", "perfect", "separate", "joint")
    },
    **{
        name: (
            getattr(segments, name),
            {"matrix": segments.cyclic(4)},
            {},
            ROWS,
            (),
        )
        for name in ("check_square", "entries", "inference_robustness")
    },
    "decodable": (
        segments.decodable,
        {"matrix": segments.cyclic(4), "subgroups": (0,), "dropped": (1,)},
        {},
        ROWS,
        (),
    ),
    "Parameters of HeteroSAg": (Parameters, NUMBERS, {}, ("N - D",), ()),
    "cells_of": (cells_of, {"user": 3}, {"parameters": TINY}, (), ()),
    "quantize_update": (
        heterosag_averages.quantize_update,
        {"user": 0, "x": REALS, "rounding": DRAWS},
        {"parameters": TINY, "clip": False},
        (),
        (),
    ),
    "quantize_update, clipped": (
        heterosag_averages.quantize_update,
        {"user": 0, "x": 2 * REALS, "rounding": DRAWS},
        {"parameters": TINY, "clip": True},
        (),
        (),
    ),
    "check_cells": (heterosag.check_cells, {"survivors": tuple(range(12))}, {"parameters": TINY}, (), ()),
    "check_past": (
        heterosag.check_past,
        {"survivors": tuple(range(12)), "past": (frozenset(range(12)),)},
        {"parameters": TINY},
        (),
        (),
    ),
    "cell_sums": (
        heterosag.cell_sums,
        {"survivors": tuple(range(12)), "totals": [one.total for one in SUMS]},
        {"parameters": TINY},
        ("totals",),
        (),
    ),
    "combine": (
        heterosag_averages.combine,
        {"method": "trimmed", "trim": 0},
        {"parameters": TINY, "sums": SUMS},
        (),
        (),
    ),
    "encode MaskedSegments": (
        segments_message,
        {**HEADER, "neighbours": (1, 2), "segments": b"abc"},
        {},
        (),
        (),
    ),
    "unpack_segments": (heterosag.unpack_segments, {"data": PACKED}, {"cells": cells_of(TINY, 0)}, ("segments",), ()),
    "agreed of HeteroSAg": (
        heterosag.agreed,
        {"session": bytes(16), "number": 0},
        {"parameters": TINY},
        START_NAMES,
        (),
    ),
    "user_start of HeteroSAg": (
        started,
        {"session": bytes(16), "number": 0, "user": 0, "update": CASE.updates[0], "past": (frozenset({0, 1, 2}),)},
        {},
        START_NAMES,
        (),
    ),
    "server_start of HeteroSAg": (
        heterosag.server_start,
        {"session": bytes(16), "number": 0, "past": (frozenset({0, 1, 2}),)},
        {"parameters": TINY},
        START_NAMES,
        (),
    ),
    "user_again": (
        heterosag.user_again,
        {"number": 1, "update": CASE.updates[0]},
        {"state": started()},
        START_NAMES,
        (),
    ),
    "server_again": (
        heterosag.server_again,
        {"number": 1},
        {"state": heterosag.server_start(TINY, bytes(16), 0)},
        START_NAMES,
        (),
    ),
    "open_round of HeteroSAg": (
        heterosag.open_round,
        {"updates": CASE.updates, **START},
        {"parameters": TINY},
        ("update",),
        (),
    ),
    "run_round of HeteroSAg": (
        heterosag.run_round,
        {"updates": CASE.updates, "randomness": CASE.randomness, "dropouts": {"unmasking": [0]}, **START},
        {"parameters": TINY},
        (*SAMPLED, "private", "t", "secret", "update"),
        (),
    ),
}

REFUSED: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    ("Range", {"low": 1.0}, ParameterError, "range = [1.0, 1.0]: must be two numbers, the smaller first"),
    ("Range", {"high": float("inf")}, ParameterError, "range = inf: must be two finite numbers, the smaller first"),
    ("Range", {"low": float("nan")}, ParameterError, "range = nan: must be two finite numbers, the smaller first"),
    (
        "Range",
        {"low": -1e308, "high": 1e308},
        ParameterError,
        "range = [-1e+308, 1e+308]: must be such that the difference of the two is finite in binary64",
    ),
    ("quantize_levels", {"x": 2 * REALS}, OutOfRange, "x[2] = 2.0: must be in [-1.0, 1.0]"),
    ("quantize_levels", {"levels": 1}, ParameterError, "levels = 1: must be an integer in [2, 2147483648]"),
    ("quantize_levels", {"rounding": 2 * DRAWS}, OutOfRange, "rounding[0] = 1.0: must be in [0, 1)"),
    ("cell_mean", {"total": vector([5])}, NonCanonical, "total[0] = 5: must be in [0, 5)"),
    ("pack", {"numbers": vector([1, 9])}, NonCanonical, "numbers[1] = 9: must be in [0, 9)"),
    ("unpack", {"data": b""}, LengthMismatch, "len(data) = 0: must be 2 bytes for 3 elements modulo 9"),
    ("unpack", {"data": b"\x81\x10"}, NonCanonical, r"data = b'\x81\x10': must be zero in the bits that are left over"),
    ("weighted_mean", {"counts": [1]}, LengthMismatch, "len(counts) = 1: must be 3, one for each cell"),
    ("trimmed_mean", {"trim": 2}, ParameterError, "trim = 2: must be an integer in [0, 1]"),
    (
        "perfect_factorisation",
        {"points": 36},
        ParameterError,
        "points = 36: must be 2, p + 1, 2p, 16 or 28, for an odd prime p, and below 4294967295",
    ),
    (
        "perfect_factorisation",
        {"points": 2**32},
        ParameterError,
        "points = 4294967296: must be 2, p + 1, 2p, 16 or 28, for an odd prime p, and below 4294967295",
    ),
    ("perfect", {"count": -1}, ParameterError, f"subgroups in all = -1: must be {NO_MATRIX}"),
    (
        "perfect",
        {"count": 35},
        ParameterError,
        f"subgroups in all = 35: must be {NO_MATRIX}",
    ),
    (
        "Parameters of HeteroSAg",
        {"N": 13},
        ParameterError,
        "sizes = [8, 4]: must be numbers with the sum N = 13, and not 12",
    ),
    (
        "Parameters of HeteroSAg",
        {"levels": (3, 2)},
        ParameterError,
        "levels = [3, 2]: must be ascending: no group has fewer levels than the one before",
    ),
    (
        "Parameters of HeteroSAg",
        {"subgroups": (3, 1)},
        ParameterError,
        "sizes[0] = 8: must be at least T + 2 = 3 users for each of its 3 subgroups",
    ),
    (
        "Parameters of HeteroSAg",
        {"levels": (2**31, 2**31)},
        ParameterError,
        "levels = 2147483648: must be such that 8 * (levels - 1) + 1 is at most 2**32",
    ),
    (
        "Parameters of HeteroSAg",
        {"d": 2},
        ParameterError,
        "d = 2: must be an integer of at least Z = 3, one element for each segment, and at most 4294967295",
    ),
    (
        "Parameters of HeteroSAg",
        {"d": 2**32},
        ParameterError,
        "d = 4294967296: must be an integer of at least Z = 3, one element for each segment, and at most 4294967295",
    ),
    ("Parameters of HeteroSAg", {"D": -1}, ParameterError, "D = -1: must be an integer in [0, 9]"),
    ("Parameters of HeteroSAg", {"T": 12}, ParameterError, "T = 12: must be an integer in [1, 10]"),
    (
        "Parameters of HeteroSAg",
        {"matrix": ["cyclic"]},
        ParameterError,
        "matrix = ('cyclic',): must be 'cyclic' or 'perfect' or 'separate'",
    ),
    ("quantize_update", {"x": REALS[:3]}, LengthMismatch, "x.shape = (3,): must be (4)"),
    ("combine", {"sums": [*SUMS, SUMS[0]]}, ParameterError, _AGAIN),
    (
        "combine",
        {"sums": []},
        ParameterError,
        "sums = 'none of segment 0': must be one of a cell of each segment, or more",
    ),
    ("combine", {"sums": None}, ParameterError, "sums = 'NoneType': must be a list or another sequence of CellSum"),
    ("combine", {"sums": [3]}, ParameterError, "sums[0] = 'int': must be of the class CellSum"),
    (
        "combine",
        {"sums": [replace(one, total=np.zeros(9, np.uint64)) for one in SUMS]},
        LengthMismatch,
        "sums[0].total.shape = (9,): must be (2)",
    ),
    (
        "combine",
        {"parameters": replace(TINY, d=5)},
        ParameterError,
        "sums[2].cell = 'that of segment 1': must be a cell of the parameters",
    ),
    (
        "combine",
        {"sums": [replace(one, survivors=(0, 11)) for one in SUMS]},
        ParameterError,
        "sums[0].survivors = [0, 11]: must be some of the users [0, 1, 2, 3, 4, 5, 6, 7]",
    ),
    ("combine", {"sums": [replace(one, survivors=()) for one in SUMS]}, ParameterError, NO_SURVIVORS),
    ("combine", {"sums": [replace(one, survivors=(0, 0)) for one in SUMS]}, DuplicateUser, TWICE),
    ("check_cells", {"survivors": (0, 12)}, UnknownUser, "survivors = 12: must be a user in [0, 12)"),
    ("check_past", {"past": ((0, 0),)}, DuplicateUser, "past[0] = 0: must be a user that is named once"),
    (
        "cell_sums",
        {"survivors": "abc"},
        ParameterError,
        "survivors = 'str': must be a list or another collection of integers",
    ),
    (
        "cell_sums",
        {"totals": [one.total.astype(np.int64) for one in SUMS]},
        ParameterError,
        "totals[0] = 'ndarray of dtype int64': must be a numpy array of dtype uint64",
    ),
    ("quantize_update", {"clip": "no"}, ParameterError, "clip = 'str': must be of the class bool"),
    ("combine", {"method": "mode"}, ParameterError, "method = 'mode': must be 'mean' or 'median' or 'trimmed'"),
    (
        "user_start of HeteroSAg",
        {"update": vector([1, 1, 2, 0])},
        NonCanonical,
        "update[2] = 2: must be in [0, 2), in segment 1",
    ),
    ("user_again", {"number": 0}, ParameterError, "number = 0: must be an integer in [1, 4294967295]"),
    ("server_again", {"number": -1}, ParameterError, "number = -1: must be an integer in [1, 4294967295]"),
    (
        "run_round of HeteroSAg",
        {"dropouts": {"masked_input": [8, 9]}},
        TooFewSurvivors,
        "2 of the users of subgroups [2] survive in segment 0; none or at least T + 2 = 3 are needed",
    ),
]
