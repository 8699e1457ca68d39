"""Arrivals, delays and timeouts of users as data, in an unambiguous order.

A `Schedule` is a list of events that is known in advance: written by hand, drawn from a seed, or read from the log of
a deployment. An `Agenda` runs a schedule, and accepts new events while it runs, such as an answer some time after a
question. Events at the same time come in the order in which they were added. This module knows no protocol.

Why no library does this: docs/decisions/0007-events.md.
"""

from __future__ import annotations

import csv
import heapq
import io
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.crypto.entropy import SeededSource, draw_rounding
from secagg_spec.errors import LengthMismatch, OutOfRange, ParameterError
from secagg_spec.selection.logs import CUT

COLUMNS = ("time", "kind", "user")
MOST_DELAYS = 2**24
"""The most delays that are drawn at once, of about 1 GiB."""
DOWNLOAD, UPLOAD, TIMEOUT = "download", "upload", "timeout"
_NOT_ZERO = re.compile(r"[^e]*[1-9]", re.ASCII | re.IGNORECASE)
_KIND = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
_TIME = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_USER = re.compile(r"0|[1-9][0-9]{0,9}")
Law: TypeAlias = Literal["exponential", "uniform"]


@dataclass(frozen=True)
class Event(validate.Plain):
    """Something that a user does, or that happens to a user, at a time of at least 0.

    Raises
    ------
    OutOfRange
        The time is negative, NaN or infinite.
    ParameterError
        The time is not a number, the kind not a word of at most 40 lowercase letters, digits and _, or the user not an
        integer of at least 0.
    """

    time: float
    kind: str
    user: int

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "time", _time("time", self.time))
        if not isinstance(self.kind, str) or not _KIND.fullmatch(self.kind):
            raise ParameterError(
                "kind",
                self.kind,
                "a word of at most 40 characters: a lowercase letter, then such letters, digits and _",
            )
        validate.integer("user", self.user, 0, validate.MAX_COUNT - 1)


@dataclass(frozen=True)
class Schedule(validate.Plain):
    """Events of the users 0 to N - 1, in order of time.

    Raises
    ------
    OutOfRange
        The clock runs backwards.
    UnknownUser
        A user is not below N.
    ParameterError
        An item is not an event, or N is not a number of users.
    """

    N: int
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.integer("N", self.N, 1, validate.MAX_COUNT)
        validate.sequence("events", self.events, "events")
        clock = 0.0
        for event in self.events:
            clock = _fitting(event, self.N, clock).time


def ordered(N: int, events: Iterable[Event]) -> Schedule:
    """Return the schedule of events that are given in any order; events at the same time keep their order.

    Raises `ParameterError` for an item that is not an event, and `UnknownUser` for a user that is not below N.
    """
    if not isinstance(events, Iterable):
        raise ParameterError("events", type(events).__name__, "events")
    given = list(events)
    for event in given:
        _fitting(event, validate.integer("N", N, 1, validate.MAX_COUNT), 0.0)
    return Schedule(N, tuple(sorted(given, key=lambda event: event.time)))


def jobs(delays: Sequence[Sequence[float]], *, timeout: float | None = None) -> Schedule:
    """Return the schedule of users that train without a pause: they download, and upload after a delay.

    Raises `ParameterError` for a delay or a timeout that is not a number, is negative or is not finite, and
    `OutOfRange` for delays of a user that add up to no finite time, and `LengthMismatch` for delays of no user.

    Parameters
    ----------
    delays : sequence of N sequences
        The delays of each user, one after the other, at least 0.
    timeout : float, optional
        A job that takes longer than this ends with a timeout and without an upload.
    """
    limit = math.inf if timeout is None else _time("timeout", timeout)
    if not (rows := validate.sequence("delays", delays, "sequences of delays")):
        raise LengthMismatch("len(delays)", 0, "at least 1, for one user")
    return ordered(len(rows), (event for user in range(len(rows)) for event in _jobs_of(user, rows[user], limit)))


def _jobs_of(user: int, delays: Sequence[float], limit: float) -> Iterator[Event]:
    clock = 0.0
    for delay in validate.sequence("delays", delays, "delays"):
        spent = _time("delays", delay)
        yield Event(clock, DOWNLOAD, user)
        clock += min(spent, limit)
        if math.isinf(clock):
            raise OutOfRange("delays", delay, "delays of a user that add up to a finite time")
        yield Event(clock, UPLOAD if spent <= limit else TIMEOUT, user)


