"""Access trees for tests: all small ones, whether a set satisfies them, and shares as linear functions.

Written from spec/attributes.md, without the code of the reference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from itertools import combinations, combinations_with_replacement, count, product
from typing import TypeAlias, Union

from secagg_spec.crypto.access_tree import Gate, Leaf, Tree

Shape: TypeAlias = Union[tuple[int, tuple["Shape", ...]], None]  # noqa: UP007 - it refers to itself
"""A leaf, or a threshold and children."""


@cache
def shapes(leaves: int) -> tuple[Shape, ...]:
    """All trees with so many leaves up to isomorphism, whose gates have two children or more."""
    if leaves == 1:
        return (None,)
    return tuple(
        (threshold, children)
        for sizes in partitions(leaves, leaves - 1)
        for children in forests(sizes)
        for threshold in range(1, len(sizes) + 1)
    )


def partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a sum of positive numbers in descending order."""
    if not total:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def forests(sizes: tuple[int, ...]) -> Iterator[tuple[Shape, ...]]:
    """All multisets of trees with these numbers of leaves."""
    choices = [combinations_with_replacement(shapes(size), sizes.count(size)) for size in sorted(set(sizes))]
    for parts in product(*choices):
        yield tuple(child for part in parts for child in part)


def labelled(shape: Shape, names: Iterator[bytes]) -> Tree:
    """The tree of a shape whose leaves take their attributes from an iterator."""
    if shape is None:
        return Leaf(next(names))
    return Gate(shape[0], tuple(labelled(child, names) for child in shape[1]))


def alphabet() -> Iterator[bytes]:
    """The attributes A, B, C and so on."""
    return (bytes([letter]) for letter in count(ord("A")))


def trees(leaves: int) -> list[Tree]:
    """All trees with so many leaves, whose attributes are distinct."""
    return [labelled(shape, alphabet()) for shape in shapes(leaves)]


def repeated() -> list[Tree]:
    """Trees in which an attribute stands at several leaves, and trees with gates of one child."""
    names = (b"AAB", b"ABA", b"BAA")
    some = [labelled(shape, iter([bytes([n]) for n in name])) for shape in shapes(3) for name in names]
    single = Gate(1, (Leaf(b"A"),))
    return [*some, single, Gate(1, (Gate(1, (single,)),)), Gate(2, (single, Leaf(b"A"), Gate(2, (Leaf(b"B"), single))))]


def attributes_of(tree: Tree) -> list[bytes]:
    """The attributes of the leaves in order."""
    if isinstance(tree, Leaf):
        return [tree.attribute]
    return [name for child in tree.children for name in attributes_of(child)]


def subsets(tree: Tree) -> Iterator[frozenset[bytes]]:
    """All sets of attributes of a tree."""
    names = sorted(set(attributes_of(tree)))
    return (frozenset(some) for size in range(len(names) + 1) for some in combinations(names, size))


def satisfied(tree: Tree, held: Collection[bytes]) -> bool:
    """Whether a set satisfies a tree."""
    if isinstance(tree, Leaf):
        return tree.attribute in held
    return sum(satisfied(child, held) for child in tree.children) >= tree.threshold


Linear: TypeAlias = dict[int, int]
"""A linear function: factors by the number of the variable. Variable 0 is what is shared, the others coefficients."""


def share_functions(tree: Tree) -> list[Linear]:
    """The share of each leaf as a function of what is shared and of the coefficients."""
    return list(_descend(tree, {0: 1}, count(1)))


def _descend(node: Tree, value: Linear, numbers: Iterator[int]) -> Iterator[Linear]:
    if isinstance(node, Leaf):
        yield value
        return
    own = [next(numbers) for _ in range(node.threshold - 1)]
    for place, child in enumerate(node.children, start=1):
        yield from _descend(child, {**value, **{n: place**power for power, n in enumerate(own, start=1)}}, numbers)
