"""The aggregators: what they return is the plain mean up to the quantiser, and the shortcut is the protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec.arithmetic.levels import Range, quantize_levels
from secagg_spec.arithmetic.modular import Ring
from secagg_spec.arithmetic.quantizer import quantize
from secagg_spec.arithmetic.staleness import Staleness, realised_weight
from secagg_spec.arithmetic.validate import RealArray
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.experiments import aggregators_quantised
from secagg_spec.experiments.aggregates import Given, weighted_mean
from secagg_spec.experiments.aggregators import NAMES, Aggregate, Disagreement, build
from secagg_spec.experiments.aggregators_quantised import Quantised
from secagg_spec.learning import streams
from secagg_spec.protocols.heterosag import round as heterosag
from secagg_spec.protocols.heterosag.plan import Parameters
from secagg_spec.protocols.lightsecagg import round as lightsecagg
from secagg_spec.protocols.secagg import round as secagg
from secagg_spec.protocols.steps import Network, Step

SEED = 7
SUMS = ("secagg", "lightsecagg", "basecagg", "basa")
SECURE = (*SUMS, "heterosag")
MOST = {
    "secagg": (2**31 - 1) // 14 / 2**16,
    "lightsecagg": (2**31 - 3) // 14 / 2**16,
    "basecagg": (2**31 - 3) // 14 / 2**16,
    "basa": (2**31 - 1) // 14 / 2**16,
    "heterosag": 1.0,
}
USER_PHASES = {
    "secagg": secagg.PHASES,
    "lightsecagg": lightsecagg.PHASES,
    "basecagg": ("request", "share", "hold", "upload", "recover"),
    "basa": ("request", "fetch", "upload", "take"),
    "heterosag": heterosag.PHASES,
}


@dataclass(frozen=True, eq=False)
class Case:
    """The settings of an aggregator of N users, and what it is given in a round."""

    settings: Mapping[str, Any]
    N: int
    updates: RealArray
    weights: Sequence[int]
    named: Mapping[str, Any]

    def aggregate(self, **changed: Any) -> Aggregate:
        """Return the aggregate, with some settings changed."""
        aggregator = build({**self.settings, **changed}, self.N, self.updates.shape[1], SEED)
        return aggregator.aggregate(self.updates, self.weights, **self.named)

    def draws_of(self, at: int) -> RealArray:
        """Return the draws that the update of a row is quantised with."""
        numbers = (self.named["round"], self.named["users"][at])
        return np.asarray(streams.stream(SEED, streams.QUANTISER, *numbers).random(self.updates.shape[1]))


@st.composite
def cases(draw: st.DrawFn, names: Sequence[str] = SECURE) -> Case:
    """Small rounds of each aggregator with numbers in its range, edges and numbers beside the grid among them."""
    name = draw(st.sampled_from(names))
    groups = draw(st.integers(2, 3)) if name == "heterosag" else 0
    n = 3 * groups + draw(st.integers(0, 2)) if groups else draw(st.integers(3, 5))
    N = n + draw(st.integers(0, 2))
    users = draw(st.permutations(range(N)))[:n]
    round, d = draw(st.integers(0, 5)), draw(st.integers(max(1, groups), 5))
    settings, weights, named = draw(_weighted(name, n, round))
    low, high = settings.get("range", (-1.0, 1.0))
    rows = st.lists(st.sampled_from((low, high, 0.0, 0.25, -0.5 / 7)) | st.floats(low, high), min_size=d, max_size=d)
    updates = np.array(draw(st.lists(rows, min_size=n, max_size=n)), np.float64)
    if groups:
        settings |= {"groups": groups, "method": draw(st.sampled_from(("mean", "median", "trimmed")))}
        settings["levels"] = sorted(draw(st.lists(st.sampled_from((2, 3, 8, 2**20)), min_size=groups, max_size=groups)))
    return Case({"aggregator": name, **settings}, N, updates, weights, {"users": users, "round": round, **named})


@st.composite
def _weighted(draw: st.DrawFn, name: str, n: int, round: int) -> tuple[dict[str, Any], list[int], dict[str, Any]]:
    """Settings, weights, and what comes with weights that are those of staleness."""
    if name == "heterosag":
        low, high = draw(st.sampled_from(((-1.0, 1.0), (-0.25, 3.0))))
        matrix = draw(st.sampled_from(("cyclic", "perfect", "separate")))
        return {"range": (low, high), "matrix": matrix}, [draw(st.integers(1, 9))] * n, {}
    settings: dict[str, Any] = {"level": draw(st.sampled_from((1, 3, 2**10, 2**16)))}
    if name in ("secagg", "lightsecagg"):
        return settings, draw(st.lists(st.integers(0, 40), min_size=n, max_size=n).filter(any)), {}
    taus = draw(st.lists(st.integers(0, min(3, round)), min_size=n, max_size=n))
    draws = np.array(draw(st.lists(st.integers(0, 2**53 - 1), min_size=n, max_size=n)), np.float64) * 2.0**-53
    settings |= {"c_g": draw(st.sampled_from((4, 6))), "tau_max": 3, "staleness": "polynomial:1"}
    weights = _weights_of_staleness(settings["c_g"], taus, draws)
    return settings, weights, {"taus": taus, "draws": draws}


def _weights_of_staleness(c_g: int, taus: Sequence[int], draws: RealArray) -> list[int]:
    s = Staleness.polynomial(1)
    return [realised_weight(s, c_g, tau, draw) for tau, draw in zip(taus, draws.tolist(), strict=True)]


def simple(name: str, **changed: Any) -> Case:
    """Return a round that each aggregator takes, with some settings changed."""
    updates = np.linspace(-0.9, 0.9, 7 * 4).reshape(7, 4)[:, ::-1].copy()
    settings = {"aggregator": name, "c_g": 2, "groups": 2, "levels": [4, 16], **changed}
    return Case(settings, 9, updates, [2] * 7, {"users": [8, 1, 2, 0, 4, 6, 5], "round": 3})


# --------------------------------------------------------------------------------------- the protocol and its shortcut


@pytest.mark.requirement("EXP-14")
@pytest.mark.parametrize("name", SECURE)
@given(data=st.data())
def test_the_shortcut_is_the_whole_protocol_bit_for_bit(name: str, data: st.DataObject) -> None:
    case = data.draw(cases((name,)))
    whole, short = case.aggregate(every=1), case.aggregate(every=0)
    assert (whole.by, short.by) == ("protocol", "shortcut")
    assert whole.mean.tobytes() == short.mean.tobytes()


@pytest.mark.requirement("EXP-14")
@given(cases(SUMS))
def test_a_sum_is_that_of_the_quantised_updates_in_python_integers(case: Case) -> None:
    level = case.settings["level"]
    ring = Ring(2**32)
    rows = [
        ring.decode_signed(quantize(row, level=level, ring=ring, weight=1, rounding=case.draws_of(at))).tolist()
        for at, row in enumerate(case.updates)
    ]
    sums = (sum(w * v for w, v in zip(case.weights, column, strict=True)) for column in zip(*rows, strict=True))
    assert case.aggregate(every=0).mean.tolist() == [float(Fraction(s, level * sum(case.weights))) for s in sums]


@pytest.mark.requirement("EXP-14")
@given(cases(("heterosag",)))
def test_cells_are_those_of_the_plan(case: Case) -> None:
    given, by_user = case.settings, np.argsort(case.named["users"])
    n, d = case.updates.shape
    sizes = tuple(len(part) for part in np.array_split(np.arange(n), given["groups"]))
    plan = Parameters(
        n, 0, 1, 3, d, sizes, (1,) * len(sizes), tuple(given["levels"]), Range(*given["range"]), given["matrix"]
    )
    means: list[list[float]] = []
    for column in range(d):
        cells = [cell for cell in plan.parts if cell.start <= column < cell.stop]
        means.append(
            _combined([_cell_mean(case, cell, column, by_user, plan.range) for cell in cells], given["method"])
        )
    assert case.aggregate(every=0).mean == pytest.approx([mean for (mean,) in means], rel=1e-12, abs=1e-12)


def _cell_mean(case: Case, cell: Any, column: int, by_user: Any, range: Range) -> tuple[float, int]:
    rows = [int(by_user[member]) for member in sorted(cell.members)]
    numbers = (
        quantize_levels(
            case.updates[row, [column]], levels=cell.levels, range=range, rounding=case.draws_of(row)[[column]]
        )
        for row in rows
    )
    total = sum(int(number[0]) for number in numbers)
    return range.low + (range.high - range.low) * total / len(rows) / (cell.levels - 1), len(rows)


def _combined(cells: Sequence[tuple[float, int]], method: str) -> list[float]:
    means = [mean for mean, _ in cells]
    if method == "mean":
        return [sum(mean * count for mean, count in cells) / sum(count for _, count in cells)]
    return [float(np.median(means)) if method == "median" else sum(means) / len(means)]


@pytest.mark.requirement("EXP-14")
@pytest.mark.parametrize("name", SECURE)
def test_a_protocol_that_returns_something_else_stops_the_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = simple(name)
    kind: Any = type(build(case.settings, 9, 4, SEED))
    right = kind.protocol
    monkeypatch.setattr(kind, "protocol", lambda self, *given: np.nextafter(right(self, *given), 9))
    with pytest.raises(Disagreement, match=rf"{name}, round 3: the sum of quantised updates is not what the protocol"):
        case.aggregate()
    assert case.aggregate(every=2).by == "shortcut"


@pytest.mark.parametrize("name", SECURE)
def test_the_whole_protocol_runs_step_by_step(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    phases: list[str] = []
    right = Network.take_on

    def counted(self: Network, mail: Any, step: Step[Any], *rest: Any) -> None:
        phases.append(step.phase)
        right(self, mail, step, *rest)

    monkeypatch.setattr(Network, "take_on", counted)
    simple(name).aggregate(every=0)
    assert not phases
    simple(name).aggregate(every=1)
    assert min(phases.count(phase) for phase in USER_PHASES[name]) >= 7


# ------------------------------------------------------------------------------------------------------- the bound


@pytest.mark.requirement("EXP-13")
@given(cases())
def test_an_aggregate_is_nearer_to_the_plain_one_than_the_step(case: Case) -> None:
    found, settings = case.aggregate(every=0), case.settings
    if settings["aggregator"] == "heterosag":
        low, high = settings["range"]
        step = (high - low) / (min(settings["levels"]) - 1)
        plain = case.aggregate(every=0, levels=None).mean
    else:
        step = 1 / settings["level"]
        plain = weighted_mean(case.updates, case.weights)
    assert np.abs(found.mean - plain).max() < step == found.bound
    assert found.error == pytest.approx(np.abs(found.mean - plain).max(), abs=1e-12)


@pytest.mark.requirement("EXP-13")
@pytest.mark.parametrize("name", SECURE)
def test_a_run_stops_when_its_aggregate_is_a_step_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = simple(name, every=0, levels=4)
    kind: Any = type(build(case.settings, 9, 4, SEED))
    right = kind.quantised
    monkeypatch.setattr(kind, "quantised", lambda self, *given: right(self, *given) + 2)
    with pytest.raises(Disagreement, match=rf"{name}, round 3: the aggregate differs by .* must be below "):
        case.aggregate()


@pytest.mark.requirement("EXP-13")
def test_a_median_is_compared_with_that_of_cells_of_real_numbers() -> None:
    updates = np.full((9, 4), -0.985)
    updates[0] = 0.999
    settings = {"aggregator": "heterosag", "groups": 3, "levels": 99, "method": "median", "matrix": "separate"}
    found = Case(settings, 9, updates, [1] * 9, {"users": range(9), "round": 0}).aggregate(every=0)
    assert np.abs(found.mean + 0.985).max() < found.bound == pytest.approx(2 / 98)
    assert abs(weighted_mean(updates, [1] * 9)[0] + 0.985) > 0.2


def test_real_numbers_in_cells_have_the_plain_mean_and_another_median() -> None:
    mean = simple("heterosag", levels=None).aggregate()
    assert (mean.by, mean.bound, mean.moved) == ("plain", 0.0, 0)
    assert mean.mean == pytest.approx(simple("plain").aggregate().mean, abs=1e-15)
    updates = simple("plain").updates.copy()
    updates[0] = 1000.0
    case = Case({**simple("heterosag").settings, "groups": 3, "levels": None}, 9, *_nine(updates))
    assert np.abs(case.aggregate(method="median", matrix="separate").mean).max() < 1
    assert np.abs(case.aggregate(method="mean").mean).min() > 100


def _nine(updates: RealArray) -> tuple[RealArray, list[int], dict[str, Any]]:
    return np.vstack([updates, updates[-2:]]), [1] * 9, {"users": range(9), "round": 0}


# ------------------------------------------------------------------------------------------- what is said of a round


@pytest.mark.requirement("EXP-15")
@pytest.mark.parametrize("name", SECURE)
@pytest.mark.parametrize(("every", "whole"), [(0, []), (1, [0, 1, 2, 3, 4]), (2, [0, 2, 4]), (3, [0, 3])])
def test_a_result_says_whether_the_protocol_ran(
    name: str, every: int, whole: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, ran = simple(name, every=every), list[int]()
    kind: Any = type(build(case.settings, 9, 4, SEED))

    def noted(self: Quantised, values: Any, given: Given) -> RealArray:
        ran.append(given.round)
        return self.shortcut(values, given)

    monkeypatch.setattr(kind, "protocol", noted)
    rounds = [Case(case.settings, 9, case.updates, case.weights, {**case.named, "round": round}) for round in range(5)]
    said = [one.aggregate().by for one in rounds]
    assert ran == whole
    assert [at for at, by in enumerate(said) if by == "protocol"] == whole
    assert said.count("shortcut") == 5 - len(whole)


def test_the_plain_one_says_that_there_is_no_protocol() -> None:
    found = simple("plain").aggregate()
    assert (found.by, found.bound, found.moved, found.error) == ("plain", 0.0, 0, 0.0)


# --------------------------------------------------------------------------------------------------------- the range


@pytest.mark.requirement("EXP-16")
@pytest.mark.parametrize(("name", "most"), MOST.items())
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_number_outside_the_range_is_refused_or_moved(name: str, most: float, sign: int) -> None:
    updates = simple(name).updates.copy()
    updates[2, 1] = sign * most
    case = Case(simple(name).settings, 9, updates, [2] * 7, simple(name).named)
    edge = case.aggregate()
    assert edge.moved == 0
    updates[2, 1] = np.nextafter(sign * most, sign * np.inf)
    with pytest.raises(OutOfRange, match=r"update of user 2 in round 3 = .*: must be in \["):
        case.aggregate()
    updates[4, 3], updates[2, 1] = -sign * 10 * most, sign * 1e300
    found = case.aggregate(clip=True)
    assert found.moved == 2
    updates[4, 3], updates[2, 1] = -sign * most, sign * most
    assert found.mean.tobytes() == case.aggregate().mean.tobytes()


@pytest.mark.requirement("EXP-16")
@given(cases())
def test_no_number_in_the_range_counts_as_moved(case: Case) -> None:
    assert case.aggregate(every=0).moved == case.aggregate(every=0, clip=True).moved == 0


@pytest.mark.requirement("EXP-16")
@given(st.sampled_from(SECURE), st.sets(st.tuples(st.integers(0, 6), st.integers(0, 3))), st.sampled_from((-1, 1)))
def test_no_number_counts_twice_and_none_is_left_out(name: str, places: set[tuple[int, int]], sign: int) -> None:
    updates = simple(name).updates.copy()
    for row, column in places:
        updates[row, column] = sign * 1e9
    case = Case(simple(name).settings, 9, updates, [2] * 7, simple(name).named)
    assert case.aggregate(clip=True, every=0).moved == len(places)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_and_never_moved(name: str, number: float) -> None:
    updates = simple(name).updates.copy()
    updates[3, 0] = number
    with pytest.raises(OutOfRange, match=r"update of user 0 in round 3 = .*: must be finite in each coordinate"):
        Case({**simple(name).settings, "clip": True}, 9, updates, [2] * 7, simple(name).named).aggregate()


def test_weights_that_no_modulus_carries_are_refused() -> None:
    case = simple("secagg")
    heavy = Case(case.settings, 9, case.updates, [2**31, *[0] * 6], case.named)
    with pytest.raises(ParameterError, match=r"sum\(weights\) = 2147483648: must be at most 2147483647"):
        heavy.aggregate()


# ------------------------------------------------------------------------------------------------------------ streams


@pytest.mark.requirement("EXP-08")
def test_all_sums_of_a_round_have_the_same_draws() -> None:
    means = [simple(name, every=0).aggregate().mean.tobytes() for name in SUMS]
    assert len(set(means)) == 1
    other = Case(simple("secagg").settings, 9, *_nine(simple("secagg").updates)).aggregate(level=1)
    assert other.mean.tobytes() != means[0]


@pytest.mark.parametrize("name", ["secagg", "heterosag"])
def test_how_many_are_quantised_at_once_does_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    means = []
    for count in (1, 9, 12, 100):
        monkeypatch.setattr(aggregators_quantised, "TOGETHER", count)
        means.append(simple(name, every=0).aggregate().mean.tobytes())
    assert len(set(means)) == 1


def test_the_order_of_the_rows_does_not_matter() -> None:
    for name in NAMES:
        case = simple(name)
        turned = {**case.named, "users": case.named["users"][::-1]}
        again = Case(case.settings, 9, case.updates[::-1].copy(), case.weights, turned)
        assert again.aggregate().mean.tobytes() == case.aggregate().mean.tobytes()


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.requirement("EXP-29")
@pytest.mark.parametrize(("name", "hint"), [("secag", "secagg"), ("base-cagg", "basecagg"), ("Plain", "plain")])
def test_an_unknown_aggregator_is_refused_with_the_closest(name: str, hint: str) -> None:
    with pytest.raises(ParameterError, match=f"one of plain, secagg, .*; {hint} is close$"):
        build({"aggregator": name}, 5, 2, SEED)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"aggregator": None}, "aggregator = None: must be one of plain"),
        ({"aggregator": "secagg", "level": 0}, "level = 0"),
        ({"aggregator": "secagg", "every": -1}, "every = -1"),
        ({"aggregator": "secagg", "clip": 1}, "clip = 1: must be true or false"),
        ({"aggregator": "lightsecagg", "q": 2**32}, "modulus = 4294967296: must be a prime"),
        ({"aggregator": "basa", "staleness": "linear"}, "staleness = 'linear': must be constant, polynomial:ALPHA"),
        ({"aggregator": "heterosag"}, "groups = None"),
        ({"aggregator": "heterosag", "groups": 2, "levels": 4, "range": 1}, "range = 1"),
        ({"aggregator": "heterosag", "groups": 2, "levels": 4, "method": "mode"}, "method = 'mode'"),
        ({"aggregator": "heterosag", "groups": 2, "levels": None, "every": 1}, "every, clip"),
    ],
)
def test_settings_that_are_none_are_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        build(settings, 9, 4, SEED)


@pytest.mark.parametrize(
    ("name", "changed", "error"),
    [
        ("secagg", {"weights": [2.0] * 7}, ParameterError),
        ("secagg", {"weights": [0] * 7}, ParameterError),
        ("plain", {"weights": [0.0] * 7}, ParameterError),
        ("plain", {"weights": [-1.0] + [1.0] * 6}, ParameterError),
        ("plain", {"weights": [1] * 6}, LengthMismatch),
        ("plain", {"users": [0, 0, 1, 2, 3, 4, 5]}, ParameterError),
        ("plain", {"users": range(3, 10)}, ParameterError),
        ("plain", {"taus": [4] * 7}, ParameterError),
        ("plain", {"draws": np.zeros(6)}, LengthMismatch),
        ("basecagg", {"weights": [2] * 6 + [1]}, ParameterError),
        ("basa", {"weights": [1] * 7}, ParameterError),
        ("basa", {"draws": np.full(7, 0.1)}, OutOfRange),
        ("heterosag", {"weights": [1] * 6 + [2]}, ParameterError),
    ],
)
@pytest.mark.parametrize("every", [0, 1])
def test_arguments_that_are_none_are_refused(
    name: str, changed: dict[str, Any], error: type[ParameterError], every: int
) -> None:
    case = simple(name, every=every)
    named = {**case.named, **changed}
    weights = named.pop("weights", case.weights)
    with pytest.raises(error):
        Case(case.settings, 9, case.updates, weights, named).aggregate()


@pytest.mark.parametrize("name", ["secagg", "lightsecagg", "basecagg", "basa", "heterosag"])
@pytest.mark.parametrize("every", [0, 1])
def test_two_users_are_too_few(name: str, every: int) -> None:
    case = simple(name, every=every)
    with pytest.raises(ParameterError):
        Case(case.settings, 9, case.updates[:2], [2, 2], {"users": [0, 1], "round": 0}).aggregate()


@pytest.mark.requirement("EXP-16")
def test_a_plain_mean_that_is_not_finite_is_refused() -> None:
    plain = build({"aggregator": "plain"}, 6, 3, 1)
    with pytest.raises(OutOfRange, match=r"^updates = 1e\+308: must be such that their weighted mean is finite$"):
        plain.aggregate(np.full((2, 3), 1e308), [3, 4], users=[0, 1], round=0)
    with pytest.raises(ParameterError, match=r"^sum\(weights\) = inf: must be positive, and a finite number$"):
        plain.aggregate(np.ones((2, 3)), [1e308, 1e308], users=[0, 1], round=0)
    huge = build({"aggregator": "secagg"}, 6, 3, 1)
    with pytest.raises(
        ParameterError, match=r"^sum\(weights\) = an integer of 1100 bits: must be positive, and a finite"
    ):
        huge.aggregate(np.ones((2, 3)), [2**1099, 0], users=[0, 1], round=0)


def test_the_plain_one_takes_real_weights() -> None:
    case = simple("plain")
    weights = [0.5, 1.5, *[0.0] * 5]
    found = Case(case.settings, 9, case.updates, weights, case.named).aggregate()  # type: ignore[arg-type]
    assert found.mean == pytest.approx(case.updates[0] / 4 + case.updates[1] * 3 / 4)
