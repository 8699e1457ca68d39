"""Logs of participation: the forms that say the same, and one clear line for whatever is no log."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources, schemas
from secagg_spec.errors import DuplicateUser, LengthMismatch, ParameterError, UnknownUser
from secagg_spec.selection import logs, participation
from secagg_spec.selection.participation import Log, Roster, Sums, of_sets

SETS = st.lists(st.lists(st.integers(0, 5), unique=True, max_size=4), max_size=6)
CELLS = st.integers(1, 3).flatmap(
    lambda parts: st.lists(st.lists(st.permutations(range(5)), min_size=parts, max_size=parts), min_size=1, max_size=4)
)


def table(folder: Path, text: str, name: str = "log.csv") -> Path:
    """A file with some text."""
    path = folder / name
    path.write_bytes(text.encode("utf-8"))
    return path


def members(log: Log) -> list[list[list[list[str]]]]:
    """The names of the users of each cell, by segments and rounds."""
    return [
        [
            [
                [log.roster.name(int(user)) for user in np.flatnonzero(sums.sets[at])]
                for at in np.flatnonzero(sums.rounds == number)
            ]
            for number in range(log.rounds)
        ]
        for sums in log.segments
    ]


def as_users(rounds: Sequence[Sequence[int]], first: int) -> str:
    return "round,users\n" + "".join(f"{first + at},{' '.join(map(str, users))}\n" for at, users in enumerate(rounds))


def as_user(rounds: Sequence[Sequence[int]], first: int) -> str:
    lines = [f"{first + at},{user}" for at, users in enumerate(rounds) for user in (map(str, users) if users else [""])]
    return "\n".join(["round,user", *lines]) + "\n"


@given(SETS, st.integers(0, 20), st.randoms(use_true_random=False))
def test_the_forms_say_the_same(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[int]], first: int, random: object
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    right = of_sets(Roster(6), rounds, first)
    assert [sorted(users) for users in rounds] == [np.flatnonzero(row).tolist() for row in right.segments[0].sets]
    header, *lines = as_user(rounds, first).splitlines()
    random.shuffle(lines)  # type: ignore[attr-defined]
    texts = [as_users(rounds, first), as_user(rounds, first), "\n".join([header, *lines, ""])]
    for text in [*texts, "\ufeff" + texts[0], texts[1].replace("\n", "\r\n"), texts[0].replace("\n", "\n\n")]:
        read = logs.read(table(folder, text), Roster(6))
        assert (read.rounds, read.first if rounds else first) == (len(rounds), first)
        assert (read.segments[0].sets == right.segments[0].sets).all()
    read = logs.read(table(folder, json.dumps({"users": 6, "rounds": rounds})))
    assert (read.segments[0].sets == right.segments[0].sets).all()


@given(CELLS, st.data())
def test_cells_are_read_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[list[int]]], data: st.DataObject
) -> None:
    cut = [[[cell for cell in (sorted(users[:2]), sorted(users[2:4])) if cell] for users in row] for row in rounds]
    lines = [
        f"{at},{segment},{' '.join(map(str, cell))}"
        for at, row in enumerate(cut)
        for segment, cells in enumerate(row)
        for cell in cells
    ]
    text = "\n".join(["round,segment,users", *data.draw(st.permutations(lines)), ""])
    folder = tmp_path_factory.mktemp("logs")
    read = logs.read(table(folder, text), Roster(5))
    document = {"users": 5, "segments": len(rounds[0]), "rounds": cut}
    other = logs.read(table(folder, json.dumps(document), "log.json"))
    for log in (read, other):
        assert log.cells
        found = [[sorted([int(user) for user in cell] for cell in cells) for cells in row] for row in members(log)]
        assert found == [[sorted(row[segment]) for row in cut] for segment in range(len(rounds[0]))]
        assert (
            log.taking_part == np.array([[any(u in c for s in row for c in s) for u in range(5)] for row in cut])
        ).all()


def test_without_a_roster_the_users_are_those_seen(tmp_path: Path) -> None:
    read = logs.read(table(tmp_path, "round,users\n0,10 9\n1,2\n"))
    assert read.roster == Roster(3, ("2", "9", "10"), closed=False)
    assert read.segments[0].sets.tolist() == [[False, True, True], [True, False, False]]
    read = logs.read(table(tmp_path, 'round,user\n0,"de Vries, B."\n0, Anna \n'))
    assert read.roster.names == ("Anna", "de Vries, B.")


def test_a_roster_is_read_from_a_file(tmp_path: Path) -> None:
    roster = logs.read_roster(table(tmp_path, "\ufeffeva\r\n\r\n adam \r\n", "roster.txt"))
    assert roster.names == ("eva", "adam")
    read = logs.read(table(tmp_path, "round,user\n3,adam\n"), roster)
    assert read.segments[0].sets.tolist() == [[False, True]]
    assert read.first == 3


def test_a_path_is_text_or_a_path(tmp_path: Path) -> None:
    roster = logs.read_roster(str(table(tmp_path, "eva\n", "roster.txt")))
    assert logs.read(str(table(tmp_path, "round,user\n3,eva\n")), roster).first == 3
    for read in (logs.read, logs.read_roster):
        for none in (5, None, ""):
            with pytest.raises(ParameterError, match=r"^path = .*: must be a path of the file system"):
                read(none)  # type: ignore[arg-type]


def test_users_of_a_round_may_be_many(tmp_path: Path) -> None:
    users = " ".join(map(str, range(50_000)))
    assert logs.read(table(tmp_path, f"round,users\n0,{users}\n")).segments[0].sets.all()


# ------------------------------------------------------------------------------------------------ requirements


@pytest.mark.requirement("MRA-24")
@given(st.sets(st.integers(0, 12), min_size=1), st.sampled_from(["round,users", "round,user"]))
def test_a_log_is_refused_exactly_when_a_round_between_is_missing(
    tmp_path_factory: pytest.TempPathFactory, numbers: set[int], header: str
) -> None:
    path = table(tmp_path_factory.mktemp("logs"), "\n".join([header, *(f"{at},1" for at in numbers), ""]))
    missing = sorted(set(range(min(numbers), max(numbers))) - numbers)
    if not missing:
        assert logs.read(path).rounds == len(numbers)
        return
    with pytest.raises(ParameterError, match=rf"missing rounds = {missing[0]}\b.* from the first, {min(numbers)}, to"):
        logs.read(path)


@pytest.mark.requirement("MRA-24")
@pytest.mark.parametrize("gaps", range(1, 8))
def test_up_to_five_gaps_are_named(tmp_path: Path, gaps: int) -> None:
    path = table(tmp_path, "\n".join(["round,users", *(f"{3 * at},1" for at in range(gaps + 1)), ""]))
    named = [f"{3 * at + 1} to {3 * at + 2}" for at in range(min(gaps, 5))] + ["…"] * (gaps > 5)
    with pytest.raises(
        ParameterError, match=f"missing rounds = {', '.join(named)}: must be none: .* the last, {3 * gaps}, has"
    ):
        logs.read(path)


@pytest.mark.requirement("MRA-24")
def test_all_segments_have_to_be_in_all_rounds(tmp_path: Path) -> None:
    lines = ["round,segment,users", "0,0,1 2", "0,1,1 2", "1,0,", "1,1,3 4"]
    assert logs.read(table(tmp_path, "\n".join([*lines, ""]))).rounds == 2
    for dropped, said in ((3, "round 1 = 0"), (4, "round 1 = 1"), (2, "round 0 = 1")):
        allowed = "none: each round has a line for each of the segments 0 to 1"
        with pytest.raises(ParameterError, match=f"missing segment of {said}: must be {allowed}$"):
            logs.read(table(tmp_path, "\n".join([*lines[:dropped], *lines[dropped + 1 :], ""])))
    with pytest.raises(ParameterError, match="missing segment = 0: must be none: segments are 0 to 2"):
        logs.read(table(tmp_path, "round,segment,users\n0,1,1\n0,2,1\n"))


@pytest.mark.requirement("MRA-24")
def test_a_log_of_segments_without_rounds_misses_none(tmp_path: Path) -> None:
    assert members(logs.read(table(tmp_path, "round,segment,users\n"))) == [[]]
    for segments in (1, 2, 2**16):
        log = logs.read(table(tmp_path, f'{{"users": 3, "segments": {segments}, "rounds": []}}', "log.json"))
        assert (log.rounds, log.cells, members(log)) == (0, True, [[]] * segments)
    with pytest.raises(ParameterError, match=r"^parts = 0: must be an integer in \[1, 65536\]$"):
        participation.Table(Roster(3), cells=True).log(0)


@pytest.mark.requirement("MRA-30", "FLW-19")
@pytest.mark.parametrize("header", ["round,users", "round,user", "round,segment,users"])
def test_a_table_whose_last_line_was_cut_is_refused(header: str, tmp_path: Path) -> None:
    segment = ",0" * ("segment" in header)
    whole = f"{header}\n1{segment},12\n2{segment},567\n"
    assert (
        logs.read(table(tmp_path, whole)).rounds == logs.read(table(tmp_path, whole.replace("\n", "\r\n"))).rounds == 2
    )
    for cut in range(1, len(f"2{segment},567") + 1):
        with pytest.raises(ParameterError, match=r"^log\.csv, line 3 = '2.*': must be a whole line") as refused:
            logs.read(table(tmp_path, whole[:-cut]))
        assert "only its line feed is missing" in str(refused.value)


@pytest.mark.requirement("MRA-25")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("round,users\n0,1\n1,2\n0,3\n", "line 4, round = 0: must be one that has no line yet; line 2 is of it"),
        ("round,users\n0,1 2\n1,2 3 2\n", "line 3, user = '2': must be named once in round 1"),
        ("round,user\n0,1\n0,2\n0,1\n", "line 4, user = '1': must be named once in round 0; line 2 has it too"),
        ("round,user\n0,1\n0,\n", "line 3, round = 0: must be in lines with users or in one line without; line 2"),
        ("round,user\n0,\n0,\n", "line 3, round = 0: must be in lines with users or in one line without; line 2"),
        (
            "round,segment,users\n0,0,1 2\n0,0,2 3\n",
            "line 3, user = '2': must be named once in round 0, segment 0; line 2",
        ),
        ("round,segment,users\n0,0,\n0,0,2 3\n", "line 3, round = 0, segment 0: must be in lines with users or in one"),
    ],
)
def test_lines_that_repeat_are_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        logs.read(table(tmp_path, text))
    assert said in str(caught.value)
    assert isinstance(caught.value, DuplicateUser) == ("user =" in said)


@pytest.mark.requirement("MRA-26")
@given(SETS, st.integers(1, 6))
def test_a_log_is_refused_exactly_when_a_user_is_not_on_the_roster(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[int]], count: int
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    path, roster = table(folder, as_user(rounds, 0)), Roster(count)
    other = table(
        folder,
        json.dumps(
            {"users": [f"u{at}" for at in range(count)], "rounds": [[f"u{at}" for at in users] for users in rounds]}
        ),
        "x.json",
    )
    if all(user < count for users in rounds for user in users):
        assert logs.read(path, roster).roster == roster
        assert logs.read(other).roster.count == count
        return
    with pytest.raises(UnknownUser, match=r"log.csv, line \d+, user = '\d': must be a user of the roster"):
        logs.read(path, roster)
    with pytest.raises(UnknownUser, match=r"x.json, rounds\[\d\], user = 'u\d': must be a user of the roster"):
        logs.read(other)


@pytest.mark.requirement("MRA-15")
@given(st.lists(st.lists(st.integers(-1, 4), max_size=4), max_size=4))
def test_sets_are_refused_exactly_when_a_user_is_there_twice_or_not_on_the_roster(rounds: list[list[int]]) -> None:
    unknown = any(user not in range(4) for users in rounds for user in users)
    twice = any(len(set(users)) < len(users) for users in rounds)
    if unknown or twice:
        with pytest.raises((UnknownUser, DuplicateUser), match=r"rounds\[\d\]"):
            of_sets(Roster(4), rounds)
    else:
        assert of_sets(Roster(4), rounds).rounds == len(rounds)


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "log.csv = an empty file: must be a log; its first line is one of 'round,users', 'round,user', 'round,"),
        ("rounds,users\n0,1\n", "log.csv, line 1, header = 'rounds,users': must be one of 'round,users', 'round,user'"),
        (
            "round;users\n0;1\n",
            "header = 'round;users': must be one of 'round,users', 'round,user', 'round,segment,users'; ",
        ),
        ("round,users\n0,1,2\n", "line 2, fields = 3: must be 2: round,users, and users are separated by spaces"),
        ("round,user\n0\n", "line 2, fields = 1: must be 2: round,user"),
        ("round,users\n-1,1\n", "line 2, round = '-1': must be a whole number, as 0 or 17"),
        ("round,users\n" + "9" * 20 + ",1\n", "as 0 or 17, of at most 18 digits"),
        ("round,users\n1.0,1\n", "line 2, round = '1.0': must be a whole number"),
        ("round,users\n\u0661,1\n", "line 2, round = '\u0661': must be a whole number"),
        ("round,users\n" + "9" * 5000 + ",1\n", "line 2, round = '99999"),
        ("round,segment,users\n0,x,1\n", "line 2, segment = 'x': must be a whole number"),
        ('round,users\n0,"1 2\n', "line 2 = unexpected end of data: must be comma-separated values"),
        ('round,users\n0,"1"2\n', "line 2 = ',' expected after '\"': must be comma-separated values"),
        (
            "round,users\n0,7\n1,07\n",
            "log.csv, line 3, user = '07': must be one way to write a user; '7' is the same number",
        ),
        (
            "round,user\n0,\u00a0a\n1,a\n",
            r"log.csv, line 2, user = '\xa0a': must be a user, whose name may have spaces, ",
        ),
        (
            "round,user\n0,a b\n1,\x1c\n",
            r"log.csv, line 3, user = '\x1c': must be a user, whose name may have spaces, ",
        ),
        ("round,users\n0,a b\tc d\n", r"log.csv, line 2, users = 'b\tc': must be users with spaces between them, and"),
        (f"round,segment,users\n0,{10**17},1\n{10**17},0,1\n", "missing rounds = 1 to 99999999999999999: must be none"),
        (f"round,segment,users\n0,{10**17},1\n0,0,1\n", f"segment = {10**17}: must be below 65536"),
        ("round,segment,users\n0,65536,1\n0,0,1\n", "segment = 65536: must be below 65536"),
        ("round,segment,users\n0,65535,1\n0,0,1\n", "missing segment = 1: must be none"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        logs.read(table(tmp_path, text))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("before", ["", " " * 70, "\n \r\n" * 40, "\ufeff\n\t"])
def test_a_file_that_begins_with_a_brace_is_json(tmp_path: Path, before: str) -> None:
    assert logs.read(table(tmp_path, before + '{"users": 1, "rounds": [[0]]}')).roster.count == 1


def test_what_is_not_utf_8_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(b"round,users\n0,a\n1,J\xfcrgen\n")
    with pytest.raises(ParameterError, match=r"log.csv, line 3 = b'\\xfcrge': must be text in UTF-8"):
        logs.read(path)
    with pytest.raises(ParameterError, match="line 3"):
        logs.read_roster(path)
    path = tmp_path / "log.json"
    path.write_bytes(b'{"users": ["a", "J\xfcrgen"],\n"rounds": []}')
    with pytest.raises(ParameterError, match=r"log.json, line 1 = b'\\xfcrge': must be text in UTF-8"):
        logs.read(path)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("[", "log.json, line 1 = Expecting value: must be JSON"),
        ("[]", "log.json, the document = []: must be as in participation.schema.json: must be of type object"),
        ('{"users": 3}', "log.json, rounds = absent: must be as in participation.schema.json: is missing"),
        (
            '{"users": 3, "rounds": [], "first_round": 3}',
            "schema.json: there is no such field; the fields are users, rounds, segments",
        ),
        (
            '{"users": 3, "rounds": [[[0]]]}',
            "schema.json: [0] must be of type integer, and is [0] or must be of type string, and is [0]",
        ),
        (
            '{"users": 0, "rounds": []}',
            "schema.json: 0 is less than the minimum of 1",
        ),
        ('{"users": 3, "rounds": [[0, -1]]}', "schema.json: [1] -1 is less than the minimum of 0"),
        ('{"users": 3, "rounds": [[0, 0]]}', "log.json, rounds[0], user = '0': must be named once in round 0"),
        (
            '{"users": 3, "rounds": [[0, true]]}',
            "log.json, rounds[0] = [0, True]: must be as in participation.schema",
        ),
        (
            '{"users": 3, "rounds": [[0], [3]]}',
            "rounds[1], user = '3': must be a user of the roster, a whole number in [0, 3)",
        ),
        ('{"users": 3, "rounds": [["a"]]}', "rounds[0], user = 'a': must be a user of the roster"),
        ('{"users": ["a"], "rounds": [[0]]}', "rounds[0], user = 0: must be a user of the roster, one of 1 name (a)"),
        ('{"users": ["a", "a"], "rounds": []}', "log.json, users = "),
        (
            '{"users": 3, "rounds": [[[[0]]]]}',
            "rounds[0] = [[[0]]]: must be a list of users, as there is no field 'segments'",
        ),
        ('{"users": 3, "segments": 2, "rounds": [[0]]}', "rounds[0] = [0]: must be a list of 2 segments, each a list"),
        ('{"users": 3, "segments": 2, "rounds": [[[[0]]]]}', "rounds[0] = [[[0]]]: must be a list of 2 segments"),
        (
            '{"users": 3, "segments": 1, "rounds": [[[0, 1]]]}',
            "participation.schema.json: a list of segments, each a list of cells, each a list of users",
        ),
        (
            '{"users": 3, "segments": 1, "rounds": [[[[0, 0]]]]}',
            "rounds[0][0][0], user = '0': must be named once in round 0, segment 0",
        ),
        ('{"users": ["a", "b"], "rounds": [["b", "b"]]}', "rounds[0], user = 'b': must be named once in round 0"),
        ('{"users": 3, "segments": 1, "rounds": [[[[0], [0]]]]}', "rounds[0][0][1], user = '0': must be named once in"),
        (
            '{"users": 3, "rounds": [], "rounds": []}',
            "a text that holds an object with two members 'rounds': must be",
        ),
        ('{"users": NaN, "rounds": []}', "a text that has NaN, which is no JSON: must be JSON as in"),
        (
            '{"users": ' + "9" * 5000 + ', "rounds": []}',
            "a text that holds an integer of more than 4,300 digits: must be JSON",
        ),
        (
            '{"users": 1e400, "rounds": []}',
            "a text that holds a number beyond binary64, 1e400: must be",
        ),
        ("[" * 100_000, "a text that is nested deeper than 128 levels: must be JSON as in"),
        ('{"users": 4294967295, "rounds": []}', "log.json, users = 4294967295: must be"),
        (
            '{"users": 16777216, "rounds": [' + ",".join(17 * ["[0]"]) + "]}",
            "log = 17 sets of 16777216 users: must be at",
        ),
    ],
)
def test_what_does_not_fit_the_schema_is_refused_in_one_line(tmp_path: Path, document: str, said: str) -> None:
    with pytest.raises(ParameterError) as caught:
        logs.read(table(tmp_path, document, "log.json"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_round_without_a_sum_is_an_empty_list(tmp_path: Path) -> None:
    read = logs.read(table(tmp_path, '{"users": 3.0, "segments": 2, "rounds": [[], [[[0, 1]], []]]}', "log.json"))
    assert (read.rounds, [sums.rounds.tolist() for sums in read.segments]) == (2, [[1], []])


def test_sound_rounds_are_not_held_against_the_schema_user_by_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That would take long over each user. What does not fit is left for the schema to say what is wrong."""
    seen: list[object] = []
    checked = schemas.faults

    def faults(document: object, schema: Mapping[str, Any]) -> Iterator[tuple[schemas.Where, str]]:
        seen.append(document)
        return checked(document, schema)

    monkeypatch.setattr(schemas, "faults", faults)
    for users, rounds in ((3, [[0, 1], [2, 0], [], [1]]), (["a", "b"], [["a"], ["b", "a"]])):
        logs.read(table(tmp_path, json.dumps({"users": users, "rounds": rounds}), "log.json"))
        assert seen.pop() == {"users": users, "rounds": [[]] * len(rounds)}
    for row, short in (([0, 0], []), (["a", 0], []), ([[[0, 0], []]], [[[], []]])):
        document = {"users": 3, "segments": 1, "rounds": [row]}
        with pytest.raises(ParameterError):
            logs.read(table(tmp_path, json.dumps(document), "log.json"))
        assert seen.pop() == document | {"rounds": [short]}
    strange = [[-1], [True], [""], ["a", -1], [None], [[0]], [[[-1]]]]
    with pytest.raises(ParameterError):
        logs.read(table(tmp_path, json.dumps({"users": 3, "rounds": strange}), "log.json"))
    assert seen == [{"users": 3, "rounds": strange}]


