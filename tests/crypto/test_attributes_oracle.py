"""Encryption by attributes against py_ecc, which shares no code with the library, and in black-box groups."""

from __future__ import annotations

import hashlib
import hmac
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from secagg_spec.arithmetic.scalars import ORDER as R
from secagg_spec.crypto import pairing
from secagg_spec.crypto.access_tree import Gate, Leaf, Tree, tree_bytes
from secagg_spec.crypto.attributes import all_of, encrypt, issue, setup
from tests.crypto import trees
from tests.crypto.oracle import FQ12, G1, G2, add, compress_G1, compress_G2, hash_to_G1, multiply, reduced_pairing

TAG = b"secagg-spec-V01-CS01-with-BLS12381G1_XMD:SHA-256_SSWU_RO_"
SESSION = bytes(range(16))
ALPHA, BETA, RHO = 3**150, 5**100, 7**90
SECRET, COEFFICIENTS = 17**60, (19**50, 0)
BLINDINGS = {b"A": 11**70, b"C": 13**60}
TREE = all_of(b"A", Gate(2, (Leaf(b"B"), Leaf(b"C"), Leaf(b"A"))))


# ------------------------------------------------------------------------------------------------- against py_ecc


def one(point: Any) -> bytes:
    """The 48 bytes of a point of G_1."""
    return int(compress_G1(point)).to_bytes(48, "big")


def two(point: Any) -> bytes:
    """The 96 bytes of a point of G_2."""
    return b"".join(int(part).to_bytes(48, "big") for part in compress_G2(point))


def hashed(attribute: bytes) -> Any:
    """H of an attribute."""
    sha: Any = hashlib.sha256
    return hash_to_G1(attribute, TAG, sha)


def element_bytes(element: Any) -> bytes:
    """The bytes of section 4 of an element that py_ecc writes in powers of t, where u = t^6 - 1."""
    c = [int(coefficient) for coefficient in element.coeffs]
    pairs = [(c[2 * j + i] + c[2 * j + i + 6], c[2 * j + i + 6]) for i in range(2) for j in range(3)]
    prime = type(element).field_modulus
    return b"".join((x % prime).to_bytes(48, "little") for pair in pairs for x in pair)


def inverse(number: int) -> int:
    """The inverse modulo r."""
    return pow(number, -1, R)


PUBLIC_BYTES = one(multiply(G1, BETA)) + two(multiply(G2, inverse(BETA))) + one(multiply(G1, ALPHA * BETA % R))


@pytest.mark.requirement("ABE-09")
def test_the_public_key_is_that_of_the_text() -> None:
    assert setup(alpha=ALPHA, beta=BETA)[0].to_bytes() == PUBLIC_BYTES


@pytest.mark.requirement("ABE-10")
@pytest.mark.parametrize("attribute", [b"A", b"\0", bytes(255), b"\xff"])
def test_the_hash_is_that_of_the_text(attribute: bytes) -> None:
    assert pairing.hash_attribute(attribute).to_compressed_bytes() == one(hashed(attribute))


@pytest.mark.requirement("ABE-11")
def test_a_secret_key_is_that_of_the_text() -> None:
    expected = two(multiply(G2, (ALPHA + RHO) * inverse(BETA) % R)) + b"\2"
    for name, blinding in BLINDINGS.items():
        blinded = add(multiply(G1, RHO), multiply(hashed(name), blinding))
        expected += b"\1" + name + one(blinded) + two(multiply(G2, blinding))
    _, master = setup(alpha=ALPHA, beta=BETA)
    assert issue(master, BLINDINGS, key_blinding=RHO, attribute_blindings=BLINDINGS).to_bytes() == expected


def header() -> bytes:
    """The header of the ciphertext under `TREE`."""
    values = (SECRET, *COEFFICIENTS)
    shares = [sum(values[n] * factor for n, factor in part.items()) % R for part in trees.share_functions(TREE)]
    parts = [
        two(multiply(G2, value)) + one(multiply(hashed(name), value))
        for name, value in zip(trees.attributes_of(TREE), shares, strict=True)
    ]
    return tree_bytes(TREE) + one(multiply(G1, BETA * SECRET % R)) + b"".join(parts)


@pytest.mark.slow
@pytest.mark.requirement("ABE-12", "ABE-13", "ABE-06")
def test_a_ciphertext_is_that_of_the_text() -> None:
    public, _ = setup(alpha=ALPHA, beta=BETA)
    ciphertext = encrypt(
        public, TREE, b"plaintext", session=SESSION, associated=b"data", secret=SECRET, coefficients=COEFFICIENTS
    )
    element = reduced_pairing(G2, G1) ** (-3 * ALPHA * SECRET % R)
    values = [b"secagg-spec", b"\1\0\0\0", b"attributes", sha256(PUBLIC_BYTES), sha256(header())]
    info = b"".join(len(value).to_bytes(4, "little") + value for value in values)
    extracted = hmac.digest(SESSION, element_bytes(element), "sha256")
    sealed = ChaCha20Poly1305(hmac.digest(extracted, info + b"\1", "sha256")).encrypt(bytes(12), b"plaintext", b"data")
    assert ciphertext == header() + len(sealed).to_bytes(4, "little") + sealed


def sha256(data: bytes) -> bytes:
    """The digest of bytes."""
    return hashlib.sha256(data).digest()


@pytest.mark.slow
def test_the_pairing_is_the_reduced_one_to_the_power_minus_three() -> None:
    left, right = pairing.base_1().power(6), pairing.base_2().power(7)
    element = reduced_pairing(multiply(G2, 7), multiply(G1, 6)) ** (R - 3)
    assert pairing.target_bytes(pairing.pairing_product([(left, right)])) == element_bytes(element)
    assert element != FQ12.one()


