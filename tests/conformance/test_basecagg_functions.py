"""BASecAgg in the kit, one function at a time: right implementations that declare less, and bugs in other codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.mds import MaskCode
from secagg_spec.arithmetic.modular import PrimeField
from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable, Request, pack, unpack
from secagg_spec.conformance.cases import basecagg_functions
from secagg_spec.conformance.cases import strategies as cases
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.reports import report
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from tests.conformance import narrow
from tests.quick import QUICK, WHOLE, exhaustive, part

pytestmark = pytest.mark.usefixtures("unshrunk")

NAMES = tuple(basecagg_functions.VALID)
MINE = sorted(id for id in REGISTRY if id.startswith("basecagg") and set(REGISTRY[id].operations) & set(NAMES))


def hello(**declared: Any) -> dict[str, Any]:
    """An answer to hello with the four functions, the encoder, and these members."""
    names = ("mds.encode", *NAMES)
    return {**reference.build().hello, "operations": {name: {} for name in names}, **declared}


def judged(answer: Any, pattern: str = "basecagg*", cases: int = 8, seed: int = 3) -> dict[str, Outcome]:
    """What the checks say, by id."""
    _, outcomes = run(DirectConnection(answer), Settings(cases=cases, seed=seed, pattern=pattern))
    return {outcome.check.id: outcome for outcome in outcomes if outcome.verdict != "unsupported"}


def alarms(outcomes: dict[str, Outcome]) -> list[str]:
    """The failures among them."""
    return [f"{id}: {outcome.failure.message}" for id, outcome in outcomes.items() if outcome.failure]


# ----------------------------------------------------------------------------------------------------- declarations


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@settings(max_examples=4 if WHOLE else 2, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(
    st.data(),
    st.integers(0, 2**32),
    st.sampled_from(("explicit", "seeded", "none")),
    st.sampled_from(("vandermonde", "other")),
    st.sampled_from(("stochastic", "nearest")),
    st.sampled_from(("positive", "negative")),
)
@exhaustive
def test_no_declaration_of_the_reference_gives_an_alarm(
    data: Any, seed: int, grade: str, code: str, rounding: str, middle: str
) -> None:
    operations = {name: data.draw(narrow._declaration(name)) for name in ("mds.encode", *NAMES)}
    policy = {"mds.code": code, "quantizer.rounding": rounding, "quantizer.middle": middle}
    declared = hello(operations=operations, randomness=grade, policy=policy)
    assert alarms(judged(narrow.adapter(declared), cases=3, seed=seed)) == []


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize("q", part(2, ["7", "11", "13", "257", "4294967291"]))
def test_an_implementation_with_one_modulus_gets_no_alarm(q: str) -> None:
    ranges = {"ranges": {"q": {"values": [q]}}}
    outcomes = judged(narrow.adapter(hello(operations=dict.fromkeys(("mds.encode", *NAMES), ranges))), cases=3)
    assert alarms(outcomes) == []
    assert {f"{name}/exact" for name in NAMES} | {"basecagg/own-shares"} <= set(outcomes)


@pytest.mark.slow
@pytest.mark.requirement("ADP-06")
def test_a_fixed_deployment_gets_no_alarm() -> None:
    operations = {
        "basecagg.combine": {"parameter_sets": [{"N": 5, "T": 3}], "ranges": {"q": {"min": 2**31}}},
        "basecagg.recover": {"parameter_sets": [{"N": 5, "U": 5, "T": 3}]},
        "mds.encode": {"ranges": {"N": {"max": 5}}},
    }
    outcomes = judged(narrow.adapter(hello(operations=operations)), cases=6)
    assert alarms(outcomes) == []
    assert "basecagg/own-shares" in outcomes
    assert not {"basecagg.combine/more", "basecagg.recover/bad-share"} & set(outcomes), "no user is spare"


def space(**operations: Any) -> Capabilities:
    """What a hello with these declarations means, as the runner takes it."""
    named = {name.replace("_", "."): {"ranges": ranges} for name, ranges in operations.items()}
    caps = narrow.understood({**reference.build().hello, "operations": named})
    cases.refuse_impossible(caps)
    return caps


@pytest.mark.requirement("BSA-01", "BSA-02")
@pytest.mark.parametrize(
    "operations",
    [
        {"basecagg_encode": {"q": {"values": ["5"]}}},
        {"basecagg_mask": {"q": {"max": 6}}},
        {"basecagg_combine": {"q": {"max": 6}}},
        {"basecagg_combine": {"N": {"max": 2}}},
        {"basecagg_combine": {"q": {"max": 9}, "T": {"min": 2}}},
        {"basecagg_recover": {"N": {"max": 2}}},
        {"basecagg_recover": {"N": {"values": [3]}, "T": {"min": 2}}},
    ],
)
def test_ranges_without_a_buffer_are_refused(operations: dict[str, Any]) -> None:
    with pytest.raises(AdapterUnusable, match="leave no parameters that the text allows"):
        space(**operations)


@pytest.mark.requirement("BSA-01", "BSA-02")
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from((7, 11, 13, 31, 257, 2**31 - 1, 2**32 - 5)))
def test_what_is_drawn_is_what_the_text_allows(data: Any, q: int) -> None:
    """The numbers of a buffer are held to BSA-01 and BSA-02 here, by integers alone."""
    buffer = basecagg_functions.offered(data.draw, space(basecagg_combine={"q": {"values": [str(q)]}}))
    assert buffer.T >= 1
    assert buffer.T + 2 <= buffer.K <= buffer.N < q
    assert buffer.K * buffer.c_g <= (q - 1) // 2
    assert buffer.allowed(buffer.tau_max)[0] >= 1
    assert len(buffer.entries) == buffer.K
    for entry in buffer.entries:
        assert 0 <= buffer.round - entry.stamp <= buffer.tau_max
        assert entry.weight in buffer.allowed(buffer.round - entry.stamp)
        assert buffer.held[entry.user][0] == entry.stamp


# ------------------------------------------------------------------------------------------------------ other codes


class Deployment:
    """Masks shared at other points, as an implementation that never saw the text may do it; bugs are subclasses."""

    def code(self, q: str, N: int, U: int, T: int) -> MaskCode:
        """Return the code: the points from the end of the field on."""
        field = PrimeField(int(q))
        return MaskCode(field, N, U, T, [field.modulus - 1 - user for user in range(N)])

    def encode(self, q: str, N: int, U: int, T: int, mask: str, rand: Any) -> dict[str, Any]:
        """Answer `mds.encode`, with noise that is always the same."""
        code, vector = self.code(q, N, U, T), unpack(mask).astype(np.uint64)
        noise = np.ones((T, code.share_length(vector.size)), dtype=np.uint64)
        return {"shares": [pack(share) for share in code.encode(vector, noise)]}

    def weights(self, weights: list[int]) -> list[int]:
        """Return the weights that a user takes."""
        return weights

    def recover(self, given: dict[str, Any]) -> dict[str, Any]:
        """Answer `basecagg.recover`: shares at other points become those of the text."""
        code = self.code(*(given[name] for name in ("q", "N", "U", "T")))
        shares = np.stack([unpack(text).astype(np.uint64) for text in given["shares"]])
        rows = code.field.solve(np.ascontiguousarray(code.columns[:, given["users"][: code.U]].T), shares[: code.U])
        own = MaskCode(code.field, code.N, code.U, code.T)
        moved = code.field.matmul(np.ascontiguousarray(own.columns[:, given["users"]].T), rows)
        return {**given, "shares": [pack(share) for share in moved]}

    def adapter(self) -> Adapter:
        """Return an adapter with the three functions and the encoder."""
        made = reference.build()
        right = {name: made._handlers[name] for name in NAMES}
        policy, operations = {"mds.code": "other"}, {"mds.encode": {"randomness": "none"}}
        made.hello = {**made.hello, "policy": policy, "operations": operations | {name: {} for name in NAMES}}
        made._handlers["mds.encode"] = self.encode
        made._handlers["basecagg.recover"] = lambda **given: right["basecagg.recover"](**self.recover(given))
        made._handlers["basecagg.combine"] = lambda **given: self.answered(right["basecagg.combine"](**given), given)
        return made

    def answered(self, result: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a user, with the weights that it takes."""
        held = {user: unpack(text).astype(np.uint64) for user, _, text in given["held"]}
        weights = self.weights(unpack(given["weights"]).tolist())
        rows = np.stack([held[user] for user in given["users"]])
        field = PrimeField(int(given["q"]))
        return {"share": pack(field.matmul(np.array([weights], dtype=np.uint64), rows)[0])}


