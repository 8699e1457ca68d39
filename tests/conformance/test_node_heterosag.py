"""The implementation of HeteroSAg in JavaScript: its functions one at a time, whole rounds, and its parties.

It was written from the text alone. Expected values are those of the reference, or are made here in another way: with
fractions, by trying all sets of users, or from the formula of the page.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range, quantize_levels
from secagg_spec.conformance.adapter.codes import reject_code
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.codec import Message, encode
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters, cells_of
from secagg_spec.protocols.steps import SERVER, Network, Randomness, run_synchronous
from tests.conformance.node import NODE, Answer, Node, entries_of, reals, reals_of, running, vector
from tests.quick import WHOLE

SESSION = bytes(range(16)).hex()
MASKED_SEGMENTS = 1281
PHASES = ("advertise_keys", "share_keys", "masked_input", "unmasking")
NOBODY: Mapping[str, Sequence[int]] = {phase: [] for phase in PHASES}
TINY: dict[str, Any] = {
    "N": 12, "D": 1, "T": 1, "t": 3, "d": 4, "sizes": [8, 4], "subgroups": [2, 1], "levels": [2, 3],
    "range": reals([-1, 1]), "matrix": "perfect",
}  # fmt: skip
FIVE: dict[str, Any] = {
    **TINY, "N": 25, "D": 5, "t": 13, "d": 20, "sizes": [5] * 5, "subgroups": [1] * 5, "levels": [2, 6, 8, 10, 12],
}  # fmt: skip
UNEVEN: dict[str, Any] = {
    **TINY, "N": 22, "D": 4, "T": 2, "t": 5, "d": 9, "sizes": [4, 9, 9], "subgroups": [1, 2, 2],
    "levels": [3, 3, 2**25], "range": reals([-0.0, 2.5]),
}  # fmt: skip
POWERS: dict[str, Any] = {**TINY, "N": 14, "sizes": [7, 7], "subgroups": [1, 1], "levels": [2, 2]}  # moduli of 8 and 15
SHAPES = [TINY, {**TINY, "matrix": "cyclic"}, FIVE, UNEVEN, POWERS]
BINARY64 = st.floats(allow_nan=False, allow_infinity=False)

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """The other implementation, running."""
    with running() as other:
        yield other


def of_reference(numbers: Answer) -> Parameters:
    """Return the numbers of a session as the reference takes them."""
    given = {**numbers, **{name: tuple(numbers[name]) for name in ("sizes", "subgroups", "levels")}}
    return Parameters(**{**given, "range": Range(*reals_of(numbers["range"]))})


def drawn(label: object) -> bytes:
    """Return 32 bytes that look random and are the same in every run."""
    return hashlib.sha256(str(label).encode()).digest()


# ----------------------------------------------------------------------------------------------------------------------
# The quantiser


def quantized(node: Node, levels: int, ends: Sequence[float], x: Sequence[float], u: Sequence[float]) -> list[int]:
    params = {"levels": str(levels), "range": reals(ends), "clip": False, "x": reals(x)}
    return entries_of(node.result("quantize.levels", params, {"rounding": reals(u)})["value"])


def is_right(k: int, levels: int, ends: Sequence[float], x: float, u: float) -> bool:
    """Return what HSA-08 says of a quantised number."""
    low, high = map(Fraction, ends)
    y, slack = (levels - 1) * (Fraction(x) - low) / (high - low), Fraction(levels, 2**48)
    return 0 <= k < levels and y - Fraction(u) - slack <= k < y - Fraction(u) + 1 + slack


@pytest.mark.requirement("HSA-08")
@given(
    levels=st.one_of(st.integers(2, 20), st.integers(2, 2**31)),
    ends=st.lists(BINARY64, min_size=2, max_size=2, unique=True).filter(lambda two: math.isfinite(two[0] - two[1])),
    share=st.fractions(0, 1),
    u=st.floats(0, 1, exclude_max=True),
)
def test_numbers_are_rounded_to_a_level_beside_them(
    node: Node, levels: int, ends: list[float], share: Fraction, u: float
) -> None:
    low, high = sorted(ends)
    x = min(max(float(Fraction(low) + share * (Fraction(high) - Fraction(low))), low), high)
    [k] = quantized(node, levels, (low, high), [x], [u])
    assert is_right(k, levels, (low, high), x, u)
    arrays = np.array([x]), np.array([u])
    other = int(quantize_levels(arrays[0], levels=levels, range=Range(low, high), rounding=arrays[1])[0])
    assert k == other or is_right(other, levels, (low, high), x, u)


@pytest.mark.requirement("HSA-07", "HSA-08", "HSA-09", "HSA-10", "HSA-05", "ADP-12")
def test_the_ends_of_the_range_and_what_lies_outside(node: Node) -> None:
    above = math.nextafter(1.0, 0.0)
    assert quantized(node, 2**31, [-1, 1], [-1, 1, 1, 0], [above, 0, above, 0.5]) == [
        0,
        2**31 - 1,
        2**31 - 1,
        2**30 - 1,
    ]
    assert quantized(node, 3, [0, 1], [0.25, 0.25, 0.25, 0.5], [0.5, 0.49, 0.51, 0]) == [0, 1, 0, 1]
    params: dict[str, Any] = {
        "levels": "3",
        "range": reals([0, 1]),
        "clip": True,
        "x": reals([-9, 1.5, math.inf, -math.inf]),
    }
    rand = {"rounding": reals([0.5] * 4)}
    assert entries_of(node.result("quantize.levels", params, rand)["value"]) == [0, 2, 2, 0]
    faults: list[tuple[dict[str, Any], str]] = [
        ({"clip": False}, "out_of_range"),
        ({"levels": "1"}, "bad_param"),
        ({"levels": str(2**31 + 1)}, "bad_param"),
        ({"levels": 3}, "malformed"),
        ({"clip": 1}, "malformed"),
        ({"x": reals([math.nan] * 4)}, "out_of_range"),
        ({"x": reals([0])}, "length_mismatch"),
        ({"range": reals([1, 1])}, "bad_param"),
        ({"range": reals([-1.7e308, 1.7e308])}, "bad_param"),
        ({"range": reals([0, math.inf])}, "bad_param"),
        ({"range": reals([0, 1, 2])}, "length_mismatch"),
    ]
    for changes, code in faults:
        assert node.code("quantize.levels", {**params, **changes}, rand) == code, changes
    for draw in (1.0, -0.5, math.nan):
        assert node.code("quantize.levels", params, {"rounding": reals([0, 0, 0, draw])}) == "out_of_range"


# ----------------------------------------------------------------------------------------------------------------------
# The plan


def plain(count: int, matrix: str) -> dict[str, Any]:
    """Return a session of subgroups of three users."""
    numbers = {"N": 3 * count, "D": 0, "t": 3, "d": count, "sizes": [3 * count], "subgroups": [count], "levels": [2]}
    return {**TINY, **numbers, "matrix": matrix}


def pairs_of(row: Sequence[int]) -> set[frozenset[int]]:
    """Return the cells of a row of B; who is the smaller of its two subgroups is named by both."""
    alone = {frozenset([z]) for z, entry in enumerate(row) if entry < 0}
    return alone | {frozenset([z, entry]) for z, entry in enumerate(row) if 0 <= entry < z}


@pytest.mark.requirement("HSA-11")
@pytest.mark.parametrize("matrix", ["cyclic", "perfect"])
def test_each_subgroup_is_alone_once_and_each_two_are_together_once(node: Node, matrix: str) -> None:
    for count in range(2, 33):
        rows = [pairs_of(row) for row in node.result("segment.plan", plain(count, matrix))["matrix"]]
        assert all(sorted(z for cell in row for z in cell) == list(range(count)) for row in rows)
        expected = itertools.chain(itertools.combinations(range(count), 1), itertools.combinations(range(count), 2))
        assert sorted(map(sorted, itertools.chain(*rows))) == sorted(map(list, expected))


@pytest.mark.slow
@pytest.mark.requirement("HSA-11")
def test_two_rows_of_the_perfect_matrix_make_one_circle(node: Node) -> None:
    for count in range(3, 33):
        rows = [pairs_of(row) for row in node.result("segment.plan", plain(count, "perfect"))["matrix"]]
        joined = [{frozenset([*cell, count]) if len(cell) == 1 else cell for cell in row} for row in rows]
        factors = joined if count % 2 else joined[:-1]
        assert all(is_one_circle(one | other) for one, other in itertools.combinations(factors, 2)), count


def is_one_circle(pairs: set[frozenset[int]]) -> bool:
    reached = {min(itertools.chain(*pairs))}
    while len(grown := reached | {point for pair in pairs if pair & reached for point in pair}) > len(reached):
        reached = grown
    return reached == set(itertools.chain(*pairs)) and len(pairs) == len(reached)


@pytest.mark.slow
@pytest.mark.requirement("HSA-11", "HSA-12")
def test_the_plan_is_that_of_the_reference(node: Node) -> None:
    for numbers in [*SHAPES, *(plain(n, matrix) for n in range(2, 33) for matrix in ("cyclic", "perfect"))]:
        found, parameters = node.result("segment.plan", numbers), of_reference(numbers)
        assert found["members"] == [list(users) for users in parameters.members]
        assert found["lengths"] == list(parameters.lengths)
        for subgroup, (user, *_) in enumerate(parameters.members):
            for cell in cells_of(parameters, user):
                smaller = -1 if len(cell.subgroups) == 1 else min(cell.subgroups)
                shown = [found[name][cell.segment][subgroup] for name in ("matrix", "levels", "moduli")]
                assert shown == [smaller, cell.levels, str(cell.ring.modulus)]


def cell_of(row: Sequence[int], subgroup: int) -> int:
    """Return the number of a cell: its smaller subgroup."""
    return subgroup if row[subgroup] < 0 else row[subgroup]


@pytest.mark.requirement("HSA-11")
def test_the_cyclic_matrix_of_five_is_that_of_the_page(node: Node) -> None:
    page = [[0, 0, 2, -1, 2], [0, -1, 0, 3, 3], [0, 1, 1, 0, -1], [0, 1, -1, 1, 0], [-1, 1, 2, 2, 1]]
    for matrix in ("cyclic", "perfect"):
        assert node.result("segment.plan", {**FIVE, "matrix": matrix})["matrix"] == page


@pytest.mark.requirement("HSA-01", "HSA-02", "HSA-03", "HSA-04", "HSA-05", "HSA-06", "ADP-05")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"N": 13}, "bad_param"),
        ({"D": -1}, "bad_param"),
        ({"D": 10}, "bad_param"),
        ({"T": 0}, "bad_param"),
        ({"T": 3, "t": 5}, "bad_param"),
        ({"t": 2}, "bad_param"),
        ({"t": 12}, "bad_param"),
        ({"sizes": [12, 0], "subgroups": [3, 1]}, "bad_param"),
        ({"subgroups": [3, 1]}, "bad_param"),
        ({"subgroups": [2, 0]}, "bad_param"),
        ({"subgroups": [2]}, "length_mismatch"),
        ({"sizes": [12], "subgroups": [1], "levels": [2]}, "bad_param"),
        ({"sizes": [], "subgroups": [], "levels": []}, "bad_param"),
        ({"levels": [2]}, "length_mismatch"),
        ({"levels": [1, 3]}, "bad_param"),
        ({"levels": [3, 2]}, "bad_param"),
        ({"levels": [2**29 + 1, 2**29 + 1]}, "bad_param"),
        ({"d": 2}, "bad_param"),
        ({"range": reals([1, -1])}, "bad_param"),
        ({"matrix": "other"}, "bad_param"),
        ({"matrix": 1}, "malformed"),
        ({"sizes": 12}, "malformed"),
        ({"k": 11}, "malformed"),
    ],
)
def test_wrong_numbers_are_refused(node: Node, changes: Answer, code: str) -> None:
    assert node.code("segment.plan", {**TINY, **changes}) == code
    if code != "malformed":
        with pytest.raises(ParameterError):
            of_reference({**TINY, **changes})


@pytest.mark.requirement("SHM-01")
def test_no_more_users_than_can_hold_shares(node: Node) -> None:
    most = {**plain(2, "perfect"), "N": 2**16, "sizes": [2**16]}
    assert node.result("segment.plan", most)["members"][1][-1] == 2**16 - 1
    more = {**most, "N": 2**16 + 1, "sizes": [2**16 + 1]}
    assert node.code("segment.plan", more) == "bad_param"
    assert node.code("heterosag.request", {**more, "requests": []}) == "bad_param"


@pytest.mark.requirement("HSA-03", "HSA-06")
def test_how_far_moduli_and_perfect_matrices_reach(node: Node) -> None:
    largest = {**TINY, "levels": [2**29, 2**29], "sizes": [8, 4]}  # 8 * (2**29 - 1) + 1 is below 2**32
    assert node.result("segment.plan", largest)["moduli"][0][0] == str(2**32 - 7)
    assert len(node.result("segment.plan", plain(34, "perfect"))["matrix"]) == 34
    for count in (35, 36, 39, 40):
        assert node.code("segment.plan", plain(count, "perfect")) == "bad_param"
        node.result("segment.plan", plain(count, "cyclic"))


# ----------------------------------------------------------------------------------------------------------------------
# Averages


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Rows of cells with sums that users may have."""
    low, high = sorted(draw(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=2, unique=True)))
    levels = draw(st.lists(st.integers(2, 2**16), min_size=1, max_size=6))
    counts = draw(st.lists(st.integers(1, 100), min_size=len(levels), max_size=len(levels)))
    length = draw(st.integers(1, 3))
    most = [count * (k - 1) for count, k in zip(counts, levels, strict=True)]
    sums = [draw(st.lists(st.integers(0, limit), min_size=length, max_size=length)) for limit in most]
    method = draw(st.sampled_from(["mean", "median", "trimmed"]))
    trim = draw(st.integers(0, (len(levels) - 1) // 2)) if method == "trimmed" else 0
    return {"range": [low, high], "levels": levels, "counts": counts, "sums": sums, "method": method, "trim": trim}


def average_of(row: Answer, at: int) -> Fraction:
    """Return one coordinate of what a row gives."""
    low, high = map(Fraction, row["range"])
    counts = row["counts"]
    cells = zip(row["sums"], counts, row["levels"], strict=True)
    means = [low + (high - low) * Fraction(total[at], count * (levels - 1)) for total, count, levels in cells]
    if row["method"] == "mean":
        return sum((mean * count for mean, count in zip(means, counts, strict=True)), Fraction(0)) / sum(counts)
    left = (len(means) - 1) // 2 if row["method"] == "median" else row["trim"]
    kept = sorted(means)[left : len(means) - left]
    return sum(kept, Fraction(0)) / len(kept)


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-25", "HSA-26")
@given(row=rows())
def test_rows_are_averaged_as_fractions_are(node: Node, row: Answer) -> None:
    asked = {**row, "range": reals(row["range"]), "sums": [vector(total) for total in row["sums"]]}
    slack = Fraction(max(map(abs, row["range"]))) / 2**40
    for at, found in enumerate(reals_of(node.result("heterosag.average", asked)["segment"])):
        assert abs(Fraction(found) - average_of(row, at)) <= slack


@pytest.mark.requirement("HSA-20", "HSA-26", "ADP-39")
def test_rows_that_no_users_make_are_refused(node: Node) -> None:
    row: dict[str, Any] = {
        "range": reals([0, 1]), "levels": [2, 3], "counts": [3, 4], "sums": [vector([1, 3]), vector([8, 0])],
        "method": "trimmed", "trim": 0,
    }  # fmt: skip
    assert reals_of(node.result("heterosag.average", row)["segment"]) == pytest.approx([2 / 3, 1 / 2])
    assert reals_of(node.result("heterosag.average", {**row, "method": "mean"})["segment"]) == pytest.approx(
        [5 / 7, 3 / 7]
    )
    faults: list[tuple[dict[str, Any], str]] = [
        ({"trim": 1}, "bad_param"),
        ({"trim": -1}, "bad_param"),
        ({"method": "median", "trim": 1}, "bad_param"),
        ({"method": "mode"}, "bad_param"),
        ({"counts": [3]}, "length_mismatch"),
        ({"levels": [2, 3, 4]}, "length_mismatch"),
        ({"counts": [0, 4]}, "bad_param"),
        ({"levels": [1, 3]}, "bad_param"),
        ({"sums": [vector([4, 3]), vector([8, 0])]}, "out_of_range"),
        ({"sums": [vector([1]), vector([8, 0])]}, "length_mismatch"),
        ({"levels": [], "counts": [], "sums": []}, "bad_param"),
        ({"range": reals([0, 0])}, "bad_param"),
    ]
    for changes, code in faults:
        assert node.code("heterosag.average", {**row, **changes}) == code, changes


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-25")
@pytest.mark.parametrize("method", ["mean", "median", "trimmed"])
def test_the_widest_ranges_do_not_overflow(node: Node, method: str) -> None:
    most = math.nextafter(math.inf, 0)
    for ends in ((0.0, most), (-most, 0.0), (-most / 2, most / 2)):
        row = {"range": reals(ends), "levels": [3] * 4, "counts": [7] * 4, "sums": [vector([14, 0])] * 4}
        found = reals_of(node.result("heterosag.average", {**row, "method": method, "trim": 0})["segment"])
        assert found == pytest.approx(ends[::-1])


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-26")
@pytest.mark.parametrize(("method", "trim"), [("mean", 0), ("median", 0), ("trimmed", 0)])
def test_the_narrowest_ranges_keep_their_digits(node: Node, method: str, trim: int) -> None:
    for high in (5e-324, 2**-1069, 2**-1022):
        row = {"range": reals([0, high]), "levels": [2] * 100, "counts": [1] * 100, "sums": [vector([1, 0])] * 100}
        found = reals_of(node.result("heterosag.average", {**row, "method": method, "trim": trim})["segment"])
        assert all(
            abs(Fraction(a) - Fraction(b)) <= Fraction(1, 2**1070) for a, b in zip(found, (high, 0), strict=True)
        )


# ----------------------------------------------------------------------------------------------------------------------
# Requests, one after the other


def have_companions(cell: Sequence[int], sets: Sequence[set[int]], least: int) -> bool:
    """Return whether all users of a cell who are in some set have as many companions, by comparing each with each."""
    present = [user for user in cell if any(user in one for one in sets)]
    alike = [[all((user in one) == (other in one) for one in sets) for other in present] for user in present]
    return all(sum(row) >= least for row in alike)


def expected_answers(node: Node, numbers: Answer, requests: Sequence[Sequence[int]]) -> list[bool]:
    """Return which requests a user answers, of any cells of one or two subgroups."""
    members = node.result("segment.plan", numbers)["members"]
    cells = [*members, *([*one, *other] for one, other in itertools.combinations(members, 2))]
    past: list[set[int]] = []
    answered = []
    for request in requests:
        now = [*past, set(request)]
        answered.append(all(have_companions(cell, now, numbers["T"] + 2) for cell in cells))
        past = now if answered[-1] else past
    return answered


@st.composite
def requested(draw: st.DrawFn) -> tuple[dict[str, Any], list[list[int]]]:
    """Requests that leave whole subgroups out, or some users, after which a cell may be left with too few."""
    numbers = draw(st.sampled_from([
        {**TINY, "N": 16, "D": 10, "sizes": [10, 6], "t": 4},
        {**TINY, "N": 15, "D": 4, "T": 2, "t": 4, "sizes": [10, 5]},
    ]))  # fmt: skip
    left_out = st.lists(st.integers(1, numbers["N"] - 1), max_size=6, unique=True)
    groups = [[6, 7, 8], [1, 2, 3], [2, 3, 4], [10, 11, 12], [5, 6, 7, 8, 9]]
    one = st.one_of(
        left_out, st.sampled_from(groups), st.tuples(*[st.sampled_from(groups)] * 2).map(lambda two: [*two[0], *two[1]])
    )
    dropped = draw(st.lists(one, min_size=1, max_size=5))
    return numbers, [[user for user in range(numbers["N"]) if user not in users] for users in dropped]


@pytest.mark.requirement("HSA-18", "HSA-27")
@given(case=requested())
def test_a_user_answers_where_all_have_companions(node: Node, case: tuple[Answer, list[list[int]]]) -> None:
    numbers, requests = case
    answers = node.result("heterosag.request", {**numbers, "requests": requests})["answers"]
    assert [answer == {} for answer in answers] == expected_answers(node, numbers, requests)
    assert all(answer == {} or answer["reject"]["code"] == "below_threshold" for answer in answers)


OTHERS = list(range(9, 18))
ALL_NINE = list(range(9))


@pytest.mark.requirement("HSA-18", "HSA-27")
@pytest.mark.parametrize(
    ("requests", "answered"),
    [
        ([ALL_NINE, ALL_NINE], [True, True]),
        ([ALL_NINE, [0, 1, 2]], [True, True]),
        ([ALL_NINE, [0, 1, 2], [3, 4, 5]], [True, True, True]),
        ([ALL_NINE, [0, 1, 2], [2, 3, 4]], [True, True, False]),
        ([[0, 1, 2], ALL_NINE, [2, 3, 4]], [True, True, False]),  # all requests count, not the last two
        ([ALL_NINE, [0, 1]], [True, False]),  # fewer than three of a cell
        ([ALL_NINE, [0, *range(3, 9)]], [True, False]),  # 1 and 2 are two
        ([ALL_NINE, [0, *range(3, 9)], range(6)], [True, False, True]),  # what was refused is not looked back on
        ([[], [0, 1, 2]], [True, True]),
        ([range(6), range(6), ALL_NINE], [True, True, True]),  # 6 to 8 come together
        ([range(7), range(7), ALL_NINE], [True, True, False]),  # 7 and 8 do not count until they come
        ([[0, 1, 2], [0, 3, 4], [1, 2, 3, 5]], [True, False, False]),  # they tell x_4 - x_5 modulo 2
        ([[0, 1, 4, 5, 6, 7, 8], [1, 4, 6, 8], [0, 1, 8]], [True, True, False]),
    ],
)
def test_users_come_and_go_with_companions(
    node: Node, requests: Sequence[Sequence[int]], answered: Sequence[bool]
) -> None:
    """The first nine users are a subgroup; the others are always there."""
    numbers = {**TINY, "N": 18, "D": 14, "sizes": [9, 9], "subgroups": [1, 1]}
    params = {**numbers, "requests": [[*users, *OTHERS] for users in requests]}
    assert [answer == {} for answer in node.result("heterosag.request", params)["answers"]] == answered


@pytest.mark.requirement("ADP-38")
@pytest.mark.parametrize(
    ("requests", "code"),
    [
        ([[0, 1, 2, 12]], "unknown_peer"),
        ([[0, 1, 1, 2]], "duplicate_id"),
        ([[0, 2, 1, 3]], "inconsistent_sets"),
        ([[0, 1]], "below_threshold"),
        ([[0, 1, 2, 3], [4, 5, 6, 7]], "inconsistent_sets"),
        ([0], "malformed"),
    ],
)
def test_requests_that_no_user_gets_are_refused(node: Node, requests: object, code: str) -> None:
    assert node.code("heterosag.request", {**TINY, "requests": requests}) == code
    assert node.result("heterosag.request", {**TINY, "requests": []}) == {"answers": []}


# ----------------------------------------------------------------------------------------------------------------------
# Masks


def fields(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def word(number: int) -> bytes:
    return number.to_bytes(4, "little")


def bound(numbers: Answer) -> bytes:
    """Return the hash of the parameters that keys are bound to."""
    ends = [int.from_bytes(struct.pack(">d", end or 0.0)) for end in reals_of(numbers["range"])]  # zero has no sign
    pairs = [(name, numbers[name]) for name in ("N", "D", "T", "t", "d")]
    pairs += [("r1", ends[0]), ("r2", ends[1]), ("matrix", ["cyclic", "perfect"].index(numbers["matrix"]))]
    for users, subgroups, levels in zip(numbers["sizes"], numbers["subgroups"], numbers["levels"], strict=True):
        pairs += [("users", users), ("subgroups", subgroups), ("levels", levels)]
    return hashlib.sha256(fields(*(str(text).encode() for pair in pairs for text in pair))).digest()


def stream(
    numbers: Answer, secret: bytes, purpose: bytes, rest: Sequence[bytes], modulus: int, count: int
) -> list[int]:
    """Return elements of the mask that a secret gives."""
    info = fields(b"secagg-spec", word(1), b"heterosag", bound(numbers), word(7), purpose, *rest)
    key = HKDF(SHA256(), 32, bytes.fromhex(SESSION), info).derive(secret)
    octets = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(4096))
    words = [int.from_bytes(octets[i : i + 4], "little") for i in range(0, len(octets), 4)]
    return [one % modulus for one in words if one < 2**32 // modulus * modulus][:count]


def masked_by_hand(node: Node, numbers: Answer, user: int, arrived: Sequence[int], update: Sequence[int]) -> bytes:
    """Return the packed segments of a user, from the formulas of the page."""
    plan = node.result("segment.plan", numbers)
    subgroup = next(z for z, members in enumerate(plan["members"]) if user in members)
    packed, at = b"", 0
    for segment, length in enumerate(plan["lengths"]):
        row, modulus = plan["matrix"][segment], int(plan["moduli"][segment][subgroup])
        cell = [
            i for z, members in enumerate(plan["members"]) for i in members if cell_of(row, z) == cell_of(row, subgroup)
        ]
        total = list(update[at : at + length])
        masks = [(1, stream(numbers, drawn("seed"), b"self-mask", [word(segment), word(user)], modulus, length))]
        for peer in set(arrived) & set(cell):
            low, high = sorted((user, peer))
            rest = [word(segment), word(low), word(high), drawn(f"key {low}"), drawn(f"key {high}")]
            sign = 1 if user < peer else -1
            masks.append((sign, stream(numbers, drawn(("secret", low, high)), b"pairwise-mask", rest, modulus, length)))
        bits, number = (modulus - 1).bit_length(), 0
        for i in range(length):
            element = (total[i] + sum(sign * mask[i] for sign, mask in masks)) % modulus
            number |= element << bits * i
        packed += number.to_bytes((bits * length + 7) // 8, "little")
        at += length
    return packed


def mask_params(numbers: Answer, user: int, arrived: Sequence[int], update: Sequence[int]) -> dict[str, Any]:
    secrets = [[peer, drawn(("secret", *sorted((user, peer)))).hex()] for peer in arrived]
    keys = [drawn(f"key {i}").hex() for i in range(numbers["N"])]
    params = {**numbers, "session": SESSION, "round": "7", "user": user, "self_seed": drawn("seed").hex(), "keys": keys}
    return {**params, "secrets": secrets, "update": vector(update)}


@pytest.mark.requirement("HSA-14", "HSA-15", "HSA-22")
@pytest.mark.parametrize("numbers", SHAPES)
def test_masked_segments_are_those_of_the_page(node: Node, numbers: Answer) -> None:
    for user, step in ((0, 1), (numbers["N"] - 1, 1), (5, 2), (9, 3)):
        arrived = [i for i in range(numbers["N"] - 1, -1, -step) if i != user]
        update = [i % 2 for i in range(numbers["d"])]
        found = node.result("heterosag.mask", mask_params(numbers, user, arrived, update))["segments"]
        assert bytes.fromhex(found) == masked_by_hand(node, numbers, user, arrived, update)


@pytest.mark.requirement("HSA-13", "ADP-38")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"update": vector([0, 0, 1])}, "length_mismatch"),
        ({"update": vector([0, 0, 0, 2])}, "noncanonical"),
        ({"user": 12}, "unknown_peer"),
        ({"self_seed": "00"}, "length_mismatch"),
        ({"keys": []}, "length_mismatch"),
        ({"keys": ["00"] * 12}, "length_mismatch"),
        ({"secrets": [[1, "00"]]}, "length_mismatch"),
        ({"secrets": [[0, "00" * 32]]}, "unknown_peer"),
        ({"secrets": [[12, "00" * 32]]}, "unknown_peer"),
        ({"secrets": [[1, "00" * 32], [1, "00" * 32]]}, "duplicate_id"),
        ({"secrets": [[1, 2, "00" * 32]]}, "malformed"),
        ({"session": "00"}, "length_mismatch"),
        ({"round": str(2**32)}, "out_of_range"),
    ],
)
def test_what_a_user_cannot_mask_is_refused(node: Node, changes: Answer, code: str) -> None:
    params = mask_params(TINY, 0, [1, 2, 3], [0, 0, 0, 0])
    assert node.code("heterosag.mask", {**params, **changes}) == code


