"""Multi-RoundSecAgg in the kit, one function at a time: implementations that draw on their own, oracles, bugs."""

from __future__ import annotations

import random
import re
from itertools import combinations
from math import comb
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import ranged
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.cases import multi_round_functions, strategies
from secagg_spec.conformance.cases import multi_round_oracles as oracles
from secagg_spec.conformance.cases.multi_round_oracles import STRATEGIES, Numbers
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import multi_round
from tests.conformance import narrow
from tests.quick import WHOLE, exhaustive, part

pytestmark = pytest.mark.usefixtures("unshrunk")

NAMES = ("select.family", "select.batch", "select.session", "select.complete", "select.request", "audit.privacy")
MINE = sorted(id for id in REGISTRY if set(REGISTRY[id].operations) & set(NAMES))
OFTEN = {f"select.batch/{kind}-{strategy}" for strategy in STRATEGIES for kind in ("often", "alike")}
CAPS = narrow.understood(reference.build().hello)
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))


def hello(**declared: Any) -> dict[str, Any]:
    """An answer to hello with the operations, and these members."""
    return {**reference.build().hello, "operations": {name: {} for name in NAMES}, **declared}


def judged(answer: Any, pattern: str, cases: int = 8, seed: int = 3) -> dict[str, Outcome]:
    """What the checks say, by id."""
    _, outcomes = run(DirectConnection(answer), Settings(cases=cases, seed=seed, pattern=pattern))
    return {outcome.check.id: outcome for outcome in outcomes if outcome.verdict != "unsupported"}


def alarms(outcomes: dict[str, Outcome]) -> list[str]:
    """The failures among them."""
    return [f"{id}: {outcome.failure.message}" for id, outcome in outcomes.items() if outcome.failure]


