"""How few users a sum can be over that a lying server gets: bounds, and the lies that attain them.

A server of the semi-honest profiles that does not follow the protocol has three lies. It can name different survivors
to different users. It can withhold shares, so that a user masks its input with fewer users. And it can give out keys of
its own, which no threshold stops. The bounds here are for the first lie, and for the first and the second together. The
users' keys are honest, the graph is complete, and every honest user answers as the protocol says.

**What is learned.** Let D = t - c be the answers of honest users that recover a secret, H = N - c the honest users. A
user's self mask goes when D honest users name it a survivor, its pairwise masks when D name it dropped. So a sum over
the honest users X comes out when D of them name each of X a survivor, and D name each other user dropped with whom one
of X shares a mask. Each honest user names at most N - t users dropped, and never itself.

==================  =============================================================================
proof               what it decides about
==================  =============================================================================
lying_server        `least_sum`, `isolating`
lying_batches       `keeps_batches`
requests_together   `requests_needed`, `answered_by_one`, `holds_session`
==================  =============================================================================

Source: spec/secagg.md, section 10; spec/heterosag.md, section 8; spec/multi-round.md, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from secagg_spec.arithmetic import validate
from secagg_spec.protocols.heterosag.plan import Parameters

Users = tuple[int, ...]


# ------------------------------------------------------------------------------------------------ one round


@dataclass(frozen=True)
class Lie:
    """What a server says and withholds so that the sum over `isolated` comes out.

    `told` names the survivors for each honest user; the others whose shares it holds are named as dropped. `arrived`
    names, for each honest user, the users whose shares the server relays to it.
    """

    isolated: Users
    told: Mapping[int, Users]
    arrived: Mapping[int, Users]


def least_sum(N: int, t: int, c: int, *, withheld: bool = False) -> int:
    """Return the fewest honest users whose sum a lying server with c colluders can get in SecAgg.

    Parameters
    ----------
    N : int
        Users of the round, at least 2, on the complete graph.
    t : int
        Shares needed to recover a secret, in [2, N].
    c : int
        Colluders, in [0, t).
    withheld : bool
        Whether the server also withholds shares; else it only names different survivors.

    Returns
    -------
    int
        1 means that a single input comes out. It is at most t - c, the honest users of a set that a user accepts.

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    _check(N, t, c)
    return next(size for size in range(1, N - c + 1) if _others(N, t, c, size, withheld) is not None)


def isolating(N: int, t: int, c: int, size: int, *, withheld: bool = False) -> Lie | None:
    """Return a lie that gets the sum over `size` honest users, or None when there is none.

    The colluders are users 0 to c - 1, and the isolated users are the next ones. The other arguments are those of
    `least_sum`, and so are the errors.
    """
    _check(N, t, c)
    validate.integer("size", size, 1, N - c)
    masked = _others(N, t, c, size, withheld)
    if masked is None:
        return None
    everyone, isolated, dropped = tuple(range(N)), range(c, c + size), range(c + size, c + size + masked)
    near = tuple(range(c + size + masked))
    arrived = {user: near if user in isolated else everyone for user in range(c, N)}
    room = {user: len(arrived[user]) - t for user in arrived}
    named = _assigned(dropped, room, t - c)
    told = {user: tuple(other for other in arrived[user] if other not in named[user]) for user in arrived}
    return Lie(tuple(isolated), told, arrived)


def _check(N: int, t: int, c: int) -> None:
    validate.integer("N", N, 2, 2**16)
    validate.integer("t", t, 2, N)
    validate.integer("c", c, 0, t - 1)


def _others(N: int, t: int, c: int, size: int, withheld: bool) -> int | None:
    """Return how many other users share masks with those that are isolated, in some lie; None when there is no lie."""
    most = N - c - size
    return next((n for n in (range(most + 1) if withheld else (most,)) if _enough(N, t, c, size, n)), None)


def _enough(N: int, t: int, c: int, size: int, masked: int) -> bool:
    """Return whether honest users can name each of `masked` users dropped t - c times.

    The isolated users hold shares of each other, of the colluders and of these `masked` users; all others hold all
    shares. A user holds at least t shares, and names all but t of them dropped at most.
    """
    needed, far, near = t - c, N - t, size + masked + c - t
    if near < 0:
        return False
    given = masked * min(far, masked - 1) + (N - c - size - masked) * min(far, masked) + size * min(near, masked)
    return masked == 0 or given >= needed * masked


def _assigned(dropped: Sequence[int], room: Mapping[int, int], needed: int) -> dict[int, set[int]]:
    """Return whom each user names dropped: each of `dropped` `needed` times, nobody itself, within each one's room."""
    named: dict[int, set[int]] = {user: set() for user in room}

    def place(target: int, seen: set[int]) -> bool:
        for user in sorted(room, key=lambda user: len(named[user]) - room[user]):
            if user == target or target in named[user] or user in seen:
                continue
            seen.add(user)
            if len(named[user]) < room[user]:
                named[user].add(target)
                return True
            for other in tuple(named[user]):
                if place(other, seen):
                    named[user].remove(other)
                    named[user].add(target)
                    return True
        return False

    for target in dropped:
        for _ in range(needed):
            found = place(target, set())
            assert found, "the count says that there is room"
    return named


# ------------------------------------------------------------------------------------------- rounds of batches


def keeps_batches(K: int, t: int, c: int) -> bool:
    """Return whether a lying server gets sums over whole batches only, from K users of a Multi-Round round of SecAgg.

    The server names different survivors, all of them unions of batches (MRA-21), and withholds shares.

    Parameters
    ----------
    K : int
        Users of the round, at least 2.
    t : int
        Shares needed to recover a secret, in [2, K].
    c : int
        Colluders, in [0, t).

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    _check(K, t, c)
    return 3 * t >= 2 * K + c


# --------------------------------------------------------------------------------------------- many requests


def requests_needed(users: int, T: int) -> int:
    """Return how many requests a smallest family can need to break HSA-27 in a cell.

    Parameters
    ----------
    users : int
        Users of the cell, at least 1.
    T : int
        Colluders, at least 1.

    Returns
    -------
    int
        A family of requests that breaks HSA-27 in the cell has a part of at most so many requests that breaks it.

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    validate.integer("users", users, 1, 2**16)
    validate.integer("T", T, 1, 2**16)
    return 1 + (users - 1) // (T + 2)


def answered_by_one(N: int, T: int, t: int, requests: int) -> bool:
    """Return whether some honest user answers all of so many requests, whoever answers.

    Each request is answered by t users at least, T of whom may collude.

    Parameters
    ----------
    N : int
        Users, at least 2.
    T : int
        Colluders, in [0, t).
    t : int
        Users who answer a request, in [2, N].
    requests : int
        At least 1.

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    _check(N, t, T)
    validate.integer("requests", requests, 1, 2**32)
    return requests * (N - t) < N - T


def holds_session(parameters: Parameters) -> bool:
    """Return whether users alone stop a HeteroSAg server from going back on HSA-28, however long the session is."""
    largest = max(len(cell.members) for cell in parameters.parts)
    needed = requests_needed(largest, parameters.T)
    return answered_by_one(parameters.N, parameters.T, parameters.t, needed)
