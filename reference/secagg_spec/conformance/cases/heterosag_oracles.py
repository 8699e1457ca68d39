"""What spec/heterosag.md demands, in integers and fractions only, independent of the functions of the reference."""

from collections.abc import Collection, Sequence
from fractions import Fraction

from secagg_spec.arithmetic.levels import Range
from secagg_spec.protocols.heterosag.plan import Parameters

Pairs = list[tuple[int, int]]
ALONE = -1
_STARTERS = {
    16: "1 3 2 11 4 5 6 13 7 10 8 12 9 14",
    28: "1 20 2 3 4 6 5 22 7 21 8 24 9 16 10 15 11 14 12 18 13 25 17 26 19 23",
}


def clipped(x: float, range: Range) -> float:
    """Return a number, or the nearest bound."""
    return min(max(x, range.low), range.high)


def place(x: float, levels: int, range: Range) -> Fraction:
    """Return y, the place of a number on the scale from 0 to K - 1."""
    low, high = Fraction(range.low), Fraction(range.high)
    return (levels - 1) * (Fraction(x) - low) / (high - low)


def slack(levels: int) -> Fraction:
    """Return the allowed error of y."""
    return Fraction(levels, 2**48)


def carried(x: float, levels: int, range: Range, draw: float) -> list[int]:
    """Return the integers that HSA-08 allows: only one, unless y - u is an integer or next to one."""
    y, error = place(x, levels, range) - Fraction(draw), slack(levels)
    first = -((error - y) // 1)
    return [k for k in (first, first + 1) if 0 <= k < levels and k < y + 1 + error]


def beside(x: float, levels: int, range: Range) -> list[int]:
    """Return the integers that some draw may give."""
    y, error = place(x, levels, range), slack(levels)
    found = (k + y // 1 for k in (-1, 0, 1, 2))
    return [k for k in found if 0 <= k < levels and y - 1 - error < k < y + 1 + error]


def shares(count: int, parts: int) -> list[int]:
    """Return how many of `count` things each part has. If the parts are unequal, the first ones have one more."""
    return [count // parts + (at < count % parts) for at in range(parts)]


def members(p: Parameters) -> list[list[int]]:
    """Return the users of each subgroup."""
    sizes = [size for users, parts in zip(p.sizes, p.subgroups, strict=True) for size in shares(users, parts)]
    ends = [sum(sizes[: at + 1]) for at in range(len(sizes))]
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def group_of(p: Parameters) -> list[int]:
    """Return the group of each subgroup."""
    return [group for group, parts in enumerate(p.subgroups) for _ in range(parts)]


def partners(matrix: str, Z: int) -> list[list[int]]:
    """Return the partner of each subgroup in each segment, or the subgroup itself if it is alone."""
    if matrix == "cyclic":
        return [[(row + 1 - a) % Z for a in range(Z)] for row in range(Z)]
    points = Z + Z % 2
    rows = [list(range(points)) for _ in range(points - 1)]
    for row, pairs in zip(rows, _factors(points), strict=True):
        for a, b in pairs:
            row[a], row[b] = b, a
    if Z % 2:
        return [[a if partner == Z else partner for a, partner in enumerate(row[:Z])] for row in rows]
    return [*rows, list(range(Z))]


def _factors(n: int) -> list[Pairs]:
    """Return the pairs of each factor by the first applicable line of the table of section 4."""
    if n == 2:
        return [[(0, 1)]]
    if _odd_prime(n - 1):
        return [[*_mirrored(n - 1, row + 1), _fixed(n - 1, row + 1)] for row in range(n - 1)]
    p = n // 2
    if _odd_prime(p):
        turns = [j for j in range(1, n, 2) if j != p]
        straight = [[(a, (a + j) % n) for a in range(0, n, 2)] for j in turns]
        return [[*_mirrored(n, 2 * row), (row, row + p)] for row in range(p)] + straight
    numbers = [int(text) for text in _STARTERS[n].split()]
    starter = list(zip(numbers[::2], numbers[1::2], strict=True))
    m = n - 1
    return [[*(((a + row) % m, (b + row) % m) for a, b in starter), (row, m)] for row in range(m)]


def _mirrored(modulus: int, total: int) -> Pairs:
    return [(a, (total - a) % modulus) for a in range(modulus) if a < (total - a) % modulus]


def _fixed(prime: int, total: int) -> tuple[int, int]:
    return next(a for a in range(prime) if (2 * a - total) % prime == 0), prime


def _odd_prime(n: int) -> bool:
    return n > 2 and all(n % divisor for divisor in range(2, n))


def has_perfect(Z: int) -> bool:
    """Return whether section 4 constructs a perfect matrix."""
    n = Z + Z % 2
    return n in (2, *_STARTERS) or _odd_prime(n - 1) or _odd_prime(n // 2)


def table(p: Parameters) -> list[list[int]]:
    """Return B."""
    return [[ALONE if a == b else min(a, b) for a, b in enumerate(row)] for row in partners(p.matrix, p.count)]


def levels(p: Parameters) -> list[list[int]]:
    """Return K of the cell of each subgroup in each segment."""
    groups = group_of(p)
    return [[p.levels[groups[min(a, b)]] for a, b in enumerate(row)] for row in partners(p.matrix, p.count)]


def moduli(p: Parameters) -> list[list[int]]:
    """Return R of the cell of each subgroup in each segment."""
    sizes, rows = [len(users) for users in members(p)], partners(p.matrix, p.count)
    users = [[sizes[a] + (sizes[b] if a != b else 0) for a, b in enumerate(row)] for row in rows]
    return [[s * (K - 1) + 1 for s, K in zip(row, ks, strict=True)] for row, ks in zip(users, levels(p), strict=True)]


def cells(p: Parameters) -> list[frozenset[int]]:
    """Return the users of each cell, every cell once."""
    users = members(p)
    found = [users[a] + (users[b] if a != b else []) for row in partners(p.matrix, p.count) for a, b in enumerate(row)]
    return list(dict.fromkeys(frozenset(each) for each in found))


def mean_of(total: int, count: int, levels: int, range: Range) -> Fraction:
    """Return the cell mean that a sum represents."""
    low, high = Fraction(range.low), Fraction(range.high)
    return low + (high - low) / (levels - 1) * total / count


def aggregate(means: Sequence[Fraction], counts: Sequence[int], method: str, trim: int) -> Fraction:
    """Return one coordinate of a segment of the aggregate."""
    if method == "mean":
        return sum((mean * count for mean, count in zip(means, counts, strict=True)), Fraction(0)) / sum(counts)
    ordered, n = sorted(means), len(means)
    kept = ordered[trim : n - trim] if method == "trimmed" else ordered[(n - 1) // 2 : n // 2 + 1]
    return sum(kept, Fraction(0)) / len(kept)


def tolerance(range: Range) -> Fraction:
    """Return the allowed error of an average (HSA-23 to HSA-26)."""
    return Fraction(max(abs(range.low), abs(range.high))) / 2**40 + Fraction(1, 2**1070)


def answered(p: Parameters, requests: Sequence[Collection[int]]) -> list[bool]:
    """Return which requests of a session are answered, one after the other (HSA-18, HSA-27)."""
    found: list[bool] = []
    for at, survivors in enumerate(requests):
        before = [set(past) for past, taken in zip(requests[:at], found, strict=True) if taken]
        found.append(all(_safe(cell, [*before, set(survivors)], p.T + 2) for cell in cells(p)))
    return found


def _safe(cell: frozenset[int], seen: Sequence[set[int]], least: int) -> bool:
    """Return whether the users of a cell that are in exactly the same sets, if in any, are always enough."""
    patterns = [tuple(user in survivors for survivors in seen) for user in cell]
    return all(patterns.count(pattern) >= least for pattern in patterns if any(pattern))
