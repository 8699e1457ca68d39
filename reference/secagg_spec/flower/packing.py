"""Trees of values as lists of byte strings, so that a record of the engine can keep the state of a client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from secagg_spec import documents
from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError

_LEAF = "bytes"
_DEEPEST = documents.DEEPEST - 1
_NODES = f"made of lists, dicts of more than {_LEAF!r}, text, integers, None and bytes, in at most {_DEEPEST} levels"


def pack(tree: Any) -> list[bytes]:
    """Return a tree of dicts with text as keys, lists, text, integers, None and bytes: JSON, then each byte string.

    Raises
    ------
    ParameterError
        The tree has a value of another type, a dict whose only key is ``"bytes"``, an integer of more than 4,300
        digits, or more than 127 levels.
    """
    leaves: list[bytes] = []

    def plain(node: Any, levels: int) -> Any:
        if type(node) is bytes:
            leaves.append(node)
            return {_LEAF: len(leaves)}
        if node is None or type(node) is str or (type(node) is int and abs(node) < documents.TOO_LONG):
            return node
        if levels and type(node) is list:
            return [plain(each, levels - 1) for each in node]
        if levels and type(node) is dict and set(node) != {_LEAF} and all(type(key) is str for key in node):
            return {key: plain(each, levels - 1) for key, each in node.items()}
        raise ParameterError("tree", type(node).__name__, _NODES)

    head = json.dumps(plain(tree, _DEEPEST)).encode("ascii")
    return [head, *leaves]


def unpack(packed: Sequence[bytes]) -> Any:
    """Return the tree that `pack` wrote.

    Raises
    ------
    ParameterError
        `pack` did not write this.
    """
    head, *leaves = validate.sequence("packed", packed, "byte strings") or [b""]

    def tree(node: Any) -> Any:
        if isinstance(node, list):
            return [tree(each) for each in node]
        if isinstance(node, dict):
            return leaves[node[_LEAF] - 1] if set(node) == {_LEAF} else {key: tree(node[key]) for key in node}
        return node

    try:
        found = tree(documents.from_json(head.decode("ascii")))
        if pack(found) == [head, *leaves]:
            return found
    except (AttributeError, LookupError, TypeError, ValueError):
        pass
    raise ParameterError("packed", f"{len(packed)} byte strings", "as they are packed")
