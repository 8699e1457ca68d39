"""Access trees: conditions on sets of attributes, their encoding, and the sharing of a number among their leaves.

Source: Bethencourt, Sahai and Waters 2007, section 4.1; spec/attributes.md, sections 2 and 3 (ABE-01 to ABE-08).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeAlias, Union

from secagg_spec.arithmetic import scalars, validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import LengthMismatch, Malformed, ParameterError

MAX_ATTRIBUTE_BYTES: Final = 255
MAX_LEAVES: Final = 32
MAX_DEPTH: Final = 8
"""The largest number of gates on a path from the root to a leaf."""
_LEAF, _GATE = 0, 1


@dataclass(frozen=True)
class Leaf:
    """The condition that a set holds an attribute.

    Raises
    ------
    ParameterError, LengthMismatch
        The attribute is not 1 to 255 bytes (ABE-01).
    """

    attribute: bytes

    def __post_init__(self) -> None:
        check_attribute("attribute", self.attribute)


@dataclass(frozen=True)
class Gate(validate.Plain):
    """The condition that a set satisfies at least `threshold` of the `children`.

    Raises
    ------
    ParameterError
        There are no children, a child is not a tree, or the threshold is not in ``[1, len(children)]`` (ABE-02); the
        tree has more than 32 leaves or more than 8 gates on a path (ABE-03).
    """

    threshold: int
    children: tuple[Tree, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not validate.sequence("children", self.children, "trees"):
            raise ParameterError("children", self.children, "at least one tree")
        leaves(self, "children")
        _check_threshold(self.threshold, len(self.children))


Tree: TypeAlias = Union[Leaf, Gate]  # noqa: UP007 - Gate refers to Tree before it is defined


def all_of(*children: Tree | bytes) -> Gate:
    """Return the gate that requires all children; bytes stand for the leaf with that attribute."""
    return Gate(len(children), tuple(_tree(child) for child in children))


def any_of(*children: Tree | bytes) -> Gate:
    """Return the gate that requires one of the children; bytes stand for the leaf with that attribute."""
    return Gate(1, tuple(_tree(child) for child in children))


def _tree(child: Tree | bytes) -> Tree:
    return Leaf(child) if isinstance(child, bytes) else child


def _check_threshold(threshold: object, children: int) -> int:
    return validate.integer("threshold", threshold, 1, children)


def check_attribute(name: str, value: object) -> bytes:
    """Return `value` when it is an attribute; `name` appears in the error message (ABE-01).

    Raises
    ------
    ParameterError
        The value is not bytes.
    LengthMismatch
        The value is not 1 to 255 bytes long.
    """
    attribute = validate.octets(name, value)
    if not 1 <= len(attribute) <= MAX_ATTRIBUTE_BYTES:
        raise LengthMismatch(f"len({name})", len(attribute), f"in [1, {MAX_ATTRIBUTE_BYTES}]")
    return attribute


def attribute_list(value: Collection[bytes]) -> list[bytes]:
    """Return the attributes of a sequence, set or mapping (ABE-01).

    Raises
    ------
    ParameterError
        The value is not a sequence, set or mapping, or an entry is not bytes.
    LengthMismatch
        An attribute is not 1 to 255 bytes long.
    """
    if not isinstance(value, (Sequence, Set, Mapping)) or isinstance(value, (str, bytes, bytearray, memoryview)):
        raise ParameterError("attributes", type(value).__name__, "a sequence or set of attributes")
    return [check_attribute("attributes", name) for name in value]


def leaves(tree: Tree, name: str = "tree") -> tuple[Leaf, ...]:
    """Return the leaves of a tree in the order of its bytes; `name` appears in the error message.

    Raises
    ------
    ParameterError
        The value is not a tree, or the tree is too large (ABE-03).
    """
    found: list[Leaf] = []
    for leaf in _walk(name, tree, 0):
        found.append(leaf)
        if len(found) > MAX_LEAVES:
            raise ParameterError(name, f"more than {MAX_LEAVES} leaves", f"a tree of at most {MAX_LEAVES} leaves")
    return tuple(found)


def _walk(name: str, node: object, gates: int) -> Iterator[Leaf]:
    if isinstance(node, Leaf):
        yield node
        return
    if not isinstance(node, Gate):
        raise ParameterError(name, type(node).__name__, "made of objects of the classes Leaf and Gate")
    if gates == MAX_DEPTH:
        raise ParameterError(name, f"more than {MAX_DEPTH} gates on a path", f"a tree with at most {MAX_DEPTH}")
    for child in node.children:
        yield from _walk(name, child, gates + 1)


# ------------------------------------------------------------------------------------------------------------- bytes


def tree_bytes(tree: Tree) -> bytes:
    """Return the bytes of a tree (ABE-05).

    Raises
    ------
    ParameterError
        The value is not a tree, or the tree is too large (ABE-03).
    """
    leaves(tree)
    return _node_bytes(tree)


def _node_bytes(node: Tree) -> bytes:
    if isinstance(node, Leaf):
        return bytes([_LEAF, len(node.attribute)]) + node.attribute
    return bytes([_GATE, node.threshold, len(node.children)]) + b"".join(map(_node_bytes, node.children))


def read_tree(reader: Reader) -> Tree:
    """Read a tree at the reader's place, and return it.

    Raises
    ------
    Malformed
        The bytes there do not encode a tree, or the tree is refused (ABE-24).
    """
    try:
        return _read_node(reader, 0)
    except ParameterError as error:
        raise Malformed(f"an access tree is refused: {error}") from None


def _read_node(reader: Reader, gates: int) -> Tree:
    kind = reader.number(1)
    if kind == _LEAF:
        return Leaf(reader.take(reader.number(1)))
    if kind != _GATE:
        raise Malformed(f"a node of the kind {kind} in an access tree, where {_LEAF} and {_GATE} are known")
    if gates == MAX_DEPTH:
        raise Malformed(f"an access tree with more than {MAX_DEPTH} gates on a path")
    threshold, children = reader.number(1), reader.number(1)
    return Gate(threshold, tuple(_read_node(reader, gates + 1) for _ in range(children)))


# ------------------------------------------------------------------------------------------------------------ shares


def coefficient_count(tree: Tree) -> int:
    """Return how many coefficients all gates of a tree need together.

    Raises
    ------
    ParameterError
        The value is not a tree, or the tree is too large (ABE-03).
    """
    leaves(tree)
    return _count(tree)


def _count(node: Tree) -> int:
    return 0 if isinstance(node, Leaf) else node.threshold - 1 + sum(map(_count, node.children))


def share(tree: Tree, secret: int, coefficients: Sequence[int]) -> tuple[int, ...]:
    """Return the share of each leaf: numbers in ``[0, r)`` (ABE-06).

    Parameters
    ----------
    tree : Leaf or Gate
        The access tree.
    secret : int
        The number to share, in ``[1, r)``.
    coefficients : sequence of int
        `coefficient_count` numbers in ``[0, r)``, uniform and fresh.

    Raises
    ------
    NonCanonical
        A number is out of its range (ABE-19).
    LengthMismatch
        There are more or fewer coefficients than the tree needs (ABE-07).
    ParameterError
        The tree is refused (ABE-03), or an argument is not a number.
    """
    given = validate.sequence("coefficients", coefficients, "integers in [0, r)")
    needed = coefficient_count(tree)
    if len(given) != needed:
        raise LengthMismatch("len(coefficients)", len(given), f"{needed} for this tree")
    supply = iter([scalars.scalar(f"coefficients[{k}]", number, 0) for k, number in enumerate(given)])
    return tuple(_shares(tree, scalars.scalar("secret", secret), supply))


def _shares(node: Tree, value: int, supply: Iterator[int]) -> Iterator[int]:
    if isinstance(node, Leaf):
        yield value
        return
    drawn = [next(supply) for _ in range(node.threshold - 1)]
    for point, child in enumerate(node.children, start=1):
        yield from _shares(child, scalars.evaluate(value, drawn, point), supply)


def select(tree: Tree, attributes: Collection[bytes]) -> Mapping[int, int] | None:
    """Return the fewest leaves that satisfy the tree, with their weights; None if the attributes do not (ABE-08).

    A leaf is identified by its index in the order of `leaves`. The sum of weight times share is the shared number.

    Raises
    ------
    ParameterError
        The tree is refused (ABE-03), or the attributes are invalid (ABE-01).
    """
    leaves(tree)
    return _select(tree, frozenset(attribute_list(attributes)), count())


def _select(node: Tree, attributes: frozenset[bytes], numbers: Iterator[int]) -> dict[int, int] | None:
    if isinstance(node, Leaf):
        number = next(numbers)
        return {number: 1} if node.attribute in attributes else None
    below = [(point, _select(child, attributes, numbers)) for point, child in enumerate(node.children, start=1)]
    known = sorted(((point, part) for point, part in below if part is not None), key=lambda pair: len(pair[1]))
    if len(known) < node.threshold:
        return None
    chosen = known[: node.threshold]
    factors = scalars.weights(tuple(point for point, _ in chosen))
    return {
        leaf: scalars.product(factor, weight)
        for factor, (_, part) in zip(factors, chosen, strict=True)
        for leaf, weight in part.items()
    }


guard(__name__)
