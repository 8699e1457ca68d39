"""The probabilities of a plan against exact sums, and what they decide."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from math import comb
from typing import Any

import flint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.quantizer import largest_level
from secagg_spec.errors import ParameterError
from secagg_spec.planning import odds
from secagg_spec.planning.choices import PROTOCOLS, alone
from secagg_spec.planning.plan import plan
from secagg_spec.planning.wishes import Wish
from tests.harden.engine import bounded

RATES = st.fractions(0, 1, max_denominator=1000)
SMALL_RATES = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)
SLACK = 1 + Fraction(1, 2**60)
LEAST, MOST = Fraction(1, 2**1000), 1 - Fraction(1, 2**53)
WIDEST = [
    Wish(10**6, 10, LEAST, Fraction(1, 2), rounds=10**4),
    Wish(10**6, 20, Fraction(1, 3), Fraction(1, 3), failure=MOST, leak=MOST),
]


def tail(trials: int, rate: Fraction, least: int) -> Fraction:
    """The exact probability of at least so many hits."""
    hits = range(max(least, 0), trials + 1)
    return sum((comb(trials, i) * rate**i * (1 - rate) ** (trials - i) for i in hits), Fraction(0))


CALLS: dict[Callable[..., Any], dict[str, Any]] = {
    odds.at_least: {"trials": 5, "rate": Fraction(1, 3), "least": 2, "allowed": Fraction(1, 2)},
    odds.fewer_than: {"trials": 5, "rate": Fraction(1, 3), "bound": 2, "allowed": Fraction(1, 2)},
    odds.exactly_at_least: {"trials": 5, "rate": Fraction(1, 3), "least": 2},
    odds.some: {"trials": 5, "rate": Fraction(1, 3)},
    odds.least_dropouts: {"users": 5, "rate": Fraction(1, 3), "allowed": Fraction(1, 2)},
    odds.without_companions: {"rounds": 3, "rate": Fraction(1, 3), "others": 4, "least": 1, "stop": Fraction(1, 2)},
    odds.exactly_without_companions: {"rounds": 3, "rate": Fraction(1, 3), "others": 4, "least": 1},
    odds.first: {"low": 2, "high": 5},
    odds.logarithm: {"value": Fraction(1, 3)},
    odds.short: {"number": Fraction(1, 3)},
}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: str(call.__name__))
def test_what_is_no_number_and_no_probability_is_refused(call: Callable[..., Any]) -> None:
    arguments = CALLS[call]
    call = partial(call, holds=lambda number: number > 3) if call is odds.first else call
    call(**arguments)
    for name, right in arguments.items():
        above = name in {"value", "number", "stop"}
        fractions = [0.5, "1/3", True, None, 1, Fraction(-1, 3), *([] if above else [Fraction(3, 2)])]
        wrong = fractions if isinstance(right, Fraction) else [2.0, "2", True, None, Fraction(2), 2**70, -(2**70)]
        for value in wrong:
            with pytest.raises(ParameterError, match=rf"^{name} = .*: must be a"):
                call(**{**arguments, name: value})


def test_a_bound_is_settled_by_fractions_alone() -> None:
    right: dict[str, Any] = dict.fromkeys(("bound", "allowed", "error"), Fraction(1, 2))
    assert odds.settled(exact=lambda: flint.fmpq(1, 2), **right) == Fraction(1, 2)
    for name in right:
        with pytest.raises(ParameterError, match=rf"^{name} = 'str': must be of the class Fraction$"):
            odds.settled(exact=lambda: flint.fmpq(1, 2), **{**right, name: "1/2"})


def test_the_first_number_is_between_its_ends() -> None:
    truths: Any = (lambda number: number > 3, lambda number: "yes" if number > 3 else None)
    assert [odds.first(0, 2**62, holds) for holds in truths] == [4, 4]
    assert odds.first(0, 3, truths[0]) == 3
    with pytest.raises(ParameterError, match=r"^high = 4: must be an integer in \[5, "):
        odds.first(5, 4, truths[0])


def test_an_exact_probability_that_is_too_long_is_refused_as_such() -> None:
    calls: tuple[Callable[[], Any], ...] = (
        lambda: odds.exactly_at_least(10**6, Fraction(1, 3**9), 2),
        lambda: odds.exactly_without_companions(10**4, Fraction(1, 3), 9, 2),
    )
    for call in calls:
        with pytest.raises(odds.TooLong, match=r"^bits of the exact probability = \d+: must be at most 2097152$"):
            call()


def test_a_probability_that_has_too_many_digits_is_refused_as_such() -> None:
    said = r"^bits of the probability = \d+: must be at most 134217728$"
    with bounded(5):  # as fractions the first took 19 s, and the second all memory
        for rate in (Fraction(1, 2**1000), Fraction(1, 2**20_000)):
            for call in (odds.at_least, lambda n, p, k: odds.fewer_than(n, 1 - p, n - k + 1)):
                with pytest.raises(odds.TooLong, match=said):
                    call(10**6, rate, 10**6)
        assert odds.at_least(2**16, Fraction(1, 2**1000), 2**16) > 0


@pytest.mark.requirement("PLN-03")
@pytest.mark.parametrize("trials", [2, 100, 3000])
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(9, 10)])
def test_a_tail_on_either_side_of_the_mean_is_certified(trials: int, rate: Fraction) -> None:
    for least in {1, 2, trials // 10, int(trials * rate), int(trials * rate) + 1, trials} - {0}:
        exact = odds.exactly_at_least(trials, rate, least)
        found = odds.at_least(trials, rate, least)
        above = flint.fmpq(found.numerator, found.denominator) - exact
        assert 0 <= above <= exact * flint.fmpq(1, 2**60)


@pytest.mark.parametrize(("rate", "least"), [(Fraction(9, 10), 2), (Fraction(1, 10), 999_999), (Fraction(1, 2), 1)])
def test_a_tail_far_from_the_mean_takes_no_minutes(rate: Fraction, least: int) -> None:
    """Each takes a fraction of a second, and the first took more than 46 s as the sum of nearly all terms."""
    with bounded(10):
        assert odds.at_least(10**6, rate, least) <= 1


@pytest.mark.requirement("PLN-03")
@given(st.integers(1, 80), RATES, st.integers(-1, 82))
def test_a_tail_is_at_least_the_exact_sum_and_hardly_more(trials: int, rate: Fraction, least: int) -> None:
    exact, found = tail(trials, rate, least), odds.at_least(trials, rate, least)
    assert exact <= found <= min(Fraction(1), exact * SLACK)
    below, found = 1 - tail(trials, rate, least), odds.fewer_than(trials, rate, least)
    assert below <= found <= min(Fraction(1), below * SLACK)


@pytest.mark.requirement("PLN-03")
def test_a_tail_of_a_million_users_is_certified_however_small() -> None:
    rare = odds.at_least(10**6, Fraction(1, 10), 200_000)
    assert 0 < rare < Fraction(1, 2**60_000)
    assert odds.at_least(10**6, Fraction(1, 10), 10**6) == pytest.approx(0)
    whole = odds.at_least(10**6, Fraction(1, 2), 10**6)
    assert Fraction(1, 2**10**6) <= whole <= SLACK * Fraction(1, 2**10**6)


@pytest.mark.requirement("PLN-04")
@given(st.integers(1, 60), RATES.filter(lambda rate: rate < 1), st.integers(1, 40))
def test_D_is_the_least_number_that_is_rarely_exceeded(users: int, rate: Fraction, bits: int) -> None:
    allowed = Fraction(1, 2**bits)
    D = odds.least_dropouts(users, rate, allowed)
    assert odds.at_least(users, rate, D + 1) <= allowed
    assert D == 0 or tail(users, rate, D) > allowed / SLACK


@pytest.mark.requirement("PLN-04")
@pytest.mark.parametrize(
    ("rate", "allowed", "D"), [(0, 1, 0), (1, 1, 0), (Fraction(9, 10), 1, 0), (1, Fraction(1, 2), 3)]
)
def test_D_where_everybody_drops_out_or_anything_is_allowed(rate: Fraction, allowed: Fraction, D: int) -> None:
    assert odds.least_dropouts(3, Fraction(rate), Fraction(allowed)) == D


@pytest.mark.requirement("PLN-04")
@pytest.mark.parametrize(
    ("users", "rate", "D"),
    [(3, Fraction(1, 10), 0), (4, Fraction(1, 2), 1), (57, Fraction(1, 2), 28), (100, Fraction(1, 2), 99)],
)
def test_a_probability_that_is_just_allowed_is_allowed(users: int, rate: Fraction, D: int) -> None:
    exact = tail(users, rate, D + 1)
    assert odds.least_dropouts(users, rate, exact) == D
    assert odds.least_dropouts(users, rate, exact * (1 - Fraction(1, 2**300))) == D + 1
    assert odds.at_least(users, rate, D + 1, exact) == exact


@pytest.mark.requirement("PLN-04")
def test_half_of_many_users_drop_out_with_a_probability_of_one_half_exactly() -> None:
    assert odds.least_dropouts(20_001, Fraction(1, 2), Fraction(1, 2)) == 10_000


@pytest.mark.requirement("PLN-03")
def test_where_the_exact_probability_is_too_long_the_bound_stays() -> None:
    rate, bound = Fraction(1, 2**1000), Fraction(1, 2)
    allowed = bound - Fraction(1, 2**70)
    assert odds.settled(bound, allowed, lambda: odds.exactly_at_least(10**6, rate, 1), odds.ERROR) == bound
    assert odds.settled(bound, allowed, lambda: odds.exactly_without_companions(10**4, rate, 9, 1), odds.ERROR) == bound


@given(st.integers(1, 30), RATES, st.integers(-1, 32), st.integers(1, 4))
def test_exact_probabilities_are_those_of_the_formulas(trials: int, rate: Fraction, least: int, rounds: int) -> None:
    exact = tail(trials, rate, least)
    assert odds.exactly_at_least(trials, rate, least) == flint.fmpq(exact.numerator, exact.denominator)
    others, few = min(trials, 8), max(1, min(least, 5))
    both = companions(rounds, rate, others, few)
    assert odds.exactly_without_companions(rounds, rate, others, few) == flint.fmpq(both.numerator, both.denominator)


def companions(rounds: int, rate: Fraction, others: int, least: int) -> Fraction:
    """The same as `without_companions`, from all patterns of rounds of a user and of the others."""
    total = Fraction(0)
    for own in product((0, 1), repeat=rounds):
        if any(own):
            one = (1 - rate) ** sum(own) * rate ** (rounds - sum(own))
            total += one * (1 - tail(others, one, least))
    return total


@pytest.mark.requirement("PLN-03", "PLN-05")
@given(st.integers(1, 5), SMALL_RATES, st.integers(0, 8), st.integers(1, 4))
def test_who_is_in_the_same_rounds_is_counted_over_all_patterns(
    rounds: int, rate: Fraction, others: int, least: int
) -> None:
    exact = companions(rounds, rate, others, least)
    found = odds.without_companions(rounds, rate, others, least, Fraction(1))
    assert exact <= found <= exact * (1 + Fraction(1, 2**50)) + Fraction(1, 2**60)
    stop = exact / 2
    if stop:
        assert stop < odds.without_companions(rounds, rate, others, least, stop) <= exact * (1 + Fraction(1, 2**50))


@pytest.mark.requirement("PLN-01", "PLN-05")
@pytest.mark.parametrize(
    ("rate", "least", "stop", "expected"),
    [
        (Fraction(1, 2**1000), 1, Fraction(1, 2**40), Fraction(10**4, 2**1000)),
        (Fraction(1, 2**1000), 3, Fraction(1, 2**1000), Fraction(10**4, 2**1000)),
        (1 - Fraction(1, 2**53), 1, 1 - Fraction(1, 2**53), Fraction(10**4, 2**53)),
    ],
)
def test_the_most_rounds_are_summed_at_each_end_of_the_rates(
    rate: Fraction, least: int, stop: Fraction, expected: Fraction
) -> None:
    with bounded(5):  # Fractions with the power of a rate as denominator, of 10^7 bits, took hours
        found = odds.without_companions(10**4, rate, 10**6, least, stop)
    assert abs(found - expected) <= expected / 2**32


@pytest.mark.requirement("PLN-03", "PLN-05")
@pytest.mark.parametrize("wish", WIDEST, ids=lambda wish: f"{wish.users} users")
def test_a_plan_of_the_widest_wishes_takes_seconds(wish: Wish) -> None:
    with bounded(10):
        assert len(plan(wish).choices) + len(plan(wish).out) == len(PROTOCOLS)


@pytest.mark.requirement("PLN-03")
@given(st.integers(1, 80), RATES)
def test_that_any_trial_happens_is_known_well_enough_for_a_tail_of_it(trials: int, rate: Fraction) -> None:
    exact, found = 1 - (1 - rate) ** trials, odds.some(trials, rate)
    assert exact <= found <= min(Fraction(1), exact * (1 + Fraction(1, 2**1000)))


@pytest.mark.parametrize(("trials", "bits"), [(3, 30_000), (10**6, 20_000), (2000, 1100)])
def test_that_any_trial_happens_is_known_as_well_where_it_hardly_does(trials: int, bits: int) -> None:
    rare = Fraction(1, 2**bits)
    found = odds.some(trials, rare)  # between the first two of the sums of inclusion and exclusion
    assert trials * rare * (1 - trials * rare) <= found <= trials * rare * (1 + Fraction(1, 2**1000))
    assert odds.some(trials, Fraction(1)) == 1


@pytest.mark.requirement("PLN-05")
def test_a_rate_below_all_floating_point_numbers_is_a_rate() -> None:
    assert odds.without_companions(3, Fraction(1, 10**400), 7, 2, Fraction(1)) <= 2 * odds._TINY
    assert alone(Wish(9, 1, Fraction(1, 2**1000), Fraction(1, 9), rounds=3), Fraction(1, 2**40)) <= Fraction(1, 2**990)


def test_without_dropouts_everybody_has_all_others_as_companions() -> None:
    assert odds.without_companions(9, Fraction(0), 3, 4, Fraction(1)) == 1
    assert odds.without_companions(9, Fraction(0), 3, 3, Fraction(1)) == 0
    assert alone(Wish(9, 1, Fraction(0), Fraction(0), rounds=9), Fraction(0)) == 0
    assert alone(Wish(9, 1, Fraction(1, 2), Fraction(0)), Fraction(0)) == 0
    wish = Wish(9, 1, Fraction(1, 9), Fraction(1, 9), rounds=3, leak=Fraction(99, 100))
    assert alone(wish, wish.leak) >= min(Fraction(1), 8 * companions(3, Fraction(1, 9), 7, 1))


@pytest.mark.requirement("PLN-07", "QNT-04")
@given(st.integers(2, 2**32), st.integers(1, 10**6), st.fractions(Fraction(1, 10**6), 10**6, max_denominator=10**6))
def test_a_level_is_the_largest_power_of_two_that_cannot_wrap(modulus: int, weight: int, clip: Fraction) -> None:
    def fits(level: int) -> bool:
        largest = level * clip
        return -(-largest.numerator // largest.denominator) * weight <= (modulus - 1) // 2

    level = largest_level(modulus, weight, clip)
    assert level == 0 or (level.bit_count() == 1 and fits(level))
    assert level == 2**32 or not fits(max(2 * level, 1))


@pytest.mark.requirement("PLN-05")
def test_who_hides_a_user_is_honest() -> None:
    wish = Wish(9, 1, Fraction(1, 9), Fraction(4, 9), rounds=2, leak=Fraction(99, 100))
    exact = 5 * companions(2, Fraction(1, 9), 4, 1)
    assert exact <= alone(wish, wish.leak) <= exact * (1 + Fraction(1, 2**40))
    nobody = Wish(9, 1, Fraction(1, 9), Fraction(9, 10), rounds=2)
    assert nobody.colluding == nobody.users
    assert alone(nobody, Fraction(1, 2)) == 0
