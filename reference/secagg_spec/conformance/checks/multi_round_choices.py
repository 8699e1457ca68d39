"""Checks of the choice of users for a round, ``select.batch`` (spec/multi-round.md, section 3)."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise, product
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import multi_round_oracles as oracles
from secagg_spec.conformance.cases import strategies
from secagg_spec.conformance.cases.multi_round_functions import (
    Choice,
    choice,
    declared_strategies,
    few_numbers,
    few_sets,
    numbers,
    per_round,
    strategy_numbers,
    with_draws,
    wrong_numbers,
)
from secagg_spec.conformance.cases.multi_round_numbers import BATCH, fit, narrowed
from secagg_spec.conformance.cases.multi_round_oracles import SEPARATE, STRATEGIES, Numbers
from secagg_spec.conformance.checks import reject
from secagg_spec.conformance.checks.base import Caller, CheckFailed, Condition, check, equal, fail
from secagg_spec.conformance.checks.counting import demand_shares
from secagg_spec.conformance.sessions.choices import among

NUMBERS = reject.BAD_PARAM | reject.MALFORMED
DRAWS = FREQUENCIES = reject.BAD_PARAM | reject.LENGTH
USERS = reject.OUTSIDE | reject.TWICE | NUMBERS
"""The codes of the table of spec/adapter.md, section 5."""

_WITH_DRAWS = ("random", "uniform", "fair", "partition")
_SIZED = (*SEPARATE, "partition")
"""The strategies that do not support every batch size."""
_MANY = 1000
_FEW_SETS = 5
_MORE, _BATCHES = 4000, 20
"""Choices of one or two batches out of many. They expose a batch that is chosen unasked in every twelfth choice.

Its probability is then 0.129 instead of 0.05, or 0.175 instead of 0.1. In 4000 choices this has a surprise of 270 or
150 bits, and `demand_shares` tolerates 65.
"""


def _explicit(caps: Capabilities) -> bool:
    return caps.grade(BATCH) == "explicit"


def _drawing(caps: Capabilities) -> bool:
    return not _explicit(caps)


def _has(names: Sequence[str], condition: Condition = lambda caps: True) -> Condition:
    """Return the condition that one of some strategies is declared, and another condition."""
    return lambda caps: condition(caps) and bool(declared_strategies(caps, names))


def _declares(strategy: str, condition: Condition) -> Condition:
    return _has((strategy,), condition)


def _repeatable(caps: Capabilities) -> bool:
    return caps.grade(BATCH) != "none"


def _exact(strategy: str) -> None:
    @check(f"{BATCH}/{strategy}", "MRA-05", applies=_declares(strategy, _explicit))
    def exact(draw: Any, call: Caller) -> None:
        """The choice is the text's for the given draws."""
        made = choice(draw, call.caps, strategy)
        got, want = _chosen(call, made), made.users()
        equal(f"{_described(made)} with the draws {list(made.draws)} is", got, want)


for _strategy in STRATEGIES:
    _exact(_strategy)


@check(f"{BATCH}/fits", "MRA-03", "MRA-05")
def fits(draw: Any, call: Caller) -> None:
    """The choice is a set of the family with available users only, and some draws lead to it."""
    made = choice(draw, call.caps)
    got = _chosen(call, made)
    if got is None:
        fail(f"{_described(made)} is none, although there is one")
    fault = oracles.fault(*made.rest, got)
    if fault:
        fail(f"{_described(made)} is {got}: {fault}")


@check(f"{BATCH}/no-round", "MRA-04")
def no_round(draw: Any, call: Caller) -> None:
    """There is no round if too few users or batches are available. With just enough there is one."""
    made = choice(draw, call.caps, lack=draw(st.integers(1, 2)))
    got = _chosen(call, made)
    if got is not None:
        missing = f"of {made.numbers.per_round} batches {len(made.numbers.complete(made.available))} are complete"
        fail(f"{_described(made)} is {got}, although {missing}, so that there is no round")


