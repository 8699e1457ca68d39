"""Documents in JSON and TOML: what cannot be used, or would be changed, is an error of one line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from secagg_spec import documents, system
from secagg_spec.documents import DEEPEST, Limit
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import claims, figures, results
from secagg_spec.ledger import entries, papers, promises, roots, theorems
from secagg_spec.ledger.errors import BrokenFile, LedgerError

LONG = "9" * 5000
JSON = {
    "": "is not JSON: Expecting value in line 1",
    "[1,\n 2": "is not JSON: Expecting ',' delimiter in line 2",
    "[" * 100_000: "is nested deeper than 128 levels",
    "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1): "is nested deeper than 128 levels",
    f"[{LONG}]": "holds an integer of more than 4,300 digits",
    "[1e400]": "holds a number beyond binary64, 1e400",
    "[NaN]": "has NaN, which is no JSON",
    '{"a": 1, "a": 1}': "holds an object with two members 'a'",
}
TOML = {
    "a =": "Invalid value",
    "a = " + "[" * 100_000: "is nested deeper than 128 levels",
    "a" + ".a" * 5000 + " = 1": "is nested deeper than 128 levels",
    "a = " + "[" * DEEPEST + "]" * DEEPEST: "is nested deeper than 128 levels",
    "a = 1e400": "holds a number beyond binary64, 1e400",
    f"a = [{LONG}]": "holds an integer of more than 4,300 digits",
    "a = [{ b = 0x" + "f" * 5000 + " }]": "holds an integer of more than 4,300 digits",
}
NO_TABLES = [*TOML, "", "promise = 3\nroot = 3", "promise = ['x']\nroot = ['x']", "promise = [[]]\nroot = [[]]"]


@pytest.mark.parametrize("text", JSON)
def test_what_is_no_usable_json_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    for in_file in (False, True):
        with pytest.raises(ValueError, match=r"^(is|holds|has) ") as refused:
            documents.read_json(path) if in_file else documents.from_json(text)
        assert str(refused.value) == JSON[text]


def test_a_name_that_comes_twice_is_found_at_once_among_many() -> None:
    names = [*map(str, range(100_000)), "99999"]
    with pytest.raises(documents.Limit, match=r"^holds an object with two members '99999'$"):
        documents.from_json("{" + ", ".join(f'"{name}": 1' for name in names) + "}")


@pytest.mark.parametrize("text", [None, b"{}", 5])
def test_what_is_no_text_is_refused(text: Any) -> None:
    for read in (documents.from_json, documents.from_toml, documents.loads):
        with pytest.raises(ValueError, match=r"^is no text, but of the class "):
            read(text)


@pytest.mark.parametrize("text", TOML)
def test_what_is_no_usable_toml_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"[a-z]") as refused:
        documents.from_toml(text)
    assert str(refused.value).startswith(TOML[text])
    assert "\n" not in str(refused.value)


def test_a_lone_carriage_return_ends_no_line_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_bytes(b"a = 1 # off\rb = 2\n")
    with pytest.raises(tomllib.TOMLDecodeError, match="character"):
        documents.read_toml(path)
    with pytest.raises(BrokenFile, match=r"^list\.toml:1: is not TOML"):
        roots.load(entries.load(), path)
    assert documents.read_text(path) == "a = 1 # off\nb = 2\n"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert documents.read_toml(path) == {"a": 1, "b": 2}


def test_what_python_cannot_read_is_not_said_to_be_beyond_another_limit() -> None:
    assert documents.loads("[" * 500 + "]" * 500)
    with pytest.raises(documents.TooDeep, match=r"^is nested deeper than Python reads$"):
        documents.loads("[" * 100_000)


@pytest.mark.parametrize("part", ["a", "a-1_", '"a.\\"b"', "'a.b'"])
@pytest.mark.parametrize(
    "form", ["{} = 1", "b = 1\n  {} = 1", "[{}]", "[[ {} ]]", "b = {{ {} = 1 }}", "b = {{ c = 1,{} = 1 }}"]
)
def test_a_key_of_too_many_parts_is_not_parsed_which_takes_the_square_of_its_length(
    monkeypatch: pytest.MonkeyPatch, part: str, form: str
) -> None:
    for between in (".", " .\t"):
        assert documents.from_toml(form.format(between.join([part] * (DEEPEST - 2))))
        with monkeypatch.context() as patched:
            patched.setattr("tomllib.loads", None)
            with pytest.raises(documents.TooDeep):
                documents.from_toml(form.format(between.join([part] * (DEEPEST + 1))))


@pytest.mark.parametrize("text", ["\udcff", "[" * DEEPEST + "]" * DEEPEST])
def test_what_is_in_a_file_is_read_up_to_the_limits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    if text == "\udcff":
        for read in (documents.read_json, documents.read_toml):
            with pytest.raises(documents.NotText, match=r"^is not UTF-8 in line 1$"):
                read(path)
    else:
        assert documents.read_json(path) == json.loads(text)
    for zero in ("0.0", "-0.00e7", "0e-999", "1e-400"):
        assert documents.from_json(zero) == documents.from_toml(f"a = {zero}")["a"] == 0
    longest = "-" + "9" * documents.MOST_DIGITS
    assert documents.from_json(longest) == documents.from_toml(f"a = {longest}")["a"] == int(longest)
    with pytest.raises(Limit):
        documents.from_json(longest + "9")


@pytest.mark.parametrize("text", NO_TABLES)
@pytest.mark.parametrize("load", [promises.load, roots.load], ids=["promises", "roots"])
def test_a_list_of_the_ledger_that_is_none_is_broken(load: Callable[..., Any], text: str, tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BrokenFile, match=r"^list\.toml(:1: is not TOML|: cannot be read): ") as refused:
        load(entries.load(), path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", [*TOML, ""])
@pytest.mark.requirement("CLM-04")
def test_claims_that_are_no_toml_are_a_broken_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "test.toml").write_text(text, encoding="utf-8")
    for load in (entries.load, lambda folder: papers.load(entries.load(), folder)):
        with pytest.raises(LedgerError, match=r"^test\.toml") as refused:
            load(tmp_path)
        assert "\n" not in str(refused.value)


def test_a_root_without_an_id_and_a_promise_with_a_text_for_a_list_are_refused(tmp_path: Path) -> None:
    book, path = entries.load(), tmp_path / "list.toml"
    path.write_text('[[root]]\nseverity = "wording"\nfails = "Slips."\n', encoding="utf-8")
    with pytest.raises(LedgerError, match=r"^(list|[a-z-]+)\.toml(:\d+)?: "):
        roots.load(entries.Ledger({}, {}, {}, {}), path)
    for field, value in (("theorems", '"Quorum.quorum"'), ("argued", '["it"]')):
        path.write_text(f'[[promise]]\npage = "basa"\nwhat = "sums"\n{field} = {value}\n', encoding="utf-8")
        with pytest.raises(LedgerError, match=f"{field}: must not be empty, and holds texts"):
            promises.load(book, path)


@pytest.mark.parametrize("path", ["a\0b", Path("a\0b"), 3, b"", ["x"], ""])
def test_a_path_that_is_none_is_a_wrong_parameter(path: Any) -> None:
    book = entries.load()
    for load in (
        entries.load,
        theorems.load,
        claims.stored,
        figures.load,
        results.read,
        results.load,
        lambda path: papers.load(book, path),
        lambda path: promises.load(book, path),
        lambda path: roots.load(book, path),
    ):
        with pytest.raises(ParameterError, match="must be a path of the file system"):
            load(path)


@pytest.mark.parametrize("read", [documents.read_text, documents.read_json, documents.read_toml])
def test_a_document_is_in_a_file_of_so_many_bytes(read: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    wrong: Any
    for wrong in (None, 5, b"a"):
        with pytest.raises(ParameterError, match=r"^path = '.*': must be a path of the file system, as text or Path$"):
            read(wrong)
    for wrong in (-1, "1", 1.0, None, True):
        with pytest.raises(ParameterError, match=r"^most = .*: must be a number of bytes, at least 0$"):
            read(tmp_path / "empty", wrong)


def test_a_path_with_a_null_character_is_no_file() -> None:
    with pytest.raises(OSError, match="no path has a null character"):
        system.regular(Path("a\0b"))


@pytest.mark.requirement("EXP-28")
@pytest.mark.parametrize("text", [*JSON, "{}", "[]", "3"])
def test_what_is_no_stored_result_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    for load in (results.read, lambda path: claims.stored(path.parent)):
        with pytest.raises(ParameterError, match=r"^results") as refused:
            load(path)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", [*TOML, "figure = 3"])
def test_what_is_no_list_of_figures_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "figures.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match=r"figures") as refused:
        figures.load(path)
    assert "\n" not in str(refused.value)
