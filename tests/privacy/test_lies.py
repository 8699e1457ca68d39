"""What lying servers get: the bounds, and whole rounds in which an input comes out just below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic import shamir
from secagg_spec.arithmetic.levels import Range
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.participation_classes import small_class
from secagg_spec.arithmetic.validate import UintArray
from secagg_spec.crypto import masks
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.crypto.keys import agree
from secagg_spec.crypto.prg import expand
from secagg_spec.errors import InconsistentSets, ParameterError, TooFewSurvivors
from secagg_spec.privacy import lies
from secagg_spec.privacy.secagg import Requests, Situation, Users, equivocation
from secagg_spec.privacy.verdict import Verdict
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import PRESETS
from secagg_spec.protocols.heterosag.plan import Parameters as Plan
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.secagg.round import MaskedInput, Parameters, UnmaskRequest, UnmaskShares
from secagg_spec.protocols.steps import SERVER, Network, Step, run_synchronous
from secagg_spec.selection import batches


@st.composite
def numbers(draw: st.DrawFn, most: int = 40) -> tuple[int, int, int]:
    """N, t and c, with two honest users at least."""
    N = draw(st.integers(3, most))
    c = draw(st.integers(0, min(4, N - 2)))
    return N, draw(st.integers(max(2, c + 1), N)), c


# --------------------------------------------------------------------------------------------- different survivors


@given(numbers())
def test_the_least_sum_is_that_of_the_text(given: tuple[int, int, int]) -> None:
    N, t, c = given
    H, m = N - c, 2 * t - N - c
    least = lies.least_sum(N, t, c)
    assert least == (1 if m <= 0 else -(-2 * m * H // (H + m)))
    assert (least == 1) == (2 * t <= N + c)
    assert (least == t - c) == ((N - t) * (N - t + 1) < N - c or t == c + 1)


@given(numbers())
def test_the_least_sum_with_withheld_shares_is_that_of_the_text(given: tuple[int, int, int]) -> None:
    N, t, c = given
    D = t - c
    least = lies.least_sum(N, t, c, withheld=True)
    assert least <= lies.least_sum(N, t, c) <= D
    assert (least == 1) == (D == 1 or (t <= N - 2 and (N - c - 1) * (N - t) >= D * (D - 1)))


@given(numbers(), st.booleans(), st.data())
def test_a_lie_is_one_that_users_can_be_told(given: tuple[int, int, int], withheld: bool, data: st.DataObject) -> None:
    """Each user holds and names t users at least, itself among them, and secrets are opened as the lie needs it."""
    N, t, c = given
    size = data.draw(st.integers(1, N - c))
    lie = lies.isolating(N, t, c, size, withheld=withheld)
    if lie is None:
        return
    assert size >= lies.least_sum(N, t, c, withheld=withheld)
    assert len(lie.isolated) == size
    for user, named in lie.announced.items():
        assert user in named
        assert len(named) >= t
        assert set(named) <= set(lie.arrived[user])
        assert withheld or lie.arrived[user] == tuple(range(N))
    dropped = [other for user in lie.announced for other in lie.arrived[user] if other not in lie.announced[user]]
    for user in lie.isolated:
        assert sum(user in named for named in lie.announced.values()) >= t - c
        assert all(dropped.count(o) >= t - c for o in lie.arrived[user] if o >= c and o not in lie.isolated)


def learned(N: int, t: int, c: int, lie: lies.Lie) -> tuple[Verdict, Verdict]:
    """What is learned beyond the sum over a set that was told, and beyond that over the isolated users."""
    requests = Requests(Parameters(R=8, N=N, D=0, T=max(c, 1), t=t, k=N - 1, d=1), arrived=lie.arrived)
    coalition, element = tuple(range(c)), requests.element
    answers = {user: requests.answer(user, chosen) for user, chosen in lie.announced.items()}
    given = {user: answer for user, answer in answers.items() if answer is not None}
    assert set(given) == set(answers)
    view = element.view(coalition, Situation(element.sharers, element.sharers, element.sharers, given))
    return equivocation(requests, coalition, lie.announced), view.decide(element.total(lie.isolated))


@pytest.mark.parametrize(("N", "t", "size"), [(5, 3, 2), (7, 4, 2), (8, 5, 4), (10, 6, 4)])
def test_lies_about_several_users_show_sums_of_few_although_2t_is_above_N(N: int, t: int, size: int) -> None:
    lie = lies.isolating(N, t, 0, size)
    assert lie is not None
    assert lies.isolating(N, t, 0, size - 1) is None
    assert 2 * t > N
    beyond, alone = learned(N, t, 0, lie)
    assert not beyond.private
    assert (alone.private, alone.withheld) == (True, 1), "exactly the sum over the isolated users is learned"


@pytest.mark.parametrize(("N", "t", "c"), [(5, 3, 0), (8, 5, 0), (10, 6, 0), (15, 9, 1)])
def test_withheld_shares_show_one_input_although_2t_is_above_N_plus_c(N: int, t: int, c: int) -> None:
    lie = lies.isolating(N, t, c, 1, withheld=True)
    assert lie is not None
    assert lies.isolating(N, t, c, 1) is None
    assert 2 * t > N + c
    beyond, alone = learned(N, t, c, lie)
    assert not beyond.private
    assert alone.private
    assert alone.withheld == 1


def test_withheld_shares_leave_masks_with_the_others_out() -> None:
    p = Parameters(R=8, N=5, D=0, T=1, t=3, k=4, d=1)
    requests = Requests(p, arrived={0: (1, 2)})
    symbols = [len(requests.element.masked[user].symbols) for user in range(5)]
    assert symbols == [1 + 1 + 2, *[1 + 1 + 4] * 4]
    assert set(requests.waiting[0].held) == {0, 1, 2}
    assert requests.answer(0, (0, 1, 2, 3, 4)) is None, "user 0 holds no shares of users 3 and 4"


@pytest.mark.parametrize("bad", [{"N": 1}, {"t": 1}, {"t": 9}, {"c": -1}, {"c": 5}, {"t": 2.0}])
def test_numbers_outside_their_range_are_refused(bad: Mapping[str, int]) -> None:
    N, t, c = {"N": 8, "t": 5, "c": 1, **bad}.values()
    with pytest.raises(ParameterError):
        lies.least_sum(N, t, c)
    with pytest.raises(ParameterError):
        lies.isolating(N, t, c, 2)
    with pytest.raises(ParameterError):
        lies.keeps_batches(N, t, c)


@pytest.mark.requirement("ERR-02")
@pytest.mark.parametrize(
    ("function", "numbers", "kind"),
    [
        (lies.keeps_batches, (120, 95, 1), np.uint8),
        (lies.answered_by_one, (65536, 1, 2, 2**20), np.int32),
        (lies.requests_needed, (200, 254), np.uint8),
        (lies.least_sum, (200, 150, 100), np.uint8),
        (lies.isolating, (20, 15, 3, 12), np.int8),
    ],
)
def test_integers_of_numpy_do_not_wrap(
    function: Callable[..., object], numbers: tuple[int, ...], kind: Callable[[int], int]
) -> None:
    assert function(*map(kind, numbers)) == function(*numbers)


def test_numbers_at_the_edge_of_their_range_are_taken() -> None:
    """Beside t - 1 colluders one honest answer is enough; a threshold of 1 is refused although nobody colludes."""
    assert lies.least_sum(8, 5, 4) == 1
    assert lies.keeps_batches(2, 2, 1)
    assert lies.requests_needed(2**16, 2**16) == 1
    with pytest.raises(ParameterError, match="t = 1"):
        lies.least_sum(8, 1, 0)
    with pytest.raises(ParameterError, match=f"T = {2**16 + 1}"):
        lies.requests_needed(3, 2**16 + 1)


@pytest.mark.parametrize("withheld", ["no", 1, 0.0, None])
def test_what_is_no_truth_value_is_refused(withheld: Any) -> None:
    for call in (partial(lies.least_sum, 5, 3, 1), partial(lies.isolating, 5, 3, 1, 1)):
        with pytest.raises(ParameterError, match=r"^withheld = '.*': must be of the class bool$"):
            call(withheld=withheld)


def test_sizes_and_requests_outside_their_range_are_refused() -> None:
    for size in (0, 8):
        with pytest.raises(ParameterError, match="size"):
            lies.isolating(8, 5, 1, size)
    with pytest.raises(ParameterError, match="users"):
        lies.requests_needed(0, 1)
    with pytest.raises(ParameterError, match="T"):
        lies.requests_needed(3, 0)
    with pytest.raises(ParameterError, match="requests"):
        lies.answered_by_one(8, 1, 5, 0)


# ----------------------------------------------------------------------------------------- the active profile


def quorums(N: int, t: int) -> Iterator[tuple[Users, tuple[int, ...]]]:
    """Yield every set of survivors with user 0, who colludes, and every set of t of them who sign."""
    for size in range(t, N + 1):
        for survivors in combinations(range(N), size):
            if 0 in survivors:
                yield from ((survivors, signers) for signers in combinations(survivors, t) if 0 in signers)


def leaks(N: int, t: int) -> int:
    """In how many ways a server that withholds shares gets more than the sum over the one set that t users signed.

    A survivor that did not sign holds shares of any t - 1 others; everybody else holds all of them.
    """
    p, found = Parameters(R=8, N=N, D=0, T=1, t=t, k=N - 1, d=1), 0
    for survivors, signers in quorums(N, t):
        unsigned = [user for user in survivors if user not in signers]
        others = [list(combinations([u for u in range(N) if u != user], t - 1)) for user in unsigned]
        for chosen in product(*others):
            requests = Requests(p, arrived=dict(zip(unsigned, chosen, strict=True)))
            announced = {user: survivors for user in signers if user}
            assert all(requests.answer(user, survivors) for user in announced)
            found += not equivocation(requests, (0,), announced).private
    return found


def test_a_quorum_with_2t_above_N_plus_T_withstands_withheld_shares() -> None:
    assert [leaks(4, 3), leaks(5, 4)] == [0, 0]


@pytest.mark.slow
def test_a_quorum_with_2t_equal_to_N_plus_T_does_not() -> None:
    assert leaks(5, 3) > 0


# ------------------------------------------------------------------------------------------------ whole batches


SELECTION = batches.Parameters(15, 15, 3)


def told_in_batches(t: int) -> tuple[dict[int, Users], Users]:
    """The survivors that a server names to each user but 0, and the users whose shares it relays to user 0.

    User 1 colludes. Of three batches each honest user drops as many as the threshold lets it, none its own.
    """
    most = (15 - t) // 3
    pairs = list(combinations((1, 2, 3), most))
    announced = {}
    for user in range(2, 15):
        free = [pair for pair in pairs if user // 3 not in pair]
        left_out = free[user % len(free)]
        announced[user] = tuple(u for u in range(15) if u // 3 not in left_out)
    return announced, tuple(range(3, 3 + t - 2))


def bare_input(t: int) -> UintArray:
    """What a server makes of one round of Multi-Round over SecAgg, with its own steps and those of the users.

    Its lies keep to honest keys and to unions of batches. It returns the input of user 0, or fails for want of shares.
    """
    p = multi_round.Parameters(SELECTION, Parameters(R=97, N=15, D=0, T=1, t=t, k=14, d=4))
    updates = np.arange(60, dtype=np.uint64).reshape(15, 4)
    network = multi_round.open_round(p, range(15), updates, session=bytes(16), round=0)
    table = {(step.phase, step.role.value): step for step in network.table}
    network.table = tuple(step for step in network.table if step.phase in ("advertise_keys", "share_keys"))
    sources = {user: SeededSource(b"a lying server", str(user)) for user in range(15)}
    run_synchronous(network, {}, multi_round.draw_randomness(p, sources))
    announced, targets = told_in_batches(t)
    masked = {user: send_input(network, table["masked_input", "user"], user, (1, *targets)) for user in range(15)}
    shares: dict[tuple[str, int], dict[int, int]] = {}
    for holder, survivors in announced.items():
        keep(shares, answer(network, table["unmasking", "user"], holder, survivors))
    colluder = network.states[1].base.held
    for owner, pair in colluder.items():
        shares.setdefault(("seed", owner), {})[1] = pair.seed
        shares.setdefault(("key", owner), {})[1] = pair.key
    server = network.states[SERVER].base
    context, keys = server.round.context(), server.keys
    publics = {user: keys[user].masking for user in range(15)}
    ring = Ring(97)
    own = masks.self_key(context, recovered(t, shares["seed", 0]), 0)
    found = ring.subtract(masked[0], expand(own, ring, 4))
    for peer in (1, *targets):
        private = drawn_masking_key("1") if peer == 1 else recovered(t, shares["key", peer])
        key = masks.pairwise_key(context, agree(private, publics[0]), {0: publics[0], peer: publics[peer]})
        found = ring.subtract(found, expand(key, ring, 4))
    return found


def drawn_masking_key(user: str) -> bytes:
    """The masking key that a user drew: the 32 bytes after its sealing key."""
    source = SeededSource(b"a lying server", user)
    source.take(32)
    return source.take(32)


def send_input(network: Network, step: Step[Any], user: int, near: Users) -> UintArray:
    """Let a user mask its input; only to user 0 the server withholds shares."""
    mail = tuple(m for m in network.mail(step, user) if user or m.sender in near)
    [message] = network.take_on(mail, step, user).sent
    assert isinstance(message, MaskedInput)
    return message.masked


def answer(network: Network, step: Step[Any], user: int, survivors: Users) -> UnmaskShares:
    """Let a user answer a request for these survivors."""
    round = network.states[user].base.round
    dropped = tuple(other for other in range(15) if other not in survivors)
    request = UnmaskRequest(round.session, round.number, SERVER, user, survivors, dropped)
    [message] = network.take_on((request,), step, user).sent
    assert isinstance(message, UnmaskShares)
    return message


def keep(shares: dict[tuple[str, int], dict[int, int]], message: UnmaskShares) -> None:
    """Keep the shares of an answer by secret and holder."""
    for name, owners, data in (
        ("seed", message.survivors, message.seed_shares),
        ("key", message.dropped, message.key_shares),
    ):
        values = shamir.elements_from_bytes(name, data, len(owners))
        for owner, value in zip(owners, values, strict=True):
            shares.setdefault((name, owner), {})[message.sender] = value


def recovered(t: int, shares: Mapping[int, int]) -> bytes:
    """A secret from t shares or more."""
    if len(shares) < t:
        raise TooFewSurvivors(f"{len(shares)} shares, and t = {t} are needed")
    return shamir.reconstruct(t, list(shares), list(shares.values()))


def test_with_2t_above_K_plus_c_one_input_of_a_batch_comes_out_of_one_round() -> None:
    assert 2 * 9 > 15 + 1
    assert not lies.keeps_batches(15, 9, 1)
    assert bare_input(9).tolist() == [0, 1, 2, 3]


def test_with_3t_at_least_2K_plus_c_the_same_lie_lacks_shares() -> None:
    assert lies.keeps_batches(15, 11, 1)
    assert not lies.keeps_batches(15, 10, 1)
    with pytest.raises(TooFewSurvivors, match="t = 11 are needed"):
        bare_input(11)


def test_what_user_0_would_answer_is_refused() -> None:
    """It holds no shares of its own batch, so no union of batches has it and is one that it can answer."""
    with pytest.raises(InconsistentSets, match="whole batches"):
        multi_round.check_survivors(SELECTION, (0, 1, *range(3, 10)))


# ----------------------------------------------------------------------------------------------- many requests


OTHERS = tuple(range(10, 20))
THREE = ((0, 1, 2, *OTHERS), (3, 4, 5, *OTHERS), (*range(7), *OTHERS))
SILENT = ((10, 11), (12, 13), (14, 15, 16, 17, 18, 6))
"""Survivors that are not asked. User 19 colludes; no honest user is asked in all three rounds."""


def twenty(t: int) -> Plan:
    """Twenty users in two subgroups of ten, T = 1."""
    return Plan(20, 3, 1, t, 2, (10, 10), (1, 1), (2, 2), Range(-1.0, 1.0))


def three_rounds(t: int, silent: tuple[Users, ...] = SILENT) -> list[heterosag.ServerState]:
    """Rounds of one session in which no input changes. The server and the colluder, user 19, do not look back."""
    p = twenty(t)
    update = np.array([1, 0], dtype=np.uint64)
    states = {user: heterosag.user_start(p, bytes(16), 0, user, update * (user % 3 == 0)) for user in range(20)}
    found = []
    for number, (survivors, quiet) in enumerate(zip(THREE, silent, strict=True)):
        if number:
            again = heterosag.user_again
            states = {user: again(state, number, update * (user % 3 == 0)) for user, state in states.items()}
        states[19] = heterosag.user_start(p, bytes(16), number, 19, update * 0)
        network = Network(heterosag.TABLE, {SERVER: heterosag.server_start(p, bytes(16), number), **states})
        left_out = [user for user in range(20) if user not in survivors]
        sources = {user: SeededSource(b"three rounds", f"{number} {user}") for user in range(20)}
        run_synchronous(network, {"masked_input": left_out, "unmasking": quiet}, secagg.draw_randomness(p, sources))
        states = {user: network.states[user] for user in range(20)}
        found.append(network.states[SERVER])
    return found


def test_three_requests_of_which_no_user_sees_all_tell_one_input() -> None:
    """Pairs are stopped, since 2(N - t) < N - T, and triples are not."""
    assert lies.answered_by_one(20, 1, 11, 2)
    assert not lies.answered_by_one(20, 1, 11, 3)
    one, two, three = (
        next(s for s in state.sums if s.cell.subgroups == (0,)).total.astype(np.int64) for state in three_rounds(11)
    )
    part = next(cell for cell in twenty(11).parts if cell.subgroups == (0,))
    x_6 = np.array([1, 0])[part.segment]
    assert (three - one - two).tolist() == [x_6]


def test_a_user_that_saw_all_three_requests_refuses() -> None:
    with pytest.raises(TooFewSurvivors, match=r"users \[6\]"):
        three_rounds(11, ((10,), (12, 13), (14, 15, 16, 17, 18, 6)))


@pytest.mark.parametrize(("name", "holds"), [("tiny", False), ("default", False), ("large", False)])
def test_no_preset_holds_whole_sessions(name: str, holds: bool) -> None:
    assert lies.holds_session(PRESETS[name]) == holds


def test_the_least_thresholds_of_the_text() -> None:
    assert lies.requests_needed(20, 1) == 7
    assert [t for t in range(3, 18) if lies.holds_session(twenty(t))] == []
    large = PRESETS["large"]
    assert max(len(cell.members) for cell in large.parts) == 10
    assert lies.requests_needed(10, 1) == 4
    assert [lies.answered_by_one(100, 1, t, 4) for t in (75, 76)] == [False, True]
    assert lies.answered_by_one(100, 1, 51, 2)
    assert not lies.answered_by_one(100, 1, 51, 3)


@given(st.integers(1, 3), st.lists(st.frozensets(st.integers(0, 9)), min_size=1, max_size=6))
def test_requests_that_tell_few_users_from_others_do_so_in_small_families(T: int, sets: list[frozenset[int]]) -> None:
    if small_class(sets, T + 2) is None:
        return
    sizes = range(1, lies.requests_needed(10, T) + 1)
    assert any(small_class(part, T + 2) for size in sizes for part in combinations(sets, size))


def test_users_ignore_nothing_that_the_bounds_take_for_granted() -> None:
    """A survivor whose shares a user lacks, and a set that is too small, are refused."""
    requests = Requests(Parameters(R=8, N=5, D=0, T=1, t=3, k=4, d=1), arrived={0: (1, 2)})
    assert requests.answer(0, (0, 1)) is None
    assert requests.answer(0, (0, 1, 3)) is None
    given = requests.answer(0, (0, 1, 2))
    assert given is not None
    assert given.seeds == (0, 1, 2)
    assert given.keys == ()


def test_one_user_is_too_few_whatever_the_threshold_is() -> None:
    for N in (1, 2**16 + 1):
        with pytest.raises(ParameterError, match=f"^N = {N}: "):
            lies.least_sum(N, 2, 0)


@pytest.mark.parametrize("withheld", ["no", 0, None])
def test_whether_shares_are_withheld_is_a_truth_value(withheld: Any) -> None:
    for judge in (
        lambda: lies.least_sum(12, 5, 1, withheld=withheld),
        lambda: lies.isolating(12, 5, 1, 1, withheld=withheld),
    ):
        with pytest.raises(ParameterError, match=r"^withheld = .*must be of the class bool$"):
            judge()


def test_errors_name_numbers_as_the_caller_does() -> None:
    with pytest.raises(ParameterError, match=r"^K = 1: must be an integer in "):
        lies.keeps_batches(1, 2, 0)
    with pytest.raises(ParameterError, match=r"^T = 3: must be an integer in "):
        lies.answered_by_one(5, 3, 3, 1)
