"""SecAgg: every dropout schedule at tiny, random rounds on any graph, and messages that cannot be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource, draw_elements
from secagg_spec.crypto.keys import agree, public_key
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import (
    BadShare,
    DecryptionFailed,
    InconsistentSets,
    LengthMismatch,
    Malformed,
    NonCanonical,
    ParameterError,
    ProtocolError,
    Replay,
    TooFewSurvivors,
    WeakKey,
    WrongPhase,
)
from secagg_spec.protocols.codec import Message
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.graph import Graph
from secagg_spec.protocols.secagg.round import (
    PHASES,
    PRESETS,
    TABLE,
    NeighbourKeys,
    Parameters,
    SecretShares,
    SeedCommitment,
    UnmaskRequest,
    UnmaskShares,
    draw_randomness,
    mask_update,
    run_round,
    unmask,
)
from secagg_spec.protocols.steps import SERVER, Network, Randomness, Role, RoundResult, sizes
from tests.strategies import arrays, fewer, integers_of, moduli, snapshot, vector

TINY = PRESETS["tiny"]
SPARSE = Parameters(R=97, N=8, D=2, T=1, t=3, k=4, d=2)
ADVERTISE, KEYS, SHARE, RELAY, INPUT, ASK, ANSWER, UNMASK = range(8)
WEAK = [bytes(32), b"\1" + bytes(31), bytes.fromhex("ec" + "ff" * 30 + "7f")]
FATES = ("stays", *PHASES)


@dataclass(frozen=True, eq=False)
class Case:
    """Everything that a round takes, but who drops out."""

    parameters: Parameters
    updates: UintArray
    randomness: dict[int, Randomness]
    order: tuple[int, ...]

    def open(self) -> Network:
        """The round before its first step."""
        return secagg.open_round(self.parameters, self.updates, order=self.order, session=bytes(16), round=0)

    def run(self, fates: Sequence[str]) -> RoundResult:
        """The round with a fate for each user."""
        dropouts = {phase: [user for user, fate in enumerate(fates) if fate == phase] for phase in PHASES}
        return run_round(
            self.parameters,
            self.updates,
            randomness=self.randomness,
            dropouts=dropouts,
            order=self.order,
            session=bytes(16),
            round=0,
        )

    def plain_sum(self, users: Sequence[int]) -> list[int]:
        """The sum of the updates of some users, by Python integers."""
        rows = self.updates[list(users)].tolist()
        return [sum(column) % self.parameters.R for column in zip(*rows, strict=True)]


@cache
def case_of(parameters: Parameters, seed: int = 1, order: tuple[int, ...] | None = None) -> Case:
    """A round whose every sampled value differs, from a seed."""
    sources = {user: SeededSource(b"%d" % seed, f"user {user}") for user in range(parameters.N)}
    updates = draw_elements(SeededSource(b"%d" % seed, "updates"), parameters.ring, (parameters.N, parameters.d))
    order = tuple(range(parameters.N)) if order is None else order
    return Case(parameters, updates, dict(draw_randomness(parameters, sources)), order)


@st.composite
def sessions(draw: st.DrawFn) -> Parameters:
    """Parameters on a complete or a sparse graph, of up to 8 users."""
    N = draw(st.integers(3, 8))
    T = draw(st.integers(1, N - 2))
    D = draw(st.integers(0, N - T - 2))
    degrees = [k for k in range(2, N - 1) if k * N % 2 == 0]
    k = draw(st.sampled_from([N - 1, N - 1, *degrees]))
    t = draw(st.integers(T + 2, N - D) if k == N - 1 else st.integers(2, min(k + 1, N - D)))
    return Parameters(draw(moduli()), N, D, T, t, k, draw(st.integers(1, 4)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rounds with drawn parameters and order."""
    parameters = draw(sessions())
    return case_of(parameters, draw(st.integers(0, 5)), tuple(draw(st.permutations(range(parameters.N)))))


def parties(row: int, N: int) -> Sequence[int]:
    """Who takes a row of the table."""
    return (SERVER,) if TABLE[row].role is Role.SERVER else range(N)


def stage(case: Any, rows: int, absent: Sequence[int] = (), since: int = ADVERTISE) -> Network:
    """A network on which every party has taken the first `rows` rows; some users are absent from a row on."""
    network: Network = case.open()
    for row, step in enumerate(network.table[:rows]):
        for party in parties(row, case.parameters.N):
            if row < since or party not in absent:
                sampled = {name: case.randomness[party][name] for name in step.randomness}
                network.take(step, party, sampled)
    return network


def attempt(case: Any, row: int, network: Network, party: int, inbox: Sequence[Message]) -> Any:
    """Take a step on an inbox, and return the new state and what is sent."""
    step = network.table[row]
    sampled = {name: case.randomness[party][name] for name in step.randomness}
    return step.take(network.states[party], tuple(inbox), randomness=sampled)


def refused(case: Any, row: int, network: Network, party: int, inbox: Sequence[Message], error: type[Exception]) -> Any:
    """The refusal of an inbox, which leaves the state as it was, and after which the right step is taken."""
    before = snapshot([network.states[party], list(inbox)])
    with pytest.raises(error) as caught:
        attempt(case, row, network, party, inbox)
    assert type(caught.value) is error
    assert snapshot([network.states[party], list(inbox)]) == before
    attempt(case, row, network, party, network.mail(network.table[row], party))
    return caught.value


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.requirement("SAG-01", "SAG-02")
def test_parameters_are_taken_exactly_inside_the_bounds() -> None:
    for N, D, T, t, k in product(range(2, 7), range(-1, 4), range(4), range(8), range(7)):
        graph = k == N - 1 or (2 <= k < N - 1 and k * N % 2 == 0)
        threshold = T + 2 <= t <= N - D if k == N - 1 else 2 <= t <= min(k + 1, N - D)
        if D >= 0 and T >= 1 and N - D >= T + 2 and graph and threshold:
            assert Parameters(2, N, D, T, t, k, 1).enough == max(t, T + 2)
        else:
            with pytest.raises(ParameterError):
                Parameters(2, N, D, T, t, k, 1)


