"""Files that a user names for a command to read or to write."""

from __future__ import annotations

import contextlib
import errno
import secrets
import stat
from pathlib import Path

_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY)
"""What keeps a file from being replaced in a folder where it may be written."""


def regular(path: Path) -> Path:
    """Return the path of a file that may be read to its end.

    Raises
    ------
    OSError
        It cannot be read, or it is a pipe, a socket or a device, which may hold the command up or have no end.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.EINVAL, "this is a pipe or a device; a regular file is needed", str(path))
    return path


def replaceable(path: Path) -> bool:
    """Return whether `write_whole` replaces what is at a path: not a device or a pipe, where each write is added."""
    return path.is_file() or not path.exists()


def write_whole(path: Path, data: str | bytes, *, follow: bool = True) -> None:
    """Write a file so that a reader sees the old content or the new one, even after a kill.

    Parameters
    ----------
    path : Path
        The file. A device or a pipe is written to as it is.
    data : str or bytes
        The content; text is written in UTF-8.
    follow : bool
        Whether a symbolic link in its place is followed; otherwise the file takes the place of the link.

    Raises
    ------
    OSError
        It cannot be written; what was there is still there.
    """
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if follow and not replaceable(path):
        with path.open("wb") as device:
            device.write(content)
        return
    place = path.resolve() if follow else path
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
        if not there or not isinstance(error, OSError) or error.errno not in _IN_PLACE:
            raise
        place.write_bytes(content)
