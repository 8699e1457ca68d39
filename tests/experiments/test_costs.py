"""Costs are those of the steps that were taken, and whoever has them has the times that rest on them."""

from __future__ import annotations

import importlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from secagg_spec.crypto import caches, keys
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import costs
from secagg_spec.experiments.costs import PROTOCOLS, Setting, measure
from secagg_spec.learning.clock import Buffered, Costs, Work, buffered
from secagg_spec.protocols.steps import Network, Role

K, N = 5, 7


@pytest.fixture
def every_step_takes_a_second(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ticks = itertools.count()
    monkeypatch.setattr(costs, "time", SimpleNamespace(process_time=lambda: float(next(ticks))))
    costs._measured.cache_clear()
    yield
    costs._measured.cache_clear()


STEPS = {
    "none": {"user": 0, "server": 1, "authority": 0, "sending": 0, "after": 1, "visits": []},
    "secagg": {"user": 4, "server": 4, "authority": 0, "sending": 3, "after": 5, "visits": []},
    "lightsecagg": {"user": 3, "server": 3, "authority": 0, "sending": 2, "after": 4, "visits": []},
    "basecagg": {"user": K + 3, "server": 3 * K + 2, "authority": 0, "sending": 6, "after": 3, "visits": []},
    "basa": {"user": 3, "server": 3 * K + 3, "authority": 3 * K + 2, "sending": 0, "after": 5, "visits": [9] * K},
}
STEPS["basa by attributes"] = STEPS["basa"]


@pytest.mark.requirement("EXP-20")
@pytest.mark.usefixtures("every_step_takes_a_second")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_costs_are_the_steps_of_each_role(protocol: str) -> None:
    found = measure(Setting(protocol, N, K, 3), repeats=2)
    named = {"protocol": protocol, "users": N, "buffer": K, "length": 3, "repeats": 2}
    assert found == named | STEPS[protocol]


@pytest.mark.requirement("EXP-20")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_measured_costs_are_data_that_a_clock_reads(protocol: str) -> None:
    found = measure(Setting(protocol, N, K, 20), repeats=1)
    numbers = [found[name] for name in ("server", "after", *(["user"] if protocol != "none" else []))]
    assert all(math.isfinite(number) and number > 0 for number in [*numbers, *found["visits"]])
    written = costs.costs(json.loads(json.dumps(found)))
    assert written == Costs(found["sending"], found["after"], tuple(found["visits"]))
    assert bool(found["visits"]) == ("basa" in protocol)
    steps = buffered(Buffered(N, 3, K), 2, Work(0.5, 1.0), written, seed=3)
    assert steps == buffered(Buffered(N, 3, K), 2, Work(0.5, 1.0), costs.costs(found), seed=3)


@pytest.mark.requirement("EXP-20")
def test_the_least_of_several_runs_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([{"after": 3.0, "visits": [1.0, 4.0]}, {"after": 2.0, "visits": [2.0, 3.0]}])
    monkeypatch.setattr(costs, "PROTOCOLS", {**PROTOCOLS, "none": lambda setting: next(runs)})
    found = measure(Setting("none", 1, 2, 11), repeats=2)
    costs._measured.cache_clear()
    assert (found["after"], found["visits"]) == (2.0, [1.0, 3.0])


def sizes(caches: Iterable[Any]) -> list[int]:
    return [cache.cache_info().currsize for cache in caches]


@pytest.mark.requirement("EXP-32")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_begins_with_parties_that_have_computed_nothing(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    right = PROTOCOLS[protocol]

    def looked(setting: Setting) -> dict[str, Any]:
        found.extend(sizes((*caches.SHARED, *caches.OWN)))
        return right(setting)

    monkeypatch.setattr(costs, "PROTOCOLS", {protocol: looked})
    keys.agree(bytes(31) + b"\x01", keys.public_key(bytes(31) + b"\x02"))
    measure(Setting(protocol, N, K, 5), repeats=2)
    assert found == [0] * 2 * len((*caches.SHARED, *caches.OWN))


@pytest.mark.requirement("EXP-32")
@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "none"])
def test_a_step_finds_nothing_of_another_party(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[int]] = []
    right = Network.take_on

    def looked(self: Network, *given: Any) -> Any:
        if isinstance(self, costs.Timed):
            found.append(sizes(caches.SHARED))
        return right(self, *given)

    monkeypatch.setattr(Network, "take_on", looked)
    PROTOCOLS[protocol](Setting(protocol, N, K, 5))
    assert found == [[0] * len(caches.SHARED)] * len(found)
    assert len(found) > K


@pytest.mark.requirement("EXP-32")
@pytest.mark.parametrize("protocol", [protocol for protocol in PROTOCOLS if protocol != "none"])
def test_what_a_party_keeps_of_its_own_is_asked_for_by_no_other(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[tuple[Any, ...], set[tuple[Role, int]]] = {}
    right = Network.take_on
    now: list[tuple[Role, int]] = []

    def looked(self: Network, received: Any, step: Any, party: int, *given: Any) -> Any:
        now.append((step.role, party))
        event = right(self, received, step, party, *given)
        now.clear()
        return event

    def asking(cache: Any) -> Any:
        def called(*arguments: Any) -> Any:
            for one in now:
                asked.setdefault((cache.__name__, *arguments), set()).add(one)
            return cache(*arguments)

        return called

    caches.forget()
    monkeypatch.setattr(Network, "take_on", looked)
    for cache in caches.OWN:
        monkeypatch.setattr(importlib.import_module(cache.__module__), cache.__name__, asking(cache))
    PROTOCOLS[protocol](Setting(protocol, N, K, 5))
    assert asked
    assert {what: parties for what, parties in asked.items() if len(parties) > 1} == {}


def test_one_process_measures_a_setting_once() -> None:
    first, again = (measure(Setting("secagg", N, K, 4), repeats=1) for _ in range(2))
    assert first == again


def test_unknown_protocols_are_refused() -> None:
    with pytest.raises(ParameterError, match="basa by attributes"):
        Setting("secag", N, K, 3)