def test_the_recursion_limit_is_what_it_was() -> None:
    assert sys.getrecursionlimit() < 100_000


# --------------------------------------------------------------------------------------- groups that are black boxes

Monomial: TypeAlias = tuple[tuple[str, int], ...]
Polynomial: TypeAlias = Mapping[Monomial, int]
"""What an adversary has in the exponent: integer factors by monomial, whose powers may be negative."""


def term(**powers: int) -> Polynomial:
    """A monomial."""
    return {tuple(sorted(powers.items())): 1}


def plus(*parts: Polynomial) -> Polynomial:
    """The sum of polynomials."""
    found: dict[Monomial, int] = {}
    for part in parts:
        for monomial, factor in part.items():
            found[monomial] = found.get(monomial, 0) + factor
    return found


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product of polynomials."""
    found: dict[Monomial, int] = {}
    for left, right in ((x, y) for x in a for y in b):
        powers = dict(left)
        for name, power in right:
            powers[name] = powers.get(name, 0) + power
        monomial = tuple(sorted((name, power) for name, power in powers.items() if power))
        found[monomial] = found.get(monomial, 0) + a[left] * b[right]
    return found


def in_span(target: Polynomial, given: Iterable[Polynomial]) -> bool:
    """Whether a polynomial is a linear combination of others modulo r."""
    rows: dict[Monomial, dict[Monomial, int]] = {}
    for polynomial in given:
        row = reduce(polynomial, rows)
        if row:
            pivot = min(row)
            scale = pow(row[pivot], -1, R)
            rows[pivot] = {monomial: factor * scale % R for monomial, factor in row.items()}
    return not reduce(target, rows)


def reduce(polynomial: Polynomial, rows: Mapping[Monomial, Polynomial]) -> dict[Monomial, int]:
    """What is left of a polynomial; each row begins with its pivot, whose factor is 1."""
    row = {monomial: factor % R for monomial, factor in polynomial.items() if factor % R}
    done: dict[Monomial, int] = {}
    while row:
        pivot = min(row)
        if pivot not in rows:
            done[pivot] = row.pop(pivot)
            continue
        factor = row[pivot]
        for monomial, other in rows[pivot].items():
            row[monomial] = (row.get(monomial, 0) - factor * other) % R
            if not row[monomial]:
                del row[monomial]
    return done


def share_polynomials(tree: Tree) -> list[Polynomial]:
    """The shares of the leaves."""
    names = ("s", *(f"c{n}" for n in range(1, 33)))
    return [{((names[n], 1),): factor for n, factor in part.items()} for part in trees.share_functions(tree)]


def opens(
    tree: Tree, users: Sequence[Iterable[bytes]], one_blinding: bool = False, leak: Sequence[Polynomial] = ()
) -> bool:
    """Whether products of what some users and the world have together make αs; `leak` is more of G_1."""
    shares, attributes = share_polynomials(tree), trees.attributes_of(tree)
    hashes = {name: term(**{f"h{name!r}": 1}) for name in attributes}
    first = [term(), term(beta=1), term(alpha=1, beta=1), term(beta=1, s=1), *hashes.values(), *leak]
    first += [times(hashes[name], value) for name, value in zip(attributes, shares, strict=True)]
    second = [term(), term(beta=-1), *shares]
    for number, held in enumerate(users):
        rho = term(**{f"rho{0 if one_blinding else number}": 1})
        second.append(times(plus(term(alpha=1), rho), term(beta=-1)))
        for name in sorted(held):
            blinding = term(**{f"rho{number}{name!r}": 1})
            first.append(plus(rho, times(hashes[name], blinding)))
            second.append(blinding)
    return in_span(term(alpha=1, s=1), (times(left, right) for left in first for right in second))


def pairs(tree: Tree) -> list[tuple[frozenset[bytes], frozenset[bytes]]]:
    """All pairs of sets of attributes."""
    return list(combinations_with_replacement(trees.subsets(tree), 2))


SMALL = [tree for leaves in (1, 2, 3) for tree in trees.trees(leaves)]


@pytest.mark.requirement("ABE-16", "ABE-15", "ABE-14", "ABE-09")
@pytest.mark.parametrize("number", range(len(SMALL)))
def test_keys_open_a_ciphertext_exactly_when_one_of_them_does(number: int) -> None:
    tree = SMALL[number]
    for users in pairs(tree):
        assert opens(tree, users) == any(trees.satisfied(tree, held) for held in users)


@pytest.mark.requirement("ABE-16", "ABE-04")
def test_so_it_is_where_an_attribute_stands_at_several_leaves() -> None:
    for tree in trees.repeated()[1:9:3]:
        for users in pairs(tree):
            assert opens(tree, users) == any(trees.satisfied(tree, held) for held in users)


@pytest.mark.requirement("ABE-26", "ABE-16")
def test_keys_with_one_blinding_are_as_good_as_one_key() -> None:
    for tree in SMALL[:6]:
        for users in pairs(tree):
            assert opens(tree, users, one_blinding=True) == trees.satisfied(tree, users[0] | users[1])


@pytest.mark.requirement("ABE-09")
def test_other_elements_in_the_public_key_would_open_everything() -> None:
    for leak in (term(alpha=1), term(beta=1, s=1, alpha=1), term(s=1)):
        assert opens(all_of(b"A", b"B"), [], leak=[leak]) == (leak != term(s=1))