@pytest.mark.requirement("SAG-01", "SAG-02")
@pytest.mark.parametrize(
    ("name", "value"),
    [("R", 1), ("R", 2**32 + 1), ("R", 8.0), ("d", 0), ("d", True), ("t", "3"), ("t", 0), ("t", 6), ("k", 3), ("N", 2)],
)
def test_a_parameter_that_is_refused_is_named(name: str, value: object) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        replace(TINY, **{name: value})  # type: ignore[arg-type]


@pytest.mark.requirement("SAG-04")
def test_an_order_of_another_roster_is_refused() -> None:
    with pytest.raises(LengthMismatch, match="order"):
        TINY.graph(range(6))
    with pytest.raises(ParameterError, match="graph"):
        secagg.Round(TINY, SPARSE.graph(), bytes(16), 0)


@pytest.mark.parametrize(("session", "number"), [(bytes(15), 0), ("0" * 16, 0), (bytes(16), -1), (bytes(16), 2**32)])
def test_a_session_or_round_that_is_none_is_refused(session: Any, number: int) -> None:
    with pytest.raises(ParameterError):
        secagg.Round(TINY, TINY.graph(), session, number)


# ------------------------------------------------------------------------------------------------------- dropouts


def succeeds(case: Case, fates: Sequence[str]) -> tuple[int, ...] | None:
    """The survivors of a round, when SAG-30 says that it succeeds: worked out on sets, without any message."""
    p, graph = case.parameters, Graph(case.order, case.parameters.k)

    def core(users: set[int]) -> set[int]:
        small = [user for user in users if len(graph.holders(user) & users) < p.t]
        return core(users - {small[0]}) if small else users

    def before(phase: str) -> set[int]:
        return {user for user, fate in enumerate(fates) if fate == "stays" or PHASES.index(fate) > PHASES.index(phase)}

    one = core(before("advertise_keys"))
    two = core(one & before("share_keys"))
    three, five = two & before("masked_input"), two & before("unmasking")
    large = all(len(users) >= max(p.t, p.T + 2) for users in (one, two, three))
    held = all(len(graph.holders(user) & present) >= p.t for user in two for present in (three, five))
    return tuple(sorted(three)) if large and held else None


def judge(case: Case, fates: Sequence[str]) -> bool:
    """Whether a round succeeded; either way it is as the text says."""
    survivors = succeeds(case, fates)
    if survivors is None:
        with pytest.raises(TooFewSurvivors):
            case.run(fates)
        return False
    result = case.run(fates)
    assert result.contributors == survivors
    assert integers_of(result.aggregate) == case.plain_sum(survivors)
    return True


@pytest.mark.slow
@pytest.mark.requirement("SAG-18", "SAG-27", "SAG-29", "SAG-30")
def test_every_schedule_at_tiny_succeeds_exactly_when_the_text_says_so() -> None:
    outcomes = [judge(case_of(TINY), fates) for fates in product(FATES, repeat=TINY.N)]
    assert (len(outcomes), sum(outcomes)) == (3125, 181)


@pytest.mark.requirement("SAG-18", "SAG-27", "SAG-29", "SAG-30")
@given(cases(), st.data())
def test_a_round_succeeds_exactly_when_the_text_says_so(case: Case, data: st.DataObject) -> None:
    fates = st.sampled_from(("stays", "stays", "stays", "stays", *FATES))
    judge(case, data.draw(st.lists(fates, min_size=case.parameters.N, max_size=case.parameters.N)))


@pytest.mark.requirement("SAG-29", "MOD-03")
@pytest.mark.parametrize("R", [2, 3, 2**31 + 11, 2**32])
def test_extreme_updates_sum_exactly(R: int) -> None:
    case = case_of(replace(TINY, R=R))
    extreme = replace(case, updates=np.full((5, 3), R - 1, dtype=np.uint64))
    result = extreme.run(("stays", "masked_input", "stays", "stays", "stays"))
    assert integers_of(result.aggregate) == [4 * (R - 1) % R] * 3


# ----------------------------------------------------------------------------------------------------- pure cores


@pytest.mark.requirement("SAG-12", "SAG-29")
@given(moduli(), st.data())
def test_masks_cancel_on_any_graph_whoever_drops_out(R: int, data: st.DataObject) -> None:
    N, ring = data.draw(st.integers(2, 6)), Ring(R)
    pairs = {(i, j) for i in range(N) for j in range(i) if data.draw(st.booleans())}
    streams = {pair: data.draw(arrays(R, 2)) for pair in pairs | {(user, user) for user in range(N)}}
    updates = [data.draw(arrays(R, 2)) for _ in range(N)]
    alive = data.draw(st.sets(st.integers(0, N - 1)))

    def shared(user: int, peer: int) -> UintArray:
        return streams[max(user, peer), min(user, peer)]

    def peers(user: int) -> list[int]:
        return [peer for peer in range(N) if (max(user, peer), min(user, peer)) in pairs]

    masked = [
        mask_update(
            ring, user, updates[user], streams[user, user], [(peer, shared(user, peer)) for peer in peers(user)]
        )
        for user in sorted(alive)
    ]
    total = ring.sum(np.array(masked, dtype=np.uint64).reshape(-1, 2))
    left_out = set(range(N)) - alive
    left = [(user, peer, shared(user, peer)) for user in left_out for peer in peers(user) if peer in alive]
    result = unmask(ring, total, [streams[user, user] for user in alive], left)
    rows = [integers_of(updates[user]) for user in alive]
    assert integers_of(result) == [sum(row[at] for row in rows) % R for at in range(2)]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (None, "'NoneType': must be {}$"),
        ("ab", "'str': must be {}$"),
        ((), "'tuple': must be {}$"),
        ((1, 2), "'(tuple|int)': must be "),
        ((1, 2, vector([0]), 3), "'tuple': must be {}$"),
        ((None, 2, None), "'(tuple|NoneType)': must be "),
    ],
)
def test_what_is_no_mask_with_its_users_is_named_by_its_place(entry: Any, said: str) -> None:
    ring, zero = Ring(8), vector([0])
    with pytest.raises(ParameterError, match=r"^left\[1\] = " + said.format("two users and a mask")):
        unmask(ring, zero, [], [(0, 1, zero), entry])
    with pytest.raises(ParameterError, match=r"^pairwise\[1\] = " + said.format("a user and a mask")):
        mask_update(ring, 0, zero, zero, iter([(1, zero), entry]))
    with pytest.raises(ParameterError, match=r"^user = .NoneType.: must be an integer$"):
        mask_update(ring, None, zero, zero, [])  # type: ignore[arg-type]


