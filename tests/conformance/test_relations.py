"""Generators, keys and sealing of other kinds: what is right passes by relation, and what is wrong is found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import greet
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.checks import REGISTRY
from secagg_spec.conformance.checks.counting import surprise
from secagg_spec.conformance.checks.streams import _enough
from secagg_spec.conformance.running.runner import Outcome, Settings, run, run_check
from secagg_spec.conformance.sdk.secagg_adapter import Adapter, Reject, pack
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.vectors import judge, store
from secagg_spec.crypto import keys, sealing
from tests.conformance import narrow

pytestmark = pytest.mark.usefixtures("unshrunk")

Generator = Callable[[bytes, int, int], list[int]]
BYTES = st.binary(min_size=32, max_size=32)


def shake(key: bytes, q: int, n: int) -> list[int]:
    """Elements of 16 bytes each, taken modulo q: another generator, with keys of any length."""
    data = hashlib.shake_256(len(key).to_bytes(4, "little") + key).digest(16 * n)
    return [int.from_bytes(data[at : at + 16], "little") % q for at in range(0, 16 * n, 16)]


def offering(generator: Generator) -> Any:
    """Return an adapter with a generator of its own."""
    adapter = Adapter("other", "1", policy={"prg.stream": "other"})

    @adapter.operation("prg.expand")
    def expand(q: str, key: str, n: int) -> dict[str, Any]:
        if not 2 <= int(q) <= 2**32 or n < 0:
            raise Reject("bad_param", "q or n")
        return {"value": pack(generator(bytes.fromhex(key), int(q), n))}

    return adapter.answer


def outcome(answer: Any, check: str) -> Outcome:
    """Return what a check finds on an adapter."""
    connection = DirectConnection(answer)
    return run_check(connection, greet(connection.ask), REGISTRY[check], Settings(cases=60))


def found(answer: Any) -> dict[str, str]:
    """Return the checks that fail on an adapter, with their verdicts."""
    _, outcomes = run(DirectConnection(answer), Settings(cases=40))
    return {each.check.id: each.verdict for each in outcomes if each.failure}


# ---------------------------------------------------------------------------------------------------- generators


@pytest.mark.slow
@pytest.mark.requirement("PRG-03", "PRG-04", "PRG-05", "PRG-06")
def test_another_generator_passes_by_relation() -> None:
    assert found(offering(shake)) == {}
    assert all(
        outcome(offering(shake), f"prg.expand/{name}").by_relation for name in ("prefix", "residues", "distinct")
    )


@pytest.mark.slow
def test_the_stream_of_the_text_passes_as_another_one() -> None:
    hello = {**reference.build().hello, "operations": {"prg.expand": {}}, "policy": {"prg.stream": "other"}}
    assert found(narrow.adapter(hello)) == {}


def test_another_generator_is_not_compared_with_the_stream_of_the_text() -> None:
    connection = DirectConnection(offering(shake))
    caps = greet(connection.ask)
    assert not REGISTRY["prg.expand/exact"].runs_on(caps)
    vectors = [vector for file in store.load_all() for vector in file.vectors if vector.operation == "prg.expand"]
    assert {each.verdict for each in judge.run(connection, caps, vectors)} == {judge.UNDECLARED}


def folded(key: bytes, q: int, n: int) -> list[int]:
    """A stream of 32 bits of the key."""
    assert len(key) & 3 == 0
    words = [int.from_bytes(key[at : at + 4], "little") for at in range(0, len(key), 4)]
    fold = 0
    for word in words:
        fold ^= word
    return shake(fold.to_bytes(4, "little"), q, n)


@pytest.mark.slow
@pytest.mark.requirement("PRG-02", "PRG-05")
def test_a_folded_key_and_an_assertion_are_found() -> None:
    assert found(offering(folded)) == {
        "prg.expand/distinct": "wrong_value",
        "prg.expand/other-length": "error",
        "privacy/prg.expand/seeds": "leaked",
    }


@pytest.mark.slow
@pytest.mark.requirement("PRG-03")
def test_a_stream_that_depends_on_its_length_is_found() -> None:
    whole = offering(lambda key, q, n: shake(key + n.to_bytes(4, "little"), q, n))
    assert found(whole) == {"prg.expand/prefix": "wrong_value"}


@pytest.mark.requirement("PRG-04")
@pytest.mark.parametrize(
    ("wrong", "modulus"),
    [
        (lambda key, q, n: [max(value, 1) for value in shake(key, q, n)], 2),
        (lambda key, q, n: shake(key, max(q - 1, 1), n), 7),
        (lambda key, q, n: [min(pair) for pair in zip(shake(key, q, n), shake(key + b"\0", q, n), strict=True)], 7),
    ],
)
def test_residues_that_are_missing_or_rare_are_found(wrong: Generator, modulus: int) -> None:
    failure = outcome(offering(wrong), "prg.expand/residues").failure
    assert failure is not None
    assert failure.verdict == "wrong_value"
    assert "modulo" in failure.message


@pytest.mark.requirement("PRG-04")
def test_a_bias_of_a_large_modulus_is_found() -> None:
    biased = outcome(offering(lambda key, q, n: [value % q for value in shake(key, 2**32, n)]), "prg.expand/intervals")
    assert biased.failure is not None
    assert "eighth" in biased.failure.message


@given(st.integers(2, 64))
def test_so_many_elements_lack_a_residue_with_a_probability_below_2_to_the_minus_100(q: int) -> None:
    assert q * (1 - 1 / q) ** _enough(q) < 2**-99.9
    assert surprise(0, _enough(q), 1 / q) >= 99.9


@given(st.integers(1, 2000), st.floats(0.01, 0.99))
def test_what_is_expected_is_no_surprise(n: int, share: float) -> None:
    assert surprise(round(n * share), n, share) < 1 + 1 / min(share, 1 - share)
    assert surprise(n, n, share) > 0


# --------------------------------------------------------------------------------------------- keys and payloads


@pytest.mark.requirement("KEY-05", "KEY-06")
@given(BYTES, BYTES)
def test_both_ends_agree_and_other_keys_do_not(one: bytes, other: bytes) -> None:
    secret = keys.agree(one, keys.public_key(other))
    assert secret == keys.agree(other, keys.public_key(one))
    drawn = hashlib.sha256(one + other).digest()
    assert keys.public_key(drawn) not in (keys.public_key(one), keys.public_key(other))
    assert keys.agree(drawn, keys.public_key(other)) != secret


@pytest.mark.requirement("SEA-05", "SEA-06", "SEA-07")
@given(BYTES, BYTES, st.binary(min_size=16, max_size=40))
def test_a_payload_opens_hides_and_differs_from_key_to_key(one: bytes, other: bytes, plaintext: bytes) -> None:
    context = sealing.Context("pair", bytes(32), bytes(16), 0, message_type=0)
    way = sealing.Lane(context, 0, 1, keys.public_key(one), keys.public_key(other))
    payload = way.seal(one, plaintext)
    assert way.open(one, payload) == plaintext
    assert plaintext not in payload
    assert one == other or way.seal(other, plaintext) != payload


def pairs(**changed: Callable[..., dict[str, Any]]) -> Any:
    """Return the reference with an operation on pairs exchanged."""
    adapter = reference.build()
    for name, handler in changed.items():
        adapter._handlers[f"pair.{name}"] = handler
    return adapter.answer


def plain(plaintext: str, sender: int, receiver: int, alter: Any) -> dict[str, Any]:
    """No sealing at all."""
    return {"opened": plaintext, "payload": plaintext}


@pytest.mark.requirement("SEA-02", "SEA-06", "SEA-07")
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        *((name, "accepted_invalid") for name in ("altered", "end", "another-user", "reversed")),
        *((name, "wrong_value") for name in ("fresh", "hidden")),
        ("round-trip", "pass"),
    ],
)
def test_a_payload_in_clear_is_found(name: str, verdict: str) -> None:
    assert outcome(pairs(seal=plain), f"pair.seal/{name}").verdict == verdict


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        ({"first": "00", "second": "01", "public": ["02", "03"]}, "wrong_value"),
        ({"first": "", "second": "", "public": ["02", "03"]}, "protocol"),
        ({"first": "00", "second": "00", "public": ["02"]}, "protocol"),
    ],
)
@pytest.mark.requirement("KEY-05")
def test_two_ends_that_do_not_agree_are_found(wrong: dict[str, Any], verdict: str) -> None:
    assert outcome(pairs(agree=lambda: wrong), "pair.agree/same").verdict == verdict


@pytest.mark.requirement("KEY-06")
def test_keys_that_come_again_are_found() -> None:
    again = {"first": "00", "second": "00", "public": ["02", "03"]}
    assert outcome(pairs(agree=lambda: again), "pair.agree/fresh").verdict == "wrong_value"


@pytest.mark.parametrize("wrong", [{"public": ["02", ["03"]]}, {"public": [{}, None]}, {"first": 1, "second": 1}])
@pytest.mark.parametrize("name", ["same", "fresh"])
@pytest.mark.requirement("CNF-06")
def test_keys_that_are_no_text_break_the_protocol_and_not_the_kit(wrong: dict[str, Any], name: str) -> None:
    given = {"first": "00", "second": "00", "public": ["02", "03"]} | wrong
    assert outcome(pairs(agree=lambda: given), f"pair.agree/{name}").verdict == "protocol"


@pytest.mark.parametrize("alter", [{"byte": 0, "mask": 0}, {"byte": 0, "mask": 256}, {"sender": -1}])
def test_the_reference_refuses_alterations_that_are_none(alter: dict[str, int]) -> None:
    params = {"plaintext": "0a", "sender": 0, "receiver": 1, "alter": alter}
    assert "reject" in reference.build().answer({"id": 1, "op": "pair.seal", "params": params})
