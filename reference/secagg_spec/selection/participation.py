"""Logs of sessions: which users' models each sum contained.

====================  ==========================================
paper                 here
====================  ==========================================
N                     `count` of a `Roster`
J, P                  `rounds` of a `Log`, `sets` of its `Sums`
====================  ==========================================

Source: spec/multi-round.md, sections 4 and 7 (MRA-15, MRA-24 to MRA-26).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.arithmetic.validate import BoolArray
from secagg_spec.errors import DuplicateUser, LengthMismatch, ParameterError, UnknownUser

Whole = NDArray[np.int64]
WHOLE_DIGITS = 18
"""The most digits of a number in a log."""
_LAST = 10**WHOLE_DIGITS
MAX_ENTRIES = 2**28
"""The largest number of truth values in the sets of a log, one for each user of each set."""
MAX_USERS = 2**24
"""The most users on a roster."""
MAX_SEGMENTS = 2**16
"""The most segments of a round: HeteroSAg has one for each subgroup, of 2^16 users at most (HSA-01)."""


@dataclass(frozen=True)
class Roster(validate.Plain):
    """The users of a session: `count` users, with names or numbered from 0.

    `closed` says whether the roster was given. Otherwise it has the users that the log names, and users in no round are
    unknown.

    Raises
    ------
    ParameterError
        The count is no number of users, there is no name, or a name is not a string, or is empty; or `closed` is no
        truth value.
    DuplicateUser
        A name occurs twice.
    LengthMismatch
        There is not one name for each user.
    """

    count: int
    names: tuple[str, ...] | None = None
    closed: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names is not None:
            self._check_names(self.names)
        validate.integer("users", self.count, 0 if not self.closed else 1, MAX_USERS)

    @classmethod
    def named(cls, names: Sequence[str], closed: bool = True) -> Roster:
        """Return the roster of the users with the given names, in their order; it raises as the class does."""
        return cls(len(validate.sequence("names", names, "names")), tuple(names), closed)

    def _check_names(self, names: Sequence[str]) -> None:
        seen = set[str]()
        for name in validate.sequence("names", names, "names"):
            if not isinstance(name, str) or not name:
                raise ParameterError("names", name, "text that is not empty")
            if name in seen:
                raise DuplicateUser("names", name, "a name that stands once")
            seen.add(name)
        if self.closed and not seen:
            raise ParameterError("names", names, "at least one")
        if len(names) != self.count:
            raise LengthMismatch("len(names)", len(names), f"{self.count}, one for each user")

    def name(self, user: int) -> str:
        """Return the name of a user in [0, count)."""
        validate.integer("user", user, 0, self.count - 1)
        return str(user) if self.names is None else self.names[user]

    def number(self, name: str) -> int:
        """Return the number of the user with the given name.

        Raises
        ------
        UnknownUser
            No user has this name (MRA-26).
        ParameterError
            The name is not a string.
        """
        validate.instance("name", name, str)
        found = self._numbers.get(name, -1) if self.names is not None else whole_number(name)
        if found is None or not 0 <= found < self.count or self.name(found) != name:
            raise UnknownUser("name", name, self.allowed)
        return found

    @property
    def allowed(self) -> str:
        """The allowed users, in words for an error message."""
        if self.names is None:
            return f"a user of the roster, a whole number in [0, {self.count})"
        shown = ", ".join(self.names[:3]) + (", …" if self.count > 3 else "")
        return f"a user of the roster, one of {self.count} name{'s' if self.count > 1 else ''} ({shown})"

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: user for user, name in enumerate(self.names or ())}


def whole_number(text: str) -> int | None:
    """Return the value of a string of at most `WHOLE_DIGITS` digits; None for any other string."""
    validate.instance("text", text, str)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= WHOLE_DIGITS else None


@dataclass(frozen=True, eq=False)
class Sums:
    """The observed sums, of all elements or of one segment: the users in each sum, and its round.

    `sets` are (S, N) truth values; `rounds` are ascending round numbers, where 0 is the first round of the log. Both
    are read-only here; an array that can be written to is copied.

    Raises
    ------
    ParameterError
        An array is of another type or shape, or the rounds are not ascending from 0 on or later.
    """

    sets: BoolArray
    rounds: Whole

    def __post_init__(self) -> None:
        validate.truths("sets", self.sets, (None, None))
        validate.array_shape("rounds", validate.signed("rounds", self.rounds), (len(self.sets),))
        if (np.diff(self.rounds, prepend=0) < 0).any():
            raise ParameterError("rounds", self.rounds, "ascending integers of at least 0")
        for name, given in (("sets", self.sets), ("rounds", self.rounds)):
            object.__setattr__(self, name, validate.frozen(given) if given.flags.writeable else given)


@dataclass(frozen=True, eq=False)
class Log(validate.Plain):
    """The rounds of a session, numbered from `first`, and their sums: one per round, or one per cell of a segment.

    Raises
    ------
    ParameterError
        A member is of another type, or out of its range; or without cells a round has two sums.
    LengthMismatch
        The sums are over another number of users than the roster has, or without cells they are not as many as rounds.
    """

    roster: Roster
    first: int
    rounds: int
    segments: tuple[Sums, ...]
    cells: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        validate.instance("roster", self.roster, Roster)
        validate.integer("first", self.first, 0, _LAST)
        validate.integer("rounds", self.rounds, 0, validate.MAX_COUNT)
        for at, sums in enumerate(validate.sequence("segments", self.segments, "sums")):
            where = f"segments[{at}]"
            validate.array_shape(f"{where}.sets", validate.instance(where, sums, Sums).sets, (None, self.roster.count))
            if sums.rounds.size:
                validate.integer(f"{where}.rounds[-1]", sums.rounds[-1], 0, self.rounds - 1)
        if not self.segments or not (self.cells or len(self.segments) == 1):
            allowed = "1 or more" if self.cells else "1, of a log without cells"
            raise LengthMismatch("len(segments)", len(self.segments), allowed)
        if not self.cells:
            self._check_each_once(self.segments[0].rounds)

    def _check_each_once(self, rounds: Whole) -> None:
        if len(rounds) != self.rounds:
            raise LengthMismatch("len(segments[0].rounds)", len(rounds), f"{self.rounds}, each once")
        wrong = np.flatnonzero(rounds != np.arange(self.rounds))
        if wrong.size:
            at = int(wrong[0])
            raise ParameterError(f"segments[0].rounds[{at}]", int(rounds[at]), f"{at}: each round is there once")

    def number(self, at: int) -> int:
        """Return the number in the log of the round with index `at`, counted from 0.

        Raises
        ------
        ParameterError
            The log has no such round.
        """
        return self.first + validate.integer("at", at, 0, self.rounds - 1)

    @cached_property
    def taking_part(self) -> BoolArray:
        """Whether each user is in a sum of each round, (J, N) truth values."""
        if not self.cells:
            return self.segments[0].sets
        found = np.zeros((self.rounds, self.roster.count), dtype=bool)
        for sums in self.segments:
            for at, members in zip(sums.rounds.tolist(), sums.sets, strict=True):
                found[at] |= members
        return found


def of_sets(roster: Roster, rounds: Sequence[Sequence[int]], first: int = 0) -> Log:
    """Return the log of rounds that are given by the users in their sums.

    Parameters
    ----------
    roster : Roster
        The users.
    rounds : sequence of sequences of int
        The users of each round, in any order; empty if the round had no sum.
    first : int
        The number of the first round.

    Raises
    ------
    DuplicateUser, UnknownUser
        A round lists a user twice, or a user who is not on the roster (MRA-15).
    ParameterError
        An argument has the wrong type.
    """
    validate.integer("first", first, 0, _LAST)
    table = Table(roster)
    for at, members in enumerate(validate.sequence("rounds", rounds, "lists of users")):
        table.add(f"rounds[{at}]", at, 0, validate.users(f"rounds[{at}]", members, roster.count))
    found = table.log()
    return Log(roster, first, found.rounds, found.segments)


Spot = int | str


class Table:
    """Lines of a log: each has the users of a round or of one segment of a round, or a part of these users.

    Parameters
    ----------
    roster : Roster
        The users.
    several : bool
        Whether a round may have several lines.
    cells : bool
        Whether lines are cells of segments.
    spot : callable
        How a line is named in an error.
    """

    def __init__(
        self,
        roster: Roster,
        several: bool = False,
        cells: bool = False,
        spot: Callable[[Spot], str] = str,
    ) -> None:
        self.roster = roster
        self.several = several
        self.cells = cells
        self.spot = spot
        self._spots: list[Spot] | array[int] = array("q")
        self._rounds, self._segments, self._lengths, self._users = (array("q") for _ in range(4))

    def add(self, spot: Spot, round: int, segment: int, users: Iterable[int]) -> None:
        """Add a line, for checked arguments."""
        if isinstance(spot, str) and isinstance(self._spots, array):
            self._spots = list(self._spots)
        self._spots.append(spot)  # type: ignore[arg-type]
        self._rounds.append(round)
        self._segments.append(segment)
        before = len(self._users)
        self._users.extend(users)
        self._lengths.append(len(self._users) - before)

    def add_ones(self, spot: int, rounds: Whole, users: Whole) -> None:
        """Add lines with one user each, of segment 0; the first is line `spot`."""
        assert isinstance(self._spots, array)
        lines = np.arange(spot, spot + len(rounds))
        columns = (self._spots, lines), (self._rounds, rounds), (self._segments, 0 * lines), (self._users, users)
        for column, numbers in (*columns, (self._lengths, 0 * lines + 1)):
            column.frombytes(numbers.astype(np.int64).tobytes())

    def rename(self, roster: Roster, order: Sequence[int]) -> None:
        """Replace the roster; user i becomes `order[i]`."""
        self.roster = roster
        self._users = array("q", np.array(order, dtype=np.int64)[np.array(self._users, dtype=np.int64)].tobytes())

    def log(self, parts: int = 1) -> Log:
        """Return the log that the lines describe; one of cells, and without lines, has `parts` segments.

        Raises
        ------
        ParameterError
            A round or a segment is missing (MRA-24), occurs twice, or has both an empty line and users (MRA-25); or the
            number of segments is none.
        DuplicateUser
            A user occurs twice in a round, or in a segment of a round (MRA-25).
        """
        parts = validate.integer("parts", parts, 1, MAX_SEGMENTS if self.cells else 1)
        rounds, segments, lengths, users = (
            np.array(column, dtype=np.int64) for column in (self._rounds, self._segments, self._lengths, self._users)
        )
        first = int(rounds.min()) if rounds.size else 0
        rounds = rounds - first
        self._check_gaps(rounds, first)
        count, parts = (int(rounds.max()) + 1, int(segments.max()) + 1) if rounds.size else (0, parts)
        self._check_segments(rounds, segments, count, parts, first)
        places = rounds * parts + segments
        self._check_empty(places, lengths, rounds, segments, first)
        self._check_size(len(lengths) if self.cells else count)
        lines = np.repeat(np.arange(len(lengths)), lengths)
        self._check_users(places[lines], users, lines, first, parts)
        if not self.cells:
            whole = np.zeros((count, self.roster.count), dtype=bool)
            whole[rounds[lines], users] = True
            return Log(self.roster, first, count, (Sums(validate.read_only(whole), np.arange(count)),))
        return Log(self.roster, first, count, tuple(self._sums(parts, rounds, segments, lengths, users)), True)

    def _sums(self, parts: int, rounds: Whole, segments: Whole, lengths: Whole, users: Whole) -> Iterator[Sums]:
        """Yield the cells of each segment, in the order of rounds."""
        cells = np.flatnonzero(lengths)
        cells = cells[np.lexsort((cells, rounds[cells], segments[cells]))]
        ends = np.cumsum(lengths)
        for own in np.split(cells, np.searchsorted(segments[cells], np.arange(1, parts))):
            sets = np.zeros((len(own), self.roster.count), dtype=bool)
            for row, cell in enumerate(own):
                sets[row, users[ends[cell] - lengths[cell] : ends[cell]]] = True
            yield Sums(validate.read_only(sets), rounds[own])

    def _check_gaps(self, rounds: Whole, first: int) -> None:
        there = np.unique(rounds)
        before = np.flatnonzero(np.diff(there) > 1)
        if before.size:
            gaps = [(first + int(there[at]) + 1, first + int(there[at + 1]) - 1) for at in before[:5]]
            named = ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in gaps)
            raise ParameterError(
                self.spot("missing rounds"),
                Words(named + (", …" if len(before) > 5 else "")),
                f"none: each round from the first, {first}, to the last, {first + int(there[-1])}, has a line, "
                "without a user if it had no sum",
            )

    def _check_segments(self, rounds: Whole, segments: Whole, count: int, parts: int, first: int) -> None:
        if not self.cells or not count:
            return
        if parts > MAX_SEGMENTS:
            allowed = f"below {MAX_SEGMENTS}: a round has as many segments as subgroups, and no more than users"
            raise ParameterError(f"{self.spot(self._spots[int(segments.argmax())])}, segment", parts - 1, allowed)
        there = np.unique(segments)
        missing = _first_missing(there, parts)
        if missing is not None:
            raise ParameterError(self.spot("missing segment"), missing, f"none: segments are 0 to {parts - 1}")
        missing = _first_missing(np.unique(rounds * parts + segments), count * parts)
        if missing is not None:
            at, segment = divmod(missing, parts)
            raise ParameterError(
                self.spot(f"missing segment of round {first + at}"),
                segment,
                f"none: each round has a line for each of the segments 0 to {parts - 1}",
            )

    def _check_empty(self, places: Whole, lengths: Whole, rounds: Whole, segments: Whole, first: int) -> None:
        """Refuse a second line where only one is allowed, and a line without users next to other lines."""
        order = np.argsort(places, kind="stable")
        again = order[1:][places[order[1:]] == places[order[:-1]]]
        if self.several:
            empty = np.isin(places, places[again]) & (lengths == 0)
            again = again[np.isin(places[again], places[empty])]
        if again.size:
            line = int(again.min())
            before = _short(self._spots[int(np.flatnonzero(places == places[line])[0])])
            name = f"{first + int(rounds[line])}" + (f", segment {segments[line]}" if self.cells else "")
            both = f"in lines with users or in one line without; {before} is another of it"
            allowed = both if self.several else f"one that has no line yet; {before} is of it"
            raise ParameterError(f"{self.spot(self._spots[line])}, round", Words(name), allowed)

    def _check_size(self, sets: int) -> None:
        if sets * self.roster.count > MAX_ENTRIES:
            size = f"{sets} sets of {self.roster.count} users"
            raise ParameterError(self.spot("log"), Words(size), f"at most {MAX_ENTRIES} truth values, sets times users")

    def _check_users(self, places: Whole, users: Whole, lines: Whole, first: int, parts: int) -> None:
        keys = places * self.roster.count + users
        order = np.argsort(keys, kind="stable")
        again = order[1:][keys[order[1:]] == keys[order[:-1]]]
        if again.size:
            at = int(again.min())
            before = int(np.flatnonzero(keys == keys[at])[0])
            number, segment = divmod(int(places[at]), parts)
            where = f"round {first + number}" + (f", segment {segment}" if self.cells else "")
            other = _short(self._spots[lines[before]])
            seen = "" if lines[at] == lines[before] else f"; {other} has it too"
            raise DuplicateUser(
                self.spot(self._spots[lines[at]]) + ", user",
                self.roster.name(int(users[at])),
                f"named once in {where}{seen}",
            )


class Words:
    """Words that an error message shows without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _short(spot: Spot) -> str:
    return f"line {spot}" if isinstance(spot, int) else spot


def _first_missing(there: Whole, count: int) -> int | None:
    """Return the least number below `count` that is missing from an ascending list."""
    if len(there) == count:
        return None
    off = np.flatnonzero(there != np.arange(len(there)))
    return int(off[0]) if off.size else len(there)


guard(__name__)
