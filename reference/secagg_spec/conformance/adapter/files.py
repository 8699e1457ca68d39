"""Input files of the kit: for any content that cannot be used, the error message is one line (CNF-53)."""

from pathlib import Path
from typing import Any

from secagg_spec import documents, schemas
from secagg_spec.errors import UsageError


def read_json(path: Path, otherwise: str = "this is not JSON") -> Any:
    """Return the JSON value in a file; a byte order mark at its beginning is skipped.

    Raises
    ------
    UsageError
        The file is absent, is not JSON in UTF-8, or exceeds the limits of this kit; the message is one line, and
        `otherwise` is its text where the syntax is not that of JSON.
    """
    try:
        return documents.read_json(path)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except documents.NotJSON:
        raise UsageError(f"{path}: {otherwise}") from None
    except ValueError as error:
        raise UsageError(f"{path}: it {error}") from None


def with_schema(name: str | Path, body: object, schema: str, does: str = "reads") -> dict[str, Any]:
    """Return the content of a file that has to be an object with this schema; `name` appears in the message.

    Raises
    ------
    UsageError
        It is no object, or has another schema or none; `does` says what this kit does with those that have it.
    """
    if not isinstance(body, dict):
        raise UsageError(f"{name}: it holds no object; this kit {does} objects with the schema {schema!r}")
    if body.get("schema") != schema:
        raise UsageError(f"{name}: schema is {schemas.shown(body.get('schema'))}; this kit {does} {schema!r}")
    return body
