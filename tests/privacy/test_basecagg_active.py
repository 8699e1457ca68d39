"""A server that names different buffers: what it gets in the semi-honest profile, and in the active one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import combinations, product
from typing import Any

import pytest

from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.privacy import basecagg as semi_honest
from secagg_spec.privacy import basecagg_active as active
from secagg_spec.privacy.basecagg import Buffer
from secagg_spec.privacy.basecagg_active import Buffers, Confirmations
from secagg_spec.privacy.lightsecagg import Users
from secagg_spec.protocols.basecagg.active import PRESETS, Parameters
from secagg_spec.protocols.basecagg.round import PRESETS as BASE
from secagg_spec.protocols.basecagg.round import Entry
from tests.quick import exhaustive

TINY = PRESETS["tiny"]
KINDS = semi_honest.every_column(BASE["tiny"])
ONE, OTHER = (semi_honest.announced(TINY, (0, 1, 2), (0, 1, 2), weights) for weights in ((3, 1, 1), (3, 2, 1)))
NEXT = Buffer(3, (Entry(1, 1, 1), Entry(2, 2, 2), Entry(3, 2, 1)))
"""A buffer of the round after `ONE`, with the same update of user 1, and a newer one of user 2."""


def weakened(p: Parameters, W: int) -> Parameters:
    """Parameters with a W that is refused."""
    weak = Parameters(**{entry.name: getattr(p, entry.name) for entry in fields(p)})
    object.__setattr__(weak, "W", W)
    return weak


def conflicts() -> Iterator[tuple[Buffer, Buffer]]:
    """Pairs of buffers that differ and hold the same update: in weights, in sets of users, or in rounds."""
    yield ONE, OTHER
    yield ONE, NEXT
    sets = [semi_honest.announced(TINY, users, (1, 1, 1), (1, 2, 1)) for users in combinations(range(TINY.N), 3)]
    yield from combinations(sets, 2)


def lies(pair: tuple[Buffer, Buffer]) -> Iterator[tuple[Users, dict[int, Buffers]]]:
    """Every colluder, with every way to tell each other user one of two buffers, or one after the other."""
    first, second = pair
    for colluder in range(TINY.N):
        honest = [user for user in range(TINY.N) if user != colluder]
        for received in product(((first,), (second,), (first, second)), repeat=len(honest)):
            yield (colluder,), dict(zip(honest, received, strict=True))


def with_both(users: Confirmations, pairs: Iterator[tuple[Buffer, Buffer]]) -> tuple[int, int]:
    """In how many lies there are answers to two buffers, and in how many to one."""
    both = one = 0
    for pair in pairs:
        for coalition, asked in lies(pair):
            answered = {buffer for buffers in users.released(coalition, asked).values() for buffer in buffers}
            both += len(answered) == 2
            one += len(answered) == 1
    return both, one


@pytest.mark.slow
@pytest.mark.requirement("BSA-37", "BSA-39", "BSA-43")
def test_no_lie_gets_answers_to_two_buffers_that_hold_the_same_update() -> None:
    both, one = with_both(Confirmations(TINY), (pair for pair in conflicts() if ONE in pair))
    assert both == 0
    assert one > 0


@pytest.mark.slow
@pytest.mark.requirement("BSA-37", "BSA-39", "BSA-43")
@exhaustive
def test_no_lie_with_any_two_sets_of_users_gets_answers_to_both() -> None:
    both, one = with_both(Confirmations(TINY), conflicts())
    assert both == 0
    assert one > 0


@pytest.mark.requirement("BSA-37")
def test_with_2W_equal_to_N_plus_T_the_attack_is_back() -> None:
    """(N, T, W) = (5, 1, 3): the colluder and two honest users sign each buffer."""
    asked = {1: (ONE,), 2: (ONE,), 3: (OTHER,), 4: (OTHER,)}
    released, verdicts = active.equivocation(KINDS, Confirmations(weakened(TINY, 3)), (0,), asked)
    assert released == asked
    assert verdicts[0].functionals == ("x(1)_1[0]", "x(1)_1[2]")
    released, verdicts = active.equivocation(KINDS, Confirmations(TINY), (0,), asked)
    assert released == {}
    assert all(verdict.private for verdict in verdicts)


@pytest.mark.requirement("BSA-43", "BSA-39")
def test_where_the_semi_honest_profile_leaks_the_active_one_does_not() -> None:
    """One colluder and two weightings: the 14 ways to tell both leak, and in the active profile none does."""
    users, leaks = Confirmations(TINY), 0
    for received in product(((ONE,), (OTHER,)), repeat=4):
        asked = dict(zip(range(1, 5), received, strict=True))
        leaks += any(not verdict.private for verdict in semi_honest.equivocation(KINDS, (0,), asked))
        _, verdicts = active.equivocation(KINDS, users, (0,), asked)
        assert all(verdict.private for verdict in verdicts)
    assert leaks == 14


@pytest.mark.requirement("BSA-39")
def test_a_user_signs_one_of_two_buffers_and_both_when_no_update_is_in_both() -> None:
    users = Confirmations(TINY)
    fresh = Buffer(3, tuple(Entry(user, 3, 3) for user in (0, 1, 3)))
    for user in range(TINY.N):
        assert users.signed(user, (ONE, OTHER)) == (ONE,)
        assert users.signed(user, (ONE, NEXT)) == (ONE,)
        assert users.signed(user, (ONE, fresh)) == (ONE, fresh)
    everyone = dict.fromkeys(range(TINY.N), (ONE, fresh))
    assert users.released((), everyone) == everyone


@pytest.mark.requirement("BSA-43", "BSA-44")
def test_signatures_on_another_buffer_and_repeated_ones_do_not_help() -> None:
    users = Confirmations(TINY)
    for signers, answers in (((0, 1, 2, 3), (ONE,)), ((0, 1, 2), ()), ((0, 1, 2, 2), ()), ((0, 1, 2, 2, 3), ())):
        assert users.heard(4, (ONE,), (signers,))[1] == answers
    mixed = Confirmations(TINY)
    mixed.signature = lambda user, buffer: users.signature(user, OTHER if user == 3 else buffer)  # type: ignore[assignment]
    assert mixed.heard(4, (ONE,), ((0, 1, 2, 3),))[1] == ()


def test_what_no_user_could_be_asked_is_refused() -> None:
    users = Confirmations(TINY)
    for asked in ({}, {0: (ONE,)}):
        with pytest.raises(ParameterError, match="asked"):
            active.equivocation(KINDS, users, (0,), asked)
    with pytest.raises(UnknownUser):
        active.equivocation(KINDS, users, (0,), {5: (ONE,)})
    assert users.released((), {1: (replace(ONE, entries=ONE.entries[:2]),)}) == {}


def test_a_quorum_names_its_signers_in_ascending_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """User 8 stands in a set of a few users before user 1, but not in a quorum."""
    users, shown = Confirmations(replace(TINY, N=17, W=10)), []

    def heard(user: int, received: Buffers, quorums: tuple[Users, ...]) -> tuple[Buffers, Buffers]:
        shown.append((user, quorums))
        return received, received

    monkeypatch.setattr(users, "heard", heard)
    monkeypatch.setattr(users, "_valid", lambda user, signed, buffer: True)
    monkeypatch.setattr(users, "signed", lambda user, received: received)
    assert users.released((8, 16), {1: (ONE,)}) == {1: (ONE,)}
    assert shown == [(1, ((1, 8, 16),))]


def test_buffers_are_announced_as_a_list_too() -> None:
    users = Confirmations(TINY)
    for buffers in ([ONE], [ONE, OTHER]):
        lists, tuples = dict.fromkeys((1, 2, 3), buffers), dict.fromkeys((1, 2, 3), tuple(buffers))
        found = active.equivocation(KINDS, users, (0,), lists)[0]
        assert found == active.equivocation(KINDS, users, (0,), tuples)[0]
    with pytest.raises(UnknownUser, match=r"^user = 99: must be a user in \[0, 5\)$"):
        users.signed(99, (ONE,))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda users: users.released((-1,), {1: (ONE,)}), r"coalition = -1: must be a user in \[0, 5\)"),
        (lambda users: users.released(("0",), {1: (ONE,)}), "coalition = 'str': must be an integer"),
        (lambda users: users.released((0,), {1: (ONE,), "zz": ()}), "asked = 'str': must be an integer"),
        (lambda users: users.released((0,), {1: (0,)}), "asked = 'int': must be of the class Buffer"),
        (lambda users: users.signed(1, (0,)), r"received\[0\] = 'int': must be of the class Buffer"),
        (
            lambda users: active.equivocation(
                semi_honest.every_column(replace(BASE["tiny"], d=4)), users, (0,), {1: (ONE,)}
            ),
            "kinds = 'columns of other parameters': must be columns of the parameters of the users",
        ),
    ],
)
def test_users_and_buffers_that_there_are_not_are_refused(call: Callable[[Any], object], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        call(Confirmations(TINY))