def test_what_is_no_text_is_no_number() -> None:
    assert [participation.whole_number(text) for text in ("0", "07", "9" * 18)] == [0, 7, 10**18 - 1]
    assert [participation.whole_number(text) for text in ("", "-1", "+1", "1.0", "\u0661", "9" * 19)] == [None] * 6
    for value in (7, b"7", None):
        with pytest.raises(ParameterError, match=r"^text = "):
            participation.whole_number(value)  # type: ignore[arg-type]


def test_a_second_roster_has_to_be_the_same(tmp_path: Path) -> None:
    path = table(tmp_path, '{"users": 3, "rounds": []}', "log.json")
    assert logs.read(path, Roster(3)).roster == Roster(3)
    with pytest.raises(ParameterError, match=r"users = 3 numbers: must be those of the roster that is given, 4 num"):
        logs.read(path, Roster(4))


def test_rosters_refuse_names_that_stand_twice(tmp_path: Path) -> None:
    with pytest.raises(
        DuplicateUser, match=r"roster.txt, line 3, name = 'a': must be a name that stands once; it is in line 1"
    ):
        logs.read_roster(table(tmp_path, "a\nb\na\n", "roster.txt"))
    with pytest.raises(ParameterError, match=r"roster.txt = no names: must be one name a line"):
        logs.read_roster(table(tmp_path, "\n\n", "roster.txt"))
    with pytest.raises(DuplicateUser, match="names = 'a'"):
        Roster.named(["a", "a"])


