"""Trees of values as lists of byte strings, so that a record of the engine can keep the state of a client.

Source: spec/flower.md, section 3 (FLW-26).
"""

from __future__ import annotations

import hashlib
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
    """Return a tree of dicts with text as keys, lists, text, integers, None and bytes: a hash, JSON, each byte string.

    Raises
    ------
    ParameterError
        The tree has a value of another type, a dict whose only key is ``"bytes"``, an integer of more than 4,300
        digits, or more than 127 levels.
    """
    head, leaves = _parts(tree)
    return [_hash([head, *leaves]), head, *leaves]


def _parts(tree: Any) -> tuple[bytes, list[bytes]]:
    """Return the JSON of a tree, with a number for each byte string, and the byte strings."""
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

    return json.dumps(plain(tree, _DEEPEST)).encode("ascii"), leaves


def unpack(packed: Sequence[bytes]) -> Any:
    """Return the tree that `pack` wrote.

    Raises
    ------
    ParameterError
        `pack` did not write this, or it was changed since.
    """
    given = [validate.octets("packed", each) for each in validate.sequence("packed", packed, "byte strings")]
    if len(given) < 2 or _hash(given[1:]) != given[0]:
        raise ParameterError("packed", f"{len(given)} byte strings", "as they were packed")
    _, head, *leaves = given
    left = enumerate(leaves, start=1)

    def get(found: dict[str, Any]) -> Any:
        if set(found) != {_LEAF}:
            return found
        number, leaf = next(left, (0, b""))
        if type(found[_LEAF]) is not int or found[_LEAF] != number:
            raise ValueError
        return leaf

    try:
        tree = json.loads(head, object_hook=get)
        same = _parts(tree) == (head, leaves)
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise ParameterError("packed", f"{len(given)} byte strings", "as `pack` writes them")
    return tree


def _hash(parts: Sequence[bytes]) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.digest()
