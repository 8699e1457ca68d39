"""SecAgg's active profile: what is signed, what is refused, and that nobody answers for two sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.keys import Roster, sha256
from secagg_spec.crypto.keys import fields as fields_of
from secagg_spec.crypto.sealing import Context
from secagg_spec.crypto.signatures import sign, signed_fields, verification_key
from secagg_spec.errors import (
    BadSignature,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    WrongPhase,
)
from secagg_spec.protocols.agreement import words
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg import active as secagg_active
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.active import (
    PHASES,
    PRESETS,
    TABLE,
    Parameters,
    SignedKeys,
    SignedNeighbourKeys,
    SignedSurvivors,
    SurvivorQuorum,
    open_round,
    run_round,
)
from secagg_spec.protocols.secagg.round import SecretShares, UnmaskRequest, draw_randomness
from secagg_spec.protocols.steps import SERVER, Network, Randomness, Role
from tests.protocols.test_secagg import section
from tests.strategies import integers_of, snapshot

TINY = PRESETS["tiny"]
ADVERTISE, KEYS, SHARE, RELAY, INPUT, ASK, SIGN, COLLECT, ANSWER, UNMASK = range(10)
SIGNING = {user: bytes([user + 1]) * 32 for user in range(10)}


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a round takes, but who drops out."""

    parameters: Parameters
    updates: UintArray
    randomness: dict[int, Randomness]

    @property
    def signing(self) -> dict[int, bytes]:
        """The private signing keys."""
        return {user: SIGNING[user] for user in range(self.parameters.N)}

    def plain_sum(self, users: Sequence[int]) -> list[int]:
        """The sum of the updates of some users, by Python integers."""
        rows = self.updates[list(users)].tolist()
        return [sum(column) % self.parameters.R for column in zip(*rows, strict=True)]


@cache
def case_of(parameters: Parameters, seed: int = 1) -> Case:
    """A round whose every sampled value differs, from a seed."""
    sources = {user: SeededSource(b"%d" % seed, f"active {user}") for user in range(parameters.N)}
    updates = draw_elements(SeededSource(b"%d" % seed, "active"), parameters.ring, (parameters.N, parameters.d))
    return Case(parameters, updates, dict(draw_randomness(parameters, sources)))


def parties(row: int, N: int) -> Sequence[int]:
    """Who takes a row of the table."""
    return (SERVER,) if TABLE[row].role is Role.SERVER else range(N)


def stage(case: Case, rows: int, absent: Sequence[int] = (), since: int = ADVERTISE) -> Network:
    """A network on which every party has taken the first `rows` rows; some users are absent from a row on."""
    network = open_round(case.parameters, case.updates, signing=case.signing, session=bytes(16), round=0)
    for row, step in enumerate(TABLE[:rows]):
        for party in parties(row, case.parameters.N):
            if row < since or party not in absent:
                network.take(step, party, {name: case.randomness[party][name] for name in step.randomness})
    return network


def attempt(case: Case, row: int, network: Network, party: int, inbox: Sequence[Message]) -> Any:
    """Take a step on an inbox, and return the new state and what is sent."""
    sampled = {name: case.randomness[party][name] for name in TABLE[row].randomness}
    return TABLE[row].take(network.states[party], tuple(inbox), randomness=sampled)


def refused(
    case: Case, row: int, network: Network, party: int, inbox: Sequence[Message], error: type[Exception]
) -> Any:
    """The refusal of an inbox, which leaves the state as it was, and after which the right step is taken."""
    before = snapshot(network.states[party])
    with pytest.raises(error) as caught:
        attempt(case, row, network, party, inbox)
    assert type(caught.value) is error
    assert snapshot(network.states[party]) == before
    attempt(case, row, network, party, network.mail(TABLE[row], party))
    return caught.value


