"""Decide which answers a lying server gets in the active profile of BASecAgg, and what they reveal.

The steps that run decide who signs and who answers. The server is given every advantage. Colluding users sign anything
the server asks for. Each honest user is shown a quorum before the next buffer is announced to it. A quorum holds all
signatures that are valid for a buffer, even those made for another buffer, since an additional signature never makes
an honest user refuse.

Source: spec/basecagg.md, section 11 (BSA-37 to BSA-46).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.privacy.basecagg import (
    Buffer,
    Column,
    Stamped,
    announcement,
    check_lie,
    decide_answers,
    holding,
    parameters_of,
)
from secagg_spec.privacy.lightsecagg import Users
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.protocols.agreement import sign_proposal
from secagg_spec.protocols.basecagg import active as protocol
from secagg_spec.protocols.basecagg.active import BufferQuorum, Parameters, SignedBuffer, UserState
from secagg_spec.protocols.lightsecagg.active import PrivateKeys, roster_of_users
from secagg_spec.protocols.steps import SERVER

Buffers = tuple[Buffer, ...]
_SESSION = bytes(16)


class Confirmations:
    """Users that hold the shares of updates and wait for buffers; each question starts from fresh users.

    Parameters
    ----------
    parameters : Parameters
        The parameters of a session; its keys do not matter.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        users = range(parameters.N)
        self.keys = {user: PrivateKeys(_key("sealing", user), _key("signing", user)) for user in users}
        roster = roster_of_users(parameters.N, self.keys)
        self.waiting = {
            user: protocol.user_start(parameters, _SESSION, 0, user, self.keys[user], roster) for user in users
        }
        self.signature = cache(self._signature)
        self.heard = cache(self._heard)

    def _signature(self, user: int, buffer: Buffer) -> bytes:
        """Return the signature of a user that signs any buffer."""
        proposal = protocol.proposal_of(self.parameters, buffer.entries)
        ballot = protocol.ballot_of(self.parameters, _SESSION, buffer.round, self.waiting[user].roster)
        return sign_proposal(ballot, self.keys[user].signing, user, proposal)

    def _heard(self, user: int, received: Buffers, quorums: tuple[Users, ...]) -> tuple[Buffers, Buffers]:
        """Return the buffers that an honest user signs, and those that it answers.

        The buffers are announced one after the other. The user receives the share of an update before the first buffer
        that names the update. After each buffer it is shown a quorum: the signatures of some users on this buffer.
        """
        state, given = self.waiting[user], set[Stamped]()
        signed, answered = list[Buffer](), list[Buffer]()
        for buffer, signers in zip(received, quorums, strict=True):
            state = replace(state, base=holding(state.base, set(buffer.updates) - given))
            given.update(buffer.updates)
            confirmed = self._confirmed(state, buffer)
            signed += [buffer] if confirmed else []
            released = self._released(confirmed or state, buffer, signers)
            answered += [buffer] if released else []
            state = released or confirmed or state
        return tuple(signed), tuple(answered)

    def _confirmed(self, state: UserState, buffer: Buffer) -> UserState | None:
        """Return the state of a user after it signed a buffer, or None if it refuses."""
        message = announcement(state.base, buffer)
        try:
            after, (signed,) = protocol.user_confirm.take(state, (message,), randomness={})
        except ProtocolError:
            return None
        assert isinstance(signed, SignedBuffer)
        assert signed.signature == self.signature(state.base.user, buffer)
        return after

    def _released(self, state: UserState, buffer: Buffer, signers: Users) -> UserState | None:
        """Return the state of a user that answered after seeing these signatures, or None if it refuses."""
        signatures = b"".join(self.signature(signer, buffer) for signer in signers)
        message = BufferQuorum(_SESSION, buffer.round, SERVER, state.base.user, signers, signatures)
        try:
            return protocol.user_recover.take(state, (message,), randomness={})[0]
        except ProtocolError:
            return None

    def signed(self, user: int, received: Sequence[Buffer]) -> Buffers:
        """Return the buffers that an honest user signs when `received` are announced to it one after another.

        Raises `UnknownUser` for a user outside of [0, N), and `ParameterError` for what is no buffer.
        """
        (user,) = validate.users("user", (user,), self.parameters.N)
        received = validate.sequence("received", received, "Buffer")
        return self.heard(user, tuple(received), ((),) * len(received))[0]

    def _valid(self, user: int, signed: Buffers, buffer: Buffer) -> bool:
        """Return whether a signature that a user made on one of the `signed` buffers is also valid for `buffer`."""
        return any(self.signature(user, one) == self.signature(user, buffer) for one in signed)

    def released(self, coalition: Collection[int], asked: Mapping[int, Sequence[Buffer]]) -> dict[int, Buffers]:
        """Return the honest users that answer, each with the buffers that it answers.

        Parameters
        ----------
        coalition : collection of int
            The users that work with the server.
        asked : mapping from user to sequence of Buffer
            The buffers announced to each honest user, in order.

        Raises
        ------
        ParameterError
            No user is asked, or a member of the coalition is, or a user outside the roster; or a user is asked for what
            is no buffer.
        """
        members = check_lie(self.parameters.N, coalition, asked)
        named = {user: tuple(received) for user, received in asked.items()}
        signed = {user: self.signed(user, received) for user, received in named.items()}

        def willing(buffer: Buffer) -> Users:
            valid = {user for user, buffers in signed.items() if self._valid(user, buffers, buffer)}
            return tuple(sorted(valid | set(members)))

        answered = {
            user: self.heard(user, received, tuple(map(willing, received)))[1] for user, received in named.items()
        }
        return {user: buffers for user, buffers in answered.items() if buffers}


def equivocation(
    kinds: Sequence[Column], users: Confirmations, coalition: Collection[int], asked: Mapping[int, Sequence[Buffer]]
) -> tuple[dict[int, Buffers], tuple[Verdict, ...]]:
    """Return which users answer which buffers when a server announces different ones, and what the answers reveal.

    Parameters
    ----------
    kinds : sequence of Column
        See `basecagg.every_column`.
    users : Confirmations
    coalition, asked
        As in `basecagg.equivocation`. The verdicts, one for each kind of column, and the errors are also the same.

    Raises
    ------
    ParameterError
        The columns are those of other parameters than the users have.
    """
    base = parameters_of(kinds)
    if any(getattr(base, member.name) != getattr(users.parameters, member.name) for member in fields(base)):
        raise ParameterError("kinds", "columns of other parameters", "columns of the parameters of the users")
    released = users.released(coalition, asked)
    return released, decide_answers(kinds, coalition, asked, released)


def _key(purpose: str, user: int) -> bytes:
    return SeededSource(b"confirmations", f"{purpose} of {user}").take(32)


guard(__name__)
