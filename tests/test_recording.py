"""A recording is what the reference computes: the sums, the messages, who dropped out, and what the server knows."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import gcd
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.sealing import OVERHEAD
from secagg_spec.errors import DuplicateUser, ParameterError, TooFewSurvivors, UnknownUser
from secagg_spec.privacy import multiround as participation
from secagg_spec.privacy.heterosag import Plan
from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import SERVER, Role, RoundResult
from secagg_spec.recording import PROTOCOLS, basa, basecagg, multiround, record
from secagg_spec.recording import lightsecagg as of_lightsecagg
from secagg_spec.recording import multiround as of_sessions
from secagg_spec.recording import secagg as of_secagg
from secagg_spec.recording.chart import chart
from secagg_spec.recording.knowledge import known, whole
from secagg_spec.recording.record import Addition, Moment, Recording, Term, numbers, rows, sending, sendings
from secagg_spec.recording.synchronous import Fate
from secagg_spec.recording.synchronous import record as synchronous
from secagg_spec.resources import root
from tests.strategies import fewer

RUNS = [(protocol, run) for protocol, runs in PROTOCOLS.items() for run in runs]
TERM = re.compile(r"(?:(\d+)[·*])?(x(?:\(\d+\))?_\d+)(?:\[(\d+)\])?")
every_run = pytest.mark.parametrize(("protocol", "run"), RUNS)

recorded = cache(record)


def modulus(made: Recording) -> int:
    return made.parameters.get("R") or made.parameters.get("q") or 0


def plain(made: Recording, name: str) -> tuple[int, ...]:
    """The sum that a name speaks of, added up from the inputs, without a modulus; of a segment its one element."""
    inputs = {term.name: np.array(term.vector) for term in made.inputs}
    total = np.sum([int(factor or 1) * inputs[each] for factor, each, _ in TERM.findall(name)], axis=0)
    segment = re.search(r"segment (\d+)", name)
    return tuple(total.tolist()) if segment is None else (int(total[int(segment[1])]),)


@every_run
def test_the_sums_are_those_of_the_inputs(protocol: str, run: str) -> None:
    made = recorded(protocol, run)
    assert bool(made.summed) != bool(made.ended) or (protocol, run) == ("basecagg", "few")
    for term in made.summed:
        assert term.vector == plain(made, term.name)


@every_run
def test_every_addition_can_be_added_up(protocol: str, run: str) -> None:
    made = recorded(protocol, run)
    additions = [addition for moment in made.moments for addition in moment.additions]
    assert additions
    assert all(addition.holds for addition in additions)
    assert all(number < addition.modulus for addition in additions for number in addition.result.vector)


def test_an_addition_that_is_wrong_does_not_hold() -> None:
    addition = Addition(10, (Term("a", (7, 3)), Term("b", (2, 5), -2)), Term("c", (3, 3)))
    assert addition.holds
    assert not replace(addition, modulus=11).holds
    assert not replace(addition, result=Term("c", (3, 4))).holds


@every_run
def test_nothing_is_known_before_it_is_and_knowledge_grows(protocol: str, run: str) -> None:
    moments = recorded(protocol, run).moments
    for who in ("server", "colluding"):
        dimensions = [getattr(moment, who).dimension for moment in moments]
        assert dimensions[0] == 0
        assert dimensions == sorted(dimensions)
    assert all(m.colluding.dimension >= 0 and not set(m.server.hidden) & set(m.server.exposed) for m in moments)


def ratio(text: str) -> frozenset[tuple[str, int]]:
    """The updates in a sum with their factors, without what these have in common."""
    factors = {name: int(factor or 1) for factor, name, _ in TERM.findall(text)}
    common = gcd(*factors.values())
    return frozenset((name, factor // common) for name, factor in factors.items())


OTHERS = {("secagg-plus", "cut"), ("basecagg", "few")}
ONE_SUM = [run for run in RUNS if run[0] not in ("heterosag", "multi-round") and run not in OTHERS]


@pytest.mark.parametrize(("protocol", "run"), ONE_SUM)
def test_what_a_server_knows_in_the_end_are_the_sums_that_it_got(protocol: str, run: str) -> None:
    made = recorded(protocol, run)
    assert set(map(ratio, made.moments[-1].server.functionals)) == {ratio(term.name) for term in made.summed}


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "multi-round"])
def test_a_server_alone_never_knows_an_update(protocol: str) -> None:
    for run in PROTOCOLS[protocol]:
        assert all(moment.server.exposed == () for moment in recorded(protocol, run).moments)


@pytest.mark.parametrize(("protocol", "run"), RUNS)
def test_the_unknown_numbers_are_those_of_all_updates(protocol: str, run: str) -> None:
    """Also where a user trains twice, or never."""
    made = recorded(protocol, run)
    others = [term for term in made.inputs if not term.name.endswith(f"_{made.colluder}")]
    for moment in made.moments:
        assert moment.server.unknown == sum(len(term.vector) for term in made.inputs)
        assert moment.colluding.unknown == sum(len(term.vector) for term in others)


def test_the_pieces_of_a_graph_that_falls_apart_are_known() -> None:
    end = recorded("secagg-plus", "cut").moments[-1]
    parts = components(of_secagg.SPARSE.graph(), (1, 2, 4, 5))
    assert end.server.functionals == tuple(" + ".join(f"x_{user}" for user in part) for part in parts)
    assert end.colluding.exposed == (5,)


@pytest.mark.slow
def test_the_cells_that_are_shown_are_those_that_the_plan_shows() -> None:
    scribe = of_secagg.HeteroSAg(bytes(8))
    synchronous(scribe, of_secagg.GROUP_FATES[1], 4)
    happened, plan = scribe.situation(scribe.network.transcript), Plan(scribe.parameters)
    shown = plan.rows_shown(happened)
    found = synchronous(of_secagg.HeteroSAg(bytes(8)), of_secagg.GROUP_FATES[1], 4).moments[-1].server
    cells = [(row, part) for row, parts in enumerate(shown) for part in parts]
    members = [[u for z in part for u in scribe.parameters.members[z] if u in happened.survivors] for _, part in cells]
    wanted = {" + ".join(f"x_{u}[{row}]" for u in sorted(us)) for (row, _), us in zip(cells, members, strict=True)}
    assert set(found.functionals) == wanted


@pytest.mark.parametrize("run", of_sessions.RUNS)
def test_whose_update_comes_out_of_a_session_is_what_the_audit_of_its_log_says(run: str) -> None:
    session = of_sessions.MultiRound(bytes(8), run)
    made = session.record(8)
    log = np.zeros((len(session.sums), 9), dtype=np.bool_)
    for row, users in zip(log, session.sums, strict=True):
        row[list(users)] = True
    assert made.moments[-1].server.exposed == tuple(participation.audit(log).recoveries)
    assert (made.moments[-1].server.exposed == (5,)) == (run == "without")


def test_a_mask_that_is_shared_by_too_few_answers_gives_no_sum() -> None:
    """Two answers where three are needed: one equation about the sum, and nothing about anybody alone."""
    made = recorded("basecagg", "few")
    before, after = made.moments[-3].server, made.moments[-1].server
    assert made.ended
    assert after.dimension == before.dimension + 1
    assert after.hidden == (0, 1, 2, 3, 4)


# ------------------------------------------------------------------------------------------------------- messages


def costs(page: str) -> dict[tuple[str, str], tuple[str, str]]:
    text = (root("spec") / page).read_text(encoding="utf-8")
    found = re.findall(r"^\| (user|server) \| (\w+) \| `([^`]+)` \| `([^`]+)` \|$", text, re.MULTILINE)
    return {(role, phase): (messages, size) for role, phase, messages, size in reversed(found)}


def sent(moment: Moment) -> tuple[int, int]:
    parcels = [parcel for sending in moment.sendings for parcel in sending.parcels]
    return sum(len(parcel.routes) for parcel in parcels), sum(parcel.bytes for parcel in parcels)


SYNCHRONOUS = [run for run in RUNS if run[0] in ("secagg", "lightsecagg") or run == ("secagg-plus", "nobody")]


@pytest.mark.parametrize(("protocol", "run"), SYNCHRONOUS)
def test_as_much_is_sent_as_the_text_says(protocol: str, run: str) -> None:
    made = recorded(protocol, run)
    p: Any = of_lightsecagg.PARAMETERS if protocol == "lightsecagg" else PARAMETERS[protocol]
    table = costs("lightsecagg.md" if protocol == "lightsecagg" else "secagg.md")
    uploads = next(m for m in made.moments if m.key in ("masked_input.user", "upload.user")).acting
    names = {"N": p.N, "d": 2, "H": 30, "S": len(uploads), "V": p.N - len(uploads), "L": 1, "C": OVERHEAD}
    names["k"] = getattr(p, "k", 0)
    for moment in made.moments:
        phase, role = moment.key.split(".")
        each = 0 if moment.happened == ("ended",) else len(moment.acting) if role == "user" else 1
        stated = [each * eval(cell, {"__builtins__": {}}, names) for cell in table.get((role, phase), ("0", "0"))]
        assert sent(moment) == tuple(stated), moment.key


PARAMETERS = {"secagg": of_secagg.COMPLETE, "secagg-plus": of_secagg.SPARSE}


def test_a_message_between_users_goes_by_the_server() -> None:
    made = recorded("lightsecagg", "nobody")
    (up,), (down,) = (moment.sendings for moment in made.moments[:2])
    assert {receiver for _, receiver in up.parcels[0].hops(Role.USER)} == {SERVER}
    assert {sender for sender, _ in down.parcels[0].hops(Role.SERVER)} == {SERVER}
    assert up.parcels[0].routes == down.parcels[0].routes


# ---------------------------------------------------------------------------------------------- any seed, any dropouts


def fates(phases: Sequence[str], N: int) -> st.SearchStrategy[Fate]:
    each = st.lists(st.sampled_from(("stays", "stays", "stays", *phases)), min_size=N, max_size=N)
    return each.map(lambda drawn: Fate("drawn", {p: tuple(u for u in range(N) if drawn[u] == p) for p in phases}))


seeds = st.integers(0, 2**64 - 1).map(lambda number: number.to_bytes(8, "little"))


@fewer(3)
@given(seeds, fates(secagg.PHASES, 5))
def test_any_round_of_secagg_is_recorded_as_it_runs(seed: bytes, fate: Fate) -> None:
    made = synchronous(of_secagg.SecAgg(seed), fate, 4)
    scribe = of_secagg.SecAgg(seed)
    sources = {user: SeededSource(seed, f"user {user}") for user in range(5)}
    randomness = secagg.draw_randomness(scribe.parameters, sources)
    assert all(addition.holds for moment in made.moments for addition in moment.additions)

    def run() -> RoundResult:
        return secagg.run_round(
            scribe.parameters, scribe.updates, randomness=randomness, dropouts=fate.dropouts, session=bytes(16), round=0
        )

    if made.ended:
        with pytest.raises(TooFewSurvivors, match=re.escape(made.ended)):
            run()
        assert (made.summed, made.moments[-1].server.exposed) == ((), ())
        return
    result = run()
    assert [term.vector for term in made.summed] == [tuple(result.aggregate.tolist())]
    sums = " + ".join(f"x_{user}" for user in result.contributors)
    assert made.moments[-1].server.functionals == (sums,)


@pytest.mark.slow
@fewer(6)
@given(seeds, fates(lightsecagg.PHASES, 5))
def test_any_round_of_lightsecagg_is_recorded_as_it_runs(seed: bytes, fate: Fate) -> None:
    made = synchronous(of_lightsecagg.LightSecAgg(seed), fate, 4)
    present = [set(moment.present) for moment in made.moments]
    assert all(later <= earlier for earlier, later in pairwise(present))
    uploads = [user for user in range(5) if not any(user in fate.dropouts[p] for p in ("share", "upload"))]
    answers = [user for user in uploads if user not in fate.dropouts["recover"]]
    assert bool(made.summed) == (len(uploads) >= 3 and len(answers) >= 3)
    for term in made.summed:
        assert term.vector == plain(made, " + ".join(f"x_{user}" for user in uploads))
    assert all(addition.holds for moment in made.moments for addition in moment.additions)
    assert all(moment.server.exposed == () for moment in made.moments)


@pytest.mark.slow
@fewer(6)
@given(st.integers(0, 2**64 - 1), st.sampled_from([r for r in RUNS if r[0] in ("basa", "basecagg", "multi-round")]))
def test_any_seed_gives_right_sums_where_users_come_one_by_one(seed: int, chosen: tuple[str, str]) -> None:
    made = record(*chosen, seed)
    assert all(addition.holds for moment in made.moments for addition in moment.additions)
    for term in made.summed:
        assert term.vector == plain(made, term.name)
    assert [moment.key for moment in made.moments] == [moment.key for moment in recorded(*chosen).moments]


@pytest.mark.parametrize(
    ("scribe", "phases", "phase"),
    [
        (of_lightsecagg.LightSecAgg(bytes(8)), lightsecagg.PHASES, "upload"),
        (of_secagg.SecAgg(bytes(8)), secagg.PHASES, "masked_input"),
    ],
)
def test_steps_of_another_round_are_named(scribe: Any, phases: Sequence[str], phase: str) -> None:
    synchronous(scribe, Fate("nobody", dict.fromkeys(phases, ())), 4)
    step = next(e for e in scribe.network.transcript if e.step.phase == phase and e.party == 1)
    with pytest.raises(UnknownUser, match=r"^seen = 9: must be a user in \[0, \d+\)$"):
        scribe.views([replace(step, party=9)], ())
    with pytest.raises(DuplicateUser, match=r"^seen = 1: must be a user that is named once$"):
        scribe.views([step, step], ())


def test_a_seed_determines_a_recording() -> None:
    assert record("secagg", "before", 7).data() == record("secagg", "before", 7).data()
    assert record("secagg", "before", 7).data() != record("secagg", "before", 8).data()


@pytest.mark.parametrize(
    "asked", [("secagg", "other"), ("none", "nobody"), ("secagg", "nobody", -1), ([], "nobody"), ("secagg", ["nobody"])]
)
def test_what_cannot_be_recorded_is_refused(asked: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError):
        record(*asked)


@pytest.mark.parametrize(
    ("terms", "result", "holds"),
    [
        ((Term("a", (3,), 2**70),), (divmod(3 * 2**70, 7)[1],), True),
        ((Term("a", (2**63 - 1,)), Term("b", (1,))), (divmod(2**63, 7)[1],), True),
        ((Term("a", (2**63 - 1,)), Term("b", (1,))), (divmod(-(2**63), 7)[1],), False),
        ((Term("a", (1,)), Term("b", (1, 2))), (2, 3), False),
        ((), (0, 0), True),
    ],
)
def test_an_addition_holds_for_vectors_of_one_length_and_numbers_of_any_size(
    terms: tuple[Term, ...], result: tuple[int, ...], holds: bool
) -> None:
    assert Addition(7, terms, Term("sum", result)).holds is holds


# ----------------------------------------------------------------------------------------------- words and pictures


@pytest.mark.parametrize(
    ("given", "d", "said"),
    [
        (["x_0[0] + x_1[0]", "x_0[1] + x_1[1]"], 2, ("x_0 + x_1",)),
        (["x_0[0] + x_1[0]", "x_0[1] - x_1[1]"], 2, ("x_0[0] + x_1[0]", "x_0[1] - x_1[1]")),
        (["x_0[0] + x_0[1]"], 2, ("x_0[0] + x_0[1]",)),
        (["x_3[0]"], 1, ("x_3",)),
        ([], 2, ()),
    ],
)
def test_a_sum_that_is_known_of_all_elements_is_said_once(given: list[str], d: int, said: tuple[str, ...]) -> None:
    assert whole(given, d) == said


@every_run
def test_the_picture_is_one_of_all_messages(protocol: str, run: str) -> None:
    made = recorded(protocol, run)
    svg = ET.fromstring(chart(made, "A <round>"))
    space = "{http://www.w3.org/2000/svg}"
    kinds = [parcel.kind for moment in made.moments for sending in moment.sendings for parcel in sending.parcels]
    labels = ["".join(text.itertext()) for text in svg.iter(f"{space}text")]
    assert [label.split(":")[0] for label in labels if re.search(r": \d+ message", label)] == kinds
    title, described = svg.find(f"{space}title"), svg.find(f"{space}desc")
    assert title is not None
    assert described is not None
    assert title.text == "A <round>"
    assert svg.get("aria-labelledby") == f"{title.get('id')} {described.get('id')}"
    assert not re.search(r"#[0-9a-f]{3}|rgb|NaN", ET.tostring(svg, encoding="unicode"))


BUFFERED = {
    "ModelRequest": "H",
    "ModelStamp": "H",
    "StampedShare": "H + 4 + 4 + 4*L + C",
    "StampedUpdate": "H + 4 + 4*d",
    "BufferedSet": "H + 4 + 4*K + 4 + 4*K + 4 + 4*K",
    "WeightedShare": "H + 4 + 4*L",
}


@pytest.mark.parametrize("run", PROTOCOLS["basecagg"])
def test_each_message_of_a_buffer_is_as_long_as_the_text_says(run: str) -> None:
    text = (root("spec") / "basecagg.md").read_text(encoding="utf-8")
    names = {"H": 30, "L": 1, "C": OVERHEAD, "d": 2, "K": 3}
    parcels = [
        p for moment in recorded("basecagg", run).moments for sending in moment.sendings for p in sending.parcels
    ]
    assert {parcel.kind for parcel in parcels} == set(BUFFERED)
    for parcel in parcels:
        formula = BUFFERED[parcel.kind]
        assert f"{formula}`" in text or f"({formula})`" in text
        assert parcel.bytes == len(parcel.routes) * eval(formula, {"__builtins__": {}}, names)


@pytest.mark.parametrize(
    ("protocol", "run", "marks"), [("secagg", "nobody", 0), ("secagg", "few", 3), ("multi-round", "before", 0)]
)
def test_a_line_ends_where_a_user_drops_out_for_good(protocol: str, run: str, marks: int) -> None:
    svg = chart(recorded(protocol, run), "A round")
    assert svg.count("m0 -8l-8 8") == marks
    assert ("without users 0, 2, 3" in svg) == (run == "few")


@pytest.mark.parametrize("made", [basa.BASA, multiround.MultiRound, basecagg.BASecAgg])
def test_a_run_and_a_colluder_that_there_are_not_are_refused(made: Any) -> None:
    with pytest.raises(ParameterError, match=r"^run = 'x': must be one of "):
        made(b"1", "x")
    with pytest.raises(UnknownUser, match=r"^(colluder|coalition) = 99: must be a user in \[0, "):
        made(b"1", "nobody").record(99)


@pytest.mark.requirement("ERR-02")
def test_arguments_of_another_class_are_refused_by_name() -> None:
    made, other, term = recorded("secagg", next(iter(PROTOCOLS["secagg"]))), cast(Any, None), Term("a", (1,))
    scribe, fate = of_secagg.SecAgg(b"seed"), of_secagg.FATES[0]
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: chart(other, "t"), "recording = 'NoneType'"),
        (lambda: chart(made, other), "title = 'NoneType'"),
        (lambda: synchronous(scribe, other, 4), "fate = 'NoneType'"),
        (lambda: synchronous(other, fate, 4), "scribe = 'NoneType'"),
        (lambda: replace(made, users=other), "users = None"),
        (lambda: replace(made, users=0), "users = 0"),
        (lambda: Addition(0, (term,), term), "modulus = 0"),
        (lambda: Addition(7, other, term), "terms = 'NoneType'"),
        (lambda: Addition(7, (term,), other), "result = 'NoneType'"),
        (lambda: numbers(other), "vector = 'NoneType'"),
        (lambda: known([], [1], -1), "d = -1"),
        (lambda: whole([], other), "d = None"),
        (lambda: basecagg.BASecAgg(b"seed", "few").record(cast(Any, [])), "colluder = 'list'"),
    ]
    for call, text in calls:
        with pytest.raises(ParameterError, match=rf"^{re.escape(text)}: must be "):
            call()


def test_a_picture_is_of_the_parties_of_its_run() -> None:
    one = record("secagg", "nobody")
    ET.fromstring(chart(replace(one, protocol='a"><b'), "x"))
    with pytest.raises(ParameterError, match=r"^recording = 3: must be of messages between its users, the server and"):
        chart(replace(one, users=3, colluder=0), "x")
    with pytest.raises(ParameterError, match=r"^recording\.users = 221: must be an integer in \[1, 220\]$"):
        chart(replace(one, users=221), "x")


def test_an_addition_is_of_terms() -> None:
    with pytest.raises(ParameterError, match=r"^terms = 'str': must be of the class Term$"):
        Addition(7, ("x",), Term("x", (1,)))  # type: ignore[arg-type]


def test_what_is_no_step_that_was_taken_is_named_by_its_place() -> None:
    scribe = of_lightsecagg.LightSecAgg(bytes(1))
    synchronous(scribe, Fate("nobody", {}), 4)
    step, events = next(rows(scribe.network))
    wrong: Any = [*events[:2], None, *events[2:]]
    shown: tuple[Callable[[], object], ...] = (
        lambda: sending(wrong),
        lambda: sendings(wrong),
        lambda: [*scribe.additions(step, wrong)],
        lambda: [*scribe.values(step, wrong)],
        lambda: scribe.views(wrong, ()),
        lambda: basecagg.situation(wrong),
    )
    for show in shown:
        with pytest.raises(ParameterError, match=r"^[a-z]+\[2\] = 'NoneType': must be of the class Event$"):
            show()
