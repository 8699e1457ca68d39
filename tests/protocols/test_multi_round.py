"""Multi-RoundSecAgg: rounds among chosen users over whole batches, and servers that ask for anything else."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.participation_classes import participation_classes
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import agree
from secagg_spec.crypto.prg import expand
from secagg_spec.crypto.sealing import SealedLinks, sealed_links
from secagg_spec.errors import (
    DecryptionFailed,
    DuplicateUser,
    InconsistentSets,
    Malformed,
    ParameterError,
    Replay,
    TooFewSurvivors,
    UnknownUser,
    WrongPhase,
)
from secagg_spec.protocols.heterosag import plan as heterosag_plan
from secagg_spec.protocols.lightsecagg import active as lightsecagg_active
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.lightsecagg.round import SurvivingSet
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.multi_round.round import Numbers, Parameters, check_choice, check_survivors, round_session
from secagg_spec.protocols.multi_round.runs import Outcome, Turn, run_session
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Network
from secagg_spec.selection import batches
from tests.protocols.chosen import (
    ADDS,
    BOTH,
    LIGHTSECAGG,
    SECAGG,
    SELECTION,
    Case,
    announced,
    case_of,
    cases,
    choices,
    fates_of,
    modulus,
    sessions,
    succeeds,
    whole,
)
from tests.quick import part, some
from tests.strategies import fewer, integers_of, pseudorandom, snapshot, vector

NAMES = [p.base.name for p in BOTH]
both = pytest.mark.parametrize("p", BOTH, ids=NAMES)


def request_of(network: Network, user: int) -> Any:
    """What the server asks a user for."""
    [message] = network.waiting[user]
    return message


def with_survivors(message: Any, survivors: Collection[int], K: int = 8) -> Any:
    """A request for other survivors; whoever else is in the round has dropped out."""
    named = tuple(sorted(survivors))
    if isinstance(message, SurvivingSet):
        return replace(message, users=named)
    return replace(message, survivors=named, dropped=tuple(user for user in range(K) if user not in survivors))


def refusal(step: Any, state: Any, inbox: Sequence[Any], error: type[Exception]) -> Any:
    """The refusal of an inbox, which leaves the state as it was."""
    before = snapshot([state, list(inbox)])
    with pytest.raises(error) as caught:
        step.take(state, tuple(inbox), randomness={})
    assert type(caught.value) is error
    assert snapshot([state, list(inbox)]) == before
    return caught.value


# ------------------------------------------------------------------------------------------------------ parameters


@pytest.mark.requirement("MRA-17")
def test_numbers_are_taken_exactly_when_two_honest_users_are_left_of_a_batch() -> None:
    for N, K, T, c in product((6, 12), (6, 12), (1, 2, 3, 4, 6), range(-1, 7)):
        if K <= N and N % T == K % T == 0 and 1 <= c <= T - 2:
            assert Numbers(N, K, T, c).c == c
        else:
            with pytest.raises(ParameterError):
                Numbers(N, K, T, c)


@pytest.mark.requirement("MRA-17")
def test_a_session_is_taken_exactly_when_its_round_is_of_its_users() -> None:
    for K, T, N, c in product((6, 8), (2, 3, 4), (5, 6, 8), (1, 2)):
        fits = K % T == 0 and K == N and c + 2 <= T
        if K % T:
            continue
        selection = batches.Parameters(24, K, T)
        for round in (secagg.Parameters(97, N, 1, c, 4, N - 1, 2), lightsecagg.Parameters(97, N, 1, 3, c, 2)):
            if fits:
                assert Parameters(selection, round).numbers == Numbers(24, K, T, c)
            else:
                with pytest.raises(ParameterError):
                    Parameters(selection, round)


@pytest.mark.requirement("MRA-17")
@pytest.mark.parametrize(
    ("round", "text"),
    [
        (secagg.Parameters(97, 8, 1, 1, 3, 4, 2), "round.k = 4: must be K - 1 = 7, of the complete graph"),
        (secagg.Parameters(97, 8, 1, 3, 5, 7, 2), r"T = 4: must be at least c \+ 2 = 5"),
        (secagg.Parameters(97, 9, 1, 1, 3, 8, 2), "round.N = 9: must be K = 8"),
        (lightsecagg_active.PRESETS["tiny"], "round = 'Parameters of .*lightsecagg\\.active': must be "),
        (heterosag_plan.PRESETS["tiny"], "round = 'Parameters of .*heterosag\\.plan': must be "),
        (None, "round = 'NoneType of builtins': must be parameters of SecAgg or of LightSecAgg"),
    ],
    ids=range(6),
)
def test_a_round_that_does_not_fit_is_named(round: Any, text: str) -> None:
    with pytest.raises(ParameterError, match=text):
        Parameters(SELECTION, round)


# ---------------------------------------------------------------------------------------------------- the session id


def hashed(*parts: bytes) -> bytes:
    """The first 16 bytes of SHA-256 of fields, each behind its length."""
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "little") + part for part in parts)).digest()[:16]


@pytest.mark.requirement("MRA-19")
@given(sessions(), st.binary(min_size=16, max_size=16), st.sampled_from((0, 1, 2**32 - 1)), st.data())
def test_the_session_id_of_a_round_is_that_of_the_text(p: Parameters, id: bytes, number: int, data: Any) -> None:
    chosen = data.draw(choices(p.selection))
    numbers = [value.to_bytes(4, "little") for value in (number, p.selection.N, p.selection.K, p.selection.T, *chosen)]
    want = hashed(b"secagg-spec", b"multi-round", id, *numbers)
    assert round_session(p.selection, id, number, chosen) == want
    server = multi_round.server_start(p, id, number, chosen)
    round = p.round
    if isinstance(round, secagg.Parameters):
        right: Any = secagg.server_start(secagg.Round(round, round.graph(), want, number))
    else:
        right = lightsecagg.server_start(round, want, number)
    assert snapshot(server.base) == snapshot(right)


@pytest.mark.requirement("MRA-19")
@both
def test_every_message_of_a_round_has_its_session_id(p: Parameters) -> None:
    case = case_of(p)
    network = case.stage(len(p.base.table), number=7)
    id = round_session(p.selection, bytes(16), 7, case.chosen)
    sent = [message for event in network.transcript for message in event.sent]
    assert {(message.session, message.round) for message in sent} == {(id, 7)}


@pytest.mark.requirement("MRA-19")
@pytest.mark.parametrize(
    "change",
    [{"session": bytes(15) + b"x"}, {"number": 4}, {"chosen": (0, 1, 2, 3, 8, 9, 10, 11)}, {"T": 8}, {"N": 16}],
)
def test_whatever_a_round_is_made_of_is_in_its_session_id(change: dict[str, Any]) -> None:
    first: dict[str, Any] = {"session": bytes(16), "number": 3, "chosen": tuple(range(8)), "N": 24, "K": 8, "T": 4}
    ids = set[bytes]()
    for values in (first, {**first, **change}):
        p = batches.Parameters(*(values[name] for name in "NKT"))
        ids.add(round_session(p, values["session"], values["number"], values["chosen"]))
    assert len(ids) == 2


@pytest.mark.requirement("MRA-19")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"session": bytes(15)}, r"len\(session\)"),
        ({"session": "0" * 16}, "session"),
        ({"number": -1}, "number"),
        ({"number": 2**32}, "number"),
        ({"chosen": (0, 1, 2, 3)}, "chosen"),
        ({"chosen": ()}, "chosen"),
        ({"chosen": (0, 1, 2, 3, 4, 5, 6, 12)}, "chosen"),
        ({"chosen": (-1, 0, 1, 2, 3, 4, 5, 6)}, "chosen"),
        ({"chosen": (0, 1, 2, 3, 4, 5, 7, 6)}, "chosen"),
        ({"chosen": (0, 1, 2, 3, 4, 5, 6, 8)}, "chosen"),
        ({"chosen": (0, 1, 2, 3, 4, 5, 6, 6)}, "chosen"),
    ],
    ids=str,
)
def test_a_session_id_of_something_else_is_refused(change: dict[str, Any], name: str) -> None:
    values: dict[str, Any] = {"session": bytes(16), "number": 0, "chosen": tuple(range(8)), **change}
    with pytest.raises(ParameterError, match=f"^{name} = "):
        round_session(SELECTION, **values)
    if name == "chosen":
        with pytest.raises(ParameterError, match=r"^chosen = "):
            multi_round.server_start(SECAGG, bytes(16), 0, change["chosen"])


@pytest.mark.requirement("MRA-19")
def test_a_share_for_one_choice_does_not_open_in_another() -> None:
    """The server tells user 0 another choice of the same users' batch, and moves its messages to the round."""
    case = case_of(LIGHTSECAGG, 1, tuple(range(8)))
    other = (0, 1, 2, 3, 8, 9, 10, 11)
    links = {chosen: sealed_for(LIGHTSECAGG, chosen) for chosen in (case.chosen, other)}
    network = multi_round.open_round(
        LIGHTSECAGG, case.chosen, case.updates, channel=links[case.chosen], session=bytes(16), round=0
    )
    network.states[0] = multi_round.user_start(LIGHTSECAGG, bytes(16), 0, 0, other, case.updates[0], links[other])
    for user in range(8):
        case.take(network, 0, user)
    moved = [replace(m, session=network.states[1].round.id) for m in network.waiting[SERVER]]
    with pytest.raises(WrongPhase):
        case.take(network, 1, SERVER)
    network.waiting[SERVER] = moved
    case.take(network, 1, SERVER)
    with pytest.raises(DecryptionFailed) as caught:
        case.take(network, 2, 1)
    assert caught.value.blamed == {0, SERVER}
    with pytest.raises(WrongPhase):
        case.take(network, 2, 0)


