"""A report as one self-contained HTML file: a matrix of clauses, a filter, and a page for each failure.

Adapter output is text, never markup: the templates escape every character that has a meaning there (CNF-70).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secagg_spec.conformance.adapter.plain import fit_for_json, visible
from secagg_spec.conformance.reports import page_content

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent
_WIDTH = 60


def html(document: Mapping[str, Any]) -> str:
    """Return a report (`conformance.reports.document`), with or without a footer, as an HTML page."""
    parts = {name: (_HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js")}
    content = page_content.page(fit_for_json(document))
    template = _environment().get_template("report.html.j2")
    return template.render(**content, style=parts["style.css"], script=parts["script.js"]) + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - few runs write a page

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
    """Return a template value with escapes for control characters, invisible characters and direction marks."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def pretty(value: Any, margin: str = "") -> str:
    """Return data as readable JSON: a value that fits on one line is written on one line."""
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