def drawn_delays(seed: bytes, N: int, count: int, law: Law, low: float, high: float) -> list[list[float]]:
    """Return `count` delays for each of N users, drawn from a seed.

    An exponential delay is `low` plus an exponential variable with the mean ``high - low``. A uniform one lies between
    `low` and `high`. Exponential delays use the machine's logarithm: if the last bits matter, store the schedule.
    Each delay takes 65 bytes, and each user 220 bytes and some 20 microseconds.

    Raises
    ------
    ParameterError
        A number is not one, is negative or not finite, the law is unknown, `high` is below `low`, or the users or all
        delays are more than 2^24.
    OutOfRange
        A delay is not finite, as `high` is too large.
    """
    low, high = _time("low", low), _time("high", high)
    if not isinstance(law, str) or law not in ("exponential", "uniform") or high < low:
        raise ParameterError("law", (law, low, high), "'exponential' or 'uniform', with low <= high")
    users = range(validate.integer("N", N, 1, MOST_DELAYS))
    count = validate.integer("count", count, 0, MOST_DELAYS // len(users))
    draws = [draw_rounding(SeededSource(seed, f"delays of user {user}"), count).tolist() for user in users]
    rows = [[low + (high - low) * (u if law == "uniform" else -math.log1p(-u)) for u in row] for row in draws]
    if not all(math.isfinite(delay) for row in rows for delay in row):
        raise OutOfRange("high", high, "such that all delays are finite")
    return rows


class Agenda:
    """A clock that runs events in order of time; events at the same time run in the order in which they were added."""

    def __init__(self, schedule: Schedule) -> None:
        if not isinstance(schedule, Schedule):
            raise ParameterError("schedule", type(schedule).__name__, "a Schedule")
        self.N, self.now, self._added = schedule.N, 0.0, 0
        self._waiting: list[tuple[float, int, Event]] = []
        for event in schedule.events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Add an event.

        Raises
        ------
        OutOfRange
            The event is before now: the clock would run backwards.
        UnknownUser
            The user is not below N.
        ParameterError
            It is no event.
        """
        event = _fitting(validate.instance("event", event, Event), self.N, self.now)
        heapq.heappush(self._waiting, (event.time, self._added, event))
        self._added += 1

    def __iter__(self) -> Iterator[Event]:
        """Yield events until none waits; more events may be added while this runs."""
        while self._waiting:
            self.now, _, event = heapq.heappop(self._waiting)
            yield event


def to_csv(schedule: Schedule) -> str:
    """Return a schedule as CSV with the columns time, kind and user, and a header line."""
    out = io.StringIO()
    rows = [[repr(event.time), event.kind, event.user] for event in schedule.events]
    csv.writer(out, lineterminator="\n").writerows([COLUMNS, *rows])
    return out.getvalue()


def from_csv(text: str, N: int, *, name: str = "text", kinds: Sequence[str] = ()) -> Schedule:
    """Return the schedule of N users from CSV as `to_csv` writes it, such as a deployment's log, in order of time.

    Parameters
    ----------
    text : str
        A header line, and a line for each event, each with its end; empty lines are skipped.
    N : int
        The number of users.
    name : str
        What errors call the text, such as the name of its file.
    kinds : sequence of str
        The kinds of events that are allowed; any lowercase word if there are none.

    Raises
    ------
    ParameterError
        A line is of another form, or as the errors of `Event` and `Schedule`; the error names the line. Or N is not a
        number of users, or the kinds are no sequence of texts.
    """
    validate.integer("N", N, 1, validate.MAX_COUNT)
    validate.instance("name", name, str)
    for kind in validate.sequence("kinds", kinds, "lowercase words"):
        if not isinstance(kind, str):
            raise ParameterError("kinds", kind, "a sequence of lowercase words")
    lines = _lines(text, name)
    head = next(lines, (1, []))[1]
    if tuple(head) != COLUMNS:
        raise ParameterError(name, ",".join(head), f"CSV with the first line {','.join(COLUMNS)}")
    found: list[Event] = []
    for at, fields in lines:
        try:
            found.append(_fitting(_event(fields, kinds), N, found[-1].time if found else 0.0))
        except ParameterError as error:
            raise type(error)(f"{name}, line {at}, {error.parameter}", error.value, error.allowed) from None
    return Schedule(N, tuple(found))


def _lines(text: object, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each nonempty line with its number."""
    if not isinstance(text, str):
        raise ParameterError(name, type(text).__name__, f"text: CSV with the first line {','.join(COLUMNS)}")
    if text and not text.endswith(("\n", "\r")):
        raise ParameterError(f"{name}, last line", text.replace("\r", "\n").rpartition("\n")[2], CUT)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if fields:
                yield reader.line_num, fields
    except csv.Error as error:
        raise ParameterError(f"{name}, line {reader.line_num}", str(error), "comma-separated values") from None


def _event(fields: Sequence[str], kinds: Sequence[str]) -> Event:
    """Return the event in the fields of a line."""
    if len(fields) != len(COLUMNS):
        raise ParameterError("fields", len(fields), f"{len(COLUMNS)}: {','.join(COLUMNS)}")
    time, kind, user = fields
    if not _TIME.fullmatch(time):
        raise ParameterError("time", time, "a number of at least 0, as 0, 1.5 or 1e-05")
    if kinds:
        validate.one_of("kind", kind, kinds)
    if not _USER.fullmatch(user):
        raise ParameterError("user", user, "a whole number of at most 10 digits, as 0 or 17")
    moment = float(time)
    if not moment and _NOT_ZERO.match(time):
        raise ParameterError("time", time, "0, or so large that the nearest float is not 0")
    return Event(moment, kind, int(user))


def _fitting(event: object, N: int, clock: float) -> Event:
    """Return the event if its user is below N and its time is not before the clock; raise otherwise."""
    if not isinstance(event, Event):
        raise ParameterError("events", event, "an Event")
    validate.users("user", (event.user,), N)
    if event.time < clock:
        raise OutOfRange("time", event.time, f"{clock} or later: the clock does not run backwards")
    return event


def _time(name: str, value: object) -> float:
    found = validate.number(value)
    if found is None:
        raise ParameterError(name, value, "a number: an integer, or a float of 64 bits at most")
    if not 0 <= found <= sys.float_info.max:
        raise OutOfRange(name, found, "finite and at least 0")
    if float(found) != found:
        raise ParameterError(name, found, "a number that binary64 has")
    return float(found)


guard(__name__)