def sealed_for(p: Parameters, chosen: tuple[int, ...]) -> SealedLinks:
    """The sealed channels of the users of a round, who have the same key in each."""
    assert isinstance(p.round, lightsecagg.Parameters)
    context = lightsecagg.sealing_context(p.round, round_session(p.selection, bytes(16), 0, chosen), 0)
    return sealed_links(context, {place: bytes([user + 1]) * 32 for place, user in enumerate(chosen)})


@pytest.mark.requirement("MRA-19", "MRA-23")
def test_a_round_runs_over_sealed_channels() -> None:
    case = case_of(LIGHTSECAGG)
    result = multi_round.run_round(
        LIGHTSECAGG,
        case.chosen,
        case.updates,
        randomness=case.randomness,
        dropouts={"upload": [2]},
        channel=sealed_for(LIGHTSECAGG, case.chosen),
        session=bytes(16),
        round=0,
    )
    assert integers_of(result.aggregate) == case.plain_sum(range(4, 8))
    with pytest.raises(ParameterError, match="channel"):
        multi_round.open_round(
            SECAGG, case.chosen, case.updates, channel=sealed_for(LIGHTSECAGG, case.chosen), session=bytes(16), round=0
        )


# ------------------------------------------------------------------------------------------------------- the choice


def joins(p: batches.Parameters, user: int, chosen: Sequence[int]) -> bool:
    """Whether a user takes a choice; a refusal is the server's fault."""
    try:
        return check_choice(p, user, chosen) == tuple(chosen)
    except InconsistentSets as error:
        return error.blamed != {SERVER}


