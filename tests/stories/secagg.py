"""SecAgg in stories: masked inputs are rows over inputs and masks; a mask is known when its secret is.

A secret is known when t shares of one of its sharings are in view. Masks are symbols by the key that they come from, so
that equal derivations are one symbol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random
from typing import Any, ClassVar

from secagg_spec.arithmetic import shamir
from secagg_spec.crypto import prg
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import DecryptionFailed, ProtocolError
from secagg_spec.protocols.agreement import Ballot, Proposal
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.active import SignedKeys, SignedNeighbourKeys, SignedSurvivors, SurvivorQuorum
from secagg_spec.protocols.secagg.round import (
    AdvertisedKeys,
    MaskedInput,
    NeighbourKeys,
    SecretShares,
    UnmaskRequest,
    UnmaskShares,
)
from secagg_spec.protocols.steps import SERVER, Outbox, Role, Step
from tests.stories.ballots import quorum
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import Attempt, RoundPlay, Standing, Sum, private_key
from tests.stories.sealed import RECORDER
from tests.stories.view import Row, consequences, words


@dataclass
class Sharing:
    """A user's two secrets as it shared them once, and whose shares the adversary has."""

    user: int
    model: int
    masking: bytes
    self_key: bytes
    seed: set[int] = field(default_factory=set)
    key: set[int] = field(default_factory=set)