@pytest.mark.requirement("SAG-12", "MSK-01", "MSK-02")
def test_the_masked_input_is_that_of_the_text() -> None:
    case = case_of(TINY)
    network = stage(case, ASK, absent=(1,), since=SHARE)
    context = network.states[0].round.context()
    keys = {user: public_key(case.randomness[user]["masking_key"]) for user in range(5)}
    for user in (0, 2, 3, 4):
        stream = expand(masks.self_key(context, case.randomness[user]["self_seed"], user), Ring(8), 3).astype(int)
        want = case.updates[user].astype(int) + stream
        for peer in {0, 2, 3, 4} - {user}:
            secret = agree(case.randomness[user]["masking_key"], keys[peer])
            key = masks.pairwise_key(context, secret, {user: keys[user], peer: keys[peer]})
            want += (1 if user < peer else -1) * expand(key, Ring(8), 3).astype(int)
        [message] = [m for m in network.mail(TABLE[ASK], SERVER) if m.sender == user]
        assert isinstance(message, secagg.MaskedInput)
        assert integers_of(message.masked) == (want % 8).tolist()


@pytest.mark.requirement("SAG-12", "SAG-29", "MSK-01", "MSK-02")
@given(cases())
def test_the_input_is_one_part_of_all_users_whose_masks_are_of_segment_0(case: Case) -> None:
    p = case.parameters
    [part] = p.parts
    assert (part.segment, part.start, part.stop) == (0, 0, p.d)
    assert (part.ring.modulus, part.members) == (p.R, frozenset(range(p.N)))
    state = stage(case, INPUT).states[0]
    assert set(state.mask_keys) == {(0, peer) for peer in state.round.graph.neighbours(0)}
    own = masks.self_key(state.round.context(), case.randomness[0]["self_seed"], 0)
    assert state.self_keys == {0: own}
    assert state.round.context().protocol == "secagg"


# ------------------------------------------------------------------------------------------- what an honest party does


@pytest.mark.requirement("SAG-05", "SAG-18")
@given(cases(), st.data())
def test_users_get_the_keys_of_their_neighbours(case: Case, data: st.DataObject) -> None:
    present = data.draw(st.sets(st.integers(0, case.parameters.N - 1)))
    network = case.open()
    for user in present:
        network.take(TABLE[ADVERTISE], user, {n: case.randomness[user][n] for n in TABLE[ADVERTISE].randomness})
    graph = network.states[SERVER].round.graph
    first = graph.core(present, case.parameters.t)
    if len(first) < case.parameters.enough:
        with pytest.raises(TooFewSurvivors):
            network.take(TABLE[KEYS], SERVER)
        return
    sent = network.take(TABLE[KEYS], SERVER).sent
    assert [message.receiver for message in sent] == list(first)
    for message in sent:
        assert isinstance(message, NeighbourKeys)
        assert message.users == tuple(user for user in first if user in graph.neighbours(message.receiver))
        for name in ("sealing", "masking"):
            keys = [public_key(case.randomness[user][f"{name}_key"]) for user in message.users]
            assert getattr(message, name) == b"".join(keys)


@pytest.mark.requirement("SAG-10", "MSK-03")
@given(cases())
def test_any_t_holders_have_both_secrets_and_the_commitment_fits(case: Case) -> None:
    p, network = case.parameters, stage(case, INPUT)
    for user in range(p.N):
        network.take(TABLE[INPUT], user)
    for owner in range(p.N):
        holders = sorted(network.states[owner].round.graph.holders(owner))
        for some in (holders[: p.t], holders[-p.t :]):
            shares = [network.states[holder].held[owner] for holder in some]
            key = shamir.reconstruct(p.t, some, [share.key for share in shares])
            seed = shamir.reconstruct(p.t, some, [share.seed for share in shares])
            assert (key, seed) == (case.randomness[owner]["masking_key"], case.randomness[owner]["self_seed"])
        server = network.states[SERVER]
        assert server.commitments[owner] == masks.commitment(server.round.context(), seed, owner)


@pytest.mark.requirement("SAG-11", "SAG-31")
def test_shares_of_those_that_shared_with_everybody_are_relayed() -> None:
    case = case_of(TINY)
    network = stage(case, RELAY)
    mail = network.mail(TABLE[RELAY], SERVER)
    share = [m for m in mail if (m.sender, m.receiver) == (3, 1)]
    commitment = [m for m in mail if m.sender == 3 and isinstance(m, SeedCommitment)]
    for lost in (share, commitment):
        state, sent = attempt(case, RELAY, network, SERVER, [m for m in mail if m not in lost])
        assert state.sharers == tuple(state.commitments) == (0, 1, 2, 4)
        assert all(message in mail and 3 not in (message.sender, message.receiver) for message in sent)
        assert len(sent) == 12
    stray = next(m for m in mail if isinstance(m, SecretShares) and m.sender == 3)
    refused(case, RELAY, network, SERVER, [*mail, replace(stray, receiver=3)], Malformed)
    sparse = case_of(SPARSE)
    network = stage(sparse, RELAY)
    mail = network.mail(TABLE[RELAY], SERVER)
    stray = next(m for m in mail if isinstance(m, SecretShares) and m.sender == 0)
    error = refused(sparse, RELAY, network, SERVER, [*mail, replace(stray, receiver=4)], Malformed)
    assert error.blamed == {0}