def altered(data: bytes, at: int = 0) -> bytes:
    """Bytes with one bit flipped."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.requirement("SAG-50")
def test_parameters_are_taken_exactly_inside_the_bounds() -> None:
    for N, D, T, t, k in product(range(3, 9), range(3), range(1, 4), range(2, 9), range(2, 8)):
        allowed = k == N - 1 and N - D >= T + 2 and T + 2 <= t <= N - D and 2 * t > N + T
        if allowed:
            assert Parameters(2, N, D, T, t, k, 1).complete
        else:
            with pytest.raises(ParameterError):
                Parameters(2, N, D, T, t, k, 1)


@pytest.mark.requirement("SAG-50")
@pytest.mark.parametrize("t", [1, 4, 5, 7])
def test_the_threshold_that_is_refused_is_named_with_those_that_signatures_allow(t: int) -> None:
    with pytest.raises(ParameterError, match=rf"^t = {t}: must be an integer in \[6, 6\]$"):
        Parameters(R=2, N=8, D=2, T=3, t=t, k=7, d=1)
    with pytest.raises(ParameterError, match=r"^k = 4: must be N - 1 = 7 in the active profile$"):
        Parameters(R=2, N=8, D=2, T=3, t=4, k=4, d=1)


@pytest.mark.requirement("ERR-02")
def test_the_start_of_a_party_names_a_round_and_a_roster_that_are_none() -> None:
    state = stage(case_of(TINY), 0).states[SERVER]
    right = {"round": state.base.round, "roster": state.roster}
    plain = secagg.Round(TINY, TINY.graph(), bytes(16), 0)
    for name, wrong in (("round", plain), ("round", None), ("roster", None), ("roster", []), ("roster", {})):
        given: dict[str, Any] = {**right, name: wrong}
        with pytest.raises(ParameterError, match=f"^{name} = "):
            secagg_active.server_start(**given)
        with pytest.raises(ParameterError, match=f"^{name} = "):
            secagg_active.user_start(user=0, update=case_of(TINY).updates[0], signing=SIGNING[0], **given)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize("row", range(len(TABLE)))
def test_a_step_refuses_the_state_of_another_party_and_blames_nobody(row: int) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party, other = (SERVER, 1) if TABLE[row].role is Role.SERVER else (0, SERVER)
    inbox = network.mail(TABLE[row], party)
    sampled = {name: case.randomness[party][name] for name in TABLE[row].randomness}
    for wrong in (network.states[other], None, 5):
        with pytest.raises(ParameterError, match=r"^state = "):
            TABLE[row].take(wrong, inbox, randomness=sampled)


@pytest.mark.requirement("SAG-65", "SAG-51", "SAG-56")
def test_what_is_signed_is_what_the_text_says() -> None:
    case = case_of(TINY)
    network = stage(case, COLLECT, absent=(4,), since=INPUT)
    context = Context("secagg-active", TINY.digest, bytes(16), 0, 520)
    for event in network.transcript:
        for message in event.sent:
            if isinstance(message, SignedKeys):
                data = signed_fields(context, "advertised-keys", event.party, (message.sealing, message.masking))
                assert message.signature == sign(SIGNING[event.party], data)
            if isinstance(message, SignedSurvivors):
                after = replace(context, message_type=522, parameters=attempt_of(network))
                data = signed_fields(after, "surviving-set", event.party, (words((0, 1, 2, 3)),))
                assert message.signature == sign(SIGNING[event.party], data)
    assert network.states[0].base.round.context().protocol == "secagg-active"


def attempt_of(network: Network) -> bytes:
    """What the parameters and the advertised keys of an attempt are hashed to, by hand."""
    sent = [m for event in network.transcript for m in event.sent if isinstance(m, SignedKeys)]
    listed = [part for m in sorted(sent, key=lambda m: m.sender) for part in (m.sender, m.sealing, m.masking)]
    names = [part for name in ("R", "N", "D", "T", "t", "k", "d") for part in (name, str(getattr(TINY, name)))]
    return sha256(fields_of(*names, "keys", sha256(fields_of(*listed))))


def again(fresh: Sequence[int]) -> Case:
    """The case of `case_of(TINY)` in another attempt, for which some users draw other keys."""
    case, other = case_of(TINY), case_of(TINY, 2)
    drawn: dict[int, Randomness] = {
        user: {**case.randomness[user], **(advertised(other, user) if user in fresh else {})} for user in range(5)
    }
    return replace(case, randomness=drawn)


def advertised(case: Case, user: int) -> dict[str, Any]:
    """The private keys that a user draws for an attempt."""
    return {name: case.randomness[user][name] for name in ("sealing_key", "masking_key")}


def signed_by(network: Network) -> dict[int, Any]:
    """The signatures that wait for the server, by user."""
    return {message.sender: message for message in network.mail(TABLE[COLLECT], SERVER)}


FRESH = [(0,), (3,), (1, 4), (0, 1, 2, 3, 4)]


@pytest.mark.requirement("SAG-67", "SAG-60", "SAG-62", "SAG-57")
@pytest.mark.parametrize("fresh", FRESH)
def test_signatures_of_an_attempt_are_worth_nothing_in_the_next(fresh: Sequence[int]) -> None:
    """A round is begun again under one session, round and signing keys; some users advertise other keys."""
    case, later = case_of(TINY), again(fresh)
    first, second = stage(case, COLLECT), stage(later, COLLECT)
    old, new = signed_by(first), signed_by(second)
    users = tuple(range(5))
    for some_old in ((1,), users):
        mixed = [(old if user in some_old else new)[user] for user in users]
        with pytest.raises(BadSignature) as failed:
            attempt(later, COLLECT, second, SERVER, mixed)
        assert failed.value.blamed == {some_old[0]}
        shown = SurvivorQuorum(bytes(16), 0, SERVER, 0, users, b"".join(m.signature for m in mixed))
        with pytest.raises(BadSignature) as failed:
            attempt(later, ANSWER, second, 0, [shown])
        assert failed.value.blamed == {SERVER}
    right = SurvivorQuorum(bytes(16), 0, SERVER, 0, users, b"".join(new[user].signature for user in users))
    assert attempt(later, ANSWER, second, 0, [right])[1]


@pytest.mark.requirement("SAG-67", "SEA-02")
@pytest.mark.parametrize("fresh", FRESH)
def test_payloads_of_an_attempt_do_not_open_in_the_next(fresh: Sequence[int]) -> None:
    case, later = case_of(TINY), again(fresh)
    first, second = stage(case, INPUT), stage(later, INPUT)
    for user in range(5):
        old, new = (list(network.mail(TABLE[INPUT], user)) for network in (first, second))
        for network, own, other in ((first, old, new), (second, new, old)):
            for at, message in enumerate(own):
                foreign = next(m for m in other if m.sender == message.sender)
                with pytest.raises(DecryptionFailed) as failed:
                    attempt(case, INPUT, network, user, [*own[:at], foreign, *own[at + 1 :]])
                assert failed.value.blamed == {message.sender, SERVER}
            attempt(case, INPUT, network, user, own)


@pytest.mark.requirement("SAG-67")
def test_a_server_that_gives_users_different_lists_of_keys_gets_no_share_opened() -> None:
    """User 0 is told of four users, the others of five: what user 0 sealed opens nowhere, and nothing opens for it."""
    case = case_of(TINY)
    network = stage(case, SHARE)
    [keys] = network.mail(TABLE[SHARE], 0)
    assert isinstance(keys, SignedNeighbourKeys)
    fewer = replace(keys, users=keys.users[:3], sealing=keys.sealing[:96], masking=keys.masking[:96],
                    signatures=keys.signatures[:192])  # fmt: skip
    state, sent = attempt(case, SHARE, network, 0, [fewer])
    other, _ = attempt(case, SHARE, network, 1, network.mail(TABLE[SHARE], 1))
    shares = [m for m in sent if isinstance(m, SecretShares) and m.receiver == 1]
    with pytest.raises(DecryptionFailed):
        secagg_active.TABLE[INPUT].take(other, shares, randomness={})
    assert state.base.peers.keys() == {0, 1, 2, 3}


@pytest.mark.requirement("SAG-66", "SAG-58", "SAG-50")
@given(st.sampled_from((TINY, replace(TINY, N=6, k=5, t=4), replace(TINY, D=0))), st.integers(0, 3), st.data())
def test_a_round_succeeds_exactly_when_the_text_says_so(parameters: Parameters, seed: int, data: st.DataObject) -> None:
    case = case_of(parameters, seed)
    fates = data.draw(
        st.lists(st.sampled_from(("stays", "stays", "stays", *PHASES)), min_size=parameters.N, max_size=parameters.N)
    )
    dropouts = {phase: [user for user, fate in enumerate(fates) if fate == phase] for phase in PHASES}
    here = {
        phase: [u for u, fate in enumerate(fates) if fate == "stays" or PHASES.index(fate) > at]
        for at, phase in enumerate(PHASES)
    }
    enough = max(parameters.t, parameters.T + 2)
    arguments: dict[str, Any] = {"randomness": case.randomness, "signing": case.signing, "dropouts": dropouts}
    arguments.update(session=bytes(16), round=0)
    if len(here["unmasking"]) < enough:
        with pytest.raises(TooFewSurvivors):
            run_round(parameters, case.updates, **arguments)
        return
    result = run_round(parameters, case.updates, **arguments)
    assert result.contributors == tuple(here["masked_input"])
    assert integers_of(result.aggregate) == case.plain_sum(here["masked_input"])


@pytest.mark.requirement("SAG-52", "ERR-01")
@pytest.mark.parametrize("name", ["sealing", "masking", "signature"])
def test_the_server_refuses_keys_that_their_owner_did_not_sign(name: str) -> None:
    case = case_of(TINY)
    network = stage(case, KEYS)
    mail: list[Any] = list(network.mail(TABLE[KEYS], SERVER))
    inbox = [*mail[:2], replace(mail[2], **{name: altered(getattr(mail[2], name))}), *mail[3:]]
    assert refused(case, KEYS, network, SERVER, inbox, BadSignature).blamed == {2}
    borrowed = replace(mail[2], sealing=mail[1].sealing, masking=mail[1].masking, signature=mail[1].signature)
    assert refused(case, KEYS, network, SERVER, [*mail[:2], borrowed], BadSignature).blamed == {2}


@pytest.mark.requirement("SAG-53", "ERR-01")
@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, sealing=altered(m.sealing, 40)),
        lambda m: replace(m, masking=altered(m.masking, 40)),
        lambda m: replace(m, signatures=altered(m.signatures, 80)),
        lambda m: replace(m, users=(1, 2, 3, 9)),
        lambda m: replace(m, sealing=m.masking, masking=m.sealing),
    ],
)
def test_a_user_refuses_keys_that_their_owner_did_not_sign(change: Callable[[Any], Message]) -> None:
    case = case_of(TINY)
    network = stage(case, SHARE)
    error = refused(case, SHARE, network, 0, [change(network.mail(TABLE[SHARE], 0)[0])], BadSignature)
    assert error.blamed == {SERVER}


@pytest.mark.requirement("MSG-02", "SAG-53")
def test_signatures_of_another_length_are_refused() -> None:
    case = case_of(TINY)
    network = stage(case, SHARE)
    message: Any = network.mail(TABLE[SHARE], 0)[0]
    for signatures in (b"", message.signatures[:-1], message.signatures + b"\0"):
        refused(case, SHARE, network, 0, [replace(message, signatures=signatures)], Malformed)


@pytest.mark.requirement("SAG-52")
def test_keys_of_another_session_are_refused() -> None:
    case = case_of(TINY)
    network, other = stage(case, KEYS), open_round(TINY, case.updates, signing=case.signing, session=b"s" * 16, round=0)
    event = other.take(TABLE[ADVERTISE], 2, {n: case.randomness[2][n] for n in TABLE[ADVERTISE].randomness})
    mail = list(network.mail(TABLE[KEYS], SERVER))
    old = replace(event.sent[0], session=bytes(16))
    assert refused(case, KEYS, network, SERVER, [*mail[:2], old], BadSignature).blamed == {2}


@pytest.mark.requirement("SAG-54", "SAG-55", "ERR-01")
def test_a_user_signs_once_and_only_what_it_may_answer() -> None:
    case = case_of(TINY)
    network = stage(case, SIGN, absent=(4,), since=SHARE)
    right: Any = network.mail(TABLE[SIGN], 0)[0]
    for survivors, dropped, error in (
        ((0, 1, 2, 2), (3,), InconsistentSets),
        ((0, 1, 2, 3), (3,), InconsistentSets),
        ((1, 2, 3), (0,), InconsistentSets),
        ((0, 1, 2), (3,), TooFewSurvivors),
        ((0, 1, 2, 3, 4), (), InconsistentSets),
    ):
        refused(case, SIGN, network, 0, [replace(right, survivors=survivors, dropped=dropped)], error)
    refused(case, SIGN, network, 0, [], WrongPhase)
    network.take(TABLE[SIGN], 0)
    with pytest.raises(Replay):
        attempt(case, SIGN, network, 0, [right])


@pytest.mark.requirement("SAG-57", "SAG-58", "SAG-59", "SAG-66", "ERR-01")
def test_the_server_relays_all_signatures_of_survivors_in_order() -> None:
    case = case_of(TINY)
    network = stage(case, COLLECT)
    mail: list[Any] = list(network.mail(TABLE[COLLECT], SERVER))
    for count in range(6):
        if count < 4:
            refused(case, COLLECT, network, SERVER, mail[:count], TooFewSurvivors)
            continue
        _, sent = attempt(case, COLLECT, network, SERVER, mail[:count][::-1])
        together = b"".join(message.signature for message in mail[:count])
        want = [(user, tuple(range(count)), together) for user in range(count)]
        assert [(m.receiver, m.signers, m.signatures) for m in sent] == want
    inbox = [*mail[:2], replace(mail[2], signature=altered(mail[2].signature)), *mail[3:]]
    assert refused(case, COLLECT, network, SERVER, inbox, BadSignature).blamed == {2}
    swapped = [replace(mail[0], signature=mail[1].signature), *mail[1:]]
    assert refused(case, COLLECT, network, SERVER, swapped, BadSignature).blamed == {0}


@pytest.mark.requirement("SAG-75", "ERR-01")
@pytest.mark.parametrize("order", [(1, 0, 2, 3), (3, 2, 1, 0), (0, 1, 3, 2), (1, 2, 3, 0)])
def test_a_quorum_counts_only_in_ascending_order(order: tuple[int, ...]) -> None:
    case = case_of(TINY)
    network = stage(case, ANSWER, absent=(4,), since=INPUT)
    [right] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(right, SurvivorQuorum)
    assert right.signers == (0, 1, 2, 3)
    together = b"".join(right.signatures[64 * user : 64 * user + 64] for user in order)
    wrong = replace(right, signers=order, signatures=together)
    assert refused(case, ANSWER, network, 0, [wrong], Malformed).blamed == {SERVER}


@pytest.mark.requirement("SAG-60", "SAG-61", "SAG-62", "SAG-63", "ERR-01")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: replace(m, signers=m.signers[:3], signatures=m.signatures[:192]), TooFewSurvivors),
        (lambda m: replace(m, signers=(), signatures=b""), TooFewSurvivors),
        (
            lambda m: replace(m, signers=(0, 1, 2, 2), signatures=m.signatures[:192] + m.signatures[128:192]),
            InconsistentSets,
        ),
        (lambda m: replace(m, signers=(0, 1, 2, 4)), InconsistentSets),
        (lambda m: replace(m, signers=(0, 1, 2, SERVER)), InconsistentSets),
        (lambda m: replace(m, signatures=altered(m.signatures, 130)), BadSignature),
        (lambda m: replace(m, signatures=m.signatures[64:] + m.signatures[:64]), BadSignature),
        (lambda m: replace(m, signatures=m.signatures[:-1]), Malformed),
    ],
)
def test_a_quorum_that_cannot_be_right_is_refused(change: Callable[[Any], Message], error: type[ProtocolError]) -> None:
    case = case_of(TINY)
    network = stage(case, ANSWER, absent=(4,), since=INPUT)
    found = refused(case, ANSWER, network, 0, [change(network.mail(TABLE[ANSWER], 0)[0])], error)
    assert found.blamed == (set() if error is TooFewSurvivors else {SERVER})


@pytest.mark.requirement("SAG-60", "SAG-62")
def test_a_quorum_on_another_set_gets_no_answer() -> None:
    """A server tells users 0 and 1 one set and users 2 and 3 another; with user 4 as its colluder it gets no answer."""
    case = case_of(TINY)
    network = stage(case, SIGN)
    sets = {0: (0, 1, 2, 3, 4), 1: (0, 1, 2, 3, 4), 2: (0, 1, 2, 3), 3: (0, 1, 2, 3)}
    state = network.states[0].base
    context = state.round.attempt(state.peers, SignedSurvivors)
    for user, survivors in sets.items():
        dropped = tuple(sorted({0, 1, 2, 3, 4} - set(survivors)))
        network.waiting[user] = [UnmaskRequest(bytes(16), 0, SERVER, user, survivors, dropped)]
        network.take(TABLE[SIGN], user)
    signed = {m.sender: m.signature for m in network.waiting[SERVER] if isinstance(m, SignedSurvivors)}
    for survivors in set(sets.values()):
        signed[4] = sign(SIGNING[4], signed_fields(context, "surviving-set", 4, (words(survivors),)))
        signers = tuple(user for user in (0, 1, 2, 3, 4) if user in survivors)
        quorum = b"".join(signed[user] for user in signers)
        for user in sets:
            message = SurvivorQuorum(bytes(16), 0, SERVER, user, signers, quorum)
            with pytest.raises((BadSignature, InconsistentSets)) as caught:
                attempt(case, ANSWER, network, user, [message])
            assert caught.value.blamed == {SERVER}


@pytest.mark.requirement("SAG-64", "ERR-01")
def test_an_answer_of_a_user_that_did_not_sign_is_refused() -> None:
    case = case_of(TINY)
    network = stage(case, UNMASK, absent=(4,), since=SIGN)
    mail = network.mail(TABLE[UNMASK], SERVER)
    error = refused(case, UNMASK, network, SERVER, [*mail, replace(mail[0], sender=4)], InconsistentSets)
    assert error.blamed == {4}


@pytest.mark.requirement("MSG-03", "MSG-04", "ERR-01")
@pytest.mark.parametrize("row", range(1, 10))
def test_messages_from_elsewhere_and_second_ones_are_refused(row: int) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party = parties(row, 5)[0]
    mail: list[Any] = list(network.mail(TABLE[row], party))
    refused(case, row, network, party, [*mail, mail[-1]], Replay)
    for change in ({"session": b"s" * 16}, {"round": 1}):
        refused(case, row, network, party, [replace(mail[0], **change), *mail[1:]], WrongPhase)


@pytest.mark.requirement("MSG-03")
@pytest.mark.parametrize("row", range(10))
def test_each_step_is_taken_once_and_in_its_turn(row: int) -> None:
    case = case_of(TINY)
    party, network = parties(row, 5)[0], stage(case, row)
    mail = network.mail(TABLE[row], party)
    network.take(TABLE[row], party, {name: case.randomness[party][name] for name in TABLE[row].randomness})
    with pytest.raises(Replay):
        attempt(case, row, network, party, mail)
    for other in range(row + 2, 10, 2):
        with pytest.raises(WrongPhase):
            attempt(case, other, stage(case, row), party, ())


@pytest.mark.requirement("SIG-04", "SIG-05", "SAG-53")
def test_a_start_with_other_keys_is_refused() -> None:
    case, round = case_of(TINY), secagg_active.agreed(TINY, bytes(16), 0)
    roster = Roster(tuple(verification_key(SIGNING[user]) for user in range(5)))
    with pytest.raises(ParameterError, match="signing"):
        secagg_active.user_start(round, 0, case.updates[0], SIGNING[1], roster)
    with pytest.raises(LengthMismatch, match="signing"):
        secagg_active.user_start(round, 0, case.updates[0], bytes(31), roster)
    with pytest.raises(LengthMismatch, match="roster"):
        secagg_active.server_start(round, Roster(roster.keys[:4]))
    with pytest.raises(ParameterError, match=rf"signing.* the users 0 to {TINY.N - 1}\b"):
        open_round(TINY, case.updates, signing={0: SIGNING[0]}, session=bytes(16), round=0)


def test_parameters_of_the_semi_honest_profile_are_refused_by_name() -> None:
    plain: Any = secagg.Parameters(8, 5, 1, 1, 4, 4, 3)
    text = r"^parameters = 'Parameters of .*secagg\.round': must be of the class Parameters of .*secagg\.active"
    with pytest.raises(ParameterError, match=text):
        open_round(plain, case_of(TINY).updates, signing=dict(list(SIGNING.items())[:5]), session=bytes(16), round=0)


def test_the_tables_of_the_text_are_those_of_the_reference() -> None:
    text = section(10)
    phases = re.findall(r"^\| `(\w+)` \| (user|server) \|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    stated = [(phase, role, *(re.findall(r"`(\w+)`", cell) for cell in cells)) for phase, role, *cells in phases]
    assert stated == [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
    ]
    messages = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", text, re.MULTILINE)
    kinds = (SignedKeys, SignedNeighbourKeys, SignedSurvivors, SurvivorQuorum)
    assert [(name, int(number)) for name, number, _ in messages] == [(kind.__name__, kind.TYPE) for kind in kinds]
    for (_, _, cell), kind in zip(messages, kinds, strict=True):
        assert re.findall(r"`(\w+)` \(`\w+`\)", cell) == [entry.name for entry in fields(kind)][4:]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| t |")]
    assert [int(cell) for cell in rows[0][1:]] == [preset.t for preset in PRESETS.values()]
