"""Privacy from outside: leaks are found and named, probabilities are what is stated, and right code gives no alarm."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from hashlib import shake_256
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import Connection, DirectConnection, ProcessConnection
from secagg_spec.conformance.adapter.wire import unpack
from secagg_spec.conformance.cases import strategies as cases
from secagg_spec.conformance.cases.lightsecagg_parties import Agreed, UserSession
from secagg_spec.conformance.checks import REGISTRY, outside_chance, outside_draws
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.outside import chance, contrast, leaks, seeds, spread
from secagg_spec.conformance.outside.leaks import EVERYBODY, Entry
from secagg_spec.conformance.outside.probing import POINTS, SWEEP, NotAffine, everything, points, probe
from secagg_spec.conformance.outside.views import LightRound
from secagg_spec.conformance.running import repros
from secagg_spec.conformance.running.expectations import VERDICTS
from secagg_spec.conformance.running.runner import Outcome, Settings, first_failure, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import DRAWING, OPERATIONS, PARTIES
from secagg_spec.conformance.targets import TARGETS
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.messages import parse
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare
from tests.conformance import narrow
from tests.conformance.leaky import LEAKS as LEAKY
from tests.conformance.leaky import Leaky
from tests.quick import exhaustive, one_in, part

pytestmark = pytest.mark.usefixtures("unshrunk")

OURS = [check for check in REGISTRY.values() if check.id.startswith("privacy/")]
BY_CHANCE = [check for check in OURS if check.id.endswith(("/seeds", "/residues"))]
BY_ELEMENT = [check for check in OURS if check.id.endswith(("/elements", "basa.mask", "heterosag.mask"))]
BY_COUNTS = [c for c in REGISTRY.values() if re.search(r"/(uniform|(often|alike)-.*)$|^privacy/session", c.id)]
"""Checks that compare how often something occurs with how often it should, each six times at most."""
BY_CONTRAST = [check for check in OURS if check.id.endswith("/contrast")]
SMALL = st.integers(0, 5)


def outcome(check: str, connection: Connection | None = None, cases: int = 20) -> Outcome:
    """Return what a check finds on an adapter, the reference when none is given."""
    asked = connection or DirectConnection(reference.build().answer)
    return run_check(asked, greet(asked.ask), REGISTRY[check], Settings(cases=cases))


def found(check: str, mutant: str, cases: int = 20) -> Outcome:
    """Return what a check finds on the reference with a mutant."""
    with mutants.planted(mutant):
        return outcome(check, cases=cases)


# ----------------------------------------------------------------------------------------------- equal draws, counted


@pytest.mark.requirement("CNF-31")
@pytest.mark.parametrize(("n", "size"), [(1, 3), (2, 2), (3, 4), (4, 5), (5, 3)])
def test_the_probability_of_equal_draws_is_bounded(n: int, size: int) -> None:
    draws = list(product(range(size), repeat=n))
    equal = [sum(a == b for a, b in combinations(values, 2)) for values in draws]
    assert chance.collision(n, size) == Fraction(sum(map(bool, equal)), len(draws))
    assert chance.collision_bound(n, size) == Fraction(sum(equal), len(draws)) >= chance.collision(n, size)


@pytest.mark.requirement("CNF-31")
@pytest.mark.parametrize(("q", "n"), [(2, 1), (2, 5), (3, 3), (3, 6), (4, 5)])
def test_the_probability_of_a_missing_value_is_bounded(q: int, n: int) -> None:
    draws = list(product(range(q), repeat=n))
    absent = [q - len(set(values)) for values in draws]
    assert chance.missing(q, n) == Fraction(sum(map(bool, absent)), len(draws))
    assert chance.missing_bound(q, n) == Fraction(sum(absent), len(draws)) >= chance.missing(q, n)


@pytest.mark.requirement("CNF-31")
@pytest.mark.parametrize("q", [2, 3, 7, 251, 1021, 1024])
def test_as_many_draws_as_the_stated_rate_needs(q: int) -> None:
    n = chance.enough(q)
    assert chance.missing_bound(q, n) <= Fraction(1, 2**chance.ALARM_BITS) < chance.missing_bound(q, n - 1)


@pytest.mark.requirement("CNF-31")
def test_uniform_fingerprints_are_all_different() -> None:
    for n in (2, 100, 4000, chance.MOST_DRAWS):
        assert chance.collision_bound(n, 2 ** chance.fingerprint_bits(n)) <= Fraction(1, 2**chance.ALARM_BITS)


@pytest.mark.requirement("CNF-31")
@pytest.mark.parametrize(("n", "bits"), [(4, 3), (10, 5), (40, 8), (100, 11)])
def test_what_is_said_to_be_seen_is_seen_at_least(n: int, bits: int) -> None:
    assert 0 <= chance.detection(n, bits) <= chance.collision(n, 2**bits)
    assert chance.collision(n, 2**bits) - Fraction(chance.detection(n, bits)) < Fraction(1, 8)


@pytest.mark.requirement("CNF-31")
def test_a_million_draws_see_38_bits_six_times_in_seven() -> None:
    assert chance.draws(26_215) == chance.draws(10**6) == chance.MOST_DRAWS == 2**20
    assert chance.visible_bits(2**20) == 38
    assert chance.collision_bound(2**20, 2**38) == 2 - Fraction(1, 2**19)
    assert 0.8646 < chance.detection(2**20, 38) < 0.8647
    assert 0.632 < chance.detection(2**20, 39) < 0.633
    assert chance.detection(2**20, 36) > 0.9996


@pytest.mark.requirement("CNF-31")
@pytest.mark.parametrize("n", [40, 800, 4000, 2**12, 2**20])
def test_visible_bits_are_the_most_that_are_seen_so_often(n: int) -> None:
    bits = chance.visible_bits(n)
    assert chance.detection(n, bits) > 0.85
    assert chance.detection(n, bits + 1) < chance.detection(2**20, 38) + 0.01


@pytest.mark.requirement("CNF-31")
def test_all_checks_by_chance_of_a_run_together_alarm_less_than_stated() -> None:
    in_each = 2
    pairs = Fraction(len(seeds.alike()), 2**outside_chance.FINGERPRINT)
    together = len(BY_CHANCE) * (Fraction(in_each, 2**chance.ALARM_BITS) + pairs)
    together += len(BY_ELEMENT) * Fraction(1, 2**chance.SPREAD_BITS)
    together += len(BY_COUNTS) * Fraction(6, 2**60)
    assert len(BY_COUNTS) > 20
    together += len(BY_CONTRAST) * Fraction(3, 2**contrast.ALARM_BITS)
    assert len(BY_CHANCE) > 10
    assert len(BY_CONTRAST) == 5
    assert together < Fraction(1, 2**chance.RUN_BITS) / 8


def test_seeds_that_are_alike_differ_and_have_in_common_what_is_said() -> None:
    pairs = {how: (first, second) for first, second, how in seeds.alike()}
    assert all(first != second and len(first) == len(second) == 32 for first, second in pairs.values())
    words = {how: [np.frombuffer(seed, "<u4") for seed in pair] for how, pair in pairs.items()}
    one, other = words["whose 4-byte words have the same sum bit by bit"]
    assert np.bitwise_xor.reduce(one) == np.bitwise_xor.reduce(other)
    one, other = words["whose 4-byte words have the same sum modulo 2**32"]
    assert (int(one.sum(dtype=np.uint64)) - int(other.sum(dtype=np.uint64))) % 2**32 == 0
    one, other = words["which differ in the order of their 4-byte words"]
    assert Counter(one.tolist()) == Counter(other.tolist())
    for modulus in (2**31 - 1, 2**32 - 1, 2**31, 10**9 + 7):
        first, second = pairs[f"which are congruent modulo {modulus}"]
        assert (int.from_bytes(first, "little") - int.from_bytes(second, "little")) % modulus == 0
    assert len({how for _, _, how in seeds.alike()}) == len(seeds.alike())


# ---------------------------------------------------------------------------------------------------- what is drawn

DRAWN = [(operation, value) for operation, values in outside_draws.SAMPLED.items() for value in values]


@pytest.mark.requirement("CNF-63")
def test_of_each_sampled_value_it_is_said_what_looks_at_it() -> None:
    named = {name: set(values) for name, (_, values) in OPERATIONS.items() if values}
    parties = {f"session.new {name}": set(values) for name, (_, values) in PARTIES.items() if values}
    keys = {name: {"keys"} for name in DRAWING - set(named)}
    assert {name: set(values) for name, values in outside_draws.SAMPLED.items()} == named | parties | keys


@pytest.mark.requirement("CNF-63")
@pytest.mark.parametrize(("operation", "value"), DRAWN)
def test_what_looks_at_a_sampled_value_is_run_where_it_is_drawn(operation: str, value: str) -> None:
    hello = {**reference.build().hello, "randomness": "none"}
    caps, found = narrow.understood(hello), outside_draws.looking(operation, value)
    if isinstance(found, str):
        assert len(found) > 40
        return
    assert found
    for name in found:
        assert operation.partition(" ")[0] in REGISTRY[name].operations
        assert REGISTRY[name].runs_on(caps)


# -------------------------------------------------------------------------------------------------- leaks, decided

ENTRIES = (
    Entry("a", 0, (1, 0), (1,)),
    Entry("b", 1, (1, 1), (1,)),
    Entry("c", 2, (1, 0), (0,), 3),
)


@pytest.mark.requirement("CNF-30")
def test_the_smallest_coalition_is_named() -> None:
    leak = leaks.smallest(7, ENTRIES, ("s", "t"), range(3), 2)
    assert leak is not None
    assert leak.coalition == (2,)
    assert leak.text == "user 2 learns s = c - 3 modulo 7"
    two = leaks.smallest(7, ENTRIES[:2], ("s", "t"), range(2), 2)
    assert two is not None
    assert (two.coalition, two.text) == ((0, 1), "users 0 and 1 learn t = -a + b modulo 7")
    assert leaks.smallest(7, ENTRIES[:2], ("s", "t"), range(2), 1) is None


def distributions(modulus: int, view: list[Entry], secrets: int) -> list[Counter[tuple[int, ...]]]:
    """How often each view comes, over all draws, for each value of the secrets."""
    drawn = len(view[0].drawn)
    counted = []
    for s in product(range(modulus), repeat=secrets):
        counted.append(
            Counter(
                tuple(
                    (e.constant + sum(map(int.__mul__, e.secrets, s)) + sum(map(int.__mul__, e.drawn, r))) % modulus
                    for e in view
                )
                for r in product(range(modulus), repeat=drawn)
            )
        )
    return counted


@pytest.mark.requirement("CNF-30")
@given(st.sampled_from((2, 3, 4, 6)), st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), min_size=1, max_size=3))
def test_a_leak_is_found_exactly_where_views_depend_on_the_secrets(modulus: int, rows: list[tuple[int, ...]]) -> None:
    entries = [
        Entry(f"v{at}", EVERYBODY, (a % modulus, b % modulus), (c % modulus,), d % modulus)
        for at, (a, b, c, d) in enumerate(rows)
    ]
    leak = leaks.find(modulus, entries, ("s", "t"))
    counted = distributions(modulus, entries, 2)
    assert (leak is not None) == any(each != counted[0] for each in counted)
    if leak is not None:
        for column in range(1):
            assert sum(w * e.drawn[column] for w, e in zip(leak.weights, entries, strict=True)) % modulus == 0
        for column in range(2):
            report = sum(w * e.secrets[column] for w, e in zip(leak.weights, entries, strict=True)) % modulus
            assert report == leak.learned[column]
        assert any(leak.learned)


@pytest.mark.requirement("CNF-30")
@given(st.sampled_from((4, 6, 7, 8)), st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), min_size=1, max_size=4))
def test_no_entry_of_a_leak_and_no_member_of_a_coalition_can_be_spared(modulus: int, rows: list[Any]) -> None:
    entries = [Entry(f"v{at}", at, row[:2], row[2:]) for at, row in enumerate(rows)]

    def tell(places: Iterable[int]) -> bool:
        """Whether a combination of these entries is free of draws and no constant, all of them tried."""
        own = [entries[at] for at in places]
        sums = (
            [sum(w * x for w, x in zip(weights, column, strict=True)) % modulus for column in columns]
            for weights in product(range(modulus), repeat=len(own))
            for columns in [zip(*((*e.secrets, *e.drawn) for e in own), strict=True)]
        )
        return any(any(report[:2]) and not any(report[2:]) for report in sums)

    sets = [part for size in range(len(rows) + 1) for part in combinations(range(len(rows)), size)]
    telling = [set(part) for part in sets if part and tell(part)]
    for found in (
        leaks.find(modulus, entries, ("s", "t")),
        leaks.smallest(modulus, entries, ("s", "t"), range(len(rows)), len(rows) + 2),
    ):
        assert (found is not None) == bool(telling)
        if found is not None:
            used = {int(name[1:]) for name, weight in zip(found.names, found.weights, strict=True) if weight}
            assert [part for part in telling if part <= used] == [used]


@pytest.mark.requirement("CNF-30")
@pytest.mark.parametrize("modulus", [6, 7])
def test_coalitions_that_see_nothing_learn_nothing(modulus: int) -> None:
    only_two = [Entry("v", 2, (1,), (0,))]
    for entries, users in (((), range(3)), (only_two, range(2))):
        assert leaks.smallest(modulus, entries, ("s",), users, 2) is None
    leak = leaks.smallest(modulus, only_two, ("s",), range(3), 9)
    assert leak is not None
    assert leak.coalition == (2,)


@pytest.mark.slow
@pytest.mark.requirement("CNF-30")
def test_a_drawn_coalition_is_named_without_those_it_does_without() -> None:
    """User 3 hides a value with the draws of users 17 and 23; all pairs are decided, and drawn coalitions of 20."""
    entries = [Entry(f"v{at}", at, (at,), tuple(int(k == at) for k in range(40))) for at in range(40)]
    entries[3] = Entry("v3", 3, (3,), tuple(int(k in (17, 23)) for k in range(40)))
    leak = leaks.smallest(101, entries, ("s",), range(40), 20)
    assert leak is not None
    assert leak.coalition == (3, 17, 23)


@pytest.mark.requirement("CNF-30")
def test_what_is_allowed_is_no_leak() -> None:
    total = [Entry("sum", EVERYBODY, (1, 1), ())]
    assert leaks.find(4, total, ("s", "t"), [(1, 1)]) is None
    double = leaks.find(4, total, ("s", "t"), [(2, 2)])
    assert double is not None
    assert leaks.find(4, [Entry("v", EVERYBODY, (2, 0), ())], ("s", "t"), [(1, 0)]) is None


@given(st.integers(0, 10**6), st.sampled_from([2, 3, 5, 7]))
def test_coalitions_that_are_decided_together_are_decided_as_one_by_one(seed: int, p: int) -> None:
    drawn = np.random.default_rng(seed)
    users, width = range(int(drawn.integers(2, 6))), 5
    rows = [(user, drawn.integers(0, p, width).tolist()) for user in users for _ in range(drawn.integers(1, 3))]
    entries = [Entry(f"v{at}", user, tuple(row[:2]), tuple(row[2:])) for at, (user, row) in enumerate(rows)]
    sets = list(combinations(users, len(users) - 1))
    views = {users: [entry for entry in entries if entry.holder in users] for users in sets}
    slow = [users for users in sets if leaks.find(p, views[users], ("s", "t"), (), users)]
    assert leaks._learning(p, entries, sets) == (slow[0] if slow else None)


def test_of_many_coalitions_some_are_drawn_and_the_check_says_so() -> None:
    entries = [Entry(f"v{at}", at, (1,), (0,) * at + (1,) + (0,) * (39 - at)) for at in range(40)]
    assert leaks.sampled(range(40), entries, 20)
    assert not leaks.sampled(range(40), entries, 1)
    sets = list(leaks.coalitions(range(40), 20, 16))
    assert len([users for users in sets if len(users) == 20]) == 16
    assert all(len(set(users)) == len(users) <= 20 for users in sets)


def evaluated(report: Mapping[str, Any], values: Mapping[str, int]) -> int:
    """The value of a combination by name."""
    return sum(int(weight) * values[name] for name, weight in report.items())


@pytest.mark.requirement("CNF-30")
@pytest.mark.parametrize("mutant", ["share-in-clear", "noise-for-two-columns", "noise-rows-alike"])
def test_a_leak_can_be_computed_from_the_transcript(mutant: str) -> None:
    failure = found("privacy/mds.encode", mutant).failure
    assert failure is not None
    assert failure.verdict == "leaked"
    report: Any = failure.expected
    q, learned = int(report["modulus"]), []
    for exchange in failure.transcript:
        assert exchange.answer is not None
        values = {f"mask[{at}]": v for at, v in enumerate(unpack(exchange.request.params["mask"]).tolist())}
        for user, text in enumerate(exchange.answer.value["shares"]):
            values |= {f"shares[{user}][{at}]": v for at, v in enumerate(unpack(text).tolist())}
        learned.append(evaluated(report["learns"], values) % q)
        assert (evaluated(report["from"], values) - int(report["less"])) % q == learned[-1]
    assert len(set(learned)) > 1
    assert 1 <= len(report["coalition"]) <= failure.transcript[0].request.params["T"]
    assert all(int(name[7]) in report["coalition"] for name in report["from"])


def test_what_is_not_affine_cannot_be_decided() -> None:
    with pytest.raises(NotAffine, match="no affine map modulo 7"):
        probe(7, lambda x: [x[0] * x[0] % 7], [everything(7)])
    found = probe(7, lambda x: [(2 * x[0] + 3 * x[1] + 1) % 7], [everything(7)] * 2)
    assert (found.matrix, found.constant) == (((2, 3),), (1,))


@pytest.mark.requirement("CNF-66")
def test_points_follow_from_the_seed_and_each_input_goes_through_its_values() -> None:
    spans = [everything(101), (-50, 50), (0, 2**64)]
    first, again, other = (list(points(101, spans, seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 1 + SWEEP + POINTS
    for seen in (first, other):
        assert all({point[at] for point in seen} == set(range(101)) for at in (0, 1))
        assert len({(point[0], point[1]) for point in seen}) > 600
    wide = [point[0] for point in points(2**521 - 1, [(0, 2**256 - 1)], 3)]
    assert set(range(33)) <= set(wide)
    assert {2**256 - 1 - at for at in range(33)} <= set(wide)
    assert {value & 255 for value in wide} == {value >> 248 for value in wide} == set(range(256))


@pytest.mark.requirement("CNF-67")
def test_longer_runs_decide_more_cases() -> None:
    check = REGISTRY["privacy/mds.encode"]
    assert [check.count(cases) for cases in (1, 20, 100, 200, 10_000)] == [1, 6, 6, 12, 600]
    assert REGISTRY["privacy/mds.encode/edges"].count(10_000) == 1
    ours = [check for check in OURS if check.judge.__module__.endswith(("_masks", "_probes", "_rounds"))]
    assert len(ours) > 10
    assert all(check.grows != check.id.endswith("/edges") for check in ours)


@pytest.mark.requirement("CNF-67")
def test_the_edges_are_those_of_all_numbers_that_are_declared() -> None:
    caps = greet(DirectConnection(reference.build().answer).ask)
    found = cases.edges(caps, "mds.encode")
    whole = [code for q in (3, 5, 13, 17) for code in _codes(q)]
    assert min(code["q"] for code in found) == min(code["q"] for code in whole)
    assert any((code["q"], code["N"]) == (13, 12) for code in found)
    assert max(code["T"] for code in found) == max(code["T"] for code in whole) == 11
    assert (12, 6) in {(code["N"], code["T"]) for code in found}
    narrowed = cases.narrowed(caps, "mds.encode", [101])
    assert {code["q"] for code in cases.edges(narrowed, "mds.encode")} == {101}


def many(**ranges: Any) -> dict[str, Any]:
    """A hello that declares codes alone, of such numbers."""
    return {**reference.build().hello, "operations": {"mds.encode": {"ranges": ranges}}}


@pytest.mark.requirement("CNF-67")
@pytest.mark.parametrize(
    ("N", "left_out"), [({"max": 12}, False), ({"values": [100]}, False), ({"values": [150]}, True)]
)
def test_codes_whose_matrix_is_too_large_are_left_out(N: dict[str, Any], left_out: bool) -> None:
    caps = greet(DirectConnection(narrow.adapter(many(N=N))).ask)
    found = cases.edges(caps, "mds.encode")
    assert all(code["N"] * code["U"] <= cases.MATRIX for code in found)
    assert any(code["T"] > 8 for code in found)
    assert cases.crowded(caps, "mds.encode") == left_out


@pytest.mark.slow
@pytest.mark.requirement("CNF-76")
@pytest.mark.parametrize(("U", "verdict"), [({"values": [2, 150]}, "pass"), ({"values": [150]}, "unsupported")])
def test_a_pass_says_which_codes_were_left_out(U: dict[str, Any], verdict: str) -> None:
    connection = DirectConnection(narrow.adapter(many(N={"values": [150]}, U=U, T={"max": 1})))
    _, outcomes = run(connection, Settings(cases=1, seed=1, pattern="privacy/mds.encode,privacy/mds.encode/edges"))
    assert [outcome.verdict for outcome in outcomes] == [verdict] * 2
    said = [f"codes with N U above {cases.MATRIX:,} were left out" in outcome.note for outcome in outcomes]
    assert said == [verdict == "pass"] * 2


def test_the_text_says_which_codes_are_left_out() -> None:
    text = " ".join((resources.root("spec") / "conformance.md").read_text(encoding="utf-8").split())
    assert f"A kit that leaves out codes with N U above {cases.MATRIX:,}," in text


def _codes(q: int) -> list[dict[str, int]]:
    """All codes modulo q with at most 12 users."""
    return [
        {"q": q, "N": N, "U": U, "T": T} for N in range(2, min(q, 13)) for U in range(2, N + 1) for T in range(1, U)
    ]


# ------------------------------------------------------------------------------------------- elements by themselves


@pytest.mark.requirement("CNF-65")
@pytest.mark.parametrize(("p", "d", "n"), [(2, 1, 3), (2, 2, 4), (3, 1, 3), (3, 2, 3), (5, 1, 3)])
def test_the_probability_that_a_combination_is_constant_is_bounded(p: int, d: int, n: int) -> None:
    draws = [np.array(rows, dtype=np.uint64).reshape(n, d) for rows in product(range(p), repeat=n * d)]
    failed = [spread.blind(p, rows, residues=False) is not None for rows in draws]
    assert 0 < Fraction(sum(failed), len(draws)) <= spread.constant_bound(p, d, n)


@pytest.mark.requirement("CNF-65")
@pytest.mark.parametrize(
    ("R", "d", "n"), [(2, 1, 4), (2, 2, 5), (3, 1, 6), (3, 2, 4), (4, 1, 6), (12, 1, 4), (13, 2, 2)]
)
def test_the_probability_that_a_residue_is_missing_is_bounded(R: int, d: int, n: int) -> None:
    draws = [np.array(rows, dtype=np.uint64).reshape(n, d) for rows in product(range(R), repeat=n * d)]
    missed = [any(True for _ in spread._uncovered(R, rows)) for rows in draws]
    assert 0 < Fraction(sum(missed), len(draws)) <= spread.uncovered_bound(R, d, n)


@pytest.mark.requirement("CNF-65")
@pytest.mark.parametrize("R", [2, 7, 8, 11, 12, 63, 64, 97, 10**6, 2**32])
@pytest.mark.parametrize("d", [1, 8])
def test_rows_suffice_for_the_stated_rate(R: int, d: int) -> None:
    n = spread.enough(R, d, 48, residues=True)
    total = sum((spread.constant_bound(p, d, n) for p in spread.primes(R)), Fraction())
    total += spread.uncovered_bound(R, d, n)
    assert total <= Fraction(1, 2**48)
    assert np.prod(spread.primes(R)) == R or R in (8, 12, 63, 64, 10**6, 2**32)


@pytest.mark.requirement("CNF-65")
@pytest.mark.parametrize("R", [12, 13, 63, 64, 97, 1000, 4093])
def test_cells_are_counted_as_they_are(R: int) -> None:
    counted = Counter(spread._cell(R, value) for value in range(R))
    assert sorted(counted.values()) == sorted(spread._cells(R))
    assert len(counted) == (8 if R >= 64 else 4)


@pytest.mark.requirement("CNF-65")
@pytest.mark.parametrize(
    ("R", "kind"), [*product((13, 97, 2**32 - 5), ("even",)), *product((97, 2**31 - 1, 2**32), ("lower", "upper"))]
)
@given(st.integers(0, 2**32))
def test_even_masks_and_masks_of_half_the_bits_are_seen_under_any_constant(R: int, kind: str, seed: int) -> None:
    """The second of two elements leaks."""
    draws = np.random.default_rng(seed)
    rows = draws.integers(0, R, (spread.enough(R, 2, 52, residues=True), 2), dtype=np.uint64)
    assert spread.blind(R, rows, residues=True) is None
    spoilt, half = rows.copy(), np.uint64(1 << (R.bit_length() // 2))
    spoilt[:, 1] = {"even": rows & ~np.uint64(1), "lower": rows % half, "upper": rows - rows % half}[kind][:, 1]
    moved = (spoilt + draws.integers(0, R, 2, dtype=np.uint64)) % np.uint64(R)
    found = spread.blind(R, moved, residues=True)
    assert found is not None
    assert [at for at, _ in found.weights] == [1]
    assert found.holds(moved)
    assert not found.holds(rows)


@pytest.mark.requirement("CNF-65")
def test_an_element_that_follows_from_its_neighbour_is_seen() -> None:
    first = np.arange(700, dtype=np.uint64) % np.uint64(7)
    for powers in ((0, 0, 1), (2, 1, 5), (1, 3), (0, 0, 0, 0, 0, 1)):
        values = [sum(c * x**at for at, c in enumerate(powers)) % 7 for x in first.tolist()]
        second = np.array(values, dtype=np.uint64)
        found = spread.blind(7, np.stack([first, second], axis=1), residues=True)
        assert found is not None
        assert len(found.weights) == 2 or len(set(second.tolist())) < 7
    square = np.array(list(product(range(7), repeat=2)), dtype=np.uint64)
    assert spread.blind(7, square, residues=True) is None


@pytest.mark.slow
@pytest.mark.requirement("CNF-65", "CNF-66", "CNF-67")
@pytest.mark.parametrize("leaky", one_in(4, part(16, LEAKY)), ids=lambda leaky: leaky.name)
def test_an_adapter_of_the_table_is_found_by_its_check(leaky: Leaky) -> None:
    connection = DirectConnection(leaky.build(reference.build)().answer)
    caps, check = greet(connection.ask), REGISTRY[leaky.found]
    assert any(first_failure(connection, caps, check, Settings(seed=seed)) for seed in range(4))


# --------------------------------------------------------------------------------------------- bugs that are planted

LEAKS = {
    "share-in-clear": "privacy/mds.encode",
    "noise-for-two-columns": "privacy/lightsecagg.user/edges",
    "noise-rows-alike": "privacy/mds.encode",
    "last-noise-row-forgotten": "privacy/mds.encode",
    "points-from-zero": "privacy/mds.encode",
    "shamir-points-from-zero": "privacy/shamir.share",
    "shamir-degree-one-short": "privacy/shamir.share",
    "mask-repeats": "privacy/lightsecagg.mask",
    "mask-of-one-neighbour": "privacy/secagg.user",
    "self-mask-left-out": "privacy/secagg.user",
    "second-share-released": "privacy/lightsecagg.user/once",
    "second-answer": "privacy/secagg.user/once",
    "both-secrets-released": "privacy/secagg.user/once",
    "releases-both-secrets": "privacy/secagg.unmasking",
    "unmasks-as-often-as-asked": "privacy/secagg.unmasking",
    "first-segment-alone-is-masked": "privacy/heterosag.mask",
    "basa-own-mask-forgotten": "privacy/basa.mask",
    "noise-from-16-bits": "privacy/mds.encode/seeds",
    "noise-from-32-bits": "privacy/mds.encode/seeds",
    "noise-without-the-last-residue": "privacy/mds.encode/residues",
    "coefficients-from-16-bits": "privacy/shamir.share/seeds",
    "coefficients-from-a-sum-of-words": "privacy/shamir.share/seeds",
    "user-mask-from-32-bits": "privacy/lightsecagg.user/seeds",
    "user-mask-never-changes": "privacy/lightsecagg.user/seeds",
    "user-mask-without-the-last-residue": "privacy/lightsecagg.user/residues",
    "key-pairs-from-5-bits": "privacy/pair.agree/seeds",
    "own-stream-from-a-sum-of-words": "privacy/prg.expand/seeds",
    "own-stream-without-its-upper-end": "privacy/prg.expand/residues",
}


@pytest.mark.slow
@pytest.mark.requirement("CNF-30")
@pytest.mark.parametrize("mutant", one_in(4, part(2, LEAKS)))
def test_a_planted_leak_is_found_and_told(mutant: str) -> None:
    failure = found(LEAKS[mutant], mutant).failure
    assert failure is not None
    assert failure.verdict == "leaked"
    assert "learn" in failure.message
    report: Any = failure.expected
    assert {"coalition", "server", "learns"} <= set(report)
    assert report["server"] or report["coalition"] or "user 0 alone" in failure.message


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        ("rounding-from-32-bits", "privacy/quantizer.quantize/seeds"),
        ("choices-from-8-bits", "privacy/select.batch/seeds"),
    ],
)
def test_draws_that_repeat_without_telling_anything_are_wrong(mutant: str, check: str) -> None:
    assert found(check, mutant).verdict == "wrong_value"


@pytest.mark.parametrize(
    ("mutant", "check"),
    [("noise-rows-close", "mds.encode/modulus"), ("active-user-noise-rows-close", "lightsecagg_active.user/modulus")],
)
def test_who_draws_rows_close_to_each_other_is_not_found_by_a_crash(mutant: str, check: str) -> None:
    assert found(check, mutant).verdict == "pass"


def test_two_equal_draws_are_reported_with_the_two_requests() -> None:
    failure = found("privacy/mds.encode/seeds", "noise-from-16-bits").failure
    assert failure is not None
    first, second = failure.transcript
    assert first.request.rand != second.request.rand
    assert first.answer is not None
    assert second.answer is not None
    assert first.answer.value["shares"][0] == second.answer.value["shares"][0]


def test_a_stored_failure_is_judged_again_with_as_many_draws() -> None:
    with mutants.planted("noise-from-16-bits"):
        connection = DirectConnection(reference.build().answer)
        seen = run_check(connection, greet(connection.ask), REGISTRY["privacy/mds.encode/seeds"], Settings(cases=20))
        assert seen.failure is not None
        assert seen.failure.draws == (20,)
        assert repros.judge(connection, seen.check.id, seen.failure.draws) is not None
        assert repros.judge(connection, seen.check.id, [1]) is None


def test_the_released_kind_of_generator_is_found_by_two_keys_and_by_the_last_residue() -> None:
    seen = found("privacy/prg.expand/seeds", "own-stream-from-a-sum-of-words").failure
    assert seen is not None
    assert "which differ in the order of their 4-byte words" in seen.message
    last = found("privacy/prg.expand/residues", "own-stream-without-its-upper-end").failure
    assert last is not None
    assert "modulo 1024 the residue 1023 (the last residue) never occurs" in last.message


def test_leaked_is_a_verdict_that_may_be_expected() -> None:
    assert "leaked" in VERDICTS


# ----------------------------------------------------------------------------------------------------- no alarm


CASES = 6 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 2
"""Cases of each check on implementations that are right; `make soak` and the profile ``thorough`` draw more."""


def alarms(connection: Connection) -> dict[str, str]:
    """The failures of all checks of privacy from outside that an adapter can be asked for."""
    caps = greet(connection.ask)
    ran = part(3, (check for check in OURS if check.runs_on(caps)))
    outcomes = [run_check(connection, caps, check, Settings(cases=CASES, seed=7)) for check in ran]
    connection.close()
    assert len(ran) >= 6
    assert all(each.cases for each in outcomes)
    return {each.check.id: each.failure.message for each in outcomes if each.failure}


@pytest.mark.slow
@pytest.mark.parametrize("grade", [pytest.param("seeded", marks=exhaustive), "none"])
def test_the_reference_that_draws_itself_gives_no_alarm(grade: str) -> None:
    hello = {**reference.build().hello, "randomness": grade, "policy": {"prg.stream": "other"}}
    assert alarms(DirectConnection(narrow.adapter(hello))) == {}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_independent_implementation_gives_no_alarm() -> None:
    assert alarms(TARGETS["node"].connect(10.0)) == {}


@pytest.mark.requirement("CNF-31")
def test_a_pass_by_chance_says_what_it_cannot_see() -> None:
    hello = {**reference.build().hello, "randomness": "seeded", "policy": {"prg.stream": "other"}}
    seen = outcome("privacy/prg.expand/seeds", DirectConnection(narrow.adapter(hello)), 5)
    assert seen.verdict == "pass"
    assert seen.note == (
        "200 draws were all different: a seed cut to 13 bits would show so with a probability of at least 0.91, "
        "one cut to more bits with less; false alarm at most 2**-48"
    )
    counted = outcome("privacy/prg.expand/residues", DirectConnection(narrow.adapter(hello)), 1)
    assert "modulo 1024 each residue occurs among 41148 elements" in counted.note
    assert "how often is not judged here; false alarm at most 2**-48" in counted.note


@pytest.mark.slow
@pytest.mark.requirement("CNF-31")
def test_every_check_by_chance_says_so_and_no_other_does() -> None:
    hello = {**reference.build().hello, "randomness": "none", "policy": {"prg.stream": "other"}}
    connection = DirectConnection(narrow.adapter(hello))
    for check in part(6, BY_CHANCE):
        assert "false alarm at most 2**-48" in outcome(check.id, connection, 1).note, check.id
    for check in part(6, (c for c in BY_COUNTS if c in OURS and "session.new" not in c.operations)):
        assert re.search(r"may pass; false alarm at most 2\*\*-(59|60)", outcome(check.id, connection, 1).note), (
            check.id
        )
    for check in part(3, BY_ELEMENT):
        assert "false alarm at most 2**-52" in outcome(check.id, connection, 1).note, check.id
    for check in part(3, BY_CONTRAST):
        assert "false alarm at most 2**-50" in outcome(check.id, connection, 1).note, check.id
    assert "alarm" not in outcome("privacy/mds.encode", cases=2).note


# ---------------------------------------------------------------------------------------------- what is hidden


def orders(first: list[bytes], second: list[bytes]) -> Counter[int]:
    """How far apart the answers are, for each order of the questions that could have been drawn."""
    answers, n = [*first, *second], len(first)
    chosen = combinations(range(2 * n), n)
    sides = (([answers[at] for at in one], [answers[at] for at in range(2 * n) if at not in one]) for one in chosen)
    return Counter(contrast.apart(*side)[0].by for side in sides)


@pytest.mark.requirement("CNF-31", "CNF-59")
@pytest.mark.parametrize(
    "answers", [(b"", b"a", b"b", b"c"), (b"a", b"a", b"ab", b"\0\xff"), (b"\0", b"\0", b"\0", b"\1")]
)
def test_of_all_orders_of_the_questions_no_more_are_far_apart_than_stated(answers: tuple[bytes, ...]) -> None:
    for other in ((b"d", b"a", b"\xff", b""), (b"bcd", b"b", b"c", b"c")):
        counted = orders(list(answers), list(other))
        _, statistics = contrast.apart(list(answers), list(other))
        for c in range(1, 5):
            bound = 2 * statistics * math.comb(8, 4 + c)
            assert sum(count for by, count in counted.items() if by >= c) <= bound


@pytest.mark.requirement("CNF-31", "CNF-59")
@pytest.mark.parametrize(("n", "statistics"), [(128, 1), (128, 1000), (300, 60000)])
def test_a_threshold_is_the_least_with_the_stated_rate(n: int, statistics: int) -> None:
    least = contrast.threshold(n, statistics)
    rates = [2 * statistics * Fraction(math.comb(2 * n, n + c), math.comb(2 * n, n)) for c in (least - 1, least)]
    assert rates[1] <= Fraction(1, 2**contrast.ALARM_BITS) < rates[0]
    assert contrast.threshold(5, statistics) == 6


@pytest.mark.requirement("CNF-59")
@pytest.mark.parametrize(
    ("what", "first", "second"),
    [
        ("its length", [b"\0", b""], [b"\0\0", b"\0\0\0"]),
        ("bit 3 of byte 1 from the front", [b"\1\0\5", b"\xfe\0\2"], [b"\2\x08\4", b"\xfd\x08\3"]),
        ("bit 0 of byte 0 from the back", [b"\2", b"ab\2"], [b"\3", b"ab\3"]),
        ("its value, big-endian", [b"\3\x09", b"\4\1"], [b"\5\x08", b"\x0a\3"]),
    ],
)
def test_two_secrets_are_told_apart_by_whatever_differs(what: str, first: list[bytes], second: list[bytes]) -> None:
    found, statistics = contrast.apart(first, second)
    assert found.by == 2
    assert statistics == 3 + 16 * max(map(len, (*first, *second)))
    assert found.what == what
    assert contrast.apart(first, first)[0].by == 0


@pytest.mark.requirement("CNF-60")
@given(st.integers(0, 2**32), st.sets(st.integers(0, 4), min_size=1), st.sets(st.integers(0, 8)), st.booleans())
def test_a_sum_of_bits_of_the_secret_is_found(seed: int, own: set[int], others: set[int], constant: bool) -> None:
    draws = np.random.default_rng(seed)
    n = contrast.enough(10, 5)
    secrets, seen = draws.integers(0, 2, (n, 5)).astype(bool), draws.integers(0, 2, (n, 10)).astype(bool)
    assert contrast.relation(seen, secrets) is None
    total = secrets[:, sorted(own)].sum(axis=1) + seen[:, sorted(others)].sum(axis=1) + constant
    seen[:, 9] = (total & 1).astype(bool)
    assert contrast.relation(seen, secrets) == (sorted(own), [*sorted(others), 9], constant)


@pytest.mark.requirement("CNF-60")
@pytest.mark.parametrize("modulus", [3, 97, 2**521 - 1])
@pytest.mark.parametrize("columns", [1, 4])
def test_rows_in_a_plane_are_told_from_uniform_ones(modulus: int, columns: int) -> None:
    n = columns + contrast.spare(modulus)
    drawn = [
        [int.from_bytes(shake_256(bytes([column, at])).digest(70), "big") % modulus for column in range(columns)]
        for at in range(n)
    ]
    assert contrast.dimension(modulus, drawn) == columns
    assert contrast.dimension(modulus, [[*row, (3 * row[0] + 5) % modulus] for row in drawn]) == columns
    assert 2 * Fraction(1, modulus ** contrast.spare(modulus)) <= Fraction(1, 2**contrast.ALARM_BITS)


@pytest.mark.requirement("SEA-10", "SHM-13", "SHM-07", "MDS-10", "CNF-59", "CNF-60")
@pytest.mark.parametrize(
    ("mutant", "check", "said"),
    [
        ("payload-ends-with-its-plaintext-in-disguise", "pair.seal", "tells the greatest secret from the least"),
        ("shares-are-small-summands", "shamir.share", "its length tells"),
        ("coefficients-alike", "shamir.share", "in 1 directions of 2"),
        ("noise-below-65536", "mds.encode", "tells the greatest secret from the least"),
        ("user-without-noise", "lightsecagg.user", "directions"),
    ],
)
def test_what_is_not_hidden_is_found_by_contrast(mutant: str, check: str, said: str) -> None:
    seen = found(f"privacy/{check}/contrast", mutant)
    assert seen.verdict == "leaked"
    assert seen.failure is not None
    assert said in seen.failure.message


@pytest.mark.slow
@pytest.mark.requirement("CNF-60")
def test_a_relation_with_drawn_secrets_is_found_where_contrast_sees_none() -> None:
    """The sum of two neighbouring bits of the plaintext is the same for zeros and for ones."""
    made = reference.build()
    right = made._handlers["pair.seal"]

    def seal(plaintext: str, **given: Any) -> dict[str, Any]:
        answer = right(plaintext=plaintext, **given)
        number = int(plaintext or "0", 16)
        tail = (number ^ number >> 1) & 2 ** (4 * max(len(plaintext) - 2, 0)) - 1
        return {**answer, "payload": answer["payload"] + f"{tail:0{len(plaintext)}x}"}

    made._handlers["pair.seal"] = seal
    seen = outcome("privacy/pair.seal/contrast", DirectConnection(made.answer))
    assert seen.failure is not None
    assert "the sum of the bits" in seen.failure.message


@pytest.mark.slow
@pytest.mark.requirement("CNF-59")
def test_a_long_payload_that_ends_with_one_byte_of_its_plaintext_is_found() -> None:
    made = reference.build()
    made.hello["policy"] = {"pair.sealing": "other"}
    right = made._handlers["pair.seal"]

    def seal(plaintext: str, **given: Any) -> dict[str, Any]:
        answer = right(plaintext=plaintext, **given)
        last = int(plaintext[-2:], 16) ^ 0x5A if len(plaintext) > 2000 else 0x5A
        return {**answer, "payload": f"{answer['payload']}{last:02x}"}

    made._handlers["pair.seal"] = seal
    seen = outcome("privacy/pair.seal/contrast", DirectConnection(made.answer))
    assert seen.failure is not None
    assert "tells the greatest secret from the least" in seen.failure.message


@pytest.mark.requirement("SEA-11")
@pytest.mark.parametrize("mutant", ["payload-ends-with-its-key", "payload-ends-with-its-plaintext-in-disguise"])
def test_a_payload_that_is_too_long_is_found(mutant: str) -> None:
    seen = found("pair.seal/long", mutant)
    assert seen.verdict == "wrong_value"
    assert seen.failure is not None
    assert "the sealing of the text adds 28" in seen.failure.message


@pytest.mark.slow
@pytest.mark.requirement("SEA-11")
@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (lambda n: 60, "pass"),
        (lambda n: n + 260, "more than twice as many and 256"),
    ],
)
def test_another_sealing_may_be_longer_within_bounds(tail: Callable[[int], int], said: str) -> None:
    made = reference.build()
    made.hello["policy"] = {"pair.sealing": "other"}
    right = made._handlers["pair.seal"]

    def seal(plaintext: str, **given: Any) -> dict[str, Any]:
        answer = right(plaintext=plaintext, **given)
        return {
            **answer,
            "payload": answer["payload"] + shake_256(answer["payload"].encode()).hexdigest(tail(len(plaintext) // 2)),
        }

    made._handlers["pair.seal"] = seal
    seen = outcome("pair.seal/long", DirectConnection(made.answer))
    assert said in (seen.failure.message if seen.failure else seen.verdict)


# ------------------------------------------------------------------------------------------------- whole rounds


def light_round(user: int) -> LightRound:
    """A round in which one user of the reference was probed."""
    numbers = {"q": 97, "N": 5, "D": 0, "U": 3, "T": 1, "d": 2}
    zeros = np.zeros(2, dtype=np.uint64)
    agreed = Agreed(numbers, bytes(16), 0)
    others = [peer for peer in range(5) if peer != user]
    scene = UserSession(agreed, user, zeros, zeros, zeros[:1].reshape(1, 1), {}, tuple(range(5)))

    def core(point: Any) -> list[int]:
        values = np.array(point, dtype=np.uint64)
        arriving = dict(zip(others, values[5:].reshape(4, 1), strict=True))
        moved = replace(scene, update=values[:2], mask=values[2:4], noise=values[4:5].reshape(1, 1), received=arriving)
        shares, masked, answer = (
            [parse(bytes.fromhex(text)) for text in entry["outbox"]] for entry in moved.entries(moved.calls())
        )
        payloads = {m.receiver: m.payload for m in shares if isinstance(m, MaskShare)}
        sent = [int.from_bytes(payloads[peer][-4:], "little") for peer in others]
        [own], [share] = masked, answer
        assert isinstance(own, MaskedUpdate)
        assert isinstance(share, AggregatedShare)
        return [*sent, *own.masked.tolist(), *share.share.tolist()]

    return LightRound(numbers, user, probe(97, core, [everything(97)] * 9), tuple(range(5)))


def test_a_right_round_tells_t_users_the_sum_and_one_more_too_much() -> None:
    played = light_round(2)
    entries = played.entries()
    for size, private in ((0, True), (1, True), (2, False)):
        for coalition in combinations(played.others, size):
            view = [entry for entry in entries if entry.holder is EVERYBODY or entry.holder in coalition]
            leak = leaks.find(97, view, played.secrets, played.allowed(coalition), coalition, server=True)
            assert (leak is None) == private
    assert leaks.find(97, entries[:1], played.secrets) is None
    everything_sent = [entry for entry in entries if entry.holder is EVERYBODY]
    total = leaks.find(97, everything_sent, played.secrets)
    assert total is not None
    assert sorted({*total.learned}) == [0, 1]


@pytest.mark.slow
def test_a_user_that_answers_twice_gives_the_share_of_one_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the smallest case says which update
    failure = found("privacy/lightsecagg.user/once", "second-share-released").failure
    assert failure is not None
    assert "the server alone learns update_1" in failure.message


_CLIENT = """
import random, secrets, sys
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
drawn = random.Random(0) if sys.argv[1] == "seeded" else secrets.SystemRandom()
adapter = Adapter("client", "1", randomness="none")
def agree():
    first, *public = (drawn.randbytes(32).hex() for _ in range(3))
    return {"first": first, "second": first, "public": public}
