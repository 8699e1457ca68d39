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

from secagg_spec import cli, protocols, resources
from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.conformance.mutants import engine
from secagg_spec.conformance.mutants.engine import Edit, EditError, planted
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from tests.strategies import vector

SOURCE = '''
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, cached_property
from math import floor

LIMIT = 3
NAMES = {"a": LIMIT}
SQUARES = [n * n for n in (1, 2)]


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


def many():
    yield from (1, 1, 1)


@contextmanager
def opened():
    yield floor(2.5)


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


@dataclass
class Base:
    size: int = 1


@dataclass
class Wide(Base):
    width: int = 2


class Colour(Enum):
    RED = 1


def bare(function):
    return lambda: function()


@bare
def wrapped() -> int:
    return 1


class Twice:
    @property
    def value(self) -> int:
        return 1


HANDLERS = {"above": above}
'''
FILE = "protocols/edited_here.py"
NAME, IMPORTER, OTHER = (f"secagg_spec.protocols.{name}" for name in ("edited_here", "importer", "stranger"))
IMPORTS = "from secagg_spec.protocols.edited_here import LIMIT, NAMES as known, above, floor, HANDLERS\n"


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that stands for the package of the edits."""
    (tmp_path / "protocols").mkdir()
    monkeypatch.setattr(engine, "_PACKAGE", tmp_path)
    monkeypatch.setattr(engine, "_ROOT", "secagg_spec")
    engine._original.cache_clear()
    engine._caches.cache_clear()
    return tmp_path


@pytest.fixture
def module(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A module of the package with the source above, one that imports from it, and one that has a name in common."""
    made = loaded(NAME, SOURCE, package, monkeypatch)
    loaded(IMPORTER, IMPORTS, package, monkeypatch)
    loaded(OTHER, "LIMIT = 3\nFRESH = None\n", package, monkeypatch)
    engine._caches.cache_clear()
    yield made
    engine._original.cache_clear()
    engine._caches.cache_clear()


