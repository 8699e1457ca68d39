"""Compute bounds on the fewest users whose sum a lying server can get, and the lies that attain the bounds.

A server that deviates from the semi-honest profiles has three lies. It can announce different survivors to different
users. It can withhold shares; then a user shares masks with fewer users. And it can distribute keys of its own,
which no threshold stops. The bounds here are for the first lie, and for the first and second together. The users' keys
are honest, the graph is complete, and every honest user answers as the protocol says.

**What is learned.** Let H = N - c be the number of honest users, and D = t - c the number of honest answers needed to
recover a secret. A user's self mask can be removed when D honest users count it as a survivor, and its pairwise masks
when D honest users count it as dropped. So the server learns the sum over honest users X when D honest users count each
member of X as a survivor, and D count as dropped each other user that shares a mask with a member of X. Each honest
user counts at most N - t users as dropped, and never itself.

==================  =============================================================================
proof               decides
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
from secagg_spec.arithmetic.guard import guard
from secagg_spec.protocols.heterosag.plan import Parameters

Users = tuple[int, ...]


# ------------------------------------------------------------------------------------------------ one round


@dataclass(frozen=True)
class Lie:
    """A lie with which a server learns the sum over `isolated`: what it announces and which shares it withholds.

    `announced` gives, for each honest user, the survivors announced to it; the other users whose shares it holds are
    announced as dropped. `arrived` gives, for each honest user, the users whose shares the server relays to it.
    """

    isolated: Users
    announced: Mapping[int, Users]
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
        Whether the server also withholds shares; otherwise it only announces different survivors.

    Returns
    -------
    int
        The number of users; 1 means that a single input is revealed. It is at most t - c, the least number of honest
        users in a set that a user accepts.

    Raises
    ------
    ParameterError
        A number is outside its range, or `withheld` is no truth value.
    """
    N, t, c = _check(N, t, c)
    return next(size for size in range(1, N - c + 1) if _others(N, t, c, size, withheld) is not None)


def isolating(N: int, t: int, c: int, size: int, *, withheld: bool = False) -> Lie | None:
    """Return a lie with which a server gets the sum over `size` honest users, or None if there is none.

    The colluders are users 0 to c - 1, and the isolated users are the next `size`. The other arguments and the errors
    are those of `least_sum`. A lie is found in seconds for up to about 500 users; the time grows faster than N^2.
    """
    N, t, c = _check(N, t, c)
    size = validate.integer("size", size, 1, N - c)
    masked = _others(N, t, c, size, withheld)
    if masked is None:
        return None
    everyone, isolated, dropped = tuple(range(N)), range(c, c + size), range(c + size, c + size + masked)
    near = tuple(range(c + size + masked))
    arrived = {user: near if user in isolated else everyone for user in range(c, N)}
    room = {user: len(arrived[user]) - t for user in arrived}
    named = _assigned(dropped, room, t - c)
    announced = {user: tuple(other for other in arrived[user] if other not in named[user]) for user in arrived}
    return Lie(tuple(isolated), announced, arrived)


def _check(N: int, t: int, c: int, *, users: str = "N", colluders: str = "c") -> tuple[int, int, int]:
    """Return the three numbers as ``int``; errors name the first and the last as the caller does."""
    N = validate.integer(users, N, 2, 2**16)
    t = validate.integer("t", t, 2, N)
    return N, t, validate.integer(colluders, c, 0, t - 1)


def _others(N: int, t: int, c: int, size: int, withheld: bool) -> int | None:
    """Return how many other users share masks with the isolated users in some lie, or None if there is no lie."""
    most = N - c - size
    return next((n for n in (range(most + 1) if withheld else (most,)) if _enough(N, t, c, size, n)), None)


def _enough(N: int, t: int, c: int, size: int, masked: int) -> bool:
    """Return whether each of `masked` users can be counted as dropped by t - c honest users.

    The isolated users hold shares of each other, of the colluders and of these `masked` users; all other users hold all
    shares. A user holds at least t shares, and counts as dropped at most all but t of the users whose shares it holds.
    """
    needed, far, near = t - c, N - t, size + masked + c - t
    if near < 0:
        return False
    given = masked * min(far, masked - 1) + (N - c - size - masked) * min(far, masked) + size * min(near, masked)
    return masked == 0 or given >= needed * masked


def _assigned(dropped: Sequence[int], room: Mapping[int, int], needed: int) -> dict[int, set[int]]:
    """Assign to each user the users it counts as dropped: not itself, at most its room; each `needed` times."""
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
    """Return whether a lying server gets only sums over whole batches in a Multi-Round round of SecAgg with K users.

    The server announces different survivors, always unions of batches (MRA-21), and withholds shares.

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
    K, t, c = _check(K, t, c, users="K")
    return 3 * t >= 2 * K + c


# --------------------------------------------------------------------------------------------- many requests


def requests_needed(users: int, T: int) -> int:
    """Return a bound on the size of a minimal family of requests that breaks HSA-27 in a cell.

    Parameters
    ----------
    users : int
        Users of the cell, at least 1.
    T : int
        Colluders, at least 1.

    Returns
    -------
    int
        Every family of requests that breaks HSA-27 in the cell has a subfamily of at most this size that breaks it.

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    users, T = validate.integer("users", users, 1, 2**16), validate.integer("T", T, 1, 2**16)
    return 1 + (users - 1) // (T + 2)


def answered_by_one(N: int, T: int, t: int, requests: int) -> bool:
    """Return whether some honest user must answer all of `requests` requests, regardless of which users answer.

    Each request is answered by at least t users, T of which may collude.

    Parameters
    ----------
    N : int
        Users, at least 2.
    T : int
        Colluders, in [0, t).
    t : int
        Users that answer a request, in [2, N].
    requests : int
        The number of requests, at least 1.

    Raises
    ------
    ParameterError
        A number is outside its range.
    """
    N, t, T = _check(N, t, T, colluders="T")
    requests = validate.integer("requests", requests, 1, 2**32)
    return requests * (N - t) < N - T


def holds_session(parameters: Parameters) -> bool:
    """Return whether users alone keep a HeteroSAg server from breaking HSA-28 in a session of any length."""
    largest = max(len(cell.members) for cell in parameters.parts)
    needed = requests_needed(largest, parameters.T)
    return answered_by_one(parameters.N, parameters.T, parameters.t, needed)


guard(__name__)