@pytest.mark.requirement("MRA-20")
@pytest.mark.parametrize(("N", "K", "T"), [(6, 4, 2), (6, 3, 3), (6, 6, 3), (4, 2, 1), (8, 4, 2)])
def test_a_user_joins_exactly_the_sets_of_the_family_that_have_it(N: int, K: int, T: int) -> None:
    p = batches.Parameters(N, K, T)
    for size in range(N + 1):
        for chosen in combinations(range(N), size):
            right = size == K and whole(p, chosen) == set(chosen)
            for user in range(N):
                assert joins(p, user, chosen) == (right and user in chosen)


@pytest.mark.requirement("MRA-20")
def test_a_user_joins_choices_in_one_order_only() -> None:
    p = batches.Parameters(6, 4, 2)
    for chosen in permutations((0, 1, 4, 5)):
        assert joins(p, 4, chosen) == (chosen == (0, 1, 4, 5))
    for chosen in ((0, 0, 1, 1), (0, 1, 1, 4, 5), (-2, -1, 0, 1), (4, 5, 6, 7), (0, 1, 2**32, 2**32 + 1), ()):
        assert not joins(p, 0, chosen)


@pytest.mark.requirement("MRA-20", "ERR-01")
@both
def test_a_user_that_refuses_a_choice_is_as_it_was(p: Parameters) -> None:
    case = case_of(p, 1, tuple(range(8)))
    state = case.stage(len(p.base.table)).states[0]
    before = snapshot(state)
    for chosen in (tuple(range(4, 12)), tuple(range(4)), (*range(1, 8), 0), (*range(7), 8), (0, 1)):
        with pytest.raises(InconsistentSets) as caught:
            multi_round.user_start(p, bytes(16), 0, 0, chosen, case.updates[0])
        assert caught.value.blamed == {SERVER}
        with pytest.raises(InconsistentSets):
            multi_round.user_again(state, 1, chosen, case.updates[0])
    assert snapshot(state) == before
    assert multi_round.user_again(state, 1, (*range(4), *range(8, 12)), case.updates[0]).phase == p.base.phases[0]


@pytest.mark.requirement("MRA-20")
@given(sessions(), st.data())
def test_users_have_the_numbers_of_their_order_in_a_round(p: Parameters, data: st.DataObject) -> None:
    chosen = data.draw(choices(p.selection))
    user = data.draw(st.sampled_from(chosen))
    state = multi_round.user_start(p, bytes(16), 0, user, chosen, vector([1] * p.round.d))
    assert (state.user, state.base.user) == (user, sum(other < user for other in chosen))
    assert state.base.user // p.selection.T == sorted({u // p.selection.T for u in chosen}).index(user // p.selection.T)


# ---------------------------------------------------------------------------------------------------- the survivors


def union(p: batches.Parameters, survivors: Sequence[int]) -> bool:
    """Whether a user takes survivors; a refusal is the server's fault."""
    try:
        check_survivors(p, survivors)
    except InconsistentSets as error:
        return error.blamed != {SERVER}
    return True


@pytest.mark.requirement("MRA-21")
@pytest.mark.parametrize(("K", "T"), [(6, 3), (6, 2), (8, 4), (4, 4), (3, 1)])
def test_survivors_are_taken_exactly_when_they_are_whole_batches(K: int, T: int) -> None:
    p = batches.Parameters(2 * K, K, T)
    for size in range(K + 1):
        for survivors in combinations(range(K), size):
            assert union(p, survivors) == (whole(p, survivors) == set(survivors))
    for wrong in ((0,) * T, (*range(T), 0), tuple(range(K, K + T)), tuple(range(-T, 0)), (2**32 + 1,)):
        assert union(p, wrong) == (T == 1 and wrong == (0,))


@pytest.mark.requirement("MRA-21", "ERR-01")
@both
def test_a_user_releases_nothing_for_survivors_that_are_no_batches(p: Parameters) -> None:
    """For each set of survivors: refused, but for the batches of the user, and then the right request is answered."""
    network = case_of(p).stage(ADDS[p.base.name] + 1)
    step = network.table[ADDS[p.base.name] + 1]
    for user in (0, 5):
        state, request = network.states[user], request_of(network, user)
        for survivors in some(7, [set(c) for size in range(9) for c in combinations(range(8), size)]):
            asked = with_survivors(request, survivors)
            if whole(p.selection, survivors) != survivors:
                assert refusal(step, state, [asked], InconsistentSets).blamed == {SERVER}
            elif user in survivors:
                after, [answer] = step.take(state, [asked], randomness={})
                assert (after.phase, answer.sender) == ("done", user)
        step.take(state, [request], randomness={})


@pytest.mark.requirement("MRA-21")
@pytest.mark.parametrize("names", [(0, 0, 1, 2, 3), (0, 1, 2, 3, 8), (0, 1, 2, 2**32 - 1), (-1, 0, 1, 2)])
@both
def test_survivors_named_wrongly_are_the_servers_fault(p: Parameters, names: tuple[int, ...]) -> None:
    network = case_of(p).stage(ADDS[p.base.name] + 1)
    step, request = network.table[ADDS[p.base.name] + 1], request_of(network, 0)
    field = p.base.named
    assert refusal(step, network.states[0], [replace(request, **{field: names})], InconsistentSets).blamed == {SERVER}


@pytest.mark.requirement("MRA-21", "MRA-23")
@both
def test_what_the_protocol_of_the_round_refuses_is_refused_as_there(p: Parameters) -> None:
    row = ADDS[p.base.name] + 1
    network = case_of(p).stage(row)
    step, request = network.table[row], request_of(network, 0)
    assert refusal(step, network.states[0], [], WrongPhase).blamed == frozenset()
    assert refusal(step, network.states[0], [request, request], Replay).blamed == {SERVER}
    other = replace(request, session=bytes(16))
    assert refusal(step, network.states[0], [other], WrongPhase).blamed == {SERVER}
    assert refusal(step, network.states[0], [replace(request, receiver=1)], Malformed).blamed == {SERVER}
    assert refusal(step, network.states[0], [replace(request, sender=1)], InconsistentSets).blamed == {1}
    nobody = InconsistentSets if isinstance(request, UnmaskRequest) else TooFewSurvivors
    refusal(step, network.states[0], [with_survivors(request, ())], nobody)
    done, _ = step.take(network.states[0], [request], randomness={})
    for asked in (request, with_survivors(request, (0, 1))):
        refusal(step, done, [asked], Replay)
        refusal(step, case_of(p).open().states[0], [asked], WrongPhase)
    with pytest.raises(ParameterError):
        step.take(network.states[0], [request], randomness={"mask": 1})
    if isinstance(request, UnmaskRequest):
        both_ways = replace(request, dropped=(4, 5, 6, 7))
        assert refusal(step, network.states[0], [both_ways], InconsistentSets).blamed == {SERVER}


