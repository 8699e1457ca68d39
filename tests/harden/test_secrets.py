"""No secret is in what people read: printed states and messages, errors, logs, the lines and the journal of a round
inside Flower; and a report says nothing of the machine.
"""

from __future__ import annotations

import base64
import logging
import os
import sys
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from secagg_spec.arithmetic import validate
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.errors import BadShare, OutOfRange, ParameterError
from secagg_spec.flower.journal import FileJournal
from secagg_spec.flower.packing import unpack
from secagg_spec.protocols import steps
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from tests.flower.parties import SETTINGS, Engine
from tests.harden import public, secrets
from tests.harden.secrets import Watch, found, watched
from tests.harden.surfaces import run_command, vectors
from tests.protocols.test_refusals import CALLS
from tests.quick import part

PLAYS = (
    "simulate lightsecagg --drop upload:2",
    "simulate lightsecagg --profile active",
    "simulate secagg --drop masked_input:2",
    "simulate secagg --profile active",
    "simulate secagg --users 8 --neighbours 4",
    "simulate basecagg",
    "simulate basecagg --profile active",
    "simulate basa",
    "simulate basa --encryption cp-abe",
    "simulate heterosag --preset tiny",
    "simulate multiround --protocol secagg",
    "simulate multiround --protocol lightsecagg",
)
EVERYONE = {
    *("session", "public", "senders", "entries", "users", "message", "messages", "inbox", "transcript", "events"),
    *("round", "number", "modulus", "q", "high"),
}
"""Arguments of public functions that everybody knows, or that are messages: their errors are those of steps."""
KNOWN = EVERYONE | {
    *("n", "ring", "numbers", "ranges", "content", "source", "party", "draw", "draws"),
    *("sessions", "state", "base", "request", "turns", "received", "order"),
}
"""These, what is public by its kind, and objects of the library, whose members were checked when they were made."""
PLAIN = {
    ("words", "values"),
    ("restore of what was begun", "data"),
    ("polynomial", "alpha"),
    ("fraction", "value"),
    ("integer", "value"),
    ("one_of", "value"),
    ("hash_keys", "keys"),
    ("user_set", "value"),
    ("check_degree", "most"),
}
"""Arguments that are named as secret ones are, and hold public numbers."""


def calls_with_secrets() -> dict[tuple[str, str], tuple[Any, Callable[..., Any]]]:
    """Return each argument that may hold a secret, and the call that it is an argument of.

    An argument may hold one if one of its name does so anywhere, or if a vector samples a value of its name.
    """
    calls = {name: ({**call.arguments, **call.fixed}, call.__call__) for name, call in CALLS.items()}
    calls |= {call.name: (dict(call.arguments), call.again) for call in public.right_calls(5)}
    names = {name for one in vectors() for name in one.rand or ()} | {"randomness", "sampled", "alpha", "beta"}
    names |= {name for given, _ in calls.values() for name, value in given.items() if "blinding" in name}
    for given, _ in calls.values():
        names |= {name for name, value in given.items() if any(True for _ in secrets.leaves(value, but=secrets.PUBLIC))}
    return {
        (of, name): (value, call)
        for of, (given, call) in calls.items()
        for name, value in given.items()
        if name in names - KNOWN and (of.rpartition(".")[2], name) not in PLAIN
    }


def leaks_of_marked_keys(
    places: Iterable[tuple[tuple[str, str], tuple[Any, Callable[..., Any]]]], enough: float = inf
) -> tuple[int, dict[Any, str]]:
    """Return how many errors came of a key of a wrong form in each place, and those that show some of it.

    No further place is tried when `enough` were found.
    """
    runs, shown, errors = secrets.written(), dict[Any, str](), 0
    for (of, name), (value, call) in places:
        if len({place[:2] for place in shown}) >= enough:
            break
        for form, other in secrets.forms().items():
            for given in secrets.replaced(value, other):
                for text in secrets.said(lambda: call(**{name: given})):  # noqa: B023
                    errors += 1
                    if secrets.shows(text, runs):
                        shown[of, name, form] = text[:200]
    return errors, shown


def played(command: str) -> Watch:
    given: dict[str, list[public.Call]] = {}
    with watched() as watch, public.recorded(given):
        assert run_command(command.split()) == 0
    assert len(watch.taken) > 10
    watch.given += [value for calls in given.values() for call in calls for value in call.arguments.values()]
    return watch


def silent(hidden: set[str], texts: dict[str, str]) -> None:
    shown = {place: sorted(seen)[:3] for place, text in texts.items() if (seen := found(hidden, text))}
    assert not shown, shown