@pytest.mark.requirement("SAG-17", "SAG-24")
@given(cases(), st.data())
def test_each_user_gives_one_share_of_each_owner(case: Case, data: st.DataObject) -> None:
    p = case.parameters
    late = data.draw(st.sets(st.integers(0, p.N - 1), max_size=p.D))
    network = stage(case, ASK, absent=sorted(late), since=INPUT)
    try:
        sent = network.take(TABLE[ASK], SERVER).sent
    except TooFewSurvivors:
        assert p.k < p.N - 1
        return
    survivors = tuple(user for user in range(p.N) if user not in late)
    for message in sent:
        assert isinstance(message, UnmaskRequest)
        assert (message.survivors, message.dropped) == (survivors, tuple(sorted(late)))
        held = network.states[message.receiver].held
        [answer] = network.take(TABLE[ANSWER], message.receiver).sent
        assert isinstance(answer, UnmaskShares)
        assert answer.survivors == tuple(user for user in survivors if user in held)
        assert answer.dropped == tuple(user for user in sorted(late) if user in held)
        assert answer.seed_shares == b"".join(shamir.element_bytes(held[user].seed) for user in answer.survivors)
        assert answer.key_shares == b"".join(shamir.element_bytes(held[user].key) for user in answer.dropped)
        assert not network.states[message.receiver].held


# ----------------------------------------------------------------------------------------- messages from elsewhere

FAULTS: dict[str, tuple[Callable[[Any], Message], tuple[type[ProtocolError], ...]]] = {
    "session": (lambda m: replace(m, session=bytes(15) + b"\1"), (WrongPhase,)),
    "round": (lambda m: replace(m, round=1), (WrongPhase,)),
    "receiver": (lambda m: replace(m, receiver=99), (Malformed,)),
    "sender": (lambda m: replace(m, sender=98), (InconsistentSets, Malformed)),
    "itself": (lambda m: replace(m, sender=m.receiver), (InconsistentSets, Malformed)),
}
RECEIVING = pytest.mark.parametrize("row", range(1, 8))


@pytest.mark.requirement("MSG-03", "SAG-16", "ERR-01")
@RECEIVING
@pytest.mark.parametrize("name", FAULTS)
@given(data=st.data())
def test_a_message_from_elsewhere_is_refused(row: int, name: str, data: st.DataObject) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party = data.draw(st.sampled_from(parties(row, 5)))
    inbox = list(data.draw(st.permutations(network.mail(TABLE[row], party))))
    change, errors = FAULTS[name]
    inbox[0] = change(inbox[0])
    before = snapshot(network.states[party])
    with pytest.raises(errors) as caught:
        attempt(case, row, network, party, inbox)
    assert caught.value.blamed == {inbox[0].sender}
    assert snapshot(network.states[party]) == before


@pytest.mark.requirement("MSG-04", "ERR-01")
@RECEIVING
@given(data=st.data())
def test_a_second_message_is_refused(row: int, data: st.DataObject) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party = data.draw(st.sampled_from(parties(row, 5)))
    inbox = list(data.draw(st.permutations(network.mail(TABLE[row], party))))
    twice = data.draw(st.sampled_from(inbox))
    error = refused(case, row, network, party, [*inbox, replace(twice)], Replay)
    assert error.blamed == {twice.sender}


@pytest.mark.requirement("MSG-03", "ERR-01")
@pytest.mark.parametrize("row", range(8))
def test_a_message_of_another_type_is_refused(row: int) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party = parties(row, 5)[0]
    for other in range(1, 8):
        stray = stage(case, other).mail(TABLE[other], parties(other, 5)[0])[0]
        if isinstance(stray, TABLE[row].receives):
            continue
        inbox = [*network.mail(TABLE[row], party), replace(stray, receiver=party)]
        assert isinstance(refused(case, row, network, party, inbox, WrongPhase), WrongPhase)


@pytest.mark.requirement("MSG-03", "SAG-15", "SAG-25")
@pytest.mark.parametrize("row", range(8))
def test_each_step_is_taken_once_and_in_its_turn(row: int) -> None:
    case = case_of(TINY)
    party = parties(row, 5)[0]
    right = stage(case, row)
    mail = right.mail(TABLE[row], party)
    right.take(TABLE[row], party, {name: case.randomness[party][name] for name in TABLE[row].randomness})
    with pytest.raises(Replay):
        attempt(case, row, right, party, mail)
    for other in range(row + 2, 8, 2):
        with pytest.raises(WrongPhase):
            attempt(case, other, stage(case, row), party, ())


@pytest.mark.requirement("SAG-36", "ERR-01")
@pytest.mark.parametrize("row", [SHARE, ANSWER])
def test_a_step_that_needs_a_message_of_the_server_is_not_taken_without(row: int) -> None:
    case = case_of(TINY)
    refused(case, row, stage(case, row), 0, [], WrongPhase)


# --------------------------------------------------------------------------------------------------- keys and shares


def keys_for(user: int = 0, case: Case | None = None) -> tuple[Case, Network, Any]:
    """A user that is about to share its secrets, and the keys that it was sent."""
    case = case or case_of(TINY)
    network = stage(case, SHARE)
    return case, network, network.mail(TABLE[SHARE], user)[0]


@pytest.mark.requirement("SAG-06", "ERR-01")
@pytest.mark.parametrize("users", [(1, 2, 3, 3), (0, 2, 3, 4), (1, 2, 3, 5), (1, 2, 3, SERVER)])
def test_keys_of_nobody_that_is_a_neighbour_are_refused(users: tuple[int, ...]) -> None:
    case, network, message = keys_for()
    error = refused(case, SHARE, network, 0, [replace(message, users=users)], InconsistentSets)
    assert error.blamed == {SERVER}


@pytest.mark.requirement("SAG-06")
def test_keys_of_a_user_that_is_no_neighbour_on_the_graph_are_refused() -> None:
    case, network, message = keys_for(0, case_of(SPARSE))
    assert message.users == (1, 2, 6, 7)
    refused(case, SHARE, network, 0, [replace(message, users=(1, 2, 4, 7))], InconsistentSets)


