"""Access trees: what is refused, their bytes, and which leaves give back what was shared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import scalars
from secagg_spec.crypto import access_tree
from secagg_spec.crypto.access_tree import Gate, Leaf, Tree, all_of, any_of
from secagg_spec.crypto.reader import Reader
from secagg_spec.errors import LengthMismatch, Malformed, NonCanonical, ParameterError
from tests.crypto import trees

R = scalars.ORDER
EXAMPLE = all_of(b"A", Gate(2, (Leaf(b"B"), Leaf(b"C"), Leaf(b"D"))))
EXAMPLE_BYTES = bytes.fromhex("01020200014101020300014200014300 0144")


def nested(gates: int, node: Tree | None = None) -> Tree:
    """A leaf below so many gates."""
    tree: Tree = node or Leaf(b"A")
    for _ in range(gates):
        tree = Gate(1, (tree,))
    return tree


def read(data: bytes) -> Tree:
    """The tree that bytes are, to the last one."""
    reader = Reader("a tree", data)
    tree = access_tree.read_tree(reader)
    reader.end()
    return tree


drawn_trees: st.SearchStrategy[Tree] = st.recursive(
    st.binary(min_size=1, max_size=3).map(Leaf),
    lambda inner: st.lists(inner, min_size=1, max_size=4).flatmap(
        lambda children: st.integers(1, len(children)).map(lambda k: Gate(k, tuple(children)))
    ),
    max_leaves=12,
)


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("ABE-01")
@pytest.mark.parametrize("attribute", [b"", bytes(256), "A", None, 1, bytearray(b"A")])
def test_what_is_no_attribute_is_refused(attribute: Any) -> None:
    with pytest.raises(ParameterError, match="attribute"):
        Leaf(attribute)


@pytest.mark.requirement("ABE-01")
@given(st.binary(min_size=1, max_size=255), st.binary(min_size=1, max_size=255))
def test_attributes_are_compared_byte_for_byte(one: bytes, other: bytes) -> None:
    for held in (other, one + b"\0", one.swapcase(), one.strip() or b"x", one):
        assert (access_tree.select(Leaf(one), {held}) is not None) == (list(one) == list(held))


@pytest.mark.requirement("ABE-01")
def test_the_longest_attribute_is_taken() -> None:
    for attribute in (bytes(1), bytes(255)):
        assert read(access_tree.tree_bytes(Leaf(attribute))) == Leaf(attribute)


@pytest.mark.requirement("ABE-02")
@pytest.mark.parametrize("threshold", [-1, 0, 3, 2**8, True, 1.0, None])
def test_a_threshold_that_does_not_fit_the_children_is_refused(threshold: Any) -> None:
    with pytest.raises(ParameterError, match=r"threshold = .*: must be an integer in \[1, 2\]"):
        Gate(threshold, (Leaf(b"A"), Leaf(b"B")))


@pytest.mark.requirement("ABE-02")
@pytest.mark.parametrize("make", [lambda: Gate(0, ()), lambda: Gate(1, ()), all_of, any_of])
def test_a_gate_without_children_is_refused(make: Callable[[], Gate]) -> None:
    with pytest.raises(ParameterError, match="at least one tree"):
        make()


@pytest.mark.requirement("ABE-03")
def test_a_tree_with_too_many_leaves_is_refused() -> None:
    most = [bytes([letter]) for letter in range(32)]
    assert len(access_tree.leaves(any_of(*most))) == 32
    with pytest.raises(ParameterError, match="at most 32 leaves"):
        any_of(*most, b"more")
    with pytest.raises(ParameterError, match="at most 32 leaves"):
        any_of(*[all_of(*most[:11])] * 3)


@pytest.mark.requirement("ABE-03")
def test_a_tree_with_too_many_gates_on_a_path_is_refused() -> None:
    assert read(access_tree.tree_bytes(nested(8))) == nested(8)
    with pytest.raises(ParameterError, match="at most 8"):
        nested(9)


@pytest.mark.requirement("ABE-03")
@pytest.mark.parametrize("children", [1, 32])
def test_a_gate_that_is_forced_below_itself_is_refused(children: int) -> None:
    gate = Gate(1, (Leaf(b"A"),) * children)
    object.__setattr__(gate, "children", (gate,) * children)
    for call in (access_tree.leaves, access_tree.tree_bytes, access_tree.coefficient_count):
        with pytest.raises(ParameterError, match="at most 8"):
            call(gate)
    with pytest.raises(ParameterError) as refused:
        access_tree.leaves(gate, "policy")
    assert (refused.value.parameter, refused.value.value) == ("policy", "more than 8 gates on a path")
    with pytest.raises(ParameterError):
        access_tree.share(gate, 1, ())
    with pytest.raises(ParameterError):
        access_tree.select(gate, {b"A"})


@pytest.mark.requirement("ABE-02")
@pytest.mark.parametrize("bad", [None, b"A", "A", 7, [Leaf(b"A")], {}])
def test_what_is_no_tree_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError):
        Gate(1, (bad,))
    for call in (access_tree.leaves, access_tree.tree_bytes, access_tree.coefficient_count):
        with pytest.raises(ParameterError, match="Leaf and Gate"):
            call(bad)


# ------------------------------------------------------------------------------------------------------------- bytes


@pytest.mark.requirement("ABE-05")
def test_the_bytes_are_those_of_the_text() -> None:
    assert access_tree.tree_bytes(EXAMPLE) == EXAMPLE_BYTES
    assert read(EXAMPLE_BYTES) == EXAMPLE


@pytest.mark.slow
@pytest.mark.requirement("ABE-05")
@given(drawn_trees)
def test_a_tree_is_read_as_it_was_written(tree: Tree) -> None:
    assert read(access_tree.tree_bytes(tree)) == tree


@pytest.mark.requirement("ABE-24")
@given(drawn_trees, st.data())
def test_bytes_of_a_tree_that_end_early_or_go_on_are_refused(tree: Tree, data: st.DataObject) -> None:
    whole = access_tree.tree_bytes(tree)
    for changed in (whole[: data.draw(st.integers(0, len(whole) - 1))], whole + b"\0"):
        with pytest.raises(Malformed):
            read(changed)


UNREADABLE = {
    "threshold 0": bytes.fromhex("01 00 01 00 01 41"),
    "threshold above the children": bytes.fromhex("01 02 01 00 01 41"),
    "no children": bytes.fromhex("01 01 00"),
    "nothing at all": bytes.fromhex("01 00 00"),
    "empty attribute": bytes.fromhex("00 00"),
    "another kind": bytes.fromhex("02 01 01 00 01 41"),
    "33 leaves": bytes([1, 1, 33]) + bytes.fromhex("000141") * 33,
    "9 gates on a path": bytes([1, 1, 1]) * 9 + bytes.fromhex("000141"),
    "gates without end": bytes([1, 1, 1]) * 5000,
}


@pytest.mark.requirement("ABE-24", "ABE-02", "ABE-03")
@pytest.mark.parametrize("name", UNREADABLE)
def test_bytes_of_a_tree_that_is_refused_are_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        read(UNREADABLE[name])


@pytest.mark.requirement("ABE-24")
@pytest.mark.parametrize("kind", [2, 3, 255])
def test_a_node_is_a_leaf_or_a_gate(kind: int) -> None:
    for node in (EXAMPLE_BYTES, access_tree.tree_bytes(Leaf(b"A"))):
        with pytest.raises(Malformed, match=f"^a node of the kind {kind} .* 0 and 1 are known$"):
            read(bytes([kind]) + node[1:])


@pytest.mark.requirement("ABE-24")
@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        tree = read(data)
    except Malformed:
        return
    assert access_tree.tree_bytes(tree) == data


# ------------------------------------------------------------------------------------------------------------ shares


@pytest.mark.requirement("ABE-06")
def test_the_shares_are_those_of_the_text() -> None:
    assert access_tree.share(EXAMPLE, 5, (1, 2)) == (6, 9, 11, 13)


@pytest.mark.requirement("ABE-06")
@given(drawn_trees, st.data())
def test_shares_are_the_linear_functions_of_the_text(tree: Tree, data: st.DataObject) -> None:
    needed = access_tree.coefficient_count(tree)
    values = [
        data.draw(st.integers(1, R - 1)),
        *data.draw(st.lists(st.integers(0, R - 1), min_size=needed, max_size=needed)),
    ]
    expected = [sum(values[n] * factor for n, factor in part.items()) % R for part in trees.share_functions(tree)]
    assert list(access_tree.share(tree, values[0], values[1:])) == expected


@pytest.mark.requirement("ABE-07")
@given(drawn_trees, st.data())
def test_another_number_of_coefficients_is_refused(tree: Tree, data: st.DataObject) -> None:
    needed = max((n for part in trees.share_functions(tree) for n in part), default=0)
    assert access_tree.coefficient_count(tree) == needed
    count = data.draw(st.integers(0, needed + 3).filter(lambda n: n != needed))
    with pytest.raises(LengthMismatch, match=rf"len\(coefficients\) = {count}: must be {needed} for this tree"):
        access_tree.share(tree, 1, [1] * count)


@pytest.mark.requirement("ABE-19")
@pytest.mark.parametrize(("secret", "coefficient"), [(0, 1), (R, 1), (-1, 1), (1, -1), (1, R), (R + 1, 1), (1, R + 1)])
def test_numbers_out_of_range_are_refused(secret: int, coefficient: int) -> None:
    with pytest.raises(NonCanonical):
        access_tree.share(all_of(b"A", b"B"), secret, [coefficient])
    access_tree.share(all_of(b"A", b"B"), R - 1, [0])


def small(most: int) -> list[Tree]:
    """All trees of up to so many leaves, and some more."""
    return [tree for leaves in range(1, most + 1) for tree in trees.trees(leaves)] + trees.repeated()


def test_the_trees_are_counted_right() -> None:
    assert [len(trees.shapes(leaves)) for leaves in range(1, 6)] == [1, 2, 7, 30, 131]


@pytest.mark.requirement("ABE-08", "ABE-04", "ABE-14", "ABE-15")
def test_exactly_the_sets_that_satisfy_a_tree_give_the_secret_back() -> None:
    for tree in small(5):
        values = tuple(3**n for n in range(access_tree.coefficient_count(tree)))
        shares, names = access_tree.share(tree, 7**50, values), trees.attributes_of(tree)
        for held in trees.subsets(tree):
            chosen = access_tree.select(tree, held)
            assert (chosen is not None) == trees.satisfied(tree, held)
            if chosen is not None:
                assert all(names[leaf] in held for leaf in chosen)
                assert sum(weight * shares[leaf] for leaf, weight in chosen.items()) % R == 7**50


@pytest.mark.requirement("ABE-08")
def test_no_other_leaves_suffice_and_no_fewer() -> None:
    for tree in small(4):
        functions, names = trees.share_functions(tree), trees.attributes_of(tree)
        for held in trees.subsets(tree):
            known = [part for part, name in zip(functions, names, strict=True) if name in held]
            assert spans(known) == trees.satisfied(tree, held)
            chosen = access_tree.select(tree, held)
            if chosen is not None:
                assert not any(spans([functions[leaf] for leaf in chosen if leaf != left]) for left in chosen)


@pytest.mark.requirement("ABE-08")
def test_a_reader_takes_the_fewest_leaves() -> None:
    tree = Gate(1, (all_of(b"A", b"B", b"C"), all_of(b"A", b"D"), all_of(b"B", b"C", b"D")))
    assert set(access_tree.select(tree, {b"A", b"B", b"C", b"D"}) or ()) == {3, 4}


def spans(functions: list[trees.Linear]) -> bool:
    """Whether a linear combination of functions is what is shared."""
    rows = [dict(function) for function in functions]
    for pivot in sorted({n for row in rows for n in row if n}):
        holder = next((row for row in rows if row.get(pivot)), None)
        if holder is None:
            continue
        rows.remove(holder)
        inverse = pow(holder[pivot], -1, R)
        rows = [_minus(row, holder, row.get(pivot, 0) * inverse) for row in rows]
    return any(row.get(0) for row in rows)


def _minus(row: trees.Linear, other: trees.Linear, factor: int) -> trees.Linear:
    return {n: (row.get(n, 0) - factor * other.get(n, 0)) % R for n in {*row, *other}}
