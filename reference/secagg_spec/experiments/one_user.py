"""A single user of a protocol: it receives the messages of a whole run, and its own steps are timed.

A whole run costs as much as all its users together. With a thousand users it is enough to measure one of them.

Source: spec/experiments.md, section 5 (EXP-20); BASA, section 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secagg_spec.arithmetic.validate import frozen
from secagg_spec.crypto.boxes import PAIR, KeyRing
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.prg import KEY_BYTES
from secagg_spec.crypto.sealing import SealedStampedChannel
from secagg_spec.experiments.costs import Timed
from secagg_spec.protocols.basa import cores as basa_cores
from secagg_spec.protocols.basa.authority import AuthorityState
from secagg_spec.protocols.basa.messages import EpochKeys, PositionKey, PositionOffer, digests
from secagg_spec.protocols.basa.runs import draw_hidden, draw_signing_keys, open_session
from secagg_spec.protocols.basa.user import UserState, user_trained
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg.round import BufferedSet, ModelStamp, StampedShare
from secagg_spec.protocols.codec import Message, vector_bytes
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Randomness, Role, Step, Table

_SESSION, _SEED = bytes(16), b"one user"


@dataclass(frozen=True, eq=False)
class Alone:
    """A user before its first step, the messages that it will receive, and the phases that it goes through."""

    table: Table
    user: int
    state: Any
    mail: tuple[Message, ...]
    phases: Mapping[str, Randomness]

    def seconds(self) -> float:
        """Return the processor time of its steps, in seconds; the steps change no state here."""
        network = Timed(self.table, {self.user: self.state}, {self.user: list(self.mail)})
        rows = {step.phase: step for step in self.table if step.role is Role.USER}
        for phase, sampled in self.phases.items():
            network.take(rows[phase], self.user, sampled)
        return sum(one.seconds for one in network.spent)


# ------------------------------------------------------------------------------------------------------------ BASA


def user_of_basa(p: basa_cores.Parameters, ring: KeyRing, at: int) -> Alone:
    """Return the user at a position, for which earlier users sealed boxes; user k is at position k."""
    source = SeededSource(_SEED, f"visit {at}")
    network = open_session(p, draw_signing_keys(p, source), session=_SESSION, ring=ring, round=0)
    rows = {(step.phase, step.role): step for step in network.table}
    state: AuthorityState = network.states[AUTHORITY]
    hidden = draw_hidden(p, rows["open", Role.AUTHORITY], source)
    state, (opened,) = rows["open", Role.AUTHORITY].take(state, (), randomness=hidden)
    assert isinstance(opened, EpochKeys)
    mail = _of_position(state, opened, p, rows, at, source)
    user: UserState = user_trained(network.states[at], p.ring.zeros(p.d), 0)
    sampled = {**draw_hidden(p, rows["upload", Role.USER], source), "rounding": 0.5}
    return Alone(network.table, at, user, mail, {"request": {}, "fetch": {}, "upload": sampled})


def _of_position(
    state: AuthorityState,
    opened: EpochKeys,
    p: basa_cores.Parameters,
    rows: Mapping[tuple[str, Role], Step[Any]],
    at: int,
    source: SeededSource,
) -> tuple[Message, ...]:
    """Return the offer of a position and its key; the predecessors only sealed their boxes to this key."""
    session, encryption = state.session, state.ring.encryption
    upload, before = rows["upload", Role.USER], np.arange(at, dtype=np.uint64)
    sampled = [draw_hidden(p, upload, source)[encryption.samples] for _ in range(at)]
    boxes = [
        encryption.seal(session.address(0, k, k, at), opened.keys, bytes(KEY_BYTES), sampled[k]) for k in range(at)
    ]
    issued = draw_hidden(p, rows["issue", Role.AUTHORITY], source)
    (key,) = state.ring.secrets(session.epoch(0), ((PAIR, at),), tuple(issued.values()))
    return (
        PositionOffer(_SESSION, 0, SERVER, at, at, opened.keys, opened.signature, b"".join(boxes)),
        PositionKey(_SESSION, 0, AUTHORITY, at, at, before, before, digests(boxes), key),
    )


# --------------------------------------------------------------------------------------------------------- BASecAgg


class UserOfBASecAgg:
    """User 0: it shares its mask, stores the shares of the other K - 1 users of a buffer, uploads and answers.

    Users agree on keys once in a session, so the first of several runs takes longer than the others.
    """

    def __init__(self, p: basecagg.Parameters) -> None:
        self.parameters = p
        source = SeededSource(_SEED, "keys")
        privates = [source.take(KEY_BYTES) for _ in range(p.N)]
        roster, context = Roster(tuple(map(public_key, privates))), basecagg.sealing_context(p, _SESSION)
        self._channels = [SealedStampedChannel(context, private, roster) for private in privates[: p.K]]
        self._source, self._round = source, 0

    def next(self) -> Alone:
        """Return the user in the next round."""
        p, at = self.parameters, self._round
        self._round += 1
        state = replace(basecagg.user_start(p, _SESSION, at, 0, self._channels[0]), update=frozen(p.field.zeros(p.d)))
        field, draw = p.field, self._source
        sampled = {
            "mask": draw_elements(draw, field, (p.d,)),
            "noise": draw_elements(draw, field, (p.T, p.share_length)),
        }
        mail = (ModelStamp(_SESSION, at, SERVER, 0), *self._shares(at), self._buffer(at))
        return Alone(
            basecagg.TABLE, 0, state, mail, {"request": {}, "share": sampled, "hold": {}, "upload": {}, "recover": {}}
        )

    def _shares(self, at: int) -> Sequence[Message]:
        share = vector_bytes(self.parameters.field.zeros(self.parameters.share_length))
        others = list(enumerate(self._channels))[1:]
        return [StampedShare(_SESSION, at, user, 0, channel.close(at, user, 0, share)) for user, channel in others]

    def _buffer(self, at: int) -> Message:
        p = self.parameters
        users, stamps = tuple(range(p.K)), np.full(p.K, at, np.uint64)
        return BufferedSet(_SESSION, at, SERVER, 0, users, stamps, np.full(p.K, p.c_g, np.uint64))
