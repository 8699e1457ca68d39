"""HeteroSAg in the kit, one function at a time: right implementations that draw otherwise, oracles, and bugs."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic import averages, segments
from secagg_spec.arithmetic.levels import Range, quantize_levels
from secagg_spec.arithmetic.participation_classes import small_class
from secagg_spec.conformance.adapter.capabilities import shake_hands
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Answer, Request, pack_reals, unpack
from secagg_spec.conformance.cases import heterosag_functions, heterosag_sessions
from secagg_spec.conformance.cases import heterosag_oracles as oracles
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS, Adapter
from secagg_spec.conformance.sessions.heterosag_numbers import members
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference.heterosag import read_parameters
from secagg_spec.conformance.vectors.base import Vector
from secagg_spec.conformance.vectors.judge import PASS, judge
from secagg_spec.errors import ParameterError
from tests.conformance import narrow, shipped
from tests.quick import WHOLE

NAMES = ("quantize.levels", "segment.plan", "heterosag.average", "heterosag.request")
MINE = sorted(id for id in REGISTRY if set(REGISTRY[id].operations) & set(NAMES))
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))


CAPS = shake_hands(Answer("result", value=reference.build().hello))


def hello(**declared: Any) -> dict[str, Any]:
    """An answer to hello with the four operations, and these members."""
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
@pytest.mark.requirement("HSA-07", "HSA-08", "HSA-23", "HSA-27")
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
    assert set(MINE) - ran(reference.build().hello) == {"quantize.levels/rate"}
    assert "quantize.levels/rate" in ran(hello(randomness="none"))


@pytest.mark.parametrize(("name", "member"), [("quantize.levels", "clip"), ("segment.plan", "N")])
def test_the_operations_have_no_ranges(name: str, member: str) -> None:
    with pytest.raises(Exception, match=f"no ranged parameter '{member}'"):
        narrow.understood(hello(operations={name: {"ranges": {member: {"max": 16}}}}))


# ------------------------------------------------------------------------------------------------- what is drawn


@pytest.mark.requirement("HSA-01", "HSA-02", "HSA-03", "HSA-04", "HSA-05")
@COMMON
@given(st.data())
def test_what_is_drawn_is_what_the_text_allows(data: Any) -> None:
    """The numbers of a session are held to the text here, by integers alone, and are what a request says."""
    p = heterosag_sessions.parameters(data.draw)
    sizes = [len(users) for users in oracles.members(p)]
    assert sum(p.sizes) == p.N == sum(sizes)
    assert min(sizes) >= p.T + 2 >= 3
    assert 2 <= len(sizes) <= p.d
    assert p.T + 2 <= p.t <= p.N - p.D <= p.N
    assert list(p.levels) == sorted(p.levels)
    assert p.levels[0] >= 2
    assert max(max(row) for row in oracles.moduli(p)) <= 2**32
    assert set(members(p)) == set(OPERATIONS["segment.plan"][0])
    assert read_parameters(**members(p)) == p


@pytest.mark.requirement("HSA-01", "HSA-02", "HSA-03", "HSA-04", "HSA-05", "HSA-06")
@COMMON
@given(st.data())
def test_every_wrong_number_is_wrong_and_every_other_one_right(data: Any) -> None:
    p = heterosag_sessions.parameters(data.draw)
    for name, changed in heterosag_sessions.wrong_numbers(p).items():
        assert "reject" in asked("segment.plan", {**members(p), **changed}), name
    for name, other in heterosag_sessions.others(p).items():
        assert other.digest != p.digest, name
    with pytest.raises(ParameterError, match="perfect matrix"):
        read_parameters(**heterosag_sessions.without_construction(data.draw))


@pytest.mark.slow
def test_all_kinds_of_numbers_are_drawn() -> None:
    seen: set[object] = set()

    @settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def look(data: Any) -> None:
        p = heterosag_sessions.parameters(data.draw)
        largest = max(max(row) for row in oracles.moduli(p))
        seen.update((f"Z {p.count}", f"T {p.T}", f"groups {len(p.sizes)}", p.matrix, p.range))
        seen.update({"full"} if largest == 2**32 else {"large"} if largest > 2**31 else ())
        seen.update({"equal levels"} if len(p.levels) > 1 and p.levels[0] == p.levels[-1] else ())

    look()
    wanted = {f"Z {Z}" for Z in range(2, 6)} | {f"groups {G}" for G in range(1, 5)} | {"T 1", "T 2", "large", "full"}
    assert wanted | {"cyclic", "perfect", "equal levels", *heterosag_sessions.RANGES} <= seen


# --------------------------------------------------------------------------------------------------------- oracles


@pytest.mark.requirement("HSA-06", "HSA-11")
@pytest.mark.parametrize("Z", range(2, 45))
def test_the_matrices_of_the_oracle_are_those_of_the_reference(Z: int) -> None:
    def table(matrix: str) -> list[list[int]]:
        return [[-1 if a == b else min(a, b) for a, b in enumerate(row)] for row in oracles.partners(matrix, Z)]

    assert table("cyclic") == segments.entries(segments.cyclic(Z))
    if oracles.has_perfect(Z):
        assert table("perfect") == segments.entries(segments.perfect(Z))
    else:
        with pytest.raises(ParameterError):
            segments.perfect(Z)


@pytest.mark.requirement("HSA-08")
@COMMON
@given(st.data())
def test_the_reference_carries_what_the_oracle_allows(data: Any) -> None:
    chosen = heterosag_functions.quantised(data.draw, CAPS)
    got = quantize_levels(chosen.x, levels=chosen.levels, range=chosen.range, rounding=chosen.draws)
    for k, x, u in zip(got.tolist(), chosen.x.tolist(), chosen.draws.tolist(), strict=True):
        allowed = oracles.carried(x, chosen.levels, chosen.range, u)
        assert k in allowed
        assert set(allowed) <= set(oracles.beside(x, chosen.levels, chosen.range))
        assert len(allowed) <= 2


@pytest.mark.requirement("HSA-08")
@pytest.mark.parametrize("side", [-1, 1])
def test_the_oracle_allows_both_integers_only_within_the_error(side: int) -> None:
    unit, y = Range(0.0, 1.0), 0.25
    for off, count in ((2.0**-48, 2), (2.0**-40, 1)):
        assert len(oracles.carried(y, 2, unit, y + side * off)) == count


@pytest.mark.requirement("HSA-27")
def test_the_two_ways_to_count_companions_agree() -> None:
    source = random.Random(7)
    for _ in range(300):
        cell = frozenset(range(source.randint(1, 8)))
        seen = [{user for user in cell if source.random() < 0.6} for _ in range(source.randint(1, 4))]
        least = source.choice((3, 4))
        small = small_class([frozenset(survivors) for survivors in seen], least)
        assert oracles._safe(cell, seen, least) == (small is None)


@pytest.mark.requirement("HSA-18", "HSA-27")
@pytest.mark.parametrize(("others", "safe"), [(0, True), (1, False), (2, False), (3, True)])
def test_three_rounds_tell_about_who_is_left(others: int, safe: bool) -> None:
    """Two blocks that drop out one after the other leave T + 1 users or fewer: those in neither of them."""
    source = {"N": 9 + others, "D": 0, "T": 1, "t": 3, "d": 2, "sizes": [3, 6 + others], "subgroups": [1, 1]}
    p = read_parameters(**source, levels=[2, 2], range=heterosag_sessions.bits(0.0, 1.0), matrix="perfect")
    scene = heterosag_functions.Asked(p).then((), range(3, 6), range(6, 9))
    assert scene.answered() == [True, True, safe]
    answers = asked("heterosag.request", scene.params())["result"]["answers"]
    assert ["reject" in entry for entry in answers] == [False, False, not safe]


# --------------------------------------------------------------------------------------------------------- averages


@pytest.mark.requirement("HSA-24", "HSA-25", "HSA-26")
@COMMON
@given(st.data())
def test_averages_do_not_overflow(data: Any) -> None:
    chosen = heterosag_functions.row(data.draw)
    segment = unpack(asked("heterosag.average", chosen.params())["result"]["segment"], "<f8").tolist()
    bound = oracles.tolerance(chosen.range)
    assert all(math.isfinite(number) for number in segment)
    pairs = zip(segment, chosen.segment(), strict=True)
    assert all(abs(Fraction(number) - want) <= bound for number, want in pairs)


@pytest.mark.requirement("ADP-39")
@pytest.mark.parametrize(("method", "trim"), [("mode", 0), ("mean", 1), ("median", 1), ("trimmed", 2), ("trimmed", -1)])
def test_a_method_and_a_trim_that_do_not_go_together_are_refused(method: str, trim: int) -> None:
    with pytest.raises(ParameterError):
        averages.combined(np.zeros((3, 2)), [1, 2, 3], method, trim)


# ------------------------------------------------------------------------------------------------------ mutants


def wrong(name: str, answer: Any, grade: str = "explicit") -> Adapter:
    """The reference with another answer to one operation."""
    made = reference.build()
    made.hello = hello(randomness=grade)
    right = made._handlers[name]
    made._handlers[name] = lambda **given: answer(right, given)
    return made


def drawing(share: float) -> Any:
    """Round up as often as a share of all numbers, whatever they are."""

    def answer(right: Any, given: dict[str, Any]) -> Any:
        count = len(given["x"]) // 16
        draws = (np.arange(count) * 0.618034 % 1 >= share).astype(np.float64) * (1 - 2.0**-53)
        return right(**{**given, "rand": {"rounding": pack_reals(draws)}})

    return answer


@pytest.mark.slow
@pytest.mark.requirement("HSA-08")
@pytest.mark.parametrize("share", [0.0, 1.0, 0.5, 0.05])
def test_a_quantiser_that_draws_with_another_rate_is_found(share: float) -> None:
    connection = DirectConnection(wrong("quantize.levels", drawing(share), "none").answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert run_check(connection, caps, REGISTRY["quantize.levels/rate"], Settings(cases=12, seed=1)).failure


def off_by(ulps: float, member: str = "segment") -> Any:
    """Averages that are off by so many times 2**-40 of the larger bound."""

    def answer(right: Any, given: dict[str, Any]) -> Any:
        bound = np.abs(unpack(given["range"], "<f8")).max()
        result = right(**given)
        return {**result, member: pack_reals(unpack(result[member], "<f8") + ulps * 2.0**-40 * bound)}

    return answer


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-25", "HSA-26")
@pytest.mark.parametrize(("off", "passes"), [(0.5, True), (-0.5, True), (1.5, False), (math.nan, False)])
def test_averages_may_be_off_as_far_as_the_text_says(off: float, passes: bool) -> None:
    adapter = wrong("heterosag.average", off_by(off))
    connection = DirectConnection(adapter.answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    outcome = run_check(connection, caps, REGISTRY["heterosag.average/mean"], Settings(cases=8, seed=1))
    assert (outcome.failure is None) is passes
    assert (judge(connection, caps, vector("average-mean-unit-5-2")).verdict == PASS) is passes


@pytest.mark.requirement("HSA-23", "HSA-24", "HSA-25", "HSA-26")
@pytest.mark.parametrize(("off", "passes"), [(0.5, True), (1.5, False)])
def test_the_aggregate_of_a_round_may_be_off_as_far_in_its_vectors(off: float, passes: bool) -> None:
    adapter = wrong("heterosag.round", off_by(off, "aggregate"))
    adapter.hello = reference.build().hello
    connection = DirectConnection(adapter.answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert (judge(connection, caps, vector("heterosag-round-everybody")).verdict == PASS) is passes


def vector(id: str) -> Vector:
    """A vector that is shipped."""
    return shipped.VECTORS[id]


@pytest.mark.requirement("CNF-58", "ADP-15")
@pytest.mark.parametrize(
    ("segment", "verdict"),
    [("", "wrong_value"), ("0" * 16, "wrong_value"), ("zz", "protocol"), ("AB" * 8, "protocol"), (7, "protocol"),
     (None, "protocol")],
)  # fmt: skip
def test_a_segment_of_another_form_fails_a_vector(segment: Any, verdict: str) -> None:
    connection = DirectConnection(wrong("heterosag.average", lambda right, given: {"segment": segment}).answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert judge(connection, caps, vector("average-mean-unit-5-2")).verdict == verdict


@pytest.mark.requirement("ERR-01", "HSA-18", "HSA-27")
@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([{}, {"reject": {"code": "below_threshold", "message": ""}}], "pass"),
        ([{}, {}], "accepted_invalid"),
        ([{"reject": {"code": "below_threshold"}}, {"reject": {"code": "below_threshold"}}], "rejected_valid"),
        ([{}, {"reject": {"code": "bad_share", "message": ""}}], "wrong_reason"),
        ([{}, {"reject": "below_threshold"}], "protocol"),
        ([{}], "wrong_value"),
        (None, "protocol"),
    ],
)
def test_answers_to_requests_are_judged_one_by_one(answers: Any, verdict: str) -> None:
    connection = DirectConnection(wrong("heterosag.request", lambda right, given: {"answers": answers}).answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    assert judge(connection, caps, vector("request-one-leaves")).verdict == verdict


# ----------------------------------------------------------------------------------------------------------- reports


def test_a_smallest_case_shows_ranges_as_numbers() -> None:
    params = {"range": pack_reals(np.array([-1.0, 2.5])), "matrix": "cyclic", "sizes": [3, 4], "clip": True}
    shown = "segment.plan range=(-1.0 2.5) matrix=cyclic sizes=[3, 4] clip=True"
    assert report.describe(Request("segment.plan", params), {}) == shown
