"""Planted bugs of the active profile's server, in what it relays and in when it ends a round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.signatures import SIGNATURE_BYTES
from secagg_spec.errors import ProtocolError, TooFewSurvivors
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols import lightsecagg, lightsecagg_active
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.lightsecagg_active import Quorum, SignedSet
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.lightsecagg_active"
_TINY = lightsecagg_active.PRESETS["tiny"]
_EVERYONE = tuple(range(_TINY.N))


def _confirmed() -> tuple[Any, tuple[Quorum, ...]]:
    """Return the server after all users confirmed that all survive, and what it sends them."""
    users = Confirmations(_TINY)
    inbox = [SignedSet(bytes(16), 0, user, SERVER, users.signature(user, _EVERYONE)) for user in _EVERYONE]
    state, outbox = lightsecagg_active.server_confirm(users.server, inbox, randomness={})
    return state, tuple(message for message in outbox if isinstance(message, Quorum))


def _recovered() -> object:
    """Return what the server does with the answers of U users, when all confirmed."""
    users, (state, quorums) = Confirmations(_TINY), _confirmed()
    inbox: list[Message] = []
    for user, quorum in zip(_EVERYONE[: _TINY.U], quorums, strict=False):
        message = lightsecagg.SurvivingSet(bytes(16), 0, SERVER, user, _EVERYONE)
        waiting, _ = lightsecagg_active.user_confirm(users.waiting[user], (message,), randomness={})
        inbox += lightsecagg_active.user_recover(waiting, (quorum,), randomness={})[1]
    try:
        return lightsecagg_active.server_recover(state, inbox, randomness={})[0].phase
    except ProtocolError as error:
        return type(error).__name__


@mutant(
    "quorum-of-the-first-W",
    "LSA-25",
    "the server relays W signatures and keeps the others, so that its users see less than it saw",
    f"{_ACTIVE}:server_confirm",
    lambda: [message.signers for message in _confirmed()[1]],
    kind="form",
    source="clause in part",
)
def _first(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        W = state.ballot.enough
        return after, tuple(
            replace(m, signers=m.signers[:W], signatures=m.signatures[: W * SIGNATURE_BYTES]) for m in outbox
        )

    return wrong


@mutant(
    "signers-in-descending-order",
    "LSA-25",
    "no interoperation: the signers and their signatures stand in another order",
    f"{_ACTIVE}:server_confirm",
    lambda: [message.signers for message in _confirmed()[1]],
    kind="form",
    source="order",
)
def _descending(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        starts = range(0, len(after.signers) * SIGNATURE_BYTES, SIGNATURE_BYTES)
        return after, tuple(
            replace(
                m,
                signers=m.signers[::-1],
                signatures=b"".join(m.signatures[at : at + SIGNATURE_BYTES] for at in reversed(starts)),
            )
            for m in outbox
        )

    return wrong


@mutant(
    "waits-for-every-signer",
    "LSA-30",
    "failure: a round ends without a sum when one of those who confirmed does not answer, although U others do",
    f"{_ACTIVE}:server_recover",
    _recovered,
    kind="refusal",
    source="clause too strict",
)
def _waits(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if len(inbox) < len(state.signers):
            raise TooFewSurvivors(f"{len(inbox)} of {len(state.signers)} signers answered")
        return right(state, inbox, randomness=randomness)

    return wrong
