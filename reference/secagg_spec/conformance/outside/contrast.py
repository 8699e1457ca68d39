"""Compare views of one secret with views of another: how far apart they are, and how they are related.

The kit draws the order of the questions. If a view does not depend on the secret, each of the C(2n, n) orders of n
questions about one secret and n about another explains the answers equally well, regardless of their distribution. For
a statistic, let A(x) and B(x) be the numbers of the n values of each secret above x. At most 2 C(2n, n + c) orders have
|A(x) - B(x)| >= c for some x (reflection; Kolmogorov and Smirnov). Ties only leave fewer values of x.

A relation is an XOR of one or more bits of the secret that equals, in all of K answers, an XOR of visible bits or its
complement. Suppose that the k bits of the secrets are K uniform draws, independent of the view. Then each of the
2^k - 1 sums of columns of the secret lies in the space of the m visible columns and the constant with a probability of
at most 2^(m + 1 - K).

Source: spec/conformance.md, section 5.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ALARM_BITS = 52
"""A judgement here fails an implementation that hides with a probability of at most 2**-52; a check makes up to 3."""
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class Apart:
    """A statistic that tells two secrets apart, and by how many of n answers."""

    what: str
    by: int


def threshold(n: int, statistics: int) -> int:
    """Return the least c with 2 S C(2n, n + c) / C(2n, n) at most 2**-52; n + 1 when there is none."""
    whole = math.comb(2 * n, n)
    return next((c for c in range(n + 1) if statistics * math.comb(2 * n, n + c) << ALARM_BITS + 1 <= whole), n + 1)


def bits_of(data: Sequence[bytes], width: int) -> Bits:
    """Return byte strings as rows of bits, the lowest bit of each byte first, padded with zeros to a width in bytes."""
    padded = b"".join(each[:width].ljust(width, b"\0") for each in data)
    rows = np.frombuffer(padded, np.uint8).reshape(len(data), width)
    return np.unpackbits(rows, axis=1, bitorder="little").astype(bool)


def apart(first: Sequence[bytes], second: Sequence[bytes]) -> tuple[Apart, int]:
    """Return the statistic that best tells two equally long lists apart, and the number of statistics tried.

    The statistics are the length, each bit counted from the front and from the back, and the values of the whole as
    little-endian and as big-endian numbers.
    """
    width = max(map(len, (*first, *second)))
    found = [
        Apart("its length", _furthest([*map(len, first)], [*map(len, second)])),
        *(Apart(f"its value, {end}-endian", _values(first, second, end)) for end in ("little", "big")),
    ]
    for turned, end in ((1, "front"), (-1, "back")) if width else ():
        ones = [
            bits_of([each[::turned] for each in data], width).sum(axis=0, dtype=np.int64) for data in (first, second)
        ]
        by = np.abs(ones[0] - ones[1])
        at = int(by.argmax())
        found.append(Apart(f"bit {at % 8} of byte {at // 8} from the {end}", int(by[at])))
    return max(found, key=lambda each: each.by), 3 + 16 * width


def _values(first: Sequence[bytes], second: Sequence[bytes], end: str) -> int:
    read = [[int.from_bytes(each, "little" if end == "little" else "big") for each in data] for data in (first, second)]
    return _furthest(*read)


def _furthest(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the largest difference between the numbers of entries of the two lists above a bound."""
    steps = sorted([(value, 1) for value in first] + [(value, -1) for value in second])
    heights = np.cumsum([step for _, step in steps])
    last = [at + 1 == len(steps) or steps[at + 1][0] != value for at, (value, _) in enumerate(steps)]
    return int(np.abs(heights[last]).max(initial=0))


def enough(seen: int, secret: int) -> int:
    """Return the number of answers that bounds the probability of a chance relation between the bits by 2**-52."""
    return seen + 1 + secret + ALARM_BITS


def relation(seen: Bits, secrets: Bits) -> tuple[list[int], list[int], bool] | None:
    """Return places of bits of the secret, places of visible bits, and a constant that add up to 0 in each row.

    None is returned if no relation involves a bit of the secret.
    """
    ones = np.ones((len(seen), 1), dtype=bool)
    table = np.concatenate([seen, ones, secrets], axis=1)
    columns = [int.from_bytes(np.packbits(column).tobytes(), "big") for column in table.T]
    basis: dict[int, int] = {}
    for at, column in enumerate(columns):
        left = column << len(columns) | 1 << at
        while (lead := left.bit_length()) > len(columns) and lead in basis:
            left ^= basis[lead]
        if lead > len(columns):
            basis[lead] = left
        elif at > seen.shape[1]:
            places = [place for place in range(at + 1) if left >> place & 1]
            own = [place - seen.shape[1] - 1 for place in places if place > seen.shape[1]]
            return own, [place for place in places if place < seen.shape[1]], seen.shape[1] in places
    return None


def dimension(modulus: int, rows: Sequence[Sequence[int]]) -> int:
    """Return the dimension of the smallest plane of a prime field that contains all rows."""
    basis: list[tuple[int, list[int]]] = []
    for row in rows[1:]:
        left = [(value - start) % modulus for value, start in zip(row, rows[0], strict=True)]
        for lead, known in basis:
            if left[lead]:
                factor = left[lead]
                left = [(value - factor * other) % modulus for value, other in zip(left, known, strict=True)]
        if any(left):
            lead = next(at for at, value in enumerate(left) if value)
            inverse = pow(left[lead], -1, modulus)
            basis.append((lead, [value * inverse % modulus for value in left]))
    return len(basis)


def spare(modulus: int) -> int:
    """Return how many more rows than columns make uniform rows lie in one plane with a probability up to 2**-52.

    The differences of n + s uniform rows of n elements from the first are n + s - 1 uniform rows. They all lie in one
    of the fewer than 2 q**(n - 1) planes through 0 with a probability below 2 q**(n - 1) / q**(n + s - 1) = 2 q**-s.
    """
    return math.ceil((ALARM_BITS + 1) / math.log2(modulus))