class SecAggPlay(RoundPlay):
    """One story of the semi-honest profile on the complete graph; R is a prime here."""

    phases: tuple[str, ...] = secagg.PHASES
    steps: ClassVar[dict[str, Step[Any]]] = {step.phase: step for step in secagg.TABLE if step.role is Role.USER}
    told_in: tuple[str, ...] = ("unmasking",)
    advertisement: type[Message] = AdvertisedKeys
    relays = True
    """Whether the server relays the same keys and shares to all: those of the users that sent theirs in time."""

    def __init__(self, parameters: Any, rules: Rules, random: Random, colluding: int | None = None) -> None:
        super().__init__(parameters, rules, random, prime=parameters.R, length=parameters.d, colluding=colluding)
        self.sharings: list[Sharing] = []
        self.plain: dict[bytes, tuple[int, int]] = {}
        self.pairs: dict[bytes, tuple[bytes, bytes]] = {}
        self.drawn_keys = dict.fromkeys(range(self.N), 0)
        self.theirs: set[bytes] = set()
        self.taken: dict[int, int] = {}

    def smallest(self) -> int:
        return int(self.parameters.enough)

    def enough(self) -> int:
        return int(self.parameters.t)

    def start(self, user: int, attempt: Attempt) -> Any:
        round = secagg.Round(self.parameters, self.parameters.graph(), *attempt.place)
        return secagg.user_start(round, user, self.update(user))

    def tellable(self, at: Standing, members: Sequence[int]) -> bool:
        return len(set(members) & set(at.shadow)) >= self.smallest()

    def can_go_on(self, at: Standing, user: int) -> bool:
        kinds = {"share_keys": self.advertisement, "masked_input": SecretShares}
        kind = kinds.get(self.phase(at))
        if kind is None:
            return True
        others = range(self.N) if kind is self.advertisement else self.base(at.state).peers
        receiver = None if kind is self.advertisement else user
        came = [u for u in others if u != user and self.sent(kind, u, receiver, at.attempt, 0)]
        return len(came) + 1 >= int(self.parameters.t)

    # ------------------------------------------------------------------------------------- what is delivered

    def inbox(self, user: int, at: Standing, letter: Letter) -> Sequence[Message] | None:
        phase, attempt = self.phase(at), self.attempts[at.attempt]
        if phase == "advertise_keys":
            return ()
        others = [other for other in range(self.N) if other != user]
        if phase == "share_keys":
            return self._keys_for(user, at, letter, others)
        if phase == "masked_input":
            return self._shares_for(user, at, letter, others)
        if self.honest_server:
            return self._request(user, at, attempt)
        return self._later(user, at, letter, attempt)

    def _keys_for(self, user: int, at: Standing, letter: Letter, others: Sequence[int]) -> Sequence[Message]:
        attempt = self.attempts[at.attempt]
        if self.relays:
            if attempt.advertised is None:
                sent = (self.sent(self.advertisement, u, None, at.attempt, 0) for u in range(self.N))
                attempt.advertised = tuple(message.sender for message in sent if message is not None)
            found = [self.first(self.advertisement, u, None, at.attempt) for u in others if u in attempt.advertised]
        else:
            found = [
                self.sent(self.advertisement, u, None, None if letter.age else at.attempt, letter.age)
                for u in others
                if u not in letter.without
            ]
        keys = [message for message in found if message is not None]
        return [self._neighbours(user, attempt.place, keys)]

    def _neighbours(self, user: int, place: tuple[bytes, int], keys: Sequence[Any]) -> Message:
        users = tuple(message.sender for message in keys)
        sealing, masking = (b"".join(getattr(message, name) for message in keys) for name in ("sealing", "masking"))
        return NeighbourKeys(*place, SERVER, user, users, sealing, masking)

    def _shares_for(self, user: int, at: Standing, letter: Letter, others: Sequence[int]) -> Sequence[Message]:
        attempt = self.attempts[at.attempt]
        if self.relays:
            if attempt.sharers is None:
                attempt.sharers = tuple(u for u in range(self.N) if self.sent(SecretShares, u, None, at.attempt, 0))
            found = [self.first(SecretShares, u, user, at.attempt) for u in others if u in attempt.sharers]
        else:
            found = [
                self.sent(SecretShares, u, user, None if letter.age else at.attempt, letter.age)
                for u in others
                if u not in letter.without
            ]
        session, round = attempt.place
        here = [replace(message, session=session, round=round) for message in found if message is not None]
        return [message for message in here if isinstance(message, SecretShares) and self._expected(at, message)]

    def _expected(self, at: Standing, message: SecretShares) -> bool:
        """Return whether a user may take a payload: a server that tried any other would only be refused."""
        return message.sender in self.base(at.state).peers

    def _opens(self, at: Standing, message: SecretShares) -> bool:
        """Return whether a user can open a payload."""
        try:
            secagg._opened(self.base(at.state), message)
        except ProtocolError:
            return False
        return True

    def _request(self, user: int, at: Standing, attempt: Attempt) -> Sequence[Message] | None:
        """Return the request of a server that follows the protocol: one set for all."""
        if attempt.announced is None:
            uploaded = tuple(u for u in attempt.sharers or () if self.sent(MaskedInput, u, None, at.attempt, 0))
            attempt.announced = uploaded if len(uploaded) >= self.parameters.enough else ()
        if user not in attempt.announced:
            return None
        dropped = tuple(u for u in attempt.sharers or () if u not in attempt.announced)
        return [UnmaskRequest(*attempt.place, SERVER, user, attempt.announced, dropped)]

    def _later(self, user: int, at: Standing, letter: Letter, attempt: Attempt) -> Sequence[Message] | None:
        """Return the request of a server that asks as it likes: who is not told as a survivor dropped out."""
        held = set(self.base(at.state).held)
        survivors = tuple(u for u in letter.received if u in held)
        dropped = tuple(sorted(held - set(survivors)))
        return [UnmaskRequest(*attempt.place, SERVER, user, survivors, dropped)]

    # ----------------------------------------------------------------------------------------- what is seen

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        try:
            return self._stepping(user, at, inbox)
        except DecryptionFailed:
            return self._stepping(user, at, [m for m in inbox if isinstance(m, SecretShares) and self._opens(at, m)])

    def _stepping(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        phase = at.state.phase
        self.taken = {m.sender: self.plain[RECORDER.core(m.payload)][0] for m in inbox if isinstance(m, SecretShares)}
        state, outbox = self.run(phase, at, inbox, self._drawn(user, phase))
        after = Standing(state, at.attempt, at.begun, at.model, at.shadow)
        return state, outbox, self.seen(user, at, after, phase, outbox)

    def _drawn(self, user: int, phase: str) -> dict[str, Any]:
        if phase == "advertise_keys":
            self.drawn_keys[user] += 1
            return {name: private_key(name, user, self.drawn_keys[user]) for name in ("sealing_key", "masking_key")}
        if phase == "share_keys":
            count = self.parameters.t - 1
            names = ("key_coefficients", "seed_coefficients")
            numbers = {name: tuple(self.random.randrange(shamir.PRIME) for _ in range(count)) for name in names}
            return {"self_seed": self.random.randbytes(32), **numbers}
        return {}

    def seen(self, user: int, at: Standing, after: Standing, phase: str, outbox: Outbox) -> Mapping[Any, Any]:
        """Take down what the adversary has of a step, and return the user's shadow after it."""
        if phase == "advertise_keys":
            if user in self.colluders:
                self.theirs.add(getattr(outbox[0], "masking"))  # noqa: B009
            return {"masking": getattr(outbox[0], "masking")}  # noqa: B009
        if phase == "share_keys":
            return self._shared(user, at, after, outbox)
        if phase == "masked_input":
            [message] = outbox
            assert isinstance(message, MaskedInput)
            if user not in self.colluders:
                self._masked(user, at, message)
            return {**at.shadow, **{peer: self.taken[peer] for peer in message.neighbours}}
        if phase == "unmasking":
            [answer] = outbox
            assert isinstance(answer, UnmaskShares)
            self._answered(user, at, answer)
        return at.shadow

    def _shared(self, user: int, at: Standing, after: Standing, outbox: Outbox) -> Mapping[Any, Any]:
        base, own = self.base(after.state), len(self.sharings)
        self.sharings.append(Sharing(user, at.model, at.shadow["masking"], base.self_keys[0]))
        for (_, peer), key in base.mask_keys.items():
            self.pairs[key] = (base.peers[peer].masking, at.shadow["masking"])
        for message in outbox:
            if isinstance(message, SecretShares):
                self.plain[RECORDER.core(message.payload)] = (own, message.receiver)
                if message.receiver in self.colluders:
                    self._open(own, message.receiver)
                for other in RECORDER.broken(message.payload):
                    self._open(*self.plain[other])
        return {user: own}

    def _open(self, sharing: int, holder: int) -> None:
        self.sharings[sharing].seed.add(holder)
        self.sharings[sharing].key.add(holder)

    def _masked(self, user: int, at: Standing, message: MaskedInput) -> None:
        base = self.base(at.state)
        streams = [(1, base.self_keys[0])]
        streams += [(1 if user < peer else -1, base.mask_keys[0, peer]) for peer in message.neighbours]
        rows: list[Row] = [{self.inputs[user, at.model, e]: 1} for e in range(self.length)]
        for sign, key in streams:
            for e, value in enumerate(prg.expand(key, self.parameters.ring, self.length).tolist()):
                rows[e][self.view.symbol((key, e), value)] = sign
        for row, value in zip(rows, message.masked.tolist(), strict=True):
            self.view.saw(row, value)

    def _answered(self, user: int, at: Standing, answer: UnmaskShares) -> None:
        members = tuple(answer.survivors)
        self.released(at, user, tuple((m, self.sharings[at.shadow[m]].model, 1) for m in members))
        for member in members:
            self.sharings[at.shadow[member]].seed.add(user)
        for member in answer.dropped:
            self.sharings[at.shadow[member]].key.add(user)

    def known(self) -> set[int]:
        t = self.parameters.t
        secrets = self.theirs | {one.masking for one in self.sharings if len(one.key) >= t}
        keys = {one.self_key for one in self.sharings if len(one.seed) >= t or one.user in self.colluders}
        keys |= {key for key, ends in self.pairs.items() if secrets & set(ends)}
        inputs = {symbol for (user, _, _), symbol in self.inputs.items() if user in self.colluders}
        return inputs | {symbol for name, symbol in self.view.names() if isinstance(name, tuple) and name[0] in keys}


class SparsePlay(SecAggPlay):
    """One story of SecAgg+: users know their neighbours on a graph alone.

    The text allows the sum over each component of the honest survivors (section 1): the graph of the session keeps the
    order of the roster here, so that components are many.
    """

    def _keys_for(self, user: int, at: Standing, letter: Letter, others: Sequence[int]) -> Sequence[Message]:
        return super()._keys_for(user, at, letter, self._near(user))

    def _shares_for(self, user: int, at: Standing, letter: Letter, others: Sequence[int]) -> Sequence[Message]:
        return super()._shares_for(user, at, letter, self._near(user))

    def _near(self, user: int) -> list[int]:
        return sorted(self.parameters.graph().neighbours(user))

    def can_go_on(self, at: Standing, user: int) -> bool:
        kinds = {"share_keys": self.advertisement, "masked_input": SecretShares}
        kind = kinds.get(self.phase(at))
        if kind is None:
            return True
        receiver = None if kind is self.advertisement else user
        came = [u for u in self._near(user) if self.sent(kind, u, receiver, at.attempt, 0)]
        return len(came) + 1 >= int(self.parameters.t)

    def _allowed(self, chosen: Sequence[Sum]) -> list[Row]:
        rows: list[Row] = []
        for total in set(chosen):
            left = {user: model for user, model, _ in total if user not in self.colluders}
            while left:
                part, new = set(), {min(left)}
                while new:
                    part |= new
                    new = {other for user in new for other in self._near(user) if other in left} - part
                rows += [{self.inputs[user, left[user], at]: 1 for user in part} for at in range(self.length)]
                left = {user: model for user, model in left.items() if user not in part}
        return rows


class ActivePlay(SecAggPlay):
    """One story of the active profile."""

    phases: tuple[str, ...] = secagg_active.PHASES
    steps: ClassVar[dict[str, Step[Any]]] = {step.phase: step for step in secagg_active.TABLE if step.role is Role.USER}
    honest_server = relays = False
    told_in = ("consistency_check",)
    advertisement = SignedKeys

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.signatures: dict[tuple[int, ...], dict[int, list[bytes]]] = {}
        keys = tuple(verification_key(private_key("sign", user, 0)) for user in range(self.N))
        self.roster = Roster(keys)

    def start(self, user: int, attempt: Attempt) -> Any:
        round = secagg_active.agreed(self.parameters, *attempt.place)
        return secagg_active.user_start(round, user, self.update(user), private_key("sign", user, 0), self.roster)

    def _neighbours(self, user: int, place: tuple[bytes, int], keys: Sequence[Any]) -> Message:
        plain = super()._neighbours(user, place, keys)
        assert isinstance(plain, NeighbourKeys)
        signatures = b"".join(message.signature for message in keys)
        header = (*place, SERVER, user)
        return SignedNeighbourKeys(*header, plain.users, plain.sealing, plain.masking, signatures)

    def _later(self, user: int, at: Standing, letter: Letter, attempt: Attempt) -> Sequence[Message] | None:
        if self.phase(at) == "consistency_check":
            return super()._later(user, at, letter, attempt)
        shown = self._quorum(at, tuple(at.state.request.survivors))
        header = (*attempt.place, SERVER, user)
        return [SurvivorQuorum(*header, tuple(shown), b"".join(shown.values()))]

    def ballot(self, at: Standing) -> Ballot:
        """Return where the signatures that a user takes belong."""
        return secagg_active._ballot(at.state)

    def can_end(self, at: Standing) -> bool:
        members = tuple(at.state.request.survivors)
        signed = set(self.signatures.get(members, {})) | (self.colluders & set(members))
        return len(signed) >= int(self.parameters.t)

    def _quorum(self, at: Standing, members: tuple[int, ...]) -> dict[int, bytes]:
        """Return, for each member, a signature that the user will take: of all that were ever seen, or a colluder's."""
        seen = self.signatures.get(members, {})
        return quorum(self.ballot(at), Proposal(members), members, seen, self.colluders)

    def seen(self, user: int, at: Standing, after: Standing, phase: str, outbox: Outbox) -> Mapping[Any, Any]:
        if phase != "consistency_check":
            return super().seen(user, at, after, phase, outbox)
        [signed] = outbox
        assert isinstance(signed, SignedSurvivors)
        members = tuple(after.state.request.survivors)
        known = self.signatures.setdefault(members, {}).setdefault(user, [])
        if signed.signature not in known:
            known.append(signed.signature)
        return at.shadow


class LyingPlay(SecAggPlay):
    """One story of the semi-honest profile: a server relays all shares, and asks users for different survivors.

    The inputs change with each attempt, so that a sum is one of a round. What counts is how few users a sum may have
    that the server learns: `least` are allowed.
    """

    honest_server = False

    def __init__(self, parameters: Any, rules: Rules, random: Random, *, colluding: int, least: int) -> None:
        super().__init__(parameters, rules, random, colluding)
        self.least = least

    def _begin(self, random: Random) -> Letter:
        letter = super()._begin(random)
        return Letter(letter.kind, letter.users, letter.number, fresh=True)

    def leak(self) -> tuple[str, ...]:
        inputs = [symbol for (user, _, _), symbol in self.inputs.items() if user not in self.colluders]
        learned = self.view.learned(inputs, self.known())
        names = {symbol: self._name(*name) for name, symbol in self.inputs.items()}
        for attempt in self.attempts:
            brought = [(user, model) for user, model in attempt.models.items() if user not in self.colluders]
            here = [self.inputs[user, model, at] for user, model in brought for at in range(self.length)]
            for size in range(1, self.least):
                for few in combinations(here, size):
                    found = consequences(self.view.prime, learned, few)
                    if found:
                        return tuple(words(self.view.prime, row, names) for row in found)
        return ()
