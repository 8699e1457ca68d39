"""LightSecAgg in stories, both profiles: inputs, masks and noise are symbols, and each message is a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any, ClassVar

import numpy as np

from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.sealing import SealedChannel
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.agreement import Proposal
from secagg_spec.protocols.codec import Message, vector_from_bytes
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.active import PrivateKeys, PublicKeys, Quorum, SignedSet
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskedUpdate, MaskShare, SurvivingSet
from secagg_spec.protocols.steps import SERVER, Outbox, Role, Step
from tests.stories.ballots import quorum
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import Attempt, RoundPlay, Standing, private_key
from tests.stories.sealed import RECORDER
from tests.stories.view import Row


class LightSecAggPlay(RoundPlay):
    """One story of the semi-honest profile, with sealed channels whose keys stay for the session."""

    phases: tuple[str, ...] = lightsecagg.PHASES
    steps: ClassVar[dict[str, Step[Any]]] = {step.phase: step for step in lightsecagg.TABLE if step.role is Role.USER}

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random, prime=parameters.q, length=parameters.d)
        self.points = parameters.code.columns.astype(object).T.tolist()
        self.dealt = 0
        self.plain: dict[bytes, tuple[int, int]] = {}
        self.opened: set[tuple[int, int]] = set()
        self.mine: set[int] = set()
        self.model_of: dict[int, int] = {}

    def smallest(self) -> int:
        return int(self.parameters.T) + 2

    def enough(self) -> int:
        return int(self.parameters.U)

    def known(self) -> set[int]:
        return self.mine | {symbol for (user, _, _), symbol in self.inputs.items() if user in self.colluders}

    def keys(self, users: Sequence[int]) -> Any:
        return Roster(tuple(public_key(private_key("seal", user, 0)) for user in range(self.N)))

    def start(self, user: int, attempt: Attempt) -> Any:
        context = lightsecagg.sealing_context(self.parameters, *attempt.place)
        channel = SealedChannel(context, private_key("seal", user, 0), attempt.keys)
        return lightsecagg.user_start(self.parameters, *attempt.place, user, self.update(user), channel)

    def copied(self, at: Standing) -> Standing:
        if self.rules.stored or at.state is None:
            return at
        return replace(at, state=self._with_channel(at.state))

    def _with_channel(self, state: Any) -> Any:
        base = self.base(state)
        copied = replace(base, channel=deepcopy(base.channel))
        return copied if state is base else replace(state, base=copied)

    # ------------------------------------------------------------------------------------- what is delivered

    def inbox(self, user: int, at: Standing, letter: Letter) -> Sequence[Message] | None:
        phase, attempt = self.phase(at), self.attempts[at.attempt]
        if phase == "share":
            return ()
        if phase == "upload":
            return self._shares_for(user, at, letter)
        return self._later(user, at, letter, attempt)

    def _shares_for(self, user: int, at: Standing, letter: Letter) -> Sequence[Message]:
        attempt = self.attempts[at.attempt]
        others = [other for other in range(self.N) if other != user]
        if self.honest_server:
            if attempt.sharers is None:
                attempt.sharers = tuple(u for u in range(self.N) if self.sent(MaskShare, u, None, at.attempt, 0))
            senders = [other for other in others if other in attempt.sharers]
            found = [self.first(MaskShare, sender, user, at.attempt) for sender in senders]
        else:
            senders = [other for other in others if other not in letter.without]
            found = [self._share(sender, user, at, letter.age) for sender in senders]
        return [message for message in found if message is not None]

    def _share(self, sender: int, user: int, at: Standing, age: int) -> Message | None:
        """Return the share that the server delivers: one that opens, of this attempt or of another one."""
        session, round = self.attempts[at.attempt].place
        found = self.sent(MaskShare, sender, user, None if age else at.attempt, age)
        for message in (found, self.sent(MaskShare, sender, user, None, 0)):
            if isinstance(message, MaskShare) and self.opens(user, at, message):
                return replace(message, session=session, round=round)
        return None

    def opens(self, user: int, at: Standing, message: MaskShare) -> bool:
        """Return whether a user can open a share."""
        try:
            self.base(at.state).channel.open(message.sender, user, message.payload)
        except ProtocolError:
            return False
        return True

    def _later(self, user: int, at: Standing, letter: Letter, attempt: Attempt) -> Sequence[Message] | None:
        if attempt.announced is None:
            uploaded = (u for u in range(self.N) if self.sent(MaskedUpdate, u, None, at.attempt, 0))
            attempt.announced = tuple(sorted(uploaded))
            enough = max(self.parameters.U, self.parameters.T + 2)
            if len(attempt.announced) < enough:
                attempt.announced = ()
        if user not in attempt.announced:
            return None
        return [SurvivingSet(*attempt.place, SERVER, user, attempt.announced)]

    # ----------------------------------------------------------------------------------------- what is seen

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        phase = at.state.phase
        sampled = self.drawn() if phase == "share" else {}
        state, outbox = self.run(phase, at, inbox, sampled)
        return state, outbox, self.seen(user, at, phase, inbox, outbox, sampled)

    def drawn(self) -> dict[str, Any]:
        """Return a mask and noise, fresh."""
        p = self.parameters
        many = [[self.random.randrange(p.q) for _ in range(p.share_length)] for _ in range(p.T)]
        mask = [self.random.randrange(p.q) for _ in range(p.d)]
        return {"mask": np.array(mask, dtype=np.uint64), "noise": np.array(many, dtype=np.uint64)}

    def seen(
        self,
        user: int,
        at: Standing,
        phase: str,
        inbox: Sequence[Message],
        outbox: Outbox,
        sampled: Mapping[str, Any],
    ) -> Mapping[Any, Any]:
        """Take down what the adversary has of a step, and return the user's shadow after it."""
        if phase == "share":
            return self._dealt(user, at.model, outbox, sampled)
        if phase == "upload":
            kept = {m.sender: self.plain[RECORDER.core(m.payload)][0] for m in inbox if isinstance(m, MaskShare)}
            [message] = outbox
            assert isinstance(message, MaskedUpdate)
            if user not in self.colluders:
                self._masked((user, at.model), at.shadow["own"], message.masked)
            return {**at.shadow, **kept, user: at.shadow["own"]}
        if phase == "recover":
            [answer] = outbox
            assert isinstance(answer, AggregatedShare)
            members = self.answered(at, inbox)
            self.released(at, user, tuple((m, self.model_of[at.shadow[m]], 1) for m in members))
            if user not in self.colluders:
                self.combined(user, [(at.shadow[member], 1) for member in members], answer.share)
        return at.shadow

    def answered(self, at: Standing, inbox: Sequence[Message]) -> tuple[int, ...]:
        """Return the set that an answer is for."""
        [message] = inbox
        assert isinstance(message, SurvivingSet)
        return tuple(message.users)

    def _dealt(self, user: int, model: int, outbox: Outbox, sampled: Mapping[str, Any]) -> Mapping[Any, Any]:
        self.deal(user, model, sampled)
        for message in outbox:
            assert isinstance(message, MaskShare)
            self.payload(self.dealt, message.receiver, message.payload)
        return {"own": self.dealt}

    def deal(self, user: int, model: int, sampled: Mapping[str, Any]) -> None:
        """Make the symbols of a mask that a user shares."""
        self.dealt += 1
        self.model_of[self.dealt] = model
        mask, noise = sampled["mask"].tolist(), sampled["noise"].tolist()
        made = [self.view.symbol(("z", self.dealt, e), value) for e, value in enumerate(mask)]
        made += [
            self.view.symbol(("n", self.dealt, t, e), value)
            for t, row in enumerate(noise)
            for e, value in enumerate(row)
        ]
        if user in self.colluders:
            self.mine.update(made)

    def payload(self, dealt: int, receiver: int, payload: bytes) -> None:
        """Take down a sealed share: colluders open theirs, and all under one key and nonce are open."""
        self.plain[RECORDER.core(payload)] = (dealt, receiver)
        if receiver in self.colluders:
            self._open(RECORDER.core(payload))
        for other in RECORDER.broken(payload):
            self._open(other)

    def _open(self, ciphertext: bytes) -> None:
        dealt, receiver = self.plain[ciphertext]
        if (dealt, receiver) not in self.opened:
            self.opened.add((dealt, receiver))
            self.combined(receiver, [(dealt, 1)], vector_from_bytes(RECORDER.sealed[ciphertext][2]))

    def _masked(self, whose: tuple[int, int], dealt: int, masked: Any) -> None:
        for at, value in enumerate(masked.tolist()):
            mask = self.view.symbol(("z", dealt, at), self._value(("z", dealt, at)))
            self.view.saw({self.inputs[*whose, at]: 1, mask: 1}, value)

    def combined(self, holder: int, terms: Sequence[tuple[int, int]], values: Any) -> None:
        """Take down a weighted sum of shares that one user holds."""
        for at, value in enumerate(values.tolist()):
            row: Row = {}
            for dealt, weight in terms:
                for symbol, factor in self._share_row(dealt, holder, at).items():
                    row[symbol] = row.get(symbol, 0) + weight * factor
            self.view.saw(row, value)

    def _share_row(self, dealt: int, holder: int, at: int) -> Row:
        p, column = self.parameters, self.points[holder]
        parts, length = p.U - p.T, p.share_length
        named = [("z", dealt, part * length + at) for part in range(parts) if part * length + at < p.d]
        symbols = [self._symbol(name) for name in named]
        row = dict(zip(symbols, column, strict=False))
        for t in range(p.T):
            row[self._symbol(("n", dealt, t, at))] = column[parts + t]
        return row

    def _symbol(self, name: Any) -> int:
        return self.view.number(name)

    def _value(self, name: Any) -> int:
        return self.view.values[self.view.number(name)]


