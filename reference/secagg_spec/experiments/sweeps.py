"""Runs the cells of an experiment on all cores or on a cluster, stores each at once, and continues stopped runs.

Each cell is stored in its own file. Its name is the SHA-256 of everything that the cell depends on: the experiment, the
cell, the data with their hashes, the device, the version of the harness, and the source that computes it. Cells finish
in any order, and are returned in the order of the experiment.

Source: spec/experiments.md, section 7 (EXP-25, EXP-26, EXP-33).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from secagg_spec import __version__, documents, system
from secagg_spec.arithmetic import validate
from secagg_spec.errors import ParameterError
from secagg_spec.experiments import catalogue, progress, sources
from secagg_spec.experiments.experiment import Context, Data, Result
from secagg_spec.experiments.progress import Share
from secagg_spec.extras import install
from secagg_spec.learning import datasets, files

Outcomes: TypeAlias = Generator[tuple[int, "Finished | str"], None, None]
"""Places of cells with their outcomes."""
FORMAT = 1
"""The version of the format of a stored cell; other versions are ignored."""
_CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Sweep:
    """The cells of an experiment in a module, everything that they depend on, and the folder of stored cells.

    `hashes` has the hashes of the files of each data set, by its name.
    """

    module: str
    name: str
    cells: Sequence[Data]
    hashes: Mapping[str, Mapping[str, str]]
    context: Context
    folder: Path

    @cached_property
    def source(self) -> str:
        """Return the SHA-256 of the source that computes the cells."""
        return sources.digest(self.module)

    def key(self, cell: Data) -> str:
        """Return the SHA-256 of everything that a cell's result depends on (EXP-25, EXP-33)."""
        whole = {
            "format": FORMAT,
            "version": __version__,
            "experiment": self.name,
            "cell": cell,
            "data": {name: dict(files) for name, files in self.hashes.items()},
            "device": self.context.device,
            "source": self.source,
        }
        return digest(whole)


@dataclass(frozen=True)
class Finished:
    """The result of a cell, and the duration of its run in seconds."""

    found: Data
    seconds: float


@dataclass(frozen=True)
class Failure:
    """A cell whose run ended with an error, and the error in one line."""

    cell: Data
    error: str


@dataclass(frozen=True)
class Swept:
    """The results of cells, in their order, with the seconds of each; and the failed cells."""

    results: tuple[Result, ...]
    seconds: tuple[float, ...]
    failures: tuple[Failure, ...]


class Reporter(Protocol):
    """Receives the progress of a sweep: the stored cells, each finished cell, and each damaged file."""

    def begin(self, cells: int, kept: int, under_way: Callable[[], float]) -> None:
        """Receive the numbers of all and of stored cells, and a function for the shares of unfinished cells."""

    def finished(self) -> None:
        """Receive that one more cell is finished."""

    def damaged(self, path: Path) -> None:
        """Receive that a stored cell cannot be used, and is run again."""


def run(sweep: Sweep, tell: Reporter, *, jobs: int = -1, scheduler: str | None = None, anew: bool = False) -> Swept:
    """Run the cells that are not stored yet.

    Parameters
    ----------
    sweep : Sweep
        The cells to run.
    tell : Told
        Receives the progress.
    jobs : int
        The number of processes; -1 for one per core.
    scheduler : str, optional
        The address of the scheduler of a Dask cluster, which runs the cells instead.
    anew : bool
        Whether to run stored cells again.

    Raises
    ------
    ParameterError
        A package is missing, or the scheduler does not answer.
    """
    keys = [sweep.key(cell) for cell in sweep.cells]
    assert len(set(keys)) == len(keys), f"{sweep.name}: two cells are the same"
    done = {} if anew else _kept(sweep, keys, tell)
    todo = [at for at, key in enumerate(keys) if key not in done]
    shares = [_shares(sweep, keys[at]) for at in todo]
    tell.begin(len(keys), len(done), lambda: progress.total(shares))
    failures = dict.fromkeys(todo, "its process was ended from outside: there may be too little memory")
    with _removed(shares), closing(_outcomes(sweep, todo, jobs, scheduler)) as outcomes:
        for at, outcome in outcomes:
            if isinstance(outcome, Finished):
                _keep(sweep.folder, keys[at], sweep.cells[at], outcome)
                done[keys[at]] = outcome
                del failures[at]
            else:
                failures[at] = outcome
            tell.finished()
    through = [
        (Result(cell, done[key].found), done[key].seconds)
        for cell, key in zip(sweep.cells, keys, strict=True)
        if key in done
    ]
    return Swept(
        tuple(result for result, _ in through),
        tuple(seconds for _, seconds in through),
        tuple(Failure(sweep.cells[at], failures[at]) for at in sorted(failures)),
    )