@pytest.mark.parametrize(
    ("count", "names", "error", "said"),
    [
        (3, ("a", "b"), LengthMismatch, r"^len\(names\) = 2: must be 3, one for each user$"),
        (1, ("a", "b"), LengthMismatch, r"^len\(names\) = 2"),
        (2, ("a", "a"), DuplicateUser, "^names = 'a'"),
        (2, ("a", 1), ParameterError, "^names = 1: must be text that is not empty"),
        (2, "ab", ParameterError, "^names = 'str': must be a sequence of names"),
        (0, (), ParameterError, "^names = .*: must be at least one"),
    ],
)
def test_a_roster_has_one_name_for_each_user(count: int, names: Any, error: type[ParameterError], said: str) -> None:
    with pytest.raises(error, match=said):
        Roster(count, names)


@pytest.mark.parametrize("closed", ["yes", 1, None])
def test_whether_a_roster_is_closed_is_a_truth_value(closed: Any) -> None:
    with pytest.raises(ParameterError, match=r"^closed = .*must be of the class bool$"):
        Roster(3, None, closed)
    for name in ("several", "cells"):
        with pytest.raises(ParameterError, match=rf"^{name} = .*must be of the class bool$"):
            participation.Table(Roster(3), **{name: closed})


def test_a_roster_has_as_many_users_as_the_schema_allows() -> None:
    number, _ = json.loads((resources.root("spec") / "participation.schema.json").read_text())["properties"]["users"][
        "oneOf"
    ]
    assert Roster(number["maximum"]).count == participation.MAX_USERS
    with pytest.raises(ParameterError, match=r"users = 16777217: must be an integer in \[1, 16777216\]"):
        Roster(number["maximum"] + 1)


