"""Schedules of events: their order, what is refused, their files, and the agenda that runs them."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secagg_spec import events
from secagg_spec.errors import OutOfRange, ParameterError, UnknownUser
from secagg_spec.events import Agenda, Event, Schedule, drawn_delays, jobs, ordered

SEED = bytes(range(32))
TIME = "at least 0"
times = st.sampled_from((0.0, 1.0, 1.5)) | st.floats(0, 1e6)
some_events = st.lists(st.builds(Event, times, st.sampled_from(("download", "upload", "x_1")), st.integers(0, 4)))
schedules = some_events.map(lambda given: ordered(5, given))


@given(some_events)
def test_events_are_ordered_by_time_and_then_as_they_were_given(given: list[Event]) -> None:
    schedule = ordered(5, given)
    for time in {event.time for event in given}:
        assert [e for e in schedule.events if e.time == time] == [e for e in given if e.time == time]
    assert all(first.time <= second.time for first, second in pairwise(schedule.events))
    assert len(schedule.events) == len(given)


@given(schedules)
def test_an_agenda_runs_a_schedule(schedule: Schedule) -> None:
    assert tuple(Agenda(schedule)) == schedule.events


def test_events_that_follow_from_others_come_behind_those_of_their_time() -> None:
    agenda = Agenda(ordered(2, [Event(1, "ask", 0), Event(3, "ask", 1), Event(2, "ask", 0)]))
    seen = []
    for event in agenda:
        assert agenda.now == event.time
        seen.append((event.time, event.kind))
        if event.kind == "ask":
            agenda.add(Event(event.time + 1, "answer", event.user))
    assert seen == [(1, "ask"), (2, "ask"), (2, "answer"), (3, "ask"), (3, "answer"), (4, "answer")]


def test_an_agenda_goes_on_when_something_is_added_at_its_end() -> None:
    agenda = Agenda(Schedule(1, ()))
    assert list(agenda) == []
    agenda.add(Event(2, "late", 0))
    assert [event.kind for event in agenda] == ["late"]
    with pytest.raises(OutOfRange, match="the clock does not run backwards"):
        agenda.add(Event(1, "early", 0))
    assert list(agenda) == []


# ----------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("time", [-1, -0.5, math.nan, math.inf, -math.inf, 10**400])
def test_a_time_that_is_none_is_refused(time: float) -> None:
    with pytest.raises(OutOfRange, match=TIME):
        Event(time, "upload", 0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("1", "upload", 0), ParameterError),
        ((True, "upload", 0), ParameterError),
        ((2**53 + 1, "upload", 0), ParameterError),
        ((1, "", 0), ParameterError),
        ((1, "Upload", 0), ParameterError),
        ((1, "up,load", 0), ParameterError),
        ((1, 7, 0), ParameterError),
        ((1, "upload", -1), ParameterError),
        ((1, "upload", 1.0), ParameterError),
    ],
)
def test_what_is_no_event_is_refused(arguments: Any, error: type[ParameterError]) -> None:
    with pytest.raises(error):
        Event(*arguments)


def test_a_clock_that_runs_backwards_is_refused() -> None:
    with pytest.raises(OutOfRange, match=r"time = 1\.0: must be 2\.0 or later: the clock does not run backwards"):
        Schedule(2, (Event(2, "upload", 0), Event(1, "upload", 1)))


def test_unknown_users_and_things_are_refused() -> None:
    with pytest.raises(UnknownUser, match="user = 5"):
        ordered(5, [Event(1, "upload", 5)])
    with pytest.raises(UnknownUser):
        Schedule(5, (Event(1, "upload", 5),))
    with pytest.raises(UnknownUser):
        Agenda(Schedule(5, ())).add(Event(1, "upload", 5))
    with pytest.raises(ParameterError, match=r"^event = "):
        Agenda(Schedule(5, ())).add(3)  # type: ignore[arg-type]
    for wrong in (3, [3], [None], "upload", None):
        with pytest.raises(ParameterError):
            ordered(5, wrong)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            Schedule(5, wrong)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            Agenda(wrong)  # type: ignore[arg-type]
    for N in (0, -1, 1.5, None):
        with pytest.raises(ParameterError):
            Schedule(N, ())  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ jobs and delays


def test_jobs_follow_each_other() -> None:
    got = [(e.time, e.kind, e.user) for e in jobs([[1, 2], [2.5]]).events]
    assert got == [
        (0, "download", 0),
        (0, "download", 1),
        (1, "upload", 0),
        (1, "download", 0),
        (2.5, "upload", 1),
        (3, "upload", 0),
    ]


def test_a_job_that_takes_too_long_ends_by_a_timeout() -> None:
    got = [(e.time, e.kind) for e in jobs([[1, 5, 2]], timeout=2).events]
    assert got == [
        (0, "download"),
        (1, "upload"),
        (1, "download"),
        (3, "timeout"),
        (3, "download"),
        (5, "upload"),
    ]


@pytest.mark.parametrize("delays", [[[-1]], [[math.nan]], [["1"]], [1], 1, None, [], "12"])
def test_delays_that_are_none_are_refused(delays: Any) -> None:
    with pytest.raises(ParameterError, match="delays"):
        jobs(delays)
    with pytest.raises(OutOfRange):
        jobs([[1]], timeout=-1)


@given(st.integers(1, 5), st.integers(0, 20), st.sampled_from(("exponential", "uniform")))
def test_a_seed_determines_delays_of_which_more_do_not_change_the_first(N: int, count: int, law: Any) -> None:
    once = drawn_delays(SEED, N, count, law, 1.0, 3.0)
    assert once == drawn_delays(SEED, N, count, law, 1.0, 3.0)
    assert [len(row) for row in once] == [count] * N
    assert all(delay >= 1 for row in once for delay in row)
    assert law == "exponential" or all(delay < 3 for row in once for delay in row)
    assert [row[:count] for row in drawn_delays(SEED, N + 1, count, law, 1.0, 3.0)][:N] == once
    assert count == 0 or once != drawn_delays(bytes(32), N, count, law, 1.0, 3.0)


@pytest.mark.parametrize(("law", "spread"), [("exponential", 4.0), ("uniform", 4.0 / 3)])
def test_drawn_delays_have_the_mean_and_variance_of_their_law(law: Any, spread: float) -> None:
    """For 20,000 delays the mean is off by more than 0.1 with a probability below 10**-9."""
    (row,) = drawn_delays(SEED, 1, 20_000, law, 1.0, 3.0 if law == "exponential" else 5.0)
    mean = sum(row) / len(row)
    assert abs(mean - 3) < 0.1
    assert abs(sum((delay - mean) ** 2 for delay in row) / len(row) - spread) < 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        (SEED, 0, 1, "uniform", 0, 1),
        (SEED, 1, -1, "uniform", 0, 1),
        (SEED, 1, 1, "normal", 0, 1),
        (SEED, 1, 1, np.array(["uniform", "uniform"]), 0, 1),
        (SEED, 1, 1, "uniform", 2, 1),
        (SEED, 1, 1, "uniform", -1, 1),
        (SEED, 1, 1, "uniform", 0, math.inf),
        (7, 1, 1, "uniform", 0, 1),
        (SEED, 2**24 + 1, 0, "uniform", 0, 1),
        (SEED, 1, 2**24 + 1, "uniform", 0, 1),
        (SEED, 2**12, 2**12 + 1, "uniform", 0, 1),
    ],
)
def test_numbers_of_delays_that_are_none_are_refused(arguments: Any) -> None:
    with pytest.raises(ParameterError):
        drawn_delays(*arguments)


def test_no_time_or_delay_is_infinite() -> None:
    with pytest.raises(OutOfRange, match=r"^delays = 1e\+308: must be delays of a user that add up to a finite time$"):
        jobs([[1e308, 1e308]])
    with pytest.raises(OutOfRange, match=r"^high = 1.7e\+308: must be such that all delays are finite$"):
        drawn_delays(SEED, 1, 9, "exponential", 0, 1.7e308)


# -------------------------------------------------------------------------------------------------------------- files


@given(schedules)
def test_files_hold_every_bit(schedule: Schedule) -> None:
    assert events.from_csv(events.to_csv(schedule), 5) == schedule


def test_a_log_of_a_deployment_is_read() -> None:
    log = "time,kind,user\r\n0.5,upload,1\r\n\r\n0.5,drop,0\r\n7,upload,1\r\n"
    schedule = events.from_csv(log, 2)
    assert schedule.events == (Event(0.5, "upload", 1), Event(0.5, "drop", 0), Event(7, "upload", 1))


BAD_CSV: tuple[Any, ...] = (
    "",
    7,
    b"time,kind,user",
    "time,user,kind\n1,0,upload\n",
    "time,kind,user\n1,upload\n",
    "time,kind,user\n1,upload,0,0\n",
    "time,kind,user\nnan,upload,0\n",
    "time,kind,user\n-1,upload,0\n",
    "time,kind,user\nx,upload,0\n",
    "time,kind,user\n1,upload,1.0\n",
    "time,kind,user\n1,upload,9\n",
    "time,kind,user\n2,upload,0\n1,upload,0\n",
    'time,kind,user\n1,"up\n',
    "time,kind,user\n1,upload,1",
    "time,kind,user",
    "time,kind,user\n-1e-999,upload,0\n",
    "time,kind,user\n0.001e-999,upload,0\n",
)


@pytest.mark.parametrize("text", BAD_CSV)
def test_a_csv_that_is_none_is_refused(text: Any) -> None:
    with pytest.raises(ParameterError):
        events.from_csv(text, 2)


def test_what_is_wrong_is_named_with_what_is_allowed() -> None:
    assert events.from_csv("time,kind,user\n0e-999,upload,0\n0.000,upload,1\n", 2).events[0].time == 0
    with pytest.raises(ParameterError, match="line 2, time = '1e-999': must be 0, or so large that the nearest"):
        events.from_csv("time,kind,user\n1e-999,upload,0\n", 2)
    events.Event(0, "a" * 40, 0)
    with pytest.raises(ParameterError, match=r"kind = 'a*': must be a word of at most 40 characters"):
        events.Event(0, "a" * 41, 0)
    with pytest.raises(ParameterError, match=r"^count = -1: "):
        drawn_delays(SEED, 2, -1, "uniform", 0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *(({"N": wrong}, f"^N = {wrong!r}: must be an integer in") for wrong in (0, -1, "5", None)),
        ({"kinds": ["download"]}, "^text, line 2, kind = 'upload': must be one of download$"),
        ({"kinds": "upload"}, "^kinds = 'str': must be a list or another sequence of text$"),
        ({"name": None}, "^name = 'NoneType': must be "),
        ({"kinds": [3]}, "^kinds = 3: must be a sequence of lowercase words$"),
    ],
)
def test_what_is_asked_of_a_csv_is_blamed_by_its_name(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        events.from_csv("time,kind,user\n1,upload,0\n", **{"N": 1, **arguments})
