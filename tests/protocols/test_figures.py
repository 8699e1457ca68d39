"""Each first figure equals the package's own run bit for bit, is short, and names equations of its paper."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.validate import RealArray, UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_below, draw_rounding
from secagg_spec.errors import LengthMismatch, TooFewSurvivors
from secagg_spec.protocols import basa as basa_figure
from secagg_spec.protocols import basecagg as basecagg_figure
from secagg_spec.protocols import fedbuff as fedbuff_figure
from secagg_spec.protocols import heterosag as heterosag_figure
from secagg_spec.protocols import lightsecagg as lightsecagg_figure
from secagg_spec.protocols import multi_round as multi_round_figure
from secagg_spec.protocols import secagg as secagg_figure
from secagg_spec.protocols.basa import basa_epoch
from secagg_spec.protocols.basecagg import basecagg_buffer
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.basecagg.round import encode_update
from secagg_spec.protocols.basecagg.runs import Abandon, Recover, Start, Upload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.fedbuff import fedbuff_step
from secagg_spec.protocols.fedbuff import round as fedbuff
from secagg_spec.protocols.fedbuff.round import ServerState
from secagg_spec.protocols.heterosag import heterosag_round
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.averages import combine, quantize_update
from secagg_spec.protocols.heterosag.plan import cells_of
from secagg_spec.protocols.lightsecagg import lightsecagg_round
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import multi_round_session
from secagg_spec.protocols.multi_round.round import Parameters as SessionParameters
from secagg_spec.protocols.multi_round.round import draw_randomness
from secagg_spec.protocols.multi_round.runs import Outcome, Turn, run_session
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg import secagg_round
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.steps import SERVER, Event
from secagg_spec.selection import strategies
from tests.protocols import buffered, chosen, heterogeneous, positions, test_basecagg, test_fedbuff, test_secagg
from tests.protocols.test_multi_round import turns_of
from tests.strategies import Round, fewer, moduli, rounds

SEEDS = st.integers(0, 2**16)
MODULES: dict[str, ModuleType] = {
    "secagg": secagg_figure,
    "lightsecagg": lightsecagg_figure,
    "basecagg": basecagg_figure,
    "fedbuff": fedbuff_figure,
    "basa": basa_figure,
    "heterosag": heterosag_figure,
    "multi_round": multi_round_figure,
}
PAPERS = {
    "secagg": ("basecagg", {19, 20}),
    "lightsecagg": ("basecagg", {21}),
    "basecagg": ("basecagg", {6, 7, 8, 9, 10, 11, 12, 13, 14}),
    "fedbuff": ("basecagg", {2, 4, 7, 12, 15}),
    "basa": ("basa", {6}),
    "heterosag": ("heterosag", {3, 9, 10}),
    "multi_round": ("multi-round", {2, 3}),
}
"""The paper of each figure, and the equations that it names."""


def same(one: Any, other: Any) -> None:
    """Two arrays are of one type and equal bit for bit."""
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    assert one.tobytes() == other.tobytes()


def shown(figure: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, dict[str, Any]]:
    """What a figure returns, and its variables at the end: what it says of messages is compared as well."""
    variables: dict[str, Any] = {}

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "return" and frame.f_code is figure.__code__:
            variables.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        return figure(*arguments, **named), variables
    finally:
        sys.setprofile(before)


def sent(transcript: Sequence[Event], kind: type[Message], field: str) -> dict[int, Any]:
    """A field of all messages of one type, by sender."""
    messages = [message for event in transcript for message in event.sent if isinstance(message, kind)]
    return {message.sender: getattr(message, field) for message in messages}


def same_rows(rows: Sequence[UintArray], users: Iterable[int], messages: Mapping[int, UintArray]) -> None:
    """Rows of some users are what their messages hold."""
    for row, user in zip(rows, users, strict=True):
        same(row, messages[user])


def reals(seed: int, *shape: int) -> RealArray:
    """Draws in [0, 1), multiples of 2**-53, from a seed."""
    return draw_rounding(SeededSource(b"%d" % seed, "figures"), int(np.prod(shape))).reshape(shape)


@st.composite
def some(draw: st.DrawFn, users: Sequence[int], least: int) -> list[int]:
    """At least so many of some users, in any order."""
    count = draw(st.integers(least, len(users)))
    return draw(st.permutations(users))[:count]


# ---------------------------------------------------------------------------------------------------- LightSecAgg


@pytest.mark.requirement("LSA-02", "LSA-08", "LSA-13")
@given(rounds(), st.data())
def test_the_figure_of_lightsecagg_is_its_round(case: Round, data: st.DataObject) -> None:
    p = case.parameters
    U1 = data.draw(some(range(p.N), max(p.U, p.T + 2)))
    U2 = data.draw(some(U1, p.U))
    early = data.draw(st.sets(st.sampled_from(range(p.N)))) - set(U1)
    dropouts = {"share": early, "upload": set(range(p.N)) - set(U1) - early, "recover": set(U1) - set(U2)}
    shared = {i: values for i, values in case.randomness.items() if i not in early}
    result = lightsecagg.run_round(
        p, case.updates, randomness=case.randomness, dropouts=dropouts, session=bytes(16), round=0
    )
    z, n = ({i: values[name] for i, values in shared.items()} for name in ("mask", "noise"))
    total, variables = shown(lightsecagg_round, p, dict(enumerate(case.updates)), z, n, U1, U2)
    same(total, result.aggregate)
    same_rows(variables["y"], U1, sent(result.transcript, lightsecagg.MaskedUpdate, "masked"))
    same_rows(variables["answer"], U2, sent(result.transcript, lightsecagg.AggregatedShare, "share"))


# --------------------------------------------------------------------------------------------------------- SecAgg


@st.composite
def roomy(draw: st.DrawFn) -> test_secagg.Case:
    """Rounds of SecAgg or SecAgg+ in which all but three users may drop out."""
    N = draw(st.sampled_from((8, 6, 7)))
    parameters = secagg.Parameters(draw(moduli()), N, N - 3, 1, 3, draw(st.sampled_from((N - 1, 4))), 2)
    return test_secagg.case_of(parameters, draw(st.integers(0, 5)), tuple(draw(st.permutations(range(N)))))


@pytest.mark.requirement("SAG-10", "SAG-12", "SAG-29")
@given(roomy() | test_secagg.cases(), st.data())
def test_the_figure_of_secagg_is_its_round(case: test_secagg.Case, data: st.DataObject) -> None:
    p = case.parameters
    late = data.draw(st.permutations(range(p.N)))[: data.draw(st.integers(0, p.N - p.enough))]
    phases = st.sampled_from(("masked_input", "unmasking", *secagg.PHASES))
    fates = [data.draw(phases) if i in late else "stays" for i in range(p.N)]
    assume(test_secagg.succeeds(case, fates) is not None)
    figure_of_secagg_is_the_round(case, fates)


@pytest.mark.requirement("SAG-12", "SAG-29")
@pytest.mark.parametrize("k", [6, 4])
def test_the_figure_of_secagg_leaves_masks_between_dropped_users_alone(k: int) -> None:
    """Masks between two neighbours that both drop out are in no input, and so are those of users far apart."""
    case = test_secagg.case_of(secagg.Parameters(2**16, 7, 4, 1, 3, k, 2))
    fates = ["stays", "masked_input", "masked_input", "stays", "stays", "stays", "stays"]
    figure_of_secagg_is_the_round(case, fates)


def figure_of_secagg_is_the_round(case: test_secagg.Case, fates: Sequence[str]) -> None:
    """The figure gives the sum and the masked inputs of a round that succeeds, with a fate for each user."""
    p = case.parameters
    graph = Graph(case.order, p.k)
    U1 = graph.core({i for i in range(p.N) if fates[i] != "advertise_keys"}, p.t)
    U2 = frozenset(graph.core({i for i in U1 if fates[i] != "share_keys"}, p.t))
    U3 = frozenset(i for i in U2 if fates[i] != "masked_input")
    U5 = frozenset(i for i in U3 if fates[i] != "unmasking")
    round = secagg.Round(p, graph, bytes(16), 0)
    result = case.run(fates)
    total, variables = shown(secagg_round, round, dict(enumerate(case.updates)), case.randomness, U2, U3, U5)
    same(total, result.aggregate)
    same_rows(variables["y"], U3, sent(result.transcript, secagg.MaskedInput, "masked"))


# ---------------------------------------------------------------------------------------------- BASecAgg, FedBuff


def carried(p: Any, seed: int) -> RealArray:
    """Real numbers that, quantised, use the whole budget of an update."""
    bound = p.budget - 1
    whole = np.floor(reals(seed, p.d) * (2 * bound + 1)) - bound
    values: RealArray = (whole + reals(seed + 1, p.d)) / p.c_l
    return values


@pytest.mark.requirement("BSA-18", "BSA-29", "BSA-33", "BSA-36")
@given(buffered.sessions(), SEEDS, st.data())
def test_the_figure_of_basecagg_is_each_buffer_of_a_schedule(p: Any, seed: int, data: st.DataObject) -> None:
    """Users start, upload, abandon and answer in any order, late ones by up to tau_max rounds."""
    turns = data.draw(test_basecagg.schedules(p))
    uploads = range(sum(isinstance(turn, Upload) for turn in turns))
    deltas, draws = [carried(p, seed + 3 * at) for at in uploads], [reals(seed + 3 * at + 2, p.d) for at in uploads]
    updates = [encode_update(p, x, u) for x, u in zip(deltas, draws, strict=True)]
    sampled = basecagg_runs.draw_randomness(p, SeededSource(b"%d" % seed, "turns"), turns)
    result = basecagg_runs.run_schedule(p, updates, turns, randomness=sampled, session=bytes(16), round=3)
    messages = [message for event in result.transcript for message in event.sent]
    uploads_sent = {(m.sender, m.round): m.masked for m in messages if isinstance(m, basecagg.StampedUpdate)}
    answers_sent = {(m.sender, m.round): m.share for m in messages if isinstance(m, basecagg.WeightedShare)}
    for buffer, arguments in zip(result.buffers, buffers_of(turns, deltas, draws, sampled, 3), strict=True):
        (total, average), variables = shown(basecagg_buffer, p, **arguments)
        same(total, buffer.sum)
        same(average, buffer.average)
        assert variables["S"] == [entry.user for entry in buffer.entries]
        for i, y in zip(variables["S"], variables["y"], strict=True):
            same(y, uploads_sent[i, arguments["stamp"][i]])
        for j, answer in zip(arguments["U2"], variables["answer"], strict=True):
            same(answer, answers_sent[j, buffer.round])


@pytest.mark.requirement("MOD-07")
def test_the_figure_of_basecagg_refuses_an_update_that_is_shorter_than_its_mask() -> None:
    p = basecagg.PRESETS["tiny"]
    mask, noise = np.ones(p.d, np.uint64), np.ones((p.T, p.share_length), np.uint64)
    short = np.zeros(p.d - 1)
    with pytest.raises(LengthMismatch, match=r"^b\.shape = \(3,\): must be \(2\)$"):
        basecagg_buffer(p, 0, {0: 0}, {0: short}, {0: short}, {0: mask}, {0: noise}, (0, 1, 2), {0: 0.0})


def buffers_of(
    turns: Sequence[Any], deltas: Sequence[RealArray], draws: Sequence[RealArray], sampled: Mapping[str, Any], t: int
) -> list[dict[str, Any]]:
    """What the figure of BASecAgg takes, for each buffer of a schedule that begins in round t."""
    uploads = iter(zip(deltas, draws, strict=True))
    masks, roundings = iter(zip(sampled["masks"], sampled["noises"], strict=True)), iter(sampled["roundings"])
    training: dict[int, tuple[int, Any]] = {}
    waiting: dict[int, tuple[Any, ...]] = {}
    found = []
    for turn in turns:
        match turn:
            case Start(user):
                training[user] = (t, next(masks))
            case Abandon(user):
                del training[user]
            case Upload(user):
                waiting[user] = (*training.pop(user), next(uploads))
            case Recover(users):
                v = dict(zip(sorted(waiting), next(roundings).tolist(), strict=True))
                columns: dict[str, dict[int, Any]] = {
                    "stamp": {i: stamp for i, (stamp, _, _) in waiting.items()},
                    "z": {i: z for i, (_, (z, _), _) in waiting.items()},
                    "n": {i: n for i, (_, (_, n), _) in waiting.items()},
                    "delta": {i: delta for i, (_, _, (delta, _)) in waiting.items()},
                    "u": {i: u for i, (_, _, (_, u)) in waiting.items()},
                }
                found.append({"t": t, "U2": users, "v": v, **columns})
                waiting, t = {}, t + 1
    return found


@pytest.mark.requirement("FBF-02", "FBF-09", "FBF-10", "FBF-11", "FBF-12")
@given(test_fedbuff.parameter_sets(), SEEDS, st.data())
def test_the_figure_of_fedbuff_is_each_step_of_updates_in_any_order(p: Any, seed: int, data: st.DataObject) -> None:
    models = [reals(seed, p.d)]
    state = fedbuff.start(p, models[0])
    spent = set[tuple[int, int]]()
    for t in range(4):
        arguments: dict[str, dict[int, Any]] = {"stamp": {}, "downloaded": {}, "trained": {}, "u": {}}
        for i in data.draw(st.permutations(range(p.N)))[: p.K]:
            stamps = [stamp for stamp in range(max(t - p.tau_max, 0), t + 1) if (i, stamp) not in spent]
            stamp = data.draw(st.sampled_from(stamps))
            spent.add((i, stamp))
            at = seed + 100 * t + 7 * i
            one = (stamp, models[stamp], 200 * reals(at, p.d) - 100, reals(at + 1, p.d))
            for values, value in zip(arguments.values(), one, strict=True):
                values[i] = value
            state = fedbuff.receive(state, i, stamp, sent_by(p, *one[1:]))
        rounding = reals(seed + 100 * t + 99, p.K)
        after = stepped(state, rounding)
        if after is None:
            return
        v = dict(zip(sorted(arguments["stamp"]), rounding.tolist(), strict=True))
        same(fedbuff_step(p, models[-1], t, v=v, **arguments), after.model)
        state = after
        models.append(after.model)


def sent_by(p: Any, downloaded: RealArray, trained: RealArray, u: RealArray) -> Any:
    """What a user of FedBuff sends: its update, or the integers that the quantiser carries."""
    delta = fedbuff.local_update(downloaded, trained)
    if p.c_l is None:
        return delta
    ring = Ring(2**32)
    return ring.decode_signed(quantize(delta, level=p.c_l, ring=ring, weight=1, rounding=u))


def stepped(state: ServerState, rounding: RealArray) -> ServerState | None:
    """The server after a step, None when no update has a weight."""
    try:
        return fedbuff.step(state, rounding=rounding)
    except TooFewSurvivors:
        return None


# ----------------------------------------------------------------------------------------------------------- BASA


@pytest.mark.requirement("BAA-23", "BAA-26", "BAA-41", "BAA-43")
@fewer(2)
@given(positions.sessions(8), SEEDS, st.data())
def test_the_figure_of_basa_is_each_epoch_of_users_one_after_another(p: Any, seed: int, data: st.DataObject) -> None:
    """Users upload late or not, time out before their key or after it, and do so until the buffer can be closed."""
    scene = positions.Scene(p, seed, round=data.draw(st.integers(0, 6)))
    for _ in range(2):
        scene.open()
        arguments: dict[str, dict[int, Any]] = {"stamp": {}, "delta": {}, "seeds": {}, "v": {}}
        at = 0
        while at < p.positions and len(arguments["delta"]) < p.K:
            skips = p.settle and p.positions - (at - len(arguments["delta"])) > p.T + 2
            what = data.draw(st.sampled_from(("upload", "upload", "free", "skip") if skips else ("upload", "free")))
            if what == "upload":
                stamp = data.draw(st.integers(max(0, scene.epoch - p.tau_max), scene.epoch))
                for values, value in zip(arguments.values(), uploaded(scene, at, stamp), strict=True):
                    values[at] = value
            else:
                scene.expire(at, keyed=what == "skip")
            at += what != "free"
        epoch = scene.server.session.epoch(scene.epoch)
        recovered = scene.close()
        (total, average), variables = shown(basa_epoch, p, epoch, **arguments)
        same(total, recovered.sum)
        same(average, recovered.average)
        for k, y in zip(variables["accepted"], variables["y"], strict=True):
            same(y, scene.uploads[recovered.epoch, k][1].masked)


def uploaded(scene: positions.Scene, user: int, stamp: int) -> tuple[int, UintArray, list[bytes], float]:
    """Let a user upload; return its stamp, its update, its seeds by position and its draw."""
    scene.keyed(user, stamp=stamp)
    scene.send(user)
    sampled = scene.sampled[-1]
    scene.take("take", SERVER)
    scene.settle()
    seeds = [sampled["seeds"][32 * at : 32 * at + 32] for at in range(scene.parameters.positions)]
    return stamp, scene.updates[user], seeds, sampled["rounding"]


# ------------------------------------------------------------------------------------------------------ HeteroSAg


@pytest.mark.requirement("HSA-08", "HSA-12", "HSA-14", "HSA-19", "HSA-24")
@given(heterogeneous.sessions(), SEEDS, st.data())
def test_the_figure_of_heterosag_is_its_round(p: Any, seed: int, data: st.DataObject) -> None:
    span = reals(seed, p.N, p.d)
    x = np.clip(p.range.low * (1 - span) + p.range.high * span, p.range.low, p.range.high)
    u = reals(seed + 1, p.N, p.d)
    updates = np.stack([quantize_update(p, i, x[i], rounding=u[i]) for i in range(p.N)])
    sampled = secagg.draw_randomness(p, {i: SeededSource(b"%d" % seed, f"user {i}") for i in range(p.N)})
    fates = data.draw(fates_in_cells(p))
    dropouts = {phase: [i for i, fate in enumerate(fates) if fate == phase] for phase in heterosag.PHASES}
    result = heterosag.run_round(p, updates, randomness=sampled, dropouts=dropouts, session=bytes(16), round=5)
    U2 = frozenset(i for i in range(p.N) if fates[i] not in ("advertise_keys", "share_keys"))
    U3 = frozenset(i for i in U2 if fates[i] != "masked_input")
    sk, b = ({i: sampled[i][name] for i in U2} for name in ("masking_key", "self_seed"))
    reals_of, draws_of = dict(enumerate(x)), dict(enumerate(u))
    (sums, average), variables = shown(heterosag_round, p, bytes(16), 5, reals_of, draws_of, sk, b, U2, U3)
    assert [(one.cell, one.survivors) for one in sums] == [(one.cell, one.survivors) for one in result.sums]
    for one, other in zip(sums, result.sums, strict=True):
        same(one.total, other.total)
    same(average, combine(p, result.sums))
    for i, packed in sent(result.transcript, heterosag.MaskedSegments, "segments").items():
        segments = heterosag.unpack_segments(cells_of(p, i), packed)
        for cell in cells_of(p, i):
            same(variables["y"][i, cell.segment], cell.of(segments))


@st.composite
def fates_in_cells(draw: st.DrawFn, p: Any) -> list[str]:
    """For each user the phase in which it drops out, or ``stays``; in each subgroup T + 2 users stay, or nobody."""
    fates = ["stays"] * p.N
    left = p.N - p.enough
    for members in draw(st.permutations(p.members)):
        counts = [count for count in (*range(len(members) - p.T - 1), len(members)) if count <= left]
        count = draw(st.sampled_from(counts))
        left -= count
        for i in draw(st.permutations(members))[:count]:
            phases = heterosag.PHASES[: 3 if count == len(members) else 4]
            fates[i] = draw(st.sampled_from(("masked_input", *phases)))
    return fates


# ----------------------------------------------------------------------------------------------- Multi-RoundSecAgg


@pytest.mark.slow
@pytest.mark.requirement("MRA-05", "MRA-18", "MRA-22", "MRA-28")
@fewer(3)
@given(chosen.sessions(8), SEEDS, st.data())
def test_the_figure_of_multi_round_is_a_session(p: SessionParameters, seed: int, data: st.DataObject) -> None:
    """Rounds without a choice among them, up to the first that ends without a sum."""

    def outcomes_of(turns: Sequence[Turn]) -> tuple[Outcome, ...]:
        source = SeededSource(b"%d" % seed, "session")
        return run_session(p, turns, strategy="fair", source=source, session=bytes(16))

    turns = data.draw(turns_of(p, 6, seed))
    failed = [at for at, one in enumerate(outcomes_of(turns)) if one.chosen and one.aggregate is None]
    turns = turns[: min(failed, default=len(turns))]
    outcomes = outcomes_of(turns)
    draws = draws_of(p, turns, outcomes, SeededSource(b"%d" % seed, "session"))
    met = [(turn.updates, set(turn.available), came(p, turn), drawn) for turn, drawn in zip(turns, draws, strict=True)]
    ring = p.round.ring if isinstance(p.round, secagg.Parameters) else p.round.field
    for (survivors, total), outcome in zip(multi_round_session(p.selection, ring, met), outcomes, strict=True):
        assert survivors == outcome.survivors
        if total is None:
            assert outcome.aggregate is None
        else:
            same(total, outcome.aggregate)


def came(p: SessionParameters, turn: Turn) -> set[int]:
    """The users whose masked inputs come, if they are chosen."""
    before = p.base.phases[: p.base.phases.index(p.base.adds) + 1]
    return set(range(p.selection.N)) - {user for phase in before for user in turn.dropouts[phase]}


def draws_of(
    p: SessionParameters, turns: Sequence[Turn], outcomes: Sequence[Outcome], source: SeededSource
) -> list[tuple[int, ...]]:
    """The draws of each choice of a session, from a source like the one that the session had."""
    frequencies, found = np.zeros(p.selection.N, np.int64), []
    for turn, outcome in zip(turns, outcomes, strict=True):
        available = np.isin(np.arange(p.selection.N), turn.available)
        found.append(draw_below(source, strategies.ranges(p.selection, "fair", frequencies, available) or ()))
        if outcome.chosen:
            draw_randomness(p, dict.fromkeys(range(p.selection.K), source))
            frequencies[list(outcome.survivors)] += 1
    return found


# ------------------------------------------------------------------------------------------------------- the form


def source_of(name: str) -> str:
    """The text of a figure's module."""
    return Path(str(MODULES[name].__file__)).read_text(encoding="utf-8")