def loaded(name: str, source: str, package: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module of the package, of this source, as if it had been imported."""
    path = package / "protocols" / f"{name.rpartition('.')[2]}.py"
    path.write_text(source)
    made = ModuleType(name)
    made.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(source, str(path), "exec"), vars(made))
    return made


def edit(scope: str, *changes: str) -> Edit:
    """Return an edit of the module from texts and what takes their places, in turn."""
    return Edit(FILE, scope, tuple(zip(changes[::2], changes[1::2], strict=True)))


def test_an_importer_runs_the_edited_function_and_the_right_one_afterwards(module: ModuleType) -> None:
    importer = sys.modules[IMPORTER]
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
    assert module.kept(1) == 2
    with planted(edit("kept", "x + 1", "x - 1")):
        assert module.kept(1) == 0
    assert module.kept(1) == 2
    with planted(edit("Child.__str__", '"!"', '"?"')):
        assert str(module.Child(1)).endswith("?")
    with planted(edit("counter", "start + LIMIT", "start - LIMIT")):
        assert module.counter()() == -2
    assert module.counter()() == 4
    with planted(edit("opened", "2.5", "3.5")), module.opened() as value:
        assert value == 3
    with planted(edit("many", "1, 1, 1", "1,")):
        assert list(module.many()) == [1]
    with planted(edit("Twice.value", "1", "2")):
        assert module.Twice().value == 2


def test_a_constant_is_edited_wherever_it_is_referred_to(module: ModuleType) -> None:
    importer = sys.modules[IMPORTER]
    with planted(edit("", "LIMIT = 3\n", "LIMIT = 1000003\n")):
        assert (module.LIMIT, importer.LIMIT, module.counter()()) == (1000003, 1000003, 1000004)
        assert importer.known is module.NAMES == {"a": 1000003}
    with planted(edit("", '{"a": LIMIT}', '{"a": LIMIT + 1}')):
        assert importer.known == {"a": 4}
    with planted(edit("", "[n * n for", "[n + n for")):
        assert module.SQUARES == [2, 4]
    with planted(edit("", "import floor", "import ceil as floor")), module.opened() as value:
        assert (value, importer.floor(0.5)) == (3, 1)
    assert (importer.LIMIT, importer.known, module.SQUARES, importer.floor(0.5)) == (3, {"a": 3}, [1, 4], 0)


def test_an_edit_of_a_module_reaches_nobody_who_does_not_import_it(module: ModuleType) -> None:
    before = {name: dict(vars(sys.modules[name])) for name in (NAME, IMPORTER, OTHER)}
    with planted(edit("", "LIMIT = 3\n", "LIMIT = 4\nFRESH = 5\n")):
        assert (module.LIMIT, module.FRESH) == (4, 5)
        assert vars(sys.modules[OTHER]) == before[OTHER]
        assert "FRESH" not in vars(sys.modules[IMPORTER])
    assert {name: dict(vars(sys.modules[name])) for name in before} == before


def test_a_function_is_edited_for_all_who_hold_it_also_in_an_edit_of_the_module(module: ModuleType) -> None:
    importer = sys.modules[IMPORTER]
    with planted(edit("", "x + by", "x - by", "start + LIMIT", "start - LIMIT")):
        assert (module.HANDLERS["above"](3), importer.above(3), module.counter()()) == (4, 4, -2)
    with planted(edit("Pair", "self.first + ", "self.first - ", "return cls(first)", "return cls(first, first)")):
        assert module.Pair.made(2).total == 0
    assert (module.HANDLERS["above"](3), module.Pair.made(2).total) == (8, 7)


def test_a_module_that_is_imported_meanwhile_gets_the_right_value_afterwards(
    module: ModuleType, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with planted(edit("", "LIMIT = 3\n", "LIMIT = 4\n")):
        late = loaded("secagg_spec.protocols.late", IMPORTS.replace("LIMIT", "LIMIT as most"), package, monkeypatch)
        assert (late.most, late.known) == (4, {"a": 4})
    assert (late.most, late.known) == (3, {"a": 3})


def test_a_default_of_a_dataclass_is_edited_in_the_class(module: ModuleType) -> None:
    with planted(edit("Pair", "second: int = 5", "second: int = 6")):
        assert module.Pair(1).second == 6
    assert module.Pair(1).second == 5
    with planted(edit("Pair", "second: int = 5", "second: int = field(default=5, compare=False)")):
        assert module.Pair(1, 2) == module.Pair(1, 3)
    assert module.Pair(1, 2) != module.Pair(1, 3)


def test_methods_are_added_to_a_class_and_taken_away(module: ModuleType) -> None:
    method = '    def __str__(self) -> str:\n        return super().__repr__() + "!"\n'
    with planted(edit("Child", method, "    pass\n")):
        assert str(module.Child(1)) == "Child(first=1, second=5)"
    with planted(
        edit("Child", "    def __str__", "    def __len__(self): return len(super().__repr__())\n    def __str__")
    ):
        assert len(module.Child(1)) == 24
    assert not hasattr(module.Child, "__len__")
    assert str(module.Child(1)).endswith("!")


@pytest.mark.parametrize(
    ("scope", "old", "new", "said"),
    [
        (
            "above",
            "x + bye",
            "",
            r"protocols/edited_here.py, above: 'x \+ bye' does not stand there; most like it is line 17:",
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
        ("many", "1, 1", "2", r"edited_here.py, many: '1, 1' stands there 2 times"),
        (
            "above",
            "return (x",
            "return  (x",
            r"edited_here.py, above: the edit changes nothing that runs",
        ),
        ("above", "by: int = 1", "by: int = 2 - 1", r"edited_here.py, above: the edit changes nothing that runs"),
        (
            "Twice",
            "    @property",
            "    return 1\n    @property",
            r"edited_here.py, Twice: with the edit this is no Python",
        ),
        (
            "",
            "LIMIT = 3\n",
            "LIMIT = 3\nNAMES['b'] = 4\n",
            r"edited_here.py, the module: .* does more than bind names",
        ),
        ("", "LIMIT = 3\n", "", r"edited_here.py, the module: LIMIT cannot be taken away"),
        ("", "by: int = 1", "by: int = LIMIT, more: int = 1 // 0", r"cannot be made: ZeroDivisionError"),
        ("Base", "size: int = 1", "size: int = 2", r"edited_here.py, Base: members of Base, or other dataclasses"),
        ("Colour", "RED = 1", "RED = 2", r"edited_here.py, Colour: members of Colour"),
        ("wrapped", "1", "2", r"edited_here.py, wrapped: wrapped is no function of its own when the program runs"),
    ],
)
def test_an_edit_that_does_not_fit_says_where_and_what_is_like_it(
    module: ModuleType, scope: str, old: str, new: str, said: str
) -> None:
    before = dict(vars(module))
    with pytest.raises(EditError, match=said), planted(edit(scope, old, new)):
        pass
    assert module.above(3) == 8
    assert {**vars(module), "NAMES": {"a": 3}} == before


def test_changes_are_made_at_once_so_that_none_sees_what_another_one_wrote(module: ModuleType) -> None:
    with planted(edit("above", "(x + by)", "(x * times)", "* times", "* by")):
        assert module.above(3) == 6
    with (
        pytest.raises(EditError, match="'x - by' does not stand there"),
        planted(edit("above", "x + by", "x - by", "x - by", "x")),
    ):
        pass
    with pytest.raises(EditError, match="overlap"), planted(edit("above", "x + by", "x", "by) * times", "by)")):
        pass


def test_statements_in_another_order_change_nothing(module: ModuleType) -> None:
    swapped = edit("", "LIMIT = 3\nNAMES", "NAMES", "SQUARES", "LIMIT = 3\nSQUARES")
    with pytest.raises(EditError, match="the edit changes nothing when the program runs"), planted(swapped):
        pass


def test_what_others_computed_when_they_were_imported_is_named(
    module: ModuleType, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = loaded("secagg_spec.protocols.late", f"{IMPORTS}TWICE = 2 * LIMIT\n", package, monkeypatch)
    said = "line 2 of secagg_spec.protocols.late uses LIMIT when the program starts: edit that line"
    with pytest.raises(EditError, match=said), planted(edit("", "LIMIT = 3\n", "LIMIT = 4\n")):
        pass
    assert (module.LIMIT, other.TWICE) == (3, 6)
    loaded("secagg_spec.protocols.late", IMPORTS, package, monkeypatch)
    module_with_default = SOURCE.replace("by: int = 1", "by: int = LIMIT")
    loaded(NAME, module_with_default, package, monkeypatch)
    engine._original.cache_clear()
    with (
        pytest.raises(EditError, match=r"line 15 of .*edited_here uses LIMIT when"),
        planted(edit("", "LIMIT = 3\n", "LIMIT = 4\n")),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No module named 'secagg_spec.protocols.half'"),
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("LIMIT = 3\n1 // 0", "ZeroDivisionError"),
    ],
)
def test_a_module_whose_import_ends_half_way_leaves_all_as_it_was(
    text: str | None, why: str, package: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocols, "__path__", [str(package / "protocols")])
    if text:
        (package / "protocols" / "half.py").write_text(text)
    before = dict(engine._TEXTS)
    with (
        planted(edit("above", "x + by", "x - by")),
        pytest.raises(EditError, match=why),
        planted(Edit("protocols/half.py", "", (("LIMIT", "MOST"),))),
    ):
        pass
    assert module.above(3) == 8
    assert (engine._MADE, "secagg_spec.protocols.half" in sys.modules) == ([], False)
    assert {file: text for file, text in engine._TEXTS.items() if text} == {f: t for f, t in before.items() if t}


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
def test_a_forked_process_keeps_no_edit_of_another_thread_and_can_make_others(module: ModuleType) -> None:
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
            os._exit(module.above(3) + 10 * module.kept(1))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    go.set()
    thread.join()
    assert (status, module.above(3), module.kept(1)) == (24, 8, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks processes")
def test_a_process_that_is_forked_within_an_edit_undoes_it_alone(module: ModuleType) -> None:
    with planted(edit("above", "x + by", "x - by")):
        child = os.fork()
        if child:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert (status, module.above(3)) == (48, 4)
        else:
            with planted(edit("above", "* times", "+ times")):
                first = module.above(3)
    if not child:
        os._exit(first + module.above(3) * 5 + module.above(1))
    assert module.above(3) == 8


def test_a_diff_shows_what_changes(module: ModuleType) -> None:
    shown = engine.diff([edit("above", "x + by", "x - by")], 0)
    assert [line for line in shown.splitlines() if re.match("[-+] ", line)] == [
        "-    return (x + by) * times",
        "+    return (x - by) * times",
    ]


@pytest.mark.slow
def test_every_mutant_fits_the_source_and_says_all_that_is_needed() -> None:
    assert list(engine.faults()) == []
    assert any(mutant.edits for mutant in mutants.load().values())


BAD = {
    "a-member = 1": r"missing \['at', 'clauses', 'effect', 'kind', 'new', 'old', 'source'\], unknown \['a-member'\]",
    "at = 1": r"missing \['clauses', 'effect', 'kind', 'new', 'old', 'source'\], unknown \[\]",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold=["a", "b"]\nnew="c"': "lists of one length",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold=""\nnew="c"': "old not empty",
    'at="a.py"\nclauses="X"\neffect="e"\nkind="k"\nsource="s"\nold="a"\nnew="c"\nwhy=""': r"unknown \['why'\]",
}


def test_what_is_no_table_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text('a-mutant = "x"\n')
    with pytest.raises(EditError, match=r"some.toml, a-mutant: must be a table, which begins with \[a-mutant\]"):
        list(engine.read(tmp_path / "some.toml"))


@pytest.mark.parametrize("content", [b"[x", b"\xff"])
def test_a_file_that_is_not_toml_is_one_line(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vectors").mkdir()
    for name in ("vectors/unbreakable.toml", "equivalent.toml", "some.toml"):
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr(resources, "root", lambda part: tmp_path)
    for read in (mutants.unbreakable, mutants.equivalent, lambda: list(engine.read(tmp_path / "some.toml"))):
        with pytest.raises(EditError, match=r"^[a-z]+\.toml: cannot be used: "):
            read()


@pytest.mark.parametrize("text", BAD)
def test_a_file_that_lacks_something_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(f"[a-mutant]\n{text}\n")
    with pytest.raises(EditError, match=f"some.toml, a-mutant: .*{BAD[text]}"):
        list(engine.read(tmp_path / "some.toml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[a]\nparts=["gone", "b"]\n', "a: gone is no mutant with an edit"),
        ('[a]\nparts=["b", "a"]\n', "a: a is no mutant with an edit"),
        ("[a]\nparts=[]\n[b]\nparts=[]\n", "two.toml: a is the name of another mutant"),
    ],
)
def test_files_that_do_not_fit_together_are_refused_each_time(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = 'clauses="LSA-13"\neffect="e"\nkind="sum"\nsource="sign"\n'
    edited = f'[b]\nat="protocols/lightsecagg/round.py:recover"\nold="field.subtract("\nnew="field.add("\n{about}'
    (tmp_path / "one.toml").write_text(text.replace("]\nparts", f"]\n{about}parts"))
    (tmp_path / "two.toml").write_text(edited.replace("[b]", "[a]") if "[b]" in text else edited)
    monkeypatch.setattr(engine, "files", lambda: [tmp_path / "one.toml", tmp_path / "two.toml"])
    before = dict(mutants.REGISTRY)
    for _ in range(2):
        with pytest.raises(EditError, match=said):
            mutants.load.__wrapped__()
    assert before == mutants.REGISTRY


@pytest.mark.slow
def test_power_says_which_edit_no_longer_fits_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["power", "--edits"]) == 0
    assert capsys.readouterr().out == "all mutants fit the source\n"
    text = 'at="protocols/lightsecagg/round.py:recover"\nclauses="LSA-13"\neffect="e"\nkind="sum"\nsource="sign"\n'
    (tmp_path / "some.toml").write_text(f'[a-mutant]\n{text}old="parameters.field.minus("\nnew="field.add("\n')
    monkeypatch.setattr(engine, "files", lambda: [tmp_path / "some.toml"])
    assert cli.main(["power", "--edits"]) == 1
    said = capsys.readouterr().err
    place = "spec/mutants/some.toml, a-mutant: secagg_spec/protocols/lightsecagg/round.py, recover"
    assert f"{place}: 'parameters.field.minus('" in said
    assert re.search(r"most like it is line \d+: 'return parameters.field.subtract\(", said)
    assert "1 mutant no longer fits the source." in said
    assert "secagg-spec power --regenerate -k NAME says whether something still kills it." in said
    assert cli.main(["power", "--edits", "-k", "x"]) == 2
    assert "--edits goes with no other option" in capsys.readouterr().err


@pytest.mark.slow
def test_an_equivalent_edit_that_fits_no_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = Edit("arithmetic/modular.py", "Ring.add", (("stands nowhere", ""),))
    monkeypatch.setattr(engine, "equivalent", lambda: [("added-in-another-way", stale)])
    [fault] = engine.faults()
    assert fault.startswith("spec/equivalent.toml, added-in-another-way: secagg_spec/arithmetic/modular.py, Ring.add:")


@pytest.mark.parametrize("again", [1, 2])
def test_an_edit_of_a_row_is_made_in_the_step_and_in_its_table(again: int) -> None:
    state = lightsecagg.user_start(lightsecagg.PRESETS["tiny"], bytes(16), again, 2, vector([0, 1, 2]), PlainChannel())
    step, table = lightsecagg.user_upload, lightsecagg.TABLE
    edit = Edit("protocols/lightsecagg/round.py", "user_upload", (("user.others", "range(user.parameters.N)"),))
    assert step.senders is not None
    with planted(edit):
        made = lightsecagg.user_upload
        assert made.senders is not None
        assert (set(step.senders(state)), set(made.senders(state))) == ({0, 1, 3, 4}, {0, 1, 2, 3, 4})
        assert [row is made for row in lightsecagg.TABLE] == [row is step for row in table]
    assert lightsecagg.user_upload is step
    assert lightsecagg.TABLE is table