@pytest.mark.requirement("HSA-13")
def test_inputs_may_be_as_large_as_the_levels_of_their_cells(node: Node) -> None:
    """The third subgroup quantises with three levels where it is alone, and with the first group's two elsewhere."""
    for user, update, answered in ((8, [2, 2, 1, 1], True), (8, [0, 0, 2, 0], False), (0, [2, 0, 0, 0], False)):
        asked = node.ask("heterosag.mask", mask_params(TINY, user, [1, 2, 3], update))
        assert ("result" in asked) == answered


# ----------------------------------------------------------------------------------------------------------------------
# Unmasking


def unmask_params(
    node: Node, numbers: Answer, survivors: Sequence[int], updates: Sequence[Sequence[int]], absent: Sequence[int] = ()
) -> dict[str, Any]:
    """Return a request about masked segments of some users, whom all others but the absent ones shared masks with."""
    everybody = [i for i in range(numbers["N"]) if i not in absent]
    masks = [mask_params(numbers, i, [j for j in everybody if j != i], updates[i]) for i in survivors]
    seeds = [drawn(f"seed {i}").hex() for i in survivors]
    segments = [
        node.result("heterosag.mask", {**params, "self_seed": seed})["segments"]
        for params, seed in zip(masks, seeds, strict=True)
    ]
    dropped = [i for i in everybody if i not in survivors]
    secrets = [[i, j, drawn(("secret", *sorted((i, j)))).hex()] for j in survivors for i in dropped]
    params = {**numbers, "session": SESSION, "round": "7", "keys": masks[0]["keys"], "survivors": list(survivors)}
    return {**params, "segments": segments, "self_seeds": seeds, "secrets": secrets}


