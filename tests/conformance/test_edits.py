"""Mutants that are edits: they are made where they say, seen by everybody, and undone however a run ends."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from secagg_spec import cli
from secagg_spec.conformance import mutants
from secagg_spec.conformance.mutants import edits
from secagg_spec.conformance.mutants.edits import Edit, EditError, planted

SOURCE = '''
from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

LIMIT = 3
NAMES = {"a": LIMIT}


def above(x: int, by: int = 1, *, times: int = 2) -> int:
    """Return more, below LIMIT or not."""
    return (x + by) * times


@cache
def kept(x: int) -> int:
    return x + 1


def counter():
    start = 1
    def count() -> int:
        return start + LIMIT
    return count


@dataclass
class Pair:
    first: int
    second: int = 5

    @property
    def total(self) -> int:
        return self.first + self.second

    @cached_property
    def product(self) -> int:
        return self.first * self.second

    @classmethod
    def made(cls, first: int) -> Pair:
        return cls(first)


class Child(Pair):
    def __str__(self) -> str:
        return super().__repr__() + "!"
'''
FILE = "learning/edited_here.py"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """A module of the package with the source above, and another one that took over what it has."""
    name, path = "secagg_spec.learning.edited_here", tmp_path / FILE
    path.parent.mkdir()
    path.write_text(SOURCE)
    made, other = ModuleType(name), ModuleType("secagg_spec.learning.importer")
    monkeypatch.setitem(sys.modules, name, made)
    monkeypatch.setitem(sys.modules, other.__name__, other)
    monkeypatch.setattr(edits, "_PACKAGE", tmp_path)
    monkeypatch.setattr(edits, "_ROOT", "secagg_spec")
    edits._original.cache_clear()
    exec(compile(SOURCE, str(path), "exec"), vars(made))
    vars(other).update({key: value for key, value in vars(made).items() if not key.startswith("__")})
    yield made
    edits._original.cache_clear()


def edit(scope: str, *changes: str) -> Edit:
    """Return an edit of the module from texts and what takes their places, in turn."""
    return Edit(FILE, scope, tuple(zip(changes[::2], changes[1::2], strict=True)))


def test_an_importer_runs_the_edited_function_and_the_right_one_afterwards(module: ModuleType) -> None:
    importer = sys.modules["secagg_spec.learning.importer"]
    with planted(edit("above", "x + by", "x - by")):
        assert (module.above(3), importer.above(3)) == (4, 4)
    assert importer.above(3) == 8


def test_several_changes_of_one_function_are_one_edit(module: ModuleType) -> None:
    with planted(edit("above", "x + by", "x - by", ") * times", ") + times")):
        assert module.above(3) == 4


def test_edits_of_one_function_nest_and_are_undone_in_turn(module: ModuleType) -> None:
    with planted(edit("above", "x + by", "x - by")):
        with planted(edit("above", "* times", "+ times")):
            assert module.above(3) == 4
        assert module.above(3) == 4
        assert module.above(5) == 8
    assert module.above(5) == 12


def test_an_edit_is_undone_after_any_exception(module: ModuleType) -> None:
    with pytest.raises(KeyboardInterrupt), planted(edit("above", "x + by", "x - by")):
        raise KeyboardInterrupt
    assert module.above(3) == 8
    with pytest.raises(EditError), planted(edit("above", "x + by", "x - by", "nowhere", "")):
        pass
    assert module.above(3) == 8


@pytest.mark.parametrize(
    ("old", "new", "wrong"), [("by: int = 1", "by: int = LIMIT", 12), ("times: int = 2", "times: int = 1", 4)]
)
def test_defaults_are_edited(module: ModuleType, old: str, new: str, wrong: int) -> None:
    with planted(edit("above", old, new)):
        assert module.above(3) == wrong
    assert module.above(3) == 8


def test_methods_properties_and_cached_functions_are_edited(module: ModuleType) -> None:
    pair = module.Pair(2)
    with planted(edit("Pair.total", "+", "-")), planted(edit("Pair.product", "*", "//")):
        assert (pair.total, pair.product) == (-3, 0)
    assert module.Pair(2).total == 7
    with planted(edit("Pair.made", "cls(first)", "cls(first, first)")):
        assert module.Pair.made(2).second == 2
    with planted(edit("kept", "x + 1", "x - 1")):
        assert module.kept.__wrapped__(1) == 0
    with planted(edit("Child.__str__", '"!"', '"?"')):
        assert str(module.Child(1)).endswith("?")
    with planted(edit("counter", "start + LIMIT", "start - LIMIT")):
        assert module.counter()() == -2
    assert module.counter()() == 4


def test_a_constant_is_edited_wherever_it_is_referred_to(module: ModuleType) -> None:
    importer = sys.modules["secagg_spec.learning.importer"]
    with planted(edit("", "LIMIT = 3\n", "LIMIT = 1000003\n")):
        assert (module.LIMIT, importer.LIMIT, module.counter()()) == (1000003, 1000003, 1000004)
    with planted(edit("", '{"a": LIMIT}', '{"a": LIMIT + 1}')):
        assert importer.NAMES == {"a": 4}
    assert (importer.LIMIT, importer.NAMES) == (3, {"a": 3})


def test_a_default_of_a_dataclass_is_edited_in_the_class(module: ModuleType) -> None:
    with planted(edit("Pair", "second: int = 5", "second: int = 6")):
        assert module.Pair(1).second == 6
    assert module.Pair(1).second == 5


@pytest.mark.parametrize(
    ("scope", "old", "new", "said"),
    [
        (
            "above",
            "x + bye",
            "",
            r"learning/edited_here.py, above: 'x \+ bye' does not stand there; most like it is line 13:",
        ),
        ("above", "x", "y", r"edited_here.py, above: 'x' stands there 2 times, must stand once; take in more"),
        ("abov", "x", "y", r"edited_here.py has no abov; above is most like it"),
        ("above", "x + by)", "x + by", r"edited_here.py, above: with the edit this is no Python: "),
        (
            "Child.__str__",
            "super().__repr__()",
            '""',
            r"edited_here.py, Child.__str__: with the edit it takes other names",
        ),
    ],
)
def test_an_edit_that_does_not_fit_says_where_and_what_is_like_it(
    module: ModuleType, scope: str, old: str, new: str, said: str
) -> None:
    with pytest.raises(EditError, match=said), planted(edit(scope, old, new)):
        pass
    assert module.above(3) == 8


def test_another_thread_waits_until_an_edit_is_undone(module: ModuleType) -> None:
    seen: list[int] = []

    def other() -> None:
        with planted(edit("above", "* times", "+ times")):
            seen.append(module.above(3))

    thread = threading.Thread(target=other)
    with planted(edit("above", "x + by", "x - by")):
        thread.start()
        thread.join(0.05)
        assert (seen, module.above(3)) == ([], 4)
    thread.join()
    assert (seen, module.above(3)) == ([6], 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
def test_a_forked_process_keeps_the_edit_and_can_make_others(module: ModuleType) -> None:
    held, go = threading.Event(), threading.Event()

    def other() -> None:
        with planted(edit("kept", "x + 1", "x - 1")):
            held.set()
            go.wait()

    thread = threading.Thread(target=other)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        with planted(edit("above", "x + by", "x - by")):
            os._exit(module.above(3) + 10 * module.kept.__wrapped__(1))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    go.set()
    thread.join()
    assert (status, module.above(3), module.kept.__wrapped__(1)) == (4, 8, 2)


def test_a_diff_shows_what_changes(module: ModuleType) -> None:
    shown = edits.diff([edit("above", "x + by", "x - by")], 0)
    assert [line for line in shown.splitlines() if re.match("[-+] ", line)] == [
        "-    return (x + by) * times",
        "+    return (x - by) * times",
    ]


def test_every_mutant_fits_the_source_and_says_all_that_is_needed() -> None:
    assert list(edits.faults()) == []
    assert any(mutant.edits for mutant in mutants.load().values())


BAD = {
    "at = 1": r"missing \['clauses', 'effect', 'kind', 'new', 'old', 'source'\], unknown \[\]",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold=["a", "b"]\nnew="c"': "lists of one length",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold=""\nnew="c"': "old not empty",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold="a"\nnew="c"\nwhy=""': r"unknown \['why'\]",
}


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_lacks_something_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(f"[a-mutant]\n{text}\n")
    with pytest.raises(EditError, match=f"some.toml, a-mutant: .*{BAD[text]}"):
        list(edits.read(tmp_path / "some.toml"))


def test_power_says_which_edit_no_longer_fits_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["power", "--edits"]) == 0
    assert capsys.readouterr().out == "all mutants fit the source\n"
    text = 'at="protocols/lightsecagg.py:recover"\nclauses="LSA-13"\neffect="e"\nkind="sum"\nsource="sign"\n'
    (tmp_path / "some.toml").write_text(f'[a-mutant]\n{text}old="field.subtrakt("\nnew="field.add("\n')
    monkeypatch.setattr(edits, "files", lambda: [tmp_path / "some.toml"])
    assert cli.main(["power", "--edits"]) == 1
    said = capsys.readouterr().err
    assert "spec/mutants/some.toml, a-mutant: secagg_spec/protocols/lightsecagg.py, recover: 'field.subtrakt('" in said
    assert "most like it is line" in said
    assert "secagg-spec power --regenerate -k NAME" in said
    assert cli.main(["power", "--edits", "-k", "x"]) == 2
    assert "--edits goes with no other option" in capsys.readouterr().err


def test_an_equivalent_edit_that_fits_no_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = Edit("arithmetic/modular.py", "Ring.add", (("stands nowhere", ""),))
    monkeypatch.setattr(edits, "equivalent", lambda: [("added-in-another-way", stale)])
    [fault] = edits.faults()
    assert fault.startswith("spec/equivalent.toml, added-in-another-way: secagg_spec/arithmetic/modular.py, Ring.add:")
