"""What a command takes from the system: files that a user names to read or to write, and interrupts from the keyboard.

An interrupt reaches every process of a command at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""Errors of replacing a file that can still be written in place."""
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EMLINK)
"""Errors of a file system without hard links; a file is written in place there."""


def regular(path: Path, most: int | None = 1 << 29) -> Path:
    """Return the path of a file that may be read to its end.

    Parameters
    ----------
    path : Path
        The file.
    most : int, optional
        The largest number of bytes; None for a file that is read line by line, of any length. 512 MiB by default.

    Raises
    ------
    OSError
        The file cannot be read, or is longer, or it is a pipe, a socket or a device: these may block the command or
        never end.
    """
    try:
        found = path.stat()
    except ValueError:
        raise OSError(errno.EINVAL, "no path has a null character", str(path)) from None
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EINVAL, "this is a pipe or a device; a regular file is needed", str(path))
    if most is not None and found.st_size > most:
        raise OSError(errno.EFBIG, f"it has {found.st_size} bytes, and at most {most} are read", str(path))
    return path


def resolved(path: Path) -> Path:
    """Return the path without links.

    Raises
    ------
    OSError
        A link leads back to itself.
    """
    try:
        return path.resolve()
    except RuntimeError:  # Python 3.12 and older
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from None


def replaceable(path: Path) -> bool:
    """Return whether `write_whole` replaces the file at a path. It appends to a device, a pipe and standard output."""
    return (path.is_file() and _descriptor(path) is None) or not path.exists()


def _descriptor(path: Path) -> int | None:
    """Return the number of standard output or standard error if it goes into the file at a path, as /dev/stdout."""
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(number), path.stat()):
                return number
    return None


def write_whole(path: Path, data: str | bytes, *, follow: bool = True) -> None:
    """Write a file atomically: a reader sees the old content or the new one, even after a kill.

    Parameters
    ----------
    path : Path
        The file. A device, a pipe, and the file behind standard output or standard error are written to directly.
    data : str or bytes
        The content; text is written in UTF-8.
    follow : bool
        Whether to follow a symbolic link at `path`; if not, the file replaces the link.

    Raises
    ------
    OSError
        The file cannot be written; the old content is still there.
    """
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if follow and not replaceable(path):
        number = _descriptor(path)
        for stream in (sys.stdout, sys.stderr):
            if number is not None and stream is not None:
                stream.flush()
        with open(path, "wb", opener=_opened) if number is None else os.fdopen(os.dup(number), "wb") as device:
            device.write(content)
        return
    place = resolved(path) if follow else path
    there = place.is_file() and not place.is_symlink()
    beside = place.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        if there:
            beside.chmod(stat.S_IMODE(place.stat().st_mode))
        beside.replace(place)
    except BaseException as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if not there or error.errno not in _IN_PLACE:
            raise OSError(error.errno, error.strerror, str(path)) from None
        place.write_bytes(content)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet, atomically: after a kill it is there whole or not at all.

    Raises
    ------
    FileExistsError
        Something is there already; it is left as it is.
    OSError
        The file cannot be written.
    """
    beside = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with beside.open("xb") as file:
            file.write(content)
        try:
            os.link(beside, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with path.open("xb") as file:
                file.write(content)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def _opened(path: str, flags: int) -> int:
    """Open a device or a pipe; refuse a pipe that nobody reads, which would block the command."""
    try:
        opened = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "this is a pipe that nobody reads", path) from None
        raise
    os.set_blocking(opened, True)
    return opened


def on_disk(*paths: Path) -> None:
    """Wait until files and the names in folders are on the disk, where the system can."""
    for path in paths if os.name == "posix" else ():
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Block interrupts of this thread until the context ends.

    Processes that start in the context inherit the block, so only the process that started them handles an interrupt,
    and it ends them. Python's resource tracker, which comes before the first process that Python spawns, removes the
    block when it starts; so it starts before the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # noqa: PLC0415 - few commands start processes

    with interrupts_ignored():
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore interrupts; programs started in this context ignore them from their first moment on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
