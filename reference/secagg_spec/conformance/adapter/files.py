"""Input files of the kit: for any content that cannot be used, the error message is one line (CNF-53)."""

from pathlib import Path
from typing import Any

from secagg_spec import system
from secagg_spec.conformance.adapter.wire import DEEPEST, Limit, loads, too_deep
from secagg_spec.errors import UsageError

_DEEPEST = DEEPEST + 28
"""The nesting limit of a file, which leaves room for an answer inside it."""


def read_json(path: Path, otherwise: str = "this is not JSON") -> Any:
    """Return the JSON value in a file; a byte order mark at its beginning is skipped.

    Raises
    ------
    UsageError
        The file is absent, is not JSON in UTF-8, or exceeds the limits of this kit; the message is one line, and
        `otherwise` is its text for anything that is not JSON.
    """
    try:
        value = loads(system.regular(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except Limit as limit:
        raise UsageError(f"{path}: it {limit}") from None
    except ValueError:
        raise UsageError(f"{path}: {otherwise}") from None
    except RecursionError:
        raise UsageError(_deep(path)) from None
    if too_deep(value, _DEEPEST):
        raise UsageError(_deep(path))
    return value


def _deep(path: Path) -> str:
    return f"{path}: it is nested deeper than {_DEEPEST} levels"