@pytest.mark.requirement("SAG-07", "ERR-01")
@pytest.mark.parametrize("name", ["sealing", "masking"])
@pytest.mark.parametrize("other", ["sealing", "masking", "own sealing", "own masking"])
def test_equal_keys_are_refused_whosever_they_are(name: str, other: str) -> None:
    case, network, message = keys_for()
    if other.startswith("own"):
        key = public_key(case.randomness[0][f"{other.split()[1]}_key"])
    else:
        key = getattr(message, other)[64:96]
    keys = key + getattr(message, name)[32:]
    error = refused(case, SHARE, network, 0, [replace(message, **{name: keys})], InconsistentSets)
    assert error.blamed == ({1, SERVER} if other.startswith("own") else {1, 3, SERVER})


@pytest.mark.requirement("SAG-35", "ERR-01")
@pytest.mark.parametrize("name", ["sealing", "masking"])
@pytest.mark.parametrize("other", ["sealing", "masking"])
def test_the_server_refuses_equal_keys(name: str, other: str) -> None:
    case = case_of(TINY)
    network = stage(case, KEYS)
    mail: list[Any] = list(network.mail(TABLE[KEYS], SERVER))
    equal = replace(mail[3], **{name: getattr(mail[1], other)})
    assert refused(case, KEYS, network, SERVER, [*mail[:3], equal, mail[4]], InconsistentSets).blamed == {1, 3}


@pytest.mark.requirement("SAG-34", "KEY-01", "ERR-01")
@pytest.mark.parametrize("name", ["sealing", "masking"])
@pytest.mark.parametrize("weak", WEAK)
def test_the_server_refuses_keys_of_low_order(name: str, weak: bytes) -> None:
    case = case_of(TINY)
    network = stage(case, KEYS)
    mail: list[Any] = list(network.mail(TABLE[KEYS], SERVER))
    bad = replace(mail[3], **{name: weak})
    assert refused(case, KEYS, network, SERVER, [*mail[:3], bad, mail[4]], WeakKey).blamed == {3}


@pytest.mark.requirement("SAG-32", "ERR-01")
def test_users_that_do_not_ascend_are_refused() -> None:
    case, network, message = keys_for()
    assert refused(case, SHARE, network, 0, [replace(message, users=(1, 3, 2, 4))], Malformed).blamed == {SERVER}
    network = stage(case, ANSWER, absent=(4,), since=INPUT)
    [right] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(right, UnmaskRequest)
    for change in ({"survivors": (0, 2, 1, 3)}, {"survivors": (0, 1, 2), "dropped": (4, 3)}):
        assert refused(case, ANSWER, network, 0, [replace(right, **change)], Malformed).blamed == {SERVER}


@pytest.mark.requirement("SAG-08", "ERR-01")
@pytest.mark.parametrize("count", [0, 1])
def test_a_user_does_not_share_with_fewer_than_t_holders(count: int) -> None:
    case, network, message = keys_for()
    few = replace(
        message,
        users=message.users[:count],
        sealing=message.sealing[: 32 * count],
        masking=message.masking[: 32 * count],
    )
    assert not refused(case, SHARE, network, 0, [few], TooFewSurvivors).blamed


@pytest.mark.requirement("SAG-09", "KEY-01", "ERR-01")
@pytest.mark.parametrize("name", ["sealing", "masking"])
@pytest.mark.parametrize("weak", WEAK)
def test_a_key_of_low_order_is_refused_before_anything_is_sealed(name: str, weak: bytes) -> None:
    case, network, message = keys_for()
    keys = getattr(message, name)[:96] + weak
    error = refused(case, SHARE, network, 0, [replace(message, **{name: keys})], WeakKey)
    assert error.blamed == {4, SERVER}


@pytest.mark.requirement("KEY-03", "SAG-33", "MSG-02", "ERR-01")
@pytest.mark.parametrize("row", [KEYS, SHARE])
@pytest.mark.parametrize("name", ["sealing", "masking"])
def test_keys_of_another_length_are_the_senders_fault(row: int, name: str) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    party = parties(row, 5)[0]
    mail: list[Any] = list(network.mail(TABLE[row], party))
    for keys in (b"", getattr(mail[0], name)[:-1], getattr(mail[0], name) + b"\0"):
        error = refused(case, row, network, party, [replace(mail[0], **{name: keys}), *mail[1:]], Malformed)
        assert error.blamed == {mail[0].sender}


@pytest.mark.requirement("SEA-02", "ERR-01")
@pytest.mark.parametrize("change", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: bytes([p[0] ^ 1]) + p[1:]])
def test_a_payload_that_was_altered_does_not_open(change: Callable[[bytes], bytes]) -> None:
    case = case_of(TINY)
    network = stage(case, INPUT)
    mail: list[Any] = list(network.mail(TABLE[INPUT], 0))
    altered = replace(mail[1], payload=change(mail[1].payload))
    error = refused(case, INPUT, network, 0, [mail[0], altered, *mail[2:]], DecryptionFailed)
    assert error.blamed == {mail[1].sender, SERVER}


@pytest.mark.requirement("SAG-33", "MSG-02", "ERR-01")
@pytest.mark.parametrize("plaintext", [b"", bytes(131), bytes(133), b"\xff" * 132])
def test_shares_that_are_no_elements_are_the_senders_fault(plaintext: bytes) -> None:
    case = case_of(TINY)
    network = stage(case, INPUT)
    sender = network.states[1]
    sealed = secagg._lane(sender, 1, 0).seal(agree(*secrets_of(case, 1, 0)), plaintext)
    mail: list[Any] = list(network.mail(TABLE[INPUT], 0))
    error = refused(case, INPUT, network, 0, [replace(mail[0], payload=sealed), *mail[1:]], Malformed)
    assert error.blamed == {1}


def secrets_of(case: Case, user: int, peer: int) -> tuple[bytes, bytes]:
    """The private sealing key of a user and the public one of a peer."""
    return case.randomness[user]["sealing_key"], public_key(case.randomness[peer]["sealing_key"])


@pytest.mark.requirement("SAG-13", "ERR-01")
@pytest.mark.parametrize("count", [0, 1])
def test_a_user_does_not_mask_with_fewer_than_t_holders(count: int) -> None:
    case = case_of(TINY)
    network = stage(case, INPUT)
    refused(case, INPUT, network, 0, network.mail(TABLE[INPUT], 0)[:count], TooFewSurvivors)