def asked(op: str, params: dict[str, Any], rand: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the reference answers."""
    return reference.build().answer({"id": 1, "op": op, "params": params, "rand": rand or {}})


# ----------------------------------------------------------------------------------------------------- declarations


@pytest.mark.slow
@pytest.mark.requirement(
    "MRA-01",
    "MRA-02",
    "MRA-03",
    "MRA-04",
    "MRA-05",
    "MRA-06",
    "MRA-07",
    "MRA-08",
    "MRA-09",
    "MRA-10",
    "MRA-11",
    "MRA-12",
    "MRA-13",
    "MRA-14",
    "MRA-15",
    "MRA-16",
    "MRA-17",
    "MRA-18",
    "MRA-19",
    "MRA-20",
    "MRA-21",
)
@settings(
    max_examples=2 if WHOLE else 1, phases=(Phase.generate,), deadline=None, suppress_health_check=list(HealthCheck)
)
@given(st.integers(0, 2**32), st.sampled_from(("explicit", "seeded", "none")))
def test_no_grade_of_the_reference_gives_an_alarm(seed: int, grade: str) -> None:
    answer = narrow.adapter(hello(randomness=grade))
    for name in NAMES:
        assert alarms(judged(answer, f"{name}*", cases=3, seed=seed)) == []


def ran(hello: dict[str, Any]) -> set[str]:
    """The checks of these operations that an adapter with this declaration is asked."""
    caps = narrow.understood(hello)
    return {id for id in MINE if REGISTRY[id].runs_on(caps)}


def test_every_check_of_the_operations_runs_on_the_reference() -> None:
    assert set(MINE) - ran(reference.build().hello) == OFTEN | {"privacy/select.batch/seeds", "select.session/raw"}
    assert ran(hello(randomness="none")) >= OFTEN


def test_failures_tell_the_numbers_as_requests_do() -> None:
    assert str(oracles.Numbers(12, 6, 3)) == "N=12 K=6 T=3"


def test_an_audit_has_no_ranges() -> None:
    with pytest.raises(Exception, match="no ranged parameter 'N'"):
        narrow.understood(hello(operations={"audit.privacy": {"ranges": {"N": {"max": 16}}}}))


SELECTING = NAMES[:-1]
NARROW: list[dict[str, Any]] = [
    {"ranges": {"N": {"values": [12]}, "K": {"values": [3, 6]}, "T": {"values": [3]}}},
    {"ranges": {"T": {"min": 3}, "N": {"min": 8, "max": 20}}},
    {"ranges": {"N": {"values": [100]}, "K": {"min": 30}}},
    {"parameter_sets": [{"N": 12, "K": 8, "T": 4}, {"N": 60, "K": 60, "T": 5}, {"N": 5, "K": 6, "T": 1}]},
]


@pytest.mark.slow
@pytest.mark.requirement("ADP-06", "MRA-01")
@pytest.mark.parametrize("declared", NARROW, ids=str)
@pytest.mark.parametrize("grade", part(2, ["explicit", "none"]))
def test_operations_are_judged_within_the_numbers_that_they_declare(declared: dict[str, Any], grade: str) -> None:
    declaration = hello(operations=dict.fromkeys(SELECTING, declared), randomness=grade)
    caps, met = narrow.understood(declaration), set()
    plain = narrow.adapter(declaration)

    def answer(request: Any) -> dict[str, Any]:
        given = plain(request)
        if "result" in given and request["op"] in SELECTING:
            assert caps.declares(request["op"], request["params"])
            met.add(request["op"])
        return given

    assert alarms(judged(answer, "select.*", cases=6)) == []
    assert met == set(SELECTING)


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize(
    ("mutant", "strategy"),
    part(
        3,
        [("batch-frequency-is-the-largest", "least"), ("fair-is-uniform", "fair"), ("first-batches-taken", "uniform")],
    ),
)
@pytest.mark.parametrize("declared", [NARROW[0], NARROW[3]], ids=str)
def test_a_wrong_choice_within_a_narrow_declaration_is_found(
    declared: dict[str, Any], mutant: str, strategy: str
) -> None:
    with mutants.planted(mutant):
        outcomes = judged(narrow.adapter(hello(operations={"select.batch": declared})), "select.batch/*", cases=20)
    assert outcomes[f"select.batch/{strategy}"].verdict in ("wrong_value", "rejected_valid")


@pytest.mark.requirement("ADP-07", "MRA-01", "MRA-17")
@pytest.mark.parametrize(
    ("name", "declared", "message"),
    [
        ("select.complete", {"ranges": {"T": {"max": 2}}}, "'select.complete' leave no parameters"),
        ("select.family", {"ranges": {"K": {"values": [6]}, "T": {"values": [4]}}}, "leave no parameters"),
        ("select.batch", {"ranges": {"T": {"min": 2}, "strategy": {"values": ["random"]}}}, "leave no parameters"),
        ("select.request", {"parameter_sets": [{"N": 4, "K": 2, "T": 2}]}, "MRA-01 or MRA-17"),
        ("select.batch", {"parameter_sets": [{"N": 4, "T": 2}]}, "must give ['K', 'N', 'T']"),
    ],
)
def test_numbers_that_the_text_forbids_are_refused(name: str, declared: dict[str, Any], message: str) -> None:
    with pytest.raises(AdapterUnusable, match=re.escape(message)):
        strategies.refuse_impossible(narrow.understood(hello(operations={name: declared})))


def test_more_users_than_are_tried_leave_no_case() -> None:
    assert not ran(hello(operations={"select.family": {"ranges": {"N": {"min": 5000}}}}))


@pytest.mark.requirement("ADP-07")
def test_the_size_of_a_buffer_has_no_range() -> None:
    with pytest.raises(AdapterUnusable, match="no ranged parameter 'K'"):
        narrow.understood(hello(operations={"basecagg.rounds": {"ranges": {"K": {"max": 9}}}}))
    assert [name for name in OPERATIONS if "K" in ranged(name)] == [*SELECTING]


# ------------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.requirement("MRA-01", "MRA-17")
@COMMON
@given(st.data())
def test_every_wrong_number_is_wrong_and_every_drawn_one_right(data: Any) -> None:
    p, c = multi_round_functions.colluding(data.draw, CAPS, "select.complete")
    assert 1 <= p.T <= p.K <= p.N
    assert p.N % p.T == p.K % p.T == 0
    assert 1 <= c <= p.T - 2
    for name, changed in multi_round_functions.wrong_numbers(p).items():
        N, K, T = changed["N"], changed["K"], changed["T"]
        assert not (1 <= T <= K <= N) or N % T or K % T, name
    for name, changed in multi_round_functions.wrong_colluders(p).items():
        assert not 1 <= changed["c"] <= p.T - 2, name


@pytest.mark.requirement("MRA-04", "MRA-08")
@COMMON
@given(st.data())
def test_a_drawn_choice_has_a_round_exactly_where_it_says(data: Any) -> None:
    lack = data.draw(st.integers(0, 2))
    made = multi_round_functions.choice(data.draw, CAPS, lack=lack)
    enough = len(made.numbers.complete(made.available)) >= made.numbers.per_round
    assert enough is (lack == 0)
    assert (made.users() is None) is (lack > 0)
    assert made.draws == () or not lack


@pytest.mark.slow
@exhaustive
def test_all_kinds_of_choices_are_drawn() -> None:
    seen: set[object] = set()

    @settings(max_examples=1000, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def look(data: Any) -> None:
        made = multi_round_functions.choice(data.draw, CAPS)
        least = [user for user in made.available if made.frequencies[user] == min(made.frequencies)]
        here = {
            made.numbers.T * batch + at
            for batch in made.numbers.complete(made.available)
            for at in range(made.numbers.T)
        }
        seen.add(made.strategy)
        seen.update({"incomplete"} if set(made.available) - here else ())
        seen.update(
            {"least in an incomplete batch"} if made.strategy == "fair" and least and not here & set(least) else ()
        )
        level = made.strategy == "weighted" and 0 < len(made.draws) < made.numbers.K
        seen.update({"some taken, some drawn"} if level else ())
        seen.update({"nothing to draw"} if made.strategy == "weighted" and not made.draws else ())

    look()
    kinds = {"incomplete", "least in an incomplete batch", "some taken, some drawn", "nothing to draw"}
    assert {*STRATEGIES, *kinds} <= seen


# --------------------------------------------------------------------------------------------------------- oracles


@pytest.mark.requirement("MRA-02")
@pytest.mark.parametrize("numbers", [(6, 4, 2), (6, 2, 2), (6, 6, 3), (5, 2, 1), (12, 6, 3)])
def test_the_family_is_what_is_left_of_all_sets(numbers: tuple[int, int, int]) -> None:
    p = Numbers(*numbers)
    whole = {
        users
        for users in combinations(range(p.N), p.K)
        if all(all((user // p.T * p.T + at in users) for at in range(p.T)) for user in users)
    }
    assert oracles.family(p) == whole
    assert oracles.family_size(p) == len(whole) == comb(p.N // p.T, p.K // p.T)


@pytest.mark.requirement("MRA-07")
@pytest.mark.parametrize("strategy", ["random", "uniform", "weighted"])
def test_uniform_draws_lead_to_each_set_as_often(strategy: str) -> None:
    found = oracles.odds(Numbers(5, 3, 1), strategy, (0,) * 5, range(5))
    assert len(found) == comb(5, 3)
    assert set(found.values()) == {found[0, 1, 2]}
    assert sum(found.values()) == 1


@pytest.mark.requirement("MRA-05", "MRA-07")
def test_of_two_batches_of_the_least_frequency_one_is_first() -> None:
    """A first, then B or C; or B first, then A or C."""
    found = oracles.odds(Numbers(3, 2, 1), "fair", (0, 0, 1), range(3))
    assert {users: float(share) for users, share in found.items()} == {(0, 1): 0.5, (0, 2): 0.25, (1, 2): 0.25}


@pytest.mark.requirement("MRA-03", "MRA-05")
@COMMON
@given(st.data())
def test_a_set_has_no_fault_exactly_when_some_draws_lead_to_it(data: Any) -> None:
    made = multi_round_functions.few_sets(data.draw, CAPS, data.draw(st.sampled_from(STRATEGIES)), 8)
    likely = oracles.odds(*made.rest)
    for users in combinations(range(made.numbers.N), made.numbers.K):
        assert (oracles.fault(*made.rest, users) == "") is (users in likely)


# ------------------------------------------------------------------------------------------------------ mutants


def sampling(pick: Any) -> Any:
    """An adapter that draws on its own: the place of each draw, the bound and a source to an integer below it."""
    source = random.Random(5)

    def answer(**given: Any) -> dict[str, Any]:
        p = Numbers(given["N"], given["K"], given["T"])
        users = oracles.chosen(
            p, given["strategy"], given["frequencies"], given["available"], lambda b: pick(source, b)
        )
        return {"chosen": users}

    adapter = Adapter("sampling", "1", randomness="none")
    adapter.operation("select.batch")(answer)
    return adapter.answer


def often(answer: Any, strategy: str) -> Outcome:
    """What the check of frequencies says."""
    connection = DirectConnection(answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    return run_check(connection, caps, REGISTRY[f"select.batch/often-{strategy}"], Settings(cases=3, seed=1))


@pytest.mark.slow
@pytest.mark.requirement("MRA-07")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sampler_that_is_right_passes(strategy: str) -> None:
    assert often(sampling(lambda source, bound: source.randrange(bound)), strategy).failure is None


TURN = [0]


def in_turn(source: random.Random, bound: int) -> int:
    """Each integer as often as the others, one after the other."""
    TURN[0] += 1
    return TURN[0] % bound


@pytest.mark.slow
@pytest.mark.requirement("MRA-07")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "pick",
    [
        lambda source, bound: 0,
        lambda source, bound: bound - 1,
        lambda source, bound: min(source.randrange(bound), source.randrange(bound)),
        in_turn,
    ],
    ids=["first", "last", "smaller of two", "in turn"],
)
def test_a_sampler_that_is_not_uniform_or_not_independent_is_found(pick: Any, strategy: str) -> None:
    assert often(sampling(pick), strategy).failure


def test_families_of_any_size_are_counted() -> None:
    answer = multi_round.HANDLERS["select.family"](N=40_000, K=20_000, T=1)
    assert answer["sets"] is None
    digits = answer["size"]
    assert len(digits) > 4300
    assert sum(map(int, digits)) % 9 == comb(40_000, 20_000) % 9
    assert int(digits[-18:]) == comb(40_000, 20_000) % 10**18


@pytest.mark.requirement("CNF-06")
@pytest.mark.parametrize("user", [[0], {}, 0.0, False, None])
def test_a_family_whose_users_are_no_integers_breaks_the_protocol_and_not_the_kit(user: object) -> None:
    def answer(request: Any) -> dict[str, Any]:
        answered = reference.build().answer(request)
        if answered.get("result", {}).get("sets"):
            answered["result"]["sets"][0][0] = user
        return answered

    for found in judged(answer, "select.family/sets,select.family/many", cases=3).values():
        assert found.verdict == "protocol"
