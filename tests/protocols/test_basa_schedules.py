"""Every schedule of a small session of BASA, and runs of several epochs: when there is a sum, and which."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.staleness import realised_weight
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import LengthMismatch, ParameterError, ProtocolError, TooFewSurvivors, UnknownUser, WrongPhase
from secagg_spec.protocols.basa.cores import PRESETS, Parameters
from secagg_spec.protocols.basa.runs import Run, SigningKeys
from secagg_spec.protocols.steps import Network, Randomness, Step
from tests.protocols.positions import CLOSED, TINY, sessions
from tests.strategies import integers_of, pseudorandom, vector

WIDE = replace(TINY, S=2)
TURNS = ("upload", "free", "skip", "late")
"""What a user that is offered a position does: upload, expire without or with the key, or upload too late."""


def run_of(parameters: Parameters, seed: int = 1, round: int = 0) -> Run:
    """A run with keys and seeds from a seed."""
    return Run(parameters, SeededSource(seed.to_bytes(4, "little"), "schedule"), round=round, session=bytes(16))


def update_of(parameters: Parameters, user: int) -> list[int]:
    """The decoded update of a user, the same in all schedules."""
    drawn = integers_of(pseudorandom(user + 7, 2 * parameters.budget + 1, parameters.d))
    return [x - parameters.budget for x in drawn]


def encoded(parameters: Parameters, decoded: list[int]) -> UintArray:
    """The elements of a decoded update."""
    return vector([x % parameters.R for x in decoded])


class Model:
    """What must become of an epoch, told by the plain rules of the text, with plain updates."""

    def __init__(self, parameters: Parameters) -> None:
        self.p = parameters
        self.places: list[int | None] = []
        self.dropped: set[int] = set()
        self.over = False

    @property
    def accepted(self) -> list[int]:
        """The users of the accepted positions."""
        return [user for user in self.places if user is not None]

    def takes(self, user: int) -> bool:
        """Whether this user is offered a position now."""
        return not self.over and self.room and user not in self.dropped

    @property
    def room(self) -> bool:
        """Whether a position is left."""
        return len(self.accepted) < self.p.K and len(self.places) < self.p.positions

    def turn(self, what: str, user: int) -> None:
        """What a turn does."""
        if what == "free":
            return
        if what == "upload" or self.p.settle:
            self.places.append(user if what == "upload" else None)
            self.dropped.add(user)
        else:
            self.over = True

    @property
    def closes(self) -> bool:
        """Whether the epoch can be closed with a sum."""
        n = len(self.accepted)
        return not self.over and (n == self.p.K or (len(self.places) == self.p.positions and n >= self.p.T + 2))


def play(run: Run, what: str, user: int) -> None:
    """Take a turn."""
    update = encoded(run.parameters, update_of(run.parameters, user))
    stamp = run.server.epoch or 0
    if what == "upload":
        run.upload(user, update, stamp, 0.5)
    elif what == "late":
        run.late(user, update, stamp, 0.5)
    else:
        run.expire(user, stamp, keyed=what == "skip")


def branch(run: Run) -> Run:
    """The same run, which goes on by itself."""
    other = copy(run)
    other.network = Network(run.network.table, dict(run.network.states))
    other._outcomes = dict(run._outcomes)
    return other


def explored(run: Run, turns: tuple[str, ...], depth: int) -> Iterator[tuple[Model, Run]]:
    """Every end of a schedule that begins with some turns: when it is over, full, or `depth` turns long."""
    model = Model(run.parameters)
    for user, what in enumerate(turns):
        model.turn(what, user)
    if turns:
        play(run, turns[-1], len(turns) - 1)
        assert [entry.user for entry in run.outcomes[0].entries] == model.accepted
        assert (run.server.phase == "idle") is model.over
    yield model, branch(run)
    if model.takes(len(turns)) and len(turns) < depth:
        for what in TURNS:
            yield from explored(branch(run), (*turns, what), depth)


def judge(model: Model, run: Run) -> bool:
    """Let the server close now; return whether there is a sum, which is so exactly when the text says."""
    p = run.parameters
    if not model.over and not model.room:
        with pytest.raises(WrongPhase):
            play(branch(run), "free", p.N - 1)
    if model.closes:
        recovered = run.close()
        users = [update_of(p, user) for user in model.accepted]
        assert integers_of(recovered.sum) == [p.c_g * sum(column) % p.R for column in zip(*users, strict=True)]
        assert [e.user for e in recovered.entries] == model.accepted
    elif not model.over:
        with pytest.raises(TooFewSurvivors):
            run.close()
    return model.closes


@pytest.mark.requirement("BAA-16", "BAA-17", "BAA-18", "BAA-19", "BAA-36", "BAA-41", "BAA-45")
@pytest.mark.parametrize(
    ("parameters", "depth", "ends", "sums"),
    [(TINY, 4, 337, 10), (CLOSED, 5, 101, 10), pytest.param(WIDE, 5, 1309, 64, marks=pytest.mark.slow)],
    ids=["settle", "void", "two spare"],
)
def test_all_schedules(parameters: Parameters, depth: int, ends: int, sums: int) -> None:
    """Each user in turn does one of four things, and the server closes anywhere; the text says when there is a sum."""
    judged = [judge(model, run) for model, run in explored(run_of(parameters), (), depth)]
    assert (len(judged), sum(judged)) == (ends, sums)


@pytest.mark.requirement("BAA-26", "BAA-41", "BAA-45")
@given(sessions(12), st.integers(1, 2**16), st.data())
def test_masks_cancel_in_every_order_of_arrival(p: Parameters, seed: int, data: st.DataObject) -> None:
    """Up to twelve positions, whoever comes when, with every pattern of timeouts that leaves enough."""
    run, model, epoch = run_of(p, seed, 7), Model(p), 7
    weights, used = [], []
    for user in data.draw(st.permutations(range(p.N))):
        if not model.takes(user):
            break
        what = data.draw(st.sampled_from(TURNS if p.settle else ("upload", "free")))
        stamp, draw = epoch - data.draw(st.integers(0, p.tau_max)), data.draw(st.integers(0, 2**53 - 1)) * 2.0**-53
        update = pseudorandom(seed + user, 2 * p.budget + 1, p.d).astype(np.int64) - p.budget
        carried = encoded(p, update.tolist())
        if what == "upload":
            run.upload(user, carried, stamp, draw)
            weights.append(realised_weight(p.staleness, p.c_g, epoch - stamp, draw))
            used.append([int(x) for x in update])
        elif what == "late":
            run.late(user, carried, stamp, draw)
        else:
            run.expire(user, stamp, keyed=what == "skip")
        model.turn(what, user)
    if not model.closes:
        with pytest.raises(TooFewSurvivors):
            run.close()
        return
    recovered = run.close()
    rows = [[w * x for x in row] for w, row in zip(weights, used, strict=True)]
    total = [sum(column) for column in zip(*rows, strict=True)]
    assert integers_of(recovered.sum) == [x % p.R for x in total]
    assert [entry.weight for entry in recovered.entries] == weights
    assert recovered.average.tolist() == [x / (p.c_l * sum(weights)) for x in total]


@pytest.mark.requirement("BAA-07", "BAA-22", "BAA-45", "BAA-50")
def test_epochs_follow_one_another_whatever_became_of_them() -> None:
    p = replace(CLOSED, tau_max=1)
    run = run_of(p, 1, 4)
    one = encoded(p, [1, -1])
    for user in range(3):
        run.upload(user, one, 4, 0.0)
    run.close()
    run.upload(0, one, 4, 0.9)
    run.late(1, one, 5, 0.9)
    run.upload(1, one, 5, 0.0)
    run.abandon()
    for user in (3, 5, 0):
        run.upload(user, one, 6, 0.0)
    run.close()
    assert [outcome.epoch for outcome in run.outcomes] == [4, 5, 6, 7]
    assert [len(outcome.entries) for outcome in run.outcomes] == [3, 1, 1, 3]
    sums = [None if o.recovered is None else integers_of(o.recovered.sum) for o in run.outcomes]
    assert sums[0] == [6, 10]
    assert sums[1:3] == [None, None]


def test_a_run_refuses_users_and_stamps_that_there_are_not() -> None:
    run = run_of(TINY, round=3)
    with pytest.raises(UnknownUser):
        run.expire(6, 0, keyed=True)
    for user in (-2, -1):
        with pytest.raises(ParameterError, match=f"^user = {user}: must be an integer >= 0$"):
            run.expire(user, 0, keyed=True)
    with pytest.raises(ParameterError, match=r"^user = 'a'"):
        run.expire("a", 0, keyed=True)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^parameters = 'dict': must be of the class Parameters$"):
        Run({}, SeededSource(b"", "schedule"), session=bytes(16), round=0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"^source = 'NoneType': must be an object with what Source has: take"):
        Run(TINY, None, session=bytes(16), round=0)  # type: ignore[arg-type]
    with pytest.raises(ProtocolError):
        run.expire(0, 4, keyed=True)
    with pytest.raises(ProtocolError):
        run.upload(0, vector([0, 0]), 1, 0.0)


@pytest.mark.parametrize("rounding", [0.1, 1.0, -0.5, float("nan"), "0"])
def test_a_run_names_a_draw_that_is_none_before_a_step_is_taken(rounding: Any) -> None:
    run, update = run_of(TINY), vector([0, 0])
    for play in (run.upload, run.late):
        with pytest.raises(ParameterError, match=r"^rounding"):
            play(0, update, 0, rounding)
    run.upload(0, update, 0, 0.5)


@pytest.mark.parametrize("rounding", ["0", None, 0, [0.5]])
def test_a_draw_of_another_class_is_refused_as_such(rounding: Any) -> None:
    with pytest.raises(ParameterError, match=rf"^rounding = '{type(rounding).__name__}': must be a float, a multiple"):
        run_of(TINY).upload(0, vector([0, 0]), 0, rounding)


@pytest.mark.parametrize("keyed", ["no", None, 1])
def test_whether_a_user_fetched_its_key_is_a_truth_value(keyed: Any) -> None:
    with pytest.raises(ParameterError, match=r"^keyed = .*must be of the class bool$"):
        run_of(TINY).expire(0, 0, keyed=keyed)


def test_a_run_does_not_go_on_with_a_server_that_takes_an_upload_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    run, take = run_of(TINY), Network.take

    def lenient(self: Network, step: Step[Any], party: int, randomness: Randomness) -> object:
        return None if step.phase == "take" else take(self, step, party, randomness)

    monkeypatch.setattr(Network, "take", lenient)
    with pytest.raises(AssertionError, match="expired"):
        run.late(0, vector([0, 0]), 0, 0.0)


@pytest.mark.requirement("BAA-41")
def test_the_presets_recover_the_sum() -> None:
    for p in PRESETS.values():
        run = run_of(p)
        for user in range(p.K):
            play(run, "upload", user)
        expected = [p.c_g * sum(column) % p.R for column in zip(*(update_of(p, u) for u in range(p.K)), strict=True)]
        assert integers_of(run.close().sum) == expected


@pytest.mark.requirement("ERR-03")
def test_signing_keys_are_not_shown_and_have_32_bytes() -> None:
    keys = SigningKeys((b"\xab" * 32,), b"\xcd" * 32)
    assert repr(keys) == "SigningKeys()"
    with pytest.raises(LengthMismatch, match=r"^len\(users\[0\]\) = 31: must be 32 bytes$"):
        SigningKeys((bytes(31),), bytes(32))
    with pytest.raises(ParameterError, match=r"^authority = 'str'"):
        SigningKeys((bytes(32),), cast("Any", "x" * 32))
    with pytest.raises(ParameterError, match=r"^users = 'NoneType': must be a sequence of signing keys$"):
        SigningKeys(cast("Any", None), bytes(32))
