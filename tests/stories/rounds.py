"""What the protocols that go round by round have in common: parties, attempts, the letters, and the decision.

A user *begins* a round when it makes a state for it. All users that begin with one letter are one *attempt*; where the
rule of numbers is off there may be several attempts under one number. In the semi-honest profiles the server follows
the protocol within each attempt: it relays all shares of this attempt, and announces one set, of those whose inputs
came. In the active profiles it delivers to each user what it likes of all genuine messages that it ever saw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any, ClassVar, TypeAlias

import numpy as np

from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.begun import Begun
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.steps import Outbox, ProfileState, Step
from tests.stories.letters import Letter, Rules
from tests.stories.view import Row, View, beyond, words

SESSION = b"a story of times"
SESSIONS = 2
PRIME = 2**31 - 1
MOST_CHOICES = 256


@lru_cache(maxsize=4096)
def private_key(purpose: str, user: int, count: int) -> bytes:
    """Return 32 bytes that belong to a user; stories share them, so that what is derived of them is kept."""
    return hashlib.sha256(f"{purpose} {user} {count}".encode()).digest()


def place(number: int) -> tuple[bytes, int]:
    """Return the session and the round of an attempt by its number: sessions take turns, and share their numbers."""
    return SESSION[:-1] + bytes([number % SESSIONS]), number // SESSIONS


Sum: TypeAlias = tuple[tuple[int, int, int], ...]
"""A sum of inputs: users, which of its inputs each of them brought, and weights."""


@dataclass
class Attempt:
    """What the server did in an attempt.

    `models` says which of its inputs each user brought, and `plain` who follows the semi-honest profile where the
    others follow the active one. `sharers` and `announced` are what a server that follows the
    protocol relays and announces; `released` are the answers of honest users, by slot and by what they are sums of. Of
    each slot the text allows one sum; an attempt has one slot, or one for each round of a session.
    """

    number: int
    models: dict[int, int]
    plain: frozenset[int] = frozenset()
    keys: Any = None
    advertised: tuple[int, ...] | None = None
    sharers: tuple[int, ...] | None = None
    announced: tuple[int, ...] | None = None
    released: dict[int, dict[Sum, set[int]]] = field(default_factory=dict)
    answers: set[int] = field(default_factory=set)

    @property
    def place(self) -> tuple[bytes, int]:
        """The session and the round."""
        return place(self.number)


@dataclass(frozen=True)
class Standing:
    """Where a user stands: its state, the attempt that it is in, what it began, and which of its inputs it brought.

    `shadow` is the tests' own note, beside the state.
    """

    state: Any
    attempt: int
    begun: Begun
    model: int
    shadow: Mapping[Any, Any]


class RoundPlay:
    """One story of a protocol with rounds; the subclasses are the protocols."""

    phases: tuple[str, ...] = ()
    steps: ClassVar[Mapping[str, Step[Any]]] = {}
    honest_server = True
    told_in: tuple[str, ...] = ()
    """The phases in which a user is told a set."""

    def __init__(
        self, parameters: Any, rules: Rules, random: Random, *, prime: int, length: int, colluding: int | None = None
    ) -> None:
        self.parameters, self.rules, self.random = parameters, rules, random
        self.N: int = parameters.N
        self.colluders = frozenset(range(self.N - (parameters.T if colluding is None else colluding), self.N))
        self.honest = tuple(user for user in range(self.N) if user not in self.colluders)
        self.view = View(prime)
        self.length = length
        self.inputs: dict[tuple[int, int, int], int] = {}
        self.models = dict.fromkeys(range(self.N), -1)
        self.attempts: list[Attempt] = []
        self.standing: dict[int, Standing] = {user: Standing(None, -1, Begun(), 0, {}) for user in range(self.N)}
        self.past: dict[int, list[Standing]] = {user: [] for user in range(self.N)}
        self.messages: dict[tuple[type[Message], int], list[tuple[int, Message]]] = {}
        self.favourites: list[tuple[int, ...]] = []
        self.haste, self.drift = 1.0, 0.0

    def retrained(self, user: int) -> None:
        """Give a user another input."""
        self.models[user] += 1
        for at in range(self.length):
            name = (user, self.models[user], at)
            self.inputs[name] = self.view.symbol(("x", *name), self.random.randrange(1000))

    # ------------------------------------------------------------------------------------ what the protocols say

    def start(self, user: int, attempt: Attempt) -> Any:
        """Return the state of a user that begins an attempt."""
        raise NotImplementedError

    def base(self, state: Any) -> Any:
        """Return the state of the semi-honest profile that a state is, or holds."""
        return state.base if isinstance(state, ProfileState) else state

    def keys(self, users: Sequence[int]) -> Any:
        """Return the keys of an attempt that some users begin."""
        return None

    def inbox(self, user: int, at: Standing, letter: Letter) -> Sequence[Message] | None:
        """Return what the server delivers to a user for its next step; None when it has nothing to deliver."""
        raise NotImplementedError

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        """Let a user take its next step, take down what the adversary sees, and return state, messages and shadow."""
        raise NotImplementedError

    def known(self) -> set[int]:
        """Return the symbols that the adversary knows."""
        raise NotImplementedError

    def smallest(self) -> int:
        """Return the fewest members that an announced set may have."""
        raise NotImplementedError

    def enough(self) -> int:
        """Return how many answers end a round with a sum."""
        raise NotImplementedError

    def update(self, user: int, model: int | None = None) -> Any:
        """Return the input that a user brings: the newest, or one of those before."""
        which = self.models[user] if model is None else model
        values = [self.view.values[self.inputs[user, which, at]] for at in range(self.length)]
        return np.array(values, dtype=np.uint64)

    def tellable(self, at: Standing, members: Sequence[int]) -> bool:
        """Return whether a user holds what it needs to answer for a set."""
        return set(members) <= set(at.shadow)

    def can_go_on(self, at: Standing, user: int) -> bool:
        """Return whether enough messages of others came for the next step of a user."""
        return True

    def can_end(self, at: Standing) -> bool:
        """Return whether the adversary has what a user wants to see in its last step."""
        return True

    def phase(self, at: Standing) -> str:
        """Return the step that a user is ready for; ``done`` when there is none."""
        return "done" if at.state is None else at.state.phase

    def run(self, name: str, at: Standing, inbox: Sequence[Message], sampled: Mapping[str, Any]) -> tuple[Any, Outbox]:
        """Let a user take the step with a name, and return its state and messages."""
        return self.steps[name].take(at.state, inbox, randomness=sampled)

    # --------------------------------------------------------------------------------------------------- letters

    def propose(self, random: Random) -> Letter:
        """Return a letter that may come next."""
        if not self.favourites:
            self.drift = random.choice((0.0, 0.0, 0.5, 1.0))
            self.haste = 1.0 if self.phases[-1] in self.told_in else random.choice((1.0, 0.35, 0.35, 0.35))
            self.favourites = self._sets(random)
        going = [user for user in self.honest if self._able(self.standing[user], user)]
        drawn = random.random()
        if not going or drawn < 0.06:
            return self._begin(random)
        user = random.choice(self.honest)
        if self.past[user] and drawn < (0.08 if self.rules.stored else 0.18):
            return self._back(user, random)
        user = self._next(going, random)
        if self.phase(self.standing[user]) == self.phases[-1] and self._leaves(self.standing[user], random):
            return self._begin(random)
        return self._step(user, random)

    def _leaves(self, at: Standing, random: Random) -> bool:
        """Return whether the adversary gives an attempt up before anybody answers in it, with what was signed there."""
        return not self.attempts[at.attempt].answers and random.random() > self.haste

    def _next(self, going: Sequence[int], random: Random) -> int:
        """Return whose step comes next: mostly somebody who lags behind in the newest attempt."""
        if random.random() < 0.3:
            return random.choice(going)
        places = {u: (-self.standing[u].attempt, self.phases.index(self.phase(self.standing[u]))) for u in going}
        return random.choice([user for user in going if places[user] == min(places.values())])

    def _able(self, at: Standing, user: int) -> bool:
        """Return whether the next step of a user is worth a letter."""
        phase = self.phase(at)
        if phase in self.told_in and not self.honest_server:
            return bool(self._likely(at, user))
        if phase == self.phases[-1]:
            return self.can_end(at)
        return phase != "done" and self.can_go_on(at, user)

    def _likely(self, at: Standing, user: int) -> list[tuple[int, ...]]:
        """Return the sets that a user might take."""
        return [one for one in self.favourites if user in one and self.tellable(at, one)]

    def _sets(self, random: Random) -> list[tuple[int, ...]]:
        """Return the sets that a story is about; in half of the stories they differ in one user each."""
        count, least = random.choice((2, 2, 3, 3, 4)), self.smallest()
        if random.random() < 0.5:
            sizes = [random.randint(least, self.N) for _ in range(count)]
            return [tuple(sorted(random.sample(range(self.N), size))) for size in sizes]
        order = [*sorted(self.colluders), *random.sample(self.honest, len(self.honest))]
        core, others = order[: least - 1], order[least - 1 :]
        return [tuple(sorted([*core, others[at % len(others)]])) for at in range(max(count, 3))]

    def _begin(self, random: Random) -> Letter:
        last = self.attempts[-1].number if self.attempts else 0
        later = random.random() < (0.85 if self.rules.numbers else 0.08)
        everyone = random.random() < 0.85
        users = tuple(user for user in range(self.N) if everyone or random.random() < 0.75)
        number = last + later if self.attempts else 0
        return Letter("begin", users, number, fresh=bool(self.attempts) and random.random() < self.drift)

    def _back(self, user: int, random: Random) -> Letter:
        if self.rules.stored:
            return Letter("restored", (user,), 0)
        return Letter("restored", (user,), 1 + min(random.randrange(6), random.randrange(6)))

    def _step(self, user: int, random: Random) -> Letter:
        where = self.standing[user]
        phase = self.phase(where)
        together = [
            other
            for other in range(self.N)
            if self.standing[other].attempt == where.attempt and self.phase(self.standing[other]) == phase
        ]
        telling = phase in self.told_in and not self.honest_server
        if random.random() < (0.75 if telling else 0.4):
            share = random.choice((0.1, 0.1, 0.4) if telling else (0.3, 0.6, 0.85))
            together = [other for other in together if random.random() < share] or [user]
        received: tuple[int, ...] = ()
        without: tuple[int, ...] = ()
        age = 0
        if not self.honest_server:
            if telling:
                received = random.choice(self._likely(where, user) or self.favourites)
            if random.random() < 0.08:
                without = (random.randrange(self.N),)
            age = int(random.random() < 0.06)
        return Letter("step", tuple(together), 0, received, without, age)

    def take(self, letter: Letter) -> bool:
        """Play a letter, and return whether anything happened."""
        if letter.kind == "begin":
            return self._begun(letter)
        acts = {"step": self._stepped, "restored": self._restored}
        return sum([acts[letter.kind](user, letter) for user in letter.users]) > 0

    def _begun(self, letter: Letter) -> bool:
        memory: dict[int, Begun] = {}
        for user in letter.users:
            try:
                memory[user] = self._remembered(self.standing[user].begun, letter.number)
            except ParameterError:
                continue
        if not set(memory) & set(self.honest):
            return False
        for user in memory:
            if letter.fresh or self.models[user] < 0:
                self.retrained(user)
        models = {user: self.models[user] for user in memory}
        attempt = Attempt(letter.number, models, frozenset(letter.without) & set(memory))
        attempt.keys = self.keys(tuple(memory))
        self.attempts.append(attempt)
        for user, begun in memory.items():
            self._keep(user)
            state = self.start(user, attempt)
            self.standing[user] = Standing(state, len(self.attempts) - 1, begun, self.models[user], {})
        return True

    def _remembered(self, begun: Begun, number: int) -> Begun:
        if not self.rules.numbers:
            return begun
        session, round = place(number)
        return begun.go_on(session, round) if session in begun.last else begun.begin(session, round)

    def _stepped(self, user: int, letter: Letter) -> bool:
        at = self.standing[user]
        if self.phase(at) == "done":
            return False
        inbox = self.inbox(user, at, letter)
        if inbox is None:
            return False
        before = self.copied(at)
        try:
            state, outbox, shadow = self.step(user, at, inbox)
        except (ProtocolError, ParameterError):
            return False
        self.past[user].append(before)
        self.standing[user] = replace(at, state=state, shadow=shadow)
        for message in outbox:
            self.messages.setdefault((type(message), message.sender), []).append((at.attempt, message))
        return True

    def _restored(self, user: int, letter: Letter) -> bool:
        at = self.standing[user]
        if self.rules.stored:
            # What it stored last is that it began this round; it takes no further part in it.
            if at.state is None:
                return False
            self.standing[user] = replace(at, state=None, shadow={})
            return True
        older = [one for one in self.past[user] if not self.rules.back_to or self.phase(one) in self.rules.back_to]
        if not older:
            return False
        self.standing[user] = self.copied(older[-1 - (letter.number - 1) % len(older)])
        return True

    def _keep(self, user: int) -> None:
        if self.standing[user].state is not None:
            self.past[user].append(self.copied(self.standing[user]))

    def copied(self, at: Standing) -> Standing:
        """Return a standing of which nothing changes when a step is taken on the other one."""
        return at

    # -------------------------------------------------------------------------------------------- what is decided

    def leak(self) -> tuple[str, ...]:
        """Return what the adversary knows beyond the text, the plainest first; empty when there is nothing."""
        prime, known = self.view.prime, self.known()
        inputs = [symbol for symbol in self.inputs.values() if symbol not in known]
        learned = self.view.learned(inputs, known)
        if not learned:
            return ()
        outside: list[Row] = []
        for choice in product(*self._choices()):
            allowed = [{at: weight for at, weight in row.items() if at not in known} for row in self._allowed(choice)]
            outside = beyond(prime, learned, allowed)
            if not outside:
                return ()
        names = {symbol: self._name(*name) for name, symbol in self.inputs.items()}
        return tuple(words(prime, row, names) for row in outside)

    def _name(self, user: int, model: int, at: int) -> str:
        """Return an input in words: a prime for each time that the user changed it."""
        return f"x{chr(39) * model}_{user}[{at}]" if self.length > 1 else f"x{chr(39) * model}_{user}"

    def _choices(self) -> list[list[Sum]]:
        """Return, for each attempt that announced something, the sums that the text allows, of which it allows one."""
        options: list[list[Sum]] = []
        left = MOST_CHOICES
        for attempt in self.attempts:
            slots = [list(answers) for answers in attempt.released.values()]
            if self.honest_server:
                announced = attempt.announced if attempt.announced and self._counts(attempt) else ()
                slots = [[tuple((user, attempt.models[user], 1) for user in announced)]] if announced else []
            for sums in slots:
                taken = sums if len(sums) <= left else sums[:1]
                left //= len(taken)
                options.append(taken)
        return options

    def _counts(self, attempt: Attempt) -> bool:
        return self.rules.failed or len(attempt.answers) >= self.enough()

    def _allowed(self, chosen: Sequence[Sum]) -> list[Row]:
        return [
            {self.inputs[user, model, at]: weight for user, model, weight in total}
            for total in set(chosen)
            for at in range(self.length)
        ]

    def released(self, at: Standing, user: int, total: Sum, slot: int = 0) -> None:
        """Take down that a user answered for a sum."""
        attempt = self.attempts[at.attempt]
        attempt.answers.add(user)
        if user not in self.colluders:
            attempt.released.setdefault(slot, {}).setdefault(total, set()).add(user)

    # -------------------------------------------------------------------------------------------- genuine messages

    def sent(
        self, kind: type[Message], sender: int, receiver: int | None, attempt: int | None, age: int
    ) -> Message | None:
        """Return a message of a sender: the newest but `age`, of one attempt or of all."""
        passed = age
        for made, message in reversed(self.messages.get((kind, sender), ())):
            if receiver in (None, message.receiver) and attempt in (None, made):
                if not passed:
                    return message
                passed -= 1
        return None

    def first(self, kind: type[Message], sender: int, receiver: int | None, attempt: int) -> Message | None:
        """Return the first message of a sender in an attempt, which is the one that a server takes."""
        for made, message in self.messages.get((kind, sender), ()):
            if made == attempt and receiver in (None, message.receiver):
                return message
        return None
