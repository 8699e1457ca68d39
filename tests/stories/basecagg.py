"""BASecAgg in stories: users take stamps, share masks under them, and answer for buffers that the adversary makes up.

An attempt is a session that is begun; all users have their session under one id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import numpy as np

from secagg_spec.arithmetic.staleness import admissible_weights
from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.sealing import SealedStampedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.agreement import Ballot
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg.active import BufferQuorum, SignedBuffer
from secagg_spec.protocols.basecagg.round import (
    BufferedSet,
    ModelRequest,
    ModelStamp,
    StampedShare,
    StampedUpdate,
    WeightedShare,
)
from secagg_spec.protocols.lightsecagg.active import PrivateKeys, PublicKeys
from secagg_spec.protocols.steps import SERVER, Role, Step
from tests.stories.ballots import quorum
from tests.stories.letters import Letter, Rules
from tests.stories.lightsecagg import LightSecAggPlay
from tests.stories.rounds import SESSION, Attempt, Standing, Sum, private_key
from tests.stories.sealed import RECORDER

WEIGHTS = {"train": 1, "hold": 4, "upload": 2, "confirm": 4, "recover": 4}
LETTERS = tuple(WEIGHTS)


class BASecAggPlay(LightSecAggPlay):
    """One story of the active profile: letters are the steps of the table, by name, and `number` is a stamp or round.

    The adversary makes up buffers: K users, with the stamps that it gave them and weights that a user admits.
    """

    steps: ClassVar[dict[str, Step[Any]]] = {
        step.phase: step for step in basecagg_active.TABLE if step.role is Role.USER
    }
    phases: tuple[str, ...] = LETTERS
    honest_server = False
    told_in = ("confirm",)

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.drawn_keys = dict.fromkeys(range(self.N), 0)
        self.signatures: dict[Any, dict[int, list[bytes]]] = {}

    # --------------------------------------------------------------------------------------------------- letters

    def smallest(self) -> int:
        return int(self.parameters.K)

    def phase(self, at: Standing) -> str:
        return "done" if at.state is None else str(at.state.phase)

    def propose(self, random: Random) -> Letter:
        if not self.favourites:
            self.favourites = [self._buffer(random) for _ in range(random.choice((2, 2, 3)))]
            self.drift = random.choice((0.0, 0.0, 0.5, 1.0))
            self.haste = random.choice((1.0, 0.35, 0.35))
        here = [user for user in range(self.N) if self.standing[user].state is not None]
        drawn = random.random()
        if not set(here) & set(self.honest) or drawn < 0.07:
            return self._begin(random)
        user = random.choice(self.honest)
        if self.past[user] and drawn < (0.1 if self.rules.stored else 0.2):
            return self._back(user, random)
        return self._act(here, random)

    def _buffer(self, random: Random) -> tuple[int, ...]:
        return tuple(sorted(random.sample(range(self.N), self.parameters.K)))

    def _begin(self, random: Random) -> Letter:
        fresh = bool(self.attempts) and random.random() < self.drift
        return Letter("begin", tuple(range(self.N)), len(self.attempts) * self.rules.numbers, fresh=fresh)

    def _act(self, here: Sequence[int], random: Random) -> Letter:
        ready = [name for name in LETTERS if self._ready(name, here)] or ["train"]
        kind = random.choices(ready, [WEIGHTS[name] for name in ready])[0]
        if kind == "recover" and self._leaves(self.standing[random.choice(list(here))], random):
            return self._begin(random)
        users = [user for user in here if self._can(user, kind)] or list(here)
        if random.random() < 0.4:
            share = random.choice((0.3, 0.6, 0.85))
            users = [user for user in users if random.random() < share] or [random.choice(users)]
        received = self._told(users, random) if kind == "confirm" else ()
        weighed = random.randrange(2) if kind == "confirm" and random.random() < 0.2 else 0
        stamp = int(random.random() < 0.2) if kind in ("train", "confirm") else 0
        return Letter(kind, tuple(users), stamp, received, age=weighed)

    def _told(self, users: Sequence[int], random: Random) -> tuple[int, ...]:
        """Return a buffer, mostly one that the first of some users would take."""
        held = set(self.base(self.standing[users[0]].state).held)
        return random.choice([one for one in self.favourites if set(one) <= held] or self.favourites)

    def _ready(self, kind: str, here: Sequence[int]) -> bool:
        return any(self._can(user, kind) for user in here if user not in self.colluders)

    def _can(self, user: int, kind: str) -> bool:
        at = self.standing[user]
        state = at.state
        if state is None:
            return False
        if kind == "recover":
            return self._pending(state) is not None
        if kind == "hold":
            return bool(self._unseen(user, at))
        if kind == "confirm":
            waits = state.phase == "idle" and self._pending(state) is None
            return waits and len(self.base(state).held) >= self.parameters.K
        return bool(state.phase in (("idle", "asked") if kind == "train" else ("training",)))

    def _pending(self, state: Any) -> Any:
        """Return what a user set aside; None in the semi-honest profile, where it answers at once."""
        return getattr(state, "pending", None)

    def take(self, letter: Letter) -> bool:
        if letter.kind in ("begin", "restored"):
            return super().take(letter)
        return sum([self._acted(user, letter) for user in letter.users]) > 0

    def keys(self, users: Sequence[int]) -> Any:
        for user in users:
            self.drawn_keys[user] += 1
        sealing = tuple(public_key(private_key("seal", user, self.drawn_keys[user])) for user in range(self.N))
        signing = tuple(verification_key(private_key("sign", user, 0)) for user in range(self.N))
        return PublicKeys(Roster(sealing), Roster(signing))

    def start(self, user: int, attempt: Attempt) -> Any:
        keys = PrivateKeys(private_key("seal", user, self.drawn_keys[user]), private_key("sign", user, 0))
        return basecagg_active.user_start(self.parameters, self._session(attempt), 0, user, keys, attempt.keys)

    def _session(self, attempt: Attempt) -> bytes:
        return SESSION[:-1] + bytes([attempt.number])

    def _remembered(self, begun: Any, number: int) -> Any:
        """Return the memory of a user that begins the session of a number (SES-02)."""
        session = SESSION[:-1] + bytes([number])
        return begun.begin(session) if self.rules.numbers else begun

    # ------------------------------------------------------------------------------------------------- steps

    def _acted(self, user: int, letter: Letter) -> bool:
        at = self.standing[user]
        if at.state is None:
            return False
        before = self.copied(at)
        try:
            after = getattr(self, f"_{letter.kind}")(user, at, letter)
        except (ProtocolError, ParameterError):
            return False
        if after is None:
            return False
        self.past[user].append(before)
        self.standing[user] = after
        return True

    def _train(self, user: int, at: Standing, letter: Letter) -> Standing:
        """Let a user ask for the model and share a mask under the stamp that the server gives it."""
        asked, _ = self.run("request", at, (), {})
        at = replace(at, state=asked)
        self.past[user].append(self.copied(at))
        sampled = self.drawn()
        state, outbox = self.run("share", at, self._stamped(at, letter), sampled)
        self.deal(user, at.model, sampled)
        for message in outbox:
            assert isinstance(message, StampedShare)
            self.payload(self.dealt, message.receiver, message.payload)
            self.messages.setdefault((StampedShare, user), []).append((at.attempt, message))
        state = self.trained(state, self.update(user, at.model))
        return replace(at, state=state, shadow={**at.shadow, user: self.dealt, "own": self.dealt})

    def trained(self, state: Any, update: Any) -> Any:
        """Return the state of a user that has trained."""
        return basecagg_active.user_trained(state, update)

    def _stamped(self, at: Standing, letter: Letter) -> list[ModelStamp]:
        """Return what the server answers a user that asks for the model."""
        return [ModelStamp(self.base(at.state).session, letter.number, SERVER, self.base(at.state).user)]

    def _unseen(self, user: int, at: Standing) -> list[Any]:
        """Return, of each other user, the newest share that a user would take."""
        newest = self.base(at.state).newest
        found = []
        for sender in range(self.N):
            message = None if sender == user else self.sent(StampedShare, sender, user, at.attempt, 0)
            if isinstance(message, StampedShare) and message.round > newest.get(sender, -1):
                found.append(message)
        return found

    def _hold(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        inbox = self._unseen(user, at)
        state, _ = self.run("hold", at, inbox, {})
        kept = {m.sender: self.plain_of(m) for m in inbox}
        return replace(at, state=state, shadow={**at.shadow, **kept}) if inbox else None

    def _upload(self, user: int, at: Standing, letter: Letter) -> Standing:
        state, [message] = self.run("upload", at, (), {})
        assert isinstance(message, StampedUpdate)
        if user not in self.colluders:
            self._masked((user, at.model), at.shadow["own"], message.masked)
        return replace(at, state=state)

    def _made_up(self, user: int, at: Standing, letter: Letter) -> BufferedSet | None:
        """Return a buffer: the stamps are those of the shares that the user holds, the weights the adversary's."""
        base, p = self.base(at.state), self.parameters
        held = base.held
        if not set(letter.received) <= set(held):
            return None
        stamps = [held[member].stamp for member in letter.received]
        weights = []
        for at_place, stamp in enumerate(stamps):
            allowed = admissible_weights(p.staleness, p.c_g, max(letter.number - stamp, 0))
            weights.append(allowed[(letter.age * (at_place + 1)) % len(allowed)])
        fields = (letter.received, np.array(stamps, dtype=np.uint64), np.array(weights, dtype=np.uint64))
        return BufferedSet(base.session, letter.number, SERVER, user, *fields)

    def _confirm(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        """Let a user sign the buffer that the adversary announces."""
        message = self._made_up(user, at, letter)
        if message is None:
            return None
        state, [signed] = self.run("confirm", at, [message], {})
        assert isinstance(signed, SignedBuffer)
        content = (letter.number, state.pending.proposal.members, state.pending.proposal.further)
        known = self.signatures.setdefault(content, {}).setdefault(user, [])
        if signed.signature not in known:
            known.append(signed.signature)
        return replace(at, state=state, shadow={**at.shadow, "pending": self._terms(at, message)})

    def _terms(self, at: Standing, message: BufferedSet) -> list[tuple[int, int]]:
        """Return the masks of a buffer's entries as the user holds them, and their weights."""
        pairs = zip(message.users, message.weights.tolist(), strict=True)
        return [(at.shadow[member], weight) for member, weight in pairs]

    def _answer(self, user: int, at: Standing, message: BufferedSet) -> tuple[Any, WeightedShare]:
        """Let a user of the semi-honest profile answer for a buffer, and return its state and its answer."""
        state, [answer] = self.run("recover", at, [message], {})
        assert isinstance(answer, WeightedShare)
        if user not in self.colluders:
            self.combined(user, self._terms(at, message), answer.share)
        return state, answer

    def _recover(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        pending = self._pending(at.state)
        if pending is None:
            return None
        shown = self._signed(at)
        session, number = self.base(at.state).session, pending.answer.round
        inbox = [BufferQuorum(session, number, SERVER, user, tuple(shown), b"".join(shown.values()))]
        state, [answer] = self.run("recover", at, inbox, {})
        assert isinstance(answer, WeightedShare)
        terms = at.shadow["pending"]
        total: Sum = tuple(
            (member, self.model_of[dealt], weight)
            for member, (dealt, weight) in zip(pending.proposal.members, terms, strict=True)
        )
        self.released(at, user, total, number)
        if user not in self.colluders:
            self.combined(user, terms, answer.share)
        return replace(at, state=state)

    def _signed(self, at: Standing) -> dict[int, bytes]:
        """Return, for each user, a signature that the user will take."""
        pending = at.state.pending
        proposal, ballot = pending.proposal, self.ballot(at, pending.answer.round)
        known = self.signatures.get((pending.answer.round, proposal.members, proposal.further), {})
        return quorum(ballot, proposal, range(self.N), known, self.colluders)

    def ballot(self, at: Standing, round: int) -> Ballot:
        """Return where the signatures that a user takes belong."""
        base = self.base(at.state)
        return basecagg_active.ballot_of(base.parameters, base.session, round, at.state.roster)

    def plain_of(self, message: Any) -> int:
        """Return which mask a sealed share is of."""
        return self.plain[RECORDER.core(message.payload)][0]


class HonestPlay(BASecAggPlay):
    """One story of the semi-honest profile: the server takes the reference's own steps, and forgets what it refuses.

    Letters are the steps of users, and the server's of closing a buffer. Users come and go between them, train anew,
    upload late, and are restored. The text allows the weighted sum of each buffer that was announced.
    """

    steps: ClassVar[dict[str, Step[Any]]] = {step.phase: step for step in basecagg.TABLE if step.role is Role.USER}
    of_server: ClassVar = {step.phase: step for step in basecagg.TABLE if step.role is Role.SERVER}
    kinds: ClassVar = {"train": 2, "hold": 4, "upload": 3, "close": 3, "recover": 4}

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.servers: list[Any] = []
        self.waiting: dict[tuple[int, int], int] = {}
        self.announced: dict[int, dict[int, BufferedSet]] = {}
        self.answers: dict[int, dict[int, Any]] = {}

    def trained(self, state: Any, update: Any) -> Any:
        return basecagg.user_trained(state, update)

    def keys(self, users: Sequence[int]) -> Any:
        return Roster(tuple(public_key(private_key("seal", user, 0)) for user in range(self.N)))

    def start(self, user: int, attempt: Attempt) -> Any:
        session = self._session(attempt)
        while len(self.servers) < len(self.attempts):
            self.servers.append(basecagg.server_start(self.parameters, session, 0))
        context = basecagg.sealing_context(self.parameters, session)
        channel = SealedStampedChannel(context, private_key("seal", user, 0), attempt.keys)
        return basecagg.user_start(self.parameters, session, 0, user, channel)

    def _act(self, here: Sequence[int], random: Random) -> Letter:
        ready = [name for name in self.kinds if self._ready(name, here)] or ["train"]
        kind = random.choices(ready, [self.kinds[name] for name in ready])[0]
        users = [user for user in here if self._can(user, kind)] or list(here)
        if random.random() < 0.4 or kind == "close":
            users = [user for user in users if random.random() < 0.6] or [random.choice(users)]
        return Letter(kind, tuple(users[:1] if kind == "close" else users))

    def _can(self, user: int, kind: str) -> bool:
        at = self.standing[user]
        if at.state is None:
            return False
        server = self.servers[at.attempt]
        if kind == "close":
            return bool(server.phase == "filling" and len(server.buffer) == self.parameters.K)
        if kind == "recover":
            return at.attempt in self.announced
        if kind == "hold":
            return bool(self._unseen(user, at))
        return bool(at.state.phase in (("idle", "asked") if kind == "train" else ("training",)))

    def _serve(self, attempt: int, name: str, inbox: Sequence[Any], **sampled: Any) -> Sequence[Any]:
        """Let the server take a step; nothing comes of what it refuses."""
        try:
            self.servers[attempt], outbox = self.of_server[name].take(self.servers[attempt], inbox, randomness=sampled)
        except ProtocolError:
            return ()
        return outbox

    def _stamped(self, at: Standing, letter: Letter) -> list[ModelStamp]:
        state = at.state
        request = ModelRequest(state.session, state.known, state.user, SERVER)
        return list(self._serve(at.attempt, "request", [request]))

    def _train(self, user: int, at: Standing, letter: Letter) -> Standing:
        after = super()._train(user, at, letter)
        sent = [message for made, message in self.messages[StampedShare, user][1 - self.N :] if made == at.attempt]
        if not self._serve(at.attempt, "share", sent):
            del self.messages[StampedShare, user][1 - self.N :]
        return after

    def _upload(self, user: int, at: Standing, letter: Letter) -> Standing:
        state, [message] = self.run("upload", at, (), {})
        assert isinstance(message, StampedUpdate)
        if user not in self.colluders:
            self._masked((user, at.model), at.shadow["own"], message.masked)
        self._serve(at.attempt, "upload", [message])
        if user in self.servers[at.attempt].buffer:
            self.waiting.setdefault((at.attempt, user), at.shadow["own"])
        return replace(at, state=state)

    def _close(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        draws = [self.random.randrange(2**53) / 2**53 for _ in range(self.parameters.K)]
        announced = self._serve(at.attempt, "close", (), rounding=np.array(draws))
        if not announced:
            return None
        self.announced[at.attempt] = {message.receiver: message for message in announced}
        total = tuple(
            (entry.user, self.model_of[self.waiting[at.attempt, entry.user]], entry.weight)
            for entry in self.servers[at.attempt].entries
        )
        self.attempts[at.attempt].released[self.servers[at.attempt].round] = {total: set()}
        return at

    def _recover(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        message = self.announced.get(at.attempt, {}).get(user)
        if message is None:
            return None
        state, answer = self._answer(user, at, message)
        answers = self.answers.setdefault(at.attempt, {})
        answers[user] = answer
        if len(answers) >= self.parameters.U and self.servers[at.attempt].entries:
            self._serve(at.attempt, "recover", list(answers.values()))
            if not self.servers[at.attempt].entries:
                del self.answers[at.attempt], self.announced[at.attempt]
                self.waiting = {key: dealt for key, dealt in self.waiting.items() if key[0] != at.attempt}
        return replace(at, state=state)