@check(f"{BATCH}/just-enough", "MRA-04")
def just_enough(draw: Any, call: Caller) -> None:
    """If exactly as many batches are complete as a round needs, these are chosen."""
    made = choice(draw, call.caps)
    p = made.numbers
    kept = p.users(strategies.subset(draw, p.complete(made.available), p.per_round, p.per_round))
    others = [user for user in made.available if user not in kept]
    partial = [user for user in others if p.T > 1 and user % p.T]
    here = tuple(strategies.shuffled(draw, [*kept, *partial]))
    just = with_draws(draw, Choice(p, made.strategy, made.frequencies, here))
    got = _chosen(call, just)
    if got != kept:
        fail(f"{_described(just)} is {got}, must be {kept}, all that is there", kept)


@check(f"{BATCH}/order", "MRA-06", applies=_repeatable, examples=60)
def order(draw: Any, call: Caller) -> None:
    """The choice does not depend on the order in which the available users are named."""
    made = choice(draw, call.caps)
    other = Choice(made.numbers, made.strategy, made.frequencies, tuple(sorted(made.available)), made.draws)
    got, want = _chosen(call, made), _chosen(call, other)
    if got != want:
        fail(f"{_described(made)} is {got}, and {want} when the available users are named in ascending order", want)


@check(f"{BATCH}/no-memory", "MRA-06", applies=_repeatable, examples=40)
def no_memory(draw: Any, call: Caller) -> None:
    """A choice is repeated unchanged after another choice was made."""
    made, between = choice(draw, call.caps), choice(draw, call.caps)
    first = _chosen(call, made)
    _chosen(call, between)
    again = _chosen(call, made)
    if again != first:
        fail(f"{_described(made)} is {first}, and {again} after another choice", first)


def _often(strategy: str) -> None:
    def applies(caps: Capabilities) -> bool:
        return _drawing(caps) and (not narrowed(caps, BATCH) or bool(few_numbers(caps, strategy, _FEW_SETS)))

    @check(f"{BATCH}/often-{strategy}", "MRA-07", applies=_declares(strategy, applies), examples=3)
    def often(draw: Any, call: Caller) -> None:
        """Each set occurs as often as with uniform draws, and as often after each set as after any other.

        A right implementation fails with probability below 2**-59 per case, twice that of `demand_shares`.
        """
        made = few_sets(draw, call.caps, strategy, _FEW_SETS)
        seed = draw(st.integers(0, 2**32))
        likely = sorted(oracles.odds(*made.rest).items())
        sets = [list(users) for users, _ in likely]
        met = [_place(made, sets, _chosen(call, made, _seed(seed, at))) for at in range(_MANY)]
        shares = [float(share) for _, share in likely]
        named = f"{_described(made)}: the set number {{}} of {sets}"
        counts = Counter(met)
        demand_shares([counts[at] for at in range(len(sets))], shares, named)
        pairs = Counter(zip(met[::2], met[1::2], strict=True))
        both = list(product(range(len(sets)), range(len(sets))))
        after = f"{_described(made)}, two choices after each other: the pair number {{}} of {both} of the sets {sets}"
        demand_shares([pairs[pair] for pair in both], [shares[a] * shares[b] for a, b in both], after)


