"""The history of the text: no id vanishes or is used again, and what a release sealed stays as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import __version__, cli, history, resources
from secagg_spec.commands import text as text_command
from secagg_spec.errors import ParameterError
from secagg_spec.history import History, HistoryError, State, Text, Version, words

ROOT = Path(__file__).parents[1]
SAID = {"AAA-01": "A MUST b.", "AAA-02": "A MUST c.", "BBB-01": "A MAY d."}


def text(said: Mapping[str, str], number: str = "0.1.0", around: str = "steps", **pages: str) -> Text:
    """A text of clauses, all on one page but for those that `pages` names."""
    states = {id: State(number, pages.get(id[:3], "one.md"), words(report)) for id, report in said.items()}
    return Text(number, states, {"one.md": words(around)}, words(repr(sorted(said.items())) + around) * 2)


def begun(said: Mapping[str, str] = SAID) -> History:
    """A history whose only version is not released."""
    return history.renewed(History((Version("0.1.0"),), {}), text(said))


def released(book: History, now: Text, day: str = "2030-01-31") -> History:
    """A history whose last version is released and sealed."""
    return history.renewed(replace(book, versions=(*book.versions[:-1], replace(book.present, released=day))), now)


def _sealed() -> History:
    """A history of one version, released and sealed."""
    return released(begun(), text(SAID))


def again(book: History, folder: Path) -> History:
    """A history as it is read again."""
    (folder / history.FILE).write_text(history.written(book), encoding="utf-8")
    return history.read(folder / history.FILE)


# ------------------------------------------------------------------------------------------------- of this text


def test_the_history_is_that_of_the_text() -> None:
    assert list(history.faults(history.load(), history.text())) == []
    path = resources.root("spec") / history.FILE
    assert path.read_text(encoding="utf-8") == history.written(history.load()), f"run {history.COMMAND}"


def test_all_that_names_the_version_names_that_of_the_text() -> None:
    present = history.load().present
    head = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert head is not None
    assert head[1] == f"{__version__}, {present.released or 'unreleased'}"
    assert present.number == __version__
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_what_stands_around_the_clauses_is_no_clause() -> None:
    for page in resources.PAGES:
        assert not re.search(r"- \[[A-Z]+-\d\d\]", resources.around(page)), page
    assert "Messages and their bytes" in resources.around("conventions.md")


def test_line_ends_of_another_system_do_not_change_the_digest_and_words_do(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other", "changed")]
    for folder, content in zip(folders, (b"a\nb\n", b"a\r\nb\r\n", b"a\nc\n"), strict=True):
        folder.mkdir()
        (folder / "page.md").write_bytes(content)
    one, other, changed = (resources.digest([folder / "page.md"]) for folder in folders)
    assert one == other != changed


# ------------------------------------------------------------------------------------------ before a release


def test_before_a_release_words_change_and_clauses_come_freely() -> None:
    new = {**SAID, "AAA-01": "A MUST e.", "CCC-01": "A MAY f."}
    book = history.renewed(begun(), text(new, BBB="two.md"))
    assert {id: len(states) for id, states in book.clauses.items()} == dict.fromkeys(new, 1)
    assert book.clauses["BBB-01"][0].page == "two.md"
    assert history.changes(book, book.present, text(new)).added == list(new)


@pytest.mark.parametrize(
    ("said", "report"),
    [
        ({**SAID, "AAA-01": "A MUST e."}, "out of date for AAA-01"),
        ({**SAID, "CCC-01": "A MAY f."}, "out of date for CCC-01"),
        ({id: said for id, said in SAID.items() if id != "AAA-02"}, "AAA-02 vanished"),
    ],
)
def test_a_history_that_does_not_fit_the_text_is_told(said: Mapping[str, str], report: str) -> None:
    assert list(history.faults(begun(), text(SAID))) == []
    faults = list(history.faults(begun(), text(said)))
    assert len(faults) == 1
    assert report in faults[0]


@given(st.sampled_from(list(SAID)), st.sampled_from([" ", "\n", "\n  ", "\t", "  "]))
def test_where_a_line_ends_is_no_change(id: str, space: str) -> None:
    assert list(history.faults(begun(), text({**SAID, id: SAID[id].replace(" ", space)}))) == []


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_texts_have_one_digest_exactly_when_their_words_are_equal(one: str, other: str) -> None:
    assert (words(one) == words(other)) == (one.split() == other.split())


@given(st.sets(st.sampled_from(list(SAID)), min_size=1))
def test_an_id_never_vanishes(lost: set[str]) -> None:
    with pytest.raises(HistoryError, match=rf"{min(lost)} vanished from the text.*in place of its last state"):
        history.renewed(begun(), text({id: said for id, said in SAID.items() if id not in lost}))


def test_what_the_message_says_to_write_withdraws_a_clause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for book, at in ((begun({"AAA-01": SAID["AAA-01"], "BBB-01": "A MAY d."}), "0.1.0"), (_sealed(), "0.2.0")):
        now = text({id: SAID[id] for id in book.clauses if id != "BBB-01"}, at)
        with pytest.raises(HistoryError) as report:
            history.renewed(book, now)
        found = re.search(r"by (\{.*\}) (in place of|behind)", str(report.value))
        assert found is not None
        (line,) = (row for row in history.written(book).splitlines() if row.startswith("BBB-01"))
        old = line.removeprefix("BBB-01 = [").removesuffix("]")
        states = f"{old}, {found[1]}" if found[2] == "behind" else found[1]
        whole = history.written(book).replace(line, f"BBB-01 = [{states}]")
        (tmp_path / history.FILE).write_text(whole, encoding="utf-8")
        monkeypatch.setattr(history, "__version__", at)
        ended = history.renewed(history.read(tmp_path / history.FILE), now)
        assert ended.withdrawn() == {"BBB-01": State(at, "one.md", withdrawn="why")}
        assert history.changes(ended, ended.present, now).withdrawn == ["BBB-01"]
        assert list(history.faults(again(ended, tmp_path), now)) == []


def test_an_id_that_vanishes_after_the_release_asks_for_another_version() -> None:
    with pytest.raises(HistoryError, match=r"the text changed after 0\.1\.0 was released: raise the version"):
        history.renewed(_sealed(), text({id: said for id, said in SAID.items() if id != "BBB-01"}))


def _ended(book: History, number: str, id: str = "BBB-01", *instead: str) -> History:
    """A history with a version more, in which a clause is withdrawn."""
    end = State(number, "one.md", withdrawn="it says nothing", instead=instead)
    opened = history.opened(book, number)
    return replace(opened, clauses={**book.clauses, id: (*book.clauses[id], end)})


def test_an_id_that_was_withdrawn_is_never_used_again() -> None:
    with pytest.raises(HistoryError, match=r"BBB-01 was withdrawn in 0\.2\.0, and an id is never used again"):
        history.renewed(_ended(_sealed(), "0.2.0"), text(SAID, "0.2.0"))


# ------------------------------------------------------------------------------------------- after a release


def test_a_release_is_sealed_once() -> None:
    book = _sealed()
    assert book.present.text == text(SAID).digest
    assert book.present.standing == "released on 2030-01-31"
    assert history.renewed(book, text(SAID)) == book


@pytest.mark.parametrize(
    "now",
    [
        text({**SAID, "AAA-01": "A MUST e."}),
        text({**SAID, "CCC-01": "A MAY f."}),
        text(SAID, around="other steps"),
        text(SAID, BBB="two.md"),
        replace(text(SAID), digest="0" * 64),
    ],
    ids=["words", "a new clause", "around", "another page", "line ends"],
)
def test_a_released_version_cannot_change(now: Text) -> None:
    with pytest.raises(HistoryError, match=r"after 0\.1\.0 was released: raise the version"):
        history.renewed(_sealed(), now)


def test_what_a_later_version_changes_stands_under_it() -> None:
    new = {"AAA-01": "A MUST e.", "AAA-02": SAID["AAA-02"], "CCC-01": "A MAY f."}
    now = text(new, "0.2.0", "other steps", AAA="two.md")
    book = history.renewed(_ended(_sealed(), "0.2.0", "BBB-01", "CCC-01"), now)
    changed = history.changes(book, book.present, now)
    assert vars(changed) == {
        "added": ["CCC-01"],
        "changed": ["AAA-01"],
        "moved": ["AAA-01", "AAA-02"],
        "withdrawn": ["BBB-01"],
        "pages": ["one.md"],
    }
    assert book.moved() == {"AAA-01": {"one.md"}, "AAA-02": {"one.md"}}
    first = history.changes(book, book.versions[0], now)
    assert (first.added, first.pages) == (list(SAID), [])
    sealed = released(book, now, "2030-05-01")
    assert history.changes(sealed, sealed.present, text(SAID)) == changed
    assert [sealed.changed(id) for id in ("AAA-01", "AAA-02", "BBB-01")] == [["0.2.0"], [], []]


def test_words_that_came_back_before_the_release_are_no_change() -> None:
    changed = history.renewed(_sealed(), text({**SAID, "AAA-01": "A MUST e."}, "0.2.0"))
    back = history.renewed(changed, text(SAID, "0.2.0"))
    assert [len(book.clauses["AAA-01"]) for book in (changed, back)] == [2, 1]


def test_a_version_without_a_change_is_noted_too() -> None:
    faults = list(history.faults(_sealed(), text(SAID, "0.2.0")))
    assert faults == [f"{history.FILE} is out of date for version 0.2.0: run {history.COMMAND}"]
    assert [version.number for version in history.renewed(_sealed(), text(SAID, "0.2.0")).versions] == [
        "0.1.0",
        "0.2.0",
    ]


@pytest.mark.parametrize("number", ["bogus", "", "1.x", "9" * 5000, None, 3, b"0.1.0"])
def test_what_is_no_version_and_no_clause_is_named(number: Any) -> None:
    book = history.load()
    for call in (history.order, lambda one: history.opened(book, one)):
        with pytest.raises(HistoryError, match=r" is no version, such as 0\.1\.0$"):
            call(number)
    wrong: Any
    for wrong in ("AAA-99", ["AAA-99"]):
        with pytest.raises(HistoryError, match=r"^there is no clause .*'AAA-99'"):
            book.changed(wrong)


@pytest.mark.requirement("ERR-02")
def test_arguments_of_another_class_are_named() -> None:
    book, now = _sealed(), text(SAID)
    right: dict[Callable[..., Any], dict[str, Any]] = {
        State("0.1.0", "one.md").same: {"other": State("0.1.0", "one.md")},
        history.words: {"text": "steps"},
        history.seal: {"book": book, "version": book.present},
        history.changes: {"book": book, "version": book.present, "now": now},
        history.renewed: {"book": book, "now": now},
        history.opened: {"book": book, "number": "0.1.0"},
        lambda **given: list(history.faults(**given)): {"book": book, "now": now},
        history.written: {"book": book},
    }
    for call, arguments in right.items():
        call(**arguments)
        for name in arguments.keys() - {"number"}:
            with pytest.raises(ParameterError, match=rf"^{name} = 'int': must be of the class "):
                call(**{**arguments, name: 5})


def test_a_version_of_another_history_and_a_history_of_none_are_refused() -> None:
    with pytest.raises(HistoryError, match=r"^the history has no version '0\.2\.0' like this one$"):
        history.changes(_sealed(), Version("0.2.0"), text(SAID))
    with pytest.raises(HistoryError, match=r"^there is no version$"):
        History((), {})
    with pytest.raises(HistoryError, match=r"^'AAA-01': there is no state$"):
        History((Version("0.1.0"),), {"AAA-01": ()})


def test_half_a_pair_of_surrogates_is_a_word_too() -> None:
    assert len({words("\ud800"), words("\ud801"), words("?")}) == 3


def test_versions_follow_each_other() -> None:
    with pytest.raises(HistoryError, match=r"0\.1\.0 has no seal: set the version back and release it first, or"):
        history.renewed(begun(), text(SAID, "0.2.0"))
    book = history.renewed(_sealed(), text(SAID, "0.10.0"))
    with pytest.raises(HistoryError, match=r"the text has version 0\.9\.0, and history\.toml has 0\.10\.0 already"):
        history.renewed(book, text(SAID, "0.9.0"))


# -------------------------------------------------------------------------------------------------- the file


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    now = text({**SAID, "AAA-01": "A MUST e."}, "0.2.0")
    open_book = history.renewed(_sealed(), now)
    strange = State("0.2.0", "one.md", withdrawn='it says "ü" \\ \x7f nothing', instead=("AAA-01",))
    ended = replace(open_book, clauses={**open_book.clauses, "BBB-01": (*open_book.clauses["BBB-01"], strange)})
    for book in (begun(), _sealed(), open_book, released(open_book, now, "2030-05-01"), ended):
        assert again(book, tmp_path) == book


def _planted(book: History, old: str, new: str, folder: Path) -> Path:
    """A file of a history in which something was written by hand."""
    whole = history.written(book)
    assert whole.count(old) >= 1, old
    path = folder / history.FILE
    path.write_text(whole.replace(old, new, 1), encoding="utf-8")
    return path


def test_what_is_sealed_of_a_withdrawal_stays() -> None:
    now = text({id: said for id, said in SAID.items() if id != "BBB-01"}, "0.2.0")
    book = history.renewed(_ended(_sealed(), "0.2.0", "BBB-01", "AAA-01"), now)
    sealed = released(book, now, "2030-05-01")
    end = sealed.clauses["BBB-01"][-1]
    for other in (replace(end, withdrawn="it says too much"), replace(end, instead=())):
        changed = replace(sealed, clauses={**sealed.clauses, "BBB-01": (*sealed.clauses["BBB-01"][:-1], other)})
        assert history.seal(changed, sealed.present) != sealed.present.seal
    assert history.seal(sealed, replace(sealed.present, text="0" * 64)) != sealed.present.seal


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (words("A MUST b."), words("A MUST e."), "0.1.0 was altered after its release"),
        (words("steps"), words("leaps"), "0.1.0 was altered after its release"),
        ("2030-01-31", "2030-01-30", "0.1.0 was altered after its release"),
        (f'AAA-01 = [{{ since = "0.1.0", page = "one.md", words = "{words("A MUST b.")}" }}]\n', "", "altered"),
        ('since = "0.1.0"', 'since = "0.2.0"', "there is no version 0.2.0"),
        ('page = "one.md"', 'page = "../one"', "does not fit the pattern"),
        ('released = "2030-01-31"\n', "", "'released' is a dependency of 'seal'"),
        (f'seal = "{_sealed().present.seal}"\n', "", "'seal' is a dependency of"),
        ("\nseal = ", "\nzeal = ", "there is no such field"),
        ("[clauses]", "[clauses", "cannot be used"),
        ('number = "0.1.0"', 'number = "0.1"', "does not fit the pattern"),
    ],
)
def test_a_sealed_file_that_was_altered_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    again(_sealed(), tmp_path)
    with pytest.raises(HistoryError) as report:
        history.read(_planted(_sealed(), old, new, tmp_path))
    assert said in str(report.value)
    assert "\n" not in str(report.value)


@pytest.mark.parametrize(
    ("states", "said"),
    [
        ("{0}, {1}", "0.1.0 does not come after 0.1.0"),
        ("{2}, {1}", "AAA-02: 0.1.0 does not come after 0.1.0"),
        ("{3}", "CCC-01 is no clause that could replace it"),
        ("{4}", "AAA-02 is no clause that could replace it"),
        ("{5}", "words: must not be given here|exactly one of the members words, withdrawn"),
        ("", "must not be empty"),
        ("{6}", "'instead' is a dependency of 'withdrawn'"),
        ("{7}", "'withdrawn' is a dependency of 'instead'"),
    ],
)
def test_states_that_contradict_each_other_are_told(tmp_path: Path, states: str, said: str) -> None:
    head = 'since = "0.1.0", page = "one.md"'
    digest = words(SAID["AAA-02"])
    forms = (
        f'{{ {head}, words = "{digest}" }}',
        f'{{ {head}, words = "{words("x")}" }}',
        f'{{ {head}, withdrawn = "why", instead = [] }}',
        f'{{ {head}, withdrawn = "why", instead = ["CCC-01"] }}',
        f'{{ {head}, withdrawn = "why", instead = ["AAA-02"] }}',
        f'{{ {head}, words = "{digest}", withdrawn = "why", instead = [] }}',
        f'{{ {head}, withdrawn = "why" }}',
        f'{{ {head}, words = "{digest}", instead = [] }}',
    )
    with pytest.raises(HistoryError) as report:
        history.read(_planted(begun(), forms[0], states.format(*forms), tmp_path))
    assert re.search(said, str(report.value)), report.value


@pytest.mark.parametrize("day", ["2026-02-30", "2026-13-45", "0000-01-01"])
def test_a_day_that_does_not_exist_is_not_sealed(tmp_path: Path, day: str) -> None:
    book = begun()
    head = f'number = "{book.present.number}"\n'
    with pytest.raises(HistoryError, match=f"released is '{day}', and must be a day like 2000-12-31"):
        history.read(_planted(book, head, f'{head}released = "{day}"\n', tmp_path))


def test_a_clause_does_not_come_back_after_it_was_withdrawn(tmp_path: Path) -> None:
    book = _ended(_sealed(), "0.2.0")
    later = released(book, text({"AAA-01": SAID["AAA-01"], "AAA-02": SAID["AAA-02"]}, "0.2.0"))
    states = (*book.clauses["BBB-01"], State("0.3.0", "one.md", words("A MAY d.")))
    back = replace(history.opened(later, "0.3.0"), clauses={**later.clauses, "BBB-01": states})
    with pytest.raises(HistoryError, match=r"BBB-01: it was withdrawn in 0\.2\.0, and an id is never used again"):
        again(back, tmp_path)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ((Version("0.2.0"), Version("0.1.0")), "0.1.0 does not come after 0.2.0"),
        ((Version("0.1.0", text="ab" * 32),), "'seal' is a dependency of 'text'"),
        ((Version("0.1.0"), Version("0.1.0")), "0.1.0 does not come after 0.1.0"),
        ((Version("0.10.0"), Version("0.9.0")), "0.9.0 does not come after 0.10.0"),
        ((Version("0.1.0"), Version("0.2.0")), "0.1.0 is not the last version, and was never released"),
    ],
)
def test_versions_that_contradict_each_other_are_told(tmp_path: Path, versions: tuple[Version, ...], said: str) -> None:
    with pytest.raises(HistoryError, match=said):
        again(replace(begun(), versions=versions), tmp_path)


def test_a_file_that_is_absent_is_told(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"^history\.toml: cannot be used: "):
        history.read(tmp_path / history.FILE)


# ----------------------------------------------------------------------------------------------- the command


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """What the command gives."""
    capsys.readouterr()
    code = cli.main(["text", *arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_tells_version_digest_and_changes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = shown(capsys)
    assert code == 0
    assert out.startswith(f"the text, version {__version__}, ")
    assert f"\ndigest {resources.text_digest()}\n" in out
    code, out, _ = shown(capsys, history.load().versions[0].number)
    assert code == 0
    assert re.findall(r"[A-Z]+-\d\d", out) == sorted(resources.clauses())
    assert max(map(len, out.splitlines())) <= 100


def test_a_table_of_another_name_is_refused_by_every_command(tmp_path: Path) -> None:
    stored = (resources.root("spec") / history.FILE).read_text(encoding="utf-8")
    (tmp_path / history.FILE).write_text(f'{stored}\n[[versions]]\nnumber = "0.0.1"\n', encoding="utf-8")
    for validated in (True, False):
        with pytest.raises(HistoryError, match=r"^history\.toml: versions: there is no such field; "):
            history.read(tmp_path / history.FILE, validated=validated)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["9.9.9"], "there is no version '9.9.9' of the text"),
        (["0.1.0", "--regenerate"], "--regenerate goes with no other"),
    ],
)
def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, _, err = shown(capsys, *arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the history in a folder that looks like a checkout."""
    path = tmp_path / "spec" / history.FILE
    path.parent.mkdir()
    path.write_bytes((resources.root("spec") / history.FILE).read_bytes())
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(text_command, "_checkout", lambda: path)
    return path


