"""The cores alone recover what whole runs with messages recover, and refuse the same turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.errors import LengthMismatch, ParameterError, ProtocolError, WrongPhase
from secagg_spec.protocols.basecagg.cores import CoreRun
from secagg_spec.protocols.basecagg.round import PRESETS, Parameters, user_trained
from secagg_spec.protocols.basecagg.runs import (
    Abandon,
    Play,
    Recover,
    Start,
    Turn,
    Upload,
    draw_randomness,
    open_session,
    supplies,
)

TINY = PRESETS["tiny"]


@st.composite
def schedules(draw: Any, p: Parameters) -> list[Turn]:
    """Turns that fill buffers, half of the time with a fault: somebody abandons, too few answer, in any order."""
    fault = draw(st.sampled_from(("none", "none", "none", "abandon", "few", "order")))
    turns: list[Turn] = []
    for _ in range(draw(st.integers(1, 3))):
        for user in draw(st.permutations(range(p.N)))[: p.K]:
            abandons = fault == "abandon" and draw(st.booleans())
            turns += [Start(user), Abandon(user), Upload(user)] if abandons else [Start(user), Upload(user)]
        count = draw(st.integers(1 if fault == "few" else p.U, p.N))
        turns.append(Recover(tuple(draw(st.permutations(range(p.N)))[:count])))
    return draw(st.permutations(turns)) if fault == "order" else turns


@given(st.sampled_from([TINY, PRESETS["default"]]), st.data(), st.binary(min_size=4, max_size=4))
def test_both_recover_and_refuse_the_same(p: Parameters, data: Any, seed: bytes) -> None:
    schedule = data.draw(schedules(p))
    source = SeededSource(seed, "run")
    sampled = draw_randomness(p, source, schedule)
    small = np.array([0, 1, p.q - 1], dtype=np.uint64)
    updates = [small[draw_elements(source, Ring(3), (p.d,))] for _ in schedule]
    play = Play(open_session(p, session=bytes(16), round=0), supplies(p, updates, sampled), user_trained)
    cores = Cores(CoreRun(p), {"updates": iter(updates)} | {name: iter(values) for name, values in sampled.items()})
    for turn in schedule:
        refused = _refusal(play.take, turn)
        assert refused == _refusal(cores.take, turn), turn
        if refused:
            break
    for one, other in zip(play.buffers, cores.buffers, strict=True):
        assert (one.round, one.entries) == (other.round, other.entries)
        np.testing.assert_array_equal(one.sum, other.sum)
        np.testing.assert_array_equal(one.average, other.average)


class Cores:
    """A run by cores that takes turns."""

    def __init__(self, run: CoreRun, lists: dict[str, Any]) -> None:
        self.run, self.lists = run, lists
        self.buffers: list[Any] = []

    def take(self, turn: Turn) -> None:
        """Let happen what a turn says."""
        match turn:
            case Start(user):
                self.run.start(user, next(self.lists["masks"]), next(self.lists["noises"]))
            case Upload(user):
                self.run.upload(user, next(self.lists["updates"]))
            case Abandon(user):
                self.run.abandon(user)
            case Recover(users):
                self.buffers.append(self.run.recover(users, next(self.lists["roundings"])))


def _refusal(take: Callable[[Turn], None], turn: Turn) -> str:
    try:
        take(turn)
    except (ProtocolError, ParameterError) as refused:
        return type(refused).__name__
    return ""


def test_the_last_round_is_not_recovered() -> None:
    run = CoreRun(TINY, 2**32 - 1)
    for user in range(3):
        run.start(user, np.zeros(3, np.uint64), np.zeros((1, 2), np.uint64))
        run.upload(user, np.zeros(3, np.uint64))
    with pytest.raises(WrongPhase, match="last round"):
        run.recover(range(5), np.zeros(3))


def test_a_user_that_does_not_train_has_nothing_to_abandon() -> None:
    run = CoreRun(TINY)
    run.start(1, np.zeros(3, np.uint64), np.zeros((1, 2), np.uint64))
    run.abandon(1)
    for user in (0, 1):
        with pytest.raises(WrongPhase, match=f"^user {user} has no training to abandon$"):
            run.abandon(user)


@pytest.mark.requirement("BSA-29")
def test_a_mask_that_its_owner_writes_over_is_kept() -> None:
    run, mask = CoreRun(TINY), np.zeros(3, np.uint64)
    for user in range(3):
        mask[:] = user
        run.start(user, mask, np.zeros((1, 2), np.uint64))
    for user in range(3):
        run.upload(user, np.ones(3, np.uint64))
    assert run.recover(range(5), np.zeros(3)).sum.tolist() == [9, 9, 9]


@pytest.mark.parametrize("length", [2, 4])
def test_vectors_of_another_length_are_refused(length: int) -> None:
    run = CoreRun(TINY)
    with pytest.raises(LengthMismatch):
        run.start(0, np.zeros(length, np.uint64), np.zeros((1, 2), np.uint64))
    run.start(0, np.zeros(3, np.uint64), np.zeros((1, 2), np.uint64))
    with pytest.raises(LengthMismatch):
        run.upload(0, np.zeros(length, np.uint64))


@pytest.mark.parametrize("user", [-1, 5, 1.0, "0"])
def test_a_user_outside_the_roster_is_refused(user: Any) -> None:
    with pytest.raises(ParameterError):
        CoreRun(TINY).start(user, np.zeros(3, np.uint64), np.zeros((1, 2), np.uint64))


@pytest.mark.requirement("ERR-02")
def test_rounds_and_users_that_are_none_are_refused_by_name() -> None:
    for round in (-1, 2**32, "0"):
        with pytest.raises(ParameterError, match=r"^round = "):
            CoreRun(TINY, round)  # type: ignore[arg-type]
    run = CoreRun(TINY)
    wrong: Any = [0]
    for act in (partial(run.upload, wrong, np.zeros(3, np.uint64)), partial(run.abandon, wrong)):
        with pytest.raises(ParameterError, match=r"^user = "):
            act()
