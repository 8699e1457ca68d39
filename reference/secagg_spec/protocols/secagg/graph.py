"""The graph of neighbours: the Harary graph of degree k on an order of the users.

Source: spec/secagg.md, section 3 (SAG-03, SAG-04).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.crypto.entropy import Source, draw_elements
from secagg_spec.errors import ParameterError


@dataclass(frozen=True)
class Graph(validate.Plain):
    """The graph of neighbours.

    Parameters
    ----------
    order : tuple of int
        The users in their order on the circle, a permutation of 0 to N - 1.
    k : int
        The number of neighbours of each user: N - 1, or at least 2 with k*N even.

    Raises
    ------
    ParameterError
        They break SAG-01 or SAG-04.
    """

    order: tuple[int, ...]
    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        users = validate.user_numbers("order", self.order)
        if len(users) < 2:
            raise ParameterError("order", list(users), "that of two users or more")
        if sorted(users) != list(range(len(users))):
            raise ParameterError("order", list(users), f"a permutation of 0 to N - 1 = {len(users) - 1}")
        check_degree(len(users), self.k)

    @cached_property
    def _place(self) -> dict[int, int]:
        return {user: place for place, user in enumerate(self.order)}

    def neighbours(self, user: int) -> frozenset[int]:
        """Return the neighbours of a user, k of them (SAG-03).

        Raises
        ------
        UnknownUser
            The user is not on the roster.
        """
        N, near = len(self.order), self.k // 2
        validate.users("user", (user,), N)
        if self.k == N - 1:
            return frozenset(self.order) - {user}
        place = self._place[user]
        others = self.order[place + 1 :] + self.order[:place]
        opposite = others[N // 2 - 1 : N // 2] if self.k & 1 else ()
        return frozenset(others[:near] + others[-near:] + opposite)

    def holders(self, user: int) -> frozenset[int]:
        """Return the holders of a user's secrets: the user itself and its neighbours."""
        return self.neighbours(user) | {user}

    def core(self, users: Collection[int], least: int) -> tuple[int, ...]:
        """Return the largest set of `users` in which each member has at least `least` holders, ascending.

        Raises
        ------
        ParameterError
            The users are no collection of distinct users of the roster, or `least` is below 0.
        """
        kept, least = set(validate.user_set("users", users, len(self.order))), validate.integer("least", least, 0)
        while few := {user for user in kept if len(self.holders(user) & kept) < least}:
            kept -= few
        return tuple(sorted(kept))


def check_degree(N: int, k: int, most: int = validate.MAX_COUNT) -> int:
    """Return k if a Harary graph of degree k on N users exists (SAG-01), and k is at most `most`.

    Raises
    ------
    ParameterError
        k is neither N - 1 nor a number from 2 to N - 2 with k*N even, or above `most`; N is no count of users, or
        `most` is below 2.
    """
    N, k = validate.integer("N", N, 2, validate.MAX_COUNT), validate.plain(k)
    most = validate.integer("most", most, 2)
    if type(k) is not int or k > most or (k != N - 1 and not (2 <= k < N - 1 and not k & N & 1)):
        last = min(N - 2, most)
        all_others = [f"N - 1 = {N - 1}"] if most >= N - 1 else []
        fewer = [f"{'even and ' * (N & 1)}in [2, {last - (last & N & 1)}]"] if N > 3 else []
        raise ParameterError("k", k, ", or ".join(all_others + fewer))
    return k


def draw_order(source: Source, N: int) -> tuple[int, ...]:
    """Draw a uniformly random order of N users, of which there are at most 2^32 - 1.

    Each takes 50 bytes and some 30 microseconds.
    """
    N = validate.integer("N", N, 0, validate.MAX_COUNT)
    users = list(range(N))
    for last in range(N - 1, 0, -1):
        chosen = int(draw_elements(source, Ring(last + 1), (1,))[0])
        users[last], users[chosen] = users[chosen], users[last]
    return tuple(users)


guard(__name__)
