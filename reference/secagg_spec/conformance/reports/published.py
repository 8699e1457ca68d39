"""Reports that others publish: what the site tells of them, kept in ``docs/results/published.toml``.

    python -m secagg_spec.conformance.reports.results --published URL REPORT

notes a report whose file lies at the address. Nothing is run: the file is held to the schema and to its own digest
(CNF-08), and its SHA-256 is noted, so that a reader of the address knows that the file is the same (CNF-90).
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secagg_spec import documents, schemas, system
from secagg_spec.conformance.adapter.plain import shown
from secagg_spec.conformance.reports import document
from secagg_spec.conformance.running.runner import BROKEN
from secagg_spec.errors import UsageError

FILE = "published.toml"
_HEAD = "# Reports that others publish, as `secagg_spec.conformance.reports.results --published` noted them (CNF-90).\n"
_TEXT, _DIGEST = {"type": "string", "maxLength": 200}, {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_ENTRY = {
    "url": {"type": "string", "maxLength": 2000, "pattern": "^https://[!#-;=?-Z_a-z~]+$"},
    "sha256": _DIGEST,
    "kit": _TEXT,
    "text": _DIGEST,
    "name": _TEXT,
    "version": _TEXT,
    "verdicts": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
}
_LIST = {
    "type": "object",
    "properties": {
        "report": {
            "type": "array",
            "items": {"type": "object", "properties": _ENTRY, "required": [*_ENTRY], "additionalProperties": False},
        }
    },
    "additionalProperties": False,
}
_OF_THE_KIT = "adapter/"
"""The checks of the lines themselves, which an adapter's frame passes whatever becomes of the implementation."""


def load(folder: Path) -> list[dict[str, Any]]:
    """Return the entries of the file in a folder, one for each implementation of a report; none without the file.

    Raises
    ------
    UsageError
        The file is not TOML, or an entry has a member that is missing, unknown or of another form.
    """
    path = folder / FILE
    if not path.exists():
        return []
    try:
        content = documents.read_toml(path)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    for where, fault in schemas.faults(content, _LIST):
        raise UsageError(f"{path}: {''.join(f'{part}: ' for part in where)}{fault}")
    return list(content.get("report", []))


def entries(path: Path, url: str) -> list[dict[str, Any]]:
    """Return the entries of a report that lies at `url`.

    Raises
    ------
    UsageError
        The file is not a complete report, the address is not one of the web, or an implementation's part is withheld.
    """
    report = document.load(path)
    sha256, header = hashlib.sha256(path.read_bytes()).hexdigest(), report["header"]
    made = []
    for target in report["targets"]:
        verdicts = Counter(check["verdict"] for check in target["checks"] if check["verdict"] != "unsupported")
        _withhold(path, target)
        about = {name: shown(str(target["implementation"][name]), 200) for name in ("name", "version")}
        origin = {"url": url, "sha256": sha256, "kit": header["kit"], "text": header["text"]}
        made.append({**origin, **about, "verdicts": dict(sorted(verdicts.items()))})
    for where, fault in schemas.faults({"report": made}, _LIST):
        raise UsageError(f"{path}: {where[-1]}: {fault}")
    return made


def _withhold(path: Path, target: Mapping[str, Any]) -> None:
    """Refuse what says more of an adapter than of an implementation (CNF-91)."""
    ran = [check for check in target["checks"] if not check["check"].startswith(_OF_THE_KIT)]
    failed = [check for check in ran if check["failure"]]
    why = ""
    if not any(check["verdict"] == "pass" for check in ran):
        why = "no check of what it declares passed"
    elif failed and all(check["verdict"] in BROKEN for check in failed):
        why = f"all that failed are of the verdicts {', '.join(BROKEN)}"
    if why:
        raise UsageError(f"{path}: {target['target']} is withheld: {why}, so the adapter may be what is broken")


def add(folder: Path, found: Sequence[Mapping[str, Any]]) -> None:
    """Write entries into the file, in place of those of the same addresses."""
    kept = [entry for entry in load(folder) if entry["url"] not in {new["url"] for new in found}]
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(_written(entry) for entry in (*kept, *found))
    system.write_whole(folder / FILE, _HEAD + text)


def _written(entry: Mapping[str, Any]) -> str:
    """Return an entry in TOML, whose strings are here those of JSON."""
    numbers = ", ".join(f"{name} = {count}" for name, count in entry["verdicts"].items())
    lines = [f"{name} = {json.dumps(entry[name], ensure_ascii=False)}" for name in _ENTRY if name != "verdicts"]
    return "\n".join(["", "[[report]]", *lines, f"verdicts = {{ {numbers} }}", ""])
