"""The form of a result, of an answer or in a vector, as the JSON Schema in spec/operations.json has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from secagg_spec import resources, schemas

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator


def fault(operation: str, result: Mapping[str, Any], *, of_vector: bool = False) -> str:
    """Return what is wrong with the first member of a result that has another form (ADP-15), or an empty string.

    The result `of_vector` has the fitting codes in its refused entries, and whom to blame if a clause names them.
    """
    where, said = next(schemas.broken(result, _validator(operation, of_vector)), ((), ""))
    inside = "".join(f"[{part!r:.80}]" for part in where)
    return f"the result{inside}{'' if said.startswith('[') else ': '}{said}" if said else ""


@cache
def _validator(operation: str, of_vector: bool) -> Draft202012Validator:
    strict, definitions = _strict()
    if of_vector:
        code, blamed = (definitions["reject"]["properties"][name] for name in ("code", "blamed"))
        demanded = {"reject": {"type": "array", "minItems": 1, "items": code}, "blamed": blamed}
        definitions = {**definitions, "refused": {**definitions["refused"], "properties": demanded}}
    return strict({"$defs": definitions, "$ref": f"#/$defs/{operation}.result"})


@cache
def _strict() -> tuple[type[Draft202012Validator], Mapping[str, Any]]:
    """Return a validator by which 1.0 is no integer (ADP-12), and the definitions of all operations."""
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 - most commands judge no result

    integers = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    content = json.loads((resources.root("spec") / "operations.json").read_text(encoding="utf-8"))
    return validators.extend(Draft202012Validator, type_checker=integers), content["$defs"]
