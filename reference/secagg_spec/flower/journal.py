"""The journal of a client: the steps that it took, kept where no older copy of its state can undo them.

The engine gives a client its state back as it last kept it, and that may be an older one: Flower 1.41 sends the reply
of a client process before it keeps the state of that process. So a client writes each step into its journal, and onto
the disk, before its messages leave. A step that is in the journal is never taken again.

Source: spec/conventions.md, section 13 (SES-01 to SES-03); spec/flower.md, section 3 (FLW-06, FLW-07).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from secagg_spec import system
from secagg_spec.arithmetic import validate
from secagg_spec.arithmetic.guard import guard
from secagg_spec.errors import ParameterError, Replay
from secagg_spec.protocols.begun import session_id

Step = tuple[bytes, str]


class Journal(Protocol):
    """The steps that a client took, by session and phase: 16 bytes, and a name such as ``share_keys``.

    Its methods raise `LengthMismatch` or `ParameterError` for anything else.
    """

    def refuse(self, session: bytes, phase: str) -> None:
        """Raise `Replay` if the step was taken."""
        ...

    def take(self, session: bytes, phase: str) -> None:
        """Write that the step was taken, or raise `Replay` if it was; of two calls at a time one raises."""
        ...


def _step(session: bytes, phase: str) -> Step:
    if not isinstance(phase, str) or not re.fullmatch("[a-z_]+", phase):
        raise ParameterError("phase", phase, "letters from a to z, and _")
    return session_id(session), phase


def _replay(session: bytes, phase: str) -> Replay:
    return Replay(f"the step {phase!r} of session {session.hex()} was taken before")


@dataclass
class MemoryJournal:
    """A journal that lasts as long as the process, for tests."""

    taken: set[Step] = field(default_factory=set)

    def refuse(self, session: bytes, phase: str) -> None:
        """Raise `Replay` if the step was taken."""
        if _step(session, phase) in self.taken:
            raise _replay(session, phase)

    def take(self, session: bytes, phase: str) -> None:
        """Write that the step was taken."""
        self.refuse(session, phase)
        self.taken.add((session, phase))


@dataclass(frozen=True)
class FileJournal:
    """A journal of empty files in a folder, one for each step: the folder belongs to one client."""

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", validate.path_of("folder", self.folder))

    def _path(self, session: bytes, phase: str) -> Path:
        session, phase = _step(session, phase)
        return self.folder / f"{session.hex()}-{phase}"

    def refuse(self, session: bytes, phase: str) -> None:
        """Raise `Replay` if the step was taken."""
        if self._path(session, phase).exists():
            raise _replay(session, phase)

    def take(self, session: bytes, phase: str) -> None:
        """Make the file of the step, and wait until its name is on the disk.

        Raises
        ------
        OSError
            The file cannot be made. Then nothing may leave.
        ParameterError
            The folder's name is that of a file.
        Replay
            The step was taken.
        """
        path = self._path(session, phase)
        new = [each for each in (self.folder, *self.folder.parents) if not each.exists()]
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            system.on_disk(*(each.parent for each in new))
        except FileExistsError:
            raise ParameterError("folder", self.folder, "a folder, or a name that nothing has yet") from None
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            raise _replay(session, phase) from None
        system.on_disk(self.folder)


guard(__name__)
