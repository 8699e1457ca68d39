"""The page of threat models has the tables of the text."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import threats
from docs.pages.common import SiteError
from tests.site.shell import ROOT

from secagg_spec.ledger import promises


@pytest.mark.parametrize("name", promises.PAGES)
def test_each_promise_of_a_page_stands_among_the_threat_models(name: str) -> None:
    scope = (ROOT / "spec" / f"{name}.md").read_text(encoding="utf-8").partition("\n## 2")[0]
    rows = [line for line in scope.splitlines() if line.startswith("| ") and "what holds" not in line]
    shown = threats.threat_models()
    assert len(rows) >= 3
    assert all(row in shown for row in rows)


def test_a_page_without_the_table_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "secagg.md").write_text("# SecAgg\n\n## 1. Scope\n\nNo table.\n", encoding="utf-8")
    monkeypatch.setattr(threats, "ROOT", tmp_path)
    with pytest.raises(SiteError, match=r"^spec/secagg\.md: section 1 has no table"):
        threats.threat_models()


def test_nothing_but_the_tables_is_pulled() -> None:
    lines = [line for line in threats.threat_models().splitlines() if line]
    assert {line[0] for line in lines} == {"#", "|", "["}
    assert [line[:3] for line in lines if line[0] == "#"] == ["## "] * len(promises.PAGES)
    assert len(lines) < 12 * len(promises.PAGES)
