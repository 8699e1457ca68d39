"""The participation log of a deployment: one line for each round, on the disk before any user learns the survivors.

The file is a table with the header ``round,users``, as ``secagg-spec audit-participation`` reads it. The users are the
numbers of the nodes, in full, so that a node that comes later needs no column.

Source: spec/flower.md, section 6 (FLW-17 to FLW-20); spec/multi-round.md, sections 6 and 7 (MRA-27, MRA-28).
"""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import DuplicateUser, ParameterError

HEADER = b"round,users\n"


class ParticipationLog:
    """The announced survivors of each round of a deployment; rounds are numbered on over all runs, the first is 1.

    Attributes
    ----------
    rounds : int
        The number of the last round; 0 before the first.
    counts : Counter
        For each node, the number of rounds in which it was announced as a survivor (MRA-28).

    Parameters
    ----------
    path : path, optional
        The file, which a restart continues; without one the log lasts as long as the process. A last line without its
        end is cut off: the write was cut short, so no user learned its survivors (FLW-19).

    Raises
    ------
    OSError
        The file cannot be read or written.
    ParameterError
        The file is there, and is not a log that this class wrote; it is left as it is (FLW-20).
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else validate.path_of("participation", path)
        self.rounds, self.counts, self._size = 0, Counter[int](), 0
        if self.path is not None:
            self._continue(self.path)

    @classmethod
    def at(cls, place: str | Path | ParticipationLog | None) -> ParticipationLog:
        """Return the log at a path, or the log that is given."""
        if isinstance(place, ParticipationLog):
            return place
        return cls(None if place is None else validate.path_of("participation", place))

    def _continue(self, path: Path) -> None:
        """Read what is there, and cut off a line that was not written whole; or begin the file."""
        data = system.regular(path, None).read_bytes() if path.exists() else b""
        header, *lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True) or [b""]
        if header != HEADER and not (header == b"" and HEADER.startswith(data)):
            begins = data[:40].decode("latin-1")
            raise ParameterError(path.name, begins, f"a participation log, which begins with {HEADER.decode()!r}")
        for at, line in enumerate(lines, start=1):
            nodes = _nodes(at, line)
            if nodes is None:
                allowed = f"{at}, a comma, and the numbers of nodes, ascending, as this log writes them"
                raise ParameterError(f"{path.name}, line {at + 1}", line[:40].decode("latin-1"), allowed)
            self.counts.update(nodes)
        self.rounds, self._size = len(lines), len(HEADER) + sum(map(len, lines))
        if header != HEADER:
            system.write_whole(path, HEADER)
            system.on_disk(path, path.parent)
        elif self._size < len(data):
            os.truncate(path, self._size)

    def add(self, nodes: Collection[int]) -> None:
        """Write the next round, whose announced survivors are these nodes, and wait until it is on the disk.

        Parameters
        ----------
        nodes : collection of int
            The numbers of the nodes, in any order, none negative; none at all if no survivors were announced.

        Raises
        ------
        DuplicateUser, ParameterError
            A node is listed twice, or is not a number; or another process changed the file.
        OSError
            The line cannot be written. Then no user may learn the survivors; what was written of it is cut off.
        """
        given = validate.collection("nodes", nodes, "numbers")
        numbers = sorted(validate.integer("nodes", node, 0) for node in given)
        if len(set(numbers)) < len(numbers):
            raise DuplicateUser("nodes", numbers, "each node once")
        if self.path is not None:
            line = _line(self.rounds + 1, numbers)
            with self.path.open("r+b", buffering=0) as file:
                if file.seek(0, os.SEEK_END) != self._size:
                    raise ParameterError(self.path.name, "changed", "written by one process alone while rounds run")
                try:
                    if file.write(line) < len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(self._size)
                    raise
            self._size += len(line)
        self.rounds += 1
        self.counts.update(numbers)


def _line(number: int, nodes: Collection[int]) -> bytes:
    return f"{number},{' '.join(map(str, nodes))}\n".encode("ascii")


def _nodes(number: int, line: bytes) -> list[int] | None:
    """Return the nodes of a line that `_line` writes for a round; None for any other line."""
    try:
        nodes = [int(node) for node in line.partition(b",")[2].split()]
    except ValueError:
        return None
    return nodes if line == _line(number, sorted(map(abs, set(nodes)))) else None


guard(__name__)
