"""Planted bugs of encryption by attributes. No operation of the adapter protocol comes near it; tests find them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from secagg_spec.arithmetic import scalars
from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import access_tree, attribute_keys, attributes, entropy, pairing
from secagg_spec.crypto.access_tree import Gate, Leaf, Tree
from secagg_spec.crypto.attribute_keys import MasterKey, PublicKey, SecretKey
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.pairing import G1Point
from secagg_spec.errors import DecryptionFailed, ParameterError, ProtocolError

Function = Callable[..., Any]
_TREES = "secagg_spec.crypto.access_tree"
_KEYS = "secagg_spec.crypto.attribute_keys"
_SCHEME = "secagg_spec.crypto.attributes"
_PAIRING = "secagg_spec.crypto.pairing"
_SCALARS = "secagg_spec.arithmetic.scalars"
_TESTS = "tests/crypto/test_attributes.py::"
_TREE_TESTS = "tests/crypto/test_access_tree.py::"
_ORACLE = "tests/crypto/test_attributes_oracle.py::"
_SCALAR_TESTS = "tests/arithmetic/test_scalars.py::"
_BOTH = Gate(2, (Leaf(b"A"), Leaf(b"B")))
_EITHER = Gate(1, (Leaf(b"A"), Leaf(b"B")))
_SESSION, _OTHER = bytes(16), bytes(15) + b"\1"
_TWICE = "a tree in which no attribute stands twice"


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails."""
    try:
        return call()
    except (ParameterError, ProtocolError, AssertionError, ValueError) as error:
        return type(error).__name__


def _keys() -> tuple[PublicKey, MasterKey]:
    return attribute_keys.setup(alpha=3, beta=5)


def _public_bytes() -> bytes:
    return _keys()[0].to_bytes()


def _key(names: Collection[bytes] = (b"A",), blinding: int = 7) -> SecretKey:
    return attribute_keys.issue(_keys()[1], names, key_blinding=blinding, attribute_blindings=dict.fromkeys(names, 9))


def _sealed(tree: Tree = _EITHER, session: bytes = _SESSION, coefficients: Sequence[int] = ()) -> bytes:
    """Return a ciphertext."""
    public, _ = _keys()
    return attributes.encrypt(public, tree, b"x", session=session, associated=b"", secret=11, coefficients=coefficients)


def _opened(ciphertext: bytes, session: bytes = _SESSION, names: Collection[bytes] = (b"A",)) -> object:
    """Return what a key does with a ciphertext."""
    public, _ = _keys()
    return _outcome(lambda: attributes.decrypt(public, _key(names), ciphertext, session=session, associated=b""))


def _pooled() -> object:
    """Return what comes of the parts of two keys."""
    one, other = _key([b"A"], 7), _key([b"B"], 8)
    mixed = SecretKey(one.d, (*one.components, *other.components))
    sealed = _sealed(_BOTH, coefficients=(3,))
    return _outcome(lambda: attributes.decrypt(_keys()[0], mixed, sealed, session=_SESSION, associated=b""))


# -------------------------------------------------------------------------------------------------- attributes, trees


@mutant(
    "attribute-of-any-length",
    "ABE-01",
    "acceptance: an attribute without bytes, and one whose length does not fit its byte",
    f"{_TREES}:check_attribute",
    lambda: _outcome(lambda: Leaf(b"")),
    _TREE_TESTS + "test_what_is_no_attribute_is_refused",
    kind="acceptance",
    source="silent repair",
)
def _any_length(right: Function) -> Function:
    return lambda name, value: right(name, value or b"x") and value if isinstance(value, bytes) else right(name, value)


@mutant(
    "attributes-ignore-case",
    "ABE-01",
    "privacy: attributes that differ in case are taken for one",
    f"{_TREES}:select",
    lambda: access_tree.select(Leaf(b"A"), {b"a"}),
    _TREE_TESTS + "test_attributes_are_compared_byte_for_byte",
    kind="privacy",
    source="other rule: attributes compared without regard to case",
)
def _ignore_case(right: Function) -> Function:
    return lambda tree, held: right(tree, {*held, *(name.swapcase() for name in held)})