def test_the_headers_are_those_of_the_text() -> None:
    text = (resources.root("spec") / "multi-round.md").read_text(encoding="utf-8")
    for form in logs.FORMS:
        assert f"| `{','.join(form)}` |" in text
    assert participation.MAX_ENTRIES == 2**28


def test_capitals_and_spaces_do_not_count_in_a_header(tmp_path: Path) -> None:
    plain, other = (logs.read(table(tmp_path, f"{header}\n0,1 2\n")) for header in ("round,users", " Round , USERS"))
    assert (plain.taking_part == other.taking_part).all()
    with pytest.raises(ParameterError, match="header"):
        logs.read(table(tmp_path, "round,user s\n0,1 2\n"))


@pytest.mark.parametrize("text", ["round,users\n0,1 2\n", "round,users\nx,1\n"])
def test_the_limit_of_other_tables_stays_as_it_was(tmp_path: Path, text: str) -> None:
    """Fields of a log may be long; the limit is one of the process, and is put back whatever comes of the log."""
    before = csv.field_size_limit(12345)
    try:
        with contextlib.suppress(ParameterError):
            logs.read(table(tmp_path, text))
        assert csv.field_size_limit() == 12345
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_table_in_another_encoding_is_said_to_be_so(tmp_path: Path, encoding: str) -> None:
    path, mark = tmp_path / "log.csv", "" if encoding == "utf-16" else "\ufeff"
    path.write_text(f"{mark}round,user\n0,1\n", encoding=encoding)
    with pytest.raises(ParameterError, match="must be text in UTF-8"):
        logs.read(path)


