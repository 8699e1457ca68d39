"""Which conditions of LSA-01 hold for each operation: the table of the text, asked of the reference and of Node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from secagg_spec import resources
from secagg_spec.conformance.adapter.connection import DirectConnection
from secagg_spec.conformance.adapter.wire import Request
from secagg_spec.conformance.sdk.secagg_adapter import OPERATIONS
from secagg_spec.conformance.targets.reference import adapter as reference
from secagg_spec.conformance.targets.reference import neighbours
from secagg_spec.crypto.keys import public_key
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import ParameterError
from tests.conformance.node import NODE, running
from tests.conformance.shipped import VECTORS

Numbers = dict[str, int]
Ask = Callable[[str, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]]
RIGHT: Numbers = {"q": 7, "N": 5, "D": 1, "U": 3, "T": 1, "d": 3}
BROKEN: dict[str, tuple[Numbers, Numbers]] = {
    "T ≥ 1": ({"T": 0}, {"T": 0}),
    "U > T": ({"U": 1}, {"U": 1}),
    "D ≥ 0": ({"D": -1}, {"D": -1}),
    "N - D ≥ U": ({"U": 5}, {"U": 6, "D": 0}),
    "N - D ≥ T + 2": ({"N": 4, "U": 3, "T": 2}, {"N": 3, "D": 0, "U": 3, "T": 2}),
    "q is a prime": ({"q": 9}, {"q": 9}),
    "q > N": ({"q": 5}, {"q": 5}),
    "d ≥ 1": ({"d": 0}, {"d": 0}),
}
"""Numbers that break one condition and no other, with any D and with D = 0."""

KEYS = [bytes([user + 1]) * 32 for user in range(6)]
SEALING = {user: public_key(KEYS[user]).hex() for user in range(6)}
VERIFYING = {user: verification_key(KEYS[user]).hex() for user in range(6)}
FORBIDDEN, EMPTY = {"bad_param", "out_of_range"}, {"bad_param", "out_of_range", "length_mismatch"}


def zeros(count: int) -> str:
    """A vector of zeros."""
    return "00000000" * count


def length(n: Numbers) -> int:
    """The elements of a share, with a code in any case."""
    return -(-n["d"] // max(1, n["U"] - n["T"]))


def of_round(n: Numbers) -> dict[str, Any]:
    """The members of a session, of the two that have D and of both profiles."""
    return {name: str(n[name]) if name == "q" else n[name] for name in ("q", "N", "D", "U", "T", "d")}


def encode(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sharing of zeros."""
    numbers = {name: value for name, value in of_round(n).items() if name not in ("D", "d")}
    return {**numbers, "mask": zeros(n["d"])}, {"noise": zeros(n["T"] * length(n))}


