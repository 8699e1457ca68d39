"""Whether a result, of an answer or in a vector, has the form of its operation (spec/adapter.md, sections 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from secagg_spec import schemas
from secagg_spec.conformance.adapter import forms

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
    from jsonschema import validators  # noqa: PLC0415 - most commands judge no result

    # 1.0 is no integer (ADP-12)
    base = schemas.validators()
    integers = base.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    definitions = dict(forms.FORMS)
    if of_vector:
        code, blamed = (definitions["reject"]["properties"][name] for name in ("code", "blamed"))
        demanded = {"reject": {"type": "array", "minItems": 1, "items": code}, "blamed": blamed}
        definitions["refused"] = {**definitions["refused"], "properties": demanded}
    strict: type[Draft202012Validator] = validators.extend(base, type_checker=integers)
    result = forms.result(operation)
    result.get("properties", {}).pop("raw", None)  # which none has that was asked without it (ADP-55)
    return strict({"$defs": definitions, **result})
