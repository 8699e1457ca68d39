"""A report as one HTML file that needs nothing else: a matrix of clauses, a filter, and a page for each failure.

What an adapter wrote is text, never markup: the templates escape all of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from secagg_spec.conformance.page import content
from secagg_spec.conformance.plain import fit_for_json

_HERE = Path(__file__).parent


def html(document: Mapping[str, Any]) -> str:
    """Return a report (`conformance.document`), one without a footer as well, as an HTML page."""
    parts = {name: (_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")}
    text = (
        _environment()
        .get_template("report.html.j2")
        .render(**content.page(fit_for_json(document)), style=parts["style.css"], script=parts["script.js"])
    )
    return text + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["pretty"] = lambda value: json.dumps(value, indent=2, ensure_ascii=False)
    return environment
