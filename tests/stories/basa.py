"""BASA in stories: an honest authority, and a server that offers, delivers, settles and closes as it likes.

Masks are symbols by the key that they come from. A mask is known when a colluder drew its seed, or when the adversary
has the secret key that its box is sealed to: a colluder fetched it, or the authority released it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar

import numpy as np

from secagg_spec.crypto.boxes import PerPosition, mask_key
from secagg_spec.crypto.keys import Roster, public_key, sha256
from secagg_spec.crypto.prg import KEY_BYTES, expand
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.protocols.basa import messages
from secagg_spec.protocols.basa import round as basa
from secagg_spec.protocols.basa.authority import authority_start
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.user import user_start, user_trained
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Outbox, Role
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import SESSION, private_key
from tests.stories.view import Row, View, beyond, words

BOXES = PerPosition()
WEIGHTS = {
    "train": 2,
    "offer": 2,
    "assign": 2,
    "issue": 3,
    "upload": 6,
    "settle": 3,
    "expire": 0.5,
    "close": 1,
    "abandon": 0.2,
}


@dataclass(frozen=True)
class Standing:
    """The state of a user with the number of its update, or the state of the authority."""

    state: Any
    model: int = -1


class BasaPlay:
    """One story of either profile: letters are steps of users and of the authority.

    The text allows the weighted sum over the accepted updates of each epoch that the authority closed. In the profile
    *void* it also allows the sum over all uploads of an epoch when one came at the last position, or a colluder has the
    key of that position. The server lies in both profiles, though the text promises nothing against that in *void*.
    """

    users: ClassVar = {step.phase: step for step in basa.TABLE if step.role is Role.USER}
    authority: ClassVar = {step.phase: step for step in basa.TABLE if step.role is Role.AUTHORITY}

    def __init__(self, parameters: Parameters, rules: Rules, random: Random) -> None:
        self.parameters, self.rules, self.random = parameters, rules, random
        self.N = parameters.N
        self.colluders = frozenset(range(self.N - parameters.T, self.N))
        self.view = View(parameters.R)
        self.inputs: dict[tuple[int, int, int], int] = {}
        signing = [private_key("sign", user, 0) for user in range(self.N)]
        verification, above = Roster(tuple(map(verification_key, signing))), private_key("sign", AUTHORITY, 0)
        first = authority_start(parameters, SESSION, 0, signing=above, verification=verification)
        self.standing = {AUTHORITY: Standing(first)}
        for user in range(self.N):
            public: dict[str, Any] = {"verification": verification, "authority": first.session.authority}
            state = user_start(parameters, SESSION, user, signing=signing[user], **public)
            self.standing[user] = Standing(state)
        self.past: dict[int, list[Standing]] = {party: [] for party in self.standing}
        self.models = 0
        self.published: messages.EpochKeys | None = None
        self.requests: dict[int, messages.KeyRequest] = {}
        self.keys: dict[int, list[messages.PositionKey]] = {user: [] for user in range(self.N)}
        self.uploads: dict[int, list[messages.PositionUpload]] = {user: [] for user in range(self.N)}
        self.box_of: dict[bytes, bytes] = {}
        self.seed_of: dict[bytes, tuple[bytes, int]] = {}
        self.sealed: list[tuple[bytes, bytes]] = []
        self.secrets: set[bytes] = set()
        self.theirs: set[bytes] = set()
        self.brought: dict[int, dict[tuple[int, tuple[bytes, ...]], tuple[int, int, int]]] = {}
        self.closed: dict[int, list[tuple[int, int, int]]] = {}
        self.last_key: set[int] = set()

    @property
    def seats(self) -> Sequence[Any]:
        """The positions of the authority that are not unused."""
        seats: Sequence[Any] = self.standing[AUTHORITY].state.seats
        return seats

    @property
    def position(self) -> int:
        """The first position that is not settled."""
        going = bool(self.seats) and self.seats[-1].state in ("assigned", "keyed")
        return len(self.seats) - going

    # --------------------------------------------------------------------------------------------------- letters

    def propose(self, random: Random) -> Letter:
        """Return a letter that may come next: mostly what the open position waits for."""
        drawn = random.random()
        if not self.rules.stored and drawn < 0.12:
            return self._back(random)
        if drawn < 0.7:
            return self._next(random)
        kind = random.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        return Letter(kind, (random.randrange(self.N),), int(random.random() < 0.3), age=random.choice((0, 0, 1, 2)))

    def _back(self, random: Random) -> Letter:
        party = random.choice([one for one in self.standing if self._older(one)] or [AUTHORITY])
        return Letter("restored", (party,), 1 + min(random.randrange(6), random.randrange(6)))

    def _older(self, party: int) -> list[Standing]:
        return [one for one in self.past[party] if not self.rules.back_to or one.state.phase in self.rules.back_to]

    def _next(self, random: Random) -> Letter:
        if not self.standing[AUTHORITY].state.is_open:
            return Letter("open", (AUTHORITY,))
        if self.position < len(self.seats):
            return self._at_last(self.seats[-1].user, random)
        accepted = len(self.standing[AUTHORITY].state.accepted)
        if accepted == self.parameters.K or self.position == self.parameters.positions:
            return Letter("close" if random.random() < 0.9 else "abandon", (AUTHORITY,))
        new = [user for user in range(self.N) if user not in {seat.user for seat in self.seats}]
        phase = {user: self.standing[user].state.phase for user in new}
        ready = [user for user in new if phase[user] == "fetched" and user in self.requests]
        asked = [user for user in new if phase[user] == "asked"]
        for kind, users in (("assign", ready), ("offer", asked)):
            if users and random.random() < 0.8:
                return Letter(kind, (random.choice(users),))
        return Letter("train", (random.choice(new or range(self.N)),), int(random.random() < 0.3))

    def _at_last(self, user: int, random: Random) -> Letter:
        """Return a letter about a position that somebody is at."""
        if self.seats[-1].state == "assigned":
            return Letter("issue" if random.random() < 0.9 else "expire", (user,))
        if self.standing[user].state.phase == "fetched":
            return Letter("upload" if random.random() < 0.8 else "expire", (user,))
        if random.random() < 0.35:
            asked = self.standing[user].state.phase == "asked"
            return Letter("offer" if asked else "train", (user,), int(not asked and random.random() < 0.3))
        return Letter("settle" if random.random() < 0.8 else "expire", (user,))

    def take(self, letter: Letter) -> bool:
        """Play a letter, and return whether anything happened."""
        act: Callable[[int, Letter], bool] = getattr(self, f"_{letter.kind}")
        try:
            return act(letter.users[0], letter)
        except (ProtocolError, ParameterError):
            return False

    def _restored(self, party: int, letter: Letter) -> bool:
        older = self._older(party)
        if self.rules.stored or not older:
            return False
        self.standing[party] = older[-1 - (letter.number - 1) % len(older)]
        return True

    # ------------------------------------------------------------------------------------------------- the authority

    def _ask(self, phase: str, inbox: Sequence[Any], **sampled: Any) -> Outbox:
        """Let the authority take a step."""
        at = self.standing[AUTHORITY]
        state, outbox = self.authority[phase].take(at.state, inbox, randomness=sampled)
        self.past[AUTHORITY].append(at)
        self.standing[AUTHORITY] = Standing(state)
        return outbox

    def _header(self, receiver: int = AUTHORITY) -> tuple[bytes, int, int, int]:
        return SESSION, self.standing[AUTHORITY].state.epoch, SERVER, receiver

    def _open(self, party: int, letter: Letter) -> bool:
        size = KEY_BYTES * self.parameters.positions
        pairs, own = self.random.randbytes(size), self.random.randbytes(size) if self.parameters.settle else b""
        [published] = self._ask("open", (), pair_keys=pairs, self_keys=own)
        assert isinstance(published, messages.EpochKeys)
        self.published = published
        return True

    def _assign(self, user: int, letter: Letter) -> bool:
        self._ask("assign", [messages.Assignment(*self._header(), self.position, user)])
        return True

    def _issue(self, user: int, letter: Letter) -> bool:
        if user not in self.requests:
            return False
        [key] = self._ask("issue", [self.requests[user]])
        assert isinstance(key, messages.PositionKey)
        self.keys[user].append(key)
        if user in self.colluders:
            self.secrets.add(public_key(key.key))
            if key.position == self.parameters.positions - 1:
                self.last_key.add(key.round)
        return True

    def _settle(self, user: int, letter: Letter) -> bool:
        if letter.age >= len(self.uploads[user]):
            return False
        upload = self.uploads[user][-1 - letter.age]
        hashes = b"".join(sha256(box) for box in self._boxes(upload))
        numbers = (self.position, 1, upload.stamp, upload.weight)
        self._ask("settle", [messages.Settlement(*self._header(), *numbers, hashes, upload.signature)])
        return True

    def _expire(self, user: int, letter: Letter) -> bool:
        if self.position >= len(self.seats):
            return False
        self._ask("settle", [messages.Settlement(*self._header(), self.position, 0, 0, 0, b"", b"")])
        return True

    def _close(self, party: int, letter: Letter) -> bool:
        epoch, seats = self.standing[AUTHORITY].state.epoch, self.seats
        [release] = self._ask("close", [messages.CloseRequest(*self._header())])
        assert isinstance(release, messages.Release)
        self._released(release.keys)
        accepted = [(at, seat.hashes) for at, seat in enumerate(seats) if seat.state == "accepted"]
        self.closed.setdefault(epoch, [self.brought[epoch][one] for one in accepted])
        return True

    def _abandon(self, party: int, letter: Letter) -> bool:
        for release in self._ask("abandon", [messages.Abandonment(*self._header())]):
            assert isinstance(release, messages.Release)
            self._released(release.keys)
        return True

    def _released(self, keys: bytes) -> None:
        self.secrets |= {public_key(keys[at : at + KEY_BYTES]) for at in range(0, len(keys), KEY_BYTES)}

    # --------------------------------------------------------------------------------------------------- users

    def _move(self, user: int, phase: str, inbox: Sequence[Any], **sampled: Any) -> Outbox:
        """Let a user take a step."""
        at = self.standing[user]
        state, outbox = self.users[phase].take(at.state, inbox, randomness=sampled)
        self.past[user].append(at)
        self.standing[user] = Standing(state, at.model)
        return outbox

    def _train(self, user: int, letter: Letter) -> bool:
        """Give a user another update, for which it asks for a position."""
        self.models += 1
        names = [(user, self.models, at) for at in range(self.parameters.d)]
        for name in names:
            self.inputs[name] = self.view.symbol(("x", *name), self.random.randrange(1000))
        update = np.array([self.view.values[self.inputs[name]] for name in names], dtype=np.uint64)
        stamp = max(self.standing[AUTHORITY].state.epoch - letter.number, 0)
        at = self.standing[user]
        self.past[user].append(at)
        self.standing[user] = Standing(user_trained(at.state, update, stamp), self.models)
        self._move(user, "request", ())
        return True

    def _offer(self, user: int, letter: Letter) -> bool:
        if self.published is None or self.position == self.parameters.positions:
            return False
        at, seats = self.position, self.seats
        accepted = [own for own, seat in enumerate(seats[:at]) if seat.state == "accepted"]
        boxes = b"".join(self.box_of[seats[own].hashes[at - own - 1]] for own in accepted)
        header = (SESSION, self.published.round, SERVER, user)
        offer = messages.PositionOffer(*header, at, self.published.keys, self.published.signature, boxes)
        [request] = self._move(user, "fetch", [offer])
        assert isinstance(request, messages.KeyRequest)
        self.requests[user] = request
        return True

    def _upload(self, user: int, letter: Letter) -> bool:
        if letter.age >= len(self.keys[user]):
            return False
        before, p = self.standing[user], self.parameters
        drawn = {"seeds": self.random.randbytes(KEY_BYTES * p.positions), "box_key": self.random.randbytes(KEY_BYTES)}
        draw = self.random.randrange(2**53) / 2**53
        [upload] = self._move(user, "upload", [self.keys[user][-1 - letter.age]], **drawn, rounding=draw)
        assert isinstance(upload, messages.PositionUpload)
        self.uploads[user].append(upload)
        self._seen(user, before, upload, drawn["seeds"])
        return True

    def _boxes(self, upload: messages.PositionUpload) -> tuple[bytes, ...]:
        return messages.split("boxes", upload.boxes, BOXES.box_bytes)

    def _seen(self, user: int, at: Standing, upload: messages.PositionUpload, seeds: bytes) -> None:
        """Take down what the adversary has of an upload."""
        offer, session = at.state.offer, at.state.session
        epoch, place = session.epoch(upload.round), upload.position
        streams: list[tuple[int, bytes]] = []
        for box in messages.split("boxes", offer.boxes, BOXES.box_bytes):
            streams.append((-1, mask_key(epoch, *self.seed_of[box], place)))
        for target, box in zip(session.targets(place), self._boxes(upload), strict=True):
            seed = seeds[KEY_BYTES * target : KEY_BYTES * (target + 1)]
            self.box_of[sha256(box)], self.seed_of[box] = box, (seed, place)
            key = mask_key(epoch, seed, place, None if target == place else target)
            slot = session.address(upload.round, user, place, target).slot
            self.sealed.append((BOXES.public(epoch, offer.keys, slot), key))
            if user in self.colluders:
                self.theirs.add(key)
            streams.append((1, key))
        brought = self.brought.setdefault(upload.round, {})
        brought[place, tuple(map(sha256, self._boxes(upload)))] = (user, at.model, upload.weight)
        if user not in self.colluders:
            self._masked(user, at.model, upload, streams)

    def _masked(
        self, user: int, model: int, upload: messages.PositionUpload, streams: Sequence[tuple[int, bytes]]
    ) -> None:
        rows: list[Row] = [{self.inputs[user, model, e]: upload.weight} for e in range(self.parameters.d)]
        for sign, key in streams:
            for e, value in enumerate(expand(key, self.parameters.ring, self.parameters.d).tolist()):
                symbol = self.view.symbol((key, e), value)
                rows[e][symbol] = rows[e].get(symbol, 0) + sign
        for row, value in zip(rows, upload.masked.tolist(), strict=True):
            self.view.saw(row, value)

    # -------------------------------------------------------------------------------------------- what is decided

    def _uncovered(self) -> list[list[tuple[int, int, int]]]:
        """Return the uploads of epochs in which no honest user is to come, in the profile *void*."""
        if self.parameters.settle:
            return []
        last = self.parameters.positions - 1
        whole = {epoch for epoch, brought in self.brought.items() if any(at == last for at, _ in brought)}
        return [list(self.brought[epoch].values()) for epoch in (whole | self.last_key) & set(self.brought)]

    def leak(self) -> tuple[str, ...]:
        """Return what the adversary knows beyond the text, the plainest first; empty when there is nothing."""
        keys = self.theirs | {key for public, key in self.sealed if public in self.secrets}
        known = {symbol for name, symbol in self.view.names() if isinstance(name, tuple) and name[0] in keys}
        known |= {symbol for (user, _, _), symbol in self.inputs.items() if user in self.colluders}
        inputs = [symbol for (user, _, _), symbol in self.inputs.items() if user not in self.colluders]
        allowed = [
            {self.inputs[user, model, e]: weight for user, model, weight in total if user not in self.colluders}
            for total in [*self.closed.values(), *self._uncovered()]
            for e in range(self.parameters.d)
        ]
        outside = beyond(self.view.prime, self.view.learned(inputs, known), allowed)
        names: Mapping[int, str] = {symbol: f"x_{user} ({model})" for (user, model, _), symbol in self.inputs.items()}
        return tuple(words(self.view.prime, row, names) for row in outside)