@pytest.mark.requirement("ERR-03")
@pytest.mark.parametrize("command", PLAYS)
def test_no_secret_is_in_a_printed_state_an_error_or_a_log(command: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    watch = played(command)
    hidden = watch.secrets()
    assert len(hidden) > 50
    printed = watch.printed()
    assert {"UserState", "ServerState"} <= set(printed)
    silent(hidden, printed)
    refused = watch.refused(Random(1), each=3)
    assert len(refused) > 3
    silent(hidden, refused)
    silent(hidden, {"logs": caplog.text})


@pytest.mark.slow
@pytest.mark.requirement("ERR-03")
def test_no_error_of_a_public_function_shows_an_argument_that_may_be_secret() -> None:
    random, shown, errors = Random(1), dict[tuple[str, str], str](), 0
    for call in public.right_calls(5):
        for name, value in call.arguments.items():
            leaves = secrets.leaves(value, but=secrets.PUBLIC)
            own = {needle for leaf in leaves for needle in secrets.needles(leaf)}
            public_number = name in EVERYONE or (call.name.rpartition(".")[2], name) in PLAIN
            for other in (secrets.changed(value, random) for _ in range(8 if own and not public_number else 0)):
                for text in secrets.said(lambda: call.again(**{name: other})):  # noqa: B023
                    errors += 1
                    if found(own, text):
                        shown[call.name, name] = text[:200]
    assert errors > 300
    assert not shown


@pytest.mark.slow
@pytest.mark.requirement("ERR-03")
def test_no_error_shows_a_secret_of_a_wrong_type_or_length() -> None:
    places = calls_with_secrets()
    assert len(places) > 250
    assert {("sign", "private"), ("setup", "alpha"), ("share", "coefficients"), ("roster_of", "keys")} <= set(places)
    errors, shown = leaks_of_marked_keys(part(3, places.items()))
    assert errors > 5000
    assert not shown


@pytest.mark.slow
@pytest.mark.requirement("ERR-03")
@pytest.mark.parametrize("helper", ["octets", "secret_integer", "keyed"])
def test_a_check_that_shows_what_it_refuses_is_found(helper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places = calls_with_secrets()
    silently = getattr(validate, helper)

    def showing(name: str, value: Any, *rest: Any) -> Any:
        try:
            return silently(name, value, *rest)
        except ParameterError:
            raise ParameterError(name, value, "something else") from None

    monkeypatch.setattr(validate, helper, showing)
    _, shown = leaks_of_marked_keys(places.items(), enough=10)
    assert len({(of, name) for of, name, _ in shown}) == 10


@pytest.mark.requirement("ERR-03", "FLW-08")
@pytest.mark.parametrize("name", SETTINGS)
def test_no_secret_is_in_the_lines_the_journal_or_the_replies_of_a_round_inside_flower(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    engine = Engine(name, 7, lost={"unmasking": [1], "recover": [1]})
    for number, node in engine.nodes.items():
        node.journal = FileJournal(tmp_path / str(number))  # type: ignore[assignment]
    with watched() as watch:
        assert engine.run() is not None
    hidden = watch.secrets()
    assert len(hidden) > 50
    memories = [memory for node in engine.nodes.values() for memory in node.kept]
    assert any(unpack(memory).get("state") for memory in memories if memory), "nothing is kept between packets"
    written = [f"{path.name}\n{path.read_text()}" for path in tmp_path.rglob("*") if path.is_file()]
    assert written
    handled = []
    for phase, number, packet in engine.packets:
        for spoiled in ({**packet, "version": 9}, {**packet, "phase": "no"}, {**packet, "messages": [b"\0"]}):
            done = engine.nodes[number].handle(spoiled, engine.nodes[number].kept[-1])
            assert done.refused is not None, phase
            assert set(done.reply) == {"version", "refused"}
            handled.append(f"{done!r} {done.reply!r}")
    silent(hidden, {"lines": "\n".join(engine.lines), "journal": "\n".join(written), "logs": caplog.text})
    silent(
        hidden, {"refusals": "\n".join([*handled, *map(repr, (e for n in engine.nodes.values() for e in n.refused))])}
    )
    silent(hidden, watch.printed())


@pytest.mark.slow
@pytest.mark.requirement("ERR-03")
def test_a_report_of_a_failing_adapter_says_nothing_of_the_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = "a value that a machine keeps to itself"
    monkeypatch.setenv("OF_THE_MACHINE", planted)
    files = ("--json", f"{tmp_path}/r.json", "--html", f"{tmp_path}/r.html", "--junit", f"{tmp_path}/r.xml")
    adapter = (sys.executable, "-m", "secagg_spec.conformance.targets.reference", "--mutant", "recovery-adds-the-mask")
    words = ("conform", "-k", "lightsecagg.server/bad", "--fuzz", "5", *files, "--repro", f"{tmp_path}/repro")
    assert run_command([*words, "--", *adapter]) == 1
    said = capsys.readouterr()
    texts = [said.out, said.err, *(path.read_text() for path in tmp_path.rglob("*") if path.is_file())]
    assert len(texts) > 5
    long = {value for name, value in os.environ.items() if len(value) > 12 and name not in ("PWD", "OLDPWD")}
    assert planted in long
    values = {value for value in long if os.sep not in value}
    assert not [value for value in values for text in texts if value in text]


# ------------------------------------------------------------------------------------------------ planted leaks


def test_a_state_that_prints_its_members_is_found() -> None:
    with mutants.planted("state-prints-its-members"):
        watch = played(PLAYS[0])
        assert found(watch.secrets(), watch.printed()["UserState"])


def test_a_state_or_a_key_pair_that_prints_its_values_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = played(PLAYS[2])
    share = watch.secrets()
    monkeypatch.setattr(secagg.UserState, "__repr__", lambda self: f"{self.update.tolist()}")
    assert found(share, watch.printed()["UserState"])
    monkeypatch.setattr(secagg.KeyPair, "__repr__", lambda self: f"KeyPair({self.sealing!r}, {self.masking!r})")
    assert found(share, watch.printed()["KeyPair"])


@pytest.mark.requirement("ERR-03")
def test_an_error_says_how_long_a_long_number_is() -> None:
    for number in (1 << 128, (1 << 255) - 1, -(1 << 520)):
        size = number.bit_length()
        assert str(OutOfRange("x", number, "small")) == f"x = an integer of {size} bits: must be small"
    assert str(OutOfRange("x", 1 << 64, "small")) == f"x = {1 << 64}: must be small"


@pytest.mark.requirement("ERR-03")
def test_an_error_shows_no_container_of_what_may_be_a_secret() -> None:
    key, number = bytes(range(32)), 1 << 250
    for value, said in (
        ([key], "a list that holds 32 bytes"),
        ((1, [bytearray(key)]), "a tuple that holds 32 bytes"),
        ({0: {key}}, "a dict that holds 32 bytes"),
        ({number: 0}, "a dict that holds an integer of 251 bits"),
        (MappingProxyType({0: number}), "a mappingproxy that holds an integer of 251 bits"),
        (np.array([[number, 1]], dtype=object), "a ndarray that holds an integer of 251 bits"),
        ([1, b"short", {2: (3,)}], "[1, b'short', {2: (3,)}]"),
        ([], "[]"),
    ):
        assert str(ParameterError("x", value, "small")) == f"x = {said}: must be small"
    endless: list[Any] = []
    endless.append(endless)
    assert str(ParameterError("x", endless, "small")) == "x = a list that cannot be written: must be small"


@pytest.mark.requirement("ERR-03")
def test_what_is_printed_is_what_is_public() -> None:
    message = lightsecagg.MaskShare(bytes(16), 3, 1, 2, b"secret payload")
    assert repr(message) == f"MaskShare(session={'00' * 16}, round=3, sender=1, receiver=2, payload=<14 bytes>)"
    watch = played(PLAYS[0])
    texts = watch.printed()
    silent(watch.secrets(), texts)
    assert "masked=<" in texts["MaskedUpdate"]
    assert "party=server, phase='done'" in texts["ServerState"]


@pytest.mark.parametrize("written", ["hex", "base64", "list", "repr", "number"])
def test_an_error_that_shows_a_key_is_found(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = played("simulate secagg")
    key = next(one.sampled["masking_key"] for one in watch.taken if "masking_key" in one.sampled)
    text = {
        "hex": key.hex(),
        "base64": base64.b64encode(key).decode(),
        "list": str(list(key)),
        "repr": repr(key),
        "number": str(int.from_bytes(key, "little")),
    }[written]

    def leaking(self: Any, *_: Any, **__: Any) -> Any:
        raise BadShare(text)

    monkeypatch.setattr(steps.Step, "take", leaking)
    assert any(found(watch.secrets(), text) for text in watch.refused(Random(1), each=1).values())
