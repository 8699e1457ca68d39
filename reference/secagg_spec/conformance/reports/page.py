"""A report as one HTML file that needs nothing else: a matrix of clauses, a filter, and a page for each failure.

What an adapter wrote is text, never markup: the templates escape all of it, and no character of it is obeyed (CNF-70).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from secagg_spec.conformance.adapter.plain import fit_for_json, visible
from secagg_spec.conformance.reports import page_content

_HERE = Path(__file__).parent
_WIDTH = 60


def html(document: Mapping[str, Any]) -> str:
    """Return a report (`conformance.reports.document`), one without a footer as well, as an HTML page."""
    parts = {name: (_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")}
    text = (
        _environment()
        .get_template("report.html.j2")
        .render(**page_content.page(fit_for_json(document)), style=parts["style.css"], script=parts["script.js"])
    )
    return text + "\n"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters["pretty"] = pretty
    return environment


def _visible(value: Any) -> Any:
    """Return what a template is given, with escapes for characters that are obeyed, hidden or turned round."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def pretty(value: Any, margin: str = "") -> str:
    """Return data as JSON for people: what fits on a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or not value or len(line) + len(margin) <= _WIDTH:
        return line
    inner = f"{margin}  "
    if isinstance(value, dict):
        items = [f"{json.dumps(name, ensure_ascii=False)}: {pretty(item, inner)}" for name, item in value.items()]
    else:
        items = [pretty(item, inner) for item in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(items) + f"\n{margin}{last}"