@pytest.mark.requirement("SAG-14")
@pytest.mark.parametrize(
    ("update", "error"),
    [
        (vector([1, 2]), LengthMismatch),
        (vector([1, 2, 3, 4]), LengthMismatch),
        (vector([1, 2, 8]), NonCanonical),
        (np.array([1.0, 2.0, 3.0]), ParameterError),
        ([1, 2, 3], ParameterError),
    ],
)
def test_an_update_that_does_not_fit_is_refused(update: Any, error: type[ParameterError]) -> None:
    with pytest.raises(error, match="update"):
        secagg.user_start(secagg.Round(TINY, TINY.graph(), bytes(16), 0), 0, update)


@pytest.mark.requirement("RND-04", "SAG-10")
@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        (ADVERTISE, "sealing_key", bytes(31)),
        (ADVERTISE, "masking_key", None),
        (SHARE, "self_seed", bytes(33)),
        (SHARE, "self_seed", [0] * 32),
        (SHARE, "key_coefficients", (1,)),
        (SHARE, "seed_coefficients", (1, 2, 3)),
        (SHARE, "seed_coefficients", (1, shamir.PRIME)),
        (SHARE, "key_coefficients", 7),
    ],
)
def test_sampled_values_that_do_not_fit_are_refused(row: int, name: str, value: Any) -> None:
    case = case_of(TINY)
    network = stage(case, row)
    sampled = {key: case.randomness[0][key] for key in TABLE[row].randomness}
    for wrong in ({**sampled, name: value}, {key: sampled[key] for key in sampled if key != name}, {**sampled, "x": 1}):
        with pytest.raises(ParameterError):
            TABLE[row].take(network.states[0], network.mail(TABLE[row], 0), randomness=wrong)


@pytest.mark.requirement("SAG-07")
@pytest.mark.parametrize("other", [bytes(32), b"\1" + bytes(31)], ids=["the same", "the same to X25519"])
def test_one_key_for_sealing_and_masking_is_refused(other: bytes) -> None:
    state = case_of(TINY).open().states[0]
    with pytest.raises(ParameterError, match="masking_key"):
        secagg.user_advertise_keys.take(state, (), randomness={"sealing_key": bytes(32), "masking_key": other})


# ------------------------------------------------------------------------------------------------------- unmasking


@pytest.mark.requirement("SAG-19", "SAG-20", "SAG-21", "SAG-22", "SAG-23", "ERR-01")
@pytest.mark.parametrize(
    ("survivors", "dropped", "error"),
    [
        ((0, 1, 2, 2), (3,), InconsistentSets),
        ((0, 1, 2), (3, 3), InconsistentSets),
        ((1, 0, 2), (3, 3), InconsistentSets),
        ((1, 0, 2), (3, SERVER), InconsistentSets),
        ((0, 1, 2, 5), (3,), InconsistentSets),
        ((0, 1, 2), (3, SERVER), InconsistentSets),
        ((0, 1, 2, 3), (3,), InconsistentSets),
        ((0, 1, 2), (0, 3), InconsistentSets),
        ((1, 2, 3), (0,), InconsistentSets),
        ((1, 2, 3), (), InconsistentSets),
        ((0, 1), (2, 3), TooFewSurvivors),
        ((0,), (1, 2, 3), TooFewSurvivors),
        ((), (0, 1, 2, 3), InconsistentSets),
        ((0, 1, 2), (), InconsistentSets),
        ((0, 1, 2, 4), (3,), InconsistentSets),
        ((0, 1, 2), (3, 4), InconsistentSets),
    ],
)
def test_a_request_that_cannot_be_right_is_refused(
    survivors: tuple[int, ...], dropped: tuple[int, ...], error: type[ProtocolError]
) -> None:
    case = case_of(TINY)
    network = stage(case, ANSWER, absent=(4,), since=SHARE)
    [right] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(right, UnmaskRequest)
    found = refused(case, ANSWER, network, 0, [replace(right, survivors=survivors, dropped=dropped)], error)
    assert found.blamed == ({SERVER} if error is InconsistentSets else set())


@pytest.mark.requirement("SAG-22")
def test_t_survivors_among_all_are_not_enough_where_the_holders_are_few() -> None:
    case = case_of(SPARSE)
    network = stage(case, ANSWER)
    [right] = network.mail(TABLE[ANSWER], 0)
    assert isinstance(right, UnmaskRequest)
    few = replace(right, survivors=(0, 1, 3, 4, 5), dropped=(2, 6, 7))
    refused(case, ANSWER, network, 0, [few], TooFewSurvivors)


@pytest.mark.requirement("SAG-26", "ERR-01")
@pytest.mark.parametrize(
    "change",
    [
        lambda m: replace(m, survivors=m.survivors[:-1], seed_shares=m.seed_shares[:-66]),
        lambda m: replace(m, survivors=m.survivors[::-1]),
        lambda m: replace(m, survivors=(*m.survivors, 4), seed_shares=m.seed_shares + bytes(66)),
        lambda m: replace(m, dropped=(), key_shares=b""),
        lambda m: replace(m, survivors=(*m.survivors[:-1], 4), dropped=(3,)),
        lambda m: replace(m, seed_shares=m.seed_shares[:-1]),
        lambda m: replace(m, seed_shares=m.seed_shares + bytes(66)),
        lambda m: replace(m, key_shares=b"\xff" * 66),
    ],
)
def test_an_answer_that_was_not_asked_for_is_its_senders_fault(change: Callable[[Any], Message]) -> None:
    case = case_of(TINY)
    network = stage(case, UNMASK, absent=(4,), since=INPUT)
    mail = list(network.mail(TABLE[UNMASK], SERVER))
    error = refused(case, UNMASK, network, SERVER, [mail[0], change(mail[1]), *mail[2:]], Malformed)
    assert error.blamed == {mail[1].sender}


