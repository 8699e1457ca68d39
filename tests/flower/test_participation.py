"""The participation log of a deployment is what the audit reads, through restarts and broken writes."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.commands import audit
from secagg_spec.errors import DuplicateUser, ParameterError
from secagg_spec.flower.participation import HEADER, ParticipationLog
from secagg_spec.flower.plan import Packet
from secagg_spec.privacy import participation
from secagg_spec.selection import logs
from secagg_spec.selection.participation import Roster, of_sets
from tests.flower.parties import Engine
from tests.flower.test_rounds import NAMES, engine_phase

NODES = st.integers(0, 7).map(lambda at: 2**63 + 5 * at) | st.integers(0, 9)
ROUNDS = st.lists(st.sets(NODES, max_size=6), max_size=12)


def verdict(account: participation.Account) -> tuple[Any, ...]:
    """What the audit says, with the names of users in the place of their numbers."""
    name = account.log.roster.name
    found = {name(one.user): account.log.number(one.at) for one in account.found.values()}
    terms = {name(one.found.user): (one.terms, one.drift) for one in account.combined(list(account.found))}
    rounds = [{name(int(user)) for user in row.nonzero()[0]} for row in account.log.taking_part]
    return found, terms, rounds, account.strong, account.weak.low, account.weak.high, account.empty


@pytest.mark.requirement("FLW-17", "FLW-19", "MRA-27")
@given(ROUNDS, st.integers(0, 12))
def test_the_log_says_of_random_rounds_what_their_sets_say(rounds: list[set[int]], restart: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        log = ParticipationLog(path)
        for at, nodes in enumerate(rounds):
            log = ParticipationLog(path) if at == restart else log
            log.add(nodes)
        read = logs.read(path)
        again = ParticipationLog(path)
    assert (again.rounds, again.counts) == (len(rounds), log.counts)
    names = read.roster.names or ()
    assert set(names) == {str(node) for nodes in rounds for node in nodes}
    if names:
        sets = [[names.index(str(node)) for node in nodes] for nodes in rounds]
        said = participation.account(of_sets(Roster.named(names, closed=False), sets, first=1))
        assert verdict(participation.account(read)) == verdict(said)


@pytest.mark.requirement("FLW-17")
def test_the_command_reads_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = ParticipationLog(tmp_path / "log.csv")
    for nodes in ([2**64 - 1, 5, 7], [], [5, 7]):
        log.add(nodes)
    assert (tmp_path / "log.csv").read_bytes() == b"round,users\n1,5 7 18446744073709551615\n2,\n3,5 7\n"
    parser = ArgumentParser()
    audit.add_parser(parser.add_subparsers())
    options = parser.parse_args(["audit-participation", str(tmp_path / "log.csv")])
    assert options.run(options) == 1
    assert "x[18446744073709551615] = s[1] - s[3]" in capsys.readouterr().out


@pytest.mark.requirement("FLW-19")
@pytest.mark.parametrize("kept", range(len(HEADER + b"1,5 17\n2,5 17 18\n") + 1))
def test_a_write_that_was_cut_short_leaves_whole_lines(kept: int, tmp_path: Path) -> None:
    whole, path = HEADER + b"1,5 17\n2,5 17 18\n", tmp_path / "log.csv"
    path.write_bytes(whole[:kept])
    log = ParticipationLog(path)
    lines = whole[:kept].count(b"\n")
    assert log.rounds == max(0, lines - 1)
    log.add([3])
    assert path.read_bytes() == b"".join(whole.splitlines(True)[: max(1, lines)]) + b"%d,3\n" % (log.rounds,)
    assert logs.read(path).rounds == log.rounds


FOREIGN = {
    "text": b"dear diary\n",
    "another table": b"round,user\n1,5\n",
    "JSON": b'{"users": 2, "rounds": []}\n',
    "no line end": b"dear diary",
    "a round missing": HEADER + b"1,5 6\n3,5 6\n",
    "from another round on": HEADER + b"0,5 6\n",
    "a round twice": HEADER + b"1,5 6\n1,5 6\n",
    "no number": HEADER + b"1,5 alice\n",
    "another order": HEADER + b"1,6 5\n",
    "a node twice": HEADER + b"1,5 5\n",
    "another spelling": HEADER + b"1,05\n",
    "underscores": HEADER + b"1,1_0\n",
    "below zero": HEADER + b"1,-1\n",
    "line ends of a spreadsheet": b"round,users\r\n1,5\r\n",
    "an empty line": HEADER + b"\n",
    "zeros": bytes(64),
}


@pytest.mark.requirement("FLW-20")
@pytest.mark.parametrize("name", FOREIGN)
def test_a_file_of_others_is_refused_and_left_as_it_is(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for tail in (b"", b"2,5"):
        path.write_bytes(FOREIGN[name] + tail)
        with pytest.raises(ParameterError, match=r"log\.csv"):
            ParticipationLog(path)
        assert path.read_bytes() == FOREIGN[name] + tail


def test_bad_nodes_and_a_second_writer_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    one, other = ParticipationLog(path), ParticipationLog(path)
    with pytest.raises(DuplicateUser):
        one.add([5, 5])
    with pytest.raises(ParameterError):
        one.add([-1])
    for nodes in (None, 5, b"56", "56", iter([5])):
        with pytest.raises(ParameterError, match="nodes"):
            one.add(nodes)  # type: ignore[arg-type]
    one.add([5, 6])
    with pytest.raises(ParameterError, match="one process"):
        other.add([5, 7])
    assert path.read_bytes() == HEADER + b"1,5 6\n"


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
@pytest.mark.parametrize("room", [0, 3])
def test_after_a_write_that_failed_the_log_goes_on(room: int, tmp_path: Path) -> None:
    import resource

    path = tmp_path / "log.csv"
    log = ParticipationLog(path)
    log.add([5, 6])
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, usual[1]))
    try:
        with pytest.raises(OSError):  # noqa: PT011 - by the system
            log.add([5, 7])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    log.add([6, 7])
    assert path.read_bytes() == HEADER + b"1,5 6\n2,6 7\n"
    assert (log.rounds, log.counts) == (2, {5: 1, 6: 2, 7: 1})


def test_a_log_that_cannot_begin_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        ParticipationLog(tmp_path / "no" / "such")
    assert raised.value.filename == str(tmp_path / "no" / "such")


@pytest.mark.requirement("FLW-17")
@given(NAMES, st.data())
def test_survivors_are_in_the_log_before_anybody_is_told_them(name: str, data: st.DataObject) -> None:
    engine = Engine(name, 6, seed=data.draw(st.integers(0, 99)))
    masking = engine_phase(name)
    lost = data.draw(st.sets(st.integers(0, 5), max_size=3))
    engine.lost = {data.draw(st.sampled_from(engine.phases)): lost}
    log = ParticipationLog()
    sent: list[str] = []
    carry = engine.exchange

    def exchange(phase: str, packets: dict[int, Packet]) -> Any:
        sent.append(phase)
        assert log.rounds == int(engine.phases.index(phase) > engine.phases.index(masking))
        return carry(phase, packets)

    engine.exchange = exchange  # type: ignore[method-assign, assignment]
    result = engine.run(record=log.add)
    announced = {node for phase, node, _ in engine.packets if phase == engine.phases[-1]}
    assert log.rounds == 1
    assert set(+log.counts) >= announced
    later = engine.phases.index(masking) + 1 < len(sent)
    assert bool(log.counts) == later
    if result is not None:
        assert set(log.counts) == set(result.contributors)


@pytest.mark.requirement("FLW-18")
def test_a_log_that_was_removed_is_not_begun_anew(tmp_path: Path) -> None:
    log = ParticipationLog(tmp_path / "log")
    log.add([1, 2, 3])
    (tmp_path / "log").unlink()
    with pytest.raises(FileNotFoundError):
        log.add([1, 2, 3])
    assert not list(tmp_path.iterdir())
    assert log.rounds == 1


@pytest.mark.requirement("FLW-18")
@pytest.mark.parametrize("error", [OSError("no space left"), ParameterError("log", "changed", "of one writer alone")])
def test_without_its_line_no_user_learns_the_survivors(error: Exception) -> None:
    engine = Engine("secagg", 6)

    def full(nodes: Any) -> None:
        raise error

    with pytest.raises(type(error)):
        engine.run(record=full)
    assert engine.packets[-1][0] == "masked_input"
