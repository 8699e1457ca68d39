"""The files that hold traces: a head for each round, then one line for each message, as the server saw them.

Source: spec/traces.md, section 2 (TRC-01 to TRC-05).
"""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.conformance.adapter.wire import DEEPEST
from secagg_spec.conformance.sdk.secagg_adapter import NUMBERS, PARTIES, Reject, check_form, form, said
from secagg_spec.crypto.keys import SESSION_BYTES
from secagg_spec.documents import Limit, TooDeep, loads, too_deep
from secagg_spec.errors import ParameterError, UsageError

VERSION = 1
MOST_USERS = 4096
"""The most users of a round that is checked."""
MOST_LINE = 2**28
"""The most characters of a line."""
MOST_ROUND = 2**31
"""The most characters of the lines of one round."""
_BEGUN = b'{"trace":%d,' % VERSION
"""How the recorder begins a head."""
_USERS = f"3 to {MOST_USERS}, the most that are checked"
_HEAD = ("trace", "protocol", "numbers", "setup", "session", "round")
_BATCH = "batch"


@dataclass(frozen=True)
class Head:
    """What all parties of a round agreed on before it began.

    Parameters
    ----------
    protocol : str
        The name of the protocol, as in `spec/adapter.md`.
    numbers, setup : mapping
        The parameters, and what the server starts with: the members of ``session.new`` for the server.
    session : bytes
        The session id, 16 bytes.
    round : int
        The number of the round.
    line : int
        The line of the file, from 1.
    batch : int
        T of a session of batches: users bT to bT + T - 1 are in a sum together or not at all. 0 without batches.
    """

    protocol: str
    numbers: Mapping[str, Any]
    setup: Mapping[str, Any]
    session: bytes
    round: int
    line: int = 0
    batch: int = 0

    @classmethod
    def of(
        cls,
        protocol: str,
        numbers: Mapping[str, Any],
        setup: Mapping[str, Any],
        session: bytes,
        round: int,
        batch: int = 0,
    ) -> Head:
        """Return a head from parameters and a setup in which numbers are integers and keys are bytes.

        What the server does not start with is left out (TRC-03).

        Raises
        ------
        ParameterError
            The protocol has no server, a member is missing or does not have its form, N is not in ``[3, 4096]``, the
            round is not in ``[0, 2**32)``, or `batch` is neither 0 nor at least 3 and a divisor of N.
        LengthMismatch
            The session id is not 16 bytes long.
        """
        validate.one_of("protocol", protocol, [name for name in NUMBERS if f"{name}.server" in PARTIES])
        names = NUMBERS[protocol], PARTIES[f"{protocol}.server"][0]
        parts = (
            {name: _member(protocol, name, validate.mapping(part, given)) for name in chosen}
            for part, given, chosen in zip(("numbers", "setup"), (numbers, setup), names, strict=True)
        )
        agreed, setup = parts
        if not 3 <= agreed["N"] <= MOST_USERS:
            raise ParameterError("N", agreed["N"], _USERS)
        session = validate.octets("session", session, SESSION_BYTES)
        round = validate.integer("round", round, 0, validate.MAX_COUNT)
        head = cls(protocol, agreed, setup, session, round, batch=validate.integer("batch", batch, 0))
        if batch and not _divides(batch, head.numbers["N"]):
            raise ParameterError("batch", batch, f"at least 3, and a divisor of N = {head.numbers['N']}")
        return head


def _divides(batch: int, users: int) -> bool:
    """Return whether so many users are whole batches, each of 3 users at least (MRA-17)."""
    return batch >= 3 and users // batch * batch == users


def _member(protocol: str, name: str, given: Mapping[str, Any]) -> Any:
    """Return a member as the adapter protocol has it, if it is there and has its form."""
    if name not in given:
        raise ParameterError(name, "nothing", f"a member of what the server of {protocol} starts with")
    kind = form(f"{protocol}.server", name)
    value = _plain(given[name], kind)
    try:
        check_form(name, value, kind)
    except Reject:
        raise ParameterError(name, given[name], "an integer" if kind == "decimal" else said(kind)) from None
    return value


def _plain(value: Any, form: str) -> Any:
    """Return a member as the adapter protocol has it."""
    value = validate.plain(value)
    if isinstance(value, bytes):
        return value.hex() if form in ("bytes", "binary64") else value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(entry, form[1:-1]) for entry in value]
    return str(value) if form == "decimal" else value


class Sent(NamedTuple):
    """A message that came from a user, or went to one, in a phase of the users."""

    line: int
    phase: str
    user: int
    incoming: bool
    data: bytes


