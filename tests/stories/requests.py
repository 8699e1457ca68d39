"""Requests over the rounds of a HeteroSAg session, from a server that does not keep HSA-28.

There are only requests and answers here, no masks and no messages. In SecAgg, which hides each cell, a sum comes out
when t users answer for it, and nothing does before. So a letter is a round: the server asks some users for survivors,
honest users decide by their own checks and remember what they answered, and with t answers, those of colluders among
them, the sum of each cell is in view. Inputs stay the same over the session, which is the worst case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from random import Random

from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.heterosag.plan import Cell, Parameters
from secagg_spec.protocols.heterosag.round import check_cells, check_past
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import PRIME
from tests.stories.view import Row, View, consequences


class SessionPlay:
    """One story of sessions one after the other; T users collude, and answer all that they are asked for.

    The input of a single honest user must not come out (section 8).
    """

    def __init__(self, parameters: Parameters, rules: Rules, random: Random) -> None:
        self.parameters = parameters
        self.users = range(parameters.N)
        self.colluders = frozenset(self.users[-parameters.T :])
        self.random = random
        self.number = 0
        self.view = View(PRIME)
        self.past: dict[int, list[frozenset[int]]] = {}
        self.inputs: dict[tuple[int, int], int] = {}
        self.where: dict[int, tuple[int, int]] = {}
        self.favourites: list[tuple[int, ...]] = []
        self._begin()

    def _begin(self) -> None:
        """Begin a session: users look back on nothing, and have other inputs."""
        self.number += 1
        self.past = {user: [] for user in self.users}
        for user, segment in product(self.users, range(self.parameters.count)):
            name = (self.number, user, segment)
            self.inputs[user, segment] = symbol = self.view.symbol(name, self.random.randrange(1000))
            self.where[symbol] = (self.number, segment)

    def propose(self, random: Random) -> Letter:
        """Return a request, or a session that is begun; a session is about a few sets of survivors."""
        if not self.favourites or random.random() < 0.15:
            blocks = self._blocks(random)
            self.favourites = [self._survivors(blocks, random) for _ in range(random.choice((2, 3, 3, 3)))]
            return Letter("begin", tuple(self.users), self.number)
        received = random.choice(self.favourites)
        asked = random.choice((self._all, self._some, self._fresh))(received, random)
        return Letter("request", tuple(sorted(asked)), received=received)

    def _blocks(self, random: Random) -> list[tuple[int, ...]]:
        """Return the users of each subgroup in batches of T + 2; those left over are in the last one, or alone."""
        size = self.parameters.T + 2
        found: list[tuple[int, ...]] = []
        for members in self.parameters.members:
            order = random.sample(members, len(members))
            whole = len(order) // size * size
            starts = range(0, whole, size)
            alone = random.random() < 0.5
            found += [tuple(order[at : at + size if alone or at != starts[-1] else None]) for at in starts]
            found += [(user,) for user in order[whole:] if alone]
        return found

    def _survivors(self, blocks: Sequence[tuple[int, ...]], random: Random) -> tuple[int, ...]:
        """Return survivors: mostly batches that come and go together."""
        least = self.parameters.enough
        if random.random() < 0.1:
            return tuple(sorted(random.sample(self.users, random.randint(least, self.parameters.N))))
        order, chosen = random.sample(blocks, len(blocks)), list[int]()
        share = random.choice((0.0, 0.0, 0.0, 0.3, 1.0, 1.0))
        if random.random() < 0.6:
            order.sort(key=lambda block: len(block) == 1)
        for block in order:
            if len(chosen) < least or random.random() < share:
                chosen += block
        return tuple(sorted(chosen))

    def _all(self, received: Sequence[int], random: Random) -> Sequence[int]:
        return received

    def _some(self, received: Sequence[int], random: Random) -> Sequence[int]:
        return random.sample(received, min(len(received), self.parameters.t))

    def _fresh(self, received: Sequence[int], random: Random) -> Sequence[int]:
        """Return colluders, and then those who have answered the fewest requests."""
        order = random.sample(received, len(received))
        order.sort(key=lambda user: (user not in self.colluders, len(self.past[user])))
        return order[: self.parameters.t]

    def take(self, letter: Letter) -> bool:
        """Ask for survivors, and return whether anybody answered."""
        if letter.kind == "begin":
            self._begin()
            return True
        survivors = frozenset(letter.received)
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
        named = [(name, symbol) for name, symbol in self.view.names() if isinstance(name, tuple)]
        known = {symbol for (_, user, _), symbol in named if user in self.colluders}
        seen = {symbol for row in self.view.rows for symbol in row} - known
        alone = (name for name, symbol in named if symbol in seen and self._out(symbol, known))
        return tuple(f"x_{user} of session {number} in segment {segment}" for number, user, segment in alone)

    def _out(self, symbol: int, known: set[int]) -> bool:
        return bool(consequences(self.view.prime, self._about(symbol), [symbol], known))

    def _about(self, symbol: int) -> list[Row]:
        """Return the rows of the session and segment of an input."""
        return [row for row in self.view.rows if self.where[symbol] == self.where[next(iter(row))]]