@pytest.mark.parametrize("space", ["\t", "\u00a0", "\u3000", "\x1c"])
def test_users_of_a_line_are_separated_by_spaces(tmp_path: Path, space: str) -> None:
    with pytest.raises(ParameterError, match=r"line 2, users = .*: must be users with spaces between them"):
        logs.read(table(tmp_path, f"round,users\n0,Ann{space}B Tom\n"))
    assert logs.read(table(tmp_path, "round,users\n0, Ann   B \n")).roster.names == ("Ann", "B")


@pytest.mark.parametrize("rounds", ["[]", "[[]]", "[[], []]"])
def test_a_log_has_no_more_segments_than_users_could(tmp_path: Path, rounds: str) -> None:
    path = tmp_path / "log.json"
    for segments in (2**16 + 1, 10**8, 10**400):
        path.write_text(f'{{"users": 3, "segments": {segments}, "rounds": {rounds}}}', encoding="utf-8")
        with pytest.raises(ParameterError, match="greater than the maximum of 65536"):
            logs.read(path)


@pytest.mark.parametrize("cells", ["[[0, 1], []]", "[[], [0, 1]]", "[[], [0, 1], []]"])
def test_a_cell_without_users_beside_others_says_nothing(tmp_path: Path, cells: str) -> None:
    plain, more = (
        logs.read(table(tmp_path, f'{{"users": 3, "segments": 2, "rounds": [[{one}, [[]]]]}}', "log.json"))
        for one in ("[[0, 1]]", cells)
    )
    assert members(more) == members(plain) == [[[["0", "1"]]], [[]]]


