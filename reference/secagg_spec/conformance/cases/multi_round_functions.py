"""Cases of Multi-RoundSecAgg, one function at a time: numbers, choices, choices of a round and survivors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

from hypothesis import strategies as st

from secagg_spec.conformance.adapter.capabilities import Capabilities
from secagg_spec.conformance.cases import multi_round_numbers, strategies
from secagg_spec.conformance.cases import multi_round_oracles as oracles
from secagg_spec.conformance.cases.lightsecagg_parties import ROUNDS, session_id
from secagg_spec.conformance.cases.multi_round_oracles import STRATEGIES, Numbers
from secagg_spec.conformance.cases.neighbours import one_of
from secagg_spec.conformance.cases.requests import Make, Valid
from secagg_spec.conformance.sessions.choices import among

MAX_FREQUENCY = 2**31 - 1
"""The largest number that is asked about, because JSON integers are below 2**31."""


def numbers(
    draw: Any,
    caps: Capabilities,
    operation: str,
    sizes: range = multi_round_numbers.SIZES,
    *,
    fewest: int = 1,
    spare: int = 0,
    whole: bool = False,
) -> Numbers:
    """Draw numbers with at least `spare` batches more than a round has. A round has at least `fewest` batches.

    A batch has one of `sizes`, or more where that is declared. Where no such numbers are declared, a round may have
    fewer batches, and fewer may be left over.
    """
    if multi_round_numbers.narrowed(caps, operation):
        found = multi_round_numbers.fitting(caps, operation, sizes, fewest=fewest, spare=spare, whole=whole)
        found = found or multi_round_numbers.fitting(caps, operation, sizes, whole=whole)
        size = draw(among(sorted({p.T for p in found})))
        return one_of(draw, [p for p in found if size == p.T])
    size = sizes[0] if len(sizes) == 1 else draw(st.integers(sizes[0], sizes[-1]))
    per_round = 1 if whole else draw(st.integers(fewest, max(fewest, multi_round_numbers.PER_ROUND)))
    batches = per_round + draw(st.integers(spare, multi_round_numbers.SPARE))
    return Numbers(batches * size, per_round * size, size)


def wrong_numbers(p: Numbers) -> dict[str, dict[str, int]]:
    """Return changes of N, K and T that break MRA-01, by name."""
    T = p.T + 1
    wrong = {
        "no batch": {"T": 0},
        "a negative batch": {"T": -p.T},
        "nobody in a round": {"K": 0},
        "a negative round": {"K": -p.K},
        "a round larger than the roster": {"K": p.N + p.T},
        "a batch larger than a round": {"T": 2 * p.K, "N": 2 * p.K * p.batches},
        "nobody on the roster": {"N": 0},
        "a roster that is no multiple of T": {"T": T, "K": p.per_round * T, "N": p.batches * T + 1},
        "a round that is no multiple of T": {"T": T, "K": p.per_round * T + 1, "N": (p.batches + 1) * T},
    }
    return {name: {**p.members(), **changed} for name, changed in wrong.items()}


def per_round(wrong: Mapping[str, int]) -> int:
    """Return how many batches make one round, for numbers that need not fit together."""
    return wrong["K"] // wrong["T"] if wrong["T"] > 0 else 0


@dataclass(frozen=True)
class Choice:
    """What a choice is made from, and its draws."""

    numbers: Numbers
    strategy: str
    frequencies: tuple[int, ...]
    available: tuple[int, ...]
    draws: tuple[int, ...] = ()

    @property
    def rest(self) -> tuple[Numbers, str, tuple[int, ...], tuple[int, ...]]:
        """The arguments of the oracle's functions."""
        return self.numbers, self.strategy, self.frequencies, self.available

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        given = {"frequencies": list(self.frequencies), "available": list(self.available)}
        return {**self.numbers.members(), "strategy": self.strategy, **given, **changed}

    def rand(self, draws: Sequence[int] | None = None) -> dict[str, Any]:
        """Return the sampled values."""
        return {"draws": list(self.draws if draws is None else draws)}

    def users(self) -> list[int] | None:
        """Return the users that these draws choose."""
        given = iter(self.draws)
        return oracles.chosen(*self.rest, lambda bound: next(given))


def strategy_numbers(draw: Any, caps: Capabilities, strategy: str) -> Numbers:
    """Draw numbers that fit a strategy."""
    return numbers(draw, caps, multi_round_numbers.BATCH, **multi_round_numbers.of_strategy(strategy))


