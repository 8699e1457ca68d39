"""Planted bugs of BASecAgg's active profile, which its tests find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import hash_parameters
from secagg_spec.crypto.signatures import SIGNATURE_BYTES
from secagg_spec.errors import ParameterError, ProtocolError, TooFewSurvivors
from secagg_spec.protocols import basecagg, basecagg_active
from secagg_spec.protocols.agreement import Proposal
from secagg_spec.protocols.basecagg_active import BufferQuorum, Pending, SignedBuffer
from secagg_spec.protocols.basecagg_rounds import (
    Play,
    Recover,
    Start,
    Turn,
    Upload,
    draw_randomness,
    run_turns,
    supplies,
)
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg_active import PrivateKeys, roster_of_users
from secagg_spec.protocols.shape import SERVER, Network, Role, Step

Function = Callable[..., Any]
_ACTIVE = "secagg_spec.protocols.basecagg_active"
_TESTS = "tests/protocols/test_basecagg_active.py::"
_TINY = basecagg_active.PRESETS["tiny"]
_KEYS = {user: PrivateKeys(bytes([user + 1]) * 32, bytes([user + 9]) * 32) for user in range(5)}
_ROSTER = roster_of_users(5, _KEYS)
_TURNS: list[Turn] = [*map(Start, range(3)), *map(Upload, range(3))]


def _announced() -> Network:
    """Return a session whose buffer is full and announced."""
    network = basecagg_active.open_session(_TINY, keys=_KEYS, session=bytes(16), round=0)
    sampled = draw_randomness(_TINY, SeededSource(b"mutants", "buffered"), [*_TURNS, Recover(())])
    updates = [_TINY.field.zeros(3)] * 3
    play = Play(network, supplies(_TINY, updates, sampled), basecagg_active.user_trained)
    run_turns(play, _TURNS)
    network.take(_step(network, "close", SERVER), SERVER, {"rounding": sampled["roundings"][0]})
    return network


def _step(network: Network, phase: str, party: int) -> Step:
    role = Role.SERVER if party == SERVER else Role.USER
    return next(step for step in network.table if (step.phase, step.role) == (phase, role))


def _until(*done: tuple[str, int]) -> Network:
    """Return that session after further steps."""
    network = _announced()
    for phase, party in done:
        network.take(_step(network, phase, party), party)
    return network


def _all(phase: str, users: int = 5) -> tuple[tuple[str, int], ...]:
    return tuple((phase, user) for user in range(users))


def _outcome(done: tuple[tuple[str, int], ...], phase: str, party: int, change: Function) -> Callable[[], object]:
    """Return a function that takes a step on a changed inbox, and says how it ends."""

    def witness() -> object:
        network = _until(*done)
        step = _step(network, phase, party)
        inbox = change(list(network.mail(step, party)))
        try:
            state, sent = step.run(network.states[party], inbox, randomness={})
        except ProtocolError as error:
            return type(error).__name__, sorted(error.blamed)
        return [encode(message) for message in sent], sorted(getattr(state.base, "held", ()))

    return witness


def _same(inbox: list[Any]) -> list[Any]:
    return inbox


def _few(inbox: list[Any]) -> list[Any]:
    return inbox[:3]


def _spoiled(inbox: list[Any]) -> list[Any]:
    return [replace(inbox[0], signature=bytes(SIGNATURE_BYTES)), *inbox[1:]]


def _unsigned(inbox: list[Any]) -> list[Any]:
    return [replace(inbox[0], signers=(), signatures=b"")]


def _zeros(inbox: list[Any]) -> list[Any]:
    return [replace(inbox[0], signatures=bytes(len(inbox[0].signatures)))]


def _stranger(inbox: list[Any]) -> list[Any]:
    return [*inbox, replace(inbox[0], sender=4)]


def _again() -> object:
    """Return how a user takes a second announcement of its round."""
    network = _announced()
    step = _step(network, "confirm", 4)
    mail = network.mail(step, 4)
    state, _ = step.run(network.states[4], mail, randomness={})
    try:
        return len(step.run(state, mail, randomness={})[1])
    except ProtocolError as error:
        return type(error).__name__


def _low_threshold() -> object:
    try:
        return repr(replace(_TINY, W=3))
    except ParameterError as error:
        return str(error)


def _channel_of(state: Any) -> Any:
    return state.base.channel


def _binding() -> object:
    return basecagg_active.sealing_context(_TINY, bytes(16), _ROSTER.sealing)


@mutant(
    "buffer-threshold-forgets-colluders",
    "BSA-37",
    "privacy: with 2W = N + T two buffers of one update can both get W signatures",
    f"{_ACTIVE}:Parameters.__post_init__",
    _low_threshold,
    _TESTS + "test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user",
    kind="privacy",
    source="clause left out",
)
def _any_threshold(right: Function) -> Function:
    return basecagg.Parameters.__post_init__


@mutant(
    "buffer-is-signed-without-weights",
    "BSA-38",
    "privacy: users with one quorum answer with weights that differ",
    f"{_ACTIVE}:proposal_of",
    _outcome((), "confirm", 4, _same),
    _TESTS + "test_a_user_signs_exactly_the_buffer_that_it_accepted",
    kind="privacy",
    source="field not bound: the weights",
)
def _without_weights(right: Function) -> Function:
    def proposal_of(*arguments: Any) -> Proposal:
        proposal: Proposal = right(*arguments)
        return replace(proposal, further=proposal.further[:1])

    return proposal_of


@mutant(
    "user-signs-an-update-twice",
    "BSA-39",
    "privacy: one update is in two buffers that both get W signatures, over two rounds",
    f"{_ACTIVE}:user_confirm",
    _outcome((), "confirm", 4, _same),
    _TESTS + "test_a_user_signs_once_in_a_round_and_once_for_an_update",
    kind="privacy",
    source="clause in part",
)
def _keeps_shares(right: Function) -> Function:
    def user_confirm(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, base=replace(after.base, held=state.base.held)), outbox

    return user_confirm


@mutant(
    "user-signs-a-round-twice",
    "BSA-39",
    "privacy: a user signs all that it is told of one round",
    f"{_ACTIVE}:user_confirm",
    _again,
    _TESTS + "test_a_user_signs_once_in_a_round_and_once_for_an_update",
    kind="privacy",
    source="clause in part",
)
def _signs_again(right: Function) -> Function:
    def user_confirm(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return replace(after, base=replace(after.base, answered=state.base.answered)), outbox

    return user_confirm


@mutant(
    "buffer-goes-on-with-few-signatures",
    "BSA-40",
    "robustness: the server shows a quorum that no user takes, and its buffer is lost",
    f"{_ACTIVE}:_agenda",
    _outcome(_all("confirm"), "confirm", SERVER, _few),
    _TESTS + "test_the_server_goes_on_with_exactly_W_signatures",
    kind="acceptance",
    source="off by one",
)
def _one_less(right: Function) -> Function:
    def agenda(state: Any) -> Any:
        ballot, proposal = right(state)
        return replace(ballot, enough=ballot.enough - 1), proposal

    return agenda


@mutant(
    "buffer-signatures-are-not-checked-by-the-server",
    "BSA-41",
    "robustness: one wrong signature makes all users refuse the quorum",
    f"{_ACTIVE}:_checked",
    _outcome(_all("confirm"), "confirm", SERVER, _spoiled),
    _TESTS + "test_a_wrong_signature_is_its_senders_fault_at_the_server",
    kind="acceptance",
    source="clause left out",
)
def _unchecked(right: Function) -> Function:
    def checked(state: Any, message: SignedBuffer) -> bytes:
        return message.signature

    return checked


@mutant(
    "buffer-quorum-goes-to-the-first-W",
    "BSA-42",
    "robustness: users that signed never hear that they may answer",
    f"{_ACTIVE}:server_confirm",
    _outcome(_all("confirm"), "confirm", SERVER, _same),
    _TESTS + "test_the_server_goes_on_with_exactly_W_signatures",
    kind="refusal",
    source="clause in part",
)
def _first_signers(right: Function) -> Function:
    def server_confirm(state: Any, inbox: Any, *, randomness: Any) -> Any:
        after, outbox = right(state, inbox, randomness=randomness)
        return after, outbox[: state.base.parameters.W]

    return server_confirm


_SIGNED = (*_all("confirm"), ("confirm", SERVER))


@mutant(
    "answers-without-a-quorum",
    "BSA-43",
    "privacy: users that were told different buffers answer all of them",
    f"{_ACTIVE}:user_recover",
    _outcome(_SIGNED, "recover", 4, _unsigned),
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_users",
    kind="privacy",
    source="clause left out",
)
def _no_quorum(right: Function) -> Function:
    def user_recover(state: Any, inbox: Any, *, randomness: Any) -> Any:
        pending: Pending = state.pending
        return replace(state, pending=None), (pending.answer,)

    return user_recover


@mutant(
    "buffer-quorum-is-counted-and-not-verified",
    "BSA-44",
    "privacy: the server makes up the signatures of W users",
    f"{_ACTIVE}:user_recover",
    _outcome(_SIGNED, "recover", 4, _zeros),
    _TESTS + "test_a_quorum_counts_exactly_for_the_buffer_that_was_signed",
    kind="privacy",
    source="clause in part",
)
def _counted(right: Function) -> Function:
    def user_recover(state: Any, inbox: Any, *, randomness: Any) -> Any:
        message: BufferQuorum = inbox[0]
        if len(message.signers) < state.base.parameters.W:
            raise TooFewSurvivors("too few signers")
        return replace(state, pending=None), (state.pending.answer,)

    return user_recover


@mutant(
    "buffer-profiles-share-a-name",
    "BSA-45",
    "privacy: a share that was sealed in one profile opens in the other, which asks for no signatures",
    f"{_ACTIVE}:sealing_context",
    _binding,
    _TESTS + "test_seals_are_bound_to_the_profile_and_to_W",
    kind="privacy",
    source="field not bound: the profile",
)
def _one_name(right: Function) -> Function:
    def sealing_context(*arguments: Any) -> Any:
        return replace(right(*arguments), protocol=basecagg.PROTOCOL)

    return sealing_context


@mutant(
    "buffer-keys-not-in-the-ballot",
    "BSA-47",
    "privacy: signatures of a session that was begun before count in it when it is begun again",
    f"{_ACTIVE}:ballot_of",
    lambda: basecagg_active.ballot_of(_TINY, bytes(16), 0, _ROSTER).context.parameters,
    _TESTS + "test_signatures_of_an_attempt_are_worth_nothing_in_the_next",
    kind="privacy",
    source="field not bound: the keys of the attempt",
)
def _no_keys_signed(right: Function) -> Function:
    def ballot_of(parameters: Any, *rest: Any) -> Any:
        ballot = right(parameters, *rest)
        bound = hash_parameters(parameters.numbers())
        return replace(ballot, context=replace(ballot.context, parameters=bound))

    return ballot_of


@mutant(
    "buffer-keys-not-in-the-seal",
    "BSA-47",
    "privacy: users that have different lists of keys open each other's shares",
    f"{_ACTIVE}:SealedStampedChannel",
    lambda: _channel_of(basecagg_active.user_start(_TINY, bytes(16), 0, 0, _KEYS[0], _ROSTER)).context.parameters,
    _TESTS + "test_payloads_of_an_attempt_do_not_open_in_the_next",
    kind="privacy",
    source="field not bound: the keys of the attempt",
)
def _no_keys_sealed(right: Function) -> Function:
    def channel(context: Any, *rest: Any) -> Any:
        return right(replace(context, parameters=hash_parameters(_TINY.numbers())), *rest)

    return channel


@mutant(
    "buffer-is-answered-by-anyone",
    "BSA-46",
    "robustness: an answer of a user that signed another buffer spoils the recovery",
    f"{_ACTIVE}:server_recover",
    _outcome((*_all("confirm", 4), ("confirm", SERVER), *_all("recover", 4)), "recover", SERVER, _stranger),
    _TESTS + "test_only_signers_may_answer",
    kind="acceptance",
    source="clause left out",
)
def _from_anyone(right: Function) -> Function:
    def server_recover(state: Any, inbox: Any, *, randomness: Any) -> Any:
        everyone = tuple(range(state.base.parameters.N))
        return right(replace(state, signers=everyone), inbox, randomness=randomness)

    return server_recover


def _sorted_quorum(right: Function) -> Function:
    def wrong(ballot: Any, proposal: Any, signers: Any, signatures: bytes) -> None:
        size = SIGNATURE_BYTES
        if len(signatures) == size * len(signers):
            pairs = sorted((user, signatures[size * at : size * (at + 1)]) for at, user in enumerate(signers))
            signers, signatures = tuple(user for user, _ in pairs), b"".join(signature for _, signature in pairs)
        right(ballot, proposal, signers, signatures)

    return wrong


def _turned(inbox: list[Any]) -> list[Any]:
    quorum = inbox[0]
    parts = [quorum.signatures[at : at + SIGNATURE_BYTES] for at in range(0, len(quorum.signatures), SIGNATURE_BYTES)]
    return [replace(quorum, signers=quorum.signers[::-1], signatures=b"".join(parts[::-1]))]


mutant(
    "buffer-signers-in-any-order-count",
    "BSA-50",
    "no interoperation: a user answers a quorum on a buffer that other users refuse",
    f"{_ACTIVE}:check_quorum",
    _outcome((*_all("confirm"), ("confirm", SERVER)), "recover", 4, _turned),
    _TESTS + "test_a_share_is_released_exactly_after_W_signatures_of_users",
    kind="acceptance",
    source="silent repair",
)(_sorted_quorum)
