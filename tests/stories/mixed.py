"""Both profiles of a protocol at once: some users begin a round in one, some in the other, with the same keys.

The server tells users which profile a round has, and delivers what it likes of all messages that it ever saw. The
semi-honest profile promises nothing against such a server: the inputs that users bring to it count as known here. What
must not come out is an input of the active profile, beyond what its users answered for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any, ClassVar

from secagg_spec.crypto.sealing import Context, SealedChannel, SealedStampedChannel
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.basecagg import active as basecagg_active
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import MaskShare
from secagg_spec.protocols.steps import Outbox, ProfileState
from tests.stories import basecagg as in_basecagg
from tests.stories import lightsecagg as in_lightsecagg
from tests.stories import secagg as in_secagg
from tests.stories.letters import Letter, Rules
from tests.stories.rounds import Attempt, RoundPlay, Standing, Sum, private_key


class Mixing(RoundPlay):
    """What stands before the play of an active profile: users that a letter begins `without` follow the other one.

    `semi_honest` is the play of the semi-honest profile. Such a user answers as soon as it has a set.
    """

    semi_honest: ClassVar[type[RoundPlay]]

    def is_plain(self, at: Standing) -> bool:
        """Return whether a user follows the semi-honest profile."""
        return at.state is not None and not isinstance(at.state, ProfileState)

    def known(self) -> set[int]:
        exposed = {(user, attempt.models[user]) for attempt in self.attempts for user in attempt.plain}
        return super().known() | {at for (user, model, _), at in self.inputs.items() if (user, model) in exposed}

    def _begin(self, random: Random) -> Letter:
        letter = super()._begin(random)
        count = random.choice((0, 2, 2, 3, 4))
        return replace(letter, without=tuple(sorted(random.sample(self.honest, count))))

    def _begun(self, letter: Letter) -> bool:
        plain = set(letter.without) & set(letter.users)
        for user in plain:
            self.retrained(user)
        done = super()._begun(letter)
        for user in plain if done else ():
            self.retrained(user)
        return done

    def phase(self, at: Standing) -> str:
        """Return the step of the active profile that stands where a user is."""
        plainly = self.is_plain(at) and at.state.phase == self.phases[-1]
        return self.told_in[0] if plainly else super().phase(at)

    def run(self, name: str, at: Standing, inbox: Sequence[Message], sampled: Mapping[str, Any]) -> tuple[Any, Outbox]:
        if not self.is_plain(at):
            return super().run(name, at, inbox, sampled)
        return self.semi_honest.steps[name].take(at.state, inbox, randomness=sampled)

    def released(self, at: Standing, user: int, total: Sum, slot: int = 0) -> None:
        if not self.is_plain(at):
            super().released(at, user, total, slot)


class LightSecAggPlay(Mixing, in_lightsecagg.ActivePlay):
    """One story of LightSecAgg."""

    semi_honest = in_lightsecagg.LightSecAggPlay

    def start(self, user: int, attempt: Attempt) -> Any:
        if user not in attempt.plain:
            return super().start(user, attempt)
        context = lightsecagg.sealing_context(self.parameters, *attempt.place)
        channel = SealedChannel(context, private_key("seal", user, self.drawn_keys[user]), attempt.keys.sealing)
        return lightsecagg.user_start(self.parameters, *attempt.place, user, self.update(user), channel)

    def _likely(self, at: Standing, user: int) -> list[tuple[int, ...]]:
        held = tuple(sorted(member for member in at.shadow if isinstance(member, int)))
        all_held = [held] if self.is_plain(at) and len(held) > self.parameters.T + 1 else []
        return [*super()._likely(at, user), *all_held]

    def answered(self, at: Standing, inbox: Sequence[Message]) -> tuple[int, ...]:
        if not self.is_plain(at):
            return super().answered(at, inbox)
        return in_lightsecagg.LightSecAggPlay.answered(self, at, inbox)


class SecAggPlay(Mixing, in_secagg.ActivePlay):
    """One story of SecAgg: all users sign the keys that they advertise, and hear of the profile then."""

    semi_honest = in_secagg.SecAggPlay

    def _neighbours(self, user: int, place: tuple[bytes, int], keys: Sequence[Any]) -> Message:
        if not self.is_plain(self.standing[user]):
            return super()._neighbours(user, place, keys)
        return in_secagg.SecAggPlay._neighbours(self, user, place, keys)

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        state, outbox, shadow = super().step(user, at, inbox)
        attempt = self.attempts[at.attempt]
        if user in attempt.plain and at.state.phase == "advertise_keys":
            state = replace(state.base, round=in_secagg.SecAggPlay.start(self, user, attempt).round)
        return state, outbox, shadow


class BASecAggPlay(Mixing, in_basecagg.BASecAggPlay):
    """One story of BASecAgg."""

    semi_honest = in_basecagg.HonestPlay

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.without_signatures = without_signatures(parameters)
        self.opened_by: dict[tuple[int, bytes], bool] = {}

    def start(self, user: int, attempt: Attempt) -> Any:
        if user not in attempt.plain:
            return super().start(user, attempt)
        p, session = self.without_signatures, self._session(attempt)
        private = private_key("seal", user, self.drawn_keys[user])
        channel = SealedStampedChannel(basecagg.sealing_context(p, session), private, attempt.keys.sealing)
        return basecagg.user_start(p, session, 0, user, channel)

    def trained(self, state: Any, update: Any) -> Any:
        profile = basecagg_active if isinstance(state, ProfileState) else basecagg
        return profile.user_trained(state, update)

    def _unseen(self, user: int, at: Standing) -> list[Any]:
        return [message for message in super()._unseen(user, at) if self._opens(user, at, message)]

    def _opens(self, user: int, at: Standing, message: Any) -> bool:
        """Return whether a user can open a share; a server that delivered any other would only be refused."""
        asked = at.attempt, message.payload
        if asked not in self.opened_by:
            try:
                self.base(at.state).channel.open(message.round, message.sender, user, message.payload)
            except ProtocolError:
                self.opened_by[asked] = False
            else:
                self.opened_by[asked] = True
        return self.opened_by[asked]

    def _confirm(self, user: int, at: Standing, letter: Letter) -> Standing | None:
        if not self.is_plain(at):
            return super()._confirm(user, at, letter)
        message = self._made_up(user, at, letter)
        return None if message is None else replace(at, state=self._answer(user, at, message)[0])


def without_signatures(parameters: Any) -> basecagg.Parameters:
    """Return the parameters of the semi-honest profile of BASecAgg: those of the active one without W."""
    names = [entry.name for entry in fields(basecagg.Parameters)]
    return basecagg.Parameters(**{name: getattr(parameters, name) for name in names})


_bound = lightsecagg_active.binding_context


def bound_alike(parameters: Any, session: bytes, round: int, kind: type[Message], sealing: Any) -> Context:
    """Stands in for `binding_context` in a hole: seals of the active profile are bound as in the other one."""
    if kind is MaskShare:
        return lightsecagg.sealing_context(parameters, session, round)
    return _bound(parameters, session, round, kind, sealing)


def buffers_bound_alike(parameters: Any, session: bytes, sealing: Any) -> Context:
    """Stands in for `sealing_context` of BASecAgg in a hole: the same for seals, and so for the ballot."""
    return basecagg.sealing_context(without_signatures(parameters), session)