@pytest.mark.requirement("SAG-28", "ERR-01")
@pytest.mark.parametrize("answers", [3, 4])
@pytest.mark.parametrize(("name", "owner"), [("seed_shares", 0), ("seed_shares", 2), ("key_shares", 4)])
def test_an_altered_share_is_seen_even_when_none_is_to_spare(answers: int, name: str, owner: int) -> None:
    case = case_of(TINY)
    network = stage(case, UNMASK, absent=(4,), since=INPUT)
    mail: list[Any] = list(network.mail(TABLE[UNMASK], SERVER))[:answers]
    data, at = getattr(mail[1], name), 9 + (66 * owner if name == "seed_shares" else 0)
    changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    error = refused(case, UNMASK, network, SERVER, [mail[0], replace(mail[1], **{name: changed}), *mail[2:]], BadShare)
    assert error.blamed == {owner, *(message.sender for message in mail)}


@pytest.mark.requirement("SAG-28", "SAG-29")
def test_a_key_that_differs_in_bits_that_nobody_reads_is_the_same_key() -> None:
    case = case_of(TINY)
    network = stage(case, UNMASK, absent=(4,), since=INPUT)
    mail: list[Any] = list(network.mail(TABLE[UNMASK], SERVER))[:3]
    share = shamir.element_from_bytes("share", mail[2].key_shares)
    for change in (1, 2**255):  # X25519 reads neither bit 0 nor bit 255, and user 2's share enters with the factor 1
        other = shamir.element_bytes(share ^ change)
        state, _ = attempt(case, UNMASK, network, SERVER, [*mail[:2], replace(mail[2], key_shares=other)])
        assert integers_of(state.aggregate) == case.plain_sum((0, 1, 2, 3))


@pytest.mark.requirement("SAG-28")
@pytest.mark.parametrize("lie", ["seed", "key"])
def test_a_user_that_shares_another_secret_is_seen(lie: str) -> None:
    case = case_of(TINY)
    network = stage(case, RELAY)
    liar = 4
    if lie == "seed":
        box = network.waiting[SERVER]
        at = next(i for i, m in enumerate(box) if isinstance(m, SeedCommitment) and m.sender == liar)
        box[at] = replace(box[at], commitment=bytes(32))  # type: ignore[call-arg]
    else:
        server = network.states[SERVER]
        pair = replace(server.keys[liar], masking=public_key(b"another one" + bytes(21)))
        network.states[SERVER] = replace(server, keys={**server.keys, liar: pair})
    network.take(TABLE[RELAY], SERVER)
    for row in range(INPUT, UNMASK):
        for party in parties(row, 5):
            if lie == "seed" or party != liar:
                network.take(TABLE[row], party)
    with pytest.raises(BadShare) as caught:
        network.take(TABLE[UNMASK], SERVER)
    assert caught.value.blamed == set(range(5))


@pytest.mark.requirement("SAG-16", "ERR-01")
def test_inputs_and_answers_of_users_that_are_out_are_refused() -> None:
    case = case_of(TINY)
    network = stage(case, ASK, absent=(4,), since=SHARE)
    mail = network.mail(TABLE[ASK], SERVER)
    error = refused(case, ASK, network, SERVER, [*mail, replace(mail[0], sender=4)], InconsistentSets)
    assert error.blamed == {4}
    network = stage(case, UNMASK, absent=(4,), since=INPUT)
    mail = network.mail(TABLE[UNMASK], SERVER)
    error = refused(case, UNMASK, network, SERVER, [*mail, replace(mail[0], sender=4)], InconsistentSets)
    assert error.blamed == {4}


@pytest.mark.requirement("SAG-76", "ERR-01")
@given(st.permutations((0, 2, 3, 4)))
def test_an_input_names_its_neighbours_in_ascending_order(neighbours: list[int]) -> None:
    case = case_of(TINY)
    network = stage(case, ASK)
    mail: list[Any] = list(network.mail(TABLE[ASK], SERVER))
    inbox = [mail[0], replace(mail[1], neighbours=tuple(neighbours)), *mail[2:]]
    if neighbours == sorted(neighbours):
        attempt(case, ASK, network, SERVER, inbox)
    else:
        assert refused(case, ASK, network, SERVER, inbox, InconsistentSets).blamed == {1}


@pytest.mark.requirement("SAG-77", "ERR-01")
@given(st.permutations((0, 1, 2)), st.permutations((3, 4)))
def test_an_answer_names_its_users_in_ascending_order(survivors: list[int], dropped: list[int]) -> None:
    """The shares stand in the order of the users, so nothing else is wrong with such an answer."""
    case = case_of(replace(TINY, D=2))
    network = stage(case, UNMASK, absent=(3, 4), since=INPUT)
    mail: list[Any] = list(network.mail(TABLE[UNMASK], SERVER))
    seeds, keys = mail[1].seed_shares, mail[1].key_shares
    changed = {
        "survivors": tuple(survivors),
        "seed_shares": b"".join(seeds[66 * user : 66 * user + 66] for user in survivors),
        "dropped": tuple(dropped),
        "key_shares": b"".join(keys[66 * (user - 3) : 66 * (user - 3) + 66] for user in dropped),
    }
    inbox = [mail[0], replace(mail[1], **changed), *mail[2:]]
    if survivors == [0, 1, 2] and dropped == [3, 4]:
        attempt(case, UNMASK, network, SERVER, inbox)
    else:
        assert refused(case, UNMASK, network, SERVER, inbox, Malformed).blamed == {1}


@pytest.mark.requirement("SAG-37", "ERR-01")
@pytest.mark.parametrize("neighbours", [(), (0, 2, 3), (0, 2, 3, 4, 4), (0, 3, 2, 4), (0, 1, 2, 3, 4), (0, 2, 3, 9)])
def test_an_input_over_other_neighbours_is_refused(neighbours: tuple[int, ...]) -> None:
    case = case_of(TINY)
    network = stage(case, ASK)
    mail: list[Any] = list(network.mail(TABLE[ASK], SERVER))
    assert mail[1].neighbours == (0, 2, 3, 4)
    inbox = [mail[0], replace(mail[1], neighbours=neighbours), *mail[2:]]
    assert refused(case, ASK, network, SERVER, inbox, InconsistentSets).blamed == {1}


