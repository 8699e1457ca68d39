"""Requests over the rounds of a HeteroSAg session, from a server that does not keep HSA-28.

There are only requests and answers here, no masks and no messages. In SecAgg, which hides each cell, a sum comes out
when t users answer for it, and nothing does before. So a letter is a round: the server asks some users for survivors,
honest users decide by their own checks and remember what they answered, and with t answers, those of colluders among
them, the sum of each cell is in view. Inputs stay the same over the session, which is the worst case.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.heterosag import check_cells, check_past
from secagg_spec.protocols.heterosag_plan import Cell, Parameters
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import PRIME
from tests.stories.view import View, consequences


class SessionPlay:
    """One story of a session; T users collude, and answer all that they are asked for.

    The input of a single honest user must not come out (section 8).
    """

    def __init__(self, parameters: Parameters, rules: Rules, random: Random) -> None:
        self.parameters = parameters
        self.users = range(parameters.N)
        self.colluders = frozenset(self.users[-parameters.T :])
        self.view = View(PRIME)
        segments = range(parameters.count)
        self.inputs = {(u, s): self.view.symbol((u, s), random.randrange(1000)) for u in self.users for s in segments}
        self.past: dict[int, list[frozenset[int]]] = {user: [] for user in self.users}
        self.favourites: list[tuple[int, ...]] = []

    def propose(self, random: Random) -> Letter:
        """Return a request; a story is about a few sets of survivors."""
        if not self.favourites:
            blocks = self._blocks(random)
            self.favourites = [self._survivors(blocks, random) for _ in range(random.choice((2, 3, 3, 4)))]
        told = random.choice(self.favourites)
        asked = random.choice((self._all, self._some, self._fresh))(told, random)
        return Letter("request", tuple(sorted(asked)), told=told)

    def _blocks(self, random: Random) -> list[tuple[int, ...]]:
        """Return the users of each subgroup in batches of T + 2, with those that are left over one by one."""
        size = self.parameters.T + 2
        found: list[tuple[int, ...]] = []
        for members in self.parameters.members:
            order = random.sample(members, len(members))
            whole = len(order) // size * size
            found += [tuple(order[at : at + size]) for at in range(0, whole, size)]
            found += [(user,) for user in order[whole:]]
        return found

    def _survivors(self, blocks: Sequence[tuple[int, ...]], random: Random) -> tuple[int, ...]:
        """Return survivors: mostly users come and go in batches of T + 2, and those left over alone."""
        least = self.parameters.enough
        if random.random() < 0.2:
            return tuple(sorted(random.sample(self.users, random.randint(least, self.parameters.N))))
        order, chosen = random.sample(blocks, len(blocks)), list[int]()
        share = random.choice((0.0, 0.0, 0.3, 1.0))
        for block in order:
            if len(chosen) < least or random.random() < share:
                chosen += block
        return tuple(sorted(chosen))

    def _all(self, told: Sequence[int], random: Random) -> Sequence[int]:
        return told

    def _some(self, told: Sequence[int], random: Random) -> Sequence[int]:
        return random.sample(told, min(len(told), self.parameters.t))

    def _fresh(self, told: Sequence[int], random: Random) -> Sequence[int]:
        """Return colluders, and then those who have answered the fewest requests."""
        order = random.sample(told, len(told))
        order.sort(key=lambda user: (user not in self.colluders, len(self.past[user])))
        return order[: self.parameters.t]

    def take(self, letter: Letter) -> bool:
        """Ask for survivors, and return whether anybody answered."""
        survivors = frozenset(letter.told)
        if len(survivors) < self.parameters.enough:
            return False
        answers = [user for user in letter.users if user in survivors and self._answers(user, survivors)]
        if len(answers) >= self.parameters.t:
            for cell in self.parameters.parts:
                self._seen(cell, survivors)
        return bool(set(answers) - self.colluders)

    def _answers(self, user: int, survivors: frozenset[int]) -> bool:
        """Return whether a user answers, by HSA-18 and HSA-27, whether or not the round then gets its sum."""
        if user in self.colluders:
            return True
        try:
            check_cells(self.parameters, survivors)
            check_past(self.parameters, survivors, self.past[user])
        except ProtocolError:
            return False
        if survivors not in self.past[user]:
            self.past[user].append(survivors)
        return True

    def _seen(self, cell: Cell, survivors: frozenset[int]) -> None:
        row = {self.inputs[user, cell.segment]: 1 for user in sorted(cell.members & survivors)}
        if row:
            self.view.saw(row, sum(self.view.values[symbol] for symbol in row))

    def leak(self) -> tuple[str, ...]:
        """Return the honest users whose input comes out, with the segment; nothing when none does."""
        known = {symbol for (user, _), symbol in self.inputs.items() if user in self.colluders}
        alone = ((u, s) for (u, s), symbol in self.inputs.items() if u not in self.colluders and self._out(symbol, known))
        return tuple(f"x_{user} in segment {segment}" for user, segment in alone)

    def _out(self, symbol: int, known: set[int]) -> bool:
        return bool(consequences(self.view.prime, self.view.rows, [symbol], known))