PAIRS = np.array([[True, True, False], [False, True, True]])


@pytest.mark.parametrize(
    ("sets", "rounds", "said"),
    [
        (PAIRS.astype(np.int64), [0, 1], "sets = 'ndarray of dtype int64': must be a numpy array of dtype bool"),
        (PAIRS.tolist(), [0, 1], "sets = 'list'"),
        (PAIRS[0], [0], r"sets\.shape = \(3,\)"),
        (PAIRS, [0], r"rounds\.shape = \(1,\): must be \(2\)"),
        (PAIRS, [1, 0], "rounds = .*: must be ascending integers of at least 0"),
        (PAIRS, [-1, 0], "rounds = .*: must be ascending integers of at least 0"),
        (PAIRS, [0.0, 1.0], "rounds = 'ndarray of dtype float64'"),
    ],
)
def test_sums_have_ascending_rounds_and_truth_values(sets: Any, rounds: list[int], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        Sums(sets, np.array(rounds))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"roster": 3}, "roster = 'int'"),
        ({"roster": Roster(2)}, r"segments\[0\]\.sets\.shape = \(2, 3\): must be \(any, 2\)"),
        *[({"first": first}, "first = ") for first in (-1, 0.5, "0", True, 10**18 + 1)],
        *[({"rounds": rounds}, "rounds = ") for rounds in (-1, 2.0, "2", None)],
        ({"rounds": 1}, r"segments\[0\]\.rounds\[-1\] = 1: must be an integer in \[0, 0\]"),
        ({"rounds": 3}, r"len\(segments\[0\]\.rounds\) = 2: must be 3, each once"),
        ({"segments": (Sums(PAIRS, np.array([0, 0])),)}, r"segments\[0\]\.rounds\[1\] = 0: must be 1: each round is"),
        ({"cells": "no"}, "cells = 'str': must be of the class bool"),
        ({"segments": ()}, r"len\(segments\) = 0: must be 1"),
        ({"segments": (), "cells": True}, r"len\(segments\) = 0: must be 1 or more"),
        ({"segments": (Sums(PAIRS, np.arange(2)),) * 2}, r"len\(segments\) = 2: must be 1, of a log without cells"),
        ({"segments": (PAIRS,)}, r"segments\[0\] = 'ndarray of dtype bool'"),
        ({"segments": None}, "segments = 'NoneType'"),
    ],
)
def test_logs_of_sums_that_do_not_fit_are_refused(changed: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"roster": Roster(3), "first": 4, "rounds": 2, "segments": (Sums(PAIRS, np.arange(2)),)}
    assert Log(**right).number(1) == 5
    with pytest.raises(ParameterError, match=f"^{said}"):
        Log(**{**right, **changed})