# ------------------------------------------------------------------------------------------- a server that lies


@pytest.mark.requirement("MRA-21")
@both
def test_a_server_that_asks_for_a_batch_and_then_for_less_of_it_gets_nothing(p: Parameters) -> None:
    """Models do not change. In rounds of the protocol alone all answer, and the difference is the model of user 3."""
    case, row = case_of(p, 1, tuple(range(8))), ADDS[p.base.name]
    sums = [plain_round(case, survivors) for survivors in ((0, 1, 2, 3), (0, 1, 2))]
    assert [(a - b) % 97 for a, b in zip(*sums, strict=True)] == integers_of(case.updates[3])
    first = case.stage(row + 1, absent=range(4, 8), since=row - 1)
    for user in range(4):
        case.take(first, row + 1, user)
    case.take(first, row + 2, SERVER)
    assert integers_of(first.states[SERVER].aggregate) == case.plain_sum(range(4))
    second = case.stage(row + 1, number=1)
    for user in range(8):
        request = with_survivors(request_of(second, user), (0, 1, 2))
        error = refusal(second.table[row + 1], second.states[user], [request], InconsistentSets)
        assert error.blamed == {SERVER}


def plain_round(case: Case, survivors: Collection[int]) -> list[int]:
    """The sum of a round of the protocol alone, without any batches, in which only some users send an input."""
    p = case.parameters
    run: Any = secagg.run_round if isinstance(p.round, secagg.Parameters) else lightsecagg.run_round
    dropouts = {p.base.adds: [user for user in range(8) if user not in survivors]}
    where = {"session": bytes(16), "round": 0}
    result = run(p.round, case.updates, randomness=case.randomness, dropouts=dropouts, **where)
    total: list[int] = integers_of(result.aggregate)
    return total


# ---------------------------------------------------------------------------------------------------- whole rounds


def judge(case: Case, fates: Sequence[str]) -> bool:
    """Whether a round succeeded; either way it is as the text says, and its sum is exact."""
    survivors = succeeds(case.parameters, fates)
    if survivors is None:
        with pytest.raises(TooFewSurvivors) as caught:
            case.run(fates)
        assert not caught.value.blamed
        return False
    result = case.run(fates)
    assert result.contributors == tuple(case.chosen[user] for user in survivors)
    assert integers_of(result.aggregate) == case.plain_sum(survivors)
    return True


@pytest.mark.requirement("MRA-18", "MRA-23")
@fewer(2)
@given(cases(), st.data())
def test_a_round_succeeds_exactly_when_the_text_says_so(case: Case, data: st.DataObject) -> None:
    judge(case, data.draw(fates_of(case.parameters)))


@pytest.mark.requirement("MRA-18", "MRA-23")
@both
def test_every_set_of_users_that_drops_out_before_its_input(p: Parameters) -> None:
    """Two batches of four: there is a sum unless both lack a user, also where the protocol alone would have one."""
    left_out = [set(c) for size in range(9) for c in combinations(range(8), size)]
    fates = [[p.base.adds if user in those else "stays" for user in range(8)] for those in left_out]
    outcomes = [judge(case_of(p), each) for each in some(11, fates)]
    if len(outcomes) == 256:
        assert sum(outcomes) == 2 * 16 - 1


@pytest.mark.requirement("MRA-18", "MRA-23")
@pytest.mark.parametrize(
    ("round", "lost", "survivors"),
    [
        (secagg.Parameters(97, 8, 0, 1, 8, 7, 2), (), tuple(range(8))),
        (secagg.Parameters(97, 8, 0, 1, 8, 7, 2), (1,), None),
        (secagg.Parameters(97, 8, 3, 1, 5, 7, 2), (1,), None),
        (secagg.Parameters(97, 8, 4, 1, 4, 7, 2), (1,), (4, 5, 6, 7)),
        (secagg.Parameters(97, 8, 4, 1, 4, 7, 2), (7,), (0, 1, 2, 3)),
        (lightsecagg.Parameters(97, 8, 3, 5, 1, 2), (1,), None),
        (lightsecagg.Parameters(97, 8, 4, 4, 1, 2), (1,), (4, 5, 6, 7)),
        (lightsecagg.Parameters(97, 8, 4, 4, 1, 2), (1, 7), None),
    ],
    ids=range(8),
)
def test_the_conditions_of_the_protocol_are_for_what_is_left(round: Any, lost: tuple[int, ...], survivors: Any) -> None:
    """Seven inputs come where one is lost; that they are enough for the protocol alone says nothing."""
    case = case_of(Parameters(SELECTION, round))
    fates = [case.parameters.base.adds if user in lost else "stays" for user in range(8)]
    assert succeeds(case.parameters, fates) == survivors
    assert judge(case, fates) == (survivors is not None)