def _alike(strategy: str) -> None:
    size, each = 1 if strategy in SEPARATE else 2, 1 if strategy == "partition" else 2
    p = Numbers(_BATCHES * size, each * size, size)

    def applies(caps: Capabilities) -> bool:
        return _drawing(caps) and caps.declares(BATCH, p.members() | {"strategy": strategy})

    @check(f"{BATCH}/alike-{strategy}", "MRA-07", applies=applies, examples=1)
    def alike(draw: Any, call: Caller) -> None:
        """Of many equivalent batches, each occurs as often as any other, and each pair of successive ones too.

        A right implementation fails with probability below 2**-59, twice that of `demand_shares`.
        """
        made = Choice(p, strategy, (0,) * p.N, tuple(range(p.N)))
        met = [_batches(made, _chosen(call, made, _seed(0, at))) for at in range(_MORE)]
        counts = Counter(batch for batches in met for batch in batches)
        one = range(_BATCHES)
        both = list(product(one, one))
        demand_shares([counts[at] for at in one], each / _BATCHES, f"{_described(made)}: batch {{}}", of=_MORE)
        pairs = Counter(
            pair for first, second in zip(met[::2], met[1::2], strict=True) for pair in product(first, second)
        )
        after = f"{_described(made)}, two choices after each other: the pair number {{}} of {both} of batches"
        demand_shares([pairs[pair] for pair in both], (each / _BATCHES) ** 2, after, of=_MORE // 2)


for _strategy in STRATEGIES:
    _often(_strategy)
    _alike(_strategy)


def _seed(seed: int, at: int) -> int:
    return int.from_bytes(sha256(f"{seed} {at}".encode()).digest(), "little")


def _batches(made: Choice, got: list[int] | None) -> list[int]:
    if got is None:
        fail(f"{_described(made)} is none, although there is one")
    return sorted({user // made.numbers.T for user in got})


def _place(made: Choice, sets: list[list[int]], got: list[int] | None) -> int:
    if got not in sets:
        fail(f"{_described(made)} is {got}, must be one of {sets}", sets)
    return sets.index(got)


@check(f"{BATCH}/draws", "MRA-08", applies=_explicit, examples=60)
def draws(draw: Any, call: Caller) -> None:
    """More or fewer draws than the choice needs are refused, even if there is no round."""
    made = choice(draw, call.caps, lack=draw(among((0, 0, 1))))
    more = [*made.draws, draw(among((0, 1)))]
    wrong = more if not made.draws or draw(st.booleans()) else list(made.draws[:-1])
    why = f"{_described(made)} takes {len(made.draws)} draws, and {len(wrong)} are given"
    call.refused(BATCH, made.params(), DRAWS, why, made.rand(wrong))


@check(f"{BATCH}/draw-range", "MRA-08", applies=_has(_WITH_DRAWS, _explicit), examples=60)
def draw_range(draw: Any, call: Caller) -> None:
    """A draw is refused if it is negative or not below the number of items left to draw from."""
    made = choice(draw, call.caps, draw(among(declared_strategies(call.caps, _WITH_DRAWS))))
    bounds = oracles.bounds(*made.rest)
    at = draw(st.integers(0, len(bounds) - 1))
    wrong = list(made.draws)
    wrong[at] = draw(among((bounds[at], -1, bounds[at] + 1, -bounds[at], 2**31 - 1)))
    why = f"the draws {wrong} must be below {bounds}"
    call.refused(BATCH, made.params(), DRAWS, why, made.rand(wrong))


def _unfit(strategy: str) -> dict[str, Any]:
    """Return the conditions, as `numbers` takes them, on numbers that do not fit a strategy of `_SIZED`."""
    least, fewest = (1, 2) if strategy == "partition" else (2, 1)
    return {"sizes": range(least, 5), "fewest": fewest}


def _unfitting(caps: Capabilities) -> list[str]:
    """Return the strategies that an adapter declares, with numbers that do not fit them."""
    listed = caps.range(BATCH, "strategy")
    return [name for name in _SIZED if name in listed and fit(caps, BATCH, **_unfit(name))]


@check(f"{BATCH}/batch-size", "MRA-09", applies=lambda caps: bool(_unfitting(caps)), examples=60)
def batch_size(draw: Any, call: Caller) -> None:
    """A strategy is refused for a batch size that it does not support."""
    strategy = draw(among(_unfitting(call.caps)))
    p = numbers(draw, call.caps, BATCH, **_unfit(strategy))
    _refused(call, Choice(p, strategy, (0,) * p.N, tuple(range(p.N))), NUMBERS, f"T = {p.T} does not fit {strategy}")


@check(f"{BATCH}/frequencies", "MRA-09", examples=60)
def frequencies(draw: Any, call: Caller) -> None:
    """Frequencies are refused if one is missing, extra, or outside its range."""
    made = choice(draw, call.caps)
    wrong = list(made.frequencies)
    kind = draw(among(("more", "fewer", "negative", "large")))
    at = draw(st.integers(0, len(wrong) - 1))
    if kind == "more":
        wrong.append(0)
    elif kind == "fewer":
        wrong.pop()
    else:
        wrong[at] = -1 if kind == "negative" else 2**32
    why = f"there is a frequency {kind}" if len(wrong) != len(made.frequencies) else f"a frequency is {wrong[at]}"
    call.refused(BATCH, made.params(frequencies=wrong), FREQUENCIES, why, _rand(call, made))


@check(f"{BATCH}/available", "MRA-09", examples=60)
def available(draw: Any, call: Caller) -> None:
    """Available users are refused if one is named twice or is outside the roster."""
    made = choice(draw, call.caps)
    wrong = draw(among((draw(among(made.available)), made.numbers.N, -1, 2**31 - 1)))
    at = draw(st.integers(0, len(made.available)))
    named = [*made.available[:at], wrong, *made.available[at:]]
    why = f"the available users are {named}, of {made.numbers.N} users"
    call.refused(BATCH, made.params(available=named), USERS, why, _rand(call, made))


@check(f"{BATCH}/strategy", "ADP-40", examples=20)
def strategy(draw: Any, call: Caller) -> None:
    """A strategy that the text does not have is refused."""
    p = strategy_numbers(draw, call.caps, draw(among(declared_strategies(call.caps))))
    name = draw(among(("", "Random", "Uniform", "batch", "fairest", "weighted ", "none", "0")))
    _refused(call, Choice(p, name, (0,) * p.N, tuple(range(p.N))), NUMBERS, f"there is no strategy {name!r}")


@check(f"{BATCH}/numbers", "MRA-01", examples=60)
def wrong_n_k_t(draw: Any, call: Caller) -> None:
    """N, K and T that do not fit together are refused."""
    wrong = wrong_numbers(numbers(draw, call.caps, BATCH))
    name = draw(among(sorted(wrong)))
    N = max(wrong[name]["N"], 0)
    params = {
        **wrong[name],
        "strategy": declared_strategies(call.caps)[0],
        "frequencies": [0] * N,
        "available": list(range(N)),
    }
    rand = call.randomness(BATCH, {"draws": [0] * per_round(wrong[name])})
    call.refused(BATCH, params, NUMBERS, f"the numbers are wrong ({name}): {wrong[name]}", rand)


def _refused(call: Caller, made: Choice, codes: frozenset[str], why: str) -> None:
    """Demand a refusal, with draws that would be right if the broken rule did not exist."""
    draws = (0,) * len(oracles.bounds(*made.rest))
    call.refused(BATCH, made.params(), codes, why, _rand(call, Choice(*made.rest, draws)))


def _rand(call: Caller, made: Choice, seed: int = 1) -> dict[str, Any] | None:
    return call.randomness(BATCH, made.rand(), seed)


def _chosen(call: Caller, made: Choice, seed: int = 1) -> list[int] | None:
    """Ask for a choice."""
    got = call.result(BATCH, made.params(), _rand(call, made, seed))
    users: Any = got.get("chosen", "missing")
    listed = isinstance(users, list) and all(type(user) is int for user in users)
    if users is not None and not (listed and all(a < b for a, b in pairwise(users))):
        message = f"{BATCH}: chosen is {str(users)[:80]}, no list of users, ascending, and not null"
        raise CheckFailed("protocol", message)
    return None if users is None else list(users)


def _described(made: Choice) -> str:
    p = made.numbers
    about = f"N = {p.N}, K = {p.K}, T = {p.T}, frequencies {list(made.frequencies)}, available {list(made.available)}"
    return f"the {made.strategy} choice for {about}"
