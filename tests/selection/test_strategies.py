"""Every strategy against its row of the table, worked out on lists; all draws of small choices, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import resources
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.crypto.entropy import SeededSource, draw_below
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection.batches import Parameters
from secagg_spec.selection.strategies import STRATEGIES, Counts, Pool, choose, draw, ranges
from tests.quick import part, some
from tests.strategies import fewer

Chosen = tuple[int, ...] | None
TABLE = {"random": "1", "weighted": "1", "partition": "K", "uniform": "any", "fair": "any", "least": "any"}


@dataclass(frozen=True)
class Scene:
    """What a choice is made from."""

    parameters: Parameters
    strategy: str
    frequencies: tuple[int, ...]
    available: tuple[bool, ...]

    def given(self) -> tuple[Parameters, str, Counts, BoolArray]:
        """The arguments of a choice, but for the draws."""
        frequencies = np.array(self.frequencies, dtype=np.int64)
        return self.parameters, self.strategy, frequencies, np.array(self.available, dtype=np.bool_)

    def choose(self, draws: Sequence[int]) -> Chosen:
        """The choice."""
        return choose(*self.given(), draws)

    def ranges(self) -> tuple[int, ...] | None:
        """What the draws are below."""
        return ranges(*self.given())

    def draws(self) -> Iterator[tuple[int, ...]]:
        """All draws."""
        return product(*(range(bound) for bound in self.ranges() or ()))


@st.composite
def scenes(draw: st.DrawFn, most: int = 12, strategy: str | None = None) -> Scene:
    """Choices with few frequencies, so that there are ties, and any users available."""
    name = strategy or draw(st.sampled_from(sorted(STRATEGIES)))
    T = 1 if TABLE[name] == "1" else draw(st.integers(1, 4))
    per_round = 1 if TABLE[name] == "K" else draw(st.integers(1, max(1, most // T // 2)))
    N = T * draw(st.integers(per_round, max(per_round, most // T)))
    counts = st.sampled_from((0, 0, 0, 1, 1, 2, 2**32 - 1))
    away = draw(st.sets(st.integers(0, N - 1), max_size=draw(st.sampled_from((0, 1, 3, N)))))
    return Scene(
        Parameters(N, per_round * T, T),
        name,
        tuple(draw(st.lists(counts, min_size=N, max_size=N))),
        tuple(user not in away for user in range(N)),
    )


@st.composite
def drawn(draw: st.DrawFn, most: int = 12, strategy: str | None = None) -> tuple[Scene, tuple[int, ...]]:
    """Choices and draws for them."""
    scene = draw(scenes(most, strategy))
    return scene, tuple(draw(st.integers(0, bound - 1)) for bound in scene.ranges() or ())


# ------------------------------------------------------------------------------------------- the table, on lists


def taken(items: Sequence[int], draws: Sequence[int]) -> list[int]:
    """What is drawn of items: for each s, that at s changes places with that at s + r."""
    items = list(items)
    for s, r in enumerate(draws):
        items[s], items[s + r] = items[s + r], items[s]
    return items[: len(draws)]


def complete(scene: Scene) -> list[int]:
    """The batches of whom all users are available."""
    T = scene.parameters.T
    return [b for b in range(scene.parameters.N // T) if all(scene.available[b * T : b * T + T])]


def counts_of(scene: Scene, batches: Sequence[int]) -> dict[int, int]:
    """The frequencies of some batches, each the least of its users'."""
    T = scene.parameters.T
    return {b: min(scene.frequencies[b * T : b * T + T]) for b in batches}


def rarest(scene: Scene, batches: Sequence[int]) -> list[int]:
    """Those of some batches that have the least frequency of them."""
    count = counts_of(scene, batches)
    return [b for b in batches if count[b] == min(count.values())]


