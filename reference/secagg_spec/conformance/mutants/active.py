"""Planted bugs of the active profile of LightSecAgg, which no operation of the kit reaches: tests find them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto import signatures
from secagg_spec.crypto.sealing import Context
from secagg_spec.errors import BadSignature, InconsistentSets, ParameterError, ProtocolError
from secagg_spec.privacy.lightsecagg_active import Confirmations
from secagg_spec.protocols import agreement, lightsecagg, lightsecagg_active
from secagg_spec.protocols.agreement import Ballot, Proposal
from secagg_spec.protocols.lightsecagg_active import Quorum
from secagg_spec.protocols.shape import SERVER

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.lightsecagg_active"
_AGREEMENT = "secagg_spec.protocols.agreement"
_SIGNATURES = "secagg_spec.crypto.signatures"
_TESTS = "tests/protocols/test_lightsecagg_active.py::"
_TINY = lightsecagg_active.PRESETS["tiny"]
_SET, _OTHER = (0, 1, 2, 3), (0, 1, 2, 4)


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
    _TESTS + "test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user",
)
def _forgets_colluders(right: Function) -> Function:
    return lambda W, N, D, T: right(W, N, D, 0)


@mutant(
    "threshold-above-the-survivors",
    "LSA-19",
    "a round that loses no more users than it may can never end",
    f"{_AGREEMENT}:check_threshold",
    lambda: _outcome(lambda: agreement.check_threshold(5, 5, 1, 1)),
    _TESTS + "test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user",
)
def _above_survivors(right: Function) -> Function:
    return lambda W, N, D, T: right(W, N, 0, T)


@mutant(
    "left-out-user-signs",
    "LSA-20",
    "acceptance: a user confirms a set without itself",
    f"{_ACTIVE}:user_confirm",
    lambda: _told((1, 2, 3, 4)),
    _TESTS + "test_a_set_is_signed_exactly_when_it_can_be_right",
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
    _TESTS + "test_a_signature_counts_for_nothing_else",
)
def _no_session(right: Function) -> Function:
    return lambda context, purpose, signer, content: right(replace(context, session=b""), purpose, signer, content)


@mutant(
    "round-is-not-signed",
    "SIG-01",
    "privacy: a signature of one round counts in the next",
    f"{_SIGNATURES}:signed_fields",
    lambda: signatures.signed_fields(Context("p", b"h", b"s" * 16, 1, 2), "purpose", 3, (b"content",)),
    _TESTS + "test_a_signature_counts_for_nothing_else",
)
def _no_round(right: Function) -> Function:
    return lambda context, purpose, signer, content: right(replace(context, round=0), purpose, signer, content)


@mutant(
    "size-is-signed-for-the-set",
    "LSA-21",
    "privacy: users sign how many survive and not who, so that sets of one size share a quorum",
    f"{_AGREEMENT}:Proposal.content",
    lambda: Proposal(_OTHER).content(),
    _TESTS + "test_a_quorum_counts_exactly_for_the_set_that_was_signed",
)
def _size_only(right: Function) -> Function:
    return lambda self: right(Proposal(tuple(range(len(self.members))), self.further))


@mutant(
    "signs-twice",
    "LSA-22",
    "privacy: a user signs every set that it is told, so that two sets get a quorum",
    f"{_ACTIVE}:user_confirm",
    lambda: _told(_OTHER, first=_SET),
    _TESTS + "test_a_second_set_is_not_signed",
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
    _TESTS + "test_the_server_goes_on_with_exactly_W_signatures",
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
    _TESTS + "test_a_wrong_signature_is_its_senders_fault_at_the_server",
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
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_members",
)
def _before_quorum(right: Function) -> Function:
    return lambda ballot, proposal, signers, signatures: None


@mutant(
    "quorum-one-short",
    "LSA-29",
    "privacy: W - 1 signatures are taken for enough",
    f"{_AGREEMENT}:check_quorum",
    lambda: _shown((0, 1, 2)),
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_members",
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
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_members",
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
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_members",
)
def _outsiders(right: Function) -> Function:
    return lambda proposal, signers: right(Proposal(signers), signers)


@mutant(
    "quorum-is-not-verified",
    "LSA-28",
    "privacy: signers are counted and their signatures are not verified, so that the server makes them up",
    f"{_AGREEMENT}:check_signature",
    lambda: _shown(_SET, signed=_OTHER),
    _TESTS + "test_a_quorum_counts_exactly_for_the_set_that_was_signed",
)
def _not_verified(right: Function) -> Function:
    return lambda ballot, user, proposal, signature, blamed: None


@mutant(
    "quorum-on-another-set",
    "LSA-28",
    "privacy: a user takes a quorum on whichever set it shows, and not on the one that it signed",
    f"{_AGREEMENT}:check_quorum",
    lambda: _shown((0, 1, 2, 3), signed=(0, 1, 2, 3, 4)),
    _TESTS + "test_a_quorum_counts_exactly_for_the_set_that_was_signed",
)
def _another_set(right: Function) -> Function:
    def wrong(ballot: Ballot, proposal: Proposal, signers: Any, signatures: bytes) -> None:
        roster = range(len(ballot.roster.keys))
        for members in (chosen for size in roster for chosen in combinations(roster, size + 1)):
            with suppress(BadSignature, InconsistentSets):
                return right(ballot, Proposal(members), signers, signatures)  # type: ignore[no-any-return]
        return right(ballot, proposal, signers, signatures)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "binding-forgets-W",
    "LSA-31",
    "acceptance: parties that disagree on W open each other's shares and take each other's signatures",
    f"{_ACTIVE}:binding_context",
    lambda: lightsecagg_active.binding_context(_TINY, bytes(16), 0, lightsecagg.MaskShare).parameters,
    _TESTS + "test_seals_and_signatures_are_bound_to_the_profile_and_to_every_parameter",
)
def _forgets_W(right: Function) -> Function:  # noqa: N802 - W is the parameter
    def wrong(parameters: Any, session: bytes, round: int, kind: Any) -> Context:
        context = lightsecagg.sealing_context(parameters, session, round)
        return replace(right(parameters, session, round, kind), parameters=context.parameters)  # type: ignore[no-any-return]

    return wrong


@mutant(
    "profiles-share-a-name",
    "LSA-31",
    "privacy: what was sealed in the semi-honest profile opens in the active one",
    f"{_ACTIVE}:binding_context",
    lambda: lightsecagg_active.binding_context(_TINY, bytes(16), 0, lightsecagg.MaskShare).protocol,
    _TESTS + "test_seals_and_signatures_are_bound_to_the_profile_and_to_every_parameter",
)
def _shared_name(right: Function) -> Function:
    return lambda *arguments: replace(right(*arguments), protocol="lightsecagg")