@mutant(
    "gate-threshold-unchecked",
    "ABE-02",
    "acceptance: a gate that needs none of its children, or more than it has",
    f"{_TREES}:_check_threshold",
    lambda: _outcome(lambda: Gate(3, (Leaf(b"A"),)).threshold),
    _TREE_TESTS + "test_a_threshold_that_does_not_fit_the_children_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _no_threshold(right: Function) -> Function:
    return lambda threshold, children: threshold


@mutant(
    "tree-leaves-unbounded",
    "ABE-03",
    "acceptance: a ciphertext makes its reader take any number of points",
    f"{_TREES}:leaves",
    lambda: _outcome(lambda: len(access_tree.leaves(attributes.any_of(*[b"A"] * 33)))),
    _TREE_TESTS + "test_a_tree_with_too_many_leaves_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _many_leaves(right: Function) -> Function:
    return lambda tree, name="tree": tuple(access_tree._walk(name, tree, 0))


@mutant(
    "tree-depth-unbounded",
    "ABE-03",
    "acceptance: trees of any depth, so that a ring of gates is never left",
    f"{_TREES}:_walk",
    lambda: _depth(9),
    _TREE_TESTS + "test_a_tree_with_too_many_gates_on_a_path_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _any_depth(right: Function) -> Function:
    return lambda name, node, gates: right(name, node, 0)


def _depth(gates: int) -> object:
    """Return what comes of so many gates on a path."""
    tree: Tree = Leaf(b"A")
    try:
        for _ in range(gates):
            tree = Gate(1, (tree,))
    except ParameterError as error:
        return str(error)
    return gates


@mutant(
    "repeated-attribute-refused",
    "ABE-04",
    "refusal: a tree in which an attribute stands at two leaves",
    f"{_TREES}:leaves",
    lambda: _outcome(lambda: len(access_tree.leaves(Gate(1, (Leaf(b"A"), Leaf(b"A")))))),
    _TESTS + "test_attributes_at_several_leaves_decrypt_as_well",
    kind="refusal",
    source="clause too strict",
)
def _once_only(right: Function) -> Function:
    def wrong(tree: Tree, name: str = "tree") -> Any:
        found = right(tree, name)
        if len({leaf.attribute for leaf in found}) < len(found):
            raise ParameterError(name, "an attribute at two leaves", _TWICE)
        return found

    return wrong


@mutant(
    "gate-bytes-swapped",
    "ABE-05",
    "no interoperation: the number of children is written before the threshold",
    f"{_TREES}:_node_bytes",
    lambda: access_tree.tree_bytes(_EITHER),
    _TREE_TESTS + "test_the_bytes_are_those_of_the_text",
    kind="form",
    source="order",
)
def _swapped(right: Function) -> Function:
    def wrong(node: Tree) -> bytes:
        data: bytes = right(node)
        return data[:1] + data[2:0:-1] + data[3:] if isinstance(node, Gate) else data

    return wrong


# ------------------------------------------------------------------------------------------------------------ shares


@mutant(
    "tree-points-from-zero",
    "ABE-06",
    "privacy: the first child of a gate has what the gate was given",
    f"{_SCALARS}:evaluate",
    lambda: access_tree.share(_BOTH, 5, (1,)),
    _TREE_TESTS + "test_the_shares_are_those_of_the_text",
    kind="privacy",
    source="off by one",
)
def _from_zero(right: Function) -> Function:
    return lambda value, coefficients, x: right(value, coefficients, x - 1)


@mutant(
    "gate-degree-one-short",
    "ABE-06",
    "privacy: the last coefficient of a gate is forgotten, so that one child less suffices",
    f"{_SCALARS}:evaluate",
    lambda: access_tree.share(_BOTH, 5, (1,)),
    _TREE_TESTS + "test_shares_are_the_linear_functions_of_the_text",
    kind="privacy",
    source="off by one",
)
def _short(right: Function) -> Function:
    return lambda value, coefficients, x: right(value, coefficients[:-1], x)


@mutant(
    "coefficients-of-any-number",
    "ABE-07",
    "acceptance: missing coefficients count as 0 and others are ignored",
    f"{_TREES}:share",
    lambda: _outcome(lambda: access_tree.share(_BOTH, 5, ())),
    _TREE_TESTS + "test_another_number_of_coefficients_is_refused",
    kind="acceptance",
    source="silent repair",
)
def _any_number(right: Function) -> Function:
    def wrong(tree: Tree, secret: int, coefficients: Sequence[int]) -> Any:
        needed = access_tree.coefficient_count(tree)
        return right(tree, secret, [*coefficients, *[0] * needed][:needed])

    return wrong


@mutant(
    "tree-weights-without-sign",
    "ABE-08",
    "correctness: the weights of a gate with an even number of known children have the wrong sign",
    f"{_SCALARS}:weights",
    lambda: scalars.weights((1, 2)),
    _TREE_TESTS + "test_exactly_the_sets_that_satisfy_a_tree_give_the_secret_back",
    kind="refusal",
    source="sign",
)
def _no_sign(right: Function) -> Function:
    def wrong(points: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(w if len(points) & 1 else scalars.ORDER - w for w in right(points))

    return wrong


@mutant(
    "number-is-reduced",
    "ABE-19",
    "acceptance: a number that is not in its range is taken modulo r",
    f"{_SCALARS}:scalar",
    lambda: _outcome(lambda: scalars.scalar("alpha", scalars.ORDER + 1)),
    _SCALAR_TESTS + "test_numbers_out_of_range_are_refused",
    kind="acceptance",
    source="silent repair",
)
def _reduced(right: Function) -> Function:
    def wrong(name: str, value: Any, low: int = 1) -> Any:
        return right(name, value % scalars.ORDER if isinstance(value, int) else value, low)

    return wrong


@mutant(
    "drawn-numbers-are-reduced",
    "ABE-20",
    "privacy: pieces are taken modulo r in place of being skipped, so that small numbers come up more often",
    f"{_SCALARS}:scalars_from_bytes",
    lambda: scalars.scalars_from_bytes(b"\xff" * 32),
    _SCALAR_TESTS + "test_numbers_are_sampled_as_in_the_text",
    kind="privacy",
    source="weak draw: reduced without rejection",
)
def _no_rejection(right: Function) -> Function:
    def wrong(data: bytes) -> tuple[int, ...]:
        pieces = [data[at : at + 32] for at in range(0, len(data), 32)]
        return tuple((int.from_bytes(piece, "little") & 2**255 - 1) % scalars.ORDER or 1 for piece in pieces)

    return wrong


# -------------------------------------------------------------------------------------------------------------- keys


@mutant(
    "public-key-holds-the-master-key",
    "ABE-09",
    "privacy: the public key has the element that BSW07 keeps secret",
    f"{_KEYS}:setup",
    _public_bytes,
    _ORACLE + "test_the_public_key_is_that_of_the_text",
    kind="privacy",
    source="wrong term",
)
def _published(right: Function) -> Function:
    def wrong(*, alpha: int, beta: int) -> Any:
        public, master = right(alpha=alpha, beta=beta)
        return PublicKey(public.h, public.f, pairing.base_1().power(alpha)), master

    return wrong


@mutant(
    "hash-without-a-domain",
    "ABE-10",
    "no interoperation: attributes are hashed without the domain separation tag",
    f"{_PAIRING}:hash_attribute",
    lambda: pairing.hash_attribute(b"A").to_compressed_bytes(),
    _ORACLE + "test_the_hash_is_that_of_the_text",
    kind="form",
    source="field not bound: the domain",
)
def _no_domain(right: Function) -> Function:
    return lambda attribute: G1Point.hash_to_curve(attribute, b"hash")


@mutant(
    "key-attributes-unsorted",
    "ABE-11",
    "no interoperation: a secret key has its attributes in the order in which they were given",
    f"{_KEYS}:_attribute_set",
    lambda: _key([b"B", b"A"]).to_bytes(),
    _TESTS + "test_the_order_in_which_attributes_are_given_does_not_matter",
    kind="form",
    source="order",
)
def _unsorted(right: Function) -> Function:
    return lambda names: right(names) and list(names)


@mutant(
    "one-blinding-for-all-keys",
    "ABE-16",
    "privacy: all secret keys have one blinding, so that users put them together",
    f"{_KEYS}:issue",
    _pooled,
    _TESTS + "test_two_users_cannot_put_their_keys_together",
    also=("ABE-11",),
    kind="privacy",
    source="used twice",
)
def _one_blinding(right: Function) -> Function:
    def wrong(master: MasterKey, names: Any, *, key_blinding: int, attribute_blindings: Any) -> Any:
        return right(master, names, key_blinding=1, attribute_blindings=attribute_blindings)

    return wrong


def _blinded_by_nothing() -> bytes:
    return attribute_keys.issue(_keys()[1], [b"A"], key_blinding=1, attribute_blindings={}).to_bytes()


@mutant(
    "missing-blinding-is-one",
    "ABE-21",
    "privacy: an attribute without a number of its own is blinded by 1",
    f"{_KEYS}:_blindings",
    lambda: _outcome(_blinded_by_nothing),
    _TESTS + "test_blindings_of_other_attributes_are_refused",
    kind="privacy",
    source="silent repair",
)
def _missing(right: Function) -> Function:
    return lambda names, given: {name: (given or {}).get(name, 1) for name in names}


# ------------------------------------------------------------------------------------------------------- ciphertexts


@mutant(
    "every-leaf-has-the-secret",
    "ABE-12",
    "privacy: each leaf carries the secret itself, so that one attribute of any suffices",
    f"{_SCHEME}:_header",
    lambda: _sealed(_BOTH, coefficients=(3,)),
    _ORACLE + "test_a_ciphertext_is_that_of_the_text",
    kind="privacy",
    source="clause left out",
)
def _no_sharing(right: Function) -> Function:
    return lambda public, tree, secret, shares: right(public, tree, secret, [secret] * len(shares))


def _other_leaf() -> object:
    """Return what becomes of a ciphertext whose second leaf, which is not needed, was altered."""
    sealed = _sealed()
    at = len(access_tree.tree_bytes(_EITHER)) + 48 + 144 + 96
    return _opened(sealed[:at] + G1Point().to_compressed_bytes() + sealed[at + 48 :])


@mutant(
    "header-is-not-bound",
    "ABE-17",
    "acceptance: the tree and the leaves that a reader does not need can be altered",
    f"{_SCHEME}:_payload_key",
    _other_leaf,
    _TESTS + "test_another_point_in_each_place_of_a_header_does_not_open",
    also=("ABE-13",),
    kind="acceptance",
    source="field not bound: the header",
)
def _header_free(right: Function) -> Function:
    return lambda public, element, header, session: right(public, element, b"", session)


@mutant(
    "ciphertext-of-any-session",
    "ABE-18",
    "acceptance: a ciphertext opens in another session than the one that it was made for",
    f"{_SCHEME}:_payload_key",
    lambda: _opened(_sealed(), _OTHER),
    _TESTS + "test_another_session_other_associated_data_and_another_public_key_do_not_open",
    also=("ABE-13",),
    kind="acceptance",
    source="field not bound: the session",
)
def _any_session(right: Function) -> Function:
    return lambda public, element, header, session: right(public, element, header, bytes(16))


@mutant(
    "leaves-without-weights",
    "ABE-14",
    "correctness: the parts of leaves are put together without weights",
    f"{_SCHEME}:_power",
    lambda: _opened(_sealed(_BOTH, coefficients=(3,)), names=(b"A", b"B")),
    _TESTS + "test_exactly_the_keys_that_satisfy_a_tree_decrypt",
    kind="refusal",
    source="wrong term",
)
def _unweighted(right: Function) -> Function:
    return lambda point, weight: point


@mutant(
    "other-attributes-are-misuse",
    "ABE-15",
    "a key that does not satisfy the tree is the caller's mistake, not an outcome",
    f"{_SCHEME}:decrypt",
    lambda: _opened(_sealed(), names=(b"C",)),
    _TESTS + "test_exactly_the_keys_that_satisfy_a_tree_decrypt",
    kind="refusal",
    source="wrong reason",
)
def _misuse(right: Function) -> Function:
    def wrong(public: PublicKey, key: SecretKey, ciphertext: bytes, *, session: bytes, associated: bytes) -> Any:
        try:
            return right(public, key, ciphertext, session=session, associated=associated)
        except DecryptionFailed as failed:
            raise ParameterError("key", "a secret key", str(failed)) from None

    return wrong


@mutant(
    "leaf-with-share-zero",
    "ABE-22",
    "acceptance: numbers with which a leaf has no share are not refused by name",
    f"{_SCHEME}:_refuse_zero",
    lambda: _outcome(lambda: _sealed(_BOTH, coefficients=(scalars.ORDER - 11,))),
    _TESTS + "test_a_leaf_with_the_share_zero_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _zero(right: Function) -> Function:
    return lambda shares: None


@mutant(
    "neutral-point-accepted",
    "ABE-23",
    "acceptance: the neutral element is read, in any spelling",
    f"{_PAIRING}:_read",
    lambda: _outcome(lambda: pairing.read_point_1(b"\xe0" + bytes(47)).to_compressed_bytes()),
    _TESTS + "test_what_is_no_point_of_the_first_group_is_malformed",
    kind="acceptance",
    source="clause in part",
)
def _neutral(right: Function) -> Function:
    return lambda data, length, decode, neutral: (
        decode(data) if len(data) == length else right(data, length, decode, neutral)
    )


@mutant(
    "group-of-a-point-unchecked",
    "ABE-23",
    "acceptance: points of the curve that are outside the group of order r",
    f"{_PAIRING}:read_point_1",
    lambda: _outcome(lambda: pairing.read_point_1(b"\x80" + bytes(46) + b"\4").to_compressed_bytes()),
    _TESTS + "test_what_is_no_point_of_the_first_group_is_malformed",
    kind="acceptance",
    source="clause in part",
)
def _outside(right: Function) -> Function:
    return G1Point.from_compressed_bytes_unchecked


@mutant(
    "more-bytes-after-a-key",
    "ABE-24",
    "acceptance: bytes after the end of a key or a ciphertext are ignored",
    "secagg_spec.crypto.reader:Reader.end",
    lambda: _opened(_sealed() + b"\0"),
    _TESTS + "test_keys_that_end_early_or_go_on_are_malformed",
    kind="acceptance",
    source="clause in part",
)
def _goes_on(right: Function) -> Function:
    return lambda self: None


@mutant(
    "session-id-of-any-length",
    "ABE-25",
    "acceptance: a session id that is not 16 bytes long",
    f"{_SCHEME}:_check_session",
    lambda: _outcome(lambda: len(_sealed(session=b""))),
    _TESTS + "test_a_session_id_of_another_length_is_refused",
    kind="acceptance",
    source="clause in part",
)
def _any_id(right: Function) -> Function:
    return lambda session: None


@mutant(
    "same-numbers-for-all",
    "ABE-26",
    "privacy: the numbers of all ciphertexts and keys are the same: one key seals twice, and keys share a blinding",
    "secagg_spec.crypto.entropy:draw_scalars",
    lambda: entropy.draw_scalars(SeededSource(b"seed", "one"), 1),
    _TESTS + "test_two_draws_differ_and_so_do_ciphertexts",
    kind="privacy",
    source="weak draw: one draw for all",
)
def _same(right: Function) -> Function:
    return lambda source, count: right(SeededSource(b"", ""), count)
