"""Privacy from outside: leaks are found and named, probabilities are what is stated, and right code gives no alarm."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance import mutants, replay
from secagg_spec.conformance.capabilities import greet
from secagg_spec.conformance.checks import REGISTRY, outside_chance
from secagg_spec.conformance.checks.rounds import Session, UserScene
from secagg_spec.conformance.connection import Connection, DirectConnection
from secagg_spec.conformance.expectations import VERDICTS
from secagg_spec.conformance.outside import chance, leaks, seeds
from secagg_spec.conformance.outside.leaks import EVERYBODY, Entry
from secagg_spec.conformance.outside.probing import NotAffine, everything, probe
from secagg_spec.conformance.outside.views import LightRound
from secagg_spec.conformance.runner import Outcome, Settings, run_check
from secagg_spec.conformance.targets import TARGETS, reference
from secagg_spec.conformance.targets.reference_messages import parse
from secagg_spec.conformance.wire import unpack
from secagg_spec.protocols.lightsecagg import AggregatedShare, MaskedUpdate, MaskShare
from tests.conformance import narrow
from tests.quick import one_in

OURS = [check for check in REGISTRY.values() if check.id.startswith("privacy/")]
BY_CHANCE = [check for check in OURS if check.id.endswith(("/seeds", "/residues"))]
SMALL = st.integers(0, 5)


def outcome(check: str, connection: Connection | None = None, cases: int = 20) -> Outcome:
    """Return what a check finds on an adapter, the reference when none is given."""
    asked = connection or DirectConnection(reference.build().answer)
    return run_check(asked, greet(asked.ask), REGISTRY[check], Settings(cases=cases))


def found(check: str, mutant: str, cases: int = 20) -> Outcome:
    """Return what a check finds on the reference with a planted bug."""
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
    assert len(BY_CHANCE) > 10
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
            told = sum(w * e.secrets[column] for w, e in zip(leak.weights, entries, strict=True)) % modulus
            assert told == leak.learned[column]
        assert any(leak.learned)


@pytest.mark.requirement("CNF-30")
def test_what_is_allowed_is_no_leak() -> None:
    total = [Entry("sum", EVERYBODY, (1, 1), ())]
    assert leaks.find(4, total, ("s", "t"), [(1, 1)]) is None
    double = leaks.find(4, total, ("s", "t"), [(2, 2)])
    assert double is not None
    assert leaks.find(4, [Entry("v", EVERYBODY, (2, 0), ())], ("s", "t"), [(1, 0)]) is None


def test_of_many_coalitions_some_are_drawn_and_the_check_says_so() -> None:
    entries = [Entry(f"v{at}", at, (1,), (0,) * at + (1,) + (0,) * (39 - at)) for at in range(40)]
    assert leaks.sampled(range(40), entries, 20)
    assert not leaks.sampled(range(40), entries, 1)
    sets = list(leaks.coalitions(range(40), 20, 16))
    assert len([users for users in sets if len(users) == 20]) == 16
    assert all(len(set(users)) == len(users) <= 20 for users in sets)


def evaluated(told: Mapping[str, Any], values: Mapping[str, int]) -> int:
    """The value of a combination by name."""
    return sum(int(weight) * values[name] for name, weight in told.items())


@pytest.mark.requirement("CNF-30")
@pytest.mark.parametrize("mutant", ["share-in-clear", "noise-for-two-columns", "noise-rows-alike"])
def test_a_leak_can_be_computed_from_the_transcript(mutant: str) -> None:
    failure = found("privacy/mds.encode", mutant).failure
    assert failure is not None
    assert failure.verdict == "leaked"
    told: Any = failure.expected
    q, learned = int(told["modulus"]), []
    for exchange in failure.transcript:
        assert exchange.answer is not None
        values = {f"mask[{at}]": v for at, v in enumerate(unpack(exchange.request.params["mask"]).tolist())}
        for user, text in enumerate(exchange.answer.value["shares"]):
            values |= {f"shares[{user}][{at}]": v for at, v in enumerate(unpack(text).tolist())}
        learned.append(evaluated(told["learns"], values) % q)
        assert (evaluated(told["from"], values) - int(told["less"])) % q == learned[-1]
    assert len(set(learned)) > 1
    assert 1 <= len(told["coalition"]) <= failure.transcript[0].request.params["T"]
    assert all(int(name[7]) in told["coalition"] for name in told["from"])


def test_what_is_not_affine_cannot_be_decided() -> None:
    with pytest.raises(NotAffine, match="no affine map modulo 7"):
        probe(7, lambda x: [x[0] * x[0] % 7], [everything(7)])
    found = probe(7, lambda x: [(2 * x[0] + 3 * x[1] + 1) % 7], [everything(7)] * 2)
    assert (found.matrix, found.constant) == (((2, 3),), (1,))


# --------------------------------------------------------------------------------------------- bugs that are planted

LEAKS = {
    "share-in-clear": "privacy/mds.encode",
    "noise-for-two-columns": "privacy/lightsecagg.user",
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


@pytest.mark.requirement("CNF-30")
@pytest.mark.parametrize("mutant", one_in(4, LEAKS))
def test_a_planted_leak_is_found_and_told(mutant: str) -> None:
    failure = found(LEAKS[mutant], mutant).failure
    assert failure is not None
    assert failure.verdict == "leaked"
    assert "learn" in failure.message
    told: Any = failure.expected
    assert {"coalition", "server", "learns"} <= set(told)
    assert told["server"] or told["coalition"] or "user 0 alone" in failure.message


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        ("rounding-from-32-bits", "privacy/quantizer.quantize/seeds"),
        ("choices-from-8-bits", "privacy/select.batch/seeds"),
    ],
)
def test_draws_that_repeat_without_telling_anything_are_wrong(mutant: str, check: str) -> None:
    assert found(check, mutant).verdict == "wrong_value"


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
        assert replay.judge(connection, seen.check.id, seen.failure.draws) is not None
        assert replay.judge(connection, seen.check.id, [1]) is None


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


def alarms(connection: Connection, cases: int) -> dict[str, str]:
    """The failures of all checks of privacy from outside that an adapter can be asked for."""
    caps = greet(connection.ask)
    ran = [check for check in OURS if check.runs_on(caps)]
    outcomes = [run_check(connection, caps, check, Settings(cases=cases, seed=7)) for check in ran]
    connection.close()
    assert len(ran) >= 6
    assert all(each.cases for each in outcomes)
    return {each.check.id: each.failure.message for each in outcomes if each.failure}


@pytest.mark.slow
def test_the_reference_gives_no_alarm() -> None:
    assert alarms(DirectConnection(reference.build().answer), 6) == {}


@pytest.mark.slow
@pytest.mark.parametrize("grade", ["seeded", "none"])
def test_the_reference_that_draws_itself_gives_no_alarm(grade: str) -> None:
    hello = {**reference.build().hello, "randomness": grade, "policy": {"prg.stream": "other"}}
    assert alarms(DirectConnection(narrow.adapter(hello)), 3) == {}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_independent_implementation_gives_no_alarm() -> None:
    assert alarms(TARGETS["node"].connect(10.0), 4) == {}


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


@pytest.mark.requirement("CNF-31")
def test_every_check_by_chance_says_so_and_no_other_does() -> None:
    hello = {**reference.build().hello, "randomness": "none", "policy": {"prg.stream": "other"}}
    connection = DirectConnection(narrow.adapter(hello))
    for check in BY_CHANCE:
        assert "false alarm at most 2**-48" in outcome(check.id, connection, 1).note, check.id
    assert outcome("privacy/mds.encode", cases=2).note == ""


# ------------------------------------------------------------------------------------------------- whole rounds


def light_round(user: int) -> LightRound:
    """A round in which one user of the reference was probed."""
    numbers = {"q": 97, "N": 5, "D": 0, "U": 3, "T": 1, "d": 2}
    zeros = np.zeros(2, dtype=np.uint64)
    session = Session(numbers, bytes(16), 0)
    others = [peer for peer in range(5) if peer != user]
    scene = UserScene(session, user, zeros, zeros, zeros[:1].reshape(1, 1), {}, tuple(range(5)))

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
def test_a_user_that_answers_twice_gives_the_share_of_one_mask() -> None:
    failure = found("privacy/lightsecagg.user/once", "second-share-released").failure
    assert failure is not None
    assert "the server alone learns update_1" in failure.message


@pytest.mark.parametrize("check", [check.id for check in OURS])
def test_every_check_has_a_sentence_and_clauses(check: str) -> None:
    assert REGISTRY[check].text.endswith(".")
    assert REGISTRY[check].clauses
