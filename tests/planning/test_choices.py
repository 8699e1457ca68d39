"""Choices against the reference: parameters, bytes and small rounds; probabilities against draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secagg_spec.arithmetic.quantizer import largest_level
from secagg_spec.crypto.channels import PlainChannel
from secagg_spec.crypto.entropy import SeededSource
from secagg_spec.errors import ParameterError, TooFewSurvivors
from secagg_spec.planning import choices, odds, traffic
from secagg_spec.planning.choices import PROTOCOLS, Choice, Out, answer
from secagg_spec.planning.plan import nearest, plan
from secagg_spec.planning.wishes import Wish
from secagg_spec.privacy import sparse
from secagg_spec.privacy.secagg import components
from secagg_spec.protocols.basa import runs as basa_runs
from secagg_spec.protocols.basecagg import round as basecagg
from secagg_spec.protocols.basecagg import runs as basecagg_runs
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.multi_round import round as multi_round
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import AUTHORITY, SERVER, Event, run_synchronous, sizes
from tests.planning.test_odds import SLACK, companions, tail
from tests.strategies import fewer

SESSION = bytes(16)
ONE_TIME = ("secagg", "secagg-plus", "lightsecagg", "heterosag", "multi-round")
rates = st.fractions(0, Fraction(3, 5), max_denominator=40)


@st.composite
def wishes(draw: st.DrawFn, most: int = 60) -> Wish:
    """A wish whose numbers are small enough to look at all that follows."""
    return Wish(
        draw(st.integers(3, most)),
        draw(st.integers(1, 400)),
        draw(rates),
        draw(rates),
        draw(st.sampled_from((1, 1, 2, 5))),
        draw(st.booleans()),
        draw(st.fractions(Fraction(1, 100), 100, max_denominator=100)),
        Fraction(1, 2 ** draw(st.integers(1, 30))),
        Fraction(1, 2 ** draw(st.integers(1, 50))),
    )


def chosen(key: str, wish: Wish) -> Choice:
    """The choice of a protocol; there has to be one."""
    found = answer(key, wish)
    assert isinstance(found, Choice), found
    return found


# ---------------------------------------------------------------------------------------------------- parameters


@pytest.mark.requirement("PLN-06", "PLN-09", "PLN-10")
@given(wishes())
def test_the_reference_takes_the_parameters_and_the_probabilities_are_allowed(wish: Wish) -> None:
    for key, protocol in PROTOCOLS.items():
        found = answer(key, wish)
        if isinstance(found, Out):
            assert found.reason
            assert found.source.startswith("spec/") or "-" in found.source
            assert found.wrong_kind or protocol.asynchronous == wish.asynchronous
            continue
        assert protocol.asynchronous == wish.asynchronous
        given_ = found.parameters()
        for name, value in found.numbers.items():
            holders = (given_, getattr(given_, "selection", None), getattr(given_, "round", None))
            if not isinstance(value, str) and name not in {"groups", "c", "subgroups", "levels"}:
                assert value in [getattr(holder, name) for holder in holders if hasattr(holder, name)]
        assert 0 <= found.failure.value <= wish.failure
        assert 0 <= found.leak.value <= wish.leak


@pytest.mark.requirement("PLN-02", "PLN-06", "PLN-09")
@given(wishes())
def test_choices_that_need_one_number_exist_exactly_when_that_number_does(wish: Wish) -> None:
    wish = replace(wish, asynchronous=False, rounds=1)
    N, p = wish.users, wish.dropout
    T = next(T for T in range(1, N + 2) if N * wish.colluders <= T)
    D = next(D for D in range(N + 1) if odds.at_least(N, p, D + 1) <= wish.failure)
    level = largest_level(2**32 - 5, N, wish.clip)
    coded, paired = answer("lightsecagg", wish), answer("secagg", wish)
    assert isinstance(coded, Choice) == isinstance(paired, Choice) == (N - D >= T + 2)
    if isinstance(coded, Choice) and isinstance(paired, Choice):
        assert coded.numbers == {"q": 2**32 - 5, "N": N, "D": D, "U": N - D, "T": T, "d": wish.dimension}
        t = min(N - D, max(T + 2, (N + T) // 2 + 1))
        assert paired.numbers == {"R": 2**32, "N": N, "D": D, "T": T, "t": t, "k": N - 1, "d": wish.dimension}
        assert coded.level == level
        assert tail(N, p, D + 1) <= coded.failure.value <= SLACK * tail(N, p, D + 1)
        assert tail(N, p, N - t + 1) <= paired.failure.value <= SLACK * tail(N, p, N - t + 1)
    buffered = answer("basecagg", replace(wish, asynchronous=True))
    assert isinstance(buffered, Choice) == (N - D > T and T + 2 <= N)
    if isinstance(buffered, Choice):
        K = max(T + 2, min(N, 10))
        assert (buffered.numbers["K"], buffered.numbers["U"]) == (K, N - D)
        assert buffered.level == largest_level(2**32 - 5, K * 64, wish.clip)


def just(N: int, p: Fraction, failure: Fraction = Fraction(1, 2), **more: Any) -> Wish:
    """A wish without colluders in which a probability is just the one that is allowed."""
    return Wish(N, 10, p, Fraction(0), failure=failure, **more)


TENTH, HUNDREDTH, FOURTH = Fraction(1, 10), Fraction(1, 100), Fraction(1, 4)
JUST = {
    "secagg": just(3, TENTH, Fraction(271, 1000)),
    "secagg in two rounds": just(6, TENTH, rounds=2, leak=5 * companions(2, TENTH, 4, 1)),
    "lightsecagg": just(4, Fraction(1, 2), Fraction(11, 16)),
    "heterosag": just(6, HUNDREDTH, tail(6, HUNDREDTH, 3) + 6 * companions(1, HUNDREDTH, 2, 2)),
    "multi-round": just(6, FOURTH, tail(2, 1 - Fraction(3, 4) ** 3, 2), rounds=2),
    "basa": just(3, TENTH, Fraction(271, 1000), asynchronous=True),
}


@pytest.mark.requirement("PLN-03", "PLN-09")
@pytest.mark.parametrize("name", JUST)
def test_probabilities_that_are_just_allowed_are_allowed(name: str) -> None:
    key, wish = name.split(maxsplit=1)[0], JUST[name]
    found = chosen(key, wish)
    assert found.leak.value == wish.leak or found.failure.value == wish.failure
    less = replace(wish, failure=wish.failure * (1 - Fraction(1, 2**300)), leak=wish.leak * (1 - Fraction(1, 2**300)))
    assert isinstance(answer(key, less), Out)


@pytest.mark.requirement("PLN-06", "PLN-09")
@pytest.mark.parametrize(
    ("N", "p", "g"),
    [
        (1000, Fraction(1, 10), Fraction(1, 5)),
        (300, Fraction(1, 20), Fraction(1, 20)),
        (5000, Fraction(1, 5), Fraction(1, 3)),
    ],
)
def test_a_sparse_graph_is_as_rarely_bad_as_section_9_says_and_no_larger_than_that_takes(
    N: int, p: Fraction, g: Fraction
) -> None:
    wish = Wish(N, 1000, p, g)
    found = chosen("secagg-plus", wish)
    T, D, k, t = (int(found.numbers[name]) for name in ("T", "D", "k", "t"))
    lost = odds.least_dropouts(N, p, wish.leak / 4)

    def bad(k: int, t: int) -> tuple[Fraction, Fraction, Fraction]:
        return sparse.any_surrounded(N, k, t, T), sparse.disconnected(N, k, T + lost), sparse.stuck(N, k, t, D)

    caught, cut, stuck = bad(k, t)
    assert max(caught, cut) <= wish.leak / 4
    assert stuck <= wish.failure / 2
    assert found.leak.value >= caught + cut + odds.at_least(N, p, lost + 1)
    assert found.failure.value >= stuck + odds.at_least(N, p, D + 1)
    assert sparse.any_surrounded(N, k, t - 1, T) > wish.leak / 4
    for less in range(2, k):
        caught, cut, stuck = bad(k - 2, less)
        assert caught > wish.leak / 4 or cut > wish.leak / 4 or stuck > wish.failure / 2


@pytest.mark.requirement("PLN-05", "PLN-09")
def test_over_many_rounds_only_batches_or_nobody_dropping_out_will_do() -> None:
    wish = Wish(600, 100, Fraction(1, 100), Fraction(1, 600), rounds=50)
    (found,) = plan(wish).choices
    assert (found.protocol, found.numbers["T"], found.parameters().selection.T) == ("multi-round", 3, 3)
    still = {choice.protocol for choice in plan(replace(wish, dropout=Fraction(0))).choices}
    assert still == {"secagg", "secagg-plus", "lightsecagg", "heterosag", "multi-round"}
    assert isinstance(answer("multi-round", replace(wish, rounds=1)), Out)


@pytest.mark.parametrize("key", ONE_TIME)
def test_the_noise_is_that_of_the_fewest_users_whose_sum_is_no_failure(key: str) -> None:
    found = chosen(key, replace(LOOSE, rounds=2 if key == "multi-round" else 1))
    p: Any = found.parameters()
    if key == "heterosag":
        left, width = set(range(p.enough)), p.range.high - p.range.low
        cells = [cell.length * len(cell.members & left) / (cell.levels - 1) ** 2 for cell in p.parts]
        assert found.noise**2 * p.d == pytest.approx(width**2 / (4 * p.enough**2) * sum(cells))
        return
    numbers = {name: int(found.numbers.get(name, 0)) for name in "NDUt"}
    n = numbers["N"] - numbers["D"] if key == "secagg-plus" else numbers["U"] or numbers["t"]
    assert found.noise == pytest.approx(1 / (2 * found.level * n**0.5))


# -------------------------------------------------------------------------------------------------------- bytes


def sources(users: int) -> dict[int, SeededSource]:
    """A fixed source for each user."""
    return {user: SeededSource(bytes(32), f"user {user}") for user in range(users)}


def totals(transcript: tuple[Event, ...]) -> tuple[dict[int, int], dict[int, int]]:
    """The bytes that each party sends and receives."""
    sent: dict[int, int] = {}
    received: dict[int, int] = {}
    for event in transcript:
        sent[event.party] = sent.get(event.party, 0) + sizes(event.sent)
        received[event.party] = received.get(event.party, 0) + sizes(event.received)
    return sent, received


def zeros(users: int, d: int) -> Any:
    """The updates of all users."""
    return np.zeros((users, d), dtype=np.uint64)


def play(found: Choice, dropouts: Mapping[str, range] | None = None) -> tuple[Event, ...]:
    """A round with the parameters of a choice."""
    p, lost = found.parameters(), dropouts or {}
    base = p.round if found.protocol == "multi-round" else p
    drawn: Callable[..., Any] = lightsecagg.draw_randomness if "U" in found.numbers else secagg.draw_randomness
    given_: dict[str, Any] = {
        "randomness": drawn(base, sources(base.N)),
        "session": SESSION,
        "round": 0,
        "dropouts": lost,
    }
    if found.protocol == "multi-round":
        chosen_ = tuple(range(base.N))
        channel = PlainChannel() if "U" in found.numbers else None
        return multi_round.run_round(p, chosen_, zeros(base.N, base.d), channel=channel, **given_).transcript
    if found.protocol == "heterosag":
        network = heterosag.open_round(p, zeros(p.N, p.d), session=SESSION, round=0)
        run_synchronous(network, lost, given_["randomness"])
        return tuple(network.transcript)
    kind: Any = lightsecagg if found.protocol == "lightsecagg" else secagg
    return tuple(kind.run_round(p, zeros(p.N, p.d), **given_).transcript)


@pytest.mark.requirement("PLN-08")
@pytest.mark.parametrize("key", ONE_TIME)
def test_the_bytes_of_a_plan_are_those_of_a_round(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "SEALED", 0)  # rounds over the plain channel are quicker
    rounds, N = (3, 24) if key == "multi-round" else (1, 24)
    wish = Wish(N, 50, Fraction(1, 200), Fraction(1, 24), rounds, failure=Fraction(1, 100), leak=Fraction(1, 4))
    found = chosen(key, wish)
    sent, received = totals(play(found))
    users = range(int(found.numbers["N"]))
    assert max(sent[user] for user in users) == found.sends
    assert sent[SERVER] == found.server
    assert max(received[user] for user in users) == found.receives
    kinds = {"secagg": secagg, "secagg-plus": secagg, "heterosag": secagg, "lightsecagg": lightsecagg}
    assert found.steps == (3 if kinds.get(key) is lightsecagg or "U" in found.numbers else 4)


@pytest.mark.requirement("PLN-08")
@pytest.mark.parametrize("N", [6, 12])
def test_the_bytes_of_a_buffer_of_basecagg_are_those_of_a_session(N: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic, "SEALED", 0)
    found = chosen("basecagg", Wish(N, 30, Fraction(1, 50), Fraction(1, 6), asynchronous=True))
    p = found.parameters()
    turns: list[Any] = [*map(basecagg_runs.Start, range(p.K)), *map(basecagg_runs.Upload, range(p.K))]
    turns += [basecagg_runs.Recover(tuple(range(p.N)))]
    drawn = basecagg_runs.draw_randomness(p, SeededSource(bytes(32), "masks"), turns)
    network = basecagg_runs.open_session(p, session=SESSION, round=0)
    supplies = basecagg_runs.supplies(p, list(zeros(p.K, p.d)), drawn)
    basecagg_runs.run_turns(basecagg_runs.Play(network, supplies, basecagg.user_trained), turns)
    sent, received = totals(tuple(network.transcript))
    assert sent[0] == found.sends
    assert sent[SERVER] == found.server
    if p.K == N:  # nobody has a share of its own mask
        assert max(received[user] for user in range(N)) == found.receives
        return
    stamp = traffic.HEADER  # a user has a stamp and its own share, or all shares and no stamp
    assert max(received[user] for user in range(p.K, p.N)) == found.receives - stamp
    assert max(received[user] for user in range(p.K)) < found.receives


@pytest.mark.requirement("PLN-08")
def test_the_bytes_of_a_buffer_of_basa_are_those_of_an_epoch() -> None:
    found = chosen("basa", Wish(20, 30, Fraction(1, 50), Fraction(1, 10), asynchronous=True))
    p = found.parameters()
    run = basa_runs.Run(p, SeededSource(bytes(32), "session"), session=SESSION, round=0)
    for user in range(p.K):
        run.upload(user, p.ring.zeros(p.d), 0, 0.5)
    run.close()
    sent, received = totals(tuple(run.transcript))
    assert sent[0] == found.sends
    assert sent[SERVER] == found.server
    assert received[p.K - 1] == max(received[user] for user in range(p.K)) == found.receives
    assert AUTHORITY in sent


# ------------------------------------------------------------------------------------------------ rounds that end


@pytest.mark.requirement("PLN-06", "PLN-09")
@pytest.mark.parametrize("key", ["secagg", "lightsecagg", "multi-round"])
def test_a_round_ends_with_as_many_dropouts_as_planned_and_no_more(key: str) -> None:
    wish = Wish(18, 7, Fraction(1, 20), Fraction(1, 18), 3 if key == "multi-round" else 1, leak=Fraction(3, 4))
    wish = replace(wish, failure=Fraction(1, 50))
    found = chosen(key, wish)
    N = int(found.numbers["N"])
    left = int(found.numbers.get("U", found.numbers.get("t", 0)))
    phase = "upload" if "U" in found.numbers else "masked_input"
    assert left < N
    play(found, {phase: range(left, N)})
    with pytest.raises(TooFewSurvivors):
        play(found, {phase: range(left - 1, N)})


# ------------------------------------------------------------------------------------- draws against probabilities

DRAWS = 10_000
FALSE_ALARM = Fraction(1, 2 * 10**9)
"""A right probability fails a test by chance with at most twice this: each side of it is looked at."""


def left_of(wish: Wish, draw: random.Random) -> frozenset[int]:
    """The users of a round that do not drop out."""
    gone = draw.choices((True, False), (float(wish.dropout), float(1 - wish.dropout)), k=wish.users)
    return frozenset(user for user, out in enumerate(gone) if not out)


def agrees(odds_: Any, hits: int) -> None:
    """Compare how often something happened with its probability, or with a bound on it."""
    assert odds.at_least(DRAWS, odds_.value, hits) >= FALSE_ALARM, f"{hits} hits, {float(odds_.value)} expected"
    if odds_.exact:
        assert odds.fewer_than(DRAWS, odds_.value, hits + 1) >= FALSE_ALARM, f"{hits} hits"


def test_the_smallest_leak_that_may_be_wished_has_an_answer() -> None:
    least = Fraction(1, 2**1000)
    found = answer("secagg-plus", Wish(40, 30, Fraction(1, 100), Fraction(1, 20), leak=least))
    assert not isinstance(found, Choice) or found.leak.value <= least
    assert isinstance(answer("secagg-plus", Wish(2000, 30, Fraction(0), Fraction(1, 2000), leak=least)), Choice)


LOOSE = Wish(40, 30, Fraction(1, 5), Fraction(1, 20), failure=Fraction(1, 4), leak=Fraction(1, 4))


@cache
def failures(key: str, wish: Wish) -> int:
    """How many of many rounds fail, by the rules of the reference on who has to be left."""
    found, draw = chosen(key, wish), random.Random(key)
    return sum(fails(found, left_of(wish, draw), draw) for _ in range(DRAWS))


def fails(found: Choice, left: frozenset[int], draw: random.Random) -> bool:
    """Whether a round with these users left fails."""
    p: Any = found.parameters()
    match found.protocol:
        case "secagg":
            return bool(len(left) < p.enough)
        case "secagg-plus":
            order = draw.sample(range(p.N), p.N)
            graph = p.graph(order)
            few = any(len(graph.holders(user) & left) < p.t for user in range(p.N))
            return bool(len(left) < p.enough or few)
        case "lightsecagg" | "basecagg":
            return bool(len(left) < p.U)
        case "multi-round":
            inside = [user for user in left if user < p.selection.N]
            whole = multi_round.whole_inputs(p.selection, inside)
            return bool(len(whole) < max(p.round.T + 2, found.numbers.get("U", found.numbers.get("t"))))
        case "heterosag":
            if len(left) < p.enough:
                return True
            try:
                heterosag.check_cells(p, left)
            except TooFewSurvivors:
                return True
            return False
        case "basa":
            return bool(len([user for user in left if user < p.positions]) < p.T + 2)
    raise AssertionError(found.protocol)


@pytest.mark.requirement("PLN-03", "PLN-09")
@pytest.mark.parametrize("key", list(PROTOCOLS))
def test_rounds_fail_as_often_as_planned(key: str) -> None:
    wish = replace(LOOSE, asynchronous=PROTOCOLS[key].asynchronous)
    if key == "multi-round":
        wish = replace(LOOSE, rounds=2)
    if key == "basa":  # with fewer colluders a buffer fails so rarely that a wrong probability does not show
        wish = replace(wish, colluders=Fraction(1, 8))
    hits = failures(key, wish)
    agrees(chosen(key, wish).failure, hits)
    assert hits


RARE_LEAKS = (
    Wish(100, 1000, TENTH, TENTH, leak=Fraction(1, 10**80)),
    Wish(10, 1000, TENTH, TENTH, failure=TENTH, leak=Fraction(1, 2**40)),
    Wish(10, 1000, HUNDREDTH, Fraction(1, 5), failure=Fraction(1, 1000)),
)
"""Wishes under which nearly all users may drop out before what is allowed to leak is used up."""


@pytest.mark.requirement("PLN-03", "PLN-09")
@pytest.mark.parametrize("wish", RARE_LEAKS)
def test_no_sparse_graph_will_do_where_fewer_dropouts_cut_it_more_often(wish: Wish) -> None:
    assert isinstance(answer("secagg-plus", wish), Out)


@pytest.mark.requirement("PLN-03", "PLN-09")
@pytest.mark.parametrize("N", [10, 12, 30, 120])
def test_a_sparse_graph_leaks_no_more_than_planned_over_all_numbers_of_dropouts(N: int) -> None:
    graphs = 0
    for p, g, rarely, seldom in product((HUNDREDTH, TENTH), (Fraction(1, 30), TENTH), (6, 20, 40, 200), (3, 7)):
        wish = Wish(N, 50, p, g, failure=Fraction(1, 2**seldom), leak=Fraction(1, 2**rarely))
        found = answer("secagg-plus", wish)
        if isinstance(found, Choice):
            T, k = int(found.numbers["T"]), int(found.numbers["k"])
            each = [comb(N, x) * p**x * (1 - p) ** (N - x) for x in range(N + 1)]
            assert found.leak.value >= sum(each[x] * sparse.disconnected(N, k, min(T + x, N)) for x in range(N + 1))
            graphs += 1
    assert graphs


@pytest.mark.slow
@pytest.mark.requirement("PLN-03", "PLN-09")
def test_a_sparse_graph_lets_privacy_fail_no_more_often_than_planned() -> None:
    wish = replace(LOOSE, colluders=Fraction(1, 8))
    found, draw, hits = chosen("secagg-plus", wish), random.Random("cut"), 0
    p = found.parameters()
    for _ in range(DRAWS):
        graph, left = p.graph(draw.sample(range(p.N), p.N)), left_of(wish, draw)
        honest = set(range(p.T, p.N))
        caught = {user for user in honest if len(graph.neighbours(user) - honest) >= p.t}
        hits += bool(caught) or len(components(graph, honest & left)) > 1
    agrees(found.leak, hits)
    assert hits


@pytest.mark.requirement("PLN-03", "PLN-05")
def test_users_are_alone_in_their_rounds_as_often_as_planned() -> None:
    rounds, rate, others, draw = 4, Fraction(3, 10), 6, random.Random("alone")
    hits = 0
    for _ in range(DRAWS):
        logs = [tuple(draw.random() >= 0.3 for _ in range(rounds)) for _ in range(others + 1)]
        hits += any(logs[0]) and logs.count(logs[0]) == 1
    exact = odds.without_companions(rounds, rate, others, 1, Fraction(1))
    agrees(replace(chosen("secagg", LOOSE).failure, value=exact, exact=True), hits)


# ------------------------------------------------------------------------------------------------------ the answer


@pytest.mark.requirement("PLN-10", "PLN-11")
@settings(parent=fewer(2))
@given(wishes())
def test_one_sum_comes_first_and_then_fewer_bytes(wish: Wish) -> None:
    found = plan(wish)
    assert {one.protocol for one in found.choices} | {one.protocol for one in found.out} == set(PROTOCOLS)
    keys = [(PROTOCOLS[one.protocol].beyond, one.sends + one.receives) for one in found.choices]
    assert keys == sorted(keys)
    assert {key for key, one in PROTOCOLS.items() if one.beyond} == {"heterosag", "multi-round", "basa"}


@pytest.mark.slow
@pytest.mark.requirement("PLN-12")
@settings(parent=fewer(4))
@given(wishes(30))
def test_a_near_wish_changes_one_number_and_is_satisfied(wish: Wish) -> None:
    for out in plan(wish).out:
        for option, near in () if out.wrong_kind else nearest(wish, out.protocol):
            name, value = option.removeprefix("--").split()
            assert replace(wish, **{name: type(getattr(wish, name))(value)}) == near != wish
            assert isinstance(answer(out.protocol, near), Choice)


@pytest.mark.requirement("PLN-12")
def test_a_wish_with_too_many_colluders_has_near_ones() -> None:
    wish = Wish(1000, 1000, Fraction(1, 10), Fraction(9, 10))
    assert not plan(wish).choices
    options = [option for option, _ in nearest(wish, "secagg")]
    assert options == ["--colluders 0.843", "--dropout 0.059"]


NAMES = {"N": 3, "k": 2, "d": 1, "S": 3, "V": 0}


@pytest.mark.requirement("PLN-08")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"page": "secag.md"}, "page = 'secag.md': must be one of secagg.md, .*; secagg.md is close"),
        ({"page": None}, "page = None: must be one of secagg.md, "),
        ({"role": "servr"}, "role = 'servr': must be one of server, user; server is close"),
        ({"role": "authority"}, "role = 'authority': must be one of server, user"),
        (
            {"without": ("unmask",)},
            "without = 'unmask': must be one of advertise_keys, masked_input, share_keys, unmasking",
        ),
        ({"without": "unmasking"}, "without = 'str': must be a list or another sequence of text"),
        ({"names": {"N": 3, "k": 2, "d": 1}}, "names = '[A-Z]': must be with a value of this symbol"),
        ({"names": {**NAMES, "H": 0}}, "names = 'H': must be one of N, S, V, d, k$"),
        ({"names": {**NAMES, "C": 0}}, "names = 'C': must be one of "),
        ({"names": {**NAMES, "K": 1}}, "names = 'K': must be one of N, S, V, d, k(; k is close)?$"),
        ({"names": dict[Any, Any](NAMES) | {3: 1}}, "names = 3: must be one of "),
        ({"names": {"N": 2.5, "k": 2, "d": 1, "S": 3, "V": 0}}, "N = 2.5: must be an integer >= 0"),
        ({"names": None}, "names = 'NoneType': must be a mapping"),
    ],
)
def test_bytes_of_what_no_table_has_are_refused(changed: dict[str, Any], said: str) -> None:
    right: dict[str, Any] = {"page": "secagg.md", "role": "server", "names": NAMES}
    assert traffic.sent(**right) > 0
    with pytest.raises(ParameterError, match=f"^{said}"):
        traffic.sent(**{**right, **changed})


@pytest.mark.parametrize("name", ["N", "T", "left"])
@pytest.mark.parametrize("number", [-1, "3", 3.0, None])
def test_a_threshold_is_for_numbers_of_users(name: str, number: Any) -> None:
    right: dict[str, Any] = {"N": 9, "T": 2, "left": 8}
    assert choices.threshold(**right) == 6
    with pytest.raises(ParameterError, match=rf"^{name} = .*: must be an integer in \[0, 4294967295\]$"):
        choices.threshold(**{**right, name: number})


def test_rounds_are_counted_in_a_table_of_steps() -> None:
    table: Any = (*secagg.TABLE, "upload")
    with pytest.raises(ParameterError, match=r"^table = 'str': must be of the class Step$"):
        choices.rounds_of(table)


@pytest.mark.parametrize("allowed", [0.5, "1", None, Fraction(-1), Fraction(3, 2)])
def test_what_is_allowed_is_a_probability_also_for_one_round(allowed: Any) -> None:
    with pytest.raises(ParameterError, match=r"^allowed = .*: must be a fraction in \[0, 1\]$"):
        choices.alone(LOOSE, allowed)


def test_a_plan_that_there_is_not_says_why() -> None:
    with pytest.raises(choices.Fails, match="SAG-01"):
        choices.secagg_plan(replace(LOOSE, users=3, colluders=Fraction(99, 100)))


def test_a_protocol_that_there_is_not_is_refused_with_the_one_that_is_close() -> None:
    with pytest.raises(ParameterError, match=r"^key = 'SecAgg': must be one of .*; secagg is close$"):
        answer("SecAgg", LOOSE)
    with pytest.raises(ParameterError, match=r"^protocol = 'SecAgg': must be one of .*; secagg is close$"):
        next(nearest(LOOSE, "SecAgg"))


@pytest.mark.requirement("PLN-06")
def test_plans_of_a_million_users_hold_no_matrix_of_their_size() -> None:
    found = chosen("lightsecagg", Wish(10**6, 2**32 - 1, Fraction(1, 10), Fraction(1, 10)))
    assert found.parameters() is None
    assert found.sends > 4 * (2**32 - 1)


# ---------------------------------------------------------------------------------------------------------- wishes


NO_RATES = (Fraction(1), Fraction(2), Fraction(10**400, 3), Fraction(1, 2**1000 + 1), 1 - Fraction(1, 2**53 + 1))


@pytest.mark.requirement("PLN-01")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("asynchronous", value) for value in ("no", 0, None)],
        *[("users", value) for value in (2, 10**6 + 1, -5)],
        *[("dimension", value) for value in (0, 2**32, 10**12)],
        *[("rounds", value) for value in (0, 10**4 + 1)],
        *[(name, value) for name in ("dropout", "colluders") for value in (Fraction(-1), *NO_RATES)],
        *[(name, value) for name in ("failure", "leak") for value in (Fraction(0), Fraction(-1), *NO_RATES)],
        *[("clip", Fraction(value)) for value in (0, -1, 2**32 + 1, Fraction(1, 2**65), Fraction(1, 10**400))],
    ],
)
def test_a_number_outside_its_range_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"^{name} = "):
        replace(LOOSE, **{name: value})


@pytest.mark.requirement("PLN-01")
def test_the_ends_of_all_ranges_are_taken() -> None:
    tiny, almost = Fraction(1, 2**1000), 1 - Fraction(1, 2**53)
    for users, dimension, rounds, rate, clip, allowed in (
        (3, 1, 1, Fraction(0), Fraction(1, 2**64), tiny),
        (3, 1, 1, tiny, Fraction(1, 2**64), tiny),
        (10**6, 2**32 - 1, 10**4, almost, Fraction(2**32), almost),
    ):
        Wish(users, dimension, rate, rate, rounds, False, clip, allowed, allowed)
