"""Planted bugs of what SecAgg's parties take from each other, beside the rules of the round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.arithmetic.shamir import ELEMENT_BYTES
from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import InconsistentSets, Malformed, ProtocolError, WeakKey, WrongPhase
from secagg_spec.protocols import secagg
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.shape import SERVER, Network, Role

Function = Callable[..., Any]
_SAG = "secagg_spec.protocols.secagg"
_TINY = secagg.PRESETS["tiny"]
_SPARSE = secagg.Parameters(R=8, N=8, D=1, T=1, t=3, k=4, d=3)
_SAMPLED = secagg.draw_randomness(_TINY, {user: SeededSource(b"messages", str(user)) for user in range(5)})


def _until(rows: int) -> Network:
    network = secagg.open_round(_TINY, _TINY.ring.zeros(15).reshape(5, 3), session=bytes(16), round=0)
    for step in secagg.TABLE[:rows]:
        for party in [SERVER] if step.role is Role.SERVER else range(5):
            network.take(step, party, {name: _SAMPLED[party][name] for name in step.randomness})
    return network


def _outcome(rows: int, party: int, change: Function) -> Callable[[], object]:
    """Return a function that takes the next step on a changed inbox, and says how it ends."""

    def witness() -> object:
        network, step = _until(rows), secagg.TABLE[rows]
        sampled = {name: _SAMPLED[party][name] for name in step.randomness}
        try:
            sent = step.run(network.states[party], change(list(network.mail(step, party))), randomness=sampled)[1]
        except ProtocolError as error:
            return type(error).__name__, sorted(error.blamed)
        return [encode(message) for message in sent]

    return witness


def _stray() -> object:
    """Return what the server says to a share for a user that is not a neighbour of its sender."""
    agreed = secagg.Round(_SPARSE, _SPARSE.graph(), bytes(16), 0)
    keys = secagg.KeyPair(bytes(32), bytes(32))
    state = replace(secagg.server_start(agreed), phase="share_keys", keys=dict.fromkeys(range(8), keys))
    try:
        secagg.server_share_keys(state, [secagg.SecretShares(bytes(16), 0, 0, 4, b"")], randomness={})
    except ProtocolError as error:
        return type(error).__name__
    return "taken"


def _but(*errors: type[ProtocolError]) -> Function:
    """Return what leaves a check out, as far as it ends in these errors."""

    def build(right: Function) -> Function:
        def wrong(*arguments: Any) -> Any:
            try:
                return right(*arguments)
            except errors:
                return None

        return wrong

    return build


mutant(
    "stray-shares-drop-their-sender",
    "SAG-31",
    "wrong blame: a user that sends shares to strangers is left out in silence",
    f"{_SAG}:_shared_with_all",
    _stray,
    kind="acceptance",
    source="silent repair",
)(_but(Malformed))


@mutant(
    "shares-of-any-user-are-relayed",
    "SAG-31",
    "acceptance: shares from outside the first set of users are passed over",
    f"{_SAG}:parcels",
    _outcome(3, SERVER, lambda mail: [*mail, replace(mail[0], sender=7)]),
    kind="acceptance",
    source="silent repair",
)
def _only_roster(right: Function) -> Function:
    def wrong(inbox: Any, kind: Any, **expected: Any) -> Any:
        return right([m for m in inbox if {m.sender, m.receiver} <= set(expected["roster"])], kind, **expected)

    return wrong


mutant(
    "users-in-any-order",
    "SAG-32",
    "acceptance: one set of users has many encodings",
    f"{_SAG}:_refuse_disorder",
    _outcome(6, 0, lambda mail: [replace(mail[0], survivors=mail[0].survivors[::-1])]),
    kind="acceptance",
    source="clause left out",
)(_but(Malformed))


@mutant(
    "long-fields-are-cut",
    "SAG-33",
    "acceptance: bytes behind a key or a commitment are not looked at",
    f"{_SAG}:octets",
    _outcome(1, SERVER, lambda mail: [replace(mail[0], sealing=mail[0].sealing + b"\0"), *mail[1:]]),
    kind="acceptance",
    source="silent repair",
)
def _cut(right: Function) -> Function:
    def wrong(message: Any, name: str, size: int) -> bytes:
        data = getattr(message, name)
        return right(replace(message, **{name: data[:size]}), name, size) if isinstance(data, bytes) else b""

    return wrong


@mutant(
    "server-relays-keys-of-low-order",
    "SAG-34",
    "wrong blame: the users refuse what the server could have seen, and it is blamed with the owner",
    f"{_SAG}:refuse_weak",
    _outcome(1, SERVER, lambda mail: [replace(mail[0], masking=bytes(32)), *mail[1:]]),
    kind="acceptance",
    source="clause left out",
)
def _relayed(right: Function) -> Function:
    return _but(WeakKey)(right)  # type: ignore[no-any-return]


@mutant(
    "server-relays-equal-keys",
    "SAG-35",
    "wrong blame: a user that copies another one's key ends the round, and the server is blamed for it",
    f"{_SAG}:_refuse_equal",
    _outcome(1, SERVER, lambda mail: [replace(mail[0], masking=mail[1].masking), *mail[1:]]),
    kind="acceptance",
    source="clause left out",
)
def _copies(right: Function) -> Function:
    def wrong(keys: Any, also: Any, own: int | None = None) -> None:
        try:
            right(keys, also, own)
        except InconsistentSets:
            if own is not None:
                raise

    return wrong


mutant(
    "inputs-over-any-neighbours",
    "SAG-37",
    "wrong sum: when a share is lost on its way, one side of a pair adds a mask and the other does not",
    f"{_SAG}:_same_neighbours",
    _outcome(5, SERVER, lambda mail: [replace(mail[0], neighbours=(1, 2)), *mail[1:]]),
    kind="acceptance",
    source="clause left out",
)(_but(InconsistentSets))


@mutant(
    "neighbours-of-an-input-in-any-order",
    "SAG-76",
    "no interoperation: a server takes a masked input that other servers refuse",
    f"{_SAG}:_same_neighbours",
    _outcome(5, SERVER, lambda mail: [replace(mail[0], neighbours=mail[0].neighbours[::-1]), *mail[1:]]),
    kind="acceptance",
    source="silent repair",
)
def _sorted_neighbours(right: Function) -> Function:
    return lambda state, inbox: right(state, [replace(m, neighbours=tuple(sorted(m.neighbours))) for m in inbox])


def _reversed_answer(mail: list[Any]) -> list[Any]:
    return [_by_user(mail[0], reverse=True), *mail[1:]]


def _by_user(message: Any, *, reverse: bool = False) -> Any:
    """Return an answer with its users, and their shares with them, in ascending or in descending order."""
    changed: dict[str, Any] = {}
    for users, shares in (("survivors", "seed_shares"), ("dropped", "key_shares")):
        named, data = getattr(message, users), getattr(message, shares)
        if len(data) != ELEMENT_BYTES * len(named):
            return message
        pairs = [(user, data[ELEMENT_BYTES * at : ELEMENT_BYTES * (at + 1)]) for at, user in enumerate(named)]
        pairs.sort(reverse=reverse)
        changed |= {users: tuple(user for user, _ in pairs), shares: b"".join(share for _, share in pairs)}
    return replace(message, **changed)


@mutant(
    "users-of-an-answer-in-any-order",
    "SAG-77",
    "no interoperation: a server takes an answer that other servers refuse",
    f"{_SAG}:_answer",
    _outcome(7, SERVER, _reversed_answer),
    kind="acceptance",
    source="silent repair",
)
def _sorted_answer(right: Function) -> Function:
    return lambda state, message: right(state, _by_user(message))


@mutant(
    "no-request-is-everybody",
    "SAG-36",
    "privacy: a user that was asked for nothing answers for all whose shares it holds",
    f"{_SAG}:user_unmasking",
    _outcome(6, 0, lambda mail: []),
    kind="privacy",
    source="other rule: no message stands for everybody",
)
def _unasked(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except WrongPhase:
            if inbox:
                raise
            header = (state.round.session, state.round.number, SERVER, state.user)
            everybody = secagg.UnmaskRequest(*header, tuple(sorted(state.held)), ())
            return right(state, [everybody], randomness=randomness)

    return wrong