def run_cell(module: str, name: str, cell: Data, context: Context, shares: Path) -> Finished | str:
    """Run one cell on one thread; return its result as JSON can hold it, or its error in one line."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    start, share = time.perf_counter(), Share(shares)
    try:
        with threadpool_limits(1):
            found = catalogue.found_in(module, name).run(cell, replace(context, tell=share))
        return Finished(json.loads(canonical(found)), time.perf_counter() - start)
    except Exception as error:  # any error of a cell: the others go on
        return _line(error)
    finally:
        share.end()


def _line(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())}{where}"


# --------------------------------------------------------------------------------------------- processes, clusters


def _outcomes(sweep: Sweep, todo: Sequence[int], jobs: int, scheduler: str | None) -> Outcomes:
    """Yield the places of finished cells with their outcomes, as soon as they are known."""
    if todo:
        yield from _local(sweep, todo, jobs) if scheduler is None else _remote(sweep, todo, scheduler)


def _placed(at: int, *task: Any) -> tuple[int, Finished | str]:
    return at, run_cell(*task)


def _task(sweep: Sweep, at: int) -> tuple[str, str, Data, Context, Path]:
    cell = sweep.cells[at]
    return sweep.module, sweep.name, cell, sweep.context, _shares(sweep, sweep.key(cell))


def _shares(sweep: Sweep, key: str) -> Path:
    return sweep.folder.resolve() / f"{key}.share"


@contextmanager
def _removed(paths: Sequence[Path]) -> Iterator[None]:
    """Remove files that a killed run left behind, and at the end those of this run."""
    for path in paths:
        path.unlink(missing_ok=True)
    try:
        yield
    finally:
        for path in paths:
            path.unlink(missing_ok=True)


def _local(sweep: Sweep, todo: Sequence[int], jobs: int) -> Outcomes:
    """Run cells in processes on this machine; if a process is killed, the remaining cells are not yielded."""
    try:
        from joblib import Parallel, delayed  # noqa: PLC0415
    except ImportError:
        raise ParameterError("joblib", "absent", f"installed to run cells: {install('joblib')}") from None
    pool = Parallel(n_jobs=min(jobs, len(todo)), backend="loky", batch_size=1, return_as="generator_unordered")
    _start_janitor()
    with system.interrupts_held():
        outcomes = pool(delayed(_placed)(at, *_task(sweep, at)) for at in todo)
    try:
        for outcome in outcomes:  # noqa: UP028 (a run that ends early does not end in here, where joblib would warn)
            yield outcome
    except BrokenExecutor:
        return
    finally:
        with warnings.catch_warnings(action="ignore"):
            outcomes.close()


def _start_janitor() -> None:
    """Start the process in which loky removes what ended processes leave behind.

    It ignores interrupts itself, but only after it has imported what it needs. Its messages after an interrupt, about
    files that are already removed, are useless.
    """
    from joblib.externals.loky.backend import resource_tracker  # noqa: PLC0415

    given = os.environ.get("PYTHONWARNINGS")
    quiet = f"ignore::UserWarning:{resource_tracker.__name__}"
    os.environ["PYTHONWARNINGS"] = f"{given},{quiet}" if given else quiet
    try:
        with system.interrupts_ignored():
            resource_tracker.ensure_running()
    finally:
        if given is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = given


def _remote(sweep: Sweep, todo: Sequence[int], address: str) -> Outcomes:
    """Run cells on a Dask cluster."""
    client, as_completed = _client(address)
    with client:
        futures = {client.submit(run_cell, *_task(sweep, at), pure=False): at for at in todo}
        try:
            for future in as_completed(list(futures)):
                yield futures.pop(future), _received(future)
        finally:
            if futures:
                client.cancel(list(futures))


def _received(future: Any) -> Finished | str:
    """Return the outcome of a cell, or in one line what happened to the worker or the scheduler."""
    try:
        outcome: Finished | str = future.result()
    except Exception as error:  # the errors of distributed share no base class
        return _line(error)
    return outcome


def _client(address: str) -> tuple[Any, Callable[..., Any]]:
    try:
        from distributed import Client, as_completed  # noqa: PLC0415
    except ImportError:
        hint = f"installed for --scheduler: {install('distributed')}"
        raise ParameterError("distributed", "absent", hint) from None
    connect: Callable[..., Any] = Client
    try:
        return connect(address, timeout=_CONNECT_SECONDS), as_completed
    except (OSError, ValueError, TypeError) as error:
        answer = " ".join(str(error).split())
        raise ParameterError("scheduler", address, f"such as tcp://127.0.0.1:8786, and answer: {answer}") from None


# ------------------------------------------------------------------------------------------------------ kept cells


def hashes(dataset: str, folder: Path | None) -> dict[str, str]:
    """Return the hashes of the files of a data set, after reading and checking each file.

    Raises
    ------
    ParameterError
        The data set is unknown, or a file is missing or damaged (EXP-01, EXP-29).
    """
    validate.one_of("data set", dataset, tuple(files.SETS))
    if dataset == "digits":
        return dict(datasets.load(dataset, folder).hashes)
    if folder is None:
        raise ParameterError(
            "data set", dataset, "digits, unless --data-dir or SECAGG_SPEC_DATA names a folder with it"
        )
    for name in files.SETS[dataset]:
        files.read(folder, name)
    return files.hashes(dataset)


def canonical(data: object) -> str:
    """Return the JSON text of data with sorted names and without spaces.

    Raises
    ------
    ValueError, TypeError
        JSON cannot hold the data; this includes NaN and infinite numbers.
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(data: object) -> str:
    """Return the SHA-256 of the JSON text of data, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def _file(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def stored(sweep: Sweep) -> int:
    """Return how many cells of a sweep have a file."""
    return sum(_file(sweep.folder, sweep.key(cell)).exists() for cell in sweep.cells)


def _kept(sweep: Sweep, keys: Sequence[str], tell: Reporter) -> dict[str, Finished]:
    """Return the stored and intact cells, by key; report the others as damaged (EXP-25)."""
    found = {}
    for key in keys:
        path = _file(sweep.folder, key)
        if path.exists():
            finished = _read(path, key)
            if finished is None:
                tell.damaged(path)
            else:
                found[key] = finished
    return found


def _read(path: Path, key: str) -> Finished | None:
    """Return a stored cell, or None if its file is not the one that was written."""
    try:
        content = documents.read_json(path)
        sealed = content.pop("digest")
        if sealed == digest(content) and content["key"] == key:
            found, seconds = content["found"], content["seconds"]
            return Finished(found, seconds) if isinstance(found, dict) and isinstance(seconds, int | float) else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        pass
    return None


def _keep(folder: Path, key: str, cell: Data, finished: Finished) -> None:
    """Write a cell to its file atomically."""
    content = {"key": key, "cell": cell, "found": finished.found, "seconds": finished.seconds}
    write_whole(_file(folder, key), canonical({**content, "digest": digest(content)}) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: a reader sees the old text or the new one, even after a kill.

    Raises
    ------
    ParameterError
        The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        system.write_whole(path, text)
    except OSError as error:
        raise ParameterError("file", str(path), f"writable: {error.strerror}") from None