class Closed(NamedTuple):
    """The end of a phase: what comes later in it does not count. `missing` are users without an answer."""

    line: int
    phase: str
    missing: tuple[int, ...]


Entry = Sent | Closed


# ------------------------------------------------------------------------------------------------------ reading


def read(path: Path, protocols: Collection[str]) -> Iterator[Head | Entry]:
    """Yield the lines of a trace; the first is a head.

    Raises
    ------
    UsageError
        The file cannot be read, or is no trace of one of `protocols`; the message names the line.
    """
    try:
        with system.regular(path, None).open("rb") as file:
            size = 0
            for number, line in _lines(file):
                entry = _entry(line, number, protocols) if number > 1 else _first(line, protocols)
                size = len(line) + (0 if isinstance(entry, Head) else size)
                if size > MOST_ROUND:
                    raise _Wrong(f"line {number}: a round of more than {MOST_ROUND} characters, the most that are read")
                yield entry
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except _Wrong as wrong:
        raise UsageError(f"{path}: {wrong}") from None


class _Wrong(Exception):
    """What is wrong with a file."""


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        if number == 1 and line.startswith(BOM_UTF8):
            raise _Wrong("line 1: it begins with a byte order mark; a trace is ASCII")
        if not line.isascii():
            raise _Wrong(f"line {number}: a trace is ASCII, and this line is not")
        if len(line) > MOST_LINE:
            raise _Wrong(f"line {number}: longer than {MOST_LINE} characters, the most that are read")
        if not line.endswith(b"\n"):
            before = (
                "the lines before it can be checked" if number > 1 else "it is the only one, so none can be checked"
            )
            raise _Wrong(f"line {number}: the file ends in the middle of this line; {before}")
        yield number, line
    if not number:
        raise _Wrong("the file is empty; a trace begins with a head")


def _first(line: bytes, protocols: Collection[str]) -> Head:
    try:
        head = _entry(line, 1, protocols)
    except _Wrong as wrong:
        raise _Wrong(f"not a trace: {wrong}") from None
    if not isinstance(head, Head):
        raise _Wrong(f"not a trace: line 1: the first line must be a head, with the members {', '.join(_HEAD)}")
    return head


def _entry(line: bytes, number: int, protocols: Collection[str]) -> Head | Entry:
    """Return a line as what it stands for."""
    try:
        value = loads(line.decode("ascii"))
    except TooDeep:
        value = None
    except Limit as limit:
        raise _Wrong(f"line {number}: it {limit}") from None
    except ValueError:
        raise _Wrong(f"line {number}: this is not JSON") from None
    if not isinstance(value, dict) or too_deep(value, DEEPEST):
        raise _Wrong(f"line {number}: a line is a JSON object of at most {DEEPEST} levels")
    try:
        match sorted(value):
            case ["from", "message", "phase"] | ["message", "phase", "to"]:
                incoming = "from" in value
                name = "from" if incoming else "to"
                for member, kind in (("phase", "text"), (name, "integer"), ("message", "bytes")):
                    check_form(member, value[member], kind)
                return Sent(number, value["phase"], value[name], incoming, bytes.fromhex(value["message"]))
            case ["closed", "phase"]:
                for member, kind in (("phase", "text"), ("closed", "[integer]")):
                    check_form(member, value[member], kind)
                return Closed(number, value["phase"], tuple(value["closed"]))
            case names if names in (sorted(_HEAD), sorted([*_HEAD, _BATCH])):
                return _head(value, number, protocols)
    except Reject as reject:
        raise _Wrong(f"line {number}: {reject}") from None
    shown = ", ".join(sorted(value)) or "none"
    raise _Wrong(
        f"line {number}: its members are {shown}; they must be phase and message with from or to, phase and closed,"
        f" or {', '.join(_HEAD)}, with {_BATCH} in a session of batches"
    )


