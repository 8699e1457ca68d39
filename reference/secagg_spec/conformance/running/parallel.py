"""Judge one implementation with several processes and adapters; the report is the same as from one process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.util import Finalize
from types import FrameType
from typing import NoReturn

from secagg_spec import system
from secagg_spec.conformance.adapter.capabilities import Capabilities, greet
from secagg_spec.conformance.adapter.connection import ProcessConnection
from secagg_spec.conformance.adapter.wire import AdapterUnusable
from secagg_spec.conformance.checks import Check
from secagg_spec.conformance.running import drawing
from secagg_spec.conformance.running.runner import Outcome, Settings, judged, outcomes

_END_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class _Task:
    """One check of one implementation; `number` is the implementation's number, and a command starts its adapter."""

    number: int
    command: tuple[str, ...]
    timeout: float
    start_timeout: float
    declared: str
    check: Check
    settings: Settings


class Workers:
    """Processes that judge checks.

    Results are taken in the order of the checks, and results that a single process would not have produced are dropped.
    The outcomes therefore do not depend on the number of processes (CNF-02).
    """

    def __init__(self, pool: ProcessPoolExecutor, stopped: Synchronized[int]) -> None:
        self._pool, self._stopped, self._number = pool, stopped, 0

    def outcomes(
        self, connection: ProcessConnection, caps: Capabilities, checks: Iterable[Check], settings: Settings
    ) -> Iterator[Outcome]:
        """Yield the outcome of each check, as `runner.outcomes` does; `connection` says how to start the adapter."""
        self._number += 1
        chosen, silent = list(checks), replace(settings, progress=_no_progress)
        shares = settings.shared(caps, chosen).shares
        start = tuple(connection.command), connection.timeout, connection.start_timeout, connection.declared
        tasks = [
            _Task(self._number, *start, check, replace(silent, shares={check.id: shares[check.id]} if shares else {}))
            for check in chosen
            if check.runs_on(caps)
        ]
        with system.interrupts_held():
            begun = {task: self._pool.submit(_judge, task) for task in sorted(tasks, key=_is_short)}
        found = (begun[task].result() for task in tasks)
        yield from outcomes(caps, chosen, settings, lambda check: _given(found))
        self._stopped.value = self._number


@contextmanager
def workers(jobs: int) -> Iterator[Workers]:
    """Start this many processes; at the end, stop them and their adapters."""
    context = multiprocessing.get_context("spawn")
    stopped = context.Value("i", 0)
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(jobs, context, _begin, (stopped,))
    try:
        yield Workers(pool, stopped)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        _stop(set(multiprocessing.active_children()) - others)
        raise
    pool.shutdown()


def _stop(children: Iterable[BaseProcess]) -> None:
    """End processes, all at once; one that does not end in time is killed."""
    for child in children:
        child.terminate()
    for child in children:
        child.join(_END_SECONDS)
        child.kill()


def _is_short(task: _Task) -> bool:
    """Return whether a check is no statistic of many requests: one of these at the end would keep a process waiting."""
    return not (task.check.examples == 1 and task.check.id.startswith("privacy/"))


def _no_progress(check: Check, done: int, total: int) -> None:
    """Show nothing: only the first process shows progress."""


def _given(results: Iterator[Outcome | AdapterUnusable | None]) -> Outcome:
    """Return the next outcome, or raise the error that prevented it."""
    try:
        found = next(results)
    except BrokenProcessPool:
        raise AdapterUnusable("a process that judged has ended") from None
    assert found is not None, "only checks that would not be run are left out"
    if isinstance(found, AdapterUnusable):
        raise found
    return found


@dataclass
class _Worker:
    """The state that a process keeps between checks."""

    stopped: Synchronized[int]
    number: int = 0
    connection: ProcessConnection | None = None
    caps: Capabilities | None = None

    def close(self) -> None:
        """End the adapter."""
        if self.connection:
            self.connection.close()
        self.connection = self.caps = None

    def exit(self) -> NoReturn:
        """End the adapter and this process, whatever it is doing."""
        self.close()
        os._exit(128 + signal.SIGTERM)

    def turn_to(self, task: _Task) -> tuple[ProcessConnection, Capabilities]:
        """Return a connection to the implementation of a task, after starting it and exchanging `hello`."""
        if self.number != task.number:
            self.close()
            self.number = task.number
        if self.connection is None:
            self.connection = ProcessConnection(task.command, task.timeout, task.start_timeout)
            self.connection.declared = task.declared
        if self.caps is None:
            self.caps = greet(self.connection.ask)
        return self.connection, self.caps


_workers: list[_Worker] = []
"""The worker of this process; empty in the first process."""


def _begin(stopped: Synchronized[int]) -> None:
    """Leave interrupts to the first process, and close the adapter when this process ends."""
    drawing.leave_the_folder_alone()
    worker = _Worker(stopped)
    _workers.append(worker)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    threading.Thread(target=_end_with_the_first, args=(worker,), daemon=True).start()
    Finalize(None, worker.close, exitpriority=100)


def _end_with_the_first(worker: _Worker) -> None:
    """Wait until the first process has ended for any reason, then end the adapter and this process."""
    first = multiprocessing.parent_process()
    assert first is not None
    first.join()
    worker.exit()


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End at once: the code that a signal interrupts might drop an exception, or treat it as a failure of the check."""
    signal.signal(number, signal.SIG_IGN)
    _workers[0].exit()


def _judge(task: _Task) -> Outcome | AdapterUnusable | None:
    """Judge one check; return None if the rest of the run is no longer wanted."""
    worker = _workers[0]
    if task.number <= worker.stopped.value:
        return None
    try:
        connection, caps = worker.turn_to(task)
        return judged(connection, caps, task.check, task.settings)
    except AdapterUnusable as unusable:
        return unusable
