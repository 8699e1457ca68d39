"""Ten thousand inputs that nobody means: each is read, or refused with a sentence; `make harden` tries a million."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from secagg_spec.arithmetic import validate
from tests.harden import __main__ as command
from tests.harden import killed, platforms, public, supply
from tests.harden.engine import Tally, tried
from tests.harden.spoil import spoiled
from tests.harden.surfaces import COMMANDS, SURFACES, Surface, run_command
from tests.quick import part

SLOW = {"command line": 60, "report": 100, "results of experiments": 100, "figures": 150, "request to an adapter": 1500}
"""Surfaces that take longer for an input than a quarter of a millisecond: how many they get here."""
_ROOM = 6 << 30
_OF_REFERENCE = ("--target", "reference", "-k", "parameters", "--fuzz", "10")


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    """Bound the memory of the process: an input that takes all of it fails here, and takes nothing from others."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def clean(tally: Tally) -> None:
    assert not tally.defects, "\n".join(f"{at}: {said}: {data[:300]!r}" for at, (said, data) in tally.defects.items())


@pytest.mark.requirement("CNF-53", "ERR-02")
@pytest.mark.parametrize("name", SURFACES)
def test_what_is_spoiled_is_read_or_refused_with_a_sentence(name: str) -> None:
    tally = tried(SURFACES[name], SLOW.get(name, 250), seed=1)
    assert tally.tried == SLOW.get(name, 250)
    clean(tally)


@pytest.mark.slow
@pytest.mark.requirement("ERR-02")
def test_a_public_function_takes_another_value_or_refuses_it_with_a_sentence() -> None:
    tally = public.tried(3000, 1, public.right_calls(5))
    assert tally.read > 1000
    assert tally.refused > 800
    clean(tally)


@pytest.mark.slow
@pytest.mark.requirement("ERR-02")
def test_a_method_or_a_class_takes_another_value_or_refuses_it_with_a_sentence() -> None:
    calls = public.right_calls_of_methods(3)
    assert {call.name.split(".")[0] for call in calls} > set(public.OTHERS)
    tally = public.tried(2000, 1, calls, "methods, classes")
    assert tally.read > 700
    assert tally.refused > 500
    clean(tally)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_spoiled_is_a_right_one_before(command: str) -> None:
    assert run_command(command.split(" ")) == 0


@pytest.mark.slow
@pytest.mark.requirement("ERR-02")
def test_a_public_function_takes_an_integer_of_5000_digits_or_refuses_it_with_a_sentence() -> None:
    tally = public.enlarged_calls(5)
    assert tally.refused > 500
    clean(tally)


@pytest.mark.requirement("ERR-02")
def test_a_public_function_refuses_an_object_of_another_class() -> None:
    tally = public.calls_of_another_class(5)
    assert tally.refused > 3000
    clean(tally)


@pytest.mark.requirement("ERR-02")
def test_a_refusal_names_an_argument_and_the_range_that_holds() -> None:
    tally = public.misnamed(public.right_calls(5))
    assert tally.refused > 1500
    clean(tally)


def test_a_name_of_an_inner_argument_and_a_range_that_does_not_hold_are_found() -> None:
    def inner(count: int) -> int:
        return validate.integer("n", count, 1, 5)

    def twice(count: int) -> int:
        return validate.integer("count", validate.integer("count", count, 1, 5), 2, 5)

    calls = [public.Call(one.__name__, one, {"count": 3}) for one in (inner, twice)]
    assert {*public.misnamed(calls).defects} == {"inner: count", "twice: count = 1"}


def test_an_error_that_is_not_documented_is_found() -> None:
    def read(data: bytes) -> object:
        return [3, 4][data.count(b"0")]

    tally = tried(Surface("counting", read, lambda: [b'{"a": [1, 2]}']), 300, seed=1)
    assert [said for said, _ in tally.defects.values()] == ["IndexError: list index out of range"]
    assert tally.read
    assert tally.refused


@pytest.mark.slow
def test_an_input_that_takes_long_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.harden.engine.SECONDS", 1)

    def read(data: bytes) -> object:
        while b"7" in data:
            pass
        return data

    tally = Tally("slow")
    tally.take(lambda: read(b"7"), b"7", ())
    assert [said for said, _ in tally.defects.values()] == ["TooLongError: longer than 1 s"]


def test_the_same_seed_spoils_in_the_same_way() -> None:
    seeds = [b'{"a": [1, {"b": "00ff"}]}', b"a,b\n1,2\n", bytes(range(64))]
    first, again, other = (
        [spoiled(seeds[at % 3], seeds, random) for at in range(300)] for random in map(Random, (1, 1, 2))
    )
    assert first == again != other
    assert len(set(first)) > 150


def test_files_are_written_whole() -> None:
    """A kill leaves the old file or the new one, since one function writes all of them."""
    alone = {"system.py"}
    writing = re.compile(r"\.write_(text|bytes)\(|\.open\(\s*[\"'][wx]|savefig\((?!content)")
    for path in sorted((killed.ROOT / "reference" / "secagg_spec").rglob("*.py")):
        if path.name not in alone and not {"targets", "starters", "sdk"} & set(path.parts):
            assert not writing.search(path.read_text(encoding="utf-8")), path


@pytest.mark.slow
def test_most_public_functions_are_called() -> None:
    called = {call.name for call in public.right_calls(5)}
    assert len(called) > 0.6 * len(public.functions())


@pytest.mark.slow
@pytest.mark.requirement("LSA-01", "BSA-01", "HSA-01")
@pytest.mark.parametrize(
    "words", part(2, [("vectors", "--target", "reference"), ("conform", *_OF_REFERENCE)]), ids=lambda words: words[0]
)
def test_what_is_refused_is_refused_without_asserts_too(words: tuple[str, ...]) -> None:
    done = platforms.run(*words, PYTHONOPTIMIZE="1")
    assert done.returncode == 0, done.stdout[-2000:].decode()


def test_a_package_without_a_licence_in_its_metadata_is_known_by_its_licence_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def installed(name: str, text: str | None) -> dict[str, Any]:
        folder = tmp_path / f"{name}-1.dist-info"
        (folder / "licenses").mkdir(parents=True)
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1\n" + "License-File: LICENSE\n" * (text is not None)
        (folder / "METADATA").write_text(metadata)
        (folder / "RECORD").write_text(f"{name}-1.dist-info/licenses/LICENSE,,\n" * (text is not None))
        (folder / "licenses" / "LICENSE").write_text(text or "")
        return {"name": name, "version": "1"}

    monkeypatch.syspath_prepend(str(tmp_path))
    apache = "\n   Apache License\n  Version 2.0, January 2004\n ... 3. Grant of Patent License. ..."
    components: list[dict[str, Any]] = [
        installed("withtext", apache),
        installed("withother", "Nobody may use this. It is not the Apache License, Version 2.0."),
        installed("without", None),
        {"name": "notinstalled", "version": "2"},
        {"name": "namedgpl", "version": "3", "licenses": [{"license": {"id": "GPL-3.0"}}]},
    ]
    assert list(supply.unknown(components)) == [
        "withother 1: a text of no known licence",
        "without 1: no licence",
        "notinstalled 2: no licence",
        "namedgpl 3: GPL-3.0",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--inputs", "-1"), "'-1' is not a whole number of inputs, at least 1"),
        (("--kills", "0"), "'0' is not a whole number of kills, at least 1"),
        (("--only", "nosuch"), "--only nosuch: no part has this in its name; they are "),
    ],
)
def test_what_would_try_nothing_is_refused(
    given: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(given)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert said in printed.err