adapter.operation("pair.agree")(agree)
adapter.run()
"""


@pytest.mark.slow
@pytest.mark.requirement("CNF-88")
def test_processes_that_begin_with_one_seed_are_seen() -> None:
    seen = {}
    for kind in ("fresh", "seeded"):
        connection = ProcessConnection([sys.executable, "-c", _CLIENT, kind])
        try:
            seen[kind] = outcome("privacy/pair.agree/seeds", connection)
        finally:
            connection.close()
    assert seen["fresh"].verdict == "pass"
    failure = seen["seeded"].failure
    assert failure is not None
    assert failure.verdict == "leaked"
    assert "draws 0 and 40 of 80, from two processes, have the same agreed secrets" in failure.message


@pytest.mark.parametrize("check", [check.id for check in OURS])
def test_every_check_has_a_sentence_and_clauses(check: str) -> None:
    assert REGISTRY[check].text.endswith(".")
    assert REGISTRY[check].clauses


@pytest.mark.slow
@pytest.mark.requirement("QNT-11")
@pytest.mark.parametrize("grade", ["seeded", "none"])
@pytest.mark.parametrize(
    "operation",
    part(2, ["quantizer.quantize", "basecagg.encode", "staleness.weight", "secagg.average", "heterosag.round"]),
)
def test_own_roundings_that_are_uniform_give_no_alarm(operation: str, grade: str) -> None:
    connection = DirectConnection(narrow.adapter({**reference.build().hello, "randomness": grade}))
    found = run_check(connection, greet(connection.ask), REGISTRY[f"{operation}/rate"], Settings(cases=100, seed=1))
    assert found.verdict == "pass"
    assert "false alarm at most 2**-60" in found.note