class ActivePlay(LightSecAggPlay):
    """One story of the active profile; a user draws a sealing key for each attempt, and signs with one key for ever."""

    phases: tuple[str, ...] = lightsecagg_active.PHASES
    steps: ClassVar[dict[str, Step[Any]]] = {
        step.phase: step for step in lightsecagg_active.TABLE if step.role is Role.USER
    }
    honest_server = False
    told_in = ("confirm",)

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.signatures: dict[tuple[int, ...], dict[int, list[bytes]]] = {}
        self.drawn_keys = dict.fromkeys(range(self.N), 0)

    def smallest(self) -> int:
        return int(self.parameters.W)

    def keys(self, users: Sequence[int]) -> Any:
        for user in users:
            self.drawn_keys[user] += 1
        sealing = tuple(public_key(private_key("seal", user, self.drawn_keys[user])) for user in range(self.N))
        signing = tuple(verification_key(private_key("sign", user, 0)) for user in range(self.N))
        return PublicKeys(Roster(sealing), Roster(signing))

    def start(self, user: int, attempt: Attempt) -> Any:
        keys = PrivateKeys(private_key("seal", user, self.drawn_keys[user]), private_key("sign", user, 0))
        return lightsecagg_active.user_start(
            self.parameters, *attempt.place, user, self.update(user), keys, attempt.keys
        )

    def _later(self, user: int, at: Standing, letter: Letter, attempt: Attempt) -> Sequence[Message] | None:
        header = (*attempt.place, SERVER, user)
        if self.phase(at) == "confirm":
            return [SurvivingSet(*header, letter.received)] if letter.received else None
        members = tuple(at.state.announced.users)
        shown = self._quorum(at, members)
        return [Quorum(*header, tuple(shown), b"".join(shown.values()))]

    def can_end(self, at: Standing) -> bool:
        members = tuple(at.state.announced.users)
        signed = set(self.signatures.get(members, {})) | (self.colluders & set(members))
        return len(signed) >= int(self.parameters.W)

    def _quorum(self, at: Standing, members: tuple[int, ...]) -> dict[int, bytes]:
        """Return, for each member, a signature that the user will take: of all that were ever seen, or a colluder's."""
        seen = self.signatures.get(members, {})
        return quorum(at.state.ballot, Proposal(members), members, seen, self.colluders)

    def seen(
        self,
        user: int,
        at: Standing,
        phase: str,
        inbox: Sequence[Message],
        outbox: Outbox,
        sampled: Mapping[str, Any],
    ) -> Mapping[Any, Any]:
        if phase != "confirm":
            return super().seen(user, at, phase, inbox, outbox, sampled)
        [received], [signed] = inbox, outbox
        assert isinstance(received, SurvivingSet)
        assert isinstance(signed, SignedSet)
        known = self.signatures.setdefault(tuple(received.users), {}).setdefault(user, [])
        if signed.signature not in known:
            known.append(signed.signature)
        return at.shadow

    def answered(self, at: Standing, inbox: Sequence[Message]) -> tuple[int, ...]:
        return tuple(at.state.announced.users)
