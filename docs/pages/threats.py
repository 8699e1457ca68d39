"""The tables of what each protocol promises, pulled from section 1 of its page of the text."""

from __future__ import annotations

import re

from docs.pages.common import ROOT, SiteError
from secagg_spec.ledger.promises import PAGES

PAGE = "explanation/threat-models.md"
_TITLE = re.compile(r"\A# (.+)")
_TABLE = re.compile(r"^## 1\. Scope\n.*?^(\| what holds \| for \|\n(?:\|[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_PLACE = re.compile(r"\]\((?![a-z]+:)(.)")


def threat_models() -> str:
    """Return the tables of all protocols, each below the name of its page.

    Raises
    ------
    SiteError
        A page of the text has no such table in its section 1.
    """
    return "\n".join(_section(name) for name in PAGES)


def _section(name: str) -> str:
    text = (ROOT / "spec" / f"{name}.md").read_text(encoding="utf-8")
    title, table = _TITLE.match(text), _TABLE.search(text)
    if title is None or table is None:
        raise SiteError(f"spec/{name}.md: section 1 has no table `what holds | for`")
    rows = _PLACE.sub(lambda at: f"](../../spec/{f'{name}.md' if at[1] == '#' else ''}{at[1]}", table[1])
    return f"## {title[1]}\n\n{rows}\n[The whole page](../../spec/{name}.md).\n"