@pytest.mark.slow
def test_regenerate_writes_what_the_text_says(capsys: pytest.CaptureFixture[str], checkout: Path) -> None:
    right = checkout.read_text(encoding="utf-8")
    digests = {id: words(resources.clauses()[id]) for id in ("MOD-01", "MOD-02")}
    wrong = right.replace(digests["MOD-01"], digests["MOD-02"])
    checkout.write_text(re.sub(r"^MOD-03.*\n", "", wrong, flags=re.M), encoding="utf-8")
    code, out, _ = shown(capsys, "--regenerate")
    assert (code, out.splitlines()[0]) == (0, "spec/history.toml")
    assert checkout.read_text(encoding="utf-8") == right


def test_regenerate_writes_nothing_where_an_id_vanished(capsys: pytest.CaptureFixture[str], checkout: Path) -> None:
    wrong = checkout.read_text(encoding="utf-8") + f"ZZZ-99 = [{{ {_fields('0.1.0')} }}]\n"
    checkout.write_text(wrong, encoding="utf-8")
    code, _, err = shown(capsys, "--regenerate")
    assert code == 2
    assert "ZZZ-99 vanished from the text" in err
    assert checkout.read_text(encoding="utf-8") == wrong


def _fields(number: str) -> str:
    return f'since = "{number}", page = "conventions.md", words = {json.dumps(words("x"))}'


