"""The implementation of Multi-RoundSecAgg in JavaScript: who is chosen, what users refuse, and what a log tells.

It was written from the text alone. Expected values are made here in another way: by listing all sets, by taking the
draws one after the other as the page says, with python-flint, or with SHA-256 of bytes that are put together here.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.node import NODE, Answer, Node, running

OPERATIONS = ("select.family", "select.batch", "select.session", "select.complete", "select.request", "audit.privacy")
SESSION = bytes(range(16)).hex()
TINY = {"N": 12, "K": 6, "T": 3}
DEFAULT = {"N": 24, "K": 12, "T": 4}
PAPER = {"N": 120, "K": 12, "T": 6}

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """The other implementation, running."""
    with running() as other:
        yield other


@pytest.fixture(scope="module")
def drawing() -> Iterator[Node]:
    """The same, drawing on its own."""
    with running("--draw") as other:
        yield other


def batch(b: int, T: int) -> list[int]:
    return list(range(b * T, b * T + T))


def users_of(batches: Sequence[int], T: int) -> list[int]:
    return [user for b in sorted(batches) for user in batch(b, T)]


def family_of(N: int, K: int, T: int) -> list[list[int]]:
    """Return all unions of K/T batches."""
    return [users_of(batches, T) for batches in itertools.combinations(range(N // T), K // T)]


@st.composite
def sizes(draw: st.DrawFn, most_batches: int = 6, most_users: int = 4) -> dict[str, int]:
    """N, K and T of a few batches."""
    T, batches = draw(st.integers(1, most_users)), draw(st.integers(1, most_batches))
    return {"N": T * batches, "K": T * draw(st.integers(1, batches)), "T": T}


WRONG_SIZES = [
    {"N": 13}, {"K": 7}, {"N": 0}, {"K": 0}, {"T": 0}, {"T": -3}, {"N": -12}, {"K": 15}, {"T": 4}, {"T": 9, "N": 18},
    {"T": 12, "N": 12}, {"N": 2**31}, {"N": 3 * 2**31},
]  # fmt: skip


@pytest.mark.requirement("ADP-07", "ADP-08")
def test_hello_has_the_operations(node: Node, drawing: Node) -> None:
    for other, declared in ((node, {}), (drawing, {"randomness": "none"})):
        found = other.result("hello", {"protocol": [1, 0]})["operations"]
        assert [found[name] for name in OPERATIONS] == [
            declared if name == "select.batch" else {} for name in OPERATIONS
        ]


# ----------------------------------------------------------------------------------------------------------------------
# The family


@pytest.mark.requirement("MRA-02")
def test_the_families_of_the_page(node: Node) -> None:
    found = node.result("select.family", TINY)
    assert found == {"size": "6", "sets": family_of(12, 6, 3)}
    assert node.result("select.family", DEFAULT)["size"] == "20"
    assert node.result("select.family", PAPER)["size"] == "190"
    assert node.result("select.family", {**PAPER, "T": 3}) == {"size": "91390", "sets": None}
    assert node.result("select.family", {**PAPER, "T": 12})["sets"] == [batch(b, 12) for b in range(10)]


@pytest.mark.requirement("MRA-02")
@given(numbers=sizes(most_batches=9))
def test_a_family_is_all_unions_of_batches(node: Node, numbers: dict[str, int]) -> None:
    found, expected = node.result("select.family", numbers), family_of(**numbers)
    assert found["size"] == str(len(expected))
    assert sorted(found["sets"]) == sorted(expected)


@pytest.mark.requirement("MRA-02")
def test_a_family_of_more_than_a_thousand_sets_is_not_listed(node: Node) -> None:
    for batches, chosen in ((1000, 1), (44, 2)):
        found = node.result("select.family", {"N": 2 * batches, "K": 2 * chosen, "T": 2})
        assert found["size"] == str(len(found["sets"])) == str(math.comb(batches, chosen))
    assert node.result("select.family", {"N": 2002, "K": 2, "T": 2}) == {"size": "1001", "sets": None}
    large = node.result("select.family", {"N": 2**31 - 2, "K": 200, "T": 2})
    assert large == {"size": str(math.comb(2**30 - 1, 100)), "sets": None}


@pytest.mark.requirement("MRA-01", "MRA-17")
@pytest.mark.parametrize("changes", WRONG_SIZES)
def test_sizes_that_make_no_batches_are_refused(node: Node, changes: dict[str, int]) -> None:
    wrong = {**TINY, **changes}
    batched = {"strategy": "uniform", "frequencies": [0] * 12, "available": list(range(6))}
    assert node.code("select.family", wrong) == "bad_param"
    assert node.code("select.batch", {**wrong, **batched}, {"draws": [0, 0]}) == "bad_param"
    asked = {"session": SESSION, "round": "7", "chosen": list(range(6))}
    assert node.code("select.session", {**wrong, **asked}) == "bad_param"
    assert node.code("select.complete", {**wrong, "c": 1, "arrived": [0, 1, 2]}) == "bad_param"
    request = {"c": 1, "user": 0, "chosen": list(range(6)), "survivors": [0, 1, 2]}
    assert node.code("select.request", {**wrong, **request}) == "bad_param"


# ----------------------------------------------------------------------------------------------------------------------
# Choosing


class Draws:
    """Draws that are taken one after the other, and that remember their bounds."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose
        self.taken: list[int] = []
        self.bounds: list[int] = []

    def items(self, items: Sequence[int], m: int) -> list[int]:
        """Return m items, drawn as section 3 says."""
        places = sorted(items)
        for s in range(m):
            self.bounds.append(len(places) - s)
            self.taken.append(self.choose(self.bounds[-1]))
            other = s + self.taken[-1]
            places[s], places[other] = places[other], places[s]
        return places[:m]


