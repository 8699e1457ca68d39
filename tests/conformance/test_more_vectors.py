"""Vectors of keys, messages and scripts: facts from elsewhere, entries of steps, rounds whose parties fit together."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from secagg_spec.commands import promote
from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutation import kills, search
from secagg_spec.conformance.sdk.secagg_adapter import Adapter
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors.base import Vector, VectorFile, renewed
from secagg_spec.conformance.vectors.entries import SCRIPTS
from secagg_spec.conformance.vectors.judge import Outcome, judge
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from tests.conformance import shipped
from tests.conformance.shipped import VECTORS

VECTOR_FILES = {file.name: file for file in shipped.VECTOR_FILES}
SCRIPTED = (
    *("scripts", "active", "secagg", "secagg_active", "basecagg_scripts", "basecagg_active", "basa_scripts"),
    "heterosag_scripts",
)
PLAYED = [vector for name in SCRIPTED for vector in VECTOR_FILES[name].vectors if vector.operation in SCRIPTS]
"""The scripts."""
PROMOTED = ("secagg_active", "basecagg_active")
"""The files whose vectors are smallest cases that found mutants; these have no ``operations``."""
AREAS = (
    "crypto",
    "messages",
    "scripts",
    "adapter",
    "signing",
    "active",
    "shamir",
    "secagg",
    "secagg_active",
    "basecagg_scripts",
    "basecagg_active",
    "basa_scripts",
    "heterosag_scripts",
)
_REGISTRY = mutants.load()


def result(id: str) -> Mapping[str, Any]:
    """The result of a vector."""
    found = VECTORS[id].result
    assert found is not None
    return found


# --------------------------------------------------------------------------------------------------------- facts


def test_the_all_zero_key_gives_the_blocks_that_gcm_has_as_test_cases() -> None:
    known = "dc95c078a2408989ad48a21492842087", "530f8afbc74536b9a963b4f1c4cb738b", "cea7403d4d606b6e074ec5d3baf39d18"
    assert result("prg-zero-key")["value"] == "".join(known)


@pytest.mark.parametrize(
    ("section", "secret"),
    [
        ("5-2-first", "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552"),
        ("5-2-second", "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"),
        ("6-1-alice", "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"),
        ("6-1-bob", "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"),
    ],
)
def test_the_shared_secrets_are_those_of_rfc_7748(section: str, secret: str) -> None:
    assert result(f"agree-rfc-7748-{section}")["secret"] == secret


@pytest.mark.parametrize(
    ("number", "private", "public"),
    [
        (1, "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "d75a980182b10ab7d54bfed3c964073a"),
        (2, "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", "3d4017c3e843895a92b70aa74d1b7ebc"),
        (3, "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7", "fc51cd8e6218a1a38da47ed00230f058"),
    ],
)
def test_signatures_are_made_and_verified_with_the_key_pairs_of_rfc_8032(
    number: int, private: str, public: str
) -> None:
    assert VECTORS[f"sign-rfc-8032-{number}"].params["private"] == private
    assert VECTORS[f"verify-rfc-8032-{number}"].params["public"].startswith(public)


def test_the_same_signature_under_a_key_of_order_8_is_valid_when_8_divides_k_alone() -> None:
    vectors = [VECTORS[f"verify-cofactor-{k}"] for k in (0, 1, 2, 4)]
    members = [{name: v.params[name] for name in ("public", "signature")} for v in vectors]
    assert members == [members[0]] * 4
    assert [vector.reject for vector in vectors] == [(), *[("bad_signature",)] * 3]


def test_a_word_is_skipped_for_the_default_field() -> None:
    vector = VECTORS["prg-rejection-4294967291"]
    whole = {**vector.params, "q": str(2**32)}
    stream = reference.build().answer({"id": 1, "op": "prg.expand", "params": whole})["result"]["value"]
    words = [stream[at : at + 8] for at in range(0, len(stream), 8)]
    assert words[4] == "fcffffff"
    assert result(vector.id)["value"].startswith("".join(words[:4] + words[5:]))


def test_the_shorter_output_of_a_key_begins_the_longer_one() -> None:
    short, long = VECTORS["prg-prefix-9"], VECTORS["prg-prefix-24"]
    assert short.params["key"] == long.params["key"]
    assert result(long.id)["value"].startswith(result(short.id)["value"])


# --------------------------------------------------------------------------------------------------- whole rounds


def sent(id: str, phase: str) -> list[str]:
    """What a party sends in a step of its round."""
    return next(list(step["sends"]) for step in VECTORS[id].operations if step["step"] == phase)


def inbox(id: str, phase: str) -> list[str]:
    """What a party receives in a step of its round."""
    return next(list(step["inbox"]) for step in VECTORS[id].params["steps"] if step["phase"] == phase)


@pytest.mark.parametrize(
    ("round", "phases"),
    [("sealed", lightsecagg.PHASES), ("active", lightsecagg_active.PHASES), ("secagg", secagg.PHASES)],
    ids=["sealed", "active", "secagg"],
)
def test_the_scripts_of_a_whole_round_fit_together(round: str, phases: tuple[str, ...]) -> None:
    server, *users = (
        renewed()[f"script-{round}-{party}"] for party in ("server", *(f"user-{user}" for user in range(4)))
    )
    for phase in phases:
        assert sorted(inbox(server, phase)) == sorted(message for user in users for message in sent(user, phase))
    for phase, received in pairwise(phases):
        assert sorted(sent(server, phase)) == sorted(message for user in users for message in inbox(user, received))


def test_operations_and_entries_say_the_same() -> None:
    scripts = [vector for vector in PLAYED if vector.operations]
    promoted = {vector.operation for name in PROMOTED for vector in VECTOR_FILES[name].vectors}
    assert {vector.operation for vector in scripts} == set(SCRIPTS) - promoted
    for vector in scripts:
        assert [step["sends"] for step in vector.operations] == [e["outbox"] for e in result(vector.id)["steps"]]
        assert [step["step"] for step in vector.operations] == [step["phase"] for step in vector.params["steps"]]


def test_the_right_step_after_a_refused_one_is_taken() -> None:
    followed = 0
    for vector in PLAYED:
        entries = (vector.result or {}).get("steps", [])
        for at, entry in enumerate(entries[:-1]):
            if "reject" in entry and vector.params["steps"][at]["phase"] == vector.params["steps"][at + 1]["phase"]:
                assert "outbox" in entries[at + 1] or "LowOrder" in vector.flags, vector.id
                followed += "outbox" in entries[at + 1]
    assert followed > 150


# ---------------------------------------------------------------------------------------------------- single fault


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_with_its_check_left_out_no_refusal_of_a_step_is_the_right_one(area: str) -> None:
    """What is refused as a whole is tried in `test_mutants`, and so is what the table names."""
    file: VectorFile = VECTOR_FILES[area]
    table, left = kills.load(), dict[str, list[Vector]]()
    for vector in file.vectors:
        named = [name for flag in vector.flags for name in file.flags[flag].mutants]
        refused = any("reject" in entry for entry in (vector.result or {}).get("steps", []))
        if refused and not any(vector.id in table[name].vectors for name in named):
            assert named, vector.id
            for name in named:
                left.setdefault(name, []).append(vector)
    killed = {id for name, vectors in left.items() for id in search.killing_vectors(_REGISTRY[name], vectors)}
    assert {vector.id for vectors in left.values() for vector in vectors} - killed == set(), "refused all the same"


# ------------------------------------------------------------------------------------------------- judging entries


def judged(id: str, change: Any) -> Outcome:
    """What is found when an adapter answers a script as the reference does, but for a change to its entries."""
    adapter: Adapter = reference.build()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        given = adapter.answer(request)
        if request["op"] in SCRIPTS:
            change(given)
        return given

    connection = DirectConnection(answer)
    return judge(connection, greet(connection.ask), VECTORS[id])


def entry(at: int, **members: Any) -> Any:
    """A change of the entry `at`."""
    return lambda given: given["result"]["steps"][at].update(members)


def test_the_messages_of_an_outbox_may_stand_in_any_order() -> None:
    assert judged("script-tiny-user-0", lambda given: given["result"]["steps"][0]["outbox"].reverse()).verdict == "pass"


def test_blame_may_stand_in_any_order() -> None:
    blamed = ("server-bad-share-first", lambda given: given["result"]["steps"][2]["reject"]["blamed"].reverse())
    assert judged(*blamed).verdict == "pass"


def test_a_reason_without_a_name_is_counted() -> None:
    outcome = judged("user-upload-round", entry(1, reject={"code": "other", "message": "no"}))
    assert (outcome.verdict, outcome.reason_unchecked) == ("pass", True)


@pytest.mark.parametrize(
    ("id", "change", "verdict"),
    [
        ("user-upload-round", entry(1, reject={"code": "bad_share", "message": "no"}), "wrong_reason"),
        ("user-upload-round", entry(1, reject={"message": "no"}), "protocol"),
        ("user-upload-round", entry(1, reject="no"), "protocol"),
        ("user-upload-round", entry(2, reject={"code": "replay", "message": "no"}), "rejected_valid"),
        ("user-upload-round", lambda given: given["result"]["steps"].pop(), "wrong_value"),
        ("user-upload-round", lambda given: given["result"].update(steps=[1, 2, 3]), "protocol"),
        ("user-upload-round", lambda given: given["result"].update(steps=None), "protocol"),
        ("user-upload-round", entry(0, outbox=[]), "wrong_value"),
        ("user-upload-round", entry(0, outbox=None), "wrong_value"),
        ("script-tiny-server", entry(2, aggregate=""), "wrong_value"),
        ("server-bad-share-first", entry(2, reject={"code": "bad_share", "blamed": [0]}), "wrong_value"),
        ("server-bad-share-first", entry(2, reject={"code": "bad_share"}), "wrong_value"),
        (
            "server-bad-share-first",
            lambda given: given["result"]["steps"].__setitem__(2, {"outbox": []}),
            "accepted_invalid",
        ),
    ],
)
def test_entries_that_differ_are_found(id: str, change: Any, verdict: str) -> None:
    assert judged(id, change).verdict == verdict


@pytest.mark.parametrize(("codes", "kept"), [(["malformed", "wrong_phase"], 2), (["bad_share"], 1)])
def test_a_failing_script_becomes_a_vector_with_entries(codes: list[str], kept: int) -> None:
    known = VECTORS["user-upload-round"]
    stored = {"message": "found", "expected_of_the_last_answer": {"reject": codes}}
    request = {"op": known.operation, "params": known.params, "rand": known.rand}
    vector = promote.decided(stored, request, "found-once", ("MSG-03",), None, ("Found-MSG-03",))
    assert vector.result is not None
    refused = vector.result["steps"][1]["reject"]
    assert set(refused) <= {"malformed", "wrong_phase"}
    assert len(refused) == kept
    assert vector.policy == known.policy
