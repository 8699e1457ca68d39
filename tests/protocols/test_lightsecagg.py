"""LightSecAgg: every dropout schedule at tiny, random rounds, and a network that misbehaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from secagg_spec import resources
from secagg_spec.arithmetic.modular import Ring, is_prime
from secagg_spec.arithmetic.quantizer import dequantize, quantize
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import (
    BadShare,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    NonCanonical,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    WrongPhase,
)
from secagg_spec.protocols.codec import Message, encode, vector_bytes
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import (
    PRESETS,
    TABLE,
    AggregatedShare,
    MaskedUpdate,
    MaskShare,
    Parameters,
    SurvivingSet,
    aggregate_shares,
    draw_randomness,
    mask_update,
    recover,
    run_round,
)
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.steps import SERVER, Event, Network, Role, RoundResult, Step, sizes
from secagg_spec.selection import batches
from tests.strategies import (
    Round,
    arrays,
    dropouts,
    elements,
    fewer,
    fixed_round,
    integers_of,
    primes,
    pseudorandom,
    rounds,
    schedules,
    snapshot,
    subsets,
    vector,
)

TINY, DEFAULT = PRESETS["tiny"], PRESETS["default"]
FATES = ("stays", "share", "upload", "recover")
SHARE, RELAY, UPLOAD, ANNOUNCE, ANSWER, RECOVER = range(6)
SESSION = bytes(16)


def plain_sum(case: Round, users: Sequence[int]) -> list[int]:
    """The sum of the updates of some users, by Python integers."""
    return [sum(int(case.updates[user, k]) for user in users) % case.parameters.q for k in range(case.parameters.d)]


def run(case: Round, schedule: Sequence[str] = ()) -> RoundResult:
    """The round with a schedule."""
    return run_round(
        case.parameters,
        case.updates,
        randomness=case.randomness,
        dropouts=dropouts(schedule),
        session=bytes(16),
        round=0,
    )


def party_of(step: Step[Any], users: int) -> Sequence[int]:
    """Who takes a step."""
    return (SERVER,) if step.role is Role.SERVER else range(users)


def stage(case: Round, rows: int, session: bytes = SESSION, round: int = 0, channel: Any = None) -> Network:
    """A network on which every party has taken the first `rows` rows of the table."""
    network = lightsecagg.open_round(case.parameters, case.updates, session=session, round=round, channel=channel)
    for step in TABLE[:rows]:
        for party in party_of(step, case.parameters.N):
            network.take(step, party, case.randomness[party] if step.randomness else None)
    return network


def attempt(row: int, state: Any, inbox: Sequence[Message]) -> tuple[Any, Sequence[Message]]:
    """Take a step that samples nothing."""
    return TABLE[row].take(state, tuple(inbox), randomness={})


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.requirement("LSA-01")
@pytest.mark.parametrize("q", [5, 6, 7])
def test_parameters_are_taken_exactly_inside_the_bounds(q: int) -> None:
    for N, D, U, T in product(range(8), range(-1, 4), range(7), range(-1, 5)):
        allowed = T >= 1 and U > T and D >= 0 and N - D >= U and N - D >= T + 2 and is_prime(q) and q > N
        if allowed:
            assert Parameters(q, N, D, U, T, 1).share_length == 1
        else:
            with pytest.raises(ParameterError):
                Parameters(q, N, D, U, T, 1)


@pytest.mark.requirement("LSA-01", "MDS-01")
@given(primes(above=5), st.integers(-2, 20))
def test_the_length_is_at_least_1(q: int, d: int) -> None:
    if d >= 1:
        assert Parameters(q, 5, 1, 4, 1, d).share_length == -(-d // 3)
    else:
        with pytest.raises(ParameterError, match="d = "):
            Parameters(q, 5, 1, 4, 1, d)


# ----------------------------------------------------------------------------------------------------- whole rounds


@pytest.mark.requirement("LSA-13", "LSA-17", "LSA-02", "LSA-08", "LSA-06")
@given(rounds(), st.data())
def test_a_round_gives_the_plain_sum_over_the_surviving_set(case: Round, data: st.DataObject) -> None:
    p = case.parameters
    schedule = data.draw(schedules(p.N))
    surviving = tuple(user for user, fate in enumerate(schedule) if fate in ("stays", "recover"))
    if len(surviving) >= max(p.U, p.T + 2) and schedule.count("stays") >= p.U:
        result = run(case, schedule)
        assert result.contributors == surviving
        assert integers_of(result.aggregate) == plain_sum(case, surviving)
    else:
        with pytest.raises(TooFewSurvivors):
            run(case, schedule)


@pytest.mark.slow
@pytest.mark.requirement("LSA-07", "LSA-13", "LSA-14", "LSA-17")
def test_every_schedule_at_tiny_succeeds_exactly_when_enough_are_left() -> None:
    case, successes = fixed_round(TINY), 0
    for schedule in product(FATES, repeat=5):
        surviving = [user for user, fate in enumerate(schedule) if fate in ("stays", "recover")]
        if len(surviving) >= 3 and schedule.count("stays") >= 3:
            result = run(case, schedule)
            assert integers_of(result.aggregate) == plain_sum(case, surviving)
            assert result.contributors == tuple(surviving)
            successes += 1
        else:
            with pytest.raises(TooFewSurvivors) as caught:
                run(case, schedule)
            assert not caught.value.blamed
    assert successes == 10 * 9 + 5 * 3 + 1


@pytest.mark.requirement("LSA-13", "LSA-17")
def test_masks_cancel_for_every_schedule_at_tiny() -> None:
    case = fixed_round(TINY)
    silent = replace(case, updates=np.zeros((5, 3), dtype=np.uint64))
    other = replace(case, randomness=fixed_round(TINY, seed=77).randomness)
    for schedule in product(("stays", "recover", "upload"), repeat=5):
        if schedule.count("stays") >= 3:
            assert integers_of(run(silent, schedule).aggregate) == [0, 0, 0]
            assert integers_of(run(other, schedule).aggregate) == integers_of(run(case, schedule).aggregate)


@pytest.mark.requirement("LSA-13")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_work(name: str, seed: int) -> None:
    case = fixed_round(PRESETS[name], seed)
    schedule = ["stays"] * PRESETS[name].N
    schedule[: PRESETS[name].D] = ["upload"] * PRESETS[name].D
    assert integers_of(run(case, schedule).aggregate) == plain_sum(case, range(PRESETS[name].D, PRESETS[name].N))


@pytest.mark.requirement("QNT-04", "LSA-13")
@fewer(2)
@given(st.data())
def test_a_round_of_quantised_numbers_gives_the_quantised_sum(data: st.DataObject) -> None:
    p, ring, level = DEFAULT, Ring(DEFAULT.q), 2**10
    x = data.draw(st.lists(st.floats(-1000, 1000), min_size=p.d, max_size=p.d))
    real = np.array([np.roll(x, user) for user in range(p.N)])
    draws = pseudorandom(data.draw(st.integers(0, 99)), 2**53, p.N, p.d) / 2.0**53
    updates = [
        quantize(row, level=level, ring=ring, weight=p.N, rounding=u) for row, u in zip(real, draws, strict=True)
    ]
    case = replace(fixed_round(p), updates=np.stack(updates))
    total = dequantize(run(case).aggregate, level=level, ring=ring)
    assert integers_of(total) == [
        sum(column)
        for column in zip(*(integers_of(dequantize(u, level=level, ring=ring)) for u in updates), strict=True)
    ]
    assert np.abs(total - real.sum(axis=0)).max() < p.N / level


@pytest.mark.requirement("LSA-13", "LSA-14", "MDS-05")
@pytest.mark.parametrize("name", ["tiny", "default"])
def test_every_set_of_U_or_more_answers_recovers(name: str) -> None:
    case = fixed_round(PRESETS[name])
    network, p = stage(case, RECOVER), PRESETS[name]
    state, answers = network.states[SERVER], network.mail(TABLE[RECOVER], SERVER)
    for chosen in subsets(range(p.N), at_least=p.U):
        after, _ = attempt(RECOVER, state, [answers[user] for user in chosen])
        assert integers_of(after.aggregate) == plain_sum(case, range(p.N))
    for few in combinations(range(p.N), p.U - 1):
        with pytest.raises(TooFewSurvivors):
            attempt(RECOVER, state, [answers[user] for user in few])


@pytest.mark.requirement("RND-01")
def test_a_round_is_determined_by_its_named_values() -> None:
    case = fixed_round(DEFAULT)
    first, second = ([encode(m) for event in run(case).transcript for m in event.sent] for _ in range(2))
    assert first == second
    draws = [draw_randomness(TINY, {user: SeededSource(b"s", str(user)) for user in range(5)}) for _ in range(2)]
    assert snapshot(draws[0]) == snapshot(draws[1])
    assert draws[0][0]["mask"].shape == (3,)
    assert draws[0][0]["noise"].shape == (1, 2)


# ------------------------------------------------------------------------------------------------------- pure cores


@pytest.mark.requirement("LSA-02")
@given(st.data())
def test_the_masked_update_is_the_update_plus_the_mask(data: st.DataObject) -> None:
    q, d = data.draw(primes()), data.draw(st.integers(1, 5))
    update, mask = data.draw(arrays(q, d)), data.draw(arrays(q, d))
    expected = [(x + z) % q for x, z in zip(integers_of(update), integers_of(mask), strict=True)]
    case = Parameters(max(q, 5), 3, 0, 2, 1, d) if q > 3 else None
    assert case is None or integers_of(mask_update(case.field, update, mask)) == expected


@pytest.mark.requirement("LSA-02")
@given(rounds())
def test_users_upload_the_update_plus_the_mask(case: Round) -> None:
    network = stage(case, ANNOUNCE)
    for message in network.mail(TABLE[ANNOUNCE], SERVER):
        assert isinstance(message, MaskedUpdate)
        pairs = zip(case.updates[message.sender], case.randomness[message.sender]["mask"], strict=True)
        assert integers_of(message.masked) == [(int(x) + int(z)) % case.parameters.q for x, z in pairs]


@pytest.mark.requirement("LSA-03", "MOD-06", "MOD-07")
@given(st.integers(0, 2), st.sampled_from((7, 8, 2**32, 2**64 - 1)))
def test_an_update_or_mask_that_does_not_fit_is_refused(at: int, bad: int) -> None:
    spoiled = vector([1, 2, 3])
    spoiled[at] = bad
    state = stage(fixed_round(TINY), 0).states[0]
    noise = vector([[1, 2]])
    for value, error in ((spoiled, NonCanonical), (vector([1, 2]), LengthMismatch), (vector([1] * 4), LengthMismatch)):
        with pytest.raises(error):
            lightsecagg.user_start(TINY, SESSION, 0, 0, value, PlainChannel())
        with pytest.raises(error):
            lightsecagg.user_share.take(state, (), randomness={"mask": value, "noise": noise})
        with pytest.raises(error):
            mask_update(TINY.field, vector([1, 2, 3]), value)
        with pytest.raises(error):
            mask_update(TINY.field, value, vector([1, 2, 3]))


@pytest.mark.requirement("LSA-08")
@given(rounds(), st.data())
def test_the_aggregated_share_is_the_sum_over_exactly_the_set(case: Round, data: st.DataObject) -> None:
    p = case.parameters
    surviving = sorted(data.draw(st.sets(st.integers(0, p.N - 1), min_size=p.T + 2)))
    held = {user: case.randomness[user]["noise"][0] for user in range(p.N)}
    expected = [sum(int(held[user][k]) for user in surviving) % p.q for k in range(p.share_length)]
    for order in (surviving, surviving[::-1]):
        assert integers_of(aggregate_shares(p.field, p.N, p.T, order, held)) == expected


@pytest.mark.requirement("LSA-08", "LSA-12")
def test_answers_are_sums_of_the_shares_that_were_sent() -> None:
    case, surviving = fixed_round(DEFAULT), (0, 1, 3, 4, 5, 6, 8, 9)
    result = run(case, ["upload" if user not in surviving else "stays" for user in range(10)])
    codewords = {u: DEFAULT.code.encode(case.randomness[u]["mask"], case.randomness[u]["noise"]) for u in range(10)}
    for message in (m for event in result.transcript for m in event.sent if isinstance(m, AggregatedShare)):
        rows = [integers_of(codewords[user][message.sender]) for user in surviving]
        assert integers_of(message.share) == [sum(column) % DEFAULT.q for column in zip(*rows, strict=True)]


@pytest.mark.requirement("LSA-09", "LSA-10", "LSA-11")
@given(st.lists(st.integers(-1, 5) | st.just(SERVER), max_size=6), st.sets(st.integers(0, 4)))
def test_a_surviving_set_is_answered_exactly_when_it_can_be_right(surviving: list[int], holders: set[int]) -> None:
    held = {user: vector([user, 1]) for user in holders}
    distinct = len(set(surviving)) == len(surviving) and all(0 <= user < 5 for user in surviving)
    if distinct and len(surviving) >= 3 and set(surviving) <= holders:
        aggregate_shares(TINY.field, 5, 1, surviving, held)
        return
    few = distinct and len(surviving) < 3
    with pytest.raises(TooFewSurvivors if few else InconsistentSets) as caught:
        aggregate_shares(TINY.field, 5, 1, surviving, held)
    assert caught.value.blamed == (frozenset() if few else {SERVER})


@pytest.mark.requirement("LSA-40", "LSA-07", "ERR-01")
@pytest.mark.parametrize("lost", [False, True])
def test_without_a_sharer_the_round_goes_on_and_ends_at_the_upload(*, lost: bool) -> None:
    """Nobody shared, or of each user one share is lost on its way."""
    network = stage(fixed_round(TINY), 1)
    if lost:
        mail = network.waiting[SERVER]
        network.waiting[SERVER] = [m for m in mail if m.receiver != (m.sender + 1) % TINY.N]
        assert len(network.waiting[SERVER]) == TINY.N * (TINY.N - 2)
    else:
        network.waiting[SERVER] = []
    assert network.take(TABLE[1], SERVER).sent == ()
    assert network.states[SERVER].sharers == ()
    before = snapshot(network.states[SERVER])
    with pytest.raises(TooFewSurvivors):
        TABLE[3].take(network.states[SERVER], (), randomness={})
    assert snapshot(network.states[SERVER]) == before
    case = fixed_round(TINY)
    with pytest.raises(TooFewSurvivors):
        run(case, ["share"] * TINY.N)


@pytest.mark.requirement("LSA-32", "ERR-01")
@given(st.permutations(range(5)), st.integers(3, 5))
def test_a_surviving_set_is_answered_only_in_ascending_order(order: list[int], size: int) -> None:
    """The sum does not depend on the order, so a user that takes any order would not be noticed in any other way."""
    network, step = stage(fixed_round(TINY), RECOVER - 1), TABLE[RECOVER - 1]
    [announced] = network.mail(step, 0)
    assert isinstance(announced, SurvivingSet)
    state, users = network.states[0], tuple(order[:size])
    before = snapshot(state)
    if users == tuple(sorted(users)):
        assert step.take(state, (replace(announced, users=users),), randomness={})[0].phase == "done"
    else:
        with pytest.raises(Malformed, match="ascending") as caught:
            step.take(state, (replace(announced, users=users),), randomness={})
        assert caught.value.blamed == {SERVER}
    assert snapshot(state) == before


@pytest.mark.requirement("LSA-15")
def test_every_altered_answer_is_detected_and_all_who_answered_are_blamed() -> None:
    network = stage(fixed_round(TINY), RECOVER)
    state, answers = network.states[SERVER], network.mail(TABLE[RECOVER], SERVER)
    for chosen in subsets(range(5), at_least=4):
        for liar, position, delta in product(chosen, range(2), range(1, 7)):
            inbox = [altered(answers[user], position, delta) if user == liar else answers[user] for user in chosen]
            with pytest.raises(BadShare) as caught:
                attempt(RECOVER, state, inbox)
            assert caught.value.blamed == set(chosen)


def altered(message: Message, position: int, delta: int, q: int = 7) -> Message:
    """An answer with another element at one position."""
    assert isinstance(message, AggregatedShare)
    share = message.share.copy()
    share[position] = (int(share[position]) + delta) % q
    return replace(message, share=share)


@pytest.mark.requirement("LSA-14", "LSA-13")
def test_with_exactly_U_answers_a_wrong_one_cannot_be_seen() -> None:
    case = fixed_round(TINY)
    network = stage(case, RECOVER)
    answers = network.mail(TABLE[RECOVER], SERVER)[:3]
    after, _ = attempt(RECOVER, network.states[SERVER], [altered(answers[0], 0, 1), *answers[1:]])
    assert integers_of(after.aggregate) != plain_sum(case, range(5))


@pytest.mark.requirement("LSA-14", "LSA-15")
def test_recover_refuses_too_few_answers_and_wrong_ones() -> None:
    shares = TINY.code.encode(vector([1, 2, 3]), vector([[4, 5]]))
    total = vector([6, 6, 6])
    assert integers_of(recover(TINY, total, [4, 0, 2], shares[[4, 0, 2]])) == [5, 4, 3]
    with pytest.raises(TooFewSurvivors):
        recover(TINY, total, [4, 0], shares[[4, 0]])
    shares[1, 0] = (int(shares[1, 0]) + 1) % 7
    with pytest.raises(BadShare) as caught:
        recover(TINY, total, [1, 2, 3, 4], shares[1:])
    assert caught.value.blamed == {1, 2, 3, 4}


# ------------------------------------------------------------------------------------------------------------ once


@pytest.mark.requirement("LSA-04", "LSA-12", "ERR-01")
@pytest.mark.parametrize("row", range(6))
def test_no_step_is_taken_twice(row: int) -> None:
    case = fixed_round(TINY)
    network = stage(case, row)
    step: Step[Any] = TABLE[row]
    party = party_of(step, 5)[-1]
    sampled = case.randomness[party] if step.randomness else {}
    inbox = network.mail(step, party)
    after, _ = step.take(network.states[party], inbox, randomness=sampled)
    before = snapshot(after)
    for again in (inbox, ()):
        with pytest.raises(Replay):
            step.take(after, again, randomness=sampled)
    assert snapshot(after) == before


@pytest.mark.requirement("LSA-12", "LSA-09")
def test_a_second_surviving_set_is_not_answered() -> None:
    network = stage(fixed_round(TINY), ANSWER)
    announced: Any = network.mail(TABLE[ANSWER], 2)[0]
    after, _ = attempt(ANSWER, network.states[2], [announced])
    with pytest.raises(Replay):
        attempt(ANSWER, after, [replace(announced, users=(0, 1, 2))])
    assert not after.held
    assert after.mask is None


@pytest.mark.requirement("LSA-04")
@pytest.mark.parametrize("row", range(1, 6))
def test_no_step_is_taken_before_its_turn(row: int) -> None:
    network = stage(fixed_round(TINY), 0)
    party = party_of(TABLE[row], 5)[0]
    if row != RELAY:
        with pytest.raises(WrongPhase):
            attempt(row, network.states[party], ())


@pytest.mark.requirement("LSA-12")
def test_the_last_user_step_needs_a_surviving_set() -> None:
    with pytest.raises(WrongPhase):
        attempt(ANSWER, stage(fixed_round(TINY), ANSWER).states[0], ())


# ---------------------------------------------------------------------------------------------------------- the server


SELECTED = multi_round.Parameters(batches.Parameters(5, 5, 5), TINY)


class Seal:
    """A channel whose payloads say nothing, and that only their receivers open."""

    def __init__(self) -> None:
        self.opened: list[tuple[int, int]] = []
        self.payloads: dict[bytes, tuple[int, int, bytes]] = {}

    def close(self, sender: int, receiver: int, plaintext: bytes) -> bytes:
        """Return a number for the plaintext."""
        payload = b"sealed" + len(self.payloads).to_bytes(4, "little")
        self.payloads[payload] = (sender, receiver, plaintext)
        return payload

    def open(self, sender: int, receiver: int, payload: bytes) -> bytes:
        """Return the plaintext, to the receiver it was closed for."""
        closed_by, closed_for, plaintext = self.payloads[payload]
        assert (closed_by, closed_for) == (sender, receiver)
        self.opened.append((sender, receiver))
        return plaintext


@pytest.mark.requirement("LSA-05")
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6), st.randoms(use_true_random=False))
def test_only_complete_sharers_are_relayed_byte_for_byte(lost: set[tuple[int, int]], order: Any) -> None:
    channel = Seal()
    network = stage(fixed_round(TINY), RELAY, channel=channel)
    sent = list(network.mail(TABLE[RELAY], SERVER))
    inbox = [message for message in sent if (message.sender, message.receiver) not in lost]
    order.shuffle(inbox)
    after, outbox = attempt(RELAY, network.states[SERVER], inbox)
    complete = [user for user in range(5) if all((user, other) not in lost for other in range(5) if other != user)]
    assert after.sharers == tuple(complete)
    assert sorted(map(encode, outbox)) == sorted(encode(message) for message in sent if message.sender in complete)
    assert not channel.opened


@pytest.mark.requirement("LSA-05", "LSA-13")
def test_a_round_over_a_channel_that_the_server_cannot_open() -> None:
    case, channel = fixed_round(TINY), Seal()
    result = run_round(TINY, case.updates, randomness=case.randomness, channel=channel, session=bytes(16), round=0)
    assert integers_of(result.aggregate) == plain_sum(case, range(5))
    assert sorted(channel.opened) == [(i, j) for i in range(5) for j in range(5) if i != j]


class Empty(Seal):
    """A channel whose truth value is false."""

    def __len__(self) -> int:
        return 0


@pytest.mark.requirement("LSA-05")
def test_a_channel_of_no_length_is_a_channel() -> None:
    channel = Empty()
    assert stage(fixed_round(TINY), RELAY, channel=channel).states[0].channel is channel
    joined = multi_round.user_start(SELECTED, SESSION, 0, 0, range(5), vector([1, 2, 3]), channel)
    assert vars(joined.base)["channel"] is channel


@pytest.mark.requirement("LSA-06", "LSA-07")
@given(st.permutations(range(5)), st.integers(0, 5))
def test_the_server_announces_exactly_the_accepted_uploads_in_order(order: list[int], count: int) -> None:
    network = stage(fixed_round(TINY), ANNOUNCE)
    uploads = {message.sender: message for message in network.mail(TABLE[ANNOUNCE], SERVER)}
    inbox = [uploads[user] for user in order[:count]]
    if count < 3:
        with pytest.raises(TooFewSurvivors):
            attempt(ANNOUNCE, network.states[SERVER], inbox)
        return
    _, outbox = attempt(ANNOUNCE, network.states[SERVER], inbox)
    assert [message.receiver for message in outbox] == sorted(order[:count])
    assert {message.users for message in outbox if isinstance(message, SurvivingSet)} == {tuple(sorted(order[:count]))}


@pytest.mark.requirement("LSA-07")
@pytest.mark.parametrize(("U", "T"), [(2, 1), (3, 2), (4, 1), (4, 2), (3, 1)])
def test_the_surviving_set_needs_U_and_T_plus_2(U: int, T: int) -> None:
    network = stage(fixed_round(Parameters(11, 6, 2, U, T, 3)), ANNOUNCE)
    state, uploads = network.states[SERVER], network.mail(TABLE[ANNOUNCE], SERVER)
    for count in range(7):
        if count < max(U, T + 2):
            with pytest.raises(TooFewSurvivors):
                attempt(ANNOUNCE, state, uploads[:count])
        else:
            assert attempt(ANNOUNCE, state, uploads[:count])[0].surviving == tuple(range(count))


@pytest.mark.requirement("LSA-16")
def test_uploads_of_no_sharer_and_answers_of_no_survivor_are_refused() -> None:
    network = stage(fixed_round(TINY), RELAY)
    network.waiting[SERVER] = [m for m in network.waiting[SERVER] if (m.sender, m.receiver) != (4, 0)]
    network.take(TABLE[RELAY], SERVER)
    for user in range(5):
        network.take(TABLE[UPLOAD], user)
    uploads = network.mail(TABLE[ANNOUNCE], SERVER)
    with pytest.raises(InconsistentSets) as caught:
        attempt(ANNOUNCE, network.states[SERVER], uploads)
    assert caught.value.blamed == {4}
    network.waiting[SERVER] = list(uploads[:3])
    network.take(TABLE[ANNOUNCE], SERVER)
    answers = [AggregatedShare(SESSION, 0, user, SERVER, vector([1, 2])) for user in range(4)]
    with pytest.raises(InconsistentSets) as caught:
        attempt(RECOVER, network.states[SERVER], answers)
    assert caught.value.blamed == {3}


# ------------------------------------------------------------------------------- messages from elsewhere, at each step


@dataclass(frozen=True)
class Fault:
    """A change of one message of an inbox, and the errors that may answer it."""

    change: Callable[[Message], Message]
    errors: tuple[type[ProtocolError], ...]


FAULTS = {
    "session": Fault(lambda m: replace(m, session=bytes(15) + b"\1"), (WrongPhase,)),
    "round": Fault(lambda m: replace(m, round=1), (WrongPhase,)),
    "receiver": Fault(lambda m: replace(m, receiver=99), (Malformed,)),
    "sender": Fault(lambda m: replace(m, sender=98), (InconsistentSets, Malformed)),
    "itself": Fault(lambda m: replace(m, sender=m.receiver), (InconsistentSets, Malformed)),
}
RECEIVING = pytest.mark.parametrize("row", [RELAY, UPLOAD, ANNOUNCE, ANSWER, RECOVER])


def refused(row: int, network: Network, party: int, inbox: Sequence[Message]) -> ProtocolError:
    """The refusal of an inbox, which leaves the state as it was, and after which the correct step works."""
    state = network.states[party]
    before = snapshot([state, inbox])
    with pytest.raises(ProtocolError) as caught:
        attempt(row, state, inbox)
    assert snapshot([state, inbox]) == before
    network.take(TABLE[row], party)
    return caught.value


@pytest.mark.requirement("MSG-03", "ERR-01")
@RECEIVING
@pytest.mark.parametrize("name", FAULTS)
@given(data=st.data())
def test_a_message_from_elsewhere_is_refused(row: int, name: str, data: st.DataObject) -> None:
    network = stage(fixed_round(TINY), row)
    party = data.draw(st.sampled_from(party_of(TABLE[row], 5)))
    inbox = data.draw(st.permutations(network.mail(TABLE[row], party)))
    at = data.draw(st.integers(0, len(inbox) - 1))
    inbox[at] = FAULTS[name].change(inbox[at])
    error = refused(row, network, party, inbox)
    assert isinstance(error, FAULTS[name].errors)
    assert error.blamed == {inbox[at].sender}


@pytest.mark.requirement("MSG-04", "ERR-01")
@RECEIVING
@given(data=st.data())
def test_a_second_message_is_refused(row: int, data: st.DataObject) -> None:
    network = stage(fixed_round(TINY), row)
    party = data.draw(st.sampled_from(party_of(TABLE[row], 5)))
    inbox = data.draw(st.permutations(network.mail(TABLE[row], party)))
    twice = data.draw(st.sampled_from(inbox))
    inbox.insert(data.draw(st.integers(0, len(inbox))), replace(twice))
    error = refused(row, network, party, inbox)
    assert isinstance(error, Replay)
    assert error.blamed == {twice.sender}


def sample_of(kind: type[Message], sender: int, receiver: int) -> Message:
    """Some message of a type."""
    bodies: dict[Any, Any] = {MaskShare: b"", SurvivingSet: (0, 1, 2)}
    make: Any = kind
    return make(SESSION, 0, sender, receiver, bodies.get(kind, vector([1, 2])))  # type: ignore[no-any-return]


@pytest.mark.requirement("MSG-03", "ERR-01")
@RECEIVING
@pytest.mark.parametrize("kind", [MaskShare, MaskedUpdate, SurvivingSet, AggregatedShare])
def test_a_message_of_another_type_is_refused(row: int, kind: type[Message]) -> None:
    network = stage(fixed_round(TINY), row)
    party = party_of(TABLE[row], 5)[0]
    if kind in TABLE[row].receives:
        return
    inbox = (*network.mail(TABLE[row], party), sample_of(kind, 1, party))
    assert isinstance(refused(row, network, party, inbox), WrongPhase)


@pytest.mark.requirement("MSG-03")
def test_the_first_step_takes_no_message() -> None:
    state = stage(fixed_round(TINY), 0).states[0]
    with pytest.raises(WrongPhase):
        lightsecagg.user_share.take(state, [sample_of(MaskShare, 1, 0)], randomness=fixed_round(TINY).randomness[0])


BAD_VECTORS: tuple[list[int], ...] = ([], [1], [1, 2, 3, 4], [7, 0], [0, 2**32 - 1], [1, 2, 7])


@pytest.mark.requirement("LSA-03", "MOD-06", "MOD-07", "MSG-02", "ERR-01")
@pytest.mark.parametrize("row", [UPLOAD, ANNOUNCE, RECOVER])
@pytest.mark.parametrize("values", BAD_VECTORS)
def test_a_vector_that_does_not_fit_is_its_senders_fault(row: int, values: list[int]) -> None:
    network = stage(fixed_round(TINY), row)
    party = party_of(TABLE[row], 5)[0]
    inbox: list[Any] = list(network.mail(TABLE[row], party))
    name = {MaskShare: "payload", MaskedUpdate: "masked", AggregatedShare: "share"}[type(inbox[1])]
    inbox[1] = replace(inbox[1], **{name: vector_bytes(vector(values)) if name == "payload" else vector(values)})
    error = refused(row, network, party, inbox)
    assert isinstance(error, Malformed)
    assert error.blamed == {inbox[1].sender}


@pytest.mark.requirement("MSG-02", "ERR-01")
@pytest.mark.parametrize("payload", [b"", bytes(3), b"\2\0\0\0\1\0\0\0", vector_bytes(vector([1, 2])) + b"\0"])
def test_a_payload_that_is_no_vector_is_its_senders_fault(payload: bytes) -> None:
    network = stage(fixed_round(TINY), UPLOAD)
    inbox: list[Any] = list(network.mail(TABLE[UPLOAD], 0))
    inbox[2] = replace(inbox[2], payload=payload)
    error = refused(UPLOAD, network, 0, inbox)
    assert isinstance(error, Malformed)
    assert error.blamed == {inbox[2].sender}


@pytest.mark.requirement("LSA-09", "LSA-10", "LSA-11", "ERR-01")
@pytest.mark.parametrize(
    ("users", "error"),
    [
        ((), TooFewSurvivors),
        ((0, 1), TooFewSurvivors),
        ((0, 1, 1), InconsistentSets),
        ((0, 1, 1, 2), InconsistentSets),
        ((0, 1, 5), InconsistentSets),
        ((0, 1, 2, SERVER), InconsistentSets),
        ((0, 1, 2, 3), InconsistentSets),
    ],
)
def test_a_user_refuses_a_set_that_cannot_be_right(users: tuple[int, ...], error: type[ProtocolError]) -> None:
    case = fixed_round(TINY)
    network = lightsecagg.open_round(TINY, case.updates, session=bytes(16), round=0)
    for user in (0, 1, 2, 4):
        network.take(TABLE[SHARE], user, case.randomness[user])
    network.take(TABLE[RELAY], SERVER)
    for user in (0, 1, 2, 4):
        network.take(TABLE[UPLOAD], user)
    network.take(TABLE[ANNOUNCE], SERVER)
    announced: Any = network.mail(TABLE[ANSWER], 0)[0]
    inbox: list[Message] = [replace(announced, users=users)]
    assert isinstance(refused(ANSWER, network, 0, inbox), error)


@pytest.mark.requirement("ERR-01", "ERR-02")
@pytest.mark.parametrize("row", range(6))
def test_states_and_what_is_sent_are_read_only(row: int) -> None:
    case = fixed_round(TINY)
    network = stage(case, row + 1)
    event = next(event for event in network.transcript if event.step is TABLE[row])
    values = [getattr(event.state, entry.name) for entry in fields(event.state)]
    values += [getattr(message, entry.name) for message in event.sent for entry in fields(message)]
    values += list(getattr(event.state, "held", {}).values())
    assert all(not value.flags.writeable for value in values if isinstance(value, np.ndarray))


# ----------------------------------------------------------------------------------------------------------- costs


def cost_table() -> dict[tuple[str, str], tuple[str, str]]:
    """The formulas for messages and bytes in section 6 of the page, by role and phase."""
    page = (resources.root("spec") / "lightsecagg.md").read_text(encoding="utf-8")
    section = page.split("## 6. Costs")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (user|server) \| (\w+) \| `([^`]+)` \| `([^`]+)` \|$", section, re.MULTILINE)
    return {(role, phase): (messages, size) for role, phase, messages, size in rows}


def evaluated(formula: str, names: dict[str, int]) -> int:
    """The value of a formula of products, sums and differences."""
    assert re.fullmatch(r"[A-Za-z0-9 +*()-]+", formula)
    return int(eval(formula, {"__builtins__": {}}, dict(names)))


@pytest.mark.requirement("MSG-01", "LSA-05", "LSA-06")
@given(rounds(), st.data())
def test_the_costs_of_the_text_are_those_of_a_round(case: Round, data: st.DataObject) -> None:
    p, table = case.parameters, cost_table()
    late = data.draw(st.sets(st.integers(0, p.N - 1), max_size=p.N - max(p.U, p.T + 2)))
    result = run(case, ["upload" if user in late else "stays" for user in range(p.N)])
    names = {"N": p.N, "d": p.d, "L": p.share_length, "H": 30, "C": 0, "S": len(result.contributors)}
    assert set(table) - {(step.role.value, step.phase) for step in TABLE} == {
        ("user", "confirm"),
        ("server", "confirm"),
    }
    assert len(table) == 7
    for event in result.transcript:
        messages, size = table.get((event.step.role.value, event.step.phase), ("0", "0"))
        assert len(event.sent) == evaluated(messages, names)
        assert sizes(event.sent) == evaluated(size, names)


# ----------------------------------------------------------------------------------------- a network that misbehaves


class MisbehavingNetwork(RuleBasedStateMachine):
    """Messages are dropped, delayed, duplicated, reordered and altered; a party that refuses its mail drops the blamed.

    What comes out is the exact sum over the announced set, or a typed failure that changed nothing.
    """

    @initialize(seed=st.integers(1, 99), rows=st.sampled_from((2, 5, 0, 1, 3, 4, 5)))
    def begin(self, seed: int, rows: int) -> None:
        """Start with a round of which some rows went well."""
        self.case = fixed_round(TINY, seed)
        self.network = stage(self.case, rows)
        self.late: list[tuple[int, Message]] = []
        self.outcome: ProtocolError | None = None

    def boxes(self) -> list[tuple[int, int]]:
        """Where messages wait: (party, position)."""
        return [(party, at) for party, box in self.network.waiting.items() for at in range(len(box))]

    def row_of(self, party: int) -> int:
        """The next row of a party; 6 or 7 when it has none."""
        phase = self.network.states[party].phase
        index = (*lightsecagg.PHASES, "done").index(phase)
        return 2 * index + (party == SERVER)

    @rule(user=st.integers(0, 4))
    def user_step(self, user: int) -> None:
        """A user takes its next step, whatever waits for it."""
        if self.row_of(user) < 6:
            self.take(user)

    @rule(absent=st.sets(st.integers(0, 4), max_size=2))
    def users_step(self, absent: set[int]) -> None:
        """Users take their next step when something waits for them."""
        for user in set(range(5)) - absent:
            row = self.row_of(user)
            if row == SHARE or (row < 6 and self.network.mail(TABLE[row], user)):
                self.take(user)

    @rule()
    @precondition(lambda self: self.ready())
    def server_step(self) -> None:
        """The server takes its next step, and what it refuses it drops and tries again."""
        row = self.row_of(SERVER)
        for _ in range(6):
            if self.row_of(SERVER) == row and self.outcome is None:
                self.take(SERVER)

    def ready(self) -> bool:
        """Whether the server has something to do: mail from three users."""
        row = self.row_of(SERVER)
        return self.outcome is None and row < 6 and len({m.sender for m in self.network.mail(TABLE[row], SERVER)}) >= 3

    @rule(data=st.data())
    @precondition(lambda self: self.boxes())
    def misbehave(self, data: st.DataObject) -> None:
        """Some faults of the network or of senders."""
        faults = (
            self.remove, self.delay, self.deliver, self.duplicate, self.reorder, self.alter_header, self.spoil_vector,
            self.lie,
        )  # fmt: skip
        for fault in data.draw(st.lists(st.sampled_from(faults), min_size=1, max_size=3)):
            fault(data)

    def delay(self, data: st.DataObject) -> None:
        """Hold a message back."""
        self.late += self.remove(data)

    def deliver(self, data: st.DataObject) -> None:
        """Deliver what was held back."""
        for party, message in self.late:
            self.network.waiting.setdefault(party, []).append(message)
        self.late = []

    def duplicate(self, data: st.DataObject) -> None:
        """Deliver a message twice."""
        for party, message in self.pick(data):
            self.network.waiting[party].append(replace(message))

    def reorder(self, data: st.DataObject) -> None:
        """Deliver in another order."""
        for box in self.network.waiting.values():
            data.draw(st.randoms(use_true_random=False)).shuffle(box)

    def alter_header(self, data: st.DataObject) -> None:
        """Replace a message by one from elsewhere."""
        fault = FAULTS[data.draw(st.sampled_from(sorted(FAULTS)))]
        for party, message in self.remove(data):
            self.network.waiting[party].append(fault.change(message))

    def spoil_vector(self, data: st.DataObject) -> None:
        """Replace a vector by one that does not fit."""
        bad: Any = vector(data.draw(st.sampled_from(BAD_VECTORS)))
        for party, message in self.remove(data):
            self.network.waiting[party].append(spoil(message, bad))  # type: ignore[arg-type]

    def lie(self, data: st.DataObject) -> None:
        """Replace an answer by another vector of elements."""
        delta, box = data.draw(st.integers(1, 6)), self.network.waiting.get(SERVER, [])
        answers = [at for at, message in enumerate(box) if isinstance(message, AggregatedShare) and is_pair(message)]
        if answers:
            at = data.draw(st.sampled_from(answers))
            box[at] = altered(box[at], 0, delta)

    def pick(self, data: st.DataObject) -> list[tuple[int, Message]]:
        """Some waiting message, where there is one."""
        boxes = self.boxes()
        party, at = data.draw(st.sampled_from(boxes)) if boxes else (0, 0)
        return [(party, self.network.waiting[party][at])] if boxes else []

    def remove(self, data: st.DataObject) -> list[tuple[int, Message]]:
        """Take some waiting message out."""
        picked = self.pick(data)
        for party, message in picked:
            self.network.waiting[party].remove(message)
        return picked

    def take(self, party: int) -> None:
        """Take the next step; a refusal changes nothing, and the mail of the blamed is dropped."""
        step = TABLE[self.row_of(party)]
        sampled = self.case.randomness[party] if step.randomness else None
        before = snapshot([self.network.states, self.network.waiting, len(self.network.transcript)])
        try:
            event = self.network.take(step, party, sampled)
        except ProtocolError as error:
            assert snapshot([self.network.states, self.network.waiting, len(self.network.transcript)]) == before
            self.refused(step, party, error)
        else:
            self.finished(event)

    def refused(self, step: Step[Any], party: int, error: ProtocolError) -> None:
        """Judge a failure, and drop the mail of those it blames."""
        mail = self.network.mail(step, party)
        if isinstance(error, TooFewSurvivors) and party == SERVER:
            assert len(mail) < 3
            self.outcome = error
        if isinstance(error, BadShare):
            assert len(mail) > 3
            assert self.wrong(mail) & error.blamed
            self.outcome = error
        box = self.network.waiting.get(party, [])
        self.network.waiting[party] = [m for m in box if m.sender not in error.blamed]

    def finished(self, event: Event) -> None:
        """Judge the result of the last step."""
        if event.step is not TABLE[RECOVER]:
            return
        state, answered = self.network.states[SERVER], {message.sender for message in event.received}
        assert set(state.surviving) >= answered
        wrong = self.wrong(event.received)
        if wrong:
            assert len(wrong) > len(answered) - 3, "fewer wrong answers than extra ones are always seen"
        else:
            assert integers_of(state.aggregate) == plain_sum(self.case, state.surviving)

    def wrong(self, answers: Sequence[Message]) -> set[int]:
        """Whose answer is not the one that its user sent."""
        sent = {event.party: encode(event.sent[0]) for event in self.network.transcript if event.step is TABLE[ANSWER]}
        return {message.sender for message in answers if encode(message) != sent[message.sender]}

    def teardown(self) -> None:
        """Whatever happened, let the round go on in order to its end."""
        for _ in range(3 if hasattr(self, "network") else 0):
            self.users_step(set())
            if self.ready():
                self.server_step()

    @invariant()
    def users_answer_once(self) -> None:
        """No user has uploaded or answered twice."""
        taken = [(event.step.phase, event.party) for event in self.network.transcript]
        assert len(taken) == len(set(taken))


def is_pair(message: AggregatedShare) -> bool:
    """Whether an answer is what tiny demands: two elements."""
    return message.share.size == 2 and int(message.share.max()) < 7


def spoil(message: MaskShare | MaskedUpdate | AggregatedShare | SurvivingSet, bad: UintArray) -> Message:
    """A message whose vector does not fit; a surviving set that names a user twice."""
    match message:
        case MaskShare():
            return replace(message, payload=vector_bytes(bad))
        case MaskedUpdate():
            return replace(message, masked=bad)
        case AggregatedShare():
            return replace(message, share=bad)
    return replace(message, users=(*message.users, message.users[0]))


MisbehavingNetwork.TestCase.settings = settings(stateful_step_count=30)
TestMisbehavingNetwork = pytest.mark.requirement(
    "LSA-13", "LSA-14", "LSA-15", "LSA-16", "LSA-17", "MSG-03", "MSG-04", "ERR-01"
)(MisbehavingNetwork.TestCase)


@pytest.mark.requirement("LSA-13", "MOD-03")
@given(st.data())
def test_extreme_updates_and_masks_sum_exactly(data: st.DataObject) -> None:
    p = Parameters(2**32 - 5, 6, 1, 4, 2, 3)
    values = data.draw(st.lists(elements(p.q), min_size=18, max_size=18))
    extreme = {"mask": np.full(3, p.q - 1, dtype=np.uint64), "noise": np.full((2, 2), p.q - 1, dtype=np.uint64)}
    case = Round(p, vector(values).reshape(6, 3), dict.fromkeys(range(6), extreme))
    assert integers_of(run(case).aggregate) == plain_sum(case, range(6))