def complete_of(asked: Answer) -> list[int]:
    return [b for b in range(asked["N"] // asked["T"]) if set(batch(b, asked["T"])) <= set(asked["available"])]


def weighted(asked: Answer, draws: Draws) -> list[int]:
    chosen: list[int] = []
    for least in sorted(set(asked["frequencies"])):
        equal = [i for i in asked["available"] if asked["frequencies"][i] == least]
        if len(chosen) + len(equal) > asked["K"]:
            return chosen + draws.items(equal, asked["K"] - len(chosen))
        chosen += equal
    return chosen


def fair(asked: Answer, draws: Draws) -> list[int]:
    complete, T = complete_of(asked), asked["T"]
    frequency = {b: min(asked["frequencies"][i] for i in batch(b, T)) for b in complete}
    [first] = draws.items([b for b in complete if frequency[b] == min(frequency.values())], 1)
    return [first, *draws.items([b for b in complete if b != first], asked["K"] // T - 1)]


def chosen_by(asked: Answer, draws: Draws) -> list[int] | None:
    """Return the choice of the table of section 3."""
    K, T, strategy = asked["K"], asked["T"], asked["strategy"]
    if strategy in ("random", "weighted"):
        if len(asked["available"]) < K:
            return None
        return sorted(weighted(asked, draws) if strategy == "weighted" else draws.items(asked["available"], K))
    if len(complete_of(asked)) < K // T:
        return None
    few = fair(asked, draws) if strategy in ("fair", "partition") else draws.items(complete_of(asked), K // T)
    return users_of(few, T)


def fits(strategy: str, numbers: Answer) -> bool:
    if strategy in ("random", "weighted"):
        return bool(numbers["T"] == 1)
    return strategy != "partition" or numbers["T"] == numbers["K"]


STRATEGIES = ("random", "weighted", "partition", "uniform", "fair")


@st.composite
def choices(draw: st.DrawFn) -> dict[str, Any]:
    """What is asked for a choice; most users are available, and their frequencies are of a few values."""
    strategy = draw(st.sampled_from(STRATEGIES))
    numbers = draw(sizes(most_users=1 if strategy in ("random", "weighted") else 3))
    if strategy == "partition":
        numbers["K"] = numbers["T"]
    dropped = draw(st.sets(st.integers(0, numbers["N"] - 1), max_size=3))
    available = draw(st.permutations([i for i in range(numbers["N"]) if i not in dropped]))
    frequency = st.sampled_from([0, 1, 2, 10, 2**32 - 1])
    frequencies = draw(st.lists(frequency, min_size=numbers["N"], max_size=numbers["N"]))
    return {**numbers, "strategy": strategy, "frequencies": frequencies, "available": available}


@pytest.mark.requirement("MRA-03", "MRA-04", "MRA-05", "MRA-06", "MRA-08")
@given(asked=choices(), data=st.data())
def test_choices_are_those_of_the_table(node: Node, asked: dict[str, Any], data: st.DataObject) -> None:
    draws = Draws(lambda bound: data.draw(st.integers(0, bound - 1)))
    expected = chosen_by(asked, draws)
    given = list(draws.taken)
    assert node.result("select.batch", asked, {"draws": given}) == {"chosen": expected}
    assert expected is None or expected in family_of(asked["N"], asked["K"], asked["T"])
    for wrong in ([*given, 0], given[:-1], *(wrong_draws(given, draws.bounds, at) for at in range(len(given)))):
        if wrong != given:
            assert node.code("select.batch", asked, {"draws": wrong}) in ("length_mismatch", "out_of_range")


def wrong_draws(given: list[int], bounds: Sequence[int], at: int) -> list[int]:
    """Return draws of which one is out of range: above it, and below for every other one."""
    return [*given[:at], -1 if at & 1 else bounds[at], *given[at + 1 :]]


def ask_of(strategy: str, frequencies: str, available: str, **numbers: int) -> dict[str, Any]:
    """Return what is asked for a choice; frequencies: a digit for each user, available: an x for each that is."""
    users = [i for i, mark in enumerate(available) if mark == "x"]
    return {**numbers, "strategy": strategy, "frequencies": [int(f) for f in frequencies], "available": users}


WORKED = [
    (ask_of("random", "00000", "xx.xx", N=5, K=2, T=1), [1, 0], [0, 1]),
    (ask_of("random", "00000", "xx.xx", N=5, K=2, T=1), [3, 2], [0, 4]),
    (ask_of("random", "00000", "x...x", N=5, K=3, T=1), [], None),
    (ask_of("weighted", "21021", "xxxxx", N=5, K=3, T=1), [], [1, 2, 4]),
    (ask_of("weighted", "21021", "xxxxx", N=5, K=2, T=1), [1], [2, 4]),
    (ask_of("weighted", "21021", "xx.xx", N=5, K=3, T=1), [1], [1, 3, 4]),
    (ask_of("weighted", "21021", "xxxxx", N=5, K=5, T=1), [], [0, 1, 2, 3, 4]),
    (ask_of("partition", "110011", "xxxxxx", N=6, K=2, T=2), [0], [2, 3]),
    (ask_of("partition", "110011", "xx.xxx", N=6, K=2, T=2), [1], [4, 5]),
    (ask_of("partition", "110011", "x..xx.", N=6, K=2, T=2), [], None),
    (ask_of("uniform", "000000", "xxxxxx", N=6, K=4, T=2), [2, 1], [0, 1, 4, 5]),
    (ask_of("uniform", "990000", "xxxx.x", N=6, K=4, T=2), [1, 0], [0, 1, 2, 3]),
    (ask_of("uniform", "000000", "xxx..x", N=6, K=4, T=2), [], None),
    (ask_of("fair", "910045", "xxxxxx", N=6, K=4, T=2), [0, 1], [2, 3, 4, 5]),  # 0, the least, is of batch 1
    (ask_of("fair", "910045", "xx.xxx", N=6, K=4, T=2), [0, 0], [0, 1, 4, 5]),  # batch 1 is not complete
    (ask_of("fair", "113111", "xxxxxx", N=6, K=2, T=2), [2], [4, 5]),  # all batches have the least frequency
]


@pytest.mark.requirement("MRA-04", "MRA-05", "MRA-08")
@pytest.mark.parametrize(("asked", "draws", "chosen"), WORKED)
def test_choices_that_were_made_by_hand(
    node: Node, asked: dict[str, Any], draws: list[int], chosen: list[int] | None
) -> None:
    assert node.result("select.batch", asked, {"draws": draws}) == {"chosen": chosen}
    assert node.code("select.batch", asked, {"draws": [*draws, 0]}) == "length_mismatch"
    if draws:
        assert node.code("select.batch", asked, {"draws": draws[:-1]}) == "length_mismatch"


@pytest.mark.requirement("MRA-09", "ADP-40", "MRA-08", "RND-04")
def test_choices_that_do_not_fit_are_refused(node: Node) -> None:
    asked: dict[str, Any] = {**TINY, "strategy": "fair", "frequencies": [0] * 12, "available": list(range(12))}
    good = {"draws": [0, 0]}
    node.result("select.batch", asked, good)
    faults: list[tuple[dict[str, Any], str]] = [
        ({"strategy": "random"}, "bad_param"),
        ({"strategy": "weighted"}, "bad_param"),
        ({"strategy": "partition"}, "bad_param"),
        ({"strategy": "Fair"}, "bad_param"),
        ({"strategy": ""}, "bad_param"),
        ({"strategy": "toString"}, "bad_param"),
        ({"strategy": 4}, "malformed"),
        ({"frequencies": [0] * 11}, "length_mismatch"),
        ({"frequencies": [0] * 13}, "length_mismatch"),
        ({"frequencies": [0] * 11 + [-1]}, "out_of_range"),
        ({"frequencies": [2**32] + [0] * 11}, "out_of_range"),
        ({"frequencies": [0] * 11 + ["0"]}, "malformed"),
        ({"available": [0, 1, 2, 2]}, "duplicate_id"),
        ({"available": [12]}, "unknown_peer"),
        ({"available": [-1]}, "unknown_peer"),
        ({"available": "012"}, "malformed"),
    ]
    for changes, code in faults:
        assert node.code("select.batch", {**asked, **changes}, good) == code, changes
    node.result("select.batch", {**asked, "frequencies": [2**32 - 1] * 12}, good)
    sampled: list[tuple[Any, str]] = [
        (None, "malformed"),
        ({"draws": [0, 0], "seed": "00"}, "malformed"),
        ({"draws": [0, True]}, "malformed"),
        ({"draws": [0, 1.5]}, "malformed"),
        ({"draws": "00000000"}, "malformed"),
        ({"draws": [4, 0]}, "out_of_range"),
        ({"draws": [0, 3]}, "out_of_range"),
        ({"draws": [0, 2**40]}, "out_of_range"),
    ]
    for rand, code in sampled:
        assert node.code("select.batch", asked, rand) == code, rand


# ----------------------------------------------------------------------------------------------------------------------
# Choices whose draws are not given

SAMPLES = 1500
FALSE_ALARM = 1e-7
"""The most that a right implementation fails `is_likely` in all tests here together: below 1e-6."""


def shares_of(asked: dict[str, Any]) -> dict[tuple[int, ...], Fraction]:
    """Return how likely each choice is, from all draws."""
    found: Counter[tuple[int, ...]] = Counter()
    bounds = Draws(lambda _: 0)
    assert chosen_by(asked, bounds) is not None
    everything = list(itertools.product(*(range(bound) for bound in bounds.bounds)))
    for draws in everything:
        found[tuple(chosen_by(asked, Draws(taking(draws))) or ())] += 1
    return {chosen: Fraction(count, len(everything)) for chosen, count in found.items()}


def taking(draws: Sequence[int]) -> Callable[[int], int]:
    left = list(draws)
    return lambda _: left.pop(0)


def is_likely(counts: Counter[Any], shares: dict[Any, Fraction], cells: int) -> bool:
    """Return whether counts fit; a cell fails with at most FALSE_ALARM/cells, by Chernoff's bound for either side."""
    total = sum(counts.values())
    if set(counts) - set(shares):
        return False
    limit = math.log(2 * cells / FALSE_ALARM)
    return all(total * divergence(counts[cell] / total, float(share)) <= limit for cell, share in shares.items())


def divergence(a: float, p: float) -> float:
    """Return D(a||p): of n trials of probability p, n*a or more, or n*a or fewer, come with at most exp(-n D)."""
    terms = [(a, p), (1 - a, 1 - p)]
    return sum(x * math.log(x / y) if x > 0 and y > 0 else 0.0 for x, y in terms) if p < 1 else 0.0


SAMPLED = [
    ask_of("uniform", "000000000000", "xxxxxxxxxxxx", **TINY),
    ask_of("uniform", "000000000000", "xxx.xxxxxxxx", N=12, K=4, T=2),
    ask_of("random", "000000", "xxx.xx", N=6, K=3, T=1),
    ask_of("weighted", "012122", "xxxxxx", N=6, K=4, T=1),
    ask_of("weighted", "000000", "xxxxxx", N=6, K=2, T=1),
    ask_of("partition", "1100110011", "xxxxxxxxxx", N=10, K=2, T=2),
    ask_of("fair", "110022001122", "xxxxxxxxxxxx", N=12, K=6, T=2),
    ask_of("fair", "000000", "xxxxxx", N=6, K=4, T=2),
]
CELLS = sum(len(shares_of(asked)) for asked in SAMPLED) + 9


@pytest.mark.requirement("MRA-07", "MRA-03")
@pytest.mark.parametrize("asked", SAMPLED)
def test_choices_of_its_own_are_as_likely_as_draws_make_them(drawing: Node, asked: dict[str, Any]) -> None:
    shares = shares_of(asked)
    counts = Counter(tuple(drawing.result("select.batch", asked)["chosen"]) for _ in range(SAMPLES))
    assert is_likely(counts, shares, CELLS), counts


@pytest.mark.requirement("MRA-07")
def test_choices_one_after_the_other_are_independent(drawing: Node) -> None:
    asked = ask_of("random", "000", "xxx", N=3, K=1, T=1)
    chosen = [tuple(drawing.result("select.batch", asked)["chosen"]) for _ in range(2 * SAMPLES)]
    shares = {pair: Fraction(1, 9) for pair in itertools.product([(0,), (1,), (2,)], repeat=2)}
    assert is_likely(Counter(zip(chosen[::2], chosen[1::2], strict=True)), shares, CELLS)


@pytest.mark.requirement("MRA-04", "MRA-07", "RND-04")
def test_who_draws_on_its_own_takes_no_draws(drawing: Node) -> None:
    assert drawing.code("select.batch", SAMPLED[0], {"draws": [0, 0]}) == "malformed"
    nobody = {**SAMPLED[0], "available": [0, 1, 2, 3, 4, 6, 7]}
    assert drawing.result("select.batch", nobody) == {"chosen": None}
    assert drawing.code("select.batch", {**SAMPLED[0], "strategy": "random"}) == "bad_param"


def test_a_choice_that_is_not_uniform_is_found() -> None:
    """The bound sees counts that are off by a fifth or so, and lets the expected ones pass."""
    shares = shares_of(SAMPLED[0])
    even = Counter(dict.fromkeys(shares, SAMPLES // 6))
    assert is_likely(even, shares, CELLS)
    one, other, *_ = shares
    assert not is_likely(even + Counter({one: 100}) - Counter({other: 100}), shares, CELLS)
    assert not is_likely(Counter({**even, (0, 1): 1}), shares, CELLS)


# ----------------------------------------------------------------------------------------------------------------------
# A session


def session_of(numbers: Answer, session: str, round: int, chosen: Sequence[int]) -> str:
    """Return the session id of a round, from the bytes of MRA-19."""
    integers = [struct.pack("<I", n) for n in (round, numbers["N"], numbers["K"], numbers["T"], *chosen)]
    parts = [b"secagg-spec", b"multi-round", bytes.fromhex(session), *integers]
    hashed = hashlib.sha256(b"".join(struct.pack("<I", len(part)) + part for part in parts))
    return hashed.digest()[:16].hex()


@pytest.mark.requirement("MRA-19")
@given(numbers=sizes(), session=st.binary(min_size=16, max_size=16), round=st.integers(0, 2**32 - 1), data=st.data())
def test_the_session_id_of_a_round_is_bound_to_its_choice(
    node: Node, numbers: dict[str, int], session: bytes, round: int, data: st.DataObject
) -> None:
    chosen = data.draw(st.sampled_from(family_of(**numbers)))
    asked = {**numbers, "session": session.hex(), "round": str(round), "chosen": chosen}
    expected = session_of(numbers, session.hex(), round, chosen)
    assert node.result("select.session", asked) == {"session": expected}


@pytest.mark.requirement("MRA-19", "MRA-20")
def test_session_ids_that_are_refused(node: Node) -> None:
    asked: dict[str, Any] = {**TINY, "session": SESSION, "round": "7", "chosen": [0, 1, 2, 9, 10, 11]}
    hashed = (
        "0b000000" + b"secagg-spec".hex() + "0b000000" + b"multi-round".hex() + "10000000" + SESSION
        + "".join("04000000" + f"{number:02x}000000" for number in (7, 12, 6, 3, 0, 1, 2, 9, 10, 11))
    )  # fmt: skip
    expected = hashlib.sha256(bytes.fromhex(hashed)).hexdigest()[:32]
    assert node.result("select.session", asked) == {"session": expected}
    faults: list[tuple[dict[str, Any], str]] = [
        ({"session": SESSION[2:]}, "length_mismatch"),
        ({"session": SESSION.upper()}, "malformed"),
        ({"round": 7}, "malformed"),
        ({"round": str(2**32)}, "out_of_range"),
        ({"round": "-1"}, "out_of_range"),
        ({"round": "07"}, "bad_param"),
        *(({"chosen": chosen}, "inconsistent_sets") for chosen in WRONG_CHOICES),
        ({"chosen": None}, "malformed"),
    ]
    for changes, code in faults:
        assert node.code("select.session", {**asked, **changes}) == code, changes


WRONG_CHOICES = [
    [],
    [0, 1, 2],
    [0, 1, 2, 3, 4, 5, 6, 7, 8],
    [1, 2, 3, 4, 5, 6],
    [0, 1, 2, 4, 5, 6],
    [0, 1, 2, 3, 4, 6],
    [0, 1, 2, 3, 5, 4],
    [3, 4, 5, 0, 1, 2],
    [0, 1, 2, 0, 1, 2],
    [0, 1, 2, 12, 13, 14],
    [-3, -2, -1, 0, 1, 2],
    [0, 1, 2, 2, 3, 4],
]


@pytest.mark.requirement("MRA-17")
@pytest.mark.parametrize("changes", [{"c": 0}, {"c": -1}, {"c": 2}, {"T": 1}, {"T": 2}])
def test_parameters_of_a_session_leave_two_honest_users_of_a_batch(node: Node, changes: dict[str, int]) -> None:
    numbers = {**TINY, "c": 1, **changes}
    assert node.code("select.complete", {**numbers, "arrived": [0, 1, 2]}) == "bad_param"
    request = {**numbers, "user": 0, "chosen": list(range(6)), "survivors": [0, 1, 2]}
    assert node.code("select.request", request) == "bad_param"


@pytest.mark.requirement("MRA-18")
def test_survivors_are_the_users_of_complete_batches(node: Node) -> None:
    for many in range(7):
        for arrived in itertools.permutations(range(6), many) if many < 4 else itertools.combinations(range(6), many):
            expected = [i for b in (0, 1) for i in batch(b, 3) if set(batch(b, 3)) <= set(arrived)]
            asked = {**TINY, "c": 1, "arrived": list(arrived)}
            assert node.result("select.complete", asked) == {"survivors": expected}, arrived
    faults: list[tuple[Any, str]] = [
        ([0, 1, 2, 1], "duplicate_id"),
        ([0, 1, 2, 6], "unknown_peer"),
        ([0, 1, 2, -1], "unknown_peer"),
        ([0, 1, "2"], "malformed"),
        (0, "malformed"),
    ]
    for wrong, code in faults:
        assert node.code("select.complete", {**TINY, "c": 1, "arrived": wrong}) == code, wrong


@pytest.mark.requirement("MRA-21")
@pytest.mark.parametrize(("N", "K", "T", "c"), [(12, 6, 3, 1), (16, 8, 4, 2), (9, 9, 3, 1), (5, 5, 5, 3)])
def test_a_user_answers_for_unions_of_batches_and_no_others(node: Node, N: int, K: int, T: int, c: int) -> None:
    chosen = batch(N // T - K // T, T) + list(range(N - K + T, N))
    for bits in range(2**K):
        survivors = [i for i in range(K) if bits >> i & 1]
        right = all(set(batch(i // T, T)) <= set(survivors) for i in survivors)
        asked = {"N": N, "K": K, "T": T, "c": c, "user": chosen[0], "chosen": chosen, "survivors": survivors}
        answer = node.ask("select.request", asked)
        if right and 0 in survivors:
            assert answer["result"] == {}
        else:
            assert answer["reject"]["code"] == "inconsistent_sets", survivors


@pytest.mark.requirement("MRA-20", "MRA-21")
def test_a_user_refuses_wrong_choices_and_requests(node: Node) -> None:
    asked: dict[str, Any] = {
        **TINY, "c": 1, "user": 10, "chosen": [0, 1, 2, 9, 10, 11], "survivors": [3, 4, 5],
    }  # fmt: skip
    assert node.result("select.request", asked) == {}
    assert node.result("select.request", {**asked, "survivors": list(range(6))}) == {}
    faults: list[tuple[dict[str, Any], str]] = [
        *(({"chosen": chosen, "user": 1}, "inconsistent_sets") for chosen in WRONG_CHOICES),
        ({"user": 3}, "inconsistent_sets"),
        ({"user": 12}, "unknown_peer"),
        ({"user": -1}, "bad_param"),
        ({"user": "10"}, "malformed"),
        ({"survivors": [0, 1, 2]}, "inconsistent_sets"),
        ({"survivors": [9, 10, 11]}, "inconsistent_sets"),
        ({"survivors": [4, 3, 5]}, "inconsistent_sets"),
        ({"survivors": [3, 4, 5, 0, 1, 2]}, "inconsistent_sets"),
        ({"survivors": [3, 4, 5, 3, 4, 5]}, "inconsistent_sets"),
        ({"survivors": [3, 4, 5, 6, 7, 8]}, "inconsistent_sets"),
        ({"survivors": [-3, -2, -1, 3, 4, 5]}, "inconsistent_sets"),
        ({"survivors": []}, "inconsistent_sets"),
        ({"survivors": {}}, "malformed"),
    ]
    for changes, code in faults:
        assert node.code("select.request", {**asked, **changes}) == code, changes


# ----------------------------------------------------------------------------------------------------------------------
# What a log tells


def matrix_of(N: int, rounds: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[1 if i in users else 0 for i in range(N)] for users in rounds]


def rank(rows: Sequence[Sequence[int]]) -> int:
    return int(flint.fmpz_mat([list(row) for row in rows]).rank()) if rows and rows[0] else 0


def first_round(N: int, rounds: Sequence[Sequence[int]], user: int) -> int | None:
    """Return after how many rounds a user is recoverable: when its unit vector adds nothing to their rank."""
    rows = matrix_of(N, rounds)
    unit = [[1 if i == user else 0 for i in range(N)]]
    return next((t for t in range(1, len(rows) + 1) if rank(rows[:t]) == rank(rows[:t] + unit)), None)


def weak_of(N: int, rounds: Sequence[Sequence[int]]) -> int:
    """Return the least number of users outside of whom the log has a lesser rank."""
    rows = matrix_of(N, rounds)
    full, present = rank(rows), sorted(set(itertools.chain(*rounds)))
    for weight in range(1, len(present) + 1):
        for users in itertools.combinations(present, weight):
            if rank([[row[i] for i in range(N) if i not in users] for row in rows]) < full:
                return weight
    return 0


def strong_of(rounds: Sequence[Sequence[int]]) -> int:
    held = Counter(frozenset(t for t, users in enumerate(rounds) if i in users) for i in set(itertools.chain(*rounds)))
    return min(held.values(), default=0)


def number(found: Sequence[str]) -> Fraction:
    """Return a fraction of an answer, which is in lowest terms."""
    top, bottom = map(int, found)
    assert [str(top), str(bottom)] == list(found)
    assert bottom > 0
    assert math.gcd(top, bottom) == 1
    return Fraction(top, bottom)


def check_combination(N: int, rounds: Sequence[Sequence[int]], found: Answer) -> None:
    """Assert what MRA-11 says of a recoverable user."""
    shares = [(t, number(share)) for t, share in found["combination"]]
    assert sorted({t for t, _ in shares}) == [t for t, _ in shares]
    assert all(share != 0 and 0 <= t < found["round"] for t, share in shares)
    combined = [sum((share for t, share in shares if i in rounds[t]), Fraction(0)) for i in range(N)]
    assert combined == [Fraction(int(i == found["user"])) for i in range(N)]


def check_audit(found: Answer, N: int, rounds: Sequence[Sequence[int]]) -> None:
    """Assert all that section 4 says of an audit, but for the weak privacy."""
    expected = {i: first_round(N, rounds, i) for i in range(N)}
    alone = {i: t for i, t in expected.items() if t is not None}
    assert [(one["user"], one["round"]) for one in found["recoverable"]] == sorted(alone.items())
    assert all(set(one) == {"user", "round", "combination"} for one in found["recoverable"])
    for one in found["recoverable"]:
        check_combination(N, rounds, one)
    counts = [sum(i in users for users in rounds) for i in range(N)]
    J = max(len(rounds), 1)
    assert found["strong"] == strong_of(rounds)
    assert number(found["gap"]) == Fraction(max(counts) - min(counts), J)
    assert number(found["cardinality"]) == Fraction(sum(map(len, rounds)), J)


@st.composite
def logs(draw: st.DrawFn, most_users: int, most_rounds: int) -> dict[str, Any]:
    """A log in which some users are always together, and some sets have many users."""
    N, J = draw(st.integers(1, most_users)), draw(st.integers(0, most_rounds))
    together = draw(st.integers(1, N))
    held = draw(st.lists(st.lists(st.booleans(), min_size=together, max_size=together), min_size=J, max_size=J))
    classes = [
        *range(together),
        *draw(st.lists(st.integers(0, together), min_size=N - together, max_size=N - together)),
    ]
    order = draw(st.permutations(classes))
    return {"N": N, "rounds": [[i for i in range(N) if [*some, False][order[i]]] for some in held]}


@pytest.mark.requirement("MRA-10", "MRA-11", "MRA-12", "MRA-13", "MRA-14", "MRA-16")
@given(log=logs(7, 9))
def test_logs_are_audited_as_the_page_says(node: Node, log: dict[str, Any]) -> None:
    found = node.result("audit.privacy", log)
    check_audit(found, **log)
    assert found["weak"] == [weak_of(**log)] * 2


@pytest.mark.requirement("MRA-10", "MRA-11", "MRA-12", "MRA-13", "MRA-16")
@given(log=logs(20, 30))
def test_longer_logs_are_audited_as_the_page_says(node: Node, log: dict[str, Any]) -> None:
    found = node.result("audit.privacy", log)
    check_audit(found, **log)
    low, high = found["weak"]
    assert found["strong"] <= low <= high <= min((len(users) for users in log["rounds"] if users), default=0)


def random_log(label: object, N: int, J: int, rate: int) -> dict[str, Any]:
    """Return a log that is the same in every run; of ten users, `rate` are in a set."""
    lots = [[hashlib.sha256(f"{label} {t} {i}".encode()).digest()[0] for i in range(N)] for t in range(J)]
    return {"N": N, "rounds": [[i for i, lot in enumerate(row) if lot * 10 < rate * 256] for row in lots]}


@pytest.mark.requirement("MRA-13", "MRA-14")
@pytest.mark.parametrize(("N", "J"), [(12, 3), (12, 5), (12, 7), (12, 9), (11, 6), (10, 5)])
def test_the_weak_privacy_of_twelve_users_is_exact(node: Node, N: int, J: int) -> None:
    for label in range(3):
        for rate in (3, 5):
            log = random_log(label, N, J, rate)
            assert node.result("audit.privacy", log)["weak"] == [weak_of(**log)] * 2
    spread = {"N": 2**20, "rounds": [[2**16 * i for i in users] for users in log["rounds"]]}
    assert (
        node.result("audit.privacy", spread)["weak"] == [weak_of(**log)] * 2
    )  # twelve users in sets, more on the roster


@pytest.mark.requirement("MRA-13")
@pytest.mark.parametrize(("N", "J"), [(16, 9), (18, 14), (22, 19), (30, 28), (16, 13)])
def test_the_weak_privacy_of_more_users_is_between_the_two_numbers(node: Node, N: int, J: int) -> None:
    log = random_log("more", N, J, 4)
    low, high = node.result("audit.privacy", log)["weak"]
    assert low <= weak_of(**log) <= high
    assert N > 16 or low == high


@pytest.mark.requirement("MRA-10", "MRA-11", "MRA-12", "MRA-14", "MRA-16")
def test_the_logs_of_the_page(node: Node) -> None:
    pairs = node.result("audit.privacy", {"N": 3, "rounds": [[0, 1], [1, 2], [0, 2]]})
    assert pairs["recoverable"][0] == {
        "user": 0, "round": 3, "combination": [[0, ["1", "2"]], [1, ["-1", "2"]], [2, ["1", "2"]]],
    }  # fmt: skip
    assert [one["user"] for one in pairs["recoverable"]] == [0, 1, 2]
    two = node.result("audit.privacy", {"N": 3, "rounds": [[0, 1], [1, 2]]})
    assert (two["weak"], two["strong"], two["recoverable"]) == ([2, 2], 1, [])
    assert (two["gap"], two["cardinality"]) == (["1", "2"], ["2", "1"])
    nothing = {"recoverable": [], "strong": 0, "weak": [0, 0], "gap": ["0", "1"], "cardinality": ["0", "1"]}
    for J in (0, 1, 3):
        assert node.result("audit.privacy", {"N": 5, "rounds": [[]] * J}) == nothing
    late = [[], [0], [0], *[[]] * 9, [1]]  # of users in the rounds 1 and 2, and in round 12
    assert node.result("audit.privacy", {"N": 2, "rounds": late})["strong"] == 1
    alone = node.result("audit.privacy", {"N": 2**31 - 1, "rounds": [[], [2**31 - 2], [], [7]]})
    found = [{"user": 7, "round": 4, "combination": [[3, ["1", "1"]]]}]
    assert alone["recoverable"] == [*found, {"user": 2**31 - 2, "round": 2, "combination": [[1, ["1", "1"]]]}]
    assert (alone["gap"], alone["cardinality"], alone["weak"]) == (["1", "4"], ["1", "2"], [1, 1])


@pytest.mark.requirement("MRA-11")
@pytest.mark.parametrize("T", range(2, 9))
def test_any_vector_is_of_sets_that_overlap(node: Node, T: int) -> None:
    """The combination is the one of section 4, since these sets are independent."""
    sets = [[i for i in range(T + 1) if i != j] for j in range(1, T + 1)]
    found = node.result("audit.privacy", {"N": T + 3, "rounds": [*sets, list(range(1, T + 1))]})
    shares = [[t, ["1", str(T)]] for t in range(T)] + [[T, [str(1 - T), str(T)]]]
    assert found["recoverable"][0] == {"user": 0, "round": T + 1, "combination": shares}


@pytest.mark.slow
@pytest.mark.requirement("MRA-10", "MRA-11")
def test_combinations_may_take_large_numbers(node: Node) -> None:
    """They are quotients of minors of the log, beyond what binary64 holds exactly."""
    log = random_log("large", 60, 60, 5)
    found = node.result("audit.privacy", log)["recoverable"]
    assert [one["user"] for one in found] == list(range(60))
    assert all(max(len(share[1]) for _, share in one["combination"]) > 17 for one in found)
    for one in found:
        check_combination(60, log["rounds"], one)
    assert [one["round"] for one in found[::12]] == [first_round(60, log["rounds"], i) for i in range(0, 60, 12)]


@pytest.mark.slow
@pytest.mark.requirement("MRA-03", "MRA-12")
@given(numbers=sizes(), data=st.data())
def test_unions_of_batches_keep_batches_together(node: Node, numbers: dict[str, int], data: st.DataObject) -> None:
    rounds = data.draw(st.lists(st.sampled_from([[], *family_of(**numbers)]), max_size=8))
    found = node.result("audit.privacy", {"N": numbers["N"], "rounds": rounds})
    assert found["strong"] >= numbers["T"] or not any(rounds)
    assert found["weak"][0] >= found["strong"]
    assert numbers["T"] == 1 or found["recoverable"] == []


@pytest.mark.slow
@pytest.mark.requirement("MRA-15")
def test_logs_that_no_users_make_are_refused(node: Node) -> None:
    faults: list[tuple[dict[str, Any], str]] = [
        ({"rounds": [[0, 1], [1, 1, 2]]}, "duplicate_id"),
        ({"rounds": [[0, 1], [1, 3, 1]]}, "duplicate_id"),
        ({"rounds": [[0, 1], [2, 4]]}, "unknown_peer"),
        ({"rounds": [[-1, 1]]}, "unknown_peer"),
        ({"rounds": [[0, 2, 1]]}, "inconsistent_sets"),
        ({"rounds": [0, 1]}, "malformed"),
        ({"rounds": [[0, "1"]]}, "malformed"),
        ({"N": 0, "rounds": []}, "bad_param"),
        ({"N": 2**31}, "bad_param"),
        ({"N": "4"}, "malformed"),
    ]
    for changes, code in faults:
        assert node.code("audit.privacy", {"N": 4, "rounds": [[0, 1]], **changes}) == code, changes


@pytest.mark.slow
def test_an_audit_that_takes_too_long_is_not_offered(node: Node) -> None:
    large = random_log("too long", 300, 300, 5)
    assert node.ask("audit.privacy", large) == {"id": 1, "unsupported": True}
    batched = {"N": 3000, "rounds": [users_of(range(t, t + 9), 30) for t in range(90)]}
    found = node.result("audit.privacy", batched)
    assert (found["strong"], found["recoverable"]) == (30, [])


# ----------------------------------------------------------------------------------------------------------------------
# The form of requests

VALID: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("select.family", dict(TINY), {}),
    ("select.batch", SAMPLED[0], {"draws": [0, 0]}),
    ("select.session", {**TINY, "session": SESSION, "round": "7", "chosen": list(range(6))}, {}),
    ("select.complete", {**TINY, "c": 1, "arrived": [0, 1, 2]}, {}),
    ("select.request", {**TINY, "c": 1, "user": 0, "chosen": list(range(6)), "survivors": [0, 1, 2]}, {}),
    ("audit.privacy", {"N": 4, "rounds": [[0, 1]]}, {}),
]
OTHER_TYPES: list[Any] = [None, True, {}, 1.5]


@pytest.mark.slow
@pytest.mark.requirement("ADP-05", "ADP-12", "RND-04")
@pytest.mark.parametrize(("op", "params", "rand"), VALID)
def test_requests_with_other_members_are_malformed(
    node: Node, op: str, params: dict[str, Any], rand: dict[str, Any]
) -> None:
    node.result(op, params, rand)
    assert node.code(op, {**params, "zq": 1}, rand) == "malformed"
    assert node.code(op, params, {**rand, "zq": 1}) == "malformed"
    for name in params:
        assert node.code(op, {key: value for key, value in params.items() if key != name}, rand) == "malformed"
        for value in OTHER_TYPES:
            assert node.code(op, {**params, name: value}, rand) == "malformed", (name, value)
