"""One party of a session of BASA: what arrives there, and what it knows before each of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

from secagg_spec.conformance.capabilities import Capabilities
from secagg_spec.conformance.checks import basa_visits
from secagg_spec.conformance.checks.basa_cast import Cast
from secagg_spec.conformance.checks.basa_visits import Director, Moment
from secagg_spec.conformance.checks.dealt_scenes import Scene
from secagg_spec.conformance.checks.requests import Valid
from secagg_spec.conformance.targets.reference_scripts import Call
from secagg_spec.protocols.basa_messages import PositionUpload
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.shape import AUTHORITY, SERVER

USER, SERVED, KEYS = "basa.user", "basa.server", "basa.authority"
PARTIES = (USER, SERVED, KEYS)


@dataclass(frozen=True, eq=False)
class Part(Scene):
    """One party of a session, and what it knows before each of its steps and in the end.

    `late` are uploads that came when their offer had expired, each with the number of the server's step before which
    they may come. `steps` are the party's steps, where they are others than those that it took in the session.
    """

    moments: tuple[Moment, ...] = ()
    sent: tuple[Message, ...] = ()
    late: tuple[tuple[int, PositionUpload], ...] = ()
    steps: tuple[Call, ...] | None = None

    @cached_property
    def cast(self) -> Cast:
        """Everybody else."""
        return Cast(self.deal)

    def calls(self) -> list[Call]:
        """Return the steps."""
        return super().calls() if self.steps is None else list(self.steps)

    def when(self, holds: Callable[[Moment], bool]) -> list[int]:
        """Return the numbers of the steps before which a moment has some property; that of the end is the last one."""
        return [at for at, moment in enumerate(self.moments) if holds(moment)]

    def taking(self, phase: str) -> list[int]:
        """Return the numbers of the steps of a phase."""
        return [at for at, event in enumerate(self.events()) if event.step.phase == phase]

    def uploads(self, moment: Moment) -> list[PositionUpload]:
        """Return the accepted uploads of an epoch, by position."""
        return [self.upload(moment.epoch, position, user) for position, user in moment.accepted]

    def upload(self, epoch: int, position: int, user: int) -> PositionUpload:
        """Return the upload of a user at a position."""
        [found] = [
            message
            for message in self.sent
            if isinstance(message, PositionUpload)
            and (message.round, message.position, message.sender) == (epoch, position, user)
        ]
        return found

    def made(self, user: int, moment: Moment, **changes: Any) -> PositionUpload:
        """Return a right upload of any user at the position of a moment, signed, perhaps with other fields."""
        numbers = self.deal.numbers
        masked = np.zeros(numbers["d"], np.uint64)
        right = self.cast.upload(user, moment.epoch, moment.position, moment.epoch, int(numbers["c_g"]), masked)
        return self.cast.signed(right, **changes) if changes else right

    def signers(self) -> list[int]:
        """Return the users whose signing keys the kit holds."""
        return self.deal.users


def part_of(director: Director, party: int) -> Part:
    """Return a party of a session."""
    stage = director.stage
    moments = (*director.moments.get(party, ()), director.knows(party))
    late = tuple((at, message) for at, message in director.late if isinstance(message, PositionUpload))
    return Part(stage.deal, party, stage.network(), moments, tuple(stage.sent.values()), late)


Session = Callable[..., Director]


def user_part(draw: Any, *, session: Session = basa_visits.session, **given: Any) -> Part:
    """Draw a user that uploaded in the last epoch."""
    director = session(draw, **given)
    served = director.knows(SERVER)
    user = int(draw(st.sampled_from([user for _, user in served.accepted] or director.stage.deal.users)))
    return part_of(director, user)


def server_part(draw: Any, *, session: Session = basa_visits.session, **given: Any) -> Part:
    """Draw a server."""
    return part_of(session(draw, **given), SERVER)


def authority_part(draw: Any, *, session: Session = basa_visits.session, **given: Any) -> Part:
    """Draw an authority."""
    return part_of(session(draw, **given), AUTHORITY)


PARTS: Mapping[str, Callable[..., Part]] = {USER: user_part, SERVED: server_part, KEYS: authority_part}


def begun(draw: Any, party: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a script of a party that is right: its params, and what it samples."""
    part = PARTS[party](draw)
    return part.params(part.calls()), part.deal.rand(part.party)


def _valid(party: str) -> Callable[[Any, Capabilities], Valid]:
    return lambda draw, caps: Valid(*begun(draw, party))


VALID: dict[str, Callable[[Any, Capabilities], Valid]] = {party: _valid(party) for party in PARTIES}