def oracle(scene: Scene, draws: Sequence[int]) -> Chosen:
    """The choice, by the row of the table."""
    p, here = scene.parameters, [user for user in range(scene.parameters.N) if scene.available[user]]
    if scene.strategy in {"random", "weighted"} and len(here) < p.K:
        return None
    if scene.strategy == "random":
        return tuple(sorted(taken(here, draws)))
    if scene.strategy == "weighted":
        return tuple(sorted(ascending(here, {user: scene.frequencies[user] for user in here}, p.K, draws)))
    batches = complete(scene)
    if len(batches) < p.K // p.T:
        return None
    if scene.strategy == "uniform":
        picked = taken(batches, draws)
    elif scene.strategy == "least":
        picked = ascending(batches, counts_of(scene, batches), p.K // p.T, draws)
    else:
        [first] = taken(rarest(scene, batches), draws[:1])
        picked = [first, *taken([b for b in batches if b != first], draws[1:])]
    return tuple(user for b in sorted(picked) for user in range(b * p.T, b * p.T + p.T))


def ascending(items: Sequence[int], counts: dict[int, int], wanted: int, draws: Sequence[int]) -> list[int]:
    """Items by ascending frequency: all of one while they fit, and some of the first that does not."""
    found: list[int] = []
    for count in sorted(set(counts.values())):
        level = [item for item in items if counts[item] == count]
        if len(found) + len(level) > wanted:
            return found + taken(level, draws)
        found += level
    return found


@pytest.mark.requirement("MRA-04", "MRA-05")
@given(drawn())
def test_a_choice_is_the_one_of_the_table_for_its_draws(given_: tuple[Scene, tuple[int, ...]]) -> None:
    scene, draws = given_
    assert scene.choose(draws) == oracle(scene, draws)


SMALL_ROSTERS = [("fair", 6, 4, 2), ("uniform", 6, 4, 2), ("weighted", 4, 2, 1), ("least", 6, 4, 2)]


@pytest.mark.requirement("MRA-04", "MRA-05")
@pytest.mark.parametrize(("strategy", "N", "K", "T"), part(2, SMALL_ROSTERS))
def test_every_choice_of_small_rosters(strategy: str, N: int, K: int, T: int) -> None:
    """All frequencies of 0, 1 and 2, everybody who may be there, all draws."""
    seen = 0
    for frequencies in some(9, product(range(3), repeat=N)):
        for available in some(3, product((True, False), repeat=N)):
            scene = Scene(Parameters(N, K, T), strategy, frequencies, available)
            for draws in scene.draws():
                assert scene.choose(draws) == oracle(scene, draws)
                seen += 1
    assert seen > 50


@pytest.mark.requirement("MRA-03")
@given(drawn())
def test_a_choice_is_nobody_or_a_set_of_the_family_of_available_users(given_: tuple[Scene, tuple[int, ...]]) -> None:
    scene, draws = given_
    p, chosen = scene.parameters, scene.choose(draws)
    if chosen is None:
        return
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) == p.K
    assert all(scene.available[user] for user in chosen)
    counts = Counter(user // p.T for user in chosen)
    assert set(counts.values()) == {p.T}


@pytest.mark.requirement("MRA-04")
@given(scenes())
def test_there_is_no_round_exactly_when_the_table_says_so(scene: Scene) -> None:
    p = scene.parameters
    whole = len(complete(scene))
    enough = {
        "random": sum(scene.available) >= p.K,
        "weighted": sum(scene.available) >= p.K,
        "partition": whole > 0,
        "uniform": whole * p.T >= p.K,
        "fair": whole * p.T >= p.K,
        "least": whole * p.T >= p.K,
    }[scene.strategy]
    assert (scene.ranges() is not None) == enough
    if not enough:
        assert scene.choose(()) is None


@pytest.mark.requirement("MRA-05")
@given(drawn())
def test_a_choice_is_made_again_with_the_same_draws(given_: tuple[Scene, tuple[int, ...]]) -> None:
    scene, draws = given_
    first = scene.choose(draws)
    assert scene.choose(list(draws)) == first
    assert scene.choose(tuple(np.array(draws, dtype=np.int64))) == first


@pytest.mark.requirement("MRA-05")
@given(scenes(), st.sampled_from((("random", "uniform"), ("weighted", "least"))))
def test_random_is_uniform_and_weighted_is_least_and_partition_is_fair(scene: Scene, names: tuple[str, str]) -> None:
    single = Parameters(scene.parameters.N, scene.parameters.K, 1)
    twin, alone = (Scene(single, name, scene.frequencies, scene.available) for name in names)
    bounds = alone.ranges()
    assert twin.ranges() == bounds
    draws = draw_below(SeededSource(b"one", "other"), bounds or ())
    assert alone.choose(draws) == twin.choose(draws)
    T = scene.parameters.T
    group = Scene(Parameters(scene.parameters.N, T, T), "fair", scene.frequencies, scene.available)
    same = Scene(group.parameters, "partition", scene.frequencies, scene.available)
    assert same.ranges() == group.ranges()
    assert [same.choose(draws) for draws in same.draws()] == [group.choose(draws) for draws in group.draws()]


# ----------------------------------------------------------------------------------------- what a choice depends on


@pytest.mark.requirement("MRA-06")
@given(drawn(), drawn())
def test_choices_before_change_nothing(one: Any, other: Any) -> None:
    (scene, draws), (second, more) = one, other
    first = scene.choose(draws)
    for _ in range(3):
        second.choose(more)
    parameters, strategy, frequencies, available = scene.given()
    assert choose(parameters, strategy, frequencies, available, draws) == first
    assert (frequencies.tolist(), available.tolist()) == (list(scene.frequencies), list(scene.available))


@pytest.mark.requirement("MRA-06")
@fewer(3)
@given(scenes(8), st.randoms(use_true_random=False))
def test_renaming_batches_renames_the_choices(scene: Scene, order: Any) -> None:
    """Over all draws each choice comes as often as its renamed one; who is who within a batch says nothing at all."""
    p = scene.parameters
    names = list(range(p.batches))
    order.shuffle(names)
    inside = [order.sample(range(p.T), p.T) for _ in names]
    to = {b * p.T + at: names[b] * p.T + inside[b][at] for b in range(p.batches) for at in range(p.T)}
    back = {new: old for old, new in to.items()}
    frequencies = tuple(scene.frequencies[back[user]] for user in range(p.N))
    available = tuple(scene.available[back[user]] for user in range(p.N))
    renamed = Scene(p, scene.strategy, frequencies, available)
    assert (renamed.ranges() is None) == (scene.ranges() is None)
    if scene.ranges() is None or prod(scene.ranges() or ()) > 5000:
        return
    moved = Counter(tuple(sorted(to[user] for user in scene.choose(draws) or ())) for draws in scene.draws())
    assert moved == Counter(renamed.choose(draws) for draws in renamed.draws())


@pytest.mark.requirement("MRA-06")
@given(scenes(strategy="uniform"), st.data())
def test_uniform_does_not_look_at_frequencies(scene: Scene, data: st.DataObject) -> None:
    other = data.draw(st.permutations(scene.frequencies))
    again = Scene(scene.parameters, "uniform", tuple(other), scene.available)
    draws = tuple(data.draw(st.integers(0, bound - 1)) for bound in scene.ranges() or ())
    assert again.choose(draws) == scene.choose(draws)


# -------------------------------------------------------------------------------------------------------- uniformity


def odds(scene: Scene) -> dict[Chosen, Fraction]:
    """How likely each choice is, with all draws equally likely."""
    found = Counter(scene.choose(draws) for draws in scene.draws())
    return {chosen: Fraction(count, sum(found.values())) for chosen, count in found.items()}


@pytest.mark.requirement("MRA-05", "MRA-07")
@pytest.mark.parametrize(
    ("whole", "picked"), [(whole, picked) for whole in range(1, 7) for picked in range(1, whole + 1)]
)
def test_each_set_of_batches_is_equally_likely(whole: int, picked: int) -> None:
    available = (True, True) * whole + (True, False)
    scene = Scene(Parameters(2 * whole + 2, 2 * picked, 2), "uniform", (0,) * (2 * whole + 2), available)
    assert sorted(odds(scene).values()) == [Fraction(1, comb(whole, picked))] * comb(whole, picked)


@pytest.mark.requirement("MRA-05", "MRA-07")
@fewer(3)
@given(scenes(6, "fair"))
def test_fair_draws_one_of_the_least_and_any_others(scene: Scene) -> None:
    batches, k = complete(scene), scene.parameters.per_round
    if len(batches) < k:
        return
    rare = set(rarest(scene, batches))
    for chosen, likely in odds(scene).items():
        first = {user // scene.parameters.T for user in chosen or ()} & rare
        assert likely == Fraction(len(first), len(rare) * comb(len(batches) - 1, k - 1))
    assert sum(odds(scene).values()) == 1


@pytest.mark.requirement("MRA-05", "MRA-07")
@fewer(2)
@given(scenes(8, "weighted") | scenes(8, "least"))
def test_the_rare_are_taken_and_the_next_drawn_evenly(scene: Scene) -> None:
    """Users, or batches, by ascending frequency: none in the choice is more frequent than one that is left out."""
    T, k = scene.parameters.T, scene.parameters.per_round
    batches, found = complete(scene), odds(scene)
    if len(batches) < k:
        assert found == {None: 1}
        return
    counts = counts_of(scene, batches)
    last = sorted(counts.values())[k - 1]
    level = [b for b in batches if counts[b] == last]
    certain = {b for b in batches if counts[b] < last}
    picked = [{user // T for user in chosen or ()} for chosen in found]
    assert all(certain <= each <= certain | set(level) for each in picked)
    assert set(found.values()) == {Fraction(1, comb(len(level), k - len(certain)))}
    assert len(found) == comb(len(level), k - len(certain))


@pytest.mark.requirement("MRA-05")
def test_the_least_frequency_is_that_of_the_complete_batches() -> None:
    """User 0 was never in a sum, and user 1 of its batch is not available: the rule of the paper has no set here."""
    scene = Scene(Parameters(6, 2, 2), "fair", (0, 0, 2, 5, 1, 9), (True, False, True, True, True, True))
    assert odds(scene) == {(4, 5): 1}


# ------------------------------------------------------------------------------------------------------- the sources


class Words:
    """A source of given words of 8 bytes, which counts what was taken."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, count: int) -> bytes:
        """The next words."""
        taken_ = [self.words.pop(0) for _ in range(count // 8)]
        return b"".join(word.to_bytes(8, "little") for word in taken_)


@pytest.mark.requirement("MRA-07")
@given(st.lists(st.sampled_from((1, 2, 3, 7, 2**31, 2**32 - 1, 2**32)) | st.integers(1, 2**32), min_size=1, max_size=4))
def test_a_draw_is_taken_exactly_below_the_last_whole_multiple(bounds: list[int]) -> None:
    """Of the 2**63 values of a word, the same number leads to each result; the others are drawn again."""
    for at, bound in enumerate(bounds):
        limit = 2**63 // bound * bound
        ones = [2] * len(bounds)
        ones[at] = 2 * (limit - 1)
        last = [1 % other for other in bounds]
        assert draw_below(Words(*ones), bounds) == (*last[:at], bound - 1, *last[at + 1 :])
        if limit < 2**63:
            ones[at] = 2 * limit
            assert draw_below(Words(*ones, 2), bounds) == tuple(last)


@pytest.mark.requirement("MRA-07")
def test_draws_are_as_often_one_as_the_other() -> None:
    drawn_ = np.array([draw_below(SeededSource(b"draws", str(at)), (5, 4, 3)) for at in range(3000)])
    for column, bound in zip(drawn_.T, (5, 4, 3), strict=True):
        counts = np.bincount(column, minlength=bound)
        assert len(counts) == bound
        assert (abs(counts - 3000 / bound) < 150).all()
    pairs = Counter(map(tuple, drawn_[:, :2].tolist()))
    assert len(pairs) == 20
    assert all(abs(count - 150) < 60 for count in pairs.values())


@pytest.mark.requirement("ERR-02")
def test_draws_of_numpy_do_not_wrap() -> None:
    draws = [0] * 100 + [199]
    assert draw(np.arange(300), [*np.array(draws, np.uint8)]).tolist() == draw(np.arange(300), draws).tolist()


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("MRA-08")
@given(drawn(), st.data())
def test_draws_are_taken_exactly_when_each_is_in_its_range(given_: Any, data: st.DataObject) -> None:
    scene, draws = given_
    for wrong in (draws[:-1], (*draws, 0), (*draws, *draws)):
        if len(wrong) != len(draws):
            with pytest.raises(LengthMismatch, match=r"len\(draws\)"):
                scene.choose(wrong)
    for at, bound in enumerate(scene.ranges() or ()):
        value = data.draw(st.sampled_from((-1, bound, bound + 1, 2**32, -(2**63), 0.0, None, True, "0")))
        with pytest.raises(OutOfRange, match=rf"draws\[{at}\]"):
            scene.choose((*draws[:at], value, *draws[at + 1 :]))
        scene.choose((*draws[:at], bound - 1, *draws[at + 1 :]))


@pytest.mark.requirement("MRA-08")
def test_a_choice_that_is_none_takes_no_draws() -> None:
    nobody = Scene(Parameters(4, 2, 1), "random", (0,) * 4, (True, False, False, False))
    assert nobody.choose(()) is None
    with pytest.raises(LengthMismatch):
        nobody.choose((0,))


@pytest.mark.requirement("MRA-09")
@pytest.mark.parametrize("strategy", sorted(TABLE))
def test_a_strategy_takes_exactly_the_batches_of_the_table(strategy: str) -> None:
    for T in (1, 2, 3, 6):
        scene = Scene(Parameters(12, 6, T), strategy, (0,) * 12, (True,) * 12)
        if TABLE[strategy] in {"any", str(T)} or (TABLE[strategy], T) == ("K", 6):
            assert scene.ranges()
        else:
            with pytest.raises(ParameterError, match=f"T = {T}: must be ") as caught:
                scene.ranges()
            assert strategy in str(caught.value)


@pytest.mark.requirement("MRA-09")
@pytest.mark.parametrize(
    ("change", "error", "name"),
    [
        ({"frequencies": np.zeros(11, dtype=np.int64)}, LengthMismatch, "frequencies"),
        ({"frequencies": np.zeros(13, dtype=np.int64)}, LengthMismatch, "frequencies"),
        ({"frequencies": np.array([0] * 11 + [-1])}, OutOfRange, r"frequencies\[11\] = -1"),
        ({"frequencies": np.array([2**32] + [0] * 11)}, OutOfRange, r"frequencies\[0\] = 4294967296"),
        ({"frequencies": np.zeros(12)}, ParameterError, "frequencies"),
        ({"frequencies": [0] * 12}, ParameterError, "frequencies"),
        ({"available": np.ones(11, dtype=np.bool_)}, LengthMismatch, "available"),
        ({"available": np.ones(12, dtype=np.int64)}, ParameterError, "available"),
        ({"available": [True] * 12}, ParameterError, "available"),
        ({"strategy": "Fair"}, ParameterError, "strategy = 'Fair': must be one of "),
        ({"strategy": None}, ParameterError, "strategy"),
        ({"strategy": ["fair"]}, ParameterError, "strategy"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], error: type[Exception], name: str) -> None:
    values: dict[str, Any] = {
        "parameters": Parameters(12, 6, 3),
        "strategy": "fair",
        "frequencies": np.zeros(12, dtype=np.int64),
        "available": np.ones(12, dtype=np.bool_),
    }
    choose(**values, draws=(0, 0))
    with pytest.raises(error, match=name):
        choose(**{**values, **change}, draws=(0, 0))


@pytest.mark.requirement("MRA-09")
@pytest.mark.requirement("MRA-08")
def test_a_pool_takes_the_draws_of_its_ranges_alone() -> None:
    items = np.arange(4)
    for pool in (Pool(items[:1], items, 2), Pool(items[:0], items, 2, items[1:3])):
        bounds = pool.ranges
        assert len(pool.choose([0, 0])) == len(pool.taken) + 2
        draws: Any
        for draws in ([], [0], [0, 0, 0]):
            with pytest.raises(LengthMismatch, match=rf"^len\(draws\) = {len(draws)}: must be 2$"):
                pool.choose(draws)
        for draws in ([0, bounds[1]], [0, -1], [0, True], [0, 0.0], [0, None]):
            with pytest.raises(OutOfRange, match=rf"^draws\[1\] = .*: must be an integer in \[0, {bounds[1]}\)$"):
                pool.choose(draws)
        for draws in (None, 2, "00", iter([0, 0])):
            with pytest.raises(ParameterError, match=r"^draws = .*: must be a list or another sequence of integers$"):
                pool.choose(draws)
            with pytest.raises(ParameterError, match=r"^draws = .*: must be a list or another sequence of integers$"):
                draw(items, draws)
    with pytest.raises(LengthMismatch, match=r"^len\(draws\) = 5: must be at most 4, one for each item$"):
        draw(items, [0] * 5)
    wrong: Any = [0, 1]
    with pytest.raises(ParameterError, match=r"^items = 'list': must be a numpy array$"):
        draw(wrong, [0])


def test_the_largest_frequency_is_taken() -> None:
    assert Scene(Parameters(2, 1, 1), "fair", (2**32 - 1, 2**32 - 2), (True, True)).choose((0,)) == (1,)


def test_the_strategies_are_those_of_the_text() -> None:
    text = (resources.root("spec") / "multi-round.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `") and len(line.split("|")) == 6]
    assert {row[1].strip(" `"): row[2].strip() for row in rows} == TABLE
    assert list(STRATEGIES) == [row[1].strip(" `") for row in rows]
