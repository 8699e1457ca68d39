"""Decide which shares a lying server gets in the active profile of LightSecAgg, and what they reveal.

The steps that run in a round decide who signs and who answers. The server is given every advantage. Colluding users
sign anything the server asks for. A quorum holds all signatures that exist on a set, since an additional signature
never makes an honest user refuse.

Source: spec/lightsecagg.md, section 9 (LSA-20 to LSA-29).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import numpy as np

from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, ProtocolError
from secagg_spec.privacy.lightsecagg import Column, Situation, Users, check_lie, columns
from secagg_spec.privacy.lightsecagg import equivocation as semi_honest
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.protocols.agreement import Proposal, sign_proposal
from secagg_spec.protocols.lightsecagg import active as protocol
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.active import Parameters, PrivateKeys, Quorum, ServerState, SignedSet, UserState
from secagg_spec.protocols.steps import SERVER, run_synchronous

_SESSION = bytes(16)
_MOST = 2**24
"""The most elements of the inputs of all users."""


class Confirmations:
    """Users that have uploaded and wait for a surviving set; each question to a user starts from a fresh copy.

    Parameters
    ----------
    parameters : Parameters
        The parameters of a session in which all users shared and uploaded; inputs and keys do not matter. N d is at
        most 2^24.

    Raises
    ------
    ParameterError
        N d is larger.

    Attributes
    ----------
    keys : mapping from user to PrivateKeys
    waiting : mapping from user to UserState
        Users that are ready to confirm a set.
    server : ServerState
        The server that announced all users.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        users = range(parameters.N)
        self.keys = {user: PrivateKeys(_key("sealing", user), _key("signing", user)) for user in users}
        if parameters.N * parameters.d > _MOST:
            raise ParameterError("d", parameters.d, f"at most 2^24 / N = {_MOST // parameters.N}: all inputs are held")
        updates = np.zeros((parameters.N, parameters.d), dtype=np.uint64)
        network = protocol.open_round(parameters, updates, keys=self.keys, session=_SESSION, round=0)
        network.table = tuple(step for step in protocol.TABLE if step.phase in {"share", "upload"})
        sources = {user: SeededSource(b"confirmations", str(user)) for user in users}
        run_synchronous(network, {}, lightsecagg.draw_randomness(parameters, sources))
        self.waiting: dict[int, UserState] = {user: network.states[user] for user in users}
        self.server: ServerState = network.states[SERVER]
        self.confirmed = cache(self._confirmed)
        self.signature = cache(self._signature)
        self.answers = cache(self._answers)

    def _confirmed(self, user: int, chosen: Users) -> tuple[UserState, bytes] | None:
        """Return an honest user's state and signature after a set was announced to it, or None if it refuses."""
        message = lightsecagg.SurvivingSet(_SESSION, 0, SERVER, user, chosen)
        try:
            state, (signed,) = protocol.user_confirm.take(self.waiting[user], (message,), randomness={})
        except ProtocolError:
            return None
        assert isinstance(signed, SignedSet)
        return state, signed.signature

    def _signature(self, user: int, chosen: Users) -> bytes:
        """Return the signature of a user that signs any set."""
        return sign_proposal(self.waiting[user].ballot, self.keys[user].signing, user, Proposal(chosen))

    def _answers(self, user: int, chosen: Users, signers: Users) -> bool:
        """Return whether a user to which `chosen` was announced releases its share after seeing these signatures."""
        confirmed = self.confirmed(user, chosen)
        if confirmed is None:
            return False
        signatures = b"".join(self.signature(signer, chosen) for signer in signers)
        message = Quorum(_SESSION, 0, SERVER, user, signers, signatures)
        try:
            protocol.user_recover.take(confirmed[0], (message,), randomness={})
        except ProtocolError:
            return False
        return True

    def released(self, coalition: Collection[int], asked: Mapping[int, Collection[int]]) -> dict[int, Users]:
        """Return the honest users that release their share, each with the set that it answers for.

        Parameters
        ----------
        coalition : collection of int
            The users that work with the server.
        asked : mapping from user to set of users
            The surviving set announced to each honest user.

        Raises
        ------
        ParameterError
            The same as for `equivocation`.
        """
        members, announced = check_lie(self.parameters.N, coalition, asked)
        signed = {user for user, chosen in announced.items() if self.confirmed(user, chosen) is not None}
        found: dict[int, Users] = {}
        for user, chosen in announced.items():
            willing = {other for other in signed if announced[other] == chosen} | set(members)
            if self.answers(user, chosen, tuple(sorted(willing & set(chosen)))):
                found[user] = chosen
        return found


def equivocation(
    parameters: Parameters, coalition: Collection[int], asked: Mapping[int, Collection[int]]
) -> tuple[dict[int, Users], tuple[Verdict, ...]]:
    """Return which users release a share when a server announces different surviving sets, and what this reveals.

    The arguments, and the verdicts (one for each kind of column), are those of `lightsecagg.equivocation`.

    Raises
    ------
    ParameterError
        No user is asked, or a member of the coalition is, or a user outside the roster.
    """
    members, announced = check_lie(parameters.N, coalition, asked)
    released = Confirmations(parameters).released(members, announced)
    if released:
        return released, semi_honest(parameters, members, released)
    nothing = Situation(next(iter(announced.values())), tuple(range(parameters.N)), {})
    kinds = [Column(parameters, parameters.code, elements) for elements in columns(parameters)]
    return released, tuple(column.decide(members, nothing) for column in kinds)


def _key(purpose: str, user: int) -> bytes:
    return SeededSource(b"confirmations", f"{purpose} of {user}").take(32)


guard(__name__)