def test_regenerate_needs_a_checkout(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spec").mkdir()
    monkeypatch.setattr(resources, "root", lambda part: tmp_path / part)
    code, _, err = shown(capsys, "--regenerate")
    assert (code, err) == (2, "secagg-spec text: --regenerate needs a checkout\n")


def test_the_history_of_the_text_fits_its_schema() -> None:
    """`load` relies on it."""
    assert history.read(resources.root("spec") / history.FILE) == history.load()


@pytest.mark.parametrize(
    "number", ["-1.2.0", " 1.0.0", "+1.0.0", "1_0.2.0", "1.0.\uff12", "00.1.0", "1.0.", "1", "1.2", "1.2.3.4", "", None]
)
def test_what_is_no_number_of_a_version_is_refused(number: Any) -> None:
    with pytest.raises(HistoryError, match=r" is no version, such as 0\.1\.0$"):
        history.order(number)


@pytest.mark.parametrize("wrong", ["AAA-01 = []", "AAA-01 = [{ since = '0.1.0', page = 2020-01-01, words = 'a' }]"])
def test_a_file_that_breaks_the_schema_is_refused_where_it_is_not_validated(wrong: str, tmp_path: Path) -> None:
    whole = history.written(_sealed())
    (line,) = (row for row in whole.splitlines() if row.startswith("AAA-01"))
    (tmp_path / history.FILE).write_text(whole.replace(line, wrong), encoding="utf-8")
    with pytest.raises(HistoryError, match=r"^history\.toml: clauses: AAA-01: "):
        history.read(tmp_path / history.FILE, validated=False)
    (tmp_path / history.FILE).write_text("version = []\n[clauses]\n", encoding="utf-8")
    with pytest.raises(HistoryError, match=r"^history\.toml: version: "):
        history.read(tmp_path / history.FILE, validated=False)
    path: Any = None
    with pytest.raises(ParameterError, match=r"^path = 'NoneType': must be of the class Path$"):
        history.read(path)
