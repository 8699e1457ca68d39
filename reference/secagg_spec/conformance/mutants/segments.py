"""Planted bugs of masks of several segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import masks
from secagg_spec.crypto.sealing import Context

Function = Callable[..., Any]
_MASKS = "secagg_spec.crypto.masks"
_CONTEXT = Context("p", b"h" * 32, b"s" * 16, 9, 515)


@mutant(
    "segment-not-in-the-pairwise-mask",
    "MSK-01",
    "privacy: two segments have one mask, so that their difference is bare",
    f"{_MASKS}:pairwise_key",
    lambda: masks.pairwise_key(_CONTEXT, b"x" * 32, {1: b"a" * 32, 2: b"b" * 32}, 1),
    also=("HSA-14",),
    kind="privacy",
    source="field not bound: the segment",
)
def _one_pairwise(right: Function) -> Function:
    return lambda context, secret, keys, segment=0: right(context, secret, keys)


@mutant(
    "segment-not-in-the-self-mask",
    "MSK-02",
    "privacy: two segments of a user have one self mask",
    f"{_MASKS}:self_key",
    lambda: masks.self_key(_CONTEXT, b"x" * 32, 3, 1),
    also=("HSA-14",),
    kind="privacy",
    source="field not bound: the segment",
)
def _one_own(right: Function) -> Function:
    return lambda context, seed, user, segment=0: right(context, seed, user)
