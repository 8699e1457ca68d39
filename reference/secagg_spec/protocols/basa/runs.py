"""Whole runs of BASA among honest parties, a server, an authority and N users, turn by turn.

Source: spec/basa.md, sections 3 and 4; spec/adapter.md (`basa.epochs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secagg_spec import errors
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import entropy
from secagg_spec.crypto.boxes import KeyRing, PositionKeys
from secagg_spec.crypto.keys import Roster
from secagg_spec.crypto.prg import KEY_BYTES, check_key
from secagg_spec.crypto.signatures import verification_key
from secagg_spec.protocols import steps
from secagg_spec.protocols.basa.authority import authority_start
from secagg_spec.protocols.basa.cores import Parameters
from secagg_spec.protocols.basa.round import table_of
from secagg_spec.protocols.basa.server import Entry, Recovered, ServerState, server_start
from secagg_spec.protocols.basa.user import user_start, user_trained
from secagg_spec.protocols.buffers import check_rounding


@dataclass(frozen=True)
class SigningKeys(validate.Plain):
    """The private signing keys of the N users and of the authority; errors are those of `prg.check_key`."""

    users: tuple[bytes, ...] = field(repr=False)
    authority: bytes = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for user, key in enumerate(validate.sequence("users", self.users, "signing keys")):
            check_key(f"users[{user}]", key)
        check_key("authority", self.authority)

    def verification(self) -> Roster:
        """Return the verification keys of the users."""
        return Roster(tuple(verification_key(key) for key in self.users))


@dataclass(frozen=True, eq=False)
class Outcome(validate.Plain):
    """The outcome of an epoch: the accepted updates, and the sum if there is one."""

    epoch: int
    entries: tuple[Entry, ...] = ()
    recovered: Recovered | None = None


def open_session(
    parameters: Parameters,
    keys: SigningKeys,
    *,
    session: bytes,
    round: int,
    ring: KeyRing | None = None,
) -> steps.Network:
    """Return the network of a session before its first step.

    Parameters
    ----------
    parameters : Parameters
    keys : SigningKeys
    session : bytes
        The session id, 16 bytes.
    round : int
        The first epoch.
    ring : KeyRing
        How the authority makes keys; the default is one key pair for each position.
    """
    made = PositionKeys() if ring is None else ring
    if len(validate.sequence("keys", keys.users, "signing keys")) != parameters.N:
        raise errors.LengthMismatch("len(keys.users)", len(keys.users), f"N = {parameters.N}")
    verification = keys.verification()
    authority = authority_start(
        parameters, session, round, signing=keys.authority, verification=verification, ring=made
    )
    public: dict[str, Any] = {
        "verification": verification,
        "authority": authority.session.authority,
        "encryption": made.encryption,
    }
    states: dict[int, object] = {steps.AUTHORITY: authority}
    states[steps.SERVER] = server_start(parameters, session, round - 1 if round else None, **public)
    for user in range(parameters.N):
        states[user] = user_start(parameters, session, user, signing=keys.users[user], **public)
    return steps.Network(table_of(made), states)


def draw_signing_keys(parameters: Parameters, source: entropy.Source) -> SigningKeys:
    """Draw the signing keys of all users and of the authority."""
    return SigningKeys(
        tuple(entropy.taken(source, KEY_BYTES) for _ in range(parameters.N)), entropy.taken(source, KEY_BYTES)
    )


def draw_hidden(parameters: Parameters, step: steps.Step[Any], source: entropy.Source) -> steps.Randomness:
    """Draw the sampled values of a step, except the rounding (section 10)."""
    p, released = parameters, parameters.positions * parameters.settle
    lengths = {"pair_keys": p.positions, "self_keys": released, "seeds": p.positions, "box_key": 1}
    scalars = {"box_secrets": p.positions, "key_blindings": 2 * (released if step.phase == "close" else 1)}
    return {
        name: entropy.draw_scalars(source, scalars[name])
        if name in scalars
        else entropy.taken(source, KEY_BYTES * lengths[name])
        for name in step.randomness
        if name != "rounding"
    }


class Run:
    """A session whose turns are taken one by one; keys and seeds, which only hide, are drawn from a source.

    The first epoch is open from the beginning. After an epoch has ended, the first turn that needs an epoch opens the
    next one. If a party refuses a turn, the turn raises the party's error and ends the run.

    Parameters
    ----------
    parameters : Parameters
    source : Source
        The source of keys and seeds.
    session, round
        The session id (16 bytes), and the first epoch.
    ring : KeyRing
        How the authority makes keys; the default is one key pair for each position.

    Raises
    ------
    ParameterError
        The parameters, the source, the session id, the first epoch or the ring do not fit.
    """

    def __init__(
        self,
        parameters: Parameters,
        source: entropy.Source,
        *,
        session: bytes,
        round: int,
        ring: KeyRing | None = None,
    ) -> None:
        self.parameters = parameters
        entropy.check_source(source)
        self.source = source
        keys = draw_signing_keys(parameters, source)
        self.network = open_session(parameters, keys, session=session, round=round, ring=ring)
        self._rows: Mapping[tuple[str, steps.Role], steps.Step[Any]] = {
            (step.phase, step.role): step for step in self.network.table
        }
        self._outcomes: dict[int, Outcome] = {}
        self._open()

    @property
    def server(self) -> ServerState:
        """The state of the server."""
        state: ServerState = self.network.states[steps.SERVER]
        return state

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each opened epoch, in order; the last epoch may still be open."""
        return tuple(self._outcomes.values())

    @property
    def transcript(self) -> Sequence[steps.Event]:
        """Every step that was taken."""
        return self.network.transcript

    def upload(self, user: int, update: UintArray, stamp: int, rounding: float) -> None:
        """Let a user get an offer for the position, fetch its key and upload; the upload is taken and settled.

        `rounding` is a multiple of 2**-53 in ``[0, 1)``; any other is refused with `OutOfRange` before a step is taken.
        """
        _check_draw(rounding)
        self._offer(user, update, stamp)
        self._key(user)
        self._step("upload", user, rounding=rounding)
        self._step("take", steps.SERVER)
        self._settle()

    def expire(self, user: int, stamp: int, *, keyed: bool) -> None:
        """Let a user get an offer for the position, fetch the key if `keyed`, and do nothing; the offer expires.

        Raises `ParameterError` if `keyed` is no truth value.
        """
        self._offer(user, self.parameters.ring.zeros(self.parameters.d), stamp)
        if keyed:
            self._key(user)
        self._step("expire", steps.SERVER)
        self._settle()
        self.network.waiting.clear()

    def late(self, user: int, update: UintArray, stamp: int, rounding: float) -> None:
        """Let a user upload after its offer has expired: the server refuses, and the run goes on.

        `rounding` is as in `upload`.
        """
        _check_draw(rounding)
        self._offer(user, update, stamp)
        self._key(user)
        self._step("upload", user, rounding=rounding)
        self._step("expire", steps.SERVER)
        self._settle()
        try:
            self._step("take", steps.SERVER)
        except errors.ProtocolError:
            self.network.waiting.clear()
        else:
            raise AssertionError("the server took an upload whose offer had expired")

    def close(self) -> Recovered:
        """Let the server close its buffer and recover the sum."""
        self._open()
        for phase, party in (("close", steps.SERVER), ("close", steps.AUTHORITY), ("recover", steps.SERVER)):
            self._step(phase, party)
        recovered = self.server.recovered
        assert recovered is not None
        self._outcomes[recovered.epoch] = Outcome(recovered.epoch, recovered.entries, recovered)
        return recovered

    def abandon(self) -> None:
        """Let the server give up the epoch."""
        self._step("abandon", steps.SERVER)
        self._step("abandon", steps.AUTHORITY)

    def _open(self) -> None:
        """Open the next epoch if none is open."""
        if self.server.phase == "idle":
            self._step("open", steps.AUTHORITY)
            self._step("open", steps.SERVER)
            self._note()

    def _offer(self, user: int, update: UintArray, stamp: int) -> None:
        (user,) = validate.users("user", (validate.integer("user", user, 0),), self.parameters.N)
        self._open()
        self.network.states[user] = user_trained(self.network.states[user], update, stamp)
        for phase, party in (("request", user), ("offer", steps.SERVER), ("assign", steps.AUTHORITY)):
            self._step(phase, party)

    def _key(self, user: int) -> None:
        self._step("fetch", user)
        self._step("issue", steps.AUTHORITY)

    def _settle(self) -> None:
        self._step("settle", steps.AUTHORITY)
        self._step("settle", steps.SERVER)
        self._note()

    def _note(self) -> None:
        """Keep a record of the contents of the open epoch's buffer."""
        state = self.server
        if state.phase != "idle":
            assert state.epoch is not None
            self._outcomes[state.epoch] = Outcome(state.epoch, state.entries)

    def _step(self, phase: str, party: int, **given: Any) -> None:
        step = self._rows[phase, steps.role_of(party)]
        self.network.take(step, party, {**draw_hidden(self.parameters, step, self.source), **given})


def _check_draw(rounding: float) -> None:
    """Refuse what is no draw of a weight."""
    if not isinstance(rounding, float):
        raise errors.ParameterError("rounding", validate.class_of(rounding), "a float, a multiple of 2**-53 in [0, 1)")
    check_rounding("rounding", np.array([rounding]), 1)


guard(__name__)