def sums_of(node: Node, numbers: Answer, survivors: Sequence[int], updates: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sums of all cells with survivors."""
    plan = node.result("segment.plan", numbers)
    sums, at = [], 0
    for row, length in zip(plan["matrix"], plan["lengths"], strict=True):
        for first in sorted({cell_of(row, z) for z in range(len(row))}):
            users = [i for z, members in enumerate(plan["members"]) for i in members if cell_of(row, z) == first]
            left = [updates[i][at : at + length] for i in users if i in survivors]
            sums += [[sum(column) for column in zip(*left, strict=True)]] if left else []
        at += length
    return sums


def bits(numbers: Answer) -> list[list[int]]:
    """Return inputs of zeros and ones."""
    return [[drawn((user, at))[0] % 2 for at in range(numbers["d"])] for user in range(numbers["N"])]


@pytest.mark.requirement("HSA-19")
@pytest.mark.parametrize(
    ("numbers", "dropped", "absent"),
    [
        (TINY, [], []),
        (TINY, [3, 8], []),
        (TINY, [4, 5, 6, 7], []),
        (TINY, [3, 5], [4, 6, 7]),
        (FIVE, [0, 1, 2, 3, 4, 9, 24], []),
        (UNEVEN, [4], [13]),
    ],
)
def test_sums_are_those_of_the_survivors(
    node: Node, numbers: Answer, dropped: Sequence[int], absent: Sequence[int]
) -> None:
    survivors = [i for i in range(numbers["N"]) if i not in (*dropped, *absent)]
    params = unmask_params(node, numbers, survivors, bits(numbers), absent)
    params["secrets"].reverse()
    found = [entries_of(total) for total in node.result("heterosag.unmask", params)["sums"]]
    assert found == sums_of(node, numbers, survivors, bits(numbers))


@pytest.mark.requirement("HSA-16", "HSA-17", "HSA-20", "ADP-38")
def test_what_the_server_cannot_unmask_is_refused(node: Node) -> None:
    survivors = [i for i in range(12) if i != 3]
    params = unmask_params(node, TINY, survivors, bits(TINY))
    first, *others = params["segments"]
    assert len(bytes.fromhex(first)) == 3  # two elements modulo 9, one modulo 9, and one modulo 5
    spoilt = bytearray.fromhex(first)
    spoilt[2] |= 8  # the fourth bit: only three are used
    seeds = params["self_seeds"][1:]
    secrets = params["secrets"]
    other = drawn("another").hex()
    faults: list[tuple[dict[str, Any], str]] = [
        ({"segments": [first + "00", *others]}, "malformed"),
        ({"segments": [first[:-2], *others]}, "malformed"),
        ({"segments": [spoilt.hex(), *others]}, "malformed"),
        ({"segments": ["09" + first[2:], *others]}, "malformed"),
        ({"segments": ["90" + first[2:], *others]}, "malformed"),
        ({"segments": others}, "length_mismatch"),
        ({"self_seeds": seeds}, "length_mismatch"),
        ({"self_seeds": ["00", *seeds]}, "length_mismatch"),
        ({"survivors": survivors[::-1]}, "inconsistent_sets"),
        ({"survivors": [0, *survivors[:-1]]}, "duplicate_id"),
        ({"survivors": [*survivors[:-1], 12]}, "unknown_peer"),
        ({"secrets": secrets[1:]}, "inconsistent_sets"),
        ({"secrets": [*secrets, secrets[0]]}, "duplicate_id"),
        ({"secrets": [*secrets, [0, 1, other]]}, "inconsistent_sets"),
        ({"secrets": [*secrets, [3, 3, other]]}, "inconsistent_sets"),
        ({"secrets": [*secrets, [12, 0, other]]}, "unknown_peer"),
        ({"secrets": [[3, 0, "00"], *secrets[1:]]}, "length_mismatch"),
        ({"keys": params["keys"][1:]}, "length_mismatch"),
    ]
    for changes, code in faults:
        assert node.code("heterosag.unmask", {**params, **changes}) == code, changes
    lonely = unmask_params(node, TINY, list(range(10)), bits(TINY))
    assert node.code("heterosag.unmask", lonely) == "below_threshold"
    nobody: dict[str, Any] = {"survivors": [], "segments": [], "self_seeds": [], "secrets": []}
    assert node.code("heterosag.unmask", {**params, **nobody}) == "below_threshold"


@pytest.mark.requirement("HSA-20")
def test_a_sum_that_no_survivors_have_is_refused(node: Node) -> None:
    for dropped, answered in (([3], False), ([], True)):
        survivors = [i for i in range(12) if i not in dropped]
        params = unmask_params(node, TINY, survivors, [[0, 0, 0, 0], *[[1, 1, 1, 1]] * 11])
        sent = bytearray.fromhex(params["segments"][0])
        for _ in range(2):  # modulo 9, of seven or eight users: first as many as they are, then one more
            sent[0] = sent[0] & 0xF0 | ((sent[0] & 0xF) + 1) % 9
            asked = node.ask("heterosag.unmask", {**params, "segments": [sent.hex(), *params["segments"][1:]]})
        assert ("result" in asked) == answered
        assert answered or asked["reject"]["code"] == "malformed"


# ----------------------------------------------------------------------------------------------------------------------
# Whole rounds


def round_params(numbers: Answer, inputs: Sequence[Sequence[float]], **changes: Any) -> dict[str, Any]:
    base = {**numbers, "clip": False, "x": [reals(row) for row in inputs], "method": "mean", "trim": 0}
    return {**base, "drop": {**NOBODY, **changes.pop("drop", {})}, **changes}


def values(numbers: Answer) -> list[list[float]]:
    """Return numbers that stand for themselves: all levels hold the ends of the range."""
    low, high = reals_of(numbers["range"])
    return [[high if bit else low for bit in row] for row in bits(numbers)]


@pytest.mark.slow
@pytest.mark.requirement("HSA-19", "HSA-21", "HSA-24")
@pytest.mark.parametrize(
    ("numbers", "drop"),
    [
        (TINY, {}),
        (TINY, {"masked_input": [3], "unmasking": [0, 1, 2, 4, 5, 6, 7]}),
        (TINY, {"advertise_keys": [4, 5], "share_keys": [6, 7]}),
        (FIVE, {"share_keys": [2], "masked_input": [7, 20]}),
        (UNEVEN, {"masked_input": [0, 1, 2, 3], "unmasking": [5]}),
    ],
)
def test_a_round_ends_with_the_mean_of_the_survivors(node: Node, numbers: Answer, drop: Answer) -> None:
    x = values(numbers)
    rand = {"rounding": [reals([0.5] * numbers["d"])] * numbers["N"]}
    found = node.result("heterosag.round", round_params(numbers, x, drop=drop), rand)
    left_out = {user for phase in PHASES[:-1] for user in drop.get(phase, [])}
    survivors = [i for i in range(numbers["N"]) if i not in left_out]
    assert found["contributors"] == survivors
    expected = [math.fsum(x[i][at] for i in survivors) / len(survivors) for at in range(numbers["d"])]
    assert reals_of(found["aggregate"]) == pytest.approx(expected, abs=1e-12)
    if numbers is TINY:  # its cells have too few levels to tell ends from ones only where there are two of them
        cells = sums_of(node, {**numbers, "levels": [2, 2]}, survivors, bits(numbers))
        assert len(found["sums"]) == len(cells)


@pytest.mark.slow
@pytest.mark.requirement("HSA-25", "HSA-26")
def test_a_round_with_an_outlier_ends_with_the_median(node: Node) -> None:
    x = [[1.0 if user == 7 else 0.0] * 20 for user in range(25)]
    numbers = {**FIVE, "range": reals([0, 1])}
    rand = {"rounding": [reals([0.5] * 20)] * 25}
    for method, trim in (("median", 0), ("trimmed", 1)):
        found = node.result("heterosag.round", round_params(numbers, x, method=method, trim=trim), rand)
        assert reals_of(found["aggregate"]) == [0.0] * 20
    assert node.code("heterosag.round", round_params(numbers, x, method="trimmed", trim=2), rand) == "bad_param"


@pytest.mark.slow
@pytest.mark.requirement("HSA-07", "HSA-09", "HSA-21", "ADP-16", "ADP-17", "ADP-39")
def test_rounds_that_do_not_end_are_refused(node: Node) -> None:
    x = values(TINY)
    rounding = [reals([0.5] * 4)] * 12
    faults: list[tuple[dict[str, Any], str]] = [
        ({"drop": {"masked_input": [0, 1]}, "D": 2}, "below_threshold"),
        ({"drop": {"unmasking": list(range(10))}}, "below_threshold"),
        ({"drop": {"advertise_keys": list(range(10))}}, "below_threshold"),
        ({"drop": {"share_keys": [12]}}, "unknown_peer"),
        ({"drop": {"share_keys": [1], "unmasking": [1]}}, "duplicate_id"),
        ({"drop": {"recover": []}}, "malformed"),
        ({"method": "mode"}, "bad_param"),
        ({"trim": 1}, "bad_param"),
        ({"x": [reals([2, 0, 0, 0]), *map(reals, x[1:])]}, "out_of_range"),
        ({"x": [reals(row) for row in x[1:]]}, "length_mismatch"),
        ({"x": [reals(row[1:]) for row in x]}, "length_mismatch"),
    ]
    for changes, code in faults:
        assert node.code("heterosag.round", round_params(TINY, x, **changes), {"rounding": rounding}) == code, changes
    late = round_params(TINY, x, drop={"advertise_keys": [0]})
    assert node.code("heterosag.round", late, {"rounding": [reals([1, 0, 0, 0]), *rounding[1:]]}) == "out_of_range"
    clipped = {**round_params(TINY, x, clip=True), "x": [reals([math.inf, 0, 0, -9]), *map(reals, x[1:])]}
    node.result("heterosag.round", clipped, {"rounding": rounding})


# ----------------------------------------------------------------------------------------------------------------------
# Parties


def sample(source: SeededSource, t: int) -> Randomness:
    """Return what a user samples."""
    keys = {name: source.take(32) for name in ("sealing_key", "masking_key", "self_seed")}
    numbers = ("key_coefficients", "seed_coefficients")
    return {**keys, **{name: [int.from_bytes(source.take(65), "little") for _ in range(t - 1)] for name in numbers}}


def played(
    numbers: Answer, seed: bytes, left_out: Mapping[str, Sequence[int]]
) -> tuple[Network, Mapping[int, Randomness], Any]:
    """Let the reference play a round; the last entry is its refusal."""
    parameters = of_reference(numbers)
    sampled = {user: sample(SeededSource(seed, f"user {user}"), parameters.t) for user in range(parameters.N)}
    updates = np.array(bits(numbers), dtype=np.uint64)
    network = heterosag.open_round(parameters, updates, session=bytes.fromhex(SESSION), round=7)
    try:
        run_synchronous(network, {phase: frozenset(left_out.get(phase, ())) for phase in PHASES}, sampled)
    except ProtocolError as error:
        return network, sampled, error
    return network, sampled, None


def script(
    numbers: Answer, user: int, steps: Sequence[tuple[str, Sequence[str]]], past: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return what a party is asked, in one request."""
    params = {
        **numbers,
        "session": SESSION,
        "round": "7",
        "steps": [{"phase": name, "inbox": inbox} for name, inbox in steps],
    }
    own = {} if user == SERVER else {"user": user, "update": vector(bits(numbers)[user])}
    return {**params, "past": list(past), **own}


def sampled_values(sampled: Randomness) -> dict[str, str]:
    """Return what a user samples, as a request has it."""
    return {
        name: value.hex() if isinstance(value, bytes) else b"".join(int(c).to_bytes(66, "little") for c in value).hex()
        for name, value in sampled.items()
    }


def hexes(messages: Sequence[Message]) -> list[str]:
    return [encode(message).hex() for message in messages]


def inboxes(network: Network, party: int) -> list[tuple[str, list[str]]]:
    return [(event.step.phase, hexes(event.received)) for event in network.transcript if event.party == party]


def answered(node: Node, sampled: Mapping[int, Randomness], party: int, asked: Answer) -> list[Any]:
    name, rand = ("server", {}) if party == SERVER else ("user", sampled_values(sampled[party]))
    steps: list[Any] = node.result(f"heterosag.{name}", asked, rand)["steps"]
    return steps


@pytest.mark.slow
@pytest.mark.requirement("HSA-14", "HSA-15", "HSA-19", "HSA-21", "HSA-22")
@settings(max_examples=settings().max_examples if WHOLE else min(10, settings().max_examples))
@given(
    numbers=st.sampled_from([TINY, {**TINY, "matrix": "cyclic", "D": 5}, {**UNEVEN, "t": 4, "D": 9}]),
    left_out=st.dictionaries(st.integers(0, 21), st.sampled_from(PHASES), max_size=5),
    seed=st.binary(min_size=4, max_size=4),
)
def test_every_party_sends_the_same_bytes(
    node: Node, numbers: Answer, left_out: Mapping[int, str], seed: bytes
) -> None:
    """Replay all parties of a round of the reference, whoever drops out."""
    drop = {phase: [user for user, at in left_out.items() if at == phase and user < numbers["N"]] for phase in PHASES}
    network, sampled, refusal = played(numbers, seed, drop)
    for party in sorted({event.party for event in network.transcript}):
        events = [event for event in network.transcript if event.party == party]
        entries = answered(node, sampled, party, script(numbers, party, inboxes(network, party)))
        for event, entry in zip(events, entries, strict=True):
            assert sorted(entry["outbox"]) == sorted(hexes(event.sent)), (party, event.step.phase)
    steps = inboxes(network, SERVER)
    if refusal is not None:
        steps.append((PHASES[len(steps)], hexes(network.waiting.get(SERVER, []))))
    last = answered(node, sampled, SERVER, script(numbers, SERVER, steps))[-1]
    if refusal is not None:
        assert last["reject"]["code"] == reject_code(refusal)
        return
    survivors = [i for i in range(numbers["N"]) if i not in {u for phase in PHASES[:-1] for u in drop[phase]}]
    expected = [entry for total in sums_of(node, numbers, survivors, bits(numbers)) for entry in total]
    assert entries_of(last["aggregate"]) == expected


@pytest.fixture(scope="module")
def finished() -> tuple[Network, Mapping[int, Randomness]]:
    """A round in which user 3 drops out late."""
    network, sampled, refusal = played(TINY, b"done", {"masked_input": [3]})
    assert refusal is None
    return network, sampled


@pytest.mark.slow
@pytest.mark.requirement("HSA-16", "SAG-37", "ADP-21")
def test_the_server_refuses_wrong_segments(node: Node, finished: tuple[Network, Mapping[int, Randomness]]) -> None:
    network, sampled = finished
    steps = inboxes(network, SERVER)
    inbox = steps[2][1]
    found = node.decode(MASKED_SEGMENTS, inbox[0])
    right = bytes.fromhex(found["segments"])
    spoilt = right[:2] + bytes([right[2] | 0x80])
    faults: list[tuple[dict[str, Any], str]] = [
        ({"segments": found["segments"] + "00"}, "malformed"),
        ({"segments": found["segments"][2:]}, "malformed"),
        ({"segments": spoilt.hex()}, "malformed"),
        ({"segments": "ff" * 3}, "malformed"),
        ({"segments": f"{right[0] & 0xF0 | 9:02x}" + found["segments"][2:]}, "malformed"),
        ({"neighbours": found["neighbours"][1:]}, "inconsistent_sets"),
    ]
    for changes, code in faults:
        wrong = [node.altered(MASKED_SEGMENTS, inbox[0], **changes), *inbox[1:]]
        tried = [*steps[:2], (steps[2][0], wrong), *steps[2:]]
        entries = answered(node, sampled, SERVER, script(TINY, SERVER, tried))
        assert (entries[2]["reject"]["code"], entries[2]["reject"]["blamed"]) == (code, [found["sender"]]), changes
        assert "aggregate" in entries[-1]


@pytest.mark.requirement("HSA-17", "ERR-01")
def test_the_server_waits_for_more_of_a_cell(node: Node, finished: tuple[Network, Mapping[int, Randomness]]) -> None:
    network, sampled = finished
    steps = inboxes(network, SERVER)
    few = [one for one in steps[2][1] if node.decode(MASKED_SEGMENTS, one)["sender"] != 0]
    entries = answered(node, sampled, SERVER, script(TINY, SERVER, [*steps[:2], (steps[2][0], few), *steps[2:]]))
    assert entries[2]["reject"]["code"] == "below_threshold"
    assert "aggregate" in entries[-1]


EVERYBODY = list(range(12))
PASTS: list[tuple[list[list[int]], bool]] = [
    ([EVERYBODY], False),
    ([[i for i in EVERYBODY if i != 3]] * 2, True),
    ([[0, 1, 2, 8, 9, 10, 11]], True),
    ([[0, 1, 2, 3, 8, 9, 10, 11]], False),
    ([list(range(4, 12))], True),  # without the first subgroup: whom the sums differ by are 0, 1 and 2
    ([[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]], False),
]


@pytest.mark.requirement("HSA-28", "ERR-01")
@pytest.mark.parametrize(("past", "sent"), PASTS)
def test_the_server_looks_back_before_it_asks(
    node: Node, finished: tuple[Network, Mapping[int, Randomness]], past: list[list[int]], sent: bool
) -> None:
    """User 3 drops out, and the inputs of the others come."""
    network, sampled = finished
    entries = answered(node, sampled, SERVER, script(TINY, SERVER, inboxes(network, SERVER), past))
    if sent:
        assert "aggregate" in entries[3]
        assert len(entries[2]["outbox"]) == 11
        return
    assert entries[2]["reject"]["code"] == "below_threshold"
    assert entries[3]["reject"]["code"] == "wrong_phase"


@pytest.mark.slow
@pytest.mark.requirement("HSA-28", "ADP-38")
def test_a_server_has_a_past_of_requests(node: Node, finished: tuple[Network, Mapping[int, Randomness]]) -> None:
    network, _ = finished
    params = script(TINY, SERVER, inboxes(network, SERVER))
    faults: list[tuple[Any, str]] = [
        ([[0, 1, 2, 3, 5, *range(8, 12)]], "below_threshold"),
        ([[]], "below_threshold"),
        ([[4, 5, 6, 7, 7]], "duplicate_id"),
        ([[4, 6, 5, 7]], "inconsistent_sets"),
        ([[4, 5, 6, 12]], "unknown_peer"),
        ([4, 5, 6], "malformed"),
    ]
    for past, code in faults:
        assert node.code("heterosag.server", {**params, "past": past}) == code, past
    del params["past"]
    assert node.code("heterosag.server", params) == "malformed"


@pytest.mark.slow
@pytest.mark.requirement("HSA-18", "HSA-27", "ERR-01")
def test_a_user_refuses_requests_that_tell_of_few(
    node: Node, finished: tuple[Network, Mapping[int, Randomness]]
) -> None:
    network, sampled = finished
    steps = inboxes(network, 5)
    request = steps[3][1][0]
    lonely = node.altered(518, request, survivors=[i for i in range(12) if i not in (0, 3)], dropped=[0, 3])
    entries = answered(node, sampled, 5, script(TINY, 5, [*steps[:3], ("unmasking", [lonely]), *steps[3:]]))
    assert [entries[3]["reject"]["code"], "outbox" in entries[4]] == ["below_threshold", True]
    everybody = list(range(12))
    pasts = [
        ([everybody], False),
        ([[i for i in everybody if i != 3]] * 2, True),
        ([list(range(4, 12))], True),  # without the first subgroup: whom the sums differ by are 0, 1 and 2
        ([[0, 1, 2, 3, 5, *range(8, 12)]], None),
        ([[4, 6, 7, 8, 9, 10, 11]], None),
        ([[4, 5, 6, 7, 7]], None),
        ([[4, 5, 6, 12]], None),
    ]
    for past, answered_ in pasts:
        asked = node.ask("heterosag.user", script(TINY, 5, steps, past), sampled_values(sampled[5]))
        assert ("result" in asked) == (answered_ is not None), past
        if answered_ is not None:
            assert ("outbox" in asked["result"]["steps"][3]) == answered_, past


@pytest.mark.slow
@pytest.mark.requirement("HSA-13", "ADP-26", "ADP-29")
def test_sessions_are_opened_and_held_to_the_text(
    node: Node, finished: tuple[Network, Mapping[int, Randomness]]
) -> None:
    network, sampled = finished
    setup = {"user": 5, "past": [], "update": vector(bits(TINY)[5])}
    params = {
        "handle": "one", "protocol": "heterosag", "role": "user", "numbers": TINY, "session": SESSION, "round": "7",
        "setup": setup,
    }  # fmt: skip
    rand = sampled_values(sampled[5])
    faults: list[tuple[dict[str, Any], str]] = [
        ({"setup": {**setup, "update": vector([2] * 4)}}, "noncanonical"),
        ({"setup": {**setup, "update": vector([0] * 5)}}, "length_mismatch"),
        ({"setup": {**setup, "order": list(range(12))}}, "malformed"),
        ({"numbers": {**TINY, "R": "8"}}, "malformed"),
        ({"numbers": {**TINY, "t": 2}}, "bad_param"),
    ]
    for changes, code in faults:
        assert node.code("session.new", {**params, **changes}, rand) == code, changes
    node.result("session.new", params, rand)
    for event in (event for event in network.transcript if event.party == 5):
        asked = {"handle": "one", "phase": event.step.phase, "inbox": hexes(event.received)}
        assert sorted(node.result("session.step", asked)["outbox"]) == sorted(hexes(event.sent))
    node.result("session.free", {"handle": "one"})


@pytest.mark.slow
@pytest.mark.requirement("MSG-01")
def test_no_authority_stands_in_messages_of_heterosag(node: Node) -> None:
    params = {
        "type": MASKED_SEGMENTS, "session": SESSION, "round": "7", "sender": 1, "receiver": "server",
        "fields": {"neighbours": [0, 2], "segments": "0102"},
    }  # fmt: skip
    encoded = node.result("message.encode", params)["bytes"]
    assert encoded.endswith("02000000" + "00000000" + "02000000" + "02000000" + "0102")
    assert node.code("message.encode", {**params, "receiver": "authority"}) == "malformed"
