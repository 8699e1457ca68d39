"""LightSecAgg, active profile: every dropout schedule at tiny, what users sign and release, and mutants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from functools import cache, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from secagg_spec.conformance.mutants import catalogue as mutants
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.crypto.keys import Roster, public_key
from secagg_spec.crypto.sealing import OVERHEAD
from secagg_spec.crypto.signatures import sign, verification_key
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
from secagg_spec.protocols import agreement, codec
from secagg_spec.protocols.agreement import Proposal
from secagg_spec.protocols.codec import encode
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.active import (
    PHASES,
    PRESETS,
    TABLE,
    Parameters,
    PrivateKeys,
    Quorum,
    SignedSet,
    UserState,
)
from secagg_spec.protocols.lightsecagg.round import MaskShare, SurvivingSet
from secagg_spec.protocols.steps import SERVER, Network, Role, RoundResult, run_synchronous, sizes
from tests.protocols.test_lightsecagg import cost_table, evaluated, party_of, plain_sum
from tests.quick import part, some
from tests.strategies import Round, fewer, fixed_round, integers_of, rounds, sessions, snapshot
from tests.test_text import FIELD_TYPES, code, own_fields, page, rows

TINY, DEFAULT = PRESETS["tiny"], PRESETS["default"]
SHARE, RELAY, UPLOAD, ANNOUNCE, CONFIRM, COUNT, ANSWER, RECOVER = range(8)
SESSION = bytes(16)
FATES = ("stays", *PHASES)
EVERYONE = tuple(range(5))
KEYS = {user: PrivateKeys(bytes([user + 1]) * 32, bytes([user + 101]) * 32) for user in range(12)}
ROSTER = lightsecagg_active.roster_of(TINY, {user: KEYS[user] for user in EVERYONE})


def keys_of(p: lightsecagg.Parameters) -> dict[int, PrivateKeys]:
    """The private keys of the users of a session."""
    return {user: KEYS[user] for user in range(p.N)}


def dropouts(schedule: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """A schedule in the form that `run_round` takes."""
    return {phase: tuple(user for user, fate in enumerate(schedule) if fate == phase) for phase in PHASES}


def run(case: Round, schedule: Sequence[str] = (), **more: Any) -> RoundResult:
    """The round with a schedule."""
    p: Any = case.parameters
    arguments: dict[str, Any] = {"randomness": case.randomness, "keys": keys_of(p), "dropouts": dropouts(schedule)}
    where = {"session": bytes(16), "round": 0}
    return lightsecagg_active.run_round(p, case.updates, **arguments, **{**where, **more})


def open_plain(case: Round) -> Network:
    """The network of a round whose shares are not sealed, which is quicker and the same in all other things."""
    p: Any = case.parameters
    network = lightsecagg_active.open_round(p, case.updates, keys=keys_of(p), session=bytes(16), round=0)
    for user in range(p.N):
        state = network.states[user]
        network.states[user] = replace(state, base=replace(state.base, channel=PlainChannel()))
    return network


def stage(case: Round, taken: int) -> Network:
    """A network on which every party has taken the first rows of the table."""
    network = open_plain(case)
    for step in TABLE[:taken]:
        for party in party_of(step, case.parameters.N):
            network.take(step, party, case.randomness[party] if step.randomness else None)
    return network


def outcome(call: Callable[[], Any]) -> str:
    """How a call ends: the name of its failure, or ``done``."""
    try:
        call()
    except (ParameterError, ProtocolError) as error:
        return type(error).__name__
    return "done"


def tell(state: Any, users: Sequence[int]) -> Any:
    """A user takes the step `confirm` on a surviving set."""
    message = SurvivingSet(SESSION, 0, SERVER, state.base.user, tuple(users))
    return lightsecagg_active.user_confirm.take(state, (message,), randomness={})


def signature_on(user: int, users: Sequence[int], **changed: Any) -> bytes:
    """The signature of a user at tiny that signs anything, perhaps for another context."""
    context = lightsecagg_active.binding_context(TINY, SESSION, 0, SignedSet, ROSTER.sealing)
    ballot = replace(waiting().ballot, context=replace(context, **changed))
    return agreement.sign_proposal(ballot, KEYS[user].signing, user, Proposal(tuple(users)))


def show(state: Any, signers: Sequence[int], signatures: Sequence[bytes]) -> Any:
    """A user takes the step `recover` on a quorum."""
    message = Quorum(SESSION, 0, SERVER, state.base.user, tuple(signers), b"".join(signatures))
    return lightsecagg_active.user_recover.take(state, (message,), randomness={})


@cache
def waiting() -> UserState:
    """User 0 at tiny, ready for a surviving set, with the shares of everybody."""
    state = stage(fixed_round(TINY), CONFIRM).states[0]
    assert isinstance(state, UserState)
    return state


# ------------------------------------------------------------------------------------------------------ parameters


def two_quorums(N: int, T: int, W: int) -> bool:
    """Whether W users sign one set and W another, T of them both: users are given to one, the other, or both."""
    return any(
        twice + first >= W and twice + second >= W
        for twice in range(T + 1)
        for first in range(N - twice + 1)
        for second in range(N - twice - first + 1)
    )


@pytest.mark.requirement("LSA-19")
def test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user() -> None:
    for N, D, U, T in product(range(3, 8), range(3), range(2, 6), range(1, 4)):
        if U > T and max(U, T + 2) <= N - D:
            for W in range(N + 2):
                allowed = W >= 1 and not two_quorums(N, T, W) and W <= N - D
                made = outcome(lambda N=N, D=D, U=U, T=T, W=W: Parameters(11, N, D, U, T, 1, W))  # type: ignore[misc]
                assert made == ("done" if allowed else "ParameterError"), (N, D, U, T, W)


@pytest.mark.requirement("LSA-19")
@pytest.mark.parametrize(
    ("W", "text"),
    [
        (W, rf"^W = {W}: must be an integer of at least 4, so that 2\*W > N \+ T = 6, and at most N - D = 4$")
        for W in (3, 5, 0, -1, 2**32)
    ],
)
def test_the_bound_is_named(W: int, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        replace(TINY, W=W)


@pytest.mark.requirement("LSA-19")
def test_the_preset_paper_of_the_semi_honest_profile_admits_no_W() -> None:
    for W in range(1, 102):
        with pytest.raises(ParameterError, match="W = "):
            Parameters(**asdict(lightsecagg.PRESETS["paper"]), W=W)


@pytest.mark.requirement("LSA-01")
def test_the_rules_of_the_semi_honest_profile_hold() -> None:
    with pytest.raises(ParameterError, match="T = 0"):
        replace(TINY, T=0)


# ----------------------------------------------------------------------------------------------------- whole rounds


def succeeds(p: Parameters, schedule: Sequence[str]) -> bool:
    """What LSA-30 says."""
    surviving = sum(fate not in ("share", "upload") for fate in schedule)
    confirming = sum(fate in ("stays", "recover") for fate in schedule)
    return surviving >= max(p.U, p.T + 2) and confirming >= p.W and schedule.count("stays") >= p.U


@pytest.mark.slow
@pytest.mark.requirement("LSA-30", "LSA-23", "LSA-13", "LSA-17")
def test_every_schedule_at_tiny_succeeds_exactly_when_the_text_says_so() -> None:
    case, successes = fixed_round(TINY), 0
    opened = open_plain(case).states
    schedules = list(product(FATES, repeat=5))
    assert sum(succeeds(TINY, schedule) for schedule in schedules) == 1 + 5 * 4 + 10 + 5 * 4 * 3
    for schedule in some(3, schedules):
        network = Network(TABLE, dict(opened))
        if not succeeds(TINY, schedule):
            with pytest.raises(TooFewSurvivors) as caught:
                run_synchronous(network, dropouts(schedule), case.randomness)
            assert not caught.value.blamed
            continue
        run_synchronous(network, dropouts(schedule), case.randomness)
        server = network.states[SERVER].base
        surviving = tuple(user for user, fate in enumerate(schedule) if fate not in ("share", "upload"))
        assert server.surviving == surviving
        assert integers_of(server.aggregate) == plain_sum(case, surviving)
        successes += 1
    assert successes == sum(succeeds(TINY, schedule) for schedule in some(3, schedules))


@pytest.mark.requirement("LSA-30", "LSA-31", "LSA-13")
@fewer(2)
@given(st.data())
def test_a_sealed_round_gives_the_plain_sum(data: st.DataObject) -> None:
    base = data.draw(sessions().filter(lambda p: 2 * (p.N - p.D) > p.N + p.T))
    p = Parameters(**asdict(base), W=data.draw(st.integers((base.N + base.T) // 2 + 1, base.N - base.D)))
    case = data.draw(rounds(p))
    fates = st.sampled_from(("stays",) * 5 + PHASES)
    schedule = data.draw(st.lists(fates, min_size=p.N, max_size=p.N))
    if succeeds(p, schedule):
        result = run(case, schedule)
        assert integers_of(result.aggregate) == plain_sum(case, result.contributors)
        assert result.contributors == tuple(u for u, fate in enumerate(schedule) if fate not in ("share", "upload"))
    else:
        with pytest.raises(TooFewSurvivors):
            run(case, schedule)


@pytest.mark.requirement("LSA-30")
@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_work(name: str) -> None:
    p = PRESETS[name]
    case = fixed_round(p)
    schedule = ["stays"] * p.N
    schedule[: p.D] = ["upload"] * p.D
    assert integers_of(run(case, schedule).aggregate) == plain_sum(case, range(p.D, p.N))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Proposal(5), "members = "),  # type: ignore[arg-type]
        (lambda: Proposal((0, "1")), "members = "),  # type: ignore[arg-type]
        (lambda: Proposal((0, 1), voters=5), "voters = "),  # type: ignore[arg-type]
        (lambda: replace(open_plain(fixed_round(TINY)).states[0].ballot, enough="3"), "enough = "),
    ],
)
def test_what_users_agree_on_is_refused_where_it_is_made(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ParameterError, match=f"^{said}"):
        make()


@pytest.mark.requirement("LSA-36", "LSA-30", "ERR-01")
@given(st.sets(st.integers(0, TINY.N - 1), min_size=TINY.W, max_size=TINY.N - 1), st.data())
def test_a_share_of_a_survivor_that_did_not_sign_is_refused(signers: set[int], data: st.DataObject) -> None:
    network, step = stage(fixed_round(TINY), CONFIRM + 1), TABLE[RECOVER]
    signed = [one for one in network.mail(TABLE[COUNT], SERVER) if one.sender in signers]
    network.states[SERVER], quorums = TABLE[COUNT].take(network.states[SERVER], signed, randomness={})
    shares: list[Any] = []
    for quorum in quorums:
        network.states[quorum.receiver], sent = TABLE[ANSWER].take(
            network.states[quorum.receiver], (quorum,), randomness={}
        )
        shares += sent
    unsigned = data.draw(st.sampled_from(sorted(set(range(TINY.N)) - signers)))
    server, copied = network.states[SERVER], replace(data.draw(st.sampled_from(shares)), sender=unsigned)
    before = snapshot(server)
    with pytest.raises(InconsistentSets) as caught:
        step.take(server, [*shares, copied], randomness={})
    assert caught.value.blamed == {unsigned}
    assert snapshot(server) == before
    answering = shares[: data.draw(st.integers(TINY.U, len(shares)))]
    aggregate = step.take(server, answering, randomness={})[0].base.aggregate
    assert integers_of(aggregate) == plain_sum(fixed_round(TINY), range(TINY.N))


@pytest.mark.requirement("RND-01", "SIG-01")
def test_a_round_is_determined_by_its_named_values_and_keys() -> None:
    case = fixed_round(DEFAULT)
    first, second = ([encode(m) for event in run(case).transcript for m in event.sent] for _ in range(2))
    assert first == second


# ----------------------------------------------------------------------------------------------------- what is signed


@pytest.mark.requirement("LSA-09", "LSA-10", "LSA-11", "LSA-20", "ERR-01")
@given(st.lists(st.integers(-1, 6) | st.just(SERVER), max_size=6), st.sets(st.integers(1, 4)))
@example([1, 2, 3, 4], {1, 2, 3, 4})
@example([0, 1, 2, 4], {1, 2, 3, 4})
def test_a_set_is_signed_exactly_when_it_can_be_right(users: list[int], held: set[int]) -> None:
    state = waiting()
    kept = {user: share for user, share in state.base.held.items() if user in held | {0}}
    state = replace(state, base=replace(state.base, held=kept))
    before = snapshot(state)
    distinct = len(set(users)) == len(users) and set(users) <= set(EVERYONE)
    right = distinct and len(users) >= 3 and set(users) <= held | {0} and 0 in users
    few = distinct and len(users) < 3
    expected = "done" if right else "TooFewSurvivors" if few else "InconsistentSets"
    assert outcome(lambda: tell(state, users)) == expected
    assert snapshot(state) == before


@pytest.mark.requirement("LSA-20")
def test_a_user_that_is_left_out_blames_the_server() -> None:
    with pytest.raises(InconsistentSets, match="without user 0") as caught:
        tell(waiting(), (1, 2, 3, 4))
    assert caught.value.blamed == {SERVER}


@pytest.mark.requirement("LSA-21", "SIG-01")
@given(st.permutations(EVERYONE), st.integers(3, 5))
def test_the_signature_is_on_the_set_in_ascending_order(order: list[int], size: int) -> None:
    chosen = order[:size]  # the first of them signs
    state = replace(waiting())
    state = replace(state, base=replace(state.base, user=chosen[0]), signing=KEYS[chosen[0]].signing)
    _, (signed,) = tell(state, sorted(chosen))
    numbers = ["q", "7", "N", "5", "D", "1", "U", "3", "T", "1", "d", "3", "W", "4"]
    keys = [part for user in EVERYONE for part in (u32(user), public_key(KEYS[user].sealing))]
    hashed = digest_of([*(part.encode() for part in numbers), b"keys", digest_of(keys)])
    values = [b"secagg-spec", u32(1), b"lightsecagg-active", hashed, SESSION, u32(0), b"surviving-set", u32(261)]
    values += [u32(chosen[0]), b"".join(u32(user) for user in sorted(chosen))]
    assert signed.signature == sign(KEYS[chosen[0]].signing, listed(values))
    assert (signed.sender, signed.receiver) == (chosen[0], SERVER)


def u32(value: int) -> bytes:
    """An integer as four bytes."""
    return value.to_bytes(4, "little")


def listed(values: Sequence[bytes]) -> bytes:
    """Fields, each behind its length."""
    return b"".join(u32(len(value)) + value for value in values)


@pytest.mark.requirement("LSA-22", "ERR-01")
@given(st.sampled_from([(0, 1, 2), (0, 1, 2, 3), EVERYONE]), st.sampled_from([(0, 1, 2), (0, 2, 4), EVERYONE]))
def test_a_second_set_is_not_signed(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    state, _ = tell(waiting(), first)
    before = snapshot(state)
    assert outcome(lambda: tell(state, second)) == "Replay"
    assert snapshot(state) == before


# --------------------------------------------------------------------------------------------------- the quorum


@pytest.mark.requirement("LSA-32", "ERR-01")
@given(st.permutations(EVERYONE), st.integers(3, 5))
def test_a_set_is_signed_only_in_ascending_order(order: list[int], size: int) -> None:
    members, state = tuple(order[:size]), waiting()
    before = snapshot(state)
    if members == tuple(sorted(members)):
        assert outcome(lambda: tell(state, members)) == ("done" if 0 in members else "InconsistentSets")
    elif 0 in members:
        with pytest.raises(Malformed) as caught:
            tell(state, members)
        assert caught.value.blamed == {SERVER}
    assert snapshot(state) == before


@pytest.mark.requirement("LSA-33", "ERR-01")
@given(st.permutations(EVERYONE), st.integers(4, 5))
def test_a_quorum_counts_only_in_ascending_order(order: list[int], size: int) -> None:
    signers = tuple(order[:size])
    state, _ = tell(waiting(), EVERYONE)
    before, signatures = snapshot(state), [signature_on(user, EVERYONE) for user in signers]
    if signers == tuple(sorted(signers)):
        assert outcome(lambda: show(state, signers, signatures)) == "done"
    else:
        with pytest.raises(Malformed) as caught:
            show(state, signers, signatures)
        assert caught.value.blamed == {SERVER}
    assert snapshot(state) == before


@pytest.mark.requirement("LSA-26", "LSA-27", "LSA-29", "ERR-01")
@given(st.lists(st.integers(0, 4), max_size=6))
def test_a_share_is_released_exactly_after_W_signatures_of_members(signers: list[int]) -> None:
    chosen = (0, 1, 2, 3)
    for members, shown in ((chosen, signers), (EVERYONE, signers), (chosen, chosen), (chosen, signers[:3])):
        check_release(members, tuple(shown))
    check_release(chosen, (0, 0, 1, 2))
    check_release(chosen, (0, 1, 2, 4))
    check_release(chosen, (0, 1, 2))
    check_release(EVERYONE, (1, 2, 3, 4))


def check_release(members: tuple[int, ...], signers: tuple[int, ...]) -> None:
    """User 0 answers for a set when it is shown 4 signatures of distinct members, and keeps its state when not."""
    state, _ = tell(waiting(), members)
    before = snapshot(state)
    signatures = [signature_on(user, members) for user in signers]
    if len(set(signers)) < len(signers) or not set(signers) <= set(members):
        expected = "InconsistentSets"
    elif signers != tuple(sorted(signers)):
        expected = "Malformed"
    else:
        expected = "done" if len(signers) >= 4 else "TooFewSurvivors"
    assert outcome(lambda: show(state, signers, signatures)) == expected
    assert snapshot(state) == before


@pytest.mark.requirement("LSA-26", "LSA-08")
def test_what_is_released_is_the_sum_over_the_signed_set() -> None:
    state, _ = tell(waiting(), (0, 1, 2, 4))
    after, (answer,) = show(state, (0, 1, 2, 4), [signature_on(user, (0, 1, 2, 4)) for user in (0, 1, 2, 4)])
    expected = TINY.field.sum(np.stack([state.base.held[user] for user in (0, 1, 2, 4)]))
    assert integers_of(answer.share) == integers_of(expected)
    assert after.phase == "done"
    assert not after.base.held


@pytest.mark.requirement("LSA-12", "LSA-26", "ERR-01")
def test_a_share_is_released_once() -> None:
    state, _ = tell(waiting(), EVERYONE)
    signatures = [signature_on(user, EVERYONE) for user in EVERYONE]
    after, _ = show(state, EVERYONE, signatures)
    before = snapshot(after)
    assert outcome(lambda: show(after, EVERYONE, signatures)) == "Replay"
    assert outcome(lambda: tell(after, EVERYONE)) == "Replay"
    assert snapshot(after) == before


@pytest.mark.requirement("LSA-21", "LSA-28", "ERR-01")
@given(st.sets(st.sampled_from(EVERYONE), min_size=4).map(sorted), st.sampled_from(EVERYONE))
def test_a_quorum_counts_exactly_for_the_set_that_was_signed(signed: list[int], odd: int) -> None:
    sets = [chosen for size in (4, 5) for chosen in combinations(EVERYONE, size)]
    for members in (chosen for chosen in sets if 0 in chosen):
        state, _ = tell(waiting(), members)
        fitting = [signature_on(user, members) for user in members]
        other = [signature_on(user, signed) for user in members]
        expected = "done" if members == tuple(signed) else "BadSignature"
        assert outcome(lambda state=state, m=members, s=other: show(state, m, s)) == expected  # type: ignore[misc]
        mixed = [b if user == odd else a for user, a, b in zip(members, fitting, other, strict=True)]
        expected = "BadSignature" if members != tuple(signed) and odd in members else "done"
        assert outcome(lambda state=state, m=members, s=mixed: show(state, m, s)) == expected  # type: ignore[misc]


@pytest.mark.requirement("LSA-28")
def test_a_bad_quorum_blames_the_server() -> None:
    state, _ = tell(waiting(), EVERYONE)
    good = [signature_on(user, EVERYONE) for user in EVERYONE]
    for signers, signatures, error in (
        (EVERYONE, [*good[:4], bytes(64)], BadSignature),
        (EVERYONE, [good[1], good[0], *good[2:]], BadSignature),
        (EVERYONE, good[:4], Malformed),
        (EVERYONE, [*good, b"\0"], Malformed),
        ((0, 1, 2, 3, 3), good, InconsistentSets),
        ((0, 1, 2, 3, 5), good, InconsistentSets),
        ((0, 1, 2, 3, SERVER), good, InconsistentSets),
    ):
        with pytest.raises(error) as caught:
            show(state, signers, signatures)
        assert caught.value.blamed == {SERVER}
    with pytest.raises(TooFewSurvivors) as few:
        show(state, (0, 1, 2), good[:3])
    assert not few.value.blamed


CHANGES: tuple[dict[str, Any], ...] = (
    {"session": b"another session!"},
    {"round": 1},
    {"protocol": "lightsecagg"},
    {"parameters": bytes(32)},
    {"message_type": MaskShare.TYPE},
)


@pytest.mark.requirement("SIG-01", "SIG-02", "LSA-21", "LSA-28")
@given(st.sampled_from(EVERYONE))
def test_a_signature_counts_for_nothing_else(user: int) -> None:
    state, _ = tell(waiting(), EVERYONE)
    for change in CHANGES:
        signatures = [signature_on(j, EVERYONE, **(change if j == user else {})) for j in EVERYONE]
        assert outcome(lambda s=signatures: show(state, EVERYONE, s)) == "BadSignature"  # type: ignore[misc]


# --------------------------------------------------------------------------------------------------- the server


def server_of(chosen: tuple[int, ...] = EVERYONE) -> Any:
    """The server at tiny that announced a set."""
    return replace(announced(), base=replace(announced().base, surviving=chosen))


@cache
def announced() -> Any:
    """The server at tiny that waits for signatures."""
    return stage(fixed_round(TINY), COUNT).states[SERVER]


def count(state: Any, signatures: dict[int, bytes]) -> Any:
    """The server takes the step `confirm`."""
    inbox = [SignedSet(SESSION, 0, user, SERVER, signature) for user, signature in signatures.items()]
    return lightsecagg_active.server_confirm.take(state, inbox, randomness={})


@pytest.mark.requirement("LSA-23", "LSA-25")
@example(order=[3, 0, 4, 2, 1])
@given(st.permutations(EVERYONE))
def test_the_server_goes_on_with_exactly_W_signatures(order: list[int]) -> None:
    arrived = [{user: signature_on(user, EVERYONE) for user in order[:number]} for number in range(6)]
    for signed in arrived[:4]:
        assert outcome(partial(count, server_of(), signed)) == "TooFewSurvivors"
    for signed in arrived[4:]:
        after, outbox = count(server_of(), signed)
        signers = tuple(sorted(signed))
        together = b"".join(signed[user] for user in signers)
        assert after.signers == signers
        assert [(m.receiver, m.signers, m.signatures) for m in outbox] == [(to, signers, together) for to in signers]


@pytest.mark.requirement("LSA-24", "ERR-01")
@given(st.sampled_from(EVERYONE), st.sampled_from([b"", bytes(64), signature_on(0, (0, 1, 2, 3))]))
def test_a_wrong_signature_is_its_senders_fault_at_the_server(user: int, wrong: bytes) -> None:
    state = server_of()
    before = snapshot(state)
    signed = {j: signature_on(j, EVERYONE) for j in EVERYONE}
    blamed: Any = None
    try:
        count(state, {**signed, user: wrong})
    except BadSignature as error:
        blamed = error.blamed
    assert blamed == {user}
    assert snapshot(state) == before
    rest = {j: signature for j, signature in signed.items() if j != user}
    assert count(state, rest)[0].signers == tuple(rest)


@pytest.mark.requirement("LSA-16", "MSG-03", "MSG-04")
def test_the_server_takes_one_signature_of_each_member() -> None:
    signed = {user: signature_on(user, (0, 1, 2, 3)) for user in EVERYONE}
    with pytest.raises(InconsistentSets) as caught:
        count(server_of((0, 1, 2, 3)), signed)
    assert caught.value.blamed == {4}
    inbox = [SignedSet(SESSION, 0, 1, SERVER, signed[1])] * 2
    with pytest.raises(Replay):
        lightsecagg_active.server_confirm.take(server_of((0, 1, 2, 3)), inbox, randomness={})


# ---------------------------------------------------------------------------------- turns, and messages from elsewhere


@pytest.mark.requirement("LSA-04", "LSA-12", "LSA-22", "ERR-01")
@pytest.mark.parametrize("row", range(8))
def test_no_step_is_taken_twice_or_before_its_turn(row: int) -> None:
    case = fixed_round(TINY)
    network = stage(case, row)
    step, party = TABLE[row], party_of(TABLE[row], 5)[-1]
    sampled = case.randomness[party] if step.randomness else {}
    inbox = network.mail(step, party)
    early = stage(case, 0).states[party]
    if row > RELAY:
        with pytest.raises(WrongPhase):
            step.take(early, inbox, randomness=sampled)
    after, _ = step.take(network.states[party], inbox, randomness=sampled)
    before = snapshot(after)
    for again in (inbox, ()):
        with pytest.raises(Replay):
            step.take(after, again, randomness=sampled)
    assert snapshot(after) == before


@pytest.mark.requirement("LSA-20", "LSA-26")
@pytest.mark.parametrize("row", [CONFIRM, ANSWER])
def test_a_user_needs_a_message_to_go_on(row: int) -> None:
    with pytest.raises(WrongPhase, match=r"one .* is needed, and 0 messages"):
        TABLE[row].take(stage(fixed_round(TINY), row).states[0], (), randomness={})


@pytest.mark.requirement("MSG-03", "MSG-04", "ERR-01")
@pytest.mark.parametrize("row", [CONFIRM, COUNT, ANSWER])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"session": bytes(15) + b"\1"}, WrongPhase),
        ({"round": 1}, WrongPhase),
        ({"receiver": 99}, Malformed),
        ({"sender": 98}, InconsistentSets),
        ({}, Replay),
    ],
)
def test_a_message_from_elsewhere_is_refused(row: int, change: dict[str, Any], error: type[ProtocolError]) -> None:
    network = stage(fixed_round(TINY), row)
    party = party_of(TABLE[row], 5)[0]
    inbox, state = network.mail(TABLE[row], party), network.states[party]
    spoiled = (*inbox[1:], replace(inbox[0], **change)) if change else (*inbox, inbox[0])
    before = snapshot(state)
    with pytest.raises(error) as caught:
        TABLE[row].take(state, spoiled, randomness={})
    assert caught.value.blamed == {spoiled[-1].sender}
    assert snapshot(state) == before
    network.take(TABLE[row], party)


@pytest.mark.requirement("MSG-03")
@pytest.mark.parametrize("row", [CONFIRM, COUNT, ANSWER, RECOVER])
def test_a_message_of_another_type_is_refused(row: int) -> None:
    network = stage(fixed_round(TINY), row)
    party = party_of(TABLE[row], 5)[0]
    other = lightsecagg.MaskedUpdate(SESSION, 0, 1, party, np.zeros(3, dtype=np.uint64))
    with pytest.raises(WrongPhase):
        TABLE[row].take(network.states[party], (other,), randomness={})


@pytest.mark.requirement("ERR-01", "ERR-02")
def test_states_and_what_is_sent_are_read_only() -> None:
    for event in run(fixed_round(TINY)).transcript:
        values = [getattr(event.state.base, entry.name) for entry in fields(event.state.base)]
        values += [getattr(message, entry.name) for message in event.sent for entry in fields(message)]
        assert all(not value.flags.writeable for value in values if isinstance(value, np.ndarray))


@pytest.mark.requirement("LSA-31")
def test_private_keys_are_not_shown() -> None:
    state = waiting()
    for value in (KEYS[0], state):
        assert repr(KEYS[0].signing) not in repr(value)
        assert repr(KEYS[0].sealing) not in repr(value)


# ----------------------------------------------------------------------------------------------------- rosters, binding


@pytest.mark.requirement("LSA-31", "SEA-02")
@pytest.mark.parametrize("other", ["W", "D", "session", "round", "semi-honest"])
def test_shares_of_another_session_or_profile_do_not_open(other: str) -> None:
    p = replace(DEFAULT, W=8) if other == "W" else replace(DEFAULT, D=1) if other == "D" else DEFAULT
    where: Any = {"session": bytes(16), "round": 0}
    where.update({"session": b"another session!"} if other == "session" else {"round": 1} if other == "round" else {})
    case = fixed_round(p)
    receiving = (
        lightsecagg_active.open_round(DEFAULT, case.updates, keys=keys_of(p), session=bytes(16), round=0)
        .states[1]
        .base.channel
    )
    sending = lightsecagg_active.open_round(p, case.updates, keys=keys_of(p), **where).states[0].base.channel
    if other == "semi-honest":
        sending = replace(sending, context=lightsecagg.sealing_context(DEFAULT, SESSION, 0))
    with pytest.raises(DecryptionFailed):
        receiving.open(0, 1, sending.close(0, 1, b"a share"))


@pytest.mark.requirement("LSA-31", "LSA-21")
def test_seals_and_signatures_are_bound_to_the_profile_and_to_every_parameter() -> None:
    base = Parameters(q=13, N=7, D=1, U=3, T=1, d=3, W=6)
    for kind in (MaskShare, SignedSet):
        context = lightsecagg_active.binding_context(base, SESSION, 3, kind, ROSTER.sealing)
        assert context.protocol == "lightsecagg-active"
        assert (context.session, context.round, context.message_type) == (SESSION, 3, kind.TYPE)
        for name, value in {"q": 11, "N": 6, "D": 0, "U": 4, "T": 2, "d": 4, "W": 5}.items():
            other = replace(base)
            object.__setattr__(other, name, value)
            assert bound(other, kind, ROSTER.sealing) != context.parameters
        fresh = Roster((*ROSTER.sealing.keys[:-1], bytes([9]) * 32))
        assert bound(base, kind, fresh) != context.parameters == bound(base, kind, ROSTER.sealing)


def bound(p: Parameters, kind: Any, sealing: Roster) -> bytes:
    """What the parameters and the keys of an attempt are hashed to."""
    return lightsecagg_active.binding_context(p, SESSION, 3, kind, sealing).parameters


@pytest.mark.requirement("LSA-34")
def test_the_hash_of_the_sealing_keys_follows_the_parameters() -> None:
    keys = [part for user, key in enumerate(ROSTER.sealing.keys) for part in (u32(user), key)]
    names = [part for name in "qNDUTdW" for part in (name.encode(), str(getattr(TINY, name)).encode())]
    want = digest_of([*names, b"keys", digest_of(keys)])
    for kind in (MaskShare, SignedSet):
        assert bound(TINY, kind, ROSTER.sealing) == want


def digest_of(values: Sequence[bytes]) -> bytes:
    """SHA-256 of a list of fields, by hand."""
    return hashlib.sha256(listed(values)).digest()


def attempt(fresh: Sequence[int], taken: int) -> Network:
    """An attempt at one round, with the same updates and signing keys, on which the first rows were taken.

    Some users have other sealing keys and sampled values than in an attempt without fresh ones.
    """
    keys = {user: replace(KEYS[user], sealing=bytes([user + 201]) * 32) if user in fresh else KEYS[user]
            for user in EVERYONE}  # fmt: skip
    case = fixed_round(TINY)
    network = lightsecagg_active.open_round(TINY, case.updates, keys=keys, session=bytes(16), round=0)
    for step in TABLE[:taken]:
        for party in party_of(step, TINY.N):
            network.take(step, party, case.randomness[party] if step.randomness else None)
    return network


FRESH = [(0,), (3,), (1, 4), EVERYONE]


@pytest.mark.requirement("LSA-34", "LSA-26", "LSA-28", "LSA-24")
@pytest.mark.parametrize("fresh", FRESH)
def test_signatures_of_an_attempt_are_worth_nothing_in_the_next(fresh: Sequence[int]) -> None:
    """A round is begun again, and some users draw new sealing keys: no quorum of the first attempt counts."""
    first, second = attempt((), COUNT), attempt(fresh, COUNT)
    old: dict[int, Any] = {message.sender: message for message in first.mail(TABLE[COUNT], SERVER)}
    new: dict[int, Any] = {message.sender: message for message in second.mail(TABLE[COUNT], SERVER)}
    for some_old in ((1,), (1, 2, 3), (0, 1, 2, 3, 4)):
        shown = [(old if user in some_old else new)[user].signature for user in EVERYONE]
        with pytest.raises(BadSignature) as failed:
            show(second.states[0], EVERYONE, shown)
        assert failed.value.blamed == {SERVER}
        mixed = tuple((old if user in some_old else new)[user] for user in EVERYONE)
        with pytest.raises(BadSignature) as failed:
            lightsecagg_active.server_confirm.take(second.states[SERVER], mixed, randomness={})
        assert failed.value.blamed == {some_old[0]}
    show(second.states[0], EVERYONE, [new[user].signature for user in EVERYONE])


@pytest.mark.requirement("LSA-34", "SEA-02")
@pytest.mark.parametrize("fresh", FRESH)
def test_payloads_of_an_attempt_do_not_open_in_the_next(fresh: Sequence[int]) -> None:
    """Wherever a user drew a new key, no share of one attempt opens in the other; so nobody answers for both."""
    first, second = attempt((), UPLOAD), attempt(fresh, UPLOAD)
    for user in EVERYONE:
        old, new = (list(network.mail(TABLE[UPLOAD], user)) for network in (first, second))
        for network, own, other in ((first, old, new), (second, new, old)):
            for at, message in enumerate(own):
                foreign = next(m for m in other if m.sender == message.sender)
                inbox = (*own[:at], foreign, *own[at + 1 :])
                with pytest.raises(DecryptionFailed) as failed:
                    TABLE[UPLOAD].take(network.states[user], inbox, randomness={})
                assert failed.value.blamed == {message.sender, SERVER}
            TABLE[UPLOAD].take(network.states[user], tuple(own), randomness={})


def test_parameters_of_the_semi_honest_profile_are_refused_by_name() -> None:
    plain: Any = lightsecagg.PRESETS["tiny"]
    text = (
        r"^parameters = 'Parameters of .*lightsecagg\.round': must be of the class Parameters of .*lightsecagg\.active"
    )
    with pytest.raises(ParameterError, match=text):
        lightsecagg_active.open_round(plain, fixed_round(TINY).updates, keys=keys_of(TINY), session=bytes(16), round=0)


@pytest.mark.requirement("LSA-31", "SIG-04", "SIG-05", "KEY-04")
def test_rosters_that_cannot_be_right_are_refused() -> None:
    keys, updates = keys_of(TINY), fixed_round(TINY).updates
    bad: list[tuple[dict[int, Any], type[Exception]]] = [
        ({user: KEYS[user] for user in range(4)}, ParameterError),
        ({user: KEYS[user] for user in range(6)}, ParameterError),
        ({**keys, 4: None}, ParameterError),
        ({**keys, 4: replace(KEYS[4], signing=KEYS[0].signing)}, ParameterError),
        ({**keys, 4: replace(KEYS[4], sealing=KEYS[0].sealing)}, ParameterError),
    ]
    for name in ("sealing", "signing"):
        with pytest.raises(LengthMismatch, match=rf"^len\({name}\) = 31: must be 32 bytes$"):
            replace(KEYS[4], **{name: bytes(31)})
    for given_keys, error in bad:
        with pytest.raises(error):
            lightsecagg_active.open_round(TINY, updates, keys=given_keys, session=bytes(16), round=0)
    for N in (-1, 0):
        with pytest.raises(ParameterError, match=f"^N = {N}: must be an integer in "):
            lightsecagg_active.roster_of_users(N, {})
    roster = lightsecagg_active.roster_of(TINY, keys)
    start: dict[str, Any] = {"session": SESSION, "round": 0, "user": 0, "update": updates[0]}
    for own in (replace(KEYS[0], signing=KEYS[1].signing), replace(KEYS[0], sealing=KEYS[1].sealing), KEYS[1]):
        with pytest.raises(ParameterError, match="keys = "):
            lightsecagg_active.user_start(TINY, **start, keys=own, roster=roster)
    with pytest.raises(LengthMismatch, match="len"):
        lightsecagg_active.server_start(DEFAULT, SESSION, 0, roster)
    with pytest.raises(LengthMismatch, match="verification"):
        replace(roster, verification=replace(roster.verification, keys=roster.verification.keys[:4]))
    assert roster.verification.keys[3] == verification_key(KEYS[3].signing)


@pytest.mark.requirement("LSA-26")
def test_further_fields_such_as_weights_are_signed_with_the_set() -> None:
    context = lightsecagg_active.binding_context(TINY, SESSION, 0, SignedSet, ROSTER.sealing)
    ballot = agreement.Ballot(context, ROSTER.verification, TINY.W)
    weighted = Proposal(EVERYONE, (agreement.words((1, 2, 3, 4, 5)),))
    together = b"".join(agreement.sign_proposal(ballot, KEYS[j].signing, j, weighted) for j in EVERYONE)
    agreement.check_quorum(ballot, weighted, EVERYONE, together)
    for other in (Proposal(EVERYONE), Proposal(EVERYONE, (agreement.words((1, 0, 0, 0, 0)),))):
        with pytest.raises(BadSignature):
            agreement.check_quorum(ballot, other, EVERYONE, together)
    assert agreement.words((0, 2**32 - 1)) == bytes(4) + b"\xff" * 4
    for value in (-1, 2**32):
        with pytest.raises(ParameterError, match=rf"^values = {value}: must be an integer in \[0, {2**32 - 1}\]$"):
            agreement.words((0, value))


# ------------------------------------------------------------------------------------------ a server that lies

SETS = (EVERYONE, (0, 1, 2, 3), (0, 1, 2, 4), (0, 1, 4))


class LyingServer:
    """A server that works with user 0, tells the others whatever it likes, and shows them whatever it has."""

    def __init__(self) -> None:
        self.states: dict[int, Any] = {user: stage_of_users()[user] for user in EVERYONE[1:]}
        self.seen = {(0, chosen): signature_on(0, chosen) for chosen in SETS}
        self.released: set[tuple[int, ...]] = set()

    def tell(self, user: int, chosen: tuple[int, ...]) -> None:
        """Announce a set to a user, and keep its signature."""
        with suppress(ProtocolError):
            self.states[user], (signed,) = tell(self.states[user], chosen)
            self.seen[user, chosen] = signed.signature

    def show(self, user: int, quorum: Sequence[tuple[int, tuple[int, ...]]], claimed: Sequence[int]) -> None:
        """Show a user signatures that were seen, under the names of some signers; note for which set it answers."""
        state = self.states[user]
        with suppress(ProtocolError):
            signatures = [self.seen.get(entry, bytes(64)) for entry in quorum]
            self.states[user], (answer,) = show(state, claimed, signatures)
            self.released.add(meant(state, answer))


def meant(state: Any, answer: Any) -> tuple[int, ...]:
    """The set whose sum of shares an answer is."""
    held = state.base.held
    [chosen] = [s for s in SETS if np.array_equal(TINY.field.sum(np.stack([held[j] for j in s])), answer.share)]
    return chosen


@cache
def stage_of_users() -> dict[int, Any]:
    """The users at tiny, ready for a surviving set."""
    return stage(fixed_round(TINY), CONFIRM).states


@pytest.mark.requirement("LSA-19", "LSA-22", "LSA-26", "LSA-27", "LSA-28")
@given(st.data())
def test_whatever_a_server_tells_and_shows_users_answer_for_one_set(data: st.DataObject) -> None:
    server, user, chosen = LyingServer(), st.sampled_from(EVERYONE[1:]), st.sampled_from(SETS)
    signer = st.sampled_from(EVERYONE)
    for one, received in data.draw(st.lists(st.tuples(user, chosen), min_size=4, max_size=10)):
        server.tell(one, received)
    for one in data.draw(st.lists(user, max_size=6)):
        quorum = data.draw(st.lists(st.tuples(signer, chosen), max_size=5))
        server.show(one, quorum, [j for j, _ in quorum] if data.draw(st.booleans()) else EVERYONE[: len(quorum)])
    for one, received in product(EVERYONE[1:], SETS):
        valid = [j for j in received if (j, received) in server.seen]
        server.show(one, [(j, received) for j in valid], valid)
        server.show(one, [(j, received) for j in (valid * 4)[:4]], (valid * 4)[:4])
        server.show(one, [(j, received) for j in received], received)
    assert len(server.released) <= 1


def test_a_server_that_tells_the_truth_is_answered() -> None:
    server = LyingServer()
    for user in EVERYONE[1:]:
        server.tell(user, EVERYONE)
    for user in EVERYONE[1:]:
        server.show(user, [(j, EVERYONE) for j in EVERYONE], EVERYONE)
    assert server.released == {EVERYONE}


def split(first: Sequence[int], second: Sequence[int]) -> set[tuple[int, ...]]:
    """For which sets users answer when some are told everybody, some that user 3 is gone, and each is told both."""
    server = LyingServer()
    for received, others, users in ((EVERYONE, (0, 1, 2, 4), first), ((0, 1, 2, 4), EVERYONE, second)):
        for user in users:
            server.tell(user, received)
            server.tell(user, others)
    for user, received in product(EVERYONE[1:], (EVERYONE, (0, 1, 2, 4))):
        server.show(user, [(j, received) for j in received], received)
    return server.released


@pytest.mark.requirement("LSA-22", "LSA-28")
@pytest.mark.parametrize("name", ["signs-twice", "quorum-is-not-verified", "releases-before-quorum"])
def test_each_of_these_bugs_gives_a_lying_server_two_sets(name: str) -> None:
    assert len(split((1, 3), (2, 4))) == 0
    with mutants.planted(name):
        assert split((1, 3), (2, 4)) == {EVERYONE, (0, 1, 2, 4)}


# ------------------------------------------------------------------------------------------------------- the text

SECTION = page("lightsecagg.md").split("\n## 9. The active profile")[1]


@pytest.mark.requirement("MSG-01", "LSA-25")
def test_the_tables_of_the_page_are_those_of_the_reference() -> None:
    stated = [(code(a)[0], b, code(c), code(d)) for a, b, c, d in rows(SECTION, "phase", "role")]
    assert stated == [
        (step.phase, step.role.value, [kind.__name__ for kind in step.receives], [kind.__name__ for kind in step.sends])
        for step in TABLE
    ]
    assert tuple(dict.fromkeys(step.phase for step in TABLE)) == PHASES
    assert [step.randomness for step in TABLE] == [("mask", "noise"), *[()] * 7]
    kinds: tuple[type[codec.Message], ...] = (SignedSet, Quorum)
    for (name, number, described), kind in zip(rows(SECTION, "message", "type"), kinds, strict=True):
        assert (code(name)[0], int(number)) == (kind.__name__, kind.TYPE)
        pairs = code(described)
        assert own_fields(kind) == {a: FIELD_TYPES[b] for a, b in zip(pairs[::2], pairs[1::2], strict=True)}
    for column, preset in enumerate(PRESETS, start=2):
        assert {row[0]: int(row[column]) for row in rows(SECTION, "symbol", "meaning", *PRESETS)} == {
            "W": PRESETS[preset].W
        }
        assert asdict(lightsecagg.PRESETS[preset]).items() <= asdict(PRESETS[preset]).items()


@pytest.mark.requirement("MSG-01", "LSA-25")
@pytest.mark.parametrize("late", [0, 1])
def test_the_costs_of_the_text_are_those_of_a_round(late: int) -> None:
    p, table = DEFAULT, cost_table()
    result = run(fixed_round(p), ["confirm"] * late + ["stays"] * (p.N - late))
    names = {"N": p.N, "d": p.d, "L": p.share_length, "H": 30, "C": OVERHEAD, "S": p.N, "K": p.N - late}
    for event in result.transcript:
        messages, size = table.get((event.step.role.value, event.step.phase), ("0", "0"))
        assert len(event.sent) == evaluated(messages, names)
        assert sizes(event.sent) == evaluated(size, names)


@pytest.mark.requirement("MSG-01", "MSG-02")
def test_messages_survive_their_bytes() -> None:
    for event in run(fixed_round(TINY)).transcript:
        for message in event.sent:
            assert encode(codec.decode(type(message), encode(message))) == encode(message)


def test_type_numbers_are_used_once() -> None:
    numbers = {message.TYPE for event in run(fixed_round(TINY)).transcript for message in event.sent}
    assert sorted(numbers) == list(range(257, 263))
    assert {step.role for step in TABLE} == {Role.USER, Role.SERVER}


# -------------------------------------------------------------------------------------------------- mutants

PLANTED: dict[str, Callable[[], None]] = {
    "threshold-forgets-colluders": test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user,
    "threshold-above-the-survivors": test_parameters_are_taken_exactly_when_two_quorums_share_an_honest_user,
    "left-out-user-signs": test_a_set_is_signed_exactly_when_it_can_be_right,
    "session-is-not-signed": test_a_signature_counts_for_nothing_else,
    "round-is-not-signed": test_a_signature_counts_for_nothing_else,
    "size-is-signed-for-the-set": test_a_quorum_counts_exactly_for_the_set_that_was_signed,
    "signs-twice": test_a_second_set_is_not_signed,
    "server-relays-few-signatures": test_the_server_goes_on_with_exactly_W_signatures,
    "server-checks-no-signature": test_a_wrong_signature_is_its_senders_fault_at_the_server,
    "releases-before-quorum": test_a_share_is_released_exactly_after_W_signatures_of_members,
    "quorum-one-short": test_a_share_is_released_exactly_after_W_signatures_of_members,
    "counts-signers-twice": test_a_share_is_released_exactly_after_W_signatures_of_members,
    "outsiders-count": test_a_share_is_released_exactly_after_W_signatures_of_members,
    "quorum-is-not-verified": test_a_quorum_counts_exactly_for_the_set_that_was_signed,
    "quorum-on-another-set": test_a_quorum_counts_exactly_for_the_set_that_was_signed,
    "binding-forgets-W": test_seals_and_signatures_are_bound_to_the_profile_and_to_every_parameter,
    "profiles-share-a-name": test_seals_and_signatures_are_bound_to_the_profile_and_to_every_parameter,
    "quorum-in-any-order": test_the_server_goes_on_with_exactly_W_signatures,
    "quorum-of-W-alone": test_the_server_goes_on_with_exactly_W_signatures,
    "quorum-of-the-first-W": test_the_server_goes_on_with_exactly_W_signatures,
    "signers-in-descending-order": test_the_server_goes_on_with_exactly_W_signatures,
    "wrong-signature-blames-server": test_a_wrong_signature_is_its_senders_fault_at_the_server,
}
"""The property that finds a bug, without the kit."""


@pytest.mark.slow
@pytest.mark.parametrize("name", part(3, PLANTED))
def test_the_property_that_belongs_to_a_mutant_finds_it(name: str) -> None:
    test = PLANTED[name]
    assert mutants.load()[name].clauses[0] in {argument for mark in marks(test) for argument in mark.args}
    test()
    with mutants.planted(name), pytest.raises(AssertionError):
        test()


def marks(test: Any) -> list[Any]:
    """The requirements of a test."""
    return [mark for mark in test.pytestmark if mark.name == "requirement"]