def figure_of(name: str) -> ast.FunctionDef:
    """The one definition of a figure's module."""
    [found] = [node for node in ast.parse(source_of(name)).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert isinstance(found, ast.FunctionDef)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_a_figure_stands_on_the_first_screen_and_has_few_imports(name: str) -> None:
    tree, lines = ast.parse(source_of(name)), source_of(name).splitlines()
    figure = figure_of(name)
    assert figure.lineno < 40
    body = lines[figure.body[1].lineno - 1 : figure.end_lineno]
    assert 5 <= len([line for line in body if line.strip() and not line.lstrip().startswith("#")]) <= 30
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    assert len({alias.name for node in imports for alias in node.names}) <= 10


@pytest.mark.parametrize("name", MODULES)
def test_a_figure_has_no_messages_states_or_network(name: str) -> None:
    allowed = (
        ("arithmetic", "crypto", "protocols", "selection")
        if name == "multi_round"
        else ("arithmetic", "crypto", "protocols")
    )
    imports = [node for node in ast.walk(ast.parse(source_of(name))) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if str(node.module).startswith("secagg_spec.")]
    assert {str(node.module).split(".")[1] for node in ours} <= set(allowed)
    taken = {alias.name for node in ours for alias in node.names}
    assert not {one for one in taken if re.search("Step|State|Network|Message|_start|run_|Channel", one)}


@pytest.mark.parametrize("name", MODULES)
def test_a_figure_names_equations_that_its_paper_has(name: str) -> None:
    paper, equations = PAPERS[name]
    text = (resources.root("spec") / "papers" / f"{paper}.toml").read_text(encoding="utf-8")
    known = {item["name"] for item in tomllib.loads(text)["item"]}
    named = {int(number) for number in re.findall(r"eq\. \((\d+)\)", source_of(name))}
    assert named == equations
    assert {f"equation {number}" for number in named} <= known


@pytest.mark.parametrize(("equation", "name"), [(13, "basecagg"), (21, "lightsecagg"), (20, "secagg"), (4, "fedbuff")])
def test_an_equation_is_found_in_one_line_of_one_figure(equation: int, name: str) -> None:
    lines = [(one, line) for one in MODULES for line in source_of(one).splitlines() if f"eq. ({equation})" in line]
    assert [one for one, _ in lines] == [name]
    assert re.match(r" {4}\w", lines[0][1]), "the equation stands on a line of code"