@pytest.mark.slow
@exhaustive
def test_an_implementation_with_another_code_passes_by_relation() -> None:
    outcomes = judged(Deployment().adapter().answer, cases=8 if QUICK else 20)
    assert alarms(outcomes) == []
    assert {"basecagg/own-shares", "basecagg.combine/exact", "basecagg.mask/exact"} <= set(outcomes)
    assert not any(id.startswith("basecagg.recover") for id in outcomes)


class Unweighted(Deployment):
    def weights(self, weights: list[int]) -> list[int]:
        return [1] * len(weights)


class Turned(Deployment):
    def weights(self, weights: list[int]) -> list[int]:
        return weights[::-1]


class FirstPoints(Deployment):
    def recover(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**super().recover({**given, "users": list(range(len(given["users"])))}), "users": given["users"]}


class Unscaled(Deployment):
    def recover(self, given: dict[str, Any]) -> dict[str, Any]:
        return {**super().recover(given), "c_l": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("bug", [Unscaled, Turned, FirstPoints, Unweighted])
def test_relations_find_bugs_in_another_code(bug: type[Deployment]) -> None:
    connection = DirectConnection(bug().adapter().answer)
    caps, _ = run(connection, Settings(pattern="no such check"))
    outcome = run_check(connection, caps, REGISTRY["basecagg/own-shares"], Settings(cases=40, seed=1))
    assert outcome.verdict in ("wrong_value", "rejected_valid"), outcome


# ----------------------------------------------------------------------------------------------------------- reports


def test_every_check_of_the_four_functions_runs_on_the_reference() -> None:
    caps = narrow.understood(hello())
    assert all(REGISTRY[id].runs_on(caps) for id in MINE if not id.endswith(("/outside-range", "/rate", "/raw")))


def test_a_smallest_case_shows_levels_and_stamps_as_numbers() -> None:
    held = [[0, "16777216", "01000000"], [1, "20000000", "0200000003000000"]]
    params = {"q": "65537", "c_g": "33554432", "round": "20000000", "stamps": "05000000", "held": held}
    said = report.describe(Request("basecagg.combine", params), {})
    assert said == (
        "basecagg.combine q=65537 c_g=33554432 round=20000000 stamps=(5) held=[[0, 16777216, (1)], "
        "[1, 20000000, (2 3)]]"
    )
