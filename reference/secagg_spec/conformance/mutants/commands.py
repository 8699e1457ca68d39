"""Planted bugs of the commands beside `conform`: quick checks, fuzzing, comparisons, mixed rounds, tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from secagg_spec.conformance.mutants import mutant
from secagg_spec.conformance.wire import Request

Function = Callable[..., Any]
_KIT = "secagg_spec.conformance"
_TESTS = "tests/conformance/"


def _kit(module: str) -> Any:
    """Return a module of the kit, which adapters that are the reference with a bug need not load."""
    return import_module(f"{_KIT}.{module}")


def _one_step(verdict: str) -> object:
    command = _kit("check_command")
    verdicts = {"start": "OK", "hello": "OK", "operations": verdict}
    return command.exit_code([command.Step(name, said, "") for name, said in verdicts.items()])


@mutant(
    "failed-steps-succeed",
    "CNF-44",
    "acceptance: an adapter that cannot be judged is said to be fit",
    f"{_KIT}.check_command:exit_code",
    lambda: _one_step("FAIL"),
    _TESTS + "test_check_command.py::test_the_command_ends_with_a_conclusion",
    kind="acceptance",
    source="clause left out",
)
def _succeed(right: Function) -> Function:
    return lambda taken: 0 if right(taken) == 1 else right(taken)


def _pending() -> object:
    found = _kit("fuzz").Found()
    check = next(iter(_kit("checks").REGISTRY.values()))
    found.pending = (check, _kit("runner").Failure("crash", "so", ()))
    found.keep_pending()
    return sorted(found.failed)


@mutant(
    "interrupted-failures-are-lost",
    "CNF-45",
    "acceptance: a failure that was met in the last seconds is never reported",
    f"{_KIT}.fuzz:Found.keep_pending",
    _pending,
    _TESTS + "test_fuzz.py::test_a_failure_that_was_not_yet_made_smaller_is_kept_when_the_run_is_ended",
    kind="acceptance",
    source="forgotten",
)
def _lost(right: Function) -> Function:
    return lambda self: None


@mutant(
    "all-rounds-have-one-seed",
    "CNF-46",
    "acceptance: hours of fuzzing draw the cases of the first minutes again, whatever the seed is",
    f"{_KIT}.fuzz:Plan.settings",
    lambda: [_kit("fuzz").Plan(3).settings(number, 0.0).seed for number in (0, 1)],
    _TESTS + "test_fuzz.py::test_rounds_grow_and_each_has_a_seed_of_its_own",
    kind="acceptance",
    source="wrong term",
)
def _one_seed(right: Function) -> Function:
    return lambda self, number, deadline: _with_seed(right(self, number, deadline))


def _with_seed(settings: Any) -> Any:
    settings.seed = 0
    return settings


def _runs(kit: str) -> Mapping[str, Any]:
    return {"header": {"kit": kit, "settings": {}}, "targets": []}


@mutant(
    "other-kits-are-compared-in-silence",
    "CNF-47",
    "acceptance: what another kit judged seems to be the implementation's change",
    f"{_KIT}.diff:differences_of_runs",
    lambda: _kit("diff").differences_of_runs(_runs("1"), _runs("2")),
    _TESTS + "test_diff.py::test_what_was_different_about_the_runs_is_said_first",
    kind="acceptance",
    source="clause left out",
)
def _silent(right: Function) -> Function:
    return lambda old, new: []


def _worse(was: str, now: str) -> object:
    state = _kit("diff")._State
    return _kit("diff").got_worse(state(was), state(now))


@mutant(
    "what-is-not-judged-is-no-loss",
    "CNF-48",
    "acceptance: a check that is left out hides what it would find",
    f"{_KIT}.diff:got_worse",
    lambda: _worse("pass", "not_run"),
    _TESTS + "test_diff.py::test_what_is_worse",
    kind="acceptance",
    source="clause in part",
)
def _no_loss(right: Function) -> Function:
    return lambda was, now: bool(now.failed and right(was, now))


def _given_up() -> object:
    check = next(iter(_kit("checks").REGISTRY.values()))
    run = _kit("api").AdapterRun(None, None, [], "", stopped="so")
    return run.outcome(check).verdict


@mutant(
    "tests-pass-when-the-kit-gives-up",
    "CNF-49",
    "acceptance: a test is green that never ran",
    f"{_KIT}.api:AdapterRun.outcome",
    _given_up,
    _TESTS + "test_api.py::test_a_check_that_the_kit_gives_up_does_not_pass",
    kind="acceptance",
    source="clause in part",
)
def _green(right: Function) -> Function:
    def outcome(self: Any, check: Any) -> Any:
        found = right(self, check)
        return _kit("runner").Outcome(check, "pass", cases=1) if found.verdict == "not_run" else found

    return outcome


class _Two:
    """An adapter that says which one it is."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ask(self, request: Request) -> str:
        return self.name


def _who() -> object:
    table = _kit("round_command").Table({"a": _Two("a"), "b": _Two("b")}, {"1": "a", "2": "b"})
    return table.ask(Request("session.step", {"handle": "1"}))


@mutant(
    "last-adapter-plays-everybody",
    "CNF-40",
    "acceptance: one implementation plays all parties, and the fault of another is never met",
    f"{_KIT}.round_command:Table.owner",
    _who,
    _TESTS + "test_round_command.py::test_a_request_goes_to_the_adapter_that_plays_its_session",
    kind="acceptance",
    source="wrong term",
)
def _everybody(right: Function) -> Function:
    return lambda self, request: list(self.connections)[-1]