def _head(value: dict[str, Any], number: int, protocols: Collection[str]) -> Head:
    if type(value["trace"]) is not int or value["trace"] != VERSION:
        raise _Wrong(f"line {number}: a trace of version {repr(value['trace'])[:20]}, and {VERSION} is read")
    protocol = value["protocol"]
    if protocol not in list(protocols):
        raise _Wrong(f"line {number}: protocol = {repr(protocol)[:40]}: must be one of {', '.join(protocols)}")
    for part, names in (("numbers", NUMBERS[protocol]), ("setup", PARTIES[f"{protocol}.server"][0])):
        given = value[part]
        if not isinstance(given, dict) or set(given) != set(names):
            raise _Wrong(f"line {number}: {part} must have the members {', '.join(names) or '(none)'}, and no others")
        for name in names:
            check_form(name, given[name], form(f"{protocol}.server", name))
    for name, kind in (("session", "bytes"), ("round", "decimal")):
        check_form(name, value[name], kind)
    users, session, played = value["numbers"]["N"], bytes.fromhex(value["session"]), int(value["round"])
    if not 3 <= users <= MOST_USERS:
        raise _Wrong(f"line {number}: N = {users}: must be {_USERS}")
    if not 0 <= played <= validate.MAX_COUNT:
        raise _Wrong(f"line {number}: round = {value['round']}: must be 0 to {validate.MAX_COUNT}")
    if _BATCH in value:
        check_form(_BATCH, value[_BATCH], "integer")
        if not _divides(value[_BATCH], users):
            raise _Wrong(f"line {number}: batch = {value[_BATCH]}: must be at least 3, and a divisor of N = {users}")
    return Head(protocol, value["numbers"], value["setup"], session, played, number, value.get(_BATCH, 0))


# ------------------------------------------------------------------------------------------------------ writing


class Recorder:
    """Writes what the server of a round sees to the end of a file, a whole line at a time (TRC-02 to TRC-04).

    Parameters
    ----------
    path : path
        The file; made if it is not there. A line that an earlier recorder could not finish is removed.

    Raises
    ------
    OSError
        The file cannot be written, or is no regular one.
    ParameterError
        The path is none; or the file is there, and does not begin as a trace: it is left as it is. Of the methods: a
        phase is no text, a message is no bytes, or users are no numbers in [0, 2^32 - 2], each once, or the
        recorder is closed, or its file has no head yet; nothing is written.
    """

    def __init__(self, path: str | Path) -> None:
        place = validate.path_of("path", path)
        if place.exists():
            _check_begun(system.regular(place, None))
        self._file = place.open("a+b")  # closed by `close`
        _cut_back(self._file)

    def begin(self, head: Head) -> None:
        """Write the head of a round; refuse one that no reader takes, as `Head.of` does."""
        head = Head.of(head.protocol, head.numbers, head.setup, head.session, head.round, head.batch)
        agreed = {"protocol": head.protocol, "numbers": head.numbers, "setup": head.setup}
        batch = {_BATCH: head.batch} if head.batch else {}
        self._write({"trace": VERSION, **agreed, "session": head.session.hex(), "round": str(head.round), **batch})

    def came(self, phase: str, user: int, message: bytes) -> None:
        """Write a message that came from a user."""
        self._sent(phase, "from", user, message)

    def went(self, phase: str, user: int, message: bytes) -> None:
        """Write a message that goes to a user."""
        self._sent(phase, "to", user, message)

    def closed(self, phase: str, missing: Collection[int] = ()) -> None:
        """Write that a phase is over, and which users gave no answer in it."""
        users = validate.users("missing", [*validate.collection("missing", missing, "users")], validate.MAX_COUNT)
        self._write({"phase": validate.instance("phase", phase, str), "closed": sorted(users)})

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _sent(self, phase: str, end: str, user: int, message: bytes) -> None:
        number, data = validate.integer("user", user, 0, validate.MAX_COUNT - 1), validate.octets("message", message)
        self._write({"phase": validate.instance("phase", phase, str), end: number, "message": data.hex()})

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file.closed:
            raise ParameterError("recorder", "closed", "used before `close`")
        if "trace" not in entry and not self._file.seek(0, os.SEEK_END):
            raise ParameterError("recorder", "empty", "begun with the head of a round")
        self._file.write(json.dumps(entry, separators=(",", ":")).encode("ascii") + b"\n")
        self._file.flush()


def _check_begun(path: Path) -> None:
    """Refuse a file whose first line is no head of a trace, nor the beginning of one that was cut."""
    with path.open("rb") as file:
        line = file.readline(MOST_LINE + 1)
    if line.endswith(b"\n"):
        try:
            value = loads(line.decode("ascii"))
        except ValueError:
            value = None
        begun = isinstance(value, dict) and type(value.get("trace")) is int and value["trace"] == VERSION
    else:
        begun = line[: len(_BEGUN)] == _BEGUN[: len(line)]
    if not begun:
        raise ParameterError(path.name, line[:40].decode("latin-1"), "a trace, or no file yet")


def _cut_back(file: BinaryIO, step: int = 2**16) -> None:
    """Remove what follows the last end of a line."""
    end = size = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - step)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        file.truncate(end)


guard(__name__)
