"""Both profiles of LightSecAgg at once: some users begin a round in one, some in the other, with the same keys.

The server tells users which profile a round has, and delivers what it likes of all messages that it ever saw. The
semi-honest profile promises nothing against such a server: the inputs that users bring to it count as known here. What
must not come out is an input of the active profile, beyond what its users answered for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from secagg_spec.crypto.sealing import Context, SealedChannel
from secagg_spec.errors import ProtocolError
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import AggregatedShare, MaskShare, SurvivingSet
from secagg_spec.protocols.steps import Outbox
from tests.stories.letters import Letter, Rules
from tests.stories.lightsecagg import ActivePlay, LightSecAggPlay
from tests.stories.rounds import Attempt, Standing, private_key


class MixedPlay(ActivePlay):
    """One story; the users that a letter begins `without` begin the round in the semi-honest profile."""

    def __init__(self, parameters: Any, rules: Rules, random: Random) -> None:
        super().__init__(parameters, rules, random)
        self.plain_users: frozenset[int] = frozenset()
        self.exposed: set[tuple[int, int]] = set()

    def known(self) -> set[int]:
        exposed = {symbol for (user, model, _), symbol in self.inputs.items() if (user, model) in self.exposed}
        return super().known() | exposed

    def _begin(self, random: Random) -> Letter:
        letter = super()._begin(random)
        count = random.choice((0, 2, 2, 3))
        return replace(letter, without=tuple(sorted(random.sample(self.honest, count))))

    def _begun(self, letter: Letter) -> bool:
        self.plain_users = frozenset(letter.without) & set(letter.users)
        for user in self.plain_users:
            self.retrained(user)
        done = super()._begun(letter)
        for user in self.plain_users if done else ():
            self.exposed.add((user, self.models[user]))
            self.retrained(user)
        return done

    def start(self, user: int, attempt: Attempt) -> Any:
        if user not in self.plain_users:
            return super().start(user, attempt)
        context = lightsecagg.sealing_context(self.parameters, *attempt.place)
        channel = SealedChannel(context, private_key("seal", user, self.drawn_keys[user]), attempt.keys.sealing)
        return lightsecagg.user_start(self.parameters, *attempt.place, user, self.update(user), channel)

    def phase(self, at: Standing) -> str:
        """Return the step of the active profile that stands where a user is: a plain one answers at once."""
        return "confirm" if self._is_plain(at) and at.state.phase == "recover" else super().phase(at)

    def _likely(self, at: Standing, user: int) -> list[tuple[int, ...]]:
        held = tuple(sorted(member for member in at.shadow if isinstance(member, int)))
        all_held = [held] if self._is_plain(at) and len(held) > self.parameters.T + 1 else []
        return [*super()._likely(at, user), *all_held]

    def _is_plain(self, at: Standing) -> bool:
        return isinstance(at.state, lightsecagg.UserState)

    def _share(self, sender: int, user: int, at: Standing, age: int) -> Message | None:
        session, round = self.attempts[at.attempt].place
        channel = at.state.channel if self._is_plain(at) else at.state.base.channel
        for attempt, back in ((None if age else at.attempt, age), (None, 0)):
            message = self.sent(MaskShare, sender, user, attempt, back)
            if isinstance(message, MaskShare):
                try:
                    channel.open(sender, user, message.payload)
                except ProtocolError:
                    continue
                return replace(message, session=session, round=round)
        return None

    def step(self, user: int, at: Standing, inbox: Sequence[Message]) -> tuple[Any, Outbox, Mapping[Any, Any]]:
        if not self._is_plain(at):
            return super().step(user, at, inbox)
        phase = at.state.phase
        sampled = self.drawn() if phase == "share" else {}
        state, outbox = LightSecAggPlay.steps[phase].take(at.state, inbox, randomness=sampled)
        if phase != "recover":
            return state, outbox, LightSecAggPlay.seen(self, user, at, phase, inbox, outbox, sampled)
        [announced], [answer] = inbox, outbox
        assert isinstance(announced, SurvivingSet)
        assert isinstance(answer, AggregatedShare)
        if user not in self.colluders:
            self.combined(user, [(at.shadow[member], 1) for member in announced.users], answer.share)
        return state, outbox, at.shadow


_bound = lightsecagg_active.binding_context


def bound_alike(parameters: Any, session: bytes, round: int, kind: type[Message], sealing: Any) -> Context:
    """Stands in for `binding_context` in a hole: seals of the active profile are bound as in the other one."""
    if kind is MaskShare:
        return lightsecagg.sealing_context(parameters, session, round)
    return _bound(parameters, session, round, kind, sealing)
