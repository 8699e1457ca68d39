"""The implementation of BASecAgg in JavaScript, against integers and fractions that are computed here.

It was written from the text alone, and nothing of the reference is asked here: expected values are made by hand, by the
arithmetic of Python, or by relations between the answers themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.node import NODE, Answer, Node, entries_of, reals, reals_of, running, vector

SERVER = 2**32 - 1
SESSION = bytes(range(16))
HALF_STALE = {"kind": "polynomial", "numerator": 1, "denominator": 1, "start": "0"}
TINY: dict[str, Any] = {
    "q": "19", "N": 5, "D": 1, "U": 3, "T": 1, "d": 3, "K": 3, "c_l": "1", "c_g": "3", "tau_max": 2, **HALF_STALE,
}  # fmt: skip
LARGE: dict[str, Any] = {
    "q": "4294967291", "N": 6, "D": 1, "U": 4, "T": 2, "d": 5, "K": 4, "c_l": "65536", "c_g": "64", "tau_max": 10,
    "kind": "hinge", "numerator": 1, "denominator": 2, "start": "1",
}  # fmt: skip

pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


# ----------------------------------------------------------------------------------------------------------------------
# What is asked


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    """The other implementation, running."""
    with running() as other:
        yield other


def only(given: Answer, *names: str) -> dict[str, Any]:
    return {name: given[name] for name in names}


# ----------------------------------------------------------------------------------------------------------------------
# The same, computed here


def stale(given: Answer, tau: int) -> Fraction:
    """s(tau) of a function that is rational: a hinge, or a power with an integer exponent."""
    part = Fraction(given["numerator"], given["denominator"])
    if given["kind"] == "hinge":
        return 1 / (part * max(tau - int(given["start"]), 0) + 1)
    assert given["kind"] == "constant" or part.denominator == 1
    return Fraction(1, 1) if given["kind"] == "constant" else Fraction(1, (1 + tau) ** part.numerator)


def weight(given: Answer, tau: int, draw: float) -> int:
    y = int(given["c_g"]) * stale(given, tau)
    return floor(y) + (Fraction(draw) < y - floor(y))


def length(given: Answer) -> int:
    return -(-int(given["d"]) // (int(given["U"]) - int(given["T"])))


def shares_of(given: Answer, mask: Sequence[int], noise: Sequence[int]) -> list[list[int]]:
    """The shares of all users, by the sum of section 3 of the conventions."""
    q, U, T, L = int(given["q"]), given["U"], given["T"], length(given)
    flat = [*mask, *[0] * (L * (U - T) - len(mask)), *noise]
    rows = [flat[L * k : L * (k + 1)] for k in range(U)]
    return [
        [sum((user + 1) ** k * rows[k][column] for k in range(U)) % q for column in range(L)]
        for user in range(given["N"])
    ]  # fmt: skip


def scaled(q: int, weights: Sequence[int], vectors: Sequence[Sequence[int]]) -> list[int]:
    return [sum(w * v for w, v in zip(weights, column, strict=True)) % q for column in zip(*vectors, strict=True)]


class Numbers:
    """Numbers that look random and are the same in every run."""

    def __init__(self, seed: int = 1) -> None:
        self.state = seed

    def below(self, bound: int) -> int:
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return (self.state >> 20) * bound >> 44

    def vector(self, q: int, count: int) -> list[int]:
        return [self.below(q) for _ in range(count)]

    def draws(self, count: int) -> list[float]:
        return [self.below(2**40) / 2**40 for _ in range(count)]

    def update(self, given: Answer) -> list[int]:
        q, K, level = int(given["q"]), given["K"], int(given["c_g"])
        bound = (q - 1) // 2 // (K * level)
        return [(self.below(2 * bound + 1) - bound) % q for _ in range(given["d"])]


# ----------------------------------------------------------------------------------------------------------------------
# Staleness


@pytest.mark.requirement("STL-04", "STL-06")
@given(
    tau=st.integers(0, 2**32 - 1),
    level=st.integers(1, 2**32),
    draw=st.integers(0, 2**53 - 1),
    chosen=st.sampled_from([("constant", 0, 1), ("polynomial", 2, 1), ("polynomial", 0, 1), ("hinge", 3, 7)]),
    start=st.integers(0, 2**32 - 1),
)
def test_weights_are_those_of_fractions(
    node: Node, tau: int, level: int, draw: int, chosen: tuple[str, int, int], start: int
) -> None:
    kind, numerator, denominator = chosen
    given = {"kind": kind, "numerator": numerator, "denominator": denominator, "start": "0", "c_g": level}
    if kind == "hinge":
        given["start"] = str(start)
    params = {**only(given, *HALF_STALE), "level": str(level), "tau": str(tau)}
    found = node.result("staleness.weight", params, {"rounding": reals([draw / 2**53])})
    assert found == {"weight": str(weight(given, tau, draw / 2**53))}


@pytest.mark.requirement("STL-05", "STL-06")
def test_a_root_just_below_an_integer_is_below_it(node: Node) -> None:
    given = {"kind": "polynomial", "numerator": 1, "denominator": 2, "start": "0", "level": "318281039", "tau": "1"}
    low, high = ({"rounding": reals([draw])} for draw in (0.0, 1 - 2**-53))
    assert node.result("staleness.weight", given, low) == {"weight": "225058681"}
    assert node.result("staleness.weight", given, high) == {"weight": "225058680"}


@pytest.mark.requirement("STL-01", "STL-02", "STL-03", "STL-07")
@pytest.mark.parametrize(
    "fault",
    [
        {"numerator": 2, "denominator": 2}, {"numerator": -1}, {"numerator": 1001}, {"denominator": 0},
        {"denominator": 101}, {"kind": "square"}, {"start": "1"}, {"kind": "constant"}, {"level": "0"},
        {"level": "4294967297"}, {"tau": "4294967296"}, {"tau": "-1"}, {"kind": "hinge", "start": "4294967296"},
    ],
)  # fmt: skip
def test_a_wrong_function_is_refused(node: Node, fault: Answer) -> None:
    params = {**HALF_STALE, "level": "64", "tau": "2"}
    node.result("staleness.weight", params, {"rounding": reals([0.5])})
    assert node.code("staleness.weight", {**params, **fault}, {"rounding": reals([0.5])}) == "bad_param"
    assert node.code("staleness.weight", params, {"rounding": reals([2**-54])}) == "out_of_range"


# ----------------------------------------------------------------------------------------------------------------------
# One function at a time


@pytest.mark.requirement("BSA-36")
def test_an_update_is_quantised_at_its_level_within_the_budget(node: Node) -> None:
    params = {"q": "4294967291", "K": 10, "c_l": "65536", "c_g": "64"}
    bound = (4294967291 - 1) // 2 // (10 * 64)
    x, draws = [0.5, -1 / 3, bound / 65536, -bound / 65536, 1e-6], [0.5, 0.25, 0.75, 0.0, 0.0078125]
    steps = [65536 * Fraction(number) for number in x]
    expected = [floor(y) + (Fraction(u) < y - floor(y)) for y, u in zip(steps, draws, strict=True)]
    found = node.result("basecagg.encode", {**params, "x": reals(x)}, {"rounding": reals(draws)})
    assert entries_of(found["value"]) == [v % 4294967291 for v in expected]
    too_large = {**params, "x": reals([(bound + 1) / 65536])}
    assert node.code("basecagg.encode", too_large, {"rounding": reals([0.0])}) == "out_of_range"


@pytest.mark.requirement("BSA-01", "BSA-02")
@pytest.mark.parametrize(
    "fault", [{"q": "4294967290"}, {"q": "17"}, {"K": 4}, {"K": 0}, {"c_g": "0"}, {"c_g": "-3"}, {"c_g": "4"}]
)
def test_functions_of_one_update_refuse_a_budget_that_is_none(node: Node, fault: Answer) -> None:
    params = {"q": "19", "K": 3, "c_g": "3"}
    mask = {"update": vector([1]), "mask": vector([18])}
    encode = {"x": reals([1.0]), "c_l": "1"}
    assert node.result("basecagg.mask", {**params, **mask}) == {"masked": vector([0])}
    assert node.code("basecagg.mask", {**params, **mask, **fault}) == "bad_param"
    assert node.code("basecagg.encode", {**params, **encode, **fault}, {"rounding": reals([0.0])}) == "bad_param"
    assert node.code("basecagg.encode", {**params, **encode, "c_l": "0"}, {"rounding": reals([0.0])}) == "bad_param"


@pytest.mark.requirement("BSA-04", "BSA-05", "BSA-06")
def test_a_masked_update_is_the_sum_and_the_update_is_within_its_bound(node: Node) -> None:
    params = {"q": "19", "K": 3, "c_g": "3"}  # 9 // (3 * 3) = 1: the integers -1, 0 and 1

    def ask(update: Sequence[int], mask: Sequence[int]) -> Answer:
        return node.ask("basecagg.mask", {**params, "update": vector(update), "mask": vector(mask)})

    assert ask([0, 1, 18], [18, 18, 18])["result"] == {"masked": vector([18, 0, 17])}
    faults = [([2], [0], "out_of_range"), ([17], [0], "out_of_range"), ([9], [0], "out_of_range")]
    faults += [([10], [0], "out_of_range"), ([19], [0], "noncanonical"), ([0], [19], "noncanonical")]
    faults += [([0, 0], [0], "length_mismatch"), ([], [], "bad_param")]
    for update, mask, code in faults:
        assert ask(update, mask)["reject"]["code"] == code


BUFFER: dict[str, Any] = {
    **only(TINY, "q", "N", "T", "K", "c_g", "tau_max", *HALF_STALE),
    "round": "7",
    "users": [0, 2, 3],
    "stamps": vector([7, 5, 6]),  # staleness 0, 2 and 1: 3, 3/3 = 1, and 3/2, which is 1 or 2
    "weights": vector([3, 1, 2]),
    "held": [[3, "6", vector([4, 18])], [1, "7", vector([1, 1])], [0, "7", vector([5, 6])], [2, "5", vector([7, 0])]],
}


@pytest.mark.requirement("BSA-27", "BSA-23")
def test_an_answer_is_the_weighted_sum_of_the_shares(node: Node) -> None:
    expected = [(3 * 5 + 7 + 2 * 4) % 19, (3 * 6 + 0 + 2 * 18) % 19]
    assert node.result("basecagg.combine", BUFFER) == {"share": vector(expected)}
    lighter = {**BUFFER, "weights": vector([3, 1, 1])}
    assert node.result("basecagg.combine", lighter) == {"share": vector([(15 + 7 + 4) % 19, (18 + 18) % 19])}


BUFFER_FAULTS: dict[str, Answer] = {
    "no entry": {"users": [], "stamps": "", "weights": ""},
    "an entry less": {"users": [0, 2], "stamps": vector([7, 5]), "weights": vector([3, 1])},
    "an entry more": {"users": [0, 1, 2, 3], "stamps": vector([7, 7, 5, 6]), "weights": vector([3, 3, 1, 2])},
    "a stamp less": {"stamps": vector([7, 5])},
    "a weight less": {"weights": vector([3, 1])},
    "a user twice": {"users": [0, 2, 2], "stamps": vector([7, 5, 5]), "weights": vector([3, 1, 1])},
    "a stranger": {"users": [0, 2, 5]},
    "another order": {"users": [2, 0, 3], "stamps": vector([5, 7, 6]), "weights": vector([1, 3, 2])},
    "a stamp of the future": {"round": "6"},
    "a stamp too old": {"round": "8", "weights": vector([2, 1, 1])},
    "one above a whole weight": {"weights": vector([3, 2, 2])},
    "one below a whole weight": {"weights": vector([2, 1, 2])},
    "two above": {"weights": vector([3, 1, 3])},
    "one below": {"weights": vector([3, 1, 0])},
    "one user's update": {"weights": vector([3, 0, 0])},
    "no share": {"held": BUFFER["held"][1:]},
    "a newer share": {"held": [*BUFFER["held"][:3], [2, "6", vector([7, 0])]]},
}


@pytest.mark.requirement("BSA-21", "BSA-22", "BSA-23", "BSA-24", "BSA-25")
@pytest.mark.parametrize("fault", BUFFER_FAULTS)
def test_a_wrong_buffer_is_refused_and_blames_the_server_for_what_it_says(node: Node, fault: str) -> None:
    answer = node.ask("basecagg.combine", {**BUFFER, **BUFFER_FAULTS[fault]})
    assert answer["reject"]["code"] == "inconsistent_sets"
    assert answer["reject"]["blamed"] == ([] if fault in ("no share", "a newer share") else ["server"])


@pytest.mark.requirement("BSA-01", "BSA-02", "ADP-16", "MOD-06", "MOD-07")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"T": 0}, "bad_param"),
        ({"T": 2}, "bad_param"),
        ({"N": 2}, "bad_param"),
        ({"N": 19}, "bad_param"),
        ({"q": "21"}, "bad_param"),
        ({"tau_max": -1}, "bad_param"),
        ({"tau_max": 3}, "bad_param"),
        ({"c_g": "4"}, "bad_param"),
        ({"start": "1"}, "bad_param"),
        ({"tau_max": 2**31}, "bad_param"),
        ({"held": [*BUFFER["held"], [0, "7", vector([5, 6])]]}, "duplicate_id"),
        ({"held": [*BUFFER["held"], [5, "7", vector([5, 6])]]}, "unknown_peer"),
        ({"held": [*BUFFER["held"], [4, "7", vector([5])]]}, "length_mismatch"),
        ({"held": [*BUFFER["held"], [4, "7", vector([5, 19])]]}, "noncanonical"),
        ({"held": [*BUFFER["held"], [4, vector([5, 6])]]}, "malformed"),
        ({"round": "4294967296"}, "out_of_range"),
    ],
)
def test_wrong_numbers_or_shares_are_no_fault_of_the_server(node: Node, fault: Answer, code: str) -> None:
    assert node.code("basecagg.combine", {**BUFFER, **fault}) == code


def recovery(given: Answer, users: Sequence[int], weights: Sequence[int], updates: Sequence[Sequence[int]]) -> Any:
    """The request for a recovery of these updates, with answers that are made here."""
    q, numbers = int(given["q"]), Numbers(9)
    masks = [numbers.vector(q, given["d"]) for _ in weights]
    inputs = [shares_of(given, mask, numbers.vector(q, given["T"] * length(given))) for mask in masks]
    masked = [[(x + z) % q for x, z in zip(*pair, strict=True)] for pair in zip(updates, masks, strict=True)]
    shares = [scaled(q, weights, [shares[user] for shares in inputs]) for user in users]
    return {
        **only(given, "q", "N", "U", "T", "d", "c_l"), "weights": vector(weights), "users": list(users),
        "masked": [vector(one) for one in masked], "shares": [vector(one) for one in shares],
    }  # fmt: skip


@pytest.mark.requirement("BSA-02")
def test_recovery_refuses_a_divisor_that_is_not_exact(node: Node) -> None:
    for last, fine in ((2**21 - 104, True), (2**21 - 103, False)):
        params = recovery({**LARGE, "c_l": str(2**32)}, [0, 1, 2, 3], [64, 40, last], [[1] * 5] * 3)
        assert ("result" in node.ask("basecagg.recover", params)) == fine


@pytest.mark.requirement("BSA-29", "BSA-33")
@pytest.mark.parametrize("users", [[0, 1, 2, 3], [5, 4, 3, 2], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("level", ["65536", "49", "4294967296"])
def test_recovery_gives_the_weighted_sum_and_the_average(node: Node, users: list[int], level: str) -> None:
    given = {**LARGE, "c_l": level}
    q, numbers, weights = int(given["q"]), Numbers(3), [64, 40, 0, 2**21 - 104]
    updates = [numbers.vector(q, given["d"]) for _ in weights]
    result = node.result("basecagg.recover", recovery(given, users, weights, updates))
    total = scaled(q, weights, updates)
    assert entries_of(result["sum"]) == total
    integers = [x if x <= (q - 1) // 2 else x - q for x in total]
    assert reals_of(result["average"]) == [float(Fraction(v, int(level) * sum(weights))) for v in integers]


@pytest.mark.requirement("BSA-30", "BSA-31", "BSA-32")
def test_recovery_refuses_what_gives_no_sum(node: Node) -> None:
    q, updates = int(LARGE["q"]), [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    good = recovery(LARGE, [0, 1, 2, 3, 4], [2, 3], updates)
    few = recovery(LARGE, [0, 1, 2], [2, 3], updates)
    assert node.code("basecagg.recover", few) == "below_threshold"
    assert node.code("basecagg.recover", recovery(LARGE, [0, 1, 2, 3], [0, 0], updates)) == "bad_param"
    assert node.code("basecagg.recover", {**good, "weights": "", "masked": []}) == "bad_param"
    wrong = [(x + 1) % q for x in entries_of(good["shares"][1])]
    assert node.code(
        "basecagg.recover", {**good, "shares": [good["shares"][0], vector(wrong), *good["shares"][2:]]}
    ) == ("bad_share")
    faults: list[tuple[Answer, str]] = [
        ({"users": [0, 1, 2, 3, 3]}, "duplicate_id"),
        ({"users": [0, 1, 2, 3, 6]}, "unknown_peer"),
        ({"weights": vector([2])}, "length_mismatch"),
        ({"weights": vector([2, q])}, "noncanonical"),
        ({"masked": [vector([1]), vector([2])]}, "length_mismatch"),
        ({"shares": good["shares"][1:]}, "length_mismatch"),
        ({"d": 0}, "bad_param"),
        ({"T": 0}, "bad_param"),
        ({"T": 4}, "bad_param"),
        ({"c_l": "0"}, "bad_param"),
    ]
    for fault, code in faults:
        assert node.code("basecagg.recover", {**good, **fault}) == code


# ----------------------------------------------------------------------------------------------------------------------
# Messages


def header(kind: int, round: int, sender: int, receiver: int) -> bytes:
    return struct.pack("<H16sIII", kind, SESSION, round, sender, receiver)


def listed(entries: Sequence[int]) -> bytes:
    return struct.pack("<I", len(entries)) + bytes.fromhex(vector(entries))


def opaque(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


@pytest.mark.requirement("MSG-01", "MSG-02")
@pytest.mark.parametrize(
    ("kind", "fields", "body"),
    [
        (769, {}, b""),
        (770, {}, b""),
        (771, {"payload": "0a0b"}, opaque(b"\x0a\x0b")),
        (772, {"masked": vector([1, 2])}, listed([1, 2])),
        (
            773,
            {"users": [4, 0], "stamps": vector([9]), "weights": vector([3, 2, 1])},
            listed([4, 0]) + listed([9]) + listed([3, 2, 1]),
        ),
        (774, {"share": ""}, listed([])),
    ],
)
def test_messages_have_the_bytes_of_the_text(node: Node, kind: int, fields: Answer, body: bytes) -> None:
    about = {"session": SESSION.hex(), "round": "258", "sender": 3, "receiver": "server", "fields": fields}
    data = header(kind, 258, 3, SERVER) + body
    assert node.result("message.encode", {"type": kind, **about}) == {"bytes": data.hex()}
    assert node.result("message.decode", {"type": kind, "bytes": data.hex()}) == about
    for spoilt in (data[:-1], data + b"\0"):
        assert node.code("message.decode", {"type": kind, "bytes": spoilt.hex()}) == "malformed"


# ----------------------------------------------------------------------------------------------------------------------
# Whole runs in one request


@dataclass
class Model:
    """What is expected of a run, event by event; it knows which events are allowed."""

    given: Answer
    round: int
    numbers: Numbers = field(default_factory=Numbers)
    stamps: dict[int, int] = field(default_factory=dict)
    training: set[int] = field(default_factory=set)
    buffer: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    events: list[Answer] = field(default_factory=list)
    updates: list[list[int]] = field(default_factory=list)
    roundings: list[list[float]] = field(default_factory=list)
    buffers: list[Answer] = field(default_factory=list)

    def starters(self) -> list[int]:
        idle = set(range(self.given["N"])) - self.training - set(self.buffer)
        return sorted(user for user in idle if self.stamps.get(user, -1) < self.round)

    def uploaders(self) -> list[int]:
        if len(self.buffer) == self.given["K"]:
            return []
        return sorted(user for user in self.training if self.round - self.stamps[user] <= self.given["tau_max"])

    def event(self, name: str, user: int) -> None:
        self.events.append({"event": name, "user": user})
        if name == "start":
            self.stamps[user] = self.round
            self.training.add(user)
            return
        self.training.remove(user)
        if name == "upload":
            self.updates.append(self.numbers.update(self.given))
            self.buffer[user] = (self.stamps[user], self.updates[-1])

    def recover(self, users: Sequence[int]) -> None:
        q, names = int(self.given["q"]), sorted(self.buffer)
        self.events.append({"event": "recover", "users": list(users)})
        self.roundings.append(self.numbers.draws(self.given["K"]))
        stamps = [self.buffer[user][0] for user in names]
        drawn = zip(stamps, self.roundings[-1], strict=True)
        weights = [weight(self.given, self.round - stamp, draw) for stamp, draw in drawn]
        total = scaled(q, weights, [self.buffer[user][1] for user in names])
        self.buffers.append({
            "round": str(self.round), "users": names, "stamps": vector(stamps), "weights": vector(weights),
            "sum": vector(total),
        })  # fmt: skip
        self.buffer, self.round = {}, self.round + 1

    def ask(self, node: Node, **changes: Any) -> Answer:
        """Ask for the run; the lists hold more entries than are used."""
        q, d, rows = int(self.given["q"]), self.given["d"], self.given["T"] * length(self.given)
        params = {**self.given, "round": changes.pop("round"), "schedule": self.events}
        params["updates"] = [vector(update) for update in [*self.updates, [0] * d]]
        rand = {
            "masks": [vector(self.numbers.vector(q, d)) for _ in range(len(self.events))],
            "noises": [vector(self.numbers.vector(q, rows)) for _ in range(len(self.events))],
            "roundings": [reals(draws) for draws in [*self.roundings, [0.5] * self.given["K"]]],
        }
        for name, value in changes.items():
            (params if name in params else rand)[name] = value
        return node.ask("basecagg.rounds", params, rand)


@pytest.mark.requirement("BSA-11", "BSA-18", "BSA-19", "BSA-29", "BSA-34")
@given(data=st.data(), given=st.sampled_from([TINY, LARGE]), first=st.integers(0, 2**32 - 20))
def test_runs_give_the_weighted_sums(node: Node, data: st.DataObject, given: Answer, first: int) -> None:
    model = Model(given, first)
    for _ in range(data.draw(st.integers(1, 4))):
        while len(model.buffer) < given["K"]:
            moves = [("start", user) for user in model.starters()] + [("upload", user) for user in model.uploaders()]
            moves += [("abandon", user) for user in sorted(model.training)]
            moves = moves if data.draw(st.booleans()) else [move for move in moves if move[0] != "abandon"] or moves
            if not moves:
                return  # all have abandoned what they began in this round
            model.event(*data.draw(st.sampled_from(moves)))
        everyone = data.draw(st.permutations(range(given["N"])))
        model.recover(everyone[: data.draw(st.integers(given["U"], given["N"]))])
    assert model.ask(node, round=str(first)) == {"id": 1, "result": {"buffers": model.buffers}}


def filled() -> Model:
    """A run of one buffer, all at the stamp 0, before it is recovered."""
    model = Model(TINY, 0)
    for user in (0, 1, 4):
        model.event("start", user)
        model.event("upload", user)
    return model


@pytest.mark.requirement("ADP-35")
@pytest.mark.parametrize(
    "event",
    [
        {"event": "stop", "user": 0},
        {"event": "start"},
        {"event": "start", "user": 2, "users": []},
        {"event": "start", "user": "server"},
        {"event": "recover", "user": 2},
        {"event": "toString", "user": 2},
        {"user": 2},
        "start",
        ["start", 2],
    ],
)
def test_an_event_that_is_none_is_malformed(node: Node, event: Any) -> None:
    model = filled()
    model.recover([0, 1, 2])
    model.events.append(event)
    assert model.ask(node, round="0")["reject"]["code"] == "malformed"


@pytest.mark.requirement("BSA-07", "BSA-12", "BSA-17", "BSA-20", "BSA-30")
@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([("start", 0)], "wrong_phase"),  # it has the stamp of the round
        ([("upload", 0)], "wrong_phase"),
        ([("abandon", 0)], "wrong_phase"),
        ([("start", 2), ("start", 2)], "wrong_phase"),
        ([("start", 2), ("upload", 2)], "wrong_phase"),  # the buffer is full
        ([("start", 5)], "unknown_peer"),
        ([("recover", [0, 1])], "below_threshold"),
        ([("recover", [0, 1, 1])], "duplicate_id"),
        ([("recover", [0, 1, 5])], "unknown_peer"),
        ([("recover", [0, 1, 2]), ("recover", [0, 1, 2])], "wrong_phase"),  # the buffer is empty
    ],
)
def test_an_event_that_a_party_refuses_ends_the_run(node: Node, events: list[tuple[str, Any]], code: str) -> None:
    model = filled()
    model.updates.append([0, 0, 0])
    model.roundings += [[0.5] * 3] * 2
    for name, about in events:
        model.events.append({"event": name, "users" if name == "recover" else "user": about})
    assert model.ask(node, round="0")["reject"]["code"] == code


@pytest.mark.requirement("BSA-16", "BSA-06", "BSA-05")
def test_a_late_or_large_update_ends_the_run(node: Node) -> None:
    model = Model(TINY, 4)
    model.event("start", 3)
    for _ in range(3):
        for user in (0, 1, 2):
            model.event("start", user)
            model.event("upload", user)
        model.recover([0, 1, 2, 4])
    assert "result" in model.ask(node, round="4")
    assert model.ask(node, round="4", updates=[vector([2, 0, 0])] * 9)["reject"]["code"] == "out_of_range"
    assert model.ask(node, round="4", updates=[vector([0, 0, 0])] * 9 + ["00"])["reject"]["code"] == "malformed"
    left = {"updates": [vector([0, 0, 0])] * 9 + [vector([0, 0, 19])]}
    assert model.ask(node, round="4", **left)["reject"]["code"] == "noncanonical"
    assert model.ask(node, round="4", updates=[vector([0, 0, 0])] * 8)["reject"]["code"] == "bad_param"
    assert model.ask(node, round="4", roundings=[reals([0.5] * 3)] * 2)["reject"]["code"] == "bad_param"
    assert model.ask(node, round="4", roundings=[reals([0.5] * 2)] * 3)["reject"]["code"] == "length_mismatch"
    assert model.ask(node, round="4", roundings=[reals([0.5, 0.5, 1.0])] * 3)["reject"]["code"] == "out_of_range"
    assert model.ask(node, round="4", masks=[vector([0, 0, 0])] * 9)["reject"]["code"] == "bad_param"
    model.events.append({"event": "upload", "user": 3})  # a staleness of 3, and tau_max is 2
    assert model.ask(node, round="4")["reject"]["code"] == "wrong_phase"


# ----------------------------------------------------------------------------------------------------------------------
# Parties


@dataclass(frozen=True)
class Party:
    """What a party of a session is given, and what it samples."""

    role: str
    given: Answer
    setup: Answer
    rand: Answer
    round: str = "0"

    def script(self, node: Node, steps: Sequence[tuple[str, Sequence[bytes]]], **changes: Any) -> Answer:
        params = {**self.given, "session": SESSION.hex(), "round": self.round, **self.setup}
        params["steps"] = [{"phase": phase, "inbox": [data.hex() for data in inbox]} for phase, inbox in steps]
        rand = {**self.rand, **{name: value for name, value in changes.items() if name in self.rand}}
        params.update((name, value) for name, value in changes.items() if name not in self.rand)
        return node.ask(f"basecagg.{self.role}", params, rand)

    def entries(self, node: Node, steps: Sequence[tuple[str, Sequence[bytes]]]) -> list[Any]:
        answer = self.script(node, steps)
        assert "result" in answer, answer
        entries: list[Any] = answer["result"]["steps"]
        assert len(entries) == len(steps)
        return entries


KEYS = [bytes([user + 1]) * 32 for user in range(6)]
ROSTER = [X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw() for key in KEYS]


def user_of(given: Answer, user: int, sealed: bool = False, times: int = 3, round: str = "0") -> Party:
    numbers, q, d = Numbers(user + 20), int(given["q"]), given["d"]
    N, rows = given["N"], given["T"] * length(given)
    channel: Any = {"private": KEYS[user].hex(), "roster": [key.hex() for key in ROSTER[:N]]} if sealed else "plain"
    setup = {"user": user, "channel": channel, "updates": [vector(numbers.update(given)) for _ in range(times)]}
    rand = {
        "masks": [vector(numbers.vector(q, d)) for _ in range(times)],
        "noises": [vector(numbers.vector(q, rows)) for _ in range(times)],
    }
    return Party("user", given, setup, rand, round)


def server_of(given: Answer, times: int = 3, round: str = "0") -> Party:
    numbers = Numbers(40)
    return Party("server", given, {}, {"roundings": [reals(numbers.draws(given["K"])) for _ in range(times)]}, round)


class Play:
    """Sessions of all parties, and what each of them was asked and answered."""

    def __init__(self, node: Node, given: Answer, sealed: bool, round: str = "0") -> None:
        self.node, self.given = node, given
        self.parties = {user: user_of(given, user, sealed, round=round) for user in range(given["N"])}
        self.parties[SERVER] = server_of(given, round=round)
        self.asked: dict[int, list[tuple[str, Sequence[bytes]]]] = {party: [] for party in self.parties}
        self.answered: dict[int, list[Answer]] = {party: [] for party in self.parties}
        for index, party in self.parties.items():
            new = {"handle": str(index), "protocol": "basecagg", "role": party.role, "numbers": given}
            new.update(session=SESSION.hex(), round=round, setup=party.setup)
            node.result("session.new", new, party.rand)

    def step(self, party: int, phase: str, inbox: Sequence[bytes] = ()) -> list[bytes]:
        params = {"handle": str(party), "phase": phase, "inbox": [data.hex() for data in inbox]}
        entry = self.node.result("session.step", params)
        self.asked[party].append((phase, inbox))
        self.answered[party].append(entry)
        return [bytes.fromhex(data) for data in entry["outbox"]]

    def start(self, users: Sequence[int]) -> list[bytes]:
        """Let users begin; return the relayed shares."""
        asked = [data for user in users for data in self.step(user, "request")]
        stamps = self.step(SERVER, "request", asked)
        sent = [data for user, stamp in zip(users, stamps, strict=True) for data in self.step(user, "share", [stamp])]
        return self.step(SERVER, "share", sent)

    def deliver(self, shares: Sequence[bytes]) -> None:
        for user in range(self.given["N"]):
            self.step(user, "hold", [data for data in shares if receiver_of(data) == user])

    def upload(self, users: Sequence[int]) -> None:
        self.step(SERVER, "upload", [data for user in users for data in self.step(user, "upload")])

    def close(self) -> dict[int, bytes]:
        return {receiver_of(data): data for data in self.step(SERVER, "close")}

    def recover(self, announced: Mapping[int, bytes], users: Sequence[int]) -> list[int]:
        answers = [data for user in users for data in self.step(user, "recover", [announced[user]])]
        self.step(SERVER, "recover", answers)
        return entries_of(self.answered[SERVER][-1]["aggregate"])

    def replay(self) -> None:
        """The scripts of all parties have the entries that their sessions had."""
        for index, party in self.parties.items():
            assert party.entries(self.node, self.asked[index]) == self.answered[index]
            self.node.result("session.free", {"handle": str(index)})


def receiver_of(data: bytes) -> int:
    return int(struct.unpack_from("<I", data, 26)[0])


@pytest.mark.requirement("BSA-03", "BSA-13", "BSA-27", "BSA-29", "BSA-34", "ADP-20", "ADP-24")
@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("given", [TINY, LARGE], ids=["tiny", "large"])
def test_parties_play_rounds_with_slow_users(node: Node, given: Answer, sealed: bool) -> None:
    q, K, U = int(given["q"]), given["K"], given["U"]
    play = Play(node, given, sealed, round="11")
    play.deliver(play.start(range(given["N"])))
    play.upload(range(K))
    announced = play.close()
    first = play.recover(announced, range(given["N"])[-U:])
    play.deliver(play.start(range(K - 1)))  # those of the first buffer; others still train
    play.upload([given["N"] - 1, *range(K - 1)])
    announced = play.close()
    second = play.recover(announced, range(U))
    for total, users, uploads in ((first, range(K), 0), (second, [*range(K - 1), given["N"] - 1], 1)):
        late = {given["N"] - 1: 1} if uploads else {}
        draws = reals_of(play.parties[SERVER].rand["roundings"][uploads])
        weights = [weight(given, late.get(user, 0), draw) for user, draw in zip(users, draws, strict=True)]
        updates = [entries_of(play.parties[user].setup["updates"][0 if user in late else uploads]) for user in users]
        assert total == scaled(q, weights, updates)
    stamps = [[11] * K, [12] * (K - 1) + [11]]
    fields = [
        node.result("message.decode", {"type": 773, "bytes": step["outbox"][0]})["fields"]
        for (phase, _), step in zip(play.asked[SERVER], play.answered[SERVER], strict=True)
        if phase == "close"
    ]
    assert [entries_of(one["stamps"]) for one in fields] == stamps
    play.replay()


@pytest.mark.requirement("BSA-03")
@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        ({}, [1, 1, 1, 0]),
        ({"kind": "constant", "numerator": 0}, [0, 0, 1, 0]),
        ({"kind": "hinge", "numerator": 2, "denominator": 3, "start": "4"}, [2, 2, 3, 4]),
    ],
)
def test_shares_are_sealed_for_their_stamp_and_all_the_numbers(
    node: Node, function: Answer, numbers: Sequence[int]
) -> None:
    given = {**TINY, **function}
    sender = user_of(given, 1, sealed=True)
    entries = sender.entries(node, [("request", []), ("share", [header(770, 9, SERVER, 1)])])
    mask, noise = (entries_of(sender.rand[name][0]) for name in ("masks", "noises"))
    expected = shares_of(given, mask, noise)
    values = [19, 5, 1, 3, 1, 3, 3, 1, 3, 2, *numbers]
    for text in entries[1]["outbox"]:
        data = bytes.fromhex(text)
        receiver = receiver_of(data)
        assert data[:34] == header(771, 9, 1, receiver) + struct.pack("<I", 4 + 4 * length(given) + 28)
        pair = {"private": KEYS[receiver].hex(), "public": ROSTER[1].hex()}
        derived = node.result("key.derive", {
            "protocol": "basecagg", "parameters": [[name, str(v)] for name, v in zip(given, values, strict=True)],
            **node.result("key.agree", pair), "session": SESSION.hex(), "round": "9", "sender": 1, "receiver": receiver,
            "sender_key": ROSTER[1].hex(), "receiver_key": ROSTER[receiver].hex(),
        })  # fmt: skip
        opened = ChaCha20Poly1305(bytes.fromhex(derived["key"])).decrypt(
            data[34:46], data[46:], bytes.fromhex(derived["binding"]) + struct.pack("<H", 771)
        )
        assert opened == listed(expected[receiver])


# ----------------------------------------------------------------------------------------------------------------------
# What the steps of a user refuse

Step = tuple[str, Sequence[bytes]]
NEIGHBOURS = {user: user_of(TINY, user) for user in (0, 1, 3, 4)}
ASK: Step = ("request", [])


def share_from(sender: int, stamp: int, receiver: int = 2, entries: Sequence[int] = (1, 2)) -> bytes:
    return header(771, stamp, sender, receiver) + opaque(listed(entries))


def stamped(round: int, receiver: int = 2) -> Step:
    return ("share", [header(770, round, SERVER, receiver)])


def announce(
    round: int, users: Sequence[int], stamps: Sequence[int], weights: Sequence[int], receiver: int = 2
) -> bytes:
    return header(773, round, SERVER, receiver) + listed(users) + listed(stamps) + listed(weights)


HOLD: Step = ("hold", [share_from(sender, 5) for sender in (0, 1, 3)])
GOOD: Step = ("recover", [announce(6, [0, 1, 3], [5, 5, 5], [1, 2, 2])])

USER_FAULTS: dict[str, tuple[list[Step], Step, str, list[Any]]] = {
    "a message in request": ([], ("request", [header(770, 0, SERVER, 2)]), "wrong_phase", []),
    "asked while training": ([ASK, stamped(5)], ASK, "wrong_phase", []),
    "a stamp that was not asked for": ([], stamped(5), "wrong_phase", []),
    "no stamp": ([ASK], ("share", []), "wrong_phase", []),
    "two stamps": ([ASK], ("share", [*stamped(5)[1], *stamped(6)[1]]), "replay", [SERVER]),
    "a stamp of a user": ([ASK], ("share", [header(770, 5, 1, 2)]), "unknown_peer", [1]),
    "a stamp for another": ([ASK], stamped(5, 1), "malformed", [SERVER]),
    "the stamp again": ([ASK, stamped(5), ("upload", []), ASK], stamped(5), "replay", [SERVER]),
    "an older stamp": ([ASK, stamped(5), ("abandon", []), ASK], stamped(4), "replay", [SERVER]),
    "an upload of one who is idle": ([], ("upload", []), "wrong_phase", []),
    "an upload of one who asked": ([ASK], ("upload", []), "wrong_phase", []),
    "a second upload": ([ASK, stamped(5), ("upload", [])], ("upload", []), "wrong_phase", []),
    "an upload after all": ([ASK, stamped(5), ("abandon", [])], ("upload", []), "wrong_phase", []),
    "a message in upload": ([ASK, stamped(5)], ("upload", stamped(5)[1]), "wrong_phase", []),
    "nothing to abandon": ([], ("abandon", []), "wrong_phase", []),
    "a message in abandon": ([ASK, stamped(5)], ("abandon", stamped(5)[1]), "wrong_phase", []),
    "a share again": ([HOLD], ("hold", [share_from(1, 5)]), "replay", [1, SERVER]),
    "an older share": ([HOLD], ("hold", [share_from(4, 4), share_from(1, 4)]), "replay", [1, SERVER]),
    "a share again after the answer": ([HOLD, GOOD], ("hold", [share_from(1, 5)]), "replay", [1, SERVER]),
    "two shares of one": ([], ("hold", [share_from(1, 5), share_from(1, 6)]), "replay", [1]),
    "a share of itself": ([], ("hold", [share_from(2, 5)]), "unknown_peer", [2]),
    "a share of a stranger": ([], ("hold", [share_from(5, 5)]), "unknown_peer", [5]),
    "a share for another": ([], ("hold", [share_from(1, 5, receiver=3)]), "malformed", [1]),
    "a share that is short": ([], ("hold", [share_from(1, 5, entries=[1])]), "length_mismatch", []),
    "a share that is no vector": ([], ("hold", [header(771, 5, 1, 2) + opaque(b"\1\0\0\0")]), "malformed", []),
    "a share above q": ([], ("hold", [share_from(1, 5, entries=[1, 19])]), "noncanonical", []),
    "no buffer": ([HOLD], ("recover", []), "wrong_phase", []),
    "two buffers": ([HOLD], ("recover", [*GOOD[1], *GOOD[1]]), "replay", [SERVER]),
    "a buffer of a user": ([HOLD], ("recover", [header(773, 6, 1, 2) + GOOD[1][0][30:]]), "unknown_peer", [1]),
    "a buffer again": ([HOLD, GOOD], GOOD, "replay", []),
    "an earlier buffer": (
        [HOLD, GOOD, ("hold", [share_from(sender, 6) for sender in (0, 1, 3)])],
        ("recover", [announce(6, [0, 1, 3], [6, 6, 6], [3, 3, 3])]), "replay", [],
    ),
    "a buffer before the own stamp": ([HOLD, ASK, stamped(7)], GOOD, "wrong_phase", []),
    "a share used twice": (
        [HOLD, ("hold", [share_from(4, 6)]), GOOD],
        ("recover", [announce(7, [0, 3, 4], [5, 5, 6], [1, 1, 1])]), "inconsistent_sets", [],
    ),
    "a share that is not held": (
        [HOLD], ("recover", [announce(6, [0, 1, 4], [5, 5, 5], [1, 1, 1])]), "inconsistent_sets", [],
    ),
    "an older share that was replaced": (
        [HOLD, ("hold", [share_from(1, 6)])], GOOD, "inconsistent_sets", [],
    ),
    "a buffer of other lengths": (
        [HOLD], ("recover", [announce(6, [0, 1, 3], [5, 5], [1, 2, 2])]), "inconsistent_sets", [SERVER],
    ),
    "a weight too large": (
        [HOLD], ("recover", [announce(6, [0, 1, 3], [5, 5, 5], [1, 2, 3])]), "inconsistent_sets", [SERVER],
    ),
    "the future": (
        [HOLD], ("recover", [announce(4, [0, 1, 3], [5, 5, 5], [3, 3, 3])]), "inconsistent_sets", [SERVER],
    ),
    "too old": (
        [HOLD], ("recover", [announce(8, [0, 1, 3], [5, 5, 5], [1, 1, 1])]), "inconsistent_sets", [SERVER],
    ),
}  # fmt: skip


def parties(numbers: Sequence[Any]) -> set[Any]:
    return {"server" if number == SERVER else number for number in numbers}


@pytest.mark.requirement(
    "BSA-07", "BSA-08", "BSA-09", "BSA-10", "BSA-21", "BSA-22", "BSA-23", "BSA-25", "BSA-26", "BSA-28", "ERR-01",
    "ADP-21", "MSG-02", "MSG-03", "MSG-04",
)  # fmt: skip
@pytest.mark.parametrize("fault", USER_FAULTS)
def test_a_refused_step_of_a_user_is_as_if_it_had_not_been(node: Node, fault: str) -> None:
    before, wrong, code, blamed = USER_FAULTS[fault]
    user = user_of(TINY, 2)
    rest: list[Step] = [("hold", [share_from(sender, 9) for sender in (0, 1, 3, 4)])]
    rest += [("recover", [announce(9, [0, 1, 3], [9, 9, 9], [3, 3, 3])]), ("upload", [])]
    rest += [ASK, stamped(10), ("upload", [])]
    clean = user.entries(node, [*before, *rest])
    spoilt = user.entries(node, [*before, wrong, *rest])
    assert all("outbox" in entry for entry in clean[: len(before) + 2]), clean
    refused = spoilt.pop(len(before))["reject"]
    assert (refused["code"], set(refused["blamed"])) == (code, parties(blamed)), refused
    assert spoilt == clean


@pytest.mark.requirement("MSG-02", "MSG-03", "SEA-02", "BSA-03")
def test_a_user_refuses_other_sessions_types_and_stamps(node: Node) -> None:
    user, sender = user_of(TINY, 2, sealed=True), user_of(TINY, 1, sealed=True)
    shares = sender.entries(node, [ASK, stamped(5, 1)])[1]["outbox"]
    [data] = [bytes.fromhex(text) for text in shares if receiver_of(bytes.fromhex(text)) == 2]
    other_session = data[:2] + bytes(16) + data[18:]
    faults = [
        (other_session, "wrong_phase", {1}),
        (header(257, 5, 1, 2) + data[30:], "wrong_phase", set()),
        (data[:-1], "malformed", set()),
        (header(771, 6, 1, 2) + data[30:], "bad_ciphertext", {1, "server"}),
        (header(771, 5, 0, 2) + data[30:], "bad_ciphertext", {0, "server"}),
        (data[:-1] + bytes([data[-1] ^ 1]), "bad_ciphertext", {1, "server"}),
    ]
    for wrong, code, blamed in faults:
        refused, kept = user.entries(node, [("hold", [wrong]), ("hold", [data])])
        assert (refused["reject"]["code"], set(refused["reject"]["blamed"])) == (code, blamed)
        assert kept == {"outbox": []}


@pytest.mark.requirement("BSA-06", "ERR-01")
def test_an_update_that_is_too_large_is_refused_when_it_is_sent(node: Node) -> None:
    user = user_of(TINY, 2)
    changes = {"updates": [vector([0, 2, 0]), vector([1, 1, 1])]}
    steps: list[Step] = [ASK, stamped(5), ("upload", []), ("abandon", []), ASK, stamped(6), ("upload", [])]
    entries = [dict(entry) for entry in _script(node, user, steps, **changes)]
    assert [entries[at]["reject"]["code"] for at in (2, 6)] == ["out_of_range", "out_of_range"]
    assert [len(entries[at]["outbox"]) for at in (0, 1, 3, 4, 5)] == [1, 4, 0, 1, 4]


def _script(node: Node, party: Party, steps: Sequence[Step], **changes: Any) -> list[Any]:
    answer = party.script(node, steps, **changes)
    assert "result" in answer, answer
    entries: list[Any] = answer["result"]["steps"]
    return entries


@pytest.mark.requirement("BSA-08", "BSA-26")
def test_a_user_tells_the_latest_round_that_it_knows_of(node: Node) -> None:
    user = user_of(TINY, 2, round="3")
    steps: list[Step] = [ASK, stamped(4), ("abandon", []), HOLD, GOOD, ASK, stamped(7), ("abandon", []), ASK]
    entries = user.entries(node, steps)
    sent = [bytes.fromhex(entries[at]["outbox"][0]) for at in (0, 5, 8)]
    assert sent == [header(769, round, 2, SERVER) for round in (3, 6, 7)]
    share = [(1 + 2 + 2) * x % 19 for x in (1, 2)]
    assert entries[4] == {"outbox": [(header(774, 6, 2, SERVER) + listed(share)).hex()]}


@pytest.mark.requirement("BSA-12")
def test_a_user_may_ask_again_until_it_has_a_stamp(node: Node) -> None:
    entries = user_of(TINY, 2).entries(node, [ASK, ASK, stamped(4)])
    assert entries[0] == entries[1] == {"outbox": [header(769, 0, 2, SERVER).hex()]}
    assert len(entries[2]["outbox"]) == 4


def test_every_stamp_has_a_mask_of_its_own(node: Node) -> None:
    user = user_of(TINY, 2)
    steps: list[Step] = [
        ASK,
        stamped(4),
        ("upload", []),
        ASK,
        stamped(5),
        ("abandon", []),
        ASK,
        stamped(6),
        ("upload", []),
    ]
    entries = user.entries(node, steps)
    for at, (shared, stamp) in enumerate(((1, 4), (4, 5), (7, 6))):
        mask, noise = (entries_of(user.rand[name][at]) for name in ("masks", "noises"))
        inputs = shares_of(TINY, mask, noise)
        expected = {share_from(2, stamp, other, inputs[other]).hex() for other in (0, 1, 3, 4)}
        assert set(entries[shared]["outbox"]) == expected
    for uploaded, stamp, which, at in ((2, 4, 0, 0), (8, 6, 1, 2)):
        vectors = [entries_of(user.setup["updates"][which]), entries_of(user.rand["masks"][at])]
        assert entries[uploaded] == {"outbox": [update_from(2, stamp, scaled(19, [1, 1], vectors)).hex()]}


@pytest.mark.requirement("BSA-07")
def test_steps_for_which_nothing_is_left_are_refused(node: Node) -> None:
    user = user_of(TINY, 2, times=1)
    steps: list[Step] = [ASK, stamped(4), ("upload", []), ASK, stamped(5)]
    assert _script(node, user, steps)[-1]["reject"]["code"] == "bad_param"
    assert _script(node, user, steps[:3], updates=[])[-1]["reject"]["code"] == "bad_param"


# ----------------------------------------------------------------------------------------------------------------------
# What the steps of the server refuse


def asks(*users: int, round: int = 0) -> Step:
    return ("request", [header(769, round, user, SERVER) for user in users])


def deals(*users: int, stamp: int = 0) -> Step:
    others = {user: [other for other in range(5) if other != user] for user in users}
    return ("share", [share_from(user, stamp, other) for user in users for other in others[user]])


def update_from(user: int, stamp: int = 0, entries: Sequence[int] = (1, 2, 3)) -> bytes:
    return header(772, stamp, user, SERVER) + listed(entries)


def uploads(*users: int, stamp: int = 0) -> Step:
    return ("upload", [update_from(user, stamp) for user in users])


def answers(*users: int, round: int = 0, wrong: int | None = None) -> Step:
    """Answers on the mask 0: shares that all are 0, but for one."""
    return ("recover", [header(774, round, user, SERVER) + listed([int(user == wrong), 0]) for user in users])


CLOSE: Step = ("close", [])
BEGUN: list[Step] = [asks(0, 1, 2), deals(0, 1, 2)]
FULL: list[Step] = [*BEGUN, uploads(0, 1, 2)]
CLOSED: list[Step] = [*FULL, CLOSE]
AGAIN: list[Step] = [*CLOSED, answers(0, 1, 2)]

SERVER_FAULTS: dict[str, tuple[list[Step], Step, str, list[Any]]] = {
    "a request of a later round": ([], asks(0, 1, round=1), "wrong_phase", [0]),
    "a request in one round twice": ([asks(0)], asks(1, 0), "wrong_phase", [0]),
    "a request of one in the buffer": (FULL, asks(3, 2), "wrong_phase", [2]),
    "a request of one whose older update is in the buffer": (
        [asks(3), deals(3), *AGAIN, uploads(3)], asks(3, round=1), "wrong_phase", [3],
    ),
    "a request of one in the announced buffer": (CLOSED, asks(2), "wrong_phase", [2]),
    "two requests at once": ([], asks(1, 1), "replay", [1]),
    "a request of a stranger": ([], asks(5), "unknown_peer", [5]),
    "shares of one who has no stamp": ([], deals(0), "inconsistent_sets", [0]),
    "shares under another stamp": ([asks(0)], deals(0, stamp=1), "inconsistent_sets", [0]),
    "shares under an older stamp": (
        [asks(3), *FULL, CLOSE, answers(0, 1, 2), asks(3, round=1)], deals(3), "inconsistent_sets", [3],
    ),
    "a share too few": ([asks(0)], ("share", deals(0)[1][1:]), "inconsistent_sets", [0]),
    "a share too few of one of two": ([asks(0, 1)], ("share", deals(0, 1)[1][1:]), "inconsistent_sets", [0]),
    "a share twice": ([asks(0)], ("share", [*deals(0)[1][1:], deals(0)[1][1]]), "replay", [0]),
    "shares again": (BEGUN, deals(0), "replay", [0]),
    "a share for oneself": ([asks(0)], ("share", [share_from(0, 0, 0)]), "malformed", [0]),
    "a share for the server": ([asks(0)], ("share", [share_from(0, 0, SERVER)]), "malformed", [0]),
    "an update without a stamp": (BEGUN, uploads(3), "wrong_phase", [3]),
    "an update without shares": ([*BEGUN, asks(3)], uploads(3), "wrong_phase", [3]),
    "an update under another stamp": (BEGUN, uploads(0, stamp=1), "wrong_phase", [0]),
    "an update under an older stamp": (
        [asks(3), deals(3), *AGAIN, asks(3, round=1), deals(3, stamp=1)], uploads(3), "wrong_phase", [3],
    ),
    "a second update": ([*BEGUN, uploads(0)], uploads(0), "replay", [0]),
    "a second update after the round": (AGAIN, uploads(0), "replay", [0]),
    "two updates at once": (BEGUN, uploads(0, 1, 0), "replay", [0]),
    "an update that is short": (BEGUN, ("upload", [update_from(0, entries=[1])]), "length_mismatch", []),
    "an update above q": (BEGUN, ("upload", [update_from(0, entries=[1, 2, 19])]), "noncanonical", []),
    "no room": ([asks(0, 1, 2, 3), deals(0, 1, 2, 3)], uploads(0, 1, 2, 3), "wrong_phase", []),
    "no room for one": ([asks(3), deals(3), *FULL], uploads(3), "wrong_phase", []),
    "an update while recovering": ([asks(3), deals(3), *CLOSED], uploads(3), "wrong_phase", []),
    "a buffer that is empty": ([], CLOSE, "wrong_phase", []),
    "a buffer that lacks one": ([*BEGUN, uploads(0, 1)], CLOSE, "wrong_phase", []),
    "closed twice": (CLOSED, CLOSE, "wrong_phase", []),
    "closed again": (AGAIN, CLOSE, "wrong_phase", []),
    "a message in close": (FULL, ("close", [update_from(0)]), "wrong_phase", []),
    "answers to nothing": (FULL, answers(0, 1, 2), "wrong_phase", []),
    "too few answers": (CLOSED, answers(0, 1), "below_threshold", []),
    "no answers": (CLOSED, answers(), "below_threshold", []),
    "answers on no codeword": (CLOSED, answers(3, 0, 1, 2, wrong=2), "bad_share", [0, 1, 2, 3]),
    "answers to another buffer": (CLOSED, answers(0, 1, 2, round=1), "wrong_phase", [0]),
    "an answer twice": (CLOSED, answers(0, 1, 2, 0), "replay", [0]),
    "an answer of a stranger": (CLOSED, answers(0, 1, 2, 5), "unknown_peer", [5]),
    "an answer above q": (
        CLOSED, ("recover", [*answers(0, 1)[1], header(774, 0, 2, SERVER) + listed([0, 19])]), "noncanonical", [],
    ),
    "an answer for a user": (
        CLOSED, ("recover", [*answers(0, 1)[1], header(774, 0, 2, 3) + listed([0, 0])]), "malformed", [2],
    ),
}  # fmt: skip


@pytest.mark.requirement(
    "BSA-12", "BSA-13", "BSA-14", "BSA-15", "BSA-17", "BSA-20", "BSA-30", "BSA-31", "ERR-01", "ADP-21", "MSG-03",
    "MSG-04",
)  # fmt: skip
@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_refused_step_of_the_server_is_as_if_it_had_not_been(node: Node, fault: str) -> None:
    before, wrong, code, blamed = SERVER_FAULTS[fault]
    server = server_of(TINY)
    rest: list[Step] = []
    for round in range(3):
        for user in range(3):
            rest += [asks(user, round=round), deals(user, stamp=round), uploads(user, stamp=round)]
        rest += [CLOSE, answers(0, 1, 2, round=round)]
    clean = server.entries(node, [*before, *rest])
    spoilt = server.entries(node, [*before, wrong, *rest])
    assert all("outbox" in entry for entry in clean[: len(before)]), clean
    assert any("aggregate" in entry for entry in clean)
    refused = spoilt.pop(len(before))["reject"]
    assert (refused["code"], set(refused["blamed"])) == (code, parties(blamed)), refused
    assert spoilt == clean


@pytest.mark.requirement("BSA-16", "BSA-11", "BSA-19")
def test_the_server_refuses_an_update_that_is_too_old_and_takes_one_that_is_not(node: Node) -> None:
    server = server_of(TINY)
    steps: list[Step] = [asks(3, 4), deals(3, 4)]
    for round in range(3):
        steps += [asks(0, 1, round=round), deals(0, 1, stamp=round), uploads(0, 1, stamp=round)]
        steps += [asks(2, round=round), deals(2, stamp=round), uploads(2, stamp=round)] if round < 2 else [uploads(4)]
        steps += [CLOSE, answers(0, 1, 2, round=round)]
    *entries, refused = server.entries(node, [*steps, uploads(3)])
    assert all("outbox" in entry for entry in entries), entries
    assert (refused["reject"]["code"], refused["reject"]["blamed"]) == ("wrong_phase", [3])
    announced = [bytes.fromhex(text) for text in entries[-2]["outbox"]]
    draws = reals_of(server.rand["roundings"][2])
    weights = [weight(TINY, tau, draw) for tau, draw in zip((0, 0, 2), draws, strict=True)]
    assert sorted(announced, key=receiver_of) == [announce(2, [0, 1, 4], [2, 2, 0], weights, user) for user in range(5)]
    assert entries[-1]["aggregate"] == vector(scaled(19, weights, [[1, 2, 3]] * 3))


@pytest.mark.requirement("BSA-20")
def test_the_last_round_has_no_buffer(node: Node) -> None:
    last = 2**32 - 1
    steps: list[Step] = []
    for round in (last - 1, last):
        steps += [asks(0, 1, 2, round=round), deals(0, 1, 2, stamp=round), uploads(0, 1, 2, stamp=round)]
        steps += [CLOSE, answers(0, 1, 2, round=round)]
    *entries, refused, _ = server_of(TINY, round=str(last - 1)).entries(node, steps)
    assert all("outbox" in entry for entry in entries), entries
    assert (refused["reject"]["code"], refused["reject"]["blamed"]) == ("wrong_phase", [])


@pytest.mark.requirement("BSA-30")
def test_the_answers_that_come_later_are_enough_with_those_before(node: Node) -> None:
    steps = [*CLOSED, answers(0, 1), answers(3), answers(0, 1, 3)]
    *_, few, fewer, enough = server_of(TINY).entries(node, steps)
    assert few["reject"]["code"] == fewer["reject"]["code"] == "below_threshold"
    assert enough["aggregate"] == vector(scaled(19, [3, 3, 3], [[1, 2, 3]] * 3))


# ----------------------------------------------------------------------------------------------------------------------
# What belongs to the request as a whole


@pytest.mark.requirement("BSA-01", "BSA-02", "BSA-05", "KEY-03", "KEY-04")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"q": "15"}, "bad_param"), ({"q": "5", "c_g": "1"}, "bad_param"), ({"T": 0}, "bad_param"),
        ({"U": 1}, "bad_param"), ({"D": -1}, "bad_param"), ({"D": 3}, "bad_param"), ({"d": 0}, "bad_param"),
        ({"K": 2}, "bad_param"), ({"K": 6, "c_g": "1", "tau_max": 0}, "bad_param"), ({"tau_max": -1}, "bad_param"),
        ({"c_l": "0"}, "bad_param"), ({"c_g": "0"}, "bad_param"), ({"c_g": "4"}, "bad_param"),
        ({"c_g": "2"}, "bad_param"), ({"tau_max": 3}, "bad_param"), ({"c_l": "4294967297"}, "bad_param"),
        ({"kind": "linear"}, "bad_param"), ({"denominator": 0}, "bad_param"), ({"start": "2"}, "bad_param"),
        ({"kind": 1}, "malformed"), ({"c_l": 1}, "malformed"), ({"N": "5"}, "malformed"),
        ({"session": "00"}, "length_mismatch"), ({"round": "4294967296"}, "out_of_range"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused_before_the_first_step(node: Node, fault: Answer, code: str) -> None:
    for party in (user_of(TINY, 2), server_of(TINY)):
        assert "result" in party.script(node, [])
        assert party.script(node, [], **fault)["reject"]["code"] == code
        assert party.script(node, [("confirm", [])])["reject"]["code"] == "malformed"
    assert "result" in server_of({**TINY, "tau_max": 2**31 - 1, "kind": "hinge", "numerator": 0}).script(node, [])


@pytest.mark.requirement("BSA-02")
def test_the_average_is_one_division_of_exact_numbers(node: Node) -> None:
    exact = {**LARGE, "K": 4, "c_g": "524288", "c_l": "4294967296"}  # 2**32 * 2**2 * 2**19 = 2**53
    assert "result" in server_of(exact).script(node, [])
    assert server_of({**exact, "c_g": "524289"}).script(node, [])["reject"]["code"] == "bad_param"


@pytest.mark.requirement("BSA-05", "KEY-03", "KEY-04", "RND-04", "ADP-26")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ({"user": 5}, "unknown_peer"),
        ({"updates": [vector([1, 1])]}, "length_mismatch"),
        ({"updates": [vector([1, 1, 1]), vector([1, 1, 19])]}, "noncanonical"),
        ({"masks": [vector([1, 1, 1]), vector([1, 1])]}, "length_mismatch"),
        ({"masks": [vector([1, 1, 19])]}, "noncanonical"),
        ({"noises": [vector([1])]}, "length_mismatch"),
        ({"noises": [vector([1, 19])]}, "noncanonical"),
        ({"noises": vector([1, 1])}, "malformed"),
        ({"channel": "open"}, "malformed"),
        ({"channel": {"private": "00" * 31, "roster": [key.hex() for key in ROSTER[:5]]}}, "length_mismatch"),
        ({"channel": {"private": "00" * 32, "roster": [key.hex() for key in ROSTER[:4]]}}, "length_mismatch"),
        ({"channel": {"private": "00" * 32, "roster": [ROSTER[0].hex()] * 5}}, "bad_param"),
    ],
)
def test_a_wrong_setup_of_a_user_is_refused_as_a_whole(node: Node, fault: Answer, code: str) -> None:
    party = user_of(TINY, 2)
    assert party.script(node, [ASK], **fault)["reject"]["code"] == code
    changed = {name: {**value, **{k: v for k, v in fault.items() if k in value}} for name, value in
               (("setup", party.setup), ("rand", party.rand))}  # fmt: skip
    new = {"handle": "x", "protocol": "basecagg", "role": "user", "numbers": TINY, "session": SESSION.hex()}
    assert node.code("session.new", {**new, "round": "0", "setup": changed["setup"]}, changed["rand"]) == code


@pytest.mark.requirement("ADP-26", "ADP-27", "STL-07")
def test_sessions_have_exactly_the_numbers_and_phases_of_the_text(node: Node) -> None:
    new: dict[str, Any] = {"handle": "y", "protocol": "basecagg", "role": "server", "numbers": TINY, "round": "0"}
    new.update(session=SESSION.hex(), setup={})
    for numbers in ({**TINY, "W": 4}, {name: TINY[name] for name in TINY if name != "start"}):
        assert node.code("session.new", {**new, "numbers": numbers}, {"roundings": []}) == "malformed"
    assert node.code("session.new", new, {"roundings": [reals([0.5, 0.5])]}) == "length_mismatch"
    assert node.code("session.new", new, {"roundings": [reals([0.5, 0.5, 2**-54])]}) == "out_of_range"
    node.result("session.new", new, {"roundings": []})
    for phase in ("hold", "abandon", "confirm", "toString"):
        assert node.code("session.step", {"handle": "y", "phase": phase, "inbox": []}) == "bad_param"
    node.result("session.free", {"handle": "y"})
