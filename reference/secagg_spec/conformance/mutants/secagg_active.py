"""Planted bugs of SecAgg's active profile, which its tests find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.arithmetic.modular import Ring
from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.signatures import SIGNATURE_BYTES
from secagg_spec.errors import BadSignature, ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import secagg, secagg_active
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.secagg_active import SignedSurvivors
from secagg_spec.protocols.shape import SERVER, Network, Role, run_synchronous

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.secagg_active"
_TESTS = "tests/protocols/test_secagg_active.py::"
_TINY = secagg_active.PRESETS["tiny"]
_SIGNING = {user: bytes([user + 1]) * 32 for user in range(5)}
_SAMPLED = secagg.draw_randomness(_TINY, {user: SeededSource(b"mutants", str(user)) for user in range(5)})


def _network() -> Network:
    return secagg_active.open_round(
        _TINY, Ring(8).zeros(15).reshape(5, 3), signing=_SIGNING, session=bytes(16), round=0
    )


def _bytes() -> object:
    """Return what is sent in a whole round, or how it ends."""
    network = _network()
    try:
        run_synchronous(network, {}, _SAMPLED)
    except ProtocolError as error:
        return repr(error)
    return [encode(message) for event in network.transcript for message in event.sent]


def _until(rows: int) -> Network:
    network = _network()
    for step in secagg_active.TABLE[:rows]:
        for party in [SERVER] if step.role is Role.SERVER else range(5):
            network.take(step, party, {name: _SAMPLED[party][name] for name in step.randomness})
    return network


def _outcome(rows: int, party: int, change: Function) -> Callable[[], object]:
    """Return a function that takes the next step on a changed inbox, and says how it ends."""

    def witness() -> object:
        network = _until(rows)
        step = secagg_active.TABLE[rows]
        sampled = {name: _SAMPLED[party][name] for name in step.randomness}
        try:
            sent = step.run(network.states[party], change(list(network.mail(step, party))), randomness=sampled)[1]
        except ProtocolError as error:
            return type(error).__name__, sorted(error.blamed)
        return [encode(message) for message in sent]

    return witness


def _flip(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _twice() -> object:
    network = _until(6)
    mail = network.mail(secagg_active.TABLE[6], 0)
    state, _ = secagg_active.user_consistency_check(network.states[0], mail, randomness={})
    try:
        return secagg_active.user_consistency_check(state, mail, randomness={})[0].phase
    except ProtocolError as error:
        return type(error).__name__


def _late() -> object:
    network = _until(7)
    network.waiting[SERVER] = [m for m in network.waiting[SERVER] if isinstance(m, SignedSurvivors) and m.sender < 4]
    for row in (7, 8):
        for party in [SERVER] if row == 7 else range(4):
            network.take(secagg_active.TABLE[row], party)
    mail = network.mail(secagg_active.TABLE[9], SERVER)
    try:
        state, _ = secagg_active.server_unmasking(
            network.states[SERVER], [*mail, replace(mail[0], sender=4)], randomness={}
        )
    except ProtocolError as error:
        return type(error).__name__
    return state.phase


def _parameters(**changed: int) -> Callable[[], object]:
    def witness() -> object:
        try:
            return repr(replace(_TINY, **changed))
        except ParameterError as error:
            return str(error)

    return witness


@mutant(
    "keys-are-not-bound-to-the-threshold-rule",
    "SAG-50",
    "privacy: with 2t = N + T two sets can both get t signatures",
    f"{_ACTIVE}:Parameters.__post_init__",
    _parameters(t=3),
    _TESTS + "test_parameters_are_taken_exactly_inside_the_bounds",
    kind="privacy",
    source="clause left out",
)
def _any_threshold(right: Function) -> Function:
    return secagg.Parameters.__post_init__


@mutant(
    "signed-keys-without-the-masking-key",
    "SAG-51",
    "privacy: the server puts a masking key of its own beside a signed sealing key",
    f"{_ACTIVE}:_signed_keys",
    _bytes,
    _TESTS + "test_what_is_signed_is_what_the_text_says",
    kind="privacy",
    source="field not bound: the masking key",
)
def _sealing_only(right: Function) -> Function:
    return lambda agreed, user, keys: right(agreed, user, replace(keys, masking=b""))


@mutant(
    "keys-signed-as-a-set",
    "SAG-51",
    "no interoperation: the purpose of the signature on keys is that of the one on sets",
    f"{_ACTIVE}:_signed_keys",
    _bytes,
    _TESTS + "test_what_is_signed_is_what_the_text_says",
    kind="form",
    source="field not bound: the purpose",
)
def _purpose(right: Function) -> Function:
    def wrong(agreed: Any, user: int, keys: Any) -> bytes:
        data: bytes = right(agreed, user, keys)
        return data.replace(secagg_active.KEYS_PURPOSE.encode(), b"surviving-set!!")

    return wrong


@mutant(
    "server-takes-unsigned-keys",
    "SAG-52",
    "failure: a user with a wrong signature ends the round for all, and the server is blamed for it",
    f"{_ACTIVE}:_check_keys",
    _outcome(1, SERVER, lambda mail: [replace(mail[0], signature=_flip(mail[0].signature)), *mail[1:]]),
    _TESTS + "test_the_server_refuses_keys_that_their_owner_did_not_sign",
    kind="acceptance",
    source="clause left out",
)
def _server_skips(right: Function) -> Function:
    def wrong(state: Any, *rest: Any) -> None:
        if not isinstance(state, secagg_active.ServerState):
            right(state, *rest)

    return wrong


@mutant(
    "user-takes-unsigned-keys",
    "SAG-53",
    "privacy: the server puts its own keys in place of everybody's",
    f"{_ACTIVE}:_check_keys",
    _outcome(2, 0, lambda mail: [replace(mail[0], sealing=_flip(mail[0].sealing))]),
    _TESTS + "test_a_user_refuses_keys_that_their_owner_did_not_sign",
    kind="privacy",
    source="clause left out",
)
def _user_skips(right: Function) -> Function:
    def wrong(state: Any, *rest: Any) -> None:
        if isinstance(state, secagg_active.ServerState):
            right(state, *rest)

    return wrong


@mutant(
    "signs-every-set",
    "SAG-54",
    "privacy: a user signs a second surviving set",
    f"{_ACTIVE}:user_consistency_check",
    _twice,
    _TESTS + "test_a_user_signs_once_and_only_what_it_may_answer",
    kind="privacy",
    source="clause left out",
)
def _again(right: Function) -> Function:
    return lambda state, inbox, *, randomness: right(replace(state, request=None), inbox, randomness=randomness)


@mutant(
    "signs-before-it-checks",
    "SAG-55",
    "privacy: a user vouches for a set that it would refuse to answer for",
    f"{_ACTIVE}:check_request",
    _outcome(6, 0, lambda mail: [replace(mail[0], survivors=(1, 2, 3, 4), dropped=(0,))]),
    _TESTS + "test_a_user_signs_once_and_only_what_it_may_answer",
    kind="privacy",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    return lambda state, message: (message.survivors, message.dropped)


@mutant(
    "survivors-signed-without-the-last",
    "SAG-56",
    "privacy: the signature does not hold the last survivor, so that two sets share it",
    f"{_ACTIVE}:Proposal",
    _bytes,
    _TESTS + "test_what_is_signed_is_what_the_text_says",
    kind="privacy",
    source="field not bound: the last survivor",
)
def _without_last(right: Function) -> Function:
    return lambda members, further=(): right(tuple(members)[:-1], further)


def _server_set(
    name: str, clause: str, effect: str, change: Function, wrong: Function, *, kind: str, source: str
) -> None:
    """Register a server that collects signatures in another way."""
    mutant(
        name,
        clause,
        effect,
        f"{_ACTIVE}:server_consistency_check",
        _outcome(7, SERVER, change),
        _TESTS + "test_the_server_relays_all_signatures_of_survivors_in_order",
        kind=kind,
        source=source,
    )(wrong)


def _signs(right: Function, state: Any, message: Any) -> bool:
    try:
        right(state, [message], randomness={})
    except BadSignature:
        return False
    except TooFewSurvivors:
        return True
    raise AssertionError("one signature is never enough")


def _passes_over(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        kept = [message for message in inbox if _signs(right, state, message)]
        return right(state, kept, randomness=randomness)

    return wrong


_server_set(
    "server-passes-over-wrong-signatures",
    "SAG-57",
    "failure: who sends a wrong signature is not named",
    lambda mail: [replace(mail[0], signature=_flip(mail[0].signature)), *mail[1:]],
    _passes_over,
    kind="acceptance",
    source="silent repair",
)


def _any_number(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        try:
            return right(state, inbox, randomness=randomness)
        except TooFewSurvivors:
            return replace(state, signers=tuple(sorted(message.sender for message in inbox))), ()

    return wrong


_server_set(
    "server-goes-on-with-few-signatures",
    "SAG-58",
    "failure: the server waits for answers that honest users will not give",
    lambda mail: mail[:3],
    _any_number,
    kind="acceptance",
    source="clause left out",
)


def _reversed(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, sent = right(state, inbox, randomness=randomness)
        return after, tuple(_backwards(message) for message in sent)

    return wrong


def _backwards(message: Any) -> Any:
    size = SIGNATURE_BYTES
    pieces = [message.signatures[at : at + size] for at in range(0, len(message.signatures), size)]
    return replace(message, signers=message.signers[::-1], signatures=b"".join(pieces[::-1]))


_server_set(
    "survivor-signers-in-descending-order",
    "SAG-59",
    "no interoperation: signers and signatures stand in another order",
    lambda mail: mail,
    _reversed,
    kind="form",
    source="order",
)


def _quorum(name: str, clause: str, effect: str, change: Function, error: str, *, kind: str, source: str) -> None:
    """Register a user that answers a quorum which it must refuse with the named error."""

    def build(right: Function) -> Function:
        def wrong(*arguments: Any) -> None:
            try:
                right(*arguments)
            except ProtocolError as failed:
                if type(failed).__name__ != error:
                    raise

        return wrong

    mutant(
        name,
        clause,
        effect,
        f"{_ACTIVE}:check_quorum",
        _outcome(8, 0, lambda mail: [change(mail[0])]),
        _TESTS + "test_a_quorum_that_cannot_be_right_is_refused",
        also=("SAG-60",),
        kind=kind,
        source=source,
    )(build)


_quorum(
    "signers-may-repeat",
    "SAG-61",
    "privacy: one colluder's signature counts t times",
    lambda m: replace(m, signers=(0, 1, 2, 2), signatures=m.signatures[:256]),
    "InconsistentSets",
    kind="privacy",
    source="clause in part",
)
_quorum(
    "survivor-quorum-unverified",
    "SAG-62",
    "privacy: a user answers for a set that the others did not sign",
    lambda m: replace(m, signatures=_flip(m.signatures)),
    "BadSignature",
    kind="privacy",
    source="clause in part",
)
_quorum(
    "few-signers-suffice",
    "SAG-63",
    "privacy: two sets can both get as many signatures",
    lambda m: replace(m, signers=m.signers[:3], signatures=m.signatures[:192]),
    "TooFewSurvivors",
    kind="privacy",
    source="clause left out",
)


@mutant(
    "answers-of-those-that-did-not-sign",
    "SAG-64",
    "acceptance: a user answers that did not confirm the set",
    f"{_ACTIVE}:server_unmasking",
    _late,
    _TESTS + "test_an_answer_of_a_user_that_did_not_sign_is_refused",
    kind="acceptance",
    source="clause left out",
)
def _anybody(right: Function) -> Function:
    return lambda state, inbox, *, randomness: right(
        replace(state, signers=state.base.survivors), inbox, randomness=randomness
    )


@mutant(
    "active-profile-under-the-old-name",
    "SAG-65",
    "privacy: keys and shares of the semi-honest profile are good in the active one",
    f"{_ACTIVE}:agreed",
    lambda: secagg_active.agreed(_TINY, bytes(16), 0).protocol,
    _TESTS + "test_what_is_signed_is_what_the_text_says",
    kind="privacy",
    source="field not bound: the profile",
)
def _old_name(right: Function) -> Function:
    return lambda *arguments: replace(right(*arguments), protocol=secagg.PROTOCOL)


def _forgets_keys(name: str, effect: str, kind_of: Any, test: str) -> None:
    """Register a party whose messages of one class are not bound to the keys of the attempt."""

    def build(right: Function) -> Function:
        def wrong(self: Any, keys: Any, kind: Any) -> Any:
            return self.context(kind) if kind is kind_of else right(self, keys, kind)

        return wrong

    mutant(
        name,
        "SAG-67",
        effect,
        f"{_ACTIVE}:AttemptRound.attempt",
        lambda: secagg_active.agreed(_TINY, bytes(16), 0).attempt({}, kind_of).parameters,
        _TESTS + test,
        kind="privacy",
        source="field not bound: the keys of the attempt",
    )(build)


_forgets_keys(
    "advertised-keys-not-in-the-ballot",
    "privacy: signatures of an attempt that failed count in the next one, so that two sets get a quorum",
    SignedSurvivors,
    "test_signatures_of_an_attempt_are_worth_nothing_in_the_next",
)
_forgets_keys(
    "advertised-keys-not-in-the-seal",
    "privacy: users that have different lists of keys open each other's shares",
    secagg.SecretShares,
    "test_payloads_of_an_attempt_do_not_open_in_the_next",
)


@mutant(
    "survivors-must-all-sign",
    "SAG-66",
    "failure: a round ends when a single survivor does not sign",
    f"{_ACTIVE}:server_consistency_check",
    _outcome(7, SERVER, lambda mail: mail[:4]),
    _TESTS + "test_the_server_relays_all_signatures_of_survivors_in_order",
    kind="refusal",
    source="clause too strict",
)
def _all_sign(right: Function) -> Function:
    def wrong(state: Any, inbox: Any, *, randomness: Any) -> Any:
        if len(inbox) < len(state.base.survivors):
            raise TooFewSurvivors(f"{len(inbox)} signed")
        return right(state, inbox, randomness=randomness)

    return wrong


def _sorted_quorum(right: Function) -> Function:
    def wrong(ballot: Any, proposal: Any, signers: Any, signatures: bytes) -> None:
        size = SIGNATURE_BYTES
        if len(signatures) == size * len(signers):
            pairs = sorted((user, signatures[size * at : size * (at + 1)]) for at, user in enumerate(signers))
            signers, signatures = tuple(user for user, _ in pairs), b"".join(signature for _, signature in pairs)
        right(ballot, proposal, signers, signatures)

    return wrong


def _turned(message: Any) -> Any:
    size = SIGNATURE_BYTES
    parts = [message.signatures[at : at + size] for at in range(0, len(message.signatures), size)]
    return replace(message, signers=message.signers[::-1], signatures=b"".join(parts[::-1]))


mutant(
    "survivor-signers-in-any-order-count",
    "SAG-75",
    "no interoperation: a user answers a quorum that other users refuse",
    f"{_ACTIVE}:check_quorum",
    _outcome(8, 0, lambda mail: [_turned(mail[0])]),
    _TESTS + "test_a_quorum_counts_only_in_ascending_order",
    kind="acceptance",
    source="silent repair",
)(_sorted_quorum)
