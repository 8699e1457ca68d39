"""What Flower could take: each failure of its newest releases has a repair, and each repair a failure."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from docs.pages import upstream
from docs.pages.common import SiteError, escaped
from docs.pages.frameworks import kind, stored


def test_each_failing_clause_has_a_repair() -> None:
    text = upstream.flower()
    for target in ("flower", "flower@1.42.0"):
        failing = [check for check in stored()[target]["checks"] if kind(check)]
        assert len(failing) == 43
        for check in failing:
            start = f"- [{escaped(check['expected_failure'])}]"
            lines = [line for line in text.splitlines() if line.startswith(start)]
            assert len(lines) == 1
            version = stored()[target]["implementation"]["version"]
            assert any(version in line and all(f"[{clause}]" in line for clause in check["clauses"]) for line in lines)
    assert text.count("- Repair: ") == text.count("- `secagg_spec.flower`: ") == text.count("\n- [")


@pytest.mark.parametrize("change", ["left out", "twice", "of nothing"])
def test_words_without_a_failure_are_refused(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = upstream.WORDS.read_text(encoding="utf-8")
    first, second = text.split("[[repair]]")[1:3]
    spoiled = {
        "left out": text.replace("[[repair]]" + first, ""),
        "twice": text + "\n[[repair]]" + first,
        "of nothing": text.replace(tomllib.loads(second)["check"], "echo/nothing"),
    }[change]
    path = tmp_path / "upstream.toml"
    path.write_text(spoiled, encoding="utf-8")
    monkeypatch.setattr(upstream, "WORDS", path)
    with pytest.raises(SiteError, match=r"upstream\.toml"):
        upstream.flower()