def declared_strategies(caps: Capabilities, among_them: Sequence[str] = STRATEGIES) -> tuple[str, ...]:
    """Return the strategies that an adapter declares, of some, and for which it declares numbers that fit."""
    listed = caps.range(multi_round_numbers.BATCH, "strategy")
    fit, of_strategy = multi_round_numbers.fit, multi_round_numbers.of_strategy
    known = (name for name in among_them if name in listed)
    return tuple(name for name in known if fit(caps, multi_round_numbers.BATCH, **of_strategy(name)))


def choice(draw: Any, caps: Capabilities, strategy: str = "", *, lack: int = 0) -> Choice:
    """Draw a choice for which there is a round, or for which `lack` batches are missing.

    Users that are rarely in a sum are sometimes in an incomplete batch. Where numbers are declared, batches may be
    large, and the least frequency of each would be 0; so the batches differ by a draw of their own.
    """
    name = strategy or draw(among(declared_strategies(caps)))
    p = strategy_numbers(draw, caps, name)
    most = p.per_round - lack if lack else p.batches
    fewest = max(0, most) if lack else p.per_round
    usable = sorted(strategies.subset(draw, range(p.batches), fewest, max(0, most)))
    here = [user for batch in range(p.batches) for user in _here(draw, p, batch, batch in usable)]
    often = frequencies(draw, p.N)
    if multi_round_numbers.narrowed(caps, multi_round_numbers.BATCH):
        levels = draw(st.lists(st.integers(0, 2), min_size=p.batches, max_size=p.batches))
        often = tuple(min(f + levels[user // p.T], MAX_FREQUENCY) for user, f in enumerate(often))
    if draw(st.booleans()):
        often = tuple(min(f + (user // p.T in usable), MAX_FREQUENCY) for user, f in enumerate(often))
    return with_draws(draw, Choice(p, name, often, tuple(strategies.shuffled(draw, here))))


def _here(draw: Any, p: Numbers, batch: int, complete: bool) -> list[int]:
    """Draw the available users of a batch: all, or not all."""
    users = p.users([batch])
    return users if complete else strategies.subset(draw, users, 0, p.T - 1)


def frequencies(draw: Any, count: int) -> tuple[int, ...]:
    """Draw how often each user was in a sum: all equal, few values, some with an extra digit, or arbitrary."""
    kind = draw(among(("few", "few", "few", "digits", "alike", "any")))
    if kind == "alike":
        return (int(draw(among((0, 1, MAX_FREQUENCY)))),) * count
    any_size = st.sampled_from((0, 1, 2**16, MAX_FREQUENCY - 1, MAX_FREQUENCY))
    some = {"few": st.integers(0, 2), "digits": st.sampled_from((9, 10)), "any": any_size}[kind]
    return tuple(draw(st.lists(some, min_size=count, max_size=count)))


def with_draws(draw: Any, made: Choice) -> Choice:
    """Draw the draws of a choice."""
    draws = [draw(st.integers(0, bound - 1)) for bound in oracles.bounds(*made.rest)]
    return Choice(made.numbers, made.strategy, made.frequencies, made.available, tuple(draws))


def few_numbers(caps: Capabilities, name: str, most: int) -> list[Numbers]:
    """Return declared numbers under which some available batches leave at least two and at most `most` results."""
    conditions = multi_round_numbers.of_strategy(name)
    found = multi_round_numbers.fitting(caps, multi_round_numbers.BATCH, spare=1, **conditions)
    return [p for p in found if p.per_round < most]


def _few_batches(draw: Any, caps: Capabilities, name: str, most: int) -> tuple[Numbers, Sequence[int]]:
    """Draw numbers, and the batches that are not available, so that at most `most` sets are left."""
    if multi_round_numbers.narrowed(caps, multi_round_numbers.BATCH):
        p = one_of(draw, few_numbers(caps, name, most))
        counts = [count for count in range(p.per_round + 1, p.batches + 1) if comb(count, p.per_round) <= most]
        gone = p.batches - int(draw(among(counts)))
        return p, strategies.subset(draw, range(p.batches), gone, gone)
    per_round = 1 if name == "partition" else draw(st.integers(1, 2))
    size = 1 if name in oracles.SEPARATE else draw(st.integers(1, 2))
    usable = per_round + draw(st.integers(1, 2 if per_round == 2 else most - 1))
    batches = usable + draw(st.integers(0, 1))
    lacking = [draw(st.integers(0, batches - 1))] if batches > usable else []
    return Numbers(batches * size, per_round * size, size), lacking


def few_sets(draw: Any, caps: Capabilities, name: str, most: int) -> Choice:
    """Draw a choice with at least two and at most `most` possible results, none of them very rare."""
    p, lacking = _few_batches(draw, caps, name, most)
    here = tuple(user for user in range(p.N) if user // p.T not in lacking)
    few = st.lists(st.integers(0, 1), min_size=p.N, max_size=p.N)
    often = draw(few) if name in (*oracles.BY_FREQUENCY, "fair") else [0] * p.N
    made = Choice(p, name, tuple(often), here)
    alike = Choice(p, name, (0,) * p.N, here)
    return made if 1 < len(oracles.odds(*made.rest)) <= most else alike


@dataclass(frozen=True)
class Asked:
    """A user that joins a round, and the survivors that it is asked about, with their numbers in the round."""

    numbers: Numbers
    c: int
    user: int
    chosen: tuple[int, ...]
    survivors: tuple[int, ...]

    def params(self, **changed: Any) -> dict[str, Any]:
        """Return the ``params`` of a request, with some changed."""
        given = {"chosen": list(self.chosen), "survivors": list(self.survivors)}
        return {**self.numbers.members(), "c": self.c, "user": self.user, **given, **changed}


def colluding(draw: Any, caps: Capabilities, operation: str, *, fewest: int = 1, spare: int = 0) -> tuple[Numbers, int]:
    """Draw numbers of a session with colluders, and the number of these."""
    p = numbers(draw, caps, operation, multi_round_numbers.COLLUDING, fewest=fewest, spare=spare)
    return p, draw(st.integers(1, p.T - 2))


def wrong_colluders(p: Numbers) -> dict[str, dict[str, int]]:
    """Return numbers of colluders that break MRA-17, by name."""
    return {
        "nobody colludes": {"c": 0},
        "a negative number of colluders": {"c": -1},
        "a batch of c + 1 users": {"c": p.T - 1},
        "a batch that colludes as a whole": {"c": p.T},
    }


def set_of_family(draw: Any, p: Numbers) -> list[int]:
    """Draw a set that may be chosen. Its users are in ascending order."""
    return p.users(strategies.subset(draw, range(p.batches), p.per_round, p.per_round))


def asked(draw: Any, caps: Capabilities, *, fewest: int = 1, spare: int = 0) -> Asked:
    """Draw a right request: some batches of the round survive, including the user's."""
    p, c = colluding(draw, caps, multi_round_numbers.REQUEST, fewest=fewest, spare=spare)
    chosen = set_of_family(draw, p)
    place = draw(st.integers(0, p.K - 1))
    others = [batch for batch in range(p.per_round) if batch != place // p.T]
    batches = [place // p.T, *strategies.subset(draw, others, 0)]
    return Asked(p, c, chosen[place], tuple(chosen), tuple(p.users(batches)))


def _session(draw: Any, caps: Capabilities) -> Valid:
    p = numbers(draw, caps, multi_round_numbers.SESSION)
    about = {"session": session_id(draw).hex(), "round": str(draw(among(ROUNDS)))}
    return Valid({**p.members(), **about, "chosen": set_of_family(draw, p)})


def _complete(draw: Any, caps: Capabilities) -> Valid:
    p, c = colluding(draw, caps, multi_round_numbers.COMPLETE)
    return Valid({**p.members(), "c": c, "arrived": arrived(draw, p)})


def arrived(draw: Any, p: Numbers) -> list[int]:
    """Draw the users whose masked inputs came: whole batches, and parts of some, in any order."""
    missing: list[int] = []
    for batch in range(p.per_round):
        missing += strategies.subset(draw, p.users([batch]), 0, draw(among((0, 1, p.T))))
    return strategies.shuffled(draw, [user for user in range(p.K) if user not in missing])


VALID: dict[str, Make] = {
    multi_round_numbers.FAMILY: lambda draw, caps: Valid(numbers(draw, caps, multi_round_numbers.FAMILY).members()),
    multi_round_numbers.BATCH: lambda draw, caps: Valid.of(choice(draw, caps)),
    multi_round_numbers.SESSION: _session,
    multi_round_numbers.COMPLETE: _complete,
    multi_round_numbers.REQUEST: lambda draw, caps: Valid(asked(draw, caps).params()),
}