@pytest.mark.requirement("SAG-37", "SAG-29")
def test_a_share_that_is_lost_on_its_way_gives_no_wrong_sum() -> None:
    case = case_of(TINY)
    network = stage(case, INPUT)
    network.waiting[0] = [message for message in network.waiting[0] if message.sender != 3]
    for user in range(5):
        network.take(TABLE[INPUT], user)
    mail = network.mail(TABLE[ASK], SERVER)
    with pytest.raises(InconsistentSets) as caught:
        attempt(case, ASK, network, SERVER, mail)
    assert caught.value.blamed == {0}
    network.waiting[SERVER] = [message for message in mail if message.sender != 0]
    for row in (ASK, ANSWER, UNMASK):
        for party in [SERVER] if row != ANSWER else (1, 2, 3, 4):
            network.take(TABLE[row], party)
    assert integers_of(network.states[SERVER].aggregate) == case.plain_sum((1, 2, 3, 4))


@pytest.mark.requirement("SAG-33", "MOD-06", "MOD-07", "ERR-01")
@pytest.mark.parametrize("values", [[], [1, 2], [1, 2, 3, 4], [1, 2, 8]])
def test_a_masked_input_that_does_not_fit_is_its_senders_fault(values: list[int]) -> None:
    case = case_of(TINY)
    network = stage(case, ASK)
    mail: list[Any] = list(network.mail(TABLE[ASK], SERVER))
    inbox = [mail[0], replace(mail[1], masked=vector(values)), *mail[2:]]
    assert refused(case, ASK, network, SERVER, inbox, Malformed).blamed == {1}


@pytest.mark.requirement("SAG-15", "SAG-25", "SAG-24")
def test_what_is_not_needed_any_more_is_forgotten() -> None:
    case = case_of(TINY)
    states = {row: stage(case, row).states[0] for row in range(1, 8, 2)}
    assert states[RELAY].private is None
    assert (states[ASK].mask_keys, states[ASK].sealing_secrets, states[ASK].self_keys) == ({}, {}, {})
    assert states[UNMASK].held == {}
    for state in states.values():
        secrets = [case.randomness[0][name] for name in ("sealing_key", "masking_key", "self_seed")]
        assert not any(repr(secret)[2:-1] in repr(state) for secret in secrets)


# ---------------------------------------------------------------------------------------------------------- the text


def section(number: int) -> str:
    """A section of the page."""
    page = (resources.root("spec") / "secagg.md").read_text(encoding="utf-8")
    return page.split(f"\n## {number}. ")[1].split("\n## ")[0]


@pytest.mark.requirement("MSG-01", "SAG-05", "SAG-10", "SAG-17", "SAG-24")
@settings(parent=fewer(2))
@given(cases(), st.data())
def test_the_costs_of_the_text_are_those_of_a_round(case: Case, data: st.DataObject) -> None:
    p = case.parameters
    rows = re.findall(r"^\| (user|server) \| (\w+) \| `([^`]+)` \| `([^`]+)` \|$", section(7), re.MULTILINE)
    assert len(rows) == 7
    table = {(role, phase): (messages, size) for role, phase, messages, size in rows}
    late = data.draw(st.sets(st.integers(0, p.N - 1), max_size=p.D))
    fates = ["masked_input" if user in late else "stays" for user in range(p.N)]
    if succeeds(case, fates) is None:
        return
    result = case.run(fates)
    names = {"N": p.N, "d": p.d, "k": p.k, "H": 30, "S": len(result.contributors), "V": len(late)}
    for event in result.transcript:
        messages, size = table.get((event.step.role.value, event.step.phase), ("0", "0"))
        assert re.fullmatch(r"[A-Za-z0-9 +*()-]+", messages + size)
        assert len(event.sent) == eval(messages, {"__builtins__": {}}, names)
        assert sizes(event.sent) == eval(size, {"__builtins__": {}}, names)


def test_the_tables_of_the_text_are_those_of_the_reference() -> None:
    phases = re.findall(r"^\| `(\w+)` \| (user|server) \|([^|]*)\|([^|]*)\|$", section(4), re.MULTILINE)
    stated = [(phase, role, *(re.findall(r"`(\w+)`", cell) for cell in cells)) for phase, role, *cells in phases]
    assert stated == [
        (step.phase, step.role.value, [k.__name__ for k in step.receives], [k.__name__ for k in step.sends])
        for step in TABLE
    ]
    messages = re.findall(r"^\| `(\w+)` \| (\d+) \| (.*) \|$", section(4), re.MULTILINE)
    kinds = [kind for kind in vars(secagg).values() if isinstance(kind, type) and issubclass(kind, Message)]
    assert [(name, int(number)) for name, number, _ in messages] == [(kind.__name__, kind.TYPE) for kind in kinds]
    for (_, _, cell), kind in zip(messages, kinds, strict=True):
        types = re.findall(r"`(\w+)` \(`(\w+)`\)", cell)
        assert [name for name, _ in types] == [entry.name for entry in fields(kind)][4:]
    drawn = re.findall(r"^\| `(\w+)` \| each user, in `(\w+)` \|", section(8), re.MULTILINE)
    assert drawn == [(name, step.phase) for step in TABLE for name in step.randomness]


@pytest.mark.requirement("SAG-01", "SAG-02")
def test_the_table_of_parameters_is_that_of_the_presets() -> None:
    rows = [line.strip("| ").split(" | ") for line in section(2).splitlines() if line.startswith("| ")]
    assert rows[0][2:] == list(PRESETS)
    for column, preset in enumerate(PRESETS.values(), start=2):
        assert {row[0]: int(row[column]) for row in rows[2:]} == {
            name: getattr(preset, name) for name in ("R", "N", "D", "T", "t", "k", "d")
        }


@pytest.mark.requirement("ERR-02", "KEY-03")
@pytest.mark.parametrize("name", ["sealing_key", "masking_key"])
def test_a_sampled_key_is_named_when_its_length_is_wrong(name: str) -> None:
    case = case_of(TINY)
    sampled = {**case.randomness, 0: {**case.randomness[0], name: bytes(31)}}
    with pytest.raises(LengthMismatch, match=rf"^len\({name}\) = 31: must be 32 bytes$"):
        replace(case, randomness=sampled).run(["stays"] * TINY.N)