def test_sums_are_not_those_of_arrays_that_are_written_over() -> None:
    sets, rounds = PAIRS.copy(), np.arange(2)
    sums = Sums(sets, rounds)
    sets[:], rounds[:] = False, -1
    assert (sums.sets.tolist(), sums.rounds.tolist()) == (PAIRS.tolist(), [0, 1])
    again = Sums(sums.sets, sums.rounds)
    assert again.sets is sums.sets
    assert again.rounds is sums.rounds


def test_a_segment_beyond_the_most_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("round,segment,users\n0,0,0 1\n0,65536,0 1\n0,1,2\n", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"^log\.csv, line 3, segment = 65536: must be below 65536"):
        logs.read(path)


def test_only_a_table_of_cells_has_several_segments() -> None:
    assert len(participation.Table(Roster(3), cells=True).log(2).segments) == 2
    with pytest.raises(ParameterError, match=r"^parts = 2: must be "):
        participation.Table(Roster(3)).log(2)


def test_what_a_log_shows_cannot_be_changed() -> None:
    log = of_sets(Roster(3), [[0, 1], [1]])
    for array in (log.taking_part, log.segments[0].sets, log.segments[0].rounds):
        assert not array.flags.writeable


def test_what_is_no_roster_is_named() -> None:
    for wrong in (3, None, ["a"]):
        with pytest.raises(ParameterError, match=r"^roster = "):
            of_sets(wrong, [[0]])  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", ['"a"', "null", "0.5"])
def test_a_long_round_of_numbers_and_something_else_is_refused(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(f'{{"users": 100000, "rounds": [[{", ".join(map(str, range(1000)))}, {odd}]]}}', encoding="utf-8")
    with pytest.raises(ParameterError, match=r"^log\.json, rounds\[0\]"):
        logs.read(path)
