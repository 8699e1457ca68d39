"""Input files of the kit: for any content that cannot be used, the error message is one line (CNF-53)."""

from pathlib import Path
from typing import Any

from secagg_spec import documents
from secagg_spec.errors import UsageError


def read_json(path: Path, otherwise: str = "this is not JSON") -> Any:
    """Return the JSON value in a file; a byte order mark at its beginning is skipped.

    Raises
    ------
    UsageError
        The file is absent, is not JSON in UTF-8, or exceeds the limits of this kit; the message is one line, and
        `otherwise` is its text for anything that is not JSON.
    """
    try:
        return documents.read_json(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except documents.Limit as limit:
        raise UsageError(f"{path}: it {limit}") from None
    except ValueError:
        raise UsageError(f"{path}: {otherwise}") from None
