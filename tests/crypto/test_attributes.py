"""Encryption by attributes: who can decrypt and who cannot, what is refused, and the bytes of everything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from secagg_spec.arithmetic.scalars import ORDER as R
from secagg_spec.crypto import access_tree, entropy, pairing
from secagg_spec.crypto.attributes import (
    Gate,
    Leaf,
    MasterKey,
    PublicKey,
    SecretKey,
    Tree,
    all_of,
    any_of,
    decrypt,
    encrypt,
    issue,
    setup,
)
from secagg_spec.errors import DecryptionFailed, LengthMismatch, Malformed, NonCanonical, ParameterError, ProtocolError
from tests.crypto import trees
from tests.quick import exhaustive, one_in, part
from tests.strategies import fewer

SESSION, ASSOCIATED, PLAINTEXT = b"sixteen bytes id", b"associated", b"seeds of a user"
SOURCE = entropy.SeededSource(b"attributes", "tests")
PUBLIC, MASTER = setup(alpha=3**150, beta=5**100)
P = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
Refused = (ParameterError, ProtocolError)


def key(names: Iterable[bytes], master: MasterKey = MASTER, blinding: int | None = None) -> SecretKey:
    """A key for attributes, freshly blinded."""
    held = sorted(names)
    own, *others = entropy.draw_scalars(SOURCE, 1 + len(held))
    return issue(master, held, key_blinding=blinding or own, attribute_blindings=dict(zip(held, others, strict=True)))


def sealed(tree: Tree, plaintext: bytes = PLAINTEXT, **changed: Any) -> bytes:
    """A ciphertext, freshly drawn."""
    secret, *coefficients = entropy.draw_scalars(SOURCE, 1 + access_tree.coefficient_count(tree))
    values = {"session": SESSION, "associated": ASSOCIATED, "secret": secret, "coefficients": coefficients, **changed}
    return encrypt(PUBLIC, tree, plaintext, **values)


def opened(key: SecretKey, ciphertext: bytes, public: PublicKey = PUBLIC, **changed: bytes) -> bytes | None:
    """The plaintext, or None when the ciphertext does not open."""
    try:
        return decrypt(public, key, ciphertext, **{"session": SESSION, "associated": ASSOCIATED, **changed})
    except DecryptionFailed:
        return None


# ------------------------------------------------------------------------------------------------------ who decrypts


def agree(some: Sequence[Tree]) -> None:
    """Exactly the keys that satisfy a tree decrypt."""
    for tree in some:
        ciphertext = sealed(tree)
        for held in trees.subsets(tree):
            expected = PLAINTEXT if trees.satisfied(tree, held) else None
            assert opened(KEYS(held | {b"other"}), ciphertext) == expected


class Keys:
    """The keys of sets of attributes, each made once."""

    def __init__(self) -> None:
        self._made: dict[frozenset[bytes], SecretKey] = {}

    def __call__(self, held: frozenset[bytes]) -> SecretKey:
        if held not in self._made:
            self._made[held] = key(held)
        return self._made[held]


KEYS = Keys()


@pytest.mark.requirement("ABE-14", "ABE-15", "ABE-08")
def test_exactly_the_keys_that_satisfy_a_tree_decrypt() -> None:
    agree([tree for leaves in (1, 2, 3) for tree in trees.trees(leaves)])


@pytest.mark.requirement("ABE-04", "ABE-14", "ABE-15")
def test_attributes_at_several_leaves_decrypt_as_well() -> None:
    agree(trees.repeated()[::2])


@pytest.mark.slow
@pytest.mark.requirement("ABE-14", "ABE-15")
@exhaustive
def test_exactly_the_keys_that_satisfy_a_larger_tree_decrypt() -> None:
    agree([*trees.trees(4), *part(4, trees.trees(5))])


@pytest.mark.requirement("ABE-14")
@fewer(6)
@given(st.binary(max_size=300), st.binary(max_size=50), st.binary(min_size=16, max_size=16), st.integers(1, 5))
def test_what_is_encrypted_is_decrypted(plaintext: bytes, associated: bytes, session: bytes, threshold: int) -> None:
    tree = Gate(threshold, tuple(map(Leaf, (b"A", b"B", b"C", b"\xff", bytes(255)))))
    ciphertext = sealed(tree, plaintext, associated=associated, session=session)
    holder = key([b"A", b"C", b"\xff", bytes(255), b"B"][:threshold])
    assert opened(holder, ciphertext, associated=associated, session=session) == plaintext
    assert PLAINTEXT not in ciphertext


@pytest.mark.requirement("ABE-14")
def test_the_largest_tree_and_the_largest_key() -> None:
    names = [bytes([letter]) for letter in range(255)]
    tree = Gate(16, tuple(Gate(1, (Leaf(names[2 * n]), Leaf(names[2 * n + 1]))) for n in range(16)))
    holder = key(names)
    assert opened(SecretKey.from_bytes(holder.to_bytes()), sealed(tree)) == PLAINTEXT


# --------------------------------------------------------------------------------------------------------- collusion


def mixtures(one: SecretKey, other: SecretKey) -> list[SecretKey]:
    """All keys that are put together from the parts of two, with every attribute of either."""
    parts = [{c.attribute: c for c in holder.components} for holder in (one, other)]
    choices = [[part[name] for part in parts if name in part] for name in sorted({*parts[0], *parts[1]})]
    return [SecretKey(d, tuple(chosen)) for d in (one.d, other.d) for chosen in product(*choices)]


@pytest.mark.requirement("ABE-16")
def test_two_users_cannot_put_their_keys_together() -> None:
    ciphertext = sealed(all_of(b"A", b"B"))
    one, other = key([b"A", b"C"]), key([b"B", b"C"])
    assert opened(key([b"A", b"B"]), ciphertext) == PLAINTEXT
    assert [opened(mixed, ciphertext) for mixed in mixtures(one, other)] == [None] * 4
    assert opened(one, ciphertext) is opened(other, ciphertext) is None


@pytest.mark.requirement("ABE-16", "ABE-26")
def test_two_users_whose_keys_have_one_blinding_could() -> None:
    ciphertext = sealed(all_of(b"A", b"B"))
    one, other = key([b"A"], blinding=9), key([b"B"], blinding=9)
    assert {opened(mixed, ciphertext) for mixed in mixtures(one, other)} == {PLAINTEXT}


@pytest.mark.requirement("ABE-16")
def test_parts_of_another_key_do_not_help_where_one_key_is_enough() -> None:
    ciphertext = sealed(Leaf(b"A"))
    one, other = key([b"A"]), key([b"A"])
    results = [opened(mixed, ciphertext) for mixed in mixtures(one, other)]
    assert results == [PLAINTEXT, None, None, PLAINTEXT]


@pytest.mark.requirement("ABE-26")
def test_one_set_of_numbers_for_two_plaintexts_shows_their_difference() -> None:
    tree = all_of(b"A", b"B")
    one, other = (sealed(tree, text, secret=7, coefficients=[8]) for text in (b"first text", b"other text"))
    assert bytes(a ^ b for a, b in zip(one, other, strict=True))[-26:-16] == bytes(
        a ^ b for a, b in zip(b"first text", b"other text", strict=True)
    )


# -------------------------------------------------------------------------------------------------- what was altered


WIDE = any_of(all_of(b"A", b"B"), b"C")


@pytest.mark.slow
@pytest.mark.requirement("ABE-17")
def test_no_altered_byte_of_a_ciphertext_opens() -> None:
    ciphertext, holder = sealed(WIDE), key([b"C", b"B"])
    assert opened(holder, ciphertext) == PLAINTEXT
    for at in range(len(ciphertext)):
        changed = ciphertext[:at] + bytes([ciphertext[at] ^ 1 << at % 8]) + ciphertext[at + 1 :]
        with pytest.raises((DecryptionFailed, Malformed)):
            decrypt(PUBLIC, holder, changed, session=SESSION, associated=ASSOCIATED)


@pytest.mark.requirement("ABE-17")
def test_another_point_in_each_place_of_a_header_does_not_open() -> None:
    """The second leaf of the tree is one that the reader does not need."""
    tree = any_of(b"A", b"B")
    ciphertext, holder = sealed(tree), key([b"A"])
    start = len(access_tree.tree_bytes(tree))
    one, two = (G1Point() * Scalar(3)).to_compressed_bytes(), (G2Point() * Scalar(3)).to_compressed_bytes()
    for offset, point in [(0, one), (48, two), (144, one), (192, two), (288, one)]:
        at = start + offset
        changed = ciphertext[:at] + point + ciphertext[at + len(point) :]
        assert opened(holder, changed) is None


@pytest.mark.requirement("ABE-17")
def test_another_tree_over_the_same_points_does_not_open() -> None:
    tree, other = any_of(b"A", b"B"), any_of(b"A", b"C")
    ciphertext = sealed(tree)
    changed = access_tree.tree_bytes(other) + ciphertext[len(access_tree.tree_bytes(tree)) :]
    assert opened(key([b"A"]), changed) is None


@pytest.mark.requirement("ABE-17", "ABE-24")
def test_a_ciphertext_that_ends_early_or_goes_on_is_malformed() -> None:
    ciphertext, holder = sealed(WIDE), key([b"C"])
    for changed in (*(ciphertext[:end] for end in range(len(ciphertext))), ciphertext + b"\0"):
        with pytest.raises(Malformed):
            decrypt(PUBLIC, holder, changed, session=SESSION, associated=ASSOCIATED)


@pytest.mark.requirement("ABE-17")
@pytest.mark.parametrize("length", [0, 1, 15])
def test_a_payload_without_a_tag_does_not_open(length: int) -> None:
    ciphertext = sealed(Leaf(b"A"))
    cut = ciphertext[: -len(PLAINTEXT) - 20] + length.to_bytes(4, "little") + bytes(length)
    assert opened(key([b"A"]), cut) is None


@pytest.mark.requirement("ABE-18", "ABE-13")
def test_another_session_other_associated_data_and_another_public_key_do_not_open() -> None:
    ciphertext, holder = sealed(WIDE), key([b"C"])
    assert opened(holder, ciphertext, session=bytes(16)) is None
    assert opened(holder, ciphertext, associated=ASSOCIATED + b"\0") is None
    assert opened(holder, ciphertext, associated=b"") is None
    assert opened(holder, ciphertext, public=replace(PUBLIC, w=PUBLIC.h)) is None
    assert opened(key([b"C"], MasterKey(MASTER.alpha, MASTER.beta + 1)), ciphertext) is None
    assert opened(key([b"C"], MasterKey(MASTER.alpha + 1, MASTER.beta)), ciphertext) is None


# ---------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("ABE-19")
def test_numbers_of_numpy_are_numbers() -> None:
    three, one = np.int64(3), np.uint64(1)
    public, master = setup(alpha=three, beta=one)  # type: ignore[arg-type]
    assert (public, master) == setup(alpha=3, beta=1)
    assert master.to_bytes() == MasterKey(3, 1).to_bytes()
    gate = Gate(one, (Leaf(b"A"), Leaf(b"B")))  # type: ignore[arg-type]
    assert access_tree.tree_bytes(gate) == access_tree.tree_bytes(any_of(b"A", b"B"))
    tree = all_of(b"A", b"B")
    assert sealed(tree, secret=three, coefficients=[one]) == sealed(tree, secret=3, coefficients=[1])


@pytest.mark.requirement("ABE-19")
@pytest.mark.parametrize("bad", [0, -1, R, R + 1])
def test_numbers_out_of_range_are_refused(bad: int) -> None:
    held = {b"A": 3}
    calls: list[Callable[[], object]] = [
        lambda: setup(alpha=bad, beta=1),
        lambda: setup(alpha=1, beta=bad),
        lambda: issue(MASTER, [b"A"], key_blinding=bad, attribute_blindings=held),
        lambda: issue(MASTER, [b"A"], key_blinding=1, attribute_blindings={b"A": bad}),
        lambda: sealed(Leaf(b"A"), secret=bad),
        lambda: sealed(any_of(all_of(b"A", b"B")), coefficients=[bad or R]),
    ]
    for call in calls:
        with pytest.raises(NonCanonical):
            call()


@pytest.mark.requirement("ABE-21")
@pytest.mark.parametrize("given", [{}, {b"A": 3}, {b"A": 3, b"B": 4, b"C": 5}, {b"A": 3, b"C": 4}, None])
def test_blindings_of_other_attributes_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match="attribute_blindings"):
        issue(MASTER, [b"A", b"B"], key_blinding=1, attribute_blindings=given)


@pytest.mark.requirement("ABE-21")
def test_a_neutral_element_in_a_key_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"key_blinding = 'r - alpha': must be another number") as refused:
        issue(MASTER, [b"A"], key_blinding=R - MASTER.alpha, attribute_blindings={b"A": 3})
    assert str(R - MASTER.alpha)[:20] not in str(refused.value)


@pytest.mark.requirement("ABE-22")
def test_a_leaf_with_the_share_zero_is_refused() -> None:
    for leaf, coefficients in enumerate(([R - 7], [(-7 * pow(2, -1, R)) % R])):
        with pytest.raises(ParameterError, match=f"coefficients = 'a list that gives leaf {leaf} the share 0'"):
            sealed(all_of(b"A", b"B"), secret=7, coefficients=coefficients)
    assert sealed(all_of(b"A", b"B"), secret=7, coefficients=[0])


@pytest.mark.requirement("ABE-07")
@pytest.mark.parametrize("coefficients", [(), (1, 2), None, 1, "12"])
def test_another_number_of_coefficients_is_refused(coefficients: Any) -> None:
    with pytest.raises(ParameterError, match="coefficients"):
        sealed(all_of(b"A", b"B"), coefficients=coefficients)


@pytest.mark.requirement("ABE-01", "ABE-11")
@pytest.mark.parametrize(
    "names", [[], [b""], [bytes(256)], [b"A", b"A"], b"A", "A", ["A"], None, [n.to_bytes(2, "big") for n in range(256)]]
)
def test_sets_of_attributes_that_are_none_are_refused(names: Any) -> None:
    blindings = dict.fromkeys(names, 1) if isinstance(names, list) else {}
    with pytest.raises(ParameterError, match="attributes"):
        issue(MASTER, names, key_blinding=1, attribute_blindings=blindings)


@pytest.mark.requirement("ABE-25")
@pytest.mark.parametrize("session", [b"", bytes(15), bytes(17)])
def test_a_session_id_of_another_length_is_refused(session: bytes) -> None:
    with pytest.raises(LengthMismatch, match="16 bytes"):
        sealed(Leaf(b"A"), session=session)
    with pytest.raises(LengthMismatch, match="16 bytes"):
        opened(key([b"A"]), sealed(Leaf(b"A")), session=session)


@pytest.mark.requirement("ABE-25")
def test_the_longest_plaintext_is_taken_and_no_longer_one() -> None:
    longest = bytes(2**24)
    assert opened(key([b"A"]), sealed(Leaf(b"A"), longest)) == longest
    with pytest.raises(LengthMismatch, match="at most 16777216"):
        sealed(Leaf(b"A"), longest + b"\0")


@pytest.mark.requirement("ABE-26", "ABE-20")
def test_two_draws_differ_and_so_do_ciphertexts() -> None:
    drawn = entropy.draw_scalars(entropy.SystemSource(), 50)
    assert len(set(drawn)) == 50
    assert all(1 <= number < R for number in drawn)
    assert len({sealed(Leaf(b"A"))[:100] for _ in range(3)}) == 3


class Prepared:
    """A source that gives prepared pieces, then ones."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.data = b"".join(number.to_bytes(32, "little") for number in numbers)

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        part, self.data = self.data[:count], self.data[count:]
        return part + (1).to_bytes(32, "little") * ((count - len(part)) // 32)


@pytest.mark.requirement("ABE-20")
def test_rejected_pieces_are_drawn_again() -> None:
    pieces = [0, R, 5, 2**255 - 1, 2**255 + 6, R - 1, 2**255 + R]
    assert entropy.draw_scalars(Prepared(pieces), 5) == (5, 6, R - 1, 1, 1)
    assert entropy.draw_scalars(Prepared(pieces), 0) == ()


# ------------------------------------------------------------------------------------------------------------- bytes


def written(point: G1Point | G2Point) -> bytes:
    """The bytes of a point."""
    return point.to_compressed_bytes()


@pytest.mark.requirement("ABE-09", "ABE-11", "ABE-24")
def test_keys_are_read_as_they_were_written() -> None:
    holder = key([b"B", b"A", b"longer attribute"])
    assert PublicKey.from_bytes(PUBLIC.to_bytes()) == PUBLIC
    assert MasterKey.from_bytes(MASTER.to_bytes()) == MASTER
    assert SecretKey.from_bytes(holder.to_bytes()) == holder
    assert [len(PUBLIC.to_bytes()), len(MASTER.to_bytes())] == [192, 64]
    assert MASTER.to_bytes() == MASTER.alpha.to_bytes(32, "little") + MASTER.beta.to_bytes(32, "little")
    assert opened(SecretKey.from_bytes(holder.to_bytes()), sealed(Leaf(b"B"))) == PLAINTEXT


@pytest.mark.requirement("ABE-24")
@pytest.mark.parametrize("kind", [PublicKey, MasterKey, SecretKey])
def test_keys_that_end_early_or_go_on_are_malformed(kind: Any) -> None:
    whole = {PublicKey: PUBLIC, MasterKey: MASTER, SecretKey: key([b"B", b"A"])}[kind].to_bytes()  # type: ignore[attr-defined]
    for changed in (*(whole[:end] for end in range(0, len(whole), 7)), whole[:-1], whole + b"\0"):
        with pytest.raises(Malformed):
            kind.from_bytes(changed)
    with pytest.raises(ParameterError):
        kind.from_bytes(bytearray(whole))


@pytest.mark.requirement("ABE-24", "ABE-19")
@pytest.mark.parametrize("numbers", [(0, 1), (1, 0), (R, 1), (1, R)])
def test_a_master_key_out_of_range_is_malformed(numbers: tuple[int, int]) -> None:
    with pytest.raises(Malformed, match="master key"):
        MasterKey.from_bytes(b"".join(number.to_bytes(32, "little") for number in numbers))


@pytest.mark.requirement("ABE-24")
def test_a_secret_key_without_order_is_malformed() -> None:
    whole = key([b"A", b"B"]).to_bytes()
    d, one, two = whole[:96], whole[97 : 97 + 146], whole[97 + 146 :]
    assert SecretKey.from_bytes(d + b"\2" + one + two)
    empty = bytes(1) + one[2:]
    for changed in (b"\2" + two + one, b"\2" + one + one, b"\0", b"\1" + empty):
        with pytest.raises(Malformed, match="attribute"):
            SecretKey.from_bytes(d + changed)


@pytest.mark.requirement("ABE-11")
def test_the_order_in_which_attributes_are_given_does_not_matter() -> None:
    blindings = {b"A": 3, b"B": 4}
    one = issue(MASTER, [b"B", b"A"], key_blinding=5, attribute_blindings=blindings)
    assert one == issue(MASTER, [b"A", b"B"], key_blinding=5, attribute_blindings=blindings)


def shifted_1() -> bytes:
    """A point of G_1 spelled with the prime added to its x."""
    point = G1Point()
    while int.from_bytes(written(point), "big") % 2**381 + P >= 2**381:
        point += G1Point()
    spelled = bytearray((int.from_bytes(written(point), "big") % 2**381 + P).to_bytes(48, "big"))
    spelled[0] |= written(point)[0] & 0xE0
    return bytes(spelled)


def outside_2() -> bytes:
    """A point of the curve over the larger field that is outside G_2."""
    for x in range(1, 50):
        data = bytes([0x80]) + x.to_bytes(95, "big")
        try:
            if not G2Point.from_compressed_bytes_unchecked(data).is_in_subgroup():
                return data
        except ValueError:
            continue
    raise AssertionError


POINTS_1 = {
    "off the curve": bytes([0x80]) + bytes(46) + b"\1",
    "outside the group": bytes([0x80]) + bytes(46) + b"\4",
    "order three": bytes([0x80]) + bytes(47),
    "neutral": bytes([0xC0]) + bytes(47),
    "neutral with a sign": bytes([0xE0]) + bytes(47),
    "neutral with more": bytes([0xC0]) + bytes(46) + b"\1",
    "not compressed": bytes([written(G1Point())[0] & 0x7F]) + written(G1Point())[1:],
    "x not reduced": shifted_1(),
    "short": written(G1Point())[:-1],
    "long": written(G1Point()) + b"\0",
    "empty": b"",
}
POINTS_2 = {
    "off the curve": bytes([0x80]) + bytes(94) + b"\1",
    "outside the group": outside_2(),
    "neutral": bytes([0xC0]) + bytes(95),
    "neutral with a sign": bytes([0xE0]) + bytes(95),
    "neutral with more": bytes([0xC0]) + bytes(94) + b"\1",
    "not compressed": bytes([written(G2Point())[0] & 0x7F]) + written(G2Point())[1:],
    "short": written(G2Point())[:-1],
    "long": written(G2Point()) + b"\0",
    "empty": b"",
}


@pytest.mark.requirement("ABE-23")
@pytest.mark.parametrize("name", POINTS_1)
def test_what_is_no_point_of_the_first_group_is_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        pairing.read_point_1(POINTS_1[name])


@pytest.mark.requirement("ABE-23")
@pytest.mark.parametrize("name", POINTS_2)
def test_what_is_no_point_of_the_second_group_is_malformed(name: str) -> None:
    with pytest.raises(Malformed):
        pairing.read_point_2(POINTS_2[name])


@pytest.mark.requirement("ABE-23")
def test_points_are_read_as_they_were_written() -> None:
    for number in (1, 2, R - 1, 3**100):
        one, two = G1Point() * Scalar(number), G2Point() * Scalar(number)
        assert pairing.read_point_1(written(one)) == one
        assert pairing.read_point_2(written(two)) == two


@pytest.mark.requirement("ABE-23", "ABE-24")
def test_every_point_of_keys_and_ciphertexts_is_checked() -> None:
    one, two = POINTS_1["neutral"], POINTS_2["outside the group"]
    public, secret, ciphertext = PUBLIC.to_bytes(), key([b"A"]).to_bytes(), sealed(any_of(b"A", b"B"))
    start = len(access_tree.tree_bytes(any_of(b"A", b"B")))
    places: list[tuple[Callable[[bytes], object], bytes, Sequence[tuple[int, bytes]]]] = [
        (PublicKey.from_bytes, public, [(0, one), (48, two), (144, one)]),
        (SecretKey.from_bytes, secret, [(0, two), (99, one), (147, two)]),
        (lambda data: opened(key([b"A"]), data), ciphertext,
         [(start + at, point) for at, point in [(0, one), (48, two), (144, one), (192, two), (288, one)]]),
    ]  # fmt: skip
    for read, whole, spots in places:
        for at, point in spots:
            with pytest.raises(Malformed):
                read(whole[:at] + point + whole[at + len(point) :])


@pytest.mark.requirement("ABE-24")
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_the_words_of_the_library(data: bytes) -> None:
    with pytest.raises(Refused):
        decrypt(PUBLIC, key([b"A"]), data, session=SESSION, associated=ASSOCIATED)


def test_secrets_do_not_stand_in_the_text_of_keys() -> None:
    holder = key([b"A"])
    assert str(MASTER.alpha) not in repr(MASTER)
    assert str(MASTER.beta) not in repr(MASTER)
    assert written(holder.d).hex() not in repr(holder).lower()


@pytest.mark.parametrize("exponent", one_in(3, [1, 2, 15, 16, 17, 2**64, 3**150, R - 1]))
def test_powers_from_a_table_are_powers(exponent: int) -> None:
    assert pairing.base_1().power(exponent) == G1Point() * Scalar(exponent)
    assert pairing.base_2().power(exponent) == G2Point() * Scalar(exponent)
    expected = pairing.GT.pairing(PUBLIC.w * Scalar(exponent), PUBLIC.f)
    assert PUBLIC.target.power(exponent) == expected


# ------------------------------------------------------------------------------------------------------ known answers


@pytest.mark.requirement("ABE-09", "ABE-10", "ABE-11", "ABE-12", "ABE-13", "ABE-05")
def test_known_answers() -> None:
    holder = issue(MASTER, [b"B", b"A"], key_blinding=7**90, attribute_blindings={b"A": 11**70, b"B": 13**60})
    tree = all_of(b"A", any_of(b"B", b"C"))
    ciphertext = sealed(tree, secret=17**60, coefficients=[19**50])
    assert opened(holder, ciphertext) == PLAINTEXT
    digests = [hashlib.sha256(data).hexdigest() for data in (PUBLIC.to_bytes(), holder.to_bytes(), ciphertext)]
    assert digests == KNOWN
    assert ciphertext[-31:].hex() == KNOWN_PAYLOAD


KNOWN = [
    "877257e7bcb57a12fcb7b812c219e03b26fe845af8f9fb46338fced5efa252a3",
    "f31ec5ccff946b849ce3f021699161151064f0a75325501ffc5901b95f949243",
    "5b6366c6df6747d9d631825a4428e77cc0e570526103152a1770324558ceeb68",
]
KNOWN_PAYLOAD = "e0f3e22ec8145968e0fa36c9e600d1399f5178f30c1d6166afefeeb1a3e6ce"


@pytest.mark.requirement("ABE-13")
def test_the_payload_is_sealed_as_in_the_text() -> None:
    ciphertext = sealed(Leaf(b"A"), secret=7)
    header, payload = ciphertext[: 3 + 48 + 144], ciphertext[3 + 48 + 144 + 4 :]
    element = bytes.fromhex(str(pairing.GT.pairing(PUBLIC.w * Scalar(7), PUBLIC.f)))
    values = [b"secagg-spec", b"\1\0\0\0", b"attributes", hashlib.sha256(PUBLIC.to_bytes()).digest()]
    values.append(hashlib.sha256(header).digest())
    info = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    derived = _hmac(_hmac(SESSION, element), info + b"\1")
    assert payload == ChaCha20Poly1305(derived).encrypt(bytes(12), PLAINTEXT, ASSOCIATED)


def _hmac(secret: bytes, data: bytes) -> bytes:
    import hmac

    return hmac.digest(secret, data, "sha256")


def test_keys_in_each_others_place_are_refused_by_name() -> None:
    made, ciphertext, a = key([b"A"]), sealed(Leaf(b"A")), {"session": SESSION, "associated": ASSOCIATED}
    with pytest.raises(ParameterError, match=r"^public = 'MasterKey': must be of the class PublicKey$"):
        encrypt(MASTER, Leaf(b"A"), PLAINTEXT, **a, secret=2, coefficients=[])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^public = 'SecretKey'"):
        decrypt(made, PUBLIC, ciphertext, **a)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^key = 'MasterKey': must be of the class SecretKey$"):
        decrypt(PUBLIC, MASTER, ciphertext, **a)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^master = 'PublicKey': must be of the class MasterKey$"):
        key([b"A"], master=PUBLIC)  # type: ignore[arg-type]
