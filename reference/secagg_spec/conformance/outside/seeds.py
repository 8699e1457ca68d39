"""Pairs of 32-byte seeds that coincide in an implementation that folds or truncates seeds in a usual way.

If an implementation truncates a seed to the 32 bits that many generators take, no birthday search is needed: two seeds
that agree in these bits show it at once. Other truncations need many draws (`chance`).
"""

from hashlib import sha256
from itertools import chain

SEED_BYTES = 32
_WORDS = SEED_BYTES // 4
_KEPT = (2, 4, 8, 16)
_MODULI = (2**31 - 1, 2**32 - 1, 2**31, 10**9 + 7)

Alike = tuple[bytes, bytes, str]


def numbered(label: str, at: int) -> bytes:
    """Return a seed without structure, determined by a label and a number."""
    return sha256(f"{label} {at}".encode()).digest()


def alike() -> list[Alike]:
    """Return pairs of different seeds, each with the property that the two share."""
    return [*chain.from_iterable(map(_cut, _KEPT)), *_folded(), *map(_congruent, _MODULI)]


def _cut(size: int) -> list[Alike]:
    """Return seeds that agree in `size` bytes at one end."""
    first, other = numbered("first", size), numbered("other", size)
    bits = 8 * size
    return [
        (first, first[:size] + other[size:], f"whose first {bits} bits are equal"),
        (first, other[:-size] + first[-size:], f"whose last {bits} bits are equal"),
    ]


def _folded() -> list[Alike]:
    """Return seeds whose 4-byte words fold to the same number."""
    words = [numbered("folded", 0)[at : at + 4] for at in range(0, SEED_BYTES, 4)]
    added = int.from_bytes(numbered("added", 0)[:4], "little")
    first = b"".join(words)
    exchanged = b"".join(words[::-1])
    flipped = [_xor(words[0], added), _xor(words[1], added), *words[2:]]
    moved = [_plus(words[0], added), _plus(words[1], -added), *words[2:]]
    return [
        (first, exchanged, "which differ in the order of their 4-byte words"),
        (first, b"".join(flipped), "whose 4-byte words have the same sum bit by bit"),
        (first, b"".join(moved), "whose 4-byte words have the same sum modulo 2**32"),
        (first, first[::-1], "which differ in the order of their bytes"),
    ]


def _congruent(modulus: int) -> Alike:
    """Return seeds that are congruent as little-endian integers."""
    first = numbered("congruent", modulus)
    number = int.from_bytes(first, "little")
    factor = int.from_bytes(numbered("factor", modulus)[:16], "little")
    step = modulus * factor
    other = number - step if number >= step else number + step
    return first, other.to_bytes(SEED_BYTES, "little"), f"which are congruent modulo {modulus}"


def _xor(word: bytes, added: int) -> bytes:
    return (int.from_bytes(word, "little") ^ added).to_bytes(4, "little")


def _plus(word: bytes, added: int) -> bytes:
    return (int.from_bytes(word, "little") + added & 2**32 - 1).to_bytes(4, "little")
