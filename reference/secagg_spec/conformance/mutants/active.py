"""Planted bugs of signatures and of the active profile of LightSecAgg."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import signatures
from secagg_spec.crypto.keys import Roster, hash_parameters, public_key
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import BadSignature, InconsistentSets, ParameterError, ProtocolError
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols import agreement, lightsecagg, lightsecagg_active
from secagg_spec.protocols.agreement import Ballot, Proposal
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg_active import Quorum
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.lightsecagg_active"
_AGREEMENT = "secagg_spec.protocols.agreement"
_SIGNATURES = "secagg_spec.crypto.signatures"
_TINY = lightsecagg_active.PRESETS["tiny"]
_SET, _OTHER = (0, 1, 2, 3), (0, 1, 2, 4)


_ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
_SMALL = (_ORDER_8, (1).to_bytes(32, "little"))
"""Points of small order: with S = 0, R and the key among them, eight times the difference is always neutral."""


def _outcome(call: Callable[[], Any]) -> object:
    """Return what a call gives, or how it fails."""
    try:
        return call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__


def _shown(signers: Sequence[int], signed: Sequence[int] = _SET) -> object:
    """Return what user 0 does, who signed one set, when it is shown signatures on a set."""
    message = lightsecagg.SurvivingSet(bytes(16), 0, SERVER, 0, _SET)
    users = Confirmations(_TINY)
    state, _ = lightsecagg_active.user_confirm(users.waiting[0], (message,), randomness={})
    together = b"".join(users.signature(user, tuple(signed)) for user in signers)
    quorum = Quorum(bytes(16), 0, SERVER, 0, tuple(signers), together)
    return _outcome(lambda: lightsecagg_active.user_recover(state, (quorum,), randomness={})[0].phase)


def _told(chosen: Sequence[int], first: Sequence[int] = ()) -> object:
    """Return what user 0 does when it is told a set, perhaps after another one."""
    state = Confirmations(_TINY).waiting[0]
    for users in filter(None, (first, chosen)):
        message = lightsecagg.SurvivingSet(bytes(16), 0, SERVER, 0, tuple(users))
        try:
            state, _ = lightsecagg_active.user_confirm(state, (message,), randomness={})
        except ProtocolError as error:
            return type(error).__name__
    return state.phase


@mutant(
    "threshold-forgets-colluders",
    "LSA-19",
    "privacy: W is held against N alone, so that T users that sign twice make two quorums",
    f"{_AGREEMENT}:check_threshold",
    lambda: _outcome(lambda: agreement.check_threshold(3, 5, 1, 1)),
    kind="privacy",
    source="clause in part",
)
def _forgets_colluders(right: Function) -> Function:
    return lambda W, N, D, T: right(W, N, D, 0)


@mutant(
    "threshold-above-the-survivors",
    "LSA-19",
    "a round that loses no more users than it may can never end",
    f"{_AGREEMENT}:check_threshold",
    lambda: _outcome(lambda: agreement.check_threshold(5, 5, 1, 1)),
    kind="acceptance",
    source="clause in part",
)
def _above_survivors(right: Function) -> Function:
    return lambda W, N, D, T: right(W, N, 0, T)


@mutant(
    "left-out-user-signs",
    "LSA-20",
    "acceptance: a user confirms a set without itself",
    f"{_ACTIVE}:user_confirm",
    lambda: _told((1, 2, 3, 4)),
    kind="acceptance",
    source="clause left out",
)
def _left_out(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        chosen = getattr(inbox[0], "users", ())
        other = next((user for user in chosen if user in state.base.held), state.base.user)
        asked = tuple(replace(message, receiver=other) for message in inbox)
        after, outbox = right(replace(state, base=replace(state.base, user=other)), asked, randomness=randomness)
        return replace(after, base=state.base), outbox

    return wrong


@mutant(
    "session-is-not-signed",
    "SIG-01",
    "privacy: a signature of one session counts in another one",
    f"{_SIGNATURES}:signed_fields",
    lambda: signatures.signed_fields(Context("p", b"h", b"s" * 16, 1, 2), "purpose", 3, (b"content",)),
    kind="privacy",
    source="field not bound: the session",
)
def _no_session(right: Function) -> Function:
    return lambda context, purpose, signer, content: right(replace(context, session=b""), purpose, signer, content)


@mutant(
    "round-is-not-signed",
    "SIG-01",
    "privacy: a signature of one round counts in the next",
    f"{_SIGNATURES}:signed_fields",
    lambda: signatures.signed_fields(Context("p", b"h", b"s" * 16, 1, 2), "purpose", 3, (b"content",)),
    kind="privacy",
    source="field not bound: the round",
)
def _no_round(right: Function) -> Function:
    return lambda context, purpose, signer, content: right(replace(context, round=0), purpose, signer, content)


@mutant(
    "size-is-signed-for-the-set",
    "LSA-21",
    "privacy: users sign how many survive and not who, so that sets of one size share a quorum",
    f"{_AGREEMENT}:Proposal.content",
    lambda: Proposal(_OTHER).content(),
    kind="privacy",
    source="field not bound: the members of the set",
)
def _size_only(right: Function) -> Function:
    return lambda self: right(Proposal(tuple(range(len(self.members))), self.further))


@mutant(
    "signs-twice",
    "LSA-22",
    "privacy: a user signs every set that it is told, so that two sets get a quorum",
    f"{_ACTIVE}:user_confirm",
    lambda: _told(_OTHER, first=_SET),
    kind="privacy",
    source="clause left out",
)
def _signs_twice(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        fresh = replace(state, announced=None) if state.phase == "recover" else state
        return right(fresh, inbox, randomness=randomness)

    return wrong


@mutant(
    "server-relays-few-signatures",
    "LSA-23",
    "a round goes on with too few signatures, and every user refuses",
    f"{_ACTIVE}:server_confirm",
    lambda: _server_confirms(_SET[:3]),
    kind="acceptance",
    source="clause left out",
)
def _relays_few(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(replace(state, ballot=replace(state.ballot, enough=0)), inbox, randomness=randomness)
        return replace(after, ballot=state.ballot), outbox

    return wrong


@mutant(
    "server-checks-no-signature",
    "LSA-24",
    "one user that sends a wrong signature stops the round, and the server is blamed for it",
    f"{_ACTIVE}:_checked",
    lambda: _server_confirms(_SET, signed=_OTHER),
    kind="acceptance",
    source="clause left out",
)
def _checks_none(right: Function) -> Function:
    return lambda state, message: message.signature


def _server_confirms(signers: Sequence[int], signed: Sequence[int] = _SET) -> object:
    users = Confirmations(_TINY)
    state = replace(users.server, base=replace(users.server.base, surviving=_SET))
    inbox = [
        lightsecagg_active.SignedSet(bytes(16), 0, user, SERVER, users.signature(user, tuple(signed)))
        for user in signers
    ]
    return _outcome(lambda: lightsecagg_active.server_confirm(state, inbox, randomness={})[0].signers)


@mutant(
    "releases-before-quorum",
    "LSA-26",
    "privacy: a user answers on the server's word, without any signature",
    f"{_ACTIVE}:check_quorum",
    lambda: _shown(()),
    kind="privacy",
    source="paper: lightsecagg, different sets for different users",
)
def _before_quorum(right: Function) -> Function:
    return lambda ballot, proposal, signers, signatures: None


@mutant(
    "quorum-one-short",
    "LSA-29",
    "privacy: W - 1 signatures are taken for enough",
    f"{_AGREEMENT}:check_quorum",
    lambda: _shown((0, 1, 2)),
    kind="privacy",
    source="off by one",
)
def _one_short(right: Function) -> Function:
    def wrong(ballot: Ballot, proposal: Proposal, signers: Any, signatures: bytes) -> None:
        right(replace(ballot, enough=ballot.enough - 1), proposal, signers, signatures)

    return wrong


@mutant(
    "counts-signers-twice",
    "LSA-27",
    "privacy: one signature that is shown W times counts as W",
    f"{_AGREEMENT}:_distinct_members",
    lambda: _shown((0, 0, 0, 1)),
    kind="privacy",
    source="clause in part",
)
def _counts_twice(right: Function) -> Function:
    def wrong(proposal: Proposal, signers: tuple[int, ...]) -> tuple[int, ...]:
        right(proposal, tuple(dict.fromkeys(signers)))
        return signers

    return wrong


@mutant(
    "outsiders-count",
    "LSA-27",
    "acceptance: signatures of users outside the surviving set count",
    f"{_AGREEMENT}:_distinct_members",
    lambda: _shown((0, 1, 2, 4)),
    kind="acceptance",
    source="clause in part",
)
def _outsiders(right: Function) -> Function:
    return lambda proposal, signers: right(Proposal(signers), signers)


@mutant(
    "quorum-is-not-verified",
    "LSA-28",
    "privacy: signers are counted and their signatures are not verified, so that the server makes them up",
    f"{_AGREEMENT}:check_signature",
    lambda: _shown(_SET, signed=_OTHER),
    kind="privacy",
    source="clause left out",
)
def _not_verified(right: Function) -> Function:
    return lambda ballot, user, proposal, signature, blamed: None


@mutant(
    "quorum-on-another-set",
    "LSA-28",
    "privacy: a user takes a quorum on a set that differs in one user from the one that it signed",
    f"{_AGREEMENT}:check_quorum",
    lambda: _shown((0, 1, 2, 3), signed=(0, 1, 2, 3, 4)),
    kind="privacy",
    source="clause in part",
)
def _another_set(right: Function) -> Function:
    def wrong(ballot: Ballot, proposal: Proposal, signers: Any, signatures: bytes) -> None:
        members = set(proposal.members)
        for user in range(len(ballot.roster.keys)):
            with suppress(BadSignature, InconsistentSets):
                return right(ballot, Proposal(tuple(members ^ {user})), signers, signatures)  # type: ignore[no-any-return]
        return right(ballot, proposal, signers, signatures)  # type: ignore[no-any-return]

    return wrong


def _bound(kind: Any) -> Context:
    roster = Roster(tuple(public_key(bytes([user + 1]) * 32) for user in range(_TINY.N)))
    return lightsecagg_active.binding_context(_TINY, bytes(16), 0, kind, roster)


def _forgets_keys(name: str, effect: str, kind_of: Any) -> None:
    """Register a party whose messages of one class are not bound to the keys of the attempt."""

    def build(right: Function) -> Function:
        def wrong(parameters: Any, session: bytes, round: int, kind: Any, sealing: Roster) -> Context:
            context: Context = right(parameters, session, round, kind, sealing)
            numbers = {name: getattr(parameters, name) for name in ("q", "N", "D", "U", "T", "d", "W")}
            return replace(context, parameters=hash_parameters(numbers)) if kind is kind_of else context

        return wrong

    mutant(
        name,
        "LSA-34",
        effect,
        f"{_ACTIVE}:binding_context",
        lambda: _bound(kind_of).parameters,
        kind="privacy",
        source="field not bound: the keys of the attempt",
    )(build)


_forgets_keys(
    "keys-not-in-the-ballot",
    "privacy: signatures of an attempt that failed count in the next one, so that two sets get a quorum",
    lightsecagg_active.SignedSet,
)
_forgets_keys(
    "keys-not-in-the-seal",
    "privacy: users that have different lists of keys open each other's shares",
    lightsecagg.MaskShare,
)


@mutant(
    "binding-forgets-W",
    "LSA-31",
    "acceptance: parties that disagree on W open each other's shares and take each other's signatures",
    f"{_ACTIVE}:binding_context",
    lambda: _bound(lightsecagg.MaskShare).parameters,
    kind="acceptance",
    source="field not bound: W",
)
def _forgets_W(right: Function) -> Function:  # noqa: N802 - W is the parameter
    def wrong(parameters: Any, session: bytes, round: int, kind: Any, sealing: Roster) -> Context:
        numbers = {name: getattr(parameters, name) for name in ("q", "N", "D", "U", "T", "d")}
        bound = hash_parameters(numbers, sealing.hash)
        return replace(right(parameters, session, round, kind, sealing), parameters=bound)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "profiles-share-a-name",
    "LSA-31",
    "privacy: what was sealed in the semi-honest profile opens in the active one",
    f"{_ACTIVE}:binding_context",
    lambda: _bound(lightsecagg.MaskShare).protocol,
    kind="privacy",
    source="field not bound: the profile",
)
def _shared_name(right: Function) -> Function:
    return lambda *arguments: replace(right(*arguments), protocol="lightsecagg")


@mutant(
    "quorum-in-any-order",
    "LSA-25",
    "no interoperation: the signers stand in the order in which their signatures came",
    f"{_ACTIVE}:server_confirm",
    lambda: _relayed((3, 0, 1, 2)),
    kind="form",
    source="order",
)
def _any_order(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        given = {message.sender: message.signature for message in inbox}
        together = b"".join(given.values())
        return after, tuple(replace(quorum, signers=tuple(given), signatures=together) for quorum in outbox)

    return wrong


@mutant(
    "quorum-of-W-alone",
    "LSA-25",
    "failure: the server relays the first W signatures, and the other signers are left out",
    f"{_ACTIVE}:server_confirm",
    lambda: _relayed((0, 1, 2, 3, 4), announced=(0, 1, 2, 3, 4)),
    kind="refusal",
    source="clause in part",
)
def _first(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        chosen = sorted(inbox, key=lambda message: message.sender)[: state.ballot.enough]
        right(state, inbox, randomness=randomness)
        return right(state, tuple(chosen), randomness=randomness)

    return wrong


def _relayed(signers: Sequence[int], announced: Sequence[int] = _SET) -> object:
    """Return the quorums that the server makes of signatures that come in an order."""
    users = Confirmations(_TINY)
    state = replace(users.server, base=replace(users.server.base, surviving=tuple(announced)))
    inbox = [
        lightsecagg_active.SignedSet(bytes(16), 0, user, SERVER, users.signature(user, tuple(announced)))
        for user in signers
    ]
    _, outbox = lightsecagg_active.server_confirm(state, inbox, randomness={})
    return [encode(message) for message in outbox]


def _blamed() -> object:
    users = Confirmations(_TINY)
    message = lightsecagg_active.SignedSet(bytes(16), 0, 0, SERVER, users.signature(0, _OTHER))
    try:
        lightsecagg_active.server_confirm(users.server, (message,), randomness={})
    except BadSignature as error:
        return error.blamed
    return None


@mutant(
    "wrong-signature-blames-server",
    "LSA-24",
    "wrong blame: the server takes the blame for a signature that a user sent",
    f"{_AGREEMENT}:check_signature",
    _blamed,
    kind="refusal",
    source="wrong reason",
)
def _blames_server(right: Function) -> Function:
    return lambda ballot, user, proposal, signature, blamed: right(ballot, user, proposal, signature, SERVER)


@mutant(
    "cofactor-multiplied",
    "SIG-03",
    "wrong blame: what holds only after a multiplication by 8 is taken, and honest parties disagree on a signature",
    f"{_SIGNATURES}:verify",
    lambda: [_verified(_ORDER_8, data) for data in range(8)],
    kind="acceptance",
    source="other rule: verification with the cofactor",
)
def _cofactor(right: Function) -> Function:
    def wrong(public: bytes, data: bytes, signature: bytes, blamed: Any = ()) -> None:
        if public not in _SMALL or signature[:32] not in _SMALL or any(signature[32:]):
            right(public, data, signature, blamed)

    return wrong


@mutant(
    "keys-of-any-encoding",
    "SIG-03",
    "wrong blame: a library that decodes a key by another rule takes what others refuse",
    f"{_SIGNATURES}:_is_canonical",
    lambda: _verified((2**255 + 1).to_bytes(32, "little"), 0),
    kind="acceptance",
    source="other rule: a library's decoding of keys",
)
def _any_encoding(right: Function) -> Function:
    return lambda public: True


def _verified(public: bytes, data: int) -> object:
    return _outcome(lambda: signatures.verify(public, bytes([data]), b"\1" + bytes(63)))
