"""A server that lies about the surviving set: what it gets in the semi-honest profile, and in the active one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import combinations, product
from typing import Any

import pytest

from secagg_spec.errors import ParameterError, UnknownUser
from secagg_spec.privacy import lightsecagg as semi_honest
from secagg_spec.privacy import lightsecagg_active as active
from secagg_spec.privacy.lightsecagg import Users
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.active import PRESETS, Parameters

TINY = PRESETS["tiny"]
SIX = Parameters(q=7, N=6, D=1, U=5, T=1, d=4, W=4)
ALL_SIX, WITHOUT_1 = tuple(range(6)), (0, 2, 3, 4, 5)


def base(p: Parameters) -> lightsecagg.Parameters:
    """The same numbers in the semi-honest profile."""
    return lightsecagg.Parameters(**{name: value for name, value in asdict(p).items() if name != "W"})


def weakened(p: Parameters, W: int) -> Parameters:
    """Parameters with a W that is refused."""
    weak = Parameters(**asdict(p))
    object.__setattr__(weak, "W", W)
    return weak


def lies(p: Parameters) -> Iterator[tuple[Users, dict[int, Users]]]:
    """Every coalition of T users with every way to tell the others two sets of T + 2 or more."""
    sets = [chosen for size in range(p.T + 2, p.N + 1) for chosen in combinations(range(p.N), size)]
    for pair in combinations(sets, 2):
        for coalition in combinations(range(p.N), p.T):
            honest = [user for user in range(p.N) if user not in coalition]
            for received in product(pair, repeat=len(honest)):
                yield coalition, dict(zip(honest, received, strict=True))


@pytest.mark.requirement("LSA-19", "LSA-26", "LSA-22")
def test_the_attack_on_the_semi_honest_profile_gets_nothing_from_the_active_one() -> None:
    """(N, U, T) = (6, 5, 1): one of four dimensions of the input of user 1, or none."""
    asked = dict.fromkeys((1, 2, 3, 4), ALL_SIX) | {5: WITHOUT_1}
    [attacked] = semi_honest.equivocation(base(SIX), (0,), asked)
    assert attacked.dimension == 1
    released, [verdict] = active.equivocation(SIX, (0,), asked)
    assert released == dict.fromkeys((1, 2, 3, 4), ALL_SIX)
    assert verdict.private


@pytest.mark.slow
@pytest.mark.requirement("LSA-19", "LSA-26", "LSA-22", "LSA-28")
@pytest.mark.parametrize("p", [TINY, SIX], ids=["tiny", "six"])
def test_no_lie_gets_shares_for_two_sets(p: Parameters) -> None:
    users, several, single = Confirmations(p), 0, 0
    for coalition, asked in lies(p):
        sets = set(users.released(coalition, asked).values())
        several += len(sets) > 1
        single += len(sets) == 1
    assert several == 0
    assert single > 0


@pytest.mark.slow
@pytest.mark.requirement("LSA-26")
def test_where_the_semi_honest_profile_leaks_at_tiny_the_active_one_does_not() -> None:
    """One colluder and two sets: each of the 14 ways to tell both leaks, and in the active profile none does."""
    users, leaks, pair = Confirmations(TINY), 0, {(0, 1, 2, 3, 4), (0, 1, 3, 4)}
    for coalition, asked in lies(TINY):
        if coalition == (0,) and set(asked.values()) == pair:
            leaks += any(not verdict.private for verdict in semi_honest.equivocation(base(TINY), coalition, asked))
            released = users.released(coalition, asked)
            verdicts = semi_honest.equivocation(base(TINY), coalition, released) if released else ()
            assert all(verdict.private for verdict in verdicts)
    assert leaks == 14


@pytest.mark.requirement("LSA-19")
def test_with_2W_equal_to_N_plus_T_the_attack_is_back() -> None:
    """(N, T, W) = (5, 1, 3): the colluder and two honest users sign each set."""
    asked = {1: (0, 1, 2, 3, 4), 2: (0, 1, 2, 3, 4), 3: (0, 1, 3, 4), 4: (0, 1, 3, 4)}
    released, verdicts = active.equivocation(weakened(TINY, 3), (0,), asked)
    assert released == asked
    assert any(not verdict.private for verdict in verdicts)
    released, verdicts = active.equivocation(TINY, (0,), asked)
    assert released == {}
    assert all(verdict.private for verdict in verdicts)


@pytest.mark.requirement("LSA-26", "LSA-28")
def test_signatures_on_other_sets_and_repeated_ones_do_not_help() -> None:
    users = Confirmations(SIX)
    for user, received in ((5, WITHOUT_1), (1, ALL_SIX)):
        assert users.answers(user, received, received)
        assert not users.answers(user, received, (0, 5))
        assert not users.answers(user, received, (0, 5, 0, 5))


@pytest.mark.requirement("LSA-20", "LSA-09")
def test_a_user_that_refuses_the_set_neither_signs_nor_answers() -> None:
    users = Confirmations(SIX)
    assert users.released((0,), {1: WITHOUT_1, 2: WITHOUT_1, 3: WITHOUT_1, 4: WITHOUT_1}) == dict.fromkeys(
        (2, 3, 4), WITHOUT_1
    )
    assert users.released((0,), {1: (0, 1), 2: (0, 1)}) == {}


def test_what_no_user_could_be_asked_is_refused() -> None:
    for asked in ({}, {0: ALL_SIX}):
        with pytest.raises(ParameterError, match="asked"):
            active.equivocation(SIX, (0,), asked)
    with pytest.raises(UnknownUser):
        active.equivocation(SIX, (0,), {6: ALL_SIX})


def test_a_quorum_names_its_signers_in_ascending_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """User 8 stands in a set of a few users before user 1, but not in a quorum."""
    users, shown = Confirmations(replace(TINY, q=29, N=25, W=14)), []

    def answers(user: int, chosen: Users, signers: Users) -> bool:
        shown.append((user, signers))
        return True

    monkeypatch.setattr(users, "answers", answers)
    monkeypatch.setattr(users, "confirmed", lambda user, chosen: True)
    chosen = (0, 1, 8, 16)
    assert users.released((8, 16, 24), {1: chosen}) == {1: chosen}
    assert shown == [(1, (1, 8, 16))]


@pytest.mark.parametrize(
    ("coalition", "asked", "said"),
    [
        ((6,), {1: ALL_SIX}, r"coalition = 6: must be a user in \[0, 6\)"),
        (("0",), {1: ALL_SIX}, "coalition = 'str': must be an integer"),
        ((0,), {1: ALL_SIX, "zz": 1}, "asked = 'str': must be an integer"),
        ((0,), {1: 1}, "asked = 'int': must be a list, set or other collection of users"),
        ((0,), {1: (*ALL_SIX[:5], "5")}, "asked = 'str': must be an integer"),
    ],
)
def test_users_and_sets_that_there_are_not_are_refused(coalition: Any, asked: Any, said: str) -> None:
    for call in (
        Confirmations(SIX).released,
        partial(active.equivocation, SIX),
        partial(semi_honest.equivocation, SIX),
    ):
        with pytest.raises(ParameterError, match=f"^{said}"):
            call(coalition, asked)


def test_sets_are_announced_as_lists_too() -> None:
    asked = {user: [*ALL_SIX] for user in range(1, 6)}
    assert Confirmations(SIX).released((0,), asked) == dict.fromkeys(asked, ALL_SIX)


def test_inputs_that_do_not_fit_the_memory_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"^d = 2147483648: must be at most 2\^24 / N = 2796202: "):
        Confirmations(replace(SIX, d=2**31))
