"""Integers that Python writes into no text, in each place where a right argument holds an integer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from secagg_spec.protocols import codec

HUGE = (10**5000, -(10**5000))
_PLACES = 3
"""How many entries of a list, tuple or mapping are made huge, one after another."""


def enlarged(old: Any) -> Iterator[Any]:
    """Yield a value with a huge integer in the place of one of its integers: itself, an entry, a key or a field."""
    if isinstance(old, (int, np.integer)) and not isinstance(old, (bool, np.bool_)):
        yield from HUGE
    elif type(old) in (list, tuple):
        for at, entry in enumerate(old[:_PLACES]):
            for huge in enlarged(entry):
                yield type(old)([*old[:at], huge, *old[at + 1 :]])
    elif type(old) is dict:
        for key in list(old)[:_PLACES]:
            rest = {other: entry for other, entry in old.items() if other != key}
            yield from ({**rest, huge: old[key]} for huge in enlarged(key))
            yield from ({**rest, key: huge} for huge in enlarged(old[key]))
    elif isinstance(old, codec.Message):
        for name in codec.field_codecs(type(old)):
            yield from (replace(old, **{name: huge}) for huge in enlarged(getattr(old, name)))
