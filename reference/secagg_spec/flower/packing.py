"""Trees of values as lists of byte strings, so that a record of the engine can keep the state of a client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from secagg_spec.errors import ParameterError

_LEAF = "bytes"


def pack(tree: Any) -> list[bytes]:
    """Return a tree of dicts with text as keys, lists, text, integers, None and bytes: JSON, then each byte string."""
    leaves: list[bytes] = []

    def put(leaf: Any) -> dict[str, int]:
        if not isinstance(leaf, bytes):
            raise ParameterError("tree", leaf, "made of dicts, lists, text, integers, None and bytes")
        leaves.append(leaf)
        return {_LEAF: len(leaves)}

    head = json.dumps(tree, default=put).encode("ascii")
    return [head, *leaves]


def unpack(packed: Sequence[bytes]) -> Any:
    """Return the tree that `pack` wrote.

    Raises
    ------
    ParameterError
        `pack` did not write this.
    """

    def get(found: dict[str, Any]) -> Any:
        return packed[found[_LEAF]] if set(found) == {_LEAF} else found

    try:
        return json.loads(packed[0], object_hook=get)
    except (LookupError, TypeError, ValueError) as error:
        raise ParameterError("packed", repr(error), "a list of byte strings that was packed") from error