@pytest.mark.requirement("MRA-18")
@given(st.sampled_from(BOTH), st.sets(st.integers(0, 7)), st.randoms(use_true_random=False))
def test_survivors_are_the_users_of_whole_batches_in_whatever_order_inputs_come(p: Any, came: Any, order: Any) -> None:
    assert multi_round.whole_inputs(p.selection, order.sample(sorted(came), len(came))) == tuple(
        sorted(whole(p.selection, came))
    )
    network = case_of(p).stage(ADDS[p.base.name])
    inbox = [message for message in network.mail(network.table[ADDS[p.base.name]], SERVER) if message.sender in came]
    order.shuffle(inbox)
    step = network.table[ADDS[p.base.name]]
    survivors = tuple(sorted(whole(p.selection, came)))
    if not survivors:
        refusal(step, network.states[SERVER], inbox, TooFewSurvivors)
        return
    _, sent = step.take(network.states[SERVER], tuple(inbox), randomness={})
    assert tuple(message.receiver for message in sent) == survivors
    assert {getattr(message, p.base.named) for message in sent} == {survivors}


@pytest.mark.requirement("MRA-18")
@pytest.mark.parametrize(
    ("arrived", "error"), [((0, 1, 8), UnknownUser), ((-1,), UnknownUser), ((1, 1), DuplicateUser)]
)
def test_inputs_of_nobody_and_of_one_twice_are_refused(arrived: tuple[int, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        multi_round.whole_inputs(SELECTION, arrived)


@pytest.mark.requirement("MRA-18", "ERR-01")
@both
def test_an_input_that_is_wrong_is_refused_though_its_batch_is_left_out(p: Parameters) -> None:
    """User 1 is missing. What user 0 sends is from another round, is for another, came twice, or is from elsewhere."""
    row = ADDS[p.base.name]
    network = case_of(p).stage(row, absent=(1,), since=row - 1)
    state, step = network.states[SERVER], network.table[row]
    first, *rest = network.mail(step, SERVER)
    assert first.sender == 0
    for change, error in (
        ({"session": bytes(16)}, WrongPhase),
        ({"receiver": 3}, Malformed),
        ({"round": 1}, WrongPhase),
    ):
        assert refusal(step, state, [replace(first, **change), *rest], error).blamed == {0}
    assert refusal(step, state, [first, first, *rest], Replay).blamed == {0}
    assert refusal(step, state, [replace(first, sender=8), *rest], InconsistentSets).blamed == {8}
    other = case_of(p).open().states[SERVER]
    refusal(step, other, [first, *rest], WrongPhase)
    after, _ = step.take(state, (first, *rest), randomness={})
    refusal(step, after, [first, *rest], Replay)


@pytest.mark.requirement("MRA-18", "MRA-23")
@both
def test_who_is_left_out_is_not_asked_and_may_not_answer(p: Parameters) -> None:
    row = ADDS[p.base.name]
    case = case_of(p)
    network = case.stage(row + 1, absent=(1,), since=row - 1)
    assert [len(network.mail(network.table[row + 1], user)) for user in range(8)] == [0] * 4 + [1] * 4
    for user in range(4, 8):
        case.take(network, row + 1, user)
    inbox = network.mail(network.table[row + 2], SERVER)
    late = replace(inbox[0], sender=0)
    error = refusal(network.table[row + 2], network.states[SERVER], [*inbox, late], InconsistentSets)
    assert error.blamed == {0}
    case.take(network, row + 2, SERVER)
    assert network.states[SERVER].survivors == case.chosen[4:]


# ------------------------------------------------------------------------------- what is told of who was left out


@pytest.mark.requirement("MRA-18")
def test_the_self_seed_of_who_was_left_out_stays_hidden() -> None:
    """User 1 is missing, and the input of user 0 came. Its pairwise masks are taken off, and its own mask stays."""
    case = case_of(SECAGG)
    network = case.stage(8, absent=(1,), since=4)
    answers = [m for event in network.transcript for m in event.sent if isinstance(m, UnmaskShares)]
    assert [(m.survivors, m.dropped) for m in answers] == [((4, 5, 6, 7), (0, 1, 2, 3))] * 4
    shares = [int.from_bytes(m.key_shares[:66], "little") for m in answers]
    key = shamir.reconstruct(3, [m.sender for m in answers], shares)
    assert key == case.randomness[0]["masking_key"]
    assert network.states[0].base.held[0].seed
    assert all(not network.states[user].base.held for user in range(4, 8))
    [came] = [
        m for event in network.transcript for m in event.sent if isinstance(m, secagg.MaskedInput) and m.sender == 0
    ]
    server = network.states[SERVER].base
    own = masks.self_key(server.round.context(), case.randomness[0]["self_seed"], 0)
    ring = Ring(97)
    left = came.masked
    for peer in range(1, 8):
        pair = {user: server.keys[user].masking for user in (0, peer)}
        shared = masks.pairwise_key(server.round.context(), agree(key, pair[peer]), pair)
        left = ring.subtract(left, expand(shared, ring, 2))
    assert integers_of(left) != integers_of(case.updates[0])
    assert integers_of(ring.subtract(left, expand(own, ring, 2))) == integers_of(case.updates[0])


@pytest.mark.requirement("MRA-18", "MRA-21")
def test_no_user_gives_both_secrets_of_one_who_was_left_out() -> None:
    """A request that names a batch as survivors and as dropped is refused, and so is a second request."""
    network = case_of(SECAGG).stage(6, absent=(1,), since=4)
    step = network.table[6]
    state, request = network.states[4], request_of(network, 4)
    both_ways = replace(request, survivors=tuple(range(8)), dropped=(0, 1, 2, 3))
    assert refusal(step, state, [both_ways], InconsistentSets).blamed == {SERVER}
    done, _ = step.take(state, (request,), randomness={})
    refusal(step, done, [replace(request, survivors=tuple(range(8)), dropped=())], Replay)


def answer_to(network: Network, user: int, survivors: Collection[int], K: int) -> UnmaskShares:
    """What a user answers that is asked for some survivors, and for nothing before."""
    asked = with_survivors(request_of(network, user), survivors, K)
    _, [answer] = network.table[6].take(network.states[user], (asked,), randomness={})
    assert isinstance(answer, UnmaskShares)
    return answer


def shares_of(user: int, answers: Sequence[UnmaskShares]) -> dict[str, dict[int, int]]:
    """The shares of the two secrets of a user in some answers, by who gives them."""
    found: dict[str, dict[int, int]] = {"self_seed": {}, "masking_key": {}}
    for answer in answers:
        name, data, users = (
            ("self_seed", answer.seed_shares, answer.survivors)
            if user in answer.survivors
            else ("masking_key", answer.key_shares, answer.dropped)
        )
        at = 66 * users.index(user)
        found[name][answer.sender] = int.from_bytes(data[at : at + 66], "little")
    return found


@pytest.mark.requirement("MRA-21")
@pytest.mark.parametrize(("t", "both_secrets"), [(6, True), (7, False)])
def test_two_requests_in_one_round_tell_both_secrets_of_a_user_exactly_with_few_shares(
    t: int, both_secrets: bool
) -> None:
    """Some users are asked for two batches and the others for three; user 0 colludes, and answers both."""
    p = Parameters(batches.Parameters(12, 12, 4), secagg.Parameters(R=97, N=12, D=2, T=1, t=t, k=11, d=2))
    case = case_of(p)
    network = case.stage(6)
    for split in range(1, 9):
        asked = [(0, 8), (0, 12), *((user, 8 if user < split else 12) for user in range(1, 12))]
        answers = [answer_to(network, user, range(survivors), 12) for user, survivors in asked]
        known = {name: shares for name, shares in shares_of(8, answers).items() if len(shares) >= t}
        assert len(known) == 1 + (both_secrets and split in (6, 7))
        for name, shares in known.items():
            assert shamir.reconstruct(t, list(shares), list(shares.values())) == case.randomness[8][name]


# ------------------------------------------------------------------------------------------------------ many rounds


@pytest.mark.requirement("MRA-22")
@both
def test_a_party_goes_on_with_the_same_numbers_to_later_rounds_only(p: Parameters) -> None:
    case = case_of(p)
    network = case.stage(3, number=5)
    user, server = network.states[0], network.states[SERVER]
    for number in (-1, 0, 4, 5):
        with pytest.raises(ParameterError, match=rf"number = {number}: must be an integer in \[6, "):
            multi_round.user_again(user, number, case.chosen, case.updates[0])
        with pytest.raises(ParameterError, match=rf"number = {number}: must be an integer in \[6, "):
            multi_round.server_again(server, number, case.chosen)
    for number in (6, 7, 2**32 - 1):
        later: list[Any] = [
            multi_round.user_again(user, number, case.chosen, case.updates[1]),
            multi_round.server_again(server, number, case.chosen),
        ]
        for state in later:
            assert state.round.parameters.numbers == Numbers(12, 8, 4, 1)
            assert (state.round.session, state.round.number, state.phase) == (bytes(16), number, p.base.phases[0])
            assert state.round.id == round_session(p.selection, bytes(16), number, case.chosen)
        assert integers_of(later[0].base.update) == integers_of(case.updates[1])
        assert later[0].user == user.user
    with pytest.raises(ParameterError):
        multi_round.user_again(user, 2**32, case.chosen, case.updates[0])


@pytest.mark.requirement("MRA-22")
@both
def test_a_refused_choice_is_no_round(p: Parameters) -> None:
    """What counts is the last round that a user was in."""
    case = case_of(p)
    state = case.open(5).states[0]
    with pytest.raises(InconsistentSets):
        multi_round.user_again(state, 9, (*range(4), *range(8, 12)), case.updates[0])
    again = multi_round.user_again(state, 6, case.chosen, case.updates[0])
    with pytest.raises(ParameterError, match="number"):
        multi_round.user_again(again, 6, case.chosen, case.updates[0])


def failed(p: Parameters, number: int = 5, answers: int = 2) -> Network:
    """A round of all eight users that announces them, and gets too few answers."""
    case = case_of(p)
    row = ADDS[p.base.name] + 1
    network = case.stage(row, number=number)
    for user in range(answers):
        case.take(network, row, user)
    with pytest.raises(TooFewSurvivors):
        case.take(network, row + 1, SERVER)
    return network


@pytest.mark.requirement("MRA-27")
@both
def test_a_round_that_failed_is_in_the_log_with_its_announced_survivors(p: Parameters) -> None:
    """Also when no answer came; a round that ended before survivors were announced has nobody."""
    case = case_of(p)
    for answers in (0, 1, 2):
        server = failed(p, 5, answers).states[SERVER]
        assert (server.aggregate, server.survivors) == (None, case.chosen)
        assert server.log == ((5, case.chosen),)
    for row in range(ADDS[p.base.name] + 1):
        assert case.stage(row, number=5).states[SERVER].log == ((5, ()),)
    done = case.stage(len(p.base.table), absent=(1,), since=ADDS[p.base.name] - 1, number=5).states[SERVER]
    assert done.aggregate is not None
    assert done.log == ((5, case.chosen[4:]),)


@pytest.mark.requirement("MRA-27", "MRA-28")
@both
def test_the_survivors_are_in_the_state_from_which_they_are_announced(p: Parameters) -> None:
    """A server that stores its state before it sends anything has them in its log when it is restored."""
    case = case_of(p)
    row = ADDS[p.base.name]
    network = case.stage(row, number=5)
    step = network.table[row]
    after, requests = step.take(network.states[SERVER], network.mail(step, SERVER), randomness={})
    assert len(requests) == 8
    assert after.log == ((5, case.chosen),)
    assert multi_round.server_again(after, 6, case.chosen).log == ((5, case.chosen), (6, ()))


@pytest.mark.requirement("MRA-28")
@both
def test_a_round_that_failed_counts_in_the_frequencies(p: Parameters) -> None:
    case = case_of(p)
    server = failed(p).states[SERVER]
    once = [int(user in case.chosen) for user in range(12)]
    assert server.frequencies.tolist() == once
    later = multi_round.server_again(server, 7, case.chosen)
    assert later.frequencies.tolist() == once


@pytest.mark.requirement("MRA-28")
@both
def test_a_batch_whose_round_failed_is_not_chosen_again_at_once(p: Parameters) -> None:
    """Of two batches one is in a round, and drops out before it releases anything; then it is the other's turn."""
    round = replace(p.round, N=4, D=1, k=3) if isinstance(p.round, secagg.Parameters) else replace(p.round, N=4, D=1)
    p = Parameters(batches.Parameters(8, 4, 4), round)
    left_out = {p.base.releases: range(8)}
    turns = [Turn(pseudorandom(seed, modulus(p), 8, 2), range(8), left_out if seed < 3 else {}) for seed in range(4)]
    for seed in range(4):
        outcomes = run_session(
            p, turns, strategy="fair", source=SeededSource(b"%d" % seed, "session"), session=bytes(16)
        )
        assert [outcome.aggregate is None for outcome in outcomes] == [True, True, True, False]
        assert all(outcome.survivors == outcome.chosen for outcome in outcomes)
        for first, second in ((0, 1), (2, 3)):
            assert {*outcomes[first].chosen, *outcomes[second].chosen} == set(range(8))


@pytest.mark.requirement("MRA-29")
@both
def test_a_server_that_goes_on_keeps_the_log(p: Parameters) -> None:
    case = case_of(p)
    server = multi_round.server_again(failed(p).states[SERVER], 7, case.chosen)
    assert server.log == ((5, case.chosen), (7, ()))
    again = multi_round.server_again(server, 8, case.chosen)
    assert again.log == ((5, case.chosen), (7, ()), (8, ()))
    assert multi_round.server_start(p, bytes(16), 8, case.chosen, again.past).log == again.log


@pytest.mark.requirement("MRA-20")
@pytest.mark.parametrize(("count", "shown"), [(12, r"\[.*, 11\]"), (13, r"\[.*, 11, …\] of 13 users")])
def test_a_refusal_shows_twelve_users_of_a_choice(count: int, shown: str) -> None:
    with pytest.raises(InconsistentSets, match=f"^the choice {shown} must be 2 whole batches of 4 users, ascending$"):
        check_choice(batches.Parameters(24, 8, 4), 0, range(count))


@pytest.mark.requirement("MRA-29")
def test_survivors_in_a_log_may_be_named_in_any_order() -> None:
    server = multi_round.server_start(SECAGG, bytes(16), 8, tuple(range(8)), ((3, (7, 0, 5)), (4, (2, 1))))
    assert server.log == ((3, (0, 5, 7)), (4, (1, 2)), (8, ()))


@pytest.mark.requirement("MRA-29")
@pytest.mark.parametrize(
    "past",
    [((8, ()),), ((9, ()),), ((3, ()), (3, ())), ((4, ()), (3, ())), ((-1, ()),), ((3, (0, 0)),), ((3, (12,)),), 5],
    ids=str,
)
def test_a_log_that_cannot_be_of_the_rounds_before_is_refused(past: Any) -> None:
    with pytest.raises(ParameterError, match="past"):
        multi_round.server_start(SECAGG, bytes(16), 8, tuple(range(8)), past)


@st.composite
def turns_of(draw: st.DrawFn, p: Parameters, rounds: int, seed: int) -> list[Turn]:
    """Rounds in which some users are not available, and some that may be chosen drop out in some phase."""
    found = []
    for number in range(rounds):
        rates = draw(st.sampled_from(((0, 0), (1, 0), (0, 2), (1, 2), (3, 3))))
        found.append(turn_of(p, seed + 1000 * number, *rates))
    return found


def turn_of(p: Parameters, seed: int, away: int, lost: int) -> Turn:
    """A round from a seed: how many of 16 users are away, and how many of 16 drop out in a phase."""
    N, phases = p.selection.N, p.base.phases
    sampled = np.random.default_rng(seed)
    available = [user for user in range(N) if sampled.integers(16) >= away]
    fates = [phases[sampled.integers(len(phases))] if sampled.integers(16) < lost else "stays" for _ in range(N)]
    dropouts = {phase: [user for user in range(N) if fates[user] == phase] for phase in phases}
    return Turn(pseudorandom(seed, modulus(p), N, p.round.d), available, dropouts)


def fates_here(p: Parameters, turn: Turn, chosen: Sequence[int]) -> list[str]:
    """The fates of those who were chosen."""
    fates = {user: phase for phase, users in turn.dropouts.items() for user in users}
    return [fates.get(user, "stays") for user in chosen]


def check_outcome(p: Parameters, turn: Turn, outcome: Outcome, frequencies: Sequence[int], strategy: str) -> None:
    """One round of a session is as the text says, given how often each user was announced as a survivor before."""
    T, per_round = p.selection.T, p.selection.K // p.selection.T
    complete = sorted({user // T for user in whole(p.selection, turn.available)})
    assert bool(outcome.chosen) == (len(complete) >= per_round)
    if not outcome.chosen:
        assert (outcome.survivors, outcome.aggregate) == ((), None)
        return
    picked = sorted({user // T for user in outcome.chosen})
    assert outcome.chosen == tuple(user for batch in picked for user in range(batch * T, batch * T + T))
    assert len(picked) == per_round
    assert set(picked) <= set(complete)
    counts = [min(frequencies[batch * T : batch * T + T]) for batch in range(p.selection.N // T)]
    if strategy == "least":
        assert max(counts[batch] for batch in picked) <= min([counts[b] for b in complete if b not in picked] or [50])
    elif strategy != "uniform":
        assert min(counts[batch] for batch in picked) == min(counts[batch] for batch in complete)
    fates = fates_here(p, turn, outcome.chosen)
    assert outcome.survivors == tuple(outcome.chosen[place] for place in announced(p, fates) or ())
    if succeeds(p, fates) is None:
        assert outcome.aggregate is None
    else:
        rows = turn.updates[list(outcome.survivors)].tolist()
        assert integers_of(outcome.aggregate) == [sum(column) % modulus(p) for column in zip(*rows, strict=True)]


def run_and_check(p: Parameters, turns: Sequence[Turn], strategy: str) -> list[frozenset[int]]:
    """The log of a session, whose every round is checked."""
    outcomes = run_session(p, turns, strategy=strategy, source=SeededSource(b"session", strategy), session=bytes(16))
    frequencies = [0] * p.selection.N
    for turn, outcome in zip(turns, outcomes, strict=True):
        check_outcome(p, turn, outcome, frequencies, strategy)
        for user in outcome.survivors:
            frequencies[user] += 1
    return [frozenset(outcome.survivors) for outcome in outcomes]


def strong_privacy(log: Sequence[frozenset[int]]) -> int | None:
    """The fewest users that are in the same sets; None when there is nobody."""
    return min((len(users) for users in participation_classes(log)), default=None)


SMALL = batches.Parameters(20, 8, 4)


@pytest.mark.slow
@pytest.mark.requirement("MRA-18", "MRA-21", "MRA-22", "MRA-23", "MRA-03", "MRA-04")
@pytest.mark.parametrize("strategy", part(2, ["uniform", "fair", "least", "partition"]))
@pytest.mark.parametrize("base", BOTH, ids=NAMES)
def test_fifty_rounds_with_dropouts_in_every_phase(base: Parameters, strategy: str) -> None:
    """Each sum is the plain one, and no class of users who are always together has fewer than T."""
    selection = replace(SMALL, N=24, T=8) if strategy == "partition" else SMALL
    p = Parameters(selection, base.round)
    turns = [turn_of(p, 77 + number, number % 3, (0, 1, 2, 1)[number % 4]) for number in range(50)]
    log = run_and_check(p, turns, strategy)
    assert 10 <= sum(map(bool, log)) < 50
    least = strong_privacy(log)
    assert least is not None
    assert least >= selection.T
    if strategy != "partition":
        assert {len(sum_) for sum_ in log} == {0, 4, 8}


@pytest.mark.requirement("MRA-18", "MRA-22", "MRA-23")
@fewer(6)
@given(sessions(8), st.integers(0, 9), st.sampled_from(("uniform", "fair", "least")), st.data())
def test_sessions_of_any_numbers(p: Parameters, seed: int, strategy: str, data: st.DataObject) -> None:
    log = run_and_check(p, data.draw(turns_of(p, 4, seed)), strategy)
    assert strong_privacy(log) in (None, *range(p.selection.T, p.selection.N + 1))


@pytest.mark.slow
@pytest.mark.requirement("MRA-17", "MRA-21")
@pytest.mark.parametrize("c", [1, 2])
def test_colluders_in_a_batch_leave_the_others_together(c: int) -> None:
    """The server and c users of a batch know the models of these: the least class that is left has T - c users."""
    selection = replace(SMALL, N=24)
    p = Parameters(selection, secagg.Parameters(97, 8, 4, c, 4, 7, 1))
    turns = [turn_of(p, 5 + number, 0, 1) for number in range(25)]
    log = run_and_check(p, turns, "uniform")
    for colluders in combinations(range(4), c):
        known = [survivors - set(colluders) for survivors in log]
        assert strong_privacy(known) == 4 - c >= 2


@pytest.mark.requirement("MRA-22", "MRA-06")
def test_a_session_is_that_of_its_source() -> None:
    turns = [turn_of(SECAGG, number, 1, 1) for number in range(4)]
    runs = [
        [
            (outcome.chosen, outcome.survivors)
            for outcome in run_session(
                SECAGG, turns, strategy="fair", source=SeededSource(seed, "session"), session=bytes(16)
            )
        ]
        for seed in (b"1", b"1", b"2", b"3", b"4")
    ]
    assert runs[0] == runs[1]
    assert any(run != runs[0] for run in runs[2:])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"updates": vector([[1, 1]] * 11)}, "updates.shape"),
        ({"updates": [[1, 1]] * 12}, "updates"),
        ({"updates": vector([[1, 1]] * 11 + [[1, modulus(SECAGG)]]), "available": range(6)}, r"updates\[11\]\[1\] = "),
        ({"available": (0, 12)}, "available"),
        ({"available": (0, 0)}, "available"),
        ({"available": None}, "available"),
        ({"dropouts": {"nap": [0]}}, "dropouts"),
        ({"dropouts": {"unmasking": [12]}}, "dropouts"),
    ],
    ids=str,
)
def test_a_turn_that_does_not_fit_is_refused_before_the_first_round(change: dict[str, Any], name: str) -> None:
    good = turn_of(SECAGG, 1, 0, 0)
    with pytest.raises(ParameterError, match=rf"^turns\[1\]\.{name}"):
        run_session(
            SECAGG, [good, replace(good, **change)], strategy="fair", source=SeededSource(b"s", "t"), session=bytes(16)
        )


@pytest.mark.parametrize("change", [{"strategy": "nap"}, {"source": None}, {"session": b"x"}], ids=str)
@pytest.mark.parametrize("turns", [0, 1])
def test_a_session_is_looked_at_before_its_first_round(change: dict[str, Any], turns: int) -> None:
    nobody = [replace(turn_of(SECAGG, 1, 0, 0), available=())] * turns
    given_: dict[str, Any] = {"strategy": "fair", "source": SeededSource(b"s", "t"), "session": bytes(16)}
    assert len(run_session(SECAGG, nobody, **given_)) == turns
    with pytest.raises(ParameterError, match="|".join(change)):
        run_session(SECAGG, nobody, **{**given_, **change})