def decode(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """The decoding of shares of zeros."""
    numbers = {name: value for name, value in of_round(n).items() if name != "D"}
    users = list(range(min(n["U"], n["N"])))
    return {**numbers, "users": users, "shares": [zeros(length(n)) for _ in users]}, {}


def mask(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A masked update."""
    return {"q": str(n["q"]), "update": zeros(n["d"]), "mask": zeros(n["d"])}, {}


def aggregate(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """The sum over everybody's shares."""
    users = range(n["N"])
    held = [[user, zeros(length(n))] for user in users]
    return {"q": str(n["q"]), "N": n["N"], "T": n["T"], "surviving": list(users), "held": held}, {}


def recover(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A recovery in which everybody survives and answers."""
    users = list(range(n["N"]))
    masked, shares = [zeros(n["d"]) for _ in users], [zeros(length(n)) for _ in users]
    return {**of_round(n), "surviving": users, "masked": masked, "users": users, "shares": shares}, {}


def whole(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A round in which nobody drops out."""
    each = [zeros(n["d"]) for _ in range(n["N"])]
    noises = [zeros(n["T"] * length(n)) for _ in each]
    drop: dict[str, list[int]] = {"share": [], "upload": [], "recover": []}
    return {**of_round(n), "updates": each, "drop": drop}, {"masks": each, "noises": noises}


def located(n: Numbers) -> dict[str, Any]:
    """The numbers, a session and a round."""
    return {**of_round(n), "session": "00" * 16, "round": "0"}


def keys_of(n: Numbers, kind: Mapping[int, str]) -> list[str]:
    """A list of N keys."""
    return [kind[user] for user in range(n["N"])]


def close(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """Nothing that is sealed."""
    parts = {"sender": 0, "private": KEYS[0].hex(), "roster": keys_of(n, SEALING), "type": 257, "plaintexts": []}
    return {**located(n), **parts}, {}


def opened(ask: Ask) -> Callable[[Numbers], tuple[dict[str, Any], dict[str, Any]]]:
    """A payload that opens, where one can be sealed for the numbers."""

    def request(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
        params, rand = close(n)
        answer = ask("seal.close", {**params, "plaintexts": [[1, "00"]]}, rand)
        payload = answer["result"]["payloads"][0] if "result" in answer else "00" * 17
        kept = {name: value for name, value in params.items() if name not in ("plaintexts", "private")}
        return {**kept, "receiver": 1, "private": KEYS[1].hex(), "payload": payload}, {}

    return request


def sampled(n: Numbers) -> dict[str, Any]:
    """What a user samples."""
    return {"mask": zeros(n["d"]), "noise": zeros(n["T"] * length(n))}


def user(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A user that takes no step."""
    return {**located(n), "user": 0, "channel": "plain", "update": zeros(n["d"]), "steps": []}, sampled(n)


def server(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A server that takes no step."""
    return {**located(n), "steps": []}, {}


def enough(n: Numbers) -> int:
    """A W that LSA-19 allows, where there is one."""
    return (n["N"] + n["T"]) // 2 + 1


def active_keys(n: Numbers) -> dict[str, Any]:
    """The public keys of the users of the active profile."""
    return {"roster": keys_of(n, SEALING), "verification": keys_of(n, VERIFYING)}


def active_user(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A user of the active profile that takes no step."""
    params, rand = user(n)
    own = {"private": KEYS[0].hex(), "signing": KEYS[0].hex()}
    return {
        **{name: params[name] for name in params if name != "channel"},
        "W": enough(n),
        **own,
        **active_keys(n),
    }, rand


def active_server(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    """A server of the active profile that takes no step."""
    return {**server(n)[0], "W": enough(n), **active_keys(n)}, {}


def party(
    protocol: str, role: str, script: Callable[[Numbers], tuple[dict[str, Any], dict[str, Any]]]
) -> Callable[[Numbers], tuple[dict[str, Any], dict[str, Any]]]:
    """The session of a party, from its script."""

    def request(n: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
        params, rand = script(n)
        numbers = {name: params.pop(name) for name in ("q", "N", "D", "U", "T", "d", "W") if name in params}
        session, number = params.pop("session"), params.pop("round")
        del params["steps"]
        shown = {"handle": str(n), "protocol": protocol, "role": role, "session": session, "round": number}
        return {**shown, "numbers": numbers, "setup": params}, rand

    return request


def requests(ask: Ask) -> dict[str, list[tuple[str, Callable[[Numbers], tuple[dict[str, Any], dict[str, Any]]]]]]:
    """How each cell of the first column of the table is asked."""
    scripts = {
        "lightsecagg.user": user,
        "lightsecagg.server": server,
        "lightsecagg_active.user": active_user,
        "lightsecagg_active.server": active_server,
    }
    functions = {
        "mds.encode": encode,
        "mds.decode": decode,
        "lightsecagg.mask": mask,
        "lightsecagg.aggregate_shares": aggregate,
        "lightsecagg.recover": recover,
        "lightsecagg.round": whole,
        "seal.close": close,
        "seal.open": opened(ask),
        **scripts,
    }
    sessions = [
        ("session.new", party(name.partition(".")[0].replace("_", "-"), name.partition(".")[2], script))
        for name, script in scripts.items()
    ]
    return {**{name: [(name, build)] for name, build in functions.items()}, "session.new": sessions}


def table() -> Iterator[tuple[str, str, str]]:
    """The cells of the table: operation, condition, and what stands there."""
    text = (resources.root("spec") / "adapter.md").read_text(encoding="utf-8")
    lines = text[text.index("| operation | T ≥ 1 |") :].partition("\n\n")[0].splitlines()
    names = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    assert names == list(BROKEN)
    for line in lines[2:]:
        first, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for operation in re.findall(r"`([^`]+)`", first):
            yield from ((operation, name, cell) for name, cell in zip(names, cells, strict=True))


CELLS = list(table())


def the_reference() -> Ask:
    """The reference as an adapter."""
    adapter = reference.build()
    return lambda op, params, rand: adapter.answer({"id": 1, "op": op, "params": params, "rand": rand})


def judge(ask: Ask) -> list[str]:
    """What the table says otherwise than an adapter does."""
    wrong, known = [], requests(ask)
    for operation, condition, cell in CELLS:
        assert cell in ("yes", "with D = 0", "no"), cell
        for op, build in known[operation]:
            members = build(RIGHT)[0]
            change = BROKEN[condition]["D" not in members.get("numbers", members)]
            params, rand = build({**RIGHT, **change})
            answer = ask(op, params, rand)
            if "result" in answer and op == "session.new":
                ask("session.free", {"handle": params["handle"]}, {})
            fitting = EMPTY if condition == "d ≥ 1" else FORBIDDEN
            refused = answer.get("reject", {}).get("code") in fitting
            if refused != (cell != "no") or not (refused or "result" in answer):
                wrong.append(f"{operation}, {condition} = {cell}: {change} gives {answer}")
    return wrong


@pytest.mark.requirement("LSA-01", "MDS-01")
def test_each_operation_is_held_to_the_conditions_that_the_table_names() -> None:
    ask = the_reference()
    assert {operation for operation, _, _ in CELLS} == set(requests(ask)) <= set(OPERATIONS)
    for name, builds in requests(ask).items():
        for op, build in builds:
            assert "result" in ask(op, *build(RIGHT)), name
            if op == "session.new":
                ask("session.free", {"handle": build(RIGHT)[0]["handle"]}, {})
    assert judge(ask) == []


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.requirement("LSA-01", "MDS-01")
def test_node_is_held_to_the_same_conditions() -> None:
    with running() as node:
        assert judge(node.ask) == []


def test_the_numbers_break_one_condition_each() -> None:
    """A row of `BROKEN` breaks its own condition alone, so that a refusal has one reason."""

    def broken(n: Numbers) -> set[str]:
        left = n["N"] - n["D"]
        holds = {
            "T ≥ 1": n["T"] >= 1,
            "U > T": n["U"] > n["T"],
            "D ≥ 0": n["D"] >= 0,
            "N - D ≥ U": left >= n["U"],
            "N - D ≥ T + 2": left >= n["T"] + 2,
            "q is a prime": n["q"] in (2, 3, 5, 7, 11),
            "q > N": n["q"] > n["N"],
            "d ≥ 1": n["d"] >= 1,
        }
        return {name for name, right in holds.items() if not right}

    assert broken(RIGHT) == set()
    for name, changes in BROKEN.items():
        assert [broken({**RIGHT, **change}) for change in changes] == [{name}, {name}]


@pytest.mark.requirement("ADP-06")
@pytest.mark.parametrize(
    ("vector", "changes", "refused"),
    [
        ("active-user-signature-no-session-2", {"N": 2**31 - 1}, "W = 3: must be an integer of at least 1073741825"),
        ("field-matmul-nothing", {"columns": 2**63}, "columns = 9223372036854775808: must be an integer"),
        ("request-three-rounds-turned", {"d": 2**31 - 1}, ""),
        ("basecagg-combine-4294967291", {"N": 2**31 - 1}, ""),
        ("basecagg-recover-last", {"N": 2**31 - 1}, ""),
    ],
)
def test_numbers_of_billions_need_no_memory(vector: str, changes: dict[str, Any], refused: str) -> None:
    chosen = VECTORS[vector]
    rand = dict(chosen.rand) if chosen.rand else None
    request = Request(chosen.operation, {**chosen.params, **changes}, rand)
    answer = DirectConnection(reference.build().answer).ask(request)
    assert (answer.kind, refused in answer.message) == ("reject" if refused else "result", True)


def test_a_kind_of_share_that_does_not_exist_is_named() -> None:
    with pytest.raises(ParameterError, match="kind = 'x': must be 'seed' or 'key'"):
        neighbours.alter([], 0, 1, "x")
